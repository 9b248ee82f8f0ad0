"""A client of services, over MCP or the command line."""

import contextlib
import json
import random
import socket
import ssl
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from . import procs
from .agent import Agent
from .installation import Installation

#: A server program with the behaviours of real servers.
SERVER = Path(__file__).resolve().parents[1] / "probes" / "server.py"
PYTHON = "/usr/bin/python3"


def server_command(habit, *args):
    """The command of a server with this behaviour."""
    return [PYTHON, str(SERVER), habit, *map(str, args)]


def unique_name(name):
    """A unique name."""
    return f"{name}-{random.randrange(10**6, 10**7)}"


@dataclass
class StartResult:
    """The result of a start."""

    #: The whole result as text for people.
    text: str
    ready: bool
    #: `ServiceBody` of REST: the service as it was then.
    service: dict

    @property
    def state(self):
        return self.service["execution"]["service"]

    @property
    def id(self):
        return self.service["execution"]["id"]

    @property
    def uuid(self):
        return self.service["execution"]["uuid"]

    @property
    def name(self):
        return self.service["name"]

    @property
    def status(self):
        return self.service["status"]

    @property
    def url(self):
        return self.state["url"]

    @property
    def ports(self):
        return [port["port"] for port in self.state["ports"]]

    @property
    def pid(self):
        return self.service["execution"]["os_pid"]


class ServiceClient:
    """Starts and queries the services of one installation."""

    def __init__(self, installation: Installation, agent: Agent | None = None):
        self.installation = installation
        self.agent = agent

    @classmethod
    @contextlib.asynccontextmanager
    async def open(cls, interface, installation, **options):
        """`mcp`: the tool `service`; `cli`: `ostler service`."""
        if interface == "cli":
            yield cls(installation)
            return
        async with installation.agent(args=["--tools", "core"], **options) as agent:
            yield cls(installation, agent)

    async def start(self, command, verb="start", name=None, **options):
        """Starts a service and waits until it is ready or has failed."""
        name = name or unique_name("service")
        if self.agent:
            reply = await self.agent.call("service", action=verb, name=name, command=command, **options)
            event = reply.structured or {}
            found = self.service(event["name"]) if "name" in event else None
            return StartResult(reply.text, event.get("event") == "service_ready", found)
        named = ["--name", name] if verb == "start" else [name]
        words = [*named, *flags(options), "--", *command]
        done = self.installation.cli("service", verb, "--json", *words, check=False)
        if not done.stdout.strip():
            return StartResult(done.stderr.decode(), False, None)
        document = json.loads(done.stdout)
        why = (document.get("waited") or {}).get("why")
        return StartResult(document["message"], why == "ready", document["service"])

    async def ensure(self, command, **options):
        return await self.start(command, verb="ensure", **options)

    async def up(self, *names):
        """Starts the services of `ostler.toml` by the command line; the results by name."""
        done = self.installation.cli("service", "up", "--json", *names, check=False)
        assert done.stdout.strip(), done
        document = json.loads(done.stdout)
        document = document if isinstance(document, list) else [document]
        return {
            one["service"]["name"]: StartResult(one["message"], (one.get("waited") or {}).get("why") == "ready", one["service"])
            for one in document
        }

    def service(self, name):
        """`ServiceBody` of REST; does not count as a notification of any client."""
        return self.installation.rest("GET", f"/api/v1/services/{name}?cwd={self.installation.work}")

    def status(self, name):
        return self.service(name)["status"]

    def settled(self, name, *allowed, seconds=20):
        """Waits until its status is one of these; returns the service."""

        def there():
            found = self.service(name)
            return found if found["status"] in allowed else None

        return procs.until(there, seconds, f"a status of {allowed} of {name}")

    def why(self, name):
        """The output of `ostler service why`."""
        return self.installation.cli("service", "why", name).stdout.decode()

    def stop(self, name, **body):
        """`ServiceStoppedBody` of REST."""
        return self.installation.rest("POST", f"/api/v1/services/{name}/stop", body)

    def list(self):
        found = self.installation.rest("GET", f"/api/v1/services?cwd={self.installation.work}")
        return {service["name"]: service for service in found["services"]}


def flags(options):
    """The options of the tool as flags of the command line."""
    words = []
    for key, value in options.items():
        if key == "wait_ms":
            words += ["--timeout", f"{value}ms"] if value else ["--no-wait"]
        elif key == "timeout":
            words += ["--timeout", f"{value}s"]
        elif key == "env":
            words += [word for name, text in value.items() for word in ("-e", f"{name}={text}")]
        elif key == "depends_on":
            words += [word for name in value for word in ("--depends-on", name)]
        elif key == "ready_when" and value.startswith("/"):
            words += ["--ready-when", f"http:{value}"]
        else:
            words += [f"--{key.replace('_', '-')}", str(value)]
    return words


def answer(url, seconds=10):
    """Status and body of one request, without a retry; certificates are not verified."""
    anything = ssl._create_unverified_context()
    handlers = [urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=anything)]
    try:
        with urllib.request.build_opener(*handlers).open(url, timeout=seconds) as got:
            return got.status, got.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def listens(port, host="127.0.0.1"):
    with contextlib.suppress(OSError), socket.create_connection((host, port), timeout=5):
        return True
    return False
