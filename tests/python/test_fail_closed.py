"""With a piece of the kernel taken away, level high refuses and says which; allowed to go
without it, every answer says so. The piece is taken from the whole installation, as hosts lack it:
by a filter that answers as an old kernel does, a limit on namespaces, a mount."""

import json

import pytest

from harness.protected_env import USERS
from harness.installation import is_root
from harness.shell import Shell
from harness.terminal import Terminals
from harness.isolation_client import INTERFACES, IsolationOptions, walls_missing

pytestmark = pytest.mark.anyio

#: What is taken away, the walls that are then missing (at least), and words of the reason.
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
CASES = [(who, piece) for who in USERS for piece in TAKEN
         if who == "root" or (is_root() is False and piece not in BY_ROOT) or (is_root() and piece != "cgroups")]
#: Walls without which level high still has enough of itself to be asked for.
SPARED = ("landlock", "seccomp")


@pytest.fixture
def lacking(make_place, ordinary_user):
    """Places whose kernel lacks something."""

    def make(who, piece):
        return make_place(ordinary_user if who == "ordinary" else None, without=(piece,))

    return make


def degraded(_who, *more):
    return more


@pytest.mark.parametrize("face", INTERFACES)
@pytest.mark.parametrize(("who", "piece"), CASES)
def test_high_refuses_and_says_what_is_missing(lacking, who, piece, face):
    place = lacking(who, piece)
    walls, reason = TAKEN[piece]
    ran = INTERFACES[face](place, ["sh", "-c", "echo r''an"], IsolationOptions(allow_degraded=degraded(who)))
    assert "ran" not in ran.text.split(), "it was run"
    for wall in walls:
        assert wall in ran.text, ran.text
    import re
    assert re.search(reason, ran.text.replace(piece, "", 1) if piece == "network" else ran.text), ran.text
    assert place.json("ps", "-a") == [] or all(e["status"] == "error" for e in place.json("ps", "-a"))


@pytest.mark.parametrize(("who", "piece"), CASES)
def test_the_levels_below_go_on(lacking, who, piece):
    place = lacking(who, piece)
    assert place.cli("run", "--", "echo", "still").stdout == b"still\n"


@pytest.mark.parametrize("who", USERS)
@pytest.mark.parametrize("piece", SPARED)
async def test_allowed_to_go_without_every_answer_says_so(lacking, who, piece):
    place = lacking(who, piece)
    asked = IsolationOptions(allow_degraded=degraded(who, piece))
    async with place.agent() as agent:
        ran = await agent.must("exec", script="echo r''an", **asked.arguments())
        assert "ran" in ran.text.split() and says(ran.text, piece), ran
        begun = await agent.must("exec", script="exec sleep 300", wait_ms=0, **asked.arguments())
        assert says(begun.text, piece), begun
        pid = begun.value("id")
        for action in ("detail", "output"):
            told = await agent.must("process", action=action, ids=[pid])
            assert says(told.text + json.dumps(told.structured or {}), piece), (action, told)
        info = place.rest("GET", f"/api/v1/executions/{pid}")
        assert piece in [it["ability"] for it in info["isolation"]["missing"]]
        assert piece not in info["isolation"]["in_force"]
        assert says(place.cli("info", pid).stdout.decode(), piece)
        await agent.must("process_control", action="stop", ids=[pid], force=True)
    done = place.cli("run", *asked.words(), "--", "echo", "ran")
    assert done.stdout == b"ran\n", "standard output is the command's"
    assert says(done.stderr.decode(), piece), done.stderr


def says(text, piece):
    return piece in walls_missing(text)


@pytest.mark.parametrize("who", USERS)
async def test_the_daemon_may_be_told_once(lacking, who):
    """`isolation.allow_degraded` in the configuration counts for every start, on every face."""
    place = lacking(who, "landlock")
    config = place.dir / "config" / "ostler"
    config.mkdir(exist_ok=True)
    names = ", ".join(f'"{name}"' for name in degraded(who, "landlock"))
    (config / "config.toml").write_text(f'[isolation]\ndefault = "high"\nallow_degraded = [{names}]\n')
    place.give(config)
    assert place.cli("run", "--", "echo", "ran").stdout == b"ran\n"
    async with place.agent(args=["--tools", "core,command,shell,pty"]) as agent:
        for tool, arguments in {
            "exec": {"script": "echo ran"},
            "command_execute": {"command": "echo", "args": ["ran"], "directory": agent.directory},
            "execute_shell": {"command": "echo ran"},
        }.items():
            told = await agent.must(tool, **arguments)
            assert says(told.text, "landlock"), (tool, told)
        begun = await agent.must("command_bg_start", command="sleep", args=["300"], directory=agent.directory,
                                 description="a test")
        assert says(begun.text + json.dumps(begun.structured or {}), "landlock"), begun
        pty = await agent.must("pty_start", command=["cat"], wait_ms=0)
        assert says(pty.text, "landlock"), pty


@pytest.mark.parametrize("face", INTERFACES)
def test_a_wall_that_does_not_exist_cannot_be_spared(places, face):
    ran = INTERFACES[face](places.of(USERS[0]), ["echo", "ran"], IsolationOptions(allow_degraded=("moat",)))
    assert "ran" not in ran.text.split() and "landlock" in ran.text, "what is allowed is told"


@pytest.mark.parametrize("who", USERS)
@pytest.mark.parametrize("piece", SPARED)
def test_doctor_tells_what_is_missing(lacking, who, piece):
    place = lacking(who, piece)
    told = place.cli("doctor", check=False).stdout.decode()
    assert piece in told.lower(), told
    assert not is_fine(place, "high"), told


def is_fine(place, level):
    """What `doctor --json` says of a level."""
    told = json.loads(place.cli("doctor", "--json", check=False).stdout)
    [found] = [it for it in told["levels"] if it["level"] == level]
    return not found["missing"]


@pytest.mark.skipif(not is_root(), reason="makes an ordinary user's place")
@pytest.mark.parametrize("face", INTERFACES)
def test_an_ordinary_user_without_a_cgroup_is_walled_all_the_same(places, face):
    """Processes are counted in the user namespace instead; the missing cgroup is said."""
    place = places.of("ordinary")
    ran = INTERFACES[face](place, ["echo", "ran"], IsolationOptions())
    assert "ran" in ran.text.split() and "own_cgroup" in walls_missing(ran.text), ran.text
    bomb = "i=0; while [ $i -lt 40 ]; do sleep 5 & i=$((i+1)); done; echo none"
    ran = INTERFACES[face](place, ["sh", "-c", bomb], IsolationOptions(limits={"pids": 8}))
    assert "none" not in ran.text.split() and "fork" in ran.text.lower(), ran.text


@pytest.mark.skipif(not is_root(), reason="makes an ordinary user's place")
@pytest.mark.parametrize("face", INTERFACES)
def test_a_limit_that_needs_a_cgroup_is_refused_without_one(places, face):
    ran = INTERFACES[face](places.of("ordinary"), ["echo", "ran"], IsolationOptions(limits={"memory": "100M"}))
    assert "ran" not in ran.text.split() and "memory_limit" in ran.text, ran.text


@pytest.mark.parametrize("directory", ["/", "/usr", "/etc", "HOME", "STATE", "RUN", "PLACE"])
@pytest.mark.parametrize("face", INTERFACES)
def test_directories_that_are_no_workspace(places, face, directory):
    place = places.of(USERS[0])
    spelled = {"HOME": place.dir / "home", "STATE": place.state, "RUN": place.socket.parent, "PLACE": place.dir}
    ran = INTERFACES[face](place, ["sh", "-c", "echo r''an"], IsolationOptions(), cwd=spelled.get(directory, directory))
    assert "ran" not in ran.text.split(), ran.text
    assert "workspace" in ran.text, ran.text


@pytest.mark.parametrize("who", USERS)
def test_a_private_directory_needs_no_workspace(places, who):
    from harness.protected_env import isolation

    place = places.of(who)
    ran = INTERFACES["cli"](place, ["sh", "-c", "pwd; ls -A; touch x && echo r''an"], isolation(who), cwd="/tmp")
    # The way to the home directory, which lies below it here, is all there is.
    there = ran.answer.stdout.decode().split()
    assert set(there) <= {"/tmp", place.dir.name, "ran"} and there[-1] == "ran", ran.text
