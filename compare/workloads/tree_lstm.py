"""A Child-Sum Tree-LSTM over syntax trees (Tai, Socher and Manning, 2015): each every example a new graph.

The task: what kind of statement is it, from its parts? The root's own type is hidden and is the label.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import graphs
from compare.workloads.base import Array, Case, Example, Params, Workload
from compare.workloads.data import NODE_TYPES, Tree, syntax_trees
from compare.workloads.layers import dense, dense_layers, glorot

State = tuple[Array, Array]

HIDDEN = len(NODE_TYPES)


def loss(params: Params, tree: Tree, label: Array) -> Array:
    """The cross entropy of the root's type: a tree of ints `(type, children)`, i[] -> a scalar."""
    hidden, _ = root_state(params, tree)
    return graphs.cross_entropy(dense(params["output"], hidden), label)


def root_state(params: Params, tree: Tree) -> State:
    """The hidden and the cell state of the root, f[H] each: children before parents, without recursion."""
    types, counts = post_order(tree)
    states: list[State] = []
    for x, count in zip(graphs.embedding(params["embedding"], np.array(types)), counts, strict=True):
        first = len(states) - count
        states[first:] = [node_state(params, x, states[first:])]
    return states[0]


def node_state(params: Params, x: Array, children: Sequence[State]) -> State:
    """The state of a node from its embedding, f[H], and its children's states (equations 2 to 8)."""
    if not children:
        cell = graphs.sigmoid(gate(params["i"], x)) * graphs.tanh(gate(params["u"], x))
        return graphs.sigmoid(gate(params["o"], x)) * graphs.tanh(cell), cell
    hiddens, cells = (graphs.stack(part) for part in zip(*children, strict=True))
    total = graphs.sum(hiddens, axis=0)
    i, o = (graphs.sigmoid(gate(params[name], x, total)) for name in ("i", "o"))
    kept = graphs.sigmoid(gate(params["f"], x, hiddens)) * cells  # one forget gate for each child
    cell = i * graphs.tanh(gate(params["u"], x, total)) + graphs.sum(kept, axis=0)
    return o * graphs.tanh(cell), cell


def gate(weights: dict[str, Array], x: Array, hidden: Array | None = None) -> Array:
    """A gate before its nonlinearity: f[H], f[..., H] -> f[..., H]; a leaf has no hidden state below it."""
    own = x @ weights["input"] + weights["bias"]
    return own if hidden is None else own + hidden @ weights["recurrent"]


def post_order(tree: Tree) -> tuple[list[int], list[int]]:
    """The types and the numbers of children of all nodes, each node after its children."""
    types, counts, stack = [], [], [tree]
    while stack:
        kind, children = stack.pop()
        types.append(kind)
        counts.append(len(children))
        stack.extend(children)
    return types[::-1], counts[::-1]


def init(width: int, seed: int = 0) -> Params:
    """The parameters: embeddings and states of `width` floats, a label for each node type; Glorot init."""
    rng = np.random.default_rng(seed)
    gates = {name: gate_weights(rng, width) for name in "ifou"}
    output = dense_layers(rng, (width, len(NODE_TYPES)), glorot)[0]
    return {"embedding": rng.standard_normal((HIDDEN + 1, width), np.float32), "output": output, **gates}


def gate_weights(rng: np.random.Generator, width: int) -> dict[str, Array]:
    """The parameters of one gate."""
    return {
        "input": glorot(rng, width, width),
        "recurrent": glorot(rng, width, width),
        "bias": np.zeros(width, np.float32),
    }


def make(trees: int, max_nodes: int, width: int, seed: int = 0) -> Case:
    """`trees` statements of 8 to `max_nodes` nodes; the length of an example is its number of nodes."""
    samples = syntax_trees(trees, seed, max_nodes)
    lengths = tuple(sample.nodes for sample in samples)
    return Case(loss, init(width, seed), tuple(hide_root(sample.root) for sample in samples), lengths)


def hide_root(tree: Tree) -> Example:
    """The tree with its root's type hidden, and that type as an array: no part of the structure."""
    kind, children = tree
    return (HIDDEN, children), np.array(kind)


WORKLOAD = Workload(
    name="tree_lstm",
    title="Tree-LSTM over syntax trees",
    shows="A new structure for nearly every example: a fixed graph must be compiled for each of them.",
    expect="dynamic",
    kind="structure that varies",
    sizes={
        "small": {"trees": 8, "max_nodes": 24, "width": 16},
        "medium": {"trees": 16, "max_nodes": 48, "width": 32},
        "large": {"trees": 12, "max_nodes": 80, "width": 64},
    },
    make=make,
)
