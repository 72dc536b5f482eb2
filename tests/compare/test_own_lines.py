"""A step line by line: bytes, kernels and saved tensors as counted by hand, in both engines."""

import importlib
import inspect
import sys
import time
from itertools import pairwise
from types import ModuleType

import numpy as np
import pytest

import graphs as g
import static
from compare import own, text
from compare.engines.graphduel import programs, training
from compare.engines.step import LineOp
from compare.instruments import ledger as ledger_of_lines
from compare.instruments import watched_graph as ledger
from compare.instruments import watched_tape as ticks
from compare.instruments.ledger import measure_lines, texts
from compare.instruments.rounds import IS_FINE
from compare.instruments.watched_tape import LineKernel, align_lines
from compare.own import run
from compare.plans.comparison import ComparisonPlan
from compare.records.cells import SourceLines, Time
from compare.records.job import Job
from compare.records.own import FunctionLook
from compare.records.record import Failure, records_of
from compare.report.figures import parts
from compare.report.summary import summarise
from compare.subjects.case import case_of
from compare.subjects.subject import Situation, Subject
from graphs.errors import count_as_ours, is_internal

MODES = ("dynamic", "static-exact")
FIRST, SECOND, LOSS = 1, 2, 3  # lines of `mlp` after its first


def mlp(params, x, y):
    h = g.tanh(x @ params["w1"])
    out = h @ params["w2"]
    return g.mean((out - y) ** 2)


def branch(x):
    if g.sum(x) > 0:
        return g.sum(g.tanh(x))
    return g.sum(x)


def arrays(*shapes):
    return [np.ones(shape, np.float32) for shape in shapes]


def inputs():
    w1, w2, x, y = arrays((32, 64), (64, 8), (128, 32), (128, 8))
    return [({"w1": w1, "w2": w2}, x, y)]


def line(f, below):
    return f"test_own_lines.py:{f.__code__.co_firstlineno + below}"


def read(f, calls, modes=MODES, gradient=None):
    return measure_lines(Job("lines", "f", "given", modes=modes), case_of(f, calls, gradient, None))


@pytest.fixture(scope="module")
def record():
    return read(mlp, inputs())


def test_the_tape_makes_and_saves_what_can_be_counted_by_hand(record):
    lines = record.modes["dynamic"].lines
    hidden, out, weights, last = 128 * 64 * 4, 128 * 8 * 4, 32 * 64 * 4, 64 * 8 * 4
    first, second, loss = (lines[line(mlp, below)] for below in (FIRST, SECOND, LOSS))
    # x @ w1 and tanh; square, subtract, multiply of tanh's gradient, and the gradient of w1
    assert (first.made, first.saved, first.saved_bytes) == (5 * hidden + weights, 1, hidden)
    # h @ w2; the gradients of h and of w2
    assert (second.made, second.saved) == (out + hidden + last, 0)
    # the difference is what `square` keeps; its square, the mean; back: one number, its broadcast a view, two products
    assert (loss.saved, loss.saved_bytes) == (1, out)
    assert [each.kernels for each in (first, second, loss)] == [7, 5, 7]


def test_both_engines_save_the_same_tensors_here(record):
    saved = [{name: (one.saved, one.saved_bytes) for name, one in row.lines.items()} for row in record.modes.values()]
    assert saved[0] == saved[1]


def test_a_backward_kernel_is_of_the_line_whose_gradient_it_computes(record):
    known = {line(mlp, below) for below in (FIRST, SECOND, LOSS)}
    for row in record.modes.values():
        assert set(row.lines) == known


@pytest.mark.parametrize("mode", MODES)
def test_the_times_of_lines_and_elsewhere_come_to_the_step(record, mode):
    row = record.modes[mode]
    assert sum(one.seconds for one in row.lines.values()) + row.elsewhere == pytest.approx(row.step)
    assert all(one.seconds > 0 for one in row.lines.values())


def test_what_the_harness_copies_before_a_function_is_of_no_line():
    def squares(x):
        return g.sum(x * x)

    count_as_ours("copying.py")  # as the adapter of a training step, which gives each call arguments of its own
    space = {"g": g, "squares": squares}
    exec(compile("def copying(x): return squares(g.negative(x))", "copying.py", "exec"), space)
    row = read(space["copying"], [tuple(arrays((256,)))], ("dynamic",)).modes["dynamic"]
    assert set(row.lines) == {line(squares, 1)}
    assert row.lines[line(squares, 1)].kernels == 6  # a product, a sum; back a view, two products, their sum


@pytest.mark.parametrize("module", [programs, training])
def test_what_runs_a_file_of_pytorchs_in_our_engine_is_no_line_of_the_users(module):
    assert is_internal(module.__file__)


def test_the_text_of_each_line_is_recorded(record):
    assert record.code[line(mlp, SECOND)] == 'out = h @ params["w2"]'


def test_cotangents_that_are_added_up_are_of_the_line_before():
    def twice(x):
        y = g.tanh(x)
        return g.sum(y * y + y)

    row = read(twice, [(np.ones(5),)]).modes["dynamic"]
    start = inspect.getsourcelines(twice)[1]
    assert set(row.lines) == {f"test_own_lines.py:{start + 1}", f"test_own_lines.py:{start + 2}"}


def test_without_gradients_nothing_is_saved():
    row = read(mlp, inputs(), gradient=False).modes
    assert [one.saved for mode in MODES for one in row[mode].lines.values()] == [0] * 6


def test_a_fused_group_gives_each_line_its_own_kernels():
    def chain(x):
        a = g.exp(x)
        b = g.tanh(a)
        return b * 2

    row = read(chain, [(np.ones(1 << 19),)], modes=("static-exact",)).modes["static-exact"]
    start = inspect.getsourcelines(chain)[1]
    assert {name: one.kernels for name, one in row.lines.items()} == {
        f"test_own_lines.py:{start + below}": 1 for below in (1, 2, 3)
    }
    assert sum(one.made for one in row.lines.values()) == 8 << 19


def test_an_mode_that_refuses_says_why_and_one_that_converts_is_read():
    rows = read(branch, [(np.ones(3),)], modes=(*MODES, "static-converted")).modes
    assert (rows["static-exact"].status, rows["static-converted"].status) == ("unsupported", "ok")
    assert "test_own_lines.py" in rows["static-exact"].reason
    assert line(branch, 2) in rows["static-converted"].lines


def test_what_was_watched_longer_is_scaled_to_the_step():
    counted = ticks.count_lines([LineOp("a.py:1")])
    row = ticks.time_lines(counted, lambda: None, lambda: [("a.py:1", 3.0), ("", 1.0), ("a.py:2", 4.0)])
    assert row.lines["a.py:1"].seconds == pytest.approx(row.step * 3 / 8)
    assert row.lines["a.py:2"].seconds == pytest.approx(row.step / 2)
    assert row.elsewhere == pytest.approx(row.step / 8, abs=1e-12)
    assert row.lines["a.py:1"].kernels == 1


def test_what_other_programs_take_is_no_part_of_a_line():
    def step():
        time.sleep(0.02)  # as if another program had the core

    row = ticks.time_lines(ticks.count_lines([]), step, lambda: [("mine.py:1", 0.02)])
    assert (row.step < 0.01) == IS_FINE
    wall = ticks.time_lines(ticks.count_lines([]), step, lambda: [("mine.py:1", 0.02)], time.perf_counter_ns)
    assert wall.step >= 0.02
    assert wall.lines["mine.py:1"].seconds >= 0.019
    assert (row.lines["mine.py:1"].seconds < 0.01) == IS_FINE


def test_arrays_that_no_kernel_was_recorded_for_have_no_line():
    kernels = [LineKernel(LineOp("a:1"), (1,)), LineKernel(LineOp("a:2"), (2,))]
    assert align_lines(kernels, [(1,), (2,)]) == ["a:1", "a:2"]
    assert align_lines(kernels, [(1,), (7,), (2,)]) == ["a:1", "", "a:2"]


@pytest.mark.parametrize("gone", [0, 1, 300])
def test_a_long_step_that_differs_in_places_is_aligned_around_them(gone):
    """The steps of an adaptive solver, whose watched run takes some kernels more, or leaves some out."""
    kernels = [LineKernel(LineOp(f"a:{n % 50}", 0.0), (n % 50,)) for n in range(40_000)]
    made = [(kernel.result, kernel.op.line) for kernel in kernels]
    made = [*made[:500], *[((99,), "")] * 3, *made[500 + gone : 20_000], ((98,), ""), *made[20_000:]]
    found = align_lines(kernels, [result for result, _ in made])
    wrong = [line for line, (_, right) in zip(found, made, strict=True) if line != right]
    assert len(wrong) <= 400
    assert not [line for line in wrong if line and gone == 0]


def test_saved_nodes_of_a_step_without_backward_are_none():
    case = case_of(mlp, inputs(), False, None)
    executable = static.compile(mlp, *inputs()[0])
    assert ledger.saved_nodes(executable, case) == set()


def test_the_table_has_the_dearest_line_first_and_says_what_has_no_line(record):
    table = parts.draw_lines(summarise([record])).table
    dearest = [max(row.lines[r[0]].seconds for row in record.modes.values()) for r in table.rows[:-2]]
    assert all(a >= b for a, b in pairwise(dearest))
    assert [row[0] for row in table.rows[-2:]] == ["elsewhere"] * 2


def test_nothing_is_drawn_of_a_run_that_read_no_lines():
    assert parts.draw_lines(summarise([])).table is None


@pytest.mark.slow
def test_comparing_prints_the_answer_first_and_the_lines_in_80_columns():
    found = own.compare(mlp, inputs(), processes=0, seconds=0.01)
    shown = repr(found).splitlines()
    assert "".join(shown).startswith(found.verdict.sentence[:40])
    assert max(map(len, shown)) <= 80
    assert any(row.startswith(line(mlp, FIRST)) and "h = g.tanh(" in row for row in shown)
    assert line(mlp, FIRST) in found._repr_html_()
    (lines,) = records_of(found.records, SourceLines)
    steps = [text.seconds(row.step) for row in lines.modes.values()]
    assert next(row for row in shown if row.startswith("a step")).split("  ")[-1] == "timed between watched ones"
    assert all(step in next(row for row in shown if row.startswith("a step")) for step in steps)


def test_a_look_beside_the_times_that_takes_too_long_costs_itself_alone(monkeypatch):
    monkeypatch.setattr(ledger_of_lines, "measure_source_lines", lambda job: time.sleep(60))
    asked = ComparisonPlan(Subject("graphduel", "mlp", MODES), Situation(processes=0, seconds=0.01, limit=2.0))
    result = run.here(asked, mlp, inputs())
    assert {row.status for record in records_of(result.records, Time) for row in record.modes.values()} == {"ok"}
    (failed,) = records_of(result.records, Failure)
    assert (failed.job.kind, failed.error) == ("lines", "it did not end in 1.8 s")


def test_what_is_taken_apart_needs_both_engines_and_parts_of_time_a_gradient():
    def kinds(modes, gradient):
        plan = ComparisonPlan(Subject("graphduel", "f", modes), Situation(apart=True))
        look = FunctionLook("f", list(modes), {"gradient": gradient}, "")
        return [job.kind for job in plan.further([look], modes) if job.kind != "memory"]

    assert kinds(MODES, True) == ["lines", "ledger", "ledger", "ladder", "threads", "parts"]
    assert kinds(("dynamic",), True) == ["lines", "ledger"]
    assert kinds(MODES, False) == ["lines", "ledger", "ledger", "ladder", "threads"]


def test_lines_have_their_text_in_whichever_file_they_stand(tmp_path, monkeypatch):
    (tmp_path / "layers_of_mine.py").write_text("def half(x):\n    return x / 2\n", "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("layers_of_mine")
    found = texts(mlp, ["layers_of_mine.py:2", line(branch, 0), "nowhere.py:1"])
    assert found == {"layers_of_mine.py:2": "return x / 2", line(branch, 0): "def branch(x):"}
    twin = ModuleType("twin")
    twin.__file__ = str(tmp_path / "other" / "layers_of_mine.py")
    monkeypatch.setitem(sys.modules, "twin", twin)
    assert texts(branch, ["layers_of_mine.py:2"]) == {}
