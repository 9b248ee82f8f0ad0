"""Secrets by name: the command has the value, and it cannot be read anywhere else."""

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
def installation_with_secrets(make_installation, unprivileged_user):
    """An installation whose stdio proxies hold secrets."""

    def make(user):
        installation = make_installation(unprivileged_user if user == "ordinary" else None)
        plain = installation.env
        installation.env = lambda **more: plain(**{**ENV, **more})
        return installation

    return make


def secret_options(_user, level, **changes):
    return IsolationOptions(level=level, secrets=("TOKEN",), **changes)


def nowhere(installation, *texts):
    """The value is in none of these texts, and in no file of Ostler's."""
    for text in texts:
        assert VALUE not in text, text
    found = []
    for base in (installation.state, installation.dir / "run", installation.dir / "config"):
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
@pytest.mark.parametrize(("user", "interface"), USERS_BY_INTERFACE)
@pytest.mark.parametrize("how", [pytest.param(how, marks=() if how in QUICK else pytest.mark.full) for how in PRINT])
def test_what_is_printed_is_redacted(installation_with_secrets, user, level, interface, how):
    installation = installation_with_secrets(user)
    result = INTERFACES[interface](installation, ["sh", "-c", PRINT[how]], secret_options(user, level))
    assert "done" in result.text, result.text
    nowhere(installation, result.text)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("user", USERS)
def test_the_command_has_the_value(installation_with_secrets, user, level):
    installation = installation_with_secrets(user)
    script = 'test ${#TOKEN} = ' + str(len(VALUE)) + ' && printf %s "$TOKEN" | sha256sum'
    import hashlib

    result = INTERFACES["cli"](installation, ["sh", "-c", script], secret_options(user, level))
    assert hashlib.sha256(VALUE.encode()).hexdigest() in result.text, result.text


@pytest.mark.parametrize("user", USERS)
def test_who_does_not_name_it_has_not_got_it(installation_with_secrets, user):
    installation = installation_with_secrets(user)
    for interface in INTERFACES:
        result = INTERFACES[interface](installation, ["sh", "-c", "env; echo done"], IsolationOptions(level="medium"))
        assert "done" in result.text
        nowhere(installation, result.text)
        assert "TOKEN" not in result.text


@pytest.mark.parametrize("user", USERS)
async def test_no_list_log_error_or_record_tells_it(installation_with_secrets, user):
    installation = installation_with_secrets(user)
    async with installation.agent(args=["--tools", "core,command,shell,interaction,pty"]) as agent:
        start = await agent.must("exec", script='echo "<$TOKEN>"; exec sleep 300', secrets=["TOKEN"], wait_ms=0,
                                 description=f"with {VALUE}", labels=[f"label-{VALUE}"])
        pid = start.value("id")
        installation.rest("POST", f"/api/v1/executions/{pid}/wait", {"until": "pattern", "pattern": "<", "at_most_ms": 5000})
        replies = [start]
        for action in ("output", "detail"):
            replies.append(await agent.must("process", action=action, ids=[pid]))
        replies += [await agent.call("command_ps_list"), await agent.call("command_ps_detail", pid=pid),
                 await agent.call("list_processes"), await agent.call("poll_process", process_id=pid)]
        # Not found, with the name in the message: the value as a program.
        replies.append(await agent.call("exec", command=[VALUE], secrets=["TOKEN"]))
        replies.append(await agent.call("exec", command=["cat", f"/no/{VALUE}"], secrets=["TOKEN"]))
        replies.append(await agent.call("exec", script=f"echo {VALUE}", cwd=f"/no/{VALUE}", secrets=["TOKEN"]))
        texts = [reply.text + json.dumps(reply.structured or {}) + json.dumps(reply.meta) for reply in replies]
        for path in ("", f"/{pid}", f"/{pid}/raw", f"/{pid}/output", f"/{pid}/export?format=jsonl"):
            texts.append(installation.rest("GET", f"/api/v1/executions{path}", raw=True).decode())
        for words in (("ps", "-a"), ("ps", "-a", "--json"), ("info", pid), ("logs", pid), ("events", "--no-follow", "--json"),
                      ("history", "--json"), ("history", "show", pid)):
            texts.append(installation.cli(*words).stdout.decode())
        await agent.must("process_control", action="stop", ids=[pid], force=True)
    nowhere(installation, *texts)


@pytest.mark.parametrize("interface", INTERFACES)
def test_an_unknown_secret_is_refused_by_name(protected_envs, interface):
    options = IsolationOptions(level="medium", secrets=("NOBODY_HAS_IT",))
    result = INTERFACES[interface](protected_envs.of(USERS[0]), ["echo", "ran"], options)
    assert "ran" not in result.text.split() and "NOBODY_HAS_IT" in result.text, result.text


@pytest.mark.parametrize("user", USERS)
def test_a_file_of_secrets_must_be_private(make_installation, unprivileged_user, user):
    installation = make_installation(unprivileged_user if user == "ordinary" else None)
    file = installation.dir / "config" / "ostler" / "secrets.toml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(f'TOKEN = "{VALUE}"\n')
    file.chmod(0o600)
    installation.give(file.parent)
    options = IsolationOptions(level="medium", secrets=("TOKEN",))
    result = INTERFACES["cli"](installation, ["sh", "-c", "echo ${#TOKEN} $TOKEN"], options)
    assert str(len(VALUE)) in result.text and VALUE not in result.text, result.text
    file.chmod(0o644)
    refused = INTERFACES["cli"](installation, ["sh", "-c", "echo r''an"], options)
    assert "ran" not in refused.text.split() and VALUE not in refused.text, refused.text
    assert "secrets.toml" in refused.text or "600" in refused.text or "mode" in refused.text, refused.text


@pytest.mark.parametrize("user", USERS)
async def test_a_terminal_shows_it_neither(installation_with_secrets, user):
    """Typed or printed, on the screen and in the raw output."""
    installation = installation_with_secrets(user)
    async with installation.agent(args=["--tools", "core,pty"]) as agent:
        start = await agent.call("exec", script='stty 2>/dev/null; echo "$TOKEN"; cat', secrets=["TOKEN"], input="open", wait_ms=0)
        pid = start.value("id")
        await agent.must("process_control", action="write", ids=[pid], text=VALUE, enter=True)
        await agent.must("process_control", action="close_input", ids=[pid])
        ended = await agent.must("process", action="wait", ids=[pid], wait_ms=10_000)
    encoded = base64.b64encode(VALUE.encode()).decode()
    assert encoded not in ended.text
    nowhere(installation, ended.text)
