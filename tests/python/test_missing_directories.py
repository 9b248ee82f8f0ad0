"""Runtime and state directories that go away, state directories that are mixed up, homes and
configurations that are not there."""

import json
import os
import shutil
import subprocess

import pytest

from harness import until

pytestmark = pytest.mark.anyio


def background(place, script):
    return place.cli("run", "-d", "--", "sh", "-c", script).stdout.decode().strip()


@pytest.mark.parametrize("depth", ["sockets", "directory", "base"])
@pytest.mark.parametrize("gone", ["removed", "moved"])
def test_a_daemon_whose_runtime_directory_goes_away_listens_again(any_place, depth, gone):
    place = any_place
    pid = background(place, "until [ -e go ]; do sleep .02; done; exit 5")
    daemon = place.daemon().pid
    base = place.dir / "run"
    paths = {"sockets": [place.socket, place.socket.parent / "front.sock"], "directory": [place.socket.parent], "base": [base]}
    for path in paths[depth]:
        if gone == "moved":
            path.rename(path.with_name(path.name + ".away"))
        elif path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    if depth == "base":
        base.mkdir(mode=0o700)
        place.give(base)
    running = [entry["id"] for entry in place.json("ps")]
    assert running == [pid], "the same daemon answers at once"
    assert place.daemon().pid == daemon
    (place.work / "go").touch()
    assert place.cli("wait", pid, check=False).returncode == 5
    for _ in range(3):
        shutil.rmtree(place.socket.parent)
        assert place.cli("run", "--", "echo", "x").stdout == b"x\n"
        assert place.daemon().pid == daemon


async def test_agents_come_back_after_their_runtime_directory(place):
    async with place.agent() as agent:
        assert not (await agent.execute("true")).is_error
        shutil.rmtree(place.socket.parent)
        assert not (await agent.execute("true")).is_error, "a conversation goes on"
    until(lambda: place.socket.exists(), 10, "the sockets")
    async with place.agent() as agent:
        assert not (await agent.execute("true")).is_error


def test_a_daemon_elsewhere_is_named(place):
    background(place, "sleep 100")
    daemon = place.daemon().pid
    elsewhere = {"OSTLER_RUNTIME_DIR": place.dir / "elsewhere"}
    for verb in (["ps"], ["version"], ["doctor"]):
        done = place.cli(*verb, env=elsewhere, check=False)
        told = (done.stdout + done.stderr).decode()
        assert f"process {daemon}" in told and str(place.state) in told, told
    assert place.cli("ps", env=elsewhere, check=False).returncode not in (0, 101)


def test_another_state_directory_than_the_daemon_serves_is_refused(place):
    place.cli("run", "--", "true")
    other = place.dir / "other"
    for verb in (["run", "--", "true"], ["ps"], ["shutdown"], ["rm", "--all"]):
        done = place.cli("--state-dir", other, *verb, check=False)
        told = done.stderr.decode()
        assert done.returncode not in (0, 101), verb
        assert str(other) in told and str(place.state) in told, told
    told = place.cli("--state-dir", other, "version").stdout.decode()
    assert str(other) in told and str(place.state) in told, told
    told = place.cli("--state-dir", other, "doctor", check=False).stdout.decode()
    assert str(place.state) in told, told
    assert len(place.json("ps", "--all")) == 1, "nothing was done to the other one"
    linked = place.dir / "linked"
    linked.symlink_to(place.state)
    assert place.cli("--state-dir", linked, "ps").returncode == 0, "the same by another name"
    place.kill_daemon()
    assert place.cli("--state-dir", other, "run", "--", "echo", "x").stdout == b"x\n"


def test_a_state_directory_that_goes_away_is_said(place):
    place.cli("run", "--", "true")
    place.remove_state()
    done = place.cli("run", "--", "true", check=False)
    assert done.returncode == 74, done
    assert str(place.state) in done.stderr.decode() and "not there any more" in done.stderr.decode()
    assert place.cli("shutdown").returncode == 0
    assert place.cli("run", "--", "echo", "anew").stdout == b"anew\n"


BROKEN = {
    "no toml": "this is [ no toml",
    "unknown key": "no_such_key = 1\nlog = \"info\"\n",
    "bad value": "[retention]\ncommand_seconds = \"soon\"\n",
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_configuration_is_explained(place, text):
    file = place.dir / "config" / "ostler" / "config.toml"
    file.parent.mkdir()
    file.write_text(text)
    help_, completions = place.cli("--help"), place.cli("completions", "bash")
    assert help_.stdout and completions.stdout
    version = place.cli("version")
    assert version.stdout.startswith(b"ostler ") and str(file).encode() in version.stderr
    explained = place.cli("config", "explain", check=False)
    assert b"state_dir" in explained.stdout, explained
    assert explained.returncode not in (0, 101) and str(file).encode() in explained.stderr
    doctor = place.cli("doctor", check=False)
    assert b"configuration" in doctor.stdout and str(file).encode() in doctor.stdout, doctor
    refused = place.cli("run", "--", "true", check=False)
    assert refused.returncode not in (0, 101) and str(file).encode() in refused.stderr
    assert refused.stdout == b""


def test_an_unreadable_configuration_is_explained(ordinary_place):
    place = ordinary_place
    file = place.dir / "config" / "ostler" / "config.toml"
    file.parent.mkdir()
    file.write_text("log = 'info'\n")
    place.give(place.dir / "config")
    file.chmod(0)
    assert place.cli("version").returncode == 0
    explained = place.cli("config", "explain", check=False)
    assert b"state_dir" in explained.stdout and b"Permission denied" in explained.stderr, explained
    assert b"Permission denied" in place.cli("doctor", check=False).stdout


@pytest.mark.parametrize("home", [None, "", "relative", "/nonexistent"])
def test_without_a_home(ordinary_place, home):
    place = ordinary_place
    env = {key: value for key, value in place.env().items() if key in ("PATH", "LANG", "TZ")}
    env["TMPDIR"] = str(place.dir)
    if home is not None:
        env["HOME"] = home

    def bare(*args):
        return subprocess.run(place.argv(*args), cwd=place.work, env=env, capture_output=True, timeout=60, check=False)

    for verb in (["--help"], ["version"], ["completions", "bash"], ["config", "explain"]):
        done = bare(*verb)
        assert done.returncode == 0 and done.stdout, (verb, done)
    assert bare("doctor").returncode in (0, 1)
    done = bare("run", "--", "true")
    if done.returncode == 0:
        bare("shutdown")
    else:
        assert b"state directory" in done.stderr and b"--state-dir" in done.stderr, done.stderr
