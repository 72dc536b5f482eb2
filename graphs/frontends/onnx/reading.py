"""Reading an ONNX graph: steps of our ops, which run one after the other on any values."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import AttributeProto, GraphProto, NodeProto, numpy_helper

from graphs.errors import ArtifactError, GraphError, ShapeError, one_line, put_line
from graphs.frontends.onnx import table
from graphs.frontends.onnx.table import (
    MEND,
    NEWEST,
    OLDEST,
    TABLE,
    Body,
    Constant,
    Floats,
    Sizes,
    Texts,
    TranslationRule,
    Types,
    check_form,
    check_names,
    check_types,
    domain_of,
    label_of,
    name_of,
    type_of,
)  # fmt: skip
from graphs.promotion import check_dtype

Values = dict[str, Any]
Opsets = Mapping[str, int]


class UntranslatedError(GraphError):
    """A model has an op, a version of an op, or a type without a translation."""


class OlderOpError(UntranslatedError):
    """A model has an op of an older version than can be read; `needed` is the opset of the first readable version."""

    needed = OLDEST


class NodeCall(NamedTuple):
    """An op of a model, ready to run, with the names of its inputs (empty for none) and outputs.

    `place` is used as the user's line in a graph.
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
        """Run the op on values by name, and add its outputs to them."""
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
        except (FloatingPointError, Warning):  # which the caller asked NumPy and Python to raise
            raise
        except Exception as error:
            raise ArtifactError(
                f"{self.label}: does not take {_describe_operands(args)} ({_cause(error)}); {MEND}"
            ) from error
        results = result if isinstance(result, tuple) else (result,)
        if len(results) < len(self.outputs):
            raise ArtifactError(f"{self.label}: has {len(results)} outputs, not {len(self.outputs)}; {MEND}")
        values.update(zip(self.outputs, results, strict=False))

    def _of_sizes(self, args: list[Any]) -> Any:
        """The result for operands that are sizes, some of them symbolic; NotImplemented for other operands."""
        operands = [value for number, value in enumerate(args) if number not in self.deciding]
        if self.op not in table.ARITHMETIC or not table.are_sizes(operands):
            return NotImplemented
        options = self.call.keywords if isinstance(self.call, functools.partial) else {}
        result = table.ARITHMETIC[self.op](*args, **options)
        return result if result is NotImplemented else table.array_of(result)

    def _operand(self, number: int, value: Any) -> Any:
        if number in self.deciding and value is not None:
            return self.deciding[number](value)
        return table.tensor(value) if table.is_symbolic(value) else value


def _describe_operands(args: Sequence[Any]) -> str:
    """Describe operands for a message."""
    texts = [
        f"{np.dtype(arg.dtype)}{[*arg.shape]}"
        if hasattr(arg, "dtype")
        else "nothing"
        if arg is None
        else type(arg).__name__
        for arg in args
    ]
    return ", ".join(texts) or "no inputs"


def _cause(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


class OnnxGraph:
    """A graph: names of inputs and outputs, weights by name, and steps in order.

    `outer` maps names of the enclosing graph's earlier values to their types.
    Raises ArtifactError for a value that is read before it is made, or made twice.
    """

    def __init__(self, graph: GraphProto, opsets: Opsets, outer: Mapping[str, str] = MappingProxyType({})) -> None:
        self.weights: dict[str, Constant] = {tensor.name: _array(tensor) for tensor in graph.initializer}
        if graph.sparse_initializer:
            raise UntranslatedError(f"{graph.name}: its weights are sparse tensors; export it with dense ones")
        self.inputs = tuple(value.name for value in graph.input if value.name not in self.weights)
        self.outputs = tuple(value.name for value in graph.output)
        made = {*self.weights, *self.inputs}
        if len(made) < len(graph.initializer) + len(self.inputs):
            raise ArtifactError(f"the graph {graph.name}: two of its inputs or weights have one name; {MEND}")
        types: Types = dict(outer)
        types |= {value.name: type_of(value.type.tensor_type.elem_type) for value in graph.input}
        types |= {tensor.name: type_of(tensor.data_type) for tensor in graph.initializer}
        steps = []
        for number, node in enumerate(graph.node):
            check_names(node, label_of(node, number), graph, made, outer)
            steps.append(_step(node, number, opsets, types))
            made.update(filter(None, node.output))
        self.steps = tuple(steps)
        absent = [name for name in self.outputs if name not in made and name not in outer]
        if absent:
            raise ArtifactError(f"the graph {graph.name}: no node makes its output {absent[0]!r}; {MEND}")
        self.captured = frozenset(self._read()) - made - {""}

    def _read(self) -> Iterable[str]:
        yield from self.outputs
        for step in self.steps:
            yield from step.inputs
            for body in step.bodies.values():
                yield from body.captured

    def run(self, values: Values) -> tuple[Any, ...]:
        """Run the graph on inputs and weights by name; returns the outputs."""
        for step in self.steps:
            step.run(values)
        return tuple(values[name] for name in self.outputs)

    def within(self, outer: Values, *inputs: Any) -> tuple[Any, ...]:
        """Run a graph that is inside another, and reads values of `outer`."""
        read = {name: outer[name] for name in self.captured}
        return self.run({**read, **self.weights, **dict(zip(self.inputs, inputs, strict=True))})


def missing(node: NodeProto) -> bool:
    """Whether an op has no translation."""
    return name_of(node) not in TABLE


def _op_schema(node: NodeProto, opsets: Opsets) -> Any:
    """ONNX's schema of an op in the model's version; None if it has none."""
    domain = domain_of(node)
    opset = opsets.get(domain, 1)
    return onnx.defs.get_schema(node.op_type, opset, domain) if onnx.defs.has(node.op_type, opset, domain) else None


def usual_attributes(node: NodeProto, opsets: Opsets) -> dict[str, AttributeProto]:
    """The default values of an op's attributes, by name."""
    schema = _op_schema(node, opsets)
    return (
        {}
        if schema is None
        else {name: a.default_value for name, a in schema.attributes.items() if a.default_value.type}
    )


def _step(node: NodeProto, number: int, opsets: Opsets, types: Types) -> NodeCall:
    label = label_of(node, number)
    try:
        return _read(node, label, opsets, types)
    except GraphError:
        raise
    except Exception as error:
        raise ArtifactError(f"{label}: cannot be read ({_cause(error)}); {MEND}") from error


def _read(node: NodeProto, label: str, opsets: Opsets, types: Types) -> NodeCall:
    entry = _entry(node, label, opsets)
    outputs = tuple(node.output)
    usual = usual_attributes(node, opsets)
    attributes = {
        proto.name: _attribute(proto, entry, label, opsets, types)
        for proto in node.attribute
        if proto.name in entry.attributes or proto != usual.get(proto.name)
    }
    check_types(node, _op_schema(node, opsets), label, types)
    bodies = {name: value for name, value in attributes.items() if isinstance(value, OnnxGraph)}
    options: dict[str, Any] = {name: value for name, value in attributes.items() if name not in bodies}
    if entry.counts:
        options["outputs"] = len(outputs)
    call = functools.partial(entry.function, **options) if options else entry.function
    place = node.name or name_of(node)
    return NodeCall(name_of(node), label, place, call, bodies, tuple(node.input), outputs, entry.deciding)


def _entry(node: NodeProto, label: str, opsets: Opsets) -> TranslationRule:
    """The translation of a node. Raises UntranslatedError for an op, or a version of it, without one."""
    if missing(node):
        latest = _op_schema(node, {"": OLDEST})
        if latest is not None and latest.deprecated:
            raise OlderOpError(
                f"{label}: the op is no more in opset {OLDEST}; export the model for that opset or a later one"
            )
        raise UntranslatedError(f"{label} has no translation; write it with ops that graphs.onnx has, or in graphs")
    entry = TABLE[name_of(node)]
    domain = domain_of(node)
    opset = opsets.get(domain, 1)
    if not domain and opset > NEWEST:
        raise UntranslatedError(f"{label}: opset {opset} is newer than {NEWEST}; export the model for that")
    schema = _op_schema(node, opsets)
    version = 0 if schema is None else schema.since_version
    if version < _first(entry, node):
        error = OlderOpError(
            f"{label}: version {version} of the op is older than {_first(entry, node)}, the first that is read; "
            f"export the model for that opset or a later one"
        )
        error.needed = max(OLDEST, _first(entry, node))
        raise error
    check_form(node, schema, label)
    if len(node.input) > entry.most:
        raise UntranslatedError(f"{label}: its input {entry.most} is not read; leave it out")
    return entry


def _first(entry: TranslationRule, node: NodeProto) -> int:
    """The first version of an op that its translation covers: that of the oldest opset, or a later one."""
    if entry.since is not None or domain_of(node):
        return entry.since or 1
    try:
        return onnx.defs.get_schema(node.op_type, OLDEST).since_version
    except onnx.defs.SchemaError:
        return OLDEST


# The ONNX type of an attribute, by the type in its translation.
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


def _attribute(
    proto: AttributeProto, entry: TranslationRule, label: str, opsets: Opsets, types: Types
) -> Any:  # fmt: skip
    """The value of an attribute. Raises UntranslatedError for an attribute that the translation does not take."""
    attribute = entry.attributes.get(proto.name)
    if attribute is None or _KINDS[attribute.kind] != proto.type:
        kind = {number: name for name, number in AttributeProto.AttributeType.items()}.get(proto.type, str(proto.type))
        raise UntranslatedError(f"{label}: the attribute {proto.name}, of type {kind}, is not read; leave it out")
    if attribute.kind == Body:
        return OnnxGraph(proto.g, opsets, types)
    if attribute.kind == Constant:
        return _array(proto.t)
    value = onnx.helper.get_attribute_value(proto)
    if attribute.kind == np.dtype[Any]:
        return dtype_of(value, label)
    if attribute.kind == Texts:
        return [text.decode() for text in value]
    value = value.decode() if attribute.kind is str else bool(value) if attribute.kind is bool else value
    refusal = attribute.refusal(value)
    if refusal:
        raise ArtifactError(f"{label}: the attribute {proto.name} {refusal}, not {value!r}; {MEND}")
    return value


def dtype_of(kind: int, label: str) -> np.dtype[Any]:
    """The dtype for an ONNX type. Raises UntranslatedError for a type that no tensor here has."""
    try:
        return check_dtype(onnx.helper.tensor_dtype_to_np_dtype(kind))
    except (GraphError, KeyError):
        names = {number: name for name, number in onnx.TensorProto.DataType.items()}
        name = names.get(kind, f"the type {kind}")
        raise UntranslatedError(f"{label}: tensors here hold bools, ints or floats, not {name}; cast it") from None


def _array(tensor: onnx.TensorProto) -> Constant:
    label = f"the tensor {tensor.name}"
    dtype = dtype_of(tensor.data_type, label)
    try:
        array = numpy_helper.to_array(tensor)
    except Exception as error:  # noqa: BLE001  (whatever NumPy and onnx raise for fewer or more bytes)
        shape = [*tensor.dims]
        raise ArtifactError(f"{label}: its data do not fill {dtype}{shape} ({_cause(error)}); {MEND}") from None
    if array.dtype == object:
        raise ShapeError(f"{label} holds {array.dtype}; export it with numbers")
    return array
