"""TensorFlow's errors as one sentence: the refusal, the user's line, and TensorFlow's alternative."""

from __future__ import annotations

import re
from pathlib import Path

from compare.errors import is_users, place_of

_FILE = re.compile(r'File "([^"]+)", line (\d+), in ')
_NOISE = re.compile(
    r"\s*\[Op:\w+\]( name: ?\S*)?|\s*\[\[\{\{.*|^\s*\*?\s*File .*|\{\{(function_)?node [^}]*\}\}\s*|\[_XlaMust[^]]*\]",
    re.MULTILINE,
)
_CLASS = re.compile(r"generic TraceType for <?(?:class )?([\w.]+)")
REFUSALS = ("in user code", "XLA compilation requires", "Detected unsupported operations", "generic TraceType")
"""The words in errors about code that a graph does not support."""
_REMEDIES = {
    "has no attribute 'numpy'": "compute with tf, or call NumPy by tf.numpy_function",
    "to a NumPy array": "compute with tf, or call NumPy by tf.numpy_function",
    "as a Python `bool`": "choose by tf.cond or tf.where, or let AutoGraph read the function's source",
    "singleton tf.Variable": "make variables once, outside of the function",
    "XLA": "leave jit_compile to what XLA has kernels for",
}
"""The alternative in TensorFlow, by the words of its error."""


def sentence(error: BaseException) -> str | None:
    """Return `no attribute 'numpy'; compute with tf (mine.py:4)` for an error of a trace or a graph; else None."""
    text = str(error)
    if kind := _CLASS.search(text):
        return f"tf.function takes no {kind[1]}; make it a NamedTuple, a dict or a tf.experimental.ExtensionType"
    if not any(words in text for words in (*REFUSALS, "Graph execution error", "[Op:")):
        return None
    places = [f"{Path(file).name}:{line}" for file, line in _FILE.findall(text) if is_users(file)]
    lines = [
        line.strip() for line in _NOISE.sub("", text).splitlines() if line.strip() and "(most recent call" not in line
    ]
    said = lines[-1] if "in user code" in text else next((line for line in lines if _tells(line)), lines[0])
    words = re.sub(r"^\w+(Error|Exception): | compatible with node.*", "", said).partition(". ")[0].rstrip(".")
    remedy = next((f"; {remedy}" for signs, remedy in _REMEDIES.items() if signs in text), "")
    place = places[-1] if places else place_of(error)
    return f"{words}{remedy}" + (f" ({place})" if place else "")


def _tells(line: str) -> bool:
    """Return whether a line tells the fault rather than its place."""
    return not line.startswith(("Graph execution error", "Detected at node", "File ", "Stack trace"))
