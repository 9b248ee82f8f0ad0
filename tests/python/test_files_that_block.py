"""Files that requests name, or that are ours, and that block whoever opens them: named pipes without a writer, and files
with a write lease. No request waits for one, and others are answered meanwhile."""

import fcntl
import json
import os
import signal
import socket

import pytest

from harness import until
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


def bind(path):
    """A socket; names of sockets are short."""
    directory = os.open(path.parent, os.O_DIRECTORY)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"/proc/self/fd/{directory}/{path.name}")
    os.close(directory)


#: What is put in the place of a file.
OTHERS = {"pipe": os.mkfifo, "socket": bind, "directory": os.mkdir, "endless": lambda path: path.symlink_to("/dev/zero")}
#: The files of the directory of an execution that has ended, and those that a longer output has besides.
SHORT = ["spec.json", "exit", "events.jsonl", "output.0.seg", "output.0.idx", "output.floor"]
LONG = ["output.0.seg", "output.0.seg.zst", "mirror.position", "mirror.jsonl"]


@pytest.mark.parametrize("other", OTHERS)
def test_a_file_of_an_execution_that_is_something_else(make_installation, other):
    installation = make_installation()
    config = installation.dir / "config" / "ostler"
    config.mkdir(parents=True)
    (config / "config.toml").write_text('[journal]\nmirror = "jsonl"\n')
    ids = {}
    for count, names in ((3, SHORT), (200_000, LONG)):
        for name in names:
            pid = installation.cli("run", "-d", "--", "seq", str(count)).stdout.decode().strip()
            assert installation.cli("wait", pid).returncode == 0
            ids[count, name] = pid, installation.json("info", pid)["uuid"]
    place = lambda uuid, name: installation.state / "executions" / uuid / name
    for (count, _), (_, uuid) in ids.items():
        expected = ["mirror.position", *(["output.0.seg.zst"] if count > 3 else [])]
        until(lambda: all(place(uuid, name).exists() for name in expected), 30, "what is done after the end")
    for (_, name), (_, uuid) in ids.items():
        path = place(uuid, name)
        path.unlink(missing_ok=True)
        OTHERS[other](path)

    def ask():
        for (_, name), (pid, _) in ids.items():
            for verb in (["logs", "--raw"], ["info"]):
                done = installation.cli(*verb, pid, check=False, timeout=20)
                assert done.returncode in (0, 74), (name, done)
                if done.returncode:
                    assert b"output" in done.stderr and b"to another one" not in done.stderr, (name, done)
        listed = installation.cli("ps", "--all", "--json", timeout=20).stdout
        assert len(json.loads(listed)) == len(ids), listed

    ask()
    floor, _ = ids[3, "output.floor"]
    for verb in ("logs", "clear"):
        done = installation.cli(verb, floor, check=False, timeout=20)
        assert done.returncode == 74 and b"output.floor is not a regular file" in done.stderr, done
    for _ in range(2):
        installation.kill_daemon()
        ask()
    spec, _ = ids[3, "spec.json"]
    assert "spec.json is damaged" in str(installation.json("info", spec))
    for (_, name), (pid, uuid) in ids.items():
        assert installation.cli("clear", pid, check=False, timeout=20).returncode in (0, 74), name
        assert installation.cli("rm", pid, timeout=20).returncode == 0, name
        assert not place(uuid, name).parent.exists()
    assert installation.cli("run", "--", "echo", "runs", timeout=20).stdout == b"runs\n"
