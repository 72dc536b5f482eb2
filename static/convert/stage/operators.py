"""The table of operators, by the names that rewritten code uses, and those that first ask for a truth value."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from static.convert.stage import (
    arithmetic,
    branches,
    calls,
    implicit,
    loops,
    places,
    streams,
    unknown,
)
from static.convert.stage.builtins import REPLACED, check_known
from static.convert.stage.effects import check_quiet, check_read
from static.convert.stage.places import is_conditional
from static.convert.stage.unknown import is_symbol, refuse

Block = branches.Block


def branch(test: Any, then: Block, otherwise: Block, variables: branches.Variables, live: Sequence[str]) -> None:
    """Do `if test: then() else: otherwise()`."""
    branches.branch(implicit.truth_value(test), then, otherwise, variables, live)


def choose(test: Any, then: Block, otherwise: Block) -> Any:
    """Return `then() if test else otherwise()`."""
    return branches.choose(implicit.truth_value(test), then, otherwise)


def logical_not(value: Any) -> Any:
    """Return `not value`."""
    return unknown.negate(implicit.truth_value(value))


def while_loop(test: Block, body: Block, variables: branches.Variables) -> None:
    """Do `while test(): body()`."""
    loops.while_loop(lambda: implicit.truth_value(test()), body, variables)


def for_loop(items: Any, goes_on: Block, body: Callable[[Any], Any], variables: branches.Variables) -> None:
    """Do `for item in items: body(item)`."""
    streams.for_each(implicit.loop_items(items), goes_on, body, variables)


def stream(source: Any, element: Callable[[Any], Any], test: Callable[[Any], Any] | None, nested: bool = False) -> Any:
    """Return the stream of a generator expression."""
    return streams.stream(implicit.loop_items(source), element, test, nested)


def condition(test: Any) -> Any:
    """Return the condition of a comprehension. Raises ControlFlowError where only the run knows it."""
    test = implicit.truth_value(test)
    if is_symbol(test):
        refuse("only the run knows how many items a comprehension has; compute all, and choose with graphs.where")
    return test


def iter_items(items: Any) -> Any:
    """Return the items that Python takes from an iterable."""
    items = implicit.loop_items(items)
    places.check_takes(items)
    return items


def check_assertion(test: Any, message: Any) -> None:
    """Do `assert test, message()`."""
    branches.branch(implicit.truth_value(test), lambda: None, lambda: branches.fails(message()), branches.NOTHING, ())


def shown_quietly(value: Any) -> Any:
    """Return a value that becomes text. Raises ControlFlowError where only the run knows it."""
    check_quiet(value)
    return check_known(value)


def consume(function: Any, *args: Any) -> Any:
    """Call a generator's consumer, or the function that tells whether it wants more."""
    return function(*args)


def is_instance(value: Any, kinds: Any) -> bool:
    """Return `isinstance(value, kinds)`."""
    check_read(kinds)
    return bool(REPLACED[isinstance](value, kinds))


def class_body(name: str) -> None:
    """Refuse a class statement with an active body where only the run knows if it is reached.

    Python runs that body, and nothing would undo its effects.
    """
    if is_conditional():
        refuse(f"the body of class {name} runs where only the run knows whether that is reached; define it before")


vars(calls.OPERATORS).update(
    any_of=implicit.any_of,
    asserted=check_assertion,
    assigned=places.assign_expression,
    attribute=implicit.attribute,
    arithmetic=arithmetic.arithmetic,
    augmented=arithmetic.augmented_assignment,
    both=implicit.both,
    born=places.note_object,
    branch=branch,
    call=calls.call,
    catching=branches.catching,
    chain=arithmetic.chain,
    choose=choose,
    class_body=class_body,
    condition=condition,
    consumed=consume,
    contained=arithmetic.contains,
    converted=calls.convert_nested,
    delete_attribute=implicit.delete_attribute,
    delete_item=implicit.delete_item,
    equal=arithmetic.equal,
    for_loop=for_loop,
    greater=arithmetic.greater,
    greater_equal=arithmetic.greater_equal,
    item=implicit.item,
    iterated=iter_items,
    less=arithmetic.less,
    less_equal=arithmetic.less_equal,
    managed=implicit.context_manager,
    made=implicit.fresh_container,
    negated=logical_not,
    not_contained=arithmetic.not_contained,
    not_equal=arithmetic.not_equal,
    not_same=unknown.not_same,
    outer=places.outer,
    owned=places.own_variables,
    raised=branches.user_error,
    read=unknown.read,
    returned=unknown.returned_value,
    same=unknown.same,
    set_attribute=implicit.set_attribute,
    set_item=implicit.set_item,
    shown=shown_quietly,
    signed=implicit.unary,
    slice=slice,
    spread=implicit.spread,
    stream=stream,
    tried_item=implicit.tried_item,
    unset=unknown.unset,
    variables=branches.Variables,
    while_loop=while_loop,
)

calls.IMPLICIT.update(
    {
        isinstance: is_instance,
        setattr: implicit.set_attribute,
        delattr: implicit.delete_attribute,
        object.__getattribute__: implicit.attribute_plainly,
        object.__setattr__: implicit.set_attribute_plainly,
        object.__delattr__: places.delete_attribute,
        getattr: implicit.attribute_or,
        hasattr: implicit.has_attribute,
        len: implicit.length,
        bool: implicit.truth,
        id: unknown.identity_of,
        operator.is_: unknown.same,
        operator.is_not: unknown.not_same,
        operator.getitem: implicit.item,
        operator.setitem: implicit.set_item,
        operator.delitem: implicit.delete_item,
        operator.contains: lambda container, value: arithmetic.contains(value, container),
        operator.not_: logical_not,
        operator.truth: implicit.truth,
    }
)
