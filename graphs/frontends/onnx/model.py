"""An ONNX model: read from a file, converted to one opset, and called like any function over the op library."""

from __future__ import annotations

import inspect
import keyword
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from onnx import (
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    helper,
    inliner,
    numpy_helper,
    parser,
    version_converter,
)

from graphs.errors import ArgumentError, ArtifactError, put_line
from graphs.frontends.onnx import ops  # noqa: F401  (fills the table)
from graphs.frontends.onnx.reading import OlderOpError, OnnxGraph, Opsets, dtype_of, missing, usual_attributes
from graphs.frontends.onnx.table import MEND, Constant, bodies_of, domain_of, nodes_of
from graphs.promotion import is_scalar
from graphs.spec import TensorSpec

Source = str | os.PathLike[str] | bytes

NODES = 20_000
"""How many nodes calls of functions may stand for, or a hundred for each that is written down."""
DEPTH = 100
"""How many functions may call each other, one inside the other."""


def parse_model(source: Source) -> ModelProto:
    """Read a model from a file or bytes, with the tensors that other files hold.

    Raises ArtifactError for a file that is no model, for data outside its folder, and for other files beside bytes.
    """
    data = source if isinstance(source, bytes) else Path(source).read_bytes()
    try:
        proto = onnx.load_model_from_string(data)
    except DecodeError as error:
        raise ArtifactError(f"no model of ONNX, or damaged ({error}); export it again") from None
    if not proto.graph.output:
        raise ArtifactError("no model of ONNX, or damaged: there is no graph with an output; export it again")
    _check_texts(proto)
    folder = None if isinstance(source, bytes) else Path(source).parent
    for tensor in _tensors(proto):
        if tensor.data_location == TensorProto.EXTERNAL:
            tensor.raw_data = _external(tensor, folder)
            tensor.data_location = TensorProto.DEFAULT
    return proto


def opsets_of(proto: ModelProto) -> dict[str, int]:
    """The opset version of each domain that a model uses. Raises ArtifactError for an invalid version."""
    opsets = {domain_of(entry): entry.version for entry in proto.opset_import}
    for domain, version in opsets.items():
        if not 0 < version < 2**31:
            raise ArtifactError(f"there is no opset {version} of {domain or 'ai.onnx'}; {MEND}")
    return opsets


def inline_functions(proto: ModelProto, opsets: Opsets) -> ModelProto:
    """Inline calls of the model's own functions, and of ONNX functions that have no translation."""
    if proto.functions:
        _check_calls(proto)
        try:
            proto = inliner.inline_local_functions(proto)
        except Exception as error:  # noqa: BLE001  (whatever onnx raises for a function that is wrong)
            raise ArtifactError(f"its functions cannot be written out ({str(error).strip()}); {MEND}") from None
    absent = [node for node in nodes_of(proto.graph) if missing(node)]
    for node in absent:  # the inliner leaves out what has its usual value
        present = {attribute.name for attribute in node.attribute}
        node.attribute.extend(usual for name, usual in usual_attributes(node, opsets).items() if name not in present)
    names = {(node.domain, node.op_type) for node in absent}
    try:
        return inliner.inline_selected_functions(proto, [*names], inline_schema_functions=True) if names else proto
    except Exception:  # noqa: BLE001  (an input is left out, whose type it does not know, or an attribute is wrong)
        return proto  # its ops are refused by name


# Functions ----------------------------------------------------------------------------------------------------------

Functions = Mapping[tuple[str, str], FunctionProto]


def _check_calls(proto: ModelProto) -> None:
    """Raise ArtifactError for functions that call themselves, or that expand to more nodes than allowed."""
    functions = {(domain_of(function), function.name): function for function in proto.functions}
    bodies = [proto.graph, *proto.functions]
    most = max(NODES, 100 * sum(len(list(nodes_of(body))) for body in bodies))
    if _size(proto.graph, functions, {}, ()) > most:
        raise ArtifactError(f"its functions stand for more than {most} nodes; export the model without functions")


def _size(
    body: GraphProto | FunctionProto, functions: Functions, sizes: dict[tuple[str, str], int],
    callers: tuple[tuple[str, str], ...],
) -> int:  # fmt: skip
    """The number of nodes of a body with all calls expanded; sizes of functions are cached in `sizes`."""
    total = 0
    for node in nodes_of(body):
        key = domain_of(node), node.op_type
        if key not in functions:
            total += 1
            continue
        if key in callers or len(callers) == DEPTH:
            why = "calls itself" if key in callers else f"is called inside {DEPTH} others"
            raise ArtifactError(f"the function {node.op_type} {why}; export the model without functions")
        if key not in sizes:
            sizes[key] = _size(functions[key], functions, sizes, (*callers, key))
        total += sizes[key]
    return total


def _check_texts(proto: ModelProto) -> None:
    """Raise ArtifactError for a name that is not text: protobuf returns bytes then."""
    values = [*proto.graph.input, *proto.graph.output]
    names = [proto.graph.name, *(entry.domain for entry in proto.opset_import)]
    names += [
        name for value in values for name in (value.name, *(d.dim_param for d in value.type.tensor_type.shape.dim))
    ]
    for body in bodies_of(proto):
        names += [value.name for value in (*body.initializer, *body.input)] if isinstance(body, GraphProto) else []
        for node in body.node:
            names += [node.op_type, node.domain, node.name, *node.input, *node.output]
            names += [attribute.name for attribute in node.attribute]
    wrong = [name for name in names if not isinstance(name, str)]
    if wrong:
        raise ArtifactError(f"{wrong[0]!r} is no text, and stands for a name; {MEND}")


# External data
# --------------------------------------------------------------------------------------------------------


def _tensors(proto: ModelProto) -> Iterator[TensorProto]:
    """All tensors of a model: its weights, and tensors among attributes."""
    for body in bodies_of(proto):
        yield from body.initializer if isinstance(body, GraphProto) else ()
        for attribute in (attribute for node in body.node for attribute in node.attribute):
            yield from [*([attribute.t] if attribute.HasField("t") else []), *attribute.tensors]


def _external(tensor: TensorProto, folder: Path | None) -> bytes:
    """The bytes of a tensor in another file of the model's folder."""
    place = {entry.key: entry.value for entry in tensor.external_data}
    location = place.get("location", "")
    label = f"the tensor {tensor.name}, which lies in the file {location!r}"
    if folder is None:
        raise ArtifactError(f"{label}, is not read for a model from bytes; load the model by its path")
    inside = folder.resolve()
    try:
        path = (inside / location).resolve()
        is_there = path.is_relative_to(inside) and path.is_file()
    except (OSError, RuntimeError, ValueError):  # a name that no file may have, or links in a circle
        is_there = False
    if not is_there:
        raise ArtifactError(f"{label}: there is no such file in the folder of the model; put it there")
    size = path.stat().st_size
    try:
        offset = int(place.get("offset", 0))
        length = int(place.get("length", size - offset))
    except ValueError:
        raise ArtifactError(f"{label}: its offset and length are no numbers; export the model again") from None
    if offset < 0 or length < 0 or offset + length > size:
        raise ArtifactError(f"{label}: {length} bytes from {offset} on are more than its {size}; copy the file again")
    with path.open("rb") as file:
        file.seek(offset)
        return file.read(length)


def convert_model(proto: ModelProto, opset: int, error: OlderOpError) -> ModelProto:
    """Convert a model whose opset is older than its translations to the opset that `error` names.

    Raises that error, with a note, where onnx cannot convert.
    """
    wrong = {node.op_type for node in nodes_of(proto.graph)} & {
        op for op, (until, _) in _FORGOTTEN.items() if opset < until
    }
    why = "; ".join(_FORGOTTEN[op][1] for op in sorted(wrong))
    if not wrong:
        try:
            # Fix the result of a conversion from `opset` where the converter ignores a change.
            proto = version_converter.convert_version(proto, error.needed)
            for body in bodies_of(proto):
                arrays = {tensor.name: numpy_helper.to_array(tensor) for tensor in getattr(body, "initializer", ())}
                nodes = [part for node in body.node for part in _parts(node, opset, arrays)]
                del body.node[:]
                body.node.extend(nodes)
            return proto
        except Exception as failure:  # noqa: BLE001  (ConvertError, RuntimeError and others, by the version of onnx)
            why = str(failure).strip()
    error.add_note(f"onnx does not convert the model from opset {opset} to {error.needed}: {why}")
    raise error


# Changes that the converter ignores: the opset since which an op has its current meaning, and its meaning before.
_FORGOTTEN = {
    "Scan": (9, "Scan had an axis of examples before opset 9"),
    "Hardmax": (13, "Hardmax was over all axes from one on before opset 13"),
}


def _parts(node: NodeProto, opset: int, arrays: Mapping[str, Constant]) -> list[NodeProto]:
    """The nodes for a node of an older opset: PRelu had a slope per channel before 7, Resize began at 0 before 11."""
    if node.op_type == "PRelu" and opset < 7:
        # PRelu with its slope reshaped to [C, 1, ...], to broadcast along the channels of x.
        (x, slope), (y,) = node.input, node.output
        names = {"x": x, "slope": slope, "y": y}
        graph: GraphProto = parser.parse_graph(_SLOPED)
        for part in graph.node:
            for side in (part.input, part.output):
                side[:] = [names.get(name, f"{y}/{name}") for name in side]
        return [*graph.node]
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
    """The rounding of Resize: down where an image grows, up where it shrinks. Raises ValueError for unknown scales."""
    if opset < 10 or (scales is not None and bool((scales >= 1).all())):  # what was Upsample grows
        return "floor"
    if scales is not None and bool((scales <= 1).all()):
        return "ceil"
    raise ValueError("Resize rounded up where an image shrinks before opset 11, and its scales are not known")


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


def load(source: Source) -> OnnxModel:
    """The model in an ONNX file, or in its bytes.

    Functions of the model, and ops that ONNX defines by others and that have no translation of their own, are read as
    what they are made of. A model with ops of older versions is converted first, by onnx. Of other files only those in
    the folder of the model are read, and none for bytes.
    Raises UntranslatedError for an op without translation, naming it, its domain and the node, ArtifactError for a file
    that is no model or a model that is wrong, and ImportError where onnx is not installed.
    """
    proto = parse_model(source)
    name = proto.graph.name or "model" if isinstance(source, bytes) else Path(source).stem
    opsets = opsets_of(proto)
    try:
        return OnnxModel(inline_functions(proto, opsets).graph, opsets, name)
    except OlderOpError as error:
        newer = convert_model(proto, opsets.get("", 1), error)
        after = opsets_of(newer)
        return OnnxModel(inline_functions(newer, after).graph, after, name, converted_from=opsets.get("", 1))


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
        # The name of each symbolic size: the model's own, or one made of input and axis.
        axes = [(v.name, axis, dim) for v in taken for axis, dim in enumerate(v.type.tensor_type.shape.dim)]
        own = {dim.dim_param: dim.dim_param for _, _, dim in axes if dim.dim_param}
        others = {(name, axis): f"{name}_{axis}" for name, axis, dim in axes if not dim.dim_param}
        sizes = identifiers({**own, **others})
        self.inputs = {value.name: _spec(value, sizes) for value in taken}
        self.outputs = self._graph.outputs
        self.converted_from = converted_from
        self._labels = {label: name for name, label in identifiers({name: name for name in self.inputs}).items()}
        self.__signature__ = inspect.Signature(
            [inspect.Parameter(label, inspect.Parameter.POSITIONAL_OR_KEYWORD) for label in self._labels]
        )

    def __call__(self, *inputs: Any, weights: Mapping[str, Any] | None = None, **named: Any) -> Any:
        """Run the model; `weights` replace the model's own weights of these names, for training, say.

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
            results = self._graph.run(
                {**self.weights, **(weights or {}), **dict(map(self._cast_input, values.items()))}
            )
        finally:
            put_line(before)
        return results[0] if len(results) == 1 else results

    def _cast_input(self, item: tuple[str, Any]) -> tuple[str, Any]:
        """An input by name; Python numbers, or lists of them, become an array of the model's dtype."""
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


def _spec(value: onnx.ValueInfoProto, sizes: Sizes) -> TensorSpec | None:
    """The spec of an input; None for an input that is no tensor, such as a sequence or an optional."""
    if not value.type.HasField("tensor_type"):
        return None
    tensor = value.type.tensor_type
    shape = [
        dim.dim_value if dim.dim_value > 0 else sizes[dim.dim_param or (value.name, axis)]
        for axis, dim in enumerate(tensor.shape.dim)
    ]
    return TensorSpec(shape, dtype_of(tensor.elem_type, f"the input {value.name}"))


def identifiers(names: Mapping[Any, str]) -> dict[Any, str]:
    """A distinct identifier for each name; a name that is an identifier stays."""
    made: dict[Any, str] = {}
    for key in sorted(names, key=lambda key: not _is_identifier(names[key])):
        label = names[key] if _is_identifier(names[key]) else "_" + re.sub(r"\W", "_", names[key], flags=re.ASCII)
        label = label.removeprefix("_") if _is_identifier(label.removeprefix("_")) else label
        while label in made.values():
            label += "_"
        made[key] = label
    return {key: made[key] for key in names}


def _is_identifier(name: str) -> bool:
    """Whether a name may be a parameter, other than `weights`, and a size."""
    return name.isascii() and name.isidentifier() and not keyword.iskeyword(name) and name != "weights"
