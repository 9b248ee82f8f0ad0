"""Network bytes of a command: counted where it has a network of its own, else absent, with the reason."""

import socket
import threading

import pytest

from harness import until
from harness.host_targets import own_address
from harness.protected_env import USERS

MB = 1 << 20
#: Receives and sends to a server, then waits.
TALK = """
import socket, sys, time
with socket.create_connection((sys.argv[1], int(sys.argv[2])), 10) as c:
    left = 3 << 20
    while left: left -= len(c.recv(1 << 16))
    c.sendall(bytes(1 << 20))
    c.recv(1)
print("done", flush=True)
sys.stdin.readline()
"""


class Peer:
    """Sends 3 MiB to whoever connects, and takes 1 MiB."""

    def __init__(self):
        self.address = own_address()
        self.listener = socket.create_server((self.address, 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            with connection:
                connection.sendall(bytes(3 * MB))
                left = MB
                while left and (data := connection.recv(1 << 16)):
                    left -= len(data)
                connection.sendall(b"x")


@pytest.fixture
def peer():
    made = Peer()
    yield made
    made.listener.close()


def start(host, peer, **fields):
    body = {"command": {"argv": {"program": "/usr/bin/python3", "args": ["-c", TALK, peer.address, str(peer.port)]}},
            "cwd": str(host.work), "stdin": "open", **fields}
    execution = host.rest("POST", "/api/v1/executions", body)["id"]
    host.rest("POST", f"/api/v1/executions/{execution}/wait", {"until": "pattern", "pattern": "done", "at_most_ms": 20_000})
    return execution


def resources(host, execution):
    """After a sample that was taken since the command had done its work."""
    before = host.rest("GET", f"/api/v1/executions/{execution}/resources/history?resolution_s=1&wait_ms=20000")["points"]
    last = before[-1]["at"]

    def sampled():
        points = host.rest("GET", f"/api/v1/executions/{execution}/resources/history?resolution_s=1")["points"]
        return points[-1]["at"] > last and points[-1]

    return until(sampled, 20, "a sample"), host.rest("GET", f"/api/v1/executions/{execution}/resources")


def stop(host, execution):
    host.rest("POST", f"/api/v1/executions/{execution}/input", b"\n")
    ended = host.rest("POST", f"/api/v1/executions/{execution}/wait", {"until": "exit", "at_most_ms": 10_000})
    assert ended["why"] == "exit"

    def finished():
        events = host.rest("GET", f"/api/v1/events?id={execution}&cursor=0")["events"]
        return next((it for it in events if it["event"] == "finished"), None)

    return until(finished, 10, "the end in the events")["totals"]


@pytest.mark.parametrize("user", USERS)
def test_an_allow_list_is_counted(protected_envs, peer, user):
    host = protected_envs.of(user)
    network = [f"{peer.address}:{peer.port}"]
    execution = start(host, peer, isolation="high", confine={"network": network})
    point, now = resources(host, execution)
    for seen in (point, now):
        assert 3 * MB <= seen["received_bytes"] < 4 * MB, seen
        assert MB <= seen["sent_bytes"] < 2 * MB, seen
    assert "network_unknown" not in now
    totals = stop(host, execution)
    assert totals["received_bytes"] >= 3 * MB and totals["sent_bytes"] >= MB, totals


@pytest.mark.parametrize("fields", [{}, {"isolation": "high", "confine": {"network": "full"}}])
def test_the_network_of_the_host_is_not_counted_and_the_reason_is_told(protected_envs, peer, fields):
    host = protected_envs.of(USERS[0])
    execution = start(host, peer, **fields)
    point, now = resources(host, execution)
    for seen in (point, now):
        assert not {"received_bytes", "sent_bytes"} & set(seen), seen
    assert "shares the network of the host" in now["network_unknown"], now
    assert not {"received_bytes", "sent_bytes"} & set(stop(host, execution))


@pytest.mark.parametrize("user", USERS)
def test_no_network_is_a_network_of_its_own(protected_envs, peer, user):
    host = protected_envs.of(user)
    body = {"command": {"argv": {"program": "/bin/cat", "args": []}}, "cwd": str(host.work), "stdin": "open",
            "isolation": "high", "confine": {"network": "none"}}
    execution = host.rest("POST", "/api/v1/executions", body)["id"]
    point, now = resources(host, execution)
    assert point["received_bytes"] == 0 and now["sent_bytes"] == 0 and "network_unknown" not in now
    host.rest("POST", f"/api/v1/executions/{execution}/stop", {"force": True})
