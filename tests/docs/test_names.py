"""A name of a class means one thing in all four packages, and a name of a value says its type or its role."""

import ast
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("graphs", "static", "dynamic", "compare")
# Public in two packages: the nodes of graph and tape. `Mode` is how a thread records, and how a framework runs; an
# `Optimizer` is a pair of pure functions, and the class that keeps their state.
TWICE = {"Node", "Mode", "Optimizer"}
# A compiler with a language of its own: a value, a loop and a kernel of its loop IR are none of a graph's.
OF_ITS_OWN = ROOT / "static" / "native"
# Written as people write models for PyTorch, each by itself: they say `Block` and `Layer` of what is inside.
MODELS = ROOT / "compare" / "workloads" / "models"
# What any value may be called says neither what it is nor what it is for: no package uses these names.
VAGUE = {"found", "one", "given", "known"}


def classes(source: str) -> list[str]:
    """The classes that a module defines for others: at its top, and not private."""
    return re.findall(r"(?m)^class ([^\W_]\w*)", source)


def shared(files: Iterable[Path]) -> set[str]:
    """The names that classes of several modules have."""
    counted = Counter(name for path in files for name in classes(path.read_text("utf-8")))
    return {name for name, count in counted.items() if count > 1}


def vague(source: str) -> list[tuple[int, str]]:
    """Where a module gives a variable, parameter, attribute, function or class such a name: line and name."""
    tree = ast.parse(source)
    return sorted((node.lineno, name) for node in ast.walk(tree) for name in _defined(node) if name in VAGUE)


def _defined(node: ast.AST) -> list[str]:
    match node:
        case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name) | ast.Attribute(attr=name, ctx=ast.Store()):
            return [name]
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
            return [alias.asname or alias.name for alias in aliases]
        case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.ExceptHandler(name=str(name)):
            return [name]
    return []


def test_no_two_modules_have_classes_of_one_name():
    files = {path for package in PACKAGES for path in (ROOT / package).rglob("*.py")}
    native = set(OF_ITS_OWN.rglob("*.py"))
    assert shared(files - native - set(MODELS.glob("[!_]*.py"))) == TWICE
    assert shared(native) == set()


def test_classes_inside_others_and_private_ones_do_not_count():
    assert classes("class A:\n    class B: ...\nclass _C: ...\nif True:\n    class D: ...\n") == ["A"]


def test_names_say_type_or_role():
    files = {path for package in PACKAGES for path in (ROOT / package).rglob("*.py")}
    places = {str(path.relative_to(ROOT)): vague(path.read_text("utf-8")) for path in files}
    assert {path: lines for path, lines in places.items() if lines} == {}


def test_vague_names_are_seen_wherever_they_are_defined():
    source = """
import numpy as one
def known(given, *, found=0): ...
class found: ...
try:
    one, (given, *known) = 1, (2, 3)
except OSError as found:
    self.known = [one for one in found if (given := one)]
match x:
    case [*known, given] as one: ...
"""
    counts = Counter(name for _, name in vague(source))
    assert counts == {"one": 4, "known": 4, "given": 4, "found": 3}
    assert vague("x.found(one=given)\nfoundation = known[one]") == []
