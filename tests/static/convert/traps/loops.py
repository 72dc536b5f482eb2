"""Loops: break, continue, else, returns, zips, counts that are values, and state that one iteration changes."""

import itertools

import graphs as g
from tests.static.convert.table import refused, right, rows


@right
def break_with_an_else(x):
    y = g.sum(x)
    for value in x:
        if value > 1:
            y = value * 10
            break
    else:
        y = y * 2
    return y


@right
def a_name_that_break_or_else_sets(x):
    for value in x:
        if value > 1:
            y = value * 10
            break
    else:
        y = g.sum(x)
    return y


@right
def a_while_with_an_else(x):
    s = g.sum(x * x)
    while s > 1:
        s = s / 2
        if s > 100:
            break
    else:
        s = s + 10
    return s


@right
def continue_in_a_for(x):
    total = x[0] * 0
    for i, value in enumerate(x):
        if value < 0:
            continue
        total = total + value * i
    return total


@right
def continue_in_a_while(x):
    i, total = 0, x[0] * 0
    while i < 4:
        i += 1
        if x[i - 1] < 0:
            continue
        total = total + x[i - 1] * i
    return total


@right
def break_out_of_the_inner_loop(x):
    total = g.sum(x) * 0
    for i in range(3):
        for j in range(3):
            if x[i] + x[j] > 1.5:
                break
            if x[j] < -1:
                continue
            total = total + x[i] * x[j]
        else:
            total = total + 1
        if total > 3:
            break
    return total


@right
def return_from_a_for(x):
    for value in x:
        if value > 1:
            return value * 7
    return g.sum(x)


@right
def return_from_two_loops(x):
    for i in range(3):
        for j in range(i):
            if x[i] * x[j] > 0.5:
                return x[i] + x[j]
    return g.sum(x)


@right
def return_from_a_while_true(x):
    s = g.sum(x * x) + 1
    while True:
        if s < 1:
            return s * 7
        s = s / 2


@right
def break_from_a_while_true(x):
    s, n = g.sum(x * x) + 1, 0
    while True:
        s = s * 0.5
        n += 1
        if s < 0.3:
            break
    return s * n


@right
def a_while_inside_a_for(x):
    total = x[0] * 0
    for value in x:
        while value * value > 1:
            value = value / 2
        total = total + value
    return total


@right
def a_for_inside_a_while(x):
    s, n = g.sum(x * x) + 1, 0
    while s > 1:
        for value in x:
            if value > 0:
                s = s * 0.9
        s = s - 0.5
        n += 1
    return s + n + g.sum(x)


@right
def a_range_that_counts_down(x):
    y = x[0]
    for i in range(3, 0, -1):
        if x[i] > y:
            y = x[i] * i
    return y


@right
def enumerate_finds_the_place_of_the_largest(x):
    place, most = 0, x[0]
    for i, value in enumerate(x):
        if value > most:
            most, place = value, i
    return most * place


@right
def zip_of_rows_and_numbers(x):
    total = x[0] * 0
    for value, weight in zip(x, (1.0, 2.0, 3.0, 4.0), strict=True):
        if value > 0:
            total = total + value * weight
    return total


@right
def reversed_rows(x):
    total = x[0] * 0
    for value in reversed(list(x)):
        total = total * 0.5 + value
        if total > 2:
            break
    return total


@right
def pairs_of_neighbours(x):
    total = x[0] * 0
    for before, after in itertools.pairwise(x):
        if after > before:
            total = total + after - before
    return total


@right
def items_of_a_dict(x):
    total = x[0] * 0
    for name, value in {"a": x[0], "b": x[1]}.items():
        if value > 0:
            total = total + (value if name == "a" else value * 3)
    return total


@right
def a_loop_that_shadows_its_sequence(x):
    rows = [x[0], x[1], x[2]]
    for rows in rows:
        if rows > 0:
            break
    return rows * 2


@right
def a_number_that_becomes_a_tensor(x):
    total = 0
    for value in x:
        if value > 0:
            total = total + value
    return total + g.sum(x)


@right
def the_end_of_a_while_is_read_before(x):
    before, now = g.sum(x) * 0, g.sum(x * x) + 1
    while now - before > 0.1:
        before, now = now, now * 0.5 + before * 0.5 + 0.01
    return now + 2 * before


@right
def a_pass_that_does_nothing(x):
    for value in x:
        if value > 0:
            pass
        else:
            continue
    return g.sum(x)


@refused
def an_iterator_that_a_break_leaves(x):
    rest, total = iter([1.0, 2.0, 3.0]), 0.0
    for value in rest:
        if x[0] > value:
            break
        total = total + value
    return g.sum(x) * (total + sum(rest))


@right
def a_generator_that_values_do_not_end(x):
    def squares():
        for value in x:
            yield value * value

    total = x[0] * 0
    for value in squares():
        if value > 1:
            total = total + value
    return total


@right
def a_generator_that_a_value_ends(x):
    def shrinking(value):
        while value > 0.1:
            yield value
            value = value / 2

    return sum(shrinking(g.sum(x * x)), x[0] * 0)


@right
def a_test_that_writes_what_the_body_writes(x):
    calls = 0

    def counted(value):
        nonlocal calls
        calls = calls + 1
        return value * calls

    i, a = 0, x[0]
    while counted(x[0]) > x[1] and i < 3:
        i += 1
        a = counted(x[2])
    return a + calls


rows(
    __name__,
    right="""
i = 0 | while i < 4 and x[i] > 0: i += 1 | g.sum(x) * i
i = int(g.sum(g.astype(x > 9, int))) | while i < 4 and x[i] > 0: i = i + 1 | g.sum(x) * i
n = int(g.sum(g.astype(x > 0, int))) | y = g.sum(x) | for _ in range(n): y = y * 1.5 | y
n = int(g.sum(g.astype(x > 0, int))) | y = x[0] * 0 | for i in range(1, n + 1): y = y + g.sum(x) / i | y
total, s = 0, g.sum(x * x) + 1 | while s > 1: total = total + s; s = s / 2 | total * 1.0 + s
s, n = g.sum(x * x), 0 | while s > 0.5 and n < 3: s, n = s / 2, n + 1 | s + n * g.sum(x)
s, going = g.sum(x * x) + 1, True | while going: s = s / 2; going = s > 0.7 | s
rest = iter(x) | first, second = next(rest), next(rest) | first * 2 if first > second else second
""",
    refused="""
y = x | while g.sum(y * y) > 1 and y.shape[0] > 1: y = y[1:] | g.sum(y)
y = x | if g.sum(x) > 0: y = x[1:] | g.sum(y)
y = x | if g.sum(x) > 0: y = g.astype(x, "float32") | g.sum(y * y)
a, b = 0, 1 | while b < g.sum(x * x): a, b = b, a + b | g.sum(x) * a
rest = iter([1.0, 2.0, 3.0]) | if g.sum(x) > 0: y = next(rest) | else: y = 0.0 | g.sum(x) * (next(rest) + y)
""",
)
