"""Fixtures: the binary under test, a place for it, and a limit on every test."""

import contextlib
import os
import signal
import tempfile
from pathlib import Path

import pytest

from harness import Place, Serving, Way, disk
from harness.guarded import Guarded
from harness.place import NOBODY, is_root
from harness.user import ordinary

ROOT = Path(__file__).resolve().parents[2]

#: How long a test may take before it counts as hung.
LIMIT_SECONDS = 60


@pytest.fixture(scope="session")
def anyio_backend():
    return "asyncio"


@pytest.fixture(scope="session")
def binary():
    path = Path(os.environ.get("OSTLER_BIN", ROOT / "target" / "release" / "ostler"))
    if not path.exists():
        pytest.fail(f"{path} is not built: cargo build --release")
    return path


@pytest.fixture(autouse=True)
def limit(request):
    """Ends a test that hangs."""
    mark = request.node.get_closest_marker("limit")
    seconds = mark.args[0] if mark else LIMIT_SECONDS

    def ring(_signal, _frame):
        raise TimeoutError(f"the test took longer than {seconds} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def pytest_collection_modifyitems(config, items):
    """What needs the rights of root is no test for an ordinary user, nor what needs small file
    systems where that user may have none."""
    if is_root():
        return
    beyond = ["root"]
    with tempfile.TemporaryDirectory() as path:
        if not disk.is_possible(Path(path)):
            beyond.append("small_disk")
    out = [item for item in items if any(item.get_closest_marker(mark) for mark in beyond)]
    config.hook.pytest_deselected(items=out)
    items[:] = [item for item in items if item not in out]


@pytest.fixture(scope="session")
def ordinary_user():
    """The number of an ordinary user made for the tests; none where we are one ourselves."""
    if not is_root():
        yield None
        return
    with ordinary() as number:
        yield number


@pytest.fixture(scope="module")
def places(binary, ordinary_user):
    """Places by whom they belong to, each with what stands outside; as long as the module."""
    with contextlib.ExitStack() as stack:
        yield Guarded(binary, ordinary_user, stack)


@pytest.fixture
def make_place(binary):
    """Makes places; each is emptied at the end, and an orderly shutdown must leave nobody."""
    made = []

    def make(user=None, **options):
        made.append(Place(binary, user, **options))
        return made[-1]

    yield make
    try:
        for place in made:
            place.end_commands()
        staying = [pid for place in made for pid in place.shut_down()]
        assert not staying, f"left after shutdown: {staying}"
    finally:
        for place in made:
            place.close()


@pytest.fixture
def place(make_place):
    """A place of our own."""
    return make_place()


@pytest.fixture
def small(make_place):
    """A place whose state lies on a file system of 24 MiB; `disk` is how that is reached."""
    place = make_place()
    with disk.mounted(place.state, 24, place) as mounted:
        place.disk = mounted.outside
        yield place
        place.end_commands()
        place.shut_down()


@pytest.fixture(params=["self", "ordinary"] if is_root() else ["self"])
def any_place(request, make_place):
    """The same as ourselves and, where we are root, as an ordinary user without cgroups."""
    return make_place(NOBODY if request.param == "ordinary" else None)


@pytest.fixture
def ordinary_place(make_place):
    """A place of an ordinary user, whom file permissions stop."""
    return make_place(NOBODY if is_root() else None)


#: Every transport, in both eras.
WAYS = [f"{transport}-{mode}" for transport in ("stdio", "http", "sse") for mode in ("auto", "legacy")]


@pytest.fixture(scope="module")
def served(binary):
    """One place for the tests of a module, with its network face open."""
    place = Place(binary)
    serving = Serving(place, "--no-token", "--legacy-sse")
    try:
        yield serving
        serving.end()
        assert place.ours() == [], "left after shutdown"
    finally:
        place.close()


@pytest.fixture(scope="module")
def home(binary):
    """One place for the tests of a module, with a daemon that fronts start."""
    place = Place(binary)
    try:
        yield place
        place.end_commands()
        assert place.shut_down() == [], "left after shutdown"
    finally:
        place.close()


@pytest.fixture(params=WAYS)
def way(request):
    """A way in, on each transport and in each era."""
    transport, mode = request.param.split("-")
    return way_in(request, transport, mode)


def way_in(request, transport, mode):
    """Fronts come to a daemon they start, everybody else to one in the foreground."""
    if transport == "stdio":
        return Way(transport, mode, request.getfixturevalue("home"))
    serving = request.getfixturevalue("served")
    return Way(transport, mode, serving.place, serving)
