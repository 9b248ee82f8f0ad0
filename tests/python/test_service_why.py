"""`service why`, and what starts and lists say with it: questions, pauses, last lines, dependencies, given-up starts."""

import os
import signal
import socket
import subprocess

import pytest

from harness import until
from harness.service_client import PYTHON, ServiceClient, listens, server_command
from harness.services import free_port
from test_service_life import defined

pytestmark = pytest.mark.anyio


@pytest.fixture
def port():
    return free_port()


@pytest.fixture
def services(installation):
    return ServiceClient(installation)


def why_until(services, name, word, seconds=20):
    """What `why` says once it says this."""
    return until(lambda: next((it for it in [services.why(name)] if word in it), None), seconds, f"'{word}' of {name}")


async def test_the_last_line_of_a_wide_log_is_the_last_one(services):
    script = "i=0; while [ $i -lt 250 ]; do i=$((i+1)); printf '%0400d n:%d\\n' 0 $i; done; echo the real end; exit 3"
    one = await services.start(["sh", "-c", script])
    why = services.why(one.name)
    assert "its last line: the real end" in why, why


ASKS = "printf 'Ok to proceed? (y) '; read answer; exec python3 -m http.server --bind 127.0.0.1 {port}"


@pytest.mark.parametrize("interface", ["cli", "mcp"])
async def test_a_start_that_is_held_up_by_a_question_tells_it(installation, interface, port):
    async with ServiceClient.open(interface, installation) as services:
        one = await services.start(["sh", "-c", ASKS.format(port=port)], wait_ms=6_000)
        assert "Why: it asks: Ok to proceed? (y)" in one.text and "slow start" not in one.text, one.text
        why = why_until(services, one.name, "it asks")
        question, = installation.rest("GET", "/api/v1/interactions")["interactions"]
        assert f"ostler interactions answer {question['id']}" in why and "slow start" not in why, why
        assert services.service(one.name)["execution"]["service"]["prompt"].startswith("Ok to proceed")
        assert ", asks" in installation.cli("service", "ps").stdout.decode()
        installation.cli("interactions", "answer", question["id"], "y")
        services.settled(one.name, "ready")
        assert "it asks" not in services.why(one.name)


async def test_the_question_for_a_secret_is_answered_at_the_terminal(services):
    script = "printf 'Password: '; stty -echo; read answer; exec sleep 300"
    services.installation.cli("service", "start", "--name", "asks", "--tty", "--no-wait", "--", "sh", "-c", script)
    why = why_until(services, "asks", "it asks")
    assert f"ostler attach {services.service('asks')['execution']['id']}" in why, why


async def test_a_paused_service_is_not_told_as_well(services, port):
    one = await services.start(server_command("plain", port))
    services.installation.cli("pause", one.id)
    why = why_until(services, one.name, "paused")
    assert "it is paused: it was ready before" in why and f"`ostler resume {one.id}`" in why, why
    assert "ready, paused" in services.installation.cli("service", "ps").stdout.decode()
    services.installation.cli("resume", one.id)
    assert "paused" not in services.why(one.name)


SERVES = f"exec {PYTHON} -m http.server --bind 127.0.0.1 $PORT"


@pytest.mark.parametrize("way", ["reload", "ensure"])
async def test_a_new_port_that_is_taken_leaves_the_running_service_alone(services, port, way):
    def define(port):
        if way == "reload":
            return defined(services.installation, {"web": {"command": SERVES, "port": port}})
        return services.installation.cli("service", "define", "web", "--port", str(port), "--", SERVES)

    def ensured():
        done = services.installation.cli("service", "ensure", "web", check=False)
        return done.returncode, (done.stdout + done.stderr).decode()

    define(port)
    code, text = ensured()
    first = services.service("web")
    assert code == 0 and first["status"] == "ready", text
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        taken = stranger.getsockname()[1]
        define(taken)
        if way == "reload":
            notes = until(lambda: services.list()["web"].get("notes"), 20, "the note")
            assert f"its new definition is not in force: port {taken}" in notes[0], notes
        code, text = ensured()
        assert code != 0 and f"port {taken}" in text and f"pid {os.getpid()}" in text, text
        now = services.service("web")
        assert now["status"] == "ready" and now["execution"]["os_pid"] == first["execution"]["os_pid"], now
        assert "web" in services.installation.cli("service", "ps").stdout.decode()
    assert ensured()[0] == 0 and listens(taken), "once it is free, it moves there"


async def test_services_that_hand_their_ports_on_get_their_new_ones(services):
    one, two, three = (free_port() for _ in range(3))

    def define(first, second):
        defined(services.installation, {"a": {"command": SERVES, "port": first}, "b": {"command": SERVES, "port": second}})

    define(one, two)
    assert all(it.ready for it in (await services.up()).values())
    define(two, three)

    def listening(name):
        return [it["port"] for it in services.service(name)["execution"]["service"]["ports"]]

    for name, port in (("a", two), ("b", three)):
        until(lambda: listening(name) == [port], 20, f"{name} on port {port}")


async def test_the_pid_of_a_service_that_daemonises_is_that_of_its_server(services, port):
    one = await services.start(server_command("daemonises", port))
    listener, = {it["pid"] for it in services.service(one.name)["execution"]["service"]["ports"] if it["main"]}
    # The first process ends a moment after the server listens.
    until(lambda: services.service(one.name)["execution"]["os_pid"] == listener, 20, "the pid of the server")
    os.kill(listener, 0)
    assert f"pid {listener}" in services.why(one.name)


async def test_a_dependency_that_completed_is_told_as_that(services):
    web = {"command": "exec sleep 300", "depends_on": ["mig:completed"]}
    defined(services.installation, {"mig": {"command": "exit 0"}, "web": web})
    await services.up()
    assert "it needs 'mig' to be completed, which completed (exit code 0)" in services.why("web")


async def test_an_end_before_the_condition_of_readiness_is_told_with_its_lines(services):
    one = await services.start(["sh", "-c", "echo nothing to do; exit 0"], ready_pattern="listening")
    why = services.why(one.name)
    assert "before it was ready" in why and "printed: nothing to do" in why, why


async def test_an_up_that_was_given_up_is_told(services):
    web = {"command": "exec sleep 300", "depends_on": ["db"]}
    db = {"command": "exec sleep 300", "ready": {"exec": ["test", "-e", "go"]}}
    defined(services.installation, {"db": db, "web": web})
    services.installation.cli("ps")
    argv = services.installation.argv("service", "up")
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(argv, cwd=services.installation.work, env=services.installation.env(), **quiet) as up:
        services.settled("web", "pending")
        up.send_signal(signal.SIGINT)
        up.wait(20)
    why = why_until(services, "web", "given up")
    assert "the request that started it was given up" in why, why


async def test_a_ready_pattern_is_found_at_the_end_of_a_long_line(services):
    script = "printf '%09000d it is up\\n' 0; exec sleep 300"
    one = await services.start(["sh", "-c", script], ready_pattern="it is up", wait_ms=10_000)
    assert one.ready, one.text
