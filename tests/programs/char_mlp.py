"""A model of characters with an embedding and one hidden layer, batch normalisation by hand."""

import numpy as np

import dynamic as torch
import dynamic.nn.functional as F

text = "the quick brown fox jumps over the lazy dog and runs away from the slow cat "
chars = sorted(set(text))
stoi = {c: i for i, c in enumerate(chars)}
block = 3
data = [stoi[c] for c in text]
X = torch.tensor([data[i : i + block] for i in range(len(data) - block)])
Y = torch.tensor(data[block:])
rng = np.random.default_rng(4)


def normal(*shape):
    return torch.tensor(rng.standard_normal(shape), dtype=torch.float32)


C = normal(len(chars), 6)
W1 = normal(block * 6, 24) * (5 / 3) / ((block * 6) ** 0.5)
W2 = normal(24, len(chars)) * 0.1
b2 = torch.zeros(len(chars))
bngain, bnbias = torch.ones((1, 24)), torch.zeros((1, 24))
parameters = [C, W1, W2, b2, bngain, bnbias]
for p in parameters:
    p.requires_grad = True
losses = []
for i in range(15):
    emb = C[X]
    hpreact = emb.view(emb.shape[0], -1) @ W1
    bnmeani = hpreact.mean(0, keepdim=True)
    bnstdi = hpreact.std(0, keepdim=True)
    h = torch.tanh(bngain * (hpreact - bnmeani) / bnstdi + bnbias)
    loss = F.cross_entropy(h @ W2 + b2, Y)
    for p in parameters:
        p.grad = None
    loss.backward()
    for p in parameters:
        p.data += -0.3 * p.grad
    losses.append(loss.item())
