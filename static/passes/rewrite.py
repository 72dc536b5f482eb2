"""Rewriting: one walk over a graph in order, in which each node is replaced, kept, or rebuilt on its new inputs.

Rewriting rules are data: a pattern of ops, the replacement of a node that fits it, and a condition.

    ("x + -y", "x - y", lambda node: node.spec.is_float)

In a pattern a name stands for any node, and the same name for the same node. A number stands for a constant that holds
it everywhere. `x * y` and `x + y` fit in either order, `multiply(x, y)` and all other ops as written. `(p := x * y)`
names an inner node.

In a replacement the op of the matched node keeps its attributes, and no other op may need any. A function may stand in
place of the text; it returns the node, or None. Conditions and such functions take as parameters the nodes that they
look at: names of the pattern, `node`, and `facts`.

Read `rewrite` first, then `Rules`. `_RuleWriter` compiles each pattern once, to nested conditions and loops over the
orders of operands.
"""

from __future__ import annotations

import ast
import inspect
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, cast

import numpy as np

from graphs import op as registry
from graphs.ir import CONSTANT, Graph, Node
from graphs.op import Op
from graphs.ops.linalg import matmul
from graphs.ops.movement import permute_dims
from graphs.ops.reductions import sum as sum_over
from static.rebuild import rebuild_node

RewriteRule = Callable[[Node], Node | None]
Uses = Counter[Node]

_KEPT = 1 << 12  # combinations of ops: a program that makes ops without end begins anew
_MOST = 16  # the most replacements of one node: far more than any chain of rules needs


def rewrite(graph: Graph, rule: RewriteRule, uses: Uses | None = None) -> Graph:
    """Return the graph after `rule(node)`, which returns a replacement or None to keep the node.

    A replacement may be new or an earlier node. The rule sees nodes whose inputs are rewritten already. It sees its own
    results too, until it returns None. A rule that looks at how often nodes are read needs `uses`, from `count_uses`;
    the walk keeps the counts true. Nodes that nobody reads any more are left for dead code removal. A graph in which
    nothing changes is returned as it is.
    """
    made: dict[Node, Node] = {}  # only nodes that change, so that a walk without changes is cheap
    order: dict[Node, None] | None = None  # None until a node changes
    stays = made.keys().isdisjoint
    for place, node in enumerate(graph.nodes):
        current = node if stays(node.inputs) else rebuild_node(node, made)
        replacement = rule(current)
        if replacement is not None and replacement is not current:
            order = dict.fromkeys(graph.nodes[:place]) if order is None else order
            current = _settle(current, replacement, rule, uses, order)
            _place(current, order)
        elif order is not None:
            order[current] = None
        if current is not node:
            made[node] = current
            if uses is not None:
                uses[current] += uses[node]
    if not made or order is None:
        return graph
    ends = [[made.get(node, node) for node in nodes] for nodes in (graph.inputs, graph.outputs)]
    return Graph(graph.name, ends[0], order, ends[1])


def count_uses(graph: Graph) -> Uses:
    """Return how often each node is read, by nodes and as an output of the graph."""
    uses: Uses = Counter(chain.from_iterable([node.inputs for node in graph.nodes]))
    uses.update(graph.outputs)
    return uses


def _settle(
    node: Node, replacement: Node | None, rule: RewriteRule, uses: Uses | None, order: Mapping[Node, None]
) -> Node:
    """Return the node after rules are applied to it, and to the new nodes that they make, until none applies."""
    for _ in range(_MOST):
        if replacement is None or replacement is node:
            return node
        is_placed = replacement in order
        if uses is not None:
            _read_instead(node, None if is_placed else replacement, uses)
        if is_placed:
            return replacement
        new: dict[Node, Node] = {}
        for made in replacement.inputs:
            if made not in order and made not in new:
                settled = _settle(made, rule(made), rule, uses, order)
                if settled is not made:
                    new[made] = settled
                    if uses is not None:
                        uses[settled] += uses[made]
        node = rebuild_node(replacement, new)
        replacement = rule(node)
    return node


def _read_instead(old: Node, new: Node | None, uses: Uses) -> None:
    """Count the reads of a new node, and uncount the reads of the node that it replaces.

    The new node comes first, since most of its inputs are those of the old one. In the other order these would count as
    dead in between, with all that they are computed from, and a walk over that for each replacement takes quadratic
    time.
    """
    if new is not None:
        _count(new, uses, 1)
    _count(old, uses, -1)


def _count(node: Node, uses: Uses, reads: int) -> None:
    """Add `reads` (1 or -1) to the count of each input.

    Go on to an input's own inputs where it became read or unread.
    """
    waiting = [node]
    while waiting:
        for source in waiting.pop().inputs:
            uses[source] += reads
            if uses[source] == (reads > 0):
                waiting.append(source)


def _place(node: Node, order: dict[Node, None]) -> None:
    """Put a node into the order, after those of its inputs that a rule has made and that have no place yet."""
    for source in node.inputs:
        if source not in order:
            _place(source, order)
    order[node] = None


Entry = tuple[Any, ...]  # a pattern, its replacement (a text or a function), and a condition if there is one
Apply = Callable[[Node, Any], Node | None]

SMALLEST_UNIFORM = 1 << 20  # elements: an array of more is not searched for one repeated value
_SIGNS: dict[type, str] = {
    ast.Mult: "multiply", ast.Add: "add", ast.Sub: "subtract", ast.Div: "divide", ast.MatMult: "matmul",
}  # fmt: skip
_EITHER = (ast.Mult, ast.Add)


class Rules:
    """Rewriting rules, sorted by the op of the node that they match.

    Called with a node, and with facts for the rules. `ops` are the ops of nodes that they match.
    """

    def __init__(self, *entries: Entry) -> None:
        self._rules: dict[Op, list[tuple[frozenset[Op], Apply]]] = {}
        self._fitting: dict[tuple[Op, ...], list[Apply]] = {}  # by the ops of a node and of its inputs
        for pattern, make, *when in entries:
            tree = ast.parse(pattern, mode="eval").body
            op, operands = _parts(tree)
            rule = _RuleWriter(tree, make, *when).rule()
            self._rules.setdefault(op, []).append((frozenset(_ops(operands)), rule))
        self.ops = self._rules.keys()

    def __call__(self, node: Node, facts: Any = None) -> Node | None:
        """Return the replacement of a node by the first rule that fits, or None."""
        rules = self._rules.get(node.op)
        if rules is None:
            return None
        ops = (node.op, *[source.op for source in node.inputs])
        fitting = self._fitting.get(ops)
        if fitting is None:  # most nodes need no closer look
            if len(self._fitting) >= _KEPT:
                self._fitting.clear()
            fitting = [rule for wanted, rule in rules if wanted.issubset(ops[1:])]
            self._fitting[ops] = fitting
        for rule in fitting:
            replacement = rule(node, facts)
            if replacement is not None:
                return replacement
        return None


# Constants --------------------------------------------------------------------------------------------------------


def value_of(node: Node) -> Any:
    """Return the number that a constant holds (everywhere, if it is an array); None for any other node."""
    if not node.is_constant or not isinstance(array := node.attrs["value"], np.ndarray):
        return None
    if not array.ndim:
        return array[()]
    if not array.size or array.size > SMALLEST_UNIFORM:
        return None
    first = array.reshape(-1)[0]
    if not (np.all(array == first) and (first or not np.any(np.signbit(array) != np.signbit(first)))):
        return None
    return first


def is_product(node: Node) -> bool:
    """Whether a node is a product of matrices."""
    return node.op is matmul


def is_turned(node: Node) -> bool:
    """Whether a node is a permute_dims: an array with its axes in another order."""
    return node.op is permute_dims


def is_sum(node: Node) -> bool:
    """Whether a node is a sum over axes."""
    return node.op is sum_over


def number(value: Any, dtype: np.dtype[Any], source: str = "") -> Node:
    """Return a constant node of one number."""
    return Node.of(CONSTANT, (), {"value": np.asarray(value, dtype), "dtype": dtype}, source)


def call(op: Op, *inputs: Node, source: str) -> Node:
    """Return the node of an elementwise op without attributes."""
    return Node.of(op, inputs, {}, source)


# Reading a pattern ------------------------------------------------------------------------------------------------


def _parts(tree: ast.expr) -> tuple[Op, list[ast.expr]]:
    """Return the op of a pattern, and its operands."""
    if isinstance(tree, ast.BinOp):
        return registry.get(_SIGNS[type(tree.op)]), [tree.left, tree.right]
    if isinstance(tree, ast.UnaryOp):
        return registry.get("negative"), [tree.operand]
    written = cast(ast.Call, tree)
    return registry.get(ast.unparse(written.func)), written.args


def _literal(tree: ast.expr) -> Any:
    """Return the number that a pattern spells out, or None."""
    try:
        return ast.literal_eval(tree)
    except ValueError:
        return None


def _inside(tree: ast.expr) -> ast.expr:
    return tree.value if isinstance(tree, ast.NamedExpr) else tree


def _ops(trees: Sequence[ast.expr]) -> Iterator[Op]:
    """Yield the ops that the operands of a pattern require."""
    for tree in map(_inside, trees):
        if _literal(tree) is not None:
            yield CONSTANT
        elif not isinstance(tree, ast.Name):
            yield _parts(tree)[0]


class _RuleWriter:
    """Write the function that applies a rule to a node, with a local variable for each node of the pattern."""

    def __init__(self, pattern: ast.expr, make: Any, when: Callable[..., bool] | None = None) -> None:
        self.names: dict[str, Any] = {"of": Node.of, "number": number, "holds": _holds, "either": _either}
        self.lines = ["def rule(node, facts):"]
        self.depth, self.bound = 1, {"node", "facts"}
        self._operands(pattern, "node")
        if when is not None:
            self._inner(f"if {self._calling(when, 'when')}:")
        made = (
            self._make_expression(ast.parse(make, mode="eval").body)
            if isinstance(make, str)
            else self._calling(make, "make")
        )
        self._line(f"replacement = {made}")
        self._inner("if replacement is not None:")
        self._line("return replacement")

    def rule(self) -> Apply:
        exec("\n".join(self.lines), self.names)  # noqa: S102  (made of patterns that stand in the source of passes)
        return cast(Apply, self.names["rule"])

    def _line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def _inner(self, text: str) -> None:
        self._line(text)
        self.depth += 1

    def _op(self, op: Op) -> str:
        self.names[f"op_{op.name}"] = op
        return f"op_{op.name}"

    def _operands(self, tree: ast.expr, node: str) -> None:
        """Write the statements that put the operands of a node into variables and compare them with the pattern."""
        operands = _parts(tree)[1]
        names = [self._name(operand) for operand in operands]
        if isinstance(tree, ast.BinOp) and isinstance(tree.op, _EITHER):
            self._inner(f"for {', '.join(names)} in either({node}.inputs):")
        else:
            self._line(f"{', '.join(names)}, = {node}.inputs")
        for operand, name in zip(operands, names, strict=True):
            self._compare(operand, name)

    def _name(self, tree: ast.expr) -> str:
        wanted = tree.target if isinstance(tree, ast.NamedExpr) else tree
        name = wanted.id if isinstance(wanted, ast.Name) and wanted.id not in self.bound else f"n{len(self.bound)}_"
        self.bound.add(name)
        return name

    def _compare(self, tree: ast.expr, name: str) -> None:
        if isinstance(tree, ast.NamedExpr) and tree.target.id != name:
            self._inner(f"if {name} is {tree.target.id}:")  # a name that stands elsewhere in the pattern as well
        inner = _inside(tree)
        value = _literal(inner)
        if value is not None:
            self._inner(f"if holds({name}, {value!r}):")
        elif not isinstance(inner, ast.Name):
            self._inner(f"if {name}.op is {self._op(_parts(inner)[0])}:")
            self._operands(inner, name)
        elif inner.id != name:
            self._inner(f"if {name} is {inner.id}:")

    def _calling(self, function: Callable[..., Any], name: str) -> str:
        self.names[name] = function
        return f"{name}({', '.join(inspect.signature(function).parameters)})"

    def _make_expression(self, tree: ast.expr) -> str:
        """Return the expression that makes the replacement of the node."""
        if isinstance(tree, ast.Name):
            return tree.id
        value = _literal(tree)
        if value is not None:
            return f"number({value!r}, node.spec.dtype, node.source)"
        op, operands = _parts(tree)
        attrs = f"node.attrs if node.op is {self._op(op)} else {{}}"
        return (
            f"of({self._op(op)}, ({''.join(self._make_expression(operand) + ', ' for operand in operands)}), {attrs}, "
            "node.source)"
        )


def _either(inputs: tuple[Node, ...]) -> tuple[tuple[Node, ...], ...]:
    """Return both orders of two operands, or one order where they are the same node."""
    return (inputs,) if inputs[0] is inputs[1] else (inputs, inputs[::-1])


def _holds(node: Node, wanted: float) -> bool:
    """Whether a node is a constant of this number; zeros must agree in sign."""
    value = value_of(node)
    return value is not None and value == wanted and (wanted != 0 or np.signbit(value) == np.signbit(wanted))
