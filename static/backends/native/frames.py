"""Where the values of a program lie for given sizes: at addresses that are known, or from the start of something else.

Where a view lies is found by looking at it: NumPy makes the view of an array that takes no memory, whose address and
strides say the rest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from graphs.ir import Node
from graphs.ops.control import part
from graphs.ops.linalg import matmul
from static.backends.native.flow import Location
from static.backends.native.laid import LaidArray, row_major
from static.backends.native.target import NativeError
from static.codegen.kernels import resolve
from static.codegen.lowering import LoweredGraph
from static.passes.iteration_space import result


class Frame:
    """A program, what of it is the same in every call, the sizes, and of how many products a value is the right one."""

    def __init__(self, program: LoweredGraph, values: Mapping[Node, Any], sizes: Mapping[str, int]) -> None:
        self.program, self.values, self.sizes = program, values, sizes
        self.owner = program.schedule.owner
        self.right = Counter(node.inputs[1] for node in program.schedule.order if node.op is matmul)
        self.results: dict[Node, list[Node]] = {}
        for node in program.schedule.order:
            if node.op in (result, part):
                self.results.setdefault(node.inputs[0], []).append(node)
        self._shown: dict[Node, np.ndarray[Any, Any]] = {}
        self._roots: dict[Node, Node] = {}

    def laid(self, node: Node, start: Callable[[Node], Location]) -> LaidArray:
        """Where a value lies; `start` says where those do that are neither fixed nor views."""
        array = self.values.get(node)
        if array is not None:
            return LaidArray(-1, array.ctypes.data, array.shape, array.strides, array.dtype)
        array, base = self._show(node), self._show(self.root(node))
        which, offset = start(self.root(node))
        return LaidArray(which, offset + array.ctypes.data - base.ctypes.data, array.shape, array.strides, array.dtype)

    def root(self, node: Node) -> Node:
        """The node that this is a view of."""
        if node not in self._roots:
            root = node
            while root.op is not part and self.owner[root] is not root:
                root = root.inputs[0]
            self._roots[node] = root
        return self._roots[node]

    def shape(self, node: Node) -> tuple[int, ...]:
        """The shape of a value in numbers."""
        shape: tuple[int, ...] = resolve(node.spec.shape, self.sizes)
        return shape

    def _show(self, node: Node) -> np.ndarray[Any, Any]:
        """An array that lies in memory as the value will: one element that stands for all, in row-major order."""
        waiting = [node]
        while waiting[-1] is not self.root(waiting[-1]) and waiting[-1] not in self._shown:
            waiting.append(waiting[-1].inputs[0])
        for view in reversed(waiting):
            if view not in self._shown:
                self._shown[view] = self._view(view) if view is not waiting[-1] else self._owner(view)
        return self._shown[node]

    def _view(self, node: Node) -> np.ndarray[Any, Any]:
        attrs = {key: resolve(value, self.sizes) for key, value in node.attrs.items()}
        whole = self._shown[node.inputs[0]]
        view: np.ndarray[Any, Any] = node.op.kernel(whole, **attrs)
        if _memory_of(view) is not _memory_of(whole):
            raise NativeError(f"what {node.op.name} gives is no view of its operand; use backend='numpy'")
        return view

    def _owner(self, node: Node) -> np.ndarray[Any, Any]:
        shape, element = self.shape(node), np.empty(1, node.spec.dtype)
        return np.lib.stride_tricks.as_strided(element, shape, row_major(shape, element.itemsize))


def _memory_of(array: Any) -> Any:
    """What an array is a view of, and that in turn, up to what has memory of its own."""
    while getattr(array, "base", None) is not None:
        array = array.base
    return array
