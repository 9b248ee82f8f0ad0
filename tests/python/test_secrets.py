"""Secrets by name: the command has the value, nobody reads it anywhere."""

import base64
import json

import pytest

from harness.protected_env import USERS_BY_INTERFACE, USERS
from harness.isolation_client import INTERFACES, IsolationOptions

pytestmark = pytest.mark.anyio

VALUE = "s3cr3t-v4lu3-0f-th3-t3st-9217"
ENV = {"OSTLER_SECRET_TOKEN": VALUE, "CLAUDE_SECRET_OTHER": VALUE + "-other"}
LEVELS = ("medium", "high")


@pytest.fixture
def holding(make_place, ordinary_user):
    """A place whose fronts hold secrets."""

    def make(who):
        place = make_place(ordinary_user if who == "ordinary" else None)
        plain = place.env
        place.env = lambda **more: plain(**{**ENV, **more})
        return place

    return make


def wished(_who, level, **changes):
    return IsolationOptions(level=level, secrets=("TOKEN",), **changes)


def nowhere(place, *texts):
    """The value is in none of these texts, and in no file of ours."""
    for text in texts:
        assert VALUE not in text, text
    found = []
    for base in (place.state, place.dir / "run", place.dir / "config"):
        for path in base.rglob("*"):
            if path.is_file() and not path.is_symlink() and VALUE.encode() in path.read_bytes():
                found.append(path)
    assert found == [], found


#: Scripts that print the value, whole or in pieces; each prints `done` after it.
PRINT = {
    "plainly": 'echo "$TOKEN"; echo done',
    "on standard error": 'echo "$TOKEN" >&2; echo done',
    "in the middle of words": 'echo "x${TOKEN}y $TOKEN$TOKEN"; echo done',
    "without an end of line": 'printf %s "$TOKEN"; sleep 0.3; echo; echo done',
    "in two writes": 'python3 -c "import os,time; v=os.environ[\'TOKEN\'].encode(); os.write(1,v[:9]); time.sleep(0.3); os.write(1,v[9:])"; echo; echo done',
    "byte by byte": 'python3 -c "import os,time; [os.write(1,bytes([b])) or time.sleep(0.005) for b in os.environ[\'TOKEN\'].encode()]"; echo; echo done',
    "by env": "env; echo done",
    "after much output": 'seq 1 20000; echo "$TOKEN"; seq 1 20000; echo done',
}

#: Those of the quick tier.
QUICK = ("plainly", "in two writes", "byte by byte")


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("who", "face"), USERS_BY_INTERFACE)
@pytest.mark.parametrize("how", [pytest.param(how, marks=() if how in QUICK else pytest.mark.full) for how in PRINT])
def test_what_is_printed_is_redacted(holding, who, level, face, how):
    place = holding(who)
    ran = INTERFACES[face](place, ["sh", "-c", PRINT[how]], wished(who, level))
    assert "done" in ran.text, ran.text
    nowhere(place, ran.text)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("who", USERS)
def test_the_command_has_the_value(holding, who, level):
    place = holding(who)
    script = 'test ${#TOKEN} = ' + str(len(VALUE)) + ' && printf %s "$TOKEN" | sha256sum'
    import hashlib

    ran = INTERFACES["cli"](place, ["sh", "-c", script], wished(who, level))
    assert hashlib.sha256(VALUE.encode()).hexdigest() in ran.text, ran.text


@pytest.mark.parametrize("who", USERS)
def test_who_does_not_name_it_has_not_got_it(holding, who):
    place = holding(who)
    for face in INTERFACES:
        ran = INTERFACES[face](place, ["sh", "-c", "env; echo done"], IsolationOptions(level="medium"))
        assert "done" in ran.text
        nowhere(place, ran.text)
        assert "TOKEN" not in ran.text


@pytest.mark.parametrize("who", USERS)
async def test_no_list_log_error_or_record_tells_it(holding, who):
    place = holding(who)
    async with place.agent(args=["--tools", "core,command,shell,interaction,pty"]) as agent:
        begun = await agent.must("exec", script='echo "<$TOKEN>"; exec sleep 300', secrets=["TOKEN"], wait_ms=0,
                                 description=f"with {VALUE}", labels=[f"label-{VALUE}"])
        pid = begun.value("id")
        place.rest("POST", f"/api/v1/executions/{pid}/wait", {"until": "pattern", "pattern": "<", "at_most_ms": 5000})
        said = [begun]
        for action in ("output", "detail"):
            said.append(await agent.must("process", action=action, ids=[pid]))
        said += [await agent.call("command_ps_list"), await agent.call("command_ps_detail", pid=pid),
                 await agent.call("list_processes"), await agent.call("poll_process", process_id=pid)]
        # Not found, and said so by name: the value as a program.
        said.append(await agent.call("exec", command=[VALUE], secrets=["TOKEN"]))
        said.append(await agent.call("exec", command=["cat", f"/no/{VALUE}"], secrets=["TOKEN"]))
        said.append(await agent.call("exec", script=f"echo {VALUE}", cwd=f"/no/{VALUE}", secrets=["TOKEN"]))
        texts = [reply.text + json.dumps(reply.structured or {}) + json.dumps(reply.meta) for reply in said]
        for path in ("", f"/{pid}", f"/{pid}/raw", f"/{pid}/output", f"/{pid}/export?format=jsonl"):
            texts.append(place.rest("GET", f"/api/v1/executions{path}", raw=True).decode())
        for words in (("ps", "-a"), ("ps", "-a", "--json"), ("info", pid), ("logs", pid)):
            texts.append(place.cli(*words).stdout.decode())
        await agent.must("process_control", action="stop", ids=[pid], force=True)
    nowhere(place, *texts)


@pytest.mark.parametrize("face", INTERFACES)
def test_a_secret_that_nobody_has_is_refused_by_name(places, face):
    ran = INTERFACES[face](places.of(USERS[0]), ["echo", "ran"], IsolationOptions(level="medium", secrets=("NOBODY_HAS_IT",)))
    assert "ran" not in ran.text.split() and "NOBODY_HAS_IT" in ran.text, ran.text


@pytest.mark.parametrize("who", USERS)
def test_a_file_of_secrets_must_be_private(make_place, ordinary_user, who):
    place = make_place(ordinary_user if who == "ordinary" else None)
    file = place.dir / "config" / "ostler" / "secrets.toml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(f'TOKEN = "{VALUE}"\n')
    file.chmod(0o600)
    place.give(file.parent)
    asked = IsolationOptions(level="medium", secrets=("TOKEN",))
    ran = INTERFACES["cli"](place, ["sh", "-c", "echo ${#TOKEN} $TOKEN"], asked)
    assert str(len(VALUE)) in ran.text and VALUE not in ran.text, ran.text
    file.chmod(0o644)
    refused = INTERFACES["cli"](place, ["sh", "-c", "echo r''an"], asked)
    assert "ran" not in refused.text.split() and VALUE not in refused.text, refused.text
    assert "secrets.toml" in refused.text or "600" in refused.text or "mode" in refused.text, refused.text


@pytest.mark.parametrize("who", USERS)
async def test_a_terminal_shows_it_neither(holding, who):
    """Typed or printed, on the screen and in the raw output."""
    place = holding(who)
    async with place.agent(args=["--tools", "core,pty"]) as agent:
        begun = await agent.call("exec", script='stty 2>/dev/null; echo "$TOKEN"; cat', secrets=["TOKEN"], input="open", wait_ms=0)
        pid = begun.value("id")
        await agent.must("process_control", action="write", ids=[pid], text=VALUE, enter=True)
        await agent.must("process_control", action="close_input", ids=[pid])
        ended = await agent.must("process", action="wait", ids=[pid], wait_ms=10_000)
    encoded = base64.b64encode(VALUE.encode()).decode()
    assert encoded not in ended.text
    nowhere(place, ended.text)
