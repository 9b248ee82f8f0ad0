"""A full disk: output reaches its reader or its loss is reported, the daemon stays up, and freeing space always
works."""

import json
import os
import subprocess

import pytest

from harness import until
from harness.disk import fill, mounted
from harness.installation import ProblemError

pytestmark = [pytest.mark.anyio, pytest.mark.small_disk]

#: Output larger than the small disk.
LINES = 6_000_000


def numbers(count):
    return subprocess.run(["seq", str(count)], stdout=subprocess.PIPE, check=True).stdout


def popen(installation, *args, **options):
    return subprocess.Popen(
        installation.argv(*args), cwd=installation.work, env=installation.env(), stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE, **options,
    )


def test_output_passes_to_its_reader_whatever_the_disk_does(small_disk):
    done = small_disk.cli("run", "--", "seq", str(LINES), check=False)
    assert done.stdout == numbers(LINES), (len(done.stdout), done.stderr)
    assert done.returncode == 0, done.stderr


def test_a_slow_reader_of_a_full_disk_misses_nothing(small_disk):
    fill(small_disk.disk, leave=2 << 20)
    running = popen(small_disk, "run", "--", "seq", "1000000", stdout=subprocess.PIPE)
    # Nothing is read until output goes to memory: from then on the command waits for its reader.
    until(lambda: any(entry["degraded"] for entry in small_disk.json("ps", "--all")), 20, "the full disk")
    got = running.stdout.read()
    assert (running.wait(30), got == numbers(1_000_000)) == (0, True), running.stderr.read()


def test_a_reader_that_leaves_does_not_hold_the_command(small_disk):
    fill(small_disk.disk, leave=2 << 20)
    pid = small_disk.cli("run", "-d", "--", "sh", "-c", "until [ -e go ]; do sleep .01; done; seq 4000000; exit 7").stdout.decode().strip()
    reader = popen(small_disk, "logs", "--raw", "--follow", pid, stdout=subprocess.PIPE)
    (small_disk.work / "go").touch()
    reader.stdout.read1(1 << 16)
    reader.kill()
    reader.wait()
    assert small_disk.cli("wait", pid, check=False).returncode == 7


def test_lost_output_is_reported_with_its_size(small_disk):
    fill(small_disk.disk, leave=2 << 20)
    pid = small_disk.cli("run", "-d", "--", "seq", str(LINES)).stdout.decode().strip()
    small_disk.cli("wait", pid)
    info = small_disk.json("info", pid)
    lost = [text for text in info["degraded"] if "could not be kept" in text]
    assert lost and int(lost[0].split()[0]) > 20_000_000, info["degraded"]
    shown = small_disk.cli("logs", "--raw", pid, check=False)
    assert shown.returncode == 74, shown.stderr
    assert b"bytes" in shown.stderr, shown.stderr
    whole = numbers(LINES)
    missing = len(whole) - len(shown.stdout)
    assert str(missing).encode() in shown.stderr, (missing, shown.stderr)
    small_disk.kill_daemon()
    after = small_disk.cli("logs", "--raw", pid, check=False)
    assert after.returncode == 74 and whole.startswith(after.stdout), after.stderr
    assert str(len(whole) - len(after.stdout)).encode() in after.stderr, after.stderr


@pytest.mark.parametrize("verb", ["run", "logs", "raw", "export", "ps", "info", "version", "help", "explain"])
def test_our_own_output_on_a_full_disk_is_an_error(small_disk, verb):
    pid = small_disk.cli("run", "-d", "--", "seq", "100000").stdout.decode().strip()
    small_disk.cli("wait", pid)
    verbs = {
        "run": ["run", "--", "seq", "100000"],
        "logs": ["logs", pid],
        "raw": ["logs", "--raw", pid],
        "export": ["export", pid],
        "ps": ["ps", "--all"],
        "info": ["info", pid],
        "version": ["version"],
        "help": ["--help"],
        "explain": ["config", "explain"],
    }
    with open("/dev/full", "wb") as full:
        done = popen(small_disk, *verbs[verb], stdout=full)
        stderr = done.communicate()[1]
    assert done.returncode == 74 and b"No space left" in stderr, (done.returncode, stderr)


def test_the_daemon_outlives_its_own_log(small_disk):
    small_disk.cli("run", "--", "true")
    pid = small_disk.daemon().pid
    running = small_disk.cli("run", "-d", "--", "sh", "-c", "until [ -e go ]; do sleep .05; done; seq 300000").stdout.decode().strip()
    filler = fill(small_disk.disk)
    (small_disk.work / "go").touch()
    small_disk.cli("wait", running, check=False)
    for _ in range(20):
        done = small_disk.cli("run", "--", "true", check=False, timeout=20)
        assert done.returncode == 74, done.stderr
    stderr = done.stderr.decode()
    assert str(small_disk.state) in stderr and "free" in stderr and "ostler rm" in stderr, stderr
    assert small_disk.daemon().pid == pid, "the daemon lives"
    log = (small_disk.disk / "daemon.log").read_text()
    assert "panicked" not in log, log
    filler.unlink()
    assert small_disk.cli("run", "--", "echo", "again").stdout == b"again\n"


def test_freeing_space_always_works(small_disk):
    ids = [small_disk.cli("run", "-d", "--", "seq", "100000").stdout.decode().strip() for _ in range(8)]
    for one in ids:
        small_disk.cli("wait", one)
    fill(small_disk.disk)
    assert small_disk.cli("rm", ids[0], timeout=20).returncode == 0
    fill(small_disk.disk)
    assert small_disk.cli("clear", ids[1], timeout=20).returncode == 0
    assert small_disk.cli("logs", ids[1]).stdout == b"", "cleared, not lost"
    assert small_disk.rest("DELETE", f"/api/v1/executions/{ids[2]}") is None or True
    fill(small_disk.disk)
    assert b"removed" in small_disk.cli("rm", "--all", timeout=20).stdout
    assert small_disk.json("ps", "--all") == []
    assert small_disk.cli("run", "--", "echo", "again").stdout == b"again\n"


def is_full(path):
    stat = os.statvfs(path)
    return stat.f_bavail * stat.f_frsize < 16 * 4096


def test_a_command_that_filled_the_disk_is_cleared_while_it_runs(make_installation):
    installation = make_installation()
    installation.state.mkdir(parents=True, exist_ok=True)
    with mounted(installation.state, 8, installation) as disk:
        script = "seq 2000000; until [ -e go ]; do sleep .05; done; echo end"
        pid = installation.cli("run", "-d", "--", "sh", "-c", script).stdout.decode().strip()
        until(lambda: is_full(disk.outside), 20, "the full disk")
        until(lambda: installation.json("info", pid)["degraded"], 20, "the refused output")
        filler = fill(disk.outside)
        assert b"bytes dropped" in installation.cli("clear", pid, timeout=20).stdout
        assert installation.json("info", pid)["status"] == "running"
        assert not is_full(disk.outside), "the space of the output is free"
        filler.unlink()
        (installation.work / "go").touch()
        assert installation.cli("wait", pid).returncode == 0
        assert installation.cli("run", "--", "echo", "again").stdout == b"again\n"
        installation.shut_down()


def test_a_clear_that_would_free_nothing_loses_nothing(small_disk):
    pid = small_disk.cli("run", "-d", "--", "echo", "few").stdout.decode().strip()
    small_disk.cli("wait", pid)
    filler = fill(small_disk.disk)
    with pytest.raises(ProblemError) as refused:
        small_disk.rest("DELETE", f"/api/v1/executions/{pid}/output")
    assert (refused.value.status, refused.value.code) == (507, "storage_error"), refused.value.problem
    assert "output.floor" in str(refused.value.problem), refused.value.problem
    assert small_disk.cli("clear", pid, check=False).returncode == 74
    assert small_disk.cli("logs", "--raw", pid).stdout == b"few\n"
    filler.unlink()
    assert small_disk.cli("clear", pid).returncode == 0
    assert small_disk.cli("logs", "--raw", pid).stdout == b""
    fill(small_disk.disk)
    assert small_disk.cli("clear", pid).returncode == 0, "what records it is there already"


def test_a_daemon_starts_on_a_full_disk_and_frees_it(small_disk):
    ids = [small_disk.cli("run", "-d", "--", "seq", "100000").stdout.decode().strip() for _ in range(4)]
    for one in ids:
        small_disk.cli("wait", one)
    running = small_disk.cli("run", "-d", "--", "sh", "-c", "until [ -e go ]; do sleep .05; done; exit 9").stdout.decode().strip()
    fill(small_disk.disk)
    small_disk.kill_daemon()
    listed = small_disk.json("ps", "--all")
    assert {entry["id"] for entry in listed} == {*ids, running}
    (small_disk.work / "go").touch()
    assert small_disk.cli("wait", running, check=False).returncode == 9
    small_disk.kill_daemon()
    assert b"removed" in small_disk.cli("rm", "--all", timeout=20).stdout
    (small_disk.disk / "filler").unlink()
    assert small_disk.cli("run", "--", "echo", "again").stdout == b"again\n"


def test_two_daemons_on_one_full_disk(make_installation, tmp_path):
    one, two = make_installation(), make_installation()
    with mounted(tmp_path / "disk", 24, one, two) as disk:
        for installation, name in ((one, "one"), (two, "two")):
            (disk.outside / name).mkdir()
            installation.state.symlink_to(disk.path / name)
            installation.cli("run", "-d", "--", "seq", "200000")
        until(lambda: all(p.json("ps", "--all")[0]["status"] == "completed" for p in (one, two)), 20)
        for installation in (one, two):
            # Again: compressed output, and what the refused start had prepared, made room.
            until(lambda: not list(disk.outside.glob("*/executions/[!.]*/output.0.seg")), 20)
            fill(disk.outside)
            done = installation.cli("run", "--", "true", check=False, timeout=20)
            assert done.returncode == 74, done.stderr
        assert b"removed" in one.cli("rm", "--all", timeout=20).stdout
        assert one.cli("run", "--", "echo", "one").stdout == b"one\n"
        assert two.cli("run", "--", "echo", "two").stdout == b"two\n", "room is everybody's"
        assert any(entry["command"] == "seq 200000" for entry in two.json("ps", "--all"))
        for installation in (one, two):
            installation.shut_down()


async def test_a_start_over_mcp_on_a_full_disk_says_what_to_do(small_disk):
    small_disk.cli("run", "--", "true")
    async with small_disk.agent() as agent:
        fill(small_disk.disk)
        reply = await agent.execute("true")
        assert reply.code == "storage_error", reply
        for word in (str(small_disk.state), "free", "clean"):
            assert word in str(reply.text), reply.text
        with pytest.raises(ProblemError) as refused:
            small_disk.rest("POST", "/api/v1/executions", {"command": {"argv": {"program": "true", "args": []}}, "cwd": "/"})
        assert refused.value.code == "storage_error"
        assert str(small_disk.state) in str(refused.value.problem), refused.value.problem


@pytest.mark.parametrize("harm", ["emptied", "torn", "removed"])
async def test_a_damaged_execution_is_listed_and_removed(installation, harm):
    pid = installation.cli("run", "-d", "--", "echo", "x").stdout.decode().strip()
    installation.cli("wait", pid)
    uuid = installation.json("info", pid)["uuid"]
    installation.kill_daemon()
    directory = installation.state / "executions" / uuid
    spec = directory / "spec.json"
    if harm == "removed":
        spec.unlink()
    else:
        os.truncate(spec, 0 if harm == "emptied" else 40)
    listed = {entry["uuid"]: entry for entry in installation.json("ps", "--all")}
    assert uuid in listed, listed
    assert listed[uuid]["status"] == "error", listed[uuid]
    info = installation.json("info", pid)
    assert "spec.json" in str(info), info
    assert installation.cli("rm", pid).returncode == 0
    assert not directory.exists()


def test_what_a_full_disk_refused_is_on_record_once_there_is_room(small_disk):
    pid = small_disk.cli("run", "-d", "--", "sleep", "300").stdout.decode().strip()
    directory = small_disk.state / "executions" / small_disk.json("info", pid)["uuid"]
    filler = fill(small_disk.disk)
    small_disk.cli("stop", pid)
    for _ in range(3):
        assert small_disk.cli("run", "--", "true", check=False, timeout=20).returncode == 74
    filler.unlink()
    assert small_disk.cli("run", "--", "echo", "again").stdout == b"again\n"

    def written():
        lines = (small_disk.disk / directory.relative_to(small_disk.state) / "events.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines[1:]]

    until(lambda: any(event["event"] == "finished" for event in written()), 30, "the events")
    small_disk.kill_daemon()
    assert [event["seq"] for event in written()] == list(range(len(written())))
    assert any(event["event"] == "stopping" for event in written()), written()
    assert small_disk.json("info", pid)["status"] == "terminated"
    ledger = b"".join(path.read_bytes() for path in sorted((small_disk.disk / "ledger").iterdir()))
    assert ledger.count(b'"event":"spawn_failed"') == 3, ledger


async def test_a_session_ends_on_a_full_disk(small_disk):
    async with small_disk.agent() as agent:
        kept = await agent.must("exec", command=["sleep", "300"], wait_ms=0, keep=True)
        lost = await agent.must("exec", command=["sleep", "301"], wait_ms=0)
        fill(small_disk.disk)

    def running():
        return {entry["id"] for entry in small_disk.json("ps")}

    until(lambda: lost.id not in running(), 30, "the end of what was of the session")
    assert kept.id in running()


def test_an_approval_is_not_consumed_by_a_start_that_a_full_disk_refused(small_disk):
    small_disk.write_policy('default = "ask"\n')
    start = {"command": {"argv": {"program": "/bin/echo", "args": ["x"]}}, "cwd": "/"}

    def refused():
        with pytest.raises(ProblemError) as problem:
            small_disk.rest("POST", "/api/v1/executions", start, session="agent")
        return problem.value

    small_disk.json("ps")
    question = refused().problem["approval"]
    small_disk.rest("POST", f"/api/v1/interactions/{question}/answer", {"value": "yes"})
    filler = fill(small_disk.disk)
    for _ in range(3):
        assert refused().status == 507
    filler.unlink()
    assert small_disk.rest("POST", "/api/v1/executions", start, session="agent")["id"]
    assert refused().status == 403, "one start, once"
