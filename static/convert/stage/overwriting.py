"""`x += y` on tensors: in Python it changes the tensor under all its names, and what shares its memory.

A graph's values stay as they are. So the variable gets a new value, and to read the old one through another name is
refused from then on. What shares memory with it is told by the ops between: a view has the base of its source.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from typing import Any

from graphs.builder import Builder
from graphs.errors import ControlFlowError, located
from graphs.ir import INPUT, Node
from static.convert.stage.places import journal
from static.convert.stage.trees import leaves
from static.convert.stage.unknown import Differing, is_symbol, plain, refuse
from static.trace.symbol import Symbol
from static.trace.tracing import forbidden, memory


class Overwriting:
    """Whether a tensor has been changed in place: a place, so that what a branch does to it is noted."""

    def __init__(self, node: Node) -> None:
        self.owner = node
        self.key = ("tensor", id(node))
        self.label = "a tensor"

    def get(self) -> Any:
        """The error that reading it raises, or None."""
        return forbidden().get(self.owner)

    def put(self, value: Any) -> None:
        """Allow to read it, or forbid it by an error."""
        if value is None:
            forbidden().pop(self.owner, None)
        else:
            forbidden()[self.owner] = value


class _Thread(threading.local):
    def __init__(self) -> None:
        self.sources: dict[Node, set[Node]] = {}
        self.results: dict[Node, set[Node]] = {}


_thread = _Thread()


def forget_shared() -> None:
    """A trace has ended."""
    _thread.sources.clear()
    _thread.results.clear()


def share(result: Symbol, values: Iterable[Any]) -> None:
    """Tell that a tensor may be one of these, as the path decides that is taken."""
    node = memory(result.node)
    for value in values:
        if is_symbol(value) and not value.weak:
            source = memory(value.node)
            _thread.sources.setdefault(node, set()).add(source)
            _thread.results.setdefault(source, set()).add(node)


def _same_memory(node: Node) -> set[Node]:
    """The tensors that may be changed with one: those that it may be, and all that may be one of these."""
    return _reached(_reached({node}, _thread.sources), _thread.results)


def _reached(start: set[Node], steps: Mapping[Node, set[Node]]) -> set[Node]:
    found, todo = set(start), list(start)
    while todo:
        for node in steps.get(todo.pop(), ()):
            if node not in found:
                found.add(node)
                todo.append(node)
    return found


def overwrite(value: Symbol) -> None:
    """A tensor is changed in place. Raises ControlFlowError for an argument."""
    node = memory(value.node)
    if any(one.op is INPUT and one in _arguments(value.builder) for one in _same_memory(node)):
        refuse(
            "an argument is changed in place, and a graph leaves the arrays of its caller as they are; write x = x + y"
        )
    rule = "a tensor is read that was changed in place under another name, and a graph's values stay as they are"
    error = ControlFlowError(located(f"{rule}; write x = x + y"))
    still_overwritten([(Overwriting(one), error) for one in _same_memory(node)])


def readable(value: Any) -> Any:
    """A value that a path leaves; Differing where it holds a tensor that the path has changed under another name."""
    error = next((found for leaf in leaves(plain(value)) if (found := _error(leaf)) is not None), None)
    return value if error is None else Differing(str(error))


def _error(leaf: Any) -> Any:
    return forbidden().get(memory(leaf.node)) if is_symbol(leaf) and not leaf.weak else None


def _arguments(builder: Builder) -> list[Node]:
    """The inputs of the outermost graph."""
    while builder.parent is not None:
        builder = builder.parent
    return builder.inputs


def still_overwritten(places: Iterable[Any]) -> None:
    """What a branch or a loop has changed in place stays changed after it."""
    for place, error in places:
        journal(place)
        place.put(error)
