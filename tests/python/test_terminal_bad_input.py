"""Mistakes of users with terminals: reported, nothing started, nothing lost."""

import asyncio
import time

import pytest

from harness import WsRecorder, Terminals, until
from harness.installation import ProblemError

pytestmark = pytest.mark.anyio

TOOLS = ["pty_start", "pty_run", "pty_write", "pty_read", "pty_resize", "pty_list", "pty_close"]


async def test_the_profile(installation):
    async with Terminals.connect(installation) as terminals:
        offered = {tool.name: tool for tool in (await terminals.agent.client.list_tools()).tools}
        assert list(offered) == TOOLS
        assert all(tool.description and tool.input_schema["type"] == "object" for tool in offered.values())
    async with installation.agent() as agent:
        default = [tool.name for tool in (await agent.client.list_tools()).tools]
        assert not set(default) & set(TOOLS), "not in the default profile"


@pytest.mark.parametrize(("arguments", "expected"), [
    ({"command": []}, "command"),
    ({"command": [""]}, ""),
    ({"command": ["no-such-program"]}, "no-such-program"),
    ({"command": ["/etc/passwd"]}, "/etc/passwd"),
    ({"command": ["/"]}, ""),
    ({"command": ["a\0b"]}, ""),
    ({"command": ["cat"], "shell": "bash"}, "shell"),
    ({"shell": "powershell"}, "bash, zsh, fish"),
    ({"command": ["cat"], "cwd": "/no/such/place"}, "/no/such/place"),
    ({"command": ["cat"], "cwd": ""}, "cwd"),
    ({"command": ["cat"], "cols": 0}, "cols"),
    ({"command": ["cat"], "rows": -3}, "rows"),
    ({"command": ["cat"], "cols": 70_000}, "cols"),
    ({"command": ["cat"], "cols": "wide"}, "cols"),
    ({"command": ["cat"], "env": {"A=B": "c"}}, ""),
    ({"command": ["cat"], "env": {"": "c"}}, ""),
    ({"command": ["cat"], "env": {"A": "\0"}}, ""),
    ({"command": ["cat"], "timeout": 0}, "timeout"),
    ({"command": "cat file"}, "command"),
    ({"command": ["cat"], "size": "80x24"}, "size"),
])
async def test_what_cannot_be_started(shared_installation, arguments, expected):
    async with Terminals.connect(shared_installation) as terminals:
        reply = await terminals.call("pty_start", **arguments)
        assert reply.is_error and reply.code != "internal" and expected in reply.text, reply
        assert await terminals.list() == [], "nothing was started"


@pytest.mark.parametrize(("tool", "arguments", "expected"), [
    ("pty_write", {}, "nothing to type"),
    ("pty_write", {"enter": False}, "nothing to type"),
    ("pty_write", {"keys": []}, ""),
    ("pty_write", {"keys": ["ctrl-"]}, "ctrl-"),
    ("pty_write", {"keys": ["enter", "no-such-key"]}, "keys[1]"),
    ("pty_write", {"keys": ["f99"]}, "f99"),
    ("pty_write", {"keys": "enter"}, "keys"),
    ("pty_write", {"keys": [3]}, "keys"),
    ("pty_write", {"base64": "not base64!"}, "base64"),
    ("pty_write", {"text": ["a"]}, "text"),
    ("pty_write", {"text": "a", "until": "forever"}, "until"),
    ("pty_write", {"text": "a", "pattern": "("}, "pattern"),
    ("pty_write", {"text": "a", "wait_ms": -1}, "wait_ms"),
    ("pty_read", {"view": "picture"}, "view"),
    ("pty_read", {"view": "raw", "offset": -1}, "offset"),
    ("pty_read", {"view": "raw", "limit": 0}, "limit"),
    ("pty_read", {"view": "raw", "offset": "later"}, "offset"),
    ("pty_read", {"until": "pattern"}, "pattern"),
    ("pty_resize", {"cols": 80}, "rows"),
    ("pty_resize", {"cols": 0, "rows": 0}, "cols"),
    ("pty_run", {}, "script"),
    ("pty_run", {"script": 5}, "script"),
    ("pty_close", {"sessions": []}, "sessions"),
    ("pty_close", {"signal": "SIGNONSENSE"}, "signal"),
    ("pty_close", {"sessions": 7}, "sessions"),
])
async def test_invalid_requests(shared_installation, tool, arguments, expected):
    async with Terminals.connect(shared_installation) as terminals:
        cat = await terminals.start("cat")
        if tool == "pty_close":
            arguments = {"sessions": [cat.id], **arguments}
            reply = await terminals.call(tool, **arguments)
        else:
            reply = await cat.call(tool, **arguments)
        assert reply.is_error and reply.code == "value_error" and expected in reply.text, reply
        await cat.line("unharmed")
        await cat.shows(r"\Aunharmed\nunharmed$")
        await cat.close()


async def test_a_process_without_a_terminal_is_none(installation):
    async with Terminals.connect(installation, tools="pty,command") as terminals:
        pid = await terminals.agent.start("sleep", "300")
        for tool, more in [("pty_read", {}), ("pty_write", {"text": "x"}), ("pty_run", {"script": "true"}),
                           ("pty_resize", {"cols": 80, "rows": 24})]:
            reply = await terminals.call(tool, session=pid, **more)
            assert reply.is_error and "terminal" in reply.text, (tool, reply)
        assert await terminals.list() == []
        await terminals.agent.stop(pid, force=True)


async def test_sessions_of_others_are_not_found(each_installation):
    async with Terminals.connect(each_installation) as one, Terminals.connect(each_installation) as other:
        cat = await one.start("cat")
        for tool, more in [("pty_read", {}), ("pty_write", {"text": "x"}), ("pty_run", {"script": "true"}),
                           ("pty_resize", {"cols": 80, "rows": 24})]:
            foreign = await other.call(tool, session=cat.id, **more)
            unknown = await other.call(tool, session="zzzzzzzz", **more)
            assert foreign.code == "session_not_found", foreign
            assert foreign.text.replace(cat.id, "zzzzzzzz") == unknown.text
        foreign = await other.call("pty_close", sessions=[cat.id])
        assert foreign.is_error
        assert (await cat.status())["status"] == "running"
        assert "x" not in (await cat.screen()).text
        await cat.close()


async def test_the_ids_of_close_are_judged_one_by_one(each_installation):
    async with Terminals.connect(each_installation) as terminals:
        cat = await terminals.start("cat")
        done = await terminals.start("true")
        await done.ended()
        reply = await terminals.must("pty_close", sessions=[cat.id, "zzzzzzzz", done.id, cat.id])
        results = {it["session"]: it for it in reply.structured["results"]}
        assert set(results) == {cat.id, "zzzzzzzz", done.id}
        assert results[cat.id]["status"] == "killed"
        assert "not found" in results["zzzzzzzz"]["result"]
        assert "ended before" in results[done.id]["result"]
        again = await cat.close()
        assert again["status"] == "killed"


async def test_the_smallest_and_the_largest_terminal(each_installation):
    async with Terminals.connect(each_installation) as terminals:
        for cols, rows in [(1, 1), (2, 2), (1000, 1), (1, 500), (500, 200)]:
            session = await terminals.start("sh", "-c", "stty size; seq 1 2000; echo 漢字; read x", cols=cols, rows=rows)
            await session.wrote("漢字".encode())
            reply = await session.must("pty_read", wait_ms=0)
            assert len(reply.text) <= 20_000
            assert reply.value("screen")["size"] == {"cols": cols, "rows": rows}
            await session.resize(80, 24)
            await session.resize(cols, rows)
            assert not (await session.call("pty_read", wait_ms=0)).is_error
            await session.line("x")
            await session.ended()


async def test_a_screen_of_an_ended_session_stays(each_installation):
    async with Terminals.connect(each_installation) as terminals:
        session = await terminals.start("sh", "-c", "printf 'last words'; exit 3")
        await session.ended()
        view = await session.screen()
        assert view.rows[0] == "last words"
        reply = await session.must("pty_read")
        assert reply.value("exit_code") == 3 and "exited 3" in reply.text
        for tool, more in [("pty_write", {"text": "x"}), ("pty_resize", {"cols": 80, "rows": 24})]:
            begin = time.monotonic()
            refused = await session.call(tool, **more)
            assert refused.is_error and "ended" in refused.text, refused
            assert time.monotonic() - begin < 3


async def test_text_that_looks_like_something_else(each_installation):
    """Typed literally: newlines are Enter, nothing is interpreted as a key's name or an escape."""
    async with Terminals.connect(each_installation) as terminals:
        cat = await terminals.start("cat")
        await cat.type("ctrl-c \\n $HOME `x` {enter} é 漢 😀\n")
        await cat.shows(r"^ctrl-c \\n \$HOME `x` \{enter\} é 漢 😀\nctrl-c")
        await cat.type("two\nlines\r\nhere\n")
        await cat.shows(r"(?s)two\n.*lines\n.*here\n")
        view = await cat.screen()
        assert view.rows.count("lines") == 2, view.text
        await cat.close()


async def test_the_answers_wait_for_what_typing_did(each_installation):
    """Typing and reading the screen are one call."""
    async with Terminals.connect(each_installation) as terminals:
        reply = await terminals.must("pty_start", command=["python3", "-q", "-i", "-S", "-E"])
        assert ">>>" in reply.text, reply
        session = reply.id
        reply = await terminals.must("pty_write", session=session, text="print('a' * 3, 6 * 7)")
        assert "aaa 42" in reply.text and ">>>" in reply.text, reply
        reply = await terminals.must("pty_write", session=session, text="import time; time.sleep(0.4); print('late')", pattern="^late")
        assert "late" in reply.text and reply.value("why") == "pattern", reply
        reply = await terminals.must("pty_write", session=session, text="'still', 'here'", until="exit", wait_ms=1000)
        assert reply.value("why") == "time" and "('still', 'here')" in reply.text, reply
        reply = await terminals.must("pty_write", session=session, text="raise SystemExit(4)", until="exit")
        assert reply.value("exit_code") == 4, reply


async def test_a_read_waits_for_its_condition(each_installation):
    async with Terminals.connect(each_installation) as terminals:
        session = await terminals.start("sh", "-c", "while [ ! -e go ]; do sleep 0.05; done; echo came; read x; exit 2")
        begin = time.monotonic()
        reply = await session.must("pty_read", until="output", wait_ms=300)
        assert reply.value("why") == "time" and 0.25 < time.monotonic() - begin < 5
        waiting = asyncio.ensure_future(session.must("pty_read", pattern="came", wait_ms=20_000))
        (each_installation.work / "go").touch()
        reply = await waiting
        assert reply.value("why") == "pattern" and "came" in reply.text
        reply = await session.must("pty_read", until="prompt", wait_ms=20_000)
        assert reply.value("why") == "prompt", reply
        waiting = asyncio.ensure_future(session.must("pty_read", until="exit", wait_ms=20_000))
        await session.line("")
        assert (await waiting).value("exit_code") == 2


async def test_a_socket_that_talks_nonsense(each_installation):
    async with Terminals.connect(each_installation) as terminals:
        cat = await terminals.start("cat")
        for frames in [
            [(1, b"not json")], [(1, b'{"type":"fly"}')], [(1, b'{"type":"resize","cols":0,"rows":0}')],
            [(1, b'{"type":"resize","cols":80}')], [(1, b"\xff\xfe")], [(2, b"x" * 70_000)], [(9, b"ping")],
            [(1, b'{"type":"take","take_over":"yes"}')], [(3, b"reserved")], [(8, b"")],
        ]:
            with WsRecorder(each_installation, cat.id) as ring:
                for opcode, data in frames:
                    ring.send(opcode, data)
        with WsRecorder(each_installation, cat.id) as ring:
            ring.say(type="resize", cols=0, rows=0)
            assert ring.wait_message("refused")["code"]
        with pytest.raises((AssertionError, OSError)):
            WsRecorder(each_installation, "zzzzzzzz")
        with pytest.raises(ProblemError):
            each_installation.rest("GET", f"/api/v1/executions/{cat.id}/terminal")
        until(lambda: not each_installation.rest("GET", f"/api/v1/executions/{cat.id}/screen")["title"])
        await cat.line("unharmed")
        await cat.shows("^unharmed$")
        await cat.close()


async def test_rest_says_what_was_wrong(installation):
    async with Terminals.connect(installation) as terminals:
        cat = await terminals.start("cat")
        path = f"/api/v1/executions/{cat.id}"
        for method, route, body in [
            ("POST", f"{path}/keys", {}), ("POST", f"{path}/keys", {"pieces": [{"key": "no-such"}]}),
            ("POST", f"{path}/keys", {"pieces": [{"text": 5}]}), ("POST", f"{path}/keys", {"pieces": [{}]}),
            ("POST", f"{path}/keys", {"pieces": [{"text": "a", "key": "enter"}]}),
            ("POST", f"{path}/resize", {"cols": 80}), ("POST", f"{path}/resize", {"cols": 0, "rows": 0}),
            ("POST", f"{path}/shell/run", {"script": "true"}), ("GET", f"{path}/terminal/output?offset=-1", None),
            ("GET", f"{path}/terminal/output?limit=x", None), ("GET", f"{path}/screen?depth=1", None),
            ("POST", "/api/v1/shells", {"kind": "powershell", "cwd": "/tmp", "cols": 80, "rows": 24}),
            ("GET", "/api/v1/executions/zzzzzzzz/screen", None),
        ]:
            with pytest.raises(ProblemError) as refused:
                installation.rest(method, route, body)
            assert 400 <= refused.value.status < 500, (route, refused.value)
            assert refused.value.code and refused.value.code != "internal", (route, refused.value)
        done = installation.rest("POST", f"{path}/keys", {"pieces": [{"text": "a"}, {"key": "backspace"}, {"paste": "b"}, {"base64": "Yw=="}, {"key": "enter"}]})
        assert done["bytes"] == done["taken"] == 5
        await cat.shows("^bc\nbc$")
        await cat.close()
