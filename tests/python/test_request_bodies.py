"""Messages about the bodies of requests: what is allowed in words of the API, and no more of what was sent than it takes."""

import pytest

from harness.installation import ProblemError

LONG = "x" * 1_900_000
#: Bytes of a whole problem document.
PROBLEM_BYTES = 8_192
ARGV = {"argv": {"program": "true", "args": []}}


@pytest.fixture
def host(installation):
    installation.cli("ps")
    return installation


def refused(host, path="executions", **body):
    with pytest.raises(ProblemError) as error:
        host.rest("POST", f"/api/v1/{path}", body)
    assert error.value.status == 422, error.value
    return error.value.problem


@pytest.mark.parametrize("body", [
    {"stdin": LONG}, {LONG: 1}, {"stdin": {LONG: 1}}, {"env": {LONG: 1}}, {"restart": LONG}, {"isolation": LONG},
    {"command": {LONG: 1}}, {"command": ARGV | {LONG: 1}}, {"command": {"argv": {"program": "true", "args": [], LONG: 1}}},
    {"context": LONG}, {"cwd": LONG},
])
def test_a_problem_quotes_only_a_part_of_a_long_value(host, body):
    problem = refused(host, **{"command": ARGV, "cwd": "/", **body})
    assert len(str(problem)) < PROBLEM_BYTES, len(str(problem))


def test_a_problem_with_a_long_key_still_lists_the_fields(host):
    problem = refused(host, command=ARGV, cwd="/", **{LONG: 1})
    assert "`command`" in problem["message"], problem


def test_a_long_name_of_a_token_is_not_repeated(host):
    name = "n" * 300
    for done in (host.cli("token", "new", name, check=False), host.cli("token", "revoke", name, check=False)):
        text = done.stderr.decode().replace("\n  ", "")
        assert done.returncode == 64 and "n" * 20 in text and "n" * 65 not in text and "…" in text, done
