"""A user's function in a framework: the gate, first calls and what compiled them, ratios, and when compiling pays."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest
from click.testing import CliRunner

import compare
import dynamic
from compare import engines as frameworks
from compare import steps
from compare.claims import conditions
from compare.claims.verdict import verdict
from compare.cli.command import graphduel
from compare.engines.base import CallState
from compare.engines.library import Loader, namespace
from compare.engines.step import Compilation, Observations, TrainingFunction
from compare.errors import CompareError, FunctionError, InputsError, OverrunError, UnknownNameError, WorkerError
from compare.own import Result, run, workers
from compare.plans import comparison
from compare.plans.comparison import ComparisonPlan
from compare.records import results
from compare.records.cells import (
    Call,
    Compilations,
    CompiledRow,
    Memory,
    MemoryRow,
    Parity,
    ParityRow,
    Time,
    TimeRow,
)
from compare.records.job import Job
from compare.records.own import FunctionFault
from compare.records.record import Bare, Environment, Run, kind_of, records_of
from compare.report import compiled
from compare.run import worker
from compare.run.progress import Reporter
from compare.run.worker import failure
from compare.subjects import exchange, origin
from compare.subjects.case import calls_in, check_inputs
from compare.subjects.subject import modes_of
from tests.helpers import toy_framework
from tests.helpers.asked_here import answered_by
from tests.helpers.plans import plan_of

MODES = ("toy-eager", "toy-jit")
LABELS = ("eager", "jit")
KINDS = dict(frameworks._FRAMEWORKS)
"""Every framework that has an adapter."""


pytestmark = pytest.mark.usefixtures("toy")


def asked(*modes, **options):
    return plan_of("toy", "f.py:loss", "", modes or None, **{"seconds": 0.02, **options})


def here(*modes, **options):
    return run.here(asked(*modes, **options), toy_framework.loss, toy_framework.calls())


def only(found, kind):
    return records_of(found.records, kind)


def flat(found):
    return " ".join(repr(found).split())


def test_eager_and_compiled_are_gated_and_timed():
    found = here()
    assert found.modes == LABELS
    (parity,), (told,), (time,) = only(found, Parity), only(found, Compilations), only(found, Time)
    assert [row.status for row in parity.modes.values()] == ["ok", "ok"]
    assert 0 <= parity.modes["jit"].gradient_error < 1e-4
    assert {mode: len(row.made) for mode, row in told.modes.items()} == {"eager": 0, "jit": 2}
    assert told.modes["jit"].breaks == {"a print": 2}
    assert (time.eager, time.base, len(time.modes["jit"].stream)) == ("eager", "eager", 3)
    assert found.verdict.steady.values["jit"] < found.verdict.steady.values["eager"]
    assert found.verdict.of_base["jit"].estimate < 1
    assert not found.verdict.of_base["jit"].bounded  # one process tells no interval
    assert "jit (2 ×) compiled: a new shape" in flat(found)
    assert "jit (2 ×) broke the graph: a print" in flat(found)


def test_an_argument_that_has_a_dtype_and_no_shape_is_no_array():
    """As models of transformers have."""

    class Scale:
        dtype, by = "float32", np.float32(2)

    scale = Scale()
    calls = [(w, x, scale) for w, x in toy_framework.calls()]
    result = run.here(asked("eager"), lambda w, x, scale: toy_framework.loss(w, x * scale.by), calls)
    assert [row.status for parity in only(result, Parity) for row in parity.modes.values()] == ["ok"]


def test_what_an_engine_tells_of_all_its_steps_counts_for_the_one_that_ran(monkeypatch):
    made, build = [], toy_framework.Toy.build

    def counting(self, mode, loss, argnum):
        step = build(self, mode, loss, argnum)

        def run(*args):
            made.extend([Compilation("a call")] * (mode == MODES[1]))
            return step(*args)

        return run

    monkeypatch.setattr(toy_framework.Toy, "build", counting)
    monkeypatch.setattr(toy_framework.Toy, "observed", lambda *_: Observations(tuple(made)))
    (told,) = only(here(), Compilations)
    assert {mode: len(row.made) for mode, row in told.modes.items()} == {"eager": 0, "jit": 3}


@pytest.mark.parametrize(
    ("off", "status"), [pytest.param(0.0, "ok", marks=pytest.mark.slow), (0.5, "ok"), (40.0, "disagree")]
)
def test_a_mode_may_be_some_times_as_far_off_as_eager_itself_where_a_step_is_ill_conditioned(monkeypatch, off, status):
    w, x = (np.random.default_rng(seed).normal(size=999) for seed in range(2))
    call = tuple(each.astype("f4") for each in (w, x - w * (w @ x - 2e-3) / (w @ w)))

    def loss(w, x):
        return toy_framework.g.sum(w * x)  # which is next to 0, but for the rounding of 999 products

    build = toy_framework.Toy.build

    def built(self, mode, loss, argnum):
        step = build(self, mode, loss, argnum)
        shift = off if mode == MODES[1] else 0.0
        return lambda *args: (step(*args)[0] * np.float32(1 + shift * 1e-2), step(*args)[1])

    monkeypatch.setattr(toy_framework.Toy, "build", built)
    found = run.here(asked("jit"), loss, [call])
    (parity,), (told,) = only(found, Parity), only(found, Compilations)
    assert parity.modes["eager"].status == "ok"
    assert parity.modes["jit"].status == status
    assert 1e-4 < told.conditioning < 0.03
    assert parity.modes["jit"].tolerance == pytest.approx(3 * told.conditioning)
    assert "This step is ill-conditioned" in flat(found)


class Descent(TrainingFunction):
    """A step that moves `w` down the gradient of a square; the mode called jit may be off by a factor."""

    def __init__(self, w, factor):
        self.w, self.factor = w, factor

    def build(self, mode):
        def step(x):
            loss = np.sum((self.w * x) ** 2)
            self.w -= 0.1 * 2 * self.w * x * x * (self.factor if mode == MODES[1] else 1.0)
            return loss, [self.w]

        return step


@pytest.mark.parametrize(("factor", "status"), [(1.0, "ok"), (1.5, "disagree")])
def test_a_training_step_is_compared_with_its_state_call_after_call(monkeypatch, factor, status):
    w = np.ones(3)
    monkeypatch.setattr(CallState, "training", lambda *_: Descent(w, factor))
    found = run.here(asked("jit", gradient=None), lambda x: w @ x, [(np.full(3, x),) for x in (1.0, 2.0, 0.5)])
    (parity,), (told,) = only(found, Parity), only(found, Compilations)
    assert {mode: row.status for mode, row in parity.modes.items()} == {"eager": "ok", "jit": status}
    assert told.trains
    assert (told.undoubled, told.dtype) == (None, "float64")
    assert "a training step over 3 inputs" in flat(found)
    assert "jit" not in found.verdict.refused or factor != 1.0


def test_a_training_step_of_our_engine_alone_is_seen_in_a_call():
    """By the name `backward` it is not: a library's differentiates, and a module's attribute does not."""
    net = dynamic.nn.Linear(4, 4)
    net.backward = dynamic.nn.Linear(4, 4)
    opt = dynamic.optim.SGD(net.parameters(), 0.1)

    def by_a_library(x):
        opt.zero_grad()
        getattr(net(x).mean(), "back" + "ward")()
        opt.step()

    def by_name(x):
        return net.backward(net(x)).mean()

    before = net.weight.numpy(force=True).copy()
    calls = [(dynamic.ones((2, 4)),)]
    assert exchange.has_training("", by_a_library, calls)
    assert not exchange.has_training("", by_name, calls)
    assert (net.weight.numpy(force=True) == before).all()
    assert net.weight.grad is None
    assert not any(opt.state.values())


def test_a_mode_that_is_wrong_is_timed_after_a_warning_and_one_that_refuses_is_not():
    found = here("wrong", "refusing")
    refused = found.verdict.refused
    assert refused["wrong"].startswith("disagree: the output in call 1 is off by")
    assert refused["refusing"].startswith("unsupported: NotImplementedError: cannot be compiled: it prints")
    assert set(found.verdict.steady.values) == {"eager"}
    assert set(found.verdict.wrong) == {"wrong"}
    assert here("wrong").exit_code == 4
    assert flat(found).startswith("Wrong disagrees: the output in call 1 is off by")
    assert "Of the times, only that of eager counts. Not timed: refusing (unsupported)." in flat(found)
    assert " agree " not in flat(found)


def test_where_each_mode_is_wrong_nothing_denies_the_times_that_are_shown():
    found = here("wrong")
    for record in (*records_of(found.records, Parity), *records_of(found.records, Time)):
        for row in record.modes.values():
            row.status = "disagree"
    judged = verdict(found.records)
    assert set(judged.wrong) == {"eager", "wrong"}
    assert "No mode was measured that agrees." in judged.sentence
    assert "Nothing was measured" not in judged.sentence


def test_the_gradient_may_be_left_out():
    def build(self, mode, loss, argnum):
        assert argnum is None
        return lambda *args: (np.asarray(loss(*args)), ())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(toy_framework.Toy, "build", build)
        found = here("jit", gradient=False)
    assert only(found, Run)[0].settings["gradient"] is False
    assert "loss in Toy 2" in flat(found)
    assert ": value over 3 inputs" in flat(found)


def row(first, block=None, share=1.0, compiles=0):
    stream = [Call(8, first, True, True), Call(8, first, True, True)]
    blocks = [block] * 5 if block else []
    return TimeRow(
        "ok", None, stream=stream, first=first, blocks=blocks, processor=share * 2 * first, compiles=compiles
    )


def answered(job, eager=1e-3, compiled=0.5e-3, first=(9.0, 1.0), share=1.0):
    """What a worker answers: compiled code takes so long to make, less with a cache, at that share of a core."""
    cold, spread = job.process == 0, 1 + (job.process or 0) / 100
    block = {mode: None if cold else (eager if mode == MODES[0] else compiled) * spread for mode in job.modes}
    starts = {mode: eager if mode == MODES[0] else first[not cold] for mode in job.modes}
    place = {"workload": job.workload, "size": job.size, "eager": "eager"}
    modes = {
        mode.removeprefix("toy-"): row(starts[mode], block[mode], share, int(mode != MODES[0])) for mode in job.modes
    }
    answer = Time(**place, process=job.process or 0, modes=modes, cache="cold" if cold else "warm", clock="cpu")
    checked = Parity(**place, agree=True, modes={mode: ParityRow("ok", None, 0.0, 0.0, 1e-4) for mode in modes},
                     same_graph=None, kernel_calls={})  # fmt: skip
    found = [checked]
    if cold:
        found.append(Compilations(**place, version="1.0", modes={mode: CompiledRow("ok", None) for mode in modes}))
        found.append(Memory(**place, modes={mode: MemoryRow("ok", None, peak=100) for mode in modes}, counted="malloc"))
    answer.beside = list(map(results.to_json, found))
    return answer


class Workers:
    """Stands for the processes: answers, and ends those that a test names by process and mode."""

    def __init__(self, monkeypatch, ended=(), **seconds):
        self.ended, self.jobs, self.seconds = set(ended), [], seconds
        answered_by(monkeypatch, self)
        monkeypatch.setattr(run, "run_job", lambda *_: Bare(environment=Environment()))

    def __call__(self, job, limit, heard):
        self.jobs.append((job.process, job.modes))
        if (job.process, job.modes[-1]) in self.ended:
            for number, seconds in enumerate((0.0, 1.5, 2.5)):
                heard(steps.FirstCall(job.modes[-1], number, 8, seconds))
            raise OverrunError("ended", f"made call 3 in {job.modes[-1].removeprefix('toy-')}")
        return answered(job, **self.seconds)


def result(monkeypatch, **seconds):
    Workers(monkeypatch, **seconds)
    return run.run_plan(asked("jit", processes=4), Reporter())


def test_the_call_from_which_compiling_pays_is_counted_from_nothing(monkeypatch):
    found = result(monkeypatch)
    # 18 s for two calls, where eager takes 2 ms; 0.5 ms less a call, but for the spread of the processes
    assert found.verdict.break_even.runs == pytest.approx((18 - 0.002) / 0.5e-3, rel=0.05)
    assert found.verdict.cached.values["jit"] == pytest.approx(2.0)
    assert found.verdict.first.values["jit"] == pytest.approx(18.0)
    assert found.verdict.memory.values == pytest.approx({"eager": 100, "jit": 100})
    assert flat(found).startswith("Compile it with jit if it runs more than 35,")
    assert "cached" in repr(found)
    assert found.exit_code == 0


def test_a_busy_machine_does_not_move_the_call_from_which_compiling_pays(monkeypatch):
    """First calls take three times as long, as the user sees, of whom one clock says when they are paid for."""
    alone, busy = (
        result(monkeypatch, first=first, share=share) for first, share in [((9.0, 1.0), 1.0), ((27.0, 3.0), 1 / 3)]
    )
    assert busy.verdict.first.values["jit"] == pytest.approx(3 * alone.verdict.first.values["jit"])
    assert busy.verdict.break_even.runs == pytest.approx(alone.verdict.break_even.runs, rel=1e-3)
    assert any("seconds of the processor" in words for words in conditions.sentences(busy.records))


def test_each_compiled_mode_shares_its_process_with_eager_alone(monkeypatch):
    asks = Workers(monkeypatch)
    run.run_plan(asked("jit", "slow", processes=2), Reporter())
    pairs = [("toy-eager", "toy-jit"), ("toy-eager", "toy-slow")]
    assert asks.jobs == [(process, modes) for process in range(3) for modes in pairs]


def test_a_worker_imports_its_framework_before_it_waits_and_takes_a_core_after(monkeypatch):
    order = []

    class Turn:
        def readline(self):
            order.append("framework" if "wave" in sys.modules else "nothing")
            return ""

    monkeypatch.delitem(sys.modules, "wave", raising=False)
    monkeypatch.setattr(toy_framework.Toy, "module", "wave")
    monkeypatch.setattr(frameworks.find_engine("toy").process, "listen", lambda: order.append("listener"))
    monkeypatch.setattr(sys, "stdin", Turn())
    monkeypatch.setattr(worker.environment, "pin", lambda *_, **__: order.append("core"))
    assert isinstance(worker.perform(Job("environment", mode="toy-jit"), waits=True), Bare)
    assert order == ["listener", "framework", "core"]


def test_workers_of_one_mode_start_for_as_many_processes_as_there_are_cores(monkeypatch):
    monkeypatch.setattr(comparison, "usual_threads", lambda: 2)
    plan, started = asked("jit", processes=5), []
    with monkeypatch.context() as context:
        Workers(context)
        context.setattr(workers.Workers, "ahead", lambda _, jobs: started.append([job.process for job in jobs]))
        run.run_plan(plan, Reporter())
    assert [each for each in started if each] == [[1, 2], [3, 4], [5]]


@pytest.mark.parametrize(
    ("compiled", "said", "code"),
    [
        (2e-3, "Stay eager. Once warm, eager is 2× faster than jit.", 0),
        (1.02e-3, "Stay eager: no mode is more than 5% faster.", 0),
        (0.5e-3, "Compile it with jit if it runs more than", 0),
    ],
)
def test_what_is_no_faster_is_an_answer(monkeypatch, compiled, said, code):
    found = result(monkeypatch, compiled=compiled)
    assert flat(found).startswith(said)
    assert found.exit_code == code


@pytest.mark.slow
def test_no_line_is_wider_than_a_terminal_of_80_columns(monkeypatch):
    assert max(map(len, repr(here("wrong", "refusing", "slow")).splitlines())) <= 80
    assert max(map(len, repr(result(monkeypatch)).splitlines())) <= 80


def test_reasons_that_differ_in_numbers_alone_are_one_and_modes_share_a_line():
    reasons = {"a": {"size 3, not 4\nmore": 1, "size 4, not 5": 1, "a new type": 1}, "b": {"size 3, not 4": 2}}
    assert list(compiled._each("compiled", reasons)) == [
        "a (2 ×), b (2 ×) compiled: size 3, not 4",
        "a compiled: a new type",
    ]


def test_reasons_that_differ_in_lines_alone_are_one_with_all_lines():
    first = {
        "the first call of a piece (step.py:9: loss)": 2,
        "the first call of a piece (step.py:12: y.backward())": 5,
    }
    alone = {"a break (step.py:12: y.backward())": 1}
    assert list(compiled._each("compiled", {"a": first})) == [
        "a (7 ×) compiled: the first call of a piece (step.py:9, step.py:12)"
    ]
    assert list(compiled._each("compiled", {"a": alone})) == ["a compiled: a break (step.py:12: y.backward())"]


def test_the_first_pass_ends_at_its_limit():
    found = here("endless", limit=0.3)
    assert found.verdict.refused == {"endless": "unsupported: 1 of 3 calls: it did not end in 0.3 s"}
    assert set(found.verdict.steady.values) == {"eager"}


def test_what_a_worker_tells_is_what_is_heard():
    told = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(steps, "_tell", lambda head, what: told.append(head + json.dumps(what).encode() + b"}\n"))
        with steps.bound_seconds(0.2):
            steps.first_call(steps.FirstCall("toy-jit", 1, 8, 0.125))
        steps.call_times(steps.CallTimes({"toy-jit": 0.5}))
        steps.now("timed")
    assert [steps.parse_step(line) for line in told] == [
        steps.SecondsBound(0.2),
        steps.FirstCall("toy-jit", 1, 8, 0.125),
        steps.SecondsBound(None),
        steps.CallTimes({"toy-jit": 0.5}),
        "timed",
    ]


def test_a_mode_that_was_ended_at_its_limit_says_how_far_it_came_and_is_not_asked_again(monkeypatch):
    asks = Workers(monkeypatch, {(1, "toy-slow")})
    found = run.run_plan(asked("jit", "slow", processes=3), Reporter())
    assert found.verdict.refused == {"slow": "unsupported: 2 of 8 calls in 300 s"}
    assert set(found.verdict.steady.values) == {"eager", "jit"}
    assert [modes for process, modes in asks.jobs if process].count(("toy-eager", "toy-slow")) == 1


def test_a_first_process_that_was_ended_leaves_the_other_modes_and_eager(monkeypatch):
    asks = Workers(monkeypatch, {(0, "toy-slow"), (1, "toy-slow"), (0, "toy-jit"), (1, "toy-jit")})
    found = run.run_plan(asked("jit", "slow", processes=3), Reporter())
    assert found.verdict.refused == dict.fromkeys(("jit", "slow"), "unsupported: 2 of 8 calls in 300 s")
    assert (0, ("toy-eager",)) in asks.jobs
    assert set(found.verdict.steady.values) == {"eager"}


def test_a_mode_that_was_ended_with_a_cold_cache_is_timed_with_what_it_left_there(monkeypatch):
    Workers(monkeypatch, {(0, "toy-jit")})
    found = run.run_plan(asked("jit", processes=3), Reporter())
    assert found.verdict.refused == {}
    assert set(found.verdict.steady.values) == {"eager", "jit"}
    assert found.verdict.cached.values["jit"] == pytest.approx(2.0)
    assert "jit" not in found.verdict.first.values


def test_jobs_are_expected_from_the_start_and_called_by_what_they_do(monkeypatch):
    reporter, told = Reporter(), []
    Workers(monkeypatch, {(0, "toy-slow"), (1, "toy-slow")})
    reporter.ended = lambda *_: told.append(f"{reporter.pace.done}/{reporter.pace.total} {reporter.label}")
    reporter.notice = told.append
    run.run_plan(asked("jit", "slow", processes=2), reporter)
    cut = "slow had not come through its first calls in 300 s (--limit): it is "
    assert told[:4] == [
        "1/6 first calls of jit",
        "slow: the first of 8 calls took 1.5 s",
        "2/6 first calls of slow",
        f"{cut}tried once more, with the code that it has left",
    ]
    assert "4/6 times of slow, process 1" in told
    assert f"{cut}not timed" in told
    assert reporter.pace.done == reporter.pace.total == 6


def test_what_is_known_is_told_after_each_process(monkeypatch):
    Workers(monkeypatch)
    reporter = Reporter()
    reporter.notice = (told := []).append
    run.run_plan(asked("jit", processes=5), reporter)
    assert told[0] == "first pass over the calls, with nothing compiled before: eager 2 ms, jit 18 s"
    assert told[1] == "after 1 of 5 processes: a call of jit takes 0.5× the time of eager"
    assert told[4].startswith("after 4 of 5 processes: a call of jit takes 0.5× [")
    assert len(told) == 5


def test_a_worker_that_dies_before_a_compiled_mode_is_the_users_to_mend(monkeypatch):
    def dies(job, limit, heard):
        raise WorkerError("the worker died of SIGSEGV", "made call 1 in eager")

    answered_by(monkeypatch, dies)
    with pytest.raises(FunctionError, match=r"f\.py:loss: the worker died of SIGSEGV"):
        run.run_plan(asked("jit", processes=3), Reporter())


def test_a_framework_that_compiles_nothing_says_so():
    assert flat(here("eager")).startswith("Only eager was measured.")


def test_what_is_wrong_with_the_users_file_ends_the_question(monkeypatch):
    answered_by(monkeypatch, lambda *_: FunctionFault("mine.py:3: no", InputsError.exit_code))
    with pytest.raises(InputsError, match=r"mine\.py:3: no"):
        run.run_plan(asked("jit", processes=3), Reporter())


@pytest.mark.slow
def test_failures_alone_are_an_error(monkeypatch):
    answered_by(monkeypatch, lambda job, *_: failure(job, "KeyboardInterrupt (mine.py:3)"))
    with pytest.raises(FunctionError, match=r"f\.py:loss: KeyboardInterrupt \(mine\.py:3\)"):
        run.run_plan(asked("jit", processes=0), Reporter())


def test_what_is_asked_survives_its_way_to_a_worker():
    plan = plan_of("toy", "f.py:loss", "f.py:inputs", MODES, seed=3, seconds=0.5, limit=7.0)
    assert ComparisonPlan.from_dict(json.loads(json.dumps(plan.to_dict()))) == plan


def test_modes_are_those_of_the_framework():
    toy = frameworks.find_engine("toy")
    assert modes_of(toy) == MODES  # the eager mode and the first that compiles
    assert modes_of(toy, ("slow", "eager")) == ("toy-eager", "toy-slow")
    with pytest.raises(InputsError, match="Toy has no mode 'jti'; did you mean 'jit'"):
        modes_of(toy, ("jti",))
    with pytest.raises(UnknownNameError, match="no engine is named 'tyo'; did you mean 'toy'"):
        frameworks.find_engine("tyo")


def test_a_framework_that_is_not_there_says_how_to_install_it(monkeypatch):
    monkeypatch.setattr(toy_framework.Toy, "module", "no_such_module")
    with pytest.raises(InputsError, match="Toy is not installed; pip install 'numpy>=1'"):
        asked()


def test_the_result_is_a_run_that_is_read_again_and_has_a_page(tmp_path, monkeypatch):
    found = result(monkeypatch)
    page = found.save(tmp_path / "out")
    assert "<title>loss: compile it, or run it eagerly?" in page.read_text("utf-8")
    markdown = (tmp_path / "out" / "report.md").read_text("utf-8")
    assert "In Toy, dynamic is eager here, and static is a compiled mode." in markdown
    again = results.read(tmp_path / "out" / "results.jsonl")
    assert [kind_of(type(record)) for record in again][:3] == ["run", "parity", "compilations"]
    assert verdict(again).sentence == found.verdict.sentence
    with pytest.raises(CompareError, match="not empty; choose another, or give --overwrite"):
        result(monkeypatch).save(tmp_path / "out")


def test_compare_takes_a_framework():
    found = compare.compare(toy_framework.loss, toy_framework.calls(), framework="toy", seconds=0.02)
    assert isinstance(found, Result)
    assert "another may differ by more than the intervals say" in flat(found)


def test_the_command_refuses_frameworks_that_it_does_not_know(tmp_path):
    file = tmp_path / "f.py"
    file.write_text("def loss(x):\n    return x\n", "utf-8")
    done = CliRunner().invoke(graphduel, ["compare", f"{file}:loss", "--framework", "tou"])
    assert done.exit_code == 2
    assert "no engine is named 'tou'; did you mean 'toy'?" in done.output


def test_the_command_answers_in_workers(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    file = tmp_path / "mine.py"
    file.write_text("""
import numpy as np, autograd.numpy as anp
def loss(w, x): return anp.sum(anp.tanh(x * w))
inputs = [(np.ones(3), np.ones((2, 3)))]
""")
    monkeypatch.setattr(frameworks, "_FRAMEWORKS", {"autograd": "compare.engines.autograd:Autograd"})
    asked = ["compare", f"{file}:loss", "--framework", "autograd", "--processes", "1", "--seconds", "0.05"]
    gate = ["--fail-if", "eager / eager > 1", "--junit", str(tmp_path / "j.xml")]
    refused = CliRunner().invoke(graphduel, [*asked, *gate])
    assert (refused.exit_code, "compares eager with itself" in refused.output) == (2, True)
    done = CliRunner().invoke(graphduel, [*asked, "--out", str(tmp_path / "out"), "--junit", str(tmp_path / "j.xml")])
    assert done.exit_code == 0, done.output
    assert "in HIPS autograd" in done.output
    assert "agree" not in done.output  # beside itself it tells nothing
    assert (tmp_path / "out" / "report.html").exists()
    assert 'name="parity of eager"' in (tmp_path / "j.xml").read_text("utf-8")


@pytest.mark.parametrize(
    ("text", "code", "told"),
    [
        ("def loss(w, x):\n    return w @ x\nbatches = [(np.ones(3), np.ones(4))]", 1, "mine.py:3: ValueError: "),
        pytest.param(
            "def loss(w, x):\n    return w @ x",
            2,
            "needs inputs to be called with: write inputs = [(w, x), ...] in that file, a tuple of arguments for each "
            "call, or def batches() that returns such a list; or name either by --inputs NAME",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "def loss(w, x):\n    return w @ x\ninputs = [np.ones(3)]",
            2,
            "inputs[0] is of type ndarray; inputs is a list of calls, each the tuple of its arguments: "
            "write inputs = [(w, x)]",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "def loss(w):\n    return w @ w\ndef inputs():\n    return 1 / 0",
            1,
            "mine.py:5: ZeroDivisionError",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "def los(w):\n    return w @ w", 2, "defines no 'loss'; did you mean 'los'?", marks=pytest.mark.slow
        ),
    ],
)
def test_what_is_wrong_with_a_file_is_told_with_its_line(tmp_path, monkeypatch, text, code, told):
    (tmp_path / "mine.py").write_text(f"import numpy as np\n{text}\n", "utf-8")
    monkeypatch.setattr(frameworks, "_FRAMEWORKS", {"autograd": "compare.engines.autograd:Autograd"})
    asked = ["compare", f"{tmp_path / 'mine.py'}:loss", "--framework", "autograd", "--processes", "1"]
    done = CliRunner().invoke(graphduel, asked)
    assert done.exit_code == code, done.output
    assert told in done.output


def test_a_function_without_parameters_needs_no_inputs(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text("def epoch():\n    return 1\ndef loss(x):\n    return x\ninputs = [(1,)]", "utf-8")
    assert origin.load_function(f"{file}:epoch", None)[1] == [()]
    assert origin.load_function(f"{file}:loss", None)[1] == [(1,)]
    function = origin.load_function(f"{file}:epoch", None)[0]
    assert calls_in([()], function) == [()]
    with pytest.raises(InputsError, match=r"inputs\[0\] is empty; .* write inputs = \[\(obj,\)\]"):
        calls_in([()], len)


def test_a_module_runs_again_over_the_functions_of_a_framework():
    seen = []

    def tanh(x):
        seen.append("tanh")
        return x

    module = Loader("spied", namespace("spied", {"tanh": tanh})).load("compare.workloads.rnn_text")
    assert module.step({"input": 1, "recurrent": 2, "bias": 3}, Number(1), Number(1)) == 6
    assert seen == ["tanh"]
    assert module.Case is __import__("compare.workloads.base", fromlist=["Case"]).Case
    with pytest.raises(NotImplementedError, match=r"spied has no counterpart of graphs\.embedding"):
        module.graphs.embedding  # noqa: B018
    with pytest.raises(AttributeError, match="no attribute 'embeding'"):
        module.graphs.embeding  # noqa: B018


class Number(int):
    """Has `@` as a product, so that a model runs on numbers."""

    def __matmul__(self, other):
        return Number(self * other)


@pytest.mark.parametrize(
    ("text", "framework"),
    [
        ("import torch\nfrom torch.nn import functional as F", "torch"),
        ("def f():\n    import jax.numpy as jnp", "jax"),
        ("import torch, jax", None),
        ("import dynamic as torch\nimport torch", None),
        ("import numpy as np", None),
        ("from . import torch", None),
        ("import torch as", None),
        ("", None),
    ],
)
def test_a_file_is_of_the_one_framework_that_it_imports(text, framework, monkeypatch):
    monkeypatch.setattr(frameworks, "_FRAMEWORKS", KINDS)
    frameworks.find_engine.cache_clear()
    assert frameworks.of_imports(text) == framework


def test_values_are_of_the_framework_that_defines_their_type(monkeypatch):
    monkeypatch.setattr(frameworks, "_FRAMEWORKS", KINDS)
    frameworks.find_engine.cache_clear()
    tensor = type("Tensor", (), {"__module__": "torch._tensor"})
    array = type("ArrayImpl", (), {"__module__": "jaxlib._jax"})
    module = type("Mine", (type("Module", (), {"__module__": "torch.nn.modules"}),), {})
    assert [frameworks.of_values([1, np.ones(2), kind()]) for kind in (tensor, array, module, object)] == [
        "torch", "jax", "torch", None
    ]  # fmt: skip
    with pytest.raises(InputsError, match=r"inputs\[0\] holds values of PyTorch: .* --framework torch"):
        check_inputs([(tensor(),)])


def test_the_command_takes_the_framework_that_the_file_imports(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text("import autograd.numpy as np\ndef loss(w):\n    return w @ w", "utf-8")
    monkeypatch.setattr(frameworks, "_FRAMEWORKS", {"autograd": "compare.engines.autograd:Autograd"})
    frameworks.find_engine.cache_clear()
    done = CliRunner().invoke(graphduel, ["compare", f"{tmp_path / 'mine.py'}:loss", "--modes", "fast"])
    assert done.exit_code == 2, done.output
    assert "mine.py imports autograd: its step runs in HIPS autograd (--framework autograd)" in done.output
    assert "HIPS autograd has no mode 'fast'" in done.output
