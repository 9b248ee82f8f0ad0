"""The MCP App: offered to clients that declare the extension, in both protocol eras, and only where there is a page."""

import json

import pytest

from harness import HttpDaemon, Installation

EXTENSION, URI, TYPE = "io.modelcontextprotocol/ui", "ui://ostler/dashboard", "text/html;profile=mcp-app"
PAGE = "<!doctype html><title>Dashboard ä</title>"
SHOWS = {"extensions": {EXTENSION: {"mimeTypes": [TYPE]}}}
OTHERS = [{}, {"extensions": {}}, {"extensions": {EXTENSION: {"mimeTypes": ["text/html"]}}}]


@pytest.fixture(scope="module")
def served(binary):
    """A daemon whose web interface is a directory, which is empty at first."""
    installation = Installation(binary)
    installation.tools = "core"
    try:
        directory = installation.dir / "dist"
        directory.mkdir()
        http_daemon = HttpDaemon(installation, "--no-token", "--set", f"http.web_directory={directory}")
        http_daemon.page = directory / "mcp_app.html"
        yield http_daemon
        http_daemon.end()
    finally:
        installation.close()


class RawClient:
    """An MCP client of one era over HTTP that declares these capabilities."""

    def __init__(self, http_daemon, era, capabilities):
        self.http_daemon, self.era, self.capabilities, self.headers = http_daemon, era, capabilities, {}
        if era == "modern":
            self.answer = self.ask("server/discover")
        else:
            self.answer = self.ask("initialize", protocolVersion="2025-11-25", capabilities=capabilities,
                                   clientInfo={"name": "test", "version": "1"})
            self.ask("notifications/initialized")

    def ask(self, method, **params):
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", **self.headers}
        if self.era == "modern":
            params["_meta"] = {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
                               "io.modelcontextprotocol/clientCapabilities": self.capabilities}
            headers |= {"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": method}
            headers |= {"Mcp-Name": params["uri"]} if "uri" in params else {}
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        message |= {} if method.startswith("notifications/") else {"id": 1}
        connection = self.http_daemon.connect()
        connection.request("POST", "/mcp", json.dumps(message), headers)
        response = connection.getresponse()
        body = response.read().decode()
        connection.close()
        if session := response.headers["Mcp-Session-Id"]:
            self.headers = {"Mcp-Session-Id": session, "Mcp-Protocol-Version": "2025-11-25"}
        lines = [line.removeprefix("data:") for line in body.splitlines() if line.startswith("data:")] or [body]
        answers = [json.loads(line) for line in lines if line.strip()]
        return next((answer for answer in answers if answer.get("id") == 1), None)

    def offers(self):
        """Whether the app is declared, bound to tools, and listed."""
        declared = EXTENSION in self.answer["result"]["capabilities"].get("extensions", {})
        tools = {tool["name"]: tool.get("_meta", {}) for tool in self.ask("tools/list")["result"]["tools"]}
        bound = {name for name, meta in tools.items() if meta.get("ui", {}).get("resourceUri") == URI}
        listed = any(resource["uri"] == URI for resource in self.ask("resources/list")["result"]["resources"])
        return declared, bound, listed


@pytest.fixture(params=["legacy", "modern"])
def era(request):
    return request.param


def test_without_a_page_nobody_is_offered_one(served, era):
    served.page.unlink(missing_ok=True)
    client = RawClient(served, era, SHOWS)
    assert client.offers() == (False, set(), False)
    error = client.ask("resources/read", uri=URI)["error"]
    unknown = client.ask("resources/read", uri="ui://ostler/other")["error"]
    assert (error["code"], error["message"]) == (unknown["code"], unknown["message"]), error


def test_a_client_that_shows_apps_is_offered_it_and_no_other(served, era):
    served.page.write_text(PAGE)
    client = RawClient(served, era, SHOWS)
    assert client.offers() == (True, {"process", "service"}, True)
    assert client.answer["result"]["capabilities"]["extensions"][EXTENSION] == {"mimeTypes": [TYPE]}
    (content,) = client.ask("resources/read", uri=URI)["result"]["contents"]
    assert content == {"uri": URI, "mimeType": TYPE, "text": PAGE}
    for capabilities in OTHERS:
        assert RawClient(served, era, capabilities).offers() == (False, set(), False), capabilities


def test_a_page_that_is_no_text_is_none(served, era):
    served.page.write_bytes(b"\xff\xfe")
    assert "error" in RawClient(served, era, SHOWS).ask("resources/read", uri=URI)
