"""Of a timed call nothing but the user's call and its backward pass runs: no code of the harness does."""

from __future__ import annotations

import sys
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import compare
from compare import engines
from compare.engines.step import Step
from compare.instruments.bench import steady_call

HOME = str(Path(compare.__file__).parent)
W, X = np.ones((3, 2), np.float32), np.ones((4, 3), np.float32)
FRAMES = {
    ("graphduel", "dynamic"): (0, 0),
    ("graphduel", "static-exact"): (0, 0),
    ("autograd", ""): (0, 1),
    ("torch", "eager"): (1, 0),
    ("torch", "aot-eager"): (1, 0),
    ("jax", "eager"): (1, 1),
    ("jax", "jit"): (1, 1),
    ("tensorflow", "eager"): (1, 0),
    ("tensorflow", "function"): (1, 1),
}
"""For modes of adapters: the most frames of a call with gradients, and of one without."""


def frames(run):
    """The functions of the harness that a call runs, by how often."""
    seen = Counter()

    def note(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(HOME):
            seen[f"{Path(frame.f_code.co_filename).name}:{frame.f_code.co_qualname}"] += 1

    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    return seen


def loss(w, x):
    """A loss by operators alone, so that every framework takes it."""
    return ((x @ w) ** 2).sum()


def step_of(name, short, gradient):
    engine = engines.find_engine(name)
    engine.start(0)
    mode = next(mode for mode in engine.mode_names if engine.traits(mode).name == short)
    calls = [engine.arrays((W, X))]
    return Step(engine, engine.build(mode, by_engine(name), 0 if gradient else None), calls)


def by_engine(name):
    if name != "tensorflow":
        return loss
    import tensorflow as tf

    return lambda w, x: tf.reduce_sum((x @ w) ** 2)


def cases():
    for (name, mode), most in FRAMES.items():
        marks = [pytest.mark.peers, pytest.mark.slow] if name in ("torch", "jax", "tensorflow") else []
        yield pytest.param(name, mode, most, id=f"{name}-{mode}", marks=marks)


@pytest.mark.parametrize(("name", "mode", "most"), [*cases()])
def test_a_timed_call_runs_next_to_no_code_of_the_harness(name, mode, most):
    if find_spec(engines.find_engine(name).module) is None:
        pytest.skip(f"{name} is not installed")
    for gradient, bound in zip((True, False), most, strict=True):
        step = step_of(name, mode, gradient)
        call = steady_call(step)
        with step.within():
            call()
            found = frames(call)
        assert found.total() <= bound, found
