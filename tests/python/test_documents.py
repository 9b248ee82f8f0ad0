"""What documents promise a reader about themselves."""

import re
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[2]

#: The lines of a screen.
SCREEN = 24


def test_the_first_screen_says_what_it_is_and_shows_it_and_how_to_start_and_test_it():
    screen = "\n".join((ROOT / "README.md").read_text().splitlines()[:SCREEN])
    title, claim = re.match(r"# (\w+)\n\n\*\*(.+?)\*\*", screen, re.DOTALL).groups()
    assert title == "Ostler" and "commands for AI agents" in claim
    [(words, path)] = re.findall(r"!\[([^\]]+)\]\(([^)]+)\)", screen)
    assert len(words) > 20, "who does not see the picture reads what it shows"
    assert ElementTree.parse(ROOT / path).getroot().tag.endswith("svg")
    [block] = re.findall(r"```console\n(.*?)```", screen, re.DOTALL)
    assert re.findall(r"^\$ ([^#]+?) *#", block, re.MULTILINE) == ["cargo run --release -- serve", "cargo xtask test"]
    assert "xtask = " in (ROOT / ".cargo" / "config.toml").read_text()


def source(name):
    """The file of a module, such as `backend_local::shim::channels`; the library of a crate."""
    crate, *modules = name.split("::")
    directory = ROOT / "crates" / crate.replace("_", "-") / "src"
    within = directory.joinpath(*modules)
    files = [within.with_suffix(".rs"), within / "mod.rs"] if modules else [directory / "lib.rs", directory / "main.rs"]
    return [file for file in files if file.is_file()]


def test_the_platform_interface_is_named_and_what_other_systems_lack_is_listed():
    text = (ROOT / "docs" / "wsl2.md").read_text()
    section = text.split("## The platform interface\n")[1].split("\n## ")[0]
    interface, path = re.search(r"the trait `(\w+)` \(`([^`]+)`\)", section).groups()
    assert f"pub trait {interface}" in (ROOT / path).read_text()
    rows = re.findall(r"^\| (`.+?) \| (.+?) \|$", section, re.MULTILINE)
    assert len(rows) >= 8
    for names, features in rows:
        assert features
        first, *others = re.findall(r"`([^`]+)`", names)
        parent = f"{first}::" if "::" not in first else first.rpartition("::")[0] + "::"
        for name in [first, *(other if "::" in other else parent + other for other in others)]:
            assert source(name), f"{name} is no module of the code"
    for name in re.search(r"Portable without changes: (.+?)\.\n", section, re.DOTALL)[1].split(","):
        for crate in re.findall(r"`(\w+)`", name):
            assert source(crate), crate
    for system in ("macOS", "Windows"):
        [paragraph] = re.findall(rf"\*\*{system}\*\* has (.+?)(?:\n\n|\Z)", section, re.DOTALL)
        assert re.search(r"\blacks\b|\bno\b", paragraph), system
    assert "docs/wsl2.md" in (ROOT / "README.md").read_text()
