"""Rewrite hints: the lines, the counts and the remedy of each; none where nothing was found."""

import inspect
import math

import numpy as np
import pytest

import compare
import graphs as g
from compare.instruments import inspection
from compare.records import results
from compare.records.job import Job
from compare.records.own import RewriteHints
from compare.records.record import records_of
from compare.report import function as page
from compare.subjects.case import case_of
from tests.helpers import own_functions as own
from tests.helpers.own_functions import QUICK

ROUNDS = 6
W = np.eye(3, dtype=np.float32)
X = np.ones((ROUNDS, 3), np.float32)


def indexed(w, x):
    h = g.zeros(3, dtype=np.float32)
    for t in range(x.shape[0]):
        z = x[t] @ w + h
        h = g.tanh(z)
    return g.mean(h)


def repeated(w, x):
    for _ in range(9):
        x = g.tanh(x @ w)
    return g.mean(x)


def scanned(w, x):
    return g.mean(g.scan(lambda h, row: (g.tanh(row @ w + h),) * 2, g.zeros(3, dtype=np.float32), x)[0])


def runge_kutta(w, x):
    k = x @ w
    return g.mean(x + (k + 2 * k + 2 * k + 2 * k + k) / 6)


def decides(w, x):
    y = x @ w
    if g.sum(y) > 0:
        y = y * 2
    while g.sum(y) > 100:
        y = y / 2
    return g.mean(y)


def asks(w, x):
    return g.mean(x @ w) * math.gamma(float(g.sum(x).item()))


def times(w, x, n):
    return g.mean(x @ w) * n


def look(f, *calls):
    return inspection.rewrite_hints(Job("parity", "f", "given"), case_of(f, list(calls) or [(W, X)], None, None))


def line(f, below):
    return f"test_rewrites.py:{inspect.getsourcelines(f)[1] + below}"


def test_a_loop_over_rows_has_the_nodes_of_each_of_its_lines():
    record = look(indexed)
    (hint,) = record.hints
    # a row, its product with w and a sum in one line, and tanh in the next
    assert hint.lines == {line(indexed, 3): 3 * ROUNDS, line(indexed, 4): ROUNDS}
    assert hint.what == f"a Python loop over the {ROUNDS} rows of an array was unrolled into {4 * ROUNDS} nodes"
    assert "graphs.scan" in hint.remedy
    assert record.code[line(indexed, 4)] == "h = g.tanh(z)"


def test_a_loop_that_reads_no_rows_is_one_where_it_has_many_rounds():
    (hint,) = look(repeated).hints
    assert hint.lines == {line(repeated, 2): 18}
    assert hint.what == "a Python loop was unrolled into 18 nodes"


@pytest.mark.parametrize("f", [scanned, runge_kutta, own.loss])
def test_what_is_no_loop_has_no_hint(f):
    calls = own.inputs if f is own.loss else [(W, X)]
    assert look(f, *calls) is None


def test_a_loop_of_few_rounds_has_no_hint():
    assert look(indexed, (W, X[:3])) is None


def test_branches_on_values_are_counted_at_their_lines():
    (hint,) = look(decides).hints
    assert sum(hint.lines.values()) == 2
    assert hint.what == "Python decides on a value in 2 places, which blocks a plain trace"
    assert "convert=True" in hint.remedy
    assert "graphs.where" in hint.remedy


def test_where_converting_does_not_help_the_hint_says_why():
    (hint,) = look(asks).hints
    assert hint.lines == {line(asks, 1): 1}
    assert hint.remedy.startswith("convert=True does not help: ")


def test_a_static_value_that_changes_is_named_with_its_values():
    (hint,) = look(times, (W, X, 1), (W, X, 2), (W, X, 2)).hints
    assert hint.what == "n is not an array and takes 2 values, and each compiles again"
    assert hint.lines == {line(times, 0): 2}
    assert hint.remedy == "pass n as an array, or take a size from the shape of one"
    assert look(times, (W, X, 2), (W, X, 2)) is None


def test_a_sentence_has_lines_counts_and_remedy():
    (hint,) = look(repeated).hints
    assert str(hint) == f"{line(repeated, 2)} (18): a Python loop was unrolled into 18 nodes; {inspection.SCAN}"


@pytest.mark.slow
def test_the_hints_stand_in_the_terminal_and_on_the_page(tmp_path, undrawn):
    found = compare.compare(indexed, [(W, X)], **QUICK)
    (record,) = records_of(found.records, RewriteHints)
    assert results.parse_line(results.encode(record)) == record
    shown = repr(found)
    assert f"{line(indexed, 3)} ({3 * ROUNDS})" in shown
    assert max(map(len, shown.splitlines())) <= 80
    markdown = found.save(tmp_path / "out").with_suffix(".md").read_text()
    assert markdown.index("## What to rewrite") < markdown.index("graphs.scan") < markdown.index("## F1")


@pytest.mark.slow
def test_a_reason_that_several_modes_have_is_said_once():
    found = compare.compare(asks, [(W, X)], ["dynamic", "static", "static-symbolic"], **QUICK)
    assert set(found.verdict.refused) == {"static-exact", "static-symbolic"}
    shown = " ".join(repr(found).split())
    assert shown.count(": unsupported: ") == 1
    assert "static-exact, static-symbolic: unsupported: ControlFlowError" in shown


@pytest.mark.slow
def test_without_hints_there_is_no_such_section():
    assert page.rewrites(compare.compare(own.loss, own.inputs, **QUICK).records) is None
