"""Git repositories for tests."""

import subprocess


def git(place, *args):
    words = ["git", "-c", "user.name=A", "-c", "user.email=a@example.com", *args]
    env = place.env(GIT_CONFIG_NOSYSTEM=1)
    done = subprocess.run(words, cwd=place.work, env=env, check=True, capture_output=True)
    return done.stdout.decode()


def two_hunks(place):
    """A repository whose one file has two changes."""
    file = place.work / "file"
    git(place, "init", "-q")
    file.write_text("".join(f"{n}\n" for n in range(40)))
    git(place, "add", "file")
    git(place, "commit", "-qm", "first")
    lines = file.read_text().splitlines()
    lines[2], lines[35] = "two changed", "thirty-five changed"
    file.write_text("\n".join(lines) + "\n")
