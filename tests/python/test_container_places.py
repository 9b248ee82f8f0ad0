"""Containers and what they are of: the workspace that has a name now, and images whatever they say of themselves."""

import shutil
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness.docker import BUSYBOX, UID
from harness.installation import ProblemError

pytestmark = pytest.mark.root


def own_directory(path):
    """A directory that the user of the images may write to, and root without capabilities."""
    path.mkdir(exist_ok=True)
    shutil.chown(path, UID, UID)
    path.chmod(0o777)
    return path


@pytest.fixture
def places(make_container_backend, docker_engine):
    """Commands in containers whose workspaces are below `work`."""
    backend = make_container_backend(docker_engine)
    own_directory(backend.work)
    return backend


def derived(engine, directory, name, *lines, base=BUSYBOX):
    """An image of another one, with these lines of its Dockerfile."""
    (directory / "Dockerfile").write_text("\n".join((f"FROM {base}", *lines, "")))
    engine.cli("build", "-t", name, directory)
    return name


# ---- workspaces


@pytest.mark.parametrize("how", ["deleted", "renamed", "link"])
def test_a_start_gets_the_directory_that_has_the_name_now(places, how):
    first = own_directory(places.work / "first")
    cwd = first
    if how == "link":
        cwd = places.work / "link"
        cwd.symlink_to(first)
    (first / "which").write_text("first")
    assert places.run("cat which", cwd=str(cwd)).out == b"first"
    second = first
    if how == "deleted":
        shutil.rmtree(first)
    elif how == "renamed":
        first.rename(places.work / "old")
    else:
        cwd.unlink()
        second = places.work / "second"
        cwd.symlink_to(second)
    own_directory(second)
    (second / "which").write_text("second")
    result = places.run("cat which; echo written > back", cwd=str(cwd))
    assert result.out == b"second" and (second / "back").read_text() == "written\n", result


def test_a_volume_that_was_replaced_is_mounted_anew(make_container_backend, docker_engine, tmp_path):
    own_directory(tmp_path)
    volume = own_directory(tmp_path / "data")
    backend = make_container_backend(docker_engine, settings=f'volumes = ["{tmp_path}"]')
    options = {"volumes": [{"host": str(volume), "container": "/data"}]}
    for word in ("first", "second"):
        shutil.rmtree(volume)
        own_directory(volume)
        (volume / "which").write_text(word)
        assert backend.run("cat /data/which", container=options).out == word.encode()


@pytest.mark.parametrize("name", ["with space", "with:colon", "ünïcödé 🍞", "a,b=c", "quote'\"\\x", "-dash", "new\nline"])
def test_a_workspace_may_have_any_name(places, name):
    work = own_directory(places.work / name)
    result = places.run("echo here > file; pwd", cwd=str(work))
    assert result.out == b"/workspace\n" and (work / "file").read_text() == "here\n", result


@pytest.mark.limit(120)
def test_a_hundred_starts_at_once_share_a_container_for_each_workspace(places):
    works = [own_directory(places.work / f"w{number}") for number in range(3)]
    for number, work in enumerate(works):
        (work / "number").write_text(str(number))

    def start(number):
        result = places.run(f"cat number; echo -{number}; exit {number}", cwd=str(works[number % 3]), seconds=100)
        return (result.code, result.out) == (number, b"%d-%d\n" % (number % 3, number)) or result

    with ThreadPoolExecutor(100) as pool:
        wrong = [it for it in pool.map(start, range(100)) if it is not True]
    assert wrong == [] and len(places.containers()) == 3


# ---- images

IMAGES = {
    "entry point": ['ENTRYPOINT ["/bin/false"]', 'CMD ["x"]'],
    "health": ["HEALTHCHECK --interval=1s --timeout=1s --retries=1 CMD false"],
    "user by name": ["USER claude:claude"],
    "root": ["USER root"],
    "directory": ["WORKDIR /nowhere/deep"],
    "volumes": ["VOLUME /data /workspace /tmp /run"],
    "variables": ["ENV LD_PRELOAD=/nowhere.so HOME=/nowhere PATH=/bin"],
    "signal": ["STOPSIGNAL SIGKILL"],
    "shell": ['SHELL ["/bin/false"]', "ONBUILD RUN false"],
}


@pytest.mark.parametrize("what", IMAGES)
def test_what_an_image_says_of_itself_is_in_nobodys_way(places, tmp_path, what):
    image = derived(places.engine, tmp_path, f"ostler-test/says-{what.replace(' ', '-')}", *IMAGES[what])
    options = {"image": image}
    assert places.run("pwd; echo x > file", container=options).out == b"/workspace\n"
    container = places.the_container()
    if what == "health":
        assert "Health" not in container["State"], "the image's check is not that of what runs"
    assert places.run("cat file", container=options).out == b"x\n"
    assert places.the_container()["Id"] == container["Id"]
    places.installation.shut_down()
    assert places.engine.cli("volume", "ls", "-q") == "", "volumes of the image go with the container"


def test_an_image_without_a_shell_says_what_is_missing(places, tmp_path):
    (tmp_path / "data").write_text("")
    image = derived(places.engine, tmp_path, "ostler-test/no-shell", "COPY data /data", base="scratch")
    for command, name in (("echo x", "sh"), (["no-such-program"], "no-such-program")):
        with pytest.raises(ProblemError) as raised:
            places.run(command, container={"image": image})
        assert f"cannot execute {name}" in str(raised.value) and "in a container" in str(raised.value), raised.value


def test_a_workspace_that_the_containers_user_may_not_enter_is_told_as_that(make_container_backend, docker_engine):
    backend = make_container_backend(docker_engine, settings='users = ["root"]')
    with pytest.raises(ProblemError) as raised:
        backend.run("true", container={"user": "root"})
    assert "cannot enter /workspace: the container's user, with uid 0" in str(raised.value), raised.value
