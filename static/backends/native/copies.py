"""Matrices turned in registers: 16 rows of 16 elements become 16 columns by interleaving vectors four times.

Interleaving row i with row i + 8 moves each element a step nearer to its place, as a perfect shuffle does with cards;
after four of them element j of row i is element i of row j. Where registers are few, blocks are smaller.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from static.backends.native.ir import LANES, Access, Index, LoopBuilder, LoopKernel, Type, Value
from static.backends.native.laid import Extent
from static.backends.native.target import Target

Placed = Callable[[Index, Index, int, int, int], Access]


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

    @property
    def extents(self) -> list[Extent]:
        """What is read of the matrix, and written of the copy."""
        sizes = self.rows, self.columns
        written = Extent.of(self.dtype, sizes, (self.columns, 1), is_written=True)
        return [Extent.of(self.dtype, sizes, (self.row, self.column)), written]

    def scratch(self, target: Target) -> list[tuple[str, int]]:
        """There is no scratch buffer."""
        del target
        return []

    def lower(self, target: Target) -> LoopKernel:
        """The kernel: its parameters are the matrix and the copy."""
        b = LoopBuilder([self.dtype] * 2)
        matrix, copy = b.parameters

        def read(row: Index, column: Index, more_rows: int, more_columns: int, active: int) -> Access:
            offset = more_rows * self.row + more_columns * self.column
            return b.access(matrix, [(row, self.row), (column, self.column)], self.row, active, offset)

        def write(row: Index, column: Index, more_rows: int, more_columns: int, active: int) -> Access:
            offset = more_rows * self.columns + more_columns
            return b.access(copy, [(row, self.columns), (column, 1)], 1, active, offset)

        turn(b, self.rows, self.columns, read, write, target, down=self.column > self.columns)
        return b.kernel()


def turn(
    b: LoopBuilder, rows: int, columns: int, read: Placed, write: Placed, target: Target, *, down: bool = False
) -> None:
    """Copy a matrix in blocks: `read` gives the place of elements down a column, `write` that of elements along a row.

    Both take the counters of row and column, what is to be added to each, and how many elements there are. Blocks
    follow each other along a row, or `down` a column, which is better where columns lie farther apart than rows go.
    """
    dtype = b.parameters[0].type.dtype
    lanes = _side(dtype, target)

    def blocks(size: int, visit: Callable[[Index, int], None]) -> None:
        whole = size // lanes * lanes
        b.loop(whole, lanes, (), lambda counter, _: visit(counter, lanes))
        if size % lanes:
            visit(whole, size % lanes)

    def block(row: Index, height: int, column: Index, width: int) -> None:
        zero = b.constant(0, Type(dtype, lanes))
        down: list[Value] = [b.load(read(row, column, 0, j, height), lanes) for j in range(width)]
        turned = transposed(b, down + [zero] * (lanes - width))
        for i in range(height):
            b.store(write(row, column, i, 0, width), turned[i])

    if down:
        blocks(columns, lambda column, width: blocks(rows, lambda row, height: block(row, height, column, width)))
    else:
        blocks(rows, lambda row, height: blocks(columns, lambda column, width: block(row, height, column, width)))


def _side(dtype: str, target: Target) -> int:
    """The rows and columns of a block: half of the registers hold it, and the others what it becomes."""
    side = LANES
    while side > 1 and 2 * side * target.parts(dtype, side) > target.registers:
        side //= 2
    return side


def transposed(b: LoopBuilder, vectors: Sequence[Value]) -> list[Value]:
    """As many vectors as each has lanes, with rows and columns exchanged."""
    half, turned = len(vectors) // 2, list(vectors)
    for _ in range(half.bit_length()):
        pairs = [(turned[i], turned[i + half]) for i in range(half)]
        turned = [b.op(name, *pair) for pair in pairs for name in ("low", "high")]
    return turned
