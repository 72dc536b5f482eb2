"""Straight-line Python that calls NumPy kernels: one line per node, every operand a local variable.

    def run(i0, i1, k2=..., b2=..., c2=...):
        k2(i0, i1, out=b2)              # a planned node writes into its place in the arena
        v3 = k3(b2, axis=c3)            # an output is allocated anew
        v4 = n4(); k4(b2, v3, v4)       # a large one is written where nobody sees the last one any more
        return (v3, v4,)

The text depends on the graph alone. What depends on the sizes (buffers, views of them, attributes) is given as the
function's defaults when the graph is bound to sizes, so that one code object serves every binding.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import CodeType, FunctionType
from typing import Any, NamedTuple, cast

import numpy as np

from graphs import dims
from graphs.ir import CONSTANT, INPUT, Graph, Node
from graphs.ops.control import part, scan_op
from graphs.ops.movement import broadcast_to, permute_dims
from graphs.spec import TupleSpec
from static import memory
from static.backends import blocks, calls, groups, loops
from static.backends.blocks import Blocks, Cut
from static.backends.results import KEPT, LARGE, Result
from static.backends.sizes import Runs, resolve
from static.fused import fused, result
from static.schedule import Schedule, lifetimes, spans
from static.schedule import schedule as schedule_of
from static.sharing import views, writer

_GLOBALS = {"copy": np.array, "asarray": np.asarray, **calls.NAMES}

Slot = tuple[str, Node, str, str]  # parameter name, node, what of the node it holds, and of an attribute its name
Results = dict[tuple[Node, tuple[int, ...]], Result]  # by node and shape


class Program(NamedTuple):
    """A lowered graph: the code, what each parameter with a default holds, and the node of each line.

    `fresh` are the nodes beside the arena that write into a new array, `inner` the programs of the subgraphs of
    control-flow nodes.
    """

    graph: Graph
    schedule: Schedule
    planned: tuple[Node, ...]
    code: CodeType
    source: str
    slots: tuple[Slot, ...]
    lines: tuple[Node | None, ...]
    fixed: frozenset[Node]
    fresh: frozenset[Node]
    inner: Mapping[Graph, Program | Blocks]

    def nested(self) -> Iterator[Program | Blocks]:
        """This program, and those of subgraphs at any depth."""
        yield self
        for program in self.inner.values():
            yield from program.nested()


class Binding(NamedTuple):
    """A program for given sizes: the function to call with input arrays, its memory plan, of what, and the memory.

    The plan counts what subgraphs need while the node that holds them runs, and the blocks of fused groups. `results`
    makes the arrays beside the arena; other sizes share it where shapes agree.
    """

    run: Callable[..., tuple[Any, ...]]
    plan: memory.Plan
    lives: Sequence[memory.Buffer]
    arena: np.ndarray[Any, Any]
    sizes: Mapping[str, int]
    results: Results


class Layout(NamedTuple):
    """Where everything lies in the arena, for given sizes: buffers, and for a node with a subgraph what that needs."""

    plan: memory.Plan
    lives: Sequence[memory.Buffer]
    start: Mapping[Node, int]
    inner: Mapping[Graph, Layout | Cut]


def lower(graph: Graph, schedule: Schedule, use_arena: bool = True) -> Program:
    """Generate the code of a scheduled graph. Without an arena each kernel allocates its own result."""
    in_arena = list(schedule.place) if use_arena else []
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
        frozenset(writer.fresh),
        {inner: _lowered(node, inner, use_arena) for node in graph.nodes for inner in node.subgraphs},
    )


def _lowered(node: Node, inner: Graph, use_arena: bool) -> Program | Blocks:
    if node.op is fused:
        return groups.lower(inner, node.attrs["space"])
    return lower(inner, schedule_of(inner), use_arena)


class _Writer:
    """Writes the body of `run`, collecting the slots as names are used."""

    def __init__(self, graph: Graph, schedule: Schedule, in_arena: set[Node]) -> None:
        self.graph, self.schedule, self.in_arena = graph, schedule, in_arena
        self.number = {node: i for i, node in enumerate(schedule.order)}
        self.fixed = self._fixed()
        self.fresh: set[Node] = set()
        self._handed_out = Counter(schedule.owner[output] for output in graph.outputs)
        self.slots: list[Slot] = []
        self.lines: list[Node | None] = []
        self._slotted: set[str] = set()
        self.results: dict[Node, list[Node]] = {}
        self.parts: dict[Node, list[Node]] = {node: [] for node in schedule.order if node.op is scan_op}
        for node in schedule.order:
            if node.op is result:
                self.results.setdefault(node.inputs[0], []).append(node)
            elif node.op is part and node.inputs[0] in self.parts:
                self.parts[node.inputs[0]].append(node)

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
        parameters = ", ".join(inputs + [f"{name}=None" for name, *_ in self.slots])
        return f"def run({parameters}):\n" + "".join(f"    {line}\n" for line in body)

    def _statement(self, node: Node) -> str:
        if node.op.family == "source" or (node in self.fixed and node not in self.in_arena) or node.op is result:
            return ""
        if node in self.in_arena and writer(node) is not node:
            return ""
        arguments = [self._name(source) for source in node.inputs]
        if node.op is fused:
            return self._fused(node, arguments)
        new = self._new(node)
        out = self._name(node) if new or node in self.in_arena else self._stacks(node)
        if node.op is permute_dims and not out and _is_transpose(node):
            return f"v{self.number[node]} = {arguments[0]}.T"
        name = self._slot("k", node, "")
        call = calls.call(node, name, arguments, out, lambda key: self._slot("c", node, key))
        if new:
            return f"{out} = {new}; {call}"
        return call if node in self.in_arena else f"v{self.number[node]} = {call}"

    def _new(self, node: Node) -> str:
        """An array for what a kernel shall write beside the arena; nothing where the kernel makes as good a one itself.

        That is where it may be large, and handed out; and where a kernel would lay it out as its operands are. How a
        value lies in memory must not depend on where that is: it decides in which order others add it up.
        """
        if node in self.in_arena or self.schedule.owner[node] is not node or writer(node) is not node:
            return ""
        if isinstance(node.spec, TupleSpec) or not node.spec.ndim:
            return ""
        large = bool(node.spec.symbols) or node.spec.nbytes >= LARGE
        if not (large and self._handed_out[node]) and self._reads_rows(node):
            return ""
        self.fresh.add(node)
        return f"{self._slot('n', node, '')}()"

    def _reads_rows(self, node: Node) -> bool:
        """Whether a kernel's own result is in row-major order, since its operands are or for any operands."""
        rows = (self.schedule.owner[source] is source or source in self._whole for source in node.inputs)
        return calls.is_dot(node) or all(rows)

    @functools.cached_property
    def _whole(self) -> set[Node]:
        return views(self.schedule.order).whole

    def _stacks(self, node: Node) -> str:
        """Where a scan puts what it stacks: the places in the arena, None for what it shall allocate."""
        if node.op is not scan_op:
            return ""
        planned = {part.attrs["number"]: self._name(part) for part in self.parts[node] if part in self.in_arena}
        carry = node.attrs["carry"]
        return f"({''.join(f'{planned.get(carry + i)}, ' for i in range(len(node.attrs['rows'])))})"

    def _fused(self, node: Node, arguments: list[str]) -> str:
        """A group writes into arrays that it is given: places in the arena, or new arrays for what is handed out."""
        results = {user.attrs["number"]: user for user in self.results[node]}
        made = [results[number] for number in range(len(results))]
        new = [f"{self._name(n)} = {self._slot('n', n, '')}()" for n in made if n not in self.in_arena]
        call = f"{self._slot('c', node, 'body')}({', '.join([*arguments, *map(self._name, made)])})"
        return "; ".join([*new, call])

    def _name(self, node: Node) -> str:
        if node.op is INPUT:
            return f"i{self.number[node]}"
        return self._slot("b", node, "") if node in self.fixed else f"v{self.number[node]}"

    def _slot(self, kind: str, node: Node, key: str) -> str:
        name = f"{kind}{self.number[node]}{'_' + key if key else ''}"
        if name not in self._slotted:
            self._slotted.add(name)
            self.slots.append((name, node, kind, key))
        return name

    def _output(self, node: Node) -> str:
        # The caller owns what is returned: never the arena, a constant, an input or a view of one of them.
        owner = self.schedule.owner[node]
        kept = owner in self.fixed or owner.op is INPUT or self._handed_out[owner] > 1
        if kept or not self._is_whole(node):
            return f"copy({self._name(node)})"
        return self._name(node) if owner.spec.ndim and writer(owner) is owner else f"asarray({self._name(node)})"

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
            if value not in kept and value.op not in (INPUT, fused):  # a group has no value but its results
                dying.setdefault(node, []).append(f"v{self.number[value]}")
        return dying


def _is_transpose(node: Node) -> bool:
    """Whether a permutation is the attribute `T` of an argument, which is surely an array."""
    return node.inputs[0].op is INPUT and node.attrs["axes"] == tuple(reversed(range(node.spec.ndim)))


def bind(program: Program, sizes: Mapping[str, int], known: Results | None = None, kept: int = KEPT) -> Binding:
    """Evaluate everything symbolic for these sizes, lay out the arena, and make the function to call.

    `known` are results of other sizes, `kept` how many arrays of each large result are kept to be written again.
    """
    layout = lay_out(program, sizes)
    binder = _Binder(sizes, known or {}, kept)
    arena = _aligned(layout.plan.peak)
    return Binding(binder.bound(program, layout, arena), layout.plan, layout.lives, arena, sizes, binder.results)


def lay_out(program: Program, sizes: Mapping[str, int]) -> Layout:
    """Plan the memory of a program, with that of its subgraphs and groups in it."""
    inner = {
        graph: blocks.cut(one, sizes) if isinstance(one, Blocks) else lay_out(one, sizes)
        for graph, one in program.inner.items()
    }
    buffers = program.schedule.buffers if program.planned else []
    held = lifetimes(buffers, program.schedule, [dims.evaluate(node.spec.nbytes, sizes) for node in buffers])
    users = _workspaces(program.schedule.order)
    needed = [max(inner[graph].plan.peak for node in nodes for graph in node.subgraphs) for nodes in users]
    lives = [*held, *spans(users, program.schedule, needed)]
    plan = memory.plan(lives, memory.ALIGNMENT)
    start = dict(zip(buffers, plan.offsets, strict=False))
    for nodes, offset in zip(users, plan.offsets[len(buffers) :], strict=True):
        start |= dict.fromkeys(nodes, offset)
    return Layout(plan, lives, start, inner)


def _workspaces(order: Sequence[Node]) -> list[list[Node]]:
    """The nodes that need memory while they run: all fused groups the same, which stays in the cache."""
    groups = [node for node in order if node.op is fused]
    return [[node] for node in order if node.subgraphs and node.op is not fused] + ([groups] if groups else [])


class _Binder:
    """Makes functions of a program and of its subgraphs for given sizes, collecting the results that they write."""

    def __init__(self, sizes: Mapping[str, int], known: Results, kept: int) -> None:
        self.sizes, self.known, self.kept = sizes, known, kept
        self.results: Results = {}

    def bound(self, program: Program, layout: Layout, arena: np.ndarray[Any, Any]) -> FunctionType:
        """The function to call, with everything planned in this arena."""
        values: dict[Node, Any] = {}
        known: dict[Any, np.ndarray[Any, Any]] = {}
        placed: dict[Any, np.ndarray[Any, Any]] = {}
        for node in program.planned:
            buffer, offset = program.schedule.place[node]
            start, spec = layout.start[buffer] + dims.evaluate(offset, self.sizes), node.spec
            if (start, spec) not in placed:
                made = np.ndarray(resolve(spec.shape, self.sizes), spec.dtype, arena, start)
                placed[start, spec] = _one_of(made, known)
            values[node] = placed[start, spec]
        _fill_fixed(program, self.sizes, values, known)
        runs: dict[Node, Runs] = {}
        for node in program.schedule.order:
            if node.subgraphs:
                room = arena[layout.start[node] :]
                runs[node] = {graph: self._inner(program, graph, layout, room) for graph in node.subgraphs}
        defaults = [self._default(slot, program, values, runs.get(slot[1], {})) for slot in program.slots]
        return FunctionType(program.code, _GLOBALS, "run", tuple(defaults))

    def _inner(self, program: Program, graph: Graph, layout: Layout, room: np.ndarray[Any, Any]) -> FunctionType:
        lowered, planned = program.inner[graph], layout.inner[graph]
        if isinstance(lowered, Blocks) and isinstance(planned, Cut):
            return blocks.bind(lowered, planned, self.sizes, room)
        return self.bound(cast(Program, lowered), cast(Layout, planned), room)

    def _default(self, slot: Slot, program: Program, values: Mapping[Node, Any], runs: Runs) -> Any:
        _, node, kind, key = slot
        if kind == "k":
            return loops.scan if node.op is scan_op else calls.kernel(node, node in values or node in program.fresh)
        if kind == "n":
            return self._result(node)
        return values[node] if kind == "b" else resolve(calls.attribute(node, key), self.sizes, runs)

    def _result(self, node: Node) -> Result:
        key = node, resolve(node.spec.shape, self.sizes)
        self.results[key] = self.known.get(key) or Result(key[1], node.spec.dtype, self.kept)
        return self.results[key]


def _aligned(size: int) -> np.ndarray[Any, Any]:
    """So many bytes, from the start of a cache line."""
    memory_block = np.empty(size + memory.ALIGNMENT, np.uint8)
    start = -memory_block.ctypes.data % memory.ALIGNMENT
    return memory_block[start : start + size]


def _one_of(array: np.ndarray[Any, Any], known: dict[Any, np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    """The array, or the one known that shows the same memory in the same way.

    When an operand and `out` are one object, NumPy need not find out whether they overlap in a way that matters.
    """
    key = array.__array_interface__["data"][0], array.shape, array.strides, array.dtype
    return known.setdefault(key, array)


def _fill_fixed(program: Program, sizes: Mapping[str, int], values: dict[Node, Any], known: dict[Any, Any]) -> None:
    """Constants, and views of constants and of the arena, made once."""
    for node in program.schedule.order:
        if node not in program.fixed or node in values:
            continue
        attrs = {key: resolve(value, sizes) for key, value in node.attrs.items()}
        made = node.op.kernel(*(values[source] for source in node.inputs), **attrs)
        values[node] = _one_of(made, known) if isinstance(made, np.ndarray) else made
