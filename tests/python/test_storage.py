"""Storage trouble: a clear state, the command unharmed, the engine up."""

import json
import os

import pytest

from harness import until
from harness.disk import fill
from harness.installation import ProblemError

pytestmark = pytest.mark.anyio


def run_d(installation, script):
    return installation.cli("run", "-d", "--", "sh", "-c", script).stdout.decode().strip()


async def test_a_read_only_state_directory_refuses_starts(unprivileged_installation):
    installation = unprivileged_installation
    installation.cli("run", "--", "true")
    executions = installation.state / "executions"
    executions.chmod(0o500)
    try:
        async with installation.agent() as agent:
            reply = await agent.execute("true")
            assert reply.code == "storage_error", reply
            assert not (await agent.call("command_ps_list")).is_error, "the engine is up"
    finally:
        executions.chmod(0o700)
    assert installation.cli("run", "--", "echo", "again").stdout == b"again\n"


async def test_a_state_directory_that_cannot_be_made(unprivileged_installation):
    installation = unprivileged_installation
    (installation.dir / "state").chmod(0o500)
    try:
        done = installation.cli("run", "--", "true", check=False)
        assert done.returncode not in (0, 101, 134)
        assert b"state" in done.stderr or b"storage" in done.stderr.lower(), done.stderr
    finally:
        (installation.dir / "state").chmod(0o700)


async def test_a_state_directory_that_is_a_file(installation):
    installation.state.write_text("in the way")
    done = installation.cli("run", "--", "true", check=False)
    assert done.returncode not in (0, 101, 134) and done.stderr
    installation.state.unlink()


@pytest.mark.small_disk
async def test_a_full_disk_harms_no_command(small_disk):
    pid = run_d(small_disk, "seq 6000000; while [ ! -e go ]; do sleep 0.05; done; exit 5")
    info = until(lambda: degraded(small_disk, pid), 20, "the full disk")
    assert info["status"] == "running", "the command goes on"
    head = small_disk.cli("logs", pid, "--head", "3", "--no-time").stdout.splitlines()
    assert head[:3] == [b"1", b"2", b"3"]
    assert small_disk.rest("GET", "/api/v1/health")["pid"], "the engine is up"
    (small_disk.work / "go").touch()
    assert small_disk.cli("wait", pid, check=False).returncode == 5, "the command ran to its end"


def degraded(installation, pid):
    info = installation.json("info", pid)
    return info if info["degraded"] else None


@pytest.mark.small_disk
async def test_a_start_on_a_full_disk_is_refused(small_disk):
    small_disk.cli("run", "--", "true")
    filler = fill(small_disk.disk)
    with pytest.raises(ProblemError) as refused:
        small_disk.rest("POST", "/api/v1/executions", {"command": {"argv": {"program": "true", "args": []}}, "cwd": "/"})
    assert refused.value.code == "storage_error"
    filler.unlink()
    assert small_disk.cli("run", "--", "echo", "again").stdout == b"again\n"


def garble(path):
    data = bytearray(path.read_bytes())
    for index in range(0, len(data), 3):
        data[index] ^= 0xA5
    path.write_bytes(bytes(data))


@pytest.mark.parametrize("name", ["output.*.seg", "output.*.idx", "events.jsonl", "spec.json", "exit"])
@pytest.mark.parametrize("harm", ["garbled", "truncated", "emptied", "removed"])
async def test_a_damaged_journal_is_a_clear_state(installation, name, harm):
    pid = run_d(installation, "seq 1 500; exit 3")
    installation.cli("wait", pid, check=False)
    healthy = run_d(installation, "echo healthy; exit 4")
    installation.cli("wait", healthy, check=False)
    uuid = installation.json("info", pid)["uuid"]
    installation.kill_daemon()
    for path in (installation.state / "executions" / uuid).glob(name):
        if harm == "garbled":
            garble(path)
        elif harm == "removed":
            path.unlink()
        else:
            os.truncate(path, path.stat().st_size // 2 if harm == "truncated" else 0)
    listed = {entry["uuid"]: entry for entry in installation.json("ps", "--all")}
    assert any(entry["id"] == healthy and entry["exit_code"] == 4 for entry in listed.values())
    if uuid in listed:
        assert not (listed[uuid]["status"] == "completed"), "never an invented success"
        assert listed[uuid]["exit_code"] in (3, None)
    logs = installation.cli("logs", pid, "--raw", check=False)
    assert logs.returncode not in (101, 134, 139), logs.stderr
    whole = "".join(f"{n}\n" for n in range(1, 501)).encode()
    if name not in ("output.*.seg",) or harm != "garbled":
        assert whole.startswith(logs.stdout), "what is shown is a true beginning"
    assert installation.cli("logs", healthy, "--raw").stdout == b"healthy\n"
    assert installation.cli("run", "--", "echo", "up").stdout == b"up\n"


async def test_a_damaged_journal_of_a_running_command(installation):
    pid = run_d(installation, "i=0; while [ $i -lt 200 ]; do i=$((i+1)); echo line $i; sleep 0.01; done; exit 6")
    until(lambda: b"line 20\n" in installation.cli("logs", pid, "--raw").stdout)
    uuid = installation.json("info", pid)["uuid"]
    directory = installation.state / "executions" / uuid
    installation.kill_daemon()
    with open(next(directory.glob("output.*.idx")), "r+b") as index:
        index.seek(40)
        index.write(b"garbage garbage")
    assert installation.cli("wait", pid, check=False).returncode == 6, "the command is unharmed"
    assert installation.rest("GET", "/api/v1/health")["pid"]


async def test_a_removed_directory_of_a_running_command(installation):
    import shutil

    pid = run_d(installation, "echo up; sleep 1; echo down; exit 6")
    until(lambda: b"up" in installation.cli("logs", pid, "--raw").stdout)
    uuid = installation.json("info", pid)["uuid"]
    shutil.rmtree(installation.state / "executions" / uuid)
    done = installation.cli("wait", pid, check=False)
    assert done.returncode != 0
    assert installation.json("ps", "--all") is not None
    assert installation.cli("run", "--", "echo", "up").stdout == b"up\n"


async def test_a_damaged_ledger_does_not_stop_the_engine(installation):
    installation.cli("run", "--", "true")
    installation.kill_daemon()
    for path in (installation.state / "ledger").iterdir():
        garble(path)
    assert installation.cli("run", "--", "echo", "up").stdout == b"up\n"


@pytest.mark.parametrize("stranger", ["a-stranger", "00000000-0000-7000-8000-000000000000"])
async def test_foreign_files_in_the_state_directory_are_left_alone(installation, stranger):
    installation.cli("run", "--", "true")
    installation.kill_daemon()
    path = installation.state / "executions" / stranger
    path.mkdir()
    (path / "note").write_text("mine")
    assert installation.cli("run", "--", "echo", "up").stdout == b"up\n"
    assert json.loads(installation.cli("ps", "--all", "--json").stdout) is not None
    assert (path / "note").exists() or stranger.startswith("0000")
