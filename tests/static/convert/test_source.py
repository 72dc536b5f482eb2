"""The text that is converted is that of the function in memory: never another that stands at its place by now."""

from __future__ import annotations

import importlib
import linecache
import sys
import textwrap
from typing import Any

import numpy as np
import pytest

import static
from graphs.errors import ControlFlowError
from static.convert.rewrite.syntax import NotConvertedError, definition
from tests.helpers.together import together

ROWS = [np.array([1.4, 0.3]), np.array([-1.4, 0.3])]
BRANCH = "def f(x):\n    if x[0] > 0:\n        return x[0] * 2\n    return x[1]\n"
EDITS = {  # what stands in the file by now, in place of what was imported
    "a constant": ("return x * 2.0", "return x * 5.0"),
    "an int that was a float": ("return x * 2.0", "return x * 2"),
    "a bool that was an int": ("return x * 1", "return x * True"),
    "a signed zero": ("return x + 0.0", "return x + -0.0"),
    "an operator": ("return x + x", "return x - x"),
    "an attribute": ("return x.real", "return x.imag"),
    "the order of names": ("a, b = x\n    return a - b", "b, a = x\n    return a - b"),
    "a function inside": ("return (lambda v: v * 2)(x)", "return (lambda v: v * 3)(x)"),
    "a function two levels in": ("return (lambda v: (lambda: v * 2)())(x)", "return (lambda v: (lambda: v * 3)())(x)"),
    "lambdas that changed places": ("return lambda: 1, lambda: 2", "return lambda: 2, lambda: 1"),
    "where a try begins": (
        "try:\n        x()\n        x()\n    except E: x",
        "x()\n    try:\n        x()\n    except E: x",
    ),
    "another function at the line": ("return x", "def g(x): return x * 2"),
    "no Python": ("return x", "return x +"),
    "nothing": ("return x", ""),
}


def code_of(text: str, file: str) -> Any:
    names: dict[str, Any] = {}
    exec(compile(text, file, "exec"), names)
    return names["f"].__code__


def known_as(file: str, text: str) -> None:
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file


@together("before,after", list(EDITS.values()), list(EDITS))
def test_an_edit_is_seen(before, after):
    code = code_of(f"def f(x):\n    {before}\n", "<edited>")
    known_as("<edited>", f"def f(x):\n    {before}\n")
    assert definition(code).name == "f"
    known_as("<edited>", f"def f(x):\n    {after}\n" if after else "")
    with pytest.raises(NotConvertedError, match=r"edited after it was imported|there is no source"):
        definition(code)


def test_lambdas_that_changed_places_on_their_line_are_not_taken_for_each_other():
    names: dict[str, Any] = {}
    exec(compile("a, b = lambda x: x * 2, lambda x: x * 3\n", "<edited>", "exec"), names)
    known_as("<edited>", "a, b = lambda x: x * 3, lambda x: x * 2\n")
    with pytest.raises(NotConvertedError):
        definition(names["a"].__code__)


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A module on disk, imported."""
    (tmp_path / "edited_module.py").write_text(BRANCH)
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("edited_module"), tmp_path / "edited_module.py"
    del sys.modules["edited_module"]


def test_a_file_that_was_edited_after_its_import_is_refused_until_it_is_imported_again(module):
    imported, file = module
    file.write_text(BRANCH.replace("* 2", "* 5 + 0"))
    with pytest.raises(ControlFlowError, match=r"f is not converted: .*edited after it was imported.*import the file"):
        static.jit(imported.f, convert=True)(ROWS[0])
    sys.dont_write_bytecode, kept = True, sys.dont_write_bytecode
    try:
        again = importlib.reload(imported)
    finally:
        sys.dont_write_bytecode = kept
    step = static.jit(again.f, convert=True)
    assert [float(step(row)) for row in ROWS] == [again.f(row) for row in ROWS] == [7.0, 0.3]


def test_text_that_is_run_under_the_name_of_a_file_is_not_that_file(module):
    _, file = module
    names: dict[str, Any] = {}
    exec(compile(BRANCH.replace("* 2", "* 5"), "edited_module.py", "exec"), names)
    with pytest.raises(ControlFlowError, match="not what the text of its file compiles to"):
        static.jit(names["f"], convert=True)(ROWS[0])
    exec(compile(BRANCH, str(file), "exec"), names)
    assert float(static.jit(names["f"], convert=True)(ROWS[0])) == 2.8


def test_a_cell_of_a_notebook_is_converted_from_its_own_text():
    names: dict[str, Any] = {}
    for number, factor in enumerate((2, 5)):
        cell = BRANCH.replace("* 2", f"* {factor}")
        known_as(f"<cell {number}>", cell)
        exec(compile(cell, f"<cell {number}>", "exec"), names)
        assert float(static.jit(names["f"], convert=True)(ROWS[0])) == 1.4 * factor


def test_without_source_the_remedy_is_to_save_it():
    names: dict[str, Any] = {}
    exec(compile(BRANCH, "<stdin>", "exec"), names)
    with pytest.raises(ControlFlowError, match=r"no source of it under '<stdin>'; save it in a file"):
        static.jit(names["f"], convert=True)(ROWS[0])


UNCONVERTED = {  # each with a part of the reason; none advises what is on already
    "jumps out of a finally": "try:\n        if x[0] > 0:\n            return x[1]\n    finally:\n        return x[0]",
    "no constants; write ifs": "match x:\n        case v if v[0] > 0:\n            return v[0]\n    return x[1]",
    "body of a class is not converted": "class A:\n        y = 1 if x[0] > 0 else 2\n    return A.y",
    "library": "import statistics\n    return statistics.median([x[0], x[1]])",
    "Python itself asks": "return x[0] * [v for v in x].index(x[1])",
    "sent to a generator": "def g():\n        y = yield 0\n        yield 1 if y > 0 else 2\n    a = g()\n"
    "    return next(a) + a.send(x[0])",
}


@together("reason,body", list(UNCONVERTED.items()), list(UNCONVERTED))
def test_a_refusal_says_why_the_code_is_not_converted_and_advises_nothing_that_is_on(reason, body):
    text = textwrap.dedent(f"def f(x):\n    {body}\n")
    known_as("<unconverted>", text)
    names: dict[str, Any] = {}
    exec(compile(text, "<unconverted>", "exec"), names)
    with pytest.raises(ControlFlowError) as caught:
        static.jit(names["f"], convert=True)(ROWS[0])
    assert reason in str(caught.value)
    assert "convert=True" not in str(caught.value)
    with pytest.raises(ControlFlowError, match="convert=True"):
        static.jit(lambda x: x[0] if x[0] > 0 else x[1])(ROWS[0])
