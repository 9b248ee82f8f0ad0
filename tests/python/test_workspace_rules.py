"""The rules that workspaces bring, `.ostler/policy.toml`, and who may write them."""

import os

import pytest

from harness.installation import is_root
from test_policy import installation_with_rules  # noqa: F401

PRIVATE = "a-line-that-nobody-may-see"
OTHER_USER = 65533


def rules(directory, program):
    """A file of rules in a directory that deny a program."""
    file = directory / ".ostler" / "policy.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f'[[rule]]\nid = "no"\nprefix = ["{program}"]\ndecision = "deny"\njustification = "{program} is not for this"\n'
                    f'match = ["{program} x"]\nnot_match = ["true"]\n')
    return file


def refusal(installation, directory, *words):
    done = installation.cli("run", "--cwd", str(directory), "--", *words, check=False)
    assert done.returncode in (0, 77), done
    return done.stderr.decode() if done.returncode else None


@pytest.mark.parametrize("link", ["file", "directory"])
def test_a_link_is_not_followed_and_nothing_of_its_target_is_quoted(installation_with_rules, link):
    installation = installation_with_rules
    private = installation.dir / "private"
    private.mkdir()
    (private / "policy.toml").write_text(f"{PRIVATE} = no toml\n")
    own = installation.work / ".ostler"
    if link == "directory":
        own.symlink_to(private)
    else:
        own.mkdir()
        (own / "policy.toml").symlink_to(private / "policy.toml")
    message = refusal(installation, installation.work, "true")
    assert "symbolic link" in message and PRIVATE not in message, message


def test_a_file_below_does_not_end_the_rules_above(installation_with_rules):
    """Also with the same ids: the files know nothing of each other."""
    installation = installation_with_rules
    below = installation.work / "below"
    rules(installation.work, "uname")
    rules(below, "arch")
    assert "uname is not for this" in refusal(installation, below, "uname", "-a")
    assert "arch is not for this" in refusal(installation, below, "arch")
    assert refusal(installation, installation.work, "arch") is None
    (below / ".ostler" / "policy.toml").write_text("")
    assert "uname is not for this" in refusal(installation, below, "uname", "-a")


@pytest.mark.skipif(not is_root(), reason="files of another user are made as root")
def test_a_file_of_another_user_has_no_effect(installation_with_rules):
    installation = installation_with_rules
    file = rules(installation.work, "uname")
    os.chown(file, OTHER_USER, OTHER_USER)
    file.write_text("= no toml")
    assert refusal(installation, installation.work, "uname") is None
    below = installation.work / "theirs"
    below.mkdir(mode=0o755)
    os.chown(below, OTHER_USER, OTHER_USER)
    assert "policy.toml" in refusal(installation, below, "true"), "of the owner of the directory"


def test_a_question_says_what_a_start_asks_for(installation_with_rules):
    """What a person agrees to is shown: also the sandbox, the network, secrets and the environment."""
    installation = installation_with_rules
    extra = installation.dir / "extra"
    extra.mkdir()
    env = {"OSTLER_SECRET_DEPLOY_KEY": "s3cr3tVALUE-42"}
    plain = installation.cli("run", "--", "touch", "x", check=False, env=env)
    full = installation.cli("run", "--isolation", "high", "--network", "full", "--secret", "DEPLOY_KEY", "--write", str(extra), "--",
                            "touch", "x", check=False, env=env)
    assert (plain.returncode, full.returncode) == (77, 77), (plain, full)
    questions = [it["message"] for it in installation.json("interactions")]
    assert len(questions) == 2, questions
    asked = next(it for it in questions if "DEPLOY_KEY" in it)
    for part in ("isolation high", "network full", "secrets DEPLOY_KEY", f"also writes {extra}"):
        assert part in asked, asked
    assert "s3cr3t" not in str(questions)
