"""Deep Q-learning: a whole training step against a target network that follows slowly.

Source: Mnih et al., Human-level control through deep reinforcement learning, Nature 518, 2015; van Hasselt et al., Deep
Reinforcement Learning with Double Q-learning, 2015 (arXiv:1509.06461).
Licence: our own code, under that of the project.
Sizes: 8 numbers of state, 4 actions, two hidden layers of 128 units, batches of 128.
"""

import torch
import torch.nn.functional as F
from torch import nn

STATES, ACTIONS, DISCOUNT, PACE = 8, 4, 0.99, 0.005


def network():
    return nn.Sequential(nn.Linear(STATES, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, ACTIONS))


torch.manual_seed(0)
values, target = network(), network()
target.load_state_dict(values.state_dict())
optimizer = torch.optim.RMSprop(values.parameters(), lr=1e-4)


def step(state, action, reward, after, is_over):
    with torch.no_grad():
        best = values(after).argmax(1, keepdim=True)
        expected = reward + DISCOUNT * (1 - is_over) * target(after).gather(1, best)[:, 0]
    optimizer.zero_grad()
    loss = F.smooth_l1_loss(values(state).gather(1, action)[:, 0], expected)
    loss.backward()
    nn.utils.clip_grad_value_(values.parameters(), 100)
    optimizer.step()
    with torch.no_grad():
        for slow, fast in zip(target.parameters(), values.parameters(), strict=True):
            slow.lerp_(fast, PACE)
    return loss.detach()


def batches(size=128):
    torch.manual_seed(1)
    return [
        (
            torch.randn(size, STATES), torch.randint(0, ACTIONS, (size, 1)), torch.randn(size),
            torch.randn(size, STATES), (torch.rand(size) < 0.1).float(),
        )
        for _ in range(3)
    ]  # fmt: skip
