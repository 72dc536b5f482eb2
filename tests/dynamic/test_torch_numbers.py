"""Numbers, dtypes and histories that are PyTorch's: the figures are PyTorch 2.13's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dynamic as torch
import graphs as g
import static
from dynamic import nn
from dynamic.nn import functional as F  # noqa: N812
from graphs.errors import GraphError
from graphs.frontends.torch.methods import TorchMethods
from graphs.frontends.torch.names import functions
from tests.helpers.together import together

Tensor = Any


def gradient_of(function: Callable[[Tensor], Tensor], values: Any) -> Any:
    """The gradient of the sum of a result, which must have a history."""
    x = torch.tensor(values, dtype=torch.float64, requires_grad=True)
    found = function(x)
    assert found.requires_grad
    found.sum().backward()
    return x.grad.tolist()


# ---- histories -----------------------------------------------------------------------------------------------------


def floored(x: Tensor) -> Tensor:
    """`x // 2` by the operator that changes a tensor."""
    y = x * 1
    y //= 2.0
    return y


STEPS = {
    "//": lambda x: x // 2.0,
    "//=": floored,
    "floor_divide_": lambda x: (x * 1).floor_divide_(2.0),
    "div floor": lambda x: torch.div(x, 2.0, rounding_mode="floor"),
    "div_ floor": lambda x: (x * 1).div_(2.0, rounding_mode="floor"),
    "div_ trunc": lambda x: (x * 1).div_(2.0, rounding_mode="trunc"),
    "norm 0": lambda x: torch.norm(x, 0),
    "vector_norm 0": lambda x: torch.linalg.vector_norm(x, 0),
    "cdist 0": lambda x: torch.cdist(x[None], x[None] * 2, p=0),
    "matrix_power 0": lambda x: torch.linalg.matrix_power(x.reshape(2, 2), 0),
    "bernoulli": lambda x: torch.bernoulli(x * 0 + 0.5),
    "normal": lambda x: torch.normal(x, x * x),
    "poisson": lambda x: torch.poisson(x * x),
    "gt_": lambda x: (x * 1).gt_(0.0),
    "eq_": lambda x: (x * 1).eq_(x.detach()),
    "bool and": lambda x: (x * 1).logical_and_(x.detach()),
}


@together("function", STEPS.values(), STEPS)
def test_what_is_constant_in_steps_has_a_history_and_the_gradient_0(function: Any) -> None:
    assert gradient_of(function, [1.5, -3.0, 0.0, 5.0]) == [0, 0, 0, 0]


def test_both_engines_have_the_gradient_0_of_a_floored_quotient() -> None:
    x = np.array([1.5, -3.0])
    for engine in (torch, static):
        assert engine.grad(lambda x: g.sum(x // 2.0 + x))(x).tolist() == [1, 1]


def test_a_norm_of_order_0_counts_what_is_no_number() -> None:
    x = [0.0, float("nan"), float("inf"), -0.0, -2.0]
    assert torch.linalg.vector_norm(torch.tensor(x), 0).item() == 3
    assert gradient_of(lambda x: torch.norm(x, 0), x) == [0, 0, 0, 0, 0]


def of_one() -> list[str]:
    """The functions of one tensor alone that can change it in place."""
    return [name for name in functions if hasattr(TorchMethods, f"{name}_") and _takes_one(name)]


def _takes_one(name: str) -> bool:
    try:
        with np.errstate(all="ignore"):
            return hasattr(getattr(torch, name)(torch.tensor([0.5])), "shape")
    except (AttributeError, TypeError, ValueError):
        return False


def test_a_shift_in_place_changes_the_tensor() -> None:
    x = y = torch.tensor([1, 3])
    y <<= 1
    assert x is y
    assert x.tolist() == [2, 6]
    y >>= torch.tensor([1, 2])
    assert x is y
    assert x.tolist() == [1, 1]


@together("name", of_one())
def test_a_change_in_place_has_the_history_of_its_function(name: str) -> None:
    function = getattr(torch, name)
    values = [0.25, 0.5, 1.75]
    x = torch.tensor(values, dtype=torch.float64, requires_grad=True)
    wanted: Any = [0.0, 0.0, 0.0]
    with np.errstate(all="ignore"):
        if (found := function(x)).requires_grad:
            found.sum().backward()
            wanted = x.grad.tolist()
        np.testing.assert_array_equal(gradient_of(lambda x: getattr(x * 1, f"{name}_")(), values), wanted)


# ---- NaN is not hidden ---------------------------------------------------------------------------------------------

NAN, INF = float("nan"), float("inf")
LOSSES = {
    "margin_ranking_loss": lambda x: F.margin_ranking_loss(x, x * 0 + 1, torch.ones(2)),
    "hinge_embedding_loss": lambda x: F.hinge_embedding_loss(x, torch.tensor([-1.0, -1.0])),
    "hinge_embedding_loss near": lambda x: F.hinge_embedding_loss(x, torch.ones(2)),
    "cosine_embedding_loss": lambda x: F.cosine_embedding_loss(x[None], x[None], torch.tensor([-1])),
    "triplet_margin_loss": lambda x: F.triplet_margin_loss(x[None], x[None] + 1, x[None] - 1),
    "triplet_margin_loss swap": lambda x: F.triplet_margin_loss(x[None], x[None] + 1, x[None] - 1, swap=True),
    "soft_margin_loss": lambda x: F.soft_margin_loss(x, torch.ones(2)),
    "multi": lambda x: F.poisson_nll_loss(x, torch.ones(2) * 3, full=True),
    "poisson target": lambda x: F.poisson_nll_loss(torch.ones(2), x, full=True),
    "gaussian_nll_loss": lambda x: F.gaussian_nll_loss(x, x * 0, torch.ones(2)),
    "gaussian_nll_loss var": lambda x: F.gaussian_nll_loss(torch.ones(2), torch.ones(2), x),
    "smooth_l1_loss": lambda x: F.smooth_l1_loss(x, torch.ones(2)),
    "huber_loss": lambda x: F.huber_loss(x, torch.ones(2)),
    "l1_loss": lambda x: F.l1_loss(x, torch.ones(2)),
    "mse_loss": lambda x: F.mse_loss(x, torch.ones(2)),
    "kl_div": lambda x: F.kl_div(x, torch.ones(2), reduction="sum"),
    "kl_div target": lambda x: F.kl_div(torch.ones(2), x, reduction="sum"),
    "cross_entropy": lambda x: F.cross_entropy(x, torch.tensor(0)),
    "binary_cross_entropy_with_logits": lambda x: F.binary_cross_entropy_with_logits(x, torch.ones(2)),
    "median": lambda x: x.median(),
    "median of an axis": lambda x: x.median(0).values,
    "quantile": lambda x: x.quantile(0.25),
    "quantile of an axis": lambda x: x[:, None].quantile(0.25, dim=0),
    "threshold": lambda x: torch.threshold(x, 0.1, 20.0).sum(),
    "F.threshold": lambda x: F.threshold(x, 0.1, 20.0).sum(),
    **{
        name: lambda x, name=name: getattr(F, name)(x).sum()
        for name in (
            "relu", "relu6", "elu", "selu", "celu", "gelu", "silu", "mish", "hardswish", "hardsigmoid", "hardtanh",
            "leaky_relu", "softplus", "softsign", "softshrink", "hardshrink", "tanhshrink", "logsigmoid",
        )
    },
}  # fmt: skip


@together("function", LOSSES.values(), LOSSES)
def test_no_loss_and_no_activation_hides_what_is_no_number(function: Any) -> None:
    with np.errstate(all="ignore"):
        assert np.isnan(function(torch.tensor([NAN, 2.0])).item())


def test_gradients_at_the_ends_of_the_line_are_those_of_the_branch() -> None:
    with np.errstate(all="ignore"):
        assert gradient_of(F.hardswish, [INF, -INF, NAN, 3.0, -3.0, 0.0]) == [1, 0, 1, 1, 0, 0.5]
        assert gradient_of(F.elu, [INF, -INF, NAN]) == [1, 0, 1]
        assert gradient_of(F.celu, [INF, -INF, NAN]) == [1, 0, 1]
        assert gradient_of(F.selu, [NAN]) == [pytest.approx(1.0507009873554805)]
    assert gradient_of(torch.median, [2.0, 2.0, 2.0, 1.0]) == pytest.approx([1 / 3, 1 / 3, 1 / 3, 0])
    assert gradient_of(torch.median, [1.0, NAN]) == [0, 1]


# ---- dtypes --------------------------------------------------------------------------------------------------------

BOOLS, INTS = torch.tensor([True, False, True]), torch.tensor([3, 2, 7], dtype=torch.int32)
LONGS, MATRIX = torch.tensor([1, 0, 2]), torch.arange(9).reshape(3, 3)
IMAGE = torch.arange(16).reshape(1, 1, 4, 4)
DTYPES: dict[str, tuple[Callable[[], Tensor], str, Any]] = {
    "sum": (lambda: INTS.sum(dtype=torch.int32), "int32", 12),
    "sum of bools": (lambda: BOOLS.sum(dtype=torch.bool), "bool", True),
    "sum that wraps": (lambda: (INTS * 100).sum(dtype=torch.int8), "int8", -80),
    "prod": (lambda: INTS.prod(0, dtype=torch.int32), "int32", 42),
    "prod of bools": (lambda: BOOLS.prod(dtype=torch.bool), "bool", False),
    "cumsum": (lambda: INTS.cumsum(0, dtype=torch.int32), "int32", [3, 5, 12]),
    "cumprod": (lambda: INTS.cumprod(0, dtype=torch.int32), "int32", [3, 6, 42]),
    "nansum": (lambda: torch.nansum(INTS, dtype=torch.int32), "int32", 12),
    "masked_fill": (lambda: BOOLS.masked_fill(BOOLS, 10), "bool", [True, False, True]),
    "baddbmm": (lambda: torch.baddbmm(MATRIX[None], MATRIX[None], MATRIX[None], beta=0.2)[0, 0], "int64", [15, 18, 21]),
    "scatter_reduce": (lambda: BOOLS.scatter_reduce(0, LONGS, BOOLS, "prod"), "bool", [False, False, True]),
    "avg_pool2d": (lambda: F.avg_pool2d(IMAGE, 2), "int64", [[[[2, 4], [10, 12]]]]),
    "avg_pool1d": (lambda: F.avg_pool1d(-IMAGE[0], 3), "int64", [[[-1], [-5], [-9], [-13]]]),
    "bincount": (lambda: torch.bincount(LONGS, weights=INTS), "float64", [2, 3, 7]),
    "margin_ranking_loss": (lambda: F.margin_ranking_loss(INTS, LONGS, LONGS, reduction="none"), "float32", [0, 0, 0]),
    "huber_loss": (lambda: F.huber_loss(torch.ones(3), LONGS), "float32", pytest.approx(1 / 3)),
    "triplet_margin_loss": (lambda: F.triplet_margin_loss(MATRIX, MATRIX, MATRIX), "float32", 1),
    "pairwise_distance": (lambda: F.pairwise_distance(LONGS, LONGS - 2, p=1), "float32", pytest.approx(6)),
    "einsum": (lambda: torch.einsum("i->", INTS), "int64", 12),
    "einsum that picks": (lambda: torch.einsum("i", INTS), "int32", [3, 2, 7]),
    "diff": (lambda: torch.diff(BOOLS, prepend=BOOLS[:1], append=BOOLS[:2]), "bool", [False, True, True, False, True]),
    "diff of none": (lambda: torch.diff(LONGS, n=0, prepend=LONGS), "int64", [1, 0, 2]),
    "times a scalar": (lambda: torch.ones(2) * np.float64(0.5), "float32", [0.5, 0.5]),
    "a scalar times": (lambda: np.float64(0.5) * torch.ones(2), "float32", [0.5, 0.5]),
    "a scalar less": (lambda: np.float32(0.5) - torch.ones(2).half(), "float16", [-0.5, -0.5]),
    "a scalar by": (lambda: np.int64(1) / LONGS[:1], "float32", [1]),
    "a scalar to": (lambda: np.float64(2) ** INTS, "float32", [8, 4, 128]),
    "ints and an int": (lambda: INTS + np.int64(1), "int32", [4, 3, 8]),
    "ints moved to the left": (lambda: INTS << np.int64(1), "int32", [6, 4, 14]),
    "ints moved to the right": (lambda: INTS >> np.int64(1), "int32", [1, 1, 3]),
    "an int moved by ints": (lambda: np.int64(2) << INTS, "int32", [16, 8, 256]),
    "ints and a float": (lambda: LONGS * np.float64(0.5), "float32", [0.5, 0, 1]),
    "ints and a bool": (lambda: LONGS * np.bool_(True), "float32", [1, 0, 2]),
    "bits and a bool": (lambda: BOOLS & np.bool_(True), "bool", [True, False, True]),
    "in place": (lambda: torch.ones(2).mul_(np.float64(0.5)), "float32", [0.5, 0.5]),
    "equal to a scalar": (lambda: torch.tensor([0.1]) == np.float64(0.1), "bool", [True]),
    "a scalar below": (lambda: np.float64(0.1) < torch.tensor([0.1]), "bool", [False]),
    "where": (lambda: torch.where(BOOLS, torch.ones(3), np.float64(0)), "float32", [1, 0, 1]),
    "where of scalars": (lambda: torch.where(BOOLS, np.float64(1), 0), "float32", [1, 0, 1]),
    "clamp": (lambda: torch.ones(2).clamp(np.float64(0), np.float64(0.5)), "float32", [0.5, 0.5]),
    "full": (lambda: torch.full((2,), np.float64(0.5)), "float32", [0.5, 0.5]),
    "full of an int": (lambda: torch.full((2,), np.int32(2)), "int64", [2, 2]),
    "lerp": (lambda: torch.lerp(torch.zeros(2), torch.ones(2), np.float64(0.5)), "float32", [0.5, 0.5]),
    "fmod": (lambda: torch.fmod(INTS, np.float64(2)), "float32", [1, 0, 1]),
    "div of ints cut to 0": (
        lambda: torch.div(torch.tensor([2**60 + 3, -7]), 2, rounding_mode="trunc"),
        "int64",
        [2**59 + 1, -3],
    ),
    "alpha": (lambda: torch.add(torch.ones(2), torch.ones(2), alpha=np.float64(2)), "float32", [3, 3]),
    "an array": (lambda: torch.ones(2) * np.array(0.5), "float64", [0.5, 0.5]),
    "a scalar alone": (lambda: torch.tensor(np.float64(1)), "float64", 1),
    "a list of scalars": (lambda: torch.tensor([np.float64(1), 2]), "float64", [1, 2]),
    "an option": (lambda: F.leaky_relu(torch.tensor([-1.0]), np.float64(0.5)), "float32", [-0.5]),
    "an option by its name": (lambda: F.threshold(torch.zeros(1), 0, value=np.float64(0.5)), "float32", [0.5]),
    "an option of a layer": (lambda: nn.Hardtanh(np.float64(0), np.float64(0.5))(torch.ones(1)), "float32", [0.5]),
    "an axis": (lambda: torch.ones(1, 2).var(np.int64(1), correction=np.float64(0)), "float32", [0]),
    "sizes": (lambda: torch.ones(1).expand([np.int64(2), np.int64(-1)]), "float32", [[1], [1]]),
    "graphs": (lambda: g.multiply(torch.ones(2), np.float64(0.5)), "float64", [0.5, 0.5]),
    "NumPy": (lambda: np.multiply(torch.ones(2), np.float64(0.5)), "float64", [0.5, 0.5]),
}


@together("function,dtype,values", DTYPES.values(), DTYPES)
def test_the_dtype_is_pytorchs(function: Any, dtype: str, values: Any) -> None:
    found = function()
    assert found.dtype == dtype
    assert found.tolist() == values


# ---- other numbers -------------------------------------------------------------------------------------------------


def test_a_cosine_is_taken_of_vectors_that_were_broadcast() -> None:
    x, y = torch.tensor([[[1.0], [2.0]]]), torch.tensor([[[3.0]]])
    for cosine in (torch.cosine_similarity, F.cosine_similarity):
        assert cosine(x, y, dim=1).item() == pytest.approx(0.9486833)


ZERO = torch.tensor([0])
QUOTIENTS = {
    "//": lambda: torch.tensor([7]) // ZERO,
    "// 0": lambda: torch.tensor([7]) // 0,
    "7 //": lambda: 7 // ZERO,
    "%": lambda: torch.tensor([7]) % ZERO,
    "fmod": lambda: torch.fmod(torch.tensor([7]), ZERO),
    "div trunc": lambda: torch.div(torch.tensor([7]), ZERO, rounding_mode="trunc"),
    "div_ floor": lambda: torch.tensor([7]).div_(ZERO, rounding_mode="floor"),
}


@together("quotient", QUOTIENTS.values(), QUOTIENTS)
def test_an_int_divided_by_0_is_refused(quotient: Any) -> None:
    with pytest.raises(GraphError, match="divided by 0"):
        quotient()


def test_a_float_divided_by_0_is_infinite_and_a_graph_divides_ints() -> None:
    with np.errstate(all="ignore"):
        assert (torch.tensor([7.0]) // torch.tensor([0])).tolist() == [INF]
    divided = static.jit(torch.floor_divide)
    assert np.asarray(divided(np.array([7]), np.array([2]))).tolist() == [3]


def test_tensors_without_axes_keep_none() -> None:
    x = torch.tensor(-3.0)
    assert torch.index_select(x, 0, torch.tensor([0])).shape == ()
    assert F.prelu(x, torch.tensor([0.5])).shape == ()
    assert x.unfold(0, 1, 1).shape == (1,)
    assert torch.linalg.vector_norm(x, 2, 0).item() == 3
    assert torch.cosine_similarity(x, x, dim=0).item() == pytest.approx(1)


SPACED = {
    "arange": (lambda: torch.arange(-0.9, 2.1, 2.0, dtype=torch.int64), [0]),
    "arange of int32": (lambda: torch.arange(-0.9, 2.1, 2.0, dtype=torch.int32), [0, 2]),
    "arange down": (lambda: torch.arange(0.1, -7.9, -4.0, dtype=torch.int64), [0, -4]),
    "arange of floats": (lambda: torch.arange(0.5, 5, 1.5), [0.5, 2.0, 3.5]),
    "linspace": (lambda: torch.linspace(4.3, 1, 5, dtype=torch.int64), [4, 3, 2, 1, 1]),
    "linspace of int8": (lambda: torch.linspace(-5, 5, 7, dtype=torch.int8), [-5, -3, -1, 0, 1, 3, 5]),
    "linspace of one": (lambda: torch.linspace(4.5, 1, 1), [4.5]),
    "logspace": (lambda: torch.logspace(0, 1.2, 2, dtype=torch.int64), [1, 10]),
    "logspace to base 2.5": (lambda: torch.logspace(0.5, 3.7, 5, base=2.5, dtype=torch.int32), [1, 1, 3, 7, 15]),
    "logspace of one": (lambda: torch.logspace(0.5, 2, 1, base=4, dtype=torch.int64), [2]),
}


@together("spaced,values", SPACED.values(), SPACED)
def test_the_ends_are_converted_before_what_lies_between_is_computed(spaced: Any, values: Any) -> None:
    assert spaced().tolist() == values


def test_an_empty_batch_leaves_the_running_statistics() -> None:
    norm = nn.BatchNorm1d(2)
    assert norm(torch.zeros(0, 2)).shape == (0, 2)
    assert norm.running_mean.tolist() == [0, 0]
    assert norm.running_var.tolist() == [1, 1]
    assert norm.num_batches_tracked.item() == 1


@pytest.mark.parametrize("run", [lambda f: f, static.jit], ids=["dynamic", "static"])
def test_an_array_without_axes_keeps_numpys_rules_beside_float16(run: Any) -> None:
    x, y = torch.ones(3, dtype=torch.float16), np.array(1.1)
    for operation in (lambda x: x * y, lambda x: x / y, lambda x: x + y, lambda x: x // y, lambda x: x % y):
        found = np.asarray(run(operation)(x))
        assert (found.dtype, found.tolist()) == (np.float64, operation(np.ones(3, np.float64)).tolist())
