"""The state that a loop of the graph carries from round to round, found by tracing its body until nothing new is found.

The first trace takes every value for constant. A value that the body changes is carried from then on: a variable, or a
place that the body writes to. Decisions on values that stay constant are Python's. All traces but the last one are
thrown away. Read `LoopState` first.

`Growth`, in the second half, finds Python ints that a loop makes grow faster than by a step: in a graph they have 64
bits and wrap.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np

from graphs.dims import same_shape
from graphs.errors import GraphError
from graphs.ir import Graph, Node
from graphs.op import RuleTable
from graphs.ops.shapes import dtype_of, shape_of
from graphs.spec import TensorSpec
from static.convert.stage.branches import Variables, reached_block
from static.convert.stage.overwriting import (
    Overwriting,
    overwrite,
    share,
    stale,
    still_overwritten,
    value_after,
    was_changed,
)
from static.convert.stage.places import Region, WritePlace, freeze, write
from static.convert.stage.trees import StructureError, cast_leaf, is_leaf, is_same, number_dtype, pieces_of
from static.convert.stage.unknown import (
    Differing,
    Partly,
    Unset,
    describe_value,
    is_number,
    is_symbol,
    mark_chosen,
    plain,
    read,
    refuse,
    truth,
    weak,
)
from static.trace.control import Subgraph
from static.trace.symbol import Symbol
from static.trace.tracing import forbidden, memory

ROUNDS = 12
"""The most traces of a body before the loop is refused: each writes to objects that the one before did not know."""

Path = tuple[int, ...]
Writes = dict[Hashable, tuple[WritePlace, Any]]


class Slot(NamedTuple):
    """The spec of one carried leaf of the state, and whether it stands for a Python number."""

    spec: TensorSpec
    weak: bool


class LoopState:
    """The state of a loop: its variables, then the places that its body writes to.

    A leaf is identified by its path: the number of the variable or place, and its position inside it.
    """

    def __init__(self, variables: Variables) -> None:
        self._variables = variables
        self._before = variables.get()
        self._places: list[WritePlace] = []
        self._slots: dict[Path, Slot] = {}
        self._rebound: set[Path] = set()  # containers that a round replaces by others
        self._late: dict[Path, Any] = {}  # variables first set by a round, with an example of the value
        self._after: dict[Path, Any] = {}  # the leaves at the end of the last round
        self._left: Writes = {}  # the writes of the last round
        self._overwritten: Writes = {}  # tensors that a round changes in place
        self._changing: set[Path] = set()  # leaves that come into a round and are changed there in place
        self._errors: dict[Node, GraphError] = {}  # errors of nodes that must not be read at the end of the last round
        self._stale: dict[Path, GraphError] = {}  # leaves that must not be read after a round
        self._given: dict[Path, Symbol] = {}
        self._entered: dict[Path, Node] = {}  # the nodes of the leaves when they came into the round
        self._made: list[tuple[Any, Any]] = []  # pairs of a container and the container made in its place

    def settled(self, body: Callable[..., Any], items: Sequence[TensorSpec] = ()) -> Subgraph:
        """Return the body, traced on its carried state and on `items`; it returns the state after the round.

        Raises StructureError where a round changes the structure, the shape or the dtype of a value.
        """
        for _ in range(ROUNDS):
            before = self._knowledge()
            traced = self._trace(body, items)
            if self._knowledge() == before:
                traced.give(lambda: [cast_leaf(self._after[path], slot.spec) for path, slot in self._slots.items()])
                self._check_ints(traced)
                return traced
        return refuse(
            "a loop that only the run ends writes to objects that it makes in every round; make them before it"
        )

    def _check_ints(self, traced: Subgraph) -> None:
        """Raise ControlFlowError for a Python int that may outgrow the 64 bits which it has in a graph."""
        slots = list(self._slots.items())
        ints = [slot.weak and slot.spec.dtype.kind == "i" for _, slot in slots]
        for number in fast(traced.outputs, dict(zip(traced.inputs[: len(ints)], ints, strict=True))):
            label = self._labels()[slots[number][0][0]]
            refuse(
                f"{label} is a Python int that a loop multiplies, and may outgrow the 64 bits that it has in a graph; "
                "start it as np.int64(...), which wraps, or as a float"
            )

    def _labels(self) -> list[str]:
        return [*map(repr, self._variables.names), *(place.label for place in self._places)]

    def _knowledge(self) -> tuple[Any, ...]:
        is_changed = set(self._changing), set(self._stale)
        return dict(self._slots), set(self._rebound), set(self._late), len(self._places), is_changed

    def tested(self, test: Callable[[], Any]) -> Subgraph:
        """Return the test of the loop, traced on the carried state."""

        def evaluate_test() -> Any:
            going = read(test())
            return truth(going) if is_symbol(going) else np.asarray(bool(going))

        def run(symbols: Sequence[Symbol]) -> Any:
            going, _, _, writes = self._inside(symbols, evaluate_test)
            if any(key not in {place.key for place in self._places} for key in writes):
                refuse("the test of a loop that only the run ends writes to something; write to it in the body")
            return going

        return Subgraph("condition", run, self._specs())

    def start(self) -> list[Any]:
        """Return the state that is carried into the first round."""
        leaves = self._starts()
        return [cast_leaf(leaves.get(path, Unset("")), slot.spec) for path, slot in self._slots.items()]

    def _starts(self) -> dict[Path, Any]:
        leaves: dict[Path, Any] = {}
        for i, value in enumerate(self._values()):
            self._gather((i,), value, leaves)
        return leaves

    def finish(self, results: Sequence[Symbol]) -> None:
        """Set the variables and the places to their values after the loop."""
        self._overwrite()
        values = self._fill_state(results)
        self._share(self._given)
        self._forbid(self._given)
        for pair in self._made:
            for container in pair:
                freeze(container)
        count = len(self._before)
        self._variables.put(values[:count])
        for place, value in zip(self._places, values[count:], strict=True):
            write(place, value)

    def _overwrite(self) -> None:
        """Mark tensors that a round changes in place as changed after the loop, also those that came into it."""
        starts = self._starts()
        still_overwritten(self._overwritten.values())
        for path in self._changing:
            start = starts.get(path)
            if is_symbol(start) and not start.weak:
                overwrite(start)

    def _forbid(self, leaves: Mapping[Path, Symbol]) -> None:
        """Forbid reading the leaves that a round leaves behind changed under another name."""
        still_overwritten((Overwriting(leaves[path].node), error) for path, error in self._stale.items())

    # Tracing -------------------------------------------------------------------------------------------------

    def _specs(self) -> list[TensorSpec]:
        return [slot.spec for slot in self._slots.values()]

    def _values(self) -> list[Any]:
        return [*self._variables.get(), *(place.get() for place in self._places)]

    def _trace(self, body: Callable[..., Any], items: Sequence[TensorSpec]) -> Subgraph:
        """Return the body traced on the state carried so far, and learn what else it changes."""

        def run(symbols: Sequence[Symbol]) -> tuple[()]:
            count = len(self._slots)
            _, before, after, writes = self._inside(symbols[:count], lambda: body(*symbols[count:]))
            self._left = writes
            for i, label in enumerate(self._labels()):
                self._learn((i,), label, before[i], after[i])
            self._add_places(writes)
            return ()

        return Subgraph("body", run, [*self._specs(), *items], repeats=True)

    def _share(self, leaves: Mapping[Path, Any]) -> None:
        """Record which tensors each leaf may be: the one before the loop, or the one after a round."""
        starts = self._starts()
        for path, leaf in leaves.items():
            if not self._slots[path].weak:
                share(leaf, [starts.get(path), self._after[path]])

    def _inside(self, symbols: Sequence[Symbol], run: Callable[[], Any]) -> tuple[Any, list[Any], list[Any], Writes]:
        """Return the result of `run` on the state of these symbols, the states before and after, and all writes."""
        before, starts = self._fill_state(symbols), self._starts()
        self._share(self._given)
        count = len(self._before)
        with Region() as region:
            try:
                self._variables.put(before[:count])
                for place, value in zip(self._places, before[count:], strict=True):
                    write(place, value)
                self._forbid(self._given)
                for path in self._changing:
                    stale(starts.get(path), self._entered[path])
                errors: dict[Any, Any] = {Overwriting(node).key: error for node, error in forbidden().items()}
                result = reached_block(run)
                after = self._values()
                self._errors = dict(forbidden())
            finally:
                writes = region.undo()
                self._variables.put(self._before)
        writes = {key: written for key, written in writes.items() if errors.get(key) is not written[1]}
        return result, before, after, writes

    def _add_places(self, writes: Writes) -> None:
        """Add the places among the writes to the carried state."""
        carried_keys = {place.key for place in self._places}
        replaced = {id(new): label for _, new in self._made for label in [type(new).__name__]}
        for key, (place, value) in writes.items():
            if isinstance(place, Overwriting):
                self._overwritten[key] = place, value
                changed = place.owner if was_changed(place.owner) else None
                self._changing |= {path for path, node in self._entered.items() if node is changed}
                continue
            if id(place.owner) in replaced:
                raise StructureError(f"a {replaced[id(place.owner)]} is changed in place, and replaced by another")
            if key not in carried_keys:
                self._rebound.add((len(self._before) + len(self._places),))
                self._places.append(place)

    # Values of the state ----------------------------------------------------------------------------------------

    def _fill_state(self, symbols: Sequence[Symbol]) -> list[Any]:
        """Return the values of the state with these symbols for its leaves."""
        pairs = zip(self._slots.items(), symbols, strict=True)
        leaves = {path: weak(symbol) if slot.weak else mark_chosen(symbol) for (path, slot), symbol in pairs}
        self._made, self._given = [], leaves
        self._entered = {path: symbol.node for path, symbol in leaves.items()}
        return [self._fill((i,), value, leaves) for i, value in enumerate(self._values())]

    def _fill(self, path: Path, value: Any, leaves: Mapping[Path, Any]) -> Any:
        example = plain(self._late.get(path, value))
        if path in leaves:
            new = leaves[path]
        elif path in self._rebound and (parts := pieces_of(example)) is not None:
            new = mark_chosen(parts.make([self._fill((*path, i), item, leaves) for i, item in enumerate(parts.items)]))
            if len(path) > 1 or path[0] < len(self._before):
                self._made.append((value, new))
        else:
            new = self._late.get(path, value)
        name = getattr(value, "name", "") if path in self._late else ""
        return Partly(name, plain(new)) if name else new

    def _gather(self, path: Path, value: Any, leaves: dict[Path, Any]) -> None:
        """Add the leaves of a value of the state at the start."""
        if path in self._slots:
            leaves[path] = value
        elif path in self._rebound and (parts := pieces_of(value)) is not None:
            for i, item in enumerate(parts.items):
                self._gather((*path, i), item, leaves)

    # Learning ------------------------------------------------------------------------------------------------

    def _learn(self, path: Path, label: str, before: Any, after: Any) -> None:
        """Record a round's change of a value. Raises StructureError where no loop can carry it."""
        if isinstance(before, Differing) or isinstance(after, Differing):
            if before is not after:
                raise StructureError(next(v.why for v in (after, before) if isinstance(v, Differing)))
            return
        before, after = plain(before), plain(after)
        is_carried = path in self._slots or path in self._rebound
        if before is after and not is_carried:
            return
        after = value_after(after, self._left)
        if not is_carried and is_same([before, after]):
            return
        if isinstance(before, Unset) and not isinstance(after, Unset):
            self._late.setdefault(path, after)
            self._learn_late(path, label, after)
        elif is_leaf(before) and is_leaf(after):
            self._learn_leaf(path, label, before, after)
        else:
            self._learn_items(path, label, before, after)

    def _learn_late(self, path: Path, label: str, after: Any) -> None:
        """Record a value that a round sets and nothing before it: zeros are carried into the first round."""
        if is_leaf(after):
            self._learn_leaf(path, label, after, after)
        elif (parts := pieces_of(after)) is not None:
            self._rebound.add(path)
            for i, item in enumerate(parts.items):
                self._learn_late((*path, i), f"{label}{parts.labels[i]}", item)

    def _learn_items(self, path: Path, label: str, before: Any, after: Any) -> None:
        parts, parts_after = pieces_of(before), pieces_of(after)
        if parts is None or parts_after is None or parts.like != parts_after.like:
            raise StructureError(
                f"{label} is {describe_value(before)} before a round and {describe_value(after)} after it"
            )
        self._rebound.add(path)
        for i, (item, item_after) in enumerate(zip(parts.items, parts_after.items, strict=True)):
            self._learn((*path, i), f"{label}{parts.labels[i]}", item, item_after)

    def _learn_leaf(self, path: Path, label: str, before: Any, after: Any) -> None:
        dtype = _dtype(before, after)
        if dtype is None or not same_shape(shape_of(before), shape_of(after)):
            raise StructureError(
                f"{label} is {describe_value(before)} before a round and {describe_value(after)} after it"
            )
        self._after[path] = after
        error = self._errors.get(memory(after.node)) if is_symbol(after) and not after.weak else None
        if error is not None:
            self._stale[path] = error
        self._slots[path] = Slot(TensorSpec(shape_of(after), dtype), is_number(before) and is_number(after))


def _dtype(before: Any, after: Any) -> np.dtype[Any] | None:
    """Return the dtype that a leaf has in every round, None where a tensor changes its own."""
    if is_number(before) and is_number(after):
        return np.result_type(dtype_of(before), dtype_of(after))
    if is_number(before):
        return np.result_type(number_dtype(before, [after]), dtype_of(after))
    dtype = number_dtype(after, [before]) if is_number(after) else dtype_of(after)
    return dtype if dtype == dtype_of(before) else None


Values = dict[Node, "Growth"]


class Growth(IntEnum):
    """How the value of a node depends on the Python ints that a loop carries."""

    FREE = 0  # not at all, or within bounds
    STEP = 1  # one of them, more or less
    FAST = 2  # a product of them, or a sum of several


def fast(outputs: Sequence[Node], carried: Mapping[Node, bool]) -> list[int]:
    """Return the indices of outputs that grow fast, among those whose input is a Python int by `carried`."""
    growths: Values = {node: Growth.STEP if is_int else Growth.FREE for node, is_int in carried.items()}
    ints = list(carried.values())
    return [i for i, output in enumerate(outputs[: len(ints)]) if ints[i] and _growth(output, growths) is Growth.FAST]


def _growth(output: Node, growths: Values) -> Growth:
    """Return the growth of a node, without recursion along a chain; `growths` caches it, and has those of inputs."""
    todo = [output]
    while todo:
        node = todo[-1]
        missing = [source for source in node.inputs if source not in growths]
        if node in growths:
            todo.pop()
        elif missing and node.spec.dtype.kind in "biu":
            todo += missing
        else:
            growths[node] = _growth_of(node, growths)
            todo.pop()
    return growths[output]


def _growth_of(node: Node, growths: Values) -> Growth:
    if node.is_source or node.spec.dtype.kind not in "biu":
        return Growth.FREE
    if node.is_part:
        return _of_part(node.inputs[0], node.attrs["number"], growths)
    return GROWTHS[node.op](node, [growths.get(source, Growth.FREE) for source in node.inputs])


GrowthRule = Callable[[Node, Sequence[Growth]], Growth]


def _largest(_: Node, inputs: Sequence[Growth]) -> Growth:
    return max(inputs)


def _sum_growth(_: Node, inputs: Sequence[Growth]) -> Growth:
    return Growth.FAST if all(inputs) else max(inputs)


GROWTHS: RuleTable[GrowthRule] = RuleTable(
    "growth of ints", otherwise=lambda _, inputs: Growth.FAST if any(inputs) else Growth.FREE
)
GROWTHS.for_op("negative", "abs", "astype", "identity", "reshape", "floor_divide", "bitwise_right_shift")(
    lambda _, inputs: inputs[0]
)
GROWTHS.for_op("take", "getitem")(lambda _, inputs: Growth.FREE)  # noqa: ARG005  (of what does not grow in a loop)
GROWTHS.for_op("minimum", "maximum")(_largest)
GROWTHS.for_op("where")(lambda _, inputs: max(inputs[1:]))
GROWTHS.for_op("remainder")(lambda _, inputs: inputs[1])  # smaller than the divisor
GROWTHS.for_op("add", "subtract")(_sum_growth)


@GROWTHS.for_op("bitwise_and")
def _mask_growth(node: Node, inputs: Sequence[Growth]) -> Growth:  # what both have of -a and -b may be -(a + b)
    return Growth.FREE if any(map(_is_mask, node.inputs)) else _sum_growth(node, inputs)


@GROWTHS.for_op("multiply")
def _product_growth(node: Node, inputs: Sequence[Growth]) -> Growth:
    return max(inputs) if any(map(_is_unit, node.inputs)) else GROWTHS.otherwise(node, inputs)


def _is_unit(node: Node) -> bool:
    return node.is_constant and node.spec.size == 1 and abs(int(node.attrs["value"])) <= 1


def _is_mask(node: Node) -> bool:
    """Whether a node is a constant that bounds its bitwise and with any number."""
    return node.is_constant and node.spec.size == 1 and int(node.attrs["value"]) >= 0


def _of_part(control: Node, number: int, growths: Values) -> Growth:
    """Return the growth of a result of a switch, or of a loop inside."""
    if "branches" in control.attrs:
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
