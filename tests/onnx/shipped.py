"""The models that the package onnx ships, and what each engine makes of them: `python -m tests.onnx.shipped`.

Most lie beside inputs and outputs. Those of `light` are known networks whose weights are one number each, and have the
outputs for an input that counts up.
"""

from __future__ import annotations

import collections
import tempfile
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx

import dynamic
import static
from graphs.errors import GraphError
from graphs.onnx import load
from tests.onnx.node_cases import known

ENGINES = ("dynamic", "static", "native") if find_spec("llvmlite") else ("dynamic", "static")
_PASSING = PASSES, BY_NUMBERS = "passes", "passes with its ints as Python's"
_DATA = Path(onnx.__file__).parent / "backend" / "test" / "data"


class Shipped(NamedTuple):
    """A model with its inputs and outputs; `tolerance` is relative, and absolute where outputs are small."""

    name: str
    path: Path
    inputs: tuple[Any, ...]
    outputs: tuple[Any, ...]
    tolerance: float


class Row(NamedTuple):
    """What came of a model: its opset, whether it was converted, and for each engine that it passes, or why not."""

    name: str
    opset: int
    is_converted: bool
    results: dict[str, str]

    @property
    def passes(self) -> bool:
        """Whether it passes in every engine."""
        return all(result in _PASSING for result in self.results.values())


def small() -> Iterator[Shipped]:
    """The models that lie beside their data."""
    for folder in sorted(path.parent for path in _DATA.glob("*/*/model.onnx")):
        inputs, outputs = (_arrays(folder / "test_data_set_0", side) for side in ("input", "output"))
        yield Shipped(folder.name, folder / "model.onnx", inputs, outputs, 1e-5)


def light() -> Iterator[Shipped]:
    """The networks."""
    for path in sorted(_DATA.glob("light/*.onnx")):
        graph = onnx.load(path).graph
        taken = [value for value in graph.input if value.name not in {tensor.name for tensor in graph.initializer}]
        inputs = tuple(_counting([dim.dim_value or 1 for dim in value.type.tensor_type.shape.dim]) for value in taken)
        yield Shipped(path.stem, path, inputs, _arrays(path.parent, f"{path.stem}_output"), 1e-3)


def _arrays(folder: Path, side: str) -> tuple[Any, ...]:
    files = sorted(folder.glob(f"{side}_*.pb"), key=lambda path: int(path.stem.rpartition("_")[2]))
    return tuple(onnx.numpy_helper.to_array(onnx.TensorProto.FromString(path.read_bytes())) for path in files)


def _counting(shape: list[int]) -> np.ndarray[Any, Any]:
    count = int(np.prod(shape))
    return (np.arange(count).reshape(shape) / count).astype(np.float32)


def row_of(shipped: Shipped, engines: tuple[str, ...] = ENGINES) -> Row:
    """A model in each engine. Raises AssertionError for outputs that are not those beside it."""
    opset = next(entry.version for entry in onnx.load(shipped.path).opset_import if not entry.domain)
    try:
        model = load(shipped.path)
    except GraphError as refusal:
        return Row(shipped.name, opset, False, dict.fromkeys(engines, str(refusal)))
    results = {engine: _result(shipped, model, _RUNS[engine]) for engine in engines}
    return Row(shipped.name, opset, model.converted_from is not None, results)


def _result(shipped: Shipped, model: Any, run: Callable[..., Any]) -> str:
    why = ""
    for text, inputs in ((PASSES, shipped.inputs), (BY_NUMBERS, known(shipped.inputs))):
        try:
            with np.errstate(all="ignore"):  # roots of negative numbers
                results = run(model, *inputs)
        except GraphError as refusal:
            why = why or str(refusal)
            continue
        results = results if isinstance(results, tuple) else (results,)
        for result, expected in zip(results, shipped.outputs, strict=True):
            limits = {"rtol": shipped.tolerance, "atol": 1e-5}
            try:
                np.testing.assert_allclose(np.asarray(result), expected, **limits, equal_nan=True)
            except AssertionError:
                if not _has_equal_logits(shipped, run):
                    raise
        return text
    return why


def _has_equal_logits(shipped: Shipped, run: Callable[..., Any]) -> bool:
    """Whether a network that ends in a softmax has logits of the probabilities beside it, but for their rounding.

    The logits of `light_squeezenet` are 9.5e9, where a unit in the last place of float32 is 1,024: the same sum in
    another order, as another processor makes it, leaves a single class of the softmax.
    """
    network = onnx.load(shipped.path)
    last = network.graph.node.pop()
    if last.op_type != "Softmax":
        return False
    network.graph.output[0].name = last.input[0]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "logits.onnx")
        onnx.save(network, path)
        logits = np.asarray(run(load(path), *shipped.inputs), np.float64)
    apart = logits.ravel() - np.log(shipped.outputs[0].astype(np.float64)).ravel()
    return bool(np.ptp(apart) <= 16 * np.finfo(np.float32).eps * np.abs(logits).max())


def _compiled(backend: str) -> Callable[..., Any]:
    return lambda model, *args: static.compile(model, *args, backend=backend)(*args)


_RUNS: dict[str, Callable[..., Any]] = {
    "dynamic": lambda model, *args: model(*[dynamic.tensor(x) if isinstance(x, np.ndarray) else x for x in args]),
    "static": _compiled("numpy"),
    "native": _compiled("native"),
}


def _whole_row(shipped: Shipped) -> Row:
    """A model in each engine; outputs that are not those beside it are a result of an engine as well."""
    row = row_of(shipped, ())
    for engine in ENGINES:
        try:
            row.results.update(row_of(shipped, (engine,)).results)
        except AssertionError as error:
            worst = next(line for line in str(error).splitlines() if line.startswith("Max absolute"))
            row.results[engine] = f"gives other numbers. {worst}"
    return row


def main() -> None:
    """Print a line for each model, and how many pass in each engine."""
    counts: collections.Counter[str] = collections.Counter()
    for shipped in (*small(), *light()):
        row = _whole_row(shipped)
        counts.update(engine for engine, result in row.results.items() if result in _PASSING)
        opset = f"from {row.opset}" if row.is_converted else str(row.opset)
        texts = {result: [e for e in row.results if row.results[e] == result] for result in row.results.values()}
        print(f"{row.name:60} {opset:7}", *(f"{', '.join(by)}: {text}" for text, by in texts.items()), sep="  ")
        counts["models"] += 1
    print(dict(counts))


if __name__ == "__main__":
    main()
