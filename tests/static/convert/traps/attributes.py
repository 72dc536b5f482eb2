"""Attributes: what a branch writes into an object, in a dict, in a slot, or by a setter."""

from dataclasses import dataclass

import graphs as g
from tests.static.convert.table import right, rows


class Counted:
    def __init__(self, value=0.0):
        self.value = value
        self.calls = 0

    def add(self, amount):
        self.value = self.value + amount
        self.calls += 1


@dataclass
class Point:
    x: object
    y: object


class Slotted:
    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value


class Watched:
    def __init__(self, value):
        self._value = value

    @property
    def value(self):
        return self._value

    @value.setter
    def value(self, new):
        self._value = new * 2


@right
def an_attribute_written_by_a_method(x):
    box = Counted()
    for value in x:
        if value > 0:
            box.add(value)
    return box.value + box.calls + g.sum(x)


@right
def an_attribute_in_a_while(x):
    box, s = Counted(1.0), g.sum(x * x) + 1
    while s > 1:
        box.value = box.value * 1.5
        s = s / 2
    return g.sum(x) * box.value


rows(
    __name__,
    right="""
box = Counted() | if g.sum(x) > 0: box.value = x[0] | else: box.value = x[1] | box.value * 2
box = Counted() | if g.sum(x) > 0: box.calls = 5.0 | g.sum(x) * (box.calls + 1)
box = Counted(x[0]) | other = box | if g.sum(x) > 0: other.value = x[1] | box.value
box = Counted() | if g.sum(x) > 0: setattr(box, "calls", 5.0) | g.sum(x) * (box.calls + 1)
point = Point(x[0], x[1]) | if g.sum(x) > 0: point.x, point.y = point.y, point.x | point.x + 2 * point.y
box = Slotted(x[0]) | if g.sum(x) > 0: box.value = x[1] | box.value * 2
box = Watched(x[0]) | if g.sum(x) > 0: box.value = x[1] | box.value
""",
    refused="""
box = Counted() | if g.sum(x) > 0: box.extra = x[0] | box.extra if hasattr(box, "extra") else g.sum(x)
""",
)
