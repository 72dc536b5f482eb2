"""Straight-line Python that calls NumPy kernels: one line per node, every operand a local variable.

    def run(i0, i1, k2=..., b2=..., c2=...):
        k2(i0, i1, out=b2)              # a planned node writes into its place in the arena
        v3 = k3(b2, axis=c3)            # an output is allocated anew
        return (v3,)

The text depends on the graph alone. What depends on the sizes (buffers, views of them, attributes) is given as the
function's defaults when the graph is bound to sizes, so that one code object serves every binding.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import CodeType, FunctionType, MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from graphs import dims
from graphs.dims import Dim
from graphs.ir import CONSTANT, INPUT, Graph, Node
from graphs.ops.movement import broadcast_to
from graphs.spec import TensorSpec
from static import memory
from static.schedule import Schedule, lifetimes, planned
from static.schedule import schedule as schedule_of

Slot = tuple[str, Node, str]  # parameter name, node, and what of the node it holds


class Program(NamedTuple):
    """A lowered graph: the code, what each parameter with a default holds, and the node of each line.

    `inner` holds the programs of the subgraphs of control-flow nodes.
    """

    graph: Graph
    schedule: Schedule
    planned: tuple[Node, ...]
    code: CodeType
    source: str
    slots: tuple[Slot, ...]
    lines: tuple[Node | None, ...]
    fixed: frozenset[Node]
    inner: Mapping[Graph, Program]

    def nested(self) -> Iterator[Program]:
        """This program, and those of subgraphs at any depth."""
        yield self
        for program in self.inner.values():
            yield from program.nested()


class Binding(NamedTuple):
    """A program for given sizes: the function to call with input arrays, its memory plan, and the bytes of arenas.

    `arena_bytes` counts the arenas of subgraphs too; the plan does not.
    """

    run: Callable[..., tuple[Any, ...]]
    plan: memory.Plan
    arena_bytes: int


def lower(graph: Graph, schedule: Schedule, use_arena: bool = True) -> Program:
    """Generate the code of a scheduled graph. Without an arena each kernel allocates its own result."""
    in_arena = planned(graph, schedule) if use_arena else []
    writer = _Writer(graph, schedule, set(in_arena))
    source = writer.write()
    code = next(c for c in compile(source, f"<graph {graph.name}>", "exec").co_consts if isinstance(c, CodeType))
    return Program(
        graph,
        schedule,
        tuple(in_arena),
        code,
        source,
        tuple(writer.slots),
        tuple(writer.lines),
        frozenset(writer.fixed),
        {inner: lower(inner, schedule_of(inner), use_arena) for node in graph.nodes for inner in node.subgraphs},
    )


class _Writer:
    """Writes the body of `run`, collecting the slots as names are used."""

    def __init__(self, graph: Graph, schedule: Schedule, in_arena: set[Node]) -> None:
        self.graph, self.schedule, self.in_arena = graph, schedule, in_arena
        self.number = {node: i for i, node in enumerate(schedule.order)}
        self.fixed = self._fixed()
        self._handed_out = Counter(schedule.owner[output] for output in graph.outputs)
        self.slots: list[Slot] = []
        self.lines: list[Node | None] = []
        self._slotted: set[str] = set()

    def _fixed(self) -> set[Node]:
        """Nodes whose array is the same object in every call: constants, arena buffers, and views of these."""
        fixed: set[Node] = set()
        for node in self.schedule.order:
            shares = self.schedule.owner[node] is not node
            if node.op is CONSTANT or node in self.in_arena or (shares and node.inputs[0] in fixed):
                fixed.add(node)
        return fixed

    def write(self) -> str:
        dying = self._dying()
        body: list[str] = []
        for node in self.schedule.order:
            statement = self._statement(node)
            if statement:
                body.append(statement)
                self.lines.append(node)
            if dying.get(node):
                body.append(f"del {', '.join(dying[node])}")
                self.lines.append(node)
        body.append(f"return ({''.join(self._output(o) + ', ' for o in self.graph.outputs)})")
        self.lines.append(None)
        inputs = [f"i{self.number[node]}" for node in self.graph.inputs]
        parameters = ", ".join(inputs + [f"{name}=None" for name, _, _ in self.slots])
        return f"def run({parameters}):\n" + "".join(f"    {line}\n" for line in body)

    def _statement(self, node: Node) -> str:
        if node.op.family == "source" or (node in self.fixed and node not in self.in_arena):
            return ""
        arguments = [self._name(source) for source in node.inputs]
        if node in self.in_arena:
            arguments.append(f"out={self._name(node)}")
        arguments += [f"{key}={self._slot('c', node, key)}" for key in node.attrs]
        call = f"{self._slot('k', node, '')}({', '.join(arguments)})"
        if node.op.view and self._handed_out[node]:
            call = f"copy({call})"  # a reshape that was taken for a copy may still have been a view
        return call if node in self.in_arena else f"v{self.number[node]} = {call}"

    def _name(self, node: Node) -> str:
        if node.op is INPUT:
            return f"i{self.number[node]}"
        return self._slot("b", node, "") if node in self.fixed else f"v{self.number[node]}"

    def _slot(self, kind: str, node: Node, key: str) -> str:
        name = f"{kind}{self.number[node]}{'_' + key if key else ''}"
        if name not in self._slotted:
            self._slotted.add(name)
            self.slots.append((name, node, key if kind == "c" else kind))
        return name

    def _output(self, node: Node) -> str:
        # The caller owns what is returned: never the arena, a constant, an input or a view of one of them.
        owner = self.schedule.owner[node]
        kept = owner in self.fixed or owner.op is INPUT or self._handed_out[owner] > 1
        return f"{'copy' if kept or not self._is_whole(node) else 'asarray'}({self._name(node)})"

    def _is_whole(self, node: Node) -> bool:
        """Whether a node is all of its owner's memory, each byte once: not a part of it, and not repeated."""
        while self.schedule.owner[node] is not node:
            if node.op is broadcast_to or not dims.same(node.spec.size, node.inputs[0].spec.size):
                return False
            node = node.inputs[0]
        return True

    def _dying(self) -> dict[Node, list[str]]:
        """The local variables that nobody reads after each node, so that their memory is freed there."""
        last: dict[Node, Node] = {}
        for node in self.schedule.order:
            if node.op.family == "source" or (node in self.fixed and node not in self.in_arena):
                continue
            for value in (*node.inputs, node):
                last[value] = node
        kept = set(self.graph.outputs) | self.fixed
        dying: dict[Node, list[str]] = {}
        for value, node in last.items():
            if value not in kept and value.op is not INPUT:
                dying.setdefault(node, []).append(f"v{self.number[value]}")
        return dying


def bind(program: Program, sizes: Mapping[str, int]) -> Binding:
    """Evaluate everything symbolic for these sizes, lay out the arena, and make the function to call."""
    specs = {node: resolve(node.spec.shape, sizes) for node in program.planned}
    nbytes = [_nbytes(node, specs[node]) for node in program.planned]
    plan = memory.plan(lifetimes(program.planned, program.schedule, nbytes), memory.ALIGNMENT)
    arena = np.empty(plan.peak + memory.ALIGNMENT, np.uint8)
    base = -arena.ctypes.data % memory.ALIGNMENT
    values: dict[Node, Any] = {}
    for node, offset, size in zip(program.planned, plan.offsets, nbytes, strict=True):
        start = base + offset
        values[node] = arena[start : start + size].view(node.spec.dtype).reshape(specs[node])
    _fill_fixed(program, sizes, values)
    inner = {graph: bind(lowered, sizes) for graph, lowered in program.inner.items()}
    defaults = tuple(_default(node, what, sizes, values, inner) for _, node, what in program.slots)
    run = FunctionType(program.code, {"copy": np.array, "asarray": np.asarray}, "run", defaults)
    return Binding(run, plan, plan.peak + sum(binding.arena_bytes for binding in inner.values()))


def _fill_fixed(program: Program, sizes: Mapping[str, int], values: dict[Node, Any]) -> None:
    """Constants, and views of constants and of the arena, made once."""
    for node in program.schedule.order:
        if node not in program.fixed or node in values:
            continue
        attrs = {key: resolve(value, sizes) for key, value in node.attrs.items()}
        values[node] = node.op.kernel(*(values[source] for source in node.inputs), **attrs)


def _default(
    node: Node, what: str, sizes: Mapping[str, int], values: Mapping[Node, Any], inner: Mapping[Graph, Binding]
) -> Any:
    if what == "k":
        return node.op.kernel
    return values[node] if what == "b" else resolve(node.attrs[what], sizes, inner)


def _nbytes(node: Node, shape: Sequence[int]) -> int:
    return int(np.prod(shape, dtype=np.int64)) * node.spec.dtype.itemsize


def resolve(value: Any, sizes: Mapping[str, int], inner: Mapping[Graph, Binding] = MappingProxyType({})) -> Any:
    """An attribute with every symbolic size in it replaced by its number, and every graph by what runs it."""
    if isinstance(value, Dim):
        return dims.evaluate(value, sizes)
    if isinstance(value, tuple):
        return tuple(resolve(v, sizes, inner) for v in value)
    if isinstance(value, slice):
        return slice(*(resolve(v, sizes) for v in (value.start, value.stop, value.step)))
    if isinstance(value, TensorSpec):
        return TensorSpec([dims.evaluate(size, sizes) for size in value.shape], value.dtype)
    if isinstance(value, Graph):
        return inner[value].run
    return value
