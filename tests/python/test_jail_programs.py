"""What must still work at level high: the tools of every day, offline."""

import itertools
import json
import textwrap
import zipfile

import pytest

from harness.protected_env import USERS_BY_INTERFACE, USERS, isolation
from harness.isolation_client import INTERFACES

COUNTER = itertools.count()

#: Scripts that must succeed and print `works`; each in a workspace of its own.
SCRIPTS = {
    "compiler": """
        printf '#include <stdio.h>\\nint main(void){puts("works");}\\n' > a.c && cc -O1 -o a a.c && ./a
    """,
    "make": """
        printf 'all: out\\n\\tcat out\\nout: in\\n\\tcp in out\\n' > Makefile && echo works > in && make -s
    """,
    "git": """
        git init -q . && git config user.email a@b.c && git config user.name A && echo one > file &&
        git add file && git commit -qm first && test -z "$(git status --porcelain)" && git log --oneline | grep -q first &&
        git branch other && git checkout -q other && git stash list && echo works
    """,
    "python": """
        python3 -c 'import ssl, sqlite3, ctypes, threading, multiprocessing as m
        with m.Pool(2) as pool: print("works" if pool.map(abs, [-1, 2]) == [1, 2] else "odd")'
    """,
    "node": """node -e 'setTimeout(() => console.log("works"), 10)'""",
    "loopback server": """
        python3 -c '
        import http.server, threading, urllib.request
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        urllib.request.urlopen("http://127.0.0.1:%d/" % server.server_port).read()
        print("works")'
    """,
    "loopback server on every address": """
        python3 -c '
        import socket
        for family, any_, one in ((socket.AF_INET, "0.0.0.0", "127.0.0.1"), (socket.AF_INET6, "::", "::1")):
            server = socket.socket(family); server.bind((any_, 0)); server.listen()
            socket.create_connection((one, server.getsockname()[1]), 2).close()
        socket.create_connection(("localhost", server.getsockname()[1]), 2).close()
        print("works")'
    """,
    "unix sockets": """
        python3 -c '
        import os, socket, tempfile
        with tempfile.TemporaryDirectory() as top:
            for address in ("in.sock", chr(0) + "in" + str(os.getpid()), top + "/s"):
                server = socket.socket(socket.AF_UNIX); server.bind(address); server.listen()
                client = socket.socket(socket.AF_UNIX); client.connect(address)
        print("works")'
    """,
    "temporary files": """
        f=$(mktemp) && echo works > $f && cat $f && d=$(mktemp -d) && touch $d/x && test -w /tmp && test -w /var/tmp &&
        python3 -c 'import tempfile; tempfile.NamedTemporaryFile().write(b"x")' && test -k /tmp
    """,
    "shared memory": """
        python3 -c '
        from multiprocessing import shared_memory
        one = shared_memory.SharedMemory(create=True, size=4096); one.buf[0] = 7
        two = shared_memory.SharedMemory(one.name); assert two.buf[0] == 7
        two.close(); one.close(); one.unlink(); print("works")'
    """,
    "devices": """
        echo gone > /dev/null && head -c 8 /dev/urandom | wc -c | grep -q 8 && head -c 8 /dev/random >/dev/null &&
        head -c 8 /dev/zero | wc -c | grep -q 8 && ! echo x > /dev/full && test -c /dev/tty && test -e /dev/fd/0 &&
        echo works
    """,
    "standard streams by name": """
        echo works > /dev/stdout && echo err > /dev/stderr && cat < /dev/stdin && echo also | tee /dev/stderr
    """,
    "terminal by script": """script -qec 'test -t 0 && tty && echo works' /dev/null""",
    "terminal by python": """
        python3 -c '
        import pty, os, sys
        status = pty.spawn(["sh", "-c", "test -t 1 && stty size && echo works"], lambda fd: os.read(fd, 1000))
        sys.exit(os.waitstatus_to_exitcode(status))' < /dev/null
    """,
    "ssh-keygen": """ssh-keygen -q -t ed25519 -N '' -f key && ssh-keygen -lf key.pub && echo works""",
    "sqlite": """
        sqlite3 data.db 'pragma journal_mode=wal; create table t(x); insert into t values(1); select "works";'
    """,
    "tar": """
        mkdir -p tree/a && echo works > tree/a/file && ln -s file tree/a/link && ln tree/a/file tree/a/hard &&
        tar czf t.tgz tree && rm -r tree && tar xzf t.tgz && cat tree/a/link
    """,
    "files of every kind": """
        mkfifo pipe && (echo works > pipe & cat pipe) && chmod 600 pipe && touch -d 2001-01-01 old &&
        mv old new && ln -s new link && readlink link && chmod 755 new && mkdir -p a/b/c && rm -r a && truncate -s 1M new
    """,
    "processes": """
        ps -e | grep -q ps && sleep 100 & kill $! ; wait $! || test $? = 143 ; test "$(cat /proc/self/comm)" = cat &&
        timeout 5 true && nohup true 2>/dev/null && setsid true && nice true && echo works
    """,
    "a debugger's view of oneself": """
        python3 -c 'import faulthandler, resource; faulthandler.dump_traceback()' && grep -q Threads /proc/self/status &&
        ls /proc/self/fd >/dev/null && readlink /proc/self/exe >/dev/null && echo works
    """,
    "locales, zones and names": """
        getent passwd root >/dev/null && getent hosts localhost >/dev/null && date >/dev/null &&
        TZ=Europe/Berlin date +%Z | grep -q CE && python3 -c 'import zoneinfo; zoneinfo.ZoneInfo("Asia/Tokyo")' &&
        id && echo works
    """,
    "certificates": """
        test -r /etc/ssl/certs && python3 -c 'import ssl; print("works" if ssl.create_default_context() else "")'
    """,
    "threads and timers": """
        python3 -c '
        import threading, signal, time, os, select
        ts = [threading.Thread(target=time.sleep, args=(0.01,)) for _ in range(50)]
        [t.start() for t in ts]; [t.join() for t in ts]
        e = select.epoll(); os.eventfd(0); os.memfd_create("m"); os.pidfd_open(os.getpid())
        signal.setitimer(signal.ITIMER_REAL, 1); signal.setitimer(signal.ITIMER_REAL, 0); print("works")'
    """,
    "file watches": """
        python3 -c '
        import ctypes, os
        libc = ctypes.CDLL(None); fd = libc.inotify_init1(0)
        assert libc.inotify_add_watch(fd, b".", 0x100) > 0
        open("seen", "w").close(); assert b"seen" in os.read(fd, 1000); print("works")'
    """,
}


def workspace(installation):
    """A fresh directory of its own."""
    path = installation.dir / f"work-{next(COUNTER)}"
    path.mkdir()
    installation.give(path)
    return path


def works(installation, interface, user, script, cwd, **options):
    """Runs a script that must print `works` as its last word of success."""
    result = INTERFACES[interface](installation, ["sh", "-ec", textwrap.dedent(script)], isolation(user), cwd=cwd, **options)
    assert result.exit_code == 0 and "works" in result.text, result.text[-3000:]


@pytest.mark.parametrize(("user", "interface"), USERS_BY_INTERFACE)
@pytest.mark.parametrize("name", SCRIPTS)
def test_works(protected_envs, user, interface, name):
    installation = protected_envs.of(user)
    works(installation, interface, user, SCRIPTS[name], workspace(installation))


@pytest.mark.parametrize("user", USERS)
def test_what_it_writes_belongs_to_the_caller_on_the_host(protected_envs, user):
    installation = protected_envs.of(user)
    directory = workspace(installation)
    works(installation, "cli", user, "mkdir d && echo x > d/f && cp d/f d/g && chmod 640 d/f && echo works", directory)
    owner = installation.user if installation.user is not None else 0
    for path in (directory / "d", directory / "d" / "f", directory / "d" / "g"):
        assert path.stat().st_uid == owner, path
    assert (directory / "d" / "f").stat().st_mode & 0o7777 == 0o640


@pytest.mark.parametrize("user", USERS)
def test_it_sees_its_workspace_at_the_same_path(protected_envs, user):
    installation = protected_envs.of(user)
    directory = workspace(installation)
    (directory / "file").write_text("works\n")
    installation.give(directory)
    works(installation, "cli", user, f'test "$PWD" = {directory} && cat {directory}/file && touch {directory}/new', directory)
    assert (directory / "new").exists()


@pytest.mark.full
@pytest.mark.parametrize("user", USERS)
def test_pip_installs_a_local_wheel(protected_envs, user):
    installation = protected_envs.of(user)
    directory = workspace(installation)
    with zipfile.ZipFile(directory / "tiny-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tiny.py", "word = 'works'\n")
        wheel.writestr("tiny-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
        wheel.writestr("tiny-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr("tiny-1.0.dist-info/RECORD", "")
    installation.give(directory)
    works(installation, "mcp", user, """
        python3 -m venv env && env/bin/pip install -q --no-index ./tiny-1.0-py3-none-any.whl
        env/bin/python -c 'import tiny; print(tiny.word)'
    """, directory)


@pytest.mark.full
@pytest.mark.parametrize("user", USERS)
def test_npm_installs_a_local_package(protected_envs, user):
    installation = protected_envs.of(user)
    directory = workspace(installation)
    tiny = directory / "tiny"
    tiny.mkdir()
    (tiny / "package.json").write_text(json.dumps({"name": "tiny", "version": "1.0.0", "main": "i.js"}))
    (tiny / "i.js").write_text("module.exports = 'works'\n")
    (directory / "package.json").write_text(json.dumps({"name": "app", "version": "1.0.0"}))
    installation.give(directory)
    works(installation, "mcp", user, """
        (cd tiny && npm pack --silent) && npm install --offline --no-audit --no-fund --silent ./tiny/tiny-1.0.0.tgz
        node -e 'console.log(require("tiny"))'
    """, directory)


@pytest.mark.parametrize("user", USERS)
def test_a_terminal_of_its_own(protected_envs, user):
    """`run -t`: the command's own terminal has a name and takes sizes."""
    from harness import TerminalUser

    installation = protected_envs.of(user)
    words = ["run", *isolation(user).words(), "-t", "--", "sh", "-c", "tty; stty size; read a; echo got $a; exit 3"]
    with TerminalUser(installation, *words, cols=91, rows=17) as person:
        person.wait_for(rb"/dev/\S+\r\n17 91\r\n")
        person.type("it\n")
        person.wait_for(b"got it")
        assert person.wait_exit() == 3


@pytest.mark.parametrize("user", USERS)
def test_input_output_and_exit_codes_pass_through(protected_envs, user):
    installation = protected_envs.of(user)
    done = installation.cli("run", *isolation(user).words(), "--", "sh", "-c", "cat; echo err >&2; exit 7",
                     check=False, stdin=None, input=b"in\n")
    assert (done.returncode, done.stdout) == (7, b"in\n")
    # The notes on missing capabilities precede it.
    assert done.stderr.endswith(b"err\n") and (user == "ordinary" or done.stderr == b"err\n")
    killed = installation.cli("run", *isolation(user).words(), "--", "sh", "-c", "kill -TERM $$", check=False)
    assert killed.returncode == 128 + 15
    missing = installation.cli("run", *isolation(user).words(), "--", "no-such-program", check=False)
    assert missing.returncode == 127, missing.stderr


@pytest.mark.parametrize("user", USERS)
def test_what_it_leaves_running_ends_with_it(protected_envs, user):
    from harness import named, until

    installation = protected_envs.of(user)
    mark = f"300.{next(COUNTER)}71"
    script = f"setsid sleep {mark} & nohup sleep {mark} >/dev/null 2>&1 & (sleep {mark} &) ; echo works"
    works(installation, "cli", user, script, workspace(installation))
    until(lambda: not named(f"sleep {mark}"), 5, "the end of what was left running")
