"""A whole training step of PyTorch's as one graph: what it leaves is what the step as written leaves."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dynamic as torch
import static
from dynamic import nn
from dynamic.nn import functional as F  # noqa: N812
from graphs.errors import ArgumentError, ControlFlowError, GraphError

OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "SGD": lambda params: torch.optim.SGD(params, lr=0.1),
    "momentum": lambda params: torch.optim.SGD(params, lr=0.1, momentum=0.9, dampening=0.5, weight_decay=0.01),
    "AdamW": lambda params: torch.optim.AdamW(params, lr=0.01, amsgrad=True),
    "RMSprop": lambda params: torch.optim.RMSprop(params, lr=0.01, centered=True, momentum=0.5),
    "Adafactor": lambda params: torch.optim.Adafactor(params, lr=0.01),
    "maximize": lambda params: torch.optim.Adam(params, lr=0.01, maximize=True),
}


def network() -> Any:
    """Two layers, always with the same numbers."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))


def batches(count: int = 3) -> list[tuple[Any, Any]]:
    """Inputs and their classes."""
    rng = np.random.default_rng(0)
    return [
        (torch.tensor(rng.standard_normal((5, 4), np.float32)), torch.tensor(rng.integers(0, 3, 5)))
        for _ in range(count)
    ]


def training(model: Any, optimizer: Any) -> Callable[..., Any]:
    """The step that most people write."""

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss

    return step


def left(model: Any, *optimizers: Any) -> list[np.ndarray]:
    """All numbers that modules and optimizers hold."""
    states = [value for optimizer in optimizers for state in optimizer.state.values() for value in state.values()]
    return [np.asarray(value) for value in (*model.state_dict().values(), *states)]


def number(loss: Any) -> np.ndarray:
    """A loss, of the tape or of a graph."""
    return np.asarray(loss.item(), np.float32)


def assert_same(ours: list[np.ndarray], expected: list[np.ndarray]) -> None:
    """Equal to rounding, in the same number of arrays."""
    assert len(ours) == len(expected)
    for ours_, expected_ in zip(ours, expected, strict=True):
        assert ours_.dtype == expected_.dtype
        np.testing.assert_allclose(ours_, expected_, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_it_leaves_what_the_step_as_written_leaves(name: str) -> None:
    kept = []
    for compiles in (False, True):
        model = network()
        optimizer = OPTIMIZERS[name](model.parameters())
        schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.7)
        written = training(model, optimizer)
        step = static.trace_step(written, model, optimizer) if compiles else written
        losses = []
        for x, y in batches():
            losses.append(number(step(x, y)))
            schedule.step()
        losses.append(number(written(x, y)))  # the one goes on where the other ends
        kept.append([*losses, *left(model, optimizer)])
        assert not compiles or step.jitted.stats.compiles == 1
    assert_same(kept[1], kept[0])


def test_it_goes_on_from_steps_that_were_made_before() -> None:
    kept = []
    for compiles in (False, True):
        model = network()
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        written = training(model, optimizer)
        step = static.trace_step(written, model, optimizer) if compiles else written
        for number, (x, y) in enumerate(batches(6)):
            (written if number % 3 == 0 else step)(x, y)
        kept.append(left(model, optimizer))
    assert_same(kept[1], kept[0])


def test_options_that_change_are_seen() -> None:
    kept = []
    for compiles in (False, True):
        model = network()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        step = training(model, optimizer)
        step = static.trace_step(step, model, optimizer) if compiles else step
        for number, (x, y) in enumerate(batches()):
            optimizer.param_groups[0]["momentum"] = 0.9 if number < 2 else 0.1
            step(x, y)
        kept.append(left(model, optimizer))
    assert_same(kept[1], kept[0])
    assert step.jitted.stats.compiles == 2  # type: ignore[attr-defined]


def averaged(model: Any, optimizer: Any, average: Any) -> Callable[..., Any]:
    """A step that keeps a moving average of a weight, too."""

    def step(x: Any, y: Any) -> Any:
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            average.mul_(0.9).add_(model[0].weight, alpha=0.1)
        return {"loss": loss.item()}

    return step


def test_buffers_and_tensors_of_the_users_own_change_as_well() -> None:
    kept = []
    for compiles in (False, True):
        model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))
        with torch.no_grad():
            model[0].weight.copy_(torch.arange(12.0).reshape(3, 4) / 10)
            model[0].bias.zero_()
        average, optimizer = torch.zeros(3, 4), torch.optim.SGD(model.parameters(), lr=0.1)
        step = averaged(model, optimizer, average)
        step = static.trace_step(step, model, optimizer, average) if compiles else step
        losses = [np.asarray(step(x, y)["loss"], np.float32) for x, y in batches()]
        kept.append([*losses, *left(model), average.numpy()])
    assert_same(kept[1], kept[0])


def test_gradients_add_up_over_calls_of_backward() -> None:
    kept = []
    for compiles in (False, True):
        model = network()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        def written(x: Any, y: Any, model: Any = model, optimizer: Any = optimizer) -> Any:
            optimizer.zero_grad()
            total = 0
            for part in (slice(0, 2), slice(2, 5)):
                loss = F.cross_entropy(model(x[part]), y[part]) / 2
                loss.backward()
                total = total + loss.detach()
            optimizer.step()
            return total

        step = static.trace_step(written, model, optimizer) if compiles else written
        losses = [number(step(x, y)) for x, y in batches()]
        kept.append([*losses, *left(model)])
    assert_same(kept[1], kept[0])


def penalised(model: Any, optimizer: Any, params: Any) -> Callable[..., Any]:
    """A step that has put its parameters aside, and clips their gradients by itself."""

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y) + 0.1 * sum(p.square().sum() for p in params)
        loss.backward()
        for param in params:
            param.grad.clamp_(-0.05, 0.05)
        optimizer.step()
        return loss

    return step


def test_parameters_in_a_list_of_the_users_are_those_that_are_trained() -> None:
    kept = []
    for compiles in (False, True):
        model = network()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        step = penalised(model, optimizer, list(model.parameters()))
        step = static.trace_step(step, model, optimizer) if compiles else step
        kept.append([*(number(step(x, y)) for x, y in batches()), *left(model)])
    assert_same(kept[1], kept[0])


def test_two_optimizers_take_turns() -> None:
    kept = []
    for compiles in (False, True):
        first, second = network(), network()
        optimizers = [torch.optim.Adam(m.parameters(), lr=0.01) for m in (first, second)]

        def written(x: Any, y: Any, models: Any = (first, second), optimizers: Any = tuple(optimizers)) -> Any:
            losses = []
            for model, other, optimizer in zip(models, models[::-1], optimizers, strict=True):
                optimizer.zero_grad()
                loss = F.cross_entropy(model(x) - other(x).detach(), y)
                loss.backward()
                optimizer.step()
                losses.append(loss)
            return losses

        step = static.trace_step(written, first, second, *optimizers) if compiles else written
        losses = [number(loss) for x, y in batches() for loss in step(x, y)]
        kept.append([*losses, *left(first, *optimizers), *left(second)])
    assert_same(kept[1], kept[0])


def test_a_checkpoint_changes_nothing() -> None:
    kept = []
    for compiles in (False, True):
        model = network()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        def written(x: Any, y: Any, model: Any = model, optimizer: Any = optimizer) -> Any:
            optimizer.zero_grad()
            loss = F.cross_entropy(torch.checkpoint(model, x), y)
            loss.backward()
            optimizer.step()
            return loss

        step = static.trace_step(written, model, optimizer) if compiles else written
        kept.append([*(number(step(x, y)) for x, y in batches()), *left(model)])
    assert_same(kept[1], kept[0])


def test_each_call_draws_anew() -> None:
    weight = nn.Parameter(torch.ones(64))
    optimizer = torch.optim.SGD([weight], lr=0.0)

    def written() -> Any:
        dropped = F.dropout(weight * 1, 0.5, training=True)
        dropped.sum().backward()
        optimizer.step()
        return dropped

    step = static.trace_step(written, optimizer)
    first, second = step(), step()
    assert set(first.tolist()) == {0.0, 2.0}
    assert not np.array_equal(first, second)


def test_afterwards_everything_is_as_it_was() -> None:
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    before = dict(model.named_parameters())
    static.trace_step(training(model, optimizer), model, optimizer)(*batches(1)[0])
    assert {name: id(p) for name, p in model.named_parameters()} == {name: id(p) for name, p in before.items()}
    assert all(p.grad is None for p in before.values())
    assert type(torch.zeros(2)) is torch.Tensor
    with pytest.raises(ControlFlowError, match="value_and_grad"):
        static.jit(lambda x: x.sum().backward())(np.ones(2))


class Adam(torch.optim.Optimizer):  # type: ignore[misc]
    """Adam by hand: a count of Python's, a learning rate that a schedule changes, and a size by `math`."""

    def __init__(self, params: Any, lr: float = 0.05) -> None:
        super().__init__(params, {"lr": lr, "betas": (0.9, 0.99)})

    def __setstate__(self, state: Any) -> None:
        """Set an option that older states lack, as many optimizers do."""
        super().__setstate__(state)
        for group in self.param_groups:
            group.setdefault("betas", (0.9, 0.99))

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """Change each parameter in place, through its data."""
        loss = None if closure is None else closure()
        for group in self.param_groups:
            low, high = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if len(state) == 0:
                    state["step"], state["m"], state["v"] = 0, torch.zeros_like(p.data), torch.zeros_like(p.data)
                state["step"] += 1
                state["m"].mul_(low).add_(p.grad, alpha=1 - low)
                state["v"].mul_(high).addcmul_(p.grad, p.grad, value=1 - high)
                size = group["lr"] * self.size(1 - high ** state["step"]) / (1 - low ** state["step"])
                p.data.addcdiv_(state["m"], state["v"].sqrt().add_(1e-8), value=-size)
        return loss

    def size(self, number: Any) -> Any:
        """The square root of a number."""
        return number**0.5


class AdamByMath(Adam):
    """As Adam, with a function of `math`, which a conversion alone takes."""

    def size(self, number: Any) -> Any:
        """The square root of a number."""
        return math.sqrt(number)


class Lars(torch.optim.Optimizer):  # type: ignore[misc]
    """Momentum by the norms of a parameter and its gradient, a count in the group, a tensor that counts in place."""

    def __init__(self, params: Any) -> None:
        super().__init__(params, {"lr": 0.3, "momentum": 0.9})

    @torch.no_grad()
    def step(self) -> None:
        """Change each parameter in place."""
        for group in self.param_groups:
            group["count"] = group.get("count", 0) + 1
            for p in group["params"]:
                grad, state = p.grad, self.state[p]
                if p.ndim > 1:
                    norm, one = torch.norm(p), torch.ones(())
                    grad = grad.mul(torch.where(norm > 0, norm / (torch.norm(grad) + 1e-3), one))
                if "mu" not in state:
                    state["mu"], state["count"] = torch.zeros_like(p), torch.tensor(0.0)
                count = state["count"]
                count += 1
                state["mu"].mul_(group["momentum"]).add_(grad)
                p.add_(state["mu"] / count, alpha=-group["lr"] / group["count"])


class Sharpness(torch.optim.Optimizer):  # type: ignore[misc]
    """Steps up the gradient, then back, and lets an optimizer of ours step: two backward passes."""

    def __init__(self, params: Any) -> None:
        super().__init__(params, {"rho": 0.05})
        self.base = torch.optim.SGD(self.param_groups, lr=0.1, momentum=0.9)
        self.param_groups = self.base.param_groups

    @torch.no_grad()
    def step(self, closure: Any) -> None:
        """Step with the gradient at the place that is reached by a step up."""
        params = [p for group in self.param_groups for p in group["params"]]
        norm = torch.norm(torch.stack([p.grad.norm(p=2) for p in params]), p=2)
        for p in params:
            self.state[p]["before"] = p.data.clone()
            p.add_(p.grad * (self.param_groups[0]["rho"] / (norm + 1e-12)))
        self.zero_grad()
        with torch.enable_grad():
            closure().backward()
        for p in params:
            p.data = self.state[p]["before"]
        self.base.step()


WRITTEN = [
    (Adam, {}), (Adam, {"convert": True}), (AdamByMath, {"convert": True}), (Lars, {}), (Lars, {"convert": True}),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "options"), WRITTEN, ids=lambda value: getattr(value, "__name__", str(value)))
def test_an_optimizer_of_the_users_own_steps_in_the_graph(kind: Any, options: Any) -> None:
    runs = []
    for is_compiled in (False, True):
        model = network()
        optimizer = kind(model.parameters())
        step = training(model, optimizer)
        if is_compiled:
            step = static.trace_step(step, model, optimizer, **options)
        losses = []
        for number, batch in enumerate(batches(6)):
            if number == 4:  # as a schedule does
                optimizer.param_groups[0]["lr"] *= 0.5
            losses.append(float(step(*batch)))
        kept = [type(value) for state in optimizer.state.values() for value in state.values()]
        options_left = {name: value for name, value in optimizer.param_groups[0].items() if name != "params"}
        runs.append((losses, left(model, optimizer), kept, options_left))
        if is_compiled:  # without and with a state
            assert step.jitted.stats.compiles == 2
    (losses, arrays, kept, group), (same_losses, same_arrays, same_kept, same_group) = runs
    np.testing.assert_allclose(same_losses, losses, rtol=1e-5)
    assert (same_kept, same_group.keys()) == (kept, group.keys())
    np.testing.assert_allclose(same_group["lr"], group["lr"])
    assert same_group.get("count") == group.get("count")
    for same, array in zip(same_arrays, arrays, strict=True):
        assert same.dtype == array.dtype
        np.testing.assert_allclose(same, array, rtol=1e-4, atol=1e-6)


def by_grad(model: Any, x: Any, y: Any, again: bool) -> Any:
    """The loss at parameters after a step by `autograd.grad`, as MAML has it."""
    params = dict(model.named_parameters())
    loss = F.cross_entropy(torch.func.functional_call(model, params, (x,)), y)
    gradients = torch.autograd.grad(loss, list(params.values()), create_graph=again)
    moved = {name: p - 0.4 * g for (name, p), g in zip(params.items(), gradients, strict=True)}
    return F.cross_entropy(torch.func.functional_call(model, moved, (x + 1,)), y)


def by_backward(model: Any, x: Any, y: Any, again: bool) -> Any:
    """A loss with the norm of the gradients that `backward` has left."""
    loss = F.cross_entropy(model(x), y)
    loss.backward(create_graph=again)
    return loss.detach() + sum((p.grad**2).sum() * (p**2).sum() for p in model.parameters())


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("loss_of", [by_grad, by_backward])
def test_a_gradient_has_a_history_with_create_graph_alone(loss_of: Any, again: bool) -> None:
    def run(is_compiled: bool) -> list[np.ndarray]:
        model = network()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)

        def step(x: Any, y: Any) -> Any:
            optimizer.zero_grad()
            loss = loss_of(model, x, y, again)
            loss.backward()
            optimizer.step()
            return loss

        run = static.trace_step(step, model, optimizer) if is_compiled else step
        return [np.asarray(float(run(*batch))) for batch in batches(3)] + left(model)

    for same, array in zip(run(True), run(False), strict=True):
        np.testing.assert_allclose(same, array, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("options", [{}, {"convert": True}])
def test_what_detach_gave_has_the_history_of_its_changes(options: Any) -> None:
    def run(is_compiled: bool) -> list[Any]:
        model = network()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        def step(x: Any, other: Any) -> Any:
            optimizer.zero_grad()
            moved, rest = x.detach(), other.detach()
            moved += model[0](torch.ones(3, 4))[:, :4]
            moved *= 2
            rest[1] += model[0].bias[:4]
            loss = (moved**2).mean() + (rest**3).mean() + x.sum()
            loss.backward()
            optimizer.step()
            return loss

        run = static.trace_step(step, model, optimizer, **options) if is_compiled else step
        x, other = torch.ones(3, 4), torch.ones(2, 4)
        return [[float(run(x, other)) for _ in range(3)], x.tolist(), other.tolist(), *left(model)]

    for same, plain in zip(run(True), run(False), strict=True):
        np.testing.assert_allclose(same, plain, rtol=1e-4, atol=1e-6)


def test_a_change_under_another_name_of_what_has_a_history_is_refused() -> None:
    model = network()

    def step(x: Any, _: Any) -> Any:
        moved = x.detach()
        moved += model[0].bias[:4]
        x[0] = 5.0
        return moved.sum()

    assert "detach() again" in refused(step, model)


@pytest.mark.parametrize("options", [{}, {"convert": True}])
def test_what_a_step_changes_in_its_arguments_is_changed_for_the_caller(options: Any) -> None:
    def run(is_compiled: bool) -> list[Any]:
        model = network()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        def shift(part: Any) -> None:
            part += 1

        def step(x: Any, seen: Any) -> Any:
            optimizer.zero_grad()
            loss = (model(x) ** 2).mean()
            loss.backward()
            optimizer.step()
            shift(x.detach()[1:])
            seen["count"].mul_(2)
            return loss

        run = static.trace_step(step, model, optimizer, **options) if is_compiled else step
        x, seen = torch.ones(3, 4), {"count": torch.tensor([1.0, 2.0]), "other": torch.tensor(3.0)}
        losses = [float(run(x, seen)) for _ in range(3)]
        return [losses, x.tolist(), *(value.tolist() for value in seen.values())]

    (losses, *same), (plain_losses, *plain) = run(True), run(False)
    np.testing.assert_allclose(losses, plain_losses, rtol=1e-5)
    assert same == plain


def test_a_converted_step_reads_own_optimizers_from_a_list() -> None:
    def run(is_compiled: bool) -> list[float]:
        models = [network(), network()]
        optimizers = [AdamByMath(model.parameters(), lr=rate) for model, rate in zip(models, (0.05, 0.2), strict=True)]

        def step(x: Any, y: Any) -> Any:
            total = 0
            for model, optimizer in zip(models, optimizers, strict=True):
                optimizer.zero_grad()
                loss = F.cross_entropy(model(x), y)
                loss.backward()
                optimizer.step()
                total = total + loss.detach()
            return total

        run = static.trace_step(step, *models, *optimizers, convert=True) if is_compiled else step
        return [float(run(*batch)) for batch in batches(4)]

    np.testing.assert_allclose(run(True), run(False), rtol=1e-5)


def test_an_own_optimizer_may_hold_one_of_ours_and_take_a_closure() -> None:
    def run(is_compiled: bool) -> tuple[list[float], list[np.ndarray]]:
        model = network()
        optimizer = Sharpness(model.parameters())

        def step(x: Any, y: Any) -> Any:
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step(lambda: F.cross_entropy(model(x), y))
            optimizer.zero_grad()
            return loss

        run = static.trace_step(step, model, optimizer, optimizer.base) if is_compiled else step
        return [float(run(*batch)) for batch in batches(4)], left(model)

    losses, arrays = run(False)
    same_losses, same_arrays = run(True)
    np.testing.assert_allclose(same_losses, losses, rtol=1e-5)
    for same, array in zip(same_arrays, arrays, strict=True):
        np.testing.assert_allclose(same, array, rtol=1e-4, atol=1e-6)


class Faulty(torch.optim.Optimizer):  # type: ignore[misc]
    """Keeps what no graph can, as `fault` says."""

    def __init__(self, params: Any, fault: str) -> None:
        super().__init__(params, {"lr": 0.1})
        self.param_groups[0]["history"] = [0]
        self.fault, self.count = fault, 0

    def step(self) -> None:
        """Step, and do what no graph can."""
        for p in self.param_groups[0]["params"]:
            p.data.add_(p.grad, alpha=-0.1)
            if self.fault == "object":
                self.state[p]["what"] = object()
            elif self.fault == "parameter":
                self.state[p]["anchor"] = p
            elif self.fault == "view":
                self.state[p]["anchor"] = p.data
        if self.fault == "attribute":
            self.count += 1
        elif self.fault == "list":
            self.param_groups[0]["history"].append(1)


class Derived(torch.optim.SGD):  # type: ignore[misc]
    """Steps as ours does, and more."""

    def step(self, closure: Any = None) -> Any:
        """Step twice."""
        super().step()
        return super().step()


def refused(step: Callable[..., Any], *holders: Any) -> str:
    """How a step on the first batch is refused."""
    with pytest.raises(GraphError) as error:
        static.trace_step(step, *holders)(*batches(1)[0])
    return str(error.value)


def test_what_a_graph_cannot_do_is_refused() -> None:
    model = network()
    lbfgs, derived, other = torch.optim.LBFGS(model.parameters()), Derived(model.parameters(), lr=0.1), network()
    assert "Derived changes how an optimizer of ours steps" in refused(training(model, derived), model, derived)
    rules = {
        "object": "Faulty keeps a object, which no graph can",
        "parameter": "keep a clone()",
        "view": "keep a clone()",
        "attribute": "the step changes Faulty.count",
        "list": "the step changes Faulty.param_groups[0]['history']",
    }
    for fault, rule in rules.items():
        own = Faulty(model.parameters(), fault)
        assert rule in refused(training(model, own), model, own)
        assert not any(own.state.values())
    by_math = AdamByMath(model.parameters())
    step = static.trace_step(training(model, by_math), model, by_math)
    step(*batches(1)[0])
    with pytest.raises(ControlFlowError, match="convert=True"):
        step(*batches(1)[0])
    assert "LBFGS.step decides by values" in refused(training(model, lbfgs), model, lbfgs)
    optimizer = torch.optim.SGD(other.parameters(), lr=0.1)
    assert "trace_step(f, optimizer)" in refused(training(other, optimizer), other)

    def by_value(x: Any, _: Any) -> Any:
        return x if other(x).sum() > 0 else -x

    assert "test_trace_step.py" in refused(by_value, other)
    with pytest.raises(ArgumentError, match="takes modules, tensors and optimizers, no int"):
        static.trace_step(by_value, 3)


def test_a_schedule_inside_is_refused() -> None:
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    step = training(model, optimizer)

    def written(x: Any, y: Any) -> Any:
        loss = step(x, y)
        schedule.step()
        return loss

    assert "scheduler.step() behind the step" in refused(written, model, optimizer)


def test_a_gradient_that_no_symbol_has_is_refused() -> None:
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    assert "module.parameters()" in refused(penalised(model, optimizer, tuple(model.parameters())), model, optimizer)


def test_parameters_with_different_numbers_of_steps_are_refused() -> None:
    first, second = nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(2))
    optimizer = torch.optim.Adam([first, second], lr=0.1)
    first.sum().backward()
    optimizer.step()

    def written(*_: Any) -> None:
        (first + second).sum().backward()
        optimizer.step()

    assert "have made 1 and 2 steps" in refused(written, optimizer)


VIEWS: dict[str, Callable[[Any], Any]] = {
    "a part": lambda w: w[0],
    "a chunk": lambda w: w.chunk(2)[1],
    "turned": lambda w: w.t(),
    "flat": lambda w: w.view(-1),
    "detached": lambda w: w.detach(),
    "data": lambda w: w.data.t(),
    "unbound": lambda w: w.unbind(0)[1],
    "a copy": lambda w: w.detach().clone(),
}


def with_view(take: Callable[[Any], Any], *, outside: bool, by_hand: bool) -> tuple[Any, Any, Any]:
    """A step that changes a weight in place, and reads a view of it behind the change."""
    torch.manual_seed(0)
    model = nn.Linear(4, 4, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    early = take(model.weight.detach()) if outside else None

    def step(x: Any) -> Any:
        view = early if outside else take(model.weight)
        optimizer.zero_grad()
        loss = (model(x) ** 2).sum()
        loss.backward()
        if by_hand:
            with torch.no_grad():
                model.weight.mul_(0.5)
        else:
            optimizer.step()
        return loss.detach() + view.detach().sum()

    return step, model, optimizer


@pytest.mark.parametrize("by_hand", [False, True], ids=["optimizer", "in place"])
@pytest.mark.parametrize("outside", [False, True], ids=["inside", "outside"])
@pytest.mark.parametrize("name", VIEWS)
def test_a_view_shows_what_its_tensor_has_become_or_is_refused(name: str, outside: bool, by_hand: bool) -> None:
    written, _, _ = with_view(VIEWS[name], outside=outside, by_hand=by_hand)
    compiled = static.trace_step(*with_view(VIEWS[name], outside=outside, by_hand=by_hand))
    for seed in range(2):
        x = torch.tensor(np.random.default_rng(seed).normal(size=(3, 4)).astype(np.float32))
        expected = float(written(x))
        value, refusal = 0.0, ""
        try:
            value = float(np.asarray(compiled(x)))
        except ControlFlowError as error:
            refusal = str(error)
        if refusal:
            assert name != "a copy"
            assert outside or name not in ("a part", "a chunk")
            assert "test_trace_step.py" in refusal
            assert "take th" in refusal
            break
        assert value == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    "given", [lambda w: w, lambda w: w.detach(), lambda w: w.t()], ids=["itself", "detached", "turned"]
)
def test_a_tensor_that_was_given_another_keeps_that_value_when_the_other_changes(given: Callable[[Any], Any]) -> None:
    def make() -> tuple[Any, ...]:
        torch.manual_seed(0)
        model, target = nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        def step(x: Any) -> Any:
            with torch.no_grad():
                target.weight.copy_(given(model.weight))
            optimizer.zero_grad()
            loss = ((model(x) - 1) ** 2).sum()
            loss.backward()
            optimizer.step()
            with torch.no_grad():
                return target(x).sum()

        return step, model, target, optimizer

    (written, *_), compiled = make(), static.trace_step(*make())
    for seed in range(2):
        x = torch.tensor(np.random.default_rng(seed).normal(size=(3, 4)).astype(np.float32))
        assert float(np.asarray(compiled(x))) == pytest.approx(float(written(x)), rel=1e-5)


@pytest.mark.parametrize("change", ["detach_", "t_"])
def test_a_tensor_that_becomes_a_view_of_itself_is_used_on(change: str) -> None:
    def make() -> tuple[Any, ...]:
        module = nn.Linear(2, 2)
        module.register_buffer("table", torch.arange(4.0).reshape(2, 2))

        def step(x: Any) -> Any:
            getattr(module.table, change)()
            return (x @ module.table).sum(0)

        return step, module

    (written, _), compiled = make(), static.trace_step(*make())
    x = torch.tensor(np.array([[1.0, 2.0]], np.float32))
    np.testing.assert_array_equal(np.asarray(compiled(x)), written(x).numpy())


def test_a_gradient_that_is_removed_or_set_past_the_module_is_refused():
    """It was ignored: the parameter changed all the same."""
    for gradient in (None, torch.zeros(2, 3)):
        net = nn.Linear(3, 2)
        optimizer, weight = torch.optim.SGD(net.parameters(), lr=0.1), net.weight

        def step(x, weight=weight, net=net, optimizer=optimizer, gradient=gradient):
            loss = (net(x) ** 2).mean()
            loss.backward()
            weight.grad = gradient
            optimizer.step()
            return loss

        with pytest.raises(GraphError, match=r"set or removed by another way|a tensor or None"):
            static.trace_step(step, optimizer)(torch.ones(1, 3))


HALVED: dict[str, Callable[[Any], Any]] = {
    "itself": lambda gradient: gradient,
    "data": lambda gradient: gradient.data,
    "detach()": lambda gradient: gradient.detach(),
    "a part of data": lambda gradient: gradient.data[0],
}


@pytest.mark.parametrize("clips", [False, True], ids=["always", "in a branch"])
@pytest.mark.parametrize("name", HALVED)
def test_a_gradient_changes_under_each_of_its_names(name: str, clips: bool) -> None:
    take = HALVED[name]

    def trained(traces: bool) -> list[np.ndarray]:
        model = network()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        def step(x: Any, y: Any) -> Any:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            for param in model.parameters():
                norm = param.grad.data.norm()
                if clips:
                    if norm > 0.1:
                        take(param.grad).mul_(0.1 / norm)
                else:
                    take(param.grad).mul_(0.5)
            optimizer.step()
            return loss

        run = static.trace_step(step, model, optimizer, convert=True) if traces else step
        for x, y in batches():
            run(x, y)
        return left(model)

    assert_same(trained(traces=True), trained(traces=False))
