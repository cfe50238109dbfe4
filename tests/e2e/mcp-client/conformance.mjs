// SPDX-License-Identifier: MIT
// The protocol's own conformance tests against the installed `stockade mcp --http`: those scenarios
// that need no tools, resources or prompts made for them.
import assert from 'node:assert/strict';
import {spawn} from 'node:child_process';
import {mkdtempSync, readFileSync, rmSync} from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import test from 'node:test';
import {fileURLToPath} from 'node:url';

const stockade = readFileSync(process.env.STOCKADE_PREFIX_FILE, 'utf8').trim() + '/bin/stockade';
const suite = path.join(path.dirname(fileURLToPath(import.meta.url)), 'node_modules/.bin/conformance');
const token = 'a-token-that-nobody-guesses';
const scenarios = ['server-initialize', 'ping', 'tools-list', 'logging-set-level',
                   'dns-rebinding-protection', 'server-sse-multiple-streams'];

async function listening(stream) {
  let said = '';
  for await (const chunk of stream) {
    said += chunk;
    const found = said.match(/serving (http:\S+)\n/);
    if (found) return new URL(found[1]);
  }
  assert.fail(`the server did not start: ${said}`);
}

// The suite knows no token; this adds it and changes nothing else.
function withToken(url) {
  return http.createServer((request, response) => {
    const headers = {...request.headers, authorization: `Bearer ${token}`};
    const forwarded = http.request({host: url.hostname, port: url.port, method: request.method,
                                    path: request.url, headers, setHost: false}, answer => {
      response.writeHead(answer.statusCode, answer.headers);
      answer.pipe(response);
    });
    forwarded.on('error', () => response.destroy());
    response.on('close', () => forwarded.destroy());
    request.pipe(forwarded);
  });
}

test('conformance', async t => {
  const workspace = mkdtempSync('/var/tmp/stockade-conformance.');
  const server = spawn(stockade, ['mcp', '--http', '0', '--mode', 'read-only', '--workspace', workspace],
                       {env: {...process.env, XDG_STATE_HOME: `${workspace}.state`, STOCKADE_MCP_TOKEN: token},
                        stdio: ['ignore', 'ignore', 'pipe']});
  const proxy = withToken(await listening(server.stderr));
  await new Promise(resolve => proxy.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    proxy.closeAllConnections();
    proxy.close();
    server.kill('SIGTERM');
    for (const made of [workspace, `${workspace}.state`]) rmSync(made, {recursive: true, force: true});
  });
  const url = `http://localhost:${proxy.address().port}/mcp`;
  for (const scenario of scenarios) {
    await t.test(scenario, async () => {
      const running = spawn(process.execPath, [suite, 'server', '--url', url, '--scenario', scenario]);
      let said = '';
      for (const stream of [running.stdout, running.stderr]) stream.on('data', data => said += data);
      const status = await new Promise(resolve => running.on('close', resolve));
      const passed = said.match(/Passed: (\d+)\/(\d+), 0 failed, 0 warnings/);
      assert.ok(status === 0 && passed && passed[1] === passed[2] && passed[1] > 0, said);
    });
  }
});
