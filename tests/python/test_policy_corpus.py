"""The shell analyser from outside: attempts of every class are refused and leave nothing behind, and each is real:
without a policy it has its effect."""

import json
import shutil
from pathlib import Path

import pytest

from harness.installation import ProblemError
from harness.isolation_client import INTERFACES, IsolationOptions
from harness.tiers import each_once

CORPUS = Path(__file__).parents[2] / "crates" / "policy" / "tests" / "corpus"
#: How many attempts of each class are put to the command line; the tests of the crate try all.
SAMPLE = 8
#: The file that an attempt makes where it gets through.
WITNESS = "witness"


def lines(path):
    """The commands of a corpus file that are scripts without anything besides."""
    text = [line for line in path.read_text().splitlines() if line and not line.startswith("# ")]
    return [line.replace("␤", "\n") for line in text if not line.startswith(("argv ", "set "))]


def sample(path, size=SAMPLE):
    every = lines(path)
    return every[:: max(1, len(every) // size)]


CLASSES = sorted(path.stem for path in (CORPUS / "attempts").glob("*.txt"))


def decision(installation, script):
    check = installation.cli("policy", "check", "--shipped", "--json", "--cwd", installation.work, "--script", script, check=False)
    return json.loads(check.stdout)["decision"]


@pytest.mark.parametrize("name", CLASSES)
def test_no_attempt_of_a_class_is_allowed(installation, name):
    attempts = sample(CORPUS / "attempts" / f"{name}.txt")
    missed = [script for script in attempts if decision(installation, script) == "allow"]
    assert len(attempts) >= 8 and not missed, missed


def test_daily_work_is_allowed(installation):
    refused = [script for script in sample(CORPUS / "innocent.txt", 40) if decision(installation, script) != "allow"]
    assert not refused, refused


#: By class: a shell, a script that makes the witness, and the programs it needs.
REAL = {
    "an index in a test": ("bash", "x='a[$(touch witness)]'; [[ x -eq 0 ]]", ()),
    "an index in a number": ("bash", "COUNT='x[$(touch witness)]'; [[ COUNT -gt 0 ]]", ()),
    "an index of test": ("bash", "x='a[$(touch witness)]'; a=-v; test \"$a\" \"$x\"", ()),
    "an index of printf": ("bash", "x=-v; y='a[$(touch witness)]'; printf \"$x\" \"$y\" z", ()),
    "an index in a split word": ("bash", "x='-v a[$(>witness)]'; [ $x ]", ()),
    "an index of a positional": ("bash", "bash -c '[ \"$@\" ]' _ -v 'a[$(touch witness)]'", ()),
    "arithmetic": ("bash", "x='a[$(touch witness)]'; ((x))", ()),
    "an expansion": ("bash", "x='a[$(touch witness)]'; echo $((x))", ()),
    "a keyword of bash": ("dash", "[[ a || touch witness ]]", ("dash",)),
    "a redirection of other shells": ("dash", "[[ a > witness ]]", ("dash",)),
    "history": ("bash", "set -o history\nset -o histexpand\necho '$(touch witness)'\necho \"!!:1\"", ()),
    "python on its input": ("sh", "echo 'open(\"witness\", \"w\")' | python3 -v", ("python3",)),
    "python by a name": ("sh", "echo 'open(\"witness\", \"w\")' > version; python3 version", ("python3",)),
    "sqlite by a name": ("sh", "echo '.shell touch witness' | sqlite3 version", ("sqlite3",)),
    "xargs in a script": ("sh", "echo ';touch witness' | xargs -I{} sh -c 'echo {}'", ()),
    "a makefile": ("sh", "printf 'all:\\n\\ttouch witness\\n' > Makefile; make", ("make",)),
    "a makefile in an option": ("sh", "make -sE 'all: ; touch witness'", ("make",)),
    "another directory": ("sh", "env -C .. make -C work -f evil.mk", ("make",)),
    "a repository in settings": (
        "sh", "git init -q --bare sub; mkdir -p tree; printf '[core]\\nrepositoryformatversion = 0\\n"
        "bare = false\\nworktree = ../tree\\n"
        "fsmonitor = \"touch ../witness; false\"\\n' > sub/config; git -C sub status", ("git",)),
    "a repository elsewhere": ("sh", "git init -q witness/../../witness", ("git",)),
    "an index of tar": ("sh", "tar -cf a.tar evil; tar -tvf a.tar --index-file=witness", ("tar",)),
}


def prepared(installation):
    lookalikes = installation.work / "evil"
    lookalikes.write_text("#!/bin/sh\ntouch witness\n")
    lookalikes.chmod(0o755)
    (installation.work / "evil.mk").write_text("all:\n\ttouch witness\n")
    return installation


def witnessed(installation):
    return sorted(installation.dir.rglob(WITNESS))


def usable(name):
    shell, _, programs = REAL[name]
    missing = [it for it in (shell, *programs) if shutil.which(it, path="/usr/bin:/bin") is None]
    if missing:
        pytest.skip(f"needs {missing}")


@pytest.mark.parametrize("name", REAL)
def test_each_is_real_without_a_policy(installation, name):
    usable(name)
    shell, script, _ = REAL[name]
    result = INTERFACES["cli"](prepared(installation), [shell, "-c", script], IsolationOptions(level="medium"))
    assert witnessed(installation), result.text


@pytest.fixture
def shipped(make_installation):
    """An installation with the shipped policy."""
    installation = make_installation()
    config = installation.dir / "config" / "ostler"
    config.mkdir(exist_ok=True)
    (config / "config.toml").write_text('[policy]\nmode = "default"\n')
    return prepared(installation)


@pytest.mark.parametrize(("name", "interface"), each_once(REAL, INTERFACES))
def test_none_gets_through_the_shipped_policy(shipped, interface, name):
    usable(name)
    shell, script, _ = REAL[name]
    result = INTERFACES[interface](shipped, [shell, "-c", script], IsolationOptions(level="medium"))
    assert result.refused and result.exit_code != 0, result.text
    assert not witnessed(shipped), result.text
    assert shipped.json("ps", "-a") == []


@pytest.mark.parametrize("name", REAL)
def test_none_gets_through_by_rest(shipped, name):
    usable(name)
    shell, script, _ = REAL[name]
    shipped.cli("run", "--", "true")
    with pytest.raises(ProblemError) as refused:
        shipped.rest("POST", "/api/v1/executions", {
            "command": {"argv": {"program": shell, "args": ["-c", script]}}, "cwd": str(shipped.work)})
    assert refused.value.status == 403, refused.value.problem
    assert not witnessed(shipped)
