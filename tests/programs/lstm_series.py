"""Two layers of an LSTM that go on a sine wave, by SGD with momentum and a falling rate."""

import numpy as np

import dynamic as torch
import dynamic.nn as nn
from dynamic.optim.lr_scheduler import StepLR
from tests.programs import start

wave = np.sin(np.linspace(0, 20, 200)).astype(np.float32)
windows = np.stack([wave[i : i + 12] for i in range(0, 160, 10)])


class Forecast(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(1, 12, num_layers=2, batch_first=True)
        self.head = nn.Linear(12, 1)

    def forward(self, x):
        output, (hidden, cell) = self.lstm(x)
        return self.head(output[:, -1, :]) + 0 * cell[-1].mean() + 0 * hidden.mean()


model = start(Forecast())
optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
scheduler = StepLR(optimizer, step_size=3, gamma=0.5)
x = torch.tensor(windows[:, :-1]).unsqueeze(-1)
y = torch.tensor(windows[:, -1:])
losses = []
for _ in range(7):
    optimizer.zero_grad()
    loss = nn.MSELoss()(model(x), y)
    loss.backward()
    optimizer.step()
    scheduler.step()
    losses += [loss.item(), optimizer.param_groups[0]["lr"]]
