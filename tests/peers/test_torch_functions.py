"""The cases whose values are kept as data, computed by PyTorch again, to second derivatives."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.helpers.torch_functions import CASES, Case

torch = pytest.importorskip("torch", reason="PyTorch is not installed; pip install torch")
pytestmark = pytest.mark.peers


@pytest.fixture(autouse=True)
def _doubles() -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


@pytest.mark.filterwarnings("ignore:reduction. 'mean' divides:UserWarning")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name.replace(" ", "-"))
def test_second_derivatives_are_pytorchs_too(case: Case) -> None:
    from tests.peers.test_torch import compare

    compare(case.ours, lambda *xs: case.torch(torch, *xs), list(case.inputs), 2 if case.twice else 1)
