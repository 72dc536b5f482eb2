"""The ways of the dynamic engine: each takes a case, and asserts that it gives what the others give."""

from __future__ import annotations

import atexit
import functools
import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import dynamic
import graphs as g
from dynamic.batching.batch import SCHEDULES
from tests.fuzz.cases import STEP, Case, agree, near, plain, same_bits
from tests.helpers.random_ops import as_double

ROOT = Path(__file__).resolve().parents[2]
COPIES = 3

Way = Callable[[Case], None]


def eager(case: Case) -> None:
    """Plain arrays, without an engine, are those of NumPy in float64."""
    values = case.program.values(case.program.inputs)
    expected = case.program.reference_values(case.program.inputs)
    for number, (a, b) in enumerate(zip(values, expected, strict=True)):
        assert np.shape(a) == b.shape, f"v{number} has shape {np.shape(a)}, and not {b.shape}"
        near(as_double(a), b, case.tolerance, f"v{number}")


def tape(case: Case) -> None:
    """The tape: values and dtypes are those of plain arrays, and gradients those of finite differences."""
    (value, outputs), gradient = case.expected
    agree((value, outputs), case.step(*case.args), case.tolerance, "values")
    like = [(x.shape, x.dtype) for x in g.tree.leaves(case.args[0])]
    assert [(x.shape, x.dtype) for x in g.tree.leaves(gradient)] == like
    if case.program.smooth:
        slope(case, g.tree.leaves(gradient))


def slope(case: Case, gradient: list[Any]) -> None:
    """The gradient along a random direction is the central difference of NumPy in float64."""
    point = [as_double(x) for x in g.tree.leaves(case.args[0])]
    directions = [case.random.normal(size=x.shape) for x in point]
    structure = g.tree.flatten(case.args[0])[1]

    def reference(sign: int) -> float:
        moved = g.tree.unflatten(structure, [x + sign * STEP * d for x, d in zip(point, directions, strict=True)])
        return case.program.reference(case.split.inputs(moved, case.args[1])) * case.args[1]["n"]

    along = [plain(x).astype(np.float64) * d for x, d in zip(gradient, directions, strict=True)]
    difference = (reference(1) - reference(-1)) / (2 * STEP)
    bound = max(3e-5, case.tolerance) * (1 + sum(float(np.sum(np.abs(x))) for x in along))
    assert abs(sum(float(np.sum(x)) for x in along) - difference) < bound, (
        f"slope {sum(map(np.sum, along))}, {difference}"
    )


def backward(case: Case) -> None:
    """Leaves with `requires_grad`, also among the data, `backward()`, and `grad`."""
    leaves = [dynamic.tensor(x, requires_grad=x.dtype.kind == "f") for x in case.program.inputs]
    value, outputs = case.step(*case.at(leaves))
    if getattr(value, "requires_grad", False):  # a program without outputs of floats gives a number
        value.backward()
    found = [np.zeros_like(plain(x)) if x.grad is None else x.grad.numpy() for x in leaves]
    params, _ = case.at(found)
    agree(((value, outputs), params), case.expected, case.tolerance)


def without_gradients(case: Case) -> None:
    """`no_grad` and `inference_mode` compute the same, and record nothing."""
    (value, outputs), _ = case.expected
    leaves = [dynamic.tensor(x, requires_grad=x.dtype.kind == "f") for x in case.program.inputs]
    for mode in (dynamic.no_grad, dynamic.inference_mode):
        with mode():
            found = case.step(*case.at(leaves))
        made = [x for x in g.tree.leaves(found) if not any(x is leaf for leaf in leaves)]
        assert not any(getattr(x, "requires_grad", False) for x in made)
        agree(found, (value, outputs), case.tolerance, mode.__name__)


def pooled(case: Case) -> None:
    """In a pool of arrays of any size, twice."""
    step = dynamic.value_and_grad(case.step, has_aux=True)
    with dynamic.pool(threshold=1):
        found = [step(*case.args) for _ in range(2)]
    for one in found:
        same_bits(one, case.expected)


def checkpointed(case: Case) -> None:
    """A part that is run again in backward, or all in one that nests another."""
    part = case.slices()

    def step(params: Any, data: Any) -> Any:
        return case.result(case.through(case.split.inputs(params, data), part, _checkpoint))

    for one in (step, _checkpoint(step)):
        same_bits(dynamic.value_and_grad(one, has_aux=True)(*case.args), case.expected)


def _checkpoint(f: Callable[..., Any]) -> Callable[..., Any]:
    return functools.partial(dynamic.checkpoint, f)


def batched(case: Case, strategy: str) -> None:
    """Copies with other numbers, in one batch; in half of the cases a part of each is a cell."""
    part = case.slices()
    in_cells = case.random.random() < 0.5
    copies = [[_nudged(x, i) for x in case.program.inputs] for i in range(COPIES)]
    expected = [dynamic.value_and_grad(case.step, has_aux=True)(*case.at(x)) for x in copies]
    leaves = [[dynamic.tensor(x, requires_grad=x.dtype.kind == "f") for x in inputs] for inputs in copies]
    with dynamic.batched(strategy):
        called = _celled(case, part) if in_cells else case.program.values
        found = [case.result(called(inputs)) for inputs in leaves]
        total = sum(value for value, _ in found)
    if getattr(total, "requires_grad", False):
        total.backward()
    for (values, inputs), one in zip(zip(found, leaves, strict=True), expected, strict=True):
        gradient = [np.zeros_like(plain(x)) if x.grad is None else x.grad.numpy() for x in inputs]
        agree((values, case.at(gradient)[0]), one, case.tolerance)


def _nudged(x: Any, number: int) -> Any:
    """Almost the same numbers, which are as far from jumps."""
    return np.asarray(x * (1 + number * 1e-6), x.dtype) if x.dtype.kind == "f" else x


def _celled(case: Case, part: tuple[int, int]) -> Callable[[list[Any]], list[Any]]:
    cells: list[Any] = []

    def once(f: Callable[..., Any]) -> Any:  # one cell for all copies
        cells.append(dynamic.cell(f) if not cells else cells[0])
        return cells[0]

    return lambda inputs: case.through(inputs, part, once)


def observed(case: Case) -> None:
    """While ops are observed nothing goes by a shortcut: values are the same to the bit."""
    results: list[Any] = []

    def step(params: Any, data: Any) -> Any:
        results.append(dynamic.value_and_grad(case.step, has_aux=True)(params, data))
        return results[0][0][0]

    dynamic.record(step, *case.args)
    agree(results[0], case.expected, case.tolerance)


# The tape in Python -----------------------------------------------------------------------------------------------


def in_python(case: Case) -> None:
    """The tape in Python, in a process of its own, gives every bit, and the same error."""
    assert _other().ask(case.program.seed) == digest(case)


def digest(case: Case) -> str:
    """Every bit of values and gradients."""
    try:
        leaves = [plain(x) for x in g.tree.leaves(case.expected)]
    except g.GraphError as error:
        return f"{type(error).__name__}"
    return hashlib.sha256(b"".join(str((x.shape, x.dtype)).encode() + x.tobytes() for x in leaves)).hexdigest()


class _Process:
    """A process with the tape in Python that is asked for digests by seed."""

    def __init__(self) -> None:
        told = {**os.environ, "GRAPHDUEL_TAPE": "python", "PYTHONPATH": str(ROOT)}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.fuzz.answers"], cwd=ROOT, env=told, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        atexit.register(self.end)

    def end(self) -> None:
        """Nobody asks any more."""
        self.process.communicate()

    def ask(self, seed: int) -> str:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(seed, file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline().strip()
        assert answer, "the process with the tape in Python has ended"
        return answer


@functools.cache
def _other() -> _Process:
    return _Process()


WAYS: dict[str, Way] = {
    "eager": eager,
    "tape": tape,
    "backward": backward,
    "without_gradients": without_gradients,
    "pool": pooled,
    "checkpoint": checkpointed,
    **{f"batched_{name}": functools.partial(batched, strategy=name) for name in SCHEDULES},
    "observed": observed,
    "python_tape": in_python,
}
