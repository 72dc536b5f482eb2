"""Losses: what is ignored, weighted or certain, one graph for all sizes, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dynamic
import graphs as g
import static
from tests.helpers.engines import ENGINES, gradients, run

each_engine = pytest.mark.parametrize("engine", ENGINES)
LOGITS, LABELS = np.array([[0.5, -1.0, 2.0], [0.0, 1.0, -0.5]]), np.array([2, -1])


def entropy(logits, labels, weight, ignored, share):
    """The sums of losses and of weights, label by label, as PyTorch's documentation writes them."""
    total, count, each = 0.0, 0.0, []
    for row, label in zip(logits, labels, strict=True):
        p = np.log(np.exp(row) / np.exp(row).sum())
        used = label != ignored
        loss = -(1 - share) * weight[label] * p[label] - share / len(row) * (weight * p).sum() if used else 0.0
        each.append(loss)
        total, count = total + loss, count + (weight[label] if used else 0)
    return {"none": each, "sum": total, "mean": total / count if count else math.nan}


@given(st.data())
def test_cross_entropy_is_a_sum_over_labels(data):
    rows, classes = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 4))
    number = st.floats(-3, 3)
    logits = np.array(
        data.draw(st.lists(st.lists(number, min_size=classes, max_size=classes), min_size=rows, max_size=rows))
    )
    labels = np.array(data.draw(st.lists(st.integers(0, classes - 1), min_size=rows, max_size=rows)))
    weight = np.array(data.draw(st.lists(st.floats(0.1, 3), min_size=classes, max_size=classes)))
    ignored, share = data.draw(st.integers(0, 4)), data.draw(st.sampled_from([0.0, 0.3, 1.0]))
    for reduction, expected in entropy(logits, labels, weight, ignored, share).items():
        with np.errstate(invalid="ignore"):
            found = g.cross_entropy(
                logits, labels, weight, ignore_index=ignored, reduction=reduction, label_smoothing=share
            )
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@each_engine
def test_what_is_ignored_costs_nothing_even_where_it_is_infinite(engine):
    certain = np.array([[0.5, -1.0, 2.0], [-math.inf, 0.0, -math.inf]])

    def loss(x):
        return g.nll_loss(x, np.array([2, 0]), ignore_index=0)

    assert run(engine, loss, certain) == -2.0
    np.testing.assert_array_equal(gradients(engine, loss, certain)[0], [[0, 0, -1], [0, 0, 0]])


@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
@each_engine
def test_a_mean_over_no_label_is_nan(engine):
    assert np.isnan(run(engine, lambda x: g.cross_entropy(x, np.array([-1, -1]), ignore_index=-1), LOGITS))


@each_engine
def test_weights_do_not_widen_a_loss(engine):
    x = LOGITS.astype(np.float32)
    for loss in (
        lambda x: g.cross_entropy(x, np.array([0, 1]), np.ones(3)),
        lambda x: g.nll_loss(x, np.array([0, 1]), [1.0, 2.0, 3.0]),
        lambda x: g.binary_cross_entropy_with_logits(x, (x > 0) + np.float32(0), np.ones(3), pos_weight=np.ones(3)),
        lambda x: g.binary_cross_entropy(g.sigmoid(x), (x > 0) + np.float32(0), np.ones(3)),
    ):
        assert run(engine, loss, x).dtype == np.float32


@each_engine
def test_the_logarithms_of_certain_probabilities_are_bounded(engine):
    def loss(p):
        return g.binary_cross_entropy(p, np.array([1.0, 0.0, 1.0, 0.5]), reduction="none")

    p = np.array([1.0, 0.0, 0.0, 1.0])
    np.testing.assert_array_equal(run(engine, loss, p), [0, 0, 100, 50])
    assert np.isfinite(gradients(engine, lambda p: g.sum(loss(p)), p)[0]).all()


@each_engine
def test_a_target_of_zero_costs_nothing(engine):
    def loss(x, target):
        return g.kl_div(x, target, reduction="sum")

    x, target = np.log([0.25, 0.75]), np.array([0.0, 1.0])
    np.testing.assert_allclose(run(engine, loss, x, target), -np.log(0.75))
    np.testing.assert_allclose(gradients(engine, loss, x, target), [[0, -1], [-x[0], 1 - x[1]]])


def test_one_graph_serves_every_number_of_labels():
    def loss(x, labels):
        return g.cross_entropy(x, labels, np.array([1.0, 2.0, 0.5]), ignore_index=-1, label_smoothing=0.1)

    specs = g.TensorSpec(("B", 3), "float64"), g.TensorSpec(("B",), "int64")
    exe = static.compile(static.value_and_grad(loss), *specs)
    for rows in (1, 2, 5):
        x, labels = np.resize(LOGITS, (rows, 3)), np.resize(LABELS, rows)
        value, slope = exe(x, labels)
        np.testing.assert_allclose(value, loss(x, labels), rtol=1e-12)
        np.testing.assert_allclose(slope, dynamic.grad(loss)(x, labels), rtol=1e-12, atol=1e-15)


REFUSED = [
    (lambda: g.mse_loss(LOGITS, LOGITS, reduction="avg"), "mse_loss: reduction is 'none', 'mean' or 'sum', not 'avg'"),
    (lambda: g.smooth_l1_loss(LOGITS, LOGITS, beta=-1.0), "smooth_l1_loss: beta is 0 or more"),
    (lambda: g.cross_entropy(LOGITS, LABELS, label_smoothing=2), "label_smoothing is a share from 0 to 1, not 2"),
    (lambda: g.cross_entropy(LOGITS, LABELS, np.ones(2)), r"weights of shape \(2,\) for 3 classes"),
    (lambda: g.cross_entropy(LOGITS, LOGITS, np.ones(2)), r"weights of shape \(2,\) for 3 classes"),
    (lambda: g.cross_entropy(LOGITS, LOGITS, ignore_index=0), "ignore_index is for labels that are integers"),
    (lambda: g.nll_loss(LOGITS, LABELS[:1], reduction="sum"), "labels have the shape of"),
    (lambda: g.nll_loss(LOGITS, LABELS * 1.0, reduction="sum"), "labels must be integers"),
    (lambda: g.nll_loss(LOGITS, np.array([0, -100])), "out of bounds|out of range"),
    (lambda: g.nll_loss(LOGITS, LABELS, axis=2), "axis 2 is out of range for 2 axes"),
    (lambda: g.kl_div(np.float64(1), np.float64(1), reduction="batchmean"), "'batchmean' divides by the size"),
]


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_what_has_no_meaning_is_refused(call, message):
    with pytest.raises(g.GraphError, match=message):
        call()


@pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES)
@pytest.mark.parametrize("loss", [g.huber_loss, g.smooth_l1_loss], ids=["huber", "smooth l1"])
def test_the_gradient_is_one_to_infinity(engine: Any, loss: Any) -> None:
    x = np.array([np.inf, -np.inf, 1e300, -2.0, 0.5, 1.0])
    with np.errstate(over="ignore"):
        gradient = engine.grad(lambda x: loss(x, np.zeros(6), reduction="sum"))(x)
    assert gradient.tolist() == [1, -1, 1, -1, 0.5, 1]
