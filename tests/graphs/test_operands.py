"""What no tensor holds (complex numbers, objects, text, times) is refused with a DTypeError wherever it can come in."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dynamic
import graphs as g
import static
from graphs import op as registry
from graphs import promotion, tree
from graphs.errors import DTypeError
from graphs.testing.sample import Sample, Values
from graphs.testing.samples import CALLS, samples
from tests.helpers.together import together

ROOT = Path(__file__).resolve().parents[2]
Engine = Callable[[Sample, Sequence[Any]], Any]


def strangers(like: np.ndarray[Any, Any]) -> Iterator[Any]:
    """Values that no tensor holds: arrays of a shape that fits, and scalars."""
    yield from (like.astype(np.complex64), like.astype(np.complex128), like.astype(object))
    yield from (np.full(like.shape, "a"), np.zeros(like.shape, "M8[s]"), np.zeros(like.shape, [("a", "f4")]))
    yield from (like.astype(np.longdouble), np.longdouble(1))
    yield from (1j, np.complex64(1), np.complex128(1), "a", b"a", [1j], object())


def is_held(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.num in promotion.HELD


def eagerly(call: Callable[..., Any], values: Sequence[Any]) -> Any:
    return call(*values)


def on_tensors(call: Callable[..., Any], values: Sequence[Any]) -> Any:
    return call(*[dynamic.tensor(v, requires_grad=v.dtype.kind == "f") if is_held(v) else v for v in values])


def in_a_batch(call: Callable[..., Any], values: Sequence[Any]) -> Any:
    with dynamic.batched():
        return on_tensors(call, values)


def in_a_trace(call: Callable[..., Any], values: Sequence[Any]) -> Any:
    places = [i for i, v in enumerate(values) if is_held(v)]

    def f(*symbols: Any) -> Any:
        given = list(values)
        for place, symbol in zip(places, symbols, strict=True):
            given[place] = symbol
        return call(*given)

    return static.trace(f, *[values[i] for i in places])


ENGINES = [eagerly, on_tensors, in_a_batch, in_a_trace]
INTERNAL = {"part", "input", "constant", "switch", "while_loop", "while_loop_gradient", "scan", "fused", "result"}


def is_checked(name: str, op: registry.Op) -> bool:
    """Whether it is no op of a test, nor control flow, whose operands are those of what it runs."""
    return name not in INTERNAL and op.family not in ("custom", "control")


def refusals(call: Callable[..., Any], arrays: Sequence[Any], run: Any) -> int:
    """Put each stranger in each place; how many were refused, as all must be."""
    count = 0
    for place, array in enumerate(arrays):
        for stranger in strangers(array):
            given = [*arrays[:place], stranger, *arrays[place + 1 :]]
            with pytest.raises(DTypeError, match="tensors hold bools, ints or floats, not "):
                run(call, given)
            count += 1
    return count


@pytest.mark.parametrize("run", ENGINES)
@together("name", [n for n, o in sorted(registry.registered_ops().items()) if is_checked(n, o)], quick=40)
def test_an_op_refuses_what_no_tensor_holds(name: str, run: Any) -> None:
    sample = next(s for s in samples(name) if all(a.size for a in s.arrays))
    assert refusals(sample, sample.arrays, run) == 15 * len(sample.arrays)


# Functions that take arrays, whose values are looked at by NumPy before an op sees them.
COMPOSED = sorted(
    set(CALLS)
    - {"cond", "switch", "while_loop", "fori_loop", "scan", "breakpoint", "print", "result_type", "finfo"}
    - {"from_dlpack"}  # NumPy shares no objects and no text at all
)


@pytest.mark.parametrize("run", ENGINES)
@together("name", COMPOSED, quick=20)
def test_a_function_made_of_ops_refuses_what_no_tensor_holds(name: str, run: Any) -> None:
    args, options = CALLS[name](Values(name))
    leaves, structure = tree.flatten(args)
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, np.ndarray)]

    def call(*arrays: Any) -> Any:
        given = list(leaves)
        for place, array in zip(places, arrays, strict=True):
            given[place] = array
        return operator.attrgetter(name)(g)(*tree.unflatten(structure, given), **options)

    arrays = [leaves[i] for i in places]
    for place, array in enumerate(arrays):
        for stranger in (array.astype(np.complex64), array.astype(object), np.full(array.shape, "a")):
            with pytest.raises(DTypeError):
                run(call, [*arrays[:place], stranger, *arrays[place + 1 :]])


OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y,
    "divide": lambda x, y: x / y,
    "pow": lambda x, y: x**y,
    "floor_divide": lambda x, y: x // y,
    "remainder": lambda x, y: x % y,
    "equal": lambda x, y: x == y,
    "less": lambda x, y: x < y,
    "np.add": np.add,
    "np.maximum": np.maximum,
    "np.where": lambda x, y: np.where(np.array([True, False]), x, y),
    "np.clip": lambda x, y: np.clip(x, y, None),
    "np.stack": lambda x, y: np.stack([x, y]),
}


@pytest.mark.parametrize("run", [on_tensors, in_a_batch, in_a_trace])
@together("name", OPERATORS)
@pytest.mark.parametrize("turned", [False, True])
def test_an_operator_refuses_it_from_either_side(name: str, turned: bool, run: Any) -> None:
    x, apply = np.array([1.0, 2.0]), OPERATORS[name]
    for stranger in (np.array([1j, 2j]), np.array([1j, 2j], np.complex64), np.complex64(1), x.astype(object)):
        if name == "np.clip" and turned:
            continue
        with pytest.raises(DTypeError, match=r"not (complex|object)"):
            run((lambda a, s=stranger: apply(s, a)) if turned else (lambda a, s=stranger: apply(a, s)), [x])


@pytest.mark.parametrize("made", [dynamic.Tensor, dynamic.tensor], ids=["shared", "copied"])
def test_what_is_changed_in_place_takes_nothing_else(made: Callable[..., Any]) -> None:
    x = made(np.array([1.0, 2.0]))
    for stranger in (1j, np.array([1j, 2j]), np.array(["a", "b"])):
        with pytest.raises(DTypeError, match="tensors hold"):
            x[:] = stranger
        with pytest.raises(DTypeError, match="tensors hold"):
            x += stranger
        with pytest.raises(DTypeError, match="tensors hold"):
            x.data = stranger
    np.testing.assert_array_equal(x.numpy(), [1.0, 2.0])


def test_nothing_is_made_of_it() -> None:
    makers: list[Callable[[Any], Any]] = [
        g.asarray,
        g.zeros_like,
        lambda v: g.full((2,), v[0]),
        lambda v: g.full((2,), 1, dtype=v.dtype),
        lambda v: g.zeros((2,), dtype=v.dtype),
        lambda v: g.eye(2, dtype=v.dtype),
        lambda v: g.arange(2, dtype=v.dtype),
        lambda v: g.full_like(np.ones(2), v[0]),
        lambda v: g.astype(np.ones(2), v.dtype),
        lambda v: g.sum(np.ones(2), dtype=v.dtype),
        lambda v: dynamic.arange(2, dtype=v.dtype),  # zeros make a pair of complex numbers
    ]
    pairs: list[Callable[[Any], Any]] = [dynamic.tensor, dynamic.as_tensor]
    strangers = [np.array([1j]), np.ones(1, np.longdouble), np.array([None]), np.array(["a"])]
    for made in (*makers, *pairs):
        for stranger in strangers[made in pairs :]:
            with pytest.raises(DTypeError, match="tensors hold bools, ints or floats, not "):
                made(stranger)
    with pytest.raises(DTypeError, match="from_dlpack: tensors hold"):
        g.from_dlpack(np.array([1j]))
    for ends in ((0, 1j), (1j, 0)):
        with pytest.raises(DTypeError, match=r"linspace: tensors hold .* not complex128"):
            g.linspace(*ends, num=3)
        with pytest.raises(DTypeError, match=r"linspace: tensors hold .* not complex128"):
            dynamic.linspace(*ends, 3)  # type: ignore[arg-type]


def test_gradients_of_it_and_with_it_are_refused() -> None:
    w = np.array([1.0, 2.0])
    for engine in (dynamic, static):
        for f in (
            lambda x: g.sum(g.abs(x * np.complex128(1j))),
            lambda x: g.sum(g.abs(x * np.array([1j, 2j]))),
            lambda x: g.sum(x**1j),
        ):
            with pytest.raises(DTypeError, match=r"f64\[2\] [*]+ c"):
                engine.grad(f)(w)
        with pytest.raises(DTypeError, match="complex128"):
            engine.grad(g.sum)(w * 1j)
        with pytest.raises(DTypeError, match="complex128"):
            engine.vjp(g.square, w)[1](w * 1j)


def test_a_message_names_op_specs_and_line() -> None:
    with pytest.raises(DTypeError) as told:
        dynamic.tensor(np.ones(3)) * np.ones((2, 3), np.complex64)
    assert str(told.value).startswith(
        "multiply: tensors hold bools, ints or floats, not complex64, f64[3] * c64[2,3] (test_operands.py:"
    )
    assert str(told.value).endswith("); convert first")


def test_dtypes_of_other_sizes_and_byte_orders_are_held() -> None:
    x = dynamic.tensor(np.ones(2, np.float32), requires_grad=True)
    for dtype in ("f2", "f4", ">f4", "<f8", ">f8", "?", "i1", "u2", ">i8"):
        np.testing.assert_array_equal((x * np.ones(2, dtype)).detach().numpy(), [1, 1])
