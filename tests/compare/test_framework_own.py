"""A user's function in a framework: the gate, first calls and what compiled them, ratios, and when compiling pays."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

import compare
from compare import engines as frameworks
from compare.cli.command import graphduel
from compare.engines.source import Loader
from compare.errors import CompareError, InputsError, OverrunError, UnknownNameError
from compare.own.frameworks import modes, run, show
from compare.own.frameworks.asked import Asked, arms_of
from compare.own.frameworks.measure import in_mode
from compare.own.frameworks.modes import Mode
from compare.own.frameworks.notes import Notes
from compare.own.frameworks.result import Result
from compare.records.framework_steps import FrameworkGate, FrameworkTime, GateMode, Made, TimedMode
from compare.records.own import FunctionFault
from compare.run.progress import Reporter
from compare.stats import Interval
from tests.helpers import toy_framework

ARMS = ("toy-eager", "toy-jit")


pytestmark = pytest.mark.usefixtures("toy")


def asked(*modes):
    return run.asked_of("toy", "", "", modes, seconds=0.02)


def here(*modes):
    return run.here(asked(*modes), toy_framework.loss, toy_framework.calls())


def test_eager_and_compiled_are_gated_and_timed():
    found = here()
    eager, jit = found.modes
    assert [mode.name for mode in found.modes] == list(ARMS)
    assert (eager.status, jit.status, eager.compiles, jit.compiles) == ("ok", "ok", 0, 2)
    assert jit.reasons == {"a new shape": 2}
    assert jit.breaks == {"a print": 2}
    assert 0 <= jit.ulp < 100
    assert jit.call < eager.call
    assert found.calls == 3
    assert jit.ratio.estimate < 1
    assert not jit.ratio.known  # one process tells no interval


def test_a_mode_that_is_wrong_or_refuses_is_not_timed():
    found = {mode.name: mode for mode in here("wrong", "refusing").modes}
    assert found["toy-wrong"].status == "disagree"
    assert found["toy-wrong"].call is found["toy-refusing"].call is None
    assert found["toy-refusing"].status == "refused"
    assert "cannot be compiled: it prints" in found["toy-refusing"].reason
    assert here("wrong").exit_code == 4
    text = repr(here("wrong", "refusing"))
    assert text.startswith("Do not compile it: no compiled mode could be timed (wrong: outputs or gradients")
    assert "refusing was not timed, refused: NotImplementedError: cannot be compiled: it prints" in " ".join(
        text.split()
    )
    assert "disagree with float64 and eager, do not use it: wrong: outputs" in " ".join(text.split())


def timed(first, block, made=(), **more):
    return TimedMode("ok", None, [first, first], [Made("first call", None)] * len(made), blocks=[block] * 5, **more)


def result(block, first=(9.0, 1.0), eager=1e-3):
    gate = FrameworkGate("1.0", False, {arm: GateMode("ok", error=0.0) for arm in ARMS})
    made = [
        FrameworkTime(
            i, 2, {ARMS[0]: timed(eager, eager * (1 + i / 100)), ARMS[1]: timed(first[i > 0], block * (1 + i / 100))}
        )
        for i in range(4)
    ]
    return Result(replace(asked(), function="f.py:loss"), gate, tuple(made))


def test_the_call_from_which_compiling_pays_is_counted_from_nothing_and_with_a_cache():
    jit = result(0.5e-3).modes[1]
    # 18 s for two calls, where eager takes 2 ms; 0.5 ms less a call, but for the spread of the processes
    assert jit.pays_from == pytest.approx(2 + (18 - 0.002) / 0.5e-3, rel=0.05)
    assert jit.pays_from_warm == pytest.approx(2 + (2 - 0.002) / 0.5e-3, rel=0.05)
    found = result(0.5e-3)
    assert found.best is found.modes[1]
    text = " ".join(repr(found).split())
    assert text.startswith(
        "Compile it, with jit: it takes 0.5× [0.5, 0.5] the time of eager once warm; it has paid from call 35,4"
    )
    assert ", or 3,9" in text
    assert found.exit_code == 0


def test_each_compiled_mode_shares_its_process_with_eager_alone():
    assert run.alone_beside_eager("e", ["e", "a", "b"]) == [("e", "a"), ("e", "b")]
    assert run.alone_beside_eager("e", ["e"]) == [("e",)]
    assert run.alone_beside_eager("e", ["a"]) == [("a",)]
    found = here("jit", "slow")
    assert [set(record.modes) for record in found.processes] == [{"toy-eager", "toy-jit"}, {"toy-eager", "toy-slow"}]
    assert [mode.answer for mode in found.modes] == [None, "unclear", "unclear"]
    assert found.modes[2].ratio.estimate > 1.5


def test_a_mode_that_is_slower_never_pays():
    slow = result(2e-3)
    assert slow.modes[1].pays_from is None
    assert repr(slow).startswith("Do not compile it: jit, the fastest compiled mode, takes 2×")
    assert [line.split()[-1] for line in repr(slow).splitlines() if line.startswith("jit") and "×" in line] == ["never"]
    assert slow.exit_code == 0


@pytest.mark.parametrize(
    ("interval", "answer", "said"),
    [
        (Interval(0.8, 0.7, 0.9), "faster", "Compile it, with jit"),
        (Interval(1.06, 1.01, 1.14), "no faster", "Do not compile it: jit"),
        (Interval(1.0, 0.99, 1.01), "no faster", "Do not compile it: jit"),
        (Interval(1.2, 1.1, 1.3), "slower", "Do not compile it: jit"),
        (Interval(1.0, 0.8, 1.2), "unclear", "Cannot tell whether to compile it: jit"),
    ],
)
def test_what_is_no_faster_is_an_answer_even_where_it_may_be_slower(interval, answer, said, monkeypatch):
    monkeypatch.setattr(modes, "_ratio", lambda *_: interval)
    found = result(0.9e-3)
    assert found.modes[1].answer == answer
    assert repr(found).startswith(said)
    assert found.exit_code == (3 if answer == "unclear" else 0)


def test_the_fastest_mode_is_named_and_of_those_that_tie_the_one_that_pays_first():
    def mode(name, low, high, pays_from):
        return Mode(name, "ok", None, 1.0, ratio=Interval((low + high) / 2, low, high), pays_from=pays_from)

    first, later = mode("first", 0.5, 0.6, 100), mode("later", 0.45, 0.55, 900)
    assert modes.best([first, later]) is first
    assert modes.best([first, mode("far", 0.2, 0.3, 900)]).name == "far"
    assert modes.best([mode("slow", 1.2, 1.3, None)]) is None
    assert modes.best([later, mode("never", 0.45, 0.55, None)]) is later


def test_no_line_is_wider_than_a_terminal_of_80_columns():
    assert max(map(len, repr(result(0.5e-3)).splitlines())) <= 80
    assert max(map(len, repr(here("wrong", "refusing", "slow")).splitlines())) <= 80


def test_reasons_that_differ_in_numbers_alone_are_one_and_modes_share_a_line():
    reasons = {"a": {"size 3, not 4\nmore": 1, "size 4, not 5": 1, "a new type": 1}, "b": {"size 3, not 4": 2}}
    assert list(show._each("compiled", reasons)) == [
        "a (2 ×), b (2 ×) compiled: size 3, not 4",
        "a compiled: a new type",
    ]


def test_the_first_pass_ends_at_its_limit():
    question = replace(asked(), limit=0.0)
    found = run.here(question, toy_framework.loss, toy_framework.calls())
    assert found.modes[1].status == "limit"
    assert found.modes[1].reason.startswith("1 of 3 calls in")
    assert found.exit_code == 5
    assert repr(found).startswith("Nothing was timed: eager: 1 of 3 calls in 0 s; jit: 1 of 3 calls in 0 s.")


def test_a_process_that_compiles_too_long_is_ended_and_leaves_what_it_came_to(tmp_path):
    program = """
import sys, time
from compare.own.frameworks.measure import in_mode
from compare.own.frameworks.notes import Notes
notes = Notes(sys.argv[1])
with notes.ended_after(0.2, 8):
    notes.add(0.125)
    time.sleep(60)
"""
    file = str(tmp_path / "notes")
    done = subprocess.run([sys.executable, "-c", program, file], check=False)
    assert done.returncode == -signal.SIGALRM
    assert Notes(file).read() == (8, [0.125])
    assert Notes(str(tmp_path / "none")).read() == (0, [])
    with Notes(file).ended_after(0.01, 3):
        pass
    time.sleep(0.05)  # and nothing ends this process
    assert Notes(file).read() == (3, [])


class Workers:
    """Stands for the processes: answers the gate, and ends those that a test names."""

    def __init__(self, monkeypatch, ended):
        self.ended = ended
        self.jobs = []
        monkeypatch.setattr(run, "ask", self)

    def __call__(self, job, limit, heard):
        self.jobs.append((job.kind, job.arms))
        if (job.kind, job.arms[-1]) in self.ended:
            Path(job.asked["notes"]).write_text("8\n1.5\n2.5\n", "utf-8")
            raise OverrunError("ended", f"made call 3{in_mode(job.arms[-1])}")
        if job.kind == run.GATE:
            return FrameworkGate("1.0", False, {arm: GateMode("ok", error=0.0) for arm in job.arms})
        return FrameworkTime(job.process, 8, {arm: timed(1.0, 1e-3) for arm in job.arms})


def test_a_mode_that_was_ended_at_its_limit_says_how_far_it_came_and_is_not_asked_again(monkeypatch):
    workers = Workers(monkeypatch, {(run.TIMES, "toy-slow")})
    found = run.in_workers(asked("jit", "slow"), 3, Reporter())
    eager, jit, slow = found.modes
    assert (slow.status, slow.reason, slow.first) == ("limit", "2 of 8 calls in 300 s", 1.5)
    assert (slow.call, slow.epoch) == (None, None)
    assert eager.call == jit.call == pytest.approx(1e-3)
    assert [arms for kind, arms in workers.jobs if kind == run.TIMES].count(("toy-eager", "toy-slow")) == 1
    assert found.exit_code == 0
    assert "slow was not timed, limit: 2 of 8 calls in 300 s" in repr(found)


def test_a_gate_that_was_ended_leaves_the_other_modes_and_eager(monkeypatch):
    Workers(monkeypatch, {(run.GATE, "toy-slow"), (run.GATE, "toy-jit")})
    eager, jit, slow = run.in_workers(asked("jit", "slow"), 3, Reporter()).modes
    assert (jit.status, slow.status, jit.reason) == ("limit", "limit", "2 of 8 calls in 300 s")
    assert eager.call is not None


def test_a_framework_that_compiles_nothing_says_so():
    assert repr(here("eager")).startswith("There is no mode but eager.")


def test_what_is_wrong_with_the_users_file_ends_the_question(monkeypatch):
    monkeypatch.setattr(run, "ask", lambda *_: FunctionFault("mine.py:3: no", InputsError.exit_code))
    with pytest.raises(InputsError, match=r"mine\.py:3: no"):
        run.in_workers(asked("jit"), 3, Reporter())


def test_what_is_asked_survives_its_way_to_a_worker():
    question = Asked("toy", "f.py:loss", "f.py:inputs", ARMS, 3, 0.5, 7.0)
    assert Asked.from_dict(json.loads(json.dumps(question.to_dict()))) == question


def test_modes_are_those_of_the_framework():
    toy = frameworks.named("toy")
    assert arms_of(toy, ()) == ARMS
    assert arms_of(toy, ("slow", "eager")) == ("toy-eager", "toy-slow")
    with pytest.raises(InputsError, match="Toy has no mode 'jti'; did you mean 'jit'"):
        arms_of(toy, ("jti",))
    with pytest.raises(UnknownNameError, match="no framework is named 'tyo'; did you mean 'toy'"):
        frameworks.named("tyo")


def test_a_framework_that_is_not_there_says_how_to_install_it(monkeypatch):
    monkeypatch.setattr(toy_framework.Toy, "module", "no_such_module")
    with pytest.raises(InputsError, match="Toy is not installed; pip install 'numpy>=1'"):
        asked()


def test_the_result_is_written_and_read_as_json(tmp_path):
    path = result(0.5e-3).save(tmp_path / "out")
    assert path.read_text("utf-8").startswith("Compile it, with jit: ")
    document = json.loads((tmp_path / "out" / "comparison.json").read_text("utf-8"))
    assert [mode["name"] for mode in document["modes"]] == list(ARMS)
    assert document["records"][0]["kind"] == "framework gate"
    with pytest.raises(CompareError, match="not empty"):
        result(0.5e-3).save(tmp_path / "out")


def test_compare_takes_a_framework():
    found = compare.compare(toy_framework.loss, toy_framework.calls(), framework="toy", seconds=0.02)
    assert isinstance(found, Result)
    assert "an interval needs 3 processes" in " ".join(repr(found).split())


def test_the_command_refuses_frameworks_that_it_does_not_know():
    done = CliRunner().invoke(graphduel, ["compare", "f.py:loss", "--framework", "tou"])
    assert done.exit_code == 2
    assert "no framework is named 'tou'; did you mean 'toy'?" in done.output


@pytest.mark.parametrize("option", ["--no-gradient", "--allow-effects"])
def test_options_of_the_engines_are_refused_with_a_framework(option):
    done = CliRunner().invoke(graphduel, ["compare", "f.py:loss", "--framework", "toy", option])
    assert done.exit_code == 2
    assert "work with graphduel's engines" in done.output


def test_the_command_answers_in_workers(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    file = tmp_path / "mine.py"
    file.write_text("""
import numpy as np, autograd.numpy as anp
def loss(w, x): return anp.sum(anp.tanh(x * w))
inputs = [(np.ones(3), np.ones((2, 3)))]
""")
    monkeypatch.setattr(frameworks, "_ADAPTERS", {"autograd": "compare.engines.autograd:Autograd"})
    asked = ["compare", f"{file}:loss", "--framework", "autograd", "--processes", "1", "--seconds", "0.05"]
    done = CliRunner().invoke(graphduel, [*asked, "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    assert "in HIPS autograd" in done.output
    assert "agree with float64 and eager to 0.0" in done.output
    assert (tmp_path / "out" / "comparison.json").exists()


@pytest.mark.parametrize(
    ("text", "code", "told"),
    [
        ("def loss(w, x):\n    return w @ x\nbatches = [(np.ones(3), np.ones(4))]", 1, "mine.py:3: ValueError: "),
        ("def loss(w, x):\n    return w @ x", 2, "needs inputs to be called with: write inputs = [(params, x), ...]"),
        ("def loss(w):\n    return w @ w\ninputs = [np.ones(3)]", 2, "call 0 is a ndarray; each is the tuple of the"),
        ("def loss(w):\n    return w @ w\ndef inputs():\n    return 1 / 0", 1, "mine.py:5: ZeroDivisionError"),
        ("def los(w):\n    return w @ w", 2, "defines no 'loss'; did you mean 'los'?"),
    ],
)
def test_what_is_wrong_with_a_file_is_told_with_its_line(tmp_path, monkeypatch, text, code, told):
    (tmp_path / "mine.py").write_text(f"import numpy as np\n{text}\n", "utf-8")
    monkeypatch.setattr(frameworks, "_ADAPTERS", {"autograd": "compare.engines.autograd:Autograd"})
    asked = ["compare", f"{tmp_path / 'mine.py'}:loss", "--framework", "autograd", "--processes", "1"]
    done = CliRunner().invoke(graphduel, asked)
    assert done.exit_code == code, done.output
    assert told in done.output


def test_a_module_runs_again_over_the_functions_of_a_framework():
    seen = []

    def tanh(x):
        seen.append("tanh")
        return x

    module = Loader("spied", {"tanh": tanh}).load("compare.workloads.rnn_text")
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
