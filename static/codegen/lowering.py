"""Straight-line Python that calls NumPy kernels: one line per node, every operand a local variable.

    def run(i0, i1, k2=..., b2=..., c2=...):
        k2(i0, i1, b2)                  # a planned node writes into its place in the arena
        v3 = k3(b2, axis=c3)            # an output is allocated anew
        v4 = n4(); k4(b2, v3, v4)       # a large one reuses memory that nobody sees any more
        return (v3, v4,)

The text depends on the graph alone. What depends on the sizes (buffers, views of them, attributes) is given as the
function's defaults when the graph is bound to sizes (`static.codegen.binding`), so that one code object serves every
binding. Nodes that call the same kernel share its parameter, and so do those that write the same place in the arena: it
has the number of the first of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from types import CodeType
from typing import Any, NamedTuple

from graphs import dims
from graphs.errors import GENERATED
from graphs.ir import Graph, Node
from graphs.ops.control import switch_op, while_op
from graphs.ops.movement import broadcast_to
from graphs.spec import TupleSpec
from static import clock
from static.codegen import groups, kernels
from static.codegen.groups import Blocks
from static.codegen.kernels import LARGE
from static.memory.schedule import Schedule, writer
from static.passes.fusion import is_group, is_result
from static.passes.loops import is_scan
from static.passes.rewrite import is_product, is_turned

LISTING_WIDTH = 60  # comments of longer statements stand right behind them
Slot = tuple[str, Node, str, Any]  # parameter name, node, what of the node it holds, and of an attribute its name


class LoweredGraph(NamedTuple):
    """A lowered graph: the code, the value of each parameter with a default, and the node of each line.

    `fresh` are the nodes outside the arena that write into a new array. `inner` has the programs of the subgraphs of
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
    inner: Mapping[Graph, LoweredGraph | Blocks]

    def nested(self) -> Iterator[LoweredGraph | Blocks]:
        """Yield this program, and the programs of subgraphs at any depth."""
        yield self
        for program in self.inner.values():
            yield from program.nested()

    def listing(self) -> str:
        """Return the source, with the op, the spec and the user's line as a comment behind each statement of a node."""
        head, *statements = self.source.splitlines()
        width = min(LISTING_WIDTH, max(map(len, statements)))
        rows = zip(statements, self.lines, strict=True)
        commented = [row if node is None else f"{row:{width}}  # {describe_node(node)}" for row, node in rows]
        return "".join(f"{line}\n" for line in (head, *commented))


def describe_node(node: Node) -> str:
    """Return the op, spec and source line of a node as text."""
    return f"{node.op.name} {node.spec} {node.source}".rstrip()


def lower(graph: Graph, schedule: Schedule, use_arena: bool = True) -> LoweredGraph:
    """Generate the code of a scheduled graph. Without an arena each kernel allocates its own result."""
    with clock.phase("lower"):
        return _program(graph, schedule, use_arena)


def _program(graph: Graph, schedule: Schedule, use_arena: bool) -> LoweredGraph:
    schedule = schedule if use_arena else schedule.without_arena()
    writer = Writer(graph, schedule, set(schedule.place if use_arena else ()))
    inner = {body: _lower_inner(node, body, schedule, use_arena) for node in graph.nodes for body in node.subgraphs}
    return writer.lowered(inner)


def _lower_inner(node: Node, inner: Graph, schedule: Schedule, use_arena: bool) -> LoweredGraph | Blocks:
    if is_group(node):
        return groups.lower(inner, node.attrs["space"])
    return lower(inner, schedule.inner[inner], use_arena)


class Writer:
    """Write the body of `run`, and collect the slots (parameters with defaults) as names are used."""

    def __init__(self, graph: Graph, schedule: Schedule, in_arena: set[Node]) -> None:
        self.graph, self.schedule, self.in_arena = graph, schedule, in_arena
        self.owner, self.whole = schedule.views.owner, schedule.views.whole
        self.number = {node: i for i, node in enumerate(schedule.order)}
        self.spacious = {node for space in schedule.workspaces for node in space.nodes if not node.subgraphs}
        self.fixed = self._fixed_nodes()
        self.fresh: set[Node] = set()
        self._handed_out = Counter(self._lender(output) for output in graph.outputs)
        self.slots: list[Slot] = []
        self.lines: list[Node | None] = []
        self._slotted: set[str] = set()
        self._names: dict[Node, str] = {}
        self._callers: dict[int, tuple[Any, str]] = {}  # each kernel by its id, and the parameter that holds it
        self._writers: dict[tuple[Any, ...], str] = {}  # for each place in the arena, the parameter that holds it
        self.results: dict[Node, list[Node]] = {}
        self.parts: dict[Node, list[Node]] = {node: [] for node in schedule.order if is_scan(node)}
        for node in schedule.order:
            if is_result(node):
                self.results.setdefault(node.inputs[0], []).append(node)
            elif node.is_part and node.inputs[0] in self.parts:
                self.parts[node.inputs[0]].append(node)

    def _fixed_nodes(self) -> set[Node]:
        """Return the nodes whose array is one object in every call: constants, arena buffers, and their views."""
        fixed: set[Node] = set()
        for node in self.schedule.order:
            shares = self.owner[node] is not node
            if node.is_constant or node in self.in_arena or (shares and node.inputs[0] in fixed):
                fixed.add(node)
        return fixed

    def write(self) -> str:
        """Return the source of the function."""
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

    def lowered(self, inner: Mapping[Graph, Any]) -> LoweredGraph:
        """Return the lowered graph, with the programs of its subgraphs."""
        source = self.write()
        return LoweredGraph(
            self.graph,
            self.schedule,
            tuple(node for node in self.schedule.place if node in self.in_arena),
            self.compiled(source),
            source,
            tuple(self.slots),
            tuple(self.lines),
            frozenset(self.fixed),
            frozenset(self.fresh),
            inner,
        )

    def compiled(self, source: str) -> CodeType:
        """Return the code object of the function that this source defines."""
        made = compile(source, f"{GENERATED}{self.graph.name}>", "exec")
        return next(c for c in made.co_consts if isinstance(c, CodeType))

    def _statement(self, node: Node) -> str:
        if node.is_source or (node in self.fixed and node not in self.in_arena) or is_result(node):
            return ""
        if (node in self.in_arena and writer(node) is not node) or _is_transpose(node):
            return ""
        arguments = [self._name(source) for source in node.inputs]
        if is_group(node):
            return self._write_group(node, arguments)
        new = self._new(node)
        out = self._name(node) if new or node in self.in_arena else self._stacks(node)
        name = self._kernel(node)
        workspace = self._slot("w", node, "") if node in self.spacious else ""
        call = kernels.call(node, name, arguments, out, lambda key: self._slot("c", node, key), workspace)
        if new:
            return f"{out} = {new}; {call}"
        return call if node in self.in_arena else f"v{self.number[node]} = {call}"

    def _new(self, node: Node) -> str:
        """Return an expression for a new array that a kernel writes, "" where the kernel makes its own.

        A new array is made for a large result that is returned to the caller, and where a kernel would lay its result
        out like its operands. The layout of a value must not depend on where it lies, since the layout decides in which
        order others add it up.
        """
        if node in self.in_arena or self.owner[node] is not node or writer(node) is not node:
            return ""
        if isinstance(node.spec, TupleSpec) or not (node.spec.ndim or node.op.view):
            return ""  # kernels make numbers, but a reshape that need not copy would be another name for its input
        large = bool(node.spec.symbols) or node.spec.nbytes >= LARGE
        if not (large and self._handed_out[node]) and self._reads_rows(node):
            return ""
        self.fresh.add(node)
        return f"{self._slot('n', node, '')}()"

    def _reads_rows(self, node: Node) -> bool:
        """Whether a kernel's own result is in row-major order: its operands are, or any operands will do."""
        rows = (self.owner[source] is source or source in self.whole for source in node.inputs)
        return (is_product(node) and node.spec.ndim < 3) or all(rows)

    def _stacks(self, node: Node) -> str:
        """Return the arrays that a scan stacks outputs into: places in the arena, None for its own allocation."""
        if not is_scan(node):
            return ""
        planned = {part.attrs["number"]: self._name(part) for part in self.parts[node] if part in self.in_arena}
        carry = node.attrs["carry"]
        return f"({''.join(f'{planned.get(carry + i)}, ' for i in range(len(node.attrs['rows'])))})"

    def _write_group(self, node: Node, arguments: list[str]) -> str:
        """Return the call of a group, which writes into given arrays: places in the arena, or new arrays."""
        results = {user.attrs["number"]: user for user in self.results[node]}
        made = [results[number] for number in range(len(results))]
        new = [f"{self._name(n)} = {self._slot('n', n, '')}()" for n in made if n not in self.in_arena]
        call = f"{self._slot('c', node, 'body')}({', '.join([*arguments, *map(self._name, made)])})"
        return "; ".join([*new, call])

    def _name(self, node: Node) -> str:
        """Return the name of a node in the code, for the nodes that read it."""
        name = self._names.get(node)
        if name is None:
            name = self._names[node] = self._slot_name(node)
        return name

    def _slot_name(self, node: Node) -> str:
        if node.is_input:
            return f"i{self.number[node]}"
        if _is_transpose(node):
            return f"{self._name(node.inputs[0])}.T"
        if node not in self.fixed:
            return f"v{self.number[node]}"
        if node not in self.in_arena:
            return self._slot("b", node, "")
        place = (*self.schedule.place[node], node.spec)
        if place not in self._writers:
            self._writers[place] = self._slot("b", node, "")
        return self._writers[place]

    def _kernel(self, node: Node) -> str:
        """Return the parameter that holds the kernel of a node; nodes that call the same kernel share it."""
        kernel = kernels.kernel(node, node in self.in_arena or node in self.fresh)
        if id(kernel) not in self._callers:
            self._callers[id(kernel)] = kernel, self._slot("k", node, "")
        return self._callers[id(kernel)][1]

    def _slot(self, kind: str, node: Node, key: str) -> str:
        name = f"{kind}{self.number[node]}{'_' + key if key else ''}"
        if name not in self._slotted:
            self._slotted.add(name)
            self.slots.append((name, node, kind, key))
        return name

    def _output(self, node: Node) -> str:
        # The caller owns each returned array: it is never the arena, a constant, an input or a view of one of them.
        lender = self._lender(node)
        kept = lender in self.fixed or lender.is_input or self._handed_out[lender] > 1
        if kept or not self._is_whole(node):
            return f"copy({self._name(node)})"
        return self._name(node) if lender.spec.ndim and writer(lender) is lender else f"asarray({self._name(node)})"

    def _lender(self, node: Node) -> Node:
        """Return the node whose memory a node looks at.

        A branch or a while loop returns arrays that nobody else has.
        """
        while self.owner[node] is not node and not (node.is_part and node.inputs[0].op in (switch_op, while_op)):
            node = node.inputs[0]
        return node

    def _is_whole(self, node: Node) -> bool:
        """Whether a node is all of its lender's memory, each byte once: not a part of it, and not repeated."""
        lender = self._lender(node)
        while node is not lender:
            if node.op is broadcast_to or not dims.same(node.spec.size, node.inputs[0].spec.size):
                return False
            node = node.inputs[0]
        return True

    def _dying(self) -> dict[Node, list[str]]:
        """Return for each node the local variables that nobody reads after it, so that their memory is freed there."""
        last: dict[Node, Node] = {}
        for node in self.schedule.order:
            if node.is_source or (node in self.fixed and node not in self.in_arena):
                continue
            for value in (*node.inputs, node):
                last[value] = node
        kept = set(self.graph.outputs) | self.fixed
        dying: dict[Node, list[str]] = {}
        for value, node in last.items():
            if (
                value not in kept and not (value.is_input or is_group(value)) and not _is_transpose(value)
            ):  # these have no variable
                dying.setdefault(node, []).append(f"v{self.number[value]}")
        return dying


def _is_transpose(node: Node) -> bool:
    """Whether a node is the reversed axes of an input, written as `.T` where it is read."""
    if not is_turned(node) or not node.inputs[0].is_input:
        return False
    return bool(node.attrs["axes"] == tuple(reversed(range(node.spec.ndim))))
