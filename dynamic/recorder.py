"""The graph of one concrete run: every op, recorded or not, backward included."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

import numpy as np

from dynamic.anomaly import Lines, forward_lines
from dynamic.tensor import Tensor
from graphs import dispatch, promotion, tree
from graphs.builder import Builder
from graphs.ir import GradientLine, Graph, Node
from graphs.op import Attrs, Op
from graphs.reverse import total
from graphs.spec import spec_of


def record(f: Callable[..., Any], *args: Any) -> Graph:
    """Run `f(*args)` and return the graph of all the ops that ran, with the user's lines.

    Array leaves of the arguments are the graph's inputs, array leaves of the result its outputs. The line of a gradient
    is that of the forward op.
    """
    recorder = _Recorder(getattr(f, "__name__", "f"))
    leaves, structure = tree.flatten(args)
    paths = tree.paths(f, args)
    called = [recorder.input(leaf, path) for leaf, path in zip(leaves, paths, strict=True)]
    with forward_lines() as recorder.lines, dispatch.observed(recorder):
        result = f(*tree.unflatten(structure, called))
    return recorder.builder.finish([recorder.node_of(_array(leaf), ()) for leaf in tree.leaves(result)])


def _array(value: Any) -> Any:
    return value._data if issubclass(type(value), Tensor) else value


def _sums_cotangents(start: FrameType) -> bool:
    frame: FrameType | None = start
    while frame is not None and frame.f_code is not total.__code__:
        frame = frame.f_back
    return frame is not None


class _Recorder:
    """Turns each kernel call into a node; arrays are known by identity, and kept so that no identity is reused."""

    def __init__(self, name: str) -> None:
        self.builder = Builder(name)
        self.lines = Lines()
        self.nodes: dict[int, Node] = {}
        self.kept: list[Any] = []
        self.last = GradientLine()

    def input(self, leaf: Any, path: str) -> Any:
        if not issubclass(type(leaf), (np.ndarray, Tensor)):
            return leaf
        array = _array(leaf).view()  # apart from the same array given twice
        self._know(array, self.builder.input(path, spec_of(array)))
        # A tensor even for an array: Python operators between arrays are NumPy's, and would not be seen.
        return Tensor(array, requires_grad=issubclass(type(leaf), Tensor) and leaf.requires_grad)

    def __call__(self, op: Op, arrays: Sequence[Any], attrs: Attrs, out: Any) -> None:
        sources = [self.node_of(a, arrays) for a in arrays]
        self._know(out, self.builder.append(op, sources, attrs, self._line(sys._getframe(1))))

    def _line(self, start: FrameType) -> str:
        """The line of an op; a sum of cotangents is of the line whose gradient came last."""
        gradient, line = self.lines.place(start)
        if gradient:
            self.last = GradientLine(line)
        return self.last if gradient or _sums_cotangents(start) else line

    def node_of(self, value: Any, others: Sequence[Any]) -> Node:
        if promotion.is_scalar(value):  # one object, but another constant beside another dtype
            return self.builder.constant(promotion.typed(value, others))
        node = self.nodes.get(id(value))
        if node is None:
            node = self.builder.constant(promotion.typed(value, others))
            self._know(value, node)
        return node

    def _know(self, value: Any, node: Node) -> None:
        self.kept.append(value)
        self.nodes[id(value)] = node
