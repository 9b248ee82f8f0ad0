"""Which directories level high lets a command write, by the tool, by REST and by the command line."""

import os
import subprocess
import uuid
from pathlib import Path

import pytest

from harness.installation import NOBODY, Installation, ProblemError, is_root
from harness.isolation_client import INTERFACES, IsolationOptions
from harness.tiers import each_once

USERS = ("root", "user") if is_root() else ("user",)
#: System trees in which certainly no workspace is.
SYSTEM = (
    "/usr/bin", "/usr/lib", "/usr/local/bin", "/usr/share", "/var", "/var/lib", "/var/log", "/opt", "/srv",
    "/etc", "/boot", "/", "/home", "/mnt", "/proc", "/sys", "/dev",
)
HIGH = IsolationOptions()


def refusal_by_rest(installation, words, cwd):
    """The problem a start over REST is answered with, or none."""
    body = {"command": {"argv": {"program": words[0], "args": words[1:]}}, "cwd": str(cwd), "isolation": "high"}
    try:
        installation.rest("POST", "/api/v1/executions", body)
    except ProblemError as refused:
        return refused
    return None


@pytest.fixture(scope="module", params=USERS)
def installation(request, binary):
    installation = Installation(binary, NOBODY if request.param == "user" and is_root() else None)
    yield installation
    installation.close()


@pytest.fixture(scope="module", params=USERS)
def high_only(request, binary):
    """Where the settings hold every request to level high."""
    installation = Installation(binary, NOBODY if request.param == "user" and is_root() else None)
    config = installation.dir / "config" / "ostler"
    config.mkdir()
    (config / "config.toml").write_text('[isolation]\nminimum = "high"\n')
    installation.give(config)
    yield installation
    installation.close()


def project(installation, name="project"):
    directory = installation.dir / name
    directory.mkdir(exist_ok=True)
    installation.give(directory)
    return directory


def planted(installation, interface, cwd):
    """Tries to leave a file in a directory; the answer, and whether it is there."""
    name = f".probe-{uuid.uuid4().hex}"
    result = INTERFACES[interface](installation, ["sh", "-c", f"echo x > {name}; echo end $?"], HIGH, cwd=cwd)
    file = Path(cwd) / name
    there = file.exists()
    if there:
        file.unlink()
    return result, there


@pytest.mark.parametrize("interface", INTERFACES)
def test_a_project_of_the_caller_is_written(installation, interface):
    directory = project(installation)
    result, there = planted(installation, interface, directory)
    assert there, result.text


@pytest.mark.parametrize(("directory", "interface"), each_once(SYSTEM, INTERFACES))
def test_system_trees_are_no_workspace(installation, interface, directory):
    result, there = planted(installation, interface, directory)
    assert not there, result.text
    assert "workspace" in result.text and "end 0" not in result.text, result.text


@pytest.mark.parametrize("directory", ("/usr/bin", "/var/lib"))
def test_system_trees_are_no_workspace_over_rest(installation, directory):
    installation.cli("ps")
    refused = refusal_by_rest(installation, ["true"], directory)
    assert refused is not None and "workspace" in str(refused), refused


@pytest.mark.parametrize("interface", INTERFACES)
@pytest.mark.parametrize("name", (".ssh", ".config/tool", ".local/bin", "bin"))
def test_credentials_and_programs_of_the_home_are_no_workspace(installation, interface, name):
    directory = installation.dir / "home" / name
    directory.mkdir(parents=True, exist_ok=True)
    installation.give(installation.dir / "home")
    result, there = planted(installation, interface, directory)
    assert not there, result.text
    assert "isolation.workspaces" in result.text, result.text


@pytest.mark.root
@pytest.mark.parametrize("interface", INTERFACES)
def test_directories_of_another_user_are_theirs(installation, interface):
    other = 1234 if installation.user is None else 0
    directory = project(installation, "strange")
    os.chown(directory, other, other)
    directory.chmod(0o777)
    result, there = planted(installation, interface, directory)
    assert not there, result.text
    assert f"another user (uid {other})" in result.text, result.text


@pytest.mark.root
@pytest.mark.parametrize("interface", INTERFACES)
def test_a_bind_mount_does_not_make_a_system_tree_ones_own(binary, interface):
    installation = Installation(binary)
    directory = installation.dir / "bound"
    directory.mkdir()
    subprocess.run(["mount", "--bind", "/usr/share/doc", directory], check=True)
    try:
        result, there = planted(installation, interface, directory)
        assert not there, result.text
        assert "/usr/share/doc" in result.text, result.text
    finally:
        subprocess.run(["umount", directory], check=True)
        installation.close()


@pytest.mark.parametrize("interface", INTERFACES)
def test_a_minimum_of_high_is_not_loosened_by_the_environment(high_only, interface):
    home = high_only.dir / "home"
    (home / ".ssh").mkdir(exist_ok=True)
    (home / ".ssh" / "id").write_text("secret key\n")
    high_only.give(home)
    directory = project(high_only)
    elsewhere = project(high_only, "elsewhere")
    script = f"cat {home}/.ssh/id; ls -a {home}; echo end"
    for variables in (
        {"HOME": str(elsewhere)},
        {"PATH": f"{home}/.ssh:/usr/bin:/bin"},
        {"HOME": str(elsewhere), "PATH": f"{home}/.ssh:/usr/bin:/bin"},
    ):
        if interface == "cli":
            result = INTERFACES[interface](high_only, ["sh", "-c", script], HIGH, cwd=directory, env=variables)
        else:
            result = INTERFACES[interface](high_only, ["sh", "-c", script], HIGH, cwd=directory, **{"env": variables})
        assert "end" in result.text and "secret key" not in result.text, result.text


@pytest.mark.parametrize("interface", INTERFACES)
def test_a_minimum_of_high_forwards_no_port(high_only, interface):
    result = INTERFACES[interface](high_only, ["true"], IsolationOptions(forward=("18081",)), cwd=project(high_only))
    assert "forward" in result.text and "settings" in result.text, result.text
    assert result.exit_code != 0, result.text


def test_listed_workspaces_are_the_only_ones(binary):
    installation = Installation(binary)
    listed, other = project(installation, "listed"), project(installation, "other")
    try:
        env = {"OSTLER_ISOLATION_WORKSPACES": str(listed)}
        words = ["run", "--isolation", "high", "--cwd"]
        done = installation.cli(*words, listed, "--", "touch", "x", env=env)
        assert (listed / "x").exists(), done.stderr
        done = installation.cli(*words, other, "--", "touch", "x", env=env, check=False)
        assert done.returncode != 0 and b"isolation.workspaces" in done.stderr, done.stderr
        assert not (other / "x").exists()
    finally:
        installation.close()
