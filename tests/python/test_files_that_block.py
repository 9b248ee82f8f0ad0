"""Files that requests name and that block whoever opens them: named pipes without a writer, and files with a write lease.
No request waits for one, and others are answered meanwhile."""

import fcntl
import os
import signal

import pytest

from harness.protected_env import FIRST, isolation


@pytest.fixture
def leased():
    """Holds write leases on files; an open(2) of others would wait for 45 s."""
    descriptors = []
    before = signal.signal(signal.SIGIO, signal.SIG_IGN)

    def lease(path):
        descriptors.append(os.open(path, os.O_WRONLY))
        fcntl.fcntl(descriptors[-1], fcntl.F_SETLEASE, fcntl.F_WRLCK)

    yield lease
    for descriptor in descriptors:
        os.close(descriptor)
    signal.signal(signal.SIGIO, before)


def pipe(path):
    path.unlink(missing_ok=True)
    os.mkfifo(path)


@pytest.mark.parametrize("user", FIRST)
def test_a_git_configuration_that_is_a_pipe(protected_envs, user):
    installation = protected_envs.of(user)
    home = installation.dir / "home-with-a-pipe"
    home.mkdir(exist_ok=True)
    pipe(home / ".gitconfig")
    for path in (home, home / ".gitconfig"):
        installation.give(path)
    words = ("run", *isolation(user).words(), "--cwd", installation.work, "--env", f"HOME={home}", "--", "echo", "runs")
    for _ in range(3):
        assert installation.cli(*words, timeout=30).stdout == b"runs\n"
    assert installation.cli("ps", timeout=10).returncode == 0


@pytest.mark.parametrize("make", ["pipe", "lease"])
def test_an_ostler_toml_that_cannot_be_read_at_once(installation, leased, make):
    file = installation.work / "ostler.toml"
    file.write_text('[services.web]\ncommand = "sleep 300"\n')
    installation.give(file)
    installation.cli("service", "ps")
    if make == "pipe":
        pipe(file)
        installation.cli("service", "ps", check=False, timeout=30)
    else:
        leased(file)
        done = installation.cli("service", "up", check=False, timeout=30)
        assert done.returncode != 0 and b"cannot be read" in done.stderr, done
    assert installation.cli("run", "--", "echo", "runs", timeout=10).stdout == b"runs\n"


def test_rules_of_a_workspace_that_cannot_be_read_at_once_refuse_what_they_would_judge(make_installation, leased):
    installation = make_installation()
    installation.write_policy('default = "allow"\n')
    rules = installation.work / ".ostler" / "policy.toml"
    rules.parent.mkdir()
    rules.write_text("")
    for path in (rules.parent, rules):
        installation.give(path)
    assert installation.cli("run", "--", "echo", "runs").stdout == b"runs\n"
    leased(rules)
    refused = installation.cli("run", "--", "echo", "runs", check=False, timeout=30)
    assert refused.returncode != 0 and b"policy.toml" in refused.stderr, refused
    assert installation.cli("ps", timeout=10).returncode == 0
