"""Retention: what the limit of the state directory counts, and what happens to the others where one ended execution
cannot be removed."""

import json
import subprocess
from datetime import datetime, timedelta, timezone

import pytest

from harness import until
from harness.installation import ProblemError, is_root


def run_one(installation):
    body = {"command": {"argv": {"program": "true", "args": []}}, "cwd": str(installation.work)}
    return installation.rest("POST", "/api/v1/executions", body)


def is_known(installation, id):
    try:
        installation.rest("GET", f"/api/v1/executions/{id}")
    except ProblemError as error:
        assert error.status == 404, error
        return False
    return True


def configure(installation, text):
    settings = installation.dir / "config" / "ostler" / "config.toml"
    settings.parent.mkdir(exist_ok=True)
    settings.write_text(text)


def ended(installation, script):
    """The directory of an execution of this script, as the tests see it."""
    pid = installation.cli("run", "-d", "--", "sh", "-c", script).stdout.decode().strip()
    installation.cli("wait", pid)
    return installation.disk / "executions" / installation.json("info", pid)["uuid"]


def age(directory, seconds):
    """Has an execution ended earlier; no daemon runs."""
    path = directory / "events.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    earlier = datetime.now(timezone.utc) - timedelta(seconds=seconds)
    for line in lines[1:]:
        line["at"] = earlier.strftime("%Y-%m-%dT%H:%M:%SZ")
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def removals_were_decided(installation):
    """Waits until the daemon has decided about removals at least twice: an execution came and expired."""
    installation.cli("ps")
    last = run_one(installation)["id"]
    until(lambda: not is_known(installation, last), 20, "its removal")


#: The state directory of `small_disk` may hold 2.4 MiB.
SIZE = 4_000_000


@pytest.mark.small_disk
def test_the_limit_of_the_state_directory_counts_what_is_on_disk(small_disk):
    compressed = ended(small_disk, f"yes | head -c {SIZE}")
    until(lambda: not (compressed / "output.0.seg").exists(), 20, "the compression")
    cleared = ended(small_disk, f"head -c {SIZE} /dev/urandom")
    small_disk.cli("clear", cleared.name)
    small_disk.kill_daemon()
    age(compressed, 600)
    age(cleared, 300)
    configure(small_disk, "[retention]\nothers_seconds = 2\n")
    removals_were_decided(small_disk)
    assert compressed.exists() and cleared.exists()
    log = (small_disk.disk / "daemon.log").read_text()
    assert "before its retention" not in log, log


@pytest.mark.small_disk
def test_a_removal_for_the_limit_is_in_the_log_and_no_more_are_removed_than_needed(small_disk):
    # The oldest one is too much, together with the newest; the one between takes little.
    oldest = ended(small_disk, "head -c 1500000 /dev/urandom")
    between = ended(small_disk, f"yes | head -c {SIZE}")
    newest = ended(small_disk, "head -c 1500000 /dev/urandom")
    until(lambda: not (between / "output.0.seg").exists(), 20, "the compression")
    small_disk.kill_daemon()
    age(oldest, 900)
    age(between, 600)
    age(newest, 300)
    configure(small_disk, "[retention]\nothers_seconds = 2\n")
    removals_were_decided(small_disk)
    assert [it.exists() for it in (oldest, between, newest)] == [False, True, True]
    lines = (small_disk.disk / "daemon.log").read_text().splitlines()
    told = [line for line in lines if "before its retention" in line]
    assert len(told) == 1 and oldest.name in told[0] and "limit" in told[0], told


@pytest.mark.anyio
async def test_what_the_command_tools_started_is_kept_for_an_hour(installation):
    async with installation.agent() as agent:
        await agent.ended(await agent.start("true"), installation)
        spec = json.loads((installation.executions()[0] / "spec.json").read_text())
        assert spec.get("spec", spec)["retention"] == 3_600_000


@pytest.mark.anyio
@pytest.mark.parametrize("source", ["file", "the client's environment"])
async def test_what_the_command_tools_started_is_kept_as_long_as_the_setting_says(installation, source):
    env = {}
    if source == "file":
        configure(installation, "[retention]\ncommand_seconds = 1\n")
    else:
        env = {"PROCESS_RETENTION_SECONDS": "1"}
    async with installation.agent(args=["--tools", "command,shell"], env=env) as agent:
        assert not (await agent.execute("true")).is_error
        kept = (await agent.must("execute_shell", command="true", run_mode="background")).value("process_id")
        pid = await agent.start("true")
        await agent.ended(pid, installation)
        until(lambda: not is_known(installation, pid), 20, "its removal")
        assert (await agent.call("command_ps_detail", pid=pid)).code == "process_not_found"
        until(lambda: len(installation.executions()) == 1, 20, "the removal of their files")
        assert [entry["pid"] for entry in await agent.list()] == [kept], "another interface has another retention"


@pytest.mark.skipif(not is_root(), reason="mounts")
def test_one_that_cannot_be_removed_holds_up_no_other(installation):
    configure(installation, "[retention]\ncommand_seconds = 3\nothers_seconds = 3\nshell_seconds = 3\n")
    installation.cli("ps")
    blocked = run_one(installation)
    directory = installation.state / "executions" / blocked["uuid"]
    until((directory / "exit").exists, 20, "its end")
    # The directory of a mount cannot be renamed.
    subprocess.run(["mount", "--bind", directory, directory], check=True)
    try:
        log = installation.state / "daemon.log"
        until(lambda: blocked["uuid"] in log.read_text(), 20, "the report that it could not be removed")
        others = [run_one(installation)["id"] for _ in range(3)]
        until(lambda: not any(is_known(installation, id) for id in others), 20, "the removal of the others")
        assert is_known(installation, blocked["id"])
        assert "could not be removed" in log.read_text()
    finally:
        subprocess.run(["umount", directory], check=True)
