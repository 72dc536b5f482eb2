"""What a branch that is not taken reads, or a loop without rounds, does not reach the gradient: as on a tape."""

import numpy as np
import pytest

import dynamic
import graphs as g
import static
from graphs import op as registry
from graphs.errors import GraphError
from graphs.testing.samples import samples
from tests.helpers.backends import BACKENDS
from tests.helpers.together import check_each, together

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


# Each op ----------------------------------------------------------------------------------------------------------

HARD = (0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 3.0, 1e-300, 700.0, -700.0, 1e150, -1e150, 1e300, np.inf, -np.inf)


def own(name, forward, rule):
    """An op of a user's, which no other test finds."""
    op = g.custom_op(f"untaken_{name}", forward, vjp=rule)
    return registry._registry.pop(op.name)


root = own("root", lambda x: x**0.5, lambda g_, out: g.divide(g_, g.multiply(out, 2)))
cube = own("cube", lambda x: x**3, lambda g_, x: g.multiply(g_, g.multiply(3, g.square(x))))
endless = own("endless", lambda x: x * 2.0, lambda g_: g.multiply(g_, np.inf))
unsolved = own("unsolved", lambda x: x * 2.0, lambda g_: g.linalg.solve(np.zeros((3, 3)), g_))
OWN = {root: (np.zeros(3),), cube: (np.zeros(3),), endless: (np.zeros(3),), unsolved: (np.zeros((3, 3)),)}


def differentiable():
    """The ops that have a gradient and can be called: those of the library, and a user's."""
    ops = [op for op in registry.registered_ops().values() if op.differentiable and op.name != "observe"]
    return [*OWN, *(op for op in ops if op.family not in ("control", "effect", "custom"))]


def prepared(op):
    """Operands and options of a call of an op."""
    if op in OWN:
        return list(OWN[op]), {}
    calls = [sample.prepared() for sample in samples(op.name)]
    inputs, attrs = next((inputs, attrs) for inputs, attrs in calls if all(np.size(x) for x in inputs))
    return [np.asarray(x) for x in inputs], attrs


def hard(op, arrays):
    """The same operands with hard values, each alone and mixed; LAPACK may not come back from infinities."""
    rng = np.random.default_rng(0)
    values = [value for value in HARD if np.isfinite(value) or op.family != "solver"]
    for fill in (*values, None, None, None):
        filled = [rng.choice(values, x.shape) if fill is None else np.full(x.shape, fill) for x in arrays]
        yield [new.astype(x.dtype) if x.dtype.kind == "f" else x for new, x in zip(filled, arrays, strict=True)]
        for i, x in enumerate(arrays):
            if len(arrays) > 1 and x.dtype.kind == "f":
                yield [*arrays[:i], filled[i].astype(x.dtype), *arrays[i + 1 :]]


@pytest.mark.filterwarnings("ignore")
@together("op", differentiable(), ids=lambda op: op.name, quick=40)
def test_no_op_reaches_the_gradient_from_a_branch_that_is_not_taken(op):
    """Before a branch that is not taken an op does not reach the gradient, as on the tape, whatever the values are."""
    arrays, attrs = prepared(op)
    for place, x in enumerate(arrays):
        if x.dtype.kind != "f" or op.rule(place) is None:
            continue

        def f(x, chosen, *others, place=place):
            y = g.sum(op.apply([*others[:place], x, *others[place:]], attrs))
            return g.cond(chosen > 0, lambda: y * 1.0, lambda: g.sum(x * 2.0))

        compiled = None
        for values in hard(op, arrays):
            args = values[place], np.array(0.0), *values[:place], *values[place + 1 :]
            with np.errstate(all="ignore"):
                try:
                    wanted = dynamic.grad(f)(*args)
                except GraphError:  # the op itself has no value here
                    continue
                compiled = compiled or static.compile(static.grad(f), *args)
                np.testing.assert_array_equal(compiled(*args), wanted, f"input {place}")


def before_cond(op, x):
    y = op(x)
    return g.cond(g.sum(x) > 1e200, lambda: g.sum(y), lambda: g.sum(x * 2.0))


def before_one_of_three(op, x):
    y = op(x)
    branches = lambda: g.sum(y), lambda: g.sum(x * 2.0), lambda: g.sum(x * 3.0)
    return g.switch(g.astype(g.sum(x) < 1e200, np.int64) * 2, branches)


def before_a_loop_without_rounds(op, x):
    y = op(x)
    return g.while_loop(lambda s: g.sum(s) > 1e200, lambda s: s * g.sum(y), x * 2.0).sum()


def in_the_state_of_a_scan(op, x):
    def step(state, _):
        a, b = state
        r = op(b)
        is_small = g.sum(a) < 1e200
        return (a * 3.0, g.cond(is_small, lambda: b * 1.0, lambda: r)), ()

    return g.sum(g.scan(step, (x, x), None, length=2)[0][0])


def in_a_state_that_is_left(op, x):
    """A state that the last round makes, and nothing reads."""
    return g.sum(g.scan(lambda s, _: ((s[0] * 2.0 + g.where(s[1] > 0, 1, 1), op(s[1])), ()), (x, x), length=2)[0][0])


def in_a_branch_around_another(op, x):
    y = op(x)

    def inner():
        return g.cond(g.sum(x) > 1e200, lambda: g.sum(y), lambda: g.sum(x))

    return g.cond(g.sum(x) < 1e200, inner, lambda: g.sum(op(y)))


PLACES = (
    before_cond, before_one_of_three, before_a_loop_without_rounds, in_the_state_of_a_scan, in_a_state_that_is_left,
    in_a_branch_around_another,
)  # fmt: skip
WAYS = {
    "first": (lambda engine: engine.grad, {}),
    "second": (lambda engine: lambda f: engine.grad(lambda x: g.sum(engine.grad(f)(x) * x)), {}),
    **{backend: (lambda engine: engine.grad, {"backend": backend}) for backend in BACKENDS[1:]},
}
POISON = {
    "sqrt": (g.sqrt, 0.0), "a user's root": (root, 0.0), "a user's infinity": (endless, 1.0), "remainder":
    (lambda x: g.remainder(1.0 + x * 0, x), 0.0), "erfinv": (g.special.erfinv, 1.0), "overflow": (cube, 1e160),
    "an infinite constant": (lambda x: x * np.inf, 3.0), "zeta": (lambda x: g.special.zeta(2.0, x), 0.0),
    "slogdet": (lambda x: x * g.linalg.slogdet(g.expand_dims(x, 0) * np.ones((1, 1)))[1], 0.0),
}  # fmt: skip
CASES = [
    (place, way, poison)
    for place in PLACES
    for way in WAYS
    for poison in POISON
    if not (place is before_a_loop_without_rounds and way == "second")  # a graph has it with a limit alone
]


@pytest.mark.filterwarnings("ignore")
@together("place,way,poison", CASES, ids=lambda part: getattr(part, "__name__", part), quick=8)
def test_what_no_round_and_no_branch_reads_does_not_reach_the_gradient_at_any_order(place, way, poison):
    (derivative, options), (op, value) = WAYS[way], POISON[poison]
    x = np.array([value])
    with np.errstate(all="ignore"):
        wanted = derivative(dynamic)(lambda x: place(op, x))(x)
        assert np.isfinite(wanted).all()
        np.testing.assert_array_equal(static.jit(derivative(static)(lambda x: place(op, x)), **options)(x), wanted)


def test_a_rule_that_raises_runs_where_a_tape_would_run_it():
    def f(op, x, chosen):
        y = op(x)
        return g.cond(chosen > 0, lambda: g.sum(y), lambda: g.sum(x * 2.0))

    for op in (
        lambda x: g.linalg.slogdet(x)[1],
        lambda x: g.linalg.qr(x)[1],
        registry.get("lu"),
        unsolved,
    ):
        x, wanted = np.zeros((3, 3)), np.full((3, 3), 2.0)
        found = static.jit(static.grad(lambda x, chosen, op=op: f(op, x, chosen)))
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(found(x, np.array(0)), wanted)
            with pytest.raises(GraphError, match="singular"):
                found(x, np.array(1))
