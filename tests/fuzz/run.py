"""Which ways each program is run in, and what comes of it: agreement, a refusal that is allowed, or a failure."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dynamic.batching.batch import SCHEDULES
from graphs.errors import (
    ControlFlowError,
    GraphError,
    InplaceError,
    NotDifferentiableError,
    ShapeError,
    VerificationError,
)
from static.native.target import NativeError
from tests.fuzz import graphs, tapes
from tests.fuzz.cases import Case, case_of

WAYS = tapes.WAYS | graphs.WAYS
NAMES = tuple(WAYS)
AT_ONCE = 5  # ways for each program: all of them come up equally often

# What docs/limits.md says that a way may refuse.
_SIZES = (ShapeError, ControlFlowError)
MAY_REFUSE: dict[str, tuple[type[GraphError], ...]] = {
    **{f"batched_{name}": (ControlFlowError, InplaceError) for name in SCHEDULES},
    "budget": (GraphError,),
    "second_order": (NotDifferentiableError,),
    "directional": (NotDifferentiableError,),
    "symbolic": _SIZES,
    "native": (NativeError,),  # where llvmlite is not installed, or the processor is no match
    "native_threads": (NativeError,),
    "native_symbolic": (*_SIZES, NativeError),
    "jit_exact": (NotDifferentiableError,),
    **{f"jit_{shapes}": (*_SIZES, NotDifferentiableError) for shapes in ("symbolic", "bucket", "pad")},
}


class Failure(NamedTuple):
    """A program and a way that disagree, or an error that is none of ours."""

    seed: int
    way: str
    error: BaseException

    def __str__(self) -> str:
        told = " ".join(str(self.error).split())
        return f"seed {self.seed}, {self.way}: {type(self.error).__name__}: {told[:300]}"


def ways_of(seed: int, count: int = AT_ONCE) -> list[str]:
    """The ways for this seed: each comes up once in every few seeds that follow each other, in a random order."""
    turns = len(NAMES) // count
    order = np.random.default_rng(seed // turns).permutation(NAMES)
    return [str(name) for name in order[seed % turns :: turns]]


def outcome(case: Case, way: str) -> str:
    """ "agrees", "refused" where that is allowed, or "refused alike" where the program breaks a rule.

    Raises whatever else happens.
    """
    case.random = np.random.default_rng((case.program.seed, NAMES.index(way)))  # whatever ran before
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("error")
        return _alike(case, way) if case.refusal else _agrees(case, way)


def _agrees(case: Case, way: str) -> str:
    try:
        WAYS[way](case)
    except VerificationError:
        raise
    except MAY_REFUSE.get(way, ()):
        return "refused"
    return "agrees"


def _alike(case: Case, way: str) -> str:
    assert case.refusal is not None
    if way == "python_tape":
        WAYS[way](case)
        return "refused alike"
    try:
        WAYS[way](case)
    except case.refusal:
        return "refused alike"
    except MAY_REFUSE.get(way, ()):
        return "refused"
    if way.endswith("symbolic") or way.startswith("jit"):
        return "refused alike"  # as these compare refusals themselves
    raise AssertionError(f"gives a result, and not {case.refusal.__name__}")


def attempt(seed: int, ways: Sequence[str] | None = None) -> tuple[Counter[tuple[str, str]], list[Failure]]:
    """Run one program; how often each way came to each outcome, and what failed."""
    counts: Counter[tuple[str, str]] = Counter()
    failures: list[Failure] = []
    try:
        case = case_of(seed)
    except Exception as error:  # noqa: BLE001  (what draws must not fail either)
        return counts, [Failure(seed, "drawing", error)]
    for way in ways_of(seed) if ways is None else ways:
        try:
            counts[way, outcome(case, way)] += 1
        except Exception as error:  # noqa: BLE001  (any error is what is looked for)
            counts[way, "FAILED"] += 1
            failures.append(Failure(seed, way, error))
    return counts, failures
