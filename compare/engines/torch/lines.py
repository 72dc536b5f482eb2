"""Eager PyTorch line by line: each op of a step as the dispatcher sees it, and the user's line that it is of.

An op of the forward pass is of the user's innermost line that runs. Autograd numbers the nodes of the backward pass as
the forward pass makes them: a node is of the line whose op got its number, and so are the ops that the node runs.
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
    """The ops of one call, in the order they run; `wait` returns when what an op was to compute is there.

    The clock stands still while an op is written down.
    """
    watch = _Watch(wait)
    with torch.autograd.graph.saved_tensors_hooks(watch.keep, lambda tensor: tensor), watch:
        step(*call)
    return watch.ops


class _Watch(TorchDispatchMode):
    """Writes down the ops that run inside; of what they make it holds addresses alone."""

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
        """Of an op without a line of its own in the backward pass, which adds gradients up, that of the op before."""
        node = torch._C._current_autograd_node()
        if node is None:
            return _users_line()
        return self._line_of_node.get(node._sequence_nr(), self.ops[-1].line if self.ops else "")

    def keep(self, tensor: Any) -> Any:
        """Note that a tensor is kept for the backward pass, once for what lies at its address."""
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
    """The innermost line of the step in a file of the user's, `model.py:12`; "" where there is none."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code is not ops.__code__:
        if _is_users(frame.f_code.co_filename):
            return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
        frame = frame.f_back
    return ""
