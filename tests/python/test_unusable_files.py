"""Files of the state and configuration directories that cannot be used: another type, mode or version. Nothing waits for a
named pipe; the error names the file, and the hint fits the cause."""

import json
import os
import subprocess

import pytest

from harness.installation import NOBODY, is_root

STATE_FILES = ["services.json", "contexts.json", "ledger/0.seg"]
#: Those whose content is made anew.
DERIVED = ["interactions.json", "unfinished.json", "alerts.json"]
FREE_SPACE = "rm --all"


@pytest.fixture
def host(make_installation):
    """An installation of an ordinary user, whose daemon has ended and left all of its files."""
    installation = make_installation(user=NOBODY if is_root() else None)
    installation.cli("run", "--", "true")
    installation.rest("POST", "/api/v1/contexts", {"project": "demo"})
    installation.cli("service", "define", "web", "--", "sleep", "60")
    assert not installation.shut_down()
    return installation


def refused(host, *words, code=74, **options):
    done = host.cli(*words, check=False, timeout=30, **options)
    assert done.returncode == code, done
    return done.stderr.decode().replace("\n  ", " ")


def fifo(host, path):
    path.unlink(missing_ok=True)
    os.mkfifo(path, 0o600)
    host.give(path.parent)


def replaced(host, path, kind):
    """Puts something else in the place of the file."""
    if kind == "mode":
        path.chmod(0)
        return
    if kind == "pipe":
        fifo(host, path)
        return
    path.unlink()
    if kind == "directory":
        path.mkdir()
    else:
        path.symlink_to(path.name)
    host.give(path.parent)


@pytest.mark.parametrize("kind", ["mode", "directory", "pipe", "circle"])
@pytest.mark.parametrize("name", STATE_FILES)
def test_a_state_file_that_cannot_be_read_is_named_and_the_hint_fits(host, name, kind):
    path = host.state / name
    replaced(host, path, kind)
    text = refused(host, "ps")
    assert str(path) in text and "hint: " in text and FREE_SPACE not in text, text
    assert ("owner and mode" if kind == "mode" else "move what is at") in text.split("hint: ")[1], text
    if kind == "pipe":
        assert "not a regular file" in text, text


def test_a_state_file_of_a_newer_version_is_named_with_what_helps(host):
    path = host.state / "services.json"
    path.write_text(json.dumps({"version": 9, "definitions": {"of": "another form"}}))
    text = refused(host, "ps")
    assert f"{path}: version 9 is newer" in text and FREE_SPACE not in text, text
    assert "version of Ostler that wrote" in text.split("hint: ")[1], text
    path.rename(path.with_suffix(".moved"))
    host.cli("ps")


@pytest.mark.parametrize("name", DERIVED)
def test_a_pipe_in_the_place_of_a_file_that_is_made_anew_is_not_waited_for(host, name):
    fifo(host, host.state / name)
    host.cli("ps", timeout=30)


@pytest.mark.parametrize("kind", ["mode", "directory", "pipe"])
def test_a_log_that_cannot_be_opened_is_named(host, kind):
    path = host.state / "daemon.log"
    replaced(host, path, kind)
    text = refused(host, "ps", code=69)
    assert "cannot be started" in text and str(path) in text, text


def test_a_configuration_that_is_a_pipe_is_refused_at_once(host):
    path = host.dir / "config" / "ostler" / "config.toml"
    path.parent.mkdir(exist_ok=True)
    fifo(host, path)
    host.give(path.parent)
    done = host.cli("ps", check=False, timeout=30)
    text = done.stderr.decode()
    assert done.returncode != 0 and str(path) in text and "not a regular file" in text, text
    path.unlink()
    host.cli("--config", "/dev/null", "ps")


def test_a_template_that_is_a_pipe_is_refused_at_once(host):
    path = host.work / "template.toml"
    fifo(host, path)
    done = host.cli("template", "check", path, check=False, timeout=30)
    text = done.stderr.decode()
    assert done.returncode != 0 and str(path) in text and "not a regular file" in text, text


def test_a_descriptor_that_a_shell_passes_is_read(host):
    for words in (["template", "check"], ["service", "import"]):
        script = f'"$0" {" ".join(words)} <(printf "web: sleep 1\\n") 2>&1; true'
        done = subprocess.run(["bash", "-c", script, host.binary], cwd=host.work, env=host.env(), capture_output=True, timeout=30)
        assert b"regular file" not in done.stdout, done


def test_a_pipe_in_the_place_of_tokens_is_refused_at_once(host):
    path = host.state / "tokens.json"
    fifo(host, path)
    text = refused(host, "token", "list")
    assert str(path) in text and "not a regular file" in text and "token new" in text.split("hint: ")[1], text


@pytest.mark.parametrize("words", [["token", "list"], ["serve", "--port", "0"]])
def test_damaged_tokens_are_named_with_what_helps(host, words):
    host.cli("token", "new", "one")
    path = host.state / "tokens.json"
    path.write_text('[{"name": "one"')
    text = refused(host, *words)
    hint = text.split("hint: ")[1]
    assert f"{path} is no list of tokens" in text and str(path) in hint and "token new" in hint, text


@pytest.mark.parametrize("kind", ["directory", "circle", "pipe"])
def test_what_is_in_the_place_of_ostler_toml_is_said(host, kind):
    path = host.work / "ostler.toml"
    path.write_text("")
    replaced(host, path, kind)
    what = {"directory": "a directory", "circle": "a link that leads nowhere", "pipe": "a named pipe"}[kind]
    for words in (["service", "up"], ["service", "down"]):
        done = host.cli(*words, check=False, timeout=30)
        text = done.stderr.decode().replace("\n  ", " ")
        assert done.returncode != 0 and f"{path} is {what}, not a regular file" in text, text
        assert "there is no ostler.toml" not in text, text


def test_values_of_ostler_toml_are_in_the_message(host):
    path = host.work / "ostler.toml"
    for line, said in [
        ('ready_pattern = "("', 'services.a.ready_pattern is "(": it is no regular expression'),
        ('ready = { http = "ftp://x" }', 'services.a.ready.http is "ftp://x": it is no target of a probe; allowed: a path'),
    ]:
        path.write_text(f'[services.a]\ncommand = "sleep 60"\n{line}\n')
        host.give(path)
        done = host.cli("service", "up", check=False)
        assert done.returncode != 0 and said in done.stderr.decode().replace("\n  ", " "), done
