"""A scene: what is typed into a program and what its screen must come to show, played on ours
and on the oracle."""

import difflib
import time
from dataclasses import dataclass

#: How long a screen may take to come to show what it must, in seconds.
SHOWS_SECONDS = 15


@dataclass(frozen=True)
class Type:
    """Text, as from a keyboard."""

    text: str


@dataclass(frozen=True, init=False)
class Key:
    """Keys, by our names."""

    names: tuple

    def __init__(self, *names):
        object.__setattr__(self, "names", names)


@dataclass(frozen=True)
class Raw:
    """Bytes as they are."""

    data: bytes


@dataclass(frozen=True)
class Size:
    """Another size of the terminal."""

    cols: int
    rows: int


@dataclass(frozen=True)
class See:
    """What both screens must come to show: an expression over the rows."""

    pattern: str


def on_tmux(tmux, step):
    """One step on the oracle."""
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
    """One step on a session."""
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
    """Every step on both; after each thing that is seen, both screens must come to be the same."""
    for step in steps:
        await on_ours(session, step)
        on_tmux(tmux, step)
        if isinstance(step, See):
            await agree(session, tmux, step)


async def agree(session, tmux, step, seconds=SHOWS_SECONDS):
    """Waits until both show the same rows, with the cursor at the same place."""
    deadline = time.monotonic() + seconds
    view = await session.screen()
    while True:
        theirs = (tmux.rows(), tmux.cursor())
        if (view.rows, view.at) == theirs:
            return
        if time.monotonic() > deadline:
            break
        view = await session.news(view)
    rows = "\n".join(difflib.unified_diff(theirs[0], view.rows, "tmux", "ours", lineterm="", n=1))
    raise AssertionError(f"after {step}: cursor {view.at}, tmux {theirs[1]}\n{rows}")


