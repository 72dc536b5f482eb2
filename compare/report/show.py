"""The result on a user's function as text for a terminal (`plain`), and as HTML for a notebook (`html`).

The other functions make the parts of both: the answer, the heading, tables, notes, the calculator and the ladder.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import resources
from math import exp, inf
from statistics import median
from typing import Any

from compare import engines, text
from compare.claims import base, remedies, verdict
from compare.claims.evidence import cells, join_evidence
from compare.claims.regimes import course
from compare.claims.verdict import MeasuredFunction
from compare.engines.words import part
from compare.instruments.ladder import LADDER, NATIVE, REPLAY, RUNGS, TAPE, THREADS
from compare.instruments.rounds import half_width
from compare.records.cells import (
    Compilations,
    Ladder,
    Parity,
    SourceLines,
    SourceLinesRow,
    Threads,
    Time,
    rank_lines,
)
from compare.records.own import RewriteHints
from compare.records.record import DYNAMIC, Environment, Failure, Records, Run, group_by, records_of
from compare.report import compiled
from compare.stats import Interval, geometric_mean
from graphs.drawing.drawing import fill_template
from graphs.errors import escape_html

WIDTH = 80
HERE, ALONE, WORKERS = "one process, built anew each time", "one process", "fresh workers"
"""The values of the setting `where`: where the function was measured."""
MOST_LINES = 8
"""The number of source lines that are shown, the dearest; the page has all of them."""
BACKWARD = "The gradient of a line counts with that line, and not with backward()."
SOURCE = "source"
"""The title of the column of source text, which is aligned to the left."""
CALL, RATIO = "a call", "÷ {base}"
"""The titles of the columns that each number of threads has."""
SPARE = ("cached", "compiles")
"""The columns of the first table that are left out in a terminal without room for them."""
PROCESSOR = "a call is seconds of the processor; a first run is seconds on the wall"
ONE_PROCESS = "measured in one process; another may differ by more than the intervals say. For fresh processes, "
BESIDE = "modes shared a process, where the threads of one slow the other down"
SLOW = "the dynamic engine ran in Python, which takes longer than compiled; see graphduel doctor"
IN_A_FILE, NOT_ZERO = "save the function in a file and name it", "leave out --processes 0"

Cell = Callable[[MeasuredFunction, str], str]

_CELL = "padding:.25em 1.2em .25em 0;white-space:nowrap;border-bottom:1px solid rgba(128,128,128,.35)"


def table(result: MeasuredFunction) -> list[tuple[str, ...]]:
    """Return the first table: a header, and a row for each mode; columns without any value are left out.

    On several numbers of threads each has its columns of a call.
    """
    columns = _columns(result)
    header = tuple(title.format(base=result.verdict.steady.base) for title, _, _ in columns)
    rows = [tuple(cell(measured, mode) for _, measured, cell in columns) for mode in result.modes]
    kept = [place for place in range(len(header)) if not place or any(row[place] for row in rows)]
    return [tuple(row[place] for place in kept) for row in (header, *rows)]


def _columns(result: MeasuredFunction) -> list[tuple[str, MeasuredFunction, Cell]]:
    """Return the title of each column, the measurements that it shows, and the function that makes its cells."""
    (first, *others), names = result.by_threads.items(), dict(COLUMNS)
    call, ratio = names.pop(CALL), names.pop(RATIO)
    each = [
        (title, measured, cell)
        for number, measured in (first, *others)
        for title, cell in ((text.count_noun(number, "thread") if others else CALL, call), (RATIO, ratio))
    ]
    mode, *rest = [(title, first[1], cell) for title, cell in names.items()]
    return [mode, *each, *rest]


def heading(result: MeasuredFunction) -> str:
    """Return how a function was measured, as `loss: value and gradients over 3 inputs; 3 × fresh workers`.

    Unusual settings follow: conversion, or a tape in Python.
    """
    settings = settings_of(result.records)
    step = "value and gradients" if settings["gradient"] else "value"
    step = "a training step" if settings.get("trains") else step
    calls = text.count_noun(settings["inputs"], "input")
    python = "; dynamic in Python, not compiled" if base.in_python(result.records) else ""
    converted = "; static with convert=True" if settings.get("converted") else ""
    own = f"; compiled already: {settings['own']} is the file's own" if settings.get("own") else ""
    framework = (
        f" in {engines.find_engine(name).title} {settings['version']}" if (name := settings.get("framework")) else ""
    )
    framework += " and in our engine" if settings.get("engines") else ""
    gpu = there.gpu if (there := _environment(result)) else None
    device = f" on {gpu or settings['device']}" if settings.get("device", "cpu") != "cpu" else ""
    times = "" if settings["where"] == ALONE else f"{settings['processes']} × "
    return f"{result.name}{framework}{device}: {step} over {calls}; {times}{settings['where']}{own}{converted}{python}"


def answer(result: MeasuredFunction, *, place: bool = True) -> list[str]:
    """Return the answer in sentences: whether the run was stopped, the verdict, and the best shape policy, if any.

    With `place` it says where it holds; a page says that further down.
    """
    stopped = settings_of(result.records).get("stopped")
    so_far = f"Stopped {stopped}. So far:" if stopped else ""
    tried = [*remedies.sentences(result.records), *remedies.slow_graphs(result.records)]
    where = holds_for(result) if place else ""
    own = MeasuredFunction(result.name, result.modes, remedies.without_trials(result.records))
    said = (so_far, *own.sentences, *tried, where, compiled.policy_sentence(result.records))
    return list(filter(None, said))


def holds_for(result: MeasuredFunction) -> str:
    """Return where the answer holds, as `This holds for 2 threads on the CPU, float32, PyTorch 2.13.0, Python 3.11`."""
    settings, environment = settings_of(result.records), _environment(result) or Environment()
    threads = f"{text.join_words(list(map(str, result.by_threads)))} thread" + "s" * ([*result.by_threads] != [1])
    place = environment.gpu or ("the CPU" if (device := settings.get("device", "cpu")) == "cpu" else device)
    dtypes = dict.fromkeys(record.dtype for record in records_of(result.records, Compilations) if record.dtype)
    name = settings.get("framework")
    software = f"{engines.find_engine(name).title} {settings['version']}" if name else f"NumPy {environment.numpy}"
    python = (environment.python or "").removeprefix("CPython ")
    parts = [f"{threads} on {place}", *dtypes, software, f"Python {python}"]
    return f"This holds for {', '.join(parts)}."


def _environment(result: MeasuredFunction) -> Environment | None:
    return next((run.environment for run in records_of(result.records, Run) if run.environment), None)


def _wrap(words: str, indent: str = "") -> list[str]:
    return textwrap.wrap(words, WIDTH, subsequent_indent=indent, break_on_hyphens=False)


def plain(result: MeasuredFunction) -> str:
    """Return the result as text of 80 columns: the verdict, the heading, a row for each mode, and the dearest lines."""
    answers = [line for words in answer(result) for line in _wrap(words)]
    lines = [*answers, "", *textwrap.wrap(heading(result), WIDTH), "", *align_rows(_fit_table(table(result)))]
    said = _notes(result)
    notes = [line for note in said for line in _wrap(note, "  ")]
    return "\n".join([*lines, *_listing(result), *_ladder(result), *([""] if notes else []), *notes])


def _notes(result: MeasuredFunction) -> tuple[str, ...]:
    """Return what stands below the tables: rewrites and changes to try, what was compiled, and how it was measured."""
    records = result.records
    return (*hints_of(result), *remedies.suggestions(records), *compiled.sentences(records), *notes_of(result))


def _fit_table(table: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Reduce a table until it fits into the terminal: drop modes that were not timed, then the columns in `SPARE`.

    The answer names those modes, and the page has the whole table.
    """
    if _is_wide(table):
        table = [row for row in table if any(row[1:])]
    for name in SPARE:
        if _is_wide(table):
            kept = [place for place, title in enumerate(table[0]) if title != name]
            table = [tuple(row[place] for place in kept) for row in table]
    return table


def _is_wide(table: list[tuple[str, ...]]) -> bool:
    return max(map(len, align_rows(table))) > WIDTH


def by_line(result: MeasuredFunction) -> list[tuple[str, ...]]:
    """Return a table of the dearest source lines: seconds and share of the step in each mode, and the source text."""
    for record in records_of(result.records, SourceLines):
        modes = {mode: row for mode, row in record.modes.items() if row.status == "ok"}
        shown = rank_lines(list(modes.values()))[:MOST_LINES]
        body = [(line, *(_of_step(row, line) for row in modes.values()), record.code.get(line, "")) for line in shown]
        rest = ("elsewhere", *(text.seconds(row.elsewhere) for row in modes.values()), "")
        why = (
            "of the input of median length"
            if settings_of(result.records)["inputs"] > 1
            else "timed between watched ones"
        )
        whole = ("a step", *(text.seconds(row.step) for row in modes.values()), why)
        return [("line", *modes, SOURCE), *body, rest, whole] if body else []
    return []


def _of_step(row: SourceLinesRow, line: str) -> str:
    cost = row.lines.get(line)
    return f"{text.seconds(cost.seconds)} {cost.seconds / row.step:4.0%}" if cost and row.step else ""


def _listing(result: MeasuredFunction) -> list[str]:
    """Return the dearest source lines as text; the source comes last and is cut at the width."""
    table = by_line(result)
    if not table:
        return []
    return ["", *_with_words(table), *_wrap(about_lines(result))]


def about_lines(result: MeasuredFunction) -> str:
    """Return the note that gradients count for their forward line; "" if no shown line calls backward()."""
    return BACKWARD if any("backward(" in row[-1] for row in by_line(result)) else ""


def _with_words(table: Sequence[Sequence[str]]) -> list[str]:
    """Return rows as lines of the terminal; the last column is aligned left and cut at the width."""
    costs = align_rows(row[:-1] for row in table)
    width = max(map(len, costs))
    lines = [f"{cost.ljust(width)}  {row[-1]}".rstrip() for cost, row in zip(costs, table, strict=True)]
    return [line if len(line) <= WIDTH else f"{line[: WIDTH - 1]}…" for line in lines]


def _ladder(result: MeasuredFunction) -> list[str]:
    """Return the table of rungs as text if our engine ran beside a framework, else an empty list."""
    rows = rung_table(result.records) if settings_of(result.records).get("engines") else []
    if not rows:
        return []
    return ["", *_with_words(rows), *_wrap(rung_sentence(result.records))]


def hints_of(result: MeasuredFunction) -> list[str]:
    """Return a sentence for each rewrite that would help a fixed graph, with its lines."""
    return [str(hint) for record in records_of(result.records, RewriteHints) for hint in record.hints]


def notes_of(result: MeasuredFunction) -> list[str]:
    """Return notes on the clock, a tape in Python, a single process, effects, refused modes and failures."""
    rows = [pair for record in records_of(result.records, Parity) for pair in record.modes.items()]
    excused = [(mode, row.reason) for mode, row in rows if row.status == "ok" and row.reason]
    why = group_by([*excused, *result.verdict.refused.items()], lambda pair: pair[1])
    gate = [f"{', '.join(mode for mode, _ in pairs)}: {reason}" for reason, pairs in why.items()]
    slow = [SLOW] if base.in_python(result.records) else []
    settings = settings_of(result.records)
    effects = [f"besides its result, {result.name} {effect}" for effect in settings.get("effects", ())]
    remedy = NOT_ZERO if settings.get("command") else IN_A_FILE
    alone = [f"{ONE_PROCESS}{remedy}"] if settings["where"] != WORKERS else []
    clocks = {
        time.clock
        for time in records_of(result.records, Time)
        if any(row.status == "ok" for row in time.modes.values())
    }
    clock = [PROCESSOR] if "cpu" in clocks else []
    clock += _on_threads(result)
    clock += [settings["compiling"]] if settings.get("compiling") else []
    return [
        *[f"{mode} is {word}" for mode, word in map(part, settings.get("words", ())) if mode],
        *(" ran in ".join(each.split(": ", 1)) for each in settings.get("pythons", ())),
        *clock,
        *slow,
        *alone,
        *effects,
        *gate,
        *(f"failed: {failure.error}" for failure in records_of(result.records, Failure)),
    ]


def _on_threads(result: MeasuredFunction) -> list[str]:
    """Return a note for each number of several threads: what the clock is, and a call's seconds of the processor."""
    said = []
    for number, measured in result.by_threads.items():
        each = {mode: _processor_seconds(measured, mode) for mode in measured.modes}
        busy = {mode: median(seconds) for mode, seconds in each.items() if seconds}
        if number > 1 and busy:
            spent = text.join_words([f"{mode} {text.seconds(seconds)}" for mode, seconds in busy.items()])
            apart = "each mode had processes of its own" if settings_of(result.records)["where"] == WORKERS else BESIDE
            said.append(f"on {number} threads a call is seconds on the wall, and {apart}; of the processor: {spent}")
    return said


def _processor_seconds(measured: MeasuredFunction, mode: str) -> list[float]:
    rows = [record.modes[mode] for record in records_of(measured.records, Time) if mode in record.modes]
    return [row.busy for row in rows if row.status == "ok" and row.busy]


def settings_of(records: Records) -> Mapping[str, Any]:
    """Return the settings of the run that measured the function."""
    return records_of(records, Run)[0].settings


def align_rows(table: Iterable[Sequence[str]]) -> list[str]:
    """Return rows as lines with aligned columns: the first to the left, the others to the right."""
    body = list(table)
    widths = [max(map(len, column)) for column in zip(*body, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if place else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in body
    ]


def html(result: MeasuredFunction) -> str:
    """Return the result as an HTML fragment, with the calculator; every text in it is escaped."""
    said = _notes(result)
    notes = "".join(f"<p>{escape_html(note)}</p>" for note in said)
    lines = f"<p>{about_lines(result)}</p>" if about_lines(result) else ""
    return (
        '<div style="max-width:60em">'
        f"{''.join(f'<p><strong>{escape_html(words)}</strong></p>' for words in answer(result))}"
        f"<p>{escape_html(heading(result))}</p>{_table(table(result))}{_table(by_line(result))}{lines}{notes}{calculator(result)}</div>"
    )


def _table(table: Sequence[Sequence[str]]) -> str:
    """Return a table in HTML whose first row is the header; "" without rows."""
    if not table:
        return ""
    numbers = [place and title != SOURCE for place, title in enumerate(table[0])]
    head, *body = [
        "".join(_cell("td" if n else "th", c, number=bool(i)) for c, i in zip(row, numbers, strict=True))
        for n, row in enumerate(table)
    ]
    lines = "".join(f"<tr>{row}</tr>" for row in body)
    return (
        '<div style="overflow-x:auto"><table style="border-collapse:collapse;font-variant-numeric:tabular-nums">'
        f"<thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table></div>"
    )


def _cell(tag: str, value: str, *, number: bool) -> str:
    return f'<{tag} style="{_CELL};text-align:{"right" if number else "left"}">{escape_html(value)}</{tag}>'


# The columns of the first table -----------------------------------------------------------------------------------


def _call(result: MeasuredFunction, mode: str) -> str:
    """Return the seconds of a call of a mode, also for modes that disagree or were not compared, if timed."""
    wrong = {name: mean for name, (mean, _) in result.verdict.wrong.items()}
    early = {name: each.call for name, each in result.verdict.glimpsed.items() if each.call}
    return _seconds({**early, **wrong, **result.verdict.steady.values}, mode)


def _of_base(result: MeasuredFunction, mode: str) -> str:
    _, of_wrong = result.verdict.wrong.get(mode, (0.0, None))
    ratio = result.verdict.of_base.get(mode) or of_wrong
    if ratio is None:
        early = verdict.glimpse_ratio(result.verdict.glimpsed, mode, result.verdict.steady.base)
        return early and f"{early} {text.interval(0.0, inf)}"
    return text.estimate(ratio)


def _first(result: MeasuredFunction, mode: str) -> str:
    early = {name: each.first for name, each in result.verdict.glimpsed.items() if each.ended == each.calls}
    return _seconds({**early, **result.verdict.first.values}, mode)


def _cached_values(result: MeasuredFunction, mode: str) -> str:
    return _seconds(result.verdict.cached.values, mode) if result.verdict.compiles.get(mode) else ""


def _memory(result: MeasuredFunction, mode: str) -> str:
    memory = result.verdict.memory.values
    return text.size(memory[mode]) if mode in memory else ""


def _seconds(values: Mapping[str, float], mode: str) -> str:
    return text.seconds(values[mode]) if mode in values else ""


COLUMNS: Mapping[str, Cell] = {
    "mode": lambda _, mode: mode,
    CALL: _call,
    RATIO: _of_base,
    "first run": _first,
    "cached": _cached_values,
    "compiles": lambda result, mode: f"{result.verdict.compiles[mode]:,}" if mode in result.verdict.compiles else "",
    "memory": _memory,
}
"""The function that makes the cell of a mode, by column title; it returns "" if the value is not known."""


# The calculator of a result in a notebook: a slider over runs of the function, and what they cost in each mode -------


HEIGHT = 144
"""The height of the calculator's frame in pixels without its rows, on a phone, where lines break; `ROW` is a row's."""
ROW = 26


def calculator(result: MeasuredFunction) -> str:
    """Return the calculator as an iframe, which separates its page from the notebook; "" for fewer than two modes.

    Early calls cost their measured seconds, compiling included, and later calls the warm seconds.
    """
    result, *_ = result.by_threads.values()
    warm, first = result.verdict.steady, result.verdict.first
    times = cells(result.records, Time)
    courses = {mode: course(join_evidence(times), mode) for mode in warm.values if mode in first.values}
    modes = [{"name": mode, "early": path.early.tolist(), "steady": path.steady} for mode, path in courses.items()]
    if len(modes) < 2:
        return ""
    template, script = (resources.files(__package__).joinpath(name).read_text("utf-8") for name in _FILES)
    title = f"{result.name}: what many runs cost"
    page = fill_template(template, script, {"modes": modes, "base": warm.base}, title=escape_html(title))
    style = f"width:100%;height:{HEIGHT + ROW * len(modes)}px;border:0"
    head = f'<iframe title="{escape_html(title)}" sandbox="allow-scripts" style="{style}"'
    return f'{head} srcdoc="{escape_html(page)}"></iframe>'


_FILES = "calculator.html", "calculator.js"


# The ladder of a function: what each part of compiling adds, where a framework's compiler does all at once -----------


CAUSES = {
    "dispatch": (TAPE, REPLAY),
    "algebra": (REPLAY, "simplify"),
    "the memory plan": ("simplify", "plan"),
    "another order": ("plan", "restructure"),
    "fusion": ("restructure", "contract"),
    "machine code": ("contract", NATIVE),
}
"""The two rungs between which each cause of savings lies."""
SHOWN = {TAPE: DYNAMIC}
"""The names of rungs that are shown as modes of the first table."""


def rung_seconds(records: Records) -> dict[str, float]:
    """Return the seconds of a call on each rung that agrees with the tape; empty without a ladder."""
    rungs: dict[str, list[float]] = {}
    for record in records_of(records, Ladder):
        for name, rung in record.rungs.items():
            if rung.status == "ok" and rung.blocks:
                rungs.setdefault(name, []).append(geometric_mean(rung.blocks))
    took = {name: geometric_mean(rungs[name]) for name in RUNGS if name in rungs}
    shared = core_ratio(records)
    return {**took, THREADS: took[NATIVE] * shared.estimate} if shared and NATIVE in took else took


def core_ratio(records: Records) -> Interval | None:
    """Return wall seconds of native code on all cores ÷ those on one core; None if that was not measured.

    The interval is over the blocks of the process that timed both.
    """
    timed = [record.rungs for record in records_of(records, Threads) if record.rungs[THREADS].status == "ok"]
    tops, bottoms = ([block for rungs in timed for block in rungs[name].blocks] for name in (THREADS, NATIVE))
    if not tops:
        return None
    ratio = geometric_mean([top / bottom for top, bottom in zip(tops, bottoms, strict=True)])
    spread = exp(half_width(tops, bottoms))
    return Interval(ratio, ratio / spread, ratio * spread)


def rung_table(records: Records) -> list[tuple[str, ...]]:
    """Return a table of rungs: the seconds of a call, their ratio to the rung below, and what the rung adds."""
    took = rung_seconds(records)
    rows = [
        (
            SHOWN.get(name, name),
            text.seconds(took[name]),
            text.ratio(took[name] / took[base]) if base in took else "",
            LADDER[name].adds,
        )
        for name in took
        for base in [LADDER[name].base]
    ]
    return [("rung", "a call", "÷ below", "adds"), *rows] if rows else []


def rung_sentence(records: Records) -> str:
    """Return a sentence with the share of each cause in the seconds that compiling saves; "" if it saves none."""
    took = rung_seconds(records)
    ends = [name for name in ("contract", NATIVE) if name in took]
    saved = took[TAPE] - took[ends[-1]] if TAPE in took and ends else 0.0
    if saved <= 0:
        return ""
    parts = {what: took[low] - took[high] for what, (low, high) in CAUSES.items() if low in took and high in took}
    shares = ", ".join(f"{what} {round(100 * share / saved)}%" for what, share in parts.items())
    return (
        f"Compiling saves {text.seconds(saved)} of the {text.seconds(took[TAPE])} that dynamic takes for this call: "
        f"{shares}.{_on_cores(records)}"
    )


def _on_cores(records: Records) -> str:
    shared = core_ratio(records)
    cores = max((record.cores for record in records_of(records, Threads)), default=1)
    if shared is None:
        return ""
    spread = f"{text.ratio(shared.estimate)} {text.interval(shared.low, shared.high)}"
    return f" With threads={cores} machine code takes {spread} the time."
