"""Names that an expression sets by `:=`, in parts of it that may not run, or not yet."""

import graphs as g
from tests.static.convert.table import right, rows


@right
def in_a_part_of_the_test_of_a_loop(x):
    y, doubled, rounds = g.sum(x * x), 0.0, 0
    while y > 0.5 and (doubled := y * 2) < 40:
        y = y / 2
        rounds += 1
    return doubled + rounds * y


@right
def of_a_variable_of_the_function_around(x):
    def look():
        nonlocal k
        any((k := v) > 0.3 for v in x)

    k = x[0]
    look()
    return k * 2


@right
def of_a_parameter(x):
    def look(h):
        if any((h := v) > 0.2 for v in x):
            return h
        return h * 3

    return look(x[1])


@right
def in_each_round_of_a_loop(x):
    total = 0.0
    for i in range(3):
        if any((h := v * i) > 0.5 for v in x):
            total = total + h
    return total + h


@right
def then_read_by_a_function(x):
    any((h := v) > 0.2 for v in x)

    def doubled():
        return h * 2

    h = h + 1
    return doubled()


@right
def then_deleted(x):
    any((h := v) > 0.2 for v in x)
    y = h
    del h
    try:
        return h
    except NameError:
        return y


@right
def in_an_index_and_in_an_argument(x):
    def added(a, b):
        return a + b if a > 0 else b

    return x[(i := 2)] * i + added((p := x[0]), p * 2) + p


@right
def while_a_called_function_sets_another(x):
    h = 1.0

    def doubled():
        nonlocal h
        h = h * 2
        return h

    found = any((last := doubled()) > v for v in x)
    return h + last * (10.0 if found else 20.0) + x[0]


@right
def after_the_branch_has_set_it_too(x):
    b = 1.0
    if x[0] > 0:
        b = x[1] * 2
        y = x[0] if all((b := v) > 0.5 for v in x) else x[1]
    else:
        y = b
    return b * x[2] + y


@right
def after_a_round_has_set_it_too(x):
    b, y = 1.0, g.sum(x * x)
    while y > 1:
        b = b * y
        if b > 3:
            b = b + 1
            y = y / 2 + (0.1 if all((b := v) > 0.5 for v in x) else 0.0)
        y = y / 2
    return b * x[2] + y


@right
def as_a_function_inside_sets_it_after_the_branch(x):
    b = 1.0

    def put(value):
        nonlocal b
        if value > 0:
            b = value

    if x[0] > 0:
        b = x[1] * 2
        put(b + 1)
    else:
        b = x[3]
    return b * x[2]


@right
def as_a_loop_over_a_filter_sets_it_after_the_branch(x):
    b = x[3]
    if x[0] > 0:
        b = x[1] * 2
        for v in filter(lambda w: w > 0.2, x):
            b = b * 0.5 + v
    return b + x[2]


@right
def as_loops_over_generators_set_it_after_the_branch(x):
    def positive():
        for v in x:
            if v > 0:
                yield v

    b = x[3]
    if x[1] > 0:
        b = x[0] * 1
        for v in positive():
            for w in positive():
                b = b + v * w
                if b > 1:
                    break
    return b


@right
def by_a_generator_from_before_the_branch(x):
    it = ((h := v) for v in x)
    y, h = x[3], x[0]
    if x[0] > 0:
        h = x[1] * 3
        any(v > 0.4 for v in it)
        y = y + h
    return y + h


rows(
    __name__,
    right="""
if (a := x[0]) > 0 and (b := x[1]) > 0: return a * b | a
a = x[3] | found = (x[0] > 1) or (a := x[1]) > 0 | a * (2.0 if found else 3.0)
y = (a := x[0] * 2) if x[1] > 0 else (a := x[2]) | y + 10 * a
a = x[3] | y = (a := x[0] * 2) if x[1] > 0 else x[2] | y + 10 * a
b = 5.0 | held = x[0] < x[1] < (b := x[2] * 2) | b * (2.0 if held else 3.0) + x[0]
y, rounds = g.sum(x * x), 0 | while (half := y / 2) > 0.5: y = half; rounds += 1 | half + rounds * y
total = sum((m := max((n := w) for w in (v, 0.5))) for v in x) | total + 10 * m + n
h = 0.0 | if x[0] > 0: any((h := v) > 1 for v in x) | else: all((h := v) < 1 for v in x) | h
scaled = lambda v: (w := v * 2) + w | scaled(x[0])
doubled = [z for v in x if (z := v * 2) is not None] | sum(doubled) + z
""",
    refused="""
y = (a := x[0] * 2) if x[1] > 0 else x[2] | y + 10 * a
scaled = lambda v: (w := v * 2) + w if v > 0 else v | scaled(x[0])
""",
)
