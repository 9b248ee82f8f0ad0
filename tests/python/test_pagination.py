"""Lists are paged over every interface: counted, continued by cursors, nothing twice, nothing omitted."""

import http.client
import re

import pytest

pytestmark = pytest.mark.anyio

#: More than any window holds.
COUNT = 500


def define(installation, count=COUNT):
    """This many services, each with a long command; returns their names."""
    names = [f"service-{number:03}" for number in range(count)]
    for name in names:
        words = {"argv": {"program": "sleep", "args": ["300", "x" * 150]}}
        installation.rest("PUT", f"/api/v1/services/{name}", {"command": words, "cwd": str(installation.work)})
    return names


@pytest.fixture(scope="module")
def many(shared_installation):
    shared_installation.cli("ps")
    names = define(shared_installation)
    shared_installation.cli("service", "start", "--no-wait", "--name", "zz-runs", "--", "sh", "-c", "sleep 300")
    return sorted(names)


async def test_services_over_mcp(shared_installation, many):
    async with shared_installation.agent() as agent:
        mine = await agent.must("service", action="start", name="zz-mine", command=["sleep", "300"], wait_ms=0)
        shown, cursor, left = [], {}, COUNT + 1
        while cursor is not None:
            reply = await agent.must("service", action="list", cwd=str(shared_installation.work), **cursor)
            page = reply.structured
            assert (page["total"], page["living"]) == (COUNT + 1, 1), page
            shown += [service["name"] for service in page["services"]]
            left -= len(page["services"])
            assert page.get("omitted", 0) == left, (page["omitted"], left)
            cursor = {"cursor": page["next"]} if left else None
        assert shown == ["zz-mine", *many], f"what lives comes first: {mine}"
        bad = await agent.call("service", action="list", cursor="x")
        assert bad.code == "value_error" and "cursor" in bad.text, bad
        # The others' lists are without it.
        await agent.must("service", action="stop", name="zz-mine", force=True)
        shared_installation.rest("DELETE", f"/api/v1/executions/{mine.structured['id']}")


async def test_services_over_rest(shared_installation, many):
    shown, query = [], f"limit=100&cwd={shared_installation.work}"
    for _ in range(6):
        page = shared_installation.rest("GET", f"/api/v1/services?{query}")
        assert page["total"] == COUNT + 1
        assert len(page["services"]) <= 100
        shown += [service["name"] for service in page["services"]]
        query = f"limit=100&cwd={shared_installation.work}&cursor={page.get('next')}"
    assert "next" not in page
    assert shown == ["zz-runs", *many]
    with pytest.raises(AssertionError, match="cursor"):
        shared_installation.rest("GET", "/api/v1/services?cursor=x")


async def test_services_on_the_command_line(shared_installation, many):
    done = shared_installation.cli("service", "ps", "--all", "--quiet", "-n", "20")
    assert done.stdout.decode().split() == ["zz-runs", *many[:19]]
    assert f"20 of {COUNT + 1} are shown; -n {COUNT + 1} shows all" in done.stderr.decode()
    done = shared_installation.cli("service", "ps", "--all", "--quiet")
    assert done.stdout.decode().split() == ["zz-runs", *many]
    assert done.stderr == b""


def processes(installation, query):
    """`GET /api/processes`: the ids, the total and the query of the next window."""
    connection = installation.connect()
    connection.request("GET", f"/api/processes?{query}", headers={"Host": "localhost"})
    answer = connection.getresponse()
    assert isinstance(answer, http.client.HTTPResponse) and answer.status == 200, answer.read()
    ids = re.findall(rb'"pid":"(\w+)"', answer.read())
    link = re.fullmatch(r'<\?(.*)>; rel="next"', answer.headers.get("Link", ""))
    connection.close()
    return ids, int(answer.headers["X-Total-Count"]), link and link[1]


async def test_processes_of_the_web_interface(installation):
    for number in range(25):
        installation.cli("run", "--label", "odd" if number % 2 else "even", "--", "true")
    whole, total, following = processes(installation, "")
    assert (len(whole), total, following) == (25, 25, None)
    odd, total, following = processes(installation, "labels=odd&limit=5")
    assert (len(odd), total) == (5, 12)
    while following:
        assert "labels=odd" in following, "the same question"
        more, total, following = processes(installation, following)
        odd += more
        assert total == 12
    assert len(odd) == len(set(odd)) == 12
    assert odd == [one for one in whole if one in odd], "newest first, as without a window"


async def test_executions_over_rest(installation):
    ids = [installation.cli("run", "-d", "--", "true").stdout.decode().strip() for _ in range(7)]
    shown, query = [], "limit=3"
    for _ in range(3):
        page = installation.rest("GET", f"/api/v1/executions?{query}")
        assert page["total"] == 7
        shown += [one["id"] for one in page["executions"]]
        query = f"limit=3&cursor={page.get('next')}"
    assert "next" not in page and shown == ids[::-1]
