"""Streams of inputs whose sizes are those of real data: lines and syntax trees of Python's own standard library."""

import torch

from compare.workloads.data import source_lines
from compare.workloads.data.text import VOCABULARY_SIZE

VOCABULARY = VOCABULARY_SIZE + 1
"""Characters, and the padding, which is 0."""


def lines(count, longest=80):
    """So many lines as ids of their characters from 1 on, int64 `(length,)`."""
    return [torch.from_numpy(ids + 1) for ids in source_lines(count, max_length=longest)]


def batches(count, rows, longest=80):
    """Batches of lines, int64 `(rows, length of the longest of these lines)`, the others padded with 0."""
    drawn = lines(count * rows, longest)
    groups = [drawn[place * rows : (place + 1) * rows] for place in range(count)]
    return [torch.nn.utils.rnn.pad_sequence(group, batch_first=True) for group in groups]
