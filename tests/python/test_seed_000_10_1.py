"""Document 000 §10.1: what it asks of stored output, through the interfaces there are.

The document names classes of its own; the README's table says which of our calls stands for
which method. Output is stored by running a command that prints it.
"""

import os
import signal

import pytest

from harness import until
from harness.installation import ProblemError

pytestmark = pytest.mark.anyio


def start(place, script, *options):
    return place.cli("run", "-d", *options, "--", "sh", "-c", script).stdout.decode().strip()


def ended(place, script):
    pid = start(place, script)
    place.cli("wait", pid, check=False)
    return pid


def output(place, pid, query=""):
    return place.rest("GET", f"/api/v1/executions/{pid}/output{query}")


def texts(page, stream=None):
    return [line["text"] for line in page["lines"] if stream in (None, line["stream"])]


def stop_the_engine(place):
    daemon = place.daemon()
    place.rest("POST", "/api/v1/shutdown")
    assert daemon.gone(10)


# 10.1.1 unit tests


async def test_000_10_1_1_initialize(place):
    assert place.json("ps", "--all") == []
    assert place.rest("GET", "/api/v1/health")["state_dir"] == str(place.state)
    assert (place.state / "executions").is_dir()


async def test_000_10_1_1_store_output(place):
    pid = ended(place, "echo hello; echo trouble >&2")
    page = output(place, pid)
    assert texts(page, "stdout") == ["hello"] and texts(page, "stderr") == ["trouble"]
    assert all(line["at"] for line in page["lines"]), "each line has its time"


async def test_000_10_1_1_get_output(place):
    pid = ended(place, "echo one; echo two; echo other >&2")
    assert texts(output(place, pid, "?stream=stdout")) == ["one", "two"]
    assert texts(output(place, pid, "?stream=stderr")) == ["other"]


async def test_000_10_1_1_get_output_filtered(place):
    pid = ended(place, "for i in 1 2 3; do echo early $i; done; sleep 0.5; for i in 1 2 3; do echo late $i; done")
    late = output(place, pid)["lines"][3]["at"]
    since = late.replace("+", "%2B")
    assert texts(output(place, pid, f"?since={since}")) == ["late 1", "late 2", "late 3"]
    assert texts(output(place, pid, f"?since={since}&grep=%5B12%5D%24&tail=1")) == ["late 2"]
    assert texts(output(place, pid, f"?until={since}&head=2")) == ["early 1", "early 2"]


async def test_000_10_1_1_clear_output(place):
    pid = ended(place, "seq 1 100; echo gone >&2")
    dropped = place.rest("DELETE", f"/api/v1/executions/{pid}/output")["dropped_bytes"]
    assert dropped > 0
    assert texts(output(place, pid)) == []
    running = start(place, "echo before; while [ ! -e go ]; do sleep 0.05; done; echo after")
    until(lambda: texts(output(place, running)) == ["before"])
    place.rest("DELETE", f"/api/v1/executions/{running}/output")
    assert texts(output(place, running)) == []
    (place.work / "go").touch()
    place.cli("wait", running)
    assert texts(output(place, running)) == ["after"], "and it goes on"


async def test_000_10_1_1_shutdown(place):
    pid = ended(place, "echo kept")
    stop_the_engine(place)
    until(lambda: place.ours() == [], 5, "the end of everything that belongs to the engine")
    assert place.cli("logs", pid, "--raw").stdout == b"kept\n"


async def test_000_10_1_1_error_invalid_arguments(place):
    pid = ended(place, "echo hello")
    for query in ("?stream=stdfoo", "?tail=-1", "?since=whenever", "?grep=(", "?unknown=1"):
        with pytest.raises(ProblemError) as refused:
            output(place, pid, query)
        assert refused.value.code == "value_error", query


async def test_000_10_1_1_error_storage_failed(ordinary_place):
    place = ordinary_place
    ended(place, "echo hello")
    (place.state / "executions").chmod(0o500)
    try:
        async with place.agent() as agent:
            assert (await agent.execute("echo", "hello")).code == "storage_error"
    finally:
        (place.state / "executions").chmod(0o700)


async def test_000_10_1_1_error_process_not_found(place):
    ended(place, "true")
    for method, path in (("GET", "output"), ("DELETE", "output")):
        with pytest.raises(ProblemError) as refused:
            place.rest(method, f"/api/v1/executions/zzzzzzzz/{path}")
        assert (refused.value.code, refused.value.status) == ("process_not_found", 404)


def sealed(place, pid):
    """Takes the output files of an ended execution away from their reader."""
    directory = place.state / "executions" / place.json("info", pid)["uuid"]
    for path in directory.glob("output.*"):
        os.rename(path, path.with_suffix(path.suffix + ".away"))
        path.mkdir()
    return directory


async def test_000_10_1_1_error_retrieval_failed(place):
    pid = ended(place, "echo hello")
    sealed(place, pid)
    place.kill_daemon()
    place.json("ps", "--all")
    with pytest.raises(ProblemError) as refused:
        output(place, pid)
    assert refused.value.code == "output_retrieval_error"


async def test_000_10_1_1_error_clear_failed(place):
    pid = ended(place, "echo hello")
    sealed(place, pid)
    place.kill_daemon()
    place.json("ps", "--all")
    with pytest.raises(ProblemError) as refused:
        place.rest("DELETE", f"/api/v1/executions/{pid}/output")
    assert refused.value.code in ("output_clear_error", "output_retrieval_error")


async def test_000_10_1_1_error_shutdown_failed(place):
    ended(place, "echo hello")
    daemon = place.daemon()
    place.remove_state()
    place.rest("POST", "/api/v1/shutdown")
    assert daemon.gone(10), "it ends even where nothing can be written any more"
    until(lambda: place.ours() == [], 5, "the end of keeper and shims")


# 10.1.2 integration tests


async def test_000_10_1_2_with_the_process_manager(place):
    async with place.agent() as agent:
        pid = await agent.start_sh("echo captured; echo as well >&2")
        await agent.ended(pid, place)
        assert "captured" in await agent.lines(pid)
        assert "as well" in await agent.lines(pid, with_stdout=False, with_stderr=True)
        legacy = place.rest("GET", f"/api/process/{pid}/output?with_stderr=true")
        assert [entry["text"] for entry in legacy["stdout"]] == ["captured"]
        assert [entry["text"] for entry in legacy["stderr"]] == ["as well"]


def test_the_engine_ends_by_term_too(place):
    ended(place, "true")
    daemon = place.daemon()
    daemon.kill(signal.SIGTERM)
    assert daemon.gone(10)
