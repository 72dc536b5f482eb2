"""A native program bound to sizes: every address is known or comes with a call, every node a recipe or a NumPy kernel.

Where a view lies is found by looking at it: NumPy makes the view of an array that takes no memory, whose address and
strides say the rest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from graphs.ir import CONSTANT, INPUT, Node
from graphs.ops.control import part
from static import memory
from static.backends.native import link, recipes, reference, step
from static.backends.native.products import Product
from static.backends.native.program import Segment
from static.codegen import binding
from static.codegen.binding import Binder, Binding
from static.codegen.lowering import Program, Slot
from static.codegen.results import KEPT
from static.codegen.sizes import Runs, resolve
from static.passes.iteration_space import fused, result


def bind(program: Program, sizes: Mapping[str, int], others: Sequence[Binding] = (), kept: int = KEPT) -> Binding:
    """Lay out the arena, make the kernels for these sizes, and the function to call."""
    return binding.bind(program, sizes, others, kept, _Binder)


class _Binder(Binder):
    """Makes the function of each segment."""

    def default(self, slot: Slot, program: Program, values: Mapping[Node, Any], runs: Runs) -> Any:
        """What a parameter of the function holds: of a segment what runs it."""
        if slot[2] == "s":
            segment = _Segment(slot[3], program, values, self.sizes)
            function = segment.made()
            self.kernels += segment.recipes
            return function
        return super().default(slot, program, values, runs)


class _Segment:
    """A segment for given sizes: where each node of it finds its operands, and puts its results."""

    def __init__(
        self, segment: Segment, program: Program, values: Mapping[Node, Any], sizes: Mapping[str, int]
    ) -> None:
        self.segment, self.program, self.values, self.sizes = segment, program, values, sizes
        self.owner = program.schedule.owner
        self.number = {node: i for i, node in enumerate((*segment.given, *segment.made))}
        self.shown: dict[Node, np.ndarray[Any, Any]] = {}
        self.roots: dict[Node, Node] = {}
        self.copies: dict[Any, np.ndarray[Any, Any]] = {}
        self.kept: list[np.ndarray[Any, Any]] = []
        self.recipes: list[Any] = []
        self.results: dict[Node, list[Node]] = {}
        for node in program.schedule.order:
            if node.op is result:
                self.results.setdefault(node.inputs[0], []).append(node)

    def made(self) -> Callable[..., Any]:
        """The function to call."""
        work = [one for node in self.segment.nodes for one in self._work(node)]
        scratch = _scratch(work)
        calls = [step.Call(recipe, [*places, *scratch[recipe]]) for recipe, places in work]
        self.recipes = [recipe for recipe, _ in work]
        made = [step.Made(resolve(node.spec.shape, self.sizes), node.spec.dtype) for node in self.segment.made]
        keeps = (scratch, self.kept, self.values)
        if reference.is_on():
            return step.interpreted(calls, made, [recipe.lower() for recipe in self.recipes], keeps)
        where = link.addresses(self.recipes)
        is_long = sum(recipe.operations for recipe in self.recipes) > step.UNLOCKED
        return step.make(calls, len(self.segment.given), made, where.__getitem__, link.entry(), is_long, keeps)

    def _work(self, node: Node) -> list[tuple[Any, list[tuple[int, int]]]]:
        """The recipes of a node, each with the places of its parameters but for scratch."""
        outs = sorted(self.results[node], key=lambda n: n.attrs["number"]) if node.op is fused else [node]
        operands, targets = [self.laid(source) for source in node.inputs], [self.laid(out) for out in outs]
        work = recipes.of(node, operands, targets, self.sizes)
        return [one for made in work for one in self._turned(node, *made)]

    def _turned(self, node: Node, recipe: Any, places: Any) -> recipes.Work:
        """The work of a recipe; of a product with an argument that is to be turned, in two, the first done once."""
        if not isinstance(recipe, Product) or recipe.batch or not recipe.turns:
            return [(recipe, places)]
        root = self.root(node.inputs[1])
        key = places[1], recipe.right, recipe.inner, recipe.columns
        known = key in self.copies
        copy = self.copies.get(key)
        if copy is None:
            copy = np.empty(recipe.inner * recipe.columns + memory.ALIGNMENT, recipe.dtype)
            self.kept.append(copy)
            if root.op in (INPUT, CONSTANT):  # anything else may be written again
                self.copies[key] = copy
        work = recipes.turned(recipe, places, copy.ctypes.data + -copy.ctypes.data % memory.ALIGNMENT)
        return work[1:] if known else work

    def laid(self, node: Node) -> recipes.Laid:
        """Where a value lies."""
        array = self.values.get(node)
        if array is not None:
            return recipes.Laid(-1, array.ctypes.data, array.shape, array.strides, array.dtype)
        root = self.root(node)
        array, base = self._show(node), self._show(root)
        offset = array.ctypes.data - base.ctypes.data
        return recipes.Laid(self.number[root], offset, array.shape, array.strides, array.dtype)

    def root(self, node: Node) -> Node:
        """The node that this is a view of."""
        if node not in self.roots:
            one = node
            while one.op is not part and self.owner[one] is not one:
                one = one.inputs[0]
            self.roots[node] = one
        return self.roots[node]

    def _show(self, node: Node) -> np.ndarray[Any, Any]:
        """An array that lies in memory as the value will: one element that stands for all, in row-major order."""
        waiting = [node]
        while waiting[-1] is not self.root(waiting[-1]) and waiting[-1] not in self.shown:
            waiting.append(waiting[-1].inputs[0])
        for one in reversed(waiting):
            if one not in self.shown:
                self.shown[one] = self._view(one) if one is not waiting[-1] else self._owner(one)
        return self.shown[node]

    def _view(self, node: Node) -> np.ndarray[Any, Any]:
        attrs = {key: resolve(value, self.sizes) for key, value in node.attrs.items()}
        view: np.ndarray[Any, Any] = node.op.kernel(self.shown[node.inputs[0]], **attrs)
        return view

    def _owner(self, node: Node) -> np.ndarray[Any, Any]:
        shape, one = resolve(node.spec.shape, self.sizes), np.empty(1, node.spec.dtype)
        strides = [math.prod(shape[a + 1 :]) * one.itemsize for a in range(len(shape))]
        return np.lib.stride_tricks.as_strided(one, shape, strides)


def _scratch(work: Sequence[tuple[Any, Any]]) -> dict[Any, list[tuple[int, int]]]:
    """For each recipe the addresses of its scratch buffers: kernels run one after the other, and share the memory."""
    found: dict[Any, list[tuple[int, int]]] = {}
    wanted = {recipe: recipe.scratch() for recipe, _ in work}
    sizes = {r: [-(-n * np.dtype(d).itemsize // 64) * 64 for d, n in buffers] for r, buffers in wanted.items()}
    block = np.empty(max(map(sum, sizes.values()), default=0) + memory.ALIGNMENT, np.uint8)
    start = block.ctypes.data + -block.ctypes.data % memory.ALIGNMENT
    for recipe, each in sizes.items():
        found[recipe] = [(-1, start + sum(each[:i])) for i in range(len(each))]
    found[None] = [block]  # type: ignore[list-item]  # kept alive with the addresses
    return found
