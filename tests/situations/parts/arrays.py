"""A model that is a function of its parameters, over our own ops, in JAX or in autograd."""

from __future__ import annotations

from collections.abc import Mapping

from tests.situations.parts.source import ARGUMENTS, UNPACKED, Source, returned, shifted

IMPORTS = {
    "jax": (
        "import functools\nfrom dataclasses import dataclass\nfrom typing import Any, NamedTuple\n\n"
        "import jax\nimport jax.numpy as np\nimport optax\n"
    ),
    "autograd": "import autograd.numpy as np\n",
    "graphduel": "import graphs as np\n",
}
DOUBLES = 'jax.config.update("jax_enable_x64", True)\n'

STATE = {
    "none": ("{}", ""),
    "counter": (
        '{"count": np.zeros((), np.int32)}',
        'state = {"count": state["count"] + 1}\nh = h / state["count"].astype(h.dtype)\n',
    ),
    "running statistics": (
        '{"mean": np.zeros(16, np.float32)}',
        """\
state = {"mean": 0.9 * state["mean"] + 0.1 * h.mean(0).astype(np.float32)}
h = h - state["mean"].astype(h.dtype)
""",
    ),
    "EMA": (
        '{"teacher": np.zeros((8, 16), np.float32)}',
        """\
state = {"teacher": 0.9 * state["teacher"] + 0.1 * params["inner"].astype(np.float32)}
h = h + x @ state["teacher"].astype(h.dtype)
""",
    ),
}
"""For each kind of state what it begins with, and what the model does with it."""

MODEL = """\
{decorator}def block(params, state, x):
    h = np.tanh(x @ params["inner"])
{used}
    return h, state


def predict(params, state, x, y=None):
{cast}
    h, state = block(params, state, x)
    return h @ params["head"], state
"""
CAST = """\
params = jax.tree.map(lambda w: w.astype(np.bfloat16), params)
x = x.astype(np.bfloat16)
"""
BLOCK = {"regionally compiled": "@jax.jit\n", "checkpointed": "@jax.checkpoint\n"}
BATCH = "\n\n@jax.tree_util.register_dataclass\n@dataclass\nclass Batch:\n    x: jax.Array\n    y: jax.Array\n"
OUTPUT = "\n\nclass Output(NamedTuple):\n    loss: Any\n    prediction: Any\n"
OPTIMIZERS = {
    "AdamW": "optax.adamw(1e-2)",
    "schedule that ends": "optax.adamw(optax.cosine_decay_schedule(1e-2, 6))",
    "clipping": "optax.chain(optax.clip_by_global_norm(0.1), optax.adamw(1e-2))",
    "accumulation": "optax.MultiSteps(optax.adamw(1e-2), 2)",
}
EACH = {"dict": '{"x": a, "y": b}', "keywords": '{"x": a, "y": b}', "dataclass": "Batch(a, b)", "list": "a, b"}
KINDS = {"float64": "np.float64", "float16": "np.float16"}
UPDATE = """\
(loss, (prediction, state)), gradients = jax.value_and_grad(value, has_aux=True)(params)
updates, moments = optimizer.update(gradients, moments, params)
params = optax.apply_updates(params, updates)
"""


def source(values: Mapping[str, str]) -> Source:
    """The file of a row."""
    start, used = STATE[values["state"]]
    cast = CAST if values["dtype"] == "bfloat16 autocast" else ""
    model = MODEL.format(decorator=BLOCK.get(values["form"], ""), used=shifted(used, 1), cast=shifted(cast, 1))
    before = {"params": True, "moments": values["asked"] == "step", "state": values["state"] != "none"}
    given = [name for name, is_there in before.items() if is_there]
    decorator = ""
    if values["form"] == "compiled already":
        decorator = "@functools.partial(jax.jit, static_argnums=0)\n" if values["where"] == "method" else "@jax.jit\n"
    return Source(
        imports=IMPORTS[values["framework"]] + (DOUBLES if _is_wide_jax(values) else ""),
        definitions=model
        + (BATCH if values["calls"] == "dataclass" else "")
        + (OUTPUT if values["outputs"] == "ModelOutput" else ""),
        setting=f"optimizer = {OPTIMIZERS[values['training']]}\n" if values["asked"] == "step" else "scale = 1.0\n",
        arguments=", ".join([*given, ARGUMENTS.get(values["calls"], "batch")]),
        body=UNPACKED.get(values["calls"], "") + _body(values),
        batches=_batches(values, given, start),
        closed=("optimizer",) if values["asked"] == "step" else ("scale",),
        decorator=decorator,
    )


def _is_wide_jax(values: Mapping[str, str]) -> bool:
    return values["framework"] == "jax" and values["dtype"] == "float64"


def _body(values: Mapping[str, str]) -> str:
    batch = "**batch" if values["calls"] == "keywords" else "x"
    state = "{}" if values["state"] == "none" else "state"
    predict = f"prediction, state = predict(params, {state}, {batch})\n"
    value = f"{predict}loss = np.mean((prediction - y) ** 2)\n"
    kept = "(prediction, state)" if values["state"] != "none" else "prediction"
    if values["asked"] == "inference":
        return predict + returned(values["outputs"], "prediction * scale", kept)
    if values["asked"] == "loss":
        return value + returned(values["outputs"], "loss * scale", kept)
    inner = value.replace("prediction, state = predict", "prediction, now = predict")
    inner += "return loss, (prediction, now)\n"
    return f"def value(params):\n{shifted(inner, 1)}\n{UPDATE}" + returned(
        values["outputs"], "loss", "(params, moments, state)"
    )


def _batches(values: Mapping[str, str], given: list[str], start: str) -> str:
    dtype = KINDS.get(values["dtype"], "np.float32")
    lines = [
        f'params = {{"inner": np.full((8, 16), 0.1, {dtype}), "head": np.full((16, 4), 0.1, {dtype})}}',
        f"state = {start}",
        f"x, y = np.linspace(-1, 1, 96, dtype={dtype}).reshape(12, 8), np.ones((12, 4), {dtype})",
    ]
    if "moments" in given:
        lines.append("moments = optimizer.init(params)")
    before = ", ".join([*given, EACH[values["calls"]]])
    lines.append(f"return [({before}) for a, b in ((x[i:i + 4], y[i:i + 4]) for i in (0, 4, 8))]")
    return "def batches():\n" + shifted("\n".join(lines), 1)
