"""The compiled tape does what the one in Python does, leaks nothing, and refuses what it cannot read."""

from __future__ import annotations

import functools
import gc
import hashlib
import itertools
import json
import operator
import os
import re
import subprocess
import sys
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dynamic
import graphs as g
from compare.run import processes
from compare.run.environment import environment
from compare.run.job import Job
from dynamic import functional, inplace, tapes
from dynamic.node import Node
from dynamic.options import has_options
from dynamic.pool import _allocator
from dynamic.tape import bind
from graphs import dispatch, op, promotion, transforms, tree
from graphs.ops.slicing import getitem
from graphs.surface import Surface
from graphs.testing.samples import samples
from tests.dynamic.test_shortcuts import NO_SAMPLES, described, elementwise, operand
from tests.helpers.random_graphs import random_program

ROOT = Path(__file__).resolve().parents[2]

if tapes.is_compiled():
    from dynamic.fast import loops, programs, pullbacks, records
else:
    loops = programs = pullbacks = records = None  # and every test that reads them is skipped

compiled_only = pytest.mark.skipif(
    not tapes.is_compiled(),
    reason="the loops of the tape are not compiled here: no C compiler at installation, or GRAPHDUEL_TAPE=python",
)


def in_python(*arguments: str) -> str:
    """What a new process prints that runs the loops in Python."""
    told = {**os.environ, "GRAPHDUEL_TAPE": "python", "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, *arguments], cwd=ROOT, env=told, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(autouse=True)
def nothing_unusual() -> Iterator[None]:
    """Nothing that the loops stand aside for: a test elsewhere may have changed a history in place."""
    assert not dispatch.detours
    before, inplace.clock.rewritten = inplace.clock.rewritten, 0
    yield
    inplace.clock.rewritten = max(before, inplace.clock.rewritten)


# Which tape runs --------------------------------------------------------------------------------------------------


def test_the_variable_switches_the_compiled_loops_off() -> None:
    assert in_python("-c", "from dynamic import tapes; print(tapes.is_compiled())") == "False\n"


def test_an_environment_tells_which_tape_ran(monkeypatch: pytest.MonkeyPatch) -> None:
    assert environment()["tape"] == ("compiled" if tapes.is_compiled() else "python")
    monkeypatch.setattr(tapes, "is_compiled", lambda: False)
    assert environment()["tape"] == "python"


def test_a_worker_has_the_tape_that_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert processes.ask(Job("environment"), 60)["environment"]["tape"] == environment()["tape"]
    monkeypatch.setenv("GRAPHDUEL_TAPE", "python")
    assert processes.ask(Job("environment"), 60)["environment"]["tape"] == "python"


def test_the_doctor_tells_of_the_tape_and_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    from compare.cli import doctor

    told = {}
    for tape, variable in (("compiled", ""), ("python", ""), ("python", "python")):
        monkeypatch.setattr(doctor, "_worker", lambda tape=tape: (doctor.FINE, {"tape": tape}))
        monkeypatch.setenv("GRAPHDUEL_TAPE", variable)
        (told[tape, variable],) = doctor.examine()[1]
    assert told["compiled", ""] == ("tape", "its loops are compiled")
    assert "install a wheel, or a C compiler and then graphduel again" in told["python", ""][1]
    assert "as GRAPHDUEL_TAPE says" in told["python", "python"][1]


# Record -----------------------------------------------------------------------------------------------------------

Function = Callable[..., Any]


def is_recorded(one: op.Op) -> bool:
    """Whether the compiled tape records an op itself."""
    return one.arity != 0 and one.family not in ("custom", "control")


def both(one: op.Op, *, swapped: bool = False) -> tuple[Function, Function]:
    """The record of an op, and the tape in Python."""

    def python(*args: Any, **options: Any) -> Any:
        with interpreted(), pytest.MonkeyPatch.context() as patch:
            patch.setattr(one, "shortcuts", {})
            return one(*(args[::-1] if swapped else args), **options)

    return records.record(one, swapped=swapped), python


def outcome(call: Function, *args: Any, **options: Any) -> Any:
    """All there is to say about a call: what is kept of its result, or its error."""
    try:
        with np.errstate(all="ignore"):
            result = call(*args, **options)
    except Exception as error:  # noqa: BLE001  (whatever it is, it must be the same)
        return type(error), _placeless(str(error))
    if not isinstance(result, dynamic.Tensor):
        array = np.asarray(result)
        return type(result), array.dtype, array.shape, str(array) if array.dtype.hasobject else array.tobytes()
    return *described(result), result.grad, result.requires_grad, result.is_leaf


def _placeless(message: str) -> str:
    """The message without the line that it names."""
    return re.sub(r"test_\w+.py:\d+", "", message)


def operands() -> Iterator[Any]:
    """Tensors with and without a gradient of shapes that broadcast and some that do not; numbers; what is neither."""
    for dtype in (np.float32, np.float64, np.float16, np.int8, np.bool_):
        for shape in ((2, 3), (3,), (2, 1), (), (0, 3), (4,)) if dtype is np.float64 else ((2, 3), (3,)):
            array = np.asarray(np.arange(1, 1 + int(np.prod(shape))).reshape(shape) / 8, dtype)
            yield operand(array, False)
            yield operand(array, True)
    yield dynamic.Tensor(np.ones((3, 4), np.float32, order="F").T, requires_grad=True)  # a view
    yield from (0, 0.0, -0.0, 2, -3, 0.5, np.nan, np.inf, True, False, 300, 10**30, 10**400, 1e300)
    yield from (np.float32(2), np.int64(3), None, "1", 1j, [1.0, 2.0, 3.0], np.ones(3), np.ones((), np.float32), object)


shortened = [
    one
    for one in op.registered().values()
    if is_recorded(one) and one.arity in (1, 2) and (one.arity == 1 or not has_options(one))
]


@compiled_only
@pytest.mark.parametrize("one", shortened, ids=lambda one: one.name)
def test_a_record_does_what_the_tape_in_python_does(one: op.Op) -> None:
    several = list(operands())
    if one.arity == 1:
        ways, calls = [False], [(x,) for x in several]
    else:
        ways = [False, True]
        some = several[::2] if one.family == "elementwise" and one not in records.OPERATORS else several
        calls = [(x, y) for x in several[:12] for y in some] + [(y, x) for x in several[:4] for y in some[12:]]
    for swapped in ways:
        compiled, python = both(one, swapped=swapped)
        assert type(compiled) is loops.Record
        for args in calls:
            assert outcome(compiled, *args) == outcome(python, *args), (swapped, args)
        with dynamic.no_grad():
            assert outcome(compiled, *calls[3]) == outcome(python, *calls[3])


@compiled_only
@pytest.mark.parametrize("name", [o.name for o in shortened if has_options(o) and o.family != "effect"])
def test_a_record_takes_options_as_the_tape_in_python_does(name: str) -> None:
    one = op.get(name)
    compiled, python = both(one)
    x = dynamic.Tensor(np.array([[0.5, -1.0, 2.0]]), requires_grad=True)
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


@compiled_only
@pytest.mark.parametrize(
    "told",
    [None, (None,), (None, None), (None, (None,)), (None, ((1,),))]
    + [(None, ((source, None),)) for source in (-9, -5, -2, 2, 64, "a")],
    ids=str,
)
def test_where_it_is_told_nonsense_a_record_asks_the_interpreter(told: Any) -> None:
    recorder = loops.Recorder(kernel=g.add.kernel, arity=2, find=lambda *_: told, ruled=3, is_elementwise=True)
    x = dynamic.ones(2, requires_grad=True)
    assert described(_record(recorder=recorder)(x, x)) == described(g.add.general(x, x))


# Bind -------------------------------------------------------------------------------------------------------------

recorded = sorted(name for name, one in op.registered().items() if is_recorded(one))


@contextmanager
def interpreted() -> Iterator[None]:
    """Inside, the interpreter for tensors is the one in Python."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(dispatch.interpreters, dynamic.Tensor, bind)
        yield


def twice(one: op.Op, call: Callable[[], Any]) -> Iterator[Any]:
    """What a call gives that the compiled loops make in each of their ways, and what the interpreter says of it."""
    with interpreted(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(one, "shortcuts", {})
        yield outcome(call)
    outcome(call)  # the first use of an op makes its record
    yield outcome(call)  # which learns the options
    yield outcome(call)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(one, "shortcuts", {})
        yield outcome(call)


@compiled_only
@pytest.mark.parametrize("name", [name for name in recorded if op.get(name).family not in NO_SAMPLES])
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
@pytest.mark.parametrize("name", [n for n in recorded if op.get(n).prepare is None and (op.get(n).arity or 0) > 1])
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
    x, at = dynamic.Tensor(np.array([[0.5, -1], [2, 3]]), requires_grad=True), dynamic.Tensor(np.eye(2, dtype=int))
    operands: tuple[Any, ...] = ([x, x],) if one.arity is None else (x, at)[: one.arity]
    pairs = [(o, o) for o in OPTIONS]
    options = [*OPTIONS, *[(o,) for o in OPTIONS], *pairs, *[(pair, pair) for pair in pairs], [1]]
    for order in (options, options[::-1]):
        fresh = records.record(one)
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
    dynamic.Tensor(np.array(1)),
    slice(None, None, 0),
    10**30,
    slice(10**30),
    (),
]


@compiled_only
@pytest.mark.parametrize("shape", [(), (2,), (2, 3), (2, 3, 2)], ids=str)
def test_a_tensor_is_indexed_as_in_python(shape: tuple[int, ...]) -> None:
    def by_surface(x: Any, key: Any) -> Any:
        return getitem(x, key) if type(key) is int else Surface.__getitem__(x, key)

    index = records.record(getitem, item=by_surface)
    keys = [*PARTS, *[(p,) for p in PARTS], *itertools.product(PARTS, repeat=2)]
    keys += [(p, *parts) for p in PARTS[:9] for parts in itertools.product(PARTS[:8], repeat=2)]
    for wanted in (False, True):
        x = operand(np.arange(float(np.prod(shape))).reshape(shape), wanted)
        for key in keys:
            with interpreted(), pytest.MonkeyPatch.context() as patch:
                patch.setattr(getitem, "shortcuts", {})
                expected = outcome(by_surface, x, key)
            assert outcome(index, x, key) == expected, key
            assert outcome(operator.getitem, x, key) == expected, key


@compiled_only
def test_an_index_stands_aside() -> None:
    x = dynamic.Tensor(_X, requires_grad=True)
    assert x[1:].grad_fn is not None
    assert type(dynamic.Tensor.__getitem__) is loops.Record
    seen: list[str] = []
    with dispatch.observed(lambda one, *_: seen.append(one.name)):
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
        x = dynamic.Tensor(np.ones((2, size % 1000)), requires_grad=True)
        assert g.sum(x, axis=size % 2).shape == (x.shape[1 - size % 2],)
        y = dynamic.Tensor(np.ones((2, 2)))
        assert g.roll(y, size, axis=1).tolist() == [[1, 1], [1, 1]]


@compiled_only
def test_many_inputs_and_many_kinds_of_calls_are_recorded_in_python() -> None:
    several = [dynamic.Tensor(np.full(2, float(i)), requires_grad=True) for i in range(70)]
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
    x = dynamic.Tensor(_X, requires_grad=True)
    for args in ((x, x), [x, x]):
        assert described(g.add.apply(args, {})) == described(x + x)
    for args in ((), [], (x,), (x, None), (None, x), (x, object())):
        with interpreted():
            expected = outcome(g.add.apply, args, {})
        assert outcome(g.add.apply, args, {}) == expected


# Program ----------------------------------------------------------------------------------------------------------


def gradients() -> dict[str, str]:
    """A digest of the gradients, to the bit, of random programs, of every sample of every op, and of a model."""
    found = {}
    for seed in range(80):
        one = random_program(seed)
        value, gradient = dynamic.value_and_grad(one)(list(one.inputs))
        found[f"random program {seed}"] = _digest([value, *gradient])
    for name, one in sorted(op.registered().items()):
        for number, sample in enumerate(samples(name) if one.family not in NO_SAMPLES else ()):
            inputs = [operand(a, True) for a in sample.args]
            with np.errstate(all="ignore"):
                try:
                    result = sample.op(*inputs, **sample.attrs)
                    for _ in range(2):  # chains are known the second time
                        if isinstance(result, dynamic.Tensor) and result.requires_grad:
                            seeds = np.linspace(-1, 1, result.size).reshape(result.shape).astype(result.dtype)
                            result.backward(dynamic.Tensor(seeds), retain_graph=True)
                except g.GraphError as error:
                    found[f"{name} {number}"] = str(error)
                    continue
            grads = [i.grad._data for i in inputs if isinstance(i, dynamic.Tensor) and i.grad is not None]
            found[f"{name} {number}"] = _digest(grads)
    for dtype in (np.float16, np.float32, np.float64):
        params, x, y = _model(dtype)
        for number in range(3):
            value, gradient = dynamic.value_and_grad(_loss)(params, x, y)
            found[f"model {np.dtype(dtype)} {number}"] = _digest([value, *gradient.values()])
            params = {name: params[name] - dtype(0.1) * gradient[name] for name in params}
    return found


def _digest(arrays: list[Any]) -> str:
    told = [f"{np.asarray(a).shape} {np.asarray(a).dtype}".encode() + np.asarray(a).tobytes() for a in arrays]
    return hashlib.sha256(b"|".join(told)).hexdigest()[:16]


def _model(dtype: Any = np.float32) -> tuple[dict[str, Any], Any, Any]:
    rng = np.random.default_rng(0)
    shapes = {"w": (3, 5), "b": (5,), "v": (5, 2), "scale": ()}
    params = {name: rng.normal(size=shape).astype(dtype) for name, shape in shapes.items()}
    return params, rng.normal(size=(4, 3)).astype(dtype), np.array([0, 1, 1, 0])


def _loss(params: dict[str, Any], x: Any, y: Any) -> Any:
    h = g.tanh(x @ params["w"] + params["b"]) * 2.0 - 0.5
    z = g.log_softmax((h * h / 3 + 1) @ params["v"] * params["scale"], axis=-1)
    return -g.mean(g.sum(z * g.one_hot(y, 2, dtype=z.dtype), axis=1)) + g.max(h) * 1e-2


@compiled_only
def test_programs_and_chains_give_the_gradients_of_python_to_the_bit() -> None:
    ours = gradients()
    theirs = json.loads(
        in_python("-c", "import json; from tests.dynamic.test_native import *; print(json.dumps(gradients()))")
    )
    assert {name for name in ours | theirs if ours.get(name) != theirs.get(name)} == set()
    assert len(ours) > 300


@compiled_only
def test_most_pullbacks_are_programs() -> None:
    """Or the test above would compare Python with itself."""
    x = dynamic.Tensor(np.array([0.25, 0.5]), requires_grad=True)
    for one in elementwise():
        if one.rules and one.prepare is None and not _is_piecewise(one):
            args = (x,) * (one.arity or 1)
            with np.errstate(all="ignore"):
                one(*args).sum().backward()
            made = pullbacks.pullback(one, (1 << len(args)) - 1, len(args), None)
            assert type(made.apply) is loops.Program, one


def _is_piecewise(one: op.Op) -> bool:
    """Whether some input has no rule."""
    return None in one.rules


# What is held -----------------------------------------------------------------------------------------------------

SINGLES = (None, True, Node, dynamic.Tensor, np.ndarray, np.dtype(np.float32), np.dtype(np.float64))


def growth(step: Callable[[], Any], count: int = 100) -> dict[str, int]:
    """What is held more after `count` steps: references to what lives anyway, objects, and bytes of memory.

    The least of three readings: what the interpreter keeps for later use grows now and then.
    """
    lent = [*SINGLES, g.sin, g.add.kernel, Node.__slots__, *list(promotion.numbers.values())[:8]]
    for _ in range(50):
        step()
    gc.collect()
    tracemalloc.start()
    try:
        readings = []
        for times in (50, count, count, count):
            for _ in range(times):
                step()
            gc.collect()
            counts = [sys.getrefcount(one) for one in lent]
            readings.append([*counts, len(gc.get_objects()), tracemalloc.get_traced_memory()[0]])
    finally:
        tracemalloc.stop()
    *references, objects, traced = np.diff(readings, axis=0).min(axis=0).tolist()
    return {"references": max(references), "objects": objects, "bytes": traced}


def failing(step: Callable[[], Any], error: type[BaseException]) -> None:
    with pytest.raises(error):  # an error that does not come would be a test of nothing
        step()


def _name(step: Callable[[], Any]) -> str:
    return step.__name__.strip("_")


def _train() -> Any:
    params, x, y = _MODEL
    return dynamic.value_and_grad(_loss)(params, x, y)


def _tape() -> None:
    x, w = dynamic.Tensor(_X, requires_grad=True), dynamic.Tensor(_W, requires_grad=True)
    h = g.sin(2.0 * x - 1) * (x @ w) / 3
    (h.sum(axis=0) ** 2).mean().backward(retain_graph=True)
    (h + w[0]).sum().backward()
    with dynamic.no_grad():
        assert (h * 2.5).grad_fn is None


def _items() -> None:
    x = dynamic.Tensor(_X, requires_grad=True)
    several = [x[0], x[1:][0], x[..., 1:3, :][-1], x[None, 2, 0:][0]]
    (g.stack(several, axis=1).sum() + g.concat(several).mean() + x[:, 1].sum()).backward()
    with dynamic.no_grad():
        assert x[0].grad_fn is None


def _several() -> None:
    x, at = dynamic.Tensor(_X, requires_grad=True), dynamic.Tensor(np.array([2, 0]))
    for axis in (0, 1, -1):
        y = g.where(g.take(x, at, axis=axis) > 0, 1.5, g.take(x, at, axis=axis))
        (g.multiply.apply((y, y), {}) + g.clip(y, 0, True) + _X[:1, :1]).sum().backward()
    g.roll(x, (1, 2), axis=(0, 1))
    g.pad(x, ((0, 1), (1, 0)), 0.5)


def _no_item() -> Any:
    return dynamic.Tensor(_X, requires_grad=True)[9]


def _no_key() -> Any:
    return dynamic.Tensor(_X, requires_grad=True)[0:1, 0:1, 0:1]


def _no_index() -> Any:
    return g.take(dynamic.Tensor(_X, requires_grad=True), dynamic.Tensor(np.array([9])), axis=1)


def _no_stack() -> Any:
    return g.stack([dynamic.Tensor(_X, requires_grad=True), dynamic.Tensor(_W)])


def _general_watcher_raises() -> Any:
    with watched(_raise):
        return g.where.apply((dynamic.Tensor(_X > 1), dynamic.Tensor(_X, requires_grad=True), 0.5), {})


def _numbers() -> None:
    x = dynamic.Tensor(_X, requires_grad=True)
    for number in (0, 0.0, -0.0, 2, 2.5, True, _NAN):
        (x * number + number - (number - x)).sum().backward()


def _hooks() -> None:
    x = dynamic.Tensor(_X, requires_grad=True)
    h = x * x
    x.register_hook(lambda gradient: gradient * 2.0)
    h.register_hook(lambda gradient: None)
    h.retain_grad()
    h.sum().backward()
    assert x.grad is not None


def _unlike_arguments() -> Any:
    return dynamic.grad(lambda p, q: g.sum(p["a"] * p["b"][0] * q[0]))({"a": _X, "b": [_X]}, [_X])


def _shared() -> Any:
    return dynamic.grad(lambda p, q: g.sum(p["a"] + p["b"] + q), (0, 1))({"a": _X, "b": _X}, _X)


def _mixed_dtypes() -> None:
    x, half = dynamic.Tensor(_X, requires_grad=True), dynamic.Tensor(_X[:1].astype(np.float16), requires_grad=True)
    (x * half + half).sum().backward()


def _no_shape() -> Any:
    return dynamic.Tensor(_X, requires_grad=True) * dynamic.Tensor(_W, requires_grad=True)


def _no_axis() -> Any:
    return dynamic.Tensor(_X, requires_grad=True).sum(axis=7)


def _no_number() -> Any:
    return dynamic.Tensor(np.ones(2, np.int8)) * 300


def _hook_raises() -> None:
    x = dynamic.Tensor(_X, requires_grad=True)
    h = g.sin(x)
    h.register_hook(_raise)
    (h * x).sum().backward()


def _leaf_hook_raises() -> None:
    x = dynamic.Tensor(_X, requires_grad=True)
    x.register_hook(_raise)
    (x * x).sum().backward()


def _raise(gradient: Any) -> None:
    raise ZeroDivisionError


def _freed_twice() -> None:
    x = dynamic.Tensor(_X, requires_grad=True)
    y = (x * x * 2.0).sum()
    y.backward()
    y.backward()


def _kernel_raises_on_the_way_back() -> None:
    x = dynamic.Tensor(_ZEROS, requires_grad=True)
    y = g.abs(g.sqrt(x))
    with np.errstate(all="raise"):
        y.backward(_ZEROS + 1)


def _kernel_raises() -> Any:
    # Of an array that is made in the call NumPy 2.4 loses a reference to the dtype.
    with np.errstate(all="raise"):
        return g.log(dynamic.Tensor(_ZEROS, requires_grad=True))


def _watcher_raises() -> Any:
    with watched(_raise):
        return g.sin(dynamic.Tensor(_X, requires_grad=True))


def _watcher_raises_on_the_way_back() -> None:
    x = dynamic.Tensor(_X, requires_grad=True)
    y = (g.sin(x) * x * x).sum()
    with watched(_raise):
        y.backward()


@contextmanager
def watched(tell: Callable[[Any], None]) -> Iterator[None]:
    tapes.watchers.append(tell)
    try:
        yield
    finally:
        tapes.watchers.remove(tell)


def _changed_in_place() -> None:
    x = dynamic.Tensor(_X, requires_grad=True)
    h = x * 2.0
    y = (h * h).sum()
    h += 1.0
    y.backward()


def _function_raises() -> Any:
    return dynamic.grad(lambda p: _raise(p["a"] * 2.0))({"a": _X})


def _ints() -> Any:
    return dynamic.grad(lambda p: g.sum(p["a"]))({"a": _X, "b": np.arange(3)})


_X, _W, _NAN = np.linspace(0.5, 1, 12).reshape(4, 3), np.linspace(0, 1, 9).reshape(3, 3), float("nan")
_ZEROS, _MODEL = np.zeros(3), _model()
STEPS = (_train, _tape, _items, _several, _numbers, _hooks, _unlike_arguments, _shared, _mixed_dtypes)
FAILING = {
    _no_shape: g.ShapeError,
    _no_axis: g.ShapeError,
    _no_item: g.ShapeError,
    _no_key: g.ShapeError,
    _no_index: g.ShapeError,
    _no_stack: g.ShapeError,
    _general_watcher_raises: ZeroDivisionError,
    _no_number: g.DTypeError,
    _hook_raises: ZeroDivisionError,
    _leaf_hook_raises: ZeroDivisionError,
    _freed_twice: g.NotDifferentiableError,
    _kernel_raises: FloatingPointError,
    _kernel_raises_on_the_way_back: FloatingPointError,
    _watcher_raises: ZeroDivisionError,
    _watcher_raises_on_the_way_back: ZeroDivisionError,
    _changed_in_place: g.InplaceError,
    _function_raises: ZeroDivisionError,
    _ints: g.NotDifferentiableError,
}


# Quotients by powers of two ------------------------------------------------------------------------------------------

_EDGES = [0.0, -0.0, 1.0, -3.5, 1e-45, -1e-40, 1.5e-38, 3.4e38, np.inf, -np.inf, np.nan, 0.1]
_DIVISORS = [1, 2, 4.0, 1024, 2.0**60, 2.0**120, 3, 0.5, 2.0**-3, -2.0, 1.5, 2**-140, np.inf, np.nan, 1e300]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.dtype(">f4")], ids=str)
@pytest.mark.parametrize("divisor", _DIVISORS)
def test_quotients_have_the_bits_of_numpys(divisor: float, dtype: Any) -> None:
    with np.errstate(all="ignore"):
        x = np.resize(np.array(_EDGES, dtype), 5000)
        y = np.array(divisor, dtype)
        tensor, leaf = dynamic.Tensor(y), dynamic.Tensor(x, requires_grad=True)
        assert (leaf / tensor).detach().numpy().tobytes() == np.divide(x, y).tobytes()
        assert (leaf / divisor).detach().numpy().tobytes() == np.divide(x, divisor).tobytes()
        with dynamic.pool() if _allocator else ExitStack():
            (leaf / tensor).sum().backward()
        assert leaf.grad is not None
        assert leaf.grad.numpy().tobytes() == np.divide(np.ones_like(x), y).tobytes()


# A training step in one call -----------------------------------------------------------------------------------------


def _observed(x: Any) -> Any:
    with dispatch.observed(lambda *_: None):
        return g.sum(x * x)


def _leaves_observers(x: Any) -> Any:
    h = x * x
    h.register_hook(lambda _: _OBSERVERS.enter_context(dispatch.observed(lambda *_: None)))
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
_OUTSIDE = dynamic.Tensor(np.arange(6.0).reshape(2, 3), requires_grad=True)
_HALF = np.linspace(-1, 1, 6).reshape(2, 3)
_FIXED = np.ones((2, 3))
_FIXED.flags.writeable = False
FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "usual": (lambda x: g.sum(x * x), (_HALF,)),
    "float32": (lambda x: g.mean(x * x), (_HALF.astype(np.float32),)),
    "a dict, and constants": (lambda p, c, n: g.sum(p["a"] * c @ p["b"]) * n, ({"a": _HALF, "b": np.eye(3)}, _HALF, 2)),
    "dict and array": (lambda p, c: g.sum(p["a"] * c), ({"a": _HALF}, np.arange(3))),
    "an argument that nothing hangs on": (lambda p: g.sum(p["a"]), ({"a": _HALF, "b": np.ones(4)},)),
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
    "a tensor": (lambda x: g.sum(x * x), (dynamic.Tensor(_HALF),)),
    "an exception": (_raise, (_HALF,)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("around", ["alone", "no_grad", "observed", "batched"])
def test_a_step_in_one_call_is_the_step_by_parts(name: str, around: str) -> None:
    f, args = FUNCTIONS[name]
    calls = []

    def counted(*given: Any) -> Any:
        calls.append(name)
        return f(*given)

    contexts = {"no_grad": dynamic.no_grad, "batched": dynamic.batched, "alone": ExitStack}
    context = contexts.get(around, functools.partial(dispatch.observed, lambda *_: None))
    outcomes = []
    for made in (dynamic.value_and_grad(counted), transforms.value_and_grad(functional._by_parts, counted)):
        with context(), _OBSERVERS:
            try:
                outcomes.append(_content(made(*args)))
            except (g.GraphError, ZeroDivisionError) as error:
                outcomes.append((type(error), str(error)))
    assert outcomes[0] == outcomes[1]
    assert len(calls) == 2 * (name != "ints")


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


@compiled_only
@pytest.mark.parametrize("step", STEPS, ids=_name)
def test_a_step_holds_nothing_afterwards(step: Callable[[], Any]) -> None:
    _assert_nothing_grows(step)


@compiled_only
@pytest.mark.parametrize("step", FAILING, ids=_name)
def test_a_step_that_fails_holds_nothing_afterwards(step: Callable[[], Any]) -> None:
    _assert_nothing_grows(lambda: failing(step, FAILING[step]))


@compiled_only
def test_what_is_refused_is_let_go_of() -> None:
    _assert_nothing_grows(lambda: [failing(refused, errors) for refused, errors in REFUSED])


def test_a_leak_is_noticed() -> None:
    held: list[Any] = []
    found = growth(lambda: held.append((None, [])), 2000)
    assert found["references"] >= 1000 or sys.version_info >= (3, 12)  # where None is immortal
    assert found["objects"] >= 1000
    assert found["bytes"] >= 16 * 2000


def _assert_nothing_grows(step: Callable[[], Any]) -> None:
    # A leak is one a step, of 16 bytes at least. What the interpreter keeps for later use is as much in more steps.
    for steps in (100, 1000):
        found = growth(step, steps)
        if found["references"] < steps / 10 and found["objects"] < steps / 10 and found["bytes"] < 16 * steps:
            return
    pytest.fail(f"in {steps} steps: {found}")


# What is refused --------------------------------------------------------------------------------------------------


def _record(**changed: Any) -> Any:
    """A record of `add`, told something else."""
    return loops.Record(**{**_sum(), **changed})


def _program(**changed: Any) -> Any:
    """The program of the pullback of `sin`, told something else."""
    return loops.Program(**{**_sine(), **changed})


def _step(at: int = 0, **changed: Any) -> Any:
    """The same program, with one instruction told something else: a call, or at -1 the delivery."""
    code = list(_calls())
    code[at] = code[at]._replace(**changed)
    return _program(code=tuple(code))


def _learned() -> Any:
    return loops.Learned(learn=print, otherwise=print, at_once=True)


def _calls() -> tuple[Any, ...]:
    return _sine()["code"]


@functools.cache
def _sum() -> dict[str, Any]:
    with _telling():
        return records.record(g.add)


@functools.cache
def _sine() -> dict[str, Any]:
    with _telling():
        return pullbacks._program(pullbacks.pullback(g.sin, 1, 1, None))


@contextmanager
def _telling() -> Iterator[None]:
    """Inside, what is handed to the loops is what comes back."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loops, "Record", dict, raising=False)
        patch.setattr(loops, "Program", dict, raising=False)
        yield


def _squares(x: Any) -> Any:
    return g.sum(x * x)


def _of_both(entries: list[Node], _: Any) -> dict[Any, Any]:
    """What no walk gives: one view for every edge."""
    return {edge: _W[:1] for entry in entries for edge in entry.edges}


_TOOLS = (lambda *_: {}, lambda array, _: array.copy(), lambda _: "none")

REFUSED: list[tuple[Callable[[], Any], Any]] = [
    (lambda: _record(arity=0), ValueError),
    (lambda: _record(arity=-1), ValueError),
    (lambda: _record(arity=-2, prepared=print), ValueError),
    (lambda: _record(arity=65), ValueError),
    (lambda: _record(arity=1, swapped=True), ValueError),
    (lambda: _record(arity=None), TypeError),
    (lambda: _record(recorder=g.add), TypeError),
    (lambda: loops.Recorder(kernel=abs), TypeError),
    (lambda: loops.Recorder(kernel=1, arity=2, find=1, ruled="1", is_elementwise=True), TypeError),
    (lambda: _record(nothing_of_that_name=1), TypeError),
    (lambda: _program(values=65), ValueError),
    (lambda: _program(saved=64), ValueError),
    (lambda: _program(constants=(1.0,) * 17), ValueError),
    (lambda: _program(constants=[1.0]), TypeError),
    (lambda: _program(code=[]), TypeError),
    (lambda: _program(code=((np.sin,),)), TypeError),
    (lambda: _step(args=0), TypeError),
    (lambda: _step(args=(0,) * 5), ValueError),
    (lambda: _step(args=(9,)), ValueError),
    (lambda: _step(args=("a",)), TypeError),
    (lambda: _step(dropped=(9,)), ValueError),
    (lambda: _program()(Node(), False), TypeError),
    (lambda: _program()(1, False, {}), TypeError),
    (lambda: _program()(Node(), False, None), TypeError),
    (lambda: loops.Learned(learn=print), TypeError),
    (lambda: _learned()(Node(), False), TypeError),
    (lambda: _learned()(1, False, {}), TypeError),
    (lambda: _learned()(Node(), False, None), TypeError),
    (lambda: loops.step(None, _squares, (_X,), [0]), TypeError),
    (lambda: loops.step((print, print), _squares, (_X,), [0]), TypeError),
    (lambda: loops.step(_TOOLS, _squares, (_X,), (0,)), TypeError),
    (lambda: loops.step(_TOOLS, _squares, [_X], [0]), TypeError),
    (lambda: loops.step(_TOOLS, None, (_X,), [0]), TypeError),
    (lambda: loops.step((None, print, print), _squares, (_X,), [0]), TypeError),
    (lambda: loops.step((lambda *_: None, print, print), _squares, (_X,), [0]), TypeError),
    (lambda: loops.step((lambda *_: {}, print, None), _squares, (_X,), [0]), TypeError),
    (lambda: loops.step((_of_both, None, print), _squares, (_X,), [0]), TypeError),
    (lambda: loops.history(5), TypeError),
    (lambda: loops.history([[]]), TypeError),
    (lambda: loops.walk([], {}, set(), True, None), TypeError),
    (lambda: loops.walk((), {}, {}, set(), True, None, None, None), TypeError),
]
"""What is called, and the error that it raises."""

# The same, of what could end the process.
FATAL: list[tuple[str, str]] = [
    ("both(g.subtract, swapped=True)[0](dynamic.ones(2), 1, nothing_of_that_name=1)", "TypeError"),
    ("_program(saved=-1)", "ValueError"),
    ("_program(code=(1,))", "TypeError"),
    ("_step(out=9)", "ValueError"),
    ("_step(out=-1)", "ValueError"),
    ("_step(args=(-9,))", "ValueError"),
    ("_step(dropped=(-1,))", "ValueError"),
    ("_step(attrs=5)", "TypeError"),
    ("_step(-1, args=())", "ValueError"),
    ("_step(-1, args=(-9,))", "ValueError"),
    ("_step(-1, out=1)", "ValueError"),
    ("_step(-1, out=-1)", "ValueError"),
    ("loops.step(_TOOLS, _squares, (_X,), [1])", "IndexError"),
    ("loops.step(_TOOLS, _squares, (_X,), [-1])", "IndexError"),
    ("loops.step(_TOOLS, _squares, (_X,), [0, 0])", "IndexError"),
    ("loops.step(_TOOLS, _squares, (_X,), ['a'])", "TypeError"),
    ("loops.follow(np.ones(2))", "TypeError"),
    ("loops.walk([1], {1: 2}, {}, set(), True, None, None, None)", "TypeError"),
]


@compiled_only
@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_what_a_loop_cannot_read_is_refused(number: int) -> None:
    refused, errors = REFUSED[number]
    failing(refused, errors)


_TRY = """
from tests.dynamic.test_native import *
from tests.dynamic.test_native import _TOOLS, _X, _program, _record, _squares, _step, loops
for refused, _ in FATAL:
    try:
        eval(refused)
        print("nothing")
    except Exception as error:
        print(type(error).__name__, flush=True)
"""


@compiled_only
def test_no_refusal_ends_the_process() -> None:
    """What would be read or written out of bounds, in a process of its own."""
    done = subprocess.run([sys.executable, "-c", _TRY], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout.split() == [error for _, error in FATAL]


@compiled_only
@pytest.mark.parametrize("args", [(0,), (np.arange(3),), (_X, None), ([_X],), ({"a": _X, "b": 1.0},), (_X * 1j,)])
def test_arguments_that_are_not_simple_are_left_to_python(args: tuple[Any, ...]) -> None:
    assert loops.step(_TOOLS, None, args, [0]) is None


@compiled_only
def test_simple_arguments_become_tensors_and_their_gradients_containers_again() -> None:
    params = {"b": _X, "a": _W}
    output, _, (given, variables, edges, keys) = loops.step(
        _TOOLS, lambda *args: args, (params, np.arange(3), _X), [0, 2]
    )
    assert output is given or output == given
    assert list(given[0]) == ["b", "a"]
    assert [type(one) for one in (given[0]["b"], given[1], given[2])] == [dynamic.Tensor] * 3
    assert [one._data is array for one, array in zip(variables, (_X, _W, _X), strict=True)] == [True] * 3
    assert tuple(one._edge for one in variables) == edges
    assert tuple(edge.tensor() for edge in edges) == variables
    assert given[1].requires_grad is False
    assert keys == (("b", "a"), None)


@compiled_only
def test_a_step_gives_away_what_nobody_else_sees_and_zeros_where_nothing_arrived() -> None:
    tensors: list[Any] = []
    found: dict[Any, Any] = {}
    copies: list[Any] = []
    fresh, view = _X.copy(), _W[:2]

    def f(params: Any, x: Any) -> Any:
        tensors[:] = params["b"], params["a"], x
        return g.sum(params["b"]) + g.sum(params["a"]) + g.sum(x)

    def back(entries: list[Node], cotangents: dict[Any, Any]) -> dict[Any, Any]:
        (seed,) = cotangents.values()
        assert (seed.shape, seed.dtype, seed.item()) == ((), _X.dtype, 1)
        found.update(zip([edges[t] for t in ("b", "a")], (fresh, view), strict=True))
        return found

    edges: dict[str, Any] = {}

    def named(params: Any, x: Any) -> Any:
        edges.update(b=params["b"]._edge, a=params["a"]._edge, x=x._edge)
        return f(params, x)

    tools = back, lambda array, _: copies.append(array) or array.copy(), lambda edge: edge
    value, (of_params, of_x), parts = loops.step(tools, named, ({"b": _X, "a": _W}, _X), [0, 1])
    assert parts is None
    assert value == _X.sum() + _W.sum() + _X.sum()
    assert of_params["b"].tolist() == fresh.tolist()
    assert of_params["a"].tolist() == view.tolist()
    assert copies[-1] is view  # somebody's memory
    assert of_params["a"] is not view
    assert of_x is edges["x"]
    assert [one._edge for one in tensors] == [None] * 3
    assert all(edge.closed for edge in edges.values())


@compiled_only
def test_a_program_holds_64_values() -> None:
    call = _calls()[0]
    for count, refused in ((10, False), (62, False), (63, True), (200, True)):
        code = tuple([call._replace(args=(i,), out=i + 1, dropped=(i,)) for i in range(1, count + 1)])
        if refused:
            with pytest.raises(ValueError, match="at most 64 can be"):
                _program(values=count + 2, code=code)
        else:
            assert type(_program(values=count + 2, code=code)) is loops.Program


# Threads ----------------------------------------------------------------------------------------------------------


def test_a_thread_that_records_nothing_stops_no_other() -> None:
    x = dynamic.Tensor(_X, requires_grad=True)
    told: dict[str, list[bool]] = {"idle": [], "recording": []}
    meeting = threading.Barrier(2, timeout=30)

    def look(name: str) -> None:
        for _ in range(20):
            meeting.wait()
            told[name] += [
                (x * 2.0).requires_grad,
                g.sin(x).requires_grad,
                x.sum().requires_grad,
                (x @ _W).requires_grad,
            ]

    def idle() -> None:
        with dynamic.no_grad():
            look("idle")
            with dynamic.enable_grad():
                told["again"] = [(x * 2.0).requires_grad]

    other = threading.Thread(target=idle)
    other.start()
    look("recording")
    other.join()
    assert told == {"idle": [False] * 80, "recording": [True] * 80, "again": [True]}


def test_a_thread_begins_to_record_whatever_the_one_that_started_it_does() -> None:
    x, told = dynamic.Tensor(_X, requires_grad=True), []
    with dynamic.no_grad():
        other = threading.Thread(target=lambda: told.append((x * x).requires_grad))
        other.start()
        other.join()
        assert not (x * x).requires_grad
    assert told == [True]


# Watchers ---------------------------------------------------------------------------------------------------------


@compiled_only
def test_watchers_are_told_of_every_array_and_may_refuse_it() -> None:
    x = dynamic.Tensor(_X, requires_grad=True)
    (g.sin(x) * x).sum().backward()
    seen: list[Any] = []
    with watched(seen.append):
        y = g.sin(x) * x
        assert [one.tolist() for one in seen] == [np.sin(_X).tolist(), (np.sin(_X) * _X).tolist()]
        assert seen[-1] is y._data
        y.backward(np.ones_like(_X))
    assert len(seen) == 2 + 2 + 2 + 1  # of multiply, of sin, and the sum of what arrived at x
    assert seen[-1].tolist() == (np.sin(_X) + np.cos(_X) * _X).tolist()
    with watched(_raise):
        failing(lambda: x * x, ZeroDivisionError)
    assert (x * x).requires_grad


# Operands that others still hold ----------------------------------------------------------------------------------


def _large(value: float) -> Any:
    return dynamic.Tensor(np.zeros(100_000)) + value


@pytest.mark.parametrize("call", ["star", "starmap", "partial"])
def test_a_pool_overwrites_no_operand_that_somebody_holds(call: str) -> None:
    """A tuple lends what it holds to a call without a reference of its own."""
    with dynamic.pool():
        pair = (_large(2.0), _large(3.0))
        times = {
            "star": lambda: operator.add(*pair),
            "starmap": lambda: next(itertools.starmap(operator.add, [pair])),
            "partial": functools.partial(operator.add, _large(2.0), _large(3.0)),
        }[call]
        assert [times()[0].item() for _ in range(3)] == [5.0, 5.0, 5.0]
        assert [one[0].item() for one in pair] == [2.0, 3.0]


@pytest.mark.parametrize("retain", [1, np.True_])
def test_what_is_true_retains_a_graph(retain: Any) -> None:
    x = dynamic.Tensor(_X, requires_grad=True)
    y = (x * x).sum()
    y.backward(retain_graph=retain)
    y.backward(retain_graph=0)
    assert x.grad.numpy().tolist() == (4 * _X).tolist()


def test_a_hook_may_begin_to_observe() -> None:
    x, seen = dynamic.Tensor(_X, requires_grad=True), []
    h = g.cos(x)
    with ExitStack() as stack:
        h.register_hook(
            lambda _: stack.enter_context(dispatch.observed(lambda one, *_: seen.append(one.name))) and None
        )
        h.sum().backward()
    assert "sin" in seen


# The suites of the tape, in Python --------------------------------------------------------------------------------


@compiled_only
@pytest.mark.slow
def test_the_suites_of_the_tape_pass_in_python() -> None:
    suites = [
        f"tests/dynamic/test_{name}.py" for name in ("shortcuts", "batched_views", "own_rules", "concurrent_backward")
    ]
    told = in_python("-m", "pytest", "-q", "-p", "no:cacheprovider", *suites)
    assert " passed" in told


@compiled_only
@pytest.mark.parametrize(("size", "learned"), [(8, True), (2000, False)])
def test_a_large_constant_of_a_rule_is_not_held_for_good(size: int, learned: bool) -> None:
    """The gradient of a scatter in what it writes over makes zeros, which a program would keep."""
    x, at = dynamic.Tensor(np.ones(size + 1), requires_grad=True), dynamic.Tensor(np.arange(size))
    for _ in range(3):
        y = g.scatter(x, at, np.zeros(size))
        pullback = y.grad_fn.pullback
        g.sum(y).backward()
    found = next(run for told, run in pullback.apply.known if told[0] == (size + 1,))
    assert (type(found) is loops.Program) is learned
    assert x.grad.tolist() == [0.0] * size + [3.0]
