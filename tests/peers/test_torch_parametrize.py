"""Weights that are computed when they are read, beside PyTorch's."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import dynamic

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.peers

LAYERS: dict[str, Any] = {
    "linear": (lambda nn: nn.Linear(4, 3), (5, 4), "weight"),
    "convolution": (lambda nn: nn.Conv1d(4, 3, 2), (2, 4, 6), "weight"),
    "transposed": (lambda nn: nn.ConvTranspose1d(4, 3, 2), (2, 4, 6), "weight"),
    "recurrent": (lambda nn: nn.GRU(4, 3), (6, 2, 4), "weight_hh_l0"),
}


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("norm", ["weight_norm", "spectral_norm"])
def test_norms_of_weights(layer: str, norm: str) -> None:
    make, shape, weight = LAYERS[layer]
    theirs, ours = (
        getattr(space.nn.utils.parametrizations, norm)(make(space.nn).double(), weight) for space in (torch, dynamic)
    )
    assert list(theirs.state_dict()) == list(ours.state_dict())
    assert [name for name, _ in theirs.named_parameters()] == [name for name, _ in ours.named_parameters()]
    assert type(theirs).__name__ == type(ours).__name__
    ours.load_state_dict({name: value.numpy() for name, value in theirs.state_dict().items()})
    ours = copy.deepcopy(ours)
    x = np.random.default_rng(0).standard_normal(shape)
    for _ in range(2):  # spectral_norm improves its vectors in each
        outputs = []
        for space, model in ((torch, theirs), (dynamic, ours)):
            output = model(space.tensor(x))
            output = output[0] if isinstance(output, tuple) else output
            (output**2).sum().backward()
            outputs.append([output.detach().numpy(), *(p.grad.numpy() for p in model.parameters())])
        for their, our in zip(*outputs, strict=True):
            loose = 1e-5 if layer == "recurrent" else 1e-8  # PyTorch's reads its weights more often than once
            np.testing.assert_allclose(our, their, rtol=loose, atol=loose / 1000)
    held = getattr(ours.eval(), weight).detach().numpy().copy()
    dynamic.nn.utils.parametrize.remove_parametrizations(ours, weight)
    np.testing.assert_allclose(getattr(ours, weight).detach().numpy(), held)
    assert type(ours) is type(make(dynamic.nn))


def test_a_parametrization_of_ones_own() -> None:
    answers = []
    for space in (dynamic, torch):

        class Symmetric(space.nn.Module):  # type: ignore[name-defined]
            def forward(self, x: Any) -> Any:
                return x.triu() + x.triu(1).transpose(-1, -2)

            def right_inverse(self, x: Any) -> Any:
                return x.triu()

        utils, layer = space.nn.utils.parametrize, space.nn.Linear(3, 3)
        utils.register_parametrization(layer, "weight", Symmetric())
        assert utils.is_parametrized(layer)
        assert utils.is_parametrized(layer, "weight")
        assert not utils.is_parametrized(layer, "bias")
        layer.weight = space.arange(9.0).reshape(3, 3)
        answers.append([layer.weight.tolist(), list(layer.state_dict()), len(layer.parametrizations.weight)])
        utils.remove_parametrizations(layer, "weight", leave_parametrized=False)
        answers[-1].append(layer.weight.tolist())
        assert not utils.is_parametrized(layer)
        with pytest.raises((ValueError, AttributeError)):
            utils.register_parametrization(layer, "no_such_name", Symmetric())
    assert answers[0] == answers[1]
