# SPDX-License-Identifier: MIT
"""`kill -9` of a host at random moments of a script: nothing of it survives, and its session goes on.

STOCKADE_KILLS sets how many moments (default 12, spread over the backends)."""
import json
import os
import random
import subprocess
import time
import unittest

from driver import STOCKADE, USERS, Workspace, eventually, processes_with

BACKENDS = ("namespace", "bwrap", "landlock")


class Killing(unittest.TestCase):
    def test_a_host_that_is_killed(self):
        kills = int(os.environ.get("STOCKADE_KILLS", "12"))
        seed = random.randrange(2**32)
        print(f"seed {seed}", flush=True)
        chance = random.Random(seed)
        for number in range(kills):
            backend = BACKENDS[number % len(BACKENDS)]
            uid = USERS[number // len(BACKENDS) % len(USERS)]
            with self.subTest(number=number, backend=backend, uid=uid):
                self.kill_one(chance, backend, uid)

    def kill_one(self, chance, backend, uid):
        mark = f"{chance.randrange(10**6, 10**7)}.{chance.randrange(10**6, 10**7)}"
        as_user = {"user": uid, "group": uid, "extra_groups": []} if os.geteuid() == 0 else {}
        with Workspace(uid) as workspace, Workspace(uid) as state:
            environment = dict(os.environ, HOME=state.path, XDG_STATE_HOME=state.path)
            host = [STOCKADE, "run", "--mode", "workspace-write", "--backend", backend,
                    "--workspace", workspace.path, "--session", "s"]
            script = "".join(json.dumps({
                "id": str(line), "tool": "bash", "parallel": line % 4 != 0,
                "arguments": {"command": f"echo {line} >> log; setsid sleep {mark} & "
                                         f"sleep 0.0{line % 7}",
                              **({"run_in_background": True} if line % 10 == 9 else {})}}) + "\n"
                for line in range(60))
            process = subprocess.Popen([*host, "-"], stdin=subprocess.PIPE,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                       cwd=workspace.path, env=environment, **as_user)
            process.stdin.write(script.encode())
            process.stdin.flush()
            time.sleep(chance.uniform(0, 1.5))
            process.kill()
            process.wait()
            process.stdin.close()
            process.stderr.close()

            began = time.monotonic()
            self.assertTrue(eventually(lambda: not processes_with(mark)), processes_with(mark))
            # The promise is two seconds; a machine that is busy with other tests is slower.
            self.assertLess(time.monotonic() - began, 10)

            self.assertLessEqual(set(os.listdir(workspace.path)), {"log"})
            again = subprocess.run([*host, "-"], input=json.dumps(
                {"id": "again", "tool": "bash", "arguments": {"command": "echo again"}}).encode(),
                capture_output=True, cwd=workspace.path, env=environment, **as_user)
            self.assertEqual(again.returncode, 0, again.stderr)
            shown = subprocess.run([STOCKADE, "sessions", "show", "s", "--json"],
                                   capture_output=True, env=environment, **as_user)
            self.assertEqual(shown.returncode, 0, shown.stderr)
            events = [json.loads(line) for line in shown.stdout.splitlines()]
            self.assertEqual([event["seq"] for event in events],
                             list(range(1, len(events) + 1)))
            self.assertEqual(events[-1]["data"]["outcome"], "ok")


if __name__ == "__main__":
    unittest.main(verbosity=2)
