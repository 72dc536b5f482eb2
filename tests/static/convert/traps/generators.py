"""Generator expressions and functions: when they read names, what runs before an item, what a consumer raises."""

from tests.static.convert.table import refused, right


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
def the_source_is_taken_when_it_is_made(x):
    items = [x[0], x[1]]
    it = (v * 2 for v in items)
    items = [x[2]]
    return sum(it) + items[0]


@right
def the_source_grows_before_it_is_taken(x):
    items = [x[0], x[1]]
    it = (v * 2 for v in items)
    items.append(x[2])
    return sum(it)


@right
def an_outer_name_is_read_late(x):
    factor = 2.0
    it = (v * factor for v in x)
    factor = 5.0
    return sum(it)


@right
def an_outer_name_that_a_branch_sets_is_read_late(x):
    factor = 2.0
    it = (v * factor for v in x)
    if x[0] > 0:
        factor = 5.0
    return sum(it)


@right
def functions_of_a_generator_see_its_last_item(x):
    functions = list((lambda: v) for v in x)
    return sum(f() for f in functions)


@right
def functions_of_a_generator_see_their_item_in_time(x):
    return sum(f() for f in ((lambda: v * 2 if v > 0 else v) for v in x))


@right
def generators_of_a_generator_see_its_last_item(x):
    rows = list((v * w for w in (1.0, 2.0)) for v in x)
    return sum(sum(row) for row in rows)


@right
def two_loops_and_two_conditions(x):
    return sum((a * b for a in x if a > 0 for b in x if b > a), 0.0)


@right
def a_nested_target(x):
    return sum(i * a - b if a > b else b for i, (a, b) in enumerate(zip(x[:2], x[2:], strict=True), 1))


@right
def a_condition_with_and(x):
    return sum((v for v in x if v > 0 and v < 1 if v != 0.5), 0.0)


@right
def a_target_of_the_name_of_a_variable(x):
    v = x[0]
    total = sum(v * 2 for v in x if v > 0)
    return total + 10 * v


@right
def the_loops_of_a_nested_generator_are_taken_late(x):
    tally = Tally()
    it = (a + b for a in x[:2] for b in (tally.doubled(a), 1.0))
    before = tally.count
    return sum(it) + 100 * tally.count + before * 1000


@right
def nothing_runs_before_the_first_item(x):
    tally = Tally()
    it = counted(x, tally)
    before = tally.count
    return sum(it) + 100 * before + 10 * tally.count


@right
def a_generator_function_is_taken_once(x):
    it = positives(x)
    return sum(it) + 100.0 * sum(it)


@refused
def next_twice_of_a_generator_function(x):
    it = positives(x)
    return next(it, -1.0) + 10 * next(it, -2.0)


@right
def next_of_a_generator_function(x):
    return next(positives(x), -1.0)


@right
def next_twice_of_a_generator_function_that_decides_nothing(x):
    it = counted(x, Tally())
    return next(it) + 10 * next(it)


@right
def a_break_in_a_generator_function_that_counts(x):
    tally = Tally()
    for value in counted(x, tally):
        if value > 1:
            break
    return value + 100 * tally.count


@right
def a_generator_function_with_a_loop_of_the_run(x):
    return sum(halves(x[0] * x[0] + 1, 0.3))


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


@refused
def a_list_of_a_generator_function_that_writes_under_a_test(x):
    tally = Tally()
    items = list(counted(x, tally)) if x[0] > 0 else [x[1]]
    return items[0] * tally.count


@right
def a_sum_of_a_generator_function_that_writes_under_a_test(x):
    tally = Tally()
    total = sum(counted(x, tally)) if x[0] > 0 else x[1]
    return total + 10 * tally.count
