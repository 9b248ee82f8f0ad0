"""REST against its OpenAPI document: whatever the schema allows or forbids, no request ends in a server error, and every
answer has a documented status, content type, headers and body.

Schemathesis makes the requests of the document (`harness/schema_cases.py`).
"""

from itertools import count

import pytest
import schemathesis
from schemathesis import GenerationMode
from schemathesis.specs.openapi import checks

from harness import HttpDaemon, Installation, token
from harness.api_surface import DOCUMENT
from harness.schema_cases import EXAMPLES, EXAMPLES_FULL, SECONDS, run_to_its_end, tame, try_all

SCHEMA = schemathesis.openapi.from_path(DOCUMENT)
#: All but the end of the daemon itself.
OPERATIONS = {
    operation.definition.raw["operationId"]: operation
    for operation in (result.ok() for result in SCHEMA.get_all_operations())
    if operation.path != "/api/v1/shutdown"
}
CHECKS = [
    schemathesis.checks.not_a_server_error, checks.status_code_conformance, checks.content_type_conformance,
    checks.response_headers_conformance, checks.response_schema_conformance,
]
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
        http_daemon.ids = [run_to_its_end(http_daemon, options) for options in ({}, {"pty": {"cols": 80, "rows": 24}})]
        yield http_daemon
        http_daemon.end()
    finally:
        installation.close()


def is_sent(case):
    """Whether what is wrong with a query reaches the daemon: an empty list is left out, and any value is a list of texts."""
    has_lists = any(it.definition.get("schema", {}).get("type") == "array" for it in case.operation.query)
    return all(value not in ([], {}, None) for value in (case.query or {}).values()) and not has_lists


def send(http_daemon, case, number):
    """Sends a request, every second one to an execution that there is; checks the answer."""
    if case.path_parameters and "id" in case.path_parameters and number % 2:
        case.path_parameters["id"] = http_daemon.ids[number // 2 % len(http_daemon.ids)]
    query, work = case.query or {}, str(http_daemon.installation.work)
    body, tamed_query = tame(case.body, work), tame(query, work)
    is_unchanged = body == case.body and tamed_query == query
    # What is set again is judged again, as if the test had made it up.
    if not is_unchanged:
        case.body, case.query = body, tamed_query
    rejection = [checks.negative_data_rejection] if is_unchanged and is_sent(case) else []
    response = case.call(base_url=http_daemon.base, headers={**http_daemon.headers, "Accept": "*/*"}, timeout=SECONDS)
    case.validate_response(response, checks=CHECKS + rejection)


def fuzz(http_daemon, operation_id, mode, examples, **options):
    numbers = count()
    strategy = OPERATIONS[operation_id].as_strategy(generation_mode=mode)
    try_all(strategy, lambda case: send(http_daemon, case, next(numbers)), examples, **options)
    assert http_daemon.process.poll() is None


@EACH
def test_every_answer_is_as_documented(served, operation_id, mode):
    fuzz(served, operation_id, mode, EXAMPLES, derandomize=True)


@pytest.mark.full
@EACH
def test_full_every_answer_is_as_documented(served, operation_id, mode):
    fuzz(served, operation_id, mode, EXAMPLES_FULL)
