"""Every function of a tensor and a number beside PyTorch: each dtype, and numbers that it holds, rounds or lacks.

A cell is wrong where both give a result and these differ, or where PyTorch says that the number is beyond the dtype and
we give a result, or where an int does not fit ints of 8 bits and we refuse what PyTorch wraps. Where we refuse others,
or compute what PyTorch refuses for another reason, nothing is wrong in silence.
"""

from __future__ import annotations

import itertools
import re
from typing import Any, NamedTuple

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed; pip install torch")

import torch

import dynamic
from tests.helpers.together import together

pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings("ignore")]

DTYPES = {
    "float16": [0.001, 1.0, -3.0, 60000.0, 7.0, 0.0, 6e-8],
    "float32": [0.001, 1.0, -3.0, 60000.0, 7.0, 0.0, 1e-30],
    "int8": [1, -3, 100, 0, 7],
    "uint8": [1, 3, 200, 0, 7],
    "int64": [1, -3, 2**40, 0, 7],
    "bool": [True, False, True],
}
NUMBERS = {
    "1e5": 1e5, "70000": 70000, "0.1": 0.1, "1e-8": 1e-8, "-1e5": -1e5, "inf": float("inf"), "nan": float("nan"),
    "2**40": 2**40, "300": 300, "-1": -1, "True": True, "np.float64(1e5)": np.float64(1e5),
    "np.float32(0.1)": np.float32(0.1), "np.int64(70000)": np.int64(70000), "np.float16(0.1)": np.float16(0.1),
    "np.bool_": np.bool_(True), "np.uint8(200)": np.uint8(200),
}  # fmt: skip
OPERATORS = ["+", "-", "*", "/", "//", "%", "**", "<", "<=", ">", ">=", "==", "!=", "&", "|", "^", "<<", ">>"]
IN_PLACE = ["add_", "sub_", "mul_", "div_", "floor_divide_", "remainder_", "pow_", "fill_", "clamp_min_", "eq_"]
FUNCTIONS = [
    *(f"x {operator} s" for operator in OPERATORS),
    *(f"s {operator} x" for operator in OPERATORS),
    *(f"x.clone().{name}(s)" for name in IN_PLACE),
    *(f"x {operator} t.tensor(s)" for operator in ("+", "-", "*", "/", "//", "%", "**", "<", "==")),
    *("t.tensor(s) * x", "t.tensor(s) / x", "t.maximum(x, t.tensor(s))", "x.clamp(max=t.tensor(s))"),
    *("t.fmod(x, s)", "t.div(x, s, rounding_mode='trunc')", "t.div(x, s, rounding_mode='floor')", "t.rsub(x, s)"),
    *("t.where(x > 0, x, s)", "t.where(x > 0, s, x)", "x.clamp(max=s)", "x.clamp(min=s)", "x.clamp(0, s)"),
    *("t.add(x, x, alpha=s)", "t.sub(x, x, alpha=s)", "t.addcmul(x, x, x, value=s)", "t.addcdiv(x, x, x, value=s)"),
    *("t.lerp(x, x * 0 + 1, s)", "t.xlogy(x, s)", "t.xlogy(s, x)", "t.copysign(x, s)"),
    *("t.full_like(x, s)", "x.new_full((2,), s)", "t.full((2,), s, dtype=x.dtype)", "x.masked_fill(x > 0, s)"),
    *("t.tensor([s], dtype=x.dtype)", "x.index_fill(0, t.tensor([0]), s)", "x.scatter(0, t.tensor([0]), s)"),
    *("x.masked_fill(x > 0, t.tensor(s))", "t.fmod(x, t.tensor(s))"),
    *(f"F.{name}(x, s)" for name in ("leaky_relu", "elu", "celu", "softplus", "hardshrink", "softshrink")),
    *("F.threshold(x, 0, s)", "F.hardtanh(x, -1, s)", "F.pad(x, (1, 0), value=s)", "t.nan_to_num(x / x, nan=s)"),
    *("t.addmm(x[:, None], x[:, None], x[:1, None], alpha=s)"),
    *("t.baddbmm(x[None, :, None], x[None, :, None], x[None, :1, None], beta=s)"),
    *("t.isclose(x, t.ones_like(x), atol=s)", "t.isin(x, s)", "x.sum() * s", "gradient of x * s", "gradient of x / s"),
    *("gradient of s / x", "gradient of x ** s", "gradient of x * t.tensor(s)", "gradient of x % s"),
]
OTHERWISE = {
    r"t.tensor\(s\) [*/] x, float16": "a first operand without axes is read in float32 too; PyTorch rounds it first",
    r"(s / x|gradient of s / x), float16": "one division; PyTorch multiplies by a reciprocal, which it rounds",
    r"(x (<|==) t.tensor\(s\)|. (<=?|>=?|[!=]=) .), u?int8": "ints compare by their values; PyTorch wraps the number",
    r"gradient of x \*\* s, float": "PyTorch rounds the exponent after 1 was taken away, we before",
    r"F.c?elu.*(inf|nan)": "0 times the number",
    r"F.hardtanh.*nan": "a bound that is NaN bounds nothing",
    r"t.addcmul.*float32, inf": "the product of tiny numbers is 0 before it is scaled",
    r"t.tensor\(\[s\].*uint8, np": "PyTorch wraps Python's numbers and refuses NumPy's",
}


class Outcome(NamedTuple):
    """The dtype and values of a result, or the message of an error."""

    dtype: str
    values: Any
    message: str = ""


def outcome(framework: Any, function: str, dtype: str, number: Any) -> Outcome:
    """What a framework makes of a function of a tensor and a number."""
    x = framework.tensor(DTYPES[dtype], dtype=getattr(framework, dtype))
    return evaluated(framework, function, x=x, s=number)


def evaluated(framework: Any, function: str, **names: Any) -> Outcome:
    """What a framework makes of a function of values with names, or of its gradient in x."""
    names |= {"t": framework, "F": framework.nn.functional}
    expression = function.removeprefix("gradient of ")
    try:
        if expression == function:
            result = eval(function, names)
        else:
            x = names["x"].requires_grad_()
            (eval(expression, names) * 1).sum().backward()
            result = x.grad
        return Outcome(str(result.dtype).rpartition(".")[2], result.detach().numpy())
    except Exception as error:  # noqa: BLE001  (each framework has its own)
        return Outcome("", None, str(error))


def is_same(found: Outcome, wanted: Outcome) -> bool:
    """Whether dtypes are equal, and values up to two units in the last place of floats."""
    x, y = found.values, wanted.values
    if found.dtype != wanted.dtype or x.shape != y.shape:
        return False
    if x.dtype.kind != "f":
        return np.array_equal(x, y)
    limits, (x, y) = np.finfo(x.dtype), (x.astype(np.float64), y.astype(np.float64))
    near = 2 * np.maximum(float(limits.eps) * np.abs(y), float(limits.smallest_subnormal))
    with np.errstate(invalid="ignore"):
        return bool(np.all((x == y) | (np.isnan(x) & np.isnan(y)) | (np.abs(x - y) <= near)))


@together("function", FUNCTIONS)
def test_a_number_beside_a_tensor_is_what_it_is_in_pytorch(function):
    wrong = []
    for dtype, (name, number) in itertools.product(DTYPES, NUMBERS.items()):
        with np.errstate(all="ignore"):
            wanted, found = outcome(torch, function, dtype, number), outcome(dynamic, function, dtype, number)
        if wanted.values is None and (found.values is None or "without overflow" not in wanted.message):
            continue
        if found.values is None and dtype not in ("int8", "uint8"):
            continue
        cell = f"{function}, {dtype}, {name}"
        is_right = wanted.values is not None and found.values is not None and is_same(found, wanted)
        if not is_right and not any(re.search(pattern, cell) for pattern in OTHERWISE):
            wrong.append((cell, wanted, found))
    assert not wrong


# Operands of several dtypes ------------------------------------------------------------------------------------------

SEVERAL = {
    "addcmul": ("t.addcmul(x, y, z, value=2)", "t.addcmul(x, y, z[0], value=0.5)", "x.clone().addcmul_(y, z)"),
    "addcdiv": ("t.addcdiv(x, y, z, value=2)", "t.addcdiv(x, y[0], z)", "x.clone().addcdiv_(y, z)"),
    "clamp": ("t.clamp(x, y, z)",),
    "where": ("t.where(x > 1, y, z)",),
}


@pytest.mark.parametrize("name", SEVERAL)
def test_operands_of_several_dtypes_are_read_in_that_of_the_result(name):
    """A product of two of them may be beyond its own dtype, or be rounded in it."""
    wrong = []
    dtypes = ("float16", "float32", "float64", "int32", "uint8")
    for function, (x, y, z) in itertools.product(SEVERAL[name], itertools.product(dtypes, repeat=3)):
        wanted, found = (
            evaluated(
                framework,
                function,
                x=framework.tensor([1, 2], dtype=getattr(framework, x)),
                y=framework.tensor([200, 250], dtype=getattr(framework, y)),
                z=framework.tensor([3, 255], dtype=getattr(framework, z)),
            )
            for framework in (torch, dynamic)
        )
        if wanted.values is not None and (found.values is None or not is_same(found, wanted)):
            wrong.append((function, (x, y, z), wanted, found))
    assert not wrong


LOSSES = [
    *(f"F.{name}(x, y{part}, reduction={reduction!r})"
      for name in ("mse_loss", "l1_loss", "smooth_l1_loss", "poisson_nll_loss", "huber_loss", "soft_margin_loss")
      for part in ("", "[0]") for reduction in ("none", "mean", "sum")),
    *(f"F.{name}(x[0], y[0])" for name in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "kl_div")),
    *("F.kl_div(x, y[0])", "F.kl_div(x, y, log_target=True, reduction='sum')", "F.binary_cross_entropy(x, y)"),
    *(f"F.binary_cross_entropy_with_logits(x, y{rest})" for rest in ("", ", z", ", pos_weight=z", ", reduction='sum'")),
    *("F.binary_cross_entropy(x, x.detach(), y)", "F.gaussian_nll_loss(x, y, z)", "F.margin_ranking_loss(x, y, z)"),
    *("F.cosine_similarity(x, y, 0)", "F.pairwise_distance(x, y)", "F.triplet_margin_loss(x, y, z)"),
]  # fmt: skip


@together("function", LOSSES)
def test_a_loss_of_several_dtypes_has_the_dtype_that_pytorch_gives_it(function):
    """And its value up to the rounding of the narrowest of them; a loss that PyTorch refuses for dtypes is refused."""
    wrong = []
    for dtypes in itertools.product(("float16", "float32", "float64"), repeat=3):
        wanted, found = (
            evaluated(
                framework,
                function,
                **{
                    name: framework.tensor(values, dtype=getattr(framework, dtype))
                    for name, values, dtype in zip("xyz", ([0.25, 0.75], [0.2, 0.9], [0.5, 1.5]), dtypes, strict=True)
                },
            )
            for framework in (torch, dynamic)
        )
        if wanted.values is None or found.values is None or wanted.dtype != found.dtype:
            right = wanted.values is None and (found.values is None or "dtype" not in wanted.message)
        else:
            digits = 8 * max(np.finfo(dtype).eps for dtype in dtypes)
            right = np.allclose(found.values, wanted.values, digits, digits)
        if not right:
            wrong.append((dtypes, wanted, found))
    assert not wrong


NORMALISED = {
    "F.layer_norm(x, x.shape[-1:])": True, "F.group_norm(x, 1)": True, "F.rms_norm(x, x.shape[-1:])": False,
    "F.instance_norm(x)": False, "F.batch_norm(x[0].T, None, None, training=True)": False, "F.normalize(x)": False,
    "x.std()": False, "x.var()": False, "x.norm()": False,
}  # fmt: skip


@together("function", NORMALISED)
def test_squares_beyond_the_dtype_give_0_or_infinity(function):
    """PyTorch's layer_norm and group_norm are NaN or 0, as the number of elements decides: NaN of 16, and 0 of 17."""
    for count in (16, 17):
        values = [[[1e30, *[1.0] * (count - 1)]]]
        with np.errstate(all="ignore"):
            wanted, found = (evaluated(space, function, x=space.tensor(values)) for space in (torch, dynamic))
        if NORMALISED[function] and count == 16:
            assert np.isnan(wanted.values).all()
            assert (found.values == 0).all()
        else:
            assert is_same(found, wanted)
