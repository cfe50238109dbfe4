# SPDX-License-Identifier: MIT
"""`hot-reload`, in an installation: the backend is changed by an edit while a script runs."""
import json
import os
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent / "mcp"))
from driver import STOCKADE, USERS, Workspace  # noqa: E402

CALLS = 500
EDIT = 200
# What process 1 is called tells who really made the namespaces.
INSIDE = "read name < /proc/1/comm; echo $name"


class Reload(unittest.TestCase):
    def config(self, workspace, backend):
        return json.dumps({"plugins": [
            {"plugin": "sandbox", "config": {"mode": "workspace-write",
                                             "workspaceRoot": workspace.path}},
            {"plugin": "sandbox-local", "config": {"backends": [backend]}},
            {"plugin": "bash-sandbox", "config": {"cwd": workspace.path}},
            {"plugin": "tool-bash"}, {"plugin": "script"},
            {"plugin": "hot-reload", "config": {"plugins": False}}]})

    def run_script(self, workspace, commands):
        config = workspace.file("stockade.json")
        pathlib.Path(config).write_text(self.config(workspace, "bwrap"))
        os.chmod(config, 0o666)
        script = "".join(json.dumps({"id": i, "tool": "bash", "arguments": {"command": command}})
                         + "\n" for i, command in enumerate(commands))
        as_user = {"user": workspace.uid, "group": workspace.uid, "extra_groups": []} \
            if os.geteuid() == 0 else {}
        ran = subprocess.run([STOCKADE, "run", "--config", config, "-"], input=script, text=True,
                             capture_output=True, cwd=workspace.path, timeout=280,
                             env=dict(os.environ, HOME=workspace.path), **as_user)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return [json.loads(line) for line in ran.stdout.splitlines()], ran.stderr

    def test_a_backend_is_replaced_in_the_middle_of_a_script(self):
        with Workspace(USERS[-1]) as workspace:
            edited = workspace.file("edited.json")
            pathlib.Path(edited).write_text(self.config(workspace, "namespace"))
            commands = [INSIDE] * CALLS
            commands[EDIT] = f"cat {edited} > stockade.json; {INSIDE}"
            commands[CALLS - 5] = f"sleep 5; {INSIDE}"  # however fast the others were
            results, _ = self.run_script(workspace, commands)
            self.assertEqual([each["id"] for each in results], list(range(CALLS)))
            backends = [each["structuredContent"]["sandbox"]["backend"] for each in results]
            change = backends.index("namespace")
            self.assertGreater(change, EDIT)
            self.assertEqual(backends, ["bwrap"] * change + ["namespace"] * (CALLS - change))
            makers = {backend: {each["content"][0]["text"] for each, name in zip(results, backends)
                                if name == backend} for backend in set(backends)}
            self.assertEqual(makers["bwrap"], {"bwrap\n"})
            self.assertEqual(len(makers["namespace"]), 1)
            self.assertNotEqual(makers["namespace"], makers["bwrap"])

    def test_a_bad_file_keeps_what_runs(self):
        with Workspace(USERS[-1]) as workspace:
            results, log = self.run_script(
                workspace, [INSIDE, "echo '{' > stockade.json; sleep 5", INSIDE])
            self.assertEqual([each["structuredContent"]["sandbox"]["backend"] for each in results],
                             ["bwrap"] * 3)
            self.assertIn("kept the running config", log)
            self.assertIn("stockade.json", log)


if __name__ == "__main__":
    unittest.main(verbosity=2)
