"""A graph attention network that tells molecules apart.

The softmax is over the edges that end in a node, by indexed maxima and sums.
Source: Velickovic et al., Graph Attention Networks, 2017 (arXiv:1710.10903).
Licence: our own code, under that of the project.
Sizes: 2 layers, 4 heads of width 16, 8 graphs of 9 to 29 nodes a batch.
"""

import torch
import torch.nn.functional as F
from torch import nn

from compare.workloads.models.attention import molecules

FEATURES, HEADS, WIDTH = 16, 4, 16


class Layer(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.values = nn.Linear(features, HEADS * WIDTH, bias=False)
        self.of_source, self.of_target = (nn.Parameter(torch.randn(HEADS, WIDTH) * 0.1) for _ in range(2))

    def forward(self, x, source, target):
        nodes, values = len(x), self.values(x).view(-1, HEADS, WIDTH)
        scores = (values * self.of_source).sum(-1)[source] + (values * self.of_target).sum(-1)[target]
        scores = F.leaky_relu(scores, 0.2)
        places = target[:, None].expand(-1, HEADS)
        highest = scores.new_full((nodes, HEADS), -torch.inf).scatter_reduce(0, places, scores.detach(), "amax")
        weights = (scores - highest[target]).exp()
        total = weights.new_zeros(nodes, HEADS).index_add(0, target, weights)
        weighted = values[source] * (weights / total[target])[..., None]
        return F.elu(weighted.new_zeros(nodes, HEADS, WIDTH).index_add(0, target, weighted).flatten(1))


class GAT(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Layer(FEATURES), Layer(HEADS * WIDTH)])
        self.head = nn.Linear(HEADS * WIDTH, 2)

    def forward(self, x, edges, of_graph, graphs):
        for layer in self.layers:
            x = layer(x, *edges)
        return self.head(x.new_zeros(graphs, x.shape[1]).index_add(0, of_graph, x))


def loss(model, nodes, edges, of_graph, labels):
    return F.cross_entropy(model(nodes, edges, of_graph, len(labels)), labels)


def batches():
    torch.manual_seed(0)
    model = GAT()
    return [(model, *batch) for batch in molecules(6, FEATURES)]
