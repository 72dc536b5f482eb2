"""Random programs of views and changes in place: PyTorch's values and gradients, or a refusal, never another number.

`RANDOM_VIEWS=5000` runs as many. Then how results lie in memory: PyTorch's strides for each layout of the input, and
memory that is shared after `contiguous`, `reshape` and `view` where PyTorch shares it.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dynamic
import dynamic.nn.functional
import static
from graphs.errors import GraphError
from tests.helpers.random_views import W, X, leaves, loss, random_program
from tests.helpers.together import together

torch = pytest.importorskip("torch")

ROOT = Path(__file__).resolve().parents[2]
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
    "any": {
        "rows": "x.clone()", "transposed": "x.transpose(0, 1)", "turned": "x.permute(2, 0, 1)",
        "back": "x.permute(1, 2, 0)", "inner two": "x.transpose(1, 2)", "all": "x.permute(2, 1, 0)",
        "strided": "x[:, ::2]", "expanded": "x[:1].expand(2, 3, 4)", "part": "x[..., 1:3].permute(2, 1, 0)",
        "strided and turned": "x[:, ::2].transpose(0, 2)", "matrix": "x[0].t()", "diagonal": "x.diagonal(0, 1, 2)",
        "four axes": "x[None].permute(0, 2, 1, 3)", "ones": "x[:, :1].transpose(0, 1)", "vector": "x[0, :, 1]",
        "windows": "x.unfold(2, 2, 1)",
    },
    "images": {
        "images": "y.clone()", "last": "y.contiguous(memory_format=t.channels_last)",
        "last made": "y.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)",
        "last part": "y.contiguous(memory_format=t.channels_last)[:, :2]", "cropped": "y[:, :, 1:4, 1:4]",
        "last one": "y.contiguous(memory_format=t.channels_last)[:1]", "turned": "y.permute(1, 0, 3, 2)",
        "last cropped": "y.contiguous(memory_format=t.channels_last)[:, :, 1:4, 1:4]", "wide": "y.transpose(2, 3)",
        "one channel": "y[:, :1].contiguous(memory_format=t.channels_last)",
    },
    "volumes": {
        "volumes": "z.clone()", "last": "z.contiguous(memory_format=t.channels_last_3d)",
        "turned": "z.permute(0, 2, 1, 4, 3)",
    },
}  # fmt: skip
LEFT = {
    r"linalg\.inv": "LAPACK gives columns, NumPy rows",
    r"(strided|part|cropped|expanded|ones|one|windows|diagonal|vector).*: .*_scatter\(": "PyTorch copies the gaps too",
    r"(windows|expanded): v\.\w+_\(": "PyTorch writes to elements that share memory, one over another",
    r"volumes: last: F\.conv": "float64 takes another way there than float32, which keeps the channels last",
    r"v\.diff|v\.roll|v\.rot90|t\.kron|scaled_dot": "of sizes 0 or 1, or made by other ops there",
}
"""Cells that are left to differ, by what their names match, and why."""
WORDS = {
    "x": np.arange(24.0).reshape(2, 3, 4) % 5 - 1.5, "y": np.arange(288.0).reshape(2, 4, 6, 6) % 7 - 2.5,
    "z": np.arange(256.0).reshape(2, 2, 4, 4, 4) % 7 - 2.5,
}  # fmt: skip
SHARED = ["r.contiguous()", "r.reshape(-1)", "r.transpose(0, -1).contiguous()", "r.transpose(0, -1).reshape(-1)"]


def results() -> list[tuple[str, str]]:
    """What is made of each kind of layout: the kind and the expression."""
    sections = (ROOT / "tests/data/torch_layouts.txt").read_text().split("\n[")[1:]
    listed = {kind: rest.splitlines() for kind, _, rest in (section.partition("]\n") for section in sections)}
    return [(kind, result) for kind in LAYOUTS for result in dict.fromkeys([*listed["any"], *listed[kind]])]


def lies(module: Any, layout: str, result: str) -> Any:
    """The strides of the axes of a result, whether it is contiguous, and what shares its memory; None if refused."""
    words = {"t": module, "F": module.nn.functional} | {name: module.tensor(x.copy()) for name, x in WORDS.items()}
    try:
        words["v"] = eval(layout, words)
        words["r"] = r = eval(result, words)
        others = [eval(other, words).detach().numpy() for other in SHARED] if r.dim() else []
    except (RuntimeError, ValueError, IndexError, TypeError, AttributeError):
        return None
    strides = tuple(step for step, size in zip(r.stride(), r.shape, strict=True) if size > 1)
    shared = [np.shares_memory(other, r.detach().numpy()) for other in (*others, words["v"].detach().numpy())]
    return tuple(r.shape), strides, r.is_contiguous(), shared


@pytest.mark.filterwarnings("ignore")
@together("kind,result", results(), quick=80)
def test_results_lie_in_memory_as_pytorchs(kind, result):
    wrong = {}
    for layout, view in LAYOUTS[kind].items():
        right = lies(torch, view, result)
        is_left = any(re.search(left, f"{kind}: {layout}: {result}") for left in LEFT)
        if right is not None and not is_left and (mine := lies(dynamic, view, result)) != right:
            wrong[layout] = mine, right
    assert not wrong


PLAIN = "acos atan cos erf erfinv exp log logit reciprocal rsqrt sigmoid sinc sqrt square tan tanh"
LAYERS = "celu elu gelu hardshrink hardsigmoid hardswish logsigmoid mish relu selu silu softplus softsign tanhshrink"
RESULTS: dict[str, Any] = {
    **{name: lambda m, x, name=name: getattr(m, name)(x) for name in PLAIN.split()},
    **{name: lambda m, x, name=name: getattr(m.nn.functional, name)(x) for name in LAYERS.split()},
    "softmax": lambda m, x: x.softmax(0), "log_softmax": lambda m, x: x.log_softmax(0),
    "normalize": lambda m, x: m.nn.functional.normalize(x, dim=0), "amax": lambda m, x: x.amax(0),
    "div": lambda m, x: x / (x + 1), "pow": lambda m, x: x**x, "hypot": lambda m, x: m.hypot(x, x + 1),
    "max": lambda m, x: x.view(2, 2).max(0).values, "cummax": lambda m, x: x.cummax(0).values,
    "view": lambda m, x: (1 / x).view(2, 2).t(), "inv": lambda m, x: m.linalg.inv(x.view(2, 2)),
    "max_pool1d": lambda m, x: m.nn.functional.max_pool1d(x[None], 2),
    "avg_pool1d": lambda m, x: m.nn.functional.avg_pool1d(x[None], 2),
    "layer_norm": lambda m, x: m.nn.functional.layer_norm(x, (4,)),
    "gru": lambda m, x: m.nn.GRU(2, 2)(x.view(2, 1, 2))[0],
}  # fmt: skip


@together("name", list(RESULTS))
def test_a_result_that_changes_is_refused_only_where_pytorch_refuses_it(name: str) -> None:
    refused = []
    for module in (torch, dynamic):
        x = module.tensor([0.1, 0.2, 0.4, 0.3], requires_grad=True)
        result = RESULTS[name](module, x)
        result += 1
        try:
            result.sum().backward()
            refused.append(False)
        except (RuntimeError, GraphError):
            refused.append(True)
    assert refused[0] == refused[1]
