"""Branches: ordinary Python where the test is known, else a switch over all branches, traced.

Errors of the user's come first: which of them a graph can raise. Then come the operators (`branch`, `choose`, `both`,
`any_of`), `branch_values`, which traces the branches, and `Merge`, which merges the values that the branches leave.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

from graphs.blocks import Block as Handled
from graphs.blocks import Table, enter, innermost
from graphs.errors import GraphError, user_line
from graphs.ir import Node
from graphs.ops.control import switch_op
from graphs.ops.effects import require_op
from graphs.ops.elementwise import logical_not
from graphs.ops.movement import astype
from static.convert.stage import unknown
from static.convert.stage.conversion import part
from static.convert.stage.overwriting import (
    Overwriting,
    merge,
    readable,
    readable_after,
    still_overwritten,
    value_after,
)
from static.convert.stage.places import Region, Variable, WritePlace, freeze, journal, note_object, write
from static.convert.stage.trees import Joined, Leaf, MergedValue, StructureError, combine_values
from static.convert.stage.unknown import (
    Differing,
    Partly,
    Unset,
    assuming,
    is_number,
    is_symbol,
    mark_chosen,
    parts,
    plain,
    read,
    refuse,
    settle_test,
    settle_value,
    truth,
    weak,
)
from static.trace.control import Subgraph, building, choice, emit, finish_subgraphs, nodes_of
from static.trace.symbol import Symbol
from static.trace.tracing import static_key

_CAUGHT = (StopIteration, StopAsyncIteration, AttributeError, LookupError, TypeError)
"""Errors that Python itself catches where it loops, looks something up, or asks for a length."""


class RaisedError(NamedTuple):
    """An error that a user's statement has raised, its line, and why a graph cannot raise it ("": it can)."""

    error: BaseException
    line: str
    why_not: str


class RaisedErrors:
    """The errors that the user's statements have raised in this trace, and whether a handler around may catch more."""

    def __init__(self) -> None:
        self.errors: list[RaisedError] = []
        self.caught: Table[bool] = {}

    def of(self, error: BaseException) -> RaisedError | None:
        """Return the record of an error; None where no statement of the user's has raised it."""
        return next((raised for raised in self.errors if raised.error is error), None)


class catching(Handled):  # noqa: N801
    """The body of a `try` with handlers, or of a `with`: an error that is raised in it may be caught."""

    def __enter__(self) -> None:
        enter(part(RaisedErrors).caught, self.hold(), True)


def user_error(error: Any) -> Any:
    """Return the error of a `raise` statement, and record it as the user's."""
    made = error() if isinstance(error, type) and issubclass(error, BaseException) else error
    if isinstance(made, BaseException):
        part(RaisedErrors).errors.append(RaisedError(made, user_line(), _why_not(made)))
    return made


def fails(message: Any) -> NoReturn:
    """Raise the AssertionError of an `assert` whose test does not hold."""
    raise user_error(AssertionError() if message is None else AssertionError(message))


def exits(code: Any = None) -> NoReturn:
    """Do `sys.exit`: raise a SystemExit that is recorded as the user's."""
    raise user_error(SystemExit(code))


def is_raised_by_the_graph(error: BaseException) -> bool:
    """Whether a statement of the user's has raised an error, and the graph can raise it."""
    told = part(RaisedErrors).of(error)
    return told is not None and not told.why_not


def refuse_raised(error: BaseException) -> NoReturn:
    """Raise ControlFlowError for an error that the graph cannot raise."""
    told = part(RaisedErrors).of(error)
    text = "" if _holds_unknown(error) else f" ({error})"
    why = f", and {told.why_not}" if told and told.why_not else ""
    refuse(
        f"{type(error).__name__} is raised where only the run knows whether it is reached{text}{why}; return a value "
        "that says so"
    )


def require(test: Symbol, value: bool, error: BaseException) -> None:
    """Make the run raise an error unless the test has this value."""
    told = part(RaisedErrors).of(error)
    attrs = {"label": f"{type(error).__name__}: {error}", "line": told.line if told else "", "error": error}
    require_op.apply((test if value else logical_not(test),), attrs)
    unknown.require(test, value)


def _why_not(error: BaseException) -> str:
    """Return why a graph cannot raise an error, "" where it can."""
    if innermost(part(RaisedErrors).caught, False):
        return "a `try` or `with` around it may catch it"
    if isinstance(error, _CAUGHT):
        return "Python itself catches such an error where it loops or looks something up"
    if _holds_unknown(error):
        return "it holds a value that only the run knows"
    try:
        copy.copy(error)
    except Exception:  # noqa: BLE001  (whatever the class raises)
        return f"{type(error).__name__} cannot be made again from its `args`"
    return ""


def _holds_unknown(error: BaseException) -> bool:
    return any(map(is_symbol, parts([*error.args, *vars(error).values()])))


# Branches -------------------------------------------------------------------------------------------------------------


Block = Callable[[], Any]


class Variables(NamedTuple):
    """The variables that blocks may set: their names, and functions that get and set all of them.

    `lent` are those that inner functions may set as well: the journal knows them as places.
    """

    names: tuple[str, ...]
    get: Callable[[], tuple[Any, ...]]
    put: Callable[[Sequence[Any]], None]
    lent: tuple[str, ...] = ()

    def journal(self) -> None:
        """Note the values of the lent variables before the block sets them, so that they can be restored."""
        for number, name in enumerate(self.names):
            if name in self.lent:
                journal(Variable(self, number))


NOTHING = Variables((), tuple, lambda _: None)


def branch(test: Any, then: Block, otherwise: Block, variables: Variables, live: Sequence[str]) -> None:
    """Do `if test: then() else: otherwise()`; the variables in `live` are read later."""
    test = settle_test(test)
    if not is_symbol(test):
        (then if test else otherwise)()
        return
    before = variables.get()
    kept = [i for i, name in enumerate(variables.names) if name in live]

    def run(block: Block) -> Callable[[], list[Any]]:
        def trace_block() -> list[Any]:
            variables.put(before)
            variables.journal()
            block()
            after = variables.get()
            return [after[i] for i in kept]

        return trace_block

    try:
        merged = branch_values(truth(test), [run(otherwise), run(then)], [repr(variables.names[i]) for i in kept])
    finally:
        variables.put(before)
    after = list(before)
    for i, value in zip(kept, merged, strict=True):
        after[i] = value
    variables.put(after)


def choose(test: Any, then: Block, otherwise: Block) -> Any:
    """Return `then() if test else otherwise()`."""
    test = settle_test(test)
    if not is_symbol(test):
        return then() if test else otherwise()
    (value,) = branch_values(truth(test), [lambda: [otherwise()], lambda: [then()]], ["the value"])
    return read(value)


def both(first: Any, second: Block) -> Any:
    """Return `first and second()`."""
    test = settle_test(first)
    if not is_symbol(test):
        return second() if test else first
    test = truth(first)
    first = test if first.dtype == test.dtype else first
    (value,) = branch_values(test, [lambda: [first], lambda: [second()]], ["the value of `and`"])
    return read(value)


def any_of(first: Any, second: Block) -> Any:
    """Return `first or second()`."""
    test = settle_test(first)
    if not is_symbol(test):
        return first if test else second()
    test = truth(first)
    first = test if first.dtype == test.dtype else first
    (value,) = branch_values(test, [lambda: [second()], lambda: [first]], ["the value of `or`"])
    return read(value)


# What follows makes the switch -------------------------------------------------------------------------------------


def branch_values(test: Symbol, blocks: Sequence[Callable[[], list[Any]]], names: Sequence[str]) -> list[Any]:
    """Return the values of the block that the test picks (0 if it is false), and write the places that blocks write.

    Where one block ends with an error of the user's, the graph requires that the test picks the other one.
    """
    paths: list[Path] = []
    for picked in (True, False):  # an error is mostly under the test: the rest is traced once
        path = _trace_block(f"branch{int(picked)}", blocks[picked], assuming(test, picked))
        if path.error is not None:
            return _required_block(test, not picked, blocks[not picked], path.graph, path.error)
        paths.insert(0, path)
    places = list({key: place for path in paths for key, (place, _) in path.writes.items()}.values())
    merge = Merge(paths)
    for i, name in enumerate(names):
        merge.add(name, [path.values[i] for path in paths])
    overwritten = [(place, value) for path in paths for place, value in path.writes.values() if _is_in_place(place)]
    places = [place for place in places if not _is_in_place(place)]
    for place in places:
        merge.add(place.label, [_final_value(path, place) for path in paths])
    results = merge.results(test)
    for place, value in zip(places, results[len(names) :], strict=True):
        write(place, value if isinstance(place, Variable) else read(value))
    still_overwritten(overwritten)
    return results[: len(names)]


def _required_block(test: Symbol, picked: bool, block: Block, ending: Subgraph, error: BaseException) -> Any:
    """Return the values of a block traced in place of the branch, since the other side is nothing but an error."""
    if any(node.has_effect for node in ending.builder.nodes):
        refuse_raised(error)
    require(test, picked, error)
    errors: list[BaseException] = []
    with assuming(test, picked):
        result = reached_block(block, errors)
    if errors:
        refuse_raised(errors[0])
    return result


def _is_in_place(place: WritePlace) -> bool:
    return isinstance(place, Overwriting)


def _trace_block(name: str, block: Callable[[], list[Any]], assumption: assuming) -> Path:
    values: list[Any] = []
    errors: list[BaseException] = []
    writes: dict[Any, tuple[WritePlace, Any]] = {}
    region = Region()

    def body(_: list[Any]) -> None:
        with region, assumption:
            try:
                values.extend(readable(settle_value(value)) for value in reached_block(block, errors))
            finally:
                writes.update(region.undo(readable))

    graph = Subgraph(name, body, [])
    return Path(graph, values, region, writes, errors[0] if errors else None)


def reached_block(block: Callable[[], Any], errors: list[BaseException] | None = None) -> Any:
    """Return the result of a block that only the run knows to be reached.

    An error that the user's code raises is appended to `errors`, and the result is (). Other errors are refused, and
    all errors are where there is no such list.
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


def _final_value(path: Path, place: WritePlace) -> Any:
    """Return the value of a place at the end of a path."""
    return path.writes[place.key][1] if place.key in path.writes else readable_after(place.get(), path.writes)


class Path(NamedTuple):
    """A traced branch: its graph, the values that it leaves, the places that it has written, or its error."""

    graph: Subgraph
    values: list[Any]
    region: Region
    writes: dict[Any, tuple[WritePlace, Any]]
    error: BaseException | None = None


class Merge:
    """Merges the values of the paths of a switch: values that differ become its results, equal columns once."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = paths
        self._values: list[tuple[str, Sequence[Any], Differing | None]] = []
        self._columns: dict[Any, MergedValue] = {}

    def add(self, name: str, values: Sequence[Any]) -> None:
        """Add one more value, given for each path."""
        columns_before = len(self._columns)
        failed = next((value for value in values if isinstance(value, Differing)), None)
        try:
            if failed is None:
                self._combine(name, map(plain, values), self._column)
                if _missing(values):
                    self._combine(name, map(_is_set, values), self._column)
        except StructureError as error:
            for key in list(self._columns)[columns_before:]:
                del self._columns[key]
            failed = Differing(f"{error}; give it one structure, shape and dtype on every path")
        self._values.append((name, values, failed))

    def _column(self, name: str, values: Sequence[Any]) -> None:
        key = _key(values)
        if key not in self._columns:
            self._columns[key] = MergedValue(name, values)

    def results(self, test: Symbol) -> list[Any]:
        """Return each merged value, after the switch is made."""
        results = dict(zip(self._columns, self._switch_outputs(test), strict=True))

        def leaf(_: str, values: Sequence[Any]) -> Symbol:
            return results[_key(values)]

        return [failed or self._result(name, values, leaf) for name, values, failed in self._values]

    def _result(self, name: str, values: Sequence[Any], leaf: Leaf) -> Any:
        value = self._combine(name, map(plain, values), leaf, self._note_join)
        missing = _missing(values)
        if not missing or isinstance(value, Unset):
            return value
        return Partly(missing[0], value, self._combine(name, map(_is_set, values), leaf, self._note_join))

    def _combine(self, name: str, values: Iterable[Any], leaf: Leaf, joined: Joined = lambda *_: None) -> Any:
        return combine_values(name, list(values), leaf, joined, self._values_left)

    def _values_left(self, values: Sequence[Any]) -> list[Any]:
        """Return the values as their paths have left them."""
        return [value_after(value, path.writes) for path, value in zip(self._paths, values, strict=True)]

    def _note_join(self, new: Any, values: Sequence[Any]) -> None:
        """Note a container made from several: nobody may change it, or them, unless each was made on its own path."""
        pairs = [pair for pair in zip(self._paths, values, strict=True) if not isinstance(pair[1], Unset)]
        mark_chosen(new)
        if isinstance(new, tuple):
            return
        if all(path.region.has_made(value) for path, value in pairs):
            note_object(new)
        else:
            for container in (new, *(value for _, value in pairs)):
                freeze(container)

    def _switch_outputs(self, test: Symbol) -> list[Symbol]:
        if not self._columns:
            return []
        columns = list(self._columns.values())
        for i, path in enumerate(self._paths):
            path.graph.give(lambda i=i: [column.typed(i) for column in columns])  # type: ignore[misc]
        graphs = [path.graph for path in self._paths]
        parts = _pick_outputs(test, graphs, len(columns))
        return [self._as_user_value(test, part, column) for part, column in zip(parts, columns, strict=True)]

    @staticmethod
    def _as_user_value(test: Symbol, result: Symbol, column: MergedValue) -> Symbol:
        """Return a result as user code holds it: a number, or a tensor that may be one of the paths' tensors."""
        if column.weak:
            return test if _is_the_test(column) else weak(result)
        merge(result, column.values, test)
        return mark_chosen(result)


def _missing(values: Sequence[Any]) -> list[str]:
    """Return the names of variables that some paths do not set."""
    return [value.name for value in values if isinstance(value, (Unset, Partly)) and value.name]


def _is_the_test(column: MergedValue) -> bool:
    """Whether a result is True where the test holds, and else False."""
    return column.values[0] is False and column.values[1] is True


def _is_set(value: Any) -> Any:
    """Return whether a variable is set on a path: a bool, or the symbol that tells it at run time."""
    return value.test if isinstance(value, Partly) else not isinstance(value, Unset)


def _key(values: Sequence[Any]) -> tuple[Any, ...]:
    """Return a key that tells the columns of results apart."""
    return tuple(
        [
            (id(value.node), value.weak) if is_symbol(value) else static_key(value) if is_number(value) else id(value)
            for value in values
        ]
    )


# In the graph --------------------------------------------------------------------------------------------------------


def _pick_outputs(test: Symbol, branches: Sequence[Subgraph], count: int) -> list[Symbol]:
    """Return the outputs of the branch that a test picks (0 if it is false): a switch, or `where` if none computes.

    To compute a few cheap ops on both sides would be slower than a switch, whose gradient computes one side too.
    """
    if not any(map(_computes, branches)):
        otherwise, then = ([_outside(branch, output) for output in branch.outputs] for branch in branches)
        return [choice(test, if_true, if_false) for if_true, if_false in zip(then, otherwise, strict=True)]
    graphs, captured = finish_subgraphs(*branches)
    sources = [*nodes_of([astype(test, np.int64)]), *captured]
    return emit(switch_op, sources, {"branches": tuple(graphs)}, count)


def _computes(branch: Subgraph) -> bool:
    return any(not node.is_source for node in branch.builder.nodes)


def _outside(branch: Subgraph, output: Node) -> Any:
    """Return the output of a branch as a value of the enclosing graph."""
    builder = building()
    if output.is_constant:
        return Symbol(builder, builder.constant(output.attrs["value"], output.attrs["dtype"]))
    outer = next(node for node, inside in branch.builder.captured.items() if inside is output)
    return Symbol(builder, outer)
