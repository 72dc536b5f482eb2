"""An LSTM language model of two layers (Zaremba et al., Recurrent Neural Network Regularization, 2014).

64 features in and 128 hidden, 250,145 parameters; a batch is 8 lines of source code, padded to the longest of them.
Licence: our own code, under that of the project.
"""

import torch
from torch import nn
from torch.nn import functional as F

from compare.workloads.models import attention
from compare.workloads.models.attention import VOCABULARY


class LanguageModel(nn.Module):
    """Embedded characters, two layers of LSTM, and scores of the next character."""

    def __init__(self, features=64, hidden=128):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, features)
        self.lstm = nn.LSTM(features, hidden, num_layers=2, batch_first=True)
        self.head = nn.Linear(hidden, VOCABULARY)

    def forward(self, ids):
        return self.head(self.lstm(self.embedding(ids))[0])


torch.manual_seed(0)
model = LanguageModel()
inputs = [(ids,) for ids in attention.batches(8, rows=8)]


def loss(ids):
    """The mean cross entropy of each next character; padding is left out."""
    scores = model(ids[:, :-1])
    return F.cross_entropy(scores.flatten(0, 1), ids[:, 1:].flatten(), ignore_index=0)
