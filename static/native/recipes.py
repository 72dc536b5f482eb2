"""What a native node becomes for given sizes: recipes, which say all about kernels, and the places they work on."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from graphs.ir import Graph, Node
from graphs.ops import reductions
from graphs.ops.convolution import convolution, convolution_input, convolution_weight
from graphs.ops.families import refuse_empty
from graphs.ops.indexing import flat_index, scatter
from graphs.ops.movement import concat, reshape
from graphs.ops.slicing import place
from graphs.spec import TensorSpec
from static.codegen.kernels import resolve
from static.native import convolutions, functions, grouping, picking, pooling, weight_gradients
from static.native.flow import Location, Work
from static.native.groups import Group
from static.native.laid import ArrayLayout, GroupStep, LaidArray, broadcast, runs
from static.native.products import Matrix, Product, Turn
from static.native.target import NativeError
from static.passes.iteration_space import is_group, is_view


def of(node: Node, operands: Sequence[LaidArray], results: Sequence[LaidArray], sizes: Mapping[str, int]) -> Work:
    """The recipes of a native node, with the places of operands and results."""
    if is_group(node):
        return [_group(node, resolve(node.attrs["space"], sizes), operands, results)]
    if node.op is reshape:
        return copied(operands[0], results[0].shaped(operands[0].shape))
    if node.op is concat:
        return _joined(operands, results[0], node.attrs["axis"])
    if node.op is place:
        return _placed(operands[0], results[0], resolve(node.attrs["key"], sizes))
    if node.op in (convolution, convolution_input, convolution_weight):
        return _convolution(node, operands, results[0])
    if node.op.family == "window":
        return pooling.pooled(node, operands, results[0])
    if node.op.name in picking.PICKING:
        return _picked(node, operands, results[0], sizes)
    return _product(operands, results[0])


# Copies --------------------------------------------------------------------------------------------------------------


def copied(source: LaidArray, target: LaidArray) -> Work:
    """The recipe that copies an array to another of its shape; none where it lies there already."""
    if source.shape != target.shape:
        raise NativeError(f"native code would copy {source.shape} to {target.shape}; use backend='numpy'")
    if source == target or not math.prod(source.shape):
        return []
    arrays = [_typed(source, source.shape), _typed(target, source.shape)]
    axes, first = runs(source.shape, None, [strides for _, strides in arrays])
    read, written = (ArrayLayout(dtype, tuple(strides[a[-1]] if a else 0 for a in axes)) for dtype, strides in arrays)
    sizes = tuple(math.prod(source.shape[a] for a in axis) for axis in axes)
    step = GroupStep("positive", read.dtype, read.dtype, (("operand", 0),), 0, False)
    return [(Group(sizes, first, (read,), ((written, 0),), (step,)), [source.place, target.place])]


def _placed(source: LaidArray, target: LaidArray, key: tuple[Any, ...]) -> Work:
    """Zeros, and the array copied to where a key says."""
    whole = np.lib.stride_tricks.as_strided(np.empty(1, target.dtype), target.shape, target.strides)
    part = whole[(*key, ...)]  # an array, even of one element
    offset = target.offset + part.ctypes.data - whole.ctypes.data
    copies = copied(source, target._replace(offset=offset, shape=part.shape, strides=part.strides))
    return copies if part.size == whole.size else [*_zeros(target), *copies]


def _zeros(target: LaidArray) -> Work:
    """The recipe that fills an array in row-major order."""
    dtype, size = functions.dtype_of(target.dtype), math.prod(target.shape)
    step = GroupStep("positive", dtype, dtype, (("number", dtype, bytes(target.dtype.itemsize)),), 0, False)
    return [(Group((size,), 0, (), ((ArrayLayout(dtype, (1,)), 0),), (step,)), [target.place])]


def _joined(parts: Sequence[LaidArray], target: LaidArray, axis: int) -> Work:
    """The copies of what is joined along an axis; what was computed where it belongs stays."""
    work: Work = []
    start = 0
    for piece in parts:
        work += copied(piece, target._replace(offset=target.offset + start * target.strides[axis], shape=piece.shape))
        start += piece.shape[axis]
    return work


# Groups --------------------------------------------------------------------------------------------------------------


def _group(node: Node, space: tuple[int, ...], operands: Sequence[LaidArray], results: Sequence[LaidArray]) -> Any:
    body: Graph = node.attrs["body"]
    draft = grouping.analysed(body, node.attrs["space"])
    for member in body.nodes:
        if member.op in (reductions.max, reductions.min):
            refuse_empty(TensorSpec(space, member.spec.dtype), tuple(grouping.reduced_axes(member, space)))
    arrays = [_typed(laid, space) for laid in operands]
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


def _typed(laid: LaidArray, space: Sequence[int]) -> tuple[str, tuple[int, ...]]:
    return functions.dtype_of(laid.dtype), broadcast(laid, space)


def _result(out: Node, laid: LaidArray, space: tuple[int, ...]) -> tuple[str, tuple[int, ...]]:
    """How a result lies along the axes of the space: a reduction that drops axes lies along those it keeps."""
    if out.op.family != "reduction" or out.attrs["keepdims"]:
        return _typed(laid, space)
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
        if node.op.family == "reduction":
            count = math.prod([space[a] for a in grouping.reduced_axes(node, space)]) if node.op.name == "mean" else 0
            over = "row" if row else "memory"
            steps.append(GroupStep(node.op.name, gives, gives, args, stage[node], row, over, count))
        else:
            kind = functions.computed_in(node)
            steps.append(
                GroupStep(node.op.name, functions.dtype_of(kind or node.spec.dtype), gives, args, stage[node], row)
            )
    return tuple(steps)


# Convolutions --------------------------------------------------------------------------------------------------------


def _convolution(node: Node, operands: Sequence[LaidArray], out: LaidArray) -> Work:
    (x, y), window, groups = operands, node.attrs["window"], node.attrs["groups"]
    if node.op is convolution:
        return convolutions.convolved(x, y, out, window, groups)
    if node.op is convolution_weight:
        return weight_gradients.weight_gradient(x, y, out, window, groups)
    work = convolutions.convolved_back(x, y, out, window, groups)
    return work if convolutions.is_covered(window) or not math.prod(out.shape) else [*_zeros(out), *work]


# Picking -------------------------------------------------------------------------------------------------------------


def _picked(node: Node, operands: Sequence[LaidArray], out: LaidArray, sizes: Mapping[str, int]) -> Work:
    """What is added goes to zeros, and what is written to a copy of the first operand."""
    if node.op is flat_index:
        return picking.flattened(operands, out, resolve(node.attrs["sizes"], sizes))
    work = picking.picked(node.op, operands, out, node.attrs["axis"])
    if node.op is scatter:
        return [*copied(operands[0], out), *work]
    is_empty = not math.prod(out.shape)
    return [*_zeros(out), *work] if node.op in picking.ADDING and not is_empty else work


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


def turned(recipe: Product, places: Sequence[Location], at: int) -> Work:
    """A product whose right matrix is turned before, to an address: the two kernels."""
    right, (left, source, out) = recipe.right, places
    turn = Turn(recipe.dtype, recipe.inner, recipe.columns, right.row, right.column)
    return [(turn, [source, (-1, at)]), (recipe._replace(right=Matrix((), recipe.columns, 1)), [left, (-1, at), out])]


def _stack(laid: LaidArray, batch: Sequence[int]) -> tuple[int, ...]:
    """The strides of a stack of matrices, broadcast to all of the batch."""
    own = laid.steps[:-2] if len(laid.shape) > 1 else ()
    return (*[0] * (len(batch) - len(own)), *own)
