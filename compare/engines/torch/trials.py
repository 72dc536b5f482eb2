"""Modes to try after a first look at a PyTorch step: places to compile at, and remedies for what Dynamo has told.

A trial is a mode like any other: its word runs behind the gate, and its change says what a user writes in their code.
What Dynamo's words ask for is a rule of `RULES`: a pattern in a reason of a compilation or a graph break, and the
keywords that answer it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compare.engines.base import Trial
from compare.engines.words import text
from compare.records.cells import Compilations, CompiledRow
from compare.records.record import Records, records_of

MOST = 6
"""The largest number of trials: each one compiles, in about a minute."""

Keywords = Mapping[str, Any]


@dataclass(frozen=True)
class Rule:
    """What Dynamo says where a remedy may help, the name of the remedy, and its keywords, from the match."""

    name: str
    said: re.Pattern[str]
    keywords: Callable[[re.Match[str]], Keywords]


def _setting(**settings: Any) -> Callable[[re.Match[str]], Keywords]:
    return lambda _: {"config": settings}


RULES = (
    Rule(
        "mark-{0}",
        re.compile(r"tensor '(\w+)' size mismatch at index (\d+)"),
        lambda met: {"mark_dynamic": {met[1]: int(met[2])}},
    ),
    Rule("dynamic", re.compile(r"size mismatch at index"), lambda _: {"dynamic": True}),
    Rule("tensor-lr", re.compile(r"param_groups\[\d+\]\['lr'\]"), lambda _: {"tensor_lr": True}),
    Rule(
        "free-numbers",
        re.compile(r"no longer (?!.*param_groups).* == -?[\d.]"),
        _setting(specialize_float=False, allow_unspec_int_on_nn_module=True, assume_static_by_default=False),
    ),
    Rule("scalars", re.compile(r"Tensor\.item\(\)|capture_scalar_outputs"), _setting(capture_scalar_outputs=True)),
    Rule(
        "free-shapes",
        re.compile(r"Dynamic shape operator"),
        _setting(capture_dynamic_output_shape_ops=True, capture_scalar_outputs=True),
    ),
    Rule("autograd", re.compile(r"Tensor\.backward\(\)"), lambda _: {"compiled_autograd": True}),
)


def trials(records: Records, places: Mapping[str, int], *, remedies: bool) -> list[Trial]:
    """Return the modes to try: places of the function, each with its number, and what records of a first look ask for."""
    compiled = [
        row for record in records_of(records, Compilations) for mode, row in record.modes.items() if mode != record.base
    ]
    asked = dict([*(_remedies(compiled) if remedies else ()), *_placements(places)])
    made = [Trial(name, text("compile", keywords), change(keywords, places)) for name, keywords in asked.items()]
    return made[:MOST]


def _placements(places: Mapping[str, int]) -> Iterator[tuple[str, Keywords]]:
    """Yield the model, each class of repeated blocks, and each of these with the optimizer."""
    for name in places:
        if name != "optimizer":
            yield name, {"where": name}
            if "optimizer" in places:
                yield f"{name}-optimizer", {"where": (name, "optimizer")}


def _remedies(rows: Sequence[CompiledRow]) -> Iterator[tuple[str, Keywords]]:
    """Yield each remedy that a reason of a compilation or of a graph break asks for."""
    said = [*(made.reason for row in rows for made in row.made), *(reason for row in rows for reason in row.breaks)]
    for rule in RULES:
        for reason in said:
            if met := rule.said.search(reason.partition("\n")[0]):
                yield rule.name.format(*met.groups()), rule.keywords(met)


# What a user changes --------------------------------------------------------------------------------------------------


def change(options: Keywords, places: Mapping[str, int]) -> str:
    """Return what a user changes in their code for the keywords of a mode, as a command without a full stop."""
    return "; ".join(_changes(options, places)) or "compile the step"


def _changes(options: Keywords, places: Mapping[str, int]) -> Iterator[str]:
    where = options.get("where", ())
    for name in (where,) if isinstance(where, str) else where:
        yield _place(name, places.get(name, 1))
    for name, axes in options.get("mark_dynamic", {}).items():
        for axis in axes if isinstance(axes, (list, tuple)) else (axes,):
            yield f"mark axis {axis} of {name} as dynamic: torch._dynamo.mark_dynamic({name}, {axis})"
    if options.get("dynamic"):
        yield "compile for sizes that vary: torch.compile(..., dynamic=True)"
    if options.get("tensor_lr"):
        yield "give the optimizer its rate as a tensor: lr=torch.tensor(...)"
    if options.get("compiled_autograd"):
        yield "capture the backward pass too: torch._dynamo.config.compiled_autograd = True"
    for name, value in options.get("config", {}).items():
        yield f"torch._dynamo.config.{name} = {value!r}"


def _place(name: str, number: int) -> str:
    if name == "optimizer":
        return "compile the optimizer's step: optimizer.step = torch.compile(optimizer.step)"
    if name == "model":
        return "compile the model by itself: model.compile()"
    return f"compile the {number} {name}s by themselves: module.compile() of each"
