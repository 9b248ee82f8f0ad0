"""The official Python client on every transport and in both eras: what an agent does in a day."""

import re
import time

import anyio
import pytest
from mcp.types import ElicitResult

from harness import Reply, alive, until

pytestmark = pytest.mark.anyio

CORE = {"exec", "process", "process_control"}
#: Longer than anything here takes.
PATIENCE_SECONDS = 20


async def started(agent, script, **options):
    """A command that keeps running; its id."""
    reply = await agent.must("exec", script=script, wait_ms=0, **options)
    return identified(reply)


def identified(reply):
    found = re.search(r"\[([0-9a-hjkmnp-tv-z]{8})\b", reply.text)
    assert found, reply
    return found[1]


async def stop(agent, pid):
    await agent.must("process_control", action="stop", ids=[pid], force=True)


async def test_it_arrives_and_finds_the_tools(transport):
    async with transport.agent() as agent:
        assert agent.client.protocol_version == transport.era
        assert agent.client.server_info.name == "ostler"
        assert "workspace: Active" in agent.client.instructions
        tools = {tool.name for tool in (await agent.client.list_tools()).tools}
    assert CORE | {"command_execute", "command_ps_logs"} <= tools
    assert "execute_shell" not in tools, "not in the default profile"


async def test_exec_answers_output_and_exit_code(transport):
    async with transport.agent() as agent:
        done = await agent.call("exec", script="echo out; echo err >&2; exit 3")
    assert not done.is_error, "a command that fails is no failed call"
    assert "out" in done.text and "err" in done.text
    assert re.search(r"exit (code )?3", done.text), done


async def test_what_takes_long_yields_an_id(transport):
    async with transport.agent() as agent:
        first = await agent.must(
            "exec", script="echo begun; read line; echo got $line", input="open", wait_ms=20_000,
            until="pattern", pattern="begun",
        )
        assert "begun" in first.text
        pid = identified(first)
        await agent.must("process_control", action="write", ids=[pid], text="it", enter=True)
        ended = await agent.must("process", action="wait", ids=[pid], wait_ms=20_000)
    assert "got it" in ended.text


async def test_progress_is_reported_while_it_runs(transport):
    reports = []

    async def progress(at, total, message):
        reports.append((at, message))

    async with transport.agent() as agent:
        result = await agent.client.call_tool(
            "exec", {"script": "for i in 1 2 3; do echo step $i; sleep 1; done; echo done", "wait_ms": 20_000},
            progress_callback=progress,
        )
    assert "done" in Reply(result).text
    assert reports, "nothing was told in three seconds"
    assert [at for at, _ in reports] == sorted({at for at, _ in reports}), "it only grows"
    assert len(reports) <= 6, "at most one a second"
    assert any("step " in (message or "") for _, message in reports), reports


async def test_a_cancelled_call_ends_its_command(transport):
    mark = transport.installation.work / f"cancelled-{transport.transport}-{transport.mode}"
    async with transport.agent() as agent:
        async with anyio.create_task_group() as group:
            arguments = {"script": f"echo $$ > {mark}; exec sleep 300", "wait_ms": 40_000}
            group.start_soon(agent.client.call_tool, "exec", arguments)
            pid = int(await anyio.to_thread.run_sync(first, mark))
            group.cancel_scope.cancel()
        gone = await anyio.to_thread.run_sync(lambda: until(lambda: not alive(pid), PATIENCE_SECONDS))
        assert gone
        assert not (await agent.must("exec", script="true")).is_error, "the client goes on"


def first(mark):
    return until(lambda: mark.exists() and mark.read_text().strip(), PATIENCE_SECONDS)


async def test_what_was_given_out_survives_a_cancelled_wait(transport):
    async with transport.agent() as agent:
        pid = await started(agent, "exec sleep 300")
        with anyio.move_on_after(1):
            await agent.client.call_tool("process", {"action": "wait", "ids": [pid], "wait_ms": 40_000})
        assert "running" in (await agent.must("process", action="detail", ids=[pid])).text
        await stop(agent, pid)


@pytest.mark.parametrize("answer", ["yes", "decline"])
async def test_a_prompt_is_put_to_the_person(transport, answer):
    messages = []

    async def ask(_context, params):
        messages.append(params.message)
        if answer == "decline":
            return ElicitResult(action="decline")
        properties = params.requested_schema["properties"]
        return ElicitResult(action="accept", content={name: chosen(it) for name, it in properties.items()})

    async with transport.agent(elicitation_callback=ask) as agent:
        reply = await agent.call(
            "exec", script='printf "Continue? [y/n] "; read a; echo "got <$a>"', input="open",
            on_prompt="ask", wait_ms=20_000,
        )
        assert len(messages) == 1 and "Continue?" in messages[0], (messages, reply)
        if answer == "yes":
            assert re.search(r"got <y(es)?>", reply.text), reply
        else:
            assert "got" not in reply.text, reply
            await stop(agent, identified(reply))


def chosen(schema):
    """The choice of a person who agrees."""
    if schema.get("type") == "boolean":
        return True
    words = schema.get("enum") or [each["const"] for each in schema.get("oneOf", [])] or ["y"]
    return next((word for word in words if word.lower() in ("y", "yes")), words[0])


async def test_a_secret_is_never_requested_in_a_form(transport):
    messages = []

    async def ask(_context, params):
        messages.append(params.message)
        return ElicitResult(action="decline")

    async with transport.agent(elicitation_callback=ask) as agent:
        reply = await agent.call(
            "exec", script='printf "Password: "; read -r a; echo "got <$a>"', input="open",
            on_prompt="ask", wait_ms=20_000,
        )
        assert messages == [], "secrets are not for forms"
        assert "Password:" in reply.text
        await stop(agent, identified(reply))


async def test_resources_are_listed_and_read(transport):
    async with transport.agent() as agent:
        pid = await started(agent, "echo to be read; exec sleep 300")
        await agent.must("process", action="wait", ids=[pid], until="pattern", pattern="to be read")
        client = agent.client
        listed = {str(resource.uri) for resource in (await client.list_resources()).resources}
        assert f"proc://{pid}" in listed
        templates = {each.uri_template for each in (await client.list_resource_templates()).resource_templates}
        assert any(each.startswith("proc://{id}/log") for each in templates)
        detail = (await client.read_resource(f"proc://{pid}")).contents[0]
        assert detail.mime_type == "application/json" and pid in detail.text
        log = (await client.read_resource(f"proc://{pid}/log")).contents[0]
        assert "to be read" in log.text
        await stop(agent, pid)


async def test_an_unknown_resource_is_an_error(transport):
    from mcp.shared.exceptions import MCPError

    async with transport.agent() as agent:
        with pytest.raises(MCPError, match="not found or access denied"):
            await agent.client.read_resource("proc://zzzzzzzz")


async def test_a_subscriber_is_notified_of_the_end(transport):
    updates = []

    async def receive(message):
        uri = getattr(getattr(message, "params", None), "uri", None)
        if uri is not None:
            updates.append(str(uri))

    async with transport.agent(message_handler=receive) as agent:
        pid = await started(agent, "exec sleep 300")
        uri = f"proc://{pid}"
        if transport.mode == "legacy":
            await agent.client.subscribe_resource(uri)
            await stop(agent, pid)
            with anyio.fail_after(PATIENCE_SECONDS):
                while uri not in updates:
                    await anyio.lowlevel.checkpoint()
            await agent.client.unsubscribe_resource(uri)
            return
        async with agent.client.listen(resource_subscriptions=[uri]) as stream:
            assert stream.honored.resource_subscriptions == [uri]
            await stop(agent, pid)
            with anyio.fail_after(PATIENCE_SECONDS):
                event = await anext(stream)
    assert str(event.uri) == uri


async def test_notifications_come_with_the_next_response(transport):
    async with transport.agent() as agent:
        installation = transport.installation
        # It must not end before its start is answered: then the answer says so, and nothing is news.
        # The directory is that of the other transports, too.
        go = installation.work / f"go-{time.monotonic_ns()}"
        pid = await started(agent, f"until test -e {go}; do sleep .02; done; exit 7")
        await agent.client.list_tools(cache_mode="bypass")
        go.touch()
        installation.rest("POST", f"/api/v1/executions/{pid}/wait", {"until": "exit", "at_most_ms": 20_000})
        # The wait of another client may be answered before the end is news for this one.
        for _ in range(20):
            reports = await agent.must("exec", script="echo other")
            if pid in reports.text:
                break
        assert pid in reports.text and "7" in reports.text, reports
        again = await agent.must("exec", script="echo other")
        assert pid not in again.text, "told once"


async def test_unknown_tools_and_bad_arguments_say_what_is_allowed(transport):
    from mcp.shared.exceptions import MCPError

    async with transport.agent() as agent:
        with pytest.raises(MCPError, match="unknown tool"):
            await agent.client.call_tool("no_such_tool", {})
        for arguments in ({"comand": ["true"]}, {"script": 5}, {}, {"script": "true", "wait_ms": -1}):
            reply = await agent.call("exec", **arguments)
            assert reply.is_error and reply.code == "value_error", (arguments, reply)
            assert "allowed" in reply.text, reply


async def test_a_large_answer_stays_in_budget(transport):
    async with transport.agent() as agent:
        reply = await agent.must("exec", script="seq 1 200000")
    assert len(reply.text) <= 20_000
    assert "200000" in reply.text, "the end is shown"


async def test_many_calls_at_once_are_answered_each(transport):
    async with transport.agent() as agent:
        texts = {}

        async def one(number):
            texts[number] = (await agent.must("exec", command=["echo", f"number {number}"])).text

        async with anyio.create_task_group() as group:
            for number in range(10):
                group.start_soon(one, number)
    assert all(f"number {number}" in text for number, text in texts.items())
    assert len(texts) == 10
