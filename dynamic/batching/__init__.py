"""On-the-fly batching: ops of independent examples are deferred, and equal ones run together as one op."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dynamic.batching import compiled
from dynamic.batching.batch import Batch, BatchStats
from dynamic.batching.cells import cell
from dynamic.batching.switch import deferring, state
from graphs import collector


@contextmanager
def batched(strategy: str = "path") -> Iterator[Batch]:
    """Defer the ops on tensors inside the block, and run equal ones of independent examples together as one op.

        with dynamic.batched() as batch:
            loss = graphs.mean(graphs.stack([model(params, example) for example in examples]))
        loss.backward()

    Values and gradients are those of running op by op. A tensor computed in the block knows its shape and dtype; what
    is pending runs when somebody looks at a value (`item`, `if`, `print`, `backward`), and at the end of the block.
    `cell` makes deferring cheaper. Neubig, Goldberg and Dyer, "On-the-fly operation batching", 2017.

    strategy   "path" runs first what starts the longest chain of ops, "agenda" what is least deep on average, as in
               the paper, "depth" goes level by level

    An array that a deferred op reads must not be changed in place inside the block; tensors may be. The search for
    garbage in cycles is off inside. A block in a block is the same batch; other threads are not concerned. Ops
    without a batching rule run one by one: `batch.stats` counts them. Raises ValueError for an unknown strategy.
    """
    if state.batch is not None:
        yield state.batch
        return
    batch = Batch(strategy)
    with collector.paused():
        with deferring(batch):
            yield batch
            batch.run()
        batch.close()


compiled.connect()

__all__ = ["Batch", "BatchStats", "batched", "cell"]
