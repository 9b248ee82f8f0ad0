"""Installations with host targets to protect: one for each user, shared by the tests of a module."""

import functools

import pytest

from .host_targets import HostTargets
from .installation import Installation, is_root
from .isolation_client import INTERFACES, IsolationOptions

#: The users: root, where the tests run as root, and an unprivileged user.
USERS = ("root", "ordinary") if is_root() else ("ordinary",)


class ProtectedEnv:
    """Creates installations on demand, one for each user."""

    def __init__(self, binary, ordinary_user, stack):
        self.binary = binary
        self.user = ordinary_user
        self.stack = stack
        self.of = functools.cache(self._make)

    def _make(self, who):
        place = Installation(self.binary, self.user if who == "ordinary" else None)
        self.stack.callback(place.close)
        place.outside = HostTargets(place)
        self.stack.callback(place.outside.close)
        place.outside.engine()
        place.outside.write(place.work)
        self.stack.callback(leave, place)
        return place


def leave(place):
    place.end_commands()
    assert place.shut_down() == [], "left after shutdown"


def isolation(_who, **changes):
    """Isolation level high, the same for every user."""
    return IsolationOptions(**changes)


def users_by_interface():
    """Every user by every interface; in the quick tier each of both once."""
    quick = {("root", "mcp"), ("ordinary", "cli")}
    return [pytest.param(who, face, marks=() if (who, face) in quick else pytest.mark.full)
            for who in USERS for face in INTERFACES]


USERS_BY_INTERFACE = users_by_interface()


#: Every user; in the quick tier the first alone, where the user makes little difference.
FIRST = [pytest.param(who, marks=pytest.mark.full if place else ()) for place, who in enumerate(USERS)]
