"""How much of a program is rewritten: the edit distance between two functions, counted in tokens."""

from __future__ import annotations

import ast
import inspect
import io
import textwrap
import tokenize
from typing import Any

import numpy as np

from compare.workloads.programs.program import Function

VISIBLE = (tokenize.NAME, tokenize.OP, tokenize.NUMBER, tokenize.STRING)
SELF = "_"


def share(plain: Function, graph: Function) -> float:
    """The tokens inserted, deleted or replaced on the way from one to the other, per token of the first."""
    before = tokens(plain)
    return distance(before, tokens(graph)) / len(before)


def tokens(function: Function) -> list[str]:
    """The visible tokens of a function.

    Comments, docstrings, annotations and the layout are left out, and its own name is written `_`: none of them is
    work that a rewriting asks for.
    """
    readline = io.StringIO(_bare(function)).readline
    return [token.string for token in tokenize.generate_tokens(readline) if token.type in VISIBLE]


def lines(function: Function) -> int:
    """The lines of a function in one layout for all, without comments and docstrings."""
    return len(_bare(function).splitlines())


def _bare(function: Function) -> str:
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    return ast.unparse(_Bare(function.__name__).visit(tree))


def distance(first: list[str], second: list[str]) -> int:
    """The Levenshtein distance: the fewest insertions, deletions and replacements (Wagner and Fischer, 1974)."""
    places = np.arange(len(second) + 1)
    row, target = places, np.array(second, object)
    for count, token in enumerate(first, start=1):
        replaced_or_deleted = np.minimum(row[:-1] + (target != token), row[1:] + 1)
        best = np.concatenate(([count], replaced_or_deleted))
        row = np.minimum.accumulate(best - places) + places  # and then insertions, along the row
    return int(row[-1])


class _Bare(ast.NodeTransformer):
    """Takes away what is no part of a program's work."""

    def __init__(self, name: str) -> None:
        self.name = name

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        self.generic_visit(node)
        node.name = SELF if node.name == self.name else node.name
        node.returns = None
        if ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
        return node

    def visit_arg(self, node: ast.arg) -> Any:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        self.generic_visit(node)
        return None if node.value is None else ast.Assign([node.target], node.value, lineno=node.lineno)

    def visit_Name(self, node: ast.Name) -> Any:
        node.id = SELF if node.id == self.name else node.id
        return node
