"""`ostler exec` while the daemon is killed: the command is typed once, and its end is waited for."""

import json
import random
import subprocess
import threading

import pytest

from harness import until

#: Kills at moments of which some are before the command is typed, and some after.
KILLS = 20
#: The latest of them after the client was started, in seconds.
LATEST_S = 0.2
#: A command that takes longer to be typed than a terminal takes at once.
LONG = "x" * 100_000


def shell(installation, kind="bash"):
    started = installation.cli("shell", kind, "--detach", "--json").stdout
    session = json.loads(started)["id"]
    assert installation.cli("exec", session, "true").returncode == 0
    return session


def begin(installation, session, script, *options):
    return subprocess.Popen(
        installation.argv("exec", *options, session, script),
        cwd=installation.work, env=installation.env(), stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )


def outcome(client, seconds=60):
    out, err = client.communicate(timeout=seconds)
    return client.returncode, out, err


@pytest.mark.limit(120)
@pytest.mark.parametrize("kind", ["bash", "zsh", "fish"])
def test_a_command_goes_on_under_the_next_daemon(each_installation, kind):
    installation = each_installation
    session = shell(installation, kind)
    client = begin(installation, session, "touch begun; sleep 2; echo done; sh -c 'exit 7'")
    until(lambda: (installation.work / "begun").exists(), 30)
    installation.kill_daemon()
    assert outcome(client) == (7, "done\n", "")
    # Several in a row, all with the same result.
    client = begin(installation, session, "touch again; sh -c 'until [ -e go ]; do sleep .05; done'; printf 'one\\ntwo\\n'")
    until(lambda: (installation.work / "again").exists(), 30)
    last = installation.kill_daemon()
    for _ in range(3):
        daemon = until(lambda: another(installation, last), 30, "another daemon")
        last = daemon.pid
        daemon.kill()
    (installation.work / "go").touch()
    assert outcome(client) == (0, "one\ntwo\n", "")
    assert installation.cli("exec", session, "echo after").stdout == b"after\n"


def another(installation, last):
    try:
        daemon = installation.daemon()
    except (OSError, AssertionError):
        return None
    return daemon if daemon.pid != last else None


@pytest.mark.limit(240)
def test_whenever_the_daemon_dies_a_command_is_typed_once(each_installation):
    installation = each_installation
    chance = random.Random(7)
    session = shell(installation)
    for round_ in range(KILLS):
        moment = LATEST_S * round_ / KILLS + chance.uniform(0, LATEST_S / KILLS)
        installation.cli("ps")
        daemon = installation.daemon()
        killer = threading.Timer(moment, daemon.kill)
        # Some are longer than what a terminal takes at once.
        comment = f" # {LONG}" if round_ % 4 == 3 else ""
        client = begin(installation, session, f"echo {round_} >> rounds; sleep 0.1; echo did-{round_}{comment}")
        killer.start()
        code, out, err = outcome(client)
        killer.join()
        rounds = (installation.work / "rounds").read_text().splitlines() if (installation.work / "rounds").exists() else []
        times = rounds.count(str(round_))
        if code == 0:
            assert (times, out) == (1, f"did-{round_}\n"), (round_, moment, out, err)
            continue
        assert code == 75 and "not known" in err and times <= 1, (round_, moment, code, out, err)
        assert comment, "one that is typed at once is either typed or not"
        installation.cli("send", session, "--key", "ctrl-c")
        until(lambda: installation.cli("exec", session, "true", check=False).returncode == 0, 30)


@pytest.mark.limit(60)
def test_a_timeout_ends_the_wait_under_the_next_daemon_too(each_installation):
    installation = each_installation
    session = shell(installation)
    client = begin(installation, session, "touch begun; sleep 300", "--timeout", "5s")
    until(lambda: (installation.work / "begun").exists(), 30)
    installation.kill_daemon()
    code, out, err = outcome(client, 50)
    assert (code, out) == (75, "") and "still runs" in err, err


@pytest.mark.limit(60)
def test_where_the_shell_ended_too_the_result_is_unknown(each_installation):
    installation = each_installation
    session = shell(installation)
    client = begin(installation, session, "touch begun; until [ -e go ]; do sleep 0.05; done; exit 3")
    until(lambda: (installation.work / "begun").exists(), 30)
    client.send_signal(19)
    installation.kill_daemon()
    (installation.work / "go").touch()
    until(lambda: installation.json("info", session)["status"] != "running", 30)
    client.send_signal(18)
    code, out, err = outcome(client)
    assert (code, out) == (75, "") and "not known" in err, err


def test_a_request_sent_again_is_typed_once(installation):
    session = shell(installation)
    body = {"script": "echo ran >> ran; sleep 1; echo told; (exit 4)", "id": "0198c0de-0000-7000-8000-000000000001"}
    path = f"/api/v1/executions/{session}/shell/run"
    first = installation.rest("POST", path, body)
    assert first["end"]["status"] == 4
    # Others come in between, and another daemon; the answer stays.
    installation.cli("exec", session, "echo other")
    installation.kill_daemon()
    installation.cli("exec", session, "echo other")
    again = installation.rest("POST", path, body | {"again": True})
    assert again["end"]["status"] == 4
    assert (again["from"], again["to"]) == (first["from"], first["to"])
    assert (installation.work / "ran").read_text() == "ran\n"
