# SPDX-License-Identifier: MIT
"""`stockade mcp` end to end: what clients do to servers, by public bug reports of other servers."""
import json
import os
import random
import signal
import subprocess
import time
import unittest

from driver import (PATIENCE, USERS, Server, Workspace, eventually, processes_with)

MIB = 1 << 20


class Case(unittest.TestCase):
    def setUp(self):
        self.workspace = Workspace(USERS[-1])
        self.addCleanup(self.workspace.__exit__)

    def serve(self, **options):
        server = Server(self.workspace, **options)
        self.addCleanup(server.__exit__)
        return server

    def opened(self, capabilities=None, **options):
        server = self.serve(**options)
        server.initialize(capabilities)
        return server

    def marked(self):
        """A number that no other test sleeps for, to find processes by."""
        return f"{random.randrange(10**6, 10**7)}.{random.randrange(10**6, 10**7)}"


class Calls(Case):
    def test_a_call_under_every_user(self):
        for uid in USERS:
            with self.subTest(uid=uid), Workspace(uid) as workspace, Server(workspace) as server:
                server.initialize()
                server.call(1, "echo hello > f; cat f; id -u")
                self.assertEqual(server.text(1), f"hello\n{uid}\n")
                self.assertEqual(server.answer(1)["result"]["structuredContent"]["outcome"], "ok")
                server.call(2, "echo x > /etc/stockade-test")
                result = server.answer(2)["result"]
                self.assertEqual(result["structuredContent"]["outcome"], "denied")
                self.assertIn("[sandbox: file access denied under workspace-write mode]",
                              result["content"][0]["text"])
                self.assertFalse(result["isError"])
                self.assertEqual(server.close(), 0)

    def test_the_tools_and_their_schemas(self):
        server = self.opened()
        server.request(1, "tools/list")
        tools = {tool["name"]: tool for tool in server.answer(1)["result"]["tools"]}
        self.assertEqual(list(tools), ["bash", "job_output", "job_list", "job_kill"])
        for tool in tools.values():
            self.assertEqual(tool["inputSchema"]["type"], "object")
            self.assertEqual(tool["outputSchema"]["type"], "object")
            self.assertIn("readOnlyHint", tool["annotations"])
        self.assertEqual(tools["bash"]["inputSchema"]["required"], ["command"])

    def test_arguments_that_are_wrong(self):
        server = self.opened()
        server.request(1, "tools/call", {"name": "bash", "arguments": {"comand": "x"}})
        result = server.answer(1)["result"]
        self.assertTrue(result["isError"])
        self.assertIn('did you mean "command"', result["content"][0]["text"])
        server.request(2, "tools/call", {"name": "bsh"})
        self.assertEqual(server.answer(2)["error"]["code"], -32602)

    def test_bytes_that_are_no_text(self):
        server = self.opened()
        server.call(1, r"printf 'a\377\0b\033[31m\r\n'")
        self.assertEqual(server.text(1), "a\ufffd\0b\033[31m\r\n")
        self.assertEqual(server.answer(1)["result"]["structuredContent"]["stdout"]["bytes"], 11)
        server.call(2, "head -c 100000 /dev/urandom")
        self.assertEqual(server.answer(2)["result"]["structuredContent"]["stdout"]["bytes"], 100000)
        server.call(3, r"""f=$'\xff\n'; cat "$f"; printf '\355\240\200' """)
        server.answer(3)
        server.raw('{"jsonrpc":"2.0","id":4,"method":"tools/call",'
                   '"params":{"name":"bash","arguments":{"command":"echo \\ud800"}}}\n')
        server.call(5, "echo still")
        self.assertEqual(server.text(5), "still\n")
        self.assertIn(-32700, [m["error"]["code"] for m in server.lines if "error" in m])

    def test_a_job_outlives_its_call_and_not_the_server(self):
        server = self.opened()
        mark = self.marked()
        server.call(1, f"echo begun; sleep {mark}", run_in_background=True)
        self.assertEqual(server.text(1), "started background job bash-1")
        for number in range(100):
            server.request(f"o{number}", "tools/call",
                           {"name": "job_output", "arguments": {"jobId": "bash-1"}})
            if "begun" in server.text(f"o{number}"):
                break
            time.sleep(0.05)
        else:
            self.fail("no output of the job")
        self.assertTrue(server.text(f"o{number}").endswith("[status: running]"))
        self.assertTrue(processes_with(mark))
        self.assertEqual(server.close(), 0)
        self.assertTrue(eventually(lambda: not processes_with(mark)))

    def test_a_job_that_is_killed(self):
        server = self.opened()
        mark = self.marked()
        server.call(1, f"sleep {mark}", run_in_background=True)
        server.answer(1)
        server.request(2, "tools/call", {"name": "job_kill", "arguments": {"jobId": "bash-1"}})
        self.assertEqual(server.text(2), "requested cancellation of job bash-1")
        server.request(3, "tools/call", {"name": "job_output",
                                         "arguments": {"jobId": "bash-1", "wait": True}})
        self.assertIn("[status: killed", server.text(3))
        self.assertFalse(processes_with(mark))

    def test_progress_has_whole_characters(self):
        server = self.opened()
        server.call(1, r"printf '\360\237' >&2; sleep 0.5; printf '\360\237'; sleep 0.5;"
                       r"printf '\230\200\n'; printf '\230\200\n' >&2; sleep 0.5; echo end",
                    meta={"progressToken": "p"})
        self.assertEqual(server.answer(1)["result"]["structuredContent"]["stdout"]["text"],
                         "\U0001F600\nend\n")
        told = [m["params"].get("message", "") for m in server.said("notifications/progress")]
        self.assertIn("\U0001F600", told)
        self.assertFalse([text for text in told if "\uFFFD" in text])

    def test_progress_while_a_command_prints(self):
        server = self.opened()
        server.call(1, "for i in 1 2 3 4 5 6; do echo line $i; sleep 0.3; done",
                    meta={"progressToken": "p"})
        server.answer(1)
        told = server.said("notifications/progress")
        self.assertGreaterEqual(len(told), 2)
        counts = [m["params"]["progress"] for m in told]
        self.assertEqual(counts, sorted(set(counts)))
        self.assertTrue(all(m["params"]["progressToken"] == "p" for m in told))
        self.assertEqual(told[0]["params"]["message"], "line 1")
        self.assertLess(server.lines.index(told[-1]), server.lines.index(server.answer(1)))


class Approvals(Case):
    WIDER = {"sandbox_permissions": "workspace-write", "justification": "the build writes here"}

    def ask(self, answer):
        server = self.opened({"elicitation": {}}, arguments=("--mode", "read-only"))
        server.call(1, "echo x > f")
        self.assertIn("[sandbox: escalation available", server.text(1))
        server.call(2, "echo x > f", **self.WIDER)
        asked = server.wait(lambda _: server.said("elicitation/create"), "question")[0]
        self.assertIn("echo x > f", asked["params"]["message"])
        self.assertIn("the build writes here", asked["params"]["message"])
        if answer is not None:
            server.send({"id": asked["id"], **answer})
        return server

    def test_an_approved_call_is_wider_once(self):
        server = self.ask({"result": {"action": "accept", "content": {"approve": True}}})
        self.assertEqual(server.answer(2)["result"]["structuredContent"]["outcome"], "ok")
        self.assertTrue(os.path.exists(self.workspace.file("f")))
        server.call(3, "echo x > g")
        self.assertEqual(server.answer(3)["result"]["structuredContent"]["outcome"], "denied")
        self.assertFalse(os.path.exists(self.workspace.file("g")))

    def test_a_call_that_is_not_approved_does_not_run(self):
        for answer, text in (
                ({"result": {"action": "decline"}}, "the user rejected"),
                ({"result": {"action": "cancel"}}, "was cancelled"),
                ({"result": {"action": "accept"}}, "the user rejected"),
                ({"error": {"code": -32603, "message": "no"}}, "no approval channel")):
            with self.subTest(text):
                server = self.ask(answer)
                self.assertTrue(server.answer(2)["result"]["isError"])
                self.assertIn(text, server.text(2))
                self.assertFalse(os.path.exists(self.workspace.file("f")))

    def test_a_client_that_cannot_be_asked(self):
        server = self.opened(arguments=("--mode", "read-only"))
        server.call(1, "echo x > f")
        self.assertNotIn("escalation available", server.text(1))
        server.call(2, "echo x > f", **self.WIDER)
        self.assertIn("no approval channel is available", server.text(2))
        self.assertFalse(os.path.exists(self.workspace.file("f")))

    def test_a_cancelled_call_takes_its_question_back(self):
        server = self.ask(None)
        server.cancel(2)
        server.wait(lambda _: server.said("notifications/cancelled"), "cancelled question")
        server.call(3, "true")
        server.answer(3)
        self.assertEqual(server.answers(2), [])
        self.assertFalse(os.path.exists(self.workspace.file("f")))

    def test_the_current_revision_asks_with_an_interim_result(self):
        server = self.serve(arguments=("--mode", "read-only"))
        meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}
        params = {"name": "bash", "_meta": meta,
                  "arguments": {"command": "echo x > f", **self.WIDER}}
        server.request(1, "tools/call", params)
        interim = server.answer(1)["result"]
        self.assertEqual(interim["resultType"], "input_required")
        answer = {"approval": {"action": "accept", "content": {"approve": True}}}
        server.request(2, "tools/call", {**params, "inputResponses": answer,
                                         "requestState": interim["requestState"]})
        self.assertEqual(server.answer(2)["result"]["structuredContent"]["outcome"], "ok")
        self.assertTrue(os.path.exists(self.workspace.file("f")))


class Cancelling(Case):
    def test_a_cancelled_call_leaves_no_process_and_no_answer(self):
        server = self.opened()
        mark = self.marked()
        server.call(7, f"trap '' TERM; sleep {mark} & sleep {mark}; touch LATE",
                    meta={"progressToken": 1})
        self.assertTrue(eventually(lambda: len(processes_with(mark)) >= 2))
        for other in ("7", 8, "init", None, [7]):
            server.cancel(other)
        server.cancel(7)
        server.cancel(7)
        server.request(8, "ping")
        server.answer(8)
        server.call(9, "echo alive")
        self.assertEqual(server.text(9), "alive\n")
        self.assertTrue(eventually(lambda: not processes_with(mark)))
        server.cancel(9)
        server.request(10, "ping")
        server.answer(10)
        self.assertEqual(server.answers(7), [])
        self.assertFalse(os.path.exists(self.workspace.file("LATE")))
        self.assertEqual(server.close(), 0)
        self.assertEqual(server.answers(7), [])

    def test_races_of_a_cancellation_with_the_end_of_its_call(self):
        server = self.opened()
        for number in range(200):
            server.call(number, f"sleep 0.0{number % 5}")
            time.sleep(0.001 * (number % 30))
            server.cancel(number)
            server.request(f"p{number}", "ping")
            server.answer(f"p{number}")
        server.call("last", "echo last")
        self.assertEqual(server.text("last"), "last\n")
        self.assertEqual(server.close(), 0)
        for number in range(200):
            self.assertLessEqual(len(server.answers(number)), 1)


class Slow(Case):
    def test_a_slow_call_holds_nothing_up(self):
        server = self.opened()
        server.call(1, "sleep 10; echo slow")
        server.request(2, "ping")
        server.request(3, "tools/list")
        server.call(4, "echo fast")
        server.request(1, "ping")  # an id that is in flight
        for id in (2, 3, 4):
            server.answer(id)
        self.assertEqual(server.text(4), "fast\n")
        self.assertFalse([m for m in server.answers(1) if "result" in m])  # it still runs
        twice = server.wait(lambda _: server.answers(1), "error")
        self.assertEqual(twice[0]["error"]["code"], -32600)
        both = server.wait(lambda _: len(server.answers(1)) == 2 and server.answers(1), "result")
        self.assertEqual(both[1]["result"]["content"][0]["text"], "slow\n")

    def test_many_calls_at_once(self):
        server = self.opened()
        for number in range(50):
            server.call(number, f"echo {number}; sleep 0.2")
        answered = 0
        for number in range(50):
            result = server.answer(number)["result"]
            if result["isError"]:  # more than the documented limit
                self.assertEqual(result["structuredContent"]["error"]["code"], "BUSY")
            else:
                self.assertEqual(result["content"][0]["text"], f"{number}\n")
                answered += 1
        self.assertGreaterEqual(answered, 32)

    def test_a_client_that_stops_reading(self):
        server = self.serve(read=False)
        server.request("init", "initialize", {"protocolVersion": "2025-11-25"})
        time.sleep(1)
        before = server.resident()
        for number in range(20):
            server.call(number, "head -c 1048576 /dev/zero | tr '\\0' x",
                        meta={"progressToken": number})
        mark = self.marked()
        server.call("timed", f"sleep {mark}", timeoutMs=500)
        # As many as the pipe takes without blocking this side.
        os.set_blocking(server.process.stdin.fileno(), False)
        ping = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).encode() + b"\n"
        sent = 0
        for _ in range(300):
            try:
                sent += os.write(server.process.stdin.fileno(), ping * 100)
            except BlockingIOError:
                time.sleep(0.01)
        time.sleep(1)
        grown = server.resident() - before
        self.assertLess(grown, 64 * MIB, f"after {sent} bytes of requests")
        self.assertTrue(eventually(lambda: not processes_with(mark)))  # nobody has read yet
        os.set_blocking(server.process.stdin.fileno(), True)
        server.start_reading()
        self.assertIn("[timed out after 500ms]", server.text("timed"))
        for number in range(20):
            server.answer(number)


class Framing(Case):
    INITIALIZE = json.dumps({"jsonrpc": "2.0", "id": "init", "method": "initialize",
                             "params": {"protocolVersion": "2025-06-18",
                                        "clientInfo": {"name": "\u00e9", "version": "1"}}},
                            ensure_ascii=False).encode()

    def test_one_byte_at_a_time(self):
        server = self.serve()
        for byte in b"\xef\xbb\xbf" + self.INITIALIZE + b"\r\n":
            server.raw(bytes([byte]))
        self.assertEqual(server.answer("init")["result"]["protocolVersion"], "2025-06-18")

    def test_several_messages_and_a_half(self):
        server = self.serve()
        ping = '{"jsonrpc":"2.0","id":%d,"method":"ping"}\n'
        server.raw(self.INITIALIZE + b"\n\n \r\n" + (ping % 1 + ping % 2 + ping % 3).encode()[:-9])
        server.answer(2)
        self.assertEqual(server.answers(3), [])
        server.raw((ping % 3).encode()[-9:])
        server.answer(3)

    def test_a_last_message_without_a_newline(self):
        server = self.serve()
        server.raw('{"jsonrpc":"2.0","id":1,"method":"ping"}')
        self.assertEqual(server.close(), 0)
        server.answer(1)

    def test_a_flood_without_a_newline(self):
        server = self.opened()
        before = server.resident()
        for _ in range(64):
            server.raw(b"x" * MIB)
        server.raw("\n")
        server.request(2, "ping")
        server.answer(2)
        errors = [m for m in server.lines if "error" in m]
        self.assertEqual(len(errors), 1)
        self.assertEqual(errors[0]["error"]["code"], -32700)
        self.assertLess(server.resident() - before, 32 * MIB)

    def test_what_is_no_message(self):
        server = self.opened()
        for line, code in (("nonsense", -32700), ("[]", -32600), ("null", -32600),
                           ('{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600),
                           ('{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600)):
            before = len(server.lines)
            server.raw(line + "\n")
            server.wait(lambda lines: len(lines) > before, "error")
            self.assertEqual(server.lines[before]["error"]["code"], code)
            self.assertIsNone(server.lines[before]["id"])
        before = len(server.lines)
        server.raw('{"method":"x"}\n{"jsonrpc":"2.0","method":"x"}\n')
        for id in ("a", 0):
            server.request(id, "ping")
            server.answer(id)
        self.assertEqual(len(server.lines), before + 2)

    def test_versions(self):
        for asked, given in (("2025-11-25", "2025-11-25"), ("2025-03-26", "2025-03-26"),
                             ("2099-01-01", "2025-11-25"), (7, "2025-11-25")):
            with Workspace(USERS[-1]) as workspace, Server(workspace) as server:
                self.assertEqual(server.initialize(version=asked)["protocolVersion"], given)

    def test_a_call_before_the_beginning(self):
        server = self.serve()
        server.call(1, "touch ran")
        self.assertEqual(server.answer(1)["error"]["code"], -32602)
        self.assertFalse(os.path.exists(self.workspace.file("ran")))


class Vanishing(Case):
    def test_no_client_at_all(self):
        server = self.serve(stdin=subprocess.DEVNULL)
        self.assertEqual(server.process.wait(PATIENCE), 0)

    def test_the_end_of_input_ends_calls_and_jobs(self):
        server = self.opened()
        mark = self.marked()
        server.call(1, f"seq 1 100000; sleep {mark}")
        server.call(2, f"seq 1 100000; sleep {mark}", run_in_background=True)
        self.assertTrue(eventually(lambda: len(processes_with(mark)) >= 2))
        self.assertTrue(eventually(lambda: len(server.spills()) == 2))
        spills = server.spills()
        self.assertEqual(server.close(), 0)
        self.assertTrue(eventually(lambda: not processes_with(mark)))
        self.assertFalse([path for path in spills if os.path.exists(os.path.dirname(path))])
        self.assertEqual(server.answers(1), [])

    def test_a_reader_that_goes_away(self):
        server = self.serve(read=False)
        mark = self.marked()
        server.request("init", "initialize", {"protocolVersion": "2025-11-25"})
        server.process.stdout.read(10)
        server.call(1, f"sleep {mark}")
        self.assertTrue(eventually(lambda: processes_with(mark)))
        server.process.stdout.close()
        server.request(2, "ping")
        self.assertEqual(server.process.wait(PATIENCE), 0, server.stderr)
        self.assertTrue(eventually(lambda: not processes_with(mark)))

    def test_signals(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            with self.subTest(number):
                server = self.opened()
                mark = self.marked()
                server.call(1, f"sleep {mark}")
                self.assertTrue(eventually(lambda: processes_with(mark)))
                server.process.send_signal(number)
                self.assertEqual(server.process.wait(PATIENCE), 128 + number)
                self.assertTrue(eventually(lambda: not processes_with(mark)))

    def test_a_server_that_is_killed_outright(self):
        server = self.opened(arguments=("--mode", "workspace-write", "--backend", "bwrap"))
        mark = self.marked()
        server.call(1, f"setsid sleep {mark} & sleep {mark}")
        self.assertTrue(eventually(lambda: len(processes_with(mark)) >= 2))
        server.process.kill()
        server.process.wait()
        self.assertTrue(eventually(lambda: not processes_with(mark)))

    def test_a_server_that_waits_uses_no_time(self):
        server = self.opened()
        server.call(1, "sleep 2")

        def used():
            with open(f"/proc/{server.process.pid}/stat") as stat:
                fields = stat.read().rpartition(")")[2].split()
            return int(fields[11]) + int(fields[12])

        before = used()
        server.answer(1)
        self.assertLess(used() - before, 0.5 * os.sysconf("SC_CLK_TCK"))

    def test_a_pipe_inside_a_command_breaks_as_usual(self):
        server = self.opened()
        server.call(1, "yes | head -1; echo ${PIPESTATUS[0]}")
        self.assertEqual(server.text(1), "y\n141\n")


class Growing(Case):
    def test_calls_leave_nothing_behind(self):
        server = self.opened()
        rounds = int(os.environ.get("STOCKADE_MCP_CALLS", "600"))

        def run(first, last):
            for start in range(first, last, 10):
                for number in range(start, start + 10):
                    server.call(number, "echo x")
                for number in range(start, start + 10):
                    server.answer(number)
                with server.condition:
                    server.lines.clear()

        run(0, rounds // 3)
        memory, descriptors = server.resident(), server.descriptors()
        run(rounds // 3, rounds)
        # The runner of the last call may still be on its way out.
        self.assertTrue(eventually(lambda: server.descriptors() <= descriptors + 2))
        grown = server.resident() - memory
        print(f"{rounds} calls: resident {memory // 1024} KiB after a third, {grown // 1024:+} KiB"
              f" at the end; descriptors {descriptors}, then {server.descriptors()}")
        self.assertLess(grown, 16 * MIB)


if __name__ == "__main__":
    unittest.main(verbosity=2)
