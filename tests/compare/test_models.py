"""The models of the workloads against direct NumPy, and what padding must not change."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dynamic
import graphs
import static
from compare import engines, workloads
from compare.engines.graphduel.steps import CompiledStep
from compare.instruments.lengths import collate
from compare.workloads import (
    beam_text,
    branch_on_sum,
    decode_text,
    deep_chain,
    early_exit,
    encoder_text,
    fixed_point,
    lengths,
    lstm_text,
    moe_digits,
    rnn_text,
    tree_lstm,
)
from compare.workloads.data import VOCABULARY_SIZE, Tree
from graphs.errors import ControlFlowError
from tests.helpers.slow import mostly_slow

LEAF: Tree = (3, ())
TREE: Tree = (1, ((2, (LEAF, (4, ()))), (5, ()), (6, (LEAF,))))


# The branch on a sum ----------------------------------------------------------------------------------------

TEXTBOOK = [([1, -1, 2], [2, -2, 4], [2, 2, 2]), ([-3, -2, -1], [-5, -4, -3], [1, 1, 1])]


@pytest.mark.parametrize(("x", "y", "gradient"), TEXTBOOK)
def test_branch_values(x: list[float], y: list[float], gradient: list[float]) -> None:
    point = np.array(x, np.float32)
    np.testing.assert_array_equal(branch_on_sum.branch(point), y)
    value, found = dynamic.value_and_grad(lambda x: graphs.sum(branch_on_sum.branch(x)))(point)
    assert value == sum(y)
    np.testing.assert_array_equal(found, gradient)


@pytest.mark.parametrize(("x", "y", "gradient"), TEXTBOOK)
def test_branch_in_one_static_graph(x: list[float], y: list[float], gradient: list[float]) -> None:
    params = {"offset": np.zeros(3, np.float32)}
    step = static.compile(static.value_and_grad(branch_on_sum.loss), params, np.ones(3, np.float32), convert=True)
    value, found = step(params, np.array(x, np.float32))
    assert value == sum(y)
    np.testing.assert_array_equal(found["offset"], gradient)


def test_static_refuses_the_python_branch_that_is_not_converted() -> None:
    case = branch_on_sum.make(1)
    with pytest.raises(ControlFlowError, match=r"branch_on_sum\.py"):
        static.compile(static.value_and_grad(case.loss), case.params, *case.examples[0])


@pytest.mark.parametrize("name", ["branch_on_sum", "early_exit", "fixed_point"])
def test_a_loss_with_control_flow_runs_unchanged_in_both_engines(name: str) -> None:
    workload = workloads.get(name)
    case = workload.case("small")
    converts = "static-exact" if case.branches else "static-converted"
    assert converts in workload.modes
    assert case.branches != (case.static_loss is not None)
    dynamic_step, converted = engines.step("dynamic", case), engines.step(converts, case)
    for example in case.examples:
        leaves = (graphs.tree.leaves(step(*example)) for step in (converted, dynamic_step))
        for found, wanted in zip(*leaves, strict=True):
            assert found.dtype == wanted.dtype
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-6)
    assert converted.compiles == 1  # one graph holds every path
    nested = [graph for executable in converted.executables() for graph in executable.graph.nested()]
    assert len(nested) > 1  # which are branches or loops of the graph


def test_one_input_is_converted_and_compiled_at_once() -> None:
    case = branch_on_sum.make(1)
    one = engines.step("static-converted", replace(case, examples=case.examples[:1], lengths=case.lengths[:1]))
    assert isinstance(one, CompiledStep)
    assert [float(one(*example)[0]) for example in case.examples] == [4.0, -12.0]


def test_branch_examples_take_both_sides() -> None:
    sums = [example[0].sum() for example in branch_on_sum.make(5).examples]
    assert [total > 0 for total in sums] == [True, False]


# The RNN and the LSTM ---------------------------------------------------------------------------------------


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


def lstm_params(width: int = 5) -> Any:
    return graphs.tree_map(lambda leaf: leaf.astype(np.float64), lstm_text.init(width, seed=3))


def lstm_by_hand(p: Any, characters: Any, following: Any) -> float:
    (hidden, cell), total, width = p["start"], 0.0, len(p["bias"]) // 4
    for now, after in zip(characters, following, strict=True):
        i, f, o, u = (
            p["embedding"][now] @ p["input"][:, gate] + hidden @ p["recurrent"][:, gate] + p["bias"][gate]
            for gate in (slice(n * width, (n + 1) * width) for n in range(4))
        )
        cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(u)
        hidden = sigmoid(o) * np.tanh(cell)
        scores = np.exp(hidden @ p["output"]["weight"] + p["output"]["bias"])
        total -= np.log(scores[after] / scores.sum())
    return float(total / len(characters))


@pytest.mark.parametrize("length", [1, 2, 9])
@pytest.mark.parametrize("loss", [lstm_text.loss, lstm_text.scanned_loss])
def test_lstm_equals_a_direct_loop(loss: Callable[..., Any], length: int) -> None:
    params, line = lstm_params(), random_line(length)
    np.testing.assert_allclose(loss(params, *line), lstm_by_hand(params, *line), rtol=1e-12)


@pytest.mark.parametrize(("module", "params"), [(rnn_text, rnn_params()), (lstm_text, lstm_params())])
@given(length=st.integers(1, 12), padding=st.integers(0, 8), seed=st.integers(0, 99))
def test_masked_padding_changes_neither_loss_nor_gradients(
    module: Any, params: Any, length: int, padding: int, seed: int
) -> None:
    line = random_line(length, seed)
    longer = [np.concatenate([part, other]) for part, other in zip(line, random_line(padding, seed + 1), strict=True)]
    mask = np.arange(length + padding) < length
    plain = dynamic.value_and_grad(module.loss)(params, *line)
    padded = dynamic.value_and_grad(module.masked_loss)(params, *longer, mask)
    for one, other in zip(graphs.tree.leaves(plain), graphs.tree.leaves(padded), strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("policy", mostly_slow(["bucket", "pad"], 1))
def test_a_policy_that_pads_gives_the_unpadded_result(policy: Literal["bucket", "pad"]) -> None:
    params = rnn_params()
    dims = (None, ("T",), ("T",), ("T",))
    step = static.jit(static.value_and_grad(rnn_text.masked_loss), shapes=policy, dims=dims)
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


# The encoder ------------------------------------------------------------------------------------------------


def encoder_params(width: int = 8, longest: int = 9) -> Any:
    return graphs.tree_map(lambda leaf: leaf.astype(np.float64), encoder_text.init(width, longest, seed=2))


def encoder_by_hand(p: Any, characters: Any, places: Any, true: Any) -> float:
    x = p["characters"][characters] + p["places"][places]
    (block,) = p["blocks"]
    h = normed_by_hand(x)
    heads = []
    width = x.shape[1] // encoder_text.HEADS
    for i in range(encoder_text.HEADS):
        q, k, v = ((h @ block[name])[:, i * width : (i + 1) * width] for name in ("query", "key", "value"))
        scores = np.exp(q @ k.T / np.sqrt(width))
        heads.append(scores / scores.sum(1, keepdims=True) @ v)
    x = x + np.concatenate(heads, axis=1) @ block["joined"]
    inner = normed_by_hand(x) @ block["up"]["weight"] + block["up"]["bias"]
    cdf = np.vectorize(lambda z: (1 + math.erf(z / math.sqrt(2))) / 2)
    x = x + (inner * cdf(inner)) @ block["down"]["weight"] + block["down"]["bias"]
    logits = x @ p["output"]["weight"] + p["output"]["bias"]
    chosen = logits[np.arange(len(true)), true] - np.log(np.exp(logits).sum(1))
    return float(-chosen.mean())


def normed_by_hand(x: Any) -> Any:
    return (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)


def test_the_encoder_equals_one_by_hand() -> None:
    example = encoder_text.hide_characters(np.random.default_rng(1), np.arange(7))
    assert encoder_text.loss(encoder_params(), *example) == pytest.approx(encoder_by_hand(encoder_params(), *example))


@pytest.mark.parametrize("batched", [rnn_text.batched_loss, rnn_text.batched_scanned_loss, encoder_text.masked_loss])
def test_a_padded_batch_is_the_mean_of_its_lines(batched: Callable[..., Any]) -> None:
    name = "encoder_text" if batched is encoder_text.masked_loss else "rnn_text"
    stream = lengths.stream(name, (5, 2, 7), width=8, batch=3)
    params = graphs.tree_map(lambda leaf: leaf.astype(np.float64), stream.params)
    alone = np.mean([stream.model.loss(params, *example) for example in stream.examples])
    assert batched(params, *collate(stream.examples)) == pytest.approx(alone)


# Structure that depends on values -----------------------------------------------------------------------------


def test_each_digit_goes_to_one_expert_and_several_experts_get_some() -> None:
    case = moe_digits.make(experts=6, hidden=16, batch=48, batches=1)
    ((x, y),) = case.examples
    shares, chosen = moe_digits.route(case.params, x)
    np.testing.assert_allclose(shares.sum(1), 1, rtol=1e-5)
    assert len(set(chosen.tolist())) > 2
    logits = np.stack(
        [
            moe_digits.expert(case.params["experts"][e], x[i : i + 1], shares[i : i + 1, e])[0]
            for i, e in enumerate(chosen)
        ]
    )
    assert case.loss(case.params, x, y) == pytest.approx(float(graphs.cross_entropy(logits, y)), rel=1e-5)


def test_digits_leave_at_different_blocks() -> None:
    case = early_exit.WORKLOAD.case("small")
    used = []
    for x, y in case.examples:
        _, gradients = dynamic.value_and_grad(case.loss)(case.params, x, y)
        used.append(sum(bool(np.any(block["exit"]["weight"])) for block in gradients["blocks"]))
    assert set(used) == {1}  # of all exits, the one that was taken
    depths = {sum(bool(np.any(g)) for g in depth_gradients(case, *example)) for example in case.examples}
    assert len(depths) > 1


def depth_gradients(case: Any, x: Any, y: Any) -> list[Any]:
    _, gradients = dynamic.value_and_grad(case.loss)(case.params, x, y)
    return [block["up"]["bias"] for block in gradients["blocks"]]


def test_a_fixed_point_is_one_and_takes_a_number_of_steps_that_hangs_on_values() -> None:
    case = fixed_point.WORKLOAD.case("small")
    steps = []
    for (x,) in case.examples:
        z, before, count = fixed_point.step(case.params, x, x), x, 1
        while fixed_point.change(z, before) > fixed_point.ENOUGH:
            z, before, count = fixed_point.step(case.params, z, x), z, count + 1
        np.testing.assert_allclose(fixed_point.step(case.params, z, x), z, atol=2 * fixed_point.ENOUGH)
        assert case.loss(case.params, x) == pytest.approx(float(np.mean(z * z)), rel=1e-6)
        steps.append(count)
    assert len(set(steps)) > 1


def test_lines_that_are_written_end_where_a_value_says_so() -> None:
    case = decode_text.WORKLOAD.case("small")
    ends = []
    for (prompt,) in case.examples:
        text = prompt.tolist()
        for _ in range(decode_text.MOST):  # all anew for each character, nothing kept
            keys, values = decode_text.read(case.params, np.array(text))
            token, _ = decode_text.next_character(case.params, np.array(text[-1]), keys, values)
            text.append(int(token))
            if int(token) % decode_text.ENDS == 0:
                break
        ends.append(len(text) - len(prompt))
        surprise = np.mean(
            [
                decode_text.next_character(
                    case.params, np.array(text[n - 1]), *decode_text.read(case.params, np.array(text[:n]))
                )[1]
                for n in range(len(prompt), len(text))
            ]
        )
        assert case.loss(case.params, prompt) == pytest.approx(float(surprise), rel=1e-5)
    assert len(set(ends)) > 1
    assert max(ends) <= decode_text.MOST


def test_beams_are_the_likeliest_of_all_continuations_of_those_before() -> None:
    case = beam_text.WORKLOAD.case("small")
    counts = []
    for (prompt,) in case.examples:
        beams, ended = [(0.0, tuple(prompt.tolist()))], False
        while not ended and len(beams[0][1]) < len(prompt) + beam_text.MOST:
            longer = [
                (score + float(each), (*text, token))
                for score, text in beams
                for token, each in enumerate(read_anew(case.params, text))
            ]
            beams = sorted(longer, key=lambda beam: -beam[0])[: beam_text.BEAMS]
            ended = beams[0][1][-1] % decode_text.ENDS == 0
        counts.append(len(beams[0][1]) - len(prompt))
        assert case.loss(case.params, prompt) == pytest.approx(-beams[0][0] / counts[-1], rel=1e-5)
    assert len(set(counts)) > 1


def read_anew(params: Any, text: tuple[int, ...]) -> Any:
    """The log-likelihoods of what may follow a text, nothing kept from before."""
    keys, values = decode_text.read(params, np.array(text))
    return decode_text.log_likelihoods(params, np.array(text[-1]), keys, values)


@pytest.mark.parametrize("module", [early_exit, fixed_point, moe_digits, decode_text, beam_text])
def test_static_refuses_what_python_decides_by_a_value(module: Any) -> None:
    case = module.WORKLOAD.case("small")
    with pytest.raises(ControlFlowError, match=r"\.py:\d+"):
        static.compile(static.value_and_grad(case.loss), case.params, *case.examples[0])


def test_oscillators_keep_their_energy_however_long_they_run() -> None:
    case = deep_chain.make(400)
    place, speed = case.params["place"].astype(np.float64), case.params["speed"].astype(np.float64)
    bound = float(np.mean(place**2 + speed**2)) * 1.1
    assert 0 < case.loss(case.params) < bound
    for _ in range(400):
        speed = speed - place * deep_chain.STEP
        place = place + speed * deep_chain.STEP
    assert case.loss(case.params) == pytest.approx(float(np.mean(place * place)), rel=1e-3)
