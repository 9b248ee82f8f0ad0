"""Which tests of a family the quick tier runs."""

from itertools import product

import pytest


def each_once(*axes, only_full=()):
    """Every combination of a value of each axis; in the quick tier as few as have each value of each axis at least once.
    Those with a value of `only_full` are of the full tier alone."""
    axes = [list(axis) for axis in axes]
    usual = [[value for value in axis if value not in only_full] for axis in axes]
    quick = [tuple(values[at % len(values)] for values in usual) for at in range(max(map(len, usual)))]
    return [pytest.param(*values, marks=() if values in quick else pytest.mark.full, id="-".join(map(str, values)))
            for values in product(*axes)]
