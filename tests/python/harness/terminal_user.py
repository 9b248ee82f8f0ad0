"""A user at a terminal: runs a command of the binary on a pseudo-terminal."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time

from .procs import ProcessHandle


class TerminalUser:
    """A command of the binary, or another program, on a pseudo-terminal of the test."""

    def __init__(self, installation, *args, cols=80, rows=24, env=None, program=None):
        words = program or installation.argv(*args)
        environment = installation.env(**{"TERM": "xterm-256color", **(env or {})})
        self.seen = b""
        self.status = None
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            try:
                os.chdir(installation.work)
                resize(0, cols, rows)
                os.execvpe(words[0], words, environment)
            finally:
                os._exit(127)
        self.held = ProcessHandle(self.pid)

    def type(self, data):
        os.write(self.fd, data if isinstance(data, bytes) else data.encode())

    def resize(self, cols, rows):
        resize(self.fd, cols, rows)

    def _more(self, seconds):
        if not select.select([self.fd], [], [], max(seconds, 0))[0]:
            return False
        try:
            data = os.read(self.fd, 1 << 16)
        except OSError:
            data = b""
        self.seen += data
        return bool(data)

    def wait_for(self, pattern, seconds=15):
        """Waits until a pattern matches the output; consumes the output up to its end."""
        deadline = time.monotonic() + seconds
        while not (found := re.search(pattern, self.seen, re.S)):
            assert self._more(deadline - time.monotonic()), f"not seen: {pattern!r} in {self.seen[-2000:]!r}"
        self.seen = self.seen[found.end():]
        return found

    def wait_exit(self, seconds=15):
        """Waits for the command's exit; returns its exit code, 128+n for a signal."""
        deadline = time.monotonic() + seconds
        while self._more(deadline - time.monotonic()):
            pass
        assert self.held.gone(max(deadline - time.monotonic(), 0.1)), f"still there: {self.seen[-2000:]!r}"
        if self.status is None:
            _, status = os.waitpid(self.pid, 0)
            self.status = os.waitstatus_to_exitcode(status)
        return self.status if self.status >= 0 else 128 - self.status

    def modes(self):
        """The local modes of the terminal, to check that they were restored."""
        return termios.tcgetattr(self.fd)[3] & (termios.ECHO | termios.ICANON | termios.ISIG)

    def close(self):
        if self.status is None:
            self.held.kill(signal.SIGKILL)
            os.waitpid(self.pid, 0)
        self.held.close()
        os.close(self.fd)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def resize(fd, cols, rows):
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))
