"""What a file of ONNX holds, made whole: the data of other files beside it, and its functions.

A file may be a stranger's. Nothing outside of its folder is read, and nothing but the bytes where it came as bytes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError
from onnx import FunctionProto, GraphProto, ModelProto, TensorProto, inliner

from graphs.errors import ArtifactError
from graphs.frontends.onnx.form import MEND, bodies_of, domain_of, nodes_of
from graphs.frontends.onnx.reading import Opsets, missing, usual_attributes

Source = str | os.PathLike[str] | bytes

NODES = 20_000
"""How many nodes calls of functions may stand for, or a hundred for each that is written down."""
DEPTH = 100
"""How many functions may call each other, one inside the other."""


def parsed(source: Source) -> ModelProto:
    """The model in a file, or in its bytes, with what other files hold of it.

    Raises ArtifactError for a file that is no model, and for data outside of its folder, or beside bytes.
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
    """The version of each domain that a model uses. Raises ArtifactError for one that is no version."""
    opsets = {domain_of(entry): entry.version for entry in proto.opset_import}
    for domain, version in opsets.items():
        if not 0 < version < 2**31:
            raise ArtifactError(f"there is no opset {version} of {domain or 'ai.onnx'}; {MEND}")
    return opsets


def inlined(proto: ModelProto, opsets: Opsets) -> ModelProto:
    """The model without calls of its own functions, nor of functions of ONNX's that have no translation."""
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
    """Raise ArtifactError where functions call themselves, or stand for more nodes than a model has."""
    functions = {(domain_of(function), function.name): function for function in proto.functions}
    bodies = [proto.graph, *proto.functions]
    most = max(NODES, 100 * sum(len(list(nodes_of(body))) for body in bodies))
    if _size(proto.graph, functions, {}, ()) > most:
        raise ArtifactError(f"its functions stand for more than {most} nodes; export the model without functions")


def _size(
    body: GraphProto | FunctionProto, functions: Functions, sizes: dict[tuple[str, str], int],
    callers: tuple[tuple[str, str], ...],
) -> int:  # fmt: skip
    """How many nodes a body has when its calls are written out; sizes of functions are kept."""
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
    """Raise ArtifactError for a name that is no text: protobuf gives the bytes then."""
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


# Data of other files ------------------------------------------------------------------------------------------------


def _tensors(proto: ModelProto) -> Iterator[TensorProto]:
    """All tensors of a model: weights, and those among attributes."""
    for body in bodies_of(proto):
        yield from body.initializer if isinstance(body, GraphProto) else ()
        for attribute in (attribute for node in body.node for attribute in node.attribute):
            yield from [*([attribute.t] if attribute.HasField("t") else []), *attribute.tensors]


def _external(tensor: TensorProto, folder: Path | None) -> bytes:
    """The bytes of a tensor that another file of the model's folder holds."""
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
