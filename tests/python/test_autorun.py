"""Files left by a command that a person's tools would run unasked: protected, or reported and not committed."""

import itertools
import json
import subprocess

import pytest

from harness.protected_env import USERS_BY_INTERFACE, FIRST, USERS, isolation
from harness.isolation_client import INTERFACES, IsolationOptions

COUNTER = itertools.count()

#: Makes `$1` a program that leaves a witness, and `$1.config` a configuration that runs it.
PLANT = """
plant() { printf '#!/bin/sh\\ntouch "{witness}"\\nexit 1\\n' > "$1" && chmod 755 "$1" &&
    printf '[core]\\n\\trepositoryformatversion = 0\\n\\tbare = false\\n\\tworktree = {workspace}\\n\\tfsmonitor = %s\\n' "$PWD/$1" > "$1.config"; }
evil() { plant evil && mkdir -p "$1/objects" "$1/refs" && echo 'ref: refs/heads/main' > "$1/HEAD" && cp evil.config "$1/config" && cp .git/index "$1/index" 2>/dev/null; : ; }
"""

#: Ways to run code on the host at the next `git status` in the named directory, and the reported path.
VECTORS = {
    "a common directory": ("evil d && echo ../d > .git/commondir", ".", ".git/commondir"),
    "a repository where none was": ("mkdir sub && evil sub/.git", "sub", "sub/.git/config"),
    "a repository deep in the tree": ("mkdir -p a/b/c/d/e && evil a/b/c/d/e/.git", "a/b/c/d/e", "a/b/c/d/e/.git/config"),
    "a bare repository": ("mkdir sub && evil sub/bare", "sub/bare", "sub/bare/config"),
    "a gitlink": ("mkdir sub && evil d && echo 'gitdir: ../d' > sub/.git", "sub", "d/config"),
    "a symbolic link": ("mkdir sub && evil d && ln -s ../d sub/.git", "sub", "sub/.git"),
    "a repository moved into place": ("mkdir sub && evil d && mv d sub/.git", "sub", "sub/.git/config"),
    "an included file": (
        "mkdir sub && git init -q sub && plant evil && git -C sub config include.path \"$PWD/evil.config\"", "sub",
        "sub/.git/config"),
    "a repository made by git": (
        "git init -q sub && plant evil && git -C sub config core.fsmonitor \"$PWD/evil\"", "sub", "sub/.git/config"),
    "a filter": (
        "git init -q sub && plant evil && cd sub && echo a > f && echo '* filter=x' > .gitattributes && git add f && "
        "git config filter.x.clean ../evil && echo b > f", "sub", "sub/.git/config"),
}
#: Settings already in force that lead into the workspace, and how their program is changed.
NAMED = {
    "core.hooksPath": ("ours", "mkdir -p ours && plant ours/post-index-change"),
    "core.fsmonitor": ("./monitor", "plant monitor"),
    "include.path": ("../more", "plant evil && cp evil.config more"),
}


def git(directory, *words, check=True):
    words = ["git", "-c", "safe.directory=*", *words]
    return subprocess.run(words, cwd=directory, check=check, capture_output=True, timeout=60)


def repository(installation, prepare=lambda directory: None):
    directory = installation.dir / f"unasked-{next(COUNTER)}"
    directory.mkdir()
    git(directory, "init", "-q", ".")
    (directory / "file").write_text("one\n")
    git(directory, "add", "file")
    git(directory, "-c", "user.name=A", "-c", "user.email=a@b.c", "commit", "-qm", "first")
    prepare(directory)
    installation.give(directory)
    return directory


class GitAttempt:
    """One way in a workspace of its own."""

    def __init__(self, installation, user, prepare=lambda directory: None):
        self.installation, self.user = installation, user
        self.directory = repository(installation, prepare)
        self.witness = installation.dir / f"witness-{next(COUNTER)}"

    def run(self, script, options, interface="cli"):
        plant = PLANT.replace("{witness}", str(self.witness)).replace("{workspace}", str(self.directory))
        result = INTERFACES[interface](self.installation, ["sh", "-c", f"{plant}\n{script}\necho over"], options, cwd=self.directory)
        assert "over" in result.text, result.text
        return result

    def is_hit(self, where="."):
        """Whether the command's program runs when a person inspects the directory."""
        git(self.directory / where, "status", check=False)
        return self.witness.exists()


def overlaid(attempt, script):
    """Runs it over an overlay; its id."""
    label = f"unasked-{next(COUNTER)}"
    result = attempt.run(script, isolation(attempt.user, workspace="overlay", labels=(label,)))
    [entry] = attempt.installation.json("ps", "-a", "--label", label)
    return entry["id"], result


@pytest.mark.parametrize("user", FIRST)
@pytest.mark.parametrize("transport", VECTORS)
def test_medium_lets_it_through_untold(protected_envs, user, transport):
    script, where, _ = VECTORS[transport]
    attempt = GitAttempt(protected_envs.of(user), user)
    result = attempt.run(script, IsolationOptions(level="medium"))
    assert attempt.is_hit(where), result.text
    assert "used unasked" not in result.text


@pytest.mark.parametrize(("user", "interface"), USERS_BY_INTERFACE)
@pytest.mark.parametrize("transport", VECTORS)
def test_high_tells_it(protected_envs, user, interface, transport):
    script, _, path = VECTORS[transport]
    result = GitAttempt(protected_envs.of(user), user).run(script, isolation(user), interface)
    assert f"unasked by git: {path} " in result.text, result.text


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("transport", VECTORS)
def test_an_overlay_is_not_committed_with_it(protected_envs, user, transport):
    script, where, path = VECTORS[transport]
    attempt = GitAttempt(protected_envs.of(user), user)
    pid, result = overlaid(attempt, script)
    warning = f"unasked by git: {path} "
    assert warning in result.text, result.text
    shown = attempt.installation.cli("diff", pid)
    assert warning in shown.stderr.decode() and warning not in shown.stdout.decode(), shown
    assert warning in attempt.installation.cli("workspace", pid).stdout.decode()
    refused = attempt.installation.cli("commit", pid, check=False)
    assert refused.returncode == 1 and warning in refused.stdout.decode() and b"--allow-autorun" in refused.stdout
    assert not (attempt.directory / where).is_dir() or not attempt.is_hit(where)
    allowed = attempt.installation.cli("commit", "--allow-autorun", pid)
    assert warning in allowed.stdout.decode()
    assert attempt.is_hit(where), "the way is one"


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("key", NAMED)
def test_files_named_by_a_configuration_are_reported(protected_envs, user, key):
    value, script = NAMED[key]
    attempt = GitAttempt(protected_envs.of(user), user, lambda directory: git(directory, "config", key, value))
    result = attempt.run(script, isolation(user))
    path = {"ours": "ours/post-index-change", "./monitor": "monitor", "../more": "more"}[value]
    assert f"unasked by git: {path} " in result.text, result.text


def with_submodule(installation):
    """Adds a submodule to a repository that is prepared."""
    def prepare(directory):
        other = installation.dir / f"other-{next(COUNTER)}"
        other.mkdir()
        git(other, "init", "-q", ".")
        git(other, "-c", "user.name=A", "-c", "user.email=a@b.c", "commit", "-q", "--allow-empty", "-m", "first")
        git(directory, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(other), "sub")
        git(directory, "-c", "user.name=A", "-c", "user.email=a@b.c", "commit", "-qm", "with a submodule")
        git(directory / "sub", "config", "core.pager", "ours")
    return prepare


#: Ways to hooks of a submodule. Each prints `got in` where it got there.
MODULE = (
    "echo evil > .git/modules/sub/hooks/post-checkout && echo got in",
    "mv .git/modules/sub/hooks .git/modules/sub/h && echo got in",
    "mv .git/modules/sub .git/modules/other && echo got in",
    "mv .git/modules .git/m && echo got in",
)


@pytest.mark.parametrize("user", USERS)
def test_hooks_of_submodules_are_protected(protected_envs, user):
    installation = protected_envs.of(user)
    attempt = GitAttempt(installation, user, with_submodule(installation))
    hooks = attempt.directory / ".git" / "modules" / "sub" / "hooks"
    before = sorted(path.name for path in hooks.iterdir())
    for script in MODULE:
        assert "got in" not in attempt.run(script, isolation(user)).text, script
    overlaid(attempt, "; ".join(f"({script})" for script in MODULE))
    assert sorted(path.name for path in hooks.iterdir()) == before
    assert "got in" in attempt.run(MODULE[0], IsolationOptions(level="medium")).text


@pytest.mark.parametrize("user", USERS)
def test_configuration_of_submodules_is_reported_where_it_is_new(protected_envs, user):
    """`git submodule update` writes it again, unchanged."""
    installation = protected_envs.of(user)
    attempt = GitAttempt(installation, user, with_submodule(installation))
    warning = "unasked by git: .git/modules/sub/config "
    script = 'plant evil && git -C sub config core.fsmonitor "$PWD/evil" && cp .git/index .git/modules/sub/index'
    same = "git -C sub config core.pager other && git -C sub config core.pager ours && git -C sub config user.name B"
    assert warning not in attempt.run(same, isolation(user)).text
    pid, result = overlaid(attempt, script)
    assert warning in result.text and "core.fsmonitor" in result.text and "core.pager" not in result.text, result.text
    assert attempt.installation.cli("commit", pid, check=False).returncode == 1
    assert not attempt.is_hit("sub")
    assert warning in attempt.run(script, isolation(user)).text
    assert attempt.is_hit("sub")


@pytest.mark.parametrize("user", USERS)
def test_work_with_git_goes_on_untold(protected_envs, user):
    """Submodules, worktrees, clones and new repositories."""
    installation = protected_envs.of(user)
    attempt = GitAttempt(installation, user, with_submodule(installation))
    work = """
    set -ex
    export GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@b.c GIT_COMMITTER_NAME=A GIT_COMMITTER_EMAIL=a@b.c
    git submodule --quiet update && git -C sub commit -q --allow-empty -m more && git -C sub checkout -q -b new
    git add sub && git commit -qm moved && git worktree add -q tree && git -C tree commit -q --allow-empty -m there
    git worktree list | grep -c tree && git worktree remove tree && git worktree add -q tree2
    git gc -q && git status --porcelain && git init -q fresh && git clone -q fresh second 2>/dev/null
    git init -q --bare fresh.git && git -C fresh config user.name A && git branch x && git stash list
    echo worked
    """
    result = attempt.run(work, isolation(user))
    assert "worked" in result.text and "used unasked" not in result.text, result.text
    pid, result = overlaid(attempt, work.replace("new", "newer").replace("tree2", "tree3").replace("branch x", "branch y")
                        .replace("fresh", "other").replace("second", "third"))
    assert "worked" in result.text and "used unasked" not in result.text, result.text
    committed = attempt.installation.cli("commit", pid, check=False)
    assert committed.returncode == 0, committed


TOOLS = {
    ".envrc": "direnv", ".vscode/tasks.json": "VS Code", ".idea/workspace.xml": "JetBrains IDEs", ".husky/pre-commit": "git",
    ".pre-commit-config.yaml": "pre-commit", "deep/mise.toml": "mise", ".tool-versions": "asdf, mise", ".npmrc": "npm",
    ".cargo/config.toml": "cargo", ".devcontainer/devcontainer.json": "Dev Containers", ".gdbinit": "gdb",
    ".lldbinit": "lldb", ".exrc": "vi, vim, nvim", ".claude/settings.json": "Claude Code",
}


@pytest.mark.parametrize(("user", "interface"), USERS_BY_INTERFACE)
def test_files_of_other_tools_are_reported(protected_envs, user, interface):
    """A line each of several; the whole list is held against real files in crates/sandbox."""
    attempt = GitAttempt(protected_envs.of(user), user)
    script = "\n".join(f'mkdir -p "$(dirname {path})"; echo x > {path}' for path in TOOLS)
    result = attempt.run(script + "\necho 'all:' > Makefile; echo root > .editorconfig", isolation(user), interface)
    for path, reader in TOOLS.items():
        assert f"unasked by {reader}: {path} " in result.text, result.text
    assert "Makefile" not in result.text and ".editorconfig" not in result.text
    again = attempt.run("echo y > plain; cat .envrc", isolation(user), interface)
    assert "used unasked" not in again.text, "what was there before is not told again"


@pytest.mark.parametrize("user", FIRST)
def test_it_is_in_the_answers_of_programs(protected_envs, user):
    installation = protected_envs.of(user)
    attempt = GitAttempt(installation, user)
    pid, _ = overlaid(attempt, "echo x > .envrc")
    one = {"path": ".envrc", "reader": "direnv", "why": "is run on entering the directory"}
    warning = {"found": [one], "more": 0, "incomplete": None}
    assert installation.json("info", pid)["isolation"]["autorun"] == warning
    assert installation.json("workspace", pid)["autorun"] == warning
    refused = json.loads(installation.cli("commit", pid, "--json", check=False).stdout)
    assert refused["refused"] is True and refused["autorun"] == warning and refused["fate"] == "open"
    path = f"/api/v1/executions/{pid}/workspace"
    assert installation.rest("GET", f"{path}/diff")["autorun"] == warning
    assert installation.rest("POST", f"{path}/commit")["refused"] is True
    committed = installation.rest("POST", f"{path}/commit?allow_autorun=true")
    assert committed["fate"] == "committed" and committed["autorun"] == warning


@pytest.mark.anyio
@pytest.mark.parametrize("user", USERS)
async def test_an_agent_is_refused_and_may_insist(protected_envs, user):
    installation = protected_envs.of(user)
    directory = repository(installation)
    async with installation.agent() as agent:
        options = isolation(user, workspace="overlay").arguments()
        done = await agent.must("exec", script="echo x > .envrc", cwd=str(directory), wait_ms=45_000, **options)
        assert "unasked by direnv: .envrc" in done.text
        order = {"id": done.value("id")}
        refused = await agent.call("workspace", action="commit", **order)
        assert refused.is_error and "unasked by direnv: .envrc" in refused.text and "allow_autorun" in refused.text
        assert not (directory / ".envrc").exists()
        await agent.must("workspace", action="commit", allow_autorun=True, **order)
        assert (directory / ".envrc").exists()


@pytest.mark.parametrize("user", USERS)
def test_a_directory_that_was_closed_is_not_passed_over(protected_envs, user):
    """A process that knows a name in it can still open that; an ordinary user cannot list it."""
    attempt = GitAttempt(protected_envs.of(user), user)
    result = attempt.run("mkdir sub && evil sub/.git && chmod 311 sub", isolation(user))
    assert "unasked by git: sub/.git/config " in result.text or "sub was not looked at" in result.text, result.text
    assert attempt.is_hit("sub")


@pytest.mark.parametrize("user", FIRST)
def test_what_is_not_looked_at_is_said(protected_envs, user):
    attempt = GitAttempt(protected_envs.of(user), user)
    script = "python3 -c '" + "\n".join((
        "import os", "os.mkdir(\"many\")", "for n in range(100_100): os.close(os.open(f\"many/{n}\", os.O_CREAT))")) + "'"
    result = attempt.run(script + "; mkdir -p many/deep; echo x > many/deep/.envrc", isolation(user))
    assert "not all files that are used unasked were looked for" in result.text, result.text
    subprocess.run(["rm", "-rf", str(attempt.directory / "many")], check=True)
