"""An ideal reference-counting tape: its peak of live bytes is the liveness lower bound of the same graph and order.

Random graphs are run forward and backward. Every kernel call is written down, which gives the bound: a result lives
from the call that makes it to the last that reads it, or a view of it, and no order of the same calls with the same
values kept can do with less than the largest sum of what lives at one call. What the tape really holds is counted by
tracemalloc, in a second run with nobody watching. There the cotangent of a slice is added in place, where those who
watch see zeros made around it and a sum of wholes: the bound counts it as one call, which makes a whole only where it
may not write over the one that is held.
"""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

import dynamic
import graphs as g
from compare.instruments.memory import numpy_memory
from dynamic import tapes
from graphs import dispatch
from graphs.ops.shapes import owner_of
from graphs.ops.slicing import place
from tests.helpers.slow import mostly_slow

Array = np.ndarray[Any, Any]
Draw = tuple[Callable[..., Any], tuple[int, ...]]
Random = np.random.Generator


class Step(NamedTuple):
    """One op: a function of values before it, and which of them nobody reads afterwards."""

    run: Callable[..., Any]
    sources: tuple[int, ...]
    last: tuple[int, ...]


class Program(NamedTuple):
    """A function of some arrays, as steps; the loss is made of the values in `outputs`."""

    inputs: list[Array]
    steps: list[Step]

    def __call__(self, inputs: list[Any]) -> Any:
        values = list(inputs)
        for step in self.steps:
            values.append(step.run(*[values[i] for i in step.sources]))
            for i in step.last:
                values[i] = None
        return values[-1]


# Ops whose kernels, and those of their gradients, need no memory beside the result's.
UNARY = [g.tanh, g.exp, g.sin, g.cos, g.square, g.negative, g.expm1, g.atan, g.reciprocal, g.abs, g.log1p, g.sqrt]
BINARY = [g.add, g.subtract, g.multiply, g.divide, g.atan2]
NUMBERS = [
    lambda x: x * 0.5,
    lambda x: 1.5 - x,
    lambda x: x / 3,
    lambda x: 2 / x,
]
MOVES = [
    lambda x: g.permute_dims(x, (1, 0)),
    lambda x: g.reshape(x, (x.shape[1], x.shape[0])),
    lambda x: x[: (x.shape[0] + 1) // 2],
    lambda x: x[0] + x,
    lambda x: g.concat([x, x], axis=0),
]
REDUCTIONS = [
    lambda x: g.sum(x, axis=0, keepdims=True) * x,
    lambda x: x - g.mean(x, axis=1, keepdims=True),
    lambda x: x / g.sum(x, axis=-1, keepdims=True),
]


def random_program(seed: int) -> Program:
    """A DAG over matrices of up to three sizes, with values that several ops read."""
    random = np.random.default_rng(seed)
    rows, columns = (int(n) for n in random.integers(1, 40, 2))
    inputs = [random.uniform(0.5, 1.5, (rows, columns)) for _ in range(random.integers(1, 4))]
    inputs += [random.uniform(0.5, 1.5, columns), random.uniform(0.5, 1.5, (columns, columns))]
    values = list(inputs)
    drawn: list[Draw] = []
    for _ in range(random.integers(3, 16)):
        run, sources = _draw(random, values)
        with np.errstate(all="ignore"):
            values.append(run(*[values[i] for i in sources]))
        drawn.append((run, sources))
    return _program(inputs, [*drawn, (g.tanh, (len(values) - 1,)), (g.sum, (len(values),))])


def _program(inputs: list[Array], drawn: list[Draw]) -> Program:
    """The steps that lead to the last one, on the inputs that do: what leads nowhere is saved for nobody."""
    used = sorted(_leading_to(drawn, len(inputs)))
    number = {old: new for new, old in enumerate(used)}
    first = sum(old < len(inputs) for old in used)
    kept = [drawn[old - len(inputs)] for old in used[first:]]
    reads = [tuple([number[i] for i in sources]) for _, sources in kept]
    last = {i: at for at, sources in enumerate(reads) for i in sources}
    steps = [
        Step(run, r, tuple({i for i in r if last[i] == at}))
        for at, ((run, _), r) in enumerate(zip(kept, reads, strict=True))
    ]
    return Program([inputs[old] for old in used[:first]], steps)


def _leading_to(drawn: list[Draw], first: int) -> set[int]:
    """The numbers of the values that the last one is made of."""
    found = {first + len(drawn) - 1}
    for number in range(first + len(drawn) - 1, first - 1, -1):
        if number in found:
            found.update(drawn[number - first][1])
    return found


def _draw(random: Random, values: list[Array]) -> Draw:
    """An op and operands that fit it; the latest values are the likeliest."""
    chances = 1.3 ** np.arange(len(values))
    while True:
        i, j = (int(i) for i in random.choice(len(values), 2, p=chances / chances.sum()))
        kind = random.choice(
            ["unary", "binary", "number", "move", "reduction", "matmul"], p=[0.3, 0.3, 0.1, 0.1, 0.1, 0.1]
        )
        if kind == "binary" and _broadcast(values[i], values[j]):
            return BINARY[random.integers(len(BINARY))], (i, j)
        if kind == "matmul" and values[i].ndim == values[j].ndim == 2 and values[i].shape[1] == values[j].shape[0]:
            return g.matmul, (i, j)
        options = {"unary": UNARY, "number": NUMBERS, "move": MOVES, "reduction": REDUCTIONS}.get(str(kind))
        if options and (values[i].ndim == 2 or kind in ("unary", "number")):
            return options[random.integers(len(options))], (i,)


def _broadcast(x: Array, y: Array) -> bool:
    return max(x.ndim, y.ndim) == 2 and all(
        m == n or 1 in (m, n) for m, n in zip(x.shape[::-1], y.shape[::-1], strict=False)
    )


class Calls:
    """Every kernel call: the memory that its result owns or looks at, and the memory that it reads."""

    def __init__(self, inputs: list[Array]) -> None:
        self.calls: list[tuple[int, list[int]]] = []
        self.placed: set[int] = set()
        self.over: dict[
            int, int
        ] = {}  # by each sum with a slice what it may be written over, if nobody reads that later
        self.nbytes: dict[int, int] = {}
        self.kept: list[Array] = []
        self.given = {id(owner_of(x)) for x in inputs}

    def __call__(self, op: Any, arrays: Any, attrs: Any, out: Array) -> None:
        owner = owner_of(out)
        self.kept.append(owner)  # so that no identity is used twice
        self.nbytes.setdefault(id(owner), owner.nbytes)
        read = [owner_of(a) for a in arrays if isinstance(a, np.ndarray)]
        self.kept += read
        if op is g.add and self.placed and id(arrays[1]) == self.calls[-1][0] in self.placed:
            self._add_at(id(owner), arrays[0])
        else:
            self.calls.append((id(owner), [id(owner) for owner in read]))
        if op is place:
            self.placed.add(id(owner))

    def _add_at(self, made: int, held: Array) -> None:
        """One call in place of the last, which put zeros around a slice, and of the sum of that and what was held."""
        _, read = self.calls.pop()
        self.calls.append((made, [id(owner_of(held)), *read]))
        if held.base is None:
            self.over[made] = id(held)

    def bound(self, results: list[Array]) -> int:
        """The most bytes that live at one call; the results live to the end."""
        first: dict[int, int] = {}
        last: dict[int, int] = {}
        for at, (made, read) in enumerate(self.calls):
            first.setdefault(made, at)
            last |= dict.fromkeys([made, *read], at)
        last |= {id(owner_of(r)): len(self.calls) for r in results}
        for made, held in self.over.items():
            if last[held] == first[made] and held not in self.given:
                last[held] -= 1
        changes = np.zeros(len(self.calls) + 2, int)
        for owner, at in first.items():
            if owner not in self.given:
                changes[at] += self.nbytes[owner]
                changes[last[owner] + 1] -= self.nbytes[owner]
        return int(np.cumsum(changes).max())


def lower_bound(program: Program) -> int:
    with dispatch.observe_kernels(calls := Calls(program.inputs)):
        value, gradients = dynamic.value_and_grad(program)(program.inputs)
    return calls.bound([value, *gradients])


A_NUMBER = 8  # bytes: what a kernel asks of an array, such as whether it has a NaN, is one


def peak(program: Program) -> int:
    step = dynamic.value_and_grad(program)
    for _ in range(2):  # code and constants are made on the first runs
        step(program.inputs)
    before = tracemalloc.get_traced_memory()[0]
    tracemalloc.reset_peak()
    step(program.inputs)
    return tracemalloc.get_traced_memory()[1] - before


@pytest.fixture(scope="module", autouse=True)
def counting() -> Iterator[None]:
    gc.disable()
    try:
        with numpy_memory(), np.errstate(all="ignore"):
            yield
    finally:
        gc.enable()


@pytest.mark.skipif(not tapes.is_compiled(), reason="the tape in Python holds the inputs of a rule until it returns")
@pytest.mark.parametrize("block", mostly_slow(range(20), 2))
def test_the_peak_of_the_tape_is_the_lower_bound(block: int) -> None:
    for seed in range(100 * block, 100 * block + 100):
        program = random_program(seed)
        assert 0 <= peak(program) - lower_bound(program) <= A_NUMBER, seed


def test_what_is_held_for_longer_is_noticed() -> None:
    """The comparison fails when a list of the program holds values that the tape has dropped."""
    held: list[Any] = []

    def doubled(x: Any) -> Any:
        held.append(x + x)
        return held[-1]

    steps = [Step(doubled, (0,), ()), Step(g.negative, (1,), (1,)), Step(g.tanh, (2,), (2,)), Step(g.sum, (3,), (3,))]
    program = Program([np.ones((30, 20))], steps)
    assert peak(program) > lower_bound(program)
