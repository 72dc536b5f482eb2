"""Counts of the work of a step in our two engines, from its graphs: from tracing alone where that suffices.

Where a function branches on values, one run of the dynamic engine tells which ops it runs. A function that must not be
run is converted and counted in both engines with the longest of its branches, and with `TURNS` turns of a loop whose
length only a run knows.

The terms of kernels are the same in both engines, which run the same kernels: calls, elements and operations by family,
and the bytes that have left a cache. Beside them each engine has its own terms for its costs of a call, an op and an
array.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import dynamic
import static
from compare.engines.graphduel.steps import transform_step
from compare.records.own import CallCounts, Control, Terms
from graphs import tree
from graphs.errors import ControlFlowError
from graphs.ir import Graph, Node, node_cost
from graphs.op import RuleTable
from graphs.spec import TensorSpec
from static import memory
from static.codegen import groups
from static.passes import pipeline
from static.passes.fusion import is_group, is_result
from static.trace.tracing import trace_function

TURNS = 10.0
"""The assumed number of turns of a loop whose length only a run would tell, in a function that is not run."""
LANE = 1000
"""The length in elements from which on starting the innermost loop of a reduction costs nothing."""
CACHES = {"256 KiB": 1 << 18, "2 MiB": 1 << 21, "16 MiB": 1 << 24}
"""The sizes, in bytes touched in turn, that separate the caches of common machines."""
LARGE = 1 << 17
"""The size in bytes from which on the C library takes an array's memory from the system, and returns it."""
HELD = 1 << 21
"""The size in bytes from which on a step returns its memory to the system, so that the next step asks anew."""

_CONVERTED = (
    "the function branches on values: static takes it with convert=True, and this prediction takes the longest of its "
    f"branches in both engines, and {TURNS:.0f} turns of a loop whose length only a run knows"
)


def counts(
    f: Callable[..., Any], traced_f: Callable[..., Any], args: tuple[Any, ...], argnum: int | None, *, run: bool
) -> CallCounts:
    """Return the counts of a step of `f`, with its gradients in `argnum` if that is given.

    `traced_f` is the function that the static engine traces: f itself, or f without Python's control flow on values. In
    the second case f is also run, if `run` allows it. Raises the errors of tracing and of `f`.
    """
    traced = static.trace(transform_step(static, traced_f, argnum), *args)
    branches = traced_f is not f
    eager, trips, forward = traced, _trips(traced, traced), None
    if branches and run:
        eager = dynamic.record(transform_step(dynamic, f, argnum), *args)
        trips = _trips(traced, eager)
    elif branches:
        trips = TURNS
        forward = static.trace(transform_step(static, traced_f, None), *args) if argnum is not None else None
    recorded = _count_recorded(eager, argnum, 1.0 if branches and run else trips, forward)
    control: Control = "in the graph" if branches else "none"
    remarks = [_CONVERTED] if branches and not run else []
    nodes = sum(len(graph) for graph in traced.nested())
    compile = {"static compilations": 1.0, "traced nodes": float(nodes)}
    optimised, _ = pipeline.run(traced)
    ops = round(sum(amount for term, amount in recorded.items() if term in ("recorded ops", "forward ops")))
    return CallCounts(recorded, _count_compiled(optimised, trips), compile, ops, control, remarks, ran=branches and run)


def _count_recorded(graph: Graph, argnum: int | None, trips: float, forward: Graph | None) -> Terms:
    """Count a step of the dynamic engine from its graph, or the traced graph; `while` loops turn `trips` times.

    The nodes of `forward` inside control flow are subtracted: a traced gradient computes them again, a tape keeps them.
    """
    step = "forward" if argnum is None else "recorded"
    touched = BytesTouched.by(graph)
    terms = {f"{step} calls": 1.0, f"{step} arrays": float(len(graph.inputs) + len(graph.outputs))}
    ran = [(touched, node, times) for node, times in calls(graph, trips)]
    if forward is not None:
        there = BytesTouched.by(forward)
        ran += [(there, node, -times) for node, times in _again(forward, trips)]
    for memory_of, node, times in ran:
        new = 0.0 if node.op.view or node.is_source else size_of(node)
        own = {f"{step} ops": 1.0, "new bytes": new, "new bytes of large arrays": new if new >= LARGE else 0.0}
        _add(terms, {**_kernel(node), **memory_of.far(node), **own}, times)
    if touched.held > HELD:
        terms["bytes held by a large step"] = touched.held
    return terms


def _count_compiled(graph: Graph, trips: float) -> Terms:
    """Count a call of the executable of an optimised graph, whose `while` loops turn `trips` times."""
    terms = {"static calls": 1.0, "static arrays": float(len(graph.inputs) + len(graph.outputs))}
    touched = BytesTouched.by(graph)
    for node, times in calls(graph, trips):
        if is_result(node):  # an array that the group has written into
            continue
        if not node.op.view:
            _add(terms, {**(_fused_terms(node) if is_group(node) else _kernel(node)), **touched.far(node)}, times)
        elif owner(node).is_input:  # a view of a planned buffer is made once
            _add(terms, {"static views": 1.0}, times)
    _add(terms, {"static turns": 1.0}, loop_turns(graph, trips))
    return terms


def _fused_terms(node: Node) -> Terms:
    """Count the ops of a fused group, once for each block."""
    body = node.subgraphs[0]
    cut = groups.cut(groups.lower(body, node.attrs["space"]), {})
    count = max(1, math.ceil(cut.axes[0] / cut.rows)) if cut.axes and cut.rows else 1
    terms: Terms = {}
    for part in body.calls:
        if not part.op.view:
            inside = {term: amount for term, amount in _kernel(part).items() if not term.endswith("kernels")}
            _add(terms, {**inside, "kernels in blocks": float(count)}, 1.0)
    return terms


def _kernel(node: Node) -> Terms:
    """Count one call of a node's kernel, by the rules of its op's family."""
    return {} if node.is_source or is_result(node) or node.op.view else _KERNELS[node.op](node)


def _movement_terms(node: Node) -> Terms:
    moved = size_of(node) if node.op.gathers else max(map(size_of, (node, *node.inputs)))
    return {f"{node.op.family} kernels": 1.0, "elements that others move": moved / 4}


def _elementwise(node: Node) -> Terms:
    if type(node.spec) is not TensorSpec:
        return _movement_terms(node)
    work = {"elements": float(math.prod(node.spec.shape)), "elementwise flops": _flops(node)}
    return {"elementwise kernels": 1.0, **work, "short rows": _rows(node)}


def _reduction(node: Node) -> Terms:
    shape: Any = node.inputs[0].spec.shape
    size = math.prod(shape)  # the innermost loop starts once a lane, beyond once for each `LANE` elements
    short = max(0.0, size / max(1, shape[-1]) - size / LANE) if len(shape) > 1 else 0.0
    return {"reduction kernels": 1.0, "reduced elements": size_of(node.inputs[0]) / 4, "short lanes": short}


def _flops(node: Node) -> float:
    flops: Any = node_cost(node).flops  # a number, as sizes are
    return float(flops)


_KERNELS: RuleTable[Callable[[Node], Terms]] = RuleTable(
    "counted kernels", otherwise=_movement_terms, families={"elementwise": _elementwise, "reduction": _reduction}
)


@_KERNELS.for_op("matmul")
def _product(node: Node) -> Terms:
    sizes = [size_of(source) / 4 for source in node.inputs]
    left, right = (source.spec.shape for source in node.inputs)
    axes = len(left), len(right)
    if axes in ((1, 2), (2, 1)) or (axes == (2, 2) and 1 in (left[0], right[1])):  # of a matrix and a vector
        return {"product kernels": 1.0, "elements of products with vectors": max(sizes)}
    shape: Any = node.spec.shape
    each = {"products": float(max(1, math.prod(shape[:-2]))), "flops of products": _flops(node)}
    return {"product kernels": 1.0, **each, "elements of products": sum(sizes)}


@_KERNELS.for_op("convolution", "convolution_input", "convolution_weight")
def _convolution(node: Node) -> Terms:
    return {"convolution kernels": 1.0, "flops of convolutions": _flops(node)}


@_KERNELS.for_op("scatter", "scatter_add")
def _scatter_terms(node: Node) -> Terms:
    return {"scattering kernels": 1.0, "elements that others move": max(map(size_of, (node, *node.inputs))) / 4}


def calls(graph: Graph, trips: float) -> Iterator[tuple[Node, float]]:
    """Yield each node that runs, and how often: nodes of loops once per turn, of branches only the longest one."""
    for node in graph.calls:
        if _is_control(node):
            for inner, turns in _turns(node, trips):
                yield from ((part, turns * more) for part, more in calls(inner, trips))
        elif not node.is_part:
            yield node, 1.0


def loop_turns(graph: Graph, trips: float) -> float:
    """Count the turns of loops, at any depth."""
    times = 0.0
    for node in filter(_is_control, graph.calls):
        turns = _turns(node, trips)
        times += 0.0 if "branches" in node.attrs else max(count for _, count in turns)
        times += sum(count * loop_turns(inner, trips) for inner, count in turns)
    return times


def _again(graph: Graph, trips: float, depth: int = 0) -> Iterator[tuple[Node, float]]:
    """Yield each node inside control flow, with how often gradients compute it again: once per enclosing node."""
    for node in graph.calls:
        if _is_control(node):
            condition = node.attrs.get("condition")  # it has no gradient
            for inner, turns in _turns(node, trips):
                if inner is not condition:
                    yield from ((part, turns * more) for part, more in _again(inner, trips, depth + 1))
        elif depth:
            yield node, float(depth)


def _is_control(node: Node) -> bool:
    return bool(node.subgraphs) and not is_group(node)


def _turns(node: Node, trips: float) -> list[tuple[Graph, float]]:
    if "branches" in node.attrs:
        return [(max(node.subgraphs, key=len), 1.0)]
    turns = node.attrs.get("length", trips)
    return [(inner, float(turns)) for inner in node.subgraphs]


def _trips(traced: Graph, eager: Graph) -> float:
    """Estimate how often loops turned in the dynamic run, from its number of ops and the ops of one turn."""
    inside = sum(sum(1 for _ in calls(graph, 1)) for graph in _loops(traced))
    outside = sum(1 for _ in calls(traced, 0))
    once = sum(1 for _ in calls(eager, 1))
    return max(1.0, (once - (outside - inside)) / inside) if inside else 1.0


def _loops(graph: Graph) -> Iterator[Graph]:
    """Yield the graphs that loops of unknown length run, at any depth."""
    for node in graph.nodes:
        if "condition" in node.attrs or "step" in node.attrs:
            yield from node.subgraphs
        else:
            yield from (loop for inner in node.subgraphs for loop in _loops(inner))


@dataclass
class BytesTouched:
    """For each op, the arrays it reads or makes: their bytes, and the bytes touched since that memory was last.

    A kernel is fast on arrays that it has just touched. In a step an operand was touched some time ago, and arrays
    touched since may have driven it out of the caches: its reuse distance (Mattson et al., IBM Systems Journal 9,
    1970). An array is held until the last op that reads it, or a view of it; a result to the end. Memory that was
    freed last is taken first. No distance is longer than the bytes that the step holds, with its inputs. `held` is the
    peak of the bytes that the step holds.
    """

    lifetimes: Mapping[Node, tuple[int, int]]
    held: float
    longest: float
    clock: float = 0.0
    seen: dict[Node, float] = field(default_factory=dict)
    free: list[float] = field(default_factory=list)
    by_op: dict[Node, list[tuple[float, float]]] = field(default_factory=dict)

    @classmethod
    def by(cls, graph: Graph) -> BytesTouched:
        """Return the bytes that a step touches; the ops of the graph run in order."""
        ops = [node for node in graph.calls if not node.op.view]
        lifetimes = _lifetimes(ops, graph)
        held = memory.max_live([(first, last + 1, int(size_of(node))) for node, (first, last) in lifetimes.items()])
        sources = {owner(source) for node in ops for source in node.inputs} - lifetimes.keys()
        touched = cls(lifetimes, float(held), held + sum(map(size_of, sources)))
        for step, node in enumerate(ops):
            touched._walk(step, node)
        return touched

    def far(self, node: Node) -> Terms:
        """Return the bytes that an op reads or makes from beyond each size of cache."""
        pairs = self.by_op.get(node, ())
        return {
            f"bytes from beyond {name}": sum(nbytes for nbytes, distance in pairs if distance > size)
            for name, size in CACHES.items()
        }

    def _walk(self, step: int, node: Node) -> None:
        """Advance by one op: note its reuse distances, and free arrays that it reads last."""
        group = node.inputs[0] if is_result(node) else node  # a group's results are made in the group's blocks
        pairs = self.by_op.setdefault(group, [])
        arrays = [source for source in dict.fromkeys(node.inputs) if type(source.spec) is TensorSpec]
        pairs += [(size_of(source), self._since(self.seen.get(owner(source)))) for source in arrays]
        if node in self.lifetimes:
            pairs.append((size_of(node), self._since(self.free.pop() if self.free else None)))
        self.clock += sum(map(size_of, {*arrays, node}))
        for array in {owner(source) for source in arrays} | {node}:
            self.seen[array] = self.clock
            if self.lifetimes.get(array, (0, -1))[1] == step:
                self.free.append(self.clock)

    def _since(self, before: float | None) -> float:
        return self.longest if before is None else min(self.clock - before, self.longest)


def _lifetimes(ops: list[Node], graph: Graph) -> dict[Node, tuple[int, int]]:
    """Return the first and last step at which each array made by the ops is held."""
    first = {node: step for step, node in enumerate(ops) if type(node.spec) is TensorSpec}
    last = dict(first)
    for step, node in enumerate(ops):
        last.update({source: step for source in map(owner, node.inputs) if source in first})
    last.update({output: len(ops) for output in map(owner, graph.outputs) if output in first})
    return {node: (first[node], last[node]) for node in first}


def owner(node: Node) -> Node:
    """Return the node that owns the memory of a node: for a view the node that it views."""
    while node.op.view and node.inputs:
        node = node.inputs[0]
    return node


def size_of(node: Node) -> float:
    """Return the size in bytes of a node's array; 0 for a node that is no array."""
    if type(node.spec) is not TensorSpec:
        return 0.0
    shape: Any = node.spec.shape
    return float(math.prod(shape) * node.spec.dtype.itemsize)


def _rows(node: Node) -> float:
    """Return how often an elementwise kernel starts its innermost loop, where its operands differ in shape."""
    shape: Any = node.spec.shape
    shapes = [source.spec.shape for source in node.inputs]
    return math.prod(shape) / _inner(shapes, shape) if any(s != shape for s in shapes) else 0.0


def _inner(shapes: list[Any], shape: Any) -> int:
    """Return the length of the innermost loop: the last axes along which every operand varies, or is constant."""
    padded = [(1,) * (len(shape) - len(s)) + tuple(s) for s in shapes]
    long = [axis for axis, size in enumerate(shape) if size != 1]
    inner = 1
    for axis in reversed(long):
        if any((p[axis] == 1) != (p[long[-1]] == 1) for p in padded):
            break
        inner *= shape[axis]
    return max(1, inner)


def _add(terms: dict[str, float], amounts: Mapping[str, float], times: float) -> None:
    for term, amount in amounts.items():
        if amount:
            terms[term] = terms.get(term, 0.0) + amount * times


def output_of(f: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """Return the specs of the result of `f`, from a trace; None for a constant. Raises what tracing raises.

    A function that branches on values is converted.
    """
    try:
        traced = trace_function(f, args)
    except ControlFlowError:
        traced = trace_function(static.converted(f), args)
    specs = [None if node.is_constant else node.spec for node in traced.graph.outputs]
    return tree.unflatten(traced.outputs, specs)
