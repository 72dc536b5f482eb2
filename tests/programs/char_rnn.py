"""A character RNN whose state is passed on from one piece of text to the next, detached."""

import numpy as np

import dynamic as torch
from dynamic import nn, optim
from tests.programs import start

text = "the quick brown fox jumps over the lazy dog and runs away from the quick brown dog " * 2
vocabulary = sorted(set(text))
ids = np.array([vocabulary.index(c) for c in text])


class CharRNN(nn.Module):
    def __init__(self, size, hidden):
        super().__init__()
        self.embed = nn.Embedding(size, 8)
        self.rnn = nn.RNN(8, hidden, batch_first=True)
        self.decode = nn.Linear(hidden, size)

    def forward(self, x, state=None):
        output, state = self.rnn(self.embed(x), state)
        return self.decode(output), state


model = start(CharRNN(len(vocabulary), 16))
criterion = nn.CrossEntropyLoss()
optimizer = optim.Adam(model.parameters(), lr=0.02)
state, losses = None, []
for i in range(0, 120, 20):
    x = torch.tensor(ids[i : i + 20].reshape(2, 10))
    y = torch.tensor(ids[i + 1 : i + 21])
    logits, state = model(x, state)
    state = state.detach()
    loss = criterion(logits.view(-1, len(vocabulary)), y)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    losses.append(loss.item())
