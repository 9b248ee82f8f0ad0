"""REST against its OpenAPI document: whatever the schema allows or forbids, no request ends in a server error, and every
answer has a documented status, content type, headers and body.

Schemathesis makes the requests of the document. Commands in them are replaced by `true`, and waits are cut short.
"""

import json

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.specs.openapi import checks

from harness import HttpDaemon, Installation, token, until
from harness.api_surface import DOCUMENT

SCHEMA = schemathesis.openapi.from_path(DOCUMENT)
#: All but the end of the daemon itself.
OPERATIONS = {
    operation.definition.raw["operationId"]: operation
    for operation in (result.ok() for result in SCHEMA.get_all_operations())
    if operation.path != "/api/v1/shutdown"
}
#: Requests of each kind for each operation.
EXAMPLES = 10
EXAMPLES_FULL = 300
CHECKS = [
    schemathesis.checks.not_a_server_error, checks.status_code_conformance, checks.content_type_conformance,
    checks.response_headers_conformance, checks.response_schema_conformance,
]
#: The program of every command that a request starts.
HARMLESS = "true"
#: The longest wait in a request, in milliseconds.
WAIT_MS = 5
#: Texts that are run: each stands for a command or a script.
RUN = {"program", "script", "command", "shell"}
SECONDS = 20
#: Each operation with requests as documented and with others; nothing can be wrong in a request that anybody may send.
EACH = pytest.mark.parametrize("operation_id, mode", [
    pytest.param(name, mode, id=f"{name}-{mode.value}") for name, operation in OPERATIONS.items() for mode in GenerationMode
    if mode is GenerationMode.POSITIVE or operation.definition.raw["security"]])


@pytest.fixture(scope="module")
def served(binary):
    """A daemon with executions that have ended, one of them with a terminal."""
    installation = Installation(binary)
    try:
        secret = token(installation, "fuzz")
        http_daemon = HttpDaemon(installation)
        http_daemon.headers = {"Authorization": f"Bearer {secret}"}
        http_daemon.ids = [started(http_daemon, options) for options in ({}, {"pty": {"cols": 80, "rows": 24}})]
        yield http_daemon
        http_daemon.end()
    finally:
        installation.close()


def started(http_daemon, options):
    """The id of an execution that printed something and has ended."""
    body = {"command": {"argv": {"program": "echo", "args": ["printed"]}}, "cwd": str(http_daemon.installation.work), **options}
    info = ask(http_daemon, "POST", "/api/v1/executions", body)
    until(lambda: ask(http_daemon, "GET", f"/api/v1/executions/{info['id']}")["phase"] == "finished", SECONDS, "its end")
    return info["id"]


def ask(http_daemon, method, path, body=None):
    connection = http_daemon.connect()
    connection.request(method, path, body and json.dumps(body), http_daemon.headers)
    response = connection.getresponse()
    answer = json.loads(response.read())
    connection.close()
    assert response.status < 300, answer
    return answer


def tame(value, work):
    """The same body with harmless commands, an existing directory, and short waits; what is no text or number stays."""
    if isinstance(value, list):
        return [tame(item, work) for item in value]
    if not isinstance(value, dict):
        return value
    tamed = {}
    for name, item in value.items():
        is_text = isinstance(item, str) or (isinstance(item, dict) and set(item) == {"base64"})
        if name in RUN and is_text:
            tamed[name] = "/bin/sh" if name == "shell" else HARMLESS
        elif name == "exec" and isinstance(item, list):
            tamed[name] = [HARMLESS]
        elif name == "cwd" and is_text:
            tamed[name] = work
        elif name.endswith("_ms") and isinstance(item, int) and not isinstance(item, bool):
            tamed[name] = min(item, WAIT_MS)
        else:
            tamed[name] = tame(item, work)
    return tamed


def is_sent(case, query):
    """Whether what is wrong with a query reaches the daemon: an empty list is left out, and any value is a list of texts."""
    has_lists = any(it.definition.get("schema", {}).get("type") == "array" for it in case.operation.query)
    return case.query == query and all(value not in ([], {}, None) for value in query.values()) and not has_lists


def send(http_daemon, case, number):
    """Sends a request, every second one to an execution that there is; checks the answer."""
    if case.path_parameters and "id" in case.path_parameters and number % 2:
        case.path_parameters["id"] = http_daemon.ids[number // 2 % len(http_daemon.ids)]
    body, query = case.body, dict(case.query or {})
    case.body = tame(body, str(http_daemon.installation.work))
    case.query = tame(query, None)
    rejection = [checks.negative_data_rejection] if case.body == body and is_sent(case, query) else []
    response = case.call(base_url=http_daemon.base, headers={**http_daemon.headers, "Accept": "*/*"}, timeout=SECONDS)
    case.validate_response(response, checks=CHECKS + rejection)


def fuzz(http_daemon, operation_id, mode, examples, **options):
    numbers = iter(range(1_000_000))

    @settings(
        max_examples=examples, deadline=None, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False, **options)
    @given(case=OPERATIONS[operation_id].as_strategy(generation_mode=mode))
    def run(case):
        send(http_daemon, case, next(numbers))

    run()
    assert http_daemon.process.poll() is None


@EACH
def test_every_answer_is_as_documented(served, operation_id, mode):
    fuzz(served, operation_id, mode, EXAMPLES, derandomize=True)


@pytest.mark.full
@EACH
def test_full_every_answer_is_as_documented(served, operation_id, mode):
    fuzz(served, operation_id, mode, EXAMPLES_FULL)
