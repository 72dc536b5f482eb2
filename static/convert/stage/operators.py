"""The table of operators, by the names that rewritten code uses.

Python's operators and comparisons come first: methods of a user's class are converted, and lists that they make are
new. Then those that first ask for a truth value.
"""

from __future__ import annotations

import inspect
import operator
from collections import deque
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

from graphs import capture
from static.convert.stage import branches, calls, conversion, implicit, loops, places, streams, unknown
from static.convert.stage.branches import any_of, both
from static.convert.stage.builtins import REPLACED, check_known
from static.convert.stage.calls import call
from static.convert.stage.conversion import special
from static.convert.stage.effects import check_quiet, check_read, check_write
from static.convert.stage.implicit import loop_items, truth
from static.convert.stage.overwriting import update_in_place
from static.convert.stage.places import check_takes, is_conditional, journal_container, note_new
from static.convert.stage.unknown import check_compared, check_key, is_symbol, negate, not_same, refuse, same
from static.trace.changes import fit_dtype
from static.trace.symbol import Symbol

Operator = Callable[[Any, Any], Any]
_OPERATORS: dict[str, tuple[Operator, Operator, str]] = {
    "Add": (operator.add, operator.iadd, "add"),
    "Sub": (operator.sub, operator.isub, "sub"),
    "Mult": (operator.mul, operator.imul, "mul"),
    "Div": (operator.truediv, operator.itruediv, "truediv"),
    "FloorDiv": (operator.floordiv, operator.ifloordiv, "floordiv"),
    "Mod": (operator.mod, operator.imod, "mod"),
    "Pow": (operator.pow, operator.ipow, "pow"),
    "MatMult": (operator.matmul, operator.imatmul, "matmul"),
    "BitAnd": (operator.and_, operator.iand, "and"),
    "BitOr": (operator.or_, operator.ior, "or"),
    "BitXor": (operator.xor, operator.ixor, "xor"),
    "LShift": (operator.lshift, operator.ilshift, "lshift"),
    "RShift": (operator.rshift, operator.irshift, "rshift"),
}


def by_method(name: str, value: Any, other: Any) -> Any:
    """Return the result of an operator's method of a user's class; NotImplemented where there is none."""
    method = inspect.getattr_static(type(value), f"__{name}__", None)
    return call(method)(value, other) if _is_the_users(method) else NotImplemented


def arithmetic(name: str, left: Any, right: Any) -> Any:
    """Return `left + right`, or another binary operator by its name."""
    _check_sequences(name, left, right)
    plain, _, method = _OPERATORS[name]
    returned = by_method(method, left, right)
    if returned is NotImplemented and type(right) is not type(left):
        returned = by_method(f"r{method}", right, left)
    return note_new(plain(left, right)) if returned is NotImplemented else returned


def augmented_assignment(name: str, value: Any, other: Any) -> Any:
    """Return `value += other`, or another in-place operator: a list changes, and a tensor under all its names."""
    _check_sequences(name, value, other)
    plain, in_place, method = _OPERATORS[name]
    returned = by_method(f"i{method}", value, other)
    if returned is not NotImplemented:
        return returned
    if _is_the_users(inspect.getattr_static(type(value), f"__{method}__", None)):
        return arithmetic(name, value, other)
    journal_container(value)
    if hasattr(type(value), f"__i{method}__"):
        check_write(value)
    step = capture.step_trace()
    is_of_the_graph = type(value) is Symbol and not (step is not None and step.follows(value))
    result = (plain if is_of_the_graph else in_place)(value, other)
    is_new = is_symbol(value) and not value.weak and result is not value
    return update_in_place(value, result) if is_new else result


def augmented_item(name: str, container: Any, key: Any, part: Any, other: Any) -> None:
    """Do `container[key] += other`, or another in-place operator, where the part `container[key]` has been read.

    A part of a tensor is computed out of place, and the tensor is changed: so its other names show that, also where it
    is the state of a loop.
    """
    if type(container) is Symbol and type(part) is Symbol:
        new = fit_dtype(arithmetic(name, part, other), part)
    else:
        new = augmented_assignment(name, part, other)
    implicit.set_item(container, key, new)


def _check_sequences(name: str, left: Any, right: Any) -> None:
    """Raise ControlFlowError for a length that only the run knows, and for a text that shows such a value."""
    if isinstance(left, (str, bytes)) and name == "Mod":
        check_known(right)
        check_read(right)
    for sequence, number in ((left, right), (right, left)):
        if isinstance(sequence, (list, tuple, str, bytes, bytearray, deque)) and is_symbol(number) and number.weak:
            refuse(
                f"a {type(sequence).__name__} is repeated so often as only the run knows, or meets a number that only "
                "the run knows; make it a tensor"
            )


def _is_the_users(method: Any) -> bool:
    return isinstance(method, FunctionType) and conversion.is_the_users(method)


# Comparisons ----------------------------------------------------------------------------------------------------------


_CONTAINERS = (list, tuple, dict, set, frozenset, deque)


_STRICT = {"lt": operator.lt, "le": operator.lt, "gt": operator.gt, "ge": operator.gt}


def _in_turn(plain: Callable[[Any, Any], Any], strict: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
    """Compare two sequences: by the first parts that differ, or by length where none do."""
    result: Any = plain(len(left), len(right))
    for part, other in reversed(list(zip(left, right, strict=False))):
        compared = _ORDERS[strict](part, other)
        result = any_of(compared, lambda part=part, other=other, rest=result: both(equal(part, other), lambda: rest))  # type: ignore[misc]
    return result


def _comparison(plain: Callable[[Any, Any], Any], method: str, reflected: str) -> Callable[[Any, Any], Any]:
    def compare(left: Any, right: Any) -> Any:
        if isinstance(left, _CONTAINERS) and isinstance(right, _CONTAINERS):  # Python compares the items
            check_read(left)
            check_read(right)
            if type(left) is type(right) and isinstance(left, (list, tuple)) and method in _STRICT:
                return _in_turn(plain, _STRICT[method], left, right)
        returned = by_method(method, left, right)
        if returned is NotImplemented and type(right) is not type(left):
            returned = by_method(reflected, right, left)
        return plain(left, right) if returned is NotImplemented else returned

    return compare


less = _comparison(operator.lt, "lt", "gt")
less_equal = _comparison(operator.le, "le", "ge")
greater = _comparison(operator.gt, "gt", "lt")
greater_equal = _comparison(operator.ge, "ge", "le")
_ORDERS = {operator.lt: less, operator.gt: greater}
_equal = _comparison(operator.eq, "eq", "eq")
_not_equal = _comparison(operator.ne, "ne", "ne")


def equal(left: Any, right: Any) -> Any:
    """Return `left == right`; a value that only the run knows never equals None."""
    if _beside_none(left, right):
        return False
    check_compared(left, right)
    return _equal(left, right)


def not_equal(left: Any, right: Any) -> Any:
    """Return `left != right`."""
    if _beside_none(left, right):
        return True
    check_compared(left, right)
    return _not_equal(left, right)


def _beside_none(left: Any, right: Any) -> bool:
    return (is_symbol(left) and right is None) or (is_symbol(right) and left is None)


def contains(value: Any, container: Any) -> Any:
    """Return `value in container`."""
    method = special(container, "__contains__")
    if method is not None:
        return truth(call(method)(container, value))
    container = loop_items(container) if special(container, "__iter__") is not None else container
    check_takes(container)
    if not isinstance(container, (list, tuple)) and not (is_symbol(value) and isinstance(container, range)):
        check_key(value)
        check_quiet(value)
        return value in container
    result: Any = False
    for item in container:
        result = any_of(result, lambda item=item: True if item is value else equal(item, value))  # type: ignore[misc]
    return result


def not_contained(value: Any, container: Any) -> Any:
    """Return `value not in container`."""
    return negate(contains(value, container))


_BY_NAME: dict[str, Callable[[Any, Any], Any]] = {
    "equal": equal,
    "not_equal": not_equal,
    "same": same,
    "not_same": not_same,
    "contained": contains,
    "not_contained": not_contained,
    "less": less,
    "less_equal": less_equal,
    "greater": greater,
    "greater_equal": greater_equal,
}


def chain(names: Sequence[str], left: Any, right: Any, *rest: Callable[[], Any]) -> Any:
    """Return `left < right < rest[0]() ...`, evaluating each operand once, and no more of them than Python does."""
    first = _BY_NAME[names[0]](left, right)
    return both(first, lambda: chain(names[1:], right, rest[0](), *rest[1:])) if rest else first


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
    arithmetic=arithmetic,
    augmented=augmented_assignment,
    augmented_item=augmented_item,
    both=implicit.both,
    born=places.note_object,
    branch=branch,
    call=calls.call,
    catching=branches.catching,
    chain=chain,
    choose=choose,
    class_body=class_body,
    condition=condition,
    consumed=consume,
    contained=contains,
    converted=calls.convert_nested,
    delete_attribute=implicit.delete_attribute,
    delete_item=implicit.delete_item,
    equal=equal,
    for_loop=for_loop,
    greater=greater,
    greater_equal=greater_equal,
    item=implicit.item,
    iterated=iter_items,
    less=less,
    less_equal=less_equal,
    managed=implicit.context_manager,
    made=implicit.fresh_container,
    negated=logical_not,
    not_contained=not_contained,
    not_equal=not_equal,
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
        object.__getattribute__: implicit.refuse_plain_read,
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
        operator.contains: lambda container, value: contains(value, container),
        operator.not_: logical_not,
        operator.truth: implicit.truth,
    }
)
