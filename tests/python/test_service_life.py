"""Services after their start: restarts, dependencies, ports, definitions, and a daemon that is killed."""

import contextlib
import json
import os
import signal
import socket
import time

import anyio
import pytest

from harness import HttpDaemon, members, procs, until
from harness.http_daemon import TOKEN
from harness.service_client import PYTHON, SERVER, ServiceClient, answer, listens, unique_name, server_command
from harness.services import free_port

pytestmark = pytest.mark.anyio


@pytest.fixture
def port():
    return free_port()


@pytest.fixture
def service_client(installation):
    """Services of one installation, over the command line."""
    return ServiceClient(installation)


def tries(installation):
    """When each attempt began."""
    file = installation.work / "tries"
    return [float(line) for line in file.read_text().splitlines()] if file.exists() else []


def restarts(manager, name):
    return manager.service(name)["execution"]["service"]["restarts"]


def kill(pid, number=signal.SIGKILL):
    """One process of a service, by its id."""
    held = procs.ProcessHandle(pid)
    held.kill(number)
    held.close()


def next_daemon(installation):
    """Kills the daemon, and has the command line start the next."""
    installation.kill_daemon()
    installation.cli("ps")


# ---- restart policies


async def test_it_is_started_again_until_it_works(service_client, port):
    one = await service_client.start(server_command("fails-at-first", port, 2), restart="on-failure:5", wait_ms=0)
    now = service_client.settled(one.name, "ready")
    assert restarts(service_client, one.name) == 2
    assert now["execution"]["service"]["last_end"], now
    first, second, third = tries(service_client.installation)
    assert second - first >= 0.5 and third - second >= 1.0, "the backoff doubles"


def shim_of(manager, name):
    """The supervisor process of a service, by its leader's id."""
    leader = manager.service(name)["execution"]["os_pid"]
    shim = int(procs.status(leader, "PPid"))
    assert procs.comm(shim) == "ostler-shim", procs.comm(shim)
    return shim


async def test_a_killed_supervisor_process_is_a_failure_like_others(service_client, port):
    one = await service_client.start(server_command("plain", port), restart="on-failure:3")
    before = service_client.service(one.name)["execution"]
    kill(shim_of(service_client, one.name))
    now = until(
        lambda: next((it for it in [service_client.service(one.name)] if it["execution"]["service"]["restarts"] == 1), None),
        20, "a second attempt")
    assert now["execution"]["id"] == before["id"], "another attempt, not another execution"
    now = service_client.settled(one.name, "ready")
    assert "supervisor process was killed" in now["execution"]["service"]["last_end"], now
    why = service_client.why(one.name)
    assert "attempt 2" in why and "attempt 1 ended: its supervisor process was killed" in why, why
    text = service_client.installation.cli("info", before["id"]).stdout.decode()
    assert "supervisor process was killed" in text, text


async def test_a_supervisor_process_killed_with_the_daemon_is_too(service_client, port):
    one = await service_client.start(server_command("plain", port), restart="always:3")
    shim = shim_of(service_client, one.name)
    service_client.installation.kill_daemon()
    kill(shim)
    service_client.installation.cli("ps")
    until(lambda: restarts(service_client, one.name) == 1, 20, "a second attempt")
    service_client.settled(one.name, "ready")


async def test_a_killed_supervisor_process_ends_what_must_not_come_back(service_client, port):
    one = await service_client.start(server_command("plain", port), restart="never")
    uuid = service_client.service(one.name)["execution"]["uuid"]
    kill(shim_of(service_client, one.name))
    service_client.settled(one.name, "failed")
    until(lambda: not members(uuid), 5, "the end of the tree")
    assert "supervisor process was killed" in service_client.why(one.name)


async def test_a_wait_ends_with_the_first_failure_although_another_attempt_follows(service_client, port):
    one = await service_client.start(server_command("fails-at-first", port, 2), restart="on-failure:5")
    assert not one.ready
    assert one.text.startswith("Service failed to become ready: ") and "exit code 9" in one.text, one.text
    service_client.settled(one.name, "ready")


async def test_too_many_failures_are_a_crash_loop(service_client, port):
    one = await service_client.start(server_command("fails-at-first", port, 99), restart="on-failure:2", wait_ms=0)
    service_client.settled(one.name, "crash_looping")
    assert len(tries(service_client.installation)) == 3
    why = service_client.why(one.name)
    assert "crash_looping" in why and "9" in why, why


async def test_never_means_once(service_client, port):
    one = await service_client.start(server_command("fails-at-first", port, 1), restart="never", wait_ms=0)
    service_client.settled(one.name, "failed")
    assert len(tries(service_client.installation)) == 1


async def test_always_counts_a_good_end_too(service_client):
    script = "echo x >> tries; test $(wc -l < tries) -ge 3 && exec sleep 300; exit 0"
    one = await service_client.start(["sh", "-c", script], restart="always:5", wait_ms=0)
    until(lambda: restarts(service_client, one.name) == 2, 20, "two more attempts")
    service_client.settled(one.name, "running")


async def test_on_failure_leaves_a_good_end_alone(service_client):
    one = await service_client.start(["sh", "-c", "sleep 0.2; exit 0"], restart="on-failure:5", wait_ms=0)
    service_client.settled(one.name, "stopped")
    assert restarts(service_client, one.name) == 0


async def test_a_stop_ends_the_backoff(service_client, port):
    one = await service_client.start(server_command("fails-at-first", port, 99), restart="on-failure:9", wait_ms=0)
    until(lambda: len(tries(service_client.installation)) >= 2, 20, "the second attempt")
    service_client.stop(one.name)
    assert service_client.status(one.name) == "stopped"
    assert not members(one.uuid)


async def test_a_requested_restart_keeps_the_id_and_changes_the_process(service_client, port):
    one = await service_client.start(server_command("plain", port))
    assert one.ready, one.text
    service_client.installation.cli("service", "restart", one.name)
    now = service_client.settled(one.name, "ready")
    assert now["execution"]["id"] == one.id and now["execution"]["os_pid"] != one.pid
    assert str(now["execution"]["os_pid"]) in answer(one.url)[1]


# ---- health


async def test_a_restarted_service_is_listed_as_what_runs_now(installation, port):
    """The new execution is that of a client over HTTP, so of another project; the ended one does not hide it."""
    daemon = HttpDaemon(installation)
    headers = {"Authorization": f"Bearer {daemon.wait_for(TOKEN)[0]}"}

    def request(method, path):
        connection = daemon.connect()
        with contextlib.closing(connection):
            connection.request(method, f"/api/v1/services{path}", headers=headers)
            return json.load(connection.getresponse())

    installation.cli("service", "start", "--name", "moved", "--", *server_command("plain", port))
    installation.cli("service", "stop", "moved")
    restarted = request("POST", "/moved/restart")
    listed = [it for it in request("GET", "?dismissed=true")["services"] if it["name"] == "moved"]
    assert [(it["living"], it["execution"]["id"]) for it in listed] == [(True, restarted["execution"]["id"])]


async def test_a_service_that_sickens_is_degraded_and_well_again(service_client, port):
    one = await service_client.start(server_command("sickens", port, "sick"), health="http:/health", health_interval="100ms")
    assert one.ready, one.text
    (service_client.installation.work / "sick").touch()
    ill = service_client.settled(one.name, "degraded")
    assert "500" in ill["execution"]["service"]["health"]["detail"], ill
    (service_client.installation.work / "sick").unlink()
    service_client.settled(one.name, "ready")
    assert restarts(service_client, one.name) == 0


async def test_a_health_rule_starts_it_anew(service_client, port):
    command = [PYTHON, str(SERVER), "sickens", str(port), "sick"]
    done = service_client.installation.cli(
        "service", "start", "--name", "frail", "--health", "http:/health", "--health-interval", "100ms",
        "--health-restart", "--restart", "on-failure:3", "--", *command)
    assert b"Status: ready" in done.stdout, done
    before = service_client.service("frail")["execution"]["os_pid"]
    (service_client.installation.work / "sick").touch()
    until(lambda: restarts(service_client, "frail") == 1, 20, "the next attempt")
    now = service_client.settled("frail", "ready")
    assert now["execution"]["os_pid"] != before and not procs.alive(before)


async def test_a_port_that_closes_after_ready_is_reported(service_client, port):
    one = await service_client.start(server_command("closes-port", port))
    assert one.ready, one.text
    os.kill(one.pid, signal.SIGUSR1)
    ill = service_client.settled(one.name, "degraded")
    assert str(port) in ill["execution"]["service"]["health"]["detail"], ill


# ---- dependencies


def defined(installation, services):
    """Writes `ostler.toml`: a table for each service."""
    text = ""
    for name, keys in services.items():
        lines = (f"{key} = {toml(value)}" for key, value in keys.items())
        text += f"[services.{name}]\n" + "\n".join(lines) + "\n\n"
    (installation.work / "ostler.toml").write_text(text)


def toml(value):
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {toml(inner)}" for key, inner in value.items()) + "}"
    return json.dumps(value)


def diary(installation):
    file = installation.work / "diary"
    return file.read_text().splitlines() if file.exists() else []


async def test_what_it_needs_comes_first_and_goes_last(service_client):
    ports = [free_port() for _ in range(3)]
    defined(service_client.installation, {
        "web": {"command": server_command("diary", ports[0], "web"), "depends_on": ["api"]},
        "api": {"command": server_command("diary", ports[1], "api", 0.5), "depends_on": {"db": "ready"}},
        "db": {"command": server_command("diary", ports[2], "db", 0.5)},
    })
    upped = await service_client.up()
    assert {name: one.ready for name, one in upped.items()} == {"web": True, "api": True, "db": True}, upped
    assert diary(service_client.installation) == [
        "db begins", "db serves", "api begins", "api serves", "web begins", "web serves"]
    stopped = service_client.stop("db")
    assert stopped["dependents"] == ["web", "api"], stopped
    assert diary(service_client.installation)[6:] == ["web ends", "api ends", "db ends"]


@pytest.mark.parametrize("condition", ["started", "listening", "ready"])
async def test_a_condition_is_waited_for_and_no_more(service_client, condition):
    defined(service_client.installation, {
        "web": {"command": server_command("diary", free_port(), "web"), "depends_on": {"db": condition}},
        "db": {"command": server_command("diary", free_port(), "db", 1)},
    })
    await service_client.up("web")
    service_client.settled("db", "ready")
    output = diary(service_client.installation)
    assert (output.index("web begins") > output.index("db serves")) == (condition != "started"), output


async def test_one_that_must_be_over_first(service_client, port):
    script = "sleep 0.5; echo migrated >> diary"
    defined(service_client.installation, {
        "web": {"command": server_command("diary", port, "web"), "depends_on": {"migrate": "completed"}},
        "migrate": {"command": script},
    })
    assert (await service_client.up("web"))["web"].ready
    assert diary(service_client.installation) == ["migrated", "web begins", "web serves"]


async def test_a_dependency_that_fails_is_named(service_client, port):
    defined(service_client.installation, {
        "web": {"command": server_command("plain", port), "depends_on": ["db"]},
        "db": {"command": "echo no disk >&2; exit 4"},
    })
    done = service_client.installation.cli("service", "up", "web", check=False)
    output = (done.stdout + done.stderr).decode()
    assert done.returncode != 0 and "db" in output, output
    assert not listens(port)
    assert "db" in service_client.why("web") or "db" in output


async def test_a_cycle_is_refused_with_its_path(service_client, port):
    defined(service_client.installation, {
        "a": {"command": server_command("plain", port), "depends_on": ["b"]},
        "b": {"command": server_command("plain", port), "depends_on": ["a"]},
    })
    done = service_client.installation.cli("service", "up", check=False)
    output = done.stderr.decode()
    assert done.returncode != 0 and "a" in output and "b" in output, output
    assert not listens(port)


# ---- ensure, ports, leases


async def test_ensure_reuses_what_is_well(service_client, port):
    first = await service_client.ensure(server_command("plain", port), name="web")
    again = await service_client.ensure(server_command("plain", port), name="web")
    assert first.ready and again.ready
    assert (first.id, first.pid, first.url) == (again.id, again.pid, again.url)


async def test_ensure_replaces_what_lives_and_does_not_serve(service_client, port):
    first = await service_client.ensure(server_command("closes-port", port), name="web")
    os.kill(first.pid, signal.SIGUSR1)
    service_client.settled("web", "degraded")
    again = await service_client.ensure(server_command("closes-port", port), name="web")
    assert again.ready, again.text
    assert again.pid != first.pid and not procs.alive(first.pid)
    assert answer(again.url)[0] == 200


async def test_ensure_starts_what_has_ended(service_client, port):
    first = await service_client.ensure(server_command("plain", port), name="web")
    kill(first.pid)
    service_client.settled("web", "failed")
    again = await service_client.ensure(server_command("plain", port), name="web")
    assert again.ready and again.pid != first.pid


async def test_a_foreign_port_holder_is_named_and_not_ended(service_client, port):
    with socket.create_server(("127.0.0.1", port)) as stranger:
        one = await service_client.ensure(server_command("from-environment"), name="web", port=port)
        assert not one.ready
        assert f"{port}" in one.text and f"pid {os.getpid()}" in one.text, one.text
        with socket.create_connection(("127.0.0.1", port), timeout=5):
            stranger.accept()[0].close()


async def test_a_port_of_another_service_is_reported_by_its_name(service_client, port):
    first = await service_client.start(server_command("plain", port), name="first")
    assert first.ready
    second = await service_client.start(server_command("from-environment"), name="second", port=port)
    assert not second.ready and "first" in second.text, second.text
    assert service_client.status("first") == "ready"


async def test_sessions_that_lease_ports_never_get_the_same(installation):
    async with contextlib.AsyncExitStack() as stack:
        managers = [await stack.enter_async_context(ServiceClient.open("mcp", installation)) for _ in range(2)]
        got = {}

        async def lease(number, manager):
            one = await manager.start(server_command("from-environment"), name=f"leased-{number}", port="auto")
            assert one.ready, one.text
            got[number] = one

        async with anyio.create_task_group() as group:
            for number in range(6):
                group.start_soon(lease, number, managers[number % 2])
        ports = [one.ports[0] for one in got.values()]
        assert len(set(ports)) == 6, ports
        assert all(one.state["leased_port"] == one.ports[0] for one in got.values())
        for one in got.values():
            assert str(one.pid) in answer(one.url)[1]
            managers[0].stop(one.name, force=True)


# ---- stop


async def test_a_stop_is_over_when_the_ports_are_free(service_client, port):
    one = await service_client.start(server_command("plain", port))
    stopped = service_client.stop(one.name)
    assert stopped["released"] == [port] and stopped["still_held"] == []
    with socket.create_server(("127.0.0.1", port)):
        pass
    assert service_client.status(one.name) == "stopped"


async def test_one_that_heeds_nothing_is_stopped_with_its_grandchildren(service_client, port):
    one = await service_client.start(server_command("stubborn", port))
    assert one.ready, one.text
    stopped = service_client.stop(one.name, grace_ms=500)
    assert stopped["released"] == [port], stopped
    assert not members(one.uuid) and not listens(port)


# ---- why


async def test_why_tells_what_is_waited_for(service_client, port):
    one = await service_client.start(["sleep", "300"], ready_when=f"tcp:{port}", wait_ms=0)
    service_client.settled(one.name, "starting")
    assert str(port) in service_client.why(one.name)


async def test_why_tells_how_a_dead_one_ended_with_its_last_words(service_client):
    one = await service_client.start(["sh", "-c", "echo the disk is full >&2; exit 5"])
    why = service_client.why(one.name)
    assert "5" in why and "the disk is full" in why, why


async def test_why_tells_what_shows_a_ready_one(service_client, port):
    one = await service_client.start(server_command("plain", port))
    why = service_client.why(one.name)
    assert "ready" in why and f":{port}" in why, why


async def test_why_tells_the_limit_that_ended_a_service(installation):
    hog = "held = [bytearray(b'x') * (1 << 20) for _ in range(512)]; print('all of it')"
    installation.cli("service", "start", "--name", "hog", "--memory", "64M", "--", PYTHON, "-c", hog, check=False)
    why = installation.cli("service", "why", "hog").stdout.decode()
    assert "memory limit of 64 MiB" in why and "higher" in why, why


# ---- definitions


async def test_a_changed_definition_starts_only_what_changed(service_client):
    ports = [free_port() for _ in range(3)]
    services = {
        "one": {"command": server_command("plain", ports[0]), "env": {"X": "1"}},
        "two": {"command": server_command("plain", ports[1])},
        "down": {"command": server_command("plain", ports[2])},
    }
    defined(service_client.installation, services)
    before = await service_client.up("one", "two")
    assert before["one"].ready and before["two"].ready
    services["one"]["env"]["X"] = "2"
    services["new"] = {"command": server_command("plain", free_port())}
    services["down"]["env"] = {"Y": "1"}
    defined(service_client.installation, services)
    until(lambda: service_client.service("one")["execution"]["os_pid"] not in (None, before["one"].pid), 20, "a new process")
    now = service_client.settled("one", "ready")
    assert b"X=2" in procs.read(now["execution"]["os_pid"], "environ").split(b"\0")
    assert service_client.service("two")["execution"]["os_pid"] == before["two"].pid
    found = service_client.list()
    assert found["down"]["living"] is False and found["new"]["living"] is False


async def test_a_definition_that_went_leaves_its_service_running(service_client):
    services = {name: {"command": server_command("plain", free_port())} for name in ("one", "two")}
    defined(service_client.installation, services)
    before = await service_client.up()
    del services["two"]
    defined(service_client.installation, services)
    found = service_client.list()
    assert found["two"]["living"] and found["two"]["execution"]["os_pid"] == before["two"].pid
    assert service_client.status("one") == "ready"


async def test_services_of_a_file_that_went_are_known_where_it_was(service_client):
    defined(service_client.installation, {"web": {"command": server_command("plain", free_port())}})
    before = (await service_client.up())["web"]
    (service_client.installation.work / "ostler.toml").unlink()
    found = service_client.list()
    assert found["web"]["living"] and found["web"]["execution"]["os_pid"] == before.pid
    until(lambda: service_client.list()["web"].get("notes"), 20, "the note that it is no longer defined")
    assert service_client.installation.cli("service", "why", "web").returncode == 0
    service_client.installation.cli("service", "stop", "web")
    assert not service_client.installation.json("service", "ps")


async def test_a_definition_that_is_not_in_force_is_reported_until_it_is(service_client):
    services = {name: {"command": server_command("plain", free_port())} for name in ("db", "web")}
    defined(service_client.installation, services)
    await service_client.up("web")
    services["web"]["depends_on"] = ["db"]
    defined(service_client.installation, services)
    notes = until(lambda: service_client.list()["web"].get("notes"), 20, "the note")
    assert "its new definition is not in force" in notes[0] and "db" in notes[0], notes
    service_client.installation.cli("service", "up", "db")
    service_client.installation.cli("service", "stop", "web")
    service_client.installation.cli("service", "up", "web")
    assert not service_client.list()["web"].get("notes")


@pytest.mark.parametrize(("text", "line", "word"), [
    ("[services.web]\ncommand = 'true'\nprot = 3000\n", 3, "port"),
    ("[services.web]\ncommand = 'true\n", 2, ""),
    ("[services.web]\ncommand = 'true'\nready = 'soon'\n", 3, "allowed"),
])
async def test_a_bad_file_is_reported_with_its_line_and_running_services_continue(service_client, port, text, line, word):
    defined(service_client.installation, {"web": {"command": server_command("plain", port)}})
    before = (await service_client.up())["web"]
    assert before.ready
    (service_client.installation.work / "ostler.toml").write_text(text)
    done = service_client.installation.cli("service", "up", check=False)
    output = done.stderr.decode()
    assert done.returncode != 0 and f"line {line}" in output and word in output, output
    assert answer(before.url)[0] == 200
    assert service_client.installation.rest("GET", f"/api/v1/executions/{before.id}")["os_pid"] == before.pid


async def test_what_is_kept_by_the_api_is_known_after_a_kill(service_client, port):
    service_client.installation.cli("service", "define", "kept", "--", *server_command("plain", port))
    next_daemon(service_client.installation)
    found = service_client.list()
    assert found["kept"]["living"] is False and found["kept"]["defined_in"] == "api"
    assert not listens(port), "nothing starts by itself"
    assert (await service_client.up("kept"))["kept"].ready
    service_client.installation.cli("service", "forget", "kept")
    assert service_client.status("kept") == "ready", "what runs goes on"


# ---- the daemon is killed


async def test_services_are_found_again_by_the_next_daemon(each_installation, port):
    service_client = ServiceClient(each_installation)
    ports = [port, free_port()]
    before = [await service_client.start(server_command("plain", one), name=f"s{one}") for one in ports]
    assert all(one.ready for one in before), before
    next_daemon(each_installation)
    for one, number in zip(before, ports, strict=True):
        now = service_client.settled(one.name, "ready")
        assert now["execution"]["os_pid"] == one.pid and now["execution"]["service"]["url"] == one.url
        assert restarts(service_client, one.name) == 0
        assert str(one.pid) in answer(f"http://127.0.0.1:{number}")[1]
    kill(before[0].pid)
    dead = service_client.settled(before[0].name, "failed")
    assert dead["execution"]["signal"], dead
    stopped = service_client.stop(before[1].name)
    assert stopped["released"] == [ports[1]], stopped


async def test_one_on_its_way_becomes_ready_under_the_next_daemon(each_installation, port):
    service_client = ServiceClient(each_installation)
    one = await service_client.start(server_command("line-before-port", port), wait_ms=0)
    next_daemon(each_installation)
    service_client.settled(one.name, "ready")
    assert answer(service_client.service(one.name)["execution"]["service"]["url"])[0] == 200


async def test_one_in_its_backoff_is_started_by_the_next_daemon(service_client, port):
    one = await service_client.start(server_command("fails-at-first", port, 3), restart="on-failure:9", wait_ms=0)
    until(lambda: len(tries(service_client.installation)) == 3, 20, "the third attempt")
    next_daemon(service_client.installation)
    service_client.settled(one.name, "ready", seconds=30)


# ---- notifications of the agent


async def test_a_crash_after_ready_reaches_the_agent(installation, port):
    messages = []

    async def receive(message):
        messages.append(repr(message))

    async with ServiceClient.open("mcp", installation, session="kept") as manager:
        one = await manager.start(server_command("plain", port), name="web")
        assert one.ready, one.text
        kill(one.pid)
        manager.settled("web", "failed")
        reply = await manager.agent.must("exec", script="echo other", mode="oneshot")
        assert "web" in reply.text and one.id in reply.text, reply
        again = await manager.agent.must("exec", script="echo other", mode="oneshot")
        assert "web" not in again.text, "told once"


async def test_a_crash_after_a_kill_of_the_daemon_reaches_the_agents_next_session(installation, port):
    async with ServiceClient.open("mcp", installation, session="kept") as manager:
        one = await manager.start(server_command("plain", port), name="web")
        assert one.ready, one.text
    next_daemon(installation)
    async with ServiceClient.open("mcp", installation, session="kept") as manager:
        manager.settled("web", "ready")
        kill(one.pid)
        manager.settled("web", "failed")
        reply = await manager.agent.must("service", action="list")
        assert "failed" in reply.text, reply


async def test_a_crash_comes_as_a_notification_where_the_client_listens(installation, port):
    from harness import HttpDaemon, ClientTransport

    http_daemon = HttpDaemon(installation, "--no-token")
    messages = []

    async def receive(message):
        messages.append(repr(message))

    async with ClientTransport("stdio", "legacy", installation, http_daemon).agent(message_handler=receive) as agent:
        await agent.must("service", action="start", name="web", command=server_command("plain", port))
        manager = ServiceClient(installation)
        kill(manager.service("web")["execution"]["os_pid"])
        manager.settled("web", "failed")
        with anyio.fail_after(20):
            while not any("web" in one for one in messages):
                await anyio.lowlevel.checkpoint()
    http_daemon.end()


# ---- many


def flapping(installation, count):
    """Services that end at once, for ever; their names."""
    names = [f"flap-{number}" for number in range(count)]
    for name in names:
        body = {
            "name": name, "cwd": str(installation.work), "restart": {"always": {"max": 10_000}},
            "command": {"shell": {"shell": "/bin/sh", "script": f"echo x >> {name}; exit 1"}},
        }
        installation.rest("POST", "/api/v1/services", body)
    return names


def cpu_seconds(pid):
    fields = procs.read(pid, "stat").rsplit(b")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def flap(installation, count, seconds, share):
    """Counts are right and the daemon's own work is bounded."""
    installation.cli("ps")
    manager = ServiceClient(installation)
    names = flapping(installation, count)
    daemon = installation.daemon()
    until(lambda: all((installation.work / name).exists() for name in names), 60, "every first attempt")
    begin, before = time.monotonic(), cpu_seconds(daemon.pid)
    until(lambda: time.monotonic() - begin > seconds, seconds + 5, "the time to watch")
    used = (cpu_seconds(daemon.pid) - before) / (time.monotonic() - begin)
    daemon.close()
    for name in names:
        manager.stop(name, force=True)
    for name, service in manager.list().items():
        attempts = len((installation.work / name).read_text().splitlines())
        assert service["status"] == "stopped", service
        assert service["execution"]["service"]["restarts"] == attempts - 1, (name, attempts, service)
        assert attempts >= 3, (name, attempts)
    assert used < share, f"{used:.2f} of a core"


@pytest.mark.limit(120)
def test_twenty_services_that_flap(installation):
    flap(installation, 20, 5, 0.25)


@pytest.mark.full
@pytest.mark.limit(300)
def test_two_hundred_services_that_flap(installation):
    flap(installation, 200, 20, 0.5)


def test_a_restart_uses_the_definition_of_now(service_client, installation):
    define = ("service", "define", "web", "--", "sleep")
    installation.cli(*define, "301")
    installation.cli("service", "up", "web")
    first = service_client.service("web")
    installation.cli(*define, "302")
    installation.cli("service", "restart", "web")
    second = service_client.service("web")
    assert second["command"] == "sleep 302" and second["living"], second
    # Unchanged, it is started again under its id.
    installation.cli("service", "restart", "web")
    third = service_client.service("web")
    assert third["execution"]["id"] == second["execution"]["id"] != first["execution"]["id"]
    # As a stopped one, it is shown as it would be started.
    installation.cli("service", "stop", "web")
    installation.cli(*define, "303")
    assert service_client.service("web")["command"] == "sleep 303"
