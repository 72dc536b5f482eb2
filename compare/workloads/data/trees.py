"""Syntax trees of source code as nested tuples of ints: a structure of its own for nearly every example."""

import ast
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from compare.workloads.data.sources import sample

Tree: TypeAlias = tuple[int, tuple["Tree", ...]]

# Below this, few shapes exist and most statements repeat one: `x = y`, `return x`, `import x`.
_FEWEST_NODES = 8


class SyntaxTree(NamedTuple):
    """A tree `(type id, children)` and the number of its nodes."""

    root: Tree
    nodes: int


def _node_types() -> tuple[str, ...]:
    # vars() rather than getattr: later Pythons warn when the names of retired node types are looked up.
    types = (value for value in vars(ast).values() if isinstance(value, type) and issubclass(value, ast.AST))
    return tuple(sorted({kind.__name__ for kind in types}))


NODE_TYPES = _node_types()
"""The names of all node types of this Python, sorted; a type id is an index into it."""

_TYPE_IDS = {name: number for number, name in enumerate(NODE_TYPES)}


def syntax_trees(count: int, seed: int = 0, max_nodes: int = 64) -> tuple[SyntaxTree, ...]:
    """`count` syntax trees of standard library code, each of 8 to `max_nodes` nodes.

    A tree is the largest statement that fits: a whole function or class where it is small enough, else its
    parts, so no tree is inside another. Load/Store/Del marks are left out. Equal arguments give equal trees
    under an equal `fingerprint()`. Raises ValueError when there are not `count` trees that fit.
    """

    def trees(source: bytes) -> Iterator[SyntaxTree]:
        return fitting_statements(ast.parse(source), max_nodes)

    return sample(trees, count, seed)


def fitting_statements(module: ast.AST, max_nodes: int) -> Iterator[SyntaxTree]:
    """The outermost statements below a node that have 8 to `max_nodes` nodes, in source order."""
    encoded = encode(module)
    stack = [module]
    while stack:
        node = stack.pop()
        tree = encoded[node]
        if isinstance(node, ast.stmt) and tree.nodes <= max_nodes:
            if tree.nodes >= _FEWEST_NODES:
                yield tree
        else:
            stack.extend(reversed(children(node)))


def encode(root: ast.AST) -> dict[ast.AST, SyntaxTree]:
    """The tree of every node at and below `root`; no recursion, so depth has no limit."""
    encoded: dict[ast.AST, SyntaxTree] = {}
    for node in reversed(_parents_first(root)):
        parts = [encoded[child] for child in children(node)]
        tree = (_TYPE_IDS[type(node).__name__], tuple(part.root for part in parts))
        encoded[node] = SyntaxTree(tree, 1 + sum(part.nodes for part in parts))
    return encoded


def children(node: ast.AST) -> list[ast.AST]:
    """The child nodes in source order, without the Load/Store/Del marks."""
    return [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr_context)]


def _parents_first(root: ast.AST) -> list[ast.AST]:
    order, stack = [], [root]
    while stack:
        node = stack.pop()
        order.append(node)
        stack.extend(children(node))
    return order
