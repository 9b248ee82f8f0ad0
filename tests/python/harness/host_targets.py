"""Targets on the host that a sandboxed command must not reach: files, processes, listeners."""

import ctypes
import json
import os
import random
import shutil
import socket
import subprocess
import sys
import threading
from pathlib import Path

from .procs import ProcessHandle, until

#: The uid of the set-user-id program's owner; belongs to no user.
SETUID_OWNER = 4242
LIBC = ctypes.CDLL(None, use_errno=True)
IPC_CREAT, IPC_RMID = 0o1000, 0
#: A process that keeps a file open and waits.
SLEEPER = "import os,sys,signal; print(os.open(sys.argv[1], os.O_RDONLY), flush=True); signal.pause()"


class HostTargets:
    """The targets of the attempts on one installation; `facts` holds their locations."""

    def __init__(self, installation):
        self.installation = installation
        self.secret = f"secret-{random.randrange(10**12)}"
        self.mark = f"ostler-mark-{random.randrange(10**9)}"
        self.directory = installation.dir / "outside"
        self.precious = self.directory / "precious"
        self._sockets = []
        self.facts = {
            "secret": self.secret, "mark": self.mark, "outside": str(self.directory),
            "home": str(installation.dir / "home"), "state": str(installation.state), "socket": str(installation.socket),
            "config": str(installation.dir / "config"), "address": own_address(), "setuid_owner": SETUID_OWNER,
        }
        self._files()
        self._processes()
        self._listeners()
        self._shared_memory()

    def _files(self):
        home = self.installation.dir / "home"
        self.directory.mkdir()
        for name in (".ssh", ".aws"):
            (home / name).mkdir(mode=0o700)
        config = self.installation.dir / "config" / "ostler"
        config.mkdir(exist_ok=True)
        with open(config / "config.toml", "a") as file:
            file.write(f"# {self.secret}\n")
        for path in (self.precious, home / ".ssh" / "id_ed25519", home / ".aws" / "credentials", home / ".netrc"):
            path.write_text(self.secret + "\n")
            path.chmod(0o600)
        (home / ".profile").write_text("# untouched\n")
        work = self.installation.work
        (work / "found-link").symlink_to(self.precious)
        (work / "found-directory-link").symlink_to(self.directory)
        self.installation.give(self.installation.dir)
        program = work / "setuid-id"
        shutil.copy("/usr/bin/id", program)
        if os.geteuid() == 0:
            os.chown(program, SETUID_OWNER, SETUID_OWNER)
        program.chmod(0o4755)

    def _processes(self):
        words = [sys.executable, "-c", SLEEPER, str(self.precious), self.mark]
        if self.installation.user is not None:
            words = ["setpriv", f"--reuid={self.installation.user}", f"--regid={self.installation.user}", "--clear-groups",
                     "/usr/bin/python3", *words[1:]]
        self.sleeper = subprocess.Popen(words, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
        self.facts["sleeper_fd"] = int(self.sleeper.stdout.readline())
        self.facts["sleeper"] = self.sleeper.pid
        with open(f"/proc/{self.sleeper.pid}/maps") as maps:
            readable = next(line for line in maps if " r--p " in line or " rw-p " in line)
        self.facts["sleeper_address"] = int(readable.split("-")[0], 16)

    def _listeners(self):
        abstract = f"ostler-test-{random.randrange(10**9)}"
        path = self.directory / "listener.sock"
        self.facts |= {"abstract": abstract, "unix": str(path)}
        tcp = self._listen(socket.AF_INET, ("0.0.0.0", 0))
        self.facts["tcp_port"] = tcp.getsockname()[1]
        self._listen(socket.AF_UNIX, "\0" + abstract)
        self._listen(socket.AF_UNIX, str(path))
        path.chmod(0o666)
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        udp.bind(("0.0.0.0", 0))
        self.facts["udp_port"] = udp.getsockname()[1]
        self._sockets.append(udp)
        threading.Thread(target=self._echo, args=(udp,), daemon=True).start()

    def _listen(self, family, address):
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.bind(address)
        listener.listen()
        self._sockets.append(listener)
        threading.Thread(target=self._greet, args=(listener,), daemon=True).start()
        return listener

    def _greet(self, listener):
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                connection.sendall(self.secret.encode())

    def _echo(self, udp):
        while True:
            try:
                _, sender = udp.recvfrom(2000)
                if sender is None:
                    return
                udp.sendto(self.secret.encode(), sender)
            except OSError:
                return

    def _shared_memory(self):
        self.facts["shm_key"] = random.randrange(1, 2**31 - 1)
        self._segment = LIBC.shmget(self.facts["shm_key"], 4096, IPC_CREAT | 0o666)
        assert self._segment >= 0, os.strerror(ctypes.get_errno())
        self._shm = Path("/dev/shm") / self.mark
        self._shm.write_text(self.secret)
        self._shm.chmod(0o644)
        self.facts["shm_file"] = self.mark

    def engine(self):
        """Starts the daemon and another execution, whose files are targets too."""
        self.installation.cli("run", "--", "echo", self.secret)
        with_secret = max(self.installation.executions(), key=lambda path: path.stat().st_mtime)
        self.facts["other"] = str(with_secret)
        self.facts["daemon"] = self.installation.rest("GET", "/api/v1/health")["pid"]

    def write(self, directory):
        """Writes the facts to a file in a directory, next to the program that makes the attempts."""
        probe = Path(__file__).resolve().parents[1] / "probes" / "attempts.py"
        shutil.copy(probe, directory / "attempts.py")
        (directory / "facts.json").write_text(json.dumps(self.facts))
        self.installation.give(directory / "attempts.py")
        for name in ("attempts.py", "facts.json"):
            (directory / name).chmod(0o644)

    def assert_unharmed(self):
        """Asserts that all targets are unchanged."""
        home = self.installation.dir / "home"
        assert self.precious.read_text() == self.secret + "\n"
        assert sorted(entry.name for entry in self.directory.iterdir()) == ["listener.sock", "precious"]
        assert (home / ".profile").read_text() == "# untouched\n"
        assert self.sleeper.poll() is None, "the process outside was ended"
        with open(f"/proc/{self.sleeper.pid}/status") as status:
            assert "TracerPid:\t0\n" in status.read()

    def close(self):
        for one in self._sockets:
            # Wakes the thread that blocks on it.
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            one.close()
        held = ProcessHandle(self.sleeper.pid)
        held.kill()
        held.close()
        self.sleeper.wait()
        self.sleeper.stdout.close()
        LIBC.shmctl(self._segment, IPC_RMID, None)
        self._shm.unlink(missing_ok=True)


def own_address():
    """An address of this machine other than 127.0.0.1; nothing is sent to find it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
            return probe.getsockname()[0]
        except OSError:
            return "127.0.0.2"


def removed(path, seconds=5):
    until(lambda: not path.exists(), seconds, f"the end of {path}")
