"""What people bring to PyTorch, run by our engine: a function each, its calls beside it in `calls_NAME` or in `inputs`.

The calls are PyTorch's in both: `import torch` is our engine where that stands in. Nothing here is imported by a test.
"""

from collections import OrderedDict, UserDict, deque
from dataclasses import InitVar, dataclass, field
from typing import NamedTuple

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812  (as everybody calls it)
from torch.optim import lr_scheduler
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)
X, Y = torch.randn(12, 8), torch.randn(12, 4)
PAIRS = [*zip(X.split(4), Y.split(4), strict=True)]
inputs = PAIRS


def net():
    return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))


# Batches and outputs


class Named(NamedTuple):
    x: torch.Tensor
    y: torch.Tensor


@dataclass(frozen=True)
class Frozen:
    x: torch.Tensor
    y: torch.Tensor
    weight: float = 1.0


@dataclass
class Derived:
    x: torch.Tensor
    y: torch.Tensor
    scale: InitVar[float]
    scaled: torch.Tensor = field(init=False)

    def __post_init__(self, scale):
        self.scaled = self.x * scale


class Encoding(UserDict):  # as the batches of transformers' tokenizers
    def __getattr__(self, name):
        try:
            return self.data[name]
        except KeyError:
            raise AttributeError(name) from None


class Output(OrderedDict):  # as the outputs of transformers' models
    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


@dataclass
class Outcome:
    loss: torch.Tensor
    name: str
    more: tuple


model = net()
calls_named = [Named(*pair) for pair in PAIRS]
calls_frozen = [Frozen(*pair, weight=0.5) for pair in PAIRS]
calls_derived = [Derived(*pair, scale=2.0) for pair in PAIRS]
calls_encoding = [Encoding({"x": a, "y": b}) for a, b in PAIRS]
calls_nested = [{"inputs": {"x": a, "more": [a * 2]}, "y": b} for a, b in PAIRS]
calls_listed = [([Frozen(a[:2], b[:2]), Frozen(a[2:], b[2:])],) for a, b in PAIRS]
calls_unlike = [([Frozen(a[: k + 1], b[: k + 1])] * (k + 1),) for k, (a, b) in enumerate(PAIRS)]


def named(batch):
    return Named(F.mse_loss(model(batch.x), batch.y), batch.x)


def frozen(batch):
    return Outcome(F.mse_loss(model(batch.x), batch.y) * batch.weight, "mine", (batch.x, None))


def derived(batch):
    return {"loss": F.mse_loss(model(batch.scaled), batch.y), "text": "mine"}


def encoding(batch):
    return Encoding({"loss": F.mse_loss(model(batch["x"]), batch.y)})


def nested(batch):
    x = batch["inputs"]["x"] + batch["inputs"]["more"][0]
    return Output(loss=F.mse_loss(model(x), batch["y"]), x=x)


def listed(batches):
    return sum(F.mse_loss(model(batch.x), batch.y) for batch in batches), None


unlike, calls_inference = listed, calls_encoding


def inference(batch):
    with torch.no_grad():
        return Output(prediction=model(batch.x), kept=[Named(batch["x"], batch["y"])], title="mine")


def plain_tensor(w, x):
    return (w * x).tanh().sum()


calls_plain_tensor = [(X[:4], Y[:4, :1])]


def changed_argument(x, y):
    x /= 2
    return F.mse_loss(model(x), y)


# State


class Stateful(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.kind, self.inner, self.head, self.calls = kind, nn.Linear(8, 16), nn.Linear(16, 4), 0
        self.norm = nn.BatchNorm1d(16, momentum=None if kind == "cumulative" else 0.1)
        self.drop, self.bank, self.kept = nn.Dropout(0.5), deque(maxlen=2), {"mean": torch.zeros(16)}
        self.teacher = nn.Linear(8, 16).requires_grad_(False)
        self.register_buffer("slots", torch.zeros(16))
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))
        self.register_buffer("seen", torch.zeros(4, dtype=torch.bool))

    def forward(self, x):
        kind, h = self.kind, torch.tanh(self.inner(x))
        if kind == "assigned":
            self.slots = 0.5 * self.slots + h.detach().mean(0)
            h = h + self.slots
        elif kind == "in_place":
            with torch.no_grad():
                self.slots.mul_(0.5).add_(h.detach().mean(0))
            h = h + self.slots
        elif kind == "counted":
            self.count += 1
            self.seen[1] = True
            h = h + 0.1 * self.count.to(h.dtype) + self.seen.sum().to(h.dtype)
        elif kind == "averaged":
            with torch.no_grad():
                for kept, now in zip(self.teacher.parameters(), self.inner.parameters(), strict=True):
                    kept.mul_(0.9).add_(0.1 * now)
            h = h * self.teacher(x)
        elif kind in ("running", "cumulative"):
            h = self.norm(h)
        elif kind == "python":
            self.calls += 1
            self.bank.append(h.detach().mean(0))
            self.kept["mean"].mul_(0.9).add_(h.detach().mean(0))
            h = h + sum(self.bank) * self.calls + self.kept["mean"]
        elif kind == "dropped":
            h = self.drop(h) ** 2
        return h


KINDS = ("assigned", "in_place", "counted", "averaged", "running", "cumulative", "python", "dropped")


def of_kind(kind, checkpointed=False):
    """A loss, and a step that accumulates gradients of two halves, of a model with that state."""
    block = Stateful(kind)
    optimizer = torch.optim.AdamW(block.parameters(), lr=1e-2)

    def loss(x, y):
        h = checkpoint(block, x, use_reentrant=False) if checkpointed else block(x)
        return F.mse_loss(block.head(h), y)

    def step(x, y):
        optimizer.zero_grad()
        for part, target in zip(x.chunk(2), y.chunk(2), strict=True):
            (loss(part, target) / 2).backward()
        optimizer.step()
        return {"loss": loss(x, y).detach()}

    return loss, step


assigned_loss, assigned_step = of_kind("assigned")
in_place_loss, in_place_step = of_kind("in_place")
counted_loss, counted_step = of_kind("counted")
averaged_loss, averaged_step = of_kind("averaged")
running_loss, running_step = of_kind("running")
cumulative_loss, cumulative_step = of_kind("cumulative")
python_loss, python_step = of_kind("python")
dropped_loss, dropped_step = of_kind("dropped")
_, assigned_again = of_kind("assigned", checkpointed=True)
_, in_place_again = of_kind("in_place", checkpointed=True)
_, counted_again = of_kind("counted", checkpointed=True)
_, averaged_again = of_kind("averaged", checkpointed=True)
_, running_again = of_kind("running", checkpointed=True)
_, dropped_again = of_kind("dropped", checkpointed=True)


# Schedules, several optimizers, state that is an argument


def scheduled(make):
    part = net()
    optimizer = torch.optim.SGD(part.parameters(), lr=0.1, momentum=0.9)
    schedule = make(optimizer)

    def step(x, y):
        optimizer.zero_grad()
        loss = F.mse_loss(part(x), y)
        loss.backward()
        optimizer.step()
        schedule.step()
        return loss.item()

    return step


one_cycle = scheduled(lambda optimizer: lr_scheduler.OneCycleLR(optimizer, max_lr=1e-2, total_steps=4))
by_lambda = scheduled(lambda optimizer: lr_scheduler.LambdaLR(optimizer, lambda epoch: 0.9**epoch))
restarts = scheduled(lambda optimizer: lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=2))
cosine = scheduled(lambda optimizer: lr_scheduler.CosineAnnealingLR(optimizer, T_max=4))

maker, critic = net(), nn.Linear(4, 1)
of_maker = torch.optim.Adam(maker.parameters(), lr=1e-3)
of_critic = torch.optim.RMSprop(critic.parameters(), lr=1e-3)


def two_optimizers(x, y):
    of_critic.zero_grad()
    (critic(maker(x).detach()).mean() - critic(y).mean()).backward()
    of_critic.step()
    of_maker.zero_grad()
    loss = -critic(maker(x)).mean()
    loss.backward()
    of_maker.step()


@dataclass
class TrainState:
    model: nn.Module
    optimizer: torch.optim.Optimizer


trained = net()
held = TrainState(trained, torch.optim.AdamW(trained.parameters(), lr=1e-3))
calls_state_argument = [(held, Named(*pair)) for pair in PAIRS]


def state_argument(state, batch):
    state.optimizer.zero_grad()
    loss = F.mse_loss(state.model(batch.x), batch.y)
    loss.backward()
    nn.utils.clip_grad_norm_(state.model.parameters(), 0.1)
    state.optimizer.step()
    return Outcome(loss.detach(), "mine", ())


scale, unread = nn.Parameter(torch.ones(8)), nn.Parameter(torch.ones(8))
of_both = torch.optim.Adam([unread, scale], lr=1e-2)


def parameter_unread(x, y):
    of_both.zero_grad()
    loss = F.mse_loss((scale * x)[:, :4], y)
    loss.backward()
    of_both.step()
    return loss


def module_in_a_default(x, y, net=net()):  # noqa: B008  (the subject)
    return F.mse_loss(net(x), y)


by_default = net()


def step_with_defaults(x, y, net=by_default, optimizer=torch.optim.Adam(by_default.parameters())):  # noqa: B008
    optimizer.zero_grad()
    loss = F.mse_loss(net(x), y)
    loss.backward()
    optimizer.step()
    return loss
