"""Takes features of the kernel away and executes another program: `without.py PIECE… -- ARGV…`.

Each is taken away as on hosts that lack it: by a filter that responds as an old kernel does, by a
limit on namespaces, by a mount. `--as UID` changes to that user before.
"""

import ctypes
import os
import struct
import sys

LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNS, CLONE_NEWUSER = 0x20000, 0x10000000
MS_REC, MS_PRIVATE, MS_RDONLY = 16384, 1 << 18, 1
MNT_DETACH = 2
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, PR_SET_DUMPABLE = 38, 22, 4
ENOSYS, EINVAL, EOPNOTSUPP = 38, 22, 95
AARCH64 = os.uname().machine == "aarch64"
#: System call numbers, x86-64 and arm64.
NUMBERS = {
    "landlock_create_ruleset": 444, "mount_setattr": 442, "open_tree": 428, "move_mount": 429, "fsopen": 430,
    "seccomp": 277 if AARCH64 else 317, "prctl": 167 if AARCH64 else 157,
}
#: What answers as if it did not exist: `(call, errno, its first argument or none)`.
FILTERS = {
    "landlock": [("landlock_create_ruleset", EOPNOTSUPP, None)],
    "seccomp": [("seccomp", ENOSYS, None), ("prctl", EINVAL, PR_SET_SECCOMP)],
    "mounts": [(name, ENOSYS, None) for name in ("mount_setattr", "open_tree", "move_mount", "fsopen")],
}


def failing(value, what):
    if value == -1:
        number = ctypes.get_errno()
        raise SystemExit(f"{what}: {os.strerror(number)}")


def instruction(code, yes, no, value):
    return struct.pack("HBBI", code, yes, no, value)


def filtered(rules):
    """A filter that answers these calls with an error."""
    load, equal, give = 0x20, 0x15, 0x06
    words = []
    for name, error, argument in rules:
        answer = instruction(give, 0, 0, 0x00050000 | error)
        words.append(instruction(load, 0, 0, 0))
        if argument is None:
            words += [instruction(equal, 0, 1, NUMBERS[name]), answer]
        else:
            words += [instruction(equal, 0, 3, NUMBERS[name]), instruction(load, 0, 0, 16),
                      instruction(equal, 0, 1, argument), answer]
    words.append(instruction(give, 0, 0, 0x7FFF0000))
    code = ctypes.create_string_buffer(b"".join(words))
    program = struct.pack("HxxxxxxP", len(words), ctypes.addressof(code))
    if os.geteuid():
        failing(LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    failing(LIBC.prctl(PR_SET_SECCOMP, 2, program, 0, 0), "the filter")


def unshare(flags):
    failing(LIBC.unshare(flags), "unshare")


def covered(path):
    """An empty, read-only file system over a directory, in mounts of our own."""
    unshare(CLONE_NEWNS)
    failing(LIBC.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None), "private mounts")
    failing(LIBC.mount(b"none", path.encode(), b"tmpfs", MS_RDONLY, None), f"a mount on {path}")


def unmounted(kinds):
    """Mounts of our own, without those of these file systems."""
    unshare(CLONE_NEWNS)
    failing(LIBC.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None), "private mounts")
    with open("/proc/self/mountinfo") as mounts:
        found = [line.split() for line in mounts]
    for words in reversed(found):
        if words[words.index("-") + 1] in kinds:
            failing(LIBC.umount2(words[4].encode(), MNT_DETACH), f"the mount on {words[4]}")


def nested(limit, kind):
    """A user namespace whose own limit on namespaces of a kind is this."""
    uid, gid = os.geteuid(), os.getegid()
    if uid == 0:
        ready, mapped = os.pipe(), os.pipe()
        mapper = os.fork()
        if mapper == 0:
            os.read(ready[0], 1)
            for name in ("uid_map", "gid_map"):
                put(f"/proc/{os.getppid()}/{name}", "0 0 4294967295")
            os.write(mapped[1], b"x")
            os._exit(0)
        unshare(CLONE_NEWUSER)
        os.write(ready[1], b"x")
        os.read(mapped[0], 1)
        os.waitpid(mapper, 0)
        for end in (*ready, *mapped):
            os.close(end)
    else:
        unshare(CLONE_NEWUSER)
        put("/proc/self/setgroups", "deny")
        put("/proc/self/uid_map", f"{uid} {uid} 1")
        put("/proc/self/gid_map", f"{gid} {gid} 1")
    put(f"/proc/sys/user/max_{kind}_namespaces", str(limit))


def put(path, text):
    with open(path, "w") as file:
        file.write(text)


def main():
    words = sys.argv[1:]
    split = words.index("--")
    pieces, argv = words[:split], words[split + 1:]
    user = None
    if pieces[0] == "--as":
        user, pieces = int(pieces[1]), pieces[2:]
    for piece in pieces:
        match piece:
            case "namespaces":
                become(user)
                user = None
                nested(0, "user")
            case "network":
                become(user)
                user = None
                nested(0, "net")
            case "cgroups":
                covered("/sys/fs/cgroup")
            case "cgroup-v1":
                unmounted(["cgroup"])
            case "cgroup-v2":
                unmounted(["cgroup2"])
            case "proc":
                covered("/proc/scsi" if os.path.isdir("/proc/scsi") else "/proc/irq")
            case name:
                become(user)
                user = None
                filtered(FILTERS[name])
    become(user)
    os.execvp(argv[0], argv)


def become(user):
    if user is not None:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
        # Otherwise /proc/self would still belong to root.
        failing(LIBC.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0), "dumpable")


main()
