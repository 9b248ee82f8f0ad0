"""Services of a project: detection, several at once, failed starts, messages and states."""

import concurrent.futures
import re
import socket
import stat

import pytest

from harness import members, procs, until
from harness.service_client import ServiceClient, answer, listens, server_command
from harness.services import free_port

pytestmark = pytest.mark.anyio

STARTED = re.compile(
    r"^Service started with ID: (\w+)\. Status: (\w+)\. The service is running in the background\.$")
#: Its service states, and those this project adds.
STATES = {"pending", "starting", "ready", "running", "stopping", "stopped", "failed"}


@pytest.fixture
def port():
    return free_port()


@pytest.fixture
def project(installation, port):
    """A project whose `npm run dev` is a development server."""
    script = " ".join(server_command("plain", port))
    (installation.work / "package.json").write_text(
        f'{{"name": "p", "version": "1.0.0", "scripts": {{"dev": "{script}", "build": "echo built"}}}}')
    return installation


def npm(installation):
    return {"NPM_CONFIG_OFFLINE": "true", "NPM_CONFIG_UPDATE_NOTIFIER": "false", "NPM_CONFIG_CACHE": str(installation.dir / "npm")}


def services(installation):
    """What a badge would show: living services, and failed ones."""
    found = ServiceClient(installation).list().values()
    return [service for service in found if service["living"] or service["status"] == "failed"]


# ---- test suggestion 1: the basics


async def test_npm_run_dev_is_detected_started_and_ready(project, port):
    async with project.agent(args=["--tools", "core"], env=npm(project)) as agent:
        reply = await agent.must("exec", script="npm run dev")
        found = STARTED.match(reply.text.splitlines()[0])
        assert found and found[2] == "ready", reply
        assert f"URL: http://127.0.0.1:{port}" in reply.text and f"Ports: {port}" in reply.text, reply
        assert answer(f"http://127.0.0.1:{port}/")[0] == 200
        # What follows is not held up.
        assert "next" in (await agent.must("exec", script="echo next", mode="oneshot")).text


async def test_a_detected_one_that_ends_well_before_it_is_ready_is_a_command(installation):
    (installation.work / "package.json").write_text('{"name": "p", "version": "1.0.0", "scripts": {"dev": "echo generated"}}')
    async with installation.agent(args=["--tools", "core"], env=npm(installation)) as agent:
        reply = await agent.must("exec", script="npm run dev")
        assert re.match(r"\[\w+ exit 0", reply.text) and "generated" in reply.text, reply
        assert "ervice" not in reply.text, reply
        assert services(installation) == []
    assert not installation.json("service", "ps")


async def test_a_build_of_the_same_project_is_none(project):
    async with project.agent(args=["--tools", "core"], env=npm(project)) as agent:
        reply = await agent.must("exec", script="npm run build")
        assert "exit 0" in reply.text and "built" in reply.text, reply
        assert services(project) == []


async def test_the_list_has_their_number_and_details(installation, port):
    installation.cli("ps")
    manager = ServiceClient(installation)
    assert services(installation) == [], "nothing is shown while there is none"
    one = await manager.start(server_command("plain", port), name="web")
    (shown,) = services(installation)
    execution = shown["execution"]
    assert (shown["name"], shown["status"]) == ("web", "ready")
    assert "server.py" in shown["command"] and execution["os_pid"] == one.pid
    assert execution["start_time"] and execution["service"]["signs"], execution


async def test_a_stop_ends_it_and_the_list_follows(installation, port):
    manager = ServiceClient(installation)
    one = await manager.start(server_command("plain", port), name="web")
    manager.stop("web")
    assert services(installation) == [] and not members(one.uuid) and not listens(port)
    assert manager.status("web") == "stopped"


async def test_while_it_is_stopped_it_is_shown_as_stopping(installation, port):
    manager = ServiceClient(installation)
    one = await manager.start(server_command("stubborn", port), name="web")
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        stop = pool.submit(manager.stop, "web", grace_ms=2_000)
        until(lambda: manager.status("web") == "stopping", 10, "stopping")
        assert [service["name"] for service in services(installation)] == ["web"]
        stop.result()
    assert services(installation) == [] and not members(one.uuid)


# ---- test suggestion 2: several services


async def test_several_services_run_at_once_and_each_is_listed(installation):
    manager = ServiceClient(installation)
    ports = {f"s{number}": free_port() for number in range(3)}
    started = {name: await manager.start(server_command("plain", port), name=name) for name, port in ports.items()}
    assert all(one.ready for one in started.values()), started
    assert {service["name"]: service["status"] for service in services(installation)} == dict.fromkeys(ports, "ready")
    assert len({one.id for one in started.values()}) == 3
    for name, port in ports.items():
        assert str(started[name].pid) in answer(f"http://127.0.0.1:{port}/")[1]


async def test_one_is_stopped_and_the_others_go_on(installation):
    manager = ServiceClient(installation)
    ports = {f"s{number}": free_port() for number in range(3)}
    started = {name: await manager.start(server_command("plain", port), name=name) for name, port in ports.items()}
    manager.stop("s1")
    assert {service["name"] for service in services(installation)} == {"s0", "s2"}
    assert not listens(ports["s1"])
    for name in ("s0", "s2"):
        assert manager.service(name)["execution"]["os_pid"] == started[name].pid
        assert answer(f"http://127.0.0.1:{ports[name]}/")[0] == 200


# ---- test suggestion 3, and the three kinds of failures


@pytest.fixture(params=["mcp", "cli"])
def interface(request):
    return request.param


async def test_a_start_fails_a_directory_that_is_not_there(installation, interface, port):
    async with ServiceClient.open(interface, installation) as manager:
        one = await manager.start(server_command("plain", port), cwd="/path/to/dir")
        assert not one.ready
        assert "Failed to start service: " in one.text and "/path/to/dir" in one.text, one.text
        assert "does not exist" in one.text or "no such" in one.text.lower(), one.text
        assert services(installation) == []


async def test_a_start_fails_a_command_that_is_not_there(installation, interface):
    async with ServiceClient.open(interface, installation) as manager:
        one = await manager.start(["no-such-program-here"])
        assert not one.ready
        assert "Failed to start service: " in one.text and "no-such-program-here" in one.text, one.text


async def test_a_start_fails_a_file_that_may_not_be_run(installation, interface):
    (installation.work / "server").write_text("#!/bin/sh\n")
    (installation.work / "server").chmod(stat.S_IRUSR | stat.S_IWUSR)
    async with ServiceClient.open(interface, installation) as manager:
        one = await manager.start(["./server"])
        assert not one.ready
        assert "Failed to start service: " in one.text and "server" in one.text, one.text


async def test_a_pattern_that_never_comes_and_what_is_left_running(installation, interface, port):
    async with ServiceClient.open(interface, installation) as manager:
        one = await manager.start(server_command("plain", port), ready_pattern="never printed", timeout=1, name="web")
        first, second, *_ = one.text.splitlines()
        assert first == "Service failed to become ready: Service ready pattern not matched within 1000ms", one.text
        assert second.startswith(f"It is still running: ID {one.id}, pid {one.pid}; status "), one.text
        assert procs.alive(one.pid) and answer(f"http://127.0.0.1:{port}/")[0] == 200
        assert manager.service("web")["status"] in ("starting", "listening", "responding")


async def test_a_health_check_that_never_passes(installation, interface, port):
    async with ServiceClient.open(interface, installation) as manager:
        one = await manager.start(server_command("unhealthy", port), ready_when="/health", timeout=2, name="web")
        assert one.text.startswith("Service failed to become ready: Health check failed within 2000ms"), one.text
        assert procs.alive(one.pid)


async def test_a_health_check_without_an_answer_is_given_up_for_the_next(installation, interface, port):
    async with ServiceClient.open(interface, installation) as manager:
        one = await manager.start(server_command("hangs-at-first", port), ready_when="/health", timeout=25, name="web")
        assert one.ready, one.text


async def test_the_default_is_sixty_seconds(installation, port):
    manager = ServiceClient(installation)
    one = await manager.start(server_command("plain", port), name="web")
    assert one.state["ready_timeout_ms"] == 60_000


async def test_containers_have_two_minutes(scripts):
    found = detected(scripts, "docker compose up")
    assert found and found["ready_timeout_ms"] == 120_000, found


async def test_an_exit_before_ready_is_reported_at_once(installation, interface, port):
    async with ServiceClient.open(interface, installation) as manager:
        one = await manager.start(server_command("line-then-exit", port))
        assert one.text.startswith("Service failed to become ready: "), one.text
        assert "exit code 1" in one.text
        assert one.service["status"] == "failed"


async def test_an_unexpected_exit_afterwards_stays_in_the_list_and_is_reported(installation, port):
    async with ServiceClient.open("mcp", installation) as manager:
        one = await manager.start(server_command("plain", port), name="web")
        held = procs.ProcessHandle(one.pid)
        held.kill()
        held.close()
        manager.settled("web", "failed")
        (shown,) = services(installation)
        assert shown["name"] == "web" and shown["status"] == "failed"
        reply = await manager.agent.must("exec", script="echo other", mode="oneshot")
        assert "web" in reply.text, reply


async def test_a_good_end_is_stopped_and_a_bad_one_failed(installation):
    manager = ServiceClient(installation)
    await manager.start(["sh", "-c", "sleep 0.2"], name="good", wait_ms=0)
    await manager.start(["sh", "-c", "sleep 0.2; exit 3"], name="bad", wait_ms=0)
    assert manager.settled("good", "stopped", "failed")["status"] == "stopped"
    assert manager.settled("bad", "stopped", "failed")["status"] == "failed"


# ---- test suggestion 4: frameworks

#: Every command the document lists, as it is typed.
COMMANDS = """
npm run dev; npm run start; npm run serve; yarn dev; yarn start; yarn serve; pnpm dev; pnpm start; pnpm serve;
vite dev; next dev; next start; nuxt dev; nest start:dev; react-scripts start; webpack-dev-server serve;
webpack-dev-server start; parcel serve; parcel watch; rollup -w; rollup --watch; ts-node-dev src/index.ts;
nodemon server.js; tsx watch src/index.ts; ng serve; ember serve; gatsby develop;
python manage.py runserver; django-admin runserver; uvicorn app:app --reload; uvicorn app:app; flask run;
flask --debug run; fastapi dev; fastapi run; gunicorn --reload app:app; python -m http.server; streamlit run app.py;
jupyter notebook; jupyter lab;
rails server; rails s; rackup; puma; unicorn; thin start; passenger start;
mvn spring-boot:run; mvn jetty:run; mvn tomcat7:run; gradle bootRun; gradle run; ./gradlew bootRun;
air start; fresh start; realize start; bee run; buffalo dev;
trunk serve; dx serve;
php artisan serve; php -S localhost:8000; symfony server:start; composer serve;
dotnet run; dotnet watch run; dotnet run --project web;
flutter run; dart run; dart pub serve;
swift run; vapor serve;
./gradlew run; mvn kotlin:run;
mix phx.server; mix phoenix.server; iex -S mix;
lein run; lein ring server; boot dev;
sbt run; sbt ~run; activator run;
stack exec yesod devel; cabal run;
docker-compose up; docker compose up; hugo server; jekyll serve; hexo server; mkdocs serve; sphinx-autobuild docs build
"""
ONE_SHOTS = """
npm run build; npm test; npm install; yarn build; pnpm lint; vite build; next build; ng build; gatsby build;
python manage.py migrate; flask db upgrade; rails db:migrate; mvn package; gradle build; go build ./...; cargo build;
composer install; dotnet build; flutter build web; mix test; sbt compile; docker-compose down; docker compose ps;
hugo; jekyll build; mkdocs build; echo npm run dev; grep -r "next dev" .; git commit -m "vite dev"
"""


def commands(text):
    return [command.strip() for command in text.replace("\n", " ").split(";") if command.strip()]


def detected(installation, script):
    body = {"cwd": str(installation.work), "command": {"shell": {"shell": "/bin/sh", "script": script}}}
    return installation.rest("POST", "/api/v1/detect", body)["service"]


@pytest.fixture
def scripts(installation):
    """A project whose scripts are development servers."""
    (installation.work / "package.json").write_text(
        '{"scripts": {"dev": "vite", "start": "next start", "serve": "vite preview", "build": "vite build",'
        ' "test": "vitest run", "lint": "eslint ."}}')
    installation.cli("ps")
    return installation


def test_every_command_of_the_document_is_detected(scripts):
    missed = [command for command in commands(COMMANDS) if detected(scripts, command) is None]
    assert missed == []


def test_nothing_else_is(scripts):
    taken = [command for command in commands(ONE_SHOTS) if detected(scripts, command) is not None]
    assert taken == []


@pytest.mark.parametrize(("command", "line"), [
    ("vite", "  ➜  Local:   http://localhost:5173/"),
    ("next dev", " ✓ Ready in 2.1s"),
    ("python manage.py runserver", "Starting development server at http://127.0.0.1:8000/"),
    ("flask run", " * Running on http://127.0.0.1:5000"),
    ("mvn spring-boot:run", "Tomcat started on port 8080 (http) with context path ''"),
])
def test_its_ready_patterns_match_what_is_printed_and_no_failure(scripts, command, line):
    found = detected(scripts, command)
    hits = [pattern for pattern in found["ready_patterns"] if re.search(rust(pattern), line)]
    assert hits, found["ready_patterns"]
    for failure in ("Error: listen EADDRINUSE: address already in use :::3000", "already in use"):
        assert not [pattern for pattern in found["ready_patterns"] if re.search(rust(pattern), failure)]


def rust(pattern):
    """Named groups have one spelling; so have flags at the start."""
    return pattern.replace("(?<", "(?P<") if "(?<" in pattern and "(?<=" not in pattern and "(?<!" not in pattern else pattern


# ---- its messages and states


async def test_the_message_of_a_start_as_the_document_gives_it(installation, interface, port):
    async with ServiceClient.open(interface, installation) as manager:
        one = await manager.start(server_command("plain", port))
        assert one.text.splitlines()[0] == (
            f"Service started with ID: {one.id}. Status: ready. The service is running in the background.")


async def test_the_message_of_a_failure_as_the_document_gives_it(installation, interface, port):
    async with ServiceClient.open(interface, installation) as manager:
        one = await manager.start(server_command("plain", port), ready_pattern="nowhere", timeout=1)
        assert one.text.splitlines()[0] == (
            "Service failed to become ready: Service ready pattern not matched within 1000ms")


async def test_the_states_are_the_documents(installation, port):
    manager = ServiceClient(installation)
    seen = set()
    one = await manager.start(server_command("line-before-port", port), name="web", wait_ms=0)
    seen.add(manager.status("web"))
    manager.settled("web", "ready")
    seen.add("ready")
    manager.stop(one.name)
    seen.add(manager.status("web"))
    assert seen <= STATES | {"listening", "responding"}, seen


async def test_its_log_is_kept_and_the_last_lines_can_be_requested(installation):
    async with ServiceClient.open("mcp", installation) as manager:
        one = await manager.start(["sh", "-c", "seq 1 5000; exec sleep 300"], name="log", wait_ms=0)
        until(lambda: b"5000\n" in installation.cli("logs", one.id, "--raw").stdout, 10, "its lines")
        reply = await manager.agent.must("service", action="logs", name="log", tail=3)
        assert "4998" in reply.text and "5000" in reply.text and "4997" not in reply.text, reply


async def test_a_failed_one_can_be_started_again_under_its_name(installation, port):
    manager = ServiceClient(installation)
    with socket.create_server(("127.0.0.1", port)):
        one = await manager.start(server_command("in-use-exits", port), name="web")
        assert not one.ready and manager.status("web") == "failed"
    again = await manager.start(server_command("plain", port), name="web")
    assert again.ready and again.id != one.id, again.text
