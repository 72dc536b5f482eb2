"""NumPy's functions that make an array of a size: of a symbolic one the error names what takes it."""

from __future__ import annotations

import numpy as np
import pytest

import graphs as g
import static
from graphs.errors import ControlFlowError


def _picked(x, y):
    return g.log_softmax(x)[np.arange(x.shape[0]), y].mean()


def _picked_by_graphs(x, y):
    return g.log_softmax(x)[g.arange(x.shape[0]), y].mean()


def _compared(x, y):
    return x.sum() if x.shape[0] == 0 else y.sum()


def _identity_by_graphs(x, y):
    n = x.shape[0]
    return g.where(g.arange(n)[:, None] == g.arange(n), 1.0, 0.0) @ x + y.sum()


CASES = {
    "arange": _picked,
    "zeros": lambda x, _: x[:, 0] + np.zeros(x.shape[0]),
    "ones": lambda x, _: x[:, 0] + np.ones((x.shape[0],)),
    "full": lambda x, _: x[:, 0] + np.full((x.shape[0],), 2.0),
    "eye": lambda x, _: np.eye(x.shape[0]) @ x,
}
CALLS = [(np.full((rows, 3), 0.5), np.arange(rows) % 3) for rows in (2, 4, 5)]


@pytest.mark.parametrize("convert", [False, True])
def test_the_error_names_what_takes_a_symbolic_size(convert):
    for name, f in CASES.items():
        compiled = static.jit(f, shapes="symbolic", convert=convert)
        compiled(*CALLS[0])
        with pytest.raises(
            ControlFlowError, match=rf"np\.{name} of a symbolic dimension .*symbolic_sizes\.py:\d+.*graphs\."
        ):
            compiled(*CALLS[1])


def test_what_the_errors_advise_works_for_every_size():
    for f in (_picked_by_graphs, _identity_by_graphs):
        compiled = static.jit(f, shapes="symbolic")
        for call in CALLS:
            np.testing.assert_allclose(compiled(*call), _expected(f, *call))
        assert compiled.stats.compiles == 2


def _expected(f, x, y):
    if f is _identity_by_graphs:
        return x + y.sum()
    scores = x - np.log(np.exp(x).sum(axis=-1, keepdims=True))
    return scores[np.arange(len(x)), y].mean()


def test_a_question_of_the_users_own_keeps_its_error():
    compiled = static.jit(_compared, shapes="symbolic")
    compiled(*CALLS[0])
    with pytest.raises(ControlFlowError, match="`d0 == 0` depends on a symbolic dimension"):
        compiled(*CALLS[1])
