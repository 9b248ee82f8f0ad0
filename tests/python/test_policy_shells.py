"""Integrated shells under a command policy."""

import re

RULES = """
default = "allow"

[[rule]]
id = "shells"
prefix = [["bash", "zsh", "fish"]]
decision = "ask"
justification = "someone looks first"
match = ["bash"]
not_match = ["true"]
"""


def with_rules(installation):
    file = installation.dir / "config" / "ostler" / "policy.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(RULES)


def test_an_approved_shell_starts(installation):
    """What integrates a shell is not the caller's, and differs for each: no part of a question or of what an approval covers."""
    with_rules(installation)
    asked = installation.cli("shell", "-d", check=False)
    assert asked.returncode == 77, asked
    question = installation.json("approvals")[0]
    text = str(question)
    assert "OSTLER_SHELL" not in text, text
    approval = re.search(rb"\bi\d+\b", asked.stderr).group().decode()
    installation.cli("approve", approval)
    assert installation.cli("shell", "-d", "--approval", approval).returncode == 0
