"""T5 of the size called tiny: an encoder and a decoder, with biases by relative place.

Both lengths of a pair vary. Layers normalise by the root mean square, and have no biases.
Source: Raffel et al., Exploring the Limits of Transfer Learning, 2019 (arXiv:1910.10683).
Licence: our own code, under that of the project.
Sizes: 2 + 2 layers, width 64, 4 heads, 500 words, 4 pairs a batch.
"""

import math

import torch
import torch.nn.functional as F
from torch import nn

from compare.workloads.models.attention import Attention

WORDS, WIDTH, HEADS, LAYERS, BUCKETS, FARTHEST = 500, 64, 4, 2, 16, 64


class RootMeanSquareNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x):
        return self.scale * x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6)


class PlaceBias(nn.Module):
    """A bias for each head and each bucket of distances: single ones near by, logarithmic farther away."""

    def __init__(self, both_ways):
        super().__init__()
        self.both_ways, self.table = both_ways, nn.Embedding(BUCKETS, HEADS)

    def forward(self, size):
        places = torch.arange(size, device=self.table.weight.device)
        distance = places[:, None] - places[None, :]  # back from the query to the key
        buckets, first = BUCKETS, 0
        if self.both_ways:
            buckets = BUCKETS // 2
            first, distance = (distance < 0).long() * buckets, distance.abs()
        distance, near = distance.clamp(min=0), buckets // 2
        far = near + (distance.clamp(min=1) / near).log() / math.log(FARTHEST / near) * (buckets - near)
        place = torch.where(distance < near, distance, far.long().clamp(max=buckets - 1))
        return self.table(first + place).permute(2, 0, 1)[None]


class Layer(nn.Module):
    def __init__(self, crosses):
        super().__init__()
        self.norms = nn.ModuleList(RootMeanSquareNorm() for _ in range(3))
        self.own = Attention(WIDTH, HEADS, bias=False)
        self.cross = Attention(WIDTH, HEADS, bias=False) if crosses else None
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH, bias=False), nn.Linear(4 * WIDTH, WIDTH, bias=False)

    def forward(self, x, bias, memory=None):
        x = x + self.own(self.norms[0](x), mask=bias)
        if self.cross is not None:
            x = x + self.cross(self.norms[1](x), memory)
        return x + self.down(F.relu(self.up(self.norms[2](x))))


class T5(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.encoder = nn.ModuleList(Layer(crosses=False) for _ in range(LAYERS))
        self.decoder = nn.ModuleList(Layer(crosses=True) for _ in range(LAYERS))
        self.encoder_bias, self.decoder_bias = PlaceBias(both_ways=True), PlaceBias(both_ways=False)
        self.norm, self.head = RootMeanSquareNorm(), nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, source, target):
        memory, bias = self.words(source), self.encoder_bias(source.shape[1])
        for layer in self.encoder:
            memory = layer(memory, bias)
        size = target.shape[1]
        later = torch.full((size, size), -1e9, device=target.device).triu(1)
        x, bias = self.words(target), self.decoder_bias(size) + later
        for layer in self.decoder:
            x = layer(x, bias, memory)
        return self.head(self.norm(x))


def loss(model, source, target):
    return F.cross_entropy(model(source, target[:, :-1]).flatten(0, 1), target[:, 1:].flatten())


def batches():
    torch.manual_seed(0)
    model = T5()
    pairs = ((20, 16), (27, 22), (14, 11), (20, 18), (33, 27), (24, 16))
    return [(model, torch.randint(0, WORDS, (4, s)), torch.randint(0, WORDS, (4, t))) for s, t in pairs]
