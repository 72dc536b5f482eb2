"""A program that ends wrongly, with fewer statements: those without which it still does are left out."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from tests.static.convert.outcome import Outcome


def smaller(text: str, attempt: Callable[[str], Outcome], status: str) -> str:
    """The program without every statement that can go, one after the other, until none can."""
    before = ""
    while text != before:
        before = text
        for candidate in _candidates(text):
            if _ends(candidate, attempt) == status:
                text = candidate
                break
    return text


def _ends(text: str, attempt: Callable[[str], Outcome]) -> str:
    try:
        return attempt(text).status
    except Exception:  # noqa: BLE001  (what is left is no program)
        return ""


def _candidates(text: str) -> Iterator[str]:
    """The program with one statement less, or with one statement replaced by what stands in it."""
    count = sum(1 for _ in _places(ast.parse(text)))
    for number in range(count):
        for inner in (False, True):
            tree = ast.parse(text)
            block, at = list(_places(tree))[number]
            kept = [part for name in ("body", "orelse") for part in getattr(block[at], name, [])] if inner else []
            if inner and not kept:
                continue
            block[at : at + 1] = kept or ([] if len(block) > 1 else [ast.Pass()])
            shorter = ast.unparse(ast.fix_missing_locations(tree)) + "\n"
            if len(shorter) < len(text):
                yield shorter


def _places(tree: ast.AST) -> Iterator[tuple[list[ast.stmt], int]]:
    """Every statement, as the block it stands in and its place there."""
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                yield from ((block, at) for at in range(len(block)))
