"""What makes items lazily, or takes all of them: map, filter, zip, enumerate, sum, min, max, sorted."""

import functools
import itertools
import operator

import graphs as g
from tests.static.convert.table import refused, right, rows
from tests.static.convert.traps.generators import Tally


@right
def a_map_taken_lazily(x):
    tally = Tally()
    doubled = map(tally.doubled, x)
    before = tally.count
    first = next(doubled)
    return first * 10 + tally.count + before * 100


@right
def a_loop_with_a_break_over_an_enumerated_map(x):
    tally = Tally()
    for i, value in enumerate(map(tally.doubled, x)):
        if value > 1:
            break
    return tally.count * g.sum(x) + i * value


@right
def a_zip_of_a_generator(x):
    total = 0.0
    for a, b in zip((v * 2 for v in x), x, strict=True):
        total = total + a * b if a > 0 else total - b
    return total


@refused
def a_break_in_a_zip_of_a_generator(x):
    tally = Tally()
    for a, b in zip((tally.doubled(v) for v in x), x, strict=True):
        if a > 1:
            break
    return tally.count * a + b


@right
def a_zip_that_stops_at_the_shorter(x):
    it = iter([1.0, 2.0, 3.0])
    pairs = [(a, b) for a, b in zip(it, x[:2], strict=False)]
    return pairs[0][1] * len(pairs) + sum(it)


@right
def max_and_min_of_generators(x):
    tally = Tally()
    most, least = max(tally.doubled(v) for v in x), min((v * v for v in x), key=lambda v: -v)
    return most * tally.count + least


def larger(a, b):
    return a if a > b else b * 2


@refused
def a_counter_that_a_value_moves(x):
    numbers, total = itertools.count(), 0.0
    for v in x:
        if v > 0:
            total = total + v * next(numbers)
    return total


@right
def a_list_extended_by_generators(x):
    items = []
    items.extend(v * 2 for v in x)
    items += (v for v in x)
    items[1:2] = (v * 3 for v in x[:2])
    return items[0] + items[2] * len(items) + items[-1]


@right
def a_reduction_of_nothing(x):
    try:
        return functools.reduce(operator.add, [])
    except TypeError:
        return x[0]


@right
def calls_that_python_refuses(x):
    wrong = 0
    for call in (
        lambda: map(abs),
        lambda: sum("ab", ""),
        lambda: sum(("a" for _ in x), ""),
        lambda: max(v for v in []),
    ):
        try:
            call()
        except (TypeError, ValueError):
            wrong += 1
    return x[0] * wrong


rows(
    __name__,
    right="""
sum(map(lambda v: v * 2 if v > 0 else v * 3, x))
sum(map(lambda a, b: a if a > b else b * 2, x, [0.5, 0.1, 0.2, 0.3]))
g.sum(x) * sum(map(float, [x[0], 2, x[1]]))
doubled = map(lambda v: v * 2, x) | sum(doubled) + 100 * sum(doubled)
tally = Tally() | doubled = list(map(tally.doubled, x)) | doubled[0] * tally.count + len(doubled)
sum(filter(lambda v: v > 0, x), 1.0)
sum(filter(None, [x[0], 0.0, x[1], 1.0]))
sum((i * v for i, v in enumerate((v for v in x if v > 0), 1)), 0.0)
sum(a * b for a, b in zip(x, [1.0, 2.0], strict=True))
weights = reversed([v * i for i, v in enumerate(x)]) | next(weights) + 10 * sum(weights)
tally = Tally() | total = sum(tally.doubled(v) for v in x if tally.positive(v)) | total + 100 * tally.count
total = sum((last := v * 2) for v in x if True) | total + 10 * last
total = 0.0 | steps = [total := total + v for v in x] | steps[1] + 10 * total
total = 1.0 | most = max(total := total + v * v for v in x) | most + 10 * total
tally = Tally() | max(x, key=tally.doubled) * tally.count
x[0] * max((i for i in range(3) if i > 5), default=7)
x[0] * max(i for i in range(3) if i > 5)
low, *_, high = sorted((v * v for v in x), key=lambda v: -v) | low - 3 * high
items = [x[0], x[1], x[2]] | items.sort(key=lambda v: v if v > 0 else -2 * v) | items[0] + 10 * items[2]
functools.reduce(larger, x, 0.1)
sum(itertools.accumulate(x, larger))
tally = Tally() | out = functools.reduce(operator.mul, (tally.doubled(v) for v in x)) | out + tally.count
tally = Tally() | total = sum(itertools.takewhile(tally.positive, x)) | total + 100 * tally.count
it = iter([x[0], x[1], x[2], x[3]]) | sum(a * b if a > 0 else b for a, b in zip(it, it, strict=True))
it = (v * 2 for v in x) | sum(a * b if a > 0 else b for a, b in zip(it, it, strict=True))
it = iter([1.0, 2.0, 3.0, 4.0]) | pairs = [(a, b) for a in it for b in it] | x[0] * sum(a * b for a, b in pairs)
it = (v * v for v in x) | sum(itertools.islice(it, 2)) + 10 * sum(it)
sum(a * b if a > b else a for a, b in itertools.pairwise(x))
factors = itertools.cycle([1.0, 2.0]) | sum(v * next(factors) for v in x)
first, *rest, last = (v * 2 for v in x) | first - last + len([*rest, *map(abs, x)]) * rest[0]
sum(([v] for v in x), [])[1] + sum((v for v in x), start=x[0])
""",
    refused="""
g.sum(x) * len(list(filter(lambda v: v > 0, x)))
max((v for v in x if v > 0), default=x[0])
sum(itertools.dropwhile(lambda v: v > 0, x))
sum(1 for _ in itertools.groupby(x, key=lambda v: v > 0)) * x[0]
factors = itertools.cycle([1.0, 2.0]) | sum(v * next(factors) if v > 0 else v for v in x)
""",
)
