"""Modes to try after a first look at a PyTorch step: places to compile at, and remedies for what Dynamo has told.

A trial is a mode like any other: its word runs behind the gate, and its change says what a user writes in their code.
What Dynamo's words ask for is a rule of `RULES`: a pattern in a reason of a compilation or a graph break, and the
keywords that answer it.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compare.engines.mode import ModeTrial
from compare.engines.step import Function
from compare.engines.torch.placement import MODEL, OPTIMIZER, places_of
from compare.engines.words import text
from compare.records.cells import Compilations, CompiledRow
from compare.records.record import Records, records_of
from compare.text import join_words

MOST = 5
"""The largest number of trials: each one compiles, in about a minute."""
PLACES, VARYING = "places", "varying"
"""The facts of a first look: places of the function as `Block 12`, and axes of arguments that vary as `x 0`."""

Keywords = Mapping[str, Any]


@dataclass(frozen=True)
class RemedyRule:
    """What Dynamo says where a remedy may help, the name of the remedy, and its keywords."""

    name: str
    said: re.Pattern[str]
    keywords: Keywords


RULES = (
    RemedyRule("tensor-lr", re.compile(r"param_groups\[\d+\]\['lr'\]"), {"tensor_lr": True}),
    RemedyRule(
        "free-numbers",
        re.compile(r"no longer (?!.*param_groups).* == -?[\d.]"),
        {"config": {"specialize_float": False, "allow_unspec_int_on_nn_module": True}},
    ),
    RemedyRule("scalars", re.compile(r"Tensor\.item\(\)"), {"config": {"capture_scalar_outputs": True}}),
    RemedyRule(
        "free-shapes",
        re.compile(r"Dynamic shape operator"),
        {"config": {"capture_dynamic_output_shape_ops": True, "capture_scalar_outputs": True}},
    ),
)
RECOMPILES = re.compile(r"size mismatch at index")
"""What Dynamo says where a size has changed."""


def facts(function: Function, calls: Sequence[tuple[Any, ...]]) -> dict[str, list[str]]:
    """Return what `trials` reads of a function: its places, and the axes of its arguments whose sizes vary."""
    places = {name: len(holders) for name, holders in places_of(function, calls).items()}
    varying = [f"{name} {axis}" for name, axes in varying_axes(function, calls).items() for axis in axes]
    written = {PLACES: [f"{name} {number}" for name, number in places.items()], VARYING: varying}
    return {fact: words for fact, words in written.items() if words}


def varying_axes(function: Function, calls: Sequence[tuple[Any, ...]]) -> dict[str, list[int]]:
    """Return the axes of each argument, a tensor, whose sizes differ among calls, by its parameter."""
    import torch

    try:
        parameters = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return {}
    varying: dict[str, list[int]] = {}
    for name, *values in zip(parameters, *calls, strict=False):
        if all(isinstance(value, torch.Tensor) for value in values) and len({value.dim() for value in values}) == 1:
            sizes = zip(*(value.shape for value in values), strict=True)
            varying[name] = [axis for axis, each in enumerate(sizes) if len({*each}) > 1]
    return {name: axes for name, axes in varying.items() if axes}


def trials(records: Records, facts: Mapping[str, Any], *, remedies: bool) -> list[ModeTrial]:
    """Return the modes to try by a first look: the places of a function, and what its records ask for."""
    places, varying = _counts(facts.get(PLACES)), _axes(facts.get(VARYING))
    compiled = [
        row for record in records_of(records, Compilations) for mode, row in record.modes.items() if mode != record.base
    ]
    asked = dict([*(_remedies(compiled, varying) if remedies else ()), *_placements(places)])
    made = [ModeTrial(name, text("compile", keywords), change(keywords, places)) for name, keywords in asked.items()]
    return made[:MOST]


def _counts(written: Sequence[str] | None) -> dict[str, int]:
    return {name: int(number) for name, _, number in (word.rpartition(" ") for word in written or ())}


def _axes(written: Sequence[str] | None) -> dict[str, list[int]]:
    axes: dict[str, list[int]] = {}
    for name, _, axis in (word.rpartition(" ") for word in written or ()):
        axes.setdefault(name, []).append(int(axis))
    return axes


def _placements(places: Mapping[str, int]) -> Iterator[tuple[str, Keywords]]:
    """Yield places, alone and with the optimizer: the outermost class of blocks, the model, and what blocks hold."""
    outermost, inner = [name for name in places if name not in (MODEL, OPTIMIZER)][:1], list(places)
    for name in dict.fromkeys([*outermost, MODEL, *inner]):
        if name in places and name != OPTIMIZER:
            yield name, {"where": name}
            if OPTIMIZER in places:
                yield f"{name}-optimizer", {"where": (name, OPTIMIZER)}


def _remedies(rows: Sequence[CompiledRow], varying: Mapping[str, list[int]]) -> Iterator[tuple[str, Keywords]]:
    """Yield each remedy that a reason of a compilation or of a graph break asks for."""
    said = [*(made.reason for row in rows for made in row.made), *(reason for row in rows for reason in row.breaks)]
    if any(RECOMPILES.search(reason) for reason in said):
        yield ("marked", {"mark_dynamic": varying}) if varying else ("dynamic", {"dynamic": True})
    for rule in RULES:
        if any(rule.said.search(reason.partition("\n")[0]) for reason in said):
            yield rule.name, rule.keywords


# What a user changes --------------------------------------------------------------------------------------------------


def change(options: Keywords, places: Mapping[str, int]) -> str:
    """Return what a user changes in their code for the keywords of a mode, as a command without a full stop."""
    return "; ".join(_changes(options, places)) or "compile the step"


def _changes(options: Keywords, places: Mapping[str, int]) -> Iterator[str]:
    where = options.get("where", ())
    for name in (where,) if isinstance(where, str) else where:
        yield _place(name, places.get(name, 1))
    marks = [f"mark_dynamic({name}, {axis})" for name, axes in options.get("mark_dynamic", {}).items() for axis in axes]
    if marks:
        yield f"mark the axes that vary: {join_words(marks)}, of torch._dynamo"
    if options.get("dynamic"):
        yield "compile for sizes that vary: torch.compile(..., dynamic=True)"
    if options.get("tensor_lr"):
        yield "give the optimizer its rate as a tensor: lr=torch.tensor(...)"
    for name, value in options.get("config", {}).items():
        yield f"torch._dynamo.config.{name} = {value!r}"


def _place(name: str, number: int) -> str:
    if name == OPTIMIZER:
        return "compile the optimizer's step: optimizer.step = torch.compile(optimizer.step)"
    if name == MODEL:
        return "compile the model by itself: model.compile()"
    return f"compile the {number} {name}s by themselves: module.compile() of each"
