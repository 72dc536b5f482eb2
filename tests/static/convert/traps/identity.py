"""Identity: `is`, `is not` and id() on what a branch or a loop has chosen, and what compares or hashes by identity."""

import graphs as g
from tests.static.convert.table import refused, right, rows


class Cell:
    def __init__(self, value):
        self.value = value


class Equal(Cell):
    def __eq__(self, other):
        return self.value is other.value

    __hash__ = None


@refused
def the_best_of_a_loop_is_the_first(x):
    first = best = x[0]
    for value in x:
        if value > best:
            best = value
    return best * 2 if best is first else best * 3


@refused
def the_best_of_a_loop_is_not_the_first(x):
    first = best = x[0]
    for value in x:
        if value > best:
            best = value
    return best * 2 if best is not first else best * 3


@refused
def a_tensor_that_is_another_and_then_changes(x):
    a, b = x * 2, x * 3
    c = a if g.sum(x) > 0 else b
    c = c + 0
    d = a if g.sum(x) > 0 else b
    d += 1.0
    return g.sum(c * d) * (2.0 if d is a else 3.0)


@refused
def a_dict_that_a_loop_replaces(x):
    first = best = {"v": x[0]}
    s = g.sum(x * x) + 1
    while s > 2:
        best = {"v": best["v"] * 2}
        s = s / 2
    return best["v"] * 2 if best is first else best["v"] * 3


@refused
def any_item_of_a_list_is_the_chosen(x):
    items = [Cell(x[0]), Cell(x[1])]
    c = Cell(x[2])
    if g.sum(x) > 0:
        c = items[0]
    return g.sum(x) * (2.0 if any(q is c for q in items) else 3.0)


@refused
def an_item_that_a_branch_replaced(x):
    items = [Cell(x[0]), Cell(x[1])]
    kept = items[0]
    if g.sum(x) > 0:
        items[0] = Cell(x[2])
    return items[0].value * (2.0 if items[0] is kept else 3.0)


@refused
def an_attribute_that_a_branch_replaced(x):
    owner, other = Cell(x[0]), x[1] * 1.0
    owner.value = kept = x[0] * 1.0
    if g.sum(x) > 0:
        owner.value = other
    return kept * (2.0 if owner.value is kept else 3.0)


@refused
def the_chosen_is_a_key_by_identity(x):
    a, b = Cell(x[0]), Cell(x[1])
    names = {a: 2.0, b: 3.0}
    c = a if g.sum(x) > 0 else b
    return g.sum(x) * names.get(c, 5.0)


@refused
def the_chosen_is_looked_up_by_identity(x):
    a, b = Cell(x[0]), Cell(x[1])
    names = {a: 2.0, b: 3.0}
    c = a if g.sum(x) > 0 else b
    return g.sum(x) * (names[c] if c in names else 5.0)


@refused
def a_state_inside_a_loop_is_what_it_was(x):
    first = best = x[0] * 1.0
    rounds, s = 0.0, g.sum(x * x) + 1
    while s > 2:
        if best is first:
            rounds = rounds + 1.0
        best = best * 2
        s = s / 2
    return best * rounds


@refused
def two_numbers_that_only_the_run_knows(x):
    n, m = 0, 0
    for value in x:
        if value > 0:
            n += 1
        else:
            m += 1
    return g.sum(x) * (2.0 if n is m else 3.0)


@right
def the_chosen_is_not_none(x):
    c = x[0] if g.sum(x) > 0 else x[1]
    items = [x[2]] if g.sum(x) > 0 else [x[3]]
    return items[0] * (c * 2 if c is not None and items is not None else c * 3)


@right
def what_no_branch_chose(x):
    a, b = x[0] * 2, x[1] * 2
    items, other = [a], [b]
    kept = items
    if g.sum(x) > 0:
        items[0] = b
    return items[0] * (2.0 if kept is items and items is not other and a is not b else 3.0)


@right
def an_object_that_a_branch_changed(x):
    a, b = Cell(x[0]), Cell(x[1])
    c = a
    if g.sum(x) > 0:
        a.value = x[2]
    return c.value * (2.0 if c is a and c is not b and id(c) == id(a) else 3.0)


@right
def the_best_of_known_numbers(x):
    first = best = [1.0, 2.0]
    for item in ([3.0, 4.0], [0.0, 1.0]):
        if item[0] > best[0]:
            best = item
    return g.sum(x) * (2.0 if best is first else 3.0) if x[0] > 0 else g.sum(x)


rows(
    __name__,
    right="""
c = x[0] if g.sum(x) > 0 else x[1] | d = c | c * 2 if d is c else c * 3
a, b = Equal(x[0]), Equal(x[1]) | g.sum(x) * (2.0 if a == b else 3.0) if x[0] > 0 else x[1]
""",
    refused="""
a, b = x[0] * 2, x[1] * 2 | c = a if g.sum(x) > 0 else b | c * 2 if c is a else c * 3
a, b = x[0] * 2, x[1] * 2 | c = a if g.sum(x) > 0 else b | c * 2 if id(c) == id(a) else c * 3
c = x[0] if g.sum(x) > 0 else x[1] | c * (id(c) % 7)
a, b = [x[0], x[1]], [x[2], x[3]] | c = b | if g.sum(x) > 0: c = a | c[0] * 2 if c is a else c[0] * 3
a, b = Cell(x[0]), Cell(x[1]) | c = a if g.sum(x) > 0 else b | c.value * 2 if c is a else c.value * 3
a, b = (x[0], x[1]), (x[2], x[3]) | c = a if g.sum(x) > 0 else b | c[0] * 2 if c is a else c[0] * 3
a, b = Cell(x[0]), Cell(x[1]) | c = a if g.sum(x) > 0 else b | g.sum(x) * (2.0 if c in [a] else 3.0)
a, b = Cell(x[0]), Cell(x[1]) | c = a if g.sum(x) > 0 else b | g.sum(x) * (2.0 if c == a else 3.0)
a, b = Cell(x[0]), Cell(x[1]) | c = a if g.sum(x) > 0 else b | g.sum(x) * (2.0 if [c] == [a] else 3.0)
a, b = Cell(x[0]), Cell(x[1]) | c = a if g.sum(x) > 0 else b | g.sum(x) * (2.0 if [a, b, c].index(c) else 3.0)
a, b = Cell(x[0]), Cell(x[1]) | c = a if g.sum(x) > 0 else b | g.sum(x) * [a, b].count(c)
a, b = Cell(x[0]), Cell(x[1]) | c = a if g.sum(x) > 0 else b | g.sum(x) * len({a, b, c})
a, b = x[0] * 2, x[1] * 2 | c = a if g.sum(x) > 0 else b | c * 2 if operator.is_(c, a) else c * 3
a, b = x[0] * 2, x[1] * 2 | c = a if g.sum(x) > 0 else b | c * 2 if Equal(c) == Equal(a) else c * 3
items = [x[0] * 2, x[1] * 2] | at = int(x[0] > 0) | one = items[at] | one * 2 if one is items[0] else one * 3
items = [x[0] * 2, x[1] * 2] | first = sorted(items)[0] | first * 2 if first is items[0] else first * 3
a, b = x[0] * 2, x[1] * 2 | best = max(a, b) | best * 2 if best is a else best * 3
""",
)
