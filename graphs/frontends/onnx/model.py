"""A model that was read from an ONNX file: called like any function over the op library."""

from __future__ import annotations

import inspect
import keyword
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from graphs.errors import ArgumentError, put_line
from graphs.frontends.onnx import ops  # noqa: F401  (fills the table)
from graphs.frontends.onnx.older import converted
from graphs.frontends.onnx.reading import OlderOpError, OnnxGraph, Opsets, dtype_of
from graphs.frontends.onnx.source import Source, inlined, opsets_of, parsed
from graphs.frontends.onnx.table import Constant
from graphs.promotion import is_scalar
from graphs.spec import TensorSpec


def load(source: Source) -> OnnxModel:
    """The model in an ONNX file, or in its bytes.

    Functions of the model, and ops that ONNX defines by others and that have no translation of their own, are read as
    what they are made of. A model with ops of older versions is converted first, by onnx. Of other files only those in
    the folder of the model are read, and none for bytes.
    Raises UntranslatedError for an op without translation, naming it, its domain and the node, ArtifactError for a file
    that is no model or a model that is wrong, and ImportError where onnx is not installed.
    """
    proto = parsed(source)
    name = proto.graph.name or "model" if isinstance(source, bytes) else Path(source).stem
    opsets = opsets_of(proto)
    try:
        return OnnxModel(inlined(proto, opsets).graph, opsets, name)
    except OlderOpError as error:
        newer = converted(proto, opsets.get("", 1), error)
        after = opsets_of(newer)
        return OnnxModel(inlined(newer, after).graph, after, name, converted_from=opsets.get("", 1))


class OnnxModel:
    """A function over the op library: `model(*inputs)`, with inputs in the model's order or by their names.

    It takes arrays, tensors of the dynamic engine and symbols of a trace. It gives one value, or a tuple of several.

    inputs           the spec of each input by name; a size that the model leaves open is symbolic
    outputs          the names of the outputs
    weights          the arrays of the model by name
    converted_from   the opset of the file, where onnx converted the model to a newer one, else None
    """

    def __init__(self, graph: onnx.GraphProto, opsets: Opsets, name: str, converted_from: int | None = None) -> None:
        self.__name__ = self.__qualname__ = name
        self._graph = OnnxGraph(graph, opsets)
        self.weights: dict[str, Constant] = self._graph.weights
        taken = [value for value in graph.input if value.name not in self.weights]
        sizes = _size_names(taken)
        self.inputs = {value.name: _spec(value, sizes) for value in taken}
        self.outputs = self._graph.outputs
        self.converted_from = converted_from
        self._labels = {label: name for name, label in identifiers({name: name for name in self.inputs}).items()}
        self.__signature__ = inspect.Signature(
            [inspect.Parameter(label, inspect.Parameter.POSITIONAL_OR_KEYWORD) for label in self._labels]
        )

    def __call__(self, *inputs: Any, weights: Mapping[str, Any] | None = None, **named: Any) -> Any:
        """Run the model; `weights` stand for its own of these names: to be trained, say.

        Raises ArgumentError for other inputs than the model has.
        """
        values = dict(zip(self.inputs, inputs, strict=False))
        values |= {self._labels.get(label, label): value for label, value in named.items()}
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
        """An input; Python numbers, or lists of them, as an array of the dtype that the model takes."""
        name, value = item
        spec = self.inputs[name]
        return name, np.asarray(value, spec.dtype) if spec is not None and _are_numbers(value) else value

    def __repr__(self) -> str:
        taken = ", ".join(f"{name}: {spec}" for name, spec in self.inputs.items())
        how = f", converted from opset {self.converted_from}" if self.converted_from is not None else ""
        return f"<model {self.__name__}({taken}) -> {', '.join(self.outputs)}{how}>"


def _are_numbers(value: Any) -> bool:
    return all(map(_are_numbers, value)) if isinstance(value, (list, tuple)) else is_scalar(value)


Sizes = Mapping[Any, str]


def _size_names(values: Sequence[onnx.ValueInfoProto]) -> Sizes:
    """The name of each symbolic size: by the model's own name for it, or by the input and axis where it has none."""
    axes = [(v.name, axis, dim) for v in values for axis, dim in enumerate(v.type.tensor_type.shape.dim)]
    own = {dim.dim_param: dim.dim_param for _, _, dim in axes if dim.dim_param}
    others = {(name, axis): f"{name}_{axis}" for name, axis, dim in axes if not dim.dim_param}
    return identifiers({**own, **others})


def _spec(value: onnx.ValueInfoProto, sizes: Sizes) -> TensorSpec | None:
    """The spec of an input; None for one that is no tensor: a sequence, or something that may be missing."""
    if not value.type.HasField("tensor_type"):
        return None
    tensor = value.type.tensor_type
    shape = [
        dim.dim_value if dim.dim_value > 0 else sizes[dim.dim_param or (value.name, axis)]
        for axis, dim in enumerate(tensor.shape.dim)
    ]
    return TensorSpec(shape, dtype_of(tensor.elem_type, f"the input {value.name}"))


def identifiers(names: Mapping[Any, str]) -> dict[Any, str]:
    """For each name an identifier of its own, which is the name itself where that is one."""
    made: dict[Any, str] = {}
    for key in sorted(names, key=lambda key: not _is_identifier(names[key])):
        label = names[key] if _is_identifier(names[key]) else "_" + re.sub(r"\W", "_", names[key], flags=re.ASCII)
        label = label.removeprefix("_") if _is_identifier(label.removeprefix("_")) else label
        while label in made.values():
            label += "_"
        made[key] = label
    return {key: made[key] for key in names}


def _is_identifier(name: str) -> bool:
    """Whether a name may be that of a parameter, besides `weights`, and of a size."""
    return name.isascii() and name.isidentifier() and not keyword.iskeyword(name) and name != "weights"
