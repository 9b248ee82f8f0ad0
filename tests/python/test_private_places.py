"""Directories and files of our own: nobody else names them, makes them, leads them elsewhere or reads
them; secrets are not left in the environment of processes that stay."""

import os
import stat
import subprocess

import pytest

from harness import TerminalUser, procs, until
from harness.installation import NOBODY, is_root

pytestmark = pytest.mark.anyio

STRANGER = 54_321
VALUE = "s3cr3t-0f-th3-env1r0nment-4711"


@pytest.fixture
def shared(any_place):
    """A directory such as /tmp, where everybody makes files."""
    path = any_place.dir / "shared"
    path.mkdir()
    any_place.give(path)
    if is_root():
        os.chown(path, 0, 0)
    path.chmod(0o1777)
    any_place.dir.chmod(0o755)
    return path


def busy(place):
    """A daemon holds the state directory."""
    place.cli("ps")
    assert place.daemon().pid


def files_below(path):
    return sorted(str(it.relative_to(path)) for it in path.rglob("*"))


@pytest.mark.parametrize("name", ["ostler-alone-{pid}", "ostler-{pid}.sock", "ostler-doctor-{pid}"])
def test_names_that_can_be_foreseen_lead_nowhere(any_place, shared, name):
    """Links under the names of old, to a directory with something precious."""
    busy(any_place)
    target = any_place.dir / "precious"
    target.mkdir()
    (target / "kept").write_text("mine")
    any_place.give(target)
    verb = ["doctor"] if "doctor" in name else ["run", "--no-daemon", "--", "sh", "-c", "echo ran"]
    words = any_place.argv(*verb)
    # The shell becomes the command: they have one pid.
    plant = f'ln -s {target} "{shared}/{name.replace("{pid}", "$$")}"; exec "$@"'
    done = subprocess.run(["sh", "-c", plant, "sh", *words], cwd=any_place.work, env=any_place.env(TMPDIR=shared),
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=120, check=False)
    assert (target / "kept").read_text() == "mine", done
    assert files_below(target) == ["kept"], done
    if "run" in verb:
        assert done.returncode == 0 and b"ran" in done.stdout, done
    left = [it.name for it in shared.iterdir() if not it.is_symlink()]
    assert left == [], "what is short-lived is removed"


def test_state_of_its_own_is_nobody_elses_business(any_place, shared):
    busy(any_place)
    with TerminalUser(any_place, "run", "--no-daemon", "--", "sh", "-c", "echo begun; exec sleep 60", env={"TMPDIR": str(shared)}) as person:
        person.wait_for(rb"begun")
        directories = [it for it in shared.iterdir() if it.name.startswith("ostler-alone-")]
        assert len(directories) == 1 and len(directories[0].name) > len("ostler-alone-") + 15, directories
        for directory in shared.iterdir():
            assert stat.S_IMODE(directory.stat().st_mode) == 0o700, directory
        person.type(b"\x03")
        person.wait_exit()


def test_short_lived_files_are_not_put_where_anybody_can_replace_them(any_place, shared):
    busy(any_place)
    shared.chmod(0o777)
    done = any_place.cli("run", "--no-daemon", "--", "true", check=False, env={"TMPDIR": shared})
    assert done.returncode != 0 and b"can be written by everybody" in done.stderr, done
    assert b"TMPDIR" in done.stderr and files_below(shared) == [], done


@pytest.fixture
def fallback(any_place, shared):
    """Neither names a runtime directory: it is one below TMPDIR."""

    def run(*args, **options):
        env = {"TMPDIR": shared, "XDG_RUNTIME_DIR": "", "OSTLER_RUNTIME_DIR": ""}
        return any_place.cli(*args, check=False, env=env, **options)

    if any_place.user is None and is_root():
        pytest.skip("root's is below /run")
    path = shared / f"ostler-{any_place.user or os.geteuid()}"
    run.path = path
    yield run
    run("shutdown")


@pytest.mark.skipif(not is_root(), reason="a stranger's link takes root to plant")
def test_the_fallback_follows_no_link_of_a_stranger(any_place, fallback):
    target = any_place.dir / "elsewhere"
    target.mkdir()
    any_place.give(target)
    os.symlink(target, fallback.path)
    os.lchown(fallback.path, STRANGER, STRANGER)
    done = fallback("ps")
    assert done.returncode != 0 and f"link of user {STRANGER}".encode() in done.stderr, done
    assert files_below(target) == []


@pytest.mark.skipif(not is_root(), reason="a stranger's directory takes root to plant")
def test_the_fallback_is_no_strangers_directory(any_place, fallback):
    fallback.path.mkdir(mode=0o777)
    os.chown(fallback.path, STRANGER, STRANGER)
    done = fallback("ps")
    assert done.returncode != 0 and f"belongs to user {STRANGER}".encode() in done.stderr, done
    assert files_below(fallback.path) == []


def test_the_fallback_is_made_for_us_alone(any_place, fallback):
    assert fallback("ps").returncode == 0
    # Below it lie those of other state directories.
    assert stat.S_IMODE(fallback.path.stat().st_mode) == 0o700


@pytest.mark.parametrize("which", ["state", "runtime"])
def test_no_directory_on_the_way_may_be_anybodys(any_place, which):
    way = any_place.dir / "way"
    way.mkdir()
    any_place.give(way)
    way.chmod(0o777)
    words = [f"--{which}-dir", str(way / "ours"), "ps"]
    env = {"OSTLER_STATE_DIR": "", "OSTLER_RUNTIME_DIR": ""}
    done = any_place.cli(*words, check=False, env=env)
    assert done.returncode != 0 and b"can be written by everybody" in done.stderr, done
    assert not (way / "ours").exists()
    way.chmod(0o755)
    done = any_place.cli(*words, env=env)
    assert stat.S_IMODE((way / "ours").stat().st_mode) == 0o700
    any_place.cli(f"--{which}-dir", str(way / "ours"), "shutdown", check=False, env=env)


def test_everything_we_write_is_ours_alone(any_place):
    """Whatever the mask: directories 0700, files 0600 but for the scripts that shells in cells read."""
    before = os.umask(0)
    try:
        any_place.cli("run", "--", "sh", "-c", "echo out; echo err >&2")
        any_place.cli("run", "--tty", "--", "true", check=False)
        id_ = any_place.cli("shell", "--detach", "bash").stdout.decode().strip()
        any_place.cli("service", "define", "web", "--", "sleep", "60")
        any_place.cli("token", "new", "one")
    finally:
        os.umask(before)
    any_place.cli("stop", "--force", id_)
    found = []
    for base in (any_place.state, any_place.socket.parent):
        for path in [base, *base.rglob("*")]:
            if path.is_symlink() or (any_place.state / "shell") in [path, *path.parents]:
                continue
            mode = stat.S_IMODE(path.stat().st_mode)
            if mode & 0o077:
                found.append((str(path.relative_to(any_place.dir)), oct(mode)))
    assert found == []


def test_an_export_is_written_through_nobodys_link(any_place):
    done = any_place.cli("run", "--detach", "--", "echo", "out")
    id_ = done.stdout.decode().strip()
    any_place.cli("wait", id_)
    precious = any_place.work / "precious"
    precious.write_text("mine")
    (any_place.work / "out.txt.part").symlink_to(precious)
    any_place.give(any_place.work)
    any_place.cli("export", "--format", "text", "-o", "out.txt", id_)
    assert precious.read_text() == "mine"
    assert (any_place.work / "out.txt").read_text() == "out\n"


def environ(pid):
    return procs.read(pid, "environ")


async def test_secrets_do_not_stay_in_the_environment(any_place):
    """Not in that of the daemon, of what it starts, or of the front that waits; they are handed over all
    the same."""
    plain = any_place.env
    any_place.env = lambda **more: plain(OSTLER_SECRET_TOKEN=VALUE, CLAUDE_SECRET_OTHER=VALUE, KEPT="kept", **more)
    script = 'test "$TOKEN" = ' + VALUE + ' && echo "has it"'
    async with any_place.agent() as agent:
        ran = await agent.must("exec", script=script, secrets=["TOKEN"])
        assert "has it" in ran.text, ran
        await agent.must("exec", command=["sleep", "60"], wait_ms=0)
        pids = any_place.ours()
        names = {procs.comm(pid) for pid in pids}
        assert {"ostler-daemon", "ostler-keeper", "ostler-shim", "ostler"} <= names, names
        for pid in pids:
            found = environ(pid)
            assert VALUE.encode() not in found, (pid, procs.comm(pid))
            if procs.comm(pid) in ("ostler-daemon", "ostler"):
                assert b"KEPT=kept" in found, "what is no secret stays"
    # The daemon has them for those who bring none along: a request without an environment.
    answer = any_place.rest("POST", "/api/v1/executions", {
        "command": {"shell": {"shell": "sh", "script": script}}, "cwd": str(any_place.work), "secrets": ["TOKEN"]})
    any_place.rest("POST", f"/api/v1/executions/{answer['id']}/wait", {"until": "exit", "at_most_ms": 20_000})
    assert b"has it" in any_place.cli("logs", answer["id"]).stdout


def test_a_daemon_in_the_foreground_forgets_them_too(make_place):
    from harness import HttpDaemon

    place = make_place()
    plain = place.env
    place.env = lambda **more: plain(OSTLER_SECRET_TOKEN=VALUE, **more)
    serving = HttpDaemon(place, "--no-token")
    try:
        daemon = place.rest("GET", "/api/v1/health")["pid"]
        until(lambda: VALUE.encode() not in environ(daemon))
        for pid in place.ours():
            assert VALUE.encode() not in environ(pid), procs.comm(pid)
    finally:
        serving.end()
