"""Our workloads in a framework: the gate, limits, bytes; and the claims judged there by the rules they have here."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import chain
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner

from compare import engines as frameworks
from compare import workloads
from compare.claims import CLAIMS
from compare.claims import frameworks as claimed
from compare.claims.base import Effect, Finding, Regime, Verdict
from compare.claims.evidence import cells, of_framework, of_ours
from compare.cli.command import graphduel
from compare.engines.cases import longest
from compare.engines.framework import WorkloadStep
from compare.instruments import timing
from compare.plans.settings import Settings
from compare.records import results
from compare.records.cells import Compilations, Memory, MemoryRow, Parity, ParityRow, Time, TimeRow
from compare.records.job import Budget, Job
from compare.records.journal import Journal
from compare.records.record import Cell, Failure, JobName, records_of
from compare.report import assemble as section
from compare.run.executors import groups
from compare.run.progress import Reporter
from compare.run.worker import perform
from compare.subjects.subject import Subject
from compare.suite import frameworks as stage
from compare.suite import stages
from tests.helpers import toy_framework
from tests.helpers.claim_records import PEAKS, SIZES

PAIR = ("toy-eager", "toy-jit")
TINY = Cell("tiny_mlp", "small")
BUDGET = Budget(rounds=3, least=2, seconds=0.05, block_seconds=0.001)


pytestmark = pytest.mark.usefixtures("toy")


def job(workload="tiny_mlp", modes=PAIR, process=1, limit=20.0):
    return Job(
        "time", workload, "small", process, mode=modes[-1], modes=modes, budget=BUDGET,
        source=workloads.source(workload), asked={"limit": limit},
    )  # fmt: skip


def measured(**options):
    return timing.measure(job(**options))


def beside(record, kind):
    return records_of(results.unfold(record), kind)


def time_of(workload, size, process, rows, mode="toy-jit"):
    cache = "warm" if process else "cold"
    return Time(workload, size, rows, process=process, cache=cache, mode=mode, eager="toy-eager")


# What one process measures


def test_a_cold_process_checks_and_a_warm_one_times():
    cold, warm = measured(process=0), measured(process=1)
    assert (cold.cache, warm.cache) == ("cold", "warm")
    for record in (cold, warm):
        assert {row.status for row in record.modes.values()} == {"ok"}
    assert not any(row.blocks for row in cold.modes.values())
    assert len(warm.modes["toy-jit"].blocks) == len(warm.modes["toy-eager"].blocks) > 0  # they are paired
    assert {mode: row.compiles for mode, row in warm.modes.items()} == {"toy-eager": 0, "toy-jit": 1}
    (told,) = beside(cold, Compilations)
    assert [made.reason for made in told.modes["toy-jit"].made] == ["a new shape"]
    (parity,) = beside(warm, Parity)
    assert parity.agree
    assert all(0 <= row.gradient_error < 1e-4 for row in parity.modes.values())
    assert parity.eager == warm.eager == "toy-eager"


def test_an_mode_that_is_wrong_or_refuses_is_not_timed():
    wrong = measured(modes=("toy-eager", "toy-wrong")).modes["toy-wrong"]
    assert wrong.status == "disagree"
    assert wrong.reason.startswith("the output in call 1 is off by ")
    assert wrong.blocks == []
    refused = measured(modes=("toy-eager", "toy-refusing")).modes["toy-refusing"]
    assert refused.status == "unsupported"
    assert refused.reason.startswith("NotImplementedError: cannot be compiled: it prints")


def test_an_epoch_ends_at_its_limit_with_what_was_reached():
    record = measured(workload="rnn_text", modes=("toy-eager", "toy-endless"), limit=1.5)
    row = record.modes["toy-endless"]
    assert (row.status, row.whole, row.blocks) == ("ok", False, [])
    assert row.reason == f"1 of {len(record.modes['toy-eager'].stream)} calls: it did not end in 1.5 s"
    assert len(row.stream) == 2
    assert 1 < row.stream[1].seconds < 15  # the one that was interrupted; the limit counts no seconds of other programs
    assert record.modes["toy-eager"].blocks  # which is timed all the same


def test_an_mode_that_pads_gives_the_same_and_computes_more():
    case = workloads.get("rnn_text").case("small")
    assert {leaf.shape[0] for example in longest(case) for leaf in example} == {max(case.lengths)}
    row = measured(workload="rnn_text", modes=("toy-eager", "toy-jit-padded"), process=0).modes["toy-jit-padded"]
    assert row.status == "ok"
    assert (row.compiles, row.computed) == (1, max(case.lengths) * len(case.lengths))
    assert row.computed > row.useful == sum(case.lengths)


def test_a_workload_that_cannot_be_padded_says_so():
    row = measured(modes=("toy-eager", "toy-jit-padded")).modes["toy-jit-padded"]
    assert "padding would change its result" in row.reason


def test_a_step_waits_and_counts_what_it_compiles():
    toy = toy_framework.Toy()
    case = toy.library.workload(workloads.source("tiny_mlp")).case("small")
    step = WorkloadStep(toy, "toy-jit", case)
    assert step.compiles == 0
    loss, gradients = step(*step.examples[0])
    assert step.compiles == 1
    assert np.isfinite(loss)
    assert gradients.keys() == case.params.keys()


def test_a_traced_mode_is_given_the_rewritten_loss():
    toy = toy_framework.Toy()
    case = toy.library.workload(workloads.source("rnn_text")).case("small")
    assert toy.loss("toy-jit", case) is case.loss
    traced = replace(toy.modes[1], traces=True)
    toy.modes = (toy.modes[0], traced)
    assert toy.loss("toy-jit", case) is case.scanned


# Which jobs there are


def test_modes_share_a_process_unless_they_disturb_each_other():
    toy, text = frameworks.find_engine("toy"), Cell("rnn_text", "small")
    assert groups("time", Subject.of_workload(TINY, toy, usual=True).modes) == [PAIR]
    assert groups("time", Subject.of_workload(text, toy, usual=True).modes) == [(*PAIR, "toy-jit-padded")]
    toy.shares = False
    assert groups("time", Subject.of_workload(text, toy, usual=True).modes) == [PAIR, ("toy-eager", "toy-jit-padded")]


def test_a_quick_run_has_the_usual_modes_of_the_suite():
    toy = toy_framework.Toy()
    eager, jit = toy.modes[:2]
    toy.modes = (eager, replace(jit, usual=False), replace(toy.modes[2], usual=True, suite=False))
    assert groups("time", Subject.of_workload(TINY, toy, usual=True).modes) == [("toy-eager",)]
    assert groups("time", Subject.of_workload(TINY, toy, usual=False).modes) == [PAIR]


def test_a_mode_for_shapes_that_vary_is_measured_where_they_do():
    toy = toy_framework.Toy()
    toy.modes = (toy.modes[0], replace(toy.modes[1], relaxes=True))
    assert groups("time", Subject.of_workload(TINY, toy, usual=True).modes) == [("toy-eager",)]
    assert groups("time", Subject.of_workload(Cell("rnn_text", "small"), toy, usual=True).modes) == [
        (*PAIR, "toy-jit-padded")
    ]


def test_cold_processes_and_checks_come_first_and_then_process_after_process(tmp_path):
    settings = Settings(frameworks=["toy"])
    cold, first, others = stage.jobs(settings, [TINY], tmp_path, tmp_path)
    of_cells = [job for job in cold if job.claim is None]
    assert cold[: len(of_cells)] == of_cells
    assert all(job.source == CLAIMS[job.claim].check.measure for job in cold[len(of_cells) :])
    assert [job.process for job in (*of_cells, *first, *others)] == [0, 0, 1, 1, 2, 2, 3, 3]
    assert {job.workload for job in (*of_cells, *first, *others)} == {"tiny_mlp", "encoder_text"}
    assert len({job.name for job in (*cold, *first, *others)}) == len(cold) + len(first) + len(others)
    found = stage.jobs(replace(settings, only="tiny_mlp"), [TINY], tmp_path, tmp_path)
    assert {(job.workload, job.claim) for job in chain(*found)} == {("tiny_mlp", None)}


def test_an_mode_alone_is_timed_once(tmp_path, monkeypatch):
    monkeypatch.setattr(toy_framework.Toy, "modes", toy_framework.Toy.modes[:1])
    frameworks.find_engine.cache_clear()
    _, first, others = stage.jobs(Settings(frameworks=["toy"], only="tiny_mlp"), [TINY], tmp_path, tmp_path)
    assert [(job.modes, job.process) for job in first] == [(("toy-eager",), 1)]
    assert others == []


def test_what_the_cold_process_refused_is_not_timed():
    right, wrong = TimeRow("ok", None), TimeRow("disagree", "off")
    cold = [time_of(*TINY, 0, {"toy-eager": right, mode: row}, mode)
            for mode, row in (("toy-jit", right), ("toy-wrong", wrong))]  # fmt: skip
    assert stage.worthwhile(cold, job())
    assert not stage.worthwhile(cold, job(modes=("toy-eager", "toy-wrong")))
    assert not stage.worthwhile(cold, job(workload="big_matmul"))


def test_what_came_through_no_first_epoch_with_compiled_code_is_known_to_time_nothing():
    right, cut = TimeRow("ok", None), TimeRow("ok", "1 of 9 examples", whole=False)
    later = replace(job(), process=2)
    for process, row, expected in ((0, cut, False), (1, right, False), (1, cut, True)):
        known = time_of(*TINY, process, {"toy-eager": right, "toy-jit": row}, "toy-jit")
        assert stage.has_no_epoch([known], later) == expected


def test_a_cold_process_meets_no_code_of_a_start_that_was_stopped(tmp_path):
    folder = stage.folder(tmp_path, "toy-jit", TINY)
    folder.mkdir(parents=True)
    (folder / "kernel").touch()
    stage.without_code(tmp_path, job(process=1))
    assert folder.exists()
    stage.without_code(tmp_path, job(process=0))
    assert not folder.exists()


# Judged by the rules that our engines are judged by


def cell(workload, process, eager, jit, size="small", peak=None):
    modes = {"toy-eager": [eager] * 5, "toy-jit": [jit] * 5}
    rows = {
        mode: TimeRow("ok", None, build=0.0, first=blocks[0], blocks=blocks, useful=8, computed=8)
        for mode, blocks in modes.items()
    }
    place = {"workload": workload, "size": size, "mode": "toy-jit", "eager": "toy-eager"}
    yield time_of(workload, size, process, rows)
    yield Parity(**place, modes={mode: right() for mode in modes}, agree=True, same_graph=None, kernel_calls={})
    if peak is not None:
        yield Memory(
            **place, modes={mode: MemoryRow("ok", None, peak=peak, held=0) for mode in modes}, counted="malloc"
        )


def records(eager=2.0, jit=1.0, sizes=("small",)):
    names = ("tiny_mlp", "deep_chain", "elementwise_chain", "mlp_digits")
    places = [(name, size) for name in names for size in sizes]
    slow = [cell(n, p, eager, jit, size, None if p else PEAKS[size]) for n, size in places for p in range(4)]
    return [*chain(*slow, *(cell("big_matmul", p, 1.0, 1.0) for p in range(4)))]


def test_the_eager_mode_is_the_base_of_its_records():
    toy = toy_framework.Toy()
    found = of_framework([*records(), Time(*TINY, {}, process=0)], toy)
    times = cells(found, Time)
    assert {(one.base, one.modes) for one in times} == {("toy-eager", ("toy-eager", "toy-jit"))}
    assert len(times[0].processes) == 3  # the cold one times no steady state
    assert {tuple(record.modes) for record in found if isinstance(record, Parity)} == {("toy-eager", "toy-jit")}
    assert [record.modes["toy-jit"].peak for record in found if isinstance(record, Memory)] == [PEAKS["small"]] * 4
    assert of_ours(records()) == []


def test_a_claim_is_judged_there_as_it_is_here():
    toy = toy_framework.Toy()
    slower = CLAIMS["C6"].judge(of_framework(records(sizes=SIZES), toy)).finding
    assert (slower.verdict, round(slower.effect.value, 6)) == ("supported", 0.5)
    faster = CLAIMS["C6"].judge(of_framework(records(eager=1.0, jit=2.0, sizes=SIZES), toy)).finding
    assert faster.verdict == "refuted"
    memory = CLAIMS["C5"].judge(of_framework(records(sizes=SIZES), toy)).finding
    assert memory.verdict == "refuted"
    assert not any("structure is" in reason for reason in memory.reasons)  # nobody tells how large it is


def verdict(claim, word, *regimes):
    return Verdict(CLAIMS[claim], Finding(word, ("because",), Effect("x", 1.0, "ratio"), regimes=regimes))


@pytest.mark.parametrize(
    ("ours", "theirs", "agrees"),
    [
        ("supported", "supported", "yes"),
        ("supported", "refuted", "no"),
        ("depends", "supported", "no"),
        ("inconclusive", "inconclusive", "cannot tell"),
        ("supported", "not measured yet", "cannot tell"),
    ],
)
def test_open_verdicts_agree_in_nothing(ours, theirs, agrees):
    found = claimed._agreement(toy_framework.Toy(), verdict("C8", ours), verdict("C8", theirs), ())
    assert found.agrees == agrees
    assert bool(found.why) == (agrees != "yes")


def test_a_disagreement_names_the_conditions_on_which_verdicts_part():
    here = verdict("C6", "depends", Regime("a (small): steady state", "supported", 0.5, mode="static-exact"),
                   Regime("b (small): steady state", "refuted", 1.1, mode="static-exact"))  # fmt: skip
    there = verdict("C6", "supported", Regime("a (small): steady state", "refuted", 2.0, mode="toy-jit"),
                    Regime("b (small): steady state", "refuted", 1.2, mode="toy-jit"))  # fmt: skip
    found = claimed._agreement(toy_framework.Toy(), here, there, ("the ladder",))
    assert found.why == ("a (small): steady state: refuted (2) there, supported (0.5) here", "the ladder")


def test_the_gap_is_taken_apart_into_graph_mode_and_kernels():
    parity = {mode: right() for mode in ("dynamic", "static-exact")}
    ours = [
        Parity(*TINY, parity, agree=True, same_graph=None, kernel_calls={}),
        Time(*TINY, {"dynamic": timed(1.5), "static-exact": timed(0.5)}, process=0),
    ]
    theirs = of_framework(records(), toy_framework.Toy())
    (said,) = claimed._ladder(toy_framework.Toy(), theirs, ours)
    assert "in Toy compiled ÷ eager is 0.5× with the best compiled mode, over 1 workload: " in said
    assert "0.333× is graph mode alone" in said
    assert "times 0.75× (our dynamic engine ÷ its eager mode)" in said
    assert "times 2× (its compiled mode ÷ our static engine)" in said


def test_bytes_that_are_held_between_steps_are_told_from_those_of_a_step():
    rows = {
        "dynamic": MemoryRow("ok", None, peak=100, held=0),
        "static-exact": MemoryRow("ok", None, peak=50, held=900),
    }
    parity = Parity(*TINY, {mode: right() for mode in rows}, agree=True, same_graph=None, kernel_calls={})
    (said,) = claimed._peaks([parity, Memory(*TINY, rows)])
    assert "By the peak alone, static ÷ dynamic is 0.5× here, over 1 cell" in said
    assert claimed._peaks([]) == []


def right():
    return ParityRow("ok", None, 0.0, 0.0, 1e-4)


def timed(seconds):
    return TimeRow("ok", None, blocks=[seconds] * 3)


# The whole way


def go(directory: Path, **options):
    settings = Settings(processes=1, only="tiny_mlp", frameworks=["toy"], **options)

    def execute(job, _timeout):
        ours = job.mode is None and job.kind != "parity"
        return perform(Job("environment") if ours else replace(job, budget=BUDGET))

    return stages.run(directory, settings, Reporter(), execute=execute)


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(frameworks, "_FRAMEWORKS", {"toy": "tests.helpers.toy_framework:Toy"})
        frameworks.find_engine.cache_clear()
        yield go(tmp_path_factory.mktemp("run") / "run")
    frameworks.find_engine.cache_clear()


def test_a_run_writes_verdicts_on_frameworks_beside_ours(ran):
    (found,) = json.loads((ran.directory / results.FRAMEWORKS).read_text())
    assert found["framework"] == "toy"
    assert [one["claim"] for one in found["agreement"]] == list(CLAIMS)
    kept = [r for r in results.read(ran.directory / results.RESULTS) if isinstance(r, Time)]
    assert [(r.process, r.cache, r.mode) for r in kept] == [(0, "cold", "toy-jit")] + [
        (p, "warm", "toy-jit") for p in (1, 2, 3)
    ]
    assert not (ran.directory / stage.FOLDER).exists()


def test_the_report_has_a_section_on_them(ran):
    page, text = ((ran.directory / name).read_text() for name in ("report.html", "report.md"))
    assert 'id="frameworks"' in page
    assert "## Other frameworks" in text
    assert "| Toy | tiny\\_mlp (small) | toy-jit | ok |" in text or "| Toy | tiny_mlp (small) | toy-jit | ok |" in text
    assert section.frameworks_section(()) is None


def test_the_report_says_how_it_is_made_again_and_lists_the_jobs_that_were_lost(ran):
    text = (ran.directory / "report.md").read_text()
    assert "graphduel run --quick --only tiny_mlp --frameworks toy --out" in text
    lost = Failure(JobName("time", *TINY, process=0, mode="toy-jit"), "it died", mode="toy-jit")
    assert of_ours([lost]) == [lost]


def test_a_framework_that_is_not_installed_is_left_out_with_how_to_install_it(tmp_path, monkeypatch):
    monkeypatch.setattr(toy_framework.Toy, "module", "no_such_module")
    notices, started = [], []
    monkeypatch.setattr(Reporter, "notice", lambda _, text: notices.append(text))
    runner = SimpleNamespace(reporter=Reporter(), journal=Journal(tmp_path / results.RESULTS))
    runner.run = lambda stages: started.extend(job for each in stages for job in each.jobs)
    stage.measure(runner, Settings(frameworks=["toy"]), [TINY])
    assert (notices, started) == (["left out: Toy is not installed; pip install 'numpy>=1'"], [])


def test_an_unknown_framework_is_a_usage_error():
    found = CliRunner().invoke(graphduel, ["run", "--frameworks", "toi"])
    assert found.exit_code == 2
    assert "no engine is named 'toi'; did you mean 'toy'?" in found.output
