"""Standard streams of the command line: input across the death of the daemon, none at all, exports to pipes and files."""

import os
import signal
import stat
import subprocess
import threading

import pytest

from harness import TerminalUser, until


def test_input_has_no_hole_when_the_daemon_is_killed(installation):
    installation.cli("ps")
    count = 400_000
    whole = b"".join(b"%d\n" % number for number in range(count))
    argv = installation.argv("run", "--", "cat")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(argv, cwd=installation.work, env=installation.env(), **pipes) as run:
        seen = bytearray()
        reader = threading.Thread(target=lambda: seen.extend(run.stdout.read()))
        reader.start()
        for part in range(8):
            size = len(whole) // 8
            end = len(whole) if part == 7 else (part + 1) * size
            run.stdin.write(whole[part * size:end])
            run.stdin.flush()
            if part in (1, 4):
                installation.kill_daemon()
        run.stdin.close()
        assert run.wait(60) == 0, run.stderr.read()
        reader.join(20)
        errors = run.stderr.read()
    assert bytes(seen) == whole, (len(seen), len(whole), errors)


def test_a_line_that_follows_the_death_of_the_daemon_at_once_arrives(installation):
    installation.cli("ps")
    argv = installation.argv("run", "--", "cat")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(argv, cwd=installation.work, env=installation.env(), **pipes) as run:
        for number in range(3):
            run.stdin.write(f"line{number}\n")
            run.stdin.flush()
            assert run.stdout.readline() == f"line{number}\n"
            installation.kill_daemon()
        run.stdin.write("last\n")
        run.stdin.close()
        assert run.stdout.read() == "last\n" and run.wait(30) == 0


def test_an_export_goes_into_a_pipe_and_replaces_only_files(installation):
    installation.cli("run", "--", "echo", "data")
    pipe = installation.work / "pipe"
    os.mkfifo(pipe)
    installation.give(pipe)
    got = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    installation.cli("export", "-f", "text", "-o", "pipe", "@last")
    reader.join(20)
    assert got == [b"data\n"] and stat.S_ISFIFO(pipe.stat().st_mode), got
    # A file is replaced, and stays as private as it was.
    file = installation.work / "file"
    file.write_text("old")
    file.chmod(0o600)
    installation.give(file)
    installation.cli("export", "-f", "text", "-o", "file", "@last")
    assert file.read_bytes() == b"data\n" and stat.S_IMODE(file.stat().st_mode) == 0o600
    # A link is replaced and not followed.
    (installation.work / "link").symlink_to(file)
    file.write_text("kept")
    installation.cli("export", "-f", "text", "-o", "link", "@last")
    assert file.read_text() == "kept" and not (installation.work / "link").is_symlink()
    # Nor is one that leads to a pipe, where somebody may listen.
    (installation.work / "planted").symlink_to(pipe)
    installation.cli("export", "-f", "text", "-o", "planted", "@last", timeout=20)
    assert not (installation.work / "planted").is_symlink() and stat.S_ISFIFO(pipe.stat().st_mode)
    for name in ("-", "/dev/stdout", "/dev/fd/1"):
        assert installation.cli("export", "-f", "text", "-o", name, "@last").stdout == b"data\n", name
    assert not (installation.work / "-").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="makes a device")
def test_an_export_never_replaces_a_device(make_installation):
    installation = make_installation()
    installation.cli("run", "--", "echo", "data")
    null = installation.work / "null"
    os.mknod(null, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    installation.cli("export", "-f", "text", "-o", "null", "@last")
    assert stat.S_ISCHR(null.stat().st_mode)


def test_a_terminal_without_input_reports_no_error(installation):
    for _ in range(10):
        done = installation.cli("run", "-t", "--", "true")
        assert done.stderr == b"", done


@pytest.mark.parametrize("reads", [
    "stty -echo; wc -c", "stty -echo; cat | wc -c", "stty -echo; bash -c 'IFS= read -r line; echo $((${#line} + 1))'",
])
def test_a_terminal_takes_a_line_longer_than_its_buffer(installation, reads):
    script = installation.work / "line"
    script.write_bytes(b"x" * 50_000 + b"\n")
    with open(script, "rb") as line:
        done = installation.cli("run", "-t", "--", "sh", "-c", reads, stdin=line)
    assert done.stdout.split() == [b"50001"], done


def test_input_can_be_left_to_others(installation):
    (installation.work / "list").write_text("a\nb\nc\n")
    installation.give(installation.work / "list")
    with (installation.work / "list").open() as listed:
        script = 'while read x; do "$@" run -n -- echo "got $x"; done'
        done = subprocess.run(
            ["sh", "-c", script, "sh", *installation.argv()], stdin=listed, cwd=installation.work, env=installation.env(),
            stdout=subprocess.PIPE, check=True)
    assert done.stdout == b"got a\ngot b\ngot c\n", done


def test_input_that_cannot_be_read_is_said(installation):
    descriptor = os.open(installation.work, os.O_RDONLY)
    try:
        done = installation.cli("run", "--", "cat", stdin=descriptor)
    finally:
        os.close(descriptor)
    assert b"standard input cannot be read: Is a directory" in done.stderr, done


def test_history_shows_what_is_named_like_elsewhere(installation):
    id = installation.cli("run", "-d", "--", "true").stdout.decode().strip()
    installation.cli("wait", id)
    uuid = installation.json("info", id)["uuid"]
    for name in ("@last", id[:5], id):
        text = until(
            lambda name=name: (it := installation.cli("history", "show", name, check=False)).returncode == 0 and it.stdout.decode(),
            10, "a row")
        assert uuid in text, text


def state(pid):
    """The state of a process, see proc(5)."""
    with open(f"/proc/{pid}/stat", encoding="utf-8") as stat_file:
        return stat_file.read().rsplit(")", 1)[1].split()[0]


def test_ctrl_z_pauses_the_command_and_fg_lets_it_go_on(installation):
    ticks = installation.work / "ticks"
    loop = f"while :; do echo tick >> {ticks}; sleep 0.05; done"
    paused = lambda: installation.json("info", "@last")["paused"]
    with TerminalUser(installation, program=["bash", "--norc", "--noprofile", "-i"], env={"PS1": "> "}) as person:
        person.wait_for(rb"> ")
        person.type(f"{installation.binary} run -- sh -c '{loop}'\n")
        until(lambda: ticks.exists() and ticks.stat().st_size, 20, "the command to work")
        person.type(b"\x1a")
        person.wait_for(rb"Stopped")
        assert paused()
        size = ticks.stat().st_size
        person.type("fg\n")
        until(lambda: ticks.stat().st_size > size, 20, "the command to go on")
        assert not paused()
        # What somebody else paused stays paused.
        installation.cli("pause", "@last")
        person.type(b"\x1a")
        person.wait_for(rb"Stopped")
        person.type("fg\n")
        client = lambda: os.tcgetpgrp(person.fd)
        until(lambda: client() != person.pid and state(client()) != "T", 20, "the client to go on")
        person.type(b"\x1a")
        person.wait_for(rb"Stopped")
        assert paused()
    # The end of the terminal may have ended it.
    installation.cli("stop", "--force", "@last", check=False)


def test_a_command_of_a_shell_goes_on_when_its_client_is_interrupted(installation):
    shell = installation.cli("shell", "-d", "--", "bash").stdout.decode().strip()
    with TerminalUser(installation, "exec", shell, "--", "echo begun > mark; sleep 600") as person:
        until(lambda: (installation.work / "mark").exists(), 20, "the command")
        person.type(b"\x03")
        person.wait_for(f"goes on in {shell}; `ostler send {shell} --key ctrl-c` interrupts it".encode())
        assert person.wait_exit() == 130
    installation.cli("stop", "--force", shell)


def test_a_client_in_a_terminal_leaves_at_every_signal_that_ends_programs(installation):
    for name in ("QUIT", "TERM", "HUP"):
        with TerminalUser(installation, "run", "-t", "--", "sh", "-c", "echo begun; sleep 600") as person:
            person.wait_for(rb"begun")
            os.kill(person.pid, getattr(signal, f"SIG{name}"))
            assert person.wait_exit() == 128 + getattr(signal, f"SIG{name}")
    assert len(installation.json("ps")) == 3


def test_a_daemon_that_does_not_answer_is_told(installation):
    installation.cli("run", "-d", "--", "sleep", "600")
    daemon = installation.daemon()
    message = f"the daemon (process {daemon.pid}) does not answer; `kill -9 {daemon.pid}` ends it"
    daemon.kill(signal.SIGSTOP)
    try:
        version = installation.cli("version", check=False)
        assert version.returncode == 69 and message in version.stdout.decode(), version
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        with subprocess.Popen(installation.argv("ps"), env=installation.env(), **pipes) as ps:
            assert message in ps.stderr.readline()
            daemon.kill(signal.SIGCONT)
            assert ps.wait(20) == 0 and "sleep 600" in ps.stdout.read() and ps.stderr.read() == ""
    finally:
        daemon.kill(signal.SIGCONT)
        daemon.close()
    # One that answers others is not told of while a request takes its time.
    with subprocess.Popen(installation.argv("wait", "@last"), env=installation.env(), **pipes) as waiting:
        with pytest.raises(subprocess.TimeoutExpired):
            waiting.wait(6)
        installation.cli("kill", "-9", "@last")
        assert waiting.wait(20) == 137 and waiting.stderr.read() == ""
