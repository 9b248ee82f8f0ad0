"""Settings of a command are in force, or it is said that they are not: flags reach a daemon that is started on demand;
where one runs with others, a flag is refused and another source is reported."""

import pytest

from harness.wire import RawMcpClient

MINIMUM = ["--set", "isolation.minimum=medium"]


def level(installation, *flags, **options):
    """Runs a command at the lowest level; returns what became of it."""
    return installation.cli(*flags, "run", "--isolation", "basic", "--", "true", check=False, **options)


def test_a_flag_reaches_the_daemon_that_is_started_on_demand(installation):
    refused = level(installation, *MINIMUM)
    assert refused.returncode == 64 and b"no level below 'medium'" in refused.stderr, refused
    # It is that of the daemon, whoever asks next.
    refused = level(installation)
    assert refused.returncode == 64 and b"no level below 'medium'" in refused.stderr, refused


def test_a_flag_of_an_agent_reaches_it_too(installation):
    with RawMcpClient(installation, ["--tools", "shell", *MINIMUM]) as wire:
        wire.shake()
        text = wire.text(wire.call("execute_shell", command="true", isolation="basic"))
        assert "medium" in text, text


def test_a_flag_that_the_running_daemon_does_not_have_is_refused(installation):
    assert level(installation).returncode == 0
    refused = level(installation, *MINIMUM)
    assert refused.returncode == 78, refused
    assert b"isolation.minimum = medium (flag --set) is not in force" in refused.stderr and b"shutdown" in refused.stderr, refused
    # What is so already is no difference; what is of the client holds for it.
    assert level(installation, "--set", "isolation.minimum=basic").returncode == 0
    assert installation.cli("--set", "mcp.tools=shell", "ps").returncode == 0
    installation.cli(*MINIMUM, "shutdown")
    refused = level(installation, *MINIMUM)
    assert refused.returncode == 64, refused


@pytest.mark.parametrize("source", ["variable", "file", "config"])
def test_another_source_that_the_running_daemon_does_not_have_is_reported(installation, source):
    assert level(installation).stderr == b""
    directory = installation.dir / "config" / "ostler"
    directory.mkdir(parents=True, exist_ok=True)
    flags, options = [], {}
    if source == "variable":
        options["env"] = {"OSTLER_ISOLATION_MINIMUM": "medium"}
    else:
        file = directory / "config.toml" if source == "file" else installation.work / "other.toml"
        file.write_text("[isolation]\nminimum = 'medium'\n")
        installation.give(file)
        flags = [] if source == "file" else ["--config", "other.toml"]
    done = level(installation, *flags, **options)
    assert done.returncode == 0, done
    text = done.stderr.decode()
    assert "isolation.minimum = medium" in text and "not in force" in text and "has basic" in text, text


def test_a_configuration_beside_a_parent_directory_is_usable_at_level_high(installation):
    (installation.work / "sub").mkdir()
    (installation.work / "config.toml").write_text("")
    installation.give(installation.work)
    done = installation.cli(
        "--config", "sub/../config.toml", "run", "--isolation", "high", "--", "true", check=False)
    assert b"hidden path" not in done.stderr, done
