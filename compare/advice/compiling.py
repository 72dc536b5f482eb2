"""What is predicted of a user's step: whether to compile it, from which call on that pays, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from textwrap import fill
from typing import Any, Literal

from compare.advice import odds
from compare.advice.counted import CountedCosts
from compare.advice.prediction import TIE, break_even, is_tie
from compare.records.framework_work import Timed
from compare.records.work import Work
from compare.words import text

STRAIGHT, READING = 0.2, 0.85
"""How far off predicted ratios of PyTorch were, as a root mean square of logarithms: 0.19 of nine workloads whose
values Python does not read, and 0.85 of four where it does."""

Winner = Literal["eager", "compiled", "too close to call"]


@dataclass(frozen=True)
class Prediction:
    """What a step should take in an arm that compiles, beside the eager one: means over its calls.

    `break_even` are the calls after which compiling once is paid back, None where it never is. `shapes` are those among
    the calls. `confidence` is the probability that the arm with the smaller time is the faster one, and `interval` has
    the measured ratio in it with probability 95%.
    """

    arm: str
    winner: Winner
    times: Timed
    break_even: int | None
    confidence: float
    interval: tuple[float, float]
    shapes: int
    work: Work

    @property
    def ratio(self) -> float:
        """Compiled ÷ eager, once warm."""
        return self.times.compiled / self.times.eager

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        nested = {name: _fields(getattr(self, name)) for name in ("times", "work")}
        plain = {name: getattr(self, name) for name in ("arm", "winner", "break_even", "confidence", "shapes", "ratio")}
        plain["interval"] = list(self.interval)
        return {**plain, **nested, "tie_zone": [1 / TIE, TIE]}

    def __str__(self) -> str:
        lines = [self._sentence(), *(f"- {reason}" for reason in self._reasons())]
        return "\n".join(fill(line, 79, subsequent_indent="  ") for line in lines)

    def _sentence(self) -> str:
        ahead = (
            f"{self.arm} should take {text.seconds(self.times.compiled)} a call once warm, "
            f"eager {text.seconds(self.times.eager)}"
        )
        low, high = self.interval
        ratio = f"compiled ÷ eager is {text.ratio(self.ratio)} {text.interval(low, high)}"
        if self.winner == "too close to call":
            return f"Too close to call: {ahead}; {ratio}. Measure it: graphduel compare."
        verdict = "Compile it" if self.winner == "compiled" else "Do not compile it"
        return f"{verdict}: {ahead}; {ratio}. This is right with probability {odds.told(self.confidence)}."

    def _reasons(self) -> list[str]:
        work = self.work
        counted = ", ".join(
            text.counted(count, noun)
            for count, noun in ((work.others, "op"), (work.products, "product"), (work.views, "view"))
            if count
        )
        found = [
            f"a call runs {counted} in both passes; products take {work.flops / 1e6:,.3g} million flops",
            f"the first call should take {text.seconds(self.times.first)} with nothing compiled yet: {self._pays()}",
        ]
        if work.reads:
            found.append(
                f"Python reads {text.counted(work.reads, 'value')} in a call, for example in an `if` or by item(): the "
                "graph breaks at each, and the framework compiles each new path"
            )
        if self.shapes > 1:
            found.append(
                f"the calls have {self.shapes} shapes: the framework may compile each again, which this prediction "
                "leaves out; graphduel compare counts how often and why"
            )
        return [
            *found,
            "the command compiled nothing: it ran the function once for each call, op by op",
        ]

    def _pays(self) -> str:
        if self.break_even is None:
            return (
                "it never pays for itself" if self.winner == "eager" else "too close to call whether it pays for itself"
            )
        return f"it has paid for itself after {text.counted(self.break_even, 'call')}"


def predict(costs: CountedCosts, works: Sequence[Work], shapes: int) -> Prediction:
    """The prediction for calls that do this work."""
    priced = [costs.priced(work) for work in works]
    times = Timed(*(fmean(getattr(one, name) for one in priced) for name in ("eager", "compiled", "first")))
    ratio = times.compiled / times.eager
    winner = winner_of(ratio)
    spread = max(costs.spread, READING if any(work.reads for work in works) else STRAIGHT)
    return Prediction(
        costs.arms[1],
        winner,
        times,
        break_even(times.first, times.eager, times.compiled) if winner == "compiled" else None,
        odds.probability(ratio, spread),
        odds.interval(ratio, spread),
        shapes,
        works[0],
    )


def winner_of(ratio: float) -> Winner:
    """By compiled ÷ eager."""
    if is_tie(ratio):
        return "too close to call"
    return "compiled" if ratio < 1 else "eager"


def _fields(struct: Any) -> dict[str, Any]:
    return {name: getattr(struct, name) for name in struct.__struct_fields__}
