"""What a call changes comes back: each row is a kind of state, which two calls from one snapshot must find alike."""

from __future__ import annotations

import itertools
import random
from collections import Counter, OrderedDict, defaultdict, deque
from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dynamic
from compare.engines import OWN, find_engine
from compare.engines.state import Piece, Snapshot, turns_of

COUNT = 0
TABLE = {"steps": 0, "seen": [1, 2], "sums": {"w": np.zeros(3)}}
NUMBERS = iter([3, 1, 4, 1, 5, 9])
TURNS = itertools.cycle("abc")
LATER: int


class Memory:
    total = 0

    def __init__(self):
        self.bank, self.count, self.kept = deque(maxlen=2), 0, OrderedDict(a=1)

    def push(self, value):
        Memory.total += value
        self.count += 1
        self.bank.append(value)
        self.kept.move_to_end("a")
        self.kept[value] = self.count
        self.made = value
        return Memory.total, self.count, list(self.bank), list(self.kept.items())


@dataclass
class Slotted:
    __slots__ = ("number", "sums")
    number: int
    sums: np.ndarray


@dataclass
class Averages:
    of: dict = field(default_factory=lambda: defaultdict(float))


def counts_in_a_global(x):
    global COUNT  # noqa: PLW0603  (the state that is tested)
    COUNT += 1
    return COUNT * x


def makes_a_global(x):
    global LATER  # noqa: PLW0603  (as above)
    LATER = globals().get("LATER", 0) + 1
    return LATER * x


def counts_in_itself(x):
    counts_in_itself.calls = getattr(counts_in_itself, "calls", 0) + 1
    return counts_in_itself.calls


def keeps_in_a_default(x, seen=[]):  # noqa: B006  (the state that is tested)
    seen.append(x)
    return len(seen)


def keeps_in_containers(x):
    TABLE["steps"] += 1
    TABLE["seen"].insert(0, x)
    TABLE["sums"]["w"] += x
    TABLE["sums"].setdefault("new", x)
    return TABLE["steps"], list(TABLE["seen"]), TABLE["sums"]["w"].sum(), len(TABLE["sums"])


def takes_from_iterators(x):
    return next(NUMBERS), next(TURNS), x


def closure():
    count, sums = 0, np.zeros(2)
    memory, slotted, averages = Memory(), Slotted(1, np.ones(2)), Averages()
    chance, generator, numbers = random.Random(0), np.random.default_rng(0), np.random.RandomState(0)
    pairs, counter, names = zip(itertools.count(), [5, 6, 7]), Counter("ab"), {"a"}
    space = SimpleNamespace(rate=1.0)

    def step(x):
        nonlocal count, sums
        count += 1
        sums = sums * 0.5 + x
        slotted.number += 1
        slotted.sums *= 2
        averages.of["x"] += x
        counter["b"] += 1
        names.add(count)
        space.rate *= 0.9
        drawn = chance.random(), generator.random(), numbers.rand()
        held = slotted.number, slotted.sums.sum(), averages.of["x"], counter["b"], len(names), space.rate
        return count, sums.sum(), memory.push(x), held, drawn, next(pairs)

    return step


def changes_its_argument(x):
    if isinstance(x, np.ndarray):
        x /= 255
    return np.sum(x)


KINDS = [
    counts_in_a_global, makes_a_global, counts_in_itself, keeps_in_a_default, keeps_in_containers, takes_from_iterators,
    closure(), Memory().push, changes_its_argument,
]  # fmt: skip


def nothing(_: object) -> Piece | None:
    return None


@pytest.mark.parametrize("function", KINDS, ids=lambda f: f.__qualname__)
def test_two_looks_that_begin_with_one_snapshot_find_the_same(function):
    calls = [(2.0,), (3.0,)] if function is not changes_its_argument else [(np.full(3, 255.0),)]
    before = Snapshot(function, calls, nothing)
    first = [function(*call) for call in calls]
    assert before.changed()
    before.restore()
    assert not before.changed()
    assert [function(*call) for call in calls] == first
    before.restore()
    now = Snapshot(function, calls, nothing)
    function(*calls[0])
    before.restore()
    assert not before.changed()
    assert not now.changed() or function is takes_from_iterators  # other copies stand there now


@given(st.lists(st.sampled_from(KINDS[:6]), max_size=6), st.lists(st.sampled_from(KINDS[:6]), min_size=1, max_size=4))
def test_a_snapshot_brings_back_the_state_of_any_moment(earlier, later):
    def step(x):
        return [counts_in_a_global(x), keeps_in_containers(x), counts_in_itself(x), makes_a_global(x)]

    start = Snapshot(step, [], nothing)
    try:
        for function in set(earlier) - {takes_from_iterators}:
            function(1.0)
        moment = Snapshot(step, [], nothing)
        seen = step(1.0)
        for function in set(later) - {takes_from_iterators}:
            function(2.0)
        moment.restore()
        assert step(1.0) == seen
    finally:
        start.restore()


def test_what_nothing_brings_back_is_told_with_its_line_once_it_has_gone_on():
    running = (number for number in range(9))

    def step(x):
        return next(running) * x

    before = Snapshot(step, [], nothing)
    assert before.spent == []
    step(1)
    (told,) = before.spent
    assert told.startswith("the outer variable `running` (test_state.py:")


def test_arrays_among_arguments_are_given_and_what_an_object_holds_is_not():
    x, memory = np.ones(2), Memory()
    memory.sums = np.ones(3)
    before = Snapshot(print, [({"x": [x]}, memory)], nothing)
    assert [piece.of is x for piece in before.pieces if piece.is_argument] == [True]
    memory.sums *= 2
    x *= 2
    assert {piece.is_argument for piece in before.changed()} == {True, False}


def test_objects_that_build_themselves_keep_what_they_have_built():
    built = SimpleNamespace(weights=[])
    holder = type(
        "Layer", (), {"__module__": "builder.layers", "__init__": lambda self: vars(self).update(built=built)}
    )()
    before = Snapshot(print, [(holder,)], nothing, builders=["builder"])
    built.weights.append(weight := np.zeros(2))
    before.add(weight)
    weight += 1
    before.restore()
    assert built.weights[0].tolist() == [0, 0]


def test_what_runs_out_begins_anew_and_what_is_made_and_trained_stays():
    """As a schedule does that ends, whose optimizer keeps the sums that it has made."""
    group, kept, weight = {"lr": 0.1, "betas": (0.9, 0.99), "of": []}, {}, np.ones(2)
    rates, taken = iter([0.3, 0.2, 0.1]), 0

    def step(x):
        nonlocal taken
        taken += 1
        group["lr"] = next(rates)
        group["betas"] = (taken, taken)
        kept.setdefault("sums", np.zeros(2))[:] += x
        weight[:] -= group["lr"]
        return weight.sum()

    start = Snapshot(step, [], nothing)
    for _ in range(3):
        step(1.0)
    start.rewind()
    assert (taken, group["lr"], group["betas"]) == (0, 0.1, (0.9, 0.99))
    assert kept["sums"].tolist() == [3.0, 3.0]
    assert weight[0] < 1
    turns = turns_of(Snapshot(step, [], nothing), [lambda: [step(1.0) for _ in range(3)]])
    turns.block()
    assert (taken, kept["sums"].tolist()) == (0, [3.0, 3.0])
    assert next(rates) == 0.3
    with pytest.raises(StopIteration):
        turns_of(Snapshot(step, [], nothing), [lambda: [step(1.0) for _ in range(4)]])


def test_what_a_call_adds_to_a_module_of_ours_goes_again():
    """A weight that is dropped anew in each call lies in the module, as does the symbol that a trace leaves there."""
    layer = dynamic.nn.Linear(2, 2)

    def f(x):
        layer.mask = x
        return layer(x)

    before = find_engine(OWN).state.snapshot(f, [(np.ones(2),)])
    f(dynamic.ones(2))
    assert before.changed()
    before.restore()
    assert "mask" not in vars(layer)
    assert not before.changed()
