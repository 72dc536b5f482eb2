"""The parts of a cell in one process: the programs of both engines, timed side by side, and compilation by stages.

The clock is that of the thread. A difference of programs is a small number between large ones, and what other
processes take of the core belongs to no part: its share of the wall time is recorded as `off_core`.
"""

from __future__ import annotations

import time
from typing import Any

import static
from compare import workloads
from compare.engines import cases
from compare.engines.graphduel import functions
from compare.instruments.parts.programs import dynamic_programs, static_programs
from compare.instruments.time.rounds import own_rounds
from compare.records.breakdowns import Parts
from compare.records.job import Job
from compare.workloads.base import Case
from static.call.executable import Executable
from static.passes import pipeline
from static.trace.tracing import trace_function

COMPILES = 3
_PROGRAMS = {"dynamic": dynamic_programs, "static": static_programs}


def measure(job: Job) -> Parts:
    """The parts record of one process, over the example of the median length.

    Raises UnsupportedError for a case without gradients.
    """
    case = cases.alone(workloads.load(job.source).case(str(job.size)))
    return measure_parts(job, case)


def measure_parts(job: Job, case: Case) -> Parts:
    """The blocks of every program of both engines, in seconds a call; and the stages of compilation."""
    programs = {f"{engine} {name}": program for engine, of in _PROGRAMS.items() for name, program in of(case).items()}
    for program in programs.values():
        program()
    rounds, off_core = own_rounds(programs, job.budget, job.random())
    blocks = rounds.steady()
    engines = {
        engine: {name.partition(" ")[2]: seconds for name, seconds in blocks.items() if name.startswith(f"{engine} ")}
        for engine in _PROGRAMS
    }
    return Parts(
        **job.head, engines=engines, off_core=off_core, once=[compiled_by_stages(case) for _ in range(COMPILES)]
    )


def compiled_by_stages(case: Case) -> dict[str, float]:
    """The seconds that each stage of compiling a step takes, and those of a compilation as a whole."""
    step = functions.transformed(static, cases.traced(case), case.argnum)
    arguments = (case.params, *case.examples[0])
    stages: dict[str, float] = {}

    def timed(name: str, stage: Any, *args: Any) -> Any:
        start = time.perf_counter()
        result = stage(*args)
        stages[name] = time.perf_counter() - start
        return result

    timed("whole", static.compile, step, *arguments)
    traced = timed("tracing", trace_function, step, arguments)
    graph, steps = timed("passes", pipeline.run, traced.graph)
    timed("planning", Executable, traced, graph, steps)
    return stages
