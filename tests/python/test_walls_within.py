"""What is inside of level high: shells that show their prompt, and a first process whose limits nobody
there sets."""

import shutil

import pytest

from harness.protected_env import USERS_BY_INTERFACE, USERS
from harness.isolation_client import INTERFACES, IsolationOptions

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("kind", ["bash", "zsh", "fish"])
@pytest.mark.parametrize("who", USERS)
def test_a_shell_at_level_high_runs_commands(places, who, kind):
    if shutil.which(kind) is None:
        pytest.skip(f"there is no {kind}")
    place = places.of(who)
    id_ = place.cli("shell", "--detach", "--isolation", "high", kind).stdout.decode().strip()
    try:
        ran = place.cli("exec", id_, "echo h''i; exit_with() { return 7; }; exit_with" if kind != "fish" else "echo h''i; false",
                        check=False)
        assert b"hi" in ran.stdout and ran.returncode == (1 if kind == "fish" else 7), ran
        # What is around its scripts stays hidden.
        state = place.cli("exec", id_, f"ls {place.state} {place.state}/shell", check=False).stdout.decode()
        assert "executions" not in state and "ledger" not in state, state
        others = {"bash", "zsh", "fish"} - {kind}
        assert not others & set(state.split()), state
        write = place.cli("exec", id_, f"echo evil >> {place.state}/shell/{kind}/evil", check=False)
        assert write.returncode != 0, write
    finally:
        place.cli("stop", "--force", id_, check=False)


@pytest.mark.parametrize("who", USERS)
async def test_a_shell_session_of_mcp_runs_commands_at_level_high(places, who):
    place = places.of(who)
    async with place.agent(args=["--tools", "pty"]) as agent:
        begun = await agent.must("pty_start", shell="bash", isolation="high", wait_ms=0)
        ran = await agent.must("pty_run", session=begun.value("session"), script="echo h''i")
        assert "hi" in ran.text, ran
        await agent.must("pty_close", sessions=[begun.value("session")])


#: What could be done to process 1, and the same to a process of one's own.
ATTEMPTS = """
import ctypes, os, resource
libc = ctypes.CDLL(None, use_errno=True)
def tell(name, ok):
    print(name, "worked" if ok else "refused " + os.strerror(ctypes.get_errno()))
def limits(pid):
    try:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (64, 64)); return True
    except OSError as error:
        ctypes.set_errno(error.errno); return False
def affinity(pid):
    try:
        os.sched_setaffinity(pid, os.sched_getaffinity(0)); return True
    except OSError as error:
        ctypes.set_errno(error.errno); return False
def priority(pid):
    return libc.setpriority(0, pid, 19) == 0
for pid, whose in ((1, "first"), (os.getpid(), "own")):
    for attempt in (limits, affinity, priority):
        tell(f"{whose} {attempt.__name__}", attempt(pid))
for name in ("oom_score_adj", "coredump_filter"):
    try:
        with open(f"/proc/1/{name}", "w") as file:
            file.write("0")
        tell(f"first {name}", True)
    except OSError as error:
        ctypes.set_errno(error.errno); tell(f"first {name}", False)
"""


@pytest.mark.parametrize(("who", "face"), USERS_BY_INTERFACE)
def test_nobody_inside_sets_limits_of_the_first_process(places, who, face):
    ran = INTERFACES[face](places.of(who), ["python3", "-c", ATTEMPTS], IsolationOptions())
    for attempt in ("limits", "affinity", "priority", "oom_score_adj", "coredump_filter"):
        assert f"first {attempt} refused" in ran.text, (attempt, ran.text)
    for attempt in ("limits", "affinity", "priority"):
        assert f"own {attempt} worked" in ran.text, (attempt, ran.text)
