"""Values, gradients and second derivatives are PyTorch's, at kinks too.

Promotion of dtypes is NumPy's by design, so that everything here is float64.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dynamic
import graphs as g
from tests.helpers.oracles import CASES, Case, weights

torch = pytest.importorskip("torch", reason="PyTorch is not installed; pip install torch")
pytestmark = pytest.mark.peers

SEEDS = range(6)
F = torch.nn.functional


def ours(f: Callable[..., Any], inputs: list[np.ndarray]) -> tuple[Any, Any, Any]:
    """The value of f, the gradient of a weighted sum of it, and that of a weighted sum of the gradient."""
    value = f(*inputs)

    def loss(values: list[Any]) -> Any:
        return g.sum(f(*values) * weights(np.shape(value), 0))

    def slope(values: list[Any]) -> Any:
        gradients = dynamic.grad(loss)(values)
        return sum(g.sum(d * weights(d.shape, i + 1)) for i, d in enumerate(gradients)) + 0.0

    return value, dynamic.grad(loss)(inputs), dynamic.grad(slope)(inputs)


def theirs(f: Callable[..., Any], inputs: list[np.ndarray]) -> tuple[Any, Any, Any]:
    tensors = [torch.tensor(x, requires_grad=True) for x in inputs]
    value = f(*tensors)
    loss = (value * torch.tensor(weights(tuple(value.shape), 0))).sum()
    first = _gradients(loss, tensors)
    slope = sum((d * torch.tensor(weights(tuple(d.shape), i + 1))).sum() for i, d in enumerate(first))
    second = _gradients(slope, tensors) if slope.requires_grad else [torch.zeros_like(t) for t in tensors]
    return value.detach(), [d.detach() for d in first], second


def _gradients(loss: Any, tensors: list[Any]) -> list[Any]:
    found = torch.autograd.grad(loss, tensors, create_graph=True, allow_unused=True)
    return [torch.zeros_like(t) if d is None else d for d, t in zip(found, tensors, strict=True)]


def compare(f: Callable[..., Any], peer: Callable[..., Any], inputs: list[np.ndarray], order: int = 2) -> None:
    one, other = ours(f, inputs)[: order + 1], theirs(peer, inputs)[: order + 1]
    assert np.shape(one[0]) == tuple(other[0].shape)
    for what, a, b in zip(("value", "gradient", "second derivative"), one, other, strict=False):
        for x, y in zip(g.tree.leaves(a), g.tree.leaves(b), strict=True):
            expected = y.detach().numpy(force=True)  # zeros that PyTorch never made are no array
            np.testing.assert_allclose(x, expected, rtol=1e-9, atol=1e-9, err_msg=f"{what} at {inputs}")


def reals(*shapes: tuple[int, ...], seed: int = 0) -> list[np.ndarray]:
    random = np.random.default_rng(seed)
    return [np.asarray(random.normal(size=shape)) for shape in shapes]


@pytest.mark.parametrize("case", [c for c in CASES if c.torch], ids=str)
def test_smooth_points(case: Case):
    for seed in SEEDS:
        compare(case.ours, lambda *xs: case.torch(torch, *xs), case.inputs(seed))


# Kinks --------------------------------------------------------------------------------------------------------------

ZEROS = np.array([0.0, -0.0, 1.0, -1.0])
TIES = np.array([[1.0, 2.0, 2.0], [3.0, 3.0, 3.0], [0.0, -1.0, 0.0]])
LIMITS = np.array([-1.0, -0.5, 0.0, 0.5, 1.0])
X, Y = np.array([0.0, 1.0, 2.0, -1.0]), np.array([0.0, 1.0, -2.0, -1.0])

KINKS: dict[str, tuple[Callable[..., Any], Callable[..., Any], list[np.ndarray]]] = {
    "relu": (g.relu, torch.relu, [ZEROS]),
    "abs": (g.abs, torch.abs, [ZEROS]),
    "sign": (g.sign, torch.sign, [ZEROS]),
    "leaky_relu": (g.leaky_relu, F.leaky_relu, [ZEROS]),
    "maximum": (g.maximum, torch.maximum, [X, Y]),
    "minimum": (g.minimum, torch.minimum, [X, Y]),
    "max": (lambda x: g.max(x, axis=1), lambda x: torch.amax(x, 1), [TIES]),
    "max-all": (g.max, torch.amax, [TIES]),
    "min": (lambda x: g.min(x, axis=0), lambda x: torch.amin(x, 0), [TIES]),
    "sort": (lambda x: g.sort(x, axis=1), lambda x: torch.sort(x, dim=1, stable=True).values, [TIES]),
    "sort-descending": (
        lambda x: g.sort(x, axis=1, descending=True),
        lambda x: torch.sort(x, dim=1, descending=True, stable=True).values,
        [TIES],
    ),
    "clip": (lambda x: g.clip(x, -0.5, 0.5), lambda x: torch.clamp(x, -0.5, 0.5), [LIMITS]),
    "clip-by-tensors": (g.clip, torch.clamp, [LIMITS, np.full(5, -0.5), np.full(5, 0.5)]),
    "clip-by-equal-tensors": (g.clip, torch.clamp, [LIMITS, np.full(5, 0.5), np.full(5, 0.5)]),
    "clip-by-crossed-tensors": (g.clip, torch.clamp, [LIMITS, np.full(5, 0.5), np.full(5, -0.5)]),
    "prod-one-zero": (g.prod, torch.prod, [np.array([2.0, 0.0, 3.0])]),
    "prod-two-zeros": (g.prod, torch.prod, [np.array([2.0, 0.0, 0.0, 3.0])]),
    "prod-three-zeros": (lambda x: g.prod(x, axis=0), lambda x: torch.prod(x, 0), [np.zeros((3, 2))]),
    "cumulative_prod-zeros": (g.cumulative_prod, lambda x: torch.cumprod(x, 0), [np.array([2.0, 0.0, 3.0, 0.0, 1.0])]),
    "floor": (g.floor, torch.floor, [LIMITS]),
    "round": (g.round, torch.round, [LIMITS]),
    "remainder": (g.remainder, torch.remainder, [np.array([2.0, -2.0, 3.0]), np.array([2.0, 1.0, -2.0])]),
    "max_pool1d": (lambda x: g.max_pool1d(x, 2), lambda x: F.max_pool1d(x, 2), [TIES.reshape(1, 1, 9)]),
    "tie-of-one-value": (lambda x: g.maximum(x, x), lambda x: torch.maximum(x, x), [X]),
}

# Where PyTorch's second derivative is not a number (copysign), or that of the other side (elu, huber), the first counts
# alone.
FIRST_ONLY: dict[str, tuple[Callable[..., Any], Callable[..., Any], list[np.ndarray]]] = {
    "elu": (g.elu, F.elu, [ZEROS]),
    "copysign": (g.copysign, torch.copysign, [X, Y]),
    "huber": (
        lambda x: g.huber_loss(x, np.zeros(5)),
        lambda x: F.huber_loss(x, torch.zeros(5, dtype=x.dtype)),
        [LIMITS * 2],
    ),
    "norm-0": (g.vector_norm, torch.linalg.vector_norm, [np.zeros(3)]),
    "norm-rows": (
        lambda x: g.vector_norm(x, axis=1),
        lambda x: torch.linalg.vector_norm(x, dim=1),
        [np.array([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]])],
    ),
    "norm-1": (lambda x: g.vector_norm(x, ord=1), lambda x: torch.linalg.vector_norm(x, 1), [ZEROS]),
    "norm-inf": (
        lambda x: g.vector_norm(x, ord=np.inf),
        lambda x: torch.linalg.vector_norm(x, np.inf),
        [np.array([2.0, -2.0, 1.0])],
    ),
    "norm-3": (lambda x: g.vector_norm(x, ord=3), lambda x: torch.linalg.vector_norm(x, 3), [ZEROS]),
    "hypot": (g.hypot, torch.hypot, [np.array([3.0, 0.0]), np.array([4.0, 2.0])]),
    "pow-zero-base": (g.pow, torch.pow, [np.array([0.0, 0.0, 0.0]), np.array([2.0, 1.0, 3.0])]),
    "pow-zero-exponent": (g.pow, torch.pow, [np.array([0.0, 2.0, -1.0]), np.array([0.0, 0.0, 0.0])]),
    "std-of-equal": (g.std, lambda x: torch.std(x, correction=0), [np.full(3, 2.0)]),
}


@pytest.mark.parametrize("name", KINKS)
def test_kinks(name: str):
    compare(*KINKS[name])


@pytest.mark.filterwarnings("ignore:invalid value encountered in log:RuntimeWarning")  # of a negative base
@pytest.mark.parametrize("name", FIRST_ONLY)
def test_kinks_to_first_order(name: str):
    compare(*FIRST_ONLY[name], order=1)


# Neural networks ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("padding", [0, 2])
@pytest.mark.parametrize("dilation", [1, 2])
@pytest.mark.parametrize("groups", [1, 2])
def test_convolution(stride: int, padding: int, dilation: int, groups: int):
    options: dict[str, Any] = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    inputs = reals((2, 4, 9), (6, 4 // groups, 3), (6,))
    compare(lambda *xs: g.conv1d(*xs, **options), lambda *xs: F.conv1d(*xs, **options), inputs)
    inputs = reals((2, 4, 7, 8), (2, 4 // groups, 3, 2), (2,))
    compare(lambda *xs: g.conv2d(*xs, **options), lambda *xs: F.conv2d(*xs, **options), inputs)


@pytest.mark.parametrize(("size", "stride", "padding"), [(2, None, 0), (3, 1, 1), (3, 2, 0), (2, 3, 1)])
def test_pooling(size: int, stride: int | None, padding: int):
    x1, x2 = reals((2, 3, 9), (2, 3, 7, 8))
    for name, x in (("max_pool1d", x1), ("max_pool2d", x2), ("avg_pool1d", x1), ("avg_pool2d", x2)):
        f, peer = getattr(g, name), getattr(F, name)
        compare(lambda x, f=f: f(x, size, stride, padding), lambda x, f=peer: f(x, size, stride, padding), [x])
    compare(
        lambda x: g.avg_pool2d(x, size, stride, padding, count_include_pad=False),
        lambda x: F.avg_pool2d(x, size, stride, padding, count_include_pad=False),
        [x2],
    )
    compare(
        lambda x: g.max_pool2d(x, size, stride, padding, dilation=2),
        lambda x: F.max_pool2d(x, size, stride, padding, dilation=2),
        [x2],
    )


@pytest.mark.parametrize("name", ["gelu", "silu", "softplus", "elu", "leaky_relu"])
def test_activations(name: str):
    compare(getattr(g, name), getattr(F, name), reals((3, 4)))


def test_gelu_by_tanh():
    compare(lambda x: g.gelu(x, approximate=True), lambda x: F.gelu(x, approximate="tanh"), reals((3, 4)))


def test_normalisation():
    x, scale, shift = reals((4, 6, 5), (6,), (6,))
    compare(g.batch_norm, lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True), [x, scale, shift])
    compare(lambda x, w, b: g.group_norm(x, 3, w, b), lambda x, w, b: F.group_norm(x, 3, w, b), [x, scale, shift])
    compare(g.instance_norm, lambda x, w, b: F.instance_norm(x, weight=w, bias=b), [x, scale, shift])
    compare(g.layer_norm, lambda x, w, b: F.layer_norm(x, (5,), w, b), reals((4, 6, 5), (5,), (5,)))
    compare(lambda x, w: g.rms_norm(x, w, eps=1e-6), lambda x, w: F.rms_norm(x, (5,), w, 1e-6), reals((4, 5), (5,)))


def test_batch_norm_with_given_statistics():
    x, scale, shift, mean = reals((4, 6, 5), (6,), (6,), (6,))
    variance = mean**2 + 0.5
    compare(
        lambda x, w, b: g.batch_norm(x, w, b, mean, variance),
        lambda x, w, b: F.batch_norm(x, torch.tensor(mean), torch.tensor(variance), w, b, training=False),
        [x, scale, shift],
    )


def test_losses():
    labels = np.array([0, 2, 1, 2])
    compare(
        lambda x: g.cross_entropy(x, labels), lambda x: F.cross_entropy(x, torch.tensor(labels)), reals((4, 3), seed=1)
    )
    compare(g.mse_loss, F.mse_loss, reals((3, 4), (3, 4)))
    compare(lambda x, y: g.huber_loss(x, y, delta=0.7), lambda x, y: F.huber_loss(x, y, delta=0.7), reals((9,), (9,)))
    logits, target = reals((9,), (9,))
    compare(g.binary_cross_entropy_with_logits, F.binary_cross_entropy_with_logits, [logits, 1 / (1 + np.exp(-target))])


def test_attention():
    inputs = reals((2, 4, 3), (2, 5, 3), (2, 5, 6))
    compare(g.attention, F.scaled_dot_product_attention, inputs)
    mask = np.random.default_rng(0).random((4, 5)) > 0.4
    mask[:, 0] = True
    compare(
        lambda *xs: g.attention(*xs, mask=mask),
        lambda *xs: F.scaled_dot_product_attention(*xs, attn_mask=torch.tensor(mask)),
        inputs,
    )


def test_attention_with_a_mask_that_is_added():
    compare(
        g.attention,
        lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, attn_mask=m),
        reals((2, 4, 3), (2, 5, 3), (2, 5, 6), (4, 5)),
    )


def test_a_row_that_attends_to_nothing():
    mask = np.array([[True, False], [False, False]])
    compare(
        lambda *xs: g.attention(*xs, mask=mask),
        lambda *xs: F.scaled_dot_product_attention(*xs, attn_mask=torch.tensor(mask)),
        reals((2, 3), (2, 3), (2, 4)),
        order=1,
    )


def test_embedding_adds_up_what_is_looked_up_twice():
    indices = np.array([[0, 2], [2, 2]])
    compare(lambda x: g.embedding(x, indices), lambda x: F.embedding(torch.tensor(indices), x), reals((4, 3)))


# Not a number, infinity -------------------------------------------------------------------------------------------

# What is left out: the sign of NaN, which is NaN in NumPy and 0 in PyTorch; hypot at 0, whose gradient is 0 here and
# NaN there; logaddexp of infinities, whose gradient is NaN here.
ODD = np.array([np.nan, np.inf, -np.inf, 1.0, -2.0, 0.0])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    "name",
    ["relu", "exp", "tanh", "sigmoid", "square", "negative", "floor", "atan", "sin", "expm1", "erf"],
)
def test_values_and_gradients_of_what_is_no_number(name: str):
    compare(getattr(g, name), getattr(torch, name), [ODD], order=1)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", ["maximum", "minimum", "multiply", "hypot"])
def test_pairs_of_what_is_no_number(name: str):
    x, y = (np.asarray(a.ravel()) for a in np.meshgrid(ODD, ODD[:-1]))
    compare(getattr(g, name), getattr(torch, name), [x, y], order=1)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_reductions_of_what_is_no_number():
    rows = np.array([[np.nan, 1.0, 2.0], [np.inf, 1.0, np.inf], [-np.inf, -np.inf, -np.inf], [1.0, 2.0, 3.0]])
    for name, peer in (("max", torch.amax), ("min", torch.amin), ("sum", torch.sum), ("logsumexp", torch.logsumexp)):
        compare(lambda x, f=name: getattr(g, f)(x, axis=1), lambda x, f=peer: f(x, 1), [rows], order=1)
    compare(lambda x: g.softmax(x, axis=1), lambda x: torch.softmax(x, 1), [rows], order=1)
    compare(lambda x: g.log_softmax(x, axis=1), lambda x: torch.log_softmax(x, 1), [rows], order=1)
