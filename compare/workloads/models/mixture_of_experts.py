"""A transformer's layer of experts, of which each word asks two.

How many words an expert is given is decided by values, and differs from call to call.
Source: Shazeer et al., Outrageously Large Neural Networks, 2017 (arXiv:1701.06538).
Licence: our own code, under that of the project.
Sizes: 8 experts, width 64, batches of 4 texts of 32 words.
"""

import torch
import torch.nn.functional as F
from torch import nn

EXPERTS, ASKED, WIDTH, WORDS = 8, 2, 64, 300


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(WIDTH, EXPERTS, bias=False)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH)) for _ in range(EXPERTS)
        )

    def forward(self, x):
        weights, chosen = torch.softmax(self.gate(x), dim=-1).topk(ASKED, dim=-1)
        weights = weights / weights.sum(-1, keepdim=True)
        out = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            word, place = torch.where(chosen == number)
            if len(word):
                out = out.index_add(0, word, expert(x[word]) * weights[word, place, None])
        return out


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.head = nn.Embedding(WORDS, WIDTH), nn.Linear(WIDTH, WORDS)
        self.norm, self.experts = nn.LayerNorm(WIDTH), Experts()

    def forward(self, words):
        x = self.words(words).flatten(0, 1)
        return self.head(x + self.experts(self.norm(x)))


def loss(model, text):
    return F.cross_entropy(model(text[:, :-1]), text[:, 1:].flatten())


def batches():
    torch.manual_seed(0)
    model = Model()
    return [(model, torch.randint(0, WORDS, (4, 33))) for _ in range(4)]
