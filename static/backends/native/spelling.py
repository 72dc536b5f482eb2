"""How LLVM spells types, numbers, masks and conversions."""

from __future__ import annotations

import struct

import numpy as np

from static.backends.native.ir import Constant, Type

_NAMES = {"f4": "float", "f8": "double", "b1": "i1"}


def llvm_type(type: Type) -> str:
    """The type as LLVM calls it."""
    element = _NAMES.get(type.dtype) or f"i{8 * int(type.dtype[1:])}"
    return element if type.lanes == 1 else f"<{type.lanes} x {element}>"


def in_memory(type: Type) -> str:
    """The type of the elements where they lie: a truth takes a byte."""
    return llvm_type(Type("u1", type.lanes) if type.dtype == "b1" else type)


def literal(constant: Constant) -> str:
    """A number as LLVM writes it, in every lane."""
    type, number = constant.type, constant.number
    if isinstance(number, tuple):
        element = Type(type.dtype, 1)
        return f"<{', '.join(f'{llvm_type(element)} {literal(Constant(element, n))}' for n in number)}>"
    if type.dtype == "b1":
        text = "true" if number else "false"
    elif type.dtype[0] == "f":
        rounded = float(np.float32(number)) if type.dtype == "f4" else float(number)
        text = f"0x{struct.unpack('<Q', struct.pack('<d', rounded))[0]:016X}"
    else:
        text = str(int(number))
    return text if type.lanes == 1 else f"splat ({llvm_type(Type(type.dtype, 1))} {text})"


def width(dtype: str) -> int:
    """The bytes of an element."""
    return int(dtype[1:])


def suffix(dtype: str) -> str:
    """How the names of intrinsics end for elements of a dtype."""
    return f"{'f' if dtype[0] == 'f' else 'i'}{8 * width(dtype)}"


def mask(lanes: int, active: int) -> str:
    """The mask of the first lanes."""
    return f"<{lanes} x i1> <{', '.join('i1 true' if i < active else 'i1 false' for i in range(lanes))}>"


def sign(name: str, kind: str) -> str:
    """A comparison of integers, with or without signs."""
    return name if name in ("eq", "ne") else ("s" if kind == "i" else "u") + name


def conversion(source: str, target: str) -> str:
    """How LLVM turns numbers of one dtype into another's."""
    wider = width(target) > width(source)
    if source[0] == "f":
        return "fpext" if wider else "fptrunc"
    if target[0] == "f":
        return "sitofp" if source[0] == "i" else "uitofp"
    if source == "b1":
        return "zext"
    if width(target) == width(source):
        return "bitcast"
    return ("sext" if source[0] == "i" else "zext") if wider else "trunc"
