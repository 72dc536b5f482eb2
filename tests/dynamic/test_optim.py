"""Optimisers: PyTorch's numbers step by step, from one pure function, in both engines."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dynamic
import graphs as g
import static
from graphs import optim
from tests.helpers.engines import ENGINES, gradients, run

GOLDEN = json.loads((Path(__file__).parents[1] / "data" / "optim_golden.json").read_text("utf-8"))
CASES = [pytest.param(case, id=f"{case['optimiser']}-{i}-{case['dtype']}") for i, case in enumerate(GOLDEN["cases"])]
SHAPES = {"layers": [{"w": (2, 3), "b": (3,)}], "scale": ()}
TOLERANCE = {"float32": 2e-6, "float64": 1e-13}

each_case = pytest.mark.parametrize("case", CASES)
each_engine = pytest.mark.parametrize("engine", ENGINES)
same = np.testing.assert_array_equal


def filled(dtype: str, factor: int, offset: int, modulus: int) -> Any:
    """A container of small binary fractions of both signs, the same on every machine."""

    def fill(shape: tuple[int, ...]) -> np.ndarray:
        numbers = factor * np.arange(1, 1 + int(np.prod(shape))) + offset
        return np.asarray((numbers % modulus - modulus // 2) / 4, dtype).reshape(shape)

    containers = {"layers": [{k: fill(v) for k, v in layer.items()} for layer in SHAPES["layers"]]}
    return containers | {"scale": fill(SHAPES["scale"])}


def gradients_of(step: int, dtype: str) -> Any:
    return filled(dtype, 7, 5 * step, 11)


def flat(container: Any) -> list[float]:
    return [float(x) for leaf in g.tree.leaves(container) for x in np.ravel(np.asarray(leaf))]


def walk(update: Callable[..., Any], state: Any, dtype: str, steps: int, convert: Any = np.asarray) -> list[Any]:
    """The parameters after each step."""
    params, seen = g.tree_map(convert, filled(dtype, 3, 0, 7)), []
    state = g.tree_map(convert, state)
    for step in range(steps):
        params, state = update(g.tree_map(convert, gradients_of(step, dtype)), state, params)
        seen.append(params)
    return seen


def made(case: dict[str, Any]) -> optim.Optimizer:
    return getattr(optim, case["optimiser"])(**case["arguments"])


def close(ours: list[Any], case: dict[str, Any]) -> None:
    np.testing.assert_allclose([flat(p) for p in ours], case["params"], rtol=TOLERANCE[case["dtype"]], atol=1e-7)
    assert {leaf.dtype.name for p in ours for leaf in g.tree.leaves(p)} == {case["dtype"]}


# PyTorch's numbers --------------------------------------------------------------------------------------------------


@each_case
def test_arrays_and_tensors_step_as_in_pytorch(case):
    optimizer, steps = made(case), len(case["params"])
    state = optimizer.init(filled(case["dtype"], 3, 0, 7))
    close(walk(optimizer.update, state, case["dtype"], steps), case)
    tensors = walk(optimizer.update, state, case["dtype"], steps, dynamic.tensor)
    assert all(type(leaf) is dynamic.Tensor for leaf in g.tree.leaves(tensors))
    close(tensors, case)


@each_case
def test_a_compiled_update_steps_as_in_pytorch_and_is_compiled_once(case):
    optimizer, steps = made(case), len(case["params"])
    update = static.jit(optimizer.update)
    close(walk(update, optimizer.init(filled(case["dtype"], 3, 0, 7)), case["dtype"], steps), case)
    assert update.stats.compiles == 1


def in_torch(torch: Any, case: dict[str, Any]) -> list[list[float]]:
    options = dict(case["arguments"])
    options["lr"] = options.pop("learning_rate")
    if case["optimiser"] == "adam":
        options["betas"] = (options.pop("b1", 0.9), options.pop("b2", 0.999))
        options.setdefault("weight_decay", 0.0)
    params = [torch.tensor(leaf, requires_grad=True) for leaf in g.tree.leaves(filled(case["dtype"], 3, 0, 7))]
    optimizer = {"sgd": torch.optim.SGD, "adam": torch.optim.AdamW}[case["optimiser"]](params, **options)
    seen = []
    for step in range(len(case["params"])):
        for param, leaf in zip(params, g.tree.leaves(gradients_of(step, case["dtype"])), strict=True):
            param.grad = torch.tensor(leaf)
        optimizer.step()
        seen.append(flat([param.detach().numpy() for param in params]))
    return seen


@pytest.mark.peers
@each_case
def test_pytorch_still_steps_like_that(case):
    torch = pytest.importorskip("torch")
    np.testing.assert_allclose(in_torch(torch, case), case["params"], rtol=TOLERANCE[case["dtype"]], atol=1e-7)


@pytest.mark.peers
@pytest.mark.parametrize("limit", [0.0, 0.5, 3.0, 100.0])
def test_clipping_is_pytorchs(limit):
    torch = pytest.importorskip("torch")
    ours = gradients_of(1, "float32")
    for clip, peer in ((optim.clip_by_global_norm, "clip_grad_norm_"), (optim.clip_by_value, "clip_grad_value_")):
        params = [torch.zeros(leaf.shape, requires_grad=True) for leaf in g.tree.leaves(ours)]
        for param, leaf in zip(params, g.tree.leaves(ours), strict=True):
            param.grad = torch.tensor(leaf)
        norm = getattr(torch.nn.utils, peer)(params, limit)
        theirs = flat([param.grad.numpy() for param in params])
        np.testing.assert_allclose(flat(clip(ours, limit)), theirs, rtol=1e-6)
        if norm is not None:
            np.testing.assert_allclose(optim.global_norm(ours), norm.item(), rtol=1e-6)


# The learning rate and the state ------------------------------------------------------------------------------------


@each_engine
@pytest.mark.parametrize("kind", [optim.sgd, partial(optim.sgd, momentum=0.9), partial(optim.adam, weight_decay=0.1)])
@pytest.mark.parametrize("rate_dtype", ["float32", "float64"])
def test_a_schedule_is_an_argument_and_compiles_once(engine, kind, rate_dtype):
    def step(rate, grads, state, params):
        return kind(rate).update(grads, state, params)

    scheduled = static.jit(step) if engine == "static" else step
    params = expected = filled("float32", 3, 0, 7)
    state = other = kind(0.1).init(params)
    for i, rate in enumerate([0.5, 0.25, 0.125]):
        grads = gradients_of(i, "float32")
        params, state = scheduled(np.asarray(rate, rate_dtype), grads, state, params)
        expected, other = kind(rate).update(grads, other, expected)
        np.testing.assert_allclose(flat(params), flat(expected), rtol=1e-6, atol=1e-7)
    assert {leaf.dtype.name for leaf in g.tree.leaves(params)} == {"float32"}
    assert engine == "dynamic" or scheduled.stats.compiles == 1


def test_state_is_arrays_laid_out_like_the_parameters():
    params = filled("float32", 3, 0, 7)
    assert optim.sgd(0.1).init(params) == {}
    state = optim.adam(0.1).init(params)
    for _ in range(3):
        params, state = optim.adam(0.1).update(params, state, params)
    assert set(state) == {"count", "mean", "variance"}
    assert g.tree.flatten(state["mean"])[1] == g.tree.flatten(params)[1]
    assert all(isinstance(leaf, np.ndarray) for leaf in g.tree.leaves(state))
    assert state["count"] == 3
    assert state["count"].dtype == np.int64


def test_update_changes_nothing_in_place():
    params, grads = filled("float64", 3, 0, 7), gradients_of(0, "float64")
    for optimizer in (optim.sgd(0.1, momentum=0.9), optim.adam(0.1)):
        state = optimizer.init(params)
        before = flat((params, grads, state))
        optimizer.update(optim.clip_by_global_norm(grads, 0.1), state, params)
        assert flat((params, grads, state)) == before


def test_each_leaf_keeps_its_own_dtype():
    params = {"half": np.ones(2, np.float16), "single": np.ones(2, np.float32), "double": np.ones(2)}
    for optimizer in (optim.sgd(np.float64(0.1), momentum=0.9, weight_decay=0.1), optim.adam(0.1, eps=1e-4)):
        for update in (optimizer.update, static.jit(optimizer.update)):
            grads = optim.clip_by_value(optim.clip_by_global_norm(params, np.float64(1.0)), np.float64(1.0))
            found, state = update(grads, optimizer.init(params), params)
            for tree in (grads, found, *(slot for name, slot in state.items() if name != "count")):
                assert {name: leaf.dtype for name, leaf in tree.items()} == {k: v.dtype for k, v in params.items()}


def test_a_container_may_hold_nothing():
    for optimizer in (optim.sgd(0.1, momentum=0.9), optim.adam(0.1)):
        assert optimizer.update({}, optimizer.init({}), {})[0] == {}
    assert optim.clip_by_global_norm({"frozen": None}, 1.0) == {"frozen": None}


@each_engine
def test_an_update_can_be_differentiated_in_its_learning_rate(engine):
    def after_one_step(rate, x):  # (x - 2 rate x) ** 2
        stepped, _ = optim.sgd(rate).update({"x": 2 * x}, {}, {"x": x})
        return stepped["x"] ** 2

    slope, _ = gradients(engine, after_one_step, np.array(0.25), np.array(3.0))
    np.testing.assert_allclose(slope, -4 * 9 * (1 - 2 * 0.25))


# Clipping -----------------------------------------------------------------------------------------------------------

TRIANGLE = {"a": np.array([3.0, 0.0], np.float32), "b": [np.array(-4.0, np.float32)]}


@each_engine
def test_the_global_norm_and_what_it_scales(engine):
    def clipped(a, b):
        return g.stack([*g.tree.leaves(optim.clip_by_global_norm([a, b], 1.0))])

    found = run(engine, clipped, np.array(3.0), np.array(-4.0))
    np.testing.assert_allclose(found, np.array([3.0, -4.0]) / (5 + 1e-6), rtol=1e-12)
    assert run(engine, lambda a, b: optim.global_norm([a, b]), np.array(3.0), np.array(-4.0)) == 5


def test_gradients_below_the_limit_stay_as_they_are():
    same(flat(optim.clip_by_global_norm(TRIANGLE, 5.1)), flat(TRIANGLE))
    same(flat(optim.clip_by_value(TRIANGLE, 4)), flat(TRIANGLE))


def test_clip_by_value_limits_each_element():
    assert flat(optim.clip_by_value(TRIANGLE, 3.5)) == [3.0, 0.0, -3.5]


@each_engine
def test_a_limit_may_be_traced(engine):
    def clipped(x, limit):
        return optim.clip_by_value([x], limit)[0] + optim.clip_by_global_norm([x], limit)[0]

    found = run(engine, clipped, np.array([3.0, -4.0], np.float32), np.array(1.0))
    np.testing.assert_allclose(found, [1.6, -1.8], rtol=1e-6)
    assert found.dtype == np.float32


@given(st.lists(st.floats(-1e3, 1e3, width=32), max_size=8), st.floats(0.01, 100))
def test_clipping_keeps_the_direction_and_the_limit(values, limit):
    grads = {"all": np.array(values, np.float32)}
    clipped = optim.clip_by_global_norm(grads, limit)
    norm = float(optim.global_norm(clipped))
    assert norm <= limit * (1 + 1e-5)
    if norm > 1e-3:
        expected = grads["all"] * (norm / float(optim.global_norm(grads)))
        np.testing.assert_allclose(clipped["all"], expected, rtol=1e-4, atol=1e-6)


def test_the_norm_of_nothing_and_of_zeros_is_zero_with_gradient_zero():
    assert optim.global_norm([]) == 0
    same(dynamic.grad(lambda x: optim.global_norm([x]))(np.zeros(3)), np.zeros(3))


def test_half_precision_squares_do_not_overflow():
    assert optim.global_norm([np.full(4, 1000, np.float16)]) == 2000


def test_one_nan_shows_in_every_leaf():
    assert np.isnan(flat(optim.clip_by_global_norm({"a": np.ones(2), "b": np.array([np.nan])}, 1.0))).all()


# A whole training step ----------------------------------------------------------------------------------------------


def loss(params: Any, x: Any, y: Any) -> Any:
    (first, second), scale = params["layers"], params["scale"]
    hidden = g.tanh(x @ first["w"] + first["b"])
    return g.mean((hidden @ second["w"] + second["b"] - scale * y) ** 2)


def train_step(optimizer: optim.Optimizer, engine: ModuleType, params: Any, state: Any, x: Any, y: Any) -> Any:
    value, grads = engine.value_and_grad(loss)(params, x, y)
    params, state = optimizer.update(optim.clip_by_global_norm(grads, 1.0), state, params)
    return value, params, state


def regression() -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    layers = [{"w": rng.normal(size=(4, 8)), "b": np.zeros(8)}, {"w": rng.normal(size=(8, 1)), "b": np.zeros(1)}]
    x = rng.normal(size=(16, 4))
    data = {"layers": layers, "scale": np.ones(())}, x, np.sin(x[:, :1])
    return g.tree_map(lambda leaf: leaf.astype(np.float32), data)


OPTIMIZERS = {
    "sgd": optim.sgd(0.05),
    "momentum": optim.sgd(0.02, momentum=0.9, nesterov=True, weight_decay=1e-3),
    "adam": optim.adam(0.02),
    "adamw": optim.adam(0.02, weight_decay=0.01),
}
each_optimizer = pytest.mark.parametrize("optimizer", OPTIMIZERS.values(), ids=OPTIMIZERS)


@each_optimizer
def test_one_training_step_for_both_engines_gives_one_curve(optimizer):
    steps = {
        "dynamic": partial(train_step, optimizer, dynamic),
        "static": static.jit(partial(train_step, optimizer, static)),
    }
    curves: dict[str, list[float]] = {}
    for engine, step in steps.items():
        params, x, y = regression()
        state, curves[engine] = optimizer.init(params), []
        for _ in range(60):
            value, params, state = step(params, state, x, y)
            curves[engine].append(float(value))
    np.testing.assert_allclose(curves["static"], curves["dynamic"], rtol=1e-4)
    assert curves["dynamic"][-1] < 0.2 * curves["dynamic"][0]
    assert steps["static"].stats.compiles == 1


@each_optimizer
def test_both_engines_run_the_same_graph_update_included(optimizer):
    params, x, y = regression()
    args = params, optimizer.init(params), x, y
    tape = dynamic.record(partial(train_step, optimizer, dynamic), *args)
    assert g.isomorphic(tape, static.trace(partial(train_step, optimizer, static), *args))


# Refusals -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: optim.sgd(-0.1), "learning_rate is 0 or more, not -0.1"),
        (lambda: optim.sgd(float("nan")), "learning_rate is 0 or more, not nan"),
        (lambda: optim.sgd(0.1, momentum=-1.0), "momentum is 0 or more"),
        (lambda: optim.sgd(0.1, nesterov=True), "give a momentum above 0"),
        (lambda: optim.adam(0.1, b1=1.0), "b1 and b2 are averaging weights"),
        (lambda: optim.adam(0.1, b2=-0.1), "b1 and b2 are averaging weights"),
        (lambda: optim.adam(0.1, eps=-1.0), "eps is 0 or more"),
        (lambda: optim.adam(0.1, weight_decay=-1.0), "weight_decay is 0 or more"),
        (lambda: optim.clip_by_value([], -1.0), "limit is 0 or more"),
        (lambda: optim.clip_by_global_norm([], -1.0), "limit is 0 or more"),
    ],
)
def test_numbers_that_make_no_sense_are_refused(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_gradients_and_state_fit_the_parameters():
    optimizer, params = optim.sgd(0.1, momentum=0.9), {"w": np.ones((4, 3)), "b": np.ones(3)}
    state = optimizer.init(params)
    with pytest.raises(g.ShapeError, match="gradients laid out as"):
        optimizer.update({"w": params["w"]}, state, params)
    with pytest.raises(g.ShapeError, match=r"gradients of shape \(3,\) for params of shape \(4, 3\)"):
        optimizer.update({"w": np.ones(3), "b": np.ones(3)}, state, params)
    with pytest.raises(g.ShapeError, match="velocity of shape"):
        optimizer.update(params, {"velocity": {"w": np.ones((4, 4)), "b": np.ones(3)}}, params)


# Without a record of PyTorch's: by their formulas -------------------------------------------------------------------


def adamax(p, g, state, t):
    mean, largest = 0.8 * state[0] + 0.2 * g, np.maximum(0.9 * state[1], abs(g) + 1e-3)
    return p - 0.1 / (1 - 0.8**t) * mean / largest, (mean, largest)


def radam(p, g, state, t):
    mean, variance = 0.8 * state[0] + 0.2 * g, 0.9 * state[1] + 0.1 * g * g
    length = 19 - 2 * t * 0.9**t / (1 - 0.9**t)
    along = mean / (1 - 0.8**t)
    if length > 5:
        share = (length - 4) * (length - 2) * 19 / (15 * 17 * length)
        along = along * np.sqrt(share * (1 - 0.9**t)) / (np.sqrt(variance) + 1e-3)
    return p - 0.1 * along, (mean, variance)


def adadelta(p, g, state, t):
    squares = 0.8 * state[0] + 0.2 * g * g
    step = np.sqrt(state[1] + 1e-3) / np.sqrt(squares + 1e-3) * g
    return p - 0.1 * step, (squares, 0.8 * state[1] + 0.2 * step * step)


FORMULAS = {
    "adamax": (adamax, optim.adamax(0.1, 0.8, 0.9, 1e-3)),
    "radam": (radam, optim.radam(0.1, 0.8, 0.9, 1e-3)),
    "adadelta": (adadelta, optim.adadelta(0.1, 0.8, 1e-3)),
}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(("formula", "optimiser"), FORMULAS.values(), ids=FORMULAS)
def test_rules_are_their_formulas(formula, optimiser, compiled):
    update = static.jit(optimiser.update) if compiled else optimiser.update
    params = {"w": np.array([1.0, -2.0, 0.5])}
    state, expected, kept = optimiser.init(params), params["w"], (np.zeros(3), np.zeros(3))
    for t in range(1, 12):
        gradient = np.sin(np.arange(3.0) + t)
        params, state = update({"w": gradient}, state, params)
        expected, kept = formula(expected, gradient, kept, t)
        np.testing.assert_allclose(params["w"], expected, rtol=1e-12)
    assert int(state["count"]) == 11


@pytest.mark.parametrize("made", [optim.adamax, optim.radam, optim.adadelta])
def test_numbers_below_0_and_weights_of_1_are_refused(made):
    with pytest.raises(ValueError, match="0 or more"):
        made(-0.1)
    with pytest.raises(ValueError, match="averaging weight"):
        made(0.1, 1.5)
