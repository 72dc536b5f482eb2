"""The gradient of a concat, for all of its inputs in one go.

The rule of the op adds up, for each input, the sizes of all those before it: for many inputs that takes quadratic time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from graphs import reverse
from graphs.dims import Size
from graphs.ops.movement import concat
from graphs.ops.slicing import cut
from static.trace.differentiate import OpCall, joint_rules


def _pull(call: OpCall) -> Iterator[Any]:
    """For each input the cotangent that the rule of the op gives; made when it is asked for, as there."""
    axis = call.attrs["axis"]
    start: Size = 0
    for x, wanted in zip(call.inputs, call.wanted, strict=True):
        stop = start + x.shape[axis]
        yield reverse.conform(cut(call.cotangents, axis, start, stop), x.shape, x.dtype) if wanted else None
        start = stop


joint_rules[concat] = _pull
