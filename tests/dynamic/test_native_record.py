"""The compiled tape records each op as the tape in Python does."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import dynamic
import graphs as g
from dynamic.options import has_options
from dynamic.tensor import with_known_ints
from graphs import dispatch, op
from graphs.frontends.torch.picking import part
from graphs.ops.slicing import getitem
from graphs.testing.samples import samples
from tests.helpers.both_tapes import both, compiled_only, fast, interpreted, is_recorded, loops, outcome, twice
from tests.helpers.growth import failing
from tests.helpers.native_model import X
from tests.helpers.recorded import NO_SAMPLES, described, operand
from tests.helpers.slow import mostly_slow
from tests.helpers.together import together

pytestmark = pytest.mark.usefixtures("nothing_unusual")


def operands() -> Iterator[Any]:
    """Tensors with and without a gradient of shapes that broadcast and some that do not; numbers; what is neither."""
    for dtype in (np.float32, np.float64, np.float16, np.int8, np.bool_):
        for shape in ((2, 3), (3,), (2, 1), (), (0, 3), (4,)) if dtype is np.float64 else ((2, 3), (3,)):
            array = np.asarray(np.arange(1, 1 + int(np.prod(shape))).reshape(shape) / 8, dtype)
            yield operand(array, False)
            yield operand(array, True)
    yield dynamic.tensor(np.ones((3, 4), np.float32, order="F").T, requires_grad=True)  # a view
    yield from (0, 0.0, -0.0, 2, -3, 0.5, np.nan, np.inf, True, False, 300, 10**30, 10**400, 1e300)
    yield from (np.float32(2), np.int64(3), None, "1", 1j, [1.0, 2.0, 3.0], np.ones(3), np.ones((), np.float32), object)


shortened = [
    one
    for one in op.registered_ops().values()
    if is_recorded(one) and one.arity in (1, 2) and (one.arity == 1 or not has_options(one))
]


@compiled_only
@together("one", shortened, ids=lambda one: one.name, quick=12)
def test_a_record_does_what_the_tape_in_python_does(one: op.Op) -> None:
    several = list(operands())
    if one.arity == 1:
        ways, calls = [False], [(x,) for x in several]
    else:
        ways = [False, True]
        some = several[::2] if one.family == "elementwise" and one not in fast.OPERATORS else several
        calls = [(x, y) for x in several[:12] for y in some] + [(y, x) for x in several[:4] for y in some[12:]]
    for swapped in ways:
        compiled, python = both(one, swapped=swapped)
        assert type(compiled) is loops.Record
        for args in calls:
            assert outcome(compiled, *args) == outcome(python, *args), (swapped, args)
        with dynamic.no_grad():
            assert outcome(compiled, *calls[3]) == outcome(python, *calls[3])


@compiled_only
@together("name", [o.name for o in shortened if has_options(o) and o.family != "effect"])
def test_a_record_takes_options_as_the_tape_in_python_does(name: str) -> None:
    one = op.get(name)
    compiled, python = both(one)
    x = dynamic.tensor(np.array([[0.5, -1.0, 2.0]]), requires_grad=True)
    given: list[tuple[Any, dict[str, Any]]] = [((x,), {})]
    given += [((x, axis), {}) for axis in (0, -1, 2, 1.0, (0, 1), [0, 1], "a", slice(1), None, ..., np.int64(1))]
    given += [((x,), {"axis": axis}) for axis in (1, 5, np.ones(2), object)] + [((x,), {"no": 1})]
    for made in samples(name) if one.family not in NO_SAMPLES else ():
        if made.op is one:
            first, *rest = made.args
            given += [((operand(first, wanted), *rest), made.attrs) for wanted in (False, True)]
    for args, options in given:
        assert outcome(compiled, *args, **options) == outcome(python, *args, **options), (args, options)


@compiled_only
@pytest.mark.parametrize(("one", "most", "swapped"), [(g.sin, 1, False), (g.add, 2, False), (g.subtract, 2, True)])
def test_a_wrong_number_of_operands_is_a_type_error(one: op.Op, most: int, swapped: bool) -> None:
    x = dynamic.ones(2)
    for call in both(one, swapped=swapped):
        for args in ((), (x,) * (most - 1), (x,) * (most + 1), (x,) * (most + 2)):
            failing(lambda call=call, args=args: call(*args), TypeError)
        failing(lambda call=call: call(*[x] * most, nothing_of_that_name=1), TypeError)


@compiled_only
def test_on_a_class_a_record_is_a_method() -> None:
    record, _ = both(g.subtract)
    kind = type("Kind", (), {"minus": record})
    assert kind.minus is record
    x = dynamic.ones(2)
    assert kind.minus(x, 3).tolist() == [-2, -2]
    assert record.__get__(x, dynamic.Tensor)(3).tolist() == [-2, -2]
    assert both(g.subtract, swapped=True)[0].__get__(x, dynamic.Tensor)(3).tolist() == [2, 2]


# Bind -------------------------------------------------------------------------------------------------------------

recorded = sorted(name for name, one in op.registered_ops().items() if is_recorded(one))


@compiled_only
@together("name", [name for name in recorded if op.get(name).family not in NO_SAMPLES], quick=25)
def test_every_sample_of_every_op_is_recorded_as_in_python(name: str) -> None:
    one = op.get(name)
    for sample in samples(name):
        count = len(sample.arrays)
        for wanted in range(1 << min(count, 3)):
            for plain in range(1 << min(count, 2)):  # and some inputs are arrays
                inputs = [
                    a if plain >> i & 1 else operand(a, bool(wanted >> i & 1)) for i, a in enumerate(sample.arrays)
                ]
                expected, *found = twice(sample.op, lambda sample=sample, inputs=inputs: sample(*inputs))
                assert found == [expected] * 3, (sample, wanted, plain)
        assert sample.op is not one or one.recorder is not None or not count


@compiled_only
@together("name", [n for n in recorded if op.get(n).prepare is None and (op.get(n).arity or 0) > 1], quick=5)
def test_numbers_beside_tensors_are_what_they_are_in_python(name: str) -> None:
    one = op.get(name)
    numbers = (0, 0.0, -0.0, True, False, 2, -3, 0.5, np.nan, np.inf, 300, 10**30, 1e300, np.float32(2), [1.0, 2.0])
    for dtype in (np.float32, np.float64, np.float16, np.int8, np.bool_):
        x = operand(np.ones((2, 2), dtype), True)
        for number in numbers:
            for at in range(one.arity or 0):
                inputs = [number if i == at else x for i in range(one.arity or 0)]
                expected, *found = twice(one, lambda inputs=inputs: one(*inputs))
                assert found == [expected] * 3, (dtype, number, at)
        for many in range(1 << (one.arity or 0)):
            inputs = [2.5 if many >> i & 1 else x for i in range(one.arity or 0)]
            expected, *found = twice(one, lambda inputs=inputs: one(*inputs))
            assert found == [expected] * 3, (dtype, many)


OPTIONS: list[Any] = [0, 0.0, -0.0, False, True, 1, 1.0, -1, 2, np.int64(1), np.float64(0)]
OPTIONS += ["a", "1", None, ..., slice(1), slice(1.0)]


@compiled_only
@pytest.mark.parametrize("name", ["take", "take_along_axis", "softmax", "sum", "concat", "stack", "roll", "pad"])
def test_options_are_told_apart_by_type_and_value(name: str) -> None:
    """Whichever was met first."""
    one = op.get(name)
    x, at = dynamic.tensor(np.array([[0.5, -1], [2, 3]]), requires_grad=True), dynamic.tensor(np.eye(2, dtype=int))
    operands: tuple[Any, ...] = ([x, x],) if one.arity is None else (x, at)[: one.arity]
    pairs = [(o, o) for o in OPTIONS]
    options = [*OPTIONS, *[(o,) for o in OPTIONS], *pairs, *[(pair, pair) for pair in pairs], [1]]
    for order in (options, options[::-1]):
        fresh = fast.record(one)
        for option in order * 2:
            with interpreted():
                expected = outcome(one.general, *operands, option)
            assert outcome(fresh, *operands, option) == expected, option


PARTS: list[Any] = [0, -1, 1, 5, None, ..., slice(None), slice(1), slice(0, 0), slice(None, None, -1), slice(5, -9, -2)]
PARTS += [
    True,
    False,
    np.int64(1),
    slice(True),
    slice(np.int64(1)),
    slice("a"),
    slice(1.0),
    1.0,
    "a",
    [0],
    [True, False],
]
PARTS += [
    np.array([1, 0]),
    np.array(True),
    dynamic.tensor(np.array(1)),
    slice(None, None, 0),
    10**30,
    slice(10**30),
    (),
]


@compiled_only
@pytest.mark.parametrize("shape", mostly_slow([(2, 3), (), (2,), (2, 3, 2)], 1), ids=str)
def test_a_tensor_is_indexed_as_in_python(shape: tuple[int, ...]) -> None:
    def in_python(x: Any, key: Any) -> Any:
        return getitem(x, key) if type(key) is int else part(x, with_known_ints(key))

    index = fast.record(getitem, general=in_python)
    keys = [*PARTS, *[(p,) for p in PARTS], *itertools.product(PARTS, repeat=2)]
    keys += [(p, *parts) for p in PARTS[:9] for parts in itertools.product(PARTS[:8], repeat=2)]
    for wanted in (False, True):
        x = operand(np.arange(float(np.prod(shape))).reshape(shape), wanted)
        for key in keys:
            with interpreted(), pytest.MonkeyPatch.context() as patch:
                patch.setattr(getitem, "shortcuts", {})
                expected = outcome(in_python, x, key)
            assert outcome(index, x, key) == expected, key
            assert outcome(operator.getitem, x, key) == expected, key


@compiled_only
def test_an_index_stands_aside() -> None:
    x = dynamic.tensor(X, requires_grad=True)
    assert x[1:].grad_fn is not None
    assert type(dynamic.Tensor.__getitem__) is loops.Record
    seen: list[str] = []
    with dispatch.observe_kernels(lambda one, *_: seen.append(one.name)):
        assert described(x[0]) == described(x[0])
    assert seen == ["getitem"] * 2
    with dynamic.no_grad():
        assert x[1:].grad_fn is None
    assert np.shares_memory(x[1:]._data, x._data)
    h = x * 1
    view = h[1:]
    h += 1
    failing(lambda: view[0], g.InplaceError)
    failing(lambda: dynamic.Tensor.__getitem__(x), TypeError)
    failing(lambda: dynamic.Tensor.__getitem__(x, 1, 2), TypeError)


@compiled_only
def test_calls_before_are_forgotten_one_by_one() -> None:
    for size in (*range(1200), *range(1200)):
        x = dynamic.tensor(np.ones((2, size % 1000)), requires_grad=True)
        assert g.sum(x, axis=size % 2).shape == (x.shape[1 - size % 2],)
        y = dynamic.tensor(np.ones((2, 2)))
        assert g.roll(y, size, axis=1).tolist() == [[1, 1], [1, 1]]


@compiled_only
def test_many_inputs_and_many_kinds_of_calls_are_recorded_in_python() -> None:
    several = [dynamic.tensor(np.full(2, float(i)), requires_grad=True) for i in range(70)]
    for count in (1, 63, 64, 65, 70):
        expected, *found = twice(g.stack, lambda count=count: g.stack(several[:count]))
        assert found == [expected] * 3
    for wanted in range(300):
        some = [x if wanted >> i & 1 else x.detach() for i, x in enumerate(several[:10])]
        with interpreted():
            expected = outcome(g.concat.general, some)
        assert outcome(g.concat, some) == expected


@compiled_only
def test_inputs_may_be_any_sequence() -> None:
    x = dynamic.tensor(X, requires_grad=True)
    for args in ((x, x), [x, x]):
        assert described(g.add.apply(args, {})) == described(x + x)
    for args in ((), [], (x,), (x, None), (None, x), (x, object())):
        with interpreted():
            expected = outcome(g.add.apply, args, {})
        assert outcome(g.add.apply, args, {}) == expected
