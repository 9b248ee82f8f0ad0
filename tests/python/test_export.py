"""Journals in formats that others read."""

import io
import json
import os
import subprocess
import sys
from xml.etree import ElementTree

import fastavro
import pytest
import yaml

from harness import until

LINES = ["first", "second: with a colon", "'quoted'", "ünïcödé 字", "", "last"]


@pytest.fixture
def ended(installation):
    script = "".join(f"printf '%s\\n' \"{line}\"; " for line in LINES) + "echo wrong >&2"
    pid = installation.cli("run", "-d", "--", "sh", "-c", script).stdout.decode().strip()
    installation.cli("wait", pid)
    return installation, pid


def export(ended, name):
    installation, pid = ended
    return installation.cli("export", pid, "--format", name).stdout


def printed(entries, stream):
    """What a stream printed, from the records of an export."""
    chunks = [e for e in entries if e.get("kind") == "output" and e.get("stream") == stream]
    assert all(chunk.get("at") or chunk.get("at_ns") for chunk in chunks), "every chunk has its time"
    texts = (chunk["data"] for chunk in chunks)
    return b"".join(t if isinstance(t, bytes) else t.encode() for t in texts).decode()


@pytest.mark.parametrize("verb, formats", [("rm", ["text", "jsonl", "avro", "asciicast"]), ("clear", ["text", "asciicast"])])
def test_an_export_whose_output_is_removed_meanwhile_fails(installation, verb, formats):
    script = "yes 0123456789012345678901234567890123456789 | head -c 40000000"
    for name in formats:
        pid = installation.cli("run", "-d", "--", "sh", "-c", script).stdout.decode().strip()
        installation.cli("wait", pid)
        argv = installation.argv("export", pid, "--format", name)
        with subprocess.Popen(argv, env=installation.env(), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as writer:
            received = len(writer.stdout.read(10_000))
            installation.cli(verb, pid)
            received += len(writer.stdout.read())
            error = writer.stderr.read()
        assert writer.returncode != 0 and error and received < 40_000_000, (name, writer.returncode, error, received)
    installation.cli("export", pid, "--format", "text", check=verb == "clear")


def begin_export(installation, pid, *words):
    """An export that has begun and is not read any further."""
    argv = installation.argv("export", pid, *words)
    # Without a buffer: `communicate` would not return what is left in it.
    writer = subprocess.Popen(argv, env=installation.env(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0)
    return writer, writer.stdout.read(10_000)


@pytest.mark.limit(240)
def test_an_export_says_what_was_lost_after_it_began(installation):
    size = 150_000_000
    pid = installation.cli("run", "-d", "--", "sh", "-c", f"yes | head -c {size}").stdout.decode().strip()
    installation.cli("wait", pid)
    directory = installation.state / "executions" / installation.json("info", pid)["uuid"]
    assert (directory / "output.2.idx").exists(), "at least three files"
    writer, received = begin_export(installation, pid)
    for file in directory.glob("output.1.*"):
        file.unlink()
    rest, errors = writer.communicate(timeout=200)
    entries = [json.loads(line) for line in (received + rest).splitlines()]
    [gap] = [entry for entry in entries if entry["kind"] == "gap"]
    assert gap["to"] < size and entries[-1]["kind"] in ("event", "output"), "it is complete but for the gap"
    assert writer.returncode == 74, (writer.returncode, errors)
    missing = gap["to"] - gap["from"]
    assert f"{missing} bytes of its output are missing".encode() in errors and b"error[storage_error]" in errors, errors


@pytest.mark.limit(240)
def test_what_a_person_clears_meanwhile_is_no_loss_of_an_export(installation):
    size = 100_000_000
    pid = installation.cli("run", "-d", "--", "sh", "-c", f"yes | head -c {size}").stdout.decode().strip()
    installation.cli("wait", pid)
    writer, _ = begin_export(installation, pid)
    installation.cli("clear", pid)
    rest, errors = writer.communicate(timeout=200)
    assert writer.returncode == 0, (writer.returncode, errors)
    assert json.loads(rest.splitlines()[-1])["kind"] in ("gap", "event"), rest[-300:]


@pytest.mark.limit(240)
@pytest.mark.parametrize("target", ["pipe", "file"])
def test_a_format_without_gaps_says_why_it_is_incomplete(installation, target):
    pid = installation.cli("run", "-d", "--", "sh", "-c", "yes | head -c 150000000").stdout.decode().strip()
    installation.cli("wait", pid)
    directory = installation.state / "executions" / installation.json("info", pid)["uuid"]
    assert (directory / "output.2.idx").exists(), "at least three files"
    file = installation.work / "exported"
    if target == "pipe":
        writer, _ = begin_export(installation, pid, "--format", "text")
    else:
        # The target of a pipe is written to as it comes, so that the export waits for its reader.
        os.mkfifo(file)
        argv = installation.argv("export", pid, "--format", "text", "--output", str(file))
        writer = subprocess.Popen(argv, env=installation.env(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        reader = file.open("rb")
        reader.read(10_000)
    for part in directory.glob("output.1.*"):
        part.unlink()
    if target == "file":
        while reader.read(1_000_000):
            pass
        reader.close()
    _, errors = writer.communicate(timeout=200)
    assert writer.returncode == 74, (writer.returncode, errors)
    assert errors.startswith(b"error[output_retrieval_error]: the export is incomplete: "), errors


WHOLE = "".join(f"{line}\n" for line in LINES)


def test_yaml_is_read_by_another_reader(ended):
    entries = yaml.safe_load(export(ended, "yaml"))
    assert printed(entries, "stdout") == WHOLE and printed(entries, "stderr") == "wrong\n"


def test_avro_is_read_by_another_reader(ended):
    entries = list(fastavro.reader(io.BytesIO(export(ended, "avro"))))
    assert printed(entries, "stdout") == WHOLE and printed(entries, "stderr") == "wrong\n"


def test_jsonl_has_one_object_per_line(ended):
    entries = [json.loads(line) for line in export(ended, "jsonl").splitlines()]
    assert printed(entries, "stdout") == WHOLE and printed(entries, "stderr") == "wrong\n"
    assert [e["event"] for e in entries if e["kind"] == "event"][-1] == "finished"


def test_text_is_the_text(ended):
    text = export(ended, "text").decode()
    assert all(line in text for line in LINES)


def test_asciicast_has_a_header_and_frames(ended):
    header, *frames = (json.loads(line) for line in export(ended, "asciicast").splitlines())
    assert header["version"] == 2 and header["width"] and header["height"]
    shown = "".join(frame[2] for frame in frames if frame[1] == "o").replace("\r\n", "\n")
    assert all(line in shown for line in LINES)


@pytest.mark.parametrize(("script", "status"), [("echo a; sleep 0.3; printf b; exit 3", "3"), ("echo a; kill -9 $$", "137")])
def test_a_cast_of_version_3_has_intervals_and_the_exit_status(installation, script, status):
    pid = installation.cli("run", "-d", "-t", "--", "sh", "-c", script).stdout.decode().strip()
    installation.cli("wait", pid, check=False)
    header, *events = (json.loads(line) for line in installation.cli("export", "-f", "asciicast-v3", pid).stdout.splitlines())
    assert header["version"] == 3 and header["term"]["cols"] and header["term"]["rows"], header
    assert events[-1][1:] == ["x", status], events
    assert all(interval >= 0 for interval, *_ in events)
    whole = sum(interval for interval, *_ in events)
    assert ("sleep" not in script or 0.25 < whole < 20) and "a" in events[0][2], events
    frames = [json.loads(line) for line in installation.cli("export", "-f", "asciicast", pid).stdout.splitlines()][1:]
    assert [frame[1:] for frame in frames] == [event[1:] for event in events[:-1]], "version 2 has no exit status"


@pytest.mark.parametrize("name", ["yaml", "jsonl", "avro"])
def test_a_mirror_is_a_live_copy(make_installation, name):
    installation = make_installation()
    env = {"OSTLER_JOURNAL_MIRROR": name}
    start = ("run", "-d", "--", "sh", "-c", "echo mirrored; exec sleep 300")
    pid = installation.cli(*start, env=env).stdout.decode().strip()

    def copied():
        return any(b"mirrored" in p.read_bytes() for p in installation.executions()[0].glob(f"*{name}*"))

    until(copied, 10, "the live copy")
    installation.cli("stop", pid)


def copies(installation, pid):
    """The copies of an execution's journal, by their names."""
    directory = installation.state / "executions" / installation.json("info", pid)["uuid"]
    return {path.name: path.read_bytes() for path in directory.glob("mirror.[!p]*")}


def started_mirrored(installation, env):
    """Prints a secret, then, for each file that appears, its name; ended by the last one."""
    (installation.work / "secret").write_text("t0p-s3cr3t\n")
    script = "cat secret; for n in one two; do until [ -e $n ]; do sleep .02; done; echo after-$n; done"
    pid = installation.cli("run", "-d", "--", "sh", "-c", script, env=env).stdout.decode().strip()
    until(lambda: any(b"t0p-s3cr3t" in copy for copy in copies(installation, pid).values()), 10, "the live copy")
    return pid


def holds_after(installation, pid, name, text):
    until(lambda: text in copies(installation, pid).get(f"mirror.{name}", b""), 10, f"{text} in the copy")
    kept = copies(installation, pid)
    assert list(kept) == [f"mirror.{name}"] and b"t0p-s3cr3t" not in kept[f"mirror.{name}"], kept


@pytest.mark.parametrize("restarted", [False, True], ids=["one daemon", "the next daemon"])
@pytest.mark.parametrize("name", ["yaml", "jsonl", "avro"])
def test_a_mirror_holds_nothing_of_what_was_cleared(make_installation, name, restarted):
    installation = make_installation()
    env = {"OSTLER_JOURNAL_MIRROR": name}
    pid = started_mirrored(installation, env)

    def restart():
        if restarted:
            installation.kill_daemon()
            installation.cli("ps", env=env)

    restart()
    installation.cli("clear", pid)
    assert not any(b"t0p-s3cr3t" in copy for copy in copies(installation, pid).values())
    restart()
    (installation.work / "one").touch()
    holds_after(installation, pid, name, b"after-one")
    (installation.work / "two").touch()
    installation.cli("wait", pid)
    holds_after(installation, pid, name, b"after-two")
    restart()
    # Nothing drives it any more.
    installation.cli("clear", pid)
    kept = copies(installation, pid)
    assert list(kept) == [f"mirror.{name}"] and not any(word in kept[f"mirror.{name}"] for word in (b"after-one", b"after-two", b"t0p")), kept
    if name == "jsonl":
        assert kept["mirror.jsonl"] == installation.cli("export", pid, "--format", "jsonl").stdout


def test_a_mirror_that_is_kept_no_more_holds_nothing_of_what_was_cleared(make_installation):
    installation = make_installation()
    pid = started_mirrored(installation, {"OSTLER_JOURNAL_MIRROR": "yaml"})
    installation.kill_daemon()
    # The next daemon keeps copies in another format, the one after it keeps none.
    env = {"OSTLER_JOURNAL_MIRROR": "jsonl"}
    installation.cli("ps", env=env)
    until(lambda: len(copies(installation, pid)) == 2, 10, "the second copy")
    installation.kill_daemon()
    installation.cli("ps")
    installation.cli("clear", pid)
    assert copies(installation, pid) == {}
    installation.cli("stop", pid)


# What compilers, linters and a runner that repeats a failed test print.
BUILD = """\
src/a b.c:2:34: error: expected ';' before '}' token
src/a b.c:2:19: warning: unused variable 'x' [-Wunused-variable]
./app/main.py:1:1: F401 'os' imported but unused
============================= test session starts ==============================
tests/test_a.py::test_flaky RERUN                                        [ 50%]
tests/test_a.py::test_flaky PASSED                                       [ 50%]
tests/test_a.py::test_bad[<&"\x01] FAILED                                  [100%]
=================================== FAILURES ===================================
_____________________________ test_bad[<&"\x01] _______________________________
E   AssertionError: <b> & "\x1b[1mq\x1b[0m"
tests/test_a.py:7: AssertionError
=========================== short test summary info ============================
FAILED tests/test_a.py::test_bad[<&"\x01] - AssertionError: <b>
========================= 1 failed, 1 passed, 1 rerun in 0.02s =========================
"""


@pytest.fixture
def built(installation, tmp_path):
    (tmp_path / "log").write_text(BUILD)
    command = ["run", "-d", "--cwd", str(tmp_path), "--", "sh", "-c", "cat log; exit 3"]
    pid = installation.cli(*command).stdout.decode().strip()
    installation.cli("wait", pid, check=False)
    return installation, pid, tmp_path


def test_sarif_names_the_diagnostics_and_the_execution(built):
    installation, pid, directory = built
    log = json.loads(installation.cli("export", "-f", "sarif", pid).stdout)
    assert log["version"] == "2.1.0"
    runs = {run["tool"]["driver"]["name"]: run for run in log["runs"]}
    assert set(runs) == {"cc", "flake8", "pytest"}
    first, second = runs["cc"]["results"]
    place = first["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "src/a%20b.c", "uriBaseId": "CWD"}
    assert place["region"] == {"startLine": 2, "startColumn": 34}
    assert (first["level"], second["level"], second["ruleId"]) == ("error", "warning", "-Wunused-variable")
    assert first["properties"]["output"] == {"stream": "stdout", "line": 1, "offset": 0}
    for run in log["runs"]:
        (invocation,) = run["invocations"]
        assert (invocation["exitCode"], invocation["executionSuccessful"]) == (3, False)
        assert invocation["properties"]["executionId"] == installation.json("info", pid)["uuid"]
        assert invocation["workingDirectory"]["uri"] == f"file://{directory}/"
        assert invocation["startTimeUtc"] <= invocation["endTimeUtc"]
        assert run["originalUriBaseIds"]["CWD"]["uri"] == f"file://{directory}/"


def test_junit_is_read_by_an_xml_parser(built):
    installation, pid, _ = built
    root = ElementTree.fromstring(installation.cli("export", "-f", "junit", pid).stdout)
    assert (root.get("tests"), root.get("failures")) == ("2", "1")
    flaky, bad = root.iter("testcase")
    assert [flaky.find("flakyFailure") is not None, flaky.find("failure")] == [True, None]
    assert bad.get("name") == 'test_bad[<&"]' and bad.find("failure").get("message") == "AssertionError: <b>"
    assert bad.find("failure").text == 'AssertionError: <b> & "q"'
    values = {one.get("name"): one.get("value") for one in root.iter("property")}
    assert values["ostler.exit_code"] == "3" and values["ostler.execution"]


def test_a_real_runner_is_reported(installation, tmp_path):
    tests = "import unittest\nclass Sums(unittest.TestCase):\n"
    tests += "    def test_ok(self): pass\n    def test_bad(self): self.assertEqual(1, 2)\n"
    (tmp_path / "test_sums.py").write_text(tests)
    command = ["run", "-d", "--cwd", str(tmp_path), "--", sys.executable, "-m", "unittest", "-v", "test_sums"]
    pid = installation.cli(*command).stdout.decode().strip()
    installation.cli("wait", pid, check=False)
    root = ElementTree.fromstring(installation.cli("export", "-f", "junit", pid).stdout)
    outcomes = {case.get("name"): case.find("failure") is None for case in root.iter("testcase")}
    assert outcomes == {"test_ok": True, "test_bad": False}


def test_a_report_names_failed_tests_and_diagnostics(built):
    installation, pid, _ = built
    text = installation.cli("report", pid).stdout.decode()
    assert "2 tests: 1 passed (1 of them flaky), 1 failed\n" in text
    assert "3 errors, 1 warning\n" in text
    bad, flaky = (line for line in text.splitlines() if "tests/test_a.py   " in line)
    assert bad.startswith("failed") and "stdout line 7" in bad and "<b>" in bad
    assert flaky.startswith("flaky") and "test_flaky" in flaky
    file = text.splitlines().index("src/a b.c")
    assert text.splitlines()[file + 1].split()[:2] == ["2:34", "error"]


def test_a_report_has_counts_and_limited_lists(built):
    installation, pid, _ = built
    report = installation.rest("GET", f"/api/v1/executions/{pid}/report?limit=1")
    assert report["tests"] == {
        "total": 2, "passed": 1, "failed": 1, "errors": 0, "skipped": 0, "flaky": 1, "omitted": 0,
    }
    assert report["diagnostic_counts"] == {"errors": 3, "warnings": 1, "notes": 0, "omitted": 0}
    (test,), (diagnostic,) = report["failed_tests"], report["diagnostics"]
    assert (test["outcome"], test["attempts"], test["output"]["line"]) == ("failed", 1, 7)
    assert (diagnostic["file"], diagnostic["line"], diagnostic["column"]) == ("src/a b.c", 2, 34)
    assert installation.json("report", pid, "-n", "1") == report


def test_a_report_of_nothing_says_so(ended):
    installation, pid = ended
    assert installation.cli("report", pid).stdout.decode() == "No test results.\nNo diagnostics.\n"
    refused = installation.cli("report", "zzzzzzzz", check=False)
    assert refused.returncode == 66
