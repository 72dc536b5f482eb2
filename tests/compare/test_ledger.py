"""The ledger: every byte of a step in a class, held against tracemalloc and the process, and why the engines differ."""

import gc

import numpy as np
import pytest

import dynamic
import graphs as g
from compare.engines.graphduel.steps import transform_step
from compare.instruments import watched_graph, watched_tape
from compare.instruments.ledger import attribute_causes, counts, disagreements, measure_mode, most_live
from compare.instruments.watched_tape import Reading, Timeline, moment, thin_moments, watch_kernels
from compare.records.cells import LedgerCount, Moment
from compare.records.job import Job
from compare.report.figures import memory
from compare.report.summary import summarise
from compare.run.processes import run_job
from compare.workloads import Case
from tests.helpers import fake_workloads
from tests.helpers.records import plain, typed

MODES = ("dynamic", "static-exact")
N = 1000
CLASSES = {"structure", "activations", "saved", "gradients", "workspace", "caches", "slack", "untold"}


def chain_loss(params, x):
    y = x
    for _ in range(3):
        y = g.tanh(y * params["s"])
    return g.sum(y + 1)


def make_chain():
    return Case(chain_loss, {"s": np.array(0.5)}, ((np.linspace(0, 1, N),),), (N,))


@pytest.fixture(scope="module")
def record():
    head = {"kind": "ledger", "workload": "chain", "size": "small"}
    return {**head, "arms": plain({mode: measure_mode(mode, make_chain()) for mode in MODES})}


# What is counted


@pytest.mark.parametrize("mode", MODES)
def test_the_peak_is_the_one_that_tracemalloc_counts_when_nobody_watches(record, mode):
    row = record["arms"][mode]
    assert row["peak"] == pytest.approx(row["counted_peak"], rel=0.01)
    assert "notes" not in row
    assert max(sum(m["bytes"].values()) for m in row["moments"]) == row["peak"]


@pytest.mark.parametrize("mode", MODES)
def test_every_byte_has_a_class_and_hardly_one_is_untold(record, mode):
    moments = record["arms"][mode]["moments"]
    assert {name for m in moments for name in m["bytes"]} <= CLASSES
    assert max(m["bytes"].get("untold", 0) for m in moments) < 0.01 * 8 * N
    assert all(size >= 0 for m in moments for size in m["bytes"].values())


def test_the_record_keeps_the_schema(record):
    assert typed(record)


def test_the_tape_saves_what_backward_reads_and_drops_the_rest():
    found = watched_tape.timeline(make_chain())
    forward = [m for m in found.moments if m.phase == "forward"]
    assert forward[-1].classes["saved"] // (8 * N) == 3  # the results of tanh: the product's operand is one, or given
    assert {m.classes.get("activations", 0) // (8 * N) for m in forward} == {1}  # a product, then the sum's operand
    last = found.moments[-1]
    assert last.phase == "backward"
    assert last.classes["gradients"] == 16  # what is handed out: the gradient, and the loss
    assert last.classes.get("saved", 0) < 8 * N
    assert found.objects["structure"] > 0


def test_the_arena_is_live_bytes_and_slack():
    found = watched_graph.timeline(make_chain())
    assert [m.phase for m in found.moments[:2]] == ["trace", "compile"]
    arena = found.moments[1].classes["slack"]
    for m in found.moments[2:]:
        inside = m.total - m.classes.get("gradients", 0) - m.classes.get("structure", 0) - m.classes.get("untold", 0)
        assert inside >= arena
    assert {m.phase for m in found.moments[2:]} == {"forward", "backward"}


def test_a_step_without_gradients_has_no_backward():
    case = Case(chain_loss, {"s": np.array(0.5)}, ((np.ones(N),),), (N,), argnum=None)
    for timeline in (watched_tape.timeline, watched_graph.timeline):
        found = timeline(case)
        assert "backward" not in {m.phase for m in found.moments}
        assert not any("saved" in m.classes for m in found.moments)


@pytest.mark.slow
def test_more_than_64_mib_agree_with_the_process_too():
    # in a worker, as in a run: the process of the tests was larger before
    job = Job("ledger", "large", "small", source="tests.helpers.large_workload:LARGE", modes=("dynamic",))
    row = run_job(job, 60).modes["dynamic"]
    assert row.peak > 64 << 20
    assert row.peak == pytest.approx(row.counted_peak, rel=0.01)
    assert row.resident_growth == pytest.approx(row.peak, rel=0.1)
    assert row.notes == []


# Watching without changing


def test_every_new_array_of_a_step_is_seen_and_nothing_stays_changed():
    case = fake_workloads.make_tiny()
    step = transform_step(dynamic, case.loss, 0)
    expected = step(case.params, *case.examples[0])
    seen = []
    gc.freeze()
    with watch_kernels(seen.append):
        found = step(case.params, *case.examples[0])
    count = len(seen)
    np.testing.assert_array_equal(found[1]["w"], expected[1]["w"])
    assert any(array is found[1]["w"] or array.base is found[1]["w"] for array in seen)
    step(case.params, *case.examples[0])
    assert len(seen) == count
    assert not any(getattr(one, "__name__", "") == "told" for one in gc.get_objects() if type(one) is dict)


# Where others see something else


def made(total, objects=None):
    return Timeline([Moment("forward", {"saved": total})], objects or {}, 1)


def test_what_does_not_agree_is_told():
    assert disagreements(made(1000), 1005, 10**9) == []
    assert disagreements(made(1100), 1000, 0) == ["the ledger's peak is 1,100 bytes, tracemalloc's 1,000: +10.0%"]
    large = 100 << 20
    assert disagreements(made(large), large, round(1.05 * large)) == []
    (note,) = disagreements(made(large), large, large // 2)
    assert note.endswith("the ledger's peak is 104,857,600: -50.0%")


def test_a_kernels_own_memory_is_workspace_and_what_nobody_knows_is_untold():
    found = moment("forward", {"saved": 100}, Reading(current=130, peak=200), before=150)
    assert found.classes == {"saved": 100, "workspace": 50, "untold": 30}
    assert found.total == 180


def test_thinning_keeps_the_peak_and_every_phase():
    moments = [Moment("forward", {"saved": i}) for i in range(1000)] + [Moment("backward", {"saved": 3})]
    kept = thin_moments(moments, 20)
    assert len(kept) <= 21
    assert max(kept, key=lambda m: m.total).total == 999
    assert kept[-1].phase == "backward"


# Why the engines differ


def test_the_changes_lead_from_one_peak_to_the_other(record):
    first, last = (record["arms"][mode]["peak"] for mode in MODES)
    found = attribute_causes(first, [LedgerCount(**c) for c in record["arms"]["static-exact"]["counts"]], last)
    assert first + sum(change for _, change in found) == last
    causes = dict(found)
    assert causes["branches and loops as graphs"] == 0
    assert causes["kept by Python variables and the tape"] == 0  # an ideal tape reaches what is live, and no more
    assert causes["in place"] <= 0
    assert causes["fragmentation"] >= 0
    assert causes["padding to cache lines"] >= 0


def test_each_count_is_that_of_a_graph_known_by_hand():
    def loss(x):
        return g.sum(g.exp(g.tanh(x)))

    tape_graph = dynamic.record(loss, np.ones(N))
    assert most_live(tape_graph) == 2 * 8 * N  # tanh and exp, each in memory of its own
    found = {c.cause: c.bytes for c in counts(Case(loss, np.ones(N), ((),), (N,), argnum=None))}
    assert found["in place"] < found["kept by Python variables and the tape"] == 2 * 8 * N


# The figure


@pytest.mark.parametrize("mode", MODES)
def test_a_moment_has_the_line_whose_kernel_ran(record, mode):
    first = chain_loss.__code__.co_firstlineno
    lines = [m["line"] for m in record["arms"][mode]["moments"] if m.get("line")]
    tanh, total = (f"test_ledger.py:{first + offset}" for offset in (3, 4))
    assert tanh in lines
    assert lines.index(tanh) < lines.index(total)  # forward goes down the function
    assert lines[::-1].index(tanh) < lines[::-1].index(total)  # and backward up again


def test_the_figure_says_which_line_made_the_peak(record):
    picture = memory.draw_ledger(summarise(typed([record])))
    marked = [words.get_text() for axes in picture.figure.axes for words in axes.texts]
    assert len(marked) == len(MODES)
    assert all(words.startswith("peak ") for words in marked)
    peak = max(record["arms"]["dynamic"]["moments"], key=lambda m: sum(m["bytes"].values()))
    assert marked[0] == f"peak at {peak['line']}, {peak['phase']}"


def test_the_figure_shows_both_engines_and_the_table_adds_up(record):
    drawing = memory.draw_ledger(summarise(typed([record])))
    assert drawing.figure is not None
    rows = {row[2]: row[3:] for row in drawing.table.rows}
    assert rows["dynamic: peak of the ledger"][0] == f"{record['arms']['dynamic']['peak']:,}"
    last = rows["then constants, own memory of kernels and of control flow"][0]
    assert last == f"{record['arms']['static-exact']['peak']:,}"
    assert memory.draw_ledger(summarise(typed([]))).figure is None
