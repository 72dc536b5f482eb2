"""The loop IR: the operations of a kernel, in seven kinds of node, before any machine is known.

    kernel k(p0: f32, p1: f32)
        v1 = loop i from 0 to 96 by 16 carrying a = 0.0
            v2 = load p0[i ...] f32x16
            v3 = add(a, v2)
            carry v3
        v4 = fold add(v1)
        store p1[0] = v4

A value is a vector of a fixed number of lanes (a number has one lane), with the same lanes on every machine, so that
sums are made in the same order everywhere. The bounds of loops are numbers: a kernel is made for known sizes. Addresses
are counted in elements, and linear in the counters of the enclosing loops.

Read the node classes first, then `LoopBuilder`. The functions at the end are parts of ops and reductions: comparisons,
casts, extremes, and joins of two parts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

LANES = 16
"""The lanes of a vector: as many float32 as the widest registers hold. Narrower machines use several registers."""


class Type(NamedTuple):
    """The type of a value: NumPy's letter and bytes of its elements (`f4`; `b1` is a truth), and its lanes."""

    dtype: str
    lanes: int

    def __str__(self) -> str:
        return self.dtype if self.lanes == 1 else f"{self.dtype}x{self.lanes}"


@dataclass(eq=False, slots=True)
class Value:
    """A value that is computed once: a node of the IR, the counter of a loop, or a value that a loop carries."""

    type: Type


@dataclass(eq=False, slots=True)
class Parameter(Value):
    """The address of the first element of an operand, a result or a scratch buffer."""

    number: int


@dataclass(eq=False, slots=True)
class Constant(Value):
    """One number in every lane."""

    number: Any


class Access(NamedTuple):
    """Elements of a parameter: lane i lies at offset + counters * strides + i * step; only `active` lanes count."""

    base: Parameter
    offset: int
    terms: tuple[tuple[Value, int], ...]
    step: int
    active: int


@dataclass(eq=False, slots=True)
class Load(Value):
    """The elements at a place; lanes that are not active are 0."""

    access: Access


@dataclass(eq=False, slots=True)
class Store:
    """Writes the active lanes of a value to a place."""

    access: Access
    value: Value


@dataclass(eq=False, slots=True)
class LaneOp(Value):
    """An operation lane by lane; `emit` has the table of names."""

    name: str
    args: tuple[Value, ...]


@dataclass(eq=False, slots=True)
class Fold(Value):
    """The lanes of a vector joined to one: the upper half with the lower, until one is left."""

    name: str
    vector: Value


@dataclass(eq=False, slots=True)
class Loop:
    """Runs `body` for each counter from `start` in steps; each `carried` value becomes what the body `gives` for it.

    `results` are the carried values after the last turn. There is at least one turn.
    """

    start: int
    stop: int
    step: int
    counter: Value
    inits: Sequence[Value]
    carried: Sequence[Value]
    body: list[Statement] = field(default_factory=list)
    gives: Sequence[Value] = ()
    results: Sequence[Value] = ()


Statement = Load | Store | LaneOp | Fold | Loop
COUNTER = Type("i8", 1)


class OffsetIndex(NamedTuple):
    """A loop counter plus a number."""

    counter: Value
    by: int


Index = Value | OffsetIndex | int


def offset_index(index: Index, by: int) -> Index:
    """Return an index plus a number."""
    if isinstance(index, int):
        return index + by
    return OffsetIndex(index.counter, index.by + by) if isinstance(index, OffsetIndex) else OffsetIndex(index, by)


@dataclass(slots=True)
class LoopKernel:
    """A kernel: its parameters, its body, and whether the vectors that it computes take turns.

    If they do, instructions should stay in about the order in which the body has them.
    """

    parameters: Sequence[Parameter]
    body: list[Statement]
    takes_turns: bool = False


class LoopBuilder:
    """Writes a kernel: each method appends a node to the innermost open loop and gives its value."""

    def __init__(self, dtypes: Sequence[str]) -> None:
        self.parameters = [Parameter(Type(dtype, 1), number) for number, dtype in enumerate(dtypes)]
        self.body: list[Statement] = []
        self._constants: dict[tuple[Any, str, Type], Constant] = {}

    def kernel(self, *, takes_turns: bool = False) -> LoopKernel:
        """Return the kernel that was written."""
        return LoopKernel(self.parameters, self.body, takes_turns)

    def constant(self, number: Any, like: Type) -> Constant:
        """Return a constant with this number in every lane."""
        key = number, str(number), like  # 0.0 and -0.0 are equal, and not the same
        if key not in self._constants:
            self._constants[key] = Constant(like, number)
        return self._constants[key]

    def access(
        self, base: Parameter, terms: Sequence[tuple[Index, int]], step: int = 1, active: int = LANES, offset: int = 0
    ) -> Access:
        """Return the access at these counters; a counter may be a number, where its loop has one turn."""
        kept = []
        for index, stride in terms:
            counter, by = index if isinstance(index, OffsetIndex) else (index, 0)
            if isinstance(counter, int):
                offset += counter * stride
            elif stride:
                offset += by * stride
                kept.append((counter, stride))
        return Access(base, offset, tuple(kept), step, active)

    def load(self, access: Access, lanes: int = LANES) -> Value:
        """Append a load of the elements at a place; bytes of bools become truths."""
        node = Load(Type(access.base.type.dtype, lanes), access)
        self.body.append(node)
        return node

    def store(self, access: Access, value: Value) -> None:
        """Append a store of a value."""
        self.body.append(Store(access, value))

    def op(self, name: str, *args: Value, type: Type | None = None) -> Value:
        """Append an operation on values of one type, which is the result's type too unless one is given."""
        node = LaneOp(type or args[0].type, name, args)
        self.body.append(node)
        return node

    def splat(self, number: Value, lanes: int) -> Value:
        """Return a number spread to every lane."""
        if number.type.lanes == lanes:
            return number
        if isinstance(number, Constant):
            return self.constant(number.number, Type(number.type.dtype, lanes))
        return self.op("splat", number, type=Type(number.type.dtype, lanes))

    def fold(self, name: str, vector: Value) -> Value:
        """Append a fold of all lanes to one number."""
        node = Fold(Type(vector.type.dtype, 1), name, vector)
        self.body.append(node)
        return node

    def loop(
        self,
        stop: int,
        step: int,
        inits: Sequence[Value],
        turn: Callable[[Index, Sequence[Value]], Sequence[Value] | None],
        start: int = 0,
    ) -> Sequence[Value]:
        """Append a loop whose body `turn(counter, carried)` writes.

        A single turn is written without a loop; no turn writes nothing. Returns the carried values after the last turn.
        """
        if stop <= start:
            return inits
        if stop - start <= step:
            return turn(start, inits) or ()
        counter = Value(COUNTER)
        carried = [Value(init.type) for init in inits]
        node = Loop(start, stop, step, counter, inits, carried, results=[Value(init.type) for init in inits])
        outside, self.body = self.body, node.body
        node.gives = turn(counter, carried) or ()
        self.body = outside
        self.body.append(node)
        return node.results

    def nest(
        self, sizes: Sequence[int], turn: Callable[[Sequence[Index]], None], counters: Sequence[Index] = ()
    ) -> None:
        """Append nested loops over axes of these sizes, which carry nothing."""
        if not sizes:
            turn(counters)
            return

        def inner(counter: Index, _: Sequence[Value]) -> None:
            self.nest(sizes[1:], turn, (*counters, counter))

        self.loop(sizes[0], 1, (), inner)

    def vectors(self, size: int, visit: Callable[[Index, int], None]) -> None:
        """Visit `size` elements, a vector at a time, with its start and the number of its lanes that count."""
        whole = size // LANES * LANES
        self.loop(whole, LANES, (), lambda i, _: visit(i, LANES))
        if size % LANES:
            visit(whole, size % LANES)


Write = Callable[..., Value]


def cast(b: LoopBuilder, x: Value, dtype: str) -> Value:
    """Return the value in another dtype."""
    return x if x.type.dtype == dtype else b.op("cast", x, type=Type(dtype, x.type.lanes))


def test(b: LoopBuilder, name: str, *args: Value) -> Value:
    """Return a comparison: a truth per lane."""
    return b.op(name, *args, type=Type("b1", args[0].type.lanes))


def maximum(b: LoopBuilder, x: Value, y: Value) -> Value:
    """Return the larger of two values; NaN where either is."""
    return _extreme(b, "gt", x, y)


def minimum(b: LoopBuilder, x: Value, y: Value) -> Value:
    """Return the smaller of two values; NaN where either is."""
    return _extreme(b, "lt", x, y)


def _extreme(b: LoopBuilder, name: str, x: Value, y: Value) -> Value:
    extreme = b.op("select", test(b, name, x, y), x, y, type=x.type)  # y where either is NaN, as the instruction does
    if x.type.dtype[0] != "f":
        return extreme
    return b.op("select", test(b, "ne", x, x), x, extreme, type=x.type)


def operation(name: str) -> Write:
    """Return a function that appends one operation of the loop IR."""
    return lambda b, *args: b.op(name, *args)


JOINS: dict[str, Write] = {
    "add": operation("add"),
    "mul": operation("mul"),
    "max": maximum,
    "min": minimum,
    "and": operation("and"),
    "or": operation("or"),
}
"""The functions that join two parts of a reduction."""
