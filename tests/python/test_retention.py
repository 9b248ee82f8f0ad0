"""Retention: what happens to the others where one ended execution cannot be removed."""

import subprocess

import pytest

from harness import until
from harness.installation import ProblemError, is_root


def run_one(installation):
    body = {"command": {"argv": {"program": "true", "args": []}}, "cwd": str(installation.work)}
    return installation.rest("POST", "/api/v1/executions", body)


def is_known(installation, id):
    try:
        installation.rest("GET", f"/api/v1/executions/{id}")
    except ProblemError as error:
        assert error.status == 404, error
        return False
    return True


@pytest.mark.skipif(not is_root(), reason="mounts")
def test_one_that_cannot_be_removed_holds_up_no_other(installation):
    settings = installation.dir / "config" / "ostler" / "config.toml"
    settings.parent.mkdir(exist_ok=True)
    settings.write_text("[retention]\ncommand_seconds = 3\nothers_seconds = 3\nshell_seconds = 3\n")
    installation.cli("ps")
    blocked = run_one(installation)
    directory = installation.state / "executions" / blocked["uuid"]
    until((directory / "exit").exists, 20, "its end")
    # The directory of a mount cannot be renamed.
    subprocess.run(["mount", "--bind", directory, directory], check=True)
    try:
        log = installation.state / "daemon.log"
        until(lambda: blocked["uuid"] in log.read_text(), 20, "the report that it could not be removed")
        others = [run_one(installation)["id"] for _ in range(3)]
        until(lambda: not any(is_known(installation, id) for id in others), 20, "the removal of the others")
        assert is_known(installation, blocked["id"])
        assert "could not be removed" in log.read_text()
    finally:
        subprocess.run(["umount", directory], check=True)
