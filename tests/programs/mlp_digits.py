"""A classifier of synthetic digits, by AdamW over a DataLoader."""

import numpy as np

import dynamic as torch
import dynamic.nn as nn
import dynamic.nn.functional as F
from dynamic.utils.data import DataLoader, TensorDataset
from tests.programs import start

rng = np.random.default_rng(0)
centres = rng.standard_normal((10, 64))
labels = rng.integers(0, 10, 96)
pixels = (centres[labels] + 0.5 * rng.standard_normal((96, 64))).astype(np.float32)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(64, 32)
        self.fc2 = nn.Linear(32, 32)
        self.out = nn.Linear(32, 10)
        self.drop = nn.Dropout(0.0)

    def forward(self, x):
        x = F.relu(self.fc1(x))
        x = self.drop(F.relu(self.fc2(x)))
        return self.out(x)


model = start(Net())
loader = DataLoader(TensorDataset(torch.tensor(pixels), torch.tensor(labels)), batch_size=32, shuffle=False)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
losses = []
for _ in range(4):
    model.train()
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
model.eval()
with torch.no_grad():
    guesses = torch.argmax(model(torch.tensor(pixels)), dim=1)
    losses.append((guesses == torch.tensor(labels)).float().mean().item())
