"""Terminal scripts: input for a program and the expected screens, run in a session and in tmux as
the reference."""

import difflib
import time
from dataclasses import dataclass

#: The timeout for a screen to show the expected content, in seconds.
SHOWS_SECONDS = 15


@dataclass(frozen=True)
class Type:
    """Text, as from a keyboard."""

    text: str


@dataclass(frozen=True, init=False)
class Key:
    """Keys, by their names."""

    names: tuple

    def __init__(self, *names):
        object.__setattr__(self, "names", names)


@dataclass(frozen=True)
class Raw:
    """Raw bytes."""

    data: bytes


@dataclass(frozen=True)
class Size:
    """A resize of the terminal."""

    cols: int
    rows: int


@dataclass(frozen=True)
class See:
    """The content that both screens must show: a pattern over the rows."""

    pattern: str


def on_tmux(tmux, step):
    """Runs one step in tmux."""
    match step:
        case Type(text):
            tmux.type(text)
        case Key(names):
            tmux.key(*names)
        case Raw(data):
            tmux.raw(data)
        case Size(cols, rows):
            tmux.resize(cols, rows)
        case See(pattern):
            tmux.shows(pattern, SHOWS_SECONDS)


async def on_ours(session, step):
    """Runs one step in a session."""
    match step:
        case Type(text):
            await session.type(text)
        case Key(names):
            await session.keys(*names)
        case Raw(data):
            await session.raw(data)
        case Size(cols, rows):
            await session.resize(cols, rows)
        case See(pattern):
            await session.shows(pattern, SHOWS_SECONDS)


async def perform_both(session, tmux, steps):
    """Runs every step in both; after each `See`, both screens must become equal."""
    for step in steps:
        await on_ours(session, step)
        on_tmux(tmux, step)
        if isinstance(step, See):
            await agree(session, tmux, step)


async def agree(session, tmux, step, seconds=SHOWS_SECONDS):
    """Waits until both show the same rows, with the cursor at the same position."""
    deadline = time.monotonic() + seconds
    view = await session.screen()
    while True:
        theirs = (tmux.rows(), tmux.cursor())
        if (view.rows, view.at) == theirs:
            return
        if time.monotonic() > deadline:
            break
        view = await session.read_new(view)
    rows = "\n".join(difflib.unified_diff(theirs[0], view.rows, "tmux", "ours", lineterm="", n=1))
    raise AssertionError(f"after {step}: cursor {view.at}, tmux {theirs[1]}\n{rows}")


