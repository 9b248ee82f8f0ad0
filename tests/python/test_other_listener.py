"""Another user who listens where this user's daemon would: nothing is sent to it."""

import os
import socket
import threading

import pytest

from harness.installation import is_root

pytestmark = pytest.mark.skipif(not is_root(), reason="a listener of another user is made as root")

OTHER_USER = 65533
SECRET = "victims-secret"


class Listener:
    """A socket of another user that accepts everybody, and keeps what it gets."""

    def __init__(self, path):
        self.received = b""
        path.unlink(missing_ok=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(str(path))
        path.chmod(0o777)
        # The peer's credential is that of whoever called listen(2).
        os.seteuid(OTHER_USER)
        try:
            self.socket.listen()
        finally:
            os.seteuid(0)
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _serve(self):
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            with connection:
                while part := connection.recv(65536):
                    self.received += part

    def close(self):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        self.thread.join(10)


@pytest.mark.parametrize(("name", "words"), [
    ("daemon.sock", ["run", "--", "true"]),
    ("daemon.sock", ["ps"]),
    ("daemon.sock", ["version"]),
    ("front.sock", ["mcp"]),
])
def test_a_listener_of_another_user_gets_nothing(installation, name, words):
    directory = installation.dir / "run" / "ostler"
    listener = Listener(directory / name)
    try:
        done = installation.cli(*words, check=False, env={"MY_PASSWORD": SECRET, "OSTLER_SECRET_DB": SECRET})
    finally:
        listener.close()
    assert listener.received == b"", listener.received[:200]
    if name == "daemon.sock":
        assert f"user {OTHER_USER} listens there".encode() in done.stderr + done.stdout, done
