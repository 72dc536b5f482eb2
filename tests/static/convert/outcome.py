"""How a converted program ends beside the same program as plain Python on the tape: right, refused, wrong or crash."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal, NamedTuple

import numpy as np

import dynamic
import static
from graphs import tree
from graphs.errors import GraphError

Program = Callable[..., Any]


class Outcome(NamedTuple):
    """`right` on all inputs, or how the first that is not ends, and why."""

    status: Literal["right", "refused", "wrong", "crash"]
    why: str = ""


def converted(f: Program) -> Callable[..., Any]:
    """The value and the gradient of a program whose control flow is converted, compiled when it is called."""
    return static.jit(static.value_and_grad(f), convert=True, limit=None)


def outcome(f: Program, inputs: Iterable[tuple[Any, ...]], tolerance: float = 1e-8) -> Outcome:
    """How a program ends on these inputs: its values and gradients, their dtypes, and its errors against plain Python.

    Any GraphError is a refusal. An error of another kind is right only where plain Python raises the same kind.
    """
    plain, compiled = dynamic.value_and_grad(f), converted(f)
    for args in inputs:
        wanted, found = _ended(plain, args), _ended(compiled, args)
        ending = _compared(wanted, found, tolerance)
        if ending is not None:
            return ending
    return Outcome("right")


def _ended(f: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    try:
        return f(*args)
    except Exception as error:  # noqa: BLE001  (an error is a result, and is compared)
        return error


def _compared(wanted: Any, found: Any, tolerance: float) -> Outcome | None:
    """What ends the comparison; None where the two are the same."""
    if isinstance(found, GraphError):
        return Outcome("refused", _line(found))
    if isinstance(found, Exception):
        return None if type(found) is type(wanted) else Outcome("crash", f"{_line(found)}; plain: {_line(wanted)}")
    if isinstance(wanted, Exception):
        return Outcome("wrong", f"plain raises {_line(wanted)}, converted gives {found[0]}")
    pairs = list(zip(tree.leaves(wanted), tree.leaves(found), strict=True))
    if all(_same(*pair, tolerance) for pair in pairs):
        return None
    return Outcome("wrong", f"{wanted} is {found}")


def _same(wanted: Any, found: Any, tolerance: float) -> bool:
    first, second = np.asarray(wanted), np.asarray(found)
    if first.dtype != second.dtype or first.shape != second.shape:
        return False
    allowed = max(tolerance, 1e-5) if first.dtype.itemsize < 8 else tolerance
    return np.allclose(first, second, rtol=allowed, atol=allowed, equal_nan=True)


def _line(value: Any) -> str:
    named = f"{type(value).__name__}: {value}" if isinstance(value, Exception) else str(value)
    return " ".join(named.split())
