"""Git repositories for tests."""

import subprocess


def git(installation, *args):
    words = ["git", "-c", "user.name=A", "-c", "user.email=a@example.com", *args]
    env = installation.env(GIT_CONFIG_NOSYSTEM=1)
    done = subprocess.run(words, cwd=installation.work, env=env, check=True, capture_output=True)
    return done.stdout.decode()


def two_hunks(installation):
    """A repository whose one file has two changes."""
    file = installation.work / "file"
    git(installation, "init", "-q")
    file.write_text("".join(f"{n}\n" for n in range(40)))
    git(installation, "add", "file")
    git(installation, "commit", "-qm", "first")
    lines = file.read_text().splitlines()
    lines[2], lines[35] = "two changed", "thirty-five changed"
    file.write_text("\n".join(lines) + "\n")
