"""What PyTorch runs in a step, op by op, as its dispatcher sees it: both passes, below what autograd decomposes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import optree

from compare.engines.step import bound
from compare.records.own import RanOp


def ran(step: Callable[..., Any], call: tuple[Any, ...]) -> list[RanOp]:
    """The ops of a call, in order; `torch.utils.flop_counter` knows the products and their flops."""
    from torch.utils._python_dispatch import TorchDispatchMode

    ops: list[RanOp] = []

    class Counter(TorchDispatchMode):
        def __torch_dispatch__(self, op: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            out = op(*args, **(kwargs or {}))
            ops.append(_of(op, args, kwargs or {}, out))
            return out

    ready = bound(step, call)
    with ready.within(), Counter():
        ready.run()
    return ops


def dtypes(step: Callable[..., Any], call: tuple[Any, ...]) -> set[str]:
    """The dtypes of what the ops of a call make."""
    from torch.utils._python_dispatch import TorchDispatchMode

    seen: set[str] = set()

    class Reader(TorchDispatchMode):
        def __torch_dispatch__(self, op: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            out = op(*args, **(kwargs or {}))
            seen.update(str(tensor.dtype).removeprefix("torch.") for tensor in _tensors(out))
            return out

    with Reader():
        step(*call)
    return seen


def _of(op: Any, args: Any, kwargs: dict[str, Any], out: Any) -> RanOp:
    import torch
    from torch.utils.flop_counter import flop_registry

    if op.is_view:
        return RanOp("view")
    if op.overloadpacket is torch.ops.aten._local_scalar_dense:  # what item(), bool() and float() come to
        return RanOp("read")
    made = _tensors(out)
    elements, moved = sum(tensor.numel() for tensor in made), _bytes(made) + _bytes(_tensors(args))
    count = flop_registry.get(op.overloadpacket)
    if count is None:
        return RanOp("other", elements, moved)
    return RanOp("product", elements, moved, int(count(*args, **kwargs, out_val=out)))


def _tensors(tree: Any) -> list[Any]:
    import torch

    return [leaf for leaf in optree.tree_leaves(tree, none_is_leaf=True) if isinstance(leaf, torch.Tensor)]


def _bytes(tensors: list[Any]) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)
