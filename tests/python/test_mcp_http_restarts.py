"""MCP over HTTP across the end of the daemon: every call is answered, by what it began itself, and what a session has
requested holds under the next daemon."""

import base64
import concurrent.futures
import json
import time
from urllib.parse import urlsplit

import pytest

from harness import HttpDaemon, serve_two_principals, until
from harness.mcp_http import LegacySseClient, McpHttpClient, text


class Served:
    """A daemon at one address, and the next one at the same."""

    WORDS = ("--no-token", "--legacy-sse")

    def __init__(self, installation):
        self.installation = installation
        self.daemon = HttpDaemon(installation, *self.WORDS)
        self.base, self.port = self.daemon.base, urlsplit(self.daemon.base).port

    def again(self):
        self.daemon.process.wait(timeout=20)
        self.daemon = HttpDaemon(self.installation, *self.WORDS, port=self.port)

    def kill(self):
        self.daemon.process.kill()
        self.again()

    def shut_down(self):
        self.installation.cli("shutdown")
        self.again()

    def client(self, **options):
        return McpHttpClient(self.base, **options)

    def wait_for(self, file):
        """A script that says its name and waits for a file of it."""
        path = self.installation.work / file
        return f"echo this-is-{file}; until [ -e {path} ]; do sleep 0.05; done; echo {file}-done"

    def running(self, file):
        """The process that runs such a script, once it has printed."""
        def found():
            shown = [it for it in self.installation.json("ps", "-a") if f"this-is-{file}" in it["command"]]
            return shown[0] if shown and shown[0]["output_bytes"] else None

        return until(found, 20, f"the output of {file}")


@pytest.fixture
def served(installation):
    served = Served(installation)
    yield served
    served.daemon.end()


def begun(served, client, file, **options):
    """A call in flight: its id, its stream, and its process."""
    request, stream = client.begin("exec", script=served.wait_for(file), cwd=str(served.installation.work), **options)
    return request, stream, served.running(file)["id"]


def test_a_stream_of_an_earlier_daemon_is_no_other_calls(served):
    client = served.client()
    first, lost, process = begun(served, client, "first")
    served.kill()
    lost.end()
    second, stream, _ = begun(served, client, "second")
    resumed = client.listen(lost.ids[-1])
    answer = resumed.answer(first)
    assert answer["result"]["isError"] and "restarted" in text(answer), answer
    assert f"process {process} goes on" in text(answer) and "look with process" in text(answer), answer
    resumed.end()
    (served.installation.work / "second").touch()
    answer = stream.answer(second)
    assert "second-done" in text(answer) and "first" not in text(answer), answer
    (served.installation.work / "first").touch()
    assert "first-done" in client.call("process", action="wait", ids=[process])
    assert [it["id"] for it in resumed.messages] == [first]


@pytest.mark.parametrize("end", ["kill", "shut_down"])
def test_a_call_that_a_restart_cuts_off_is_answered_when_its_stream_is_resumed(served, end):
    client = served.client()
    request, stream, process = begun(served, client, "one")
    last = stream.ids[-1]
    getattr(served, end)()
    stream.end()
    (served.installation.work / "one").touch()
    served.installation.cli("wait", process)
    for _ in range(2):
        answer = client.listen(last).answer(request)
        assert f"process {process} has ended" in text(answer), answer


def test_what_changes_nothing_may_be_called_again(served):
    client = served.client()
    process = client.call("exec", script=served.wait_for("one"), wait_ms=0).split()[0].strip("[")
    request, stream = client.begin("process", action="wait", ids=[process], wait_ms=40_000)
    until(lambda: stream.ids, 20, "the first event")
    served.kill()
    answer = client.listen(stream.ids[-1]).answer(request)
    assert "nothing was started or changed" in text(answer), answer
    listed, stream = client.open("tools/list", {})
    stream.answer(listed)
    served.kill()
    answer = client.listen(stream.ids[0]).answer(listed)
    assert "send it again" in answer["error"]["message"], answer


def test_what_took_effect_is_not_told_as_nothing(served):
    """A command that ran may have been removed, and a definition leaves no process."""
    client, cwd = served.client(), str(served.installation.work)
    ran, first = client.begin("exec", command=["touch", "mark"], cwd=cwd)
    process = text(first.answer(ran)).split("]")[0].strip("[").split()[0]
    client.call("process_control", action="clean", ids=[process])
    defined, second = client.begin("service", action="define", name="web", command="sleep 50", cwd=cwd)
    assert "web" in text(second.answer(defined))
    served.kill()
    for request, stream, tool in ((ran, first, "process"), (defined, second, "service")):
        answer = text(client.listen(stream.ids[0]).answer(request))
        assert "whether it took effect is not known" in answer and f"look with {tool}" in answer, answer
        assert "before you call again" in answer, answer


def test_a_stream_that_is_resumed_too_late_is_answered(served):
    client = served.client()
    request, stream, process = begun(served, client, "one", wait_ms=45_000)
    stream.leave()
    until(lambda: served.installation.json("info", process)["status"] == "terminated", 30, "the end of the window")
    answer = client.listen(stream.ids[-1]).answer(request)
    assert "not resumed in time" in text(answer) and f"process {process} has ended" in text(answer), answer


def test_an_answer_that_nobody_reads_discloses_no_id(served):
    """What nobody was told of ends; what its client resumes or names goes on."""
    client = served.client()
    gone, resumed, named = (begun(served, client, file, wait_ms=1_500) for file in ("gone", "resumed", "named"))
    for _, stream, _ in (gone, resumed, named):
        stream.leave()
    lost = time.monotonic()
    until(lambda: time.monotonic() - lost > 2, 10, "the answers")
    request, stream, process = resumed
    answer = client.listen(stream.ids[-1]).answer(request)
    assert process in text(answer) and not answer["result"].get("isError"), answer
    assert "running" in client.call("process", action="detail", ids=[named[2]])
    until(lambda: served.installation.json("info", gone[2])["status"] == "terminated", 30, "its end")
    assert time.monotonic() - lost > 5, "it may be resumed for a while"
    assert [served.installation.json("info", it[2])["status"] for it in (resumed, named)] == ["running"] * 2


def test_an_answer_that_nobody_has_read_at_a_shutdown_ends_nothing(served):
    client = served.client()
    request, stream, process = begun(served, client, "one", wait_ms=500)
    stream.leave()
    lost = time.monotonic()
    until(lambda: time.monotonic() - lost > 1, 10, "the answer")
    served.shut_down()
    assert served.installation.json("info", process)["status"] == "running"
    assert f"process {process} goes on" in text(client.listen(stream.ids[-1]).answer(request))


def test_who_has_the_answer_gets_no_other(served):
    client = served.client()
    request, stream = client.begin("exec", command=["echo", "x"])
    stream.answer(request)
    stream.end()
    served.kill()
    resumed = client.listen(stream.ids[-1])
    client.post("ping")
    assert not [it for it in resumed.messages if "id" in it], resumed.messages


@pytest.mark.parametrize("handshake", [True, False])
@pytest.mark.parametrize("progress", [None, 5])
def test_a_shutdown_answers_calls_and_ends_nothing(served, handshake, progress):
    client = served.client(handshake=handshake)
    work = str(served.installation.work)
    params = {"name": "exec", "arguments": {"script": served.wait_for("one"), "cwd": work}}
    if progress is not None:
        params["_meta"] = {"progressToken": progress}
    with concurrent.futures.ThreadPoolExecutor() as threads:
        call = threads.submit(client.post, "tools/call", params)
        process = served.running("one")
        served.shut_down()
        status, answer = call.result(20)
    assert status == 200 and answer["result"]["isError"], answer
    assert "shut down" in text(answer) and f"process {process['id']} goes on" in text(answer), answer
    assert served.installation.json("info", process["id"])["status"] == "running"
    (served.installation.work / "one").touch()
    assert served.installation.cli("wait", process["id"]).returncode == 0


def test_a_shutdown_answers_calls_of_the_old_transport_too(served):
    client = LegacySseClient(served.base)
    arguments = {"script": served.wait_for("one"), "cwd": str(served.installation.work)}
    request = client.send("tools/call", {"name": "exec", "arguments": arguments})
    process = served.running("one")
    served.shut_down()
    answer = client.stream.answer(request)
    assert "shut down" in text(answer) and f"process {process['id']} goes on" in text(answer), answer
    client.stream.end()
    assert served.installation.json("info", process["id"])["status"] == "running"


def test_a_shutdown_waits_for_no_client_that_does_not_read(served):
    client = served.client()
    stream = client.listen()
    begun(served, client, "one")
    served.shut_down()
    stream.end()


@pytest.mark.parametrize("end", ["kill", "shut_down"])
def test_notifications_of_the_next_daemon_are_delivered(served, end):
    client = served.client()
    stream = client.listen()
    for _ in range(4):
        client.call("exec", script=served.wait_for("early"), wait_ms=0)
    (served.installation.work / "early").touch()
    until(lambda: len(stream.told("notifications/message")) >= 4, 20, "the notifications")
    process = client.call("exec", script=served.wait_for("one") + "; exit 9", wait_ms=0).split()[0].strip("[")
    getattr(served, end)()
    assert client.post("ping")[0] == 200
    (served.installation.work / "one").touch()
    served.installation.cli("wait", process, check=False)
    resumed = client.listen(stream.ids[-1])
    until(lambda: any("exit 9" in str(it) or "exited 9" in str(it) for it in resumed.told("notifications/message")), 20, "the exit")


@pytest.mark.parametrize("end", ["kill", "shut_down"])
def test_subscriptions_and_the_level_outlive_the_daemon(served, end):
    client = served.client()
    process = client.call("exec", script=served.wait_for("one"), wait_ms=0).split()[0].strip("[")
    other = client.call("exec", script=served.wait_for("two"), wait_ms=0).split()[0].strip("[")
    for method, params in (
        ("logging/setLevel", {"level": "error"}), ("resources/subscribe", {"uri": f"proc://{process}"}),
        ("resources/subscribe", {"uri": f"proc://{other}"}), ("resources/unsubscribe", {"uri": f"proc://{other}"}),
    ):
        status, answer = client.post(method, params)
        assert status == 200 and "result" in answer, answer
    for _ in range(2):
        getattr(served, end)()
        stream = client.listen()
        # It may have changed meanwhile.
        until(lambda: stream.told("notifications/resources/updated"), 20, "the update")
    before = len(stream.told("notifications/resources/updated"))
    for file in ("one", "two"):
        (served.installation.work / file).touch()
    until(lambda: len(stream.told("notifications/resources/updated")) > before, 20, "the end of the process")
    assert {it["uri"] for it in stream.told("notifications/resources/updated")} == {f"proc://{process}"}
    assert not stream.told("notifications/message"), "below the level"


def test_the_end_of_a_session_that_a_kill_interrupts_is_completed(served):
    client = served.client()
    stubborn = f"trap '' TERM; {served.wait_for('one')}"
    processes = [client.call("exec", script=stubborn, wait_ms=0).split()[0].strip("[") for _ in range(3)]
    served.running("one")
    until(lambda: client.session in (served.installation.state / "http-sessions.json").read_text(), 20, "the session")
    with concurrent.futures.ThreadPoolExecutor() as threads:
        threads.submit(client.delete)
        until(lambda: '"ending"' in (served.installation.state / "http-sessions.json").read_text(), 20, "its end")
        served.kill()
    until(lambda: not served.installation.json("ps", "-a"), 30, "the end of its processes")
    assert processes
    until(lambda: '"ending"' not in (served.installation.state / "http-sessions.json").read_text(), 20, "the record")


def test_lists_have_the_output_of_now(served):
    client = served.client()
    process = client.call("exec", script="echo hello; " + served.wait_for("one"), wait_ms=0).split()[0].strip("[")
    info = until(lambda: (it := served.installation.json("info", process))["output_bytes"] and it, 20, "the output")
    listed, = (it for it in served.installation.json("ps") if it["id"] == process)
    assert (listed["output_bytes"], listed["cursor"]) == (info["output_bytes"], info["cursor"])
    listed, = served.installation.rest("GET", "/api/v1/executions?status=running")["executions"]
    assert listed["output_bytes"] == info["output_bytes"]


def test_many_requests_at_once_restore_a_session(served):
    clients = [served.client() for _ in range(4)]
    for client in clients:
        client.call("exec", command=["true"])
    for _ in range(3):
        served.kill()
        with concurrent.futures.ThreadPoolExecutor(48) as threads:
            answers = [threads.submit(client.post, "ping") for _ in range(12) for client in clients]
            assert {it.result()[0] for it in answers} == {200}


def made_up(request, process):
    """An event id of another daemon, with a request that started this process."""
    call = {"is_repeatable": False, "status_tool": None, "started": [process]}
    text = base64.urlsafe_b64encode(json.dumps({"id": request, "call": call}).encode()).decode().rstrip("=")
    return f"0/0@{'0' * 32}@{text}"


def test_a_made_up_event_id_says_nothing_of_others(make_installation):
    with serve_two_principals(make_installation()) as daemon:
        ann, bob = (McpHttpClient(daemon.base, token=daemon.tokens[name]) for name in ("ann", "bob"))
        process = ann.call("exec", command=["sleep", "300"], wait_ms=0).split()[0].strip("[")
        whole, = (path.name for path in daemon.installation.executions() if (path / "spec.json").stat().st_size)
        own, foreign = (text(it.listen(made_up(7, whole)).answer(7)) for it in (ann, bob))
        assert f"process {process} goes on" in own, own
        assert process not in foreign and "not known" in foreign, foreign
        bob.call("process", action="detail", ids=[process])
        for last in ("0/0", "x", "@@@", "5@", f"0/0@{'0' * 32}@!", f"0/0@{'0' * 32}@e30", "9" * 40):
            stream = bob.listen(last)
            assert bob.post("ping")[0] == 200, last
            stream.leave()
