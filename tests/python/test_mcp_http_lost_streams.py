"""Response streams of MCP over HTTP that a client loses, or that end with its token."""

import pytest

from harness import HttpDaemon
from harness.http_daemon import token
from harness.mcp_http import McpHttpClient, text


@pytest.fixture
def host(installation):
    config = installation.dir / "config" / "ostler"
    config.mkdir(parents=True, exist_ok=True)
    (config / "config.toml").write_text("[quotas]\nfinite_per_session = 1\n")
    installation.tokens = [token(installation, name, principal="ann") for name in ("first", "second")]
    daemon = HttpDaemon(installation)
    installation.base = daemon.base
    yield installation
    daemon.end()


def test_an_answer_is_sent_again_to_a_client_that_did_not_read_it(host):
    """Only the client knows whether it has read what went into its connection."""
    client = McpHttpClient(host.base, token=host.tokens[0])
    request, lost = client.begin("exec", command=["echo", "once"])
    answer = lost.answer(request)
    assert "once" in text(answer)
    lost.end()
    for _ in range(2):
        again = client.listen(lost.ids[0])
        assert again.answer(request) == answer
        again.end()
    read = client.listen(lost.ids[-1])
    read.leave()
    read.end()
    assert read.messages == []


def test_answers_of_others_do_not_displace_an_answer(host):
    ann = McpHttpClient(host.base, token=host.tokens[0])
    bob = McpHttpClient(host.base, token=token(host, "third", principal="bob"))
    request, lost = ann.begin("exec", command=["echo", "mine"])
    answer = lost.answer(request)
    own, first = bob.begin("exec", command=["echo", "his"])
    first.answer(own)
    for _ in range(130):
        bob.call("process", action="list")
    assert ann.listen(lost.ids[0]).answer(request) == answer
    told = text(bob.listen(first.ids[0]).answer(own))
    assert "is not kept any more" in told and "has ended" in told, told


def test_a_call_that_waits_for_a_slot_ends_with_its_token(host):
    client = McpHttpClient(host.base, token=host.tokens[0])
    other = McpHttpClient(host.base, token=host.tokens[1])
    other.session = client.session
    running = client.call("exec", command=["sleep", "300"], wait_ms=0)
    name = running.split()[0].strip("[]")
    mark = host.work / "mark"
    _, waiting = client.begin("exec", command=["touch", str(mark)])
    host.cli("token", "revoke", "first")
    waiting.end()
    other.call("process_control", action="stop", ids=[name], force=True)
    # Starts of one session get their slots in turn.
    assert "later" in other.call("exec", command=["echo", "later"])
    assert not mark.exists()
