"""The daemon in the foreground with its HTTP listener, and clients on every transport."""

import contextlib
import http.client
import json
import queue
import re
import subprocess
import threading
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import anyio
import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from .agent import Agent

ADDRESS = re.compile(r"http://[\w.:\[\]-]+:\d+")
TOKEN = re.compile(r"\bostler_[\w-]{20,}")

#: The timeout for the daemon to print its address, in seconds.
STARTS_SECONDS = 30


class HttpDaemon:
    """`ostler serve`, until the installation is shut down."""

    def __init__(self, installation, *args, port=0):
        self.installation = installation
        words = installation.argv("serve", "--port", port, *args)
        self.process = subprocess.Popen(
            words, cwd=installation.work, env=installation.env(), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        self.output = []
        self._lines = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        self.base = self._address()

    def _read(self):
        for line in self.process.stdout:
            self.output.append(line)
            self._lines.put(line)
        self._lines.put(None)

    def _address(self):
        return self.wait_for(ADDRESS)[0]

    def wait_for(self, pattern):
        """The match of a pattern in the next line that has one."""
        while True:
            line = self._lines.get(timeout=STARTS_SECONDS)
            assert line is not None, f"it ended: {self.output}"
            found = re.search(pattern, line)
            if found:
                return found

    def connect(self, timeout=30):
        """An HTTP connection to its address."""
        return http.client.HTTPConnection(urlsplit(self.base).netloc, timeout=timeout)

    @property
    def url(self):
        return f"{self.base}/mcp"

    def end(self):
        self.installation.end_commands()
        self.installation.shut_down()
        self.process.wait(timeout=20)


@dataclass
class ClientTransport:
    """The transport of a client, and its protocol era."""

    transport: str
    mode: str
    installation: object
    http_daemon: HttpDaemon | None = None
    headers: dict = field(default_factory=dict)
    path: str = ""
    session: str | None = None

    @property
    def era(self):
        return "2025-11-25" if self.mode == "legacy" else "2026-07-28"

    def into(self, **changes):
        """The same transport with changed fields, for example for another principal."""
        fields = {**self.__dict__, **changes}
        return ClientTransport(**fields)

    @contextlib.asynccontextmanager
    async def agent(self, **options):
        """A client by the official library."""
        failure = None
        try:
            async with contextlib.AsyncExitStack() as stack:
                transport = await self._transport(stack)
                options.setdefault("read_timeout_seconds", 50)
                client = Client(transport, mode=self.mode, **options)
                client = await stack.enter_async_context(client)
                try:
                    yield Agent(client, self.installation.work)
                except Exception as error:
                    # Raised after an orderly end of the client, not wrapped in its task groups.
                    failure = error
        except* anyio.BrokenResourceError:
            # The library's SSE reader fails on a notification that arrives while it closes.
            if self.transport != "sse":
                raise
        if failure is not None:
            raise failure

    async def _transport(self, stack):
        if self.transport == "stdio":
            named = ["--session", self.session] if self.session else []
            argv = self.installation.argv("mcp", *named)
            return StdioServerParameters(
                command=argv[0], args=argv[1:], env=self.installation.env(), cwd=self.installation.work)
        headers = dict(self.headers)
        if self.session and not self.path:
            headers["Ostler-Session"] = self.session
        if self.transport == "sse":
            return sse_client(f"{self.http_daemon.base}/sse{self.path}", headers=headers)
        http = httpx2.AsyncClient(headers=headers, timeout=httpx2.Timeout(60))
        await stack.enter_async_context(http)
        return streamable_http_client(self.http_daemon.url + self.path, http_client=http)


def token(installation, name, principal=None):
    """Creates a token by `ostler token new`."""
    more = ["--principal", principal] if principal else []
    output = installation.cli("token", "new", name, *more).stdout.decode()
    found = TOKEN.search(output)
    assert found, output
    return found[0]


def ask(http_daemon, name, method, path, body=None):
    """The status and the body of the response to a request with one of the daemon's `secrets`."""
    connection = http_daemon.connect()
    connection.request(method, path, body and json.dumps(body), {"Authorization": f"Bearer {http_daemon.secrets[name]}"})
    response = connection.getresponse()
    answer = response.status, json.loads(response.read() or "null")
    connection.close()
    return answer


@contextlib.contextmanager
def serve_two_principals(installation, *args):
    """A daemon that requires tokens, with one for each of the principals ann and bob. Closes the installation."""
    try:
        tokens = {name: token(installation, name, principal=name) for name in ("ann", "bob")}
        http_daemon = HttpDaemon(installation, *args)
        http_daemon.tokens = tokens
        yield http_daemon
        http_daemon.end()
    finally:
        installation.close()
