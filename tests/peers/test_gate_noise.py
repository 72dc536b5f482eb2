"""Arrays that are zero but for rounding, where TensorFlow has no float64 that would tell: nudges of variables do.

Then steps of JAX that it cannot trace: a key tells that one draws, and an error whose `jit` to take.
"""

from __future__ import annotations

import numpy as np
import pytest

from compare import engines
from compare.engines.nudge import DOUBLE, DRAWS, FloatChange
from compare.instruments.timing import first_epoch, no_limit
from tests.helpers import gates

pytestmark = [pytest.mark.peers, pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
RATE, KEPT, TINY = 1e-3, 0.999, 1e-7


def attention():
    """A training step whose bias of keys has no gradient in exact arithmetic; its variables have no names.

    Its Adam divides what rounding leaves of that by its own size.
    """
    tf = pytest.importorskip("tensorflow")
    rng = np.random.default_rng(0)
    sizes = {"head": (32, 16), "key": (32, 32), "table": (50, 32)}
    variables = {name: tf.Variable(rng.normal(size=size).astype(np.float32) / 6) for name, size in sizes.items()}
    variables["bias"] = tf.Variable(np.zeros(32, np.float32))
    squares = {name: tf.Variable(tf.zeros_like(value), trainable=False) for name, value in variables.items()}

    def step(tokens):
        with tf.GradientTape() as tape:
            x = tf.gather(variables["table"], tokens)
            scores = x @ tf.transpose(x @ variables["key"] + variables["bias"])
            loss = tf.reduce_mean((tf.nn.softmax(scores) @ x @ variables["head"]) ** 2)
        for name, gradient in tape.gradient(loss, variables).items():
            gradient, square = tf.convert_to_tensor(gradient), squares[name]
            square.assign(KEPT * square + (1 - KEPT) * gradient * gradient)
            variables[name].assign_sub(RATE * gradient / (tf.sqrt(square / (1 - KEPT)) + TINY))
        return loss

    return variables, squares, step, [(tf.constant(rng.integers(0, 50, 20)),) for _ in range(2)]


@pytest.fixture
def trained():
    engine = engines.find_engine("tensorflow")
    variables, squares, step, calls = attention()
    engine.start(0)
    bench = gates.Mutated.of_function(engine, engine.mode_names[0], "step", step, calls, 0, checks=True)
    assert first_epoch(bench, engine.mode_names[0], no_limit).status == "ok"
    return bench, variables, squares


def test_what_rounding_leaves_of_zero_may_be_other_rounding(trained):
    bench, _, _ = trained
    compiled = first_epoch(bench, "tf-function", no_limit)
    assert (compiled.status, bench.references.undoubled) == ("ok", "what it holds stays in float32")


@pytest.mark.parametrize("name", ["head", "key", "table"])
def test_each_variable_is_compared_though_none_has_a_name(trained, name):
    bench, variables, squares = trained
    for kind in (variables, squares):

        def one_percent(value, gradients, kind=kind):
            kind[name].assign(kind[name] * 1.01)
            return value, gradients

        bench.change = one_percent
        assert first_epoch(bench, gates.MUTANT, no_limit).status == "disagree"


def test_variables_are_moved_as_rounding_moves_them_and_come_back():
    tf = pytest.importorskip("tensorflow")
    engine, count = engines.find_engine("tensorflow"), tf.Variable(3)
    numbers = np.array([1.5, 2.0], np.float32)
    floats = tf.Variable(numbers)
    for change in (FloatChange(1), DOUBLE):
        with engine.numbers.meanwhile([floats, count], change):
            now = floats.numpy()
            assert (now[0] != 1.5, now[1], count.numpy()) == (change is not DOUBLE, 2.0, 3)
            assert now.dtype == np.float32
        assert np.array_equal(floats.numpy(), numbers)


# Steps of JAX that no jaxpr tells of ----------------------------------------------------------------------------------


def test_a_step_of_jax_that_gets_a_key_and_branches_on_a_value_is_compared_with_eager_alone():
    jax = pytest.importorskip("jax")
    jnp, engine = jax.numpy, engines.find_engine("jax")

    def loss(weight, x, key):
        def body(carry, key):
            return jnp.tanh(carry @ weight + jax.random.normal(key, carry.shape)), None

        last, _ = jax.lax.scan(body, x, jax.random.split(key, 3))
        if jnp.isnan(last).any():  # so that there is no jaxpr
            raise ValueError("diverged")
        return (last**2).sum()

    weight = jnp.asarray(np.random.default_rng(0).normal(size=(4, 4)), jnp.float32)
    engine.start(0)
    for key in (jax.random.key(1), jax.random.PRNGKey(1)):
        calls = [(weight, jnp.ones((2, 4)), key)]
        bench = gates.Mutated.of_function(engine, engine.mode_names[0], "loss", loss, calls, 0, checks=True)
        assert first_epoch(bench, bench.base, no_limit).status == "ok"
        assert (bench.references.undoubled, bench.references.expected[0].exact) == (DRAWS, None)


def test_a_step_that_changes_a_model_of_nnx_from_outside_is_told_whose_jit_takes_it():
    nnx = pytest.importorskip("flax.nnx")
    jax, engine = pytest.importorskip("jax"), engines.find_engine("jax")
    count = nnx.Variable(jax.numpy.zeros(()))

    def step(x):
        count.value = count.value + x
        return count.value

    with pytest.raises(Exception, match="different trace level") as error:
        jax.jit(step)(1.0)
    assert engine.errors.summary(error.value).endswith(": give the object as an argument, as nnx.jit takes it")
