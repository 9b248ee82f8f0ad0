"""Which tests of a family the quick tier runs."""

from itertools import product
from zlib import crc32

import pytest


def each_once(*axes, only_full=()):
    """Every combination of a value of each axis; in the quick tier as few as have each value of each axis at least once.
    Those with a value of `only_full` are of the full tier alone."""
    axes = [list(axis) for axis in axes]
    usual = [[value for value in axis if value not in only_full] for axis in axes]
    quick = [tuple(values[at % len(values)] for values in usual) for at in range(max(map(len, usual)))]
    return [pytest.param(*values, marks=() if values in quick else pytest.mark.full, id="-".join(map(str, values)))
            for values in product(*axes)]


def in_turn(cases, values):
    """Every case, a tuple, with each value; in the quick tier each case with one of them, in turn."""
    return [pytest.param(*case, value, marks=() if at % len(values) == index else pytest.mark.full)
            for at, case in enumerate(cases) for index, value in enumerate(values)]


def take_turns(items, fixture, values):
    """Marks each test of a fixture with several values as one of the full tier but for one value: about as many tests keep
    the first one as the second. Which one is kept depends on the name alone, and stays as it is where others are added."""
    for item in items:
        value = item.callspec.params.get(fixture) if hasattr(item, "callspec") else None
        if value is not None:
            others = sorted(index for index in item.callspec.indices.items() if index[0] != fixture)
            name = f"{item.path.name}::{item.originalname}{others}"
            if values[crc32(name.encode()) % len(values)] != value:
                item.add_marker(pytest.mark.full)
