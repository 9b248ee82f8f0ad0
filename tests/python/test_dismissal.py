"""Failed services that nobody wants to hear of any more."""

import pytest

from harness.installation import ProblemError

pytestmark = pytest.mark.anyio

FAILS = ["sh", "-c", "echo 'no such database' >&2; exit 3"]


def failed(place, name="web"):
    """A service that fails at once."""
    done = place.cli("service", "start", "--name", name, "--", *FAILS, check=False)
    assert done.returncode != 0, done
    return place.json("service", "ps", "-a")[0]["execution"]["id"]


def listed(place, *args):
    return [it["name"] for it in place.json("service", "ps", *args)]


def test_a_failed_service_is_dismissed_and_found_with_all(place):
    one = failed(place)
    failed(place, "other")
    assert sorted(listed(place)) == ["other", "web"]
    assert place.cli("service", "dismiss", "web").stdout == b"web\n"
    assert listed(place) == ["other"]
    shown = {it["name"]: it for it in place.json("service", "ps", "--all")}
    assert shown["web"]["dismissed"] and "dismissed" not in shown["other"], shown
    assert b"no such database" in place.cli("service", "why", "web").stdout
    place.cli("service", "dismiss", one)
    place.kill_daemon()
    assert listed(place) == ["other"], "also under the next daemon"
    assert sorted(listed(place, "--all")) == ["other", "web"]


def test_an_older_end_does_not_come_back_and_a_new_one_does(place):
    failed(place)
    failed(place)
    place.cli("service", "dismiss", "web")
    assert listed(place) == []
    failed(place)
    assert listed(place) == ["web"], "it failed anew"


def test_what_is_defined_stays_listed(place):
    place.work.joinpath("ostler.toml").write_text(
        '[services.web]\ncommand = ["sh", "-c", "exit 3"]\n'
    )
    place.cli("service", "up", check=False)
    assert listed(place) == ["web"]
    place.cli("service", "dismiss", "web")
    assert listed(place) == []
    assert [it["status"] for it in place.rest("GET", f"/api/v1/services?cwd={place.work}")["services"]] == ["stopped"]
    assert listed(place, "--all") == ["web"]


def test_only_what_ended_is_dismissed(place):
    place.cli("service", "start", "--name", "web", "--", "sleep", "300")
    refused = place.cli("service", "dismiss", "web", check=False)
    assert refused.returncode != 0 and b"has not ended" in refused.stderr, refused
    unknown = place.cli("service", "dismiss", "nobody", check=False)
    assert b"nobody" in unknown.stderr, unknown
    assert listed(place) == ["web"]


async def test_an_agent_dismisses(place):
    async with place.agent(args=["--tools", "core,service"]) as agent:
        await agent.call("service", action="start", name="web", command=FAILS)
        names = (await agent.must("service", action="list")).structured["services"]
        assert [it["name"] for it in names] == ["web"]
        await agent.must("service", action="dismiss", name="web")
        assert (await agent.must("service", action="list")).structured["services"] == []
        assert (await agent.must("service", action="status", name="web")).structured["name"] == "web"
    with pytest.raises(ProblemError) as refused:
        place.rest("POST", "/api/v1/services/nobody/dismiss")
    assert refused.value.status == 404
