"""A GRU encoder, and a decoder of cells with attention, that turn sequences around by teacher forcing."""

import numpy as np

import dynamic as torch
import dynamic.nn as nn
import dynamic.nn.functional as F
from tests.programs import start


class Encoder(nn.Module):
    def __init__(self, size, width):
        super().__init__()
        self.embedding = nn.Embedding(size, width)
        self.gru = nn.GRU(width, width, bidirectional=True)

    def forward(self, x):
        return self.gru(self.embedding(x))


class Decoder(nn.Module):
    def __init__(self, size, width):
        super().__init__()
        self.embedding = nn.Embedding(size, width)
        self.cell = nn.GRUCell(3 * width, 2 * width)
        self.out = nn.Linear(2 * width, size)

    def forward(self, x, state, memory):
        scores = (memory * state).sum(-1)
        context = (F.softmax(scores, dim=0).unsqueeze(-1) * memory).sum(0)
        state = self.cell(torch.cat([self.embedding(x), context], dim=1), state)
        return F.log_softmax(self.out(state), dim=1), state


rng = np.random.default_rng(0)
encoder, decoder = start(Encoder(9, 6), 1), start(Decoder(9, 6), 2)
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=2e-2)
losses = []
for _ in range(5):
    batch = rng.integers(1, 9, (5, 4))
    memory, hidden = encoder(torch.tensor(batch))
    state = torch.cat([hidden[0], hidden[1]], dim=1)
    previous, loss = torch.zeros(4, dtype=torch.int64), 0.0
    for token in batch[::-1]:
        log_p, state = decoder(previous, state, memory)
        previous = torch.tensor(token)
        loss = loss + F.nll_loss(log_p, previous)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item() / 5)
