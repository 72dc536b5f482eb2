"""What is asked of an op is a field of it, and what a room does with one is a row of a table.

`places` reads the product without running it, and finds what asks an op outside of `graphs/ops` who it is.
"""

from __future__ import annotations

import ast
import subprocess
from collections import Counter
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import dynamic
import graphs as g
import static
from graphs import op as registry
from graphs.errors import GraphError
from graphs.op import TABLES, RuleTable, registered_ops
from graphs.testing import samples
from tests.helpers.backends import BACKENDS
from tests.helpers.together import together

ROOT = Path(__file__).parents[2]
ROOMS = ("dynamic.batching.rules", "static.native.work", "static.padding.pairing", "compare.engines.graphduel.counting")
for _room in (*ROOMS, *["static.exporting"] * bool(find_spec("onnx"))):
    import_module(_room)  # which enters its tables
MOST = {"set": 0, "dict": 0, "name": 0, "family": 30, "identity": 55}
OPS = {name: op for name, op in registered_ops().items() if op.family not in ("control", "effect", "source", "custom")}


# Places ---------------------------------------------------------------------------------------------------------------


class Places(ast.NodeVisitor):
    """The places of one file, by kind: sets and dicts of ops, tests of a name, a family and an identity.

    A table of rules is no place, nor is a look-up in what a function has made for itself, such as a count by name.
    """

    def __init__(self, tree: ast.Module, ops: set[str], modules: set[str]) -> None:
        self.ops, self.modules, self.found = ops, modules, list[tuple[str, int]]()
        assigned = [n for n in tree.body if isinstance(n, (ast.Assign, ast.AnnAssign))]
        self.constants = {t.id for n in assigned for t in ast.walk(n) if isinstance(t, ast.Name)} - TABLE_NAMES
        self.imported = {
            a.asname or a.name
            for n in ast.walk(tree)
            if isinstance(n, ast.ImportFrom) and (n.module or "").startswith("graphs")
            for a in n.names
        }
        self.visit(tree)

    def is_op(self, node: ast.expr) -> bool:
        """Whether an expression is an op of the library, by the name that it is imported by."""
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            return node.attr in self.ops and node.value.id in self.imported & self.modules
        return isinstance(node, ast.Name) and node.id in self.ops and node.id in self.imported

    def asked(self, node: ast.expr) -> str:
        """What of an op an expression is: "identity", "name" or "family"; nothing of all else."""
        if not isinstance(node, ast.Attribute):
            return ""
        if node.attr == "op":
            return "identity"
        is_of_op = isinstance(node.value, (ast.Name, ast.Attribute)) and ast.unparse(node.value).split(".")[-1] == "op"
        return node.attr if node.attr in ("name", "family") and is_of_op else ""

    def visit_Compare(self, node: ast.Compare) -> None:
        sides = [node.left, *node.comparators]
        about = next(filter(None, map(self.asked, sides)), "")
        is_table = any(ast.unparse(side).split(".")[-1] in TABLE_NAMES for side in sides)
        is_none = any(isinstance(side, ast.Constant) and side.value is None for side in sides)
        if (about and not is_table and not is_none) or (not about and any(map(self.is_op, sides))):
            self.found.append((about or "identity", node.lineno))
        self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        self.looked_up(node.slice, node.value)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        called = node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
        if called in ("get", "startswith", "endswith") and isinstance(node.func, ast.Attribute) and node.args:
            is_text = called != "get" and self.asked(node.func.value) == "name"
            self.found += [("name", node.lineno)] * is_text
            self.looked_up(node.args[0], node.func.value)
        if not called.endswith("enter"):  # what is entered into a table is a row of it
            self.generic_visit(node)

    def looked_up(self, key: ast.expr, table: ast.expr) -> None:
        """A look-up in what the module holds."""
        if self.asked(key) and ast.unparse(table) in self.constants:
            self.found.append((self.asked(key), key.lineno))

    def visit_Dict(self, node: ast.Dict) -> None:
        if any(key is not None and self.is_op(key) for key in node.keys):
            self.found.append(("dict", node.lineno))
        self.generic_visit(node)

    def visit_Set(self, node: ast.Set) -> None:
        if any(map(self.is_op, node.elts)):
            self.found.append(("set", node.lineno))
        self.generic_visit(node)


def _trees() -> dict[str, ast.Module]:
    listed = subprocess.run(
        ["git", "ls-files", "graphs", "static", "dynamic", "compare"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    files = [name for name in listed.stdout.split() if name.endswith(".py") and not name.startswith("graphs/ops/")]
    files = [name for name in files if name != "graphs/op.py"]
    return {name: ast.parse((ROOT / name).read_text(encoding="utf-8")) for name in files}


def _table_names(trees: dict[str, ast.Module]) -> set[str]:
    made = [n for tree in trees.values() for n in ast.walk(tree) if isinstance(n, ast.AnnAssign) and n.value]
    return {ast.unparse(n.target) for n in made if ast.unparse(n.annotation).startswith("RuleTable")}


TREES = _trees()
TABLE_NAMES = _table_names(TREES)


def _declared() -> set[str]:
    """The variables of the rooms of ops that hold an op."""
    made = [n for p in (ROOT / "graphs/ops").glob("*.py") for n in ast.parse(p.read_text(encoding="utf-8")).body]
    declared = [n for n in made if isinstance(n, ast.AnnAssign) and ast.unparse(n.annotation) == "Op"]
    return {ast.unparse(n.target) for n in declared}


def places() -> list[tuple[str, str]]:
    """Each place: its kind, and its file and line."""
    ops, rooms = _declared(), {p.stem for p in (ROOT / "graphs/ops").glob("*.py")} | {"ops"}
    found = {file: Places(tree, ops, rooms).found for file, tree in TREES.items()}
    return [(kind, f"{file}:{line}") for file, there in found.items() for kind, line in there]


def test_no_room_has_a_list_of_ops_of_its_own():
    found = places()
    counts = Counter(kind for kind, _ in found)
    for kind, most in MOST.items():
        assert counts[kind] <= most, [where for other, where in found if other == kind]


def test_places_are_found():
    text = """
from graphs.ops import elementwise
from graphs.ops.linalg import matmul
ROWS = {matmul: 1}
def f(node, op):
    kind = node.op.name in ("add", "subtract") or op.name.startswith("window")
    return ROWS[node.op], ROWS.get(node.op), node.op is matmul, node.op.family == "window", {elementwise.add}
"""
    found = Places(ast.parse(text), {"matmul", "add"}, {"elementwise"}).found
    assert Counter(kind for kind, _ in found) == {"dict": 1, "name": 2, "identity": 3, "family": 1, "set": 1}


# Tables ---------------------------------------------------------------------------------------------------------------


@pytest.fixture
def opaque():
    yield g.custom_op("places_opaque", lambda x: np.sqrt(np.abs(x)) + 1, vjp=lambda cotangent, out: cotangent)
    registry._registry.pop("places_opaque")


def test_each_table_has_an_answer_for_each_op_and_the_safe_one_for_a_users(opaque):
    assert len({table.room for table in TABLES}) == len(TABLES) >= 14
    for table in TABLES:
        assert {table.answer(op) for op in registered_ops().values()} <= {"own", "family", "otherwise"}, table.room
        assert all(
            table[op] is table.families.get(op.family, table.otherwise) for op in OPS.values() if op not in table
        )
        assert table.answer(opaque) == "otherwise", table.room
        assert table[opaque] is table.otherwise, table.room


def test_a_second_rule_and_a_name_without_op_are_refused():
    table = RuleTable("tried", otherwise=0)
    TABLES.remove(table)
    table.enter({"add": 1})
    with pytest.raises(ValueError, match="tried: add has a rule already"):
        table.for_op("add")(2)
    with pytest.raises(GraphError, match="no op is named 'ad'"):
        table.for_op("ad")(1)
    assert (table[g.add], table[g.multiply]) == (1, 0)


def test_an_op_that_no_room_knows_gives_the_same_in_both_engines(opaque):
    def f(x, w):
        rows, _ = g.scan(lambda s, row: (s + opaque(row @ w), row), g.zeros(3), x)
        return g.sum(opaque(g.cond(g.sum(x) > 0, lambda: opaque(rows) * 2, lambda: rows)))

    args = np.arange(8.0).reshape(4, 2), np.ones((2, 3))
    expected = f(*args)
    with dynamic.batched():
        result = f(*map(dynamic.tensor, args))
    np.testing.assert_array_equal(result, expected)
    for backend in BACKENDS:
        np.testing.assert_array_equal(static.jit(f, backend=backend)(*args), expected)
    for one, other in zip(dynamic.grad(f, (0, 1))(*args), static.grad(f, (0, 1))(*args), strict=True):
        np.testing.assert_array_equal(one, other)


# Fields ---------------------------------------------------------------------------------------------------------------

HARD = (0.0, 1.0, -1.0, 0.5, 3.0, 1e-300, 1e300, -1e300, np.inf, -np.inf, np.nan)


def _calls(op):
    for sample in samples(op.name)[:2]:
        inputs, attrs = sample.prepared()
        yield [np.array(x) for x in inputs], attrs


@together("name", [name for name, op in OPS.items() if op.repeatable])
def test_fields_hold_on_samples(name):
    op = OPS[name]
    with np.errstate(all="ignore"):
        for inputs, attrs in _calls(op):
            expected = op.kernel(*inputs, **attrs)
            assert np.asarray(op.kernel(*inputs, **attrs)).tobytes() == np.asarray(expected).tobytes()
            for i in op.overwrites:
                copies = [np.array(x) for x in inputs]
                if (copies[i].shape, copies[i].dtype) == (np.shape(expected), np.asarray(expected).dtype):
                    assert op.kernel(*copies, out=copies[i], **attrs).tobytes() == np.asarray(expected).tobytes()


def test_ops_that_never_fail_do_not_even_warn():
    for op in (op for op in OPS.values() if op.fails in ("never", "of floats")):
        for inputs, attrs in _calls(op):
            hard = [np.resize(HARD, x.shape).astype(x.dtype) if x.dtype.kind == "f" else x for x in inputs]
            if op.fails == "of floats":
                hard = [np.resize(np.array([2**62, -(2**63), 3]), x.shape) for x in inputs]
            with np.errstate(all="raise"):
                op.kernel(*hard, **attrs)
