"""What is known of the values that only the run knows: on the path of a branch its test holds, or does not."""

from __future__ import annotations

import threading
from collections.abc import Iterator

from graphs.blocks import Block, Table, enter
from graphs.ir import Node
from graphs.ops.elementwise import logical_and, logical_not, logical_or, where
from static.trace.symbol import Symbol

Fact = tuple[Node, bool]


class _Thread(threading.local):
    def __init__(self) -> None:
        self.facts: Table[frozenset[Fact]] = {}


_thread = _Thread()


class assuming(Block):  # noqa: N801
    """Inside, a test has this value, and what it is made of has the values that follow."""

    def __init__(self, test: Symbol, value: bool) -> None:
        self._facts = frozenset(_following(test.node, value))

    def __enter__(self) -> None:
        enter(_thread.facts, self.hold(), self._facts)


def known(test: Symbol) -> bool | None:
    """The value that a test is known to have where this is traced, or None."""
    for facts in _thread.facts.values():
        for value in (True, False):
            if (test.node, value) in facts:
                return value
    return None


def _following(node: Node, value: bool) -> Iterator[Fact]:
    """A fact and those that follow from it."""
    yield node, value
    if node.op is logical_not:
        yield from _following(node.inputs[0], not value)
    elif (node.op is logical_and and value) or (node.op is logical_or and not value):
        for one in node.inputs:
            yield from _following(one, value)
    elif node.op is where:  # `a and b` is b where a holds, else a; `a or b` is a where a holds, else b
        test, then, otherwise = node.inputs
        if (value and otherwise is test) or (not value and then is test):
            yield from _following(test, value)
            yield from _following(then if value else otherwise, value)
