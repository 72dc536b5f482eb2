"""A tagger: an LSTM both ways under a conditional random field.

The normaliser is a recursion along the sentence, whose length varies.
Source: Huang et al., Bidirectional LSTM-CRF Models for Sequence Tagging, 2015 (arXiv:1508.01991).
Licence: our own code, under that of the project.
Sizes: 9 tags, width 32 each way, 300 words, 8 sentences of 8 to 20 words a batch.
"""

import torch
from torch import nn

WORDS, WIDTH, TAGS, SENTENCES = 300, 32, 9, 8


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.lstm = nn.LSTM(WIDTH, WIDTH, bidirectional=True)
        self.scores = nn.Linear(2 * WIDTH, TAGS)
        self.moves = nn.Parameter(torch.randn(TAGS, TAGS) * 0.1)  # from a tag to the next

    def forward(self, words, tags):
        scores = self.scores(self.lstm(self.words(words))[0])
        return (self.normaliser(scores) - self.path(scores, tags)).mean()

    def normaliser(self, scores):
        ahead = scores[0]
        for score in scores[1:]:
            ahead = torch.logsumexp(ahead[:, :, None] + self.moves, dim=1) + score
        return torch.logsumexp(ahead, dim=1)

    def path(self, scores, tags):
        read = scores.gather(2, tags[:, :, None])[:, :, 0].sum(0)
        return read + self.moves[tags[:-1], tags[1:]].sum(0)


def loss(model, words, tags):
    return model(words, tags)


def batches():
    torch.manual_seed(0)
    model = Tagger()
    lengths = (12, 9, 16, 12, 20, 8)
    return [(model, torch.randint(0, WORDS, (n, SENTENCES)), torch.randint(0, TAGS, (n, SENTENCES))) for n in lengths]
