"""Modes to try after a first look at a PyTorch step: places to compile at, and remedies for what was seen.

A trial is a mode like any other: its word runs behind the gate, and its change says what a user writes in their code.
What Dynamo's words ask for is a rule of `RULES`. The graphs that a remedy leaves are counted before any kernel is made,
so that none is tried which leaves as many.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from compare.engines import words
from compare.engines.mode import CONFIG, ModeTrial
from compare.engines.step import Function
from compare.engines.torch.dynamo import CARRIED
from compare.engines.torch.edits import (
    CHECKPOINT,
    MARKS,
    MODEL,
    NUMBERS,
    OPTIMIZER,
    PADS,
    RATES,
    WHERE,
    WITHOUT,
    places_of,
)
from compare.records.cells import Compilations, CompiledRow, Memory
from compare.records.record import Records, records_of
from compare.text import join_words

MOST, MOST_PLACES = 2, 5
"""The largest number of remedies, and of places alone, that are tried: each one compiles, in about a minute."""
PLACES, VARYING, VARIED, HELD, WORTH, MASKED = "places", "varying", "numbers", "held", "worth", "masked"
"""The facts of a first look: places of the function as `Block 12`, axes of arguments that vary as `x 0`, arguments that
are numbers and vary, the bytes of parameters and arguments, what is worth a try as `NAME=WORD`, the best first, and
axes that vary with those of a mask as `x 1 48`, with the largest size."""
MASK = "mask"
"""The part of a parameter's name that says that the argument is a mask, where it is not one of bools."""
DEAR_GUARDS, DEAR_MEMORY = 0.1, 4
"""The share of a call that guards take, and the peak ÷ the bytes of parameters and arguments, from which on a remedy is
tried."""
LEAST_MEMORY = 2**20
"""The bytes of a peak below which nobody needs to spare memory."""
SOURCES = "dynamic_sources"
"""The setting that lists values of a program, with commas, which compiled code takes as variables."""
FAILED, SKIP = re.compile(r"no longer|mismatch"), "skip_guard_eval_unsafe"
"""What Dynamo says where a guard fails, and the argument of a stance that skips guards."""
PATIENCE, LEAST_PATIENCE = 3.0, 15.0
"""The seconds that the graphs of a change may take ÷ those of the step as it is, and the least seconds that they may
take: what takes longer is not tried."""
SHORTER = 0.7
"""The ratio of seconds of making graphs below which a place is worth a try that leaves as many graphs."""

Keywords = Mapping[str, Any]
Calls = Sequence[tuple[Any, ...]]


@dataclass(frozen=True)
class FirstLook:
    """What a first look tells of a function and its calls, by the names of places and parameters."""

    places: Mapping[str, int] = field(default_factory=dict)
    varying: Mapping[str, list[int]] = field(default_factory=dict)
    numbers: Sequence[str] = ()
    held: int = 0
    inputs_at: str = ""
    masked: Mapping[str, Mapping[int, int]] = field(default_factory=dict)

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> FirstLook:
        """Return what the settings of a first look say."""
        places = {name: int(number) for name, _, number in (word.rpartition(" ") for word in facts.get(PLACES, ()))}
        axes: dict[str, list[int]] = {}
        for name, _, axis in (word.rpartition(" ") for word in facts.get(VARYING, ())):
            axes.setdefault(name, []).append(int(axis))
        masked: dict[str, dict[int, int]] = {}
        for name, axis, size in (word.rsplit(" ", 2) for word in facts.get(MASKED, ())):
            masked.setdefault(name, {})[int(axis)] = int(size)
        held = int(next(iter(facts.get(HELD, ())), 0))
        numbers, at = tuple(facts.get(VARIED, ())), str(facts.get("inputs_at", ""))
        return cls(places, axes, numbers, held, at, masked)

    @property
    def blocks(self) -> list[str]:
        """Return the classes of blocks that repeat, the outermost first."""
        return [name for name in self.places if name not in (MODEL, OPTIMIZER)]


# What is seen ---------------------------------------------------------------------------------------------------------


def facts(function: Function, calls: Calls) -> dict[str, list[str]]:
    """Return what `FirstLook` reads of a function: its places, and the axes and numbers of its arguments that vary."""
    import torch

    places = places_of(function, calls)
    tensors = [value for value in calls[0] if isinstance(value, torch.Tensor)] if calls else []
    tensors += [parameter for module in places.get(MODEL, ()) for parameter in module.parameters()]
    varying = [f"{name} {axis}" for name, axes in varying_axes(function, calls).items() for axis in axes]
    written = {
        PLACES: [f"{name} {len(holders)}" for name, holders in places.items()],
        VARYING: varying,
        VARIED: varying_numbers(function, calls),
        HELD: [str(sum(tensor.nbytes for tensor in tensors))],
        MASKED: [
            f"{name} {axis} {size}"
            for name, axes in masked_axes(function, calls).items()
            for axis, size in axes.items()
        ],
    }
    return {fact: said for fact, said in written.items() if said}


def _arguments(function: Function, calls: Calls) -> Iterator[tuple[str, Sequence[Any]]]:
    """Yield each parameter with its values over the calls."""
    try:
        parameters = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return
    for name, *values in zip(parameters, *calls, strict=False):
        yield name, values


def varying_axes(function: Function, calls: Calls) -> dict[str, list[int]]:
    """Return the axes of each argument, a tensor, whose sizes differ among calls, by its parameter."""
    import torch

    varying: dict[str, list[int]] = {}
    for name, values in _arguments(function, calls):
        if all(isinstance(value, torch.Tensor) for value in values) and len({value.dim() for value in values}) == 1:
            sizes = zip(*(value.shape for value in values), strict=True)
            varying[name] = [axis for axis, each in enumerate(sizes) if len({*each}) > 1]
    return {name: axes for name, axes in varying.items() if axes}


def masked_axes(function: Function, calls: Calls) -> dict[str, dict[int, int]]:
    """Return the axes whose sizes are those of a mask's axis in every call, each with its largest size, by parameter.

    A mask is a tensor of bools, or has the word in its name. {} where no axis of a mask varies.
    """
    import torch

    varying, values = varying_axes(function, calls), dict(_arguments(function, calls))
    sizes = {
        name: {axis: tuple(x.shape[axis] for x in values[name]) for axis in axes} for name, axes in varying.items()
    }
    masks = [name for name in varying if values[name][0].dtype is torch.bool or MASK in name]
    mask_sizes = {each for name in masks for each in sizes[name].values()}
    alike = {
        name: {axis: max(each) for axis, each in axes.items() if each in mask_sizes} for name, axes in sizes.items()
    }
    return {name: axes for name, axes in alike.items() if axes} if {*alike} - {*masks} else {}


def varying_numbers(function: Function, calls: Calls) -> list[str]:
    """Return the parameters whose arguments are Python's numbers, and differ among calls."""
    return [
        name
        for name, values in _arguments(function, calls)
        if all(type(value) in (int, float) for value in values) and len({*values}) > 1
    ]


# What is asked for ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RemedyRule:
    """What Dynamo says where a remedy may help, the name of the remedy, and its keywords.

    `keywords` makes them of the match and of a first look; {} where the remedy does not apply.
    """

    name: str
    said: re.Pattern[str]
    keywords: Callable[[re.Match[str], FirstLook], Keywords]


def _always(keywords: Keywords) -> Callable[[re.Match[str], FirstLook], Keywords]:
    return lambda _match, _found: keywords


_LOCAL = re.compile(r"^(?!G\[)(\w+)")
"""Matches the local variable at the start of a source in Dynamo's words."""
RULES = (
    RemedyRule(
        "marked",
        re.compile(r"size mismatch at index"),
        lambda _, look: {MARKS: dict(look.varying)} if look.varying else {},
    ),
    RemedyRule(
        "padded",
        re.compile(r"size mismatch at index"),
        lambda _, look: {PADS: {name: dict(axes) for name, axes in look.masked.items()}} if look.masked else {},
    ),
    RemedyRule(
        "dynamic",
        re.compile(r"size mismatch at index"),
        lambda _, look: {} if look.varying else {"dynamic": True},
    ),
    RemedyRule("tensor-lr", re.compile(r"param_groups\[\d+\]\['lr'\]"), _always({RATES: True})),
    RemedyRule(
        "tensor-numbers",
        re.compile(r"no longer (\w+) == -?[\d.]"),
        lambda match, look: {NUMBERS: list(look.numbers)} if match[1] in look.numbers else {},
    ),
    RemedyRule(
        "free-numbers",
        re.compile(rf"no longer (?!.*param_groups|{CARRIED})(.+) == -?[\d.]"),
        lambda match, look: {} if match[1] in look.numbers
        else {CONFIG: {"specialize_float": False, "allow_unspec_int_on_nn_module": True}},
    ),
    RemedyRule(
        "dynamic-numbers",
        re.compile(rf"no longer (?!.*param_groups|{CARRIED})(.+) == -?[\d.]"),
        lambda match, look: {} if match[1] in look.numbers
        else {CONFIG: {SOURCES: _LOCAL.sub(r"L['\1']", match[1])}},
    ),
    RemedyRule("scalars", re.compile(r"Tensor\.item\(\)"), _always({CONFIG: {"capture_scalar_outputs": True}})),
    RemedyRule(
        "free-shapes",
        re.compile(r"Dynamic shape operator"),
        _always({CONFIG: {"capture_dynamic_output_shape_ops": True, "capture_scalar_outputs": True}}),
    ),
    RemedyRule(
        "no-print",
        re.compile(r"\((\S+:\d+): (?:print|log|logger|logging|warnings)\b.*\(.*\)\)"),
        lambda match, _: {WITHOUT: [match[1]]},
    ),
    RemedyRule(
        "traced-backward", re.compile(r"Tensor\.backward\(\)"), _always({CONFIG: {"trace_autograd_ops": True}})
    ),
    RemedyRule("compiled-autograd", re.compile(r"Tensor\.backward\(\)"), _always({"compiled_autograd": True})),
)  # fmt: skip
SHOWN = {
    re.compile(r"Data-dependent branching \((\S+:\d+): (.*?):?\)$"): (
        "{} branches on a value ({}): write torch.where(test, a, b) for both values, or torch.cond for both calls"
    ),
}
"""What Dynamo says where a user must rewrite lines by hand, and what to write: shown, and never claimed."""


def candidates(said: Sequence[str], look: FirstLook) -> dict[str, Keywords]:
    """Return the remedies that reasons of compilations and of graph breaks ask for, by name."""
    asked: dict[str, Keywords] = {}
    for rule in RULES:
        for match in filter(None, (rule.said.search(reason.partition("\n")[0]) for reason in said)):
            asked[rule.name] = unite(asked.get(rule.name, {}), rule.keywords(match, look))
    return {name: keywords for name, keywords in asked.items() if keywords}


def unite(before: Keywords, more: Keywords) -> dict[str, Any]:
    """Return the keywords of two remedies as those of one: dicts and lists are joined."""
    both = dict(before)
    for name, value in more.items():
        had = before.get(name)
        if isinstance(had, dict):
            both[name] = unite(had, value)
        elif isinstance(had, str) and name == SOURCES:
            both[name] = ",".join(dict.fromkeys([*had.split(","), *value.split(",")]))
        elif isinstance(had, list):
            both[name] = list(dict.fromkeys([*had, *value]))
        else:
            both[name] = value
    return both


def by_hand(said: Sequence[str]) -> list[str]:
    """Return what a user must rewrite by hand for reasons of graph breaks, which nobody can try for them."""
    look = ((pattern.search(reason.partition("\n")[0]), words) for reason in said for pattern, words in SHOWN.items())
    return list(dict.fromkeys(words.format(*match.groups()) for match, words in look if match))


def placements(look: FirstLook) -> dict[str, Keywords]:
    """Return places, alone and with the optimizer: the outermost class of blocks, the model, and what blocks hold.

    Where there is no model, the optimizer stands by itself.
    """
    asked: dict[str, Keywords] = {}
    places = [name for name in look.places if name != OPTIMIZER]
    for name in dict.fromkeys([*look.blocks[:1], *({MODEL} & {*places}), *places]):
        asked[name] = {WHERE: name}
        if OPTIMIZER in look.places:
            asked[f"{name}-{OPTIMIZER}"] = {WHERE: (name, OPTIMIZER)}
    return asked or ({OPTIMIZER: {WHERE: OPTIMIZER}} if OPTIMIZER in look.places else {})


# What is worth a try --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class GraphCount:
    """The graphs of a step that were made without kernels: how many, their breaks, the seconds, and the reasons.

    `guards` is the share of a warm call that guards take, where none fails.
    """

    graphs: int
    breaks: int
    seconds: float
    said: Sequence[str] = ()
    guards: float = 0.0

    @property
    def pieces(self) -> int:
        """Return the number of graphs and of breaks."""
        return self.graphs + self.breaks

    def outdoes(self, made: GraphCount, *, place: bool = False) -> bool:
        """Return whether a count beside this one is worth no try: as many pieces, and for a place about the time."""
        return made.pieces >= self.pieces and not (place and made.seconds < SHORTER * self.seconds)


Worthless = Callable[[GraphCount], bool]
Count = Callable[[Keywords, Worthless, float], GraphCount | None]


def worth(look: FirstLook, count: Count) -> list[str]:
    """Return the remedies and places that leave fewer graphs and breaks, as `NAME=WORD`, the best first.

    Remedies that each leave fewer are counted together too. A place may take less time instead. Where guards are dear
    and none fails, they are skipped. `count` makes the graphs of a step with keywords, as long as they may be worth a
    try and for so many seconds at most, and returns None where that fails.
    """
    usual = count({}, never, math.inf)
    if usual is None:
        return []
    most = max(LEAST_PATIENCE, PATIENCE * usual.seconds)
    asked = {**candidates(usual.said, look), **placements(look)}
    ends = {name: partial(usual.outdoes, place=WHERE in keywords) for name, keywords in asked.items()}
    counted = {name: made for name, keywords in asked.items() if (made := count(keywords, ends[name], most))}
    fewer = {name: made for name, made in counted.items() if made.graphs > 0 and made.pieces < usual.pieces}
    fewer |= _shorter({name: made for name, made in counted.items() if WHERE in asked[name]}, usual, count)
    singles = [name for name in fewer if WHERE not in asked[name]]
    if len(singles) > 1:
        asked["together"] = {}
        for name in singles:
            asked["together"] = unite(asked["together"], asked[name])
        made = count(asked["together"], usual.outdoes, most)
        if made and made.pieces < min(fewer[name].pieces for name in singles):
            fewer["together"] = made
    best = sorted(fewer, key=lambda name: (fewer[name].pieces, WHERE in asked[name], fewer[name].seconds))
    if usual.guards > DEAR_GUARDS:
        best, asked["no-guards"] = [*best, "no-guards"], {"stance": {"stance": "default", SKIP: True}}
    return [f"{name}={words.text('compile', asked[name])}" for name in best]


def never(_: GraphCount) -> bool:
    """Return False: a count that goes to its end."""
    return False


def _shorter(places: Mapping[str, GraphCount], usual: GraphCount, count: Count) -> dict[str, GraphCount]:
    """Return the places whose graphs, without more breaks, are made in less time than those of the whole.

    The whole is counted again first, since the first compilation of a process loads the compiler.
    """
    able = {name: made for name, made in places.items() if made.graphs and made.breaks <= usual.breaks}
    shorter = {name: made for name, made in able.items() if made.seconds < SHORTER * usual.seconds}
    again = count({}, never, math.inf) if shorter else None
    least = min(usual.seconds, again.seconds if again else usual.seconds)
    return {name: made for name, made in shorter.items() if made.seconds < SHORTER * least}


def trials(records: Records, facts: Mapping[str, Any], *, remedies: bool) -> list[ModeTrial]:
    """Return the modes to try by a first look: the places of a function, or what its records ask for.

    Where graphs were counted, what leaves fewer is tried; else what the reasons in the records ask for.
    """
    look = FirstLook.of(facts)
    if remedies:
        counted = {name: words.parse(word)[1] for name, word in map(words.part, facts.get(WORTH, ()))}
        told = counted if WORTH in facts else candidates(_reasons(records), look)
        asked = {**dict(list(told.items())[:MOST]), **by_figures(records, look)}
    else:
        asked = dict(list(placements(look).items())[:MOST_PLACES])
    return [
        ModeTrial(name, words.text("compile", keywords), change(keywords, look)) for name, keywords in asked.items()
    ]


def _compiler_rows(records: Records) -> list[CompiledRow]:
    rows = ((record.base, record.modes) for record in records_of(records, Compilations))
    return [row for base, modes in rows for mode, row in modes.items() if mode != base]


def _reasons(records: Records) -> list[str]:
    """Return the reasons of compilations and of graph breaks of the modes that compile."""
    rows = _compiler_rows(records)
    return [*(made.reason for row in rows for made in row.made), *(reason for row in rows for reason in row.breaks)]


def by_figures(records: Records, look: FirstLook) -> dict[str, Keywords]:
    """Return the remedies for much memory beside parameters and arguments."""
    asked: dict[str, Keywords] = {}
    peaks = [
        row.peak for record in records_of(records, Memory) for mode, row in record.modes.items() if mode != record.base
    ]
    if look.held and max(peaks, default=0) > max(LEAST_MEMORY, DEAR_MEMORY * look.held):
        if look.blocks:
            asked["checkpoint"] = {CHECKPOINT: look.blocks[0]}
        asked["memory-budget"] = {CONFIG: {"activation_memory_budget": 0.5}}
    return asked


# What a user changes --------------------------------------------------------------------------------------------------


def change(options: Keywords, look: FirstLook) -> str:
    """Return what a user changes in their code for the keywords of a mode, as a command without a full stop."""
    return "; ".join(_changes(options, look)) or "compile the step"


def _changes(options: Keywords, look: FirstLook) -> Iterator[str]:
    where = options.get(WHERE, ())
    for name in (where,) if isinstance(where, str) else where:
        yield _place(name, look.places.get(name, 1))
    at = f" (inputs at {look.inputs_at})" if look.inputs_at else ""
    axes = [(name, axis) for name, each in options.get(MARKS, {}).items() for axis in each]
    if axes:
        said = join_words([f"axis {axis} of {name}" for name, axis in axes])
        calls = ", ".join(f"torch._dynamo.mark_dynamic({name}, {axis})" for name, axis in axes)
        yield f"mark {said} dynamic{at}: {calls}"
    if pads := options.get(PADS):
        said = join_words(
            [f"axis {axis} of {name} to {size}" for name, axes in pads.items() for axis, size in axes.items()]
        )
        yield f"pad {said}{at}, where the mask is false: torch.nn.functional.pad"
    if options.get("dynamic"):
        yield "compile for sizes that vary: torch.compile(..., dynamic=True)"
    if names := options.get(NUMBERS):
        yield f"give {join_words(names)} as a tensor{at}: " + ", ".join(f"torch.tensor({name})" for name in names)
    if options.get(RATES):
        yield "give the optimizer its rate as a tensor: lr=torch.tensor(...)"
    for line in options.get(WITHOUT, ()):
        yield f"take {line} out of the step, or call it outside"
    if name := options.get(CHECKPOINT):
        yield f"checkpoint each {name}: torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)"
    if options.get("compiled_autograd"):
        yield "set torch._dynamo.config.compiled_autograd = True"
    if "stance" in options:
        skipping = 'torch.compiler.set_stance("default", skip_guard_eval_unsafe=True)'
        yield f"skip guards after the first calls, if none can fail: {skipping}"
    for name, value in options.get(CONFIG, {}).items():
        yield f"set {OWNERS.get(name, 'torch._dynamo.config')}.{name} = {value!r}"


OWNERS = {"activation_memory_budget": "torch._functorch.config", SOURCES: "torch.compiler.config"}
"""The modules of settings that are not Dynamo's."""


def _place(name: str, number: int) -> str:
    if name == OPTIMIZER:
        return "compile the optimizer's step: optimizer.step = torch.compile(optimizer.step)"
    if name == MODEL:
        return "compile the model by itself: model = torch.compile(model)"
    return f"compile the {number} {name}s by themselves: module.compile() of each"
