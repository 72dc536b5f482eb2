"""Dispatch by the type of the value: an array runs the kernel, a Tensor is recorded, a Symbol appends a node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from graphs import promotion
from graphs.blocks import Block, Table, enter
from graphs.dims import Dim, is_symbolic
from graphs.errors import DTypeError, GraphError, LinAlgError, OutOfRangeError, ShapeError, add_context
from graphs.spec import TensorSpec, describe, spec_of

Attrs = dict[str, Any]


class Operation(Protocol):
    """The attributes of an `Op` that this module uses; `Op` itself is defined in a module that imports this one."""

    name: str
    kernel: Callable[..., Any]
    infer: Callable[..., TensorSpec]
    infix: str
    effect: bool


Interpreter = Callable[[Any, Sequence[Any], Attrs], Any]  # of an `Op`, its inputs and its attributes
Observer = Callable[[Any, Sequence[Any], Attrs, Any], None]  # and its result

interpreters: dict[type, Interpreter] = {}
observers: Table[Observer] = {}
# While this table has entries, shortcuts are off: ops go to the interpreter, and kernels to `execute`. Each entry
# wraps the interpreter that ops on tensors go to.
detours: Table[Callable[[Interpreter], Interpreter]] = {}
_tracers: list[Callable[..., Any]] = []


compounds: set[type] = set()
"""Types of values that hold several tensors, as a complex number holds two: their interpreter comes first."""


def interpret(kind: type, interpreter: Interpreter, *, compound: bool = False) -> None:
    """Let `interpreter(op, args, attrs)` handle ops on a value of a type; a `compound` one holds several tensors."""
    interpreters[kind] = interpreter
    if compound:
        compounds.add(kind)


def by_detours(interpreter: Interpreter) -> Interpreter:
    """Wrap the interpreter in every detour."""
    for detour in tuple(detours.values()):
        interpreter = detour(interpreter)
    return interpreter


def trace_control(source: Callable[..., Any]) -> None:
    """Register `source(*deciding)`: it returns the tracer of control flow, or None if Python can decide."""
    _tracers.append(source)


def tracer(*deciding: Any) -> Any:
    """The tracer that makes nodes of control flow that depends on these values; None when Python can decide."""
    for source in _tracers:
        if (source_tracer := source(*deciding)) is not None:
            return source_tracer
    return None


def callee(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function to call in place of a user's: a trace may convert its control flow."""
    here = tracer()
    return function if here is None else here.callee(function)


def interpreter_of(value: Any) -> Interpreter | None:
    """The interpreter of ops on this value; None for arrays and scalars."""
    return interpreters.get(type(value))


def run_at_once(op: Operation, arrays: Sequence[Any], attrs: Attrs) -> Any:
    """Run an op on arrays and numbers. A symbolic size in the attributes sends the op to the interpreter of `Dim`."""
    try:
        return execute(op, arrays, attrs)
    except GraphError:  # from NumPy's use of the size: undecided, or no number that it can count with
        if not any(map(is_symbolic, attrs.values())):
            raise
    return interpreters[Dim](op, arrays, attrs)  # arrays, but a symbolic size: only a trace can hold the result


def check_operands(op: Operation, args: Sequence[Any]) -> None:
    """Raise DTypeError, naming op, specs and line, for an operand of a dtype that no tensor has."""
    try:
        promotion.check_operands(args)
    except DTypeError as error:
        raise explain_error(op, args, error) from None


def execute(op: Operation, arrays: Sequence[Any], attrs: Attrs) -> Any:
    """Run the kernel on arrays, and tell observers; the result is an array, 0-d included.

    An error names the op, the specs, the rule and the user's line.
    """
    out = compute(op, arrays, attrs)
    if observers:
        tell(op, arrays, attrs, out)
    return out


def compute(op: Operation, arrays: Sequence[Any], attrs: Attrs, kernel: Any = None) -> Any:
    """Run the kernel, or another that does the same, on arrays as `execute` does, and tell nobody."""
    kernel = kernel or op.kernel
    try:
        out = kernel(*arrays, **attrs) if attrs else kernel(*arrays)
    except BROKEN_RULES as error:
        raise explain_error(op, arrays, _diagnosis(op, arrays, attrs, error)) from None
    return out if type(out) is np.ndarray else np.asarray(out)


def tell(op: Operation, arrays: Sequence[Any], attrs: Attrs, out: Any) -> None:
    """Tell every observer that `out` now holds the result of an op that did not run through `execute`."""
    for observer in tuple(observers.values()):
        observer(op, arrays, attrs, out)


class observe_kernels(Block):  # noqa: N801
    """Tell `observer(op, arrays, attrs, out)` of every kernel run inside the block.

    detour   `False`: observe only kernels that run through `execute` anyway
    """

    def __init__(self, observer: Observer, detour: bool = True) -> None:
        self._observer, self._detour = observer, detour

    def __enter__(self) -> None:
        hold = self.hold()
        enter(observers, hold, self._observer)
        if self._detour:
            enter(detours, hold, _as_it_is)


def _as_it_is(interpreter: Interpreter) -> Interpreter:
    return interpreter


def explain_error(op: Operation, args: Sequence[Any], error: GraphError, line: str = "") -> GraphError:
    """The error with the op, the operands' specs and the user's line added to its message."""
    return add_context(error, op.name, op.infix.join(map(describe_operand, args)), line)


def _diagnosis(op: Operation, arrays: Sequence[Any], attrs: Attrs, error: Exception) -> GraphError:
    """The GraphError that `infer` raises for a failed kernel call; NumPy's own message where `infer` finds no fault."""
    if not isinstance(error, GraphError):
        try:
            op.infer(*map(spec_of, arrays), **attrs)
        except GraphError as broken:
            return broken
    return as_graph_error(error)


# The exceptions that a kernel raises when its arguments are wrong; OverflowError is for a number that no array holds.
# Any other exception (no memory, a warning made an error) is no rule of the op, and goes to the caller unchanged.
BROKEN_RULES = (GraphError, IndexError, TypeError, ValueError, OverflowError)


def kernel_error(op: Operation, args: Sequence[Any], error: Exception, line: str = "") -> Exception:
    """Convert a kernel's exception to a GraphError. An exception from an effect is the user's and stays as it is."""
    if op.effect and not isinstance(error, GraphError):
        return error
    return explain_error(op, args, as_graph_error(error), line)


def as_graph_error(error: Exception) -> GraphError:
    """Convert an exception in `BROKEN_RULES` to a GraphError with NumPy's message."""
    if isinstance(error, GraphError):
        return error
    if isinstance(error, IndexError):
        return OutOfRangeError(f"IndexError: {error}")
    kind: type[GraphError] = DTypeError if isinstance(error, TypeError) else ShapeError
    if isinstance(error, np.linalg.LinAlgError):
        kind = LinAlgError
    return kind(f"{type(error).__name__}: {error}")


def unheld(args: Sequence[Any]) -> DTypeError | None:
    """The DTypeError for operands of a dtype that no tensor has; None where all dtypes are fine."""
    try:
        promotion.check_operands([arg for arg in args if interpreter_of(arg) is None])
    except DTypeError as error:
        return error
    return None


def describe_operand(value: Any) -> str:
    """Describe an operand in a message: its spec, the number itself, or else the name of its type."""
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(describe_operand, value))}]"
    if isinstance(value, (bool, int, float)) or value is None:
        return repr(value)
    try:
        spec = value if hasattr(value, "dtype") else spec_of(value)
        return describe(spec.shape, spec.dtype)
    except Exception:  # noqa: BLE001  (a description must never hide the error it describes)
        return type(value).__name__
