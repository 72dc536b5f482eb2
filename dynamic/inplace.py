"""Changing a tensor in place, and noticing when that makes a gradient wrong.

Reading a tensor is not tracked. Each change is noted with its time. Backward compares that with the time each node was
recorded, so that changing a value *after* it was saved is an error, as in PyTorch.
"""

from __future__ import annotations

import functools
import gc
import itertools
import sys
import weakref
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from dynamic import grad_mode
from dynamic.node import Leaf, Node, TensorData, move_kept, turns
from graphs import dispatch, promotion
from graphs.errors import DTypeError, InplaceError, ShapeError, locate, user_line
from graphs.ops.indexing import setitem as setitem_at
from graphs.ops.indexing import take
from graphs.ops.movement import astype, identity, permute_dims, reshape
from graphs.ops.selection import select
from graphs.ops.shapes import overlaps, owner_of
from graphs.ops.slicing import Key, is_basic, setitem

Array = np.ndarray[Any, Any]


class Part:
    """Elements of a block of memory that changed, which NumPy reads as an array while the block is there."""

    __slots__ = ("__array_interface__",)

    def __init__(self, elements: Array) -> None:
        self.__array_interface__ = elements.__array_interface__


class Change(NamedTuple):
    """The last in-place change of one block of memory, and when all of it last changed, as far as is known.

    `rewritten` is when a change last replaced a history too. `parts` changed since `whole`, each at a time: a key of
    the owner, or the elements.
    """

    owner: weakref.ref[Any]
    time: int
    line: str
    rewritten: int
    whole: int
    parts: tuple[tuple[int, Key | Part], ...] = ()


class _Clock:
    """Gives increasing times to recorded ops and in-place changes.

    latest       the time of the latest change of all
    rewritten    the time of the latest change that replaced a history as well
    """

    __slots__ = ("count", "latest", "rewritten", "tick")

    def __init__(self) -> None:
        self.count = itertools.count(1)
        self.tick: Callable[[], int] = self.count.__next__  # atomic, so that threads may share it
        self.latest = 0
        self.rewritten = 0


clock = _Clock()
_changes: dict[int, Change] = {}


class DetachedMemory:
    """Stands between the array of a detached tensor and the array whose memory it shares, which is its `base`."""

    __slots__ = ("__array_interface__", "base")

    def __init__(self, base: Array) -> None:
        self.base = base
        self.__array_interface__ = base.__array_interface__


def detach_array(array: Array) -> Array:
    """An array of the same memory that is no view of it: a history that the memory gets is not the array's."""
    return np.asarray(DetachedMemory(array))


def _detachment(array: Array) -> DetachedMemory | None:
    """What a view lies behind that was detached last, None where nothing was."""
    base: Any = array
    while base is not None and type(base) is not DetachedMemory:
        base = getattr(base, "base", None)
    return base


def is_view(array: np.ndarray[Any, Any]) -> bool:
    """Whether an array does not own its memory."""
    return array.base is not None


def as_it_was(tensor: Any, *operands: Any) -> Any:
    """The tensor before an in-place change: a copy where backward may need its values, else the tensor itself."""
    if grad_mode.is_grad_enabled() and any(getattr(value, "requires_grad", False) for value in (tensor, *operands)):
        return tensor.clone()
    return tensor


_MOST = 64
"""As many parts are held apart; with another one the whole block has changed."""


def assign(tensor: TensorData, result: TensorData, key: Any = ...) -> None:
    """Give `tensor` the values and the history of `result`, in its own memory; they differ at `key` alone.

    Where the tensor is a view, its base and other views of that get the history too. Raises InplaceError for a leaf
    that requires a gradient, for a view of one, and for a view whose base is no longer there; ShapeError and DTypeError
    when the result does not fit.
    """
    data = tensor._data
    if grad_mode.is_grad_enabled():
        _refuse(tensor)
    if overlaps(data):
        raise InplaceError(locate(f"in-place change of {SHARING}; clone() it first"))
    data = _writable(data)
    result = _cast_result(data, result)
    if result._edge is None and type(tensor._edge) is Node and grad_mode.is_grad_enabled():
        result = setitem(tensor, result, ...)  # a constant ends the history that the tensor had: gradient 0, not 1
    node = result._edge if type(result._edge) is Node and grad_mode.is_grad_enabled() else None
    memory = None
    if node is not None and is_view(data) and is_seen(owner_of(data)):
        memory = ViewedMemory(tensor)
        memory.write(tensor, result)
    _copy_saved(tensor._edge, data)
    np.copyto(data, result._data)
    dispatch.tell(identity, [result._data], {}, data)
    if node is None:
        keys = _basic_keys(key)
        _note(data if keys is None else data[keys], data, keys or ())
    else:  # no further name holds the data, as names are counted below
        _note(data, rewrites=True)
    if memory is not None and node is not None:
        _check_residuals(node, data)
        memory.renew()
    elif node is not None:
        before, tensor._edge = tensor._edge, node
        node.sequence = clock.tick()
        _check_residuals(node, data)
        if before is not None:
            move_kept(before, node, tensor)
        _renew_views(tensor, is_new=before is None)


def write(tensor: TensorData, key: Any, value: Any) -> bool:
    """Do `tensor[key] = value` in the elements at the key alone; False, and nothing done, where that takes an op.

    It does where a history may pass, where somebody is told of ops, for a key that PyTorch reads otherwise than NumPy,
    and for a value that NumPy does not broadcast and convert as ops do.
    """
    data, mode = tensor._data, grad_mode.now()
    if mode.batch is not None or dispatch.detours or dispatch.observers or not data.flags.writeable:
        return False
    is_tensor = type(value) is type(tensor)
    if not is_tensor and (type(value) not in promotion.SCALARS or (type(value) is int and value.bit_length() > 63)):
        return False
    edge, its_edge = tensor._edge, value._edge if is_tensor else None
    if type(edge) is Node or (mode.recording and (edge is not None or its_edge is not None)):
        return False
    held, keys = value._data if is_tensor else value, _basic_keys(key)
    try:
        if keys is None:
            return _write_at(data, key, held, type(tensor))
        part = data[keys]
        if is_tensor and held.ndim > part.ndim:
            return False
        np.copyto(part, held)
    except dispatch.BROKEN_RULES:  # which the op explains
        return False
    _note(part, data, keys)
    return True


def _copy_saved(edge: Any, data: Array) -> None:
    """Before an array changes, copy what the op that made it saved of it, where the op `copies`."""
    while type(edge) is Node and edge.op.view and edge.edges:
        edge = edge.edges[0]
    saved = edge.saved if type(edge) is Node and edge.op.copies and edge.sequence else None
    if type(saved) is tuple and not _change_since(data, edge.sequence):  # no other type, such as a checkpoint's
        owner = owner_of(data)
        edge.saved = tuple([identity(x) if isinstance(x, np.ndarray) and owner_of(x) is owner else x for x in saved])


_INDICES = (np.dtype(np.bool_), np.dtype(np.int32), np.dtype(np.int64))  # of other integers PyTorch takes no index


def _write_at(data: Array, key: Any, value: Any, kind: Any) -> bool:
    """`write` for a key of slices and of neighbouring arrays, of the dtype that the data have."""
    keys: list[Any] = [x._data if type(x) is kind else x for x in (key if type(key) is tuple else (key,))]
    places = [i for i, x in enumerate(keys) if type(x) is np.ndarray and x.ndim and x.dtype in _INDICES]
    others = [entry for i, entry in enumerate(keys) if i not in places]
    if not places or places[-1] - places[0] >= len(places) or not all(x is ... or type(x) is slice for x in others):
        return False
    if type(value) is not np.ndarray:
        number = np.empty((), data.dtype)
        np.copyto(number, value)
        value = number
    if value.dtype != data.dtype or any(np.may_share_memory(data, x) for x in (value, *keys) if type(x) is np.ndarray):
        return False
    if len(keys) == 1 and keys[0].dtype == np.bool_ and keys[0].shape == data.shape and not value.ndim:
        select(keys[0], value, data, data)
    else:
        data[tuple(keys)] = value
    _note(data)
    return True


def _basic_keys(key: Any) -> tuple[Any, ...] | None:
    """A key of basic indices as a tuple that selects a view; None where it has arrays."""
    keys = key if isinstance(key, tuple) else (key,)
    return None if not all(map(is_basic, keys)) else keys if Ellipsis in keys else (*keys, ...)


def note_change(tensor: TensorData) -> None:
    """Note that something else has written to the memory of a tensor, which has no history."""
    _note(tensor._data)


# Elements that share memory, as those of an expanded tensor do --------------------------------------------------------

SHARING = "an expanded tensor or of windows, whose elements share memory"


def put(tensor: TensorData, key: Any, value: Any, *, fills: bool = False) -> None:
    """Do `tensor[key] = value` where elements of a tensor share memory; `fills` says that all get one value.

    Raises InplaceError where elements of the part share memory with each other, or where gradients would pass.
    """
    data = tensor._data
    is_recorded = grad_mode.is_grad_enabled() and any(getattr(x, "requires_grad", False) for x in (tensor, value))
    if is_recorded or not (fills or _is_apart(data, key)):
        raise InplaceError(locate(f"in-place change of {SHARING}; clone() it first"))
    _writable(data)[key] = getattr(value, "_data", value)
    _note(data)


def _is_apart(data: Array, key: Any) -> bool:
    """Whether no two elements that basic indices select share memory. An array of indices writes one after another."""
    steps = [np.arange(size) * step for size, step in zip(data.shape, data.strides, strict=True)]
    part = functools.reduce(np.add.outer, steps, np.array(0))[key]
    is_array = any(not is_basic(entry) for entry in (key if isinstance(key, tuple) else (key,)))
    return is_array or np.unique(part).size == part.size


def _writable(data: Array) -> Array:
    """The same array, which may be written to: a broadcast view may not. Raises InplaceError for read-only memory."""
    owner = owner_of(data)
    if data.flags.writeable:
        return data
    if not owner.flags.writeable or not owner.flags.c_contiguous:
        raise InplaceError(locate("in-place change of a read-only tensor; clone() it first"))
    start = data.__array_interface__["data"][0] - owner.__array_interface__["data"][0]
    return np.ndarray(data.shape, data.dtype, owner, start, data.strides)


# Views taken before their base got a history: a change of the base changes their values, and so their history.
_older: dict[int, tuple[weakref.ref[Any], list[weakref.ref[Any]]]] = {}  # by the id of the memory's owner


def _renew_views(tensor: TensorData, *, is_new: bool) -> None:
    """Give the history of a tensor to older views of it; `is_new` says that the tensor had no history before.

    Taking a view is not tracked, so the views are searched for, where there are any.
    """
    owner = owner_of(tensor._data)
    if is_new and sys.getrefcount(owner) > _ALONE + (tensor._data is owner):
        _remember_views(tensor, owner)
    for view in _older[id(owner)][1] if id(owner) in _older else ():
        older = view()
        if older is not None:
            older._edge = take(reshape(tensor, (-1,)), _places(older._data, tensor._data))._edge


def _alone() -> int:
    """The reference count of an array that one object holds, as the functions below see it with two local names."""
    holder = [np.zeros(1)]
    owner = holder[0]
    return sys.getrefcount(owner)


_ALONE = _alone()


def is_seen(owner: Array) -> bool:
    """Whether more than one view holds an array."""
    return sys.getrefcount(owner) > _ALONE


def _remember_views(tensor: TensorData, owner: Array) -> None:
    data, kind, detachment = tensor._data, type(tensor), _detachment(tensor._data)
    views = [
        weakref.ref(t)
        for t in gc.get_objects()
        if type(t) is kind
        and t._edge is None
        and t._data is not data
        and owner_of(t._data) is owner
        and _detachment(t._data) is detachment
    ]
    if views:
        key = id(owner)
        _older[key] = weakref.ref(owner, lambda _: _older.pop(key, None)), views


def _places(view: Array, base: Array) -> Array:
    """The row-major places of a view's elements in its base. Raises InplaceError for a base that is not contiguous."""
    if not base.flags.c_contiguous:
        raise InplaceError(locate("this tensor gets a history after a view of it was taken; take the view afterwards"))
    start = (view.__array_interface__["data"][0] - base.__array_interface__["data"][0]) // base.itemsize
    steps = (np.arange(size) * (stride // base.itemsize) for size, stride in zip(view.shape, view.strides, strict=True))
    return start + functools.reduce(np.add.outer, steps, np.array(0))


class ViewedMemory:
    """The tensors that share memory with a view that is changed in place, and the history of what lies there.

    Raises InplaceError where no tensor covers the memory of all, or where one is a leaf that requires a gradient.
    """

    def __init__(self, view: TensorData) -> None:
        owner, detachment, kind = owner_of(view._data), _detachment(view._data), type(view)
        sharing = [
            t
            for t in gc.get_objects()
            if type(t) is kind and owner_of(t._data) is owner and _detachment(t._data) is detachment
        ]
        # Where the memory has a history, a tensor without one was detached from it.
        self.tensors = [t for t in sharing if t._edge is not None or t is view]
        if view._edge is None and len(self.tensors) > 1:
            rule = "in-place change of a view without a history of memory that has one"
            raise InplaceError(locate(f"{rule}; take the view anew, outside of no_grad(), or change a clone()"))
        self.tensors = self.tensors if view._edge is not None else sharing
        apart = [t for t in self.tensors if not overlaps(t._data)]  # the view is among them
        base = max(apart, key=lambda t: (t._data.size, not is_view(t._data)))
        if any(type(t._edge) is Leaf for t in self.tensors):
            rule = "in-place change of a view of a leaf that requires a gradient"
            raise InplaceError(locate(f"{rule}; wrap it in no_grad(), or change a clone() of the leaf"))
        self.elements = _in_order(base)
        bounds = [np.lib.array_utils.byte_bounds(t._data) for t in self.tensors]
        low, high = np.lib.array_utils.byte_bounds(self.elements._data)
        if not all(low <= start and end <= high for start, end in bounds):
            rule = "in-place change of a view that is part of a graph, whose base is no longer there"
            raise InplaceError(locate(f"{rule}; keep the base, write x[...] = or x[...] +=, or use where"))

    def write(self, view: TensorData, result: TensorData) -> None:
        """Let the memory have the history of a result where a view of it lies."""
        self.places = [_places(t._data, self.elements._data) for t in self.tensors]
        self.now = setitem_at(reshape(self.elements, (-1,)), result, _places(view._data, self.elements._data))

    def renew(self) -> None:
        """Give each tensor the history of what lies in its memory now."""
        for tensor, places in zip(self.tensors, self.places, strict=True):
            before, tensor._edge = tensor._edge, take(self.now, places)._edge
            if before is not None:
                move_kept(before, tensor._edge, tensor)


def _in_order(tensor: TensorData) -> TensorData:
    """A tensor with its axes in the order in which they lie in memory. Raises InplaceError where there are gaps."""
    order = sorted(range(tensor._data.ndim), key=lambda axis: -tensor._data.strides[axis])
    turned: TensorData = permute_dims(tensor, order)
    if not turned._data.flags.c_contiguous:
        raise InplaceError(locate("in-place change of a view of a strided part of a graph; clone() the part first"))
    return turned


def adopt(tensor: TensorData, node: Any, *, changed: bool) -> None:
    """Give `tensor` the history of a node with the same values; `changed` says that it was changed to them in place.

    Raises InplaceError as `assign` does.
    """
    if changed:
        _refuse(tensor)
        if is_view(tensor._data) and is_seen(owner_of(tensor._data)):
            rule = "in-place change of a view, whose base a function of one's own gives no history"
            raise InplaceError(locate(f"{rule}; change a clone() of it"))
        _note(tensor._data, rewrites=True)
        node.sequence = clock.tick()
    tensor._edge = node


def _refuse(tensor: TensorData) -> None:
    if type(tensor._edge) is Leaf:
        remedy = "wrap it in no_grad(), or make a new tensor"
        raise InplaceError(locate(f"in-place change of a leaf that requires a gradient; {remedy}"))


def _cast_result(data: np.ndarray[Any, Any], result: TensorData) -> TensorData:
    """Cast the result to the dtype of the memory it is written to. Raises ShapeError and DTypeError."""
    shape, dtype = result._data.shape, result._data.dtype
    if shape != data.shape:
        raise ShapeError(locate(f"in-place change of a tensor of shape {data.shape} to {shape}; write it out of place"))
    if dtype == data.dtype:
        return result
    is_whole = dtype.kind in "iu" and data.dtype.kind in "iu"
    if not is_whole and not np.can_cast(dtype, data.dtype, "same_kind"):
        raise DTypeError(
            locate(f"in-place change of {data.dtype} values to {dtype}; convert the tensor with astype first")
        )
    converted: TensorData = astype(result, data.dtype)
    return converted


def _check_residuals(node: Node, data: np.ndarray[Any, Any]) -> None:
    """Mark a node that saved a value, or a view of it, that its own in-place result has overwritten."""
    owner = owner_of(data)
    if any(isinstance(value, np.ndarray) and owner_of(value) is owner for value in node.saved or ()):
        node.sequence = 0


def _note(elements: Array, whole: Array | None = None, keys: Key = (), *, rewrites: bool = False) -> None:
    """Note that elements changed: all of an array, or those at `keys` of a `whole` one."""
    owner, line = owner_of(elements), user_line()
    key = id(owner)
    part: Key | Part | None = None
    if whole is not None and elements.size < whole.size:
        part = keys if owner is whole and all(map(_is_fixed, keys)) else Part(elements)  # which costs more than a key
    with turns:
        time = clock.tick()  # so that `latest` is never set back by a thread that was late
        clock.latest = time
        if rewrites:
            clock.rewritten = time
        before = _changes.get(key)
        if before is None:
            before = Change(weakref.ref(owner, lambda _: _changes.pop(key, None)), 0, "", 0, 0)
        parts: Any = () if part is None or len(before.parts) >= _MOST else (*before.parts, (time, part))
        rewritten, all_changed = time if rewrites else before.rewritten, before.whole if parts else time
        _changes[key] = Change(before.owner, time, line, rewritten, all_changed, parts)


def _is_fixed(entry: Any) -> bool:
    """Whether an entry of a key selects the same at any time: a slice may hold tensors."""
    return type(entry) is not slice or {type(entry.start), type(entry.stop), type(entry.step)} <= {int, type(None)}


def _change_since(array: Any, time: int) -> Change | None:
    if time > clock.latest or not isinstance(array, np.ndarray):
        return None
    change = _changes.get(id(owner_of(array)))
    if change is None or change.time <= time:
        return None
    owner = change.owner()
    is_old = change.whole <= time and not any(at > time and _share(array, part, owner) for at, part in change.parts)
    return None if is_old else change


def _share(array: Array, part: Key | Part, owner: Any) -> bool:
    elements = owner[part] if type(part) is tuple else np.asarray(part)
    try:
        return np.shares_memory(array, elements, max_work=10_000)  # type: ignore[arg-type]  # any int
    except np.exceptions.TooHardError:  # PyTorch takes any two parts as common
        return True


def check_saved(node: Node) -> None:
    """Raise InplaceError when a value that a node saved was changed after the node was recorded."""
    check_unchanged(node.op.name, node.saved or (), node.sequence)


def check_unchanged(name: str, values: Iterable[Any], time: int) -> None:
    """Raise InplaceError, naming an op, when one of the values was changed after `time`."""
    for value in values:
        change = _change_since(value, time)
        if change is not None:
            raise InplaceError(
                f"{name}: a value that backward needs was changed in place ({change.line}); "
                "change a clone(), or write the operation out of place"
            )


def check_view(tensor: TensorData) -> None:
    """Raise InplaceError for a view whose base has got another history since the view was taken."""
    time = tensor._edge.sequence if tensor._edge is not None else 0
    change = _change_since(tensor._data, time) if time < clock.rewritten else None
    if change is not None and change.rewritten > time > 0:
        raise InplaceError(
            locate(f"this view's base was changed in place at {change.line}; take the view again after the change")
        )
