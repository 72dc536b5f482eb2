"""What the code of a function reaches by name: functions, attributes of objects, and what lies in containers."""

from __future__ import annotations

import functools
from collections import OrderedDict, deque

import numpy as np
import pytest

from compare.engines.nudge import changed_values
from compare.engines.process import patch_namespace
from compare.engines.reach import MISSING, ReachedCode, outermost
from compare.engines.state import Snapshot
from compare.subjects import effects

WEIGHTS, ELSEWHERE = np.ones(3), np.ones(2)
TABLE = {"first": [WEIGHTS]}


class Trainer:
    def __init__(self):
        self.weights, self.unnamed = np.zeros(4), np.zeros(5)

    def step(self, x):
        return self.weights @ x

    def other(self, x):
        return ELSEWHERE @ x

    def __call__(self, x):
        return helps(x)


TRAINER = Trainer()


def helps(x):
    return TABLE["first"][0] @ x


def by_name(x):
    return TRAINER.step(x)


def functions(f):
    return {function.__name__ for function in ReachedCode(f).functions}


def holds(f, array):
    return any(value is array for value in ReachedCode(f).values)


def test_functions_and_values_that_are_named_are_reached():
    assert functions(helps) == {"helps"}
    assert holds(helps, WEIGHTS)
    assert not holds(helps, ELSEWHERE)


def test_of_an_object_the_methods_and_attributes_are_reached_that_code_names():
    for f in (by_name, TRAINER.step):
        assert {"step"} <= functions(f)
        assert "other" not in functions(f)
        assert holds(f, TRAINER.weights)
        assert not holds(f, TRAINER.unnamed)
    assert "helps" in functions(TRAINER)  # by __call__


def test_closures_partial_functions_and_wrappers_are_followed():
    hidden = np.ones(6)

    @functools.wraps(helps)
    def wrapped(x):
        return hidden @ x

    assert holds(wrapped, hidden)
    assert holds(wrapped, WEIGHTS)
    assert holds(functools.partial(np.dot, hidden), hidden)


def test_what_is_not_assigned_yet_is_no_error():
    def early():
        return late

    assert functions(early) == {"early"}
    late = 1
    assert early() == late


def test_an_object_that_holds_itself_ends():
    TRAINER.me = TRAINER
    try:
        assert functions(by_name) >= {"by_name", "step"}
    finally:
        del TRAINER.me


def test_no_module_inside_another_is_outermost():
    class Module:
        def __init__(self, *inner):
            self.inner = inner

        def modules(self):
            return [self, *(module for inner in self.inner for module in inner.modules())]

    leaf = Module()
    outer = Module(Module(leaf))
    assert outermost([leaf, outer, outer]) == [outer]


def test_defaults_of_parameters_are_places_that_are_read_and_written():
    def f(x, w=WEIGHTS, *, table=TABLE):
        return table["first"][0] @ x * w

    assert holds(f, WEIGHTS)
    first, second = (place for place in ReachedCode(f).places if place.holder is f)
    assert first.label == "the default argument `w` of f"
    first.space["w"], second.space["table"] = 2, {"first": [ELSEWHERE]}
    assert (f.__defaults__, f.__kwdefaults__) == ((2,), {"table": {"first": [ELSEWHERE]}})
    assert (first.read(), first.space["w"], first.space.get("w")) == (2, 2, 2)


def raises(self, *_):
    raise ValueError("not installed")


READS = ("__iter__", "__len__", "__contains__", "keys", "values", "items", "get", "__getitem__")
STUBBORN = {
    kind: type(f"Lazy{kind.__name__}", (kind,), dict.fromkeys(READS, raises))
    for kind in (dict, OrderedDict, list, tuple, set, frozenset, deque)
}
"""Containers of which every method raises that reads them."""


class Asked:
    __getattr__ = raises


@pytest.mark.parametrize("kind", STUBBORN)
def test_a_container_with_methods_of_its_own_is_read_by_those_of_python(kind):
    registry = STUBBORN[kind]({"part": "held"} if issubclass(kind, dict) else ["held"])

    def f():
        return registry

    ReachedCode(f)
    assert [place.read() for place in effects.places(f)] == [place.read() for place in effects.places(f)]
    snapshot = Snapshot(f, [(registry,)], lambda _: None)
    snapshot.restore()
    assert not snapshot.changed()


def test_what_lies_in_such_a_container_is_reached():
    registry = STUBBORN[dict](array=WEIGHTS)

    def f():
        return registry

    assert holds(f, WEIGHTS)


def test_an_object_that_raises_as_it_is_asked_for_an_attribute_is_none_that_wraps():
    asked = Asked()

    def f():
        return asked

    assert holds(f, asked)
    assert [place.read() for place in effects.places(f)] == [place.read() for place in effects.places(f)]
    assert not Snapshot(f, [(asked,)], lambda _: None).changed()


def test_each_place_is_read_written_and_emptied():
    added = np.ones(1)

    def f(x, scale=2.0, *, shift=1.0):
        return WEIGHTS @ x * scale + shift + added

    places = {place.name: place for place in ReachedCode(f).places}
    assert {"WEIGHTS", "scale", "shift", "added"} <= set(places)
    for name in ("scale", "shift", "added"):
        before = places[name].read()
        places[name].write("other")
        assert places[name].read() == "other"
        places[name].write(before)
    assert f(np.ones(3)) == 3 * 2.0 + 1.0 + 1
    places["added"].write(MISSING)
    assert places["added"].read() is MISSING
    places["added"].write("again")
    assert places["added"].read() == "again"


def test_a_patched_namespace_has_its_values_back_and_no_other_names():
    space = {"held": 1, "other": 2}

    def fail():
        with patch_namespace(space, {"held": 3, "new": 4}):
            assert space == {"held": 3, "other": 2, "new": 4}
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert space == {"held": 1, "other": 2}


def test_changed_values_come_back_where_a_block_fails():
    arrays = np.arange(3.0), np.arange(2.0)

    def fail():
        with changed_values(arrays, np.copy, np.copyto, lambda numbers: -numbers):
            assert [number for array in arrays for number in array] == [0, -1, -2, 0, -1]
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert [number for array in arrays for number in array] == [0, 1, 2, 0, 1]
