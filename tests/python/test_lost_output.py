"""Lost output is reported by every verb that passes it on; output dropped on purpose is not a loss."""

import json
import re
import signal
import subprocess

import pytest

from harness import TerminalUser, until
from harness.disk import fill

pytestmark = [pytest.mark.anyio, pytest.mark.small_disk]

#: More than the disk and the ring in memory hold.
LINES = 1_000_000
WHOLE = "".join(f"{n}\n" for n in range(1, LINES + 1)).encode()
STORAGE = 74


@pytest.fixture
def lossy_execution(small_disk):
    """An ended command of which the middle was lost: its id."""
    filler = fill(small_disk.disk, leave=512 << 10)
    script = f"seq {LINES}; until [ -e go ]; do sleep .02; done; echo last"
    pid = small_disk.cli("run", "-d", "--", "sh", "-c", script).stdout.decode().strip()
    until(lambda: small_disk.json("info", pid)["output_bytes"] >= len(WHOLE), 20, "the output")
    filler.unlink()
    (small_disk.work / "go").touch()
    small_disk.cli("wait", pid)
    return pid


def lost(installation, pid):
    info = installation.json("info", pid)
    return info["trimmed_bytes"]


def test_every_verb_that_passes_it_on_says_so(small_disk, lossy_execution):
    missing = lost(small_disk, lossy_execution)
    assert 0 < missing < len(WHOLE)
    for words in (["logs"], ["logs", "--raw"], ["logs", "--json"], ["export", "--format", "text"], ["export"],
                  ["export", "--format", "avro"], ["logs", "--follow"]):
        done = small_disk.cli(words[0], lossy_execution, *words[1:], check=False)
        assert done.returncode == STORAGE, (words, done.returncode, done.stderr)
        assert f"{missing} bytes of its output are missing".encode() in done.stderr, (words, done.stderr)
        assert b"error[storage_error]" in done.stderr, done.stderr
    text = small_disk.cli("export", lossy_execution, "--format", "text", check=False).stdout
    assert len(text) + missing == len(WHOLE) + len(b"last\n"), "what is there is exported all the same"


def test_who_asks_for_what_is_there_gets_it_without_an_error(small_disk, lossy_execution):
    assert small_disk.cli("logs", lossy_execution, "--tail", "5", "--no-time").stdout.endswith(b"last\n")
    assert small_disk.cli("logs", lossy_execution, "--head", "3", "--no-time").stdout == b"1\n2\n3\n"


def test_an_export_to_a_file_is_written_and_reported(small_disk, lossy_execution):
    done = small_disk.cli("export", lossy_execution, "--format", "text", "--output", "out", check=False)
    assert done.returncode == STORAGE, done.stderr
    assert (small_disk.work / "out").stat().st_size + lost(small_disk, lossy_execution) == len(WHOLE) + len(b"last\n")


def test_what_a_person_dropped_is_no_loss(small_disk):
    pid = small_disk.cli("run", "-d", "--", "seq", "1000").stdout.decode().strip()
    small_disk.cli("wait", pid)
    small_disk.cli("clear", pid)
    for words in (["logs"], ["logs", "--raw"], ["export"]):
        done = small_disk.cli(words[0], pid, *words[1:])
        assert done.returncode == 0, (words, done.stderr)
    assert b"are gone" in small_disk.cli("logs", pid).stderr


def test_rest_tells_each_gap_and_what_of_it_was_lost(small_disk, lossy_execution):
    missing = lost(small_disk, lossy_execution)
    base = f"/api/v1/executions/{lossy_execution}"
    frames = [json.loads(line) for line in small_disk.rest("GET", f"{base}/raw", raw=True).splitlines()]
    gaps = [frame["gap"] for frame in frames if "gap" in frame]
    assert sum(gap["lost_bytes"] for gap in gaps) == missing, gaps
    assert all(gap["to"] - gap["from"] == gap["lost_bytes"] for gap in gaps), gaps
    gaps, query = [], "?limit=100000"
    while True:
        page = small_disk.rest("GET", f"{base}/output{query}")
        gaps += [page[name] for name in ("gap", "gap_after") if name in page]
        if not page["more"]:
            break
        query = f"?limit=100000&cursor={page['next']}"
    assert sum(gap["lost_bytes"] for gap in gaps) == missing, gaps
    assert page["lines"][-1]["text"] == "last"


def test_the_web_interface_of_000_shows_what_lies_behind_a_gap(small_disk, lossy_execution):
    printed = [entry["text"] for entry in small_disk.rest("GET", f"/api/process/{lossy_execution}/output")["stdout"]]
    assert printed[0] == "1" and int(printed[-1]) > len(printed), "lines were lost before this one"


def test_what_is_gone_at_the_end_is_a_gap_at_the_end(small_disk):
    fill(small_disk.disk, leave=512 << 10)
    pid = small_disk.cli("run", "-d", "--", "seq", str(LINES)).stdout.decode().strip()
    small_disk.cli("wait", pid)
    missing = lost(small_disk, pid)
    small_disk.kill_daemon()
    done = small_disk.cli("logs", pid, check=False)
    assert done.returncode == STORAGE and f"{missing} bytes of its output".encode() in done.stderr, done.stderr


async def test_an_agent_is_informed(small_disk):
    async with small_disk.agent(args=["--tools", "core,command"]) as agent:
        filler = fill(small_disk.disk, leave=512 << 10)
        script = f"seq {LINES}; until [ -e go ]; do sleep .02; done; echo last"
        pid = await agent.start_sh(script)
        until(lambda: small_disk.json("info", pid)["output_bytes"] >= len(WHOLE), 20, "the output")
        filler.unlink()
        (small_disk.work / "go").touch()
        small_disk.cli("wait", pid)
        missing = lost(small_disk, pid)
        assert missing
        for tool, arguments in (("process", {"action": "output", "ids": [pid]}), ("command_ps_logs", {"pid": pid})):
            reply = await agent.call(tool, **arguments)
            assert f"{missing} bytes" in reply.text and "lost" in reply.text, (tool, reply.text[-600:])


def in_terminal(installation):
    """A terminal session that prints on a signal: its id."""
    waits = "until [ -e {} ]; do sleep .02; done"
    script = f"echo ready; {waits.format('go')}; seq {LINES}; {waits.format('end')}; echo last"
    return installation.cli("run", "-d", "-t", "--", "sh", "-c", script).stdout.decode().strip()


def printed(installation, pid):
    """Whether everything was printed but its last line."""
    return installation.json("info", pid)["output_bytes"] >= len(WHOLE) + LINES


def test_a_pipe_from_a_terminal_that_was_stopped_meanwhile_says_what_it_missed(small_disk):
    fill(small_disk.disk, leave=512 << 10)
    pid = in_terminal(small_disk)
    with subprocess.Popen(
        small_disk.argv("attach", "--watch", pid), cwd=small_disk.work, env=small_disk.env(), stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as attached:
        got = attached.stdout.read(1)
        attached.send_signal(signal.SIGSTOP)
        (small_disk.work / "go").touch()
        until(lambda: printed(small_disk, pid), 30, "the output")
        attached.send_signal(signal.SIGCONT)
        (small_disk.work / "end").touch()
        rest, note = attached.communicate(timeout=60)
    whole = WHOLE.replace(b"\n", b"\r\n") + b"last\r\n"
    got += rest
    # The screen as it was comes first.
    got = got[got.index(b"1\r\n2\r\n"):]
    missing = len(whole) - len(got)
    assert missing > 0 and got.endswith(b"last\r\n"), note
    assert f"{missing} bytes of its output are missing".encode() in note, (missing, note)
    assert attached.returncode == STORAGE, note


def falls_behind(installation, pid, person):
    """The person's attach is stopped while the session prints, and continued afterwards."""
    person.wait_for(rb"ready")
    person.held.kill(signal.SIGSTOP)
    (installation.work / "go").touch()
    until(lambda: printed(installation, pid), 30, "the output")
    person.held.kill(signal.SIGCONT)
    person.wait_for(str(LINES).encode(), seconds=60)
    (installation.work / "end").touch()
    person.wait_for(rb"last")


def test_a_stopped_attach_reports_lost_output(small_disk):
    fill(small_disk.disk, leave=512 << 10)
    pid = in_terminal(small_disk)
    with TerminalUser(small_disk, "attach", pid) as person:
        falls_behind(small_disk, pid, person)
        assert person.wait_exit(60) == STORAGE, person.seen[-2000:]
        note = re.search(rb"(\d+) bytes of its output are missing", person.seen)
        assert note and 0 < int(note[1]) < len(WHOLE) + LINES, person.seen[-2000:]


def test_an_attach_that_fell_behind_without_a_loss_reports_none(small_disk):
    pid = in_terminal(small_disk)
    with TerminalUser(small_disk, "attach", pid) as person:
        falls_behind(small_disk, pid, person)
        assert person.wait_exit(60) == 0, person.seen[-2000:]
