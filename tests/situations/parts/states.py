"""Rows of state that a call leaves and the next look must not find: the user's file, the function, what is right."""

from __future__ import annotations

from collections.abc import Iterator

HEAD = """
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
"""
BATCHES = "inputs = [(torch.rand(8, 16) * 255, torch.randint(0, 4, (8,))) for _ in range(2)]\n"
NET = "net = nn.Sequential(nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 4))\n"
PARTED = "def loss(x, y):\n    return F.cross_entropy(net(x), y)\n"

FILES = {
    "an argument changed in place": NET + "def loss(x, y):\n    x /= 255\n    return F.cross_entropy(net(x), y)\n",
    "gradients by autograd.grad": NET
    + """
opt = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9)
def step(x, y):
    loss = F.cross_entropy(net(x / 255), y)
    for weight, gradient in zip(net.parameters(), torch.autograd.grad(loss, list(net.parameters()))):
        weight.grad = gradient
    opt.step()
    return loss.detach()
""",
    "a module called backward": """
class Both(nn.Module):
    def __init__(self):
        super().__init__()
        self.ahead, self.backward = nn.Linear(16, 4), nn.Linear(16, 4)
    def forward(self, x):
        return self.ahead(x) + self.backward(x.flip(1))
net = Both()
"""
    + PARTED,
    "a memory bank and counters of Python": """
from collections import deque
calls, turns = 0, iter([1.0, 2.0, 3.0, 4.0])
class Bank(nn.Module):
    def __init__(self):
        super().__init__()
        self.key, self.bank, self.ages = nn.Linear(16, 4), deque(maxlen=3), {}
    def forward(self, x):
        key = self.key(x)
        self.bank.append(key.detach().mean(0))
        self.ages[len(self.ages)] = len(self.bank)
        return key - torch.stack(list(self.bank)).mean(0) * len(self.ages)
net = Bank()
def loss(x, y):
    global calls
    calls += 1
    return F.cross_entropy(net(x / 255), y) * calls * next(turns)
""",
    "averages of weights that a class keeps": NET
    + """
opt = torch.optim.AdamW(net.parameters(), 1e-3)
class Averages:
    def __init__(self):
        self.of, self.steps = {name: p.detach().clone() for name, p in net.named_parameters()}, 0
    def update(self):
        self.steps += 1
        for name, p in net.named_parameters():
            self.of[name].mul_(0.9).add_(p.detach(), alpha=0.1 / self.steps)
averages = Averages()
def step(x, y):
    opt.zero_grad()
    F.cross_entropy(net(x / 255), y).backward()
    opt.step()
    averages.update()
""",
    "an optimizer that only hooks hold": NET
    + """
def attach():
    for p in net.parameters():
        opt = torch.optim.Adam([p], 1e-3)
        def update(p, opt=opt):
            opt.step()
            opt.zero_grad()
        p.register_post_accumulate_grad_hook(update)
attach()
def step(x, y):
    loss = F.cross_entropy(net(x / 255), y)
    loss.backward()
    return loss.detach()
""",
    "a codebook whose parameters are replaced": """
class Quantizer(nn.Module):
    def __init__(self):
        super().__init__()
        self.codes, self.sums = nn.Embedding(8, 16), nn.Parameter(torch.randn(8, 16))
        self.register_buffer("sizes", torch.ones(8))
    def forward(self, z):
        chosen = F.one_hot(torch.cdist(z, self.codes.weight).argmin(1), 8).float()
        self.sizes = 0.9 * self.sizes + 0.1 * chosen.sum(0)
        self.sums = nn.Parameter(0.9 * self.sums + 0.1 * chosen.t() @ z)
        self.codes.weight = nn.Parameter(self.sums / self.sizes.unsqueeze(1))
        return z + (chosen @ self.codes.weight - z).detach()
first, codes, last = nn.Linear(16, 16), Quantizer(), nn.Linear(16, 4)
opt = torch.optim.Adam([*first.parameters(), *last.parameters()], 1e-3)
def step(x, y):
    opt.zero_grad()
    loss = F.cross_entropy(last(codes(first(x / 255))), y)
    loss.backward()
    opt.step()
    return loss.item()
""",
    "an optimizer of the user's own": NET
    + """
class Lion(torch.optim.Optimizer):
    def __init__(self, params):
        super().__init__(params, dict(lr=1e-3))
    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                if not state:
                    state["mean"] = torch.zeros_like(p)
                p.add_((0.9 * state["mean"] + 0.1 * p.grad).sign(), alpha=-group["lr"])
                state["mean"].mul_(0.99).add_(p.grad, alpha=0.01)
opt = Lion(net.parameters())
def step(x, y):
    opt.zero_grad()
    F.cross_entropy(net(x / 255), y).backward()
    opt.step()
""",
    "arrays of NumPy as inputs": NET
    + """
import numpy as np
inputs = [(np.random.default_rng(i).random((8, 16), np.float32), np.arange(8) % 4) for i in range(2)]
def loss(x, y):
    x = np.where(x > 0.5, x, 0).astype("float32")
    return F.cross_entropy(net(torch.from_numpy(x)), torch.LongTensor(y))
""",
}
GENERATOR = (
    NET + "rates = (1 / (i + 1) for i in range(100))\n" + "def loss(x, y):\n    return net(x).mean() * next(rates)\n"
)
BOTH = ("--engines", "torch,graphduel", "--modes", "eager,dynamic")
"""Where both engines are asked: in these rows no graph can be made, and nothing else is lost."""
BESIDE = ("a codebook whose parameters are replaced", "arrays of NumPy as inputs")
GRAPHS = ("--engines", "torch,graphduel", "--modes", "eager,dynamic,static-exact,static-converted")
"""Where our engine makes a graph of all that PyTorch runs: of an optimizer of the user's own."""


def files() -> Iterator[tuple[str, str, str]]:
    """What a row is called, its file, and its function."""
    for name, text in FILES.items():
        yield name, HEAD + BATCHES + text, "step" if "def step" in text else "loss"
