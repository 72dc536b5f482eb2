"""Eager PyTorch line by line: each op of a step that the dispatcher sees, with the user's line that caused it.

An op of the forward pass belongs to the innermost line of the user's that runs. Autograd numbers the nodes of the
backward pass as the forward pass makes them: a node, and the ops that it runs, belong to the line whose op got its
number.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from time import perf_counter
from types import FrameType
from typing import Any

import optree
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from compare.engines.step import LineOp
from compare.errors import is_users

_is_users = cache(is_users)


def ops(step: Callable[..., Any], call: tuple[Any, ...], wait: Callable[[Any], None]) -> list[LineOp]:
    """Return the ops of one call, in order; `wait(result)` returns when an op's result is computed.

    The time for recording an op is not counted.
    """
    watch = _Watch(wait)
    with torch.autograd.graph.saved_tensors_hooks(watch.keep, lambda tensor: tensor), watch:
        step(*call)
    return watch.ops


class _Watch(TorchDispatchMode):
    """Records the ops that run inside; of their results it keeps only addresses."""

    def __init__(self, wait: Callable[[Any], None]) -> None:
        super().__init__()
        self.ops: list[LineOp] = []
        self.wait = wait
        self._line_of_node: dict[int, str] = {}
        self._made_by: dict[int, tuple[LineOp, int]] = {}
        self._numbered = torch.autograd._get_sequence_nr()
        self._last = perf_counter()

    def __torch_dispatch__(self, op: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = op(*args, **(kwargs or {}))
        self.wait(out)
        seconds = perf_counter() - self._last
        self._note(op, (args, kwargs), out, seconds)
        self._last = perf_counter()
        return out

    def _note(self, op: Any, arguments: Any, out: Any, seconds: float) -> None:
        line = self._line()
        number = torch.autograd._get_sequence_nr()
        self._line_of_node |= dict.fromkeys(range(self._numbered, number), line)
        self._numbered = number
        ran = LineOp(line, seconds)
        self.ops.append(ran)
        before = set() if op.is_view else {_address(tensor) for tensor in _tensors(arguments)}
        for tensor in () if op.is_view else _tensors(out):
            if (address := _address(tensor)) not in before:
                ran.made += tensor.nbytes
                self._made_by[address] = ran, tensor.nbytes

    def _line(self) -> str:
        """Return the line of the present op; in backward, an op without a node's line has that of the op before."""
        node = torch._C._current_autograd_node()
        if node is None:
            return _users_line()
        return self._line_of_node.get(node._sequence_nr(), self.ops[-1].line if self.ops else "")

    def keep(self, tensor: Any) -> Any:
        """Count a tensor as kept for the backward pass, once per address."""
        began = perf_counter()
        made = self._made_by.pop(_address(tensor), None)
        if made is not None:
            ran, nbytes = made
            ran.saved += 1
            ran.saved_bytes += nbytes
        self._last += perf_counter() - began
        return tensor


def _tensors(tree: Any) -> list[Any]:
    leaves = optree.tree_leaves(tree, none_is_leaf=True)
    return [leaf for leaf in leaves if isinstance(leaf, torch.Tensor) and leaf.layout is torch.strided]


def _address(tensor: Any) -> int:
    return int(tensor.untyped_storage().data_ptr()) if tensor.layout is torch.strided else 0


def _users_line() -> str:
    """Return the innermost line of the step in a user's file, `model.py:12`; "" where there is none."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code is not ops.__code__:
        if _is_users(frame.f_code.co_filename):
            return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
        frame = frame.f_back
    return ""
