"""A limit that no command gets on this host is reported once; one that a command requests, each time."""

import pytest

from harness.installation import is_root

pytestmark = pytest.mark.anyio


@pytest.fixture
def no_cgroups(make_installation, unprivileged_user):
    """An installation of an ordinary user without cgroups; skipped where this user has some."""
    installation = make_installation(unprivileged_user)
    pid = installation.cli("run", "-d", "true").stdout.decode().strip()
    lacks = installation.json("info", pid)["isolation"]["missing"]
    installation.shut_down()
    if not any(it["ability"] == "own_cgroup" for it in lacks):
        assert not is_root(), "an ordinary user has cgroups here"
        pytest.skip("cgroups are delegated to us")
    return installation


def warnings(installation, *words):
    """Lines of warning of one run at the prompt."""
    lines = installation.cli("run", *words).stderr.decode().splitlines()
    return [line for line in lines if "WITHOUT" in line]


async def test_missing_cgroups_are_reported_once_per_daemon(no_cgroups):
    first = warnings(no_cgroups, "true")
    assert len(first) == 1 and "own_cgroup" in first[0], first
    assert warnings(no_cgroups, "true") == []
    degraded = warnings(no_cgroups, "--memory", "64m", "--allow-degraded", "memory_limit", "true")
    assert len(degraded) == 1 and "memory_limit" in degraded[0] and "own_cgroup" not in degraded[0], degraded
    async with no_cgroups.agent() as agent:
        reply = await agent.must("exec", command=["true"])
        assert "cgroup" not in reply.text, reply
        degraded = await agent.must(
            "exec", command=["true"], limits={"memory": "64m"}, allow_degraded=["memory_limit"]
        )
        assert "memory_limit" in degraded.text, degraded
    info = no_cgroups.json("ps", "-a")[0]
    assert any(it["ability"] == "own_cgroup" for it in info["isolation"]["missing"]), "info says it"
    assert b"own_cgroup" in no_cgroups.cli("doctor", check=False).stdout
    no_cgroups.shut_down()
    async with no_cgroups.agent() as agent:
        assert "own_cgroup" in (await agent.must("exec", command=["true"])).text
        assert "cgroup" not in (await agent.must("exec", command=["true"])).text
