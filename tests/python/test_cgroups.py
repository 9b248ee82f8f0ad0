"""Cgroups with a parent directory that daemons of one user share: none touches another's, and removed ones are
recreated."""

import concurrent.futures
import contextlib
import os
import subprocess
import threading
from pathlib import Path

import pytest

from harness import members, until

pytestmark = [pytest.mark.anyio, pytest.mark.root, pytest.mark.serial]

PARENT = f"ostler-{os.geteuid()}"


def parents():
    """Our directory in each hierarchy that is mounted."""
    found = []
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        if after.split()[0] in ("cgroup", "cgroup2"):
            mount = Path(before.split()[4])
            found += [mount / PARENT, *mount.glob(f"*/{PARENT}"), *mount.glob(f"*/*/{PARENT}")]
    return [one for one in found if one.is_dir()]


def slots(installation):
    """The slots of an installation's shims, whatever else of this user runs on the machine."""
    directory = os.stat(installation.state / "executions")
    owner = f"{directory.st_dev:x}.{directory.st_ino:x}-"
    shims = [f"{pid}-" for pid in installation.ours()]
    return {
        slot for parent in parents() for slot in parent.iterdir()
        if slot.name.startswith(owner) or any(slot.name.startswith(shim) for shim in shims)
    }


def hierarchies(kind):
    """Where hierarchies of a version are mounted here."""
    mounts = [line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    return [Path(words[4]) for words in mounts if words[words.index("-") + 1] == kind]


#: The mounts where a daemon runs: the existing kinds, and those taken away.
LAYOUTS = {"v1": ("cgroup", "cgroup-v2"), "v2": ("cgroup2", "cgroup-v1")}


@pytest.fixture(params=LAYOUTS)
def layout(request, make_installation):
    """Makes installations whose daemons see hierarchies of one version only; the version's mounts."""
    kind, without = LAYOUTS[request.param]
    mounts = hierarchies(kind)
    if not mounts:
        pytest.skip(f"no hierarchy of kind {kind} is mounted on this machine")
    return (lambda: make_installation(without=(without,))), mounts


def inside(paths, mounts):
    """Whether there are some, all of them in these hierarchies."""
    return paths and all(any(path.is_relative_to(mount) for mount in mounts) for path in paths)


def remove(paths):
    """As far as they are empty."""
    for path in paths:
        with contextlib.suppress(OSError):
            path.rmdir()


def elsewhere(installation, *args):
    """One command of the command line in a pid namespace of its own, and the daemon it starts."""
    words = ["unshare", "--pid", "--fork", "--mount-proc", *installation.argv(*args)]
    return subprocess.run(words, env=installation.env(), cwd=installation.work, capture_output=True, timeout=60, check=False)


def runs(installation, count=8):
    """As many commands at once; what they printed."""
    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        completed = list(pool.map(lambda n: installation.cli("run", "--", "echo", n, check=False), range(count)))
    failed = [done.stderr for done in completed if done.returncode != 0]
    assert not failed, failed
    assert [done.stdout.split() for done in completed] == [[str(n).encode()] for n in range(count)]


def kept(installation, before):
    """Whether every slot of a running shim still exists."""
    living = installation.ours()
    lost = {slot for slot in before - slots(installation) if any(f"{pid}-" in slot.name for pid in living)}
    assert not lost, lost


async def test_daemons_of_two_state_directories_leave_each_other_alone(make_installation):
    one, two = make_installation(), make_installation()
    runs(one)
    own = slots(one)
    assert own, "idle shims keep their slots"
    for _ in range(3):
        runs(two, 2)
        two.kill_daemon()
    kept(one, own)
    runs(one)


async def test_daemons_in_two_pid_namespaces_leave_each_other_alone(make_installation):
    one, two = make_installation(), make_installation()
    runs(one, 4)
    own = slots(one)
    done = elsewhere(two, "run", "--", "echo", "over there")
    assert done.stdout == b"over there\n", done
    kept(one, own)
    for _ in range(4):
        runs(one, 4)


async def test_a_command_in_one_namespace_outlives_a_daemon_of_the_other(make_installation):
    one, two = make_installation(), make_installation()
    pid = one.cli("run", "-d", "--", "sleep", "300").stdout.decode().strip()
    uuid = one.json("info", pid)["uuid"]
    for _ in range(3):
        assert elsewhere(two, "run", "--", "true").returncode == 0
    one.kill_daemon()
    assert one.json("info", pid)["status"] == "running"
    assert members(uuid)


async def test_removed_slots_are_recreated(installation):
    runs(installation)
    for _ in range(5):
        before = slots(installation)
        assert before
        remove(before)
        assert len(slots(installation)) < len(before), "idle slots have no protection"
        runs(installation)


async def test_slots_are_removed_while_commands_start(installation):
    runs(installation)
    stop = threading.Event()

    def sweep():
        while not stop.is_set():
            remove(slots(installation))

    sweeper = threading.Thread(target=sweep)
    sweeper.start()
    try:
        for _ in range(10):
            runs(installation)
    finally:
        stop.set()
        sweeper.join()
    runs(installation)


async def test_a_limit_holds_in_a_slot_that_was_made_again(installation):
    runs(installation)
    remove(slots(installation))
    children = "for i in 1 2 3 4 5 6 7 8; do sleep 2 & done; wait"
    done = installation.cli("run", "--isolation", "medium", "--pids", "5", "--", "sh", "-c", children, check=False)
    assert b"ork" in done.stderr, done


async def test_with_one_version_only_daemons_leave_each_other_alone(layout):
    make, mounts = layout
    one, two = make(), make()
    pid = one.cli("run", "-d", "--", "sleep", "300").stdout.decode().strip()
    uuid = one.json("info", pid)["uuid"]
    runs(one)
    own = slots(one)
    assert inside(own, mounts), own
    for _ in range(3):
        runs(two, 2)
        assert inside(slots(two), mounts) and not own & slots(two)
        two.kill_daemon()
    kept(one, own)
    assert members(uuid)
    # A later daemon of the same installation removes unused slots, and nothing else.
    one.kill_daemon()
    assert one.json("info", pid)["status"] == "running"
    assert members(uuid)
    runs(one)
    one.cli("stop", "--force", pid)
    assert not members(uuid)


async def test_with_one_version_only_slots_are_made_again(layout):
    make, mounts = layout
    installation = make()
    runs(installation)
    for _ in range(5):
        before = slots(installation)
        assert inside(before, mounts), before
        remove(before)
        runs(installation)
        assert inside(slots(installation), mounts)


async def test_with_one_version_only_a_tree_ends_whole_in_a_slot_made_again(layout):
    make, _ = layout
    installation = make()
    for _ in range(3):
        runs(installation)
        remove(slots(installation))
        pid = installation.cli("run", "-d", "--", "sh", "-c", "setsid sleep 300 & sleep 300").stdout.decode().strip()
        uuid = installation.json("info", pid)["uuid"]
        until(lambda: len(members(uuid)) >= 3, 5, "its tree")
        installation.cli("stop", "--force", pid)
        assert not members(uuid)


async def test_without_the_second_version_limits_hold_in_a_slot_made_again(make_installation):
    if not hierarchies("cgroup"):
        pytest.skip("no hierarchy of version 1 is mounted on this machine")
    installation = make_installation(without=("cgroup-v2",))
    runs(installation)
    remove(slots(installation))
    children = "for i in 1 2 3 4 5 6 7 8; do sleep 2 & done; wait"
    done = installation.cli("run", "--isolation", "medium", "--pids", "5", "--", "sh", "-c", children, check=False)
    assert b"ork" in done.stderr, done
