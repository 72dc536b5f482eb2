"""Conventions of PyTorch's calls: NumPy's words beside PyTorch's, dtypes, and sizes given one by one.

Then the dtype of a result where the dtypes of tensors differ: PyTorch's rules, not NEP 50's. A kind (bool, int, float)
counts more than a width, and a tensor with axes more than one without: an int tensor beside floats takes their dtype,
and a number or a tensor without axes changes the kind alone. A NumPy scalar counts as a number. Source: PyTorch's
"Tensor Attributes", and `aten/src/ATen/native/TypeProperties.cpp`. Devices: the CPU, by name.
"""

from __future__ import annotations

import functools
import math
import operator
import struct
import typing
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self, TypeVar

import numpy as np

from graphs import dims, dispatch, ops
from graphs.dims import Dim
from graphs.errors import ArgumentError, DTypeError, OptionError, OutOfRangeError, locate
from graphs.ops.movement import wider
from graphs.ops.shapes import dtype_of, holds_half
from graphs.ops.shapes import shape_of as _shape_of
from graphs.promotion import HELD, SCALARS, is_scalar

NUMPY_WORDS = {"axis": "dim", "keepdims": "keepdim", "x1": "input", "x2": "other", "x": "input"}
"""PyTorch's words for options, by those of NumPy and the array API."""


def axis_words(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let a function of the op library be called with PyTorch's words, `dim` and `keepdim`."""

    @functools.wraps(function, updated=())
    def wrapper(input: Any, *args: Any, **options: Any) -> Any:
        if options:
            for theirs, ours in (("dim", "axis"), ("keepdim", "keepdims")):
                if theirs in options:
                    options[ours] = options.pop(theirs)
        return function(input, *args, **options)

    return wrapper


def as_dtype(dtype: Any) -> np.dtype[Any]:
    """A dtype as NumPy's: Python's `float` is float64, as in PyTorch, and None that of floats which have no other."""
    return OF_NUMBERS[float] if dtype is None else np.dtype(dtype)


def cast(x: Any, dtype: Any) -> Any:
    """Cast a tensor to a dtype; the tensor itself if it has the dtype."""
    return x if dtype_of(x) == dtype else ops.astype(x, dtype)


def floats(x: Any) -> Any:
    """A tensor of floats: bools and ints become the default dtype."""
    return ops.astype(x, as_dtype(None)) if dtype_of(x).kind in "biu" else x


def sizes(words: tuple[Any, ...]) -> tuple[Any, ...]:
    """Sizes, or axes, given one by one or as one sequence."""
    return tuple(words[0]) if len(words) == 1 and isinstance(words[0], (tuple, list)) else words


def place(dim: Any, ndim: int) -> int:
    """The number of an axis from 0 on; a tensor without axes has 0 and -1. Raises ArgumentError, OutOfRangeError."""
    most = max(ndim, 1)
    if not hasattr(dim, "__index__"):
        raise ArgumentError(locate(f"an axis is an int, not {dim!r}; count axes from 0, or from -1 backwards"))
    if not -most <= dim < most:
        raise OutOfRangeError(locate(f"there is no axis {dim} of {ndim}; use {-most} to {most - 1}"))
    return int(dim) % most


def axis_and_size(x: Any, dim: Any) -> tuple[int, Any]:
    """The number of an axis from 0 on, and its size. Raises OutOfRangeError, also for a tensor without axes."""
    axis = place(dim, ndim_of(x))
    if not ndim_of(x):
        raise OutOfRangeError("a tensor without axes has no parts; add an axis with unsqueeze(0)")
    return axis, shape_of(x)[axis]


def values_of(x: Any) -> Any:
    """The array of a tensor; None for a symbol, which has no values yet."""
    return x if isinstance(x, np.ndarray) else x.captured_array() if hasattr(x, "captured_array") else None


def as_row(x: Any) -> Any:
    """A tensor without axes as a vector of one element; other tensors, and numbers, unchanged."""
    return x if is_scalar(x) or ndim_of(x) else ops.reshape(x, (1,))


def axes_of(x: Any, dim: Any) -> Any:
    """Axes as the op library takes them: () for a tensor without axes, and None, for all axes, if none is named."""
    if dim is None or (isinstance(dim, (tuple, list)) and not dim):
        return None
    if ndim_of(x):
        return dim
    for d in dim if isinstance(dim, (tuple, list)) else (dim,):
        place(d, 0)
    return ()


def shape_of(x: Any) -> tuple[Any, ...]:
    """The sizes; for a symbol they may be symbolic, and computing with these may raise ControlFlowError."""
    return _shape_of(x)


def ndim_of(x: Any) -> int:
    """The number of axes."""
    return len(shape_of(x))


def with_axis(function: Callable[..., Any], x: Any, dim: Any, *rest: Any, **options: Any) -> Any:
    """`function(x, *rest, axis=dim)`; tensors without axes are taken as vectors of one element, as in PyTorch."""
    if ndim_of(x):
        return function(x, *rest, axis=place(dim, ndim_of(x)), **options)
    place(dim, 0)
    result = function(ops.reshape(x, (1,)), *[ops.reshape(r, (1,)) for r in rest], axis=0, **options)
    return ops.reshape(result, ())


def unless_empty(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap `function(x, axis=)` to return the equally empty exp(x) where the axis is empty."""

    def wrapper(x: Any, *, axis: int) -> Any:
        return ops.exp(x) if dims.same(shape_of(x)[axis], 0) else function(x, axis=axis)

    return wrapper


def refuse(what: str, remedy: str) -> DTypeError:
    """Make the DTypeError for dtypes that PyTorch refuses."""
    return DTypeError(locate(f"{what}; {remedy}"))


class _Sizes(type):
    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, dims.Sizes)


class Size(metaclass=_Sizes):
    """The sizes of a tensor: the tuple that `shape` is."""

    def __new__(cls, sizes: Iterable[Any] = (), /) -> Any:
        """Make the tuple of whole numbers. Raises ArgumentError for others."""
        return dims.Sizes([size if isinstance(size, Dim) else _whole_size(size) for size in sizes])


def _whole_size(size: Any) -> int:
    try:
        return operator.index(size)
    except TypeError:
        raise ArgumentError(locate(f"Size is made of whole numbers, not {size!r}; convert with int()")) from None


class device(str):  # noqa: N801  (PyTorch's name)
    """The device of values: "cpu". Raises OptionError for any other device."""

    __slots__ = ()
    index: Any = None

    def __new__(cls, type: Any = "cpu", index: int | None = None) -> Self:
        """The CPU. Raises OptionError for any other."""
        del index
        name = str(type)
        if name.partition(":")[0] != "cpu":
            remedy = "values are on the CPU: write device('cpu'), or ask cuda.is_available()"
            raise OptionError(locate(f"there is no device {name!r}; {remedy}"))
        return super().__new__(cls, "cpu")

    @property
    def type(self) -> str:
        """The kind of device."""
        return "cpu"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End the block, which has no effect: all tensors are on the CPU."""

    def __repr__(self) -> str:
        return "device(type='cpu')"


CPU = device()


def check(value: Any) -> None:
    """Raise OptionError for any device but the CPU."""
    if value is not None and value is not CPU:
        device(value)


# The dtype of a result ------------------------------------------------------------------------------------------------

Function = TypeVar("Function", bound=Callable[..., Any])
_FLOAT, _INT = np.dtype(np.float32), np.dtype(np.int64)
OF_NUMBERS: dict[Any, np.dtype[Any]] = {
    bool: np.dtype(bool), int: _INT, Dim: _INT, float: _FLOAT, "b": np.dtype(bool), "i": _INT, "f": _FLOAT,
}  # fmt: skip
"""What PyTorch takes a number for, by its type; or by the kind of the symbol that stands for it."""


stand_ins: dict[type, Callable[[Any], Any]] = {}
"""What stands for a number beside tensors, by its type, where it is neither bool, int nor float."""


def check_tensor(*operands: Any) -> None:
    """Raise TypeError if all operands are Python numbers."""
    if all(type(x) in SCALARS for x in operands):
        raise TypeError(f"takes tensors, got {operands}; write one of them as torch.tensor(...)")


def promote(*operands: Any) -> Sequence[Any]:
    """Convert tensors and numbers to the dtype that PyTorch computes in; arrays keep NumPy's rules.

    Numbers stay numbers, which take the dtype of the tensors beside them; ints wrap to fit it, as PyTorch's do.
    """
    if _agree(operands):
        return operands
    tensors = [x for x in operands if not is_weak(x)]
    if not all(hasattr(x, "dtype") for x in tensors):  # what is no operand at all is refused by the op
        return [stand_ins[type(x)](x) if type(x) in stand_ins else x for x in operands]
    if any(x.dtype.kind == "c" for x in tensors):
        return operands  # of pairs of real and imaginary parts each op takes real numbers beside them
    dtypes: set[Any] = {x.dtype if dispatch.interpreter_of(x) else None for x in tensors}
    check_tensor(*operands)
    if None in dtypes and len(dtypes) > 1 and any(map(is_number, tensors)):
        return promote(*map(number, operands))
    if None in dtypes:
        return operands
    if len(dtypes) == 1 and _holds(dtype := next(iter(dtypes)), operands):
        return [wrap_int(x, dtype) for x in operands]
    wanted = result_dtype(operands)
    if all(d.kind == "f" for d in dtypes) and np.result_type(*dtypes) == wanted:
        return operands
    leave = (
        np.dtype(bool) if wanted.kind == "f" and len(dtypes) > 1 else wanted
    )  # beside floats a bool is as good as they
    return [
        wrap_int(x, wanted) if is_weak(x) else x if x.dtype in (wanted, leave) else ops.astype(x, wanted)
        for x in operands
    ]


def wrap_int(value: Any, dtype: np.dtype[Any]) -> Any:
    """An int of 64 bits as ints of a dtype keep it, in their last bits; any other value unchanged."""
    if type(value) is not int or dtype.kind not in "iu" or not -(2**63) <= value < 2**63:
        return value
    return np.int64(value).astype(dtype).item()


def _agree(operands: Sequence[Any]) -> bool:
    """Whether all tensors have one dtype, which holds every number: the usual case, decided by types alone."""
    dtype, latest = None, 0
    for x in operands:
        kind = type(x)
        if kind in _KINDS:
            latest = max(latest, _KINDS[kind])
        elif kind not in dispatch.interpreters or getattr(x, "weak", True):
            return False
        elif dtype is None:
            dtype = x.dtype
        elif x.dtype is not dtype:
            return False
    if dtype is None:
        return False
    return dtype.kind == "f" or latest == 0 or (latest <= _KINDS[int] and dtype == _INT)  # every int of 64 bits fits it


def _holds(dtype: np.dtype[Any], operands: Sequence[Any]) -> bool:
    """Whether no number among the operands is of a later kind than `dtype`, the dtype of the tensors."""
    kind = dtype.kind
    return kind == "f" or all(_KINDS[_of_number(x).kind] <= _KINDS[kind] for x in operands if is_weak(x))


def _of_number(x: Any) -> np.dtype[Any]:
    return OF_NUMBERS[x.dtype.kind if hasattr(x, "dtype") else type(x)]


def is_weak(value: Any) -> bool:
    """Whether a value has no dtype of its own: a Python number, a size, or a symbol that stands for one."""
    return type(value) in SCALARS or isinstance(value, Dim) or getattr(value, "weak", False)


def number(value: Any) -> Any:
    """A NumPy scalar as the Python number that PyTorch takes it for, a bool as a float; other values unchanged."""
    if not is_number(value):
        return value
    return float(value) if value.dtype.kind == "b" else value.item()


def within(value: Any, dtype: np.dtype[Any]) -> Any:
    """A value that is written to, or compared with, elements of a dtype: NumPy scalars as Python numbers.

    Raises DTypeError for a finite number beyond the dtype, and of ints for infinity and NaN. To unsigned ints numbers
    below 0 count from the end, as in PyTorch, and are returned so.
    """
    value = number(value)
    if type(value) in SCALARS and dtype.kind != "b":
        least, most = _limits(dtype)
        if not least <= value <= most and (dtype.kind != "f" or -math.inf < value < math.inf):
            raise refuse(f"{value} is beyond {dtype}, which ends at {most}", "convert with .float() or .long() first")
        return wrap_int(value, dtype)
    return value


@functools.cache
def _limits(dtype: np.dtype[Any]) -> tuple[float, float]:
    if dtype.kind == "f":
        most = float(np.finfo(dtype).max)
        return -most, most
    info = np.iinfo(dtype)
    return int(info.min) or -int(info.max), int(info.max)


def is_number(value: Any) -> bool:
    """Whether a value is a NumPy scalar of a dtype that tensors have."""
    return isinstance(value, np.generic) and value.dtype.num in HELD


def promote_for_comparison(*operands: Any) -> Sequence[Any]:
    """Operands as comparisons take them: ints are unchanged, as NumPy compares them exactly; others are promoted."""
    operands = tuple(map(number, operands))
    if _agree(operands):
        return operands
    is_exact = all(type(x) in (bool, int) or (hasattr(x, "dtype") and x.dtype.kind in "biu") for x in operands)
    if not is_exact or all(type(x) in SCALARS for x in operands) or any(type(x) in SCALARS for x in operands):
        return promote(*operands)
    return operands


def promote_to_float(*operands: Any) -> Sequence[Any]:
    """Operands as `promote` returns them, with bools and ints cast to the float dtype of the others, or the default."""
    operands = tuple(map(number, operands))
    tensors = [x for x in operands if not is_weak(x)]
    is_whole = tensors and all(dispatch.interpreter_of(x) and x.dtype.kind in "biu" for x in tensors)
    converted = operands if is_whole else promote(*operands)  # an int of few bits would wrap
    kinds = [dtype_of(x) for x in converted if not is_weak(x)]
    wanted = np.result_type(*([d for d in kinds if d.kind == "f"] or [as_dtype(None)]))
    return [x if is_weak(x) or dtype_of(x).kind == "f" else cast(x, wanted) for x in converted]


def bits(*operands: Any) -> Sequence[Any]:
    """Operands as `promote` returns them; a NumPy bool counts as a Python bool, not as a float."""
    return promote(*[bool(x) if type(x) is np.bool_ else x for x in operands])


def truth(x: Any) -> Any:
    """Whether each element is not 0; a Python number is unchanged."""
    return x if type(x) in SCALARS or dtype_of(x).kind == "b" else ops.not_equal(x, 0)


def truths(*operands: Any) -> Sequence[Any]:
    """Operands as `promote` returns them, converted to bools by `truth`."""
    return [truth(x) for x in promote(*operands)]


def whole(*operands: Any) -> Sequence[Any]:
    """Operands as `promote` returns them. Raises DTypeError for tensors that are not of ints."""
    for x in operands:
        if type(x) not in SCALARS and dtype_of(x).kind not in "iu":
            raise refuse(f"divisors and multiples of {dtype_of(x)}", "convert with .long() first")
    return promote(*operands)


def of_floats(function: Function) -> Function:
    """Wrap a function to cast its tensors to PyTorch's result dtype. Raises DTypeError unless that is a float."""

    @functools.wraps(function)
    def wrapper(*args: Any, **options: Any) -> Any:
        if not options and _have_one_dtype(args):  # what most steps call
            return function(*args)
        tensors = [x for x in (*args, *options.values()) if dispatch.interpreter_of(x)]
        dtypes = {x.dtype for x in tensors}
        if len(dtypes) == 1 and next(iter(dtypes)).kind == "f":
            return function(*args, **options)
        wanted = functools.reduce(widest, dtypes)
        if wanted.kind != "f":
            raise DTypeError(locate(f"{function.__name__} of {wanted}; convert with .float() first"))
        converted = [ops.astype(x, wanted) if dispatch.interpreter_of(x) else x for x in args]
        named = {word: ops.astype(x, wanted) if dispatch.interpreter_of(x) else x for word, x in options.items()}
        return function(*converted, **named)

    return typing.cast(Function, wrapper)


def of_one_dtype(function: Function) -> Function:
    """Wrap a function of several tensors to compute in the dtype of its result, to which they are cast before it."""

    @functools.wraps(function)
    def wrapper(*args: Any, **options: Any) -> Any:
        tensors = [x for x in (*args, *options.values()) if _has_dtype(x)]
        if len({x.dtype for x in tensors}) < 2:
            return function(*args, **options)
        wanted = result_dtype(tensors)
        named = {word: cast(x, wanted) if _has_dtype(x) else x for word, x in options.items()}
        return function(*[cast(x, wanted) if _has_dtype(x) else x for x in args], **named)

    return typing.cast(Function, wrapper)


def _has_dtype(value: Any) -> bool:
    return hasattr(value, "dtype") and not is_weak(value) and not is_number(value)


def _have_one_dtype(args: Sequence[Any]) -> bool:
    """Whether there are tensors among the arguments, and all have one float dtype."""
    dtype: Any = None
    for x in args:
        if type(x) in dispatch.interpreters:
            if dtype is None:
                dtype = x.dtype
            elif x.dtype is not dtype:
                return False
    return dtype is not None and dtype.kind == "f"


def beside_single(*places: int) -> Callable[[Function], Function]:
    """Let a function of two operands compute in float32 where one is a float16 tensor, and the other reaches beyond it.

    That one, at one of the places, is a number, or a tensor without axes beside one with axes. The result is rounded
    once.
    """

    def decorate(function: Function) -> Function:
        @functools.wraps(function)
        def wrapper(input: Any, other: Any) -> Any:
            pair = input, other
            if any(_reaches_beyond(pair[place], pair[1 - place]) for place in places):
                return ops.astype(function(wider(input), wider(other)), np.float16)
            return function(input, other)

        return typing.cast(Function, wrapper)

    return decorate


def _reaches_beyond(value: Any, beside: Any) -> bool:
    """Whether a value beside a tensor may be what float16 does not hold, while float16 is the dtype of the result."""
    if not holds_half(beside) or not dispatch.interpreter_of(beside) or is_weak(beside):
        return False
    value = number(value)
    if type(value) in SCALARS:
        return not _is_held(value)
    if is_weak(value):
        return True
    if not dispatch.interpreter_of(value):
        return False  # an array keeps NumPy's rules
    return not holds_half(value) and result_dtype((value, beside)) == np.float16 and not ndim_of(value)


def _is_held(value: float) -> bool:
    """Whether float16 holds a number to the last digit."""
    try:
        return struct.unpack("e", struct.pack("e", float(value)))[0] == value or value != value
    except OverflowError:
        return False


def result_dtype(operands: Sequence[Any]) -> np.dtype[Any]:
    """The dtype of the result of an op on such operands."""
    levels: list[np.dtype[Any] | None] = [None, None, None]  # of tensors with axes, of those without, of numbers
    for x in map(number, operands):
        level = 2 if is_weak(x) else 0 if x.shape else 1
        dtype = x.dtype if level < 2 else _of_number(x)
        before = levels[level]
        levels[level] = dtype if before is None else widest(before, dtype)
    return _combine_levels(levels[0], _combine_levels(levels[1], levels[2])) or as_dtype(None)


def _combine_levels(first: np.dtype[Any] | None, second: np.dtype[Any] | None) -> np.dtype[Any] | None:
    """The dtype of two levels: the first, unless the second is of a later kind."""
    if first is None or second is None:
        return first if second is None else second
    return first if _KINDS[first.kind] >= _KINDS[second.kind] else widest(first, second)


_KINDS: dict[Any, int] = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3, bool: 0, int: 1, float: 2}


def widest(first: np.dtype[Any], second: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of two tensors with axes: floats win over ints of any width."""
    if first.kind != second.kind and "f" in (first.kind, second.kind):
        return first if first.kind == "f" else second
    return np.promote_types(first, second)
