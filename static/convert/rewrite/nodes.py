"""Syntax trees made by hand, in few words.

Names that are made up hold a space or a dot, which no name of the user's does.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable, Sequence
from typing import TypeVar

OPERATORS = "static.convert"
"""The variable that holds the operators in converted code."""

GIVEN = "<given>"
"""The parameter of functions that are made here."""

N = TypeVar("N", bound=ast.AST)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def load(identifier: str) -> ast.Name:
    """A variable that is read."""
    return ast.Name(identifier, ast.Load())


def store(identifier: str) -> ast.Name:
    """A variable that is set."""
    return ast.Name(identifier, ast.Store())


def assign(identifier: str, value: ast.expr) -> ast.Assign:
    """`identifier = value`."""
    return ast.Assign([store(identifier)], value)


def operator(name: str, *args: ast.expr) -> ast.Call:
    """A call of one of the operators."""
    return ast.Call(ast.Attribute(load(OPERATORS), name, ast.Load()), list(args), [])


def is_operator(call: ast.Call) -> bool:
    """Whether a call is one of an operator."""
    return isinstance(call.func, ast.Attribute) and getattr(call.func.value, "id", "") == OPERATORS


def negated(test: ast.expr) -> ast.expr:
    """`not test`."""
    return ast.UnaryOp(ast.Not(), test)


def either(tests: Sequence[ast.expr]) -> ast.expr:
    """`a or b or ...`."""
    return tests[0] if len(tests) == 1 else ast.BoolOp(ast.Or(), list(tests))


def parameters(*names: str) -> ast.arguments:
    """Positional parameters."""
    return ast.arguments([], [ast.arg(name) for name in names], None, [], [], None, [])


def thunk(value: ast.expr) -> ast.Lambda:
    """`lambda: value`."""
    return ast.Lambda(parameters(), value)


def function(name: str, args: ast.arguments, body: Sequence[ast.stmt]) -> ast.FunctionDef:
    """A function without decorators or annotations."""
    return ast.FunctionDef(name, args, list(body) or [ast.Pass()], [], None)


def texts(names: Iterable[str]) -> ast.expr:
    """A tuple of strings."""
    return ast.Tuple([ast.Constant(name) for name in names], ast.Load())


def at(new: N, old: ast.AST) -> N:
    """The new tree where an old one is, down to the nodes that have places of their own.

    Of an old one over several lines it has the first: Python takes the line on which the function of a call ends for
    that of the call.
    """
    place = {name: value for name in old._attributes if (value := getattr(old, name, None)) is not None}
    if place.get("end_lineno") != place.get("lineno"):
        place |= {"end_lineno": place["lineno"], "end_col_offset": place["col_offset"]}
    todo: list[ast.AST] = [new]
    while todo:
        node = todo.pop()
        if hasattr(node, "lineno"):
            continue
        if "lineno" in node._attributes:
            vars(node).update(place)
        todo += ast.iter_child_nodes(node)
    return new


def copied(node: N) -> N:
    """A tree of its own."""
    return copy.deepcopy(node)
