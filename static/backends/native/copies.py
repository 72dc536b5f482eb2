"""Matrices turned in registers: 16 rows of 16 elements become 16 columns by interleaving vectors four times.

Interleaving row i with row i + 8 moves each element a step nearer to its place, as a perfect shuffle does with cards;
after four of them element j of row i is element i of row j.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from static.backends.native.ir import LANES, Builder, Index, Kernel, Place, Type, Value

Placed = Callable[[Index, Index, int, int, int], Place]


class Turn(NamedTuple):
    """A recipe: a matrix f[rows, columns] with these elements between neighbours, copied into row-major order."""

    dtype: str
    rows: int
    columns: int
    row: int
    column: int

    @property
    def operations(self) -> int:
        """About how many operations a call takes."""
        return self.rows * self.columns

    def scratch(self) -> list[tuple[str, int]]:
        """There is no scratch buffer."""
        return []

    def lower(self) -> Kernel:
        """The kernel: its parameters are the matrix and the copy."""
        b = Builder([self.dtype] * 2)
        source, target = b.parameters

        def read(row: Index, column: Index, more_rows: int, more_columns: int, active: int) -> Place:
            offset = more_rows * self.row + more_columns * self.column
            return b.place(source, [(row, self.row), (column, self.column)], self.row, active, offset)

        def write(row: Index, column: Index, more_rows: int, more_columns: int, active: int) -> Place:
            offset = more_rows * self.columns + more_columns
            return b.place(target, [(row, self.columns), (column, 1)], 1, active, offset)

        turn(b, self.rows, self.columns, read, write)
        return b.kernel()


def turn(b: Builder, rows: int, columns: int, read: Placed, write: Placed) -> None:
    """Copy a matrix in blocks: `read` gives the place of elements down a column, `write` that of elements along a row.

    Both take the counters of row and column, what is to be added to each, and how many elements there are.
    """

    def blocks(size: int, visit: Callable[[Index, int], None]) -> None:
        whole = size // LANES * LANES
        b.loop(whole, LANES, (), lambda counter, _: visit(counter, LANES))
        if size % LANES:
            visit(whole, size % LANES)

    def block(row: Index, height: int, column: Index, width: int) -> None:
        zero = b.constant(0, Type(b.parameters[0].type.dtype, LANES))
        down: list[Value] = [b.load(read(row, column, 0, j, height)) for j in range(width)]
        turned = transposed(b, down + [zero] * (LANES - width))
        for i in range(height):
            b.store(write(row, column, i, 0, width), turned[i])

    blocks(rows, lambda row, height: blocks(columns, lambda column, width: block(row, height, column, width)))


def transposed(b: Builder, vectors: Sequence[Value]) -> list[Value]:
    """As many vectors as each has lanes, with rows and columns exchanged."""
    half, turned = len(vectors) // 2, list(vectors)
    for _ in range(half.bit_length()):
        pairs = [(turned[i], turned[i + half]) for i in range(half)]
        turned = [b.op(name, *pair) for pair in pairs for name in ("low", "high")]
    return turned
