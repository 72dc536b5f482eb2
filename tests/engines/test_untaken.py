"""What a branch that is not taken reads, or a loop without rounds, does not reach the gradient: as on a tape."""

import numpy as np
import pytest

import dynamic
import graphs as g
import static
from tests.helpers.together import check_each

UNARY = (g.sqrt, g.log, g.sin, lambda v: 1.0 / v, lambda v: v * v, lambda v: v**0.5)
BINARY = (g.add, g.multiply, g.subtract, g.divide)
DEPTH = 3


def drawn(rng, count, depth=0):
    """An expression over `count` values, with ops that have no value, or no derivative, everywhere."""
    read = int(rng.integers(count))
    kind = int(rng.integers(9 if depth < DEPTH else 1))
    if kind == 0:
        return "value", read
    if kind <= 3:
        return "unary", UNARY[rng.integers(len(UNARY))], drawn(rng, count, depth + 1)
    if kind == 4:
        return "binary", BINARY[rng.integers(len(BINARY))], read, drawn(rng, count, depth + 1)
    if kind <= 6:
        branches = drawn(rng, count, depth + 1), drawn(rng, count, depth + 1)
        return "cond", read, rng.normal(), *branches
    return "scan" if kind == 7 else "while", read, int(rng.integers(1, 3)), drawn(rng, count + 1, depth + 1)


def evaluated(expression, values):
    """What an expression is; the body of a loop reads the state as a further value."""
    match expression:
        case "value", at:
            return values[at] * 1.0
        case "unary", op, of:
            return op(evaluated(of, values))
        case "binary", op, at, of:
            return op(values[at], evaluated(of, values))
        case "cond", at, limit, then, otherwise:
            return g.cond(values[at] > limit, lambda: evaluated(then, values), lambda: evaluated(otherwise, values))
        case "scan", at, length, body:
            return g.scan(lambda s, _: (evaluated(body, [*values, s]) * 0.5, ()), values[at], length=length)[0]
        case "while", at, rounds, body:
            start = values[at] * 1.0, g.astype(values[at] > 0, np.int64)  # some loops have no round
            return g.while_loop(
                lambda s: s[1] < rounds, lambda s: (evaluated(body, [*values, s[0]]) * 0.5, s[1] + 1), start
            )[0]


def program(seed):
    """f64[3] -> f64[]: some values that are computed before, and an expression that reads some of them."""
    rng = np.random.default_rng(seed)
    before, last = [drawn(rng, 3 + i, depth=2) for i in range(3)], drawn(rng, 6)

    def f(x):
        values = [x[0], x[1], x[2]]
        for expression in before:
            values.append(evaluated(expression, values))
        return evaluated(last, values)

    return f


def check(seed):
    f = program(seed)
    wanted, found = dynamic.value_and_grad(f), static.jit(static.value_and_grad(f))
    with np.errstate(all="ignore"):
        for x in np.random.default_rng(seed).normal(size=(4, 3)):
            x[0] = 0.0 if seed % 3 == 0 else x[0]
            for one, other in zip(g.tree.leaves(wanted(x)), g.tree.leaves(found(x)), strict=True):
                np.testing.assert_allclose(other, one, rtol=1e-9)


@pytest.mark.parametrize("seeds", [range(15), pytest.param(range(15, 40), marks=pytest.mark.slow)], ids=str)
def test_gradients_are_those_of_the_tape_where_some_branches_have_none(seeds):
    check_each(seeds, check)


@pytest.mark.slow
def test_many_gradients_are_those_of_the_tape_where_some_branches_have_none():
    check_each(range(40, 1000), check)
