"""Gradients: what a branch that is not taken reads must not poison what the taken one gives."""

import graphs as g
from tests.static.convert.table import right, rows


@right
def a_logarithm_that_one_branch_reads(x):
    y = g.log(x[0] * 0)
    if y > 0:
        return y * x[1]
    elif y <= 0:
        return x[2] * 2
    return x[3]


@right
def a_root_in_a_nested_branch(x):
    y = g.sqrt(x[0])
    z = x[1] * 2
    if x[1] > -1:
        if x[0] > 0:
            z = z * y
        else:
            z = z * 3
    return z


@right
def a_root_that_a_loop_reads_in_a_branch(x):
    y = g.sqrt(x[0])
    total = x[1] * 1.0
    for value in x:
        if value > 100:
            total = total + y
        else:
            total = total + value
    return total


@right
def a_root_that_a_while_reads_in_a_branch(x):
    y = g.sqrt(x[0])
    total, s = x[1] * 1.0, g.sum(x * x) + 1
    while s > 2:
        if x[0] > 0:
            total = total + y
        else:
            total = total * 0.5
        s = s / 2
    return total


@right
def a_root_kept_in_an_attribute(x):
    class Box:
        pass

    box = Box()
    box.value = g.sqrt(x[0])
    if x[0] <= 0:
        box.value = x[1]
    return box.value * 2


@right
def a_power_that_one_branch_reads(x):
    y = x[0] ** 0.5
    best = x[1]
    for value in (y, x[2]):
        if value > best:
            best = value
    return best


@right
def a_root_in_a_gradient_of_a_gradient(x):
    def inner(v):
        y = g.sqrt(v)
        return y * v if v > 0 else v * v * v

    return g.grad(inner)(x[0]) + x[1]


@right
def a_root_that_no_item_replaces(x):
    items, y = [x[1] * 2, x[2] * 2], g.sqrt(x[0])
    if x[0] > 0:
        items[0] = y
    at = int(x[1] > 0)
    items[at] = x[3]
    return items[0] + items[1]


@right
def a_logarithm_read_by_no_row_of_a_scan(x):
    y = g.log(x[0] * 0)

    def step(c, row):
        return g.cond(row > 100, lambda: c + y, lambda: c + row), row

    return g.scan(step, x[1] * 1.0, x)[0]


@right
def a_row_that_a_scan_reads_in_a_branch(x):
    rows = g.sqrt(x)

    def step(c, row):
        return g.cond(c > 100, lambda: c + row, lambda: c * 0.5), c

    return g.scan(step, x[1] * 1.0, rows)[0]


@right
def an_error_that_is_exactly_zero_and_only_tested(x):
    y, error = x[0] * 1.0, g.sum(x * x) + 2.0
    while error > 1:
        new = y * 0.5
        error = g.sqrt((new - y) * (new - y) * 0.0)
        y = new
    return y * x[1]


@right
def a_root_of_an_earlier_round(x):
    y, s = x[1] * 1.0, g.sum(x * x) + 1
    while s > 1:
        y = g.sqrt(g.abs(x[0] * 0.0))
        if s < 2:
            y = x[2] * 2.0
        s = s / 2
    return y


rows(
    __name__,
    right="""
min(x[1], g.sqrt(x[0]))
max(g.sqrt(x[0]), x[1])
y = g.sqrt(x[0]) | if x[0] > 0: z = y * 2 | else: z = x[1] * 3 | z
y = g.sqrt(x[0]) | y if x[0] > 0 else x[1]
y = g.sin(g.sqrt(x[0]) * x[1] + 1.0) | y * 2 if x[0] > 0 else x[1]
y = g.sqrt(x) | if x[0] > 0: return g.sum(y[0:1]) | g.sum(x) * 2
zero = x[0] - x[0] | y = x[1] / zero | y if zero > 0 else x[2] * 3
y = g.log(x[0] * 0) | total = x[1] * 1.0 | for _ in range(int(x[0] * 0)): total = total + y | total
y = g.sqrt(x[0]) | x[1] * 2 if x[0] > 0 and y > 100 else x[2]
y = [g.sqrt(x[0])] | if x[0] <= 0: y[0] = x[1] | y[0] * 2
if x[0] > 0: a, b = x[1], x[2] | else: a, b = x[2], g.sqrt(x[0]) | a * 2 + (b if x[0] > 0 else 0.0)
y = g.sqrt(x[0]) | g.cond(x[0] > 0, lambda: y * 2, lambda: x[1])
g.where(x[0] > 0, g.sqrt(x[0]), x[1])
y = g.sqrt(x[0]) | y * 2 if x[1] > 0 else y * 3
y = g.sqrt(x[0]) | z = y * 2 if x[0] > 0 else x[1] | z + y * x[2]
y = g.sqrt(x[0]) | if x[0] > 0: items = sorted([y, x[1]]); return items[0] | x[2]
items = [g.sqrt(x[0]), x[1] * 2] | items[int(x[0] > 0)] = x[2] | items[0] * 2 if x[0] <= 0 else items[1]
items = [x[1] * 2, g.sqrt(x[0])] | items[int(x[0] > 0)]
y, z = g.sqrt(x) * 1.0, x * 2 | w = y if x[0] > 0 else z | w += 1.0 | g.sum(w[0:1])
y, s = g.log(x[0] * 0), x[1] * 1.0 | while s > 100: s = s * 0.5 + y | s * 2
""",
)
