"""A client of the tools of profile `shell`."""

import contextlib
import json


class Shell:
    """One MCP session that is offered `--tools shell` (or another profile with these tools)."""

    def __init__(self, agent, installation):
        self.agent = agent
        self.installation = installation

    @classmethod
    @contextlib.asynccontextmanager
    async def connect(cls, installation, tools="shell", args=(), **options):
        async with installation.agent(args=["--tools", tools, *args], **options) as agent:
            yield cls(agent, installation)

    async def call(self, tool, **arguments):
        return await self.agent.call(tool, **arguments)

    async def execute(self, command, **options):
        """`execute_shell`; the result may be an error."""
        return await self.call("execute_shell", command=command, **options)

    async def sh(self, command, **options):
        """`execute_shell` to its end; the result must be a success."""
        return await self.agent.must("execute_shell", command=command, **options)

    async def start(self, command, run_mode="async", **options):
        """`execute_shell` in the background; returns the process id."""
        reply = await self.agent.must(
            "execute_shell", command=command, run_mode=run_mode, **options
        )
        return reply.value("process_id")

    async def poll(self, process_id, **tail):
        """The result of `poll_process` as an object, with the last lines if requested."""
        arguments = {"process_id": process_id, **({"tail": tail} if tail else {})}
        return same_twice(await self.agent.must("poll_process", **arguments))

    async def read(self, process_id, stream="stdout", **options):
        """The result of `read_process_output` as an object."""
        reply = await self.agent.must(
            "read_process_output", process_id=process_id, stream=stream, **options
        )
        return json.loads(reply.blocks[0])

    async def list(self, **options):
        """The result of `list_processes` as an object."""
        return same_twice(await self.agent.must("list_processes", **options))

    async def kill(self, process_id):
        """The result of `kill_process` as an object."""
        return same_twice(await self.agent.must("kill_process", process_id=process_id))

    async def ended(self, process_id, seconds=20):
        """Waits for the end over REST; returns the result of `poll_process`."""
        self.installation.rest(
            "POST", f"/api/v1/executions/{process_id}/wait",
            {"until": "exit", "at_most_ms": int(seconds * 1000)},
        )
        polled = await self.poll(process_id)
        assert polled["status"] not in ("starting", "running"), polled
        return polled


def same_twice(reply):
    """The structured content of a status tool, which its text must repeat."""
    assert json.loads(reply.blocks[0]) == reply.structured, reply
    return reply.structured
