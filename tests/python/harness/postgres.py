"""A server of PostgreSQL for tests: an unprivileged user's, reached by a socket in a temporary directory."""

import contextlib
import os
import queue
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
from pathlib import Path

from .installation import NOBODY, is_root
from .procs import ProcessHandle, until

ROOT = Path(__file__).resolve().parents[3]

#: The role that daemons use, and its password.
ROLE, PASSWORD = "ostler", "canary-of-the-password"

#: The owner of the server is believed; the role needs its password.
ACCESS = """\
local all postgres trust
local all all scram-sha-256
host all all 127.0.0.1/32 scram-sha-256
"""


def programs(copies):
    """The directory of its programs: of the distribution, or a copy of what `cargo xtask setup` unpacked, which may be where
    the unprivileged user has no access."""
    def below(root):
        found = sorted(root.glob("usr/lib/postgresql/*/bin"))
        return [path for path in found if (path / "initdb").exists() and (path / "psql").exists()]

    unpacked = ROOT / "target" / "servers" / "debian"
    if not below(Path("/")) and below(unpacked):
        for part in ("usr/lib/postgresql", "usr/share/postgresql"):
            shutil.copytree(unpacked / part, copies / part, symlinks=True)
    found = below(Path("/")) or below(copies)
    assert found, "PostgreSQL is not there; `cargo xtask setup` installs it"
    return found[0]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class PostgresServer:
    """One server with any number of databases. It can be killed and started again."""

    def __init__(self):
        self.dir = Path(tempfile.mkdtemp(prefix="ostler-pg-", dir="/tmp"))
        self.port = free_port()
        self.process = None
        self._programs = programs(self.dir)
        self._databases = 0
        if is_root():
            os.chown(self.dir, NOBODY, NOBODY)
        self._run("initdb", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync")
        (self.dir / "data" / "pg_hba.conf").write_text(ACCESS)
        self.start()
        self.psql(f"CREATE ROLE {ROLE} LOGIN PASSWORD '{PASSWORD}'")

    def _argv(self, name, *args):
        user = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"] if is_root() else []
        return [*user, str(self._programs / name), "-D", str(self.dir / "data"), *args]

    def _run(self, name, *args):
        subprocess.run(self._argv(name, *args), cwd=self.dir, check=True, capture_output=True, timeout=60)

    def start(self):
        """Starts it and waits until it accepts connections."""
        options = ["-k", str(self.dir), "-p", str(self.port), "-c", "listen_addresses=127.0.0.1", "-c", "fsync=off"]
        self.process = subprocess.Popen(
            self._argv("postgres", *options), cwd=self.dir, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        is_ready = queue.Queue()

        def read(log):
            for line in log:
                if "ready to accept connections" in line:
                    is_ready.put(True)
            is_ready.put(False)

        threading.Thread(target=read, args=(self.process.stderr,), daemon=True).start()
        assert is_ready.get(timeout=60), "the server ended"

    def processes(self):
        """Handles of all of its processes, the first one first."""
        leader = self.process.pid
        children = Path(f"/proc/{leader}/task/{leader}/children").read_text().split()
        for pid in (leader, *map(int, children)):
            with contextlib.suppress(ProcessLookupError):
                yield ProcessHandle(pid)

    def kill(self):
        """Kills all of its processes at once, as a loss of power does."""
        killed = list(self.processes())
        for one in killed:
            with contextlib.suppress(ProcessLookupError):
                one.kill()
        self.process.wait()
        for one in killed:
            one.gone(20)
            one.close()

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        self.process.wait(timeout=60)

    @contextlib.contextmanager
    def paused(self):
        """All of its processes are stopped meanwhile: it accepts connections and answers nothing."""
        stopped = list(self.processes())
        for one in stopped:
            os.kill(one.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for one in stopped:
                os.kill(one.pid, signal.SIGCONT)
                one.close()

    def psql(self, sql, database="postgres"):
        """Executes statements as the owner of the server; returns what they print."""
        words = [str(self._programs / "psql"), "-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-h", str(self.dir),
                 "-p", str(self.port), "-U", "postgres", "-d", database, "-c", sql]
        done = subprocess.run(words, check=False, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, f"{sql}: {done.stderr}"
        return done.stdout.strip()

    @contextlib.contextmanager
    def session(self, sql, database):
        """Executes statements in a session that stays open meanwhile."""
        words = [str(self._programs / "psql"), "-X", "-A", "-t", "-q", "-h", str(self.dir), "-p", str(self.port),
                 "-U", "postgres", "-d", database]
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as session:
            session.stdin.write(f"{sql};\nSELECT 'done';\n")
            session.stdin.flush()
            assert session.stdout.readline().strip() == "done"
            yield
            session.stdin.close()
            session.wait(timeout=30)

    def new_name(self):
        self._databases += 1
        return f"history_{self._databases}"

    def create_database(self, name=None):
        """A database of the role; returns its name."""
        name = name or self.new_name()
        self.psql(f"CREATE DATABASE {name} OWNER {ROLE}")
        return name

    def url(self, database):
        """The address of a database, by the socket."""
        return f"postgresql:///{database}?host={self.dir}&port={self.port}&user={ROLE}"

    def tcp_url(self, database):
        return f"postgresql://{ROLE}@127.0.0.1:{self.port}/{database}"

    def close(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGQUIT)
            self.process.wait(timeout=60)
        shutil.rmtree(self.dir, ignore_errors=True)
