"""A graph convolutional network that tells molecules apart.

Messages along edges are summed by index; each batch has another number of nodes and edges.
Source: Kipf and Welling, Semi-Supervised Classification with Graph Convolutional Networks, 2016 (arXiv:1609.02907).
Licence: our own code, under that of the project.
Sizes: 3 layers, width 64, 8 graphs of 9 to 29 nodes a batch.
"""

from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import nn

from compare.workloads.models.attention import molecules

FEATURES, WIDTH, LAYERS = 16, 64, 3


class GCN(nn.Module):
    def __init__(self):
        super().__init__()
        widths = [FEATURES, *[WIDTH] * LAYERS]
        self.layers = nn.ModuleList(nn.Linear(*pair) for pair in pairwise(widths))
        self.head = nn.Linear(WIDTH, 2)

    def forward(self, x, edges, of_graph, graphs):
        source, target = edges
        degree = x.new_zeros(len(x)).index_add(0, target, x.new_ones(len(target)))
        weight = (degree[source] * degree[target]).rsqrt()[:, None]
        for layer in self.layers:
            hidden = layer(x)
            x = F.relu(torch.zeros_like(hidden).index_add(0, target, hidden[source] * weight))
        pooled = x.new_zeros(graphs, WIDTH).index_add(0, of_graph, x)
        return self.head(pooled)


def loss(model, nodes, edges, of_graph, labels):
    return F.cross_entropy(model(nodes, edges, of_graph, len(labels)), labels)


def batches():
    torch.manual_seed(0)
    model = GCN()
    return [(model, *batch) for batch in molecules(6, FEATURES)]
