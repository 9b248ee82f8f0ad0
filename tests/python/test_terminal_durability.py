"""Terminals outlive the daemon: a person continues in vim after the daemon was killed."""

import signal

import pytest

from harness import WsRecorder, Terminals, procs, until
from harness.terminal import Session

pytestmark = pytest.mark.anyio

VIM = ["vim", "-u", "NONE", "-i", "NONE", "-N", "-n"]


async def test_the_daemon_is_killed_in_the_middle_of_vim(each_installation):
    installation = each_installation
    async with Terminals.connect(installation, session="kept") as terminals:
        vim = await terminals.start(*VIM, "letter.txt", cols=90, rows=30)
        await vim.shows(r"letter\.txt")
        await vim.type("inot saved yet")
        await vim.shows(r"^not saved yet$")
        before = await vim.screen()
        first = installation.kill_daemon()
    async with Terminals.connect(installation, session="kept") as terminals:
        vim = Session(terminals, vim.id)
        after = await vim.screen()
        assert (after.rows, after.at, after.size, after.alternate) == (
            before.rows, before.at, before.size, before.alternate)
        assert installation.rest("GET", "/api/v1/health")["pid"] != first
        await vim.type(", now")
        await vim.shows(r"^not saved yet, now$")
        await vim.resize(100, 40)
        await vim.keys("escape")
        await vim.line(":w")
        await vim.shows(r'^"letter.txt" \[New\] 1L|^"letter.txt" 1L')
        assert (installation.work / "letter.txt").read_text() == "not saved yet, now\n"
        await vim.line(":q")
        assert (await vim.ended())["exit_code"] == 0


async def test_a_shell_goes_on_after_the_daemons_death(each_installation):
    installation = each_installation
    async with Terminals.connect(installation, session="kept") as terminals:
        shell = await terminals.shell("bash")
        result = await shell.run("cd /tmp; KEPT=yes")
        assert result.end == "finished"
        running = await shell.run("while [ ! -e " + str(installation.work / "go") + " ]; do sleep 0.05; done; echo done $KEPT", wait_ms=100)
        assert running.end == "running"
        installation.kill_daemon()
    async with Terminals.connect(installation, session="kept") as terminals:
        shell = Session(terminals, shell.id)
        busy = await shell.call("pty_run", script="echo no")
        assert busy.is_error, "what it ran before goes on"
        (installation.work / "go").touch()
        await shell.wrote(rb"done yes\r\n")
        reply = await shell.must("pty_read", until="prompt", wait_ms=10_000)
        assert reply.value("shell")["state"] == "prompt", reply
        result = await shell.run("pwd; echo $KEPT; (exit 5)")
        assert (result.end, result.output, result.exit_code, result.cwd) == ("finished", "/tmp\nyes", 5, "/tmp")
        await shell.close()


async def test_output_without_a_daemon_is_on_the_screen_later(each_installation):
    installation = each_installation
    async with Terminals.connect(installation, session="kept") as terminals:
        session = await terminals.start("sh", "-c", "while [ ! -e go ]; do sleep 0.05; done; seq 1 5000; printf '\\033[2J\\033[Hfresh'; touch written; read x; exit 8")
        await session.screen()
        installation.kill_daemon()
    (installation.work / "go").touch()
    until(lambda: (installation.work / "written").exists(), 10, "the output")
    async with Terminals.connect(installation, session="kept") as terminals:
        session = Session(terminals, session.id)
        await session.shows(r"\Afresh$")
        page = await session.output(offset=0, limit=6)
        assert page.data == b"1\r\n2\r\n" and not page.truncated
        await session.line("")
        assert (await session.ended())["exit_code"] == 8


async def test_an_end_without_a_daemon_is_known_and_reported_once(each_installation):
    installation = each_installation
    async with Terminals.connect(installation, session="kept") as terminals:
        session = await terminals.start("sh", "-c", "while [ ! -e go ]; do sleep 0.05; done; echo last words; exit 9")
        uuid = installation.json("info", session.id)["uuid"]
        installation.kill_daemon()
    (installation.work / "go").touch()
    until(lambda: not procs.members(uuid), 10, "its end")
    async with Terminals.connect(installation, session="kept") as terminals:
        session = Session(terminals, session.id)
        status = await session.ended()
        assert (status["status"], status["exit_code"]) == ("exited", 9)
        assert (await session.screen()).rows[0] == "last words"
        with WsRecorder(installation, session.id) as ring:
            assert [it["type"] for it in ring.to_the_end()].count("exit") == 1


async def test_a_killed_zygote_does_not_touch_terminals(each_installation):
    installation = each_installation
    async with Terminals.connect(installation) as terminals:
        cat = await terminals.start("cat")
        await cat.line("before")
        await cat.shows(r"^before\nbefore$")
        keepers = [pid for pid in installation.ours() if procs.comm(pid) == "ostler-keeper"]
        assert len(keepers) == 1
        procs.ProcessHandle(keepers[0]).kill()
        await cat.line("after")
        await cat.shows(r"^after\nafter$")
        another = await terminals.start("echo", "still here")
        await another.shows(r"^still here$")
        await another.ended()
        await cat.close()


async def test_a_killed_shim_is_reported_and_leaves_no_process(installation):
    async with Terminals.connect(installation) as terminals:
        shell = await terminals.shell("bash")
        await shell.run("setsid sleep 305.5 & sleep 305.5 &")
        status = await shell.status()
        uuid = installation.json("info", shell.id)["uuid"]
        shim = int(procs.status(status["pid"], "PPid"))
        assert procs.comm(shim) == "ostler-shim" and shim in installation.ours()
        procs.ProcessHandle(shim).kill()
        ended = await shell.ended()
        assert ended["exit_code"] is None and ended["status"] == "exited"
        until(lambda: not procs.members(uuid), 5, "the end of the tree")
        refused = await shell.call("pty_write", text="x")
        assert refused.is_error


async def test_closing_is_a_hang_up(each_installation):
    """A program that saves its work when its terminal goes has time to do so."""
    script = "trap 'echo saved > on-hangup; exit 3' HUP; trap '' TERM; echo ready; while :; do sleep 0.05; done"
    async with Terminals.connect(each_installation) as terminals:
        session = await terminals.start("bash", "-c", script)
        await session.shows("^ready$")
        await session.close()
        until((each_installation.work / "on-hangup").exists, 2, "what it does at a hang-up")
        vim = await terminals.start("vim", "-u", "NONE", "-N", "-i", "NONE", "kept.txt")
        await vim.shows("kept.txt")
        await vim.type("iprecious")
        await vim.shows("^precious$")
        await vim.close()
        swap = each_installation.work / ".kept.txt.swp"
        assert swap.exists() and b"precious" in swap.read_bytes(), "vim preserves its buffer"


async def test_closing_ends_what_is_stopped_and_what_ignores_it(installation):
    async with Terminals.connect(installation) as terminals:
        shell = await terminals.shell("bash")
        await shell.run("sleep 306.5 & kill -STOP $!")
        stubborn = await shell.run("(trap '' HUP TERM INT; sleep 306.5; sleep 306.5) & nohup setsid sleep 306.5 >/dev/null 2>&1 &")
        assert stubborn.end == "finished"
        uuid = installation.json("info", shell.id)["uuid"]
        assert len(procs.members(uuid)) >= 4
        await shell.close()
        assert procs.members(uuid) == [], "none is left when the answer comes"
        at_once = await terminals.start("bash", "-c", "trap '' HUP TERM INT; while :; do sleep 1; done")
        pid = (await at_once.status())["pid"]
        await at_once.close(signal="KILL")
        assert not procs.alive(pid)


async def test_a_proxy_that_dies_ends_its_sessions(each_installation):
    installation = each_installation
    async with Terminals.connect(installation) as terminals:
        session = await terminals.start("cat")
        pid = (await session.status())["pid"]
    until(lambda: not procs.alive(pid), 10, "the end with its agent's session")


async def test_screens_survive_clearing_and_a_restart(installation):
    """Output that is dropped was drawn before."""
    async with Terminals.connect(installation, session="kept") as terminals:
        session = await terminals.start("sh", "-c", "printf '\\033]0;a title\\007\\033[5;5Hdrawn\\033[31m'; read x; printf more; read x")
        await session.shows("drawn")
        before = await session.screen()
        installation.rest("DELETE", f"/api/v1/executions/{session.id}/output")
        after = await session.screen()
        assert (after.rows, after.title, after.exact) == (before.rows, "a title", True)
        assert (await session.output()).data == b""
        installation.kill_daemon()
    async with Terminals.connect(installation, session="kept") as terminals:
        session = Session(terminals, session.id)
        again = await session.screen()
        assert (again.rows, again.title, again.exact) == (before.rows, "a title", True)
        await session.type("\n")
        await session.shows("^more|drawn")
        await session.close()


async def test_the_journal_says_how_much_was_typed_and_not_what(each_installation):
    secret = "nobody-writes-this-down-93"
    async with Terminals.connect(each_installation) as terminals:
        session = await terminals.start("sh", "-c", "stty -echo; echo ready; cat > /dev/null")
        await session.shows("^ready$")
        await session.line(secret)
        await session.paste(secret)
        uuid = each_installation.json("info", session.id)["uuid"]
        directory = each_installation.state / "executions" / uuid
        await session.close(signal="KILL")
        events = directory / "events.jsonl"
        until(lambda: events.exists() and '"input"' in events.read_text().lower(), 5, "the event of input")
        for path in each_installation.state.rglob("*"):
            if path.is_file():
                assert secret.encode() not in path.read_bytes(), path


async def test_a_stopped_daemon_does_not_lose_what_is_typed_after(each_installation):
    installation = each_installation
    async with Terminals.connect(installation) as terminals:
        cat = await terminals.start("cat")
        await cat.line("one")
        await cat.shows(r"^one\none$")
        daemon = installation.daemon()
        daemon.kill(signal.SIGSTOP)
        daemon.kill(signal.SIGCONT)
        await cat.line("two")
        await cat.shows(r"^two\ntwo$")
        await cat.close()
