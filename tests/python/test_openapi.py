"""The OpenAPI document: it has the routes that there are, and is served as it is in the repository."""

import gzip
import json
import re

import pytest

from harness import HttpDaemon, Installation, token
from harness.api_surface import DOCUMENT, documented, rest_routes

METHODS = {"GET", "POST", "PUT", "DELETE", "PATCH"}


@pytest.fixture(scope="module")
def served(binary):
    """A daemon whose routes are below a prefix."""
    installation = Installation(binary)
    try:
        secret = token(installation, "reader")
        http_daemon = HttpDaemon(installation, "--url-prefix", "/below")
        http_daemon.headers = {"Authorization": f"Bearer {secret}"}
        yield http_daemon
        http_daemon.end()
    finally:
        installation.close()


def ask(http_daemon, method, path, **headers):
    """One request: status, headers, body."""
    connection = http_daemon.connect()
    connection.request(method, f"/below{path}", headers={**http_daemon.headers, **headers})
    response = connection.getresponse()
    answer = response.status, response.headers, response.read()
    connection.close()
    return answer


def test_the_document_has_every_route_and_no_other():
    assert set(documented()) == set(rest_routes()), "run `cargo xtask openapi`"


def test_the_router_knows_every_documented_method_and_no_other(served):
    known = {}
    for method, path in documented():
        known.setdefault(path, set()).add(method)
    for path, methods in known.items():
        if path == "/api/v1/shutdown":
            continue
        if path in {"/api/v1/services/up", "/api/v1/services/ensure"}:
            # A service may have the name of the action.
            methods |= known["/api/v1/services/{name}"]
        for method in METHODS:
            status, _, body = ask(served, method, re.sub(r"\{\w+\}", "zzzzzzzz", path))
            unknown = status == 405 or b"no such route" in body
            assert unknown == (method not in methods), (method, path, status, body)
    assert ask(served, "GET", "/api/v1/not/documented")[0] == 404


@pytest.mark.parametrize("coding", ["gzip", "identity"])
def test_the_document_is_served_as_it_is_checked_in(served, coding):
    status, headers, body = ask(served, "GET", "/api/openapi.json", **{"Accept-Encoding": coding})
    assert status == 200 and headers["Content-Type"] == "application/json"
    assert headers["Vary"] == "accept-encoding"
    if coding == "gzip":
        assert headers["Content-Encoding"] == "gzip" and len(body) < 100_000
        body = gzip.decompress(body)
    else:
        assert headers["Content-Encoding"] is None
    assert body == DOCUMENT.read_bytes()


def test_every_reference_of_the_document_has_its_target():
    document = json.loads(DOCUMENT.read_text())
    for reference in re.findall(r'"\$ref": "#/([^"]+)"', DOCUMENT.read_text()):
        part = document
        for key in reference.split("/"):
            part = part[key]
        assert part, reference


def test_the_page_loads_nothing_but_the_document(served):
    status, headers, body = ask(served, "GET", "/api/docs")
    page = body.decode()
    assert status == 200 and headers["Content-Type"] == "text/html; charset=utf-8"
    assert headers["Content-Security-Policy"].startswith("default-src 'none'; style-src 'sha256-")
    assert "<script>" in page and 'fetch("openapi.json"' in page
    status, headers, body = ask(served, "HEAD", "/api/docs")
    assert (status, body) == (200, b"")
