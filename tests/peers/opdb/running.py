"""Many ops of the database, side by side in processes; each op is judged by itself."""

from __future__ import annotations

import multiprocessing
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Any, NamedTuple

import torch

from tests.peers.opdb import samples
from tests.peers.opdb.adjudicated import kind_of
from tests.peers.opdb.comparing import MISSING, OUTSIDE, SAME, judged

ADJUDICATED = "adjudicated"


class Asked(NamedTuple):
    """What is run: the samples, one in `every` of the many more of `reference`, or the mistakes; with these dtypes.

    The first sample has the layout at `shift`: four runs have every sample in every layout.
    """

    errors: bool = False
    reference: bool = False
    every: int = 1
    dtypes: tuple[str, ...] = tuple(str(dtype).removeprefix("torch.") for dtype in samples.DTYPES)
    shift: int = 0


class Row(NamedTuple):
    """An op: how many calls came to each verdict, the lines of those that differ, the kinds of those adjudicated."""

    name: str
    counts: Counter[str]
    lines: tuple[tuple[str, str], ...]
    kinds: Counter[str]


def row_of(op: Any, asked: Asked, space: Any) -> Row:
    """An op on all that is asked."""
    counts: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    lines = []
    dtypes = tuple(getattr(torch, name) for name in asked.dtypes)
    _, reference, every, _, shift = asked
    source = samples.mistakes(op) if asked.errors else samples.calls(op, dtypes, reference, every, shift)
    for call in source:
        verdict = judged(call, space)
        kind = kind_of(verdict)
        counts[ADJUDICATED if kind else verdict.name] += 1
        if kind:
            kinds[kind.reason] += 1
        elif verdict.name not in (SAME, OUTSIDE, MISSING):
            lines.append((verdict.name, str(verdict)))
        elif verdict.name == MISSING and not any(name == MISSING and call.way.name in line for name, line in lines):
            lines.append((MISSING, str(verdict)))
    name = f"{op.name} {op.variant_test_name}".strip()
    return Row(name, counts, tuple(lines), kinds)


def rows(names: list[str] | None, asked: Asked, jobs: int, part: tuple[int, int] = (0, 1)) -> Iterator[Row]:
    """A row for every op of some names, or for all, in the order of the database.

    `part` is (which, of how many): each takes one op in so many.
    """
    numbers = [number for number, op in enumerate(samples.op_db) if op in samples.infos(names)][part[0] :: part[1]]
    if jobs == 1:
        yield from map(_row_at, ((number, asked) for number in numbers))
        return
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        yield from pool.map(_row_at, ((number, asked) for number in numbers), chunksize=4)


def _row_at(task: tuple[int, Asked]) -> Row:
    import dynamic

    torch.set_num_threads(1)
    number, asked = task
    return row_of(samples.op_db[number], asked, dynamic)


def totals(found: Iterable[Row]) -> Counter[str]:
    """The verdicts of all rows."""
    total: Counter[str] = Counter()
    for row in found:
        total.update(row.counts)
    return total
