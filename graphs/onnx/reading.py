"""A graph of ONNX, read: steps of our ops, run one after the other on whatever values they are given."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import AttributeProto, GraphProto, NodeProto, numpy_helper

from graphs.errors import GraphError, ShapeError, put_line
from graphs.onnx import sizes
from graphs.onnx.sizes import Sizes
from graphs.onnx.table import NEWEST, OLDEST, TABLE, Body, Constant, Floats, Texts, Translated
from graphs.plain import one_line
from graphs.promotion import held

Values = dict[str, Any]
Opsets = Mapping[str, int]


class UntranslatedError(GraphError):
    """A model has an op, a version of one, or a type that has no translation."""


class NodeCall(NamedTuple):
    """An op of a model, ready to run: names of values that it reads (empty for none) and makes.

    In a graph `place` stands where the line of a program would.
    """

    op: str
    label: str
    place: str
    call: Callable[..., Any]
    bodies: dict[str, OnnxGraph]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    deciding: Mapping[int, Callable[[Any], Any]]

    def run(self, values: Values) -> None:
        """Compute the outputs among these values."""
        args = [values[name] if name else None for name in self.inputs]
        put_line(self.place)
        try:
            result = self._of_sizes(args)
            if result is NotImplemented:
                bodies = {name: functools.partial(body.within, values) for name, body in self.bodies.items()}
                result = self.call(*map(self._operand, range(len(args)), args), **bodies)
        except GraphError as error:
            error.add_note(one_line(f"in {self.label} of the model"))
            raise
        results = result if isinstance(result, tuple) else (result,)
        values.update(zip(self.outputs, results, strict=False))

    def _of_sizes(self, args: list[Any]) -> Any:
        """The result where the operands are sizes, some of them symbolic, and is sizes again; else NotImplemented."""
        operands = [value for number, value in enumerate(args) if number not in self.deciding]
        if self.op not in sizes.ARITHMETIC or not sizes.are_sizes(operands):
            return NotImplemented
        options = self.call.keywords if isinstance(self.call, functools.partial) else {}
        result = sizes.ARITHMETIC[self.op](*args, **options)
        return result if result is NotImplemented else sizes.array_of(result)

    def _operand(self, number: int, value: Any) -> Any:
        if number in self.deciding and value is not None:
            return self.deciding[number](value)
        return sizes.tensor(value) if sizes.is_symbolic(value) else value


class OnnxGraph:
    """A graph: the names of its inputs and outputs, its weights by name, and the steps in their order."""

    def __init__(self, graph: GraphProto, opsets: Opsets) -> None:
        self.weights: dict[str, Constant] = {tensor.name: _array(tensor) for tensor in graph.initializer}
        if graph.sparse_initializer:
            raise UntranslatedError(f"{graph.name}: its weights are sparse tensors; export it with dense ones")
        self.inputs = tuple(value.name for value in graph.input if value.name not in self.weights)
        self.outputs = tuple(value.name for value in graph.output)
        self.steps = tuple(_step(node, number, opsets) for number, node in enumerate(graph.node))
        made = {*self.weights, *self.inputs, *(name for step in self.steps for name in step.outputs)}
        self.captured = frozenset(self._read()) - made - {""}

    def _read(self) -> Iterable[str]:
        yield from self.outputs
        for step in self.steps:
            yield from step.inputs
            for body in step.bodies.values():
                yield from body.captured

    def run(self, values: Values) -> tuple[Any, ...]:
        """The outputs, from the values of inputs and weights, by name."""
        for step in self.steps:
            step.run(values)
        return tuple(values[name] for name in self.outputs)

    def within(self, outer: Values, *inputs: Any) -> tuple[Any, ...]:
        """The same for a graph inside another, which reads values of that."""
        read = {name: outer[name] for name in self.captured}
        return self.run({**read, **self.weights, **dict(zip(self.inputs, inputs, strict=True))})


def name_of(node: NodeProto) -> str:
    """The op as messages name it: with its domain where that is not ONNX's own."""
    return f"{node.domain}.{node.op_type}" if node.domain not in ("", "ai.onnx") else node.op_type


def missing(node: NodeProto) -> bool:
    """Whether an op has no translation."""
    return name_of(node) not in TABLE


def defaults(node: NodeProto, opsets: Opsets) -> dict[str, AttributeProto]:
    """The attributes of an op that have a value where a model gives none, by name."""
    if not onnx.defs.has(node.op_type, node.domain):
        return {}
    schema = onnx.defs.get_schema(node.op_type, opsets.get(node.domain, 1), node.domain)
    return {name: a.default_value for name, a in schema.attributes.items() if a.default_value.type}


def _step(node: NodeProto, number: int, opsets: Opsets) -> NodeCall:
    label = f"{name_of(node)} (node {node.name or number}, domain {node.domain or 'ai.onnx'})"
    entry = _entry(node, label, opsets)
    outputs = tuple(node.output)
    usual = defaults(node, opsets)
    attributes = {
        proto.name: _attribute(proto, entry, label, opsets)
        for proto in node.attribute
        if proto.name in entry.attributes or proto != usual.get(proto.name)
    }
    bodies = {name: value for name, value in attributes.items() if isinstance(value, OnnxGraph)}
    options: dict[str, Any] = {name: value for name, value in attributes.items() if name not in bodies}
    if entry.counts:
        options["outputs"] = len(outputs)
    call = functools.partial(entry.function, **options) if options else entry.function
    place = node.name or name_of(node)
    return NodeCall(name_of(node), label, place, call, bodies, tuple(node.input), outputs, entry.deciding)


def _entry(node: NodeProto, label: str, opsets: Opsets) -> Translated:
    """The translation of a node. Raises UntranslatedError where there is none of its op, or of that version."""
    if missing(node):
        raise UntranslatedError(f"{label} has no translation; write it with ops that graphs.onnx has, or in graphs")
    entry = TABLE[name_of(node)]
    opset = opsets.get(node.domain, 1)
    if node.domain in ("", "ai.onnx") and opset > NEWEST:
        raise UntranslatedError(f"{label}: opset {opset} is newer than {NEWEST}; export the model for that")
    schema = onnx.defs.get_schema(node.op_type, opset, node.domain)
    if schema.since_version < _first(entry, node):
        raise UntranslatedError(
            f"{label}: version {schema.since_version} of the op is older than {_first(entry, node)}, the first that is "
            f"read; bring the model to it with onnx.version_converter"
        )
    return entry


def _first(entry: Translated, node: NodeProto) -> int:
    """The first version of an op that its translation tells: that of the oldest opset, or of a later one."""
    if entry.since is not None or node.domain not in ("", "ai.onnx"):
        return entry.since or 1
    try:
        return onnx.defs.get_schema(node.op_type, OLDEST, node.domain).since_version
    except onnx.defs.SchemaError:
        return OLDEST


# The type of an attribute in a translation, and in ONNX.
_KINDS: dict[Any, Any] = {
    int: AttributeProto.INT,
    bool: AttributeProto.INT,
    np.dtype[Any]: AttributeProto.INT,
    float: AttributeProto.FLOAT,
    str: AttributeProto.STRING,
    Sizes: AttributeProto.INTS,
    Floats: AttributeProto.FLOATS,
    Texts: AttributeProto.STRINGS,
    Constant: AttributeProto.TENSOR,
    Body: AttributeProto.GRAPH,
}


def _attribute(proto: AttributeProto, entry: Translated, label: str, opsets: Opsets) -> Any:
    """The value of an attribute. Raises UntranslatedError for one that the translation lacks, or has otherwise."""
    expected = entry.attributes.get(proto.name)
    if expected is None or _KINDS[expected] != proto.type:
        kind = AttributeProto.AttributeType.Name(proto.type)
        raise UntranslatedError(f"{label}: the attribute {proto.name}, of type {kind}, is not read; leave it out")
    if expected == Body:
        return OnnxGraph(proto.g, opsets)
    if expected == Constant:
        return _array(proto.t)
    value = onnx.helper.get_attribute_value(proto)
    if expected == np.dtype[Any]:
        return dtype_of(value, label)
    if expected == Texts:
        return [text.decode() for text in value]
    return value.decode() if expected is str else bool(value) if expected is bool else value


def dtype_of(kind: int, label: str) -> np.dtype[Any]:
    """The dtype of a type of ONNX's. Raises UntranslatedError for one that no tensor here has."""
    try:
        return held(onnx.helper.tensor_dtype_to_np_dtype(kind))
    except (GraphError, KeyError):
        name = onnx.TensorProto.DataType.Name(kind)
        raise UntranslatedError(f"{label}: tensors here hold bools, ints or floats, not {name}; cast it") from None


def _array(tensor: onnx.TensorProto) -> Constant:
    dtype_of(tensor.data_type, f"the tensor {tensor.name}")
    array = numpy_helper.to_array(tensor)
    if array.dtype == object:
        raise ShapeError(f"the tensor {tensor.name} holds {array.dtype}; export it with numbers")
    return array
