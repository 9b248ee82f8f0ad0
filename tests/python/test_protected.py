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


def repository(installation, name=None):
    """A directory with a repository, which has one hook."""
    directory = installation.dir / (name or f"repository-{next(COUNTER)}")
    directory.mkdir()
    git(directory, "init", "-q", ".")
    (directory / "file").write_text("one\n")
    git(directory, "add", "file")
    git(directory, "-c", "user.name=A", "-c", "user.email=a@b.c", "commit", "-qm", "first")
    hooks = directory / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    (hooks / "post-checkout").write_text(HOOK)
    installation.give(directory)
    return directory


def git(directory, *words):
    subprocess.run(["git", *words], cwd=directory, check=True, capture_output=True)


def got_in(interface, installation, script, isolation, directory):
    result = INTERFACES[interface](installation, ["sh", "-c", script + "; echo over"], isolation, cwd=directory)
    lines = [line.strip() for line in result.text.splitlines()]
    assert "over" in lines, result.text
    return "in" in lines


def state(directory):
    """What must not change: the hooks by name and content, and the configuration."""
    hooks = directory / ".git" / "hooks"
    return {path.name: path.read_bytes() for path in hooks.iterdir()}, (directory / ".git" / "config").read_bytes()


@pytest.mark.parametrize("user", FIRST)
@pytest.mark.parametrize("transport", ATTACKS)
def test_medium_lets_it_through(protected_envs, user, transport):
    installation = protected_envs.of(user)
    if "mount" in transport:
        pytest.skip("a mount in namespaces of its own changes nothing outside")
    directory = repository(installation)
    assert got_in("cli", installation, ATTACKS[transport], IsolationOptions(level="medium"), directory)


@pytest.mark.parametrize(("user", "interface"), USERS_BY_INTERFACE)
@pytest.mark.parametrize("transport", ATTACKS)
def test_high_denies(protected_envs, user, interface, transport):
    installation = protected_envs.of(user)
    directory = repository(installation)
    before = state(directory)
    assert not got_in(interface, installation, ATTACKS[transport], isolation(user), directory)
    assert state(directory) == before


@pytest.mark.parametrize("user", USERS)
def test_a_repository_is_worked_in(protected_envs, user):
    installation = protected_envs.of(user)
    directory = repository(installation)
    script = ("git config --list >/dev/null && echo two >> file && git add file && "
              "git -c user.name=A -c user.email=a@b.c commit -qm second && git checkout -q -b new && "
              "git tag t && git gc -q && git status --porcelain | grep . ; git log --oneline | wc -l")
    result = INTERFACES["cli"](installation, ["sh", "-c", script], isolation(user), cwd=directory)
    assert result.exit_code == 0 and "2" in result.text.split(), result.text
    git(directory, "-c", f"safe.directory={directory}", "fsck")


@pytest.mark.parametrize("user", USERS)
def test_missing_hooks_cannot_be_made(protected_envs, user):
    installation = protected_envs.of(user)
    directory = repository(installation)
    for hook in (directory / ".git" / "hooks").iterdir():
        hook.unlink()
    (directory / ".git" / "hooks").rmdir()
    script = "mkdir -p .git/hooks && echo evil > .git/hooks/pre-commit && echo in"
    assert not got_in("cli", installation, script, isolation(user), directory)
    hooks = directory / ".git" / "hooks"
    assert not hooks.exists() or list(hooks.iterdir()) == []


@pytest.mark.parametrize("user", USERS)
def test_a_symbolic_link_instead_of_the_repository(protected_envs, user):
    """Neither followed out of the workspace nor a reason not to start."""
    installation = protected_envs.of(user)
    other = repository(installation)
    directory = installation.dir / f"linked-{next(COUNTER)}"
    directory.mkdir()
    (directory / ".git").symlink_to(other / ".git")
    installation.give(directory)
    before = state(other)
    assert not got_in("cli", installation, "echo evil > .git/hooks/pre-commit && echo in", isolation(user), directory)
    assert state(other) == before


@pytest.mark.parametrize("user", USERS)
def test_a_symbolic_link_to_a_repository_inside(protected_envs, user):
    installation = protected_envs.of(user)
    directory = repository(installation)
    (directory / ".git").rename(directory / "real")
    (directory / ".git").symlink_to("real")
    hooks = directory / "real" / "hooks"
    before = sorted(path.name for path in hooks.iterdir())
    result = INTERFACES["cli"](installation, ["sh", "-c", "echo started"], isolation(user), cwd=directory)
    assert "started" in result.text, result.text
    assert not got_in("cli", installation, "echo evil > .git/hooks/pre-commit && echo in", isolation(user), directory)
    assert sorted(path.name for path in hooks.iterdir()) == before


@pytest.mark.parametrize("user", USERS)
def test_a_file_instead_of_the_repository(protected_envs, user):
    """A worktree: `.git` is a file that names the repository elsewhere."""
    installation = protected_envs.of(user)
    main = repository(installation)
    tree = installation.dir / f"tree-{next(COUNTER)}"
    git(main, "-c", f"safe.directory={main}", "worktree", "add", "-q", str(tree), "-b", f"b{next(COUNTER)}")
    installation.give(tree)
    installation.give(main)
    before = state(main)
    result = INTERFACES["cli"](installation, ["sh", "-c", "cat .git file && echo x > made"], isolation(user), cwd=tree)
    assert "gitdir:" in result.text and (tree / "made").exists(), result.text
    script = f"echo evil > {main}/.git/hooks/pre-commit && echo in"
    assert not got_in("cli", installation, script, isolation(user), tree)
    assert state(main) == before


@pytest.mark.parametrize("user", USERS)
def test_the_rules_of_the_workspace_are_not_written(protected_envs, user):
    """A command must not remove the rules that restrict it. (Rules added where there are none can only tighten.)"""
    installation = protected_envs.of(user)
    directory = repository(installation)
    rules = directory / ".ostler" / "policy.toml"
    rules.parent.mkdir()
    rules.write_text("# ours\n")
    installation.give(directory)
    for script in ("mkdir -p .ostler; echo evil >> .ostler/policy.toml", "rm -rf .ostler", "mv .ostler o", "rm .ostler/policy.toml"):
        got_in("cli", installation, script, isolation(user), directory)
    assert rules.read_text() == "# ours\n"
