"""Compilations and graph breaks as the frameworks count them, of programs with known numbers, twice in one process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import compare
from compare.records.cells import Compilations
from compare.records.record import records_of

pytestmark = [pytest.mark.peers, pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


class Counted(NamedTuple):
    """A program over some calls, and how often it is compiled and breaks."""

    framework: str
    mode: str
    f: Callable[..., Any]
    calls: list[tuple[Any, ...]]
    compiles: int
    breaks: int = 0


def squares(x):
    return (x * x).sum()


def total(x):
    return x.sum()


def scaled(x, by):
    return (x * by).sum()


def printing(x):
    y = x * 2
    print("between two graphs")
    return (y * y).sum()


def branching(x):
    return (x * 2).sum() if x.sum() > 0 else (x * x).sum()


def rows(*sizes):
    return [(np.ones((size, 3), np.float32),) for size in sizes]


PROGRAMS = {
    "torch, one shape": Counted("torch", "aot-eager", squares, rows(4, 4, 4), 1),
    "torch, a size that varies is dynamic from the second on": Counted("torch", "aot-eager", squares, rows(4, 5, 6), 2),
    "torch, a print": Counted("torch", "aot-eager", printing, rows(4, 4), 2, 1),
    "torch, a branch on a value": Counted("torch", "aot-eager", branching, rows(4, 4), 2, 1),
    "torch, an int that varies": Counted("torch", "aot-eager", scaled, [(*rows(4)[0], by) for by in (2, 3, 4)], 2),
    "torch, two dtypes": Counted(
        "torch", "aot-eager", squares, [*rows(4), (np.ones((4, 3), np.float64),)], 2
    ),
    "jax, one shape": Counted("jax", "jit", squares, rows(4, 4), 1),
    "jax, three shapes": Counted("jax", "jit", squares, rows(4, 5, 6, 4), 3),
    "jax, a number is traced": Counted("jax", "jit", scaled, [(*rows(4)[0], by) for by in (2.0, 3.0, 4.0)], 1),
    "tensorflow, one shape": Counted("tensorflow", "function", None, rows(4, 4), 1),
    "tensorflow, three shapes": Counted("tensorflow", "function", None, rows(4, 5, 6, 4), 3),
    "tensorflow, two dtypes": Counted(
        "tensorflow", "function", None, [*rows(4), (np.ones((4, 3), np.float64),)], 2
    ),
}  # fmt: skip


def in_torch(program):
    import torch
    from torch._dynamo.utils import counters

    torch._dynamo.reset()
    counters.clear()
    calls = [tuple(torch.tensor(x, requires_grad=True) if isinstance(x, np.ndarray) else x for x in call)
             for call in program.calls]  # fmt: skip
    compiled = torch.compile(program.f, backend="aot_eager")
    for call in calls:
        compiled(*call).backward()
    breaks = {**counters["graph_break"], **counters["unimplemented"]}  # a branch on a value is among the latter
    return calls, program.f, (counters["stats"]["unique_graphs"], sum(breaks.values()))


def in_jax(program):
    import jax

    calls = [tuple(jax.numpy.asarray(x) if isinstance(x, np.ndarray) else x for x in call) for call in program.calls]
    compiled = jax.jit(jax.value_and_grad(program.f))
    for call in calls:
        compiled(*call)
    return calls, program.f, (compiled._cache_size(), 0)


def in_tensorflow(program):
    import tensorflow as tf

    def f(x):
        return tf.reduce_sum(x * x)

    def step(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            value = f(x)
        return value, tape.gradient(value, x)

    calls = [tuple(map(tf.constant, call)) for call in program.calls]
    compiled = tf.function(step)
    for call in calls:
        compiled(*call)
    return calls, f, (compiled.experimental_get_tracing_count(), 0)


BY_HAND = {"torch": in_torch, "jax": in_jax, "tensorflow": in_tensorflow}


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_counted_is_what_the_framework_counts(name, capsys):
    program = PROGRAMS[name]
    pytest.importorskip(program.framework)
    calls, f, by_hand = BY_HAND[program.framework](program)
    assert by_hand == (program.compiles, program.breaks)
    for _ in range(2):
        found = compare.compare(
            f, calls, [program.mode], framework=program.framework, processes=0, seconds=0.02, allow_effects=True
        )
        (told,) = records_of(found.records, Compilations)
        row = told.modes[program.mode]
        assert (len(row.made), sum(row.breaks.values())) == by_hand, found


def test_the_phases_of_a_compilation_add_up_to_its_seconds():
    """Both passes are counted: a backward pass compiles by itself, after the call."""
    torch = pytest.importorskip("torch")
    dynamo = pytest.importorskip("compare.engines.torch.dynamo")
    weight = torch.ones(4, 4, requires_grad=True)
    step = torch.compile(lambda x: torch.tanh(x @ weight).sum(), backend="inductor")
    dynamo.forget()
    step(torch.ones(3, 4)).backward()
    (seen,) = dynamo.dynamo_observations([]).compilations
    assert {"Dynamo", "Inductor"} <= {*seen.phases}
    assert sum(seen.phases.values()) == pytest.approx(seen.seconds, rel=0.1)
