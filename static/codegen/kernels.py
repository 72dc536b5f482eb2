"""How a kernel is called in generated code: the shortest way that computes the same bits.

`call` writes the call and `kernel` gives the function. `resolve`, at the end, puts numbers in the place of symbolic
sizes when a program is bound.

A large result is written again over memory that nobody sees any more, since fresh pages cost more than many kernels do.
It is an array over memory that its `ResultMaker` keeps. Every view, memoryview or other export of a NumPy array holds
the array itself, or the memory below it, and so do theirs in turn. The memory's reference count therefore tells whether
anybody can still see it. While somebody can, the next call takes other memory.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from sys import getrefcount
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from graphs import dims
from graphs.dims import Dim
from graphs.ir import Graph, Node
from graphs.op import RuleTable
from graphs.ops import reductions
from graphs.ops.linalg import SMALL, may_turn
from graphs.spec import TensorSpec
from static import memory
from static.passes.rewrite import is_product

NAMES = {"divide": np.true_divide}  # functions that calls use beside the kernel


class CallForm(NamedTuple):
    """A way to call a kernel that is shorter than the kernel itself.

    reducer     the ufunc that the kernel of a reduction calls
    method      a view as a method, which is called faster than a function, and the attribute that it takes; only of
                arrays, not of the scalars that NumPy returns
    by_keyword  it takes its buffer by keyword, though it is a ufunc
    """

    reducer: np.ufunc | None = None
    method: Any = None
    attribute: str = ""
    by_keyword: bool = False


CALLS: RuleTable[CallForm] = RuleTable("kernel calls", otherwise=CallForm())
CALLS.enter({
    "sum": CallForm(np.add), "prod": CallForm(np.multiply), "max": CallForm(np.maximum),
    "min": CallForm(np.minimum), "any": CallForm(np.logical_or), "all": CallForm(np.logical_and),
    "permute_dims": CallForm(method=np.ndarray.transpose, attribute="axes"),
    "reshape": CallForm(method=np.ndarray.reshape, attribute="shape"),
    "maximum": CallForm(by_keyword=True), "minimum": CallForm(by_keyword=True),
})  # fmt: skip


def kernel(node: Node, out: bool = True) -> Any:
    """Return the function that generated code calls for a node, with or without a buffer for the result."""
    if _is_plain(node):
        return node.op.kernel
    if is_reducer(node):
        return reductions.reducer(CALLS[node.op].reducer or np.add, node.spec.dtype, node.inputs[0].spec.size)
    if _is_method(node, out):
        return CALLS[node.op].method
    return _product(node) if is_product(node) else node.op.kernel


def _is_plain(node: Node) -> bool:
    """Whether the op's own kernel is called, with operands, buffer and attributes as for most ops."""
    return not (node.op in CALLS or node.op.divides or is_product(node))


def _product(node: Node) -> Any:
    """Return the function that matmul's kernel would choose, so that bits agree.

    For other layouts `dot` makes copies.
    """
    if not is_dot(node):
        return np.matmul
    x, y = (i.shape for i in node.inputs)
    if not all(isinstance(size, int) for size in (*x, *y)) or may_turn(x, y, node.spec.dtype):
        return node.op.kernel
    return np.matmul if node.spec.size > SMALL else np.ndarray.dot


def _is_method(node: Node, out: bool) -> bool:
    return not out and CALLS[node.op].method is not None and node.inputs[0].spec.ndim > 0


def is_dot(node: Node) -> bool:
    """Whether a product is of two float matrices of one dtype, for which `dot` makes one call of BLAS."""
    if not is_product(node):
        return False
    return all(
        s.ndim == 2 and s.dtype == node.spec.dtype and s.dtype.char in "fd" for s in (i.spec for i in node.inputs)
    )


def is_reducer(node: Node) -> bool:
    """Whether a node is a ufunc's reduction, or a mean that is such a sum divided, without a wider dtype."""
    return CALLS[node.op].reducer is not None or is_divided(node)


def is_divided(node: Node) -> bool:
    """Whether a node is a mean that is computed as a sum in its own dtype, divided by the count."""
    same = bool(node.inputs) and node.spec.dtype == node.inputs[0].spec.dtype
    return node.op.divides and same and node.spec.dtype.itemsize >= 4


def attribute(node: Node, key: str) -> Any:
    """Return the value of a parameter: an attribute of the node, or the number of elements of a mean."""
    if key == "count" and is_divided(node):
        return dims.product(node.inputs[0].spec.shape[axis] for axis in node.attrs["axis"])
    return node.attrs[key]


def call(
    node: Node, name: str, operands: Sequence[str], out: str, attr: Callable[[str], str], workspace: str = ""
) -> str:
    """Return an expression that computes the node.

    `name` holds `kernel(node)`, `attr` names attributes, and `out` and `workspace` may be "". NumPy reads arguments by
    position faster than by keyword.
    """
    if not _is_plain(node):
        if is_reducer(node):
            return _reduction(node, name, operands[0], out, attr)
        if _is_method(node, bool(out)):
            return f"{name}({operands[0]}, {attr(CALLS[node.op].attribute)})"
    arguments = list(operands)
    if out:
        positional = not CALLS[node.op].by_keyword and (isinstance(kernel(node), np.ufunc) or is_product(node))
        arguments.append(out if positional else f"out={out}")
    arguments += [f"{key}={attr(key)}" for key in node.attrs]
    if workspace:
        arguments.append(f"workspace={workspace}")
    return f"{name}({', '.join(arguments)})"


def _reduction(node: Node, name: str, x: str, out: str, attr: Callable[[str], str]) -> str:
    dtype = attr("dtype") if "dtype" in node.attrs else "None"
    reduced = f"{name}({x}, {attr('axis')}, {dtype}, {out or 'None'}, {attr('keepdims')})"
    if not is_divided(node):
        return reduced
    return f"divide({reduced}, {attr('count')}{', ' + out if out else ''})"


Runs = Mapping[Graph, Callable[..., Any]]


def resolve(value: Any, sizes: Mapping[str, int], runs: Runs = MappingProxyType({})) -> Any:
    """Return an attribute with a number for every symbolic size, and for every graph the function that runs it."""
    if isinstance(value, Dim):
        return dims.evaluate(value, sizes)
    if isinstance(value, tuple):
        return tuple(resolve(v, sizes, runs) for v in value)
    if isinstance(value, slice):
        return slice(*(resolve(v, sizes) for v in (value.start, value.stop, value.step)))
    if isinstance(value, TensorSpec):
        return TensorSpec([dims.evaluate(size, sizes) for size in value.shape], value.dtype)
    if isinstance(value, Graph):
        return runs[value]
    return value


# Memory of large results ----------------------------------------------------------------------------------------------

Array = np.ndarray[Any, Any]

LARGE = 1 << 18  # bytes of a result from which on keeping pays: the allocator keeps the pages of smaller arrays itself
KEPT = 2  # a loop that holds one step's results until it has the next ones alternates between two

# CPython with its lock: references are counted at once, and by one thread at a time.
COUNTED = sys.implementation.name == "cpython" and getattr(sys, "_is_gil_enabled", lambda: True)()


class ResultMaker:
    """Make the array for one result of a program, anew at each call: over kept memory that nobody sees, or fresh."""

    __slots__ = ("_dtype", "_kept", "_nbytes", "_shape", "_spare")

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any], kept: int = KEPT) -> None:
        self._shape, self._dtype = shape, dtype
        self._kept = kept if COUNTED else 0
        self._nbytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        self._spare: list[Array] = []

    def __call__(self) -> Array:
        """Return an array of any content that nobody else sees."""
        spare = self._spare
        for number in range(len(spare)):
            if getrefcount(spare[number]) <= _UNSEEN:
                return self._array_over(spare[number])
        if not self._kept or self._nbytes < LARGE:
            return np.empty(self._shape, self._dtype)
        del spare[: len(spare) + 1 - self._kept]
        spare.append(np.empty(self._nbytes + memory.ALIGNMENT, np.uint8))
        return self._array_over(spare[-1])

    def _array_over(self, block: Array) -> Array:
        start = -block.ctypes.data % memory.ALIGNMENT
        return np.ndarray(self._shape, self._dtype, block, start)

    @property
    def nbytes(self) -> int:
        """The bytes of the memory that is kept."""
        return sum(block.nbytes for block in self._spare)


_spare = [np.empty(1)]
_UNSEEN = getrefcount(_spare[0])  # the reference count of an object that nobody else holds
