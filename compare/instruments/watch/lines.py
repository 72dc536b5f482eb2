"""The lines of a cell: the cost of each line of source, each mode in turn in one process."""

from __future__ import annotations

import inspect
import linecache
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from time import perf_counter_ns
from typing import Any

from compare import engines, workloads
from compare.engines import cases
from compare.engines.step import Step
from compare.errors import describe_error
from compare.instruments.runnables import Runnable
from compare.instruments.time.rounds import CLOCK
from compare.instruments.watch import graph, readings, tape
from compare.records.cells import SourceLines, SourceLinesRow
from compare.records.job import Job
from compare.workloads.base import Case
from graphs.errors import is_internal


def measure(job: Job) -> SourceLines:
    """Return the record of a job's modes, over the example of median length."""
    return measure_lines(job, workloads.load(job.source).case(str(job.size)))


def measure_lines(job: Job, case: Case) -> SourceLines:
    """Return the record of a job's modes over a given case."""
    case = cases.alone(case)
    rows = {mode: _row(mode, case) for mode in job.modes if engines.of_mode(mode).traits(mode).readable}
    lines = dict.fromkeys(line for row in rows.values() for line in row.lines)
    return SourceLines(**job.head, modes=rows, code=texts(case.loss, lines))


def of_runnable(job: Job, runnable: Runnable, mode: str, step: Step) -> Iterator[SourceLines]:
    """Yield the record of a user's function whose step runs op by op, over the call of median length.

    Nothing is yielded where nobody reads its lines, or the engine cannot tell them. `mode` is its name in the record.
    """
    engine = runnable.engine
    if runnable.written is None or not engine.tells_lines:
        return
    middle = cases.median_length(runnable.lengths)
    call = step.bind(middle)
    try:
        clock = CLOCK if engine.device == "cpu" else perf_counter_ns
        with runnable.fresh(), call.within():
            row = readings.read(lambda: engine.ops.lines(call.run, ()), call.run, clock, runnable.begin)
    except Exception as error:  # noqa: BLE001  (as for our modes)
        row = SourceLinesRow("unsupported" if engine.errors.refuses(error, mode) else "failed", runnable.reason(error))
    yield SourceLines(str(job.workload), str(job.size), modes={mode: row}, code=texts(runnable.written, row.lines))


def _row(mode: str, case: Case) -> SourceLinesRow:
    try:
        executables = engines.step(mode, case).executables()
        return graph.lines(executables[0], case) if executables else tape.lines(case)
    except Exception as error:  # noqa: BLE001  (whatever a mode raises is what its row says)
        return SourceLinesRow("unsupported" if engines.refuses(mode, error) else "failed", describe_error(error))


def texts(f: Callable[..., Any], lines: Iterable[str]) -> dict[str, str]:
    """Return the text of lines such as `model.py:12` in the file of `f`, or of a loaded module with that name."""
    places = {line: line.rpartition(":") for line in lines}
    files = _files(f, {name for name, _, _ in places.values()})
    code = {
        line: linecache.getline(files[name], int(number)).strip()
        for line, (name, _, number) in places.items()
        if name in files
    }
    return {line: text for line, text in code.items() if text}


def _files(f: Callable[..., Any], names: Collection[str]) -> dict[str, str]:
    """Return the path of each file: that of `f`, or of the one loaded module with the name that is not ours."""
    paths: dict[str, set[str]] = {}
    for module in list(sys.modules.values()):
        path = getattr(module, "__file__", None)
        if isinstance(path, str) and Path(path).name in names and not is_internal(path):
            paths.setdefault(Path(path).name, set()).add(path)
    code = getattr(inspect.unwrap(f), "__code__", None)
    if code is not None:
        paths[Path(code.co_filename).name] = {code.co_filename}
    return {name: alike.pop() for name, alike in paths.items() if len(alike) == 1}
