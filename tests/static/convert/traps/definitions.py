"""Functions and classes made inside: annotations, dispatch, super, private names, what holds itself."""

import copy
import dataclasses
import functools
import typing

import graphs as g
from tests.static.convert.table import refused, right, rows


class Doubling(list):
    def __setitem__(self, key, value):
        super().__setitem__(key, value * 2)


@right
def annotations_of_a_function_inside(x):
    def scaled(v: int, w: "str" = "a") -> float:
        return v * 2 if v > 0 else v

    return scaled(x[0]) * (len(scaled.__annotations__) + len(typing.get_type_hints(scaled)))


@right
def a_dispatch_on_an_annotation(x):
    @functools.singledispatch
    def chosen(value):
        return x[0]

    @chosen.register
    def _(value: int):
        return x[1] if x[2] > 0 else x[3]

    return chosen(3) + 10 * chosen("a")


@right
def a_dispatch_of_a_method_on_an_annotation(x):
    class Chooser:
        @functools.singledispatchmethod
        def chosen(self, value):
            return x[0]

        @chosen.register
        def _(self, value: int):
            return x[1] * 2

    return Chooser().chosen(2) + Chooser().chosen(None)


@right
def a_function_with_a_cache(x):
    @functools.lru_cache
    def scaled(n):
        return x[0] * n if x[1] > 0 else x[2]

    return scaled(2) + scaled(2) + scaled(3)


@refused
def an_operator_that_a_library_writes(x):
    @functools.total_ordering
    class Value:
        def __init__(self, value):
            self.value = value

        def __eq__(self, other):
            return self.value == other.value

        def __lt__(self, other):
            return self.value < other.value

    return x[0] if Value(x[0]) >= Value(x[1]) else x[1]


@right
def super_in_a_class_inside(x):
    class Base:
        def value(self):
            return x[0]

    class Derived(Base):
        def value(self):
            return super().value() * 2 if x[1] > 0 else super().value()

    return Derived().value()


@right
def super_in_a_class_that_a_method_makes(x):
    class Maker:
        def made(self, scale):
            class Items(list):
                def append(self, value):
                    super().append(value * scale)

            return Items()

    items = Maker().made(3.0)
    items.append(x[0])
    return items[0]


@right
def the_names_of_a_class_inside_a_branch(x):
    if len(x.shape) == 1:

        class Inner:
            def method(self):
                return x[0] if x[1] > 0 else x[2]

    name = "the_names_of_a_class_inside_a_branch.<locals>.Inner"
    return Inner().method() * (Inner.__qualname__ == name) + (Inner.method.__qualname__ == f"{name}.method")


@right
def a_private_name_in_a_class_inside_a_class(x):
    class Outer:
        def value(self):
            class Inner:
                def __init__(self):
                    self.__kept = x[0]

                def kept(self):
                    return self.__kept if x[1] > 0 else self.__kept * 2

            return Inner().kept()

    return Outer().value()


@right
def a_dataclass_under_a_test(x):
    @dataclasses.dataclass
    class Point:
        a: typing.Any
        b: float = 2.0

    point = Point(x[0])
    if x[1] > 0:
        point = Point(x[2], 3.0)
    return point.a * point.b


@refused
def a_dataclass_whose_post_init_decides(x):
    @dataclasses.dataclass
    class Point:
        a: typing.Any

        def __post_init__(self):
            self.c = self.a * 2 if self.a > 0 else self.a

    return Point(x[0]).c


@right
def a_named_tuple_that_a_branch_replaces(x):
    class Pair(typing.NamedTuple):
        a: typing.Any
        b: float = 2.0

    pair = Pair(x[0])
    if x[1] > 0:
        pair = pair._replace(a=x[2])
    return pair.a * pair.b


@refused
def lists_that_hold_each_other_and_one_grows(x):
    first, second = [x[0]], []
    second.append(first)
    first.append(second)
    if x[1] > 0:
        first[0] = x[2]
        second.append(x[3])
    return second[0][0] * len(second)


@right
def an_object_that_holds_itself(x):
    class Node:
        pass

    node = Node()
    node.next, node.value = node, g.sum(x * x)
    if x[0] > 0:
        node.value = x[1]
    while node.value > 1:
        node.value = node.value / 2
    return node.next.value


@right
def a_list_linked_both_ways(x):
    class Node:
        def __init__(self, value, before):
            self.value, self.before, self.next = value, before, None

    head = Node(x[0], None)
    head.next = Node(x[1], head)
    if x[1] > 0:
        head.value = x[2]
    total, node = 0.0, head
    while node is not None:
        total, node = total + node.value, node.next
    return total + head.next.before.value


@refused
def a_deep_copy_of_values(x):
    items = [x[0], [x[1]]]
    copied = copy.deepcopy(items)
    if x[2] > 0:
        copied[1][0] = x[3]
    return items[1][0] + copied[1][0]


rows(
    __name__,
    right="""
items = [x[0]] | items.append(items) | if x[0] > 0: items[0] = x[1] | items[1][0]
items = [g.sum(x * x)] | items.append(items) | while items[0] > 1: items[0] = items[0] / 2 | items[1][0]
names = {"a": x[0]} | names["self"] = names | if x[1] > 0: names["a"] = x[2] | names["self"]["a"]
items = Doubling([x[0], x[1]]) | items[0] = x[2] | items[0] + items[1]
""",
    refused="""
sorted([x[0], x[1]], key=functools.cmp_to_key(lambda a, b: -1 if a < b else 1))[0]
if x[1] > 0: items = [x[0]]; items.append(items) | else: items = [x[2]]; items.append(items) | items[1][0]
""",
)
