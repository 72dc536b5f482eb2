"""What is known of the values that only the run knows: on the path of a branch its test holds, or does not."""

from __future__ import annotations

from collections.abc import Iterator

from graphs.blocks import Block, Table, enter
from graphs.ir import CONSTANT, Node
from graphs.ops.control import part as part_of_switch
from graphs.ops.control import switch_op
from graphs.ops.elementwise import logical_and, logical_not, logical_or, where
from graphs.ops.movement import astype
from static.convert.stage.conversion import part
from static.trace.symbol import Symbol
from static.trace.tracing import current

Fact = tuple[Node, bool]


class PathFacts:
    """What holds where this is traced: a set for each branch around."""

    def __init__(self) -> None:
        self.by_branch: Table[frozenset[Fact]] = {}
        self.required: set[Fact] = set()


class assuming(Block):  # noqa: N801
    """Inside, a test has this value, and what it is made of has the values that follow."""

    def __init__(self, test: Symbol, value: bool) -> None:
        self._facts = frozenset(_following(test.node, value))

    def __enter__(self) -> None:
        enter(part(PathFacts).by_branch, self.hold(), self._facts)


def known_value(test: Symbol) -> bool | None:
    """The value that a test is known to have where this is traced, or None."""
    facts = part(PathFacts)
    for holding in (*facts.by_branch.values(), facts.required):
        for value in (True, False):
            if (test.node, value) in holding:
                return value
    return None


def require(test: Symbol, value: bool) -> None:
    """Know from here on that a test has this value, as the graph ends where it has not.

    Nothing is known from a branch or a loop of a test from around it, since what requires it may not run.
    """
    if test.builder is current():
        part(PathFacts).required.update(_following(test.node, value))


def _following(node: Node, value: bool) -> Iterator[Fact]:
    """A fact and those that follow from it."""
    yield node, value
    if node.op is logical_not:
        yield from _following(node.inputs[0], not value)
    elif (node.op is logical_and and value) or (node.op is logical_or and not value):
        for operand in node.inputs:
            yield from _following(operand, value)
    elif node.op is where:  # `a and b` is b where a holds, else a; `a or b` is a where a holds, else b
        test, then, otherwise = node.inputs
        if (value and otherwise is test) or (not value and then is test):
            yield from _following(test, value)
            yield from _following(then if value else otherwise, value)
    elif node.op is part_of_switch and node.inputs[0].op is switch_op:
        taken = _taken(node.inputs[0], node.attrs["number"], value)
        if taken is not None:
            yield from _following(*taken)


def _taken(switch: Node, number: int, value: bool) -> Fact | None:
    """What a result of a switch tells of its test: a branch that cannot give this value has not been taken."""
    test = switch.inputs[0].inputs[0] if switch.inputs[0].op is astype else switch.inputs[0]
    for taken, branch in enumerate(switch.attrs["branches"]):
        output = branch.outputs[number]
        if output.op is CONSTANT:
            result: bool | None = bool(output.attrs["value"])
        else:
            inside = output in branch.inputs and switch.inputs[1 + branch.inputs.index(output)] is test
            result = bool(taken) if inside else None
        if result is not None and result != value:
            return test, not taken
    return None
