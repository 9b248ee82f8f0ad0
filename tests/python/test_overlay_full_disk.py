"""Overlays whose writes fill the disk that their own records are on: to discard them frees it."""

import os

import pytest

from harness.disk import ext4, fill, fill_inodes, mounted
from harness.installation import is_root

CASES = ["tmpfs", *(["ext4"] if is_root() else [])]
BLOCK = 1 << 16
#: More directories than a directory of one block has names for.
WIDE = 400

pytestmark = [pytest.mark.small_disk]


@pytest.fixture(params=CASES)
def full(request, make_installation):
    """An installation whose state is on a small file system."""
    installation = make_installation()
    installation.state.mkdir(parents=True, exist_ok=True)
    is_ext4 = request.param == "ext4"
    made = ext4(installation.state, 24, 2_000) if is_ext4 else mounted(installation.state, 24, installation)
    with made as disk:
        installation.disk = disk.outside
        installation.has_few_inodes = is_ext4
        yield installation
        installation.end_commands()
        installation.shut_down()


def free_bytes(installation):
    stat = os.statvfs(installation.disk)
    return stat.f_bavail * stat.f_frsize


def overlaid(installation, script):
    """Runs a script over an overlay; its id."""
    done = installation.cli("run", "-d", "--overlay", "--cwd", installation.work, "--", "sh", "-c", script)
    pid = done.stdout.decode().strip()
    installation.cli("wait", pid, check=False)
    return pid


def overlay_of(installation, pid):
    uuid = installation.json("info", pid)["uuid"]
    return installation.disk / "executions" / uuid / "overlay"


def assert_discarded(installation, pid):
    discarded = installation.cli("discard", pid, check=False)
    assert discarded.returncode == 0 and b"discarded" in discarded.stdout, discarded
    assert installation.json("workspace", pid)["fate"] == "discarded"
    assert not (overlay_of(installation, pid) / "upper").exists()


def test_a_discard_frees_a_full_disk(full):
    (full.work / "kept").write_text("kept\n")
    before = free_bytes(full)
    pid = overlaid(full, "echo more >> kept; head -c 100000000 /dev/zero > big")
    fill(full.disk)
    assert_discarded(full, pid)
    assert free_bytes(full) > before // 2, (before, free_bytes(full))
    again = full.cli("discard", pid, check=False)
    assert again.returncode != 0 and b"discarded already" in again.stderr, again
    full.kill_daemon()
    assert full.json("workspace", pid)["fate"] == "discarded", "it is on record"
    assert (full.work / "kept").read_text() == "kept\n"
    assert not (overlay_of(full, pid) / "baseline").exists()


def test_a_discard_works_where_it_frees_nothing(full):
    pid = overlaid(full, ": > empty")
    filler = fill(full.disk)
    # Its layers had no block of their own: the record is written once the disk has room.
    assert_discarded(full, pid)
    fill(full.disk)
    full.kill_daemon()
    fill(full.disk)
    assert full.json("workspace", pid)["fate"] == "discarded"
    filler.unlink()
    assert full.json("workspace", pid)["fate"] == "discarded"
    assert (overlay_of(full, pid) / "fate").exists()


def test_a_wide_tree_is_discarded_on_a_full_disk(full):
    """Its directories are moved beside the layers, whose directory has no space for as many names."""
    pid = overlaid(full, f"seq {WIDE} | xargs -I N mkdir -p a_directory_with_a_long_name_N/b")
    fill(full.disk)
    assert_discarded(full, pid)


def test_a_discard_works_on_a_disk_without_inodes(full):
    if not full.has_few_inodes:
        pytest.skip("a tmpfs has as many inodes as the machine allows")
    pid = overlaid(full, "for n in $(seq 20); do echo $n > $n; done")
    fill_inodes(full.disk)
    assert_discarded(full, pid)
    assert (overlay_of(full, pid) / "fate").exists()


def test_a_commit_is_recorded_and_its_layers_go_on_a_full_disk(full):
    pid = overlaid(full, f"for n in $(seq 40); do head -c {BLOCK} /dev/zero > $n; done")
    # Room for the steps of the commit, and for no more.
    fill(full.disk, leave=12_288)
    done = full.cli("commit", pid, check=False)
    if done.returncode:
        # Otherwise a discard ends it, with what is on the host.
        ended = full.cli("discard", pid, check=False)
        assert ended.returncode == 0, (done, ended)
    changes = full.json("workspace", pid)
    on_host = {path.name for path in full.work.iterdir()}
    listed = {change["path"] for change in changes.get("changes", [])}
    assert not any(name.startswith(".ostler") for name in on_host), on_host
    if changes["fate"] == "committed":
        assert changes["totals"]["created"] == len(on_host) and (listed == on_host or not listed), changes
    else:
        assert not on_host, (changes, on_host)
    assert not (overlay_of(full, pid) / "upper").exists()


@pytest.mark.skipif(not is_root(), reason="mounts a second small file system")
def test_a_commit_that_a_full_disk_stops_leaves_no_temporary_file_and_counts(full):
    workspace = full.work / "small"
    with mounted(workspace, 1, full):
        full.give(workspace)
        script = "for n in 1 2 3 4; do echo $n > $n; done; head -c 3000000 /dev/zero > z"
        done = full.cli("run", "--overlay", "--cwd", workspace, "--", "sh", "-ec", script, check=False)
        assert done.returncode == 0, done
        [entry] = full.json("ps", "-a")
        stopped = full.cli("commit", entry["id"], check=False)
        names = {"1", "2", "3", "4"}
        for attempt in range(2):
            assert b"No space left" in stopped.stderr, stopped
            assert {path.name for path in workspace.iterdir()} == names, attempt
            assert b"4 of 5 changes are on the host" in stopped.stderr, stopped
            stopped = full.cli("commit", entry["id"], check=False)
        full.cli("discard", entry["id"])
        assert {path.name for path in workspace.iterdir()} == names
