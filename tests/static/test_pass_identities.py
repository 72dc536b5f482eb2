"""Every rule of the passes on signed zeros, infinities and NaN, read off the rules: what NumPy's kernels give.

Exact rules are tried on numbers at the ends of the range as well, and may change nothing but the bits of a NaN. The
others may round differently; where they differ in more, `ADMITTED` says in what, and docs/numerics.md why.
"""

from __future__ import annotations

import ast

import numpy as np
import pytest

import graphs as g
import static
from graphs import op as registry
from static.passes import reassociation, simplification
from static.passes.pipeline import REPLAY
from static.passes.simplification import remove_dead_code
from tests.helpers.specials import PLAIN, differences, numbers, pairs
from tests.helpers.together import check_each

FLOATS, INTS = ("float16", "float32", "float64"), ("int8", "int64", "uint8", "uint64")


def rows_and_factors(dtype, ends):
    """Every row of two numbers beside every number."""
    rows, factors = pairs(dtype, ends), numbers(dtype, ends)
    return [np.tile(rows, (len(factors), 1)), factors.repeat(len(rows))[:, None]]


# What a rule stands for, as a program -----------------------------------------------------------------------------


def written(pattern):
    """The names in a pattern that stand for operands, and the function of these that it is a pattern of."""
    tree = ast.parse(pattern, mode="eval")
    bound = {node.target.id for node in ast.walk(tree) if isinstance(node, ast.NamedExpr)}
    called = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call)}
    names = sorted({node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} - bound - called)
    code = compile(tree, "pattern", "eval")
    return names, lambda **values: eval(code, {name: registry.get(name) for name in called} | values)


def spread(names, dtypes, ends):
    """Arrays that hold every combination of numbers: s and t repeat along the axes of the others."""
    dtypes = dtypes if isinstance(dtypes, tuple) else (dtypes,)
    kinds = [bool if name == "condition" else dtypes[i % len(dtypes)] for i, name in enumerate(names)]
    flat = [numbers(kind, ends) for kind in kinds]
    found = [x.reshape([-1 if i == axis else 1 for i in range(len(names))]) for axis, x in enumerate(flat)]
    whole = [len(x) for x in flat]
    return [
        x if name in "st" else np.ascontiguousarray(np.broadcast_to(x, whole))
        for name, x in zip(names, found, strict=True)
    ]


def by_pattern(pattern, dtype, ends):
    """The pattern itself, of all combinations; `c` is each number in turn, as a constant."""
    names, function = written(pattern)
    constants = numbers(dtype[0] if isinstance(dtype, tuple) else dtype, ends) if "c" in names else [None]
    names = [name for name in names if name != "c"]

    def program(*arrays):
        values = dict(zip(names, arrays, strict=True))
        return [function(**values, **({} if c is None else {"c": np.asarray(c)})) for c in constants]

    return program, spread(names, dtype, ends)


def of_rows(function):
    """A program of rows of two numbers."""
    return lambda dtype, ends: (function, [pairs(dtype, ends)])


def by_constants(function, *shapes):
    """A program of products, with each number as a constant beside them."""

    def made(dtype, ends):
        x = numbers(dtype, ends)
        c = [np.asarray(one) for one in x]
        sides = [x.reshape(shape) if shape else pairs(dtype, ends) for shape in shapes]
        return lambda *arrays: [function(*arrays, one) for one in c], sides

    return made


def _centred(minus):
    """The gradient of a softmax, whose products are there."""

    def program(e, r, x):
        total = g.sum((e * r) * (x * r), axis=-1, keepdims=True)
        return [(x * r - total if minus else x * r + (0 - total)) * e, e * r + 1]

    return lambda dtype, ends: (program, [pairs(dtype, ends), numbers(dtype, ends).repeat(len(PLAIN))[:, None],
                                          np.roll(pairs(dtype, ends), 3)])  # fmt: skip


def _weighted(dtype, ends):
    """A sum of products with scores, where the same weights are applied to the values."""
    p = np.concatenate([pairs(dtype, ends), np.ones((len(pairs(dtype, ends)), 2), dtype)], axis=1)
    v = np.array([[1.0], [2.0], [0.5], [1.0]], dtype)
    return lambda p, d, v: [p @ v, g.sum(p * (d @ v.T), axis=-1)], [p, np.roll(p, 7)[:, :1].copy(), v]


# Where operands need options, or have to be shared.
PROGRAMS = {
    "astype(x)": lambda dtype, ends: (lambda x: [g.astype(x, x.dtype)], [numbers(dtype, ends)]),
    "astype(wider := astype(x))": lambda dtype, ends: (
        lambda x: [g.astype(g.astype(x, "float64"), to) for to in FLOATS], [numbers(dtype, ends)]),
    "max(x)": lambda dtype, ends: (lambda x: [g.max(x, axis=0)], [numbers(dtype, ends)[None]]),
    "min(x)": lambda dtype, ends: (lambda x: [g.min(x, axis=0)], [numbers(dtype, ends)[None]]),
    "x / y": by_constants(lambda x, c: x / c, (-1,)),
    "pow(x, (half := 0.5))": lambda dtype, ends: (
        lambda x, one: [x**0.5, one**0.5, one[0] ** 0.5], [numbers(dtype, ends), numbers(dtype, ends)[:1]]),
    "(p := a @ b) * c": by_constants(lambda a, b, c: (a @ b) * c, (-1, 1), (1, -1)),
    "(p := x * c) @ b": by_constants(lambda x, c: (x * c) @ np.ones((2, 1), x.dtype), None),
    "b @ (p := x * c)": by_constants(lambda x, c: np.ones((1, 2), x.dtype) @ (x * c), (2, -1)),
    "sum(x)": lambda dtype, ends: (
        lambda x, s: [g.sum(x * s, axis=1), g.sum(s, axis=1)], rows_and_factors(dtype, ends)),
    "mean(x)": lambda dtype, ends: (
        lambda x, s: [g.mean(x * s, axis=1), g.mean(s, axis=1)], rows_and_factors(dtype, ends)),
    "sum(p := -x)": of_rows(lambda x: [g.sum(-x, axis=1), g.sum(-x, axis=0)]),
    "mean(p := -x)": of_rows(lambda x: [g.mean(-x, axis=1)]),
    "(p := a * b) * c": lambda dtype, ends: (
        lambda a, b, c: [(b * c) - 1, (a * b) * c], spread("abd", dtype, ends)),
    "reciprocal(x)": lambda dtype, ends: (
        lambda x, y: [g.reciprocal(x), y / x], spread("xy", dtype, ends)),
    "(d := (p := x * r) - (less := sum(w))) * e": _centred(True),
    "(d := (p := x * r) + (0 - (less := sum(w)))) * e": _centred(False),
    "sum(w := p * (scores := d @ v))": _weighted,
}  # fmt: skip


# What may differ --------------------------------------------------------------------------------------------------


def tried(pattern, one, dtype, ends):
    """Whether a pass changed the program of a rule, and in what the results differ then."""
    program, arrays = PROGRAMS.get(pattern, lambda *given: by_pattern(pattern, *given))(dtype, ends)
    plain, changed = (static.compile(program, *arrays, passes=p) for p in (REPLAY, (one, remove_dead_code)))
    is_changed = str(plain.graph) != str(changed.graph)
    results = zip(changed(*arrays), plain(*arrays), strict=True)
    return is_changed, set().union(*(differences(found, expected) for found, expected in results))


# Terms that cancel before they are multiplied give a zero of another sign, and of infinities not NaN.
ADMITTED = {
    "(p := a @ b) * c": {"sign of zero"},
    "(d := (p := x * r) - (less := sum(w))) * e": {"NaN", "sign of zero"},
    "sum(w := p * (scores := d @ v))": {"NaN"},
    "sum(x)": {"NaN", "sign of zero"},
    "mean(x)": {"NaN", "sign of zero"},
    "add(p := x * s, q := y * s)": {"NaN", "sign of zero"},
    "(p := x * s) - (q := y * s)": {"NaN", "sign of zero"},
}


def check_rules(rules, one, dtypes, ends, rounding=frozenset()):
    """Every rule changes its program for some dtype, and nothing but what is admitted in the results."""

    def check(pattern):
        used, seen = False, set()
        for dtype in dtypes:
            try:
                is_changed, found = tried(pattern, one, dtype, ends)
            except g.GraphError:
                continue  # no op for this dtype
            used, seen = used or is_changed, seen | found
        assert used, "no program fits this rule"
        assert seen - rounding == ADMITTED.get(pattern, set()), seen

    with np.errstate(all="ignore"):
        check_each(dict.fromkeys(pattern for pattern, *_ in rules), check)


def test_exact_rules_keep_every_bit():
    check_rules(simplification.RULES, simplification.simplify_algebra, (*FLOATS, *INTS, "bool"), ends=True)


@pytest.mark.slow
def test_exact_rules_of_operands_of_two_dtypes_keep_every_bit():
    dtypes = ("float32", "float64", "int64", "uint8")
    mixed = [(one, other) for one in dtypes for other in dtypes if one != other]
    several = [rule for rule in simplification.RULES if rule[0] not in PROGRAMS and len(written(rule[0])[0]) > 1]
    check_rules(several, simplification.simplify_algebra, mixed, ends=True)


def test_other_rules_keep_zeros_infinities_and_nan():
    check_rules(
        reassociation.RULES, reassociation.reassociate, ("float32", "float64"), ends=False, rounding={"rounding"}
    )
