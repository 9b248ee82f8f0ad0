"""Bombs: limited, told as what they are, the neighbours and the engine unharmed."""

import itertools
import re
import time

import pytest

from harness import named, until
from harness.protected_env import USERS_BY_INTERFACE, USERS, isolation
from harness.noisy_neighbour import NoisyNeighbour
from harness.installation import is_root
from harness.isolation_client import INTERFACES, IsolationOptions

pytestmark = pytest.mark.serial

COUNTER = itertools.count()
LEVELS = ("medium", "high")
ROOT = pytest.mark.skipif(not is_root(), reason="an ordinary user has no cgroup to limit by here")

FORK_BOMB = """
import os, signal, time
mark, refused = "OSTLER-BOMB", 0
while refused < 200:
    try:
        if os.fork() == 0:
            refused = 0
    except OSError:
        refused += 1
        time.sleep(0.01)
signal.pause()
"""
MEMORY_HOG = """
held = []
for n in range(512):
    held.append(bytearray(b"x") * (1 << 20))
print("all of it")
"""
CPU_SPIN = """
import os, time
for _ in range(3):
    if os.fork() == 0: break
end = time.monotonic() + 2.5
while time.monotonic() < end: pass
if os.getpid() == 1 or True:
    try:
        while True: os.wait()
    except ChildProcessError: pass
"""
DISK_FILLER = """
import itertools, time
for n in itertools.count():
    with open(f"filler-{n}", "wb") as file: file.write(bytes(1 << 20))
    time.sleep(0.01)
"""
#: Ends by itself long after every look there may be.
NAMELESS_FILLER = """
import os, time
def opened():
    OPEN
held = [opened() for _ in range(4)]
for _ in range(15):
    for one in held: os.write(one, b"x" * (1 << 20))
    time.sleep(0.01)
time.sleep(30)
print("all of it")
"""
NAMELESS = {
    "removed": 'fd = os.open("filler", os.O_CREAT | os.O_RDWR); os.unlink("filler"); return fd',
    "never named": 'return os.open(".", os.O_TMPFILE | os.O_RDWR)',
}
MANY_FILES = """
import os, sys
for n in range(100_000):
    try: os.close(os.open(f"many-{n}", os.O_CREAT | os.O_WRONLY))
    except OSError as error:
        print("stopped at", n, error.strerror); break
print("over")
"""
DESCRIPTOR_HOG = """
import os
held = []
try:
    while True: held.append(os.dup(0))
except OSError as error: print("held", len(held), error.strerror)
"""
THREAD_HOG = """
import threading
gate = threading.Event(); started = 0
try:
    for started in range(5000): threading.Thread(target=gate.wait, daemon=True).start()
except RuntimeError as error: print("threads", started, error, flush=True)
import os; os._exit(0)
"""


def bomb(place, who, face, level, program, limits, **more):
    """Runs a bomb in a directory of its own; what came of it, and everything known of it."""
    directory = place.dir / f"bomb-{next(COUNTER)}"
    directory.mkdir()
    place.give(directory)
    label = directory.name
    asked = (isolation(who, limits=limits, labels=(label,)) if level == "high"
             else IsolationOptions(level=level, limits=limits, labels=(label,)))
    with NoisyNeighbour(place):
        ran = INTERFACES[face](place, ["python3", "-c", program], asked, cwd=directory, **more)
    [info] = place.json("ps", "-a", "--label", label)
    return ran, place.json("info", info["id"]), directory


def hit(info):
    return info["isolation"].get("limits_hit", [])


@ROOT
@pytest.mark.parametrize("face", INTERFACES)
@pytest.mark.parametrize("level", LEVELS)
def test_a_fork_bomb(places, face, level):
    place = places.of("root")
    timeout = {"timeout": 4} if face == "mcp" else {}
    program = FORK_BOMB if face == "mcp" else FORK_BOMB.replace("signal.pause()", "os.kill(0, 9)")
    ran, info, _ = bomb(place, "root", face, level, program, {"pids": 40}, **timeout)
    assert "pids" in hit(info), info
    assert re.search(r"(?i)process", ran.text) and "40" in ran.text, ran.text
    until(lambda: not named("OSTLER-BOMB"), 5, "the end of the whole bomb")


@ROOT
@pytest.mark.parametrize("face", INTERFACES)
@pytest.mark.parametrize("level", LEVELS)
def test_a_memory_hog(places, face, level):
    ran, info, _ = bomb(places.of("root"), "root", face, level, MEMORY_HOG, {"memory": "64M"})
    assert "all of it" not in ran.text
    assert "memory" in hit(info), info
    assert re.search(r"(?i)memory", ran.text) and "64" in ran.text, ran.text
    assert info["exit_code"] in (137, None) or info.get("signal"), info


@ROOT
@pytest.mark.parametrize("level", LEVELS)
def test_a_memory_hog_of_a_child_is_told_although_the_command_succeeds(places, level):
    place = places.of("root")
    label = f"child-{level}"
    asked = IsolationOptions(level=level, limits={"memory": "64M"}, labels=(label,))
    ran = INTERFACES["mcp"](place, ["sh", "-c", 'python3 -c "$0"; echo survived', MEMORY_HOG], asked)
    [info] = place.json("ps", "-a", "--label", label)
    assert "survived" in ran.text and ran.exit_code == 0
    assert "memory" in hit(place.json("info", info["id"])), info
    assert re.search(r"(?i)memory", ran.text), ran.text


@ROOT
@pytest.mark.parametrize("level", LEVELS)
def test_a_kill_by_somebody_is_no_lack_of_memory(places, level):
    place = places.of("root")
    label = f"killed-{level}"
    asked = IsolationOptions(level=level, limits={"memory": "64M"}, labels=(label,))
    ran = INTERFACES["mcp"](place, ["sh", "-c", "sh -c 'kill -9 $PPID'; sleep 9"], asked)
    [info] = place.json("ps", "-a", "--label", label)
    assert hit(place.json("info", info["id"])) == [], info
    assert "memory" not in ran.text.lower(), ran.text


@ROOT
@pytest.mark.parametrize("level", LEVELS)
def test_a_spinning_cpu(places, level):
    ran, info, _ = bomb(places.of("root"), "root", "cli", level, CPU_SPIN, {"cpus": "0.3"})
    assert ran.exit_code == 0, ran.text
    usage = info["usage"]
    used = (usage["user_us"] + usage["system_us"]) / 1e6
    took = info["duration"] if "duration" in info else info["duration_seconds"]
    assert used < 0.3 * took + 0.6, (used, took)


@pytest.mark.parametrize(("who", "face"), USERS_BY_INTERFACE)
def test_a_disk_filler(places, who, face):
    begin = time.monotonic()
    ran, info, directory = bomb(places.of(who), who, face, "high", DISK_FILLER, {"disk": "20M"})
    assert time.monotonic() - begin < 20
    assert "disk" in hit(info), info
    assert re.search(r"(?i)disk|workspace", ran.text) and "20" in ran.text, ran.text
    assert info["status"] in ("terminated", "failed"), info
    held = sum(path.stat().st_blocks * 512 for path in directory.iterdir())
    assert held < 600 << 20, "accounted every two seconds"


@pytest.mark.parametrize("how", ["removed", "never named"])
@pytest.mark.parametrize(("who", "face"), USERS_BY_INTERFACE)
def test_files_without_a_name_fill_the_disk_too(places, who, face, how):
    program = NAMELESS_FILLER.replace("OPEN", NAMELESS[how])
    ran, info, directory = bomb(places.of(who), who, face, "high", program, {"disk": "20M"})
    assert "disk" in hit(info), info
    assert "all of it" not in ran.text and info["status"] in ("terminated", "failed"), info
    assert list(directory.iterdir()) == [], "none of it has a name"


@pytest.mark.full
@pytest.mark.parametrize("where", [".", "/tmp"])
@pytest.mark.parametrize("who", USERS)
def test_a_hundred_thousand_files(places, who, where):
    place = places.of(who)
    program = f"import os; os.chdir({where!r})\n" + MANY_FILES
    ran, info, directory = bomb(place, who, "mcp", "high", program, {})
    assert "over" in ran.text and ran.exit_code == 0, ran.text
    if where == ".":
        assert sum(1 for _ in directory.iterdir()) == 100_000
    else:
        assert list(directory.iterdir()) == []


@pytest.mark.full
@pytest.mark.parametrize("where", ["/tmp", "/var/tmp", "/dev/shm", "~", "/run", "/"])
@pytest.mark.parametrize("who", USERS)
def test_private_directories_are_no_way_to_fill_the_memory(places, who, where):
    """What lies in memory has an end of its own."""
    place = places.of(who)
    script = f'dd if=/dev/zero of={where}/filler bs=1M count=6000; ls -l {where}/filler; echo over'
    with NoisyNeighbour(place):
        ran = INTERFACES["cli"](place, ["sh", "-c", script], isolation(who), timeout=40)
    assert "over" in ran.text
    assert re.search(r"No space|Permission|Read-only|cannot create|can't create|failed to open", ran.text), ran.text
    assert "6291456000 bytes" not in ran.text


@pytest.mark.parametrize(("who", "face"), USERS_BY_INTERFACE)
@pytest.mark.parametrize("level", LEVELS)
def test_a_descriptor_hog(places, who, face, level):
    ran, _info, _ = bomb(places.of(who), who, face, level, DESCRIPTOR_HOG, {"files": 64})
    held = re.search(r"held (\d+) Too many open files", ran.text)
    assert held and int(held[1]) < 64, ran.text


@pytest.mark.parametrize("who", USERS)
@pytest.mark.parametrize("level", LEVELS)
def test_a_file_too_large(places, who, level):
    program = "open('large', 'wb').write(bytes(8 << 20))"
    ran, info, directory = bomb(places.of(who), who, "mcp", level, program, {"file_size": "1M"})
    assert ran.exit_code != 0
    assert (directory / "large").stat().st_size <= 1 << 20


@pytest.mark.parametrize("who", USERS)
@pytest.mark.parametrize("level", LEVELS)
def test_a_file_too_large_is_told_where_it_ends_the_command(places, who, level):
    words = "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_DFL); open('large', 'wb').write(bytes(8 << 20))"
    ran, info, directory = bomb(places.of(who), who, "mcp", level, words, {"file_size": "1M"})
    assert "file_size" in hit(info), info
    assert re.search(r"(?i)file", ran.text) and "1" in ran.text, ran.text


@ROOT
@pytest.mark.parametrize("level", LEVELS)
def test_a_thread_hog(places, level):
    ran, info, _ = bomb(places.of("root"), "root", "mcp", level, THREAD_HOG, {"pids": 50})
    started = re.search(r"threads (\d+)", ran.text)
    assert started and int(started[1]) < 50, ran.text
    assert "pids" in hit(info), info


@pytest.mark.skipif(not is_root(), reason="makes an ordinary user's place")
@pytest.mark.parametrize("face", INTERFACES)
def test_a_limit_that_cannot_be_had_is_refused_unless_that_is_allowed(places, face):
    place = places.of("ordinary")
    limits = {"memory": "64M"}
    refused = INTERFACES[face](place, ["echo", "ran"], isolation("ordinary", limits=limits))
    assert "memory_limit" in refused.text and "ran" not in refused.text.split(), refused.text
    refused = INTERFACES[face](place, ["echo", "ran"], IsolationOptions(level="medium", limits=limits))
    assert "memory_limit" in refused.text and "ran" not in refused.text.split(), refused.text
    lacking = IsolationOptions(level="medium", limits=limits, allow_degraded=("memory_limit",))
    told = INTERFACES[face](place, ["echo", "ran"], lacking)
    assert "ran" in told.text.split(), told.text
    if face == "mcp":
        assert "memory" in told.text, "an answer says what is missing"


@pytest.mark.parametrize("face", INTERFACES)
@pytest.mark.parametrize("limits", [
    {"memory": "lots"}, {"memory": "0"}, {"pids": "0"}, {"cpus": "nan"}, {"moat": "3"}, {"disk": "1Q"},
])
def test_limits_that_are_none_are_refused(places, face, limits):
    [(name, value)] = limits.items()
    ran = INTERFACES[face](places.of(USERS[0]), ["echo", "ran"], IsolationOptions(level="medium", limits=limits))
    assert "ran" not in ran.text.split() and name in ran.text, ran.text
