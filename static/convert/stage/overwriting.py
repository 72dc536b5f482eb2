"""`x += y` on tensors: in Python it changes the tensor under all its names, and all that shares its memory.

A graph's values do not change. So the symbol, which all these names hold, stands for a new node from then on. Another
value that shares the memory (a view, or a tensor that may be this one) still stands for the old node, and reading it is
refused. The ops between tell which values these are: a view has the base of its source.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from graphs.builder import Builder
from graphs.errors import ControlFlowError, GraphError, locate
from graphs.ir import Node
from graphs.ops.elementwise import logical_and, logical_not, logical_or
from static.convert.stage.conversion import part, running
from static.convert.stage.places import WritePlace, is_traced_by_region, journal, write
from static.convert.stage.trees import leaves
from static.convert.stage.unknown import Differing, is_number, is_symbol, plain, refuse
from static.trace.changes import change
from static.trace.control import choice
from static.trace.symbol import Symbol, overwriters
from static.trace.tracing import current, forbidden, memory
from static.trace.views import present

MOST = 60
"""The most relations between tensors that may be each other; with more, reading these tensors is refused."""


class Overwriting:
    """Whether a tensor has been changed in place, as a place, so that a branch's change of it is noted."""

    def __init__(self, node: Node) -> None:
        self.owner = node
        self.key = ("tensor", id(node))
        self.label = "a tensor"

    def get(self) -> Any:
        """Return the error that reading the tensor raises, or None."""
        return forbidden().get(self.owner)

    def put(self, value: Any) -> None:
        """Allow reading the tensor (None), or forbid it by an error."""
        if value is None:
            forbidden().pop(self.owner, None)
        else:
            forbidden()[self.owner] = value


class ChangingTensor:
    """The node that a symbol stands for, as a place, since an operation in place changes it."""

    def __init__(self, symbol: Symbol) -> None:
        self.owner = symbol
        self.key = ("symbol", id(symbol))
        self.label = "a tensor that is changed in place"
        self._seen: dict[Node, Symbol] = {}

    def get(self) -> Any:
        """Return another symbol for the present node; the same symbol for the same node."""
        node = self.owner.node
        if node not in self._seen:
            self._seen[node] = Symbol(self.owner.builder, node)
            part(SharedMemory).owners[id(self._seen[node])] = self
        return self._seen[node]

    def put(self, value: Any) -> None:
        """Let the symbol stand for the node of another symbol."""
        self.owner.builder, self.owner.node = value.builder, value.node


def value_after(value: Any, writes: Mapping[Any, tuple[WritePlace, Any]]) -> Any:
    """Return the value at the end of a stretch with these writes, which have been undone since."""
    key = ("symbol", id(value))
    return writes[key][1] if is_symbol(value) and key in writes else value


class Either(NamedTuple):
    """A relation: a tensor is another one where a test has a value."""

    merged: Symbol
    source: Symbol
    test: Symbol
    value: bool

    def other(self, symbol: Symbol) -> Symbol | None:
        """Return the other one of the two tensors, None for a symbol that is neither."""
        return self.source if symbol is self.merged else self.merged if symbol is self.source else None

    def holds(self) -> Symbol:
        """Return a bool symbol: whether the two tensors are one."""
        return self.test if self.value else logical_not(self.test)


def _is_seen(symbol: Symbol) -> bool:
    """Whether a symbol belongs to the graph that is traced, or to an enclosing one."""
    builder = current()
    while builder is not None and builder is not symbol.builder:
        builder = builder.parent
    return builder is not None


class SharedMemory:
    """Which tensors may be which others, so that a change of one in place may change them."""

    def __init__(self) -> None:
        self.sources: dict[Node, set[Node]] = {}
        self.results: dict[Node, set[Node]] = {}
        self.owners: dict[int, ChangingTensor] = {}  # of symbols that hold another symbol's present node, by id
        self.either: list[Either] = []
        self.vague: set[Node] = set()  # tensors of which no test says which others they are
        self.unsure: set[Node] = set()  # tensors that may be Python numbers
        self.arrays: set[Node] = set()  # tensors that may be arrays of NumPy
        self.changed: set[Node] = set()  # tensors that were changed by the name they are known by


def share(result: Symbol, values: Iterable[Any]) -> None:
    """Record that a tensor may be one of these values, and that no test says which."""
    _link(result, values)
    symbols = [result, *(value for value in values if is_symbol(value) and not value.weak)]
    part(SharedMemory).vague.update(memory(symbol.node) for symbol in symbols)


def _link(result: Symbol, values: Iterable[Any]) -> None:
    shared = part(SharedMemory)
    node = memory(result.node)
    for value in values:
        if is_number(value):
            shared.unsure.add(node)
        elif not is_symbol(value):
            shared.arrays.add(node)
        elif is_symbol(value) and not value.weak:
            source = memory(value.node)
            shared.sources.setdefault(node, set()).add(source)
            shared.results.setdefault(source, set()).add(node)
            for some in (shared.unsure, shared.arrays):
                if source in some:
                    some.add(node)


def merge(result: Symbol, values: Sequence[Any], test: Symbol) -> None:
    """Record that a tensor is the first of these values where a test fails, and the second where it holds."""
    shared = part(SharedMemory)
    _link(result, values)
    owners = [_owner(value) for value in values]
    if all(owner is owners[0] for owner in owners):  # one tensor, changed on a path, is itself after the branch
        if any(memory(value.node) in shared.vague for value in values):
            shared.vague.add(memory(result.node))
        return
    for i, owner in enumerate(owners):
        if is_symbol(owner) and not owner.weak:
            shared.either.append(Either(result, owner, test, bool(i)))


def _owner(value: Any) -> Any:
    """Return the tensor whose present node a symbol holds, else the value itself."""
    shared = part(SharedMemory)
    return shared.owners[id(value)].owner if id(value) in shared.owners else value


def _same_memory(node: Node) -> set[Node]:
    """Return the tensors that may change with one: all that it may be, and all that may be one of these."""
    shared = part(SharedMemory)
    return _reachable_nodes(_reachable_nodes({node}, shared.sources), shared.results)


def _reachable_nodes(start: set[Node], steps: Mapping[Node, set[Node]]) -> set[Node]:
    reached, todo = set(start), list(start)
    while todo:
        for node in steps.get(todo.pop(), ()):
            if node not in reached:
                reached.add(node)
                todo.append(node)
    return reached


def update_in_place(value: Symbol, result: Symbol) -> Symbol:
    """Return the tensor after an operation in place: itself, under all its names, or only the result.

    Only the result has the new value where the shape or dtype would change, where the tensor may be a Python number,
    and where a user's function is the body of an op. Raises ControlFlowError for an argument.
    """
    shared = part(SharedMemory)
    if _is_alone(value):
        change(value, result)
        return value
    if value.node in shared.arrays:
        refuse("a tensor is put into what may be an array of NumPy, which takes none in place; write x = x + y")
    if result.node.spec != value.node.spec or value.node in shared.unsure or not is_traced_by_region():
        overwrite(value)
        return result
    others = [(other, choice(is_one, result, other)) for other, is_one in _other_names(value)]
    overwrite(value)
    for symbol, new in ((value, result), *others):
        _stands_for(symbol.node, new.node)
        write(ChangingTensor(symbol), new)
    return value


def _change(value: Symbol, result: Any) -> bool:
    """Change a symbol in place where a conversion runs and the symbol stands for what comes into a branch or a loop.

    Returns False where the graph that is traced makes the tensor itself, so that no other can be this one.
    """
    if running() is None or not isinstance(result, Symbol):
        return False
    if _is_alone(value):
        return False
    update_in_place(value, result)
    return True


overwriters.append(_change)


def _is_alone(value: Symbol) -> bool:
    """Whether the graph that is traced makes a tensor itself, and no other tensor or number can be this one."""
    shared, owner = part(SharedMemory), memory(value.node)
    if value.builder is not current() or owner.is_source or owner in shared.unsure or owner in shared.arrays:
        return False
    return _same_memory(owner) == {owner}


def _other_names(value: Symbol) -> list[tuple[Symbol, Symbol]]:
    """Return the tensors that are this one on some paths, each with its test; [] where that is unclear."""
    related, same = _possible_aliases(value), _same_memory(memory(value.node))
    if len(related) > MOST or any(node in part(SharedMemory).vague and node not in forbidden() for node in same):
        return []
    symbols = {id(symbol): symbol for either in related for symbol in (either.merged, either.source)}
    others = [symbol for symbol in symbols.values() if symbol is not value and _is_seen(symbol)]
    origins = Origins(related)
    try:
        tests = [(other, _common(origins.of(value), origins.of(other))) for other in others]
    except _UnseenTestError:
        return []
    return [(other, is_one) for other, is_one in tests if is_one is not None]


class _UnseenTestError(Exception):
    """Raised when the test that tells which tensor a value is belongs to a branch that has ended."""


def _possible_aliases(value: Symbol) -> list[Either]:
    """Return every relation by which a tensor may be another one, through any number of steps."""
    symbols, relations = [value], dict[int, Either]()
    for symbol in symbols:
        for number, either in enumerate(part(SharedMemory).either):
            other = either.other(symbol)
            if other is not None and number not in relations:
                relations[number] = either
                symbols.append(other)
    return list(relations.values())


class Origins:
    """The tensors that each value may be in the end, with the test that tells it; None means always."""

    def __init__(self, related: Sequence[Either]) -> None:
        self._sources: dict[int, list[Either]] = {}
        self._found: dict[int, dict[int, Symbol | None]] = {}
        for either in related:
            self._sources.setdefault(id(either.merged), []).append(either)

    def of(self, symbol: Symbol) -> dict[int, Symbol | None]:
        """Return the tensors that a value may be, by id, each with its test."""
        key = id(symbol)
        if key not in self._found:
            sources = self._sources.get(key)
            self._found[key] = self._merge(sources) if sources else {key: None}
        return self._found[key]

    def _merge(self, sources: Sequence[Either]) -> dict[int, Symbol | None]:
        tests: dict[int, Symbol | None] = {}
        for either in sources:
            if not _is_seen(either.test):
                raise _UnseenTestError
            for origin, test in self.of(either.source).items():
                way = _both(either.holds(), test)
                tests[origin] = logical_or(tests[origin], way) if origin in tests else way
        return tests


def _both(first: Symbol | None, second: Symbol | None) -> Symbol | None:
    return first if second is None else second if first is None else logical_and(first, second)


def _common(left: Mapping[int, Symbol | None], right: Mapping[int, Symbol | None]) -> Symbol | None:
    """Return a bool symbol for whether two tensors are one, None where they never are."""
    ways = [_both(test, right[origin]) for origin, test in left.items() if origin in right]
    return functools.reduce(logical_or, [way for way in ways if way is not None]) if ways else None


def _stands_for(old: Node, new: Node) -> None:
    """Record that a tensor has a new node; its relations to other tensors stay."""
    shared = part(SharedMemory)
    old, new = memory(old), memory(new)
    for steps, back in (
        (shared.sources, shared.results),
        (shared.results, shared.sources),
    ):
        for node in steps.get(old, set()) - {new}:
            steps.setdefault(new, set()).add(node)
            back.setdefault(node, set()).add(new)
    if old in shared.vague:
        shared.vague.add(new)


def overwrite(value: Symbol) -> None:
    """Record that the memory of a tensor is changed. Raises ControlFlowError for an argument."""
    node = memory(value.node)
    same = set[Node]().union(*map(_same_memory, _memories(value.builder, node)))
    if any(alias.is_input and alias in _arguments(value.builder) for alias in same):
        refuse(
            "an argument is changed in place, and a graph leaves the arrays of its caller as they are; write x = x + y"
        )
    part(SharedMemory).changed.add(node)
    _forbid(same)


def _memories(builder: Builder, node: Node) -> Iterator[Node]:
    """Yield memory, and of what a branch or loop takes a view of, the memory in each graph around it."""
    yield node
    outside = {inside: outer for outer, inside in builder.captured.items()}
    if builder.parent is not None and node in outside:
        yield from _memories(builder.parent, memory(outside[node], builder.parent))


def was_changed(node: Node) -> bool:
    """Whether this node itself was changed, and not only one that may be it."""
    return node in part(SharedMemory).changed


def _forbid(nodes: Iterable[Node]) -> None:
    rule = "a tensor is read that was changed in place under another name, and a graph's values stay as they are"
    error = ControlFlowError(locate(f"{rule}; write x = x + y"))
    still_overwritten([(Overwriting(node), error) for node in nodes])


def stale(start: Any, own: Node) -> None:
    """Forbid reading tensors that share memory with `start`, which a round changes in place as `own`.

    From the next round on nobody may read them; nor in the first one, since the rounds of a loop are one graph.
    """
    if is_symbol(start) and not start.weak:
        _forbid(_same_memory(memory(start.node)) - {own})


def readable(value: Any) -> Any:
    """Return a value that a path leaves; Differing where it holds a tensor changed under another name."""
    error = next((failure for leaf in leaves(plain(value)) if (failure := _error(leaf)) is not None), None)
    return value if error is None else Differing(str(error))


def readable_after(value: Any, writes: Mapping[Any, tuple[WritePlace, Any]]) -> Any:
    """Return a value that a path leaves as it was; Differing where the path's writes changed a tensor in it."""
    for leaf in leaves(plain(value)):
        if is_symbol(leaf) and not leaf.weak and ChangingTensor(leaf).key not in writes:
            _, error = writes.get(Overwriting(memory(leaf.node)).key, (None, None))
            if error is not None:
                return Differing(str(error))
    return value


def _error(leaf: Any) -> Any:
    """Return the error that reading a leaf raises, or None; a symbol stands for its value as it is now from then on."""
    if not is_symbol(leaf) or leaf.weak:
        return None
    try:
        leaf.node = present(leaf.builder, leaf.node)
    except GraphError as error:
        return error
    return forbidden().get(memory(leaf.node))


def _arguments(builder: Builder) -> list[Node]:
    """Return the inputs of the outermost graph."""
    while builder.parent is not None:
        builder = builder.parent
    return builder.inputs


def still_overwritten(places: Iterable[Any]) -> None:
    """Mark tensors that a branch or a loop has changed in place as changed after it."""
    for place, error in places:
        journal(place)
        place.put(error)
