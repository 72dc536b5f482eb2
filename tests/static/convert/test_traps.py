"""Every trap of the table, converted, against plain Python: right or refused as it says, and never anything else."""

import builtins
import dis
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.slow import mostly_slow
from tests.helpers.together import check_each
from tests.static.convert.outcome import outcome
from tests.static.convert.table import TRAPS

FILES = sorted(file.stem for file in (Path(__file__).parent / "traps").glob("*.py"))
INPUTS = 14


def inputs():
    """Rows on both sides of every test: the first two have the sum above and below zero."""
    random = np.random.default_rng(5)
    rows = [np.array([1.4, 0.3, -0.2, 2.1]), np.array([-1.4, -0.3, 0.2, -2.1])]
    return [(row,) for row in (*rows, *random.normal(scale=1.5, size=(INPUTS - len(rows), 4)))]


def traps_of(file):
    """Those of one file."""
    module = import_module(f"tests.static.convert.traps.{file}")
    return [trap for trap in TRAPS if trap.function.__module__ == module.__name__]


@pytest.mark.parametrize("file", mostly_slow(FILES, 2))
def test_a_trap_ends_as_the_table_says(file):
    def check(trap):
        with np.errstate(all="ignore"):  # a gradient computes numbers, and drops them, where a branch was not taken
            found = outcome(trap.function, inputs())
        assert found.status == trap.ends, found.why

    check_each(traps_of(file), check, lambda trap: trap.name)


def test_the_table_has_four_hundred_traps_and_no_name_twice():
    names = [trap.name for file in FILES for trap in traps_of(file)]
    assert len(set(names)) == len(names) >= 400


def test_a_trap_reads_no_name_that_is_missing():
    """Such a one would raise the same NameError converted and plain, and be right."""
    for trap in (trap for file in FILES for trap in traps_of(file)):
        read = {step.argval for step in dis.get_instructions(trap.function) if step.opname == "LOAD_GLOBAL"}
        assert read <= {*trap.function.__globals__, *dir(builtins)}, trap.name
