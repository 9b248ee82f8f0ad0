"""What level high keeps from being written inside the workspace: what would run later, outside."""

import itertools
import subprocess

import pytest

from harness.protected_env import FIRST, USERS_BY_INTERFACE, USERS, isolation
from harness.isolation_client import INTERFACES, IsolationOptions

COUNTER = itertools.count()
HOOK = "#!/bin/sh\ntouch hooked\n"

#: Ways to a hook or to a setting that runs a program. Each prints `in` where it got there.
ATTACKS = {
    "write a hook": "echo evil > .git/hooks/pre-commit && echo in",
    "append to a hook": "echo evil >> .git/hooks/post-checkout && echo in",
    "make a hook by rename": "echo evil > x && mv x .git/hooks/pre-push && echo in",
    "make a hook by link": "echo evil > x && ln x .git/hooks/pre-push && echo in",
    "make a hook by symbolic link": "ln -s /tmp/x .git/hooks/pre-push && echo in",
    "remove a hook": "rm -f .git/hooks/post-checkout; test -e .git/hooks/post-checkout || echo in",
    "change the mode of a hook": "chmod 777 .git/hooks/post-checkout && echo in",
    "rename the hooks away": "mv .git/hooks .git/h && echo in",
    "remove the hooks": "rm -rf .git/hooks; test -e .git/hooks || echo in",
    "rename .git away": "mv .git g && echo in",
    "replace .git": "cp -r .git g2 && mv .git g3 && mv g2 .git && echo evil > .git/hooks/pre-commit && echo in",
    "remove .git": "rm -rf .git; test -e .git/hooks || echo in",
    "write the configuration": "git config core.fsmonitor ./evil && echo in",
    "write the configuration itself": "echo '[core]' >> .git/config && echo in",
    "another place for hooks": "git config core.hooksPath . && echo in",
    "rename over the configuration": "cp .git/config c && mv c .git/config && echo in",
    "mount over the hooks": "unshare -rm mount -t tmpfs none .git/hooks && echo in",
    "through a descriptor": "python3 -c 'import os; d = os.open(\".git\", os.O_RDONLY); "
                            "os.close(os.open(\"hooks/new\", os.O_CREAT | os.O_WRONLY, dir_fd=d))' && echo in",
    "through a path in /proc": "echo evil > /proc/self/cwd/.git/hooks/new && echo in",
}


def repository(place, name=None):
    """A directory with a repository, which has one hook."""
    directory = place.dir / (name or f"repository-{next(COUNTER)}")
    directory.mkdir()
    git(directory, "init", "-q", ".")
    (directory / "file").write_text("one\n")
    git(directory, "add", "file")
    git(directory, "-c", "user.name=A", "-c", "user.email=a@b.c", "commit", "-qm", "first")
    hooks = directory / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    (hooks / "post-checkout").write_text(HOOK)
    place.give(directory)
    return directory


def git(directory, *words):
    subprocess.run(["git", *words], cwd=directory, check=True, capture_output=True)


def got_in(face, place, script, isolation, directory):
    ran = INTERFACES[face](place, ["sh", "-c", script + "; echo over"], isolation, cwd=directory)
    lines = [line.strip() for line in ran.text.splitlines()]
    assert "over" in lines, ran.text
    return "in" in lines


def state(directory):
    """What must not change: the hooks by name and content, and the configuration."""
    hooks = directory / ".git" / "hooks"
    return {path.name: path.read_bytes() for path in hooks.iterdir()}, (directory / ".git" / "config").read_bytes()


@pytest.mark.parametrize("who", FIRST)
@pytest.mark.parametrize("way", ATTACKS)
def test_medium_lets_it_through(places, who, way):
    place = places.of(who)
    if "mount" in way:
        pytest.skip("a mount in namespaces of its own changes nothing outside")
    directory = repository(place)
    assert got_in("cli", place, ATTACKS[way], IsolationOptions(level="medium"), directory)


@pytest.mark.parametrize(("who", "face"), USERS_BY_INTERFACE)
@pytest.mark.parametrize("way", ATTACKS)
def test_high_denies(places, who, face, way):
    place = places.of(who)
    directory = repository(place)
    before = state(directory)
    assert not got_in(face, place, ATTACKS[way], isolation(who), directory)
    assert state(directory) == before


@pytest.mark.parametrize("who", USERS)
def test_a_repository_is_worked_in(places, who):
    place = places.of(who)
    directory = repository(place)
    script = ("git config --list >/dev/null && echo two >> file && git add file && "
              "git -c user.name=A -c user.email=a@b.c commit -qm second && git checkout -q -b new && "
              "git tag t && git gc -q && git status --porcelain | grep . ; git log --oneline | wc -l")
    ran = INTERFACES["cli"](place, ["sh", "-c", script], isolation(who), cwd=directory)
    assert ran.exit_code == 0 and "2" in ran.text.split(), ran.text
    git(directory, "-c", f"safe.directory={directory}", "fsck")


@pytest.mark.parametrize("who", USERS)
def test_missing_hooks_cannot_be_made(places, who):
    place = places.of(who)
    directory = repository(place)
    for hook in (directory / ".git" / "hooks").iterdir():
        hook.unlink()
    (directory / ".git" / "hooks").rmdir()
    script = "mkdir -p .git/hooks && echo evil > .git/hooks/pre-commit && echo in"
    assert not got_in("cli", place, script, isolation(who), directory)
    hooks = directory / ".git" / "hooks"
    assert not hooks.exists() or list(hooks.iterdir()) == []


@pytest.mark.parametrize("who", USERS)
def test_a_symbolic_link_instead_of_the_repository(places, who):
    """Neither followed out of the workspace nor a reason not to start."""
    place = places.of(who)
    other = repository(place)
    directory = place.dir / f"linked-{next(COUNTER)}"
    directory.mkdir()
    (directory / ".git").symlink_to(other / ".git")
    place.give(directory)
    before = state(other)
    assert not got_in("cli", place, "echo evil > .git/hooks/pre-commit && echo in", isolation(who), directory)
    assert state(other) == before


@pytest.mark.parametrize("who", USERS)
def test_a_symbolic_link_to_a_repository_inside(places, who):
    place = places.of(who)
    directory = repository(place)
    (directory / ".git").rename(directory / "real")
    (directory / ".git").symlink_to("real")
    hooks = directory / "real" / "hooks"
    before = sorted(path.name for path in hooks.iterdir())
    ran = INTERFACES["cli"](place, ["sh", "-c", "echo started"], isolation(who), cwd=directory)
    assert "started" in ran.text, ran.text
    assert not got_in("cli", place, "echo evil > .git/hooks/pre-commit && echo in", isolation(who), directory)
    assert sorted(path.name for path in hooks.iterdir()) == before


@pytest.mark.parametrize("who", USERS)
def test_a_file_instead_of_the_repository(places, who):
    """A worktree: `.git` is a file that names the repository elsewhere."""
    place = places.of(who)
    main = repository(place)
    tree = place.dir / f"tree-{next(COUNTER)}"
    git(main, "-c", f"safe.directory={main}", "worktree", "add", "-q", str(tree), "-b", f"b{next(COUNTER)}")
    place.give(tree)
    place.give(main)
    before = state(main)
    ran = INTERFACES["cli"](place, ["sh", "-c", "cat .git file && echo x > made"], isolation(who), cwd=tree)
    assert "gitdir:" in ran.text and (tree / "made").exists(), ran.text
    script = f"echo evil > {main}/.git/hooks/pre-commit && echo in"
    assert not got_in("cli", place, script, isolation(who), tree)
    assert state(main) == before


@pytest.mark.parametrize("who", USERS)
def test_the_rules_of_the_workspace_are_not_written(places, who):
    """What tightens here must not be taken away by whom it is about. (Rules put where none are can only
    tighten, too.)"""
    place = places.of(who)
    directory = repository(place)
    rules = directory / ".ostler" / "policy.toml"
    rules.parent.mkdir()
    rules.write_text("# ours\n")
    place.give(directory)
    for script in ("mkdir -p .ostler; echo evil >> .ostler/policy.toml", "rm -rf .ostler", "mv .ostler o", "rm .ostler/policy.toml"):
        got_in("cli", place, script, isolation(who), directory)
    assert rules.read_text() == "# ours\n"
