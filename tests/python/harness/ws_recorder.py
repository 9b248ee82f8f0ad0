"""Records the messages on the WebSocket of a session: output, sizes, the lease holder, the end."""

import base64
import json
import os
import re
import struct
import time

#: Opcodes of frames (RFC 6455, 5.2).
TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10


class WsRecorder:
    """One connection to `GET …/terminal`, or to another path, implemented without a WebSocket library. `host` is who is
    connected to: an installation or an `HttpDaemon`."""

    def __init__(self, host, session, query="offset=0&whole=true", headers=None, path=None):
        self.messages = []
        self.output = b""
        self.paints = 0
        self.closed = False
        self.close_frame = b""
        self.connection = host.connect(timeout=20)
        self.connection.connect()
        self.sock = self.connection.sock
        self.buffer = b""
        self._shake_hands((path or f"/api/v1/executions/{session}/terminal") + (f"?{query}" if query else ""), headers or {})

    def _shake_hands(self, path, headers):
        key = base64.b64encode(os.urandom(16)).decode()
        headers = {"Host": "localhost", **headers}
        lines = [
            f"GET {path} HTTP/1.1", "Connection: Upgrade", "Upgrade: websocket",
            "Sec-WebSocket-Version: 13", f"Sec-WebSocket-Key: {key}",
            *(f"{name}: {value}" for name, value in headers.items()), "", "",
        ]
        self.sock.sendall("\r\n".join(lines).encode())
        while b"\r\n\r\n" not in self.buffer:
            self._more()
        head, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
        self.head = head.decode()
        assert b" 101 " in head.split(b"\r\n")[0], head + self.buffer

    def _more(self):
        data = self.sock.recv(1 << 16)
        assert data, f"it hung up; said {self.messages}"
        self.buffer += data

    def _take(self, count):
        while len(self.buffer) < count:
            self._more()
        data, self.buffer = self.buffer[:count], self.buffer[count:]
        return data

    def frame(self):
        """Receives and records the next frame."""
        first, length = self._take(2)
        length &= 127
        if length == 126:
            (length,) = struct.unpack(">H", self._take(2))
        elif length == 127:
            (length,) = struct.unpack(">Q", self._take(8))
        data = self._take(length)
        match first & 15:
            case 1:
                self.messages.append(json.loads(data))
            case 2:
                if self.messages and self.messages[-1]["type"] == "paint":
                    self.paints += 1
                self.output += data
            case 8:
                self.closed = True
                self.close_frame = data
            case 9:
                self.send(PONG, data)
        return first & 15

    def send(self, opcode, data):
        """Sends one frame, masked as the RFC requires of clients."""
        mask = os.urandom(4)
        size = len(data)
        head = bytes([0x80 | opcode])
        if size < 126:
            head += bytes([0x80 | size])
        elif size < 1 << 16:
            head += bytes([0x80 | 126]) + struct.pack(">H", size)
        else:
            head += bytes([0x80 | 127]) + struct.pack(">Q", size)
        masked = bytes(byte ^ mask[at % 4] for at, byte in enumerate(data))
        self.sock.sendall(head + mask + masked)

    def say(self, **message):
        self.send(TEXT, json.dumps(message).encode())

    def type(self, data):
        self.send(BINARY, data)

    def wait_output(self, pattern, seconds=20):
        """Waits until a pattern matches the output; returns the match."""
        deadline = time.monotonic() + seconds
        while not (found := re.search(pattern, self.output, re.S)):
            assert time.monotonic() < deadline and not self.closed, (pattern, self.output[-500:])
            self.frame()
        return found

    def wait_message(self, kind, seconds=20, **fields):
        """Waits for a message of this kind with these fields; drops the messages before it."""
        deadline = time.monotonic() + seconds
        while True:
            for at, message in enumerate(self.messages):
                if message["type"] == kind and fields.items() <= message.items():
                    del self.messages[: at + 1]
                    return message
            assert time.monotonic() < deadline and not self.closed, (kind, fields, self.messages)
            self.frame()

    def to_the_end(self):
        """All messages until the connection is closed."""
        while not self.closed:
            self.frame()
        return self.messages

    def close(self):
        self.connection.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
