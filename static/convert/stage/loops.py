"""Loops: ordinary Python as long as the test is known, then a loop of the graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

from graphs.dims import is_symbolic
from graphs.errors import user_line
from graphs.ops.effects import require_op
from graphs.ops.elementwise import logical_not
from graphs.spec import TensorSpec
from static.convert.stage import conversion
from static.convert.stage.branches import Block, Variables, both, branch
from static.convert.stage.loop_state import LoopState
from static.convert.stage.places import (
    TAKEN_WHOLE,
    HeldValue,
    Region,
    check_not_frozen,
    check_takes,
    freeze,
    is_at_rest,
    is_ours,
)
from static.convert.stage.trees import StructureError
from static.convert.stage.unknown import is_symbol, refuse
from static.trace.control import bounded_node, nodes_of, scan_node, while_node
from static.trace.symbol import Symbol

UNROLLED = 256
"""The most rounds over known items that are traced one by one once only the run knows if they are reached."""


class CountedRange:
    """`range` of numbers that only the run knows."""

    def __init__(self, start: Any, stop: Any, step: Any) -> None:
        if is_symbol(step):
            refuse("range(): only the run knows its step, and so which way it goes; make the step a Python number")
        if step == 0:
            raise ValueError("range() arg 3 must not be zero")
        self.start, self.stop, self.step = start, stop, step

    def holds(self, at: Any) -> Any:
        """Return whether the loop goes on at a number."""
        return at < self.stop if self.step > 0 else at > self.stop

    def __iter__(self) -> NoReturn:
        refuse("only the run knows how many numbers a range() has; loop over it by a for statement, or take its sum")

    __len__ = __reversed__ = __iter__

    def __getitem__(self, _: Any) -> NoReturn:
        refuse("only the run knows how many numbers a range() has; compute the one that you need")

    __contains__ = __getitem__


def while_loop(test: Block, body: Block, variables: Variables, peeled: bool = False) -> None:
    """Do `while test(): body()`."""
    while True:
        with Region(conditional=False) as region:
            going = test()
            writes = bool(region.changed())
            if is_symbol(going):
                region.undo()  # the test is made again, in the loop
        if is_symbol(going):
            stage_loop(*(_move_test_into_body(test, body) if writes else (test, body)), variables, peeled)
            return
        if not going:
            return
        body()


def _move_test_into_body(test: Block, body: Block) -> tuple[Block, Block]:
    """Return a test and body in which the body computes the next test, for a test that writes to something."""
    going = HeldValue(test())

    def round_and_test() -> None:
        body()
        going.set(test())

    return lambda: going.value, round_and_test


def for_loop(items: Any, goes_on: Block, body: Callable[[Any], Any], variables: Variables) -> None:
    """Do `for item in items: body(item)` as long as `goes_on()`, which is asked before each round."""
    if isinstance(items, CountedRange):
        range_loop(items.start, items, goes_on, body, variables)
        return
    if is_symbol(items) and items.shape and is_symbolic(items.shape[0]):
        over_rows(items, goes_on, body, variables)
        return
    rounds = _Rounds(items)
    for item, going in rounds.before(goes_on):
        if not is_symbol(going):
            body(item)
            continue
        if rounds.left > UNROLLED and isinstance(items, range):
            range_loop(item, CountedRange(item, items.stop, items.step), goes_on, body, variables)
            return
        branch(going, lambda item=item: body(item), _nothing, variables, variables.names)  # type: ignore[misc]


class _Rounds:
    """The items of a loop, taken one by one as Python takes them."""

    def __init__(self, items: Any) -> None:
        self._items = items
        self._taken = 0

    @property
    def left(self) -> int:
        """The number of items left, including the one taken last; 0 where it is unknown."""
        return len(self._items) - self._taken + 1 if hasattr(self._items, "__len__") else 0

    def _all_of(self, iterator: Iterator[Any]) -> Iterator[Any]:
        """Return all items of an iterator when only the run knows how many are taken; nobody may take more."""
        if type(iterator) not in TAKEN_WHOLE or (iterator is self._items and not is_ours(iterator)):
            refuse("only the run knows how far an iterator is taken; loop over a list, or over range()")
        freeze(iterator)
        return iter(list(iterator))

    def before(self, goes_on: Block) -> Iterator[tuple[Any, Any]]:
        """Yield the items, and whether the loop goes on, until it is known to have ended."""
        check_not_frozen(self._items)
        check_takes(self._items)
        iterator = iter(self._items)
        while True:
            going = goes_on()
            if is_symbol(going) and not (is_at_rest(self._items) and iterator is not self._items):
                iterator = self._all_of(iterator)
            if not is_symbol(going) and not going:
                return
            try:
                item = next(iterator)
            except StopIteration:
                return
            self._taken += 1
            yield item, going


def range_loop(
    start: Any, count: CountedRange, goes_on: Block, body: Callable[[Any], Any], variables: Variables
) -> None:
    """Write a loop over a range as a loop of the graph, which carries the number."""
    held = [start]

    def get() -> tuple[Any, ...]:
        return held[0], *variables.get()

    def put(values: Sequence[Any]) -> None:
        held[0] = values[0]
        variables.put(values[1:])

    def step() -> None:
        at = held[0]
        body(at)
        held[0] = at + count.step

    def test() -> Any:
        return both(count.holds(held[0]), goes_on)

    while_loop(test, step, Variables(("the number of the range", *variables.names), get, put))


def stage_loop(test: Block, body: Block, variables: Variables, peeled: bool) -> None:
    """Write a loop of the graph, whose test and body are traced on the state that they carry.

    Where the first round changes the structure of the state (as from None to a tensor), it becomes a branch before the
    loop.
    """
    carried = LoopState(variables)
    try:
        step = carried.settled(body)
    except StructureError as error:
        if peeled:
            refuse(f"{error}; a loop that only the run ends keeps the structure, shape and dtype of what it changes")

        def first() -> None:
            body()
            while_loop(test, body, variables, peeled=True)

        branch(test(), first, _nothing, variables, variables.names)
        return
    tested, start, active = carried.tested(test), nodes_of(carried.start()), conversion.running()
    if active is None or active.max_rounds is None:
        carried.finish(while_node(start, tested, step))
        return
    parts, going = bounded_node(start, tested, step, active.max_rounds)
    rule = f"a loop takes more than the {active.max_rounds} rounds that max_rounds allows; allow more"
    require_op.apply((logical_not(going),), {"label": rule, "line": user_line(), "error": None})
    carried.finish(parts)


def over_rows(rows: Symbol, goes_on: Block, body: Callable[[Any], Any], variables: Variables) -> None:
    """Write a loop over the rows of an array as a scan; after a break the remaining rows change nothing."""
    carried = LoopState(variables)

    def step(row: Any) -> None:
        branch(goes_on(), lambda: body(row), _nothing, variables, variables.names)

    try:
        traced = carried.settled(step, [TensorSpec(rows.shape[1:], rows.dtype)])
    except StructureError as error:
        refuse(f"{error}; a loop over a symbolic size keeps the structure, shape and dtype of what it changes")
    carried.finish(scan_node(nodes_of(carried.start()), nodes_of([rows]), traced, rows.shape[0]))


def _nothing() -> None:
    pass
