"""From a graph to seconds: what its kernels take by their specs alone, in each engine."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass, replace
from typing import Any

from compare.advice import memory
from compare.advice.costs import Costs, Curve, Kernel, Overhead
from compare.advice.synthetic import LANE
from graphs.cost import node_cost
from graphs.ir import INPUT, Graph, Node
from graphs.spec import TensorSpec
from static.codegen import blocks, groups
from static.passes.iteration_space import fused, result

_FALLBACK = {"elementwise": "add", "reduction": "sum:rows", "linalg": "matmul"}
_BY_FLOPS = ("convolution", "convolution_input", "convolution_weight")
_LOOPS = ("scan", "while_loop", "while_loop_gradient")


@dataclass(frozen=True)
class StepSeconds:
    """The seconds of a step, and where they go. `new` is what fresh arrays cost beside the same kernels in place."""

    kernels: float = 0.0
    new: float = 0.0
    ops: float = 0.0
    call: float = 0.0
    count: int = 0

    @property
    def total(self) -> float:
        """All of them."""
        return self.kernels + self.new + self.ops + self.call

    def __add__(self, other: StepSeconds) -> StepSeconds:
        return StepSeconds(*map(operator.add, astuple(self), astuple(other)))

    def times(self, factor: float) -> StepSeconds:
        """The parts of so many steps."""
        *seconds, count = astuple(self)
        scaled: list[Any] = [*(second * factor for second in seconds), round(count * factor)]
        return StepSeconds(*scaled)


def key(node: Node) -> str:
    """Which curve a kernel has: a reduction differs by whether it runs along the last axis."""
    if node.op.family != "reduction":
        return node.op.name
    axes, last = _axes(node), len(node.inputs[0].spec.shape) - 1
    return f"{node.op.name}:{'rows' if last in axes or not axes else 'columns'}"


def amount(node: Node) -> float:
    """How much work a kernel has: operations of one product, or elements of its largest array, in units of 4 bytes."""
    if node.op.name == "matmul":
        return _flops(node) / _batch(node)
    if node.op.name in _BY_FLOPS:
        return _flops(node)
    specs = [node.spec] if _gathers(node) else [node.spec, *(source.spec for source in node.inputs)]
    return max(_nbytes(spec) / 4 for spec in specs)


def rows(node: Node) -> float:
    """How often the innermost loop of a kernel starts, beyond what its curve was measured with."""
    shape: Any = node.spec.shape
    if node.op.family == "elementwise":
        shapes = [source.spec.shape for source in node.inputs]
        return math.prod(shape) / _inner(shapes, shape) if any(s != shape for s in shapes) else 0.0
    if node.op.family == "reduction" and node.inputs[0].spec.shape:
        sizes: Any = node.inputs[0].spec.shape
        whole = math.prod(sizes)
        return max(0.0, whole / max(1, sizes[-1]) - whole / LANE) if len(sizes) > 1 else 0.0
    return 0.0


def kernel_seconds(node: Node, costs: Costs) -> float:
    """The seconds of a kernel as compiled code calls it, into an array that is there."""
    if node.op.family == "source" or node.op is result:
        return 0.0
    kernel, work = _kernel(node, costs), amount(node)
    seconds = kernel.out.at(work)
    if node.op.name != "matmul":
        return seconds + _started(node, costs)
    if _is_vector(node):
        return costs.kernels["matmul:vector"].out.at(max(_nbytes(source.spec) for source in node.inputs) / 4)
    count = _batch(node)
    thin = costs.kernels["matmul:thin"].out.at(_nbytes(node.inputs[0].spec) / 4 / count)  # bound by bytes, not flops
    return count * max(seconds, thin) - (count - 1) * kernel.out.at(0)  # one call goes through all


def new_seconds(node: Node, costs: Costs) -> float:
    """What a kernel takes more as the op itself calls it, into a new array."""
    if node.op.family == "source":
        return 0.0
    fresh = 0.0 if node.op.view else costs.fresh.at(_nbytes(node.spec))
    return _kernel(node, costs).wrapped + fresh


def dynamic_parts(graph: Graph, costs: Costs, overhead: Overhead, trips: float = 1) -> StepSeconds:
    """A step of the dynamic engine whose graph this is; `while` loops, if it is a traced one, turn `trips` times."""
    touched = memory.touched(graph)
    returned = costs.faulted(touched.largest, touched.held)
    found = StepSeconds(new=returned, call=overhead.call + overhead.array * _arrays(graph))
    return found + _recorded(calls(graph, trips), touched, costs, overhead)


def repeated_parts(forward: Graph, costs: Costs, overhead: Overhead, trips: float) -> StepSeconds:
    """What a traced gradient of this graph computes again of branches and loops, and a tape keeps instead."""
    return _recorded(_again(forward, trips), memory.touched(forward), costs, overhead)


def _recorded(
    ran: Iterable[tuple[Node, float]], touched: memory.Touched, costs: Costs, overhead: Overhead
) -> StepSeconds:
    """Ops that the dynamic engine records, and how often."""
    found = StepSeconds()
    for node, times in ran:
        ops = overhead.op + (0.0 if node.op.family == "elementwise" else overhead.other)
        kernel = max(kernel_seconds(node, costs), _moving(touched, node, costs.moved))
        found += StepSeconds(kernel, new_seconds(node, costs), ops, count=1).times(times)
    return found


def static_parts(graph: Graph, costs: Costs, trips: float = 1) -> StepSeconds:
    """A call of the executable of an optimised graph, whose `while` loops run `trips` times."""
    found = StepSeconds(call=costs.static.call + costs.static.array * _arrays(graph))
    touched = memory.touched(graph)
    for node, times in calls(graph, trips):
        parts = _static(node, costs)
        moving = _moving(touched, node, costs.planned) if parts.count else 0.0
        found += replace(parts, kernels=max(parts.kernels, moving)).times(times)
    return found


def calls(graph: Graph, trips: float) -> Iterator[tuple[Node, float]]:
    """Every node that is run, and how often: those of loops as often as they turn, of the branches the longest."""
    for node in graph.calls:
        if node.op.family == "control" and node.op not in (fused, result) and node.subgraphs:
            for inner, times in _turns(node, trips):
                yield from ((one, times * more) for one, more in calls(inner, trips))
        elif node.op.name != "part":
            yield node, 1.0


def _again(graph: Graph, trips: float, depth: int = 0) -> Iterator[tuple[Node, float]]:
    """Every node inside control flow, and how often gradients compute it again: once for each node around it."""
    for node in graph.calls:
        if node.op.family == "control" and node.subgraphs:
            asked = node.subgraphs[0] if node.op.name == "while_loop" else None  # a condition has no gradient
            for inner, times in _turns(node, trips):
                if inner is not asked:
                    yield from ((one, times * more) for one, more in _again(inner, trips, depth + 1))
        elif depth:
            yield node, float(depth)


def loops(graph: Graph) -> Iterator[Graph]:
    """The graphs that loops of unknown length run, at any depth."""
    for node in graph.nodes:
        if node.op.name.startswith("while_loop"):
            yield from node.subgraphs
        else:
            yield from (found for inner in node.subgraphs for found in loops(inner))


def _turns(node: Node, trips: float) -> list[tuple[Graph, float]]:
    if "branches" in node.attrs:
        return [(max(node.subgraphs, key=len), 1.0)]
    turns = node.attrs.get("length", trips if node.op.name in _LOOPS else 1)
    return [(inner, float(turns)) for inner in node.subgraphs]


def _static(node: Node, costs: Costs) -> StepSeconds:
    if node.op is fused:
        return _fused(node, costs)
    if node.op is result:  # an array that the group has written into
        return StepSeconds()
    if node.op.view:
        free = memory.owner(node).op is not INPUT  # a view of a planned buffer is made once
        return StepSeconds() if free else StepSeconds(kernel_seconds(node, costs), count=1)
    return StepSeconds(kernel_seconds(node, costs), ops=costs.static.op, count=1)


def _fused(node: Node, costs: Costs) -> StepSeconds:
    """The ops of a group, once for each block, at the size of a block."""
    body = node.subgraphs[0]
    cut = blocks.cut(groups.lower(body, node.attrs["space"]), {})
    count = max(1, math.ceil(cut.axes[0] / cut.rows)) if cut.axes and cut.rows else 1
    found = StepSeconds(ops=costs.static.op)
    for one in body.calls:
        if not one.op.view:
            kernel = _kernel(one, costs)
            seconds = kernel.out.at(amount(one) / count) * count + _started(one, costs)
            found += StepSeconds(seconds, ops=costs.block * count, count=1)
    return found


def _moving(touched: memory.Touched, node: Node, curve: Curve) -> float:
    """The seconds it takes to move the arrays of an op, whatever it computes.

    No kernel takes less: the roofline (Williams, Waterman and Patterson, CACM 52, 2009).
    """
    return sum(nbytes * curve.at(distance) for nbytes, distance in touched.by_op.get(node, ()))


def _started(node: Node, costs: Costs) -> float:
    """What it costs that the innermost loop of a kernel starts so often."""
    return rows(node) * (costs.lane if node.op.family == "reduction" else costs.row)


def _is_vector(node: Node) -> bool:
    """Whether a product is that of one matrix and a vector."""
    one, other = (source.spec.shape for source in node.inputs)
    return (len(one), len(other)) in ((1, 2), (2, 1)) or (len(one) == len(other) == 2 and 1 in (one[0], other[1]))


def _kernel(node: Node, costs: Costs) -> Kernel:
    for name in (key(node), node.op.name, _FALLBACK.get(node.op.family, "concat")):
        if name in costs.kernels:
            return costs.kernels[name]
    raise KeyError(f"the calibration has no kernel for {node.op.name}")


def _arrays(graph: Graph) -> int:
    return len(graph.inputs) + len(graph.outputs)


def _gathers(node: Node) -> bool:
    return node.op.view or node.op.name in ("take", "take_along_axis")


def _axes(node: Node) -> tuple[int, ...]:
    axis = node.attrs.get("axis", ())
    return axis if isinstance(axis, tuple) else (axis,)


def _inner(shapes: list[Any], shape: Any) -> int:
    """The length of the innermost loop: the last axes along which every operand varies, or does not, as a whole."""
    padded = [(1,) * (len(shape) - len(s)) + tuple(s) for s in shapes]
    long = [axis for axis, size in enumerate(shape) if size != 1]
    inner = 1
    for axis in reversed(long):
        if any((p[axis] == 1) != (p[long[-1]] == 1) for p in padded):
            break
        inner *= shape[axis]
    return max(1, inner)


def _batch(node: Node) -> float:
    return float(max(1, math.prod(node.spec.shape[:-2])))


def _flops(node: Node) -> float:
    flops: Any = node_cost(node).flops
    return float(flops)


def _nbytes(spec: TensorSpec) -> float:
    nbytes: Any = spec.nbytes
    return float(nbytes)
