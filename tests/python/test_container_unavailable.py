"""Containers where no engine is: every interface says which sockets were tried, and nothing is started."""

import pytest

from harness.installation import ProblemError

pytestmark = pytest.mark.anyio


@pytest.fixture
def without_engine(make_installation):
    """An installation whose container engine is away; and its socket."""
    installation = make_installation()
    socket = str(installation.dir / "away.sock")
    config = installation.dir / "config" / "ostler"
    config.mkdir(parents=True)
    (config / "config.toml").write_text(f'[container]\nsocket = "{socket}"\nimage = "work"\n')
    return installation, socket


#: Tools that take an isolation level, by profile, with arguments that are complete but for it.
TOOLS = {
    "exec": ("core", {"command": "true"}),
    "service": ("core", {"action": "start", "command": "true", "name": "web"}),
    "execute_shell": ("shell", {"command": "true"}),
    "command_execute": ("command", {"command": "true"}),
    "command_bg_start": ("command", {"command": "true", "description": "d"}),
    "pty_start": ("pty", {}),
}


@pytest.mark.parametrize("tool", TOOLS)
async def test_tools_name_the_socket(without_engine, tool):
    installation, socket = without_engine
    profile, arguments = TOOLS[tool]
    if profile == "command":
        arguments = arguments | {"directory": str(installation.work)}
    elif profile == "pty":
        arguments = arguments | {"command": ["true"]}
    async with installation.agent(args=["--tools", profile]) as agent:
        arguments = {"options": {"isolation": "container"}} | arguments if tool == "service" else {"isolation": "container"} | arguments
        reply = await agent.call(tool, **arguments)
        assert reply.is_error and reply.code == "environment_error" and socket in reply.text, reply
        assert installation.executions() == []


def test_rest_names_the_socket(without_engine):
    installation, socket = without_engine
    installation.cli("ps")
    command = {"argv": {"program": "true", "args": []}}
    body = {"command": command, "cwd": str(installation.work)}
    for path, fields in (
        ("executions", {"isolation": "container"}),
        ("executions", {"backend": "container", "container": {"image": "other", "network": "none"}}),
        ("executions", {"isolation": "container", "restart": {"always": {"max": 1}}}),
    ):
        with pytest.raises(ProblemError) as refused:
            installation.rest("POST", f"/api/v1/{path}", body | fields)
        assert refused.value.code == "environment_error" and socket in str(refused.value), refused.value
    shell = {"kind": "bash", "cwd": str(installation.work), "isolation": "container"}
    context = installation.rest("POST", "/api/v1/contexts", {"project": "demo", "isolation": "container"})
    inside = {"command": command, "cwd": context["directory"], "context": context["id"]}
    for path, request in (("shells", shell), ("executions", inside)):
        with pytest.raises(ProblemError) as refused:
            installation.rest("POST", f"/api/v1/{path}", request)
        assert refused.value.code == "environment_error" and socket in str(refused.value), refused.value
    assert installation.executions() == []


def test_the_command_line_names_the_socket(without_engine):
    installation, socket = without_engine
    for words in (["run", "--isolation", "container", "true"], ["run", "--image", "other", "true"], ["image", "ls"], ["image", "pull", "x"]):
        done = installation.cli(*words, check=False)
        assert done.returncode == 78 and socket in done.stderr.decode(), done
    assert "container" in installation.cli("doctor", check=False).stdout.decode()
    assert installation.executions() == []


def test_a_service_of_a_file_names_the_socket(without_engine):
    installation, socket = without_engine
    text = '[services.web]\ncommand = "true"\nlevel = "container"\ncontainer = { network = "none" }\n'
    (installation.work / "ostler.toml").write_text(text)
    done = installation.cli("service", "up", "web", check=False)
    assert done.returncode != 0 and socket in done.stderr.decode(), done
