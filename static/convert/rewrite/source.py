"""The syntax tree of a function, found in its file, or in the cell of its notebook, by the place of its first line.

The text is compiled and compared with the function in memory: a file may have been edited after it was imported, and
other text may have been run under its name. Raises NotConvertedError where there is no tree that is certain.
"""

from __future__ import annotations

import ast
import functools
import inspect
import linecache
import warnings
from collections.abc import Iterator
from types import CodeType
from typing import NamedTuple

Definition = ast.FunctionDef | ast.Lambda


class NotConvertedError(Exception):
    """Why a function is left as it is, and what to do about it: `reason; remedy`."""


class Definitions(NamedTuple):
    """The functions of a text by the line at which their code starts: their trees, and what they compile to."""

    trees: dict[int, list[Definition]]
    codes: dict[int, list[CodeType]]

    def definition(self, code: CodeType) -> Definition | None:
        """The tree that compiles to this code, if there is one."""
        line = code.co_firstlineno
        if not any(_is_same(candidate, code) for candidate in self.codes.get(line, [])):
            return None
        matching = [tree for tree in self.trees.get(line, []) if _name(tree) == code.co_name]
        if len(matching) > 1:
            matching = [tree for tree in matching if _holds(tree, code)]
        return matching[0] if len(matching) == 1 else None


def definition(code: CodeType) -> Definition:
    """The tree of the function that has this code; it is not to be changed."""
    if code.co_flags & (inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        raise NotConvertedError("it is a coroutine; write a function")
    file = code.co_filename
    tree = _read(file, code)
    if tree is None:
        linecache.checkcache(file)  # what it keeps may be older than the function
        tree = _read(file, code)
    if tree is None:
        raise NotConvertedError(
            "it is not what the text of its file compiles to: the file was edited after it was imported, or a tool has "
            "rewritten the function, as pytest does where there is an assert; import the file again, or move the "
            "function to a file that no tool rewrites"
        )
    return tree


def _read(file: str, code: CodeType) -> Definition | None:
    text = "".join(linecache.getlines(file))
    if not text:
        raise NotConvertedError(f"there is no source of it under {file!r}; save it in a file, and import that")
    return _definitions(text, code.co_flags & FUTURE).definition(code)


FUTURE = 0x1000000
"""The flag of `from __future__ import annotations`, which a cell of a notebook has from an earlier one."""


@functools.lru_cache(maxsize=16)  # files: their trees are many times as large as they
def _definitions(text: str, flags: int) -> Definitions:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python has shown them already
        try:
            module = ast.parse(text)
            top = compile(module, "<compared>", "exec", flags=flags, dont_inherit=True)
        except (SyntaxError, ValueError):  # a text that was edited since
            return Definitions({}, {})
    definitions = Definitions({}, {})
    for tree in ast.walk(module):
        if isinstance(tree, (ast.FunctionDef, ast.Lambda)):
            lines = [tree.lineno, *(decorator.lineno for decorator in getattr(tree, "decorator_list", []))]
            definitions.trees.setdefault(min(lines), []).append(tree)
    for code in _inside(top):
        definitions.codes.setdefault(code.co_firstlineno, []).append(code)
    return definitions


def _inner(code: CodeType) -> list[CodeType]:
    """The codes of the functions that a code makes."""
    return [const for const in code.co_consts if isinstance(const, CodeType)]


def _inside(code: CodeType) -> Iterator[CodeType]:
    """Those, and the ones inside them."""
    for inner in _inner(code):
        yield inner
        yield from _inside(inner)


def _is_same(code: CodeType, other: CodeType) -> bool:
    """Whether two codes do the same at the same places, under whatever file name."""
    return (
        code == other
        and code.co_exceptiontable == other.co_exceptiontable
        and list(code.co_positions()) == list(other.co_positions())
        and all(map(_is_same, _inner(code), _inner(other)))
    )


def _name(tree: Definition) -> str:
    return "<lambda>" if isinstance(tree, ast.Lambda) else tree.name


def _holds(tree: Definition, code: CodeType) -> bool:
    """Whether the instructions of a function lie inside the body of this one, and in no lambda further in."""
    body = tree.body if isinstance(tree.body, ast.expr) else tree
    places = [p for p in code.co_positions() if p[0] and p[2] is not None and (p[1], p[3]) != (p[0], p[2])]
    if not places:  # Python was told to keep no columns
        return False
    first, last = min(p[0::2] for p in places), max(p[1::2] for p in places)
    start, end = (body.lineno, body.col_offset), (body.end_lineno, body.end_col_offset)
    return (start, end) == (first, last)
