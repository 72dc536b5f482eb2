"""Generator expressions and functions: when they read names, what runs before an item, what a consumer raises."""

import contextlib
import types

from tests.static.convert.table import refused, right, rows


class Tally:
    def __init__(self):
        self.count = 0.0

    def positive(self, value):
        self.count += 1
        return value > 0

    def doubled(self, value):
        self.count += 1
        return value * 2


def positives(x):
    for value in x:
        if value > 0:
            yield value


def halves(value, limit):
    while value > limit:
        yield value
        value = value / 2


def counted(x, tally):
    for value in x:
        tally.count += 1
        yield value * 2


@right
def the_loops_of_a_nested_generator_are_taken_late(x):
    tally = Tally()
    it = (a + b for a in x[:2] for b in (tally.doubled(a), 1.0))
    before = tally.count
    return sum(it) + 100 * tally.count + before * 1000


@right
def a_break_in_a_generator_function_that_counts(x):
    tally = Tally()
    for value in counted(x, tally):
        if value > 1:
            break
    return value + 100 * tally.count


@right
def a_yield_in_a_try_does_not_catch_what_its_consumer_raises(x):
    def guarded():
        for value in (1.0, 2.0):
            try:
                yield value
            except ValueError:
                yield 100.0

    total = 0.0
    try:
        for value in guarded():
            total = total + value
            if value == 1.0:
                raise ValueError("of the loop")
    except ValueError:
        total = total + 10
    return x[0] * total


@right
def a_yield_in_a_finally_that_is_left_early(x):
    log = []

    def closing():
        try:
            yield 1.0
            yield 2.0
        finally:
            log.append(5.0)

    it = closing()
    for value in it:
        break
    return x[0] * (value + len(log))


@right
def a_generator_that_returns_a_value(x):
    def inner():
        yield 1.0
        return 3.0

    def outer():
        kept = yield from inner()
        yield kept

    return x[0] * sum(outer())


@refused
def a_generator_that_is_sent_values_that_decide(x):
    def echo():
        value = 0.0
        while True:
            value = yield (value * 2 if value > 0 else value)

    it = echo()
    next(it)
    return it.send(x[0]) + it.send(x[1])


@right
def a_generator_that_is_sent_values(x):
    def summed():
        total = 0.0
        while True:
            total = total + (yield total)

    it = summed()
    next(it)
    it.send(x[0])
    return it.send(x[1])


@right
def a_generator_function_that_returns_early(x):
    def leading():
        for value in x:
            if value < 0:
                return
            yield value

    return sum(leading(), 0.0)


@right
def a_generator_function_that_calls_itself(x):
    def steps(n):
        if n > 0:
            yield n * x[0]
            yield from steps(n - 1)

    return sum(steps(3))


@right
def a_generator_of_a_method_that_counts(x):
    class Box:
        def __init__(self, values):
            self.values, self.seen = values, 0

        def positive(self):
            for value in self.values:
                self.seen += 1
                if value > 0:
                    yield value

    box = Box(x)
    return sum(box.positive(), 0.0) + box.seen


@right
def an_iter_that_yields_and_counts(x):
    class Box:
        def __init__(self, values):
            self.values, self.seen = values, 0

        def __iter__(self):
            for value in self.values:
                self.seen += 1
                yield value

    box = Box(x)
    for value in box:
        if value < 0:
            break
    return value + box.seen


@refused
def an_iterator_of_a_class_that_a_value_leaves(x):
    class Steps:
        def __init__(self):
            self.at = 0

        def __iter__(self):
            return self

        def __next__(self):
            if self.at >= 4:
                raise StopIteration
            self.at += 1
            return x[self.at - 1]

    steps = Steps()
    return (2.0 if any(value < 0 for value in steps) else 3.0) * steps.at + x[0]


@refused
def items_of_a_class_that_a_value_leaves(x):
    class Row:
        asked = 0

        def __getitem__(self, at):
            Row.asked += 1
            if at >= 3:
                raise IndexError
            return x[at]

    row = Row()
    return (2.0 if any(value < 0 for value in row) else 3.0) * row.asked + x[0]


@right
def a_list_that_grows_while_it_is_taken(x):
    items = [x[0], x[1]]

    def grown(value):
        if len(items) < 4:
            items.append(value * 2)
        return value

    return sum(grown(value) for value in items)


@refused
def a_stop_in_an_element(x):
    def stopped(i):
        if i == 2:
            raise StopIteration
        return i

    try:
        return x[0] * sum(stopped(i) for i in range(4))
    except RuntimeError:
        return x[1]


@right
def an_error_in_an_element(x):
    def checked(value):
        if value is None:
            raise ValueError
        return value

    try:
        return sum(checked(value) for value in [x[0], None])
    except ValueError:
        return x[1]


@right
def what_kind_a_generator_is(x):
    it, doubled = (value for value in x), map(abs, x)
    kinds = isinstance(it, types.GeneratorType), isinstance(doubled, map), type(zip(it, x)) is zip, isinstance(it, list)
    return x[0] * sum(i for i, kind in enumerate(kinds, 1) if kind)


@right
def a_context_that_is_a_generator(x):
    log = [0.0]

    @contextlib.contextmanager
    def opened(value):
        log[0] = log[0] + 1.0
        try:
            yield value
        finally:
            log[0] = log[0] * 10

    with opened(x[0]) as value:
        y = value * 2 if value > 0 else value
    return y + log[0]


rows(
    __name__,
    right="""
items = [x[0], x[1]] | it = (v * 2 for v in items) | items = [x[2]] | sum(it) + items[0]
items = [x[0], x[1]] | it = (v * 2 for v in items) | items.append(x[2]) | sum(it)
factor = 2.0 | it = (v * factor for v in x) | factor = 5.0 | sum(it)
factor = 2.0 | it = (v * factor for v in x) | if x[0] > 0: factor = 5.0 | sum(it)
functions = list((lambda: v) for v in x) | sum(f() for f in functions)
sum(f() for f in ((lambda: v * 2 if v > 0 else v) for v in x))
rows = list((v * w for w in (1.0, 2.0)) for v in x) | sum(sum(row) for row in rows)
sum((a * b for a in x if a > 0 for b in x if b > a), 0.0)
sum(i * a - b if a > b else b for i, (a, b) in enumerate(zip(x[:2], x[2:], strict=True), 1))
sum((v for v in x if v > 0 and v < 1 if v != 0.5), 0.0)
v = x[0] | total = sum(v * 2 for v in x if v > 0) | total + 10 * v
tally = Tally() | it = counted(x, tally) | before = tally.count | sum(it) + 100 * before + 10 * tally.count
it = positives(x) | sum(it) + 100.0 * sum(it)
next(positives(x), -1.0)
it = counted(x, Tally()) | next(it) + 10 * next(it)
sum(halves(x[0] * x[0] + 1, 0.3))
tally = Tally() | total = sum(counted(x, tally)) if x[0] > 0 else x[1] | total + 10 * tally.count
""",
    refused="""
it = positives(x) | next(it, -1.0) + 10 * next(it, -2.0)
tally = Tally() | items = list(counted(x, tally)) if x[0] > 0 else [x[1]] | items[0] * tally.count
it = (value for value in x) | first = next(it) | it.close() | first + sum(it)
""",
)
