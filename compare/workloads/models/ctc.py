"""Speech recognition by connectionist temporal classification (Graves et al., ICML 2006) on frames of varying number.

A strided convolution and two linear layers over 40 filters; 6 frames for a character of a source line; batches of 4.
Licence: our own code, under that of the project.
"""

import torch
from torch import nn
from torch.nn import functional as F

from compare.workloads.models import attention
from compare.workloads.models.attention import VOCABULARY

FRAMES = 6


class Recogniser(nn.Module):
    """Scores of each character, and of none, for every second frame."""

    def __init__(self, filters=40, width=96):
        super().__init__()
        self.convolution = nn.Conv1d(filters, width, 5, 2, 2)
        self.hidden, self.head = nn.Linear(width, width), nn.Linear(width, VOCABULARY)

    def forward(self, sound):
        x = F.relu(self.convolution(sound)).transpose(1, 2)
        return self.head(F.relu(self.hidden(x))).log_softmax(2)


torch.manual_seed(0)
model = Recogniser()
inputs = [(torch.randn(4, 40, FRAMES * ids.shape[1]), ids, (ids != 0).sum(1)) for ids in attention.batches(8, rows=4)]


def loss(sound, text, lengths):
    """The mean negative logarithm of the probability of the text, however its characters lie in time."""
    scores = model(sound).transpose(0, 1)
    frames = lengths * (FRAMES // 2)
    return F.ctc_loss(scores, text, frames, lengths, zero_infinity=True)
