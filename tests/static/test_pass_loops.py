"""Loops: what is hoisted out of them and what is pruned, printed before and after."""

import warnings

import numpy as np
import pytest

import graphs as g
import static
from static.passes.loops import hoist_invariants, prune_loops
from tests.helpers.printed import check

W = g.TensorSpec((3, 3))
X = g.TensorSpec((4, 3))
ONE = g.TensorSpec(())


def powers(w, x):
    """A loop whose steps compute a product and a sine that are the same in each."""
    return g.scan(lambda s, r: (g.tanh(s @ (w @ w) + r), s), g.sin(x[0]), x)


def halved(x, w):
    """A loop that may make no step: its test runs all the same."""
    return g.while_loop(lambda s: s[0] < w * 2, lambda s: (s[0] + g.log(w) + w * w,), (x,))[0]


def last_only(x):
    """A loop with a state that feeds itself alone, and an output, that nobody reads."""

    def step(state, row):
        a, b, c = state
        return (a + row, b * row, c + a), (g.exp(b), a * 2)

    (a, _, _), (_, ys) = g.scan(step, (x[0], x[0], x[0]), x)
    return a, ys


def test_what_every_step_computes_is_computed_once():
    check(
        hoist_invariants,
        powers,
        [W, X],
        """
        %2: f32[3] = getitem(%1, key=(0, :))
        %3: f32[3] = sin(%2)
        %4: f32[3,3] = matmul(%0, %0)
        %5: (f32[3], f32[4,3]) = scan(%3, %1, %0, %4, carry=1, xs=1, length=4)
          graph body(%0 f32[3], %1 f32[3], %2 f32[3,3], %3 f32[3,3]) -> f32[3], f32[3]
            %4: f32[3] = matmul(%0, %3)
            %5: f32[3] = add(%4, %1)
            %6: f32[3] = tanh(%5)
            return %6, %0
        %6: f32[3] = part(%5, number=0)
        %7: f32[4,3] = part(%5, number=1)
        return %6, %7
        """,
    )


def test_what_may_warn_stays_in_a_loop_that_may_make_no_step():
    check(
        hoist_invariants,
        halved,
        [ONE, ONE],
        """
        %2: f32[] = constant(value=2.0, dtype=float32)
        %3: f32[] = multiply(%1, %2)
        %4: (f32[]) = while_loop(%0, %1, %3, carry=1)
          graph condition(%0 f32[], %1 f32[], %2 f32[]) -> bool[]
            %3: bool[] = less(%0, %2)
            return %3
          graph body(%0 f32[], %1 f32[], %2 f32[]) -> f32[]
            %3: f32[] = log(%1)
            %4: f32[] = add(%0, %3)
            %5: f32[] = multiply(%1, %1)
            %6: f32[] = add(%4, %5)
            return %6
        %5: f32[] = part(%4, number=0)
        return %5
        """,
    )


def test_what_nobody_reads_is_not_carried():
    check(
        prune_loops,
        last_only,
        [X],
        """
        %1: f32[3] = getitem(%0, key=(0, :))
        %2: (f32[3], f32[4,3]) = scan(%1, %0, carry=1, xs=1, length=4)
          graph body(%0 f32[3], %1 f32[3]) -> f32[3], f32[3]
            %2: f32[3] = add(%0, %1)
            %3: f32[] = constant(value=2.0, dtype=float32)
            %4: f32[3] = multiply(%0, %3)
            return %2, %4
        %3: f32[3] = part(%2, number=0)
        %4: f32[4,3] = part(%2, number=1)
        return %3, %4
        """,
    )


@pytest.mark.parametrize(
    "invariant", [lambda c: c - c, lambda c: c * c, lambda c: c @ c, lambda c: c + c, g.exp], ids=range(5)
)
def test_a_loop_without_steps_neither_raises_nor_warns(invariant):
    c, x = np.array([np.inf, 1e308, -np.inf]), np.ones(3)
    loop = static.jit(lambda c, x: g.while_loop(lambda s: g.sum(s) < 0, lambda s: s * g.sum(invariant(c)), x))
    slope = static.jit(
        static.grad(lambda x, c: g.sum(g.while_loop(lambda s: s.sum() < 0, lambda s: s * invariant(c), x)))
    )
    with np.errstate(all="raise"), warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(loop(c, x), x)
        np.testing.assert_array_equal(slope(x, c), x)
