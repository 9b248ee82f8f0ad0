"""Conditions of readiness with real programs: a TCP port, a command's exit status, nothing to look at; a table of detection
that the user extended."""

import pytest

from harness.service_client import PYTHON, SERVER, ServiceClient, server_command
from harness.services import free_port

pytestmark = pytest.mark.anyio
INTERFACES = ["cli", "mcp"]


@pytest.mark.parametrize("interface", INTERFACES)
async def test_a_port_can_be_the_condition(installation, interface):
    port, other = free_port(), free_port()
    async with ServiceClient.open(interface, installation) as client:
        own = await client.start(server_command("plain", port), ready_when=f"tcp:{port}", wait_ms=20_000)
        assert own.ready and f":{port} takes connections" in client.service(own.name)["execution"]["service"]["evidence"], own
        # One that listens nowhere itself, as what runs in a container, is ready with somebody's port, and that is said.
        waits = await client.start(["sleep", "300"], ready_when=f"tcp:{other}", wait_ms=1_000)
        assert not waits.ready and client.status(waits.name) == "starting", waits
        await client.start(server_command("plain", other))
        state = client.settled(waits.name, "ready")["execution"]["service"]
        assert str(other) in state["evidence"] and "no process of this service" in str(state["warnings"]), state


@pytest.mark.parametrize("interface", INTERFACES)
async def test_the_exit_status_of_a_command_can_be_the_condition(installation, interface):
    flag = installation.work / "made"
    async with ServiceClient.open(interface, installation) as client:
        waits = await client.start(["sleep", "300"], ready_when=f"exec:test -e {flag}", wait_ms=1_000)
        assert not waits.ready and client.status(waits.name) == "starting", waits
        why = client.why(waits.name)
        assert "exit" in why and "test -e" in why, why
        flag.touch()
        now = client.settled(waits.name, "ready")
        assert "exited with 0" in now["execution"]["service"]["evidence"], now


@pytest.mark.parametrize("interface", INTERFACES)
async def test_one_with_nothing_to_look_at_is_running_after_two_seconds(installation, interface):
    async with ServiceClient.open(interface, installation) as client:
        one = await client.start(["sleep", "300"], wait_ms=20_000)
        assert one.status == "running", one
        state = client.service(one.name)["execution"]["service"]
        assert "alive for 2 s" in state["evidence"], state


async def test_a_server_of_an_added_entry_is_detected_and_ready(installation):
    config = installation.dir / "config" / "ostler"
    config.mkdir(parents=True, exist_ok=True)
    table = config / "services.toml"
    table.write_text(
        "[[entry]]\nid = 'garden'\ntitle = 'Garden'\nlanguage = 'python'\nkind = 'server'\nargv = ['garden serve']\n"
        "port = ['--port']\n")
    (config / "config.toml").write_text(f"[services]\ntable = '{table}'\n")
    garden = installation.work / "garden"
    garden.write_text(f"#!/bin/sh\nexec {PYTHON} {SERVER} plain $3\n")
    garden.chmod(0o755)
    installation.give(installation.work)
    port = free_port()
    async with installation.agent(args=["--tools", "core"]) as agent:
        reply = await agent.must("exec", script=f"./garden serve --port {port}")
        assert "Service started with ID" in reply.text and f"URL: http://127.0.0.1:{port}" in reply.text, reply
    found = ServiceClient(installation).list()["garden"]
    assert found["execution"]["service"]["detected"] == "garden", found
