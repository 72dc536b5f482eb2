"""Every elementwise op in float16, and its gradient: computed in float32 or more, and rounded once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import dynamic
import graphs
import static
from graphs.errors import GraphError, NotDifferentiableError
from graphs.op import Op, registered_ops
from graphs.reverse import pullback
from graphs.spec import TensorSpec
from tests.helpers.backends import BACKENDS
from tests.helpers.together import together

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

HALF = np.dtype(np.float16)
SIZE = 600


def _takes_half(op: Op) -> bool:
    """Whether the op makes float16 of float16."""
    try:
        return op.infer(*[TensorSpec((SIZE,), HALF)] * (op.arity or 0)).dtype == HALF
    except GraphError:
        return False


OPS = {name: op for name, op in registered_ops().items() if op.family == "elementwise" and _takes_half(op)}


def _inputs(op: Op) -> list[Any]:
    """Numbers of every size for each input, and numbers near 1 beside them."""
    random = np.random.default_rng(len(op.name))
    every = np.arange(1 << 16, dtype=np.uint16).view(HALF)
    every = every[np.isfinite(every)]
    of_any_size = [random.choice(every, SIZE // 3) for _ in range(op.arity or 0)]
    moderate = [random.uniform(-3, 3, SIZE - SIZE // 3).astype(HALF) for _ in of_any_size]
    return [np.concatenate(pair) for pair in zip(of_any_size, moderate, strict=True)]


def _wide(arrays: Sequence[Any]) -> list[Any]:
    return [a.astype(np.float64) if getattr(a, "dtype", None) == HALF else a for a in arrays]


def _places(values: Any) -> Any:
    """The number of each float16 among all of them, in order; 0.0 and -0.0 have one."""
    bits = np.asarray(values, HALF).view(np.int16).astype(np.int32)
    return np.where(bits < 0, -(bits & 0x7FFF), bits)


def _check(found: Any, exact: Any, inputs: Sequence[Any]) -> None:
    assert found.dtype == HALF
    wanted = np.asarray(exact).astype(HALF)
    near = (np.abs(_places(found) - _places(wanted)) <= 1) | (np.isnan(found) & np.isnan(wanted))
    assert near.all(), [(found[i], exact[i], *[x[i] for x in inputs]) for i in np.flatnonzero(~near)[:5]]


@together("name", OPS)
def test_an_op_of_float16_is_rounded_once(name):
    op, inputs = OPS[name], _inputs(OPS[name])
    exact = op.kernel(*_wide(inputs))
    _check(op.kernel(*inputs), exact, inputs)
    if op.parts:
        _check(op.parts(*inputs), exact, inputs)


CANCELLED = {
    "erfcx": "2 * x * erfcx(x) less its limit: float32 has no digits of the difference where x is large",
    "stdtr": "the exponential of a difference of logarithms of gamma, which are large beside it",
}


def _slopes(name: str, differentiate: Callable[..., Any]) -> None:
    """Compare gradients with rules in float64, which read the same inputs, and the same result, of float16."""
    op, inputs = OPS[name], _inputs(OPS[name])
    out, g = op.kernel(*inputs), np.linspace(-1.5, 2.5, SIZE).astype(HALF)
    for i in range(len(inputs)):
        if not op.rule(i):
            continue
        rules = pullback(op, 1 << i, len(inputs))
        values = _wide([*rules.save(inputs, out, {}), g])
        try:
            exact = rules.steps[-1].rule.apply(values[-1], *values[:-1])
        except NotDifferentiableError:
            continue
        found = differentiate(lambda *xs: graphs.sum(graphs.multiply(op(*xs), g)), i)(*inputs)
        _check(np.asarray(found), np.where(np.isfinite(out), exact, found), inputs)


DIFFERENTIABLE = [name for name, op in OPS.items() if op.rules and name not in CANCELLED]


@together("name", DIFFERENTIABLE)
def test_a_gradient_of_float16_is_rounded_once(name):
    _slopes(name, dynamic.grad)


@together("name", DIFFERENTIABLE, quick=20)
def test_a_gradient_of_float16_in_a_graph_is_rounded_once(name):
    for backend in BACKENDS:
        _slopes(name, lambda f, i, backend=backend: static.jit(static.grad(f, i), backend=backend))
