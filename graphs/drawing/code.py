"""The user's lines of a diagram as they are written, with the function that each is in."""

from __future__ import annotations

import ast
import linecache
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from graphs.drawing.model import CodeLine


def code_of(lines: Iterable[str]) -> dict[str, CodeLine]:
    """What stands in each line `model.py:12`; a line is left out if no loaded file has that name, or more than one."""
    numbers: dict[str, set[int]] = {}
    for line in lines:
        name, _, digits = line.rpartition(":")
        if digits.isdigit():
            numbers.setdefault(name, set()).add(int(digits))
    code = dict[str, CodeLine]()
    for name, wanted in numbers.items():
        texts = _texts(name)
        functions = _functions(texts)
        for number in sorted(wanted):
            if number <= len(texts):
                code[f"{name}:{number}"] = CodeLine(functions.get(number, ""), texts[number - 1].strip())
    return code


def _texts(name: str) -> list[str]:
    """The lines of the only loaded file of this name."""
    modules = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
    files = {file for file in (*modules, *linecache.cache) if isinstance(file, str) and Path(file).name == name}
    return linecache.getlines(files.pop()) if len(files) == 1 else []


def _functions(texts: list[str]) -> dict[int, str]:
    """The innermost function of each line that is in one."""
    try:
        tree = ast.parse("".join(texts))
    except (SyntaxError, ValueError):  # a cell of a notebook with a magic in it, for one
        return {}
    return dict(_spans(tree))


def _spans(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The lines of each function with its name, those of inner functions last."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            for number in range(node.lineno, (node.end_lineno or node.lineno) + 1):
                yield number, node.name
