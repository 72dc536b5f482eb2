"""Pages on several runs: changes between two runs, many runs over time, or runs of several machines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from compare import text
from compare.claims import CLAIMS, changes, conditions
from compare.claims.base import SMALLEST_EFFECT, Regime, Verdict, agreement
from compare.claims.changes import MEASURES, CellChange, Comparison, JudgedRun, Measure, Series
from compare.claims.frameworks import model_costs
from compare.claims.verdict import MeasuredFunction
from compare.engines import OWN, Engine, find_engine
from compare.engines.mode import user_name
from compare.records.cells import Compilations
from compare.records.own import ModeCost, ModelVerdict, SharedVerdict
from compare.records.record import Cell, Environment, Records, Run, group_by, records_of
from compare.records.results import VERSION
from compare.report import blocks, verdicts
from compare.report.blocks import Block, Inline, Page, Picture, PicturedTable, Section, Table, Terms, section
from compare.stats import Interval
from compare.workloads import models as real_models

if TYPE_CHECKING:
    from compare.report.figures import Drawing

CHANGED = ("step", "mode", "what", "before", "after", "after ÷ before", "change")
OVER_TIME = ("cell", "mode", "first", "last", "last ÷ the run before", "change", "over the runs, first = 1×")
_RATIOS = (
    "Each value is the mode divided by the base of its cell on one machine, with a 95% interval over the processes of "
    f"that machine. Machines are opposite where one shows more and another less, both beyond {SMALLEST_EFFECT:.0%}; "
    "open where the interval of one says neither."
)
_WORDS = ("the same", "differ", "opposite", "open")


def _page(title: str, subtitle: str, sections: Iterable[Section | None]) -> Page:
    kept = [part for part in sections if part]
    return Page(title, subtitle, tuple(part for part in (*kept, blocks.glossary(kept)) if part))


def verdict_table(runs: Sequence[JudgedRun]) -> Table:
    """Return a table with a row for each claim: the verdict and effect of each run, and whether verdicts agree."""
    rows = tuple(
        (
            f"{id} {CLAIMS[id].title}",
            *(
                _join_words(verdicts.mark_label(run.verdicts[id]), verdicts.effect(run.verdicts[id].finding))
                for run in runs
            ),
            agreement(changes.labels_of(runs, id)),
        )
        for id in changes.shared_claims(runs)
    )
    return Table(("claim", *(run.name for run in runs), "verdicts"), rows, "l" * (len(runs) + 2))


def change_table(shown: Sequence[CellChange]) -> Table:
    """Return a table with a row for each change: cell, mode, measure, before, after and their ratio."""
    return Table(CHANGED, tuple(map(_change_row, shown)), "lllrrrl")


def _change_row(change: CellChange) -> tuple[str, ...]:
    ends = (change.measure.written(change.before), change.measure.written(change.after))
    return (change.cell.title, change.mode, change.measure.name, *ends, _ratio(change.ratio), change.word)


def _ratio(ratio: Interval | None) -> str:
    """Return a ratio as `1.05× [1.01, 1.09]`, without the interval if it has no width or is not known."""
    if ratio is None:
        return ""
    exact = ratio.low == ratio.high
    return text.ratio(ratio.estimate) if exact else text.estimate(ratio, unknown=False)


def _join_words(*words: str) -> str:
    return " ".join(filter(None, words))


# Runs with what changed from one to the next ----------------------------------------------------------------------


def beside(runs: Sequence[JudgedRun], comparison: Comparison | None) -> Page:
    """Return the page with the verdicts of all runs, how each was measured, and for two runs the changes."""
    changed: tuple[Block, ...] = ()
    if comparison:
        changed = (*comparison.sentences, change_table(comparison.changes))
    return _page(
        "Runs beside each other",
        changes.verdict_sentence(runs),
        (
            section("The verdicts", verdict_table(runs)),
            section("The runs", Terms(tuple((run.name, run.measured) for run in runs))),
            section("What changed", *changed),
        ),
    )


# Verdicts of many runs ------------------------------------------------------------------------------------------


_SHARED = (
    "Each dot is a warm call ÷ that of the mode that compiles nothing, the middle one of its runs. Its bar reaches "
    "from the least to the largest. Left of 1× compiling is faster. The last column of the table has the number of "
    "runs."
)
_MOST = 60
"""The largest number of rows that the picture has; the table has all."""
Draw = Callable[[Callable[[], "Drawing"], Iterable[str]], Picture]
"""A function that draws a figure, in which some modes have looks of their own."""


def shared_verdict(records: Records) -> SharedVerdict | None:
    """Return the verdict of a run on a function or on real models, without paths or code; None for other runs."""
    run = next(reversed(records_of(records, Run)), None)
    if run is None or not (run.is_own or run.is_of_models):
        return None
    there, engine = run.environment or Environment(), str(run.settings.get("framework") or OWN)
    if run.is_own:
        models, version = [*_of_function(records, run)], str(run.settings.get("version") or "")
    else:
        engine = real_models.FRAMEWORK
        models = [*_of_models(records, find_engine(engine))]
        version = next((record.version for record in records_of(records, Compilations)), "")
    device = there.gpu or there.cpu or "an unknown processor"
    return SharedVerdict(VERSION, engine, version, there.python or "", device, models)


def _of_function(records: Records, run: Run) -> Iterator[ModelVerdict]:
    """Yield the costs of the modes of a user's function on each number of threads."""
    name = str(run.settings.get("function", "a function"))
    for number, measured in MeasuredFunction(name, (), tuple(records)).by_threads.items():
        judged = measured.verdict
        modes = {mode: ModeCost(reason.partition(":")[0]) for mode, reason in judged.refused.items()}
        for mode, call in judged.steady.values.items():
            held = judged.memory.values.get(mode)
            first, cached = (each.values.get(mode) for each in (judged.first, judged.cached))
            ratio, compiles = _ends(judged.of_base.get(mode)), judged.compiles.get(mode)
            modes[mode] = ModeCost("ok", call, ratio, first, cached, held, compiles)
        yield ModelVerdict(name, judged.steady.base, modes, number)


def _of_models(records: Records, framework: Engine) -> Iterator[ModelVerdict]:
    """Yield the costs of the modes of each real model."""
    for name, rows in group_by(model_costs(records, framework), lambda row: row.name).items():
        each = [rows[0].eager, *(row.mode for row in rows)]
        modes = {
            user_name(framework, cost.mode): ModeCost(
                cost.status, cost.steady, _ends(cost.ratio), cost.cold, cost.warm, cost.held, cost.compiles
            )
            for cost in each
        }
        yield ModelVerdict(name, "eager", modes)


def _ends(ratio: Interval | None) -> list[float]:
    return [ratio.estimate, *(ratio.bounds() or ())] if ratio else []


class _Group(NamedTuple):
    """The costs of one mode of a model over runs of one device, version and number of threads."""

    model: str
    mode: str
    device: str
    version: str
    threads: int
    costs: dict[int, ModeCost]
    """By the number of the run."""

    @property
    def ratios(self) -> list[float]:
        return sorted(cost.ratio[0] for cost in self.costs.values())

    def title(self, *parts: str) -> str:
        """Return the model and the mode, and further parts of the group."""
        threads = {"threads": text.count_noun(self.threads, "thread")}
        return ", ".join((self.model, self.mode, *(threads.get(part) or getattr(self, part) for part in parts)))

    @property
    def row(self) -> dict[str, str]:
        """The group as a row of a table."""
        low, high = self.ratios[0], self.ratios[-1]
        spread = text.interval(low, high) if len(self.costs) > 1 else ""
        first = [cost.first for cost in self.costs.values() if cost.first]
        return {
            **{name: str(getattr(self, name)) for name in ("model", "mode", "version", "device", "threads")},
            "a call ÷ eager": text.ratio(median(self.ratios)),
            "from, to": spread,
            "a call": text.seconds(median(cost.call for cost in self.costs.values() if cost.call)),
            "first pass": text.seconds(median(first)) if first else "",
            "runs": f"{len(self.costs):,}",
        }


def many(verdicts: Sequence[SharedVerdict], draw: Draw) -> Page:
    """Return the page on verdicts of many runs: medians by model, device and version. `draw` writes a picture."""
    groups = _groups_of(verdicts)
    ratios = [median(group.ratios) for group in groups]
    models, devices = ({getattr(group, name) for group in groups} for name in ("model", "device"))
    kinds = [text.count_noun(len(each), noun) for each, noun in ((models, "model"), (devices, "device"))]
    said = f"Of {text.count_noun(len(verdicts), 'run')} none timed a mode that compiles."
    if groups:
        faster = sum(ratio < 1 / (1 + SMALLEST_EFFECT) for ratio in ratios)
        slower = sum(ratio > 1 + SMALLEST_EFFECT for ratio in ratios)
        said = (
            f"Over {text.count_noun(len(verdicts), 'run')} of {text.join_words(kinds)}, a compiled call takes "
            f"{text.ratio(min(ratios))} to {text.ratio(max(ratios))} the time of an eager one, half of them at "
            f"most {text.ratio(median(ratios))}: it is faster in {faster} of {len(groups)} rows, and slower in "
            f"{slower}."
        )
    tables = [Table.of("lrrr", _medians(groups, by), f"By {by}") for by in ("version", "device", "mode")]
    picture = draw(partial(_drawing, groups), [group.mode for group in groups]) if groups else None
    every = Table.of("llllrrrrrr", [group.row for group in groups], "Every model, mode, version and device")
    return _page(
        "graphduel: verdicts of many runs",
        f"{text.count_noun(len(verdicts), 'run')}.",
        (section("The answer", said, picture, *tables), section("The runs", every)),
    )


def _groups_of(verdicts: Sequence[SharedVerdict]) -> list[_Group]:
    """Return the timed modes that compile, by model, mode, device, version and threads, in this order."""
    groups: dict[tuple[str, str, str, str, int], dict[int, ModeCost]] = {}
    for run, shared in enumerate(verdicts):
        version = f"{find_engine(shared.engine).title} {shared.version}".strip()
        for model in shared.models:
            for mode, cost in model.modes.items():
                if mode != model.base and cost.status == "ok" and cost.ratio and cost.call:
                    key = (model.model, mode, shared.device, version, model.threads)
                    groups.setdefault(key, {})[run] = cost
    return [_Group(*key, groups[key]) for key in sorted(groups)]


def _medians(groups: Sequence[_Group], by: str) -> Iterator[dict[str, str]]:
    """Yield the median of the rows of each version, device or mode."""
    for name, of_name in group_by(groups, lambda group: getattr(group, by)).items():
        ratios = [median(group.ratios) for group in of_name]
        models, runs = len({group.model for group in of_name}), len({run for group in of_name for run in group.costs})
        yield {by: name, "a call ÷ eager": text.ratio(median(ratios)), "models": f"{models:,}", "runs": f"{runs:,}"}


def _drawing(groups: Sequence[_Group]) -> Drawing:
    """Draw the median of each row as a dot, on a bar from the least to the largest ratio of its runs."""
    from compare.report.figures import Drawing, style

    shown = groups[:_MOST]
    varying = [part for part in ("version", "threads", "device") if len({getattr(each, part) for each in shown}) > 1]
    titles = [group.title(*varying) for group in shown]
    figure = style.figure(0.9 + 0.26 * len(shown))
    axes = figure.add_subplot()
    for place, group in enumerate(shown):
        spread = Interval(median(group.ratios), group.ratios[0], group.ratios[-1])
        style.whisker(axes, place, spread, style.colour(group.mode), style.marker(group.mode), titles[place])
    style.rows(axes, titles)
    low, high = min(group.ratios[0] for group in shown), max(group.ratios[-1] for group in shown)
    style.ratio_axis(axes, min(0.9, low) / 1.1, max(1.1, high) * 1.1)
    style.tie_zone(axes)
    axes.set_xlabel("a call ÷ eager's call (log scale)" if style.columns(2) > 1 else "÷ eager (log scale)")
    alt = "; ".join(f"{name}: {text.ratio(median(each.ratios))}" for name, each in zip(titles, shown, strict=True))
    return Drawing("verdicts", "A warm call beside eager", _SHARED, f"A warm call ÷ eager's: {alt}.", figure)


# Runs over time ---------------------------------------------------------------------------------------------------


def over_time(runs: Sequence[JudgedRun], rows: Sequence[Series]) -> Page:
    """Return the page of runs over time: changes of the last run, the runs, verdicts, and series as dots by run."""
    title = f"{text.count_noun(len(runs), 'run')} over time"
    span = f"From {runs[0].began or 'an unknown time'} to {runs[-1].began or 'an unknown time'}."
    settled = changes.is_settled(runs)
    shown = (changes.verdict_sentence(runs), verdict_table(runs)) if settled else ()
    series = (_measure(runs, measure, [row for row in rows if row.measure is measure]) for measure in MEASURES)
    table = Table.of("lllll", map(_run, runs))
    return _page(title, span, (_last(runs, rows), section("The runs", table), section("The verdicts", *shown), *series))


def _last(runs: Sequence[JudgedRun], rows: Sequence[Series]) -> Section | None:
    last = last_changes(runs, rows)
    shown = changes.significant(last)
    number = f"{len(shown):,}" if shown else "none"
    said = (
        f"The last run changed {number} of {text.count_noun(len(rows), 'value')} by more than 5%, with 95% confidence."
    )
    table = change_table(shown) if shown else None
    return section("What the last run changed", said, *changes.tallies(last), table)


def last_changes(runs: Sequence[JudgedRun], rows: Iterable[Series]) -> list[CellChange]:
    """Return the change to the last run in each series that has one."""
    return [change for row in rows if (change := row.last_change(runs))]


def _run(run: JudgedRun) -> dict[str, str]:
    return {
        "run": run.name,
        "began": run.began or "unknown",
        "commit": run.environment.commit or "unknown",
        "machine": run.environment.cpu or "unknown",
        "measured": str(run.settings.get("preset", "")),
    }


def _measure(runs: Sequence[JudgedRun], measure: Measure, rows: Sequence[Series]) -> Section | None:
    """Return the section with the series of a measure, the largest change over all runs first; None without rows."""
    drawn = [(row, verdicts.run_points(runs, row.ratios_to_first(runs))) for row in rows]
    drawn.sort(key=lambda pair: -max((point.far for point in pair[1] if point), default=0.0))
    title = f"{measure.title}, {text.count_noun(len(rows), 'row')}"
    table = Table(OVER_TIME, tuple(_times(runs, row) for row, _ in drawn), "llrrrll", title)
    dots = (
        verdicts.draw_runs(f"{row.cell.title}, {row.mode}, each run divided by the first", points)
        for row, points in drawn
    )
    return section(measure.title, PicturedTable(table, tuple(Inline(*dot) for dot in dots)) if rows else None)


def _times(runs: Sequence[JudgedRun], row: Series) -> tuple[str, ...]:
    change, means = row.last_change(runs), row.means
    changed = (_ratio(change.ratio), change.word) if change else ("", "")
    return (row.cell.title, row.mode, row.measure.written(means[0]), row.measure.written(means[-1]), *changed)


# Several machines -------------------------------------------------------------------------------------------------


def machines(runs: Sequence[JudgedRun]) -> Page:
    """Return the page on several machines: verdicts, regimes and cells by machine, and the machines themselves."""
    tables = {measure: changes.values_by_run(runs, measure, measure.to_base) for measure in MEASURES}
    names = text.join_words([run.name for run in runs])
    return _page(
        "graphduel: several machines",
        f"{text.begin_sentence(runs[0].suite)}, on {names}.",
        (
            section("The answer", *_sentences(runs, tables[MEASURES[0]].values()), verdict_table(runs)),
            section("Every regime", *_regimes(runs)),
            *(_ratios(runs, measure, shown) for measure, shown in tables.items()),
            section("The machines", *_differing(runs), Table.of("l" * 9, map(_machine, runs)), *_conditions(runs)),
        ),
    )


def _sentences(runs: Sequence[JudgedRun], warm: Iterable[Sequence[Interval | None]]) -> Iterator[str]:
    yield changes.verdict_sentence(runs)
    counts = Counter(map(changes.side_agreement, warm))
    if shared := counts.total() - counts["one machine"]:
        said = ", ".join(f"{counts[word]} {word}" for word in _WORDS if counts[word])
        yield f"Of {text.count_noun(shared, 'mode')} of cells that several machines timed once warm: {said}."


def _regimes(runs: Sequence[JudgedRun]) -> Iterator[Table | None]:
    """Yield a table for each claim, with a row for each regime: whether machines agree, and each one's verdict."""
    for id in changes.shared_claims(runs):
        judged = [run.verdicts[id] for run in runs]
        names = dict.fromkeys(regime.name for verdict in judged for regime in verdict.finding.regimes)
        rows = (_regime_row(runs, judged, name) for name in names)
        yield Table.of("ll" + "l" * len(runs), rows, f"{id} {CLAIMS[id].title}")


def _regime_row(runs: Sequence[JudgedRun], judged: Sequence[Verdict], name: str) -> dict[str, str]:
    regimes = [next((regime for regime in verdict.finding.regimes if regime.name == name), None) for verdict in judged]
    words = [regime.verdict for regime in regimes if regime]
    said = (_finding_text(verdict, regime) for verdict, regime in zip(judged, regimes, strict=True))
    row = dict(zip((run.name for run in runs), said, strict=True))
    return {"regime": name, "verdicts": agreement(words), **row}


def _finding_text(verdict: Verdict, regime: Regime | None) -> str:
    effect = verdict.finding.effect
    unit = effect.unit if effect else "ratio"
    return _join_words(verdicts.mark_label(regime), verdicts.value_of(regime, unit)) if regime else ""


def _ratios(
    runs: Sequence[JudgedRun], measure: Measure, shown: dict[tuple[Cell, str], list[Interval | None]]
) -> Section | None:
    if not shown:
        return None
    names = tuple(run.name for run in runs)
    rows = tuple(
        (cell.title, mode, *map(_ratio, ratios), changes.side_agreement(ratios))
        for (cell, mode), ratios in shown.items()
    )
    headers = ("cell", "mode", *names, "machines", "machine by machine, no difference = 1×")
    title = f"{measure.title}: each mode divided by the base of its cell"
    dots = tuple(
        Inline(
            *verdicts.draw_runs(
                f"{cell.title}, {mode}, divided by the base on each machine", verdicts.run_points(runs, ratios)
            )
        )
        for (cell, mode), ratios in shown.items()
    )
    table = PicturedTable(Table(headers, rows, "ll" + "r" * len(names) + "ll", title), dots)
    return section(measure.title, _RATIOS if measure is MEASURES[0] else None, table)


def _machine(run: JudgedRun) -> dict[str, str]:
    here = run.environment
    return {
        "run": run.name,
        "processor": here.cpu or "unknown",
        "GPU": here.gpu or "",
        "cores": str(here.cores or here.logical_cores or ""),
        "memory": text.size(here.memory) if here.memory else "",
        "system": _join_words(here.system or "", here.machine or ""),
        "Python, NumPy": ", ".join(filter(None, (here.python, here.numpy))),
        "commit": (here.commit or "unknown")[:12],
        "measured": f"{run.settings.get('preset', '')}, {run.starts[-1].at}" if run.starts else "",
    }


def _differing(runs: Sequence[JudgedRun]) -> Iterator[str]:
    """Yield a sentence for each difference outside of the machine: commit, Python or NumPy."""
    for what in ("commit", "python", "numpy"):
        values = {str(getattr(run.environment, what)) for run in runs}
        if len(values) > 1:
            yield f"The {what} is not the same, from which differences may come: {text.join_words(sorted(values))}."


def _conditions(runs: Sequence[JudgedRun]) -> Iterator[Section]:
    for run in runs:
        yield Section(run.name, (" ".join(conditions.sentences(run.records)),))
