"""Terminals under load: floods of escapes, programs that never read, very many at once."""

import asyncio
import random
import time

import pytest

from harness import WsRecorder, Terminals, procs, until

pytestmark = [pytest.mark.anyio, pytest.mark.serial]

PYTHON = "/usr/bin/python3"

#: Writes this many bytes of escape sequences, text and noise, then one known screen.
FLOOD = """
import random, sys
rng, left, out = random.Random(7), int(sys.argv[1]), sys.stdout.buffer
pieces = []
for _ in range(4000):
    pieces.append(rng.choice([
        b"\\x1b[%d;%dH" % (rng.randrange(1, 60), rng.randrange(1, 200)),
        b"\\x1b[%dm" % rng.randrange(0, 110), b"\\x1b[38;2;%d;%d;%dm" % (rng.randrange(256), rng.randrange(256), rng.randrange(256)),
        b"\\x1b[J", b"\\x1b[K", b"\\x1b[%dL" % rng.randrange(1, 9), b"\\x1b[%dM" % rng.randrange(1, 9),
        b"\\x1b[%d;%dr" % (rng.randrange(1, 10), rng.randrange(12, 24)), b"\\x1b[?1049h", b"\\x1b[?1049l",
        b"\\x1b]0;title %d\\x07" % rng.randrange(1000), b"\\x1bM", b"\\x1bD", b"\\r\\n", b"text and more text ",
        "漢字🦀é".encode(), bytes([rng.randrange(128, 256)]), b"\\x1b[9999999999999999C", b"\\x1b[" + b";" * 40 + b"m",
        b"\\x1b[99999b", b"\\x1bP" + b"q" * 50 + b"\\x1b\\\\", b"\\t" * 20, b"\\x1b[?25l\\x1b[?25h", b"\\x1b7\\x1b8", b"\\x1b[!p",
    ]))
block = b"".join(pieces)
while left > 0:
    out.write(block[:left]); left -= len(block)
out.write(b"\\x18\\x1bc\\x1b[2J\\x1b[Hafter the flood\\r\\n"); out.flush()
input()
"""

MEGABYTE = 1_000_000


async def flood(installation, size, seconds):
    async with Terminals.connect(installation) as terminals:
        quiet = await terminals.start("cat")
        noisy = await terminals.start(PYTHON, "-c", FLOOD, str(size))
        # While it floods, another session answers, and so does it.
        answered = 0
        while (await noisy.status())["output_length"] < size:
            answered += 1
            await quiet.line(f"line {answered}")
            await quiet.shows(rf"^line {answered}\nline {answered}$", seconds)
            assert len((await noisy.screen()).rows) == 24
        assert answered > 0
        await noisy.shows(r"\Aafter the flood$", seconds)
        view = await noisy.screen()
        assert view.exact and view.at == (0, 1), view
        page = await noisy.output(offset=0)
        assert page.truncated and page.end_offset >= size
        assert (await noisy.whole()).endswith(b"after the flood\r\r\n")
        await noisy.line("")
        assert (await noisy.ended())["exit_code"] == 0
        await quiet.close()


async def test_ten_megabytes_of_escapes(installation):
    await flood(installation, 10 * MEGABYTE, 30)


@pytest.mark.full
@pytest.mark.limit(300)
async def test_full_a_hundred_megabytes_of_escapes(installation):
    await flood(installation, 100 * MEGABYTE, 120)


async def test_nonsense_for_a_terminal_is_no_harm(installation):
    """Random bytes, and sequences that never end."""
    rng = random.Random(11)
    noise = installation.work / "noise"
    noise.write_bytes(bytes(rng.randrange(256) for _ in range(300_000)))
    openings = [b"\x1b]0;", b"\x1bP", b"\x1b[", b"\x1b_", b"\x1b^", b"\x1bX", b"\x1b]52;c;", b"\x1b[1;", b"\xf0\x9f"]
    async with Terminals.connect(installation) as terminals:
        session = await terminals.start("sh", "-c", "cat noise; printf '\\030\\033c\\033[2J\\033[Hstill here'; read x")
        # Noise asks questions, too: answers may be echoed.
        await session.shows(r"\Astill here")
        await session.close()
        for opening in openings:
            (installation.work / "open").write_bytes(b"before " + opening + b"x" * 200_000)
            session = await terminals.start("sh", "-c", "cat open; printf '\\030\\033\\\\\\033c\\033[2J\\033[Hstill here'; read x")
            await session.shows(r"\Astill here$")
            assert len((await session.screen()).title) <= 5000
            await session.close()


async def test_a_program_that_never_reads(installation):
    """A write is bounded; the response reports how much was accepted; other sessions are not delayed."""
    async with Terminals.connect(installation) as terminals:
        deaf = await terminals.start(PYTHON, "-c", "import tty, time; tty.setraw(0); print('ready', flush=True); time.sleep(300)")
        other = await terminals.start("cat")
        await deaf.shows("^ready")
        begin = time.monotonic()
        writes = asyncio.gather(*(
            deaf.call("pty_write", text="x" * 200_000, enter=False, wait_ms=0) for _ in range(3)
        ))
        await other.line("meanwhile")
        await other.shows(r"^meanwhile\nmeanwhile$")
        replies = await asyncio.wait_for(writes, 40)
        assert time.monotonic() - begin < 40
        for reply in replies:
            if reply.is_error:
                assert reply.code == "process_control_error", reply
                assert "took none of 200000" in reply.text, reply
            else:
                assert reply.value("bytes") == 200_000 and reply.value("taken") < 200_000
                assert "does not read" in reply.text
        taken = sum(0 if it.is_error else it.value("taken") for it in replies)
        assert 0 < taken < 200_000, "a terminal holds some"
        begin = time.monotonic()
        await deaf.close()
        assert time.monotonic() - begin < 8


async def test_a_program_that_reads_late_gets_all_that_was_taken(installation):
    script = (
        "import tty, os, time\ntty.setraw(0)\nprint('ready', flush=True)\n"
        "while not os.path.exists('go'): time.sleep(0.02)\n"
        "got = 0\nwhile True:\n data = os.read(0, 65536)\n got += len(data)\n"
        " if b'.' in data: break\nprint('got', got, flush=True)\ninput()\n"
    )
    async with Terminals.connect(installation) as terminals:
        late = await terminals.start(PYTHON, "-c", script)
        await late.shows("^ready")
        reply = await late.call("pty_write", text="x" * 50_000, enter=False, wait_ms=0)
        taken = 0 if reply.is_error else reply.value("taken")
        (installation.work / "go").touch()
        await late.type(".")
        await late.shows(rf"got {taken + 1}$")
        await late.close()


async def test_a_big_paste_into_a_program_that_reads(installation):
    async with Terminals.connect(installation) as terminals:
        script = "stty raw -echo; echo ready; head -c 1000000 | md5sum; stty sane; read x"
        session = await terminals.start("sh", "-c", script)
        await session.shows("ready")
        data = "0123456789abcdef" * 62_500
        reply = await session.raw(data.encode())
        assert reply.value("taken") == 1_000_000, reply
        import hashlib

        await session.shows(hashlib.md5(data.encode()).hexdigest())
        await session.close()


async def many(installation, count, together):
    """This many sessions at once: all respond, every end is reported once, no process is left."""
    async with Terminals.connect(installation) as terminals:
        gate = asyncio.Semaphore(together)

        async def one(number):
            async with gate:
                session = await terminals.start("sh", "-c", f"read x; echo number {number} got $x; read y; exit {number % 200}")
            return session

        sessions = await asyncio.gather(*(one(number) for number in range(count)))
        assert len({it.id for it in sessions}) == count

        async def talk(number):
            async with gate:
                await sessions[number].line(f"word{number}")
                await sessions[number].shows(rf"^number {number} got word{number}$", 60)

        await asyncio.gather(*(talk(number) for number in range(count)))
        running = installation.rest("GET", "/api/v1/executions?status=running")["executions"]
        assert len(running) == count
        rings = [WsRecorder(installation, session.id) for session in sessions[: min(count, 50)]]

        async def end(number):
            async with gate:
                await sessions[number].line("")

        await asyncio.gather(*(end(number) for number in range(count)))
        for number, ring in enumerate(rings):
            exits = [it for it in ring.to_the_end() if it["type"] == "exit"]
            assert [it["exit_code"] for it in exits] == [number % 200], exits
            ring.close()
        for number, session in enumerate(sessions):
            info = installation.rest("POST", f"/api/v1/executions/{session.id}/wait", {"until": "exit", "at_most_ms": 20_000})["info"]
            assert info["exit_code"] == number % 200, info
        for session in sessions:
            uuid = installation.rest("GET", f"/api/v1/executions/{session.id}")["uuid"]
            assert ends(installation, uuid) == 1, session.id
        assert zombies(installation) == []
        until(lambda: not running_of(installation), 20, "the end of all")


def running_of(installation):
    return installation.rest("GET", "/api/v1/executions?status=running")["executions"]


def ends(installation, uuid):
    """How often the end is recorded."""
    events = installation.state / "executions" / uuid / "events.jsonl"
    until(lambda: events.exists() and "finished" in events.read_text(), 10, "its end in the events")
    return events.read_text().count("finished")


def zombies(installation):
    """Zombies: children of this installation that were not reaped."""
    ours = {str(pid) for pid in installation.ours()}
    return [p for p in procs.pids() if procs.status(p, "State") == "Z" and procs.status(p, "PPid") in ours]


@pytest.mark.limit(120)
async def test_a_hundred_sessions_at_once(installation):
    await many(installation, 100, 16)


@pytest.mark.full
@pytest.mark.limit(600)
async def test_full_a_thousand_sessions_at_once(installation):
    await many(installation, 1_000, 16)


async def test_many_readers_and_writers_of_one_session(installation):
    async with Terminals.connect(installation) as terminals:
        session = await terminals.start("sh", "-c", "stty -echo; cat")
        rings = [WsRecorder(installation, session.id) for _ in range(20)]
        await asyncio.gather(*(session.line(f"<line {n}>") for n in range(50)))
        for ring in rings:
            for number in range(50):
                ring.wait_output(rb"<line %d>\r\n" % number)
        assert len({ring.output for ring in rings}) == 1, "all hear the same"
        for ring in rings:
            ring.close()
        await session.close()


async def test_resizes_in_a_row_end_at_the_last(installation):
    async with Terminals.connect(installation) as terminals:
        session = await terminals.start("sh", "-c", "while [ ! -e go ]; do seq 1 200; done; stty size; read x")
        sizes = [(random.Random(n).randrange(20, 200), random.Random(n + 1).randrange(5, 60)) for n in range(60)]
        for cols, rows in sizes:
            await session.resize(cols, rows)
        (installation.work / "go").touch()
        cols, rows = sizes[-1]
        await session.shows(rf"^{rows} {cols}$")
        view = await session.screen()
        assert view.size == (cols, rows) and len(view.rows) == rows
        await session.close()
