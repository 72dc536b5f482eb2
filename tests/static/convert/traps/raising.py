"""Errors that a value decides: `raise` and `assert`, in branches and loops, and what may catch them."""

import contextlib
import math

import graphs as g
from tests.static.convert.table import refused, right


class DivergedError(ArithmeticError):
    pass


class SpokenError(Exception):
    def __init__(self, first, second):
        super().__init__(f"{first} and {second}")


def checked(value, most=2.0):
    if value > most:
        raise ValueError("too large")
    return value


@right
def raised_in_the_only_branch(x):
    total = g.sum(x)
    if total < 0:
        raise FloatingPointError("diverged")
    return total * 2


@right
def raised_in_else(x):
    if g.sum(x) > 0:
        y = g.sum(x * x)
    else:
        raise DivergedError("below zero")
    return y + 1


@right
def a_class_is_raised(x):
    if x[0] > 1:
        raise ZeroDivisionError
    return g.sum(x)


@right
def raised_from_another(x):
    if x[0] > 1:
        raise ValueError("outer") from KeyError("inner")
    return g.sum(x)


@right
def a_return_before_it(x):
    if g.sum(x) > 0:
        return x[0]
    if x[1] > 0:
        raise ValueError("second")
    return x[1]


@right
def the_first_of_two_errors(x):
    if x[0] > 0:
        raise ValueError("first")
    if x[1] > 0:
        raise OverflowError("second")
    return g.sum(x)


@right
def an_error_under_another_test(x):
    y = g.sum(x)
    if x[0] > 0:
        y = y * 2
        if x[1] > 0:
            raise ValueError("both are positive")
        y = y + 1
    return y


@right
def raised_by_a_helper_twice(x):
    return checked(x[0]) + checked(x[1] * 2, 1.0)


@right
def raised_in_one_value_of_two(x):
    return checked(g.sum(x)) if x[0] > 0 else x[1]


@right
def raised_after_and(x):
    return x[1] if x[0] > 0 and checked(g.sum(x)) > 0 else x[2]


@right
def raised_in_a_round(x):
    total = x[0] * 0
    for i in range(4):
        if x[i] > 2:
            raise OverflowError("a large one")
        total = total + x[i] * i
    return total


@right
def raised_in_a_loop_that_a_value_ends(x):
    y, rounds = g.sum(x * x) + 1, 0
    while y < 100:
        if rounds > 3:
            raise RuntimeError("too many rounds")
        y, rounds = y * 1.9, rounds + 1
    return y


@right
def raised_where_a_search_fails(x):
    for i in range(4):
        if x[i] > 1:
            y = x[i]
            break
    else:
        raise RuntimeError("nothing is above 1")
    return y * 2


@right
def an_error_in_a_loop_that_may_run_no_round(x):
    is_bad, y = x[0] > 0, g.sum(x * x)
    while y < 3:
        if is_bad:
            raise ValueError("bad")
        y = y * 2
    return y + 1 if is_bad else y - 1


@right
def an_error_in_a_branch_that_may_not_be_taken(x):
    is_bad, y = x[0] > 0, g.sum(x)
    if x[1] > 0:
        if is_bad:
            raise ValueError("bad")
        y = y * 2
    return y + 1 if is_bad else y - 1


@right
def an_assertion_with_words_made_of_what_is_known(x):
    assert x[0] < 1, f"of {len(x)} numbers the first is too large"
    return g.sum(x)


@right
def an_assertion_without_words(x):
    assert x[0] < 1
    return g.sum(x)


@right
def what_is_written_before_it_counts_where_nothing_is_raised(x):
    seen = {"total": x[0]}
    if x[1] > 0:
        seen["total"] = seen["total"] * 3
        if x[2] > 0:
            seen["total"] = None
            raise ValueError("lost")
    return seen["total"] + x[3]


@right
def a_final_clause_runs(x):
    y = g.sum(x)
    try:
        if y < 0:
            raise ValueError("negative")
    finally:
        y = y * 2
    return y


class Sometimes:
    def __init__(self, value):
        self.value, self.rounds = value, 0

    @property
    def positive(self):
        if self.value <= 0:
            raise AttributeError("positive")
        return self.value

    def __iter__(self):
        return self

    def __next__(self):
        self.rounds += 1
        if self.value * self.rounds > 2:
            raise StopIteration
        return self.value

    def __getitem__(self, number):
        if self.value * number > 2:
            raise IndexError
        return self.value


@refused
def an_attribute_that_is_not_there_for_some_values(x):
    return getattr(Sometimes(x[0]), "positive", x[1] * 5)


@refused
def an_iterator_that_a_value_ends(x):
    total = x[1] * 0
    for value in Sometimes(x[0] * x[0] + 0.5):
        total = total + value
    return total


@refused
def an_iterator_that_may_be_empty(x):
    return next(Sometimes(x[0] + 3), x[1] * 7)


@refused
def caught_in_place(x):
    try:
        if x[0] > 0:
            raise ValueError("positive")
        y = x[1]
    except ValueError:
        y = x[2]
    return y


@refused
def caught_by_the_caller(x):
    try:
        y = checked(x[0])
    except ValueError:
        y = x[2]
    return y


@refused
def suppressed(x):
    y = x[0]
    with contextlib.suppress(ValueError):
        y = checked(x[1])
    return y


@refused
def an_error_that_holds_the_value(x):
    if x[0] > 0:
        raise ValueError(x[0])
    return g.sum(x)


@refused
def an_error_whose_text_shows_the_value(x):
    if x[0] > 0:
        raise ValueError(f"{x[0]} is positive")
    return g.sum(x)


@refused
def an_error_that_cannot_be_made_again(x):
    if x[0] > 0:
        raise SpokenError("this", "that")
    return g.sum(x)


@refused
def a_value_shown_before_it(x):
    if x[0] > 0:
        g.print(x[0], "positive")
        raise ValueError("positive")
    return g.sum(x)


@refused
def both_sides_raise(x):
    if x[0] > 0:
        raise ValueError("positive")
    else:
        raise KeyError("negative")


@refused
def raised_by_a_library(x):
    return x[0] * math.sqrt(-1) if x[0] > 0 else x[1]
