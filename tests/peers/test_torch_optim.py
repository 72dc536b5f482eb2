"""Optimizers, schedules, clipping and initial values compared with PyTorch's."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import dynamic
from dynamic import nn, optim

pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings("ignore")]
torch = pytest.importorskip("torch")

OPTIMIZERS = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.1}),
    ("SGD", {"lr": 0.1, "dampening": 0.3}),
    ("SGD", {"lr": 0.1, "maximize": True, "weight_decay": 0.1}),
    ("Adam", {"lr": 0.05}),
    ("Adam", {"lr": 0.05, "weight_decay": 0.1, "betas": (0.8, 0.95), "eps": 1e-4}),
    ("Adam", {"lr": 0.05, "amsgrad": True}),
    ("Adam", {"lr": 0.05, "maximize": True}),
    ("AdamW", {"lr": 0.05}),
    ("AdamW", {"lr": 0.05, "weight_decay": 0.3, "amsgrad": True}),
    ("RMSprop", {"lr": 0.05}),
    ("RMSprop", {"lr": 0.05, "momentum": 0.5, "weight_decay": 0.1}),
    ("RMSprop", {"lr": 0.05, "centered": True, "alpha": 0.9, "eps": 1e-5}),
    ("RMSprop", {"lr": 0.05, "centered": True, "momentum": 0.5}),
    ("Adamax", {"lr": 0.05}),
    ("Adamax", {"lr": 0.05, "weight_decay": 0.1, "betas": (0.8, 0.95), "maximize": True}),
    ("RAdam", {"lr": 0.05}),
    ("RAdam", {"lr": 0.05, "weight_decay": 0.1, "betas": (0.8, 0.7)}),
    ("RAdam", {"lr": 0.05, "weight_decay": 0.1, "decoupled_weight_decay": True, "eps": 1e-4}),
    ("Adadelta", {}),
    ("Adadelta", {"lr": 0.5, "rho": 0.8, "weight_decay": 0.1, "eps": 1e-4, "maximize": True}),
    ("Adagrad", {"lr": 0.05}),
    ("NAdam", {}),
    ("NAdam", {"lr": 0.05, "weight_decay": 0.1, "momentum_decay": 0.1, "betas": (0.8, 0.95)}),
    ("NAdam", {"lr": 0.05, "weight_decay": 0.1, "decoupled_weight_decay": True, "maximize": True}),
    ("Rprop", {}),
    ("Rprop", {"lr": 0.1, "etas": (0.3, 1.5), "step_sizes": (1e-3, 0.5)}),
    ("ASGD", {}),
    ("ASGD", {"lr": 0.05, "lambd": 0.1, "t0": 3, "weight_decay": 0.1}),
    ("Adafactor", {}),
    ("Adafactor", {"lr": 0.3, "d": 1.5, "weight_decay": 0.1, "eps": (1e-5, 1e-2), "beta2_decay": -0.5}),
    ("Adagrad", {"lr": 0.05, "lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.3}),
]
SCHEDULES = [
    ("LambdaLR", {"lr_lambda": lambda epoch: 0.9**epoch}),
    ("MultiplicativeLR", {"lr_lambda": lambda epoch: 1 - epoch / 100}),
    ("StepLR", {"step_size": 3, "gamma": 0.5}),
    ("MultiStepLR", {"milestones": [2, 5, 5], "gamma": 0.5}),
    ("ExponentialLR", {"gamma": 0.8}),
    ("ConstantLR", {"factor": 0.25, "total_iters": 4}),
    ("LinearLR", {"start_factor": 0.2, "total_iters": 6}),
    ("PolynomialLR", {"total_iters": 8, "power": 2.0}),
    ("CosineAnnealingLR", {"T_max": 5, "eta_min": 0.01}),
    ("CosineAnnealingWarmRestarts", {"T_0": 3, "T_mult": 2, "eta_min": 0.01}),
    ("OneCycleLR", {"max_lr": 0.5, "total_steps": 13, "cycle_momentum": False}),
    ("OneCycleLR", {"max_lr": 0.5, "total_steps": 13}),
    ("OneCycleLR", {"max_lr": 0.5, "total_steps": 12, "three_phase": True, "pct_start": 0.25, "base_momentum": 0.5}),
    ("CyclicLR", {"base_lr": 0.1, "max_lr": 0.5, "step_size_up": 3}),
    ("CyclicLR", {"base_lr": 0.1, "max_lr": 0.5, "step_size_up": 2, "step_size_down": 3, "mode": "triangular2"}),
    ("CyclicLR", {"base_lr": 0.1, "max_lr": 0.5, "step_size_up": 2, "mode": "exp_range", "gamma": 0.9,
                  "cycle_momentum": False}),
    ("CyclicLR", {"base_lr": 0.1, "max_lr": 0.5, "step_size_up": 2, "scale_fn": lambda x: 1 / (1 + x)}),
    (
        "OneCycleLR",
        {"max_lr": 0.5, "epochs": 4, "steps_per_epoch": 4, "cycle_momentum": False, "anneal_strategy": "linear"},
    ),
]  # fmt: skip


def trained(engine, package, name, options, steps=20, saved_after=None):
    """Parameters after some steps on a loss of two parameters, of which one has no gradient at first."""
    rng = np.random.default_rng(0)
    start = [rng.standard_normal((3, 2)), rng.standard_normal(2)]
    params = [engine.tensor(value).requires_grad_() for value in start]
    made = getattr(package, name)
    optimizer = made(params, **options)
    for step in range(steps):
        optimizer.zero_grad()
        loss = ((params[0] - 1) ** 2).sum() * (step + 1)
        loss = loss + ((params[1] + params[0].detach().sum(0)) ** 4).sum() if step > 1 else loss
        loss.backward()
        optimizer.step()
        if step == saved_after:
            state = optimizer.state_dict()
            optimizer = made(params, lr=9.0)
            optimizer.load_state_dict(state)
    return [param.detach().numpy() for param in params], optimizer.state_dict()


@pytest.mark.parametrize(("name", "options"), OPTIMIZERS, ids=str)
@pytest.mark.parametrize("saved_after", [None, 3])
def test_optimizers(name, options, saved_after):
    torch.set_default_dtype(torch.float64)  # in which PyTorch keeps scalars of a state, as "mu_product"
    found, state = trained(dynamic, optim, name, options, saved_after=saved_after)
    expected, theirs = trained(torch, torch.optim, name, options)
    for ours, values in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, values, rtol=1e-10, atol=1e-12)
    assert list(state["state"]) == list(theirs["state"])
    for number, values in theirs["state"].items():
        kept = {k: v for k, v in values.items() if v is not None}
        assert set(kept) <= {*state["state"][number]} | {"step"}
        for key in set(kept) & set(state["state"][number]):
            np.testing.assert_allclose(
                np.asarray(state["state"][number][key]), np.asarray(kept[key]), rtol=1e-8, atol=1e-10
            )
    mine = {k: v for k, v in state["param_groups"][0].items() if k in theirs["param_groups"][0]}
    assert mine == {k: theirs["param_groups"][0][k] for k in mine}


def test_groups_have_options_of_their_own():
    found = []
    for engine, package in ((dynamic, optim), (torch, torch.optim)):
        params = [engine.ones(3, requires_grad=True) for _ in range(2)]
        optimizer = package.SGD([{"params": params[:1]}, {"params": params[1:], "lr": 0.01}], lr=0.1, momentum=0.9)
        for _ in range(3):
            (params[0] * params[1]).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
        found.append([param.detach().numpy() for param in params])
    np.testing.assert_allclose(found[0], found[1], rtol=1e-6)


def scheduled(engine, package, name, options, epochs, optimizer="SGD"):
    """The rates and the momentum after each step, to the next epoch or to any; from one group of two."""
    params = [engine.ones(2, requires_grad=True) for _ in range(2)]
    more = {"momentum": 0.9} if optimizer == "SGD" else {}
    made = getattr(package, optimizer)([{"params": params[:1]}, {"params": params[1:], "lr": 0.2}], lr=0.4, **more)
    schedule = getattr(package.lr_scheduler, name)(made, **options)
    found = []
    for epoch in [None, *epochs]:
        if found:
            made.step()
            schedule.step() if epoch is None else schedule.step(epoch)
            assert schedule.get_last_lr() == [group["lr"] for group in made.param_groups]
        found.append([[g["lr"], *([g["momentum"]] if more else g["betas"])] for g in made.param_groups])
    return [[number for group in step for number in group] for step in found]


NEXT = [None] * 12
JUMPS = [3, None, None, 7, 0, None, 5, 12]


def alike(name, options, epochs, optimizer="SGD"):
    both = (scheduled(e, p, name, options, epochs, optimizer) for e, p in ((dynamic, optim), (torch, torch.optim)))
    np.testing.assert_allclose(*both, rtol=1e-9)


@pytest.mark.parametrize(("name", "options"), SCHEDULES, ids=lambda v: v if isinstance(v, str) else "")
def test_schedules(name, options):
    alike(name, options, NEXT)
    alike(name, options, JUMPS)
    alike(name, options, NEXT, "Adam")


def test_restarts_take_fractions_of_epochs():
    for mult in (1, 2):
        alike("CosineAnnealingWarmRestarts", {"T_0": 3, "T_mult": mult}, [0.5, 2.25, 3.0, None, 7.75, 1.5, None])


def test_schedules_together():
    rates = []
    for engine, package in ((dynamic, optim), (torch, torch.optim)):
        schedules = package.lr_scheduler

        def made(package=package, engine=engine, schedules=schedules):
            optimizer = package.SGD([engine.ones(2, requires_grad=True)], lr=0.4)
            parts = [schedules.ConstantLR(optimizer, 0.1, total_iters=2), schedules.ExponentialLR(optimizer, 0.9)]
            return optimizer, schedules.ChainedScheduler(parts)

        optimizer, schedule = made()
        found = []
        for step in range(8):
            optimizer.step()
            schedule.step()
            found += [optimizer.param_groups[0]["lr"], *schedule.get_last_lr()]
            if step == 3:
                saved, values = schedule.state_dict(), optimizer.state_dict()
                optimizer, schedule = made()
                schedule.load_state_dict(saved)
                optimizer.load_state_dict(values)
        rates.append(found)
    np.testing.assert_allclose(rates[0], rates[1], rtol=1e-12)


SEARCHES = [
    {}, {"line_search_fn": "strong_wolfe"}, {"lr": 0.1, "history_size": 3, "max_iter": 4}, {"lr": 0.5, "max_iter": 1},
    {"line_search_fn": "strong_wolfe", "max_eval": 5, "lr": 1.2, "history_size": 2},
    {"line_search_fn": "strong_wolfe", "lr": 30.0, "max_iter": 3}, {"tolerance_grad": 0.3}, {"tolerance_change": 0.5},
]  # fmt: skip


def searched(engine, package, options, saved_after=None):
    """20 steps on a smooth loss that is no parabola, of two parameters and one without a gradient."""
    rng = np.random.default_rng(0)
    start = [rng.standard_normal((3, 2)), rng.standard_normal(4)]
    params = [engine.tensor(value).requires_grad_() for value in start]
    params.append(engine.ones(2, requires_grad=True))
    optimizer = package.LBFGS(params, **options)
    losses = []

    def closure():
        optimizer.zero_grad()
        a, b, _ = params
        loss = (a**4).sum() + (a.sum() - b[0]) ** 2 + 3 * ((1 - b) ** 2).sum() + (b[1:] * b[:-1]).cos().sum()
        loss.backward()
        return loss

    for step in range(20):
        losses.append(float(optimizer.step(closure).detach()))
        if step == saved_after:
            state = optimizer.state_dict()
            optimizer = package.LBFGS(params, lr=9.0)
            optimizer.load_state_dict(state)
    return [param.detach().numpy() for param in params], losses, optimizer.state_dict()["state"][0]


@pytest.mark.parametrize("options", SEARCHES, ids=str)
@pytest.mark.parametrize("saved_after", [None, 1])
def test_lbfgs(options, saved_after):
    found, expected = searched(dynamic, optim, options, saved_after), searched(torch, torch.optim, options)
    for ours, theirs in zip(found[0], expected[0], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-10)
    for count in ("func_evals", "n_iter"):
        assert found[2][count] == expected[2][count]
    assert set(expected[2]) - set(found[2]) <= {"al"}


def test_one_schedule_after_another():
    rates = []
    for engine, package in ((dynamic, optim), (torch, torch.optim)):
        schedules = package.lr_scheduler
        optimizer = package.SGD([engine.ones(2, requires_grad=True)], lr=0.4)
        parts = [schedules.LinearLR(optimizer, 0.1, total_iters=3), schedules.ExponentialLR(optimizer, 0.9)]
        schedule = schedules.SequentialLR(optimizer, parts, milestones=[3])
        found = []
        for _ in range(9):
            found.append(optimizer.param_groups[0]["lr"])
            optimizer.step()
            schedule.step()
        rates.append(found)
    np.testing.assert_allclose(rates[0], rates[1], rtol=1e-9)


@pytest.mark.parametrize(
    "options", [{}, {"mode": "max", "factor": 0.5, "cooldown": 1}, {"threshold_mode": "abs", "threshold": 0.2}], ids=str
)
def test_the_rate_falls_on_a_plateau(options):
    metrics = [5, 4, 4, 4.1, 3.9, 4, 4, 4, 4, 6, 6, 6, 6, 6, 7]
    rates = []
    for engine, package in ((dynamic, optim), (torch, torch.optim)):
        optimizer = package.SGD([engine.ones(2, requires_grad=True)], lr=0.4)
        schedule = package.lr_scheduler.ReduceLROnPlateau(optimizer, patience=2, **options)
        found = []
        for metric in metrics:
            schedule.step(metric)
            found.append(optimizer.param_groups[0]["lr"])
        rates.append(found)
    np.testing.assert_allclose(rates[0], rates[1], rtol=1e-9)


@pytest.mark.parametrize("limit", [0.5, 1e6])
@pytest.mark.parametrize("kind", [2.0, 1.0, float("inf")])
def test_clipping(limit, kind):
    found = []
    for engine, package in ((dynamic, nn.utils), (torch, torch.nn.utils)):
        params = [engine.tensor(np.arange(1.0, n)).requires_grad_() for n in (4, 6)]
        (params[0].sum() * 3 + (params[1] ** 2).sum()).backward()
        norm = package.clip_grad_norm_(params, limit, norm_type=kind)
        package.clip_grad_value_(params, 0.2)
        found.append([float(norm), *(param.grad.numpy().copy() for param in params)])
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_parameters_as_a_vector():
    found = []
    for engine, package in ((dynamic, nn.utils), (torch, torch.nn.utils)):
        params = [engine.tensor(np.ones((2, 3))).requires_grad_(), engine.tensor(np.zeros(2)).requires_grad_()]
        vector = package.parameters_to_vector(params)
        (vector**2).sum().backward()
        package.vector_to_parameters(engine.tensor(np.arange(8.0)), params)
        found.append(
            [vector.detach().numpy(), params[0].grad.numpy(), params[0].detach().numpy(), params[1].detach().numpy()]
        )
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_array_equal(ours, theirs)


INITS = [
    ("uniform_", {"a": -1.0, "b": 3.0}), ("normal_", {"mean": 2.0, "std": 3.0}), ("trunc_normal_", {"std": 2.0}),
    ("xavier_uniform_", {"gain": 2.0}), ("xavier_normal_", {}), ("kaiming_uniform_", {"a": 1.0}),
    ("kaiming_normal_", {"mode": "fan_out", "nonlinearity": "relu"}), ("orthogonal_", {"gain": 2.0}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "options"), INITS, ids=str)
def test_initial_values_have_the_same_distribution(name, options):
    """By the two-sample test of Kolmogorov and Smirnov, at a level of one in a million."""
    ours = np.sort(getattr(nn.init, name)(dynamic.zeros(200, 40, 3), **options).numpy().ravel())
    theirs = np.sort(getattr(torch.nn.init, name)(torch.zeros(200, 40, 3), **options).numpy().ravel())
    both = np.concatenate([ours, theirs])
    shares = [np.searchsorted(one, both, side="right") / one.size for one in (ours, theirs)]
    assert np.abs(shares[0] - shares[1]).max() < 2.7 * np.sqrt(2 / ours.size)


LAYERS = [
    ("Linear", (50, 60)), ("Bilinear", (9, 10, 30)), ("Embedding", (60, 50)), ("Conv1d", (20, 30, 5)),
    ("Conv2d", (20, 30, 3)), ("ConvTranspose2d", (20, 30, 3)), ("LSTM", (30, 40)), ("GRUCell", (30, 40)),
    ("MultiheadAttention", (60, 3)), ("TransformerEncoderLayer", (32, 2, 64)), ("LayerNorm", (7,)),
    ("BatchNorm1d", (7,)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "sizes"), LAYERS, ids=str)
def test_layers_start_as_pytorchs(name, sizes):
    ours, theirs = getattr(nn, name)(*sizes).state_dict(), getattr(torch.nn, name)(*sizes).state_dict()
    assert list(ours) == list(theirs)
    for key, value in theirs.items():
        a, b = ours[key].numpy(), value.numpy()
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        if b.size > 100 and b.std():
            assert abs(a.std() / b.std() - 1) < 0.2
            assert abs(np.abs(a).max() / np.abs(b).max() - 1) < (0.5 if name == "Embedding" else 0.1)
        else:
            assert np.all(a == b) or np.abs(a).max() <= 1.3 * np.abs(b).max()


def test_parameters_of_functions_have_pytorchs_names_and_defaults():
    for name in nn.functional.__all__:
        theirs = getattr(torch.nn.functional, name)
        try:
            expected = inspect.signature(theirs).parameters
        except ValueError:  # written in C
            continue
        given = inspect.signature(getattr(nn.functional, name)).parameters
        for key, parameter in given.items():
            if key in expected and not key.startswith("_"):
                assert parameter.default == expected[key].default, (name, key)


@pytest.mark.parametrize("options", [{}, {"lr": 0.02, "nesterov": False, "weight_decay": 0.0, "ns_steps": 3},
                                     {"adjust_lr_fn": "match_rms_adamw"}], ids=str)  # fmt: skip
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_muon_rounds_to_bfloat16_where_pytorch_does(options, dtype):
    found = []
    for engine, package in ((dynamic, optim), (torch, torch.optim)):
        rng = np.random.default_rng(0)
        params = [
            engine.tensor(rng.standard_normal(s).astype(dtype)).requires_grad_() for s in ((8, 5), (5, 16), (64, 32))
        ]
        optimizer = package.Muon(params, **options)
        for step in range(10):
            for param in params:
                start = np.cos(np.arange(param.numel()).reshape(param.shape) * 1.3 * (step + 1)).astype(dtype)
                param.grad = engine.tensor(start) + param.detach()
            optimizer.step()
        found.append([param.detach().numpy() for param in params])
    for ours, theirs in zip(*found, strict=True):
        longest = max(ours.shape)  # long sums, in another order, round few products to the other bfloat16
        np.testing.assert_allclose(ours, theirs, atol=1e-6 if longest < 20 else 1e-4)
    with pytest.raises(ValueError, match="Muon: takes matrices"):
        optim.Muon([dynamic.ones(3, requires_grad=True)])


@pytest.mark.parametrize(("name", "options"), [("SGD", {"momentum": 0.9}), ("Adam", {}), ("RMSprop", {}), ("ASGD", {})])
def test_a_parameter_that_is_twice_in_a_group_changes_twice(name, options):
    """Modules that share a module are listed one beside the other, as in a world model and its rollout."""
    found = []
    for engine in (torch, dynamic):
        p, q, r = (engine.nn.Parameter(engine.tensor([1.0 + i, -2.0])) for i in range(3))
        with pytest.warns(UserWarning, match=r"duplicate|twice"):
            optimizer = getattr(engine.optim, name)([p, q, p, q, p], lr=0.1, **options)
        optimizer.add_param_group({"params": [r]})
        for step in range(3):
            optimizer.zero_grad()
            (p**2 + q + r**3).sum().backward() if step else (p**2 + r).sum().backward()
            optimizer.step()
        state = optimizer.state_dict()
        found.append(([value.tolist() for value in (p, q, r)], [group["params"] for group in state["param_groups"]]))
    np.testing.assert_allclose(found[1][0], found[0][0], rtol=1e-6)
    assert found[1][1] == found[0][1]
