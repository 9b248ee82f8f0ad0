"""Which directories level high lets a command write, by the tool, by REST and by the command line."""

import os
import subprocess
import uuid
from pathlib import Path

import pytest

from harness.installation import NOBODY, Installation, ProblemError, is_root
from harness.isolation_client import INTERFACES, IsolationOptions

USERS = ("root", "user") if is_root() else ("user",)
#: Trees of the system of which one can say beforehand that nobody works there.
SYSTEM = (
    "/usr/bin", "/usr/lib", "/usr/local/bin", "/usr/share", "/var", "/var/lib", "/var/log", "/opt", "/srv",
    "/etc", "/boot", "/", "/home", "/mnt", "/proc", "/sys", "/dev",
)
HIGH = IsolationOptions()


def refusal_by_rest(place, words, cwd):
    """The problem a start over REST is answered with, or none."""
    body = {"command": {"argv": {"program": words[0], "args": words[1:]}}, "cwd": str(cwd), "isolation": "high"}
    try:
        place.rest("POST", "/api/v1/executions", body)
    except ProblemError as refused:
        return refused
    return None


@pytest.fixture(scope="module", params=USERS)
def place(request, binary):
    place = Installation(binary, NOBODY if request.param == "user" and is_root() else None)
    yield place
    place.close()


@pytest.fixture(scope="module", params=USERS)
def tight(request, binary):
    """Where the settings hold every request to level high."""
    place = Installation(binary, NOBODY if request.param == "user" and is_root() else None)
    config = place.dir / "config" / "ostler"
    config.mkdir()
    (config / "config.toml").write_text('[isolation]\nminimum = "high"\n')
    place.give(config)
    yield place
    place.close()


def project(place, name="project"):
    directory = place.dir / name
    directory.mkdir(exist_ok=True)
    place.give(directory)
    return directory


def planted(place, face, cwd):
    """Tries to leave a file in a directory; the answer, and whether it is there."""
    name = f".probe-{uuid.uuid4().hex}"
    ran = INTERFACES[face](place, ["sh", "-c", f"echo x > {name}; echo end $?"], HIGH, cwd=cwd)
    file = Path(cwd) / name
    there = file.exists()
    if there:
        file.unlink()
    return ran, there


@pytest.mark.parametrize("face", INTERFACES)
def test_a_project_of_the_caller_is_written(place, face):
    directory = project(place)
    ran, there = planted(place, face, directory)
    assert there, ran.text


@pytest.mark.parametrize("directory", SYSTEM)
@pytest.mark.parametrize("face", INTERFACES)
def test_system_trees_are_no_workspace(place, face, directory):
    ran, there = planted(place, face, directory)
    assert not there, ran.text
    assert "workspace" in ran.text and "end 0" not in ran.text, ran.text


@pytest.mark.parametrize("directory", ("/usr/bin", "/var/lib"))
def test_system_trees_are_no_workspace_over_rest(place, directory):
    place.cli("ps")
    refused = refusal_by_rest(place, ["true"], directory)
    assert refused is not None and "workspace" in str(refused), refused


@pytest.mark.parametrize("face", INTERFACES)
@pytest.mark.parametrize("name", (".ssh", ".config/tool", ".local/bin", "bin"))
def test_credentials_and_programs_of_the_home_are_no_workspace(place, face, name):
    directory = place.dir / "home" / name
    directory.mkdir(parents=True, exist_ok=True)
    place.give(place.dir / "home")
    ran, there = planted(place, face, directory)
    assert not there, ran.text
    assert "isolation.workspaces" in ran.text, ran.text


@pytest.mark.root
@pytest.mark.parametrize("face", INTERFACES)
def test_directories_of_another_user_are_theirs(place, face):
    other = 1234 if place.user is None else 0
    directory = project(place, "strange")
    os.chown(directory, other, other)
    directory.chmod(0o777)
    ran, there = planted(place, face, directory)
    assert not there, ran.text
    assert f"another user (uid {other})" in ran.text, ran.text


@pytest.mark.root
@pytest.mark.parametrize("face", INTERFACES)
def test_a_bind_mount_does_not_make_a_system_tree_ones_own(binary, face):
    place = Installation(binary)
    directory = place.dir / "bound"
    directory.mkdir()
    subprocess.run(["mount", "--bind", "/usr/share/doc", directory], check=True)
    try:
        ran, there = planted(place, face, directory)
        assert not there, ran.text
        assert "/usr/share/doc" in ran.text, ran.text
    finally:
        subprocess.run(["umount", directory], check=True)
        place.close()


@pytest.mark.parametrize("face", INTERFACES)
def test_a_minimum_of_high_is_not_loosened_by_the_environment(tight, face):
    home = tight.dir / "home"
    (home / ".ssh").mkdir(exist_ok=True)
    (home / ".ssh" / "id").write_text("secret key\n")
    tight.give(home)
    directory = project(tight)
    elsewhere = project(tight, "elsewhere")
    script = f"cat {home}/.ssh/id; ls -a {home}; echo end"
    for variables in (
        {"HOME": str(elsewhere)},
        {"PATH": f"{home}/.ssh:/usr/bin:/bin"},
        {"HOME": str(elsewhere), "PATH": f"{home}/.ssh:/usr/bin:/bin"},
    ):
        if face == "cli":
            ran = INTERFACES[face](tight, ["sh", "-c", script], HIGH, cwd=directory, env=variables)
        else:
            ran = INTERFACES[face](tight, ["sh", "-c", script], HIGH, cwd=directory, **{"env": variables})
        assert "end" in ran.text and "secret key" not in ran.text, ran.text


@pytest.mark.parametrize("face", INTERFACES)
def test_a_minimum_of_high_forwards_no_port(tight, face):
    ran = INTERFACES[face](tight, ["true"], IsolationOptions(forward=("18081",)), cwd=project(tight))
    assert "forward" in ran.text and "settings" in ran.text, ran.text
    assert ran.exit_code != 0, ran.text


def test_listed_workspaces_are_the_only_ones(binary):
    place = Installation(binary)
    listed, other = project(place, "listed"), project(place, "other")
    try:
        env = {"OSTLER_ISOLATION_WORKSPACES": str(listed)}
        words = ["run", "--isolation", "high", "--cwd"]
        done = place.cli(*words, listed, "--", "touch", "x", env=env)
        assert (listed / "x").exists(), done.stderr
        done = place.cli(*words, other, "--", "touch", "x", env=env, check=False)
        assert done.returncode != 0 and b"isolation.workspaces" in done.stderr, done.stderr
        assert not (other / "x").exists()
    finally:
        place.close()
