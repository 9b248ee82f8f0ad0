"""Bombs: limited, reported as what they are, without harm to neighbours and the engine."""

import itertools
import re
import subprocess
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
#: Its name is longer than PATH_MAX.
DEEP_FILLER = """
import os, time
for n in range(40):
    name = "d" * 200; os.mkdir(name); os.chdir(name)
with open("filler", "wb") as file:
    for _ in range(60): file.write(b"x" * (1 << 20)); file.flush(); time.sleep(0.02)
time.sleep(30)
print("all of it")
"""
CLOSED_FILLER = """
import os, time
os.mkdir("closed")
with open("closed/filler", "wb") as file:
    os.chmod("closed", MODE)
    for _ in range(60): file.write(b"x" * (1 << 20)); file.flush(); time.sleep(0.02)
    time.sleep(3)
print("all of it")
"""
#: Ends by itself long after the last check.
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


def bomb(installation, user, interface, level, program, limits, cwd=None, isolation_options=None, **more):
    """Runs a bomb in its own directory, or another; returns its result and its info."""
    directory = installation.dir / f"bomb-{next(COUNTER)}"
    directory.mkdir()
    installation.give(directory)
    label = directory.name
    options = (isolation(user, limits=limits, labels=(label,), **(isolation_options or {})) if level == "high"
             else IsolationOptions(level=level, limits=limits, labels=(label,)))
    with NoisyNeighbour(installation):
        result = INTERFACES[interface](installation, ["python3", "-c", program], options, cwd=cwd or directory, **more)
    [info] = installation.json("ps", "-a", "--label", label)
    return result, installation.json("info", info["id"]), directory


def hit(info):
    return info["isolation"].get("limits_hit", [])


@ROOT
@pytest.mark.parametrize("interface", INTERFACES)
@pytest.mark.parametrize("level", LEVELS)
def test_a_fork_bomb(protected_envs, interface, level):
    installation = protected_envs.of("root")
    timeout = {"timeout": 4} if interface == "mcp" else {}
    program = FORK_BOMB if interface == "mcp" else FORK_BOMB.replace("signal.pause()", "os.kill(0, 9)")
    result, info, _ = bomb(installation, "root", interface, level, program, {"pids": 40}, **timeout)
    assert "pids" in hit(info), info
    assert re.search(r"(?i)process", result.text) and "40" in result.text, result.text
    until(lambda: not named("OSTLER-BOMB"), 5, "the end of the whole bomb")


@ROOT
@pytest.mark.parametrize("interface", INTERFACES)
def test_at_medium_4096_processes_are_the_limit_by_default(protected_envs, interface):
    """Threads count as processes do, and 4,096 of them cost little."""
    installation = protected_envs.of("root")

    def started(**options):
        """How many it starts besides its own; none where 5,000 do not reach a limit."""
        result = INTERFACES[interface](installation, ["python3", "-c", THREAD_HOG], IsolationOptions(**options))
        return [int(number) for number in re.findall(r"threads (\d+) ", result.text)]

    assert started(level="medium") == [4_095]
    assert started(level="medium", limits={"pids": 77}) == [76]
    assert started(level="basic") == []


@ROOT
@pytest.mark.parametrize("interface", INTERFACES)
@pytest.mark.parametrize("level", LEVELS)
def test_a_memory_hog(protected_envs, interface, level):
    result, info, _ = bomb(protected_envs.of("root"), "root", interface, level, MEMORY_HOG, {"memory": "64M"})
    assert "all of it" not in result.text
    assert "memory" in hit(info), info
    assert re.search(r"(?i)memory", result.text) and "64" in result.text, result.text
    assert info["exit_code"] in (137, None) or info.get("signal"), info


@ROOT
@pytest.mark.parametrize("level", LEVELS)
def test_a_memory_hog_of_a_child_is_reported_although_the_command_succeeds(protected_envs, level):
    installation = protected_envs.of("root")
    label = f"child-{level}"
    options = IsolationOptions(level=level, limits={"memory": "64M"}, labels=(label,))
    result = INTERFACES["mcp"](installation, ["sh", "-c", 'python3 -c "$0"; echo survived', MEMORY_HOG], options)
    [info] = installation.json("ps", "-a", "--label", label)
    assert "survived" in result.text and result.exit_code == 0
    assert "memory" in hit(installation.json("info", info["id"])), info
    assert re.search(r"(?i)memory", result.text), result.text


@ROOT
@pytest.mark.parametrize("level", LEVELS)
def test_a_kill_by_another_process_is_no_lack_of_memory(protected_envs, level):
    installation = protected_envs.of("root")
    label = f"killed-{level}"
    options = IsolationOptions(level=level, limits={"memory": "64M"}, labels=(label,))
    result = INTERFACES["mcp"](installation, ["sh", "-c", "sh -c 'kill -9 $PPID'; sleep 9"], options)
    [info] = installation.json("ps", "-a", "--label", label)
    assert hit(installation.json("info", info["id"])) == [], info
    assert "memory" not in result.text.lower(), result.text


@ROOT
@pytest.mark.parametrize("level", LEVELS)
def test_a_spinning_cpu(protected_envs, level):
    result, info, _ = bomb(protected_envs.of("root"), "root", "cli", level, CPU_SPIN, {"cpus": "0.3"})
    assert result.exit_code == 0, result.text
    usage = info["usage"]
    used = (usage["user_us"] + usage["system_us"]) / 1e6
    took = info["duration"] if "duration" in info else info["duration_seconds"]
    assert used < 0.3 * took + 0.6, (used, took)


@pytest.mark.parametrize(("user", "interface"), USERS_BY_INTERFACE)
def test_a_disk_filler(protected_envs, user, interface):
    begin = time.monotonic()
    result, info, directory = bomb(protected_envs.of(user), user, interface, "high", DISK_FILLER, {"disk": "20M"})
    assert time.monotonic() - begin < 20
    assert "disk" in hit(info), info
    assert re.search(r"(?i)disk|workspace", result.text) and "20" in result.text, result.text
    assert info["status"] in ("terminated", "failed"), info
    used = sum(path.stat().st_blocks * 512 for path in directory.iterdir())
    assert used < 600 << 20, "accounted every two seconds"


@pytest.mark.parametrize(("user", "interface"), USERS_BY_INTERFACE)
def test_a_tree_deeper_than_a_path_is_long_fills_the_disk_too(protected_envs, user, interface):
    result, info, directory = bomb(protected_envs.of(user), user, interface, "high", DEEP_FILLER, {"disk": "20M"})
    subprocess.run(["rm", "-rf", str(directory)], check=True)
    assert "disk" in hit(info) and "all of it" not in result.text, info


@pytest.mark.parametrize("workspace", [None, "overlay"])
@pytest.mark.parametrize("mode", [0o000, 0o300])
@pytest.mark.parametrize("user", USERS)
def test_a_directory_that_is_closed_is_counted_or_named(protected_envs, user, mode, workspace):
    """Root reads it; where an ordinary user cannot, the limit is not told as in force."""
    program = CLOSED_FILLER.replace("MODE", str(mode))
    options = {"workspace": workspace} if workspace else {}
    result, info, directory = bomb(
        protected_envs.of(user), user, "cli", "high", program, {"disk": "20M"}, isolation_options=options)
    if user == "root":
        assert "disk" in hit(info) and "all of it" not in result.text, info
        return
    [told] = info["degraded"]
    assert "the disk limit does not count what is in" in told and "closed" in told, info
    if not workspace:
        (directory / "closed").chmod(0o700)


@pytest.mark.parametrize(("user", "interface"), USERS_BY_INTERFACE)
@pytest.mark.parametrize("where", ["/tmp", "/dev/shm"])
def test_a_private_directory_is_limited_too(protected_envs, user, interface, where):
    result, info, _ = bomb(
        protected_envs.of(user), user, interface, "high", DISK_FILLER, {"disk": "20M"}, cwd=where)
    assert "disk" in hit(info), info
    assert info["degraded"] == [], info
    assert re.search(r"(?i)disk|workspace", result.text) and "20" in result.text, result.text


def test_a_private_directory_below_its_limit_is_not_stopped(protected_envs):
    """What a jail is made of counts for nothing, and no measurement fails."""
    program = "import time; open('x', 'wb').write(bytes(1 << 20)); time.sleep(3); print('over')"
    result, info, _ = bomb(
        protected_envs.of(USERS[-1]), USERS[-1], "cli", "high", program, {"disk": "2M"}, cwd="/tmp")
    assert "over" in result.text and hit(info) == [] and info["degraded"] == [], info


@pytest.mark.parametrize("how", ["removed", "never named"])
@pytest.mark.parametrize(("user", "interface"), USERS_BY_INTERFACE)
def test_files_without_a_name_fill_the_disk_too(protected_envs, user, interface, how):
    program = NAMELESS_FILLER.replace("OPEN", NAMELESS[how])
    result, info, directory = bomb(protected_envs.of(user), user, interface, "high", program, {"disk": "20M"})
    assert "disk" in hit(info), info
    assert "all of it" not in result.text and info["status"] in ("terminated", "failed"), info
    assert list(directory.iterdir()) == [], "none of it has a name"


@pytest.mark.full
@pytest.mark.parametrize("where", [".", "/tmp"])
@pytest.mark.parametrize("user", USERS)
def test_a_hundred_thousand_files(protected_envs, user, where):
    installation = protected_envs.of(user)
    program = f"import os; os.chdir({where!r})\n" + MANY_FILES
    result, info, directory = bomb(installation, user, "mcp", "high", program, {})
    assert "over" in result.text and result.exit_code == 0, result.text
    if where == ".":
        assert sum(1 for _ in directory.iterdir()) == 100_000
    else:
        assert list(directory.iterdir()) == []


@pytest.mark.full
@pytest.mark.parametrize("where", ["/tmp", "/var/tmp", "/dev/shm", "~", "/run", "/"])
@pytest.mark.parametrize("user", USERS)
def test_private_directories_are_no_way_to_fill_the_memory(protected_envs, user, where):
    """Output in memory is limited too."""
    installation = protected_envs.of(user)
    script = f'dd if=/dev/zero of={where}/filler bs=1M count=6000; ls -l {where}/filler; echo over'
    with NoisyNeighbour(installation):
        result = INTERFACES["cli"](installation, ["sh", "-c", script], isolation(user), timeout=40)
    assert "over" in result.text
    assert re.search(r"No space|Permission|Read-only|cannot create|can't create|failed to open", result.text), result.text
    assert "6291456000 bytes" not in result.text


@pytest.mark.parametrize(("user", "interface"), USERS_BY_INTERFACE)
@pytest.mark.parametrize("level", LEVELS)
def test_a_descriptor_hog(protected_envs, user, interface, level):
    result, _info, _ = bomb(protected_envs.of(user), user, interface, level, DESCRIPTOR_HOG, {"files": 64})
    used = re.search(r"held (\d+) Too many open files", result.text)
    assert used and int(used[1]) < 64, result.text


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("level", LEVELS)
def test_a_file_too_large(protected_envs, user, level):
    program = "open('large', 'wb').write(bytes(8 << 20))"
    result, info, directory = bomb(protected_envs.of(user), user, "mcp", level, program, {"file_size": "1M"})
    assert result.exit_code != 0
    assert (directory / "large").stat().st_size <= 1 << 20


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("level", LEVELS)
def test_a_file_too_large_is_reported_where_it_ends_the_command(protected_envs, user, level):
    words = "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_DFL); open('large', 'wb').write(bytes(8 << 20))"
    result, info, directory = bomb(protected_envs.of(user), user, "mcp", level, words, {"file_size": "1M"})
    assert "file_size" in hit(info), info
    assert re.search(r"(?i)file", result.text) and "1" in result.text, result.text


@ROOT
@pytest.mark.parametrize("level", LEVELS)
def test_a_thread_hog(protected_envs, level):
    result, info, _ = bomb(protected_envs.of("root"), "root", "mcp", level, THREAD_HOG, {"pids": 50})
    started = re.search(r"threads (\d+)", result.text)
    assert started and int(started[1]) < 50, result.text
    assert "pids" in hit(info), info


@pytest.mark.skipif(not is_root(), reason="makes an ordinary user's place")
@pytest.mark.parametrize("interface", INTERFACES)
def test_a_limit_that_cannot_be_had_is_refused_unless_that_is_allowed(protected_envs, interface):
    installation = protected_envs.of("ordinary")
    limits = {"memory": "64M"}
    refused = INTERFACES[interface](installation, ["echo", "ran"], isolation("ordinary", limits=limits))
    assert "memory_limit" in refused.text and "ran" not in refused.text.split(), refused.text
    refused = INTERFACES[interface](installation, ["echo", "ran"], IsolationOptions(level="medium", limits=limits))
    assert "memory_limit" in refused.text and "ran" not in refused.text.split(), refused.text
    degraded = IsolationOptions(level="medium", limits=limits, allow_degraded=("memory_limit",))
    unlimited = INTERFACES[interface](installation, ["echo", "ran"], degraded)
    assert "ran" in unlimited.text.split(), unlimited.text
    if interface == "mcp":
        assert "memory" in unlimited.text, "an answer says what is missing"


@pytest.mark.parametrize("interface", INTERFACES)
@pytest.mark.parametrize("limits", [
    {"memory": "lots"}, {"memory": "0"}, {"pids": "0"}, {"cpus": "nan"}, {"moat": "3"}, {"disk": "1Q"},
])
def test_limits_that_are_none_are_refused(protected_envs, interface, limits):
    [(name, value)] = limits.items()
    result = INTERFACES[interface](protected_envs.of(USERS[0]), ["echo", "ran"], IsolationOptions(level="medium", limits=limits))
    assert "ran" not in result.text.split() and name in result.text, result.text


def test_too_few_files_for_level_high_are_refused(installation):
    refused = installation.cli("run", "--isolation", "high", "--files", "20", "--", "true", check=False)
    assert refused.returncode == 64 and b"at least 21" in refused.stderr, refused
    assert installation.cli("run", "--isolation", "medium", "--files", "20", "--", "true", check=False).returncode == 0
