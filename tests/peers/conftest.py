"""What tests with frameworks leave as it was."""

import sys

import pytest


@pytest.fixture(autouse=True)
def float32_again():
    """PyTorch's default dtype, which an adapter that is started with float64 changes for the process."""
    yield
    if torch := sys.modules.get("torch"):
        torch.set_default_dtype(torch.float32)
