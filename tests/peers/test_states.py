"""State in frameworks: what trains is seen in a call, and each look begins with what the first began with."""

from __future__ import annotations

import functools
import os
import queue
import random
import warnings

import numpy as np
import pytest

import compare
import graphs as g
from compare import engines
from compare.engines.process import ByteCounter
from compare.instruments import timing
from compare.instruments.bench import Bench
from compare.own import run
from compare.records.cells import Compilations, Memory, Parity, Time
from compare.records.record import records_of
from tests.helpers.plans import plan_of

pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings("ignore")]


def started(name):
    engine = engines.find_engine(name)
    if engine.missing:
        pytest.skip(engine.missing)
    engine.start(0, doubles=None)
    return engine


def torch_visited():
    import torch

    torch.set_num_threads(2)
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(7)
    torch._dynamo.config.recompile_limit = 5
    torch.set_float32_matmul_precision("high")
    layer = torch.nn.Linear(4, 1)

    def read():
        now = torch.get_default_dtype(), torch.get_float32_matmul_precision(), torch._dynamo.config.recompile_limit
        return *now, torch.get_num_threads(), torch.is_grad_enabled(), torch.get_rng_state().tolist()

    def back():
        torch.set_default_dtype(torch.float32)
        torch.set_float32_matmul_precision("highest")
        torch._dynamo.config.recompile_limit = 8

    def loss(x):
        return (layer(x + torch.rand(4)) + torch.ones(1)).pow(2).mean()

    return loss, [(torch.ones(2, 4),), (torch.ones(3, 4),)], read, torch.get_default_dtype, back


def jax_visited():
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_default_matmul_precision", "float32")

    def loss(w, x):
        return jnp.mean((x @ w) ** 2)

    def back():
        jax.config.update("jax_enable_x64", False)
        jax.config.update("jax_default_matmul_precision", None)

    return (
        loss, [(jnp.ones((4, 1)), jnp.ones((n, 4))) for n in (2, 3)], lambda: dict(jax.config.values),
        lambda: jnp.ones(()).dtype, back,
    )  # fmt: skip


def tensorflow_visited():
    import tensorflow as tf
    from tensorflow.python.eager import context

    tf.random.set_seed(7)
    tf.random.uniform(())

    def loss(w, x):
        return tf.reduce_mean((x @ w) ** 2) + tf.random.uniform(())

    calls = [(tf.ones((4, 1)), tf.ones((n, 4))) for n in (2, 3)]
    ours = context.context()
    return loss, calls, lambda: (ours._seed, ours._rng.getstate()), lambda: ours._seed, lambda: None


def autograd_visited():
    import autograd.numpy as anp

    calls = [(np.ones((4, 1)), np.ones((n, 4))) for n in (2, 3)]
    return lambda w, x: anp.mean(anp.dot(x, w) ** 2), calls, lambda: None, np.geterr, lambda: None


def graphduel_visited():
    import dynamic

    dynamic.manual_seed(7)
    calls = [(np.ones((4, 1)), np.ones((n, 4))) for n in (2, 3)]
    return (
        lambda w, x: g.mean((x @ w) ** 2), calls, lambda: str(dynamic.get_rng_state()), dynamic.get_default_dtype,
        lambda: None,
    )  # fmt: skip


VISITED = {"torch": torch_visited, "jax": jax_visited, "tensorflow": tensorflow_visited, "autograd": autograd_visited}
VISITED |= {"graphduel": graphduel_visited}


@pytest.mark.slow
@pytest.mark.parametrize("name", VISITED)
def test_a_comparison_in_a_process_of_the_callers_leaves_its_switches_and_counts_the_same_again(name, monkeypatch):
    """What is set is measured with, also by what raises, and a second comparison begins from nothing."""
    if missing := engines.find_engine(name).missing:
        pytest.skip(missing)
    loss, calls, read, inside, back = VISITED[name]()
    monkeypatch.setenv("SOMEBODY_ELSES", "as it was")
    random.seed(3)
    np.random.seed(3)  # noqa: NPY002  (a switch of the caller's)
    had, seen = inside(), queue.SimpleQueue()  # which no snapshot brings back

    def process():
        numbers = random.getstate(), str(np.random.get_state()), np.geterr()  # noqa: NPY002
        return dict(os.environ), list(warnings.filters), numbers, sorted(os.sched_getaffinity(0)), read()

    def watched(*args):
        seen.put(str(inside()))
        return loss(*args)

    def broken(*args):
        os.environ["SOMEBODY_ELSES"] = "turned"
        warnings.simplefilter("ignore")
        raise ValueError("on purpose")

    options = {"framework": None if name == "graphduel" else name, "processes": 0, "seconds": 0.02}
    options["modes"] = ["eager", "aot-eager"] if name == "torch" else None
    try:
        before = process()
        counts = []
        for _ in range(2):
            found = compare.compare(loss, calls, **options)
            modes = {mode: row for told in records_of(found.records, Compilations) for mode, row in told.modes.items()}
            counts.append({mode: (len(row.made), row.breaks) for mode, row in modes.items()} or found.verdict.compiles)
            assert process() == before
        assert counts[0] == counts[1]
        compare.compare(watched, calls, allow_effects=True, **options)
        if name != "tensorflow":  # a seed is set anew for each look
            met = {seen.get_nowait() for _ in range(seen.qsize())}
            assert str(had) in met or name == "tensorflow"  # whose seed is set anew for each look
        with pytest.raises(Exception, match="on purpose"):
            compare.compare(broken, calls, **options)
        assert process() == before
    finally:
        back()


def training_of(engine, function, calls):
    before = engine.state.snapshot(function, calls)
    try:
        return engine.state.training(function, calls, before.changed)
    finally:
        before.restore()


def pytorch_functions():
    """Functions, and whether a call of each shows that it trains."""
    import torch

    net, aim = torch.nn.Linear(4, 4), torch.nn.MSELoss()
    net.backward = torch.nn.Linear(4, 4)  # a name that differentiates nothing
    opt = torch.optim.SGD(net.parameters(), 0.1)

    def library(loss):
        getattr(loss, "back" + "ward")()

    def by_name(x):
        return net.backward(net(x)).mean()

    def by_a_library(x):
        library(net(x).mean())

    def by_grad(x):
        weights = [net.weight, net.bias]
        for weight, gradient in zip(weights, torch.autograd.grad(net(x).mean(), weights), strict=True):
            weight.grad = gradient
        opt.step()
        return x.sum()

    def penalty(x):
        x = x.detach().requires_grad_()
        loss = net(x).pow(2).mean()
        return loss + torch.autograd.grad(loss, x, create_graph=True)[0].pow(2).mean()

    def without_gradients(x):
        with torch.no_grad():
            net.weight.add_(0.01 * net(x).mean())
        return x.sum()

    def infers(x):
        with torch.no_grad():
            return aim(net(x), x)

    trains = {by_a_library: True, by_grad: True, without_gradients: True, by_name: False, penalty: False}
    return {**trains, infers: False}, [(torch.ones(2, 4),)]


def test_pytorch_that_trains_is_seen_in_a_call_and_leaves_nothing():
    engine = started("torch")
    functions, calls = pytorch_functions()
    for function, trains in functions.items():
        before = engine.state.snapshot(function, calls)
        assert (training_of(engine, function, calls) is not None) is trains, function.__name__
        assert not before.changed(), function.__name__


def test_a_schedule_that_ends_is_timed_from_a_state_that_lasts():
    started("torch")
    import torch

    net = torch.nn.Linear(4, 1)
    opt = torch.optim.SGD(net.parameters(), 0.1)
    plan = torch.optim.lr_scheduler.OneCycleLR(opt, 0.1, total_steps=7)

    def step(x):
        opt.zero_grad()
        net(x).pow(2).mean().backward()
        opt.step()
        plan.step()

    found = run.here(plan_of("torch", "f.py:step", "", ("eager",), seconds=0.02), step, [(torch.ones(2, 4),)] * 3)
    (time,) = records_of(found.records, Time)
    assert time.modes["eager"].status == "ok"
    assert time.modes["eager"].calls_per_block in (3, 6)
    assert plan.last_epoch == 0


def test_bytes_of_a_compiler_are_none_of_a_steps(monkeypatch):
    """Code for an optimizer without sums is compiled again for one that has them, in the call after the first."""
    adapter = started("torch")
    import torch
    from torch._dynamo.utils import counters

    net, compiler, sums = torch.nn.Linear(4, 1), 1 << 25, 1 << 10
    opt = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9)

    def step(x):
        opt.zero_grad()
        net(x).pow(2).mean().backward()
        opt.step()

    def peak(call):
        before = counters["stats"]["unique_graphs"], not opt.state
        call()
        return 10 + compiler * (counters["stats"]["unique_graphs"] > before[0]) + sums * before[1]

    monkeypatch.setattr(type(adapter.devices), "counter", ByteCounter("malloc", lambda: 0, peak))
    plan = plan_of("torch", "f.py:step", "", ("eager", "compile(backend='eager')"), seconds=0.02)
    found = run.here(plan, step, [(torch.ones(2, 4),)] * 2)
    (memory,) = records_of(found.records, Memory)
    assert [row.peak for row in memory.modes.values()] == [10, 10]


def test_each_call_of_jax_has_arrays_of_its_own():
    started("jax")
    import jax
    import jax.numpy as jnp

    @functools.partial(jax.jit, donate_argnames=("state",))
    def step(state, x):
        return {"w": state["w"] - 0.1 * jax.grad(lambda w: jnp.mean((x @ w) ** 2))(state["w"]), "n": state["n"] + 1}

    state = {"w": jnp.ones((4, 4)), "n": jnp.zeros(())}
    asked = plan_of("jax", "f.py:step", "", ("eager", "jit"), seconds=0.02, gradient=False)
    found = run.here(asked, step, [(state, jnp.ones((2, 4))), (state, 2 * jnp.ones((2, 4)))])
    assert {row.status for row in records_of(found.records, Parity)[0].modes.values()} == {"ok"}
    assert not state["w"].is_deleted()


def test_a_step_of_jax_that_its_file_compiles_is_measured_once_with_the_reasons_of_its_traces():
    started("jax")
    import jax
    import jax.numpy as jnp

    @jax.jit
    def step(w, x):
        return w - 0.1 * jax.grad(lambda w: jnp.mean((x @ w) ** 2))(w)

    asked = plan_of("jax", "f.py:step", "", ("eager", "jit"), seconds=0.02)
    found = run.here(asked, step, [(jnp.ones((4, 4)), jnp.ones((n, 4))) for n in (2, 3)])
    assert found.modes == ("eager", "jit")
    said = " ".join(repr(found).split())
    assert "compiled already: jit is the file's own" in said
    (told,) = records_of(found.records, Compilations)
    reasons = [made.reason for made in told.modes["jit"].made]
    assert reasons == ["the first call", "argument 1: float32[2, 4] before, float32[3, 4] now"]

    loss = jax.jit(lambda w, x: jnp.mean((x @ w) ** 2))  # the gradient is taken outside of what the file compiles
    found = run.here(asked, loss, [(jnp.ones((4, 4)), jnp.ones((2, 4)))])
    assert found.modes == ("eager", "jit", "as-written")


def test_a_step_that_tensorflow_compiles_with_the_options_of_a_mode_is_measured_once():
    started("tensorflow")
    import tensorflow as tf

    weight = tf.Variable(tf.ones((4, 1)))

    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((x @ weight) ** 2)
        weight.assign_sub(0.1 * tape.gradient(loss, weight))
        return loss

    def modes(step):
        return run.here(plan_of("tensorflow", "f.py:step", "", seconds=0.02), step, [(tf.ones((2, 4)),)]).modes

    assert modes(tf.function(step)) == modes(step) == ("eager", "function")
    assert modes(tf.function(step, jit_compile=True)) == ("eager", "function", "as-written")


def test_a_timed_call_of_jax_goes_on_from_what_came_back_for_what_it_donated():
    """As the user's loop does: new copies of many small arrays made a call take half as long again."""
    engine = started("jax")
    import jax
    import jax.numpy as jnp

    @functools.partial(jax.jit, donate_argnums=(0, 1))
    def step(state, gone, x):
        return {"w": state["w"] + x.sum(), "n": state["n"] + 1}, gone.mean() + x.mean()

    x = jnp.ones((2, 4))
    state = {"w": jnp.zeros((4, 4)), "n": jnp.zeros(())}
    bench = Bench.of_function(engine, "jax-eager", "step", step, [(state, jnp.ones(3), x)], None, checks=False)
    run = bench.step("jax-as-written")
    turns, call = bench.state.turns({"as-written": run}), run.bind(0)
    for _ in range(2):
        turns.block()
        counted = []
        for _ in range(3):
            turns.call()
            counted.append(call.run())
        assert [float(state["n"]) for state, _ in counted[-1:]] == [3.0]
        assert [float(loss) for _, loss in counted] == [2.0] * 3
    assert [array.is_deleted() for array in (state["w"], x)] == [False, False]


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_what_came_back_is_found_in_a_result_that_a_mode_has_wrapped(depth):
    """A mode gives the step's value beside its gradients; copies of what it donated took as long as a small step."""
    pytest.importorskip("jax")
    import jax
    import jax.numpy as jnp

    from compare.engines import pytrees

    @functools.partial(jax.jit, donate_argnums=(0,))
    def step(state, x):
        return [{"w": state[0]["w"] + x}], x

    def wrapped(*args):
        result = step(*args)
        for _ in range(depth):
            result = (result, ())
        return result

    call = pytrees._OwnCall(wrapped, ([{"w": jnp.zeros(3)}], jnp.ones(3)))
    for number in range(4):
        before = call.run()
        assert call.is_spent
        call.go_on()
        assert number == 0 or any(part is call.own[0] for part in pytrees._parts(before)) == (depth < 2)
    assert float(call.own[0][0]["w"][0]) == (3.0 if depth < 2 else 0.0)


def test_variables_of_tensorflow_come_back_to_the_numbers_that_they_were_made_with():
    engine = started("tensorflow")
    import tensorflow as tf

    class Momentum(tf.Module):
        def __init__(self):
            self.sums = None

        def update(self, variable, gradient):
            if self.sums is None:
                self.sums = tf.Variable(tf.zeros_like(variable), trainable=False)
            self.sums.assign(0.9 * self.sums + gradient)
            variable.assign_sub(0.1 * self.sums)

    weight, momentum = tf.Variable(tf.ones((4, 1))), Momentum()

    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((x @ weight) ** 2)
        momentum.update(weight, tape.gradient(loss, weight))
        return loss

    calls = [(tf.ones((2, 4)),)]
    assert training_of(engine, step, calls) is not None
    assert weight.numpy().tolist() == [[1.0]] * 4
    assert training_of(engine, lambda x: tf.reduce_mean(x @ weight), calls) is None
    found = run.here(plan_of("tensorflow", "f.py:step", "", ("eager", "function"), seconds=0.02), step, calls * 2)
    assert {row.status for row in records_of(found.records, Parity)[0].modes.values()} == {"ok"}
    assert "a training step" in repr(found)
    assert weight.numpy().tolist() == [[1.0]] * 4


def test_a_block_of_an_optimizers_steps_compiles_nothing(monkeypatch):
    """Blocks begin in the middle of training: an optimizer without sums would be compiled for in each of them."""
    pytest.importorskip("torch")
    import torch
    from torch._dynamo.utils import counters

    layer = torch.nn.Linear(4, 2)
    optimizer = torch.optim.AdamW(layer.parameters())
    frames = []

    def step(x):
        optimizer.zero_grad()
        loss = layer(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    def watched(steps, *args):
        frames.append(counters["frames"]["total"])
        rounds = steady_rounds(steps, *args)
        frames.append(counters["frames"]["total"])
        return rounds

    steady_rounds = timing.steady_rounds
    monkeypatch.setattr(timing, "steady_rounds", watched)
    calls = [(torch.randn(3, 4),) for _ in range(2)]
    modes = ["eager", "aot-eager"]
    compare.compare(step, calls, framework="torch", modes=modes, processes=0, seconds=0.05)
    assert frames[-2] == frames[-1] > 0  # before them comes a glance, whose first calls may compile


@pytest.mark.parametrize(("call", "compiles"), [("predict_on_batch", True), ("__call__", False)])
def test_a_keras_model_that_nobody_compiled_compiles_the_step_that_it_is_asked_for(call, compiles):
    keras = pytest.importorskip("keras")
    from compare.engines.tensorflow.adapter import keras_models
    from compare.engines.uncompiled import UncompiledFunction

    if keras.backend.backend() != "tensorflow":
        pytest.skip("Keras runs in another framework")
    model, met = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3)]), []
    step = UncompiledFunction(
        lambda x: getattr(model, call)(x + 0), lambda _: None, lambda: met.append(1), [], keras_models
    )
    assert step(np.ones((2, 4), np.float32)).shape == (2, 3)
    assert bool(met) == compiles
    assert not model.run_eagerly
    assert model.predict_function is None


def test_a_function_that_counts_goes_through_its_calls_and_compiles_for_each_number():
    pytest.importorskip("torch")
    import torch

    layer, calls = torch.nn.Linear(4, 1), [(torch.randn(3, 4),) for _ in range(3)]
    layer.calls, layer.seen = 2, False

    def counts(x):
        layer.calls += 1
        return layer(x).square().mean() / layer.calls

    def flags(x):
        layer.seen = True
        return layer(x).square().mean()

    for function, compiles in ((counts, 3), (flags, 1)):
        asked = plan_of("torch", f"f.py:{function.__name__}", "", ("eager", "aot-eager"), seconds=0.02)
        found = run.here(asked, function, calls)
        assert {row.status for row in records_of(found.records, Parity)[0].modes.values()} == {"ok"}
        (compiled,) = records_of(found.records, Compilations)
        assert len(compiled.modes["aot-eager"].made) == compiles, function.__name__
    assert (layer.calls, layer.seen) == (2, False)
