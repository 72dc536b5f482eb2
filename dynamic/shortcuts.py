"""Shortcuts: ops on tensors recorded by one straight-line function each, with no call beside the kernel's.

`bind` in `dynamic/tape.py` says how an op is run and recorded. A shortcut does the same for tensors and Python numbers
where nothing is out of the ordinary, and hands over to it otherwise: whatever goes wrong is told there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from weakref import WeakSet

import numpy as np

from dynamic import compiled, inplace, mode, native
from dynamic.entry import Entry
from dynamic.prepared import UnlikeError, has_options, is_exact, preparer
from dynamic.pullback import Pullback, pullback
from dynamic.source import function
from dynamic.tensor import Tensor
from graphs import dispatch, promotion
from graphs.op import Op
from graphs.ops.elementwise import pow
from graphs.ops.linalg import matmul
from graphs.ops.slicing import getitem

OPERATORS = {
    "abs": ("__abs__",),
    "add": ("__add__", "__radd__"),
    "divide": ("__truediv__", "__rtruediv__"),
    "equal": ("__eq__",),
    "greater": ("__gt__",),
    "greater_equal": ("__ge__",),
    "less": ("__lt__",),
    "less_equal": ("__le__",),
    "matmul": ("__matmul__", "__rmatmul__"),
    "multiply": ("__mul__", "__rmul__"),
    "negative": ("__neg__",),
    "not_equal": ("__ne__",),
    "subtract": ("__sub__", "__rsub__"),
}
"""The operators of a tensor that are an op, and the same with the operands the other way round."""

_VALUES: dict[str, Any] = {
    "Tensor": Tensor,
    "Entry": Entry,
    "ndarray": np.ndarray,
    "asarray": np.asarray,
    "new": object.__new__,
    "broken": (*dispatch.BROKEN_RULES, OverflowError, UnlikeError),
    "detours": dispatch.detours,
    "clock": inplace.clock,
    "precedes": inplace.precedes_change,
    "tick": inplace.clock.tick,
    "thread": mode.thread,
    "now": mode.now,
    "kinds": (int, float),
    "number": promotion.numbers,
    "nothing": {},
}


def install(op: Op) -> None:
    """Give an op its shortcut, if it can have one: on its first use, so that importing compiles nothing."""
    if op in _tried:
        return
    _tried.add(op)
    if native.loops is not None and is_recorded(op):
        op.recorder = compiled.recorder(native.loops, op)
    elif not _is_possible(op):
        return
    if native.loops is not None and op is getitem:
        item: Any = compiled.record(native.loops, op, item=Tensor.__getitem__)
        setattr(Tensor, "__getitem__", item)  # noqa: B010  (a method, to a type checker)
    made = _compiled(op, _OPTIONS if has_options(op) else "x" if op.arity == 1 else "x, y")
    op.shortcuts.update(dict.fromkeys([Tensor] if op.arity is not None else [list, tuple], made))
    plain, *reflected = OPERATORS.get(op.name, (None,))
    if plain:
        setattr(Tensor, plain, op.shortcuts[Tensor])
    for name in reflected:
        setattr(Tensor, name, _compiled(op, "y, x"))


_tried: WeakSet[Op] = WeakSet()
_OPTIONS = "x, *args, **options"


def is_recorded(op: Op) -> bool:
    """Whether compiled loops may run the op: one that fails is run again by the interpreter, which explains it."""
    return op.arity != 0 and op.family not in ("custom", "control")


def _is_possible(op: Op) -> bool:
    """Whether one function can record the op, whatever its inputs are."""
    if has_options(op):
        return op.arity == 1 and op.family not in ("custom", "control")
    return op is matmul or (op.family == "elementwise" and op.arity in (1, 2) and op is not pow)


def _compiled(op: Op, parameters: str) -> Callable[..., Any]:
    if native.loops is not None and is_recorded(op):
        return compiled.record(native.loops, op, swapped=parameters.startswith("y"))
    pullbacks = _pullbacks(op)
    body = [
        *_running(op),
        "if type(out) is not ndarray: out = asarray(out)",
        "result = new(Tensor)",
        "result._data = out",
        "result.grad = None",
        *_recording(op),
        "return result",
    ]
    values = _VALUES | {"op": op, "kernel": op.kernel, "general": op.general} | pullbacks
    return function("record", parameters, body, values, op.name)


# The parts of a shortcut. `a` and `b` are the arrays of the operands, `u` and `v` their edges ------------------------


def _running(op: Op) -> list[str]:
    """The operands and the result `out`; all that is not a tensor, or a number beside one, goes the general way."""
    if has_options(op):
        general, text = f"return general({_OPTIONS})", _WITH_OPTIONS
    elif op.arity == 1:
        general, text = "return general(x)", _ONE_OPERAND
    else:
        general, text = "return general(x, y)", _TWO_OPERANDS
    numbers = str(op is not matmul)
    return text.replace("GENERAL", general).replace("NUMBERS", numbers).strip().splitlines()


_ONE_OPERAND = """
if detours or type(x) is not Tensor: GENERAL
a = x._data
u = x._edge
if clock.rewritten and precedes(u): GENERAL
try: out = kernel(a)
except broken: GENERAL
"""
_WITH_OPTIONS = """
if detours or type(x) is not Tensor or (clock.rewritten and precedes(x._edge)): GENERAL
a = x._data
for value in (*args, *options.values()) if options else args:
    if type(value) is tuple and not exact(value): GENERAL
try:
    attrs, pull = prepared(a.shape, a.dtype.num, *args, **options)
    out = kernel(a, **attrs)
except broken: GENERAL
u = x._edge if out.dtype.kind == "f" else None
"""
# A number that is 0 takes the general way: 0.0 and -0.0 are one key.
_TWO_OPERANDS = """
if detours: GENERAL
try:
    if type(x) is Tensor:
        a = x._data
        u = x._edge
        if type(y) is Tensor:
            b = y._data
            v = y._edge
        elif NUMBERS and type(y) in kinds and y:
            b = number[y, type(y), a.dtype.num]
            v = None
        else: GENERAL
    elif NUMBERS and type(y) is Tensor and type(x) in kinds and x:
        b = y._data
        v = y._edge
        a = number[x, type(x), b.dtype.num]
        u = None
    else: GENERAL
    if clock.rewritten and (precedes(u) or precedes(v)): GENERAL
    out = kernel(a, b)
except broken: GENERAL
"""


def _recording(op: Op) -> Iterator[str]:
    """The edge of the result: a new entry, for whichever of the operands want a gradient."""
    yield "result._edge = None"
    if not op.rules:
        return
    for i, edge in enumerate("uv"[: op.arity]):
        if op.rule(i) is None:
            yield f"{edge} = None"
    yield "if u is None: return result" if op.arity == 1 else "if u is None and v is None: return result"
    yield "if thread.blocks and not now().recording: return result"
    yield "entry = result._edge = Entry()"
    if op.arity == 1:
        yield from _kept(op, 1, "")
    else:
        yield "if v is None:"
        yield from _kept(op, 1, "    ")
        yield "elif u is None:"
        yield from _kept(op, 2, "    ")
        yield "else:"
        yield from _kept(op, 3, "    ")
    yield "entry.attrs = attrs" if has_options(op) else "entry.attrs = nothing"
    yield "entry.edges = (u, v)" if op.arity == 2 else "entry.edges = (u,)"
    yield "entry.shape = out.shape"
    yield "entry.dtype = out.dtype"
    yield "entry.hooks = None"
    yield "entry.sequence = tick()"


def _kept(op: Op, wanted: int, indent: str) -> Iterator[str]:
    """The pullback for the inputs in the bit set `wanted`, and what it saves."""
    if any(op.rule(i) is None for i in range(op.arity or 0) if wanted >> i & 1):
        yield f"{indent}pass"
        return
    fields = pullback(op, wanted, op.arity or 0, None).fields
    saved = ", ".join([*fields, ""]).replace("inputs[0]", "a").replace("inputs[1]", "b")
    yield f"{indent}entry.saved = ({saved})"
    if has_options(op):
        made = "pull"
    elif op is matmul:
        made = f"pull{wanted}[a.ndim, b.ndim]"
    elif wanted < 3 and op.arity == 2:
        made = f"pull{wanted} if type({'y' if wanted == 1 else 'x'}) is Tensor else number{wanted}"
    else:
        made = f"pull{wanted}"
    yield f"{indent}entry.pullback = {made}"


def _pullbacks(op: Op) -> dict[str, Any]:
    """Pullbacks by what wants a gradient: the first input, the second, or both; and where the other is a number."""
    if has_options(op):
        return {"prepared": preparer(op), "exact": is_exact}
    if op is matmul:
        return {f"pull{wanted}": _ByAxes(op, wanted) for wanted in (1, 2, 3)}
    count, wanted = op.arity or 0, _wanted(op)
    found = {f"pull{w}": pullback(op, w, count, None) for w in wanted}
    ndims: dict[int, tuple[int | None, ...]] = {1: (1, None), 2: (None, 1)}
    return found | {f"number{w}": pullback(op, w, count, ndims[w]) for w in wanted if count == 2 and w < 3}


def _wanted(op: Op) -> list[int]:
    """Every set of inputs that all have a rule, as a bit set."""
    count = op.arity or 0
    return [w for w in range(1, 1 << count) if all(op.rule(i) for i in range(count) if w >> i & 1)]


class _ByAxes(dict[tuple[int, ...], Pullback]):
    """The pullback of an op by the numbers of axes of its inputs."""

    def __init__(self, op: Op, wanted: int) -> None:
        super().__init__()
        self._op, self._wanted = op, wanted

    def __missing__(self, ndims: tuple[int, ...]) -> Pullback:
        found = self[ndims] = pullback(self._op, self._wanted, len(ndims), ndims)
        return found
