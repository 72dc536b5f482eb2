"""A Tree-LSTM: recursion over the parse of a sentence, another tree in each call.

Source: Tai et al., Improved Semantic Representations From Tree-Structured LSTMs, 2015 (arXiv:1503.00075).
Licence: our own code, under that of the project.
Sizes: binary trees of 4 to 10 words, width 64, 300 words.
"""

import random

import torch
import torch.nn.functional as F
from torch import nn

WORDS, WIDTH = 300, 64


class TreeLSTM(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.leaf, self.inner = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(2 * WIDTH, 5 * WIDTH)
        self.head = nn.Linear(WIDTH, 5)

    def encoded(self, tree):
        if isinstance(tree, torch.Tensor):
            i, o, update = self.leaf(self.words(tree)).chunk(3)
            cell = torch.sigmoid(i) * torch.tanh(update)
            return torch.sigmoid(o) * torch.tanh(cell), cell
        (left, left_cell), (right, right_cell) = (self.encoded(part) for part in tree)
        i, o, update, f, g = self.inner(torch.cat([left, right])).chunk(5)
        cell = torch.sigmoid(i) * torch.tanh(update) + torch.sigmoid(f) * left_cell + torch.sigmoid(g) * right_cell
        return torch.sigmoid(o) * torch.tanh(cell), cell

    def forward(self, tree):
        return self.head(self.encoded(tree)[0])


def loss(model, tree, label):
    return F.cross_entropy(model(tree), label)


def batches():
    torch.manual_seed(0)
    model, draw = TreeLSTM(), random.Random(0)
    return [(model, _tree(draw, words), torch.tensor(words % 5)) for words in (7, 5, 10, 7, 4, 8)]


def _tree(draw, words):
    if words == 1:
        return torch.tensor(draw.randrange(WORDS))
    left = draw.randint(1, words - 1)
    return _tree(draw, left), _tree(draw, words - left)
