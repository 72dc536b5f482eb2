"""What Python lends the compiled tape: classes, kernels, and who observes ops. It knows nothing of the op library."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from dynamic import inplace
from dynamic.entry import Entry, Leaf
from dynamic.fast import loops
from dynamic.fast.pullbacks import Compiled
from dynamic.options import UnlikeError
from dynamic.tensor import Tensor
from graphs import dispatch, promotion, reverse
from graphs.ops.linalg import SMALL, matmul
from graphs.ops.movement import cast
from graphs.ops.sums import MANY, summed


def connect() -> None:
    """Lend the loops what they work with."""
    loops.connect(
        tensor=Tensor,
        entry=Entry,
        leaf=Leaf,
        pullback=Compiled,
        clock=inplace.clock,
        add=np.add,
        cast=cast,
        unbroadcast=unbroadcast,
        detours=dispatch.detours,
        observers=dispatch.observers,
        numbers=promotion.numbers,
        broken=(*dispatch.BROKEN_RULES, OverflowError, UnlikeError),
        count=inplace.clock.count,
        nothing={},
        watchers=loops.watchers,
        reduce=np.add.reduce,
        summed=summed,
        many=MANY,
        product=matmul.kernel,
        matmul=np.matmul,
        dot=np.ndarray.dot,
        divide=np.divide,
        multiply=np.multiply,
        small=SMALL,
    )


def unbroadcast(cotangent: Any, shape: tuple[int, ...]) -> Any:
    """`reverse.unbroadcast` of an array, by the same kernels."""
    total = summed(cotangent, _broadcast_axes(cotangent.shape, shape))
    return total if type(total) is np.ndarray and total.shape == shape else np.asarray(total).reshape(shape)


_broadcast_axes = functools.lru_cache(maxsize=4096)(reverse.broadcast_axes)
