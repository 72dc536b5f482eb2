"""Base of optimisers: their type, and rules for one parameter applied to containers of them.

Then gradient clipping, by the norm of all gradients or element by element.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from graphs import dims, dispatch, promotion, tree
from graphs.errors import ShapeError, locate
from graphs.op import Array
from graphs.ops.creation import zeros_like
from graphs.ops.elementwise import add, clip, divide, equal, minimum, multiply, sqrt, square, subtract, where
from graphs.ops.manipulation import astype
from graphs.ops.movement import cast
from graphs.ops.reductions import sum
from graphs.ops.shapes import dtype_of, shape_of
from graphs.tree import Tree

State = dict[str, Any]
Update = Callable[..., tuple[Array, ...]]  # (parameter, gradient, *slots) -> (new parameter, *new slots)
Row = tuple[Array, ...]  # a parameter, its gradient and its slots; or their new values, without the gradient
RuleRun = Callable[[Update, Sequence[Row]], list[Row]]
Slots = Mapping[str, Callable[[Array], Array]]  # what is kept for a parameter, by name, and what it starts as


class Optimizer(NamedTuple):
    """`init(params) -> state` and `update(gradients, state, params) -> (new params, new state)`.

    The state holds arrays alone, each slot a container like that of the parameters, which keep their dtypes and shapes.
    `update` raises ShapeError when gradients, state and parameters differ in structure or shape. `change`, where there
    is one, takes and returns the same, with the same bits, but writes arrays of NumPy over: those of a parameter and
    of its slots hold the results.
    """

    init: Callable[[Tree], State]
    update: Callable[[Tree, State, Tree], tuple[Tree, State]]
    change: Callable[[Tree, State, Tree], tuple[Tree, State]] | None = None


def zeros(*names: str) -> Slots:
    """Slots like the parameter itself, that start as zeros."""
    return dict.fromkeys(names, zeros_like)


def plain(slots: Slots, rule: Update) -> Optimizer:
    """Make the optimiser of a rule for one parameter, which works element by element."""

    def update(gradients: Tree, state: State, params: Tree, run: RuleRun = _row_by_row) -> tuple[Tree, State]:
        return _apply_rule(partial(run, rule), slots, gradients, state, params)

    return Optimizer(lambda params: _initial_state(slots, params), update, partial(update, run=_block_by_block))


def counting(slots: Slots, at: Callable[[Array], Update], *, by_element: bool = True) -> Optimizer:
    """Make the optimiser of a rule that depends on the number of steps: `at(steps)`, a float, 1 at first.

    `by_element` tells whether the rule works element by element.
    """

    def update(gradients: Tree, state: State, params: Tree, run: RuleRun = _row_by_row) -> tuple[Tree, State]:
        count = add(state["count"], 1)
        rule = at(astype(count, np.float64))
        params, slot_state = _apply_rule(partial(run, rule), slots, gradients, state, params)
        return params, {"count": count, **slot_state}

    def init(params: Tree) -> State:
        return {"count": np.zeros((), np.int64), **_initial_state(slots, params)}

    return Optimizer(init, update, partial(update, run=_block_by_block) if by_element else None)


def _row_by_row(rule: Update, rows: Sequence[Row]) -> list[Row]:
    return [rule(*row) for row in rows]


BLOCK, FEWEST = 1 << 16, 8
"""The elements of a block: so few that what a rule computes between stays in the cache. And how many small parameters
a block holds at least: to copy larger ones costs more than a call of the rule for each."""


def _block_by_block(rule: Update, rows: Sequence[Row]) -> list[Row]:
    """Apply a rule of elements to blocks, and write its results over the parameters and their slots.

    A block is a part of a large parameter or several small ones, so that a model of many small ones costs few calls.
    What cannot be written over has new results, as in `_row_by_row`. Parameters in one memory change one after another.
    """
    if dispatch.observers:  # who look at whole ops
        return _row_by_row(rule, rows)
    writable = [row for row in rows if _is_writable(row)]
    alike = [[x for x in row if x.shape == row[0].shape] for row in writable]
    if not _are_apart([x for same in alike for i, x in enumerate(same) if i != 1]):
        return [_block_by_block(rule, [row])[0] for row in rows] if len(rows) > 1 else _row_by_row(rule, rows)
    streams: dict[Any, list[Row]] = defaultdict(list)
    for row, same in zip(writable, alike, strict=True):  # a slot that is one number belongs to one parameter alone
        streams[row[0].dtype if len(same) == len(row) else id(row)].append(row)
    results: dict[int, Row] = {}
    for stream in streams.values():
        last = _write_blocks(rule, stream)
        for row in stream:
            new = zip((row[0], *row[2:]), last, strict=True)
            results[id(row)] = tuple([x if x.shape == row[0].shape else number for x, number in new])
    return [results[id(row)] if id(row) in results else rule(*row) for row in rows]


def _write_blocks(rule: Update, rows: Sequence[Row]) -> Row:
    """Write the results over the arrays of the rows; return those of the last block."""
    flat = [[x.reshape(-1) if x.shape == row[0].shape else x for x in row] for row in rows]
    results: Row = (rows[0][0], *rows[0][2:])
    for pieces in _cut([row[0].size for row in rows]):
        parts = [[x[part] if x.ndim else x for x in flat[i]] for i, part in pieces]
        results = rule(*(parts[0] if len(parts) == 1 else map(np.concatenate, zip(*parts, strict=True))))
        end = 0
        for param, _, *slots in parts:
            begin, end = end, end + param.size
            for target, result in zip((param, *slots), results, strict=True):
                if target.ndim:
                    target[...] = result[begin:end] if np.ndim(result) else result  # of the one parameter's own
    return results


def _cut(sizes: Sequence[int]) -> Iterator[list[tuple[int, slice]]]:
    """Cut rows of so many elements into blocks, each a list of rows and of their parts."""
    pieces: list[tuple[int, slice]] = []
    room = BLOCK
    for i, size in enumerate(sizes):
        if size * FEWEST > BLOCK:
            yield from ([(i, slice(start, min(start + BLOCK, size)))] for start in range(0, size, BLOCK))
        elif size:
            if size > room:
                yield pieces
                pieces, room = [], BLOCK
            pieces.append((i, slice(0, size)))
            room -= size
    if pieces:
        yield pieces


def _is_writable(row: Row) -> bool:
    """Whether gradient and slots are NumPy's, of the parameter's dtype, and what is written to lies in row-major order.

    Slots of one number may be anything.
    """
    param, gradient, *slots = row
    if type(gradient) is not np.ndarray or gradient.shape != param.shape or gradient.dtype != param.dtype:
        return False
    same = [x for x in slots if x.shape == param.shape]
    return all(type(x) is np.ndarray and x.dtype == param.dtype and x.flags.carray for x in (param, *same))


def _are_apart(arrays: Sequence[Array]) -> bool:
    """Whether no array in row-major order lies in the memory of another."""
    if all(x.base is None for x in arrays):
        return len({id(x) for x in arrays}) == len(arrays)
    starts = sorted((x.__array_interface__["data"][0], x.nbytes) for x in arrays if x.size)
    return all(start + size <= after for (start, size), (after, _) in pairwise(starts))


def _initial_state(slots: Slots, params: Tree) -> State:
    return {name: tree.tree_map(start, params) for name, start in slots.items()}


def _apply_rule(
    run: Callable[[Sequence[Row]], list[Row]], slots: Slots, gradients: Tree, state: State, params: Tree
) -> tuple[Tree, dict[str, Tree]]:
    """Run a rule on the rows of the leaves, and put the results back into containers."""
    leaves, structure = tree.flatten(params)
    containers = {"gradients": gradients, **{slot: state[slot] for slot in slots}}
    columns = [
        _leaves_of(leaves, structure, what, container, slots.get(what, zeros_like) is zeros_like)
        for what, container in containers.items()
    ]
    rows = run(list(zip(leaves, *columns, strict=True)))
    new_params, *new_slots = [tree.unflatten(structure, [row[i] for row in rows]) for i in range(1 + len(slots))]
    return new_params, dict(zip(slots, new_slots, strict=True))


def _leaves_of(params: list[Array], structure: tree.Structure, what: str, container: Tree, alike: bool) -> list[Array]:
    """The leaves of a container laid out like the parameters; with `alike`, also of the same shapes and dtypes."""
    leaves, layout = tree.flatten(container)
    if layout != structure:
        raise ShapeError(
            locate(
                f"{what} laid out as {tree.describe(layout)}, params as {tree.describe(structure)}; give one for each"
            )
        )
    if not alike:
        return leaves
    return [_fit_param(what, leaf, param) for leaf, param in zip(leaves, params, strict=True)]


def _fit_param(what: str, leaf: Array, param: Array) -> Array:
    """A leaf in the dtype of its parameter. Raises ShapeError for another shape."""
    if type(leaf) is type(param) is np.ndarray and leaf.shape == param.shape and leaf.dtype == param.dtype:
        return leaf  # as nearly all are
    if not dims.same_shape(shape_of(leaf), shape_of(param)):
        raise ShapeError(locate(f"{what} of shape {shape_of(leaf)} for params of shape {shape_of(param)}"))
    return like_param(leaf, param)


def like_param(value: Any, param: Array) -> Any:
    """Cast a value to the dtype of a parameter; a Python number is left as it is."""
    return value if promotion.is_scalar(value) else cast(value, dtype_of(param))


def check_not_negative(**values: Any) -> None:
    """Raise ValueError for a number below 0; symbols are not checked."""
    for name, value in values.items():
        if promotion.is_scalar(value) and not value >= 0:
            raise ValueError(f"{name} is 0 or more, not {value}")


TINY = 1e-6  # keeps the limit from being divided by a norm of 0; the value is that of torch.nn.utils.clip_grad_norm_


def check_adam(learning_rate: float | Array, b1: float, b2: float, eps: float, weight_decay: float) -> None:
    """Raise ValueError for negative numbers, and for averaging weights outside of [0, 1)."""
    check_not_negative(learning_rate=learning_rate, eps=eps, weight_decay=weight_decay)
    if not (0 <= b1 < 1 and 0 <= b2 < 1):
        raise ValueError(f"b1 and b2 are averaging weights from 0 up to, not including, 1; not {b1} and {b2}")


def with_decay(gradient: Array, param: Array, weight_decay: float) -> Array:
    """The gradient with that of the weight decay."""
    return add(gradient, multiply(param, weight_decay)) if weight_decay else gradient


def moving_average(average: Array, new: Array, share: Array) -> Array:
    """The average moved towards a new value by a share of the way."""
    return add(average, multiply(subtract(new, average), share))


def in_bfloat16(x: Array) -> Array:
    """A float32 array rounded to the eight bits of a bfloat16, by Dekker's splitting."""
    shifted = multiply(cast(x, np.float32), 2.0**16 + 1)
    return subtract(shifted, subtract(shifted, cast(x, np.float32)))


def global_norm(gradients: Tree) -> Array:
    """The Euclidean norm of all leaves as one vector; its own gradient at 0 is 0. No leaves: 0, a float32.

    float16 is squared in float32: its squares overflow from 256 on.
    """
    total: Array = np.zeros((), np.float32)
    for leaf in tree.leaves(gradients):
        total = add(total, sum(square(cast(leaf, np.promote_types(dtype_of(leaf), np.float32)))))
    zero = equal(total, 0)
    return where(zero, 0, sqrt(where(zero, 1, total)))


def clip_by_global_norm(gradients: Tree, limit: float | Array) -> Tree:
    """Gradients scaled down together so that their global norm is at most `limit`; dtypes are kept.

    The factor is PyTorch's, `min(1, limit / (norm + 1e-6))` (Pascanu, Mikolov and Bengio, "On the difficulty of
    training recurrent neural networks", 2013). The limit may be traced. Raises ValueError for a negative one.
    """
    check_not_negative(limit=limit)
    factor = minimum(divide(limit, add(global_norm(gradients), TINY)), 1)
    return tree.tree_map(lambda leaf: multiply(leaf, like_param(factor, leaf)), gradients)


def clip_by_value(gradients: Tree, limit: float | Array) -> Tree:
    """Every element limited to the range from `-limit` to `limit`, which may be traced; dtypes are kept.

    Raises ValueError for a negative limit.
    """
    check_not_negative(limit=limit)

    def clip_leaf(leaf: Array) -> Array:
        high = like_param(limit, leaf)
        return clip(leaf, -high, high)

    return tree.tree_map(clip_leaf, gradients)
