"""Models of older opsets, converted by onnx; what its converter gets wrong is mended, or refused."""

from __future__ import annotations

from onnx import GraphProto, ModelProto, NodeProto, parser, version_converter

from graphs.onnx.form import bodies_of, nodes_of
from graphs.onnx.reading import OlderOpError


def converted(proto: ModelProto, opset: int, error: OlderOpError) -> ModelProto:
    """A model of that opset with operators of older versions, told in those of the opset that the error asks for.

    Raises that error, with a note, where onnx has no way to.
    """
    why = "of Scan it forgets the axis of examples that there was before opset 9"
    if opset >= 9 or all(node.op_type != "Scan" for node in nodes_of(proto.graph)):
        try:
            newer = version_converter.convert_version(proto, error.needed)
        except Exception as failure:  # noqa: BLE001  (ConvertError, RuntimeError and others, by the version of onnx)
            why = str(failure).strip()
        else:
            return _with_slopes(newer) if opset < 7 else newer
    error.add_note(f"onnx does not convert the model from opset {opset} to {error.needed}: {why}")
    raise error


def _with_slopes(proto: ModelProto) -> ModelProto:
    """A model that was of an opset before 7: PRelu had a slope for each channel then, which the converter leaves so."""
    for body in bodies_of(proto):
        nodes = [part for node in body.node for part in (_sloped(node) if node.op_type == "PRelu" else [node])]
        del body.node[:]
        body.node.extend(nodes)
    return proto


def _sloped(node: NodeProto) -> list[NodeProto]:
    """PRelu with its slope as [C, 1, ...], of as many axes as there are from the channels of x on."""
    (x, slope), (y,) = node.input, node.output
    names = {"x": x, "slope": slope, "y": y}
    graph: GraphProto = parser.parse_graph(_SLOPED)
    for part in graph.node:
        for side in (part.input, part.output):
            side[:] = [names.get(name, f"{y}/{name}") for name in side]
    return [*graph.node]


_SLOPED = """sloped (float[] x, float[] slope) => (float[] y) {
    shape = Shape(x)
    rank = Shape(shape)
    two = Constant<value = int64[1] {2}>()
    count = Sub(rank, two)
    ones = ConstantOfShape<value = int64[1] {1}>(count)
    rest = Constant<value = int64[1] {-1}>()
    sizes = Concat<axis = 0>(rest, ones)
    by_channel = Reshape(slope, sizes)
    y = PRelu(x, by_channel)
}"""
