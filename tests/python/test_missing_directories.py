"""Runtime and state directories that are removed or mixed up, and missing homes and configurations."""

import json
import os
import shutil
import subprocess

import pytest

from harness import until

pytestmark = pytest.mark.anyio


def background(installation, script):
    return installation.cli("run", "-d", "--", "sh", "-c", script).stdout.decode().strip()


@pytest.mark.parametrize("depth", ["sockets", "directory", "base"])
@pytest.mark.parametrize("gone", ["removed", "moved"])
def test_a_daemon_whose_runtime_directory_goes_away_listens_again(each_installation, depth, gone):
    installation = each_installation
    pid = background(installation, "until [ -e go ]; do sleep .02; done; exit 5")
    daemon = installation.daemon().pid
    base = installation.dir / "run"
    runtime = installation.socket.parent
    paths = {"sockets": [installation.socket, runtime / "front.sock"], "directory": [runtime], "base": [base]}
    for path in paths[depth]:
        if gone == "moved":
            path.rename(path.with_name(path.name + ".away"))
        elif path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    if depth == "base":
        base.mkdir(mode=0o700)
        installation.give(base)
    running = [entry["id"] for entry in installation.json("ps")]
    assert running == [pid], "the same daemon answers at once"
    assert installation.daemon().pid == daemon
    (installation.work / "go").touch()
    assert installation.cli("wait", pid, check=False).returncode == 5
    for _ in range(3):
        shutil.rmtree(installation.socket.parent)
        assert installation.cli("run", "--", "echo", "x").stdout == b"x\n"
        assert installation.daemon().pid == daemon


async def test_agents_come_back_after_their_runtime_directory(installation):
    async with installation.agent() as agent:
        assert not (await agent.execute("true")).is_error
        shutil.rmtree(installation.socket.parent)
        assert not (await agent.execute("true")).is_error, "a conversation goes on"
    until(lambda: installation.socket.exists(), 10, "the sockets")
    async with installation.agent() as agent:
        assert not (await agent.execute("true")).is_error


def test_a_daemon_elsewhere_is_named(installation):
    background(installation, "sleep 100")
    daemon = installation.daemon().pid
    elsewhere = {"OSTLER_RUNTIME_DIR": installation.dir / "elsewhere"}
    for verb in (["ps"], ["version"], ["doctor"]):
        done = installation.cli(*verb, env=elsewhere, check=False)
        text = (done.stdout + done.stderr).decode()
        assert f"process {daemon}" in text and str(installation.state) in text, text
    assert installation.cli("ps", env=elsewhere, check=False).returncode not in (0, 101)


def test_another_state_directory_than_the_daemon_serves_is_refused(installation):
    installation.cli("run", "--", "true")
    other = installation.dir / "other"
    for verb in (["run", "--", "true"], ["ps"], ["shutdown"], ["rm", "--all"]):
        done = installation.cli("--state-dir", other, *verb, check=False)
        text = done.stderr.decode()
        assert done.returncode not in (0, 101), verb
        assert str(other) in text and str(installation.state) in text, text
    text = installation.cli("--state-dir", other, "version").stdout.decode()
    assert str(other) in text and str(installation.state) in text, text
    text = installation.cli("--state-dir", other, "doctor", check=False).stdout.decode()
    assert str(installation.state) in text, text
    assert len(installation.json("ps", "--all")) == 1, "nothing was done to the other one"
    linked = installation.dir / "linked"
    linked.symlink_to(installation.state)
    assert installation.cli("--state-dir", linked, "ps").returncode == 0, "the same by another name"
    installation.kill_daemon()
    assert installation.cli("--state-dir", other, "run", "--", "echo", "x").stdout == b"x\n"


def test_a_state_directory_that_goes_away_is_said(installation):
    installation.cli("run", "--", "true")
    installation.remove_state()
    done = installation.cli("run", "--", "true", check=False)
    assert done.returncode == 74, done
    assert str(installation.state) in done.stderr.decode() and "not there any more" in done.stderr.decode()
    assert installation.cli("shutdown").returncode == 0
    assert installation.cli("run", "--", "echo", "anew").stdout == b"anew\n"


BROKEN = {
    "no toml": "this is [ no toml",
    "unknown key": "no_such_key = 1\nlog = \"info\"\n",
    "bad value": "[retention]\ncommand_seconds = \"soon\"\n",
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_configuration_is_explained(installation, text):
    file = installation.dir / "config" / "ostler" / "config.toml"
    file.parent.mkdir()
    file.write_text(text)
    help_, completions = installation.cli("--help"), installation.cli("completions", "bash")
    assert help_.stdout and completions.stdout
    version = installation.cli("version")
    assert version.stdout.startswith(b"ostler ") and str(file).encode() in version.stderr
    explained = installation.cli("config", "explain", check=False)
    assert b"state_dir" in explained.stdout, explained
    assert explained.returncode not in (0, 101) and str(file).encode() in explained.stderr
    doctor = installation.cli("doctor", check=False)
    assert b"configuration" in doctor.stdout and str(file).encode() in doctor.stdout, doctor
    refused = installation.cli("run", "--", "true", check=False)
    assert refused.returncode not in (0, 101) and str(file).encode() in refused.stderr
    assert refused.stdout == b""


def test_an_unreadable_configuration_is_explained(unprivileged_installation):
    installation = unprivileged_installation
    file = installation.dir / "config" / "ostler" / "config.toml"
    file.parent.mkdir()
    file.write_text("log = 'info'\n")
    installation.give(installation.dir / "config")
    file.chmod(0)
    assert installation.cli("version").returncode == 0
    explained = installation.cli("config", "explain", check=False)
    assert b"state_dir" in explained.stdout and b"Permission denied" in explained.stderr, explained
    assert b"Permission denied" in installation.cli("doctor", check=False).stdout


@pytest.mark.parametrize("home", [None, "", "relative", "/nonexistent"])
def test_without_a_home(unprivileged_installation, home):
    installation = unprivileged_installation
    env = {key: value for key, value in installation.env().items() if key in ("PATH", "LANG", "TZ")}
    env["TMPDIR"] = str(installation.dir)
    if home is not None:
        env["HOME"] = home

    def no_cgroups(*args):
        return subprocess.run(installation.argv(*args), cwd=installation.work, env=env, capture_output=True, timeout=60, check=False)

    for verb in (["--help"], ["version"], ["completions", "bash"], ["config", "explain"]):
        done = no_cgroups(*verb)
        assert done.returncode == 0 and done.stdout, (verb, done)
    assert no_cgroups("doctor").returncode in (0, 1)
    done = no_cgroups("run", "--", "true")
    if done.returncode == 0:
        no_cgroups("shutdown")
    else:
        assert b"state directory" in done.stderr and b"--state-dir" in done.stderr, done.stderr
