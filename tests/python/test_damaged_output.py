"""Output in damaged files is missing, and everything that passes output on says so."""

import json
import os
import subprocess

import pytest

from harness import until

pytestmark = pytest.mark.anyio

STORAGE = 74
#: Printed in two reads: each one can be damaged alone.
FIRST, REST = b"first\n", b"second\nthird\nfourth\n"
SCRIPT = f"echo first; until [ -e go ]; do sleep .02; done; printf '{REST.decode()}'; until [ -e end ]; do sleep .02; done"


def change(path, old, new):
    data = path.read_bytes()
    assert old in data
    path.write_bytes(data.replace(old, new))


def change_everything(path):
    path.write_bytes(bytes(byte ^ 0x5A for byte in path.read_bytes()))


def one_byte(directory):
    change(directory / "output.0.seg", b"third", b"thirD")


#: What is done to the files, and what can be read after it.
HARMS = {
    "one-byte": (one_byte, FIRST),
    "index-emptied": (lambda directory: os.truncate(directory / "output.0.idx", 0), b""),
    "index-changed": (lambda directory: change_everything(directory / "output.0.idx"), b""),
    "index-removed": (lambda directory: (directory / "output.0.idx").unlink(), b""),
    "output-emptied": (lambda directory: os.truncate(directory / "output.0.seg", 0), b""),
    "output-changed": (lambda directory: change_everything(directory / "output.0.seg"), b""),
    "output-cut": (lambda directory: os.truncate(directory / "output.0.seg", len(FIRST)), FIRST),
}


def begin(installation, script=SCRIPT):
    pid = installation.cli("run", "-d", "--", "sh", "-c", script).stdout.decode().strip()
    print_rest(installation, pid)
    return pid


def print_rest(installation, pid):
    until(lambda: installation.cli("logs", pid, "--raw").stdout == FIRST, 10, "the first line")
    (installation.work / "go").touch()
    until(lambda: installation.cli("logs", pid, "--raw").stdout == FIRST + REST, 10, "the other lines")


def files(installation, pid):
    return installation.state / "executions" / installation.json("info", pid)["uuid"]


def follow(installation, pid):
    words = installation.argv("logs", pid, "--follow", "--no-time")
    return subprocess.Popen(words, cwd=installation.work, env=installation.env(), stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@pytest.fixture(params=HARMS)
def damaged(installation, request):
    """An ended command whose files were damaged while no daemon ran: its id, and what can be read of it."""
    pid = begin(installation)
    return pid, end_and_harm(installation, pid, request.param)


def end_and_harm(installation, pid, harm):
    harm, readable = HARMS[harm]
    (installation.work / "end").touch()
    installation.cli("wait", pid)
    directory = files(installation, pid)
    installation.kill_daemon()
    harm(directory)
    assert installation.json("info", pid)["output_bytes"] == len(FIRST + REST)
    return readable


def test_every_verb_says_so(installation, damaged):
    pid, readable = damaged
    missing = len(FIRST + REST) - len(readable)
    for words in (["logs", "--no-time"], ["logs", "--raw"], ["logs", "--no-time", "--follow"], ["logs", "--raw", "--follow"],
                  ["logs", "--json"], ["logs", "--no-time", "--stream", "stdout"]):
        done = installation.cli(words[0], pid, *words[1:], check=False)
        assert done.returncode == STORAGE, (words, done)
        assert f"{missing} bytes of its output are missing".encode() in done.stderr, (words, done.stderr)
        assert b"error[storage_error]" in done.stderr, (words, done.stderr)
        if "--json" not in words:
            assert done.stdout == readable, words
    for words in (["logs", "--tail", "2"], ["logs", "--grep", "third"]):
        assert installation.cli(words[0], pid, *words[1:], check=False).returncode == STORAGE, words
    for format in ("jsonl", "yaml", "avro", "text", "asciicast", "asciicast-v3", "sarif", "junit"):
        done = installation.cli("export", pid, "--format", format, check=False)
        assert done.returncode == STORAGE, (format, done)


def test_who_asks_for_what_can_be_read_gets_it_without_an_error(installation, damaged):
    pid, readable = damaged
    if readable:
        assert installation.cli("logs", pid, "--head", "1", "--no-time").stdout == readable


def test_rest_says_so(installation, damaged):
    pid, readable = damaged
    whole = len(FIRST + REST)
    base = f"/api/v1/executions/{pid}"
    page = installation.rest("GET", f"{base}/output")
    assert [line["text"] for line in page["lines"]] == readable.decode().splitlines()
    assert page["gap_after"] == {"from": len(readable), "to": whole, "lost_bytes": whole - len(readable)}, page
    output = installation.rest("GET", f"/api/process/{pid}/output")
    assert [entry["text"] for entry in output["stdout"]] == readable.decode().splitlines()
    assert output["lost_bytes"] == whole - len(readable), output
    assert page.get("damaged_from") == output.get("damaged_from")
    numbered = installation.rest("GET", f"{base}/output/lines")
    assert "damaged_from" in numbered or numbered["gap_after"]["lost_bytes"] == whole - len(readable), numbered
    for query in ("", "?follow=true"):
        frames = [json.loads(line) for line in installation.rest("GET", f"{base}/raw{query}", raw=True).splitlines()]
        assert sum(frame["gap"]["lost_bytes"] for frame in frames if "gap" in frame) == whole - len(readable), frames


@pytest.mark.parametrize("harm", HARMS)
async def test_an_agent_is_informed(installation, harm):
    async with installation.agent(args=["--tools", "core,command"]) as agent:
        pid = await agent.start_sh(SCRIPT)
        print_rest(installation, pid)
        end_and_harm(installation, pid, harm)
        for tool, arguments in (("process", {"action": "output", "ids": [pid]}), ("command_ps_logs", {"pid": pid})):
            reply = await agent.call(tool, **arguments)
            assert "journal is damaged" in reply.text or "of the output were lost" in reply.text, (tool, reply.text)


def test_a_follower_is_told_and_goes_on(installation):
    """A running command prints on after the damage."""
    pid = begin(installation, SCRIPT + "; echo fifth; until [ -e stop ]; do sleep .02; done; echo last")
    (installation.work / "end").touch()
    until(lambda: b"fifth" in installation.cli("logs", pid, "--raw").stdout, 10, "the fifth line")
    one_byte(files(installation, pid))
    follower = follow(installation, pid)
    assert follower.stdout.readline() == FIRST
    missing = len(REST)
    assert f"{missing} bytes of output are gone".encode() in follower.stderr.readline()
    assert follower.stdout.readline() == b"fifth\n"
    (installation.work / "stop").touch()
    printed, errors = follower.communicate(timeout=30)
    assert (follower.returncode, printed) == (STORAGE, b"last\n"), errors
    assert f"{missing} bytes of its output are missing".encode() in errors


#: What is done to the files, and what can be read after it, of three reads.
MIDDLE_HARMS = {
    "middle": (one_byte, FIRST + b"fifth\n"),
    "first": (lambda directory: change(directory / "output.0.seg", b"first", b"First"), REST + b"fifth\n"),
    "both": (lambda directory: (change(directory / "output.0.seg", b"first", b"First"), one_byte(directory)), b"fifth\n"),
}


@pytest.fixture(params=MIDDLE_HARMS)
def damaged_before_its_end(installation, request):
    """A running command, output of which was damaged before the last line that it printed; what can be read of it."""
    harm, readable = MIDDLE_HARMS[request.param]
    pid = begin(installation, SCRIPT + "; echo fifth; until [ -e stop ]; do sleep .02; done; echo last")
    (installation.work / "end").touch()
    until(lambda: b"fifth" in installation.cli("logs", pid, "--raw").stdout, 10, "the fifth line")
    installation.kill_daemon()
    harm(files(installation, pid))
    return pid, readable


def test_what_follows_damage_is_read(installation, damaged_before_its_end):
    """One damaged read hides nothing else, for no reader, nor does the next daemon cut what follows it."""
    pid, readable = damaged_before_its_end
    (installation.work / "stop").touch()
    installation.cli("wait", pid)
    readable += b"last\n"
    missing = len(FIRST + REST + b"fifth\nlast\n") - len(readable)
    for words in (["--no-time"], ["--raw"], ["--no-time", "--follow"], ["--no-time", "--stream", "stdout"]):
        done = installation.cli("logs", pid, *words, check=False)
        assert (done.returncode, done.stdout) == (STORAGE, readable), (words, done)
        assert f"{missing} bytes of its output are missing".encode() in done.stderr, (words, done.stderr)
    for words in (["--tail", "2"], ["--grep", "fifth|last"]):
        done = installation.cli("logs", pid, "--no-time", *words, check=False)
        assert done.stdout.endswith(b"fifth\nlast\n"), (words, done)
    base = f"/api/v1/executions/{pid}"
    lines = installation.rest("GET", f"{base}/output/lines")["lines"]
    texts = readable.decode().splitlines()
    assert [line["text"] for line in lines] == texts
    assert lines[-1]["number"] == len((FIRST + REST).splitlines()) + 2, lines
    frames = [json.loads(line) for line in installation.rest("GET", f"{base}/raw", raw=True).splitlines()]
    assert sum(frame["gap"]["lost_bytes"] for frame in frames if "gap" in frame) == missing, frames
    output = installation.rest("GET", f"/api/process/{pid}/output")
    assert [entry["text"] for entry in output["stdout"]] == texts and output["lost_bytes"] == missing, output


@pytest.mark.limit(240)
def test_what_is_missing_between_two_files_is_lost(installation):
    """An output of several files, compressed, is whole under the next daemon; without one of them, it is not."""
    size = 150_000_000
    pid = installation.cli("run", "-d", "--", "sh", "-c", f"yes | head -c {size}").stdout.decode().strip()
    installation.cli("wait", pid)
    directory = files(installation, pid)
    until(lambda: (directory / "output.1.seg.zst").exists() and not (directory / "output.1.seg").exists(), 60, "compression")
    installation.kill_daemon()
    assert len(installation.cli("logs", pid, "--raw").stdout) == size
    installation.kill_daemon()
    (directory / "output.1.idx").unlink()
    done = installation.cli("logs", pid, "--raw", check=False)
    missing = size - len(done.stdout)
    assert missing > 50_000_000 and done.returncode == STORAGE, done.stderr
    assert f"{missing} bytes of its output are missing".encode() in done.stderr
    assert installation.cli("export", pid, check=False).returncode == STORAGE


def test_what_is_whole_or_was_cleared_is_not_lost(installation):
    pid = begin(installation, SCRIPT + "; printf last")
    for words in (["logs"], ["logs", "--raw"], ["export"], ["logs", "--tail", "1"]):
        assert installation.cli(words[0], pid, *words[1:]).returncode == 0, words
    follower = follow(installation, pid)
    installation.cli("clear", pid)
    (installation.work / "end").touch()
    assert follower.communicate(timeout=30)[0].endswith(b"last\n") and follower.returncode == 0
    for _ in range(2):
        for words in (["logs"], ["logs", "--raw"], ["export"]):
            done = installation.cli(words[0], pid, *words[1:])
            assert done.returncode == 0, (words, done)
        output = installation.rest("GET", f"/api/process/{pid}/output")
        assert "lost_bytes" not in output and "damaged_from" not in output, output
        installation.kill_daemon()
