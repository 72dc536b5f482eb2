"""Counts of PyTorch's ops in a step: all ops, and those that run outside of compiled code.

The dispatcher shows the ops of both passes, below autograd's decompositions. The profiler shows which ops of a call run
outside of Dynamo's compiled code.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import optree

from compare.engines.step import BoundCall, bind_call
from compare.records.own import RanOp


def ran(step: Callable[..., Any], call: tuple[Any, ...]) -> list[RanOp]:
    """Return the ops of a call, in order; `torch.utils.flop_counter` gives the flops of products."""
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
    """Return the dtypes of the results of a call's ops."""
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
    if op.overloadpacket is torch.ops.aten._local_scalar_dense:  # item(), bool() and float() run this op
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
"""The prefixes of the profiler's events for ops and backward passes, and a backward pass's first op."""
RAN = "AOTDispatcher Runtime Wrapper Prologue"
"""The profiler's event inside a frame that has a compiled graph."""
GRAPH = ("CompiledFunction", "## Call CompiledFxGraph")
"""The prefixes of events of a frame's graph; without Inductor, a graph that needs no gradient has no such event."""

COMPILES = "(dynamo_timed)"
"""The suffix of the compiler's events: ops inside them are not the step's."""


def outside(call: BoundCall) -> int:
    """Return how many ops of the forward pass run outside compiled code; of an eager call all do."""
    import torch

    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # silences the profiler's start and stop messages
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
    """Return whether an event is an op, a backward pass, a graph or compiling, so that inner ops do not count."""
    return id(around) in untold or around.name.startswith((OP, BACKWARD, *GRAPH)) or around.name.endswith(COMPILES)


def _around(event: Any) -> Iterator[Any]:
    while (event := event.cpu_parent) is not None:
        yield event
