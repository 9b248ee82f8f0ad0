"""A disk that is full to its last block and its last inode: an end is on record all the same."""

import shutil
import subprocess

import pytest

from harness import until
from harness.disk import ext4, fill, fill_inodes, mounted
from harness.installation import is_root

#: The output of a command that continues on a signal; more than memory holds.
LINES = 400_000
#: The file systems, and the resource that runs out: a tmpfs has as many inodes as the machine allows.
CASES = [("tmpfs", "blocks"), *([("ext4", "blocks"), ("ext4", "inodes")] if is_root() else [])]

pytestmark = [pytest.mark.small_disk]


@pytest.fixture(params=CASES, ids="_".join)
def full(request, make_installation):
    """An installation whose state is on a small file system; `take_all` uses up the rest of it."""
    kind, what = request.param
    installation = make_installation()
    installation.state.mkdir(parents=True, exist_ok=True)
    made = ext4(installation.state, 24, 400) if kind == "ext4" else mounted(installation.state, 24, installation)
    with made as disk:
        installation.disk = disk.outside
        installation.take_all = lambda: fill(installation.disk) if what == "blocks" else fill_inodes(installation.disk)
        yield installation
        installation.end_commands()
        installation.shut_down()


def give_back(filler):
    shutil.rmtree(filler) if filler.is_dir() else filler.unlink()


def waiting(installation, then):
    """A command that continues on a signal."""
    script = f"until [ -e go ]; do sleep .02; done; {then}"
    return installation.cli("run", "-d", "--", "sh", "-c", script).stdout.decode().strip()


def whole():
    return subprocess.run(["seq", str(LINES)], stdout=subprocess.PIPE, check=True).stdout


def check(installation, pid, printed, in_memory=False):
    """The end, and how many bytes of the output are there; some of it in the memory of the daemon that was running
    at the end, and on no disk."""
    assert installation.cli("wait", pid, check=False).returncode == 9
    info = installation.json("info", pid)
    assert (info["status"], info["exit_code"]) == ("failed", 9), info
    shown = installation.cli("logs", "--raw", pid, check=False)
    missing = len(printed) - len(shown.stdout)
    if not missing:
        assert shown.returncode == 0, shown.stderr
        return
    assert shown.returncode == 74 and str(missing).encode() in shown.stderr, (missing, shown.stderr)
    lost = [text for text in info["degraded"] if "could not be kept" in text]
    beyond = int(lost[0].split()[0]) - missing if lost else None
    assert beyond is not None and (0 <= beyond <= 1 << 20 if in_memory else beyond == 0), (missing, lost)


@pytest.mark.parametrize("alive", [True, False], ids=["daemon", "no_daemon"])
def test_an_end_is_on_record_on_a_full_disk(full, alive):
    pid = waiting(full, f"seq {LINES}; exit 9")
    directory, = (path for path in full.executions() if (path / "spec.json").stat().st_size)
    filler = full.take_all()
    if not alive:
        daemon = full.kill_daemon()
        until(lambda: daemon not in full.ours(), 20, "the end of the daemon")
        full.take_all()
    (full.work / "go").touch()
    until(lambda: (directory / "exit").exists(), 30, "the exit record")
    printed = whole()
    for in_memory in (alive, False):
        full.take_all()
        check(full, pid, printed, in_memory)
        full.kill_daemon()
    give_back(filler)
    check(full, pid, printed)
    full.kill_daemon()
    check(full, pid, printed)
    assert full.cli("run", "--", "echo", "again").stdout == b"again\n"
    assert not list(full.state.glob("executions/*/events.jsonl.damaged"))


def test_output_is_cleared_without_room(full):
    """On a disk without inodes, where removing or reusing a file makes room for the record; otherwise nothing is lost."""
    done, repeated = (waiting(full, f"seq {LINES}") for _ in range(2))
    (full.work / "go").touch()
    for pid in (done, repeated):
        assert full.cli("wait", pid).returncode == 0
    until(lambda: len(list(full.disk.glob("executions/*/output.0.seg.zst"))) == 2, 30, "the compressed output")
    full.cli("clear", repeated)
    (full.work / "go").unlink()
    running = waiting(full, "true")
    filler = full.take_all()
    for pid in (done, repeated):
        full.take_all()
        assert full.cli("clear", pid, timeout=30).returncode == 0
        assert full.cli("logs", "--raw", pid).stdout == b""
    full.take_all()
    assert full.cli("clear", running, check=False, timeout=30).returncode in (0, 74)
    assert full.cli("ps").returncode == 0
    give_back(filler)
    (full.work / "go").touch()
    assert full.cli("wait", running).returncode == 0
