"""`torch.autograd` beyond gradients: hooks of nodes, saved values and leaves, forward mode, checks, anomalies."""

import copy

import numpy as np
import pytest

import dynamic as torch
import dynamic.autograd as autograd
import dynamic.nn as nn
from dynamic.autograd import forward_ad
from dynamic.autograd.graph import register_multi_grad_hook, save_on_cpu, saved_tensors_hooks
from dynamic.func import functional_call, linearize, stack_module_state, vmap
from graphs.errors import AnomalyError, GraphError, NotDifferentiableError, OptionError

DOUBLE = torch.float64


@pytest.fixture
def x():
    return torch.tensor([1.0, 2.0, 3.0], dtype=DOUBLE, requires_grad=True)


@pytest.fixture
def w():
    return torch.tensor([2.0, 2.0, 2.0], dtype=DOUBLE, requires_grad=True)


def test_saved_values_are_packed_and_unpacked_once_each(x, w):
    packed, unpacked = [], []

    def pack(value):
        packed.append(value)
        return len(packed) - 1

    def unpack(number):
        unpacked.append(number)
        return packed[number]

    with saved_tensors_hooks(pack, unpack):
        y = (x * w).exp().sum()
    plain = (x * w).exp().sum()
    assert packed
    assert not unpacked
    gradients = torch.grad_of(y, [x, w])
    assert sorted(unpacked) == [*range(len(packed))]
    for ours, theirs in zip(gradients, torch.grad_of(plain, [x, w]), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_what_unpack_returns_must_be_what_was_packed(x):
    with saved_tensors_hooks(lambda t: t, lambda t: t[:1]):
        y = (x * x).sum()
    with pytest.raises(NotDifferentiableError, match="unpack_hook gave f64\\[1\\] for f64\\[3\\]"):
        y.backward()


def test_saved_values_are_on_the_cpu_anyway(x):
    with save_on_cpu(pin_memory=True):
        (x * x).sum().backward()
    assert x.grad.tolist() == [2.0, 4.0, 6.0]


def test_a_hook_of_a_leaf_runs_when_its_grad_is_there(x):
    seen = []
    handle = x.register_post_accumulate_grad_hook(lambda leaf: seen.append(leaf.grad.tolist()))
    for _ in range(2):
        (x * 2).sum().backward()
    handle.remove()
    (x * 2).sum().backward()
    assert seen == [[2.0] * 3, [4.0] * 3]
    with pytest.raises(NotDifferentiableError, match="only the grad of a leaf"):
        (x * 2).register_post_accumulate_grad_hook(print)


def test_an_optimizer_may_step_inside_backward(x):
    optimizer = torch.optim.SGD([x], lr=0.5)

    def step(_):
        optimizer.step()
        optimizer.zero_grad()

    x.register_post_accumulate_grad_hook(step)
    (x * x).sum().backward()
    assert x.grad is None
    assert x.tolist() == [0.0, 0.0, 0.0]


def test_a_hook_of_several_tensors_runs_when_all_have_gradients(x, w):
    every, first = [], []
    handles = [
        register_multi_grad_hook((x, w), lambda gradients: every.append([g.tolist() for g in gradients])),
        register_multi_grad_hook((x, w), lambda gradient: first.append(gradient.shape), mode="any"),
    ]
    for _ in range(2):
        (x * w).sum().backward()
    for handle in handles:
        handle.remove()
    (x * w).sum().backward()
    assert every == [[[2.0, 2.0, 2.0], [1.0, 2.0, 3.0]]] * 2
    assert first == [(3,), (3,)]
    with pytest.raises(OptionError, match="'all' or 'any'"):
        register_multi_grad_hook((x,), print, mode="some")


def test_hooks_of_a_node_see_and_replace_gradients(x, w):
    y = x * w
    seen = []

    def after(inputs, outputs):
        seen.append(([g.tolist() for g in inputs], outputs[0].tolist()))
        return tuple(g * 10 for g in inputs)

    y.grad_fn.register_hook(after)
    y.grad_fn.register_prehook(lambda outputs: (outputs[0] * 3,))
    y.sum().backward()
    assert seen == [([[6.0] * 3, [3.0, 6.0, 9.0]], [3.0] * 3)]
    assert (x.grad.tolist(), w.grad.tolist()) == ([60.0] * 3, [30.0, 60.0, 90.0])


def test_forward_mode_gives_the_derivative_along_tangents(x):
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x.detach(), torch.tensor([1.0, 0.0, 2.0], dtype=DOUBLE))
        value, tangent = forward_ad.unpack_dual((dual**3).sin())
        np.testing.assert_allclose(tangent.detach(), np.cos([1.0, 8, 27]) * [3, 0, 54])
        np.testing.assert_allclose(value.detach(), np.sin([1.0, 8, 27]))
        assert forward_ad.unpack_dual(dual * 3).tangent.tolist() == [3.0, 0.0, 6.0]
        assert forward_ad.unpack_dual(x.detach()).tangent is None
        with pytest.raises(GraphError, match="do not nest"), forward_ad.dual_level():
            pass
    with pytest.raises(GraphError, match="outside of"):
        forward_ad.make_dual(x, x)


class Wrong(autograd.Function):
    """A square with another gradient."""

    @staticmethod
    def forward(ctx, a):
        return a * a

    @staticmethod
    def backward(ctx, g):
        return g * 3


def test_gradcheck_finds_a_wrong_backward(x, w):
    def right(a, b):
        return (a * b).sin()

    assert autograd.gradcheck(right, (x, w), eps=1e-6, atol=1e-4)
    assert autograd.gradgradcheck(right, (x, w))
    assert not autograd.gradcheck(Wrong.apply, (x,), raise_exception=False)
    with pytest.raises(RuntimeError, match="by central differences"):
        autograd.gradcheck(Wrong.apply, x)
    with pytest.raises(RuntimeError, match="no input requires a gradient"):
        autograd.gradcheck(right, (x.detach(), w.detach()))


def masked_root():
    z = torch.zeros(2, requires_grad=True)
    (z.sqrt() * 0).sum().backward()
    return z


@pytest.mark.filterwarnings("ignore:invalid value")
def test_nan_in_a_gradient_is_found_while_it_is_asked_for():
    with autograd.detect_anomaly(check_nan=False):
        masked_root()
    where = r"SqrtBackward0 \(test_autograd_hooks.py:\d+\): its gradient in input 0"
    with pytest.raises(AnomalyError, match=where), autograd.detect_anomaly():
        masked_root()
    with pytest.raises(AnomalyError, match=where), autograd.set_detect_anomaly(True):
        masked_root()
    assert not autograd.is_anomaly_enabled()
    autograd.set_detect_anomaly(True)
    try:
        assert autograd.is_anomaly_enabled()
        assert torch.isnan(torch.zeros(1) / 0).all()  # a value that is no gradient
        with pytest.raises(RuntimeError):
            masked_root()
    finally:
        autograd.set_detect_anomaly(False)
    assert torch.isnan(masked_root().grad).all()


def test_derivatives_of_functions_take_pytorchs_options(x):
    square = autograd.functional.jacobian(lambda a: a**2, x.detach(), vectorize=True, strategy="forward-mode")
    assert square.tolist() == [[2.0, 0.0, 0.0], [0.0, 4.0, 0.0], [0.0, 0.0, 6.0]]
    cube = autograd.functional.hessian(lambda a: (a**3).sum(), x.detach(), outer_jacobian_strategy="reverse-mode")
    assert cube.diagonal().tolist() == [6.0, 12.0, 18.0]
    value, product = autograd.functional.vhp(lambda a: (a**3).sum(), x.detach(), torch.ones(3, dtype=DOUBLE))
    assert (value.item(), product.tolist()) == (36.0, [6.0, 12.0, 18.0])


def test_models_of_one_class_run_as_one_function():
    models = [nn.Linear(2, 1) for _ in range(3)]
    parameters, buffers = stack_module_state(models)
    x = torch.randn(4, 2)

    def call(parameters, buffers, x):
        return functional_call(models[0], (parameters, buffers), (x,))

    outputs = vmap(call, in_dims=(0, 0, None))(parameters, buffers, x)
    assert parameters["weight"].requires_grad
    np.testing.assert_array_equal(outputs.detach(), torch.stack([model(x) for model in models]).detach())
    with pytest.raises(GraphError, match="all of one class"):
        stack_module_state([nn.Linear(1, 1), nn.Identity()])


def test_a_function_has_a_linear_part(x):
    value, along = linearize(lambda a: (a**2).sum(), x.detach())
    assert (value.item(), along(torch.ones(3, dtype=DOUBLE)).item()) == (14.0, 12.0)


def test_tensors_and_parameters_take_attributes(x):
    parameter = nn.Parameter(torch.ones(2))
    parameter._no_weight_decay = True
    x.name = "x"
    assert (parameter._no_weight_decay, x.name) == (True, "x")
    assert copy.deepcopy(x).name == "x"
    assert not hasattr(copy.deepcopy(parameter), "_no_weight_decay")  # as in PyTorch
    assert not hasattr(x * 2, "name")
