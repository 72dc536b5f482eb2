"""What is changed in place after an op saved it for backward: the gradient is that of the same out of place."""

from __future__ import annotations

import itertools
import tracemalloc

import numpy as np
import pytest

import dynamic as torch
from dynamic import inplace
from dynamic.nn import functional as F  # noqa: N812
from graphs.errors import GraphError, InplaceError, NotDifferentiableError
from tests.helpers.together import together

X, OTHER = np.array([0.1, 0.2, 0.3, 0.4]), np.array([0.3, 0.5, 0.7, 0.9])
UNARY = [
    "abs", "acos", "asin", "atan", "ceil", "cos", "cosh", "deg2rad", "erf", "erfc", "exp", "exp2", "expm1", "floor",
    "frac", "log", "log10", "log1p", "log2", "logit", "neg", "reciprocal", "relu", "round", "rsqrt", "sigmoid",
    "sign", "sin", "sinc", "sinh", "sqrt", "square", "tan", "tanh", "trunc",
]  # fmt: skip
BINARY = ["add", "sub", "mul", "div", "pow", "hypot", "copysign", "xlogy", "lerp", "addcmul", "addcdiv", "fmod"]
BEFORE = {"product": lambda x: x * 2, "copy": lambda x: x.clone(), "square": lambda x: x * x}


def gradients(change, before, has_history):
    x, others = torch.tensor(X).requires_grad_(has_history), [torch.tensor(OTHER + i).requires_grad_() for i in (0, 1)]
    y = change(BEFORE[before](x), *others)
    (y * y).sum().backward()
    return [leaf.grad.numpy() for leaf in (x, *others) if leaf.grad is not None]


def same(in_place, out_of_place, before, has_history=True):
    found, expected = gradients(in_place, before, has_history), gradients(out_of_place, before, has_history)
    assert len(found) == len(expected)
    for ours, right in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, right, rtol=1e-12)


@together("name,before", itertools.product(UNARY, BEFORE))
def test_of_one_tensor(name, before):
    same(lambda y, *_: getattr(y, f"{name}_")(), lambda y, *_: getattr(y, name)(), before)


@together("name,before,has_history", itertools.product(BINARY, BEFORE, (True, False)))
def test_of_two_of_which_either_may_be_without_history(name, before, has_history):
    def called(suffix):
        def change(y, other, third):
            more = [third] if name in ("lerp", "addcmul", "addcdiv") else []
            if name == "fmod":  # whose divisor has no gradient in place
                other = other.detach()
            return getattr(y, name + suffix)(other, *more)

        return change

    if name != "fmod" or has_history:
        same(called("_"), called(""), before, has_history)


@together("name,before", itertools.product(("relu", "elu", "silu", "mish", "hardswish", "leaky_relu"), BEFORE))
def test_of_activations(name, before):
    def called(inplace):
        return lambda y, other, _: getattr(F, name)(y * 1 - 0.5 + 0 * other, inplace=inplace)

    same(called(True), called(False), before)


def test_a_value_that_another_op_saved_is_still_refused():
    x = torch.tensor(X).requires_grad_()
    y = x * 2
    z = y.exp() + y * y
    y.mul_(x)
    with pytest.raises(InplaceError, match="changed in place"):
        z.sum().backward()
    kept = (x * 2).exp()
    kept += 1  # exp saved its result
    with pytest.raises(InplaceError, match="changed in place"):
        kept.sum().backward()
    only_added = x * 2
    only_added.mul_(3)  # a product with a number saves nothing
    only_added.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), 6)


GRU = torch.nn.GRU(2, 2).double()
RESULTS = {
    "divide": lambda x: 1 / x, "normalize": lambda x: F.normalize(x, dim=0), "erfinv": torch.erfinv,
    "max_pool1d": lambda x: F.max_pool1d((x * x)[None, None], 2), "view": lambda x: (1 / x).view(2, 2).t(),
    "gru": lambda x: GRU(x.view(2, 1, 2))[0],
}  # fmt: skip


@together("name,is_recorded", itertools.product(RESULTS, (True, False)))
def test_a_result_that_pytorch_does_not_save_may_change(name, is_recorded):
    """Our rules of these ops read the result, so a change copies it for them; those of exp read it in PyTorch too."""
    found = []
    for copied in (False, True):
        x = torch.tensor(X).requires_grad_()
        result = RESULTS[name](x)
        y = result.clone() if copied else result
        with torch.set_grad_enabled(is_recorded):
            y += 1
            y[:1] = x[0]
        (gradient,) = torch.autograd.grad((y * y).sum(), x, create_graph=True)
        found.append((y, gradient, *torch.autograd.grad((gradient * gradient).sum(), x)))
    for changed, expected in zip(*found, strict=True):
        np.testing.assert_allclose(changed.detach().numpy(), expected.detach().numpy(), rtol=1e-12)


def test_what_backward_has_freed_stays_freed():
    y = 1 / torch.tensor(X).requires_grad_()
    loss = y.sum()
    loss.backward()
    y += 1
    with pytest.raises(NotDifferentiableError, match="a second time"):
        loss.backward()


VIEWS = {"y[0]": lambda y: y[0], "y[:1]": lambda y: y[:1], "y[3:]": lambda y: y[3:], "y.T": lambda y: y.t()}


@together("name,view", itertools.product(["mul", "div", "pow", "hypot"], VIEWS))
def test_an_operand_that_is_a_view_of_what_is_changed_is_refused(name, view):
    y = torch.tensor(X).requires_grad_() * 2
    getattr(y, f"{name}_")(VIEWS[view](y))
    with pytest.raises(InplaceError, match="a value that backward needs was changed in place"):
        y.sum().backward()


class Filled(torch.autograd.Function):
    """A part of a tensor, written behind the back of the history, which is right where nothing saved that part."""

    @staticmethod
    def forward(ctx, scratch, value, index):
        ctx.index = index
        scratch.data[index] = value
        return scratch

    @staticmethod
    def backward(ctx, gradient):
        return gradient, gradient[ctx.index], None


def test_a_part_that_nothing_saved_may_change():
    w, start = (torch.tensor(values, requires_grad=True) for values in ([0.5, 2.0], [1.0, 3.0]))
    stages = Filled.apply(torch.empty(2, 4), start * w, (..., 0))
    for i in range(3):
        stages = Filled.apply(stages, (stages[..., : i + 1] * (w.sum() * 0.1)).sum(-1) * w + start * w, (..., i + 1))
    (stages**2).sum().backward()
    np.testing.assert_allclose(w.grad, [454.1515, 1714.9595], rtol=1e-5)  # PyTorch's
    np.testing.assert_allclose(start.grad, [2.947359, 472.875], rtol=1e-5)


@together("key,saved,is_apart", [
    (0, slice(1, 3), True), (0, slice(2), False), (slice(None), 0, False), (-1, 2, False), (..., 1, False),
    (slice(0, 3, 2), 1, True), (np.array([0]), 1, False),
])  # fmt: skip
def test_a_part_that_was_saved_may_not_change(key, saved, is_apart):
    x, factor = torch.tensor([1.0, 2.0, 3.0]), torch.ones(3, requires_grad=True)
    product = (x[saved] * factor[saved]).sum()
    x[key] = 7.0
    if not is_apart:
        with pytest.raises(InplaceError, match="a value that backward needs was changed in place"):
            product.backward()
        return
    product.backward()
    np.testing.assert_array_equal(factor.grad.numpy()[saved], torch.tensor([1.0, 2.0, 3.0]).numpy()[saved])


def test_a_write_touches_its_part_alone_and_remembers_where_it_was():
    """A copy of the whole made a write to a buffer of 3 MB 60 times as long; a tensor in a slice may change later."""
    x, factor, start = torch.zeros(100_000, 8), torch.ones(8, requires_grad=True), torch.tensor(0)
    product = (x[0] * factor).sum()
    tracemalloc.start()
    try:
        x[3] = torch.ones(8)
        assert tracemalloc.get_traced_memory()[1] < x.nbytes / 10
    finally:
        tracemalloc.stop()
    assert x[3].tolist() == [1.0] * 8
    product.backward(retain_graph=True)
    x[start:2] = 5.0
    start += 1
    with pytest.raises(InplaceError, match="a value that backward needs was changed in place"):
        product.backward()


MASK = np.arange(24).reshape(4, 6) % 3 == 0
ROWS = np.array([2, 0, -1, 2])
WRITES = [
    ((ROWS,), np.arange(24.0).reshape(4, 6)), ((ROWS,), 2), ((MASK,), 0), ((MASK,), 1.5), ((MASK,), np.arange(8.0)),
    ((MASK[:, 0],), np.arange(6.0)), ((slice(1, 3), ROWS), True), ((ROWS, ROWS), np.arange(4.0)), ((..., ROWS), -1),
    ((ROWS[:0],), 7), ((...,), 3.5), ((...,), np.arange(6.0)), ((ROWS[:, None], ROWS), np.ones((1, 4, 4))),
]  # fmt: skip


@together("key,value", WRITES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "float16"])
def test_a_write_without_a_history_is_that_of_an_op(key, value, dtype):
    """The elements at the key alone are written, and backward is told of it, as where an op makes the whole anew."""
    held = np.asarray(value).astype(dtype) if isinstance(value, np.ndarray) or dtype == "int64" else value
    start = np.arange(24).reshape(4, 6).astype(dtype)
    expected = start.copy()
    expected[key] = held.reshape(held.shape[-2:]) if isinstance(held, np.ndarray) else held
    x = torch.tensor(start)
    product = (x * torch.ones(6, dtype=x.dtype, requires_grad=True)).sum() if start.dtype.kind == "f" else None
    x[tuple(torch.tensor(k) if isinstance(k, np.ndarray) else k for k in key)] = (
        torch.tensor(held) if isinstance(held, np.ndarray) else held
    )
    np.testing.assert_array_equal(x.numpy(), expected)
    if product is not None:
        with pytest.raises(InplaceError, match="a value that backward needs was changed in place"):
            product.backward()


@together("key", [(ROWS,), (MASK,), (slice(None), ROWS), (...,)])
def test_a_write_of_arrays_makes_no_copy_of_the_whole(key):
    x = torch.zeros(4, 6, 20_000)
    key = tuple(torch.tensor(k) if isinstance(k, np.ndarray) else k for k in key)
    tracemalloc.start()
    try:
        x[key] = 2.0
        x.fill_(3.0)
        x.copy_(torch.ones(20_000))
        assert tracemalloc.get_traced_memory()[1] < x.nbytes / 10
    finally:
        tracemalloc.stop()
    assert x.sum() == x.numel()


@together("write", [
    lambda x: x.__setitem__(torch.tensor([0, 9]), 1.0), lambda x: x.__setitem__(torch.tensor([0, 1]), torch.ones(3, 6)),
    lambda x: x.__setitem__(torch.tensor([True, False]), 1.0), lambda x: x.copy_(torch.ones(5)),
])  # fmt: skip
def test_a_write_that_does_not_fit_changes_nothing(write):
    x = torch.zeros(4, 6)
    with pytest.raises(GraphError):
        write(x)
    assert not x.any()


def test_a_write_reads_what_it_overwrites_first():
    x = torch.arange(6)
    x[x] = x.flip(0)
    assert x.tolist() == [5, 4, 3, 2, 1, 0]
    y = torch.arange(6)
    y[torch.tensor([5, 4, 3, 2, 1, 0])] = y
    assert y.tolist() == [5, 4, 3, 2, 1, 0]


def test_many_parts_are_the_whole():
    x, factor = torch.zeros(200), torch.ones((), requires_grad=True)
    product = x[0] * factor
    for i in range(1, 200):
        x[i] = 1.0
    with pytest.raises(InplaceError, match="changed in place"):
        product.backward()


def test_older_views_are_searched_for_only_where_something_else_holds_the_memory(monkeypatch):
    """A search goes through all objects: it takes milliseconds."""
    searches = []
    monkeypatch.setattr(inplace, "_remember_views", lambda *_: searches.append(1))
    p = torch.ones(3, requires_grad=True)
    rows = torch.zeros(2, 3)
    rows[0] = p * 2
    rows[1] = p * 3
    rows.sum().backward()
    assert (searches, p.grad.tolist()) == ([], [5, 5, 5])
    base = torch.zeros(2, 3)
    first = base[0]
    base[0] = p * 2
    assert (len(searches), first.shape) == (1, (3,))
