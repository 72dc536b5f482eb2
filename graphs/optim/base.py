"""Base of optimisers: their type, and rules for one parameter applied to containers of them.

Then gradient clipping, by the norm of all gradients or element by element.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from graphs import dims, dispatch, promotion, tree
from graphs.errors import ShapeError, locate
from graphs.op import Array
from graphs.ops.creation import zeros_like
from graphs.ops.elementwise import add, clip, divide, equal, minimum, multiply, sqrt, square, where
from graphs.ops.manipulation import astype
from graphs.ops.movement import cast
from graphs.ops.reductions import sum
from graphs.ops.shapes import dtype_of, shape_of
from graphs.tree import Tree

State = dict[str, Any]
Update = Callable[..., tuple[Array, ...]]  # (parameter, gradient, *slots) -> (new parameter, *new slots)
Slots = Mapping[str, Callable[[Array], Array]]  # what is kept for a parameter, by name, and what it starts as


class Optimizer(NamedTuple):
    """`init(params) -> state` and `update(gradients, state, params) -> (new params, new state)`.

    The state holds arrays alone, each slot a container like that of the parameters, which keep their dtypes and shapes.
    `update` raises ShapeError when gradients, state and parameters differ in structure or shape. `change`, where there
    is one, takes and returns the same, with the same bits, but writes large arrays of NumPy over: those of a parameter
    and of its slots hold the results.
    """

    init: Callable[[Tree], State]
    update: Callable[[Tree, State, Tree], tuple[Tree, State]]
    change: Callable[[Tree, State, Tree], tuple[Tree, State]] | None = None


def zeros(*names: str) -> Slots:
    """Slots like the parameter itself, that start as zeros."""
    return dict.fromkeys(names, zeros_like)


def plain(slots: Slots, rule: Update) -> Optimizer:
    """Make the optimiser of a rule for one parameter, which works element by element."""

    def update(gradients: Tree, state: State, params: Tree, rule: Update = rule) -> tuple[Tree, State]:
        return _apply_rule(rule, slots, gradients, state, params)

    return Optimizer(lambda params: _initial_state(slots, params), update, partial(update, rule=_in_blocks(rule)))


def counting(slots: Slots, at: Callable[[Array], Update], *, by_element: bool = True) -> Optimizer:
    """Make the optimiser of a rule that depends on the step number, a float64: `at(steps)` returns the rule.

    `by_element` tells whether the rule works element by element.
    """

    def update(gradients: Tree, state: State, params: Tree, wrap: Callable[[Update], Update] = _as_it_is) -> Any:
        count = add(state["count"], 1)
        params, kept = _apply_rule(wrap(at(astype(count, np.float64))), slots, gradients, state, params)
        return params, {"count": count, **kept}

    def init(params: Tree) -> State:
        return {"count": np.zeros((), np.int64), **_initial_state(slots, params)}

    return Optimizer(init, update, partial(update, wrap=_in_blocks) if by_element else None)


def _as_it_is(rule: Update) -> Update:
    return rule


BLOCK, BLOCKS = 1 << 16, 4
"""Elements of a parameter at a time, so that what a rule computes between stays in the cache and no memory is new; and
the fewest blocks that gain more than the calls cost."""


def _in_blocks(rule: Update) -> Update:
    """Wrap a rule of elements to write its results over the parameter and the slots, where these are large arrays."""

    def change(param: Array, gradient: Array, *slots: Array) -> tuple[Array, ...]:
        written = (param, *[slot for slot in slots if getattr(slot, "shape", ()) == param.shape])
        if not all(_is_like(array, param) for array in (gradient, *written)) or not _are_apart(written):
            return rule(param, gradient, *slots)
        row = [x.reshape(-1) if _is_like(x, param) else x for x in (param, gradient, *slots)]
        results: tuple[Array, ...] = ()
        for start in range(0, param.size, BLOCK):
            part = slice(start, start + BLOCK)
            results = rule(*[x[part] if x.ndim else x for x in row])
            for target, result in zip((row[0], *row[2:]), results, strict=True):
                if target.ndim:
                    target[part] = result
        return tuple([x if x.shape == param.shape else new for x, new in zip((param, *slots), results, strict=True)])

    return change


def _is_like(array: Array, param: Array) -> bool:
    """Whether an array is one of NumPy's in row-major order, large, and of the shape and dtype of a parameter."""
    is_alike = type(array) is np.ndarray and array.shape == param.shape and array.dtype == param.dtype
    return bool(is_alike and array.size >= BLOCK * BLOCKS and array.flags.c_contiguous)


def _are_apart(arrays: tuple[Array, ...]) -> bool:
    """Whether arrays may be written over, and none lies in the memory of another; no observer asks for whole ops."""
    if dispatch.observers or not all(array.flags.writeable for array in arrays):
        return False
    return not any(np.may_share_memory(x, y) for i, x in enumerate(arrays) for y in arrays[:i])


def _initial_state(slots: Slots, params: Tree) -> State:
    return {name: tree.tree_map(start, params) for name, start in slots.items()}


def _apply_rule(
    rule: Update, slots: Slots, gradients: Tree, state: State, params: Tree
) -> tuple[Tree, dict[str, Tree]]:
    """Apply the rule leaf by leaf, and put the results back into containers."""
    leaves, structure = tree.flatten(params)
    containers = {"gradients": gradients, **{slot: state[slot] for slot in slots}}
    columns = [
        _leaves_of(leaves, structure, what, container, slots.get(what, zeros_like) is zeros_like)
        for what, container in containers.items()
    ]
    rows = [rule(*row) for row in zip(leaves, *columns, strict=True)]
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
    for leaf, param in zip(leaves, params, strict=True):
        if not dims.same_shape(shape_of(leaf), shape_of(param)):
            raise ShapeError(locate(f"{what} of shape {shape_of(leaf)} for params of shape {shape_of(param)}"))
    return [like_param(leaf, param) for leaf, param in zip(leaves, params, strict=True)]


def like_param(value: Any, param: Array) -> Any:
    """Cast a value to the dtype of a parameter; a Python number is left as it is."""
    return value if promotion.is_scalar(value) else cast(value, dtype_of(param))


def check_not_negative(**values: Any) -> None:
    """Raise ValueError for a number below 0; symbols are not checked."""
    for name, value in values.items():
        if promotion.is_scalar(value) and not value >= 0:
            raise ValueError(f"{name} is 0 or more, not {value}")


TINY = 1e-6  # keeps the limit from being divided by a norm of 0; the value is that of torch.nn.utils.clip_grad_norm_


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
