"""The resource monitor: what a command uses over time, and the most of it in the record of its end."""

import sys
from urllib.parse import quote

import pytest

from harness.installation import ProblemError

#: Uses a processor, 32 MiB of memory and a second process, and writes 4 MiB to storage, until it gets input.
BUSY = """
import os, subprocess, sys, threading
kept = bytearray(os.urandom(32 << 20))
child = subprocess.Popen(["sleep", "600"])
with open("written", "wb") as file:
    file.write(kept[:4 << 20]); file.flush(); os.fsync(file.fileno())
print("up", flush=True)
threading.Thread(target=lambda: (sys.stdin.readline(), child.kill(), os._exit(0)), daemon=True).start()
while True: pass
"""


def start(installation, *argv, **fields):
    body = {"command": {"argv": {"program": argv[0], "args": list(argv[1:])}}, "cwd": str(installation.work), **fields}
    return installation.rest("POST", "/api/v1/executions", body)["id"]


def history(installation, path, **query):
    words = "&".join(f"{name}={quote(str(value))}" for name, value in query.items())
    return installation.rest("GET", f"/api/v1/{path}/resources/history?{words}")


def totals(installation, execution):
    installation.cli("wait", execution, check=False)
    events = installation.rest("GET", f"/api/v1/events?id={execution}&wait_ms=9000")["events"]
    return [event for event in events if event["event"] == "finished"][0]["totals"]


def test_what_a_command_uses_is_sampled_kept_and_recorded(installation):
    installation.cli("ps")
    execution = start(installation, sys.executable, "-c", BUSY, stdin="open")
    wait = {"until": "pattern", "pattern": "up", "at_most_ms": 20000}
    installation.rest("POST", f"/api/v1/executions/{execution}/wait", wait)
    points, query = [], {}
    while len(points) < 3:
        page = history(installation, f"executions/{execution}", resolution_s=1, wait_ms=20000, **query)
        assert page["resolution_s"] == 1 and page["points"], page
        points += page["points"]
        query = {"since": page["next"]}
    assert "cpu_percent" not in points[0] and 5 < points[-1]["cpu_percent"] < 150, points
    assert points[-1]["memory_bytes"] > 32 << 20 and points[-1]["processes"] == 2, points
    assert points[-1]["written_bytes"] >= points[0]["written_bytes"], points
    # Without a network namespace of its own it has no network to measure, and without a limit no growth.
    assert not {"received_bytes", "sent_bytes", "disk_bytes"} & set(points[-1]), points
    first = history(installation, f"tasks/{execution}", resolution_s=1, limit=1)
    assert first["points"] == points[:1] and first["more"], first
    coarse = history(installation, f"executions/{execution}", resolution_s=300)["points"]
    assert coarse[-1]["at"] >= points[-1]["at"], coarse
    used = installation.rest("GET", f"/api/v1/tasks/{execution}/resources")
    assert used["written_bytes"] >= points[-1]["written_bytes"] and "sent_bytes" not in used, used
    shown = installation.json("stats", "--since", "10m", execution)
    assert shown[0]["id"] == execution and shown[0]["points"], shown
    table = installation.cli("stats", "--since", "10m", execution).stdout.decode()
    assert table.startswith("ID ") and f"\n{execution} " in table, table
    installation.rest("POST", f"/api/v1/executions/{execution}/input", b"go\n")
    ended = totals(installation, execution)
    assert ended["peak_memory_bytes"] > 32 << 20 and ended["peak_processes"] == 2 and ended["output_lines"] == 1, ended
    assert ended["peak_cpu_percent"] > 5 and ended["written_bytes"] >= points[-1]["written_bytes"], ended
    remembered = installation.json("history", "show", execution)["totals"]
    assert {name: remembered[name] for name in ended if name in remembered} == {
        name: ended[name] for name in ended if name in remembered}, remembered
    assert remembered["peak_processes"] == 2 and "received_bytes" not in remembered, remembered
    # What was sampled of it is still there.
    assert history(installation, f"executions/{execution}", resolution_s=1)["points"][:1] == points[:1]


def test_the_growth_of_a_limited_workspace_is_part_of_it(installation):
    installation.cli("ps")
    script = "head -c 8388608 /dev/zero > grown; read go"
    execution = start(installation, "sh", "-c", script, stdin="open", limits={"disk_bytes": 64 << 20})
    query, point = {}, {}
    while point.get("disk_bytes", 0) < 8 << 20:
        page = history(installation, f"executions/{execution}", resolution_s=1, wait_ms=20000, **query)
        point, query = page["points"][-1], {"since": page["next"]}
    assert point["disk_bytes"] < 16 << 20, point
    installation.rest("POST", f"/api/v1/executions/{execution}/input", b"\n")
    assert totals(installation, execution)["peak_disk_bytes"] >= 8 << 20


def test_samples_go_on_under_the_next_daemon(installation):
    installation.cli("ps")
    execution = start(installation, "sleep", "300")
    before = history(installation, f"executions/{execution}", wait_ms=20000)["points"]
    installation.kill_daemon()
    installation.cli("ps")
    after = history(installation, f"executions/{execution}", wait_ms=20000)["points"]
    # Those of the dead daemon are lost.
    assert before and after and after[0]["at"] > before[-1]["at"] and "cpu_percent" not in after[0], (before, after)
    assert after[0]["processes"] == 1, after
    installation.cli("stop", execution)


def test_what_was_never_sampled_has_no_invented_zeros(installation):
    installation.cli("ps")
    execution = start(installation, "sh", "-c", "echo one; printf two >&2")
    ended = totals(installation, execution)
    assert ended["output_lines"] == 2 and ended["peak_memory_bytes"] == ended["max_rss_bytes"], ended
    assert not {"peak_cpu_percent", "peak_processes", "written_bytes", "sent_bytes"} & set(ended), ended
    assert history(installation, f"executions/{execution}", wait_ms=60000) == {
        "resolution_s": 10, "points": [], "more": False}


@pytest.mark.parametrize("query, word", [
    ({"resolution_s": 2}, "resolution_s"), ({"limit": 0}, "limit"), ({"limit": 1001}, "limit"), ({"wait_ms": 60001}, "wait_ms"),
    ({"since": "\0"}, "since"), ({"since": "9" * 5000}, "since"), ({"watch": "perhaps"}, "watch"), ({"every": 1}, "every")])
def test_what_is_no_query_is_refused_by_name(installation, query, word):
    installation.cli("ps")
    execution = start(installation, "true")
    with pytest.raises(ProblemError) as refused:
        history(installation, f"executions/{execution}", **query)
    assert refused.value.status in (400, 422) and word in str(refused.value.problem), refused.value.problem
