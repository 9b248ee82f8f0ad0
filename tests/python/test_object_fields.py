"""An array is no object, wherever the schema of a request has an object: not the values of its fields in their order."""

import pytest

from harness.installation import ProblemError

#: How many places the document has at least; fewer would mean that this test no longer reads it.
PLACES = 60


def places(document, schema, depth=8):
    """Values for a schema with an empty array where it has an object with named fields."""
    while "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    choices = [choice for key in ("oneOf", "anyOf", "allOf") for choice in schema.get(key, [])]
    if depth == 0:
        return
    takes_array = any("array" in [choice.get("type")] for choice in choices)
    if schema.get("properties") and not takes_array:
        yield []
    for name, field in schema.get("properties", {}).items():
        yield from ({name: value} for value in places(document, field, depth - 1))
    if isinstance(schema.get("items"), dict):
        yield from ([value] for value in places(document, schema["items"], depth - 1))
    for choice in choices:
        yield from places(document, choice, depth - 1)


def requests(document):
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            for content in operation.get("requestBody", {}).get("content", {}).values():
                for body in places(document, content.get("schema", {})):
                    yield method.upper(), path, body


def test_no_route_takes_an_array_for_an_object(installation):
    known = installation.cli("run", "-d", "--", "true").stdout.decode().strip()
    installation.cli("wait", known)
    document = installation.rest("GET", "/api/openapi.json")
    messages = []
    for method, path, body in requests(document):
        with pytest.raises(ProblemError) as error:
            installation.rest(method, path.replace("{id}", known).replace("{name}", "unknown"), body)
        problem = error.value.problem
        assert error.value.status in {404, 422}, (method, path, body, problem)
        if error.value.status == 422:
            messages.append((method, path, body, problem["message"]))
    assert len(messages) >= PLACES, len(messages)
    named = [message for *_, message in messages if "a JSON object" in message]
    assert len(named) >= PLACES, [it for it in messages if "a JSON object" not in it[3]]
    internal = [it for it in messages if "struct " in it[3] or "Body" in it[3]]
    assert not internal, internal
