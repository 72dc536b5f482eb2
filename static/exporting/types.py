"""The types that ONNX's ops take and give, by its own definitions: what is written is what ONNX allows.

An op that does not take a type is given one that holds all of its values, of the same kind, and its results are cast
back: small integers wrap round then as they do in NumPy. Where there is none, the graph is refused.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import TensorProto, helper

OPSET = 18
DType = np.dtype[Any]


class Refusal(Exception):  # noqa: N818  (a reason, to which the writer adds the op and its line)
    """Why a rule does not write a node: an op, a type or a size that ONNX has not."""


def _wider(names: str, *carriers: str) -> dict[DType, list[DType]]:
    return {np.dtype(name): [np.dtype(carrier) for carrier in carriers] for name in names.split()}


# The types that hold all values of one, those first that implementations have most often.
_CARRIERS = {
    **_wider("bool int8 int16 uint8 uint16", "int32", "int64"),
    **_wider("uint32", "int64"),
    **_wider("float16", "float32", "float64"),
    **_wider("float32", "float64"),
}


class Operand(NamedTuple):
    """The type that values have, and the one as which an op takes them."""

    own: DType
    taken: DType


def type_of(dtype: DType) -> int:
    """ONNX's type of a dtype. Raises Refusal where there is none."""
    try:
        return helper.np_dtype_to_tensor_dtype(dtype)
    except (KeyError, ValueError):
        raise Refusal(f"ONNX has no tensors of {dtype}; convert it with astype") from None


def _name(dtype: DType) -> str:
    """A type as definitions of ops write it."""
    return f"tensor({TensorProto.DataType.Name(type_of(dtype)).lower()})"


_DTYPES = {_name(np.dtype(name)): np.dtype(name) for name in ("bool", "float16", "float32", "float64")} | {
    _name(np.dtype(f"{sign}int{bits}")): np.dtype(f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)
}


@functools.cache
def _schema(op: str) -> Any:
    return onnx.defs.get_schema(op, OPSET)


@functools.cache
def _allowed(op: str) -> Mapping[str, Sequence[str]]:
    """The types that each type variable of an op stands for."""
    return {entry.type_param_str: entry.allowed_type_strs for entry in _schema(op).type_constraints}


def operands(op: str, dtypes: Sequence[DType | None]) -> list[Operand | None]:
    """How an op takes values of these types, those that have to be of one in the type that they have together.

    None stands for one that is left out, or may be of any type.

    Raises Refusal where it takes neither a type nor one that holds its values.
    """
    formal = list(_schema(op).inputs)
    of_each = [*formal, *[formal[-1]] * (len(dtypes) - len(formal))]
    variables = [entry.type_str if entry.is_homogeneous else "" for entry in of_each[: len(dtypes)]]
    together: dict[str, DType] = {}
    for variable, dtype in zip(variables, dtypes, strict=True):
        if variable and dtype is not None:
            together[variable] = np.result_type(together.get(variable, dtype), dtype)
    bound = {variable: _taken(op, variable, dtype) for variable, dtype in together.items()}
    return [None if dtype is None else bound.get(variable) for variable, dtype in zip(variables, dtypes, strict=True)]


def _taken(op: str, variable: str, dtype: DType) -> Operand:
    allowed = _allowed(op).get(variable, [variable])
    for candidate in (dtype, *_CARRIERS.get(dtype, [])):
        if _name(candidate) in allowed:
            return Operand(dtype, candidate)
    choices = ", ".join(str(_DTYPES[name]) for name in allowed if name in _DTYPES)
    raise Refusal(f"ONNX's {op} takes {choices}, not {dtype}; convert it with astype")


def results(op: str, inputs: Sequence[Operand | None], count: int, attributes: Mapping[str, Any]) -> list[Operand]:
    """The types of the results of an op: as it gives them, and as its operands have them."""
    formal, variables = list(_schema(op).outputs), list(_schema(op).inputs)
    bound = {entry.type_str: operand for entry, operand in zip(variables, inputs, strict=False) if operand is not None}
    graphs = [value for value in attributes.values() if isinstance(value, onnx.GraphProto)]
    if graphs:
        made = [_dtype(value.type.tensor_type.elem_type) for value in graphs[0].output[-count:]]
        return [Operand(dtype, dtype) for dtype in made]
    return [_result(op, entry.type_str, bound, attributes) for entry in formal[:count]]


def _result(op: str, variable: str, bound: Mapping[str, Operand], attributes: Mapping[str, Any]) -> Operand:
    if variable in bound:
        return bound[variable]
    (*_, only) = _allowed(op).get(variable, [variable])
    if "to" in attributes:
        dtype = _dtype(attributes["to"])
    else:
        dtype = _dtype(attributes["value"].data_type) if "value" in attributes else _DTYPES[only]
    return Operand(dtype, dtype)


def _dtype(kind: int) -> DType:
    return np.dtype(helper.tensor_dtype_to_np_dtype(kind))
