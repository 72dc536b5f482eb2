"""The prices of terms on a machine, in seconds: fitted to measured programs once, and kept in a file.

The seconds of a call are modelled as a sum of amounts times prices, which are not negative. Modes share the price of a
term with the same name: a kernel takes the same time in both of our engines.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import log
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from compare.engines import Engine
from compare.errors import CompareError
from compare.records.own import CallCounts, Terms, TimedCall
from compare.records.record import Fingerprint, fingerprint, machine_differences
from compare.records.results import write_json
from compare.run import product
from compare.run.environment import cache_folder, environment
from compare.text import count_noun

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


def machine(engine: Engine) -> Fingerprint:
    """Return the fingerprint for which prices hold: this machine, its libraries, the engine and graphduel's code."""
    here = {name: value for name, value in fingerprint(environment()).items() if name != "commit"}
    return {**here, "engine": engine.version, "code": product.code()}


def load_prices(
    engine: Engine, mode: str, path: Path | None, measure: Callable[[], Prices], say: Say, *, anew: bool = False
) -> Prices:
    """Load prices from a file, by default in the user's cache; measure and save them if there are none, or if `anew`.

    The cache has a file for each compiling mode and machine. It is replaced if it does not fit, for example because
    graphduel's code has changed. Raises CompareError for a file at `path` that does not fit.
    """
    here = machine(engine)
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
    say(f"Measuring the prices of {mode} on this machine, {takes}, once ...")
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
