"""What people bring is answered: each row gets the answer that is right, and nothing raw is shown."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from tests.helpers.slow import mostly_slow
from tests.situations import axes
from tests.situations.rows import ROWS, Right
from tests.situations.running import Outcome, faults, run

NEEDS = {"torch": "torch", "jax": "jax", "tensorflow": "tensorflow", "autograd": "autograd"}
READY = [row for row in ROWS if not (row.waits or row.dear)]
HERE = [row for row in READY if row.framework not in ("torch", "jax", "tensorflow")]


def cases():
    """Rows that need nothing but the packages of the tests, some of them quick, and then those of frameworks."""
    yield from mostly_slow((pytest.param(row, id=row.name) for row in HERE), 2)
    yield from (
        pytest.param(row, id=row.name, marks=[pytest.mark.peers, pytest.mark.slow]) for row in READY if row not in HERE
    )


@pytest.mark.parametrize("row", [*cases()])
def test_a_row_is_answered_as_is_right(row, tmp_path):
    needs = NEEDS.get(row.framework)
    if needs and find_spec(needs) is None:
        pytest.skip(f"{needs} is not installed")
    outcome = run(row, tmp_path)
    assert not [*faults(outcome, row.right)], outcome.shown


def test_each_pair_of_values_that_go_together_has_a_row():
    """`python -m tests.situations --missing` writes rows for what is missing."""
    assert not axes.missing(row.values for row in ROWS if row.values)
    assert all(axes.is_possible(row.values) for row in ROWS if row.values)


def test_rows_have_names_of_their_own_and_files_that_python_reads():
    assert len({row.name for row in ROWS}) == len(ROWS)
    for row in ROWS:
        for path, text in row.files.items():
            compile(text, path, "exec")


def test_a_wrong_answer_is_found():
    right = Right(timed=2, says=("agree",), faster="jit")
    good = Outcome(0, "they agree", {"verdict": {"steady": {"values": {"jit": 1.0, "eager": 2.0}}, "refused": {}}})
    assert not [*faults(good, right)]
    bad = Outcome(0, "TypeError: no", {"verdict": {"steady": {"values": {"eager": 2.0}}, "refused": {"jit": "off"}}})
    assert len([*faults(bad, right)]) == 5
    assert next(faults(Outcome(1, "they agree"), right)) == "exit code 1, and 0 or 3 is right"
