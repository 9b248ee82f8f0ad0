"""Processes, inspected through /proc and held by pidfds."""

import os
import select
import signal
import time


#: How many times slower than an idle machine one may be that runs all tests at once.
SLOWNESS = 3


def until(fact, seconds=5.0, what="the fact"):
    """Polls until `fact()` is true and returns it; for conditions without an event. `seconds` are those of an idle machine."""
    limit = seconds * SLOWNESS
    deadline = time.monotonic() + limit
    while True:
        answer = fact()
        if answer:
            return answer
        assert time.monotonic() < deadline, f"{what} did not come true within {limit} s"
        select.select([], [], [], 0.01)


def pids():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def read(pid, name):
    """A file of a process; empty once that is gone. Each test reads those of all processes."""
    try:
        with open(f"/proc/{pid}/{name}", "rb", buffering=0) as file:
            return file.read()
    except OSError:
        return b""


def comm(pid):
    return read(pid, "comm").decode(errors="replace").strip()


def status(pid, field):
    for line in read(pid, "status").decode(errors="replace").splitlines():
        if line.startswith(field + ":"):
            return line.split(":", 1)[1].split()[0]
    return ""


def alive(pid):
    return status(pid, "State") not in ("", "Z", "X")


def members(uuid):
    """Running processes with this execution's id in their environment."""
    mark = f"OSTLER_EXECUTION={uuid}".encode()
    return [pid for pid in pids() if mark in read(pid, "environ").split(b"\0") and alive(pid)]


def named(words):
    """Running processes whose arguments contain `words`, whatever their environment."""
    words = words.encode()
    own = os.getpid()
    hits = (pid for pid in pids() if words in read(pid, "cmdline").replace(b"\0", b" "))
    return [pid for pid in hits if pid != own and alive(pid) and not comm(pid).startswith("ostler")]


def of_directory(directory):
    """Running processes of the binary whose environment, arguments or files name a directory."""
    needle = os.fsencode(str(directory))

    def belongs(pid):
        if needle in read(pid, "environ") or needle in read(pid, "cmdline"):
            return True
        try:
            links = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
        except OSError:
            return False
        return any(os.fsencode(link).startswith(needle) for link in links)

    return [p for p in pids() if comm(p).startswith("ostler") and alive(p) and belongs(p)]


class ProcessHandle:
    """A process held by a pidfd, so that a reused pid is never signalled."""

    def __init__(self, pid):
        self.pid = pid
        self.handle = os.pidfd_open(pid)

    def kill(self, number=signal.SIGKILL, seconds=5.0):
        try:
            signal.pidfd_send_signal(self.handle, number)
        except ProcessLookupError:
            return
        if number == signal.SIGKILL:
            assert self.gone(seconds), f"{self.pid} survived SIGKILL"

    def gone(self, seconds):
        return bool(select.select([self.handle], [], [], seconds)[0])

    def close(self):
        os.close(self.handle)
