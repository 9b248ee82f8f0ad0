"""What the command line takes and what it says of things that are not there."""

import datetime
import os
import re
import socket
import subprocess

import pytest

from harness import TerminalUser


def refused(installation, *words, code=64, **options):
    done = installation.cli(*words, check=False, **options)
    assert done.returncode == code, done
    return done.stderr.decode()


def test_times_without_an_offset_are_those_of_the_client(installation):
    installation.cli("run", "--", "echo", "printed")
    # The daemon has UTC; at that client it is five and a half hours later.
    client = {"TZ": "<+0530>-5:30"}
    now = datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=5, minutes=30)
    before, after = ((now + datetime.timedelta(minutes=it)).strftime("%Y-%m-%d %H:%M:%S") for it in (-2, 2))
    shown = lambda *words: installation.cli(*words, env=client).stdout.decode()
    for since, until, count in [(before, after, 1), (after, after, 0), ("yesterday", "now", 1), (before, "10h ago", 0)]:
        output = shown("logs", "@last", "--since", since, "--until", until)
        assert output.count("printed") == count, (since, until, output)
        history = shown("history", "--since", since, "--until", until)
        assert history.count("echo") == count, (since, until, history)
    assert "finished" in shown("events", "--no-follow", "--since", before)
    assert "finished" not in shown("events", "--no-follow", "--since", after)
    assert "'since' is 'soon'" in refused(installation, "logs", "@last", "--since", "soon")


def test_a_port_that_is_taken_is_told(installation):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = "127.0.0.1:%d" % taken.getsockname()[1]
        env = {"OSTLER_HTTP_PORT": str(taken.getsockname()[1])}
        installation.cli("ps", env=env)
        told = f"HTTP is not served: {address}: Address already in use"
        link = refused(installation, "token", "link", code=69, env=env)
        assert told in link and "http.port" in link, link
        assert told in installation.cli("version", env=env).stdout.decode()
        assert told.endswith(installation.json("version")["daemon"]["http_problem"].split(" (os")[0])
        checks = installation.cli("doctor", "--json", check=False, env=env).stdout.decode()
        assert told in checks, checks


def test_the_name_of_a_service_is_recognised_where_an_id_is_taken(installation):
    installation.cli("service", "start", "--name", "websvc", "--", "sh", "-c", "echo served; sleep 600")
    for verb in ("logs", "info", "stop", "wait", "restart", "attach", "rm"):
        assert "websvc is a service: `ostler service logs websvc`" in refused(installation, verb, "websvc", code=66), verb
    elsewhere = installation.dir / "elsewhere"
    elsewhere.mkdir()
    installation.give(elsewhere)
    (elsewhere / "ostler.toml").write_text("")
    words = installation.argv("service", "logs", "websvc", "--all-workspaces")
    done = subprocess.run(words, cwd=elsewhere, env=installation.env(), capture_output=True, check=False)
    assert done.returncode == 0 and b"served" in done.stdout, done
    unknown = refused(installation, "service", "why", "another-name", code=66)
    assert "known: websvc" in unknown and "there are websvc" not in unknown, unknown
    installation.cli("service", "stop", "--force", "websvc")


def test_a_signal_is_given_as_kill_has_it(installation):
    for word in ("-9", "-KILL", "-SIGKILL"):
        pid = installation.cli("run", "-d", "--", "sleep", "600").stdout.decode().strip()
        installation.cli("kill", word, pid)
        assert installation.cli("wait", pid, check=False).returncode == 137


def test_several_are_waited_for_and_the_last_one_decides(installation):
    start = lambda script: installation.cli("run", "-d", "--", "sh", "-c", script).stdout.decode().strip()
    first, last = start("sleep 0.3; exit 3"), start("exit 4")
    assert installation.cli("wait", first, last, check=False).returncode == 4
    assert not installation.json("ps")
    unknown = installation.cli("wait", "aaaaaaaa", last, check=False)
    assert unknown.returncode == 4 and b"'aaaaaaaa'" in unknown.stderr, unknown


def test_all_lines_can_be_asked_for(installation):
    installation.cli("run", "--", "seq", "300")
    assert len(installation.cli("logs", "-n", "all", "@last").stdout.splitlines()) == 300


@pytest.mark.parametrize("flag", ["--read", "--write"])
def test_a_path_to_be_shown_must_be_there(installation, flag):
    told = refused(installation, "run", flag, "/not-there", "--", "true")
    assert f"{flag} '/not-there': no such file or directory" in told, told


def test_an_export_is_not_written_to_a_directory(installation):
    installation.cli("run", "--", "echo", "printed")
    assert "'.': it is a directory" in refused(installation, "export", "-o", ".", "@last")


def test_no_directory_for_temporary_files_is_made(installation):
    place = installation.work / "not-there"
    told = refused(installation, "run", "--no-daemon", "--", "true", code=74, env={"TMPDIR": place})
    assert "TMPDIR" in told and not place.exists(), told


def test_the_help_names_what_is_required_and_every_kind_of_error(installation):
    assert b"Usage: ostler token new [OPTIONS] <NAME>" in installation.cli("token", "new", "--help").stdout
    codes = installation.cli("--help").stdout.decode()
    assert all(f"{it}_error" in codes for it in ("interaction", "template", "service"))


def test_a_file_that_cannot_be_read_is_not_called_read(installation):
    file = installation.work / "broken.toml"
    file.write_text("[")
    installation.give(file)
    shown = installation.cli("--config", file, "config", "explain", "stop.grace_ms", check=False)
    assert f"file {file} (not read: it has an error)" in shown.stdout.decode(), shown


def test_the_values_of_the_daemon_that_runs_are_told(installation):
    installation.cli("ps")
    other = {"OSTLER_STOP_GRACE_MS": "77"}
    words = ["config", "explain", "stop.grace_ms"]
    told = re.search(r"stop.grace_ms: the daemon that runs \(process \d+\) has 5000", installation.cli(*words, env=other).stdout.decode())
    assert told and "the daemon that runs" not in installation.cli(*words).stdout.decode()


def test_the_name_of_a_directory_is_completed_without_a_blank(installation):
    (installation.work / "directory").mkdir()
    path = f"{installation.binary.parent}:{os.environ['PATH']}"
    with TerminalUser(installation, program=["bash", "--norc", "--noprofile", "-i"], env={"PS1": "> ", "PATH": path}) as person:
        person.wait_for(rb"> ")
        person.type("source <(ostler completions bash); echo rea''dy\n")
        person.wait_for(rb"ready\r\n")
        person.type("ostler run --cwd direc\t")
        person.wait_for(rb"directory/")
