"""Real servers over every interface: detected by the usual commands, ready when they respond, stopped completely,
reported when they crash, explained when their port is in use."""

import dataclasses
import os
import re
import time

import pytest

from harness.installation import NOBODY, is_root
from harness.procs import ProcessHandle
from harness.servers import FULL, QUICK
from harness.services import STARTED, ServerProject, projects, taken
from harness.tiers import each_once

pytestmark = [pytest.mark.anyio, pytest.mark.limit(120)]

#: The time in which a start must report a port in use, in seconds; some servers try for five.
SOON_SECONDS = 20
#: The default port of Next; it fails where it is given a port in use.
NEXT_PORT = 3000
SERVERS = [*QUICK, *FULL]


@dataclasses.dataclass
class StartResult:
    """What a start answered."""

    text: str
    #: Its short id.
    id: str


@pytest.fixture
def make_site(request):
    """Makes copies of projects; they are removed last, after the installation's own end."""
    with projects() as make:
        make_installation = request.getfixturevalue("make_installation")
        yield lambda server, user=None: ServerProject(server, make_installation(user), make(server))


@pytest.fixture
def site(make_site, server):
    """A copy of the server's project, and an installation in it."""
    return make_site(server, NOBODY if server.refuses_root and is_root() else None)


async def by_exec(site, agent):
    return parse_start(site, (await agent.call("exec", script=site.command, wait_ms=45_000)).text)


async def by_shell(site, agent):
    return parse_start(site, (await agent.call("execute_shell", command=site.command)).text)


async def by_service(site, agent):
    return parse_start(site, (await agent.call("service", action="start", script=site.command)).text)


async def by_terminal(site, _agent):
    done = site.cli("service", "start", "--tty", "--", site.command, check=False)
    return parse_start(site, (done.stdout + done.stderr).decode())


#: The interface of a developer's command line, and whether it is marked as a service. The last has a
#: terminal, the others have pipes.
INTERFACES = {"exec": by_exec, "shell": by_shell, "service": by_service, "terminal": by_terminal}
AUTOMATIC = {"exec", "shell"}


def parse_start(site, text):
    """A response, with the id of its service: a failed one is identified by its name."""
    found = STARTED.search(text)
    return StartResult(text, found[1] if found else site.newest())


async def stop_by(interface, site, agent, execution):
    if interface == "exec":
        await agent.must("process_control", action="stop", ids=[execution])
    elif interface == "shell":
        await agent.must("kill_process", process_id=execution)
    elif interface == "service":
        reply = await agent.must("service", action="stop", name=execution)
        assert site.port in reply.value("released"), reply
    else:
        site.cli("service", "stop", execution)


def assert_ready(site, started, port):
    """The words of the response and of its notes; the service's info."""
    text = started.text
    first = STARTED.search(text)
    assert first and text.startswith(first[0]), text
    assert first[2] == "ready", text
    assert re.search(rf"^Ports: {port} \([^)]+\)", text, re.M), text
    assert re.search(r"^Evidence: \S", text, re.M), text
    info = site.info(started.id)
    service = info["service"]
    assert service["status"] == "ready" and service["detected"] == site.server.entry, service
    main = [it for it in service["ports"] if it["main"]]
    assert [it["port"] for it in main] == [port], service
    if site.server.http:
        url = re.search(r"^URL: (\S+)$", text, re.M)
        assert url and service["url"] == url[1], text
        assert re.match(rf"http://(localhost|127\.0\.0\.1|0\.0\.0\.0):{port}(/\S*)?$", url[1]), text
    return info


@pytest.mark.parametrize(("server", "interface"), each_once(SERVERS, INTERFACES, only_full=FULL))
async def test_a_server_is_known_ready_and_stopped_whole(site, interface):
    async with site.agent() as agent:
        started = await INTERFACES[interface](site, agent)
        info = assert_ready(site, started, site.port)
        assert site.server.response in site.first_answer(info["service"]["url"])
        assert info["service"]["automatic"] == (interface in AUTOMATIC)
        assert site.members(), "the test knows its processes"
        await stop_by(interface, site, agent, started.id)
        site.assert_gone(started.id)
        assert site.info(started.id)["service"]["status"] == "stopped"


@pytest.mark.root
async def test_an_ordinary_user_gets_the_same_report(make_site):
    site = make_site(QUICK[0], NOBODY)
    async with site.agent() as agent:
        started = await by_exec(site, agent)
        info = assert_ready(site, started, site.port)
        assert site.server.response in site.first_answer(info["service"]["url"])
        await stop_by("service", site, agent, started.id)
        site.assert_gone(started.id)
        with taken(site.port):
            started = await by_exec(site, agent)
            assert started.text.startswith("Service failed to become ready: "), started.text


@pytest.mark.parametrize(("server", "victim"), each_once(SERVERS, ["leader", "server"], only_full=FULL))
async def test_a_crash_after_ready_is_reported(site, victim):
    async with site.agent() as agent:
        started = await by_exec(site, agent)
        info = assert_ready(site, started, site.port)
        main = next(port for port in info["service"]["ports"] if port["main"])
        pid = info["os_pid"] if victim == "leader" else main["pid"]
        assert pid in site.members(), info
        ProcessHandle(pid).kill()
        serves = victim == "server" and pid != info["os_pid"]
        if serves and (site.server.restarts_workers or site.server.keeps_port):
            return
        allowed = {"failed"} | ({"degraded"} if serves else set())
        ended = site.settled(started.id, allowed | ({"stopped"} if site.server.exits_zero else set()))
        reply = await agent.call("exec", command=["true"])
        name = ended["service"]["name"]
        lines = [line for line in reply.text.splitlines() if name in line or started.id in line]
        assert lines, reply
        assert re.search(r"exited|ended by|not well", lines[0], re.I), reply
        if ended["service"]["status"] != "degraded":
            site.assert_gone(started.id)


@pytest.mark.parametrize(("server", "interface"), each_once(SERVERS, ["terminal", "exec"], only_full=FULL))
async def test_a_taken_port_is_explained_soon(site, interface):
    async with site.agent() as agent:
        with taken(site.port):
            begin = time.monotonic()
            started = await INTERFACES[interface](site, agent)
            took = time.monotonic() - begin
            if site.server.takes_next_port:
                got = next(it["port"] for it in site.info(started.id)["service"]["ports"] if it["main"])
                assert got != site.port
                info = assert_ready(site, started, got)
                warnings = " ".join(info["service"]["warnings"])
                assert str(site.port) in warnings and str(got) in warnings, started.text
                assert f"Warning: {info['service']['warnings'][0]}" in started.text
                assert site.server.response in site.first_answer(info["service"]["url"])
            else:
                assert took < SOON_SECONDS, started.text
                begins = STARTED if site.server.shares_port else re.compile(
                    r"(ostler: )?Service failed to become ready: ")
                assert begins.match(started.text), started.text
                # An ordinary user does not learn more about a process of root.
                holder = "may not see" if site.installation.user else rf"\b{os.getpid()}\b"
                assert re.search(holder, started.text), started.text
                assert str(site.port) in started.text
        if site.members():
            site.cli("service", "stop", started.id)
        site.assert_gone(started.id)


@pytest.mark.full
async def test_next_goes_from_its_own_port_to_another_one(make_site):
    server = next(server for server in FULL if server.name == "next")
    site = make_site(dataclasses.replace(server, command="npm run dev"))
    async with site.agent() as agent:
        with taken(NEXT_PORT):
            started = await by_exec(site, agent)
            service = site.info(started.id)["service"]
            got = next(it["port"] for it in service["ports"] if it["main"])
            assert got != NEXT_PORT
            assert_ready(site, started, got)
            assert str(NEXT_PORT) in " ".join(service["warnings"]), started.text
            assert server.response in site.first_answer(service["url"])
        await agent.must("service", action="stop", name=started.id)
        site.port = got
        site.assert_gone(started.id)
