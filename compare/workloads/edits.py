"""Sources in tokens: the edit distance of two functions, and one-line edits of the workloads' models.

The distance says how much of a program is rewritten. The edits are as somebody makes them who tries an idea.
"""

from __future__ import annotations

import ast
import inspect
import io
import textwrap
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from compare import workloads
from compare.workloads.programs import Function

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


# Edits of one line ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SourceEdit:
    """In the source of a workload, `old` becomes `new` wherever it stands.

    Raises ValueError where the source no longer holds `old`.
    """

    workload: str
    old: str
    new: str

    @property
    def module(self) -> ModuleType:
        """The module of the workload as it is."""
        return import_module(workloads.source(self.workload).partition(":")[0])

    def source(self) -> str:
        """The source after the edit."""
        text = Path(str(self.module.__file__)).read_text(encoding="utf-8")
        if self.old not in text:
            raise ValueError(f"{self.workload}: {self.old!r} does not stand in its source; correct the edit")
        return text.replace(self.old, self.new)


EDITS = (
    SourceEdit("tiny_mlp", "graphs.tanh", "graphs.sin"),
    SourceEdit("elementwise_chain", "h / 2", "h / 3"),
    SourceEdit("mlp_digits", "x, graphs.relu", "x, graphs.tanh"),
    SourceEdit("conv_digits", "graphs.relu(h)", "graphs.tanh(h)"),
    SourceEdit("rnn_text", "return graphs.tanh(x", "return graphs.sin(x"),
    SourceEdit("encoder_text", "graphs.gelu(", "graphs.silu("),
    SourceEdit("tree_lstm", "return o * graphs.tanh(cell)", "return o * cell"),
    SourceEdit("branch_on_sum", "x - 2", "x - 3"),
    SourceEdit("early_exit", "graphs.relu(dense(block", "graphs.tanh(dense(block"),
    SourceEdit("moe_digits", "x, graphs.relu", "x, graphs.tanh"),
    SourceEdit("fixed_point", "graphs.tanh(", "graphs.sin("),
)


def length(model: FunctionType) -> dict[str, int]:
    """The lines and tokens of a function, and of those of its module that it needs."""
    needed = list(_helper_functions(model))
    return {"lines": sum(map(lines, needed)), "tokens": sum(len(tokens(function)) for function in needed)}


def _helper_functions(model: FunctionType) -> Iterator[FunctionType]:
    stack, seen = [model], {model}
    while stack:
        function = stack.pop()
        yield function
        for name in _names(function.__code__):
            other = function.__globals__.get(name)
            if isinstance(other, FunctionType) and other.__module__ == model.__module__ and other not in seen:
                seen.add(other)
                stack.append(other)


def _names(code: CodeType) -> Iterator[str]:
    """The names that a function and those inside it look up."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
