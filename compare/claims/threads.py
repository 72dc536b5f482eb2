"""Several threads in a verdict: the numbers that were asked for, a busy machine, and what more processes would tell.

Each mode is timed in processes of its own, by the wall. Other processes on the cores make such seconds useless, since
the threads of a step wait for the slowest of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, fsum, log, log1p
from statistics import median
from typing import Any

from msgspec.structs import replace

from compare import text
from compare.claims.base import SMALLEST_EFFECT
from compare.claims.evidence import Evidence, first_run, is_disturbed, steady
from compare.records.cells import Time, TimeRow
from compare.records.record import Record, Records, Run, records_of

CANNOT_TELL = "cannot tell"


def threads_asked(records: Records) -> list[int]:
    """Return the numbers of threads on which a function was measured, in the order asked for."""
    asked: Any = next((run.settings.get("threads", 1) for run in records_of(records, Run)), 1)
    return [int(number) for number in asked] if isinstance(asked, list) else [int(asked)]


def at_threads(records: Records, number: int) -> tuple[Record, ...]:
    """Return the records on so many threads, and those of kinds that are made on one alone."""
    kinds = {type(record) for record in records if record.threads == number} - {Run}
    kept = (record for record in records if record.threads == number or type(record) not in kinds)
    return tuple(
        replace(record, settings={**record.settings, "threads": number}) if isinstance(record, Run) else record
        for record in kept
    )


def busy_sentence(records: Records) -> str:
    """Return the sentence that others had the cores while several threads were timed.

    "" where fewer than half of the processes are disturbed: `disturbance_sentence` tells of those.
    """
    timed, disturbed = _timed_processes(records)
    if not disturbed or 2 * len(disturbed) < len(timed):
        return ""
    threads = max(record.threads for record in records)
    return (
        f"The machine was busy: other processes had {_share(disturbed):.0%} of the cores while {threads} threads were "
        f"timed by the wall, and {len(disturbed)} of {text.count_noun(len(timed), 'process')} do not count. Run it "
        "again when the machine is quiet, or with --threads 1, whose clock leaves other processes out."
    )


def disturbance_sentence(records: Records) -> str:
    """Return the sentence that some processes, fewer than half, do not count, since others had the cores; else ""."""
    timed, disturbed = _timed_processes(records)
    if not disturbed or 2 * len(disturbed) >= len(timed):
        return ""
    return (
        f"Other processes had {_share(disturbed):.0%} of the cores in {len(disturbed)} of "
        f"{text.count_noun(len(timed), 'process')}, which {'does' if len(disturbed) == 1 else 'do'} not count."
    )


def _timed_processes(records: Records) -> tuple[list[TimeRow], list[TimeRow]]:
    """Return the rows of processes that were timed, and those among them that others disturbed."""
    timed = [row for record in records_of(records, Time) for row in record.modes.values() if row.status == "ok"]
    timed = [row for row in timed if row.blocks]
    return timed, [row for row in timed if is_disturbed(row)]


def _share(rows: Sequence[TimeRow]) -> float:
    """Return the share of the cores that others had, the median of some processes."""
    return median(row.neighbours or 0.0 for row in rows)


def more_processes(cell: Evidence, records: Records) -> str:
    """Return what more processes would tell and cost, on several threads and where that is not enough; else "".

    The interval narrows with the root of the number of processes.
    """
    ratios = {mode: cell.ratio(mode, cell.base, steady) for mode in cell.static_modes}
    open_ones = [ratio for ratio in ratios.values() if ratio and ratio.bounded and ratio.low <= 1 <= ratio.high]
    if cell.threads == 1 or not open_ones:
        return ""
    now = min(len(cell.of(mode)) for mode in cell.modes)
    wide = max(log(ratio.high / ratio.low) for ratio in open_ones) / 2
    needed = ceil(now * (wide / log1p(SMALLEST_EFFECT)) ** 2)
    if needed <= now:
        return f"{CANNOT_TELL} whether a mode is faster than {cell.base} at all"
    spent = [_process_seconds(record) for record in records_of(records, Time) if record.cache != "cold"]
    cost = fsum(spent) / len(spent) * (needed - now) * len(cell.modes)
    return (
        f"{CANNOT_TELL} whether a mode is faster than {cell.base}; --processes {needed} would show a difference of "
        f"{SMALLEST_EFFECT:.0%}, in about {text.seconds(cost)} more"
    )


def _process_seconds(record: Time) -> float:
    """Return about how many seconds a process took: its start, its first calls, and its blocks."""
    rows = record.modes.values()
    blocks = fsum(row.calls_per_block * fsum((*row.warmup, *row.blocks)) for row in rows)
    return (record.startup or 0.0) + blocks + fsum(fsum(first_run(row)) for row in rows)
