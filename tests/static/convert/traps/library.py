"""What Python offers for numbers and texts, on values that only the run knows."""

import dataclasses
import fractions
import math
import statistics
import string

import graphs as g
from tests.static.convert.table import refused, right

# Numbers -------------------------------------------------------------------------------------------------------------


@right
def a_rounded_number(x):
    return x[0] * round(float(x[1])) + round(float(x[2]), None)


@refused
def a_number_rounded_to_a_digit(x):
    return g.sum(x) * round(float(x[0]), 1)


@refused
def an_int_rounded_to_tens(x):
    return g.sum(x) * round(int(x[0] * 100), -1)


@refused
def a_method_of_a_float(x):
    return g.sum(x) * (2.0 if float(x[0]).is_integer() else 1.0)


@right
def an_attribute_of_a_float(x):
    return x[0] * float(x[1]).real


@refused
def a_method_of_an_int(x):
    return x[0] * int(x[1] * 10).bit_length()


@right
def an_attribute_that_no_float_has(x):
    return x[0] * (2.0 if hasattr(float(x[1]), "shape_of_it") else 1.0)


@refused
def a_truncated_float(x):
    return x[0] * math.trunc(float(x[1]))


@refused
def a_square_root_of_a_float(x):
    return x[0] * math.sqrt(abs(float(x[1])))


@refused
def a_power_with_a_modulus(x):
    return x[0] * pow(int(abs(x[1]) * 10), 2, 5)


@right
def a_power_of_two_numbers(x):
    return x[0] * pow(float(x[1]), 2) + pow(3, 2, 5)


@refused
def a_fraction_of_a_float(x):
    return x[0] * float(fractions.Fraction(float(x[1])))


@refused
def a_mean_of_floats_by_a_library(x):
    return x[1] * statistics.mean([float(x[0]), 2.0])


@right
def a_mean_of_known_floats_by_a_library(x):
    return x[1] * statistics.mean([1.0, 2.0])


@right
def an_error_of_a_library_that_is_caught(x):
    try:
        return x[0] * float("abc")
    except ValueError:
        return x[1] if x[2] > 0 else x[3]


@refused
def an_error_that_only_the_conversion_makes_is_not_caught(x):
    try:
        return x[1] * statistics.mean([float(x[0]), 2.0])
    except TypeError:
        return x[1] * 100


# Lengths and texts that only the run knows ----------------------------------------------------------------------------


@refused
def a_list_repeated_by_a_value(x):
    return x[0] * len([1.0] * int(abs(x[1] * 3)))


@refused
def a_tuple_repeated_by_a_value(x):
    return x[0] * len(int(abs(x[1] * 3)) * (1.0, 2.0))


@refused
def a_list_that_is_repeated_in_place(x):
    items = [1.0]
    items *= int(abs(x[1] * 3))
    return x[0] * len(items)


@refused
def a_text_repeated_by_a_value(x):
    return x[0] * len("a" * int(abs(x[1] * 3)))


@refused
def a_slice_of_a_list_by_a_value(x):
    return x[0] * sum([1.0, 2.0, 3.0, 4.0][: int(abs(x[1])) + 1])


@refused
def the_length_of_a_range_of_a_value(x):
    return x[0] * len(range(int(abs(x[1] * 5))))


@refused
def a_list_of_a_range_of_a_value(x):
    return x[0] * len(list(range(int(abs(x[1] * 5)))))


@refused
def a_number_in_a_range_of_a_value(x):
    return x[0] * (2.0 if 3 in range(int(abs(x[1] * 5))) else 1.0)


@refused
def a_range_of_a_value_backwards(x):
    total = 0.0
    for i in reversed(range(int(abs(x[1] * 5)))):
        total = total + i * x[0]
    return total


@right
def an_enumerated_range_of_a_value(x):
    return sum((a * b * x[0] for a, b in enumerate(range(int(abs(x[1] * 3))))), 0.0 * x[0])


@refused
def a_zip_of_a_range_of_a_value(x):
    return sum((a * b for a, b in zip(range(int(abs(x[1] * 3))), x, strict=False)), 0.0 * x[0])


@refused
def a_text_by_format(x):
    return x[0] * len("{}".format(int(x[1] * 10)))


@refused
def a_text_by_percent(x):
    return x[0] * len("%s" % int(x[1] * 10))


@refused
def a_text_by_a_library(x):
    return x[0] * len(string.Template("$a").substitute(a=int(x[1] * 10)))


@refused
def a_text_of_a_list_of_values(x):
    return x[0] * len(repr([int(v * 10) for v in x]))


@refused
def a_text_of_a_dict_of_values(x):
    return x[0] * len(f"{ {'a': int(x[1] * 10)} }")


@refused
def a_text_of_an_object_that_shows_a_value(x):
    class Shown:
        def __init__(self, value):
            self.value = value

        def __str__(self):
            return f"shows {self.value!r}"

    return x[0] * len(str(Shown(int(x[1] * 10))))


@refused
def a_text_of_a_dataclass_that_shows_a_value(x):
    @dataclasses.dataclass
    class Shown:
        value: int

    return x[0] * len(f"{[Shown(int(x[1] * 10))]}")


@right
def a_text_of_an_object_that_shows_nothing(x):
    class Shown:
        def __init__(self, value):
            self.value = value

        def __str__(self):
            return "nothing"

    return x[0] * len(f"{Shown(x[1])}") * len(str(Shown(x[1])))


@refused
def a_digit_of_a_value(x):
    return x[0] * len(hex(int(abs(x[1]) * 10)))
