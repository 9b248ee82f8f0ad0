"""What no command gets on this host is told once, what a command asked for each time."""

import pytest

from harness.installation import is_root

pytestmark = pytest.mark.anyio


@pytest.fixture
def bare(make_place, ordinary_user):
    """A place of an ordinary user, who has no cgroups; none where this one has."""
    place = make_place(ordinary_user)
    pid = place.cli("run", "-d", "true").stdout.decode().strip()
    lacks = place.json("info", pid)["isolation"]["missing"]
    place.shut_down()
    if not any(it["ability"] == "own_cgroup" for it in lacks):
        assert not is_root(), "an ordinary user has cgroups here"
        pytest.skip("cgroups are delegated to us")
    return place


def told(place, *words):
    """Lines of warning of one run at the prompt."""
    lines = place.cli("run", *words).stderr.decode().splitlines()
    return [line for line in lines if "WITHOUT" in line]


async def test_missing_cgroups_are_told_once_per_daemon(bare):
    first = told(bare, "true")
    assert len(first) == 1 and "own_cgroup" in first[0], first
    assert told(bare, "true") == []
    asked = told(bare, "--memory", "64m", "--allow-degraded", "memory_limit", "true")
    assert len(asked) == 1 and "memory_limit" in asked[0] and "own_cgroup" not in asked[0], asked
    async with bare.agent() as agent:
        reply = await agent.must("exec", command=["true"])
        assert "cgroup" not in reply.text, reply
        asked = await agent.must(
            "exec", command=["true"], limits={"memory": "64m"}, allow_degraded=["memory_limit"]
        )
        assert "memory_limit" in asked.text, asked
    info = bare.json("ps", "-a")[0]
    assert any(it["ability"] == "own_cgroup" for it in info["isolation"]["missing"]), "info says it"
    assert b"own_cgroup" in bare.cli("doctor", check=False).stdout
    bare.shut_down()
    async with bare.agent() as agent:
        assert "own_cgroup" in (await agent.must("exec", command=["true"])).text
        assert "cgroup" not in (await agent.must("exec", command=["true"])).text
