"""Processes that no signal ends: a stop names them, at every interface."""

import contextlib
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote

import pytest

from harness import until
from harness.disk import ext4

pytestmark = [pytest.mark.anyio, pytest.mark.root]

#: Writes until the file system is frozen, and then waits in the kernel, where SIGKILL does not reach it.
WRITER = "import sys\nwith open(sys.argv[1], 'wb', buffering=0) as file:\n while True: file.write(b'x'); file.seek(0)"


@pytest.fixture
def freezable(tmp_path):
    with ext4(tmp_path / "disk", 16, 64) as disk:
        yield disk.path


@contextlib.contextmanager
def frozen(disk):
    """Until it is thawed, what writes there cannot be killed."""
    subprocess.run(["fsfreeze", "--freeze", str(disk)], check=True)
    try:
        yield
    finally:
        subprocess.run(["fsfreeze", "--unfreeze", str(disk)], check=True)


def state(pid):
    """The state of a process as in ps(1); none where it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return None


async def test_a_stop_names_what_survives_it(installation, freezable):
    def start(name):
        project = quote(str(freezable), safe="")
        body = {"command": "python3", "args": ["-c", WRITER, str(freezable / name)], "interactive": False}
        id = installation.rest("POST", f"/api/v1/projects/{project}/execute", body)["task_id"]
        return id, installation.rest("GET", f"/api/v1/executions/{id}")["os_pid"]

    def posted(path, body=None):
        return pool.submit(installation.rest, "POST", path, body)

    async with installation.agent(args=["--tools", "core,command"], session="s") as agent:
        by_route, by_process, by_task, by_verb = (start(name) for name in "abcd")
        by_tool = await agent.start("python3", "-c", WRITER, str(freezable / "e"))
        by_tool = by_tool, installation.rest("GET", f"/api/v1/executions/{by_tool}")["os_pid"]
        everyone = [by_route, by_process, by_task, by_verb, by_tool]
        pids = [pid for _, pid in everyone]
        until(lambda: all((freezable / name).exists() for name in "abcde"), 20, "every file")
        with frozen(freezable), ThreadPoolExecutor() as pool:
            until(lambda: all(state(pid) == "D" for pid in pids), 20, "writers that wait in the kernel")
            verb = pool.submit(installation.cli, "stop", "--force", by_verb[0], check=False)
            answers = [posted(f"/api/v1/executions/{by_route[0]}/stop", {"force": True}),
                       posted(f"/api/process/{by_process[0]}/stop", {"force": True}),
                       posted(f"/api/v1/tasks/{by_task[0]}/cancel")]
            stopped = await agent.must("command_ps_stop", pid=by_tool[0], force=True)
            assert stopped.value("survivors") == [by_tool[1]], stopped
            again = (await agent.must("process_control", action="stop", ids=[by_tool[0]])).value("results")
            assert again[0]["survivors"] == [by_tool[1]], again
            answers = [answer.result()["survivors"] for answer in answers]
            assert answers == [[pid] for _, pid in (by_route, by_process, by_task)]
            verb = verb.result()
            assert verb.returncode == 71 and b"survived" in verb.stderr and str(by_verb[1]).encode() in verb.stderr, verb
            assert installation.json("info", by_verb[0])["survivors"] == [by_verb[1]]
            assert all(state(pid) == "D" for pid in pids)
        until(lambda: not any(state(pid) for pid in pids), 20, "their end, once the file system goes on")
