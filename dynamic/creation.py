"""Tensors made from data, or of given sizes, with PyTorch's names and defaults.

At the end: evenly spaced numbers as PyTorch computes them, where an int dtype converts the ends first.
"""

from __future__ import annotations

import builtins
import math
import operator
from typing import Any

import numpy as np
import numpy.typing as npt

from dynamic import inplace
from dynamic.tensor import Tensor, as_array, wrap
from graphs import capture, ops
from graphs.dims import Sizes
from graphs.errors import ArgumentError, DTypeError, InplaceError, OptionError, locate
from graphs.frontends.torch import complexes, dtypes
from graphs.frontends.torch import words as devices
from graphs.frontends.torch.names import guard, method
from graphs.frontends.torch.shapes import memory_of, order_of
from graphs.frontends.torch.words import as_dtype, number, sizes, within
from graphs.ops.movement import identity
from graphs.ops.shapes import as_count, dtype_of, lay, new_shape
from graphs.promotion import check_dtype

__all__ = [
    "BoolTensor", "ByteTensor", "DoubleTensor", "FloatTensor", "HalfTensor", "IntTensor", "LongTensor", "ShortTensor",
    "arange", "as_tensor", "asarray", "can_cast", "clone", "detach", "empty", "empty_like", "eye", "from_numpy", "full",
    "full_like", "get_default_device", "get_default_dtype", "is_floating_point", "is_tensor", "linspace", "logspace",
    "numel", "ones", "ones_like", "promote_types", "range", "result_type", "scalar_tensor", "set_default_device",
    "set_default_dtype", "set_default_tensor_type", "tensor", "tril_indices", "triu_indices", "zeros", "zeros_like",
]  # fmt: skip


Array = np.ndarray[Any, Any]
Kind = npt.DTypeLike | None


def leaf(array: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A leaf tensor of an array, in `dtype`. Raises ValueError for any device but the CPU."""
    devices.check(device)
    tensor = wrap(as_array(np.asarray(array), None if dtype is None else as_dtype(dtype)))
    return tensor.requires_grad_() if requires_grad else tensor


def make_leaf(array: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Any:
    """A leaf tensor of an array; in a trace, a constant of its graph. Complex numbers become a pair of leaves."""
    if np.asarray(array).dtype.kind == "c":
        parts = (array.real.copy(), array.imag.copy())
        return complexes.complex(*[make_leaf(part, None, device, requires_grad) for part in parts])
    tensor = leaf(array, dtype, device, requires_grad)
    return tensor if requires_grad and capture.step_trace() is None else capture.make_constant(tensor)


def tensor(data: Any, dtype: Kind = None, requires_grad: bool = False, device: Any = None) -> Tensor:
    """A leaf with a copy of `data`: Python floats become float32, ints int64; arrays keep their dtype.

    Raises DTypeError when a gradient is required of ints or bools.
    """
    step = capture.step_trace()
    if step is not None and (symbol := step.stacked(data, dtype)) is not None:
        return symbol
    array = ops.identity.kernel(as_array(data, None if dtype is None else as_dtype(dtype), pairs=True))
    return make_leaf(array, None, device, requires_grad)


def scalar_tensor(value: Any, dtype: Kind = None, requires_grad: bool = False, device: Any = None) -> Tensor:
    """A tensor of one number without axes; the default dtype unless one is given."""
    kind = np.result_type(as_dtype(None), np.complex64) if dtype is None and type(value) is builtins.complex else dtype
    return make_leaf(np.asarray(value, as_dtype(kind)), None, device, requires_grad)


def from_numpy(array: np.ndarray[Any, Any]) -> Any:
    """A leaf that shares the array's memory; complex numbers are a pair that does."""
    if as_array(array, None, pairs=True).dtype.kind == "c":
        return complexes.complex(wrap(array.real), wrap(array.imag))
    return wrap(as_array(array, None))


def as_tensor(data: Any, dtype: Kind = None, device: Any = None) -> Tensor:
    """`data` itself when it is a tensor of that dtype, else a leaf that shares memory where it can."""
    if isinstance(data, Tensor):
        return data.to(dtype=dtype, device=device)
    return make_leaf(as_array(data, None if dtype is None else as_dtype(dtype), pairs=True), None, device)


def asarray(
    obj: Any, dtype: Kind = None, copy: bool | None = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """A tensor of data, sharing memory where it can."""
    result = as_tensor(obj, dtype, device)
    result = result.clone() if copy else result
    return result.requires_grad_() if requires_grad else result


def clone(input: Tensor, *, memory_format: Any = None) -> Tensor:
    """A copy that keeps the history, and the order of the axes in memory unless a format asks for another."""
    return input.clone(memory_format=memory_format)


def detach(input: Tensor) -> Tensor:
    """The same memory without the history."""
    return input.detach()


def zeros(*size: Any, dtype: Kind = None, requires_grad: bool = False, device: Any = None, **words: Any) -> Tensor:
    """Zeros of a shape, given as sizes or as one tuple."""
    return make_leaf(np.zeros(_shape(size, words), as_dtype(dtype)), None, device, requires_grad)


def ones(*size: Any, dtype: Kind = None, requires_grad: bool = False, device: Any = None, **words: Any) -> Tensor:
    """Ones of a shape, given as sizes or as one tuple."""
    return make_leaf(np.ones(_shape(size, words), as_dtype(dtype)), None, device, requires_grad)


def empty(*size: Any, dtype: Kind = None, requires_grad: bool = False, device: Any = None, **words: Any) -> Tensor:
    """A tensor to be filled; it holds zeros."""
    memory_format = words.pop("memory_format", None)
    made = zeros(*size, dtype=dtype, requires_grad=requires_grad, device=device, **words)
    return lay_like(made, made, memory_format)


def full(size: Any, fill_value: Any, dtype: Kind = None, requires_grad: bool = False, device: Any = None) -> Tensor:
    """A tensor of one value everywhere."""
    value = fill_value.item() if issubclass(type(fill_value), Tensor) else number(fill_value)
    kind = as_array(value, None, pairs=True).dtype if dtype is None else as_dtype(dtype)
    filled = np.full(_sizes(sizes((size,))), within(value, kind), kind)
    return make_leaf(filled, None, device, requires_grad)


def eye(n: int, m: int | None = None, dtype: Kind = None, requires_grad: bool = False, device: Any = None) -> Tensor:
    """The identity matrix."""
    return make_leaf(ops.eye(n, m, dtype=as_dtype(dtype)), None, device, requires_grad)


def arange(
    start: Any,
    end: Any = None,
    step: Any = 1,
    dtype: Kind = None,
    requires_grad: bool = False,
    device: Any = None,
    stop: Any = None,
) -> Tensor:
    """Values from `start` (0) up to `end`, `step` apart, computed in double; int64 for ints, otherwise float32."""
    end = stop if end is None else end
    first, last = (0, start) if end is None else (start, end)
    numbers = [v.item() if isinstance(v, Tensor) else v for v in (first, last, step)]
    _check_steps(*numbers)
    whole = builtins.all(isinstance(v, (int, np.integer)) for v in numbers)
    wanted = np.dtype(np.int64) if dtype is None and whole else as_dtype(dtype)
    return make_leaf(progression(numbers[0], numbers[1], numbers[2], wanted), wanted, device, requires_grad)


def _check_steps(start: float, end: float, step: float) -> None:
    """Raise OptionError unless `step` leads from `start` to `end`, all finite numbers."""
    if not builtins.all(map(math.isfinite, (start, end, step))):
        raise OptionError(f"the range from {start} to {end} in steps of {step} never ends; give finite numbers")
    if step == 0:
        raise OptionError("a step of 0 never arrives; use one above or below 0")
    if (end - start) * step < 0:
        raise OptionError(f"steps of {step} do not lead from {start} to {end}; change the sign of the step")


def range(start: float, end: float, step: float = 1, dtype: Kind = None, requires_grad: bool = False) -> Tensor:
    """Evenly spaced values including the end, as floats; deprecated in PyTorch."""
    _check_steps(start, end, step)
    count = int(np.floor((end - start) / step)) + 1
    return make_leaf(start + step * np.arange(count), as_dtype(dtype), None, requires_grad)


def linspace(
    start: float,
    end: float | None = None,
    steps: int | None = None,
    dtype: Kind = None,
    requires_grad: bool = False,
    device: Any = None,
    stop: float | None = None,
) -> Tensor:
    """`steps` evenly spaced values, both ends included."""
    last = stop if end is None else end
    if last is None or steps is None:
        raise ArgumentError("there are a start, an end and a number of steps; give all three")
    for value in (start, last):
        within(value, check_dtype(dtype_of(value)) if dtype is None else as_dtype(dtype))
    return make_leaf(
        evenly(start, last, as_count(steps, "the number of values"), as_dtype(dtype)),
        as_dtype(dtype),
        device,
        requires_grad,
    )


def logspace(
    start: float,
    end: float,
    steps: int,
    base: float = 10.0,
    dtype: Kind = None,
    requires_grad: bool = False,
    device: Any = None,
) -> Tensor:
    """Powers of a base; the exponents are evenly spaced."""
    return make_leaf(
        base ** evenly(start, end, as_count(steps, "the number of values"), as_dtype(dtype)),
        as_dtype(dtype),
        device,
        requires_grad,
    )


def lay_like(made: Tensor, source: Any, memory_format: Any = None) -> Tensor:
    """A tensor just made, with its axes in memory as another has them, unless a format asks for rows."""
    memory, order = memory_of(source), order_of(memory_format, len(made.shape))
    if memory is not None and issubclass(type(made), Tensor) and order != "C":  # in a trace it may be a symbol
        made._data = identity(made._data, order=order) if order != "K" else lay(made._data, [memory])
    return made


def zeros_like(input: Any, dtype: Kind = None, *, memory_format: Any = None, **options: Any) -> Tensor:
    """Zeros with the shape and dtype of another tensor."""
    return lay_like(zeros(input.shape, dtype=dtype or input.dtype, **options), input, memory_format)


def ones_like(input: Any, dtype: Kind = None, *, memory_format: Any = None, **options: Any) -> Tensor:
    """Ones with the shape and dtype of another tensor."""
    return lay_like(ones(input.shape, dtype=dtype or input.dtype, **options), input, memory_format)


def empty_like(input: Any, dtype: Kind = None, **options: Any) -> Tensor:
    """A tensor to be filled, with the shape and dtype of another; it holds zeros."""
    return zeros_like(input, dtype, **options)


def full_like(input: Any, fill_value: Any, dtype: Kind = None, *, memory_format: Any = None, **options: Any) -> Tensor:
    """A tensor of one value, with the shape and dtype of another."""
    return lay_like(full(input.shape, fill_value, dtype=dtype or input.dtype, **options), input, memory_format)


@method()
def new_tensor(self: Tensor, data: Any, dtype: Kind = None, requires_grad: bool = False, device: Any = None) -> Tensor:
    """A leaf of data, with the dtype of this tensor."""
    return tensor(data, dtype or self.dtype, requires_grad, device)


@method()
def new_zeros(self: Tensor, *size: Any, dtype: Kind = None, **options: Any) -> Tensor:
    """Zeros of a shape, with the dtype of this tensor."""
    return zeros(*size, dtype=dtype or self.dtype, **options)


@method()
def new_ones(self: Tensor, *size: Any, dtype: Kind = None, **options: Any) -> Tensor:
    """Ones of a shape, with the dtype of this tensor."""
    return ones(*size, dtype=dtype or self.dtype, **options)


@method()
def new_full(self: Tensor, size: Any, fill_value: Any, dtype: Kind = None, **options: Any) -> Tensor:
    """A tensor of one value, with the dtype of this tensor."""
    return full(size, fill_value, dtype or self.dtype, **options)


@method()
def new_empty(self: Tensor, *size: Any, dtype: Kind = None, **options: Any) -> Tensor:
    """A tensor to be filled, with the dtype of this one; it holds zeros."""
    return new_zeros(self, *size, dtype=dtype, **options)


@method()
def resize_(self: Tensor, *sizes: Any, memory_format: Any = None) -> Tensor:
    """Give a tensor another shape and new memory: its elements stay in their order, and zeros come behind them.

    Raises InplaceError for a tensor with a history or that requires a gradient, and where another sees its memory; for
    one of a graph that has elements.
    """
    grown = zeros(*sizes, dtype=self.dtype)
    if grown.shape == self.shape and memory_format is None:
        return self
    if not issubclass(type(self), Tensor):
        if self.numel() != 0:
            raise InplaceError("a value of a graph has no memory that grows; use reshape, or torch.empty")
        return self._become(grown)
    if self._edge is not None or (self._data.size and (inplace.is_view(self._data) or inplace.is_seen(self._data))):
        what = "has a history, or requires a gradient" if self._edge is not None else "shares its memory"
        raise InplaceError(f"a tensor that {what} does not change its size; use reshape, or torch.empty")
    held = self._data.ravel("K")  # in the order of memory
    count = min(held.size, grown._data.size)
    grown._data.reshape(-1)[:count] = held[:count]
    self._data = lay_like(grown, grown, memory_format)._data
    return self


@method()
def resize_as_(self: Tensor, the_template: Tensor, *, memory_format: Any = None) -> Tensor:
    """Give a tensor the shape of another, as `resize_` does."""
    return resize_(self, the_template.shape, memory_format=memory_format)


@method()
def new(self: Tensor, *data: Any) -> Tensor:
    """PyTorch's older constructor in this tensor's dtype: int sizes make a tensor to be filled, a list or array a leaf.

    `x.size()` is a shape, and a tensor argument gives a view of it. Raises ArgumentError for a plain tuple, which
    PyTorch reads as data, and for a number that is no size; DTypeError for a tensor of another dtype.
    """
    if len(data) != 1:
        return new_zeros(self, *map(operator.index, data or (0,)))
    if (isinstance(data[0], int) and not isinstance(data[0], bool)) or type(data[0]) is Sizes:
        return new_zeros(self, data[0])
    if isinstance(data[0], (tuple, bool, float)):
        raise ArgumentError(f"new of {data[0]!r} may mean a shape or data; say new_empty or new_tensor")
    if not isinstance(data[0], Tensor):
        return new_tensor(self, data[0])
    if data[0].dtype != self.dtype:
        raise DTypeError(
            f"new of a tensor is a view of it, in its dtype {data[0].dtype}, and not {self.dtype}; say x.to"
        )
    view: Tensor = data[0].view(data[0].shape)
    return view


def tril_indices(row: int, col: int, offset: int = 0, dtype: Kind = np.int64, device: Any = None) -> Tensor:
    """The row and column indices of the elements on and below a diagonal, as a tensor of two rows."""
    return make_leaf(np.stack(np.tril_indices(row, offset, col)), dtype, device)


def triu_indices(row: int, col: int, offset: int = 0, dtype: Kind = np.int64, device: Any = None) -> Tensor:
    """The row and column indices of the elements on and above a diagonal, as a tensor of two rows."""
    return make_leaf(np.stack(np.triu_indices(row, offset, col)), dtype, device)


# ---- questions about tensors and dtypes ------------------------------------------------------------


def is_tensor(obj: Any) -> bool:
    """Whether a value is a tensor."""
    return isinstance(obj, Tensor)


def is_floating_point(input: Any) -> bool:
    """Whether the elements are floats."""
    return np.dtype(input.dtype).kind == "f"


def numel(input: Tensor) -> int:
    """The number of elements."""
    return input.numel()


def get_default_dtype() -> Any:
    """The dtype that Python floats become."""
    return dtypes.dtype(as_dtype(None))


def set_default_device(device: Any) -> None:
    """Accept the CPU, which is the default already. Raises ValueError for any other device."""
    devices.check(device)


def get_default_device() -> devices.device:
    """The CPU, which is the only device."""
    return devices.CPU


def set_default_dtype(d: Any) -> None:
    """Let Python floats, and what is made without a dtype, have this one. Raises DTypeError unless it has floats."""
    if as_dtype(d).kind != "f":
        raise DTypeError(locate(f"the default dtype is one of floats, not {as_dtype(d)}; use float32 or float64"))
    devices.OF_NUMBERS[float] = devices.OF_NUMBERS["f"] = as_dtype(d)


def set_default_tensor_type(t: Any) -> None:
    """`set_default_dtype` by a class such as DoubleTensor, or by its name. Raises OptionError for those of a GPU."""
    _, _, device = str(t).rpartition(".")[0].rpartition(".")
    devices.check(device if isinstance(t, str) and device != "torch" else None)
    set_default_dtype((globals()[t.rpartition(".")[2]] if isinstance(t, str) else t).dtype)


def result_type(tensor1: Any, tensor2: Any) -> Any:
    """The dtype of the result of an op on two tensors or numbers."""
    from graphs.frontends.torch.words import result_dtype

    return dtypes.dtype(result_dtype((tensor1, tensor2)))


def promote_types(type1: Any, type2: Any) -> Any:
    """The dtype that two dtypes promote to."""
    from graphs.frontends.torch.words import widest

    return dtypes.dtype(widest(as_dtype(type1), as_dtype(type2)))


def can_cast(from_: Any, to: Any) -> bool:
    """Whether a conversion keeps the kind: floats do not become ints, and only bools become bools."""
    kinds = "biuf"
    first, second = [kinds.index(as_dtype(d).kind) for d in (from_, to)]
    return first <= second or {first, second} == {1, 2}


class _Maker:
    """The class of `FloatTensor` and the like: a call makes a tensor of data, or zeros of sizes or `x.size()`."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = np.dtype(dtype)

    def __call__(self, *data_or_sizes: Any) -> Tensor:
        is_shape = len(data_or_sizes) == 1 and type(data_or_sizes[0]) is Sizes
        if data_or_sizes and (is_shape or builtins.all(isinstance(value, int) for value in data_or_sizes)):
            return zeros(*data_or_sizes, dtype=self.dtype)
        return tensor(data_or_sizes[0] if data_or_sizes else [], dtype=self.dtype)


FloatTensor, DoubleTensor, HalfTensor = _Maker(np.float32), _Maker(np.float64), _Maker(np.float16)
LongTensor, IntTensor, ShortTensor = _Maker(np.int64), _Maker(np.int32), _Maker(np.int16)
ByteTensor, BoolTensor = _Maker(np.uint8), _Maker(np.bool_)


def _shape(sizes: tuple[Any, ...], words: dict[str, Any]) -> tuple[int, ...]:
    named = words.pop("size", words.pop("shape", None))
    if words:
        raise ArgumentError(f"there is no option {', '.join(words)}; leave it out")
    return _sizes(sizes if named is None else (named,))


def _sizes(sizes: tuple[Any, ...]) -> tuple[int, ...]:
    return tuple(map(int, new_shape(sizes[0] if len(sizes) == 1 and not hasattr(sizes[0], "__index__") else sizes)))


guard(globals(), __all__)


def progression(first: float, last: float, step: float, dtype: np.dtype[Any]) -> Array:
    """The numbers from `first` up to, but without, `last`, `step` apart, in double or int64.

    For int64 the number of values is counted after the ends were converted, for other dtypes before. Raises OptionError
    for a step that converts to 0.
    """
    if dtype.kind not in "iu":
        return first + step * np.arange(max(0, math.ceil((last - first) / step)))
    start, width = int(first), int(step)
    if dtype != np.int64:
        return start + width * np.arange(max(0, math.ceil((last - first) / step)))
    if width == 0:
        raise OptionError(f"a step of {step} is 0 in {dtype}, and never arrives; give a whole number")
    return start + width * np.arange(max(0, -((start - int(last)) // width)))


def evenly(start: Any, end: Any, steps: int, dtype: np.dtype[Any]) -> Array:
    """`steps` numbers from `start` to `end` in double, each counted from the nearer end."""
    if steps < 2:
        return np.full(steps, float(start))
    first, last = map(int, (start, end)) if dtype.kind in "iu" else map(float, (start, end))
    step, places = (last - first) / (steps - 1), np.arange(steps)
    return np.where(places < steps // 2, first + step * places, last - step * (steps - 1 - places))
