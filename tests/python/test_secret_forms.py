"""Values of secrets in other forms and other places than plain output: changed by a terminal or a shell, printed by
probes, inside one another, in stored requests and in the fields of a start."""

import json

import pytest

from harness import TerminalUser, until
from harness.services import free_port

VALUE = "s3cr3t-v4lu3-0f-t"
LONGER = VALUE + "-and-the-rest-of-it"
LINES = ("MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcw", "ggSjAgEAAoIBAQC7VJTUt9Us8cKj", "MzEfYyjiWA4R4=")
KEY = "\n".join(("-----BEGIN PRIVATE KEY-----", *LINES, "-----END PRIVATE KEY-----", ""))
SECRETS = {"TOKEN": VALUE, "LONGER": LONGER, "WORD": "secret", "KEY": KEY, "ENDED": "with-an-end-0f-line\n"}


@pytest.fixture
def keeper(installation):
    """An installation with a file of secrets."""
    file = installation.dir / "config" / "ostler" / "secrets.toml"
    file.parent.mkdir(exist_ok=True)
    file.write_text("".join(f"{name} = {json.dumps(value)}\n" for name, value in SECRETS.items()))
    file.chmod(0o600)
    return installation


def absent(installation, value, *texts):
    """The value is in none of these texts, and in no file of Ostler's but that of the secrets."""
    for text in texts:
        assert value not in text, text
    found = []
    for base in (installation.state, installation.dir / "run", installation.dir / "config"):
        for path in base.rglob("*"):
            if path.is_file() and not path.is_symlink() and path.name != "secrets.toml" and value.encode() in path.read_bytes():
                found.append(path)
    assert found == [], found


def said(installation, *words, **options):
    """All that one command of the command line says."""
    done = installation.cli(*words, check=False, **options)
    return (done.stdout + done.stderr).decode()


def reports(installation, *names):
    """What is told of services, and of everything that happened."""
    texts = [said(installation, "ps", "-a", "--json"), said(installation, "service", "ps", "--json"),
             said(installation, "events", "--no-follow", "--json")]
    return texts + [said(installation, "service", "why", name) for name in names]


# ---- probes


def test_output_of_a_health_probe_is_redacted(keeper):
    keeper.cli("service", "start", "--name", "h1", "--secret", "TOKEN", "--ready-when", "quiet:100ms",
               "--health", 'exec:sh -c \'test -e flag || exit 0; echo "denied: $TOKEN"; exit 1\'',
               "--health-interval", "200ms", "--", "sleep", "300")
    (keeper.work / "flag").touch()
    why = until(lambda: next((it for it in [said(keeper, "service", "why", "h1")] if "denied" in it), None), what="it is unhealthy")
    assert "denied: [redacted]" in why, why
    absent(keeper, VALUE, *reports(keeper, "h1"))


def test_output_of_a_ready_probe_is_redacted(keeper):
    start = said(keeper, "service", "start", "--name", "r1", "--secret", "TOKEN", "--timeout", "1s",
                 "--ready-when", 'exec:sh -c \'head -c 790 /dev/zero | tr "\\0" x; echo "$TOKEN"; exit 1\'', "--", "sleep", "300")
    absent(keeper, VALUE[4:], start, *reports(keeper, "r1"))


def test_a_notified_status_is_redacted(keeper):
    script = ("import os,socket; s=socket.socket(socket.AF_UNIX,socket.SOCK_DGRAM); "
              "s.sendto(b'READY=1\\nSTATUS=with '+os.environ['TOKEN'].encode(),os.environ['NOTIFY_SOCKET']); import signal; signal.pause()")
    start = said(keeper, "service", "start", "--name", "n1", "--secret", "TOKEN", "--ready-when", "notify",
                 "--", "python3", "-c", script)
    absent(keeper, VALUE, start, *reports(keeper, "n1"))


def test_a_probe_that_names_the_value_has_it_and_is_recorded_without(keeper):
    """It is given the value again after a restart of the daemon, and of the service."""
    start = said(keeper, "service", "start", "--name", "p1", "--secret", "TOKEN", "--ready-when",
                 f"exec:test {VALUE} = {VALUE}", "--health", f"exec:sh -c 'echo {VALUE} >> seen'", "--health-interval", "100ms",
                 "--", "sleep", "300")
    seen = keeper.work / "seen"

    def probed():
        until(lambda: seen.exists() and VALUE in seen.read_text(), what="the probe has the value")
        seen.unlink()

    probed()
    keeper.kill_daemon()
    keeper.cli("ps")
    seen.unlink(missing_ok=True)
    probed()
    keeper.cli("service", "restart", "p1")
    probed()
    absent(keeper, VALUE, start, *reports(keeper, "p1"))


# ---- changed forms


PRINT = {
    "without quotes": "echo $KEY; echo done",
    "in JSON": "python3 -c 'import json,os; print(json.dumps(os.environ[\"KEY\"]))'; echo done",
    "line by line": "echo \"$KEY\" | while read line; do echo \"> $line\"; done; echo done",
    "without the last line end": "printf '%s,' \"$(printf %s \"$KEY\")\"; echo done",
}


@pytest.mark.parametrize("how", PRINT)
def test_a_value_of_several_lines_is_redacted_however_it_is_printed(keeper, how):
    text = said(keeper, "run", "--secret", "KEY", "--", "sh", "-c", PRINT[how])
    assert "done" in text and "[redacted]" in text, text
    for line in LINES:
        absent(keeper, line, text, said(keeper, "logs", "@last"))


def test_a_value_is_redacted_without_its_last_line_end(keeper):
    value = SECRETS["ENDED"].strip()
    text = said(keeper, "run", "--secret", "ENDED", "--", "sh", "-c", 'printf "<%s>" "$(printf %s "$ENDED")"', value)
    assert "<[redacted]>" in text, text
    absent(keeper, value, text, said(keeper, "info", "@last"))


def test_a_value_of_several_lines_is_redacted_in_a_terminal(keeper):
    user = TerminalUser(keeper, "run", "-t", "--secret", "KEY", "--", "sh", "-c", 'echo "$KEY"; echo do"ne"')
    user.wait_for(b"done")
    assert user.wait_exit() == 0
    for line in LINES:
        absent(keeper, line, said(keeper, "logs", "@last"))


# ---- stored requests


def test_a_value_that_begins_with_another_is_redacted_whole(keeper):
    for names in (("TOKEN", "LONGER"), ("LONGER", "TOKEN")):
        options = [word for name in names for word in ("--secret", name)]
        keeper.cli("run", *options, "--", "true", LONGER)
        info = said(keeper, "info", "@last")
        assert "[secret LONGER]" in info, info
        absent(keeper, "-and-the-rest-of-it", info)


ARGUMENTS = {
    "a literal placeholder": ("help: [secret TOKEN]", "[secret ]", "[secret TOKEN", "[secret NONE]"),
    "a value in the text of placeholders": (VALUE, "secret", f"[secret {VALUE}]", f"{VALUE}secret", "[secret TOKEN]"),
    "a value in another form": (KEY.strip(), KEY, KEY.replace("\n", "\r\n"), LINES[0], "plain"),
}


@pytest.mark.parametrize("kind", ARGUMENTS)
def test_a_restart_passes_the_same_arguments(keeper, kind):
    script = "import json,os,sys; print(json.dumps(sys.argv[1:]), os.environ['GIVEN'], file=open('given', 'a'))"
    arguments = ARGUMENTS[kind]
    keeper.cli("run", "--secret", "TOKEN", "--secret", "WORD", "--secret", "KEY", "-e", f"GIVEN={arguments[0]!r}", "-l", arguments[-1],
               "--", "python3", "-c", script, *arguments)
    labels = keeper.json("info", "@last")["labels"]
    for _ in range(2):
        keeper.cli("restart", "@last")
        keeper.cli("wait", "@last")
    given = (keeper.work / "given").read_text().splitlines()
    assert len(given) == 3 and given[0].startswith(json.dumps(arguments[:1])[:-1]), given
    assert given[1] == given[0] and given[2] == given[0], given
    assert keeper.json("info", "@last")["labels"] == labels
    absent(keeper, VALUE)


# ---- fields that are stored as they are


REFUSED = {
    "name of a variable": ["-e", f"Y{VALUE}=1"],
    "encoding": ["--encoding", VALUE],
}


@pytest.mark.parametrize("field", REFUSED)
def test_a_value_in_a_field_that_is_not_redacted_is_refused(keeper, field):
    text = said(keeper, "run", "--secret", "TOKEN", *REFUSED[field], "--", "sh", "-c", "echo r''an")
    assert "TOKEN" in text and "ran" not in text.split(), text
    assert field in text, text
    absent(keeper, VALUE, text, *reports(keeper))


def test_a_context_with_a_value_in_a_variable_is_refused(keeper):
    text = said(keeper, "context", "create", "demo", "--secret", "TOKEN", "-e", f"PW={VALUE}")
    assert "TOKEN" in text, text
    absent(keeper, VALUE, text, *reports(keeper))


DEFINED = {
    "arguments": ([], ["sh", "-c", f"echo {VALUE}"]),
    "variable": (["-e", f"PW={VALUE}"], ["sleep", "9"]),
    "probe": (["--ready-when", f"http:/?token={VALUE}"], ["sleep", "9"]),
    "health": (["--health", f"exec:test {VALUE}"], ["sleep", "9"]),
    "pattern": (["--ready-pattern", VALUE], ["sleep", "9"]),
    "description": (["--description", f"with {VALUE}"], ["sleep", "9"]),
}


@pytest.mark.parametrize("field", DEFINED)
def test_a_definition_with_a_value_in_it_is_refused(keeper, field):
    options, command = DEFINED[field]
    text = said(keeper, "service", "define", "web", "--secret", "TOKEN", *options, "--", *command)
    assert "the value of secret 'TOKEN' is in" in text, text
    absent(keeper, VALUE, text, *reports(keeper))
    named = said(keeper, "service", "define", "web", "--secret", "TOKEN", "--", "sh", "-c", "echo $TOKEN")
    assert "secret" not in named, named


# ---- other executions


def test_a_port_conflict_shows_the_redacted_command_of_its_holder(keeper):
    port = free_port()
    server = ("import socket,signal,sys; s=socket.socket(); s.setsockopt(socket.SOL_SOCKET,socket.SO_REUSEADDR,1); "
              "s.bind(('127.0.0.1',int(sys.argv[1]))); s.listen(); print('up',flush=True); signal.pause()")
    keeper.cli("run", "-d", "--secret", "TOKEN", "--", "python3", "-c", server, str(port), VALUE)
    holder = keeper.json("ps")[0]["id"]
    until(lambda: "up" in said(keeper, "logs", holder), what="it listens")
    text = said(keeper, "service", "start", "--name", "c1", "--port", str(port), "--", "sleep", "300")
    assert holder in text and "not ours" not in text, text
    absent(keeper, VALUE, text, *reports(keeper))
