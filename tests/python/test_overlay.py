"""A transactional workspace: writes kept apart, listed, shown, committed or discarded."""

import base64
import contextlib
import fcntl
import json
import os
import stat
import subprocess
import time
import urllib.parse

import pytest

from harness import until
from harness.disk import mounted_for_all
from harness.installation import ProblemError, is_root
from harness.protected_env import FIRST, USERS, isolation

pytestmark = pytest.mark.anyio

#: Changes of every kind.
CHANGE = """
echo new > created && mkdir -p deep/er && echo x > deep/er/file && echo changed >> kept && rm gone && rm -r tree &&
mv moved elsewhere && ln -s kept link && chmod 755 script && mkfifo pipe && : > empty && printf '\\000\\001' > binary &&
rm replaced && mkdir replaced && echo in > replaced/in && cat kept && ls
"""


@pytest.fixture
def workspace(protected_envs):
    def make(user):
        installation = protected_envs.of(user)
        directory = installation.dir / f"overlay-{time.monotonic_ns()}"
        directory.mkdir()
        for name in ("kept", "gone", "moved", "script", "replaced", "untouched"):
            (directory / name).write_text(f"{name}\n")
        (directory / "tree" / "a").mkdir(parents=True)
        (directory / "tree" / "a" / "leaf").write_text("leaf\n")
        installation.give(directory)
        return installation, directory

    return make


@contextlib.contextmanager
def open_directory(path):
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def snapshot(directory):
    """Everything in a directory: `{path: (kind, mode, content)}`."""
    found = {}
    for path in sorted(directory.rglob("*")):
        mode = path.lstat().st_mode
        content = os.readlink(path) if path.is_symlink() else path.read_bytes() if stat.S_ISREG(mode) else None
        found[str(path.relative_to(directory))] = (stat.S_IFMT(mode), stat.S_IMODE(mode) if not path.is_symlink() else 0, content)
    return found


def overlaid(user, **more):
    return isolation(user, workspace="overlay", **more)


def run(installation, user, directory, script):
    """Runs a script over an overlay by the command line; its id."""
    label = f"overlay-{time.monotonic_ns()}"
    done = installation.cli("run", *overlaid(user, labels=(label,)).words(), "--cwd", directory, "--", "sh", "-ec", script)
    [entry] = installation.json("ps", "-a", "--label", label)
    return entry["id"], done


class ByCli:
    """The four verbs of the command line."""

    def __init__(self, installation):
        self.installation = installation

    def changes(self, pid):
        return self.installation.json("workspace", pid)

    def diff(self, pid):
        return self.installation.cli("diff", pid).stdout.decode()

    def commit(self, pid):
        return self.installation.cli("commit", pid, check=False)

    def discard(self, pid):
        return self.installation.cli("discard", pid, check=False)


def kinds_of(changes):
    return {it["path"]: it["kind"] for it in changes["changes"]}


@pytest.mark.parametrize("user", USERS)
def test_nothing_is_written_until_it_is_committed(workspace, user):
    installation, directory = workspace(user)
    before = snapshot(directory)
    pid, done = run(installation, user, directory, CHANGE)
    assert b"kept\nchanged\n" in done.stdout, "the command sees its own writes"
    assert snapshot(directory) == before, "the host does not"
    changes = kinds_of(ByCli(installation).changes(pid))
    assert {name: changes.get(name) for name in ("created", "kept", "gone", "elsewhere", "moved", "link", "empty")} == {
        "created": "created", "kept": "changed", "gone": "deleted", "elsewhere": "created", "moved": "deleted",
        "link": "created", "empty": "created"}
    assert "untouched" not in changes
    assert b"created" in done.stderr or b"created" in installation.cli("workspace", pid).stdout


@pytest.mark.parametrize("user", USERS)
def test_a_commit_puts_everything_on_the_host(workspace, user):
    installation, directory = workspace(user)
    pid, _ = run(installation, user, directory, CHANGE)
    committed = ByCli(installation).commit(pid)
    assert committed.returncode == 0, committed
    after = snapshot(directory)
    assert after["created"][2] == b"new\n" and after["kept"][2] == b"kept\nchanged\n"
    assert after["deep/er/file"][2] == b"x\n" and after["elsewhere"][2] == b"moved\n" and after["link"][2] == "kept"
    assert after["script"][1] == 0o755 and after["binary"][2] == b"\0\1" and after["empty"][2] == b""
    assert after["replaced/in"][2] == b"in\n" and after["untouched"][2] == b"untouched\n"
    assert not {"gone", "moved", "tree", "tree/a", "tree/a/leaf", "pipe"} & set(after)
    owner = installation.user if installation.user is not None else 0
    for path in directory.rglob("*"):
        assert path.lstat().st_uid == owner, path
    again = ByCli(installation).commit(pid)
    assert again.returncode != 0 or b"committed" in again.stdout + again.stderr
    assert snapshot(directory) == after


@pytest.mark.parametrize("user", FIRST)
def test_a_discard_forgets_everything(workspace, user):
    installation, directory = workspace(user)
    before = snapshot(directory)
    pid, _ = run(installation, user, directory, CHANGE)
    assert ByCli(installation).discard(pid).returncode == 0
    assert snapshot(directory) == before
    assert ByCli(installation).commit(pid).returncode != 0, "it was decided"
    assert snapshot(directory) == before


@pytest.mark.parametrize("user", FIRST if is_root() else [])
def test_discarding_a_commit_that_cannot_go_on_lists_what_stays(workspace, user):
    installation, directory = workspace(user)
    with mounted_for_all(directory, 1):
        installation.give(directory)
        pid, _ = run(installation, user, directory, "echo 1 > a && head -c 3000000 /dev/zero > z")
        assert b"space" in ByCli(installation).commit(pid).stderr
        assert (directory / "a").read_text() == "1\n", "a step that was done stays"
        discarded = ByCli(installation).discard(pid)
        assert discarded.returncode == 0, discarded
        assert b"a" in discarded.stdout.split() and b"z" not in discarded.stdout.split(), discarded
        assert {path.name for path in directory.iterdir()} == {"a"}
        assert kinds_of(ByCli(installation).changes(pid)) == {"a": "created"}
        assert ByCli(installation).discard(pid).returncode != 0, "it was decided"


@pytest.mark.small_disk
@pytest.mark.parametrize("user", FIRST)
def test_removing_a_commit_that_cannot_go_on_is_in_the_audit_log(workspace, user):
    installation, directory = workspace(user)
    with mounted_for_all(directory, 1):
        installation.give(directory)
        pid, _ = run(installation, user, directory, "echo 1 > a && head -c 3000000 /dev/zero > z")
        assert b"space" in ByCli(installation).commit(pid).stderr
        uuid = installation.json("info", pid)["uuid"]
        installation.cli("rm", pid)
        assert {path.name for path in directory.iterdir()} == {"a"}
        [decision] = [entry for entry in installation.rest("GET", "/api/v1/audit?limit=1000")["entries"]
                      if entry["event"] == "workspace" and entry["execution"] == uuid]
        assert decision["fate"] == "committed" and decision["detail"]["created"] == 1, decision


@pytest.mark.parametrize("user", USERS)
def test_a_file_selection_is_of_what_the_command_sees(workspace, user):
    """What it created can be selected, what it deleted cannot, and no link that it made is followed."""
    installation, directory = workspace(user)
    script = "mkdir new; echo x > new/inside; rm gone; ln -s /etc/passwd link; echo up; for n in 1 2; do read -r x; echo \"<$x>\"; done"
    start = {"command": {"shell": {"shell": "sh", "script": script}}, "cwd": str(directory), "stdin": "open",
             "base_env": [["PATH", "/usr/bin:/bin"]], "isolation": "high", "confine": {"overlay": True}}
    id_ = installation.rest("POST", "/api/v1/executions", start)["id"]
    wait = f"/api/v1/executions/{id_}/wait"
    installation.rest("POST", wait, {"until": "pattern", "pattern": "up", "at_most_ms": 20_000})

    def ask():
        body = {"kind": "file_selection", "message": "Which?", "execution": id_}
        return installation.rest("POST", "/api/v1/interactions", body)["id"]

    def answer(question, value):
        return installation.rest("POST", f"/api/v1/interactions/{question}/answer", {"value": value})["status"]

    first = ask()
    for value in ("gone", "link", "new", "new/inside/", "new/missing", "new/../../outside", "/etc/passwd"):
        with pytest.raises(ProblemError) as refused:
            answer(first, value)
        assert refused.value.status == 422 and f"a file in {directory}" in str(refused.value), value
    assert answer(first, "new/inside") == "answered"
    assert answer(ask(), str(directory / "untouched")) == "answered", "a file of the host, which it sees, too"
    installation.rest("POST", wait, {"until": "exit", "at_most_ms": 20_000})
    printed = installation.cli("logs", "--raw", id_).stdout.decode()
    assert "<new/inside>" in printed and f"<{directory}/untouched>" in printed, printed
    assert not (directory / "new").exists()


@pytest.mark.parametrize("user", USERS)
def test_a_path_that_is_not_utf8_is_named_and_asked_for(workspace, user):
    installation, directory = workspace(user)
    script = "printf 'one\\n' > \"$(printf 'a\\377b')\"; printf 'two\\n' > \"$(printf 'a\\376b')\"; echo three > plain"
    pid, _ = run(installation, user, directory, script)
    encoded = {name: {"base64": base64.b64encode(name).decode()} for name in (b"a\xffb", b"a\xfeb")}
    listed = ByCli(installation).changes(pid)["changes"]
    paths = [it["path"] for it in listed]
    assert len(paths) == 3 and "plain" in paths and all(it in paths for it in encoded.values()), paths
    text = installation.cli("workspace", pid).stdout
    assert b"a\\xffb" in text and b"a\\xfeb" in text, text
    route = f"/api/v1/executions/{pid}/workspace/diff"
    query = urllib.parse.urlencode({"path_base64": encoded[b"a\xffb"]["base64"]})
    diff = installation.rest("GET", f"{route}?{query}")["diff"]
    assert "+one" in diff and "two" not in diff and "three" not in diff, diff
    both = installation.rest("GET", f"{route}?{query}&path=plain")["diff"]
    assert "+one" in both and "+three" in both and "two" not in both, both
    diff = installation.cli("diff", pid, os.fsdecode(b"a\xfeb")).stdout
    assert b"+two" in diff and b"one" not in diff and b"three" not in diff, diff
    with pytest.raises(ProblemError) as refused:
        installation.rest("GET", f"{route}?path_base64=a%FFb")
    assert "path_base64" in str(refused.value.problem), refused.value.problem
    with pytest.raises(ProblemError) as refused:
        installation.rest("GET", f"{route}?path_base64=!")
    assert "base64 with padding" in str(refused.value.problem), refused.value.problem
    assert ByCli(installation).commit(pid).returncode == 0
    assert (directory / os.fsdecode(b"a\xffb")).read_text() == "one\n"


@pytest.mark.parametrize("user", USERS)
def test_a_diff_shows_text_and_names_the_rest(workspace, user):
    installation, directory = workspace(user)
    pid, _ = run(installation, user, directory, CHANGE)
    diff = ByCli(installation).diff(pid)
    assert "+changed" in diff and "-gone" in diff and "+new" in diff, diff
    assert "Binary files" in diff and "binary" in diff
    assert "untouched" not in diff


CONFLICTS = {
    "changed": lambda d: (d / "kept").write_text("by the host\n"),
    "changed in place and size": lambda d: os.utime(d / "kept", ns=(1, 1)),
    "replaced": lambda d: ((d / "kept").rename(d / "aside"), (d / "kept").write_text("kept\n")),
    "deleted": lambda d: (d / "kept").unlink(),
    "appeared": lambda d: (d / "created").write_text("by the host\n"),
    "deleted by it, changed by the host": lambda d: (d / "gone").write_text("by the host\n"),
    "a directory in the way": lambda d: (d / "created").mkdir(),
    "a link in the way": lambda d: ((d / "kept").unlink(), (d / "kept").symlink_to("/etc/passwd")),
}


@pytest.mark.parametrize("user", FIRST)
@pytest.mark.parametrize("how", CONFLICTS)
def test_a_conflict_commits_nothing_and_names_it(workspace, user, how):
    installation, directory = workspace(user)
    pid, _ = run(installation, user, directory, CHANGE)
    CONFLICTS[how](directory)
    before = snapshot(directory)
    refused = ByCli(installation).commit(pid)
    assert refused.returncode != 0, refused
    text = (refused.stdout + refused.stderr).decode()
    assert any(name in text for name in ("kept", "created", "gone")), text
    assert snapshot(directory) == before, "nothing at all"


@pytest.mark.parametrize("below", ["", "inner"])
@pytest.mark.parametrize("user", FIRST)
def test_of_two_commits_at_once_one_is_complete_and_one_conflicts(workspace, user, below):
    """The second one works in the same directory, or in one below it."""
    installation, directory = workspace(user)
    (directory / "inner").mkdir()
    installation.give(directory)
    names = [f"{name:03}" for name in range(200)]
    path = "inner/" if below else ""
    first, _ = run(installation, user, directory, f"for name in {' '.join(names)}; do echo first > {path}$name; done")
    second, _ = run(installation, user, directory / below, f"for name in {' '.join(reversed(names))}; do echo second > $name; done")
    commits = {}
    for word, pid in (("first", first), ("second", second)):
        argv = installation.argv("commit", pid)
        commits[word] = subprocess.Popen(argv, env=installation.env(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    ends = {word: (commit.communicate(timeout=50), commit.returncode) for word, commit in commits.items()}
    [winner] = [word for word, (_, code) in ends.items() if code == 0]
    [((out, err), _)] = [end for end in ends.values() if end[1] != 0]
    assert b"appeared meanwhile" in out and not err, ends
    assert {(directory / path / name).read_text() for name in names} == {f"{winner}\n"}, ends
    assert {path.name for path in (directory / path).iterdir()} >= set(names)


@pytest.mark.parametrize("user", FIRST)
def test_a_workspace_locked_by_another_process_is_refused_and_can_be_committed_later(workspace, user):
    installation, directory = workspace(user)
    pid, _ = run(installation, user, directory, "echo more >> kept")
    with open_directory(directory) as descriptor:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        refused = ByCli(installation).commit(pid)
        assert refused.returncode != 0 and b"another process has locked it" in refused.stderr, refused
        assert (directory / "kept").read_text() == "kept\n"
    assert ByCli(installation).commit(pid).returncode == 0
    assert (directory / "kept").read_text() == "kept\nmore\n"


@pytest.mark.parametrize("user", USERS)
def test_what_the_host_changes_elsewhere_is_no_conflict(workspace, user):
    installation, directory = workspace(user)
    pid, _ = run(installation, user, directory, "echo more >> kept")
    (directory / "untouched").write_text("by the host\n")
    (directory / "unrelated").write_text("by the host\n")
    assert ByCli(installation).commit(pid).returncode == 0
    after = snapshot(directory)
    assert after["kept"][2] == b"kept\nmore\n" and after["untouched"][2] == b"by the host\n"


@pytest.mark.parametrize("user", USERS)
def test_a_link_on_the_host_does_not_lead_a_commit_out(workspace, user):
    """A directory that the host replaced by a link meanwhile."""
    installation, directory = workspace(user)
    outside = directory.parent / f"{directory.name}-outside"
    outside.mkdir()
    installation.give(outside)
    pid, _ = run(installation, user, directory, "echo planted > tree/a/planted")
    (directory / "tree" / "a" / "leaf").unlink()
    (directory / "tree" / "a").rmdir()
    (directory / "tree" / "a").symlink_to(outside)
    assert ByCli(installation).commit(pid).returncode != 0
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize("user", USERS)
def test_protected_paths_are_not_committed(workspace, user):
    installation, directory = workspace(user)
    hooks = directory / ".git" / "hooks"
    hooks.mkdir(parents=True)
    (directory / ".git" / "config").write_text("[core]\n")
    installation.give(directory)
    pid, _ = run(installation, user, directory, "echo evil > .git/hooks/pre-commit || true; echo '[x]' >> .git/config || true; echo ok > fine")
    ByCli(installation).commit(pid)
    assert list(hooks.iterdir()) == [] and (directory / ".git" / "config").read_text() == "[core]\n"


@pytest.mark.parametrize("user", USERS)
async def test_agents_decide_too(workspace, user):
    installation, directory = workspace(user)
    before = snapshot(directory)
    arguments = overlaid(user).arguments()
    async with installation.agent() as agent:
        done = await agent.must("exec", script=CHANGE, cwd=str(directory), wait_ms=20_000, **arguments)
        pid = done.value("id")
        assert "created" in done.text and "commit" in done.text, "the answer lists and tells how to go on"
        listed = await agent.must("workspace", action="changes", id=pid)
        assert "created" in listed.text and "deleted" in listed.text.lower(), listed
        diff = await agent.must("workspace", action="diff", id=pid)
        assert "+changed" in diff.text
        assert snapshot(directory) == before
        await agent.must("workspace", action="commit", id=pid)
        assert (directory / "created").read_text() == "new\n"
        second = await agent.must("exec", script="echo other > created", cwd=str(directory), wait_ms=20_000, **arguments)
        (directory / "created").write_text("by the host\n")
        refused = await agent.call("workspace", action="commit", id=second.value("id"))
        assert "created" in refused.text and "nothing was committed" in refused.text, refused
        assert (directory / "created").read_text() == "by the host\n"
        await agent.must("workspace", action="discard", id=second.value("id"))


@pytest.mark.parametrize("user", FIRST)
def test_while_it_runs_nothing_is_committed(workspace, user):
    installation, directory = workspace(user)
    script = "echo x > created; echo up; exec sleep 300"
    done = installation.cli("run", "-d", *overlaid(user).words(), "--cwd", directory, "--", "sh", "-c", script)
    pid = done.stdout.decode().strip()
    until(lambda: b"up" in installation.cli("logs", pid, "--raw").stdout, 10)
    assert ByCli(installation).commit(pid).returncode != 0
    assert not (directory / "created").exists()
    installation.cli("stop", "--force", pid)
    assert ByCli(installation).commit(pid).returncode == 0, "what was stopped may be committed"
    assert (directory / "created").exists()


@pytest.mark.parametrize("user", USERS)
def test_it_outlives_the_daemon(workspace, user):
    installation, directory = workspace(user)
    pid, _ = run(installation, user, directory, "echo x > created")
    installation.kill_daemon()
    assert ByCli(installation).commit(pid).returncode == 0
    assert (directory / "created").read_text() == "x\n"


@pytest.mark.parametrize("level", ["basic", "medium"])
def test_an_overlay_needs_level_high(protected_envs, level):
    from harness.isolation_client import INTERFACES, IsolationOptions

    for interface in INTERFACES.values():
        result = interface(protected_envs.of(USERS[0]), ["echo", "ran"], IsolationOptions(level=level, workspace="overlay"))
        assert "ran" not in result.text.split() and "high" in result.text, result.text


@pytest.mark.full
@pytest.mark.parametrize("user", USERS)
def test_many_files_commit(workspace, user):
    installation, directory = workspace(user)
    script = "import os\nfor n in range(3000):\n    os.makedirs(f'm/{n % 30}', exist_ok=True)\n    open(f'm/{n % 30}/{n}', 'w').write(str(n))"
    (directory / "make.py").write_text(script)
    installation.give(directory)
    pid, _ = run(installation, user, directory, "python3 make.py")
    assert ByCli(installation).commit(pid).returncode == 0
    made = [path for path in (directory / "m").rglob("*") if path.is_file()]
    assert len(made) == 3000 and all(path.read_text() == path.name for path in made)
    assert json.loads(installation.cli("workspace", pid, "--json", check=False).stdout or b"{}").get("fate", "committed") == "committed"


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize(("on", "name"), [("tree", "opaque"), ("empty", "whiteout")])
def test_planted_marks_are_refused(workspace, user, on, name):
    """A command without an overlay sets what a later overlay would obey."""
    installation, directory = workspace(user)
    (directory / "empty").touch()
    installation.give(directory)
    plant = f"import os; os.setxattr({on!r}, 'user.overlay.{name}', b'x')"
    planted = installation.cli("run", "--isolation", "high", "--cwd", directory, "--", "python3", "-c", plant, check=False)
    if b"not supported" in planted.stderr:
        pytest.skip("no attributes of users on this file system")
    assert planted.returncode == 0, planted
    words = overlaid(user).words()
    refused = installation.cli("run", *words, "--cwd", directory, "--", "echo", "r''an", check=False)
    assert refused.returncode != 0 and b"user.overlay" in refused.stderr and b"ran" not in refused.stdout, refused
    os.removexattr(directory / on, f"user.overlay.{name}")
    assert installation.cli("run", *words, "--cwd", directory, "--", "echo", "ran").stdout == b"ran\n"


#: What an ordinary user may not list, and its commit finds all the same.
CLOSE = """
mkdir -p new/in && echo 'evil()' > new/backdoor.py && echo s > new/in/s && chmod 000 new/in/s new/in && chmod 300 new &&
echo more >> tree/a/leaf && chmod 000 tree/a && mv kept new/moved
"""


@pytest.mark.parametrize("user", USERS)
def test_a_review_shows_what_is_committed_from_closed_directories(workspace, user):
    installation, directory = workspace(user)
    pid, _ = run(installation, user, directory, CLOSE)
    listed = kinds_of(ByCli(installation).changes(pid))
    assert listed == {
        "new": "created", "new/backdoor.py": "created", "new/in": "created", "new/in/s": "created",
        "new/moved": "created", "kept": "deleted", "tree/a": "changed", "tree/a/leaf": "changed"}
    diff = ByCli(installation).diff(pid)
    assert "+evil()" in diff and "+s" in diff and "+more" in diff, diff
    installation.kill_daemon()
    assert kinds_of(ByCli(installation).changes(pid)) == listed
    assert ByCli(installation).commit(pid).returncode == 0
    modes = {}
    for name in ("new", "new/in", "new/in/s", "tree/a"):
        modes[name] = stat.S_IMODE((directory / name).stat().st_mode)
        (directory / name).chmod(0o700)
    assert modes == {"new": 0o300, "new/in": 0, "new/in/s": 0, "tree/a": 0}
    assert set(listed) - {"kept"} <= set(snapshot(directory))


@pytest.mark.parametrize("user", USERS)
def test_a_directory_that_is_closed_while_the_command_runs_is_named(workspace, user):
    installation, directory = workspace(user)
    script = "mkdir new; echo x > new/file; chmod 300 new; echo up; exec sleep 300"
    done = installation.cli("run", "-d", *overlaid(user).words(), "--cwd", directory, "--", "sh", "-c", script)
    pid = done.stdout.decode().strip()
    until(lambda: b"up" in installation.cli("logs", pid, "--raw").stdout, 10)
    for command in ("workspace", "diff"):
        told = installation.cli(command, pid)
        told = (told.stdout + told.stderr).decode()
        assert "new/file" in told or "new is closed to its owner while the command runs" in told, told
    installation.cli("stop", "--force", pid)
    assert "new/file" in kinds_of(ByCli(installation).changes(pid))
