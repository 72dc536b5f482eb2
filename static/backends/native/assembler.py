"""Functions that are the same for every graph, as LLVM IR: fields of structures by name, and loops over a count.

llvmlite's builder knows the types. This needs llvmlite, so only what compiles imports it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from llvmlite import ir

from static.backends.native.layouts import kinds

BYTE, INT, LONG, POINTER = ir.IntType(8), ir.IntType(32), ir.IntType(64), ir.PointerType()
NULL = ir.Constant(POINTER, None)
_TYPES = {ctypes.c_int64: LONG, ctypes.c_ssize_t: LONG, ctypes.c_int: INT, ctypes.c_void_p: POINTER}


def number(value: int, type: Any = LONG) -> Any:
    """A constant."""
    return ir.Constant(type, value)


class FunctionWriter:
    """Writes one function, from its first instruction to its last. `b` is llvmlite's builder."""

    def __init__(self, module: Any, name: str, result: Any, arguments: Sequence[Any], is_internal: bool = True) -> None:
        self.function = ir.Function(module, ir.FunctionType(result, arguments), name)
        self.function.linkage = "internal" if is_internal else "external"
        self.arguments = self.function.args
        self.b: Any = ir.IRBuilder(self.function.append_basic_block("start"))

    def at(self, address: Any, layout: type[ctypes.Structure], name: str) -> Any:
        """The address of a field of a structure."""
        return self.moved(address, number(getattr(layout, name).offset))

    def moved(self, address: Any, count: Any) -> Any:
        """The address so many bytes further."""
        return self.b.gep(address, [count], source_etype=BYTE)

    def field(self, address: Any, layout: type[ctypes.Structure], name: str) -> Any:
        """The number or address in a field."""
        return self.b.load(self.at(address, layout, name), typ=_TYPES.get(kinds(layout)[name], POINTER))

    def set_field(self, address: Any, layout: type[ctypes.Structure], name: str, value: Any) -> None:
        """Write a field."""
        self.b.store(value, self.at(address, layout, name))

    def item(self, first: Any, kind: type[Any], index: Any) -> Any:
        """The address of an element of an array of structures or addresses."""
        return self.b.gep(first, [index], source_etype=ir.ArrayType(BYTE, ctypes.sizeof(kind)))

    def call(self, address: Any, layout: type[ctypes.Structure], name: str, *arguments: Any, kind: Any = None) -> Any:
        """Call the function whose address is in a field: of the kind of the field, unless that says none."""
        prototype = (kind or kinds(layout)[name])()
        result = _TYPES[prototype.restype] if prototype.restype else ir.VoidType()
        pointer = ir.FunctionType(result, [_TYPES[argument] for argument in prototype.argtypes]).as_pointer()
        return self.b.call(self.b.load(self.at(address, layout, name), typ=pointer), arguments)

    def each(self, count: Any, turn: Callable[[Any], None]) -> None:
        """Write a loop over the numbers below a count, which may be 0."""
        with self.b.if_then(self.b.icmp_unsigned("!=", count, number(0))):
            before, body = self.b.block, self.b.append_basic_block("body")
            self.b.branch(body)
            self.b.position_at_end(body)
            index = self.b.phi(LONG)
            turn(index)
            following = self.b.add(index, number(1))
            index.add_incoming(number(0), before)
            index.add_incoming(following, self.b.block)
            after = self.b.append_basic_block("after")
            self.b.cbranch(self.b.icmp_unsigned("<", following, count), body, after)
            self.b.position_at_end(after)

    @contextmanager
    def where(self, name: str, left: Any, right: Any) -> Iterator[None]:
        """What is written inside runs where a comparison of integers holds: `==`, `!=`, `<` or `>`."""
        with self.b.if_then(self.b.icmp_signed(name, left, right)):
            yield
