"""Tensor: an array that remembers how it was computed. Names and meanings are PyTorch's."""

from __future__ import annotations

import copy
import functools
import sys
import weakref
from collections.abc import Callable, Sequence
from typing import Any, Self, final

import numpy as np
import numpy.typing as npt

from dynamic import grad_mode, inplace
from dynamic.node import AfterLeaf, Edge, Handle, Hook, Keep, Leaf, Node, add_hook, turns
from graphs import capture, promotion, surface
from graphs.dims import Sizes
from graphs.errors import DTypeError, GraphError, InplaceError, NotDifferentiableError, OptionError, ShapeError, locate
from graphs.frontends.torch import functions, printing, words
from graphs.frontends.torch.dtypes import by_number
from graphs.frontends.torch.methods import Count, TorchMethods
from graphs.frontends.torch.picking import part, with_part
from graphs.ops.shapes import overlaps
from graphs.ops.slicing import getitem
from graphs.surface import Surface

Array = np.ndarray[Any, Any]


@final
class Tensor(TorchMethods, Surface):  # type: ignore[misc]  # max and min are PyTorch's here, not NumPy's
    """An array with a history; make one with `dynamic.tensor`.

    A leaf is made by the user; every other tensor is the result of an op. `grad` holds the gradient that `backward`
    accumulated, for leaves that require one. Any other attribute may be set.
    """

    __slots__ = ("__dict__", "__weakref__", "_data", "_edge", "_grad")

    _data: Array
    _edge: Edge  # where its gradient goes: the node that made it, or the leaf that it is, or nowhere
    _grad: Tensor | None

    def __init__(self, data: Any = (), *sizes_or_options: Any, dtype: Any = None, requires_grad: bool = False) -> None:
        """A tensor of data in the default dtype, or of zeros for int sizes or `x.size()`; `tensor` keeps an array's."""
        if type(data) is Sizes:
            data, sizes_or_options = np.zeros(data, words.as_dtype(None)), ()
        if type(data) is int and all(type(size) is int for size in sizes_or_options):
            data, sizes_or_options = np.zeros((data, *sizes_or_options), words.as_dtype(None)), ()
        if sizes_or_options:
            dtype, requires_grad = (
                sizes_or_options if len(sizes_or_options) > 1 else (sizes_or_options[0], requires_grad)
            )
        self._data = as_array(data, words.as_dtype(None) if dtype is None and type(data) is not Tensor else dtype)
        self._edge = None
        self._grad = None
        if requires_grad:
            self.requires_grad_()

    # Shape, dtype and gradient flags ------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]  # a tensor's sizes are numbers
        """The size of each axis."""
        return Sizes(self._data.shape)

    @property
    def dtype(self) -> Any:  # type: ignore[override]  # PyTorch's, which is NumPy's too
        """The dtype of the elements."""
        held = self._data.dtype
        return by_number.get(held.num, held)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self._data.ndim

    @property
    def size(self) -> Count:
        """The number of elements; `size()` is the shape, and `size(dim)` the size of an axis."""
        return Count(self._data.size, self._data.shape)

    @property
    def device(self) -> words.device:
        """Where the values are: always "cpu"."""
        return words.CPU

    def stride(self, dim: int | None = None) -> Any:
        """The distance, in elements, of two neighbours along each axis, or along `dim`."""
        steps = tuple([step // self._data.itemsize for step in self._data.strides])
        return steps if dim is None else steps[dim]

    def numel(self) -> int:
        """The number of elements."""
        return self._data.size

    @property
    def requires_grad(self) -> bool:
        """Whether operations on this tensor are recorded."""
        return self._edge is not None

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    @property
    def grad(self) -> Tensor | None:
        """The gradient that `backward` accumulated; None before, and once it is deleted.

        Setting it raises DTypeError for what is no tensor or of another dtype, and ShapeError for another shape.
        """
        return self._grad

    @grad.setter
    def grad(self, gradient: Tensor | None) -> None:
        if gradient is not None:
            self._check_gradient(gradient)
        self._grad = gradient

    @grad.deleter
    def grad(self) -> None:
        self._grad = None

    def _check_gradient(self, gradient: Any) -> None:
        """Raise the error of a gradient that is no tensor like this one."""
        if not issubclass(type(gradient), Tensor):
            kind = type(gradient).__name__
            raise DTypeError(locate(f"a gradient is a tensor or None, not {kind}; make one with dynamic.tensor"))
        if gradient is self:
            raise GraphError(locate("a tensor cannot be its own gradient; give a copy, by detach().clone()"))
        if gradient.shape != self.shape:
            raise ShapeError(locate(f"a gradient of shape {gradient.shape} for a tensor of shape {self.shape}"))
        if gradient.dtype != self.dtype:
            raise DTypeError(locate(f"a gradient of {gradient.dtype} for a tensor of {self.dtype}; use gradient.to"))

    @property
    def is_leaf(self) -> bool:
        """Whether no recorded op made this tensor."""
        return type(self._edge) is not Node

    @property
    def grad_fn(self) -> Node | None:
        """The recorded op that made this tensor."""
        return self._edge if type(self._edge) is Node else None

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Start or stop recording operations on this leaf, and return it.

        Raises DTypeError for a tensor of ints or bools, NotDifferentiableError for a tensor that is no leaf.
        """
        if requires_grad and self.dtype.kind != "f":
            raise DTypeError(locate(f"only floating point tensors can require gradients, not {self.dtype}; use astype"))
        if not requires_grad and not self.is_leaf:
            raise NotDifferentiableError(locate("only a leaf can stop requiring gradients; use detach()"))
        if requires_grad is not self.requires_grad:
            self._edge = Leaf(self) if requires_grad else None
        return self

    # Values -------------------------------------------------------------------------------------------------

    def item(self) -> Any:
        """The value of a tensor with one element, as a Python number. Raises GraphError for more elements."""
        if self._data.size != 1:
            raise OptionError(locate(f"item() of a tensor with {self._data.size} elements; use tolist()"))
        capture.hand_out(self)
        return self._data.item()

    def tolist(self) -> Any:
        """The values as nested lists."""
        capture.hand_out(self)
        return self._data.tolist()

    def numpy(self, *, force: bool = False) -> Array:
        """The array itself, sharing memory. Raises GraphError when the tensor requires a gradient, without `force`."""
        if self.requires_grad and not force:
            raise GraphError(locate("numpy() of a tensor that requires a gradient; use detach().numpy()"))
        capture.hand_out(self)
        return self._data

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> Array:
        if self.requires_grad:
            raise GraphError(
                locate(
                    "a NumPy array of a tensor that requires a gradient would lose it; "
                    "use graphs.stack for a list of tensors, functions of graphs for one, or detach().numpy()"
                )
            )
        capture.hand_out(self)
        return np.array(self._data, dtype=dtype, copy=copy)

    def __bool__(self) -> bool:
        if self._data.size != 1:
            raise GraphError(
                locate(f"the truth of a tensor with {self._data.size} elements is ambiguous; use any() or all()")
            )
        capture.hand_out(self)
        return bool(self._data)

    def __float__(self) -> float:
        if self.requires_grad and grad_mode.is_grad_enabled() and surface.is_stored():
            raise _unstorable()
        return float(self.item())

    def __int__(self) -> int:
        if self.requires_grad and grad_mode.is_grad_enabled() and surface.is_stored():
            raise _unstorable()
        return int(self.item())

    def __index__(self) -> int:
        if self.dtype.kind not in "iu":
            raise TypeError("only a tensor of one integer can be an index")
        return int(self.item())

    def __repr__(self) -> str:
        grad_fn = self.grad_fn
        text = printing.format_tensor(
            self._data, requires_grad=self.requires_grad, grad_fn=None if grad_fn is None else grad_fn.name()
        )
        return f"Parameter containing:\n{text}" if id(self) in parameters else text

    def __format__(self, spec: str) -> str:
        return format(self.item() if self._data.ndim == 0 else str(self), spec)

    def captured_array(self) -> Array:
        """The current array, which a compiled graph that reads this tensor gets in each call."""
        return self._data

    # History ------------------------------------------------------------------------------------------------

    def backward(
        self, gradient: Any = None, retain_graph: bool | None = None, create_graph: bool = False, inputs: Any = None
    ) -> None:
        """Add this tensor's gradient to the `grad` of every leaf it depends on, or of `inputs`, and free the graph.

        `gradient` is the cotangent, needed unless the tensor has one element. Raises NotDifferentiableError.
        """
        _backward[0]([self], [gradient], retain_graph=retain_graph, create_graph=create_graph, inputs=inputs)

    def detach(self) -> Tensor:
        """A tensor of the same memory without the history."""
        return wrap(inplace.detach_array(self._data) if self._edge is None else self._data)

    @property
    def data(self) -> Tensor:
        """A tensor of the same memory without the history."""
        return self.detach()

    @data.setter
    def data(self, value: Any) -> None:
        self._data = as_array(value, None)
        if type(self._edge) is Leaf:  # what was recorded keeps the leaf as it was
            self._edge = self._edge.renewed(self)

    def retain_grad(self) -> None:
        """Keep the gradient of a tensor that is no leaf in its `grad`; a second call does nothing."""
        with turns:
            if type(self._edge) is Node and not any(isinstance(hook, Keep) for hook in self._edge.hooks or ()):
                self.register_hook(Keep(self))

    def register_hook(self, hook: Hook) -> Handle:
        """Call `hook(gradient)` when backward reaches this tensor; a result other than None replaces the gradient.

        The returned handle has `remove()`. Raises NotDifferentiableError when the tensor requires no gradient.
        """
        edge = self._edge
        if edge is None:
            raise NotDifferentiableError(locate("a hook on a tensor that does not require a gradient is never called"))
        return add_hook(edge, hook)

    def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], None]) -> Handle:
        """Call `hook(tensor)` when backward has added to the `grad` of this leaf. Raises NotDifferentiableError."""
        if type(self._edge) is not Leaf:
            remedy = "give a leaf that requires a gradient, or use register_hook"
            raise NotDifferentiableError(locate(f"only the grad of a leaf is added to; {remedy}"))
        return add_hook(self._edge, AfterLeaf(hook))

    # Operators: the compiled tape replaces most of them, for equal dtypes
    # -------------------------------------------------

    __hash__ = object.__hash__

    def __getitem__(self, key: Any) -> Self:
        # Where loops are compiled, they do this: see dynamic/loops/index.c. An int is the simplest index, and loops
        # over a first axis use it; one slice is the next.
        if type(key) is int or (type(key) is slice and self.ndim):
            return getitem(self, key)
        return part(self, with_known_ints(key))

    def __reversed__(self) -> Any:
        return functions.flip(self, 0) if self.ndim else self

    # Copies: a history belongs to the run that recorded it, and is never copied ------------------------------

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild_tensor, (self._data, self.requires_grad, id(self) in parameters), vars(self) or None

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        if not self.is_leaf:
            raise NotDifferentiableError(
                locate(
                    "deepcopy of a tensor that an op has made; detach() it first, or clone() it to stay in the graph"
                )
            )
        is_parameter = id(self) in parameters
        made = _rebuild_tensor(copy.deepcopy(self._data, memo), self.requires_grad, is_parameter)
        made.grad = None if is_parameter else copy.deepcopy(self.grad, memo)
        if not is_parameter:  # whose attributes PyTorch copies neither
            vars(made).update(copy.deepcopy(vars(self), memo))
        return made

    # In place -----------------------------------------------------------------------------------------------

    def _assign(self, result: Any, key: Any = ...) -> Self:
        inplace.assign(self, result if issubclass(type(result), Tensor) else wrap(np.asarray(result)), key)
        return self

    def _become(self, result: Any) -> Self:
        if self.is_leaf and self.requires_grad:
            raise InplaceError(locate("in-place change of the shape of a leaf that requires a gradient; use a result"))
        self._data, self._edge = result._data, result._edge
        return self

    def _forget(self) -> Self:
        self._edge = None
        return self

    _before = inplace.as_it_was

    def __setitem__(self, key: Any, value: Any) -> None:
        key = with_known_ints(key)
        if overlaps(self._data):
            inplace.put(self, _as_arrays(key), value)
        elif not inplace.write(self, key, value):
            self._assign(with_part(self, value, key), key)

    def copy_(self, other: Any, non_blocking: bool = False) -> Self:
        """Take the values of another tensor, broadcast to this one's shape."""
        is_done = not overlaps(self._data) and inplace.write(self, ..., other)
        return self if is_done else super().copy_(other, non_blocking)

    def fill_(self, value: Any) -> Self:
        """Set every element to one value."""
        if not overlaps(self._data):
            return super().fill_(value)
        inplace.put(self, ..., value, fills=True)
        return self


def _passing() -> int:
    """The reference count in an operator of an operand that only Python holds, as in `x[0] += y`; 0 if not distinct."""
    counts: list[int] = []

    class PassingCounter:
        def __getitem__(self, key: int) -> PassingCounter:
            return PassingCounter()

        def __setitem__(self, key: int, value: PassingCounter) -> None:
            pass

        def __iadd__(self, other: int) -> Self:
            counts.append(sys.getrefcount(self))
            return self

    named = PassingCounter()
    named[0] += 1
    named += 1
    return counts[0] if counts[0] < counts[1] else 0


_PASSING = _passing()


def _augmented_operator(in_place: Callable[..., Any], plain: str) -> Callable[..., Any]:
    """An operator such as `+=`. For a view with a history, which Python writes back to its base, the result is new."""

    @functools.wraps(in_place)
    def wrapper(self: Any, other: Any) -> Any:
        is_put_back = sys.getrefcount(self) <= _PASSING and inplace.is_view(self._data) and grad_mode.is_grad_enabled()
        if is_put_back and (self._edge is not None or getattr(other, "requires_grad", False)):
            return getattr(self, plain)(other)
        return in_place(self, other)

    return wrapper


for _name in [name for name in vars(TorchMethods) if name.startswith("__i")]:
    setattr(Tensor, _name, _augmented_operator(vars(TorchMethods)[_name], _name.replace("__i", "__")))

parameters: weakref.WeakValueDictionary[int, Tensor] = weakref.WeakValueDictionary()
"""The tensors that are parameters of modules, by their ids: a copy of one is one, too."""


def _rebuild_tensor(data: Array, requires_grad: bool, is_parameter: bool) -> Tensor:
    made = wrap(data).requires_grad_(requires_grad)
    if is_parameter:
        parameters[id(made)] = made
    return made


def wrap(data: np.ndarray[Any, Any], edge: Edge = None) -> Tensor:
    """A tensor around an array, without a copy or a check."""
    tensor: Tensor = _new(Tensor)
    tensor._data = data
    tensor._edge = edge
    tensor._grad = None
    return tensor


_new = object.__new__


_backward: list[Callable[..., None]] = []


def goes_back_by(backward: Callable[..., None]) -> None:
    """Set the function that `Tensor.backward` calls. It is defined in a module that imports this one."""
    _backward[:] = [backward]


def as_array(data: Any, dtype: npt.DTypeLike | None, *, pairs: bool = False) -> Array:
    """An array as PyTorch reads data: Python floats take the default dtype, ints int64; arrays keep their dtype.

    Complex numbers are refused, or with `pairs` as in an array: a pair of tensors holds them.
    """
    if issubclass(type(data), Tensor):
        data = data._data
    elif isinstance(data, (list, tuple)) and _holds_tensors(data):
        dtypes: set[Any] = set()
        data = _with_numbers(data, dtypes)
        floats = {each for each in dtypes if each.kind == "f"}
        dtype = functools.reduce(np.promote_types, floats or dtypes) if dtype is None else dtype
    if dtype is None and not hasattr(data, "dtype"):
        array = np.asarray(data)
        is_plain = array.dtype in (np.float64, np.complex128) and not isinstance(_first(data), np.generic)
        parts = np.complex64 if array.dtype.kind == "c" else np.float16
        dtype = np.promote_types(words.as_dtype(None), parts) if is_plain else array.dtype
        data = array
    try:
        array = np.asarray(data, dtype)
    except OverflowError:  # an int below 0 counts from the end of unsigned ints, as in PyTorch
        kind = np.dtype(dtype)
        array = np.vectorize(lambda x: words.within(x, kind), otypes=[kind])(data)
    try:
        promotion.check_dtype(array.real.dtype if pairs else array.dtype)
    except DTypeError as error:
        raise DTypeError(locate(str(error))) from None
    return array


def _as_arrays(key: Any) -> Any:
    """The key with the array of each tensor."""
    if isinstance(key, tuple):
        return tuple(map(_as_arrays, key))
    return key._data if isinstance(key, Tensor) else key


def with_known_ints(key: Any) -> Any:
    """The key with an int for each tensor that holds one: what it selects is a view, as in PyTorch."""
    if type(key) is Tensor:
        holds_int = not key._data.ndim and key._data.dtype.kind in "iu" and key._data.dtype != np.uint8
        return int(key._data) if holds_int and grad_mode.now().batch is None else key
    return tuple(map(with_known_ints, key)) if type(key) is tuple else key


def _holds_tensors(data: Sequence[Any]) -> bool:
    """Whether there are tensors in nested lists."""
    kinds = set(map(type, data))
    nested = tuple([kind for kind in kinds if issubclass(kind, (list, tuple))])
    return any(issubclass(kind, Tensor) for kind in kinds) or (
        bool(nested) and any(_holds_tensors(part) for part in data if isinstance(part, nested))
    )


def _with_numbers(data: Any, dtypes: set[Any]) -> Any:
    """Nested lists with the number of each tensor in them; adds the dtypes. Raises OptionError for a larger tensor."""
    if isinstance(data, (list, tuple)):
        return [_with_numbers(part, dtypes) for part in data]
    if not issubclass(type(data), Tensor):
        dtypes.add(words.as_dtype(None) if type(data) is float else np.asarray(data).dtype)
        return data
    if data._data.size != 1:
        raise OptionError(
            locate(f"a list of numbers holds tensors of one element, not of shape {data.shape}; use torch.stack")
        )
    dtypes.add(data._data.dtype)
    return data._data.item()


def _first(data: Any) -> Any:
    """The first number in nested lists, whose type decides the dtype where it is a NumPy scalar."""
    while isinstance(data, Sequence) and data:
        data = data[0]
    return data


def _unstorable() -> GraphError:
    return GraphError(
        locate(
            "an element of a NumPy array cannot hold a tensor that requires a gradient, which would be lost; "
            f"{surface.REMEDY}, fill a tensor, or store x.detach()"
        )
    )
