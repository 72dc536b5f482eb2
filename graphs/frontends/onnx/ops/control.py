"""Control flow: branches and loops of a model become `cond`, `while_loop` and `scan`.

Then sequences of tensors, which are lists, and optional values, which may be None.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from graphs import dispatch, ops
from graphs.errors import ControlFlowError, ShapeError
from graphs.frontends.onnx import table
from graphs.frontends.onnx.ops.shapes import cut
from graphs.frontends.onnx.table import Body, Count, Sizes, numbers, translates
from graphs.ops.shapes import dtype_of, positive_axis, shape_of


@translates("If", since=1)
def branch(condition: Any, *, then_branch: Body, else_branch: Body) -> Any:
    return ops.cond(ops.reshape(condition, ()), lambda: _values(then_branch()), lambda: _values(else_branch()))


def _values(results: tuple[Any, ...]) -> tuple[Any, ...]:
    """The results of a loop body; in a trace, symbolic sizes become tensors."""
    return tuple(table.tensor(result) if table.is_symbolic(result) else result for result in results)


@translates("Loop", since=11)
def loop(limit: Any, condition: Any, *state: Any, body: Body) -> Any:
    """Run `body(number, condition, *state)` while the condition holds, at most `limit` times.

    Results of an iteration besides the state are stacked. A graph then needs a known number of iterations, and the body
    may not end the loop. So it is for a state with a sequence, whose length no iteration of a graph may change.
    """
    going = np.asarray(True) if condition is None else ops.reshape(condition, ())
    if dispatch.tracer() is None or any(isinstance(value, list) for value in state):
        return _while_loop(limit, going, state, body)
    results = body(np.asarray(0, np.int64), going, *state)
    if len(results) == len(state) + 1:
        return _while(limit, going, state, body)
    return _counted_loop(limit, going, state, body)


def _while_loop(limit: Any, going: Any, state: tuple[Any, ...], body: Body) -> Any:
    rows: list[tuple[Any, ...]] = []
    most = None if limit is None else int(np.asarray(limit).item())
    while bool(going) and (most is None or len(rows) < most):
        going, *results = body(np.asarray(len(rows), np.int64), going, *state)
        going = ops.reshape(going, ())
        rows.append(tuple(results[len(state) :]))
        state = tuple(results[: len(state)])
    if rows:
        return (*state, *(ops.stack(list(column)) for column in zip(*rows, strict=True)))
    with np.errstate(all="ignore"):  # a turn that does not happen says what its rows would be
        _, *results = body(np.asarray(0, np.int64), going, *state)
    made = results[len(state) :]
    return (*state, *(ops.full((0, *shape_of(row)), 0, dtype_of(row)) for row in made))


def _while(limit: Any, going: Any, state: tuple[Any, ...], body: Body) -> Any:
    def proceeds(carried: tuple[Any, ...]) -> Any:
        inside = True if limit is None else ops.less(carried[0], ops.reshape(limit, ()))
        return ops.logical_and(carried[1], inside)

    def turn(carried: tuple[Any, ...]) -> tuple[Any, ...]:
        number, ongoing, *values = carried
        following, *results = body(number, ongoing, *values)
        return (ops.add(number, np.asarray(1, np.int64)), ops.reshape(following, ()), *results)

    return ops.while_loop(proceeds, turn, (np.asarray(0, np.int64), going, *state))[2:]


def _counted_loop(limit: Any, going: Any, state: tuple[Any, ...], body: Body) -> Any:
    """A loop whose number of iterations is known when it begins, to stack its results. Raises ControlFlowError."""
    if dispatch.interpreter_of(going) is not None or limit is None:
        raise ControlFlowError(
            "a Loop that stacks results ends where values decide, so that their number is unknown while a graph is "
            "traced; run the model in the dynamic engine"
        )
    (count,) = table.numbers(limit)

    def turn(carried: tuple[Any, ...], number: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        following, *results = body(number, going, *carried)
        if dispatch.interpreter_of(following) is not None or not bool(following):
            raise ControlFlowError(
                "the body of a Loop that stacks results may end it, so that their number is unknown while a graph is "
                "traced; run the model in the dynamic engine"
            )
        return tuple(results[: len(carried)]), tuple(results[len(carried) :])

    last, stacked = ops.scan(turn, state, ops.arange(count if bool(going) else 0))
    return (*last, *stacked)


@translates("Scan", since=9)
def scan(
    *values: Any, body: Body, num_scan_inputs: Count, scan_input_axes: Sizes | None = None,
    scan_input_directions: Sizes | None = None, scan_output_axes: Sizes | None = None,
    scan_output_directions: Sizes | None = None,
) -> Any:  # fmt: skip
    """Run `body(*state, *slices)` for slices of the last inputs along their axes; results are stacked along theirs."""
    count = len(values) - num_scan_inputs
    if count < 0:
        raise ShapeError(f"num_scan_inputs is {num_scan_inputs} of {len(values)} inputs; make it less")
    state, rows = values[:count], values[count:]
    ahead = [
        _flip_if(ops.moveaxis(x, axis, 0), backwards)
        for x, axis, backwards in _each(rows, scan_input_axes, scan_input_directions)
    ]

    def turn(carried: tuple[Any, ...], slices: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        results = body(*carried, *slices)
        return tuple(results[:count]), tuple(results[count:])

    last, stacked = ops.scan(turn, state, tuple(ahead))
    made = [
        ops.moveaxis(_flip_if(y, backwards), 0, axis)
        for y, axis, backwards in _each(stacked, scan_output_axes, scan_output_directions)
    ]
    return (*last, *made)


def _each(values: Any, axes: Sizes | None, directions: Sizes | None) -> Any:
    count = len(values)
    return zip(values, axes or [0] * count, directions or [0] * count, strict=True)


def _flip_if(x: Any, backwards: Any) -> Any:
    return ops.flip(x, axis=0) if backwards and shape_of(x) else x


@translates("SequenceConstruct")
def construct(*values: Any) -> list[Any]:
    return list(values)


@translates("SequenceEmpty")
def empty(*, dtype: np.dtype[Any] | None = None) -> list[Any]:
    return []


@translates("SequenceLength")
def length(sequence: Any) -> Any:
    return np.asarray(len(sequence), np.int64)


@translates("SequenceAt")
def at(sequence: Any, position: Sizes) -> Any:
    return sequence[int(position[0])]


@translates("SequenceInsert")
def insert(sequence: Any, value: Any, position: Sizes | None = None) -> list[Any]:
    place = len(sequence) if position is None else int(position[0])
    return [*sequence[:place], value, *sequence[place:]]


@translates("SequenceErase")
def erase(sequence: Any, position: Sizes | None = None) -> list[Any]:
    place = int(position[0]) % len(sequence) if position else len(sequence) - 1
    return [*sequence[:place], *sequence[place + 1 :]]


@translates("ConcatFromSequence")
def concat_sequence(sequence: Any, *, axis: int, new_axis: bool = False) -> Any:
    return ops.stack(sequence, axis=axis) if new_axis else ops.concat(sequence, axis=axis)


@translates("SplitToSequence")
def split_to_sequence(x: Any, split: Any = None, *, axis: int = 0, keepdims: bool = True) -> list[Any]:
    """Split x into parts of these sizes, or of one size (the last may be smaller), or into slices of 1."""
    at = positive_axis(axis, len(shape_of(x)))
    whole = int(shape_of(x)[at])
    if split is None:
        parts = cut(x, at, [1] * whole)
        return parts if keepdims else [ops.squeeze(part, at) for part in parts]
    sizes = numbers(split)
    if not shape_of(split):
        sizes = [min(sizes[0], whole - first) for first in range(0, whole, sizes[0])]
    return cut(x, at, sizes)


@translates("Optional")
def optional(value: Any = None, *, type: Any = None) -> Any:
    return value


@translates("OptionalHasElement")
def has_element(value: Any = None) -> Any:
    return np.asarray(value is not None)


@translates("OptionalGetElement")
def element(value: Any) -> Any:
    return value
