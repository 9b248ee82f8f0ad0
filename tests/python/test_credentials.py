"""Stores of credentials stay hidden at level high, whichever directory above them is shown; their
harmless neighbours are seen."""

import pytest

from harness.protected_env import USERS_BY_INTERFACE, USERS
from harness.isolation_client import INTERFACES, IsolationOptions

MARK = "ostler-credential-5518"
#: Directories of the home that a setting makes visible.
VISIBLE = (".config", ".local", ".docker", ".cargo", ".gitconfig", ".m2", ".claude-tools", ".ssh", "links")
#: Stores, and beside each a neighbour that is shown.
STORES = {
    ".config/gh/hosts.yml": ".config/harmless/a",
    ".config/gcloud/credentials.db": ".config/harmless/a",
    ".config/github-copilot/apps.json": ".config/harmless/a",
    ".config/google-chrome-beta/Default/Login": ".config/harmless/a",
    ".config/rclone/rclone.conf": ".config/harmless/a",
    ".config/git/credentials": ".config/git/ignore",
    ".local/share/keyrings/login.keyring": ".local/share/icons/a",
    ".local/share/uv/credentials/credentials.toml": ".local/share/uv/tools/a",
    ".local/share/fish/fish_history": ".local/share/fish/a",
    ".docker/config.json": ".docker/daemon.json",
    ".cargo/credentials.toml": ".cargo/config.toml",
    ".m2/settings-security.xml": ".m2/toolchains.xml",
    ".gitconfig": ".cargo/config.toml",
    ".claude-tools/key": ".cargo/config.toml",
    ".ssh/id_ed25519": ".cargo/config.toml",
    # Reached by a link: the store stands below what is shown.
    "links/aws/credentials": "links/harmless",
}
CONFIG = f"[isolation]\nhome_visible = [{', '.join(f'{name!r}' for name in VISIBLE)}]\n".replace("'", '"')
SCRIPT = 'for file in "$@"; do echo "$file: $(cat ~/"$file" 2>&1)"; done'
GIT = f"[user]\n\tname = {MARK}\n[url \"https://me:{MARK}@example.org/\"]\n\tinsteadOf = https://example.org/\n"


def put(home, name, text):
    path = home / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture(scope="module")
def furnished(places):
    """Places with a home full of credentials."""
    made = {}

    def of(who):
        if who not in made:
            place = made[who] = places.of(who)
            home = place.dir / "home"
            for store, neighbour in STORES.items():
                put(home, store, GIT if store == ".gitconfig" else MARK)
                put(home, neighbour, f"seen {neighbour}")
            (home / ".aws").mkdir(exist_ok=True)
            (home / ".aws" / "credentials").unlink(missing_ok=True)
            (home / ".aws").rmdir()
            (home / ".aws").symlink_to(home / "links" / "aws")
            (place.dir / "config" / "ostler" / "config.toml").write_text(CONFIG)
            place.give(place.dir)
            place.shut_down()
        return made[who]

    return of


def read(place, face, level):
    """What a command reads of every store and neighbour, by name."""
    names = [*STORES, *STORES.values()]
    ran = INTERFACES[face](place, ["sh", "-c", SCRIPT, "sh", *names], IsolationOptions(level=level))
    lines = [line for line in ran.text.splitlines() if ": " in line]
    return ran.text, {name: [line for line in lines if line.startswith(f"{name}: ")] for name in names}


@pytest.mark.parametrize(("who", "face"), USERS_BY_INTERFACE)
def test_what_is_shown_of_a_home_shows_no_store(furnished, who, face):
    text, lines = read(furnished(who), face, "high")
    assert MARK not in text, [line for line in text.splitlines() if MARK in line]
    for neighbour in STORES.values():
        assert any("seen" in line for line in lines[neighbour]), (neighbour, text)


@pytest.mark.parametrize("who", USERS)
def test_medium_reads_every_store(furnished, who):
    text, lines = read(furnished(who), "cli", "medium")
    for store in STORES:
        if store != ".gitconfig":
            assert any(MARK in line for line in lines[store]), (store, text)
    assert text.count(MARK) >= len(STORES)
