"""Screens are those of tmux: the same program, the same input, the same size, row by row."""

import json
import re
from dataclasses import dataclass, field

import pytest

from harness import Terminals, Tmux
from harness.repositories import two_hunks
from harness.terminal_scripts import Key, See, Size, Type, perform_both

pytestmark = pytest.mark.anyio

#: vim without anything of the person's or the distribution's.
VIM = ["vim", "-u", "NONE", "-i", "NONE", "-N", "-n", "--cmd", "set nomodeline ttybuiltin"]
LESS = ["less", "-R"]
NANO = ["nano", "--ignorercfiles"]
PYTHON = ["/usr/bin/python3", "-q", "-i", "-S", "-E"]

NUMBERS = "".join(f"line {n} {'=' * (n % 60)}\n" for n in range(1, 301))
TEXT = "First line\n\tA tab at the start\nplain text here\n" + "".join(
    f"{n:03} the quick brown fox jumps over the lazy dog, again and again and again\n"
    for n in range(1, 60)
)

#: Prints its argument as JSON text, and waits for input so that its screen stays.
SHOW = "import sys, json; sys.stdout.write(json.loads(sys.argv[1])); sys.stdout.flush(); input()"


@dataclass
class Scene:
    """A program, its input, and the text that shows that it has finished with it."""

    argv: list
    steps: list
    cols: int = 80
    rows: int = 24
    files: dict = field(default_factory=dict)
    before: str = ""


def show(text, *, cols=80, rows=24, steps=()):
    """A scene that only prints; `@end` is printed last."""
    return Scene(
        ["/usr/bin/python3", "-c", SHOW, json.dumps(text + "\r\n@end")],
        [See("@end"), *steps], cols, rows,
    )


def at_row(number, text):
    """An expression for a text at the start of a row, counted from 1."""
    return rf"\A(?:[^\n]*\n){{{number - 1}}}{text}"


SCENES = {
    "vim": Scene(
        [*VIM, "text"],
        [
            See("plain text"), Type("GoAdded at the end"), Key("escape"), See("Added"),
            Type("gg"), Type("/lazy"), Key("enter"), Type("3dd"), Type("ihello "), Key("escape"),
            See("hello"), Type(":set number"), Key("enter"), See(r"^ +1 First"),
            Type("50G"), See("^ +50 "), Type("v3j"), See("VISUAL"), Key("escape"), Type("zt"), Key("ctrl-g"), See(r"--\d+%--"),
        ],
        files={"text": TEXT},
    ),
    "vim-windows": Scene(
        [*VIM, "text"],
        [
            See("plain text"), Type(":split"), Key("enter"), Type(":vsplit"), Key("enter"),
            See(r"text +text"), Type("20G"), Key("ctrl-w"), Type("j"), Type("40Gzz"), See("^040"),
            Type(":echo 'done'"), Key("enter"), See("^done"),
        ],
        cols=100, rows=40, files={"text": TEXT},
    ),
    "vim-resize": Scene(
        [*VIM, "--cmd", "set laststatus=2", "text"],
        [
            See("plain text"), See(at_row(23, "text$")), Size(300, 50), See(at_row(49, "text$")), See("^045 "),
            Type(":set nowrap cc=250"), Key("enter"), Type("A" + "wide " * 45), Key("escape"), See("wide " * 40),
            Size(40, 12), See(at_row(11, r"text \[\+\]$")), Type(":set wrap"), Key("enter"), Type("gg"), See(r"\AFirst line"),
            Type("G"), See("^059 "), Size(100, 40), See(at_row(39, r"text \[\+\]$")), Type("gg"), See(r"\AFirst line"),
        ],
        files={"text": TEXT},
    ),
    "vim-wide": Scene(
        [*VIM, "text"],
        [See("日本"), Type("jo"), Type("äöü 漢字 done"), Key("escape"), See("漢字"), Type("0xxx"), Type("G"), See("end")],
        files={"text": "日本語のテキスト\nKorean 한국어 text\n" + "あ" * 60 + "\nend\n"},
    ),
    "less": Scene(
        [*LESS, "long"],
        [
            See("^line 1 "), Type(" "), See("^line 40 "), Type("/line 150"), Key("enter"), See("^line 150 "),
            Type("b"), See("^line 140"), Type("G"), See(r"\(END\)"), Type("g"), See("^line 2 "),
            Type("-N"), Key("enter"), See("^ +2 line 2"), Key("down", "down"), See("^ +25 line"), Type("100g"), See("^ +100 line 100"),
        ],
        files={"long": NUMBERS},
    ),
    "less-resize": Scene(
        [*LESS, "long"],
        [See("^line 1 "), Type("200g"), See("^line 200"), Size(100, 40), See("^line 238"), Size(60, 10), See("^line 200"), Type("j"), See("^line 20[5-9]|^line 210")],
        files={"long": NUMBERS},
    ),
    "nano": Scene(
        [*NANO, "text"],
        [
            See("GNU nano"), See("First line"), Type("typed "), See("^typed First"), Key("down", "end"), Type(" more"), See("start more"),
            Key("ctrl-w"), See("Search"), Type("045"), Key("enter"), See("^045"), Key("ctrl-k"), See("(?!.*^045)"), Key("ctrl-c"), See(r"line +\d+/"),
        ],
        files={"text": TEXT},
    ),
    "git-add-p": Scene(
        ["git", "-c", "color.ui=always", "-c", "core.pager=cat", "add", "-p"],
        [See(r"Stage this hunk.*\?$"), Type("?"), Key("enter"), See("print help"), See(r"(?s)help.*Stage this hunk.*\?$"), Type("y"), Key("enter"), See(r"\(2/2\) Stage")],
        cols=100, rows=40, before="git",
    ),
    "python": Scene(
        PYTHON,
        [
            See("^>>>$"), Type("def f(x):"), Key("enter"), See(r"^\.\.\.$"), Type("    return x * 2"), Key("enter", "enter"),
            Type("f(21)"), Key("enter"), See("^42"), Type("1/0"), Key("enter"), See("ZeroDivisionError"),
            Type("print('a' * 200)"), Key("enter"), See("a{80}"), Type("half a line"), Key("ctrl-c"), See("KeyboardInterrupt"), See(r"(?s)KeyboardInterrupt\n>>>"),
        ],
    ),
    "bash": Scene(
        ["bash", "--norc", "--noprofile"],
        [
            See(r"bash.*[$#]$"), Type("PS1='> '"), Key("enter"), See("^>"), Type("echo one two"), Key("left", "left", "left"), Type("x"), Key("ctrl-a"), Type("true; "), Key("end", "enter"), See("^one xtwo"),
            Type("echo " + "long " * 30 + "end"), See(r"end$"), Key("ctrl-a"), Type("X"), Key("ctrl-d"), Key("end"), Key("ctrl-u"), Type("seq 1 40"), Key("enter"), See("^40"),
            Key("ctrl-l"), Type("echo again"), Key("enter"), See("^again"),
        ],
    ),
}

PRINTED = {
    "colours": "".join(f"\x1b[{n}m{n:4}\x1b[0m" for n in [*range(30, 38), *range(90, 98), *range(40, 48)]) + "\x1b[38;5;196m256\x1b[48;2;1;2;3mtrue\x1b[m",
    "wide": "日本語テキスト|한국어|中文字符|ＦＵＬＬ|\r\n" + "漢" * 45 + "|\r\n" + "a" + "漢" * 45 + "|",
    "emoji": "😀|🎉|🚀|🦀|x\r\n" + "🦀" * 45 + "|",
    "combining": "e\u0301|a\u0308|n\u0303|o\u0302x|Z\u0336|\r\n" + "e\u0301" * 90 + "|",
    "boxes": "┌──┬──┐\r\n│ab│cd│\r\n├──┼──┤\r\n│ef│gh│\r\n└──┴──┘\r\n█▓▒░▀▄■□▲▼◆○●",
    "line-drawing": "\x1b(0lqqwqqk\r\nx  x  x\r\nmqqvqqj\x1b(B normal q\r\n\x0e no\x0f\x1b)0\x0elqk\x0f lqk",
    "cursor": "\x1b[5;10Hfive-ten\x1b[2A up\x1b[3D<\x1b[10;1Hten\x1b[1;1Htop\x1b[6;40H\x1b[1Kleft gone\x1b[12;1H",
    "erase": "".join(f"\x1b[{n};1H{'#' * 80}" for n in range(1, 15)) + "\x1b[5;40H\x1b[K\x1b[6;40H\x1b[1K\x1b[7;40H\x1b[2K\x1b[9;40H\x1b[J\x1b[3;40H\x1b[5X\x1b[2;40H\x1b[5P\x1b[4;40H\x1b[5@\x1b[16;1H",
    "lines": "".join(f"\x1b[{n};1Hrow {n}" for n in range(1, 20)) + "\x1b[5;1H\x1b[2L\x1b[10;1H\x1b[3M\x1b[20;1H",
    "region": "\x1b[5;10r" + "\x1b[5;1H" + "".join(f"in region {n}\r\n" for n in range(20)) + "\x1b[r\x1b[15;1Houtside\r\n",
    "region-reverse": "\x1b[5;10r\x1b[5;1H" + "".join(f"\x1bMreverse {n}\r" for n in range(4)) + "\x1b[r\x1b[15;1H",
    "origin": "\x1b[5;10r\x1b[?6h\x1b[1;1Horigin\x1b[99;1Hlast of region\x1b[?6l\x1b[r\x1b[15;1H",
    "scroll": "".join(f"row {n}\r\n" for n in range(20)) + "\x1b[3S\x1b[1;1Hup three\x1b[2T\x1b[20;1H",
    "tabs": "a\tb\tc\r\n\x1b[3g\x1b[1;5H\x1bH\x1b[1;20H\x1bH\r\n\tx\ty\tz\x1b[Zback\r\n",
    "wrap": "x" * 79 + "yz\r\n" + "x" * 80 + "\rover\r\n" + "\x1b[?7l" + "n" * 100 + "E\x1b[?7h\r\n",
    "save": "\x1b[3;3H\x1b7saved\x1b[10;10Hfar\x1b8back\x1b[s\x1b[12;1Hx\x1b[uagain\x1b[15;1H",
    "alternate": "main screen\r\n\x1b[?1049h\x1b[Halternate\x1b[5;5Hthere\x1b[?1049l and main again",
    "in-alternate": "main\r\n\x1b[?1049h\x1b[2J\x1b[Halternate\r\n",
    "backspace": "abc\b\bX\r\nabc\x7fd\r\n\x1b[1;1H\b\bY\x1b[4;1H",
    "insert": "abcdef\r\x1b[4hXYZ\x1b[4l\r\nend",
    "repeat": "ab\x1b[10b|\r\n-\x1b[79b",
    "controls": "a\x00b\x05c\x07d\x0be\x0cf\x1b[3Cg\x1bEnext\x1bDindex\r\n",
    "strings": "\x1b]0;title\x07a\x1b]8;;http://example.com\x1b\\link\x1b]8;;\x1b\\b\x1bP+q544e\x1b\\c\x1b_app\x1b\\d\x1b^pm\x1b\\e\r\n",
    "unknown": "a\x1b[?9999hb\x1b[>4;2mc\x1b[=5ud\x1b[12345;1;1;1;1zf\x1b[1 qg\x1b[!ph\r\n",
    "vs16": "❤️|☎️|✔️|#️⃣|x",
    "flags": "🇩🇪🇫🇷|x",
    "skin": "👍🏽|x",
    "scripts": "한글|x\r\nภาษาไทย|ก็|x\r\nहिन्दी|क्षि|x\r\nالعربية|x\r\nעִבְרִית|x",
    "ambiguous": "αβγ±×÷§°…—“”|x\r\nｶﾀｶﾅ|x\r\na\u00adb|x\r\n\ue0b0\uf111|x",
    "marks-on-wide": "漢\u0301|x\r\n\u0301a|x",
    "c1": "a\u009b31mb\u0085c|",
    "alignment": "\x1b#8\x1b[10;1H",
    "region-lines-outside": "\x1b[5;10r\x1b[12;1H\x1b[3Lx\x1b[r\x1b[20;1H",
    "reverse-index-at-the-top": "\x1b[H\x1bMx\x1bMy",
    "national": "\x1b(A#\x1b(B#",
    "cancelled": "a\x1b[3\x18b\x1b[3\x1ac\r\n\x1b[1\x1b[31mx\x1b[m\r\na\x1b[\n3Cb",
    "far": "\x1b[99999;99999Hx\x1b[20;1H",
    "old-alternate": "main\x1b[?47h\x1b[Halt\x1b[?47lback\r\n",
    "device-strings": "a\x1bP1$r0m\x1b\\b\x1bPxx\x07yy\x1b\\c",
    "underlines": "\x1b[4:3munder\x1b[58:2::1:2:3mc\x1b[m|",
    "reset": "text\x1b[31m\x1b[5;5H\x1b(0\x1bcafter reset lqk\r\n",
    "full": "".join(f"row {n}\r\n" for n in range(100)),
    "full-no-newline": "".join(f"row {n}\r\n" for n in range(23)) + "z" * 80,
}



async def play(installation, scene):
    """The scene on Ostler's screen and on the oracle's."""
    for name, text in scene.files.items():
        (installation.work / name).write_text(text)
    if scene.before == "git":
        two_hunks(installation)
    env = installation.env(GIT_CONFIG_NOSYSTEM=1)
    size = {"cols": scene.cols, "rows": scene.rows}
    async with Terminals.connect(installation) as terminals:
        session = await terminals.start(*scene.argv, **size)
        with Tmux(scene.argv, installation.work, env, **size) as tmux:
            await perform_both(session, tmux, scene.steps)
            assert (await session.screen()).alternate == tmux.alternate()
        await session.close()


@pytest.mark.parametrize("name", SCENES)
async def test_a_program_looks_as_in_tmux(installation, name):
    await play(installation, SCENES[name])


@pytest.mark.parametrize("name", PRINTED)
async def test_what_is_printed_looks_as_in_tmux(shared_installation, name):
    await play(shared_installation, show(PRINTED[name]))


@pytest.mark.parametrize("name", ["boxes", "wrap", "full", "combining"])
async def test_what_is_printed_looks_as_in_tmux_after_growing(shared_installation, name):
    """Only growing: where lines go that leave a smaller screen, terminals differ."""
    await play(shared_installation, show(PRINTED[name], steps=[Size(100, 40), Type("x"), See("x$")]))


@pytest.mark.parametrize(("program", "rows"), [
    ("top", [r"^top - ", r"^Tasks:", r"^%Cpu\(s\):", r"^[MKG]iB Mem", r"^[MKG]iB Swap"]),
    ("htop", [r"Tasks: *\d+", r"Load average:", r"Uptime:", r"F1Help"]),
])
async def test_a_program_that_never_stands_still_has_the_same_shape(installation, program, rows):
    """Numbers change between two reads; positions do not."""
    async with Terminals.connect(installation) as terminals:
        session = await terminals.start(program, cols=100, rows=40)
        with Tmux([program], installation.work, installation.env(), cols=100, rows=40) as tmux:
            for row in rows:
                await session.shows(row)
                tmux.shows(row)
            ours, theirs = (await session.screen()).rows, tmux.rows()
            for row in rows:
                assert lines_of(row, ours) == lines_of(row, theirs), row
            header = r"PID.?.?USER +PRI|PID USER +PR"
            assert lines_of(header, ours) == lines_of(header, theirs)
            assert re.split(r"\d+", ours[0])[0] == re.split(r"\d+", theirs[0])[0]
        await session.close()


def lines_of(pattern, rows):
    """The rows an expression is found in, by their numbers."""
    return [number for number, row in enumerate(rows) if re.search(pattern, row)]


#: Where tmux is no oracle: the output, the expected screen, and the screen of tmux.
BEYOND_TMUX = {
    "half a wide character is overwritten: the other half goes too (tmux keeps it)":
        ("漢\bX|y", [" X|y"]),
    "half a wide character is erased (tmux keeps it)":
        ("漢字漢字\x1b[1;4H\x1b[K", ["漢"]),
    "half a wide character is deleted (tmux keeps it)":
        ("漢字漢字\x1b[1;2H\x1b[P", [" 字漢字"]),
    "bytes that are no UTF-8 are shown as such (tmux drops them)":
        ("a\udcffb\udce0\udca0c", ["a\ufffdb\ufffdc"]),
    "families of emoji stay whole (tmux keeps nine code points of a cell)":
        ("👨\u200d👩\u200d👧\u200d👦|a", ["👨\u200d👩\u200d👧\u200d👦|a"]),
    "many marks on one letter (tmux keeps some)":
        ("a" + "\u0301" * 20 + "|x", ["a" + "\u0301" * 20 + "|x"]),
    "backspace where a line is full (tmux counts one column more)":
        ("x" * 80 + "\b\bY", ["x" * 77 + "Yxx"]),
    "HPR and VPR (tmux does not know them)":
        ("a\x1b[3ab\x1b[2ec", ["a   b", "", "     c"]),
    "CHT (tmux does not know it)":
        ("a\x1b[2Ib", ["a" + " " * 15 + "b"]),
    "REP of a wide character (tmux does not repeat it)":
        ("漢\x1b[3b|", ["漢漢漢漢|"]),
    "mode 1048 saves the cursor (tmux does not know it)":
        ("ab\x1b[?1048h\x1b[10;10Hx\x1b[?1048ly", ["aby"]),
    "a soft reset ends origin mode and leaves the cursor (tmux does not know it)":
        ("\x1b[5;10r\x1b[?6h\x1b[!pabc\x1b[20;1H", ["", "", "", "", "abc"]),
}


@pytest.mark.parametrize("name", BEYOND_TMUX)
async def test_where_tmux_is_no_oracle(shared_installation, name):
    text, rows = BEYOND_TMUX[name]
    # The end is at the bottom, where none of them prints.
    encoded = (text + "\x1b[24;1H@end").encode("utf-8", "surrogateescape")
    script = "import sys; sys.stdout.buffer.write(bytes.fromhex(sys.argv[1])); sys.stdout.flush(); input()"
    async with Terminals.connect(shared_installation) as terminals:
        session = await terminals.start("/usr/bin/python3", "-c", script, encoded.hex())
        await session.shows("@end")
        assert (await session.screen()).rows[:len(rows)] == rows
        await session.close()
