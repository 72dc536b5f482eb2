"""Programs in PyTorch's style leave PyTorch's losses behind, by stored figures, on both tapes."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests import programs
from tests.helpers.both_tapes import in_python
from tests.helpers.program_figures import stored

FIGURES = stored()


def test_every_program_has_figures() -> None:
    assert sorted(FIGURES) == programs.NAMES


@pytest.mark.parametrize("name", programs.NAMES)
def test_losses_are_pytorchs(name: str) -> None:
    np.testing.assert_allclose(programs.losses(name), FIGURES[name], rtol=1e-5, atol=1e-7)


@pytest.mark.slow
def test_the_tape_in_python_leaves_the_same() -> None:
    told = in_python(
        "-c",
        "import json; from tests import programs; "
        "print(json.dumps({name: programs.losses(name).tolist() for name in programs.NAMES}))",
    )
    for name, losses in json.loads(told.splitlines()[-1]).items():
        np.testing.assert_allclose(losses, FIGURES[name], rtol=1e-5, atol=1e-7, err_msg=name)
