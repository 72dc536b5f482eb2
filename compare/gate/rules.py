"""The rules of `--fail-if`: `static > 1.05` holds where static takes more than 1.05 times as long as dynamic.

    RULE = MODE [ "/" MODE ] ( ">" | ">=" | "<" | "<=" ) NUMBER

The ratio is that of the steady times of two modes; the second is dynamic if it is not named. A rule holds only where
the whole 95% interval of the ratio lies on its side, so that noise alone fails no build.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from compare.claims.evidence import cells, joined, steady
from compare.claims.verdict import ratio_of
from compare.errors import InputsError
from compare.records.cells import Time
from compare.records.record import Records
from compare.stats import Interval
from compare.words import text

ALLOWED = "write MODE > NUMBER or MODE / MODE > NUMBER, with >, >=, < or <=, such as 'static > 1.05'"

Outcome = Literal["holds", "does not hold", "unclear", "not measured"]

_RULE = re.compile(r"([\w-]+)\s*(?:/\s*([\w-]+))?\s*(>=|<=|>|<)\s*([0-9]+(?:\.[0-9]+)?)", re.ASCII)
_COMPARISONS: Mapping[str, Callable[[float, float], bool]] = {
    ">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le,
}  # fmt: skip


@dataclass(frozen=True)
class FailRule:
    """A rule as it was written, and its parts: `top / bottom` compared with a number."""

    written: str
    top: str
    bottom: str
    comparison: str
    number: float

    def judge(self, records: Records) -> Judgement:
        """What the records of one function say about the rule."""
        timed = cells(records, Time)
        ratio = ratio_of(joined(timed), self.top, self.bottom, steady) if timed else None
        return Judgement(self, self._outcome(ratio), ratio)

    def _outcome(self, ratio: Interval | None) -> Outcome:
        if ratio is None:
            return "not measured"
        compared = _COMPARISONS[self.comparison]
        ends = {compared(ratio.low, self.number), compared(ratio.high, self.number)}
        if len(ends) == 2 or not ratio.bounded:
            return "unclear"
        return "holds" if ends.pop() else "does not hold"


@dataclass(frozen=True)
class Judgement:
    """A rule, whether it holds, and the ratio with its interval."""

    rule: FailRule
    outcome: Outcome
    ratio: Interval | None

    @property
    def measured(self) -> str:
        """`static-exact ÷ dynamic is 0.45x [0.44, 0.46]`."""
        pair = f"{self.rule.top} ÷ {self.rule.bottom}"
        if self.ratio is None:
            return f"{pair} was not measured"
        return f"{pair} is {text.ratio(self.ratio.estimate)} {text.interval(self.ratio.low, self.ratio.high)}"

    def __str__(self) -> str:
        return f"--fail-if '{self.rule.written}': {self.outcome}: {self.measured}"


def parsed(written: str, modes: Sequence[str], aliases: Mapping[str, str]) -> FailRule:
    """The rule as written, over modes that are measured, beside the first of them if it names one alone.

    Raises InputsError saying what is allowed.
    """
    parts = _RULE.fullmatch(written.strip())
    if parts is None:
        raise InputsError(f"--fail-if {written!r} cannot be read; {ALLOWED}")
    top, bottom = (aliases.get(name, name) for name in (parts[1], parts[2] or modes[0]))
    for mode in (top, bottom):
        if mode not in modes:
            raise InputsError(f"--fail-if {written!r}: {mode} is not measured; the modes that are: {', '.join(modes)}")
    if top == bottom:
        raise InputsError(f"--fail-if {written!r} compares {top} with itself; {ALLOWED}")
    number = float(parts[4])
    if not number:
        raise InputsError(f"--fail-if {written!r} compares with 0, which no ratio reaches; {ALLOWED}")
    return FailRule(written.strip(), top, bottom, parts[3], number)
