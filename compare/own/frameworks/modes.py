"""What each mode of a framework came to, from the records of all processes, and whether compiling pays in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, fsum
from statistics import median
from typing import Literal

from compare.claims.base import SMALLEST_EFFECT
from compare.records.framework_steps import FrameworkGate, FrameworkTime, TimedMode
from compare.stats import Interval, geometric_mean, ratio_interval

Answer = Literal["faster", "no faster", "slower", "unclear"]


@dataclass(frozen=True)
class Mode:
    """One mode: seconds, bytes and counts. None where it was not timed, or nobody counts.

    call        seconds of a call once warm, the geometric mean
    ratio       that over eager's
    first       seconds of the first call with no compiled code at hand
    first_warm  the same where an earlier process has left its compiled code in the framework's cache
    epoch       seconds of the first pass over all calls, cold
    epoch_warm  the same with the cache
    peak        bytes from malloc that a pass reaches above what was there before it
    reasons     how often it compiled, by the reason
    breaks      how often the graph broke, by the reason
    limits      what it runs eager since it has compiled it too often
    pays_from   the call from which on it has cost less in all than eager, cold
    """

    name: str
    status: str
    reason: str | None
    ulp: float | None
    call: float | None = None
    ratio: Interval | None = None
    first: float | None = None
    first_warm: float | None = None
    epoch: float | None = None
    epoch_warm: float | None = None
    peak: int | None = None
    compiles: int = 0
    reasons: Mapping[str, int] | None = None
    breaks: Mapping[str, int] | None = None
    limits: tuple[str, ...] = ()
    pays_from: int | None = None
    pays_from_warm: int | None = None

    @property
    def answer(self) -> Answer | None:
        """Whether it takes less time than eager once warm; None where it was not timed beside it."""
        if self.ratio is None:
            return None
        side = self.ratio.side(SMALLEST_EFFECT)
        if side == "unclear":
            return "no faster" if self.ratio.low >= 1 / (1 + SMALLEST_EFFECT) else "unclear"
        return "faster" if side == "below" else "slower" if side == "above" else "no faster"


def modes_of(arms: Sequence[str], gate: FrameworkGate, processes: Sequence[FrameworkTime]) -> tuple[Mode, ...]:
    """The modes of these arms, the eager one first."""
    eager = _mode(arms[0], gate, processes)
    others = (_mode(arm, gate, processes) for arm in arms[1:])
    return (
        eager,
        *(_beside(mode, eager, calls_of(processes), _ratio(mode.name, arms[0], processes)) for mode in others),
    )


def calls_of(processes: Sequence[FrameworkTime]) -> int:
    """The calls of a pass."""
    return max((process.calls for process in processes), default=0)


def best(modes: Sequence[Mode]) -> Mode | None:
    """Of the compiled modes that are faster than eager, the one to use; None where none is.

    Where the fastest cannot be told from others, the one of them that pays first.
    """
    faster = [mode for mode in modes if mode.answer == "faster" and mode.ratio]
    if not faster:
        return None
    highest = min(mode.ratio.high for mode in faster if mode.ratio)
    near = [mode for mode in faster if mode.ratio and mode.ratio.low <= highest]
    return min(near, key=lambda mode: (mode.pays_from is None, mode.pays_from or 0))


def _mode(arm: str, gate: FrameworkGate, processes: Sequence[FrameworkTime]) -> Mode:
    row, timed = gate.modes[arm], [p.modes[arm] for p in processes if arm in p.modes]
    ended = row if row.status != "ok" else next((mode for mode in timed if mode.status != "ok"), row)
    found = Mode(arm, ended.status, ended.reason, row.ulp)
    if not timed:
        return found
    blocks = [seconds for mode in timed for seconds in mode.blocks]
    return replace(_first(found, timed[0], timed[1:]), call=geometric_mean(blocks) if blocks else None)


def _first(mode: Mode, cold: TimedMode, warm: Sequence[TimedMode]) -> Mode:
    """What first calls took, and what compiling them meant; the first process has met an empty cache."""
    made = Counter(one.reason for one in cold.compilations)
    peaks = [one.peak for one in (cold, *warm) if one.peak is not None]
    again = [one for one in warm if one.status == "ok" and one.first]
    return replace(
        mode,
        first=cold.first[0] if cold.first else None,
        first_warm=median(one.first[0] for one in again) if again else None,
        epoch=fsum(cold.first) if cold.status == "ok" else None,
        epoch_warm=median(fsum(one.first) for one in again) if again else None,
        compiles=made.total(),
        reasons=dict(made),
        breaks=cold.breaks,
        limits=tuple(cold.limits),
        peak=round(median(peaks)) if peaks else None,
    )


def _ratio(arm: str, eager: str, processes: Sequence[FrameworkTime]) -> Interval | None:
    """A mode's time over eager's, by the processes in which both were timed."""
    beside = [p.modes for p in processes if {arm, eager} <= p.modes.keys()]
    pairs = [(modes[arm].blocks, modes[eager].blocks) for modes in beside]
    whole = [pair for pair in pairs if all(pair)]
    return ratio_interval(*zip(*whole, strict=True)) if whole else None


def _beside(mode: Mode, eager: Mode, calls: int, ratio: Interval | None) -> Mode:
    """A mode compared with eager, if both were timed."""
    if ratio is None or mode.call is None or eager.call is None:
        return mode
    gain = eager.call - mode.call
    mode = replace(mode, ratio=ratio)
    if mode.answer != "faster":
        return mode
    cold = _pays_from(gain, calls, mode.epoch, eager.epoch)
    return replace(mode, pays_from=cold, pays_from_warm=_pays_from(gain, calls, mode.epoch_warm, eager.epoch_warm))


def _pays_from(gain: float, calls: int, epoch: float | None, base: float | None) -> int | None:
    """The call from which on a mode that gains so much a call has cost less than eager; None if nobody can tell."""
    if gain <= 0 or epoch is None or base is None:
        return None
    return calls + max(0, ceil((epoch - base) / gain))
