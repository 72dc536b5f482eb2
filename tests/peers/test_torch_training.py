"""Training steps as their authors wrote them: gated with their state, timed with their optimizer, and put back."""

import copy

import numpy as np
import pytest

import dynamic
from compare import engines
from compare.engines.graphduel.programs import Replay
from compare.engines.torch import dispatcher, dynamo, modes
from compare.instruments.bench import Bench
from compare.own import run
from compare.records.cells import Compilations, Parity
from compare.records.record import records_of
from dynamic.random import drawing_from
from tests.helpers.plans import plan_of

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(autouse=True)
def adapter():
    found = engines.find_engine("torch")
    found.start(0, doubles=None)
    dynamo.forget()
    return found


def made(optimizer, *, norm=None, dropout=0.0, scheduled=False):
    """A model, its optimizer, and a step that returns nothing."""
    between = [norm(8)] if norm else []
    model = torch.nn.Sequential(
        torch.nn.Linear(6, 8), *between, torch.nn.Tanh(), torch.nn.Dropout(dropout), torch.nn.Linear(8, 2)
    )
    opt = optimizer(model.parameters())
    schedule = torch.optim.lr_scheduler.StepLR(opt, 2) if scheduled else None

    def step(x, y):
        opt.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        opt.step()
        if schedule is not None:
            schedule.step()

    return model, opt, step


def calls(count=3):
    return [(torch.randn(4, 6), torch.randint(0, 2, (4,))) for _ in range(count)]


def sgd(parameters):
    return torch.optim.SGD(parameters, lr=0.1, momentum=0.9)


def adam(parameters):
    return torch.optim.Adam(parameters, lr=0.01)


@pytest.mark.parametrize(
    ("optimizer", "options"),
    [(sgd, {"norm": torch.nn.BatchNorm1d}), (adam, {"scheduled": True}), (adam, {"dropout": 0.5})],
    ids=["batch norm", "schedule", "dropout"],
)
def test_a_step_is_measured_as_it_is_and_its_state_comes_back(optimizer, options):
    model, opt, step = made(optimizer, **options)
    before, state = copy.deepcopy(model.state_dict()), copy.deepcopy(opt.state_dict())
    asked = plan_of("torch", "f.py:step", "", ("eager", "compile"), seconds=0.02)
    found = run.here(asked, step, calls())
    (parity,), (told,) = records_of(found.records, Parity), records_of(found.records, Compilations)
    assert {row.status for row in parity.modes.values()} == {"ok"}
    assert parity.modes["compile"].state_error < 1e-4  # of the parameters and buffers after each call
    assert told.trains
    assert any("backward" in reason for reason in told.modes["compile"].breaks)
    assert all(".py:" in reason for reason in told.modes["compile"].breaks if "zero_grad" in reason)
    for name, value in model.state_dict().items():
        np.testing.assert_array_equal(value.numpy(), before[name].numpy(), err_msg=name)
    assert opt.state_dict()["state"].keys() == state["state"].keys()


def test_a_bias_before_a_norm_is_what_adam_makes_of_rounding():
    """Its gradient is 0 but for rounding, and Adam divides by its size: PyTorch itself does not give it twice."""
    *_, step = made(adam, norm=torch.nn.BatchNorm1d)
    asked = plan_of("torch", "f.py:step", "", ("eager", "compile"), seconds=0.02)
    found = run.here(asked, step, calls())
    (parity,), (told,) = records_of(found.records, Parity), records_of(found.records, Compilations)
    assert {row.status for row in parity.modes.values()} == {"ok"}
    assert told.conditioning > 1e-4
    assert "This step is ill-conditioned: eager itself is off by" in " ".join(repr(found).split())


def test_a_step_that_another_mode_trains_otherwise_disagrees(monkeypatch):
    model, _, step = made(sgd)

    def wrong(mode, loss, **_):
        def run(*args):
            loss(*args)
            with torch.no_grad():
                next(model.parameters()).mul_(1.01)

        return run

    monkeypatch.setattr(modes, "compile_function", wrong)
    asked = plan_of("torch", "f.py:step", "", ("eager", "compile"), seconds=0.02)
    found = run.here(asked, step, calls())
    assert found.verdict.refused["compile"].startswith(
        "disagree: the parameter `model.0.weight` after call 1 is off by"
    )
    assert found.exit_code == 4


def test_a_step_in_mixed_precision_is_measured():
    model, opt, _ = made(sgd)

    def step(x, y):
        opt.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        opt.step()
        return loss

    asked = plan_of("torch", "f.py:step", "", ("eager",), seconds=0.02)
    found = run.here(asked, step, calls(1))
    assert records_of(found.records, Parity)[0].modes["eager"].status == "ok"


def test_ops_of_the_compiler_are_none_that_ran_outside_of_compiled_code(adapter):
    """A look that begins from the state of the start may have to compile again."""
    _, _, step = made(sgd)
    bench = Bench.of_function(adapter, "torch-eager", "step", step, calls(), 0, checks=True)
    eager, compiled = (bench.step(mode).bind(0) for mode in ("torch-eager", "torch-aot-eager"))
    with bench.state.fresh():
        assert adapter.ops.outside(eager) > 0
    with bench.state.fresh():
        assert adapter.ops.outside(compiled) == 0


def test_an_epoch_without_arguments_is_a_step_of_one_call():
    model, _, step = made(sgd)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(*map(torch.cat, zip(*calls(), strict=True))), 4)
    before = copy.deepcopy(model.state_dict())

    def epoch():
        for x, y in loader:
            step(x, y)

    found = run.here(plan_of("torch", "f.py:epoch", "", ("eager",), seconds=0.02), epoch, [()])
    assert records_of(found.records, Parity)[0].modes["eager"].status == "ok"
    assert "a training step over 1 input" in repr(found)
    assert all(value.equal(model.state_dict()[name]) for name, value in before.items())


class Trainer:
    """A step as a method, whose model and optimizer are attributes."""

    def __init__(self):
        self.model = torch.nn.Linear(6, 2)
        self.optimizer = adam(self.model.parameters())

    def step(self, x, y):
        self.optimizer.zero_grad()
        torch.nn.functional.cross_entropy(self.model(x), y).backward()
        self.optimizer.step()


@pytest.mark.parametrize("is_bound", [True, False])
def test_a_step_that_is_a_method_is_put_back_as_well(is_bound):
    trainer = Trainer()

    def calls_it(x, y):
        trainer.step(x, y)

    step = trainer.step if is_bound else calls_it
    before = trainer.model.weight.detach().clone()
    found = run.here(plan_of("torch", "f.py:step", "", ("eager",), seconds=0.02), step, calls())
    (told,) = records_of(found.records, Compilations)
    assert told.trains
    assert not told.random
    assert told.conditioning < 1e-5
    assert torch.equal(trainer.model.weight, before)


def test_what_is_drawn_about_a_mean_is_handed_out_as_plain_numbers() -> None:
    """So that `torch.normal` and `Normal.sample` of ours, which scale plain numbers, give what PyTorch drew."""
    mean, std = [1.0, -2.0, 5.0], [0.1, 2.0, 0.0]
    forms = {
        "two tensors": lambda torch: torch.normal(torch.tensor(mean), torch.tensor(std)),
        "a mean": lambda torch: torch.normal(torch.tensor(mean), 2.0),
        "a deviation": lambda torch: torch.normal(3.0, torch.tensor(std)),
        "two numbers": lambda torch: torch.normal(1.0, 2.0, (3,)),
        "a distribution": lambda torch: torch.distributions.Normal(torch.tensor(mean), torch.tensor(std) + 1).sample(),
        "in place": lambda torch: torch.empty(3).normal_(1, 3),
    }
    for name, form in forms.items():
        drawn = []
        numbers = dispatcher.draws(lambda form=form, drawn=drawn: drawn.append(form(torch)), ())
        with drawing_from(Replay([numbers])):
            np.testing.assert_allclose(form(dynamic), drawn[0], rtol=1e-6, err_msg=name)
