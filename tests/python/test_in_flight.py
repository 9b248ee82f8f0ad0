"""Calls in flight while the daemon dies or is shut down: each is answered once, and truthfully."""

import random
import time

import pytest

from harness import until
from harness.wire import RawMcpClient

#: Kills of one client's daemons: from five in ten seconds on it pauses before the next one.
KILLS = 4
MANY_KILLS = 8
#: Commands of one session at a time, below the quota.
COMMANDS = 8


def runs(place, name):
    path = place.work / name
    return path.read_text().splitlines() if path.exists() else []


@pytest.mark.limit(180)
@pytest.mark.parametrize("way", ["pipe", "socket", "file"])
@pytest.mark.parametrize("count", [1, 8, 32])
def test_calls_in_flight_are_answered_under_the_next_daemon(any_place, count, way):
    place = any_place
    chance = random.Random(count)
    with RawMcpClient(place, way=way) as wire:
        wire.shake()
        for round_ in range(KILLS if way != "file" else 2):
            name = f"runs-{way}-{count}-{round_}"
            calls, looks = {}, []
            for n in range(count):
                if len(calls) < COMMANDS:
                    script = f"echo {n} >> {name}; sleep 0.{n % 7}; echo did-{n}"
                    calls[wire.call("exec", script=script)] = n
                else:
                    looks.append(wire.ask("resources/list") if n % 2 else wire.call("command_ps_list"))
            time.sleep(chance.uniform(0, 0.15))
            until(lambda: alive_daemon(place), 10, "a daemon").kill()
            for number, n in calls.items():
                assert f"did-{n}" in wire.text(number, 60), (n, wire.answers)
            assert sorted(map(int, runs(place, name))) == sorted(calls.values())
            assert all("result" in wire.answer(number) for number in looks)
        assert wire.answer(wire.ask("ping"))["result"] == {}
        assert all(len(answers) == 1 for answers in wire.answers.values())
        assert wire.end() == 0


def alive_daemon(place):
    try:
        return place.daemon()
    except (OSError, AssertionError):
        return None


@pytest.mark.limit(120)
def test_several_daemons_in_a_row_may_die(any_place):
    place = any_place
    with RawMcpClient(place) as wire:
        wire.shake()
        calls = {wire.call("exec", script=f"echo {n} >> row; sleep 3; echo did-{n}"): n for n in range(8)}
        for _ in range(4):
            until(lambda: alive_daemon(place), 10, "a daemon").kill()
        for number, n in calls.items():
            assert f"did-{n}" in wire.text(number, 60)
        assert sorted(map(int, runs(place, "row"))) == list(range(8))


@pytest.mark.limit(180)
@pytest.mark.parametrize("way", ["pipe", "socket", "file"])
@pytest.mark.parametrize("after", ["start", "answer"])
def test_a_front_never_gives_up(any_place, way, after):
    place = any_place
    told = place.work / f"told-{way}-{after}"
    with open(told, "wb") as stderr, RawMcpClient(place, way=way, stderr=stderr) as wire:
        wire.shake()
        call = wire.call("exec", script="echo once >> never-gives-up; sleep 1; echo did-it")
        until(lambda: (place.work / "never-gives-up").exists(), 30)
        last = None
        for _ in range(MANY_KILLS):
            if after == "answer":
                assert wire.answer(wire.ask("ping"), 60)["result"] == {}
            daemon = until(lambda: another_daemon(place, last), 60, "another daemon")
            daemon.kill()
            last = daemon.pid
        assert "did-it" in wire.text(call, 60)
        assert runs(place, "never-gives-up") == ["once"]
        assert "after" in wire.text(wire.call("exec", script="echo after"), 60)
        assert wire.process.poll() is None
        assert all(len(answers) == 1 for answers in wire.answers.values())
        assert wire.end(60) == 0
    if after == "answer":
        assert told.read_text().count("daemons keep dying") == 1, told.read_text()


def another_daemon(place, last):
    daemon = alive_daemon(place)
    return daemon if daemon and daemon.pid != last else None


@pytest.mark.limit(120)
@pytest.mark.parametrize("way", ["pipe", "file"])
def test_requests_are_answered_while_no_daemon_can_be_started(any_place, way):
    place = any_place
    with RawMcpClient(place, way=way) as wire:
        wire.shake()
        begun = wire.call("exec", script="touch begun; until [ -e go ]; do sleep 0.05; done; echo late")
        until(lambda: (place.work / "begun").exists(), 30)
        away = place.state.with_name("away")
        daemon = place.daemon()
        place.state.rename(away)
        place.state.write_text("no directory")
        place.give(place.state)
        daemon.kill()
        # What is in flight is answered with what is known of it, what comes later with the reason.
        told = wire.answer(begun, 60)["error"]
        assert told["code"] == -32000 and "is not known" in told["message"], told
        told = wire.answer(wire.ask("ping"), 60)["error"]
        assert told["code"] == -32000 and "no daemon can be started" in told["message"], told
        place.state.unlink()
        away.rename(place.state)
        until(lambda: "result" in wire.answer(wire.ask("ping"), 60), 60)
        (place.work / "go").touch()
        assert "after" in wire.text(wire.call("exec", script="echo after"), 60)
        assert wire.process.poll() is None
        assert all(len(answers) == 1 for answers in wire.answers.values())
        assert wire.end(60) == 0


@pytest.mark.limit(120)
def test_waits_go_on_and_what_types_is_not_repeated(any_place):
    place = any_place
    with RawMcpClient(place, ["--tools", "core,pty,service"]) as wire:
        wire.shake()
        started = wire.text(wire.call("exec", script="sleep 4; echo late; sleep 300", wait_ms=0))
        pid = started.split()[0].strip("[")
        waiting = wire.call("process", action="wait", ids=[pid], pattern="late", wait_ms=30000)
        session = wire.text(wire.call("pty_start", command=["cat"], wait_ms=0))
        terminal = session.split()[0].strip("[")
        typing = wire.call("pty_write", session=terminal, text="typed", pattern="never", wait_ms=20000)
        until(lambda: b"typed" in place.cli("logs", terminal, "--raw").stdout)
        place.kill_daemon()
        error = wire.text(typing)
        assert "whether it took effect is not known" in error, error
        assert wire.answer(typing)["result"]["isError"]
        assert "late" in wire.text(waiting, 40)
        # Echoed once by the terminal, once by cat: nothing was typed twice.
        assert place.cli("logs", terminal, "--raw").stdout.count(b"typed") == 2


def test_subscriptions_go_on_and_tell_what_was_missed(any_place):
    place = any_place
    with RawMcpClient(place, ["--tools", "core"]) as wire:
        wire.shake()
        started = wire.text(wire.call("exec", script="sleep 300", wait_ms=0))
        pid = started.split()[0].strip("[")
        uri = f"proc://{pid}"
        assert "error" not in wire.answer(wire.ask("resources/subscribe", {"uri": uri}))
        level = wire.answer(wire.ask("logging/setLevel", {"level": "error"}))
        assert "error" not in level
        place.kill_daemon()

        def updates():
            return [it for it in wire.others if it.get("method") == "notifications/resources/updated"]

        until(lambda: updates(), 20, "an update under the next daemon")
        before = len(updates())
        place.cli("stop", pid)
        wire.until(lambda: len(updates()) > before)
        assert updates()[-1]["params"]["uri"] == uri
        # Nothing was answered twice on the way.
        assert all(len(answers) == 1 for answers in wire.answers.values())


def test_listening_goes_on(any_place):
    place = any_place
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "wire", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    with RawMcpClient(place, ["--tools", "core"]) as wire:
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
        place.kill_daemon()
        updated = "notifications/resources/updated"
        wire.until(lambda: came(updated))
        before = len(came(updated))
        place.cli("stop", pid)
        wire.until(lambda: len(came(updated)) > before)
        told = came(updated)[-1]["params"]
        assert told["uri"] == uri
        assert told["_meta"]["io.modelcontextprotocol/subscriptionId"] == number
        assert len(came(acknowledged)) == 1


def test_a_shutdown_says_what_became_of_each_call(any_place):
    place = any_place
    with RawMcpClient(place, ["--tools", "core"]) as wire:
        wire.shake()
        running = wire.call("exec", script="echo up > up; sleep 300", wait_ms=40000)
        until(lambda: (place.work / "up").exists())
        listed = place.json("ps")
        pid = listed[0]["id"]
        waiting = wire.call("process", action="wait", ids=[pid], wait_ms=40000)
        assert wire.answer(wire.ask("ping"))["result"] == {}
        place.cli("shutdown")
        told = wire.text(running)
        assert "shut down" in told and f"process {pid} goes on" in told, told
        told = wire.text(waiting)
        assert "shut down" in told and "nothing was started or changed" in told, told
        # It does go on, and the next call finds it.
        assert pid in wire.text(wire.call("process", action="detail", ids=[pid]))
        assert all(len(answers) == 1 for answers in wire.answers.values())
        assert wire.end() == 0
