"""Functions of `nn.functional` against their definitions in plain Python: alignments, margins, bags, grids, dropout."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dynamic as torch
import static
from dynamic import nn
from dynamic.nn import functional as F  # noqa: N812
from graphs.errors import OptionError, OutOfRangeError, ShapeError
from graphs.testing import check_grads
from tests.helpers.together import together

RNG = np.random.default_rng(0)
same = np.testing.assert_allclose


def number(x):
    return np.asarray(x.detach().numpy() if isinstance(x, torch.Tensor) else x)


# Alignments ---------------------------------------------------------------------------------------------------------


def frames(*shape):
    x = RNG.standard_normal(shape)
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def by_alignments(log_probs, labels, blank):
    """Minus the log of the sum over all sequences of classes that read as the labels."""
    total = 0.0
    for way in itertools.product(range(log_probs.shape[1]), repeat=len(log_probs)):
        read = [c for i, c in enumerate(way) if c != blank and (i == 0 or way[i - 1] != c)]
        if read == labels:
            total += np.exp(sum(log_probs[t, c] for t, c in enumerate(way)))
    return -np.log(total) if total else np.inf


@given(st.data())
def test_ctc_adds_up_all_alignments(data):
    steps, classes = data.draw(st.integers(1, 4)), data.draw(st.integers(2, 3))
    blank = data.draw(st.integers(0, classes - 1))
    letters = [c for c in range(classes) if c != blank]
    batch = [data.draw(st.lists(st.sampled_from(letters), max_size=3)) for _ in range(2)]
    taken = [data.draw(st.integers(0, steps)) for _ in batch]
    x = frames(steps, 2, classes)
    flat = np.array([label for labels in batch for label in labels], np.int64)
    sizes = [len(labels) for labels in batch]
    found = F.ctc_loss(torch.tensor(x), torch.tensor(flat), taken, sizes, blank, "none")
    expected = [by_alignments(x[:n, i], labels, blank) for i, (n, labels) in enumerate(zip(taken, batch, strict=True))]
    same(number(found), expected, rtol=1e-10, atol=1e-10)
    no_infinity = F.ctc_loss(torch.tensor(x), torch.tensor(flat), taken, sizes, blank, zero_infinity=True)
    finite = [0 if np.isinf(loss) else loss / max(size, 1) for loss, size in zip(expected, sizes, strict=True)]
    same(float(no_infinity), np.mean(finite), rtol=1e-10, atol=1e-10)


def test_the_gradient_of_ctc_is_that_of_the_logits():
    """Whose log_softmax it takes; the log probabilities alone have the gradient that PyTorch gives them."""
    labels, taken, sizes = np.array([[1, 2], [2, 0]]), np.array([4, 3]), np.array([2, 1])

    def loss(x):
        return F.ctc_loss(F.log_softmax(x, -1), labels, taken, sizes, reduction="sum")

    check_grads(loss, (RNG.standard_normal((4, 2, 3)),))
    x = torch.tensor(frames(4, 2, 3)).requires_grad_()
    F.ctc_loss(x, torch.tensor(labels), taken, sizes, reduction="sum").backward()
    same(x.grad.numpy().sum(-1)[:3], 0, atol=1e-12)  # exp(x) sums to 1, and so do the shares of alignments
    assert np.all(x.grad.numpy()[3, 1] == 0)


def test_an_impossible_alignment_is_not_hidden():
    x = torch.tensor(frames(2, 1, 3)).requires_grad_()
    loss = F.ctc_loss(x, torch.tensor([[1, 1]]), [2], [2])
    assert np.isinf(float(loss.detach()))
    loss.backward()
    assert np.all(np.isnan(x.grad.numpy()))


def test_ctc_refuses_lengths_and_labels_that_do_not_fit():
    x = torch.tensor(frames(4, 2, 3))
    for labels, taken, sizes, error, told in (
        ([[1], [5]], [4, 4], [1, 1], OutOfRangeError, "index 5"),
        ([[1], [2]], [4, 5], [1, 1], OutOfRangeError, "input_lengths are from 0 to 4"),
        ([[1], [2]], [4, 4], [1, 2], OutOfRangeError, "target_lengths are from 0 to 1"),
        ([1, 2, 1], [4, 4], [1, 1], ShapeError, "3 labels for target_lengths that add up to 2"),
        ([[1], [2]], [4], [1, 1], ShapeError, "2 examples"),
    ):
        with pytest.raises(error, match=told):
            F.ctc_loss(x, torch.tensor(labels), taken, sizes)


# Margins ------------------------------------------------------------------------------------------------------------


def test_margins_between_classes():
    x, y, w = RNG.standard_normal((4, 3)), np.array([0, 2, 1, 1]), np.array([0.5, 2.0, 1.0])
    for p in (1, 2):
        costs = [
            w[t] * sum(max(0, 0.7 - r[t] + r[j]) ** p for j in range(3) if j != t) / 3
            for r, t in zip(x, y, strict=True)
        ]
        found = F.multi_margin_loss(torch.tensor(x), torch.tensor(y), p, 0.7, torch.tensor(w), reduction="none")
        same(number(found), costs, rtol=1e-12)
    rows = np.array([[2, 0, -1], [-1, 1, 1], [1, -1, 0], [0, 1, 2]])
    wanted = [[2, 0], [], [1], [0, 1, 2]]
    costs = [
        sum(max(0, 1 - r[y] + r[j]) for y in ys for j in range(3) if j not in ys) / 3
        for r, ys in zip(x, wanted, strict=True)
    ]
    same(number(F.multilabel_margin_loss(torch.tensor(x), torch.tensor(rows), reduction="none")), costs, rtol=1e-12)
    t = np.array([[1, 0, 1]] * 4)
    costs = np.where(t == 1, np.log1p(np.exp(-x)), np.log1p(np.exp(x))).mean(1)
    same(number(F.multilabel_soft_margin_loss(torch.tensor(x), torch.tensor(t), reduction="none")), costs, rtol=1e-12)
    assert np.isnan(float(F.multi_margin_loss(torch.tensor(x * np.nan), torch.tensor(y))))
    with pytest.raises(OptionError, match="p is 1 or 2"):
        F.multi_margin_loss(torch.tensor(x), torch.tensor(y), 3)


# Bags ---------------------------------------------------------------------------------------------------------------

JOIN = {"sum": lambda rows: rows.sum(0), "mean": lambda rows: rows.mean(0), "max": lambda rows: rows.max(0)}


@given(st.sampled_from(sorted(JOIN)), st.lists(st.lists(st.integers(0, 4), max_size=4), min_size=1, max_size=4),
       st.sampled_from([None, 2, -1]))  # fmt: skip
def test_a_bag_joins_its_rows(mode, bags, padding):
    table = RNG.standard_normal((5, 3))
    first = np.cumsum([0, *map(len, bags)])
    flat = np.array([i for bag in bags for i in bag], np.int64)
    kept = [[i for i in bag if padding is None or i != padding % 5] for bag in bags]
    expected = [JOIN[mode](table[bag]) if bag else np.zeros(3) for bag in kept]
    for offsets, last in ((first[:-1], False), (first, True)):
        found = F.embedding_bag(
            torch.tensor(flat), torch.tensor(table), torch.tensor(offsets), mode=mode, padding_idx=padding,
            include_last_offset=last,
        )  # fmt: skip
        same(number(found), expected, rtol=1e-12)


def test_bags_are_checked():
    layer = nn.EmbeddingBag(5, 3, padding_idx=1)
    assert layer.weight[1].tolist() == [0, 0, 0]
    for call, error, told in (
        (lambda: layer(torch.tensor([0, 1]), torch.tensor([1])), OptionError, "offsets are 0 and then"),
        (lambda: layer(torch.tensor([0, 1])), ShapeError, "i\\[n\\] with offsets"),
        (lambda: layer(torch.tensor([[0, 5]])), OutOfRangeError, "index 5"),
        (lambda: layer(torch.tensor([[0]]), per_sample_weights=torch.ones(1, 1)), OptionError, "mode='sum'"),
    ):
        with pytest.raises(error, match=told):
            call()


# Grids --------------------------------------------------------------------------------------------------------------


@together("mode,align", itertools.product(("bilinear", "nearest", "bicubic"), (False, True)))
def test_the_identity_reads_every_element(mode, align):
    for shape in ((2, 3, 4, 5), (2, 3, 4, 5, 2)):
        if mode == "bicubic" and len(shape) == 5:
            continue
        x, rank = RNG.standard_normal(shape), len(shape) - 2
        theta = np.tile(np.eye(rank, rank + 1), (2, 1, 1))
        grid = F.affine_grid(torch.tensor(theta), shape, align)
        same(number(F.grid_sample(torch.tensor(x), grid, mode, align_corners=align)), x, rtol=1e-12, atol=1e-12)


def test_places_between_and_outside_of_elements():
    x = torch.tensor(np.array([[[[1.0, 3.0, 7.0]]]]))
    places = torch.tensor(np.array([-1.0, -0.5, 0.0, 0.25, 1.0, 2.0]))
    grid = torch.stack([places, torch.zeros(6).double()], -1)[None, None]
    for padding, beyond in (("zeros", 0), ("border", 7), ("reflection", 3)):
        found = F.grid_sample(x, grid, "nearest" if padding == "reflection" else "bilinear", padding, True)
        inner = [1, 2, 3, 4, 7] if padding != "reflection" else [1, 1, 3, 3, 7]
        same(number(found).ravel(), [*inner, beyond], rtol=1e-12)
    with pytest.raises(OptionError, match="mode is one of bilinear, nearest,"):
        F.grid_sample(torch.ones(1, 1, 2, 2, 2), torch.ones(1, 1, 1, 1, 3), "bicubic")
    with pytest.raises(ShapeError, match="takes f\\[N, C, H, W\\]"):
        F.grid_sample(torch.ones(1, 1, 2, 2), torch.ones(2, 1, 1, 2))
    with pytest.raises(ShapeError, match="affine_grid"):
        F.affine_grid(torch.ones(1, 2, 3), (2, 1, 2, 2))


def test_local_response_is_a_mean_over_neighbouring_channels():
    x = RNG.standard_normal((2, 5, 3))
    for size in (2, 3):
        padded = np.pad(x**2, [(0, 0), (size // 2, (size - 1) // 2), (0, 0)])
        means = sum(padded[:, i : i + 5] for i in range(size)) / size
        found = F.local_response_norm(torch.tensor(x), size, 0.3, 0.6, 2.0)
        same(number(found), x / (2 + 0.3 * means) ** 0.6, rtol=1e-12)


def test_alpha_dropout_keeps_mean_and_variance():
    torch.manual_seed(0)
    x = torch.randn(200, 300)
    found = number(F.alpha_dropout(x, 0.3, True))
    assert abs(found.mean()) < 0.02
    assert abs(found.var() - 1) < 0.02
    values, counts = np.unique(number(F.alpha_dropout(torch.ones(300, 300), 0.3, True)), return_counts=True)
    assert abs(counts[0] / counts.sum() - 0.3) < 0.01
    scale = 1 / np.sqrt(0.7 * (1 + 0.3 * 1.7580993408473766**2))
    same(values, [-1.7580993408473766 * scale * 0.7, scale * (1 + 1.7580993408473766 * 0.3)], rtol=1e-6)
    assert F.alpha_dropout(x) is x  # not in training
    whole = number(F.feature_alpha_dropout(torch.ones(20, 30, 2, 2), 0.5, True))
    assert np.all(whole == whole[:, :, :1, :1])
    assert len(np.unique(whole)) == 2
    assert not np.any(number(nn.AlphaDropout(1.0)(x)))


IMAGE, GRID = RNG.standard_normal((1, 2, 3, 4)), RNG.uniform(-1.3, 1.3, (1, 2, 3, 2))
TRACED = {
    **{f"{mode}-{padding}": (lambda x, grid, m=mode, p=padding: F.grid_sample(x, grid, m, p), (IMAGE, GRID))
       for mode in ("bilinear", "bicubic") for padding in ("zeros", "border", "reflection")},
    "affine_grid": (lambda theta: F.affine_grid(theta, (2, 1, 2, 3)), (RNG.standard_normal((2, 2, 3)),)),
    "local_response_norm": (lambda x: F.local_response_norm(x, 3), (IMAGE,)),
    "multi_margin": (lambda x: F.multi_margin_loss(x, np.array([0, 2]), 2), (RNG.standard_normal((2, 3)),)),
    "multilabel": (lambda x: F.multilabel_margin_loss(x, np.array([[0, -1, 1]])), (RNG.standard_normal((1, 3)),)),
    **{mode: (lambda w, m=mode: F.embedding_bag(np.array([0, 1, 1, 2]), w, np.array([0, 1]), mode=m),
              (RNG.standard_normal((3, 2)),)) for mode in ("sum", "mean")},
}  # fmt: skip


@together("name", TRACED)
def test_gradients_and_traces(name):
    function, args = TRACED[name]
    check_grads(function, args)
    same(static.jit(function)(*args), number(function(*map(torch.tensor, args))), rtol=1e-12)


def test_a_compiled_step_has_one_loop_over_the_frames():
    labels, sizes = np.array([[1, 2], [2, 0]]), np.array([2, 1])
    step = static.jit(lambda x: F.ctc_loss(x, labels, np.array([20, 15]), sizes))
    x = frames(20, 2, 3)
    same(step(x), float(F.ctc_loss(torch.tensor(x), torch.tensor(labels), [20, 15], sizes)), rtol=1e-12)
    (executable,) = step.executables.values()
    assert executable.graph.op_counts()["scan"] == 1


def test_where_the_largest_are_and_back_again():
    x = RNG.standard_normal((2, 3, 4, 6))
    values, places = F.max_pool2d(torch.tensor(x), 2, return_indices=True)
    same(np.take_along_axis(x.reshape(2, 3, 24), places.numpy().reshape(2, 3, 6), -1), number(values).reshape(2, 3, 6))
    back = number(F.max_unpool2d(values, places, 2))
    same(np.unique(back[back != 0]), np.unique(number(values)))
    same(back, np.where(back != 0, x, 0))
    whole, place = torch.adaptive_max_pool1d(torch.tensor(x[0, 0]), 1)
    same(number(whole).ravel(), x[0, 0].max(-1))
    same(place.numpy().ravel(), x[0, 0].argmax(-1))
    layer = nn.MaxPool3d(2, return_indices=True)
    assert [part.shape for part in layer(torch.ones(1, 4, 4, 4))] == [(1, 2, 2, 2)] * 2
    grid = F.affine_grid(torch.tensor(np.eye(2, 3)[None]), (1, 1, 2, 2), False)
    assert torch.grid_sampler(torch.ones(1, 1, 2, 2).double(), grid, 0, 0, False).flatten().tolist() == [1] * 4


def test_tensors_without_axes():
    x = torch.tensor(0.7)
    assert [float(f(x, 0)) for f in (F.softmax, F.softmin, F.log_softmax)] == [1, 1, 0]
    assert float(F.kl_div(x, x, reduction="batchmean")) == pytest.approx(0.7 * (np.log(0.7) - 0.7))
    assert float(F.multilabel_margin_loss(x, torch.tensor(0))) == 0
    assert float(F.multi_margin_loss(x, torch.tensor(0))) == 0


def test_area_is_the_mean_of_what_a_result_stands_for() -> None:
    x = torch.arange(24.0).reshape(1, 1, 4, 6)
    np.testing.assert_allclose(F.interpolate(x, scale_factor=0.5, mode="area"), F.avg_pool2d(x, 2))
    np.testing.assert_allclose(F.interpolate(x, (3, 4), mode="area"), F.adaptive_avg_pool2d(x, (3, 4)))
