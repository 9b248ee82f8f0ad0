"""`ostler doctor` performs what it reports, and reports missing features with advice."""

import json

import pytest

from harness import until
from harness.protected_env import USERS, isolation

LEVELS = ("basic", "medium", "high")


@pytest.fixture(scope="module")
def reports(protected_envs):
    """The table and the JSON, by the user who ran it."""
    found = {}

    def report(user):
        if user not in found:
            installation = protected_envs.of(user)
            table = installation.cli("doctor", check=False)
            raw = installation.cli("doctor", "--json", check=False)
            found[user] = (table, json.loads(raw.stdout))
        return found[user]

    return report


@pytest.mark.parametrize("user", USERS)
def test_every_level_is_reported(reports, user):
    table, body = reports(user)
    text = table.stdout.decode()
    for level in LEVELS:
        assert level in text, text
    assert {it["level"] for it in body["levels"]} >= set(LEVELS)
    assert b"panicked" not in table.stderr and b"error" not in table.stderr, table.stderr


@pytest.mark.parametrize("user", USERS)
def test_denials_are_witnessed(reports, user):
    """Tried in a temporary jail, not concluded from versions."""
    table, body = reports(user)
    [high] = [it for it in body["levels"] if it["level"] == "high"]
    witnessed = high["denials"]
    assert len(witnessed) >= 6, witnessed
    assert all(it["denied"] for it in witnessed), witnessed
    words = json.dumps(witnessed).lower()
    for what in ("write", "shadow", ".ssh", "connect", "trace|memory", "signal|kill", "mount"):
        assert any(word in words for word in what.split("|")), (what, witnessed)


@pytest.mark.parametrize("user", USERS)
def test_gaps_of_the_kernel_are_reported(reports, user):
    table, body = reports(user)
    [high] = [it for it in body["levels"] if it["level"] == "high"]
    text = " ".join(high["open"])
    for open_ in high["open"]:
        assert open_ in table.stdout.decode()
    assert "unix sockets by path" in text and "disk limit" in text
    # Counted for ids: those of a jail of root are its own.
    assert ("in flight" in text) == (user != "root"), text
    shares = [it for it in high["denials"] if "share" in it["what"] or "devices" in it["what"]]
    assert len(shares) == 3 and all(it["denied"] for it in shares), shares


@pytest.mark.parametrize("user", USERS)
def test_what_is_missing_has_a_reason_and_a_remedy(reports, user):
    _table, body = reports(user)
    [high] = [it for it in body["levels"] if it["level"] == "high"]
    missing = {it["ability"]: it for it in high["missing"]}
    if user == "ordinary":
        assert set(missing) <= {"own_cgroup", "memory_limit", "cpu_limit"}, missing
    else:
        assert missing == {}, missing
    for it in missing.values():
        assert it["reason"] and it.get("remedy"), it


@pytest.mark.parametrize("user", USERS)
def test_what_doctor_tells_is_what_a_start_finds(protected_envs, reports, user):
    _table, body = reports(user)
    [high] = [it for it in body["levels"] if it["level"] == "high"]
    missing = {it["ability"] for it in high["missing"]}
    plain = protected_envs.of(user).cli("run", "--isolation", "high", "--", "true", check=False)
    assert plain.returncode == 0, plain
    # Limits are missing for commands that request them.
    for ability in missing - {"memory_limit", "cpu_limit"}:
        assert ability in plain.stderr.decode(), "what is missing is said"


@pytest.mark.parametrize("user", USERS)
def test_it_leaves_nothing_behind(protected_envs, user):
    installation = protected_envs.of(user)
    before = sorted(path.name for path in installation.dir.iterdir())
    ours = set(installation.ours())
    installation.cli("doctor", check=False)
    assert sorted(path.name for path in installation.dir.iterdir()) == before
    until(lambda: set(installation.ours()) <= ours, 10, "its processes to end")
