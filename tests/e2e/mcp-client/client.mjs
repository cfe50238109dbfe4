// SPDX-License-Identifier: MIT
// The official TypeScript clients of the Model Context Protocol, of both eras, against the installed
// `stockade mcp`.
import assert from 'node:assert/strict';
import {spawn, spawnSync} from 'node:child_process';
import {existsSync, mkdtempSync, readFileSync, readdirSync, rmSync} from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import path from 'node:path';
import test from 'node:test';

import {Client as ModernClient, StreamableHTTPClientTransport as ModernHttp} from '@modelcontextprotocol/client';
import {StdioClientTransport as ModernStdio} from '@modelcontextprotocol/client/stdio';
import {Client as LegacyClient} from '@modelcontextprotocol/sdk/client/index.js';
import {StdioClientTransport as LegacyStdio} from '@modelcontextprotocol/sdk/client/stdio.js';
import {StreamableHTTPClientTransport as LegacyHttp} from
    '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {ElicitRequestSchema, LoggingMessageNotificationSchema} from '@modelcontextprotocol/sdk/types.js';

const stockade = readFileSync(process.env.STOCKADE_PREFIX_FILE, 'utf8').trim() + '/bin/stockade';

const eras = {
  legacy: {
    version: '2025-11-25',
    make: capabilities => new LegacyClient({name: 'test', version: '1'}, {capabilities}),
    stdio: parameters => new LegacyStdio(parameters),
    onElicit: (client, answer) => client.setRequestHandler(ElicitRequestSchema, answer),
  },
  modern: {
    version: '2026-07-28',
    make: capabilities => new ModernClient(
        {name: 'test', version: '1'},
        {capabilities, versionNegotiation: {mode: {pin: '2026-07-28'}}}),
    stdio: parameters => new ModernStdio(parameters),
    onElicit: (client, answer) => client.setRequestHandler('elicitation/create', answer),
  },
};

function processesWith(needle) {
  return readdirSync('/proc').filter(pid => /^\d+$/.test(pid)).filter(pid => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(needle) &&
          Number(pid) !== process.pid;
    } catch {
      return false;
    }
  });
}

async function eventually(predicate, what) {
  for (let tries = 0; tries < 3000; ++tries) {
    if (predicate()) return;
    await new Promise(resolve => setTimeout(resolve, 20));
  }
  assert.fail(`never: ${what}`);
}

// A client that is connected to a server over a workspace of its own.
async function session(t, era, {mode = 'read-only', capabilities = {}} = {}) {
  const workspace = mkdtempSync('/var/tmp/stockade-client.');
  const client = era.make(capabilities);
  const transport = era.stdio({
    command: stockade,
    args: ['mcp', '--mode', mode, '--workspace', workspace],
    env: {...process.env, HOME: workspace},
    stderr: 'inherit',
  });
  await client.connect(transport);
  t.after(async () => {
    await client.close();
    rmSync(workspace, {recursive: true, force: true});
  });
  const bash = (command, more = {}, options = {}) =>
      client.callTool({name: 'bash', arguments: {command, ...more}}, ...era === eras.legacy ?
          [undefined, options] : [options]);
  return {client, workspace, bash};
}

for (const [name, era] of Object.entries(eras)) {
  test(`${name}: the tools and what they are`, async t => {
    const {client} = await session(t, era);
    const {tools} = await client.listTools();
    assert.deepEqual(tools.map(tool => tool.name), ['bash', 'job_output', 'job_list', 'job_kill']);
    const bash = tools[0];
    assert.deepEqual(bash.inputSchema.required, ['command']);
    assert.equal(bash.outputSchema.type, 'object');
    assert.equal(bash.annotations.readOnlyHint, false);
    assert.equal(client.getServerVersion().name, 'stockade');
    if (name === 'modern') assert.equal(client.getNegotiatedProtocolVersion(), era.version);
  });

  // Having listed the tools, the client checks every result against its outputSchema.
  test(`${name}: a call, a failure and a denial`, async t => {
    const {client, bash} = await session(t, era);
    await client.listTools();
    const hello = await bash('echo hello');
    assert.equal(hello.content[0].text, 'hello\n');
    assert.equal(hello.structuredContent.outcome, 'ok');
    const failed = await bash('exit 3');
    assert.equal(failed.content[0].text, '(no output)\n[exit code: 3]');
    assert.ok(!failed.isError);
    const denied = await bash('echo x > f');
    assert.equal(denied.structuredContent.outcome, 'denied');
    assert.match(denied.content[0].text, /\[sandbox: file access denied under read-only mode\]/);
    assert.ok(!denied.isError);
    const wrong = await client.callTool({name: 'bash', arguments: {}});
    assert.ok(wrong.isError);
    await assert.rejects(client.callTool({name: 'no-such-tool', arguments: {}}));
  });

  test(`${name}: the user is asked, approves, and the wider call succeeds once`, async t => {
    const {client, workspace, bash} =
        await session(t, era, {capabilities: {elicitation: {form: {}}}});
    const asked = [];
    let answer = {action: 'decline'};
    era.onElicit(client, async request => {
      asked.push(request.params);
      return answer;
    });
    const wider = {sandbox_permissions: 'workspace-write', justification: 'to keep a note'};
    const denied = await bash('echo note > note');
    assert.match(denied.content[0].text, /\[sandbox: escalation available/);
    const rejected = await bash('echo note > note', wider);
    assert.ok(rejected.isError);
    assert.match(rejected.content[0].text, /the user rejected/);
    assert.ok(!existsSync(path.join(workspace, 'note')));

    answer = {action: 'accept', content: {approve: true}};
    const granted = await bash('echo note > note; cat note', wider);
    assert.equal(granted.content[0].text, 'note\n');
    assert.equal(granted.structuredContent.sandbox.mode, 'workspace-write');
    assert.ok(existsSync(path.join(workspace, 'note')));
    assert.equal(asked.length, 2);
    assert.match(asked[1].message, /echo note > note/);
    assert.match(asked[1].message, /to keep a note/);

    const again = await bash('echo more >> note');
    assert.equal(again.structuredContent.outcome, 'denied');
    assert.equal(asked.length, 2);
  });

  test(`${name}: a running call is cancelled with all that it started`, async t => {
    const {bash} = await session(t, era);
    const mark = `${1e6 + Math.floor(Math.random() * 9e6)}.${process.pid}`;
    const controller = new AbortController();
    const running = bash(`sleep ${mark} & sleep ${mark}`, {}, {signal: controller.signal});
    running.catch(() => {});
    await eventually(() => processesWith(mark).length >= 2, 'the command runs');
    controller.abort('enough');
    await assert.rejects(running);
    await eventually(() => processesWith(mark).length === 0, 'the command is gone');
    assert.equal((await bash('echo alive')).content[0].text, 'alive\n');
  });

  test(`${name}: progress while a command prints`, async t => {
    const {bash} = await session(t, era);
    const told = [];
    await bash('for i in 1 2 3 4; do echo line $i; sleep 0.4; done', {},
               {onprogress: progress => told.push(progress)});
    assert.ok(told.length >= 2, JSON.stringify(told));
    assert.equal(told[0].message, 'line 1');
    assert.ok(told.at(-1).progress > told[0].progress);
  });

  test(`${name}: a background job is read to its end`, async t => {
    const {client, bash} = await session(t, era);
    await client.listTools();
    const started = await bash('echo one; sleep 0.3; echo two', {run_in_background: true});
    assert.deepEqual(started.structuredContent, {kind: 'background', jobId: 'bash-1'});
    let output = '';
    for (let tries = 0; tries < 100; ++tries) {
      const read = await client.callTool(
          {name: 'job_output', arguments: {jobId: 'bash-1', wait: true, timeoutMs: 5000}});
      output += read.structuredContent.output;
      if (read.structuredContent.status !== 'running') {
        assert.match(read.content[0].text, /\[status: completed, exit code: 0\]$/);
        break;
      }
    }
    assert.equal(output, 'one\ntwo\n');
    const list = await client.callTool({name: 'job_list', arguments: {}});
    assert.match(list.content[0].text, /^bash-1 \[bash\] completed/);
  });
}

// ---- Streamable HTTP --------------------------------------------------------------------------

const token = 'a-token-that-nobody-guesses';

async function httpServer(t, mode = 'read-only') {
  const workspace = mkdtempSync('/var/tmp/stockade-client.');
  const server = spawn(stockade, ['mcp', '--http', '0', '--mode', mode, '--workspace', workspace],
                       {env: {...process.env, HOME: workspace, STOCKADE_MCP_TOKEN: token},
                        stdio: ['ignore', 'ignore', 'pipe']});
  t.after(async () => {
    const ended = new Promise(resolve => server.on('exit', resolve));
    server.kill('SIGTERM');
    assert.equal(await ended, 143);
    rmSync(workspace, {recursive: true, force: true});
  });
  let said = '';
  for await (const chunk of server.stderr) {
    said += chunk;
    const found = said.match(/serving (http:\S+)\n/);
    if (found) return {url: new URL(found[1]), workspace};
  }
  assert.fail(`the server did not start: ${said}`);
}

const headers = {Authorization: `Bearer ${token}`};

for (const [name, era] of Object.entries(eras)) {
  test(`${name} over HTTP: calls, progress, an approval and a cancellation`, async t => {
    const {url, workspace} = await httpServer(t);
    const client = era.make({elicitation: {form: {}}});
    era.onElicit(client, async () => ({action: 'accept', content: {approve: true}}));
    const Transport = era === eras.legacy ? LegacyHttp : ModernHttp;
    await client.connect(new Transport(url, {requestInit: {headers}}));
    t.after(() => client.close());
    const {tools} = await client.listTools();
    assert.equal(tools[0].name, 'bash');
    const bash = (command, more = {}, options = {}) =>
        client.callTool({name: 'bash', arguments: {command, ...more}}, ...era === eras.legacy ?
            [undefined, options] : [options]);
    assert.equal((await bash('echo hello')).content[0].text, 'hello\n');
    const granted = await bash('echo x > f', {sandbox_permissions: 'workspace-write',
                                              justification: 'a note'});
    assert.equal(granted.structuredContent.outcome, 'ok');
    assert.ok(existsSync(path.join(workspace, 'f')));
    const told = [];
    await bash('for i in 1 2 3; do echo line $i; sleep 0.4; done', {},
               {onprogress: progress => told.push(progress)});
    assert.ok(told.length >= 2);

    const mark = `${1e6 + Math.floor(Math.random() * 9e6)}.${process.pid}`;
    const controller = new AbortController();
    const running = bash(`sleep ${mark}`, {}, {signal: controller.signal});
    running.catch(() => {});
    await eventually(() => processesWith(mark).length >= 1, 'the command runs');
    controller.abort('enough');
    await assert.rejects(running);
    await eventually(() => processesWith(mark).length === 0, 'the command is gone');
    assert.equal((await bash('echo alive')).content[0].text, 'alive\n');
  });
}

test('over HTTP: who may not speak to the server', async t => {
  const {url} = await httpServer(t);
  const body = JSON.stringify({jsonrpc: '2.0', id: 1, method: 'initialize', params: {}});
  const post = async (more, at = url, method = 'POST') => {
    const response = await fetch(at, {
      method,
      headers: {'Content-Type': 'application/json',
                Accept: 'application/json, text/event-stream', ...headers, ...more},
      body: method === 'POST' ? body : undefined,
    });
    await response.text();
    return response.status;
  };
  assert.equal(await post({}), 200);
  assert.equal(await post({Authorization: ''}), 401);
  assert.equal(await post({Authorization: `Bearer ${token}x`}), 401);
  assert.equal(await post({Authorization: `Bearer ${token.slice(1)}`}), 401);
  assert.equal(await post({Origin: 'https://evil.example'}), 403);
  assert.equal(await post({Origin: 'http://localhost.evil.example'}), 403);
  assert.equal(await post({Origin: 'null'}), 403);
  assert.equal(await post({Origin: 'http://localhost:3000'}), 200);
  assert.equal(await post({Accept: 'text/plain'}), 406);
  assert.equal(await post({'Content-Type': 'text/plain'}), 415);
  assert.equal(await post({}, new URL('/other', url)), 404);
  assert.equal(await post({}, url, 'GET'), 405);
  assert.equal(await post({'Mcp-Session-Id': 'nobody'}, url, 'DELETE'), 404);
  // A name that resolves to this machine is not this machine's.
  const rebound = await new Promise((resolve, reject) => {
    const request = http.request(url, {method: 'POST', headers: {...headers, Host: 'evil.example'}},
                                 response => resolve(response.statusCode));
    request.on('error', reject);
    request.end(body);
  });
  assert.equal(rebound, 403);
});

test('over HTTP: headers must say what the body says', async t => {
  const {url} = await httpServer(t);
  const post = async more => {
    const response = await fetch(url, {
      method: 'POST',
      headers: {'Content-Type': 'application/json', ...headers,
                Accept: 'application/json, text/event-stream', ...more},
      body: JSON.stringify({
        jsonrpc: '2.0', id: 1, method: 'tools/call',
        params: {name: 'bash', arguments: {command: 'echo ran'},
                 _meta: {'io.modelcontextprotocol/protocolVersion': '2026-07-28',
                         'io.modelcontextprotocol/clientCapabilities': {}}}})});
    return [response.status, await response.json()];
  };
  const right = {'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': 'tools/call',
                 'Mcp-Name': 'bash'};
  assert.equal((await post(right))[1].result.content[0].text, 'ran\n');
  assert.equal((await post({...right, 'Mcp-Name': '=?base64?YmFzaA==?='}))[0], 200);
  for (const wrong of [{'Mcp-Name': 'job_list'}, {'Mcp-Method': 'tools/list'},
                       {'MCP-Protocol-Version': '2025-11-25'}, {'Mcp-Name': '=?base64?%?='}]) {
    const [status, answer] = await post({...right, ...wrong});
    assert.equal(status, 400);
    assert.equal(answer.error.code, -32020);
  }
});

test('over HTTP: a session lasts until its client ends it', async t => {
  const {url} = await httpServer(t);
  const post = (message, more = {}, method = 'POST') => fetch(url, {
    method,
    headers: {'Content-Type': 'application/json', ...headers,
              Accept: 'application/json, text/event-stream', ...more},
    body: method === 'POST' ? JSON.stringify({jsonrpc: '2.0', ...message}) : undefined,
  });
  const list = {id: 2, method: 'tools/list', params: {}};
  const initialized = await post({id: 1, method: 'initialize',
                                  params: {protocolVersion: '2025-11-25', capabilities: {}}});
  assert.equal((await initialized.json()).result.protocolVersion, '2025-11-25');
  const session = {'Mcp-Session-Id': initialized.headers.get('mcp-session-id')};
  const status = async (...request) => {
    const response = await post(...request);
    await response.text();
    return response.status;
  };
  assert.equal(await status({method: 'notifications/initialized'}, session), 202);
  assert.equal(await status(list, session), 200);
  assert.equal(await status(list, {...session, 'MCP-Protocol-Version': '2025-06-18'}), 200);
  assert.equal(await status(list, {...session, 'MCP-Protocol-Version': '1900-01-01'}), 400);
  assert.equal(await status(list), 400);
  assert.equal(await status({}, session, 'DELETE'), 204);
  assert.equal(await status(list, session), 404);
});

// The status line of the answer to `text`, sent as it is.
function answerTo(url, text) {
  return new Promise((resolve, reject) => {
    const socket = net.connect(url.port, url.hostname, () => socket.write(text));
    socket.on('error', reject);
    socket.once('data', data => {
      resolve(data.toString().split('\r\n')[0]);
      socket.destroy();
    });
  });
}

test('over HTTP: what is too large or no HTTP is refused', async t => {
  const {url} = await httpServer(t);
  const start = `POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${token}\r\n`;
  assert.match(await answerTo(url, `${start}Content-Length: 5000000\r\n\r\n`), /^HTTP\/1.1 413 /);
  assert.match(await answerTo(url, `${start}X: ${'x'.repeat(17000)}\r\n\r\n`), /^HTTP\/1.1 431 /);
  assert.match(await answerTo(url, 'hello\r\n\r\n'), /^HTTP\/1.1 400 /);
});

test('over HTTP: a client that sends and never reads is cut off', async t => {
  const {url} = await httpServer(t);
  const body = JSON.stringify({
    jsonrpc: '2.0', id: 1, method: 'tools/list',
    params: {_meta: {'io.modelcontextprotocol/protocolVersion': '2026-07-28',
                     'io.modelcontextprotocol/clientCapabilities': {}}}});
  const request = `POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${token}\r\n` +
      'Content-Type: application/json\r\nAccept: */*\r\nMCP-Protocol-Version: 2026-07-28\r\n' +
      `Mcp-Method: tools/list\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
  const socket = net.connect(url.port, url.hostname);
  let cut = false;
  socket.on('error', () => cut = true);
  const many = request.repeat(100);
  for (let sent = 0; sent < 2000 && !cut; ++sent)
    await new Promise(resolve => socket.write(many, resolve));
  assert.ok(cut);
  assert.match(await answerTo(url, request), /^HTTP\/1.1 200 /);
});

test('legacy: a denial is a log message', async t => {
  const {client, bash} = await session(t, eras.legacy);
  const logged = [];
  client.setNotificationHandler(LoggingMessageNotificationSchema, message => {
    logged.push(message.params);
  });
  await bash('echo x > f');
  assert.equal(logged.length, 1);
  assert.equal(logged[0].level, 'warning');
  assert.equal(logged[0].data.outcome, 'denied');
});

test('a client that speaks both eras chooses the current one', async t => {
  const client = new ModernClient({name: 'test', version: '1'},
                                  {versionNegotiation: {mode: 'auto'}});
  await client.connect(new ModernStdio({command: stockade, args: ['mcp'], cwd: '/var/tmp'}));
  t.after(() => client.close());
  assert.equal(client.getNegotiatedProtocolVersion(), '2026-07-28');
});

test('a client that dies leaves no process', async () => {
  const mark = `${1e6 + Math.floor(Math.random() * 9e6)}.${process.pid}`;
  const script = `
    import {Client} from '@modelcontextprotocol/sdk/client/index.js';
    import {StdioClientTransport} from '@modelcontextprotocol/sdk/client/stdio.js';
    const client = new Client({name: 'dies', version: '1'});
    await client.connect(new StdioClientTransport(
        {command: ${JSON.stringify(stockade)}, args: ['mcp', '--workspace', '/var/tmp']}));
    client.callTool({name: 'bash', arguments: {command: 'sleep ${mark}'}});
    setTimeout(() => process.kill(process.pid, 'SIGKILL'), 1500);`;
  const died = spawnSync(process.execPath, ['--input-type=module', '-e', script],
                         {cwd: path.dirname(new URL(import.meta.url).pathname)});
  assert.equal(died.signal, 'SIGKILL', died.stderr?.toString());
  await eventually(() => processesWith(`sleep ${mark}`).length === 0 &&
                       processesWith(`sleep\0${mark}`).length === 0, 'the command is gone');
});
