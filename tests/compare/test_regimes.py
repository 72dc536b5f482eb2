"""Regimes: which cells belong to which, what settles a claim, and what a thin run measures of each."""

from itertools import pairwise

import pytest

from compare import workloads
from compare.claims import regimes
from compare.claims.c5_memory import bytes_held
from compare.claims.evidence import Evidence, right_modes
from compare.errors import UnsupportedError
from compare.instruments import memory, parity, timing
from compare.instruments.memory import measure_mode
from compare.plans import comparison, jobs
from compare.plans.settings import PRESETS, Settings
from compare.records.cells import Parity, Time, TimeRow, admit_modes
from compare.records.job import Budget, Job
from compare.records.record import Cell, Failure, JobName
from compare.subjects.subject import Subject
from tests.helpers.claim_records import memory as memory_records
from tests.helpers.records import typed


def thin_job(kind, name, size, examples=2, **fields):
    return Job(kind, name, size, source=workloads.source(name), thin=examples, **fields)


def test_every_number_of_bytes_and_of_ops_belongs_to_one_regime():
    for named, least in ((regimes.SIZES, 0), (regimes.DEPTHS, 1)):
        ends = sorted(named.values())
        assert ends[0][0] == least
        assert ends[-1][1] == float("inf")
        assert all(one[1] == other[0] for one, other in pairwise(ends))


def test_every_workload_but_the_control_is_of_one_kind():
    kinds = {name: regimes.kind_of(name) for name in workloads.WORKLOADS}
    assert [name for name, kind in kinds.items() if kind not in regimes.KINDS] == ["big_matmul"]
    assert {*kinds.values(), regimes.REAL} == {*regimes.KINDS, "control"}
    assert regimes.kind_of("resnet18") == regimes.REAL
    assert regimes.kind_of("a function of one's own") == "own"


def test_a_cell_is_placed_by_what_the_dynamic_engine_reaches_and_only_if_it_was_right():
    records = typed(memory_records("one", 70_000, 10))
    assert regimes.places(records) == {Cell("one", "small"): regimes.StepCounts(70_000, 0)}
    assert regimes.places(records[1:]) == {}
    (cell,) = regimes.by_size([Evidence("one", "small", ())], regimes.places(records))
    assert cell == "steps of 64 KiB to 1 MiB"
    assert regimes.by_depth([Evidence("one", "small", ())], regimes.places(records)) == {}


@pytest.mark.parametrize("label", ["supported", "refuted", "depends", "inconclusive"])
def test_only_what_speaks_for_every_size_is_settled(label):
    assert regimes.settle_label(label, regimes.SIZES) == (label, ())
    found, why = regimes.settle_label(label, [regimes.REALISTIC])
    assert found == ("inconclusive" if label in ("supported", "refuted") else label)
    assert bool(why) == (found != label)


def test_a_quick_run_counts_every_size_and_times_each_kind_beyond_its_own():
    settings = Settings()
    counted = {job.cell for job in jobs.beyond_counts(settings)}
    left = {*PRESETS["quick"].leaves_out, "big_matmul"}
    assert {Cell(n, s) for n in workloads.WORKLOADS if n not in left for s in ("medium", "large")} <= counted
    timed = [job.cell for job in jobs.beyond_times(settings)]
    assert set(timed) <= counted
    assert {regimes.kind_of(cell.workload) for cell in timed} == {*regimes.KINDS} - {regimes.REAL}
    assert {job.cell for job in jobs.beyond_parity(settings)} == set(timed)
    for only in (Settings(only="tiny*"), Settings("full")):
        assert not jobs.beyond_counts(only) + jobs.beyond_parity(only) + jobs.beyond_times(only)


@pytest.mark.slow
@pytest.mark.parametrize("cell", PRESETS["quick"].beyond.timed, ids=str)
def test_what_a_quick_run_times_beyond_its_sizes_is_realistic(cell):
    row = measure_mode("dynamic", workloads.get(cell.workload).case(cell.size))
    assert row.peak >= regimes.MIB


@pytest.mark.parametrize("name", ["tiny_mlp", "branch_on_sum", "fixed_point"])
def test_counts_are_the_same_together_in_one_process_and_each_alone(name):
    together = memory.measure(thin_job("memory", name, "small"))
    case = workloads.get(name).case("small")
    assert together.checked
    for mode, row in together.modes.items():
        alone = measure_mode(mode, case)
        assert (row.status, row.resident_growth, row.nodes) == ("ok", 0, alone.nodes)
        assert row.classes["structure"] == alone.classes["structure"]
        assert bytes_held(row)[0] == pytest.approx(
            bytes_held(alone)[0], rel=0.02
        )  # a few objects of Python live otherwise
    assert right_modes([together]) == {(Cell(name, "small"), mode) for mode in together.modes}


def test_a_thin_job_counts_the_examples_that_it_times(monkeypatch):
    counted = []
    monkeypatch.setattr(memory, "measure_mode", lambda mode, case, build: counted.append(case.lengths) or 1 / 0)
    memory.measure(thin_job("memory", "rnn_text", "small", examples=3))
    timed = parity.case_of(thin_job("time", "rnn_text", "small", examples=3), workloads.get("rnn_text"))
    assert {*counted} == {timed.lengths}
    assert len(timed.lengths) == 3


def row(status, whole=True):
    return TimeRow(status, None, whole=whole)


def times(process, cache=None, **modes):
    return Time("f", "given", modes, process=process, cache=cache)


@pytest.mark.parametrize(
    ("records", "wrong", "modes", "refused", "ended"),
    [
        ([times(0, base=row("ok"), a=row("ok"), b=row("disagree"))], False, "base a", "b", ""),
        ([times(0, base=row("ok"), a=row("disagree"), b=row("failed"))], True, "base a", "b", ""),
        ([times(0, base=row("disagree"), a=row("ok"))], True, "", "base", ""),
        ([times(0, a=row("ok"))], False, "", "", ""),
        ([times(0, base=row("ok"), a=row("ok")), times(1, base=row("ok"), a=row("failed"))], False, "base", "a", ""),
        ([times(0, base=row("ok"), a=row("failed")), times(1, a=row("ok"))], False, "base", "a", ""),
        # at its limit: first with no compiled code on the disk, then with what it has left there
        ([times(0, "cold", base=row("ok"), a=row("unsupported", False))], False, "base a", "", ""),
        ([times(1, "warm", base=row("ok"), a=row("unsupported", False))], False, "base", "a", "a"),
        ([times(0, "cold", base=row("ok"), a=row("ok", False)), times(1, "warm", a=row("ok", False))],
         False, "base a", "", "a"),
        ([times(0, "cold", base=row("ok"), a=row("unsupported", False)), times(1, "warm", a=row("ok"))],
         False, "base a", "", ""),
    ],
)  # fmt: skip
def test_an_mode_may_be_timed_where_no_record_calls_it_wrong_and_the_base_is_right(
    records, wrong, modes, refused, ended
):
    gate = admit_modes(records, "base", wrong=wrong)
    assert (" ".join(gate.modes), " ".join(gate.refused), " ".join(gate.ended)) == (modes, refused, ended)


def test_a_look_that_fails_costs_no_mode():
    subject = Subject("graphduel", "f", ("dynamic", "static-exact"))
    gate = Parity(subject.name, "given", {mode: row("ok") for mode in subject.modes}, agree=True, same_graph=None,
                  kernel_calls={})  # fmt: skip
    failed = Failure(JobName("shape policies"), "ZeroDivisionError: in a look at the function")
    assert comparison.admitted_modes(subject, [gate, failed]) == ["dynamic", "static-exact"]


class Off:
    """A step whose value is wrong by one part in a hundred."""

    def __init__(self, step):
        self.step, self.examples = step, step.examples

    def __call__(self, *example):
        value, gradients = self.step(*example)
        return value * 1.01, gradients


def test_an_mode_that_is_wrong_or_refuses_is_counted_for_nothing(monkeypatch):
    check = parity.check_step
    monkeypatch.setattr(parity, "check_step", lambda step, *rest: check(Off(step), *rest))
    wrong = memory.measure(thin_job("memory", "tiny_mlp", "small"))
    assert {row.status for row in wrong.modes.values()} == {"disagree"}
    assert right_modes([wrong]) == set()

    def refuse(*_):
        raise UnsupportedError("no")

    monkeypatch.setattr(memory, "measure_mode", refuse)
    assert {row.status for row in memory.measure(thin_job("memory", "tiny_mlp", "small")).modes.values()} == {
        "unsupported"
    }


def test_a_thin_job_takes_a_few_examples_and_the_modes_that_hold_few_graphs():
    text = workloads.get("rnn_text")
    job = thin_job("time", "rnn_text", "small", examples=3)
    case = parity.case_of(job, text)
    assert len(case.examples) == len(case.lengths) == 3
    whole = text.case("small")
    assert (min(case.lengths), max(case.lengths)) == (min(whole.lengths), max(whole.lengths))
    assert parity.modes_of(job, text) == ("dynamic", "static-pad", "static-symbolic")
    assert parity.modes_of(thin_job("time", "tree_lstm", "small"), workloads.get("tree_lstm")) == (
        "dynamic", "static-exact",
    )  # fmt: skip
    assert parity.modes_of(Job("time", "rnn_text", "small"), text) == text.modes
    quick = Budget(rounds=1, least=1, seconds=0.0, block_seconds=0.0)
    modes = ("dynamic", "static-exact")
    record = timing.measure(thin_job("time", "fixed_point", "small", process=0, modes=modes, budget=quick))
    assert {len(row.stream) for row in record.modes.values()} == {2}
