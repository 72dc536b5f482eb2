"""The compiled tape: it gives the results of the tape in Python, and calls that for unusual cases.

loops.py       the compiled module
records.py     ops run and recorded
pullbacks.py   how a node passes its cotangent back: by known kernel calls read off the rules, or by the rules

Importing this raises ImportError where the compiled module was not built.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from dynamic import grad_mode, inplace, tape
from dynamic import tape as textbook
from dynamic.fast import loops
from dynamic.fast.loops import watchers
from dynamic.fast.pullbacks import CompiledPullback, by_rules, pullback
from dynamic.fast.records import functions, install, operators
from dynamic.node import Edge, Leaf, Node
from dynamic.options import UnlikeError
from dynamic.tape import History, Way
from dynamic.tensor import Tensor
from graphs import dispatch, promotion, reverse
from graphs.op import Attrs, Op
from graphs.ops.linalg import SMALL, TURNED_RATIO, TURNED_WORK, matmul
from graphs.ops.movement import cast
from graphs.ops.slicing import place
from graphs.ops.sums import MANY, sum_sorted_axes

__all__ = ["bind", "functions", "history", "operators", "step", "walk", "watchers"]


def _connect() -> None:
    """Pass the loops the classes, functions and constants that they use."""
    loops.connect(
        tensor=Tensor,
        entry=Node,
        leaf=Leaf,
        pullback=CompiledPullback,
        clock=inplace.clock,
        add=np.add,
        cast=cast,
        unbroadcast=unbroadcast,
        detours=dispatch.detours,
        observers=dispatch.observers,
        numbers=promotion.numbers,
        broken=(*dispatch.BROKEN_RULES, UnlikeError),
        count=inplace.clock.count,
        nothing={},
        watchers=loops.watchers,
        reduce=np.add.reduce,
        summed=sum_sorted_axes,
        many=MANY,
        product=matmul.kernel,
        matmul=np.matmul,
        dot=np.ndarray.dot,
        divide=np.divide,
        multiply=np.multiply,
        small=SMALL,
        turned_ratio=TURNED_RATIO,
        turned_work=TURNED_WORK,
        place=place.kernel,
    )


def unbroadcast(cotangent: Any, shape: tuple[int, ...]) -> Any:
    """`reverse.unbroadcast` of an array, by the same kernels."""
    total = sum_sorted_axes(cotangent, _broadcast_axes(cotangent.shape, shape))
    return total if type(total) is np.ndarray and total.shape == shape else np.asarray(total).reshape(shape)


_broadcast_axes = functools.lru_cache(maxsize=4096)(reverse.broadcast_axes)


_connect()
grad_mode.follow_modes(loops.follow)
_general = tape.interpreter(pullback)


def _bind(op: Op, args: Sequence[Any], attrs: Attrs) -> Any:
    """The fallback of the compiled interpreter: for an op that is new to it, and for unusual cases."""
    install(op)
    return _general(op, args, attrs)


bind = loops.binder(_bind)


def history(roots: Iterable[Edge]) -> History:
    """Every node and leaf that led to the roots."""
    return History(*loops.history(roots))


def walk(nodes: list[Node], cotangents: dict[Any, Any], way: Way) -> dict[Any, Any]:
    """Visit the nodes, the latest first; returns the cotangents of the leaves, and of the nodes that are `wanted`."""
    reached: dict[Any, Any] = {}
    is_plain = not way.create_graph and way.useful is None
    if is_plain and loops.walk(
        nodes, cotangents, reached, way.wanted, way.retain, _attend, textbook.apply_hooks, by_rules
    ):
        return reached
    return reached | textbook.walk(nodes, cotangents, way)


def _attend(node: Node, cotangents: dict[Any, Any]) -> None:
    """Prepare a node that needs more than the loop does: restore its saved values, and apply its hooks."""
    textbook.prepare(node)
    if node.hooks:
        cotangents[node] = textbook.apply_hooks(node, cotangents.pop(node))


def step(f: Callable[..., Any], args: tuple[Any, ...], positions: list[int]) -> tuple[Any, ...] | None:
    """The value and gradients of `f(*args)` in one compiled call; `dynamic/loops/step.c` describes the result."""
    return loops.step(_TOOLS, f, args, positions)


def _walk_backward(nodes: list[Node], cotangents: dict[Any, Any]) -> dict[Any, Any]:
    return walk(nodes, cotangents, _PLAIN)


_PLAIN = Way()
_TOOLS = (_walk_backward, inplace.own_array, tape.zeros)
