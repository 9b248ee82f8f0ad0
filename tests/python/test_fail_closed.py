"""Without a feature of the kernel, level high refuses and names it; where degradation is allowed, every response
reports it. The feature is taken from the whole installation, as hosts lack it: by a filter that responds as an old
kernel does, a limit on namespaces, a mount."""

import json

import pytest

from harness.protected_env import USERS
from harness.installation import is_root
from harness.shell import Shell
from harness.terminal import Terminals
from harness.tiers import in_turn
from harness.isolation_client import INTERFACES, IsolationOptions, missing_capabilities

pytestmark = pytest.mark.anyio

#: The feature taken away, the capabilities that are then missing (at least), and words of the reason.
TAKEN = {
    "landlock": ({"landlock"}, r"(?i)landlock"),
    "seccomp": ({"seccomp"}, r"(?i)seccomp"),
    "namespaces": ({"namespaces"}, r"(?i)namespace|No space left|ENOSPC|max_user_namespaces"),
    "network": ({"network_namespace"}, r"(?i)network|No space left|ENOSPC|max_net_namespaces"),
    "proc": ({"fresh_proc"}, r"(?i)/proc"),
    "mounts": ({"own_root"}, r"(?i)mount|open_tree|not implemented|ENOSYS"),
    "cgroups": ({"own_cgroup", "pids_limit"}, r"(?i)cgroup"),
}
#: What only root can take away.
BY_ROOT = ("proc", "cgroups")
CASES = [(user, piece) for user in USERS for piece in TAKEN
         if user == "root" or (is_root() is False and piece not in BY_ROOT) or (is_root() and piece != "cgroups")]
#: Capabilities without which level high still makes sense.
SPARED = ("landlock", "seccomp")


@pytest.fixture
def installation_without(make_installation, unprivileged_user):
    """Installations whose kernel lacks a feature."""

    def make(user, piece):
        return make_installation(unprivileged_user if user == "ordinary" else None, without=(piece,))

    return make


def degraded(_user, *more):
    return more


@pytest.mark.parametrize(("user", "piece", "interface"), in_turn(CASES, list(INTERFACES)))
def test_high_refuses_and_says_what_is_missing(installation_without, user, piece, interface):
    installation = installation_without(user, piece)
    features, reason = TAKEN[piece]
    result = INTERFACES[interface](installation, ["sh", "-c", "echo r''an"], IsolationOptions(allow_degraded=degraded(user)))
    assert "ran" not in result.text.split(), "it was run"
    for feature in features:
        assert feature in result.text, result.text
    import re
    assert re.search(reason, result.text.replace(piece, "", 1) if piece == "network" else result.text), result.text
    assert installation.json("ps", "-a") == [] or all(e["status"] == "error" for e in installation.json("ps", "-a"))


@pytest.mark.parametrize(("user", "piece"), CASES)
def test_the_levels_below_go_on(installation_without, user, piece):
    installation = installation_without(user, piece)
    assert installation.cli("run", "--", "echo", "still").stdout == b"still\n"


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("piece", SPARED)
async def test_allowed_to_go_without_every_answer_says_so(installation_without, user, piece):
    installation = installation_without(user, piece)
    options = IsolationOptions(allow_degraded=degraded(user, piece))
    async with installation.agent() as agent:
        result = await agent.must("exec", script="echo r''an", **options.arguments())
        assert "ran" in result.text.split() and says(result.text, piece), result
        start = await agent.must("exec", script="exec sleep 300", wait_ms=0, **options.arguments())
        assert says(start.text, piece), start
        pid = start.value("id")
        for action in ("detail", "output"):
            report = await agent.must("process", action=action, ids=[pid])
            assert says(report.text + json.dumps(report.structured or {}), piece), (action, report)
        info = installation.rest("GET", f"/api/v1/executions/{pid}")
        assert piece in [it["ability"] for it in info["isolation"]["missing"]]
        assert piece not in info["isolation"]["in_force"]
        assert says(installation.cli("info", pid).stdout.decode(), piece)
        await agent.must("process_control", action="stop", ids=[pid], force=True)
    done = installation.cli("run", *options.words(), "--", "echo", "ran")
    assert done.stdout == b"ran\n", "standard output is the command's"
    assert says(done.stderr.decode(), piece), done.stderr


def says(text, piece):
    return piece in missing_capabilities(text)


@pytest.mark.parametrize("user", USERS)
async def test_degradation_can_be_a_setting(installation_without, user):
    """`isolation.allow_degraded` in the configuration counts for every start, over every interface."""
    installation = installation_without(user, "landlock")
    config = installation.dir / "config" / "ostler"
    config.mkdir(exist_ok=True)
    names = ", ".join(f'"{name}"' for name in degraded(user, "landlock"))
    (config / "config.toml").write_text(f'[isolation]\ndefault = "high"\nallow_degraded = [{names}]\n')
    installation.give(config)
    assert installation.cli("run", "--", "echo", "ran").stdout == b"ran\n"
    async with installation.agent(args=["--tools", "core,command,shell,pty"]) as agent:
        for tool, arguments in {
            "exec": {"script": "echo ran"},
            "command_execute": {"command": "echo", "args": ["ran"], "directory": agent.directory},
            "execute_shell": {"command": "echo ran"},
        }.items():
            report = await agent.must(tool, **arguments)
            assert says(report.text, "landlock"), (tool, report)
        start = await agent.must("command_bg_start", command="sleep", args=["300"], directory=agent.directory,
                                 description="a test")
        assert says(start.text + json.dumps(start.structured or {}), "landlock"), start
        pty = await agent.must("pty_start", command=["cat"], wait_ms=0)
        assert says(pty.text, "landlock"), pty


@pytest.mark.parametrize("interface", INTERFACES)
def test_a_wall_that_does_not_exist_cannot_be_spared(protected_envs, interface):
    result = INTERFACES[interface](protected_envs.of(USERS[0]), ["echo", "ran"], IsolationOptions(allow_degraded=("moat",)))
    assert "ran" not in result.text.split() and "landlock" in result.text, "what is allowed is told"


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("piece", SPARED)
def test_doctor_tells_what_is_missing(installation_without, user, piece):
    installation = installation_without(user, piece)
    report = installation.cli("doctor", check=False).stdout.decode()
    assert piece in report.lower(), report
    assert not is_fine(installation, "high"), report


def is_fine(installation, level):
    """The report of `doctor --json` on a level."""
    report = json.loads(installation.cli("doctor", "--json", check=False).stdout)
    [found] = [it for it in report["levels"] if it["level"] == level]
    return not found["missing"]


@pytest.mark.skipif(not is_root(), reason="makes an ordinary user's place")
@pytest.mark.parametrize("interface", INTERFACES)
def test_an_ordinary_user_without_a_cgroup_is_isolated_all_the_same(protected_envs, interface):
    """Processes are counted in the user namespace instead; the missing cgroup is reported."""
    installation = protected_envs.of("ordinary")
    result = INTERFACES[interface](installation, ["echo", "ran"], IsolationOptions())
    assert "ran" in result.text.split() and "own_cgroup" in missing_capabilities(result.text), result.text
    bomb = "i=0; while [ $i -lt 40 ]; do sleep 5 & i=$((i+1)); done; echo none"
    result = INTERFACES[interface](installation, ["sh", "-c", bomb], IsolationOptions(limits={"pids": 8}))
    assert "none" not in result.text.split() and "fork" in result.text.lower(), result.text


@pytest.mark.skipif(not is_root(), reason="makes an ordinary user's place")
@pytest.mark.parametrize("interface", INTERFACES)
def test_a_limit_that_needs_a_cgroup_is_refused_without_one(protected_envs, interface):
    result = INTERFACES[interface](protected_envs.of("ordinary"), ["echo", "ran"], IsolationOptions(limits={"memory": "100M"}))
    assert "ran" not in result.text.split() and "memory_limit" in result.text, result.text


@pytest.mark.parametrize("directory", ["/", "/usr", "/etc", "HOME", "STATE", "RUN", "PLACE"])
@pytest.mark.parametrize("interface", INTERFACES)
def test_directories_that_are_no_workspace(protected_envs, interface, directory):
    installation = protected_envs.of(USERS[0])
    spelled = {"HOME": installation.dir / "home", "STATE": installation.state, "RUN": installation.socket.parent, "PLACE": installation.dir}
    cwd = spelled.get(directory, directory)
    result = INTERFACES[interface](installation, ["sh", "-c", "echo r''an"], IsolationOptions(), cwd=cwd)
    assert "ran" not in result.text.split(), result.text
    assert "workspace" in result.text, result.text


@pytest.mark.parametrize("user", USERS)
def test_a_private_directory_needs_no_workspace(protected_envs, user):
    from harness.protected_env import isolation

    installation = protected_envs.of(user)
    result = INTERFACES["cli"](installation, ["sh", "-c", "pwd; ls -A; touch x && echo r''an"], isolation(user), cwd="/tmp")
    # Only the path to the home directory, which is below it here, is visible.
    there = result.answer.stdout.decode().split()
    assert set(there) <= {"/tmp", installation.dir.name, "ran"} and there[-1] == "ran", result.text
