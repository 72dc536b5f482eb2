"""Rounds: one calibrated block of calls of each mode, next to each other in time, in balanced random order.

A slow moment of the machine meets all modes of a round, and ratios are taken within rounds. The garbage collector runs
between rounds and never inside a block. Steady state is detected for each mode (`steady_from`), where a change that
all modes share is the machine's and not theirs; rounds before all modes are steady count as warm-up.

The clock of steady state counts the seconds in which this process had a core, not those in which others had it: beside
other work a wall clock measures the neighbours. On two cores under a load of 6, blocks of one step in both engines
gave ratios whose logarithms vary by 1.3 to 1.6 on the wall, and by 0.2 to 0.3 by this clock. First calls are read on
the wall, since a user waits for them, and by this clock as well, compilers in other processes included: to say when
compiling has paid for itself, one clock must have read both.

Steady state: the index of the block from which on a series stays at one level, if it ever does.

The series is cut into segments of constant level by the exact optimum of a penalised least-squares cost (optimal
partitioning: Jackson et al., IEEE Signal Processing Letters 12, 2005), as Barrett et al. (Virtual machine warmup blows
hot and cold, OOPSLA 2017) cut theirs, with their penalty of 15 log n. As there, the steady state is the last segment
with those before it that do not differ from it by anything of interest, and there is none when a level still changes
in the last quarter: a steady state is found, never assumed (Traini et al., Empirical Software Engineering 28, 2023).
"""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from itertools import pairwise
from math import log, log1p, sqrt
from random import Random
from statistics import NormalDist, geometric_mean, median, stdev
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from compare.engines.process import shares
from compare.engines.step import ALIKE, Turns
from compare.records.job import Budget
from compare.records.record import Device
from compare.steps import is_asked, now
from graphs import blocks as collector

Clock = Callable[[], int]
ClockName = Literal["cpu", "wall", "events"]
FINE = 1e-6
"""The coarsest resolution in seconds of a clock that can read blocks of a few milliseconds."""

IS_FINE = time.get_clock_info("process_time").resolution <= FINE
CLOCK: Clock = time.process_time_ns if IS_FINE else time.perf_counter_ns
OWN_CLOCK: Clock = time.thread_time_ns if IS_FINE else time.perf_counter_ns
"""The clock of a thread by itself."""
NAME: ClockName = "cpu" if IS_FINE else "wall"
"""The clock's name in records; Windows counts processor time in steps of 16 ms, so that wall time is used there."""


def clock_name(device: Device, *, has_events: bool, threads: int = 1) -> ClockName:
    """Return the clock of steady state.

    A GPU computes while the process waits, so its events or the wall serve. Several threads compute at once, and spin
    while they wait for one another, so that their processor seconds say nothing about how long a user waits.
    """
    if device == "cpu":
        return NAME if threads == 1 else "wall"
    return "events" if has_events else "wall"


Item = TypeVar("Item")
TimedCall = Callable[[], object]
Context = Callable[[], AbstractContextManager[object]]


_NORMAL = NormalDist().inv_cdf(0.975)


@dataclass(frozen=True)
class Rounds:
    """The seconds per call of each mode: in calibration, then in each round; round i is block i of every mode.

    The first mode is the base of ratios. `walls` are the wall seconds of the same blocks, `others` are the seconds
    among these in which other processes had the core, and `busy` the processor seconds of all threads.
    """

    counts: dict[str, int]
    calibration: dict[str, list[float]]
    blocks: dict[str, list[float]]
    walls: dict[str, list[float]] = field(default_factory=dict)
    others: dict[str, list[float]] = field(default_factory=dict)
    busy: dict[str, list[float]] = field(default_factory=dict)

    @property
    def done(self) -> int:
        """Return the number of rounds."""
        return len(next(iter(self.blocks.values())))

    def starts(self) -> dict[str, int | None]:
        """Return the first steady round of each mode, by its seconds or its ratio to the others; None if never."""
        return {mode: self._start_of(mode) for mode in self.blocks}

    def steady(self) -> dict[str, list[float]]:
        """Return the rounds in which every mode is steady that ever is: the same for each, so that they stay paired."""
        start = self._start()
        return {mode: seconds[start:] for mode, seconds in self.blocks.items()}

    def settled(self) -> dict[str, tuple[bool, list[float]]]:
        """Return for each mode whether it became steady, and its seconds in the rounds of `steady`."""
        starts, steady = self.starts(), self.steady()
        return {mode: (starts[mode] is not None, seconds) for mode, seconds in steady.items()}

    def on_the_wall(self, mode: str) -> tuple[float, float]:
        """Return a call's wall seconds, and its clock seconds plus those of others: medians of steady blocks."""
        start = self._start()
        pairs = zip(self.blocks[mode], self.others[mode], strict=True)
        return median(self.walls[mode][start:]), median([own + others for own, others in pairs][start:])

    def processor(self, mode: str) -> float:
        """Return a call's processor seconds over all threads: the median of steady blocks."""
        return median(self.busy[mode][self._start() :])

    def warmup(self, mode: str) -> list[float]:
        """Return a mode's seconds per call before steady state, calibration included."""
        return [*self.calibration[mode], *self.blocks[mode][: self._start()]]

    def enough(self, budget: Budget) -> bool:
        """Return whether there are enough steady rounds, and all ratios to the first mode are as narrow as wanted."""
        if self.done < budget.rounds or (self.done - budget.rounds) % budget.least:  # the search costs time itself
            return False
        base, *others = self.steady().values()
        return len(base) >= budget.rounds and all(half_width(other, base) <= budget.width for other in others)

    def _start(self) -> int:
        return max(start or 0 for start in self.starts().values())

    def _start_of(self, mode: str) -> int | None:
        own = self.blocks[mode]
        others = [seconds for other, seconds in self.blocks.items() if other != mode]
        relative = [block / geometric_mean(rest) for block, *rest in zip(own, *others, strict=True)] if others else own
        starts = [start for start in (steady_from(own), steady_from(relative)) if start is not None]
        return min(starts, default=None)


def processor_seconds() -> float:
    """Return the processor seconds of this process, and of the processes that it started and waited for."""
    times = os.times()
    return time.process_time() + times.children_user + times.children_system


def half_width(tops: Sequence[float], bottoms: Sequence[float]) -> float:
    """Return half the 95% interval of the mean logarithm of paired ratios; blocks are taken as independent."""
    logs = [log(top / bottom) for top, bottom in zip(tops, bottoms, strict=True)]
    return _NORMAL * stdev(logs) / sqrt(len(logs)) if len(logs) > 1 else 0.0


def paired_rounds(
    calls: Mapping[str, TimedCall],
    budget: Budget,
    rng: Random,
    clock: Clock = CLOCK,
    *,
    within: Mapping[str, Context] = {},
    warm: int = 0,
    turns: Turns = ALIKE,
) -> Rounds:
    """Time rounds of one block of each mode, until they are enough or the budget is spent.

    `within` are contexts for the blocks of some modes. In them, before the clock starts, each mode makes `warm` calls,
    so that all modes pay alike for a context that starts cold. `turns` restores the state that blocks begin with.
    """

    def block(mode: str) -> BlockSeconds:
        with within.get(mode, nullcontext)():
            for _ in range(warm):
                calls[mode]()
            return read_block(calls[mode], counts[mode], clock, turns)

    if is_asked():  # a process that measures: no collection below need walk what was built before
        gc.collect()
        gc.freeze()
    trials = {}
    for mode, call in calls.items():
        with within.get(mode, nullcontext)():
            trials[mode] = calibrate(call, budget.block_seconds, clock, turns)
            if len(trials[mode]) == 1:  # a slow first call would leave blocks of one call, with cold caches
                trials[mode] += calibrate(call, budget.block_seconds, clock, turns)
    counts = {mode: trial[-1][0] for mode, trial in trials.items()}
    calibration = {mode: [seconds for _, seconds in trial] for mode, trial in trials.items()}
    columns = [{mode: list[float]() for mode in calls} for _ in BlockSeconds._fields]
    rounds = Rounds(counts, calibration, *columns)
    deadline, order = clock() + int(budget.seconds * 1e9), orders(tuple(calls), rng)
    while rounds.done < budget.least or not (rounds.enough(budget) or clock() > deadline):
        now("timed a round of blocks")
        with without_collection():
            for mode in next(order):
                for column, seconds in zip(columns, block(mode), strict=True):
                    column[mode].append(seconds)
    return rounds


def own_rounds(
    calls: Mapping[str, TimedCall], budget: Budget, rng: Random, *, within: Mapping[str, Context] = {}, warm: int = 0
) -> tuple[Rounds, float]:
    """Return rounds by `OWN_CLOCK`, and the share of wall time in which others had the core.

    The time of other processes belongs to no mode, and would hide small differences on a machine that is shared.
    """
    wall, own = time.perf_counter(), time.thread_time()
    rounds = paired_rounds(calls, budget, rng, OWN_CLOCK, within=within, warm=warm)
    share = (time.thread_time() - own) / (time.perf_counter() - wall)
    return rounds, max(0.0, 1 - share)


STEPS = 5
"""The least steps of a coarse clock that a block lasts, so that none is read as nothing."""


def calibrate(call: TimedCall, seconds: float, clock: Clock = CLOCK, turns: Turns = ALIKE) -> list[tuple[int, float]]:
    """Time blocks of rising size, until one lasts at least `seconds`; return the count and seconds per call of each.

    A clock that has read a block as nothing moves in steps: the first reading after that is one of them, and a block
    lasts `STEPS` of these. It ends sooner where the state that blocks begin with does not last for more calls.
    """
    count, trials = 1, list[tuple[int, float]]()
    while True:
        now("timed first blocks")
        try:
            with without_collection():
                each = time_block(call, count, clock, turns)
        except Exception:
            if not (trials and turns.block):
                raise
            return trials
        elapsed = each * count
        if elapsed and trials and not trials[-1][1]:
            seconds = max(seconds, STEPS * elapsed)
        trials.append((count, each))
        if elapsed >= seconds:
            return trials
        needed = count * seconds / elapsed if elapsed > 0 else 2.0 * count
        count = max(count + 1, min(10 * count, int(needed * 1.05) + 1))


class BlockSeconds(NamedTuple):
    """The seconds per call by the clock, by the wall, of these those that others had the core, and of all threads."""

    clock: float
    wall: float
    others: float
    busy: float


def time_block(call: TimedCall, count: int, clock: Clock = CLOCK, turns: Turns = ALIKE) -> float:
    """Return the seconds per call of `count` calls in a row, or of single calls where each begins anew."""
    return read_block(call, count, clock, turns).clock


def read_block(call: TimedCall, count: int, clock: Clock = CLOCK, turns: Turns = ALIKE) -> BlockSeconds:
    """Return the seconds per call as `time_block`, by the clock and by the wall."""
    if turns.block:
        turns.block()
    delayed = _delay_nanoseconds()
    if turns.call:
        readings = [_read(call, 1, clock, turns.call) for _ in range(count)]
        own, wall, busy = (sum(column) for column in zip(*readings, strict=True))
    else:
        own, wall, busy = _read(call, count, clock, None)
    return BlockSeconds(*(ns / count / 1e9 for ns in (own, wall, min(_delay_nanoseconds() - delayed, wall), busy)))


def _read(call: TimedCall, count: int, clock: Clock, begin: Callable[[], None] | None) -> tuple[int, int, int]:
    if begin:
        begin()
    numbers = range(count)
    busy, began, start = time.process_time_ns(), time.perf_counter_ns(), clock()
    for _ in numbers:
        call()
    end = clock()
    return end - start, time.perf_counter_ns() - began, time.process_time_ns() - busy


def _delay_nanoseconds() -> int:
    """Return the ns that threads of this process have waited for a core; 0 where the system does not tell."""
    return sum(waited for _, waited in shares(os.getpid()).values())


def orders(names: Sequence[str], rng: Random) -> Iterator[tuple[str, ...]]:
    """Yield the order of the modes in each round: random, and balanced over each group of `len(names)` rounds.

    A group is the rows, shuffled, of a Latin square over a random order: each mode takes each place once.
    """
    while True:
        shuffled = rng.sample(names, len(names))
        square = [tuple(shuffled[i:] + shuffled[:i]) for i in range(len(shuffled))]
        yield from rng.sample(square, len(square))


def rotate(items: Sequence[Item], process: int) -> tuple[Item, ...]:
    """Return modes, or groups of them, rotated by the number of the process, so that each is first in some process."""
    start = process % len(items)
    return (*items[start:], *items[:start])


@contextmanager
def without_collection() -> Iterator[None]:
    """A context without garbage collection, which is done before it: a collection belongs to no mode."""
    gc.collect()
    with collector.without_collection():
        yield


TOLERANCE = 0.05
"""The relative difference below which two levels are one: the smallest effect of interest of the claims."""
PENALTY = 15.0
"""The factor of log n in the penalty: the gain that another change needs, in variances of a block."""
LATEST = 0.75
"""The share of the series after which a change means that no steady state was reached."""
QUIETEST = 1e-3
"""The least noise to assume, as a series that repeats itself exactly has no standard deviation."""

Floats = npt.NDArray[np.floating[Any]]


def steady_from(seconds: Sequence[float]) -> int | None:
    """Return the index of the first steady block; None where no steady state was reached. Raises ValueError."""
    if not len(seconds):
        raise ValueError("a series of no blocks has no state")
    raw = np.log(np.asarray(seconds, np.float64))
    logs = _without_spikes(raw)
    edges = [*segments(logs, _variance(raw)), len(logs)]
    levels = [float(np.mean(logs[a:b])) for a, b in pairwise(edges)]
    start = edges[-2]
    for edge, level in zip(reversed(edges[:-1]), reversed(levels), strict=True):
        if abs(level - levels[-1]) > log1p(TOLERANCE):
            break
        start = edge
    return start if start <= LATEST * len(logs) else None


def segments(values: Floats, variance: float) -> list[int]:
    """Return where the segments of constant level begin that cost least; `variance` is a block's."""
    count = len(values)
    penalty = PENALTY * log(count) * variance
    sums = np.concatenate([[0.0], np.cumsum(values)])
    squares = np.concatenate([[0.0], np.cumsum(values**2)])
    best, last = np.zeros(count + 1), np.zeros(count + 1, np.intp)
    for end in range(1, count + 1):
        begin = np.arange(end)
        inside = squares[end] - squares[begin] - (sums[end] - sums[begin]) ** 2 / (end - begin)
        costs = best[:end] + inside + penalty * (begin > 0)
        last[end] = np.argmin(costs)
        best[end] = costs[last[end]]
    starts = [int(last[count])]
    while starts[-1] > 0:
        starts.append(int(last[starts[-1]]))
    return starts[::-1]


def _variance(values: Floats) -> float:
    """Return the variance of a block's noise from differences of neighbours; a change of level hardly moves it."""
    if len(values) < 2:
        return QUIETEST**2
    deviation = float(np.median(np.abs(np.diff(values)))) * 1.4826 / sqrt(2)
    return max(deviation, QUIETEST) ** 2


def _without_spikes(logs: Floats) -> Floats:
    """Return each block as the median of itself and its neighbours; the first stays, the last is smoothed."""
    if len(logs) < 3:
        return logs
    windows = np.lib.stride_tricks.sliding_window_view(logs, 3)
    middles = np.median(windows, axis=1)
    return np.concatenate([logs[:1], middles, middles[-1:]])


def time_call(call: Callable[[], Any]) -> tuple[float, Any]:
    """Return the seconds that a call takes on the wall, and its result."""
    start = time.perf_counter_ns()
    result = call()
    return (time.perf_counter_ns() - start) / 1e9, result
