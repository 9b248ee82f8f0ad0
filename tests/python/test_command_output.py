"""Stored output of the command server, over the existing interfaces. Output is stored by running a command that
prints it.
"""

import os
import signal
from datetime import datetime
from urllib.parse import quote

import pytest

from harness import until
from harness.installation import ProblemError

pytestmark = pytest.mark.anyio


def start(installation, script, *options):
    return installation.cli("run", "-d", *options, "--", "sh", "-c", script).stdout.decode().strip()


def ended(installation, script):
    pid = start(installation, script)
    installation.cli("wait", pid, check=False)
    return pid


def output(installation, pid, query=""):
    return installation.rest("GET", f"/api/v1/executions/{pid}/output{query}")


def texts(page, stream=None):
    return [line["text"] for line in page["lines"] if stream in (None, line["stream"])]


def stop_the_engine(installation):
    daemon = installation.daemon()
    installation.rest("POST", "/api/v1/shutdown")
    assert daemon.gone(10)


# One function at a time


async def test_initialize(installation):
    assert installation.json("ps", "--all") == []
    assert installation.rest("GET", "/api/v1/health")["state_dir"] == str(installation.state)
    assert (installation.state / "executions").is_dir()


async def test_store_output(installation):
    pid = ended(installation, "echo hello; echo trouble >&2")
    page = output(installation, pid)
    assert texts(page, "stdout") == ["hello"] and texts(page, "stderr") == ["trouble"]
    assert all(line["at"] for line in page["lines"]), "each line has its time"


async def test_get_output(installation):
    pid = ended(installation, "echo one; echo two; echo other >&2")
    assert texts(output(installation, pid, "?stream=stdout")) == ["one", "two"]
    assert texts(output(installation, pid, "?stream=stderr")) == ["other"]


async def test_get_output_filtered(installation):
    pid = ended(installation, "for i in 1 2 3; do echo early $i; done; sleep 0.5; for i in 1 2 3; do echo late $i; done")
    late = output(installation, pid)["lines"][3]["at"]
    since = late.replace("+", "%2B")
    assert texts(output(installation, pid, f"?since={since}")) == ["late 1", "late 2", "late 3"]
    assert texts(output(installation, pid, f"?since={since}&grep=%5B12%5D%24&tail=1")) == ["late 2"]
    assert texts(output(installation, pid, f"?until={since}&head=2")) == ["early 1", "early 2"]


async def test_clear_output(installation):
    pid = ended(installation, "seq 1 100; echo gone >&2")
    dropped = installation.rest("DELETE", f"/api/v1/executions/{pid}/output")["dropped_bytes"]
    assert dropped > 0
    assert texts(output(installation, pid)) == []
    running = start(installation, "echo before; while [ ! -e go ]; do sleep 0.05; done; echo after")
    until(lambda: texts(output(installation, running)) == ["before"])
    installation.rest("DELETE", f"/api/v1/executions/{running}/output")
    assert texts(output(installation, running)) == []
    (installation.work / "go").touch()
    installation.cli("wait", running)
    assert texts(output(installation, running)) == ["after"], "and it goes on"


async def test_shutdown(installation):
    pid = ended(installation, "echo kept")
    stop_the_engine(installation)
    until(lambda: installation.ours() == [], 5, "the end of everything that belongs to the engine")
    assert installation.cli("logs", pid, "--raw").stdout == b"kept\n"


async def test_error_invalid_arguments(installation):
    pid = ended(installation, "echo hello")
    for query in ("?stream=stdfoo", "?tail=-1", "?since=whenever", "?grep=(", "?unknown=1"):
        with pytest.raises(ProblemError) as refused:
            output(installation, pid, query)
        assert refused.value.code == "value_error", query


async def test_error_storage_failed(unprivileged_installation):
    installation = unprivileged_installation
    ended(installation, "echo hello")
    (installation.state / "executions").chmod(0o500)
    try:
        async with installation.agent() as agent:
            assert (await agent.execute("echo", "hello")).code == "storage_error"
    finally:
        (installation.state / "executions").chmod(0o700)


async def test_error_process_not_found(installation):
    ended(installation, "true")
    for method, path in (("GET", "output"), ("DELETE", "output")):
        with pytest.raises(ProblemError) as refused:
            installation.rest(method, f"/api/v1/executions/zzzzzzzz/{path}")
        assert (refused.value.code, refused.value.status) == ("process_not_found", 404)


def sealed(installation, pid):
    """Takes the output files of an ended execution away from their reader."""
    directory = installation.state / "executions" / installation.json("info", pid)["uuid"]
    for path in directory.glob("output.*"):
        os.rename(path, path.with_suffix(path.suffix + ".away"))
        path.mkdir()
    return directory


async def test_error_retrieval_failed(installation):
    pid = ended(installation, "echo hello")
    sealed(installation, pid)
    installation.kill_daemon()
    installation.json("ps", "--all")
    with pytest.raises(ProblemError) as refused:
        output(installation, pid)
    assert refused.value.code == "output_retrieval_error"


async def test_error_clear_failed(installation):
    pid = ended(installation, "echo hello")
    sealed(installation, pid)
    installation.kill_daemon()
    installation.json("ps", "--all")
    with pytest.raises(ProblemError) as refused:
        installation.rest("DELETE", f"/api/v1/executions/{pid}/output")
    assert refused.value.code in ("output_clear_error", "output_retrieval_error")


async def test_error_shutdown_failed(installation):
    ended(installation, "echo hello")
    daemon = installation.daemon()
    installation.remove_state()
    installation.rest("POST", "/api/v1/shutdown")
    assert daemon.gone(10), "it ends even where nothing can be written any more"
    until(lambda: installation.ours() == [], 5, "the end of keeper and shims")


def test_the_documents_route_selects_by_time(installation):
    pid = ended(installation, "echo one; sleep 1; echo two; echo err >&2; sleep 1; echo three")

    def shown(query="", stream="stdout"):
        path = f"/api/process/{pid}/output?with_stderr=true&{query}"
        return installation.rest("GET", path)[stream]

    def texts(query, stream="stdout"):
        return [entry["text"] for entry in shown(query, stream)]

    one, two, three = (datetime.fromisoformat(entry["timestamp"]) for entry in shown())
    early, late = (quote((at + (then - at) / 2).isoformat()) for at, then in ((one, two), (two, three)))
    assert texts(f"since={early}") == ["two", "three"]
    assert texts(f"until={late}") == ["one", "two"]
    assert texts(f"since={early}&until={late}") == ["two"] and texts(f"since={early}&until={late}", "stderr") == ["err"]
    assert texts(f"since={late}", "stderr") == [] == texts(f"until={early}", "stderr")
    assert texts("since=10m") == ["one", "two", "three"] and texts("until=10m") == []
    assert texts(f"until={late}&tail=1") == ["two"] and texts(f"since={early}&grep=thr") == ["three"]
    for name in ("since", "until"):
        with pytest.raises(ProblemError) as refused:
            shown(f"{name}=whenever")
        assert refused.value.status == 422 and name in str(refused.value), refused.value


# Together


async def test_with_the_process_manager(installation):
    async with installation.agent() as agent:
        pid = await agent.start_sh("echo captured; echo as well >&2")
        await agent.ended(pid, installation)
        assert "captured" in await agent.lines(pid)
        assert "as well" in await agent.lines(pid, with_stdout=False, with_stderr=True)
        legacy = installation.rest("GET", f"/api/process/{pid}/output?with_stderr=true")
        assert [entry["text"] for entry in legacy["stdout"]] == ["captured"]
        assert [entry["text"] for entry in legacy["stderr"]] == ["as well"]


def test_the_engine_ends_by_term_too(installation):
    ended(installation, "true")
    daemon = installation.daemon()
    daemon.kill(signal.SIGTERM)
    assert daemon.gone(10)
