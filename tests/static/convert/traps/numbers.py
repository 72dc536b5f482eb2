"""Python numbers: ints stay ints, floats are weak, bools are what `is` and `not` find, text and keys need the value."""

import numpy as np

import graphs as g
from tests.static.convert.table import refused, right


@right
def counter_beside_a_float(x):
    step, rounds = 0.1, 0
    while g.sum(x * x) * step < 2:
        step *= 2
        rounds += 1
    return g.sum(x) * step + rounds


@right
def a_python_float_stays_weak(x):
    single, factor = g.astype(x, np.float32), 0.1
    if g.sum(x) > 0:
        factor /= 3
    scaled = single * factor
    return g.sum(scaled) * (1.0 if scaled.dtype == np.float32 else 1000.0)


@right
def a_float_of_a_loop_stays_weak(x):
    single, factor = g.astype(x, np.float32), 4.0
    while g.sum(x * x) < factor:
        factor = factor / 2
    return g.sum(single * factor)


@right
def an_int_divides_down(x):
    n = 9
    if g.sum(x) > 0:
        n = 4
    return g.sum(x) * (n // 2) + n % 4 + n / 8


@right
def an_int_of_a_branch_is_an_int(x):
    n = 1
    if g.max(x) > 1:
        n = 3
    return g.sum(x) * (10 if isinstance(n, int) else 1)


@right
def int_and_float_of_two_branches(x):
    if g.sum(x) > 0:
        n = 2
    else:
        n = 0.5
    return g.sum(x) * n


@refused
def an_int_longer_than_64_bits(x):
    n, s = 1, g.sum(x * x) + 3
    while s > 1:
        n, s = n * 1_000_003, s * 0.6
    return g.sum(x) * (n % 7)


@right
def a_bool_is_counted(x):
    n = 0
    for value in x:
        n += value > 0
    return g.sum(x) * n


@right
def not_of_a_number(x):
    n = 0
    if g.sum(x) > 0:
        n = 2
    return g.sum(x) if not n else g.sum(x) * n


@refused
def is_of_a_bool(x):
    above = True
    if g.sum(x) > 0:
        above = False
    return g.sum(x) * (2 if above is True else 3)


@right
def is_none_of_what_is_never_none(x):
    best = x[0]
    if g.sum(x) > 0:
        best = x[1]
    return g.sum(x) if best is None else best * 2


@refused
def a_number_is_a_key(x):
    place = 0
    if g.sum(x) > 0:
        place = 1
    return g.sum(x) * {0: 2.0, 1: 3.0}[place]


@refused
def an_argmax_in_a_set(x):
    return g.sum(x) * (2.0 if int(g.argmax(x)) in {0, 1} else 3.0)


@right
def an_argmax_in_a_tuple(x):
    return g.sum(x) * (2.0 if int(g.argmax(x)) in (0, 1) else 3.0)


@refused
def text_of_a_number(x):
    n = 1
    if g.sum(x) > 0:
        n = 2
    return g.sum(x) * {"1": 5.0}.get(str(n), 7.0)


@refused
def text_in_an_fstring(x):
    n = 1
    if g.sum(x) > 0:
        n = 2
    return g.sum(x) * (5.0 if f"{n:02d}" == "01" else 7.0)


@right
def text_of_a_shape(x):
    factors = {"size4": 3.0}
    if g.sum(x) > 0:
        return g.sum(x) * factors[f"size{x.shape[0]}"]
    return g.sum(x)


@refused
def a_number_is_an_index_of_a_list_of_words(x):
    words = ["add", "scale"]
    word = words[int(x[0] > 0)]
    return g.sum(x) + 1 if word == "add" else g.sum(x) * 2


@right
def rounding_down_to_an_int(x):
    n = int(x[0] * 3)
    return g.sum(x) * n


@right
def float_stops_the_gradient(x):
    return g.sum(x) * float(x[1])


@right
def chained_comparison_reads_the_middle_once(x):
    return g.sum(x) if -1 < g.sum(x) <= 2 else g.sum(x) * 3


@right
def chained_comparison_of_three(x):
    return g.sum(x) * 2 if x[0] < x[1] < x[2] else g.sum(x)


@right
def a_power_of_a_counter(x):
    n = 0
    while g.sum(x * x) > 2**n:
        n += 1
    return g.sum(x) * 2.0**n


@right
def an_augmented_division_makes_a_float(x):
    n = 3
    if g.sum(x) > 0:
        n /= 2
    return g.sum(x) * n


@right
def divmod_of_a_count(x):
    n = 0
    for value in x:
        if value > 0:
            n += 3
    whole, rest = n // 2, n % 2
    return g.sum(x) * whole + rest


@right
def the_larger_of_a_number_and_a_tensor(x):
    return max(g.sum(x), 0.5) * min(1.0, x[0], x[1])
