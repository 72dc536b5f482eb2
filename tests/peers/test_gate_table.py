"""The gate by its table in PyTorch, JAX and TensorFlow: nothing wrong passes in silence, and what is right passes."""

from __future__ import annotations

import importlib
from functools import partial

import optree
import pytest

from compare import engines
from compare.errors import UnsupportedError
from compare.instruments.timing import first_epoch, no_limit
from tests.helpers import gates, random_steps
from tests.helpers.together import check_each

pytestmark = [pytest.mark.peers, pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(params=gates.PEERS)
def framework(request):
    pytest.importorskip(request.param)
    return request.param


@pytest.mark.parametrize("kind", gates.KINDS)
def test_what_a_mode_has_wrong_is_found_or_the_answer_says_that_it_is_not_seen(framework, kind):
    world = gates.PEERS[framework]
    rows = [row for row in gates.rows({framework: world}) if row.kind == kind]
    if not rows:
        pytest.skip("a function of this framework has no state")

    def check(case):
        status, said = gates.gated(world, *case)
        assert status == "disagree" or any(words in said for words in gates.SAYS), said

    check_each([(row, wrong) for row in rows for wrong in gates.mutants(world, row)], check)


@pytest.mark.parametrize("kind", gates.KINDS)
def test_a_mode_that_is_right_is_admitted(framework, kind):
    world = gates.PEERS[framework]
    rows = [row for row in gates.rows({framework: world}) if row.kind == kind]
    if not rows:
        pytest.skip("a function of this framework has no state")

    def check(row):
        status, said = gates.gated(world, row)
        assert status == "ok", said

    check_each(rows, check)


# Steps of PyTorch's that draw random numbers --------------------------------------------------------------------------


def one_percent(place, value, gradients):
    """What a call gives with one array 1% too large: the value, or the gradient of that place."""
    leaves, structure = optree.tree_flatten(gradients)
    scaled = [leaf * 1.01 if k == place else leaf for k, leaf in enumerate(leaves)]
    return value * 1.01 if place is None else value, optree.tree_unflatten(structure, scaled)


@pytest.mark.parametrize("name", random_steps.STEPS)
def test_one_percent_of_any_array_of_a_random_step_is_found_and_what_is_right_passes(name):
    pytest.importorskip("torch")
    engine = engines.find_engine("torch")
    engine.start(0)
    function, calls = random_steps.STEPS[name]()
    bench = gates.Mutated.of_function(engine, engine.mode_names[0], name, function, calls, 0, checks=True)
    assert first_epoch(bench, engine.mode_names[0], no_limit).status == "ok"
    (standard,) = bench.references.expected.values()
    assert (bench.references.random, bench.references.undoubled, standard.exact is None) == (True, None, False)
    assert first_epoch(bench, "torch-aot-eager", no_limit).status == "ok"
    gradients = sum(leaf.part == 1 for leaf in standard.leaves)

    def check(place):
        bench.change = partial(one_percent, place)
        epoch = first_epoch(bench, gates.MUTANT, no_limit)
        assert epoch.status == "disagree", epoch.reason

    check_each([None, *range(0, gradients, 1 + gradients // 8)], check)


def test_a_step_that_seeds_itself_is_compared_with_the_same_random_numbers():
    """Compiled code draws other numbers for one seed, and another seed before the step changes nothing."""
    torch = pytest.importorskip("torch")

    def noisy(x):
        torch.manual_seed(0)
        return ((x + torch.randn_like(x)) ** 2).mean()

    engine = engines.find_engine("torch")
    engine.start(0)
    calls = [(torch.ones(4, 8),), (torch.ones(2, 8),)]
    bench = gates.Mutated.of_function(engine, engine.mode_names[0], "noisy", noisy, calls, None, checks=True)
    assert first_epoch(bench, engine.mode_names[0], no_limit).status == "ok"
    epoch = first_epoch(bench, "torch-compile", no_limit)
    assert epoch.status == "ok", epoch.reason
    bench.change = partial(one_percent, None)
    assert first_epoch(bench, gates.MUTANT, no_limit).status == "disagree"
    (first, _) = bench.references.expected.values()
    assert first.exact is not None
    plain = gates.Bench.of_function(engine, engine.mode_names[0], "mean", torch.mean, calls, None, checks=True)
    assert (bench.references.random, plain.references.random) == (True, False)


@pytest.mark.parametrize("name", random_steps.DRAWS)
def test_what_a_step_draws_is_drawn_again_in_float64_or_refused(name):
    torch = pytest.importorskip("torch")
    drawing = importlib.import_module("compare.engines.torch.dispatcher")
    function, is_given = random_steps.DRAWS[name], name not in random_steps.NOT_ALONE
    drawn, x = [], torch.linspace(-1, 1, 20).reshape(4, 5)
    with drawing.noting(drawn):
        plain = function(x.clone())
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with drawing.giving(drawn):
            wide = function(x.double())
    except UnsupportedError:
        assert not is_given
    else:
        assert is_given
        assert torch.allclose(plain.double(), wide, rtol=1e-5, atol=1e-6)
    finally:
        torch.set_default_dtype(before)


@pytest.mark.parametrize(("first", "then"), [(1, 2), (2, 1)])
def test_a_step_that_draws_more_or_less_in_float64_is_refused(first, then):
    torch = pytest.importorskip("torch")
    drawing = importlib.import_module("compare.engines.torch.dispatcher")
    drawn = []
    with drawing.noting(drawn):
        [torch.rand(3) for _ in range(first)]
    with pytest.raises(UnsupportedError, match="random numbers"), drawing.giving(drawn):
        [torch.rand(3) for _ in range(then)]
