"""Loops as the compiled code runs them: what a scan stacks goes into memory that was planned for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphs.spec import TensorSpec

Array = Any


def scan(
    *values: Array,
    body: Callable[..., Sequence[Array]],
    carry: int,
    xs: int,
    length: int,
    reverse: bool,
    save: bool,
    rows: Sequence[TensorSpec],
    out: Sequence[Array | None],
) -> tuple[Array, ...]:
    """The kernel of `graphs.ops.control.scan_op`, but stacks into those arrays of `out` that are given."""
    # A body may return its state as it got it, so that the first must not be what the caller goes on to write over.
    state: Sequence[Array] = [np.array(value) for value in values[:carry]]
    sequences, outer = values[carry : carry + xs], values[carry + xs :]
    stacks = [np.empty(r.shape, r.dtype) if given is None else given for r, given in zip(rows, out, strict=True)]
    ys = stacks[: len(stacks) - carry] if save else stacks
    saved = stacks[len(ys) :]
    for t in reversed(range(length)) if reverse else range(length):
        for stack, value in zip(saved, state, strict=False):
            stack[t] = value
        results = body(*state, *[x[t] for x in sequences], *outer)
        state = results[:carry]
        for stack, value in zip(ys, results[carry:], strict=True):
            stack[t] = value
    return (*state, *stacks)
