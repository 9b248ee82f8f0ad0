"""A person and an agent at one terminal: watch, take over, hand back, continue."""

import os
import signal
import termios

import pytest

from test_pty_tools import SIZES

from harness import TerminalUser, WsRecorder, Terminals, Tmux, until

pytestmark = pytest.mark.anyio

VIM = ["vim", "-u", "NONE", "-i", "NONE", "-N", "-n"]
#: The key that means ostler, not the program: ctrl-\.
PREFIX = b"\x1c"
ORDINARY = termios.ECHO | termios.ICANON | termios.ISIG


async def test_watch_take_over_hand_back_and_go_on(each_installation):
    async with Terminals.connect(each_installation) as terminals:
        cat = await terminals.start("cat")
        await cat.line("from the agent")
        await cat.shows(r"^from the agent\nfrom the agent$")
        with TerminalUser(each_installation, "attach", cat.id) as person:
            person.wait_for(rb"from the agent\s.*from the agent")
            # The lease was free: the person has it.
            until(lambda: holder(each_installation, cat), what="the lease")
            person.type("from the person\r")
            await cat.shows(r"^from the person\nfrom the person$")
            refused = await cat.call("pty_write", text="not now", wait_ms=0)
            assert refused.is_error and "types" in refused.text and "attach" in refused.text, refused
            assert (await cat.status())["holder"]["name"] in refused.text, "it says who"
            assert (await cat.must("pty_read", wait_ms=0)).value("holder")["name"] in refused.text
            person.type(PREFIX + b"h")
            until(lambda: not holder(each_installation, cat), what="the hand-back")
            await cat.line("the agent again")
            person.wait_for(rb"the agent again\s.*the agent again")
            person.type(PREFIX + b"d")
            assert person.wait_exit() == 0
            assert person.modes() == ORDINARY, "the terminal is as it was"
        assert (await cat.status())["status"] == "running"
        await cat.line("and on")
        await cat.shows(r"^and on\nand on$")
        assert "not now" not in (await cat.screen()).text
        await cat.close()


def holder(installation, session):
    with WsRecorder(installation, session.id, "") as ring:
        return ring.wait_message("hello")["holder"]


def holder_of_any_daemon(installation, session):
    """As `holder`; none while there is no daemon."""
    try:
        return holder(installation, session)
    except OSError:
        return None


async def test_a_second_person_watches_until_they_take_over(each_installation):
    async with Terminals.connect(each_installation) as terminals:
        cat = await terminals.start("sh", "-c", "echo welcome; exec cat")
        await cat.shows("^welcome$")
        with TerminalUser(each_installation, "attach", cat.id) as first, TerminalUser(each_installation, "attach", cat.id) as second:
            for person in (first, second):
                person.wait_for(rb"welcome")
            until(lambda: holder(each_installation, cat), what="the lease")
            first.type("who is first\r")
            second.type("who is second\r")
            await cat.shows(r"^who is (first|second)$")
            text = (await cat.screen()).text
            assert ("first" in text) != ("second" in text), "one types, the other watches"
            writer, watcher = (first, second) if "first" in text else (second, first)
            watcher.wait_for(rb"who is")
            before = holder(each_installation, cat)
            watcher.type(PREFIX + b"t")
            until(lambda: holder(each_installation, cat) not in (None, before), what="the take-over")
            writer.wait_for(rb"types")
            watcher.type("taken over\r")
            await cat.shows(r"^taken over\ntaken over$")
            watcher.type(PREFIX + b"d")
            assert watcher.wait_exit() == 0
            writer.type(PREFIX + b"d")
            assert writer.wait_exit() == 0
        await cat.close()


async def test_watching_only(each_installation):
    async with Terminals.connect(each_installation) as terminals:
        cat = await terminals.start("cat")
        with TerminalUser(each_installation, "attach", "--watch", cat.id) as person:
            await cat.line("look")
            person.wait_for(rb"look\s.*look")
            assert holder(each_installation, cat) is None
            person.type("typed in vain\r")
            await cat.line("still mine")
            person.wait_for(rb"still mine\s.*still mine")
            assert "in vain" not in (await cat.screen()).text
            person.type(PREFIX + b"d")
            assert person.wait_exit() == 0
        await cat.close()


async def test_the_prefix_twice_is_the_key_itself(each_installation):
    async with Terminals.connect(each_installation) as terminals:
        sleeps = await terminals.start("sleep", "300")
        with TerminalUser(each_installation, "attach", sleeps.id) as person:
            until(lambda: holder(each_installation, sleeps), what="the lease")
            person.type(PREFIX + PREFIX)
            status = await sleeps.ended()
            assert status["signal"] == "SIGQUIT", status
            assert person.wait_exit() == 128 + 3


@pytest.mark.parametrize(("script", "code"), [("read x; exit 0", 0), ("read x; exit 7", 7), ("read x; kill -9 $$", 137)])
async def test_the_commands_end_is_the_persons_exit_code(each_installation, script, code):
    async with Terminals.connect(each_installation) as terminals:
        session = await terminals.start("sh", "-c", script)
        with TerminalUser(each_installation, "attach", session.id) as person:
            until(lambda: holder(each_installation, session), what="the lease")
            person.type("\r")
            assert person.wait_exit() == code
            assert person.modes() == ORDINARY


async def test_the_window_is_followed_and_given_back(each_installation):
    async with Terminals.connect(each_installation) as terminals:
        session = await terminals.start("/usr/bin/python3", "-c", SIZES, cols=90, rows=30)
        await session.shows("^ready$")
        with TerminalUser(each_installation, "attach", session.id, cols=120, rows=40) as person:
            await session.shows("^40 120$")
            person.resize(70, 20)
            await session.shows("^20 70$")
            person.type(PREFIX + b"d")
            assert person.wait_exit() == 0
        await session.shows("^30 90$")
        assert (await session.screen()).size == (90, 30)
        await session.close()


@pytest.mark.parametrize("resized", [True, False])
async def test_the_first_window_is_given_back_after_a_take_over(installation, resized):
    async with Terminals.connect(installation) as terminals:
        session = await terminals.start("/usr/bin/python3", "-c", SIZES, cols=90, rows=30)
        await session.shows("^ready$")
        with TerminalUser(installation, "attach", session.id, cols=120, rows=40):
            await session.shows("^40 120$")
            first = holder(installation, session)
            size = {"cols": 70, "rows": 20} if resized else {"cols": 120, "rows": 40}
            with TerminalUser(installation, "attach", "--take-over", session.id, **size) as second:
                if resized:
                    await session.shows("^20 70$")
                else:
                    until(lambda: holder(installation, session) != first, what="the lease")
                second.type(PREFIX + b"d")
                assert second.wait_exit() == 0
            await session.shows("^30 90$")
        await session.close()


async def test_an_agents_vim_is_seen_and_finished_by_a_person(each_installation):
    async with Terminals.connect(each_installation) as terminals:
        vim = await terminals.start(*VIM, "shared.txt")
        await vim.shows("shared.txt")
        await vim.type("ihalf by the agent")
        await vim.shows("^half by the agent$")
        with TerminalUser(each_installation, "attach", vim.id) as person:
            person.wait_for(rb"half by the agent")
            person.type(", half by the person\x1b:wq\r")
            assert person.wait_exit() == 0
            assert person.modes() == ORDINARY
        assert (each_installation.work / "shared.txt").read_text() == "half by the agent, half by the person\n"


async def test_the_daemon_dies_and_the_person_stays(each_installation):
    installation = each_installation
    async with Terminals.connect(installation, session="kept") as terminals:
        vim = await terminals.start(*VIM, "letter.txt")
        await vim.shows("letter.txt")
    with TerminalUser(installation, "attach", vim.id) as person:
        person.wait_for(rb"letter\.txt")
        until(lambda: holder(installation, vim), what="the lease")
        person.type("iwritten before ")
        person.wait_for(rb"before")
        installation.kill_daemon()
        until(lambda: holder_of_any_daemon(installation, vim), 20, "the person's return")
        person.type("and after\x1b:wq\r")
        assert person.wait_exit() == 0
    assert (installation.work / "letter.txt").read_text() == "written before and after\n"


@pytest.mark.parametrize("size", [100_000, 3_000_000])
async def test_a_person_leaves_after_a_paste_that_nobody_reads(installation, size):
    async with Terminals.connect(installation) as terminals:
        session = await terminals.start("sh", "-c", "stty raw -echo; echo ready; exec sleep 300")
        await session.shows("^ready$")
        with TerminalUser(installation, "attach", session.id) as person:
            until(lambda: holder(installation, session), what="the lease")
            rest = memoryview(b"x" * size + PREFIX + b"d")
            while rest:
                rest = rest[os.write(person.fd, rest):]
            assert person.wait_exit(15) == 0
        until(lambda: not holder(installation, session), 10, "the hand-back")
        await session.close()


@pytest.mark.parametrize("end", ["killed", "shut-down"])
async def test_an_agent_does_not_type_before_the_person_is_back(each_installation, end):
    """The person's client is slow, or never comes back."""
    installation = each_installation
    async with Terminals.connect(installation) as terminals:
        cat = await terminals.start("cat")
        with TerminalUser(installation, "attach", cat.id) as person:
            until(lambda: holder(installation, cat), what="the lease")
            person.type("first\r")
            await cat.shows(r"^first\nfirst$")
            for is_back in [True, False]:
                person.held.kill(signal.SIGSTOP)
                if end == "killed":
                    installation.kill_daemon()
                else:
                    installation.cli("shutdown")
                refused = await cat.call("pty_write", text="not now", wait_ms=0)
                assert refused.is_error and "before the daemon restarted" in refused.text, refused
                if is_back:
                    person.held.kill(signal.SIGCONT)
                    until(lambda: holder_of_any_daemon(installation, cat), 20, "the person's return")
                    person.type("second\r")
                    await cat.shows(r"^second\nsecond$")
        # It is free again after a while.
        while (await cat.call("pty_write", text="later", keys=["enter"], wait_ms=200)).is_error:
            pass
        await cat.shows(r"^first\nfirst\nsecond\nsecond\nlater\nlater$")
        await cat.close()


async def test_an_attached_screen_is_the_screen(installation):
    """The screen of a person who attaches late, as rendered by tmux."""
    (installation.work / "text").write_text("".join(f"{n} {'ab 漢字 ' * (n % 9)}\n" for n in range(100)))
    async with Terminals.connect(installation) as terminals:
        for command, seen in [([*VIM, "text"], r"^0"), (["less", "text"], r"^0"), (["nano", "-I", "text"], "GNU nano")]:
            session = await terminals.start(*command)
            await session.shows(seen)
            with Tmux(installation.argv("attach", session.id), installation.work, installation.env()) as tmux:
                tmux.shows(seen)
                view = await session.screen()
                until(lambda v=view, t=tmux: (t.rows(), t.cursor()) == (v.rows, v.at), what=f"the screen of {command[0]}")
                assert tmux.alternate() == view.alternate
            assert (await session.status())["status"] == "running", "a lost window is no stop"
            await session.close()


async def test_who_cannot_attach(each_installation):
    installation = each_installation
    assert installation.cli("attach", "zzzzzzzz", check=False).returncode not in (0, 101)
    piped = installation.cli("run", "-d", "--", "sleep", "300").stdout.decode().strip()
    with TerminalUser(installation, "attach", piped) as person:
        assert person.wait_exit() not in (0, 101)
        assert person.modes() == ORDINARY
    done = installation.cli("attach", piped, check=False)
    assert done.returncode not in (0, 101) and b"terminal" in done.stderr, done


async def test_a_person_whose_window_closes_hands_back(each_installation):
    async with Terminals.connect(each_installation) as terminals:
        cat = await terminals.start("cat")
        person = TerminalUser(each_installation, "attach", cat.id)
        until(lambda: holder(each_installation, cat), what="the lease")
        person.close()
        until(lambda: not holder(each_installation, cat), 10, "the hand-back")
        await cat.line("mine again")
        await cat.shows(r"^mine again\nmine again$")
        await cat.close()


async def test_a_person_runs_a_command_in_a_terminal(each_installation):
    with TerminalUser(each_installation, "run", "-t", "--", "sh", "-c", "tty; stty size; read x; echo got $x; exit 5", cols=100, rows=30) as person:
        person.wait_for(rb"/dev/pts/\d+\r\n30 100\r\n")
        person.type("something\r")
        person.wait_for(rb"got something\r\n")
        assert person.wait_exit() == 5
        assert person.modes() == ORDINARY


async def test_verbs_for_scripts(each_installation):
    """`shell --detach`, `exec`, `send`, `screen`: what a person's scripts use."""
    installation = each_installation
    shell = installation.cli("shell", "bash", "--detach").stdout.decode().strip()
    done = installation.cli("exec", shell, "--", "cd /tmp; echo inside; exit_with() { return $1; }; exit_with 6", check=False)
    assert (done.returncode, done.stdout.decode().replace("\r\n", "\n")) == (6, "inside\n")
    assert installation.cli("exec", shell, "--", "pwd").stdout.decode().strip() == "/tmp"
    installation.cli("send", shell, "echo typed $((40+2))")
    until(lambda: "typed 42" in installation.cli("screen", shell).stdout.decode(), what="what was sent")
    view = installation.json("screen", shell)
    assert view["size"] == {"cols": 80, "rows": 24} and any("typed 42" in row for row in view["rows"])
    installation.cli("send", shell, "--key", "ctrl-d")
    assert installation.cli("wait", shell, check=False).returncode in (0, 1, 6)
