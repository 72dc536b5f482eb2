"""Effects: exceptions, with, prints, chance, iterators and state that outlives the call."""

import contextlib
import random

import graphs as g
from tests.static.convert.table import refused, right, rows

CHANCE = random.Random(3)
KEPT = {"total": 0.0}
SEEN = []
LIMIT = 1.5
count = 0.0


class Meter:
    def __init__(self):
        self.reading = 0.0


METER = Meter()


class Guard:
    def __enter__(self):
        return 2.0

    def __exit__(self, *error):
        return False


@refused
def raised_in_a_branch(x):
    try:
        if g.sum(x) > 0:
            raise ValueError("positive")
        y = g.sum(x)
    except ValueError:
        y = g.sum(x) * 5
    return y


@right
def raised_by_a_helper(x):
    def checked(value):
        if value < -100:
            raise ArithmeticError("too small")
        return value

    return checked(g.sum(x)) * 2


@right
def an_exception_that_structure_raises(x):
    try:
        y = [x[0], x[1]][x.shape[0]]
    except IndexError as error:
        y = x[1] * len(error.args)
    return y if y > 0 else y * 2


@refused
def a_refusal_is_not_swallowed(x):
    try:
        parts = [x[0]]
        if g.sum(x) > 0:
            parts.append(x[1])
        y = g.sum(g.stack(parts))
    except Exception:
        y = g.sum(x) * 5
    return y


@refused
def a_refusal_is_not_swallowed_by_finally(x):
    for _ in range(1):
        try:
            y = g.sum(x[x > 0])
        finally:
            y = g.sum(x) * 5
            break
    return y


@right
def a_try_around_a_branch(x):
    try:
        y = g.sum(x) if g.sum(x) > 0 else g.sum(x) * 2
    except ValueError:
        y = g.sum(x) * 5
    return y


@right
def return_through_finally(x):
    n = 0.0
    try:
        if g.sum(x) > 0:
            return g.sum(x)
        n = 1.0
    finally:
        n = n + 1
    return g.sum(x) * n


@right
def break_in_a_try(x):
    total = x[0] * 0
    for value in x:
        try:
            if value > 1:
                break
            total = total + value
        finally:
            total = total + 0.25
    return total


@right
def return_out_of_a_with(x):
    with Guard() as factor:
        if g.sum(x) > 0:
            return g.sum(x) * factor
    return g.sum(x)


@right
def a_with_inside_a_branch(x):
    y = g.sum(x)
    if y > 0:
        with Guard() as factor:
            y = y * factor
    return y


@right
def a_with_of_the_library(x):
    with contextlib.nullcontext(x) as same:
        return g.sum(same) if same[0] > 0 else same[1]


@refused
def an_attribute_of_a_function(x):
    an_attribute_of_a_function.calls = getattr(an_attribute_of_a_function, "calls", 0) + 1
    return g.sum(x) * an_attribute_of_a_function.calls


def _counting():
    calls = 0

    @refused
    def a_variable_of_an_earlier_call(x):
        nonlocal calls
        calls += 1
        return g.sum(x) * calls

    return a_variable_of_an_earlier_call


_counting()


@refused
def a_default_that_is_written(x, kept=[0.0]):
    kept[0] += 1.0
    return g.sum(x) * kept[0]


class Sink:
    def write(self, text):
        SEEN.append(text)


rows(
    __name__,
    right="""
assert g.sum(x) > -100, "too small" | g.sum(x)
assert x.shape == (4,), "four" | g.sum(x) if x[0] > 0 else x[0]
own = random.Random(1) | factor = own.random() | g.sum(x) * factor if g.sum(x) > 0 else g.sum(x)
g.sum(x) * LIMIT if g.sum(x) > LIMIT else g.sum(x)
""",
    refused="""
y = g.sum(x) * 5 | with contextlib.suppress(Exception): y = g.sum(x[x > 0]) | y
own = random.Random(1) | if g.sum(x) > 0: own.random() | g.sum(x) * own.random()
g.sum(x) * (2 if CHANCE.random() < 0.5 else 3)
g.sum(x) * random.random()
g.sum(x) * np.random.default_rng().random()
g.sum(x) * time.perf_counter()
global count | count = 1.0 | if g.sum(x) > 0: count = 2.0 | g.sum(x) * count
global count | count = count + 1.0 | g.sum(x) * count
KEPT["total"] = KEPT["total"] + 1.0 | g.sum(x) * KEPT["total"]
own = KEPT | own["total"] += 1.0 | g.sum(x) * own["total"]
y = g.sum(x) + KEPT.get("last", 0.0) | KEPT["last"] = g.stop_gradient(x[0]) | y
SEEN.append(1.0) | g.sum(x) * len(SEEN)
METER.reading += 1.0 | g.sum(x) * METER.reading
y = g.sum(x) | if y > 0: print("positive", file=Sink()) | y
""",
)
