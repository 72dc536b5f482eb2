"""Names: unset on one path, deleted, of an enclosing function, bound by a walrus, a pattern, a loop, an exception."""

import graphs as g
from tests.static.convert.table import refused, right, rows


@right
def set_and_read_under_one_flag(x):
    y, found = g.sum(x), False
    for value in x:
        if value > 0:
            y, found = value * 2, True
    return y if found else y * 3


@right
def set_by_every_path(x):
    if x[0] > 0:
        y = x[1]
    elif x[2] > 0:
        y = x[3]
    else:
        y = g.sum(x)
    return y * 2


@right
def deleted_in_a_branch(x):
    y = g.sum(x)
    if y > 0:
        half = y * 0.5
        y = half
        del half
    return y


@right
def walrus_in_a_comprehension(x):
    last = x[0] * 0
    partial = [last := last + value for value in x]
    return partial[1] * 2 + last if g.sum(x) > 0 else last


@right
def written_in_an_enclosing_function(x):
    factor = 1.0

    def raise_it():
        nonlocal factor
        factor = factor + 1

    if g.sum(x) > 0:
        raise_it()
    return g.sum(x) * factor


@right
def a_closure_sees_the_merged_value(x):
    y = x[0]

    def doubled():
        return y * 2

    if g.sum(x) > 0:
        y = x[1]
    return doubled()


@right
def a_closure_defined_in_a_branch(x):
    if g.sum(x) > 0:

        def scale(v):
            return v * 2

        y = scale(x[0])
    else:

        def scale(v):
            return v * 3

        y = scale(x[1])
    return y


@refused
def a_function_chosen_by_a_value(x):
    if g.sum(x) > 0:

        def scale(v):
            return v * 2

    else:

        def scale(v):
            return v * 3

    return scale(x[0])


@right
def a_loop_leaves_its_variable(x):
    for i in range(4):
        if x[i] > 0:
            break
    return g.sum(x) * i


@right
def a_loop_over_rows_leaves_its_variable(x):
    total = 0.0
    for value in x:
        if value > 1:
            break
        total = total + value
    return total + value * 5


@right
def a_pattern_of_constants(x):
    match x.shape[0]:
        case 4:
            y = g.sum(x)
        case _:
            y = x[0]
    return y * 2 if y > 0 else y


@right
def a_pattern_of_values(x):
    match int(g.argmax(x)):
        case 0:
            y = g.sum(x)
        case 1 | 2:
            y = x[1] * 2
        case _:
            y = x[0] * 3
    return y


@right
def a_pattern_with_a_guard(x):
    match int(g.argmax(x)):
        case 0 if g.sum(x) > 0:
            return g.sum(x)
        case 3:
            return x[3] * 2
        case _:
            return x[0]


@right
def none_until_the_first_row(x):
    last, total = None, 0.0
    for value in x:
        if last is not None and value > last:
            total = total + value
        last = value
    return total + g.sum(x) * 0


@refused
def none_until_a_value_says_so(x):
    last, total = None, g.sum(x) * 0
    for value in x:
        if value > 0:
            if last is not None:
                total = total + value * last
            last = value
    return total


@right
def a_name_that_hides_a_builtin(x):
    sum = x[0] * 0
    for value in x:
        if value > 0:
            sum = sum + value
    return sum + g.sum(x)


@right
def a_comprehension_has_names_of_its_own(x):
    value = x[0]
    others = [value * 2 for value in x if value.shape == ()]
    if g.sum(x) > 0:
        return value + others[-1]
    return value


rows(
    __name__,
    right="""
if g.sum(x) > 0: inner = x[0] * 2; y = inner + 1 | else: y = x[1] | y
a, b = x[0], x[1] | if a > b: a, b = b, a | a + 2 * b
a = b = g.sum(x) | if a > 0: a, b = b * 2, a | else: (a, *rest), b = [a, b], x[0]; b = b + rest[0] | a + b * 3
y = g.sum(x) | z = y | if x[0] > 0: y = y * 2 | y + z
s, rounds = g.sum(x * x) + 1, 0 | while (half := s * 0.5) > 0.4: s = half; rounds += 1 | s + rounds + half
if (total := g.sum(x)) > 0: return total * 2 | total * 3
y = g.sum(x) | if y > 0 and (most := g.max(x)) > 1: y = most * y | y
pick = [] | for i in range(3): pick.append(lambda: x[i]) | sum(one() for one in pick)
found = None | if g.sum(x) > 0: found = x[0]; return found * 2 | g.sum(x) if found is None else found
""",
    refused="""
if g.sum(x) > -100: y = x[0] | y
y, z = g.sum(x), x[0] | if x[1] > 100: del z | y + z
""",
)
