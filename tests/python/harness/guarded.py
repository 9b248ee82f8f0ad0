"""Places with something to guard: one of each user, kept for a module's tests."""

import functools

import pytest

from .outside import Outside
from .place import Place, is_root
from .walled import FACES, Wish

#: Who asks: we ourselves (root, where the tests are run as root), and an ordinary user.
USERS = ("root", "ordinary") if is_root() else ("ordinary",)


class Guarded:
    """Makes places on demand."""

    def __init__(self, binary, ordinary_user, stack):
        self.binary = binary
        self.user = ordinary_user
        self.stack = stack
        self.of = functools.cache(self._make)

    def _make(self, who):
        place = Place(self.binary, self.user if who == "ordinary" else None)
        self.stack.callback(place.close)
        place.outside = Outside(place)
        self.stack.callback(place.outside.close)
        place.outside.engine()
        place.outside.write(place.work)
        self.stack.callback(leave, place)
        return place


def leave(place):
    place.end_commands()
    assert place.shut_down() == [], "left after shutdown"


def wish(_who, **changes):
    """Level high, the same for everybody."""
    return Wish(**changes)


def crossed():
    """Everybody by every face; in the quick tier each of both once."""
    quick = {("root", "mcp"), ("ordinary", "cli")}
    return [pytest.param(who, face, marks=() if (who, face) in quick else pytest.mark.full)
            for who in USERS for face in FACES]


CROSSED = crossed()


#: Everybody; in the quick tier the first alone, where who asks makes little difference.
FIRST = [pytest.param(who, marks=pytest.mark.full if place else ()) for place, who in enumerate(USERS)]
