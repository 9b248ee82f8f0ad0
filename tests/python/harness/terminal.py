"""A client of the tools of profile `pty`."""

import base64
import contextlib
import re
import time
from dataclasses import dataclass

#: The timeout for a screen to show the expected content, in seconds.
SHOWS_SECONDS = 15
#: The wait of one call for more output, in milliseconds.
MORE_MS = 200


@dataclass
class View:
    """A screen at one moment."""

    rows: list
    at: tuple
    title: str
    alternate: bool
    size: tuple
    offset: int
    exact: bool
    visible: bool

    @property
    def text(self):
        return "\n".join(self.rows)

    @classmethod
    def of(cls, body):
        cursor = body["cursor"]
        assert not body.get("cut"), "a screen too large for an answer"
        missing = body["size"]["rows"] - len(body["rows"])
        return cls(
            rows=[row.rstrip() for row in body["rows"]] + [""] * missing, at=(cursor["col"], cursor["row"]), title=body["title"],
            alternate=body["alternate"], size=(body["size"]["cols"], body["size"]["rows"]),
            offset=body["offset"], exact=body["exact"], visible=cursor["visible"],
        )


@dataclass
class Page:
    """A page of raw output with its offsets."""

    data: bytes
    offset: int
    next_offset: int
    start_offset: int
    end_offset: int
    truncated: bool

    @classmethod
    def of(cls, body):
        data = body["data"]
        data = base64.b64decode(data["base64"]) if isinstance(data, dict) else data.encode()
        return cls(data, *(body[name] for name in (
            "offset", "next_offset", "start_offset", "end_offset", "truncated")))


class ShellRunResult:
    """The result of a command in a shell."""

    #: Lines that the tool adds around the output.
    AROUND = re.compile(r"\[(note|it waits|it asks|the shell|pattern|.* types here)\b.*\]")

    def __init__(self, reply):
        assert not reply.is_error, reply
        self.reply = reply
        self.end = reply.value("end")
        self.exit_code = reply.value_or("exit_status")
        self.cwd = reply.value_or("cwd")
        self.first, *lines = reply.text.split("\n")
        while lines and self.AROUND.fullmatch(lines[-1]):
            lines.pop()
        self.output = "\n".join(lines)

    def __repr__(self):
        return f"Ran({self.end}, {self.exit_code}, cwd={self.cwd!r}, {self.reply})"


class Terminals:
    """One MCP session that is offered `--tools pty` (or another profile with these tools)."""

    def __init__(self, agent, installation):
        self.agent = agent
        self.installation = installation

    @classmethod
    @contextlib.asynccontextmanager
    async def connect(cls, installation, tools="pty", args=(), **options):
        async with installation.agent(args=["--tools", tools, *args], **options) as agent:
            yield cls(agent, installation)

    async def call(self, tool, **arguments):
        return await self.agent.call(tool, **arguments)

    async def must(self, tool, **arguments):
        return await self.agent.must(tool, **arguments)

    async def start(self, *command, **options):
        """Starts a program in a terminal, without waiting for its screen."""
        options.setdefault("wait_ms", 0)
        reply = await self.must("pty_start", command=[str(word) for word in command], **options)
        return Session(self, reply.id, reply)

    async def shell(self, kind="bash", **options):
        """Starts a shell with integration."""
        options.setdefault("wait_ms", 0)
        reply = await self.must("pty_start", shell=kind, **options)
        return Session(self, reply.id, reply)

    async def list(self, **options):
        """The listed sessions as objects."""
        reply = await self.must("pty_list", **options)
        return reply.structured["sessions"]


class Session:
    """One terminal session."""

    def __init__(self, terminals, identity, started=None):
        self.terminals = terminals
        self.installation = terminals.installation
        self.id = identity
        self.started = started

    async def call(self, tool, **arguments):
        return await self.terminals.call(tool, session=self.id, **arguments)

    async def must(self, tool, **arguments):
        return await self.terminals.must(tool, session=self.id, **arguments)

    async def write(self, **arguments):
        """`pty_write` without waiting for its effect; the result must be a success."""
        arguments.setdefault("wait_ms", 0)
        return await self.must("pty_write", **arguments)

    async def type(self, text, **options):
        """Types text without Enter."""
        return await self.write(text=text, enter=False, **options)

    async def line(self, text, **options):
        """Types text and Enter."""
        return await self.write(text=text, keys=["enter"], **options)

    async def keys(self, *names, **options):
        return await self.write(keys=list(names), **options)

    async def paste(self, text, **options):
        return await self.write(paste=text, enter=False, **options)

    async def raw(self, data, **options):
        return await self.write(base64=base64.b64encode(data).decode(), **options)

    async def screen(self, **options):
        """The screen now, or once there is more output."""
        options.setdefault("wait_ms", 0)
        reply = await self.must("pty_read", view="screen", **options)
        return View.of(reply.value("screen"))

    async def shows(self, pattern, seconds=SHOWS_SECONDS):
        """Waits until a pattern matches the rows of the screen; returns the match."""
        deadline = time.monotonic() + seconds
        view = await self.screen()
        while not (found := re.search(pattern, view.text, re.M)):
            assert time.monotonic() < deadline, f"not shown: {pattern!r}\n{view}\n{view.text}"
            view = await self.read_new(view)
        return found

    async def read_new(self, view):
        """The screen once there is more output than at `view`."""
        return await self.screen(until="output", offset=view.offset, wait_ms=MORE_MS)

    async def output(self, **options):
        """Raw output by offsets."""
        options.setdefault("wait_ms", 0)
        return Page.of((await self.must("pty_read", view="raw", **options)).structured)

    async def whole(self, offset=None):
        """All raw output, page by page."""
        page = await self.output(**({"offset": offset} if offset is not None else {}))
        data = page.data
        while page.next_offset < page.end_offset and page.data:
            page = await self.output(offset=page.next_offset)
            data += page.data
        return data

    async def wrote(self, pattern, seconds=SHOWS_SECONDS):
        """Waits until a pattern matches the raw output; returns the match."""
        deadline = time.monotonic() + seconds
        data, at = b"", 0
        while True:
            page = await self.output(until="output", offset=at, wait_ms=MORE_MS)
            data, at = data + page.data, page.next_offset
            found = re.search(pattern, data, re.M | re.S)
            if found:
                return found
            assert time.monotonic() < deadline, f"not written: {pattern!r}\n{data[-2000:]!r}"

    async def resize(self, cols, rows):
        return await self.must("pty_resize", cols=cols, rows=rows)

    async def run(self, script, **options):
        """`pty_run`, which must not fail."""
        return ShellRunResult(await self.call("pty_run", script=script, **options))

    async def close(self, **options):
        """`pty_close`; the result for this session."""
        reply = await self.terminals.must("pty_close", sessions=[self.id], **options)
        return reply.structured["results"][0]

    async def status(self):
        """Its entry in the list."""
        return next(it for it in await self.terminals.list() if it["session"] == self.id)

    async def ended(self, seconds=20):
        """Waits for its end; returns its entry in the list."""
        reply = await self.must("pty_read", view="text", until="exit", wait_ms=int(seconds * 1000))
        assert reply.value("why") == "exit", reply
        return await self.status()
