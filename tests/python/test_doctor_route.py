"""What the daemon's machine can enforce, over REST: the same as `ostler doctor`."""

import json

import pytest

from harness import HttpDaemon
from harness.http_daemon import TOKEN

pytestmark = pytest.mark.anyio


async def test_the_route_says_what_the_command_says(installation):
    installation.cli("ps")
    body = installation.rest("GET", "/api/v1/doctor")
    report = json.loads(installation.cli("doctor", "--json", check=False).stdout)
    assert body["uid"] == report["uid"]
    assert body["high_is_whole"] == report["high_is_whole"]
    levels = {it["name"]: it["holds"] for it in body["checks"] if it["group"] == "levels"}
    assert levels == {it["level"]: it["whole"] for it in report["levels"]}
    attempts = {it["name"]: it["holds"] for it in body["checks"] if it["group"] in ("denied", "allowed")}
    assert attempts == {it["what"]: it["held"] for it in report["witnessed"]}
    installed = {it["name"] for it in body["checks"] if it["group"] == "installation"}
    assert installed == {it["what"] for it in report["checks"]}
    assert not list(installation.dir.rglob("ostler-doctor-*")), "scratch directories are removed"


async def test_a_token_that_sees_its_own_session_only_is_refused(installation):
    daemon = HttpDaemon(installation)
    secret = TOKEN.search(installation.cli("token", "new", "guest").stdout.decode())[0]
    connection = daemon.connect()
    connection.request("GET", "/api/v1/doctor", headers={"Authorization": f"Bearer {secret}"})
    answer = connection.getresponse()
    assert (answer.status, json.load(answer)["code"]) == (403, "permission_error")
    connection.close()
