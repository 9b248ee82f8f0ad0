"""Every option of a container, seen from inside of it, and in the engine's description of it."""

import base64
import os
import re
import subprocess
import time

import pytest

from harness import until
from harness.backend import INSIDE
from harness.docker import BUSYBOX, DEBIAN, UID, USER
from harness.installation import ProblemError

pytestmark = pytest.mark.root

MIB = 1 << 20
SECOND = 10**9
SECRET = "s3cr3t-v4lu3-0f-a-c0nt4iner"
#: What requests may ask for in these tests.
PERMITTED = f"""
users = ["root", "0:0", "{USER}", "{UID}:5"]
capabilities = ["CHOWN", "NET_BIND_SERVICE"]
allow_writable_root = true
allow_new_privileges = true
"""
#: A limit of the own control group, in either version's files.
LIMIT = """limit() { cat /sys/fs/cgroup/$1 2>/dev/null || cat /sys/fs/cgroup/$2; }
"""


@pytest.fixture
def permitted(make_container_backend, docker_engine):
    """Commands whose requests may ask for more than by default."""
    return make_container_backend(docker_engine, settings=PERMITTED)


def shown(backend, script, **fields):
    """The lines that a script prints in a container."""
    result = backend.run(script, **fields)
    assert result.code == 0, (result, result.err)
    return result.out.decode().splitlines()


def status(backend, **fields):
    """The fields of proc(5)'s status of a command."""
    lines = shown(backend, "cat /proc/self/status", **fields)
    return dict(line.split(":\t", 1) for line in lines if ":\t" in line)


# ---- defaults


def test_a_container_has_the_defaults(container_backend):
    script = LIMIT + """
        limit memory/memory.limit_in_bytes memory.max
        limit cpu/cpu.cfs_quota_us cpu.max
        id -un; id -u; id -g; pwd; hostname
        touch /etc/written 2>&1 || echo root is read-only
        touch "$HOME/written" 2>&1 || echo home is read-only
        touch /tmp/written /workspace/written && echo the rest is writable
    """
    seen = shown(container_backend, script)
    assert seen[0] == str(512 * MIB), seen
    assert seen[1].split() in (["50000"], ["50000", "100000"]), seen
    assert seen[2:6] == [USER, str(UID), str(UID), INSIDE], seen
    assert seen[6] != os.uname().nodename and re.fullmatch(r"[\w-]+", seen[6]), seen
    assert [line for line in seen[7:] if "Read-only" not in line] == [
        "root is read-only", "home is read-only", "the rest is writable"], seen
    seen = status(container_backend)
    assert {name: int(seen[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == dict.fromkeys(
        ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"), 0), seen
    assert (seen["NoNewPrivs"], seen["Seccomp"]) == ("1", "2"), seen
    described = container_backend.the_container()
    host, config = described["HostConfig"], described["Config"]
    assert host["ReadonlyRootfs"] and not host["Privileged"] and host["CapDrop"] == ["ALL"] and not host["CapAdd"], host
    assert "no-new-privileges" in str(host["SecurityOpt"]) and host["NetworkMode"] in ("bridge", "default"), host
    assert host["Memory"] == host["MemorySwap"] == 512 * MIB and host["NanoCpus"] == 500_000_000, host
    assert config["Image"] == BUSYBOX and config["WorkingDir"] == INSIDE, config
    assert not host["Devices"] and host["PidMode"] == "" and host["IpcMode"] in ("private", "shareable", "") and not host["Links"], host


def test_the_settings_are_the_defaults_of_requests(make_container_backend, docker_engine, tmp_path):
    (tmp_path / "file").write_text("of the volume\n")
    tmp_path.chmod(0o755)
    settings = f"""
        network = "none"
        dns = ["192.0.2.53"]
        user = "{UID}:5"
        memory = "96M"
        cpus = "0.25"
        mounts = ["{tmp_path}:/data"]
        read_only_root = false
        stop_grace_ms = 700
    """
    backend = make_container_backend(docker_engine, settings=settings)
    script = LIMIT + """
        limit memory/memory.limit_in_bytes memory.max; limit cpu/cpu.cfs_quota_us cpu.max
        id -u; id -g; ls /sys/class/net; cat /data/file; touch "$HOME/written" && echo writable
    """
    seen = shown(backend, script)
    assert seen[0] == str(96 * MIB) and seen[1].split()[0] == "25000", seen
    assert seen[2:] == [str(UID), "5", "lo", "of the volume", "writable"], seen


# ---- limits


def test_limits_of_the_request_are_those_of_the_container(container_backend):
    script = LIMIT + "limit memory/memory.limit_in_bytes memory.max; limit cpu/cpu.cfs_quota_us cpu.max; limit pids/pids.max pids.max; ulimit -n"
    limits = {"memory_bytes": 80 * MIB, "cpu_millis": 300, "pids": 32, "open_files": 200}
    seen = shown(container_backend, script, limits=limits)
    assert seen[0] == str(80 * MIB) and seen[1].split()[0] == "30000", seen
    assert seen[2:] == ["32", "200"], seen


def test_the_limit_on_processes_is_in_force(container_backend):
    script = "n=0; while [ $n -lt 60 ]; do sleep 100 & n=$((n+1)); done; echo all of them"
    result = container_backend.run(script, limits={"pids": 24})
    assert b"fork" in result.err and result.code != 0, result
    assert "pids" in result.info["isolation"]["limits_hit"], result


def test_the_limit_on_processor_time_is_in_force(container_backend):
    execution = container_backend.start("while :; do :; done & while :; do :; done", limits={"cpu_millis": 200})
    begin = time.monotonic()
    until(lambda: time.monotonic() > begin + 2, 5)
    used = container_backend.rest("GET", f"executions/{execution}/resources")
    # Two loops would take two processors.
    assert 0.05 < used["cpu_seconds"] < 0.2 * (time.monotonic() - begin) + 0.4, used
    container_backend.stop(execution, force=True)


def test_the_limit_on_the_disk_is_in_force_and_says_how(container_backend):
    script = "n=0; while [ $n -lt 300 ]; do dd if=/dev/zero of=filler-$n bs=1048576 count=1 2>/dev/null; n=$((n+1)); sleep 0.02; done; echo all of it"
    result = container_backend.run(script, limits={"disk_bytes": 16 * MIB})
    assert b"all of it" not in result.out and "disk" in result.info["isolation"]["limits_hit"], result
    # The storage driver of this engine has no limit (its file system has no project quotas): the growth is counted.
    assert result.info["isolation"]["container"]["disk"] == "accounting", result.info["isolation"]


@pytest.mark.parametrize("leader", ["killed", "lives on"])
def test_out_of_memory_is_told_apart(make_container_backend, docker_engine, leader):
    """Whatever the exit code is: a child may be killed while its shell lives on."""
    backend = make_container_backend(docker_engine, DEBIAN)
    hog = "python3 -c 'held = bytearray(200 << 20)'"
    result = backend.run(f"exec {hog}" if leader == "killed" else f"{hog}; echo \"child $?\"; exit 0",
                         limits={"memory_bytes": 64 * MIB})
    assert "memory" in result.info["isolation"]["limits_hit"], result
    if leader == "lives on":
        assert result.out == b"child 137\n", result
    else:
        assert result.info["signal"] == "SIGKILL" and result.cause == {"kind": "out_of_memory"}, result
    # What ran out before does not count for the next one.
    after = backend.run("true", limits={"memory_bytes": 64 * MIB})
    assert after.code == 0 and after.cause == {"kind": "exited"}, after
    assert "memory" not in after.info["isolation"].get("limits_hit", []), after


# ---- network


def test_the_network_is_none_or_the_bridge(container_backend):
    assert shown(container_backend, "ls /sys/class/net", container={"network": "none"}) == ["lo"]
    seen = shown(container_backend, "ls /sys/class/net; ip -o -4 addr show eth0; ip route", container={"network": "bridge"})
    assert seen[:2] == ["eth0", "lo"] and "inet 172." in seen[2] and "default via" in seen[3], seen


def test_one_container_reaches_another_over_the_bridge(make_container_backend, docker_engine):
    backend = make_container_backend(docker_engine, DEBIAN)
    server = backend.start("hostname -I; exec python3 -m http.server 8000", container={"reuse": False})
    backend.shows(server, r"172\.")
    address = backend.streams(server)["stdout"].decode().split()[0]
    fetch = f"import urllib.request as u; print(u.urlopen('http://{address}:8000/', timeout=2).status)"
    until(lambda: backend.run(["python3", "-c", fetch]).out == b"200\n", 20, "an answer")
    refused = backend.run(["python3", "-c", fetch], container={"network": "none"})
    assert refused.code != 0 and b"unreachable" in refused.err, refused
    backend.stop(server, force=True)


def test_name_servers_are_those_of_the_request(container_backend):
    seen = shown(container_backend, "grep nameserver /etc/resolv.conf", container={"dns": ["192.0.2.1", "192.0.2.2"]})
    assert seen == ["nameserver 192.0.2.1", "nameserver 192.0.2.2"]


def test_a_proxy_is_in_the_variables(container_backend):
    seen = shown(container_backend, "env | grep -i proxy | sort", container={"proxy": "http://192.0.2.9:3128"})
    found = dict(line.split("=", 1) for line in seen)
    assert {found[name] for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY")} == {"http://192.0.2.9:3128"}, seen
    assert "127.0.0.1" in found["no_proxy"], seen


# ---- privileges


def test_the_root_may_be_writable(permitted):
    assert shown(permitted, "touch ~/written && echo written", container={"read_only_root": False}) == ["written"]


def test_new_privileges_may_be_allowed(permitted):
    assert status(permitted, container={"no_new_privileges": False})["NoNewPrivs"] == "0"


def test_the_user_is_that_of_the_request(permitted):
    # Root without capabilities enters no directory of others.
    permitted.work.chmod(0o777)
    assert shown(permitted, "id -u; id -g", container={"user": f"{UID}:5"}) == [str(UID), "5"]
    assert shown(permitted, "id -un; id -u", container={"user": USER}) == [USER, str(UID)]
    seen = status(permitted, container={"user": "0:0"})
    assert seen["Uid"].split() == ["0"] * 4 and int(seen["CapEff"], 16) == 0, seen


def test_capabilities_are_those_of_the_request(permitted):
    chown, bind = 1 << 0, 1 << 10
    permitted.work.chmod(0o777)
    seen = status(permitted, container={"user": "0:0", "cap_add": ["CHOWN", "NET_BIND_SERVICE"]})
    assert int(seen["CapEff"], 16) == int(seen["CapBnd"], 16) == chown | bind, seen
    seen = status(permitted, container={"cap_add": ["chown"]})
    assert int(seen["CapBnd"], 16) == chown, seen
    assert permitted.run("chown 5 /workspace/file", container={"user": "0:0"}).code != 0
    (permitted.work / "file").touch()
    assert permitted.run("chown 5 /workspace/file", container={"user": "0:0", "cap_add": ["CHOWN"]}).code == 0
    assert (permitted.work / "file").stat().st_uid == 5


# ---- files


def test_the_workspace_is_the_hosts(container_backend):
    (container_backend.work / "from-host").write_text("hello\n")
    seen = shown(container_backend, "cat from-host; echo answer > from-container; stat -c %u:%g from-container; pwd")
    assert seen == ["hello", f"{UID}:{UID}", INSIDE]
    made = container_backend.work / "from-container"
    assert made.read_text() == "answer\n" and made.stat().st_uid == UID


def test_a_directory_of_the_workspace_is_the_working_directory(container_backend):
    inner = container_backend.work / "inner"
    inner.mkdir()
    (container_backend.work / "above").touch()
    workspace = {"workspace": str(container_backend.work)}
    assert shown(container_backend, "pwd; ls ..", cwd=str(inner), container=workspace) == [f"{INSIDE}/inner", "above", "inner"]
    # Without a workspace, the working directory is it.
    assert shown(container_backend, "pwd; ls -A /workspace", cwd=str(inner)) == [INSIDE]
    with pytest.raises(ProblemError):
        container_backend.run("pwd", container={"workspace": str(inner)})


def test_volumes_are_read_only_unless_requested(make_container_backend, docker_engine, tmp_path):
    backend = make_container_backend(docker_engine, settings=f'volumes = ["{tmp_path}:rw"]')
    for name in ("read", "write"):
        (tmp_path / name).mkdir()
        (tmp_path / name).chmod(0o777)
        (tmp_path / name / "file").write_text(f"{name}\n")
    (tmp_path / "one").write_text("one file\n")
    volumes = [
        {"host": str(tmp_path / "read"), "container": "/read"},
        {"host": str(tmp_path / "write"), "container": "/write", "write": True},
        {"host": str(tmp_path / "one"), "container": "/etc/one"},
    ]
    script = "cat /read/file /write/file /etc/one; touch /read/new 2>/dev/null || echo refused; touch /write/new && echo written"
    seen = shown(backend, script, container={"volumes": volumes})
    assert seen == ["read", "write", "one file", "refused", "written"], seen
    assert (tmp_path / "write/new").exists() and not (tmp_path / "read/new").exists()


# ---- variables and secrets


def test_variables_are_not_in_the_engines_description(container_backend):
    execution = container_backend.start("echo \"<$PRIVATE>\"; sleep 300", env=[["PRIVATE", SECRET]])
    container_backend.shows(execution, "<")
    assert SECRET in container_backend.text(execution), "it is no secret"
    described = container_backend.the_container()
    assert SECRET not in str(described) and "PRIVATE" not in str(described), described
    container_backend.stop(execution, force=True)


@pytest.mark.parametrize("as_files", [False, True])
def test_secrets_are_variables_or_files_and_never_in_the_engines_description(make_container_backend, docker_engine, as_files):
    backend = make_container_backend(docker_engine, settings=f"secret_files = {str(as_files).lower()}")
    script = """
        test -z "$TOKEN" || echo "variable of ${#TOKEN}"
        test ! -e /run/secrets/TOKEN || { echo "file of $(wc -c < /run/secrets/TOKEN)"; stat -c %a:%u /run/secrets/TOKEN; cat /run/secrets/TOKEN; }
        echo "$TOKEN"; touch up; until [ -e go ]; do sleep 0.02; done
    """
    words = backend.installation.argv("run", *backend.words(), "--secret", "TOKEN", "--", "sh", "-c", script)
    with subprocess.Popen(words, cwd=backend.work, env=backend.installation.env(OSTLER_SECRET_TOKEN=SECRET),
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as client:
        until(lambda: (backend.work / "up").exists(), 20, "the command")
        described = backend.the_container()
        encoded = base64.b64encode(SECRET.encode()).decode()
        assert SECRET not in str(described) and encoded not in str(described) and "TOKEN" not in str(described), described
        (backend.work / "go").touch()
        seen = client.communicate(timeout=30)[0].decode()
    assert SECRET not in seen, seen
    if as_files:
        assert f"file of {len(SECRET)}" in seen and "variable" not in seen and re.search(rf"^400:{UID}$", seen, re.M), seen
        # With its command, the file is gone from the container that is kept.
        assert shown(backend, "ls /run/secrets") == []
    else:
        assert f"variable of {len(SECRET)}" in seen and "file" not in seen, seen


# ---- the container's life


def test_the_image_is_that_of_the_request(container_backend):
    assert any("Debian" in line for line in shown(container_backend, "cat /etc/os-release", container={"image": DEBIAN}))
    identity = container_backend.engine.api("GET", f"/images/{DEBIAN}/json")["Id"]
    assert shown(container_backend, "echo by its id; which bash", container={"image": identity})[0] == "by its id"
    done = container_backend.installation.cli(
        "run", "--isolation", "container", "--image", DEBIAN, "--", "bash", "-c", "echo $BASH_VERSION")
    assert done.stdout.startswith(b"5."), done


def test_a_health_check_is_the_engines(container_backend):
    health = {"command": ["test", "-e", "/workspace/healthy"], "interval_ms": 300, "timeout_ms": 2000, "start_period_ms": 0, "retries": 2}
    (container_backend.work / "healthy").touch()
    execution = container_backend.start("echo up; sleep 300", container={"health": health})
    container_backend.shows(execution, "up")
    described = container_backend.the_container()
    assert described["Config"]["Healthcheck"] == {
        "Test": ["CMD", "test", "-e", "/workspace/healthy"], "Interval": 300_000_000, "Timeout": 2 * SECOND, "Retries": 2,
    }, described["Config"]["Healthcheck"]
    until(lambda: container_backend.engine.inspect(described["Id"])["State"]["Health"]["Status"] == "healthy", 20)
    (container_backend.work / "healthy").unlink()
    until(lambda: container_backend.engine.inspect(described["Id"])["State"]["Health"]["Status"] == "unhealthy", 20)
    # It ends as it will, and the next one gets another container.
    other = container_backend.start("echo up; sleep 300", container={"health": health})
    container_backend.shows(other, "up")
    assert container_backend.info(execution)["status"] == "running"
    assert len(container_backend.containers()) == 2
    for one in (execution, other):
        container_backend.stop(one, force=True)
    until(lambda: described["Id"] not in [it["Id"] for it in container_backend.containers()], 20, "the end of the sick one")


def test_the_grace_is_that_of_the_request(container_backend):
    script = "trap 'echo ignored' TERM; echo up; while :; do sleep 0.05; done"
    execution = container_backend.start(script, container={"stop_grace_ms": 800})
    container_backend.shows(execution, "up")
    begin = time.monotonic()
    container_backend.stop(execution)
    result = container_backend.ended(execution)
    assert 0.7 < time.monotonic() - begin < 6 and result.info["signal"] == "SIGKILL", result


def test_the_next_start_uses_the_same_container(container_backend):
    first = shown(container_backend, "hostname; echo $$")
    container = container_backend.the_container()["Id"]
    second = shown(container_backend, "hostname; echo $$")
    assert first[0] == second[0] and first[1] != second[1]
    assert container_backend.the_container()["Id"] == container
    # Another specification, another container.
    shown(container_backend, "true", container={"network": "none"})
    shown(container_backend, "true", limits={"memory_bytes": 64 * MIB})
    assert len(container_backend.containers()) == 3


def test_a_container_without_reuse_is_for_one_command(container_backend):
    seen = {shown(container_backend, "hostname", container={"reuse": False})[0] for _ in range(2)}
    assert len(seen) == 2
    until(lambda: container_backend.containers() == [], 10, "the removal of the containers")


def test_an_idle_container_is_removed(container_backend):
    execution = container_backend.start("sleep 2", container={"idle_timeout_ms": 1000})
    container_backend.ended(execution)
    container = container_backend.the_container()["Id"]
    shown(container_backend, "true", container={"idle_timeout_ms": 1000})
    assert container_backend.the_container()["Id"] == container, "it was not idle meanwhile"
    until(lambda: container_backend.containers() == [], 20, "the removal of the idle container")


def test_the_labels_say_whose_it_is(container_backend):
    shown(container_backend, "true")
    labels = container_backend.the_container()["Config"]["Labels"]
    state = os.stat(container_backend.installation.state)
    assert labels["dev.ostler.state"] == f"{state.st_dev}:{state.st_ino}" and labels["dev.ostler.key"] and labels["dev.ostler.init"], labels


def test_doctor_shows_the_engine(container_backend):
    text = container_backend.installation.cli("doctor", check=False).stdout.decode()
    assert "20.10" in text or "docker" in text.lower(), text
    assert container_backend.engine.url.removeprefix("unix://") in text, text
