"""Optimizers and schedules against their formulas, written again in NumPy; where PyTorch is not needed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dynamic as torch
import static
from dynamic import optim
from graphs import InplaceError
from graphs import optim as rules
from graphs.optim import base
from tests.helpers.together import together

same = np.testing.assert_allclose
START = [np.array([[1.0, -2.0, 0.5], [0.25, 3.0, -1.5]]), np.array([0.5, -0.75])]


def gradients(step):
    """Gradients of both signs that turn from step to step."""
    return [np.cos(start * (step + 1)) * 2 for start in START]


# The rules, one parameter at a time: each is given (parameter, gradient, number of the step from 1, what it kept)


def nadam(p, g, t, kept, rate=0.1, b1=0.9, b2=0.99, decay=0.01):
    m, v, product = kept or (0.0, 0.0, 1.0)
    now, ahead = (b1 * (1 - 0.5 * 0.96 ** (n * decay)) for n in (t, t + 1))
    m, v, product = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g, product * now
    looked = rate * (1 - now) / (1 - product) * g + rate * ahead / (1 - product * ahead) * m
    return p - looked / (np.sqrt(v / (1 - b2**t)) + 1e-8), (m, v, product)


def rprop(p, g, t, kept, rate=0.1, low=0.5, high=1.2):
    before, step = kept or (np.zeros_like(p), np.full_like(p, rate))
    step = np.clip(step * np.select([g * before > 0, g * before < 0], [high, low], 1.0), 1e-6, 50)
    g = np.where(g * before < 0, 0, g)
    return p - np.sign(g) * step, (g, step)


def asgd(p, g, t, kept, rate=0.1, decay=0.1, start=3.0):
    (average,) = kept or (np.zeros_like(p),)
    eta = rate / (1 + decay * rate * (t - 1)) ** 0.75
    p = p * (1 - decay * eta) - eta * g
    return p, (average + (p - average) / max(1, t - 1 - start),)


def adafactor(p, g, t, kept, rate=0.05):
    share, axes = t**-0.8, [(-1,), (-2,)] if p.ndim > 1 else [()]
    kept = kept or [0.0] * len(axes)
    kept = [k + share * ((g * g).mean(axis, keepdims=True) - k) for k, axis in zip(kept, axes, strict=True)]
    variance = kept[0] @ kept[1] / kept[0].mean(-2, keepdims=True) if p.ndim > 1 else kept[0]
    step = g / np.sqrt(variance)
    length = max(1e-3, np.sqrt((p * p).mean())) * min(rate, t**-0.5)
    return p - length * step / max(1, np.sqrt((step * step).mean())), kept


MADE = {
    nadam: (rules.nadam(0.1, b2=0.99, momentum_decay=0.01), optim.NAdam, {"lr": 0.1, "betas": (0.9, 0.99),
                                                                         "momentum_decay": 0.01}),
    rprop: (rules.rprop(0.1), optim.Rprop, {"lr": 0.1}),
    asgd: (rules.asgd(0.1, decay=0.1, start=3.0), optim.ASGD, {"lr": 0.1, "lambd": 0.1, "t0": 3}),
    adafactor: (rules.adafactor(0.05), optim.Adafactor, {"lr": 0.05}),
}  # fmt: skip


@together("formula", MADE, ids=lambda formula: formula.__name__)
def test_twenty_steps(formula):
    """The pure rule, the same compiled, and PyTorch's class give the formula's parameters."""
    rule, kind, options = MADE[formula]
    update = static.jit(rule.update)
    expected, kept = START, [None] * len(START)
    pure, state, params, compiled = START, rule.init(START), START, rule.init(START)
    tensors = [torch.tensor(start.copy()).requires_grad_() for start in START]
    optimizer = kind(tensors, **options)
    for step in range(20):
        found = [formula(p, g, step + 1, k) for p, g, k in zip(expected, gradients(step), kept, strict=True)]
        expected, kept = ([pair[i] for pair in found] for i in (0, 1))
        pure, state = rule.update(gradients(step), state, pure)
        params, compiled = update(gradients(step), compiled, params)
        for tensor, gradient in zip(tensors, gradients(step), strict=True):
            tensor.grad = torch.tensor(gradient)
        optimizer.step()
        for numbers in (pure, params, [tensor.detach().numpy() for tensor in tensors]):
            for ours, right in zip(numbers, expected, strict=True):
                same(ours, right, rtol=1e-10)
    assert update.stats.compiles == 1


LARGE = {
    "SGD": {}, "SGD, momentum": {"momentum": 0.9, "nesterov": True}, "ASGD": {"t0": 2}, "Rprop": {}, "Adam": {},
    "Adam, amsgrad": {"amsgrad": True, "weight_decay": 0.1}, "AdamW": {"maximize": True}, "Adamax": {}, "NAdam": {},
    "RAdam": {}, "Adadelta": {}, "RMSprop": {"momentum": 0.9, "centered": True}, "Adagrad": {}, "Adafactor": {},
}  # fmt: skip


def three_steps(name, start, monkeypatch, block):
    """A parameter after three steps, and the arrays of its state after each."""
    monkeypatch.setattr(base, "BLOCK", block)
    param = torch.tensor(start).requires_grad_()
    optimizer = getattr(optim, name.partition(",")[0])([param], **LARGE[name])
    states = []
    for step in range(3):
        param.grad = torch.tensor(np.cos(start * (step + 1)).astype(start.dtype))
        optimizer.step()
        states.append({key: value.numpy() for key, value in optimizer.state[param].items()})
    return param.detach().numpy(), states


@together("name", LARGE)
def test_a_large_parameter_and_its_state_are_changed_in_place_by_the_same_bits(name, monkeypatch):
    for dtype in (np.float32, np.float64):
        start = np.linspace(-2, 2, 51 * 7).reshape(51, 7).astype(dtype)
        expected, states = three_steps(name, start, monkeypatch, block=10**9)
        param, found = three_steps(name, start, monkeypatch, block=20)
        np.testing.assert_array_equal(param, expected)
        for key, value in states[-1].items():
            np.testing.assert_array_equal(found[-1][key], value, strict=True)
            if value.shape == start.shape:
                assert np.shares_memory(found[0][key], found[-1][key])


@together("name", [name for name in LARGE if name != "Adafactor"])  # which is no rule of elements
def test_small_parameters_share_blocks_by_the_same_bits(name, monkeypatch):
    """Two dtypes, no elements, one number, two parts of one array, and a gradient in another order."""
    ends = []
    for block in (1, 64):  # one element each, and most of them together
        monkeypatch.setattr(base, "BLOCK", block)
        array = np.linspace(-2, 2, 12, dtype=np.float32)
        starts = [array[:5], array[5:], np.linspace(1, 2, 6).reshape(2, 3), np.float64(3), np.ones((0, 2), np.float32)]
        params = [torch.from_numpy(np.asarray(start)).requires_grad_() for start in starts]
        optimizer = getattr(optim, name.partition(",")[0])(params, **LARGE[name])
        for step in range(3):
            for param in params:
                gradient = np.cos(np.asarray(param.detach()) * (step + 1))
                param.grad = torch.from_numpy(np.asarray(gradient, order="F"))
            optimizer.step()
        state = [value.numpy() for param in params for value in optimizer.state[param].values()]
        ends.append([param.detach().numpy() for param in params] + state)
    for ours, expected in zip(*ends, strict=True):
        np.testing.assert_array_equal(ours, expected, strict=True)


def test_parameters_in_one_memory_are_changed_one_after_another(monkeypatch):
    monkeypatch.setattr(base, "BLOCK", 64)
    array = np.linspace(-2, 2, 8)
    parts = [torch.from_numpy(array[:5]).requires_grad_(), torch.from_numpy(array[3:]).requires_grad_()]
    for part in parts:
        part.grad = torch.ones(5, dtype=torch.float64)
    optim.SGD(parts, lr=0.5).step()
    np.testing.assert_array_equal(array, np.linspace(-2, 2, 8) - [0.5, 0.5, 0.5, 1, 1, 0.5, 0.5, 0.5])


def test_a_large_parameter_that_backward_reads_is_known_to_have_changed(monkeypatch):
    monkeypatch.setattr(base, "BLOCK", 2)
    x = torch.tensor(np.ones(20)).requires_grad_()
    loss = (x * x).sum()
    x.grad = torch.ones(20, dtype=torch.float64)
    optim.Adam([x]).step()
    with pytest.raises(InplaceError):
        loss.backward()


def test_memory_that_two_share_is_not_written_over(monkeypatch):
    """The slots of a state that was made by hand, and a parameter that is read in another order."""
    ends = []
    for block in (10**9, 2):
        monkeypatch.setattr(base, "BLOCK", block)
        rows = torch.tensor(np.linspace(-1, 1, 20).reshape(4, 5)).requires_grad_()
        turned = torch.tensor(np.linspace(-1, 1, 20).reshape(4, 5).T).requires_grad_()
        optimizer = optim.Adam([rows, turned], lr=0.1)
        for _ in range(3):
            rows.grad, turned.grad = torch.ones(4, 5, dtype=torch.float64), torch.ones(5, 4, dtype=torch.float64)
            optimizer.step()
            optimizer.state[rows]["exp_avg_sq"] = optimizer.state[rows]["exp_avg"]
        ends.append([rows.detach().numpy().copy(), turned.detach().numpy().copy()])
    for ours, expected in zip(*ends, strict=True):
        np.testing.assert_array_equal(ours, expected)


def test_adafactor_keeps_rows_and_columns_of_matrices_and_all_of_vectors():
    tensors = [torch.tensor(start).requires_grad_() for start in START]
    optimizer = optim.Adafactor(tensors)
    sum((tensor**2).sum() for tensor in tensors).backward()
    optimizer.step()
    states = [{k: v.shape for k, v in optimizer.state[tensor].items() if k != "step"} for tensor in tensors]
    assert states == [{"row_var": (2, 1), "col_var": (1, 3)}, {"variance": (2,)}]


# L-BFGS -------------------------------------------------------------------------------------------------------------


def minimised(loss, size, steps, **options):
    x = torch.tensor(np.linspace(-1, 1, size)).requires_grad_()
    optimizer = optim.LBFGS([x], **options)

    def closure():
        optimizer.zero_grad()
        value = loss(x)
        value.backward()
        return value

    losses = [float(optimizer.step(closure).detach()) for _ in range(steps)]
    return x.detach().numpy(), losses, optimizer


@together("search", [None, "strong_wolfe"])
def test_lbfgs_finds_the_minimum_of_a_parabola(search):
    scales, centre = np.array([1.0, 10.0, 100.0, 3.0]), np.array([3.0, -1.0, 2.0, 0.5])
    found, losses, _ = minimised(
        lambda x: (torch.tensor(scales) * (x - torch.tensor(centre)) ** 2).sum(), 4, 4, line_search_fn=search
    )
    same(found, centre, atol=1e-5)
    assert losses[-1] < 1e-8 < losses[0]


def test_a_line_search_never_leaves_the_loss_higher():
    def valley(x):
        return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()

    found, losses, optimizer = minimised(valley, 4, 12, line_search_fn="strong_wolfe", lr=2.0)
    assert losses == sorted(losses, reverse=True)
    same(valley(found), 0, atol=1e-10)
    state = next(iter(optimizer.state.values()))
    assert state["func_evals"] >= state["n_iter"]


# Schedules ----------------------------------------------------------------------------------------------------------


def optimizer_of(lr=0.4, **options):
    return optim.SGD([torch.ones(1, requires_grad=True)], lr=lr, **options)


schedules = optim.lr_scheduler
FORMULAS = {
    "LambdaLR": ({"lr_lambda": lambda epoch: 0.9**epoch}, lambda n: 0.9**n),
    "StepLR": ({"step_size": 3, "gamma": 0.5}, lambda n: 0.5 ** (n // 3)),
    "MultiStepLR": ({"milestones": [2, 5, 5], "gamma": 0.5}, lambda n: 0.5 ** ((n >= 2) + 2 * (n >= 5))),
    "ExponentialLR": ({"gamma": 0.8}, lambda n: 0.8**n),
    "ConstantLR": ({"factor": 0.25, "total_iters": 4}, lambda n: 0.25 if n < 4 else 1),
    "LinearLR": ({"start_factor": 0.2, "total_iters": 5}, lambda n: 0.2 + 0.8 * min(n, 5) / 5),
    "PolynomialLR": ({"total_iters": 8, "power": 2.0}, lambda n: (1 - min(n, 8) / 8) ** 2),
    "CosineAnnealingLR": ({"T_max": 7}, lambda n: (1 + np.cos(np.pi * n / 7)) / 2),
    "CosineAnnealingWarmRestarts": ({"T_0": 3}, lambda n: (1 + np.cos(np.pi * (n % 3) / 3)) / 2),
}


@given(st.sampled_from(sorted(FORMULAS)), st.lists(st.integers(0, 6), max_size=4), st.integers(0, 5))
def test_a_schedule_goes_to_any_epoch_and_on_from_there(name, jumps, after):
    options, formula = FORMULAS[name]
    optimizer = optimizer_of()
    schedule = getattr(schedules, name)(optimizer, **options)
    for epoch in jumps:
        schedule.step(epoch)
        same(optimizer.param_groups[0]["lr"], 0.4 * formula(epoch), atol=1e-12)
    for _ in range(after):
        schedule.step()
    same(schedule.get_last_lr(), [0.4 * formula((jumps or [0])[-1] + after)], atol=1e-12)


def seen(schedule, steps):
    group, found = schedule.optimizer.param_groups[0], []
    for _ in range(steps):
        found.append((group["lr"], group.get("momentum")))
        schedule.step()
    return np.array(found, float)


def test_one_cycle_moves_the_momentum_against_the_rate():
    found = seen(schedules.OneCycleLR(optimizer_of(momentum=0.9), 0.5, total_steps=10), 10)
    same(found[[0, 2, 9]], [(0.02, 0.95), (0.5, 0.85), (0.02 / 1e4, 0.95)], rtol=1e-10)
    assert found[1:3, 0].min() > found[0, 0]
    three = seen(schedules.OneCycleLR(optimizer_of(momentum=0.9), 0.5, total_steps=10, three_phase=True,
                                      anneal_strategy="linear"), 10)  # fmt: skip
    same(three[[0, 1, 2, 3, 4, 9], 0], [0.02, 0.26, 0.5, 0.26, 0.02, 2e-6], rtol=1e-10)
    adam = optim.Adam([torch.ones(1, requires_grad=True)])
    schedules.OneCycleLR(adam, 0.1, total_steps=4)
    assert adam.param_groups[0]["betas"] == (0.95, 0.999)


def test_a_cycle_goes_up_and_down_along_lines():
    found = seen(schedules.CyclicLR(optimizer_of(momentum=0.9), 0.1, 0.5, step_size_up=2, mode="triangular2"), 9)
    same(found[:, 0], [0.1, 0.3, 0.5, 0.3, 0.1, 0.2, 0.3, 0.2, 0.1], rtol=1e-10)
    same(found[[0, 2, 6], 1], [0.9, 0.8, 0.85], rtol=1e-10)
    with pytest.raises(ValueError, match=r"has no momentum .*; write cycle_momentum=False"):
        schedules.CyclicLR(optim.Adagrad([torch.ones(1, requires_grad=True)]), 0.1, 0.5)
    with pytest.raises(ValueError, match="2 values of max_lr for 1 groups"):
        schedules.CyclicLR(optimizer_of(), 0.1, [0.5, 0.6], cycle_momentum=False)


def test_a_chain_takes_every_step_of_every_schedule():
    optimizer = optimizer_of(1.0)
    parts = [schedules.ExponentialLR(optimizer, 0.5), schedules.StepLR(optimizer, 2, 0.1)]
    chain = schedules.ChainedScheduler(parts)
    same(seen(chain, 4)[:, 0], [1, 0.5, 0.025, 0.0125])
    assert [part["last_epoch"] for part in chain.state_dict()["_schedulers"]] == [4, 4]
    with pytest.raises(ValueError, match="takes a metric"):
        schedules.ChainedScheduler([schedules.ReduceLROnPlateau(optimizer)])
    with pytest.raises(ValueError, match="another optimizer"):
        schedules.ChainedScheduler([*parts, schedules.StepLR(optimizer_of(), 2)])
    with pytest.raises(ValueError, match="one epoch at a time"):
        chain.step(3)
