"""A program that still fails, with as few steps as can be found by leaving out one after the other."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np

from tests.fuzz.cases import Case
from tests.fuzz.run import outcome
from tests.helpers.random_graphs import Program


def smaller(program: Program, way: str) -> Program:
    """The smallest that was found which fails with an error of the same type."""
    wanted = _failure(program, way)
    found = Case(program).refusal is None  # one that breaks a rule is told as it is
    while found and wanted is not None:
        found = False
        for one in _reduced(program):
            if _failure(one, way) is wanted:
                program, found = one, True
                break
    return program


def _failure(program: Program, way: str) -> type[Exception] | None:
    try:
        outcome(Case(program), way)
    except Exception as error:  # noqa: BLE001  (whatever it is)
        return type(error)
    return None


def _reduced(program: Program) -> Iterator[Program]:
    """With one output, without what nobody reads, or with the value of a step as an input."""
    if len(program.outputs) > 1:
        for output in program.outputs:
            yield dataclasses.replace(program, outputs=(output,))
    pruned = _pruned(program)
    if len(pruned.steps) + len(pruned.inputs) < len(program.steps) + len(program.inputs):
        yield pruned
    values = [np.asarray(x) for x in program.values(program.inputs)]
    for place in reversed(range(len(program.steps))):
        cut = _cut(program, place, values)
        yield _pruned(cut)
        yield cut


def _cut(program: Program, place: int, values: list[np.ndarray]) -> Program:
    """The program where the value of a step is an input."""
    count = len(program.inputs)
    at = count + place
    order = [*range(count), at, *range(count, at), *range(at + 1, len(values))]
    where = {old: new for new, old in enumerate(order)}
    steps = [
        step._replace(sources=tuple(where[i] for i in step.sources))
        for i, step in enumerate(program.steps)
        if i != place
    ]
    return dataclasses.replace(
        program,
        inputs=(*program.inputs, values[at]),
        steps=tuple(steps),
        outputs=tuple(where[i] for i in program.outputs),
    )


def _pruned(program: Program) -> Program:
    """Without the steps and inputs that no output depends on; one input of floats stays."""
    count = len(program.inputs)
    read = set(program.outputs)
    for i, step in reversed([*enumerate(program.steps, count)]):
        read |= set(step.sources) if i in read else set()
    if not any(program.inputs[i].dtype.kind == "f" for i in read if i < count):
        read.add(next(i for i, x in enumerate(program.inputs) if x.dtype.kind == "f"))
    kept = sorted(read)
    where = {old: new for new, old in enumerate(kept)}
    steps = [program.steps[i - count] for i in kept if i >= count]
    return dataclasses.replace(
        program,
        inputs=tuple(program.inputs[i] for i in kept if i < count),
        steps=tuple(step._replace(sources=tuple(where[i] for i in step.sources)) for step in steps),
        outputs=tuple(where[i] for i in program.outputs),
    )
