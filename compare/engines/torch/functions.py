"""PyTorch's functions under the names of `graphs`, and its own control flow, which takes tensors only."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import optree

from compare.engines.library import loop_scan
from compare.engines.step import Function
from compare.records.record import Device


def functions(device: Device) -> dict[str, Function]:
    """Return the functions; tensors that they make lie on the device."""
    import torch
    import torch.nn.functional as F  # noqa: N812  (PyTorch's own way to say it)

    def tensor(x: Any) -> Any:
        return x if isinstance(x, torch.Tensor) else torch.as_tensor(x, device=device)

    def as_dtype(of: Any) -> Any:
        return of if isinstance(of, torch.dtype) else getattr(torch, np.dtype(of).name)

    def reduction(f: Function) -> Function:
        def reduce(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
            axes = tuple(range(x.dim())) if axis is None else axis
            return x if axes == () else f(x, dim=axes, keepdim=keepdims)

        return reduce

    def along(f: Function, last: int | None = None) -> Function:
        return lambda x, axis=last: f(x) if axis is None else f(x, dim=axis)

    def join_along(f: Function) -> Function:
        return lambda xs, axis=0: f([tensor(x) for x in xs], dim=axis)

    def both(f: Function) -> Function:
        return lambda x, y: f(tensor(x), tensor(y))

    def take(x: Any, indices: Any, axis: int = 0) -> Any:
        at = tensor(indices)
        return torch.index_select(x, axis, at.reshape(-1)).reshape(*x.shape[:axis], *at.shape, *x.shape[axis + 1 :])

    def sort(x: Any, axis: int = -1, descending: bool = False) -> Any:
        return torch.sort(x, dim=axis, descending=descending, stable=True)

    same = "tanh exp log sin cos sqrt abs sigmoid relu square floor round reshape moveaxis logical_not"
    return {
        **{name: getattr(torch, name) for name in same.split()},
        **{name: both(getattr(torch, name)) for name in ("maximum", "minimum", "logical_and", "logical_or")},
        **{name: reduction(getattr(torch, name)) for name in ("sum", "mean", "logsumexp")},
        **{name: reduction(getattr(torch, f"a{name}")) for name in ("max", "min")},
        **{name: along(getattr(torch, name)) for name in ("argmax", "argmin", "any", "all", "prod")},
        **{name: along(getattr(torch, name), -1) for name in ("softmax", "log_softmax")},
        "cumulative_sum": lambda x, axis=0: torch.cumsum(x, dim=axis),
        "stack": join_along(torch.stack),
        "concat": join_along(torch.cat),
        "unstack": lambda x, axis=0: torch.unbind(x, dim=axis),
        "expand_dims": lambda x, axis=0: torch.unsqueeze(tensor(x), axis),
        "squeeze": torch.squeeze,
        "broadcast_to": lambda x, shape: torch.broadcast_to(x, tuple(shape)),
        "permute_dims": lambda x, axes=None: torch.permute(x, axes or tuple(reversed(range(x.dim())))),
        "matrix_transpose": lambda x: x.mT,
        "where": lambda test, x, y: torch.where(tensor(test), x, y),
        "clip": lambda x, min=None, max=None: torch.clamp(x, min, max),
        "take": take,
        "take_along_axis": lambda x, indices, axis=-1: torch.take_along_dim(x, tensor(indices), dim=axis),
        "sort": lambda x, **options: sort(x, **options).values,
        "argsort": lambda x, **options: sort(x, **options).indices,
        "roll": lambda x, shift, axis=None: torch.roll(x, shift, axis),
        "repeat": lambda x, repeats, axis=None: torch.repeat_interleave(x, repeats, dim=axis),
        "astype": lambda x, dtype: tensor(x).to(as_dtype(dtype)),
        "zeros": lambda shape, dtype=np.float64: torch.zeros(shape, dtype=as_dtype(dtype), device=device),
        "stop_gradient": lambda x: x.detach(),
        "gelu": F.gelu,
        "cross_entropy": lambda logits, labels: F.cross_entropy(logits, tensor(labels)),
        "embedding": lambda table, ids: F.embedding(tensor(ids), table),
        "layer_norm": lambda x, scale, shift, eps=1e-5: F.layer_norm(x, x.shape[-1:], scale, shift, eps),
        "conv2d": F.conv2d,
        "max_pool2d": F.max_pool2d,
        "attention": lambda q, k, v, mask=None: F.scaled_dot_product_attention(q, k, v, attn_mask=mask),
        "scan": loop_scan(torch.stack),
    }


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
    """Return PyTorch's control flow under the names of `graphs`."""
    return {"cond": _cond, "switch": _switch, "while_loop": _while_loop, "fori_loop": _fori_loop, "scan": _scan}


def _tensors(tree: Any) -> tuple[list[Any], Any]:
    import torch

    leaves, structure = optree.tree_flatten(tree)
    return [torch.as_tensor(leaf) for leaf in leaves], structure


def _cond(predicate: Any, then: Function, otherwise: Function, *operands: Any) -> Any:
    import torch

    return torch.cond(predicate, then, otherwise, operands)


def _switch(index: Any, branches: Sequence[Function], *operands: Any) -> Any:
    """Return nested `torch.cond` calls; the last branch serves every larger index."""
    first, *others = branches
    if not others:
        return first(*operands)
    return _cond(index <= 0, lambda: first(*operands), lambda: _switch(index - 1, others, *operands))


def _while_loop(test: Function, body: Function, state: Any) -> Any:
    from torch._higher_order_ops.while_loop import while_loop

    leaves, structure = _tensors(state)

    def pack(parts: Any) -> Any:
        return optree.tree_unflatten(structure, list(parts))

    after = while_loop(
        lambda *parts: test(pack(parts)), lambda *parts: tuple(_tensors(body(pack(parts)))[0]), tuple(leaves)
    )
    return pack(after)


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
