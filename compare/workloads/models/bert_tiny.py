"""BERT of the size called tiny, predicting masked words.

Sentences are padded to the longest of their batch, so that the length of a batch varies as the data's does.
Source: Devlin et al., BERT, 2018 (arXiv:1810.04805), in a size of Turc et al., Well-Read Students Learn Better, 2019
(arXiv:1908.08962).
Licence: our own code, under that of the project.
Sizes: 2 layers, width 128, 2 heads as published, 1,000 words instead of 30,522, batches of 8.
"""

import torch
import torch.nn.functional as F
from torch import nn

from compare.workloads.models.attention import Attention

WORDS, WIDTH, HEADS, LAYERS, LONGEST = 1000, 128, 2, 2, 64
PAD, MASKED, NOT_ASKED = 0, 1, -100


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = Attention(WIDTH, HEADS)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)

    def forward(self, x, mask):
        x = self.norm1(x + self.attention(x, mask=mask))
        return self.norm2(x + self.down(F.gelu(self.up(x))))


class Bert(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, WIDTH, padding_idx=PAD), nn.Embedding(LONGEST, WIDTH)
        self.norm = nn.LayerNorm(WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.head = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.GELU(), nn.LayerNorm(WIDTH))
        self.bias = nn.Parameter(torch.zeros(WORDS))
        nn.init.normal_(self.words.weight, std=0.02)

    def forward(self, words):
        x = self.norm(self.words(words) + self.places(torch.arange(words.shape[1], device=words.device)))
        mask = (words != PAD)[:, None, None, :]
        for layer in self.layers:
            x = layer(x, mask)
        return self.head(x) @ self.words.weight.T + self.bias


def loss(model, words, asked):
    return F.cross_entropy(model(words).flatten(0, 1), asked.flatten(), ignore_index=NOT_ASKED)


def batches():
    torch.manual_seed(0)
    model = Bert()
    return [(model, *_batch(longest)) for longest in (24, 31, 18, 40, 24, 52)]


def _batch(longest, size=8):
    lengths = torch.randint(longest // 2, longest + 1, (size,))
    lengths[0] = longest
    sentence = torch.randint(2, WORDS, (size, longest))
    sentence[torch.arange(longest) >= lengths[:, None]] = PAD
    is_asked = (torch.rand(size, longest) < 0.15) & (sentence != PAD)
    is_asked[:, 0] = True
    return sentence.masked_fill(is_asked, MASKED), sentence.masked_fill(~is_asked, NOT_ASKED)
