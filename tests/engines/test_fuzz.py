"""A slice of the random programs of `tests.fuzz`; `python -m tests.fuzz --programs 20000` is the long run."""

from __future__ import annotations

from collections import Counter
from contextlib import nullcontext

import numpy as np
import pytest

import dynamic
import graphs as g
import static
from dynamic.batching.batch import SCHEDULES
from graphs.errors import InplaceError, ShapeError
from graphs.op import registered_ops
from static.passes import pipeline
from tests.fuzz.__main__ import main
from tests.fuzz.cases import case_of, same_bits
from tests.fuzz.mix import EVERYTHING
from tests.fuzz.run import WAYS, attempt, ways_of
from tests.fuzz.smaller import smaller
from tests.helpers.arena import check_arena
from tests.helpers.random_graphs import random_program
from tests.helpers.slow import mostly_slow

BLOCKS = 12


@pytest.mark.parametrize("block", mostly_slow(range(BLOCKS), 1))
def test_random_programs_agree_however_they_are_run(block):
    for seed in range(block, 72, BLOCKS):
        counts, failures = attempt(seed)
        assert not failures, f"{failures[0]}\n{smaller(random_program(seed, EVERYTHING), failures[0].way)}"
        assert sum(counts.values()) == len(ways_of(seed))


def test_every_way_comes_up_equally_often():
    assert len(set(Counter(way for seed in range(6 * 7) for way in ways_of(seed)).values())) == 1


@pytest.mark.slow
def test_programs_hold_every_family_and_every_dtype():
    programs = [random_program(seed, EVERYTHING) for seed in range(400)]
    used = Counter(step.kind.name for program in programs for step in program.steps)
    kinds = {kind.name for family in EVERYTHING.families for kind in family} | {k.name for k in EVERYTHING.broken}
    assert len(set(used) & kinds) > 0.97 * len(kinds)
    dtypes = Counter(x.dtype.name for program in programs for x in program.inputs)
    assert set(dtypes) == set(EVERYTHING.dtypes)
    assert sum(0 in x.shape for program in programs for x in program.inputs) > 10
    assert sum(program.smooth for program in programs) > 80
    assert sum(case_of(seed).refusal is not None for seed in range(400)) > 5


def test_a_failure_is_found_and_made_smaller(monkeypatch):
    def wrong(case):
        assert not any(step.kind.name == "diff" for step in case.program.steps)

    monkeypatch.setitem(WAYS, "tape", wrong)
    seed = next(s for s in range(1000) if "diff(" in str(random_program(s, EVERYTHING)))
    counts, (failure,) = attempt(seed, ["tape", "simplify"])
    assert counts == {("tape", "FAILED"): 1, ("simplify", "agrees"): 1}
    assert str(failure).startswith(f"seed {seed}, tape: AssertionError")
    program = smaller(random_program(seed, EVERYTHING), "tape")
    assert [step.kind.name for step in program.steps].count("diff") == 1
    assert len(program.steps) < 4


def test_a_run_that_was_stopped_goes_on(tmp_path, capsys):
    state = tmp_path / "state.json"
    for programs in (50, 54):
        assert main(["--programs", str(programs), "--way", "eager", "--state", str(state)]) == 0
    assert "54 programs, 54 runs, 0 failures" in capsys.readouterr().out


# What random programs have found --------------------------------------------------------------------------------------


LONGER = {
    "framed": lambda x: g.pad(x, ((1, 1), (0, 0))),
    "joined": lambda x: g.concat([np.ones((2, 2)), x], axis=0),
    "last again": lambda x: g.concat([x, x[-1:]], axis=0),
    "shorter": lambda x: g.diff(x, axis=0),
    "from the second": lambda x: x[1:] * 2,
}


@pytest.mark.parametrize("shapes", ["bucket", "pad"])
@pytest.mark.parametrize("name", LONGER)
def test_results_that_are_longer_or_shorter_than_the_padded_axis(name, shapes):
    """They are cut by what was padded: a size that needs no padding is not cut, the others are right or refused."""
    f = static.jit(LONGER[name], shapes=shapes, dims=(("T", None),))
    for size in (8, 5, 8, 3):
        x = np.random.default_rng(size).normal(size=(size, 2))
        try:
            found = f(x)
        except ShapeError:
            assert name in ("framed", "last again")
            assert size != 8
        else:
            same_bits(found, LONGER[name](x))


VIEWS = {
    "flip": g.flip,
    "getitem": lambda x: g.getitem(x, (Ellipsis,)),
    "permute_dims": lambda x: g.permute_dims(x, tuple(range(x.ndim))),
    "reshape": lambda x: g.reshape(x, (1, *x.shape)),
    "broadcast_to": lambda x: g.broadcast_to(x, (2, *x.shape)),
    "stop_gradient": g.stop_gradient,
}


def test_every_op_that_makes_views_is_tried():
    views = {name for name, op in registered_ops().items() if op.view}
    assert views - {"part", "observe"} == set(VIEWS)  # these have no kernel that users call


@pytest.mark.parametrize("shape", [(), (1,), (2, 3)], ids=str)
@pytest.mark.parametrize("name", VIEWS)
def test_a_view_shares_memory_whatever_its_shape(name, shape):
    """A graph makes views of its arena once: a kernel that copies what has no axes gives numbers of another call."""
    x = np.asarray(np.random.default_rng(0).normal(size=shape))
    assert np.shares_memory(VIEWS[name](x), x)

    def f(x):
        return g.exp(VIEWS[name](g.sin(x) * 2) * 0.5)

    exe = static.compile(f, x, passes=pipeline.REPLAY)
    for shift in (1.0, 2.0):
        np.testing.assert_allclose(exe(x + shift), f(x + shift), rtol=1e-12)


def leaves(count):
    return [dynamic.tensor(np.arange(6.0).reshape(2, 3) + i, requires_grad=True) for i in range(count)]


def in_a_batch(f, strategy):
    """The sum of f of three leaves, and their gradients, one by one and in a batch."""
    found = []
    for block in (nullcontext(), dynamic.batched(strategy)):
        inputs = leaves(3)
        with block:
            total = sum(g.sum(g.sin(g.reshape(value, (-1,)) * 0.7)) for x in inputs for value in f(x))
        total.backward()
        found.append([total.item(), *[x.grad.numpy() for x in inputs]])
    return found


@pytest.mark.parametrize("passes", [pipeline.REPLAY, pipeline.SIMPLIFY, pipeline.DEFAULT])
def test_a_part_reshaped_to_a_number_has_memory_of_its_own(passes):
    """Nobody reads the whole any more when what comes next is written over it, nor may the caller see the arena."""

    def f(x):
        whole = g.cos(x)
        first = g.reshape(whole[:1], ())
        rest = g.tanh(whole[1:]) * 0.5
        return first, g.sin(rest) * first, rest

    x = np.linspace(0.5, 2.0, 40)
    exe = static.compile(f, x, passes=passes)
    same_bits(g.tree.unflatten(exe.traced.outputs, check_arena(exe, [x])), f(x))
    first, *_ = exe(x)
    exe(x * 2)
    assert first == np.cos(0.5)


each_strategy = pytest.mark.parametrize("strategy", SCHEDULES)


@each_strategy
@pytest.mark.parametrize("part", [lambda x: (x,), lambda x: (x[-1, 0], x * 2), lambda x: (g.reshape(x, (3, 2)),)])
def test_a_cell_returns_a_parameter_or_a_part_of_it(part, strategy):
    """What it returns is computed, and no constant that could be looked at before the batch runs."""
    for one, other in zip(*in_a_batch(dynamic.cell(part), strategy), strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-12)


@pytest.mark.parametrize("shapes", [((), (6,)), ((6,), ()), ((6,), (2, 3)), ((2, 3), (3, 2))], ids=str)
def test_cells_that_return_constants_of_other_shapes(shapes):
    """What runs one does not run the other, in another batch either."""
    same = dynamic.cell(lambda x: g.reshape(x, x.shape))
    for shape in shapes:
        w = dynamic.tensor(np.arange(np.prod(shape, dtype=float)).reshape(shape) + 1, requires_grad=True)
        with dynamic.batched():
            values = [same(w) for _ in range(3)]
            total = sum(g.sum(value * (i + 1)) for i, value in enumerate(values))
        assert [value.shape for value in values] == [shape] * 3
        assert total.item() == np.sum(w.detach().numpy()) * 6


@each_strategy
def test_empty_values_are_gathered_by_their_number(strategy):
    with dynamic.batched(strategy):
        for x in [dynamic.tensor(np.ones((2, 0)) * i, requires_grad=True) for i in range(3)]:
            y = x * 2
            sines = g.sin(y[0]), g.sin(y[1])
            assert (y[0] * g.cos(sines[0] + sines[1])).shape == (0,)


@each_strategy
def test_what_is_joined_in_one_group_has_inputs_of_other_kinds(strategy):
    fixed = np.array([2.0, 3.0])

    def joins(x):
        row = g.sum(x, axis=0)
        return g.concat([row, fixed]), g.concat([fixed, row]), g.concat([row, row, fixed, row])

    for one, other in zip(*in_a_batch(joins, strategy), strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-12)


WRITES = (np.array([0, 2]), (np.array([[1]]), None), np.array([True, False, True]), slice(None, None, -1), 1)


@each_strategy
@pytest.mark.parametrize("key", WRITES, ids=str)
def test_a_deferred_tensor_is_written_to_by_any_key(key, strategy):
    def write(x):
        rows = x * 2
        rows[(slice(None), *key) if isinstance(key, tuple) else (slice(None), key)] = x[0, 0]
        return (rows,)

    for one, other in zip(*in_a_batch(write, strategy), strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-12)


def test_a_deferred_tensor_that_has_a_view_is_not_written_to():
    with dynamic.batched():
        x = leaves(1)[0] * 2
        row = x[0]
        with pytest.raises(InplaceError, match="deferred value that is a view, or has one"):
            x[np.array([0])] = 0.0
        with pytest.raises(InplaceError, match="deferred value that is a view, or has one"):
            row += 1


@pytest.mark.parametrize("y", [np.float64(3.0), np.array([3.0])])
def test_a_python_bool_chooses_between_an_array_and_a_number(y):
    assert g.where(True, np.array(2.0), y) == 2.0
    assert g.where(False, np.array(2.0), y) == 3.0


@pytest.mark.parametrize("factor", [np.uint8(3), np.bool_(True), np.int8(-128), np.float64(3)], ids=repr)
def test_the_negative_of_a_product_with_a_constant_of_another_kind(factor):
    """The sign goes into the constant only where that has a negative."""
    x = np.array([1.0, -2.0])
    found = static.compile(lambda x: -(x * np.array(factor)), x)(x)
    np.testing.assert_array_equal(found, -(x * factor))


@pytest.mark.parametrize("engine", [dynamic, static])
def test_what_is_added_has_the_shape_of_where_it_goes(engine):
    """A graph that leaves the sum out refuses it all the same."""

    def f(x):
        g.scatter_add(x, np.array([0, 1, 1]), shape=(2,), axis=0)
        return g.sum(x)

    with pytest.raises(ShapeError, match=r"scatter_add: what is added has the shape .* \(3,\)"):
        engine.grad(f)(np.ones(5)) if engine is dynamic else static.compile(f, np.ones(5))
