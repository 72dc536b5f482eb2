"""Errors that the run of a graph raises because the user's code says so: which, where, and what they leave behind."""

import inspect
import sys

import numpy as np
import pytest

import graphs as g
import static
from graphs.errors import ArtifactError, ControlFlowError
from tests.static.convert.traps import raising

GOOD, BAD = np.ones(3), np.array([1.0, np.nan, 2.0])
BACKENDS = ("numpy", "native")


class DivergedError(ArithmeticError):
    def __init__(self, text, step=0):
        super().__init__(text, step)
        self.step = step


def loss(w, step):
    y = g.mean(w * w)
    if not g.isfinite(y):
        raise DivergedError("the loss is not finite", 7)
    return y * step


@pytest.mark.parametrize("backend", BACKENDS)
def test_each_run_raises_an_error_of_its_own_with_the_arguments_and_the_line(backend):
    if backend == "native":
        pytest.importorskip("llvmlite")
    compiled = static.jit(static.value_and_grad(loss), convert=True, backend=backend)
    value, gradient = compiled(GOOD, 2.0)
    assert value == 2.0
    np.testing.assert_allclose(gradient, 4 / 3 * GOOD)
    errors = []
    for _ in range(2):
        with pytest.raises(DivergedError) as caught:
            compiled(BAD, 2.0)
        errors.append(caught.value)
    first, second = errors
    assert first is not second
    assert first.args == second.args == ("the loss is not finite", 7)
    assert first.step == 7
    line = inspect.getsourcelines(loss)[1] + 3
    assert first.__notes__ == second.__notes__ == [f"raised at test_raising.py:{line}"]
    assert compiled(GOOD, 3.0)[0] == 3.0  # the executable runs on


@pytest.mark.parametrize("kind", [ValueError, OverflowError, RuntimeError, NotImplementedError, FloatingPointError])
def test_an_error_of_any_kind_stays_what_it_is(kind):
    def f(x):
        if x[0] > 0:
            raise kind("as it is")
        return x

    with pytest.raises(kind, match="as it is") as caught:
        static.jit(f, convert=True)(GOOD)
    assert type(caught.value) is kind


def test_sys_exit_ends_the_run():
    def f(x):
        if g.any(g.isnan(x)):
            sys.exit(3)
        return g.sum(x)

    compiled = static.jit(f, convert=True)
    assert compiled(GOOD) == 3.0
    with pytest.raises(SystemExit) as caught:
        compiled(BAD)
    assert caught.value.code == 3


@pytest.mark.parametrize(
    ("f", "args"),
    [
        (raising.an_assertion_with_words_made_of_what_is_known, ("of 4 numbers the first is too large",)),
        (raising.an_assertion_without_words, ()),
    ],
)
def test_an_assertion_has_its_words_or_none(f, args):
    compiled = static.jit(f, convert=True)
    assert compiled(np.zeros(4)) == 0
    with pytest.raises(AssertionError) as caught:
        compiled(np.ones(4))
    assert caught.value.args == args


def test_only_the_first_error_of_a_run_is_raised_and_in_the_order_of_the_code():
    def f(x):
        total = g.sum(x) * 0
        for i in range(3):
            if x[i] > 1:
                raise ValueError(f"number {i}")
            total = total + x[i]
        if total < 0:
            raise ArithmeticError("below zero")
        return total

    compiled = static.jit(f, convert=True)
    assert compiled(np.array([1.0, 0.5, 0.5])) == 2.0
    with pytest.raises(ValueError, match="number 1"):
        compiled(np.array([-9.0, 2.0, 3.0]))
    with pytest.raises(ArithmeticError, match="below zero"):
        compiled(np.array([-9.0, 0.0, 0.0]))


@pytest.mark.parametrize(
    ("f", "why"),
    [
        (raising.caught_in_place, "a `try` or `with` around it may catch it"),
        (raising.caught_by_the_caller, "a `try` or `with` around it may catch it"),
        (raising.an_error_that_holds_the_value, "it holds a value that only the run knows"),
        (raising.an_attribute_that_is_not_there_for_some_values, "Python itself catches such an error"),
        (raising.an_error_that_cannot_be_made_again, "SpokenError cannot be made again from its `args`"),
    ],
)
def test_an_error_that_a_graph_cannot_raise_is_refused_and_says_why(f, why):
    with pytest.raises(ControlFlowError, match=f"is raised where only the run knows .*and {why}"):
        static.jit(f, convert=True)(np.ones(4))


def test_a_graph_that_raises_is_not_saved(tmp_path):
    compiled = static.compile(static.converted(loss), GOOD, np.float64(2.0))
    with pytest.raises(ArtifactError, match=r"require holds an error of Python's, DivergedError .*take it out"):
        compiled.save(tmp_path / "step.gd")


@pytest.mark.parametrize("shapes", ["exact", "symbolic", "pad"])
def test_padding_reaches_no_test_that_raises(shapes):
    def f(x):
        if g.min(x) <= 0:
            raise ValueError("positive numbers only")
        return g.sum(x)

    policy = {} if shapes == "exact" else {"shapes": shapes, "dims": (("n",),)}
    compiled = static.jit(f, convert=True, **policy)
    for length in (3, 5, 6):
        assert compiled(np.ones(length)) == length
        with pytest.raises(ValueError, match="positive numbers only"):
            compiled(np.arange(length) * 1.0)
