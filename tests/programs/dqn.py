"""A step of deep Q-learning: a target network, Q-values picked by action, the Huber loss, a soft update."""

import copy

import numpy as np

import dynamic as torch
import dynamic.nn as nn
from tests.programs import start

rng = np.random.default_rng(0)
policy = start(nn.Sequential(nn.Linear(4, 24), nn.ReLU(), nn.Linear(24, 24), nn.ReLU(), nn.Linear(24, 2)))
target = copy.deepcopy(policy)
target.requires_grad_(False)
optimizer = torch.optim.AdamW(policy.parameters(), lr=1e-2, amsgrad=True)
criterion = nn.SmoothL1Loss()
losses = []
for _ in range(6):
    states, following = (torch.tensor(rng.standard_normal((16, 4)).astype(np.float32)) for _ in range(2))
    actions = rng.integers(0, 2, 16)
    rewards = torch.tensor(rng.standard_normal(16).astype(np.float32))
    chosen = policy(states)[torch.arange(16), torch.tensor(actions)]
    with torch.no_grad():
        values = target(following)
        best = torch.maximum(values[:, 0], values[:, 1])
    loss = criterion(chosen, rewards + 0.99 * best)
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_value_(policy.parameters(), 100)
    optimizer.step()
    with torch.no_grad():
        for mine, theirs in zip(target.parameters(), policy.parameters(), strict=True):
            mine.mul_(0.9).add_(theirs, alpha=0.1)
    losses += [loss.item(), target[0].weight.sum().item()]
