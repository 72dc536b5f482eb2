"""Rows of what JAX or TensorFlow alone has: containers, keys, compiled functions in a file; and what is right."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

JAX = "import jax\nimport jax.numpy as jnp\n"
TENSORFLOW = "import tensorflow as tf\n"
COMPILED = {"timed": 3}
"""What is right where a file compiles by itself: as it is written it is timed too, and eager compiles nothing."""
COMPILED_WHOLE = {"timed": 2, "says": ("compiled already: jit",)}
"""What is right where a file compiles its step itself: that is the mode that compiles."""
EAGER_ALONE = {"timed": 1, "codes": (5,)}
"""What is right where the mode that compiles is refused: nothing was measured beside the first mode."""


class Case(NamedTuple):
    """The user's file, and what is right of its function `step`."""

    text: str
    right: dict[str, Any]


JAX_FILES = {
    "a step of equinox under filter_jit": Case(
        JAX
        + """
import equinox as eqx
import optax
model = eqx.nn.MLP(8, 1, 16, 1, key=jax.random.key(0))
opt = optax.adam(1e-3)
@eqx.filter_value_and_grad
def loss(model, x):
    return jnp.mean(jax.vmap(model)(x) ** 2)
@eqx.filter_jit
def step(model, state, x):
    value, grads = loss(model, x)
    updates, state = opt.update(grads, state, eqx.filter(model, eqx.is_array))
    return eqx.apply_updates(model, updates), state, value
def batches():
    return [(model, opt.init(eqx.filter(model, eqx.is_array)), jnp.ones((4, 8)))] * 2
""",
        COMPILED_WHOLE,
    ),
    "objects of nnx that a step changes": Case(
        JAX
        + """
import optax
from flax import nnx
class Net(nnx.Module):
    def __init__(self, rngs):
        self.first, self.last = nnx.Linear(8, 16, rngs=rngs), nnx.Linear(16, 1, rngs=rngs)
        self.norm, self.drop = nnx.BatchNorm(16, rngs=rngs), nnx.Dropout(0.2, rngs=rngs)
    def __call__(self, x):
        return self.last(self.drop(jax.nn.relu(self.norm(self.first(x)))))
model = Net(nnx.Rngs(0))
optimizer = nnx.Optimizer(model, optax.sgd(1e-2, momentum=0.9), wrt=nnx.Param)
@nnx.jit
def step(model, optimizer, x):
    loss, grads = nnx.value_and_grad(lambda model: jnp.mean((model(x) - 1) ** 2))(model)
    optimizer.update(model, grads)
    return loss
def batches():
    return [(model, optimizer, jax.random.normal(jax.random.key(i), (8, 8))) for i in range(2)]
""",
        {**COMPILED_WHOLE, "says": ("a training step", *COMPILED_WHOLE["says"])},
    ),
    "a TrainState of flax with statistics and a key": Case(
        JAX
        + """
import flax.linen as nn
import optax
from flax.training import train_state
class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.relu(nn.BatchNorm(use_running_average=False)(nn.Dense(8)(x)))
        return nn.Dense(2)(nn.Dropout(0.1, deterministic=False)(x))
class State(train_state.TrainState):
    stats: dict
    key: jax.Array
net = Net()
@jax.jit
def step(state, x):
    def loss(params):
        given = {"params": params, "batch_stats": state.stats}
        key = jax.random.fold_in(state.key, state.step)
        out, new = state.apply_fn(given, x, mutable=["batch_stats"], rngs={"dropout": key})
        return jnp.mean(out ** 2), new
    (value, new), grads = jax.value_and_grad(loss, has_aux=True)(state.params)
    return state.apply_gradients(grads=grads).replace(stats=new["batch_stats"]), value
def batches():
    x = jax.random.normal(jax.random.key(3), (4, 6))
    made = net.init({"params": jax.random.key(0), "dropout": jax.random.key(1)}, x)
    state = State.create(
        apply_fn=net.apply, params=made["params"], tx=optax.sgd(0.1), stats=made["batch_stats"],
        key=jax.random.PRNGKey(1),
    )
    return [(state, x + i) for i in range(2)]
""",
        COMPILED_WHOLE,
    ),
    "compiled functions in attributes, a dict and the step itself": Case(
        JAX
        + """
from functools import partial
from jax import jit
def deep(w, x, times):
    for _ in range(times):
        x = jnp.tanh(x @ w)
    return x
class Trainer:
    def __init__(self):
        self.grad = jax.jit(jax.value_and_grad(self.loss))
        self.parts = {"deep": partial(jax.jit, static_argnums=2)(deep)}
    def loss(self, w, x):
        return jnp.mean(deep(w, x, 5) ** 2)
trainer = Trainer()
def step(w, x):
    value, grad = trainer.grad(w, x)
    more = jit(partial(deep, times=2))(w, x) + jax.jit(deep, static_argnums=2)(w, x, 3)
    return w - grad, value, more + trainer.parts["deep"](w, x, 4)
inputs = [(jnp.eye(8) * 0.9, jnp.ones((4, 8)))] * 2
""",
        COMPILED,
    ),
    "parameters with ints, text, None, static fields and keys": Case(
        JAX
        + """
from dataclasses import dataclass
from functools import partial
@partial(jax.tree_util.register_dataclass, data_fields=["w", "bias", "rate", "n", "key"], meta_fields=["depth", "act"])
@dataclass
class Net:
    w: jax.Array
    bias: jax.Array | None
    rate: float
    n: jax.Array
    key: jax.Array
    depth: int
    act: str
def step(net, more, x):
    key = jax.random.fold_in(net.key, net.n)
    for _ in range(net.depth):
        x = getattr(jnp, net.act)(x @ net.w)
    noise = jax.random.normal(key, x.shape) + jax.random.normal(more["key"], x.shape)
    return jnp.mean((x + net.rate * noise) ** 2) * more["n"], {"x": x}
def batches():
    net = partial(Net, jnp.eye(8), None, 0.1, jnp.asarray(3), jax.random.key(1))
    return [(net(n, "tanh"), {"key": jax.random.PRNGKey(2), "n": 2, "name": "net"}, jnp.ones((4, 8))) for n in (1, 2)]
""",
        {"timed": 2, "says": ("value and gradients",)},
    ),
    "gradients of each example, of a sparse matrix": Case(
        JAX
        + """
from jax.experimental import sparse
def loss(w, x, y):
    return (jnp.dot(x, w) - y) ** 2
def step(w, matrix, y):
    return jax.vmap(jax.grad(loss), in_axes=(None, 0, 0))(w, matrix @ jnp.ones((8, 8)), y)
inputs = [(jnp.ones(8), sparse.BCOO.fromdense(jnp.eye(8)), jnp.ones(8))] * 2
""",
        {"timed": 2, "says": ("The value alone is compared",)},
    ),
    "a batch whose class is not registered": Case(
        JAX
        + """
from dataclasses import dataclass
@dataclass
class Batch:
    x: jax.Array
def step(w, batch):
    return jnp.mean((batch.x @ w) ** 2)
inputs = [(jnp.ones((8, 1)), Batch(jnp.ones((4, 8))))] * 2
""",
        {
            **EAGER_ALONE,
            "refused": {"jit": "`batch` is a Batch, not an array, a container or a plain value; register its class"},
        },
    ),
    "a branch on a value behind a decorator": Case(
        JAX
        + """
import functools
def logged(function):
    @functools.wraps(function)
    def inner(*args):
        return function(*args)
    return inner
@logged
def step(params, tokens):
    if tokens.sum() > 3:
        return tokens @ params
    return -(tokens @ params)
inputs = [(jnp.ones((8, 2)), jnp.ones((4, 8)))] * 2
""",
        {**EAGER_ALONE, "refused": {"jit": "depends on tokens; choose by jnp.where"}, "says": ("(f.py:12)",)},
    ),
}
TENSORFLOW_FILES = {
    "compiled methods, attributes and a function made in the step": Case(
        TENSORFLOW
        + """
class Model(tf.Module):
    def __init__(self):
        self.w = tf.Variable(tf.eye(8) * 0.9)
        self.head = tf.function(self.last)
    @tf.function
    def deep(self, x):
        for _ in range(5):
            x = tf.tanh(x @ self.w)
        return x
    def last(self, x):
        return tf.reduce_mean(x ** 2)
model = Model()
def step(x):
    with tf.GradientTape(persistent=True) as tape:
        loss = model.head(model.deep(x)) + tf.function(lambda x: tf.reduce_sum(x * model.w), jit_compile=True)(x[:1])
    model.w.assign_sub(0.1 * tape.gradient(loss, model.w))
    return loss
inputs = [(tf.ones((4, 8)),)] * 2
""",
        COMPILED,
    ),
    "train_on_batch of a model that Keras compiles": Case(
        """
import keras
import numpy as np
keras.utils.set_random_seed(1)
model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(8, "relu"), keras.layers.Dense(3, "softmax")])
model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"], jit_compile=True)
inputs = [(np.random.default_rng(i).random((4, 8), np.float32), np.array([0, 1, 2, 0])) for i in range(2)]
def step(x, y):
    return model.train_on_batch(x, y, return_dict=True)
""",
        {**COMPILED, "says": ("imports keras, whose backend is tensorflow", "a training step")},
    ),
    "an input signature": Case(
        TENSORFLOW
        + """
@tf.function(input_signature=[tf.TensorSpec((8, 8)), tf.TensorSpec((None, 8))])
def step(w, x):
    for _ in range(5):
        x = tf.tanh(x @ w)
    return tf.reduce_mean(x ** 2)
inputs = [(tf.eye(8), tf.ones((n, 8))) for n in (2, 3, 4)]
""",
        {**COMPILED, "compiles": {"function": 1}},
    ),
    "ragged rows and a table whose gradient is sparse": Case(
        TENSORFLOW
        + """
def step(table, ids):
    rows = tf.ragged.map_flat_values(tf.nn.embedding_lookup, table, ids)
    return tf.reduce_mean(tf.reduce_mean(rows, axis=1) ** 2)
table = tf.random.stateless_normal((20, 4), (0, 1))
inputs = [(table, tf.ragged.constant(rows)) for rows in ([[1, 2, 3], [4]], [[5], [6, 7, 7]])]
""",
        {"timed": 2},
    ),
    "numbers of NumPy inside": Case(
        TENSORFLOW
        + """
import numpy as np
def step(w, x):
    return tf.reduce_mean((tf.constant(np.tanh(x.numpy())) @ w) ** 2)
inputs = [(tf.ones((8, 1)), tf.ones((4, 8)))] * 2
""",
        {**EAGER_ALONE, "refused": {"function": "call NumPy by tf.numpy_function (f.py:5)"}},
    ),
}
FILES = {"jax": JAX_FILES, "tensorflow": TENSORFLOW_FILES}


def files() -> Iterator[tuple[str, str, str, dict[str, Any]]]:
    """What a row is called, its framework, its file, and what is right."""
    for framework, cases in FILES.items():
        for name, (text, right) in cases.items():
            yield f"{framework}-{name.replace(' ', '_')}", framework, text, right
