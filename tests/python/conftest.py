"""Fixtures: the binary under test, installations of it, and a timeout for every test."""

import contextlib
import os
import signal
import tempfile
from pathlib import Path

import pytest

from harness import Installation, HttpDaemon, ClientTransport, disk, tiers
from harness.backend import Backend
from harness.docker import BUSYBOX, DEBIAN, UID, DockerEngine
from harness.protected_env import ProtectedEnv
from harness.installation import NOBODY, is_root
from harness.user import temporary_user

ROOT = Path(__file__).resolve().parents[2]

#: The default timeout of a test, and of its end, in seconds. A busy machine may be ten times slower than an idle one.
LIMIT_SECONDS = 120
#: The shortest timeout of what comes before a test: the first of a module sets up what the others share.
SETUP_SECONDS = 300

#: The users of `each_installation`.
USERS = ["self", "ordinary"] if is_root() else ["self"]

# A shell without job control starts what runs in the background with SIGINT ignored, and all that is started by it inherits that.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def anyio_backend():
    return "asyncio"


@pytest.fixture(scope="session")
def binary():
    path = Path(os.environ.get("OSTLER_BIN", ROOT / "target" / "release" / "ostler"))
    if not path.exists():
        pytest.fail(f"{path} is not built: cargo build --release")
    return path


def within_limit(item, at_least=0):
    """Ends a phase of a test that hangs. Not between phases: there an exception would end the whole run."""
    mark = item.get_closest_marker("limit")
    seconds = max(mark.args[0] if mark else LIMIT_SECONDS, at_least)

    def ring(_signal, _frame):
        raise TimeoutError(f"the test took longer than {seconds} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item):
    return (yield from within_limit(item, SETUP_SECONDS))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item):
    return (yield from within_limit(item))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item):
    return (yield from within_limit(item))


def pytest_collection_modifyitems(config, items):
    """Deselects tests that need root for an unprivileged user, and those that need small file
    systems where that user cannot mount any. As root, leaves one user of two to the full tier."""
    if is_root():
        tiers.take_turns(items, "each_installation", USERS)
        return
    beyond = ["root"]
    with tempfile.TemporaryDirectory() as path:
        if not disk.is_possible(Path(path)):
            beyond.append("small_disk")
    out = [item for item in items if any(item.get_closest_marker(mark) for mark in beyond)]
    config.hook.pytest_deselected(items=out)
    items[:] = [item for item in items if item not in out]


@pytest.fixture(scope="session")
def unprivileged_user():
    """The uid of an unprivileged user created for the tests; none where the tests run as one."""
    if not is_root():
        yield None
        return
    with temporary_user() as number:
        yield number


@pytest.fixture(scope="session")
def docker_engine():
    """A container engine for the tests of this process: it starts in half a second, has its images after another, and takes
    120 MB, which is less than what sharing one between processes would cost in tests that wait for each other."""
    with DockerEngine() as engine:
        yield engine


@pytest.fixture(scope="module")
def protected_envs(binary, unprivileged_user):
    """Installations by user, each with its host targets, for the duration of the module."""
    with contextlib.ExitStack() as stack:
        yield ProtectedEnv(binary, unprivileged_user, stack)


@pytest.fixture
def make_installation(binary):
    """Creates installations; at the end of the test, an orderly shutdown must leave no process."""
    made = []

    def make(user=None, **options):
        made.append(Installation(binary, user, **options))
        return made[-1]

    yield make
    try:
        for installation in made:
            installation.end_commands()
        staying = [pid for installation in made for pid in installation.shut_down()]
        assert not staying, f"left after shutdown: {staying}"
    finally:
        for installation in made:
            installation.close()


@pytest.fixture
def installation(make_installation):
    """An installation for one test."""
    return make_installation()


@pytest.fixture
def small_disk(make_installation):
    """An installation whose state is on a file system of 24 MiB, reached by `installation.disk`."""
    installation = make_installation()
    with disk.mounted(installation.state, 24, installation) as mounted:
        installation.disk = mounted.outside
        yield installation
        installation.end_commands()
        installation.shut_down()


@pytest.fixture(params=USERS)
def each_installation(request, make_installation):
    """An installation of the current user and, as root, one of an unprivileged user without cgroups. In the quick tier, a
    test runs as one of them."""
    return make_installation(NOBODY if request.param == "ordinary" else None)


@pytest.fixture
def unprivileged_installation(make_installation):
    """An installation of an unprivileged user, to whom file permissions apply."""
    return make_installation(NOBODY if is_root() else None)


#: Every transport in both protocol eras.
TRANSPORTS = [f"{transport}-{mode}" for transport in ("stdio", "http", "sse") for mode in ("auto", "legacy")]


@pytest.fixture
def make_container_backend(make_installation):
    """Creates installations with a container engine and an image; at the end, nothing of them is left in the engine."""
    engines = []

    def make(engine, image=BUSYBOX, settings="", **options):
        installation = make_installation(**options)
        config = installation.dir / "config" / "ostler"
        config.mkdir()
        lines = f'[isolation]\nworkspaces = ["{installation.work}"]\n[container]\nsocket = "{engine.url}"\nimage = "{image}"\n{settings}\n'
        (config / "config.toml").write_text(lines)
        # The user of the images must have access, as the owner of a workspace has.
        os.chown(installation.work, UID, UID)
        installation.cli("ps")
        engines.append((engine, installation))
        return Backend(installation, engine)

    yield make
    for engine, installation in engines:
        installation.end_commands()
        installation.shut_down()
        left = [container["Names"] for container in engine.containers()]
        engine.remove_containers()
        assert left == [], f"left in the engine after shutdown: {left}"


@pytest.fixture
def container_backend(make_container_backend, docker_engine):
    """Commands in containers of an image with BusyBox alone."""
    return make_container_backend(docker_engine)


@pytest.fixture(params=["local", pytest.param("container", marks=pytest.mark.root)])
def backend(request):
    """Commands of each backend: processes of this machine, and those of a container of Debian."""
    if request.param == "local":
        installation = request.getfixturevalue("installation")
        installation.cli("ps")
        return Backend(installation)
    make = request.getfixturevalue("make_container_backend")
    return make(request.getfixturevalue("docker_engine"), DEBIAN)


@pytest.fixture(scope="module")
def http_daemon(binary):
    """One installation for the tests of a module, with an HTTP listener."""
    installation = Installation(binary)
    daemon = HttpDaemon(installation, "--no-token", "--legacy-sse")
    try:
        yield daemon
        daemon.end()
        assert installation.ours() == [], "left after shutdown"
    finally:
        installation.close()


@pytest.fixture(scope="module")
def shared_installation(binary):
    """One installation for the tests of a module, with a daemon that stdio proxies start."""
    installation = Installation(binary)
    try:
        yield installation
        installation.end_commands()
        assert installation.shut_down() == [], "left after shutdown"
    finally:
        installation.close()


@pytest.fixture(params=TRANSPORTS)
def transport(request):
    """A client transport, for each transport and protocol era."""
    kind, mode = request.param.split("-")
    return transport_for(request, kind, mode)


def transport_for(request, kind, mode):
    """Stdio clients use a daemon that they start, all others one in the foreground."""
    if kind == "stdio":
        return ClientTransport(kind, mode, request.getfixturevalue("shared_installation"))
    daemon = request.getfixturevalue("http_daemon")
    return ClientTransport(kind, mode, daemon.installation, daemon)
