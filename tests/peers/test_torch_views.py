"""Random programs of views and changes in place: PyTorch's values and gradients, or a refusal, never another number.

`RANDOM_VIEWS=5000` runs as many. Then how results lie in memory: PyTorch's strides for each layout of the input, and
memory that is shared after `contiguous`, `reshape` and `view` where PyTorch shares it.
"""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

import numpy as np
import pytest

import dynamic
import dynamic.nn.functional
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
    assert counts["dynamic gives the values"] > COUNT // 2, counts


LAYOUTS = {
    "rows": "x.clone()", "transposed": "x.transpose(0, 1)", "turned": "x.permute(2, 0, 1)",
    "back": "x.permute(1, 2, 0)", "inner two": "x.transpose(1, 2)", "all": "x.permute(2, 1, 0)",
    "strided": "x[:, ::2]", "expanded": "x[:1].expand(2, 3, 4)",
    "strided and turned": "x[:, ::2].transpose(0, 2)", "matrix": "x[0].t()",
    "part": "x[..., 1:3].permute(2, 1, 0)", "four axes": "x[None].permute(0, 2, 1, 3)",
}  # fmt: skip
RESULTS = [
    "v.clone()", "v.flip(0)", "v.flip(0, 1)", "t.fliplr(v)", "t.flipud(v)", "v.roll(1, 0)", "v.detach().clone()",
    "v + 1", "v * v", "v + v.clone()",
    "v + v[:1]", "v * t.ones(v.shape[-1], dtype=v.dtype)", "v > 0", "t.where(v > 0, v, 0.0)", "-v", "v.exp()",
    "v.erf()", "t.lgamma(v)", "t.lerp(v, v, 0.5)", "v // 1", "v ** 2.5", "v.clamp(0, 1)", "F.relu(v)", "F.gelu(v)",
    "F.softplus(v)", "F.dropout(v, 0.5)", "F.glu(v.repeat_interleave(2, 0), 0)", "t.zeros_like(v)", "t.ones_like(v)",
    "t.full_like(v, 2.0)", "t.rand_like(v)", "t.randn_like(v)", "t.empty_like(v)",
    "t.zeros_like(v, memory_format=t.contiguous_format)", "v.clone(memory_format=t.contiguous_format)",
    "v.contiguous()", "v.float()", "v.long()", "v.to(v.dtype, copy=True)", "t.tensor(v)", "v.softmax(0)",
    "v.log_softmax(-1)", "v.masked_fill(v > 0, 1.0)", "t.triu(v)", "t.tril(v)", "v.cumsum(0)", "v.cumprod(0)",
    "v.argsort(0)", "v.sum(0)", "v.mean(-1)", "v.amax(0)", "v.var(0)", "v.logsumexp(0)", "v.norm(dim=0)",
    "t.cat([v, v])", "t.stack([v, v])", "v.repeat(*[1] * v.dim())", "F.layer_norm(v, v.shape[-1:])",
    "F.pad(v, (0, 0))", "F.pad(v, (1, 1))", "F.batch_norm(v, None, None, training=True)", "F.logsigmoid(v)",
    "v.renorm(2, 0, 1.0)", "F.one_hot(v.long().abs())", "v @ t.ones(v.shape[-1], 2, dtype=v.dtype)",
    "v.diff(dim=-1)", "v.gather(0, t.zeros_like(v).long())", "v.index_select(0, t.tensor([0]))",
    "v.index_add(0, t.tensor([0]), v[:1])",
]  # fmt: skip
SHARED = ["r.contiguous()", "r.reshape(-1)", "r.transpose(0, -1).contiguous()", "r.transpose(0, -1).reshape(-1)"]


def lies(module: Any, layout: str, result: str) -> Any:
    """The strides of the axes of a result, whether it is contiguous, and what shares its memory; None if refused."""
    words = {"t": module, "F": module.nn.functional, "x": module.tensor(np.arange(24.0).reshape(2, 3, 4) % 5 - 1.5)}
    words["v"] = eval(LAYOUTS[layout], words)
    try:
        words["r"] = r = eval(result, words)
    except (RuntimeError, ValueError, IndexError, TypeError):
        return None
    others = [eval(other, words).detach().numpy() for other in SHARED] if r.dim() else []
    strides = tuple(step for step, size in zip(r.stride(), r.shape, strict=True) if size > 1)
    shared = [np.shares_memory(other, r.detach().numpy()) for other in others]
    return strides, r.is_contiguous(), shared


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("result", RESULTS)
def test_results_lie_in_memory_as_pytorchs(result):
    wrong = {}
    for layout in LAYOUTS:
        right = lies(torch, layout, result)
        if right is not None and (mine := lies(dynamic, layout, result)) != right:
            wrong[layout] = mine, right
    assert not wrong
