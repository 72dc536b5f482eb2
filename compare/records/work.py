"""What a step does, counted: the terms that its seconds are a sum of, each an amount that a machine has a price for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import groupby
from typing import Literal

from msgspec import Struct

from compare.records.record import Record

Terms = dict[str, float]
"""Amounts by what they are of. Arms share a price where they share a name."""

Sort = Literal["view", "read", "product", "other"]
Control = Literal["none", "in the graph", "between graphs"]
"""Where values decide what runs: nowhere, in ops of the graph, or in Python, where each decision ends a graph."""


class RanOp(Struct, frozen=True):
    """An op that a framework ran.

    Its sort says whether it only looks at memory in another way, hands a value to Python, which may decide by it, or is
    a product, which no compiler fuses. `elements` are those that it makes, `moved` the bytes that it reads and writes,
    and `flops` its multiplications and additions, where it is a product.
    """

    sort: Sort
    elements: int = 0
    moved: int = 0
    flops: int = 0


class CallCounts(Struct, frozen=True):
    """The terms of a call in an eager arm and in one that compiles, and those of its compilation.

    `ops` are those that the eager arm runs, both passes. `remarks` say what was assumed to count them, and `ran`
    whether the function was run for it.
    """

    eager: Terms
    compiled: Terms
    compile: Terms
    ops: int
    control: Control = "none"
    remarks: list[str] = []
    ran: bool = True


class Timed(Struct, frozen=True):
    """Seconds of a call once warm, eager and compiled, and what the first compiled calls take more, for each shape."""

    eager: float
    compiled: float
    compile: float


class CountedProgram(Struct):
    """The counts of each call of a program, the shapes among the calls, and what a call took where it was timed.

    `refused` says why the arm that compiles does not take it.
    """

    name: str
    counts: list[CallCounts]
    shapes: int
    timed: Timed | None = None
    refused: str | None = None


class CountedPrograms(Record, tag="counted programs"):
    """Programs as a worker has counted them, in a version of an engine."""

    version: str
    programs: list[CountedProgram]


def counted(ran: Iterable[RanOp]) -> CallCounts:
    """The counts of what a framework ran eagerly, in its order.

    Eager: a call, each op by its sort, and the bytes and flops of all. Compiled: each kernel that fusing leaves, as
    runs of ops without a product between them may become one, what they make, and each value that Python reads: a graph
    ends there. Compilation: each op that it looks at, and each kernel and each graph that it makes.
    """
    ops = list(ran)
    kernels = [op for op in ops if op.sort != "view"]
    others = [op for op in kernels if op.sort == "other"]
    count = Counter(op.sort for op in ops)
    views, reads, products = count["view"], count["read"], count["product"]
    stretches = sum(sort == "other" for sort, _ in groupby(kernels, lambda op: op.sort))
    flops = sum(op.flops for op in kernels)
    every = views + products + len(others)
    read = (
        f"Python reads {reads} value{'s' if reads > 1 else ''} in a call, for example in an `if` or by item(): the "
        "graph breaks at each, and the framework compiles each new path"
    )
    return CallCounts(
        eager={
            "eager calls": 1,
            "eager ops": len(others) + reads,
            "eager views": views,
            "eager products": products,
            "bytes moved by eager ops": sum(op.moved for op in others),
            "eager flops": flops,
        },
        compiled={
            "compiled calls": 1,
            "compiled products": products,
            "fused kernels": stretches,
            "elements of fused kernels": sum(op.elements for op in others),
            "compiled flops": flops,
            "graph breaks": reads,
        },
        compile={
            "compilations": 1,
            "ops looked at": every,
            "kernels made": products + stretches,
            "further graphs": reads,
        },
        ops=every,
        control="between graphs" if reads else "none",
        remarks=[read] if reads else [],
    )
