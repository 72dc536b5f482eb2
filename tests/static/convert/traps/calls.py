"""Calls: helpers, methods, decorators, lambdas, partials, recursion, builtins over values, and/or as values."""

import functools

import graphs as g
from tests.static.convert.table import refused, right, rows


class Scale:
    factor = 2.0

    def __init__(self, below=3.0):
        self.below = below

    def scaled(self, x):
        return x * self.factor if g.sum(x) > 0 else x * self.below

    def __call__(self, x):
        return self.scaled(x)

    @staticmethod
    def clipped(value):
        if value > 1:
            return value * 0 + 1
        return value

    @classmethod
    def twice(cls, value):
        return value * cls.factor if value > 0 else value

    @property
    def halved(self):
        return self.below / 2 if self.below > 1 else self.below


class Steep(Scale):
    factor = 5.0

    def scaled(self, x):
        if g.sum(x) > 1:
            return x
        return super().scaled(x)


class Length:
    def __init__(self, value):
        self.value = value

    def __gt__(self, other):
        return self.value > other.value

    def __add__(self, other):
        return Length(self.value + other.value) if other.value > 0 else self


def signed(value, factor=2.0, *, shift=0.0):
    if value > 0:
        return value * factor + shift
    return value - shift


def doubling(f):
    @functools.wraps(f)
    def wrapped(*args):
        return f(*args) * 2

    return wrapped


@doubling
def decorated_sum(x):
    if g.sum(x) > 0:
        return g.sum(x)
    return g.sum(x) * 3


@right
def a_lambda_with_a_default(x):
    rules = [lambda v, i=i: v * i if v > 0 else v for i in range(4)]
    return sum(rule(value) for rule, value in zip(rules, x, strict=True))


@right
def recursion_over_a_number(x):
    def power(n):
        return 1 if n == 0 else g.sum(x) * power(n - 1)

    return power(3) if g.sum(x) > 0 else power(2)


@right
def recursion_with_a_branch_of_values(x):
    def folded(i):
        if i == 4:
            return x[0] * 0
        rest = folded(i + 1)
        return rest + x[i] if x[i] > 0 else rest

    return folded(0)


@refused
def recursion_that_a_value_ends(x):
    def halved(value):
        return value if value < 1 else halved(value / 2)

    return halved(g.sum(x * x))


@right
def a_mutual_recursion(x):
    def even(n, value):
        return value if n == 0 else odd(n - 1, value * 2 if value > 0 else value + 1)

    def odd(n, value):
        return even(n - 1, value - 1) if n else value

    return even(4, g.sum(x))


@right
def a_default_that_is_a_list(x, weights=(2.0,)):
    return g.sum(x) * weights[0] if g.sum(x) > 0 else g.sum(x)


@right
def star_arguments(x):
    def least(first, *others):
        for other in others:
            if other < first:
                first = other
        return first

    return least(*x) + least(x[0])


@right
def keyword_arguments_as_a_dict(x):
    def weighted(value, **weights):
        total = value * 0
        for name, weight in weights.items():
            if value > 0 or name == "b":
                total = total + value * weight
        return total

    return weighted(x[0], a=2.0, b=3.0)


@right
def a_class_made_inside(x):
    class Positive:
        def __init__(self, value):
            self.value = value if value > 0 else -value

    return Positive(x[0]).value + Positive(x[1]).value


rows(
    __name__,
    right="""
signed(x[0]) + signed(x[1], 3.0) + signed(x[2], shift=0.5)
if signed(g.sum(x)) > 1: return signed(x[0]) | signed(x[1], *[4.0], **{"shift": 1.0})
decorated_sum(x)
pick = lambda v: v * 2 if v > 0 else v * 3 | pick(x[0]) + pick(x[1])
up, down = (lambda v: v * 2 if v > 0 else v), (lambda v: v if v > 0 else v * 5) | up(x[0]) + down(x[1])
g.sum(Scale().scaled(x))
g.sum(Scale(0.5)(x))
g.sum(Steep()(x))
Scale.clipped(x[0]) + Scale.twice(x[1]) + Steep.twice(x[2])
g.sum(x) * Scale().halved if g.sum(x) > 0 else g.sum(x)
total = Length(x[0]) + Length(x[1]) | total.value if total > Length(x[2]) else x[3]
functools.partial(signed, factor=5.0)(x[0])
functools.reduce(lambda total, value: total + value if value > 0 else total, x, x[0] * 0)
sum(map(signed, x))
sum(filter(lambda value: value > 0, x), x[0] * 0)
sum(itertools.takewhile(lambda value: value > 0, x), x[0] * 0)
sum(itertools.accumulate(x, lambda total, value: total + value if value > 0 else total))
operator.mul(x[0], 2) if operator.gt(x[0], x[1]) else operator.add(x[0], x[1])
max(x[0], x[1], x[2]) - min(x)
max(x, key=lambda value: -value * value) + g.sum(x)
max([value for value in x if value.shape == ()], default=x[0]) * 2
y = g.sum(x) | if any(value > 2 for value in x): y = y * 2 | if all(value > -1 for value in x): y = y + 1 | y
abs(x[0]) * 2 if round(float(x[1])) > 0 else abs(x[1])
sum(value * 2 if value > 0 else value for value in x)
signs = {i: (value if value > 0 else -value) for i, value in enumerate(x)} | signs[0] + 2 * signs[3]
sum(a * b if a > b else a for a in x for b in x[:2])
y = x[0] > 0 and x[1] or x[2] | y * 2
n = int(x[0] > 0) * 2 | g.sum(x) * (n or 3)
total = g.sum(x) | if total > 0 and g.log(total) > 0.3: return g.log(total) | total
total = g.sum(x) | if total <= 0 or g.sqrt(total) > 1.5: return total * 2 | g.sqrt(total)
if not (x[0] > 0 and x[1] > 0): return g.sum(x) | x[0] * x[1]
x[0] if x[1] > 0 else x[2] * 2 if x[3] > 0 else g.sum(x)
floor = g.maximum(x[0], 0.0) | x[1] / floor if floor > 0 else x[1]
parts = [] | parts.append(x[0]) if g.sum(x) > 0 else parts.append(x[1]) | parts[0]
y = x[0] if isinstance(x, (list, tuple)) else g.sum(x) | y if y > 0 else y * 2
if g.sum(x) > 0: return g.sum(x) / len(x) | g.sum(x)
""",
    refused="""
g.sum(g.stack([value for value in x if value > -5]))
sum([value for value in x if value > 0], g.sum(x) * 0)
""",
)
