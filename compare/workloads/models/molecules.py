"""Random graphs of varying size, as those of molecules, for the networks over graphs here."""

import torch


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
