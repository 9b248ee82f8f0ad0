"""An installation of the binary with directories, sockets and a state of its own."""

import atexit
import contextlib
import ctypes
import functools
import http.client
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from . import procs
from .agent import Agent

#: Disables kernel features before the binary runs.
WITHOUT = Path(__file__).resolve().parents[1] / "probes" / "without.py"
#: The unprivileged user that the tests run as where they are started as root.
NOBODY = 65534


def is_root():
    return os.geteuid() == 0


@functools.cache
def shared_copy(binary):
    """A copy of the binary that every user may run and that is linked, not copied, for each installation: it is large.
    It is removed at the end of the process."""
    directory = Path(tempfile.mkdtemp(prefix="ostler-binary-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    copy = directory / "ostler"
    shutil.copy2(binary, copy)
    copy.chmod(0o755)
    return copy


def link_or_copy(binary, target):
    """Puts the binary where any user may run it."""
    try:
        os.link(shared_copy(binary), target)
    except OSError:
        # Another file system.
        shutil.copy2(binary, target)
        target.chmod(0o755)


class ProblemError(AssertionError):
    """An error response with a problem document (RFC 9457)."""

    def __init__(self, status, problem):
        super().__init__(f"{status} {problem}")
        self.status = status
        self.problem = problem if isinstance(problem, dict) else {}
        self.code = self.problem.get("code")


#: A policy that asks a person before each `touch`.
ASK_TOUCH = """
default = "allow"

[[rule]]
id = "ask-touch"
prefix = ["touch"]
decision = "ask"
justification = "someone looks first"
match = ["touch x"]
not_match = ["true"]
"""


class Installation:
    """The binary in a temporary directory, run as the current or as an unprivileged user; `without`
    names kernel features that it does not have (`probes/without.py`)."""

    #: The default tool profiles of clients: most tests use the `command_*` tools. None: the binary's
    #: own default.
    tools = "core,command"

    def __init__(self, binary, user=None, parent=None, without=()):
        self.user = user
        self.without = without
        #: A prefix of its command lines (`disk.mounted`).
        self.within = ()
        # Short: the path of a socket has at most 107 bytes. Below /tmp: other users must have access.
        self.dir = Path(tempfile.mkdtemp(prefix="ostler-", dir=parent))
        self.work = self.dir / "work"
        for name in ("state", "run", "config", "home", "work"):
            (self.dir / name).mkdir(mode=0o700)
        self.binary = Path(binary)
        if user is not None:
            self.binary = self.dir / "ostler"
            link_or_copy(binary, self.binary)
            self.give(self.dir)

    def give(self, path):
        """Gives a tree to the unprivileged user. Files that are removed meanwhile, as by idle shims,
        are skipped."""
        if self.user is None:
            return
        for root, dirs, files in os.walk(path):
            for name in [root, *(os.path.join(root, entry) for entry in dirs + files)]:
                with contextlib.suppress(FileNotFoundError):
                    os.lchown(name, self.user, self.user)

    @property
    def state(self):
        return self.dir / "state" / "ostler"

    @property
    def socket(self):
        return self.dir / "run" / "ostler" / "daemon.sock"

    def executions(self):
        """The directories of executions."""
        directory = self.state / "executions"
        if not directory.is_dir():
            return []
        # Directories that idle shims prepared, or that are being removed, are not executions.
        return sorted(path for path in directory.iterdir() if not path.name.startswith("."))

    def env(self, **more):
        env = {
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            "HOME": str(self.dir / "home"),
            "XDG_STATE_HOME": str(self.dir / "state"),
            "OSTLER_STATE_DIR": str(self.state),
            "OSTLER_RUNTIME_DIR": str(self.socket.parent),
            "XDG_RUNTIME_DIR": str(self.dir / "run"),
            "XDG_CONFIG_HOME": str(self.dir / "config"),
        }
        if self.tools is not None:
            env["OSTLER_MCP_TOOLS"] = self.tools
        return env | {key: str(value) for key, value in more.items()}

    def argv(self, *args):
        """The command line that runs the binary as the user of this installation."""
        words = [str(self.binary), *map(str, args)]
        if self.without:
            user = [] if self.user is None else ["--as", str(self.user)]
            return ["/usr/bin/python3", str(WITHOUT), *user, *self.without, "--", *words]
        if self.within:
            return [*self.within, f"--wdns={self.work}", "--", *words]
        if self.user is None:
            return words
        ids = [f"--reuid={self.user}", f"--regid={self.user}", "--clear-groups"]
        return ["setpriv", *ids, *words]

    def cli(self, *args, check=True, env=None, timeout=60, **options):
        """Runs one command of the command line interface to its end."""
        options.setdefault("stdin", subprocess.DEVNULL)
        done = subprocess.run(
            self.argv(*args), cwd=self.work, env=self.env(**(env or {})), timeout=timeout,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, **options,
        )
        if check:
            assert done.returncode == 0, f"{args}: {done.returncode} {done.stderr!r} {done.stdout!r}"
        return done

    def json(self, *args):
        return json.loads(self.cli(*args, "--json").stdout)

    @contextlib.asynccontextmanager
    async def agent(self, session=None, env=None, args=()):
        """An MCP client on `ostler mcp`."""
        words = ["mcp", *(["--session", session] if session else []), *args]
        failure = None
        async with Agent.connect(self.argv(*words), self.env(**(env or {})), self.work) as agent:
            try:
                yield agent
            except Exception as error:
                # Raised after an orderly end of the client, not wrapped in its task groups.
                failure = error
        if failure is not None:
            raise failure

    def connect(self, timeout=30):
        """An HTTP connection to the daemon's socket."""
        return UnixConnection(str(self.socket), timeout, self.user)

    def rest(self, method, path, body=None, session=None, raw=False):
        """Sends one REST request; returns its JSON. Raises `ProblemError` for a problem document."""
        headers = {"Host": "localhost"}
        if session:
            headers["Ostler-Session"] = session
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            headers["Content-Type"] = "application/json"
        connection = self.connect(timeout=60)
        try:
            connection.request(method, path, body=body, headers=headers)
            answer = connection.getresponse()
            data = answer.read()
        finally:
            connection.close()
        if answer.status >= 400:
            try:
                problem = json.loads(data)
            except ValueError:
                problem = data
            raise ProblemError(answer.status, problem)
        return data if raw else (json.loads(data) if data.strip() else None)

    def daemon(self):
        """A handle to the daemon, verified to be that of this installation."""
        pid = self.rest("GET", "/api/v1/health")["pid"]
        assert procs.comm(pid) == "ostler-daemon", procs.comm(pid)
        assert pid in procs.of_directory(self.dir), "not the daemon of this installation"
        return procs.ProcessHandle(pid)

    def write_policy(self, rules):
        """Sets the command policy of the installation's user."""
        config = self.dir / "config" / "ostler"
        config.mkdir(parents=True, exist_ok=True)
        (config / "policy.toml").write_text(rules)
        self.give(config)

    def kill_daemon(self):
        daemon = self.daemon()
        daemon.kill()
        daemon.close()
        return daemon.pid

    def remove_state(self):
        """Removes the state directory while it is in use: idle shims create directories in it
        meanwhile."""

        def is_gone():
            shutil.rmtree(self.state, ignore_errors=True)
            return not self.state.exists()

        procs.until(is_gone, 20, "the removal of the state directory")

    def ours(self):
        return procs.of_directory(self.dir)

    def end_commands(self):
        """Stops running commands; their shims would rightly outlive a shutdown."""
        with contextlib.suppress(OSError, ProblemError, http.client.HTTPException):
            for entry in self.rest("GET", "/api/v1/executions?status=running")["executions"]:
                with contextlib.suppress(ProblemError):
                    self.rest("POST", f"/api/v1/executions/{entry['id']}/stop", {"force": True})

    def shut_down(self, seconds=10):
        """Shuts the daemon down and waits for all processes of the binary; returns the pids that stay."""
        held = []
        for pid in self.ours():
            with contextlib.suppress(ProcessLookupError):
                held.append(procs.ProcessHandle(pid))
        with contextlib.suppress(OSError, ProblemError, http.client.HTTPException):
            self.rest("POST", "/api/v1/shutdown")
        # One deadline for all: a hundred that stay must not take a hundred times as long.
        until = time.monotonic() + seconds
        staying = [one.pid for one in held if not one.gone(max(0, until - time.monotonic()))]
        for one in held:
            one.close()
        return staying

    def close(self):
        """Kills the remaining processes and removes the directory."""
        marked = [p for p in procs.pids() if os.fsencode(self.dir) in procs.read(p, "environ")]
        for pid in {*self.ours(), *marked}:
            with contextlib.suppress(ProcessLookupError, AssertionError):
                procs.ProcessHandle(pid).kill()
        shutil.rmtree(self.dir, ignore_errors=True)


#: The system call numbers of setresuid(2) and setresgid(2).
SETRESUID, SETRESGID = {"x86_64": (117, 119), "aarch64": (147, 149)}.get(os.uname().machine, (None, None))
LIBC = ctypes.CDLL(None, use_errno=True)


def set_effective(call, number):
    """Sets the effective id of this thread alone: the C library's calls set those of all threads,
    and a request of another thread at that moment would come from the wrong user."""
    assert call is not None, f"no system calls are known for {os.uname().machine}"
    keep = ctypes.c_long(-1)
    if LIBC.syscall(ctypes.c_long(call), keep, ctypes.c_long(number), keep) != 0:
        raise OSError(ctypes.get_errno(), "the effective id cannot be set")


@contextlib.contextmanager
def become(user):
    """Acts as the unprivileged user: the daemon checks the peer credentials of the socket."""
    if user is None:
        yield
        return
    set_effective(SETRESGID, user)
    set_effective(SETRESUID, user)
    try:
        yield
    finally:
        set_effective(SETRESUID, 0)
        set_effective(SETRESGID, 0)


class UnixConnection(http.client.HTTPConnection):
    """HTTP over a unix socket."""

    def __init__(self, path, timeout, user=None):
        super().__init__("localhost", timeout=timeout)
        self.path = path
        self.user = user

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        # Longer paths than the kernel accepts go through the directory's descriptor.
        with become(self.user):
            directory = os.open(os.path.dirname(self.path), os.O_PATH | os.O_DIRECTORY)
            try:
                self.sock.connect(f"/proc/self/fd/{directory}/{os.path.basename(self.path)}")
            finally:
                os.close(directory)
