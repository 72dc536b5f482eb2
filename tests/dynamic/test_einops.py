"""einops on tensors and on symbols: its functions and its layers, by NumPy's backend."""

import pickle

import numpy as np
import pytest

import dynamic as torch
import dynamic.nn as nn
import static

einops = pytest.importorskip("einops")
from einops.layers.dynamic import EinMix, Rearrange, Reduce  # noqa: E402

from dynamic.nn.parameter import is_parameter  # noqa: E402

X = np.random.default_rng(0).standard_normal((2, 3, 4, 6)).astype(np.float32)

CALLS = {
    "rearrange": lambda x: einops.rearrange(x, "b c (h p) (w q) -> b (h w) (p q c)", p=2, q=3),
    "list": lambda x: einops.rearrange([x, x], "n b c h w -> b c h (n w)"),
    "mean": lambda x: einops.reduce(x, "b c h w -> b c", "mean"),
    "max": lambda x: einops.reduce(x, "b c (h p) w -> b c h 1", "max", p=2),
    "sum": lambda x: einops.reduce(x, "b ... -> b", "sum"),
    "repeat": lambda x: einops.repeat(x, "b c h w -> b (c k) h w n", k=2, n=3),
    "einsum": lambda x: einops.einsum(x, x, "b c h w, b c h v -> b w v"),
    "packed": lambda x: einops.pack([x, x[..., 0]], "b c *")[0],
}


@pytest.mark.parametrize("name", CALLS)
def test_functions_are_those_of_numpy_in_both_engines(name):
    call, expected = CALLS[name], CALLS[name](X)
    x = torch.tensor(X, requires_grad=True)
    found = call(x)
    np.testing.assert_allclose(found.detach(), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(static.jit(call)(X), expected, rtol=1e-5, atol=1e-6)
    (found * found).sum().backward()
    theirs = static.jit(static.grad(lambda x: (call(x) ** 2).sum()))(X)
    np.testing.assert_allclose(x.grad, theirs, rtol=1e-4, atol=1e-5)


def test_layers_are_modules():
    mix = EinMix("b c h w -> b h w d", weight_shape="c d", bias_shape="d", c=3, d=5)
    model = nn.Sequential(mix, Rearrange("b h w d -> b (h w) d", h=4), Reduce("b n d -> b d", "mean"))
    assert [*model.state_dict()] == ["0.weight", "0.bias"]
    assert all(map(is_parameter, model.parameters()))
    result = model(torch.tensor(X))
    expected = np.einsum("bchw,cd->bd", X, mix.weight.detach()) / 24 + mix.bias.detach().numpy().ravel()
    np.testing.assert_allclose(result.detach(), expected, rtol=1e-4, atol=1e-6)
    result.sum().backward()
    assert mix.weight.grad.shape == (3, 5)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(einops.asnumpy(again(torch.tensor(X))), result.detach().numpy())
