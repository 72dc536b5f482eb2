"""Programs in PyTorch's style leave the same losses behind in both, to 1e-5, given the same initial numbers."""

from __future__ import annotations

import numpy as np
import pytest

from tests import programs

pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings("ignore")]
pytest.importorskip("torch")


@pytest.mark.parametrize("name", programs.NAMES)
def test_losses_are_pytorchs(name):
    np.testing.assert_allclose(programs.losses(name), programs.losses(name, "torch"), rtol=1e-5)
