"""The scheduled graph as Python, in which runs of native nodes are one call: a segment.

    def run(i0, i1, s5=..., k7=..., b7=...):
        v5, v6, = (s5(i0, i1) or s5(rows(i0), rows(i1)))    # a segment makes its own results
        k7(v5, b7)                                          # NumPy's kernel of a node without native code
        return (v6, copy(b7),)

All other lines are written as in `static/codegen/lowering.py`. A view costs nothing where native code reads it: its
address and strides are known when the program is bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from graphs.ir import Graph, Node
from graphs.op import RuleTable
from graphs.ops.control import switch_op, while_op
from static import clock
from static.codegen.kernels import LARGE
from static.codegen.lowering import LoweredGraph, Writer
from static.memory.schedule import Schedule, schedule, writer
from static.native.flow import DECIDING
from static.native.functions import dtype_of
from static.native.grouping import group
from static.native.recipes import KERNELS, is_copied
from static.passes import pipeline
from static.passes.fusion import is_group
from static.passes.loops import is_scan

_FLOWS: RuleTable[Callable[[Node], bool]] = RuleTable("flows as native code", otherwise=lambda _: False)
"""Whether a loop or branches may run as native code if all nodes in them do; a loop that saves its history may not."""
_FLOWS.enter({
    "scan": lambda _: True,
    "while_loop": lambda node: not node.attrs["save"],
    "switch": lambda node: dtype_of(node.inputs[0].spec.dtype) in DECIDING,
})  # fmt: skip


class Segment(NamedTuple):
    """A run of native nodes, its arguments, and the new arrays that it makes.

    It `looks` at its arguments (checks dtype and shape) where Python has computed some of them, since such a value may
    differ from its spec.
    """

    nodes: tuple[Node, ...]
    arguments: tuple[Node, ...]
    made: tuple[Node, ...]
    looks: bool


def lower(graph: Graph, use_arena: bool = True) -> LoweredGraph:
    """Group, schedule and write a graph, and the graphs of its loops and branches."""
    with clock.phase("group"):
        grouped = pipeline.apply(group, graph)
    planned = schedule(grouped)
    with clock.phase("lower"):
        return _program(grouped, planned, use_arena, is_outermost=True)


def _program(graph: Graph, planned: Schedule, use_arena: bool, *, is_outermost: bool = False) -> LoweredGraph:
    planned = planned if use_arena else planned.without_arena()
    needed = [w for w in planned.workspaces if not (is_group(w.nodes[0]) or is_native(w.nodes[0]))]
    planned = planned._replace(workspaces=needed)
    holders = [node for node in graph.nodes if not is_group(node)]
    inner = {held: _program(held, planned.inner[held], use_arena) for node in holders for held in node.subgraphs}
    arena = set(planned.place if use_arena else ())
    return _SegmentWriter(graph, planned, arena, inner, is_outermost=is_outermost).lowered(inner)


def natives(program: LoweredGraph) -> list[Node]:
    """Return the nodes that run as native code, in order."""
    return _natives(program.schedule, program.inner)


def _natives(planned: Schedule, inner: Mapping[Graph, Any]) -> list[Node]:
    owners = [node for node in planned.order if planned.owner[node] is node]
    return [node for node in owners if is_native(node) or _is_native_flow(node, inner)]


def is_one_segment(program: LoweredGraph) -> bool:
    """Whether a program only calls one segment, with its inputs in order, and returns the segment's results."""
    graph, segments = program.graph, [slot[3] for slot in program.slots]
    is_whole = (graph.inputs, graph.outputs) in [(s.arguments, s.made) for s in segments if isinstance(s, Segment)]
    return is_whole and len(segments) == 1 and bool(graph.outputs)


def inner_of(program: LoweredGraph) -> set[Graph]:
    """Return the bodies, conditions and branches that run as native code."""
    return {graph for node in natives(program) if not is_group(node) for graph in node.subgraphs}


def _is_native_flow(node: Node, inner: Mapping[Graph, Any]) -> bool:
    """Whether a loop or branches run as native code: all nodes in them do, and no history is saved."""
    if not _FLOWS[node.op](node):
        return False
    made: Any = node.spec
    specs = [*(source.spec for source in node.inputs), *made.items]
    return all(map(is_copied, specs)) and all(_is_whole(inner[graph]) for graph in node.subgraphs)


def _is_whole(program: LoweredGraph) -> bool:
    """Whether native code computes every node of a program."""
    computable = set(natives(program))
    computed = [node for node in program.schedule.order if not node.is_source and node not in computable]
    return all(
        not node.has_effect
        and (writer(node) in computable or (program.schedule.owner[node] is not node and node.op.view))
        for node in computed
    )


def is_native(node: Node) -> bool:
    """Whether a node that is no view runs as native code."""
    return KERNELS[node.op].admits(node)


class _Line(NamedTuple):
    """A statement, the node that it computes, and the values that it reads."""

    text: str
    node: Node | None
    reads: tuple[Node, ...] = ()


class _SegmentWriter(Writer):
    """Write the body of `run` with segments."""

    def __init__(
        self, graph: Graph, planned: Schedule, in_arena: set[Node], inner: Mapping[Graph, Any], *, is_outermost: bool
    ) -> None:
        super().__init__(graph, planned, in_arena)
        self.native, self.is_outermost = set(_natives(planned, inner)), is_outermost
        self.parts |= {node: [] for node in self.native if node.op in (while_op, switch_op)}
        for node in planned.order:
            if node.is_part and node.inputs[0] in self.native and not is_scan(node.inputs[0]):
                self.parts[node.inputs[0]].append(node)
        self.written = {node for node in planned.order if self.owner[node] is node and writer(node) in self.native}
        self.spoken = self._spoken_nodes()
        self.ranks = {node: i for i, node in enumerate((*graph.inputs, *graph.outputs))}
        self.body: list[_Line] = []
        self.pending: list[Node] = []

    def _spoken_nodes(self) -> set[Node]:
        """Return the nodes that have a name: operands of NumPy's kernels, arguments of segments, and outputs."""
        spoken = set(self.graph.outputs)
        for node in reversed(self.schedule.order):
            is_view = self.owner[node] is not node
            if node in self.native:
                spoken.update(map(self.root, node.inputs))
            elif writer(node) not in self.native and (node in spoken or not is_view):
                spoken.update(node.inputs)
        return spoken

    def root(self, node: Node) -> Node:
        """Return the node that a view is a view of; the node itself if it is no view."""
        while not node.is_part and self.owner[node] is not node:
            node = node.inputs[0]
        return node

    def write(self) -> str:
        """Return the source of the function."""
        for node in self.schedule.order:
            if node in self.native:
                self.pending.append(node)
            else:
                self._spell(node)
        self._flush()
        returned = f"return ({''.join(self._output(o) + ', ' for o in self.graph.outputs)})"
        self.body.append(_Line(returned, None, self.graph.outputs))
        text = list(self._with_deletions())
        parameters = [f"i{self.number[node]}" for node in self.graph.inputs]
        parameters += [f"{name}=None" for name, *_ in self.slots]
        return f"def run({', '.join(parameters)}):\n" + "".join(f"    {line}\n" for line in text)

    def _spell(self, node: Node) -> None:
        """Write a line for a node that Python computes."""
        is_view = self.owner[node] is not node
        if writer(node) in self.native or (is_view and node not in self.spoken):
            return
        statement = self._statement(node)
        if statement:
            if not is_view or self.root(node) in self._results_outside_arena(self.pending):
                self._flush()
            self.body.append(_Line(statement, node, node.inputs))

    def _results_outside_arena(self, nodes: Iterable[Node]) -> list[Node]:
        """Return the results of native nodes that lie outside the arena."""
        several = {**self.results, **self.parts}
        made = [part for node in nodes for part in several.get(node, (node,))]
        return [node for node in made if node not in self.in_arena]

    def _flush(self) -> None:
        """Write the segment of the pending nodes."""
        if not self.pending:
            return
        made = self._results_outside_arena(self.pending)
        kept = [node for node in made if self._is_kept(node)]
        for node in kept:
            self.fresh.add(node)
            self.body.append(_Line(f"v{self.number[node]} = {self._slot('n', node, '')}()", node))
        roots = dict.fromkeys(self.root(source) for node in self.pending for source in node.inputs)
        read = [node for node in roots if node not in self.fixed and node not in made]
        read, new = (sorted(nodes, key=self.rank) for nodes in (read, [n for n in made if n not in kept]))
        arguments = (*read, *kept)
        segment = Segment(tuple(self.pending), arguments, tuple(new), not all(map(self._is_sure, arguments)))
        self.body.append(_Line(self._call(segment), self.pending[-1], segment.arguments))
        self.pending = []

    def rank(self, node: Node) -> int:
        """Return a node's index among inputs and outputs; segments take arguments and give results in that order."""
        return self.ranks.get(node, len(self.ranks))

    def _is_kept(self, node: Node) -> bool:
        """Whether a result is returned to the caller and large enough for its memory to be kept."""
        large = bool(node.spec.symbols) or node.spec.nbytes >= LARGE
        return large and bool(self._handed_out[node])

    def _is_sure(self, node: Node) -> bool:
        """Whether an argument surely matches its spec: native code made it, or the call of the program checks it."""
        return writer(node) in self.native or (node.is_input and self.is_outermost)

    def _call(self, segment: Segment) -> str:
        first = segment.nodes[0]
        name = f"s{self.number[first]}"
        self.slots.append((name, first, "s", segment))
        names = [self._name(node) for node in segment.arguments]
        call = f"{name}({', '.join(names)})"
        others = [node for node in segment.arguments if node.is_input or not self._is_sure(node)]
        if others:
            makers = {node: self._slot("e", node, "") if segment.looks else "rows" for node in others}
            again = [f"{makers[n]}({x})" if n in makers else x for x, n in zip(names, segment.arguments, strict=True)]
            call = f"({call} or {name}({', '.join(again)}))"
        made = "".join(f"v{self.number[node]}, " for node in segment.made)
        return f"{made}= {call}" if made else call

    def _output(self, node: Node) -> str:
        if node in self.written and node not in self.in_arena and self._handed_out[node] == 1:
            return self._name(node)
        return super()._output(node)

    def _with_deletions(self) -> Iterator[str]:
        """Yield the lines, and after each a line that deletes the variables which nobody reads any more."""
        last: dict[str, int] = {}
        for i, line in enumerate(self.body):
            for node in self._variables(line):
                last[f"v{self.number[node]}"] = i
        dead: dict[int, list[str]] = {}
        for name, i in last.items():
            dead.setdefault(i, []).append(name)
        for i, line in enumerate(self.body):
            yield line.text
            self.lines.append(line.node)
            if i in dead and line.node is not None:
                yield f"del {', '.join(dead[i])}"
                self.lines.append(line.node)

    def _variables(self, line: _Line) -> Iterator[Node]:
        """Yield the nodes whose local variables a line reads or sets."""
        for node in (*line.reads, *([line.node] if line.node and line.node not in self.native else [])):
            is_parameter = node in self.fixed or node.is_source or is_group(node)
            if not is_parameter and self._name(node).startswith("v"):
                yield node
