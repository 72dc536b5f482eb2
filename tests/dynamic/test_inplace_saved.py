"""What is changed in place after an op saved it for backward: the gradient is that of the same out of place."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import dynamic as torch
from dynamic.nn import functional as F  # noqa: N812
from graphs.errors import InplaceError
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


VIEWS = {"y[0]": lambda y: y[0], "y[:1]": lambda y: y[:1], "y[3:]": lambda y: y[3:], "y.T": lambda y: y.t()}


@together("name,view", itertools.product(["mul", "div", "pow", "hypot"], VIEWS))
def test_an_operand_that_is_a_view_of_what_is_changed_is_refused(name, view):
    y = torch.tensor(X).requires_grad_() * 2
    getattr(y, f"{name}_")(VIEWS[view](y))
    with pytest.raises(InplaceError, match="a value that backward needs was changed in place"):
        y.sum().backward()
