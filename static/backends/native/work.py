"""The work of a segment: which kernels run, on which places, in order."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from graphs.ir import CONSTANT, INPUT, Graph, Node
from graphs.op import Op
from static import memory
from static.backends.native import recipes
from static.backends.native.cores import Cores
from static.backends.native.flow import Location, Work
from static.backends.native.frames import Frame
from static.backends.native.laid import LaidArray, check_bounds, row_major
from static.backends.native.picking import Flattening, Picking
from static.backends.native.products import Product
from static.backends.native.refusals import Refusals
from static.passes.iteration_space import fused

Start = Callable[[Node], Location]
Adding = Callable[["WorkCollector", Node, Start], None]


class WorkCollector:
    """Collects the work of nodes of a frame.

    `runs` holds the frames of loops' bodies, `kept` memory beside, and `holding` what adds nodes that hold graphs.
    """

    def __init__(
        self,
        frame: Frame,
        runs: Mapping[Node, Any],
        holding: Mapping[Op, Adding],
        cores: Cores,
        refusals: Refusals,
        outer: WorkCollector | None = None,
    ) -> None:
        self.cores, self.refusals = cores, refusals
        self.frame, self.runs, self.holding = frame, runs, holding
        self.work: Work = []
        self.before: Work | None = None  # of a loop: what is done once, and in no step
        self.kept: dict[Any, np.ndarray[Any, Any]] = {} if outer is None else outer.kept
        self.copies: dict[Any, int] = {}  # of turned matrices

    def add(self, node: Node, start: Start, lasting: Callable[[Node], bool] | None = None) -> None:
        """Add the work of a node. `lasting` tells which roots stay as they are while the segment runs."""
        if node.op in self.holding:
            self.holding[node.op](self, node, start)
            return
        outs = [node]
        if node.op is fused:
            outs = sorted(self.frame.results[node], key=lambda result: result.attrs["number"])
        operands = [self.frame.laid(source, start) for source in node.inputs]
        results = [self.frame.laid(out, start) for out in outs]
        for recipe, places in check_bounds(
            recipes.of(node, operands, results, self.frame.sizes), [*operands, *results]
        ):
            if isinstance(recipe, Product) and recipe.turns and not recipe.batch:
                self._turned(node, recipe, places, lasting or _is_fixed)
            elif isinstance(recipe, (Picking, Flattening)):
                self.work += self._cut(node, recipe, [*places, *self.refusals.places(node, recipe.refused, self.room)])
            else:
                self.work += self._cut(node, recipe, places)

    def _cut(self, node: Node, recipe: Any, places: list[Location]) -> Work:
        """The work of a kernel, in parts where cores share it or its sums are made in parts."""
        return self.cores.cut(recipe, places, lambda key, *room: self.room((node, "part", key), *room))

    def inside(self, node: Node, graph: Graph, *, again: bool) -> WorkCollector:
        """The worker of a graph that a node holds; of one that runs `again` and again, what can be is done once."""
        frame, runs = self.runs[node][graph]
        inner = WorkCollector(frame, runs, self.holding, self.cores, self.refusals, self)
        inner.before = self.work if again else None
        return inner

    def in_rows(self, key: Any, laid: LaidArray) -> LaidArray:
        """The array in row-major order, copied if it is not."""
        if laid.steps == laid.shaped(laid.shape).steps:
            return laid.shaped(laid.shape)
        copy = self.like(key, laid)
        self.work += recipes.copied(laid, copy)
        return copy

    def like(self, key: Any, laid: LaidArray) -> LaidArray:
        """Memory of this key for an array of that shape and dtype, in row-major order."""
        at = self.room(key, math.prod(laid.shape), laid.dtype)
        return laid._replace(which=-1, offset=at, strides=row_major(laid.shape, laid.dtype.itemsize))

    def room(self, key: Any, elements: int, dtype: Any) -> int:
        """The address of memory for so many elements, the same whenever this key comes again."""
        if key not in self.kept:
            self.kept[key] = np.empty(elements * np.dtype(dtype).itemsize + memory.ALIGNMENT, np.uint8)
        start = int(self.kept[key].ctypes.data)
        return start + -start % memory.ALIGNMENT

    def _turned(self, node: Node, recipe: Product, places: list[Location], lasting: Callable[[Node], bool]) -> None:
        """A product whose right matrix is turned: once for all products that share what stays as it is."""
        stays = lasting(self.frame.root(node.inputs[1]))
        is_shared = stays and (self.before is not None or self.frame.right[node.inputs[1]] > 1)
        if not is_shared and recipe.packs(recipe.panel(self.cores.target)):
            self.work += self._cut(node, recipe, places)
            return
        key = (places[1], recipe.right, recipe.inner, recipe.columns) if stays else node
        is_turned = key in self.copies
        if not is_turned:
            self.copies[key] = self.room(("turned", node), recipe.inner * recipe.columns, recipe.dtype)
        turn, product = recipes.turned(recipe, places, self.copies[key])
        if not stays:
            self.work += self._cut(node, *turn)
        elif not is_turned:
            work = self.work if self.before is None else self.before
            work += self._cut(node, *turn)
        self.work += self._cut(node, *product)


def _is_fixed(root: Node) -> bool:
    return root.op in (INPUT, CONSTANT)
