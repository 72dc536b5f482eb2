"""Numbers beside float16, which ends at 65,504: PyTorch's results, and the same bits in every engine and tape."""

from __future__ import annotations

import hashlib
import itertools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dynamic as torch
import static
from dynamic import nn
from dynamic.nn import functional as F  # noqa: N812
from graphs.errors import DTypeError
from tests.helpers.backends import BACKENDS
from tests.helpers.both_tapes import compiled_only, in_python
from tests.helpers.together import check_each, together

VALUES = [0.001, 1.0, -3.0, 60000.0, 7.0, 0.0, 6e-8]

# What PyTorch 2.13 gives for these values. Products, quotients and activations read a number in float32 and round once;
# sums, powers, remainders, comparisons and choices read the float16 next to it.
RESULTS: dict[str, list[float]] = {
    "x * 1e5": [100.06, np.inf, -np.inf, np.inf, np.inf, 0.0, 0.0059586],
    "70000 * x": [70.0, np.inf, -np.inf, np.inf, np.inf, 0.0, 0.0041733],
    "x * 1e-8": [0.0, 0.0, -5.9605e-08, 0.00059986, 5.9605e-08, 0.0, 0.0],
    "x / 1e5": [0.0, 1.0014e-05, -2.9981e-05, 0.6001, 6.9976e-05, 0.0, 0.0],
    "x / 1e-8": [np.inf, np.inf, -np.inf, np.inf, np.inf, 0.0, 5.9609],
    "x / 0.1": [0.010002, 10.0, -30.0, np.inf, 70.0, 0.0, 5.9605e-07],
    "x // 0.1": [0.0, 9.0, -30.0, np.inf, 69.0, 0.0, 0.0],
    "x // 1e-8": [np.inf, np.inf, -np.inf, np.inf, np.inf, 0.0, 5.0],
    'torch.div(x, 0.7, rounding_mode="trunc")': [0.0, 1.0, -4.0, np.inf, 10.0, 0.0, 0.0],
    "(x + 0).mul_(1e5)": [100.06, np.inf, -np.inf, np.inf, np.inf, 0.0, 0.0059586],
    "(x + 0).div_(np.float64(1e5))": [0.0, 1.0014e-05, -2.9981e-05, 0.6001, 6.9976e-05, 0.0, 0.0],
    "x * np.sqrt(1e10)": [100.06, np.inf, -np.inf, np.inf, np.inf, 0.0, 0.0059586],
    "x * torch.tensor(1e5)": [100.06, np.inf, -np.inf, np.inf, np.inf, 0.0, 0.0059586],
    "x / torch.tensor(70000)": [0.0, 1.4305e-05, -4.2856e-05, 0.85693, 0.00010002, 0.0, 0.0],
    "torch.add(x, x, alpha=0.3)": [0.0013008, 1.2998, -3.9004, np.inf, 9.1016, 0.0, 5.9605e-08],
    "torch.addcmul(x, x, x, value=1e5)": [0.10107, np.inf, np.inf, np.inf, np.inf, 0.0, 5.9605e-08],
    "torch.addcdiv(x, x, x + 1, value=0.3)": [0.0012999, 1.1504, -2.5508, 60000.0, 7.2617, 0.0, 5.9605e-08],
    "torch.lerp(x, x * 0 + 1, 1.0)": [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0],
    "torch.addmm(x[:, None], x[:, None], x[:1, None], alpha=1e5)[:, 0]": [
        0.10107,
        101.06,
        -303.0,
        np.inf,
        707.5,
        0.0,
        6.0201e-06,
    ],
    "x + 0.1": [0.10095, 1.0996, -2.9004, 60000.0, 7.1016, 0.099976, 0.099976],
    "x - 1e5": [-np.inf, -np.inf, -np.inf, -np.inf, -np.inf, -np.inf, -np.inf],
    "x < 0.1": [1.0, 0.0, 1.0, 0.0, 0.0, 1.0, 1.0],
    "x % 0.1": [0.0010004, 0.00024414, 0.099243, 0.052002, 0.001709, 0.0, 5.9605e-08],
    "x**0.1": [0.50146, 1.0, np.nan, 3.0039, 1.2148, 0.0, 0.18958],
    "torch.where(x > 0, x, -1e5)": [0.0010004, 1.0, -np.inf, 60000.0, 7.0, -np.inf, 5.9605e-08],
    "torch.sigmoid(x - 11.09)": [1.5199e-05, 4.1306e-05, 7.7486e-07, 1.0, 0.016403, 1.5199e-05, 1.5199e-05],
    "torch.deg2rad(x)": [1.7464e-05, 0.017456, -0.052368, 1047.0, 0.12219, 0.0, 0.0],
    "torch.sinc(x * 100)": [0.9834, 0.0, 5.9605e-08, np.nan, 5.9605e-08, 1.0, 1.0],
    "torch.rsqrt(x)": [31.625, 1.0, np.nan, 0.0040817, 0.37793, np.inf, 4096.0],
    "F.elu(x, 1e5)": [0.0010004, 1.0, -np.inf, 60000.0, 7.0, 0.0, 5.9605e-08],
    "F.celu(x, 1e5)": [0.0010004, 1.0, -3.0, 60000.0, 7.0, 0.0, 5.9605e-08],
    "F.selu(x)": [0.0010509, 1.0508, -1.6709, 63040.0, 7.3555, 0.0, 5.9605e-08],
    "F.leaky_relu(x, 7e4)": [0.0010004, 1.0, -np.inf, 60000.0, 7.0, 0.0, 5.9605e-08],
    "F.gelu(x - 3.67)": [-0.00044823, -0.010132, -0.0, 60000.0, 3.3281, -0.00044513, -0.00044513],
    'F.gelu(x - 3.67, approximate="tanh")': [-0.00031114, -0.0096588, -0.0, 60000.0, 3.3281, -0.00030875, -0.00030875],
    "F.silu(x - 11.09)": [-0.00016868, -0.00041723, -1.0669e-05, 60000.0, -0.067139, -0.00016868, -0.00016868],
    "F.mish(x - 11.09)": [-0.00016868, -0.00041723, -1.0669e-05, 60000.0, -0.067688, -0.00016868, -0.00016868],
    "F.softplus(x, 0.1)": [6.9336, 7.4453, 5.543, 60000.0, 11.031, 6.9297, 6.9297],
    "F.hardswish(x)": [0.0005002, 0.6665, -0.0, 60000.0, 7.0, 0.0, 0.0],
    "F.hardsigmoid(x)": [0.5, 0.6665, 0.0, 1.0, 1.0, 0.5, 0.5],
    "torch.tanh(x)": [0.0010004, 0.76172, -0.99512, 1.0, 1.0, 0.0, 5.9605e-08],
    "torch.special.ndtr(abs(x))": [0.50049, 0.84131, 0.99854, 1.0, 1.0, 0.5, 0.5],
    "torch.atan2(x, x - 2)": [3.1406, 2.3555, -2.6016, 0.78516, 0.95068, 3.1406, 3.1406],
    "torch.log2(x + 2)": [1.001, 1.585, np.nan, 15.875, 3.1699, 1.0, 1.0],
    "torch.xlogy(x, x + 2)": [0.00069475, 1.0986, np.nan, np.inf, 15.383, 0.0, 5.9605e-08],
    "torch.asinh(x)": [0.0010004, 0.88135, -1.8184, 11.695, 2.6445, 0.0, 5.9605e-08],
    "x.pow(1.5)": [3.165e-05, 1.0, np.nan, np.inf, 18.516, 0.0, 0.0],
    "F.tanhshrink(x)": [0.0, 0.23828, -2.0039, 60000.0, 6.0, 0.0, 0.0],
    "F.softsign(x)": [0.00099945, 0.5, -0.75, 1.0, 0.875, 0.0, 5.9605e-08],
    "F.softshrink(x, 0.3)": [0.0, 0.7002, -2.6992, 60000.0, 6.6992, 0.0, 0.0],
    "F.logsigmoid(x)": [-0.69287, -0.31323, -3.0488, 0.0, -0.00091124, -0.69336, -0.69336],
}


def function_of(expression: str) -> Callable[[Any], Any]:
    """The function of x that an expression is."""
    return eval(f"lambda x: {expression}", {"torch": torch, "F": F, "np": np})


@together("expression", RESULTS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_number_is_read_as_pytorch_reads_it(expression):
    found = function_of(expression)(torch.tensor(VALUES, dtype=torch.float16))
    assert found.dtype in (torch.float16, torch.bool)
    np.testing.assert_allclose(np.asarray(found.tolist(), np.float64), RESULTS[expression], rtol=1e-3, atol=6e-8)


# ---- the same bits everywhere --------------------------------------------------------------------


def every_half() -> Any:
    """Every finite number of float16."""
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    return torch.tensor(halves[np.isfinite(halves)])


def bits(array: Any) -> str:
    """The bits of float16 or of bools in short, with every NaN as one."""
    values = np.asarray(array.detach() if isinstance(array, torch.Tensor) else array)
    return hashlib.sha256(np.where(np.isnan(values), np.float16(np.nan), values).tobytes()).hexdigest()


def outcome(expression: str) -> tuple[str, ...]:
    """The bits of the values of an expression, and of its gradient where it has one, on all of float16."""
    function, x = function_of(expression), every_half()
    with np.errstate(all="ignore"):
        values = function(x)
        if not values.is_floating_point():
            return (bits(values),)
        function(x.requires_grad_()).sum().backward()
        return bits(values), bits(x.grad)


@together("expression", [e for e in RESULTS if not e.startswith("F.")])  # these a trace may compute in another order
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_trace_gives_the_bits_of_the_tape(expression):
    function, x, (values, *gradient) = function_of(expression), every_half(), outcome(expression)
    for backend in BACKENDS:
        assert bits(static.jit(function, backend=backend)(x)) == values, backend
        if gradient:
            slope = static.jit(static.grad(lambda x: function(x).sum()), backend=backend)(x)
            assert [bits(slope)] == gradient, backend


@compiled_only
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_the_tape_in_python_gives_the_bits_of_the_compiled_one():
    printed = in_python("-W", "ignore", "-m", "tests.dynamic.test_torch_half").split("\n")
    told = dict(zip(RESULTS, printed, strict=False))
    check_each(RESULTS, lambda expression: _check_equal(str(outcome(expression)), told[expression]))


def _check_equal(found: str, expected: str) -> None:
    assert found == expected


@together("expression", [e for e in RESULTS if "_(" not in e and "[" not in e])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_deferred_ops_give_the_bits_of_those_that_run_at_once(expression):
    function, x = function_of(expression), torch.tensor(VALUES, dtype=torch.float16)
    with torch.batched():
        deferred = function(x + 0)
    assert bits(deferred) == bits(function(x + 0))


def test_gradients_of_float16_are_rounded_once():
    """PyTorch 2.13's: of tanh beside its own result, which is float16; three digits were lost at each step."""
    x = torch.tensor([-4.0, -2.0, -0.5, 1.0, 3.0], dtype=torch.float16, requires_grad=True)
    for function, slopes in {
        torch.tanh: [0.00097656, 0.070984, 0.78662, 0.41968, 0.0097427],
        F.tanhshrink: [0.99902, 0.9292, 0.21338, 0.58008, 0.99023],
        torch.special.ndtr: [0.00013387, 0.053986, 0.35205, 0.24182, 0.0044327],
        lambda x: torch.log2(torch.abs(x)): [-0.3606, -0.72119, -2.8848, 1.4424, 0.48071],
    }.items():
        (found,) = torch.autograd.grad(function(x).sum(), x)
        np.testing.assert_allclose(found.numpy(), slopes, rtol=1.3e-3)


# What PyTorch 2.13 gives of 0.25 and 2.0 beside the targets 1.0 and 0.5.
LOSSES = {
    "huber_loss": ("input", 0.640625), "soft_margin_loss": ("input", 0.4446),
    "binary_cross_entropy_with_logits": ("target", 0.85143), "mse_loss": ("wider", 1.40625),
    "l1_loss": ("wider", 1.125), "smooth_l1_loss": ("wider", 0.640625),
}  # fmt: skip


@together("name", LOSSES)
def test_a_loss_of_two_dtypes_is_in_that_of_pytorchs(name):
    kinds, (of, value) = (torch.float16, torch.float32, torch.float64), LOSSES[name]
    for x, target in itertools.product(kinds, repeat=2):
        given = torch.tensor([0.25, 2.0], dtype=x, requires_grad=True), torch.tensor([1.0, 0.5], dtype=target)
        loss = getattr(F, name)(*given)
        assert loss.dtype == {"input": x, "target": target, "wider": torch.promote_types(x, target)}[of]
        assert loss.item() == pytest.approx(value, rel=1e-3)
        loss.backward()
        assert given[0].grad.dtype == x
    with pytest.raises(DTypeError):
        F.huber_loss(torch.tensor([1]), torch.tensor([1.0]))
    with pytest.raises(DTypeError):
        F.binary_cross_entropy(torch.tensor([0.5]), torch.tensor([0.5], dtype=torch.float64))


# ---- what no number of the dtype is --------------------------------------------------------------

REFUSED = {
    "x.clamp(max=1e5)": "float16", "x.clamp(1e5, None)": "float16", "x.fill_(70000)": "float16",
    "x.masked_fill(x > 0, 1e5)": "float16", "x.masked_fill(x > 0, torch.tensor(1e5))": "float16",
    "torch.full_like(x, -1e5)": "float16", "torch.full((2,), 2**40, dtype=x.dtype)": "float16", "x**1e5": "float16",
    "torch.add(x, x, alpha=1e5)": "float16", "x.scatter(0, torch.tensor([0]), 1e5)": "float16",
    "x.index_fill(0, torch.tensor([0]), np.float64(1e5))": "float16", "F.pad(x, (1, 0), value=1e5)": "float16",
    "F.threshold(x, 0, 1e5)": "float16", "F.hardtanh(x, -1, 1e5)": "float16", "F.hardshrink(x, 1e5)": "float16",
    "torch.linspace(0, 1e5, 3, dtype=x.dtype)": "float16", "x.fill_(300)": "uint8", "x.fill_(float('nan'))": "int64",
    "x.masked_fill(x > 0, torch.tensor(300))": "uint8", "x.__setitem__(0, 300)": "uint8",
    "torch.full_like(x, 1e5)": "int8", "x.scatter(0, torch.tensor([0]), 300)": "int8",
}  # fmt: skip


@together("expression", REFUSED)
def test_a_number_beyond_the_dtype_is_refused(expression):
    x = torch.tensor([1, 2, 3], dtype=getattr(torch, REFUSED[expression]))
    with pytest.raises(DTypeError, match="is beyond"):
        function_of(expression)(x)


def test_an_unsigned_int_takes_numbers_below_0_as_pytorch_does():
    assert torch.tensor([1, 2], dtype=torch.uint8).fill_(-1).tolist() == [255, 255]


def test_an_int_without_axes_does_not_wrap_in_a_quotient():
    x = torch.tensor([1, 3], dtype=torch.uint8)
    assert (x / torch.tensor(300)).tolist() == pytest.approx([1 / 300, 1 / 100])
    assert (torch.tensor(-1) / x).tolist() == pytest.approx([-1, -1 / 3])


def test_infinity_and_nan_are_numbers_of_every_float():
    x = torch.tensor([1.0], dtype=torch.float16)
    assert x.clamp(max=float("inf")).tolist() == [1.0]
    assert x.masked_fill(x > 0, float("-inf")).tolist() == [-np.inf]


# ---- squares beyond the dtype: PyTorch 2.13's results --------------------------------------------


def test_the_norm_of_float16_gradients_is_that_of_float32():
    x = torch.tensor([300.0, 400.0], dtype=torch.float16, requires_grad=True)
    x.grad = x.detach().clone()
    assert nn.utils.clip_grad_norm_([x], 1.0).item() == 500
    assert x.grad.tolist() == [0.60009765625, 0.80029296875]


def test_batch_norm_of_float16_has_its_statistics_in_float32():
    x = torch.tensor([[300.0, 5.0], [600.0, 7.0], [-900.0, 9.0]], dtype=torch.float16)
    mean, variance = torch.zeros(2, dtype=torch.float16), torch.ones(2, dtype=torch.float16)
    found = F.batch_norm(x, mean, variance, training=True)
    assert found.tolist() == [[0.462890625, -1.224609375], [0.92578125, 0.0], [-1.388671875, 1.224609375]]
    assert mean.tolist() == [0.0, 0.7001953125]
    assert variance.tolist() == [63008.0, 1.2998046875]


@pytest.mark.parametrize("scale", [1e30, 1e-30])
def test_a_deviation_is_finite_where_its_square_is_not(scale):
    x = torch.tensor([1.0, 2.0, 3.0, -1.0]) * scale
    assert x.std().item() / scale == pytest.approx(1.7078251)
    assert x.std().dtype == torch.float32
    slope = static.grad(lambda x: x.std())(x)
    np.testing.assert_allclose(np.asarray(slope), [-0.04879502, 0.146385, 0.341565, -0.439155], rtol=1e-5)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_cosine_beside_an_infinite_norm_is_no_nan():
    large = torch.tensor([[1e30, 2e30]])
    assert F.cosine_similarity(large, large).tolist() == [0.0]
    half = torch.tensor([[300.0, 400.0], [0.0, 0.0]], dtype=torch.float16)
    assert F.cosine_similarity(half, half).tolist() == [1.0, 0.0]


if __name__ == "__main__":
    for name in RESULTS:
        sys.stdout.write(f"{outcome(name)}\n")
