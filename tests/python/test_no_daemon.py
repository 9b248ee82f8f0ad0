"""An engine inside its client (`--no-daemon`): what it advises can be followed, and nothing it holds is lost."""

import contextlib
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from harness.installation import is_root
from harness.wire import RawMcpClient
from test_approval import RULES

pytestmark = pytest.mark.anyio

#: Another state directory has a runtime directory of its own unless one is named.
OWN_RUNTIME = {"OSTLER_RUNTIME_DIR": ""}


@contextlib.contextmanager
def running_alone(installation):
    """A run that holds the state directory without a daemon."""
    words = installation.argv("run", "--no-daemon", "--", "sh", "-c", "echo begun; exec sleep 300")
    run = subprocess.Popen(words, cwd=installation.work, env=installation.env(), stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert run.stdout.readline() == b"begun\n"
        yield run
    finally:
        run.terminate()
        run.wait(20)
        run.stdout.close()
        run.stderr.close()


@pytest.mark.parametrize("daemon", [True, False], ids=["beside", "alone"])
def test_an_approval_that_nobody_can_give_is_not_asked_of_a_daemon(each_installation, daemon):
    each_installation.write_policy(RULES)
    if daemon:
        asked = each_installation.cli("run", "--", "touch", "dangerous", check=False)
        assert b"ostler approve i" in asked.stderr, asked.stderr
    refused = each_installation.cli("run", "--no-daemon", "--", "touch", "made", check=False)
    assert refused.returncode == 77 and b"'fine'" not in refused.stderr
    assert b"ostler approve" not in refused.stderr and b"without --no-daemon" in refused.stderr, refused.stderr
    assert not (each_installation.work / "made").exists()
    if daemon:
        approvals = each_installation.cli("approvals").stdout
        assert b"touch dangerous" in approvals and b"touch made" not in approvals


async def test_a_client_without_questions_is_told_the_same(each_installation):
    each_installation.write_policy(RULES)
    async with each_installation.agent(args=["--no-daemon"]) as agent:
        refused = await agent.execute("touch", "made")
        assert refused.code == "security_error" and "without --no-daemon" in refused.text, refused.text
        assert "ostler approve" not in refused.text


def test_others_are_told_who_has_the_state_directory(each_installation):
    with running_alone(each_installation) as run:
        for words in (["ps"], ["run", "--", "true"], ["history"]):
            told = each_installation.cli(*words, check=False)
            assert told.returncode == 69, told
            assert b"--no-daemon" in told.stderr and b"kill" not in told.stderr, told.stderr
            assert str(run.pid).encode() in told.stderr
        assert run.poll() is None
        assert b"--no-daemon" in each_installation.cli("doctor", check=False).stdout
    each_installation.cli("ps")


@pytest.mark.skipif(not is_root(), reason="level high as an ordinary user is tried elsewhere")
def test_an_overlay_that_would_go_with_its_run_is_refused(installation):
    installation.cli("ps")
    words = ["run", "--no-daemon", "--isolation", "high", "--overlay", "--", "sh", "-c", "echo kept > made"]
    refused = installation.cli(*words, check=False)
    assert refused.returncode == 64 and b"--overlay" in refused.stderr, refused.stderr
    assert b"is in /tmp" not in refused.stderr.splitlines()[-1]
    installation.shut_down()
    # Without a daemon the state stays, and with it the overlay.
    run = installation.cli(*words)
    (pid,) = set(re.findall(rb"ostler commit (\w+)`", run.stderr))
    installation.cli("commit", pid.decode())
    assert (installation.work / "made").read_text() == "kept\n"


@pytest.mark.skipif(not is_root(), reason="level high as an ordinary user is tried elsewhere")
def test_changes_that_nobody_decided_on_outlive_a_client_beside_a_daemon(installation, tmp_path):
    installation.cli("ps")
    with open(tmp_path / "stderr", "wb") as stderr, RawMcpClient(
            installation, ["--no-daemon", "--tools", "core"], stderr=stderr) as client:
        client.shake()
        exec_call = client.call("exec", script="echo kept > made", isolation="high", workspace="overlay")
        assert "workspace" in client.text(exec_call)
        assert client.end() == 0
    told = (tmp_path / "stderr").read_text()
    directory, pid = re.search(r"`ostler --state-dir (\S+) diff (\w+)`", told).groups()
    try:
        assert b"+kept" in installation.cli("--state-dir", directory, "diff", pid, env=OWN_RUNTIME).stdout
        installation.cli("--state-dir", directory, "commit", pid, env=OWN_RUNTIME)
        assert (installation.work / "made").read_text() == "kept\n"
        installation.cli("--state-dir", directory, "shutdown", env=OWN_RUNTIME)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def test_what_was_decided_goes_with_its_client(installation, tmp_path):
    installation.cli("ps")
    with open(tmp_path / "stderr", "wb") as stderr, RawMcpClient(
            installation, ["--no-daemon", "--tools", "core"], stderr=stderr) as client:
        client.shake()
        assert "done" in client.text(client.call("exec", script="echo done"))
        assert client.end() == 0
    (directory,) = re.findall(r"state of this run is in (\S+) and goes with it", (tmp_path / "stderr").read_text())
    assert not Path(directory).exists()
