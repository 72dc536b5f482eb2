"""Skip-grams with negative samples: two embeddings, and a loss of their products."""

import numpy as np

import dynamic as torch
import dynamic.nn as nn
import dynamic.nn.functional as F
from tests.programs import start

rng = np.random.default_rng(0)


class SkipGram(nn.Module):
    def __init__(self, size, width):
        super().__init__()
        self.centre = nn.Embedding(size, width)
        self.context = nn.Embedding(size, width)

    def forward(self, centre, positive, negative):
        v = self.centre(centre)
        good = (v * self.context(positive)).sum(dim=1)
        bad = (self.context(negative) * v.unsqueeze(1)).sum(dim=2)
        return -(F.logsigmoid(good) + F.logsigmoid(-bad).sum(dim=1)).mean()


model = start(SkipGram(30, 8))
optimizer = torch.optim.Adagrad(model.parameters(), lr=0.3)
losses = []
for _ in range(8):
    pairs = [torch.tensor(rng.integers(0, 30, shape)) for shape in (16, 16, (16, 5))]
    loss = model(*pairs)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
