"""The compiled tape refuses what it cannot read."""

from __future__ import annotations

import functools
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import dynamic
import graphs as g
from dynamic.node import Node
from tests.helpers.both_tapes import ROOT, compiled_only, fast, loops, pullbacks
from tests.helpers.growth import assert_nothing_grows, failing
from tests.helpers.native_model import W, X
from tests.helpers.recorded import described
from tests.helpers.together import together

pytestmark = pytest.mark.usefixtures("nothing_unusual")


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


@pytest.mark.slow
@compiled_only
def test_what_is_refused_is_let_go_of() -> None:
    assert_nothing_grows(lambda: [failing(refused, errors) for refused, errors in REFUSED])


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
        return fast.record(g.add)


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
    return {edge: W[:1] for entry in entries for edge in entry.edges}


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
    (lambda: loops.step(None, _squares, (X,), [0]), TypeError),
    (lambda: loops.step((print, print), _squares, (X,), [0]), TypeError),
    (lambda: loops.step(_TOOLS, _squares, (X,), (0,)), TypeError),
    (lambda: loops.step(_TOOLS, _squares, [X], [0]), TypeError),
    (lambda: loops.step(_TOOLS, None, (X,), [0]), TypeError),
    (lambda: loops.step((None, print, print), _squares, (X,), [0]), TypeError),
    (lambda: loops.step((lambda *_: None, print, print), _squares, (X,), [0]), TypeError),
    (lambda: loops.step((lambda *_: {}, print, None), _squares, (X,), [0]), TypeError),
    (lambda: loops.step((_of_both, None, print), _squares, (X,), [0]), TypeError),
    (lambda: loops.history(5), TypeError),
    (lambda: loops.history([[]]), TypeError),
    (lambda: loops.walk([], {}, set(), True, None), TypeError),
    (lambda: loops.walk((), {}, {}, set(), True, None, None, None), TypeError),
]
"""What is called, and the error that it raises."""

# The same, of what could end the process.
FATAL: list[tuple[str, str]] = [
    ("both(g.subtract, swapped=True)[0](dynamic.ones(2), 1, nothing_of_that_name=1)", "ArgumentError"),
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
    ("loops.step(_TOOLS, _squares, (X,), [1])", "IndexError"),
    ("loops.step(_TOOLS, _squares, (X,), [-1])", "IndexError"),
    ("loops.step(_TOOLS, _squares, (X,), [0, 0])", "IndexError"),
    ("loops.step(_TOOLS, _squares, (X,), ['a'])", "TypeError"),
    ("loops.follow(np.ones(2))", "TypeError"),
    ("loops.walk([1], {1: 2}, {}, set(), True, None, None, None)", "TypeError"),
]


@compiled_only
@together("number", range(len(REFUSED)))
def test_what_a_loop_cannot_read_is_refused(number: int) -> None:
    refused, errors = REFUSED[number]
    failing(refused, errors)


_TRY = """
from tests.dynamic.test_native_refused import *
from tests.dynamic.test_native_refused import _TOOLS, _program, _record, _squares, _step
from tests.helpers.both_tapes import both, loops
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
@pytest.mark.parametrize("args", [(0,), (np.arange(3),), (X, None), ([X],), ({"a": X, "b": 1.0},), (X * 1j,)])
def test_arguments_that_are_not_simple_are_left_to_python(args: tuple[Any, ...]) -> None:
    assert loops.step(_TOOLS, None, args, [0]) is None


@compiled_only
def test_simple_arguments_become_tensors_and_their_gradients_containers_again() -> None:
    params = {"b": X, "a": W}
    output, _, (given, variables, edges, keys) = loops.step(
        _TOOLS, lambda *args: args, (params, np.arange(3), X), [0, 2]
    )
    assert output is given or output == given
    assert list(given[0]) == ["b", "a"]
    assert [type(one) for one in (given[0]["b"], given[1], given[2])] == [dynamic.Tensor] * 3
    assert [one._data is array for one, array in zip(variables, (X, W, X), strict=True)] == [True] * 3
    assert tuple(one._edge for one in variables) == edges
    assert tuple(edge.tensor() for edge in edges) == variables
    assert given[1].requires_grad is False
    assert keys == (("b", "a"), None)


@compiled_only
def test_a_step_gives_away_what_nobody_else_sees_and_zeros_where_nothing_arrived() -> None:
    tensors: list[Any] = []
    found: dict[Any, Any] = {}
    copies: list[Any] = []
    fresh, view = X.copy(), W[:2]

    def f(params: Any, x: Any) -> Any:
        tensors[:] = params["b"], params["a"], x
        return g.sum(params["b"]) + g.sum(params["a"]) + g.sum(x)

    def back(entries: list[Node], cotangents: dict[Any, Any]) -> dict[Any, Any]:
        (seed,) = cotangents.values()
        assert (seed.shape, seed.dtype, seed.item()) == ((), X.dtype, 1)
        found.update(zip([edges[t] for t in ("b", "a")], (fresh, view), strict=True))
        return found

    edges: dict[str, Any] = {}

    def named(params: Any, x: Any) -> Any:
        edges.update(b=params["b"]._edge, a=params["a"]._edge, x=x._edge)
        return f(params, x)

    tools = back, lambda array, _: copies.append(array) or array.copy(), lambda edge: edge
    value, (of_params, of_x), parts = loops.step(tools, named, ({"b": X, "a": W}, X), [0, 1])
    assert parts is None
    assert value == X.sum() + W.sum() + X.sum()
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
