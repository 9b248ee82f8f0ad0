"""The execution image of `docker/Containerfile`, built from local files over bases that have no such user, another one, or it."""

import json
import shutil
from pathlib import Path

import pytest

from harness.docker import BUSYBOX, DEBIAN
from harness.procs import until

pytestmark = [pytest.mark.root, pytest.mark.limit(120)]

#: Prints the status of a request without a token.
UNAUTHORIZED = """
import urllib.error, urllib.request
try:
    urllib.request.urlopen('http://127.0.0.1:8080/api/v1/executions')
except urllib.error.HTTPError as error:
    print(error.code)
"""

ROOT = Path(__file__).resolve().parents[2]

#: Base images by what they have at uid 1000: the image they are made from, and how.
BASES = {
    "debian with the user": (DEBIAN, "true"),
    "debian with no user": (DEBIAN, "userdel --remove claude"),
    "debian with another user": (DEBIAN, "userdel --remove claude && useradd --uid 1000 --create-home ubuntu"),
    "busybox with no user": (BUSYBOX, "sed -i /claude/d /etc/passwd /etc/group"),
    "busybox with another user": (BUSYBOX, "sed -i s/claude/node/ /etc/passwd /etc/group"),
}

def build(engine, tag, file, context, **arguments):
    """Builds an image by the engine's own builder, without a network."""
    words = [word for name, value in arguments.items() for word in ("--build-arg", f"{name}={value}")]
    return engine.cli("build", "--network", "none", "--tag", tag, "--file", file, *words, context, timeout=110)


#: Those of the quick tier.
QUICK = ("debian with another user", "busybox with no user")


@pytest.mark.parametrize("base", [pytest.param(base, marks=() if base in QUICK else pytest.mark.full) for base in BASES])
def test_the_execution_image_is_built_from_local_files(docker_engine, tmp_path, base):
    image, change = BASES[base]
    (tmp_path / "Containerfile").write_text(f"FROM {image}\nUSER 0:0\nRUN {change}\n")
    build(docker_engine, "ostler-test/base", tmp_path / "Containerfile", tmp_path)
    build(docker_engine, "ostler-test/exec", ROOT / "docker/Containerfile", ROOT / "docker", BASE="ostler-test/base")
    config = docker_engine.api("GET", "/images/ostler-test/exec/json")["Config"]
    assert (config["User"], config["WorkingDir"], config["Cmd"]) == ("1000:1000", "/workspace", ["/bin/sh"])
    second = 10**9
    assert config["Healthcheck"] == {
        "Test": ["CMD", "/bin/sh", "-c", "exit 0"],
        "Interval": 30 * second, "Timeout": 10 * second, "StartPeriod": 5 * second, "Retries": 3}
    script = "id -un; id -u; id -g; pwd; touch here && stat -c %u:%g here .; grep -c :1000: /etc/passwd; cd ~ && pwd"
    seen = docker_engine.cli("run", "--rm", "--network", "none", "ostler-test/exec", "sh", "-c", script).split()
    assert seen == ["claude", "1000", "1000", "/workspace", "1000:1000", "1000:1000", "1", "/home/claude"], seen


def test_it_has_the_requested_packages_and_user(docker_engine, tmp_path):
    """By a package manager that records what it is to install: nothing is downloaded."""
    (tmp_path / "apk").write_text('#!/bin/sh\necho "$@" >/installed\n')
    (tmp_path / "apk").chmod(0o755)
    (tmp_path / "Containerfile").write_text(f"FROM {BUSYBOX}\nUSER 0:0\nCOPY apk /bin/apk\n")
    build(docker_engine, "ostler-test/base", tmp_path / "Containerfile", tmp_path)
    build(docker_engine, "ostler-test/exec", ROOT / "docker/Containerfile", ROOT / "docker",
          BASE="ostler-test/base", PACKAGES="git curl", USER_NAME="worker")
    seen = docker_engine.cli("run", "--rm", "--network", "none", "ostler-test/exec", "sh", "-c", "cat /installed; id -un")
    assert seen.splitlines() == ["add --no-cache git curl", "worker"], seen


def test_the_image_of_ostler_runs_commands(docker_engine, tmp_path, binary):
    """The stages that need a compiler and a registry are replaced by their result. Its seccomp profile has no clone3(2)."""
    text = (ROOT / "docker/ostler.Containerfile").read_text()
    last = text[text.rindex("FROM ${BASE}"):]
    last = last.replace("--from=build /source/target/dist/ostler", "ostler")
    shutil.copy2(binary, tmp_path / "ostler")
    # The base image has no user of this uid, as Debian's has none.
    (tmp_path / "Containerfile").write_text(
        f"FROM {DEBIAN} AS base\nUSER 0:0\nRUN userdel --remove claude\n{last.replace('${BASE}', 'base')}")
    build(docker_engine, "ostler-test/ostler", tmp_path / "Containerfile", tmp_path)
    config = docker_engine.api("GET", "/images/ostler-test/ostler/json")["Config"]
    assert config["User"] == "1000:1000" and json.dumps(config["ExposedPorts"]) == '{"8080/tcp": {}}'
    assert list(config["Volumes"]) == ["/var/lib/ostler"]
    docker_engine.cli("run", "--detach", "--name", "ostler", "--network", "none", "ostler-test/ostler")
    try:
        within = ("exec", "ostler", "ostler")
        until(lambda: "COMMAND" in docker_engine.cli(*within, "ps", check=False), 20, "its daemon")
        script = "id -un; setsid sleep 300 & echo to stderr >&2; exit 3"
        assert docker_engine.cli(*within, "run", "--", "sh", "-c", script, check=False) == "ostler\n"
        done = json.loads(docker_engine.cli(*within, "ps", "--all", "--json"))
        done = done["executions"] if isinstance(done, dict) else done
        assert [one["exit_code"] for one in done] == [3], done
        assert "sleep" not in docker_engine.cli("top", "ostler"), "the whole tree is ended"
        answer = docker_engine.cli("exec", "ostler", "python3", "-c", UNAUTHORIZED)
        assert answer == "401\n", "its listener is there, and needs a token"
    finally:
        docker_engine.cli("rm", "--force", "--volumes", "ostler")
