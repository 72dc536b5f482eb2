"""Generators turned inside out: the producer of items calls their consumer, so that one loop of the graph can do both.

A generator that is looped over, summed, or asked for its next item becomes a loop whose body is the consumer. Any other
iteration over one takes its items as Python does. Either way it starts once: a later reader gets the remaining items,
or is refused where only the run knows which these are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice, takewhile
from types import GeneratorType
from typing import Any

from static.convert.stage.branches import NOTHING, Block, any_of, both, branch
from static.convert.stage.loops import for_loop
from static.convert.stage.places import (
    HeldValue,
    Variable,
    check_not_frozen,
    check_takes,
    is_at_rest,
    is_conditional,
    is_iterator,
    is_ours,
    journal,
    note_object,
    regions,
)
from static.convert.stage.unknown import is_symbol, negate, read, refuse

Consumer = Callable[[Any], Any]
_FRESH, _PULLED, _SPENT, _LEFT = range(4)
_LIKE_GENERATORS = frozenset(name for name in dir(GeneratorType) if not name.startswith("__"))


class ItemStream:
    """Items that are handed to a consumer; also an iterator, where Python can tell how many there are."""

    runs_plain = False
    """Whether taking an item in Python runs unconverted code, whose writes no branch would undo."""

    def __init__(self, kind: type = GeneratorType) -> None:
        self.kind = kind  # the type that Python would have in its place
        self._state = HeldValue(_FRESH)
        self._iterator: Iterator[Any] = iter(())  # the iterator that Python takes items from

    def _each(self, consume: Consumer, goes_on: Block) -> Iterator[Any] | None:
        """Hand over the items from the first as long as `goes_on()`; return the remaining ones, if they are known."""
        raise NotImplementedError

    def items(self) -> Iterator[Any]:
        """Return the items as an iterator for Python."""
        raise NotImplementedError

    def each(self, consume: Consumer, goes_on: Block) -> None:
        """Hand over the remaining items, one after the other, as long as `goes_on()`."""
        if self._stands() != _FRESH:
            for_loop(self, goes_on, consume, NOTHING)
            return
        self._state.set(_LEFT)
        try:
            left, going = self._each(consume, goes_on), goes_on()
        except StopIteration:
            refuse("a StopIteration is raised while a generator is taken, and Python may see it elsewhere; return")
        if is_symbol(going):
            return
        if going:
            self._state.set(_SPENT)
        elif left is not None:
            self._iterator = left
            self._state.set(_PULLED)

    def _stands(self) -> int:
        """Return how far the stream was taken. Raises ControlFlowError where only the run knows."""
        state = self._state.value
        if is_symbol(state) or state == _LEFT:
            refuse("only the run knows how far a generator was taken before; make a list of its items, or loop once")
        return int(state)

    def __getattr__(self, name: str) -> Any:
        if name in _LIKE_GENERATORS:
            refuse(f"{name} of a generator, which is turned inside out; loop over it")
        raise AttributeError(f"{self.kind.__name__!r} object has no attribute {name!r}", name=name, obj=self)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        state = self._stands()
        if state == _SPENT:
            raise StopIteration
        if is_conditional() and (self.runs_plain or not is_ours(self)):
            refuse("Python takes an item of a generator where only the run knows whether that is reached; loop over it")
        if state == _FRESH:
            self._iterator = self.items()
            self._state.set(_PULLED)
        return next(self._iterator)


class Expression(ItemStream):
    """`(element(item) for item in source if test(item))`; where `nested`, each element is itself a stream."""

    def __init__(
        self, source: Any, element: Consumer, test: Consumer | None, nested: bool = False, kind: type = GeneratorType
    ) -> None:
        super().__init__(kind)
        self._source, self._element, self._test, self._nested = source, element, test, nested

    def _each(self, consume: Consumer, goes_on: Block) -> Iterator[Any] | None:
        begun, here, is_sure = 0, next(regions(), None), True

        def hand(item: Any) -> None:
            element = self._element(item)
            if self._nested:
                element.each(consume, goes_on)
            else:
                consume(element)

        def body(item: Any) -> None:
            nonlocal begun, is_sure
            begun += 1
            is_sure = is_sure and next(regions(), None) is here
            branch(True if self._test is None else self._test(item), lambda: hand(item), _nothing, NOTHING, ())

        for_each(self._source, goes_on, body, NOTHING)
        if self._nested or not is_sure:
            return None
        return self._items_of(
            self._source if is_iterator(self._source) else note_object(islice(self._source, begun, None))
        )

    def items(self) -> Iterator[Any]:
        """Return the elements as an iterator for Python."""
        return self._items_of(self._source)

    def _items_of(self, source: Iterable[Any]) -> Iterator[Any]:
        check_takes(source)
        for item in source:
            test = True if self._test is None else self._test(item)
            if is_symbol(test):
                refuse("only the run knows how many items a generator has; loop over it, or take its sum")
            if test and self._nested:
                yield from self._element(item)
            elif test:
                yield self._element(item)


class TakenWhile(ItemStream):
    """The stream of `itertools.takewhile`."""

    def __init__(self, test: Consumer, source: Any) -> None:
        super().__init__(takewhile)
        self._test, self._source = test, source

    def _each(self, consume: Consumer, goes_on: Block) -> None:
        taking = HeldValue(True)

        def body(item: Any) -> None:
            branch(self._test(item), lambda: consume(item), lambda: taking.set(False), NOTHING, ())

        for_each(self._source, lambda: both(taking.value, goes_on), body, NOTHING)

    def items(self) -> Iterator[Any]:
        """Yield the items up to the first that fails the test."""
        check_takes(self._source)
        for item in self._source:
            test = self._test(item)
            if is_symbol(test):
                refuse("only the run knows how many items takewhile() gives; loop over them, or take their sum")
            if not test:
                return
            yield item


class GeneratorStream(ItemStream):
    """A call of a generator function: `run(consume, goes_on)` is its body, `plain()` the generator itself."""

    runs_plain = True

    def __init__(self, run: Callable[[Consumer, Block], Any], plain: Callable[[], Iterator[Any]]) -> None:
        super().__init__()
        self._run, self.items = run, plain  # type: ignore[method-assign]

    def _each(self, consume: Consumer, goes_on: Block) -> None:
        self._run(consume, goes_on)


class PlainStream(ItemStream):
    """An iterator whose items only Python takes, since its advance cannot be undone."""

    def __init__(self, iterator: Iterator[Any]) -> None:
        super().__init__(zip)
        self.items = lambda: iterator  # type: ignore[method-assign]

    def _each(self, consume: Consumer, goes_on: Block) -> Iterator[Any]:
        for_loop(self.items(), goes_on, consume, NOTHING)
        return self.items()


def stream(
    source: Any, element: Consumer, test: Consumer | None, nested: bool = False, kind: type = GeneratorType
) -> ItemStream:
    """Return the stream of a generator expression, or of a function like one."""
    return note_object(Expression(source, element, test, nested, kind))


# What Python's own functions make lazily -----------------------------------------------------------------------------


def map_stream(function: Callable[..., Any], source: Any, *others: Any) -> ItemStream:
    """Return `map(function, source, *others)`."""
    if not others:
        return stream(source, function, None, kind=map)
    return stream(zip_stream(source, *others), lambda items: function(*items), None, kind=map)


def filter_stream(function: Consumer | None, source: Any) -> ItemStream:
    """Return `filter(function, source)`."""
    return stream(source, _itself, function or _itself, kind=filter)


def enumerate_stream(iterable: Any, start: Any = 0) -> Iterator[Any]:
    """Return `enumerate(iterable, start)`."""
    if is_at_rest(iterable):
        check_takes(iterable)
        return note_object(enumerate(iterable, start))
    count = HeldValue(start)

    def pair(item: Any) -> tuple[Any, Any]:
        number = count.value
        count.set(number + 1)
        return number, item

    return stream(iterable, pair, None, kind=enumerate)


def zip_stream(*sources: Any, strict: bool = False) -> Iterator[Any]:
    """Return `zip(*sources, strict=strict)`."""
    for source in sources:
        check_takes(source)
    items = zip(*sources, strict=strict)
    return (
        note_object(items)
        if all(map(is_at_rest, sources))
        else note_object(PlainStream(note_object(item for item in items)))
    )


# What consumes items -------------------------------------------------------------------------------------------------


def for_each(items: Any, goes_on: Block, body: Consumer, variables: Any) -> None:
    """Do `for item in items: body(item)` as long as `goes_on()`, which is asked before each round."""
    if not isinstance(items, ItemStream):
        for_loop(items, goes_on, body, variables)
        return
    around = next(regions(), None)  # the region of this loop, which sets its variables itself

    def consume(item: Any) -> None:
        for number in range(len(variables.names)):
            journal(Variable(variables, number, around))
        body(item)

    items.each(consume, goes_on)


def total(items: Any, start: Any = 0) -> Any:
    """Return `sum(items, start)`."""
    if not isinstance(items, ItemStream) or isinstance(start, (str, bytes, bytearray)):
        check_not_frozen(items)
        check_takes(items)
        return sum(items, start)
    accumulated = HeldValue(start)
    items.each(lambda item: accumulated.set(accumulated.value + item), _always)
    return read(accumulated.value)


def any_one(items: Iterable[Any], truth: Consumer) -> Any:
    """Return `any(items)`; no item is asked for after one that is known to be true."""
    result = HeldValue(False)
    _each(items, lambda item: result.set(any_of(result.value, lambda: truth(item))), lambda: negate(result.value))
    return result.value


def every_one(items: Iterable[Any], truth: Consumer) -> Any:
    """Return `all(items)`."""
    result = HeldValue(True)
    _each(items, lambda item: result.set(both(result.value, lambda: truth(item))), lambda: result.value)
    return result.value


def _each(items: Iterable[Any], consume: Consumer, goes_on: Block) -> None:
    if isinstance(items, ItemStream):
        items.each(consume, goes_on)
    elif is_at_rest(items) and not is_iterator(items):  # so that none needs a branch of its own
        for_loop(items, lambda: is_symbol(goes_on()) or goes_on(), consume, NOTHING)
    else:
        for_loop(items, goes_on, consume, NOTHING)


def first(items: Any, *default: Any) -> Any:
    """Return `next(items, default)`."""
    if not isinstance(items, ItemStream) or not default:
        return next(items, *default)
    result, looking = HeldValue(default[0]), HeldValue(True)

    def consume(item: Any) -> None:
        result.set(item)
        looking.set(False)

    items.each(consume, lambda: looking.value)
    return read(result.value)


def _always() -> bool:
    return True


def _itself(item: Any) -> Any:
    return item


def _nothing() -> None:
    pass
