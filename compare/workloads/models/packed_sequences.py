"""A classifier of lines of source text in packed sequences, of the lengths that they have.

Nothing is padded: at each time the LSTM is given the lines that are as long.
Source: Hochreiter and Schmidhuber, Long Short-Term Memory, Neural Computation 9, 1997.
Licence: our own code, under that of the project; the lines are Python's own, as the machine has them.
Sizes: width 64, 96 characters, batches of 8 lines of 2 to 80 characters.
"""

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence

from compare.workloads.data import VOCABULARY_SIZE, source_lines

WIDTH, CLASSES, LINES, BATCHES = 64, 4, 8, 6


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.characters, self.lstm = nn.Embedding(VOCABULARY_SIZE, WIDTH), nn.LSTM(WIDTH, WIDTH)
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, lines, lengths):
        packed = pack_padded_sequence(self.characters(lines), lengths.cpu(), enforce_sorted=False)
        return self.head(self.lstm(packed)[1][0][0])


def loss(model, lines, lengths, labels):
    return F.cross_entropy(model(lines, lengths), labels)


def batches():
    torch.manual_seed(0)
    model = Classifier()
    lines = [torch.from_numpy(line) for line in source_lines(LINES * BATCHES)]
    return [(model, *_batch(lines[first : first + LINES])) for first in range(0, len(lines), LINES)]


def _batch(lines):
    lengths = torch.tensor([len(line) for line in lines])
    return pad_sequence(lines), lengths, torch.randint(0, CLASSES, (len(lines),))
