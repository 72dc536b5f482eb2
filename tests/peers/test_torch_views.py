"""Random programs of views and changes in place: PyTorch's values and gradients, or a refusal, never another number.

`RANDOM_VIEWS=5000` runs as many.
"""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

import numpy as np
import pytest

import dynamic
import static
from graphs.errors import GraphError
from tests.helpers.random_views import W, X, leaves, loss, random_program

torch = pytest.importorskip("torch")

COUNT = int(os.environ.get("RANDOM_VIEWS", "150"))


def program(seed: int) -> tuple[Any, str]:
    source, _ = random_program(torch, seed)
    space: dict[str, Any] = {}
    exec(source, space)
    return space["f"], source


def outcome(module: Any, f: Any) -> tuple[list[Any], list[Any] | None]:
    """The values of the results, and the gradients of x and w: None where backward refuses."""
    given = leaves(module)
    results = f(module, **given)
    values = [np.array(r.detach().numpy()) for r in results]
    total = loss(results)
    try:
        if total.requires_grad:
            total.backward()
    except (RuntimeError, GraphError):
        return values, None
    return values, [np.zeros(v.shape) if v.grad is None else v.grad.numpy() for v in given.values()]


def in_a_graph(f: Any) -> tuple[list[Any], list[Any]]:
    values = static.jit(lambda x, w: f(dynamic, x, w))(dynamic.tensor(X), dynamic.tensor(W))
    _, gradients = static.value_and_grad(lambda x, w: loss(f(dynamic, x, w)), argnums=(0, 1))(
        dynamic.tensor(X), dynamic.tensor(W)
    )
    return values, gradients


def check(seed: int) -> list[str]:
    """Compare one program in both engines; return what came of it in each, for the count."""
    f, source = program(seed)
    try:
        values, gradients = outcome(torch, f)
    except RuntimeError:  # a view of several that was changed: PyTorch refuses to read it
        return []
    seen = []
    for engine, run in (("dynamic", lambda: outcome(dynamic, f)), ("static", lambda: in_a_graph(f))):
        try:
            found, slopes = run()
        except GraphError as error:
            seen.append(f"{engine} refuses" if "; " in str(error) else f"without a remedy: {error}")
            continue
        for mine, right in zip(found, values, strict=True):
            np.testing.assert_allclose(mine, right, rtol=1e-9, err_msg=f"{engine}\n{source}")
        if gradients is not None and slopes is not None:
            for mine, right in zip(slopes, gradients, strict=True):
                np.testing.assert_allclose(mine, right, rtol=1e-9, atol=1e-9, err_msg=f"{engine}\n{source}")
        seen.append(f"{engine} gives the values")
    return seen


def test_random_programs_of_views_are_pytorchs_or_refused():
    counts = Counter(what for seed in range(COUNT) for what in check(seed))
    assert not [what for what in counts if "remedy" in what]
    assert counts["static gives the values"] > COUNT // 2, counts
    assert counts["dynamic gives the values"] > COUNT // 3, counts
