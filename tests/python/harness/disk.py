"""Small file systems, and functions that fill them."""

import contextlib
import dataclasses
import errno
import os
import subprocess
import sys
from pathlib import Path

from .installation import is_root

#: Mounts one in namespaces of its own.
ROOM = Path(__file__).resolve().parents[1] / "probes" / "room.py"


@dataclasses.dataclass(frozen=True)
class Disk:
    """A small file system, as processes in its mount namespace see it."""

    path: Path
    #: The path of its files outside of that namespace.
    outside: Path
    #: A prefix of command lines that enters the namespace.
    enter: tuple = ()


@contextlib.contextmanager
def mounted(path, mebibytes, *protected_envs):
    """A private tmpfs of this size at `path` for these installations: mounted as root, else in
    namespaces that their commands enter."""
    path.mkdir(exist_ok=True)
    if is_root():
        with mounted_for_all(path, mebibytes):
            yield Disk(path, path)
        return
    with room(path, mebibytes) as disk:
        for installation in protected_envs:
            installation.within = disk.enter
        yield disk
        for installation in protected_envs:
            installation.within = ()


@contextlib.contextmanager
def mounted_for_all(path, mebibytes):
    options = f"size={mebibytes}m,mode=0700"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(path)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(path)], check=True)


@contextlib.contextmanager
def ext4(path, mebibytes, inodes):
    """An ext4 file system of this size at `path`; root only."""
    image = path.with_name(path.name + ".ext4")
    with open(image, "wb") as file:
        file.truncate(mebibytes << 20)
    options = ["-q", "-F", "-m", "0", "-b", "4096", "-N", str(inodes)]
    subprocess.run(["mkfs.ext4", *options, str(image)], check=True)
    path.mkdir(exist_ok=True)
    subprocess.run(["mount", "-o", "loop", str(image), str(path)], check=True)
    path.chmod(0o700)
    try:
        yield Disk(path, path)
    finally:
        subprocess.run(["umount", "-l", str(path)], check=True)
        image.unlink()


@contextlib.contextmanager
def room(path, mebibytes):
    """The same in namespaces of an unprivileged user."""
    words = [sys.executable, str(ROOM), str(path), str(mebibytes)]
    keeper = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        if keeper.stdout.readline() != b"ready\n":
            raise PermissionError(keeper.stderr.read().decode())
        spaces = [f"--{kind}=/proc/{keeper.pid}/ns/{name}" for kind, name in (("user", "user"), ("mount", "mnt"))]
        enter = ("nsenter", *spaces, "--preserve-credentials")
        yield Disk(path, Path(f"/proc/{keeper.pid}/root{path}"), enter)
    finally:
        keeper.communicate()


def is_possible(path):
    """Whether small file systems can be mounted; tried at `path`, an empty directory."""
    if is_root():
        return True
    try:
        with room(path, 1) as disk:
            return subprocess.run([*disk.enter, "true"], check=False).returncode == 0
    except (PermissionError, FileNotFoundError):
        return False


def fill(path, leave=0):
    """Fills the file system of `path` except for `leave` bytes; returns the file to remove to free
    the space."""
    filler = path / "filler"
    stat = os.statvfs(path)
    with open(filler, "ab", buffering=0) as file:
        left = stat.f_bavail * stat.f_frsize - leave
        while left > 0 or not leave:
            try:
                left -= file.write(b"\0" * (min(left, 1 << 20) if leave else 4096))
            except OSError as error:
                assert error.errno == errno.ENOSPC, error
                break
    return filler


def fill_inodes(path):
    """Uses up all inodes of the file system of `path`; returns the directory to remove to free
    them."""
    filler = path / "inodes"
    filler.mkdir(exist_ok=True)
    number = len(list(filler.iterdir()))
    while True:
        try:
            (filler / str(number)).touch()
        except OSError as error:
            assert error.errno == errno.ENOSPC, error
            return filler
        number += 1
