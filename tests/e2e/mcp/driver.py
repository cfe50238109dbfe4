# SPDX-License-Identifier: MIT
"""Drives `stockade mcp` over pipes, as a client does, and as no client should."""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import threading
import time

PREFIX = pathlib.Path(os.environ["STOCKADE_PREFIX_FILE"]).read_text().strip()
STOCKADE = PREFIX + "/bin/stockade"
# Generous: the machine may be busy, and a test that passes never waits so long.
PATIENCE = 60.0
USERS = [0, 1000] if os.geteuid() == 0 else [os.geteuid()]


class Workspace:
    """A directory that the user owns, removed with the test."""

    def __init__(self, uid):
        self.uid = uid
        self.path = os.path.realpath(tempfile.mkdtemp(prefix="stockade-mcp.", dir="/var/tmp"))
        os.chmod(self.path, 0o755)
        if os.geteuid() == 0:
            os.chown(self.path, uid, uid)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)

    def file(self, name):
        return os.path.join(self.path, name)


class Server:
    def __init__(self, workspace, arguments=("--mode", "workspace-write"), read=True, **popen):
        environment = dict(os.environ, HOME=workspace.path)
        # What ASan keeps of freed memory is no growth of the server.
        environment["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=1"
        as_user = {"user": workspace.uid, "group": workspace.uid, "extra_groups": []} \
            if os.geteuid() == 0 else {}
        self.process = subprocess.Popen(
            [STOCKADE, "mcp", "--workspace", workspace.path, *arguments],
            stdin=popen.pop("stdin", subprocess.PIPE), stdout=popen.pop("stdout", subprocess.PIPE),
            stderr=subprocess.PIPE, cwd=workspace.path, env=environment, **as_user, **popen)
        self.lines = []
        self.condition = threading.Condition()
        self.ended = False
        self.stderr = b""
        threading.Thread(target=self._read_stderr, daemon=True).start()
        if read:
            self.start_reading()

    def _read_stderr(self):
        self.stderr = self.process.stderr.read()

    def start_reading(self):
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            message = json.loads(line)  # a line that is no JSON fails the test by its absence
            with self.condition:
                self.lines.append(message)
                self.condition.notify_all()
        with self.condition:
            self.ended = True
            self.condition.notify_all()

    # ---- sending

    def raw(self, data):
        self.process.stdin.write(data if isinstance(data, bytes) else data.encode())
        self.process.stdin.flush()

    def send(self, message):
        self.raw(json.dumps({"jsonrpc": "2.0", **message}) + "\n")

    def request(self, id, method, params=None):
        self.send({"id": id, "method": method, "params": params or {}})

    def initialize(self, capabilities=None, version="2025-11-25"):
        self.request("init", "initialize",
                     {"protocolVersion": version, "capabilities": capabilities or {},
                      "clientInfo": {"name": "driver", "version": "1"}})
        result = self.answer("init")["result"]
        self.send({"method": "notifications/initialized"})
        return result

    def call(self, id, command, tool="bash", meta=None, **arguments):
        params = {"name": tool, "arguments": {"command": command, **arguments}}
        if meta:
            params["_meta"] = meta
        self.request(id, "tools/call", params)

    def cancel(self, id):
        self.send({"method": "notifications/cancelled", "params": {"requestId": id}})

    # ---- receiving

    def wait(self, predicate, what, seconds=PATIENCE):
        with self.condition:
            if not self.condition.wait_for(lambda: predicate(self.lines) or self.ended, seconds):
                raise AssertionError(f"no {what} within {seconds} s; got {self.lines[-5:]}")
            found = predicate(self.lines)
            if not found:
                raise AssertionError(f"the server ended without {what}: {self.stderr!r}")
            return found

    def answers(self, id):
        return [m for m in self.lines
                if "method" not in m and m.get("id") == id and type(m.get("id")) is type(id)]

    def answer(self, id, seconds=PATIENCE):
        return self.wait(lambda _: self.answers(id), f"answer to {id!r}", seconds)[0]

    def text(self, id):
        return self.answer(id)["result"]["content"][0]["text"]

    def said(self, method):
        return [m for m in self.lines if m.get("method") == method]

    # ---- ending

    def close(self, seconds=PATIENCE):
        """Closes the client's end; the exit status."""
        self.process.stdin.close()
        return self.process.wait(seconds)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            try:
                self.process.stdin.close()
            except (BrokenPipeError, AttributeError):
                pass
            try:
                self.process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
                raise

    def resident(self):
        """Bytes of memory."""
        for line in pathlib.Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        raise AssertionError("no VmRSS")

    def spills(self):
        """The spill files that the server has open."""
        found = []
        for fd in os.listdir(f"/proc/{self.process.pid}/fd"):
            try:
                target = os.readlink(f"/proc/{self.process.pid}/fd/{fd}")
            except FileNotFoundError:
                continue  # closed meanwhile
            if "/stockade-subprocess-" in target and target.endswith(".log"):
                found.append(target)
        return found

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))


def processes_with(needle):
    """Command lines of living processes that hold `needle`, this one aside."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            line = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
            state = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if needle.encode() in line and int(pid) != os.getpid() and state not in "ZX":
            found.append(line)
    return found


def eventually(predicate, seconds=PATIENCE):
    end = time.monotonic() + seconds
    while not predicate():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True
