"""Names that public programs use are there, and the others are refused with the remedy."""

from __future__ import annotations

import numpy as np
import pytest

import dynamic
import dynamic as torch
from graphs.errors import DTypeError
from tests.peers import torch_table

SHARE = 0.95


def test_nearly_all_names_that_programs_use_are_there() -> None:
    names = [name for name, _ in torch_table.used()]
    absent = [name for name in names if not torch_table.is_there(name, dynamic)]
    assert len(names) == 213
    assert len(absent) <= (1 - SHARE) * len(names), absent


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("no_such_name", "docs/torch-names.md"),
    ],
)
def test_a_name_that_is_not_there_says_what_to_use(name: str, remedy: str) -> None:
    with pytest.raises(AttributeError, match=f"dynamic has no '{name}'.*{remedy}"):
        getattr(dynamic, name)


def test_there_is_no_gpu_and_no_other_device() -> None:
    assert not dynamic.cuda.is_available()
    assert not dynamic.backends.mps.is_available()
    place = dynamic.device("cuda" if dynamic.cuda.is_available() else "cpu")
    assert (str(place), place.type, dynamic.zeros(2, device=place).device) == ("cpu", "cpu", place)
    for refused in (
        lambda: dynamic.zeros(2, device="cuda:0"),
        lambda: dynamic.ones(1).cuda(),
        lambda: dynamic.device(0),
    ):
        with pytest.raises(ValueError, match="values are on the CPU"):
            refused()


def test_the_default_device_is_the_cpu_and_no_other():
    torch.set_default_device("cpu")
    torch.set_default_device(torch.device("cpu"))
    assert torch.get_default_device() == torch.ones(1).device == torch.device("cpu")
    with pytest.raises(ValueError, match=r"no device 'cuda'.*write device\('cpu'\)"):
        torch.set_default_device("cuda")


def test_lazy_layers_are_refused_with_the_layer_to_use() -> None:
    with pytest.raises(AttributeError, match=r"distributions has no 'Wishart'; there are .*Normal"):
        _ = torch.distributions.Wishart
    with pytest.raises(AttributeError, match=r"nn has no 'LazyConv2d'.*use Conv2d, and give them"):
        _ = torch.nn.LazyConv2d


def test_derivatives_of_the_logarithm_of_the_gamma_function() -> None:
    x = torch.tensor([1, 3])
    np.testing.assert_allclose(torch.lgamma(x).numpy(), np.array([0, np.log(2)], np.float32), rtol=1e-6)
    np.testing.assert_allclose(x.digamma().numpy(), np.array([-0.5772157, 0.9227843], np.float32), rtol=1e-6)
    np.testing.assert_allclose(torch.polygamma(1, x).numpy(), np.array([1.6449341, 0.3949341], np.float32), rtol=1e-6)
    with pytest.raises(DTypeError, match="polygamma of order -1"):
        torch.polygamma(-1, x)
