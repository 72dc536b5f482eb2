"""Loop IR as LLVM IR: each vector of the loop IR becomes an LLVM vector, and LLVM only generates code.

No optimisation pass runs, and no flag lets LLVM change a number: the operations are computed as they are written.

The functions at the end spell types, numbers, masks and conversions in LLVM's syntax.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from static.native.ir import (
    Access,
    Constant,
    Fold,
    LaneOp,
    Load,
    Loop,
    LoopKernel,
    Statement,
    Store,
    Type,
    Value,
)
from static.native.target import Target

_FLOAT = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}
_CALLS = {"fma", "sqrt", "abs", "floor", "ceil", "trunc", "rint", "copysign"}
_INTRINSIC = {"abs": "fabs", "rint": "roundeven"}
_ORDERED = {"eq": "oeq", "ne": "une", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge", "ugt": "ugt"}


def emit(name: str, kernel: LoopKernel, declared: set[str], target: Target) -> str:
    """Return the function of a kernel; it takes the address of a row of addresses, one for each parameter."""
    writer = _FunctionText(declared)
    for parameter in kernel.parameters:
        n = parameter.number
        writer.names[parameter] = writer.new(f"getelementptr ptr, ptr %row, i64 {n}")
        writer.names[parameter] = writer.new(f"load ptr, ptr {writer.names[parameter]}")
    writer.statements(kernel.body)
    order = f" {target.in_order}" if kernel.takes_turns else ""
    return "\n".join([f"define void @{name}(ptr %row) nounwind{order} {{", "entry:", *writer.lines, "  ret void", "}"])


class _FunctionText:
    def __init__(self, declared: set[str]) -> None:
        self.lines: list[str] = []
        self.names: dict[Value, str] = {}
        self.declared = declared
        self.count = 0
        self.block = "entry"

    def new(self, text: str) -> str:
        self.count += 1
        self.lines.append(f"  %v{self.count} = {text}")
        return f"%v{self.count}"

    def of(self, value: Value) -> str:
        return literal(value) if isinstance(value, Constant) else self.names[value]

    def typed(self, value: Value) -> str:
        return f"{llvm_type(value.type)} {self.of(value)}"

    def statements(self, body: list[Statement]) -> None:
        for node in body:
            _EMIT[type(node)](self, node)

    # Memory ---------------------------------------------------------------------------------------------------

    def address(self, access: Access, more: int = 0) -> str:
        index = ""
        for counter, stride in access.terms:
            term = self.of(counter) if stride == 1 else self.new(f"mul i64 {self.of(counter)}, {stride}")
            index = self.new(f"add i64 {index}, {term}") if index else term
        element, address = in_memory(access.base.type), self.of(access.base)
        if index:
            address = self.new(f"getelementptr {element}, ptr {address}, i64 {index}")
        return self.moved(address, element, access.offset + more)

    def moved(self, address: str, element: str, count: int) -> str:
        return self.new(f"getelementptr {element}, ptr {address}, i64 {count}") if count else address

    def load(self, node: Load) -> None:
        access, lanes = node.access, node.type.lanes
        loaded = self._load(access, lanes)
        if node.type.dtype == "b1":
            loaded = self.new(f"icmp ne {in_memory(node.type)} {loaded}, zeroinitializer" if lanes > 1 else
                              f"icmp ne i8 {loaded}, 0")  # fmt: skip
        self.names[node] = loaded

    def _load(self, access: Access, lanes: int) -> str:
        base, whole = access.base.type, in_memory(Type(access.base.type.dtype, lanes))
        align = f"align {width(base.dtype)}"
        address = self.address(access)
        if lanes == 1:
            return self.new(f"load {whole}, ptr {address}, {align}")
        if access.step == 1 and access.active == lanes:
            return self.new(f"load {whole}, ptr {address}, {align}")
        if access.step == 1:
            name = f"llvm.masked.load.v{lanes}{suffix(base.dtype)}.p0"
            self.declared.add(f"declare {whole} @{name}(ptr, i32, <{lanes} x i1>, {whole})")
            active = mask(lanes, access.active)
            at = f"ptr {address}, i32 {width(base.dtype)}"  # LLVM 22 says the alignment otherwise, and reads this
            return self.new(f"call {whole} @{name}({at}, {active}, {whole} zeroinitializer)")
        return self._gather(access, lanes, address, whole, align)

    def _gather(self, access: Access, lanes: int, address: str, whole: str, align: str) -> str:
        element, value = in_memory(access.base.type), "zeroinitializer"
        for lane in range(access.active if access.step else 1):
            scalar = self.new(f"load {element}, ptr {self.moved(address, element, lane * access.step)}, {align}")
            value = self.new(f"insertelement {whole} {value}, {element} {scalar}, i64 {lane}")
        return value if access.step else self._spread(whole, value, lanes)

    def _spread(self, whole: str, value: str, lanes: int) -> str:
        return self.new(f"shufflevector {whole} {value}, {whole} poison, <{lanes} x i32> zeroinitializer")

    def store(self, node: Store) -> None:
        access, lanes, dtype = node.access, node.value.type.lanes, node.value.type.dtype
        whole, value = in_memory(node.value.type), self.of(node.value)
        if dtype == "b1":
            value = self.new(f"zext {self.typed(node.value)} to {whole}")
        align, address = f"align {width(dtype)}", self.address(access)
        if lanes == 1 or (access.step == 1 and access.active == lanes):
            self.lines.append(f"  store {whole} {value}, ptr {address}, {align}")
        elif access.step == 1 and access.active > 1:  # of one lane that narrows integers LLVM stores the wide one
            name = f"llvm.masked.store.v{lanes}{suffix(dtype)}.p0"
            self.declared.add(f"declare void @{name}({whole}, ptr, i32, <{lanes} x i1>)")
            active = mask(lanes, access.active)
            self.lines.append(f"  call void @{name}({whole} {value}, ptr {address}, i32 {width(dtype)}, {active})")
        else:
            element = in_memory(access.base.type)
            for lane in range(access.active):
                scalar = self.new(f"extractelement {whole} {value}, i64 {lane}")
                to = self.moved(address, element, lane * access.step)
                self.lines.append(f"  store {element} {scalar}, ptr {to}, {align}")

    # Computing ------------------------------------------------------------------------------------------------

    def op(self, node: LaneOp) -> None:
        self.names[node] = self.new(self._operation(node))

    def _operation(self, node: LaneOp) -> str:
        name, args = node.name, node.args
        if name in _SPECIAL:
            return _SPECIAL[name](self, node)
        operand, kind = args[0].type, args[0].type.dtype[0]
        if name in _CALLS and kind == "f":
            return self._call(name, node)
        both = f"{self.typed(args[0])}, {self.of(args[1])}" if len(args) > 1 else self.typed(args[0])
        if name in _ORDERED:
            return f"fcmp {_ORDERED[name]} {both}" if kind == "f" else f"icmp {sign(name, kind)} {both}"
        if name == "neg":
            return f"fneg {both}" if kind == "f" else f"sub {llvm_type(operand)} zeroinitializer, {self.of(args[0])}"
        return f"{_FLOAT[name] if kind == 'f' else name} {both}"

    def _call(self, name: str, node: LaneOp) -> str:
        whole = llvm_type(node.type)
        lanes = f"v{node.type.lanes}" if node.type.lanes > 1 else ""
        full = f"llvm.{_INTRINSIC.get(name, name)}.{lanes}{suffix(node.type.dtype)}"
        self.declared.add(f"declare {whole} @{full}({', '.join([whole] * len(node.args))})")
        return f"call {whole} @{full}({', '.join(map(self.typed, node.args))})"

    def select(self, node: LaneOp) -> str:
        return f"select {', '.join(map(self.typed, node.args))}"

    def bits(self, node: LaneOp) -> str:
        return f"bitcast {self.typed(node.args[0])} to {llvm_type(node.type)}"

    def invert(self, node: LaneOp) -> str:
        ones = literal(Constant(node.type, True if node.type.dtype == "b1" else -1))
        return f"xor {self.typed(node.args[0])}, {ones}"

    def splat(self, node: LaneOp) -> str:
        whole = llvm_type(node.type)
        first = self.new(f"insertelement {whole} poison, {self.typed(node.args[0])}, i64 0")
        return f"shufflevector {whole} {first}, {whole} poison, <{node.type.lanes} x i32> zeroinitializer"

    def half(self, node: LaneOp) -> str:
        """Return the front or the back half of a vector."""
        lanes, whole = node.type.lanes, llvm_type(node.args[0].type)
        start = 0 if node.name == "front" else lanes
        order = ", ".join(f"i32 {start + i}" for i in range(lanes))
        return f"shufflevector {whole} {self.of(node.args[0])}, {whole} poison, <{lanes} x i32> <{order}>"

    def interleaved(self, node: LaneOp) -> str:
        """Return the lower or the upper halves of two vectors, with their elements in turn."""
        lanes = node.type.lanes
        start = 0 if node.name == "low" else lanes // 2
        order = [f"i32 {start + i // 2 + i % 2 * lanes}" for i in range(lanes)]
        both = ", ".join(map(self.typed, node.args))
        return f"shufflevector {both}, <{lanes} x i32> <{', '.join(order)}>"

    def cast(self, node: LaneOp) -> str:
        source, target = node.args[0].type.dtype, node.type.dtype
        if target == "b1":
            zero = literal(Constant(node.args[0].type, 0))
            return f"{'fcmp une' if source[0] == 'f' else 'icmp ne'} {self.typed(node.args[0])}, {zero}"
        return f"{conversion(source, target)} {self.typed(node.args[0])} to {llvm_type(node.type)}"

    def fold(self, node: Fold) -> None:
        """Join the halves of a vector until one lane is left."""
        value, type = self.of(node.vector), node.vector.type
        while type.lanes > 1:
            half, whole = Type(type.dtype, type.lanes // 2), llvm_type(type)
            parts = []
            for start in (0, half.lanes):
                lanes = ", ".join(f"i32 {start + i}" for i in range(half.lanes))
                parts.append(f"shufflevector {whole} {value}, {whole} poison, <{half.lanes} x i32> <{lanes}>")
            if half.lanes == 1:
                parts = [f"extractelement {whole} {value}, i64 {i}" for i in (0, 1)]
            low, high = (Value(half) for _ in range(2))
            self.names[low], self.names[high] = self.new(parts[0]), self.new(parts[1])
            value, type = self._join(node.name, low, high), half
        self.names[node] = value

    def _join(self, name: str, low: Value, high: Value) -> str:
        from static.native import ir
        from static.native.ir import LoopBuilder

        builder = LoopBuilder(())
        joined = ir.JOINS[name](builder, low, high)
        self.statements(builder.body)
        return self.of(joined)

    def loop(self, node: Loop) -> None:
        self.count += 1
        number, before = self.count, self.block
        self.lines += [f"  br label %L{number}", f"L{number}:"]
        self.block = f"L{number}"
        pairs = list(zip(node.carried, node.inits, strict=True))
        self.names[node.counter] = f"%i{number}"
        for i, (value, _) in enumerate(pairs):
            self.names[value] = f"%c{number}_{i}"
        hole = len(self.lines)
        self.statements(node.body)
        after = self.new(f"add nuw nsw i64 %i{number}, {node.step}")
        more = self.new(f"icmp ult i64 {after}, {node.stop}")
        phis = [f"  %i{number} = phi i64 [ {node.start}, %{before} ], [ {after}, %{self.block} ]"]
        for (value, init), following in zip(pairs, node.gives, strict=True):
            incoming = f"[ {self.of(init)}, %{before} ], [ {self.of(following)}, %{self.block} ]"
            phis.append(f"  {self.names[value]} = phi {llvm_type(value.type)} {incoming}")
        self.lines[hole:hole] = phis
        self.lines += [f"  br i1 {more}, label %L{number}, label %E{number}", f"E{number}:"]
        self.block = f"E{number}"
        for result, following in zip(node.results, node.gives, strict=True):
            self.names[result] = self.of(following)


_EMIT: Mapping[type, Callable[[_FunctionText, Any], None]] = {
    Load: _FunctionText.load,
    Store: _FunctionText.store,
    LaneOp: _FunctionText.op,
    Fold: _FunctionText.fold,
    Loop: _FunctionText.loop,
}
_SPECIAL: Mapping[str, Callable[[_FunctionText, LaneOp], str]] = {
    "select": _FunctionText.select,
    "bits": _FunctionText.bits,
    "not": _FunctionText.invert,
    "splat": _FunctionText.splat,
    "cast": _FunctionText.cast,
    "front": _FunctionText.half,
    "back": _FunctionText.half,
    "low": _FunctionText.interleaved,
    "high": _FunctionText.interleaved,
}


_NAMES = {"f4": "float", "f8": "double", "b1": "i1"}


def llvm_type(type: Type) -> str:
    """Return LLVM's name of a type."""
    element = _NAMES.get(type.dtype) or f"i{8 * int(type.dtype[1:])}"
    return element if type.lanes == 1 else f"<{type.lanes} x {element}>"


def in_memory(type: Type) -> str:
    """Return the type of the elements in memory: a truth takes a byte."""
    return llvm_type(Type("u1", type.lanes) if type.dtype == "b1" else type)


def literal(constant: Constant) -> str:
    """Return a constant as LLVM writes it, with its number in every lane."""
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
    """Return the bytes of an element."""
    return int(dtype[1:])


def suffix(dtype: str) -> str:
    """Return the end of an intrinsic's name for elements of a dtype."""
    return f"{'f' if dtype[0] == 'f' else 'i'}{8 * width(dtype)}"


def mask(lanes: int, active: int) -> str:
    """Return the mask of a vector whose first `active` lanes count."""
    return f"<{lanes} x i1> <{', '.join('i1 true' if i < active else 'i1 false' for i in range(lanes))}>"


def sign(name: str, kind: str) -> str:
    """Return LLVM's name of a comparison of integers, signed or unsigned."""
    return name if name in ("eq", "ne") else ("s" if kind == "i" else "u") + name


def conversion(source: str, target: str) -> str:
    """Return LLVM's name of the conversion between two dtypes."""
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
