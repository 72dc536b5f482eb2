"""The symbol of a tensor is a tensor in a trace: dtypes, names and random numbers of PyTorch."""

from __future__ import annotations

import functools
import operator
import random
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dynamic as torch
import graphs
import static
from dynamic import distributions, nn
from graphs.errors import GraphError
from static.trace.symbol import REFUSED, Symbol
from tests.helpers.backends import BACKENDS
from tests.helpers.together import together

SCALARS = [2, 2.5, True, *[kind(2) for kind in (np.float64, np.float32, np.float16, np.int64, np.int32, np.uint8)]]
DTYPES = ["float32", "float64", "float16", "int64", "int32", "uint8", "bool"]
MASK = torch.tensor([True, False, True])
OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    name: getattr(operator, name)
    for name in (
        *("add", "sub", "mul", "truediv", "floordiv", "mod", "pow"),
        *("lt", "le", "eq", "ne", "gt", "ge", "and_", "or_", "xor"),
    )
} | {
    "where": lambda x, y: torch.where(MASK, x, y),
    "clamp": torch.clamp,
    "maximum": torch.maximum,
    "add": lambda x, y: torch.add(x, x, alpha=y),
    "twice": lambda x, y: (x * y) * (x == 1) + y,
    "in place": lambda x, y: (x * 1).mul_(y),
}


def result(f: Callable[..., Any], x: Any) -> Any:
    """The dtype and the values, or that it is refused."""
    try:
        with np.errstate(all="ignore"):
            value = f(x)
    except (GraphError, TypeError):
        return "refused", 0
    array = np.asarray(value)
    return str(array.dtype), array.tolist()


@together("name", OPERATORS, quick=3)
def test_a_symbol_computes_as_its_tensor(name: str) -> None:
    for dtype in DTYPES:
        x = torch.tensor([1, 2, 3]).to(getattr(torch, dtype))
        for scalar in SCALARS:
            for left in (False, True):

                def f(x: Any, s: Any = scalar, left: bool = left) -> Any:
                    return OPERATORS[name](s, x) if left else OPERATORS[name](x, s)

                if left and not hasattr(operator, name):
                    continue
                case = name, dtype, repr(scalar), left
                eager, compiled = result(f, x), result(static.jit(f), x)
                assert eager[0] == compiled[0], case
                np.testing.assert_allclose(compiled[1], eager[1], rtol=2e-3, err_msg=str(case))  # float16 is among them


def augmented(x: Any) -> Any:
    y = x * 2
    z = y
    y += 1
    y *= 3
    return z


def element(x: Any) -> Any:
    y = x * 2
    y[0] = 7.0
    return y


@functools.singledispatch
def kind_of(_: Any) -> int:
    return 1


@kind_of.register
def _(_: torch.Tensor) -> int:
    return 2


MATRIX, CUBE = torch.arange(6.0).reshape(2, 3), torch.arange(24.0).reshape(2, 3, 4)


def gradient_of_nothing(x: Any) -> Any:
    total, other = (x**2).sum(), x * 2
    first, second = torch.autograd.grad(total, [x, other], materialize_grads=True)
    return first + second


METHODS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "transpose": (lambda x: x.transpose(0, 1), MATRIX),
    "transpose of three": (lambda x: x.transpose(1, 2), CUBE),
    "max": (lambda x: x.max(dim=1), MATRIX),
    "max by place": (lambda x: x.max(1)[1], MATRIX),
    "min of all": (lambda x: x.min(), MATRIX),
    "flatten": (lambda x: x.flatten(1), CUBE),
    "squeeze": (lambda x: x.squeeze(1), MATRIX),
    "reshape": (lambda x: x.reshape(3, -1), MATRIX),
    "sum": (lambda x: x.sum(1, keepdim=True), MATRIX),
    "std": (lambda x: x.std(0), MATRIX),
    "argsort": (lambda x: (-x).argsort(1, descending=True), MATRIX),
    "numel": (lambda x: x * x.numel() + x.nelement() + x.itemsize + x.nbytes, MATRIX),
    "new": (lambda x: x.new_zeros(2) + x.new_tensor([1.0, 2.0]) + x.new_full((2,), 3), MATRIX),
    "flags": (lambda x: x * (x.is_cuda + x.is_sparse + x.is_quantized), MATRIX),
    "clone": (lambda x: x.clone().add_(1), MATRIX),
    "in place": (lambda x: (x * 2).sub_(1).clamp_(0, 3).exp_(), MATRIX),
    "filled": (lambda x: (x * 2).fill_(7), MATRIX),
    "augmented": (augmented, MATRIX),
    "shape in place": (lambda x: (x * 2).unsqueeze_(0).squeeze_(0).t_(), MATRIX),
    "an element": (element, MATRIX),
    "is a tensor": (lambda x: x * (isinstance(x, torch.Tensor) + 2 * torch.is_tensor(x + 1)), MATRIX),
    "is no parameter": (lambda x: x * isinstance(x, nn.Parameter), MATRIX),
    "by kind": (lambda x: x * kind_of(x), MATRIX),
    "as_tensor": (lambda x: torch.as_tensor(x) + torch.as_tensor(1), MATRIX),
    "distribution": (lambda x: distributions.Normal(x, x + 1).log_prob(x * 2), MATRIX),
    "Uniform": (lambda x: distributions.Uniform(x, x + 1).log_prob(x + 0.5), MATRIX),
    "a gradient": (lambda x: torch.autograd.grad((x.clone() ** 2).sum(), (y for y in [x]))[0], MATRIX),
    "a gradient of nothing": (gradient_of_nothing, MATRIX),
}


@together("name", METHODS)
def test_a_method_of_a_symbol_is_that_of_its_tensor(name: str) -> None:
    f, x = METHODS[name]
    eager = f(x.clone().requires_grad_() if name.startswith("a gradient") else x.clone())
    compiled = static.jit(f)(x)
    for theirs, ours in zip(*(v if isinstance(v, tuple) else (v,) for v in (eager, compiled)), strict=True):
        np.testing.assert_array_equal(ours, theirs.numpy(force=True))


IN_A_STEP = {"backward", "grad", "is_leaf", "requires_grad", "requires_grad_"}
"""What symbols have where `static.trace_step` traces, and nowhere else: tests/engines/test_trace_step.py."""
OF_A_RESULT = {"is_contiguous"}
"""What symbols answer of a result that the graph lays out, and refuse of an argument."""


def test_a_symbol_has_each_name_of_a_tensor_or_says_why_not() -> None:
    names = {name for name in dir(torch.Tensor) if not name.startswith("_")}
    missing = names - set(dir(Symbol)) - {"captured_array"}
    assert missing == set(REFUSED) - IN_A_STEP - OF_A_RESULT
    assert len(missing) <= 20
    more = {name for name in dir(Symbol) if not name.startswith("_")} - names
    assert more <= {"builder", "gradients", "node"}  # what a trace knows of it
    for name, (why, remedy) in REFUSED.items():
        with pytest.raises(AttributeError, match=f"^{name} of a tensor in a trace: {why}.*; {re.escape(remedy)}"):
            static.jit(lambda x, name=name: getattr(x, name)() if name in OF_A_RESULT else getattr(x, name))(MATRIX)


@pytest.mark.parametrize("change", [lambda x: x.add_(1), lambda x: x.unsqueeze_(0), lambda x: operator.iadd(x, 1)])
def test_an_argument_is_not_changed(change: Any) -> None:
    with pytest.raises(GraphError, match="an argument is changed in place"):
        static.jit(change)(MATRIX)


def test_the_symbol_of_an_array_computes_as_numpy() -> None:
    ints, matrix = np.arange(6).reshape(2, 3), np.arange(6.0).reshape(2, 3)
    for f in (
        lambda x: x / 2, lambda x: x * 0.5, lambda x: x.transpose(0, 1), lambda x: x.max(0), lambda x: x.flatten(),
        lambda x: x * np.float64(2), lambda x: np.float32(2) * x, lambda x: x.sum(1), lambda x: (x > 1) * 0.5,
    ):  # fmt: skip
        for x in (ints, matrix.astype(np.float32)):
            expected, found = f(x), static.jit(f)(x)
            assert (found.dtype, found.tolist()) == (expected.dtype, expected.tolist())
    assert static.jit(lambda x: x * isinstance(x, torch.Tensor))(matrix).sum() == 0


def test_a_tensor_and_an_array_of_one_shape_have_a_graph_each() -> None:
    f = static.jit(lambda x: x / 2)
    assert [f(x).dtype for x in (np.arange(3), torch.arange(3), np.arange(3))] == ["float64", "float32", "float64"]
    assert f.stats.reasons == ["first call", "the arguments are arrays for tensors, or the reverse"]


def test_a_transform_gives_tensors_in_both_engines() -> None:
    def loss(w: Any, c: Any) -> Any:
        return (w * (c / 3) * np.float64(2)).sum() * isinstance(c, torch.Tensor)

    w, c = np.ones(3, np.float32), np.arange(3)
    for value, gradient in (torch.value_and_grad(loss)(w, c), static.value_and_grad(loss)(w, c)):
        assert (value.dtype, gradient.dtype, round(float(value), 5)) == (np.float32, np.float32, 2.0)


# ---- random numbers ------------------------------------------------------------------------------------------------

WEIGHTS = torch.tensor([0.2, 0.5, 0.3])
DRAWS: dict[str, Callable[[Any], Any]] = {
    "rand": lambda x: torch.rand(3),
    "rand in float64": lambda x: torch.rand(3, dtype=torch.float64),
    "randn": lambda x: x + torch.randn(3),
    "into a tensor that is made": lambda x: torch.empty(3).normal_() * x.mean(),
    "randn_like": torch.randn_like,
    "randint": lambda x: torch.randint(0, 1000, (3,)),
    "randperm": lambda x: torch.randperm(30),
    "normal": lambda x: torch.normal(x, torch.ones(3)),
    "bernoulli": lambda x: torch.bernoulli(torch.full((40,), 0.5)),
    "bernoulli of a result": lambda x: torch.bernoulli((x * 0 + 0.5).expand(40, 3)),
    "multinomial": lambda x: torch.multinomial(x, 40, replacement=True),
    "multinomial of a result": lambda x: torch.multinomial((x + torch.rand(3)).expand(30, 3), 2),
    "poisson": lambda x: torch.poisson(torch.full((9,), 50.0)),
    "in place": lambda x: (x * 2).normal_() + (x * 1).uniform_() + (x * 3).exponential_(),
    "Normal.sample": lambda x: distributions.Normal(x, 1.0).sample((2,)),
    "Normal.rsample": lambda x: distributions.Normal(x, x + 1).rsample(),
    "Uniform.rsample": lambda x: distributions.Uniform(x, x + 1).rsample(),
    "Categorical.sample": lambda x: distributions.Categorical(x).sample((40,)),
    "Bernoulli.sample": lambda x: distributions.Bernoulli(x).sample((40,)),
    "two": lambda x: torch.rand(3) - torch.randn(3) * torch.rand(3),
    "a generator": lambda x: torch.rand(3, generator=CHANCE),
}
CHANCE = torch.Generator()


@together("name", DRAWS)
def test_each_call_draws_what_the_dynamic_engine_draws(name: str) -> None:
    f = DRAWS[name]
    drawn = []
    for run in (f, static.jit(f)):
        torch.manual_seed(7)
        CHANCE.manual_seed(7)
        drawn.append([np.asarray(run(WEIGHTS)).tolist() for _ in range(4)])
    assert drawn[0] == drawn[1]
    assert len({str(values) for values in drawn[1]}) == 4


def _restarted() -> Any:
    CHANCE.manual_seed(3)
    return CHANCE


STATE = torch.Generator().manual_seed(9).get_state()
RESTARTS: dict[str, Callable[[], Any]] = {
    "a new one": torch.Generator,
    "a new one with a seed": lambda: torch.Generator().manual_seed(3),
    "one from outside": _restarted,
    "one with a state": lambda: (chance := torch.Generator(), chance.set_state(STATE))[0],
}


@together("name", RESTARTS)
def test_a_generator_that_is_restarted_in_a_trace_restarts_in_each_call(name: str) -> None:
    def f(x: Any) -> Any:
        chance = RESTARTS[name]()
        first = torch.rand(3, generator=chance)
        return x + first + 10 * torch.rand(3, generator=chance)

    run = static.jit(f)
    assert [np.asarray(run(WEIGHTS)).tolist() for _ in range(3)] == [np.asarray(f(WEIGHTS)).tolist()] * 3


def test_a_generator_with_a_random_seed_draws_anew_in_each_call() -> None:
    def f(x: Any) -> Any:
        chance = torch.Generator()
        chance.seed()
        return x + torch.rand(3, generator=chance)

    run = static.jit(f)
    assert len({str(np.asarray(run(WEIGHTS)).tolist()) for _ in range(3)}) == 3


def test_a_restart_of_another_trace_is_not_taken_over() -> None:
    chance = torch.Generator()
    static.jit(lambda x: (chance.manual_seed(1), x)[1])(WEIGHTS)
    run = static.jit(lambda x: torch.rand(3, generator=chance))
    assert run(WEIGHTS).tolist() != run(WEIGHTS).tolist()


GENERATOR = np.random.default_rng(0)


def _while(n: int) -> Any:
    return lambda step, x: graphs.while_loop(
        lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] * 2 + step(s[1])), (0, x * 0)
    )[1]


def _nested(step: Any, x: Any) -> Any:
    def outer(total: Any, _: Any) -> Any:
        inner, _ = graphs.scan(lambda part, _: (part * 2 + step(part), 0.0), total, None, length=2)
        return inner, 0.0

    return graphs.scan(outer, x * 0, None, length=2)[0]


def _converted(step: Any, x: Any) -> Any:
    total, i = x * 0, np.int64(4)
    while i > 0:
        total, i = total * 2 + step(total), i - 1
    return total


DROPPING = {
    "scan": (lambda step, x: graphs.scan(lambda s, _: (s * 2 + step(s), 0.0), x * 0, None, length=4)[0], {}),
    "while": (_while(4), {}),
    "nested": (_nested, {}),
    "in a branch": (
        lambda step, x: _while(4)(lambda s: graphs.cond(graphs.sum(s) > -1, lambda: step(s), lambda: s), x),
        {},
    ),
    "converted": (_converted, {"max_rounds": None}),
    "bounded": (_converted, {"max_rounds": 5}),
}


@together("loop,options", DROPPING.values(), DROPPING)
def test_each_turn_of_a_loop_drops_others(loop: Any, options: Any) -> None:
    """A number whose bits are the masks of four turns takes all of 16 values, in every call others."""
    layer = torch.nn.Dropout(0.5)

    def bits(x: Any) -> Any:
        return loop(lambda state: layer(state * 0 + 1) / 2, x)

    run = static.jit(static.converted(bits, **options) if options else bits)
    calls = [np.asarray(run(np.ones(400, np.float32))) for _ in range(2)]
    assert all(set(call) == set(range(16)) for call in calls)
    assert (calls[0] != calls[1]).any()


def test_a_loop_that_drops_has_the_gradient_of_its_masks() -> None:
    def total(x: Any) -> Any:
        return graphs.sum(_while(3)(lambda s: torch.nn.functional.dropout(x * 8.0, 0.5) / 2, x))

    value, (slope,) = static.value_and_grad(total, argnums=(0,))(np.ones(50, np.float32))
    np.testing.assert_allclose(np.sum(slope), value)  # it is linear
    assert len(set(slope)) > 4


@together("layer", [lambda: torch.nn.Linear(2, 2), lambda: torch.nn.Parameter(torch.randn(2))], ["layer", "parameter"])
def test_parameters_that_a_trace_would_make_are_refused(layer: Any) -> None:
    def made(x: Any) -> Any:
        layer()
        return x * 2

    with pytest.raises(GraphError, match=r"each call would have new ones.*make the layer before"):
        static.jit(made)(torch.ones(2))


class Policy:
    """An object that draws."""

    def __init__(self) -> None:
        self.chance = np.random.default_rng(0)

    def __call__(self, x: Any) -> Any:
        return x * self.chance.standard_normal(3)


def loop(x: Any) -> Any:
    return graphs.fori_loop(0, 3, lambda i, state: state + torch.randn(3), x)


EXISTING = torch.empty(3)
BAKED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "random": (lambda x: x * random.random(), "draws from Python's random"),
    "what gauss keeps": (lambda x: x * random.gauss(0, 1), "draws from Python's random"),
    "np.random": (lambda x: x * np.random.rand(), "draws from np.random"),  # noqa: NPY002
    "a global generator": (lambda x: x * GENERATOR.random(), "draws from a generator"),
    "one of an object": (Policy(), "draws from a generator"),
    "one of an outer function": (static.value_and_grad(lambda x: (x * GENERATOR.random()).sum()), "from a generator"),
    "a default": (lambda x, chance=GENERATOR: x * chance.random(), "draws from a generator"),
    "into a tensor that exists": (lambda x: EXISTING.normal_() * x, "make them, by torch.randn or rand"),
    "in a loop": (loop, "draw them all before it"),
}


@together("name", BAKED)
def test_what_each_call_would_repeat_is_refused(name: str) -> None:
    f, words = BAKED[name]
    random.seed(0)
    random.gauss(0, 1)  # draws two, and keeps one for the next call
    with pytest.raises(GraphError, match=words) as told:
        static.jit(f)(torch.ones(3))
    assert "; " in str(told.value)


# Keys -----------------------------------------------------------------------------------------------------------------

INTS_BESIDE_ARRAYS: dict[str, tuple[Callable[[Any], Any], Callable[[Any, Any], Any]]] = {
    "an int and a slice": (lambda i: (0, slice(None), i), lambda x, i: x[0][:, i]),
    "an int at the end": (lambda i: (i, slice(None), 0), lambda x, i: x[:, :, 0][i]),
    "an int of a tensor": (lambda i: (torch.tensor(0), slice(None), i), lambda x, i: x[0][:, i]),
    "an int of an array": (lambda i: (np.array(0), slice(None), i), lambda x, i: x[0][:, i]),
    "an int of NumPy's": (lambda i: (np.int64(0), slice(None), i), lambda x, i: x[0][:, i]),
    "an int and an ellipsis": (lambda i: (0, ..., i), lambda x, i: x[0][:, i]),
    "an int and None": (lambda i: (0, None, i), lambda x, i: x[0][i][None]),
    "an ellipsis of no axis": (lambda i: (i, i, ..., i), lambda x, i: x[i, i, i]),
    "an ellipsis of no axis beside a slice": (lambda i: (slice(None), i, ..., i), lambda x, i: x[:, i, i]),
    "neighbours after an int": (lambda i: (0, i, i), lambda x, i: x[0][i, i]),
    "arrays apart": (lambda i: (i, slice(None), i), lambda x, i: np.stack([x[k, :, k] for k in i])),
    "arrays apart by None": (lambda i: (i, None, i), lambda x, i: x[i, i][:, None]),
}


@pytest.mark.parametrize(
    ("run", "grad"), [(lambda f: f, torch.grad), (static.jit, static.grad)], ids=["dynamic", "static"]
)
@together("key,wanted", INTS_BESIDE_ARRAYS.values(), INTS_BESIDE_ARRAYS)
def test_an_int_drops_its_axis_before_arrays_are_looked_at(key: Any, wanted: Any, run: Any, grad: Any) -> None:
    numbers, picks = np.arange(24.0).reshape(2, 3, 4), np.array([1, 0])
    x, at = torch.tensor(numbers), key(torch.tensor(picks))
    picked = wanted(numbers, picks)
    assert run(lambda x: x[at])(x).tolist() == picked.tolist()

    def changed(x: Any) -> Any:
        y = x * 1
        y[at] = torch.arange(100.0, 100 + picked.size, dtype=torch.float64).reshape(picked.shape)
        return y[at]

    assert run(changed)(x).ravel().tolist() == [*range(100, 100 + picked.size)]
    assert grad(lambda x: (x[at] ** 2).sum())(x).sum().item() == 2 * picked.sum()


def test_arrays_of_a_graph_are_indexed_as_numpy_does() -> None:
    x, i = np.arange(24.0).reshape(2, 3, 4), np.array([1, 0])
    np.testing.assert_array_equal(static.jit(lambda x: x[0, :, i])(x), x[0, :, i])


@pytest.mark.parametrize("loss", [lambda x: (x * 2).sum(), lambda x: (x * x).sum()], ids=["linear", "square"])
def test_a_gradient_computes_as_its_argument_does(loss: Callable[[Any], Any]) -> None:
    def turned(engine: Any, x: Any) -> Any:
        gradient = engine.grad(loss)(x)
        return gradient.transpose(0, 1) if isinstance(gradient, torch.Tensor) else gradient.transpose(1, 0)

    def asked(x: Any) -> Any:
        return torch.autograd.grad(loss(x), x)[0].transpose(0, 1)

    array = np.arange(6.0).reshape(2, 3)
    tensor = torch.tensor(array)
    expected = torch.grad(loss)(array).T.tolist()
    for x in (array, tensor):
        assert static.jit(lambda x: turned(static, x))(x).tolist() == turned(torch, x).tolist() == expected
    assert static.jit(asked)(tensor).tolist() == asked(tensor.clone().requires_grad_()).tolist() == expected


WRAPPED = {
    "int8 + 300": (lambda x: x + 300, "int8", [45, 41, -112]), "300 - int8": (lambda x: 300 - x, "int8", [43, 47, -56]),
    "uint8 - 300": (lambda x: x - 300, "uint8", [213, 209, 56]),
    "uint8 * -1": (lambda x: x * -1, "uint8", [255, 3, 156]),
    "int8 // 300": (lambda x: x // 300, "int8", [0, -1, 2]), "uint8 & -1": (lambda x: x & -1, "uint8", [1, 253, 100]),
    "int8 < 300": (lambda x: x < 300, "int8", [True, True, False]),
    "in place": (lambda x: (x * 1).add_(300), "int8", [45, 41, -112]),
}  # fmt: skip


@pytest.mark.parametrize("backend", ["tape", *BACKENDS])
@pytest.mark.parametrize("name", WRAPPED)
def test_an_int_wraps_beside_tensors_of_small_ints_and_is_refused_beside_arrays(name, backend):
    f, dtype, wanted = WRAPPED[name]
    values = np.array([1, -3, 100]).astype(dtype)
    run = f if backend == "tape" else static.jit(f, backend=backend)
    result = run(torch.tensor(values))
    assert (str(result.dtype).rpartition(".")[2] in (dtype, "bool"), result.tolist()) == (True, wanted)
    if backend != "tape" and name != "in place" and "<" not in name:
        with pytest.raises((GraphError, OverflowError)):
            static.jit(f, backend=backend)(values)


def test_factors_may_be_numbers_that_only_the_run_knows():
    x = torch.tensor(np.arange(4, dtype=np.float32).reshape(2, 2) + 1)
    rows = torch.tensor([1, 0])

    def f(x):
        n = x[0, 1].item()
        sums = torch.addmm(x, x, x, beta=n, alpha=n + 1), torch.addcmul(x, x, x, value=n)
        added = (x * 1).index_add(0, rows, x, alpha=n), torch.sub(x, x, alpha=n), (x * 1).add_(x, alpha=n)
        return [*sums, *added, (x * 1).addcdiv_(x, x + 1, value=-n)]

    for same, plain in zip(static.jit(f, convert=True)(x), f(x), strict=True):
        np.testing.assert_allclose(same, plain.numpy(), rtol=1e-6)
