"""The remedies that steps with known faults ask for, by their graphs alone; `remedies_table` times them too."""

from contextlib import nullcontext
from functools import partial

import pytest

from compare.engines import find_engine
from compare.engines.torch import dynamo, trials
from tests.peers.remedies_table import BEST

pytestmark = [pytest.mark.peers, pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
torch = pytest.importorskip("torch")

from tests.peers import remedy_steps  # noqa: E402  (needs PyTorch)

BY_FIGURES = {"dear_memory"}
"""The steps whose remedies are asked for by what was measured."""


@pytest.fixture(autouse=True)
def nothing_compiled():
    dynamo.forget()
    yield
    dynamo.forget()


def found(step):
    function, calls = (vars(remedy_steps)[name] for name in (step, f"{step}_inputs"))
    engine = find_engine("torch")
    return engine.trials.facts(function, calls, nullcontext)


@pytest.mark.parametrize("step", sorted(BEST.keys() - BY_FIGURES - {"value_branch"}))
def test_the_best_remedy_is_the_first_that_is_tried(step, capsys):
    (first, *_) = found(step)[trials.WORTH]
    assert first.partition("=")[0] in BEST[step]


def test_a_change_that_fails_leaves_no_marks_that_make_the_next_one_fail():
    function, calls = remedy_steps.masked_loop, remedy_steps.masked_loop_inputs
    count = partial(find_engine("torch").trials._count, function, calls, nullcontext)
    usual = count({})
    assert count({"mark_dynamic": {"x": [1], "mask": [1]}}) is None
    assert count({}).pieces == usual.pieces == 3


def test_a_branch_is_told_and_only_the_model_is_tried():
    assert [word.partition("=")[0] for word in found("value_branch")[trials.WORTH]] == ["model"]
    torch.compile(remedy_steps.value_branch, backend="aot_eager")(*remedy_steps.value_branch_inputs[0])
    usual = find_engine("torch").trials._count(
        remedy_steps.value_branch, remedy_steps.value_branch_inputs, nullcontext, {}
    )
    assert "torch.where" in trials.by_hand(usual.said)[0]


def test_arguments_that_come_back_are_donated_in_jax():
    jnp = pytest.importorskip("jax.numpy")

    def step(params, x):
        return {name: value * x.mean() for name, value in params.items()}, x.sum()

    def branches(x):
        return -x if x.sum() > 0 else x

    trials_of_jax, call = find_engine("jax").trials, ({"w": jnp.ones((3, 3)), "b": jnp.ones(3)}, jnp.ones((2, 3)))
    facts = trials_of_jax.facts(step, [call])
    assert facts == {"returned": ["0 params"]}
    assert trials_of_jax.facts(pytest.importorskip("jax").jit(step, donate_argnums=(0,)), [call]) == {}
    (trial,) = trials_of_jax.modes([], facts, remedies=True)
    assert (trial.word, trial.change) == (
        "jit(donate_argnums=(0,))",
        "donate params, which come back: jax.jit(..., donate_argnums=(0,))",
    )
    assert trials_of_jax.facts(branches, [(jnp.ones(3),)]) == {}
    assert trials_of_jax.modes([], {}, remedies=True) == []


def test_a_change_whose_graphs_take_too_long_is_not_tried():
    function, calls = remedy_steps.masked_loop, remedy_steps.masked_loop_inputs
    count = partial(find_engine("torch").trials._count, function, calls, nullcontext)
    assert count({}, seconds=1e-3) is None
    assert count({}).pieces == 3
