"""The audit log: what it says of each request, and `ostler audit verify`, which finds what was changed in it."""

import json
import os
import re
import shutil
import subprocess

import pytest

from harness import TerminalUser, until
from harness.installation import ProblemError

RULES = """
default = "allow"

[[rule]]
id = "no-curl"
prefix = ["curl"]
decision = "deny"
justification = "the network is not for this"
match = ["curl https://a.example"]
not_match = ["echo curl"]
"""


def verify(installation):
    """The exit status and the report."""
    done = installation.cli("audit", "verify", "--json", check=False)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def kinds(installation):
    status, report = verify(installation)
    found = [finding["kind"] for finding in report["findings"]]
    assert status == (1 if found else 0), report
    return found


def key(installation):
    return installation.dir / "config" / "ostler" / "audit.key"


def lines(path):
    return path.read_bytes().splitlines(keepends=True)


def ended(installation, *, exits=3):
    """Some commands, then the end of the daemon."""
    for code in range(exits):
        installation.cli("run", "--", "sh", "-c", f"exit {code}", check=False)
    installation.shut_down()
    until(lambda: verify(installation)[1]["covered"] > 0, 10, "the last head")


@pytest.fixture
def recorded(make_installation):
    """An installation whose daemon ended in order, and its one segment."""
    installation = make_installation()
    ended(installation)
    assert kinds(installation) == []
    return installation, installation.state / "ledger" / "0.seg"


def test_an_unchanged_trail_is_said_to_be_so(installation):
    installation.cli("run", "--", "true")
    status, report = verify(installation)
    assert (status, report["findings"], report["heads"], report["covered"]) == (0, [], 1, 0), report
    shown = installation.cli("audit", "verify").stdout.decode()
    assert re.search(r"entries: \d+, the oldest of .*; heads: 1\n", shown), shown
    assert f"{report['count']} are covered by no head yet" in shown and "no change was found" in shown
    installation.shut_down()
    until(lambda: verify(installation)[1]["covered"] == verify(installation)[1]["count"], 10)
    assert "covered by no head" not in installation.cli("audit", "verify").stdout.decode()
    assert key(installation).stat().st_mode & 0o777 == 0o600
    assert (installation.state / "ledger-heads").stat().st_mode & 0o777 == 0o600


def test_a_head_is_written_with_every_hundredth_entry(installation):
    for _ in range(40):
        installation.cli("run", "--", "true")
    installation.kill_daemon()
    status, report = verify(installation)
    assert (status, report["covered"]) == (0, 100), report


@pytest.mark.parametrize("change", ["edited", "removed", "moved", "doubled"])
def test_a_changed_entry_is_found(recorded, change):
    installation, segment = recorded
    header, *entries = lines(segment)
    if change == "edited":
        entries[1] = entries[1].replace(b'"started"', b'"adopted"')
    elif change == "removed":
        del entries[1]
    elif change == "moved":
        entries[1], entries[2] = entries[2], entries[1]
    else:
        entries.insert(1, entries[1])
    segment.write_bytes(b"".join([header, *entries]))
    assert kinds(installation) == ["broken"]
    shown = installation.cli("audit", "verify", check=False).stdout.decode()
    assert re.search("found: entry [12] in 0.seg does not follow", shown), shown


def test_entries_cut_off_are_found_also_under_the_next_daemon(recorded):
    installation, segment = recorded
    segment.write_bytes(b"".join(lines(segment)[:-2]))
    assert kinds(installation) == ["cut"]
    for _ in range(5):
        installation.cli("run", "--", "echo", "other")
    assert kinds(installation) == ["replaced"]
    installation.shut_down()
    assert "replaced" in installation.cli("audit", "verify", check=False).stdout.decode()


def test_a_trail_that_is_gone_is_found(recorded):
    installation, _ = recorded
    shutil.rmtree(installation.state / "ledger")
    assert set(kinds(installation)) == {"cut"}


def test_heads_that_are_gone_or_changed_are_found(recorded):
    installation, _ = recorded
    heads = installation.state / "ledger-heads"
    text = heads.read_bytes()
    heads.write_bytes(text.replace(b'"count":0', b'"count":1'))
    assert "head" in kinds(installation)
    heads.unlink()
    assert kinds(installation) == ["no_heads"]
    heads.write_bytes(text)
    key(installation).write_bytes(os.urandom(64))
    assert "head" in kinds(installation)
    key(installation).unlink()
    assert kinds(installation) == ["no_key"]


HEADER = b'{"format":"ostler-ledger-heads","version":1}\n'


@pytest.mark.parametrize("harm", ["zeroed", "garbled", "removed", "emptied", "torn_header", "header_only"])
def test_heads_that_are_harmed_are_missed_also_under_the_next_daemon(recorded, harm):
    """Although it begins new ones, for a trail that was cut meanwhile."""
    installation, segment = recorded
    heads = installation.state / "ledger-heads"
    text = heads.read_bytes()
    assert text.startswith(HEADER)
    harmed = {"zeroed": bytes(len(text)), "garbled": text.replace(b"heads", b"headX", 1), "removed": None, "emptied": b"",
              "torn_header": text[:20], "header_only": HEADER}[harm]
    heads.unlink() if harmed is None else heads.write_bytes(harmed)
    segment.write_bytes(b"".join(lines(segment)[:6]))
    assert set(kinds(installation)) & {"head", "no_heads"}
    for _ in range(2):
        installation.cli("ps")
        assert kinds(installation) == ["late_heads"]
        installation.shut_down()
    shown = installation.cli("audit", "verify", check=False).stdout.decode()
    assert "found: the heads begin after 5 entries" in shown and "no change was found" not in shown, shown
    kept, log = installation.state / "ledger-heads.damaged-0", (installation.state / "daemon.log").read_text()
    if harm in ("zeroed", "garbled"):
        assert kept.read_bytes() == harmed and str(kept) in log
    else:
        assert not kept.exists() and str(kept) not in log


def test_a_trail_from_before_there_were_heads_is_not_accused(recorded):
    """That of an older version, whose first daemon that writes heads also makes the key."""
    installation, _ = recorded
    (installation.state / "ledger-heads").unlink()
    key(installation).unlink()
    installation.cli("run", "--", "true")
    status, report = verify(installation)
    assert (status, report["findings"]) == (0, []) and report["covered"] > 1, report


def test_a_key_that_others_may_read_is_refused_and_commands_run(recorded):
    installation, _ = recorded
    key(installation).chmod(0o644)
    refused = installation.cli("audit", "verify", check=False)
    assert (refused.returncode, b"0600" in refused.stderr) == (74, True), refused
    assert installation.cli("run", "--", "echo", "x").stdout == b"x\n"
    assert b"no heads of the ledger" in (installation.state / "daemon.log").read_bytes()


def test_the_key_may_be_elsewhere(make_installation, tmp_path):
    elsewhere = tmp_path / "new" / "key"
    one, two = make_installation(), make_installation()
    daemons = [
        subprocess.Popen(
            installation.argv("--set", f"audit.key_file={elsewhere}", "run", "--", "true"),
            cwd=installation.work, env=installation.env(OSTLER_AUDIT_KEY_FILE=str(elsewhere)),
        )
        for installation in (one, two)
    ]
    assert [daemon.wait(60) for daemon in daemons] == [0, 0]
    for installation in (one, two):
        env = installation.env(OSTLER_AUDIT_KEY_FILE=str(elsewhere))
        done = installation.cli("audit", "verify", "--json", env=env)
        assert json.loads(done.stdout)["heads"] == 1, "both daemons signed with the same key"
        assert not key(installation).exists()


def test_without_a_trail_there_is_nothing_to_verify(make_installation):
    refused = make_installation().cli("audit", "verify", check=False)
    assert (refused.returncode, b"no daemon has served it" in refused.stderr) == (74, True), refused


def test_an_entry_says_who_asked_for_what_and_what_is_in_force(make_installation):
    installation = make_installation()
    installation.write_policy(RULES)
    installation.cli("run", "--isolation", "basic", "--", "echo", "x")
    assert installation.cli("run", "--", "curl", "https://a.example", check=False).returncode == 77
    events = [json.loads(line) for line in installation.cli("events", "--no-follow", "--json").stdout.splitlines()]
    created, refused = (next(e for e in events if e["event"] == kind) for kind in ("created", "refused"))
    request = created["request"]
    assert (request["command"], request["level"], request["face"]) == ("echo x", "basic", "cli"), created
    assert request["cwd"] == str(installation.work)
    assert {"clean_environment", "tree_kill"} <= set(request["in_force"]), request
    assert "own_cgroup" not in request["in_force"], "level basic has none"
    assert request["policy"].startswith("allow"), request
    assert "no-curl" in refused["message"] and refused["request"]["command"] == "curl https://a.example", refused
    trail = (installation.state / "ledger" / "0.seg").read_text().splitlines()[1:]
    assert {json.loads(line)["by"]["principal"] for line in trail} == {f"uid:{os.getuid()}"}


def entries(installation, query=""):
    return installation.rest("GET", f"/api/v1/audit{query}")


def test_entries_are_read_over_rest_in_pages(installation):
    for code in range(3):
        installation.cli("run", "--", "sh", "-c", f"exit {code}", check=False)
    installation.cli("run", "--", "/no/such/program", check=False)
    everything = until(lambda: (page := entries(installation))["entries"][-1]["event"] == "refused" and page, 10, "the refusal")
    seqs = [entry["seq"] for entry in everything["entries"]]
    assert seqs == list(range(len(seqs))) and everything["next"] == len(seqs) and not everything["more"], everything
    assert all(re.fullmatch("[0-9a-f]{64}", entry["hash"]) and entry["by"]["principal"] for entry in everything["entries"])
    pages, page = [], {"next": 0, "more": True}
    while page["more"]:
        page = entries(installation, f"?limit=2&from={page['next']}")
        pages.append(page["entries"])
    assert [entry for found in pages for entry in found] == everything["entries"] and len(pages[0]) == 2
    assert entries(installation, f"?from={len(seqs)}") == {"entries": [], "next": len(seqs), "more": False}
    for wrong in ("from=-1", "from=x", "limit=0", "limit=1001", "to=3"):
        with pytest.raises(ProblemError) as refused:
            entries(installation, f"?{wrong}")
        assert refused.value.status == 422 and wrong.split("=")[0] in str(refused.value), wrong


def test_pages_go_backwards_from_the_newest_entry(installation):
    for _ in range(4):
        installation.cli("run", "--", "true")
    everything = until(lambda: len(found := entries(installation, "?limit=1000")["entries"]) >= 12 and found, 10, "the entries")
    newest = 2**53 - 1
    for limit in (1, 5, len(everything), 1000):
        found, page = [], {"next": newest, "more": True}
        while page["more"]:
            page = entries(installation, f"?limit={limit}&before={page['next']}")
            assert len(page["entries"]) <= limit
            found += page["entries"]
        assert found == everything[::-1], limit
    middle = everything[len(everything) // 2]["seq"]
    assert entries(installation, f"?before={middle}&limit=1")["entries"] == [everything[middle - 1]]
    assert entries(installation, "?before=0") == {"entries": [], "next": 0, "more": False}
    for wrong in ("before=-1", "before=x", "before=3&from=1"):
        with pytest.raises(ProblemError) as refused:
            entries(installation, f"?{wrong}")
        assert refused.value.status == 422 and "before" in str(refused.value), wrong


def test_no_field_of_an_event_hides_one_of_its_entry(installation):
    """A key that is there twice is an error here; most readers take the last one without a word."""
    installation.cli("ps")
    body = {"command": {"argv": {"program": "/bin/sleep", "args": ["600"]}}, "cwd": str(installation.work), "name": "worker",
            "health": {"probe": {"exec": ["false"]}, "interval_ms": 100, "failures": 1}}
    installation.rest("POST", "/api/v1/services", body)
    shell = {"command": {"shell": {"shell": "sh", "script": "read x"}}, "cwd": str(installation.work), "pty": {"cols": 80, "rows": 24}}
    terminal = installation.rest("POST", "/api/v1/executions", shell)["id"]
    user = TerminalUser(installation, "attach", terminal)

    def read():
        text = installation.rest("GET", "/api/v1/audit?limit=1000", raw=True)
        found = json.loads(text, object_pairs_hook=once)["entries"]
        events = {it["event"] for it in found}
        return {"health", "lease_taken"} <= events and found

    found = until(read, 20, "a health check and a lease")
    installation.rest("POST", "/api/v1/services/worker/restart")
    found = until(lambda: (now := read()) and any(it["event"] == "restarting" for it in now) and now, 20, "the restart")
    by = f"uid:{os.getuid()}"
    for entry in found:
        assert entry["by"]["principal"] == by and isinstance(entry.get("detail", {}), dict), entry
    health = next(it for it in found if it["event"] == "health")
    assert health["ok"] is False and "1" in health["event_detail"], health
    assert next(it for it in found if it["event"] == "lease_taken")["event_by"] == by
    assert next(it for it in found if it["event"] == "restarting")["event_by"] == by
    user.type("\n")
    user.wait_exit()


def once(pairs):
    names = [name for name, _ in pairs]
    assert len(names) == len(set(names)), names
    return dict(pairs)


def test_a_change_is_found_over_rest_too(recorded):
    installation, segment = recorded
    installation.cli("ps")
    report = installation.rest("GET", "/api/v1/audit/verify")
    assert report["findings"] == [] and report["covered"] > 0 and report == verify(installation)[1], report
    segment.write_bytes(segment.read_bytes().replace(b'"started"', b'"adopted"', 1))
    report = installation.rest("GET", "/api/v1/audit/verify")
    assert [finding["kind"] for finding in report["findings"]] == ["broken"] and report == verify(installation)[1], report


def test_entries_around_a_damaged_one_are_read_and_it_is_reported(installation):
    """The newest segment is damaged under a running daemon; streams and pages go on after the damage."""
    for code in range(3):
        installation.cli("run", "--", "sh", "-c", f"exit {code}", check=False)
    everything = until(lambda: len(found := entries(installation)["entries"]) >= 9 and found, 10, "the entries")
    damaged = everything[4]
    segment = installation.state / "ledger" / "0.seg"
    # In place: the daemon appends to this file.
    with segment.open("r+b") as file:
        file.seek(segment.read_bytes().index(damaged["hash"].encode()) + 70)
        file.write(b"#")
    # Of those who began to read before it, and of a reader who begins after it, each continues.
    rest = [entry for entry in everything if entry is not damaged]
    report = [{"first": damaged["seq"], "last": damaged["seq"]}]
    # Daemons keep where reads ended, not what they read.
    page = entries(installation)
    assert page["entries"] == rest and page["damaged"] == report, page
    for limit in (1, 3, 1000):
        found, reported, page = [], [], {"next": 0, "more": True}
        while page["more"]:
            page = entries(installation, f"?limit={limit}&from={page['next']}")
            found, reported = found + page["entries"], reported + page.get("damaged", [])
        assert (found, reported) == (rest, report), limit
        found, reported, page = [], [], {"next": 2**53 - 1, "more": True}
        while page["more"]:
            page = entries(installation, f"?limit={limit}&before={page['next']}")
            found, reported = found + page["entries"], reported + page.get("damaged", [])
        assert (found, reported) == (rest[::-1], report), limit
    events = installation.rest("GET", "/api/v1/events?cursor=0")
    assert events["damaged"] == report and [it["cursor"] - 1 for it in events["events"]] == [it["seq"] for it in rest]
    shown = installation.cli("events", "--no-follow", "--json")
    assert len(shown.stdout.splitlines()) == len(rest)
    assert f"entry {damaged['seq']} of the audit log cannot be read" in shown.stderr.decode()


def test_a_follower_goes_on_after_a_damaged_last_entry(installation):
    installation.cli("run", "--", "true")
    before = until(lambda: len(found := entries(installation)["entries"]) >= 3 and found, 10, "the entries")
    cursor = before[-1]["seq"]
    segment = installation.state / "ledger" / "0.seg"
    with segment.open("r+b") as file:
        file.seek(segment.read_bytes().index(before[-1]["hash"].encode()) + 70)
        file.write(b"#")
    page = installation.rest("GET", f"/api/v1/events?cursor={cursor}")
    assert (page["events"], page["next"]) == ([], cursor + 1) and page["damaged"] == [{"first": cursor, "last": cursor}], page
    installation.cli("run", "--", "true")
    page = installation.rest("GET", f"/api/v1/events?cursor={cursor + 1}&wait_ms=10000")
    assert page["events"][0]["event"] == "created" and "damaged" not in page, page
    # Under the next daemon numbers go on, and none is given twice.
    installation.shut_down()
    installation.cli("run", "--", "true")
    seqs = [entry["seq"] for entry in entries(installation, "?limit=1000")["entries"]]
    assert seqs == sorted(set(range(seqs[-1] + 1)) - {cursor}), seqs


def test_a_damaged_file_is_kept_as_evidence(recorded):
    """Also by the next daemon, whatever is damaged in it."""
    installation, segment = recorded
    whole = segment.read_bytes()
    entries_before = whole.count(b"\n") - 1
    segment.write_bytes(whole.replace(b"ostler-ledger", b"ostler-ledgeX", 1))
    assert kinds(installation) == ["broken"]
    installation.cli("run", "--", "true")
    assert segment.read_bytes() == whole.replace(b"ostler-ledger", b"ostler-ledgeX", 1)
    assert "broken" in kinds(installation)
    page = entries(installation, "?limit=1000")
    assert page["damaged"] == [{"first": 0, "last": 0}], page
    assert [entry["seq"] for entry in page["entries"]][: entries_before] == list(range(1, entries_before + 1))
    history = [row["command"] for row in installation.json("history")["executions"]]
    assert any("exit 2" in command for command in history), history


def test_the_version_is_that_of_the_binary(installation):
    installation.cli("ps")
    assert installation.rest("GET", "/api/v1/version") == {"version": installation.cli("--version").stdout.split()[-1].decode()}
