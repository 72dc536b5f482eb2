"""What takes items of a generator: any, all, next and loops; how far it is taken, and what is left for the next one."""

import itertools

import graphs as g
from tests.static.convert.table import refused, right, rows
from tests.static.convert.traps.generators import Tally, counted  # noqa: F401  (a row reads it)

LASTING = iter(range(100))


@refused
def any_of_a_map_that_appends(x):
    seen = []

    def see(v):
        seen.append(1.0)
        return v > 1

    return g.sum(x) * (2.0 if any(map(see, x)) else 1.0) * len(seen)


@right
def all_of_a_filter(x):
    tally = Tally()
    every = all(v > 0.5 for v in filter(tally.positive, x))
    return tally.count * g.sum(x) + (1.0 if every else 0.0)


@right
def any_of_an_enumerated_generator(x):
    tally = Tally()
    found = any(v > i for i, v in enumerate(tally.doubled(v) for v in x))
    return tally.count * g.sum(x) + (1.0 if found else 0.0)


@refused
def any_of_a_zip_of_generators(x):
    tally = Tally()
    found = any(a > b for a, b in zip((tally.doubled(v) for v in x), x, strict=True))
    return tally.count * g.sum(x) + (1.0 if found else 0.0)


@right
def any_of_a_zip_of_lists(x):
    tally = Tally()
    found = any(tally.doubled(a) > b for a, b in zip(x, [0.5, 1.0, 2.0, 3.0], strict=True))
    return tally.count * g.sum(x) + (1.0 if found else 0.0)


@refused
def any_of_a_chain_of_generators(x):
    tally = Tally()
    found = any(itertools.chain((tally.positive(v) for v in x), [False]))
    return tally.count * g.sum(x) + (1.0 if found else 0.0)


@right
def any_under_a_test(x):
    tally = Tally()
    if x[0] > 0 and any(tally.positive(v) for v in x[1:]):
        return tally.count * x[1]
    return tally.count + x[2]


@right
def any_of_two_loops(x):
    tally = Tally()
    found = any(tally.positive(a - b) for a in x[:2] for b in x[2:])
    return tally.count * g.sum(x) + (1.0 if found else 0.0)


@refused
def a_loop_that_breaks_and_then_the_rest(x):
    it = (v for v in x)
    for value in it:
        if value > 0:
            break
    return value + 10 * sum(it)


@right
def a_loop_that_breaks_at_a_known_place_and_then_the_rest(x):
    it = (v * 2 for v in x)
    for i, value in enumerate(it):
        if i == 1:
            break
    return value + 10 * sum(it)


@refused
def an_iterator_taken_under_a_test(x):
    it, total = iter([1.0, 2.0, 3.0]), 0.0
    if x[0] > 0:
        for value in it:
            total = total + value
    else:
        total = sum(it) * 2
    return x[1] * total


@refused
def next_in_the_test_of_a_loop(x):
    it, rounds = iter([x[0], x[1], x[2], x[3], -x[0] * x[0] - 1]), 0.0
    while next(it) > 0:
        rounds += 1
    return g.sum(x) * rounds


rows(
    __name__,
    right="""
if any((hit := v) > 0.5 for v in x): return hit * 2 | g.sum(x)
if all((last := v) > -0.25 for v in x): return last * 2 | last * 3
hit = g.sum(x) | found = any(v > 0.7 for v in x if (hit := v) > 0) | hit * 2 if found else hit * 3
hit = x[0] | any((hit := v) > 0 for v in []) | hit * 2
any((hit := v) > 1 for v in [0, 1, 2, 3, 4]) | x[0] * hit
tally = Tally() | any(tally.doubled(v) for v in (0.0, 1.0, x[0])) | g.sum(x) * tally.count
tally = Tally() | every = all(tally.positive(v) for v in x) | tally.count * g.sum(x) + (1.0 if every else 0.0)
tally = Tally() | found = any(map(tally.positive, x)) | tally.count * g.sum(x) + (1.0 if found else 0.0)
tally = Tally() | found = any(v > 1 for v in counted(x, tally)) | tally.count + g.sum(x) * (2.0 if found else 1.0)
tally = Tally() | found = any([tally.positive(v) for v in x]) | tally.count * g.sum(x) + (1.0 if found else 0.0)
y, rounds = x * 1.0, 0 | while any(v > 1 for v in y): y = y / 2; rounds += 1 | g.sum(y) * rounds
y, total = x * 1.0, 0.0 | while any((big := v) > 1 for v in y): y = y / 2; total = total + big | g.sum(y) + total
next((v for v in x if v > 0), -1.0) * 2
it = (i for i in (0, 1, 2, 3) if i % 2) | x[0] * next(it, 9) + x[1] * next(it, 8) + x[2] * next(it, 7)
it = (v * 2 for v in x) | next(it, 0.0) + 10 * next(it, 0.0) + 100 * next(it)
it = (v * v for v in x) | first = next(it, 0.0) | first * sum(it)
it, total = (v * 2 for v in x), 0.0 | first = next(it) | for value in it: total = total + value * first | total
it = (v for v in x) | sum(it) + 100.0 * sum(it)
it = (v for v in x if v > 0) | sum(it) + 100.0 * sum(it) + len(list(it))
it = (v for v in x) | g.sum(g.stack(list(it))) + sum(it, 5.0)
it = (i for i in range(5)) | any(i > 1 for i in it) | x[0] * sum(it)
it = (v * 2 for v in x) | if x[0] > 0: y = sum(it) | else: y = sum(v * 3 for v in it) | y
it = (v for v in x) | y = sum(it) if x[0] > 0 else sum(v * v for v in it) | y + sum(it)
numbers = itertools.count(3) | x[0] * next(numbers) + x[1] * next(numbers)
""",
    refused="""
any((hit := v) > 5 for v in x if v > 0.5) | hit
if any((pair := (a, b))[0] > b for a in x[:2] if a > 0 for b in x[2:]): return pair[0] * 2 + pair[1] | g.sum(x)
it = (v for v in x if v > 0) | next(it, -1.0) + 10 * next(it, -2.0)
it = (v for v in x) | (2.0 if any(v > 1 for v in it) else 1.0) + sum(it)
it, total = (v for v in x), 0.0 | if x[0] > 0: total = sum(it) | total * 10 + sum(it)
it = (v for v in x) | y = next(it) if x[0] > 0 else x[1] | y + next(it)
it = iter([x[0], x[1]]) | if x[0] > 0: a, b = it | else: b, a = it | a - 2 * b
it = iter([x[0], x[1]]) | if x[0] > 0: return operator.sub(*it) | operator.add(*it)
it = iter([1, 2, 3]) | y = 1.0 if x[0] > 0 and 2 in it else 3.0 | x[1] * y * sum(it)
it = iter([1.0, 2.0, 3.0]) | if x[0] > 0: return x[1] * len(list(it)) | x[1] * len([v for v in it if v > 1])
it = map(abs, [1.0, -2.0, 3.0]) | y = max(it) if x[0] > 0 else min(it) | x[1] * y
x[0] * next(LASTING)
total = 0.0 | for number in itertools.islice(LASTING, 3): total = total + number * x[0] | total
it, y = (v * 2 for v in (1.0, 2.0, 4.0, 8.0)), g.sum(x * x) | while y > 1: y = y / 2 - next(it, 1.0) | y
""",
)
