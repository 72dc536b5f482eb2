"""NumPy functions called on tensors and symbols: each becomes an op. None falls back to plain arrays.

Then the names of NumPy that the op library does not have, for `import graphs as np`. They are NumPy's own functions. On
arrays they run in NumPy; on tensors and symbols NumPy asks the table in `graphs/frontends/numpy/functions.py`, and a
function that is not in the table raises TypeError.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from graphs import ops
from graphs.errors import GraphError, locate
from graphs.frontends.numpy.functions import FUNCTIONS, UFUNC_OPS, UFUNCS, Function
from graphs.op import Array


def call_ufunc(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run the op of a ufunc call: `np.tanh(x)` as `ops.tanh(x)`. Raises TypeError for a ufunc without an op."""
    if method != "__call__":
        raise TypeError(
            locate(f"np.{ufunc.__name__}.{method} has no counterpart in graphs; use graphs.sum and the like")
        )
    name = ufunc.__name__
    if name in REFLECTED and not kwargs and _is_scalar(inputs[0], name):
        return getattr(inputs[1], REFLECTED[name])(inputs[0][()])
    function = UFUNC_OPS.get(name) or UFUNCS.get(name) or getattr(ops, name, None)
    if function is None:
        raise _no_counterpart(ufunc.__name__)
    if kwargs and function is not ops.vecdot:
        raise TypeError(locate(f"np.{ufunc.__name__} takes no {', '.join(kwargs)} here; use the operator alone"))
    return function(*inputs, **kwargs)


REFLECTED = {
    "add": "__radd__", "subtract": "__rsub__", "multiply": "__rmul__", "divide": "__rtruediv__",
    "floor_divide": "__rfloordiv__", "remainder": "__rmod__", "power": "__rpow__", "bitwise_and": "__rand__",
    "bitwise_or": "__ror__", "bitwise_xor": "__rxor__", "left_shift": "__rlshift__", "right_shift": "__rrshift__",
    "equal": "__eq__", "not_equal": "__ne__", "less": "__gt__", "less_equal": "__ge__", "greater": "__lt__",
    "greater_equal": "__le__",
}  # fmt: skip
"""What Python asks of the right operand: `np.sqrt(2) * x` arrives here, and is the operator that x has."""


def _is_scalar(value: Any, name: str) -> bool:
    """Whether a left operand is a NumPy scalar, which a comparison turns into a 0-d array."""
    compares = name.startswith(("equal", "not_", "less", "greater"))
    return isinstance(value, np.generic) or (compares and type(value) is np.ndarray and not value.ndim)


def call_function(func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run the counterpart of a NumPy function: `np.concatenate([...])` as `ops.concat([...])`. Raises TypeError."""
    function = FUNCTIONS.get(func)
    name = f"{func.__module__}.{func.__name__}".removeprefix("numpy.")
    if function is None:
        raise _no_counterpart(name)
    try:
        words = _words(func)
        if words is not None and not (len(args) <= words.same and kwargs.keys() <= words.options):
            args, kwargs = _translate(words, args, kwargs)
        return function(*args, **kwargs)
    except GraphError:
        raise
    except TypeError as error:  # an option of NumPy's that the op does not have
        raise TypeError(locate(f"np.{name}: {error}; its counterpart in graphs has fewer options")) from None


class _Words(NamedTuple):
    """What NumPy calls the arguments of a function, and what its counterpart does.

    theirs   the parameters of NumPy's function
    options  the names by which the counterpart takes arguments
    places   how many it takes by position alone
    same     how many of the first mean the same to both by position
    """

    theirs: inspect.Signature
    options: frozenset[str]
    places: int
    same: int


@functools.cache
def _words(func: Function) -> _Words | None:
    """The parameter names of a NumPy function and of its counterpart; None where NumPy has no signature."""
    try:
        theirs = inspect.signature(func)
    except ValueError:
        return None
    ours = inspect.signature(FUNCTIONS[func]).parameters.values()
    options = frozenset(p.name for p in ours if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY))
    places = _ANY if any(p.kind is p.VAR_POSITIONAL for p in ours) else sum(p.kind is p.POSITIONAL_ONLY for p in ours)
    alike = [_is_alike(a, b) for a, b in zip(ours, theirs.parameters, strict=False)]
    return _Words(theirs, options, places, _ANY if places == _ANY else [*alike, False].index(False))


def _is_alike(ours: inspect.Parameter, theirs: str) -> bool:
    return ours.kind is ours.POSITIONAL_ONLY or (ours.name == theirs and ours.kind is not ours.KEYWORD_ONLY)


_ANY = 1 << 30  # arguments


def _translate(words: _Words, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Translate a call to the counterpart's parameters. Raises TypeError for an option it lacks, but a default."""
    positional: list[Any] = []
    options: dict[str, Any] = {}
    for name, value in words.theirs.bind(*args, **kwargs).arguments.items():
        parameter = words.theirs.parameters[name]
        if parameter.kind is parameter.VAR_POSITIONAL:
            positional += value
        elif parameter.kind is parameter.VAR_KEYWORD:
            options |= value
        elif len(positional) < words.places and parameter.kind is not parameter.KEYWORD_ONLY:
            positional.append(value)
        elif name in words.options:
            options[name] = value
        elif not (value is parameter.default or (isinstance(value, (int, str)) and value == parameter.default)):
            raise TypeError(f"takes no {name} here")
    return tuple(positional), options


def _no_counterpart(name: str) -> TypeError:
    return TypeError(
        locate(
            f"np.{name} has no counterpart in graphs, and would lose the graph; write it with the functions in graphs"
        )
    )


def array(object: Any, dtype: npt.DTypeLike | None = None, *, copy: bool | None = True, ndmin: int = 0) -> Array:
    """A new array, tensor or symbol of numbers, arrays or nested lists; lists that hold tensors are stacked."""
    result = ops.asarray(object, dtype=dtype, copy=copy)
    missing = ndmin - np.ndim(result)
    return ops.expand_dims(result, tuple(range(missing))) if missing > 0 else result


def find_counterpart(name: str) -> Any:
    """The NumPy attribute of a name. Raises AttributeError, with a suggestion, for unknown names."""
    if name == "array":
        return array
    if name.startswith("_") or not hasattr(np, name):
        close = get_close_matches(name, [*ops.public, *np.__all__], n=1, cutoff=0.7)
        meant = f"; did you mean {close[0]!r}?" if close else ""
        raise AttributeError(f"graphs has no {name!r}, and neither has NumPy{meant or ': docs/ops.md lists the ops'}")
    return getattr(np, name)
