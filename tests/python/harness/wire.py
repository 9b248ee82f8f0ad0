"""A raw client of `ostler mcp` that reads and writes JSON-RPC lines without a library, to test the exact
messages."""

import contextlib
import json
import os
import select
import socket
import subprocess
import threading
import time


class RawMcpClient:
    """`ostler mcp` with lines in and out; `transport` is what its streams are: pipes, a socket pair (as
    Node.js makes them), or a terminal and a pipe (which the proxy relays)."""

    def __init__(self, installation, args=(), transport="pipe", stderr=subprocess.DEVNULL):
        self.last = 0
        self.answers = {}
        self.others = []
        self.ended = False
        self._changed = threading.Condition()
        command = installation.argv("mcp", *args)
        options = {"cwd": installation.work, "env": installation.env(), "stderr": stderr}
        if transport == "socket":
            ours, theirs = socket.socketpair()
            self.process = subprocess.Popen(command, stdin=theirs, stdout=theirs, **options)
            theirs.close()
            self._in, self._out = os.dup(ours.fileno()), ours.detach()
        elif transport == "file":
            # Standard output is a file: the proxy relays. It is read as it grows.
            self._path = installation.work / f"answers-{id(self)}"
            with open(self._path, "wb") as file:
                self.process = subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=file, **options
                )
            self._in = os.dup(self.process.stdin.fileno())
            self.process.stdin.close()
            self._out = os.open(self._path, os.O_RDONLY)
        else:
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **options
            )
            self._in = os.dup(self.process.stdin.fileno())
            self._out = os.dup(self.process.stdout.fileno())
            self.process.stdin.close()
            self.process.stdout.close()
        self._transport = transport
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        rest = b""
        while True:
            with contextlib.suppress(OSError):
                piece = os.read(self._out, 65536)
                if piece:
                    *lines, rest = (rest + piece).split(b"\n")
                    for line in lines:
                        self._line(line)
                    continue
                if self._transport == "file" and self.process.poll() is None:
                    select.select([], [], [], 0.01)
                    continue
            break
        with self._changed:
            self.ended = True
            self._changed.notify_all()

    def _line(self, line):
        message = json.loads(line)
        with self._changed:
            if isinstance(message, dict) and "method" not in message:
                self.answers.setdefault(json.dumps(message.get("id")), []).append(message)
            else:
                self.others.append(message)
            self._changed.notify_all()

    def raw(self, data):
        while data:
            data = data[os.write(self._in, data):]

    def send(self, message):
        self.raw(json.dumps(message).encode() + b"\n")

    def notify(self, method, params=None):
        self.send({"jsonrpc": "2.0", "method": method, "params": params or {}})

    def ask(self, method, params=None):
        """Sends a request; returns its id."""
        self.last += 1
        message = {"jsonrpc": "2.0", "id": self.last, "method": method}
        self.send(message if params is None else message | {"params": params})
        return self.last

    def call(self, tool, **arguments):
        return self.ask("tools/call", {"name": tool, "arguments": arguments})

    def until(self, happened, seconds=20):
        """Waits until a condition over the received messages holds."""
        end = time.monotonic() + seconds
        with self._changed:
            while not happened():
                left = end - time.monotonic()
                assert left > 0, f"not within {seconds} s: {self.answers.keys()} {self.others[-3:]}"
                assert not self.ended or happened(), "the output has ended"
                self._changed.wait(left)

    def answer(self, number, seconds=20):
        """Waits for the response to a request, which must be the only one."""
        key = json.dumps(number)
        self.until(lambda: key in self.answers, seconds)
        assert len(self.answers[key]) == 1, self.answers[key]
        return self.answers[key][0]

    def text(self, number, seconds=20):
        result = self.answer(number, seconds)["result"]
        return "\n".join(block.get("text", "") for block in result["content"])

    def shake(self, revision="2025-06-18", capabilities=None):
        """Performs the handshake."""
        number = self.ask("initialize", {
            "protocolVersion": revision, "capabilities": capabilities or {},
            "clientInfo": {"name": "wire", "version": "1"},
        })
        answer = self.answer(number)
        self.notify("notifications/initialized")
        return answer

    def close_input(self):
        if self._in is not None:
            if self._transport == "socket":
                duplicate = socket.socket(fileno=self._in)
                duplicate.shutdown(socket.SHUT_WR)
                duplicate.close()
            else:
                os.close(self._in)
            self._in = None

    def end(self, seconds=10):
        """Closes the input; returns the exit code."""
        self.close_input()
        code = self.process.wait(seconds)
        self._reader.join(seconds)
        os.close(self._out)
        return code

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.close_input()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
