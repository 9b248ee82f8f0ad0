"""What others changed on the host meanwhile is named beside the changes of a command, and changes that nobody decided
about are named when they go."""

import pytest

pytestmark = pytest.mark.anyio


def overlaid(installation, script, *more):
    """Runs a script over an overlay; its id."""
    done = installation.cli("run", "-d", *more, "--overlay", "--cwd", installation.work, "--", "sh", "-c", script)
    pid = done.stdout.decode().strip()
    installation.cli("wait", pid, check=False)
    return pid


@pytest.fixture
def changed(installation):
    """A command that changed files, some of which others changed after it."""
    for name in ("both", "mine", "gone"):
        (installation.work / name).write_text(f"{name}\n")
    (installation.work / "sub").mkdir()
    pid = overlaid(installation, "echo more >> both; echo more >> mine; echo n > made; rm gone; echo s > sub/s")
    (installation.work / "both").write_text("both\ntheirs\n")
    (installation.work / "made").write_text("theirs\n")
    return installation, pid


CHANGED = [{"path": "both", "reason": "modified"}, {"path": "made", "reason": "appeared"}]


def test_the_command_line_names_what_the_host_changed(changed):
    installation, pid = changed
    listed = installation.cli("workspace", pid).stdout.decode()
    assert "the host changed too" in listed, listed
    assert "! both: modified meanwhile" in listed and "! made: appeared meanwhile" in listed, listed
    assert "! mine" not in listed and "! gone" not in listed, listed
    assert installation.json("workspace", pid)["changed_on_host"] == CHANGED
    diff = installation.cli("diff", pid)
    assert b"! both: modified meanwhile" in diff.stderr and b"! made" in diff.stderr, diff
    assert b"host changed" not in diff.stdout
    other = installation.cli("diff", pid, "mine", "sub")
    assert b"host changed" not in other.stderr, other
    assert b"! both" in installation.cli("diff", pid, "both").stderr


def test_rest_names_what_the_host_changed_and_counts_everywhere(changed):
    installation, pid = changed
    base = f"/api/v1/executions/{pid}/workspace"
    totals = {"created": 2, "changed": 2, "deleted": 1}
    listed = installation.rest("GET", base)
    assert listed["changed_on_host"] == CHANGED and listed["totals"] == totals, listed
    diff = installation.rest("GET", f"{base}/diff")
    assert diff["changed_on_host"] == CHANGED and diff["totals"] == totals, diff
    assert "truncated" not in diff and "changes" not in diff, diff
    few = installation.rest("GET", f"{base}/diff?path=mine")
    assert "changed_on_host" not in few and few["totals"] == totals, few
    refused = installation.rest("POST", f"{base}/commit")
    assert refused["conflicts"] == CHANGED and refused["totals"] == totals and refused["fate"] == "open", refused
    assert "changed_on_host" not in refused, refused
    assert installation.rest("POST", f"{base}/commit?limit=1")["truncated"]


def test_a_refusal_because_of_autorun_files_counts_the_changes(installation):
    pid = overlaid(installation, "mkdir .vscode; echo '{}' > .vscode/tasks.json; echo x > plain")
    refused = installation.rest("POST", f"/api/v1/executions/{pid}/workspace/commit")
    assert refused["refused"] and refused["totals"] == {"created": 3, "changed": 0, "deleted": 0}, refused


async def test_agents_are_told_what_the_host_changed(installation):
    for name in ("both", "mine"):
        (installation.work / name).write_text(f"{name}\n")
    async with installation.agent() as agent:
        script = "echo more >> both; echo more >> mine"
        isolated = {"isolation": "high", "workspace": "overlay"}
        done = await agent.must("exec", script=script, cwd=str(installation.work), wait_ms=20_000, **isolated)
        assert "the host changed" not in done.text, done.text
        pid = done.value("id")
        (installation.work / "both").write_text("both\ntheirs\n")
        for action in ("changes", "diff"):
            answer = await agent.must("workspace", action=action, id=pid)
            assert "the host changed too" in answer.text and "! both: modified meanwhile" in answer.text, answer.text
            assert "! mine" not in answer.text, answer.text
        answer = await agent.must("workspace", action="diff", id=pid, paths=["mine"])
        assert "the host changed" not in answer.text, answer.text


def test_without_changes_of_others_nothing_is_named(installation):
    (installation.work / "mine").write_text("mine\n")
    pid = overlaid(installation, "echo more >> mine; mkdir d; echo x > d/x")
    assert "changed_on_host" not in installation.json("workspace", pid)
    assert installation.cli("diff", pid).stderr == b""
    assert installation.cli("commit", pid).returncode == 0


NOBODY = b"that nobody committed"


def test_rm_tells_which_changes_went(installation):
    undecided, other, discarded, plain = (overlaid(installation, script, "--label", "l") for script in
                                          ("echo 1 > a", "echo 1 > b", "echo 1 > c", "true"))
    installation.cli("discard", discarded)
    for pid in (discarded, plain):
        removed = installation.cli("rm", pid)
        assert (removed.stdout.decode().strip(), removed.stderr) == (pid, b""), removed
    removed = installation.cli("rm", undecided)
    assert removed.stdout.decode().strip() == undecided, removed
    assert NOBODY in removed.stderr and undecided.encode() in removed.stderr, removed
    plain = overlaid(installation, "true")
    removed = installation.cli("rm", "--all")
    assert removed.stdout == b"2 removed\n", removed
    assert NOBODY in removed.stderr and other.encode() in removed.stderr and b"1 of them" in removed.stderr, removed
    assert plain.encode() not in removed.stderr, removed
    assert NOBODY not in installation.cli("rm", "--all").stderr
    assert b"neither committed nor discarded" in installation.cli("rm", "--help").stdout


def test_rest_tells_which_changes_went(installation):
    first, second, third, fourth = (overlaid(installation, f"echo 1 > {name}") for name in "abcd")
    plain = overlaid(installation, "true")
    assert installation.rest("POST", f"/api/process/{first}/clean")["discarded_changes"] is True
    cleaned = installation.rest("POST", "/api/process/clean_selected", {"pids": [second, plain]})
    assert cleaned["discarded_changes"] == [{"pid": second}], cleaned
    assert cleaned["success"] == [{"pid": second}, {"pid": plain}], cleaned
    connection = installation.connect()
    for pid, header in ((third, "true"), (overlaid(installation, "true"), None)):
        connection.request("DELETE", f"/api/v1/executions/{pid}", headers={"Host": "localhost"})
        answer = connection.getresponse()
        assert (answer.status, answer.read()) == (204, b"")
        assert answer.getheader("Ostler-Discarded-Changes") == header
    connection.close()
    plain = overlaid(installation, "true")
    assert "discarded_changes" not in installation.rest("POST", f"/api/process/{plain}/clean")
    cleaned = installation.rest("POST", "/api/process/clean_all")
    assert cleaned == {"count": 1, "discarded_changes": [{"pid": fourth}]}, cleaned
