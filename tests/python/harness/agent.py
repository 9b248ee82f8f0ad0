"""An agent: the official MCP client, with methods for the `command_*` tools."""

import contextlib
import json
import re

from mcp import Client, StdioServerParameters

#: The stable error codes.
CODES = """initialization_error storage_error output_retrieval_error output_clear_error
process_not_found session_not_found command_execution_error command_timeout process_timeout
process_control_error process_info_retrieval_error process_list_retrieval_error
process_clean_error environment_error web_interface_error security_error permission_error
value_error quota_exceeded interaction_error template_error service_error
internal_error internal""".split()

SHORT_ID = re.compile(r"\b[0-9a-hjkmnp-tv-z]{8}\b")


class Reply:
    """The result of a tool call."""

    def __init__(self, result):
        self.is_error = bool(result.is_error)
        self.blocks = [block.text for block in result.content if block.type == "text"]
        self.text = "\n".join(self.blocks)
        self.structured = result.structured_content
        self.meta = result.meta or {}

    def __repr__(self):
        return f"Reply(error={self.is_error}, text={self.text[:2000]!r}, meta={self.meta})"

    @property
    def code(self):
        """The stable error code, in the metadata or the text; None for a success."""
        if not self.is_error:
            return None
        for text in (json.dumps(self.meta), self.text):
            for code in CODES:
                if re.search(rf"\b{code}\b", text):
                    return code
        return "no stable code"

    def value(self, *names):
        """The first of these fields, in the structured content or in the metadata."""
        for source in (self.structured or {}, self.meta):
            for found in walk(source):
                for name in names:
                    if name in found:
                        return found[name]
        raise AssertionError(f"none of {names} in {self!r}")

    def value_or(self, name, default=None):
        """As `value`, with a default."""
        try:
            return self.value(name)
        except AssertionError:
            return default

    @property
    def id(self):
        try:
            return self.value("session", "pid", "id")
        except AssertionError:
            return SHORT_ID.search(self.text)[0]


def walk(value):
    """All objects inside a JSON value, itself first."""
    if isinstance(value, dict):
        yield value
        for inner in value.values():
            yield from walk(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from walk(inner)


class Agent:
    """One MCP session."""

    def __init__(self, client, directory):
        self.client = client
        self.directory = str(directory)

    @classmethod
    @contextlib.asynccontextmanager
    async def connect(cls, argv, env, directory, **options):
        server = StdioServerParameters(command=argv[0], args=argv[1:], env=env, cwd=directory)
        async with Client(server, read_timeout_seconds=60, **options) as client:
            yield cls(client, directory)

    async def call(self, tool, **arguments):
        """Calls a tool; the result may be an error."""
        return Reply(await self.client.call_tool(tool, arguments))

    async def must(self, tool, **arguments):
        """Calls a tool, which must succeed."""
        reply = await self.call(tool, **arguments)
        assert not reply.is_error, reply
        return reply

    async def execute(self, command, *args, **options):
        options.setdefault("directory", self.directory)
        return await self.call("command_execute", command=command, args=list(args), **options)

    async def sh(self, script, **options):
        """Runs a script to its end; the result must be a success."""
        reply = await self.execute("sh", "-c", script, **options)
        assert not reply.is_error, reply
        return reply

    async def start(self, command, *args, **options):
        """Starts a background process; returns its id."""
        options.setdefault("directory", self.directory)
        options.setdefault("description", "a test")
        reply = await self.must("command_bg_start", command=command, args=list(args), **options)
        return reply.id

    async def start_sh(self, script, **options):
        return await self.start("sh", "-c", script, **options)

    async def logs(self, pid, **options):
        """Log text without time prefixes, without waiting."""
        options.setdefault("add_time_prefix", False)
        options.setdefault("follow_seconds", 0)
        return await self.call("command_ps_logs", pid=pid, **options)

    async def lines(self, pid, **options):
        """The lines that the command printed."""
        reply = await self.logs(pid, **options)
        assert not reply.is_error, reply
        return reply.text.splitlines()

    async def list(self, **options):
        """The listed processes as objects."""
        reply = await self.must("command_ps_list", **options)
        lists = [v for o in walk(reply.structured) for v in o.values() if isinstance(v, list)]
        return next((found for found in lists if all(isinstance(e, dict) for e in found)), [])

    async def detail(self, pid):
        reply = await self.must("command_ps_detail", pid=pid)
        return next(found for found in walk(reply.structured) if "status" in found)

    async def stop(self, pid, **options):
        return await self.call("command_ps_stop", pid=pid, **options)

    async def clean(self, *pids):
        """The result of cleaning, by id."""
        reply = await self.must("command_ps_clean", pids=list(pids))
        return {pid: result(reply, pid) for pid in pids}

    async def ended(self, pid, installation, seconds=20):
        """Waits for its end over REST; returns its detail."""
        installation.rest("POST", f"/api/v1/executions/{pid}/wait", {"until": "exit", "at_most_ms": int(seconds * 1000)})
        detail = await self.detail(pid)
        assert detail["status"] != "running", detail
        return detail


def result(reply, pid):
    """The result of a clean for one id."""
    for found in walk(reply.structured):
        if pid in found:
            return found[pid]
        if found.get("pid") == pid:
            return found.get("result") or found.get("status")
    line = next((line for line in reply.text.splitlines() if pid in line), None)
    assert line, f"no result for {pid} in {reply!r}"
    return line.split(pid, 1)[1].strip(" :\t")
