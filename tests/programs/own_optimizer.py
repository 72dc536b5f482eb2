"""An optimizer of the program's own: Adam by hand, over groups with names, with a closure, a schedule and its state."""

import math

import numpy as np

import dynamic as torch
import dynamic.nn as nn
from dynamic.optim.lr_scheduler import StepLR
from dynamic.optim.optimizer import Optimizer
from tests.programs import start


class OwnAdam(Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, clip=None):
        if lr < 0:
            raise ValueError(f"Invalid learning rate: {lr}")
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "clip": clip})

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:
            group.setdefault("clip", None)

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            low, high = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                grad = p.grad.data
                if group["clip"] is not None:
                    grad = grad.clamp(-group["clip"], group["clip"])
                state = self.state[p]
                if len(state) == 0:
                    state["step"] = 0
                    state["exp_avg"] = torch.zeros_like(p.data)
                    state["exp_avg_sq"] = torch.zeros_like(p.data)
                state["step"] += 1
                state["exp_avg"].mul_(low).add_(grad, alpha=1 - low)
                state["exp_avg_sq"].mul_(high).addcmul_(grad, grad, value=1 - high)
                size = group["lr"] * math.sqrt(1 - high ** state["step"]) / (1 - low ** state["step"])
                p.data.addcdiv_(state["exp_avg"], state["exp_avg_sq"].sqrt().add_(group["eps"]), value=-size)
        return loss


rng = np.random.default_rng(3)
x, y = torch.tensor(rng.standard_normal((32, 5))), torch.tensor(rng.standard_normal((32, 1)))
body, head = start(nn.Linear(5, 8).double(), 1), start(nn.Linear(8, 1).double(), 2)


def made():
    return OwnAdam(
        [{"params": body.parameters(), "name": "body"}, {"params": head.parameters(), "name": "head", "clip": 0.1}],
        lr=0.05,
    )


optimizer = made()
schedule = StepLR(optimizer, step_size=5, gamma=0.5)


def closure():
    optimizer.zero_grad()
    loss = ((head(torch.tanh(body(x))) - y) ** 2).mean()
    loss.backward()
    return loss


losses = []
for epoch in range(12):
    losses.append(optimizer.step(closure).item())
    schedule.step()
    if epoch == 6:
        saved, optimizer = optimizer.state_dict(), made()
        optimizer.load_state_dict(saved)
        schedule.optimizer = optimizer
losses += [group["lr"] for group in optimizer.param_groups]
assert [group["name"] for group in optimizer.param_groups] == ["body", "head"]
