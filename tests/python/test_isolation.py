"""Another principal or another session sees nothing, over any transport."""

import contextlib
import re
from pathlib import Path

import anyio
import pytest
from mcp.shared.exceptions import MCPError

from conftest import transport_for
from harness import Installation, ClientTransport, serve_two_principals

pytestmark = pytest.mark.anyio

DENIED = "not found or access denied"
SECRET = "only mine to see"
MODES = ("auto", "legacy")


@pytest.fixture(scope="module")
def token_daemon(binary):
    """A daemon that asks for tokens, and two of them for different principals."""
    with serve_two_principals(Installation(binary), "--legacy-sse") as http_daemon:
        yield http_daemon


def bearer(http_daemon, name):
    return {"headers": {"Authorization": f"Bearer {http_daemon.tokens[name]}"}}


def pairs():
    for mode in MODES:
        yield f"two-fronts-stdio-{mode}"
        for transport in ("http", "sse"):
            yield f"two-tokens-{transport}-{mode}"
            yield f"two-names-{transport}-{mode}"
            yield f"two-paths-{transport}-{mode}"
        # Without names, a client of the handshake era has a session of its own.
    yield "no-names-http-legacy"
    yield "no-names-sse-auto"


@pytest.fixture(params=list(pairs()))
def pair(request):
    """Two ways in that must not see each other."""
    _two, by, transport, mode = request.param.split("-")
    if by == "tokens":
        http_daemon = request.getfixturevalue("token_daemon")
        one = ClientTransport(transport, mode, http_daemon.installation, http_daemon)
        return one.into(**bearer(http_daemon, "ann")), one.into(**bearer(http_daemon, "bob"))
    one = transport_for(request, transport, mode)
    if by == "names" and request.param.startswith("two"):
        return one.into(session="ann"), one.into(session="bob")
    if by == "paths":
        return one.into(path="/s/ann"), one.into(path="/s/bob")
    return one, one.into()


def recorder_of(messages):
    async def receive(message):
        messages.append(message)

    return receive


async def test_neither_sees_what_the_other_runs(pair):
    own, others = pair
    messages = []
    async with own.agent() as one, others.agent(message_handler=recorder_of(messages)) as other:
        async with listening(others, other) as events:
            start = await one.must("exec", script=f"echo {SECRET}; exec sleep 300", wait_ms=20_000,
                                   until="pattern", pattern="see")
            pid = re.search(r"\[([0-9a-hjkmnp-tv-z]{8})\b", start.text)[1]
            await nothing_to_see(other, pid)
            await one.must("process_control", action="stop", ids=[pid], force=True)
            # A response comes after earlier notifications.
            await other.client.list_tools(cache_mode="bypass")
            assert events == [], "somebody else's resources"
        after = await other.must("exec", script="echo mine")
        assert pid not in after.text and SECRET not in after.text
        assert "mine" in after.text
    text = "\n".join(map(repr, messages))
    assert pid not in text and SECRET not in text, text


@contextlib.asynccontextmanager
async def listening(transport, agent):
    """The notifications of a client of 2026-07-28 about its list of resources; of old ones every message counts."""
    events = []
    if transport.mode == "legacy":
        yield events
        return

    async def receive(stream):
        async for event in stream:
            events.append(event)

    async with agent.client.listen(resources_list_changed=True) as stream:
        async with anyio.create_task_group() as group:
            group.start_soon(receive, stream)
            yield events
            group.cancel_scope.cancel()


async def nothing_to_see(other, pid):
    """Lists, logs, details, control and resources respond as for an unknown id."""
    listed = await other.must("process", action="list")
    assert pid not in listed.text and SECRET not in listed.text
    assert pid not in (await other.must("command_ps_list")).text
    calls = [
        ("process", {"action": "output", "ids": ["ID"]}),
        ("process", {"action": "wait", "ids": ["ID"], "wait_ms": 100}),
        ("process", {"action": "detail", "ids": ["ID"]}),
        ("process_control", {"action": "stop", "ids": ["ID"], "force": True}),
        ("process_control", {"action": "write", "ids": ["ID"], "text": "x"}),
        ("process_control", {"action": "clear_output", "ids": ["ID"]}),
        ("command_ps_logs", {"pid": "ID", "follow_seconds": 0}),
        ("command_ps_detail", {"pid": "ID"}),
        ("command_ps_stop", {"pid": "ID"}),
    ]
    for tool, arguments in calls:
        foreign = await other.call(tool, **filled(arguments, pid))
        unknown = await other.call(tool, **filled(arguments, "zzzzzzzz"))
        assert foreign.text.replace(pid, "ID") == unknown.text.replace("zzzzzzzz", "ID"), tool
        assert DENIED in foreign.text.lower(), (tool, foreign)
    await no_resources(other.client, pid)


def filled(arguments, pid):
    spell = {"ID": pid}
    return {
        name: [spell.get(item, item) for item in value] if isinstance(value, list) else spell.get(value, value)
        for name, value in arguments.items()
    }


async def no_resources(client, pid):
    listed = [str(resource.uri) for resource in (await client.list_resources()).resources]
    assert not any(pid in uri for uri in listed)
    for uri in (f"proc://{pid}", f"proc://{pid}/log", f"proc://{pid}/events"):
        with pytest.raises(MCPError, match=f"(?i){DENIED}"):
            await client.read_resource(uri)
    notifications = (await client.read_resource("proc://news")).contents[0].text
    assert pid not in notifications and SECRET not in notifications


async def test_a_foreign_id_cannot_be_subscribed_to(pair):
    own, others = pair
    messages = []
    async with own.agent() as one, others.agent(message_handler=recorder_of(messages)) as other:
        start = await one.must("exec", script="exec sleep 300", wait_ms=0)
        pid = re.search(r"\[([0-9a-hjkmnp-tv-z]{8})\b", start.text)[1]
        uri = f"proc://{pid}"
        if others.mode == "legacy":
            with contextlib.suppress(MCPError):
                await other.client.subscribe_resource(uri)
            await one.must("process_control", action="stop", ids=[pid], force=True)
            await other.must("exec", script="true")
        else:
            with contextlib.suppress(MCPError, Exception):
                async with other.client.listen(resource_subscriptions=[uri]) as stream:
                    await one.must("process_control", action="stop", ids=[pid], force=True)
                    await other.must("exec", script="true")
                    with anyio.move_on_after(0.5):
                        messages.append(await anext(stream))
        assert pid not in "\n".join(map(repr, messages)), messages


async def test_one_session_by_name_is_the_same_from_both_eras(http_daemon):
    transports = [ClientTransport("http", mode, http_daemon.installation, http_daemon, session="shared") for mode in MODES]
    async with transports[0].agent() as one, transports[1].agent() as other:
        start = await one.must("exec", script="exec sleep 300", wait_ms=0)
        pid = re.search(r"\[([0-9a-hjkmnp-tv-z]{8})\b", start.text)[1]
        assert pid in (await other.must("process", action="list")).text
        await other.must("process_control", action="stop", ids=[pid], force=True)


async def test_requests_without_a_token_are_refused(token_daemon):
    import httpx2

    async with httpx2.AsyncClient() as http:
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic eDp5"}):
            for method, path in (("POST", "/mcp"), ("GET", "/sse"), ("GET", "/api/v1/executions")):
                answer = await http.request(method, token_daemon.base + path, headers=headers, json={})
                assert answer.status_code == 401, (method, path, headers, answer)
                assert "bearer" in answer.headers.get("www-authenticate", "").lower()


@pytest.mark.parametrize("headers", [
    {"Origin": "https://evil.example"}, {"Host": "evil.example"}, {"Origin": "null"},
])
async def test_strange_pages_and_names_are_refused(token_daemon, headers):
    import httpx2

    async with httpx2.AsyncClient() as http:
        for method, path in (("POST", "/mcp"), ("GET", "/sse"), ("GET", "/api/v1/executions")):
            answer = await http.request(method, token_daemon.base + path, headers=headers, json={})
            assert answer.status_code == 403, (method, path, answer)


async def test_what_keeps_clients_apart_and_what_commands_is_told_everywhere(installation):
    sentence = "session isolation is between clients"
    readme = " ".join((Path(__file__).parents[2] / "README.md").read_text().split())
    assert sentence in readme and "Only `high` and `container` isolate them" in readme
    rest = "only levels high and container keep commands apart from each other"
    told = [installation.cli("doctor", check=False).stdout.decode(), installation.json("doctor")["note"]]
    async with installation.agent() as agent:
        told.append(agent.client.instructions)
        low = (await agent.must("exec", command="true", wait_ms=0)).id
        told.append(installation.cli("info", low).stdout.decode())
    for text in told:
        assert sentence in text.lower() and rest in text, text
