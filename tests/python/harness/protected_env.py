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

    def __init__(self, binary, unprivileged_user, stack):
        self.binary = binary
        self.user = unprivileged_user
        self.stack = stack
        self.of = functools.cache(self._make)

    def _make(self, user):
        installation = Installation(self.binary, self.user if user == "ordinary" else None)
        self.stack.callback(installation.close)
        installation.outside = HostTargets(installation)
        self.stack.callback(installation.outside.close)
        installation.outside.engine()
        installation.outside.write(installation.work)
        self.stack.callback(leave, installation)
        return installation


def leave(installation):
    installation.end_commands()
    assert installation.shut_down() == [], "left after shutdown"


def isolation(_user, **changes):
    """Isolation level high, the same for every user."""
    return IsolationOptions(**changes)


def users_by_interface():
    """Every user by every interface; in the quick tier each of both once."""
    quick = {("root", "mcp"), ("ordinary", "cli")}
    return [pytest.param(user, interface, marks=() if (user, interface) in quick else pytest.mark.full)
            for user in USERS for interface in INTERFACES]


USERS_BY_INTERFACE = users_by_interface()


#: Every user; in the quick tier the first alone, where the user makes little difference.
FIRST = [pytest.param(user, marks=pytest.mark.full if index else ()) for index, user in enumerate(USERS)]
