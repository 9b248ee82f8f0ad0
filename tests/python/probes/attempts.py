"""Attempts of a command to escape, run inside an execution: `attempts.py FACTS NAME…`.

Each attempt is a function that does what its name says and returns a detail; a refusal by the
system raises OSError. One line each is printed: `@ NAME did DETAIL`, or `@ NAME denied ERRNO`.
Every attempt has its own process, does no harm where it succeeds, and undoes it. FACTS is a file
that the test has prepared outside.
"""

import ctypes
import errno
import fcntl
import json
import mmap
import os
import pty
import signal
import socket
import struct
import sys
import termios
import time

LIBC = ctypes.CDLL(None, use_errno=True)
#: How long one attempt may take, in seconds.
ATTEMPT_SECONDS = 10
#: How long the network is waited for, in seconds.
REPLY_SECONDS = 1.0

CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWNET, CLONE_NEWPID = 0x20000, 0x10000000, 0x40000000, 0x20000000
MS_BIND, MS_REC, MS_PRIVATE, MS_REMOUNT = 4096, 16384, 1 << 18, 32
PTRACE_ATTACH, PTRACE_DETACH = 16, 17
AF_VSOCK, AF_PACKET, AF_ALG = 40, 17, 38
#: Directories of the system.
SYSTEM = ("/usr/bin", "/usr/local/lib", "/etc", "/opt", "/var/lib", "/boot", "/srv")
#: Numbers of system calls that are the same on every architecture, and those of x86-64 and arm64.
COMMON = {
    "io_uring_setup": 425, "pidfd_open": 434, "pidfd_getfd": 438, "clone3": 435, "open_tree": 428,
    "fsopen": 430, "mount_setattr": 442, "openat2": 437,
}
X86 = {
    "clone": 56, "ptrace": 101, "bpf": 321, "add_key": 248, "keyctl": 250, "perf_event_open": 298,
    "userfaultfd": 323, "process_vm_readv": 310, "name_to_handle_at": 303, "open_by_handle_at": 304,
    "pivot_root": 155, "kcmp": 312,
}
ARM = {
    "clone": 220, "ptrace": 117, "bpf": 280, "add_key": 217, "keyctl": 219, "perf_event_open": 241,
    "userfaultfd": 282, "process_vm_readv": 270, "name_to_handle_at": 264, "open_by_handle_at": 265,
    "pivot_root": 41, "kcmp": 272,
}
NUMBERS = COMMON | (ARM if os.uname().machine == "aarch64" else X86)


def failing(value):
    if value == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return value


def call(name, *args):
    """A system call by name."""
    words = [ctypes.c_long(arg) if isinstance(arg, int) else arg for arg in args]
    LIBC.syscall.restype = ctypes.c_long
    return failing(LIBC.syscall(ctypes.c_long(NUMBERS[name]), *words))


def unshare(flags):
    return failing(LIBC.unshare(ctypes.c_int(flags)))


def mount(source, target, kind, flags, data=None):
    encode = lambda text: text.encode() if text is not None else None
    return failing(LIBC.mount(encode(source), encode(target), encode(kind), ctypes.c_ulong(flags), encode(data)))


def own_mounts():
    """Mounts of our own as far as we are let; what comes after shows whether mounting works."""
    ids = [(name, f"0 {number} 1") for name, number in (("uid_map", os.geteuid()), ("gid_map", os.getegid()))]
    try:
        unshare(CLONE_NEWNS | (CLONE_NEWUSER if os.geteuid() else 0))
        for name, line in [("setgroups", "deny"), *ids] if os.geteuid() else []:
            with open(f"/proc/self/{name}", "w") as file:
                file.write(line)
        mount("none", "/", None, MS_REC | MS_PRIVATE)
    except OSError:
        # Where namespaces are denied, the mount itself may still be open.
        pass


# Files outside.


def put(path):
    """A file that was not there, written and removed."""
    with open(path, "x") as file:
        file.write("written")
    os.unlink(path)
    return path


def write_beside(facts):
    return put(facts["outside"] + "/written")


def write_over(facts):
    with open(facts["outside"] + "/precious", "a") as file:
        file.write("more\n")
    return "appended"


def write_home(facts):
    """On the host's disk, not in a private home: the test checks whether it is there."""
    path = facts["home"] + "/.profile"
    with open(path, "a") as file:
        file.write("# appended\n")
    return "appended"


def write_system(_facts):
    return any_of(put, (f"{directory}/ostler-test-{os.getpid()}" for directory in SYSTEM))


def any_of(what, paths):
    """The result for at least one path; else the last refusal."""
    done, last = [], None
    for path in paths:
        try:
            done.append(what(path))
        except OSError as error:
            last = error
    if not done:
        raise last
    return done


def write_root(_facts):
    return put(f"/ostler-test-{os.getpid()}")


def write_sys(_facts):
    """Writes the current value to a harmless setting of the kernel."""
    path = "/proc/sys/kernel/core_pattern"
    with open(path) as file:
        value = file.read()
    with open(path, "w") as file:
        file.write(value)
    return "set"


def write_cgroup(_facts):
    for base in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/pids"):
        if os.path.exists(base + "/cgroup.procs"):
            path = f"{base}/ostler-test-{os.getpid()}"
            os.mkdir(path)
            os.rmdir(path)
            return path
    raise OSError(errno.ENOENT, "no cgroups in sight")


def remove_precious(facts):
    """Renamed away and back."""
    path = facts["outside"] + "/precious"
    os.rename(path, path + ".gone")
    os.rename(path + ".gone", path)
    return "renamed"


def chmod_precious(facts):
    path = facts["outside"] + "/precious"
    os.chmod(path, os.stat(path).st_mode & 0o7777)
    return "mode set"


def secret_in(path, words):
    with open(path, "rb") as file:
        data = file.read(1 << 20)
    assert words.encode() in data, f"{path} has no secret: {data[:80]!r}"
    return path


def read_shadow(_facts):
    with open("/etc/shadow", "rb") as file:
        assert b":" in file.read()
    return "read"


def read_ssh(facts):
    return secret_in(facts["home"] + "/.ssh/id_ed25519", facts["secret"])


def read_ssh_tilde(facts):
    return secret_in(os.path.expanduser("~/.ssh/id_ed25519"), facts["secret"])


def read_netrc(facts):
    return secret_in(facts["home"] + "/.netrc", facts["secret"])


def read_aws(facts):
    return secret_in(facts["home"] + "/.aws/credentials", facts["secret"])


def read_outside(facts):
    return secret_in(facts["outside"] + "/precious", facts["secret"])


def list_state(facts):
    found = os.listdir(facts["state"])
    assert found, "the state directory appears empty"
    return found


def read_other_execution(facts):
    """The output of an execution of another user."""
    for directory, _dirs, files in os.walk(facts["other"]):
        for name in files:
            with open(os.path.join(directory, name), "rb") as file:
                if facts["secret"].encode() in file.read(1 << 20):
                    return name
    raise OSError(errno.ENOENT, "nothing of the other execution in sight")


def write_other_execution(facts):
    return put(facts["other"] + "/planted")


def write_state(facts):
    return put(facts["state"] + "/planted")


def read_config(facts):
    return secret_in(facts["config"] + "/ostler/config.toml", facts["secret"])


# Ways around the view.


def by_symlink_made_inside(facts):
    link = f"link-{os.getpid()}"
    os.symlink(facts["outside"] + "/precious", link)
    try:
        return secret_in(link, facts["secret"])
    finally:
        os.unlink(link)


def by_symlink_found(facts):
    return secret_in("found-link", facts["secret"])


def by_symlink_of_directory(facts):
    return put("found-directory-link/through")


def by_hard_link(facts):
    name = f"hard-{os.getpid()}"
    os.link(facts["outside"] + "/precious", name)
    try:
        return secret_in(name, facts["secret"])
    finally:
        os.unlink(name)


def by_dots(facts):
    dots = "../" * 40
    return secret_in(dots + facts["outside"].lstrip("/") + "/precious", facts["secret"])


def by_proc_root(facts):
    last = None
    for pid in ["self", "1", *(name for name in os.listdir("/proc") if name.isdigit())]:
        for way in ("root", "cwd"):
            base = f"/proc/{pid}/{way}" if way == "root" else f"/proc/{pid}/cwd/../../../../../../.."
            try:
                return secret_in(base + facts["outside"] + "/precious", facts["secret"])
            except OSError as error:
                last = error
    raise last


def by_descriptors(facts):
    """All descriptors left open, of this process and of every visible one."""
    last = OSError(errno.ENOENT, "none leads out")
    for pid in ["self", *(name for name in os.listdir("/proc") if name.isdigit())]:
        try:
            numbers = os.listdir(f"/proc/{pid}/fd")
        except OSError:
            continue
        for number in numbers:
            for tail in ("", "/..", "/../../../../../../.."):
                try:
                    return secret_in(f"/proc/{pid}/fd/{number}{tail}{facts['outside']}/precious", facts["secret"])
                except (OSError, AssertionError) as error:
                    last = error if isinstance(error, OSError) else last
    raise last


def by_descriptor_of_host(facts):
    """A descriptor of a process outside, which has the precious file open."""
    return secret_in(f"/proc/{facts['sleeper']}/fd/{facts['sleeper_fd']}", facts["secret"])


def inherited_descriptors(_facts):
    """Descriptors beyond the standard ones that this process has not opened."""
    found = []
    for number in map(int, os.listdir("/proc/self/fd")):
        if number > 2 and number not in OWN:
            try:
                found.append(f"{number}:{os.readlink(f'/proc/self/fd/{number}')}")
            except OSError:
                continue
    if not found:
        raise OSError(errno.EBADF, "none")
    return found


def by_bind(facts):
    own_mounts()
    target = f"bind-{os.getpid()}"
    os.mkdir(target)
    try:
        mount(facts["outside"], target, None, MS_BIND)
        return secret_in(target + "/precious", facts["secret"])
    finally:
        LIBC.umount2(target.encode(), 2)
        os.rmdir(target)


def by_handle(facts):
    """A file handle by inode number, as container escapes used them."""
    own = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
    handle = ctypes.create_string_buffer(struct.pack("Ii", 128, 0) + bytes(128))
    mount_id = ctypes.c_int()
    call("name_to_handle_at", -100, b".", handle, ctypes.byref(mount_id), 0)
    return os.readlink(f"/proc/self/fd/{call('open_by_handle_at', own, handle, os.O_RDONLY)}")


def by_chroot(facts):
    """The classic: a root below us, and a descriptor from above it."""
    above = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
    os.chroot(".")
    os.fchdir(above)
    os.chdir("../" * 30)
    os.chroot(".")
    return secret_in(facts["outside"] + "/precious", facts["secret"])


def by_rename_race(facts):
    """A directory and a symbolic link to the outside are exchanged while a file below is opened."""
    name = f"race-{os.getpid()}"
    os.mkdir(name)
    os.symlink(facts["outside"], name + "-link")
    racer = os.fork()
    if racer == 0:
        while True:
            LIBC.renameat2(-100, name.encode(), -100, f"{name}-link".encode(), 2)
    try:
        end = time.monotonic() + 2
        while time.monotonic() < end:
            try:
                return secret_in(name + "/precious", facts["secret"])
            except OSError:
                continue
        raise OSError(errno.ENOENT, "never seen")
    finally:
        os.kill(racer, signal.SIGKILL)
        os.waitpid(racer, 0)
        for one in (name, name + "-link"):
            os.unlink(one) if os.path.islink(one) else os.rmdir(one)


def raw_disk(_facts):
    """The disk itself, through a device of our own making."""
    number = next(os.stat(path).st_dev for path in ("/usr", "/dev/shm") if os.path.exists(path))
    name = f"disk-{os.getpid()}"
    os.mknod(name, 0o600 | 0o060000, number)
    try:
        with open(name, "rb") as disk:
            return len(disk.read(512))
    finally:
        os.unlink(name)


def make_device(_facts):
    name = f"device-{os.getpid()}"
    os.mknod(name, 0o600 | 0o020000, os.makedev(1, 3))
    os.unlink(name)
    return "made"


# Processes outside.


def signal_host(facts):
    os.kill(facts["sleeper"], 0)
    return "reached"


def signal_engine(facts):
    os.kill(facts["daemon"], 0)
    return "reached"


def pidfd_host(facts):
    return call("pidfd_open", facts["sleeper"], 0)


def ptrace_host(facts):
    call("ptrace", PTRACE_ATTACH, facts["sleeper"], 0, 0)
    os.waitpid(facts["sleeper"], 0x40000000)
    call("ptrace", PTRACE_DETACH, facts["sleeper"], 0, 0)
    return "attached"


def ptrace_child(_facts):
    """Tracing at all, even of one's own."""
    child = os.fork()
    if child == 0:
        signal.pause()
    try:
        call("ptrace", PTRACE_ATTACH, child, 0, 0)
        return "attached"
    finally:
        os.kill(child, signal.SIGKILL)


def read_host_memory(facts):
    with open(f"/proc/{facts['sleeper']}/environ", "rb") as file:
        assert file.read()
    with open(f"/proc/{facts['sleeper']}/mem", "rb"):
        return "open"


def process_vm(facts):
    local = ctypes.create_string_buffer(16)
    here = struct.pack("PN", ctypes.addressof(local), 16)
    there = struct.pack("PN", facts["sleeper_address"], 16)
    return call("process_vm_readv", facts["sleeper"], here, 1, there, 1, 0)


def see_host_pid(facts):
    with open(f"/proc/{facts['sleeper']}/cmdline", "rb") as file:
        words = file.read()
    assert facts["mark"].encode() in words, "another process has that number"
    return words.decode()


def see_host_processes(facts):
    """Any process in /proc that is not of this execution."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if facts["mark"].encode() in file.read():
                    return pid
        except OSError:
            continue
    raise OSError(errno.ESRCH, "nobody of the host in sight")


def set_host_name(_facts):
    """The name that it has."""
    name = os.uname().nodename.encode()
    failing(LIBC.sethostname(name, len(name)))
    return "set"


def share_memory(facts):
    """A System V segment of the host."""
    return failing(LIBC.shmget(facts["shm_key"], 0, 0))


def shm_file(facts):
    return secret_in("/dev/shm/" + facts["shm_file"], facts["secret"])


# Rights.


def new_user_namespace(_facts):
    unshare(CLONE_NEWUSER)
    return "made"


def new_user_namespace_by_clone(_facts):
    pid = call("clone", CLONE_NEWUSER | signal.SIGCHLD, 0, 0, 0, 0)
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return "made"


def new_user_namespace_by_clone3(_facts):
    args = struct.pack("11Q", CLONE_NEWUSER, 0, 0, 0, signal.SIGCHLD, 0, 0, 0, 0, 0, 0)
    pid = call("clone3", args, len(args))
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return "made"


def new_other_namespaces(_facts):
    unshare(CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET)
    return "made"


def mount_tmpfs(_facts):
    own_mounts()
    target = f"mount-{os.getpid()}"
    os.mkdir(target)
    try:
        mount("none", target, "tmpfs", 0)
        LIBC.umount2(target.encode(), 2)
        return "mounted"
    finally:
        os.rmdir(target)


def remount_writable(_facts):
    own_mounts()
    mount("none", "/", None, MS_REMOUNT | MS_BIND)
    return "remounted"


def unmount_own(_facts):
    own_mounts()
    failing(LIBC.umount2(b"/proc", 2))
    return "unmounted"


def open_file_system(_facts):
    own_mounts()
    return call("fsopen", b"tmpfs", 1)


def open_tree_clone(_facts):
    own_mounts()
    return call("open_tree", -100, b"/", 1 | 0x8000)


def pivot(_facts):
    own_mounts()
    target = f"pivot-{os.getpid()}"
    os.mkdir(target)
    try:
        mount("none", target, "tmpfs", 0)
        os.mkdir(target + "/old")
        call("pivot_root", target.encode(), f"{target}/old".encode())
        os.chdir("/old")
        return "turned"
    finally:
        try:
            os.rmdir(target)
        except OSError:
            pass


def capabilities(_facts):
    """Any capability, also one that could come back through the bounding set."""
    with open("/proc/self/status") as file:
        fields = dict(line.split(":\t") for line in file if line.startswith("Cap"))
    held = {name: mask.strip() for name, mask in fields.items() if int(mask, 16)}
    if not held:
        raise OSError(errno.EPERM, "none at all")
    return held


def new_privileges(_facts):
    with open("/proc/self/status") as file:
        if "NoNewPrivs:\t1" in file.read():
            raise OSError(errno.EPERM, "no_new_privs is set")
    return "possible"


def setuid_program(facts):
    """A program with the set-user-id bit of another user, in the workspace."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(write, 1)
        os.execv("./setuid-id", ["id", "-u"])
    os.close(write)
    said = int(os.read(read, 64) or b"-1")
    os.waitpid(child, 0)
    if said != facts["setuid_owner"]:
        raise OSError(errno.EPERM, f"ran as {said}")
    return said


def make_setuid(_facts):
    name = f"made-{os.getpid()}"
    with open(name, "w"):
        pass
    try:
        os.chmod(name, 0o4755)
        assert os.stat(name).st_mode & 0o4000
        return "made"
    finally:
        os.unlink(name)


def become_user(_facts):
    """Another user."""
    os.setresuid(4242, 4242, 4242)
    return os.getuid()


def io_uring(_facts):
    params = ctypes.create_string_buffer(120)
    return call("io_uring_setup", 4, params)


def bpf_map(_facts):
    attributes = struct.pack("IIII", 1, 4, 4, 1) + bytes(104)
    return call("bpf", 0, attributes, len(attributes))


def keyring(_facts):
    return call("add_key", b"user", b"ostler-test", b"x", 1, ctypes.c_long(-2))


def perf_event(_facts):
    attributes = struct.pack("IIQ", 1, 128, 1) + bytes(112)
    return call("perf_event_open", attributes, 0, -1, -1, 0)


def user_faults(_facts):
    return call("userfaultfd", 1)


def type_into_terminal(_facts):
    """TIOCSTI: characters into the input of another process on the terminal."""
    child, master = pty.fork()
    if child == 0:
        try:
            fcntl.ioctl(0, termios.TIOCSTI, b"x")
            os._exit(0)
        except OSError as error:
            os._exit(error.errno)
    _, status = os.waitpid(child, 0)
    os.close(master)
    code = os.waitstatus_to_exitcode(status)
    if code:
        raise OSError(code, os.strerror(code))
    return "typed"


def type_into_terminal_in_high_bits(_facts):
    """The same with bits above the 32 that the kernel checks."""
    child, master = pty.fork()
    if child == 0:
        LIBC.syscall.restype = ctypes.c_long
        number = 29 if os.uname().machine == "aarch64" else 16
        done = LIBC.syscall(ctypes.c_long(number), ctypes.c_long(0), ctypes.c_ulong((1 << 32) | termios.TIOCSTI), b"x")
        os._exit(0 if done == 0 else ctypes.get_errno())
    _, status = os.waitpid(child, 0)
    os.close(master)
    code = os.waitstatus_to_exitcode(status)
    if code:
        raise OSError(code, os.strerror(code))
    return "typed"


#: The limit of a jail, and a slightly larger attempt.
SIGNALS, INSTANCES, QUEUES, LOCKED_BYTES = 1_024 + 64, 40, 4, 9 << 20


def other_line_discipline(_facts, high=0):
    """TIOCSETD: the discipline that the process's own terminal has already."""
    master, slave = pty.openpty()
    try:
        number = 29 if os.uname().machine == "aarch64" else 16
        request = ctypes.c_ulong((high << 32) | 0x5423)
        LIBC.syscall.restype = ctypes.c_long
        failing(LIBC.syscall(ctypes.c_long(number), ctypes.c_long(slave), request, ctypes.byref(ctypes.c_int(0))))
        return "set"
    finally:
        os.close(master)
        os.close(slave)


def other_line_discipline_in_high_bits(facts):
    return other_line_discipline(facts, high=1)


def watch_file_system(_facts):
    """fanotify, whose groups and marks count for the user."""
    FAN_REPORT_FID = 0x200
    return failing(LIBC.fanotify_init(FAN_REPORT_FID, os.O_RDONLY))


def many_inotify_instances(_facts):
    return [failing(LIBC.inotify_init1(0)) for _ in range(INSTANCES)][-1]


def many_pending_signals(_facts):
    """Real-time signals that are never received."""
    number = signal.SIGRTMIN + 3
    signal.pthread_sigmask(signal.SIG_BLOCK, [number])
    for _ in range(SIGNALS):
        failing(LIBC.sigqueue(os.getpid(), number, None))
    return "waiting"


def real_time(name):
    """A function of the C library, or of what had it before."""
    return getattr(LIBC, name, None) or getattr(ctypes.CDLL("librt.so.1", use_errno=True), name)


def many_timers(_facts):
    """POSIX timers, each of which has a signal to itself."""
    for _ in range(SIGNALS):
        failing(real_time("timer_create")(1, None, ctypes.byref(ctypes.c_void_p())))
    return "made"


def many_message_queues(_facts):
    """Of the usual size, removed at once: they go with this process."""
    attributes = struct.pack("8l", 0, 10, 8192, 0, 0, 0, 0, 0)
    for count in range(QUEUES):
        name = f"/ostler-test-{os.getpid()}-{count}".encode()
        failing(real_time("mq_open")(name, os.O_CREAT | os.O_RDWR, 0o600, attributes))
        real_time("mq_unlink")(name)
    return "made"


def much_locked_memory(_facts):
    held = mmap.mmap(-1, LOCKED_BYTES)
    address = ctypes.addressof(ctypes.c_char.from_buffer(held))
    failing(LIBC.mlock(ctypes.c_void_p(address), ctypes.c_size_t(LOCKED_BYTES)))
    return "locked"


def raise_limits(_facts):
    """The limits that hold a share of the user's quotas, raised and set back."""
    for resource in (11, 12):
        both = (ctypes.c_ulong * 2)()
        failing(LIBC.getrlimit(resource, both))
        soft, hard = both
        failing(LIBC.setrlimit(resource, (ctypes.c_ulong * 2)(soft, hard + 1)))
        failing(LIBC.setrlimit(resource, both))
    return "raised"


def see_host_devices(_facts):
    """Facts about the host in /sys: networks, disks, modules, cgroups."""
    found = {}
    for path in ("/sys/class/net", "/sys/block", "/sys/module", "/sys/fs/cgroup", "/sys/bus", "/sys/class/dmi"):
        try:
            found[path] = len(os.listdir(path))
        except OSError as error:
            last = error
    if not any(found.values()):
        raise last
    return found


# The network.


def raw_socket(_facts):
    return socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP).fileno()


def packet_socket(_facts):
    return socket.socket(AF_PACKET, socket.SOCK_RAW, socket.htons(3)).fileno()


def vsock_socket(_facts):
    return socket.socket(AF_VSOCK, socket.SOCK_STREAM).fileno()


def crypto_socket(_facts):
    return socket.socket(AF_ALG, socket.SOCK_SEQPACKET).fileno()


def tcp_loopback(facts):
    return exchange_tcp(("127.0.0.1", facts["tcp_port"]), facts)


def tcp_address(facts):
    return exchange_tcp((facts["address"], facts["tcp_port"]), facts)


def exchange_tcp(address, facts):
    with socket.create_connection(address, timeout=REPLY_SECONDS) as connection:
        said = connection.recv(200).decode()
    assert facts["secret"] in said, said
    return "connected"


def udp_loopback(facts):
    return exchange_udp(("127.0.0.1", facts["udp_port"]), b"ping", facts)


def udp_address(facts):
    return exchange_udp((facts["address"], facts["udp_port"]), b"ping", facts)


def dns_query(facts):
    """A question as resolvers ask it, to the port of a server outside."""
    name = b"".join(bytes([len(part)]) + part for part in (b"ostler", b"test")) + b"\0"
    question = struct.pack(">HHHHHH", 7, 0x100, 1, 0, 0, 0) + name + struct.pack(">HH", 1, 1)
    return exchange_udp((facts["address"], facts["udp_port"]), question, facts)


def exchange_udp(address, data, facts):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as connection:
        connection.settimeout(REPLY_SECONDS)
        connection.sendto(data, address)
        try:
            said = connection.recv(200).decode()
        except socket.timeout:
            raise OSError(errno.ETIMEDOUT, "no answer") from None
    assert facts["secret"] in said, said
    return "answered"


def icmp_address(facts):
    """An echo request to the host's own address."""
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as connection:
        connection.settimeout(REPLY_SECONDS)
        head = struct.pack(">BBHHH", 8, 0, 0, 77, 1)
        checksum = 0xFFFF - sum(struct.unpack(">4H", head)) % 0xFFFF
        connection.sendto(struct.pack(">BBHHH", 8, 0, checksum, 77, 1), (facts["address"], 0))
        try:
            return len(connection.recv(200))
        except socket.timeout:
            raise OSError(errno.ETIMEDOUT, "no answer") from None


def abstract_socket(facts):
    return exchange_unix("\0" + facts["abstract"], facts)


def path_socket(facts):
    return exchange_unix(facts["unix"], facts)


def exchange_unix(address, facts):
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(REPLY_SECONDS)
        connection.connect(address)
        said = connection.recv(200).decode()
    assert facts["secret"] in said, said
    return "connected"


def engine_socket(facts):
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(REPLY_SECONDS)
        connection.connect(facts["socket"])
        connection.sendall(b"GET /api/v1/health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert b"200" in connection.recv(100)
    return "answered"


def interfaces(_facts):
    """Links other than the loopback."""
    found = [name for _, name in socket.if_nameindex() if name != "lo"]
    if not found:
        raise OSError(errno.ENODEV, "only loopback")
    return found


#: Descriptors that we have opened ourselves.
OWN = set()


def attempt(name, facts, results):
    """In a process of its own; its last word goes to `results`."""
    child = os.fork()
    if child == 0:
        signal.alarm(ATTEMPT_SECONDS)
        try:
            said = f"did {globals()[name](facts)}"
        except OSError as error:
            said = f"denied {errno.errorcode.get(error.errno, error.errno)} {error.strerror}"
        except AssertionError as error:
            said = f"denied NOTHING {error}"
        except BaseException as error:
            said = f"broken {error!r}"
        os.write(results, f"@ {name} {said}\n".replace("\n", " ").strip().encode()[:300] + b"\n")
        os._exit(0)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if code:
        os.write(results, f"@ {name} denied {signal.Signals(-code).name if code < 0 else code}\n".encode())


def main():
    with open(sys.argv[1]) as file:
        OWN.add(file.fileno())
        facts = json.load(file)
    for name in sys.argv[2:]:
        attempt(name, facts, 1)
    print("@ end did it", flush=True)


main()
