"""The models of the workloads against direct NumPy, and what padding must not change."""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dynamic
import graphs
import static
from compare.workloads import branch_on_sum, rnn_text, tree_lstm
from compare.workloads.data import Tree
from compare.workloads.data.text import VOCABULARY_SIZE
from graphs.errors import ControlFlowError

LEAF: Tree = (3, ())
TREE: Tree = (1, ((2, (LEAF, (4, ()))), (5, ()), (6, (LEAF,))))


# The branch on a sum ----------------------------------------------------------------------------------------

TEXTBOOK = [([1, -1, 2], [2, -2, 4], [2, 2, 2]), ([-3, -2, -1], [-5, -4, -3], [1, 1, 1])]


@pytest.mark.parametrize("function", [branch_on_sum.branch, branch_on_sum.select])
@pytest.mark.parametrize(("x", "y", "gradient"), TEXTBOOK)
def test_branch_values(function: Callable[..., Any], x: list[float], y: list[float], gradient: list[float]) -> None:
    point = np.array(x, np.float32)
    np.testing.assert_array_equal(function(point), y)
    value, found = dynamic.value_and_grad(lambda x: graphs.sum(function(x)))(point)
    assert value == sum(y)
    np.testing.assert_array_equal(found, gradient)


@pytest.mark.parametrize(("x", "y", "gradient"), TEXTBOOK)
def test_branch_in_one_static_graph(x: list[float], y: list[float], gradient: list[float]) -> None:
    params = {"offset": np.zeros(3, np.float32)}
    step = static.compile(static.value_and_grad(branch_on_sum.static_loss), params, np.ones(3, np.float32))
    value, found = step(params, np.array(x, np.float32))
    assert value == sum(y)
    np.testing.assert_array_equal(found["offset"], gradient)


def test_static_refuses_the_python_branch() -> None:
    case = branch_on_sum.make(1)
    with pytest.raises(ControlFlowError, match=r"branch_on_sum\.py"):
        static.compile(static.value_and_grad(case.loss), case.params, *case.examples[0])


def test_branch_examples_take_both_sides() -> None:
    sums = [example[0].sum() for example in branch_on_sum.make(5).examples]
    assert [total > 0 for total in sums] == [True, False]


# The RNN ----------------------------------------------------------------------------------------------------


def random_line(length: int, seed: int = 0) -> tuple[Any, Any]:
    line = np.random.default_rng(seed).integers(0, VOCABULARY_SIZE, length + 1)
    return line[:-1], line[1:]


def rnn_params(width: int = 5) -> Any:
    return graphs.tree_map(lambda leaf: leaf.astype(np.float64), rnn_text.init(width, seed=3))


def rnn_by_hand(p: Any, characters: Any, following: Any) -> float:
    state, total = p["start"], 0.0
    for now, after in zip(characters, following, strict=True):
        state = np.tanh(p["embedding"][now] @ p["input"] + state @ p["recurrent"] + p["bias"])
        scores = np.exp(state @ p["output"]["weight"] + p["output"]["bias"])
        total -= np.log(scores[after] / scores.sum())
    return float(total / len(characters))


@pytest.mark.parametrize("length", [1, 2, 9, 40])
def test_rnn_equals_a_direct_loop(length: int) -> None:
    params, line = rnn_params(), random_line(length)
    np.testing.assert_allclose(rnn_text.loss(params, *line), rnn_by_hand(params, *line), rtol=1e-12)


@given(length=st.integers(1, 12), padding=st.integers(0, 8), seed=st.integers(0, 99))
def test_masked_padding_changes_neither_loss_nor_gradients(length: int, padding: int, seed: int) -> None:
    params, line = rnn_params(), random_line(length, seed)
    longer = [np.concatenate([part, other]) for part, other in zip(line, random_line(padding, seed + 1), strict=True)]
    mask = np.arange(length + padding) < length
    plain = dynamic.value_and_grad(rnn_text.loss)(params, *line)
    padded = dynamic.value_and_grad(rnn_text.masked)(params, *longer, mask)
    for one, other in zip(graphs.tree.leaves(plain), graphs.tree.leaves(padded), strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("policy", ["bucket", "pad"])
def test_a_policy_that_pads_gives_the_unpadded_result(policy: Literal["bucket", "pad"]) -> None:
    params = rnn_params()
    dims = (None, ("T",), ("T",), ("T",))
    step = static.jit(static.value_and_grad(rnn_text.masked), shapes=policy, dims=dims)
    plain = dynamic.value_and_grad(rnn_text.loss)
    for length in (11, 3, 6, 1):
        line = random_line(length)
        results = plain(params, *line), step(params, *line, np.ones(length, bool))
        for one, other in zip(*map(graphs.tree.leaves, results), strict=True):
            np.testing.assert_allclose(other, one, rtol=1e-10, atol=1e-13)


# The Tree-LSTM ----------------------------------------------------------------------------------------------


def tree_params(width: int = 4) -> Any:
    return graphs.tree_map(lambda leaf: leaf.astype(np.float64), tree_lstm.init(width, seed=3))


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def tree_by_hand(p: Any, tree: Tree) -> tuple[Any, Any]:
    """The equations of the paper as they stand, by recursion, one child at a time."""
    kind, children = tree
    x, states = p["embedding"][kind], [tree_by_hand(p, child) for child in children]
    total = sum((h for h, _ in states), np.zeros_like(x))
    pre = {name: x @ p[name]["input"] + total @ p[name]["recurrent"] + p[name]["bias"] for name in "iou"}
    cell = sigmoid(pre["i"]) * np.tanh(pre["u"])
    for h, c in states:
        cell = cell + sigmoid(x @ p["f"]["input"] + h @ p["f"]["recurrent"] + p["f"]["bias"]) * c
    return sigmoid(pre["o"]) * np.tanh(cell), cell


@pytest.mark.parametrize("tree", [LEAF, (1, (LEAF,)), TREE], ids=["leaf", "one child", "several"])
def test_tree_lstm_equals_the_equations(tree: Tree) -> None:
    params = tree_params()
    for one, other in zip(tree_lstm.root_state(params, tree), tree_by_hand(params, tree), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


@given(st.recursive(st.just(()), lambda below: st.lists(below, max_size=4).map(tuple), max_leaves=12))
def test_post_order_has_children_before_parents(shape: Any) -> None:
    numbers = iter(range(1000))

    def numbered(node: Any) -> Tree:
        children = tuple(map(numbered, node))
        return next(numbers), children

    tree = numbered(shape)
    types, counts = tree_lstm.post_order(tree)
    assert types == list(range(len(types)))
    assert sum(counts) == len(types) - 1


def test_a_deep_tree_needs_no_recursion() -> None:
    tree = LEAF
    for _ in range(3000):
        tree = (1, (tree,))
    hidden, _ = tree_lstm.root_state(tree_params(), tree)
    assert np.isfinite(hidden).all()


def test_the_label_is_hidden_from_the_model() -> None:
    tree, label = tree_lstm.hide_root(TREE)
    assert tree == (tree_lstm.HIDDEN, TREE[1])
    assert label == TREE[0]
