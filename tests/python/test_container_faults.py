"""What becomes of commands in containers when the engine, a container or the daemon fails; and that nothing is left."""

import os
import signal
import threading
import time

import pytest

from harness import disk, named, procs, until
from harness.backend import none_left
from harness.docker import BUSYBOX, DEBIAN, DockerEngine
from harness.installation import ProblemError
from harness.tiers import each_once
from test_backend_suite import mark

pytestmark = [pytest.mark.root, pytest.mark.limit(120)]

#: A command that ticks until it is let go, and its exit code.
TICKS = "i=0; until [ -e go ]; do i=$((i+1)); echo tick $i; sleep 0.05; done; echo over; exit 6"


@pytest.fixture
def own_engine(request):
    """An engine for one test, which may harm it; its options are the parameter. It outlives the installations that use
    it: their end removes their containers from it."""
    with DockerEngine(images=(BUSYBOX,), **getattr(request, "param", {})) as engine:
        yield engine


@pytest.fixture
def own_backend(own_engine, make_container_backend):
    return make_container_backend(own_engine)


def with_engine(**options):
    """The test's engine has these options."""
    return pytest.mark.parametrize("own_engine", [options], indirect=True, ids=[""])


def refusal(backend, seconds, **fields):
    """The error of a start that is refused, or the message of one that never ran; within a time."""
    begin = time.monotonic()
    try:
        result = backend.run("echo ran", seconds=seconds, **fields)
    except ProblemError as error:
        message = str(error)
    else:
        assert result.cause["kind"] == "spawn_failed" and result.out == b"", result
        message = result.info["error_message"]
    assert time.monotonic() - begin < seconds, message
    return message


def lets_go(backend, execution):
    (backend.work / "go").touch()
    result = backend.ended(execution)
    assert result.code == 6 and result.text.endswith("over\n"), result
    ticks = result.text.splitlines()[:-1]
    assert ticks == [f"tick {n}" for n in range(1, len(ticks) + 1)], "nothing is lost"
    (backend.work / "go").unlink()


def works(backend):
    """Whether a start succeeds."""
    try:
        return backend.run("echo fine").out == b"fine\n"
    except (ProblemError, AssertionError):
        return False


# ---- the engine


def test_without_an_engine_a_start_is_refused_and_others_work(own_engine, make_container_backend):
    backend = make_container_backend(own_engine)
    socket = own_engine.socket
    own_engine.stop()
    message = refusal(backend, 15)
    assert "container engine" in message and str(socket) in message, message
    local = backend.rest("POST", "executions", {"command": {"shell": {"shell": "sh", "script": "echo local"}}, "cwd": str(backend.work)})
    assert backend.ended(local["id"]).out == b"local\n"
    assert "container" in backend.installation.cli("doctor", check=False).stdout.decode()
    own_engine.start()
    assert works(backend)


def test_a_missing_image_is_named_and_not_pulled(own_backend):
    begin = time.monotonic()
    message = refusal(own_backend, 10, container={"image": "no/such-image:1"})
    assert "no/such-image:1" in message and "image" in message, message
    assert time.monotonic() - begin < 5 and own_backend.containers() == []
    images = own_backend.engine.api("GET", "/images/json")
    assert [image["RepoTags"] for image in images] == [[f"{BUSYBOX}:latest"]]


def test_a_missing_network_is_named(own_engine, make_container_backend):
    backend = make_container_backend(own_engine, settings='networks = ["bridge", "none", "build"]')
    message = refusal(backend, 10, container={"network": "build"})
    assert "build" in message and "network" in message, message
    until(lambda: backend.containers() == [], 10, "the removal of what was made")
    own_engine.api("POST", "/networks/create", {"Name": "build"})
    assert backend.run("echo fine", container={"network": "build"}).out == b"fine\n"


def test_an_orderly_stop_of_the_engine_ends_its_containers(own_backend):
    one = mark()
    execution = own_backend.start(f"echo up; sleep {one}")
    own_backend.shows(execution, "up")
    own_backend.engine.stop()
    result = own_backend.ended(execution, 30)
    assert result.info["status"] != "completed" and result.code != 0, result
    assert "container" in str([result.info["cause"], result.info["error_message"], result.info["degraded"]]), result
    none_left(f"sleep {one}")
    own_backend.engine.start()
    assert works(own_backend)


def test_a_killed_engine_leaves_commands_running(own_backend):
    execution = own_backend.start(TICKS)
    own_backend.shows(execution, "tick 3")
    own_backend.engine.kill()
    # It is controlled without the engine: paused, resumed, and another daemon finds it.
    own_backend.rest("POST", f"executions/{execution}/pause")
    own_backend.rest("POST", f"executions/{execution}/resume")
    own_backend.next_daemon()
    assert own_backend.info(execution)["status"] == "running"
    lets_go(own_backend, execution)
    assert "container engine" in refusal(own_backend, 15)
    own_backend.engine.start()
    until(lambda: works(own_backend), 30, "a start with the engine that is back")


def test_a_command_is_ended_while_the_engine_is_away(own_backend):
    one = mark()
    execution = own_backend.start(f"setsid sleep {one} & echo up; sleep {one}")
    own_backend.shows(execution, "up")
    own_backend.engine.kill()
    own_backend.stop(execution, force=True)
    assert own_backend.ended(execution).cause["kind"] == "stopped"
    none_left(f"sleep {one}")
    own_backend.engine.start()


@with_engine(live_restore=True)
def test_a_restart_that_restores_containers_is_not_noticed(own_backend):
    execution = own_backend.start(TICKS)
    own_backend.shows(execution, "tick 3")
    container = own_backend.the_container()["Id"]
    own_backend.engine.restart()
    lets_go(own_backend, execution)
    assert works(own_backend) and own_backend.the_container()["Id"] == container, "it is used again"


def test_an_engine_that_hangs_is_waited_for_for_a_while_only(own_backend):
    execution = own_backend.start(TICKS)
    own_backend.shows(execution, "tick 3")
    with own_backend.engine.paused():
        # A start that needs nothing of the engine may succeed; one that needs a container cannot.
        message = refusal(own_backend, 60, container={"network": "none"})
        assert "container engine" in message and "answer" in message, message
        local = own_backend.rest("POST", "executions", {"command": {"shell": {"shell": "sh", "script": "echo local"}}, "cwd": str(own_backend.work)})
        assert own_backend.ended(local["id"], 5).out == b"local\n", "others do not wait for it"
        lets_go(own_backend, execution)
    until(lambda: works(own_backend), 30, "a start with the engine that is back")


def test_a_daemon_starts_while_the_engine_hangs(own_backend):
    execution = own_backend.start(TICKS)
    own_backend.shows(execution, "tick 3")
    with own_backend.engine.paused():
        begin = time.monotonic()
        own_backend.next_daemon()
        assert own_backend.info(execution)["status"] == "running"
        assert time.monotonic() - begin < 20, "the daemon does not wait for the engine"
        lets_go(own_backend, execution)
    until(lambda: works(own_backend), 30, "a start with the engine that is back")


@with_engine(mebibytes=48)
def test_a_full_disk_of_the_engine_is_told_as_that(own_backend):
    execution = own_backend.start(TICKS)
    own_backend.shows(execution, "tick 3")
    filler = disk.fill(own_backend.engine.data)
    message = refusal(own_backend, 30, container={"network": "none"})
    assert "space" in message, message
    lets_go(own_backend, execution)
    filler.unlink()
    until(lambda: works(own_backend), 20, "a start with the space that is back")
    assert own_backend.run("echo fine", container={"network": "none"}).out == b"fine\n"
    assert len(own_backend.containers()) == 2, "what failed is not left"


# ---- containers


@pytest.mark.parametrize("how", ["kill", "rm", "stop", "restart"])
def test_a_container_that_somebody_ends_takes_its_commands_with_it(own_backend, how):
    one = mark()
    ids = [own_backend.start(f"echo up; sleep {one}") for _ in range(2)]
    for execution in ids:
        own_backend.shows(execution, "up")
    container = own_backend.the_container()["Id"]
    words = {"kill": ["kill"], "rm": ["rm", "-f"], "stop": ["stop", "-t", "1"], "restart": ["restart", "-t", "1"]}[how]
    # What is restarted may be removed by us in between.
    own_backend.engine.cli(*words, container, check=how != "restart")
    for execution in ids:
        result = own_backend.ended(execution)
        assert result.info["status"] not in ("completed", "running") and result.code != 0, result
        assert "container" in str([result.cause, result.info["error_message"], result.info["degraded"]]), result
    none_left(f"sleep {one}")
    assert works(own_backend), "the next start gets another one, or that which is back"
    until(lambda: len(own_backend.containers()) == 1, 10, "the removal of the dead one")


def test_an_idle_container_that_somebody_removed_is_replaced(own_backend):
    assert works(own_backend)
    first = own_backend.the_container()["Id"]
    own_backend.engine.cli("rm", "-f", first)
    assert works(own_backend) and own_backend.the_container()["Id"] != first


def test_a_paused_container_stands_still_and_goes_on(own_backend):
    execution = own_backend.start(TICKS)
    own_backend.shows(execution, "tick 3")
    container = own_backend.the_container()["Id"]
    own_backend.engine.cli("pause", container)
    # A start is not held up by it for long: refused with a reason, or run in another one.
    begin = time.monotonic()
    try:
        assert own_backend.run("echo fine", seconds=60).out in (b"fine\n", b"")
    except ProblemError as error:
        assert "container" in str(error), error
    assert time.monotonic() - begin < 45
    assert own_backend.info(execution)["status"] == "running"
    own_backend.engine.cli("unpause", container)
    lets_go(own_backend, execution)


def test_a_stop_ends_what_is_in_a_paused_container(own_backend):
    one = mark()
    execution = own_backend.start(f"echo up; sleep {one}")
    own_backend.shows(execution, "up")
    container = own_backend.the_container()["Id"]
    own_backend.engine.cli("pause", container)
    own_backend.stop(execution, force=True)
    # A container whose processes do not end is removed.
    own_backend.engine.cli("unpause", container, check=False)
    assert own_backend.ended(execution).cause["kind"] == "stopped"
    none_left(f"sleep {one}")


def test_a_killed_shim_takes_its_command_with_it(container_backend):
    one = mark()
    execution = container_backend.start(f"setsid sleep {one} & echo up; sleep {one}")
    other = container_backend.start(TICKS)
    for id_, word in ((execution, "up"), (other, "tick 3")):
        container_backend.shows(id_, word)
    # The shims of both are children of the daemon or of nobody: it is found by its execution's directory.
    uuid = container_backend.info(execution)["uuid"]
    shims = [pid for pid in container_backend.installation.ours()
             if procs.comm(pid) == "ostler-shim" and holds(pid, uuid)]
    assert len(shims) == 1, shims
    os.kill(shims[0], signal.SIGKILL)
    none_left(f"sleep {one}", 10)
    result = container_backend.ended(execution)
    assert result.cause["kind"] == "lost", result
    lets_go(container_backend, other)


def holds(pid, uuid):
    """Whether a process has a file of this execution open."""
    files = f"/proc/{pid}/fd"
    links = [os.readlink(f"{files}/{fd}") for fd in os.listdir(files)]
    return any(uuid in link for link in links) or uuid.encode() in procs.read(pid, "cmdline")


#: Takes every process that the container may have.
FILL = """
import os, time
try:
    while os.fork():
        pass
except OSError:
    print('full', flush=True)
time.sleep(300)
"""


def test_a_container_full_of_processes_says_so_and_is_stopped(make_container_backend, docker_engine):
    backend = make_container_backend(docker_engine, DEBIAN)
    limits = {"pids": 16}
    execution = backend.start(["python3", "-c", FILL], limits=limits)
    backend.shows(execution, "full")
    container = backend.the_container()["Id"]
    assert "as many as its limit allows" in refusal(backend, 10, limits=limits)
    backend.stop(execution)
    assert backend.ended(execution).cause["kind"] == "stopped"
    assert backend.run("echo fine", limits=limits).out == b"fine\n"
    assert backend.the_container()["Id"] == container


@pytest.mark.parametrize("script", ["kill -KILL $PPID", "kill -KILL -1"])
def test_a_command_that_kills_its_runner_at_once_is_lost_and_not_one_that_never_ran(container_backend, script):
    """Whoever is told that it never ran may run it again."""
    for _ in range(5):
        result = container_backend.run(f"echo ran >> log; {script}; sleep 300")
        assert result.cause == {"kind": "lost", "reason": "container_gone"}, result
    assert (container_backend.work / "log").read_text() == "ran\n" * 5
    assert works(container_backend)


def test_a_command_that_stops_its_runner_is_ended(container_backend):
    one = mark()
    execution = container_backend.start(f"kill -STOP $PPID; echo ran >> log; sleep {one}")
    container_backend.stop(execution, force=True)
    assert container_backend.ended(execution).cause["kind"] == "stopped"
    none_left(f"sleep {one}")
    assert (container_backend.work / "log").read_text() == "ran\n" and works(container_backend)


DAMAGING_SCRIPTS = [
    "rm -f init.sock", "mv init.sock other", "rm -rf *; mkdir init.sock", "chmod 0 init.sock .", "ln -sf /etc/passwd init.sock",
    "dd if=/dev/zero of=fill bs=1M count=8", "dd if=/dev/zero of=/tmp/fill bs=1M count=600",
    "dd if=/dev/zero of=/run/secrets/fill bs=1M count=8", "echo x > /proc/1/fd/1; echo x > /proc/1/fd/2",
]


@pytest.mark.parametrize(("script", "user"), each_once(DAMAGING_SCRIPTS, ["user", "root"]))
def test_no_command_spoils_the_next_start(make_container_backend, docker_engine, script, user):
    """What is at /run/ostler is the user's own where the container's user is root as the daemon's is."""
    backend = make_container_backend(docker_engine, settings='users = ["root"]')
    backend.work.chmod(0o777)
    options = {"container": {"user": "root"}} if user == "root" else {}
    backend.run(f"cd /run/ostler; {script}", **options)
    result = backend.run("echo fine", **options)
    assert result.out == b"fine\n", result


# ---- daemons


def test_warm_containers_are_used_by_the_next_daemon(container_backend):
    assert works(container_backend)
    container = container_backend.the_container()["Id"]
    for _ in range(2):
        container_backend.next_daemon()
        assert works(container_backend) and container_backend.the_container()["Id"] == container


def test_the_end_of_the_daemon_removes_what_is_idle(container_backend):
    assert works(container_backend)
    assert len(container_backend.containers()) == 1
    container_backend.installation.shut_down()
    assert container_backend.containers() == []
    assert not list(container_backend.installation.state.glob("container/*/init.sock"))


def test_the_end_of_the_daemon_keeps_what_runs(container_backend):
    execution = container_backend.start(TICKS)
    container_backend.shows(execution, "tick 3")
    container_backend.installation.shut_down(0)
    until(lambda: not container_backend.installation.socket.exists(), 10, "the end of the daemon")
    assert len(container_backend.containers()) == 1
    container_backend.installation.cli("ps")
    lets_go(container_backend, execution)


def test_orphans_are_removed_by_the_next_daemon(container_backend):
    """What died while no daemon was there, and what nobody made a use of."""
    engine = container_backend.engine
    assert works(container_backend)
    dead = container_backend.the_container()
    container_backend.installation.kill_daemon()
    engine.cli("kill", dead["Id"])
    labels = dead["Config"]["Labels"]
    words = [word for name, value in labels.items() for word in ("--label", f"{name}={value}")]
    # One of ours that was never started, and three of others: one of them has our labels, as a container of an image has
    # that somebody made of ours.
    engine.cli("create", "--name", dead["Name"].strip("/") + "0", *words, BUSYBOX, "true")
    others = [engine.cli("run", "-d", *label, BUSYBOX, "sleep", "1000").strip()
              for label in ([], ["--label", "dev.ostler.state=0:0"], words)]
    container_backend.installation.cli("ps")
    until(lambda: {it["Id"] for it in engine.containers()} == set(others), 20, "the removal of our orphans alone")
    assert works(container_backend)
    for other in others:
        assert engine.inspect(other)["State"]["Running"]
        engine.cli("rm", "-f", other)


def test_two_daemons_share_an_engine(make_container_backend, docker_engine):
    first, second = (make_container_backend(docker_engine) for _ in range(2))
    running = first.start(TICKS)
    first.shows(running, "tick 3")
    mine = first.the_container()["Id"]
    assert works(second)
    assert len(docker_engine.containers()) == 2
    # Neither a killed daemon nor the end of one touches what is the other's.
    second.next_daemon()
    assert works(second) and len(docker_engine.containers()) == 2
    second.installation.shut_down()
    assert [it["Id"] for it in docker_engine.containers()] == [mine]
    second.installation.cli("ps")
    assert first.info(running)["status"] == "running"
    lets_go(first, running)


@pytest.mark.full
def test_no_kill_of_the_daemon_leaves_a_container_or_a_process(container_backend):
    """At any moment of a start."""
    one = mark()
    for round_ in range(20):
        daemon = container_backend.installation.daemon()
        killer = threading.Timer(round_ * 0.03, daemon.kill)
        killer.start()
        try:
            container_backend.start(f"sleep {one}", container={"reuse": round_ % 2 == 0, "network": "none"})
        except (ProblemError, OSError, ConnectionError):
            pass
        killer.join()
        daemon.close()
        container_backend.installation.cli("ps")
    container_backend.installation.end_commands()
    none_left(f"sleep {one}", 20)
    container_backend.installation.shut_down()
    assert container_backend.containers() == []
    assert named("ostler-init") == []
