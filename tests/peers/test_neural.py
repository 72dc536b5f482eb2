"""Neural network ops as in PyTorch."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special

import graphs
from tests.helpers.arrays import values
from tests.helpers.engines import ENGINES, gradients, run

# The same in PyTorch --------------------------------------------------------------------------------------------


def same_as_torch(ours, other, *arrays, rtol=1e-9):
    """Value and gradients of the weighted sum of a function, in float64."""
    torch = pytest.importorskip("torch")
    tensors = [torch.tensor(a, requires_grad=True) for a in arrays]
    expected = other(*tensors)
    weights = values(*expected.shape, seed=9)
    (expected * torch.tensor(weights)).sum().backward()
    for engine in ENGINES:
        got = run(engine, ours, *arrays)
        np.testing.assert_allclose(got, expected.detach().numpy(), rtol=rtol, atol=1e-11)
        slopes = gradients(engine, lambda *a: graphs.sum(ours(*a) * weights), *arrays)
        for slope, tensor in zip(slopes, tensors, strict=True):
            np.testing.assert_allclose(slope, tensor.grad.numpy(), rtol=rtol, atol=1e-10)


def choices(seed, rank):
    rng = np.random.default_rng(seed)
    return rng, lambda low, high: tuple(int(v) for v in rng.integers(low, high + 1, rank))


@pytest.mark.peers
@pytest.mark.filterwarnings("ignore:Using padding='same'")
@pytest.mark.parametrize("rank", [1, 2])
@pytest.mark.parametrize("seed", range(15))
def test_convolution_as_in_pytorch(rank, seed):
    torch = pytest.importorskip("torch")
    rng, draw = choices(seed, rank)
    groups, channels, features = (int(v) for v in rng.integers(1, 4, 3))
    sizes, window = draw(5, 9), draw(1, 3)
    padding = ["same", "valid", draw(0, 3)][rng.integers(3)]
    options = {"padding": padding, "dilation": draw(1, 2), "groups": groups}
    options["stride"] = 1 if padding == "same" else draw(1, 3)
    arrays = (
        values(2, groups * channels, *sizes),
        values(groups * features, channels, *window),
        values(groups * features),
    )
    same_as_torch(
        lambda *a: getattr(graphs, f"conv{rank}d")(*a, **options),
        lambda *a: getattr(torch.nn.functional, f"conv{rank}d")(*a, **options),
        *arrays,
    )


@pytest.mark.peers
@pytest.mark.parametrize("rank", [1, 2])
@pytest.mark.parametrize("seed", range(15))
def test_pooling_as_in_pytorch(rank, seed):
    torch = pytest.importorskip("torch")
    rng, draw = choices(seed, rank)
    x, size, stride = values(2, 2, *draw(5, 9)), draw(1, 3), draw(1, 3)
    x = np.round(x) if seed % 2 else x  # ties
    padding = tuple(int(rng.integers(0, k // 2 + 1)) for k in size)
    counting = bool(seed % 3)
    maximum, average = (getattr(graphs, f"{kind}_pool{rank}d") for kind in ("max", "avg"))
    their_maximum, their_average = (getattr(torch.nn.functional, f"{kind}_pool{rank}d") for kind in ("max", "avg"))
    dilation = draw(1, 2)
    same_as_torch(
        lambda x: maximum(x, size, stride, padding, dilation),
        lambda x: their_maximum(x, size, stride, padding, dilation),
        x,
    )
    same_as_torch(
        lambda x: average(x, size, stride, padding, count_include_pad=counting),
        lambda x: their_average(x, size, stride, padding, count_include_pad=counting),
        x,
    )


def theirs(name, **options):
    """A function of torch.nn.functional, looked up when it is called."""

    def call(*tensors):
        torch = pytest.importorskip("torch")
        options_there = {k: torch.tensor(v) if isinstance(v, np.ndarray) else v for k, v in options.items()}
        return getattr(torch.nn.functional, name, getattr(torch, name, None))(*tensors, **options_there)

    return call


X, Y = values(3, 4, 5), values(3, 4, 5, seed=1)
Q, K = values(2, 3, 4), values(2, 5, 4)
CHANNEL, LAST = (values(4), values(4, seed=1)), (values(5), values(5, seed=1))
MASK, LABELS = values(3, 5) > 0, np.array([0, 2, 4])
KINKS = np.array([-1.0, 0.0, 1.0, 2.0])
HUBER = np.append(X.ravel(), [0.5, 0.0]), np.append(Y.ravel(), [0.0, 0.0])

# name -> (ours, theirs, arrays)
COMPOSITES = {
    "gelu": (graphs.gelu, theirs("gelu"), (X,)),
    "gelu-tanh": (lambda x: graphs.gelu(x, approximate=True), theirs("gelu", approximate="tanh"), (X,)),
    "erf": (graphs.erf, theirs("erf"), (X,)),
    "erfc": (graphs.erfc, theirs("erfc"), (X,)),
    "silu": (graphs.silu, theirs("silu"), (X,)),
    "softplus": (graphs.softplus, theirs("softplus"), (X,)),
    "leaky-relu": (graphs.leaky_relu, theirs("leaky_relu"), (KINKS,)),
    "elu": (graphs.elu, theirs("elu"), (KINKS,)),
    "softmax": (graphs.softmax, theirs("softmax", dim=-1), (X,)),
    "log-softmax": (lambda x: graphs.log_softmax(x, 1), theirs("log_softmax", dim=1), (X,)),
    "logsumexp": (lambda x: graphs.logsumexp(x, axis=(0, 2)), theirs("logsumexp", dim=(0, 2)), (X,)),
    "std": (lambda x: graphs.std(x, axis=1, correction=1), theirs("std", dim=1), (X,)),
    "layer-norm": (graphs.layer_norm, lambda x, s, b: theirs("layer_norm")(x, (5,), s, b), (X, *LAST)),
    "rms-norm": (graphs.rms_norm, lambda x, s: theirs("rms_norm")(x, (5,), s, 1e-6), (X, LAST[0])),
    "batch-norm": (
        graphs.batch_norm,
        lambda x, s, b: theirs("batch_norm", training=True)(x, None, None, s, b),
        (X, *CHANNEL),
    ),
    "batch-norm-given": (
        lambda x: graphs.batch_norm(x, None, None, CHANNEL[0], np.full(4, 2.0)),
        theirs("batch_norm", running_mean=CHANNEL[0], running_var=np.full(4, 2.0)),
        (X,),
    ),
    "group-norm": (
        lambda x, s, b: graphs.group_norm(x, 2, s, b),
        lambda x, s, b: theirs("group_norm")(x, 2, s, b),
        (X, *CHANNEL),
    ),
    "instance-norm": (graphs.instance_norm, theirs("instance_norm"), (X,)),
    "attention": (graphs.attention, theirs("scaled_dot_product_attention"), (Q, K, K + 1)),
    "attention-masked": (
        lambda q, k, v: graphs.attention(q, k, v, MASK),
        theirs("scaled_dot_product_attention", attn_mask=MASK),
        (Q, K, K + 1),
    ),
    "cross-entropy": (
        lambda x: graphs.cross_entropy(x, LABELS),
        theirs("cross_entropy", target=LABELS),
        (values(3, 5),),
    ),
    "mse": (graphs.mse_loss, theirs("mse_loss"), (X, Y)),
    "huber": (lambda x, y: graphs.huber_loss(x, y, 0.5), theirs("huber_loss", delta=0.5), HUBER),
    "bce": (
        graphs.binary_cross_entropy_with_logits,
        theirs("binary_cross_entropy_with_logits"),
        (X, scipy.special.expit(Y)),
    ),
}


@pytest.mark.peers
@pytest.mark.parametrize("name", COMPOSITES)
def test_composites_as_in_pytorch(name):
    ours, their_function, arrays = COMPOSITES[name]
    same_as_torch(ours, their_function, *arrays)
