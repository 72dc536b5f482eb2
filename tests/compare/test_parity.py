"""The parity gate: right modes pass, wrong ones are caught, refusals are told from faults."""

import functools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dynamic
import graphs
import static
from compare import engines
from compare.engines import cases
from compare.errors import UnsupportedError
from compare.instruments import parity, rounding
from compare.subjects.case import case_of
from compare.workloads import Case
from graphs.errors import ControlFlowError, DTypeError, ShapeError, VerificationError
from tests.helpers import fake_workloads, mutants
from tests.helpers.fake_workloads import job
from tests.helpers.records import plain
from tests.helpers.together import together


@pytest.fixture
def tiny():
    return fake_workloads.make_tiny()


def altered(monkeypatch, mode, change):
    """Let one mode give `change(loss, gradients)`."""
    honest = engines.step

    def build(name, case):
        step = honest(name, case)
        if name == mode and case.params["w"].dtype == np.float32:
            step.built = mutants.altered(step.built, change)
        return step

    monkeypatch.setattr(engines, "step", build)


# Errors, scaled


@pytest.mark.parametrize(
    ("actual", "expected", "error"),
    [
        ([1.0, 2.0], [1.0, 2.0], 0),
        ([1.0, 2.2], [1.0, 2.0], 0.1),
        ([0.0, -8.0], [4.0, -8.0], 0.5),
        ([0.0], [0.0], 0),
        ([1e-9], [0.0], math.inf),
        ([1.0], [1.0, 1.0], math.inf),
        ([np.nan, 1.0], [np.nan, 1.0], 0),
        ([np.inf], [np.inf], 0),
        ([np.inf], [-np.inf], math.inf),
        ([np.nan], [1.0], math.inf),
        ([1.0], [np.nan], math.inf),
        ([], [], 0),
        (3.0, 2.0, 0.5),
    ],
)
def test_the_error_is_the_largest_difference_over_the_scale(actual, expected, error):
    assert rounding.scaled_error(np.array(actual), np.array(expected)) == pytest.approx(error)


def test_a_gradient_that_is_zero_but_for_rounding_is_scaled_by_the_others():
    expected = {"a": np.array([100.0]), "b": np.array([0.0])}
    assert rounding.tree_error({"a": np.array([100.0]), "b": np.array([1e-6])}, expected) == pytest.approx(1e-6)
    assert rounding.tree_error({"a": np.array([100.0]), "b": np.array([1.0])}, expected) == pytest.approx(1)


@pytest.mark.parametrize("actual", [{}, {"a": np.zeros(1), "b": np.zeros(1)}, [np.zeros(1)]])
def test_another_structure_is_infinitely_wrong(actual):
    assert rounding.tree_error(actual, {"a": np.zeros(1)}) == math.inf


@given(st.lists(st.integers(1, 50), min_size=1, max_size=40), st.integers(1, 10))
def test_the_examples_checked_span_the_lengths(lengths, most):
    chosen = parity.sample(lengths, most)
    assert chosen == sorted(set(chosen))
    assert 1 <= len(chosen) <= most
    if most > 1 or len(lengths) == 1:
        assert {lengths[i] for i in chosen} >= {min(lengths), max(lengths)}


# The gate


def check(case, names):
    return plain(parity.check(job("parity", "TINY"), case, names))


def test_both_engines_agree_on_one_graph(tiny):
    record = check(tiny, ("dynamic", "static-exact"))
    assert record["agree"]
    assert {row["status"] for row in record["arms"].values()} == {"ok"}
    assert all(0 <= row["gradient_error"] <= row["tolerance"] for row in record["arms"].values())
    assert record["kernel_calls"]["dynamic"] == record["kernel_calls"]["static"]
    assert record["kernel_calls"]["dynamic"]["tanh"] == 1


def test_every_policy_agrees_on_a_stream():
    record = plain(parity.measure(job("parity", "STREAM")))
    assert set(record["arms"]) == {"dynamic", "static-exact", "static-bucket", "static-pad"}
    assert {row["status"] for row in record["arms"].values()} == {"ok"}


@pytest.mark.parametrize("factor", [1.001, -1, 0])
@pytest.mark.parametrize("mode", ["dynamic", "static-exact"])
def test_a_wrong_gradient_is_caught_in_either_engine(monkeypatch, tiny, mode, factor):
    altered(monkeypatch, mode, lambda loss, grads: (loss, {"w": grads["w"] * factor}))
    record = check(tiny, ("dynamic", "static-exact"))
    row = record["arms"][mode]
    assert not record["agree"]
    assert row["status"] == "disagree"
    assert row["gradient_error"] == pytest.approx(abs(1 - factor), rel=0.01)
    assert row["reason"].startswith("the gradient of `w` in call 1 is off by")


def test_one_wrong_element_is_caught(monkeypatch, tiny):
    def change(loss, grads):
        wrong = grads["w"].copy()
        wrong[2, 1] += 0.01 * np.abs(wrong).max()
        return loss, {"w": wrong}

    altered(monkeypatch, "static-exact", change)
    assert check(tiny, ("static-exact",))["arms"]["static-exact"]["status"] == "disagree"


def test_a_wrong_output_is_caught_and_named(monkeypatch, tiny):
    altered(monkeypatch, "static-exact", lambda loss, grads: (loss + 0.5, grads))
    row = check(tiny, ("static-exact",))["arms"]["static-exact"]
    assert row["reason"].startswith("the output in call 1 is off by")
    assert row["gradient_error"] <= row["tolerance"]


def test_an_error_without_a_size_is_null_in_json(monkeypatch, tiny):
    altered(monkeypatch, "static-exact", lambda loss, grads: (np.float32(np.nan), grads))
    row = check(tiny, ("static-exact",))["arms"]["static-exact"]
    assert (row["status"], row["output_error"]) == ("disagree", None)


def test_control_flow_on_values_is_unsupported_with_the_line_and_no_fault():
    record = plain(parity.measure(job("parity", "BRANCH")))
    row = record["arms"]["static-exact"]
    assert row["status"] == "unsupported"
    assert "fake_workloads.py" in row["reason"]
    assert record["agree"]
    assert record["same_graph"] is None


def test_a_graph_with_a_loop_inside_has_no_tape_to_be_equal_to():
    def loss(params, x):
        loops = graphs.while_loop(lambda y: graphs.sum(y) < 100, lambda y: y * 2, x * params["w"])
        return graphs.sum(loops)

    case = Case(loss, {"w": np.ones(2, np.float32)}, ((np.ones(2, np.float32),),), (2,))
    record = check(case, ("dynamic", "static-exact"))
    assert record["same_graph"] is None
    assert record["agree"]
    assert "multiply" in record["kernel_calls"]["dynamic"]


K = np.linspace(0.1, 1.1, 12, dtype=np.float32).reshape(4, 3)
TENSOR, BOX = dynamic.from_numpy(K), {"k": [K]}


class Holder:
    def __init__(self):
        self.k = K

    def loss(self, w, x):
        return graphs.mean((x @ self.k) @ w)


def over(k):
    def closed(w, x):
        def inside(y):
            return y @ k

        return graphs.mean(inside(x) @ w)

    return closed


def scanned(w, x):
    def step(h, row):
        h = h + row @ K
        return h, h

    return graphs.mean(graphs.scan(step, np.zeros(3, np.float32), x)[1] @ w)


@together(
    ("f", "exact"),
    [
        (lambda w, x: graphs.mean((x @ K) @ w), lambda w, x: np.mean(x @ K @ w)),
        (lambda w, x: graphs.mean((x @ TENSOR) @ w), lambda w, x: np.mean(x @ K @ w)),
        (lambda w, x: graphs.mean((x @ BOX["k"][0]) @ w), lambda w, x: np.mean(x @ K @ w)),
        (lambda w, x, k=K: graphs.mean((x @ k) @ w), lambda w, x: np.mean(x @ K @ w)),
        (functools.partial(lambda k, w, x: graphs.mean((x @ k) @ w), K), lambda w, x: np.mean(x @ K @ w)),
        (over(K), lambda w, x: np.mean(x @ K @ w)),
        (Holder().loss, lambda w, x: np.mean(x @ K @ w)),
        (scanned, lambda w, x: np.mean(np.cumsum(x @ K, 0) @ w)),
        (lambda w, x: graphs.mean(graphs.einsum("ij,jk,kl->il", x, K, w)), lambda w, x: np.mean(x @ K @ w)),
        (
            lambda w, x: dynamic.nn.functional.linear(x, TENSOR.T, np.ones(3, np.float32)).matmul(w).mean(),
            lambda w, x: np.mean((x @ K + 1) @ w),
        ),
        (
            lambda w, x: graphs.mean(graphs.concat([x @ K, np.ones((2, 3), np.float32)], 0) @ w),
            lambda w, x: np.mean(np.concatenate([x @ K, np.ones((2, 3))]) @ w),
        ),
    ],
    quick=4,
)
def test_the_reference_is_in_float64_whatever_the_function_has_its_arrays_from(f, exact):
    rng = np.random.default_rng(0)
    w, x = rng.standard_normal((3, 2), np.float32), rng.standard_normal((5, 4), np.float32)
    case = case_of(f, [(w, x)], True, None)
    value, gradient = parity.exact(case)
    w64, x64 = w.astype(np.float64), x.astype(np.float64)
    assert value == pytest.approx(exact(w64, x64), abs=1e-14)
    along = rng.standard_normal((3, 2))
    slope = exact(w64 + along / 2, x64) - exact(w64 - along / 2, x64)  # each is linear in w
    assert np.sum((gradient[0] if isinstance(gradient, tuple) else gradient) * along) == pytest.approx(slope, abs=1e-13)
    record = check(case, ("dynamic", "static-exact"))
    assert record["agree"]
    with pytest.raises(DTypeError):
        dynamic.from_numpy(x64) @ K


def test_padding_without_a_masked_loss_is_unsupported(tiny):
    row = check(tiny, ("static-pad",))["arms"]["static-pad"]
    assert row["status"] == "unsupported"
    assert "no masked loss" in row["reason"]


@pytest.mark.parametrize(
    ("mode", "error", "refused"),
    [
        ("static-exact", ControlFlowError("x"), True),
        ("static-exact", UnsupportedError("x"), True),
        ("static-symbolic", ShapeError("x"), True),
        ("static-exact", ShapeError("x"), False),
        ("static-exact", VerificationError("x"), False),
        ("dynamic", ZeroDivisionError("x"), False),
    ],
)
def test_a_refusal_is_told_from_a_fault(mode, error, refused):
    assert engines.refuses(mode, error) is refused


def test_a_fault_in_one_mode_leaves_the_others(monkeypatch, tiny):
    monkeypatch.setattr(static, "compile", lambda *_: 1 / 0)
    record = check(tiny, ("dynamic", "static-exact"))
    assert record["arms"]["static-exact"]["status"] == "failed"
    assert record["arms"]["static-exact"]["reason"].startswith("ZeroDivisionError: division by zero (test_parity.py:")
    assert record["arms"]["dynamic"]["status"] == "ok"
    assert not record["agree"]


def test_another_graph_is_not_the_same_graph(monkeypatch, tiny):
    other = fake_workloads.make_tiny()
    plain = static.trace
    monkeypatch.setattr(static, "trace", lambda f, p, x: plain(static.value_and_grad(other_loss), p, x))
    import graphs

    def other_loss(params, x):
        return graphs.sum(graphs.tanh(x @ params["w"]))

    assert parity.same_graph(other)[0] is False


# The modes


def test_padding_waste_is_counted_over_an_epoch():
    case = fake_workloads.make_stream()
    computed = {}
    for mode in ("dynamic", "static-exact", "static-bucket", "static-pad"):
        step = engines.step(mode, case)
        for example in step.examples:
            step(*example)
        computed[mode] = (step.computed(case.lengths), step.compiles)
    assert computed == {
        "dynamic": (19, 0),
        "static-exact": (19, 3),
        "static-bucket": (4 + 8 + 4 + 8, 2),
        "static-pad": (4 * 8, 1),
    }


def test_a_signature_tells_shapes_and_static_values_apart():
    a, b = np.zeros(3), np.ones(3)
    assert cases.signature((a, (1, "x"))) == cases.signature((b, (1, "x")))
    others = [(np.zeros(4), (1, "x")), (a.astype(np.float32), (1, "x")), (a, (2, "x")), (a, 1, "x")]
    assert cases.signature((a, (1, "x"))) not in {cases.signature(o) for o in others}
