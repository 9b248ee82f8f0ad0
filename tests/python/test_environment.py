"""The environment of an execution over REST: its variables, and secrets without their values."""

import pytest

from harness.installation import ProblemError

pytestmark = pytest.mark.anyio

VALUE = "s3cr3t-v4lu3-4711"


def start(installation, **options):
    body = {"command": {"argv": {"program": "sleep", "args": ["600"]}}, "cwd": str(installation.work), **options}
    installation.cli("ps")
    return installation.rest("POST", "/api/v1/executions", body)["id"]


async def test_variables_are_listed_and_secrets_are_not_told(make_installation):
    installation = make_installation()
    plain = installation.env
    installation.env = lambda **more: plain(**{"OSTLER_SECRET_DEPLOY": VALUE, **more})
    env = [["MODE", "fast"], ["API_TOKEN", VALUE], ["DATABASE_URL", f"postgres://ann:{VALUE}@db.test/x"]]
    id = start(installation, env=env, secrets=["DEPLOY"])
    answer = installation.rest("GET", f"/api/v1/executions/{id}/environment")
    assert answer == {
        "inherit": False,
        "variables": [
            {"name": "API_TOKEN"},
            {"name": "DATABASE_URL", "value": "postgres://ann:***@db.test/x"},
            {"name": "DEPLOY"},
            {"name": "MODE", "value": "fast"},
        ],
    }
    assert VALUE not in str(answer)


async def test_an_unknown_execution_has_none(make_installation):
    installation = make_installation()
    start(installation)
    with pytest.raises(ProblemError, match="process_not_found"):
        installation.rest("GET", "/api/v1/executions/00000000/environment")


async def test_the_terminal_and_owner_of_an_execution(make_installation):
    installation = make_installation()
    piped = installation.rest("GET", f"/api/v1/executions/{start(installation)}")
    assert "terminal" not in piped and piped["principal"]
    id = start(installation, pty={"cols": 100, "rows": 30})
    assert installation.rest("GET", f"/api/v1/executions/{id}")["terminal"] == {"cols": 100, "rows": 30}


async def test_what_is_started_over_http_has_the_environment_of_the_settings(installation):
    (installation.dir / "config" / "ostler").mkdir(parents=True, exist_ok=True)
    (installation.dir / "config" / "ostler" / "config.toml").write_text("[environment]\nkeep = ['KEPT']\n")
    plain = installation.env
    installation.env = lambda **more: plain(**{"KEPT": "by the settings", "OTHER": "of the daemon", **more})
    id = start(installation, command={"argv": {"program": "env", "args": []}}, env=[["GIVEN", "by the request"]])
    installation.cli("wait", id)
    variables = dict(line.split("=", 1) for line in installation.cli("logs", "--no-time", id).stdout.decode().splitlines())
    assert variables["KEPT"] == "by the settings" and variables["GIVEN"] == "by the request", variables
    assert variables["HOME"] == plain()["HOME"] and variables["PATH"], variables
    assert "OTHER" not in variables and "OSTLER_STATE_DIR" not in variables, variables
