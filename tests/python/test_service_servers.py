"""Real servers through every face (02 §E, document 004): known by what a developer types, ready
when they answer, stopped whole, missed when they die, explained when their port is taken."""

import dataclasses
import os
import re
import time

import pytest

from harness.installation import NOBODY, is_root
from harness.procs import ProcessHandle
from harness.servers import FULL, QUICK
from harness.services import STARTED, ServerProject, projects, taken

pytestmark = [pytest.mark.anyio, pytest.mark.limit(120)]

#: How soon a start must say that its port is taken, in seconds; some servers try for five.
SOON_SECONDS = 20
#: Where Next listens unless it is told otherwise; it fails where it is told a port that is taken.
NEXT_PORT = 3000
SERVERS = [*QUICK, *(pytest.param(server, marks=pytest.mark.full) for server in FULL)]
NAMES = [*map(str, [*QUICK, *FULL])]


@dataclasses.dataclass
class StartResult:
    """What a start answered."""

    text: str
    #: Its short id.
    id: str


@pytest.fixture
def make_site(request):
    """Makes copies of projects; they go last, a place empties itself first."""
    with projects() as make:
        make_place = request.getfixturevalue("make_place")
        yield lambda server, user=None: ServerProject(server, make_place(user), make(server))


@pytest.fixture
def site(make_site, server):
    """A copy of the server's project, and a place in it."""
    return make_site(server, NOBODY if server.ordinary and is_root() else None)


async def by_exec(site, agent):
    return begun(site, (await agent.call("exec", script=site.command, wait_ms=45_000)).text)


async def by_shell(site, agent):
    return begun(site, (await agent.call("execute_shell", command=site.command)).text)


async def by_service(site, agent):
    return begun(site, (await agent.call("service", action="start", script=site.command)).text)


async def by_terminal(site, _agent):
    done = site.cli("service", "start", "--tty", "--", site.command, check=False)
    return begun(site, (done.stdout + done.stderr).decode())


#: Where a developer's line is given, and whether it is said to be a service. The last has a
#: terminal, the others have pipes.
INTERFACES = {"exec": by_exec, "shell": by_shell, "service": by_service, "terminal": by_terminal}
AUTOMATIC = {"exec", "shell"}


def begun(site, text):
    """An answer, with the id of what it is about: one that has failed is told by its name."""
    found = STARTED.search(text)
    return StartResult(text, found[1] if found else site.newest())


async def stop_by(face, site, agent, execution):
    if face == "exec":
        await agent.must("process_control", action="stop", ids=[execution])
    elif face == "shell":
        await agent.must("kill_process", process_id=execution)
    elif face == "service":
        reply = await agent.must("service", action="stop", name=execution)
        assert site.port in reply.value("released"), reply
    else:
        site.cli("service", "stop", execution)


def assert_ready(site, started, port):
    """The words of document 004 and what is added to them; what is known of the service."""
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


@pytest.mark.parametrize("face", INTERFACES)
@pytest.mark.parametrize("server", SERVERS, ids=NAMES)
async def test_a_server_is_known_ready_and_stopped_whole(site, face):
    async with site.agent() as agent:
        started = await INTERFACES[face](site, agent)
        info = assert_ready(site, started, site.port)
        assert site.server.says in site.first_answer(info["service"]["url"])
        assert info["service"]["automatic"] == (face in AUTOMATIC)
        assert site.members(), "the test knows its processes"
        await stop_by(face, site, agent, started.id)
        site.assert_gone(started.id)
        assert site.info(started.id)["service"]["status"] == "stopped"


@pytest.mark.root
async def test_an_ordinary_user_is_told_the_same(make_site):
    site = make_site(QUICK[0], NOBODY)
    async with site.agent() as agent:
        started = await by_exec(site, agent)
        info = assert_ready(site, started, site.port)
        assert site.server.says in site.first_answer(info["service"]["url"])
        await stop_by("service", site, agent, started.id)
        site.assert_gone(started.id)
        with taken(site.port):
            started = await by_exec(site, agent)
            assert started.text.startswith("Service failed to become ready: "), started.text


@pytest.mark.parametrize("victim", ["leader", "server"])
@pytest.mark.parametrize("server", SERVERS, ids=NAMES)
async def test_a_crash_after_ready_is_told(site, victim):
    async with site.agent() as agent:
        started = await by_exec(site, agent)
        info = assert_ready(site, started, site.port)
        main = next(port for port in info["service"]["ports"] if port["main"])
        pid = info["os_pid"] if victim == "leader" else main["pid"]
        assert pid in site.members(), info
        ProcessHandle(pid).kill()
        serves = victim == "server" and pid != info["os_pid"]
        if serves and (site.server.heals or site.server.hides):
            return
        allowed = {"failed"} | ({"degraded"} if serves else set())
        ended = site.settled(started.id, allowed | ({"stopped"} if site.server.forgives else set()))
        reply = await agent.call("exec", command=["true"])
        name = ended["service"]["name"]
        news = [line for line in reply.text.splitlines() if name in line or started.id in line]
        assert news, reply
        assert re.search(r"exited|ended by|not well", news[0], re.I), reply
        if ended["service"]["status"] != "degraded":
            site.assert_gone(started.id)


@pytest.mark.parametrize("face", ["exec", "terminal"])
@pytest.mark.parametrize("server", SERVERS, ids=NAMES)
async def test_a_taken_port_is_explained_soon(site, face):
    async with site.agent() as agent:
        with taken(site.port):
            begin = time.monotonic()
            started = await INTERFACES[face](site, agent)
            took = time.monotonic() - begin
            if site.server.moves:
                got = next(it["port"] for it in site.info(started.id)["service"]["ports"] if it["main"])
                assert got != site.port
                info = assert_ready(site, started, got)
                warnings = " ".join(info["service"]["warnings"])
                assert str(site.port) in warnings and str(got) in warnings, started.text
                assert f"Warning: {info['service']['warnings'][0]}" in started.text
                assert site.server.says in site.first_answer(info["service"]["url"])
            else:
                assert took < SOON_SECONDS, started.text
                begins = STARTED if site.server.shares else re.compile(
                    r"(ostler: )?Service failed to become ready: ")
                assert begins.match(started.text), started.text
                # Of a process of root's an ordinary user is told no more.
                holder = "may not see" if site.place.user else rf"\b{os.getpid()}\b"
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
            assert server.says in site.first_answer(service["url"])
        await agent.must("service", action="stop", name=started.id)
        site.port = got
        site.assert_gone(started.id)
