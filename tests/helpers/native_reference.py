"""Loop IR run in plain Python, vector by vector: what machine code is compared with, and where a kernel is debugged.

`in_python` has every program bound inside run this way. A fused multiply-add is made of float64 here, so that of
float32 the last bit may differ in rare cases, and of float64 it is rounded twice.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from static.native import binding, ir
from static.native.binding import StepArray
from static.native.flow import Flow, Work
from static.native.ir import (
    Access,
    Constant,
    Fold,
    LaneOp,
    Load,
    Loop,
    LoopBuilder,
    LoopKernel,
    Parameter,
    Statement,
    Store,
    Type,
    Value,
)  # fmt: skip
from static.native.placement import Extent
from static.native.target import Target
from static.native.work import Refusals

Vector = np.ndarray[Any, Any]


@contextmanager
def in_python() -> Iterator[None]:
    """What is bound inside runs its kernels in Python, wherever it is called."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(binding, "compile_work", _interpreted)
        patch.setattr(binding, "checking", lambda function, *_: function)
        yield


def _interpreted(
    work: Work,
    arguments: int,
    made: Sequence[StepArray],
    used: Sequence[Any],
    refusals: Refusals,
    keeps: Any,
    target: Target,
) -> Any:
    """What `binding.compile_work` gives, with kernels of loop IR that plain Python runs."""
    kernels = {recipe: recipe.lower(target) for recipe in dict.fromkeys(used)}

    def run(*arrays: np.ndarray[Any, Any]) -> Any:
        assert len(arrays) == arguments
        if not all(array.flags.c_contiguous and array.flags.aligned for array in arrays):
            return False
        results = tuple(np.empty(one.shape, one.dtype) for one in made)
        follow(work, kernels, [array.ctypes.data for array in (*arrays, *results)])
        if refusals.context.stopped:
            refusals.refuse()
        return results or True

    run.keeps = keeps  # type: ignore[attr-defined]
    return run


def follow(work: Work, kernels: Mapping[Any, LoopKernel], starts: Sequence[int]) -> None:
    """Do the work of a segment; `starts` are the addresses of its arguments and results."""
    for recipe, places in work:
        where = [offset + (starts[which] if which >= 0 else 0) for which, offset in places]
        if not isinstance(recipe, Flow):
            run(kernels[recipe], where, recipe.extents)
        elif recipe.kind == "parallel":
            for shared in recipe.lists:
                follow(shared, kernels, starts)
        elif recipe.kind == "switch":
            index = int(_number(where[0], recipe.dtype))
            follow(recipe.lists[min(max(index, 0), len(recipe.lists) - 1)], kernels, starts)
        else:
            _loop(recipe.lists, where, kernels, starts)


def _loop(
    lists: Sequence[Work], truths: Sequence[int], kernels: Mapping[Any, LoopKernel], starts: Sequence[int]
) -> None:
    turn = 0
    while True:
        condition, body, after = lists[3 * turn : 3 * turn + 3]
        follow(condition, kernels, starts)
        if not _number(truths[turn], "b1"):
            follow(after, kernels, starts)
            return
        follow(body, kernels, starts)
        turn = 1 - turn


def _number(address: int, dtype: str) -> Any:
    kind = np.dtype(bool if dtype == "b1" else dtype)
    return np.frombuffer(memoryview((ctypes.c_char * kind.itemsize).from_address(address)), kind)[0]


def run(kernel: LoopKernel, addresses: Sequence[int], extents: Sequence[Extent]) -> None:
    """Run a kernel on memory at these addresses, one for each parameter; those without an extent are scratch."""
    known: dict[Value, Any] = dict(zip(kernel.parameters, addresses, strict=True))
    with np.errstate(all="ignore"):
        _Machine(known, dict(zip(kernel.parameters, extents, strict=False))).statements(kernel.body)


def _dtype(type: Type) -> np.dtype[Any]:
    return np.dtype(bool if type.dtype == "b1" else type.dtype)


class _Machine:
    def __init__(self, known: dict[Value, Any], extents: Mapping[Value, Extent] | None = None) -> None:
        self.known, self.extents = known, extents or {}

    def of(self, value: Value) -> Any:
        if isinstance(value, Constant):
            return np.broadcast_to(np.array(value.number).astype(_dtype(value.type)), value.type.lanes)
        return self.known[value]

    def statements(self, body: Sequence[Statement]) -> None:
        for node in body:
            if isinstance(node, Loop):
                self.loop(node)
            elif isinstance(node, Store):
                self.elements(node.access, is_written=True)[:] = self.of(node.value)[: max(node.access.active, 1)]
            else:
                self.known[node] = self.value(node)

    def value(self, node: Load | LaneOp | Fold) -> Vector:
        if isinstance(node, Load):
            loaded = np.zeros(node.type.lanes, _dtype(node.type))
            found = self.elements(node.access)
            loaded[: len(found)] = found
            return loaded if node.access.step else np.repeat(loaded[:1], node.type.lanes)
        if isinstance(node, Fold):
            return self.folded(node)
        return _OPERATIONS[node.name](node, *map(self.of, node.args))

    def elements(self, access: Access, *, is_written: bool = False) -> Vector:
        """The active lanes where they lie in memory, which is where the recipe says that the kernel reads or writes."""
        base: Parameter = access.base
        dtype = _dtype(base.type)
        index = access.offset + sum(int(np.sum(self.of(counter))) * stride for counter, stride in access.terms)
        count = access.active if access.step else 1
        count = min(count, 1) if access.active == 1 else count
        first = self.known[base] + (index + min(0, (count - 1) * access.step)) * dtype.itemsize
        whole = (abs((count - 1) * access.step) + 1) * dtype.itemsize
        extent = self.extents.get(base)
        if extent is not None:
            low = first - self.known[base]
            assert extent.low <= low, (extent, low)
            assert low + whole <= extent.high, (extent, low + whole)
            assert extent.is_written or not is_written
        memory = np.frombuffer(memoryview((ctypes.c_char * whole).from_address(first)), dtype)
        return memory[:: access.step or 1] if count > 1 else memory[:1]

    def folded(self, node: Fold) -> Vector:
        vector = self.of(node.vector)
        while len(vector) > 1:
            half = len(vector) // 2
            b, type = LoopBuilder(()), Type(node.type.dtype, half)
            one, other = Value(type), Value(type)
            joined = ir.JOINS[node.name](b, one, other)
            inner = _Machine({one: vector[:half], other: vector[half:]})
            inner.statements(b.body)
            vector = inner.of(joined)
        return np.asarray(vector)

    def loop(self, node: Loop) -> None:
        carried = [self.of(init) for init in node.inits]
        for counter in range(node.start, node.stop, node.step):
            self.known[node.counter] = counter
            self.known.update(zip(node.carried, carried, strict=True))
            self.statements(node.body)
            carried = [self.of(value) for value in node.gives]
        self.known.update(zip(node.results, carried, strict=True))


def _fused(node: LaneOp, a: Vector, b: Vector, c: Vector) -> Vector:
    wide = a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64)
    return np.asarray(wide.astype(_dtype(node.type)))


def _plain(function: Callable[..., Any]) -> Callable[..., Vector]:
    return lambda node, *args: np.asarray(function(*args)).astype(_dtype(node.type), copy=False)


def _interleaved(node: LaneOp, a: Vector, b: Vector) -> Vector:
    both = np.stack([a, b], axis=1).reshape(-1)
    return both[: len(a)] if node.name == "low" else both[len(a) :]


_OPERATIONS: Mapping[str, Callable[..., Vector]] = {
    "add": _plain(np.add), "sub": _plain(np.subtract), "mul": _plain(np.multiply), "div": _plain(np.divide),
    "neg": _plain(np.negative), "abs": _plain(np.abs), "sqrt": _plain(np.sqrt), "floor": _plain(np.floor),
    "ceil": _plain(np.ceil), "trunc": _plain(np.trunc), "rint": _plain(np.rint), "copysign": _plain(np.copysign),
    "eq": _plain(np.equal), "ne": _plain(np.not_equal), "lt": _plain(np.less), "le": _plain(np.less_equal),
    "gt": _plain(np.greater), "ge": _plain(np.greater_equal), "ugt": _plain(lambda a, b: ~(a <= b)),
    "and": _plain(np.bitwise_and), "or": _plain(np.bitwise_or), "xor": _plain(np.bitwise_xor),
    "not": _plain(np.invert), "shl": _plain(np.left_shift), "ashr": _plain(np.right_shift),
    "select": _plain(np.where), "cast": _plain(lambda a: a), "fma": _fused,
    "splat": lambda node, a: np.repeat(a, node.type.lanes), "front": lambda node, a: a[: node.type.lanes],
    "back": lambda node, a: a[node.type.lanes :], "low": _interleaved, "high": _interleaved,
    "bits": lambda node, a: np.ascontiguousarray(a).view(_dtype(node.type)),
}  # fmt: skip
