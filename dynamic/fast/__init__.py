"""The compiled tape: it gives the results of the tape in Python, and calls that for unusual cases.

The compiled module, `_native`, is called `loops` here; `dynamic/loops/loops.h` lists what is in it. A `Recorder` runs
and records an op, a `Record` is an op that users call. `pullbacks.py` says how a node passes its cotangent back: by
known kernel calls read off the rules, or by the rules.

Importing this raises ImportError where the compiled module was not built.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any
from weakref import WeakSet

import numpy as np

import dynamic._native as loops
from dynamic import grad_mode, inplace, tape
from dynamic import tape as textbook
from dynamic.fast.pullbacks import CompiledPullback, by_rules, pullback
from dynamic.node import Edge, Leaf, Node
from dynamic.options import UnlikeError, attributes, has_options, may_remember
from dynamic.tape import History, Way
from dynamic.tensor import Tensor
from graphs import dispatch, promotion, reverse
from graphs.dims import Sizes
from graphs.frontends.torch import arithmetic, names
from graphs.op import SHAPES, Attrs, Op
from graphs.ops import elementwise
from graphs.ops.linalg import SMALL, TURNED_RATIO, TURNED_WORK, matmul
from graphs.ops.movement import cast
from graphs.ops.scans import MANY, sum_sorted_axes
from graphs.ops.shapes import run_turned
from graphs.ops.slicing import getitem, place

watchers: list[Callable[[Any], None]] = []
"""Called with every array that the compiled tape makes."""

# Ops, run and recorded ------------------------------------------------------------------------------------------------

OPERATORS: tuple[tuple[Op, tuple[str, ...]], ...] = (
    (elementwise.abs, ("__abs__",)),
    (elementwise.add, ("__add__", "__radd__")),
    (elementwise.divide, ("__truediv__", "__rtruediv__")),
    (elementwise.equal, ("__eq__",)),
    (elementwise.greater, ("__gt__",)),
    (elementwise.greater_equal, ("__ge__",)),
    (elementwise.less, ("__lt__",)),
    (elementwise.less_equal, ("__le__",)),
    (matmul, ("__matmul__", "__rmatmul__")),
    (elementwise.multiply, ("__mul__", "__rmul__")),
    (elementwise.negative, ("__neg__",)),
    (elementwise.not_equal, ("__ne__",)),
    (elementwise.subtract, ("__sub__", "__rsub__")),
)
"""The operators of a tensor that are an op where all are floats of one dtype, and PyTorch's function where they are
not; the second name is that of the same with the operands the other way round."""


def operators() -> dict[str, Any]:
    """The methods of a tensor that the compiled tape replaces."""
    methods: dict[str, Any] = {
        "__getitem__": record(getitem, general=Tensor.__getitem__),
        "shape": property(loops.sizes, doc=Tensor.shape.__doc__),
    }
    for op, (plain, *reflected) in OPERATORS:
        general = getattr(Tensor, plain)
        methods[plain] = record(op, general=general, alike=True)
        methods |= {name: record(op, general=general, alike=True, swapped=True) for name in reflected}
    return methods


def functions() -> dict[str, Any]:
    """PyTorch's functions that are one op: the compiled tape takes floats of one dtype, the function other calls."""
    return {name: record(op, general=names.functions[name], alike=True) for name, op in arithmetic.OPS.items()}


def install(op: Op) -> None:
    """Let the compiled tape record an op, from its first use on."""
    if op in _installed:
        return
    _installed.add(op)
    if op.arity != 0 and may_remember(op):
        op.recorder = recorder(op)
        op.shortcuts.update(dict.fromkeys([Tensor] if op.arity is not None else [list, tuple], record(op)))


_installed: WeakSet[Op] = WeakSet()


def recorder(op: Op) -> Any:
    """The description of an op for the loops: its kernel, and its pullbacks with the values they save."""
    return loops.Recorder(
        kernel=op.kernel,
        arity=_arity(op),
        find=functools.partial(_lookup_pullback, op),
        ruled=sum(1 << i for i in range(_MOST_INPUTS if op.arity is None else op.arity) if op.rule(i)),
        is_elementwise=op.family == "elementwise",
        layout=op.layout,
    )


def _lookup_pullback(
    op: Op, wanted: int, count: int, ndims: tuple[int | None, ...] | None
) -> tuple[CompiledPullback, Any]:
    """The pullback for the inputs in a bit set, and its saved values as pairs of a source and a field name."""
    compiled = pullback(op, wanted, count, ndims)
    return compiled, tuple(map(_field, compiled.fields))


def _field(expression: str) -> tuple[int, Any]:
    if expression.isdecimal():
        return _CONSTANT, int(expression)
    if expression == SHAPES:
        return _SHAPES, None
    field = _FIELD.fullmatch(expression)
    if field is None:
        raise ValueError(f"no loop knows how to fetch {expression}")
    source = _SOURCES[field["source"]] if field["number"] is None else int(field["number"])
    return source, field["key"] or field["attribute"]


def record(
    op: Op, *, swapped: bool = False, alike: bool = False, general: Callable[..., Any] | None = None
) -> Callable[..., Any]:
    """The shortcut of an op; with `swapped` its two operands are exchanged.

    Unusual calls go to `general`, by default the op itself; with `alike` so do operands that are not floats of one
    dtype.
    """
    made: Callable[..., Any] = loops.Record(
        recorder=op.recorder or recorder(op),
        op=op,
        general=general or op.general,
        arity=_arity(op),
        prepared=attributes(op) if has_options(op) else None,
        swapped=swapped,
        takes_numbers=op.prepare is None,
        alike=alike,
    )
    return made


def _arity(op: Op) -> int:
    return -1 if op.arity is None else op.arity


_MOST_INPUTS = 64  # as loops.h says
_FIELD = re.compile(r"(?P<source>inputs\[(?P<number>\d+)\]|out|attrs)(\['(?P<key>\w+)'\]|\.(?P<attribute>\w+))?")
_SOURCES = {"out": -1, "attrs": -2}
_SHAPES, _CONSTANT = -3, -4


__all__ = ["bind", "functions", "history", "operators", "step", "walk", "watchers"]


# The tape -------------------------------------------------------------------------------------------------------------


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
        watchers=watchers,
        reduce=np.add.reduce,
        summed=sum_sorted_axes,
        many=MANY,
        product=matmul.kernel,
        matmul=np.matmul,
        run_turned=run_turned,
        dot=np.ndarray.dot,
        divide=np.divide,
        multiply=np.multiply,
        small=SMALL,
        turned_ratio=TURNED_RATIO,
        turned_work=TURNED_WORK,
        place=place.kernel,
        sizes=Sizes,
    )


def unbroadcast(cotangent: Any, shape: tuple[int, ...]) -> Any:
    """`reverse.unbroadcast` of an array, by the same kernels."""
    total = sum_sorted_axes(cotangent, _broadcast_axes(cotangent.shape, shape))
    return total if type(total) is np.ndarray and total.shape == shape else np.asarray(total).reshape(shape)


_broadcast_axes = functools.lru_cache(maxsize=4096)(reverse.broadcast_axes)


_connect()
Sizes.__getitem__ = loops.sizes_getitem  # type: ignore[method-assign]
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
_TOOLS = (_walk_backward, tape.own_array, tape.zeros)
