"""Dismissed failed services."""

import pytest

from harness.installation import ProblemError

pytestmark = pytest.mark.anyio

FAILS = ["sh", "-c", "echo 'no such database' >&2; exit 3"]


def failed(installation, name="web"):
    """A service that fails at once."""
    done = installation.cli("service", "start", "--name", name, "--", *FAILS, check=False)
    assert done.returncode != 0, done
    return installation.json("service", "ps", "-a")[0]["execution"]["id"]


def listed(installation, *args):
    return [it["name"] for it in installation.json("service", "ps", *args)]


def test_a_failed_service_is_dismissed_and_found_with_all(installation):
    one = failed(installation)
    failed(installation, "other")
    assert sorted(listed(installation)) == ["other", "web"]
    assert installation.cli("service", "dismiss", "web").stdout == b"web\n"
    assert listed(installation) == ["other"]
    shown = {it["name"]: it for it in installation.json("service", "ps", "--all")}
    assert shown["web"]["dismissed"] and "dismissed" not in shown["other"], shown
    assert b"no such database" in installation.cli("service", "why", "web").stdout
    installation.cli("service", "dismiss", one)
    installation.kill_daemon()
    assert listed(installation) == ["other"], "also under the next daemon"
    assert sorted(listed(installation, "--all")) == ["other", "web"]


def test_an_older_end_does_not_come_back_and_a_new_one_does(installation):
    failed(installation)
    failed(installation)
    installation.cli("service", "dismiss", "web")
    assert listed(installation) == []
    failed(installation)
    assert listed(installation) == ["web"], "it failed anew"


def test_what_is_defined_stays_listed(installation):
    installation.work.joinpath("ostler.toml").write_text(
        '[services.web]\ncommand = ["sh", "-c", "exit 3"]\n'
    )
    installation.cli("service", "up", check=False)
    assert listed(installation) == ["web"]
    installation.cli("service", "dismiss", "web")
    assert listed(installation) == []
    assert [it["status"] for it in installation.rest("GET", f"/api/v1/services?cwd={installation.work}")["services"]] == ["stopped"]
    assert listed(installation, "--all") == ["web"]


def test_only_what_ended_is_dismissed(installation):
    installation.cli("service", "start", "--name", "web", "--", "sleep", "300")
    refused = installation.cli("service", "dismiss", "web", check=False)
    assert refused.returncode != 0 and b"has not ended" in refused.stderr, refused
    unknown = installation.cli("service", "dismiss", "nobody", check=False)
    assert b"nobody" in unknown.stderr, unknown
    assert listed(installation) == ["web"]


async def test_an_agent_dismisses(installation):
    async with installation.agent(args=["--tools", "core,service"]) as agent:
        await agent.call("service", action="start", name="web", command=FAILS)
        names = (await agent.must("service", action="list")).structured["services"]
        assert [it["name"] for it in names] == ["web"]
        await agent.must("service", action="dismiss", name="web")
        assert (await agent.must("service", action="list")).structured["services"] == []
        assert (await agent.must("service", action="status", name="web")).structured["name"] == "web"
    with pytest.raises(ProblemError) as refused:
        installation.rest("POST", "/api/v1/services/nobody/dismiss")
    assert refused.value.status == 404
