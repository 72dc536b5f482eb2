"""A model over variables of TensorFlow, which a step changes in place, trained by an optimizer of Keras."""

from __future__ import annotations

from collections.abc import Mapping

from tests.situations.parts.source import ARGUMENTS, UNPACKED, Source, returned, shifted

IMPORTS = "from typing import Any, NamedTuple\n\nimport keras\nimport tensorflow as tf\n"
STATE = {
    "none": ("", ""),
    "counter": (
        "count = tf.Variable(0, dtype=tf.int64)\n",
        "count.assign_add(1)\nh = h / tf.cast(count, h.dtype)\n",
    ),
    "running statistics": (
        "mean = tf.Variable(tf.zeros(16), trainable=False)\n",
        "mean.assign(0.9 * mean + 0.1 * tf.cast(tf.reduce_mean(h, 0), tf.float32))\nh = h - tf.cast(mean, h.dtype)\n",
    ),
    "EMA": (
        "teacher = tf.Variable(tf.zeros((8, 16)), trainable=False)\n",
        "teacher.assign(0.9 * teacher + 0.1 * tf.cast(inner, tf.float32))\nh = h + x @ tf.cast(teacher, h.dtype)\n",
    ),
}
"""For each kind of state what it begins with, and what the model does with it."""
MODEL = """\
inner = tf.Variable(tf.fill((8, 16), tf.constant(0.1, {kind})))
head = tf.Variable(tf.fill((16, 4), tf.constant(0.1, {kind})))
{start}

{decorator}def block(x):
    h = tf.tanh(x @ tf.cast(inner, x.dtype))
{used}    return h


def predict(x, y=None):
    x = tf.cast(x, {computed})
    return block(x) @ tf.cast(head, x.dtype)
"""
OUTPUT = "\n\nclass Output(NamedTuple):\n    loss: Any\n    prediction: Any\n"
OPTIMIZERS = {
    "AdamW": "keras.optimizers.AdamW(1e-2)",
    "schedule that ends": "keras.optimizers.AdamW(keras.optimizers.schedules.CosineDecay(1e-2, 6))",
    "clipping": "keras.optimizers.AdamW(1e-2, global_clipnorm=0.1)",
    "accumulation": "keras.optimizers.AdamW(1e-2, gradient_accumulation_steps=2)",
}
UPDATE = "optimizer.apply_gradients(zip(tape.gradient(loss, [inner, head]), [inner, head]))\n"
EACH = {"dict": '{"x": a, "y": b}', "keywords": '{"x": a, "y": b}', "list": "(a, b)"}


def source(values: Mapping[str, str]) -> Source:
    """The file of a row."""
    start, used = STATE[values["state"]]
    kind = "tf.float64" if values["dtype"] == "float64" else "tf.float32"
    computed = {"bfloat16 autocast": "tf.bfloat16", "float16": "tf.float16"}.get(values["dtype"], kind)
    regional = "@tf.function\n" if values["form"] == "regionally compiled" else ""
    model = MODEL.format(kind=kind, start=start, decorator=regional, used=shifted(used, 1), computed=computed)
    trains = values["asked"] == "step"
    return Source(
        imports=IMPORTS,
        definitions=model + (OUTPUT if values["outputs"] == "ModelOutput" else ""),
        setting=f"optimizer = {OPTIMIZERS[values['training']]}\n" if trains else "scale = 1.0\n",
        arguments=ARGUMENTS.get(values["calls"], "batch"),
        body=UNPACKED.get(values["calls"], "") + _body(values),
        batches=_batches(values, kind),
        closed=("optimizer",) if trains else ("scale",),
        decorator="@tf.function\n" if values["form"] == "compiled already" else "",
    )


def _body(values: Mapping[str, str]) -> str:
    batch = "**batch" if values["calls"] == "keywords" else "x"
    predicted = f"prediction = predict({batch})\n"
    value = f"{predicted}loss = tf.reduce_mean((prediction - tf.cast(y, prediction.dtype)) ** 2)\n"
    if values["asked"] == "inference":
        return predicted + returned(values["outputs"], "prediction * scale", "prediction")
    if values["asked"] == "loss":
        return value + returned(values["outputs"], "loss * scale", "prediction")
    return f"with tf.GradientTape() as tape:\n{shifted(value, 1)}{UPDATE}" + returned(
        values["outputs"], "loss", "prediction"
    )


def _batches(values: Mapping[str, str], kind: str) -> str:
    lines = [f"x = tf.reshape(tf.linspace(tf.constant(-1, {kind}), 1, 96), (12, 8))", f"y = tf.ones((12, 4), {kind})"]
    if values["calls"] == "DataLoader":
        lines.append("return tf.data.Dataset.from_tensor_slices((x, y)).batch(4)")
    else:
        lines.append(f"return [{EACH[values['calls']]} for a, b in ((x[i:i + 4], y[i:i + 4]) for i in (0, 4, 8))]")
    return "def batches():\n" + shifted("\n".join(lines), 1)
