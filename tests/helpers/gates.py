"""Steps that a gate must judge, as a table: a framework, a dtype, what makes it hard, and what a mode gets wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import optree
import pytest

from compare import engines
from compare.instruments import parity
from compare.instruments.bench import Bench
from compare.instruments.standard import Result
from compare.instruments.timing import first_epoch, no_limit
from compare.records.cells import Compilations, Parity
from compare.report import compiled
from compare.subjects.case import case_of
from tests.helpers.fake_workloads import job
from tests.helpers.mutants import altered

FLOATS = ("float32", "float16", "bfloat16", "complex64")
DTYPES = (*FLOATS, "int64", "bool")
KINDS = ("plain", "dropout", "state", "ill-conditioned")
PARTS = ("output", "gradient", "state")
WRONG = ("1%", "NaN")
SAYS = ("errors below", "ill-conditioned:", "Shapes alone were compared")
MUTANT = "mutant"


class Row(NamedTuple):
    """A cell of the table."""

    framework: str
    dtype: str
    kind: str


@dataclass(frozen=True)
class World:
    """What a framework computes with.

    `mode` compiles, `functions` are those of a loss by name, and `stateful` makes a loss of `loss` that averages what
    it computes in a state of its own. `dtypes` are those that it has.
    """

    mode: str
    functions: Callable[[], dict[str, Any]]
    dtypes: tuple[str, ...] = DTYPES
    kinds: tuple[str, ...] = KINDS
    stateful: Callable[[Any, str], Any] | None = None
    disturb: Callable[[Any], None] | None = None


def rows(worlds: dict[str, World]) -> list[Row]:
    """The cells that there are."""
    every = (Row(*values) for values in product(worlds, DTYPES, KINDS))
    return [
        row for row in every if row.dtype in worlds[row.framework].dtypes and row.kind in worlds[row.framework].kinds
    ]


def mutants(world: World, row: Row) -> Iterator[tuple[str, str]]:
    """What a mode may have wrong there, and how: a part, and by 1% or NaN; integers are others by 1."""
    parts = ["output", *(["gradient"] if row.dtype in FLOATS else []), *(["state"] if row.kind == "state" else [])]
    for part in parts:
        yield part, "1%"
        if row.dtype in FLOATS:
            yield part, "NaN"


def step(world: World, row: Row) -> tuple[Callable[..., Any], list[tuple[Any, ...]], int | None]:
    """The function, its calls as arrays of NumPy's, and what is differentiated."""
    g, rng = world.functions(), np.random.default_rng(0)
    dtype = row.dtype if row.dtype in FLOATS else "float32"
    w, x = rng.normal(size=(8, 6)) / 3, rng.normal(size=(64, 8))
    if row.kind == "ill-conditioned":  # the last row is on the edge of a ReLU, but for rounding; columns tie
        x[-1] -= w[:, 0] * (x[-1] @ w[:, 0]) / (w[:, 0] @ w[:, 0])
        w[:, 1] = w[:, 0] * (1 + 1e-7)
    if dtype == "complex64":
        w, x = w + 0.5j * rng.normal(size=w.shape), x + 0.5j * rng.normal(size=x.shape)
    calls = [(g["array"](w, dtype), g["array"](x[:size], dtype)) for size in (64, 32)]

    def inner(w: Any, x: Any) -> Any:
        y = x @ w
        if row.kind == "ill-conditioned":
            y = g["relu"](y) if dtype != "complex64" else y - g["tanh"](y)
        else:
            y = g["tanh"](y)
        return g["dropout"](y) if row.kind == "dropout" else y

    def loss(w: Any, x: Any) -> Any:
        y = inner(w, x)
        if row.dtype == "int64":
            return g["argmax"](y)
        if row.dtype == "bool":
            return y > 0
        return g["mean"](g["abs"](y) ** 2)

    function = world.stateful(loss, row.dtype) if row.kind == "state" and world.stateful else loss
    return function, calls, 0 if row.dtype in FLOATS else None


class Mutated(Bench):
    """A function whose one other mode is eager's own but for a change."""

    change: Callable[..., Any]

    def built(self, mode: str) -> Callable[..., Any]:
        built = super().built(self.base)
        return altered(built, self.change) if mode == MUTANT else built


def gated(world: World, row: Row, wrong: tuple[str, str] | None = None) -> tuple[str, str]:
    """How the gate takes the mode that compiles, or one that has this wrong; and what the answer says of that."""
    if row.framework == engines.OWN:
        return _gated_ours(world, row, wrong)
    engine = engines.find_engine(row.framework)
    engine.start(0)
    function, calls, argnum = step(world, row)
    mode = MUTANT if wrong else world.mode
    bench = (Mutated if wrong else Bench).of_function(
        engine, engine.mode_names[0], "step", function, [engine.arrays(call) for call in calls], argnum, checks=True
    )
    if wrong:
        bench.change = partial(changed, wrong, world, bench)
    epochs = {each: first_epoch(bench, each, no_limit) for each in (engine.mode_names[0], mode)}
    assert epochs[engine.mode_names[0]].status == "ok", epochs[engine.mode_names[0]].reason
    place = {"workload": "step", "size": "given", "eager": engine.mode_names[0]}
    checked = {each: epoch.parity(bench) for each, epoch in epochs.items()}
    told = {each: epoch.compiled(bench, None) for each, epoch in epochs.items()}
    records = [
        Parity(**place, agree=True, modes=checked, same_graph=None, kernel_calls={}),
        Compilations(**place, version="", modes=told, **bench.references.notes),
    ]
    return epochs[mode].status, " ".join([*compiled.sentences(records), epochs[mode].reason or ""])


def _gated_ours(world: World, row: Row, wrong: tuple[str, str] | None) -> tuple[str, str]:
    function, calls, argnum = step(world, row)
    case, honest = case_of(function, calls, argnum is not None, None), engines.step

    def built(mode: str, case: Any) -> Any:
        made = honest(mode, case)
        if wrong and mode == world.mode:
            made.built = altered(made.built, partial(changed, wrong, world, None))
        return made

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engines, "step", built)
        modes = parity.check(job("parity", "step"), case, ("dynamic", world.mode)).modes
    assert modes["dynamic"].status == "ok", modes["dynamic"].reason
    return modes[world.mode].status, str(modes[world.mode].reason)


def changed(wrong: tuple[str, str], world: World, bench: Any, value: Any, gradients: Any) -> Result:
    """What a call gives, with that part wrong."""
    part, how = wrong
    if part == "state":
        world.functions()["disturb"](bench.state.reader, how)
        return value, gradients
    change = partial(world.functions()["wrong"], how=how)
    if part == "output":
        return optree.tree_map(change, value), gradients
    return value, optree.tree_map(change, gradients)


def times(x: Any, how: str) -> Any:
    """Every element off by 1%, or by 1, or the other bool; or all NaN. For arrays with NumPy's operators."""
    kind = str(x.dtype)
    if "bool" in kind:
        return ~x
    if "int" in kind:
        return x + 1
    return x * (1.01 if how == "1%" else float("nan"))


# The frameworks -------------------------------------------------------------------------------------------------------


def of_autograd() -> dict[str, Any]:
    """HIPS autograd's functions."""
    import autograd.numpy as anp

    return {
        "array": lambda x, dtype: x.astype(dtype),
        "tanh": anp.tanh,
        "relu": lambda y: anp.maximum(y, 0),
        "mean": anp.mean,
        "abs": anp.abs,
        "argmax": lambda y: anp.argmax(anp.abs(y), -1) + 2**60,
        "dropout": lambda y: y * (np.random.random(y.shape) < 0.5) * 2,  # noqa: NPY002  (what autograd's own programs draw with)
        "wrong": lambda x, how: times(np.asarray(x), how),
    }


def of_graphduel() -> dict[str, Any]:
    """Our own."""
    import graphs as g

    return {
        "array": lambda x, dtype: x.astype(dtype),
        "tanh": g.tanh,
        "relu": g.relu,
        "mean": g.mean,
        "abs": g.abs,
        "argmax": lambda y: g.argmax(y, -1) + 2**60,
        "dropout": lambda y: g.dropout(y, 0.5, g.random_key(3)),
        "wrong": lambda x, how: times(np.asarray(x), how),
    }


def of_torch() -> dict[str, Any]:
    """PyTorch's."""
    import torch
    from torch.nn.functional import dropout

    def disturb(state: Any, how: str) -> None:
        with torch.no_grad():
            for tensor in state.read().values():
                tensor.copy_(times(tensor, how))

    return {
        "array": lambda x, dtype: torch.from_numpy(x).to(getattr(torch, dtype)),
        "tanh": torch.tanh,
        "relu": torch.relu,
        "mean": torch.mean,
        "abs": torch.abs,
        "argmax": lambda y: y.abs().argmax(-1) + 2**60,
        "dropout": lambda y: y * dropout(torch.ones(y.shape), 0.5).to(y.dtype),
        "wrong": times,
        "disturb": disturb,
    }


def averaging_in_torch(loss: Any, dtype: str) -> Any:
    """A module that keeps in a buffer what the last call gave, or counts, or turns a bool."""
    import torch

    class Averaging(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            kinds = {"int64": torch.int64, "bool": torch.bool}
            self.register_buffer("seen", torch.ones(3, dtype=kinds.get(dtype, getattr(torch, dtype))))

        def forward(self, w: Any, x: Any) -> Any:
            value = loss(w, x)
            with torch.no_grad():
                if dtype == "int64":
                    self.seen += 1
                elif dtype == "bool":
                    self.seen = ~self.seen
                else:
                    self.seen = 0.5 * self.seen + value.detach()
            return value

    return Averaging()


def of_jax() -> dict[str, Any]:
    """JAX's."""
    import jax
    import jax.numpy as jnp

    def dropout(y: Any) -> Any:
        return jnp.where(jax.random.bernoulli(jax.random.key(3), 0.5, y.shape), y * 2, 0)

    return {
        "array": lambda x, dtype: jnp.asarray(x).astype(dtype),
        "tanh": jnp.tanh,
        "relu": jax.nn.relu,
        "mean": jnp.mean,
        "abs": jnp.abs,
        "argmax": lambda y: jnp.argmax(jnp.abs(y), -1) + 2**30,
        "dropout": dropout,
        "wrong": times,
    }


def of_tensorflow() -> dict[str, Any]:
    """TensorFlow's."""
    import tensorflow as tf

    def wrong(x: Any, how: str) -> Any:
        if x.dtype == tf.bool:
            return tf.logical_not(x)
        if x.dtype.is_integer:
            return x + tf.cast(1, x.dtype)
        return x * tf.cast(1.01 if how == "1%" else float("nan"), x.dtype)

    return {
        "array": lambda x, dtype: tf.cast(tf.constant(x), dtype),
        "tanh": tf.tanh,
        "relu": tf.nn.relu,
        "mean": tf.reduce_mean,
        "abs": tf.abs,
        "argmax": lambda y: tf.argmax(tf.abs(y), -1) + 2**60,
        "dropout": lambda y: y * tf.cast(tf.nn.dropout(tf.ones(y.shape), 0.5), y.dtype),
        "wrong": wrong,
        "disturb": lambda state, how: [each.assign(wrong(each.value(), how)) for each in state.before.values()],
    }


def averaging_in_tensorflow(loss: Any, dtype: str) -> Any:
    """A loss that keeps in a variable what the last call gave, or counts, or turns a bool."""
    import tensorflow as tf

    seen = tf.Variable(tf.cast(tf.ones(3), dtype), trainable=False)

    def averaging(w: Any, x: Any) -> Any:
        value = loss(w, x)
        if dtype == "int64":
            seen.assign_add(tf.ones(3, tf.int64))
        elif dtype == "bool":
            seen.assign(tf.logical_not(seen))
        else:
            seen.assign(tf.cast(0.5, dtype) * seen + tf.cast(tf.stop_gradient(value), dtype))
        return value

    return averaging


NUMPY = tuple(dtype for dtype in DTYPES if dtype != "bfloat16")
PURE = tuple(kind for kind in KINDS if kind != "state")
HERE = {
    "autograd": World("autograd", of_autograd, NUMPY, PURE),
    "graphduel": World("static-exact", of_graphduel, tuple(dtype for dtype in NUMPY if dtype != "complex64"), PURE),
}
PEERS = {
    "torch": World("torch-aot-eager", of_torch, stateful=averaging_in_torch),
    "jax": World("jax-jit", of_jax, kinds=PURE),
    "tensorflow": World("tf-function", of_tensorflow, stateful=averaging_in_tensorflow),
}
