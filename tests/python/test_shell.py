"""Profile `shell`: scripts to their end, limits, environment."""

import asyncio
import random
import time

import pytest

from harness import Shell, named, until

pytestmark = pytest.mark.anyio

KIB_128 = 128 * 1024
REPLY_CHARS = 20_000
SHELL_TOOLS = [
    "execute_shell", "poll_process", "read_process_output", "list_processes", "kill_process",
]


def mark():
    """A unique number of seconds to sleep."""
    return f"300.{random.randrange(10**8, 10**9)}"


async def tools(installation, words):
    async with Shell.connect(installation, tools=words) as shell:
        return (await shell.agent.client.list_tools()).tools


async def test_the_profile_has_the_documents_tools(installation):
    offered = {tool.name: tool for tool in await tools(installation, "shell")}
    assert list(offered) == SHELL_TOOLS
    properties = {name: tool.input_schema["properties"] for name, tool in offered.items()}
    execute = properties["execute_shell"]
    assert set(execute) == {"command", "timeout", "run_mode", "isolation"}
    assert execute["timeout"]["default"] == 30
    assert execute["run_mode"]["enum"] == ["sync", "async", "background"]
    assert execute["isolation"]["enum"] == ["basic", "medium", "high", "container"]
    tail = properties["poll_process"]["tail"]["properties"]
    assert tail["src"] == {"type": "string", "enum": ["stdout", "stderr"], "description": "Stream", "default": "stdout"}
    assert (tail["n"]["maximum"], tail["n"]["default"]) == (100, 10)
    lines = properties["read_process_output"]["lines"]
    assert (lines["maximum"], lines["default"]) == (100, 20)
    assert offered["read_process_output"].input_schema["required"] == ["process_id", "stream"]
    assert properties["list_processes"]["status_filter"]["default"] == "all"


async def test_seeds_is_command_and_shell(installation):
    names = [tool.name for tool in await tools(installation, "seeds")]
    assert names[-5:] == SHELL_TOOLS and "command_execute" in names


async def test_sync_answers_output_exit_code_and_time(each_installation):
    async with Shell.connect(each_installation) as shell:
        reply = await shell.sh("echo out; echo err >&2; exit 3")
        assert reply.structured is None, "what bears output answers text"
        assert reply.blocks[0] == "out" and reply.blocks[1] == "[stderr]\nerr"
        assert reply.blocks[2].startswith("exit_code: 3\nexecution_time: ")
        assert reply.value("exit_code") == 3 and reply.value("status") == "failed"
        assert (await shell.read(reply.value("process_id")))["content"] == ["out"]
        begin = time.monotonic()
        reply = await shell.sh("sleep 0.5")
        assert 0.5 <= reply.value("execution_time") <= time.monotonic() - begin


async def test_the_shell_is_posix_sh(each_installation):
    async with Shell.connect(each_installation) as shell:
        (each_installation.work / "lib.sh").write_text("greet() { echo hello $1; }\n")
        reply = await shell.sh(". ./lib.sh; greet you | tr a-z A-Z && echo $((6*7)) # done")
        assert reply.blocks[0] == "HELLO YOU\n42"
        reply = await shell.sh('echo "$0 $#"; cat; echo end')
        assert reply.blocks[0] == "/bin/sh 0\nend", "no arguments, no input"


async def test_a_timeout_ends_the_whole_tree_and_answers_the_output_so_far(each_installation):
    seconds = mark()
    async with Shell.connect(each_installation) as shell:
        begin = time.monotonic()
        reply = await shell.execute(
            f"echo before; setsid sleep {seconds} & (setsid sh -c 'sleep {seconds}; true' &);"
            f"sleep {seconds}",
            timeout=1,
        )
        assert time.monotonic() - begin < 10
        assert reply.code == "command_timeout" and reply.meta["rpc"] == -32603, reply
        assert "before" in reply.blocks[1:], "the output so far"
        assert not named(f"sleep {seconds}")
        assert reply.value("status") == "killed" and reply.value("exit_code") is None
        assert reply.value("execution_time") >= 1
        assert (await shell.poll(reply.value("process_id")))["status"] == "killed"


async def test_a_timeout_holds_in_sync_mode_only(installation):
    async with Shell.connect(installation) as shell:
        reply = await shell.execute("exec sleep 300", run_mode="background", timeout=1)
        assert "timeout holds in sync mode only" in reply.text
        pid = reply.value("process_id")
        await asyncio.wait_for(until_older(shell, pid, 1.2), 10)
        assert (await shell.poll(pid))["status"] == "running"
        await shell.kill(pid)


async def until_older(shell, pid, seconds):
    """Waits until the process has run for so long, by its own account."""
    while shell.installation.rest("GET", f"/api/v1/executions/{pid}")["duration"] < seconds:
        await shell.poll(pid)


@pytest.mark.parametrize("mode", ["async", "background"])
async def test_the_background_answers_at_once(each_installation, mode):
    async with Shell.connect(each_installation) as shell:
        begin = time.monotonic()
        pid = await shell.start("exec sleep 60", run_mode=mode)
        assert time.monotonic() - begin < 1
        assert (await shell.poll(pid))["status"] == "running"
        await shell.kill(pid)


async def test_kill_ends_the_whole_tree_at_once(each_installation):
    seconds = mark()
    async with Shell.connect(each_installation) as shell:
        pid = await shell.start(
            f"trap '' TERM INT HUP; setsid sleep {seconds} & sleep {seconds} & echo up; wait"
        )
        until(lambda: len(named(f"sleep {seconds}")) >= 2, what="the tree")
        begin = time.monotonic()
        killed = await shell.kill(pid)
        assert time.monotonic() - begin < 3, "no grace"
        assert not named(f"sleep {seconds}")
        assert killed["status"] == "killed" and killed["was_running"]
        assert killed["exit_code"] is None and killed["signal"] == "SIGKILL"
        again = await shell.kill(pid)
        assert again["status"] == "killed" and not again["was_running"]
        done = await shell.start("exit 5")
        await shell.ended(done)
        late = await shell.kill(done)
        assert (late["status"], late["exit_code"], late["was_running"]) == ("failed", 5, False)


async def test_leftovers_of_a_script_are_ended_and_reported(each_installation):
    seconds = mark()
    async with Shell.connect(each_installation) as shell:
        reply = await shell.sh(f"sleep {seconds} & echo started")
        assert "1 process it left behind was ended" in reply.text
        assert not named(f"sleep {seconds}")
        pid = await shell.start(f"sleep {seconds} & sleep {seconds} & echo started")
        await shell.ended(pid)
        assert "2 processes it left behind were ended" in (await shell.poll(pid))["notes"][0]


@pytest.mark.parametrize("last", ["\n", "#", " ", "; echo last", "'"])
async def test_a_script_of_128_kib_runs_and_one_byte_more_is_refused(each_installation, last):
    begin, end = "echo begin $# $0; cat <<'END'\nline\nEND\n: '", "'; echo end; exit 4"
    if last == "'":
        end = "; exit 9'; echo end; exit 4"
    end = end.replace("exit 4", f"exit 4{last}") if last.startswith(";") else end
    if last in ("\n", "#", " "):
        end += " " + last
    script = begin + "x" * (KIB_128 - len(begin) - len(end)) + end
    assert len(script) == KIB_128
    async with Shell.connect(each_installation) as shell:
        for shorter in (0, 1, 2):
            reply = await shell.sh(script.replace("x", "", shorter))
            assert reply.blocks[0] == "begin 0 /bin/sh\nline\nend", reply
            assert reply.value("exit_code") == 4
        pid = await shell.start(script)
        assert (await shell.ended(pid))["exit_code"] == 4
        assert (await shell.poll(pid))["command"].startswith("echo begin $# $0; cat"), "as given"
        for mode in ("sync", "async"):
            refused = await shell.execute(script + " ", run_mode=mode)
            assert refused.is_error and "131073 bytes" in refused.text, refused
            assert "131072" in refused.text and refused.meta["rpc"] == -32602


async def test_a_128_kib_script_may_break_anywhere(installation):
    """Inside a word, a quote, a character: the part that no argument can carry is its last byte."""
    async with Shell.connect(installation) as shell:
        for end in ("echo 'ab'", 'echo "a$((1+1))"', "echo €", "echo ${X:-d}", "{ echo a; }", "echo a\\\n"):
            script = "#" + "x" * (KIB_128 - len(end.encode()) - 2) + "\n" + end
            assert len(script.encode()) == KIB_128
            whole, small_disk = await shell.sh(script), await shell.sh(end)
            assert whole.blocks[0] == small_disk.blocks[0] and whole.value("exit_code") == 0, whole


async def test_the_environment_is_the_proxys_base(each_installation):
    more = {"SECRET_TOKEN": "t", "LC_TIME": "C", "NODE_ENV": "test", "LD_PRELOAD_X": "1"}
    async with Shell.connect(each_installation, env=more) as shell:
        for isolation in ("basic", "medium"):
            reply = await shell.sh("env", isolation=isolation)
            names = {line.split("=")[0] for line in reply.blocks[0].splitlines() if "=" in line}
            assert {"PATH", "HOME", "LANG", "TZ", "LC_TIME", "OSTLER_EXECUTION"} <= names
            assert not names & {"SECRET_TOKEN", "NODE_ENV", "LD_PRELOAD_X", "OSTLER_STATE_DIR"}
            assert reply.value("isolation")["asked"] == isolation
        reply = await shell.sh("pwd; echo $HOME")
        assert reply.blocks[0] == f"{each_installation.work}\n{each_installation.dir / 'home'}"


async def test_isolation_is_reported_and_never_faked(each_installation):
    async with Shell.connect(each_installation) as shell:
        reply = await shell.sh("ps -o sid= -p $$; echo $$", isolation="basic")
        isolation = reply.value("isolation")
        assert isolation["asked"] == "basic" and "tree_kill" in isolation["in_force"]
        default = (await shell.sh("true")).value("isolation")
        assert default["asked"] == "medium", default
        jailed = await shell.sh("ps -o pid= -p $$; ls /root", isolation="high")
        assert "namespaces" in jailed.value("isolation")["in_force"] and "No such file" in jailed.text
        assert (await shell.execute("true", isolation="container")).code == "value_error"


async def test_an_allow_list_refuses_scripts(installation):
    async with Shell.connect(installation, env={"ALLOWED_COMMANDS": "ls,sh"}) as shell:
        refused = await shell.execute("ls; touch made")
        assert refused.code == "security_error", refused
        assert not (installation.work / "made").exists()


async def test_every_answer_stays_in_its_budget(installation):
    async with Shell.connect(installation) as shell:
        reply = await shell.sh("seq 1 100000; seq 1 100000 >&2")
        assert len(reply.text) <= REPLY_CHARS
        pid = reply.value("process_id")
        assert "read_process_output" in reply.blocks[-1] and pid in reply.blocks[-1]
        script = "i=0; while [ $i -lt 150 ]; do head -c 3000 /dev/zero | tr '\\0' '\\042'; echo; i=$((i+1)); done"
        pid = await shell.start(script)
        await shell.ended(pid)
        for mode in ("head", "tail"):
            reply = await shell.call("read_process_output", process_id=pid, stream="stdout", lines=100, mode=mode)
            assert len(reply.text) <= REPLY_CHARS
            read = await shell.read(pid, lines=100, mode=mode)
            assert read["lines_returned"] == 100 == len(read["content"])
            assert all("a line of 3001 bytes" in line for line in read["content"])
        polled = await shell.call("poll_process", process_id=pid, tail={"n": 100})
        assert len(polled.text) <= REPLY_CHARS
        for _ in range(5):
            await asyncio.gather(*(shell.sh("true " + "x" * 400) for _ in range(18)))
        listed = await shell.call("list_processes")
        assert len(listed.text) <= REPLY_CHARS
        assert listed.structured["total"] == len(listed.structured["processes"]) + listed.structured["omitted"]


async def test_lines_are_shown_as_a_terminal_would_leave_them(installation):
    async with Shell.connect(installation) as shell:
        pid = await shell.start(
            r"printf '\033[31mred\033[0m\n'; i=0; while [ $i -le 10000 ]; do"
            r" printf '\r%d of 10000' $i; i=$((i+1)); done; printf '\nlast'"
        )
        await shell.ended(pid)
        assert (await shell.read(pid))["content"] == ["red", "10000 of 10000", "last"]


async def test_what_is_no_text_is_read_all_the_same(installation):
    async with Shell.connect(installation) as shell:
        pid = await shell.start("head -c 5000 /dev/urandom; echo; printf 'h\\303\\251llo\\377\\n'")
        await shell.ended(pid)
        assert (await shell.read(pid, lines=1))["content"] == ["héllo\ufffd"]


async def test_no_output_is_no_line(installation):
    async with Shell.connect(installation) as shell:
        pid = await shell.start("true")
        await shell.ended(pid)
        assert (await shell.poll(pid, src="stderr", n=5))["tail"] == {"src": "stderr", "lines": []}
        read = await shell.read(pid, "stderr", mode="head")
        assert (read["content"], read["lines_returned"], read["total_size"]) == ([], 0, 0)
        assert (await shell.sh("true")).blocks[0].startswith("exit_code: 0")


async def test_a_sync_script_is_seen_running_by_others(installation):
    async with Shell.connect(installation, session="s") as one, Shell.connect(installation, session="s") as two:
        call = asyncio.ensure_future(one.sh("while [ ! -e go ]; do sleep 0.05; done"))
        deadline = time.monotonic() + 10
        while True:
            processes = (await two.list())["processes"]
            if processes and processes[0]["status"] == "running":
                break
            assert time.monotonic() < deadline, processes
        assert processes[0]["pid"] and processes[0]["exit_code"] is None
        (installation.work / "go").touch()
        assert (await call).value("exit_code") == 0


@pytest.mark.full
@pytest.mark.limit(120)
async def test_a_sync_script_that_takes_longer_than_a_call_goes_on(installation):
    async with Shell.connect(installation) as shell:
        begin = time.monotonic()
        reply = await shell.sh("echo begun; while [ ! -e go ]; do sleep 0.1; done; echo done", timeout=90)
        assert 44 < time.monotonic() - begin < 50
        assert reply.blocks[0] == "begun" and reply.value("yielded")
        assert "status: running" in reply.text and "poll_process" in reply.text
        pid = reply.value("process_id")
        (installation.work / "go").touch()
        assert (await shell.ended(pid))["status"] == "finished"
        assert (await shell.read(pid))["content"] == ["begun", "done"]
