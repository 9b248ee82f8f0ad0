"""Calls in flight while the daemon dies or is shut down: each gets one truthful response."""

import random
import time

import pytest

from harness import until
from harness.tiers import each_once
from harness.wire import RawMcpClient

#: Kills of one client's daemons: from five in ten seconds on it pauses before the next one.
KILLS = 4
MANY_KILLS = 8
#: Commands of one session at a time, below the quota.
COMMANDS = 8


def runs(installation, name):
    path = installation.work / name
    return path.read_text().splitlines() if path.exists() else []


@pytest.mark.limit(180)
@pytest.mark.parametrize(("count", "transport"), each_once([1, 8, 32], ["pipe", "socket", "file"]))
def test_calls_in_flight_are_answered_under_the_next_daemon(each_installation, count, transport):
    installation = each_installation
    chance = random.Random(count)
    with RawMcpClient(installation, transport=transport) as wire:
        wire.shake()
        for round_ in range(KILLS if transport != "file" else 2):
            name = f"runs-{transport}-{count}-{round_}"
            calls, looks = {}, []
            for n in range(count):
                if len(calls) < COMMANDS:
                    script = f"echo {n} >> {name}; sleep 0.{n % 7}; echo did-{n}"
                    calls[wire.call("exec", script=script)] = n
                else:
                    looks.append(wire.ask("resources/list") if n % 2 else wire.call("command_ps_list"))
            time.sleep(chance.uniform(0, 0.15))
            until(lambda: alive_daemon(installation), 10, "a daemon").kill()
            for number, n in calls.items():
                assert f"did-{n}" in wire.text(number, 60), (n, wire.answers)
            assert sorted(map(int, runs(installation, name))) == sorted(calls.values())
            assert all("result" in wire.answer(number) for number in looks)
        assert wire.answer(wire.ask("ping"))["result"] == {}
        assert all(len(answers) == 1 for answers in wire.answers.values())
        assert wire.end() == 0


def alive_daemon(installation):
    try:
        return installation.daemon()
    except (OSError, AssertionError):
        return None


@pytest.mark.limit(120)
def test_several_daemons_in_a_row_may_die(each_installation):
    installation = each_installation
    with RawMcpClient(installation) as wire:
        wire.shake()
        calls = {wire.call("exec", script=f"echo {n} >> row; sleep 3; echo did-{n}"): n for n in range(8)}
        for _ in range(4):
            until(lambda: alive_daemon(installation), 10, "a daemon").kill()
        for number, n in calls.items():
            assert f"did-{n}" in wire.text(number, 60)
        assert sorted(map(int, runs(installation, "row"))) == list(range(8))


@pytest.mark.limit(180)
@pytest.mark.parametrize(("transport", "after"), each_once(["pipe", "socket", "file"], ["start", "answer"]))
def test_a_proxy_never_gives_up(each_installation, transport, after):
    installation = each_installation
    stderr_path = installation.work / f"stderr-{transport}-{after}"
    with open(stderr_path, "wb") as stderr, RawMcpClient(installation, transport=transport, stderr=stderr) as wire:
        wire.shake()
        call = wire.call("exec", script="echo once >> never-gives-up; sleep 1; echo did-it")
        until(lambda: (installation.work / "never-gives-up").exists(), 30)
        last = None
        for _ in range(MANY_KILLS):
            if after == "answer":
                assert wire.answer(wire.ask("ping"), 60)["result"] == {}
            daemon = until(lambda: another_daemon(installation, last), 60, "another daemon")
            daemon.kill()
            last = daemon.pid
        assert "did-it" in wire.text(call, 60)
        assert runs(installation, "never-gives-up") == ["once"]
        assert "after" in wire.text(wire.call("exec", script="echo after"), 60)
        assert wire.process.poll() is None
        assert all(len(answers) == 1 for answers in wire.answers.values())
        assert wire.end(60) == 0
    if after == "answer":
        assert stderr_path.read_text().count("daemons keep dying") == 1, stderr_path.read_text()


def another_daemon(installation, last):
    daemon = alive_daemon(installation)
    return daemon if daemon and daemon.pid != last else None


@pytest.mark.limit(120)
@pytest.mark.parametrize("transport", ["pipe", "file"])
def test_requests_are_answered_while_no_daemon_can_be_started(each_installation, transport):
    installation = each_installation
    with RawMcpClient(installation, transport=transport) as wire:
        wire.shake()
        call = wire.call("exec", script="touch begun; until [ -e go ]; do sleep 0.05; done; echo late")
        until(lambda: (installation.work / "begun").exists(), 30)
        away = installation.state.with_name("away")
        daemon = installation.daemon()
        installation.state.rename(away)
        installation.state.write_text("no directory")
        installation.give(installation.state)
        daemon.kill()
        # Calls in flight get the known state, later ones the reason.
        answer = wire.answer(call, 60)["error"]
        assert answer["code"] == -32000 and "is not known" in answer["message"], answer
        answer = wire.answer(wire.ask("ping"), 60)["error"]
        assert answer["code"] == -32000 and "no daemon can be started" in answer["message"], answer
        installation.state.unlink()
        away.rename(installation.state)
        until(lambda: "result" in wire.answer(wire.ask("ping"), 60), 60)
        (installation.work / "go").touch()
        assert "after" in wire.text(wire.call("exec", script="echo after"), 60)
        assert wire.process.poll() is None
        assert all(len(answers) == 1 for answers in wire.answers.values())
        assert wire.end(60) == 0


@pytest.mark.limit(120)
def test_waits_go_on_and_what_types_is_not_repeated(each_installation):
    installation = each_installation
    with RawMcpClient(installation, ["--tools", "core,pty,service"]) as wire:
        wire.shake()
        started = wire.text(wire.call("exec", script="sleep 4; echo late; sleep 300", wait_ms=0))
        pid = started.split()[0].strip("[")
        waiting = wire.call("process", action="wait", ids=[pid], pattern="late", wait_ms=30000)
        session = wire.text(wire.call("pty_start", command=["cat"], wait_ms=0))
        terminal = session.split()[0].strip("[")
        typing = wire.call("pty_write", session=terminal, text="typed", pattern="never", wait_ms=20000)
        until(lambda: b"typed" in installation.cli("logs", terminal, "--raw").stdout)
        installation.kill_daemon()
        error = wire.text(typing)
        assert "whether it took effect is not known" in error, error
        assert wire.answer(typing)["result"]["isError"]
        assert "late" in wire.text(waiting, 40)
        # Echoed once by the terminal, once by cat: nothing was typed twice.
        assert installation.cli("logs", terminal, "--raw").stdout.count(b"typed") == 2


def test_subscriptions_go_on_and_tell_what_was_missed(each_installation):
    installation = each_installation
    with RawMcpClient(installation, ["--tools", "core"]) as wire:
        wire.shake()
        started = wire.text(wire.call("exec", script="sleep 300", wait_ms=0))
        pid = started.split()[0].strip("[")
        uri = f"proc://{pid}"
        assert "error" not in wire.answer(wire.ask("resources/subscribe", {"uri": uri}))
        level = wire.answer(wire.ask("logging/setLevel", {"level": "error"}))
        assert "error" not in level
        installation.kill_daemon()

        def updates():
            return [it for it in wire.others if it.get("method") == "notifications/resources/updated"]

        until(lambda: updates(), 20, "an update under the next daemon")
        before = len(updates())
        installation.cli("stop", pid)
        wire.until(lambda: len(updates()) > before)
        assert updates()[-1]["params"]["uri"] == uri
        # Nothing was answered twice on the way.
        assert all(len(answers) == 1 for answers in wire.answers.values())


def test_listening_goes_on(each_installation):
    installation = each_installation
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "wire", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    with RawMcpClient(installation, ["--tools", "core"]) as wire:
        started = wire.ask("tools/call", {"name": "exec", "_meta": meta, "arguments": {
            "script": "sleep 300", "wait_ms": 0}})
        pid = wire.text(started).split()[0].strip("[")
        uri = f"proc://{pid}"
        number = wire.ask("subscriptions/listen", {
            "_meta": meta, "notifications": {"resourceSubscriptions": [uri]}})

        def came(method):
            return [it for it in wire.others if it.get("method") == method]

        acknowledged = "notifications/subscriptions/acknowledged"
        wire.until(lambda: came(acknowledged))
        installation.kill_daemon()
        updated = "notifications/resources/updated"
        wire.until(lambda: came(updated))
        before = len(came(updated))
        installation.cli("stop", pid)
        wire.until(lambda: len(came(updated)) > before)
        answer = came(updated)[-1]["params"]
        assert answer["uri"] == uri
        assert answer["_meta"]["io.modelcontextprotocol/subscriptionId"] == number
        assert len(came(acknowledged)) == 1


def test_a_shutdown_says_what_became_of_each_call(each_installation):
    installation = each_installation
    with RawMcpClient(installation, ["--tools", "core"]) as wire:
        wire.shake()
        running = wire.call("exec", script="echo up > up; sleep 300", wait_ms=40000)
        until(lambda: (installation.work / "up").exists())
        listed = installation.json("ps")
        pid = listed[0]["id"]
        waiting = wire.call("process", action="wait", ids=[pid], wait_ms=40000)
        assert wire.answer(wire.ask("ping"))["result"] == {}
        installation.cli("shutdown")
        answer = wire.text(running)
        assert "shut down" in answer and f"process {pid} goes on" in answer, answer
        answer = wire.text(waiting)
        assert "shut down" in answer and "nothing was started or changed" in answer, answer
        # It does continue, and the next call finds it.
        assert pid in wire.text(wire.call("process", action="detail", ids=[pid]))
        assert all(len(answers) == 1 for answers in wire.answers.values())
        assert wire.end() == 0
