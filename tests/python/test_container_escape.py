"""What a command in a container cannot do or see, and what a request cannot ask for."""

import os

import pytest

from harness import procs, until
from harness.backend import INSIDE
from harness.docker import BUSYBOX, DEBIAN
from harness.installation import ProblemError

pytestmark = pytest.mark.root

#: What of the host a container has mounted besides its workspace: single files that the engine makes, and the init.
ENGINE_FILES = {"/etc/resolv.conf", "/etc/hostname", "/etc/hosts"}


@pytest.fixture
def debian(make_container_backend, docker_engine):
    """Commands of an image with Python."""
    return make_container_backend(docker_engine, DEBIAN)


@pytest.fixture
def as_root(make_container_backend, docker_engine):
    """The same as root of the container, without capabilities."""
    return make_container_backend(docker_engine, DEBIAN, 'user = "0:0"')


def mounts(backend):
    """The mounts of a container: mount point, the mounted directory of its file system, type."""
    lines = backend.run("cat /proc/self/mountinfo").out.decode().splitlines()
    found = []
    for line in lines:
        before, after = line.split(" - ")
        found.append((before.split()[4], before.split()[3], after.split()[0]))
    return found


# ---- what is there


def test_no_directory_of_the_host_is_mounted_but_the_workspace(container_backend):
    kernel = ("proc", "sysfs", "tmpfs", "devpts", "mqueue", "cgroup", "cgroup2", "overlay")
    of_host = {point: root for point, root, kind in mounts(container_backend) if kind not in kernel}
    # On a tmpfs of the host, by their place in it.
    work = str(container_backend.work)
    of_host |= {point: root for point, root, kind in mounts(container_backend)
                if kind == "tmpfs" and root.startswith("/ostler-")}
    beyond = {point: root for point, root in of_host.items() if point not in ENGINE_FILES}
    ours = {point for point in beyond if point.startswith("/run/ostler")}
    assert set(beyond) - ours == {INSIDE} and work.endswith(beyond[INSIDE]), beyond
    assert len(ours) <= 2, ours


def test_the_engine_cannot_be_reached(debian):
    seen = debian.run("find / -xdev -type s 2>/dev/null; find / -name 'docker*.sock' 2>/dev/null; ls -A /run/ostler").out.decode().split()
    assert not any("docker" in path or "containerd" in path for path in seen), seen
    connect = f"import socket; socket.socket(socket.AF_UNIX).connect('{debian.engine.socket}')"
    result = debian.run(["python3", "-c", connect])
    assert result.code != 0 and b"No such file" in result.err, result
    assert not os.environ.get("DOCKER_HOST") and b"DOCKER_HOST" not in debian.run("env").out


def test_nothing_of_ours_can_be_seen(debian):
    paths = [debian.installation.state, debian.installation.dir, debian.installation.socket, debian.installation.binary]
    for path in paths:
        assert debian.run(["ls", "-d", str(path)]).code != 0, path
    seen = debian.run("find / -xdev -name '*.seg' -o -xdev -name 'daemon.sock' -o -xdev -name 'spec.json' 2>/dev/null").out
    assert seen == b"", seen
    # A workspace that contains the state directory would show it.
    with pytest.raises(ProblemError) as refused:
        debian.run("ls", cwd=str(debian.installation.dir))
    assert "workspace" in str(refused.value), refused.value


def test_a_link_in_the_workspace_leads_nowhere(container_backend):
    outside = container_backend.installation.dir / "outside"
    outside.write_text("of the host\n")
    outside.chmod(0o644)
    (container_backend.work / "link").symlink_to(outside)
    (container_backend.work / "etc").symlink_to("/etc")
    result = container_backend.run("cat link; cat etc/passwd | grep -c claude")
    assert b"of the host" not in result.out and result.out == b"1\n", result


def test_processes_of_the_host_cannot_be_seen_or_signalled(debian):
    own, daemon = os.getpid(), debian.installation.daemon().pid
    script = f"""
import os
pids = [int(name) for name in os.listdir('/proc') if name.isdigit()]
print(len(pids), max(pids))
for pid in ({own}, {daemon}):
    try: os.kill(pid, 0); print('reached', pid)
    except ProcessLookupError: print('none')
try: os.kill(-1, 0); print('all of its own')
except ProcessLookupError: print('nobody')
"""
    lines = debian.run(["python3", "-c", script]).out.decode().splitlines()
    count, highest = map(int, lines[0].split())
    assert count < 20 and highest < 1000 and lines[1:3] == ["none", "none"], lines


def test_a_command_cannot_end_the_init_or_other_commands_shims(debian):
    """As the same user in one pid namespace, it may end other commands, but not the init, whose end would be theirs."""
    other = debian.start("echo up; until [ -e go ]; do sleep 0.05; done; exit 6")
    debian.shows(other, "up")
    result = debian.run("kill -KILL 1; kill -TERM 1; kill -HUP 1; kill -STOP 1; cat /proc/1/environ; echo still here")
    assert b"still here" in result.out and b"OSTLER" not in result.out, result
    assert debian.run("echo fine").out == b"fine\n"
    (debian.work / "go").touch()
    assert debian.ended(other).code == 6


#: Connects to the init as the shim does, and tells what comes of it.
CONNECT = """
import glob, socket
for path in glob.glob('/run/ostler/*'):
    one = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    one.settimeout(5)
    try:
        one.connect(path)
        one.send(bytes([1, 0]))
        answer = one.recv(100)
        print('answer', answer)
    except OSError as error:
        print('refused', error)
print('tried')
"""


def test_commands_cannot_speak_with_the_init(debian):
    result = debian.run(["python3", "-c", CONNECT])
    assert b"tried" in result.out and b"Started" not in result.out, result
    assert result.out.decode().splitlines()[0] in ("answer b''", "tried") or "refused" in result.out.decode(), result


#: Takes the init's place in the file system.
REPLACE = """
import glob, os, socket, time
path = '/run/ostler/init.sock'
try:
    os.unlink(path)
    one = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    one.bind(path)
    os.chmod(path, 0o777)
    one.listen()
    print('replaced', flush=True)
except OSError as error:
    print('refused', error, flush=True)
    raise SystemExit
one.settimeout(20)
while not os.path.exists('go'):
    try:
        peer, _ = one.accept()
        print('taken', peer.recv(65536), flush=True)
    except OSError:
        break
"""


def test_a_command_that_replaces_the_socket_gets_no_other_command(debian):
    impostor = debian.start(["python3", "-c", REPLACE])
    debian.shows(impostor, "replaced|refused")
    result = debian.run("echo fine; exit 3", env=[["PRIVATE", "canary-of-the-next"]])
    assert (result.code, result.out) == (3, b"fine\n"), "it runs elsewhere, or by the true init"
    debian.stop(impostor, force=True)
    assert "canary" not in debian.text(impostor)


# ---- what is forbidden


ATTEMPTS = {
    "mount": "mount -t tmpfs none /tmp",
    "bind mount": "mount --bind /workspace /tmp",
    "remount": "mount -o remount,rw /",
    "unmount": "umount /workspace",
    "user namespace": "unshare --user true",
    "mount namespace": "unshare --mount true",
    "chroot": "chroot /workspace true",
    "device": "mknod /tmp/disk b 254 0",
    "sysctl": "echo 1 > /proc/sys/kernel/panic",
    "sysrq": "echo h > /proc/sysrq-trigger",
    "cgroup": "mkdir /sys/fs/cgroup/memory/inner || mkdir /sys/fs/cgroup/inner",
    "cgroup limit": "echo 999999999 > /sys/fs/cgroup/memory/memory.limit_in_bytes || echo max > /sys/fs/cgroup/memory.max",
    "sysfs": "echo 1 > /sys/kernel/mm/ksm/run",
    "root": "touch /etc/new",
    "shadow": "cat /etc/shadow",
    "host name": "hostname other",
    "raw socket": "python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)'",
    "clock": "date -s '2000-01-01'",
    "kernel log": "dmesg",
    "namespace of the init": "nsenter --target 1 --mount true",
    "memory of the init": "head -c 1 /proc/1/mem",
    "core pattern": "echo '|/workspace/x' > /proc/sys/kernel/core_pattern",
}


@pytest.mark.parametrize("user", ["user", "root without capabilities"])
def test_what_is_forbidden_fails(request, user):
    backend = request.getfixturevalue("debian" if user == "user" else "as_root")
    backend.work.chmod(0o755)
    script = "\n".join(f"({command}) >/dev/null 2>&1 && echo 'it could: {name}'" for name, command in ATTEMPTS.items())
    result = backend.run(f"{script}\necho tried")
    could = result.out.decode().splitlines()
    # Root owns the file, which is the image's.
    allowed = {"it could: shadow"} if user != "user" else set()
    assert set(could) - allowed == {"tried"}, could


def test_a_setuid_program_gives_nothing(make_container_backend, docker_engine, tmp_path):
    """Of an image, where a user may have put one."""
    (tmp_path / "Containerfile").write_text(
        f"FROM {DEBIAN}\nUSER 0:0\nRUN cp /usr/bin/id /usr/local/bin/rootid && chmod 4755 /usr/local/bin/rootid\nUSER 1000:1000\n")
    docker_engine.cli("build", "--file", tmp_path / "Containerfile", "--network", "none", "--tag", "ostler-test/setuid", tmp_path, timeout=55)
    backend = make_container_backend(docker_engine, "ostler-test/setuid")
    result = backend.run(["rootid", "-u"])
    assert result.out == b"1000\n", result


def test_tracing_reaches_own_processes_only(debian):
    script = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
SEIZE = 0x4206
for pid in range(1, 400):
    if pid != os.getpid() and os.path.exists(f'/proc/{pid}') and libc.ptrace(SEIZE, pid, 0, 0) == 0:
        print('traced', pid, open(f'/proc/{pid}/comm').read().strip())
print('tried')
"""
    result = debian.run(["python3", "-c", script])
    assert b"tried" in result.out and b"traced 1 " not in result.out, result


# ---- what requests cannot ask for


def volume(host, container="/data", **more):
    return {"volumes": [{"host": str(host), "container": container, **more}]}


REFUSED = {
    "the host's network": {"network": "host"},
    "the network of another container": {"network": "container:other"},
    "an unknown network": {"network": "build"},
    "root": {"user": "root"},
    "root by number": {"user": "0"},
    "the group of root": {"user": "1000:0"},
    "a capability": {"cap_add": ["SYS_ADMIN"]},
    "all capabilities": {"cap_add": ["ALL"]},
    "a writable root": {"read_only_root": False},
    "new privileges": {"no_new_privileges": False},
    "privileged": {"privileged": True},
    "devices": {"devices": ["/dev/vda"]},
    "the host's processes": {"pid_mode": "host"},
    "security options": {"security_opt": ["seccomp=unconfined"]},
    "a volume": volume("/srv"),
    "the root as a volume": volume("/"),
    "processes as a volume": volume("/proc"),
    "devices as a volume": volume("/dev"),
    "sockets as a volume": volume("/run"),
    "the usual engine socket": volume("/var/run/docker.sock", "/var/run/docker.sock"),
    "an image of options": {"image": "--privileged"},
    "an image of a path": {"image": "../../containers/json"},
    "a name server that is none": {"dns": ["example.org"]},
    "a proxy with a password": {"proxy": "http://me:secret@192.0.2.1:3128"},
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_request_cannot_ask_for(container_backend, what):
    with pytest.raises(ProblemError) as refused:
        container_backend.run("echo ran", container=REFUSED[what])
    assert refused.value.status in (400, 403, 422), refused.value
    assert container_backend.containers() == []


def test_volumes_that_would_open_a_way_out_are_refused(make_container_backend, docker_engine):
    """Also where the settings permit everything around them."""
    backend = make_container_backend(docker_engine, settings='volumes = ["/:rw"]')
    installation = backend.installation
    link = installation.dir / "link"
    link.symlink_to(installation.state)
    to_socket = installation.dir / "socket-link"
    to_socket.symlink_to(docker_engine.socket)
    good = installation.dir / "good"
    good.mkdir(mode=0o755)
    (good / "file").write_text("good\n")
    cases = [
        volume(docker_engine.socket), volume(docker_engine.dir), volume(docker_engine.dir, write=True), volume(to_socket),
        volume("/tmp"), volume(installation.state), volume(installation.state / "executions"), volume(link),
        volume(installation.dir), volume("/"), volume("/proc"), volume("/sys"), volume("/dev"), volume("/run"),
        volume("/no/such/directory"), volume("relative"), volume(f"{good}/../.."),
        volume(good, "/workspace"), volume(good, "/proc"), volume(good, "/run/ostler"), volume(good, "/run/secrets"),
        volume(good, "relative"), volume(good, "/data/../proc"), volume(good, "/"),
        {"volumes": [{"host": str(good), "container": "/a"}, {"host": str(good), "container": "/a"}]},
    ]
    for case in cases:
        with pytest.raises(ProblemError) as refused:
            backend.run("echo ran", container=case)
        assert refused.value.status in (400, 403, 404, 422), (case, refused.value)
    assert backend.containers() == []
    assert backend.run("cat /data/file", container=volume(good)).out == b"good\n"


def test_settings_bound_images_users_and_volumes(make_container_backend, docker_engine, tmp_path):
    (tmp_path / "read").mkdir()
    (tmp_path / "write").mkdir()
    settings = f"""
        images = ["{BUSYBOX}", "ostler-test/ex*"]
        users = ["1000:5"]
        networks = ["none"]
        volumes = ["{tmp_path}/read", "{tmp_path}/write:rw"]
    """
    backend = make_container_backend(docker_engine, settings=settings)
    for case in (
        {"image": DEBIAN}, {"user": "1001"}, {"user": "claude"}, {"network": "bridge"}, volume(tmp_path),
        volume(tmp_path / "read", write=True), volume(f"{tmp_path}/reader"),
    ):
        with pytest.raises(ProblemError) as refused:
            backend.run("echo ran", container=case)
        assert "container." in str(refused.value) or "no such" in str(refused.value).lower(), (case, refused.value)
    for case in ({"user": "1000:5"}, {"network": "none"}, volume(tmp_path / "read"), volume(tmp_path / "write", write=True)):
        assert backend.run("echo fine", container=case).out == b"fine\n", case


def test_options_of_a_container_need_one(container_backend):
    body = {"command": {"shell": {"shell": "sh", "script": "true"}}, "cwd": str(container_backend.work), "container": {"network": "none"}}
    with pytest.raises(ProblemError) as refused:
        container_backend.rest("POST", "executions", body)
    assert "container" in str(refused.value), refused.value
    for isolation in ({"isolation": "high"}, {"isolation": "basic"}):
        with pytest.raises(ProblemError):
            container_backend.rest("POST", "executions", body | isolation | {"backend": "container"})


def test_a_workspace_that_everybody_shares_is_refused(container_backend):
    for directory in ("/", "/tmp", "/etc", "/usr", str(container_backend.engine.dir)):
        with pytest.raises(ProblemError) as refused:
            container_backend.run("echo ran", cwd=directory)
        assert refused.value.status in (400, 403, 422), (directory, refused.value)


def test_variables_of_the_daemon_are_not_those_of_commands(make_container_backend, docker_engine):
    backend = make_container_backend(docker_engine)
    seen = backend.run("env").out.decode()
    for name in ("OSTLER_STATE_DIR", "OSTLER_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        assert f"{name}=" not in seen, seen
    assert f"HOME={backend.installation.dir}" not in seen, seen
    with pytest.raises(ProblemError):
        backend.run("env", inherit_env=True)


def test_a_sparse_command_leaves_no_process_in_the_container(container_backend):
    """After every end there is the init alone."""
    container_backend.run("setsid sleep 300 & (sleep 300 &) ; exit 0")

    def alone():
        pids = container_backend.engine.cgroup_pids()
        return all(procs.comm(pid).startswith("ostler") for pid in pids) and len(pids) == 1

    until(alone, 5, "the end of all processes but the init")
