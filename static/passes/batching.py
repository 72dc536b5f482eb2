"""Many equal ops become one: the steps of a scan, and ops on the entries of one array.

Steps: the work that does not depend on the state is done for all steps at once.

    x_t @ w in each step              one product of all x with w before the scan, whose rows the steps read
    dw = dw + x_t^T @ dz_t            one product of all x and all dz after the scan; the steps only write their dz
    db = db + sum(dz_t, axis=0)       one sum after the scan

The first kind depends only on entries of sequences and on values that no step changes. The other two are states that a
step only adds to. Both keep an array for all steps where the loop kept one for each. **This changes bits**: products
and sums are made in another order.

Read `batch_steps` first. `BatchedBody` has the nodes of a body for all steps at once, with one more axis in front.

Slices: the same op on every entry of one array is that op on the array.

xs[0] @ w, xs[1] @ w, ...           y = reshape(xs) @ w; y[0], y[1], ...
tanh(y[0]), tanh(y[1]), ...         z = tanh(y); z[0], z[1], ...
(y[t] + q) + b for every t          (y[t] + b) + q, and then the sums y[t] + b are one
square(h1), square(h2), ...         z = square(c); the parts of z, where c = concat([h1, h2, ...]) is computed anyway

This helps a loop over time steps that a trace has unrolled. **This changes bits**: a product of more rows is summed in
another order, and so are reordered sums. Read `merge_slices` first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from graphs import dims
from graphs.dims import Shape, Size
from graphs.ir import Graph, Node
from graphs.op import RuleTable
from graphs.ops import elementwise, movement, reductions
from graphs.ops.linalg import matmul
from graphs.ops.slicing import getitem
from static.passes.loops import Scan, State, pick, scans_of
from static.passes.products import entry_of, nbytes, rows_of, rows_times, section, terms
from static.passes.rewrite import Rules, Uses, count_uses, is_product, is_sum, is_turned, rewrite
from static.passes.simplification import remove_dead_code
from static.passes.views import bounds, permute_node, reshape_node, slice_of
from static.rebuild import replace_nodes


def batch_steps(graph: Graph) -> Graph:
    """Return the graph in which work of scans that needs no state is done outside them, for all steps."""
    instead: dict[Node, Node] = {}
    for scan in scans_of(graph):
        _state_last(scan)
        batched = BatchedBody(scan)
        ahead = _ahead(scan, batched)
        later = _later(scan, batched)
        if not ahead and not later:
            continue
        made = scan.build()
        instead |= scan.parts_of(made, {part: finish(made) for part, finish in later.items()})
    return replace_nodes(graph, instead)


# In the scan ------------------------------------------------------------------------------------------------------


def _state_last(scan: Scan) -> None:
    """Reorder (x + h) + b to (x + b) + h in the body, where h alone depends on the state."""
    states = {state.inside for state in scan.states}
    of_state = set(states)
    for node in scan.body.nodes:
        if not of_state.isdisjoint(node.inputs):
            of_state.add(node)

    uses = count_uses(scan.body)
    scan.change(remove_dead_code(rewrite(scan.body, lambda node: _STATE_LAST(node, (uses, of_state)), uses)))


def _is_early(node: Node, total: Node, h: Node, x: Node, b: Node, facts: tuple[Uses, set[Node]]) -> bool:
    uses, of_state = facts
    if not node.spec.is_float or uses[total] > 1 or h.spec != node.spec or x.spec.dtype != b.spec.dtype:
        return False
    return h in of_state and of_state.isdisjoint((x, b))


_STATE_LAST = Rules(("(total := h + x) + b", "(x + b) + h", _is_early))


# Before the scan --------------------------------------------------------------------------------------------------


def _ahead(scan: Scan, batched: BatchedBody) -> bool:
    """Let the steps read values that were computed for all steps; return whether there are such values."""
    values = batched.values
    entering = {x.inside for x in scan.xs} | {o.inside for o in scan.outer}
    kept = [node for node in scan.body.nodes if node not in values]
    read = {source for node in kept for source in node.inputs} | set(scan.body.outputs)
    frontier = [n for n in scan.body.nodes if n in read and n in values and values[n].each and n not in entering]
    frontier = [node for node in frontier if _is_work(node, entering)]
    instead = {node: scan.add_sequence(values[node].node) for node in frontier}
    if instead:
        scan.change(replace_nodes(scan.collect(), instead))
    return bool(instead)


def _is_work(node: Node, entering: set[Node]) -> bool:
    """Whether a node computes something, and is not only a view of an input of the body."""
    while node.op.view and node not in entering:
        node = node.inputs[0]
    return node not in entering


# After the scan ---------------------------------------------------------------------------------------------------

Finish = Callable[[Node], Node]


def _later(scan: Scan, batched: BatchedBody) -> dict[Node, Finish]:
    """Take out of a scan the states that a step only adds to.

    Returns, for each part of the old scan that gave such a state, a function that makes its value from the new scan.
    """
    if scan.save:
        return {}
    finishers: dict[Node, Finish] = {}
    uses = count_uses(scan.collect())
    for number, state in enumerate(scan.old_states):
        added = _find_increment(state, uses)
        if added is None or not all(_can_wait(term, uses) for term in added):
            continue
        stacks = [_stacks(scan, batched, term) for term in added]
        parts = [part for part in scan.parts if scan.part_of(part.attrs["number"]) == ("state", number)]
        scan.states = [kept for kept in scan.states if kept is not state]
        for part in parts:
            finishers[part] = _finisher(state, added, stacks)
    return finishers


def _find_increment(state: State, uses: Uses) -> list[Node] | None:
    """Return the terms that a step adds to a state which it uses for nothing else; None for any other state."""
    if state.after.op is not elementwise.add or uses[state.inside] != 1 or uses[state.after] != 1:
        return None
    added = terms(state.after, uses, set())
    if state.inside not in added or not state.after.spec.is_float:
        return None
    return [term for term in added if term is not state.inside]


def _can_wait(term: Node, uses: Uses) -> bool:
    """Whether the sum of a term over all steps is one product or one sum."""
    if uses[term] != 1:
        return False
    if is_product(term):
        x, y = term.inputs
        return is_turned(x) and x.spec.ndim == y.spec.ndim == 2
    return is_sum(term) and term.spec.dtype == term.inputs[0].spec.dtype


def _stacks(scan: Scan, batched: BatchedBody, term: Node) -> list[Finish]:
    """Return, for each operand of a term, a function that gives its values in all steps.

    Some of these values become outputs of the scan.
    """
    operands = [term.inputs[0].inputs[0], term.inputs[1]] if is_product(term) else [term.inputs[0]]
    return [_stack(scan, batched, operand) for operand in operands]


def _stack(scan: Scan, batched: BatchedBody, operand: Node) -> Finish:
    sequences = {x.inside: x.value for x in scan.xs}
    sequence = sequences.get(operand)
    if sequence is None and operand in batched.values and batched.values[operand].each:
        sequence = batched.values[operand].node
    if sequence is not None:
        return lambda _: sequence
    if not any(y is operand for y in scan.ys):
        scan.ys.append(operand)
    return lambda made: pick(made, len(scan.states) + _place(scan.ys, operand), operand.source)


def _place(ys: Sequence[Node], wanted: Node) -> int:
    return next(i for i, y in enumerate(ys) if y is wanted)


def _finisher(state: State, added: Sequence[Node], stacks: Sequence[Sequence[Finish]]) -> Finish:
    def finish(made: Node) -> Node:
        total = state.start
        for term, operands in zip(added, stacks, strict=True):
            over = _over_steps(term, [operand(made) for operand in operands])
            total = Node.of(elementwise.add, [total, over], {}, term.source)
        return total

    return finish


def _over_steps(term: Node, operands: Sequence[Node]) -> Node:
    """Return the sum of a term over all steps, computed from the values of its operands in all steps."""
    if is_product(term):
        x, y = map(rows_of, operands)
        return Node.of(matmul, [permute_node(x, (1, 0)), y], {}, term.source)
    shape: Shape = term.spec.shape
    axis = (0, *(a + 1 for a in term.attrs["axis"]))
    total = Node.of(reductions.sum, [operands[0]], {**term.attrs, "axis": axis, "keepdims": False}, term.source)
    return reshape_node(total, shape, term.source)


LARGEST = 1 << 20  # bytes of one step's value: more are not kept for all steps


class Value(NamedTuple):
    """A value of the enclosing graph: with `each` it has entries for all steps, else it is the same in each."""

    node: Node
    each: bool


class BatchedBody:
    """The nodes of a scan's body that need no state, computed for all steps at once."""

    def __init__(self, scan: Scan) -> None:
        self.length: Size = scan.node.attrs["length"]
        self.values: dict[Node, Value] = {x.inside: Value(x.value, True) for x in scan.xs}
        self.values |= {o.inside: Value(o.value, False) for o in scan.outer}
        for node in scan.body.nodes:
            if node not in self.values:
                value = self._of(node)
                if value is not None:
                    self.values[node] = value

    def _of(self, node: Node) -> Value | None:
        if node.is_constant:
            return Value(node, False)
        rule = _RULES[node.op]
        inputs = [self.values.get(source) for source in node.inputs]
        if rule is None or not inputs or None in inputs or nbytes(node) > LARGEST:
            return None
        values = [value for value in inputs if value is not None]
        if not any(value.each for value in values):
            return Value(Node.of(node.op, [value.node for value in values], node.attrs, node.source), False)
        made = rule(node, values)
        fits = made is not None and dims.same_shape(made.spec.shape, (self.length, *node.spec.shape))
        return Value(made, True) if made is not None and fits else None


# The rule of each op ----------------------------------------------------------------------------------------------

BatchRule = Callable[[Node, Sequence[Value]], Node | None]


def _elementwise(node: Node, inputs: Sequence[Value]) -> Node | None:
    sources = [_align_entries(v.node, node.spec.ndim) if v.each else v.node for v in inputs]
    return Node.of(node.op, sources, node.attrs, node.source)


def _align_entries(x: Node, ndim: int) -> Node:
    """Return all entries with axes of size 1 before their own, so that they broadcast as one entry does."""
    length, *entry = x.spec.shape
    return reshape_node(x, (length, *[1] * (ndim - len(entry)), *entry))


def _matmul(node: Node, inputs: Sequence[Value]) -> Node | None:
    x, w = inputs
    if w.each or w.node.spec.ndim != 2 or node.inputs[0].spec.ndim > 2:
        return None
    product = Node.of(matmul, [rows_of(x.node), w.node], {}, node.source)
    return reshape_node(product, (x.node.spec.shape[0], *node.spec.shape), node.source)


def _permute(node: Node, inputs: Sequence[Value]) -> Node | None:
    return permute_node(inputs[0].node, (0, *(a + 1 for a in node.attrs["axes"])), node.source)


def _reshape(node: Node, inputs: Sequence[Value]) -> Node | None:
    x = inputs[0].node
    return reshape_node(x, (x.spec.shape[0], *node.spec.shape), node.source)


def _reduction(node: Node, inputs: Sequence[Value]) -> Node | None:
    axis = tuple(a + 1 for a in node.attrs["axis"])
    return Node.of(node.op, [inputs[0].node], {**node.attrs, "axis": axis}, node.source)


def _getitem(node: Node, inputs: Sequence[Value]) -> Node | None:
    return Node.of(getitem, [inputs[0].node], {"key": (slice(None), *node.attrs["key"])}, node.source)


def _astype(node: Node, inputs: Sequence[Value]) -> Node | None:
    return Node.of(node.op, [inputs[0].node], node.attrs, node.source)


_RULES: RuleTable[BatchRule | None] = RuleTable(
    "batching over steps", otherwise=None, families={"elementwise": _elementwise}
)
_RULES.enter({
    "matmul": _matmul, "permute_dims": _permute, "reshape": _reshape, "astype": _astype, "getitem": _getitem,
    "sum": _reduction, "mean": _reduction, "max": _reduction,
})  # fmt: skip


# Slices ---------------------------------------------------------------------------------------------------------------

FEWEST = 4  # entries: fewer are not worth a view of each
ROUNDS = 8  # how many ops, one on the other, are merged at most


def merge_slices(graph: Graph) -> Graph:
    """Return the graph in which equal work on the entries of one array is done once, on the array."""
    if graph.ops.isdisjoint((getitem, movement.concat)):
        return graph
    for _ in range(ROUNDS):
        before, graph = graph, _merge_slices(_entries_first(graph))
        if graph is before:
            break
    return graph


class AxisPart(NamedTuple):
    """A part along the first axis of an array: `base[start:stop]`, or `base[start]` where `entry` holds."""

    base: Node
    start: Size
    stop: Size
    entry: bool


def _entries_first(graph: Graph) -> Graph:
    uses = count_uses(graph)
    return rewrite(graph, lambda node: _ENTRY_FIRST(node, uses), uses)


def _is_late(node: Node, total: Node, y: Node, q: Node, b: Node, facts: Uses) -> bool:
    """Whether b is smaller than the array entry y, so that adding b to y first lets all entries share the sum."""
    if not node.spec.is_float or facts[total] != 1 or dims.same_shape(b.spec.shape, node.spec.shape):
        return False
    return entry_of(y) is not None and entry_of(q) is None and y.spec == node.spec == q.spec


_ENTRY_FIRST = Rules(("(total := y + q) + b", "(y + b) + q", _is_late))


def _merge_slices(graph: Graph) -> Graph:
    parts = _parts(graph)
    groups: dict[Any, list[Node]] = defaultdict(list)
    for position, node in enumerate(graph.nodes):
        for key in _keys(node, position, parts):
            groups[key].append(node)
    instead: dict[Node, Node] = {}
    for key, members in groups.items():
        rest = [node for node in members if node not in instead]
        if len(rest) >= FEWEST:
            instead |= _merge_members(key, rest, parts)
    return replace_nodes(graph, instead)


class _Parts(NamedTuple):
    """The parts of arrays that nodes are, and for each concat the position after which it can be read for its parts."""

    of: dict[Node, list[AxisPart]]
    after: dict[Node, int]


def _parts(graph: Graph) -> _Parts:
    """Return the nodes that are views of parts of an array, and the nodes that a concat joins.

    The parts of a concat exist before the concat. An op on such a part may read the concat instead if the op comes
    after all parts of the concat, since then it cannot be one of them itself.
    """
    parts = _Parts(defaultdict(list), {})
    position = {node: i for i, node in enumerate(graph.nodes)}
    for node in graph.nodes:
        entry = entry_of(node)
        base, (start, stop) = slice_of(node, 0)
        if entry is not None:
            parts.of[node].append(AxisPart(entry[0], entry[1], entry[1] + 1, True))
        elif base is not None:
            parts.of[node].append(AxisPart(base, start, stop, False))
        elif node.op is movement.concat and node.attrs["axis"] == 0 and len(node.inputs) >= FEWEST:
            parts.after[node] = max(position[source] for source in node.inputs)
            for source, place in zip(node.inputs, bounds(node.inputs, 0), strict=True):
                parts.of[source].append(AxisPart(node, *place, False))
    return parts


def _keys(node: Node, position: int, parts: _Parts) -> Iterator[Any]:
    """Yield what nodes must have in common to become one op on an array: a key for each part that the node reads."""
    if not _is_mergeable(node):
        return
    for i, source in enumerate(node.inputs):
        for part in parts.of.get(source, ()) if i == 0 or not is_product(node) else ():
            others = (*node.inputs[:i], *node.inputs[i + 1 :])
            if _is_free(others, part, position, parts) and all(o.spec.ndim <= source.spec.ndim for o in others):
                yield node.op, part.base, part.entry, i, others, str(source.spec.shape)


def _is_mergeable(node: Node) -> bool:
    if is_product(node):
        return node.inputs[0].spec.ndim == 2 and node.inputs[1].spec.ndim == 2
    return node.op.family == "elementwise" and bool(node.spec.ndim)


def _is_free(others: Sequence[Node], part: AxisPart, position: int, parts: _Parts) -> bool:
    """Whether an op on the whole base depends on no result of an op on a part of it."""
    after = parts.after.get(part.base)
    if after is None:
        return True  # the op on a view comes after its base, and after the others
    return position > after and all(other.is_source for other in others)


def _merge_members(key: Any, members: Sequence[Node], parts: _Parts) -> dict[Node, Node]:
    """Return the replacement of each member: its part of one op on the base, or on a slice of the base."""
    op, base, entry, index, others, _ = key
    on_base = [(part, node) for node in members for part in parts.of[node.inputs[index]] if part.base is base]
    runs = _runs([(part, node) for part, node in on_base if part.entry == entry])
    made: dict[Node, Node] = {}
    for run in runs:
        if len(run) >= FEWEST:
            made |= _merge_run(run, op, index, others)
    return made


def _runs(parts: Sequence[tuple[AxisPart, Node]]) -> list[list[tuple[AxisPart, Node]]]:
    """Return the members on consecutive parts as runs, each part once."""
    by_start = {str(part.start): (part, node) for part, node in reversed(parts)}
    ends = {str(part.stop) for part, _ in by_start.values()}
    runs = []
    for start, (part, node) in by_start.items():
        if start in ends:
            continue
        run = [(part, node)]
        while str(run[-1][0].stop) in by_start and len(run) <= len(by_start):
            run.append(by_start[str(run[-1][0].stop)])
        runs.append(run)
    return runs


def _merge_run(run: Sequence[tuple[AxisPart, Node]], op: Any, index: int, others: Sequence[Node]) -> dict[Node, Node]:
    first, node = run[0]
    base = section(first.base, first.start, run[-1][0].stop)
    inputs = [*others[:index], base, *others[index:]]
    if op is matmul:
        whole = rows_times(base, others[0], node.source)
    elif any(o.spec.ndim > node.inputs[index].spec.ndim for o in others):
        return {}
    else:
        whole = Node.of(op, inputs, {}, node.source)
    if not dims.same(whole.spec.shape[0], base.spec.shape[0]):
        return {}
    made = {}
    for part, member in run:
        view = _part_of(whole, part, first.start)
        if view.spec != member.spec:
            return {}
        made[member] = view
    return made


def _part_of(whole: Node, part: AxisPart, start: Size) -> Node:
    first = part.start - start
    rest = [slice(None)] * (whole.spec.ndim - 1)
    key = (first, *rest) if part.entry else (slice(first, part.stop - start), *rest)
    return Node.of(getitem, [whole], {"key": key}, whole.source)
