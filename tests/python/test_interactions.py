"""Questions of running commands: listed and answered through profile `interaction`."""

import datetime

import pytest

pytestmark = pytest.mark.anyio

TOOLS = ("--tools", "core,shell,interaction")
NAME = "printf 'Your name: '; read -r name; echo \"hello $name\""
OVERWRITE = "printf 'Overwrite? [y/N] '; read -r answer; echo \"got <$answer>\""
PASSWORD = "printf 'Password: '; read -r word; echo \"${#word} characters\""
CHOICE = "printf '1) red\\n2) green\\n3) blue\\nSelect one: '; read -r answer; echo \"got <$answer>\""


async def ask(agent, script):
    """Runs a script until it asks; its id, and its question as it is listed."""
    reply = await agent.must("exec", script=script, input="open", on_prompt="ask", wait_ms=20_000)
    assert reply.value("why") == "prompt", reply
    pid = reply.value("id")
    return pid, next(it for it in await questions(agent) if it["execution"] == pid)


async def questions(agent):
    reply = await agent.must("interaction_list")
    assert reply.structured["total"] == len(reply.structured["interactions"])
    return reply.structured["interactions"]


async def answer(agent, question, **options):
    return await agent.call("interaction_answer", id=question["id"], **options)


async def printed(agent, installation, pid):
    """The last line of what has ended by now."""
    installation.rest("POST", f"/api/v1/executions/{pid}/wait", {"until": "exit", "at_most_ms": 10_000})
    polled = await agent.must("poll_process", process_id=pid, tail={"n": 1})
    assert polled.structured["status"] == "finished", polled
    return polled.structured["tail"]["lines"][0]


async def test_the_profile(installation):
    async with installation.agent(args=("--tools", "interaction")) as agent:
        offered = [tool.name for tool in (await agent.client.list_tools()).tools]
        assert offered == ["interaction_list", "interaction_answer"]
        assert await questions(agent) == []


async def test_a_question_is_listed_answered_and_gone(each_installation):
    async with each_installation.agent(args=TOOLS) as agent:
        pid, question = await ask(agent, NAME)
        assert question["kind"] == "input_request" and question["message"] == "Your name:"
        assert question["default"] is None and "secret" not in question
        created, expires = (
            datetime.datetime.fromisoformat(question[name][:26] + "+00:00")
            for name in ("created", "expires")
        )
        assert (expires - created).total_seconds() == pytest.approx(300, abs=1)
        answered = await answer(agent, question, answer="Ada Lovelace")
        assert answered.structured == {
            "id": question["id"], "status": "answered", "kind": "input_request", "execution": pid,
        }
        assert await printed(agent, each_installation, pid) == "Your name: hello Ada Lovelace"
        assert await questions(agent) == []
        again = await answer(agent, question, answer="Bob")
        assert again.code == "interaction_error" and "no longer open" in again.text


@pytest.mark.parametrize(("given", "taken"), [("yes", "y"), ("n", "n"), ("", "N")])
async def test_a_confirmation_takes_yes_or_no_or_its_default(installation, given, taken):
    async with installation.agent(args=TOOLS) as agent:
        pid, question = await ask(agent, OVERWRITE)
        assert question["kind"] == "confirmation" and question["default"] == "N"
        refused = await answer(agent, question, answer="perhaps")
        assert refused.code == "interaction_error" and "perhaps" in refused.text
        assert [it["id"] for it in await questions(agent)] == [question["id"]], "it is still open"
        assert not (await answer(agent, question, answer=given)).is_error
        assert (await printed(agent, installation, pid)).lower().endswith(f"got <{taken.lower()}>")


async def test_a_choice_is_made_by_its_number(installation):
    async with installation.agent(args=TOOLS) as agent:
        pid, question = await ask(agent, CHOICE)
        assert question["kind"] == "choice_selection" and len(question["options"]) == 3
        assert (await answer(agent, question, answer="4")).code == "interaction_error"
        assert not (await answer(agent, question, answer="2")).is_error
        assert await printed(agent, installation, pid) == "Select one: got <2>"


async def test_a_question_is_given_up(installation):
    async with installation.agent(args=TOOLS) as agent:
        pid, question = await ask(agent, NAME)
        cancelled = await answer(agent, question, cancel=True, reason="not needed")
        assert cancelled.structured["status"] == "cancelled", cancelled
        assert await questions(agent) == []
        running = await agent.must("poll_process", process_id=pid)
        assert running.structured["status"] == "running", "giving up a question ends no command"
        await agent.must("kill_process", process_id=pid)


async def test_a_secret_is_not_accepted_and_never_shown(each_installation):
    async with each_installation.agent(args=TOOLS) as agent:
        pid, question = await ask(agent, PASSWORD)
        assert question["secret"] is True and question["default"] is None
        refused = await answer(agent, question, answer="hunter2")
        assert refused.code == "interaction_error", refused
        assert "process_control" in refused.text and pid in refused.text
        assert "person" in refused.text and "hunter2" not in refused.text
        assert [it["id"] for it in await questions(agent)] == [question["id"]]
        control = {"action": "write", "ids": [pid], "text": "hunter2"}
        assert not (await agent.call("process_control", **control)).is_error
        assert (await printed(agent, each_installation, pid)).endswith("7 characters")
        assert await questions(agent) == [], "what got its input elsewhere asks no longer"


async def test_the_end_of_a_command_ends_its_question(each_installation):
    async with each_installation.agent(args=TOOLS) as agent:
        pid, question = await ask(agent, NAME)
        await agent.must("kill_process", process_id=pid)
        assert await questions(agent) == []
        late = await answer(agent, question, answer="Ada")
        assert late.code == "interaction_error" and "no longer open" in late.text


async def test_questions_of_other_sessions_are_not_seen(each_installation):
    async with each_installation.agent(args=TOOLS) as one, each_installation.agent(args=TOOLS) as other:
        pid, question = await ask(one, NAME)
        assert await questions(other) == []
        for options in ({"answer": "me"}, {"cancel": True}):
            foreign = await answer(other, question, **options)
            unknown = await answer(other, {"id": "i999"}, **options)
            assert foreign.is_error and foreign.text == unknown.text
        assert len(await questions(one)) == 1
        await one.must("kill_process", process_id=pid)


async def test_wrong_arguments(installation):
    async with installation.agent(args=TOOLS) as agent:
        for arguments, problem in [
            ({}, "Missing required parameter: id"),
            ({"id": "i1"}, "neither 'answer' nor 'cancel'"),
            ({"id": "i1", "answer": "a", "cancel": True}, "both parameters"),
            ({"id": "i1", "answer": ["a"]}, "allowed: text"),
        ]:
            reply = await agent.call("interaction_answer", **arguments)
            assert reply.code == "value_error" and problem in reply.text, reply
        missing = await agent.call("interaction_answer", id="nothing", answer="a")
        assert missing.code == "interaction_error" and "not found or access denied" in missing.text
