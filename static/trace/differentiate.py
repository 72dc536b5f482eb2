"""Gradients as part of a graph: the shared gradient rules run on symbols, and so append the backward pass.

Read `record_trace` and `pull_cotangents` (the entries), then `pull_back` and `_Pull` (one node after the other). Then
come the gradient of `concat`, and `Partial` and `CotangentReach`, which say on which paths a dynamic tape would have a
cotangent: a cotangent that only one branch gives does not exist where another branch is taken.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from graphs import reverse, tree
from graphs.builder import Builder
from graphs.dims import Size
from graphs.errors import NotDifferentiableError, locate
from graphs.ir import GradientLine, Graph, Node
from graphs.op import Attrs, RuleTable
from graphs.ops.creation import zeros_like
from graphs.ops.elementwise import logical_and, logical_not, logical_or
from graphs.ops.shapes import dtype_of, shape_of
from graphs.ops.slicing import cut
from graphs.reverse import pullback
from graphs.transforms import Function, Pull
from static import clock
from static.trace.control import Tracer, choice
from static.trace.symbol import Symbol, callee
from static.trace.tracing import check_readable, current, is_choice, is_tensor, node_of, of_kind, reading_all


def record_trace(f: Function, args: Sequence[Any], positions: Sequence[int]) -> tuple[Any, Pull]:
    """Trace `f(*args)`; return its outputs, and a function that pulls cotangents back to the arguments in `positions`.

    `graphs.transforms` is built on this function.
    """
    builder = _builder()
    called: list[Any] = tree.tree_map(_tensor, list(args))
    structures, variables = [], []
    kinds: list[bool] = []
    for position in positions:
        leaves, structure = tree.flatten(args[position])
        symbols = list(map(_variable, leaves))
        kinds += map(is_tensor, leaves)
        called[position] = tree.unflatten(structure, list(symbols))
        structures.append(structure)
        variables += symbols
    with recording(builder, variables) as pullback:
        outputs = callee(f)(*called)
    results = tree.leaves(outputs)
    check_readable(results)

    def pull(cotangents: Mapping[int, Any]) -> tuple[Any, ...]:
        with reading_all():
            seeds = [_seed(results[i], g) for i, g in cotangents.items()]
            reaching = pullback([results[i] for i in cotangents], seeds)
            gradients = [zeros_like(v) if g is None else g for v, (g, _) in zip(variables, reaching, strict=True)]
            rest = iter(list(map(of_kind, gradients, kinds)))
        return tuple([tree.unflatten(s, [next(rest) for _ in range(s.num_leaves)]) for s in structures])

    return outputs, pull


def gradients(_: Symbol, outputs: Sequence[Any], inputs: Sequence[Any], seeds: Any, *, may_be_none: bool) -> Any:
    """Return the gradients of the summed outputs in each input as symbols, like `torch.autograd.grad`.

    Raises NotDifferentiableError where the outputs do not depend on an input, unless `may_be_none`.
    """
    cotangents = [None] * len(outputs) if seeds is None else seeds if isinstance(seeds, (list, tuple)) else [seeds]
    reaching = pull_cotangents(outputs, cotangents, inputs)
    if not may_be_none and any(gradient is None for gradient in reaching):
        raise NotDifferentiableError(locate("an input of grad has no part in the outputs; give allow_unused=True"))
    return tuple(reaching)


Symbol.gradients = gradients  # type: ignore[attr-defined]


def pull_cotangents(outputs: Sequence[Any], seeds: Sequence[Any], inputs: Sequence[Any], start: int = 0) -> list[Any]:
    """Return the cotangent of each input, or None, pulled from the outputs through the nodes from `start` on."""
    builder = _builder()
    check_readable(outputs)
    with reading_all():
        sources = [Symbol(builder, node_of(builder, value, ())) for value in inputs]
        cotangents = [_seed(out, seed) for out, seed in zip(outputs, seeds, strict=True)]
        reaching = pull_back(builder, start, sources, outputs, cotangents)
        return [g if g is None else of_kind(g, is_tensor(x)) for x, (g, _) in zip(inputs, reaching, strict=True)]


def _builder() -> Builder:
    builder = current()
    if builder is None:
        raise NotDifferentiableError(locate("a pullback was used after its trace had ended; call it inside the trace"))
    return builder


def _variable(leaf: Any) -> Symbol:
    """Return a symbol for a leaf that is differentiated, separate from every other use of the same value.

    Raises NotDifferentiableError for a leaf that is no float: an int, a text, an object.
    """
    check_floating(leaf.dtype if hasattr(leaf, "dtype") else np.asarray(leaf).dtype)
    return of_kind(leaf, is_tensor=True)


def _tensor(leaf: Any) -> Any:
    """Return an array argument as a tensor, as in the dynamic engine, so that both compute by the same rules."""
    if not isinstance(leaf, (Symbol, np.ndarray)) or is_tensor(leaf) or leaf.dtype.kind not in "biuf":
        return leaf
    return of_kind(leaf, is_tensor=True)


def check_floating(dtype: np.dtype[Any]) -> None:
    """Raise NotDifferentiableError unless values of this dtype have gradients."""
    if dtype.kind != "f":
        raise NotDifferentiableError(locate(f"gradient with respect to {dtype} values; convert them to a float"))


def _seed(output: Any, cotangent: Any) -> Symbol:
    """Return a cotangent as a symbol, so that the rules' ops are appended; None stands for 1."""
    builder = _builder()
    value = np.ones((1,) * len(shape_of(output)), dtype_of(output)) if cotangent is None else cotangent
    return Symbol(builder, node_of(builder, value, ()))


Known = Mapping[Node, Node]


class Cotangent(NamedTuple):
    """The cotangent of a value (None where none reaches it), and the paths on which a dynamic tape would have it."""

    value: Any
    reach: Reach = None


Backward = Callable[..., list[Cotangent]]


@contextlib.contextmanager
def recording(builder: Builder, variables: Sequence[Symbol]) -> Iterator[Backward]:
    """Give `pullback(outputs, cotangents)` for the nodes of the block; it returns each variable's cotangent.

    `cotangents` may hold values and Cotangents. A third argument maps nodes to other nodes that already hold their
    values. Loops traced inside the block save the values that their gradient needs.
    """
    start = len(builder.nodes)
    builder.saving += 1
    try:
        yield lambda outputs, seeds, computed=_NOTHING: pull_back(builder, start, variables, outputs, seeds, computed)
    finally:
        builder.saving -= 1


_NOTHING: Known = MappingProxyType({})


def pull_back(
    builder: Builder,
    start: int,
    variables: Sequence[Symbol],
    outputs: Sequence[Any],
    seeds: Sequence[Any],
    computed: Known = _NOTHING,
) -> list[Cotangent]:
    """Return the cotangent of each variable, pulled through the nodes of the builder from number `start` on.

    Gradient rules read the value of a node in `computed` from the node that it maps to.
    """
    with clock.phase("differentiate"):
        sources = {v.node for v in variables}
        active = _active(builder.nodes[start:], sources)
        cotangents: dict[Node, Any] = {}
        reached = CotangentReach()
        for output, seed in zip(outputs, seeds, strict=True):
            cotangent, reach = seed if isinstance(seed, Cotangent) else (seed, None)
            if isinstance(output, Symbol) and output.node in active and cotangent is not None:
                held = cotangents.get(output.node)
                cotangents[output.node] = cotangent if held is None else reverse.total(held, cotangent)
                reached.add(output.node, reach)
        recorded = [node for node in builder.nodes[start:] if node in active and node not in sources]
        here = _builder()  # the graph itself, or the body of a loop in it
        line = here.line
        pull = _Pull(builder, active, computed, reached)
        try:
            reverse.accumulate(reversed(recorded), cotangents, pull.back)
        finally:
            here.line = line
        return [Cotangent(cotangents.get(v.node), reached.of(v.node)) for v in variables]


def _active(nodes: Sequence[Node], sources: set[Node]) -> set[Node]:
    """Return the nodes that a tape would record: floats computed from a source through an input with a rule."""
    active = set(sources)
    for node in nodes:
        if node.spec.is_float and any(s in active and _has_rule(node, i) for i, s in enumerate(node.inputs)):
            active.add(node)
    return active


def _has_rule(node: Node, index: int) -> bool:
    return node.op in joint_rules or node.op.rule(index) is not None


class _Pull(NamedTuple):
    """Carry a cotangent back through a node.

    A cotangent may be zero only because no taken branch reads the value; a tape would have none there. A gradient rule
    may turn such a zero into NaN. So a choice takes the rule's result only where a tape would, and a rule that may
    raise runs only there.
    """

    builder: Builder
    active: set[Node]
    computed: Known
    reached: CotangentReach

    def back(self, node: Node, cotangent: Any) -> Iterator[tuple[Node, Any]]:
        """Yield each input that wants a cotangent, with its contribution."""
        _builder().line = GradientLine(node.source)  # the gradient of a line is put down to that line
        own = self.reached.of(node)
        contributions: Iterable[tuple[Node, Any]] = self._contributions(node, cotangent)
        if own is not None and node.op.rule_fails:
            contributions = self._where(own, contributions)
        is_safe = own is None or node.op.zero_safe or node.op.rule_fails or is_choice(node.attrs)
        for source, contributed in contributions:
            contribution, reach = contributed if isinstance(contributed, Cotangent) else (contributed, None)
            if own is not None and not is_safe:
                contribution = choice(own.flag(), contribution, zeros_like(contribution))
            if node.is_part:
                self.reached.add_part(source, node.attrs["number"], own)
            else:
                self.reached.add(source, both(own, reach))
            yield source, contribution

    def _where(self, reach: Partial, contributions: Iterable[tuple[Node, Any]]) -> Iterable[tuple[Node, Any]]:
        """Return the contributions, computed in a branch that runs where a tape would compute them, else zeros."""
        sources: list[Node] = []

        def apply() -> list[Any]:
            pairs = list(contributions)
            sources[:] = [source for source, _ in pairs]
            return [g for _, g in pairs]

        def zeros() -> list[Any]:
            return [zeros_like(Symbol(self.builder, source)) for source in sources]

        made = Tracer().switch(logical_not(reach.flag()), (apply, zeros), ())
        return zip(sources, made, strict=True)

    def _contributions(self, node: Node, cotangent: Any) -> Iterator[tuple[Node, Any]]:
        """Yield each input that wants a cotangent, with its contribution by the rules of the op."""
        *inputs, out = [Symbol(self.builder, self.computed.get(value, value)) for value in (*node.inputs, node)]
        joint = joint_rules[node.op]
        if joint is not None:
            wanted = [source in self.active for source in node.inputs]
            parts = self.reached.of_parts(node)
            contributions = joint(OpCall(node.attrs, inputs, out, cotangent, wanted, parts))
            for source, g in zip(node.inputs, contributions, strict=True):
                if source in self.active and g is not None and not (isinstance(g, Cotangent) and g.value is None):
                    yield source, g
            return
        bits = sum(1 << i for i, s in enumerate(node.inputs) if s in self.active and node.op.rule(i) is not None)
        rules = pullback(node.op, bits, len(inputs))
        for source, g in rules.pull(node.inputs, [*rules.save(inputs, out, node.attrs), cotangent]):
            yield source, reverse.whole(g)


class OpCall(NamedTuple):
    """A call of an op, its cotangent (or those of its parts, by number), and which inputs want a cotangent.

    `parts` tells where a tape would have the cotangents of the parts.
    """

    attrs: Attrs
    inputs: list[Symbol]
    out: Symbol
    cotangents: Any
    wanted: list[bool]
    parts: Mapping[int, Reach]


# Ops with one rule for all inputs, which gives a value, a Cotangent or None for each: the ops that hold subgraphs
# (`static/trace/control_gradients.py`), and concat, below.
JointRule = Callable[[OpCall], Iterable[Any]]
joint_rules: RuleTable[JointRule | None] = RuleTable("joint gradients", otherwise=None)


@joint_rules.for_op("concat")
def _pull(call: OpCall) -> Iterator[Any]:
    """Yield the cotangent of each input of a concat, None where none is wanted.

    The op's own rules add up the sizes of all earlier inputs for each input, which takes quadratic time.
    """
    axis = call.attrs["axis"]
    start: Size = 0
    for x, wanted in zip(call.inputs, call.wanted, strict=True):
        stop = start + x.shape[axis]
        yield reverse.conform(cut(call.cotangents, axis, start, stop), x.shape, x.dtype) if wanted else None
        start = stop


class Partial:
    """A bool of the graph: whether a cotangent is there. Its nodes are made when it is first asked for.

    A Partial that holds in one branch of a switch of two has as `branch` the node of the index, and whether it is the
    later branch.
    """

    def __init__(self, make: Callable[[], Any], branch: tuple[Node, bool] | None = None) -> None:
        self._make = make
        self._flag: Any = None
        self.branch = branch

    def flag(self) -> Any:
        """Return the bool, and append its nodes at the first call."""
        if self._flag is None:
            self._flag = self._make()
        return self._flag


Reach = Partial | None
"""None stands for a cotangent that a tape has on every path."""


def either(first: Reach, second: Reach) -> Reach:
    """Return where at least one of two contributions is there."""
    if first is None or second is None or first is second:
        return first and second
    if first.branch and second.branch and first.branch[0] is second.branch[0]:
        return first if first.branch == second.branch else None
    return Partial(lambda: logical_or(first.flag(), second.flag()))


def both(first: Reach, second: Reach) -> Reach:
    """Return where both are there: the cotangent that a contribution is made of, and the node that it goes through."""
    if first is None or second is None or first is second:
        return first or second
    return Partial(lambda: logical_and(first.flag(), second.flag()))


class CotangentReach:
    """The paths on which each node of a graph has a cotangent, as far as cotangents have been carried back."""

    def __init__(self) -> None:
        self._nodes: dict[Node, Reach] = {}
        self._parts: dict[Node, dict[int, Reach]] = {}

    def of(self, node: Node) -> Reach:
        """Return on which paths a node has a cotangent."""
        return self._nodes.get(node)

    def of_parts(self, node: Node) -> Mapping[int, Reach]:
        """Return on which paths each part of a node has a cotangent."""
        return self._parts.get(node, {})

    def add(self, node: Node, reach: Reach) -> None:
        """Add the paths of one more contribution to a node."""
        self._nodes[node] = either(self._nodes[node], reach) if node in self._nodes else reach

    def add_part(self, node: Node, number: int, reach: Reach) -> None:
        """Add the paths of one more contribution to a part of a node."""
        parts = self._parts.setdefault(node, {})
        parts[number] = either(parts[number], reach) if number in parts else reach
        self.add(node, reach)


def graphs_in(node: Node) -> list[Graph]:
    """Return the graphs that a control-flow node holds."""
    held = [part for value in node.attrs.values() for part in (value if isinstance(value, tuple) else (value,))]
    return [part for part in held if isinstance(part, Graph)]
