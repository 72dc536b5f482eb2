"""Threads of a user's own step: what is asked, the plan, the environments, and the verdict over processes."""

import json
from dataclasses import replace
from itertools import pairwise
from math import exp
from random import Random

import numpy as np
import pytest

import compare
from compare import engines
from compare.claims.evidence import BUSY, cells, steady
from compare.claims.threads import at_threads
from compare.claims.verdict import MeasuredFunction, verdict
from compare.engines.process import Neighbours
from compare.errors import InputsError
from compare.gate.rules import exit_code, gate, parse_rule
from compare.instruments.rounds import NAME, clock_name
from compare.own import workers
from compare.own.result import Result
from compare.plans.settings import Settings
from compare.records import results
from compare.records.cells import Time
from compare.records.job import Budget, Job
from compare.records.own import merge_records
from compare.records.record import Cell, options_of, records_of
from compare.report import show
from compare.report.formats import steady_processes
from compare.run import environment, executors, processes
from compare.selftest import Trials, leak_jobs, own_jobs, speed_jobs
from compare.stats import student_quantile, typical
from tests.helpers import own_functions as own
from tests.helpers.claim_records import parity
from tests.helpers.plans import plan_of
from tests.helpers.records import typed

MODES = ("dynamic", "static-exact")


# What is asked


@pytest.mark.parametrize(
    ("asked", "numbers"),
    [
        (1, (1,)),
        ("2", (2,)),
        ("1,2", (1, 2)),
        (" 2 , 1,2", (2, 1)),
        ([4, 1], (4, 1)),
        ("auto", (3,)),
        ("1,auto", (1, 3)),
    ],
)
def test_numbers_of_threads_are_read(monkeypatch, asked, numbers):
    monkeypatch.setattr(environment, "usual_threads", lambda: 3)
    assert environment.thread_numbers(asked) == numbers


@pytest.mark.parametrize("asked", [0, -1, "0", "-1", "", "two", "1,,2", "1.5", "²", [], "1,0"])
def test_what_is_no_number_of_threads_is_refused_with_what_is_allowed(asked):
    with pytest.raises(InputsError, match=r"write auto, or how many: 2, or 1,2 for an answer for each"):
        environment.thread_numbers(asked)


def test_auto_is_what_a_process_of_the_users_would_have(monkeypatch):
    monkeypatch.setattr(environment, "affinity", lambda: [0, 2, 5])
    monkeypatch.setenv("OMP_NUM_THREADS", "2,1")
    assert environment.usual_threads() == 2
    for unsaid in ("", "0", "many"):
        monkeypatch.setenv("OMP_NUM_THREADS", unsaid)
        assert environment.usual_threads() == 3
    monkeypatch.setattr(environment, "affinity", lambda: None)  # a system that does not tell
    assert environment.usual_threads() >= 1


def test_more_threads_than_cores_are_warned_of(monkeypatch):
    monkeypatch.setattr(environment, "affinity", lambda: [0, 1])
    assert not environment.too_many(2)
    assert environment.too_many(3) == "3 threads share 2 cores, and wait for one another"


# The plan


@pytest.fixture
def plan():
    return plan_of("graphduel", "f.py:loss", "", ["dynamic", "static", "static-symbolic"], processes=4)


def test_on_one_thread_modes_share_a_process_and_on_several_none_do(plan):
    modes, several = plan.subject.modes, plan.within(threads=2)
    assert [job.modes for job in plan.times(modes)] == [modes] * 4
    assert [sorted(job.modes for job in several.times(modes) if job.process == n) for n in (1, 2, 3, 4)] == [
        sorted((mode,) for mode in modes)
    ] * 4
    assert {job.threads for job in several.times(modes)} == {2}
    assert {job.threads for job in plan.times(modes)} == {1}
    assert len({job.title for job in several.times(modes)}) == 12


def test_modes_alternate_in_time_and_each_comes_first(plan):
    jobs = plan.within(threads=2).times(plan.subject.modes)
    firsts = [job.modes for before, job in pairwise([None, *jobs]) if before is None or before.process != job.process]
    assert set(firsts[:3]) == {(mode,) for mode in plan.subject.modes}


def test_the_gate_has_the_threads_that_are_timed_and_the_clocks_of_a_thread_have_one(plan):
    several = plan.within(threads=2)
    assert [job.threads for job in several.first()] == [2]
    assert several.job("memory", MODES).threads == several.job("lines", MODES).threads == 1


@pytest.mark.usefixtures("toy")
def test_in_a_framework_the_first_process_compares_each_mode_with_the_base_and_the_others_have_one_mode():
    plan = plan_of("toy", "f.py:loss", threads=2, processes=3)
    assert [job.modes for job in plan.first()] == [plan.subject.modes]
    assert {len(job.modes) for job in plan.times(plan.subject.modes)} == {1}


def test_the_key_of_a_resumed_comparison_and_its_folder_have_the_threads(plan):
    several = plan.within(threads=2)
    assert workers._identity(plan) != workers._identity(several)
    assert plan.from_dict(several.to_dict()).situation.threads == 2
    assert plan.situation.place("torch") == "torch"
    assert several.situation.place("torch") == "torch-2"


def test_the_clock_of_several_threads_is_the_wall(plan):
    assert plan.clock_name == NAME
    assert plan.within(threads=2).clock_name == "wall"
    assert clock_name("cuda", has_events=True, threads=2) == "events"


def test_rules_judge_one_answer(plan):
    with pytest.raises(InputsError, match="give one number of --threads"):
        gate(["static > 1.05"], None, None, [plan, plan.within(threads=2)])


# The process


def test_a_worker_has_the_variables_and_the_cores_of_its_threads():
    variables = processes.worker_environment(Job("environment", threads=2))
    assert {variables[name] for name in environment.THREAD_VARIABLES} == {"2"}
    answer = processes.run_job(Job("environment", threads=2), 60)
    assert answer.threads == 2
    assert len(answer.environment.affinity) == min(2, len(environment.affinity()))


@pytest.mark.parametrize(
    ("engine", "one", "two"),
    [
        ("torch", ("OMP_NUM_THREADS", "1"), ("OMP_NUM_THREADS", "2")),
        ("torch", ("MKL_NUM_THREADS", "1"), ("MKL_NUM_THREADS", "2")),
        ("tensorflow", ("OMP_NUM_THREADS", "1"), ("OMP_NUM_THREADS", "2")),
        (
            "jax",
            ("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"),
            ("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=true intra_op_parallelism_threads=2"),
        ),
    ],
)
def test_an_adapter_prepares_a_process_with_so_many_threads(tmp_path, engine, one, two):
    adapter = engines.find_engine(engine)
    assert adapter.environment(tmp_path)[one[0]] == one[1]
    assert adapter.environment(tmp_path, "cpu", 2)[two[0]] == two[1]


def test_how_inductor_compiles_is_the_users_to_say(tmp_path, monkeypatch):
    adapter, name = engines.find_engine("torch"), "TORCHINDUCTOR_COMPILE_THREADS"
    monkeypatch.delenv(name, raising=False)
    assert [adapter.environment(tmp_path, "cpu", threads)[name] for threads in (1, 2)] == ["1", "2"]
    assert adapter.environment(tmp_path, "cpu", 2)["TORCH_WARM_POOL"] == "0"
    assert "TORCH_WARM_POOL" not in adapter.environment(tmp_path, "cuda", 2)
    assert not adapter.said_of_compiling
    monkeypatch.setenv(name, "8")
    assert adapter.environment(tmp_path)[name] == "8"
    assert adapter.said_of_compiling == "Inductor compiles on 8 threads, as TORCHINDUCTOR_COMPILE_THREADS says"


def test_native_code_has_the_threads_of_the_engine(monkeypatch):
    from compare.engines.graphduel import steps

    asked = []
    monkeypatch.setattr(steps, "native", lambda case, threads, **_: asked.append(threads))
    ours = engines.find_engine("graphduel")
    monkeypatch.setattr(ours, "threads", 3)
    steps.build(ours.traits("static-native"), None)
    assert asked == [3]


def test_neighbours_are_those_who_have_the_cores():
    neighbours = Neighbours()
    np.linalg.svd(np.random.default_rng(0).random((300, 300)))
    share = neighbours.share()
    assert share is None or 0 <= share <= 1


def test_frameworks_that_keep_their_threads_refuse_others_in_this_process():
    jax = pytest.importorskip("jax")
    with pytest.raises(InputsError, match="JAX has the threads that it began with here; save the function in a file"):
        compare.compare(jax.numpy.sum, [(jax.numpy.ones(3),)], framework="jax", threads=2)


# The verdict


def of_processes(ratio, *, processes=5, spread=0.03, drift=0.0, seed=0, threads=2, neighbours=0.0, base=1e-3, **more):
    """Records of modes apart: in each process a level of its own (`spread`), and a slower machine as time goes by."""
    random, records = Random(seed), [parity("f", MODES, "given")]
    for process in range(1, processes + 1):
        slower = exp(drift * process)
        for mode, seconds in zip(MODES, (base, base * ratio), strict=True):
            level = seconds * slower * exp(random.gauss(0, spread))
            blocks = [level * exp(random.gauss(0, 0.01)) for _ in range(8 + process % 3)]
            row = {"status": "ok", "reason": None, "first": seconds, "blocks": blocks, "busy": 2 * level, **more}
            row |= {"neighbours": neighbours[process - 1] if isinstance(neighbours, list) else neighbours}
            records.append(
                {"kind": "time", "workload": "f", "size": "given", "process": process, "threads": threads,
                 "clock": "wall", "arms": {mode: row}, "startup": 2.0}
            )  # fmt: skip
    return typed(records)


def ratio_of(records):
    (cell,) = cells(records, Time)
    return cell.ratio("static-exact", "dynamic", steady)


def test_the_interval_over_processes_holds_a_known_ratio():
    held = [ratio_of(of_processes(1.3, seed=seed)) for seed in range(200)]
    assert sum(ratio.low <= 1.3 <= ratio.high for ratio in held) >= 184  # 95%, less three deviations
    assert np.median([ratio.estimate for ratio in held]) == pytest.approx(1.3, rel=0.01)


def test_the_interval_is_that_of_paired_means_of_processes():
    (cell,) = cells(of_processes(0.8), Time)
    logs = [np.log(typical(row["static-exact"].blocks) / typical(row["dynamic"].blocks)) for row in cell.processes]
    half = student_quantile(4, 0.025) * np.std(logs, ddof=1) / 5**0.5
    ratio = ratio_of(of_processes(0.8))
    assert np.log(ratio.estimate) == pytest.approx(np.mean(logs))
    assert np.log(ratio.high / ratio.low) / 2 == pytest.approx(half, rel=0.15)


def test_processes_are_paired_by_their_number_so_that_a_machine_that_slows_down_meets_both_modes():
    drifting = ratio_of(of_processes(1.2, drift=0.3, spread=0.01))
    assert drifting.high / drifting.low < 1.06
    assert drifting.low <= 1.2 <= drifting.high


def test_fewer_than_three_pairs_have_no_interval():
    assert not ratio_of(of_processes(1.2, processes=2)).bounded


def test_a_tie_is_no_answer_and_a_clear_ratio_is_one():
    tie, won, lost = (verdict(of_processes(ratio, base=1e-2)) for ratio in (1.0, 0.7, 1.4))
    assert tie.sentence.startswith("Cannot tell whether a mode is faster than dynamic")
    assert won.sentence.startswith("Compile it with static-exact")
    assert lost.sentence.startswith("Stay dynamic.")


def test_where_the_interval_holds_1_the_answer_says_what_more_processes_would_cost():
    records = of_processes(1.0, spread=0.15)
    found = verdict(records)
    assert not found.answered
    few, many = "--processes ", " would show a difference of 5%, in about "
    more = int(found.sentence.partition(few)[2].partition(many)[0])
    assert more > 5
    spent = 2 * (more - 5) * 2.0  # two modes, whose processes take two seconds to start
    assert float(found.sentence.partition(many)[2].split()[0]) == pytest.approx(spent, rel=0.3)


def test_a_mode_that_the_gate_refuses_costs_the_answer_on_the_others_nothing():
    first, *times = of_processes(1.0, spread=0.15)
    refusal = {
        "status": "disagree",
        "reason": "off by 2",
        "output_error": 2.0,
        "gradient_error": None,
        "tolerance": 1e-4,
    }
    (other,) = typed([{**parity("f", MODES, "given"), "agree": False, "arms": {"static-symbolic": refusal}}])
    merged = list(merge_records([first, other, *times]))
    rows = [record.modes["static-symbolic"] for record in records_of(merged, Time)]
    assert [(row.status, row.blocks, row.calls_per_block) for row in rows] == [("disagree", [], 0)] * 10
    assert " would show a difference of 5%" in verdict(merged).sentence


@pytest.mark.parametrize("ratio", [1.0, 1.4])
def test_a_busy_machine_is_named_first_and_there_is_no_ratio(ratio):
    found = verdict(of_processes(ratio, neighbours=0.43))
    assert found.sentence.startswith("The machine was busy: other processes had 43% of the cores while 2 threads")
    assert "10 of 10 processes do not count" in found.sentence
    assert (found.of_base, found.answered, found.steady.values) == ({}, False, {})
    assert Result("f", MODES, (start(2), *of_processes(ratio, neighbours=0.43))).exit_code == 3


def test_a_process_that_was_disturbed_does_not_count_and_the_others_do():
    records = of_processes(1.4, processes=6, neighbours=[0.0, 0.5, 0.0, BUSY, 0.0, 0.0])
    (cell,) = cells(records, Time)
    assert len([row for row in cell.of("dynamic") if steady(row)]) == 5
    found = verdict(records)
    assert found.sentence.startswith("Stay dynamic.")
    assert found.sentence.endswith("Other processes had 50% of the cores in 2 of 12 processes, which do not count.")
    assert found.of_base["static-exact"].low > 1


def test_on_one_thread_neighbours_do_not_matter():
    (record,) = records_of(of_processes(1.0, processes=1, threads=1), Time)[:1]
    assert record.modes["dynamic"].neighbours == 0.0
    assert len(cells(of_processes(1.0, threads=1), Time)[0].processes) == 10  # nothing is joined by number


# Several numbers of threads


def start(*numbers):
    settings = {"preset": "own", "function": "f", "gradient": True, "inputs": 1, "where": show.WORKERS, "processes": 5}
    asked = [str(number) for number in numbers] if len(numbers) > 1 else numbers[0]
    line = {"kind": "run", "run": "1", "at": "", "settings": {**settings, "threads": asked}}
    (run,) = typed([{**line, "environment": {"python": "CPython 3.11.7", "numpy": "2.4.6"}}])
    return run


@pytest.fixture
def several():
    return Result("f", MODES, (start(1, 2), *of_processes(1.5, threads=1, busy=None), *of_processes(1.0, base=8e-4)))


def test_each_number_of_threads_has_columns_and_its_own_answer(several):
    head, *rows = show.table(several)
    assert head[:5] == ("mode", "1 thread", "÷ dynamic", "2 threads", "÷ dynamic")
    assert [row[0] for row in rows] == [*MODES]
    assert list(several.by_threads) == [1, 2]
    one, two = (measured.verdict for measured in several.by_threads.values())
    assert (one.steady.outcome, two.steady.leaders[0] in MODES) == ("wins", True)
    assert several.to_dict()["threads"][2]["sentence"] == two.sentence
    json.dumps(several.to_dict())


def test_where_the_answer_changes_with_the_threads_that_is_said(several):
    said = several.verdict.sentence
    assert said.startswith("The answer changes with the threads: with 1 thread, dynamic is 1.4")
    assert "; with 2 threads, " in said
    assert "With 1 thread: Stay dynamic." in said
    assert "With 2 threads: Cannot tell" in said
    alike = MeasuredFunction("f", MODES, (start(1, 2), *of_processes(1.5, threads=1), *of_processes(1.4, base=8e-4)))
    assert alike.verdict.sentence.startswith("The answer is the same with 1 thread and 2 threads.")


def test_records_of_one_number_are_those_and_what_is_made_on_one_thread_alone(several):
    two = at_threads(several.records, 2)
    assert {record.threads for record in records_of(two, Time)} == {2}
    assert len(two) == len(at_threads(several.records, 1)) == 13  # a start, two gates, and ten processes


def test_the_answer_says_where_it_holds(several):
    said = show.answer(several)
    assert said[1].startswith("With 1 thread: Stay dynamic.")
    assert said[3] == "This holds for 1 and 2 threads on the CPU, NumPy 2.4.6, Python 3.11.7."
    assert "on 2 threads a call is seconds on the wall, and each mode had processes of its own; of" in " ".join(
        str(several).split()
    )


# A real run


@pytest.mark.slow
def test_a_function_is_measured_in_this_process_on_two_threads():
    found = compare.compare(own.loss, own.inputs, threads="1,2", **own.QUICK)
    one, two = (records_of(measured.records, Time) for measured in found.by_threads.values())
    assert ({time.clock for time in one}, {time.clock for time in two}) == ({NAME}, {"wall"})
    assert all(len(time.modes) == 1 for time in two)
    assert all(row.busy for time in two for row in time.modes.values())
    assert environment.affinity() is None or len(environment.affinity()) >= 1
    assert "With 2 threads: " in found.verdict.sentence


def test_refusals_reach_the_user_of_the_function_too():
    with pytest.raises(InputsError, match="--threads 0 is not a number of threads"):
        compare.compare(own.loss, own.inputs, threads=0, **own.QUICK)


@pytest.mark.slow
def test_a_check_of_time_on_two_threads_is_by_the_wall_and_a_busy_machine_never_fails_it(monkeypatch):
    from compare.gate import checks

    twice = lambda x: own.square(own.square(x))  # noqa: E731
    calls = [(np.ones((64, 64), np.float32),)]
    monkeypatch.setattr(checks.Neighbours, "share", lambda _: 0.5)
    assert not checks.time_ratio(twice, own.square, calls, 0.1, 0, threads=2).bounded
    monkeypatch.setattr(checks.Neighbours, "share", lambda _: 0.0)
    clocks = []
    monkeypatch.setattr(checks, "perf_counter_ns", lambda: clocks.append(1) or len(clocks) * 10**7)
    checks.time_ratio(own.square, own.square, calls, 0.01, 0, threads=2)
    assert clocks


def test_workers_have_what_the_process_would_have_unless_threads_are_asked_for(monkeypatch):
    from compare.own import run

    asked = []
    monkeypatch.setattr(run, "here", lambda *arguments: asked.append((arguments[0].situation.threads, arguments[-1])))
    monkeypatch.setattr(run, "join_threads", lambda measures: [measure() for measure in measures])
    monkeypatch.setattr(run, "usual_threads", lambda: 3)
    for threads in (None, 1, 2):
        compare.compare(own.loss, own.inputs, threads=threads)
    assert asked == [(1, 3), (1, 0), (2, 0)]


def test_the_page_compares_all_numbers_and_says_on_which_its_claims_are(several, tmp_path):
    page = several.save(tmp_path / "out").with_suffix(".md").read_text("utf-8")
    assert "| mode | 1 thread | ÷ dynamic | 2 threads | ÷ dynamic |" in page
    assert "Claims, figures and sections below are on 1 thread." in page
    assert "| F1 Once warm, static is faster for this function | ✗ refuted | 1.47×" in page
    shared = results.read_shared(tmp_path / "out" / results.SHARED)
    told = [(each.model, each.threads, [*each.modes]) for each in shared.models]
    assert told == [
        ("f", 1, [*MODES]),
        ("f", 2, [*MODES]),
    ]
    assert "![A warm call by the number of threads](plots/threads.png)" in page
    drawn = (tmp_path / "out" / "plots" / "threads.svg").read_text("utf-8")
    assert all(f">{said}</text>" in drawn for said in ("threads", "time of a warm call", "1", "2", *MODES))


# A run of the suite


def suite_job(*modes, **fields):
    return Job("time", "rnn_text", "small", fields.pop("process", 1), source="x", modes=modes, **fields)


@pytest.mark.parametrize(
    ("job", "shared"),
    [
        (suite_job(*MODES), [MODES]),
        (suite_job(*MODES, threads=2), [("dynamic",), ("static-exact",)]),
        (suite_job(*MODES, threads=2, process=0), [("dynamic",), ("static-exact",)]),
        (suite_job(*MODES, threads=2, thin=5), [("dynamic",), ("static-exact",)]),
        (
            suite_job("torch-eager", "torch-compile", threads=2, mode="torch-compile"),
            [("torch-eager",), ("torch-compile",)],
        ),
        (
            suite_job("torch-eager", "torch-compile", threads=2, process=0),
            [("torch-eager", "torch-compile")],
        ),  # the gate
    ],
)
def test_a_job_of_the_suite_is_split_into_a_process_for_each_mode_and_its_record_has_all(job, shared):
    ran = []

    def execute(part, _):
        ran.append(part.modes)
        rows = {mode: {"status": "ok", "reason": None, "blocks": [1e-3]} for mode in part.modes}
        line = {"kind": "time", "workload": "rnn_text", "size": "small", "process": part.process, "arms": rows}
        (record,) = typed([{**line, "threads": part.threads, "beside": [{"kind": "environment"}]}])
        return record

    record = executors.measure_job(execute, job, 1.0)
    assert sorted(ran) == sorted(shared)
    assert tuple(record.modes) == job.modes
    assert len(record.beside) == len(shared)
    assert record.threads == job.threads


def test_the_jobs_of_a_run_that_time_have_its_threads():
    settings = Settings(threads=2)
    kinds = {kind: settings.job(kind, Cell("rnn_text", "small")).threads for kind in ("time", "memory", "ladder")}
    assert kinds == {"time": 2, "memory": 1, "ladder": 1}
    assert options_of(settings.to_dict())[-2:] == ["--threads", "2"]
    assert "--threads" not in options_of(Settings().to_dict())


# The selftest


def test_an_engine_against_itself_on_two_threads_gives_few_alarms():
    """The alarm of the selftest: an interval that excludes 1, of an engine and the same again."""
    ratios = [ratio_of(of_processes(1.0, seed=seed, spread=0.05, drift=0.05)) for seed in range(300)]
    assert sum(not ratio.low <= 1 <= ratio.high for ratio in ratios) <= 0.05 * 300 + 11  # three deviations of chance


def test_a_selftest_on_two_threads_has_a_process_for_each_mode_and_one_job_at_once_on_two_cores():
    trials = Trials(threads=2, at_once=2)
    job = next(speed_jobs(trials))
    assert (trials.side_by_side, job.threads) == (1, 2)
    assert executors.groups_of(job) == [(mode,) for mode in job.modes]
    assert {job.threads for job in leak_jobs(trials)} == {1}
    assert len(executors.groups_of(next(speed_jobs(Trials())))) == 1
    modes = [{job.modes[0] for job in (*speed_jobs(each), *own_jobs(each))} for each in (Trials(), trials)]
    assert modes == [{"static-exact", "dynamic"}, {"static-native", "dynamic"}]


@pytest.mark.slow
def test_a_trial_on_two_threads_has_the_threads_of_its_job():
    pytest.importorskip("llvmlite")
    (job,) = [job for job in own_jobs(Trials(own=1, threads=2)) if (job.size, job.process) == ("1 ms", 0)]
    record = processes.run_job(replace(job, modes=job.modes[:1], budget=Budget(seconds=0.05)), 60)
    assert (record.threads, record.modes[job.modes[0]].status) == (2, "ok"), record
    assert record.modes[job.modes[0]].busy > 0


def test_exports_tell_numbers_of_threads_apart_and_leave_disturbed_processes_out(several):
    assert sorted(steady_processes(several.records)) == [
        "f/given, dynamic", "f/given, dynamic, 2 threads", "f/given, static-exact", "f/given, static-exact, 2 threads",
    ]  # fmt: skip
    assert list(steady_processes(several.records, "dynamic")) == ["f/given", "f/given, 2 threads"]
    some = of_processes(1.4, processes=5, neighbours=[0.0, 0.5, 0.0, 0.0, 0.0])
    assert {len(each) for each in steady_processes(some).values()} == {4}


def test_a_rule_is_unclear_where_the_machine_was_busy_and_fails_no_build():
    rule = parse_rule("static > 1.05", MODES, {"static": "static-exact"})
    judgement = rule.judge(of_processes(1.4, neighbours=0.5))
    assert judgement.outcome == "unclear"
    assert judgement.measured == "static-exact ÷ dynamic was not measured; the machine was busy"
    assert exit_code(3, [judgement]) == 0
    assert rule.judge(of_processes(1.4)).outcome == "holds"
