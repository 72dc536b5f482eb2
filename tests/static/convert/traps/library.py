"""What Python offers for numbers and texts, on values that only the run knows."""

import dataclasses
import statistics

from tests.static.convert.table import refused, right, rows

# Numbers -------------------------------------------------------------------------------------------------------------


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


rows(
    __name__,
    right="""
x[0] * round(float(x[1])) + round(float(x[2]), None)
x[0] * float(x[1]).real
x[0] * (2.0 if hasattr(float(x[1]), "shape_of_it") else 1.0)
x[0] * pow(float(x[1]), 2) + pow(3, 2, 5)
x[1] * statistics.mean([1.0, 2.0])
sum((a * b * x[0] for a, b in enumerate(range(int(abs(x[1] * 3))))), 0.0 * x[0])
""",
    refused="""
g.sum(x) * round(float(x[0]), 1)
g.sum(x) * round(int(x[0] * 100), -1)
g.sum(x) * (2.0 if float(x[0]).is_integer() else 1.0)
x[0] * int(x[1] * 10).bit_length()
x[0] * math.trunc(float(x[1]))
x[0] * math.gamma(abs(float(x[1])))
x[0] * pow(int(abs(x[1]) * 10), 2, 5)
x[0] * float(fractions.Fraction(float(x[1])))
x[1] * statistics.mean([float(x[0]), 2.0])
x[0] * len([1.0] * int(abs(x[1] * 3)))
x[0] * len(int(abs(x[1] * 3)) * (1.0, 2.0))
items = [1.0] | items *= int(abs(x[1] * 3)) | x[0] * len(items)
x[0] * len("a" * int(abs(x[1] * 3)))
x[0] * sum([1.0, 2.0, 3.0, 4.0][: int(abs(x[1])) + 1])
x[0] * len(range(int(abs(x[1] * 5))))
x[0] * len(list(range(int(abs(x[1] * 5)))))
x[0] * (2.0 if 3 in range(int(abs(x[1] * 5))) else 1.0)
total = 0.0 | for i in reversed(range(int(abs(x[1] * 5)))): total = total + i * x[0] | total
sum((a * b for a, b in zip(range(int(abs(x[1] * 3))), x, strict=False)), 0.0 * x[0])
x[0] * len("{}".format(int(x[1] * 10)))
x[0] * len("%s" % int(x[1] * 10))
x[0] * len(string.Template("$a").substitute(a=int(x[1] * 10)))
x[0] * len(repr([int(v * 10) for v in x]))
x[0] * len(f"{ {'a': int(x[1] * 10)} }")
x[0] * len(hex(int(abs(x[1]) * 10)))
""",
)
