"""On-the-fly batching: ops of independent examples are deferred, and equal ones run together as one op.

`batched` here opens a block. Then read `nodes` (deferred ops), `deferred` (their tensors), `batch` (order of running),
`groups` and `moves` (running one group), `rules` (one rule for each op), and last `cells` and `outlines`.
"""

from __future__ import annotations

from contextlib import ContextDecorator
from typing import Any

from dynamic import grad_mode
from dynamic.batching.batch import Batch, BatchStats
from dynamic.batching.cells import cell
from dynamic.batching.deferred import defer
from graphs import blocks
from graphs.blocks import Block


class batched(Block, ContextDecorator):  # noqa: N801  (a context manager, named like the others)
    """Defer the ops on tensors inside the block, and run equal ones of independent examples together as one op.

        with dynamic.batched() as batch:
            loss = graphs.mean(graphs.stack([model(params, example) for example in examples]))
        loss.backward()

    Values and gradients are those of running op by op. A tensor computed in the block knows its shape and dtype.
    Pending ops run when a value is read (`item`, `if`, `print`, `backward`), and at the end of the block. `cell` makes
    deferring cheaper. Neubig, Goldberg and Dyer, "On-the-fly operation batching", 2017.

    strategy   "path" first runs the ops that start the longest chain, "agenda" the ops of least average depth, as in
               the
               paper, "depth" goes level by level

    An array that a deferred op reads must not be changed in place inside the block; tensors may be. Python's search for
    garbage in cycles is off inside. A block in a block joins the same batch; other threads are not affected. Ops
    without a batching rule run one by one: `batch.stats` counts them. Raises ValueError for an unknown strategy.
    """

    def __init__(self, strategy: str = "path") -> None:
        self._strategy = strategy
        self._begun: list[Batch | None] = []  # each time it was entered, unless it was inside of another

    def __enter__(self) -> Batch:
        hold, outer = self.hold(), grad_mode.now().batch
        batch = Batch(self._strategy) if outer is None else None
        self._begun.append(batch)
        if batch is not None:
            blocks.pause(hold)
            defer(batch, hold)
        return batch or outer

    def finish(self, kind: Any, _error: Any, _trace: Any, /) -> None:  # type: ignore[override]
        """Run the pending ops, unless an error ends the block."""
        batch = self._begun.pop()
        if batch is not None and kind is None:
            batch.run()
            batch.close()


__all__ = ["Batch", "BatchStats", "batched", "cell"]
