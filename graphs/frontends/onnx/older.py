"""Models of older opsets, converted by onnx; what its converter gets wrong is mended, or refused."""

from __future__ import annotations

from collections.abc import Mapping

from onnx import GraphProto, ModelProto, NodeProto, helper, numpy_helper, parser, version_converter

from graphs.frontends.onnx.form import bodies_of, nodes_of
from graphs.frontends.onnx.reading import OlderOpError
from graphs.frontends.onnx.table import Constant


def converted(proto: ModelProto, opset: int, error: OlderOpError) -> ModelProto:
    """A model of that opset with operators of older versions, told in those of the opset that the error asks for.

    Raises that error, with a note, where onnx has no way to.
    """
    wrong = {node.op_type for node in nodes_of(proto.graph)} & {
        op for op, (until, _) in _FORGOTTEN.items() if opset < until
    }
    why = "; ".join(_FORGOTTEN[op][1] for op in sorted(wrong))
    if not wrong:
        try:
            return _mended(version_converter.convert_version(proto, error.needed), opset)
        except Exception as failure:  # noqa: BLE001  (ConvertError, RuntimeError and others, by the version of onnx)
            why = str(failure).strip()
    error.add_note(f"onnx does not convert the model from opset {opset} to {error.needed}: {why}")
    raise error


# What the converter says nothing of: the opset from which on an op is what it is now, and what it was before.
_FORGOTTEN = {
    "Scan": (9, "Scan had an axis of examples before opset 9"),
    "Hardmax": (13, "Hardmax was over all axes from one on before opset 13"),
}


def _mended(proto: ModelProto, opset: int) -> ModelProto:
    """What was converted from that opset, with what the converter forgets."""
    for body in bodies_of(proto):
        arrays = {tensor.name: numpy_helper.to_array(tensor) for tensor in getattr(body, "initializer", ())}
        nodes = [part for node in body.node for part in _parts(node, opset, arrays)]
        del body.node[:]
        body.node.extend(nodes)
    return proto


def _parts(node: NodeProto, opset: int, arrays: Mapping[str, Constant]) -> list[NodeProto]:
    """PRelu had a slope for each channel before opset 7, and Resize began at 0 before opset 11."""
    if node.op_type == "PRelu" and opset < 7:
        return _sloped(node)
    if node.op_type == "Resize" and opset < 11:
        modes = {
            "coordinate_transformation_mode": "asymmetric",
            "nearest_mode": _rounding(arrays.get(node.input[2]), opset),
        }
        others = [attribute for attribute in node.attribute if attribute.name not in modes]
        del node.attribute[:]
        node.attribute.extend([*others, *(helper.make_attribute(*item) for item in modes.items())])
    return [node]


def _rounding(scales: Constant | None, opset: int) -> str:
    """Down where an image grows, up where it shrinks. Raises ValueError where that is not known."""
    if opset < 10 or (scales is not None and bool((scales >= 1).all())):  # what was Upsample grows
        return "floor"
    if scales is not None and bool((scales <= 1).all()):
        return "ceil"
    raise ValueError("Resize rounded up where an image shrinks before opset 11, and its scales are not known")


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
