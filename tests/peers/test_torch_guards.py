"""Values and gradients where a kernel or a rule changes its formula: those of PyTorch, in both engines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed; pip install torch")

import torch

import dynamic
import static
from tests.helpers.together import together

pytestmark = pytest.mark.peers

POINTS = np.array(
    [
        *(0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, 6.0, -6.0, 20.0, -20.0, 88.0, -88.0, 710.0, -710.0),
        *(1e-8, -1e-8, 1e-30, -1e-30, 1e30, -1e30, np.inf, -np.inf, 1 - 2**-20, 1 + 2**-20, -1 + 2**-20),
    ]
)
FUNCTIONS = [
    *("abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "ceil", "cos", "cosh", "digamma", "erf", "erfc"),
    *("erfinv", "exp", "exp2", "expm1", "floor", "frac", "lgamma", "log", "log10", "log1p", "log2", "logit", "neg"),
    *("reciprocal", "relu", "round", "rsqrt", "sigmoid", "sign", "sinc", "sin", "sinh", "sqrt", "square", "tan"),
    *("tanh", "trunc", "nan_to_num", "special.entr", "special.erfcx", "special.i0", "special.i0e", "special.i1"),
    *("special.i1e", "special.ndtr", "special.ndtri", "special.log_ndtr"),
    *(f"nn.functional.{name}" for name in ("elu", "selu", "celu", "gelu", "silu", "mish", "softplus", "softsign")),
    *(f"nn.functional.{name}" for name in ("tanhshrink", "hardtanh", "hardswish", "hardsigmoid", "relu6")),
    *(f"nn.functional.{name}" for name in ("leaky_relu", "logsigmoid", "softshrink", "hardshrink")),
    *("nn.functional.gelu(x, approximate='tanh')", "nn.functional.softplus(x, 2, 3)"),
    *("nn.functional.threshold(x, 1.0, 0.0)", "clamp(x, -1, 1)", "clamp(x, min=0)", "clamp(x, max=6.0)"),
    *("pow(x, 2)", "pow(x, 0.5)", "pow(x, 0)", "pow(x, -1)", "pow(x, 3)", "pow(2, x)", "pow(0, x)", "pow(1, x)"),
    *("xlogy(x, x)", "xlogy(x, 2)", "special.xlog1py(x, x)", "maximum(x, zero)", "minimum(x, zero)", "fmax(x, zero)"),
    *("hypot(x, zero)", "atan2(x, zero)", "atan2(zero, x)", "atan2(x, x)", "logaddexp(x, zero)", "logaddexp(x, x)"),
    *(
        "remainder(x, 1.0)",
        "fmod(x, 1.0)",
        "copysign(x, one)",
        "copysign(one, x)",
        "true_divide(x, x)",
    ),
    *("where(x > 0, sqrt(x), x)", "polygamma(1, x)"),
    *(f"nn.functional.{name}_loss(x, zero, reduction='none')" for name in ("smooth_l1", "huber", "l1", "mse")),
    "nn.functional.binary_cross_entropy_with_logits(x, zero, reduction='none')",
    "nn.functional.soft_margin_loss(x, one, reduction='none')",
    "nn.functional.poisson_nll_loss(x, one, reduction='none')",
]
OTHERWISE = {
    "nn.functional.gelu": ("infinite at infinity; PyTorch's is NaN where it computes many at once", np.isposinf),
    "sinc": ("PyTorch's slope loses its digits beside 0", lambda x: abs(x) == 1e-8),
    "xlogy(x, x)": ("0 beside 0 has slope 0; PyTorch's is NaN", lambda x: x == 0),
    "digamma": (
        "at a pole the slope is infinite; PyTorch gives a large number",
        lambda x: (x < 0) & (abs(x - np.round(x)) < 1e-5),
    ),
    "polygamma(1, x)": (
        "infinite at a pole, where PyTorch is large; 0 far out",
        lambda x: np.isinf(x) | ((x <= 0) & (abs(x - np.round(x)) < 1e-5)),
    ),
    "logit": ("the slope below 0, where there is no value", lambda x: (x <= 0) & (x > -1e-6)),
    "special.i0": ("PyTorch overflows too early", lambda x: abs(x) == 710),
    "special.i1": ("PyTorch overflows too early", lambda x: abs(x) == 710),
    "special.log_ndtr": ("far below 0 the slope is -x; PyTorch has a constant there", lambda x: x <= -88),
    "pow(x, 0.5)": ("the slope of -0.0, and where there is no value", lambda x: (x == 0) | (x == -np.inf)),
    "hypot(x, zero)": ("0 beside 0 has slope 0; PyTorch's is NaN", lambda x: x == 0),
    "copysign(x, one)": ("the slope at an infinity is 1; PyTorch divides by it", np.isinf),
    "nn.functional.soft_margin_loss(x, one, reduction='none')": ("PyTorch overflows far below 0", lambda x: x < -80),
}
"""Where ours are others on purpose: the reason, and the points."""


def _called(space: Any, function: str, x: Any) -> Any:
    code = function if "(" in function else f"{function}(x)"
    words = {"x": x, "zero": space.zeros_like(x), "one": space.ones_like(x), "sqrt": space.sqrt}
    return eval(f"space.{code}", {"space": space, **words})


def _of(space: Any, function: str, points: np.ndarray[Any, Any]) -> tuple[Any, Any]:
    x = space.tensor(points).requires_grad_()
    y = _called(space, function, x)
    if y.requires_grad:
        y.sum().backward()
    return y.detach().numpy(), np.zeros_like(points) if x.grad is None else x.grad.numpy()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@together("function", FUNCTIONS, FUNCTIONS)
def test_a_function_is_pytorchs_where_its_formula_changes(function: str, dtype: str) -> None:
    points = POINTS[~OTHERWISE[function][1](POINTS)] if function in OTHERWISE else POINTS
    points = points.astype(dtype)
    value, slope = _of(torch, function, points)
    limits = {"rtol": 2e-4, "atol": 2e-5} if dtype == "float32" else {"rtol": 1e-7, "atol": 1e-9}
    ours = _of(dynamic, function, points)
    in_a_graph = static.jit(lambda x: _called(dynamic, function, x))(dynamic.tensor(points))
    slopes = static.jit(static.grad(lambda x: _called(dynamic, function, x).sum()))(dynamic.tensor(points))
    for found in (ours[0], in_a_graph):
        np.testing.assert_allclose(np.asarray(found), value, **limits)
    for found in (ours[1], slopes):
        np.testing.assert_allclose(np.asarray(found), slope, **limits)
