"""Shorter ways than dispatch to defer an op whose first input is deferred."""

from __future__ import annotations

from typing import Any

from dynamic import grad_mode
from dynamic.batching.nodes import DeferredNode
from dynamic.options import has_options, may_remember
from graphs.blocks import innermost
from graphs.op import Op, Shortcut

_PLAIN = {int, bool, str, type(None)}
_OUTSIDE = grad_mode.Mode()


def shortcut(op: Op) -> Shortcut | None:
    """The shortcut of an op whose first input is deferred, if it can have one."""
    if not has_options(op):
        return of_two(op) if op.arity == 2 else _of_any(op)
    return _of_options(op) if op.arity == 1 and may_remember(op) else None


def of_two(op: Op) -> Shortcut:
    """That of an op of two inputs, as most are."""

    def defer(x: Any, y: Any) -> Any:
        recording, _, batch = innermost(grad_mode.thread.blocks, _OUTSIDE)
        return op.general(x, y) if batch is None else batch.defer_two(recording, op, x, y)

    return defer


def _of_any(op: Op) -> Shortcut:
    def defer(*args: Any) -> Any:
        recording, _, batch = innermost(grad_mode.thread.blocks, _OUTSIDE)
        return op.general(*args) if batch is None else batch.defer(recording, op, args, {})

    return defer


def _of_options(op: Op) -> Shortcut:
    """That of an op of one input, which remembers what `prepare` makes of plain options: that takes longest."""

    def defer(x: Any, /, *args: Any, **options: Any) -> Any:
        recording, _, batch = innermost(grad_mode.thread.blocks, _OUTSIDE)
        arguments = (*args, *options.values())
        types = (*map(type, arguments),)  # 1, 1.0 and True are equal
        if batch is None or not _PLAIN.issuperset(types):
            return op.general(x, *args, **options)
        key = op, recording, x.kind, types, (*options,), arguments
        signature = batch.signatures.get(key)
        if signature is not None:
            return batch.note(signature, (x.run,), x.run.level.depth)
        result = op.general(x, *args, **options)
        node = result.run if type(result) is type(x) else None
        if (
            type(node) is DeferredNode
            and node is not x.run
            and node.signature.call.op is op
            and node.inputs[0] is x.run
        ):
            batch.signatures[key] = node.signature
        return result

    return defer
