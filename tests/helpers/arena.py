"""An independent check of a memory plan: run the code with garbage in all memory that nobody should need."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from types import CodeType, FrameType
from typing import Any

import numpy as np

from graphs.ir import Node
from static import Executable
from static.codegen.lowering import LoweredGraph

GARBAGE = 0xFF  # NaN in every float
Span = tuple[int, int]


def check_arena(exe: Executable, arrays: Sequence[np.ndarray]) -> list[Any]:
    """Run an executable line by line, with every byte that is not live overwritten before each line.

    It knows nothing of owners, lifetimes or places: from the graph it works out which values are still to be read,
    and from the addresses of their arrays where they lie. Raises AssertionError naming the line and the value where
    one that is still to be read has changed, where more is live than the plan says, where an input was written to, or
    a result lies in the arena. Returns the results, which are right only if nobody has read a byte of garbage.
    """
    (binding,) = exe._bindings.values()
    # By identity: equal code may be of two subgraphs.
    watched = {id(one.code): _Reads(one) for one in exe.program.nested() if isinstance(one, LoweredGraph)}
    before = [array.tobytes() for array in arrays]
    check = _Check(watched, exe.program.code, binding.arena)
    tracing = sys.gettrace()
    sys.settrace(check.enter)
    try:
        results = list(binding.run(*arrays))
    finally:
        sys.settrace(tracing)
    assert check.most <= exe.plan.lower_bound <= exe.plan.peak, f"{check.most} bytes live at once, {exe.plan}"
    assert [array.tobytes() for array in arrays] == before, "an input was written to"
    assert not any(np.shares_memory(result, binding.arena) for result in results), "a result lies in the arena"
    return results


def _at(program: LoweredGraph, node: Node) -> tuple[Any, ...]:
    """What nodes whose array is one object have in common."""
    return (*program.schedule.place[node], node.spec)


class _Reads:
    """For each value with memory of a name: the line that writes it, and the last that reads it."""

    def __init__(self, program: LoweredGraph) -> None:
        end = len(program.lines) - 1
        line: dict[Node, int] = {}
        for i, (node, text) in enumerate(zip(program.lines, program.source.splitlines()[1:], strict=True)):
            if node is not None and not text.lstrip().startswith("del "):
                line[node] = i
        self.names = {node: name for name, node, kind, _ in program.slots if kind == "b"}
        shared = {_at(program, node): name for node, name in self.names.items() if node in program.planned}
        self.names |= {node: shared[at] for node in program.planned if (at := _at(program, node)) in shared}
        own = {node for _, node, kind, _ in program.slots if kind == "n"} | {*self.names}  # of the arena, or a result
        self.last = dict.fromkeys(program.graph.outputs, end)
        for node in reversed(program.schedule.order):
            read = line.get(node, -1)
            if node not in line or (node.op.view and node not in own):  # another name for its input's memory
                read = max(read, self.last.get(node, -1))
            for source in node.inputs:
                self.last[source] = max(self.last.get(source, -1), read)
        # The results of a group are written by the group's line.
        results = {node: line[node.inputs[0]] for node in self.last if node.inputs and node.inputs[0] in line}
        self.written = results | line

    def live(self, line: int) -> Iterator[tuple[Node, str]]:
        """What has been written before this line, and is read by it or later."""
        for node, name in self.names.items():
            if self.written.get(node, line) < line <= self.last.get(node, -1):
                yield node, name


class _Check:
    """What is done at each new line of the graph's code, and of the code of its subgraphs."""

    def __init__(self, watched: dict[int, _Reads], outermost: CodeType, arena: np.ndarray) -> None:
        self.watched, self.outermost, self.arena, self.most = watched, outermost, arena, 0

    def enter(self, frame: FrameType, event: str, arg: Any) -> Any:
        reads = self.watched.get(id(frame.f_code))
        if reads is None:
            return None
        arrays = {name: value for name, value in frame.f_locals.items() if name in set(reads.names.values())}
        held: dict[Node, bytes] = {}
        furthest = -1

        def at_line(frame: FrameType, event: str, arg: Any) -> Any:
            nonlocal held, furthest
            line = frame.f_lineno - 2
            if event == "line" and line > furthest:
                furthest = line
                live = {node: arrays[name] for node, name in reads.live(line)}
                held = self._unchanged(line, live, held)
                spans = _union(_span(array) for array in live.values() if np.shares_memory(array, self.arena))
                if frame.f_code is self.outermost:
                    self.most = max(self.most, sum(stop - start for start, stop in spans))
                    self._spoil(_union([_span(self.arena)]), spans)
                else:
                    self._spoil(_union(_span(array) for array in arrays.values()), spans)
            return at_line

        return at_line

    @staticmethod
    def _unchanged(line: int, live: dict[Node, np.ndarray], held: dict[Node, bytes]) -> dict[Node, bytes]:
        now = {node: array.tobytes() for node, array in live.items()}
        for node, data in now.items():
            assert held.get(node, data) == data, f"the line before {line} overwrites {node}, which is still to be read"
        return now

    def _spoil(self, spans: list[Span], live: list[Span]) -> None:
        """Garbage in every byte of the arena that is in one of `spans` and not live."""
        base, end = _span(self.arena)
        inside = np.zeros(len(self.arena), bool)
        for marks, among in ((True, spans), (False, live)):
            for start, stop in among:
                inside[max(start, base) - base : max(min(stop, end) - base, 0)] = marks
        self.arena[inside] = GARBAGE


def _span(array: np.ndarray) -> Span:
    return np.lib.array_utils.byte_bounds(array) if array.size else (0, 0)


def _union(spans: Any) -> list[Span]:
    found: list[Span] = []
    for start, stop in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(stop, found[-1][1])
        elif start < stop:
            found.append((start, stop))
    return found
