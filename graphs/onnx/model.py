"""A model that was read from an ONNX file: called like any function over the op library."""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from onnx import inliner

from graphs.errors import ArgumentError, ArtifactError, put_line
from graphs.onnx import ops  # noqa: F401  (fills the table)
from graphs.onnx.reading import OnnxGraph, Opsets, defaults, dtype_of, missing
from graphs.onnx.table import Constant
from graphs.promotion import is_scalar
from graphs.spec import TensorSpec

Source = str | os.PathLike[str] | bytes


def load(source: Source) -> OnnxModel:
    """The model in an ONNX file, or in its bytes.

    Functions of the model, and ops that ONNX defines by others and that have no translation of their own, are read as
    what they are made of. Raises UntranslatedError for an op without translation, naming it, its domain and the node,
    ArtifactError for a file that is no model, and ImportError where onnx is not installed.
    """
    try:
        proto = onnx.load_from_string(source) if isinstance(source, bytes) else onnx.load(Path(source))
    except DecodeError as error:
        raise ArtifactError(f"no model of ONNX, or damaged ({error}); export it again") from None
    opsets = {entry.domain: entry.version for entry in proto.opset_import}
    name = proto.graph.name or "model" if isinstance(source, bytes) else Path(source).stem
    return OnnxModel(_inlined(proto, opsets).graph, opsets, name)


def _inlined(proto: onnx.ModelProto, opsets: Opsets) -> onnx.ModelProto:
    """The model without calls of its own functions, nor of functions of ONNX's that have no translation."""
    if proto.functions:
        proto = inliner.inline_local_functions(proto)
    absent = [node for node in _nodes(proto.graph) if missing(node)]
    for node in absent:  # the inliner leaves out what has its usual value
        held = {attribute.name for attribute in node.attribute}
        node.attribute.extend(usual for name, usual in defaults(node, opsets).items() if name not in held)
    names = {(node.domain, node.op_type) for node in absent}
    try:
        return inliner.inline_selected_functions(proto, [*names], inline_schema_functions=True) if names else proto
    except RuntimeError:  # it does not know the type of an input that is left out
        return proto  # its ops are refused by name


def _nodes(graph: onnx.GraphProto) -> list[onnx.NodeProto]:
    """The nodes of a graph, and of those that its nodes hold."""
    inner = [attribute.g for node in graph.node for attribute in node.attribute if attribute.HasField("g")]
    return [*graph.node, *(node for body in inner for node in _nodes(body))]


class OnnxModel:
    """A function over the op library: `model(*inputs)`, with inputs in the model's order or by their names.

    It takes arrays, tensors of the dynamic engine and symbols of a trace. It gives one value, or a tuple of several.

    inputs    the spec of each input by name; a size that the model leaves open is symbolic
    outputs   the names of the outputs
    weights   the arrays of the model by name
    """

    def __init__(self, graph: onnx.GraphProto, opsets: Opsets, name: str) -> None:
        self.__name__ = self.__qualname__ = name
        self._graph = OnnxGraph(graph, opsets)
        self.weights: dict[str, Constant] = self._graph.weights
        self.inputs = {value.name: _spec(value) for value in graph.input if value.name not in self.weights}
        self.outputs = self._graph.outputs
        names = [_identifier(label) for label in self.inputs]
        self.__signature__ = inspect.Signature(
            [inspect.Parameter(label, inspect.Parameter.POSITIONAL_OR_KEYWORD) for label in dict.fromkeys(names)]
        )

    def __call__(self, *inputs: Any, weights: Mapping[str, Any] | None = None, **named: Any) -> Any:
        """Run the model; `weights` stand for its own of these names: to be trained, say.

        Raises ArgumentError for other inputs than the model has.
        """
        values = dict(zip(self.inputs, inputs, strict=False)) | named
        if len(inputs) > len(self.inputs) or values.keys() != self.inputs.keys():
            raise ArgumentError(
                f"{self.__name__}: takes {', '.join(self.inputs)}; {len(inputs)} inputs and "
                f"{', '.join(named) or 'no names'} were given"
            )
        before = put_line("")
        try:
            results = self._graph.run({**self.weights, **(weights or {}), **dict(map(self._typed, values.items()))})
        finally:
            put_line(before)
        return results[0] if len(results) == 1 else results

    def _typed(self, item: tuple[str, Any]) -> tuple[str, Any]:
        """An input, a Python number as an array of the dtype that the model takes."""
        name, value = item
        spec = self.inputs[name]
        return name, np.asarray(value, spec.dtype) if is_scalar(value) and spec is not None else value

    def __repr__(self) -> str:
        taken = ", ".join(f"{name}: {spec}" for name, spec in self.inputs.items())
        return f"<model {self.__name__}({taken}) -> {', '.join(self.outputs)}>"


def _spec(value: onnx.ValueInfoProto) -> TensorSpec | None:
    """The spec of an input; None for one that is no tensor: a sequence, or something that may be missing."""
    if not value.type.HasField("tensor_type"):
        return None
    tensor = value.type.tensor_type
    sizes = [_size(dim, f"{value.name}_{axis}") for axis, dim in enumerate(tensor.shape.dim)]
    return TensorSpec(sizes, dtype_of(tensor.elem_type, f"the input {value.name}"))


def _size(dim: onnx.TensorShapeProto.Dimension, otherwise: str) -> int | str:
    """A number, or the name of a symbolic size: the model's where it gives one."""
    name = dim.dim_param or otherwise
    return dim.dim_value if dim.HasField("dim_value") and dim.dim_value > 0 else _identifier(name)


def _identifier(name: str) -> str:
    text = "".join(letter if letter.isalnum() else "_" for letter in name)
    return text if text.isidentifier() else f"_{text}"
