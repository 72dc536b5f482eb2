"""What the heuristics leave is improved, one independent component after the other, the highest first."""

from __future__ import annotations

import heapq
import time
from collections.abc import Iterator, Sequence

import numpy as np

from static.memory import beam, exact, greedy
from static.memory.boxes import Box, fillers, join, spread
from static.memory.buffers import Buffer, components, max_live, peak
from static.memory.greedy import MANY, SOME

NARROW = 4  # states of the narrowest beam
CELLS = 1 << 21  # numbers in one array of a beam, about; it bounds the width
WIDE = 64
AGAIN = 24  # attempts after which something else is joined
FRESH = 8  # attempts from nothing, before there is a layout worth keeping a part of
AMBITION = 0.0, 0.1, 0.3  # how much of the gap an attempt shall close
SHARPNESS = 60.0, 120.0, 300.0


def improve(buffers: Sequence[Buffer], offsets: Sequence[int], deadline: float | None) -> list[int]:
    """Offsets no worse than the given ones: of what is very small the best there are; else until `deadline`, if any.

    `deadline` is a time of `time.perf_counter`.
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
    """The buffers of one component, with their best layout so far, and the forms in which it is sought."""

    def __init__(self, index: list[int], buffers: Sequence[Buffer], offsets: Sequence[int], most: int) -> None:
        self.index, self.buffers = index, [buffers[i] for i in index]
        self.offsets = [offsets[i] for i in index]
        self.peak = peak(self.buffers, self.offsets)
        self.forms: list[_Form] = []
        self.rounds, self.rng = 0, np.random.default_rng(len(index))
        self._more = self._made(most)

    def improve(self, bound: int, deadline: float | None) -> bool:
        """One more attempt at a layout below the best; False if there is none left to make."""
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
        """Now and then a joined form gives way to one in which something else was joined."""
        self.rounds += 1
        if self.rounds % AGAIN == 0 and len(self.forms) > 1:
            number = int(self.rng.integers(len(self.forms) - 1))
            seconds = self.forms[number].seconds
            more = fillers(self.buffers) if self.rng.random() < 0.5 else []
            self.forms[number] = form = _Form(join([*self.buffers, *more], self.rng))
            form.seconds = seconds
            self._keep(form, form.offsets)

    def _made(self, most: int) -> Iterator[_Form]:
        """The buffers joined, joined after what seems to have been left out is put in, and as they are.

        Of more than `most` only the last: each form costs as much as all there was before.
        """
        yield from self._joined() if len(self.buffers) <= most else ()
        boxes = [Box(lower, upper, size, i) for i, (lower, upper, size) in enumerate(self.buffers)]
        yield _Form(boxes, self.offsets)

    def _joined(self) -> Iterator[_Form]:
        joined = join(self.buffers)
        if len(joined) < len(self.buffers):
            yield _Form(joined)
        filled = join([*self.buffers, *fillers(self.buffers)])
        if len(filled) < len(joined):
            yield _Form(filled)

    def _keep(self, form: _Form, offsets: Sequence[int]) -> None:
        spread_out = spread(form.boxes, offsets)[: len(self.buffers)]  # what was filled in comes after them
        height = peak(self.buffers, spread_out)
        if height < self.peak:
            self.peak, self.offsets = height, spread_out
            if len(self.forms[-1].boxes) == len(self.buffers):
                self.forms[-1].offsets = list(spread_out)


class _Form:
    """Boxes to lay out instead of the buffers of a component, with their best layout so far."""

    def __init__(self, boxes: Sequence[Box], offsets: Sequence[int] | None = None) -> None:
        self.boxes, self.buffers = boxes, [box.buffer for box in boxes]
        self.offsets = greedy.best(self.buffers, max_live(self.buffers)) if offsets is None else list(offsets)
        self.proven = False
        if len(boxes) <= exact.FEW:
            self.offsets, self.proven = exact.solve(self.buffers, self.offsets)
        self.rng, self.rounds, self.seconds = np.random.default_rng(len(boxes)), 0, 0.0
        self.instance: beam.Instance | None = None

    def search(self, highest: int, bound: int, deadline: float) -> list[int] | None:
        """A layout lower than `highest`, from a beam in a style and for a goal drawn at random.

        It starts from nothing or from the lower part of the best layout.
        """
        start = time.perf_counter()
        self.rounds += 1
        self.instance = self.instance or beam.Instance(self.buffers)
        style = beam.Style(float(self.rng.choice(SHARPNESS)), *self.rng.choice([0.0, 1.0, 3.0], 2))
        goal = highest - 1 - int((highest - 1 - bound) * self.rng.choice(AMBITION))
        fresh = self.rounds <= FRESH or self.rng.random() < 0.4
        states = beam.start(self.instance) if fresh else self._lower_part(self.instance, goal)
        offsets = beam.search(self.instance, states, goal, self._width(self.instance), style, self.rng, deadline)
        self.offsets = self.offsets if offsets is None else offsets
        self.seconds += time.perf_counter() - start
        return offsets

    def _lower_part(self, instance: beam.Instance, goal: int) -> beam.States:
        """The best layout, as it lies or upside down, cut off at random below where it can no longer meet the goal."""
        if self.rng.random() < 0.5:
            height = peak(self.buffers, self.offsets)
            self.offsets = [
                height - offset - size for offset, (_, _, size) in zip(self.offsets, self.buffers, strict=True)
            ]
        order = sorted(range(len(self.buffers)), key=lambda i: (self.offsets[i], self.buffers[i]))
        grown = list(beam.grown(instance, order, goal))
        return grown[int(len(grown) * self.rng.random() ** 0.5)]

    def _width(self, instance: beam.Instance) -> int:
        """4, 8, 4, 16, 4, 8, 4, 32, ...: as much time for each width, as in Luby et al. (1993)."""
        return max(1, min(NARROW * (self.rounds & -self.rounds), WIDE, CELLS // len(instance.members)))
