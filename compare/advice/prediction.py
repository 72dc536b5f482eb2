"""Advice on one function: the engine that should win once warm, why, and after how many runs a compilation pays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from html import escape
from math import ceil
from textwrap import fill
from typing import Any, Literal

from compare.advice import odds
from compare.advice.costs import Costs
from compare.advice.structures import TURNS, Structure
from compare.advice.work import StepSeconds
from compare.claims import break_even as claims
from compare.claims.break_even import Course
from compare.stats import Interval
from compare.words import text

STRAIGHT, BRANCHING = 0.18, 0.4
"""How far off predicted ratios were, as a root mean square of logarithms: of programs without and with control flow
that depends on values. `graphduel advise --evaluate`, with and without `--held-out`, found 0.173 of 66 and 0.371 of
14."""

SHORT, TINY = 50e-6, 0.4
"""The same for a step that dynamic should take so few seconds for: what an engine adds to its kernels is most of it.
A step of examples/ was predicted at 0.296 and measured by `graphduel compare` at 0.569, another at 0.55 and 0.628."""

TIE = 1.25
"""Engines whose predicted times differ by less than this factor are a tie. Declared before any evaluation."""

Winner = Literal["dynamic", "static", "too close to call"]


@dataclass(frozen=True)
class Advice:
    """A prediction. Times are seconds of a call once warm, means over the inputs where these vary.

    `compile` is for all structures among the inputs, `break_even` the calls after which that is paid back: None where
    static is not said to win. `confidence` is the probability that the engine with the smaller time does win, and
    `interval` has the measured ratio in it with probability 95%: both by how far predictions were off, of synthetic
    programs on this machine and of programs that nothing was fitted to. Where static refuses the function, its times
    are None and `refused` says why; those of dynamic are None as well where nothing was run to know them. `ran` tells
    whether the function was run: a workload may be, a function of the user's never is.
    """

    winner: Winner
    dynamic: StepSeconds | None
    static: StepSeconds | None
    compile: float | None
    compiles: int
    break_even: int | None
    confidence: float
    reasons: tuple[str, ...]
    refused: str | None = None
    ran: bool = False
    interval: tuple[float, float] | None = None

    @property
    def ratio(self) -> float | None:
        """Static ÷ dynamic in time: below 1 static is faster."""
        return None if self.static is None or self.dynamic is None else self.static.total / self.dynamic.total

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {**asdict(self), "reasons": list(self.reasons), "ratio": self.ratio, "tie_zone": [1 / TIE, TIE]}

    def __str__(self) -> str:
        reasons = [f"- {reason}" for reason in (*self.reasons, self._looked)]
        return "\n".join(fill(line, 79, subsequent_indent="  ") for line in (self._sentence(), *reasons))

    def _repr_html_(self) -> str:
        reasons = "".join(f"<li>{escape(reason)}</li>" for reason in (*self.reasons, self._looked))
        return f"<p><strong>{escape(self._sentence())}</strong></p><ul>{reasons}</ul>"

    @property
    def _looked(self) -> str:
        """What was done with the function to know this."""
        if self.ran:
            return _RAN
        return _TRACED if self.dynamic is not None else _REFUSED

    def _sentence(self) -> str:
        if self.ratio is None or self.interval is None:
            return f"Take dynamic: static refuses the function. {self.refused}"
        least, other = ("static", "dynamic") if self.ratio < 1 else ("dynamic", "static")
        ahead = f"{least} is {odds.faster(self.ratio, self.interval)} than {other} by prediction"
        sure = f"{least} is faster with probability {odds.told(self.confidence)}"
        if self.winner == "too close to call":
            return (
                f"Too close to call: once warm, {ahead}, and {sure}. "
                f"From {1 / TIE:.2f}× to {TIE:.2f}× the advice names neither engine."
            )
        return f"Take {self.winner}: once warm, {ahead}, and {sure}."


_TRACED = "this prediction traced your function and did not run it: it adds up the costs of its ops, by their shapes"
_CONVERTED = (
    "the function branches on values: static takes it with convert=True, and this prediction takes the longest of its "
    f"branches in both engines, and {TURNS:.0f} turns of a loop whose length only a run knows"
)
_REFUSED = "this prediction traced your function on shapes and did not run it, so the time in dynamic is not known"
_RAN = "this prediction ran your function, because it branches on values, and timed no run"


def refusal(why: str) -> Advice:
    """The advice on a function that static refuses, and that nothing was run of."""
    return Advice("dynamic", None, None, None, 0, None, 1.0, (), why)


def weigh(structures: Sequence[Structure], costs: Costs, compiles: int | None = None) -> Advice:
    """The advice for calls of these structures in turn, of which `compiles` are compiled, all by default."""
    found = [structure.predicted(costs) for structure in structures]
    eager = _mean([one.dynamic for one in found])
    refused = next((structure.reason for structure in structures if structure.static is None), None)
    if refused is not None:
        return Advice("dynamic", eager, None, None, 0, None, 1.0, (_dynamic_reason(eager),), refused, ran=True)
    count = len(structures) if compiles is None else compiles
    compiled = _mean([one.static for one in found if one.static is not None])
    seconds = count * sum(one.compile or 0.0 for one in found) / len(found)
    ratio = compiled.total / eager.total
    branches = any(structure.ran or structure.converted is not None for structure in structures)
    usual = TINY if eager.total < SHORT else STRAIGHT
    spread = max(costs.spread, BRANCHING if branches else usual)
    wins = winner(ratio)
    paid = break_even(seconds, eager.total, compiled.total) if wins == "static" else None
    return Advice(
        winner=wins,
        dynamic=eager,
        static=compiled,
        compile=seconds,
        compiles=count,
        break_even=paid,
        confidence=odds.probability(ratio, spread),
        reasons=(
            _dynamic_reason(eager),
            _static_reason(compiled),
            *_compile_reasons(seconds, count, wins, paid),
            *([_CONVERTED] if any(structure.converted is not None for structure in structures) else ()),
        ),
        ran=any(structure.ran for structure in structures),
        interval=odds.interval(ratio, spread),
    )


def winner(ratio: float) -> Winner:
    """Who wins by static ÷ dynamic."""
    if is_tie(ratio):
        return "too close to call"
    return "static" if ratio < 1 else "dynamic"


def is_tie(ratio: float) -> bool:
    """Whether a predicted ratio is too near 1 to name an arm."""
    return 1 / TIE <= ratio <= TIE


def break_even(compile: float, dynamic: float, static: float) -> int | None:
    """The calls after which compiling has cost less than it has saved; None where a call saves nothing.

    The rule is that of measured calls; a prediction has no interval, and its first call costs as much as any.
    """
    ratio = static / dynamic
    paid = claims.break_even(
        Course(compile, (static,), static), Course(0.0, (dynamic,), dynamic), Interval(ratio, ratio, ratio)
    )
    return None if paid.runs is None else ceil(round(paid.runs, 6))


def _mean(parts: Sequence[StepSeconds]) -> StepSeconds:
    return sum(parts, StepSeconds()).times(1 / len(parts))


def _compile_reasons(seconds: float, count: int, wins: Winner, paid: int | None) -> list[str]:
    """What compiling takes, and when that is paid back: a promise only where static is said to win."""
    pays = {
        "static": f"this has paid for itself after {text.counted(paid or 0, 'call')}",
        "dynamic": "this never pays for itself",
        "too close to call": "it is too close to call whether this ever pays for itself",
    }[wins]
    found = [f"compiling {'one graph' if count == 1 else f'{count:,} graphs'} takes {text.seconds(seconds)}: {pays}"]
    if count > 1:
        found.append(
            "static compiles each new shape or structure again: if shapes never repeat, compiling does not pay"
        )
    return found


def _dynamic_reason(parts: StepSeconds) -> str:
    recording = parts.ops + parts.call
    each = text.seconds(recording / max(1, parts.count))
    new = f", {text.seconds(parts.new)} for memory that is new in every call" if parts.new > 0.05 * parts.total else ""
    return (
        f"dynamic takes {text.seconds(parts.total)}: recording is {recording / parts.total:.0%} of it "
        f"({text.counted(parts.count, 'op')} of {each}), and kernels take {text.seconds(parts.kernels)}{new}"
    )


def _static_reason(parts: StepSeconds) -> str:
    ran = f"{text.counted(parts.count, 'kernel call')} in {text.seconds(parts.kernels)}"
    rest = text.seconds(parts.ops + parts.call)
    return f"static takes {text.seconds(parts.total)}: {ran}, and Python code in {rest}"
