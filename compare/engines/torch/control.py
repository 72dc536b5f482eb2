"""PyTorch's own control flow: ops that hold functions, which take tensors only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import Any

import optree

Function = Callable[..., Any]

IDIOMS = MappingProxyType(
    {
        "cond": "torch.cond",
        "switch": "torch.cond",
        "while_loop": "torch._higher_order_ops.while_loop",
        "fori_loop": "torch._higher_order_ops.while_loop",
        "scan": "torch._higher_order_ops.scan",
    }
)


def control() -> dict[str, Function]:
    """Each of these by the name that `graphs` has for it."""
    return {"cond": _cond, "switch": _switch, "while_loop": _while_loop, "fori_loop": _fori_loop, "scan": _scan}


def _tensors(tree: Any) -> tuple[list[Any], Any]:
    import torch

    leaves, structure = optree.tree_flatten(tree)
    return [torch.as_tensor(leaf) for leaf in leaves], structure


def _cond(predicate: Any, then: Function, otherwise: Function, *operands: Any) -> Any:
    import torch

    return torch.cond(predicate, then, otherwise, operands)


def _switch(index: Any, branches: Sequence[Function], *operands: Any) -> Any:
    """Branches one within the other, the last for every larger index."""
    first, *others = branches
    if not others:
        return first(*operands)
    return _cond(index <= 0, lambda: first(*operands), lambda: _switch(index - 1, others, *operands))


def _while_loop(test: Function, body: Function, state: Any) -> Any:
    from torch._higher_order_ops.while_loop import while_loop

    leaves, structure = _tensors(state)

    def packed(parts: Any) -> Any:
        return optree.tree_unflatten(structure, list(parts))

    after = while_loop(
        lambda *parts: test(packed(parts)), lambda *parts: tuple(_tensors(body(packed(parts)))[0]), tuple(leaves)
    )
    return packed(after)


def _fori_loop(low: int, high: int, body: Function, state: Any) -> Any:
    def step(pair: Any) -> Any:
        i, inner = pair
        return i + 1, body(i, inner)

    return _while_loop(lambda pair: pair[0] < high, step, (low, state))[1]


def _scan(step: Function, state: Any, xs: Any) -> Any:
    from torch._higher_order_ops.scan import scan

    leaves, structure = _tensors(state)

    def body(parts: Any, x: Any) -> Any:
        after, output = step(optree.tree_unflatten(structure, parts), x)
        return _tensors(after)[0], output

    after, outputs = scan(body, leaves, xs)
    return optree.tree_unflatten(structure, after), outputs
