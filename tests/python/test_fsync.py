"""With `durability = "fsync"` records are on the disk before they are acted upon. A loss of power cannot be tried here; the
order of system calls can be read."""

import contextlib
import json
import re
import subprocess

import pytest

from harness import procs

pytestmark = pytest.mark.limit(90)

TRACED = "fsync,fdatasync,execve,rename,renameat,renameat2,sendto,sendmsg"
#: The directory of an execution.
DIRECTORY = r"/executions/[0-9a-f-]{36}>"
#: Waits until the test makes a file.
WAIT = "while [ ! -e go ]; do sleep 0.05; done;"
#: One line of strace: the process, the call, its arguments, its result.
CALL = re.compile(r"^(?P<pid>\d+)\s+(?P<name>\w+)\((?P<arguments>.*)\)\s+= (?P<result>-?\d+)", re.MULTILINE)


@contextlib.contextmanager
def traced(installation, log, inject=()):
    """Follows daemon, keeper and shims, and what they start."""
    installation.cli("ps")
    with traced_processes(shims(installation) and installation.ours(), log, inject):
        yield


def shims(installation):
    """The processes of shims."""

    def found():
        return [pid for pid in installation.ours() if procs.comm(pid) == "ostler-shim"]

    return procs.until(found, 20, "a shim")


def shim_of(installation):
    """The shim of the only execution."""
    (directory,) = installation.executions()
    return json.loads((directory / "spec.json").read_text())["boot"]["shim_pid"]


@contextlib.contextmanager
def traced_processes(pids, log, inject=()):
    words = ["strace", "-f", "-y", "-s", "16", "-e", f"trace={TRACED}", "-o", str(log)]
    words += [word for fault in inject for word in ("-e", f"inject={fault}")]
    words += [word for pid in pids for word in ("-p", str(pid))]
    tracer = subprocess.Popen(words, stderr=subprocess.PIPE)
    try:
        for _ in pids:
            assert b"attached" in tracer.stderr.readline()
        yield
    finally:
        tracer.terminate()
        tracer.wait(10)
        tracer.stderr.close()


def calls(log):
    """The calls in their order, those that were interrupted by another's line joined."""
    whole, unfinished = [], {}
    for line in log.read_text().splitlines():
        pid = line.split(maxsplit=1)[0]
        if line.endswith("<unfinished ...>"):
            unfinished[pid] = line.removesuffix(" <unfinished ...>")
        elif "resumed>" in line:
            whole.append(unfinished.pop(pid, pid + " lost(") + line.split("resumed>", 1)[1])
        else:
            whole.append(line)
    return [match for line in whole if (match := CALL.match(line))]


def index_of(found, name, path):
    """The index of the first successful call of this name whose arguments match the expression."""
    for index, call in enumerate(found):
        if call["name"] == name and call["result"] == "0" and re.search(path, call["arguments"]):
            return index
    listed = "\n".join(f"{call['name']} {call['arguments']}" for call in found)
    raise AssertionError(f"no {name} of {path} in\n{listed}")


def durable(installation, value="fsync"):
    config = installation.dir / "config" / "ostler"
    config.mkdir(parents=True, exist_ok=True)
    (config / "config.toml").write_text(f'durability = "{value}"\n')
    installation.give(config)


def test_a_record_is_on_the_disk_before_what_it_is_about(each_installation, tmp_path):
    durable(each_installation)
    log = tmp_path / "trace"
    with traced(each_installation, log):
        run = each_installation.cli("run", "--", "/bin/echo", "printed")
    assert run.stdout == b"printed\n"
    found = calls(log)
    start = index_of(found, "execve", r'"/bin/echo"')
    directory = index_of(found, "fsync", DIRECTORY)
    request = index_of(found, "fdatasync", r"/ledger/0*\d+\.seg")
    spec = index_of(found, "fdatasync", r"/spec\.json>")
    parent = index_of(found, "fsync", r"/executions>")
    assert request < spec < directory < parent < start
    after = found[start:]
    output = index_of(after, "fdatasync", r"/output\.0*0\.seg>")
    index = index_of(after, "fdatasync", r"/output\.0*0\.idx>")
    exit_record = index_of(after, "fsync", r"/exit\.tmp>")
    name = index_of(after, "renameat", r'"exit\.tmp".*"exit"')
    assert max(output, index) < exit_record < name
    synced = name + index_of(after[name:], "fsync", DIRECTORY)
    shim = after[synced]["pid"]
    reported = [i for i, call in enumerate(after) if call["pid"] == shim and call["name"].startswith("send")]
    assert not [i for i in reported if exit_record < i < synced], "the end was reported before its record was on the disk"
    index_of(after, "fdatasync", r"/events\.jsonl>")
    index_of(after, "fdatasync", r"/ledger/0*\d+\.seg")


def test_nothing_waits_for_the_disk_by_default(installation, tmp_path):
    log = tmp_path / "trace"
    with traced(installation, log):
        installation.cli("run", "--", "/bin/echo", "printed")
    synced = [call["arguments"] for call in calls(log) if "sync" in call["name"]]
    records = [path for path in synced if re.search(r"/executions|/ledger/", path)]
    assert records == []


@pytest.mark.parametrize("call", ["fsync", "fdatasync"])
def test_where_the_disk_refuses_nothing_runs(installation, tmp_path, call):
    durable(installation)
    with traced(installation, tmp_path / "trace", [f"{call}:error=EIO"]):
        run = installation.cli("run", "--", "touch", "made", check=False)
    assert run.returncode != 0 and b"Input/output error" in run.stderr, run.stderr
    assert not (installation.work / "made").exists()
    # The daemon goes on, and the disk accepts again.
    installation.cli("run", "--", "touch", "made")
    assert (installation.work / "made").exists()


def test_a_full_disk_at_the_end_loses_no_end(installation, tmp_path):
    durable(installation)
    script = f"{WAIT} echo printed; exit 7"
    pid = installation.cli("run", "-d", "--", "sh", "-c", script).stdout.decode().strip()
    with traced(installation, tmp_path / "trace", ["fsync,fdatasync:error=ENOSPC:when=1..4"]):
        (installation.work / "go").touch()
        waited = installation.cli("wait", pid, check=False)
    assert waited.returncode == 7
    assert installation.cli("logs", pid).stdout.endswith(b" printed\n")


def test_a_shim_of_an_earlier_daemon_is_not_used_again(installation, tmp_path):
    """Its records survive what the setting of that daemon said."""
    pid = installation.cli("run", "-d", "--", "sh", "-c", f"{WAIT} exit 7").stdout.decode().strip()
    installation.kill_daemon()
    old = shim_of(installation)
    durable(installation)
    installation.cli("ps")
    (installation.work / "go").touch()
    assert installation.cli("wait", pid, check=False).returncode == 7
    procs.until(lambda: not procs.alive(old), 20, "the end of the old shim")
    log = tmp_path / "trace"
    with traced(installation, log):
        installation.cli("run", "--", "/bin/echo", "printed")
    found = calls(log)
    assert index_of(found, "fdatasync", r"/spec\.json>") < index_of(found, "execve", r'"/bin/echo"')


@pytest.mark.parametrize("call", ["fsync", "fdatasync"])
def test_without_a_daemon_a_refused_sync_loses_no_end(installation, tmp_path, call):
    durable(installation)
    pid = installation.cli("run", "-d", "--", "sh", "-c", f"{WAIT} echo printed; exit 7").stdout.decode().strip()
    installation.kill_daemon()
    shim = shim_of(installation)
    with traced_processes([shim], tmp_path / "trace", [f"{call}:error=EIO"]):
        (installation.work / "go").touch()
        procs.until(lambda: not procs.alive(shim), 20, "the end of the shim")
    assert installation.cli("wait", pid, check=False).returncode == 7
    assert installation.cli("logs", pid).stdout.endswith(b" printed\n")


def test_an_unknown_value_stops_the_start(installation):
    refused = installation.cli("--set", "durability=always", "run", "true", check=False)
    assert refused.returncode != 0
    assert b"page_cache, fsync" in refused.stderr and b"durability" in refused.stderr, refused.stderr


def test_everything_is_there_after_a_kill(installation):
    durable(installation)
    pid = installation.cli("run", "-d", "--", "sh", "-c", f"echo before; {WAIT} echo after").stdout.decode().strip()
    installation.kill_daemon()
    (installation.work / "go").touch()
    installation.cli("wait", pid)
    assert re.search(rb" before\n.* after\n$", installation.cli("logs", pid).stdout)
    (directory,) = installation.executions()
    assert (directory / "exit").exists()
