"""The selftest: that what is injected has its size, and that the rates are what the records say."""

import json
import os
import re
from collections import Counter
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace as Namespace

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from compare import engines, selftest
from compare.claims.evidence import Evidence, steady
from compare.cli import checks
from compare.cli.command import graphduel
from compare.engines.graphduel.steps import GraphStep
from compare.errors import CompareError, NothingMeasuredError, ResultsError
from compare.records import results
from compare.records.job import Budget, Job
from compare.run.processes import run_job
from compare.run.progress import Reporter
from compare.run.worker import failure
from compare.selftest import trials
from compare.stats import proportion_interval
from tests.helpers import fake_workloads
from tests.helpers.fake_workloads import job
from tests.helpers.records import lines, plain, typed

ROOT = str(Path(__file__).resolve().parents[2])
BRIEF = Budget(3, 1, 1, 1e-5)


def injected(mode, monkeypatch):
    """A step with that change around an engine that counts its calls."""
    counted = Counter()
    case = fake_workloads.make_stream()

    def build(engine, case):
        return GraphStep(lambda *_: counted.update([engine]), case.params, case.examples)

    monkeypatch.setattr(engines, "step", build)
    return trials.build(mode, case), counted


# What is injected


@pytest.mark.parametrize(("change", "more"), [("+3%", 30), ("+5%", 50), ("+10%", 100), ("again", 0)])
def test_a_slowdown_is_that_share_of_the_same_work_counted_in_the_engine(change, more, monkeypatch):
    step, counted = injected(f"dynamic|{change}", monkeypatch)
    for _ in range(1000):
        step()
    assert counted["dynamic"] == step.runs == 1000 + more
    assert step.calls == 1000
    assert trials.size_of(f"dynamic|{change}") == pytest.approx(more / 1000)


@given(st.integers(0, 10_000), st.integers(1, 300))
def test_a_share_is_spread_evenly(share, calls):
    step = trials.InjectedStep(GraphStep(lambda *_: None, (), ()), share=share / 10_000)
    for _ in range(calls):
        step()
    assert step.calls == calls
    assert step.runs - calls == share * calls // 10_000


@given(st.integers(0, 10_000), st.integers(1, 100), st.integers(1, 7))
def test_each_example_is_repeated_in_that_share_of_its_calls(share, epochs, examples):
    ran, stream = Counter(), tuple((place,) for place in range(examples))
    plain_step = GraphStep(lambda _, place: ran.update([place]), (), stream)
    step = trials.InjectedStep(plain_step, share=share / 10_000)
    for _ in range(epochs):
        step.epoch()
    assert (step.calls, step.runs) == (epochs * examples, ran.total())
    for place in range(examples):
        assert 0 <= ran[place] - epochs - share * epochs // 10_000 <= 1


def test_examples_take_turns_to_be_repeated():
    ran = []
    plain_step = GraphStep(lambda _, length: ran.append(length), (), (("short",), ("long",)))
    step = trials.InjectedStep(plain_step, share=0.05)
    for _ in range(40):
        step.epoch()
    again = {index: one for index, (one, following) in enumerate(pairwise(ran)) if one == following}
    assert list(again.values()) == ["long", "short", "long", "short"]
    assert all(20 <= later - sooner <= 22 for sooner, later in pairwise(again)), again


def own_job(size):
    return Job("selftest time", trials.NAME, size, source=trials.SOURCE)


def test_a_longer_function_is_slowed_inside_each_call():
    step = trials.build("static-exact|+5%", trials.WORKLOAD.case("1 ms"), trials.divide_work(own_job("1 ms")))
    (slowed,), (plain_one,) = (
        one.executables() for one in (step, trials.build("static-exact", trials.WORKLOAD.case("1 ms")))
    )
    ops = [Counter(node.op.name for node in one.graph.nodes)["tanh"] for one in (slowed, plain_one)]
    assert ops == [105, 100]
    for _ in range(3):
        step(*step.examples[0])
    assert (step.calls, step.runs) == (300, 315)


def test_a_short_function_and_the_workloads_are_slowed_by_further_calls():
    assert trials.divide_work(own_job("5 us")) is None
    assert trials.divide_work(job("selftest time", "TINY")) is None


@pytest.mark.parametrize("kind", ["array", "object"])
def test_a_leak_keeps_its_bytes_once_an_epoch_and_is_measured(kind):
    record = selftest_memory("STREAM", "dynamic", f"dynamic|leak {kind} 65536")
    none, leak = (row.kept for row in record.modes.values())
    assert none < selftest.LEAST_LEAK
    assert leak - none == pytest.approx(65536, rel=0.05)


def selftest_memory(fake, *names):
    from compare.selftest import trials

    return trials.measure_memory(job("selftest memory", fake, modes=names, comparison=0, process=0))


def test_a_change_that_there_is_not_is_refused():
    with pytest.raises(ValueError, match="no change is called 'faster'; write again, "):
        trials.build("dynamic|faster", fake_workloads.make_tiny())


@pytest.mark.slow
def test_a_worker_times_it_as_it_times_a_run(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", ROOT)
    names = ("dynamic", "dynamic|again", "dynamic|+10%")
    quiet = run_job(job("time", "TINY", process=0, modes=("dynamic",), budget=BRIEF), 60)
    record = run_job(job("selftest time", "TINY", process=0, modes=names, budget=BRIEF, comparison=0), 60)
    assert tuple(record.modes) == names
    more = plain(record.modes["dynamic"]).keys() - plain(quiet.modes["dynamic"]).keys()
    assert more == {"calls", "runs"}
    row = record.modes["dynamic|+10%"]
    assert row.runs - row.calls == row.calls // 10


# Rates


def timed(comparison, ratios):
    """Two processes of a comparison in which each change takes so many times as long, give or take 1%."""

    def row(ratio, noise):
        return {
            "status": "ok",
            "reason": None,
            "blocks": [ratio * (1 + noise), ratio * (1 - noise)],
            "calls": 100,
            "runs": 105,
        }

    return [
        {
            "kind": "selftest time", "comparison": comparison, "workload": "w", "size": "small", "process": process,
            "arms": {"e": row(1, 0)} | {f"e|{change}": row(ratio, 0.01) for change, ratio in ratios.items()},
        }
        for process in range(3)
    ]  # fmt: skip


def held(comparison, *kept):
    modes = ("e", "e|leak array 65536", "e|leak array 1048576")
    place = {"kind": "selftest memory", "comparison": comparison, "workload": "w", "size": "small"}
    return [
        {**place, "process": i, "arms": {mode: {"status": "ok", "reason": None, "kept": each}}}
        for i, (mode, each) in enumerate(zip(modes, kept, strict=True))
    ]


def judged(*groups):
    found = selftest.judge(typed([record for group in groups for record in group]))
    return {**found, **{name: plain(found[name]) for name in ("speed", "leaks", "coverage")}}


def test_rates_are_counts_of_intervals_that_exclude_one():
    found = judged(
        timed(0, {"again": 1.0, "+5%": 1.05}),
        timed(1, {"again": 1.2, "+5%": 1.05}),
        timed(2, {"again": 0.8, "+5%": 1.0}),
        timed(3, {"again": 1.0, "+5%": 0.9}),
    )
    none, five = found["speed"]
    assert (none["injected"], none["found"], none["slower"], none["faster"], none["comparisons"]) == (0, 2, 1, 1, 4)
    assert (five["injected"], five["found"], five["slower"], five["faster"]) == (0.05, 2, 2, 1)
    assert five["interval"] == proportion_interval(2, 4).bounds()
    assert (none["interval_holds_truth"], five["interval_holds_truth"]) == (2, 2)
    assert five["counted"] == pytest.approx(0.05)
    assert none["sides"] == {"tie": 2, "above": 1, "below": 1}
    assert (none["met"], five["met"], found["outcome"]) == (False, False, "missed")


def test_the_interval_is_that_of_a_claim():
    group = timed(0, {"+5%": 1.05})
    cell = Evidence("w", "small", tuple(record.modes for record in typed(group)))
    assert judged(group)["speed"][0]["estimate"] == cell.ratio("e|+5%", "e", steady).estimate


def test_coverage_counts_the_intervals_that_hold_the_truth_by_their_processes():
    """The fourth process is off by so much that its interval is wide, and holds what three processes have missed."""
    missed = timed(0, {"again": 1.1})
    wide = [*missed, {**missed[0], "process": 3, "arms": {**missed[0]["arms"], "e|again": missed[0]["arms"]["e"]}}]
    right = [{**record, "comparison": 1} for record in timed(1, {"again": 1.0})]
    three, four = judged(wide, right)["coverage"]
    assert (three["processes"], three["comparisons"], three["held"]) == (3, 2, 1)
    assert (four["processes"], four["comparisons"], four["held"]) == (4, 1, 1)
    assert three["interval"] == proportion_interval(1, 2).bounds()
    assert four["half_width"] > three["half_width"] > 0
    assert three["met"] is None  # of two comparisons


@pytest.mark.slow
def test_coverage_has_a_target_where_there_are_comparisons_enough():
    many = [timed(i, {"again": 1.2 if i < 14 else 1.0}) for i in range(200)]
    assert judged(*many)["coverage"][0]["met"]  # 186 of 200: 93%
    assert not judged(*many, timed(200, {"again": 1.2}))["coverage"][0]["met"]


def test_leaks_are_found_by_what_an_epoch_leaves_behind():
    found = judged(held(0, 100, 66_000, 1_050_000), held(1, 200, 3_000, 1_050_000))
    none, small, large = found["leaks"]
    assert [none["found"], small["found"], large["found"]] == [0, 1, 2]
    assert [none["met"], small["met"], large["met"]] == [True, None, True]
    assert large["kept"] == 1_050_000


@pytest.mark.slow
def test_targets_are_those_of_the_whole_test():
    many = [timed(i, {"again": 1.2 if i < 10 else 1.0}) for i in range(200)]
    assert judged(*many)["speed"][0]["met"]  # 5%, and 9.0% at the end of its interval
    assert not judged(*many, timed(200, {"again": 1.2}), timed(201, {"again": 1.2}))["speed"][0]["met"]
    assert judged(*many[10:30])["speed"][0]["met"]  # 0 of 20: 16% at the end, which so few cannot lower


@pytest.mark.parametrize(
    ("half_width", "speed_met", "leak_met", "outcome"),
    [
        (0.01, True, None, "met"),
        (0.50, True, True, "met"),
        (0.01, False, True, "missed"),
        (0.03, False, True, "too noisy"),
        (0.03, False, False, "missed"),
    ],
)
def test_a_target_missed_with_wide_intervals_is_noise(half_width, speed_met, leak_met, outcome):
    assert selftest.outcome([Namespace(half_width=half_width, met=speed_met)], [Namespace(met=leak_met)]) == outcome


# The whole


ENVIRONMENT = {"cpu": "one", "cores": 2, "python": "CPython 3", "numpy": "2", "commit": None, "load": 0.5}


def machine(asked):
    return typed(answered(asked))


def answered(asked):
    head = {"kind": asked.kind, **asked.head}
    if asked.kind == "environment":
        return {"kind": "environment", "environment": ENVIRONMENT}
    fine = {"status": "ok", "reason": None}
    if asked.kind == "selftest memory":
        return {**head, "arms": {mode: {**fine, "kept": int(trials.size_of(mode)) + 100} for mode in asked.modes}}
    rows = {mode: {**fine, "blocks": [1 + trials.size_of(mode)] * 20, "calls": 1, "runs": 1} for mode in asked.modes}
    return {**head, "arms": rows}


@pytest.fixture
def go(tmp_path):
    def run(execute, resume=False, own=0, **plan):
        return plain(
            selftest.run(tmp_path, selftest.Trials(own=own, **plan), Reporter(), resume=resume, execute=execute)
        )

    return run


@pytest.mark.slow
def test_every_comparison_has_its_processes_on_both_cores_and_seeds_of_its_own(go, tmp_path):
    asked = []
    found = go(lambda j, timeout: asked.append(j) or machine(j), comparisons=7, leaks=4, at_once=2)
    timed_jobs = [j for j in asked if j.kind == "selftest time"]
    assert len(timed_jobs) == 7 * 6
    assert {j.lane for j in timed_jobs} == {0, 1}
    assert len({(j.seed + j.process) for j in timed_jobs}) == 42
    assert {(j.workload, j.modes[0]) for j in timed_jobs} == set(selftest.SUBJECTS)
    assert all(len(j.modes) == 1 for j in asked if j.kind == "selftest memory")
    assert [row["found"] for row in found["speed"]] == [0, 7, 7, 7]
    assert [row["found"] for row in found["leaks"]] == [0, 4, 4]
    assert (found["outcome"], found["whole"], found["failures"]) == ("met", False, [])
    assert typed(found)
    assert json.loads((tmp_path / "selftest.json").read_text()) == {"schema": 1, **found}
    records = lines(tmp_path / results.RESULTS)
    assert Counter(r["kind"] for r in records) == {"run": 1, "selftest time": 42, "selftest memory": 12}


def stopped_after(count):
    """A machine that is interrupted after so many jobs."""
    left = iter(range(count))

    def execute(asked, timeout):
        if asked.kind != "environment" and next(left, None) is None:
            raise KeyboardInterrupt
        return machine(asked)

    return execute


def test_a_selftest_that_was_stopped_goes_on_with_what_is_missing(go, tmp_path):
    plan = {"comparisons": 3, "leaks": 2, "at_once": 1}
    for start, count in enumerate((5, 0, 14)):
        with pytest.raises(KeyboardInterrupt):
            go(stopped_after(count), resume=start > 0, **plan)
    path, asked = tmp_path / results.RESULTS, []
    before = path.read_bytes()
    found = go(lambda j, timeout: asked.append(j) or machine(j), resume=True, **plan)
    assert path.read_bytes().startswith(before)
    keys = [typed(record).job for record in lines(path) if record["kind"] != "run"]
    assert len(keys) == len(set(keys)) == 3 * 6 + 2 * 3
    assert len([j for j in asked if j.kind != "environment"]) == 3 * 6 + 2 * 3 - 5 - 14
    assert [row["comparisons"] for row in found["speed"]] == [3] * 4
    assert [row["found"] for row in found["leaks"]] == [0, 2, 2]
    assert found["starts"] == 4
    assert "in 4 starts, the last of 1 minute," in selftest.markdown(typed(found))


def test_a_job_that_failed_is_run_again_and_then_no_failure(go):
    plan = {"comparisons": 1, "leaks": 1}
    first = go(lambda j, t: machine(j) if j.process != 1 else failure(j, "the worker died"), **plan)
    assert first["failures"] == ["the worker died"] * 2
    assert go(lambda j, t: machine(j), resume=True, **plan)["failures"] == []


def test_the_journal_of_another_seed_is_refused(go):
    go(lambda j, t: machine(j), comparisons=1, leaks=1)
    with pytest.raises(ResultsError, match="is a run with seed 0, not 3; resume it with that seed"):
        go(lambda j, t: machine(j), resume=True, comparisons=1, leaks=1, seed=3)
    with pytest.raises(CompareError, match="is not empty; go on with it by --resume"):
        go(lambda j, t: machine(j), comparisons=1, leaks=1)


@pytest.mark.slow
def test_the_command_goes_on_with_the_plan_of_the_selftest(tmp_path, monkeypatch):
    monkeypatch.setattr(selftest, "run_job", lambda job, timeout: machine(job))
    command = ["selftest", "--out", str(tmp_path / "a")]
    CliRunner().invoke(graphduel, [*command, "--comparisons", "4", "--seed", "2"])
    before = (tmp_path / "a" / results.RESULTS).read_text().count("\n")
    again = CliRunner().invoke(graphduel, [*command, "--resume"])
    assert again.exit_code in (0, 1), again.output
    assert (tmp_path / "a" / results.RESULTS).read_text().count("\n") == before + 1  # the start
    other = CliRunner().invoke(graphduel, [*command, "--resume", "--comparisons", "5"])
    assert other.exit_code == 2
    assert "has comparisons 4, and 5 was asked for" in " ".join(other.stderr.split())


def test_a_process_that_fails_is_told_and_the_rest_counts(go):
    def execute(asked, timeout):
        if asked.kind == "selftest time" and asked.process == 2:
            return failure(asked, "the worker died of SIGSEGV")
        return machine(asked)

    found = go(execute, comparisons=2, leaks=1)
    assert found["failures"] == ["the worker died of SIGSEGV"] * 2
    assert found["speed"][0]["comparisons"] == 2


def test_nothing_measured_is_an_error(go):
    with pytest.raises(NothingMeasuredError, match="no worker gave a result: broken"):
        go(lambda j, _: machine(j) if j.kind == "environment" else failure(j, "broken"), comparisons=1, leaks=1)


@pytest.mark.parametrize(("slow", "code"), [(True, 0), pytest.param(False, 1, marks=pytest.mark.slow)])
def test_the_command_writes_its_rates_and_ends_as_they_say(tmp_path, monkeypatch, slow, code):
    def execute(asked, timeout):
        record = machine(asked)
        for row in getattr(record, "modes", {}).values():
            if asked.kind == "selftest time" and not slow:
                row.blocks = [1.0] * 20
        return record

    monkeypatch.setattr(selftest, "run_job", execute)
    path = tmp_path / "rates.json"
    done = CliRunner().invoke(
        graphduel, ["selftest", "--comparisons", "8", "--json", str(path), "--out", str(tmp_path / "a")]
    )
    assert done.exit_code == code, done.output
    written = json.loads(path.read_text())
    assert typed(written)
    assert written["settings"]["comparisons"] == 8
    assert "5% slower" in done.stdout
    assert "1,048,576 bytes" in done.stdout
    assert "--comparisons 200 gives narrow ones" in done.stdout
    assert str(os.sep) not in json.dumps(written["environment"])
    told = (tmp_path / "a" / "selftest.md").read_text()
    row = next(line for line in told.splitlines() if line.startswith("| 5% slower"))
    assert row.split(" | ")[2:4] == ["8" if slow else "0", "8"]
    assert f"Targets: **{written['outcome']}**" in told
    assert "of 6 processes each" in told


@pytest.mark.slow
def test_the_tables_show_every_target_on_a_terminal_of_80_columns(tmp_path, monkeypatch):
    monkeypatch.setattr(selftest, "run_job", lambda job, timeout: machine(job))
    for name, value in (("COLUMNS", "80"), ("FORCE_COLOR", "1"), ("TERM", "dumb"), ("NO_COLOR", "1")):
        monkeypatch.setenv(name, value)
    shown = CliRunner().invoke(graphduel, ["selftest", "--comparisons", "4", "--out", str(tmp_path / "a")]).stdout
    tables = re.sub(r"\x1b\[[0-9;]*m", "", shown).partition("Few comparisons")[0].splitlines()
    assert max(map(len, tables)) <= 80
    assert "…" not in shown
    last = [line.split()[-1] for line in tables if line.rstrip().endswith((" met", " missed", " none", " target"))]
    assert last == ["target", "met", "none", *["met"] * 12, "none", "met", "target", *["none"] * 4]


def test_the_page_of_a_system_that_tells_less(go):
    found = go(lambda job, _: machine(job), comparisons=1, leaks=1)
    assert "load 0.50 when it began" in selftest.markdown(typed(found))
    assert "2 cores; CPython" in selftest.markdown(typed({**found, "environment": {**ENVIRONMENT, "load": None}}))
    assert "commit unknown" in selftest.markdown(typed(found))


def test_no_two_processes_share_a_core(monkeypatch):
    for cores, at_once in ([3], 1), ([0, 1], 2), ([0, 1, 2, 3], 2), (None, 2):
        monkeypatch.setattr(selftest, "affinity", lambda cores=cores: cores)
        assert selftest.Trials().at_once == at_once


def test_several_threads_without_native_code_are_refused_before_anything_is_measured(tmp_path, monkeypatch):
    monkeypatch.setattr(checks, "_native", lambda: f"{checks.NONE}: backend='native' needs llvmlite")
    out = tmp_path / "a"
    done = CliRunner().invoke(graphduel, ["selftest", "--quick", "--threads", "2", "--out", str(out)])
    assert done.exit_code == 2
    assert "only native code computes on several threads, and there is none here: backend='native'" in done.output
    assert not out.exists()
