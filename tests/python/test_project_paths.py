"""Scopes of tokens for projects that are paths: symbolic links, slashes at the end, and relative paths."""

import json
import os
from urllib.parse import quote

import pytest

from harness import HttpDaemon, Installation
from harness.http_daemon import ask

TEMPLATE = '[[template]]\nid = "of_it"\ncommand = "echo"\nargs_template = ["hi"]\nrequired_permissions = ["project:read"]\n'


@pytest.fixture(scope="module")
def served(binary):
    """A daemon, a directory with a service and a template, a link to it, and tokens that name it in several ways."""
    installation = Installation(binary)
    try:
        root = installation.work.resolve()
        real, link = root / "real", root / "link"
        (real / ".ostler" / "templates").mkdir(parents=True)
        (real / ".ostler" / "templates" / "a.toml").write_text(TEMPLATE)
        (real / "ostler.toml").write_text('[services.of_it]\ncommand = "sleep 100"\n')
        (root / "other").mkdir()
        os.symlink(real, link)
        daemon = HttpDaemon(installation)
        daemon.root, daemon.secrets = root, {}
        for name, project in (("link", f"{link}"), ("slash", f"{real}/"), ("real", f"{real}")):
            words = ("--scope", "sessions:all", "--scope", f"project:write={project}", "--json")
            daemon.secrets[name] = json.loads(installation.cli("token", "new", name, *words).stdout)["token"]
        yield daemon
        daemon.end()
    finally:
        installation.close()


@pytest.mark.parametrize("directory", ["link", "real", "real/"])
@pytest.mark.parametrize("name", ["link", "slash", "real"])
def test_a_token_sees_the_directory_of_its_project_by_every_path(served, name, directory):
    cwd = f"{served.root}/{directory}"
    body = {"command": {"argv": {"program": "npm", "args": ["start"]}}, "cwd": cwd}
    assert ask(served, name, "POST", "/api/v1/detect", body)[0] == 200
    status, services = ask(served, name, "GET", f"/api/v1/services?cwd={quote(cwd)}")
    assert status == 200 and [it["name"] for it in services["services"]] == ["of_it"], services
    status, templates = ask(served, name, "GET", f"/api/v1/command-templates?cwd={quote(cwd)}")
    assert status == 200 and "of_it" in [it["id"] for it in templates["templates"]], templates
    body["cwd"] = f"{served.root}/other"
    assert ask(served, name, "POST", "/api/v1/detect", body)[0] == 403


def test_a_token_for_a_link_sees_what_runs_in_the_directory(served):
    # Clients whose project is their directory record it without links.
    path = f"/api/v1/projects/{quote(f'{served.root}/real', safe='')}/execute"
    assert ask(served, "real", "POST", path, {"command": "true", "interactive": False})[0] == 202
    for name in ("link", "real"):
        status, seen = ask(served, name, "GET", "/api/v1/executions")
        assert status == 200 and f"{served.root}/real" in [it.get("project") for it in seen["executions"]], (name, seen)
    listed = {it["name"]: it["scopes"] for it in json.loads(served.installation.cli("token", "list", "--json").stdout)}
    assert listed["link"][-2:] == [f"project:write={served.root}/link", f"project:write={served.root}/real"], listed
    assert listed["real"].count(f"project:write={served.root}/real") == 1, listed


def test_slashes_at_the_end_are_no_part_of_a_projects_name(served):
    listed = json.loads(served.installation.cli("token", "list", "--json").stdout)
    assert {it["name"]: it["scopes"][-1] for it in listed}["slash"] == f"project:write={served.root}/real"
    path = f"/api/v1/projects/{quote(f'{served.root}/real', safe='')}/execute"
    assert ask(served, "slash", "POST", path, {"command": "true", "interactive": False})[0] == 202
    path = f"/api/v1/projects/{quote(f'{served.root}/link', safe='')}/execute"
    assert ask(served, "link", "POST", path, {"command": "true", "interactive": False})[0] == 202


@pytest.mark.parametrize("project", [".", "..", "a/b", "./a", "/w/../a"])
def test_a_new_token_with_a_relative_path_is_refused(served, project):
    refused = served.installation.cli("token", "new", "relative", "--scope", f"project:write={project}", check=False)
    assert refused.returncode != 0 and b"allowed: an absolute path, or a name without '/'" in refused.stderr, refused
    assert "relative" not in [it["name"] for it in json.loads(served.installation.cli("token", "list", "--json").stdout)]
