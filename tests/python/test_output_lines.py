"""Output by line number: pages, searches, failures and slices of time, as a viewer of logs reads them."""

import re

import pytest

from harness import Installation, until
from harness.installation import ProblemError

COUNT = 30_000
#: One line of three on stderr, one of a thousand states an error. The order of the two streams is that in which they are read.
SCRIPT = """
import os
for n in range(1, {count} + 1):
    word = "error: cannot find it" if n % 1000 == 0 else "plain"
    os.write(2 if n % 3 == 0 else 1, f"{{n}} {{word}} αβ\\n".encode())
"""


def lines_of(count):
    return [f"{n} {'error: cannot find it' if n % 1000 == 0 else 'plain'} αβ" for n in range(1, count + 1)]


def pages(installation, id, count, query=""):
    """All lines by number, in pages of `count` lines."""
    found, line = {}, 1
    while True:
        page = get(installation, id, "lines", f"line={line}&count={count}{query}")
        assert (page["first_line"], page["ended_lines"], page["finished"]) == (1, COUNT, True)
        found.update({it["line"]: (it["stream"], it["text"]) for it in page["lines"]})
        if not page["more"]:
            return found
        line = page["next_line"]


def run(installation, *argv, wait=True, **options):
    body = {"command": {"argv": {"program": argv[0], "args": argv[1:]}}, "cwd": str(installation.work), **options}
    installation.cli("ps")
    id = installation.rest("POST", "/api/v1/executions", body)["id"]
    if wait:
        installation.rest("POST", f"/api/v1/executions/{id}/wait", {"until": "exit", "at_most_ms": 60_000})
    return id


def get(installation, id, route, query=""):
    return installation.rest("GET", f"/api/v1/executions/{id}/output/{route}?{query}")


def numbered(page):
    return {it["line"]: it["text"] for it in page["lines"]}


@pytest.fixture(scope="module")
def printed(binary):
    """An execution that printed `COUNT` lines, and these with their numbers."""
    installation = Installation(binary)
    try:
        id = run(installation, "python3", "-c", SCRIPT.format(count=COUNT))
        yield installation, id, pages(installation, id, 10_000)
    finally:
        installation.close()


def test_pages_begin_at_any_line_and_are_the_whole_output(printed):
    installation, id, all = printed
    assert list(all) == list(range(1, COUNT + 1))
    for number, stream in enumerate(("stderr", "stdout", "stdout")):
        assert sorted(all.values(), key=lambda it: int(it[1].split()[0]))[number + 2::3] == [
            (stream, text) for text in lines_of(COUNT)[number + 2::3]]
    for stream in ("stdout", "stderr"):
        own = {line: it for line, it in all.items() if it[0] == stream}
        assert [text for _, text in own.values()] == sorted((text for _, text in own.values()), key=lambda it: int(it.split()[0]))
        assert pages(installation, id, 4_321, f"&stream={stream}") == own
    assert pages(installation, id, 997) == all
    middle = get(installation, id, "lines", f"line={COUNT // 2}&count=2")["lines"]
    assert [it["text"] for it in middle] == [all[line][1] for line in (COUNT // 2, COUNT // 2 + 1)]
    assert list(numbered(get(installation, id, "lines", "last=3"))) == [COUNT - 2, COUNT - 1, COUNT]
    late = get(installation, id, "lines", f"at={middle[0]['at']}&count=1")["lines"][0]
    assert late["line"] <= COUNT // 2 and late["at"] == middle[0]["at"]
    beyond = get(installation, id, "lines", f"line={COUNT + 77}")
    assert (beyond["lines"], beyond["next_line"], beyond["more"]) == ([], COUNT + 1, False)


def searched(installation, id, query):
    """All matches, page by page, and the sum of the counts."""
    found, count, more = [], 0, ""
    while True:
        page = get(installation, id, "find", query + more)
        found += page["matches"]
        count += page["count"]
        if "next_line" not in page:
            return sorted(found, key=lambda it: it["line"]), count
        more = f"&from={page['next_line']}"


@pytest.mark.parametrize("query, matches", [
    ("q=777", lambda text: "777" in text),
    ("q=777&mode=word", lambda text: re.search(r"\b777\b", text)),
    ("q=^1.*ERROR&mode=regex&ignore_case=true", lambda text: re.search("^1.*error", text)),
    ("q=.&mode=text", lambda text: "." in text),
    ("q=%CE%B2&ignore_case=true", lambda text: "β" in text),
])
def test_a_search_finds_what_grep_finds_in_both_directions(printed, query, matches):
    installation, id, all = printed
    want = [(line, text) for line, (_, text) in all.items() if matches(text)]
    if len(want) < 1_000:
        for dir in ("next", "previous"):
            found, count = searched(installation, id, f"{query}&dir={dir}&limit=97")
            assert [(it["line"], it["text"]) for it in found] == want and count == len(want)
    found, count = searched(installation, id, f"{query}&count_only=true")
    assert (found, count) == ([], len(want))
    if want:
        line = want[len(want) // 2][0]
        for dir in ("next", "previous"):
            page = get(installation, id, "find", f"{query}&dir={dir}&from={line}&limit=1")
            assert [it["line"] for it in page["matches"]] == [line]


def test_failures_are_found_in_both_directions(printed):
    installation, id, all = printed
    want = [line for line, (_, text) in all.items() if "error" in text]
    for dir in ("next", "previous"):
        found, query = [], f"dir={dir}&limit=7"
        while True:
            page = get(installation, id, "failures", query)
            found += [it["line"] for it in page["failures"]]
            if "next_line" not in page:
                break
            query = f"dir={dir}&limit=7&from={page['next_line']}"
        assert sorted(found) == want
    first = get(installation, id, "failures", f"from={want[0] + 1}&limit=1")["failures"][0]
    assert (first["line"], first["stream"], first["text"]) == (want[1], *all[want[1]])


def test_a_shape_counts_all_lines_and_those_on_stderr(printed):
    installation, id, all = printed
    shape = get(installation, id, "shape", "buckets=20")
    buckets = shape["buckets"]
    assert len(buckets) == 20 and sum(it["lines"] for it in buckets) == shape["ended_lines"] == COUNT
    assert sum(it["stderr_lines"] for it in buckets) == COUNT // 3
    failures = [line for line, (_, text) in all.items() if "error" in text and line >= shape["failures_from_line"]]
    assert sum(it["failure_lines"] for it in buckets) == len(failures) > 0
    assert shape["from"] <= shape["to"]


def test_numbers_stay_while_it_prints_and_under_the_next_daemon(installation):
    script = "echo one; printf 'ask: '; read a; echo two; echo err >&2; read a; printf last"
    id = run(installation, "sh", "-c", script, wait=False, stdin="open")
    page = until(lambda: (p := get(installation, id, "lines"))["lines"][1:] and p, 20, "its prompt")
    assert numbered(page) == {1: "one", 2: "ask: "} and page["next_line"] == 2 and not page["finished"]
    assert [it["terminated"] for it in page["lines"]] == [True, False]
    installation.kill_daemon()
    installation.cli("ps")
    installation.rest("POST", f"/api/v1/executions/{id}/input", b"x\n")
    page = until(lambda: (p := get(installation, id, "lines", "line=2"))["ended_lines"] == 3 and p, 20, "its next lines")
    assert numbered(page) == {2: "ask: two", 3: "err"}
    installation.rest("POST", f"/api/v1/executions/{id}/input", b"x\n")
    installation.rest("POST", f"/api/v1/executions/{id}/wait", {"until": "exit", "at_most_ms": 20_000})
    page = get(installation, id, "lines", "line=4")
    assert numbered(page) == {4: "last"} and page["finished"] and not page["more"]
    assert [it["line"] for it in get(installation, id, "find", "q=la")["matches"]] == [4]


def test_numbers_stay_when_output_is_cleared(installation):
    id = run(installation, "sh", "-c", "seq 5; read a; seq 6 8", wait=False, stdin="open")
    until(lambda: get(installation, id, "lines")["ended_lines"] == 5, 20, "its lines")
    installation.rest("DELETE", f"/api/v1/executions/{id}/output")
    page = get(installation, id, "lines", "line=2")
    assert (page["first_line"], page["lines"], page["next_line"]) == (6, [], 6)
    installation.rest("POST", f"/api/v1/executions/{id}/input", b"x\n")
    installation.rest("POST", f"/api/v1/executions/{id}/wait", {"until": "exit", "at_most_ms": 20_000})
    page = get(installation, id, "lines", "line=2")
    assert numbered(page) == {6: "6", 7: "7", 8: "8"} and page["first_line"] == 6
    assert searched(installation, id, "q=7")[0][0]["line"] == 7
    assert sum(it["lines"] for it in get(installation, id, "shape")["buckets"]) == 3


def test_line_ends_long_lines_and_no_output(installation):
    id = run(installation, "sh", "-c", r"printf 'a\r\nb\rc\n\n'; head -c 200000 /dev/zero | tr '\0' x; printf 'needle\nend'")
    page = get(installation, id, "lines")
    assert [it["text"] for it in page["lines"][:3]] == ["a\r", "b\rc", ""]
    assert page["lines"][3]["clipped_bytes"] == 200_006 - len(page["lines"][3]["text"])
    assert numbered(page)[5] == "end" and not page["lines"][4]["terminated"]
    found = get(installation, id, "find", "q=needle")["matches"][0]
    assert found["line"] == 4 and "needle" in found["text"] and found["skipped_bytes"] > 199_000
    silent = run(installation, "true")
    assert get(installation, silent, "lines")["lines"] == [] and get(installation, silent, "shape")["buckets"] == []
    assert get(installation, silent, "find", "q=a") == {
        "first_line": 1, "ended_lines": 0, "matches": [], "count": 0, "searched_bytes": 0}
    assert get(installation, silent, "failures")["failures"] == []


@pytest.mark.parametrize("route, query, named", [
    ("lines", "line=0", "line"), ("lines", "count=0", "count"), ("lines", "line=1&last=2", "one of them"), ("lines", "at=soon", "at"),
    ("lines", "stream=sound", "stream"), ("find", "", "q"), ("find", "q=", "q"), ("find", "q=(&mode=regex", "position"),
    ("find", "q=a&mode=fuzzy", "mode"), ("find", "q=a&dir=previous&count_only=true", "dir"), ("find", "q=a&limit=99999", "limit"),
    ("shape", "buckets=0", "buckets"), ("failures", "from=-1", "from"),
])
def test_bad_requests_are_told(printed, route, query, named):
    installation, id, _ = printed
    with pytest.raises(ProblemError) as refused:
        get(installation, id, route, query)
    assert refused.value.status == 422 and named in refused.value.problem["message"]


def test_a_pattern_that_takes_too_long_is_stopped(installation):
    id = run(installation, "sh", "-c", "head -c 100000 /dev/zero | tr '\\0' a; echo b")
    with pytest.raises(ProblemError) as refused:
        get(installation, id, "find", "q=(?=(a%2B)%2B)\\1c&mode=regex")
    assert refused.value.status < 500 and "too long" in refused.value.problem["message"]
