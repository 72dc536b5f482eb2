"""Attention of several heads, as the transformers here share it.

Random graphs of varying size, as those of molecules, for the networks over graphs here.

Streams of inputs whose sizes are those of real data: lines and syntax trees of Python's own standard library.
"""

import torch
import torch.nn.functional as F
from torch import nn

from compare.workloads.data import VOCABULARY_SIZE, source_lines


class Attention(nn.Module):
    """Queries of `x`, keys and values of `memory`, both (batch, tokens, width); `mask` is added to scores, or bool."""

    def __init__(self, width, heads, bias=True):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value = (nn.Linear(width, width, bias) for _ in range(3))
        self.out = nn.Linear(width, width, bias)

    def forward(self, x, memory=None, mask=None, causal=False):
        """What each query has read, (batch, tokens, width)."""
        memory = x if memory is None else memory
        q, k, v = (self._split(tensor) for tensor in (self.query(x), self.key(memory), self.value(memory)))
        read = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal)
        return self.out(read.transpose(1, 2).flatten(2))

    def _split(self, x):
        return x.unflatten(2, (self.heads, -1)).transpose(1, 2)


def molecules(count, features, seed=0):
    """`count` batches of graphs as one graph: features of nodes, edges (2, count), the graph of each node, labels.

    Edges go both ways, and each node has one to itself.
    """
    random = torch.Generator().manual_seed(seed)
    return [_batch(random, features) for _ in range(count)]


def _batch(random, features, graphs=8):
    sizes = torch.randint(9, 30, (graphs,), generator=random)
    edges, of_graph, first = [], [], 0
    for number, size in enumerate(sizes.tolist()):
        ends = torch.randint(0, size, (2, size), generator=random) + first
        alone = torch.arange(first, first + size).repeat(2, 1)
        edges += [ends, ends.flip(0), alone]
        of_graph.append(torch.full((size,), number))
        first += size
    nodes = torch.randn(first, features, generator=random)
    labels = torch.randint(0, 2, (graphs,), generator=random)
    return nodes, torch.cat(edges, dim=1), torch.cat(of_graph), labels


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
