"""REINFORCE on a bandit, the actions drawn beforehand: log_prob, entropy, returns as a running sum."""

import numpy as np

import dynamic as torch
from dynamic.distributions import Categorical

rng = np.random.default_rng(11)
logits = torch.zeros(4, dtype=torch.float64, requires_grad=True)
actions = torch.tensor(rng.integers(0, 4, (15, 16)))
rewards = torch.tensor([0.1, 0.9, 0.3, 0.5], dtype=torch.float64)
losses = []
for chosen in actions:
    policy = Categorical(logits=logits)
    gained = rewards[chosen]
    returns = torch.flip(torch.cumsum(torch.flip(gained, dims=(0,)), dim=0), dims=(0,))
    advantage = (returns - returns.mean()) / (returns.std() + 1e-8)
    loss = -(policy.log_prob(chosen) * advantage).mean() - 0.01 * policy.entropy()
    (g,) = torch.autograd.grad(loss, logits)
    logits = (logits - 0.5 * g).detach().requires_grad_(True)
    losses.append(loss.item())
losses += logits.softmax(-1).tolist()
