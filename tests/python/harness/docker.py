"""A Docker engine for tests: a server of its own, with images that come from no registry.

It runs in a network and a mount namespace of its own, so that its bridge, its packet filter rules and the mounts of
its containers are gone with it, and all that it writes is below one temporary directory. Processes keep the machine's pids
and control groups. Root only.
"""

import contextlib
import http.client
import io
import json
import os
import re
import shutil
import signal
import subprocess
import tarfile
import tempfile
import urllib.parse
from pathlib import Path

from . import procs
from .installation import UnixConnection
from .services import INSTALLED

#: The images: a root of BusyBox's static program alone, and a Debian with Bash, Python and procps.
BUSYBOX, DEBIAN = "ostler-test/busybox", "ostler-test/debian"
#: The user of the images, and its uid and gid.
USER, UID = "claude", 1000
#: The hierarchies of control groups.
CGROUPS = Path("/sys/fs/cgroup")
#: The timeout for the server to accept requests, in seconds.
STARTS_SECONDS = 30
#: Set up once in the namespaces; it holds them until its standard input ends. The mounts hide what servers share with
#: those of the machine: sockets of shims in `/run`, the key of the engine in `/etc/docker`.
KEEPER = """
set -e
ip link set lo up
mount -t tmpfs tmpfs /run
mount -t overlay -o "lowerdir=/etc,upperdir=$1/etc/upper,workdir=$1/etc/work" overlay /etc
if [ -n "$2" ]; then mount -t tmpfs -o "size=$2m" tmpfs "$1/data"; fi
echo ready
exec cat
"""


class ApiError(AssertionError):
    """An error response of the engine's API."""

    def __init__(self, status, message):
        super().__init__(f"{status} {message}")
        self.status = status
        self.message = message


def search_path():
    """The directories of the engine's programs: those that `cargo xtask setup` unpacked, else the distribution's."""
    unpacked = [INSTALLED / "debian" / part for part in ("usr/sbin", "usr/bin", "usr/libexec/docker")]
    known = "/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin"
    path = ":".join([*(str(part) for part in unpacked), known])
    for name in ("dockerd", "containerd", "runc", "docker", "iptables", "ip"):
        assert shutil.which(name, path=path), f"{name} is not there; `cargo xtask setup` installs it"
    return path


class DockerEngine:
    """One server with its images. It can be killed, paused and started again. With `mebibytes`, its data is on a file
    system of this size; with `live_restore`, containers run on while it is restarted."""

    def __init__(self, images=(BUSYBOX, DEBIAN), mebibytes=None, live_restore=False):
        # Short: the path of a socket has at most 107 bytes. Below /tmp: other users must have access.
        self.dir = Path(tempfile.mkdtemp(prefix="ostler-docker-", dir="/tmp"))
        self.dir.chmod(0o711)
        for name in ("data", "exec", "home", "etc/upper", "etc/work"):
            (self.dir / name).mkdir(parents=True)
        (self.dir / "daemon.json").write_text("{}")
        self.cgroup = self.dir.name
        self.live_restore = live_restore
        self.process = None
        self._env = {"PATH": search_path(), "HOME": str(self.dir / "home"), "LANG": "C.UTF-8"}
        self._keeper = None
        try:
            self._hold_namespaces(mebibytes)
            self.start()
            for image in images:
                self.import_image(image)
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    @property
    def socket(self):
        return self.dir / "docker.sock"

    @property
    def url(self):
        """Its address, as `DOCKER_HOST` and the settings have it."""
        return f"unix://{self.socket}"

    @property
    def data(self):
        """Its data directory, also where that is a file system in its mount namespace only."""
        return Path(f"/proc/{self._keeper.pid}/root{self.dir}/data")

    # -- the server's life

    def _hold_namespaces(self, mebibytes):
        words = ["unshare", "--net", "--mount", "--propagation", "slave", "sh", "-c", KEEPER, "sh", str(self.dir),
                 str(mebibytes or "")]
        self._keeper = subprocess.Popen(
            words, env=self._env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if self._keeper.stdout.readline() != b"ready\n":
            raise AssertionError(f"no namespaces for the engine: {self._keeper.communicate()[1].decode()}")

    def _in_namespaces(self, *words):
        spaces = [f"--{kind}=/proc/{self._keeper.pid}/ns/{name}" for kind, name in (("net", "net"), ("mount", "mnt"))]
        return ["nsenter", *spaces, "--", *words]

    def start(self):
        """Starts it and waits until its API answers."""
        words = [
            "dockerd", "--config-file", self.dir / "daemon.json", "--data-root", self.dir / "data", "--exec-root",
            self.dir / "exec", "--pidfile", self.dir / "docker.pid", "--host", self.url, "--group", "root", "--cgroup-parent",
            f"/{self.cgroup}", "--exec-opt", "native.cgroupdriver=cgroupfs", "--storage-driver", "overlay2",
            "--shutdown-timeout", "2", *(["--live-restore"] if self.live_restore else [])]
        # It ends with the process that runs the tests, should that be killed.
        words = self._in_namespaces("setpriv", "--pdeathsig", "TERM", *map(str, words))
        with open(self.log_file, "ab") as log:
            self.process = subprocess.Popen(
                words, env=self._env, cwd=self.dir, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        procs.until(self._is_ready, STARTS_SECONDS, "an answer of the container engine")

    @property
    def log_file(self):
        return self.dir / "log"

    def _is_ready(self):
        assert self.process.poll() is None, f"the container engine ended: {self.log_file.read_text()[-4000:]}"
        with contextlib.suppress(OSError, http.client.HTTPException, ApiError):
            return self.api("GET", "/_ping", timeout=5) == "OK"

    def stop(self):
        """Ends it in an orderly way, and with it the containers unless it restores them."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=30)

    def kill(self):
        """Kills the server, which takes its containerd with it: its containers go on, and nobody answers."""
        containerd = int((self.dir / "exec/containerd/containerd.pid").read_text())
        self.process.kill()
        self.process.wait(timeout=10)
        # A server that starts while it is still there, if only as a zombie, would wait for it.
        procs.until(lambda: not Path(f"/proc/{containerd}").exists(), 10, "the end of containerd")

    def restart(self):
        self.stop()
        self.start()

    def pause(self):
        """Stops the server: it accepts connections and answers nothing."""
        self.process.send_signal(signal.SIGSTOP)
        procs.until(lambda: procs.status(self.process.pid, "State") == "T", what="the stop of the container engine")

    def resume(self):
        self.process.send_signal(signal.SIGCONT)

    @contextlib.contextmanager
    def paused(self):
        """It is stopped meanwhile."""
        self.pause()
        try:
            yield
        finally:
            self.resume()

    def close(self):
        """Ends it with everything of it: containers, their shims, mounts, network, control groups, files."""
        if self._keeper is not None:
            procs.until(self._kill_processes, 20, "the end of the container engine")
            if self.process is not None:
                self.process.wait(timeout=10)
            # The last process of the namespaces: the mounts, the bridge and the rules end with it.
            self._keeper.communicate(timeout=10)
        procs.until(self._remove_cgroups, 10, "the removal of the engine's control groups")
        shutil.rmtree(self.dir, ignore_errors=True)

    def _kill_processes(self):
        """Whether there are none to kill. Nothing of the engine is used again, and a shutdown would wait for containers."""
        found = self.processes()
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                handle = procs.ProcessHandle(pid)
                handle.kill()
                handle.close()
        return not found

    def processes(self):
        """The pids of the server, its helpers and its containers, without the keeper of its namespaces."""
        mine = os.readlink(f"/proc/{self._keeper.pid}/ns/mnt")
        found = self.cgroup_pids()
        for pid in procs.pids():
            with contextlib.suppress(OSError):
                if os.readlink(f"/proc/{pid}/ns/mnt") == mine:
                    found.add(pid)
        return found - {self._keeper.pid}

    def cgroup_pids(self):
        """The processes of its containers, by the control groups."""
        found = set()
        for directory in self._cgroup_directories():
            with contextlib.suppress(OSError):
                found.update(map(int, (directory / "cgroup.procs").read_text().split()))
        return found

    def _cgroup_directories(self):
        """Its control groups in every hierarchy, the innermost first."""
        tops = [CGROUPS / self.cgroup, *CGROUPS.glob(f"*/{self.cgroup}")]
        return [Path(path) for top in tops for path, _, _ in os.walk(top, topdown=False)]

    def _remove_cgroups(self):
        """Whether all are gone: one with a dying process cannot be removed yet."""
        for directory in self._cgroup_directories():
            with contextlib.suppress(OSError):
                directory.rmdir()
        return not self._cgroup_directories()

    def give_socket(self, user):
        """Lets this user, and root, use the engine."""
        os.chown(self.socket, user, -1)

    # -- requests

    def api(self, method, path, body=None, timeout=60, headers=None):
        """One request of the engine's API; its JSON, or its text. Raises `ApiError` for an error response."""
        headers = {"Host": "docker", **(headers or {})}
        if body is not None and not hasattr(body, "read"):
            body = json.dumps(body).encode()
            headers["Content-Type"] = "application/json"
        connection = UnixConnection(str(self.socket), timeout)
        try:
            connection.request(method, path, body=body, headers=headers)
            answer = connection.getresponse()
            text = answer.read().decode(errors="replace")
            kind = answer.headers.get_content_type()
        finally:
            connection.close()
        if answer.status >= 400:
            raise ApiError(answer.status, text)
        return json.loads(text) if kind == "application/json" and text.strip().count("\n") == 0 and text else text

    def cli(self, *args, check=True, timeout=60):
        """One command of the engine's command line; its output."""
        done = subprocess.run(
            ["docker", *map(str, args)], env={**self._env, "DOCKER_HOST": self.url, "DOCKER_BUILDKIT": "0"}, check=False,
            cwd=self.dir, capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL)
        if check:
            assert done.returncode == 0, f"docker {args}: {done.stderr}{done.stdout}"
        return done.stdout

    def import_image(self, name):
        """Makes an image from a root that `cargo xtask setup` prepared."""
        with contextlib.ExitStack() as stack:
            if name == BUSYBOX:
                archive = stack.enter_context(busybox_root())
            else:
                path = INSTALLED / "debian-root.tar"
                assert path.exists(), f"{path} is not there; `cargo xtask setup` makes it as root"
                archive = stack.enter_context(open(path, "rb"))
            length = archive.seek(0, io.SEEK_END)
            archive.seek(0)
            changes = [f"USER {USER}", "WORKDIR /workspace", 'CMD ["/bin/sh"]',
                       "ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]
            query = urllib.parse.urlencode({"fromSrc": "-", "repo": name, "changes": changes}, doseq=True)
            headers = {"Content-Type": "application/x-tar", "Content-Length": str(length)}
            said = str(self.api("POST", f"/images/create?{query}", archive, headers=headers))
        assert re.search("sha256:", said), said

    def containers(self, **labels):
        """All containers, running or not, that have these labels."""
        filters = {"label": [f"{name}={value}" for name, value in labels.items()]} if labels else {}
        query = urllib.parse.urlencode({"all": "true", "filters": json.dumps(filters)})
        return self.api("GET", f"/containers/json?{query}")

    def inspect(self, container):
        return self.api("GET", f"/containers/{container}/json")

    def remove_containers(self):
        """Removes all containers, whatever they run."""
        for container in self.containers():
            with contextlib.suppress(ApiError):
                self.api("DELETE", f"/containers/{container['Id']}?force=true&v=true")


@contextlib.contextmanager
def busybox_root():
    """An archive of a root with the machine's static BusyBox and a link for each of its programs."""
    program = shutil.which("busybox")
    assert program, "busybox is not there; `cargo xtask setup` installs it"
    applets = subprocess.run([program, "--list"], check=True, capture_output=True, text=True).stdout.split()
    with tempfile.TemporaryFile() as file:
        with tarfile.open(fileobj=file, mode="w") as archive:
            for name, mode, owner in (
                ("bin", 0o755, 0), ("dev", 0o755, 0), ("etc", 0o755, 0), ("home", 0o755, 0), (f"home/{USER}", 0o700, UID),
                ("proc", 0o555, 0), ("root", 0o700, 0), ("run", 0o755, 0), ("sys", 0o555, 0), ("tmp", 0o1777, 0),
                ("usr", 0o755, 0), ("var", 0o755, 0), ("workspace", 0o755, UID),
            ):
                add(archive, name, mode, owner, type=tarfile.DIRTYPE)
            add(archive, "usr/bin", 0o777, type=tarfile.SYMTYPE, linkname="../bin")
            add(archive, "bin/busybox", 0o755, data=Path(program).read_bytes())
            for name in set(applets) - {"busybox"}:
                add(archive, f"bin/{name}", 0o777, type=tarfile.SYMTYPE, linkname="busybox")
            users = f"root:x:0:0:root:/root:/bin/sh\n{USER}:x:{UID}:{UID}::/home/{USER}:/bin/sh\n"
            add(archive, "etc/passwd", 0o644, data=users.encode())
            add(archive, "etc/group", 0o644, data=f"root:x:0:\ntty:x:5:\n{USER}:x:{UID}:\n".encode())
        yield file


def add(archive, name, mode, owner=0, data=b"", **fields):
    """Adds one member to an archive."""
    member = tarfile.TarInfo(name)
    member.mode, member.uid, member.gid, member.size = mode, owner, owner, len(data)
    for field, value in fields.items():
        setattr(member, field, value)
    archive.addfile(member, io.BytesIO(data))
