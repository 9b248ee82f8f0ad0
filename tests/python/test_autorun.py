"""What a command leaves that a person's tools run without being asked: protected, or told and not committed."""

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

#: Ways to code on the host at the next `git status` in the named directory, and the path that is told.
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
#: What is in force already and leads into the workspace: the setting, and how its program is changed.
NAMED = {
    "core.hooksPath": ("ours", "mkdir -p ours && plant ours/post-index-change"),
    "core.fsmonitor": ("./monitor", "plant monitor"),
    "include.path": ("../more", "plant evil && cp evil.config more"),
}


def git(directory, *words, check=True):
    words = ["git", "-c", "safe.directory=*", *words]
    return subprocess.run(words, cwd=directory, check=check, capture_output=True, timeout=60)


def repository(place, prepare=lambda directory: None):
    directory = place.dir / f"unasked-{next(COUNTER)}"
    directory.mkdir()
    git(directory, "init", "-q", ".")
    (directory / "file").write_text("one\n")
    git(directory, "add", "file")
    git(directory, "-c", "user.name=A", "-c", "user.email=a@b.c", "commit", "-qm", "first")
    prepare(directory)
    place.give(directory)
    return directory


class Try:
    """One way in a workspace of its own."""

    def __init__(self, place, who, prepare=lambda directory: None):
        self.place, self.who = place, who
        self.directory = repository(place, prepare)
        self.witness = place.dir / f"witness-{next(COUNTER)}"

    def run(self, script, asked, face="cli"):
        plant = PLANT.replace("{witness}", str(self.witness)).replace("{workspace}", str(self.directory))
        ran = INTERFACES[face](self.place, ["sh", "-c", f"{plant}\n{script}\necho over"], asked, cwd=self.directory)
        assert "over" in ran.text, ran.text
        return ran

    def is_hit(self, where="."):
        """Whether a person who looks at it runs the command's program."""
        git(self.directory / where, "status", check=False)
        return self.witness.exists()


def overlaid(attempt, script):
    """Runs it over an overlay; its id."""
    label = f"unasked-{next(COUNTER)}"
    ran = attempt.run(script, isolation(attempt.who, workspace="overlay", labels=(label,)))
    [entry] = attempt.place.json("ps", "-a", "--label", label)
    return entry["id"], ran


@pytest.mark.parametrize("who", FIRST)
@pytest.mark.parametrize("way", VECTORS)
def test_medium_lets_it_through_untold(places, who, way):
    script, where, _ = VECTORS[way]
    attempt = Try(places.of(who), who)
    ran = attempt.run(script, IsolationOptions(level="medium"))
    assert attempt.is_hit(where), ran.text
    assert "used unasked" not in ran.text


@pytest.mark.parametrize(("who", "face"), USERS_BY_INTERFACE)
@pytest.mark.parametrize("way", VECTORS)
def test_high_tells_it(places, who, face, way):
    script, _, path = VECTORS[way]
    ran = Try(places.of(who), who).run(script, isolation(who), face)
    assert f"unasked by git: {path} " in ran.text, ran.text


@pytest.mark.parametrize("who", USERS)
@pytest.mark.parametrize("way", VECTORS)
def test_an_overlay_is_not_committed_with_it(places, who, way):
    script, where, path = VECTORS[way]
    attempt = Try(places.of(who), who)
    pid, ran = overlaid(attempt, script)
    told = f"unasked by git: {path} "
    assert told in ran.text, ran.text
    shown = attempt.place.cli("diff", pid)
    assert told in shown.stderr.decode() and told not in shown.stdout.decode(), shown
    assert told in attempt.place.cli("workspace", pid).stdout.decode()
    refused = attempt.place.cli("commit", pid, check=False)
    assert refused.returncode == 1 and told in refused.stdout.decode() and b"--allow-autorun" in refused.stdout
    assert not (attempt.directory / where).is_dir() or not attempt.is_hit(where)
    allowed = attempt.place.cli("commit", "--allow-autorun", pid)
    assert told in allowed.stdout.decode()
    assert attempt.is_hit(where), "the way is one"


@pytest.mark.parametrize("who", USERS)
@pytest.mark.parametrize("key", NAMED)
def test_what_a_configuration_names_is_told(places, who, key):
    value, script = NAMED[key]
    attempt = Try(places.of(who), who, lambda directory: git(directory, "config", key, value))
    ran = attempt.run(script, isolation(who))
    path = {"ours": "ours/post-index-change", "./monitor": "monitor", "../more": "more"}[value]
    assert f"unasked by git: {path} " in ran.text, ran.text


def with_submodule(place):
    """Adds a submodule to a repository that is prepared."""
    def prepare(directory):
        other = place.dir / f"other-{next(COUNTER)}"
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


@pytest.mark.parametrize("who", USERS)
def test_hooks_of_submodules_are_protected(places, who):
    place = places.of(who)
    attempt = Try(place, who, with_submodule(place))
    hooks = attempt.directory / ".git" / "modules" / "sub" / "hooks"
    before = sorted(path.name for path in hooks.iterdir())
    for script in MODULE:
        assert "got in" not in attempt.run(script, isolation(who)).text, script
    overlaid(attempt, "; ".join(f"({script})" for script in MODULE))
    assert sorted(path.name for path in hooks.iterdir()) == before
    assert "got in" in attempt.run(MODULE[0], IsolationOptions(level="medium")).text


@pytest.mark.parametrize("who", USERS)
def test_configuration_of_submodules_is_told_where_it_says_something_new(places, who):
    """`git submodule update` writes it again, with what it says already."""
    place = places.of(who)
    attempt = Try(place, who, with_submodule(place))
    told = "unasked by git: .git/modules/sub/config "
    script = 'plant evil && git -C sub config core.fsmonitor "$PWD/evil" && cp .git/index .git/modules/sub/index'
    same = "git -C sub config core.pager other && git -C sub config core.pager ours && git -C sub config user.name B"
    assert told not in attempt.run(same, isolation(who)).text
    pid, ran = overlaid(attempt, script)
    assert told in ran.text and "core.fsmonitor" in ran.text and "core.pager" not in ran.text, ran.text
    assert attempt.place.cli("commit", pid, check=False).returncode == 1
    assert not attempt.is_hit("sub")
    assert told in attempt.run(script, isolation(who)).text
    assert attempt.is_hit("sub")


@pytest.mark.parametrize("who", USERS)
def test_work_with_git_goes_on_untold(places, who):
    """Submodules, worktrees, clones and new repositories."""
    place = places.of(who)
    attempt = Try(place, who, with_submodule(place))
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
    ran = attempt.run(work, isolation(who))
    assert "worked" in ran.text and "used unasked" not in ran.text, ran.text
    pid, ran = overlaid(attempt, work.replace("new", "newer").replace("tree2", "tree3").replace("branch x", "branch y")
                        .replace("fresh", "other").replace("second", "third"))
    assert "worked" in ran.text and "used unasked" not in ran.text, ran.text
    committed = attempt.place.cli("commit", pid, check=False)
    assert committed.returncode == 0, committed


TOOLS = {
    ".envrc": "direnv", ".vscode/tasks.json": "VS Code", ".idea/workspace.xml": "JetBrains IDEs", ".husky/pre-commit": "git",
    ".pre-commit-config.yaml": "pre-commit", "deep/mise.toml": "mise", ".tool-versions": "asdf, mise", ".npmrc": "npm",
    ".cargo/config.toml": "cargo", ".devcontainer/devcontainer.json": "Dev Containers", ".gdbinit": "gdb",
    ".lldbinit": "lldb", ".exrc": "vi, vim, nvim", ".claude/settings.json": "Claude Code",
}


@pytest.mark.parametrize(("who", "face"), USERS_BY_INTERFACE)
def test_files_of_other_tools_are_told(places, who, face):
    """A line each of several; the whole list is held against real files in crates/sandbox."""
    attempt = Try(places.of(who), who)
    script = "\n".join(f'mkdir -p "$(dirname {path})"; echo x > {path}' for path in TOOLS)
    ran = attempt.run(script + "\necho 'all:' > Makefile; echo root > .editorconfig", isolation(who), face)
    for path, reader in TOOLS.items():
        assert f"unasked by {reader}: {path} " in ran.text, ran.text
    assert "Makefile" not in ran.text and ".editorconfig" not in ran.text
    again = attempt.run("echo y > plain; cat .envrc", isolation(who), face)
    assert "used unasked" not in again.text, "what was there before is not told again"


@pytest.mark.parametrize("who", FIRST)
def test_it_is_in_the_answers_of_programs(places, who):
    place = places.of(who)
    attempt = Try(place, who)
    pid, _ = overlaid(attempt, "echo x > .envrc")
    one = {"path": ".envrc", "reader": "direnv", "why": "is run on entering the directory"}
    told = {"found": [one], "more": 0, "incomplete": None}
    assert place.json("info", pid)["isolation"]["autorun"] == told
    assert place.json("workspace", pid)["autorun"] == told
    refused = json.loads(place.cli("commit", pid, "--json", check=False).stdout)
    assert refused["refused"] is True and refused["autorun"] == told and refused["fate"] == "open"
    path = f"/api/v1/executions/{pid}/workspace"
    assert place.rest("GET", f"{path}/diff")["autorun"] == told
    assert place.rest("POST", f"{path}/commit")["refused"] is True
    committed = place.rest("POST", f"{path}/commit?allow_autorun=true")
    assert committed["fate"] == "committed" and committed["autorun"] == told


@pytest.mark.anyio
@pytest.mark.parametrize("who", USERS)
async def test_an_agent_is_refused_and_may_insist(places, who):
    place = places.of(who)
    directory = repository(place)
    async with place.agent() as agent:
        asked = isolation(who, workspace="overlay").arguments()
        done = await agent.must("exec", script="echo x > .envrc", cwd=str(directory), wait_ms=45_000, **asked)
        assert "unasked by direnv: .envrc" in done.text
        order = {"id": done.value("id")}
        refused = await agent.call("workspace", action="commit", **order)
        assert refused.is_error and "unasked by direnv: .envrc" in refused.text and "allow_autorun" in refused.text
        assert not (directory / ".envrc").exists()
        await agent.must("workspace", action="commit", allow_autorun=True, **order)
        assert (directory / ".envrc").exists()


@pytest.mark.parametrize("who", USERS)
def test_a_directory_that_was_closed_is_not_passed_over(places, who):
    """Whoever knows a name in it can open that all the same; an ordinary user cannot list it."""
    attempt = Try(places.of(who), who)
    ran = attempt.run("mkdir sub && evil sub/.git && chmod 311 sub", isolation(who))
    assert "unasked by git: sub/.git/config " in ran.text or "sub was not looked at" in ran.text, ran.text
    assert attempt.is_hit("sub")


@pytest.mark.parametrize("who", FIRST)
def test_what_is_not_looked_at_is_said(places, who):
    attempt = Try(places.of(who), who)
    script = "python3 -c '" + "\n".join((
        "import os", "os.mkdir(\"many\")", "for n in range(100_100): os.close(os.open(f\"many/{n}\", os.O_CREAT))")) + "'"
    ran = attempt.run(script + "; mkdir -p many/deep; echo x > many/deep/.envrc", isolation(who))
    assert "not all files that are used unasked were looked for" in ran.text, ran.text
    subprocess.run(["rm", "-rf", str(attempt.directory / "many")], check=True)
