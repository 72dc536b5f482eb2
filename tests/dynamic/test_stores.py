"""A tensor put into a NumPy array loses its gradient: that is an error which names the line, and never silent."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dynamic
import graphs as g
import static
from graphs.errors import ControlFlowError, GraphError
from tests.helpers.programs import program


def in_a_loop(x: Any) -> Any:
    y = g.zeros_like(np.ones(3))
    for i in range(3):
        y[i] = float(i) if i == 0 else x[i] + y[i - 1]
    return y


STORES = [
    program("y = g.zeros(3) | y[0] = x[1] * 2 | y"),
    program("y = np.zeros((2, 2), np.float32) | y[0, -1] = g.sum(x) | y"),
    program("y = np.zeros(3, np.int64) | y[0] = x[:1] | y"),
    program("y = np.zeros(3) | y[0] += x[1] | y"),
    in_a_loop,
    program("y = np.zeros(3) | y.fill(x[0] * math.sqrt(4)) | y"),
    lambda x: np.fromiter([x[i] for i in range(3)], float),
]
OTHERS = [
    program("y = np.zeros(3) | y[:] = x | y"),
    program("y = np.zeros(3) | y[:2] = [x[0], x[1]] | y"),
    program("y = np.zeros(3) | y[np.array([True, False, True])] = x[0] | y"),
    lambda x: np.array([x[0], x[1]]),
    program("y = np.zeros(3) | y.put([0], x[0]) | y"),
]


def told_by(told: pytest.ExceptionInfo[Exception], store: Callable[..., Any]) -> str:
    """What our error says, for which NumPy says something else where an element is set; it must name the line."""
    error = told.value if isinstance(told.value, GraphError) else told.value.__cause__
    assert isinstance(error, GraphError)
    (line,) = [entry.lineno + 1 for entry in told.traceback if entry.frame.code.raw is store.__code__]
    assert f"({Path(store.__code__.co_filename).name}:{line}); " in str(error)
    return str(error)


def plainly(store: Callable[..., Any], x: np.ndarray[Any, Any]) -> None:
    store(dynamic.tensor(x, requires_grad=True) * 1)


def in_a_batch(store: Callable[..., Any], x: np.ndarray[Any, Any]) -> None:
    with dynamic.batched():
        store(dynamic.tensor(x, requires_grad=True) * 1)


def in_a_transform(store: Callable[..., Any], x: np.ndarray[Any, Any]) -> None:
    dynamic.grad(lambda a: g.sum(store(a)))(x)


@pytest.mark.parametrize("run", [plainly, in_a_batch, in_a_transform])
@pytest.mark.parametrize("store", [*STORES, *OTHERS])
def test_a_tensor_that_requires_a_gradient_is_not_stored(store: Callable[..., Any], run: Callable[..., None]) -> None:
    with pytest.raises((GraphError, ValueError)) as told:
        run(store, np.array([1.0, 2.0, 3.0]))
    said = told_by(told, store)
    assert "a tensor that requires a gradient" in said
    assert "graphs.stack" in said
    assert "detach()" in said


@pytest.mark.parametrize("store", [*STORES, *OTHERS])
def test_a_symbol_is_not_stored(store: Callable[..., Any]) -> None:
    for run in (lambda f: static.trace(f, np.ones(3)), lambda f: static.grad(lambda x: g.sum(f(x)))(np.ones(3))):
        with pytest.raises(ControlFlowError, match="NumPy array needs the value of f64") as told:
            run(store)
        said = told_by(told, store)
        assert "unknown while the graph is traced" in said
        assert "use graphs.stack, graphs.where or graphs.setitem" in said or store in OTHERS


def test_what_has_no_gradient_is_stored() -> None:
    x = dynamic.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = np.zeros(4)
    y[0] = x[1].detach()
    y[1] = x.detach()[2]
    with dynamic.no_grad():
        y[2] = x[0] * 4
        y[3] = x[0]
    np.testing.assert_array_equal(y, [2, 3, 4, 1])
    y.fill((x * 2)[0].item())
    np.testing.assert_array_equal(y, [2, 2, 2, 2])


def test_a_number_is_still_made_of_it() -> None:
    """For printing, logging and Python's own control flow, as in PyTorch."""
    x = dynamic.tensor([0.5], requires_grad=True) * 1
    log: dict[str, float] = {}
    values = [0.0]
    log["loss"] = float(x)
    values[0] = float(x)
    y = np.zeros(2)
    y[int(x)] = float(x) + math.sin(x)
    y[1] = max(float(x), 0.25)
    assert log["loss"] == values[0] == float(x) == x.item() == complex(x) == 0.5
    assert y.tolist() == [0.5 + math.sin(0.5), 0.5]
    assert (f"{x[0]:.2f}", int(x + 1), math.floor(float(x))) == ("0.50", 1, 0)
    assert not [0] * int(x)
    np.full(2, float(x)).fill(float(x))


def test_a_tensor_may_be_filled_instead() -> None:
    x = dynamic.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = dynamic.zeros(3)
    for i in range(3):
        y[i] = x[i] * (i + 1)
    g.sum(y).backward()
    assert x.grad is not None
    np.testing.assert_array_equal(x.grad.numpy(), [1, 2, 3])
    for engine in (dynamic, static):
        stacked = engine.grad(lambda x: g.sum(g.stack([x[i] * (i + 1) for i in range(3)])))(np.ones(3))
        placed = engine.grad(lambda x: g.sum(g.setitem(g.zeros(3), x[1] * 2, 0)))(np.ones(3))
        np.testing.assert_array_equal(stacked, [1, 2, 3])
        np.testing.assert_array_equal(placed, [0, 2, 0])


def test_no_warning_tells_of_it() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert float(dynamic.tensor(2.0, requires_grad=True)) == 2.0
