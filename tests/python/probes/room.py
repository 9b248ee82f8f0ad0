"""A small file system for an ordinary user: `room.py PATH MEBIBYTES`.

Mounts a tmpfs at PATH in its own namespaces, prints `ready`, and keeps them until its input ends. A
process that enters them (nsenter(1)) is the same user without any rights, but sees the file system.
"""

import ctypes
import os
import sys

LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNS, CLONE_NEWUSER = 0x20000, 0x10000000


def failing(value, what):
    if value:
        raise SystemExit(f"{what}: {os.strerror(ctypes.get_errno())}")


def write(name, text):
    with open(f"/proc/self/{name}", "w") as file:
        file.write(text)


def main(path, mebibytes):
    user, group = os.geteuid(), os.getegid()
    failing(LIBC.unshare(CLONE_NEWUSER | CLONE_NEWNS), "unshare")
    write("setgroups", "deny")
    write("uid_map", f"{user} {user} 1")
    write("gid_map", f"{group} {group} 1")
    options = f"size={mebibytes}m,mode=0700".encode()
    failing(LIBC.mount(b"tmpfs", os.fsencode(path), b"tmpfs", 0, options), "mount")
    print("ready", flush=True)
    sys.stdin.read()


main(*sys.argv[1:])
