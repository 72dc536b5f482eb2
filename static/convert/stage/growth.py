"""Which Python ints a loop of the graph makes grow faster than by a step: in a graph they have 64 bits and wrap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum

from graphs.ir import CONSTANT, INPUT, Graph, Node

Values = dict[Node, "Growth"]


class Growth(IntEnum):
    """How the value of a node follows from the ints that a loop carries."""

    FREE = 0  # not at all, or within bounds
    STEP = 1  # one of them, more or less
    FAST = 2  # a product of them, or a sum of several


_KEEPING = frozenset(["negative", "abs", "astype", "identity", "reshape", "floor_divide", "bitwise_right_shift"])
_BOUNDED = frozenset(["take", "getitem"])


def fast(outputs: Sequence[Node], carried: Mapping[Node, bool]) -> list[int]:
    """The numbers of the outputs that grow fast, of those whose input is a Python int as `carried` tells."""
    growths: Values = {node: Growth.STEP if is_int else Growth.FREE for node, is_int in carried.items()}
    ints = list(carried.values())
    return [i for i, output in enumerate(outputs[: len(ints)]) if ints[i] and _growth(output, growths) is Growth.FAST]


def _growth(output: Node, growths: Values) -> Growth:
    """That of a node; `growths` holds those of the inputs, and is filled, without recursion along a chain."""
    todo = [output]
    while todo:
        node = todo[-1]
        missing = [source for source in node.inputs if source not in growths]
        if node in growths:
            todo.pop()
        elif missing and node.spec.dtype.kind in "biu":
            todo += missing
        else:
            growths[node] = _of(node, growths)
            todo.pop()
    return growths[output]


def _of(node: Node, growths: Values) -> Growth:
    name = node.op.name
    if node.op in (INPUT, CONSTANT) or node.spec.dtype.kind not in "biu" or name in _BOUNDED:
        return Growth.FREE
    if name == "part":
        return _of_part(node.inputs[0], node.attrs["number"], growths)
    of_inputs = [growths.get(source, Growth.FREE) for source in node.inputs]
    if name in ("where", "minimum", "maximum") or name in _KEEPING:
        return max(of_inputs[1:] if name == "where" else of_inputs[:1] if name in _KEEPING else of_inputs)
    if name == "remainder":
        return of_inputs[1]  # smaller than the divisor
    if name == "bitwise_and" and any(map(_is_mask, node.inputs)):
        return Growth.FREE
    if name in ("add", "subtract", "bitwise_and"):  # what both have of -a and -b may be -(a + b)
        return Growth.FAST if all(of_inputs) else max(of_inputs)
    if name == "multiply" and any(_is_unit(source) for source in node.inputs):
        return max(of_inputs)
    return Growth.FAST if any(of_inputs) else Growth.FREE


def _is_unit(node: Node) -> bool:
    return node.op is CONSTANT and node.spec.size == 1 and abs(int(node.attrs["value"])) <= 1


def _is_mask(node: Node) -> bool:
    """Whether a number bounds what is made of it and another, bit by bit."""
    return node.op is CONSTANT and node.spec.size == 1 and int(node.attrs["value"]) >= 0


def _of_part(control: Node, number: int, growths: Values) -> Growth:
    """The growth of a result of a switch, or of a loop inside."""
    if control.op.name == "switch":
        return max(_inside(branch, number, control.inputs[1:], growths) for branch in control.attrs["branches"])
    carry = control.attrs["carry"]
    others = [growths.get(source, Growth.FREE) for i, source in enumerate(control.inputs) if i != number]
    ints = [
        growth for growth, source in zip(others, control.inputs[1:], strict=False) if source.spec.dtype.kind in "iu"
    ]
    start = growths.get(control.inputs[number], Growth.FREE) if number < carry else Growth.FREE
    return Growth.FAST if any(ints) and start else start


def _inside(branch: Graph, number: int, sources: Sequence[Node], growths: Values) -> Growth:
    inputs = {inner: growths.get(source, Growth.FREE) for inner, source in zip(branch.inputs, sources, strict=True)}
    return _growth(branch.outputs[number], inputs)
