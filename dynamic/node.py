"""The nodes of the tape: recorded ops, and the leaves where gradients end.

Then the hooks of `Tensor.register_hook` and `Tensor.retain_grad`, and the lock under which threads add gradients.
"""

from __future__ import annotations

import functools
import os
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any, Protocol, Union

import numpy as np

from graphs.dims import Shape
from graphs.errors import NotDifferentiableError, OptionError, locate
from graphs.frontends.torch.printing import grad_fn_name
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

    def __init__(self, hooks: list[Hook], hook: Hook) -> None:
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
