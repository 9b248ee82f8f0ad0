"""Misleading servers found in the field: each a small real program, started over both interfaces."""

import contextlib
import datetime
import json
import os
import socket
import time

import pytest

from harness import members, until
from harness.service_client import PYTHON, SERVER, ServiceClient, answer, listens, unique_name, server_command
from harness.services import free_port

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["mcp", "cli"])
def interface(request):
    return request.param


@pytest.fixture
def port():
    return free_port()


@contextlib.asynccontextmanager
async def started_server(interface, shared_installation, habit, *args, **options):
    """A server with a habit, and what its start answered; ended afterwards."""
    async with ServiceClient.open(interface, shared_installation) as manager:
        name = unique_name(habit)
        one = await manager.start(server_command(habit, *args), name=name, **options)
        try:
            yield manager, one
        finally:
            if one.service and manager.service(name)["living"]:
                manager.stop(name, force=True)


def well(one, port, url=None):
    """Ready, reached at the reported URL, and the first request succeeds."""
    assert one.ready, one.text
    assert one.status == "ready", one
    expected = f"Service started with ID: {one.id}. Status: ready. The service is running in the background."
    assert one.text.splitlines()[0] == expected, one.text
    assert one.state["evidence"] and one.state["signs"], one
    if port is not None:
        assert port in one.ports, one
        assert f":{port}" in one.url, one
    if url is not None:
        assert one.url.rstrip("/") == url, one
    assert answer(one.url)[0] == 200


def ill(one, *words):
    """Not ready, in the documented words, with the last observation."""
    assert not one.ready, one.text
    assert one.text.startswith("Service failed to become ready: "), one.text
    for word in words:
        assert word in one.text, one.text


async def test_address_already_in_use_is_never_ready(interface, shared_installation, port):
    with socket.create_server(("127.0.0.1", port)):
        begin = time.monotonic()
        async with started_server(interface, shared_installation, "in-use", port) as (manager, one):
            ill(one, "address already in use")
            assert time.monotonic() - begin < 15, "it waited although it was told"
            # The watcher runs: it does not count as ready or running.
            assert manager.status(one.name) not in ("ready", "running"), manager.service(one.name)


async def test_a_server_whose_port_is_taken_ends_the_wait_and_its_holder_is_named(interface, shared_installation, port):
    with socket.create_server(("127.0.0.1", port)):
        async with started_server(interface, shared_installation, "in-use-exits", port) as (manager, one):
            ill(one)
            assert manager.status(one.name) == "failed"
            why = manager.why(one.name)
            assert f"{port}" in why and f"{os.getpid()}" in why, why


async def test_a_ready_line_two_seconds_before_the_port(interface, shared_installation, port):
    begin = time.monotonic()
    async with started_server(interface, shared_installation, "line-before-port", port) as (_, one):
        well(one, port)
        assert time.monotonic() - begin > 2


async def test_a_ready_line_and_then_an_exit(interface, shared_installation, port):
    async with started_server(interface, shared_installation, "line-then-exit", port) as (manager, one):
        ill(one, "exit code 1")
        assert manager.status(one.name) == "failed"


async def test_a_port_that_opens_before_the_process_dies(interface, shared_installation, port):
    async with started_server(interface, shared_installation, "port-then-exit", port) as (manager, one):
        ill(one)
        assert "exit code 3" in one.text or "Worker failed to boot" in one.text, one.text
        manager.settled(one.name, "failed")


async def test_a_watcher_survives_without_a_port(interface, shared_installation, port):
    begin = time.monotonic()
    options = {"ready_when": "responding", "wait_ms": 40_000}
    async with started_server(interface, shared_installation, "watcher-survives", port, **options) as (manager, one):
        ill(one)
        assert time.monotonic() - begin < 20, "it waited although the application was dead"
        assert "app crashed" in one.text or "SyntaxError" in one.text, one.text
        assert manager.status(one.name) not in ("ready", "running")


async def test_standard_output_that_stays_in_a_buffer(interface, shared_installation, port):
    async with started_server(interface, shared_installation, "buffered", port) as (manager, one):
        well(one, port)
        assert shared_installation.cli("logs", one.id, "--raw").stdout == b""


async def test_a_server_that_daemonises(interface, shared_installation, port):
    async with started_server(interface, shared_installation, "daemonises", port) as (manager, one):
        well(one, port)
        assert members(one.uuid), "nobody is left"
        stopped = manager.stop(one.name)
        assert stopped["released"] == [port], stopped
        assert not members(one.uuid) and not listens(port)


@pytest.mark.parametrize("options", [{}, {"ready_when": "listening"}], ids=["auto", "listening"])
async def test_a_server_on_a_unix_socket_only(interface, shared_installation, tmp_path, options):
    path = tmp_path / "s"
    async with ServiceClient.open(interface, shared_installation) as manager:
        one = await manager.start([PYTHON, str(SERVER.with_name("unix_only.py")), str(path)], timeout=20, **options)
        try:
            assert one.ready, one.text
            assert one.status == "ready" and one.ports == []
            assert str(path) in one.text, one.text
        finally:
            manager.stop(one.name, force=True)


async def test_the_debuggers_port_opens_first(interface, shared_installation, port):
    debugger = next(number for number in range(9_229, 9_240) if not listens(number))
    async with started_server(interface, shared_installation, "debugger-first", port, debugger) as (_, one):
        well(one, port)
        until(lambda: f"{debugger}" in shared_installation.cli("service", "ps").stdout.decode(), 10, "the other port")


async def test_a_random_port(interface, shared_installation):
    async with started_server(interface, shared_installation, "random-port", 0) as (_, one):
        assert len(one.ports) == 1, one
        well(one, one.ports[0])


async def test_ipv6_only(interface, shared_installation, port):
    async with started_server(interface, shared_installation, "ipv6-only", port) as (_, one):
        well(one, port, f"http://[::1]:{port}")


async def test_tls_only(interface, shared_installation, port, certificate):
    async with started_server(interface, shared_installation, "tls-only", port, certificate) as (_, one):
        well(one, port)
        assert one.url.startswith("https://"), one
        assert [it["tls"] for it in one.state["ports"]] == [True], one


async def test_one_that_ends_when_its_input_does(interface, shared_installation, port):
    async with started_server(interface, shared_installation, "ends-with-input", port) as (manager, one):
        well(one, port)
        assert manager.status(one.name) == "ready"


async def test_one_that_needs_a_terminal(interface, make_installation, port):
    """Without one it reports so; a definition assigns one."""
    installation = make_installation()
    async with started_server(interface, installation, "needs-terminal", port) as (_, one):
        ill(one, "the input device is not a TTY" if interface == "mcp" else "exit code 1")
    words = json.dumps(server_command("needs-terminal", port))
    (installation.work / "ostler.toml").write_text(f"[services.tty]\ncommand = {words}\nterminal = true\n")
    async with ServiceClient.open(interface, installation) as manager:
        if manager.agent:
            reply = await manager.agent.must("service", action="up", name="tty")
            assert reply.structured["event"] == "service_ready", reply
        else:
            assert (await manager.up("tty"))["tty"].ready
        assert manager.status("tty") == "ready" and listens(port)
        manager.stop("tty", force=True)


async def test_a_line_in_colour_and_in_pieces(interface, shared_installation, port):
    options = {"ready_when": "log", "ready_pattern": r"ready in \d+ ms on http"}
    async with started_server(interface, shared_installation, "coloured", port, **options) as (_, one):
        assert one.ready and one.status == "ready", one.text
        assert "ready in 42 ms" in one.text and "\x1b" not in one.text, one.text


async def test_503_is_not_yet(interface, shared_installation, port):
    begin = time.monotonic()
    async with started_server(interface, shared_installation, "says-503", port) as (_, one):
        well(one, port)
        assert time.monotonic() - begin > 2


async def test_a_listener_that_is_gone_again_is_none(interface, shared_installation, port):
    begin = time.monotonic()
    async with started_server(interface, shared_installation, "transient", port) as (_, one):
        well(one, port)
        assert time.monotonic() - begin > 1.4


async def test_a_port_silently_moved_is_reported(interface, shared_installation, port):
    with socket.create_server(("127.0.0.1", port)):
        async with started_server(interface, shared_installation, "moves", 0, env={"PORT": str(port)}) as (_, one):
            well(one, port + 1)
            warnings = "\n".join(one.state["warnings"])
            assert str(port) in warnings and str(port + 1) in warnings, one
            assert "Warning: " in one.text, one.text


async def test_a_slow_first_answer_is_waited_for(interface, shared_installation, port):
    begin = time.monotonic()
    async with started_server(interface, shared_installation, "slow-answer", port) as (_, one):
        well(one, port)
        assert 5 < time.monotonic() - begin < 20


async def test_a_word_over_the_notify_socket(interface, shared_installation, port):
    async with started_server(interface, shared_installation, "notifies", port, ready_when="notify") as (_, one):
        well(one, port)


@pytest.fixture(scope="session")
def certificate(tmp_path_factory):
    """A self-signed certificate, with its key."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "nobody.example")])
    now = datetime.datetime.now(datetime.UTC)
    signed = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(1).not_valid_before(now).not_valid_after(now + datetime.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    pem = tmp_path_factory.mktemp("tls") / "both.pem"
    pem.write_bytes(private + signed.public_bytes(serialization.Encoding.PEM))
    return pem
