"""Recorded input: what a command is given is stream `stdin` of its journal, where the start asked for that."""

import json

import pytest

from harness import until
from harness.installation import ProblemError

VALUE = "s3cr3t-v4lu3-0f-th3-t3st-9217"
ENV = {"OSTLER_SECRET_TOKEN": VALUE}


def start(installation, script, **options):
    installation.cli("ps")
    body = {"command": {"shell": {"shell": "/bin/sh", "script": script}}, "cwd": str(installation.work), **options}
    return installation.rest("POST", "/api/v1/executions", body)["id"]


def write(installation, id, data, close=False):
    installation.rest("POST", f"/api/v1/executions/{id}/input{'?close=true' if close else ''}", data)


def type_text(installation, id, text):
    pieces = [{"text": text}, {"key": "enter"}]
    installation.rest("POST", f"/api/v1/executions/{id}/keys", {"pieces": pieces})


def raw(installation, id, query=""):
    frames = installation.rest("GET", f"/api/v1/executions/{id}/raw{query}", raw=True).splitlines()
    return "".join(json.loads(frame).get("data", "") for frame in frames).encode()


def recorded(installation, id):
    return raw(installation, id, "?stream=stdin")


def shows(installation, id, text):
    until(lambda: text in raw(installation, id), 20, f"{text!r} in the output")


def ended(installation, id):
    return installation.rest("POST", f"/api/v1/executions/{id}/wait", {"until": "exit", "at_most_ms": 20_000})


def test_input_is_read_back_as_a_stream_of_its_own(each_installation):
    installation = each_installation
    id = start(installation, "cat >/dev/null; echo done", stdin="open", record_input=True)
    write(installation, id, b"first\n")
    write(installation, id, b"two\n", close=True)
    ended(installation, id)
    assert recorded(installation, id) == b"first\ntwo\n"
    assert raw(installation, id) == b"done\n", "by default, only output is read"
    lines = installation.rest("GET", f"/api/v1/executions/{id}/output?stream=stdin")["lines"]
    assert [(line["stream"], line["text"]) for line in lines] == [("stdin", "first"), ("stdin", "two")]
    assert "first" not in installation.cli("logs", id).stdout.decode()
    assert installation.cli("logs", id, "--no-time", "--stream", "stdin").stdout.split() == [b"first", b"two"]


def test_input_given_with_the_start_is_recorded(installation):
    id = start(installation, "cat >/dev/null", stdin={"given": "with the start\n"}, record_input=True)
    ended(installation, id)
    assert recorded(installation, id) == b"with the start\n"


def test_nothing_is_recorded_unless_requested(installation):
    id = start(installation, "cat >/dev/null", stdin="open")
    write(installation, id, b"not-for-the-disk\n", close=True)
    ended(installation, id)
    assert recorded(installation, id) == b""
    found = [path for path in installation.state.rglob("*") if path.is_file() and b"not-for-the-disk" in path.read_bytes()]
    assert found == []


def test_what_is_typed_without_echo_is_not_recorded(each_installation):
    installation = each_installation
    script = "stty -echo; echo hidden; read a; stty echo; echo shown; read b; echo $b.$a | tr a-z A-Z"
    id = start(installation, script, pty={"cols": 80, "rows": 24}, record_input=True)
    shows(installation, id, b"hidden")
    type_text(installation, id, "passphrase")
    shows(installation, id, b"shown")
    type_text(installation, id, "plain")
    ended(installation, id)
    assert b"PLAIN.PASSPHRASE" in raw(installation, id), "the command was given both"
    assert recorded(installation, id) == b"plain\r"


@pytest.mark.parametrize("pieces", ["whole", "byte by byte"])
def test_secrets_are_redacted(make_installation, pieces):
    installation = make_installation(None)
    plain = installation.env
    installation.env = lambda **more: plain(**{**ENV, **more})
    base_env = [[name, value] for name, value in ENV.items()]
    id = start(installation, "cat >/dev/null", stdin="open", record_input=True, secrets=["TOKEN"], base_env=base_env)
    data = f"login {VALUE} now\n".encode()
    for at in range(len(data)) if pieces == "byte by byte" else [slice(0, None)]:
        write(installation, id, data[at:at + 1] if isinstance(at, int) else data[at])
    write(installation, id, f"unfinished {VALUE[:-1]}".encode(), close=True)
    ended(installation, id)
    assert recorded(installation, id) == b"login [redacted] now\nunfinished [redacted]"


def test_the_record_outlives_the_daemon(installation):
    id = start(installation, "while read x; do echo got $x; done", stdin="open", record_input=True)
    write(installation, id, b"before\n")
    shows(installation, id, b"got before")
    installation.kill_daemon()
    installation.cli("ps")
    assert recorded(installation, id) == b"before\n"
    write(installation, id, b"after\n", close=True)
    ended(installation, id)
    assert recorded(installation, id) == b"before\nafter\n"


def test_the_command_line_and_definitions_take_the_option(installation):
    done = installation.cli("run", "--record-input", "sh", "-c", "cat >/dev/null", stdin=None, input=b"from a pipe\n")
    assert done.stdout == b""
    run = installation.json("ps", "--all")[0]["id"]
    assert recorded(installation, run) == b"from a pipe\n"
    (installation.work / "ostler.toml").write_text('[services.sink]\ncommand = "cat >/dev/null"\nrecord_input = true\n')
    installation.cli("service", "up", "sink")
    execution = installation.rest("GET", f"/api/v1/services/sink?cwd={installation.work}")["execution"]["id"]
    write(installation, execution, b"to a service\n")
    until(lambda: recorded(installation, execution) == b"to a service\n", 10, "the record")


def test_a_restart_asks_for_the_same(installation):
    id = start(installation, "cat >/dev/null", stdin="open", record_input=True)
    write(installation, id, b"", close=True)
    ended(installation, id)
    again = installation.rest("POST", f"/api/v1/executions/{id}/again", {})["id"]
    uuid = installation.rest("GET", f"/api/v1/executions/{again}")["uuid"]
    directory = next(path for path in installation.executions() if path.name == uuid)
    stored = json.loads((directory / "spec.json").read_text())
    assert stored["spec"]["record_input"] is True
    assert stored["spec"]["request"]["options"]["record_input"] is True


@pytest.mark.parametrize("value", ["yes", 1, None])
def test_the_option_is_a_boolean(installation, value):
    with pytest.raises(ProblemError) as problem:
        start(installation, "true", record_input=value)
    assert "field 'record_input'" in problem.value.problem["message"]
