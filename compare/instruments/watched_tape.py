"""A watched step: readings of bytes and seconds, for both engines, and the step of the dynamic engine.

A reading has the bytes of NumPy data by class after each kernel, and seconds and bytes by line; the time in which a
watcher records is not counted. In the dynamic engine every array that a kernel makes is followed from birth to death,
and each kernel has its line.
"""

from __future__ import annotations

import gc
import sys
import tracemalloc
import weakref
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

import dynamic
from compare.engines.graphduel.steps import transform_step
from compare.engines.step import LineOp
from compare.instruments.memory import numpy_memory
from compare.instruments.rounds import CLOCK, Clock
from compare.records.cells import LineCost, Moment, Phase, SourceLinesRow
from compare.workloads.base import Case
from dynamic import tapes
from dynamic.anomaly import forward_lines
from graphs import dispatch, tree

PHASES = ("trace", "compile", "forward", "backward")
MOMENTS = 240
"""The most moments that are recorded; more are thinned out."""


class Timeline(NamedTuple):
    """The moments of one step in order, the bytes of Python objects beside them, and the number of nodes."""

    moments: Sequence[Moment]
    objects: Mapping[str, int]
    nodes: int

    @property
    def peak(self) -> Moment:
        """Return the moment with the most bytes."""
        return max(self.moments, key=lambda moment: moment.total)


class Reading(NamedTuple):
    """The bytes that tracemalloc counts after a kernel, and the most since the last reading."""

    current: int
    peak: int

    def beyond(self, before: int) -> int:
        """Return the bytes that the kernel needed while it ran, above those before and after it."""
        return max(0, self.peak - max(before, self.current))


def moment(phase: Phase, told: Mapping[str, int], reading: Reading, before: int, line: str = "") -> Moment:
    """Return a moment of known bytes by class, with the kernel's own need, and `untold` for unknown bytes."""
    classes = dict(told)
    classes["workspace"] = classes.get("workspace", 0) + reading.beyond(before)
    untold = reading.current - sum(told.values())
    return Moment(phase, classes | ({"untold": untold} if untold > 0 else {}), str(line))


def thin_moments(moments: Sequence[Moment], most: int = MOMENTS) -> list[Moment]:
    """Return at most `most` moments: for each stretch of one phase the one with the most bytes, so no peak is lost."""
    stretch = -(-len(moments) // max(1, most - len(PHASES)))
    kept = []
    for phase in dict.fromkeys(m.phase for m in moments):
        of = [m for m in moments if m.phase == phase]
        kept += [max(of[i : i + stretch], key=lambda m: m.total) for i in range(0, len(of), stretch)]
    return kept


PASSES = 15
WARM_PASSES = 2
SECONDS = 1.0
"""The most passes in which a step is watched, the warm-up passes, and the seconds after which passes end."""

Spans = list[tuple[str, float]]
"""Stretches of a step in seconds, each with its line; "" for no line."""


Counted = defaultdict[str, LineCost]
"""The costs of a step's lines without times, in the order they run."""


def count_lines(ops: Iterable[LineOp]) -> Counted:
    """Return the costs of the lines of some ops."""
    lines = Counted(LineCost)
    for op in ops:
        cost = lines[op.line]
        cost.kernels += 1
        cost.made += op.made
        cost.saved += op.saved
        cost.saved_bytes += op.saved_bytes
    return lines


def read(
    ops: Callable[[], Sequence[LineOp]], step: Callable[[], object], clock: Clock, begin: Callable[[], None]
) -> SourceLinesRow:
    """Return the row of a mode whose engine tells the line of each op; `ops` runs and watches a step.

    `begin` is called before each step, outside the clock.
    """

    def watch() -> Sequence[LineOp]:
        begin()
        return ops()

    return time_lines(count_lines(watch()), step, lambda: [(op.line, op.seconds) for op in watch()], clock, begin)


def time_lines(
    lines: Counted,
    step: Callable[[], object],
    watch: Callable[[], Spans],
    clock: Clock = CLOCK,
    begin: Callable[[], None] = lambda: None,
) -> SourceLinesRow:
    """Return the row of a mode: each line has the median of its seconds over watched steps.

    The seconds that watched steps take beyond `step`, which is not watched, are taken off all lines in proportion. So
    are those of other programs, since the clock of `step` sets the scale.
    """
    for _ in range(WARM_PASSES):
        begin()
        step()
    seconds: list[float] = []
    passes: list[dict[str, float]] = []
    began = perf_counter()
    while not passes or (len(passes) < PASSES and perf_counter() - began < SECONDS):
        begin()
        start = clock()
        step()
        seconds.append((clock() - start) / 1e9)
        passes.append(_by_line(watch()))
    whole = median(seconds)
    medians = {line: median([each.get(line, 0.0) for each in passes]) for line in passes[0]}
    scale = min(1.0, whole / (sum(medians.values()) or 1.0))
    medians.pop("", None)
    lines.pop("", None)
    for line, each in medians.items():
        lines[line].seconds = each * scale
    rest = whole - sum(line.seconds for line in lines.values())
    return SourceLinesRow("ok", None, step=whole, elsewhere=max(0.0, round(rest, 12)), lines=lines)


def _by_line(spans: Spans) -> dict[str, float]:
    sums: dict[str, float] = {}
    for line, seconds in spans:
        sums[line] = sums.get(line, 0.0) + seconds
    return sums


# The dynamic engine ---------------------------------------------------------------------------------------------------


WARM_STEPS = 2


class _Array:
    """An array made by a kernel: its bytes, and the numbers of the kernels at which it was born and died."""

    def __init__(self, owner: Any, born: int, ended: Callable[[], int]) -> None:
        self.nbytes, self.born, self.died = owner.nbytes, born, -1
        self.alive = weakref.ref(owner, lambda _: self._end(ended()))

    def _end(self, now: int) -> None:
        self.died = now

    def lives_at(self, kernel: int) -> bool:
        """Return whether the array exists after a kernel has run."""
        return self.born <= kernel and (self.died < 0 or self.died > kernel)


class _Watch:
    """Notes the arrays that kernels make and holds none; `mark` is the number of the first backward kernel."""

    def __init__(self, arrays: Sequence[Any]) -> None:
        self.arrays: list[_Array] = []
        self.readings: list[Reading] = []
        self.made: list[tuple[Any, ...]] = []
        self.held = tracemalloc.get_traced_memory()[0]
        self.mark: int | None = None
        self.saved: set[_Array] = set()
        self.structure = self.nodes = 0
        self._known: dict[int, Any] = {id(owner(array)): None for array in arrays}

    def __call__(self, out: Any) -> None:
        self._know(out)
        self._read()
        self.made.append((out.shape, out.dtype))

    def finish(self, arrays: Sequence[Any]) -> None:
        """Add the step's results, since gradients of unused arguments are made by no kernel."""
        for array in arrays:
            self._know(array)
        self._read()

    def _know(self, out: Any) -> None:
        made_by = owner(out)
        held = self._known.get(id(made_by), 0)
        if held is not None and (held == 0 or held.alive() is not made_by):
            made = _Array(made_by, len(self.readings), lambda: len(self.readings))
            self._known[id(made_by)] = made
            self.arrays.append(made)

    def _read(self) -> None:
        self.readings.append(Reading(*tracemalloc.get_traced_memory()))
        tracemalloc.reset_peak()

    def forward(self, f: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function; when it returns, it notes where the backward pass begins and which arrays are saved."""

        def wrapper(*args: Any) -> Any:
            output = f(*args)
            if isinstance(output, dynamic.Tensor):
                self.nodes, self.structure, _ = dynamic.tape_stats(output)
            self.mark = len(self.readings)
            self.saved = {array for array in self.arrays if array.alive() is not None}
            return output

        return wrapper

    def moments(self, handed_out: set[int]) -> Iterator[Moment]:
        """Yield the moments after the step; `handed_out` has the ids of the arrays that it returned."""
        before = self.held
        for kernel, reading in enumerate(self.readings):
            classes = {"caches": self.held} if self.held else {}
            for array in self.arrays:
                if array.lives_at(kernel):
                    name = self._class(array, handed_out)
                    classes[name] = classes.get(name, 0) + array.nbytes
            yield moment("backward" if self._is_backward(kernel) else "forward", classes, reading, before)
            before = reading.current

    def _is_backward(self, kernel: int) -> bool:
        return self.mark is not None and kernel >= self.mark

    def _class(self, array: _Array, handed_out: set[int]) -> str:
        if id(array.alive()) in handed_out:
            return "gradients"
        if self._is_backward(array.born):
            return "workspace"
        return "saved" if array in self.saved else "activations"


@contextmanager
def watch_kernels(hear: Callable[[Any], None]) -> Iterator[None]:
    """A context in which `hear` is called with each array that a kernel makes, without prolonging its life.

    `dispatch.observe_kernels` alone sends ops past the compiled tape, where operands live a little longer. Here that
    tape runs as ever, and reports each array that it makes.
    """
    tapes.watchers.append(hear)
    try:
        with dispatch.observe_kernels(lambda _op, _arrays, _attrs, out: hear(out), detour=False):
            yield
    finally:
        tapes.watchers.remove(hear)


def timeline(case: Case) -> Timeline:
    """Return the timeline of a warm step of the dynamic engine over the first example of a case.

    The lines come from a second run, which looks up where each kernel is called from.
    """
    arguments = (case.params, *case.examples[0])
    with numpy_memory():
        plain = transform_step(dynamic, case.loss, case.argnum)
        for _ in range(WARM_STEPS):
            plain(*arguments)
        gc.collect()  # garbage cycles of earlier steps are not this step's
        watch = _Watch([leaf for leaf in tree.leaves(arguments) if isinstance(leaf, np.ndarray)])
        loss = watch.forward(case.loss) if case.argnum is not None else case.loss
        tracemalloc.reset_peak()
        with watch_kernels(watch):
            result = transform_step(dynamic, loss, case.argnum)(*arguments)
        leaves = [leaf for leaf in tree.leaves(result) if isinstance(leaf, np.ndarray)]
        watch.finish(leaves)
        moments = list(watch.moments({id(owner(leaf)) for leaf in leaves}))
    for each, line in zip(moments, align_lines(record_kernels(case, arguments), watch.made), strict=False):
        each.line = str(line)  # the last moment, of the step's results, has no kernel
    return Timeline(moments, {"structure": watch.structure, "plan": 0}, watch.nodes)


def owner(array: Any) -> Any:
    """Return the array that owns an array's memory, which may be itself."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


class LineKernel(NamedTuple):
    """A kernel of a step, without its seconds, and the shape and dtype of its result."""

    op: LineOp
    result: tuple[Any, ...]


def lines(case: Case) -> SourceLinesRow:
    """Return the row of the dynamic engine, over the first example of a case."""
    arguments = (case.params, *case.examples[0])
    kernels = record_kernels(case, arguments)
    costs = count_lines(kernel.op for kernel in kernels)
    step = transform_step(dynamic, case.loss, case.argnum)
    return time_lines(costs, lambda: step(*arguments), lambda: _watch_step(case, arguments, kernels))


def record_kernels(case: Case, arguments: Sequence[Any]) -> list[LineKernel]:
    """Return the kernels of a step in the order they run.

    A kernel that only adds cotangents up belongs to the line whose gradient came last. A result that is a view of an
    existing array makes no bytes.
    """
    log = _LineLog({id(owner(leaf)) for leaf in tree.leaves(arguments) if isinstance(leaf, np.ndarray)})
    step = transform_step(dynamic, log.marking(case.loss), case.argnum)
    with forward_lines() as places, dispatch.observe_kernels(lambda _op, _arrays, _attrs, out: log.note(out, places)):
        step(*arguments)
    return log.kernels


@dataclass
class _LineLog:
    arguments: set[int]
    kernels: list[LineKernel] = field(default_factory=list)
    alive: list[tuple[LineOp, Any]] = field(default_factory=list)
    forward: bool = True

    def note(self, out: Any, places: Any) -> None:
        """Note a kernel, its line and the bytes that it has made."""
        gradient_of, line = places.place(sys._getframe(_CALLER))
        if line.startswith(_HERE):  # the harness copies arguments before the user's first line runs
            line = ""
        if not self.forward and not gradient_of and self.kernels:
            line = self.kernels[-1].op.line
        made = owner(out)
        fresh = id(made) not in self.arguments and not any(there() is made for _, there in self.alive[-_NEAR:])
        op = LineOp(line, made=made.nbytes if fresh else 0)
        self.kernels.append(LineKernel(op, (out.shape, out.dtype)))
        if fresh:
            self.alive.append((op, weakref.ref(made)))

    def marking(self, f: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function; when it returns, arrays that are alive beside its result count as saved."""

        def wrapper(*args: Any) -> Any:
            output = f(*args)
            results = {id(owner(_array(leaf))) for leaf in tree.leaves(output) if hasattr(leaf, "shape")}
            self.forward = False
            for op, there in self.alive:
                if there() is not None and id(there()) not in results:
                    op.saved, op.saved_bytes = 1, op.made
            return output

        return wrapper


_HERE = f"{Path(__file__).name}:"
_CALLER = 2  # frames from `_LineLog.note` past the observer, to the kernel's caller
WINDOW = 200
"""The kernels of a step that are aligned at once with the arrays that the tape reports."""
_NEAR = 64  # arrays searched for a view's owner; of an older owner a view counts as new bytes


def _array(leaf: Any) -> Any:
    return leaf.numpy(force=True) if isinstance(leaf, dynamic.Tensor) else leaf


def _watch_step(case: Case, arguments: Sequence[Any], kernels: Sequence[LineKernel]) -> Spans:
    """Return the stretches of one step from kernel to kernel; the first begins where the function is entered."""
    made: list[tuple[Any, ...]] = []
    seconds: list[float] = []
    last = perf_counter()

    def hear(out: Any) -> None:
        nonlocal last
        seconds.append(perf_counter() - last)
        made.append((out.shape, out.dtype))
        last = perf_counter()

    def wrapper(*args: Any) -> Any:
        nonlocal last
        last = perf_counter()
        return case.loss(*args)

    step = transform_step(dynamic, wrapper, case.argnum)
    with watch_kernels(hear):
        step(*arguments)
    return list(zip(align_lines(kernels, made), seconds, strict=True))


def align_lines(kernels: Sequence[LineKernel], made: Sequence[tuple[Any, ...]]) -> list[str]:
    """Return the line of each array that the tape reports, by the recorded kernels; "" where they do not agree.

    Where they differ, the next `WINDOW` of each are aligned: all at once would take the square of their number.
    """
    results = [kernel.result for kernel in kernels]
    lines, at, to = [""] * len(made), 0, 0
    while at < len(results) and to < len(made):
        if results[at] == made[to]:
            lines[to] = kernels[at].op.line
            at, to = at + 1, to + 1
            continue
        near = SequenceMatcher(None, results[at : at + WINDOW], made[to : to + WINDOW], autojunk=False)
        *blocks, _ = near.get_matching_blocks()
        for block in blocks:
            for i in range(block.size):
                lines[to + block.b + i] = kernels[at + block.a + i].op.line
        ahead = (blocks[-1].a + blocks[-1].size, blocks[-1].b + blocks[-1].size) if blocks else (WINDOW, WINDOW)
        at, to = at + ahead[0], to + ahead[1]
    return lines
