"""Tokens of HTTP clients: made, refused once expired or revoked, and when each was last used."""

import json
import urllib.error
import urllib.request

import pytest

from harness import HttpDaemon, Installation, until


@pytest.fixture(scope="module")
def served(binary):
    """A daemon that requires tokens."""
    installation = Installation(binary)
    try:
        made(installation, "first")
        http_daemon = HttpDaemon(installation)
        yield installation, http_daemon
        http_daemon.end()
    finally:
        installation.close()


def made(installation, *args):
    return json.loads(installation.cli("token", "new", *args, "--json").stdout)


def listed(installation, name):
    tokens = json.loads(installation.cli("token", "list", "--json").stdout)
    return next(token for token in tokens if token["name"] == name)


def status(http_daemon, secret):
    """The status, the problem document and the challenge of a request."""
    request = urllib.request.Request(
        f"{http_daemon.base}/api/v1/health", headers={"Authorization": f"Bearer {secret}"})
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            return response.status, {}, None
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read()), error.headers["WWW-Authenticate"]


def test_a_token_is_refused_once_it_has_expired(served):
    installation, http_daemon = served
    token = made(installation, "short", "--expires", "2s")
    assert status(http_daemon, token["token"])[0] == 200
    until(lambda: status(http_daemon, token["token"])[0] == 401, 20, "the expiry")
    code, problem, challenge = status(http_daemon, token["token"])
    assert "has expired" in problem["message"] and 'error="invalid_token"' in challenge, (problem, challenge)
    assert "expired" in installation.cli("token", "list").stdout.decode()
    assert status(http_daemon, made(installation, "long", "--expires", "30d")["token"])[0] == 200


def test_an_unknown_token_is_not_said_to_have_expired(served):
    _, http_daemon = served
    code, problem, _ = status(http_daemon, "ostler_unknown")
    assert code == 401 and "expired" not in problem["message"], problem


def test_a_revoked_token_is_refused_at_once(served):
    installation, http_daemon = served
    token = made(installation, "gone")
    assert status(http_daemon, token["token"])[0] == 200
    installation.cli("token", "revoke", "gone")
    assert status(http_daemon, token["token"])[0] == 401


def test_the_last_use_is_listed(served):
    installation, http_daemon = served
    token = made(installation, "used")
    assert listed(installation, "used")["used"] is None
    assert "never" in installation.cli("token", "list").stdout.decode()
    status(http_daemon, token["token"])
    used = listed(installation, "used")["used"]
    assert used >= listed(installation, "used")["created"]
    files = [path for path in installation.state.iterdir() if path.name.startswith("tokens.json")]
    assert all(path.stat().st_mode & 0o077 == 0 for path in files if path.suffix != ".lock"), files
    assert not any(token["token"].encode() in path.read_bytes() for path in files)


def test_the_words_of_the_documents_are_understood(served):
    installation, _ = served
    made_so = installation.cli(
        "token", "create", "--name", "worded", "--scopes", "sessions:all,daemon:stop", "--expires", "2099-01-01T00:00:00Z",
        "--json")
    token = json.loads(made_so.stdout)
    assert (token["name"], token["expires"]) == ("worded", "2099-01-01T00:00:00Z")
    assert listed(installation, "worded")["scopes"] == ["sessions:all", "daemon:stop"]


@pytest.mark.parametrize("expires", ["yesterday", "0s", "-1d", "2001-01-01T00:00:00Z", ""])
def test_a_time_that_is_none_or_past_is_refused(served, expires):
    installation, _ = served
    refused = installation.cli("token", "new", "never-made", f"--expires={expires}", check=False)
    assert refused.returncode == 64 and b"30d" in refused.stderr, refused.stderr
    assert "never-made" not in installation.cli("token", "list").stdout.decode()


def test_a_token_needs_one_name(served):
    installation, _ = served
    assert installation.cli("token", "new", check=False).returncode == 64
    assert installation.cli("token", "new", "a", "--name", "b", check=False).returncode == 64
