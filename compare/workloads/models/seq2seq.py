"""Translation by an encoder and a decoder with additive attention.

The decoder is a loop of Python over the words of the target, which is given to it.
Source: Bahdanau et al., Neural Machine Translation by Jointly Learning to Align and Translate, 2014 (arXiv:1409.0473).
Licence: our own code, under that of the project.
Sizes: width 64, one layer of GRU each, 300 words, 8 pairs of 5 to 12 words a batch.
"""

import torch
import torch.nn.functional as F
from torch import nn

WORDS, WIDTH = 300, 64


class Translator(nn.Module):
    def __init__(self):
        super().__init__()
        self.source, self.target = nn.Embedding(WORDS, WIDTH), nn.Embedding(WORDS, WIDTH)
        self.encoder, self.decoder = nn.GRU(WIDTH, WIDTH), nn.GRUCell(2 * WIDTH, WIDTH)
        self.of_memory, self.of_state = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH, bias=False)
        self.score, self.head = nn.Linear(WIDTH, 1, bias=False), nn.Linear(2 * WIDTH, WORDS)

    def forward(self, source, target):
        memory, state = self.encoder(self.source(source))
        state, keys, logits = state[0], self.of_memory(memory), []
        for word in self.target(target):
            scores = self.score(torch.tanh(keys + self.of_state(state)))
            context = (torch.softmax(scores, dim=0) * memory).sum(0)
            state = self.decoder(torch.cat([word, context], dim=1), state)
            logits.append(self.head(torch.cat([state, context], dim=1)))
        return torch.stack(logits)


def loss(model, source, target):
    return F.cross_entropy(model(source, target[:-1]).flatten(0, 1), target[1:].flatten())


def batches():
    torch.manual_seed(0)
    model = Translator()
    pairs = ((8, 7), (11, 9), (6, 5), (8, 8), (12, 10), (9, 7))
    return [(model, torch.randint(0, WORDS, (s, 8)), torch.randint(0, WORDS, (t + 1, 8))) for s, t in pairs]
