"""The recipes of native nodes for given sizes, and the places that their kernels work on.

The table `KERNELS` is at the end; before it come copies, groups, convolutions, picking and products.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from graphs.ir import Graph, Node
from graphs.op import RuleTable
from graphs.ops import elementwise
from graphs.ops.families import refuse_empty
from graphs.ops.windows import Window
from graphs.spec import TensorSpec, TupleSpec
from static.codegen.kernels import resolve
from static.native import convolutions, functions, grouping, picking, pooling, weight_gradients
from static.native.flow import Location, Work
from static.native.groups import Group
from static.native.placement import JOINED_BY, ArrayLayout, GroupStep, LaidArray, broadcast, runs
from static.native.products import Matrix, Product, Turn
from static.native.target import NativeError
from static.passes.fusion import is_view


class NativeOp(NamedTuple):
    """Says if a node (that is no view) runs as native code, and makes its work from operands and results."""

    admits: Callable[[Node], bool]
    of: Callable[[Node, Sequence[LaidArray], Sequence[LaidArray], Mapping[str, int]], Work]


# Copies --------------------------------------------------------------------------------------------------------------


def copy_recipe(source: LaidArray, target: LaidArray) -> Work:
    """Return the work that copies an array to another of its shape; none where it lies there already."""
    if source.shape != target.shape:
        raise NativeError(f"native code would copy {source.shape} to {target.shape}; use backend='numpy'")
    if source == target or not math.prod(source.shape):
        return []
    arrays = [_type_and_strides(source, source.shape), _type_and_strides(target, source.shape)]
    axes, first = runs(source.shape, None, [strides for _, strides in arrays])
    read, written = (ArrayLayout(dtype, tuple(strides[a[-1]] if a else 0 for a in axes)) for dtype, strides in arrays)
    sizes = tuple(math.prod(source.shape[a] for a in axis) for axis in axes)
    step = GroupStep(elementwise.positive, read.dtype, read.dtype, (("operand", 0),), 0, False)
    return [(Group(sizes, first, (read,), ((written, 0),), (step,)), [source.place, target.place])]


def _place_recipe(source: LaidArray, target: LaidArray, key: tuple[Any, ...]) -> Work:
    """Return the work that fills an array with zeros, and copies another to the part that a key selects."""
    whole = np.lib.stride_tricks.as_strided(np.empty(1, target.dtype), target.shape, target.strides)
    part = whole[(*key, ...)]  # an array, even of one element
    offset = target.offset + part.ctypes.data - whole.ctypes.data
    copies = copy_recipe(source, target._replace(offset=offset, shape=part.shape, strides=part.strides))
    return copies if part.size == whole.size else [*_zeros(target), *copies]


def _zeros(target: LaidArray) -> Work:
    """Return the work that fills an array in row-major order with zeros."""
    dtype, size = functions.dtype_of(target.dtype), math.prod(target.shape)
    step = GroupStep(elementwise.positive, dtype, dtype, (("number", dtype, bytes(target.dtype.itemsize)),), 0, False)
    return [(Group((size,), 0, (), ((ArrayLayout(dtype, (1,)), 0),), (step,)), [target.place])]


def _concat_recipe(parts: Sequence[LaidArray], target: LaidArray, axis: int) -> Work:
    """Return the copies that join arrays along an axis; a part that was computed in place needs none."""
    work: Work = []
    start = 0
    for piece in parts:
        work += copy_recipe(
            piece, target._replace(offset=target.offset + start * target.strides[axis], shape=piece.shape)
        )
        start += piece.shape[axis]
    return work


# Groups --------------------------------------------------------------------------------------------------------------


def _group(node: Node, space: tuple[int, ...], operands: Sequence[LaidArray], results: Sequence[LaidArray]) -> Any:
    body: Graph = node.attrs["body"]
    draft = grouping.analyse_body(body, node.attrs["space"])
    for member in body.nodes:
        if JOINED_BY[member.op] in ("max", "min"):
            refuse_empty(TensorSpec(space, member.spec.dtype), tuple(grouping.reduced_axes(member, space)))
    arrays = [_type_and_strides(laid, space) for laid in operands]
    arrays += [_result(out, laid, space) for out, laid in zip(body.outputs, results, strict=True)]
    axes, first = runs(space, draft.split, [strides for _, strides in arrays])
    laid = [ArrayLayout(dtype, tuple(strides[a[-1]] if a else 0 for a in axes)) for dtype, strides in arrays]
    number = {n: i for i, n in enumerate(n for n in body.nodes if n.inputs and not is_view(n))}
    recipe = Group(
        tuple(math.prod(space[a] for a in axis) for axis in axes),
        first,
        tuple(laid[: len(operands)]),
        tuple((array, number[out]) for array, out in zip(laid[len(operands) :], body.outputs, strict=True)),
        _steps(body, draft, number, space),
    )
    return recipe, [member.place for member in (*operands, *results)]


def _type_and_strides(laid: LaidArray, space: Sequence[int]) -> tuple[str, tuple[int, ...]]:
    return functions.dtype_of(laid.dtype), broadcast(laid, space)


def _result(out: Node, laid: LaidArray, space: tuple[int, ...]) -> tuple[str, tuple[int, ...]]:
    """Return the dtype and strides of a result along the axes of the space; dropped axes have stride 0."""
    if out.op not in JOINED_BY or out.attrs["keepdims"]:
        return _type_and_strides(laid, space)
    over, steps = grouping.reduced_axes(out, space), iter(laid.steps)
    missing = len(space) - out.inputs[0].spec.ndim
    strides = [0 if axis in over or axis < missing else next(steps) for axis in range(len(space))]
    return functions.dtype_of(laid.dtype), tuple(strides)


def _steps(
    body: Graph, draft: grouping.GroupDraft, number: Mapping[Node, int], space: tuple[int, ...]
) -> tuple[GroupStep, ...]:
    operand = {node: i for i, node in enumerate(body.inputs)}
    stage = grouping.stages(body)

    def argument(node: Node) -> tuple[Any, ...]:
        while is_view(node) and node.inputs:
            node = node.inputs[0]
        if node.is_input:
            return "operand", operand[node]
        if node.is_constant:
            value = np.asarray(node.attrs["value"])
            return "number", functions.dtype_of(value.dtype), value.tobytes()
        return "step", number[node]

    steps = []
    for node in number:
        args, gives = tuple(argument(source) for source in node.inputs), functions.dtype_of(node.spec.dtype)
        row = draft.positions[node] != draft.full
        if node.op in JOINED_BY:
            count = math.prod([space[a] for a in grouping.reduced_axes(node, space)]) if node.op.divides else None
            over = "row" if row else "memory"
            steps.append(GroupStep(node.op, gives, gives, args, stage[node], row, over, count))
        else:
            kind = functions.compute_dtype(node)
            steps.append(GroupStep(node.op, functions.dtype_of(kind or node.spec.dtype), gives, args, stage[node], row))
    return tuple(steps)


# Convolutions --------------------------------------------------------------------------------------------------------


def _convolution_gradient_recipe(x: LaidArray, y: LaidArray, out: LaidArray, window: Window, groups: int) -> Work:
    work = convolutions.convolution_gradient(x, y, out, window, groups)
    return work if convolutions.is_covered(window) or not math.prod(out.shape) else [*_zeros(out), *work]


# Picking -------------------------------------------------------------------------------------------------------------


def _picks(way: picking.Way, *, is_along: bool = False) -> NativeOp:
    """Return the entry of an op that picks: it adds to zeros, or puts into a copy of the first operand."""

    def recipe_of(
        node: Node, operands: Sequence[LaidArray], results: Sequence[LaidArray], _: Mapping[str, int]
    ) -> Work:
        (out,) = results
        work = picking.pick_recipe(way, operands, out, node.attrs["axis"], is_along=is_along)
        if way == "put":
            return [*copy_recipe(operands[0], out), *work]
        is_empty = not math.prod(out.shape)
        return [*_zeros(out), *work] if way == "add" and not is_empty else work

    return NativeOp(partial(picking.is_picked, adds=way == "add"), recipe_of)


# Products ------------------------------------------------------------------------------------------------------------


def _product(operands: Sequence[LaidArray], out: LaidArray) -> Work:
    left, right = operands
    rows = left.shape[-2] if len(left.shape) > 1 else 1
    columns = right.shape[-1] if len(right.shape) > 1 else 1
    drops = (len(left.shape) == 1) + (len(right.shape) == 1)
    batch = out.shape[: len(out.shape) - 2 + drops]
    below = list(out.steps[len(batch) :])
    out_row = below.pop(0) if len(left.shape) > 1 else 0
    out_column = below.pop(0) if len(right.shape) > 1 else 0
    recipe = Product(
        functions.dtype_of(out.dtype),
        batch,
        rows,
        left.shape[-1],
        columns,
        Matrix(_stack(left, batch), left.steps[-2] if len(left.shape) > 1 else 0, left.steps[-1]),
        Matrix(_stack(right, batch), right.steps[-2 if len(right.shape) > 1 else -1],
               right.steps[-1] if columns > 1 else 1),
        Matrix(out.steps[: len(batch)], out_row, out_column if columns > 1 else 1),
    )  # fmt: skip
    return [(recipe, [left.place, right.place, out.place])] if math.prod(out.shape) else []


def with_transpose(recipe: Product, places: Sequence[Location], at: int) -> Work:
    """Return the two kernels of a product whose right matrix is first transposed into memory at an address."""
    right, (left, source, out) = recipe.right, places
    turn = Turn(recipe.dtype, recipe.inner, recipe.columns, right.row, right.column)
    return [(turn, [source, (-1, at)]), (recipe._replace(right=Matrix((), recipe.columns, 1)), [left, (-1, at), out])]


def _stack(laid: LaidArray, batch: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of a stack of matrices, broadcast to the whole batch."""
    own = laid.steps[:-2] if len(laid.shape) > 1 else ()
    return (*[0] * (len(batch) - len(own)), *own)


# Which ops are native ------------------------------------------------------------------------------------------------

BLAS = 1 << 30
"""The number of multiplications in a matrix product from which NumPy's BLAS is faster by a tenth: 1,024 cubed."""


def is_copied(spec: Any) -> bool:
    """Whether elements of this dtype can be copied natively."""
    return (
        not isinstance(spec, TupleSpec) and spec.dtype.kind in functions.ANY and spec.dtype.itemsize in functions.WIDTHS
    )


def _is_moved(node: Node) -> bool:
    """Whether a node and its operands have one dtype whose elements can be copied natively."""
    kinds = {node.spec.dtype, *(source.spec.dtype for source in node.inputs)}
    return len(kinds) == 1 and is_copied(node.spec)


def _is_placed(node: Node) -> bool:
    return all(isinstance(k, (slice, int)) for k in node.attrs["key"]) and _is_moved(node)


def is_product(node: Node) -> bool:
    """Whether a matrix product is of one floating dtype, and not so large that BLAS is faster."""
    return _is_of_one_float(node) and not _is_for_blas(node)


def _is_of_one_float(node: Node) -> bool:
    alike = all(source.spec.dtype == node.spec.dtype and source.spec.ndim for source in node.inputs)
    return alike and node.spec.dtype.kind == "f" and node.spec.dtype.itemsize >= 4


def _is_for_blas(node: Node) -> bool:
    """Whether the sizes of a product are numbers, and each matrix product takes `BLAS` multiplications or more."""
    left, right = (source.spec.shape for source in node.inputs)
    sizes = (*left[-2:], *right[-1:]) if len(left) > 1 and len(right) > 1 else ()
    return bool(sizes) and all(isinstance(size, int) for size in sizes) and math.prod(sizes) >= BLAS


def _convolves(recipe: Callable[[LaidArray, LaidArray, LaidArray, Window, int], Work]) -> NativeOp:
    return NativeOp(
        _is_of_one_float,
        lambda node, operands, results, _: recipe(
            operands[0], operands[1], results[0], node.attrs["window"], node.attrs["groups"]
        ),
    )


KERNELS: RuleTable[NativeOp] = RuleTable("native code", otherwise=NativeOp(lambda _: False, lambda *_: []))
KERNELS.enter({
    "fused": NativeOp(
        lambda _: True,
        lambda node, operands, results, sizes: [
            _group(node, resolve(node.attrs["space"], sizes), operands, results)
        ],
    ),
    "reshape": NativeOp(
        _is_moved, lambda _, operands, results, __: copy_recipe(operands[0], results[0].with_shape(operands[0].shape))
    ),
    "concat": NativeOp(
        _is_moved, lambda node, operands, results, _: _concat_recipe(operands, results[0], node.attrs["axis"])
    ),
    "place": NativeOp(
        _is_placed,
        lambda node, operands, results, sizes:
            _place_recipe(operands[0], results[0], resolve(node.attrs["key"], sizes)),
    ),
    "matmul": NativeOp(is_product, lambda _, operands, results, __: _product(operands, results[0])),
    "convolution": _convolves(convolutions.convolution),
    "convolution_input": _convolves(_convolution_gradient_recipe),
    "convolution_weight": _convolves(weight_gradients.weight_gradient),
    "take": _picks("take"),
    "take_along_axis": _picks("take", is_along=True),
    "scatter_add": _picks("add"),
    "add_along_axis": _picks("add", is_along=True),
    "scatter": _picks("put"),
    "flat_index": NativeOp(
        picking.is_flattened,
        lambda node, operands, results, sizes: picking.flatten_recipe(
            operands, results[0], resolve(node.attrs["sizes"], sizes)
        ),
    ),
})  # fmt: skip
KERNELS.for_op(*pooling.FORMS)(
    NativeOp(pooling.is_pooled, lambda node, operands, results, _: pooling.pooling_recipe(node, operands, results[0]))
)
