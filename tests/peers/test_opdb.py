"""PyTorch's own database of ops against the dynamic engine, and what the comparison itself must notice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import optree
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed; pip install torch")

import torch

import dynamic
from tests.helpers.together import together
from tests.peers.opdb import comparing, samples
from tests.peers.opdb.adjudicated import KINDS, KINDS_AT_MOST, kind_of
from tests.peers.opdb.running import Asked, row_of

pytestmark = pytest.mark.peers


class Mutant:
    """The dynamic engine with one function replaced."""

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self._name, self._function = name, function

    def __getattr__(self, name: str) -> Any:
        return self._function if name == self._name else getattr(dynamic, name)


MUTANTS = [
    ("add", lambda a, b, alpha=1: dynamic.sub(a, b, alpha=alpha), comparing.VALUE),
    ("sum", lambda x, *args, **words: dynamic.sum(x, *args, **words).half(), comparing.DTYPE),
    ("cumsum", lambda x, dim: dynamic.cumsum(x, dim).unsqueeze(0), comparing.SHAPE),
    ("exp", lambda x: dynamic.exp(x).detach(), comparing.HISTORY),
    ("sin", lambda x: 2 * dynamic.sin(x) - dynamic.sin(x).detach(), comparing.GRADIENT),
    ("max", lambda *args, **words: list(dynamic.max(*args, **words).detach().numpy().ravel()), comparing.KIND),
    ("neg", lambda x: x.mul_(-1) if not x.requires_grad else dynamic.neg(x), comparing.EFFECT),
    ("abs", lambda x: [][x.ndim], comparing.RAW),
    ("clone", lambda x, **_: x.view(x.shape), comparing.MEMORY),
]


@together("name,function,verdict", MUTANTS, [name for name, *_ in MUTANTS])
def test_a_wrong_op_is_caught(name: str, function: Callable[..., Any], verdict: str) -> None:
    (op,) = [op for op in samples.op_db if op.name == name and op.variant_test_name in ("", "reduction_no_dim")]
    asked = Asked(dtypes=("float64", "int64"))
    assert row_of(op, asked, Mutant(name, function)).counts[verdict] > 0
    assert row_of(op, asked, dynamic).counts[verdict] == 0


@pytest.mark.parametrize(("error", "wrong"), [(1.5, False), (3.0, True)])
def test_rounding_is_judged_by_what_pytorch_gives_in_float64(error: float, wrong: bool) -> None:
    exact, theirs = np.array([1.0, 100.0]), np.array([1.0, 100.001], np.float32)
    ours = np.array([1.0, 100 + error * 1e-3], np.float32)
    assert (comparing.settled(ours, theirs, exact) is ours) is wrong
    assert comparing.settled((ours, "x"), (theirs, "x"), (exact, "x"))[1] == "x"
    assert comparing.settled(ours, theirs[:1], exact[:1]) is ours  # of another shape


def test_a_wrong_op_is_caught_in_float32() -> None:
    (op,) = [op for op in samples.op_db if op.name == "sin"]
    mutant = Mutant("sin", lambda x: dynamic.sin(x) * 1.001)
    assert row_of(op, Asked(dtypes=("float32",)), mutant).counts[comparing.VALUE] > 0


def test_what_pytorch_refuses_is_asked_too() -> None:
    (op,) = samples.infos(["gather"])
    row = row_of(op, Asked(errors=True), Mutant("gather", lambda x, dim, index: x))
    assert row.counts[comparing.ANSWERED] > 0


def test_the_differences_on_purpose_are_few_and_each_has_a_reason() -> None:
    assert len(KINDS) <= KINDS_AT_MOST
    assert all(kind.reason and kind.verdicts for kind in KINDS)


def _with_numpys(call: samples.Call) -> samples.Call:
    """A call with NumPy's numbers for Python's."""

    def numpys(value: Any) -> Any:
        return {float: np.float64, int: np.int64}.get(type(value), lambda same: same)(value)

    args, words = optree.tree_map(numpys, (call.args, call.words), none_is_leaf=True)
    return call._replace(args=args, words=words)


@together(
    "op",
    [op for op in samples.op_db if torch.float32 in op.supported_dtypes("cpu")],
    [f"{op.name} {op.variant_test_name}" for op in samples.op_db if torch.float32 in op.supported_dtypes("cpu")],
    quick=60,
)
def test_numbers_of_numpys_are_taken_for_pythons(op: Any) -> None:
    for call in samples.calls(op, (torch.float32,), every=3):
        numbers = _with_numpys(call)
        if not call.way.changes_input and str(numbers) != str(call):
            verdict = comparing.judged(numbers, dynamic)
            faults = (*comparing.WRONG, comparing.RAW, comparing.REFUSED)
            assert (
                verdict.name not in faults or kind_of(verdict) or comparing.judged(call, dynamic).name == verdict.name
            )


SHARDS = 20
EVERY = 97
"""Of the many more inputs that PyTorch has for numeric ops one in so many is tried."""


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(SHARDS))
def test_nothing_is_wrong(shard: int) -> None:
    asked = Asked(), Asked(reference=True, every=EVERY, dtypes=("float64",))
    rows = [row_of(op, what, dynamic) for op in samples.op_db[shard::SHARDS] for what in asked]
    faults = (*comparing.WRONG, comparing.RAW, comparing.ANSWERED)
    assert [line for row in rows for name, line in row.lines if name in faults] == []
    assert sum(row.counts[comparing.SAME] for row in rows) > 1000
