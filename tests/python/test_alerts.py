"""Alerts: somebody is told once when a command uses much, in events, in the metrics and by a signed webhook."""

import hashlib
import hmac
import json
import queue
import socket
import ssl
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from harness import until
from harness.installation import ProblemError

KEY = "0123456789abcdef0123456789abcdef"
#: Holds 48 MiB until it is told to give them back, and then waits for one more line.
HOLD = """
import mmap, sys
kept = mmap.mmap(-1, 48 << 20); kept.write(b"x" * (48 << 20))
print("up", flush=True); sys.stdin.readline()
kept.close(); print("down", flush=True); sys.stdin.readline()
"""


class Receiver:
    """An HTTP server that keeps what is posted to it and answers with the statuses given, then with 200."""

    def __init__(self, statuses=(), context=None):
        self.posts, statuses = queue.Queue(), list(statuses)

        class Handler(BaseHTTPRequestHandler):
            def do_POST(handler):
                body = handler.rfile.read(int(handler.headers["Content-Length"]))
                status = statuses.pop(0) if statuses else 200
                self.posts.put((status, handler.path, dict(handler.headers.items()), body))
                handler.send_response(status)
                handler.send_header("Content-Length", "0")
                handler.end_headers()

            def log_message(handler, *_args):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if context:
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    @property
    def port(self):
        return self.server.server_address[1]

    def next(self):
        return self.posts.get(timeout=30)

    def close(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture
def receivers():
    """Makes receivers, and ends them."""
    made = []
    yield lambda *args, **options: made.append(Receiver(*args, **options)) or made[-1]
    for receiver in made:
        receiver.close()


def configure(installation, url, key=KEY, mode=0o600, **settings):
    """Sets the webhook and other settings of alerts."""
    config = installation.dir / "config" / "ostler"
    config.mkdir(parents=True, exist_ok=True)
    lines = [f"{name} = {json.dumps(value)}" for name, value in {"webhook": url, **settings}.items() if value is not None]
    (config / "config.toml").write_text("[alerts]\n" + "\n".join(lines) + "\n")
    if key is not None:
        (config / "webhook.key").write_text(key + "\n")
        (config / "webhook.key").chmod(mode)


def start(installation, *argv, **fields):
    installation.cli("ps")
    body = {"command": {"argv": {"program": argv[0], "args": list(argv[1:])}}, "cwd": str(installation.work), "stdin": "open", **fields}
    return installation.rest("POST", "/api/v1/executions", body)["id"]


def alerts(installation, id):
    events = installation.rest("GET", f"/api/v1/events?cursor=0&id={id}")["events"]
    return [(it["alert"], it["state"]) for it in events if it["event"] == "alert"]


def watched(installation, id, wanted):
    """Watches a command, so that it is sampled each second, until these are its first alerts."""
    def are_told():
        installation.rest("GET", f"/api/v1/executions/{id}/resources/history?wait_ms=1000")
        return alerts(installation, id)[:len(wanted)] == wanted
    until(are_told, 30, f"{wanted}, there are {alerts(installation, id)}")


def say(installation, id, text=b"on\n"):
    installation.rest("POST", f"/api/v1/executions/{id}/input", text)


def is_signed(headers, body, key=KEY):
    parts = dict(part.split("=") for part in headers["ostler-signature"].split(","))
    assert abs(time.time() - int(parts["t"])) < 60, parts
    digest = hmac.new(key.encode(), f"{parts['t']}.".encode() + body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(digest, parts["v1"])


def metric(installation, outcome):
    text = installation.rest("GET", "/metrics", raw=True).decode()
    return float(next(line for line in text.splitlines() if line.startswith(f'ostler_webhook_alerts_total{{outcome="{outcome}"}}')).split()[1])


def test_a_crossing_is_told_once_signed_and_again_until_it_is_taken(installation, receivers):
    receiver = receivers([503, 429])
    configure(installation, f"http://127.0.0.1:{receiver.port}/hooks/ostler?team=a")
    id = start(installation, "python3", "-c", HOLD, alerts={"memory_bytes": 40 << 20})
    watched(installation, id, [("memory", "raised")])
    attempts = [receiver.next() for _ in range(3)]
    assert [status for status, *_ in attempts] == [503, 429, 200]
    assert len({(headers["ostler-delivery"], body) for _, _, headers, body in attempts}) == 1
    assert all(path == "/hooks/ostler?team=a" and is_signed(headers, body) for _, path, headers, body in attempts)
    assert not is_signed(attempts[0][2], attempts[0][3] + b" ") and not is_signed(*attempts[0][2:], key="x" * 32)
    body = json.loads(attempts[0][3])
    uuid = installation.rest("GET", f"/api/v1/executions/{id}")["uuid"]
    assert (body["type"], body["state"], body["resource"], body["task_id"]) == ("resource_limit_exceeded", "raised", "memory", uuid)
    assert body["current"] >= body["limit"] == 40 << 20 and body["execution"] == id and "python3" in body["command"]
    say(installation, id)
    watched(installation, id, [("memory", "raised"), ("memory", "resolved")])
    _, _, headers, body = receiver.next()
    assert json.loads(body)["state"] == "resolved" and is_signed(headers, body)
    until(lambda: metric(installation, "delivered") == 2, 10, "both in the metrics")
    shown = installation.cli("events", "--no-follow", id).stdout.decode()
    assert "memory raised: " in shown and "threshold 40 MiB" in shown and "memory resolved: " in shown
    say(installation, id)
    assert receiver.posts.empty()


def test_a_receiver_that_hangs_or_says_no_holds_nobody_up(make_installation, receivers):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        installation = make_installation()
        configure(installation, f"http://127.0.0.1:{silent.getsockname()[1]}/", run_seconds=1)
        id = start(installation, "cat")
        watched(installation, id, [("run_time", "raised")])
        assert installation.cli("run", "--", "echo", "works").stdout == b"works\n"
        installation.cli("kill", id)
        begun = time.monotonic()
        installation.cli("shutdown")
        assert time.monotonic() - begun < 10, "the daemon waits for no receiver"
    receiver = receivers([404])
    installation = make_installation()
    configure(installation, f"http://127.0.0.1:{receiver.port}/", run_seconds=1)
    watched(installation, start(installation, "cat"), [("run_time", "raised")])
    assert receiver.next()[0] == 404
    until(lambda: metric(installation, "failed") == 1, 10, "a final refusal")
    assert receiver.posts.empty()


def test_a_server_is_verified_by_the_certificates_that_are_set(make_installation, receivers, tmp_path):
    def certificate(name):
        key, cert = tmp_path / f"{name}.key", tmp_path / f"{name}.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert, "-days", "2",
                        "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-addext", "basicConstraints=critical,CA:FALSE"], check=True, capture_output=True)
        return key, cert

    key, cert = certificate("server")
    _, other = certificate("other")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    receiver = receivers(context=context)
    for file, is_accepted in ((cert, True), (other, False)):
        installation = make_installation()
        configure(installation, f"https://127.0.0.1:{receiver.port}/", run_seconds=1, webhook_ca_file=str(file))
        watched(installation, start(installation, "cat"), [("run_time", "raised")])
        if is_accepted:
            _, _, headers, body = receiver.next()
            assert is_signed(headers, body)
        else:
            assert metric(installation, "delivered") == 0 and receiver.posts.empty()


def test_limits_are_told_of_before_they_hold(installation):
    installation.cli("ps")
    # A small share, which it gets on a busy machine, too.
    context = installation.rest("POST", "/api/v1/contexts", {"project": "busy", "limits": {"cpu_millis": 100}})
    id = start(installation, "sh", "-c", "while :; do :; done", context=context["id"], cwd=context["directory"])
    watched(installation, id, [("cpu", "raised")])
    quiet = start(installation, "cat", context=context["id"], cwd=context["directory"], alerts={"idle_ms": 1500})
    watched(installation, quiet, [("idle", "raised")])
    say(installation, quiet, b"hello\n")
    watched(installation, quiet, [("idle", "raised"), ("idle", "resolved")])
    installation.cli("stop", id, quiet, check=False)


@pytest.mark.parametrize("url, key, mode, named", [
    ("ftp://example.org/", KEY, 0o600, "alerts.webhook"), ("http://ann:word@example.org/", KEY, 0o600, "alerts.webhook"),
    ("http://example.org/", None, 0o600, "webhook.key"), ("http://example.org/", KEY, 0o644, "can be read by others"),
    ("http://example.org/", "short", 0o600, "at least 16 bytes"),
])
def test_a_webhook_that_cannot_be_used_stops_the_start(installation, url, key, mode, named):
    configure(installation, url, key, mode)
    refused = installation.cli("ps", check=False)
    assert refused.returncode == 78 and named in refused.stderr.decode(), refused
    assert KEY not in refused.stderr.decode() and "word" not in refused.stderr.decode().replace("password", "")
    (installation.dir / "config" / "ostler" / "config.toml").unlink()


@pytest.mark.parametrize("given, named", [("cpu", "cpu=PERCENT"), ("cpu=0", "percentage"), ("memory=much", "400M"), ("run=0", "10m"), ("heat=9", "idle=TIME")])
def test_bad_thresholds_are_told(installation, given, named):
    refused = installation.cli("run", "--alert", given, "--", "true", check=False)
    assert refused.returncode == 64 and named in refused.stderr.decode(), refused


def test_thresholds_are_set_at_the_command_line_and_unknown_ones_refused(installation):
    installation.cli("run", "-d", "--alert", "run=1s", "--alert", "memory=1G", "--", "sleep", "600")
    id = installation.json("ps")[0]["id"]
    watched(installation, id, [("run_time", "raised")])
    with pytest.raises(ProblemError) as refused:
        start(installation, "true", alerts={"heat": 9})
    assert refused.value.status == 422 and "heat" in str(refused.value.problem)


def test_a_crossing_is_told_once_although_the_daemon_is_killed_right_after_it(installation, receivers):
    receiver = receivers()
    configure(installation, f"http://127.0.0.1:{receiver.port}/")
    id = start(installation, "python3", "-c", HOLD, alerts={"memory_bytes": 40 << 20})
    watched(installation, id, [("memory", "raised")])
    receiver.next()
    for _ in range(2):
        installation.kill_daemon()
        installation.cli("ps")
        before = installation.rest("GET", f"/api/v1/executions/{id}/resources/history?resolution_s=1&wait_ms=20000")["points"]

        def seen_again():
            points = installation.rest("GET", f"/api/v1/executions/{id}/resources/history?resolution_s=1&wait_ms=1000")["points"]
            return points[-1]["at"] > before[-1]["at"] and points[-1]["memory_bytes"] >= 40 << 20

        until(seen_again, 20, "samples above the threshold")
        assert alerts(installation, id) == [("memory", "raised")], "it is known to be raised"
    say(installation, id)
    watched(installation, id, [("memory", "raised"), ("memory", "resolved")])
    assert [json.loads(body)["state"] for *_, body in [receiver.next()]] == ["resolved"], "nobody is told of it twice"
    say(installation, id)


def test_an_alert_is_known_from_the_ledger_alone(installation):
    """As after a kill between the entry and the file."""
    id = start(installation, "python3", "-c", HOLD, alerts={"memory_bytes": 40 << 20})
    watched(installation, id, [("memory", "raised")])
    told = alerts(installation, id)
    installation.kill_daemon()
    (installation.state / "alerts.json").unlink()
    installation.cli("ps")
    points = installation.rest("GET", f"/api/v1/executions/{id}/resources/history?resolution_s=1&wait_ms=20000")["points"]
    until(lambda: installation.rest("GET", f"/api/v1/executions/{id}/resources/history?resolution_s=1&wait_ms=1000")["points"][-1]["at"] > points[-1]["at"],
          20, "a sample")
    assert alerts(installation, id) == told
    installation.cli("stop", id)
