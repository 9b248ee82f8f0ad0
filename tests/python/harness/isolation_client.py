"""Runs commands at an isolation level, over MCP or the command line."""

import re
from dataclasses import dataclass, field

import anyio

#: The timeout of one command in milliseconds.
PATIENCE_MS = 45_000
LINE = re.compile(r"^@ (\w+) (\w+) ?(.*)$", re.M)

@dataclass
class RunResult:
    """The result of a command."""

    exit_code: int | None
    text: str
    refused: bool = False
    answer: object = None

    @property
    def attempts(self):
        """The results of the attempts: `{name: (what, detail)}`."""
        found = {name: (what, detail) for name, what, detail in LINE.findall(self.text)}
        assert found.pop("end", None), f"it did not come to its end: {self.text[-3000:]}"
        return found


@dataclass
class IsolationOptions:
    """An isolation level with its options, by their names in the interfaces."""

    level: str = "high"
    network: object = None
    workspace: str | None = None
    allow_degraded: tuple = ()
    forward: tuple = ()
    secrets: tuple = ()
    limits: dict = field(default_factory=dict)
    labels: tuple = ()

    def words(self):
        """As flags of `ostler run`."""
        words = ["--isolation", self.level]
        if self.network is not None:
            hosts = [self.network] if isinstance(self.network, str) else self.network
            words += ["--network", ",".join(hosts)]
        if self.workspace == "overlay":
            words.append("--overlay")
        for name in self.allow_degraded:
            words += ["--allow-degraded", name]
        for ports in self.forward:
            words += ["--forward", ports]
        for name in self.secrets:
            words += ["--secret", name]
        for name, value in self.limits.items():
            words += [f"--{name.replace('_', '-')}", str(value)]
        for name in self.labels:
            words += ["--label", name]
        return words

    def arguments(self):
        """As arguments of the tool `exec`."""
        arguments = {"isolation": self.level}
        if self.limits:
            arguments["limits"] = {name: str(value) for name, value in self.limits.items()}
        if self.network is not None:
            arguments["network"] = self.network if isinstance(self.network, str) else list(self.network)
        if self.workspace:
            arguments["workspace"] = self.workspace
        for name in ("allow_degraded", "forward", "secrets", "labels"):
            if getattr(self, name):
                arguments[name] = list(getattr(self, name))
        if self.labels:
            # Executions that are looked up by label later must outlive the session.
            arguments["keep"] = True
        return arguments


def by_cli(installation, words, isolation, cwd=None, **options):
    """`ostler run`, to its end."""
    where = ["--cwd", str(cwd)] if cwd else []
    done = installation.cli("run", *isolation.words(), *where, "--", *words, check=False, **options)
    text = (done.stdout + done.stderr).decode(errors="replace")
    return RunResult(done.returncode, text, "error[" in text and "exit" not in text, done)


def by_mcp(installation, words, isolation, cwd=None, **options):
    """The tool `exec`, to its end, in a session of its own."""

    async def ask():
        async with installation.agent() as agent:
            where = {"cwd": str(cwd)} if cwd else {}
            return await agent.call(
                "exec", command=list(map(str, words)), wait_ms=PATIENCE_MS, **isolation.arguments(), **where, **options)

    reply = anyio.run(ask)
    found = re.search(r"exit (?:code )?(\d+)", reply.text)
    return RunResult(int(found[1]) if found else None, reply.text, reply.is_error, reply)


INTERFACES = {"cli": by_cli, "mcp": by_mcp}


def missing_capabilities(text):
    """The capabilities that a result reports as missing: after `WITHOUT`, or listed as missing."""
    reasons = re.findall(r"(?is)(?:without|lacks:|missing)(.*)", text)
    return " ".join(reasons)
