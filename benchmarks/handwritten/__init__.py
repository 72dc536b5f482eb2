"""The training steps as a careful person writes them in NumPy: what the engines' steps are judged against.

Each module has a function for a loss of `benchmarks.programs`: it allocates every buffer for the sizes of the row's
arrays, and returns a step for those sizes, `step(params, *inputs) -> (loss, gradients)`. Gradients are written
into the same buffers by every call. A step does the arithmetic of its loss and no redundant pass over an array:
results go `out=`, products that share a factor are one product, reductions over rows are products with a vector, and
elementwise work on arrays that are larger than the cache goes block by block.
"""

from __future__ import annotations

from benchmarks.handwritten import attention, dense, elementwise, recurrent
from benchmarks.handwritten.buffers import Step
from benchmarks.rows import Row
from compare.errors import UnsupportedError

BUILDERS = {
    "tiny_mlp": dense.tiny_mlp,
    "mlp": dense.mlp,
    "chain": elementwise.chain,
    "rnn": recurrent.rnn,
    "transformer": attention.transformer,
}


def build(row: Row) -> Step:
    """The hand-written step of a row, for arrays of the row's shapes. Raises UnsupportedError where there is none."""
    if row.loss.__name__ not in BUILDERS:
        raise UnsupportedError("nobody has written this step by hand")
    return BUILDERS[row.loss.__name__](row)
