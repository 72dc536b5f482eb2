"""What a kernel may refuse while it runs: positions that an axis does not have; and the error that follows."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, NoReturn

from graphs import dispatch
from graphs.ir import Node
from graphs.ops.picking import outside
from static.backends.native import layouts
from static.backends.native.flow import Location

Room = Callable[[Any, int, Any], int]
FIRST = layouts.INTERRUPTED + 1


class Refusals:
    """The context of a step, and what the numbers mean that its kernels may write there."""

    def __init__(self) -> None:
        self.context = layouts.context()
        self.axes: list[tuple[Node, int]] = []

    def places(self, node: Node, sizes: tuple[int, ...], room: Room) -> list[Location]:
        """What a kernel of the node needs to refuse a position on axes of these sizes: words, and a number for each."""
        numbers = []
        for axis, size in enumerate(sizes):
            at = room((node, "refusal", axis), 1, "i8")
            ctypes.c_int64.from_address(at).value = FIRST + len(self.axes)
            self.axes.append((node, size))
            numbers.append((-1, at))
        return [(-1, ctypes.addressof(self.context) + layouts.StepContext.ignored.offset), *numbers]

    def refuse(self) -> NoReturn:
        """Raise OutOfRangeError for what was refused first, with the op, its specs and the user's line."""
        node, size = self.axes[self.context.stopped - FIRST]
        self.context.stopped = 0
        raise dispatch.explained(node.op, [source.spec for source in node.inputs], outside(size), node.source)
