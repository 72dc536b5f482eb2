"""What a run does, in which order, and how it goes on after failures."""

import json
from collections import Counter
from dataclasses import replace

import pytest

from compare.errors import ResultsError, UnknownNameError
from compare.plans import jobs
from compare.plans import settings as presets
from compare.plans.settings import Cell, Settings
from compare.records import results
from compare.records.job import Job
from compare.run import runner
from compare.run.progress import Reporter
from compare.suite import stages as runs
from tests.helpers.fake_run import (
    OK,
    SETTINGS,
    TIMED,
    Machine,
    Waiting,
    environment,
    failing,
    go,
    kinds,
    parity_with,
    raw,
)
from tests.helpers.records import lines, typed

pytestmark = pytest.mark.usefixtures("two_workloads")

# What runs, and in which order


def overrun(job):
    return failing(job) | {"error": "the worker ran longer than 90 s and was ended", "overran": True}


def test_a_job_that_was_ended_at_its_limit_is_tried_once_more_when_the_others_are_done(tmp_path):
    late = []

    def busy(job):
        if job.process == 0 and not late:
            late.append(job.label)
            return overrun(job)
        return raw(job)

    outcome, machine = go(tmp_path, Machine(time_tiny=busy))
    assert [label for label in machine.labels if label.startswith("time ")] == [
        *(f"time {cell}/small, process {process}" for process in range(3) for cell in ("tiny", "stray")),
        "time tiny/small, process 0",
    ]
    assert (outcome.exit_code, outcome.failures, outcome.overruns) == (0, (), ())
    assert kinds(tmp_path).count("time") == 6
    assert "failure" not in kinds(tmp_path)


def test_a_job_that_overruns_twice_fails_the_run_only_where_a_verdict_needs_it(tmp_path):
    last = lambda job: overrun(job) if job.process == 2 else raw(job)  # noqa: E731
    outcome, machine = go(tmp_path / "some", Machine(time_tiny=last))
    assert machine.labels.count("time tiny/small, process 2") == 2
    assert outcome.exit_code == 0
    assert outcome.overruns == ("time tiny small 2: the worker ran longer than 90 s and was ended",)
    assert go(tmp_path / "some", resume=True)[1].labels == ["time tiny/small, process 2"]
    outcome, _ = go(tmp_path / "all", Machine(gradients=overrun), Settings(processes=1))
    assert outcome.exit_code == 1
    assert outcome.failures == ("gradients C2: the worker ran longer than 90 s and was ended",)


def test_the_limit_of_a_job_grows_with_the_slowness_of_the_machine_and_doubles_when_it_is_tried_again(tmp_path):
    limits = {}
    reporter, machine = Reporter(), Machine(time_tiny=overrun)

    def execute(job, limit):
        reporter.pace.took(40.0, Job("parity"))  # 1.2 s are typical
        limits.setdefault(job.label, []).append(limit)
        return machine(job, limit)

    runs.run(tmp_path, SETTINGS, reporter, execute=execute)
    first, again = limits["time tiny/small, process 0"]
    assert first > 5 * SETTINGS.limits.timeout
    assert again > first


def test_parity_comes_first_then_each_process_over_all_cells_then_memory(tmp_path):
    outcome, machine = go(tmp_path / "a" / "b")
    labels, gates, memories = machine.labels[2:-4], machine.labels[:2], machine.labels[-4:]
    assert set(gates) == {"parity tiny/small", "parity stray/small"}  # side by side, on several cores
    assert labels == [
        "time tiny/small, process 0",
        "time stray/small, process 0",
        "time tiny/small, process 1",
        "time stray/small, process 1",
        "time tiny/small, process 2",
        "time stray/small, process 2",
    ]
    assert Counter(memories) == {"memory tiny/small": 2, "memory stray/small": 2}
    assert outcome.exit_code == 0
    assert kinds(outcome.directory) == ["run", *["parity"] * 2, *["time"] * 6, *["memory"] * 2]


def test_timed_jobs_start_ahead_one_for_each_core_unless_they_have_records(tmp_path, monkeypatch):
    machine = Machine()
    waiting = Waiting(machine)
    monkeypatch.setattr(runs, "WaitingWorkers", lambda: waiting)
    monkeypatch.setattr(runner, "affinity", lambda: [0, 1])
    runs.run(tmp_path, SETTINGS, Reporter())
    pairs = [[f"time {cell}/small, process {process}" for cell in ("tiny", "stray")] for process in range(3)]
    assert list(filter(None, waiting.started)) == pairs
    assert waiting.started[-1] == []
    waiting.started.clear()
    written = (tmp_path / results.RESULTS).read_text("utf-8").splitlines(keepends=True)
    lost = {"workload": "stray", "process": 1}
    kept = [line for line in written if not lost.items() <= json.loads(line).items()]
    (tmp_path / results.RESULTS).write_text("".join(kept), "utf-8")
    machine.jobs.clear()
    runs.run(tmp_path, SETTINGS, Reporter(), resume=True)
    assert list(filter(None, waiting.started)) == [["time stray/small, process 1"]]


def test_checks_of_claims_run_unless_cells_are_chosen(tmp_path):
    _, machine = go(tmp_path, settings=Settings(processes=1))
    assert machine.labels[:3] == ["program C1", "prototype C7", "edit C8"]  # timed, and so one by one
    assert {"gradients C2", "fault C3"} < set(machine.labels)
    assert jobs.check_jobs(SETTINGS) == []


def test_the_tables_are_measured_once_unless_cells_are_chosen(tmp_path):
    settings = Settings(processes=1)
    _, machine = go(tmp_path, settings=settings)
    tables = [job.label for job in jobs.table_jobs(settings)]
    assert "lengths rnn_text/small, lines, process 0" in tables
    assert "crossover coarse, process 2" in tables
    assert [label for label in machine.labels if label in tables] == tables
    assert len({job.name for job in jobs.table_jobs(settings)}) == len(tables)
    assert list(jobs.table_jobs(SETTINGS)) == []


def test_the_memory_of_each_mode_is_measured_in_its_own_process_and_merged(tmp_path):
    _, machine = go(tmp_path)
    assert [job.modes for job in machine.jobs if job.label == "memory tiny/small"] == [("dynamic",), ("static-exact",)]
    record = next(r for r in lines(tmp_path / results.RESULTS) if r["kind"] == "memory")
    assert list(record["arms"]) == ["dynamic", "static-exact"]


def test_the_first_line_tells_settings_and_environment(tmp_path):
    go(tmp_path)
    header = lines(tmp_path / results.RESULTS)[0]
    assert (
        header["settings"] == {"preset": "quick", "seed": 0, "processes": 3, "only": "[ts]*y*"}
        or header["settings"] == SETTINGS.to_dict()
    )
    assert header["environment"]["cpu"] == "one"
    assert header["at"].endswith("+00:00")


def test_verdicts_are_written_and_returned(tmp_path):
    outcome, _ = go(tmp_path)
    assert json.loads((tmp_path / results.VERDICTS).read_text()) == [v.to_dict() for v in outcome.verdicts]
    assert [v.claim.id for v in outcome.verdicts] == [f"C{i}" for i in range(1, 9)]


@pytest.mark.parametrize(
    ("only", "found"),
    [
        ("tiny", ["tiny/small"]),
        ("tiny/*", ["tiny/small"]),
        ("*/small", ["tiny/small", "stray/small"]),
        (None, ["tiny/small", "stray/small"]),
    ],
)
def test_only_matches_workloads_and_cells(only, found):
    assert list(map(str, jobs.cells(Settings(only=only)))) == found


@pytest.mark.parametrize("only", ["tinny", "tiny/large", ""])
def test_a_glob_that_matches_nothing_is_an_error_before_anything_is_made(tmp_path, only):
    with pytest.raises(UnknownNameError, match="matches no cell of a quick run; ") as caught:
        go(tmp_path / "new", settings=Settings(only=only))
    assert caught.value.exit_code == 2
    assert not (tmp_path / "new").exists()


def test_a_full_run_measures_every_size():
    assert list(map(str, jobs.cells(Settings("full", only="tiny")))) == ["tiny/small", "tiny/medium", "tiny/large"]


# The gate


def test_an_mode_that_disagrees_is_not_timed_and_its_row_says_why(tmp_path):
    outcome, machine = go(tmp_path, Machine(parity_tiny=parity_with("static-exact", "disagree")))
    assert all(job.modes == ("dynamic",) for job in machine.jobs if job.workload == "tiny" and job.kind != "parity")
    record = next(r for r in lines(tmp_path / results.RESULTS) if r["kind"] == "time")
    assert record["arms"]["static-exact"] == {"status": "disagree", "reason": "because"}
    assert outcome.exit_code == 4
    assert outcome.disagreements == ("tiny/small, static-exact: because",)


def test_nothing_is_timed_when_the_reference_is_wrong(tmp_path):
    _, machine = go(tmp_path, Machine(parity_tiny=parity_with("dynamic", "disagree")))
    assert [job.kind for job in machine.jobs if job.workload == "tiny"] == ["parity"]


def test_a_refusal_is_a_result_and_no_failure(tmp_path):
    outcome, _ = go(tmp_path, Machine(parity_tiny=parity_with("static-exact", "unsupported")))
    assert outcome.exit_code == 0


def test_an_mode_that_breaks_at_the_gate_is_a_failure(tmp_path):
    outcome, _ = go(tmp_path, Machine(parity_tiny=parity_with("static-exact", "failed")))
    assert outcome.exit_code == 1


# Failures and going on


def test_one_failed_cell_does_not_end_the_run(tmp_path):
    outcome, machine = go(tmp_path, Machine(time_tiny=failing))
    assert len(machine.jobs) == 12
    assert outcome.exit_code == 1
    assert outcome.failures[0] == "time tiny small 0: the worker died of SIGSEGV"
    assert kinds(tmp_path).count("failure") == 3


def test_a_failure_at_the_gate_stops_its_cell_alone(tmp_path):
    _, machine = go(tmp_path, Machine(parity_tiny=failing))
    assert [job.kind for job in machine.jobs if job.workload == "tiny"] == ["parity"]
    assert sum(job.workload == "stray" for job in machine.jobs) == 6


def test_nothing_measured_has_its_own_code(tmp_path):
    outcome, _ = go(tmp_path, Machine(parity=failing))
    assert outcome.exit_code == 5


def test_a_failed_job_is_tried_again_on_resume_and_then_fine(tmp_path):
    before, _ = go(tmp_path, Machine(time_tiny=failing))
    assert len(results.lost_jobs(before.records)) == 3
    outcome, machine = go(tmp_path, resume=True)
    assert machine.labels == [f"time tiny/small, process {i}" for i in range(3)]
    assert outcome.exit_code == 0
    assert results.lost_jobs(outcome.records) == []  # what a later start has made good is no limit of the run


@pytest.mark.parametrize("kind", ["time", "memory", "parity"])
def test_a_failed_job_of_ours_is_tried_again_after_frameworks_have_passed_their_gates(tmp_path, kind):
    _, stopped = go(tmp_path, Machine(**{f"{kind}_tiny": failing}))
    theirs = dict.fromkeys(("torch-eager", "torch-compile"), OK)
    for cell in ("tiny", "stray"):
        gate = raw(Job("parity", workload=cell, size="small", mode="torch-compile")) | {"arms": theirs}
        results.append(tmp_path / results.RESULTS, typed(gate))
    outcome, machine = go(tmp_path, resume=True)
    again = {label for label in stopped.labels if label.startswith(f"{kind} tiny")}
    assert {label for label in machine.labels if label.startswith(kind)} == again != set()
    assert outcome.exit_code == 0
    assert (
        sum("dynamic" in record["arms"] for record in lines(tmp_path / results.RESULTS) if record["kind"] == "time")
        == 6
    )


def test_a_stopped_run_goes_on_where_it_stopped(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        go(tmp_path, Machine(time_stray=KeyboardInterrupt))
    assert kinds(tmp_path) == ["run", "parity", "parity", "time"]
    _, machine = go(tmp_path, resume=True)
    assert machine.labels[:2] == ["time stray/small, process 0", "time tiny/small, process 1"]
    assert kinds(tmp_path).count("time") == 6


def test_a_cut_off_line_is_measured_again_and_the_file_is_clean(tmp_path):
    go(tmp_path)
    path = tmp_path / results.RESULTS
    path.write_bytes(path.read_bytes()[:-20])
    _, machine = go(tmp_path, resume=True)
    assert machine.labels == ["memory stray/small"] * 2
    assert kinds(tmp_path).count("memory") == 2


@pytest.mark.parametrize(
    ("other", "told"), [({"processes": 4}, "processes 3, not 4"), ({"only": None}, "only tiny, not None")]
)
def test_the_settings_of_a_run_are_its_own(tmp_path, other, told):
    first = Settings(processes=3, only="tiny")
    go(tmp_path, settings=first)
    with pytest.raises(ResultsError, match=f"is a run with {told}; resume it with that"):
        go(tmp_path, settings=replace(first, **other), resume=True)
    assert go(tmp_path, settings=first, resume=True)[1].labels == []


def test_resuming_an_empty_folder_is_a_new_run(tmp_path):
    assert go(tmp_path, resume=True)[0].exit_code == 0


def test_another_machine_is_noticed_on_resume(tmp_path):
    go(tmp_path)
    heard = []
    reporter = Reporter()
    reporter.notice = heard.append
    machine = Machine()
    other = environment("two")
    runs.run(
        tmp_path, SETTINGS, reporter, resume=True,
        execute=lambda job, timeout: other if job.kind == "environment" else machine(job, timeout),
    )  # fmt: skip
    assert heard == ["resumed with another cpu: one, two"]


# More processes


def noisy(job):
    """Ratios that differ between processes by more than the smallest effect of interest."""
    ratio = 1 + 0.1 * (job.process % 2)
    rows = {mode: {**TIMED, "blocks": [0.1 * (ratio if mode == "dynamic" else 1)] * 4} for mode in job.modes}
    return {**raw(job), "arms": rows}


def test_a_cell_with_a_wide_interval_gets_more_processes(tmp_path):
    _, machine = go(tmp_path, Machine(time_tiny=noisy))
    processes = Counter((job.workload, job.process) for job in machine.jobs if job.kind == "time")
    assert {process for workload, process in processes if workload == "tiny"} == set(range(SETTINGS.limits.most))
    assert {process for workload, process in processes if workload == "stray"} == {0, 1, 2}
    assert set(processes.values()) == {1}


def test_a_cell_of_too_few_processes_for_an_interval_gets_more(tmp_path):
    _, machine = go(tmp_path, settings=Settings(processes=1, only="tiny"))
    assert [job.process for job in machine.jobs if job.kind == "time"] == [0, 1, 2]


def test_a_cell_gets_more_processes_on_resume_though_a_framework_has_timed_it(tmp_path):
    settings = Settings(processes=1, only="tiny")
    go(tmp_path, Machine(time_tiny=failing), settings)
    theirs = ("torch-eager", "torch-compile")
    for kind, row in (("parity", OK), ("time", TIMED)):
        for process in range(3 if kind == "time" else 1):
            job = Job(kind, workload="tiny", size="small", process=process, mode="torch-compile", modes=theirs)
            record = raw(job) | {"eager": "torch-eager", "arms": dict.fromkeys(theirs, row)}
            results.append(tmp_path / results.RESULTS, typed(record))
    _, machine = go(tmp_path, settings=settings, resume=True)
    assert [job.process for job in machine.jobs if job.kind == "time"] == [0, 1, 2]


def test_more_processes_come_before_memory_and_only_while_time_lasts(tmp_path, monkeypatch):
    limits = replace(presets.PRESETS["quick"], more_seconds=-1.0)
    monkeypatch.setattr(presets, "PRESETS", {"quick": limits})
    _, machine = go(tmp_path, Machine(time_tiny=noisy))
    assert sum(job.kind == "time" for job in machine.jobs) == 6


def test_the_seconds_of_a_run_are_shared_by_its_processes():
    chosen = [Cell("tiny", "small")] * 30
    limits = SETTINGS.limits
    first, *_ = jobs.time_jobs(chosen, SETTINGS)
    assert first.budget.seconds == min(limits.budget.seconds, limits.seconds / 90)
    alone, *_ = jobs.time_jobs(chosen[:1], SETTINGS)
    assert alone.budget.seconds == limits.budget.seconds
