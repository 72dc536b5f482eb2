"""The shape policies over the calls of a function: how often each compiles, why, and which compiles least."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator, Mapping, Sequence
from math import inf
from typing import Any

from msgspec.structs import replace

import static
from compare.claims.base import SMALLEST_EFFECT
from compare.claims.evidence import cells, steady
from compare.engines.cases import signature
from compare.engines.graphduel.functions import transformed
from compare.engines.graphduel.steps import STATIC
from compare.errors import is_users
from compare.own.claims import ratio_of
from compare.records.cells import Time
from compare.records.job import Job
from compare.records.own import PolicyCompile, PolicyCount, ShapePolicies
from compare.records.record import Records, of
from compare.stats import Interval
from compare.words import text
from compare.workloads.base import Case
from graphs.errors import ControlFlowError
from static.call.jit import LIMIT

DEFAULT = "auto"
EXACT = "exact"
"""`auto` is exact for as many shapes as it keeps, and no more are looked at: its row is that of both."""

FIRST = "first call"
"""The reason of `static.jit` for the compile that every function needs."""
MOST_SIZES = 12
"""Sizes of one axis that a row names."""


def look(what: Job, case: Case) -> ShapePolicies | None:
    """The record of the policies, each over the calls that are of a new kind; None where all calls are alike."""
    first: dict[Any, int] = {}
    for index, example in enumerate(case.examples):
        first.setdefault(signature(example), index)
    if len(first) == 1:
        return None
    calls = list(first.values())[:LIMIT]
    counts = {options["shapes"]: counted(case, calls, options) for options in _asked(case)}
    usual = counts[DEFAULT]
    rows = {EXACT: replace(usual, options=usual.options.replace(DEFAULT, EXACT)), **counts}
    return ShapePolicies(**what.head, shapes=len(calls), left_out=len(first) - len(calls), policies=rows)


def _asked(case: Case) -> Iterator[dict[str, Any]]:
    """The options of `static.jit` for each policy; those that pad need the names of the axes that vary.

    Where one axis varies, its largest size is what `pad` pads to.
    """
    yield {"shapes": DEFAULT}
    if case.dims is None:
        yield {"shapes": "symbolic"}
        return
    dims = {"dims": case.dims}
    names = {name for axes in case.dims for name in axes or () if name}
    yield {"shapes": "symbolic", **dims}
    yield {"shapes": "bucket", **dims}
    yield {"shapes": "pad", **dims, **({"buckets": (max(case.lengths),)} if len(names) == 1 else {})}


def counted(case: Case, calls: Sequence[int], options: Mapping[str, Any]) -> PolicyCount:
    """What these options compile over the calls. Where Python decides on values, its control flow is converted."""
    if not case.branches:
        plain = _run(case, calls, options)
        if not (plain.reason or "").startswith(ControlFlowError.__name__):
            return plain
    return _run(case, calls, {**options, "convert": True})


def _run(case: Case, calls: Sequence[int], options: Mapping[str, Any]) -> PolicyCount:
    jitted = static.jit(transformed(static, case.loss, case.argnum), **options)
    row = PolicyCount("ok", None, _written(case, options), [])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what the limit of executables says, the count says as well
            for index in calls:
                jitted(case.params, *case.examples[index])
                row.compiles += [PolicyCompile(index + 1, why) for why in jitted.stats.reasons[len(row.compiles) :]]
    except Exception as error:  # noqa: BLE001  (whatever a policy raises is what its row says)
        return replace(row, status="unsupported", reason=f"{type(error).__name__}: {error}", compiles=[])
    useful, computed = jitted.stats.useful, jitted.stats.computed
    return replace(row, padding=computed / useful if useful else 1.0)


def _written(case: Case, options: Mapping[str, Any]) -> str:
    """The options as the user writes them: `dims` without an entry for the parameters that the function has not.

    A function made of a module has other arguments than the user's, so its `dims` are left out.
    """
    shown = dict(options)
    if "dims" in shown:
        has_parameters = not (isinstance(case.params, tuple) and not case.params)
        shown["dims"] = shown["dims"] if has_parameters else shown["dims"][1:]
        if not is_users(getattr(inspect.unwrap(case.loss), "__code__", look.__code__).co_filename):
            del shown["dims"]
    return ", ".join(f"{name}={value!r}" for name, value in shown.items())


def cheapest(record: ShapePolicies) -> str | None:
    """The policy that compiles least; of equals the one that pads less, then the one that needs least to be said."""
    ranks = {name: (len(row.compiles), row.padding) for name, row in record.policies.items() if row.status == "ok"}
    return min((DEFAULT, *ranks), key=lambda name: ranks.get(name, (inf, inf))) if ranks else None


def sentence(records: Records) -> str:
    """Which policy compiles least over these inputs; "" where all calls are alike or no graph holds the function."""
    for record in of(records, ShapePolicies):
        best = cheapest(record)
        if best is not None:
            return _advice(records, record, best)
    return ""


def _advice(records: Records, record: ShapePolicies, best: str) -> str:
    row, usual = record.policies[best], record.policies[DEFAULT]
    shapes = f"{'the first ' if record.left_out else ''}{text.counted(record.shapes, 'shape')}"
    needs = text.counted(len(row.compiles), "compile")
    if usual.status == "ok" and len(row.compiles) == len(usual.compiles):
        kinds = shapes if "pad" in record.policies else shapes.replace("shape", "kind")
        return f"No shape policy saves a compile: {kinds} of calls need {needs}."
    instead = f" instead of {len(usual.compiles):,}" if usual.status == "ok" else ""
    padding = f"; padding computes {text.ratio(row.padding)} the elements" if row.padding > 1 else ""
    side, timed = _timed(records, best)
    use = f"{row.options} compiles least" if side == "above" else f"Use {row.options}"
    return f"{use}: {needs}{instead} for {shapes}{padding}{timed}."


def why(row: PolicyCount) -> str:
    """Why a policy compiles: `x, dim 0: 3, 5, 4`, all sizes of an axis in their order; or why it is not possible."""
    if row.status != "ok":
        return row.reason or row.status
    seen: dict[str, list[str]] = {}
    for compilation in row.compiles[1:]:
        label, _, change = compilation.reason.partition(" was ")
        values = seen.setdefault(label.replace(": ", ", "), [])
        values += [value for value in change.split(", now ") if value not in values]
    return "; ".join(f"{label}: {_few(values)}" if values != [""] else label for label, values in seen.items()) or FIRST


def _few(values: Sequence[str]) -> str:
    return ", ".join([*values[:MOST_SIZES], *(["…"] if len(values) > MOST_SIZES else [])])


def _timed(records: Records, best: str) -> tuple[str, str]:
    """How a call compares with one of static-exact, and that in words; both empty where one of them was not timed."""
    ratio_to_exact = beside_exact(records, best)
    if ratio_to_exact is None:
        return "", ""
    side, ratio = (
        ratio_to_exact.side(SMALLEST_EFFECT),
        f"a call takes {text.ratio(ratio_to_exact.estimate)} as long as with exact shapes",
    )
    words = {"tie": "a call is as fast", "above": f"but {ratio}", "below": ratio}
    return side, f"; {words.get(side, 'this run leaves open whether a call is as fast')}"


def beside_exact(records: Records, policy: str) -> Interval | None:
    """The steady seconds of a call under a policy over those of static-exact; None where one was not timed."""
    timed = cells(records, Time)
    return ratio_of(timed[0], STATIC + policy, STATIC + EXACT, steady) if timed else None
