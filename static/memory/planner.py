"""The planner: heuristics first, then a search for as long as it may take.

Read `plan` first. `join` makes one box of buffers that fit together without a gap, so that fewer things are left to lay
out. Buffers with the same lifetime can be stacked. A buffer that starts in the step in which another of the same size
ends can take its place. A layout of a full arena is mostly made of these two: joining undoes the cuts of a rectangle
that is cut in two again and again. A layout of the boxes is a layout of the buffers; the best layout of the boxes may
be a little worse.

`solve` is a branch and bound: it proves the least peak of a few buffers. `improve` works on one independent component
after the other, the highest first. `allocate` and `begin_at` make the arena.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from static.memory import heuristics
from static.memory.heuristics import MANY, SOME, Buffer, Plan, components, max_live, peak

ALIGNMENT = 64  # a cache line, so that no two buffers share one


def plan(buffers: Sequence[Buffer], alignment: int = 1, time_limit: float = 0.0) -> Plan:
    """Return an offset for each buffer, a multiple of `alignment`; no two share a byte while both are alive.

    Without a `time_limit` (seconds) it takes the best of a few heuristics, and searches very small instances to the
    end. With one, a search goes on until the peak equals the lower bound, is proven the least, or time is up. So the
    plan is never worse than without a limit, and depends on how fast the machine is.

    Raises ValueError for a lifetime that ends before it starts, a negative size, or a negative time limit.
    """
    deadline = time.perf_counter() + _check_time_limit(buffers, time_limit)
    rounded = [(lower, upper, -(-size // alignment) * alignment) for lower, upper, size in buffers]
    bound = max_live(rounded)
    offsets = improve(rounded, heuristics.best(rounded, bound), deadline if time_limit else None)
    return Plan(tuple(offsets), peak(rounded, offsets), bound)


def _check_time_limit(buffers: Sequence[Buffer], time_limit: float) -> float:
    for lower, upper, size in buffers:
        if lower > upper or size < 0:
            raise ValueError(
                f"a buffer lives in [lower, upper) and has a size of 0 or more, got {(lower, upper, size)}"
            )
    if not time_limit >= 0:
        raise ValueError(f"a time limit is a number of seconds, 0 or more, got {time_limit}")
    return time_limit


@dataclass(frozen=True, eq=False, slots=True)
class Box:
    """A rectangle of steps and bytes: a buffer with its index, or boxes that fill it, each with its offset."""

    lower: int
    upper: int
    size: int
    index: int = -1
    parts: tuple[tuple[int, Box], ...] = ()

    @property
    def buffer(self) -> Buffer:
        """The lifetime and size of the box, as a buffer."""
        return self.lower, self.upper, self.size


def fillers(buffers: Sequence[Buffer]) -> list[Buffer]:
    """Return extra buffers that fill every step, from the first to the last, to the most live bytes of any step.

    Where bytes begin to be missing, and later as many cease to be, one buffer has probably been left out.
    """
    missing: dict[int, int] = {}  # at each step, the bytes that begin to be missing; fewer than 0 for those that cease
    for lower, upper, size in buffers:
        missing[lower] = missing.get(lower, 0) - size
        missing[upper] = missing.get(upper, 0) + size
    first, *_, last = steps = sorted(missing)
    missing[first] += max_live(buffers)
    missing[last] -= max_live(buffers)
    fills: list[Buffer] = []
    opened: list[tuple[int, int]] = []  # since when, and how many bytes
    for step in steps:
        if missing[step] > 0:
            opened.append((step, missing[step]))
        elif missing[step] < 0:
            fills += _close_buffers(opened, step, -missing[step])
    return fills


def _close_buffers(opened: list[tuple[int, int]], step: int, size: int) -> list[Buffer]:
    """Return the fillers that end at a step: the last open one of this size, else the last ones of any size."""
    alike = [i for i, (_, bytes_) in enumerate(opened) if bytes_ == size]
    if alike:
        return [(opened.pop(alike[-1])[0], step, size)]
    ended: list[Buffer] = []
    while size:
        since, bytes_ = opened.pop()
        ended.append((since, step, min(bytes_, size)))
        if bytes_ > size:
            opened.append((since, bytes_ - size))
        size -= ended[-1][2]
    return ended


def join(buffers: Sequence[Buffer], rng: np.random.Generator | None = None) -> list[Box]:
    """Return boxes with all the buffers, joined as long as two fit.

    `rng`, else the order, decides between candidates.
    """
    order = range(len(buffers)) if rng is None else rng.permutation(len(buffers)).tolist()
    joiner = _Joiner()
    for i in sorted(order, key=lambda i: buffers[i][:2]):
        lower, upper, size = buffers[i]
        joiner.add(Box(lower, upper, size, i))
    return list(joiner.lives.values())


def spread(boxes: Sequence[Box], offsets: Sequence[int]) -> list[int]:
    """Return the offset of each buffer, given the offsets of the boxes."""
    offset_of: dict[int, int] = {}
    left = list(zip(offsets, boxes, strict=True))
    while left:
        start, box = left.pop()
        if box.index >= 0:
            offset_of[box.index] = start
        left += [(start + offset, part) for offset, part in box.parts]
    return [offset_of[i] for i in range(len(offset_of))]


class _Joiner:
    """Boxes of which no two fit together, by lifetime, and by one end of it and their size."""

    def __init__(self) -> None:
        self.lives: dict[tuple[int, int], Box] = {}
        self.ends: dict[tuple[int, int], dict[Box, None]] = {}
        self.starts: dict[tuple[int, int], dict[Box, None]] = {}

    def add(self, box: Box) -> None:
        """Join the box with one that fits, the result with another, and so on; then keep it."""
        while True:
            lower, upper, size = box.buffer
            if (lower, upper) in self.lives:
                below = self._take(self.lives[lower, upper])
                box = Box(lower, upper, below.size + size, parts=((0, below), (below.size, box)))
            elif self.ends.get((lower, size)):
                before = self._take(next(iter(self.ends[lower, size])))
                box = Box(before.lower, upper, size, parts=((0, before), (0, box)))
            elif self.starts.get((upper, size)):
                after = self._take(next(iter(self.starts[upper, size])))
                box = Box(lower, after.upper, size, parts=((0, box), (0, after)))
            else:
                break
        self.lives[lower, upper] = box
        self.ends.setdefault((upper, size), {})[box] = None
        self.starts.setdefault((lower, size), {})[box] = None

    def _take(self, box: Box) -> Box:
        del self.lives[box.lower, box.upper]
        del self.ends[box.upper, box.size][box]
        del self.starts[box.lower, box.size][box]
        return box


FEW = 32  # buffers of an instance that is searched, to the end where that does not take too long
WORK = 36_000  # placements tried, times the number of buffers, before it gives up: a few tens of milliseconds


class _GaveUpError(Exception):
    """Raised when the search has tried more placements than it may."""


def solve(buffers: Sequence[Buffer], offsets: Sequence[int], nodes: int | None = None) -> tuple[list[int], bool]:
    """Return offsets with the least peak, no worse than the given ones, and whether the search proved it.

    `nodes` limits the placements that it tries. Buffers must not be empty in time or in size. The search is over
    canonical layouts, as in MiniMalloc (Moffitt, ASPLOS 2023): each buffer rests on 0 or on another one, and they are
    placed in the order of their offsets.
    """
    search = _Search(buffers, list(offsets), WORK // max(1, len(buffers)) if nodes is None else nodes)
    try:
        search.visit(frozenset(range(len(buffers))), {}, [0] * len(buffers))
    except _GaveUpError:
        return search.best, False
    return search.best, True


class _Search:
    def __init__(self, buffers: Sequence[Buffer], best: list[int], nodes: int) -> None:
        self.buffers, self.best, self.nodes = buffers, best, nodes
        self.peak, self.bound = peak(buffers, best), max_live(buffers)
        self.steps = sorted({lower for lower, _, _ in buffers})
        self.meets = [
            frozenset(j for j, other in enumerate(buffers) if other[0] < b[1] and b[0] < other[1]) - {i}
            for i, b in enumerate(buffers)
        ]

    def visit(self, left: frozenset[int], placed: dict[int, int], rest: list[int]) -> None:
        """Try every layout of the buffers `left` that may beat the best.

        `rest[i]` is the least offset still open to i.
        """
        if not left:
            self.best = [placed[i] for i in range(len(self.buffers))]
            self.peak = peak(self.buffers, self.best)
            return
        self.nodes -= 1
        if self.nodes < 0:
            raise _GaveUpError
        here = self._lowest(left, rest)
        for i in sorted(here, key=lambda i: -self.buffers[i][2]):
            if self.peak == self.bound:
                return
            self._descend(left - {i}, placed | {i: rest[i]}, self._on_top(i, left, rest))
        refused = self._resting_places(here, left, rest)
        if refused is not None:
            self._descend(left, placed, refused)

    def _descend(self, left: frozenset[int], placed: dict[int, int], rest: list[int]) -> None:
        if max(peak(self.buffers, rest), self._lower_bound(left, rest)) < self.peak:
            self.visit(left, placed, rest)

    def _lowest(self, left: frozenset[int], rest: list[int]) -> list[int]:
        """Return the buffers that can start at the lowest open offset, at the earliest step where one can."""
        floor, start = min((rest[i], self.buffers[i][0]) for i in left)
        return [i for i in left if rest[i] == floor and self.buffers[i][0] == start]

    def _on_top(self, i: int, left: frozenset[int], rest: list[int]) -> list[int]:
        top = rest[i] + self.buffers[i][2]
        above = self.meets[i] & left
        return [max(r, top) if j in above else r for j, r in enumerate(rest)]

    def _resting_places(self, here: list[int], left: frozenset[int], rest: list[int]) -> list[int] | None:
        """Return where each buffer can rest if none of `here` takes the place: on a buffer still to come."""
        raised = list(rest)
        for i in here:
            below = [rest[j] + self.buffers[j][2] for j in self.meets[i] & left]
            if not below:
                return None
            raised[i] = max(rest[i], min(below))
        return raised

    def _lower_bound(self, left: frozenset[int], rest: list[int]) -> int:
        """Return a peak that no layout goes below: at some step all unplaced buffers are stacked."""
        highest = 0
        for step in self.steps:
            alive = [i for i in left if self.buffers[i][0] <= step < self.buffers[i][1]]
            if alive:
                highest = max(highest, min(rest[i] for i in alive) + sum(self.buffers[i][2] for i in alive))
        return highest


NARROW = 4  # states of the narrowest beam
CELLS = 1 << 21  # numbers in one array of a beam, about; it bounds the width
WIDE = 64
AGAIN = 24  # attempts after which something else is joined
FRESH = 8  # attempts from nothing, before there is a layout worth keeping a part of
AMBITION = 0.0, 0.1, 0.3  # how much of the gap an attempt shall close
SHARPNESS = 60.0, 120.0, 300.0


def improve(buffers: Sequence[Buffer], offsets: Sequence[int], deadline: float | None) -> list[int]:
    """Return offsets no worse than the given ones; optimal for very small instances.

    Others are searched until `deadline`, a time of `time.perf_counter`, if it is given.
    """
    best, bound = [0] * len(buffers), max_live(buffers)
    most = SOME if deadline is None else MANY  # buffers for which there is time to try more than one form
    parts = [_Part(index, buffers, offsets, most) for index in components(buffers)]
    by_height = [(-part.peak, number) for number, part in enumerate(parts)]
    heapq.heapify(by_height)
    while by_height and -by_height[0][0] > bound:
        number = by_height[0][1]
        if not parts[number].improve(bound, deadline):
            break
        heapq.heapreplace(by_height, (-parts[number].peak, number))
    for part in parts:
        for i, offset in zip(part.index, part.offsets, strict=True):
            best[i] = offset
    return best


class _Part:
    """The buffers of one component, their best layout so far, and the forms in which a layout is sought."""

    def __init__(self, index: list[int], buffers: Sequence[Buffer], offsets: Sequence[int], most: int) -> None:
        self.index, self.buffers = index, [buffers[i] for i in index]
        self.offsets = [offsets[i] for i in index]
        self.peak = peak(self.buffers, self.offsets)
        self.forms: list[_Form] = []
        self.rounds, self.rng = 0, np.random.default_rng(len(index))
        self._more = self._forms(most)

    def improve(self, bound: int, deadline: float | None) -> bool:
        """Make one more attempt at a layout below the best; return False if no attempt is left."""
        form = next(self._more, None)
        if form is not None:
            self.forms.append(form)
            self._keep(form, form.offsets)
            return True
        as_they_are = self.forms[-1]
        if deadline is None or len(self.buffers) > MANY or time.perf_counter() >= deadline or as_they_are.proven:
            return False
        self._join_again()
        form = min((form for form in self.forms if not form.proven), key=lambda form: form.seconds)
        offsets = form.search(self.peak, bound, deadline)
        if offsets is not None:
            self._keep(form, offsets)
        return True

    def _join_again(self) -> None:
        """Replace a joined form, once in `AGAIN` rounds, by one in which other buffers are joined."""
        self.rounds += 1
        if self.rounds % AGAIN == 0 and len(self.forms) > 1:
            number = int(self.rng.integers(len(self.forms) - 1))
            seconds = self.forms[number].seconds
            more = fillers(self.buffers) if self.rng.random() < 0.5 else []
            self.forms[number] = form = _Form(join([*self.buffers, *more], self.rng))
            form.seconds = seconds
            self._keep(form, form.offsets)

    def _forms(self, most: int) -> Iterator[_Form]:
        """Yield the buffers joined, joined with fillers, and as they are.

        Of more than `most` buffers it yields only the last form: each form costs as much as all before it.
        """
        yield from self._joined_forms() if len(self.buffers) <= most else ()
        boxes = [Box(lower, upper, size, i) for i, (lower, upper, size) in enumerate(self.buffers)]
        yield _Form(boxes, self.offsets)

    def _joined_forms(self) -> Iterator[_Form]:
        joined = join(self.buffers)
        if len(joined) < len(self.buffers):
            yield _Form(joined)
        filled = join([*self.buffers, *fillers(self.buffers)])
        if len(filled) < len(joined):
            yield _Form(filled)

    def _keep(self, form: _Form, offsets: Sequence[int]) -> None:
        spread_out = spread(form.boxes, offsets)[: len(self.buffers)]  # fillers come after them
        height = peak(self.buffers, spread_out)
        if height < self.peak:
            self.peak, self.offsets = height, spread_out
            if len(self.forms[-1].boxes) == len(self.buffers):
                self.forms[-1].offsets = list(spread_out)


class _Form:
    """Boxes to lay out in place of the buffers of a component, and their best layout so far."""

    def __init__(self, boxes: Sequence[Box], offsets: Sequence[int] | None = None) -> None:
        self.boxes, self.buffers = boxes, [box.buffer for box in boxes]
        self.offsets = heuristics.best(self.buffers, max_live(self.buffers)) if offsets is None else list(offsets)
        self.proven = False
        if len(boxes) <= FEW:
            self.offsets, self.proven = solve(self.buffers, self.offsets)
        self.rng, self.rounds, self.seconds = np.random.default_rng(len(boxes)), 0, 0.0
        self.instance: heuristics.Instance | None = None

    def search(self, highest: int, bound: int, deadline: float) -> list[int] | None:
        """Return a layout lower than `highest`, or None; the style and the goal of the beam are drawn at random.

        The beam starts from the empty layout, or from the lower part of the best layout.
        """
        start = time.perf_counter()
        self.rounds += 1
        self.instance = self.instance or heuristics.Instance(self.buffers)
        style = heuristics.Style(float(self.rng.choice(SHARPNESS)), *self.rng.choice([0.0, 1.0, 3.0], 2))
        goal = highest - 1 - int((highest - 1 - bound) * self.rng.choice(AMBITION))
        fresh = self.rounds <= FRESH or self.rng.random() < 0.4
        states = heuristics.start(self.instance) if fresh else self._lower_part(self.instance, goal)
        offsets = heuristics.search(self.instance, states, goal, self._width(self.instance), style, self.rng, deadline)
        self.offsets = self.offsets if offsets is None else offsets
        self.seconds += time.perf_counter() - start
        return offsets

    def _lower_part(self, instance: heuristics.Instance, goal: int) -> heuristics.States:
        """Return the best layout, as it is or upside down, cut off at a random height."""
        if self.rng.random() < 0.5:
            height = peak(self.buffers, self.offsets)
            self.offsets = [
                height - offset - size for offset, (_, _, size) in zip(self.offsets, self.buffers, strict=True)
            ]
        order = sorted(range(len(self.buffers)), key=lambda i: (self.offsets[i], self.buffers[i]))
        grown = list(heuristics.neighbour_layouts(instance, order, goal))
        return grown[int(len(grown) * self.rng.random() ** 0.5)]

    def _width(self, instance: heuristics.Instance) -> int:
        """Return the width of the beam: 4, 8, 4, 16, 4, 8, 4, 32, ..., with equal time for each (Luby et al., 1993)."""
        return max(1, min(NARROW * (self.rounds & -self.rounds), WIDE, CELLS // len(instance.members)))


_offsets = [0]


def begin_at(offset: int) -> None:
    """Let arenas that are made from now on begin `offset` bytes later, in whole cache lines, so that they stay aligned.

    Results do not change. The address of an arena makes the same code some percent slower or faster. A benchmark draws
    an offset anew for each process, so that no single address counts alone. Raises ValueError for an offset that is no
    multiple of `ALIGNMENT`.
    """
    if offset < 0 or offset % ALIGNMENT:
        raise ValueError(f"an arena begins on a cache line: {offset} is no multiple of {ALIGNMENT}")
    _offsets[:] = [offset]


def allocate(size: int) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    """Return an arena of `size` bytes that starts on a cache line."""
    (offset,) = _offsets
    block = np.empty(size + ALIGNMENT + offset, np.uint8)
    start = -block.ctypes.data % ALIGNMENT + offset
    return block[start : start + size]
