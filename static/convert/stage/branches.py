"""Branches: ordinary Python where the test is known, else all of them traced, and a switch that picks at run time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from graphs.errors import GraphError
from static.convert.stage.facts import assuming
from static.convert.stage.merging import Merge, Path
from static.convert.stage.overwriting import Overwriting, readable, readable_after, still_overwritten
from static.convert.stage.places import Region, Variable, WritePlace, journal, write
from static.convert.stage.raising import is_raised_by_the_graph, refuse_raised, require
from static.convert.stage.unknown import (
    is_symbol,
    read,
    refuse,
    settled,
    truth,
)
from static.trace.control import Subgraph
from static.trace.symbol import Symbol

Block = Callable[[], Any]


class Variables(NamedTuple):
    """The variables that blocks may set: their names, and how to get and set all of them.

    `lent` are those that functions inside may set as well: the journal knows them as places.
    """

    names: tuple[str, ...]
    get: Callable[[], tuple[Any, ...]]
    put: Callable[[Sequence[Any]], None]
    lent: tuple[str, ...] = ()

    def journal(self) -> None:
        """Note what the lent ones hold before the block sets them, so that this is what is put back."""
        for number, name in enumerate(self.names):
            if name in self.lent:
                journal(Variable(self, number))


NOTHING = Variables((), tuple, lambda _: None)


def branch(test: Any, then: Block, otherwise: Block, variables: Variables, live: Sequence[str]) -> None:
    """`if test: then() else: otherwise()`, where the variables `live` are read later."""
    if not is_symbol(test):
        (then if test else otherwise)()
        return
    before = variables.get()
    kept = [i for i, name in enumerate(variables.names) if name in live]

    def run(block: Block) -> Callable[[], list[Any]]:
        def traced() -> list[Any]:
            variables.put(before)
            variables.journal()
            block()
            after = variables.get()
            return [after[i] for i in kept]

        return traced

    try:
        merged = decided(truth(test), [run(otherwise), run(then)], [repr(variables.names[i]) for i in kept])
    finally:
        variables.put(before)
    after = list(before)
    for i, value in zip(kept, merged, strict=True):
        after[i] = value
    variables.put(after)


def choose(test: Any, then: Block, otherwise: Block) -> Any:
    """`then() if test else otherwise()`."""
    if not is_symbol(test):
        return then() if test else otherwise()
    (value,) = decided(truth(test), [lambda: [otherwise()], lambda: [then()]], ["the value"])
    return read(value)


def both(first: Any, second: Block) -> Any:
    """`first and second()`."""
    if not is_symbol(first):
        return first and second()
    test = truth(first)
    first = test if first.dtype == test.dtype else first
    (value,) = decided(test, [lambda: [first], lambda: [second()]], ["the value of `and`"])
    return read(value)


def any_of(first: Any, second: Block) -> Any:
    """`first or second()`."""
    if not is_symbol(first):
        return first or second()
    test = truth(first)
    first = test if first.dtype == test.dtype else first
    (value,) = decided(test, [lambda: [second()], lambda: [first]], ["the value of `or`"])
    return read(value)


# What follows makes the switch -------------------------------------------------------------------------------------


def decided(test: Symbol, blocks: Sequence[Callable[[], list[Any]]], names: Sequence[str]) -> list[Any]:
    """The values of the block that the test picks (0 if it is false); places that blocks write to are written.

    Where one block ends with an error of the user's, the graph requires that the test picks the other.
    """
    paths: list[Path] = []
    for picked in (True, False):  # what ends with an error is most often under the test, and the rest is traced once
        path = _traced(f"branch{int(picked)}", blocks[picked], assuming(test, picked))
        if path.error is not None:
            return _required(test, not picked, blocks[not picked], path.graph, path.error)
        paths.insert(0, path)
    places = list({key: place for path in paths for key, (place, _) in path.writes.items()}.values())
    merge = Merge(paths)
    for i, name in enumerate(names):
        merge.add(name, [path.values[i] for path in paths])
    overwritten = [(place, value) for path in paths for place, value in path.writes.values() if _is_in_place(place)]
    places = [place for place in places if not _is_in_place(place)]
    for place in places:
        merge.add(place.label, [_left(path, place) for path in paths])
    results = merge.results(test)
    for place, value in zip(places, results[len(names) :], strict=True):
        write(place, value if isinstance(place, Variable) else read(value))
    still_overwritten(overwritten)
    return results[: len(names)]


def _required(test: Symbol, picked: bool, block: Block, ending: Subgraph, error: BaseException) -> Any:
    """What a block gives that is traced where the branch stands, for on the other side is nothing but an error."""
    if any(node.has_effect for node in ending.builder.nodes):
        refuse_raised(error)
    require(test, picked, error)
    errors: list[BaseException] = []
    with assuming(test, picked):
        result = reached(block, errors)
    if errors:
        refuse_raised(errors[0])
    return result


def _is_in_place(place: WritePlace) -> bool:
    return isinstance(place, Overwriting)


def _traced(name: str, block: Callable[[], list[Any]], assumption: assuming) -> Path:
    values: list[Any] = []
    errors: list[BaseException] = []
    writes: dict[Any, tuple[WritePlace, Any]] = {}
    region = Region()

    def body(_: list[Any]) -> None:
        with region, assumption:
            try:
                values.extend(readable(settled(value)) for value in reached(block, errors))
            finally:
                writes.update(region.undo(readable))

    graph = Subgraph(name, body, [])
    return Path(graph, values, region, writes, errors[0] if errors else None)


def reached(block: Callable[[], Any], errors: list[BaseException] | None = None) -> Any:
    """What a block gives that only the run knows to be reached.

    An error that the user's code raises is put into `errors`, and the block gives nothing. Others are refused, and so
    are all where there is no such list.
    """
    try:
        return block()
    except GraphError:
        raise
    except RecursionError:
        refuse("a function calls itself until a value says stop; write a loop")
    except (Exception, SystemExit) as error:  # noqa: BLE001  (whatever the user's code raises)
        if errors is None or not is_raised_by_the_graph(error):
            refuse_raised(error)
        errors.append(error.with_traceback(None))
        return ()


def _left(path: Path, place: WritePlace) -> Any:
    """What a place holds at the end of a path."""
    return path.writes[place.key][1] if place.key in path.writes else readable_after(place.get(), path.writes)
