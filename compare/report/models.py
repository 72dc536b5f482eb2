"""The page of a run of real models: a row for each, reasons for recompilation, and a comparison with workloads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import ceil, inf
from typing import TYPE_CHECKING

from compare import text
from compare.claims import regimes
from compare.claims.base import agreement
from compare.claims.frameworks import ModelCosts
from compare.claims.regimes import BreakEven
from compare.report import verdicts
from compare.report.blocks import Section, Table, section
from compare.stats import geometric_mean

if TYPE_CHECKING:
    from compare.claims.base import Regime, Verdict

_COSTS = (
    "A step is the loss and the gradients of all parameters. The first call compiles: cold without, cached with "
    "compiled code of an earlier process on the disk. Pays after says how many steps it takes from the first call, "
    "cold, until compiling has taken less time in all than eager. Of a model whose inputs vary, a step is the mean "
    "over its stream, and the steps of the first pass are counted as they were. Peak is bytes of malloc in a step, "
    "and on a GPU those of its allocator."
)
_ROLES = "In {title}, dynamic is {eager} here, and static is a compiled mode."


def line(row: ModelCosts) -> str:
    """Return the costs of one mode of a model as one line of text, `NAME, MODE: TITLE VALUE, ...`."""
    said = [f"{title} {value}" for title, value in _cells(row).items() if value and title not in ("model", "mode")]
    return f"{row.name}, {row.mode.mode}: {', '.join(said)}"


def answer(rows: Sequence[ModelCosts], judged: Sequence[Verdict], title: str) -> Section:
    """Return the section that opens the page: sentences on all models, the claims, and the table of models."""
    eager = rows[0].eager.mode if rows else "eager"
    blocks = (
        *_sentences(rows),
        verdicts.headline(judged),
        verdicts.claims(judged),
        table(rows),
        _COSTS,
        verdicts.EXPLAINED,
        _ROLES.format(title=title, eager=eager),
    )
    return Section("The answer", tuple(filter(None, blocks)), verdicts.NAME)


def table(rows: Sequence[ModelCosts]) -> Table | None:
    """Return a table with a row for each compiled mode of each model; None without rows."""
    return Table.of("lrrrrrrrrrrl", map(_cells, rows), "Every model: eager and compiled") if rows else None


def sections(rows: Sequence[ModelCosts], judged: Sequence[Verdict], small: Sequence[Verdict]) -> tuple[Section, ...]:
    """Return the sections on different verdicts of models and workloads, on recompilations, and on graph breaks."""
    parts = (beside(judged, small), recompiles(rows), breaks(rows))
    return tuple(filter(None, parts))


def _sentences(rows: Sequence[ModelCosts]) -> Iterator[str]:
    timed = [row for row in rows if row.mode.ratio]
    if not timed:
        yield "No compiled mode of a model has been timed once warm."
        return
    ratios = sorted(row.mode.ratio.estimate for row in timed if row.mode.ratio)
    faster = sum(row.mode.ratio.side(0.05) == "below" for row in timed if row.mode.ratio)
    slower = sum(row.mode.ratio.side(0.05) == "above" for row in timed if row.mode.ratio)
    yield (
        f"Once warm, a compiled step takes {text.ratio(geometric_mean(ratios))} the time of an eager one, the "
        f"geometric mean of {text.count_noun(len(timed), 'model')}, from {text.ratio(ratios[0])} to "
        f"{text.ratio(ratios[-1])}: it is faster in {faster}, slower in {slower}, and neither is shown in "
        f"{len(timed) - faster - slower}."
    )
    ends = sorted(runs for row in timed if (runs := _runs(row.pays)) < inf)
    if ends:
        yield (
            f"With the first call from a cold cache, compiling pays for itself in {len(ends)} of {len(timed)}, in the "
            f"first of these after {ceil(ends[0]):,} steps and in the last after {ceil(ends[-1]):,}."
        )


def _runs(even: BreakEven | None) -> float:
    return even.runs if even and even.runs is not None else inf


def _cells(row: ModelCosts) -> Mapping[str, str]:
    mode, ratio = row.mode, row.mode.ratio
    peak = text.size(mode.peak) if mode.peak else ""
    more = text.ratio(mode.peak / row.eager.peak) if mode.peak and row.eager.peak else ""
    status = "" if row.mode.status == "ok" else f"{row.mode.status}: "
    limits = "; ".join(row.told.limits[:1]) if row.told else ""
    why = "; ".join(filter(None, (f"{status}{row.mode.reason}", limits)))
    return {
        "model": row.model.title,
        "eager step": text.seconds(row.eager.steady),
        "compiled ÷ eager": text.estimate(ratio, unknown=False) if ratio else "",
        "first call, cold": text.seconds(mode.cold),
        "cached": text.seconds(mode.warm),
        "pays after": _pays(row.pays),
        "inputs, shapes": f"{row.inputs}, {row.shapes}" if row.model.varies else "",
        "compiles again": f"{row.recompiles}" if row.told else "",
        "graph breaks": f"{sum(row.told.breaks.values())}" if row.told else "",
        "eager peak": text.size(row.eager.peak) if row.eager.peak else "",
        "compiled ÷ eager peak": more or peak,
        "why": why,
    }


def _pays(even: BreakEven | None) -> str:
    if even is None:
        return ""
    return f"{ceil(even.runs):,} steps" if even.runs is not None else even.verdict


def recompiles(rows: Sequence[ModelCosts]) -> Section | None:
    """Return the section with the reasons for recompilations over the streams; None without any."""
    said = tuple(
        (row.model.title, row.mode.mode, f"{count:,}", reason)
        for row in rows
        for reason, count in row.reasons.most_common()
    )
    headers = ("model", "mode", "count", "why")
    return section("Compiled again", Table(headers, said, "llrl", "Reasons, cold")) if said else None


def breaks(rows: Sequence[ModelCosts]) -> Section | None:
    """Return the section with graph breaks and their source lines; None without any."""
    said = tuple(
        (row.model.title, row.mode.mode, f"{count:,}", reason)
        for row in rows
        if row.told
        for reason, count in row.told.breaks.items()
    )
    headers = ("model", "mode", "count", "where and why")
    return section("Graph breaks", Table(headers, said, "llrl", "By line, cold")) if said else None


def beside(judged: Sequence[Verdict], small: Sequence[Verdict]) -> Section | None:
    """Compare, for each claim, the regimes that real models and workloads share, and whether they contradict.

    Returns None without verdicts on the workloads (`small`).
    """
    if not small:
        return None
    ours = {verdict.claim.id: verdict for verdict in small}
    rows = []
    for verdict in judged:
        other = ours.get(verdict.claim.id)
        for regime in verdict.finding.regimes if other else ():
            if other and regimes.REAL in regime.name and (near := _counterpart(regime, other)):
                agree = agreement((regime.verdict, near.verdict))
                rows.append((verdict.claim.id, regime.name, agree, _regime_text(regime), _regime_text(near)))
        if other:
            words = verdict.finding.verdict, other.finding.verdict
            rows.append((verdict.claim.id, "the verdict", agreement(words), *words))
    apart = [f"{id}: {name}" for id, name, said, *_ in rows if said == "differ"]
    sentence = (
        f"Real models contradict the workloads in {text.join_words(apart)}."
        if apart
        else "Real models contradict the workloads in no regime where both are settled."
    )
    headers = ("claim", "regime", "verdicts", "real models", "our workloads")
    return section(
        "Where real models and our workloads differ", sentence, Table(headers, tuple(rows), "lllll"), name="beside"
    )


def _counterpart(regime: Regime, other: Verdict) -> Regime | None:
    """Return the regime of all workloads for the same phase, found by its name without the kind; None without one."""
    phase = regime.condition.replace(f", {regimes.REAL}", "")
    return next((each for each in other.finding.regimes if each.condition == phase), None)


def _regime_text(regime: Regime) -> str:
    value = "" if regime.value is None else f" ({text.ratio(regime.value)})"
    return f"{regime.verdict}{value}"
