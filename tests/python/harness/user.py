"""An unprivileged user account for the duration of the tests."""

import contextlib
import os
import pwd
import subprocess

from .procs import until


@contextlib.contextmanager
def temporary_user():
    """Creates a user for the tests and yields its uid. Root only."""
    name = f"ostler-t{os.getpid()}"
    locked = lambda *words: subprocess.run(words, capture_output=True, check=False).returncode == 0
    # Others may have the password file locked for a moment.
    until(lambda: locked("useradd", "--no-create-home", "--home-dir", "/nonexistent",
                         "--no-user-group", "--shell", "/bin/sh", name), 20, "the user's making")
    try:
        yield pwd.getpwnam(name).pw_uid
    finally:
        until(lambda: locked("userdel", name), 20, "the user's removal")
