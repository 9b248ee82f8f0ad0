"""Ostler's own directories and files: no other user can name, create, redirect or read them; secrets are not left
in the environment of long-running processes."""

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
def shared(each_installation):
    """A directory such as /tmp, where everybody makes files."""
    path = each_installation.dir / "shared"
    path.mkdir()
    each_installation.give(path)
    if is_root():
        os.chown(path, 0, 0)
    path.chmod(0o1777)
    each_installation.dir.chmod(0o755)
    return path


def busy(installation):
    """A daemon holds the state directory."""
    installation.cli("ps")
    assert installation.daemon().pid


def files_below(path):
    return sorted(str(it.relative_to(path)) for it in path.rglob("*"))


@pytest.mark.parametrize("name", ["ostler-alone-{pid}", "ostler-{pid}.sock", "ostler-doctor-{pid}"])
def test_names_that_can_be_foreseen_lead_nowhere(each_installation, shared, name):
    """Links under the names of old, to a directory with something precious."""
    busy(each_installation)
    target = each_installation.dir / "precious"
    target.mkdir()
    (target / "kept").write_text("mine")
    each_installation.give(target)
    verb = ["doctor"] if "doctor" in name else ["run", "--no-daemon", "--", "sh", "-c", "echo ran"]
    words = each_installation.argv(*verb)
    # The shell becomes the command: they have one pid.
    plant = f'ln -s {target} "{shared}/{name.replace("{pid}", "$$")}"; exec "$@"'
    done = subprocess.run(["sh", "-c", plant, "sh", *words], cwd=each_installation.work, env=each_installation.env(TMPDIR=shared),
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=120, check=False)
    assert (target / "kept").read_text() == "mine", done
    assert files_below(target) == ["kept"], done
    if "run" in verb:
        assert done.returncode == 0 and b"ran" in done.stdout, done
    left = [it.name for it in shared.iterdir() if not it.is_symlink()]
    assert left == [], "what is short-lived is removed"


def test_a_state_directory_is_private(each_installation, shared):
    busy(each_installation)
    with TerminalUser(each_installation, "run", "--no-daemon", "--", "sh", "-c", "echo begun; exec sleep 60", env={"TMPDIR": str(shared)}) as person:
        person.wait_for(rb"begun")
        directories = [it for it in shared.iterdir() if it.name.startswith("ostler-alone-")]
        assert len(directories) == 1 and len(directories[0].name) > len("ostler-alone-") + 15, directories
        for directory in shared.iterdir():
            assert stat.S_IMODE(directory.stat().st_mode) == 0o700, directory
        person.type(b"\x03")
        person.wait_exit()


def test_short_lived_files_are_not_put_where_anybody_can_replace_them(each_installation, shared):
    busy(each_installation)
    shared.chmod(0o777)
    done = each_installation.cli("run", "--no-daemon", "--", "true", check=False, env={"TMPDIR": shared})
    assert done.returncode != 0 and b"can be written by everybody" in done.stderr, done
    assert b"TMPDIR" in done.stderr and files_below(shared) == [], done


@pytest.fixture
def fallback(each_installation, shared):
    """Neither names a runtime directory: it is one below TMPDIR."""

    def run(*args, **options):
        env = {"TMPDIR": shared, "XDG_RUNTIME_DIR": "", "OSTLER_RUNTIME_DIR": ""}
        return each_installation.cli(*args, check=False, env=env, **options)

    if each_installation.user is None and is_root():
        pytest.skip("root's is below /run")
    path = shared / f"ostler-{each_installation.user or os.geteuid()}"
    run.path = path
    yield run
    run("shutdown")


@pytest.mark.skipif(not is_root(), reason="a stranger's link takes root to plant")
def test_the_fallback_follows_no_link_of_another_user(each_installation, fallback):
    target = each_installation.dir / "elsewhere"
    target.mkdir()
    each_installation.give(target)
    os.symlink(target, fallback.path)
    os.lchown(fallback.path, STRANGER, STRANGER)
    done = fallback("ps")
    assert done.returncode != 0 and f"link of user {STRANGER}".encode() in done.stderr, done
    assert files_below(target) == []


@pytest.mark.skipif(not is_root(), reason="a stranger's directory takes root to plant")
def test_the_fallback_is_no_directory_of_another_user(each_installation, fallback):
    fallback.path.mkdir(mode=0o777)
    os.chown(fallback.path, STRANGER, STRANGER)
    done = fallback("ps")
    assert done.returncode != 0 and f"belongs to user {STRANGER}".encode() in done.stderr, done
    assert files_below(fallback.path) == []


def test_the_fallback_is_made_for_us_alone(each_installation, fallback):
    assert fallback("ps").returncode == 0
    # Below it lie those of other state directories.
    assert stat.S_IMODE(fallback.path.stat().st_mode) == 0o700


@pytest.mark.parametrize("which", ["state", "runtime"])
def test_no_directory_on_the_way_may_be_anybodys(each_installation, which):
    parent = each_installation.dir / "parent"
    parent.mkdir()
    each_installation.give(parent)
    parent.chmod(0o777)
    words = [f"--{which}-dir", str(parent / "ours"), "ps"]
    env = {"OSTLER_STATE_DIR": "", "OSTLER_RUNTIME_DIR": ""}
    done = each_installation.cli(*words, check=False, env=env)
    assert done.returncode != 0 and b"can be written by everybody" in done.stderr, done
    assert not (parent / "ours").exists()
    parent.chmod(0o755)
    done = each_installation.cli(*words, env=env)
    assert stat.S_IMODE((parent / "ours").stat().st_mode) == 0o700
    each_installation.cli(f"--{which}-dir", str(parent / "ours"), "shutdown", check=False, env=env)


def test_everything_we_write_is_ours_alone(each_installation):
    """Whatever the umask: directories 0700, files 0600 except the scripts that shells in jails read."""
    config = each_installation.dir / "config" / "ostler"
    config.mkdir(parents=True, exist_ok=True)
    (config / "config.toml").write_text('[journal]\nmirror = "jsonl"\n')
    for path in (config, config / "config.toml"):
        each_installation.give(path)
    before = os.umask(0)
    try:
        each_installation.cli("run", "--", "seq", "200000")
        each_installation.cli("run", "--", "sh", "-c", "echo out; echo err >&2")
        each_installation.cli("run", "--tty", "--", "true", check=False)
        id_ = each_installation.cli("shell", "--detach", "bash").stdout.decode().strip()
        each_installation.cli("service", "define", "web", "--", "sleep", "60")
        each_installation.cli("token", "new", "one")
    finally:
        os.umask(before)
    each_installation.cli("stop", "--force", id_)
    for name in ("output.0.seg.zst", "mirror.jsonl", "mirror.position"):
        until(lambda name=name: list(each_installation.state.glob(f"executions/*/{name}")), 30, name)
    found = []
    for base in (each_installation.state, each_installation.socket.parent):
        for path in [base, *base.rglob("*")]:
            if path.is_symlink() or (each_installation.state / "shell") in [path, *path.parents]:
                continue
            mode = stat.S_IMODE(path.stat().st_mode)
            if mode & 0o077:
                found.append((str(path.relative_to(each_installation.dir)), oct(mode)))
    assert found == []


def test_an_export_is_written_through_nobodys_link(each_installation):
    done = each_installation.cli("run", "--detach", "--", "echo", "out")
    id_ = done.stdout.decode().strip()
    each_installation.cli("wait", id_)
    precious = each_installation.work / "precious"
    precious.write_text("mine")
    (each_installation.work / "out.txt.part").symlink_to(precious)
    each_installation.give(each_installation.work)
    each_installation.cli("export", "--format", "text", "-o", "out.txt", id_)
    assert precious.read_text() == "mine"
    assert (each_installation.work / "out.txt").read_text() == "out\n"


def environ(pid):
    return procs.read(pid, "environ")


async def test_secrets_do_not_stay_in_the_environment(each_installation):
    """Not in that of the daemon, of its children, or of the waiting stdio proxy; they are still passed on."""
    plain = each_installation.env
    each_installation.env = lambda **more: plain(OSTLER_SECRET_TOKEN=VALUE, CLAUDE_SECRET_OTHER=VALUE, KEPT="kept", **more)
    script = 'test "$TOKEN" = ' + VALUE + ' && echo "has it"'
    async with each_installation.agent() as agent:
        result = await agent.must("exec", script=script, secrets=["TOKEN"])
        assert "has it" in result.text, result
        await agent.must("exec", command=["sleep", "60"], wait_ms=0)
        pids = each_installation.ours()
        names = {procs.comm(pid) for pid in pids}
        assert {"ostler-daemon", "ostler-keeper", "ostler-shim", "ostler"} <= names, names
        for pid in pids:
            found = environ(pid)
            assert VALUE.encode() not in found, (pid, procs.comm(pid))
            if procs.comm(pid) in ("ostler-daemon", "ostler"):
                assert b"KEPT=kept" in found, "what is no secret stays"
    # The daemon has them for requests without an environment.
    answer = each_installation.rest("POST", "/api/v1/executions", {
        "command": {"shell": {"shell": "sh", "script": script}}, "cwd": str(each_installation.work), "secrets": ["TOKEN"]})
    each_installation.rest("POST", f"/api/v1/executions/{answer['id']}/wait", {"until": "exit", "at_most_ms": 20_000})
    assert b"has it" in each_installation.cli("logs", answer["id"]).stdout


def test_a_daemon_in_the_foreground_forgets_them_too(make_installation):
    from harness import HttpDaemon

    installation = make_installation()
    plain = installation.env
    installation.env = lambda **more: plain(OSTLER_SECRET_TOKEN=VALUE, **more)
    http_daemon = HttpDaemon(installation, "--no-token")
    try:
        daemon = installation.rest("GET", "/api/v1/health")["pid"]
        until(lambda: VALUE.encode() not in environ(daemon))
        for pid in installation.ours():
            assert VALUE.encode() not in environ(pid), procs.comm(pid)
    finally:
        http_daemon.end()
