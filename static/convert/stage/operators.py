"""The operators by the names that rewritten code calls them by."""

from __future__ import annotations

from typing import Any

from static.convert.stage import arithmetic, branches, calls, comparing, loops, places, streams, unknown, writing
from static.convert.stage.builtins import shown
from static.convert.stage.unknown import is_symbol, refuse


def known(test: Any) -> Any:
    """The condition of a comprehension. Raises ControlFlowError where only the run knows it."""
    if is_symbol(test):
        refuse("only the run knows how many items a comprehension has; compute all, and choose with graphs.where")
    return test


def iterated(items: Any) -> Any:
    """What Python takes the items of."""
    loops.check_takes(items)
    return items


def asserted(test: Any, message: Any) -> None:
    """`assert test, message()`."""
    if is_symbol(test):
        refuse(
            "assert asks for what only the run knows, and a graph cannot raise; return the value, and check it after"
        )
    if not test:
        raise AssertionError(message())


def consumed(function: Any, *args: Any) -> Any:
    """A call of what takes the items of a generator, or tells whether it wants more."""
    return function(*args)


vars(calls.OPERATORS).update(
    any_of=branches.any_of,
    asserted=asserted,
    assigned=writing.assigned,
    attribute=writing.attribute,
    arithmetic=arithmetic.arithmetic,
    augmented=arithmetic.augmented,
    both=branches.both,
    born=places.born,
    branch=branches.branch,
    call=calls.call,
    chain=comparing.chain,
    choose=branches.choose,
    consumed=consumed,
    contained=comparing.contained,
    converted=calls.converted,
    delete_attribute=writing.delete_attribute,
    delete_item=writing.delete_item,
    equal=comparing.equal,
    for_loop=streams.for_each,
    greater=comparing.greater,
    greater_equal=comparing.greater_equal,
    item=writing.item,
    iterated=iterated,
    known=known,
    less=comparing.less,
    less_equal=comparing.less_equal,
    made=places.made,
    negated=unknown.negated,
    not_contained=comparing.not_contained,
    not_equal=comparing.not_equal,
    not_same=comparing.not_same,
    outer=writing.outer,
    owned=writing.owned,
    read=unknown.read,
    returned=unknown.returned,
    same=comparing.same,
    set_attribute=calls.set_attribute,
    set_item=writing.set_item,
    shown=shown,
    slice=slice,
    stream=streams.stream,
    tried_item=writing.tried_item,
    unset=unknown.unset,
    variables=branches.Variables,
    while_loop=loops.while_loop,
)
