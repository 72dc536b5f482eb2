"""The syntax tree of a function, found in its file by the place of its first line.

Raises NotConvertedError where there is none that is certain: no source, two functions at one place, a file that has
changed since it was imported.
"""

from __future__ import annotations

import ast
import functools
import linecache
from types import CodeType
from typing import Any

Definition = ast.FunctionDef | ast.Lambda


class NotConvertedError(Exception):
    """Why a function is left as it is."""


def definition(code: CodeType) -> Definition:
    """The tree of the function that has this code, its own copy."""
    lines = linecache.getlines(code.co_filename)
    if not lines:
        raise NotConvertedError("its source cannot be read")
    tree = _tree("".join(lines))
    found = [node for node in _at_line(tree, code.co_firstlineno) if _is_named(node, code.co_name)]
    if len(found) > 1:
        found = [node for node in found if _holds(node, code)]
    if len(found) != 1:
        raise NotConvertedError(f"its source is not at line {code.co_firstlineno}, or not alone there")
    node = found[0]
    _check_same(node, code)
    return node


@functools.lru_cache(maxsize=64)
def _tree(text: str) -> dict[int, list[ast.AST]]:
    """The functions of a file, by the line at which their code starts."""
    try:
        module = ast.parse(text)
    except SyntaxError as error:
        raise NotConvertedError(f"its file does not parse: {error}") from None
    found: dict[int, list[ast.AST]] = {}
    for node in ast.walk(module):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            decorators = getattr(node, "decorator_list", [])
            first = min([node.lineno, *(decorator.lineno for decorator in decorators)])
            found.setdefault(first, []).append(node)
    return found


def _at_line(tree: dict[int, list[ast.AST]], line: int) -> list[Definition]:
    found = tree.get(line, [])
    if any(isinstance(node, ast.AsyncFunctionDef) for node in found):
        raise NotConvertedError("it is a coroutine")
    return [node for node in found if isinstance(node, (ast.FunctionDef, ast.Lambda))]


def _is_named(node: Definition, name: str) -> bool:
    return name == ("<lambda>" if isinstance(node, ast.Lambda) else node.name)


def _holds(node: Definition, code: CodeType) -> bool:
    """Whether the instructions of a function lie inside the body of this one, and in no lambda further in."""
    body = node.body if isinstance(node.body, ast.expr) else node
    places = [p for p in code.co_positions() if p[0] and p[2] is not None and (p[1], p[3]) != (p[0], p[2])]
    first, last = min(p[0::2] for p in places), max(p[1::2] for p in places)
    start, end = (body.lineno, body.col_offset), (body.end_lineno, body.end_col_offset)
    return (start, end) == (first, last)


def _check_same(node: Definition, code: CodeType) -> None:
    """Raise NotConvertedError for the source of another function: a file that was edited after it was imported."""
    args = node.args
    names = [arg.arg for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs)]
    names += [arg.arg for arg in (args.vararg, args.kwarg) if arg is not None]
    if tuple(names) != code.co_varnames[: len(names)] or not _attributes(node) <= _names(code):
        raise NotConvertedError("its file has changed since it was imported; import it again")


def _attributes(node: Definition) -> set[str]:
    """The attributes that a function reads: its code has them too."""
    body = node.body if isinstance(node.body, list) else [node.body]
    nodes = [n for statement in body for n in ast.walk(statement)]
    return {n.attr for n in nodes if isinstance(n, ast.Attribute) and not n.attr.startswith("__")}


def _names(code: CodeType) -> set[str]:
    """The names in a function and in those inside it."""
    inner: list[Any] = [const for const in code.co_consts if isinstance(const, CodeType)]
    return set(code.co_names).union(*map(_names, inner)) if inner else set(code.co_names)
