"""Implicit calls: methods that Python calls by itself, for a property, an item, a test, a loop, a with, a key."""

import copy
import functools
from collections import defaultdict
from typing import NamedTuple

import graphs as g
from tests.static.convert.table import refused, right, rows

LOG = []


class Counting:
    """Each of its methods counts its calls."""

    def __init__(self, value=2.0):
        self.value = value
        self.calls = 0

    def count(self):
        self.calls += 1

    @property
    def read(self):
        self.count()
        return self.value

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        self.count()
        return 2.0

    def __getitem__(self, key):
        self.count()
        return self.value * key

    def __setitem__(self, key, value):
        self.count()
        self.value = value * key

    def __delitem__(self, key):
        self.count()
        self.value = self.value + key

    def __bool__(self):
        self.count()
        return True

    def __len__(self):
        self.count()
        return 3

    def __iter__(self):
        self.count()
        return iter([1.0, 2.0])

    def __contains__(self, value):
        self.count()
        return value == 1.0

    def __enter__(self):
        self.count()
        return 2.0

    def __exit__(self, *error):
        self.count()
        return False

    def __hash__(self):
        self.count()
        return 5

    def __neg__(self):
        self.count()
        return -2.0

    def __call__(self, value):
        self.count()
        return value * 2

    def __float__(self):
        self.count()
        return 2.0

    def __str__(self):
        self.count()
        return "counting"

    def __lt__(self, other):
        self.count()
        return True

    def __abs__(self):
        self.count()
        return 2.0


class Twice:
    """A descriptor that counts in its owner."""

    def __get__(self, owner, kind=None):
        owner.calls += 1
        return 2.0

    def __set__(self, owner, value):
        owner.calls += 2


class Described:
    value = Twice()

    def __init__(self):
        self.calls = 0


class Lazy:
    def __init__(self):
        self.calls = 0

    @functools.cached_property
    def value(self):
        self.calls += 1
        return 2.0


class Watching:
    def __init__(self):
        self.__dict__["calls"] = 0
        self.__dict__["value"] = 1.0

    def __setattr__(self, name, value):
        object.__setattr__(self, "calls", self.calls + 1)
        object.__setattr__(self, name, value)


class Super(Watching):
    def __setattr__(self, name, value):
        super().__setattr__(name, value * 2)


class Numbered(dict):
    def __init__(self):
        self.calls = 0

    def __missing__(self, key):
        self.calls += 1
        return 2.0


class Steps:
    """An iterator of its own, which counts."""

    def __init__(self):
        self.at = 0

    def __iter__(self):
        return self

    def __next__(self):
        self.at += 1
        if self.at > 3:
            raise StopIteration
        return float(self.at)


class Yielding:
    def __init__(self):
        self.calls = 0

    def __iter__(self):
        self.calls += 1
        yield 1.0
        yield 2.0


class Meta(type):
    made = 0

    def __call__(cls, *args):
        LOG.append(1.0)
        return super().__call__(*args)


class Made(metaclass=Meta):
    pass


class New:
    count = 0

    def __new__(cls):
        cls.count += 1
        return super().__new__(cls)


class Deleted:
    def __init__(self, log):
        self.log = log

    def __del__(self):
        self.log.append(1.0)


class Logged(NamedTuple):
    a: float
    log: list


class NewPair(Logged):
    __slots__ = ()

    def __new__(cls, a, log):
        log.append(1.0)
        return super().__new__(cls, a, log)


class DeletedPair(Logged):
    __slots__ = ()

    def __del__(self):
        self.log.append(1.0)


class Intercepting:
    def __init__(self):
        self.calls = 0

    def __getattribute__(self, name):
        if name == "value":
            self.calls += 1
            return 2.0
        return object.__getattribute__(self, name)


@right
def a_test(x):
    box, y = Counting(), g.sum(x)
    if y > 0:
        if box:
            y = y * 2
    return y * (box.calls + 1)


@right
def a_loop(x):
    box, y = Counting(), g.sum(x)
    if y > 0:
        for value in box:
            y = y * (value + 1)
    return y * (box.calls + 1)


@right
def a_loop_over_what_yields(x):
    box, y = Yielding(), g.sum(x)
    if y > 0:
        for value in box:
            y = y * (value + 1)
    return y * (box.calls + 1)


@refused
def a_loop_over_an_iterator_of_its_own(x):
    steps, y = Steps(), g.sum(x)
    if y > 0:
        for value in steps:
            y = y * value
    return y * (steps.at + 1)


@right
def a_with(x):
    box, y = Counting(), g.sum(x)
    if y > 0:
        with box as factor:
            y = y * factor
    return y * (box.calls + 1)


@right
def a_with_that_only_enters(x):
    box, y = Counting(), g.sum(x)
    while y > 1:
        with box:
            y = y / 2
    return y * (box.calls + 1)


@refused
def a_key(x):
    box, y = Counting(), g.sum(x)
    names = {}
    names[1] = 2.0
    if y > 0:
        y = y * (2 if box in names else 3)
    return y * (box.calls + 1)


@refused
def an_order(x):
    items, y = [Counting(1.0), Counting(2.0)], g.sum(x)
    if y > 0:
        y = y * sorted(items)[0].value
    return y * (items[0].calls + items[1].calls + 1)


@refused
def the_least(x):
    items, y = [Counting(1.0), Counting(2.0)], g.sum(x)
    if y > 0:
        y = y * min(items).value
    return y * (items[0].calls + items[1].calls + 1)


@right
def a_default_that_is_there(x):
    names, y = defaultdict(list), g.sum(x)
    names["k"].append(1.0)
    if y > 0:
        y = y * (len(names["k"]) + 2)
    return y * (len(names) + 1)


@refused
def a_missing_key_by_the_operator_module(x):
    names, y = Numbered(), g.sum(x)
    if y > 0:
        y = y * functools.partial(dict.__getitem__, names)("k")
    return y * (names.calls + 1)


@refused
def a_copy_that_counts(x):
    class Copied:
        def __init__(self):
            self.calls = 0

        def __copy__(self):
            self.calls += 1
            return self

    box, y = Copied(), g.sum(x)
    if y > 0:
        copy.copy(box)
    return y * (box.calls + 1)


@right
def a_property_of_nothing_else(x):
    class Pair:
        def __init__(self, a, b):
            self.a, self.b = a, b

        @property
        def total(self):
            return self.a + self.b if self.a > 0 else self.b

        def __len__(self):
            return 2

        def __str__(self):
            return "a pair"

    pair, y = Pair(x[0], x[1]), g.sum(x)
    if y > 0:
        y = y * pair.total * len(pair) * len(f"{pair}") * len(str(pair))
    return y


rows(
    __name__,
    right="""
box, y = Counting(), g.sum(x) | if y > 0: y = y * box.read | y * (box.calls + 1)
box, y = Counting(), g.sum(x) | if y > 0: y = y * getattr(box, "read") | y * (box.calls + 1)
box, y = Counting(), g.sum(x) | if y > 0: y = y * 2 if hasattr(box, "read") else y | y * (box.calls + 1)
box, y = Counting(), g.sum(x) | if y > 0: y = y * box.anything | y * (box.calls + 1)
box, y = Counting(), g.sum(x) | if y > 0: y = y * box[3] | y * (box.calls + 1)
box, y = Counting(), g.sum(x) | if y > 0: box[3] = x[0] | y * (box.calls + 1) * box.value
box, y = Counting(), g.sum(x) | if y > 0: del box[3] | y * (box.calls + 1) * box.value
box, y = Counting(), g.sum(x) | if y > 0: box[3] += 1.0 | y * (box.calls + 1) * box.value
box, y = Counting(), g.sum(x) | if y > 0: y = y if not box else y * 2 | y * (box.calls + 1)
box, y = Counting(), g.sum(x) | if y > 0: y = y * 2 if bool(box) else y | y * (box.calls + 1)
box, y = Counting(), g.sum(x) | if y > 0: y = y * len(box) | y * (box.calls + 1)
box, y = Counting(), g.sum(x) | if y > 0: y = y * len([value for value in box]) | y * (box.calls + 1)
box, y = Counting(), g.sum(x) | if y > 0: a, b = box; y = y * (a + b) | y * (box.calls + 1)
box, y = Counting(), g.sum(x) | if y > 0: y = y * 2 if 1.0 in box else y | y * (box.calls + 1)
box, y = Counting(), g.sum(x) | if y > 0: y = y * -box | y * (box.calls + 1)
box, y = Counting(), g.sum(x) | if y > 0: y = box(y) | y * (box.calls + 1)
box, y = Counting(), g.sum(x) | if y > 0: y = y * sum(map(box, [1.0, 2.0])) | y * (box.calls + 1)
box, y = Counting(), g.sum(x) | if y > 0: y = y * sum(map(box.__getitem__, [1.0, 2.0])) | y * (box.calls + 1)
box, y = Lazy(), g.sum(x) | y = y * box.value | if y > 0: y = y * box.value | y * box.value * box.calls
box, y = Watching(), g.sum(x) | if y > 0: box.value = x[0] | y * box.value * (box.calls + 1)
box, y = Super(), g.sum(x) | if y > 0: box.value = x[0] | y * box.value * (box.calls + 1)
box, y = Watching(), g.sum(x) | if y > 0: object.__setattr__(box, "value", x[0]) | y * box.value * (box.calls + 1)
box, y = Watching(), g.sum(x) | if y > 0: box.__dict__["value"] = x[0] | y * box.value * (box.calls + 1)
names, y = Numbered(), g.sum(x) | if y > 0: y = y * names["k"] | y * (names.calls + 1)
names, y = Counter(), g.sum(x) | names["k"] = 1 | if y > 0: names["k"] += 2 | y * names["k"]
names, y = OrderedDict(a=2.0, b=3.0), g.sum(x) | if y > 0: names["a"] = 5.0 | y * list(names.values())[0]
""",
    refused="""
box, y = Described(), g.sum(x) | if y > 0: box.value = 3.0 | y * (box.calls + 1)
box, y = Described(), g.sum(x) | if y > 0: y = y * box.value | y * (box.calls + 1)
box, y = Intercepting(), g.sum(x) | if y > 0: y = y * box.value | y * (box.calls + 1)
box, y = Counting(), g.sum(x) | if y > 0 and box: y = y * 2 | y * (box.calls + 1)
box, y = Counting(), g.sum(x) | if y > 0 or box: y = y * 2 | y * (box.calls + 1)
box, y = Counting(), g.sum(x) | if y > 0: y = y * len(list(box)) | y * (box.calls + 1)
box, y = Counting(), g.sum(x) | if y > 0: y = y * sum(box) | y * (box.calls + 1)
box, y = Counting(), g.sum(x) | if y > 0: y = y * max(*box) | y * (box.calls + 1)
box, y = Counting(), g.sum(x) | if y > 0: y = y * len([*box]) | y * (box.calls + 1)
box, y = Counting(), g.sum(x) | if y > 0: y = y * len({box: 1}) | y * (box.calls + 1)
box, y = Counting(), g.sum(x) | if y > 0: y = y * hash(box) | y * (box.calls + 1)
box, y = Counting(), g.sum(x) | if y > 0: y = y * abs(box) | y * (box.calls + 1)
box, y = Counting(), g.sum(x) | if y > 0: y = y * float(box) | y * (box.calls + 1)
box, y = Counting(), g.sum(x) | if y > 0: y = y * len(f"{box}") | y * (box.calls + 1)
box, y = Lazy(), g.sum(x) | if y > 0: y = y * box.value | y * box.value * box.calls
names, y = defaultdict(list), g.sum(x) | if y > 0: y = y * (len(names["k"]) + 2) | y * (len(names) + 1)
names, y = OrderedDict(a=2.0, b=3.0), g.sum(x) | if y > 0: names.move_to_end("a") | y * list(names.values())[0]
y = g.sum(x) | if y > 0: Made() | y * (len(LOG) + 1)
New.count, y = 0, g.sum(x) | if y > 0: New() | y * (New.count + 1)
log, y = [], g.sum(x) | if y > 0: Deleted(log) | y * (len(log) + 1)
log, y = [], g.sum(x) | if y > 0: NewPair(1.0, log) | y * (len(log) + 1)
log, y = [], g.sum(x) | if y > 0: DeletedPair(1.0, log) | y * (len(log) + 1)
""",
)
