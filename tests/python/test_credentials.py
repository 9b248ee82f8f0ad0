"""Credential stores stay hidden at level high, whichever directory above them is exposed; harmless neighbours stay
visible."""

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
    # Reached by a link: the store is below the exposed directory.
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
def homes_with_credentials(protected_envs):
    """Installations with a home full of credentials."""
    made = {}

    def of(user):
        if user not in made:
            installation = made[user] = protected_envs.of(user)
            home = installation.dir / "home"
            for store, neighbour in STORES.items():
                put(home, store, GIT if store == ".gitconfig" else MARK)
                put(home, neighbour, f"seen {neighbour}")
            (home / ".aws").mkdir(exist_ok=True)
            (home / ".aws" / "credentials").unlink(missing_ok=True)
            (home / ".aws").rmdir()
            (home / ".aws").symlink_to(home / "links" / "aws")
            (installation.dir / "config" / "ostler" / "config.toml").write_text(CONFIG)
            installation.give(installation.dir)
            installation.shut_down()
        return made[user]

    return of


def read(installation, interface, level):
    """What a command reads of every store and neighbour, by name."""
    names = [*STORES, *STORES.values()]
    result = INTERFACES[interface](installation, ["sh", "-c", SCRIPT, "sh", *names], IsolationOptions(level=level))
    lines = [line for line in result.text.splitlines() if ": " in line]
    return result.text, {name: [line for line in lines if line.startswith(f"{name}: ")] for name in names}


@pytest.mark.parametrize(("user", "interface"), USERS_BY_INTERFACE)
def test_what_is_shown_of_a_home_shows_no_store(homes_with_credentials, user, interface):
    text, lines = read(homes_with_credentials(user), interface, "high")
    assert MARK not in text, [line for line in text.splitlines() if MARK in line]
    for neighbour in STORES.values():
        assert any("seen" in line for line in lines[neighbour]), (neighbour, text)


@pytest.mark.parametrize("user", USERS)
def test_medium_reads_every_store(homes_with_credentials, user):
    text, lines = read(homes_with_credentials(user), "cli", "medium")
    for store in STORES:
        if store != ".gitconfig":
            assert any(MARK in line for line in lines[store]), (store, text)
    assert text.count(MARK) >= len(STORES)
