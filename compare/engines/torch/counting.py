"""What PyTorch runs in a step, op by op, as its dispatcher sees it: both passes, below what autograd decomposes.

Which ops of a call run outside of what Dynamo has compiled, as its profiler sees them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import optree

from compare.engines.step import BoundCall, bind_call
from compare.records.own import RanOp


def ran(step: Callable[..., Any], call: tuple[Any, ...]) -> list[RanOp]:
    """The ops of a call, in order; `torch.utils.flop_counter` knows the products and their flops."""
    from compare.engines.torch.drawing import DispatchMode

    ops: list[RanOp] = []

    def note(op: Any, args: Any, options: dict[str, Any], result: Any) -> Any:
        ops.append(_count_op(op, args, options, result))
        return result

    ready = bind_call(step, call)
    with ready.within(), DispatchMode(note):
        ready.run()
    return ops


def dtypes(step: Callable[..., Any], call: tuple[Any, ...]) -> set[str]:
    """The dtypes of what the ops of a call make."""
    from compare.engines.torch.drawing import DispatchMode

    seen: set[str] = set()

    def note(_: Any, __: Any, ___: Any, result: Any) -> Any:
        seen.update(str(tensor.dtype).removeprefix("torch.") for tensor in _tensors(result))
        return result

    with DispatchMode(note):
        step(*call)
    return seen


def _count_op(op: Any, args: Any, kwargs: dict[str, Any], out: Any) -> RanOp:
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


OP, BACKWARD, SEED = "aten::", "autograd::engine", "aten::ones_like"
"""How ops and backward passes begin, and the op that a backward pass begins with."""
RAN = "AOTDispatcher Runtime Wrapper Prologue"
"""What stands in a frame that has a graph."""
GRAPH = ("CompiledFunction", "## Call CompiledFxGraph")
"""How the graph of a frame begins, where it is told: one of a frame that needs no gradient is not, without Inductor."""

COMPILES = "(dynamo_timed)"
"""How the work of the compiler ends, where the call compiles: its ops are none of the step's."""


def outside(call: BoundCall) -> int:
    """How many ops of the forward pass run outside of compiled code. Of an eager call that is all of them."""
    import torch

    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # it tells when it starts and stops
    with torch.autograd.profiler.profile(use_kineto=False) as seen, call.within():
        call.run()
    events: list[Any] = list(seen.function_events or ())
    told = {id(around) for event in events if event.name.startswith(GRAPH) for around in _around(event)}
    untold = {id(event.cpu_parent) for event in events if event.name == RAN} - told
    return sum(
        event.name.startswith(OP)
        and event.name != SEED
        and not any(_covers(around, untold) for around in _around(event))
        for event in events
    )


def _covers(around: Any, untold: set[int]) -> bool:
    """Whether what runs inside of an event is part of an op, of a backward pass, of a graph or of compiling."""
    return id(around) in untold or around.name.startswith((OP, BACKWARD, *GRAPH)) or around.name.endswith(COMPILES)


def _around(event: Any) -> Iterator[Any]:
    while (event := event.cpu_parent) is not None:
        yield event
