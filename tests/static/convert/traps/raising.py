"""Errors that a value decides: `raise` and `assert`, in branches and loops, and what may catch them."""

import graphs as g
from tests.static.convert.table import refused, right, rows


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
def an_error_under_another_test(x):
    y = g.sum(x)
    if x[0] > 0:
        y = y * 2
        if x[1] > 0:
            raise ValueError("both are positive")
        y = y + 1
    return y


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
def both_sides_raise(x):
    if x[0] > 0:
        raise ValueError("positive")
    else:
        raise KeyError("negative")


@right
def an_assertion_with_words_made_of_what_is_known(x):
    assert x[0] < 1, f"of {len(x)} numbers the first is too large"
    return g.sum(x)


@right
def an_assertion_without_words(x):
    assert x[0] < 1
    return g.sum(x)


@refused
def an_attribute_that_is_not_there_for_some_values(x):
    return getattr(Sometimes(x[0]), "positive", x[1] * 5)


@refused
def an_error_that_holds_the_value(x):
    if x[0] > 0:
        raise ValueError(x[0])
    return g.sum(x)


@refused
def an_error_that_cannot_be_made_again(x):
    if x[0] > 0:
        raise SpokenError("this", "that")
    return g.sum(x)


rows(
    __name__,
    right="""
total = g.sum(x) | if total < 0: raise FloatingPointError("diverged") | total * 2
if g.sum(x) > 0: y = g.sum(x * x) | else: raise DivergedError("below zero") | y + 1
if x[0] > 1: raise ZeroDivisionError | g.sum(x)
if x[0] > 1: raise ValueError("outer") from KeyError("inner") | g.sum(x)
if g.sum(x) > 0: return x[0] | if x[1] > 0: raise ValueError("second") | x[1]
if x[0] > 0: raise ValueError("first") | if x[1] > 0: raise OverflowError("second") | g.sum(x)
checked(x[0]) + checked(x[1] * 2, 1.0)
checked(g.sum(x)) if x[0] > 0 else x[1]
x[1] if x[0] > 0 and checked(g.sum(x)) > 0 else x[2]
""",
    refused="""
total = x[1] * 0 | for value in Sometimes(x[0] * x[0] + 0.5): total = total + value | total
next(Sometimes(x[0] + 3), x[1] * 7)
y = x[0] | with contextlib.suppress(ValueError): y = checked(x[1]) | y
if x[0] > 0: raise ValueError(f"{x[0]} is positive") | g.sum(x)
if x[0] > 0: g.print(x[0], "positive"); raise ValueError("positive") | g.sum(x)
x[0] * math.sqrt(-1) if x[0] > 0 else x[1]
""",
)
