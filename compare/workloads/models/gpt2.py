"""GPT-2 of four layers, predicting the next word.

Layers normalise first, and see only what is before; the embedding is the last layer as well.
Source: Radford et al., Language Models are Unsupervised Multitask Learners, 2019.
Licence: our own code, under that of the project.
Sizes: 4 layers of 12, width 128, 4 heads, 1,000 words instead of 50,257, 4 texts of 64 words.
"""

import torch
import torch.nn.functional as F
from torch import nn

from compare.workloads.models.attention import Attention

WORDS, WIDTH, HEADS, LAYERS, LONGEST = 1000, 128, 4, 4, 64


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention = Attention(WIDTH, HEADS)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        x = x + self.attention(self.norm1(x), causal=True)
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(LONGEST, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)
        for weight in (self.words.weight, self.places.weight):
            nn.init.normal_(weight, std=0.02)

    def forward(self, words):
        x = self.words(words) + self.places(torch.arange(words.shape[1], device=words.device))
        for layer in self.layers:
            x = layer(x)
        return self.norm(x) @ self.words.weight.T


def loss(model, text):
    return F.cross_entropy(model(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten())


def batches():
    torch.manual_seed(0)
    model = GPT()
    return [(model, torch.randint(0, WORDS, (4, LONGEST + 1))) for _ in range(3)]
