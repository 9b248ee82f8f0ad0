"""MCP over Streamable HTTP, message by message: what the official client does not show."""

import http.client
import json
import threading
from urllib.parse import urlsplit

from .procs import until

#: Prefix of the library's own keys in `_meta`.
META = "io.modelcontextprotocol/"
MODERN = "2026-07-28"


class EventStream:
    """The events of a response, read as they come."""

    def __init__(self, connection, response):
        self.connection, self.response = connection, response
        self.messages, self.ids, self.endpoint, self.ended = [], [], None, False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        try:
            for line in self.response:
                name, _, value = line.decode().rstrip("\r\n").partition(": ")
                if name == "id":
                    self.ids.append(value)
                elif name == "data" and value.startswith("/"):
                    self.endpoint = value
                elif name == "data" and value:
                    self.messages.append(json.loads(value))
        except (OSError, http.client.HTTPException, ValueError):
            pass
        self.ended = True

    def answer(self, request, seconds=20):
        """The response to a request."""
        def found():
            return next((it for it in self.messages if it.get("id") == request and "method" not in it), None)

        return until(found, seconds, f"the response to {request}")

    def told(self, method):
        """The parameters of the notifications of a method."""
        return [it["params"] for it in self.messages if it.get("method") == method]

    def end(self, seconds=20):
        self._reader.join(seconds)
        assert self.ended, self.messages

    def leave(self):
        """The client goes."""
        self.connection.sock.shutdown(2)
        self.end()


class McpHttpClient:
    """One client; of the handshake era with a session, else of the revision without sessions."""

    def __init__(self, base, handshake=True, token=None):
        self.base, self.session, self.number = base, None, 0
        self.access = {"Authorization": f"Bearer {token}"} if token else {}
        self.handshake = handshake
        if handshake:
            params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
            response, body = self._whole({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
            assert response.status == 200, body
            self.session = response.headers["mcp-session-id"]
            self._whole({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def _open(self, verb, message, **more):
        headers = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json", **self.access, **more}
        if self.session:
            headers |= {"Mcp-Session-Id": self.session, "MCP-Protocol-Version": "2025-06-18"}
        elif not self.handshake:
            headers |= {"MCP-Protocol-Version": MODERN, "Mcp-Method": message["method"], "Mcp-Name": message["params"]["name"]}
        connection = http.client.HTTPConnection(urlsplit(self.base).netloc, timeout=60)
        connection.request(verb, "/mcp", body=json.dumps(message) if message else None, headers=headers)
        return connection, connection.getresponse()

    def _whole(self, message):
        connection, response = self._open("POST", message)
        body = response.read()
        connection.close()
        return response, body

    def _message(self, method, params):
        self.number += 1
        if not self.handshake:
            params = {**params, "_meta": {
                **params.get("_meta", {}), f"{META}protocolVersion": MODERN, f"{META}clientCapabilities": {},
                f"{META}clientInfo": {"name": "t", "version": "1"}}}
        return {"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}

    def open(self, method, params):
        """A request, answered by a stream: its id and the stream."""
        message = self._message(method, params)
        connection, response = self._open("POST", message)
        assert response.status == 200, response.read()
        return message["id"], EventStream(connection, response)

    def begin(self, tool, progress=None, **arguments):
        """A tool call, as `open` has it."""
        params = {"name": tool, "arguments": arguments}
        if progress is not None:
            params["_meta"] = {"progressToken": progress}
        return self.open("tools/call", params)

    def post(self, method, params=None):
        """A request, and its response whatever its kind."""
        message = self._message(method, params or {})
        response, body = self._whole(message)
        if response.headers.get("content-type", "").startswith("application/json"):
            return response.status, json.loads(body)
        lines = body.decode().splitlines()
        found = [json.loads(line[6:]) for line in lines if line.startswith("data: ") and line != "data: "]
        return response.status, next((it for it in found if it.get("id") == message["id"]), body)

    def call(self, tool, **arguments):
        """The text of a tool's result."""
        _, answer = self.post("tools/call", {"name": tool, "arguments": arguments})
        return text(answer)

    def delete(self):
        """Ends the session; false where the daemon ended first."""
        try:
            connection, response = self._open("DELETE", None)
            connection.close()
            return response.status < 300
        except (OSError, http.client.HTTPException):
            return False

    def listen(self, last=None):
        """The stream of GET, of a lost stream where `last` is an event of it."""
        connection, response = self._open("GET", None, **({"Last-Event-ID": last} if last else {}))
        assert response.status == 200, response.read()
        return EventStream(connection, response)


class LegacySseClient:
    """One client of the transport of 2024-11-05: everything comes in one stream."""

    def __init__(self, base):
        self.base, self.number = base, 0
        connection = http.client.HTTPConnection(urlsplit(base).netloc, timeout=60)
        connection.request("GET", "/sse")
        self.stream = EventStream(connection, connection.getresponse())
        until(lambda: self.stream.endpoint, 20, "the endpoint")
        hello = {"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        self.stream.answer(self.send("initialize", hello))
        self._post({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def _post(self, message):
        connection = http.client.HTTPConnection(urlsplit(self.base).netloc, timeout=60)
        headers = {"Content-Type": "application/json"}
        connection.request("POST", self.stream.endpoint, body=json.dumps(message), headers=headers)
        response = connection.getresponse()
        assert response.status == 202, response.read()
        connection.close()

    def send(self, method, params):
        self.number += 1
        self._post({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params})
        return self.number


def text(answer):
    return "\n".join(block.get("text", "") for block in answer["result"]["content"])
