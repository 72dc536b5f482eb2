"""Advice: the arithmetic of break-even, what is refused, and the command."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import compare
import graphs as g
from compare import advice
from compare.advice import counting, prediction
from compare.advice.prediction import save
from compare.engines import OWN, find_engine
from compare.engines.graphduel.counting import output_of
from compare.errors import InputsError
from compare.subjects.case import differentiates
from graphs.errors import ShapeError
from tests.helpers.fake_workloads import BRANCH, STREAM
from tests.helpers.prices import MODES, US, X, advise, costs, program, seconds, square_sum


@pytest.mark.parametrize(
    ("compile", "dynamic", "static", "runs"),
    [(10.0, 3.0, 1.0, 5), (10.0, 3.5, 0.5, 4), (0.0, 2.0, 1.0, 1), (10.0, 1.0, 1.0, None), (10.0, 1.0, 2.0, None)],
)
def test_a_compilation_is_paid_back_by_what_each_call_saves(compile, dynamic, static, runs):
    assert prediction.break_even(compile, dynamic, static) == runs


@given(st.floats(1e-6, 1e3), st.floats(1e-6, 1.0), st.floats(1e-6, 1.0))
def test_from_break_even_on_compiling_has_cost_no_more(compile, dynamic, static):
    runs = prediction.break_even(compile, dynamic, static)
    if runs is None:
        assert dynamic <= static
    else:
        assert compile + runs * static <= runs * dynamic * (1 + 1e-9)
        assert runs == 0 or compile + (runs - 1) * static >= (runs - 1) * dynamic * (1 - 1e-9)


@pytest.mark.parametrize(
    ("ratio", "said"),
    [
        (0.25, "static-exact"), (0.79, "static-exact"), (0.8, "too close to call"), (1.0, "too close to call"),
        (1.25, "too close to call"), (1.3, "dynamic"),
    ],
)  # fmt: skip
def test_inside_the_tie_zone_nobody_wins(ratio, said):
    assert prediction.winner_of(ratio, MODES) == said


def test_the_engine_with_less_overhead_is_advised_with_reasons():
    priced = costs(recorded_ops=3 * US, static_compilations=1e-3)
    said = advice.advise(square_sum, [(X,)], costs=priced)
    assert said.winner == "static-exact"
    assert said.parts[0]["recorded ops"] == pytest.approx(3 * US * said.ops)
    assert said.eager == pytest.approx(sum(said.parts[0].values()))
    assert said.break_even == int(np.ceil(1e-3 / (said.eager - said.compiled)))
    assert said.confidence == pytest.approx(prediction.probability(said.ratio, prediction.TINY))
    assert re.search(r"dynamic takes \S+ µs a call: 7\d% for recorded ops, ", said.reasons[0])
    assert f"paid for itself after {said.break_even:,} calls" in said.reasons[2]
    assert json.loads(json.dumps(said.to_dict()))["tie_zone"] == [0.8, 1.25]


def test_equal_engines_are_too_close_to_call():
    found = advice.advise(lambda x, y: x @ y, [(np.ones((4, 4)), np.ones((4, 4)))], costs=costs())
    assert found.ratio == 1.0
    assert "Too close to call" in str(found)
    assert found.break_even is None


@pytest.mark.parametrize(
    ("eager", "compile", "said", "never"),
    [
        (1.1, 1.0, ["Too close to call", "static-exact is faster with probability 68%", "call whether"], "after"),
        (0.9, 1.0, ["Too close to call", "dynamic is faster with probability 69%"], "after"),
        (2.0, 1.0, ["Take static-exact", "faster with probability 99%", "paid for itself after 1 call "], "1 calls"),
        (2.0, 1.5, ["Take static-exact", "paid for itself after 2 calls"], "Too close"),
        (0.5, 1.0, ["Take dynamic", "dynamic is faster with probability 99%", "never pays for itself"], "after"),
    ],
)  # fmt: skip
def test_the_words_say_what_the_numbers_do(eager, compile, said, never):
    told = prediction.predict(seconds(), program(eager, 1.0, compile))
    words = " ".join(str(told).split()) + " "
    assert [part for part in said if part not in words] == []
    assert never not in words
    assert (told.break_even is None) == (told.winner != "static-exact")
    assert max(map(len, str(told).splitlines())) < 80


def test_a_function_is_traced_and_not_run():
    vast = np.broadcast_to(np.float32(0.5), (1 << 20, 1 << 20))  # of 4 TiB, if anything were computed of it
    found = advice.advise(lambda x: g.sum(g.tanh(x) * 2), [(vast,)], costs=costs())
    assert found.ran is False
    assert "traced your function and did not run it" in str(found)
    assert found.ops > 4  # gradients and all


def test_a_function_that_branches_on_values_is_converted_and_never_run():
    def f(x):
        return g.sum(g.tanh(x) * x) if g.sum(x) > 0 else g.sum(-x)

    vast = np.broadcast_to(np.float32(0.5), (1 << 20, 1 << 20))  # of 4 TiB, if anything were computed of it
    found = advice.advise(f, [(vast,)], costs=costs())
    assert (found.refused, found.ran) == (None, False)
    straight = advice.advise(lambda x: g.sum(g.tanh(x) * x), [(vast,)], costs=costs())
    assert 0 < found.ops - straight.ops <= 5  # the condition, and that once; the longest branch, once
    said = " ".join(str(found).split())
    assert "the function branches on values: static takes it with convert=True" in said
    assert "traced your function and did not run it" in said
    assert "branches on values" not in str(straight)


def test_a_loop_whose_length_only_a_run_knows_is_priced_at_ten_turns_in_both_engines():
    def f(x):
        while g.sum(x * x) > 1:
            x = x * 0.5
        return g.sum(x)

    found = advice.advise(f, [(X,)], costs=costs())
    assert found.ops > 50
    assert found.compiled / US > 20


def test_a_function_that_does_not_convert_is_refused():
    def f(x):
        return g.sum(x) * len(repr(float(g.sum(x))))

    found = advice.advise(f, [(X,)], costs=costs())
    assert (found.winner, found.eager, found.compiled, found.ran, found.ratio) == ("dynamic", None, None, False, None)
    assert "ControlFlowError" in found.refused
    said = " ".join(str(found).split())
    assert said.startswith("Take dynamic: static-exact refuses the function.")
    assert "this prediction traced your function on shapes and did not run it" in said
    json.dumps(found.to_dict(), allow_nan=False)


def test_a_function_that_is_wrong_says_so_itself():
    with pytest.raises(ShapeError, match="matmul"):
        advice.advise(lambda x: g.sum(x @ np.ones((7, 2), np.float32)), [(X,)], costs=costs())


def test_a_workload_that_branches_on_values_is_run_to_know_its_ops():
    case = replace(BRANCH.case("small"), branches=True)
    said = prediction.predict(costs(), counting.count_programs(find_engine(OWN), MODES, "a branch", [case]))
    assert said.ran is True
    assert "this prediction ran your function once for each call" in " ".join(str(said).split())


def test_gradients_are_taken_where_a_run_would_say_so():
    for f in (g.sum, lambda x: x * 2, lambda x: (g.sum(x), 1.0), lambda _: 2.0, g.argmax):
        for x in (X, np.arange(3)):
            assert differentiates(f, (x,), None, output_of) is differentiates(f, (x,), None)


def test_a_stream_compiles_once_for_each_shape():
    said = prediction.predict(
        costs(static_compilations=1.0),
        counting.count_programs(find_engine(OWN), MODES, "a stream", [STREAM.case("small")]),
    )
    assert (said.shapes, said.compile) == (3, 3.0)
    assert "each new shape is priced as a compilation" in said.reasons[-1]


def test_inputs_that_cannot_be_used_are_refused():
    with pytest.raises(InputsError, match="holds no NumPy array"):
        compare.advise(square_sum, [(1.0,)], costs=costs())


MINE = """
import numpy as np, graphs as g
def loss(w, x):
    return g.mean(g.tanh(x @ w))
def broken(w, x):
    raise ValueError("mine")
inputs = [(np.ones((3, 2), np.float32), np.ones((4, 3), np.float32))]
"""


def test_the_command_advises_on_a_function_and_writes_json(tmp_path, saved):
    file, out = tmp_path / "mine.py", tmp_path / "advice.json"
    file.write_text(MINE)
    done = advise(f"{file}:loss", "--calibration", saved, "--json", out)
    assert done.exit_code == 0, done.output
    assert "faster than dynamic by prediction" in " ".join(done.stdout.split())
    assert json.loads(out.read_text())["winner"] == "static-exact"


def test_a_function_is_needed():
    done = advise()
    assert done.exit_code == 2
    assert "Missing argument 'FILE.py:FUNCTION'" in " ".join(done.stderr.split())


@pytest.mark.slow
def test_an_error_of_the_functions_own_names_its_line(tmp_path, saved):
    file = tmp_path / "mine.py"
    file.write_text(MINE)
    done = advise(f"{file}:broken", "--calibration", saved)
    assert done.exit_code == 1
    assert "mine.py:6: ValueError: mine" in done.stderr


def test_a_foreign_calibration_ends_the_command(tmp_path):
    path = tmp_path / "costs.json"
    save(costs(), path)
    done = advise("x.py:f", "--calibration", path)
    assert done.exit_code == 2
    assert "calibrated elsewhere" in done.stderr
