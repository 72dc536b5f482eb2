"""What an adapter says of its engine is little, and lies in roles: counted, so that it stays so."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

from compare import engines
from compare.engines.base import Engine, Role
from compare.engines.framework import Framework

COMPARE = Path(engines.__file__).parents[1]
OURS = ("graphs", "dynamic", "static")
ROLES = [kind for kind in Role.__subclasses__() if kind.__module__ == Role.__module__]


def public(kind: type) -> Iterator[str]:
    """The methods and properties that a class itself offers."""
    for name, value in vars(kind).items():
        if not name.startswith("_") and (inspect.isroutine(value) or isinstance(value, property)):
            yield name


def test_an_engine_has_few_methods_and_a_new_adapter_writes_at_most_five() -> None:
    assert len([*public(Engine)]) <= 20
    assert len(Framework.__abstractmethods__) <= 5


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.__name__)
def test_a_role_has_at_most_eight_methods(role: type[Role]) -> None:
    assert 0 < len([*public(role)]) <= 8


@pytest.mark.parametrize("name", engines.names())
def test_an_adapter_offers_what_its_engine_and_roles_say_and_no_more(name: str) -> None:
    engine = engines.find_engine(name)
    assert {*public(type(engine))} <= {*public(Engine), *public(Framework)}
    mine = {kind: role for role in vars(engine).values() for kind in ROLES if isinstance(role, kind)}
    assert set(mine) == set(ROLES)
    for kind, role in mine.items():
        assert role.engine is engine
        assert {*public(type(role))} <= {*public(kind)}


def patches(source: str) -> Iterator[str]:
    """The modules and classes of our engines whose attributes a file of the harness sets."""
    tree = ast.parse(source)
    imports = [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]
    theirs = {
        alias.asname or alias.name.partition(".")[0]
        for node in imports
        for alias in node.names
        if (node.module or "" if isinstance(node, ast.ImportFrom) else alias.name).partition(".")[0] in OURS
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("setattr", "vars", "delattr"):
            held = node.args[0]
        elif isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
            held = node.value
        else:
            continue
        if ast.unparse(held).partition(".")[0] in theirs:
            yield ast.unparse(node)


def test_the_harness_patches_nothing_of_our_engines() -> None:
    assert (
        len([*patches("import dynamic\nfrom static import jit as f\nsetattr(f, 'a', 1)\ndynamic.x = 1\nvars(dynamic)")])
        == 3
    )
    places = {path.name: [*patches(path.read_text("utf-8"))] for path in COMPARE.rglob("*.py")}
    assert {name: lines for name, lines in places.items() if lines} == {}
