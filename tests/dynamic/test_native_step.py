"""A training step in one call is the step by parts."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import numpy as np
import pytest

import dynamic
import graphs as g
from dynamic import functional
from graphs import dispatch, transforms, tree
from tests.helpers.both_tapes import compiled_only, loops
from tests.helpers.native_model import raises
from tests.helpers.slow import mostly_slow

pytestmark = pytest.mark.usefixtures("nothing_unusual")

# A training step in one call -----------------------------------------------------------------------------------------


def _observed(x: Any) -> Any:
    with dispatch.observe_kernels(lambda *_: None):
        return g.sum(x * x)


def _leaves_observers(x: Any) -> Any:
    h = x * x
    h.register_hook(lambda _: _OBSERVERS.enter_context(dispatch.observe_kernels(lambda *_: None)))
    return g.sum(h)


def _hooked(x: Any) -> Any:
    h = x * x
    h.register_hook(lambda gradient: gradient * 3)
    return g.sum(h)


def _looks_at_a_view(x: Any) -> Any:
    h = x * 2.0
    h += 1.0
    return g.sum(h * h)


_OBSERVERS = ExitStack()
_OUTSIDE = dynamic.tensor(np.arange(6.0).reshape(2, 3), requires_grad=True)
_HALF = np.linspace(-1, 1, 6).reshape(2, 3)
_FIXED = np.ones((2, 3))
_FIXED.flags.writeable = False
FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "usual": (lambda x: g.sum(x * x), (_HALF,)),
    "float32": (lambda x: g.mean(x * x), (_HALF.astype(np.float32),)),
    "a dict, and constants": (lambda p, c, n: g.sum(p["a"] * c @ p["b"]) * n, ({"a": _HALF, "b": np.eye(3)}, _HALF, 2)),
    "dict and array": (lambda p, c: g.sum(p["a"] * c), ({"a": _HALF}, np.arange(3))),
    "an argument that nothing depends on": (lambda p: g.sum(p["a"]), ({"a": _HALF, "b": np.ones(4)},)),
    "nested containers and numbers": (
        lambda p, c: g.sum(p["layers"][1] @ p["layers"][0][0] * c["scales"][0]) + g.sum(p["bias"]) * c["power"],
        ({"layers": [(np.eye(3),), _HALF], "bias": np.ones(2)}, {"scales": [_HALF[:, :1]], "power": 2}),
    ),
    "a nested container without arrays": (lambda p, c: g.sum(c), ({"layers": [[], None]}, _HALF)),
    "one array twice": (lambda p: g.sum(p["a"] * p["b"]), ({"a": _HALF, "b": _HALF},)),
    "a gradient that is a view": (lambda p: g.sum(p["a"] + p["b"]), ({"a": _HALF, "b": np.ones((2, 3))},)),
    "read-only": (lambda x: g.sum(x * x), (_FIXED,)),
    "nested containers": (lambda p: g.sum(p["a"][0] * p["a"][1]), ({"a": [_HALF, _HALF]},)),
    "ints": (g.sum, (np.arange(3),)),
    "the argument itself": (lambda x: x, (np.array(3.0),)),
    "a view as the value": (lambda x: (x * 2.0)[1, 2], (_HALF,)),
    "a constant": (lambda _: g.sum(g.asarray(np.ones(3))), (_HALF,)),
    "a number": (lambda _: 3.0, (_HALF,)),
    "nothing": (lambda _: None, (_HALF,)),
    "a pair": (lambda x: (g.sum(x), x), (_HALF,)),
    "no scalar": (lambda x: x * x, (_HALF,)),
    "an integer": (lambda x: g.astype(g.sum(x), "int64"), (_HALF,)),
    "no_grad": (dynamic.no_grad()(lambda x: g.sum(x * x)), (_HALF,)),
    "a leaf from outside": (lambda x: g.sum(x * _OUTSIDE), (_HALF,)),
    "a step in a step": (lambda x: g.sum(dynamic.grad(lambda y: g.sum(y * y * x))(x)), (_HALF,)),
    "hooks": (_hooked, (_HALF,)),
    "hooks that begin to observe": (_leaves_observers, (_HALF,)),
    "observed": (_observed, (_HALF,)),
    "changed in place": (_looks_at_a_view, (_HALF,)),
    "a tensor": (lambda x: g.sum(x * x), (dynamic.tensor(_HALF),)),
    "an exception": (raises, (_HALF,)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("around", mostly_slow(["alone", "no_grad", "observed", "batched"], 2))
def test_a_step_in_one_call_is_the_step_by_parts(name: str, around: str) -> None:
    f, args = FUNCTIONS[name]
    calls = []

    def counted(*given: Any) -> Any:
        calls.append(name)
        return f(*given)

    contexts = {"no_grad": dynamic.no_grad, "batched": dynamic.batched, "alone": ExitStack}
    context = contexts.get(around, functools.partial(dispatch.observe_kernels, lambda *_: None))
    outcomes = []
    for made in (dynamic.value_and_grad(counted), transforms.value_and_grad(functional._by_parts, counted)):
        with context(), _OBSERVERS:
            try:
                outcomes.append(_content(made(*args)))
            except (g.GraphError, ZeroDivisionError) as error:
                outcomes.append((type(error), str(error)))
    assert outcomes[0] == outcomes[1]
    assert len(calls) == 2 * (name != "ints")


@compiled_only
@pytest.mark.parametrize(
    "name", ["usual", "a dict, and constants", "nested containers", "nested containers and numbers"]
)
def test_arrays_in_any_containers_take_one_call(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    f, args = FUNCTIONS[name]
    expected = _content(dynamic.value_and_grad(f)(*args))
    monkeypatch.setattr(functional, "_by_parts", None)
    assert _content(dynamic.value_and_grad(f)(*args)) == expected


def _content(result: Any) -> Any:
    leaves, structure = tree.flatten(result)
    return str(structure), [
        (type(leaf), leaf.dtype, np.asarray(leaf).tobytes()) if hasattr(leaf, "dtype") else leaf for leaf in leaves
    ]


def test_what_a_step_gives_is_the_callers() -> None:
    x = np.ones(3)
    value, gradients = dynamic.value_and_grad(lambda p: g.sum(p["a"] + p["b"]))({"a": x, "b": x})
    value[...] = 7
    gradients["a"][...] = 5
    assert (gradients["b"] == 1).all()
    assert (x == 1).all()


def test_nobody_asks_again_for_what_a_step_differentiated() -> None:
    kept: list[Any] = []
    dynamic.value_and_grad(lambda x: kept.append(x) or g.sum(x * x))(np.ones(3))
    assert not kept[0].requires_grad


@compiled_only
@pytest.mark.parametrize("given", [(), (1, 2, 3, 4), ((1, 2, 3, 4), abs, (), []), ((1, 2, 3), abs, [], [])])
def test_a_step_refuses_what_it_cannot_read(given: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError):
        loops.step(*given)
