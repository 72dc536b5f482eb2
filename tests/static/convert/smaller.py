"""A program that ends wrongly, with fewer statements: those without which it still does are left out."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from compare.engines.process import limit_seconds
from tests.static.convert.outcome import Outcome

SECONDS = 3.0


def smaller(text: str, attempt: Callable[[str], Outcome], status: str) -> str:
    """The program without every statement that can go, round after round, until none can."""
    before = ""
    while text != before:
        before, place = text, 0
        while shorter := _without(text, place):
            kept = next((one for one in shorter if _ends(one, attempt) == status), None)
            text, place = (kept, place) if kept else (text, place + 1)
    return text


def _ends(text: str, attempt: Callable[[str], Outcome]) -> str:
    try:
        with limit_seconds(SECONDS):  # a loop whose counter is gone does not end
            return attempt(text).status
    except Exception:  # noqa: BLE001  (what is left is no program)
        return ""


def _without(text: str, place: int) -> list[str]:
    """The program without one of its statements, and with what stands in it in its place; empty after the last."""
    found = [_cut(text, place, inner) for inner in (False, True)]
    return [one for one in found if one]


def _cut(text: str, place: int, inner: bool) -> str:
    tree = ast.parse(text)
    places = list(_places(tree))
    if place >= len(places):
        return ""
    block, at = places[place]
    within = [part for name in ("body", "orelse") for part in getattr(block[at], name, [])]
    block[at : at + 1] = (within if inner else []) or ([] if len(block) > 1 else [ast.Pass()])
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


def _places(tree: ast.AST) -> Iterator[tuple[list[ast.stmt], int]]:
    """Every statement that is more than `pass`, as the block it stands in and its place there; outer ones first."""
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                yield from ((block, at) for at in range(len(block)) if not isinstance(block[at], ast.Pass))
