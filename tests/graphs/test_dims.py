"""Symbolic dimensions: algebra checked by evaluation, one normal form, comparisons, solving and printing."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from graphs import ControlFlowError, Dim, ShapeError, dim, dims

NAMES = ("B", "T", "n_heads")
B, T, N = map(dim, NAMES)


@st.composite
def values(draw):
    """A value for each name; 0 and 1 often, since that is where laws break."""
    sizes = st.one_of(st.sampled_from([0, 1]), st.integers(0, 50))
    return {name: draw(sizes) for name in NAMES}


def expressions(divisions=True):
    leaves = st.one_of(st.integers(-4, 6), st.sampled_from(NAMES).map(dim))
    binary = [lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b, dims.maximum, dims.minimum]

    def deeper(inner):
        arithmetic = st.builds(lambda f, a, b: f(a, b), st.sampled_from(binary), inner, inner)
        divided = st.builds(
            lambda f, a, n: f(a, n),
            st.sampled_from([lambda a, n: a // n, lambda a, n: a % n]),
            inner,
            st.integers(1, 4),
        )
        return st.one_of(arithmetic, divided) if divisions else arithmetic

    return st.recursive(leaves, deeper, max_leaves=6)


polynomials = st.recursive(
    st.one_of(st.integers(-4, 6), st.sampled_from(NAMES).map(dim)),
    lambda inner: st.builds(
        lambda f, a, b: f(a, b), st.sampled_from([lambda a, b: a + b, lambda a, b: a * b]), inner, inner
    ),
    max_leaves=6,
)


def at(size, names):
    return dims.evaluate(size, names)


# Algebra ----------------------------------------------------------------------------------------------------------


@given(expressions(), expressions(), values())
def test_arithmetic_is_that_of_the_values(a, b, names):
    x, y = at(a, names), at(b, names)
    assert at(a + b, names) == x + y
    assert at(a - b, names) == x - y
    assert at(a * b, names) == x * y
    assert at(-a, names) == -x
    assert at(dims.maximum(a, b), names) == max(x, y)
    assert at(dims.minimum(a, b), names) == min(x, y)


@given(expressions(), expressions(), values())
def test_division_is_exact(a, b, names):
    x, y = at(a, names), at(b, names)
    assume(y != 0)
    assert at(a // b if isinstance(b, Dim) or b else 0, names) == x // y
    assert at(a % b, names) == x % y


@given(polynomials, polynomials, polynomials)
def test_ring_laws_hold_in_the_normal_form(a, b, c):
    assert dims.same(a + b, b + a)
    assert dims.same(a * b, b * a)
    assert dims.same((a + b) + c, a + (b + c))
    assert dims.same((a * b) * c, a * (b * c))
    assert dims.same(a * (b + c), a * b + a * c)
    assert dims.same(a - a, 0)
    assert dims.same(a * 1 + 0, a)


@given(polynomials, st.integers(1, 5))
def test_what_divides_divides_away(a, n):
    assert dims.same(a * n // n, a)
    assert dims.same(a * n % n, 0)
    assert dims.same(a * B // B, a)
    assert dims.same(a * B % B, 0)


def test_normal_form_does_not_depend_on_the_order_of_writing():
    sums = {str(a + b + c) for a, b, c in itertools.permutations((dim("B"), dim("T"), dim("B") * dim("T")))}
    assert sums == {"B*T+B+T"}
    for _ in range(50):  # fresh objects: identity must not matter
        assert dims.same(dim("B") + dim("T"), dim("T") + dim("B"))
        assert hash(dim("B") * dim("T")) == hash(dim("T") * dim("B"))


@given(expressions(), expressions(), values())
def test_the_same_text_is_the_same_value(a, b, names):
    if str(a) == str(b):
        assert at(a, names) == at(b, names)
    assert dims.same(a, b) == (str(a) == str(b))


@given(expressions(), values())
def test_text_is_python_for_the_value(a, names):
    assert eval(str(a), {"max": max, "min": min}, names) == at(a, names)


def test_functions_that_look_alike_stay_apart():
    assert not dims.same((B // T) // 2, B // (T // 2))
    assert not dims.same(-(B // 2), -B // 2)
    assert not dims.same(dims.maximum(-(B // 2), T), dims.maximum(-B // 2, T))
    assert not dims.same(B % (T % 3), B % T % 3)


@given(expressions())
def test_symbols_are_the_names_in_the_text(a):
    assert dims.symbols(a) == {name for name in NAMES if name in str(a)}


# Printing ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (B, "B"),
        (B + 1, "B+1"),
        (1 - B, "-B+1"),
        (2 * B * T - 3, "2*B*T-3"),
        (T + B, "B+T"),
        ((B + 1) * (B - 1), "B*B-1"),
        ((B + 1) // 2, "(B+1)//2"),
        ((B + 1) % 2, "(B+1)%2"),
        (2 * ((B + 1) // 2), "2*((B+1)//2)"),
        (T * (B // 2), "(B//2)*T"),
        (-(B // 2), "-(B//2)"),
        (-B // 2, "(-B)//2"),
        ((B // 2) // 2, "(B//2)//2"),
        (T // (2 * B), "T//(2*B)"),
        (7 // B, "7//B"),
        (dims.maximum(B, T), "max(B, T)"),
        (dims.minimum(B, 5), "min(B, 5)"),
        (B - B, "0"),
        (N, "n_heads"),
    ],
)
def test_printing(size, text):
    assert str(size) == text


# Comparing --------------------------------------------------------------------------------------------------------

COMPARISONS = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


@given(expressions(), expressions(), values(), st.sampled_from(sorted(COMPARISONS)))
def test_a_comparison_is_right_or_refused(a, b, names, sign):
    compare = COMPARISONS[sign]
    try:
        answer = compare(a, b)
    except ControlFlowError:
        assert isinstance(a, Dim) or isinstance(b, Dim)
    else:
        assert answer == compare(at(a, names), at(b, names))


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        (lambda: B >= 0, True),
        (lambda: B < 0, False),
        (lambda: B + 1 > 0, True),
        (lambda: B + 1 > B, True),
        (lambda: B <= B, True),
        (lambda: B * T == T * B, True),
        (lambda: B == B + 1, False),
        (lambda: B // 2 >= 0, True),
        (lambda: bool(B + 1), True),
        (lambda: B + 1 >= 1, True),
        (lambda: dims.maximum(B, 0) == B, True),
        (lambda: dims.minimum(B, B + 1) == B, True),
        (lambda: B == "B", False),
    ],
)
def test_what_holds_for_every_size_is_decided(question, answer):
    assert question() is answer


@pytest.mark.parametrize(
    ("question", "text"),
    [
        (lambda: B == T, "B == T"),
        (lambda: B > 0, "B > 0"),
        (lambda: B <= T, "B <= T"),
        (lambda: B < 3, "B < 3"),
        (lambda: B >= 1, "B >= 1"),
        (lambda: bool(B), "B == 0"),
        (lambda: B in (1, 2), "B == 1"),
    ],
)
def test_what_depends_on_the_size_is_refused_as_written_with_the_line(question, text):
    with pytest.raises(ControlFlowError) as caught:
        question()
    assert str(caught.value).startswith(f"`{text}` depends on a symbolic dimension (test_dims.py:")
    assert "shapes='exact'" in str(caught.value)


@pytest.mark.parametrize("use", [int, range, lambda d: [1, 2, 3][d]])
def test_a_dim_has_no_number(use):
    with pytest.raises(ControlFlowError, match=r"B has no value while the graph is traced \(test_dims.py:\d+\)"):
        use(B)


def test_names_are_identifiers():
    for wrong in ("", "2B", "a b", "T+1", "B\n"):
        with pytest.raises(ShapeError, match="identifiers"):
            dim(wrong)


# Solving ----------------------------------------------------------------------------------------------------------


@given(
    values(),
    st.lists(st.one_of(expressions(), st.sampled_from(NAMES).map(dim)), max_size=3),
    st.randoms(use_true_random=False),
)
def test_solving_finds_the_values_back(names, extra, random):
    axes = [*map(dim, NAMES), *extra]
    random.shuffle(axes)
    expected = [(f"arg{i}", (axis, 7)) for i, axis in enumerate(axes)]
    actual = [(at(axis, names), 7) for axis in axes]
    assume(all(size >= 0 for size, _ in actual))
    assert dims.solve(expected, actual) == names


@given(values(), st.integers(1, 4), st.integers(0, 3))
def test_expressions_of_degree_one_are_solved_in_any_order(names, scale, offset):
    chain = [scale * B + offset, B + T, T + N]
    shapes = [(at(axis, names),) for axis in chain]
    for order in itertools.permutations(range(3)):
        found = dims.solve([(f"arg{i}", (chain[i],)) for i in order], [shapes[i] for i in order])
        assert found == names


def test_zero_and_one_are_sizes_like_any_other():
    assert dims.solve([("x", (B, B * T)), ("y", (T,))], [(0, 0), (5,)]) == {"B": 0, "T": 5}
    assert dims.solve([("x", (B, 2 * T + 1))], [(1, 1)]) == {"B": 1, "T": 0}


@pytest.mark.parametrize(
    ("expected", "actual", "message"),
    [
        ([("x", (B,)), ("y", (B,))], [(3,), (4,)], "y: dimension B is 3 from the other inputs, but 4 here"),
        (
            [("x", (B,)), ("y", (2 * B + 1,))],
            [(3,), (8,)],
            r"y: dimension 2\*B\+1 is 7 from the other inputs, but 8 here",
        ),
        ([("x", (B, 2))], [(3, 4)], "x: a dimension compiled as 2 is 4; compile again, or make it symbolic"),
        ([("x", (2 * B + 1,))], [(8,)], r"x: no B >= 0 makes the dimension 2\*B\+1 equal 8"),
        ([("x", (B + 3,))], [(1,)], r"x: no B >= 0 makes the dimension B\+3 equal 1"),
        ([("x", (B * T,)), ("y", (B,))], [(7,), (2,)], r"x: no T >= 0 makes the dimension B\*T equal 7"),
        ([("x", (B * T,))], [(6,)], "no input fixes the dimension B, T; name it alone in an axis"),
    ],
)
def test_a_contradiction_names_the_argument_the_dimension_and_both_values(expected, actual, message):
    with pytest.raises(ShapeError, match=message):
        dims.solve(expected, actual)


@pytest.mark.parametrize(("size", "value"), [(B * B, 9), (B // 2, 3), (dims.maximum(B, 2), 5)])
def test_what_is_not_linear_is_not_solved_for_and_not_called_impossible(size, value):
    with pytest.raises(ShapeError, match="no input fixes the dimension B"):
        dims.solve([("x", (size,))], [(value,)])


def test_what_is_not_linear_is_still_checked():
    assert dims.solve([("x", (B // 2,)), ("y", (2 * B + 1,))], [(3,), (13,)]) == {"B": 6}
    with pytest.raises(ShapeError, match="x: dimension B//2 is 3 from the other inputs, but 4 here"):
        dims.solve([("x", (B // 2,)), ("y", (2 * B + 1,))], [(4,), (13,)])


def test_a_size_that_no_number_tells_is_an_error_of_ours():
    with pytest.raises(ShapeError, match="nothing tells the size T; name it in the shape of an input"):
        dims.evaluate(dims.dim("B") * dims.dim("T"), {"B": 2})
    with pytest.raises(ShapeError, match="divides by a size of 0"):
        dims.evaluate(dims.dim("B") // dims.dim("T"), {"B": 2, "T": 0})
