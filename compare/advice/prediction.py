"""Prices of terms on a machine, and advice on one function: the mode that should win, reasons, and when compiling pays.

Prices are seconds, fitted to measured programs once, and kept in a file. The seconds of a call are modelled as a sum
of amounts times prices, which are not negative. Modes share the price of a term with the same name: a kernel takes the
same time in both of our engines.

The last part gives the certainty of a predicted ratio: the probability of its side and an interval, from the errors of
earlier predictions. The logarithm of measured ÷ predicted ratio is assumed to have Student's t distribution. Its tails
are heavier than those of a normal law, because a prediction that is wrong is often far off.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import ceil, exp, log, sqrt
from pathlib import Path
from statistics import fmean
from textwrap import fill
from typing import Any

import numpy as np

from compare import text
from compare.claims import regimes as claims
from compare.claims.regimes import Course
from compare.engines import Engine
from compare.errors import CompareError
from compare.records.own import CallCounts, CountedProgram, Terms, TimedCall
from compare.records.record import Fingerprint, fingerprint, machine_differences
from compare.records.results import write_json
from compare.run.environment import cache_folder, code_digest, environment
from compare.stats import Interval, student_quantile, student_within
from compare.text import count_noun
from graphs.errors import escape_html

VERSION = 3
LEAST_SPREAD = 0.1
"""The smallest spread of the logarithm of a ratio: the error that even a perfect model of a machine has."""
PARTS = 12
"""The number of parts of the programs for cross-validation: each part is left out of a fit in turn."""

Modes = tuple[str, str]
Say = Callable[[str], None]


@dataclass(frozen=True)
class Row:
    """A timed program: the counts of a call, and its seconds."""

    counts: CallCounts
    timed: TimedCall


@dataclass(frozen=True)
class Prices:
    """The price of each term in seconds per unit, for an eager mode and a compiling mode.

    `spread` is the error of predicted compiled ÷ eager on programs left out of the fit, as a root mean square of
    logarithms. `machine` is the fingerprint for which the prices hold, and `seconds` the time of measuring them.
    """

    modes: Modes
    machine: Mapping[str, Any]
    prices: Terms
    spread: float
    seconds: float = 0.0

    @property
    def threads(self) -> int:
        """The number of threads for which the prices hold."""
        return int(self.machine.get("threads", 1))

    def of(self, terms: Terms) -> float:
        """Return the predicted seconds of some terms; a term without a price costs 0."""
        return sum(amount * self.prices.get(term, 0.0) for term, amount in terms.items())

    def timed(self, counts: CallCounts) -> TimedCall:
        """Return the predicted seconds of a call."""
        return TimedCall(self.of(counts.eager), self.of(counts.compiled), self.of(counts.compile))


def fit_prices(modes: Modes, machine: Mapping[str, Any], rows: Sequence[Row], seconds: float = 0.0) -> Prices:
    """Fit prices to all programs, and their spread by cross-validation over `PARTS` parts."""
    off = []
    for part in range(min(PARTS, len(rows))):
        prices = Prices(modes, machine, fit(row for i, row in enumerate(rows) if i % PARTS != part), 0.0)
        off += [log(_ratio(prices.timed(row.counts)) / _ratio(row.timed)) for row in rows[part::PARTS]]
    spread = max(LEAST_SPREAD, fmean(miss * miss for miss in off) ** 0.5)
    return Prices(modes, machine, fit(rows), spread, seconds)


def fit(rows: Iterable[Row]) -> Terms:
    """Fit the price of each term to the seconds of the programs' calls and compilations."""
    pairs = []
    for row in rows:
        terms, taken = row.counts, row.timed
        pairs += [(terms.eager, taken.eager), (terms.compiled, taken.compiled), (terms.compile, taken.compile)]
    pairs = [(terms, seconds) for terms, seconds in pairs if seconds > 0]
    names = sorted({name for terms, _ in pairs for name in terms})
    table = [([terms.get(name, 0.0) for name in names], seconds) for terms, seconds in pairs]
    return dict(zip(names, least_squares(table), strict=True))


def least_squares(rows: Sequence[tuple[Sequence[float], float]]) -> tuple[float, ...]:
    """Return the prices, at least 0, whose sums over terms are nearest to the seconds of the rows.

    It minimises squares of relative errors by an active set (Lawson and Hanson, Solving Least Squares Problems, 1974,
    chapter 23). SciPy has it as `nnls`, but only the tests depend on SciPy, to compare the two: users need not install
    it, nor workers import it, for these few lines.
    """
    table = np.array([[term / seconds for term in terms] for terms, seconds in rows])
    scale = np.where(table.any(axis=0), np.abs(table).max(axis=0), 1.0)
    table, target = table / scale, np.ones(len(rows))
    prices, free = np.zeros(len(scale)), np.zeros(len(scale), bool)
    for _ in range(3 * len(scale)):  # in theory it always ends; in floating point, nearly always
        slope = np.where(free, 0.0, table.T @ (target - table @ prices))
        if slope.max() <= 1e-9:
            break
        free[slope.argmax()] = True
        prices = _bounded_least_squares(table, target, prices, free)
    return tuple(float(price) for price in prices / scale)


def _bounded_least_squares(table: Any, target: Any, prices: Any, free: Any) -> Any:
    """Solve least squares over the free prices; prices that would fall below 0 are set to 0 and no longer free."""
    while True:
        best = np.zeros(len(prices))
        best[free] = np.linalg.lstsq(table[:, free], target, rcond=None)[0]
        if best[free].min(initial=1.0) > 0:
            return best
        falling = free & (best <= 0)
        share = (prices[falling] / np.maximum(prices[falling] - best[falling], 1e-300)).min()
        prices = prices + share * (best - prices)
        free &= prices > 1e-12


def _ratio(taken: TimedCall) -> float:
    return max(taken.compiled, 1e-12) / max(taken.eager, 1e-12)


def save(prices: Prices, path: Path) -> None:
    """Write prices to a JSON file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, {"schema": VERSION, **asdict(prices)})


def load(path: Path, here: Mapping[str, Any]) -> Prices:
    """Read the prices of the machine `here`. Raises CompareError for another machine's, or a file without prices."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        written_by = values.pop("schema")
        prices = Prices(**{**values, "modes": tuple(values["modes"])})
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CompareError(f"{path} is not a calibration ({error}); name another file, or remove it") from error
    if written_by != VERSION:
        raise CompareError(f"{path} is a calibration by another version of graphduel; remove it to measure again")
    if unlike := machine_differences(prices.machine, here):
        raise CompareError(
            f"{path} was calibrated elsewhere or with other code ({', '.join(unlike)}); remove it to measure here"
        )
    return prices


def machine(engine: Engine, threads: int = 1) -> Fingerprint:
    """Return the fingerprint for which prices hold: this machine, its libraries, the engine and graphduel's code.

    It has the number of threads if these are several.
    """
    here = {name: value for name, value in fingerprint(environment()).items() if name != "commit"}
    several = {"threads": threads} if threads > 1 else {}
    return {**here, **several, "engine": engine.version, "code": code_digest()}


def load_prices(
    engine: Engine, mode: str, path: Path | None, measure: Callable[[], Prices], say: Say,
    *, anew: bool = False, threads: int = 1,
) -> Prices:  # fmt: skip
    """Load prices from a file, by default in the user's cache; measure and save them if there are none, or if `anew`.

    The cache has a file for each compiling mode, machine and number of threads. It is replaced if it does not fit, for
    example because graphduel's code has changed. Raises CompareError for a file at `path` that does not fit.
    """
    here = machine(engine, threads)
    place = path or _place(mode, here)
    if place.exists() and not anew:
        try:
            prices = load(place, here)
        except CompareError as error:
            if path is not None:
                raise
            say(f"{error}")
        else:
            say(f"Prices of this machine: {_short_path(place)}, {age(place)} old; --calibrate measures them anew.")
            return prices
    takes = "with a few programs, in minutes" if engine.compiles_slowly else "on made-up programs, in half a minute"
    several = f" with {threads} threads" if threads > 1 else ""
    say(f"Measuring the prices of {mode} on this machine{several}, {takes}, once ...")
    prices = measure()
    save(prices, place)
    say(f"Kept in {_short_path(place)}.")
    return prices


def age(path: Path) -> str:
    """Return the age of a file in words, as `3 days`."""
    minutes = max(0.0, time.time() - path.stat().st_mtime) / 60
    for unit, length in (("day", 24 * 60), ("hour", 60)):
        if minutes >= length:
            return count_noun(int(minutes / length), unit)
    return count_noun(int(minutes), "minute")


def _place(mode: str, here: Mapping[str, Any]) -> Path:
    """Return the file in the user's cache, named by the mode and the machine, but not by graphduel's code."""
    lasting = {name: value for name, value in here.items() if name != "code"}
    digest = hashlib.sha256(json.dumps(lasting, sort_keys=True).encode()).hexdigest()[:12]
    return cache_folder() / "advice" / f"{mode}-{digest}.json"


def _short_path(path: Path) -> str:
    try:
        return f"~/{path.absolute().relative_to(Path.home()).as_posix()}"
    except (ValueError, RuntimeError):
        return str(path)


# Advice ---------------------------------------------------------------------------------------------------------------


OFF = {"none": 0.23, "in the graph": 0.6, "between graphs": 0.85}
"""The error of predicted ratios, as a root mean square of logarithms, by where values decide what runs.

On a machine of two cores, against the times of `python -m benchmarks.advice`, it was 0.229 for 50 programs of our
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
        probability = "99%" if self.confidence >= MOST else f"{self.confidence:.0%}"
        sure = f"{least} is faster with probability {probability}"
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
            *([f"a step has {prices.threads} threads, and its seconds are those of the wall"] * (prices.threads > 1)),
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


def faster(ratio: float, ends: tuple[float, float]) -> str:
    """Return how many times faster a mode is, as `1.8× [1.2, 2.6] faster`, for a ratio above or below 1."""
    low, high = ends if ratio >= 1 else (1 / ends[1], 1 / ends[0])
    return f"{text.ratio(max(ratio, 1 / ratio))} {text.interval(low, high)} faster"
