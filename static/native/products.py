"""Matrix products in tiles of registers: each element of the result is one chain of fused multiply-adds over k.

A tile is some rows by some vectors of columns, with an accumulator each, as many as there are registers. The tile
decides how fast a product is and not its bits, so that all machines give the same bits. A long k is cut: then the chain
goes through the result. Where rows of the right matrix lie far apart the first tile of a panel packs it. Where columns
do not lie side by side each panel is transposed, or the whole matrix where there are few tiles, or several products of
a segment share an argument.

`Product` is the recipe, and `ProductLoops` writes it. `Turn`, below, is a recipe that transposes a matrix in registers:
16 rows of 16 elements become 16 columns by interleaving vectors four times. Interleaving row i with row i + 8 moves
each element a step nearer to its place, as a perfect shuffle does with cards; after four of them element j of row i is
element i of row j. Where registers are few, blocks are smaller.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from static.native.ir import LANES, Access, Index, LoopBuilder, LoopKernel, Parameter, Type, Value
from static.native.placement import Extent
from static.native.target import Target

LONGEST, PANEL = 256, 96 << 8  # of k in one go, and bytes of a panel of the right matrix: a first-level cache holds it
ROWS, VECTORS = 16, 4  # the most rows and vectors of a tile
MOST_TERMS = 16  # terms of a k that are written out rather than looped over
CHAINS = 8  # multiplications that have to be under way at once: two begin in a cycle, and each takes four
FAR = 64  # elements between rows of the right matrix from which on packing pays


class Matrix(NamedTuple):
    """The layout of a stack of matrices: the stride of each axis of the stack, of rows and of columns, in elements."""

    batch: tuple[int, ...]
    row: int
    column: int


class Term(NamedTuple):
    """One multiplication for each k: the offsets of its two numbers from the place of k, in elements."""

    left: int
    right: int


class Panel(NamedTuple):
    """The vectors and rows of a tile, and the part of k that is multiplied in one go."""

    vectors: int
    rows: int
    length: int


class Product(NamedTuple):
    """A recipe: `batch` products of f[rows, inner] and f[inner, columns].

    With several `terms` each k has several multiplications: the taps of a window, where k is a channel.
    """

    dtype: str
    batch: tuple[int, ...]
    rows: int
    inner: int
    columns: int
    left: Matrix
    right: Matrix
    out: Matrix
    terms: tuple[Term, ...] = (Term(0, 0),)

    @property
    def operations(self) -> int:
        """About how many vector operations a call takes."""
        return math.prod(self.batch) * self.rows * self.inner * len(self.terms) * -(-self.columns // LANES)

    @property
    def extents(self) -> list[Extent]:
        """The memory that is read of the two matrices and written of the result; each k is one multiplication."""
        left, right, out = ((*m.batch, m.row, m.column) for m in (self.left, self.right, self.out))
        return [
            Extent.of(self.dtype, (*self.batch, self.rows, self.inner), left),
            Extent.of(self.dtype, (*self.batch, self.inner, self.columns), right),
            Extent.of(self.dtype, (*self.batch, self.rows, self.columns), out, is_written=True),
        ]

    @property
    def rows_of_terms(self) -> tuple[tuple[Term, ...], int, Term]:
        """The terms that repeat, how often, and their distance: many terms at equal distances become a loop."""
        terms = self.terms
        for length in range(3, len(terms) // 2 + 1) if len(terms) > MOST_TERMS else ():
            ahead = {(b.left - a.left, b.right - a.right) for a, b in zip(terms, terms[length:], strict=False)}
            if len(terms) % length == 0 and len(ahead) == 1:
                return terms[:length], len(terms) // length, Term(*ahead.pop())
        return terms, 1, Term(0, 0)

    @property
    def turns(self) -> bool:
        """Whether the right matrix is transposed before it is read."""
        return self.right.column != 1 and self.columns > 1

    def scratch(self, target: Target) -> list[tuple[str, int]]:
        """Return the dtype and elements of each buffer that the kernel needs beside operands and result."""
        panel = self.panel(target)
        if self.packs(panel):
            return [(self.dtype, panel.length * panel.vectors * LANES)]
        return [(self.dtype, self.inner * self.columns)] if self.turns else []

    def packs(self, panel: Panel) -> bool:
        """Whether panels of the right matrix are packed (and transposed where they have to be)."""
        far = self.turns or (self.right.row > panel.vectors * LANES and self.right.row >= FAR)
        return far and len(self.terms) == 1 and self.rows >= 3 * panel.rows and self.inner >= 16

    def panel(self, target: Target) -> Panel:
        """Return how the product is cut on a target."""
        vectors, rows = tile(self.rows, self.columns, self.dtype, target)
        longest = min(LONGEST, PANEL // (vectors * LANES * int(self.dtype[1:])))
        pieces = max(1, min(self.inner, -(-self.inner * len(self.terms) // longest)))
        length = max(1, -(-self.inner // pieces))
        return Panel(vectors, rows, -(-length // LANES) * LANES if self.turns and pieces > 1 else length)

    def lower(self, target: Target) -> LoopKernel:
        """Return the kernel; its parameters are the left matrix, the right one, the result, and scratch."""
        b = LoopBuilder([self.dtype] * (3 + len(self.scratch(target))))
        ProductLoops(self, target, b, b.parameters).run()
        return b.kernel()


def tile(rows: int, columns: int, dtype: str, target: Target) -> tuple[int, int]:
    """Return the vectors and rows of a tile that wastes few lanes, keeps multipliers busy, and loads little."""
    wanted = max(1, -(-columns // LANES))
    best = (float("inf"), 1, 1)
    for vectors in range(1, min(wanted, VECTORS) + 1):
        across = target.parts(dtype, vectors * LANES)
        if vectors > 1 and not _fits(1, across, target):
            break
        most = max(count for count in range(1, ROWS + 1) if count == 1 or _fits(count, across, target))
        count = max(1, min(rows, most))
        count = -(-rows // -(-rows // count)) if rows else 1  # equal rows in each tile
        waste = -(-wanted // vectors) * vectors / wanted
        sums = across * count
        cost = waste * max(1, CHAINS / sums) * (sums + 0.6 * across + 0.75 * count) / sums
        best = min(best, (cost, vectors, count))
    return best[1], best[2]


def _fits(count: int, across: int, target: Target) -> bool:
    """Whether a tile of so many rows leaves a quarter of the registers, and room for its operands.

    A row takes `across` registers. Operands are a row of the right matrix and a number of the left one; a single row is
    loaded as it is used.
    """
    return 4 * count * across <= 3 * target.registers and (count == 1 or (count + 1) * across < target.registers)


class _Piece(NamedTuple):
    """A part of k: its first index, its length, and whether its products are added to the result."""

    first: Index
    length: int
    adds: bool


class _Tile(NamedTuple):
    """A tile: its first row and column, rows, vectors, the lanes of the last vector, and the part of k.

    The first tile of a panel packs: it writes the part of the right matrix that it reads to scratch, where the other
    tiles read it.
    """

    row: Index
    column: Index
    rows: int
    vectors: int
    lanes: int
    piece: _Piece
    packs: bool = False


class ProductLoops:
    """Writes the loops of a product, for parameters of the left matrix, the right one, the result, and scratch."""

    def __init__(self, recipe: Product, target: Target, b: LoopBuilder, parameters: Sequence[Parameter]) -> None:
        self.recipe, self.target, self.b = recipe, target, b
        panel = recipe.panel(target)
        self.vectors, self.rows, self.length = panel
        self.packs = recipe.packs(panel)
        self.left, self.right, self.out, *self.room = parameters
        self.type = Type(recipe.dtype, LANES)
        self.beside = recipe.right

    def run(self, batch: Sequence[Index] = ()) -> None:
        """Write the products of the batch whose first counters are these."""
        self.b.nest(self.recipe.batch[len(batch) :], self._product, batch)

    def _product(self, batch: Sequence[Index]) -> None:
        self.batch = batch
        self.source, self.beside = self.right, self.recipe.right
        self.stack = list(zip(batch, self.recipe.right.batch, strict=True))
        if self.recipe.turns and not self.packs:
            recipe = self.recipe
            self._turn((0, 0), (recipe.inner, recipe.columns), recipe.columns)
            self.source, self.stack, self.beside = self.room[0], [], Matrix((), recipe.columns, 1)
        inner, length = self.recipe.inner, self.length
        whole = max(inner // length * length, length)
        self._columns(_Piece(0, min(inner, length), adds=False))
        self.b.loop(whole, length, (), lambda first, _: self._columns(_Piece(first, length, adds=True)), length)
        if inner > whole:
            self._columns(_Piece(whole, inner - whole, adds=True))

    def _turn(self, start: tuple[Index, Index], sizes: tuple[int, int], width: int) -> None:
        """Copy a part of the right matrix to scratch, transposed, so that columns lie side by side."""
        right, scratch, stack = self.recipe.right, self.room[0], self.stack
        first = [(start[0], right.row), (start[1], right.column)]

        def read(row: Index, column: Index, rows: int, columns: int, active: int) -> Access:
            terms = [*stack, *first, (row, right.row), (column, right.column)]
            return self.b.access(self.right, terms, right.row, active, rows * right.row + columns * right.column)

        def write(row: Index, column: Index, rows: int, columns: int, active: int) -> Access:
            return self.b.access(scratch, [(row, width), (column, 1)], 1, active, rows * width + columns)

        turn(self.b, *sizes, read, write, self.target, down=right.column > width)

    def _columns(self, piece: _Piece) -> None:
        """Write the panels of columns: those of whole width, then the remainder."""
        width = self.vectors * LANES
        whole = self.recipe.columns // width * width
        self.b.loop(whole, width, (), lambda j, _: self._panel(j, self.vectors, LANES, piece))
        if self.recipe.columns > whole:
            rest = self.recipe.columns - whole
            self._panel(whole, -(-rest // LANES), rest % LANES or LANES, piece)

    def _panel(self, column: Index, vectors: int, lanes: int, piece: _Piece) -> None:
        whole = self.recipe.rows // self.rows * self.rows
        packed = self.rows if self.packs and not self.recipe.turns else 0
        if self.packs and self.recipe.turns:
            width = vectors * LANES
            self._turn((piece.first, column), (piece.length, width - LANES + lanes), width)
        if packed:
            self._tile(_Tile(0, column, self.rows, vectors, lanes, piece, packs=True))

        def turn(row: Index, _: Sequence[Value]) -> None:
            self._tile(_Tile(row, column, self.rows, vectors, lanes, piece))

        self.b.loop(whole, self.rows, (), turn, packed)
        if self.recipe.rows > whole:
            self._tile(_Tile(whole, column, self.recipe.rows - whole, vectors, lanes, piece))

    def _right(
        self, k: Index, first: Index, column: Index, vector: int, active: int, more: int,
        beside: Sequence[tuple[Index, int]] = (),
    ) -> Access:  # fmt: skip
        terms = [*self.stack, (first, self.beside.row), (k, self.beside.row), (column, 1), *beside]
        return self.b.access(self.source, terms, 1, active, vector * LANES + more)

    def _tile(self, tile: _Tile) -> None:
        spots = [(r, v) for r in range(tile.rows) for v in range(tile.vectors)]
        inits: list[Value] = [self.b.constant(0.0, self.type)] * len(spots)
        if tile.piece.adds:
            inits = [self.b.load(self._result(tile, r, v)) for r, v in spots]
        totals = self.b.loop(tile.piece.length, 1, inits, lambda k, carried: self._multiply(tile, k, carried))
        for (r, v), total in zip(spots, totals, strict=True):
            self.b.store(self._result(tile, r, v), total)

    def _result(self, tile: _Tile, r: int, v: int) -> Access:
        out = self.recipe.out
        terms = [*zip(self.batch, out.batch, strict=True), (tile.row, out.row), (tile.column, out.column)]
        active = tile.lanes if v == tile.vectors - 1 else LANES
        return self.b.access(self.out, terms, out.column, active, r * out.row + v * LANES * out.column)

    def _multiply(self, tile: _Tile, k: Index, totals: Sequence[Value]) -> Sequence[Value]:
        """Write the multiplications of one k for each accumulator of a tile; return the totals."""
        terms, count, apart = self.recipe.rows_of_terms

        def turn(row: Index, carried: Sequence[Value]) -> Sequence[Value]:
            for term in terms:
                carried = self._add(tile, k, term, (row, apart), carried)
            return carried

        return self.b.loop(count, 1, totals, turn)

    def _across(self, tile: _Tile, k: Index, term: Term, row: tuple[Index, int]) -> list[Value]:
        """Return the vectors of a row of the right matrix."""
        width, actives = tile.vectors * LANES, [LANES] * (tile.vectors - 1) + [tile.lanes]
        packed = [
            self.b.access(self.room[0], [(k, width)], 1, LANES, v * LANES) for v in range(self.packs * tile.vectors)
        ]
        if self.packs and not tile.packs:
            return [self.b.load(access) for access in packed]
        first, column = tile.piece.first, tile.column
        loaded = [self.b.load(self._right(k, first, column, v, a, term.right, [row])) for v, a in enumerate(actives)]
        for access, vector in zip(packed, loaded, strict=False):
            self.b.store(access, vector)
        return loaded

    def _add(self, tile: _Tile, k: Index, term: Term, row: tuple[Index, Term], totals: Sequence[Value]) -> list[Value]:
        """Write one term for each accumulator; `row` has the counter and the distance of repeated terms."""
        further, apart = row
        left, across = self.recipe.left, self._across(tile, k, term, (further, apart.right))
        terms = [*zip(self.batch, left.batch, strict=True), (tile.row, left.row)]
        terms += [(tile.piece.first, left.column), (k, left.column), (further, apart.left)]
        products = []
        for r in range(tile.rows):
            offset = r * left.row + term.left
            multiplier = self.b.load(self.b.access(self.left, terms, 0, 1, offset), 1)
            down = self.b.splat(multiplier, LANES)
            products += [self.b.op("fma", down, x, totals[r * tile.vectors + v]) for v, x in enumerate(across)]
        return products


Placed = Callable[[Index, Index, int, int, int], Access]


class Turn(NamedTuple):
    """A recipe: a matrix f[rows, columns] with these strides, in elements, copied into row-major order."""

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
        """The memory that is read of the matrix, and written of the copy."""
        sizes = self.rows, self.columns
        written = Extent.of(self.dtype, sizes, (self.columns, 1), is_written=True)
        return [Extent.of(self.dtype, sizes, (self.row, self.column)), written]

    def scratch(self, target: Target) -> list[tuple[str, int]]:
        """Return no scratch buffers."""
        del target
        return []

    def lower(self, target: Target) -> LoopKernel:
        """Return the kernel; its parameters are the matrix and the copy."""
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
    """Copy a matrix transposed, in blocks: `read` gives accesses down a column, `write` along a row.

    Both take the counters of row and column, an offset for each, and how many elements there are. Blocks follow each
    other along a row, or `down` a column, which is better where columns lie farther apart than rows go.
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
        turned = transpose_vectors(b, down + [zero] * (lanes - width))
        for i in range(height):
            b.store(write(row, column, i, 0, width), turned[i])

    if down:
        blocks(columns, lambda column, width: blocks(rows, lambda row, height: block(row, height, column, width)))
    else:
        blocks(rows, lambda row, height: blocks(columns, lambda column, width: block(row, height, column, width)))


def _side(dtype: str, target: Target) -> int:
    """Return the side of a block: half of the registers hold it, and the others its transpose."""
    side = LANES
    while side > 1 and 2 * side * target.parts(dtype, side) > target.registers:
        side //= 2
    return side


def transpose_vectors(b: LoopBuilder, vectors: Sequence[Value]) -> list[Value]:
    """Return the transpose of a square of vectors: as many vectors as each has lanes."""
    half, turned = len(vectors) // 2, list(vectors)
    for _ in range(half.bit_length()):
        pairs = [(turned[i], turned[i + half]) for i in range(half)]
        turned = [b.op(name, *pair) for pair in pairs for name in ("low", "high")]
    return turned
