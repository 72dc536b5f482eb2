"""DLRM: a recommender of tables and small networks.

Bags of indices of varying length are summed, and all pairs of vectors are multiplied.
Source: Naumov et al., Deep Learning Recommendation Model, 2019 (arXiv:1906.00091).
Licence: our own code, under that of the project.
Sizes: 8 tables of 2,000 rows of 16 numbers, batches of 64, 1 to 4 indices a bag.
"""

from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import nn

TABLES, ROWS, WIDTH, DENSE = 8, 2000, 16, 13


def network(*widths):
    layers = []
    for width, out in pairwise(widths):
        layers += [nn.Linear(width, out), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class Recommender(nn.Module):
    def __init__(self):
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(ROWS, WIDTH, mode="sum") for _ in range(TABLES))
        self.bottom = network(DENSE, 64, WIDTH)
        self.top = network(WIDTH + (TABLES + 1) * TABLES // 2, 64, 32, 1)

    def forward(self, dense, indices, offsets):
        x = self.bottom(dense)
        vectors = [x, *(table(i, o) for table, i, o in zip(self.tables, indices, offsets, strict=True))]
        stacked = torch.stack(vectors, dim=1)
        products = stacked @ stacked.transpose(1, 2)
        row, column = torch.tril_indices(TABLES + 1, TABLES + 1, -1, device=dense.device)
        return self.top(torch.cat([x, products[:, row, column]], dim=1))[:, 0]


def loss(model, dense, indices, offsets, clicked):
    return F.binary_cross_entropy_with_logits(model(dense, indices, offsets), clicked)


def batches():
    torch.manual_seed(0)
    model = Recommender()
    return [(model, *_batch(64)) for _ in range(4)]


def _batch(size):
    indices, offsets = [], []
    for _ in range(TABLES):
        lengths = torch.randint(1, 5, (size,))
        offsets.append(lengths.cumsum(0) - lengths)
        indices.append(torch.randint(0, ROWS, (int(lengths.sum()),)))
    return torch.randn(size, DENSE), indices, offsets, (torch.rand(size) < 0.3).float()
