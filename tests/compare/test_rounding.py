"""What rounding alone does to a step: measured by nudges, and the only excuse that the gate has for an array."""

from types import SimpleNamespace

import numpy as np
import pytest

import graphs as g
from compare import engines
from compare.engines.nudge import ULPS, nudging, rounding_anew
from compare.instruments import judge, parity, references, rounding
from compare.instruments.parity import parity_mode
from compare.instruments.rounding import Difference, Moves
from compare.instruments.standard import Standard
from compare.own import run
from compare.records.cells import Compilations, Parity, ParityRow
from compare.records.record import records_of
from compare.report import compiled
from compare.workloads import Case
from tests.helpers import mutants, toy_framework
from tests.helpers.fake_workloads import job
from tests.helpers.plans import plan_of

ROWS = 512


def loss(params, x, y):
    """A layer whose gradient jumps where a row of `x` is on its edge, and one that is smooth."""
    return g.mean(g.relu(x @ params["edge"])) + g.mean(g.square(y @ params["plain"]))


def inputs(on_edge):
    """Parameters and a call; the last row is orthogonal to `edge`, but for rounding, where it is to lie `on_edge`."""
    rng = np.random.default_rng(0)
    edge, x, y = (rng.normal(size=shape) for shape in (8, (ROWS, 8), (ROWS, 8)))
    x[-1] -= edge * (x[-1] @ edge / (edge @ edge) - (0 if on_edge else 1))
    params = {"edge": edge.astype("f4"), "plain": rng.normal(size=8).astype("f4")}
    return params, x.astype("f4"), y.astype("f4")


def across(gradients, x):
    """What a mode gives that has the last row on the other side."""
    off = {name: np.array(gradient) for name, gradient in gradients.items()}
    side = 1 if np.abs(off["edge"] - _without(x)).max() < 1e-6 else -1
    off["edge"] = off["edge"] + side * x[-1] / ROWS
    return off


def _without(x):
    edge = inputs(True)[0]["edge"]
    return (x[:-1] * (x[:-1] @ edge > 0)[:, None]).sum(0) / ROWS


def scaled(name):
    """What a mode gives whose gradient of a parameter is wrong by one part in a hundred."""

    def change(gradients, _x):
        return {**gradients, name: gradients[name] * np.float32(1.01)}

    return change


def of_framework(monkeypatch, change, on_edge):
    """The gate of a mode of a framework, as a user's function meets it."""
    build = toy_framework.Toy.build

    def built(self, mode, function, argnum):
        step = build(self, mode, function, argnum)
        if self.traits(mode).name != "jit":
            return step
        return mutants.altered(step, lambda value, gradients: (value, change(gradients, inputs(on_edge)[1])))

    monkeypatch.setattr(toy_framework.Toy, "build", built)
    asked = plan_of("toy", "f.py:loss", "", ("eager", "jit"), seconds=0.02)
    result = run.here(asked, loss, [inputs(on_edge)])
    (record,), (told,) = records_of(result.records, Parity), records_of(result.records, Compilations)
    assert record.modes["eager"].status == "ok"
    assert (told.conditioning > 1e-3) == on_edge
    return record.modes["jit"], " ".join(repr(result).split())


def of_ours(monkeypatch, change, on_edge):
    """The gate of our own engines."""
    params, *call = inputs(on_edge)
    case = Case(loss, params, (tuple(call),), lengths=(ROWS,))
    honest = engines.step

    def build(name, case):
        step = honest(name, case)
        if name == "static-exact":
            step.built = mutants.altered(step.built, lambda value, gradients: (value, change(gradients, call[0])))
        return step

    monkeypatch.setattr(engines, "step", build)
    row = parity.check(job("parity", "edge"), case, ("dynamic", "static-exact")).modes["static-exact"]
    return row, str(row.reason)


GATES = pytest.mark.parametrize("gate", [of_framework, of_ours])
pytestmark = pytest.mark.usefixtures("toy")


@GATES
def test_a_gradient_that_jumps_by_rounding_alone_is_admitted_and_the_answer_says_it(monkeypatch, gate):
    row, said = gate(monkeypatch, across, on_edge=True)
    assert row.status == "ok"
    if gate is of_framework:  # float64 has the row on that side too, which decides
        assert row.gradient_error < 1e-5
        assert "This step is ill-conditioned: eager itself is off by 0.0" in said
        return
    assert 1e-3 < row.gradient_error <= row.tolerance < 1
    assert row.reason.startswith("ill-conditioned: rounding alone moves its result by up to")
    assert "(1 of 3 arrays by more than 0.0001)" in row.reason
    assert row.reason.endswith(" times as far off in these directions, and by 0.0001 beside them")
    assert "ill-conditioned" in said


@pytest.mark.parametrize(("conditioning", "unseen"), [(0.5, 0.2), (0.01, 0.04), (0.0, 0.0)])
def test_the_answer_says_that_a_step_computes_in_half_precision_however_far_rounding_moves_it(conditioning, unseen):
    rows = {mode: ParityRow("ok", None, 1e-6, None, 0.1, unseen=unseen) for mode in ("eager", "compile")}
    place = {"workload": "step", "size": "-", "eager": "eager"}
    told = Compilations(**place, version="2", modes={}, dtype="bfloat16", conditioning=conditioning)
    gate = Parity(**place, agree=True, modes=rows, same_graph=None, kernel_calls={})
    (said,) = [sentence for sentence in compiled.sentences([told, gate]) if "computes in bfloat16" in sentence]
    assert said.startswith("It computes" if conditioning < 0.1 else "This step computes in bfloat16, and is ill-")


@GATES
def test_the_same_error_on_a_step_that_rounding_does_not_move_is_a_fault(monkeypatch, gate):
    row, _ = gate(monkeypatch, across, on_edge=False)
    assert row.status == "disagree"
    assert row.reason.startswith("the gradient of `edge` in call 1 is off by")


@GATES
@pytest.mark.parametrize("name", ["edge", "plain"])
def test_a_wrong_gradient_of_one_part_in_a_hundred_is_a_fault(monkeypatch, gate, name):
    row, _ = gate(monkeypatch, scaled(name), on_edge=False)
    assert row.status == "disagree"
    assert row.reason == f"the gradient of `{name}` in call 1 is off by 0.01, allowed 0.0001"


def test_what_rounding_does_not_move_is_judged_on_an_ill_conditioned_step_too(monkeypatch):
    def both(gradients, x):
        return scaled("plain")(across(gradients, x), x)

    row, _ = of_ours(monkeypatch, both, on_edge=True)
    assert row.status == "disagree"
    assert row.reason == "the gradient of `plain` in call 1 is off by 0.01, allowed 0.0001"


@GATES
@pytest.mark.parametrize("honest", [lambda gradients, _x: gradients, across], ids=["same", "across"])
def test_what_rounding_moves_is_judged_in_the_directions_in_which_it_does_not(monkeypatch, gate, honest):
    """A hundredth of the gradient is less than rounding moves it by, and is elsewhere than rounding moves it."""

    def wrong(gradients, x):
        return scaled("edge")(honest(gradients, x), x)

    row, _ = gate(monkeypatch, wrong, on_edge=True)
    assert row.gradient_error < row.tolerance
    assert row.status == "disagree"
    assert row.reason.startswith("the gradient of `edge` in call 1 is off by 0.0")
    assert row.reason.endswith(" in directions in which rounding does not move it, allowed 0.0001")


# Moves, on made-up results


SIZES = (40, 6, 900)
PLAIN = (np.float32(1), [np.linspace(-1, 1, size, dtype=np.float32) for size in SIZES])


def moved(*directions, noise=0.0, seed=0):
    """The result, moved by these directions, each an array for each gradient, and by noise of each element."""
    rng = np.random.default_rng(seed)
    gradients = [x + noise * rng.choice([-1, 1], x.shape) for x in PLAIN[1]]
    return PLAIN[0], [sum(arrays, x) for x, *arrays in zip(gradients, *directions, strict=True)]


def direction(seed, size=0.03):
    rng = np.random.default_rng(seed)
    return [size * rng.uniform(-1, 1, count) for count in SIZES]


REFERENCE = Standard(PLAIN)


def moves(*results):
    return Moves([REFERENCE.less_plain(result) for result in results])


def verdict(result, of, reference=REFERENCE):
    measured = of if callable(of) else lambda *_: of
    return judge.judge_calls({0: reference.less(result)}, {0: reference}, measured)


A, B, C = map(direction, (1, 2, 3))
TURNS = moves(moved(A), moved(A, B), moved(), moved(B), moved(A), moved(A, B), moved(), moved(B))
"""Two ReLUs, each of which falls on its other side in several of eight nudges."""


@pytest.mark.parametrize("directions", [(A,), (B,), (A, B), ([-x for x in A],)], ids=["a", "b", "both", "back"])
def test_a_sum_of_moves_is_what_rounding_does(directions):
    assert verdict(moved(*directions), TURNS).fault is None


@pytest.mark.parametrize("place", range(len(SIZES)))
@pytest.mark.parametrize("directions", [(), (A,), (A, B)], ids=["none", "a", "both"])
def test_one_array_that_is_scaled_is_not(directions, place):
    value, gradients = moved(*directions)
    gradients[place] = gradients[place] * 1.01
    fault = verdict((value, gradients), TURNS).fault
    assert fault
    assert "in directions in which rounding does not move it, allowed 0.0001" in fault


def test_nor_is_one_array_that_moves_without_the_others():
    value, gradients = moved(A)
    assert "in directions in which" in verdict((value, [gradients[0], *PLAIN[1][1:]]), TURNS).fault


def test_a_direction_that_no_nudge_meets_is_not_excused():
    assert "in directions in which" in verdict(moved(C), TURNS).fault


def test_one_rare_move_excuses_no_other():
    """Beside the others it is as large as it is, and the median does not see it."""
    assert verdict(moved(C), moves(moved(A), moved(B), *[moved()] * 6)).fault
    assert verdict(moved(A), moves(moved(A), moved(B), *[moved()] * 6)).fault is None


def test_more_nudges_are_made_before_a_direction_is_refused():
    """A sum of moves that few nudges do not tell apart."""
    asked = []

    def several(_call, nudges):
        asked.append(nudges)
        return moves(*[moved(A), moved(B, C)] * 4, *[moved(B)] * (nudges - 8))

    assert verdict(moved(A, C), several).fault is None
    assert asked == [8, 8, 64]
    fault = verdict(moved([3 * x for x in PLAIN[1]]), several).fault
    assert fault.startswith("the gradient of `[1]` in call 1 is off by 3, allowed 0.4")
    assert asked == [8, 8, 64, 8]  # which no nudge could explain


def test_what_hardly_moves_explains_nothing_however_often_it_is_taken():
    tiny = moves(*(moved(A, direction(seed, 1e-5)) for seed in range(8)))
    assert "in directions in which" in verdict(moved(A, direction(3, 1e-2)), tiny).fault
    assert verdict(moved(A, direction(3, 5e-5)), tiny).fault is None


def test_elements_that_rounding_moves_each_for_itself_may_be_so_much_further_off():
    """As what Adam makes of gradients that are 0 but for rounding: no nudge tells of another."""
    each = moves(*(moved(noise=0.01, seed=seed) for seed in range(8)))
    assert verdict(moved(noise=0.01, seed=99), each).fault is None
    assert " is off by 0.2, allowed 0.1" in verdict(moved(noise=0.2, seed=99), each).fault


def test_a_large_array_is_looked_at_in_some_of_its_elements():
    x = np.ones(10 * rounding.PLACES, np.float32)
    np.testing.assert_array_equal(rounding.apart(2 * x, x, 1.0), np.ones(rounding.PLACES))


def test_elements_that_are_not_finite_are_no_difference():
    x = np.array([1, np.inf, np.nan, 2], np.float32)
    np.testing.assert_array_equal(rounding.apart(x + np.float32([0, 0, 0, 1]), x, 2.0), [0, 0, 0, 0.5])


def test_what_rounding_moves_by_more_than_its_size_excuses_nothing():
    x, wide = np.ones(3, np.float32), Moves([Difference([0.0, np.inf], [np.empty(0)] * 2)])
    reference = Standard((1.0, x))
    wrong = (1.0, x * 1.5)
    assert verdict(wrong, wide, reference).fault == "the gradient in call 1 is off by 0.5, allowed 0.0001"
    assert verdict(wrong, Moves([reference.less_plain((1.0, x * 1.06))]), reference).fault is None


@pytest.mark.parametrize(("times", "faulty"), [(2.99, False), (3.02, True)])
def test_a_gradient_that_is_rounding_alone_may_be_three_times_as_far_from_wider_numbers_as_the_plain_mode(
    times, faulty
):
    """Where eager has twice the gradient that float64 has, beside an output that is right."""
    plain, exact = (1.0, np.full(3, 3e-8, np.float32)), (1.0, np.full(3, 1e-8))
    reference = Standard(plain, exact)
    measured = Moves([reference.less_exact(plain, exact)] * 8)
    result = (1.0, exact[1] + times * (plain[1] - exact[1]))
    assert bool(verdict(result, measured, reference).fault) is faulty
    lost = Standard((plain[1], ()), (exact[1], ()))
    assert verdict((result[1], ()), Moves([lost.less_exact(lost.plain, lost.exact)] * 8), lost).fault


def test_where_eager_gives_zeros_and_float64_numbers_that_rounding_does_not_explain_a_mode_gives_either():
    zeros, exact = np.zeros(3, np.float32), np.full(3, 3e-6)
    reference = Standard((1.0, zeros), (1.0, exact), apart=True)
    for right in (zeros, exact):
        assert verdict((1.0, right), Moves(), reference).fault is None
    assert (
        verdict((1.0, 1.01 * exact), Moves(), reference).fault
        == "the gradient in call 1 is off by 0.01, allowed 0.0001"
    )


def test_what_float64_computes_alike_is_not_rounded_anew():
    numbers = np.array([0.1, 1.0, 0.75, 0.0, np.inf], np.float32)
    wide = np.array([0.1, 1.0, 0.75, 0.0, np.inf])
    moved = rounding_anew(1)(numbers, wide, 2.0**-23)
    assert abs(moved[0] - numbers[0]) == np.spacing(numbers[0])
    np.testing.assert_array_equal(moved[1:], numbers[1:])
    assert rounding_anew(1)(wide, None, 2.0**-52)[2] != 0.75  # nothing is wider, and it is no whole number


def test_what_underflows_is_not_rounded_anew():
    numbers = np.array([0.0, 6e-8, 0.1], np.float16)
    moved = rounding_anew(1)(numbers, np.array([1e-9, 7e-8, 0.1]), 2.0**-10)
    np.testing.assert_array_equal(moved[:2], numbers[:2])
    assert moved[2] != numbers[2]


LARGE, SMALL = np.full(4, 0.3, np.float32), np.full(4, 2e-8, np.float32)


@pytest.mark.parametrize(
    ("wide", "nudged", "wrong", "faulty"),
    [
        ("float32", 3e-8, 5e-8, False),
        ("float32", 3e-8, 1e-5, True),
        ("float32", 0, 2e-10, True),
        ("float64", 0, 2e-10, True),
        ("float64", 0, 1e-12, False),
    ],
    ids=["rounding", "more than rounding", "1% of what is no rounding", "1% that wider numbers confirm", "0.01%"],
)
def test_an_array_is_judged_by_its_own_size_unless_it_is_zero_but_for_rounding(wide, nudged, wrong, faulty):
    """A gradient beside one that is much larger, as that of a bias before a BatchNorm, or a sum of Adam's."""
    exact = (1.0, [LARGE.astype(wide), SMALL.astype(wide)])
    reference = Standard((1.0, [LARGE, SMALL]), exact, judged=True)
    rng = np.random.default_rng(0)
    runs = [(1.0, [LARGE, SMALL + rng.choice([-1, 1], 4).astype("f4") * np.float32(nudged)]) for _ in range(8)]
    measured = Moves([reference.less_plain(run) for run in runs])
    assert bool(verdict((1.0, [LARGE, SMALL + np.float32(wrong)]), measured, reference).fault) is faulty


def test_wider_numbers_show_what_is_zero_but_for_rounding():
    reference = Standard((1.0, [LARGE, SMALL]), (1.0, [LARGE.astype("f8"), np.full(4, 1e-17)]))
    assert verdict((1.0, [LARGE, -SMALL]), Moves(), reference).fault is None
    assert verdict((1.0, [LARGE, -1000 * SMALL]), Moves(), reference).fault


def test_where_the_plain_mode_is_infinite_any_number_may_stand_and_the_answer_says_it():
    plain, exact = np.float32([1, np.inf, np.nan, 2]), np.array([1.0, 3, 4, 2])
    reference = Standard((plain, ()), (exact, ()), "float16")
    row = verdict((np.float32([1, 5, np.nan, 2]), ()), Moves(), reference)
    assert row.fault is None
    assert row.warning == (
        "the output in call 1 is NaN or infinite in 2 of 4 elements in the plain mode too: no size was compared there"
    )
    assert verdict((np.float32([1, np.nan, np.inf, 2]), ()), Moves(), reference).fault is None
    for wrong in ([1, 5, 4, 2.1], [np.nan, 5, 4, 2]):
        assert verdict((np.float32(wrong), ()), Moves(), reference).fault


def test_what_the_plain_mode_overflows_on_has_no_part_in_the_size_of_an_array():
    reference = Standard((np.float32([1, np.inf]), ()), (np.array([1.0, 1e42]), ()))
    assert verdict((np.float32([1.01, np.inf]), ()), Moves(), reference).fault.endswith(
        "is off by 0.01, allowed 0.0001"
    )


def test_a_mode_that_is_off_here_and_right_nearby_stands_on_the_other_side_of_a_jump():
    def judged(places):
        """A mode that is off from these numbers."""
        return judge.judge_calls(
            {0: REFERENCE.less(moved(C))},
            {0: REFERENCE},
            nearby=lambda _: judge.right_nearby(lambda k: k not in places),
        )

    assert judged({0}).fault is None
    assert "so that the step jumps here" in judged({0, 1, 3}).warning
    assert judged({0, 1, 2, 3}).fault
    assert judged(set()).fault  # and yet it was off


def test_without_moves_nothing_is_excused():
    assert verdict(moved(A), Moves()).fault.endswith("allowed 0.0001")


def test_a_nudge_from_which_the_step_raises_tells_nothing():
    assert verdict(moved(A), moves(moved(A), moved(A), (None, None))).fault.endswith("allowed 0.0001")


def test_another_structure_is_never_excused():
    reference = Standard((np.ones(2), ()))
    near = Moves([reference.less_plain((np.ones(2) * 1.05, ()))])
    fault = verdict(((np.ones(2),), ()), near, reference).fault
    assert fault == "the output in call 1 has another structure"


def test_rounding_is_not_measured_where_nothing_is_off():
    def never(*_):
        raise AssertionError("it was measured")

    row = verdict((1.0, PLAIN[1]), never)
    assert row == ((0.0, 0.0, None), 1e-4, None, None, 1e-4, {})


def test_a_nudge_moves_floats_that_are_no_whole_numbers():
    x = np.array([0.1, -0.25, 1.0, 0.0, -3.0, np.inf], np.float32)
    moved = nudging(1)(x)
    assert moved.dtype == x.dtype
    np.testing.assert_array_equal(moved[2:], x[2:])
    np.testing.assert_allclose(np.abs(moved[:2] / x[:2] - 1), ULPS * 2.0**-23, rtol=0.2)
    np.testing.assert_array_equal(nudging(1)(x), moved)
    np.testing.assert_array_equal(nudging(1)(np.arange(3)), np.arange(3))


# Arrays that are zero but for rounding


def of_noise(size, seed, one=1.0):
    """A gradient of ones, times `one`, and one that rounding alone makes."""
    noise = size * np.random.default_rng(seed).uniform(-1, 1, 40)
    return np.float32(1), [np.full(40, one, np.float32), noise.astype(np.float32)]


@pytest.mark.parametrize("exact", [None, (np.float64(1), [np.ones(40), np.zeros(40)])], ids=["alone", "float64"])
def test_an_array_that_is_zero_but_for_rounding_hides_no_error_in_others(exact):
    """Its limit is many times its own size, and so says nothing of what is seen elsewhere."""
    reference = Standard(of_noise(1e-3, 0), exact)
    measured = Moves([reference.less_plain(of_noise(1e-3, seed)) for seed in range(1, 9)])
    row = verdict(of_noise(1e-3, 20, one=1 + 5e-5), lambda *_: measured, reference)
    assert row.fault is None
    assert row.unseen <= row.allowed <= 2e-4
    assert row.errors[1] < 2e-3
    assert "[1]` in call 1 is zero but for rounding: errors there are not seen" in row.warning
    wrong = verdict(of_noise(1e-3, 20, one=1.001), lambda *_: measured, reference)
    assert "gradient of `[0]` in call 1 is off by 0.001" in wrong.fault


def test_what_rounding_moves_in_one_direction_is_seen_in_others_from_the_table_on():
    """A ReLU that turns moves all gradients by 3% in one direction; the same size elsewhere is an error."""
    row = verdict(moved(A), TURNS)
    assert row.fault is None
    assert row.allowed > 0.01
    assert row.unseen == pytest.approx(1e-4, rel=0.01)


# What the answer says of errors that are not seen


def of_unseen(unseen, coarsest=None, coarse=0, conditioning=0.0):
    """The sentences of an answer in whose mode errors below a size are not seen."""
    row = ParityRow("ok", None, 1e-6, 1e-6, max(unseen, 1e-4), None, unseen, coarsest, coarse)
    place = {"workload": "step", "size": "given"}
    told = Compilations(**place, version="", modes={}, dtype="float32", conditioning=conditioning)
    records = [Parity(**place, agree=True, modes={"jit": row}, same_graph=None, kernel_calls={}), told]
    return " ".join(compiled.agreement(records))


@pytest.mark.parametrize("share", np.linspace(0.011, 1, 40))
def test_the_tolerance_of_an_array_of_any_share_is_told_without_the_last_bit(share):
    x = np.full(4, share, np.float32)
    reference = Standard((1.0, [np.full(4, 100, np.float32), x]))
    row = verdict((1.0, [np.full(4, 100, np.float32), x]), Moves(), reference)
    assert row.unseen == row.allowed == 1e-4
    assert row.coarse == {}
    assert "errors below" not in of_unseen(row.unseen)


def test_the_answer_names_the_array_in_which_errors_are_not_seen():
    """A running mean with an error of its own beside a smooth output says nothing of that output."""
    mean, output = np.full(4, 1e-4, np.float32), np.ones(4, np.float32)
    states = ({"`mean`": mean, "`var`": output}, {"`mean`": mean * (1 + 3e-3), "`var`": output.astype("f8")})
    reference = Standard((output, None, states[0]), (output.astype("f8"), None, states[1]))
    row = verdict((output, None, states[0]), Moves(), reference)
    assert row.fault is None
    assert list(row.coarse) == ["`mean`"]
    assert row.unseen == row.coarse["`mean`"] > 5e-3
    told = parity_mode(row)
    assert (told.coarsest, told.coarse) == ("`mean`", 1)


def test_the_sentence_on_errors_that_are_not_seen_says_where():
    assert "errors below 0.2 may not be seen in `mean`, nor in 2 more arrays" in of_unseen(0.2, "`mean`", 3, 0.1)
    assert "errors below 0.0015 of an array's size are not seen in `mean`." in of_unseen(0.0015, "`mean`", 1)


@pytest.mark.parametrize(("seconds", "tried"), [(0.0, [1, 8, 64, 1, 8]), (2.0, [1, 8, 1, 8]), (20.0, [1, 1])])
def test_nudges_that_would_take_longer_than_a_minute_are_not_tried(monkeypatch, seconds, tried):
    made = []
    alone, moved = SimpleNamespace(own=[1.0], tolerance=1e-5), SimpleNamespace(sizes=[0.0])
    looked = SimpleNamespace(_dtype="float32", _move_references=lambda _, nudges: made.append(nudges) or [moved])
    monkeypatch.setattr(references, "monotonic", lambda: seconds * sum(made))
    assert not references.EagerReferences._rounds(looked, [alone], [alone])
    assert made == tried
