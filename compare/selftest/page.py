"""The rates of a selftest as rows of a table, and as a page in Markdown."""

from __future__ import annotations

from compare.page.blocks import Table
from compare.page.markdown import table
from compare.records.checks import Coverage, LeakRate, Rate, Selftest, SpeedRate
from compare.records.record import Environment
from compare.selftest.rates import LEAST_LEAK
from compare.words.text import counted

_TARGET = {None: "none", True: "met", False: "missed"}
_PAGE = """# How far the harness can be trusted

The selftest compared an engine with itself: unchanged, slowed down by a known share of its own work, and leaking known
bytes. It did the same with functions as `graphduel compare` measures them, of about 5 us, 1 ms and 100 ms a call. It
finds a slowdown if the 95% interval of the ratio excludes 1. It finds a leak if an epoch leaves more than {least:,}
bytes behind. If it finds something where nothing was injected, that is a false alarm.

{table}

The intervals should contain the injected ratio in 95 of 100 comparisons, also with few processes:

{coverage}

{comparisons} comparisons of {processes} processes each, and {own} of each function of one's own, {at_once} at a time, \
{took}, on {cpu} with \
{cores} cores{load}; {python}, NumPy {numpy}, commit {commit}, {at}. Targets: **{outcome}**.

    graphduel selftest --comparisons {comparisons} --seed {seed}
"""


def rates_table(rates: Selftest) -> Table | None:
    """A row for each size that was injected."""
    return Table.of("lrrrll", [*map(_slowdown, rates.speed), *map(_leak, rates.leaks)])


def coverage_table(rates: Selftest) -> Table | None:
    """A row for each number of processes of a comparison."""
    return Table.of("rlrrll", map(_covered, rates.coverage))


def markdown(rates: Selftest) -> str:
    """The page."""
    environment, settings = rates.environment or Environment(), rates.settings
    return _PAGE.format(
        least=LEAST_LEAK,
        table=table(rates_table(rates)),
        coverage=table(coverage_table(rates)),
        took=_took(rates),
        outcome=rates.outcome,
        at=rates.at,
        **{name: settings[name] for name in ("comparisons", "own", "processes", "at_once", "seed")},
        commit=environment.commit or "unknown",
        load="" if environment.load is None else f", load {environment.load:.2f} when it began",
        **{name: getattr(environment, name) for name in ("cpu", "cores", "python", "numpy")},
    )


def _took(rates: Selftest) -> str:
    minutes = counted(max(1, round(rates.seconds / 60)), "minute")
    return f"in {minutes}" if rates.starts == 1 else f"in {rates.starts} starts, the last of {minutes}"


def _slowdown(row: SpeedRate) -> dict[str, str]:
    injected = f"{row.injected:.0%} slower, counted {row.counted:.2%}" if row.injected else "nothing"
    if row.subject:
        injected = f"own function, {row.subject}: {injected}"
    return _row(injected, f"{row.estimate:.3f} ±{row.half_width:.1%}", row)


def _leak(row: LeakRate) -> dict[str, str]:
    injected = f"{row.injected:,.0f} bytes an epoch" if row.injected else "no leak"
    return _row(injected, f"{row.kept:,.0f} bytes", row)


def _covered(row: Coverage) -> dict[str, str]:
    low, high = row.interval
    return {
        "processes": str(row.processes),
        "interval": f"±{row.half_width:.1%}",
        "held the truth": str(row.held),
        "of": str(row.comparisons),
        "rate, 95% interval": f"{row.rate:.1%} ({low:.1%} to {high:.1%})",
        "target": _TARGET[row.met],
    }


def _row(injected: str, measured: str, rate: Rate) -> dict[str, str]:
    low, high = rate.interval
    return {
        "injected": injected,
        "measured": measured,
        "found": str(rate.detected),
        "of": str(rate.comparisons),
        "rate, 95% interval": f"{rate.rate:.1%} ({low:.1%} to {high:.1%})",
        "target": _TARGET[rate.met],
    }
