"""Values that only the run knows, and variables that only some paths set.

The order: stand-ins in variables (`Unset`, `Partly`, `Differing`), questions about values, `PathFacts` (on the path of
a branch its test has a known value), and identity. Only the run knows which tensor or object a branch, a loop or a sort
has chosen. So `is` and id() of such a value are refused, and `==`, keys and `in` where its class compares and hashes by
identity.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, NoReturn, TypeGuard

import numpy as np

from graphs import promotion
from graphs.blocks import Block, Table, enter
from graphs.errors import ControlFlowError, ShapeError, locate
from graphs.ir import Node
from graphs.op import RuleTable
from graphs.ops.elementwise import logical_not, not_equal
from graphs.ops.movement import astype, reshape
from static.convert.stage.conversion import class_attribute, part
from static.trace.symbol import Symbol
from static.trace.tracing import current
from static.trace.views import decided_value


def refuse(message: str) -> NoReturn:
    """Raise ControlFlowError at the user's line, and again at the end of the trace, so that no `except` hides it."""
    error = ControlFlowError(locate(message))
    builder = current()
    if builder is not None:
        builder.refuse(error)
    raise error


class Unset:
    """Stands in a variable that is not set."""

    def __init__(self, name: str) -> None:
        self.name = name

    def read(self) -> NoReturn:
        """Raise UnboundLocalError, as Python does."""
        raise UnboundLocalError(f"cannot access local variable {self.name!r} where it is not associated with a value")


class Partly:
    """Stands in a variable that only some paths set; at run time `test` tells whether it is set."""

    def __init__(self, name: str, value: Any, test: Any = False) -> None:
        self.name, self.value, self.test = name, value, test

    def is_set(self) -> bool:
        """Whether the variable is set where this is traced."""
        return is_symbol(self.test) and known_value(self.test) is True

    def read(self) -> Any:
        """Return the value where an enclosing test ensures that it is set. Raises ControlFlowError elsewhere."""
        if self.is_set():
            return self.value
        refuse(f"{self.name!r} is not set on every path, and only the run knows which is taken; set it before")


class Differing:
    """Stands in a variable whose values on different paths no graph can merge."""

    def __init__(self, why: str) -> None:
        self.why = why

    def read(self) -> NoReturn:
        """Raise ControlFlowError with the reason."""
        refuse(self.why)


Stand = Unset | Partly | Differing


def read(value: Any) -> Any:
    """Return the value of a variable.

    Raises UnboundLocalError, or ControlFlowError where only the run knows if it is set.
    """
    return value.read() if isinstance(value, Stand) else value


def plain(value: Any) -> Any:
    """Return the value that a variable has where it is set."""
    return value.value if isinstance(value, Partly) else value


def settle_value(value: Any) -> Any:
    """Return the value of a variable, resolved where the traced path tells that it is set, or which bool it is."""
    test = value.test if isinstance(value, Partly) else value
    outcome = known_value(test) if is_symbol(test) and test.weak else None
    if outcome is None or test is value:
        return value if outcome is None else outcome
    return value.value if outcome else Unset(value.name)


def unset(name: str) -> Unset:
    """Return the stand-in for a variable that is not set yet."""
    return Unset(name)


def returned_value(value: Any) -> Any:
    """Return a function's result: None where it ends without a return."""
    return None if isinstance(value, Unset) else read(value)


def is_symbol(value: Any) -> TypeGuard[Symbol]:
    """Whether only the run knows a value."""
    return isinstance(value, Symbol)


def is_number(value: Any) -> bool:
    """Whether a value is a Python number, or stands for one."""
    return promotion.is_scalar(value) or (isinstance(value, Symbol) and value.weak)


def is_tensor(value: Any) -> bool:
    """Whether a value is an array, a symbol, or a tensor of the dynamic engine."""
    return isinstance(value, (Symbol, np.ndarray, np.generic)) or hasattr(type(value), "captured_array")


def weak(symbol: Symbol) -> Symbol:
    """Return the symbol as a Python number, which takes the dtype of the tensors beside it."""
    return Symbol(symbol.builder, symbol.node, weak=True)


def truth(value: Symbol) -> Symbol:
    """Return the bool that Python's `if` makes of a value. Raises ShapeError for several elements."""
    if any(size != 1 for size in value.shape):
        raise ShapeError(locate(f"if: the truth of {value.node.spec} is ambiguous; use any() or all()"))
    scalar = reshape(value, ()) if value.shape else value
    return weak(scalar if scalar.dtype == np.bool_ else not_equal(scalar, 0))


def settle_test(test: Any) -> Any:
    """Return a test, as a bool where it follows from constants and from small tensors that the function reads."""
    if not is_symbol(test) or any(size != 1 for size in test.shape):
        return test
    value = decided_value(test)
    return test if value is None else bool(value)


def negate(value: Any) -> Any:
    """Return `not value`."""
    return weak(logical_not(truth(value))) if is_symbol(value) else not value


def describe_value(value: Any) -> str:
    """Return a short description of a value for a message."""
    if is_tensor(value) and not is_number(value):
        return f"a tensor {np.dtype(value.dtype).name}{list(value.shape)}"
    if is_symbol(value):
        return f"a number ({value.dtype.name})"
    if isinstance(value, Unset):
        return "not set"
    if isinstance(value, (list, tuple, dict, set)):
        return f"a {type(value).__name__} of {len(value)}"
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


Fact = tuple[Node, bool]


class PathFacts:
    """Facts that hold where this is traced: a set for each enclosing branch."""

    def __init__(self) -> None:
        self.by_branch: Table[frozenset[Fact]] = {}
        self.required: set[Fact] = set()


class assuming(Block):  # noqa: N801
    """Inside the block a test has this value, and its operands have the values that follow."""

    def __init__(self, test: Symbol, value: bool) -> None:
        self._facts = frozenset(_following(test.node, value))

    def __enter__(self) -> None:
        enter(part(PathFacts).by_branch, self.hold(), self._facts)


def known_value(test: Symbol) -> bool | None:
    """Return the value that a test is known to have where this is traced, or None."""
    facts = part(PathFacts)
    for holding in (*facts.by_branch.values(), facts.required):
        for value in (True, False):
            if (test.node, value) in holding:
                return value
    return None


def require(test: Symbol, value: bool) -> None:
    """Assume from here on that a test has this value, because the graph raises an error otherwise.

    Inside a branch or a loop nothing is assumed of an outer test, since the check there may not run.
    """
    if test.builder is current():
        part(PathFacts).required.update(_following(test.node, value))


def _following(node: Node, value: bool) -> Iterator[Fact]:
    """Yield a fact and all facts that follow from it."""
    yield node, value
    yield from _FOLLOWING[node.op](node, value)


_FOLLOWING: RuleTable[Callable[[Node, bool], Iterator[Fact]]] = RuleTable(
    "what a truth implies", otherwise=lambda *_: iter(())
)


@_FOLLOWING.for_op("logical_not")
def _facts_of_not(node: Node, value: bool) -> Iterator[Fact]:
    yield from _following(node.inputs[0], not value)


@_FOLLOWING.for_op("logical_and")
def _facts_of_both(node: Node, value: bool) -> Iterator[Fact]:
    for operand in node.inputs if value else ():
        yield from _following(operand, True)


@_FOLLOWING.for_op("logical_or")
def _of_neither(node: Node, value: bool) -> Iterator[Fact]:
    for operand in () if value else node.inputs:
        yield from _following(operand, False)


@_FOLLOWING.for_op("where")
def _of_choice(node: Node, value: bool) -> Iterator[Fact]:
    """Yield the facts of `a and b` (b where a holds, else a) or `a or b` (a where a holds, else b)."""
    test, then, otherwise = node.inputs
    if (value and otherwise is test) or (not value and then is test):
        yield from _following(test, value)
        yield from _following(then if value else otherwise, value)


@_FOLLOWING.for_op("part")
def _of_branches(node: Node, value: bool) -> Iterator[Fact]:
    if "branches" in node.inputs[0].attrs:
        taken = _fact_of_switch(node.inputs[0], node.attrs["number"], value)
        if taken is not None:
            yield from _following(*taken)


def _fact_of_switch(switch: Node, number: int, value: bool) -> Fact | None:
    """Return the fact about a switch's test that a result implies: a branch that cannot give it was not taken."""
    test = switch.inputs[0].inputs[0] if switch.inputs[0].op is astype else switch.inputs[0]
    for taken, branch in enumerate(switch.attrs["branches"]):
        output = branch.outputs[number]
        if output.is_constant:
            result: bool | None = bool(output.attrs["value"])
        else:
            inside = output in branch.inputs and switch.inputs[1 + branch.inputs.index(output)] is test
            result = bool(taken) if inside else None
        if result is not None and result != value:
            return test, not taken
    return None


_CONTAINERS = (list, tuple, dict, set, frozenset, deque)
_TAKING = frozenset(["append", "appendleft", "extend", "insert", "sort", "reverse"])  # they compare nothing by identity


class ChosenValues:
    """Values that stand for one of several; only the run knows which one."""

    def __init__(self) -> None:
        self.by_id: dict[int, Any] = {}  # alive, so that the id stays theirs


def mark_chosen(value: Any) -> Any:
    """Return a value, marked as one that stands for one of several."""
    part(ChosenValues).by_id[id(value)] = value
    return value


def is_chosen(value: Any) -> bool:
    """Whether only the run knows which of several values this is."""
    return id(value) in part(ChosenValues).by_id


def same(left: Any, right: Any) -> bool:
    """Return `left is right`. Raises ControlFlowError where only the run knows."""
    if left is right:
        return True
    if is_number(left) and is_number(right) and (is_symbol(left) or is_symbol(right)):
        refuse("`is` asks for a number that only the run knows; write ==")
    if (is_chosen(left) or is_chosen(right)) and _may_be_one(left, right):
        _refuse("is")
    return False


def not_same(left: Any, right: Any) -> bool:
    """Return `left is not right`."""
    return not same(left, right)


def identity_of(value: Any) -> int:
    """Return `id(value)`. Raises ControlFlowError where only the run knows."""
    if is_chosen(value) or (is_symbol(value) and value.weak):
        _refuse("id()")
    return id(value)


def check_compared(left: Any, right: Any) -> None:
    """Raise ControlFlowError for `==` that would compare a chosen value by identity."""
    if not part(ChosenValues).by_id:
        return
    for value, beside in ((left, right), (right, left)):
        is_whole = is_chosen(value) and not isinstance(value, _CONTAINERS)
        if (type(beside) is type(value) if is_whole else isinstance(beside, _CONTAINERS)) and _by_identity(value):
            _refuse("==")


def check_key(value: Any) -> None:
    """Raise ControlFlowError for a key, or a member of a set, that is a chosen value hashed by identity."""
    if part(ChosenValues).by_id and _by_identity(value):
        _refuse("a key")


def check_called(f: Any, args: tuple[Any, ...]) -> None:
    """Raise ControlFlowError for a container's function that compares a chosen value by identity."""
    if not part(ChosenValues).by_id:
        return
    owner = getattr(f, "__self__", None)
    if isinstance(owner, _CONTAINERS) and f.__name__ not in _TAKING:
        looked_at = (owner, *args) if f.__name__ in ("index", "count", "remove") else args
    elif f is hash or (isinstance(f, type) and issubclass(f, (set, frozenset, dict))):
        looked_at = args
    else:
        return
    if any(map(_by_identity, looked_at)):
        _refuse(f"{f.__name__}()")


def _may_be_one(left: Any, right: Any) -> bool:
    return (is_tensor(left) and is_tensor(right)) or type(left) is type(right)


def _by_identity(value: Any) -> bool:
    """Whether a value is, or holds, a chosen value that is compared by identity."""
    return any(
        is_chosen(held) and class_attribute(type(held), "__eq__") is vars(object)["__eq__"] for held in parts(value)
    )


def parts(value: Any) -> Iterator[Any]:
    """Yield a value, and all values inside Python containers in it."""
    waiting, seen = [value], set[int]()
    while waiting:
        held = waiting.pop()
        yield held
        if type(held) in _CONTAINERS and id(held) not in seen:
            seen.add(id(held))
            waiting += (*held, *held.values()) if isinstance(held, dict) else held


def _refuse(what: str) -> None:
    refuse(
        f"{what} asks which one a value is that a branch, a loop or a sort has chosen, and only the run knows; "
        "choose a number beside it, and compare that"
    )
