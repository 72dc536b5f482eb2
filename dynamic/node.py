"""The nodes of the tape: recorded ops, and the leaves where gradients end.

Then the hooks of `Tensor.register_hook` and `Tensor.retain_grad`, the lock under which threads add gradients, and the
names that PyTorch gives to nodes.
"""

from __future__ import annotations

import functools
import os
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, Union

import numpy as np

from graphs.dims import Shape
from graphs.errors import NotDifferentiableError, OptionError, locate
from graphs.op import Attrs, Op
from graphs.reverse import Pullback, pullback

Edge = Union["Node", "Leaf", None]
Hook = Callable[[Any], Any]


class TensorData(Protocol):
    """The attributes of a tensor that nodes and in-place changes use: its array, and where its gradient goes."""

    _data: np.ndarray[Any, Any]
    _edge: Edge


class Node:
    """One recorded op.

    pullback     the op, and how a cotangent passes back through it
    attrs        the attributes of the op
    edges        for each input, the node that made it, the leaf that it is, or None where no gradient flows
    saved        the residuals that the VJP rules need; None once backward has used and freed them
    shape, dtype of the result, and so of its cotangent
    sequence     the time of recording
    """

    __slots__ = ("__weakref__", "attrs", "dtype", "edges", "hooks", "pullback", "saved", "sequence", "shape")

    pullback: Pullback
    attrs: Attrs
    edges: Sequence[Edge]
    saved: tuple[Any, ...] | None
    shape: Shape
    dtype: np.dtype[Any]
    sequence: int
    hooks: list[Hook] | None

    @property
    def op(self) -> Op:
        """The op of this node."""
        return self.pullback.op

    def taken(self, keep: bool) -> tuple[Sequence[Edge], tuple[Any, ...]]:
        """The edges and the saved values; both are released unless `keep`, or unless no saved value is a tensor's.

        Raises NotDifferentiableError when they were released before, also by a backward in another thread.
        """
        edges, saved = self.edges, self.saved  # in this order: what is saved is released first
        if saved is None:
            raise self.freed()
        if self.pullback.frees and not keep:
            self.saved = None
            self.edges = ()
        return edges, saved

    def freed(self) -> NotDifferentiableError:
        """The error of a second backward through a freed graph."""
        return NotDifferentiableError(
            locate(
                f"{self.op.name}: backward a second time through a graph that was freed; "
                "pass retain_graph=True the first time"
            )
        )

    def name(self) -> str:
        """PyTorch's name for the op's backward: `MulBackward0`."""
        ndims = {} if self.pullback.ndims is None else {"ndims": self.pullback.axes}
        return grad_fn_name(self.op.name, {**self.attrs, **ndims})

    @property
    def next_functions(self) -> tuple[tuple[Edge, int], ...]:
        """The edge of each input, and the number of its result: always 0, as a node has one result."""
        return tuple([(edge, 0) for edge in self.edges])

    def register_prehook(self, fn: Callable[[tuple[Any, ...]], Any]) -> Handle:
        """Call `fn((gradient,))` before the gradient of the result passes back; a tuple that it returns replaces it."""
        return add_hook(self, lambda gradient: (fn((gradient,)) or (None,))[0])

    def register_hook(self, fn: Callable[..., Any]) -> Handle:
        """Call `fn(grad_inputs, grad_outputs)` once the gradient has passed back; a tuple replaces `grad_inputs`.

        `grad_inputs` has a gradient for each input of the op, None where there is none.
        """
        held = self.pullback  # maybe of the compiled tape, which knows no such hooks: the plain one goes by the rules
        self.pullback = pullback(held.op, held.wanted, held.count, held.ndims)
        return add_hook(self, AfterNode(fn))

    def __repr__(self) -> str:
        return f"<{self.name()} object at {id(self):#x}>"


class Leaf:
    """The place where gradients of a leaf arrive; the leaf, while it requires a gradient, and the tape hold it.

    tensor       the leaf, as long as other code holds it
    shape, dtype of the leaf, and so of its gradient
    closed       whether no further graph may ask for a gradient that arrives here
    """

    __slots__ = ("__weakref__", "closed", "dtype", "hooks", "shape", "tensor")

    edges: tuple[Edge, ...] = ()
    saved: tuple[Any, ...] = ()
    attrs: Attrs = {}  # noqa: RUF012  (nobody writes to it)
    sequence = 0  # before every node

    def __init__(self, tensor: TensorData) -> None:
        self.tensor: weakref.ref[Any] = weakref.ref(tensor)
        self.shape: Shape = tensor._data.shape
        self.dtype: np.dtype[Any] = tensor._data.dtype
        self.hooks: list[Hook] | None = None
        self.closed = False

    def renewed(self, tensor: TensorData) -> Leaf:
        """A new Leaf, with the same hooks, for a tensor whose data was replaced."""
        leaf = Leaf(tensor)
        leaf.hooks = self.hooks
        return leaf

    def name(self) -> str:
        """PyTorch's name for a leaf's place in the graph."""
        return "AccumulateGrad"

    @property
    def next_functions(self) -> tuple[tuple[Edge, int], ...]:
        """An empty tuple: a gradient goes no further than a leaf."""
        return ()

    def __repr__(self) -> str:
        return f"<{self.name()} object at {id(self):#x}>"


turns = threading.RLock()
"""Threads take turns: one at a time adds to a `grad` or to hooks, or notes a change; none while the process forks."""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=turns.acquire, after_in_parent=turns.release, after_in_child=turns.release)


def add_hook(edge: Any, hook: Hook) -> Handle:
    """Add a hook last, but before a `Keep`, which sees the gradient after every other hook."""
    with turns:
        kept = [isinstance(other, Keep) for other in edge.hooks or ()]
        if edge.hooks is None:
            edge.hooks = []
        edge.hooks.insert(len(kept) if isinstance(hook, Keep) else kept.count(False), hook)
        return Handle(edge.hooks, hook)


def move_kept(before: Any, after: Any, tensor: Any) -> None:
    """Move the `Keep` of a tensor to the node of its new history; other hooks stay."""
    kept = [hook for hook in before.hooks or () if isinstance(hook, Keep) and hook.is_of(tensor)]
    for hook in kept:
        before.hooks.remove(hook)
        add_hook(after, hook)


class Handle:
    """The handle of a hook: `remove()` takes the hook away."""

    def __init__(self, hooks: list[Any], hook: Any) -> None:
        self._hooks, self._hook = hooks, hook

    def remove(self) -> None:
        """Stop calling the hook; a second call does nothing."""
        if self._hook in self._hooks:
            self._hooks.remove(self._hook)


class Keep:
    """The hook of `retain_grad`: it adds a gradient to the `grad` of a tensor, as long as the tensor lives."""

    def __init__(self, tensor: Any) -> None:
        self._target = weakref.ref(tensor)

    def is_of(self, tensor: Any) -> bool:
        """Whether this hook is that of a tensor."""
        return self._target() is tensor

    def __call__(self, gradient: Any) -> None:
        """Add a gradient that has arrived to the tensor's `grad`."""
        tensor = self._target()
        if tensor is not None:
            with turns:
                tensor.grad = gradient if tensor.grad is None else tensor.grad + gradient


class AfterNode:
    """The hook of `Node.register_hook`: it waits until the gradient has passed back to the inputs."""

    def __init__(self, after: Callable[..., Any]) -> None:
        self.after = after

    def __call__(self, gradient: Any) -> None:
        """Do nothing yet."""


class AfterLeaf(AfterNode):
    """The hook of `register_post_accumulate_grad_hook`: it waits until the gradient is in `grad` of a leaf."""


def register_multi_grad_hook(tensors: Sequence[Any], fn: Callable[..., Any], *, mode: str = "all") -> Handles:
    """Call `fn(gradients)` when the gradients of all tensors have arrived, or `fn(gradient)` at the first of "any".

    Each backward pass counts anew. Raises OptionError for another mode.
    """
    if mode not in ("all", "any"):
        raise OptionError(locate(f"register_multi_grad_hook: the mode is 'all' or 'any', not {mode!r}"))
    arrived: dict[int, Any] = {}

    def note(number: int, gradient: Any) -> None:
        with turns:
            arrived[number] = gradient
            is_last, is_first = len(arrived) == len(tensors), len(arrived) == 1
            gradients = [arrived[i] for i in range(len(tensors))] if is_last else []
            if is_last:
                arrived.clear()
        if mode == "any" and is_first:
            fn(gradient)
        elif mode == "all" and is_last:
            fn(gradients)

    return Handles([tensor.register_hook(functools.partial(note, i)) for i, tensor in enumerate(tensors)])


class Handles(tuple[Handle, ...]):  # noqa: SLOT001  (a tuple has no room for slots)
    """The handles of several hooks: `remove()` takes all of them away."""

    def remove(self) -> None:
        """Stop calling the hooks."""
        for handle in self:
            handle.remove()


# PyTorch's names of nodes: `grad_fn` in the text of a tensor, checked against PyTorch 2.13 ----------------------------


def grad_fn_name(op_name: str, attrs: Attrs) -> str:
    """PyTorch's name for the backward of an op, such as `SumBackward1` for `sum` with `axis=0`.

    `attrs` are the op's attributes. Where PyTorch's choice depends on the inputs, `attrs["ndims"]` may give one
    entry per input: its number of axes, or None for a Python number. An op without a name of its own gets
    `<Name>Backward0`.
    """
    if op_name in _BY_ATTRS:
        return _BY_ATTRS[op_name](attrs)
    return _NAMES.get(op_name) or "".join(word[:1].upper() + word[1:] for word in op_name.split("_")) + "Backward0"


def _by_axis(whole: str, along: str) -> Callable[[Attrs], str]:
    return lambda attrs: whole if _reduces_all(attrs) else along


def _reduces_all(attrs: Attrs) -> bool:
    """Whether the op reduces all axes; attributes that name all axes need `ndims` to tell."""
    axis = attrs.get("axis")
    if axis is None:
        return True
    return not attrs.get("keepdims") and isinstance(axis, tuple) and attrs.get("ndims") == (len(axis),)


def _by_numbers(tensors: str, *numbers: str) -> Callable[[Attrs], str]:
    """Make a chooser by inputs that are Python numbers: `numbers[i]` if input i is one, else `tensors`."""

    def choose(attrs: Attrs) -> str:
        ndims = attrs.get("ndims", ())
        return next((name for name, ndim in zip(numbers, ndims, strict=False) if ndim is None), tensors)

    return choose


def _power(attrs: Attrs) -> str:
    # An input without axes is nearly always a Python number that has taken the other's dtype.
    base, exponent = attrs.get("ndims", (1, None))
    if not exponent:
        return "PowBackward0" if base is not None else "PowBackward2"
    return "PowBackward1" if base else "PowBackward2"


def _clip(attrs: Attrs) -> str:
    bounds = attrs.get("ndims", ())[1:]
    return "ClampBackward0" if any(ndim is not None for ndim in bounds) else "ClampBackward1"


def _squeeze(attrs: Attrs) -> str:
    axis = attrs.get("axis")
    if axis is None:
        return "SqueezeBackward0"
    return "SqueezeBackward2" if isinstance(axis, tuple) and len(axis) > 1 else "SqueezeBackward1"


def _matmul(attrs: Attrs) -> str:
    left, right = attrs.get("ndims", (2, 2))
    # Batches go through bmm, but the last thing PyTorch's matmul does to them is a view or a copy.
    return _MATMULS.get((left, right)) or ("CloneBackward0" if left == 2 else "UnsafeViewBackward0")


def _getitem(attrs: Attrs) -> str:
    """The name of the last view that the key makes, from left to right; index arrays come after all views."""
    key = attrs.get("key", attrs.get("index", ()))
    items = key if isinstance(key, tuple) else (key,)
    views = [view for view in map(_view, items) if view]
    if "IndexBackward0" in views:
        return "IndexBackward0"
    if not views:
        return "SliceBackward0" if isinstance(key, slice) else "AliasBackward0"
    return views[-1]


def _view(item: object) -> str:
    if item is Ellipsis or (isinstance(item, slice) and _is_whole(item)):
        return ""
    if item is None:
        return "UnsqueezeBackward0"
    if isinstance(item, slice):
        return "SliceBackward0"
    is_integer = isinstance(item, int | np.integer) and not isinstance(item, bool)
    return "SelectBackward0" if is_integer else "IndexBackward0"


def _is_whole(item: slice) -> bool:
    return item.start in (None, 0) and item.stop is None and item.step in (None, 1)


_MATMULS: Mapping[tuple[int, int], str] = {
    (1, 1): "DotBackward0",
    (1, 2): "SqueezeBackward4",
    (2, 1): "MvBackward0",
    (2, 2): "MmBackward0",
}

_BY_ATTRS: Mapping[str, Callable[[Attrs], str]] = {
    "clip": _clip,
    "divide": _by_numbers("DivBackward0", "MulBackward0"),  # 1 / x is x.reciprocal() * 1
    "function": lambda attrs: f"{attrs['call'].kind.__name__}Backward",
    "function_result": lambda attrs: f"{attrs['call'].kind.__name__}Backward",
    "getitem": _getitem,
    "matmul": _matmul,
    "max": _by_axis("MaxBackward1", "AmaxBackward0"),
    "mean": _by_axis("MeanBackward0", "MeanBackward1"),
    "min": _by_axis("MinBackward1", "AminBackward0"),
    "pow": _power,
    "power": _power,
    "prod": _by_axis("ProdBackward0", "ProdBackward1"),
    "remainder": _by_numbers("RemainderBackward1", "RemainderBackward1", "RemainderBackward0"),
    "squeeze": _squeeze,
    "subtract": _by_numbers("SubBackward0", "RsubBackward1"),
    "sum": _by_axis("SumBackward0", "SumBackward1"),
    "take": _by_axis("TakeBackward0", "IndexSelectBackward0"),
}

# Only the ops whose name is not the default's, so `exp` and `log_softmax` are not here.
_NAMES: Mapping[str, str] = {
    "astype": "ToCopyBackward0",
    "avg_pool2d": "AvgPool2DBackward0",
    "batch_norm": "NativeBatchNormBackward0",
    "broadcast_to": "ExpandBackward0",
    "cholesky": "LinalgCholeskyExBackward0",
    "concat": "CatBackward0",
    "conv1d": "ConvolutionBackward0",
    "conv2d": "ConvolutionBackward0",
    "copy": "CloneBackward0",
    "cumulative_prod": "CumprodBackward0",
    "cumulative_sum": "CumsumBackward0",
    "det": "LinalgDetBackward0",
    "dropout": "MulBackward0",
    "einsum": "ViewBackward0",
    "expand_dims": "UnsqueezeBackward0",
    "flatten": "ViewBackward0",
    "identity": "CloneBackward0",
    "inv": "LinalgInvExBackward0",
    "layer_norm": "NativeLayerNormBackward0",
    "linear": "AddmmBackward0",
    "log1p": "Log1PBackward0",
    "log_softmax_gradient": "LogSoftmaxBackwardDataBackward0",
    "matrix_transpose": "TransposeBackward0",
    "max_pool2d": "MaxPool2DWithIndicesBackward0",
    "moveaxis": "PermuteBackward0",
    "multiply": "MulBackward0",
    "negative": "NegBackward0",
    "outer": "MulBackward0",
    "pad": "ConstantPadNdBackward0",
    "permute_dims": "PermuteBackward0",  # and `.T`, which was TBackward0 in older releases
    "repeat": "ViewBackward0",
    "reshape": "ViewBackward0",
    "setitem": "CopySlices",
    "slogdet": "LinalgSlogdetBackward0",
    "softmax_gradient": "SoftmaxBackwardDataBackward0",
    "solve": "LinalgSolveExBackward0",
    "square": "PowBackward0",
    "swapaxes": "TransposeBackward0",
    "take_along_axis": "GatherBackward0",
    "tensordot": "ViewBackward0",
    "tile": "RepeatBackward0",
    "unstack": "UnbindBackward0",
    "vecdot": "SumBackward1",
    "vector_norm": "LinalgVectorNormBackward0",
}
