#!/usr/bin/env python3
"""A server with one bad habit of real servers: `server.py HABIT [PORT] [FILE]`.

Sleeps here imitate the slowness of a program; none waits for a condition.
"""

import http.server
import os
import signal
import socket
import ssl
import sys
import threading
import time
from pathlib import Path

HABITS = {}


def habit(function):
    HABITS[function.__name__.replace("_", "-")] = function
    return function


class Answers(http.server.BaseHTTPRequestHandler):
    """Responds with the habit's name; `status()` may return another status than 200."""

    protocol_version = "HTTP/1.1"
    status = staticmethod(lambda path: 200)

    def do_GET(self):
        body = f"{sys.argv[1]} {os.getpid()}\n".encode()
        self.send_response(self.status(self.path))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_args):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, port, host="127.0.0.1", **more):
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        handler = type("Handler", (Answers,), {key: staticmethod(value) for key, value in more.items()})
        super().__init__((host, port), handler)


def say(text):
    print(text, flush=True)


def forever():
    while True:
        signal.pause()


def listener(port):
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    one.bind(("127.0.0.1", port))
    one.listen()
    return one


@habit
def plain(port):
    say(f"Listening on http://127.0.0.1:{port}")
    Server(port).serve_forever()


@habit
def silent(port):
    Server(port).serve_forever()


@habit
def in_use(port):
    """The application under a watcher cannot have its port; the watcher stays."""
    try:
        listener(port)
    except OSError:
        print(f"Error: listen EADDRINUSE: address already in use 127.0.0.1:{port}", file=sys.stderr, flush=True)
        forever()


@habit
def in_use_exits(port):
    try:
        listener(port)
    except OSError as error:
        sys.exit(f"OSError: {error}: port {port} is already in use")


@habit
def line_before_port(port):
    say(f"  VITE ready in 120 ms\n  Local:   http://127.0.0.1:{port}/")
    time.sleep(2)
    Server(port).serve_forever()


@habit
def line_then_exit(port):
    say(f"[SUCCESS] ready in 95 ms, website is running at http://127.0.0.1:{port}/")
    time.sleep(0.3)
    sys.exit("TypeError: cannot read properties of undefined")


@habit
def port_then_exit(port):
    """The port opens, no connection is accepted, and the master exits."""
    listener(port)
    say(f"Listening at: http://127.0.0.1:{port}")
    time.sleep(0.6)
    print("ModuleNotFoundError: No module named 'app'\nReason: Worker failed to boot.", file=sys.stderr, flush=True)
    sys.exit(3)


@habit
def watcher_survives(port):
    """The application dies by itself; its watcher waits for a changed file."""
    say("[watch] starting `app`")
    if os.fork() == 0:
        print("SyntaxError: invalid syntax", file=sys.stderr, flush=True)
        os._exit(1)
    os.wait()
    say("[watch] app crashed - waiting for file changes before starting...")
    forever()


@habit
def buffered(port):
    """Prints that it listens into a buffer that never fills."""
    sys.stdout = open(1, "w", buffering=65_536, closefd=False)
    print(f"Listening on http://127.0.0.1:{port}")
    Server(port).serve_forever()


@habit
def daemonises(port):
    """The classical double fork: the original process exits with 0."""
    if os.fork():
        os._exit(0)
    os.setsid()
    if os.fork():
        os._exit(0)
    Server(port).serve_forever()


@habit
def debugger_first(port, debugger):
    """The debugger's port opens first, the application's a moment later."""
    threading.Thread(target=Server(int(debugger)).serve_forever, daemon=True).start()
    say(f"Debugger listening on ws://127.0.0.1:{debugger}/8b1")
    time.sleep(0.5)
    Server(port).serve_forever()


@habit
def random_port(_port):
    server = Server(0)
    say(f"Serving HTTP on 127.0.0.1 port {server.server_address[1]}")
    server.serve_forever()


@habit
def ipv6_only(port):
    Server(port, "::1").serve_forever()


@habit
def tls_only(port, pem):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    server = Server(port)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.serve_forever()


@habit
def ends_with_input(port):
    """Ends well as soon as there is no more input."""
    threading.Thread(target=Server(port).serve_forever, daemon=True).start()
    sys.stdin.buffer.read()


@habit
def needs_terminal(port):
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        sys.exit("the input device is not a TTY")
    Server(port).serve_forever()


@habit
def coloured(port):
    """Its line in colour and in pieces, of which some end inside an escape sequence."""
    server = Server(port)
    for piece in ("\x1b[3", "2m  rea", "dy\x1b[", "0m in \x1b[1m", "42", "\x1b[22m m", f"s on \x1b[36mhttp://127.0.0.1:{port}", "/\x1b[39m", "\r\n"):
        os.write(1, piece.encode())
        time.sleep(0.05)
    server.serve_forever()


@habit
def says_503(port):
    """Takes requests and is not ready for them for two seconds."""
    since = time.monotonic()
    Server(port, status=lambda _path: 200 if time.monotonic() - since > 2 else 503).serve_forever()


@habit
def transient(port):
    """Checks three times whether the port is free before it is bound for good."""
    for _ in range(3):
        listener(port).close()
        time.sleep(0.3)
    time.sleep(0.6)
    Server(port).serve_forever()


@habit
def moves(port):
    """Takes the next port where the one it was given is taken."""
    asked = int(os.environ.get("PORT", port))
    while True:
        try:
            server = Server(asked)
        except OSError:
            say(f"Port {asked} is in use, trying another one...")
            asked += 1
            continue
        say(f"  Local:   http://127.0.0.1:{asked}/")
        server.serve_forever()


@habit
def slow_answer(port):
    """The first request compiles everything."""
    first = threading.Lock()

    def status(_path):
        if first.acquire(blocking=False):
            time.sleep(5)
        return 200

    Server(port, status=status).serve_forever()


@habit
def from_environment(_port):
    """Takes the port it is given in PORT."""
    Server(int(os.environ["PORT"])).serve_forever()


@habit
def fails_at_first(port, times):
    """Exits with 9 this many times, counted in a file, and then serves."""
    tries = Path("tries")
    with tries.open("a") as file:
        file.write(f"{time.monotonic()}\n")
    if len(tries.read_text().splitlines()) <= int(times):
        sys.exit(9)
    Server(port).serve_forever()


@habit
def sickens(port, file):
    """`/health` is 500 while the file exists; every start cures it."""
    Path(file).unlink(missing_ok=True)
    Server(port, status=lambda path: 500 if path == "/health" and Path(file).exists() else 200).serve_forever()


@habit
def unhealthy(port):
    """Serves, and reports itself as unhealthy."""
    Server(port, status=lambda path: 500 if path == "/health" else 200).serve_forever()


@habit
def hangs_at_first(port):
    """Leaves the first two requests for `/health` without an answer."""
    left = [None, None]

    def status(path):
        if path == "/health" and left:
            left.pop()
            threading.Event().wait()
        return 200

    Server(port, status=status).serve_forever()


@habit
def stubborn(port):
    """The server is a grandchild in its own session, and ignores SIGTERM."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if os.fork() == 0:
        os.setsid()
        Server(port).serve_forever()
    forever()


@habit
def diary(port, name, after="0"):
    """Writes down when it begins and when it ends; serves `after` seconds later."""

    def note(what):
        with open("diary", "a") as file:
            file.write(f"{name} {what}\n")

    def end(_signal, _frame):
        note("ends")
        os._exit(0)

    signal.signal(signal.SIGTERM, end)
    note("begins")
    time.sleep(float(after))
    server = Server(port)
    note("serves")
    server.serve_forever()


@habit
def notifies(port):
    """Sends READY=1 a moment after it serves."""
    threading.Thread(target=Server(port).serve_forever, daemon=True).start()
    time.sleep(0.5)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as one:
        one.sendto(b"STATUS=up\nREADY=1", os.environ["NOTIFY_SOCKET"])
    forever()


@habit
def closes_port(port):
    """Serves until SIGUSR1, and continues without its port."""
    server = Server(port)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    signal.signal(signal.SIGUSR1, lambda *_: None)
    signal.pause()
    print("Error: the application gave up", file=sys.stderr, flush=True)
    server.shutdown()
    server.server_close()
    forever()


if __name__ == "__main__":
    name, *rest = sys.argv[1:]
    HABITS[name](int(rest[0]) if rest else 0, *rest[1:])
