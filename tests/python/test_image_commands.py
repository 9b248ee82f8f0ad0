"""`ostler image` with a real engine: images are made from local files, and fetched only where that is asked for."""

import json
from pathlib import Path

import pytest

from harness.docker import BUSYBOX

pytestmark = [pytest.mark.root, pytest.mark.limit(120)]

EXECUTION_IMAGE = Path(__file__).resolve().parents[2] / "docker"


@pytest.fixture
def image(container_backend):
    """Runs one command of `ostler image`."""
    def run(*words, **options):
        return container_backend.installation.cli("image", *words, timeout=100, **options)
    return run


def test_the_image_of_executions_is_built_and_used(container_backend, image):
    done = image("build", "--tag", "ostler-test/built", "--build-arg", f"BASE={BUSYBOX}", "--build-arg", "USER_NAME=worker",
                 "--network", "none", str(EXECUTION_IMAGE))
    assert b"Step 1/" in done.stderr and b"FROM" in done.stderr, done.stderr
    built = container_backend.engine.api("GET", "/images/ostler-test/built/json")
    assert done.stdout.decode().split() == [built["Id"]]
    assert container_backend.run("id -un", container={"image": "ostler-test/built"}).out == b"worker\n"
    listed = json.loads(image("ls", "--json").stdout)
    assert any("ostler-test/built:latest" in one["names"] and one["id"] == built["Id"] for one in listed), listed
    assert b"ostler-test/built:latest" in image("ls").stdout
    quiet = image("build", "--quiet", "--tag", "ostler-test/built", "--build-arg", f"BASE={BUSYBOX}", "--network", "none",
                  str(EXECUTION_IMAGE))
    assert quiet.stderr == b"" and len(quiet.stdout.split()) == 1, quiet


def test_a_base_that_is_not_here_is_named_and_not_fetched(container_backend, image, tmp_path):
    (tmp_path / "Containerfile").write_text("ARG BASE=registry.test/none:1\nFROM ${BASE}\n")
    done = image("build", "--tag", "ostler-test/never", str(tmp_path), check=False)
    assert done.returncode != 0 and b"registry.test/none:1" in done.stderr and b"--pull" in done.stderr, done
    assert b"ostler-test/never" not in image("ls").stdout


def test_a_step_that_fails_says_so(image, tmp_path):
    (tmp_path / "Dockerfile").write_text(f"FROM {BUSYBOX}\nRUN echo before; exit 7\n")
    done = image("build", "--tag", "ostler-test/never", "--network", "none", str(tmp_path), check=False)
    assert done.returncode != 0 and b"before" in done.stderr and b"returned a non-zero code: 7" in done.stderr, done
    assert done.stdout == b""


def test_files_of_the_context_are_sent_but_those_left_out(image, container_backend, tmp_path):
    (tmp_path / ".dockerignore").write_text("secret\n")
    (tmp_path / "secret").write_text("never sent\n")
    (tmp_path / "sent").write_text("of the context\n")
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "Other").write_text(f"FROM {BUSYBOX}\nCOPY . /sent\n")
    image("build", "--tag", "ostler-test/context", "--file", str(tmp_path / "parts/Other"), str(tmp_path))
    seen = container_backend.run("cat /sent/sent; ls /sent/secret", container={"image": "ostler-test/context"})
    assert seen.out == b"of the context\n" and seen.code != 0, seen


@pytest.mark.parametrize("words, message", [
    (("build", "."), "no Containerfile or Dockerfile"),
    (("build", "--tag", "Not A Name", str(EXECUTION_IMAGE)), "not the name of an image"),
    (("build", "--file", "/etc/hostname", "--tag", "ostler-test/x", "."), "is not in"),
    (("build", "--build-arg", "=x", "."), "NAME=VALUE"),
    (("pull", "ostler-test/nowhere:1"), "could not be pulled"),
    (("pull", "--all"), "--all"),
])
def test_mistakes_are_told(image, words, message):
    done = image(*words, check=False)
    assert done.returncode != 0 and message in done.stderr.decode(), done
    assert b"panicked" not in done.stderr


def test_without_an_engine_the_sockets_are_named(installation):
    done = installation.cli("image", "ls", check=False, env={"DOCKER_HOST": "unix:///nonexistent/docker.sock"})
    assert done.returncode != 0 and b"/nonexistent/docker.sock" in done.stderr, done
