"""Whoever has another principal or another session sees nothing, on whatever transport."""

import contextlib
import re

import anyio
import pytest
from mcp.shared.exceptions import MCPError

from conftest import way_in
from harness import Installation, ClientTransport, serving_two_principals

pytestmark = pytest.mark.anyio

DENIED = "not found or access denied"
SECRET = "only mine to see"
MODES = ("auto", "legacy")


@pytest.fixture(scope="module")
def guarded(binary):
    """A daemon that asks for tokens, and two of them for different principals."""
    with serving_two_principals(Installation(binary), "--legacy-sse") as serving:
        yield serving


def bearer(serving, name):
    return {"headers": {"Authorization": f"Bearer {serving.tokens[name]}"}}


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
        serving = request.getfixturevalue("guarded")
        one = ClientTransport(transport, mode, serving.place, serving)
        return one.into(**bearer(serving, "ann")), one.into(**bearer(serving, "bob"))
    one = way_in(request, transport, mode)
    if by == "names" and request.param.startswith("two"):
        return one.into(session="ann"), one.into(session="bob")
    if by == "paths":
        return one.into(path="/s/ann"), one.into(path="/s/bob")
    return one, one.into()


def hearing(heard):
    async def hear(message):
        heard.append(message)

    return hear


async def test_neither_sees_what_the_other_runs(pair):
    mine, others = pair
    heard = []
    async with mine.agent() as one, others.agent(message_handler=hearing(heard)) as other:
        async with listening(others, other) as events:
            begun = await one.must("exec", script=f"echo {SECRET}; exec sleep 300", wait_ms=20_000,
                                   until="pattern", pattern="see")
            pid = re.search(r"\[([0-9a-hjkmnp-tv-z]{8})\b", begun.text)[1]
            await nothing_to_see(other, pid)
            await one.must("process_control", action="stop", ids=[pid], force=True)
            # An answer comes after whatever there was to tell before it.
            await other.client.list_tools(cache_mode="bypass")
            assert events == [], "somebody else's resources"
        after = await other.must("exec", script="echo mine")
        assert pid not in after.text and SECRET not in after.text
        assert "mine" in after.text
    said = "\n".join(map(repr, heard))
    assert pid not in said and SECRET not in said, said


@contextlib.asynccontextmanager
async def listening(way, agent):
    """What a client of 2026-07-28 hears of its list of resources; of old ones every message is."""
    events = []
    if way.mode == "legacy":
        yield events
        return

    async def hear(stream):
        async for event in stream:
            events.append(event)

    async with agent.client.listen(resources_list_changed=True) as stream:
        async with anyio.create_task_group() as group:
            group.start_soon(hear, stream)
            yield events
            group.cancel_scope.cancel()


async def nothing_to_see(other, pid):
    """Lists, logs, details, control and resources tell what they tell of an unknown id."""
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
    news = (await client.read_resource("proc://news")).contents[0].text
    assert pid not in news and SECRET not in news


async def test_a_foreign_id_cannot_be_subscribed_to(pair):
    mine, others = pair
    heard = []
    async with mine.agent() as one, others.agent(message_handler=hearing(heard)) as other:
        begun = await one.must("exec", script="exec sleep 300", wait_ms=0)
        pid = re.search(r"\[([0-9a-hjkmnp-tv-z]{8})\b", begun.text)[1]
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
                        heard.append(await anext(stream))
        assert pid not in "\n".join(map(repr, heard)), heard


async def test_one_session_by_name_is_the_same_from_both_eras(served):
    ways = [ClientTransport("http", mode, served.place, served, session="shared") for mode in MODES]
    async with ways[0].agent() as one, ways[1].agent() as other:
        begun = await one.must("exec", script="exec sleep 300", wait_ms=0)
        pid = re.search(r"\[([0-9a-hjkmnp-tv-z]{8})\b", begun.text)[1]
        assert pid in (await other.must("process", action="list")).text
        await other.must("process_control", action="stop", ids=[pid], force=True)


async def test_without_a_token_nobody_comes_in(guarded):
    import httpx2

    async with httpx2.AsyncClient() as http:
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic eDp5"}):
            for method, path in (("POST", "/mcp"), ("GET", "/sse"), ("GET", "/api/v1/executions")):
                answer = await http.request(method, guarded.base + path, headers=headers, json={})
                assert answer.status_code == 401, (method, path, headers, answer)
                assert "bearer" in answer.headers.get("www-authenticate", "").lower()


@pytest.mark.parametrize("headers", [
    {"Origin": "https://evil.example"}, {"Host": "evil.example"}, {"Origin": "null"},
])
async def test_strange_pages_and_names_are_refused(guarded, headers):
    import httpx2

    async with httpx2.AsyncClient() as http:
        for method, path in (("POST", "/mcp"), ("GET", "/sse"), ("GET", "/api/v1/executions")):
            answer = await http.request(method, guarded.base + path, headers=headers, json={})
            assert answer.status_code == 403, (method, path, answer)
