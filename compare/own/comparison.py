"""The comparison of one file in several engines: a question to each in turn, and their records as one result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from compare.engines import OWN, find_engine, of_imports
from compare.engines.graphduel.standin import FRAMEWORK, as_named
from compare.errors import CompareError, InputsError
from compare.instruments.judge import TOLERANCES
from compare.own import origin, run
from compare.own.question import SIZE, Question, modes_by_name, question_for
from compare.own.result import ComparisonStopped, Result
from compare.records.cells import Parity, ParityRow
from compare.records.record import Record, Run, Setting, records_of
from compare.run.progress import Reporter

OURS = ("dynamic", "static", "static-converted", "static-native")
"""The modes of our engine that stand beside those of a framework, unless others are asked for."""


def questions(
    engines: Sequence[str], function: str, inputs: str, modes: Sequence[str] | None, **options: Any
) -> list[Question]:
    """Return a question to each engine, first the one whose program the file is: the others start from its numbers.

    Raises InputsError for modes that none has, and where an engine cannot run a file of that framework.
    """
    imported = of_imports(origin.source(function))
    ordered = sorted(dict.fromkeys(engines), key=lambda name: name != imported)
    if len(ordered) > 1:
        _check(ordered, imported, function)
    chosen = {name: _modes(name, modes) for name in ordered} if len(ordered) > 1 else {ordered[0]: modes}
    unknown = [mode for mode in modes or () if not any(mode in names for names in chosen.values() if names)]
    if unknown:
        raise InputsError(f"none of {', '.join(ordered)} has a mode {unknown[0]!r}")
    beside = len(ordered) > 1
    asked = []
    for name in ordered:
        stands_in = name == OWN and imported == FRAMEWORK
        names = chosen[name] if modes is not None else list(OURS) if stands_in and beside else None
        asked.append(
            replace(question_for(name, function, inputs, names or None, **options), beside=beside, stands_in=stands_in)
        )
    return asked


def _check(engines: Sequence[str], imported: str | None, function: str) -> None:
    for name in engines:
        stands_in = name == OWN and imported == FRAMEWORK
        if name != (imported or OWN) and not stands_in:
            file = function.rpartition(":")[0]
            title = find_engine(imported).title if imported else find_engine(OWN).title
            raise InputsError(
                f"--engines {','.join(engines)}: {file} is written for {title}, which {find_engine(name).title} "
                "cannot run; "
                f"our engine runs files of PyTorch's beside their own: --engines {FRAMEWORK},{OWN}"
            )


def _modes(name: str, modes: Sequence[str] | None) -> list[str] | None:
    """Return the modes that an engine has, by any of their names; None for None."""
    if modes is None:
        return None
    names = modes_by_name(find_engine(name))
    return [mode for mode in modes if mode in names]


def compare_questions(
    asked: Sequence[Question],
    reporter: Callable[[], Reporter],
    folder: Path,
) -> Result:
    """Return the result of all questions: the first engine's, with the records of the others added.

    Processes whose answers are in the folder do not run again, as `journal.open_folder` says. If an engine cannot run
    the file at all, its modes are refused with the reason. Raises CompareError where the first engine cannot, and
    ComparisonStopped.
    """
    first, *others = asked
    if not others:
        return _alone(first, reporter(), folder)
    numbers = folder / "numbers"
    numbers.mkdir(exist_ok=True)
    leading = run.run_question(replace(first, numbers=str(numbers)), reporter(), folder)
    records = list(leading.records[1:])
    for question in others:
        try:
            records += _beside(replace(question, numbers=str(numbers)), reporter(), folder)
        except ComparisonStopped as stop:
            so_far = stop.result.records[1:] if stop.result else ()
            settings = {"stopped": _settings(stop.result)["stopped"] if stop.result else "in the second engine"}
            raise ComparisonStopped(_join_results(asked, leading, [*records, *so_far], **settings)) from stop.__cause__
    return _join_results(asked, leading, records)


def _join_results(asked: Sequence[Question], leading: Result, records: Sequence[Record], **more: Setting) -> Result:
    settings: dict[str, Setting] = {**_settings(leading), "engines": [question.engine for question in asked], **more}
    modes = (*leading.modes, *(mode for question in asked[1:] for mode in question.labels))
    start = msgspec.structs.replace(records_of(leading.records, Run)[0], settings=settings)
    return Result(leading.name, modes, (start, *records))


def _alone(question: Question, reporter: Reporter, folder: Path) -> Result:
    try:
        return run.run_question(question, reporter, folder)
    except CompareError as error:
        error.args = (as_named(str(error)),) if question.stands_in else error.args
        raise


def _settings(result: Result) -> dict[str, Setting]:
    return records_of(result.records, Run)[0].settings


def _beside(question: Question, reporter: Reporter, folder: Path) -> list[Record]:
    try:
        return list(run.run_question(question, reporter, folder).records[1:])
    except CompareError as error:
        return [refusal_record(question, as_named(str(error)))]


def refusal_record(question: Question, reason: str) -> Parity:
    """Return the record of an engine of which no mode can run the file."""
    rows = {mode: ParityRow("unsupported", reason, None, None, TOLERANCES["float32"]) for mode in question.labels}
    return Parity(workload=question.name, size=SIZE, agree=True, modes=rows, same_graph=None, kernel_calls={})
