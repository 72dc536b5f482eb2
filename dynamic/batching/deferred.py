"""Deferred: a tensor that has not been computed yet, and becomes an ordinary one when somebody looks at its values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, cast

import numpy as np

from dynamic.batching.nodes import Elements, ValueKind, View
from dynamic.batching.shortcuts import of_two
from dynamic.tensor import Tensor
from graphs import ops
from graphs.errors import InplaceError, located
from graphs.ops.elementwise import add, multiply, subtract
from graphs.ops.linalg import matmul
from graphs.torch.methods import Count

T = TypeVar("T")
_new = object.__new__

_slots = [name for name in Tensor.__slots__ if name != "__weakref__"]


if TYPE_CHECKING:

    class _Slot(Generic[T]):
        def __get__(self, obj: Any, owner: Any) -> T: ...
        def __set__(self, obj: Any, value: T) -> None: ...


def _settling(name: str) -> Any:
    """A slot of the tensor that a value stands for."""

    def get(self: Deferred) -> Any:
        return getattr(settled(self), name)

    def put(self: Deferred, value: Any) -> None:
        setattr(settled(self), name, value)

    return property(get, put)


class Deferred(Tensor):  # type: ignore[misc]  # final for everybody else: this is a tensor's earlier life
    """A tensor whose op has been noted and not run: it knows its shape and dtype.

    Reading anything else runs what is pending and turns the object into the `Tensor` it stands for. Python lets an
    object change its class only between equal layouts, so what is known until then lives in the tensor's own slots.
    """

    __slots__ = ()

    run: _Slot[Elements] = vars(Tensor)[_slots[0]]
    kind: _Slot[ValueKind] = vars(Tensor)[_slots[1]]
    shape: _Slot[tuple[int, ...]] = vars(Tensor)[_slots[2]]

    _data = _settling("_data")
    _edge = _settling("_edge")
    grad = _settling("grad")

    # Of these a model calls more than of all other ops together.
    __add__, __sub__, __mul__, __matmul__ = map(of_two, (add, subtract, multiply, matmul))

    @property
    def dtype(self) -> np.dtype[Any]:  # type: ignore[override]
        """The type of the elements."""
        return self.kind.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> Count:
        """The number of elements; called, the shape or one size."""
        return Count(self.kind.size, self.shape)

    def numel(self) -> int:
        """The number of elements."""
        return self.kind.size

    def __getitem__(self, key: Any) -> Self:
        shape = self.shape
        if type(key) is int and shape and -shape[0] <= key < shape[0]:  # by far the commonest, and no op is needed
            return self.run.level.batch.row(self, key % shape[0])
        return cast("Self", super().__getitem__(key))

    def __iter__(self) -> Iterator[Self]:
        if not self.shape:
            return super().__iter__()
        batch = self.run.level.batch
        return iter([cast("Self", batch.row(self, i)) for i in range(self.shape[0])])

    def __setitem__(self, key: Any, value: Any) -> None:
        self._check_alone()  # before setitem makes views that nobody else sees
        self._replace(ops.setitem(self, value, key))

    def _assign(self, result: Any) -> Self:
        self._check_alone()
        return self._replace(result)

    def _check_alone(self) -> None:
        if type(self.run) is View or hasattr(self.run, "viewed"):
            raise InplaceError(
                located("in-place change of a deferred value that is a view, or has one; write x = x + y")
            )

    def _replace(self, result: Any) -> Self:
        """Stand for another value from now on: nothing has memory yet that could be changed."""
        if type(result) is not Deferred or result.kind is not self.kind:
            return cast("Self", Tensor._assign(settled(self), result))
        self.run = result.run
        return self


def deferred(run: Elements, kind: ValueKind, values: list[Deferred]) -> Deferred:
    """The value of some kind that a run of elements will be, noted among the `values`."""
    value: Deferred = _new(Deferred)
    value.run = run
    value.kind = kind
    value.shape = kind.shape
    values.append(value)
    return value


def settled(value: Any) -> Any:
    """The tensor that a value stands for, which is the same object; runs what is pending."""
    if type(value) is Deferred:
        value.run.level.batch.settle(value)
    return value


def become(value: Deferred, tensor: Tensor) -> None:
    """Turn a deferred value into its tensor."""
    value.__class__ = Tensor  # type: ignore[assignment]
    for name in _slots:
        setattr(value, name, getattr(tensor, name))
