"""Real programs in terminals, each driven to a known end through profile `pty`."""

import asyncio
import os
import shutil
from pathlib import Path

import pytest

from harness import Terminals
from harness.repositories import git, two_hunks

pytestmark = pytest.mark.anyio

#: vim without anything of the person's or the distribution's.
VIM = ["vim", "-u", "NONE", "-i", "NONE", "-N", "-n"]
PYTHON = "/usr/bin/python3"
PASSPHRASE = "korrekt-Pferd-Batterie-7741"
ROOT = Path(__file__).resolve().parents[2]


def node():
    """The Node that the tests' own set-up brought, else the one on the path."""
    brought = sorted((ROOT / "tests/clients/node_modules").glob("node-linux-*/bin/node"))
    return str(brought[0]) if brought else shutil.which("node")


def files_with(directory, secret):
    """Every file below a directory that holds these bytes, in any of the usual clothes."""
    import base64

    plain = secret.encode()
    needles = {plain, base64.b64encode(plain), plain.hex().encode(), plain.replace(b"-", b"\\u002d")}
    found = []
    for root, _, names in os.walk(directory):
        for name in names:
            path = Path(root, name)
            if path.is_file() and any(needle in path.read_bytes() for needle in needles):
                found.append(path)
    return found


# Interpreters


async def test_python_repl(each_installation):
    async with Terminals.connect(each_installation) as terminals:
        python = await terminals.start(PYTHON, "-q", "-i", "-E")
        await python.shows(r"^>>>$")
        await python.line("6 * 7")
        await python.shows(r"^42$")
        await python.line("for n in range(3):")
        await python.line("    print('n =', n)")
        await python.line("")
        await python.shows(r"^n = 2$")
        await python.line("input('your name: ')")
        await python.shows(r"^your name:$")
        await python.line("Ada")
        await python.shows(r"^'Ada'$")
        await python.keys("up", "up", "home", "ctrl-k", "ctrl-d")
        status = await python.ended()
        assert (status["status"], status["exit_code"]) == ("exited", 0)


async def test_node_repl(each_installation):
    program = node()
    assert program, "Node is not here"
    if each_installation.user is not None:
        brought = each_installation.dir / "node"
        shutil.copy2(program, brought)
        brought.chmod(0o755)
        program = brought
    async with Terminals.connect(each_installation) as terminals:
        repl = await terminals.start(program)
        await repl.shows(r"^>$")
        await repl.line("[1, 2, 3].map(n => n * 14)")
        await repl.shows(r"^\[ 14, 28, 42 \]$")
        await repl.line("'ä漢😀'.length")
        await repl.shows(r"^4$")
        await repl.line("process.stdout.columns + 'x' + process.stdout.rows")
        await repl.shows(r"^'80x24'$")
        await repl.line(".exit")
        status = await repl.ended()
        assert (status["status"], status["exit_code"]) == ("exited", 0)


# Editors


async def test_vim_edits_and_saves_a_file(each_installation):
    file = each_installation.work / "notes.txt"
    file.write_text("one\ntwo\nthree\n")
    each_installation.give(each_installation.work)
    async with Terminals.connect(each_installation) as terminals:
        vim = await terminals.start(*VIM, "notes.txt")
        await vim.shows(r"^three$")
        view = await vim.screen()
        assert view.alternate and len(view.rows) == 24 and view.at == (0, 0)
        await vim.type("jcwzwei")
        await vim.keys("escape")
        await vim.shows(r"^zwei$")
        await vim.type("Govier ä 漢")
        await vim.keys("escape")
        await vim.type(":1d")
        await vim.keys("enter")
        await vim.shows(r"\Azwei$")
        await vim.line(":w")
        await vim.shows(r'^"notes.txt" 3L')
        assert file.read_text() == "zwei\nthree\nvier ä 漢\n"
        await vim.line(":q")
        status = await vim.ended()
        assert (status["status"], status["exit_code"]) == ("exited", 0)
        assert not (await vim.screen()).alternate


async def test_vim_is_resized_to_300_columns(each_installation):
    wide = "".join(f"{n:<10}" for n in range(29))
    (each_installation.work / "wide.txt").write_text(wide + "|\nshort\n")
    each_installation.give(each_installation.work)
    async with Terminals.connect(each_installation) as terminals:
        vim = await terminals.start(*VIM, "wide.txt")
        await vim.shows(r"^short$")
        assert (await vim.screen()).rows[0].startswith(wide[:80].rstrip())
        await vim.resize(300, 50)
        await vim.shows(rf"^{wide}\|$")
        view = await vim.screen()
        assert view.size == (300, 50) and len(view.rows) == 50
        await vim.line(":echo &columns 'x' &lines")
        await vim.shows(r"^300 x 50$")
        await vim.type("A" + "x" * 9)
        await vim.keys("escape")
        await vim.shows(rf"^{wide}\|x{{9}}$")
        await vim.resize(20, 5)
        await vim.line(":redraw!")
        await vim.line(":echo &columns 'x' &lines")
        await vim.shows(r"^20 x 5$")
        await vim.line(":wq")
        assert (await vim.ended())["exit_code"] == 0
    assert (each_installation.work / "wide.txt").read_text() == f"{wide}|xxxxxxxxx\nshort\n"


async def test_nano_edits_and_saves_a_file(each_installation):
    async with Terminals.connect(each_installation) as terminals:
        nano = await terminals.start("nano", "--ignorercfiles", "new.txt")
        await nano.shows(r"GNU nano")
        await nano.type("written in nano\nsecond line")
        await nano.shows(r"^second line$")
        await nano.keys("up", "home")
        await nano.type(">> ")
        await nano.shows(r"^>> written")
        await nano.keys("ctrl-o")
        await nano.shows(r"File Name to Write: new.txt")
        await nano.keys("enter")
        await nano.shows(r"Wrote 2 lines")
        await nano.keys("ctrl-x")
        assert (await nano.ended())["exit_code"] == 0
    assert (each_installation.work / "new.txt").read_text() == ">> written in nano\nsecond line\n"


# Full-screen viewers


async def test_less_pages_and_searches(each_installation):
    (each_installation.work / "long.txt").write_text("".join(f"line {n}\n" for n in range(1, 1001)))
    each_installation.give(each_installation.work)
    async with Terminals.connect(each_installation) as terminals:
        less = await terminals.start("less", "long.txt")
        await less.shows(r"^line 23$")
        await less.type(" ")
        await less.shows(r"\Aline 24$")
        await less.keys("page-down")
        await less.shows(r"\Aline 47$")
        await less.keys("up")
        await less.shows(r"\Aline 46$")
        await less.type("/line 500")
        await less.keys("enter")
        await less.shows(r"\Aline 500$")
        await less.type("G")
        await less.shows(r"^line 1000$")
        await less.shows(r"\(END\)")
        await less.keys("home")
        await less.type("g")
        await less.shows(r"\Aline 1$")
        await less.type("q")
        assert (await less.ended())["exit_code"] == 0


async def test_top_shows_its_table_and_quits(each_installation):
    async with Terminals.connect(each_installation) as terminals:
        top = await terminals.start("top", cols=100, rows=40)
        await top.shows(r"^top - \d\d:\d\d:\d\d up")
        await top.shows(r"^ +PID USER +PR +NI +VIRT +RES +SHR S +%CPU +%MEM +TIME\+ COMMAND$")
        await top.shows(r"^ +\d+ \S+ +\S+ +-?\d+")
        await top.type("h")
        await top.shows(r"^Help for Interactive Commands")
        await top.keys("escape")
        await top.shows(r"^top - ")
        await top.type("q")
        assert (await top.ended())["exit_code"] == 0


async def test_htop_shows_its_table_and_quits(each_installation):
    async with Terminals.connect(each_installation) as terminals:
        htop = await terminals.start("htop", cols=120, rows=40)
        await htop.shows(r"F1Help +F2Setup")
        await htop.shows(r"PID.?.?USER +PRI +NI +VIRT")
        assert (await htop.screen()).alternate
        await htop.keys("f1")
        await htop.shows(r"^htop \d")
        await htop.keys("escape")
        await htop.shows(r"F1Help +F2Setup")
        await htop.keys("f10")
        assert (await htop.ended())["exit_code"] == 0


# Dialogues


async def test_git_add_p_stages_one_of_two_hunks(installation):
    two_hunks(installation)
    async with Terminals.connect(installation) as terminals:
        add = await terminals.start("git", "add", "-p", cols=100, rows=40)
        await add.shows(r"\(1/2\) Stage this hunk.*\?$")
        await add.line("n")
        await add.shows(r"\(2/2\) Stage this hunk.*\?$")
        await add.line("y")
        assert (await add.ended())["exit_code"] == 0
    staged, rest = git(installation, "diff", "--cached"), git(installation, "diff")
    assert "thirty-five changed" in staged and "two changed" not in staged
    assert "two changed" in rest and "thirty-five changed" not in rest


async def test_ssh_keygen_gets_a_passphrase_that_is_stored_nowhere(each_installation):
    installation = each_installation
    async with Terminals.connect(installation) as terminals:
        keygen = await terminals.start("ssh-keygen", "-t", "ed25519", "-f", "key", "-C", "test")
        await keygen.shows(r"^Enter passphrase \(empty for no passphrase\):$")
        assert await prompt(keygen, secret=True)
        await keygen.line(PASSPHRASE)
        await keygen.shows(r"^Enter same passphrase again:$")
        await keygen.line(PASSPHRASE)
        await keygen.shows(r"randomart image")
        assert (await keygen.ended())["exit_code"] == 0
        assert PASSPHRASE.encode() not in await keygen.whole()
        assert files_with(installation.dir, PASSPHRASE) == []
        print_key = await terminals.start("ssh-keygen", "-y", "-f", "key")
        await print_key.shows(r"^Enter passphrase")
        await print_key.line(PASSPHRASE)
        await print_key.shows(r"^ssh-ed25519 AAAA")
        assert (await print_key.ended())["exit_code"] == 0, "it was the passphrase we typed"


async def prompt(session, *, secret, seconds=10):
    """Waits until the session is reported as waiting for an answer."""
    waited = session.installation.rest(
        "POST", f"/api/v1/executions/{session.id}/wait",
        {"until": "prompt", "at_most_ms": int(seconds * 1000)},
    )
    assert waited["why"] == "prompt", waited
    assert waited["prompt"]["secret"] is secret, waited
    return waited["prompt"]


async def test_a_password_prompt_echoes_nothing(each_installation):
    script = "import getpass; word = getpass.getpass('Secret word: '); print(len(word), 'letters')"
    async with Terminals.connect(each_installation) as terminals:
        program = await terminals.start(PYTHON, "-c", script)
        await program.shows(r"^Secret word:$")
        question = await prompt(program, secret=True)
        assert question["text"].strip() == "Secret word:"
        await program.line(PASSPHRASE)
        await program.shows(rf"^{len(PASSPHRASE)} letters$")
        await program.ended()
        assert PASSPHRASE not in (await program.screen()).text
        assert files_with(each_installation.dir, PASSPHRASE) == []


async def test_a_question_as_apt_asks_it(each_installation):
    script = (
        "printf 'After this operation, 12 MB of disk space will be used.\\n'"
        "; printf 'Do you want to continue? [Y/n] '; read answer; echo \"answer <$answer>\"; exit 5"
    )
    async with Terminals.connect(each_installation) as terminals:
        apt = await terminals.start("sh", "-c", script)
        await apt.shows(r"\[Y/n\]$")
        question = await prompt(apt, secret=False)
        assert question["kind"] == "confirmation" and question["text"].startswith("Do you want")
        await apt.line("n")
        await apt.shows(r"^answer <n>$")
        assert (await apt.ended())["exit_code"] == 5


# Signals by keys


@pytest.mark.parametrize(("key", "number"), [("ctrl-c", 2), ("ctrl-\\", 3)])
async def test_keys_are_signals_for_the_foreground(each_installation, key, number):
    async with Terminals.connect(each_installation) as terminals:
        sleeps = await terminals.start("sleep", "300")
        await sleeps.keys(key)
        status = await sleeps.ended()
        assert status["status"] == "exited" and status["exit_code"] is None, status
        assert status["signal"] == {2: "SIGINT", 3: "SIGQUIT"}[number]


async def test_a_job_is_stopped_and_goes_on_in_the_foreground(each_installation):
    async with Terminals.connect(each_installation) as terminals:
        bash = await terminals.start("bash", "--norc", "--noprofile", "-i")
        await bash.shows(r"[$#]$")
        await bash.line("echo go; cat > kept")
        await bash.shows("^go$")
        await bash.line("before")
        await bash.shows("^before$")
        await bash.keys("ctrl-z")
        await bash.shows(r"^\[1\]\+ +Stopped +.*cat > kept$")
        await bash.line("jobs -l; fg")
        await bash.line("after")
        await bash.keys("ctrl-d")
        await bash.shows(r"[$#]$")
        await bash.line("cat kept; exit 3")
        assert (await bash.ended())["exit_code"] == 3
        assert b"before\r\nafter" in await bash.whole()


# Terminals in terminals


async def test_tmux_inside_a_session(installation):
    async with Terminals.connect(installation) as terminals:
        tmux = await terminals.start("tmux", "-u", "-f", "/dev/null", "-S", installation.dir / "t", "new", "-s", "in", "sh")
        await tmux.shows(r"^\[in\]")
        assert (await tmux.screen()).alternate
        await tmux.line("echo inside $((40+2))")
        await tmux.shows(r"^inside 42$")
        await tmux.keys("ctrl-b")
        await tmux.type("%")
        await tmux.shows(r"│")
        await tmux.resize(132, 30)
        await tmux.shows(r"(?s)\A(?:[^\n]*\n){29}\[in\]")
        await tmux.keys("ctrl-b")
        await tmux.type(":")
        await tmux.shows(r"^:$")
        await tmux.line("kill-session")
        assert (await tmux.ended())["exit_code"] == 0


# Text


SPLIT = """
import os, sys, termios
def bytes_one_by_one(data):
    for at in range(len(data)):
        os.write(1, data[at:at + 1])
        termios.tcdrain(1)
for line in ["äöü ß", "漢字かな", "한국어", "😀🦀🎉", "e\\u0301o\\u0308", "┌─┐", "\\x1b[1;31mrot\\x1b[0m", "last"]:
    bytes_one_by_one(line.encode() + b"\\n")
input()
"""


async def test_characters_are_split_across_reads(each_installation):
    async with Terminals.connect(each_installation) as terminals:
        writer = await terminals.start(PYTHON, "-c", SPLIT)
        await writer.shows(r"^last$")
        rows = (await writer.screen()).rows
        assert rows[:4] == ["äöü ß", "漢字かな", "한국어", "😀🦀🎉"]
        assert rows[4] in ("e\u0301o\u0308", "éö"), "combining marks stay with their letters"
        assert rows[5:8] == ["┌─┐", "rot", "last"]
        expected = "äöü ß\r\n漢字かな\r\n한국어\r\n😀🦀🎉\r\n".encode()
        offset, pieces = 0, []
        while offset < len(expected):
            page = await writer.output(offset=offset, limit=5)
            assert page.offset == offset and 0 < len(page.data) <= 5
            pieces.append(page.data.decode())
            offset = page.next_offset
        assert "".join(pieces).encode()[:len(expected)] == expected, "no page cuts a character"
        await writer.close()


async def test_a_paste_comes_as_one_where_the_program_asks(each_installation):
    async with Terminals.connect(each_installation) as terminals:
        bash = await terminals.start("bash", "--norc", "--noprofile", "-i", env={"PS1": "> "})
        await bash.wrote(rb"\x1b\[\?2004h")
        await bash.paste("echo one\necho two")
        await bash.shows(r"echo two$")
        assert "\none\n" not in (await bash.screen()).text, "nothing runs before enter"
        await bash.keys("enter")
        await bash.shows(r"^one\ntwo$")
        await bash.paste("echo 'a\x1b[201~b'")
        await bash.keys("enter")
        await bash.shows(r"^a\[201~b$|^ab$")
        await bash.keys("ctrl-d")
        await bash.ended()
        cat = await terminals.start("cat")
        await cat.paste("plain\n")
        await cat.shows(r"^plain\nplain$")
        await cat.close()


async def test_one_write_is_one(installation):
    """Many write at once; no line has another's letters in it."""
    async with Terminals.connect(installation) as terminals:
        script = "stty -echo; echo ready; cat > got"
        cat = await terminals.start("sh", "-c", script)
        await cat.shows(r"^ready$")
        lines = [chr(ord("a") + n) * 3000 for n in range(20)]
        await asyncio.gather(*(cat.line(line) for line in lines))
        await cat.keys("ctrl-d")
        await cat.ended()
    got = (installation.work / "got").read_text().splitlines()
    assert sorted(got) == lines
