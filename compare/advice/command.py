"""What `graphduel advise` asks a worker about a user's function: the command never imports the user's file itself."""

from __future__ import annotations

from pathlib import Path

from compare import advice, steps
from compare.advice import kept
from compare.own import origin
from compare.own.workers import answered
from compare.records.job import Job
from compare.records.own import FunctionAdvice, FunctionFault


def measure(job: Job) -> FunctionAdvice | FunctionFault:
    """What a worker answers: `asked` are the arguments of `advised`."""
    return answered(str(job.size), lambda: advised(**job.asked))


def advised(function: str, *, inputs: str | None, gradient: bool | None, costs: str) -> FunctionAdvice:
    """The advice, by the costs in a file."""
    steps.now(f"imported {function.rpartition(':')[0]}")
    f, calls = origin.called(function, inputs)
    steps.now(f"traced {function}")
    known = advice.load(Path(costs), kept.machine())
    found = advice.advise(f, calls, gradient=gradient, costs=known)
    return FunctionAdvice(str(found), found.to_dict())
