"""Commands, labels, names, paths and output cannot control a person's terminal; a pipe gets them byte for byte."""

import json
import re

import pytest

from harness import TerminalUser
from harness.isolation_client import INTERFACES, IsolationOptions

pytestmark = pytest.mark.anyio

#: Erases, moves, retitles, conceals, answers back, reorders; C0, DEL, C1 as UTF-8 and as bytes.
TRICKS = ("\x1b[2J\x1b[1A\x1b]0;owned\x07\x1b[8m\x1b[6n\x1bc\x08\x7f\r"
          "\u0085\u009b2J\u202e\u2066\u2069\u2028\u200b")
#: Colours: a safe subset of SGR, which `logs` and our own words may use.
COLOURS = re.compile(rb"\x1b\[[0-9;:]*m")
RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def shown(installation, *args, code=0):
    """What a command writes to a terminal."""
    with TerminalUser(installation, *args, cols=400) as person:
        left = person.wait_exit()
        seen = person.seen
    assert code is None or left == code, (left, seen)
    return seen


def harmless(seen, colours=True):
    """Nothing is left that a terminal obeys but ends of lines, tabs and colours."""
    if colours:
        seen = COLOURS.sub(b"", seen)
    text = seen.replace(b"\r\n", b"\n").decode("utf-8")
    found = RAW.search(text)
    assert found is None, (found, text[max(found.start() - 40, 0):found.end() + 40])
    return text


@pytest.fixture
def control_sequences(each_installation):
    """An installation with an execution whose every text contains control sequences; its id."""
    script = "printf '%b' 'plain\\n\\033[31mred\\033[0m\\n\\033[2Jgone\\n\\033[8mhidden\\n\\302\\2332J\\n\\342\\200\\256odd\\ntab\\there\\r\\n\\351'"
    # Labels with control characters are refused; those that reorder are not.
    done = each_installation.cli("run", "--detach", "--label", "label\u202e", "--description", f"words{TRICKS}", "--",
                         "sh", "-c", script, f"argument{TRICKS}")
    id_ = done.stdout.decode().strip()
    each_installation.cli("wait", id_, check=False)
    return each_installation, id_


@pytest.mark.parametrize("verb", [
    ("info",), ("ps", "-a"), ("ps", "-a", "--no-trunc"), ("info", "--json"), ("ps", "-a", "--json"), ("logs",),
    ("logs", "--no-time"), ("logs", "--json"), ("logs", "--grep", "."), ("wait",),
], ids=" ".join)
def test_text_about_a_command_controls_no_terminal(control_sequences, verb):
    installation, id_ = control_sequences
    words = verb if verb[0] == "ps" else (verb[0], id_, *verb[1:])
    text = harmless(shown(installation, *words))
    if verb[0] in ("info", "ps") and "--json" not in verb:
        assert r"label\u{202e}" in text, text
    if "--no-trunc" in verb or verb == ("info",):
        assert r"argument\x1b[2J\x1b[1A" in text and r"\r\u{85}\u{9b}2J\u{202e}" in text, text
    if "--json" in verb and verb[0] != "logs":
        # The same document, and nothing lost of it.
        assert TRICKS in json.loads(text)["description"] if verb[0] == "info" else json.loads(text)


def test_logs_show_colours_and_write_out_the_rest(control_sequences):
    installation, id_ = control_sequences
    seen = shown(installation, "logs", id_, "--no-time")
    assert b"\x1b[31mred\x1b[0m" in seen, seen
    text = harmless(seen)
    for line in (r"\x1b[2Jgone", r"\x1b[8mhidden", r"\u{9b}2J", r"\u{202e}odd", "tab\there", r"\xe9"):
        assert line in text, (line, text)
    assert r"here\r" not in text, "a carriage return before the end of a line shows nothing"


def test_logs_without_colours_where_they_are_not_wanted(control_sequences):
    installation, id_ = control_sequences
    with TerminalUser(installation, "logs", id_, "--no-time", env={"NO_COLOR": "1"}) as person:
        person.wait_exit()
        assert b"\x1b" not in person.seen and b"red" in person.seen, person.seen


def test_a_pipe_and_raw_get_every_byte(control_sequences):
    installation, id_ = control_sequences
    raw = installation.rest("GET", f"/api/v1/executions/{id_}/export?format=text", raw=True)
    assert b"\x1b[2Jgone" in raw and raw.endswith(b"\xe9")
    assert installation.cli("logs", id_, "--raw").stdout == raw
    lines = installation.cli("logs", id_, "--no-time").stdout
    assert lines.rstrip(b"\n") == raw.replace(b"\r\n", b"\n") or lines.rstrip(b"\n") == raw
    on_terminal = shown(installation, "logs", id_, "--raw")
    assert b"\x1b[2Jgone" in on_terminal and b"\xc2\x9b2J" in on_terminal


@pytest.mark.parametrize("words", [
    ("info", f"no{TRICKS}"), ("run", "--", f"no{TRICKS}"), ("run", f"--no{TRICKS}", "x"), (f"verb{TRICKS}",),
    ("run", "--cwd", f"/no{TRICKS}", "--", "true"), ("service", "why", f"no{TRICKS}"), ("approve", f"no{TRICKS}"),
    ("policy", "test", f"/no{TRICKS}"), ("logs", f"no{TRICKS}"), ("diff", f"no{TRICKS}"), ("service", "logs", f"no{TRICKS}"),
    ("--config", f"/no{TRICKS}", "ps"),
], ids=lambda words: " ".join(words).split("\x1b")[0])
def test_errors_control_no_terminal(each_installation, words):
    text = harmless(shown(each_installation, *words, code=None))
    # Many do not repeat what they were given; those that do write it out.
    assert "error" in text and ("2J" not in text or r"\x1b[2J" in text), text
    piped = each_installation.cli(*words, check=False)
    assert "\x1b" not in (piped.stdout + piped.stderr).decode(), "whoever reads a pipe may show it on a terminal"


def test_an_error_cannot_pass_for_a_line_of_ours(each_installation):
    done = each_installation.cli("info", "x\nhint: run `ostler approve i1`", check=False)
    lines = done.stderr.decode().splitlines()
    assert not any(line.startswith("hint: run") for line in lines), lines


def test_a_session_a_service_and_files_control_no_terminal(each_installation):
    """What `service` and `workspace` show."""
    name = "web\u202e"
    script = "printf 'up \\033]0;owned\\007\\n'; exec sleep 60"
    each_installation.cli("service", "start", "--name", "web", "--ready-pattern", "up", "--", "sh", "-c", script, name, check=False)
    for words in (("service", "ps", "-a"), ("service", "why", "web"), ("service", "logs", "web"), ("ps", "-a")):
        harmless(shown(each_installation, *words, code=None))
    harmless(shown(each_installation, "service", "stop", "--force", "web", code=None))


@pytest.mark.parametrize("verb", ["diff", "workspace", "commit"])
def test_changes_control_no_terminal(each_installation, verb):
    script = "printf 'one\\033[2J\\342\\200\\256\\n' > \"$(printf 'file\\033[2J')\""
    result = INTERFACES["cli"](each_installation, ["sh", "-c", script], IsolationOptions(workspace="overlay", labels=("kept",)))
    assert result.exit_code == 0, result.text
    id_ = each_installation.json("ps", "-a")[0]["id"]
    if verb == "diff":
        piped = each_installation.cli("diff", id_).stdout
        assert b"one\x1b[2J" in piped, piped
    text = harmless(shown(each_installation, verb, id_), colours=False)
    assert "file" in text and "2J" in text, text
