"""A name of a class means one thing in all four packages."""

import ast
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("graphs", "static", "dynamic", "compare")
# Public in two packages: a graph that is traced and `static.Graph`, which records one; the nodes of graph and tape.
# `Mode` is how a thread records, and how a framework runs; an `Optimizer` is a pair of pure functions, and the class
# that keeps their state.
TWICE = {"Graph", "Node", "Mode", "Optimizer"}
# A compiler with a language of its own: a value, a loop and a kernel of its loop IR are none of a graph's.
OF_ITS_OWN = ROOT / "static" / "backends" / "native"


def classes(source: str) -> list[str]:
    """The classes that a module defines for others: at its top, and not private."""
    found = [node.name for node in ast.parse(source).body if isinstance(node, ast.ClassDef)]
    return [name for name in found if not name.startswith("_")]


def shared(files: Iterable[Path]) -> set[str]:
    """The names that classes of several modules have."""
    counted = Counter(name for path in files for name in classes(path.read_text("utf-8")))
    return {name for name, count in counted.items() if count > 1}


def test_no_two_modules_have_classes_of_one_name():
    files = {path for package in PACKAGES for path in (ROOT / package).rglob("*.py")}
    native = set(OF_ITS_OWN.rglob("*.py"))
    assert shared(files - native) == TWICE
    assert shared(native) == set()


def test_classes_inside_others_and_private_ones_do_not_count():
    assert classes("class A:\n    class B: ...\nclass _C: ...\nif True:\n    class D: ...\n") == ["A"]
