"""The pytest plugin: a fixture for each check. A fixture imports its check when a test asks for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Check = Callable[..., Any]


@pytest.fixture
def assert_compiles_once() -> Check:
    """`assert_compiles_once(step, inputs, **options)`: the step is compiled once for all inputs."""
    from compare.gate.checks import compiles_once

    return compiles_once


@pytest.fixture
def assert_compiles_at_most() -> Check:
    """`assert_compiles_at_most(step, inputs, n, **options)`: the step is compiled at most `n` times for all inputs."""
    from compare.gate.checks import compiles_at_most

    return compiles_at_most


@pytest.fixture
def assert_no_breaks() -> Check:
    """`assert_no_breaks(step, inputs, **options)`: the step is captured whole, with no graph break at any line."""
    from compare.gate.checks import no_breaks

    return no_breaks


@pytest.fixture
def assert_parity() -> Check:
    """`assert_parity(step, inputs, modes=None)`: value, and gradient of a loss, as the eager mode has them."""
    from compare.gate.checks import parity

    return parity


@pytest.fixture
def assert_not_slower() -> Check:
    """`assert_not_slower(a, b, inputs, by=1.05)`: kernel calls, compiles and planned bytes; time if asked."""
    from compare.gate.checks import not_slower

    return not_slower
