"""What a node must be: values that it reads are there, and it has the inputs, outputs and attributes of its op."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any

import onnx
from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto

from graphs.errors import ArtifactError

MEND = "correct the model, or export it again"


def name_of(node: NodeProto) -> str:
    """The op as messages name it: with its domain where that is not ONNX's own."""
    return f"{node.domain}.{node.op_type}" if node.domain not in ("", "ai.onnx") else node.op_type


def domain_of(entry: Any) -> str:
    """The domain of a node, a function or an opset: empty for ONNX's own, however it is written."""
    return "" if entry.domain == "ai.onnx" else entry.domain


def label_of(node: NodeProto, number: int) -> str:
    """A node as messages name it."""
    return f"{name_of(node)} (node {node.name or number}, domain {node.domain or 'ai.onnx'})"


def nodes_of(body: GraphProto | FunctionProto) -> Iterator[NodeProto]:
    """The nodes of a graph, and of those that its nodes hold."""
    for node in body.node:
        yield node
        for attribute in node.attribute:
            for graph in graphs_of(attribute):
                yield from nodes_of(graph)


def graphs_of(attribute: AttributeProto) -> list[GraphProto]:
    """The graphs that an attribute holds."""
    return [*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs]


def bodies_of(proto: ModelProto) -> Iterator[GraphProto | FunctionProto]:
    """The graphs and functions of a model, with those that their nodes hold."""
    bodies = [proto.graph, *proto.functions]
    while bodies:
        body = bodies.pop()
        yield body
        bodies += [graph for node in body.node for attribute in node.attribute for graph in graphs_of(attribute)]


Types = dict[str, str]  # of values by name, as ONNX writes them; empty where it is not known


@functools.cache
def type_of(kind: int) -> str:
    """The type of tensors whose elements are of this one, as ONNX writes it."""
    names = {number: name for name, number in TensorProto.DataType.items()}
    return f"tensor({names[kind].lower()})" if kind in names and kind != TensorProto.UNDEFINED else ""


def check_types(node: NodeProto, schema: onnx.defs.OpSchema, label: str, types: Types) -> None:
    """Raise ArtifactError where operands are of types that the op does not take; add the types of its results."""
    allowed = {entry.type_param_str: entry.allowed_type_strs for entry in schema.type_constraints}
    operands = [*schema.inputs, *[*schema.inputs[-1:]] * len(node.input)]
    results = [*schema.outputs, *[*schema.outputs[-1:]] * len(node.output)]
    bound: Types = {}
    for entry, name in zip(operands, node.input, strict=False):
        kind = types.get(name, "")
        if not kind or not entry.is_homogeneous:
            continue
        if kind not in allowed.get(entry.type_str, [entry.type_str]):
            raise ArtifactError(f"{label}: its input {name!r} is a {kind}, which it does not take; {MEND}")
        if bound.setdefault(entry.type_str, kind) != kind:
            raise ArtifactError(f"{label}: takes inputs of one type, not {bound[entry.type_str]} and {kind}; {MEND}")
    for entry, name in zip(results, node.output, strict=False):
        choices = allowed.get(entry.type_str, [entry.type_str])
        own = bound.get(entry.type_str, "") if entry.is_homogeneous else ""
        types[name] = choices[0] if len(choices) == 1 else own


def check_names(node: NodeProto, label: str, graph: GraphProto, made: set[str], outer: Mapping[str, str]) -> None:
    """Raise ArtifactError where a node reads what is not there, or makes what is."""
    for name in filter(None, node.input):
        if name not in made and name not in outer:
            later = any(name in other.output for other in graph.node)
            why = "a node after it makes, or itself" if later else "nothing makes"
            raise ArtifactError(f"{label}: reads {name!r}, which {why}; {MEND}")
    outputs = [*filter(None, node.output)]
    again = [name for number, name in enumerate(outputs) if name in made or name in outputs[:number]]
    if again:
        raise ArtifactError(f"{label}: makes {again[0]!r}, which is made already; {MEND}")


def check_form(node: NodeProto, schema: onnx.defs.OpSchema, label: str) -> None:
    """Raise ArtifactError for other counts of inputs and outputs than an op has, and for what it must be given."""
    for kind, count, least, most in (
        ("input", len(node.input), schema.min_input, schema.max_input),
        ("output", len(node.output), schema.min_output, schema.max_output),
    ):
        if not least <= count <= most:
            limits = f"{least}" if least == most else f"{least} or more" if most > 1000 else f"{least} to {most}"
            raise ArtifactError(f"{label}: has {count} {kind}s, and takes {limits}; {MEND}")
    for number, (formal, name) in enumerate(zip(schema.inputs, node.input, strict=False)):
        if not name and formal.option == onnx.defs.OpSchema.FormalParameterOption.Single:
            raise ArtifactError(f"{label}: its input {number}, {formal.name}, is left out; {MEND}")
    names = [attribute.name for attribute in node.attribute]
    for name, attribute in schema.attributes.items():
        if attribute.required and name not in names:
            raise ArtifactError(f"{label}: the attribute {name} is missing; {MEND}")
    if len(names) > len(set(names)):
        raise ArtifactError(f"{label}: has an attribute twice; {MEND}")
