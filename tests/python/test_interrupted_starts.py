"""A `run` that is interrupted while its command is being started leaves nothing running: nobody was told its id."""

import contextlib
import signal
import subprocess

import pytest

from harness import until

#: Starts of which each is interrupted at another moment, the later ones after the daemon has answered.
ROUNDS = 12
#: From the moment of one round to that of the next.
STEP_S = 0.004


def living(installation, word):
    return [it for it in installation.json("ps") if word in it["command"]]


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_leaves_no_command(installation, sent):
    installation.cli("ps")
    for number in range(ROUNDS):
        word = f"{300 + number}.5"
        client = subprocess.Popen(
            installation.argv("run", "--", "sleep", word), cwd=installation.work, env=installation.env(),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )
        # Stopped, so that the daemon's answer and the signal are both there when it goes on.
        # Another moment in each round.
        with contextlib.suppress(subprocess.TimeoutExpired):
            client.wait(STEP_S * number)
        client.send_signal(signal.SIGSTOP)
        # The daemon answers this after the start, if it has that.
        living(installation, word)
        client.send_signal(sent)
        client.send_signal(signal.SIGCONT)
        _, said = client.communicate(timeout=20)
        assert client.returncode in {128 + sent, -sent}, (client.returncode, said)
        until(lambda word=word: not living(installation, word), 20, f"the end of sleep {word}")


def test_an_interrupted_export_leaves_no_file(installation):
    name = installation.cli("run", "-d", "--", "seq", "1", "3000000").stdout.decode().strip()
    installation.cli("wait", name)
    target = installation.work / "export"
    for _ in range(5):
        client = subprocess.Popen(
            installation.argv("export", "-f", "yaml", "-o", target, name), cwd=installation.work, env=installation.env(),
            stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )
        until(lambda: client.poll() is not None or list(installation.work.glob("export*")), 20, "the temporary file")
        client.send_signal(signal.SIGTERM)
        client.communicate(timeout=30)
        assert client.returncode in {143, 0}
        if client.returncode == 0:
            target.unlink()
        assert list(installation.work.glob("export*")) == []


def test_an_export_of_what_was_removed_says_so(installation):
    name = installation.cli("run", "-d", "--", "seq", "1", "3000000").stdout.decode().strip()
    installation.cli("wait", name)
    client = subprocess.Popen(
        installation.argv("export", "-f", "text", name), cwd=installation.work, env=installation.env(),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )
    assert client.stdout.read(1)
    installation.cli("rm", name)
    _, said = client.communicate(timeout=30)
    assert client.returncode == 66 and b"not found" in said and b"daemon" not in said, (client.returncode, said)
