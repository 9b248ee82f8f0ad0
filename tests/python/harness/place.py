"""One installation of the binary with directories, sockets and a state of its own."""

import contextlib
import ctypes
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

#: Takes pieces of the kernel away before the binary runs.
WITHOUT = Path(__file__).resolve().parents[1] / "probes" / "without.py"
#: The ordinary user that the tests become where they run as root.
NOBODY = 65534


def is_root():
    return os.geteuid() == 0


class Refused(AssertionError):
    """A problem document."""

    def __init__(self, status, problem):
        super().__init__(f"{status} {problem}")
        self.status = status
        self.problem = problem if isinstance(problem, dict) else {}
        self.code = self.problem.get("code")


class Place:
    """The binary at home in a temporary directory, as ourselves or as an ordinary user; `without`
    names what of the kernel it does not have (`probes/without.py`)."""

    #: The tools that clients are offered who do not say: most tests run commands by the names of
    #: document 000. None: the binary's own default.
    tools = "core,command"

    def __init__(self, binary, user=None, parent=None, without=()):
        self.user = user
        self.without = without
        #: What its command lines begin with (`disk.mounted`).
        self.within = ()
        # Short: a socket's path has 107 bytes. Below /tmp: others must be able to enter.
        self.dir = Path(tempfile.mkdtemp(prefix="ostler-", dir=parent))
        self.work = self.dir / "work"
        for name in ("state", "run", "config", "home", "work"):
            (self.dir / name).mkdir(mode=0o700)
        self.binary = Path(binary)
        if user is not None:
            self.binary = self.dir / "ostler"
            shutil.copy2(binary, self.binary)
            self.binary.chmod(0o755)
            self.give(self.dir)

    def give(self, path):
        """Hands a tree to the ordinary user. What somebody who uses it removes meanwhile, as idle
        shims do what they prepared, needs no owner."""
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
        # What idle shims have ready, and what is being removed, is nobody's execution.
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
        """The command line that runs the binary as the user of this place."""
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
        """Runs one command of the command line to its end."""
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
                # Told after an orderly end of the client, not wrapped in its task groups.
                failure = error
        if failure is not None:
            raise failure

    def connect(self, timeout=30):
        """A bare connection to the daemon's socket."""
        return UnixConnection(str(self.socket), timeout, self.user)

    def rest(self, method, path, body=None, session=None, raw=False):
        """One REST request; its JSON. Raises `Refused` for a problem document."""
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
            raise Refused(answer.status, problem)
        return data if raw else (json.loads(data) if data.strip() else None)

    def daemon(self):
        """The daemon, held; verified to be ours."""
        pid = self.rest("GET", "/api/v1/health")["pid"]
        assert procs.comm(pid) == "ostler-daemon", procs.comm(pid)
        assert pid in procs.of_directory(self.dir), "not the daemon of this place"
        return procs.Held(pid)

    def kill_daemon(self):
        daemon = self.daemon()
        daemon.kill()
        daemon.close()
        return daemon.pid

    def remove_state(self):
        """Removes the state directory under whoever uses it: idle shims prepare directories in it
        meanwhile."""

        def is_gone():
            shutil.rmtree(self.state, ignore_errors=True)
            return not self.state.exists()

        procs.until(is_gone, 20, "the removal of the state directory")

    def ours(self):
        return procs.of_directory(self.dir)

    def end_commands(self):
        """Ends what still runs; shims that have a command would rightly outlive a shutdown."""
        with contextlib.suppress(OSError, Refused, http.client.HTTPException):
            for entry in self.rest("GET", "/api/v1/executions?status=running")["executions"]:
                with contextlib.suppress(Refused):
                    self.rest("POST", f"/api/v1/executions/{entry['id']}/stop", {"force": True})

    def shut_down(self, seconds=10):
        """Asks the daemon to end and waits until nothing of the binary is left."""
        held = []
        for pid in self.ours():
            with contextlib.suppress(ProcessLookupError):
                held.append(procs.Held(pid))
        with contextlib.suppress(OSError, Refused, http.client.HTTPException):
            self.rest("POST", "/api/v1/shutdown")
        # All of them within that time: a hundred that stay must not take a hundred times as long.
        until = time.monotonic() + seconds
        staying = [one.pid for one in held if not one.gone(max(0, until - time.monotonic()))]
        for one in held:
            one.close()
        return staying

    def close(self):
        """Ends whatever is left here and removes the directory."""
        marked = [p for p in procs.pids() if os.fsencode(self.dir) in procs.read(p, "environ")]
        for pid in {*self.ours(), *marked}:
            with contextlib.suppress(ProcessLookupError, AssertionError):
                procs.Held(pid).kill()
        shutil.rmtree(self.dir, ignore_errors=True)


#: The kernel's numbers of setresuid(2) and setresgid(2).
SETRESUID, SETRESGID = {"x86_64": (117, 119), "aarch64": (147, 149)}.get(os.uname().machine, (None, None))
LIBC = ctypes.CDLL(None, use_errno=True)


def set_effective(call, number):
    """Sets the effective id of this thread alone: the C library's calls set those of all threads,
    and a request that another thread makes at that moment would come from somebody else."""
    assert call is not None, f"no system calls are known for {os.uname().machine}"
    keep = ctypes.c_long(-1)
    if LIBC.syscall(ctypes.c_long(call), keep, ctypes.c_long(number), keep) != 0:
        raise OSError(ctypes.get_errno(), "the effective id cannot be set")


@contextlib.contextmanager
def become(user):
    """Acts as the ordinary user for a moment; the socket's other side asks the kernel who."""
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
        # Longer paths than the kernel takes go through the directory's descriptor.
        with become(self.user):
            directory = os.open(os.path.dirname(self.path), os.O_PATH | os.O_DIRECTORY)
            try:
                self.sock.connect(f"/proc/self/fd/{directory}/{os.path.basename(self.path)}")
            finally:
                os.close(directory)
