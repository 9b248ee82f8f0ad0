"""The inside of level high: shells that show their prompt, and a first process whose limits cannot be changed from
inside."""

import shutil

import pytest

from harness.protected_env import USERS_BY_INTERFACE, USERS
from harness.isolation_client import INTERFACES, IsolationOptions

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("kind", ["bash", "zsh", "fish"])
@pytest.mark.parametrize("user", USERS)
def test_a_shell_at_level_high_runs_commands(protected_envs, user, kind):
    if shutil.which(kind) is None:
        pytest.skip(f"there is no {kind}")
    installation = protected_envs.of(user)
    id_ = installation.cli("shell", "--detach", "--isolation", "high", kind).stdout.decode().strip()
    try:
        result = installation.cli("exec", id_, "echo h''i; exit_with() { return 7; }; exit_with" if kind != "fish" else "echo h''i; false",
                        check=False)
        assert b"hi" in result.stdout and result.returncode == (1 if kind == "fish" else 7), result
        # The surroundings of its scripts stay hidden.
        state = installation.cli("exec", id_, f"ls {installation.state} {installation.state}/shell", check=False).stdout.decode()
        assert "executions" not in state and "ledger" not in state, state
        others = {"bash", "zsh", "fish"} - {kind}
        assert not others & set(state.split()), state
        write = installation.cli("exec", id_, f"echo evil >> {installation.state}/shell/{kind}/evil", check=False)
        assert write.returncode != 0, write
    finally:
        installation.cli("stop", "--force", id_, check=False)


@pytest.mark.parametrize("user", USERS)
async def test_a_shell_session_of_mcp_runs_commands_at_level_high(protected_envs, user):
    installation = protected_envs.of(user)
    async with installation.agent(args=["--tools", "pty"]) as agent:
        session = await agent.must("pty_start", shell="bash", isolation="high", wait_ms=0)
        result = await agent.must("pty_run", session=session.value("session"), script="echo h''i")
        assert "hi" in result.text, result
        await agent.must("pty_close", sessions=[session.value("session")])


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


@pytest.mark.parametrize(("user", "interface"), USERS_BY_INTERFACE)
def test_limits_of_the_first_process_cannot_be_set_from_inside(protected_envs, user, interface):
    result = INTERFACES[interface](protected_envs.of(user), ["python3", "-c", ATTEMPTS], IsolationOptions())
    for attempt in ("limits", "affinity", "priority", "oom_score_adj", "coredump_filter"):
        assert f"first {attempt} refused" in result.text, (attempt, result.text)
    for attempt in ("limits", "affinity", "priority"):
        assert f"own {attempt} worked" in result.text, (attempt, result.text)
