"""Marks: where the state of a loop has cotangents, from round to round, for what a round leaves unread has none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from graphs.ir import Graph, ancestors
from static.trace.differentiate import OpCall
from static.trace.reach import graphs_in, is_singular


def marks_of(call: OpCall, carry: int) -> tuple[list[Any], list[Any]]:
    """Whether each float of a loop's state has a cotangent at its end, and what was saved of it; bools.

    They go from round to round beside the cotangents where a round may leave some of the state unread, and a zero may
    meet an infinite derivative; else there are none.
    """
    body = call.attrs["body"]
    floats = [output.spec.is_float for output in body.outputs]
    if not is_singular(body) or _reads_all(call, body, floats[:carry]):
        return [], []
    saved = range(len(floats), len(floats) + carry)
    ends, kept = there_at(call, range(carry), floats), there_at(call, saved, floats)
    return [flag for flag in ends if flag is not None], [flag for flag in kept if flag is not None]


def _reads_all(call: OpCall, body: Graph, floats: Sequence[bool]) -> bool:
    """Whether every float of the state has a cotangent after the loop, and is read in each round."""
    there = [i for i, is_float in enumerate(floats) if is_float and i in call.cotangents and call.parts.get(i) is None]
    read = ancestors(body.outputs)
    is_read = all(node in read for node, is_float in zip(body.inputs, floats, strict=False) if is_float)
    return is_read and len(there) == sum(floats) and not any(graphs_in(node) for node in body.nodes)


def there_at(call: OpCall, numbers: Iterable[int], floats: Iterable[bool]) -> list[Any]:
    """Whether each of these parts has a cotangent: a bool, None for what is no float."""
    told = []
    for number, is_float in zip(numbers, floats, strict=False):
        reach = call.parts.get(number)
        there = np.asarray(number in call.cotangents) if reach is None else reach.flag()
        told.append(there if is_float else None)
    return told
