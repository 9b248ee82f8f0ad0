"""What holds for a command wherever it runs: each test runs with processes of this machine and with those of a container."""

import base64
import hashlib
import os
import random
import re
import time

import pytest

from harness import Terminals, named, procs, until
from harness.backend import none_left
from harness.installation import ProblemError
from harness.service_client import unique_name
from harness.services import free_port

TERMINAL = {"cols": 80, "rows": 24}
SECRET = "s3cr3t-v4lu3-0f-the-b4ckend-su1te"


def mark():
    """A unique duration of sleep(1), to find its processes by."""
    return f"300.{random.randrange(10**8, 10**9)}"


# ---- ends


def test_exit_codes_are_passed_through(backend):
    for code in (0, 1, 7, 255):
        result = backend.run(f"exit {code}")
        assert result.code == code and result.cause == {"kind": "exited"}, result
        assert result.info["status"] == ("completed" if code == 0 else "failed"), result


@pytest.mark.parametrize("name", ["TERM", "KILL", "SEGV", "USR1"])
def test_a_signal_is_reported_as_one(backend, name):
    result = backend.run(f"kill -{name} $$")
    assert (result.code, result.info["signal"]) == (None, f"SIG{name}"), result
    assert result.cause == {"kind": "signaled"}, result


def test_a_signal_of_a_child_is_the_shells_code(backend):
    assert backend.run("sh -c 'kill -9 $$'; exit $?").code == 137


def test_a_program_that_is_not_there_was_never_started(backend):
    try:
        result = backend.run(["no-such-program-anywhere"])
    except ProblemError as error:
        assert "no-such-program-anywhere" in str(error), error
        return
    assert result.cause["kind"] == "spawn_failed" and result.code is None, result
    assert "no-such-program-anywhere" in result.info["error_message"], result


def test_a_program_of_the_workspace_runs(backend):
    program = backend.work / "program"
    program.write_text("#!/bin/sh\necho \"it ran: $*\"\nexit 4\n")
    program.chmod(0o755)
    result = backend.run(["./program", "one word", "$HOME"])
    assert (result.code, result.out) == (4, b"it ran: one word $HOME\n"), result


# ---- streams


def test_the_streams_are_kept_apart_and_in_order(backend):
    script = "i=0; while [ $i -lt 200 ]; do echo out $i; echo err $i >&2; i=$((i+1)); done"
    result = backend.run(script)
    for stream, name in ((result.out, "out"), (result.err, "err")):
        assert stream.decode().splitlines() == [f"{name} {n}" for n in range(200)]


def test_output_is_there_while_it_runs(backend):
    execution = backend.start("echo first; while [ ! -e go ]; do sleep 0.02; done; echo last")
    backend.shows(execution, "first")
    assert backend.info(execution)["status"] == "running"
    (backend.work / "go").touch()
    assert backend.ended(execution).out == b"first\nlast\n"


def test_binary_output_is_kept_byte_by_byte(backend):
    result = backend.run([backend.python, "-c", "import os; [os.write(1, bytes(range(256))) for _ in range(64)]"])
    assert result.out == bytes(range(256)) * 64


def test_characters_split_across_writes_are_whole_in_text(backend):
    execution = backend.start(r"printf 'sm\303'; sleep 0.2; printf '\251rebr\303'; sleep 0.2; printf '\270d \360\237'; sleep 0.2; printf '\215\236\n'")
    result = backend.ended(execution)
    assert result.out.decode() == "smérebrød \N{BREAD}\n"
    assert backend.lines(execution) == ["smérebrød \N{BREAD}"]


@pytest.mark.parametrize("mebibytes", [5, pytest.param(100, marks=[pytest.mark.full, pytest.mark.limit(240)])])
def test_no_byte_of_a_large_output_is_lost(backend, mebibytes):
    script = f"dd if=/dev/urandom of=data bs=1048576 count={mebibytes} 2>/dev/null; cat data; sha256sum data >&2; rm data"
    execution = backend.start(script)
    result = backend.ended(execution, 200 if mebibytes > 5 else 30)
    assert len(result.out) == mebibytes << 20
    assert hashlib.sha256(result.out).hexdigest() == result.err.decode().split()[0]
    assert result.info["output_bytes"] == len(result.out) + len(result.err)


def test_a_reader_that_is_slow_gets_all_lines(backend):
    """A million short lines by the command line, which reads as fast as it can print."""
    done = backend.installation.cli("run", *backend.words(), "--", "seq", "1", "300000")
    assert done.stdout == b"".join(b"%d\n" % n for n in range(1, 300_001))


# ---- input


def test_given_input_arrives_byte_by_byte(backend):
    data = random.randbytes(300_000)
    result = backend.run("sha256sum; head -c 1 | wc -c", stdin={"given": {"base64": base64.b64encode(data).decode()}})
    assert result.out.decode().split()[0] == hashlib.sha256(data).hexdigest(), result
    assert result.out.decode().split()[-1] == "0", "at its end"


def test_input_is_at_its_end_unless_given(backend):
    assert backend.run("cat; echo over").out == b"over\n"


def test_open_input_takes_what_is_written_until_it_is_closed(backend):
    execution = backend.start("while read -r line; do echo \"got $line\"; done; echo closed", stdin="open")
    for word in ("one", "two"):
        backend.type(execution, f"{word}\n".encode())
        backend.shows(execution, f"got {word}")
    backend.type(execution, b"three", close=True)
    # The shell's read returns an incomplete last line as a failure.
    assert backend.ended(execution).out == b"got one\ngot two\nclosed\n"


def test_much_input_is_passed_on_as_the_command_reads_it(backend):
    execution = backend.start("sleep 0.5; wc -c", stdin="open")
    data = bytes(256 * 1024)
    for _ in range(8):
        view = data
        while view:
            view = view[backend.type(execution, view)["taken"]:]
    backend.type(execution, b"", close=True)
    assert int(backend.ended(execution).out) == 8 * len(data)


def test_the_command_line_passes_its_input_on(backend):
    done = backend.installation.cli("run", *backend.words(), "--", "sha256sum", stdin=None, input=b"\0\1\2" * 10_000)
    assert done.stdout.split()[0].decode() == hashlib.sha256(b"\0\1\2" * 10_000).hexdigest()
    done = backend.installation.cli("run", *backend.words(), "--", "sh", "-c", "echo o; echo e >&2; exit 9", check=False)
    assert (done.returncode, done.stdout, done.stderr) == (9, b"o\n", b"e\n")


def test_programs_that_cannot_be_executed_have_the_exit_codes_of_shells(backend):
    work = backend.installation.work
    for name, text in (("plain", "no program\n"), ("orphan", "#!/no/such/interpreter\n")):
        (work / name).write_text(text)
    (work / "orphan").chmod(0o755)
    (work / "directory").mkdir()
    codes = {"no-such-program": 127, "./orphan": 127, "./plain": 126, "./directory": 126, "/dev/null": 126}
    for program, code in codes.items():
        done = backend.installation.cli("run", *backend.words(), "--", program, check=False)
        assert (done.returncode, done.stdout) == (code, b""), (program, done.stderr)
        assert done.stderr, program


# ---- environment


def test_variables_are_those_of_the_request(backend):
    given = [["ONE", "a b"], ["EMPTY", ""], ["LETTERS", "ü \N{BREAD}"], ["LINES", "a\nb"]]
    result = backend.run(["env", "-0"], env=given)
    seen = dict(item.split(b"=", 1) for item in result.out.split(b"\0") if item)
    for name, value in given:
        assert seen[name.encode()] == value.encode(), (name, seen)
    assert b"OSTLER_SECRET_TOKEN" not in seen and seen[b"PATH"], seen


def test_the_working_directory_is_where_the_request_says(backend):
    inner = backend.work / "inner" / "more"
    inner.mkdir(parents=True)
    os.chown(inner, 1000, 1000)
    assert backend.run("pwd; echo here > file").out.decode().strip() == backend.cwd
    result = backend.run("pwd; pwd > file", cwd=str(inner), **workspace(backend))
    assert result.out.decode().strip() == f"{backend.cwd}/inner/more", result
    assert (inner / "file").read_text().strip() == f"{backend.cwd}/inner/more"


def workspace(backend):
    """Fields of a start in a directory of the workspace."""
    return {"container": {"workspace": str(backend.work)}} if backend.is_container else {}


# ---- timeouts and stops


def test_the_wall_clock_ends_the_tree(backend):
    one = mark()
    begin = time.monotonic()
    result = backend.run(f"echo before; trap '' TERM; setsid sleep {one} & sleep {one}", timeout_ms=1000)
    assert result.cause == {"kind": "timed_out", "clock": "wall"} and result.out == b"before\n", result
    assert time.monotonic() - begin < 20
    none_left(f"sleep {one}", 1)


def test_silence_ends_the_tree(backend):
    one = mark()
    script = f"for n in 1 2 3; do echo $n; sleep 0.5; done; exec sleep {one}"
    result = backend.run(script, idle_ms=1500)
    assert result.cause == {"kind": "timed_out", "clock": "idle"} and result.out == b"1\n2\n3\n", result
    none_left(f"sleep {one}", 1)


def test_a_stop_lets_the_command_say_goodbye(backend):
    execution = backend.start("trap 'echo goodbye; exit 7' TERM; echo up; while :; do sleep 0.05; done")
    backend.shows(execution, "up")
    backend.stop(execution, reason="enough")
    result = backend.ended(execution)
    assert result.cause == {"kind": "stopped", "reason": "enough"} and result.code == 7, result
    assert result.out == b"up\ngoodbye\n"


def test_the_grace_is_what_the_stop_says(backend):
    execution = backend.start("trap 'echo ignored' TERM; echo up; while :; do sleep 0.05; done")
    backend.shows(execution, "up")
    begin = time.monotonic()
    backend.stop(execution, grace_ms=1000)
    result = backend.ended(execution)
    assert 0.9 < time.monotonic() - begin < 8
    assert result.info["signal"] == "SIGKILL" and b"ignored" in result.out, result


def test_a_forced_stop_gives_no_grace(backend):
    execution = backend.start("trap 'echo goodbye' TERM; echo up; while :; do sleep 0.05; done")
    backend.shows(execution, "up")
    begin = time.monotonic()
    backend.stop(execution, force=True)
    result = backend.ended(execution)
    assert time.monotonic() - begin < 3 and b"goodbye" not in result.out, result
    assert result.info["signal"] == "SIGKILL"


def test_a_signal_reaches_the_leader(backend):
    execution = backend.start("trap 'echo hup' HUP; trap 'echo usr1; exit 5' USR1; echo up; while :; do sleep 0.05; done")
    backend.shows(execution, "up")
    for name in ("SIGHUP", "SIGUSR1"):
        backend.rest("POST", f"executions/{execution}/signal", {"signal": name})
        backend.shows(execution, name.removeprefix("SIG").lower())
    assert backend.ended(execution).code == 5


#: Every way out of a process group.
ESCAPES = (
    "setsid sleep {0} & nohup sleep {0} >/dev/null 2>&1 & (trap '' TERM HUP; sleep {0}; sleep {0}) & "
    "python3 -c \"import os; os.fork() and os._exit(0); os.setsid(); os.fork() and os._exit(0); "
    "os.execvp('sleep', ['sleep', '{0}'])\" & "
)


def test_what_the_leader_leaves_is_ended_and_counted(backend):
    one = mark()
    script = ESCAPES.format(one) + "until [ -e go ]; do sleep 0.02; done; echo over; exit 3"
    execution = backend.start(script)
    until(lambda: len(named(f"sleep {one}")) >= 4, 10, "the tree")
    begin = time.monotonic()
    (backend.work / "go").touch()
    result = backend.ended(execution)
    assert result.code == 3 and result.out == b"over\n", result
    assert result.info["leftovers"] >= 4 and result.info["survivors"] == [], result
    assert time.monotonic() - begin < 20
    none_left(f"sleep {one}", 1)


def test_a_stop_ends_the_whole_tree(backend):
    one = mark()
    execution = backend.start(ESCAPES.format(one) + f"sleep {one}")
    until(lambda: len(named(f"sleep {one}")) >= 5, 10, "the tree")
    backend.stop(execution, grace_ms=500)
    result = backend.ended(execution)
    assert result.cause["kind"] == "stopped", result
    none_left(f"sleep {one}", 1)


def test_one_command_of_several_is_ended_alone(backend):
    """In one container they have one pid namespace."""
    first, second = mark(), mark()
    ids = [backend.start(ESCAPES.format(one) + f"sleep {one}") for one in (first, second)]
    for one in (first, second):
        until(lambda: len(named(f"sleep {one}")) >= 5, 10, "the tree")
    backend.stop(ids[0], force=True)
    none_left(f"sleep {first}", 5)
    assert len(named(f"sleep {second}")) >= 5 and backend.info(ids[1])["status"] == "running"
    backend.stop(ids[1], force=True)
    none_left(f"sleep {second}", 5)


def test_a_child_that_holds_the_pipe_does_not_hold_the_result(backend):
    one = mark()
    begin = time.monotonic()
    result = backend.run(f"sleep {one} & echo done")
    assert result.code == 0 and result.out == b"done\n" and time.monotonic() - begin < 15, result
    none_left(f"sleep {one}", 1)


def test_many_at_once_are_each_themselves(backend):
    ids = [backend.start(f"sleep 0.2; echo number {n}; exit {n}") for n in range(16)]
    for n, execution in enumerate(ids):
        result = backend.ended(execution)
        assert (result.code, result.out) == (n, b"number %d\n" % n), result


# ---- across daemons


def test_it_goes_on_under_the_next_daemon(backend):
    script = "i=0; while [ ! -e go ]; do i=$((i+1)); echo tick $i; sleep 0.02; done; echo last; exit 6"
    execution = backend.start(script, stdin="open")
    backend.shows(execution, "tick 5")
    for _ in range(2):
        backend.next_daemon()
        now = len(backend.streams(execution)["stdout"])
        until(lambda: len(backend.streams(execution)["stdout"]) > now, 10, "more output")
    assert backend.info(execution)["status"] == "running"
    (backend.work / "go").touch()
    result = backend.ended(execution)
    ticks = re.findall(r"tick (\d+)\n", result.text)
    assert ticks == [str(n) for n in range(1, len(ticks) + 1)] and result.text.endswith("last\n"), result
    assert result.code == 6 and result.cause == {"kind": "exited"}, result


def test_an_end_without_a_daemon_is_recorded(backend):
    execution = backend.start("until [ -e go ]; do sleep 0.02; done; echo over; exit 9")
    leader = backend.info(execution)["os_pid"]
    backend.installation.kill_daemon()
    (backend.work / "go").touch()
    until(lambda: not os.path.exists(f"/proc/{leader}"), 10, "its end")
    backend.installation.cli("ps")
    result = backend.ended(execution)
    assert (result.code, result.out) == (9, b"over\n"), result


def test_a_stop_works_under_the_next_daemon(backend):
    one = mark()
    execution = backend.start(f"sleep {one} & setsid sleep {one} & echo up; wait")
    backend.shows(execution, "up")
    backend.next_daemon()
    backend.stop(execution, force=True)
    assert backend.ended(execution).cause["kind"] == "stopped"
    none_left(f"sleep {one}", 2)


# ---- pause, use


#: A tree of three that counts, each in a file of its own.
COUNT = """
count() { i=0; while :; do i=$((i+1)); echo $i > count-$1; sleep 0.02; done; }
count 1 & setsid sh -c 'i=0; while :; do i=$((i+1)); echo $i > count-2; sleep 0.02; done' & count 3
"""


def test_a_pause_stops_the_whole_tree(backend):
    counts = [backend.work / f"count-{n}" for n in (1, 2, 3)]

    def read():
        return [file.read_text() for file in counts]

    def moves():
        before = read()
        until(lambda: all(now and now != then for now, then in zip(read(), before)), 5, "the tree to go on")

    execution = backend.start(COUNT)
    until(lambda: all(file.exists() for file in counts), 10, "the tree")
    for _ in range(2):
        backend.rest("POST", f"executions/{execution}/pause")
        before, end = read(), time.monotonic() + 0.5
        while time.monotonic() < end:
            assert read() == before, "it goes on"
        assert backend.info(execution)["paused"]
        backend.rest("POST", f"executions/{execution}/resume")
        moves()
    backend.rest("POST", f"executions/{execution}/pause")
    backend.next_daemon()
    assert backend.info(execution)["paused"]
    backend.stop(execution, force=True)
    assert backend.ended(execution).cause["kind"] == "stopped"


#: Uses a processor, 32 MiB of memory and a second process until it gets input.
BUSY = """
import os, subprocess, sys, threading
kept = bytearray(os.urandom(32 << 20))
child = subprocess.Popen(["sleep", "600"])
print("up", flush=True)
threading.Thread(target=lambda: (sys.stdin.readline(), child.kill(), os._exit(0)), daemon=True).start()
while True: pass
"""


def test_what_it_uses_is_sampled(backend):
    execution = backend.start([backend.python, "-c", BUSY], stdin="open")
    backend.shows(execution, "up")
    points, query = [], ""
    while len(points) < 3:
        page = backend.rest("GET", f"executions/{execution}/resources/history?resolution_s=1&wait_ms=20000{query}")
        points += page["points"]
        query = f"&since={page['next'].replace('+', '%2B')}"
    assert points[-1]["cpu_percent"] > 5 and points[-1]["memory_bytes"] > 32 << 20, points
    assert points[-1]["processes"] == 2, points
    now = backend.rest("GET", f"executions/{execution}/resources")
    assert [it["name"] for it in now["processes"]][1:] == ["sleep"] and now["memory_bytes"] > 32 << 20, now
    backend.type(execution, b"\n")
    result = backend.ended(execution)
    assert result.info["usage"]["user_us"] > 500_000 and result.info["usage"]["max_rss_bytes"] > 32 << 20, result


# ---- secrets


def test_secrets_reach_the_command_and_nothing_else(backend):
    script = 'echo "value $TOKEN"; test ${#TOKEN} = ' + str(len(SECRET)) + "; echo $?; echo \"$TOKEN\" >&2; printf %s \"$TOKEN\" | sha256sum"
    done = backend.installation.cli(
        "run", *backend.words(), "--secret", "TOKEN", "--", "sh", "-c", script, env={"OSTLER_SECRET_TOKEN": SECRET})
    assert SECRET.encode() not in done.stdout + done.stderr, done
    assert b"\n0\n" in done.stdout and hashlib.sha256(SECRET.encode()).hexdigest().encode() in done.stdout, done
    for base in (backend.installation.state, backend.installation.dir / "run"):
        for path in base.rglob("*"):
            if path.is_file() and not path.is_symlink():
                assert SECRET.encode() not in path.read_bytes(), path
    if backend.is_container:
        assert SECRET not in str([backend.engine.inspect(it["Id"]) for it in backend.containers()])


def test_a_secret_in_two_writes_is_redacted(backend):
    script = "import os, time; v = os.environ['TOKEN'].encode(); os.write(1, v[:9]); time.sleep(0.3); os.write(1, v[9:] + b'\\ndone\\n')"
    done = backend.installation.cli(
        "run", *backend.words(), "--secret", "TOKEN", "--", backend.python, "-c", script, env={"OSTLER_SECRET_TOKEN": SECRET})
    assert b"done" in done.stdout and SECRET.encode() not in done.stdout, done


# ---- prompts


@pytest.mark.parametrize(("terminal", "evidence"), [(False, "reads_pipe"), (True, "reads_terminal")])
def test_a_prompt_is_a_question(backend, terminal, evidence):
    script = 'printf "Overwrite? [y/N] "; read -r answer; echo "got <$answer>"'
    execution = backend.start(script, **({"pty": TERMINAL} if terminal else {"stdin": "open"}))
    question = question_of(backend, execution)
    assert (question["message"], question["kind"], question["default"]) == ("Overwrite? [y/N]", "confirmation", "N"), question
    assert question["evidence"] == [evidence, "prompt_words"], question
    backend.rest("POST", f"interactions/{question['id']}/answer", {"value": "yes"})
    assert "got <y>" in backend.ended(execution).text


def test_echo_off_is_evidence_of_a_secret(backend):
    script = 'stty -echo; printf "Kennwort "; read -r word; echo; echo "${#word} characters"'
    execution = backend.start(script, pty=TERMINAL)
    question = question_of(backend, execution)
    assert question["secret"] is True and question["evidence"] == ["reads_terminal", "echo_off"], question
    backend.rest("POST", f"interactions/{question['id']}/answer", {"value": "hunter2"})
    text = backend.ended(execution).text
    assert "7 characters" in text and "hunter2" not in text


def question_of(backend, execution):
    def found():
        listed = backend.rest("GET", "interactions")["interactions"]
        return next((it for it in listed if it["execution"] == execution), None)

    return until(found, 15, "the question")


# ---- terminals


def foreground(leader):
    """The process group in the foreground of a process's terminal, as this machine numbers it."""
    return int(procs.read(leader, "stat").rpartition(b")")[2].split()[5])


@pytest.mark.anyio
async def test_a_terminal_has_a_size_a_name_and_job_control(backend):
    async with Terminals.connect(backend.installation) as terminals:
        session = await terminals.start(
            "bash", "--norc", "--noprofile", cols=100, rows=30, env={"PS1": "$ "}, **backend.tool_options())
        await session.shows(r"^\$")
        await session.line("stty size; tty; test -t 0 && test -t 1 && test -t 2 && echo 'all three'")
        await session.shows(r"^30 100\n/dev/pts/\d+\nall three$")
        await session.resize(132, 43)
        await session.line("clear; stty size")
        await session.shows(r"^43 132$")
        await session.line("clear; sleep 300 & jobs")
        await session.shows(r"Running +sleep 300")
        leader = backend.info(session.id)["os_pid"]
        await session.line("fg")
        until(lambda: foreground(leader) != leader, 10, "the job in the foreground")
        await session.keys("ctrl-z")
        await session.shows(r"Stopped +sleep 300")
        await session.line("fg")
        until(lambda: foreground(leader) != leader, 10, "the job in the foreground")
        await session.keys("ctrl-c")
        until(lambda: foreground(leader) == leader, 10, "the shell in the foreground")
        await session.line("echo \"code $?\"")
        await session.shows(r"^code 130$")
        await session.line("exit 3")
        status = await session.ended()
        assert status["exit_code"] == 3, status


@pytest.mark.anyio
async def test_a_terminal_tells_of_its_size_and_takes_keys(backend):
    program = """
import os, signal
def on_resize(*_):
    size = os.get_terminal_size()
    os.write(1, f"{size.lines} {size.columns}\\n".encode())
signal.signal(signal.SIGWINCH, on_resize)
import tty
tty.setraw(0)
os.write(1, b"ready\\r\\n")
while (data := os.read(0, 100)) != b"q":
    os.write(1, data.hex().encode() + b"\\r\\n")
"""
    async with Terminals.connect(backend.installation) as terminals:
        session = await terminals.start(backend.python, "-c", program, **backend.tool_options())
        await session.wrote(rb"ready")
        await session.resize(90, 20)
        await session.wrote(rb"20 90")
        for key, code in (("up", b"1b5b41"), ("ctrl-c", b"03"), ("f5", b"1b5b31357e"), ("escape", b"1b")):
            await session.keys(key)
            await session.wrote(code)
        await session.type("q")
        assert (await session.ended())["exit_code"] == 0


@pytest.mark.anyio
async def test_a_terminal_goes_on_under_the_next_daemon(backend):
    async with Terminals.connect(backend.installation) as terminals:
        session = await terminals.start("sh", "-c", "echo up; read -r line; echo \"got $line\"; exit 4", **backend.tool_options())
        await session.shows("^up")
        backend.installation.kill_daemon()
        await session.line("hello")
        await session.shows("^got hello")
        assert (await session.ended())["exit_code"] == 4


@pytest.mark.anyio
async def test_the_end_of_a_terminal_ends_what_runs_in_it(backend):
    one = mark()
    async with Terminals.connect(backend.installation) as terminals:
        script = f"sleep {one} & setsid sleep {one} & nohup sleep {one} >/dev/null 2>&1 & echo up; sleep {one}"
        session = await terminals.start("sh", "-c", script, **backend.tool_options())
        await session.shows("^up")
        until(lambda: len(named(f"sleep {one}")) >= 4, 10, "the tree")
        await session.close()
    none_left(f"sleep {one}")


# ---- tools and services


@pytest.mark.anyio
async def test_agents_run_commands_there(backend):
    async with backend.installation.agent() as agent:
        reply = await agent.call("exec", script="echo out; echo err >&2; pwd; exit 3", wait_ms=20_000, **backend.tool_options())
        assert "out" in reply.text and "err" in reply.text and backend.cwd in reply.text, reply
        assert re.search(r"exit (?:code )?3", reply.text), reply
        reply = await agent.execute("sh", "-c", "echo from a tool; exit 5", **backend.tool_options())
        assert "from a tool" in reply.text and reply.value_or("exit_code") == 5, reply
        pid = await agent.start("sh", "-c", "echo up; sleep 300", **backend.tool_options())
        until(lambda: "up" in backend.text(pid), 10, "its output")
        assert (await agent.detail(pid))["status"] == "running"
        assert not (await agent.stop(pid, force=True)).is_error
        if backend.is_container:
            reply = await agent.must("exec", script="pwd", wait_ms=20_000, options={"backend": "container"})
            assert backend.cwd in reply.text, "the level follows from the backend"


def test_a_server_is_ready_and_answers(backend):
    port = free_port()
    name = unique_name("server")
    (backend.work / "index.html").write_text("hello from the workspace\n")
    body = backend.body([backend.python, "-m", "http.server", str(port), "--bind", "127.0.0.1"], name=name, port=port)
    backend.rest("POST", "services", body)

    def service():
        return backend.rest("GET", f"services/{name}?cwd={backend.work}")

    until(lambda: service()["status"] in ("ready", "failed"), 30, "its readiness")
    state = service()["execution"]["service"]
    assert service()["status"] == "ready" and [it["port"] for it in state["ports"]] == [port], service()
    # By another command of the same place: a container's loopback interface is its own.
    fetch = f"import urllib.request as u; print(u.urlopen('http://127.0.0.1:{port}/', timeout=10).read().decode())"
    assert backend.run([backend.python, "-c", fetch]).out.startswith(b"hello from the workspace")
    backend.next_daemon()
    assert service()["status"] == "ready"
    backend.rest("POST", f"services/{name}/stop", {})
    until(lambda: service()["status"] not in ("ready", "stopping"), 20, "its end")


def test_a_server_that_dies_is_started_again(backend):
    port = free_port()
    name = unique_name("server")
    body = backend.body(
        [backend.python, "-m", "http.server", str(port)], name=name, port=port, restart={"on_failure": {"max": 3}})
    backend.rest("POST", "services", body)

    def service():
        return backend.rest("GET", f"services/{name}?cwd={backend.work}")

    until(lambda: service()["status"] == "ready", 30, "its readiness")
    leader = service()["execution"]["os_pid"]
    os.kill(leader, 9)
    until(lambda: service()["execution"]["service"]["restarts"] == 1 and service()["status"] == "ready", 30, "a second attempt")
    assert service()["execution"]["os_pid"] != leader
    backend.rest("POST", f"services/{name}/stop", {"force": True})


def test_retries_of_a_start_run_it_once(backend):
    body = backend.body("echo ran >> ran; echo done", id=None)
    body["id"] = backend.info(backend.start("true"))["uuid"][:-4] + f"{random.randrange(16**4):04x}"
    first = backend.rest("POST", "executions", body)["id"]
    assert backend.rest("POST", "executions", body)["id"] == first
    backend.ended(first)
    assert (backend.work / "ran").read_text() == "ran\n"
