"""A user's function in a framework: the gate, first calls and what compiled them, ratios, and when compiling pays."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner

import compare
from compare import frameworks
from compare.cli.command import graphduel
from compare.errors import CompareError, InputsError, UnknownNameError
from compare.frameworks.own import run, show
from compare.frameworks.own.asked import Asked, arms_of
from compare.frameworks.own.result import Mode, Result
from compare.frameworks.own.schema import FrameworkGate, FrameworkTime, GateMode, Made, TimedMode
from compare.frameworks.source import Loader
from compare.stats import Interval
from tests.helpers import toy_framework

ARMS = ("toy-eager", "toy-jit")


@pytest.fixture(autouse=True)
def toy(monkeypatch):
    monkeypatch.setattr(frameworks, "_ADAPTERS", {"toy": "tests.helpers.toy_framework:Toy"})
    frameworks.named.cache_clear()
    yield
    frameworks.named.cache_clear()


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
    text = show.plain(here("wrong", "refusing"))
    assert "toy-refusing: not timed, refused: NotImplementedError: cannot be compiled: it prints" in text
    assert "disagree with float64 and eager: toy-wrong" in text


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
    assert "compiling pays after" in show.plain(result(0.5e-3))
    assert result(0.5e-3).exit_code == 0


def test_each_compiled_mode_shares_its_process_with_eager_alone():
    assert run.alone_beside_eager("e", ["e", "a", "b"]) == [("e", "a"), ("e", "b")]
    assert run.alone_beside_eager("e", ["e"]) == [("e",)]
    assert run.alone_beside_eager("e", ["a"]) == [("a",)]
    found = here("jit", "slow")
    assert [set(record.modes) for record in found.processes] == [{"toy-eager", "toy-jit"}, {"toy-eager", "toy-slow"}]
    assert {mode.name: mode.side for mode in found.modes} == dict.fromkeys(
        ("toy-eager", "toy-jit", "toy-slow"), "unclear"
    )
    assert found.modes[2].ratio.estimate > 1.5


def test_a_mode_that_is_slower_never_pays():
    slow = result(2e-3)
    assert slow.modes[1].pays_from is None
    assert "toy-jit: compiling never pays, it is slower: 2" in show.plain(slow)


@pytest.mark.parametrize(
    ("interval", "said"),
    [
        (Interval(1.06, 1.01, 1.14), "compiling never pays, it is no faster"),
        (Interval(1.0, 0.99, 1.01), "compiling never pays, it is no faster"),
        (Interval(1.2, 1.1, 1.3), "compiling never pays, it is slower"),
        (Interval(1.0, 0.8, 1.2), "cannot tell whether compiling pays"),
    ],
)
def test_what_is_no_faster_does_not_pay_even_where_it_may_be_slower(interval, said):
    eager, jit = (Mode(name, "ok", None, 1.0, call=1e-3, epoch=1.0) for name in ARMS)
    assert show._answer(replace(jit, ratio=interval), eager).startswith(said)


@pytest.mark.parametrize(("side", "code"), [("below", 0), ("unclear", 3)])
def test_the_exit_code_says_whether_times_can_be_told_apart(side, code, monkeypatch):
    monkeypatch.setattr(Mode, "side", side)
    assert result(1e-3).exit_code == code


def test_the_first_pass_ends_at_its_limit():
    question = replace(asked(), limit=0.0)
    found = run.here(question, toy_framework.loss, toy_framework.calls())
    assert found.modes[1].status == "limit"
    assert found.modes[1].reason.startswith("1 of 3 calls in")
    assert found.exit_code == 5


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
    assert "compiling pays after" in path.read_text("utf-8").replace("\n  ", " ")
    document = json.loads((tmp_path / "out" / "comparison.json").read_text("utf-8"))
    assert [mode["name"] for mode in document["modes"]] == list(ARMS)
    assert document["records"][0]["kind"] == "framework gate"
    with pytest.raises(CompareError, match="not empty"):
        result(0.5e-3).save(tmp_path / "out")


def test_compare_takes_a_framework():
    found = compare.compare(toy_framework.loss, toy_framework.calls(), framework="toy", seconds=0.02)
    assert isinstance(found, Result)
    assert "toy-jit" in repr(found)


def test_the_command_refuses_frameworks_that_it_does_not_know():
    done = CliRunner().invoke(graphduel, ["compare", "f.py:loss", "--framework", "tou"])
    assert done.exit_code == 2
    assert "no framework is named 'tou'; did you mean 'toy'?" in done.output


def test_the_command_answers_in_workers(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    file = tmp_path / "mine.py"
    file.write_text("""
import numpy as np, autograd.numpy as anp
def loss(w, x): return anp.sum(anp.tanh(x * w))
inputs = [(np.ones(3), np.ones((2, 3)))]
""")
    monkeypatch.setattr(frameworks, "_ADAPTERS", {"autograd": "compare.frameworks.autograd:Autograd"})
    asked = ["compare", f"{file}:loss", "--framework", "autograd", "--processes", "1", "--seconds", "0.05"]
    done = CliRunner().invoke(graphduel, [*asked, "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    assert "loss in HIPS autograd" in done.output
    assert "agree with float64 and eager to 0.0 units" in done.output
    assert (tmp_path / "out" / "comparison.json").exists()


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
