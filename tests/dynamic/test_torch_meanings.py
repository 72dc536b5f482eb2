"""Where PyTorch and the array API standard differ, `dynamic` does what PyTorch does; the figures are PyTorch 2.13's."""

from __future__ import annotations

import copy
import functools
import math
import operator
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dynamic as torch
import graphs as g
import static
from dynamic.random import DrawnNumbers, drawing_from
from graphs.errors import ArtifactError, DTypeError, GraphError, InplaceError, NotDifferentiableError, ShapeError
from tests.helpers.together import together

X = [[1.0, 4.0, 2.0], [3.0, 0.0, 5.0]]


def test_the_spread_divides_by_one_less_than_the_count() -> None:
    x = torch.tensor(X)
    assert x.std().item() == pytest.approx(1.8708287)
    assert torch.var(x, dim=1).tolist() == pytest.approx([7 / 3, 19 / 3])
    assert x.var(unbiased=False).item() == pytest.approx(35 / 12)
    assert math.isnan(torch.tensor([1.0]).std().item())
    assert g.std(x).item() == pytest.approx(math.sqrt(35 / 12))  # the array API's


@together("correction", [2, 3])
def test_a_spread_without_a_degree_of_freedom_is_infinite_or_nan(correction: int) -> None:
    x = torch.tensor([[1.0, 2.0], [1.0, 1.0]])
    for spread in (torch.var, torch.std):
        np.testing.assert_array_equal(spread(x, 1, correction=correction).numpy(), [np.inf, np.nan])


def test_a_mean_without_nan_is_in_the_dtype_that_is_named() -> None:
    x = torch.tensor([1.0, math.nan, 2.0], dtype=torch.float64)
    found = x.nanmean(dtype=torch.float32)
    assert (found.dtype, found.item()) == (torch.float32, 1.5)


@together("norm", [torch.linalg.norm, torch.linalg.vector_norm, torch.linalg.matrix_norm])
def test_a_norm_is_computed_in_the_dtype_that_is_named(norm: Any) -> None:
    x = torch.tensor([[3.0, 4.0]], dtype=torch.float16) * 256  # the sum of squares is more than float16 has
    found = norm(x, dtype=torch.float64)
    assert (found.dtype, found.item()) == (torch.float64, 1280)
    with pytest.raises(DTypeError, match="as wide"):
        norm(found.reshape(1, 1), dtype=torch.float32)


def test_a_roll_along_no_axis_goes_through_all_elements() -> None:
    x = torch.tensor([[1, 2], [3, 4]])
    assert x.roll(1, ()).tolist() == x.roll((1,)).tolist() == [[4, 1], [2, 3]]
    assert torch.tensor(5).roll(2, ()).item() == 5
    for shifts, dims in ((1, (0, 1)), ((1, 2), 0), ((1, 2), None)):
        with pytest.raises(ShapeError, match="give one for each"):
            x.roll(shifts, dims)


def test_extremes_along_an_axis_come_with_their_places() -> None:
    values, indices = torch.tensor(X).max(dim=1)
    assert (values.tolist(), indices.tolist()) == ([4, 5], [1, 2])
    found = torch.sort(torch.tensor(X), descending=True)
    assert (found.values[0].tolist(), found.indices[0].tolist()) == ([4, 2, 1], [1, 2, 0])
    assert torch.tensor(X).topk(2).values.tolist() == [[4, 2], [5, 3]]
    assert torch.tensor(X).max(axis=1).tolist() == [4, 5]  # NumPy's word
    assert torch.max(torch.tensor([1.0, 5.0]), torch.tensor([3.0, 2.0])).tolist() == [3, 5]


def test_an_extreme_along_an_axis_gives_its_gradient_to_one_place() -> None:
    x = torch.tensor([[2.0, 2.0], [1.0, 3.0]], requires_grad=True)
    x.max(1).values.sum().backward()
    assert x.grad.tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize(
    ("operands", "dtype"),
    [
        (([1.0], [1]), np.float32),
        (([1], [2]), np.int64),
        (([1.0], True), np.float32),
        (([1], 2.5), np.float32),
        (([True], 2), np.int64),
    ],
)
def test_kinds_count_more_than_widths(operands: Any, dtype: Any) -> None:
    left, right = [torch.tensor(value) if isinstance(value, list) else value for value in operands]
    assert (left + right).dtype == (right * left).dtype == dtype
    assert (left / right).dtype == np.float32


def test_a_tensor_without_axes_changes_the_kind_alone() -> None:
    wide = torch.tensor(2.5, dtype=torch.float64)
    assert (torch.ones(2) * wide).dtype == np.float32
    assert (torch.tensor([1, 2]) * wide).dtype == np.float64
    assert torch.exp(torch.tensor([0, 1])).dtype == np.float32
    assert g.exp(torch.tensor([0, 1])).dtype == np.float64  # the array API's


def test_names_that_numpy_has_with_another_meaning() -> None:
    x = torch.arange(24.0).reshape(2, 3, 4)
    assert x.transpose(0, 2).shape == x.size()[::-1] == (4, 3, 2)
    assert (x.size(1), x.size, x.nelement(), x.dim()) == (3, 24, 24, 3)
    assert torch.nonzero(torch.tensor([[0, 1], [1, 0]])).tolist() == [[0, 1], [1, 0]]
    assert torch.equal(torch.ones(2), torch.ones(2)) is True
    assert [len(part) for part in torch.arange(7).split(3)] == [3, 3, 1]
    assert [len(part) for part in torch.arange(7).chunk(3)] == [3, 3, 1]
    assert x.squeeze(0).shape == (2, 3, 4)
    assert torch.round(torch.tensor([0.5, 1.5, 2.5])).tolist() == [0, 2, 2]
    assert torch.tensor([1.0, 2.0]).repeat(2, 2).shape == (2, 4)
    assert x.view(-1, 4).flatten(0, 1).shape == (24,)
    assert torch.Tensor([1, 2]).dtype == np.float32
    for array in (np.ones(2), np.array([1, 2]), np.array([True, False])):
        assert torch.Tensor(array).dtype == np.float32
    assert torch.Tensor(torch.ones(2).double()).dtype == torch.nn.Parameter(torch.ones(2).double()).dtype == np.float64
    assert torch.Tensor(2, 3).shape == torch.FloatTensor(2, 3).shape == (2, 3)
    assert f"{torch.tensor(1.5)}" == "1.5"
    assert f"{torch.tensor(1.25):.1f}" == "1.2"
    assert torch.arange(0, 1, 0.1).tolist() == np.arange(0, 1, 0.1).astype(np.float32).tolist()


def test_kinds_are_converted_by_every_word_for_them() -> None:
    x = torch.tensor([1.7, -2.2])
    for long in (x.long(), x.to(torch.int64), x.to(dtype=torch.long), x.type(torch.LongTensor), x.to(torch.tensor(1))):
        assert (long.dtype, long.tolist()) == (np.int64, [1, -2])
    assert x.to("cpu") is x.to(torch.device("cpu")) is x.cpu() is x.float() is x
    assert x.double().type() == "torch.DoubleTensor"
    assert torch.zeros(2, dtype=torch.float).dtype == torch.float32
    assert x.long().type_as(x).dtype == np.float32
    with pytest.raises(DTypeError, match="no dtype, no device and no tensor"):
        x.to(3)


def test_what_pytorch_refuses_is_refused() -> None:
    ints = torch.tensor([[1, 2], [3, 4]])
    for refused in (ints.mean, ints.std, lambda: ints.softmax(1), lambda: ints.log_softmax(1)):
        with pytest.raises(DTypeError):
            refused()
    with pytest.raises(
        DTypeError, match=r"matmul of int64 and float32 \(test_torch_meanings.py:\d+\); convert with \.to\(dtype\)"
    ):
        ints @ torch.ones(2, 2)
    with pytest.raises(ShapeError, match="use matmul"):
        torch.mm(torch.ones(2), torch.ones(2, 2))
    with pytest.raises(ShapeError, match="reshape"):
        torch.nn.functional.linear(torch.ones(2, 2), torch.ones(2, 2), torch.ones(2, 2))
    with pytest.raises(TypeError, match=r"torch\.tensor"):
        torch.add(1, 2)


def test_methods_that_change_a_tensor_are_recorded() -> None:
    x = torch.tensor([0.5, 1.0], requires_grad=True)
    y = x * 1
    y.exp_().clamp_(max=2.0).mul_(3)
    y.sum().backward()
    assert x.grad.tolist() == pytest.approx([3 * math.exp(0.5), 0])
    z = torch.zeros(1, 3)
    assert z.squeeze_().unsqueeze_(1) is z
    assert z.t_().shape == (1, 3)
    with pytest.raises(InplaceError, match="leaf"):
        x.unsqueeze_(0)


def test_random_numbers_come_again_with_their_seed() -> None:
    torch.manual_seed(3)
    first = [torch.randn(2, 3), torch.rand(4), torch.randint(0, 9, (5,)), torch.randperm(6)]
    torch.manual_seed(3)
    again = [torch.randn(2, 3), torch.rand(4), torch.randint(0, 9, (5,)), torch.randperm(6)]
    assert [x.tolist() for x in first] == [x.tolist() for x in again]
    assert sorted(first[3].tolist()) == list(range(6))
    own = torch.Generator().manual_seed(3)
    assert torch.randn(2, 3, generator=own).tolist() == first[0].tolist()
    state = torch.get_rng_state()
    drawn = torch.rand(3)
    torch.set_rng_state(state)
    assert torch.rand(3).tolist() == drawn.tolist()


def test_draws_follow_their_weights() -> None:
    torch.manual_seed(0)
    weights = torch.tensor([0.0, 1.0, 3.0])
    drawn = torch.multinomial(weights, 4000, replacement=True)
    assert torch.bincount(drawn, minlength=3).tolist()[0] == 0
    assert (drawn == 2).float().mean().item() == pytest.approx(0.75, abs=0.03)
    assert sorted(torch.multinomial(weights, 2).tolist()) == [1, 2]
    with pytest.raises(GraphError, match="replacement=True"):
        torch.multinomial(weights, 3)
    assert torch.bernoulli(torch.full((4000,), 0.25)).mean().item() == pytest.approx(0.25, abs=0.03)
    assert torch.normal(torch.full((4000,), 2.0), 0.5).std().item() == pytest.approx(0.5, abs=0.03)


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, scale: float) -> Any:
        ctx.save_for_backward(x)
        ctx.scale = scale
        return scale * x**3, x + 1

    @staticmethod
    def backward(ctx: Any, g: Any, h: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * ctx.scale * 3 * x**2 + h, None


def test_a_function_with_a_backward_of_its_own() -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    cubes, more = Cube.apply(x, 2.0)
    assert (cubes.tolist(), more.tolist()) == ([2, 16], [2, 3])
    (first,) = torch.autograd.grad((cubes + more * 5).sum(), x, create_graph=True)
    assert first.tolist() == [11, 29]
    assert torch.autograd.grad(first.sum(), x)[0].tolist() == [12, 24]


def test_results_of_one_call_have_gradients_of_their_own() -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    cubes, more = Cube.apply(x, 1.0)
    (cubes + more).sum().backward()  # one cotangent arrives at both
    assert x.grad.tolist() == [3 + 1, 12 + 1]


def test_a_kept_tensor_that_has_changed_is_an_error() -> None:
    x = torch.tensor([1.0], requires_grad=True)
    inner = x * 2
    out = Cube.apply(inner, 1.0)[0]
    inner.add_(1)
    with pytest.raises(InplaceError, match="changed in place"):
        out.backward()


def test_a_backward_that_forgets_an_input_is_an_error() -> None:
    class Short(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            return x * y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g

    x, y = torch.tensor([1.0], requires_grad=True), torch.tensor([2.0], requires_grad=True)
    with pytest.raises(NotDifferentiableError, match="backward gave 1 gradients for 2 inputs"):
        Short.apply(x, y).backward()


def test_transforms_of_functions() -> None:
    x = torch.tensor([1.0, 2.0, 3.0])
    assert torch.func.grad(lambda v: (v**3).sum())(x).tolist() == [3, 12, 27]
    assert torch.func.vmap(torch.dot)(torch.ones(2, 3), torch.stack([x, 2 * x])).tolist() == [6, 12]
    assert torch.func.vmap(torch.func.grad(lambda v: v**2))(x).tolist() == [2, 4, 6]
    assert torch.func.jacrev(lambda v: v * 2)(x).tolist() == (2 * np.eye(3)).tolist()
    assert torch.autograd.functional.hessian(lambda v: (v**3).sum(), x).diagonal().tolist() == [6, 12, 18]
    with pytest.raises(ShapeError, match="in_dims=None"):
        torch.func.vmap(torch.add)(torch.ones(2), torch.ones(3))


def test_ints_and_bools_take_the_dtype_of_the_floats_that_they_divide() -> None:
    for dtype in (np.float16, np.float32, np.float64):
        x = torch.tensor(np.ones(3, dtype), requires_grad=True)
        for other in (torch.tensor([True, True, True]), torch.tensor([1, 2, 3]), np.array(True), np.array(3, np.int8)):
            for divide in (operator.truediv, lambda a, b: b / a, torch.true_divide, torch.copysign, torch.logaddexp):
                assert divide(x, other).dtype == dtype
    assert (torch.tensor([1, 2]) / torch.tensor([3, 4])).dtype == np.float32


def test_what_is_saved_is_loaded_and_nothing_is_run(tmp_path: Any) -> None:
    state = {"w": torch.tensor(X), "steps": 3, "names": ["a", ("b", None)], "n": torch.tensor([1, 2])}
    torch.save(state, tmp_path / "state.pt")
    found = torch.load(tmp_path / "state.pt", map_location="cpu")
    assert found["w"].tolist() == X
    assert (found["steps"], found["names"], found["n"].dtype) == (3, ["a", ("b", None)], np.int64)
    with pytest.raises(ArtifactError, match="state_dict"):
        torch.save({"w": lambda: 3}, tmp_path / "object.pt")
    endless: list[Any] = []
    endless.append(endless)
    deep: Any = functools.reduce(lambda inner, _: [inner], range(100_000), [])
    for obj in (endless, {"a": (endless,)}, deep):
        with pytest.raises(ArtifactError, match="one that holds itself"):
            torch.save(obj, tmp_path / "deep.pt")
    (tmp_path / "other.pt").write_bytes(b"\x80\x02}q\x00.")
    with pytest.raises(ArtifactError, match="no file that save wrote"):
        torch.load(tmp_path / "other.pt")


def test_a_whole_module_is_saved_and_loaded_by_who_trusts_the_file(tmp_path: Any) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Dropout())
    model[0].weight.tag = "first"
    torch.save({"model": model.eval(), "epoch": 3}, tmp_path / "model.pt")
    with pytest.raises(ArtifactError, match="give weights_only=False"):
        torch.load(tmp_path / "model.pt")
    loaded = torch.load(tmp_path / "model.pt", weights_only=False)
    assert torch.equal(loaded["model"](torch.ones(1, 2)), model(torch.ones(1, 2)))
    assert (loaded["epoch"], loaded["model"][0].weight.tag) == (3, "first")
    assert len(list(loaded["model"].parameters())) == 2


def test_attributes_of_tensors() -> None:
    weight = torch.nn.Parameter(torch.ones(2))
    weight._no_weight_decay = True
    plain = torch.ones(2)
    plain.tag = [1]
    assert (weight._no_weight_decay, plain.tag) == (True, [1])
    assert not hasattr(weight * 1, "_no_weight_decay")
    copied = copy.deepcopy(plain)
    assert copied.tag == [1]
    assert copied.tag is not plain.tag
    assert not hasattr(copy.deepcopy(weight), "_no_weight_decay")  # as in PyTorch
    assert pickle.loads(pickle.dumps(weight))._no_weight_decay
    module = torch.nn.Linear(2, 2)
    held = module._parameters["weight"]
    del module._parameters["weight"]
    module.register_parameter("other", held)
    assert sorted(name for name, _ in module.named_parameters()) == ["bias", "other"]


def test_sizes_by_their_word() -> None:
    x = torch.arange(6.0)
    assert x.reshape(shape=(2, 3)).shape == x.view(size=(2, 3)).shape == (2, 3)
    assert torch.reshape(x, shape=(3, 2)).permute(dims=(1, 0)).shape == (2, 3)
    assert x.expand(size=(2, 6)).shape == x.repeat(repeats=(2, 1)).shape == x.tile(dims=(2, 1)).shape == (2, 6)
    assert x.flip(dims=(0,)).tolist() == x.tolist()[::-1]
    assert torch.rand(size=(2, 3)).shape == torch.zeros(size=(2, 3)).shape == (2, 3)
    with pytest.raises(TypeError):
        x.reshape(sizes=(2, 3))


def test_older_names_of_initial_values() -> None:
    weight = torch.nn.Parameter(torch.empty(20, 10))
    for name in ("xavier_uniform", "xavier_normal", "kaiming_uniform", "kaiming_normal", "orthogonal", "uniform"):
        with pytest.warns(FutureWarning, match=f"use nn.init.{name}_"):
            assert getattr(torch.nn.init, name)(weight) is weight
        assert weight.abs().sum() > 0
    torch.nn.init.sparse_(weight, 0.25)
    assert torch.nn.init._calculate_fan_in_and_fan_out(torch.ones(4, 3, 5)) == (15, 20)
    assert (weight == 0).sum(0).tolist() == [5] * 10


def test_a_function_that_may_work_in_place() -> None:
    from dynamic.autograd.function import InplaceFunction

    class Double(InplaceFunction):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            return gradient * 2

    x = torch.ones(2, requires_grad=True)
    y = x * 1
    Double.apply(y).sum().backward()
    assert (y.tolist(), x.grad.tolist()) == ([2.0, 2.0], [2.0, 2.0])


def test_densities() -> None:
    torch.manual_seed(1)
    logits = torch.tensor([0.0, math.log(3.0)], requires_grad=True)
    choice = torch.distributions.Categorical(logits=logits)
    assert choice.probs.tolist() == pytest.approx([0.25, 0.75])
    assert choice.sample((1000,)).float().mean().item() == pytest.approx(0.75, abs=0.05)
    choice.log_prob(torch.tensor(1)).backward()
    assert logits.grad.tolist() == pytest.approx([-0.25, 0.25])
    normal = torch.distributions.Normal(torch.tensor(1.0), torch.tensor(2.0))
    assert normal.log_prob(torch.tensor(2.0)).item() == pytest.approx(-1.7370857)
    assert normal.entropy().item() == pytest.approx(2.1120857)


KEYS: dict[str, tuple[Any, Any]] = {
    "a mask of bytes": (lambda t: t.tensor([1, 0, 0, 1], dtype=t.uint8), [[0, 1, 2, 3], [12, 13, 14, 15]]),
    "a mask of bytes beside a slice": (
        lambda t: (slice(0, 1), t.tensor([1, 0, 0, 1], dtype=t.uint8)),
        [[0, 3]],
    ),
    "a comparison in bytes": (lambda t: (t.arange(16).reshape(4, 4) > 13).byte(), [14, 15]),
    "a list of lists": (lambda t: [[1, 1, 3], [0]], [4, 4, 12]),
    "a list of one list": (lambda t: [[0, 1]], [[0, 1, 2, 3], [4, 5, 6, 7]]),
    "a list of tensors": (lambda t: [t.tensor([0, 1]), t.tensor([2, 3])], [2, 7]),
    "a list with a slice": (lambda t: [slice(0, 2), 1], [1, 5]),
    "a list of ints": (lambda t: [0, 2], [[0, 1, 2, 3], [8, 9, 10, 11]]),
    "a list of bools": (lambda t: [True, False, False, False], [[0, 1, 2, 3]]),
}


@together("key,wanted", KEYS.values(), KEYS)
def test_a_key_means_what_it_does_in_pytorch(key: Any, wanted: Any) -> None:
    x = torch.arange(16).reshape(4, 4)
    assert x[key(torch)].tolist() == wanted
    x[key(torch)] = -1
    assert (x == -1).sum().item() == len({*np.ravel(wanted).tolist()})


@together("key", [lambda t: t.tensor(1), lambda t: (t.tensor(1),), lambda t: np.array(1), lambda t: np.int64(1)])
def test_an_int_of_a_tensor_selects_a_view(key: Any) -> None:
    x = torch.zeros(3, 2)
    row = x[key(torch)]
    row += 1
    assert x.tolist() == [[0, 0], [1, 1], [0, 0]]


def test_a_deleted_gradient_is_none() -> None:
    x = torch.ones(2, requires_grad=True)
    (x * 3).sum().backward()
    del x.grad
    assert x.grad is None
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2, 2]


@together(
    "gradient,error",
    [
        (lambda x: np.ones(2, np.float32), "a tensor or None, not ndarray"),
        (lambda x: torch.ones(3), r"shape \(3,\)"),
        (lambda x: torch.ones(2, dtype=torch.float64), "float64"),
        (lambda x: x, "its own gradient"),
    ],
)
def test_a_gradient_is_like_its_tensor(gradient: Any, error: str) -> None:
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(GraphError, match=error):
        x.grad = gradient(x)
    assert x.grad is None


def test_index_put_takes_a_mask_of_bytes() -> None:
    x = torch.zeros(3)
    x.index_put_((torch.tensor([1, 0, 1], dtype=torch.uint8),), torch.tensor(7.0))
    assert x.tolist() == [7, 0, 7]


# Dtypes --------------------------------------------------------------------------------------------------------------

NUMPYS = {
    "bool": np.bool_, "uint8": np.uint8, "int8": np.int8, "int16": np.int16, "int32": np.int32, "int64": np.int64,
    "float16": np.float16, "float32": np.float32, "float64": np.float64,
}  # fmt: skip


@together("name,numpys", NUMPYS.items(), NUMPYS)
def test_a_dtype_is_pytorchs_and_numpys_at_once(name: str, numpys: Any) -> None:
    dtype = getattr(torch, name)
    x = torch.zeros(2, dtype=dtype)
    assert x.dtype is dtype
    assert str(dtype) == repr(dtype) == f"torch.{name}"
    assert isinstance(dtype, torch.dtype)
    for other in (numpys, np.dtype(numpys)):
        assert dtype == other
        assert other == dtype
        assert {dtype: 1}[np.dtype(numpys)] == {np.dtype(numpys): 1}[dtype] == 1
        assert np.zeros(1, dtype).dtype == np.dtype(dtype) == torch.zeros(1, dtype=other).dtype
    assert [other for other in NUMPYS if getattr(torch, other) == dtype] == [name]
    assert dtype not in (None, "no dtype", 3)
    assert (dtype.itemsize, dtype.is_floating_point) == (x.itemsize, x.is_floating_point())
    assert dtype.is_signed is (name[0] in "fi")
    assert not dtype.is_complex
    assert pickle.loads(pickle.dumps(dtype)) is copy.deepcopy(dtype) is dtype


def test_pythons_types_are_dtypes_as_in_pytorch() -> None:
    x = torch.ones(2)
    makers = [torch.zeros, torch.ones, torch.empty, torch.rand, torch.randn]
    made = [make(2, dtype=float) for make in makers] + [
        torch.tensor([1], dtype=float), torch.full((2,), 1, dtype=float), torch.arange(3, dtype=float),
        torch.eye(2, dtype=float), torch.zeros_like(x, dtype=float), torch.linspace(0, 1, 3, dtype=float),
        x.new_zeros(2, dtype=float), torch.as_tensor([1.0], dtype=float), torch.asarray([1], dtype=float),
        x.to(float), x.to(dtype=float), x.sum(dtype=float), x.mean(dtype=float), x.cumsum(0, dtype=float),
        x.prod(dtype=float), torch.softmax(x, 0, dtype=float), x.type(float),
    ]  # fmt: skip
    assert {t.dtype for t in made} == {torch.float64}
    assert {torch.zeros(2, dtype=int).dtype, x.to(int).dtype, x.sum(dtype=int).dtype} == {torch.int64}
    assert torch.zeros(2, dtype=bool).dtype is torch.bool
    assert x.dtype in {torch.float16, torch.float32}
    assert torch.get_default_dtype() is torch.float32


def test_what_is_no_call_of_pytorchs_says_so() -> None:
    with pytest.raises(TypeError, match=r"eq: takes tensors, got \(2, 3\), write one of them as torch\.tensor"):
        torch.eq(2, 3)
    attend = torch.nn.MultiheadAttention(4, 2)
    with pytest.raises(ShapeError, match=r"query, key and value have 2 or 3 axes alike, not \[2, 3, 3\]"):
        attend(torch.ones(4, 4), torch.ones(4, 4, 4), torch.ones(4, 4, 4))


def test_numpys_delete_takes_a_tensor_of_places() -> None:
    x, places = torch.arange(5.0), torch.tensor([1, 2])
    assert np.delete(x, places).tolist() == np.delete(x.numpy(), places.numpy()).tolist() == [0, 3, 4]
    assert np.delete(np.arange(5), places).tolist() == [0, 3, 4]


def test_pools_of_infinite_norms_are_extremes() -> None:
    x = torch.tensor([[[-0.5, 0.25, -0.125, 0.75, -1.0]]])
    pool = torch.nn.functional.lp_pool1d
    assert pool(x, math.inf, 3, 2).tolist() == [[[0.5, 1.0]]]
    assert pool(x, -math.inf, 3, 2).tolist() == [[[0.125, 0.125]]]
    assert torch.nn.LPPool1d(math.inf, 2, ceil_mode=True)(x).tolist() == [[[0.5, 0.75, 1.0]]]
    assert torch.nn.functional.lp_pool2d(x[None], math.inf, (1, 5)).tolist() == [[[[1.0]]]]


def test_nothing_in_three_parts_is_three_times_nothing() -> None:
    assert [part.shape for part in torch.zeros(0, 2).chunk(3)] == [(0, 2)] * 3
    assert [part.shape for part in torch.zeros(5, 2).chunk(3)] == [(2, 2), (2, 2), (1, 2)]


def test_a_tensor_equals_nothing_that_holds_no_numbers() -> None:
    x = torch.ones(2)
    for other in (None, "a"):
        assert ((x == other), (other == x), (x != other)) == (False, False, True)


def test_layers_have_the_options_that_they_were_made_with() -> None:
    """A class of the user's that derives from one reads them."""
    table, larger = torch.nn.Embedding(3, 2, max_norm=1.0), torch.nn.Upsample(scale_factor=2, mode="bilinear")
    assert (table.max_norm, table.norm_type, table.scale_grad_by_freq, table.sparse) == (1.0, 2.0, False, False)
    assert (larger.size, larger.scale_factor, larger.mode, larger.align_corners) == (None, 2, "bilinear", None)


# Numbers beside ints and halves -------------------------------------------------------------------------------------

NUMBERS: dict[str, tuple[Callable[[], Any], Any, Any]] = {
    "alpha in the dtype of the result": (
        lambda: torch.sub(torch.tensor([1.5]), torch.tensor([2], dtype=torch.uint8), alpha=-1), torch.float32, [3.5]
    ),
    "alpha in place": (
        lambda: torch.tensor([1.5]).add_(torch.tensor([2], dtype=torch.uint8), alpha=-1), torch.float32, [-0.5]
    ),
    "alpha beside a bool": (
        lambda: torch.add(torch.tensor(8, dtype=torch.int16), torch.tensor([True]), alpha=-1), torch.int16, [7]
    ),
    "alpha of bools": (lambda: torch.add(torch.tensor([True]), torch.tensor([True]), alpha=2), torch.bool, [True]),
    "addcmul of ints": (
        lambda: torch.addcmul(torch.tensor([8]), torch.tensor([3]), torch.tensor([2]), value=2.5), torch.int64, [20]
    ),
    "index_add of ints": (
        lambda: torch.ones(2, dtype=torch.int64).index_add(0, torch.tensor([1]), torch.tensor([5]), alpha=2.5),
        torch.int64,
        [1, 11],
    ),
    "masked_fill of ints": (
        lambda: torch.tensor([5, -7]).masked_fill(torch.tensor([True, False]), -1.7), torch.int64, [-1, -7]
    ),
    "masked_fill of ints by a tensor": (
        lambda: torch.tensor([5, -7]).masked_fill(torch.tensor([True, False]), torch.tensor(2.5)), torch.int64, [2, -7]
    ),
    "bytes in place": (
        lambda: torch.tensor([5, 7], dtype=torch.uint8).mul_(torch.tensor([2, -3])), torch.uint8, [10, 235]
    ),
    "a bool of NumPy's": (
        lambda: torch.zeros(2).scatter(0, torch.tensor([1]), np.bool_(True)), torch.float32, [0, 1]
    ),
}  # fmt: skip


@together("make,dtype,values", NUMBERS.values(), NUMBERS)
def test_a_number_takes_the_dtype_that_it_takes_in_pytorch(make: Any, dtype: Any, values: Any) -> None:
    made = make()
    assert (made.dtype, made.tolist()) == (dtype, values)


@together(
    "wrong",
    [
        lambda: torch.add(torch.tensor([8]), torch.tensor([2]), alpha=0.5),
        lambda: torch.tensor([5]).masked_fill(torch.tensor([True]), math.inf),
        lambda: torch.tensor([5], dtype=torch.int8).masked_fill(torch.tensor([True]), -1e9),
        lambda: torch.tensor([True]).add_(torch.tensor([2])),
    ],
)
def test_a_number_that_ints_do_not_hold_is_refused(wrong: Any) -> None:
    with pytest.raises(GraphError, match=r"; (give|convert)"):
        wrong()


def test_a_number_of_many_elements_is_a_value_error() -> None:
    for read in (float, int, torch.Tensor.item):  # matplotlib catches it
        with pytest.raises(ValueError, match=r"3 elements.*; use tolist"):
            read(torch.ones(3))


def test_einsum_that_sums_nothing_promotes() -> None:
    t, frequency = torch.arange(3), torch.tensor([0.5, 2.0])
    assert torch.einsum("i,j->ij", t, frequency).tolist() == [[0, 0], [0.5, 2], [1, 4]]
    with pytest.raises(RuntimeError, match="einsum of int64 and float32"):
        torch.einsum("i,i->", t[:2], frequency)


def test_complex_random_numbers_have_parts_of_half_the_variance() -> None:
    torch.manual_seed(0)
    z = torch.randn(4000, 2, dtype=torch.cfloat)
    assert (z.shape, z.dtype, z.real.dtype) == ((4000, 2), torch.complex64, torch.float32)
    assert float((z.abs() ** 2).mean()) == pytest.approx(1, abs=0.05)
    assert torch.rand(2, 3, dtype=torch.complex128).imag.dtype == torch.float64


def test_an_attribute_that_is_not_there_names_what_to_use() -> None:
    for name, remedy in (("data_ptr", "compare tensors by `is`"), ("untyped_storage", "numpy"), ("_version", "inside")):
        with pytest.raises(AttributeError, match=f"'Tensor' object has no attribute '{name}': .*{remedy}"):
            getattr(torch.ones(2), name)
        with pytest.raises(AttributeError, match=f"type object 'Tensor' has no attribute '{name}': .*{remedy}"):
            getattr(torch.Tensor, name)
        assert not hasattr(torch.ones(2), name)
        assert not hasattr(torch.Tensor, name)


def test_a_module_may_have_the_name_of_a_method() -> None:
    module = torch.nn.Module()
    module.parameters = []  # a list that hides the method, until a module takes its place
    module.parameters = torch.nn.ParameterList([torch.nn.Parameter(torch.ones(2))])
    held = list(module.parameters())
    assert [name for name, _ in module.named_parameters()] == list(module.state_dict()) == ["parameters.0"]
    assert module._modules["parameters"][0] is held[0]
    assert repr(module).startswith("Module(\n  (parameters): ParameterList(")
    module.load_state_dict({"parameters.0": torch.zeros(2)})
    copied = copy.deepcopy(module)
    value, gradient = static.value_and_grad(lambda m: (m._modules["parameters"][0] + 1).sum())(module)
    assert (held[0].sum().item(), next(copied.parameters()).sum().item(), value, len(list(gradient.parameters()))) == (
        0, 0, 2, 1,
    )  # fmt: skip
    del module.parameters
    assert not list(module.parameters())
    with pytest.raises(KeyError, match=r"'parameters', a method of modules; choose another name"):
        module.parameters = torch.nn.Parameter(torch.ones(2))


def test_complex_parts_broadcast() -> None:
    assert torch.complex(torch.ones(2, 1), torch.arange(3.0)).imag.tolist() == [[0, 1, 2]] * 2
    x = torch.ones(2, 1, requires_grad=True)
    torch.complex(x, torch.arange(3.0)).real.sum().backward()
    assert x.grad.tolist() == [[3], [3]]


def test_a_target_of_bytes_is_no_place_of_the_other_side() -> None:
    target = torch.tensor([1, 0, 1], dtype=torch.uint8)
    assert torch.nn.functional.hinge_embedding_loss(torch.tensor([1.0, 2, 3]), target) == 2


def test_a_tensor_keeps_its_memory_its_size_and_its_class() -> None:
    x = torch.arange(2.0)
    for name, remedy in {"resize": "reshape", "as_subclass": "an object"}.items():
        with pytest.raises(AttributeError, match=remedy):
            getattr(x, name)
    with pytest.raises(DTypeError, match=r"write torch\.from_numpy\(x\.detach\(\)\.numpy\(\)\.view\('int32'\)\)"):
        x.view(torch.int32)
    assert torch.from_numpy(x.detach().numpy().view("int32")).tolist() == [0, 0x3F800000]
    x.view(torch.float32)[0] = 7
    assert x.tolist() == [7, 1]


def test_sizes_are_a_tuple_of_whole_numbers() -> None:
    assert torch.Size([np.int64(2), torch.tensor(3), True]) == (2, 3, 1)
    assert isinstance(torch.ones(2, 3).shape, torch.Size)
    assert not isinstance([2, 3], torch.Size)


def test_a_copy_of_a_parameter_is_shown_as_one() -> None:
    made = torch.nn.Parameter(torch.ones(1))
    shown = "Parameter containing:\ntensor([1.], requires_grad=True)"
    for one in (made, copy.copy(made), copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert repr(one) == str(one) == shown
    for other in (made.clone(), made.detach(), made.data, copy.deepcopy(torch.ones(1))):
        assert repr(other).startswith("tensor([1.]")


def test_what_loading_gives_is_shown_as_in_pytorch() -> None:
    layer = torch.nn.Linear(1, 1)
    assert str(layer.load_state_dict(layer.state_dict())) == "<All keys matched successfully>"
    shown = "_IncompatibleKeys(missing_keys=['weight', 'bias'], unexpected_keys=['other'])"
    assert repr(layer.load_state_dict({"other": torch.ones(1)}, strict=False)) == shown


def test_small_ints_are_counted() -> None:
    assert torch.bincount(torch.tensor([0, 2, 2], dtype=torch.uint8)).tolist() == [1, 0, 2]


class Same(DrawnNumbers):
    """Numbers that NumPy's generator draws, handed out as if they were drawn elsewhere."""

    def __init__(self) -> None:
        self.state = np.random.default_rng(0)

    def next(self, shape: tuple[int, ...], draw: Any) -> Any:
        """The numbers that NumPy draws."""
        numbers = draw(self.state)
        assert numbers.shape == shape
        return numbers


DRAWING = (
    "kaiming_normal_",
    "kaiming_uniform_",
    "normal_",
    "orthogonal_",
    "trunc_normal_",
    "uniform_",
    "xavier_normal_",
)


@together("name", [f"nn.init.{name}" for name in DRAWING] + ["poisson", "normal_", "uniform_", "exponential_"])
def test_what_draws_takes_numbers_that_are_handed_out(name: str) -> None:
    def draw() -> Any:
        if name in ("normal_", "uniform_", "exponential_"):
            return getattr(torch.ones(4, 3), name)().numpy()
        return operator.attrgetter(name)(torch)(torch.ones(4, 3)).numpy()

    with drawing_from(Same()):
        handed = draw()
    with drawing_from(np.random.default_rng(0)):  # type: ignore[arg-type]
        np.testing.assert_allclose(handed, draw(), rtol=1e-6)


def test_numbers_that_are_not_handed_out_are_refused_by_name() -> None:
    with pytest.raises(GraphError, match=r"by standard_gamma are not handed out .*; draw them before the step"):
        Same().standard_gamma(2.0)


LISTS: dict[str, tuple[Any, tuple[int, ...], Any]] = {
    "one": ([torch.ones(1)], (1,), torch.float32),
    "one, of two axes": ([torch.ones(1, 1)], (1,), torch.float32),
    "nested": ([[torch.ones(1)], [torch.ones(())]], (2, 1), torch.float32),
    "beside a float": ([[torch.ones(1), 2.0]], (1, 2), torch.float32),
    "float64": ((torch.ones(1).double(), 2.0), (2,), torch.float64),
    "an int beside a float": ([torch.tensor(3), 2.5], (2,), torch.float32),
    "a bool beside an int": ([torch.tensor(True), 2], (2,), torch.int64),
    "half beside an int": ([torch.ones(1).half(), 2], (2,), torch.float16),
    "small ints": ([torch.tensor(3, dtype=torch.int32), torch.tensor(1, dtype=torch.uint8)], (2,), torch.int32),
}
"""Lists of numbers with tensors among them: the shape and the dtype that PyTorch gives."""


@together("name", LISTS)
def test_tensors_in_a_list_of_numbers_are_numbers(name: str) -> None:
    data, shape, dtype = LISTS[name]
    made = torch.tensor(data)
    assert (made.shape, made.dtype) == (shape, dtype)
    assert torch.tensor(data, dtype=torch.float64).shape == shape
    with pytest.raises(ValueError, match=r"tensors of one element, not of shape \(2,\).*; use torch\.stack"):
        torch.tensor([data, torch.ones(2)])
