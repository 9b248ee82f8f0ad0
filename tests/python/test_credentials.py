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


#: Renames what leads to a hidden file, or replaces it by something else; prints `in` where it could.
RENAMES = {
    "the directory": "mv app/private app/p2 && echo in",
    "a directory above it": "mv app a2 && echo in",
    "by a link": "mv app a2 && ln -s a2 app && echo in",
    "the file": "mv app/private/key k2 && echo in",
    "a hard link": "ln app/private/key k2 && echo in",
    "remove what is above": "rm -rf app; test -e app || echo in",
    "the link that the setting names": "mv link l2 && echo in",
    "replace that link": "ln -sfn /tmp link && echo in",
}


@pytest.fixture(scope="module")
def hiding(protected_envs):
    """Installations whose settings hide two files in a workspace, one by a name that has a link."""
    made = {}

    def of(user):
        if user not in made:
            installation = made[user] = protected_envs.of(user)
            workspace = installation.dir / "hiding"
            for name in ("app/private/key", "other/key"):
                put(workspace, name, MARK)
            put(workspace, "app/private/neighbour", "seen")
            (workspace / "link").symlink_to("other")
            paths = [str(workspace / name) for name in ("app/private/key", "link/key")]
            (installation.dir / "config" / "ostler" / "config.toml").write_text(f"[isolation]\nhide = {paths}\n".replace("'", '"'))
            installation.give(installation.dir)
            installation.shut_down()
        return made[user], made[user].dir / "hiding"

    return of


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("rename", RENAMES)
def test_no_rename_reveals_what_settings_hide(hiding, user, rename):
    installation, workspace = hiding(user)
    client, level = INTERFACES["cli"], IsolationOptions(level="high")
    result = client(installation, ["sh", "-c", f"{RENAMES[rename]}; echo seen > app/private/made; ls app/private; echo over"], level, cwd=workspace)
    lines = [line.strip() for line in result.text.splitlines()]
    assert "over" in lines and "in" not in lines and "made" in lines, result.text
    result = client(installation, ["sh", "-c", "find . -type f | while read f; do echo \"$f: $(cat \"$f\")\"; done; echo over"], level, cwd=workspace)
    assert "over" in result.text and "seen" in result.text and MARK not in result.text, result.text


@pytest.mark.parametrize("user", USERS)
def test_configuration_and_state_stay_hidden_in_a_workspace_that_contains_them(protected_envs, user):
    """The configuration decides what the next command may do."""
    installation = protected_envs.of(user)
    installation.cli("run", "--", "true")
    client, level = INTERFACES["cli"], IsolationOptions(level="high")
    script = ("mv ostler o2; echo '[policy]' > ostler/policy.toml; echo x > ostler/config.toml; ls -R; cat ostler/*; echo over")
    for workspace in (installation.dir / "config", installation.state.parent):
        assert (workspace / "ostler").is_dir()
        result = client(installation, ["sh", "-c", script], level, cwd=workspace)
        assert "over" in result.text and "audit.key" not in result.text and "ledger" not in result.text, result.text
        assert not (workspace / "ostler" / "policy.toml").exists()
        assert [path.name for path in workspace.iterdir()] == ["ostler"]
    assert installation.cli("run", "--", "echo", "well").stdout == b"well\n"
