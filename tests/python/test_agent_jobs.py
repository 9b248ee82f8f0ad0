"""Twelve jobs of an agent, each done in a sensible way with the tools of the default profile, and with those of
profile `command`. Counts the cost for the agent: calls, and characters of the responses."""

import contextlib
import datetime
import json
import os
import re
import threading
from pathlib import Path

import pytest

from harness.services import free_port

pytestmark = pytest.mark.anyio

CALLS = 36
CHARS = 24_000
BENCH = Path(__file__).resolve().parents[2] / "docs" / "bench"

FILES = {
    "build.sh": """#!/bin/sh
i=0
while [ $i -lt 300 ]; do i=$((i+1)); echo "cc -O2 -Wall -Iinclude -c src/module_$i.c -o out/module_$i.o"; done
mkdir -p out && echo built > out/app && echo "linked out/app"
""",
    "long.sh": """#!/bin/sh
i=0
while [ $i -lt 40 ]; do i=$((i+1)); echo "[$i/40] compiling module_$i"; sleep 0.1; done
echo built > long-app
""",
    "calc.py": "def add(a, b):\n    return a - b\n",
    "test_calc.py": """import unittest
from calc import add

class Calc(unittest.TestCase):
    def test_add(self):
        self.assertEqual(add(2, 3), 5)

for n in range(60):
    setattr(Calc, f"test_zero_{n}", lambda self, n=n: self.assertEqual(add(n, 0), n))

if __name__ == "__main__":
    unittest.main()
""",
    "install.sh": """#!/bin/sh
printf 'Install to [/opt/tool]: '; read -r where
printf 'Accept the license? [y/N] '; read -r yes
[ "$yes" = y ] || exit 1
echo "$where" > installed && echo "Installed to $where."
""",
    "noisy.py": """for n in range(1_000_000):
    print(f"line {n}: copied" if n != 618_033 else f"ERROR: line {n}: checksum of block 7 differs")
""",
    "app.log": "".join(f"warming cache entry {n}\n" for n in range(200)),
    "migrate.sh": """#!/bin/sh
echo started; until [ -e go ]; do sleep 0.1; done
echo "checkpoint 7 reached"; : > passed; until [ -e finish ]; do sleep 0.1; done; echo migrated
""",
}


class Counted:
    """An agent's calls, and the characters of the answers."""

    def __init__(self, agent):
        self.agent = agent
        self.calls = 0
        self.chars = 0
        self.wait_output = ""

    async def __call__(self, tool, **arguments):
        reply = await self.agent.call(tool, **arguments)
        self.calls += 1
        self.chars += len(reply.text)
        self.wait_output += reply.text + "\n"
        if os.environ.get("OSTLER_TELL_JOBS"):
            print(f"--- {tool} {json.dumps(arguments)}\n{reply.text}")
        assert not reply.is_error, reply
        return reply


@contextlib.contextmanager
def printing_later(work):
    """Another program logs a line while a call waits for it."""
    def log():
        with open(work / "app.log", "a") as file:
            file.write("listening on 0.0.0.0:7000\n")

    timer = threading.Timer(1, log)
    timer.start()
    yield
    timer.join()


def identified(reply):
    return re.match(r"\[(\w{8}) ", reply.text)[1]


class Core:
    """The jobs with `exec`, `process`, `process_control`, `service`."""

    tools = None

    @staticmethod
    async def build(call, work):
        done = await call("exec", command="sh build.sh")
        assert " exit 0," in done.text and "linked out/app" in done.text
        assert (work / "out" / "app").read_text() == "built\n"

    @staticmethod
    async def failing_test(call, work):
        failed = await call("exec", command="python3 -B test_calc.py")
        assert " exit 1," in failed.text and "AssertionError: -1 != 5" in failed.text
        fixed = await call("exec", command="sed -i 's/a - b/a + b/' calc.py && python3 -B test_calc.py 2>&1 | tail -3")
        assert "OK" in fixed.text and "a + b" in (work / "calc.py").read_text()

    @staticmethod
    async def dev_server(call, work):
        port = free_port()
        started = await call("exec", command=f"python3 -m http.server {port}")
        url = re.search(rf"http://\S*:{port}", started.text)[0]
        seen = await call("exec", command=f"curl -s {url}/calc.py")
        assert "def add" in seen.text
        name = re.search(r'name "([^"]+)"', started.text)[1]
        stopped = await call("service", action="stop", name=name)
        assert stopped.structured["released"] == [port], stopped

    @staticmethod
    async def installer(call, work):
        question = await call("exec", command="sh install.sh", input="open", wait_ms=30_000)
        assert "waiting for input" in question.text and "Install to [/opt/tool]" in question.text
        pid = identified(question)
        question = await call("process_control", action="write", ids=pid, text="/srv/tool", wait_ms=30_000)
        assert "Accept the license?" in question.text
        done = await call("process_control", action="write", ids=pid, text="y", wait_ms=30_000)
        assert " exit 0," in done.text and (work / "installed").read_text() == "/srv/tool\n"

    @staticmethod
    async def repl(call, work):
        question = await call("exec", command="python3 -q", input="tty", until="prompt", wait_ms=30_000)
        assert ">>>" in question.text
        pid = identified(question)
        costs = await call("process_control", action="write", ids=pid, text="import calc; 6 * 7", wait_ms=30_000)
        assert re.search("^42$", costs.text, re.M)
        ended = await call("process_control", action="write", ids=pid, keys=["ctrl-d"], wait_ms=30_000)
        assert "exited 0" in ended.text

    @staticmethod
    async def tail(call, work):
        with printing_later(work):
            found = await call("exec", command="tail -n 5 -F app.log", pattern="listening on", wait_ms=40_000)
        assert "listening on 0.0.0.0:7000" in found.text and " running " in found.text
        await call("process_control", action="stop", ids=identified(found))

    @staticmethod
    async def woken(call, work):
        start = await call("exec", command="sh migrate.sh", notify="checkpoint", wait_ms=0)
        await call("exec", command="touch go; until [ -e passed ]; do sleep 0.1; done; touch finish")
        done = await call("process", action="wait", ids=identified(start), wait_ms=40_000)
        assert " exit 0," in done.text and "migrated" in done.text
        assert re.search(r"news: .*checkpoint 7 reached", call.wait_output)

    @staticmethod
    async def runaway(call, work):
        start = await call("exec", command="yes spam", wait_ms=500)
        assert "spam" in start.text
        stopped = await call("process_control", action="stop", ids=identified(start))
        assert stopped.structured["results"][0]["status"] != "running"

    @staticmethod
    async def million_lines(call, work):
        done = await call("exec", command="python3 noisy.py", wait_ms=45_000)
        assert " exit 0," in done.text and "checksum of block 7" in done.text, done

    @staticmethod
    async def binary(call, work):
        done = await call("exec", command="cat blob")
        assert "binary" in done.text and len(done.text) < 1_000

    @staticmethod
    async def ten_at_once(call, work):
        ids = []
        for n in range(10):
            start = await call("exec", command=f"until [ -e all ]; do sleep 0.1; done; echo part {n} > part-{n}", wait_ms=0)
            ids.append(identified(start))
        (work / "all").touch()
        done = await call("process", action="wait", ids=ids, all=True, wait_ms=45_000)
        assert done.text.count(" exit 0,") == 10
        assert all((work / f"part-{n}").exists() for n in range(10))

    @staticmethod
    async def long_build(call, work):
        start = await call("exec", command="sh long.sh", wait_ms=1_000)
        more = {} if " exit " in start.text else {"cursor": re.search(r"cursor (\S+)\]", start.text)[1]}
        done = await call("process", action="wait", ids=identified(start), wait_ms=45_000, **more)
        assert " exit 0," in done.text and (work / "long-app").exists()


class Document:
    """The same with the tools of profile `command`, which cannot write input."""

    tools = "command"

    def __init__(self, work):
        self.work = work

    async def run(self, call, script, **options):
        return await call(
            "command_execute", command="sh", args=["-c", script], directory=str(self.work), **{"timeout": 45, **options})

    async def begin(self, call, script):
        start = await call("command_bg_start", command="sh", args=["-c", script],
                           directory=str(self.work), description="a job")
        return start.id

    async def logs(self, call, pid, **options):
        return await call("command_ps_logs", pid=pid, **options)

    async def build(self, call, work):
        assert "linked out/app" in (await self.run(call, "sh build.sh")).text

    async def failing_test(self, call, work):
        assert "AssertionError: -1 != 5" in (await self.run(call, "python3 -B test_calc.py")).text
        assert "OK" in (await self.run(call, "sed -i 's/a - b/a + b/' calc.py && python3 -B test_calc.py 2>&1 | tail -3")).text

    async def dev_server(self, call, work):
        port = free_port()
        pid = await self.begin(call, f"exec python3 -m http.server {port}")
        await self.logs(call, pid)
        assert "def add" in (await self.run(call, f"curl -s http://127.0.0.1:{port}/calc.py")).text
        await call("command_ps_stop", pid=pid)

    async def installer(self, call, work):
        """It is run once to see its questions, and then with all answers given beforehand."""
        await call("command_execute", command="sh", args=["-c", "sh install.sh || true"], directory=str(work))
        done = await self.run(call, "sh install.sh", stdin="/srv/tool\ny\n")
        assert "Installed to /srv/tool." in done.text

    async def repl(self, call, work):
        """No conversation: the input is given at once."""
        assert "42" in (await self.run(call, "python3 -q", stdin="import calc; print(6 * 7)\n")).text

    async def tail(self, call, work):
        pid = await self.begin(call, "exec tail -n 5 -F app.log")
        with printing_later(work):
            for _ in range(20):
                if "listening on" in (await self.logs(call, pid, grep="listening", follow_seconds=5)).text:
                    break
            else:
                raise AssertionError("never listening")
        await call("command_ps_stop", pid=pid)

    async def woken(self, call, work):
        """No notification: it polls."""
        pid = await self.begin(call, "sh migrate.sh")
        await self.run(call, "touch go; until [ -e passed ]; do sleep 0.1; done")
        assert "checkpoint 7" in (await self.logs(call, pid, grep="checkpoint")).text
        (work / "finish").touch()
        assert "migrated" in (await self.logs(call, pid, follow_seconds=40)).text

    async def runaway(self, call, work):
        pid = await self.begin(call, "exec yes spam")
        await self.logs(call, pid)
        await call("command_ps_stop", pid=pid)

    async def million_lines(self, call, work):
        assert "checksum of block 7" in (await self.run(call, "python3 noisy.py")).text

    async def binary(self, call, work):
        await self.run(call, "cat blob")

    async def ten_at_once(self, call, work):
        pids = [await self.begin(call, f"until [ -e all ]; do sleep 0.1; done; echo part {n} > part-{n}") for n in range(10)]
        (work / "all").touch()
        for pid in pids:
            await self.logs(call, pid, follow_seconds=40)
        assert all((work / f"part-{n}").exists() for n in range(10))

    async def long_build(self, call, work):
        pid = await self.begin(call, "sh long.sh")
        await self.logs(call, pid, follow_seconds=40)
        assert (work / "long-app").exists()


JOBS = {
    "build": "build of 300 files",
    "failing_test": "failing test, mended",
    "dev_server": "development server, asked, stopped",
    "installer": "installer that asks twice",
    "repl": "interpreter, asked once",
    "tail": "wait for a line",
    "woken": "woken by a line",
    "runaway": "runaway output, stopped",
    "million_lines": "a million lines, one error",
    "binary": "binary output",
    "ten_at_once": "ten at once",
    "long_build": "long build",
}


async def worked(installation, profile):
    """Calls and characters of every job, and the list of tools as a client gets it."""
    for name, text in FILES.items():
        (installation.work / name).write_text(text)
    (installation.work / "blob").write_bytes(bytes(n * 7 % 256 for n in range(100_000)))
    installation.give(installation.work)
    installation.tools = profile.tools
    costs = {}
    async with installation.agent() as agent:
        listed = (await agent.client.list_tools()).model_dump(mode="json", exclude_none=True, by_alias=True)
        tools = len(json.dumps({"tools": listed["tools"]}, separators=(",", ":"), ensure_ascii=False))
        for job in JOBS:
            call = Counted(agent)
            await getattr(profile, job)(call, installation.work)
            costs[job] = (call.calls, call.chars)
    return tools, costs


def total(costs):
    return sum(calls for calls, _ in costs.values()), sum(chars for _, chars in costs.values())


async def test_twelve_jobs_cost_few_calls_and_little_to_read(make_installation):
    tools, costs = await worked(make_installation(), Core)
    calls, chars = total(costs)
    table = sorted(BENCH.glob("agent-jobs-*.md"))
    if os.environ.get("OSTLER_WRITE_JOBS"):
        installation = make_installation()
        table = [written((tools, costs), await worked(installation, Document(installation.work)))]
    assert calls <= CALLS, costs
    assert chars + tools <= CHARS, (tools, costs)
    recorded = table[-1].read_text()
    for job, (calls, _) in costs.items():
        assert f"| {JOBS[job]} | {calls} |" in recorded, f"{job}: {calls} calls; docs/bench has another number"


def written(core, document):
    """The table of the day."""
    lines = [
        f"# Twelve jobs of an agent, {datetime.date.today()}", "",
        "Calls, and characters of the answers, as `tests/python/test_agent_jobs.py` counts them: with the default profile",
        "(`core`), and with the tools of profile `command` for the same jobs. That profile cannot write input and sends no",
        "notifications: its installer is run twice with all answers given beforehand, its interpreter is no conversation,",
        "its checkpoint is polled.", "",
        "| job | core: calls | characters | command: calls | characters |", "|---|---|---|---|---|",
    ]
    rows = [(JOBS[job], core[1][job], document[1][job]) for job in JOBS]
    rows.append(("tools/list", ("", core[0]), ("", document[0])))
    of_core, of_document = total(core[1]), total(document[1])
    rows.append(("**in all**", (of_core[0], of_core[1] + core[0]), (of_document[0], of_document[1] + document[0])))
    lines += [f"| {name} | {a[0]} | {a[1]} | {b[0]} | {b[1]} |" for name, a, b in rows]
    lines += ["", f"Promised, and held by the test: at most {CALLS} calls and {CHARS} characters with the default profile."]
    path = BENCH / f"agent-jobs-{datetime.date.today()}.md"
    path.write_text("\n".join(lines) + "\n")
    return path
