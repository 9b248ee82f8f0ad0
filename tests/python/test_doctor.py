"""`ostler doctor` does what it tells of, and tells what is missing with a remedy."""

import json

import pytest

from harness.protected_env import USERS, isolation

LEVELS = ("basic", "medium", "high")


@pytest.fixture(scope="module")
def told(places):
    """The table and the JSON, by whom they were asked for."""
    found = {}

    def tell(who):
        if who not in found:
            place = places.of(who)
            table = place.cli("doctor", check=False)
            raw = place.cli("doctor", "--json", check=False)
            found[who] = (table, json.loads(raw.stdout))
        return found[who]

    return tell


@pytest.mark.parametrize("who", USERS)
def test_every_level_is_told(told, who):
    table, body = told(who)
    text = table.stdout.decode()
    for level in LEVELS:
        assert level in text, text
    assert {it["level"] for it in body["levels"]} >= set(LEVELS)
    assert b"panicked" not in table.stderr and b"error" not in table.stderr, table.stderr


@pytest.mark.parametrize("who", USERS)
def test_denials_are_witnessed(told, who):
    """Tried inside of a throw-away cell, not concluded from versions."""
    table, body = told(who)
    [high] = [it for it in body["levels"] if it["level"] == "high"]
    witnessed = high["denials"]
    assert len(witnessed) >= 6, witnessed
    assert all(it["denied"] for it in witnessed), witnessed
    words = json.dumps(witnessed).lower()
    for what in ("write", "shadow", ".ssh", "connect", "trace|memory", "signal|kill", "mount"):
        assert any(word in words for word in what.split("|")), (what, witnessed)


@pytest.mark.parametrize("who", USERS)
def test_what_the_kernel_leaves_open_is_told(told, who):
    table, body = told(who)
    [high] = [it for it in body["levels"] if it["level"] == "high"]
    text = " ".join(high["open"])
    for open_ in high["open"]:
        assert open_ in table.stdout.decode()
    assert "unix sockets by path" in text and "disk limit" in text
    # Counted for ids: those of a cell of root are its own.
    assert ("in flight" in text) == (who != "root"), text
    shares = [it for it in high["denials"] if "share" in it["what"] or "devices" in it["what"]]
    assert len(shares) == 3 and all(it["denied"] for it in shares), shares


@pytest.mark.parametrize("who", USERS)
def test_what_is_missing_has_a_reason_and_a_remedy(told, who):
    _table, body = told(who)
    [high] = [it for it in body["levels"] if it["level"] == "high"]
    missing = {it["ability"]: it for it in high["missing"]}
    if who == "ordinary":
        assert set(missing) <= {"own_cgroup", "memory_limit", "cpu_limit"}, missing
    else:
        assert missing == {}, missing
    for it in missing.values():
        assert it["reason"] and it.get("remedy"), it


@pytest.mark.parametrize("who", USERS)
def test_what_doctor_tells_is_what_a_start_finds(places, told, who):
    _table, body = told(who)
    [high] = [it for it in body["levels"] if it["level"] == "high"]
    missing = {it["ability"] for it in high["missing"]}
    plain = places.of(who).cli("run", "--isolation", "high", "--", "true", check=False)
    assert plain.returncode == 0, plain
    # Limits are missing for those who ask for them.
    for ability in missing - {"memory_limit", "cpu_limit"}:
        assert ability in plain.stderr.decode(), "what is missing is said"


@pytest.mark.parametrize("who", USERS)
def test_it_leaves_nothing_behind(places, who):
    place = places.of(who)
    before = sorted(path.name for path in place.dir.iterdir())
    ours = set(place.ours())
    place.cli("doctor", check=False)
    assert sorted(path.name for path in place.dir.iterdir()) == before
    assert set(place.ours()) <= ours
