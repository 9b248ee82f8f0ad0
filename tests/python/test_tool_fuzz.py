"""Tools of MCP against their input schemas: whatever a schema allows or forbids, no call ends in an internal error, every
refusal has a stable code, and what the schema forbids is refused.

Schemathesis makes the arguments, as if each tool were a request with its input schema as body (`harness/schema_cases.py`).
"""

import json

import pytest
import schemathesis
from schemathesis import GenerationMode

from harness import HttpDaemon, Installation, token
from harness.agent import CODES
from harness.api_surface import profiles
from harness.schema_cases import EXAMPLES, EXAMPLES_FULL, SECONDS, WAIT_MS, run_to_its_end, tame, try_all

REVISION = "2026-07-28"
PREFIX = "io.modelcontextprotocol/"
META = {f"{PREFIX}protocolVersion": REVISION, f"{PREFIX}clientInfo": {"name": "fuzz", "version": "1"}, f"{PREFIX}clientCapabilities": {}}
INTERNAL = {"internal_error", "internal"}
#: Of JSON-RPC: invalid parameters.
INVALID_PARAMS = -32602
#: Parameters that name an execution.
ID_PARAMETERS = {"id", "pid", "process_id", "session"}
EACH = pytest.mark.parametrize("mode", GenerationMode, ids=lambda mode: mode.value)
EACH_PROFILE = pytest.mark.parametrize("profile", profiles())


@pytest.fixture(scope="module")
def served(binary):
    """A daemon with executions that have ended, one of them with a terminal."""
    installation = Installation(binary)
    try:
        secret = token(installation, "fuzz")
        http_daemon = HttpDaemon(installation)
        http_daemon.headers = {"Authorization": f"Bearer {secret}"}
        http_daemon.ids = [run_to_its_end(http_daemon, options) for options in ({}, {"pty": {"cols": 80, "rows": 24}})]
        yield http_daemon
        http_daemon.end()
    finally:
        installation.close()


def request(http_daemon, profile, method, params):
    """The answer of JSON-RPC."""
    headers = {
        **http_daemon.headers, "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": REVISION, "Mcp-Method": method, **({"Mcp-Name": params["name"]} if "name" in params else {}),
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": META}}
    connection = http_daemon.connect(SECONDS)
    connection.request("POST", f"/mcp/p/{profile}", json.dumps(body), headers)
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    events = [line.removeprefix("data: ") for line in text.split("\n") if line.startswith("data: ")]
    return json.loads(events[-1] if events else text)


def operations(tools):
    """An operation for each tool, with its arguments as body."""
    paths = {f"/{tool['name']}": {"post": {
        "requestBody": {"required": True, "content": {"application/json": {"schema": tool["inputSchema"]}}},
        "responses": {"200": {"description": "Its result"}},
    }} for tool in tools}
    document = {"openapi": "3.1.0", "info": {"title": "tools", "version": "1"}, "paths": paths}
    return [result.ok() for result in schemathesis.openapi.from_dict(document).get_all_operations()]


def call(http_daemon, profile, tool, mode, body):
    """Calls a tool; checks the answer."""
    if isinstance(body, bytes):
        return  # No JSON at all.
    arguments = tame(body, str(http_daemon.installation.work))
    # Null counts as absent.
    has_null = body is None or (isinstance(body, dict) and None in body.values())
    is_unchanged = arguments == body and not has_null
    for name in ID_PARAMETERS & set(arguments if isinstance(arguments, dict) else ()):
        if isinstance(arguments[name], str) and len(arguments[name]) % 2:
            arguments[name] = http_daemon.ids[len(arguments[name]) // 2 % len(http_daemon.ids)]
            is_unchanged = False
    if mode is GenerationMode.POSITIVE and "wait_ms" in tool["inputSchema"]["properties"]:
        arguments.setdefault("wait_ms", WAIT_MS)
    answer = request(http_daemon, profile, "tools/call", {"name": tool["name"], "arguments": arguments})
    about = f"{tool['name']} {arguments!r}: {answer}"
    if "error" in answer:
        assert answer["error"]["code"] == INVALID_PARAMS, about
        return
    result = answer["result"]
    if result.get("isError"):
        assert result["_meta"]["code"] in set(CODES) - INTERNAL, about
    elif mode is GenerationMode.NEGATIVE:
        assert not is_unchanged, f"accepted: {about}"


def fuzz(http_daemon, profile, mode, examples, **options):
    tools = request(http_daemon, profile, "tools/list", {})["result"]["tools"]
    for tool, operation in zip(tools, operations(tools), strict=True):
        strategy = operation.as_strategy(generation_mode=mode)
        try_all(strategy, lambda case, tool=tool: call(http_daemon, profile, tool, mode, case.body), examples, **options)
    assert http_daemon.process.poll() is None


@EACH_PROFILE
@EACH
def test_every_tool_answers_or_says_what_is_wrong(served, profile, mode):
    fuzz(served, profile, mode, EXAMPLES, derandomize=True)


@pytest.mark.full
@pytest.mark.limit(600)
@EACH_PROFILE
@EACH
def test_full_every_tool_answers_or_says_what_is_wrong(served, profile, mode):
    fuzz(served, profile, mode, EXAMPLES_FULL)
