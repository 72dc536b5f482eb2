"""Generators turned inside out: what produces items calls what consumes them, so that a loop of the graph can do both.

A generator expression or function that is looped over, summed, or asked for its next item becomes a loop whose body is
the consumer. Anything else that iterates over one takes its items as Python does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from static.convert.stage.branches import NOTHING, Block, any_of, both, branch
from static.convert.stage.loops import CountedRange, for_loop
from static.convert.stage.places import HeldValue, Variable, born, check_not_frozen, journal
from static.convert.stage.unknown import is_symbol, negated, read, refuse

Consumer = Callable[[Any], Any]


class Streamed:
    """Items that `each` hands to a consumer; an iterator too, where Python can tell how many there are."""

    _iterator: Iterator[Any] | None = None

    def each(self, consume: Consumer, goes_on: Block) -> None:
        """Hand over one item after the other for as long as `goes_on()`."""
        raise NotImplementedError

    def items(self) -> Iterator[Any]:
        """The items, taken by Python."""
        raise NotImplementedError

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if self._iterator is None:
            self._iterator = self.items()
        return next(self._iterator)

    def consumed(self) -> Iterator[Any] | None:
        """What is left of the items where Python has taken some of them."""
        return self._iterator


class Expression(Streamed):
    """`(element(item) for item in source if test(item))`."""

    def __init__(self, source: Any, element: Consumer, test: Consumer | None) -> None:
        self._source, self._element, self._test = source, element, test

    def each(self, consume: Consumer, goes_on: Block) -> None:
        """Hand over the elements."""

        def body(item: Any) -> None:
            test = True if self._test is None else self._test(item)
            branch(test, lambda: consume(self._element(item)), _nothing, NOTHING, ())

        for_each(self._source, goes_on, body, NOTHING)

    def items(self) -> Iterator[Any]:
        """The elements."""
        if isinstance(self._source, CountedRange):
            refuse("only the run knows how many items a generator has; loop over it, or take its sum")
        for item in self._source:
            test = True if self._test is None else self._test(item)
            if is_symbol(test):
                refuse("only the run knows how many items a generator has; loop over it, or take its sum")
            if test:
                yield self._element(item)


class TakenWhile(Streamed):
    """`itertools.takewhile`."""

    def __init__(self, test: Consumer, source: Any) -> None:
        self._test, self._source = test, source

    def each(self, consume: Consumer, goes_on: Block) -> None:
        """Hand over items until the test fails."""
        taking = HeldValue(True)

        def body(item: Any) -> None:
            branch(self._test(item), lambda: consume(item), lambda: taking.set(False), NOTHING, ())

        for_each(self._source, lambda: both(taking.value, goes_on), body, NOTHING)

    def items(self) -> Iterator[Any]:
        """The items up to the first that fails."""
        for item in self._source:
            test = self._test(item)
            if is_symbol(test):
                refuse("only the run knows how many items takewhile() gives; loop over them, or take their sum")
            if not test:
                return
            yield item


class Generated(Streamed):
    """A call of a generator function: `run(consume, goes_on)` is its body, `plain()` the generator itself."""

    def __init__(self, run: Callable[[Consumer, Block], Any], plain: Callable[[], Iterator[Any]]) -> None:
        self._run, self.items = run, plain  # type: ignore[method-assign]

    def each(self, consume: Consumer, goes_on: Block) -> None:
        """Hand over what it yields."""
        self._run(consume, goes_on)


def stream(source: Any, element: Consumer, test: Consumer | None) -> Streamed:
    """A generator expression."""
    return born(Expression(source, element, test))


def for_each(items: Any, goes_on: Block, body: Consumer, variables: Any) -> None:
    """`for item in items: body(item)`, for as long as `goes_on()`, which is asked before each round."""
    if not isinstance(items, Streamed) or items.consumed() is not None:
        for_loop(items, goes_on, body, variables)
        return

    def consume(item: Any) -> None:
        for number in range(len(variables.names)):
            journal(Variable(variables, number))
        body(item)

    items.each(consume, goes_on)


def total(items: Any, start: Any = 0) -> Any:
    """`sum(items, start)`."""
    if not isinstance(items, Streamed):
        check_not_frozen(items)
        return sum(items, start)
    found = HeldValue(start)
    items.each(lambda item: found.set(found.value + item), _always)
    return read(found.value)


def any_one(items: Iterable[Any], truth: Consumer) -> Any:
    """`any(items)`: no item is asked for after one that is known to be true."""
    found = HeldValue(False)
    _each(items, lambda item: found.set(any_of(found.value, lambda: truth(item))), lambda: negated(found.value))
    return found.value


def every_one(items: Iterable[Any], truth: Consumer) -> Any:
    """`all(items)`."""
    found = HeldValue(True)
    _each(items, lambda item: found.set(both(found.value, lambda: truth(item))), lambda: found.value)
    return found.value


def _each(items: Iterable[Any], consume: Consumer, goes_on: Block) -> None:
    if isinstance(items, Streamed):
        items.each(consume, goes_on)
    else:  # the items are there already, so that none needs a branch of its own
        for_loop(items, lambda: is_symbol(goes_on()) or goes_on(), consume, NOTHING)


def first(items: Any, *default: Any) -> Any:
    """`next(items, default)` of a generator that is dropped afterwards."""
    if not isinstance(items, Streamed) or items.consumed() is not None or not default:
        return next(items, *default)
    found, looking = HeldValue(default[0]), HeldValue(True)

    def consume(item: Any) -> None:
        found.set(item)
        looking.set(False)

    items.each(consume, lambda: looking.value)
    items.items = lambda: refuse("only the run knows where a generator stands after next(); make a list of it")  # type: ignore[method-assign]
    return read(found.value)


def _always() -> bool:
    return True


def _nothing() -> None:
    pass
