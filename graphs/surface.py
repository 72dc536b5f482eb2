"""The user-facing side of a tensor: operators, methods and the NumPy protocols, shared by Tensor and Symbol.

At the end, `is_stored` tells `array[i] = x` from `float(x)`: NumPy asks a tensor for a float in both cases.
"""

from __future__ import annotations

import dis
import functools
import sys
from collections.abc import Callable, Iterator
from types import CodeType, ModuleType
from typing import Any, Self, TypeVar

import numpy as np
import numpy.typing as npt

from graphs import ops
from graphs.dims import Shape
from graphs.errors import ControlFlowError, locate
from graphs.frontends.torch.words import axis_words
from graphs.op import Op
from graphs.ops.dtypes import VERSIONS, check_device
from graphs.ops.shapes import Axis

S = TypeVar("S")


def method(function: Callable[..., Any]) -> Any:
    """A function of the op library as a method: the tensor is its first argument, the docstring is the function's."""
    return axis_words(function)


def unary(op: Op) -> Callable[[S], S]:
    """An op of one input as a method."""

    def method(self: S) -> S:
        return op(self)

    functools.update_wrapper(method, op, updated=())
    return method


def _binary(op: Op) -> Callable[[S, Any], S]:
    return lambda self, other: op(self, other)


def _reflect(op: Op) -> Callable[[S, Any], S]:
    return lambda self, other: op(other, self)


class Surface:
    """The operators and methods of a value that has `shape` and `dtype`.

    Methods have NumPy's names and meanings; `graphs/frontends/torch/methods.py` adds PyTorch's. NumPy functions called
    on such a value dispatch to the op library; one with no counterpart raises TypeError.
    """

    __slots__ = ()
    __array_priority__ = 1000
    weak = False  # whether it stands for a Python number, as a symbol may

    shape: Shape
    dtype: np.dtype[Any]

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def T(self) -> Self:
        """The axes reversed."""
        return ops.permute_dims(self)

    @property
    def mT(self) -> Self:
        """The last two axes swapped."""
        return ops.matrix_transpose(self)

    @property
    def device(self) -> str:
        """Where the values are: always "cpu"."""
        return "cpu"

    def to_device(self, device: Any, /, *, stream: Any = None) -> Self:
        """The tensor itself. Raises ValueError for any device but the CPU."""
        check_device(device)
        return self

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a 0-d tensor")
        return self.shape[0].__index__()

    def __iter__(self) -> Iterator[Self]:
        return iter([self[i] for i in range(len(self))])

    def __getitem__(self, key: Any) -> Self:
        return ops.index(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        raise ControlFlowError(
            locate("a traced value cannot be changed in place; write x = graphs.setitem(x, value, key)")
        )

    # Operators ----------------------------------------------------------------------------------------------

    __add__ = _binary(ops.add)
    __radd__ = _reflect(ops.add)
    __sub__ = _binary(ops.subtract)
    __rsub__ = _reflect(ops.subtract)
    __mul__ = _binary(ops.multiply)
    __rmul__ = _reflect(ops.multiply)
    __truediv__ = _binary(ops.divide)
    __rtruediv__ = _reflect(ops.divide)
    __floordiv__ = _binary(ops.floor_divide)
    __rfloordiv__ = _reflect(ops.floor_divide)
    __mod__ = _binary(ops.remainder)
    __rmod__ = _reflect(ops.remainder)
    __matmul__ = _binary(ops.matmul)
    __rmatmul__ = _reflect(ops.matmul)
    __and__ = _binary(ops.bitwise_and)
    __rand__ = _reflect(ops.bitwise_and)
    __or__ = _binary(ops.bitwise_or)
    __ror__ = _reflect(ops.bitwise_or)
    __xor__ = _binary(ops.bitwise_xor)
    __rxor__ = _reflect(ops.bitwise_xor)
    __lshift__ = _binary(ops.bitwise_left_shift)
    __rlshift__ = _reflect(ops.bitwise_left_shift)
    __rshift__ = _binary(ops.bitwise_right_shift)
    __rrshift__ = _reflect(ops.bitwise_right_shift)

    def __pow__(self, other: Any) -> Self:
        # The square is the commonest power, and one multiplication.
        return ops.square(self) if type(other) is int and other == 2 else ops.pow(self, other)

    __rpow__ = _reflect(ops.pow)
    __eq__ = _binary(ops.equal)  # type: ignore[assignment]  # elementwise, as every array library has it
    __ne__ = _binary(ops.not_equal)  # type: ignore[assignment]
    __lt__ = _binary(ops.less)
    __le__ = _binary(ops.less_equal)
    __gt__ = _binary(ops.greater)
    __ge__ = _binary(ops.greater_equal)
    __neg__ = unary(ops.negative)
    __abs__ = unary(ops.abs)
    __invert__ = unary(ops.bitwise_invert)
    __round__ = unary(ops.round)

    def __pos__(self) -> Self:
        return self

    __hash__ = object.__hash__

    # Methods ------------------------------------------------------------------------------------------------

    sum = method(ops.sum)
    mean = method(ops.mean)
    prod = method(ops.prod)
    any = method(ops.any)
    all = method(ops.all)
    argmax = method(ops.argmax)
    argmin = method(ops.argmin)
    cumsum = method(ops.cumulative_sum)
    cumprod = method(ops.cumulative_prod)
    squeeze = method(ops.squeeze)
    flatten = method(ops.flatten)
    clip = method(ops.clip)

    def max(self, axis: Axis = None, keepdims: bool = False) -> Self:
        """The largest element over `axis`."""
        return ops.max(self, axis=axis, keepdims=keepdims)

    def min(self, axis: Axis = None, keepdims: bool = False) -> Self:
        """The smallest element over `axis`."""
        return ops.min(self, axis=axis, keepdims=keepdims)

    @axis_words
    def argsort(self, axis: int = -1, descending: bool = False, stable: bool = True) -> Self:
        """The indices that sort along one axis."""
        return ops.argsort(self, axis=axis, descending=descending, stable=stable)

    def reshape(self, *shape: Any) -> Self:
        """The same elements in another shape."""
        return ops.reshape(self, shape[0] if len(shape) == 1 else shape)

    def transpose(self, *axes: Any) -> Self:
        """The axes in another order, reversed by default."""
        order = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes
        return ops.permute_dims(self, order or None)

    def swapaxes(self, axis1: int, axis2: int) -> Self:
        """Two axes swapped."""
        return np.swapaxes(self, axis1, axis2)  # type: ignore[call-overload]  # NumPy asks for ours

    def astype(self, dtype: npt.DTypeLike) -> Self:
        """The values in another dtype."""
        return ops.astype(self, dtype)

    # NumPy protocols ----------------------------------------------------------------------------------------

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        from graphs.frontends.numpy import protocol  # loaded when NumPy first asks

        return protocol.call_ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        from graphs.frontends.numpy import protocol  # loaded when NumPy first asks

        return protocol.call_function(func, args, kwargs)

    def __array_namespace__(self, /, *, api_version: str | None = None) -> ModuleType:
        """The module with the array API standard's functions: `graphs`."""
        if api_version not in (None, *VERSIONS):
            raise ValueError(f"there is no version {api_version!r} of the array API here; use one of {VERSIONS}")
        return sys.modules["graphs"]  # it stands above this file, which does not import it

    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None
    ) -> Any:
        """The values for another library, without a copy; as for np.asarray, detach a tensor with a history first."""
        options: dict[str, Any] = {"max_version": max_version, "dl_device": dl_device, "copy": copy}
        chosen = {name: value for name, value in options.items() if value is not None}
        return np.asarray(self).__dlpack__(stream=stream, **chosen)

    def __dlpack_device__(self) -> tuple[int, int]:
        return np.asarray(self).__dlpack_device__()


REMEDY = "use graphs.stack, graphs.where or graphs.setitem"


def is_stored() -> bool:
    """Whether the code that called the asking method stores into an array: `array[i] = x`, `array.fill(x)`.

    Only Python's bytecode tells `array[i] = x` from `float(x)`.
    """
    frame = sys._getframe(2)
    return _stores(frame.f_code, frame.f_lasti)


@functools.lru_cache(maxsize=1024)
def _stores(code: CodeType, offset: int) -> bool:
    steps = list(dis.get_instructions(code))
    step = next(s for s in steps if s.offset == offset)
    if not step.opname.startswith("CALL"):
        return step.opname == "STORE_SUBSCR"
    # The callee begins where the call begins, and of all that begins there it ends last: `array`, then `array.fill`.
    beginning = [s for s in steps if s.opname.startswith("LOAD_") and _start(s) == _start(step)]
    called = max(beginning, key=_end, default=None)
    return called is not None and called.argval in ("fill", "fromiter")


def _start(step: dis.Instruction) -> tuple[int, int]:
    place = step.positions
    return (0, 0) if place is None else (place.lineno or 0, place.col_offset or 0)


def _end(step: dis.Instruction) -> tuple[int, int]:
    place = step.positions
    return (0, 0) if place is None else (place.end_lineno or 0, place.end_col_offset or 0)
