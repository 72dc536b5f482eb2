"""Every trap of the table, converted, against plain Python: right or refused as it says, and never anything else."""

import numpy as np
import pytest

from tests.helpers.slow import mostly_slow
from tests.helpers.together import check_each
from tests.static.convert.outcome import outcome
from tests.static.convert.table import TRAPS
from tests.static.convert.traps import (
    attributes,
    calls,
    consumers,
    containers,
    definitions,
    effects,
    foreign,
    frames,
    generators,
    identity,
    implicit,
    lazy,
    library,
    loops,
    names,
    numbers,
    raising,
    untaken,
    walrus,
)

FILES = (
    attributes,
    calls,
    consumers,
    containers,
    definitions,
    effects,
    foreign,
    frames,
    generators,
    identity,
    implicit,
    lazy,
    library,
    loops,
    names,
    numbers,
    raising,
    untaken,
    walrus,
)
INPUTS = 14


def inputs():
    """Rows on both sides of every test: the first two have the sum above and below zero."""
    random = np.random.default_rng(5)
    rows = [np.array([1.4, 0.3, -0.2, 2.1]), np.array([-1.4, -0.3, 0.2, -2.1])]
    return [(row,) for row in (*rows, *random.normal(scale=1.5, size=(INPUTS - len(rows), 4)))]


@pytest.mark.parametrize("file", mostly_slow(FILES, 2), ids=lambda file: file.__name__.rpartition(".")[2])
def test_a_trap_ends_as_the_table_says(file):
    def check(trap):
        with np.errstate(all="ignore"):  # a gradient computes numbers, and drops them, where a branch was not taken
            found = outcome(trap.function, inputs())
        assert found.status == trap.ends, found.why

    check_each([trap for trap in TRAPS if trap.function.__module__ == file.__name__], check, lambda trap: trap.name)


def test_the_table_has_four_hundred_traps_and_no_name_twice():
    names_of = [trap.name for trap in TRAPS]
    assert len(set(names_of)) == len(names_of) >= 400
    assert {trap.function.__module__ for trap in TRAPS} == {file.__name__ for file in FILES}
