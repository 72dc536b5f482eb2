"""Advice on one function: the mode that should win once warm, reasons, and after how many calls compiling pays.

The last part gives the certainty of a predicted ratio: the probability of its side and an interval, from the errors of
earlier predictions.

The logarithm of measured ÷ predicted ratio is assumed to have Student's t distribution. Its tails are heavier than
those of a normal law, because a prediction that is wrong is often far off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import ceil, exp, log, sqrt
from statistics import fmean
from textwrap import fill
from typing import Any

from compare import text
from compare.advice.prices import Prices
from compare.claims import crossover as claims
from compare.claims.crossover import Course
from compare.records.own import CountedProgram, Terms
from compare.stats import Interval, student_quantile, student_within
from graphs.plain import escape_html

OFF = {"none": 0.23, "in the graph": 0.6, "between graphs": 0.85}
"""The error of predicted ratios, as a root mean square of logarithms, by where values decide what runs.

On a machine of two cores, against the times of `graphduel advise --evaluate`, it was 0.229 for 50 programs of our
engines without decisions by values, and 0.544 for 12 with control flow in the graph. These were predicted like a user's
function, which is not run: the longest branch is taken, and loops turn ten times. In PyTorch it was 0.19 for nine
programs, and 0.85 for four in which Python reads values between graphs."""

SHORT, TINY = 50e-6, 0.4
"""The error of predicted ratios (`TINY`) for a step of fewer predicted eager seconds than `SHORT`, most of which are
overhead outside of kernels. A step of examples/ was predicted at 0.296 and measured by `graphduel compare` at 0.569,
another at 0.55 and 0.628."""

TIE = 1.25
"""Modes whose predicted times differ by less than this factor are a tie. Declared before any evaluation."""
TIED = "too close to call"
SHOWN = 3
"""The number of terms of a time that the reasons name, the dearest ones."""


@dataclass(frozen=True)
class Advice:
    """A prediction. Times are seconds of a warm call, means over the calls if they vary.

    `winner` is one of the `modes`, or `TIED`. `compile` is the seconds of compiling for all shapes among the calls, and
    `break_even` the calls after which they are paid back, None unless the compiling mode is predicted to win.
    `confidence` is the probability that the mode with the smaller time is faster, and `interval` contains the measured
    ratio with probability 95%; both follow from the errors of earlier predictions. `parts` are the seconds of each mode
    by term. If the second mode refuses the function, `refused` says why, and no time is known. `ran` is whether the
    function was run to count its work; a function for our engines is only traced.
    """

    modes: tuple[str, str]
    winner: str
    eager: float | None
    compiled: float | None
    compile: float | None
    shapes: int
    break_even: int | None
    confidence: float
    reasons: tuple[str, ...]
    refused: str | None = None
    ran: bool = False
    interval: tuple[float, float] | None = None
    ops: int = 0
    parts: tuple[Terms, Terms] | None = None

    @property
    def ratio(self) -> float | None:
        """The predicted ratio compiled ÷ eager in time: below 1, the compiling mode is faster; None if refused."""
        return None if self.compiled is None or not self.eager else self.compiled / self.eager

    def to_dict(self) -> dict[str, Any]:
        """Return the advice as plain JSON values."""
        values = {**asdict(self), "reasons": list(self.reasons), "ratio": self.ratio, "tie_zone": [1 / TIE, TIE]}
        del values["modes"]
        return {"arms": list(self.modes), **values}

    def __str__(self) -> str:
        reasons = [f"- {reason}" for reason in (*self.reasons, self._inspection_text)]
        return "\n".join(fill(line, 79, subsequent_indent="  ") for line in (self._sentence(), *reasons))

    def _repr_html_(self) -> str:
        reasons = "".join(f"<li>{escape_html(reason)}</li>" for reason in (*self.reasons, self._inspection_text))
        return f"<p><strong>{escape_html(self._sentence())}</strong></p><ul>{reasons}</ul>"

    @property
    def _inspection_text(self) -> str:
        """The sentence on how the function was examined: run op by op, or only traced."""
        if self.ran:
            return "this prediction ran your function once for each call, op by op: it compiled and timed nothing"
        if self.refused:
            return "this prediction traced your function on shapes and did not run it, so no time is known"
        return "this prediction traced your function and did not run it: it adds up the prices of what its graph does"

    def _sentence(self) -> str:
        eager, compiled = self.modes
        if self.ratio is None or self.interval is None:
            return f"Take {eager}: {compiled} refuses the function. {self.refused}"
        least, other = (compiled, eager) if self.ratio < 1 else (eager, compiled)
        ahead = f"{least} is {faster(self.ratio, self.interval)} than {other} by prediction"
        sure = f"{least} is faster with probability {probability_in_words(self.confidence)}"
        if self.winner == TIED:
            return (
                f"Too close to call: once warm, {ahead}, and {sure}. "
                f"From {1 / TIE:.2f}× to {TIE:.2f}× the advice names no winner: graphduel compare measures it."
            )
        return f"Take {self.winner}: once warm, {ahead}, and {sure}."


def predict(prices: Prices, program: CountedProgram) -> Advice:
    """Predict the times of a program's calls from prices, and return the advice."""
    eager_mode, compiled_mode = prices.modes
    if program.refused is not None or not program.counts:
        return Advice(
            prices.modes, eager_mode, None, None, None, 0, None, 1.0, (), program.refused or "it has no calls"
        )
    taken = [prices.timed(counts) for counts in program.counts]
    eager, compiled, each = (fmean(getattr(call, name) for call in taken) for name in ("eager", "compiled", "compile"))
    ratio, compile = compiled / eager, each * program.shapes
    spread = max(prices.spread, *(OFF[counts.control] for counts in program.counts), TINY if eager < SHORT else 0.0)
    winner = winner_of(ratio, prices.modes)
    paid = break_even(compile, eager, compiled) if winner == compiled_mode else None
    parts = tuple(
        _parts(prices, [getattr(counts, name) for counts in program.counts]) for name in ("eager", "compiled")
    )
    remarks = dict.fromkeys(remark for counts in program.counts for remark in counts.remarks)
    return Advice(
        prices.modes,
        winner,
        eager,
        compiled,
        compile,
        program.shapes,
        paid,
        probability(ratio, spread),
        (
            *(_time_reason(mode, terms) for mode, terms in zip(prices.modes, parts, strict=True)),
            *_compile_reasons(compile, program.shapes, winner, prices.modes, paid),
            *remarks,
        ),
        ran=any(counts.ran for counts in program.counts),
        interval=interval(ratio, spread),
        ops=program.counts[0].ops,
        parts=(parts[0], parts[1]),
    )


def winner_of(ratio: float, modes: tuple[str, str]) -> str:
    """Return the winning mode for a ratio compiled ÷ eager, or `TIED` inside the tie zone."""
    if 1 / TIE <= ratio <= TIE:
        return TIED
    return modes[1] if ratio < 1 else modes[0]


def break_even(compile: float, eager: float, compiled: float) -> int | None:
    """Return the calls after which compiling has paid for itself; None if a compiled call is not faster.

    The rule is the one for measured calls; a prediction has no interval, and its first call costs as much as others.
    """
    ratio = compiled / eager
    paid = claims.break_even(
        Course(compile, (compiled,), compiled), Course(0.0, (eager,), eager), Interval(ratio, ratio, ratio)
    )
    return None if paid.runs is None else ceil(round(paid.runs, 6))


def _parts(prices: Prices, calls: Sequence[Terms]) -> Terms:
    """Return the mean seconds of some calls by term, the dearest first."""
    names = {name for terms in calls for name in terms}
    seconds = {name: prices.of({name: fmean(terms.get(name, 0.0) for terms in calls)}) for name in names}
    return dict(sorted(seconds.items(), key=lambda item: -item[1]))


def _time_reason(mode: str, parts: Terms) -> str:
    total = sum(parts.values())
    dearest = [f"{seconds / total:.0%} for {name}" for name, seconds in list(parts.items())[:SHOWN] if seconds > 0]
    return f"{mode} takes {text.seconds(total)} a call: {', '.join(dearest)}"


def _compile_reasons(seconds: float, shapes: int, winner: str, modes: tuple[str, str], paid: int | None) -> list[str]:
    """Return sentences on the seconds of compiling, and on when it pays, if the compiling mode is predicted to win."""
    pays = {
        modes[1]: f"this has paid for itself after {text.count_noun(paid or 0, 'call')}",
        modes[0]: "this never pays for itself",
        TIED: "it is too close to call whether this ever pays for itself",
    }[winner]
    what = "" if shapes == 1 else f" for the {shapes:,} shapes of the calls"
    reasons = [f"compiling{what} takes {text.seconds(seconds)}: {pays}"]
    if shapes > 1:
        reasons.append(
            "each new shape is priced as a compilation: if shapes never repeat, compiling does not pay, unless the "
            "compiler generalises over them; graphduel compare counts how often it compiles"
        )
    return reasons


FREEDOM = 8
"""The degrees of freedom of Student's t: about the number of programs on which a calibration checks its prices."""
MOST = 0.99
"""The largest stated probability, since fewer than a hundred programs were measured beside their prediction."""
_SCALE = sqrt((FREEDOM - 2) / FREEDOM)
"""The scale of a Student's t distribution whose standard deviation is 1."""
_TAIL = 0.025


def probability(ratio: float, spread: float) -> float:
    """Return the probability that the measured ratio lies on the same side of 1 as the predicted one.

    `spread` is the root mean square of the logarithm of measured over predicted ratios.
    """
    inside = student_within(FREEDOM, abs(log(ratio)) / (_SCALE * spread))
    return min(MOST, 0.5 + inside / 2)


def interval(ratio: float, spread: float) -> tuple[float, float]:
    """Return the interval that contains the measured ratio with probability 95%; `spread` is as in `probability`."""
    factor = exp(student_quantile(FREEDOM, _TAIL) * _SCALE * spread)
    return ratio / factor, ratio * factor


def probability_in_words(share: float) -> str:
    """Return a probability as a percentage, at most 99%."""
    return "99%" if share >= MOST else f"{share:.0%}"


def faster(ratio: float, ends: tuple[float, float]) -> str:
    """Return how many times faster a mode is, as `1.8× [1.2, 2.6] faster`, for a ratio above or below 1."""
    low, high = ends if ratio >= 1 else (1 / ends[1], 1 / ends[0])
    return f"{text.ratio(max(ratio, 1 / ratio))} {text.interval(low, high)} faster"
