"""The lines of a static step: every line of generated code belongs to a node, and a node to a line of source."""

from __future__ import annotations

from time import perf_counter
from types import FrameType
from typing import Any

from compare.instruments.ledger import graph as ledger
from compare.instruments.lines import ticks
from compare.records.breakdowns import SourceLinesArm
from compare.workloads.base import Case
from graphs import dims
from static.call.executable import Executable


def lines(executable: Executable, case: Case) -> SourceLinesArm:
    """The row of the step that an executable is, over the first example of a case."""
    arguments = (case.params, *case.examples[0])
    executable(*arguments)
    counted = counts(executable, case)
    return ticks.timed(counted, lambda: executable(*arguments), lambda: _watched(executable, arguments))


def counts(executable: Executable, case: Case) -> ticks.Counted:
    """Kernels, bytes and what is saved of each line.

    A fused group counts as the kernels inside it. Its bytes are those of its results: what lives in a block alone is
    written to no memory of the step.
    """
    counted = ticks.Counted({})
    for program in executable.program.nested():
        for node in dict.fromkeys(program.lines):
            if node is not None and not node.subgraphs:
                counted.at(ledger.line_of(node)).kernels += 1
    saved = ledger.saved_nodes(executable, case)
    for node in ledger.owners(executable):
        size = dims.evaluate(node.spec.nbytes, executable.sizes)
        line = counted.at(ledger.line_of(node))
        line.made += size
        line.saved += node in saved
        line.saved_bytes += size * (node in saved)
    counted.lines.pop("", None)
    return counted


class _Follower:
    """Follows the generated code, its loops and groups included, and reads the clock at each line of it."""

    def __init__(self, executable: Executable) -> None:
        self.programs = {id(program.code): program for program in executable.program.nested()}
        self.spans: ticks.Spans = []
        self.stack: list[str] = []
        self.last = perf_counter()

    def __call__(self, frame: FrameType, event: str, _: Any) -> Any:
        """Called by Python; the clock stands still meanwhile."""
        now = perf_counter()
        program = self.programs.get(id(frame.f_code))
        if program is None:
            self.last += perf_counter() - now
            return None
        if self.stack:
            self.spans.append((self.stack[-1], now - self.last))
        if event == "call":
            self.stack.append(self.stack[-1] if self.stack else "")
        elif event == "return":
            self.stack.pop()
        elif event == "line":
            node = program.lines[frame.f_lineno - 2]
            self.stack[-1] = ledger.line_of(node) if node is not None else self.stack[-2] if len(self.stack) > 1 else ""
        self.last = perf_counter()
        return self


def _watched(executable: Executable, arguments: tuple[Any, ...]) -> ticks.Spans:
    follower = _Follower(executable)
    with ledger.followed(follower):
        executable(*arguments)
    return follower.spans
