"""Sentences and tables on the compilations of a function's modes: how far modes agree, reasons, and graph breaks.

The last part is on shape policies: which one compiles least.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from itertools import islice
from math import inf

from msgspec.structs import replace

from compare import text
from compare.claims.base import SMALLEST_EFFECT
from compare.claims.contests import ratio_of
from compare.claims.evidence import cells, steady
from compare.claims.threads import at_threads
from compare.engines.graphduel.steps import STATIC
from compare.instruments.inspection import DEFAULT, EXACT
from compare.instruments.standard import TOLERANCES, UNITS
from compare.records.cells import CompilationRow, Compilations, LineCost, Memory, Parity, ParityRow, Time
from compare.records.own import GUARDS, KERNELS, CallParts, CallPartsRow, PolicyCount, ShapePolicies
from compare.records.record import Records, records_of
from compare.report.blocks import Section, Table, section
from compare.stats import Interval

MOST_REASONS, MOST_WHYS = 4, 2
COMPILED, AGAIN, BROKE = "compiled", "compiled again", "broke the graph"
MOST_ULPS = 1000
_PARTS = ("outputs", "gradients", "the state after each call")
_UNITS = {"float32": 2**-23, "float64": 2**-52}
_PLACE = re.compile(r" \((?P<at>[^():]+:\d+): .*\)$")
"""Matches the source line at the end of a reason, as in ` (step.py:12: x = x * scale)`."""
_PLACES = re.compile(r" \([^():]+:\d+(, [^():]+:\d+)+\)$")
"""Matches the source lines at the end of a merged reason, as in ` (step.py:12, step.py:14)`."""


def sentences(records: Records) -> list[str]:
    """Return sentences on how far modes agree, and on why they compiled or broke the graph; none for our engines.

    What holds for one number of threads alone begins with it.
    """
    told: dict[int, list[str]] = {}
    for record in records_of(records, Compilations):
        told.setdefault(record.threads, []).extend(_sentences(record, at_threads(records, record.threads)))
    every = dict.fromkeys(
        said for each in told.values() for said in each if all(said in other for other in told.values())
    )
    apart = [
        f"With {text.count_noun(threads, 'thread')}: {said}"
        for threads, each in told.items()
        for said in each
        if said not in every
    ]
    return [*every, *apart]


def whys(records: Records, besides: Container[str] = ()) -> list[str]:
    """Return sentences on why modes ran eager, broke graphs, compiled again or are slower, and on compile time.

    Modes in `besides` are left out, and so are advice and all but the first reasons, since a section has them all.
    """
    told = records_of(records, Compilations)
    kept = [replace(each, modes={m: row for m, row in each.modes.items() if m not in besides}) for each in told]
    return [
        said
        for record in kept
        for said in (*islice(_reruns(record), MOST_WHYS), *_slower(record, records), *_phases(record))
    ]


def _slower(record: Compilations, records: Records) -> Iterator[str]:
    """Yield why modes of a record are slower that have no graph break."""
    for mode, row in told_parts(records).items():
        if mode in record.modes:
            yield from _why(record, records, mode, row)


def _reruns(record: Compilations) -> Iterator[str]:
    """Yield sentences on what ran eager, on graph breaks, and on compilations after the first."""
    again = {mode: _again(row.made) for mode, row in record.modes.items()}
    yield from _limit_sentences(record)
    yield from _each(BROKE, {mode: row.breaks for mode, row in record.modes.items()}, advice=False)
    yield from _each(AGAIN, {mode: _tally(reasons) for mode, reasons in again.items()}, advice=False)


def _again(made: Sequence[CompilationRow]) -> list[str]:
    """Return the reasons of compilations that differ from that of the first, which every function needs."""
    return [piece.reason for piece in made if _alike(piece.reason) != _alike(made[0].reason)]


def agreement(records: Records) -> list[str]:
    """Return sentences on how far the modes of a framework agree, and on what was compared; none for our engines."""
    return [said for record in records_of(records, Compilations) for said in _compare_outputs(record, records)]


def reasons(records: Records) -> Section | None:
    """Return the section with all reasons for compilations and graph breaks, each with its count by mode."""
    rows = [
        (what, _with_advice(why, counts), _mode_counts(by), *_costs(_compilations_of(record, why) * (what == COMPILED)))
        for record in records_of(records, Compilations)
        for what, counts in (*_counts(record), ("ran eager what was new after", _limits(record)))
        for why, by in group_reasons(counts).items()
    ]
    table = Table(("what", "why", "in", "took, with no code on the disk", "of it"), tuple(rows), "lllrl")
    return section("Compilations and graph breaks", table) if rows else None


def _sentences(record: Compilations, records: Records) -> Iterator[str]:
    yield from _compare_outputs(record, records)
    yield from _coverage(record)
    yield from _phases(record)
    yield from _parts(record, records)
    yield from _unknown_parts(records)
    yield from _memory_sentences(records)
    yield from _limit_sentences(record)
    for what, counts in _counts(record):
        yield from _each(what, counts)


def _compare_outputs(record: Compilations, records: Records) -> Iterator[str]:
    yield from _agreement(record, records)
    if record.gradients:
        yield f"Gradients are of {record.gradients}."
    if record.undifferentiated:
        yield f"The value alone is compared: {record.undifferentiated}."
    if record.undoubled:
        yield f"There is no float64 to compare with: {record.undoubled}"


def _limit_sentences(record: Compilations) -> Iterator[str]:
    for limit, by in group_reasons(_limits(record)).items():
        yield f"{_mode_counts(by)} ran eager what was new after {limit}"


def _coverage(record: Compilations) -> Iterator[str]:
    """Yield `compile ran 40% of the ops of a forward pass compiled.`, one sentence for all modes with one share."""
    shares: dict[str, list[str]] = {}
    for mode, row in record.modes.items():
        if row.share is not None:
            shares.setdefault(_share(row.share), []).append(mode)
    for share, modes in shares.items():
        of = "a step" if record.trains else "a forward pass"
        yield f"{text.join_words(modes)} ran {share} of the ops of {of} compiled."


def _share(share: float) -> str:
    """Return a share as a percentage; `all` and `none` stand only for exactly 1 and 0."""
    if share in (0, 1):
        return "all" if share else "none"
    return f"{min(max(round(100 * share), 1), 99)}%"


def _agreement(record: Compilations, records: Records) -> Iterator[str]:
    """Yield sentences on the errors of modes that agree, and on the size of errors that could not be seen."""
    if record.uncompared:
        yield f"Shapes alone were compared: {record.uncompared}."
        return
    gate = {mode: row for parity in records_of(records, Parity) for mode, row in parity.modes.items()}
    base = next((parity.base for parity in records_of(records, Parity)), "")
    wrong = any(row.status == "disagree" for row in gate.values())
    right = {mode: row for mode, row in gate.items() if row.status == "ok" and _errors(row)}
    same = " with the same random numbers" if record.random else ""
    against, alone = f"float64 and eager{same}", f"float64{same}"
    if record.undoubled or record.dtype == "float64":
        against, alone = f"eager{same}", ""
    if list(right) == [base]:  # the base compared with itself says nothing about other modes
        against, right = alone, {} if wrong else right
    elif wrong:
        right.pop(base, None)
    errors = [_errors(row) for row in right.values()]
    parts = [part for part in _PARTS if any(part in each for each in errors)]
    if parts and against:
        off = max(error for each in errors for error in each.values())
        whose = f" of {text.join_words(list(right))}" if wrong or against == alone else ""
        said, verb = text.join_words(parts), "agrees" if parts == [_PARTS[-1]] else "agree"
        yield f"{text.begin_sentence(said)}{whose} {verb} with {against} to {_error(off, record.dtype)}."
    allowed = max((row.tolerance for row in gate.values()), default=0.0)
    least = max(gate.values(), key=_unseen, default=None)
    unseen, where = (_unseen(least), _coarse(least)) if least else (0.0, "")
    tolerance = TOLERANCES.get(record.dtype, TOLERANCES["float32"])
    half = f" computes in {record.dtype}, and" if record.dtype in UNITS else ""
    if record.conditioning > tolerance:
        yield (
            f"This step{half} is ill-conditioned: eager itself is off by {record.conditioning:.2g} from rounding "
            "alone. Where it is, a mode may be off several times as far: "
            f"errors below {unseen:.2g} may not be seen{where}"
            + (f", nor below {allowed:.2g} in directions in which rounding moves it." if allowed > unseen else ".")
        )
    elif unseen > TOLERANCES["float32"] or half:
        own = f", and eager itself is off by {record.conditioning:.2g}" if record.conditioning else ""
        yield f"It computes in {record.dtype}{own}: errors below {unseen:.2g} of an array's size are not seen{where}."


def _unseen(row: ParityRow) -> float:
    """Return the size below which a mode's errors are not seen."""
    return row.tolerance if row.unseen is None else row.unseen


def _coarse(row: ParityRow) -> str:
    """Return where a mode's errors are not seen: ` in the variable `mean`, nor in 2 more arrays`; "" if unknown."""
    if not row.coarsest:
        return ""
    others = f", nor in {text.count_noun(row.coarse - 1, 'more array')}" if row.coarse > 1 else ""
    return f" in {row.coarsest}{others}"


def _errors(row: ParityRow) -> dict[str, float]:
    """Return the scaled error of each part of a mode's results that was compared."""
    each = zip(_PARTS, (row.output_error, row.gradient_error, row.state_error), strict=True)
    return {part: error for part, error in each if error is not None}


def _error(scaled: float, dtype: str) -> str:
    """Return an error as `3.7 units in the last place of float32`, or as `0.0042 of their size` if it is large."""
    wide = "float64" if dtype == "float64" else "float32"
    ulps = scaled / _UNITS[wide]
    return f"{ulps:.1f} units in the last place of {wide}" if ulps < MOST_ULPS else f"{scaled:.2g} of their size"


def _phases(record: Compilations) -> Iterator[str]:
    """Yield `compile compiled 2 graphs in 23.1 s: Inductor 15.8 s, machine code 5.6 s.`, where the engine tells it."""
    for mode, row in record.modes.items():
        seconds, phases = _costs(row.made)
        if phases:
            yield f"{mode} compiled {text.count_noun(len(row.made), 'graph')} in {seconds}: {phases}."


def _parts(record: Compilations, records: Records) -> Iterator[str]:
    """Yield where a warm call's time goes, why a mode without graph breaks is slower, and what runs between graphs."""
    for mode, row in told_parts(records).items():
        names = {GUARDS: f"{row.guards:,} guards"} if row.guards else {}
        each = [f"{names.get(part, part)} {text.seconds(s)}" for part, s in Counter(row.parts).most_common()]
        yield f"A warm call of {mode} takes {text.seconds(row.whole)}: {text.join_words(each)}."
        yield from _why(record, records, mode, row)
        if row.outside:
            dear = sorted(row.outside.items(), key=lambda item: -item[1].seconds)[:MOST_REASONS]
            each = [f"{line} ({_outside(row, line)})" for line, _ in dear]
            yield f"Between its graphs {mode} runs eager: {text.join_words(each)}."


def _why(record: Compilations, records: Records, mode: str, row: CallPartsRow) -> Iterator[str]:
    """Yield why a mode is slower that has no graph break: what is around its kernels."""
    timed = cells(records, Time)
    slower = ratio_of(timed[0], mode, timed[0].base, steady) if timed else None
    breaks = record.modes[mode].breaks if mode in record.modes else {}
    if slower and slower.side(SMALLEST_EFFECT) == "above" and not breaks and KERNELS in row.parts:
        kernels = row.parts[KERNELS]
        yield (
            f"{mode} has no graph break, and yet a call takes {text.ratio(slower.estimate)} the time of "
            f"{timed[0].base}: its kernels take {text.seconds(kernels)}, and what is around them "
            f"{text.seconds(sum(row.parts.values()) - kernels)}."
        )


def _unknown_parts(records: Records) -> Iterator[str]:
    for record in records_of(records, CallParts):
        for mode, row in record.modes.items():
            if row.status != "ok":
                yield f"Where a call of {mode} spends its time is not known: {row.reason}."


def told_parts(records: Records) -> dict[str, CallPartsRow]:
    """Return the rows of modes whose calls were told apart."""
    return {
        mode: row
        for record in records_of(records, CallParts)
        for mode, row in record.modes.items()
        if row.status == "ok" and row.parts
    }


def _outside(row: CallPartsRow, line: str) -> str:
    """Return what a line runs outside of graphs: `2 of 5 ops, 3 µs`."""
    cost = row.outside[line]
    ops = (
        f"{cost.kernels} of {text.count_noun(max(row.ops.get(line, 0), cost.kernels), 'op')}, " if cost.kernels else ""
    )
    return f"{ops}{text.seconds(cost.seconds)}"


def _memory_sentences(records: Records) -> Iterator[str]:
    """Yield what stays in memory after the first calls of each mode that compiles, beside the peak of a step."""
    for record in records_of(records, Memory):
        for mode, row in record.modes.items():
            if record.counted != "NumPy" and mode != record.base and row.status == "ok" and row.resident_growth:
                yield (
                    f"After its first calls {mode} has {text.size(row.resident_growth)} more resident, of which "
                    f"{record.counted} holds {text.size(row.held)}; a step needs {text.size(row.peak)} at its peak."
                )


def parts(records: Records) -> Section | None:
    """Return the section on where a warm call's time goes: parts, graphs with their lines, and coverage by line."""
    rows = told_parts(records)
    if not rows:
        return None
    names = dict.fromkeys(part for row in rows.values() for part in row.parts)
    header = ("part", *(title for mode in rows for title in (mode, "of it")))
    each = [
        (part, *(cell for row in rows.values() for cell in _shares(row.parts.get(part), row.whole))) for part in names
    ]
    sums = ("all parts", *(cell for row in rows.values() for cell in _shares(sum(row.parts.values()), row.whole)))
    whole = ("a call, with no clock in it", *(cell for row in rows.values() for cell in _shares(row.whole, row.whole)))
    said = (
        "Clocks in compiled code count the parts, each without what is inside of it, in calls between those that are "
        "timed whole. What runs between graphs has its time with the Python before each op."
    )
    table = Table(header, (*each, sums, whole), "l" + "rr" * len(rows))
    compilations = records_of(records, Compilations)
    why = [said for record in compilations for said in _slower(record, records)]
    tables = filter(None, (table, _graphs(rows), _by_line(rows)))
    return section("Where a warm call's time goes", *why, *_memory_sentences(records), said, *tables)


def _shares(seconds: float | None, whole: float) -> tuple[str, str]:
    return (text.seconds(seconds), f"{100 * seconds / whole:.0f}%") if seconds and whole else ("", "")


def _graphs(rows: Mapping[str, CallPartsRow]) -> Table:
    """Return the table of the compiled step: each graph with its seconds and the ops of each line in it."""
    cells_of = [
        (
            f"{mode} {graph.name}", f"{graph.runs:,}", text.seconds(graph.kernels), text.seconds(graph.around),
            ", ".join(f"{line} ({ops})" if line else f"elsewhere ({ops})" for line, ops in graph.lines.items()),
        )
        for mode, row in rows.items()
        for graph in row.graphs
    ]  # fmt: skip
    header = ("graph", "runs", "kernels", "around them", "lines, with their ops in the graph")
    return Table(header, tuple(cells_of), "lrrrl", "The compiled step, graph by graph, both passes together")


def _by_line(rows: Mapping[str, CallPartsRow]) -> Table | None:
    """Return the table of coverage: of each line's ops those that run in graphs, and what the others take."""
    code = {line: source for row in rows.values() for line, source in row.code.items()}
    lines = dict.fromkeys(line for row in rows.values() for line in (*row.ops, *row.outside))
    header = ("line", "source", *(title for mode in rows for title in (f"in graphs of {mode}", "the rest takes")))
    cells_of = [
        (line, code.get(line, ""), *(cell for row in rows.values() for cell in _inside(row, line))) for line in lines
    ]
    caption = "Coverage by line: ops of an eager forward pass that run in graphs"
    return Table(header, tuple(cells_of), "ll" + "rr" * len(rows), caption) if lines else None


def _inside(row: CallPartsRow, line: str) -> tuple[str, str]:
    cost = row.outside.get(line, LineCost())
    ops = max(row.ops.get(line, 0), cost.kernels)
    return f"{ops - cost.kernels} of {ops}", text.seconds(cost.seconds) if cost.seconds else ""


def _compilations_of(record: Compilations, reason: str) -> list[CompilationRow]:
    """Return the compilations for a reason, over all modes."""
    return [piece for mode in record.modes.values() for piece in mode.made if _alike(piece.reason) == _alike(reason)]


def _costs(made: Sequence[CompilationRow]) -> tuple[str, str]:
    """Return the seconds of compilations, and those of their phases, longest first; "" if the engine reports none."""
    taken = [piece.seconds for piece in made if piece.seconds is not None]
    phases = Counter[str]()
    for piece in made:
        phases.update(piece.phases)
    spent = [f"{phase} {text.seconds(seconds)}" for phase, seconds in phases.most_common() if seconds]
    return text.seconds(sum(taken)) if taken else "", text.join_words(spent)


def _counts(record: Compilations) -> Iterator[tuple[str, dict[str, Mapping[str, int]]]]:
    yield COMPILED, {mode: _tally([made.reason for made in row.made]) for mode, row in record.modes.items()}
    yield BROKE, {mode: row.breaks for mode, row in record.modes.items()}


def _limits(record: Compilations) -> dict[str, Mapping[str, int]]:
    return {mode: dict.fromkeys(row.limits, 1) for mode, row in record.modes.items()}


def _tally(reasons: list[str]) -> dict[str, int]:
    return {reason: reasons.count(reason) for reason in reasons}


def _each(what: str, counts: Mapping[str, Mapping[str, int]], *, advice: bool = True) -> Iterator[str]:
    most = sorted(group_reasons(counts).items(), key=lambda item: -max(item[1].values()))
    for reason, by in most[:MOST_REASONS]:
        yield f"{_mode_counts(by)} {what}: {_with_advice(reason, counts) if advice else reason}"
    if len(most) > MOST_REASONS:
        yield f"... {what} for {text.count_noun(len(most) - MOST_REASONS, 'further reason')}; --out keeps all"


def _with_advice(reason: str, counts: Mapping[str, Mapping[str, int]]) -> str:
    """Return a reason as `group_reasons` gives it, with the lines of advice that stand below it in the records."""
    below = {_alike(each): each.partition("\n")[2] for reasons in counts.values() for each in reasons}
    advice = below[_alike(_PLACES.sub("", reason))].splitlines()
    return ". ".join([reason, *(line.rstrip(".") for line in advice)])


def group_reasons(counts: Mapping[str, Mapping[str, int]]) -> dict[str, dict[str, int]]:
    """Count each reason by mode; reasons that differ only in lines or numbers are merged, with all their lines."""
    met = [(mode, _line(reason), count) for mode, reasons in counts.items() for reason, count in reasons.items()]
    alike: dict[str, list[str]] = {}
    for _, line, _ in met:
        alike.setdefault(_alike(line), []).append(line)
    names = {key: _together(lines) for key, lines in alike.items()}
    groups: dict[str, dict[str, int]] = {}
    for mode, line, count in met:
        by = groups.setdefault(names[_alike(line)], {})
        by[mode] = by.get(mode, 0) + count
    return groups


def _together(lines: Sequence[str]) -> str:
    """Merge reasons into `graph break (step.py:12, step.py:14)`; a reason with one line keeps its source text."""
    places = dict.fromkeys(place["at"] for line in lines if (place := _PLACE.search(line)))
    if len(places) < 2:
        return lines[0]
    return f"{_PLACE.sub('', lines[0])} ({', '.join(places)})"


def _line(reason: str) -> str:
    return " ".join(reason.partition("\n")[0].split())


def _alike(reason: str) -> str:
    """Return a key that is the same for reasons which differ only in numbers or lines."""
    return re.sub(r"\d+", "#", _PLACE.sub("", _line(reason)))


def _mode_counts(by: Mapping[str, int]) -> str:
    """Return modes with their counts, as `compile, compile-dynamic (2 ×)`."""
    return ", ".join(mode + (f" ({count} ×)" if count > 1 else "") for mode, count in by.items())


# Shape policies ------------------------------------------------------------------------------------------------------


FIRST = "first call"
"""The reason that `static.jit` gives for the first compile, which every function needs."""
MOST_SIZES = 12
"""The largest number of sizes of one axis that a row names."""


def cheapest_policy(record: ShapePolicies) -> str | None:
    """Return the policy that compiles least; of equals, the one that pads less, then the default one."""
    ranks = {name: (len(row.compiles), row.padding) for name, row in record.policies.items() if row.status == "ok"}
    return min((DEFAULT, *ranks), key=lambda name: ranks.get(name, (inf, inf))) if ranks else None


def policy_sentence(records: Records) -> str:
    """Return a sentence on the policy that compiles least over the inputs; "" without records or a usable policy."""
    for record in records_of(records, ShapePolicies):
        best = cheapest_policy(record)
        if best is not None:
            row, usual = record.policies[best], record.policies[DEFAULT]
            shapes = f"{'the first ' if record.left_out else ''}{text.count_noun(record.shapes, 'shape')}"
            needs = text.count_noun(len(row.compiles), "compile")
            if usual.status == "ok" and len(row.compiles) == len(usual.compiles):
                kinds = shapes if "pad" in record.policies else shapes.replace("shape", "kind")
                return f"No shape policy saves a compile: {kinds} of calls need {needs}."
            instead = f" instead of {len(usual.compiles):,}" if usual.status == "ok" else ""
            padding = f"; padding computes {text.ratio(row.padding)} the elements" if row.padding > 1 else ""
            side, timed = _compare_time(records, best)
            use = f"{row.options} compiles least" if side == "above" else f"Use {row.options}"
            return f"{use}: {needs}{instead} for {shapes}{padding}{timed}."
    return ""


def policy_reasons(row: PolicyCount) -> str:
    """Return why a policy compiles, as `x, dim 0: 3, 5, 4` with the sizes in order, or why it is not possible."""
    if row.status != "ok":
        return row.reason or row.status
    seen: dict[str, list[str]] = {}
    for compilation in row.compiles[1:]:
        label, _, change = compilation.reason.partition(" was ")
        values = seen.setdefault(label.replace(": ", ", "), [])
        values += [value for value in change.split(", now ") if value not in values]
    few = {label: [*values[:MOST_SIZES], *["…"] * (len(values) > MOST_SIZES)] for label, values in seen.items()}
    return (
        "; ".join(f"{label}: {', '.join(sizes)}" if sizes != [""] else label for label, sizes in few.items()) or FIRST
    )


def _compare_time(records: Records, best: str) -> tuple[str, str]:
    """Compare a call under a policy with static-exact; returns the side of 1 and words, both "" if not timed."""
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
    """Return steady seconds of a call under a policy ÷ those of static-exact; None if one was not timed."""
    timed = cells(records, Time)
    return ratio_of(timed[0], STATIC + policy, STATIC + EXACT, steady) if timed else None
