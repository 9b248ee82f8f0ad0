"""Executions that outlive their session pass to the project: later sessions of the project see them, others do
not, and a person sees everything."""

import json
import os

import httpx2
import pytest

from harness import Agent, HttpDaemon, ClientTransport, token, until
from harness.http_daemon import TOKEN

pytestmark = pytest.mark.anyio

DENIED = "not found or access denied"
#: Answers at once: a port that never does is waited for.
SERVICE = ["python3", "-m", "http.server", "0", "--bind", "127.0.0.1"]


async def listed(agent, **more):
    """The ids in `process list`."""
    reply = await agent.must("process", action="list", **more)
    return [entry["id"] for entry in reply.structured["processes"]]


async def keeps(agent, **more):
    """Starts one that is kept, one that is not, and a service: their ids."""
    exec_ = {"script": "echo kept; exec sleep 300", "wait_ms": 0}
    kept = await agent.must("exec", keep=True, **exec_)
    lost = await agent.must("exec", **exec_)
    service = await agent.must("exec", command=SERVICE, mode="service", **more)
    return kept.id, lost.id, service.id


def elsewhere(installation):
    directory = installation.dir / "elsewhere"
    directory.mkdir(exist_ok=True)
    os.chmod(directory, 0o755)
    return Agent.connect(installation.argv("mcp"), installation.env(), directory)


async def is_denied(agent, pid):
    """A foreign id is answered as an unknown one is."""
    for action in ("output", "detail", "wait"):
        foreign = await agent.call("process", action=action, ids=[pid])
        unknown = await agent.call("process", action=action, ids=["zzzzzzzz"])
        assert DENIED in foreign.text, foreign
        assert foreign.text.replace(pid, "zzzzzzzz") == unknown.text
    stopped = await agent.call("process_control", action="stop", ids=[pid], force=True)
    assert DENIED in stopped.text, stopped


async def test_a_later_session_of_the_project_sees_what_was_kept(each_installation):
    installation = each_installation
    async with installation.agent() as first:
        kept, lost, service = await keeps(first)
        async with installation.agent() as beside:
            assert await listed(beside) == [], "while its session lives it is its session's"
            await is_denied(beside, kept)
    until(lambda: lost not in installation.executions(), 20, "the end of what was not kept")
    async with elsewhere(installation) as stranger:
        assert await listed(stranger) == []
        await is_denied(stranger, kept)
    async with installation.agent() as later:
        assert set(await listed(later)) == {kept, service}
        output = await later.must("process", action="output", ids=[kept])
        assert "kept" in output.text
        services = await later.must("service", action="list")
        assert service in services.text
    # Its sessions come and go, a daemon too: it stays.
    installation.kill_daemon()
    async with installation.agent() as latest:
        assert set(await listed(latest)) == {kept, service}
        assert {entry["id"] for entry in installation.json("ps")} == {kept, service}
        reply = await latest.must("process_control", action="stop", ids=[kept, service], force=True)
        assert kept in reply.text
    until(lambda: not any(entry["id"] == kept for entry in installation.json("ps")), 20, "its end")


async def test_the_root_of_a_project_is_its_repository(installation):
    (installation.work / ".git").mkdir()
    deep = installation.work / "src" / "deep"
    deep.mkdir(parents=True)
    async with Agent.connect(installation.argv("mcp"), installation.env(), deep) as first:
        start = await first.must("exec", script="exec sleep 300", wait_ms=0, keep=True)
    async with installation.agent() as later:
        assert await listed(later) == [start.id]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_over_http_too(installation, mode):
    http_daemon = HttpDaemon(installation)
    secret = token(installation, "mine")
    headers = {"Authorization": f"Bearer {secret}"}
    transport = ClientTransport("http", mode, installation, http_daemon, headers=headers)
    async with transport.into(session="one").agent() as first:
        kept, lost, service = await keeps(first)
    assert httpx2.delete(f"{http_daemon.url}/s/one", headers=headers).status_code in (200, 204)
    until(lambda: lost not in installation.executions(), 20, "the end of what was not kept")
    async with transport.into(session="two").agent() as later:
        assert set(await listed(later)) == {kept, service}
    other = token(installation, "other", principal="other")
    headers = {"Authorization": f"Bearer {other}"}
    async with transport.into(session="two", headers=headers).agent() as stranger:
        assert await listed(stranger) == []
        await is_denied(stranger, kept)
    http_daemon.end()


async def test_the_token_that_serve_prints_sees_live_sessions(installation):
    http_daemon = HttpDaemon(installation)
    until(lambda: TOKEN.search("".join(http_daemon.output)), 20, "the token")
    secret = TOKEN.search("".join(http_daemon.output))[0]
    headers = {"Authorization": f"Bearer {secret}"}

    def seen(**more):
        answer = httpx2.get(f"{http_daemon.base}/api/v1/executions", headers={**headers, **more})
        assert answer.status_code == 200, answer.text
        return [entry["id"] for entry in answer.json()["executions"]]

    async with installation.agent() as agent:
        pid = await agent.start("sleep", "300")
        assert pid in seen()
        answer = httpx2.post(f"{http_daemon.base}/api/v1/executions/{pid}/stop", headers=headers, json={"force": True})
        assert answer.status_code == 200 and json.loads(answer.text)["id"] == pid
        # An agent that names its session, or has one of its own, sees no other.
        pid = await agent.start("sleep", "300")
        assert seen(**{"Ostler-Session": "mine"}) == []
        for session, mode in (("mine", "auto"), ("mine", "legacy"), (None, "legacy")):
            transport = ClientTransport("http", mode, installation, http_daemon, headers=headers, session=session)
            async with transport.agent() as other:
                assert await listed(other) == []
                await is_denied(other, pid)
    http_daemon.end()
