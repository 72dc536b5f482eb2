"""The answer as text: whether to compile, a table of modes once warm and one of what comes before, and the reasons."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from compare.own.frameworks.asked import Asked
from compare.own.frameworks.modes import Mode, calls_of
from compare.own.show import aligned
from compare.records.framework_steps import FrameworkGate, FrameworkTime
from compare.stats import LEAST
from compare.words import text

WIDTH = 80
WARM = ("once warm", "a call", "÷ eager", "pays from call", "peak memory")
FIRST = ("first", "call", "with cache", "pass", "with cache", "compiles", "breaks")
MOST_REASONS = 4
FEW = f"an interval needs {LEAST} processes, as `graphduel compare --framework` starts them"


def plain(
    asked: Asked,
    gate: FrameworkGate,
    processes: Sequence[FrameworkTime],
    modes: Sequence[Mode],
    best: Mode | None,
    lost: Sequence[str],
) -> str:
    """The answer, what was compared, two tables with a row a mode, and the reasons."""
    eager, *compiled = modes
    names = dict(zip((mode.name for mode in modes), _names(asked), strict=True))
    warm = aligned((WARM, *(_warm(names[mode.name], mode) for mode in modes)))
    first = aligned((FIRST, *(_first(names[mode.name], mode) for mode in compiled if mode.first is not None)))
    notes = [*_gate(gate, modes, names), *_refused(compiled, names), *_reasons(compiled, names), *_lost(lost)]
    parts = [
        _wrapped(_answer(eager, compiled, best, names)),
        _wrapped(heading(asked, gate, processes)),
        warm,
        first if len(first) > 1 else [],
        [line for note in notes for line in _wrapped(note)],
    ]
    return "\n\n".join("\n".join(part) for part in parts if part)


def heading(asked: Asked, gate: FrameworkGate, processes: Sequence[FrameworkTime]) -> str:
    """`train.py:loss in PyTorch 2.13.0: value and gradients over 5 calls, in 3 fresh processes a mode`."""
    count = 1 + max((record.process for record in processes), default=-1)
    where = f"in {count} fresh process{'' if count == 1 else 'es'} a mode" if asked.function else "in this process"
    step = f"value and gradients over {text.counted(calls_of(processes), 'call')}"
    name = Path(asked.function).name or "a function"
    gpu = gate.environment.gpu if gate.environment else None
    on = f" on {gpu or asked.device}" if asked.device != "cpu" else ""
    return f"{name} in {asked.adapter.title} {gate.version}{on}: {step}, {where}"


def _names(asked: Asked) -> Iterator[str]:
    """The modes as --modes has them: the heading tells the framework."""
    yield from (asked.adapter.mode(arm).name or "eager" for arm in asked.arms)


def _answer(eager: Mode, compiled: Sequence[Mode], best: Mode | None, names: Mapping[str, str]) -> str:
    """The sentence that the command is asked for."""
    there = [mode for mode in compiled if mode.ratio]
    if best is not None:
        return (
            f"Compile it, with {names[best.name]}: it takes {_ratio(best)} the time of eager once warm; {_pays(best)}."
        )
    if not there:
        return _untimed(eager, compiled, names)
    nearest = min(there, key=lambda mode: mode.ratio.estimate if mode.ratio else 1.0)
    said = f"{names[nearest.name]}, the fastest compiled mode, takes {_ratio(nearest)} the time of eager once warm"
    if any(mode.answer == "unclear" for mode in there):
        more = "use --processes 10 or a quieter machine" if nearest.ratio and nearest.ratio.known else FEW
        return f"Cannot tell whether to compile it: {said}; {more}."
    return f"Do not compile it: {said}."


def _untimed(eager: Mode, compiled: Sequence[Mode], names: Mapping[str, str]) -> str:
    """What to say where there is no time of a compiled mode, beside one of eager."""
    why = [f"{names[mode.name]}: {_line(mode.reason)}" for mode in (eager, *compiled) if mode.reason]
    if eager.call is None:
        return f"Nothing was timed: {'; '.join(why)}."
    return (
        f"Do not compile it: no compiled mode could be timed ({'; '.join(why)})."
        if why
        else "There is no mode but eager."
    )


def _pays(mode: Mode) -> str:
    if mode.pays_from is None:
        return "its first calls cannot be compared with eager's"
    known = mode.pays_from_warm is not None and mode.pays_from_warm != mode.pays_from
    cached = f", or {mode.pays_from_warm:,} where its cache is kept" if known else ""
    return f"it has paid from call {mode.pays_from:,} on{cached}"


def _warm(name: str, mode: Mode) -> tuple[str, ...]:
    """A mode under WARM."""
    return (
        name,
        mode.status if mode.call is None else text.seconds(mode.call),
        _ratio(mode) if mode.ratio else "",
        _paid(mode),
        "" if mode.peak is None else text.size(mode.peak),
    )


def _paid(mode: Mode) -> str:
    if mode.pays_from is not None:
        return f"{mode.pays_from:,}" + (f" ({mode.pays_from_warm:,})" if mode.pays_from_warm is not None else "")
    return {None: "", "faster": "?", "unclear": "?", "no faster": "never", "slower": "never"}[mode.answer]


def _first(name: str, mode: Mode) -> tuple[str, ...]:
    """A mode under FIRST."""
    took = (mode.first, mode.first_warm, mode.epoch, mode.epoch_warm)
    said = ["" if seconds is None else text.seconds(seconds) for seconds in took]
    return (name, *said, f"{mode.compiles:,}", f"{sum((mode.breaks or {}).values()):,}")


def _gate(gate: FrameworkGate, modes: Sequence[Mode], names: Mapping[str, str]) -> Iterator[str]:
    there = [mode for mode in modes if mode.ulp is not None]
    against = (
        "eager with the same random numbers" if gate.random else "eager" if gate.undoubled else "float64 and eager"
    )
    wrong = [f"{names[mode.name]}: {mode.reason}" for mode in there if mode.status == "disagree"]
    right = [mode.ulp or 0.0 for mode in there if mode.status != "disagree"]
    if wrong:
        yield f"Outputs or gradients disagree with {against}, do not use it: {text.listed(wrong)}."
    if right:
        yield f"Outputs and gradients agree with {against} to {max(right):.1f} units in the last place of float32."
    if gate.undoubled:
        yield f"There is no float64 to compare with: {gate.undoubled}"


def _refused(modes: Sequence[Mode], names: Mapping[str, str]) -> Iterator[str]:
    """Why a mode was not timed, and what it has stopped to compile."""
    for mode in modes:
        if mode.status not in ("ok", "disagree"):
            yield f"{names[mode.name]} was not timed, {mode.status}: {_line(mode.reason or '')}"
    for limit, by in _grouped({names[mode.name]: dict.fromkeys(mode.limits, 1) for mode in modes}).items():
        yield f"{_by(by)} ran eager what was new after {limit}"


def _reasons(modes: Sequence[Mode], names: Mapping[str, str]) -> Iterator[str]:
    """Why there were compilations and graph breaks, the modes that share a reason in one line."""
    yield from _each("compiled", {names[mode.name]: mode.reasons or {} for mode in modes})
    yield from _each("broke the graph", {names[mode.name]: mode.breaks or {} for mode in modes})


def _each(what: str, reasons: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    found = sorted(_grouped(reasons).items(), key=lambda item: -max(item[1].values()))
    for reason, by in found[:MOST_REASONS]:
        yield f"{_by(by)} {what}: {reason}"
    if len(found) > MOST_REASONS:
        yield f"... {what} for {text.counted(len(found) - MOST_REASONS, 'further reason')}; --out keeps all"


def _grouped(reasons: Mapping[str, Mapping[str, int]]) -> dict[str, dict[str, int]]:
    """How often each mode met a reason; reasons that differ in numbers alone are one, told as the first."""
    first: dict[str, str] = {}
    found: dict[str, dict[str, int]] = {}
    for mode, counts in reasons.items():
        for reason, count in counts.items():
            said = first.setdefault(re.sub(r"\d+", "#", _line(reason)), _line(reason))
            by = found.setdefault(said, {})
            by[mode] = by.get(mode, 0) + count
    return found


def _by(by: Mapping[str, int]) -> str:
    """`compile, compile-dynamic (2 ×)`."""
    return ", ".join(mode + (f" ({count} ×)" if count > 1 else "") for mode, count in by.items())


def _lost(lost: Sequence[str]) -> Iterator[str]:
    yield from (f"A process was lost: {_line(error)}" for error in lost)


def _line(said: str) -> str:
    return " ".join(said.partition("\n")[0].split())


def _ratio(mode: Mode) -> str:
    if mode.ratio is None:
        return ""
    return f"{text.ratio(mode.ratio.estimate)} {text.interval(mode.ratio.low, mode.ratio.high)}"


def _wrapped(line: str) -> list[str]:
    return textwrap.wrap(line, WIDTH, subsequent_indent="  ", break_on_hyphens=False, break_long_words=False)
