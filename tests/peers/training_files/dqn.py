import torch
from torch import nn, optim


class DQN(nn.Module):
    def __init__(self, n_observations=4, n_actions=2):
        super().__init__()
        self.layer1 = nn.Linear(n_observations, 64)
        self.layer2 = nn.Linear(64, 64)
        self.layer3 = nn.Linear(64, n_actions)

    def forward(self, x):
        x = nn.functional.relu(self.layer1(x))
        x = nn.functional.relu(self.layer2(x))
        return self.layer3(x)


GAMMA, TAU = 0.99, 0.005
policy_net, target_net = DQN(), DQN()
target_net.load_state_dict(policy_net.state_dict())
optimizer = optim.AdamW(policy_net.parameters(), lr=1e-4, amsgrad=True)
criterion = nn.SmoothL1Loss()


def optimize_model(state, action, reward, next_state, done):
    state_action_values = policy_net(state).gather(1, action)
    with torch.no_grad():
        next_values = target_net(next_state).max(1).values
    expected = reward + GAMMA * next_values * (1 - done)
    loss = criterion(state_action_values, expected.unsqueeze(1))
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(policy_net.parameters(), 10.0)
    optimizer.step()
    for target_param, param in zip(target_net.parameters(), policy_net.parameters()):
        target_param.data.copy_(TAU * param.data + (1.0 - TAU) * target_param.data)
    return loss.item()


inputs = [
    (torch.randn(32, 4), torch.randint(0, 2, (32, 1)), torch.rand(32), torch.randn(32, 4), torch.zeros(32))
    for _ in range(2)
]
