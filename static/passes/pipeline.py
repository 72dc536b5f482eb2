"""The passes in the order they run, and a record of what each did. Every graph is verified as it is made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from graphs import blocks
from graphs.dims import Size, same
from graphs.ir import Graph, Node
from static import clock
from static.passes.batching import batch_steps, merge_slices
from static.passes.fusion import fuse, is_group
from static.passes.loops import hoist_invariants, prune_loops
from static.passes.products import contract, flatten_products, merge_products, merge_sums
from static.passes.reassociation import reassociate
from static.passes.simplification import (
    decompose,
    fold_constants,
    merge_common_subexpressions,
    remove_dead_code,
    simplify_algebra,
)
from static.passes.views import eliminate_views, push_broadcasts
from static.rebuild import replace_nodes

Pass = Callable[[Graph], Graph]

# The rungs of the ladder. The first two rungs call the same kernels on the same numbers. Where these lie alike in
# memory, every bit is the same as in the dynamic engine: docs/numerics.md says where they do not.
REPLAY: tuple[Pass, ...] = (remove_dead_code,)
SIMPLIFY: tuple[Pass, ...] = (
    remove_dead_code,
    decompose,
    eliminate_views,
    push_broadcasts,
    simplify_algebra,
    fold_constants,
    merge_common_subexpressions,
    hoist_invariants,
    prune_loops,
    remove_dead_code,
)
# Sums and products in another order: results differ from those of the rungs below by rounding.
RESTRUCTURE: tuple[Pass, ...] = (
    flatten_products,
    reassociate,
    merge_common_subexpressions,
    remove_dead_code,
    reassociate,
    merge_sums,
    merge_slices,
    merge_products,
    batch_steps,
)
# Fused groups run in blocks and keep the sums inside them; sums outside groups become products.
FUSE: tuple[Pass, ...] = (fuse,)
CONTRACT: tuple[Pass, ...] = (contract,)
CLEAN: tuple[Pass, ...] = (eliminate_views, merge_common_subexpressions, remove_dead_code)
DEFAULT = SIMPLIFY + RESTRUCTURE + SIMPLIFY + FUSE + CONTRACT + CLEAN

# The passes that may change bits.
INEXACT: frozenset[Pass] = frozenset(RESTRUCTURE + FUSE + CONTRACT) - frozenset(SIMPLIFY)


class Ran(NamedTuple):
    """A record of one pass: its name, nodes and bytes of intermediate results before and after, and if it keeps bits.

    Nodes and bytes count the graph and its subgraphs; the bytes are symbolic where sizes are. `changed` tells whether
    the pass changed the graph.
    """

    name: str
    before: int
    after: int
    bytes_before: Size
    bytes_after: Size
    exact: bool
    changed: bool

    def __str__(self) -> str:
        nodes, held = f"{self.before} -> {self.after} nodes", f"{_thousands(self.bytes_before)}"
        held = held if same(self.bytes_before, self.bytes_after) else f"{held} -> {_thousands(self.bytes_after)}"
        return f"{self.name}: {nodes}, {held} bytes{'' if self.exact else ', may change bits'}"


def _thousands(size: Size) -> str:
    return f"{size:,}" if isinstance(size, int) else str(size)


@blocks.without_collection()
def run(graph: Graph, passes: Sequence[Pass] = DEFAULT) -> tuple[Graph, list[Ran]]:
    """Return the graph after all passes, each applied to subgraphs first, and a record of each pass."""
    steps = []
    for step, after in stages(graph, passes):
        steps.append(step)
        graph = after
    return graph, steps


def stages(graph: Graph, passes: Sequence[Pass] = DEFAULT) -> Iterator[tuple[Ran, Graph]]:
    """Yield, pass after pass, the record of the pass and the graph after it."""
    nodes, held = _measure_graph(graph)
    left: dict[Pass, Graph] = {}  # the graph in which a pass last found nothing to do
    for pass_ in passes:
        before = nodes, held
        with clock.phase(pass_.__name__):
            after = graph if left.get(pass_) is graph else apply(pass_, graph)
            nodes, held = before if after is graph else _measure_graph(after)
        if after is graph:
            left[pass_] = graph
        step = Ran(pass_.__name__, before[0], nodes, before[1], held, pass_ not in INEXACT, after is not graph)
        yield step, after
        graph = after


def apply(pass_: Pass, graph: Graph) -> Graph:
    """Return the graph after one pass, applied to its subgraphs first, the innermost before the others."""
    changed = {node: _with_subgraphs(node, pass_) for node in _holders(graph)}
    return pass_(replace_nodes(graph, {node: new for node, new in changed.items() if new is not node}))


def _holders(graph: Graph) -> list[Node]:
    """Return the control-flow nodes; a fused group is left out, since its body is run block by block and stays."""
    return [node for node in graph.nodes if node.op.family == "control" and not is_group(node)]


def _with_subgraphs(node: Node, pass_: Pass) -> Node:
    """Return a control-flow node with its subgraphs after the pass; the node itself where nothing changes."""
    attrs = {key: _apply_pass(value, pass_) for key, value in node.attrs.items()}
    if all(attrs[key] is value for key, value in node.attrs.items()):
        return node
    return Node.of(node.op, node.inputs, attrs, node.source)


def _apply_pass(value: Any, pass_: Pass) -> Any:
    if isinstance(value, Graph):
        return apply(pass_, value)
    if not isinstance(value, tuple):
        return value
    parts = tuple(_apply_pass(v, pass_) for v in value)
    return value if all(new is old for new, old in zip(parts, value, strict=True)) else parts


def _measure_graph(graph: Graph) -> tuple[int, Size]:
    """Return the number of nodes of a graph and the bytes of the values that they compute.

    Views count no bytes. Of a fused group only the results count: its other values are never in memory as a whole.
    """
    specs = [n.spec for n in graph.nodes if not n.op.view and not n.is_source and not is_group(n)]
    often = Counter(map(id, specs))  # most nodes share their spec with others, and symbolic bytes are slow to add
    held = sum((spec.nbytes * often[key] for key, spec in {id(spec): spec for spec in specs}.items()), 0)
    nodes = len(graph)
    for node in graph.nodes:
        if node.op.family == "control" and not is_group(node):
            for inner in node.subgraphs:
                more = _measure_graph(inner)
                nodes, held = nodes + more[0], held + more[1]
    return nodes, held
