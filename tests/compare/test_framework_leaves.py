"""Why a framework traced a function again: in what the arguments differ from the likest ones before."""

from __future__ import annotations

import copy
import dataclasses
from functools import partial
from types import MethodType, SimpleNamespace

import numpy as np
import optree
import pytest

from compare.engines import jax_compiler, leaves
from compare.engines.leaves import SpecialisedFunction, Trace
from compare.engines.uncompiled import UncompiledFunction
from compare.errors import UnsupportedError


def by_shape(function, _owners):
    """Calls the function where a shape or dtype is new, as a compiler traces it."""
    seen = {}

    def call(*arrays):
        key = tuple((x.shape, x.dtype) for x in optree.tree_leaves(arrays))
        seen.setdefault(key, function(*arrays) if key not in seen else None)
        return seen[key]

    call.clear = seen.clear
    return call


class Arrays(leaves.Leaves):
    remedy = "give an array"

    def is_traced(self, leaf):
        return isinstance(leaf, np.ndarray)


def power(params, x, power=1):
    return float(np.sum(x)) ** (power if isinstance(power, int) else 1)


@pytest.fixture
def step():
    return SpecialisedFunction(power, by_shape, Arrays())


def ones(*shape, dtype=np.float32):
    return np.ones(shape, dtype)


def reasons(step):
    return [one.reason for one in step.observed().compilations]


def test_a_function_is_compiled_once_for_what_is_alike(step):
    for _ in range(3):
        assert step({}, ones(2)) == 2
    assert reasons(step) == ["the first call"]
    assert step.observed().compilations[0].seconds > 0


def test_a_shape_a_dtype_and_a_value_are_named_with_their_place(step):
    step({"w": [ones(2)]}, ones(2), 1)
    step({"w": [ones(2)]}, ones(3), 1)
    step({"w": [ones(2, dtype=np.int64)]}, ones(3), 1)
    step({"w": [ones(2, dtype=np.int64)]}, ones(3), 2)
    assert reasons(step)[1:] == [
        "argument 1: float32[2] before, float32[3] now",
        "argument 0['w'][0]: float32[2] before, int64[2] now",
        "argument 2: 1 before, 2 now",
    ]


def test_the_likest_call_before_is_told_from_and_not_the_last(step):
    step({}, ones(2), 1)
    step({}, ones(9, 9), 7)
    step({}, ones(2), 7)
    assert reasons(step)[2] in ("argument 2: 1 before, 7 now", "argument 1: float32[9, 9] before, float32[2] now")
    step({"w": ones(1)}, ones(2), 1)
    step({}, ones(4), 8)
    assert reasons(step)[3] == leaves.OTHER
    assert reasons(step)[4].count(" before, ") == 2


def test_many_differences_are_counted(step):
    step({i: ones(1) for i in range(5)}, ones(1))
    step({i: ones(2) for i in range(5)}, ones(1))
    assert reasons(step)[1].endswith("argument 0[2]: float32[1] before, float32[2] now, and 2 more")


@dataclasses.dataclass
class Config:
    power: int
    names: list


def test_what_is_equal_in_all_that_can_be_told_is_one_constant(step):
    for constant in (slice(0, 3), Config(2, ["a"]), {"a": (1, None)}, "text", np.tanh, np.dtype("int8"), 1):
        for same in (constant, copy.deepcopy(constant)):
            step({}, ones(2), same)
    others = (slice(0, 4), Config(3, ["a"]), Config(2, ["b"]), "other", np.sin, np.dtype("int16"), 1.0, True)
    for other in others:
        step({}, ones(2), other)
    assert len(reasons(step)) == 7 + len(others)


def test_what_is_no_array_container_or_plain_value_is_refused_by_the_name_of_its_argument(step):
    class Thing:
        pass

    for thing, place in ((Thing(), "`power`"), ([1, Thing()], r"`power\[1\]`"), (Config(1, [Thing()]), "`power`")):
        with pytest.raises(
            UnsupportedError, match=place + " is a .*, not an array, a container or a plain value; give"
        ):
            step({}, ones(2), thing)


def test_equal_texts_of_values_that_differ_are_not_taken_for_one(step):
    class Quiet:
        def __init__(self, n):
            self.n = n

        def __call__(self):
            return self.n

        def __repr__(self):
            return "quiet"

    for n in (1, 2):
        step({}, ones(2), Quiet(n))
    assert len(reasons(step)) == 2


def test_what_was_forgotten_is_traced_again_for_the_same(step):
    step({}, ones(2))
    next(iter(step.made.values())).clear()
    step({}, ones(2))
    assert reasons(step) == ["the first call", leaves.AGAIN]


def test_what_jax_does_after_a_trace_is_added_to_it_and_what_it_does_for_others_is_not(monkeypatch):
    lowering, compiling = jax_compiler._STAGES
    monkeypatch.setattr(SpecialisedFunction, "latest", None)
    jax_compiler._record_event(lowering, 9.0, "jit(run)")
    monkeypatch.setattr(SpecialisedFunction, "latest", Trace([], [], 1.0))
    for event, seconds, name in ((lowering, 2.0, "run"), (compiling, 4.0, "jit(run)"), (compiling, 8.0, "jit(add)")):
        jax_compiler._record_event(event, seconds, fun_name=name, other=1)
    jax_compiler._record_event("/jax/core/compile/jaxpr_trace_duration", 16.0, "run")
    assert SpecialisedFunction.latest.seconds == 7.0


# What a file compiles by itself


class Compiled:
    """What a framework makes of a function."""

    def __init__(self, function):
        self.__wrapped__ = function

    def __call__(self, *args):
        raise AssertionError("it is compiled")


def inner(value):
    return value.__wrapped__ if isinstance(value, Compiled) else None


@Compiled
def twice(x):
    return 2 * x


of_a_library = np.linalg.compiled_norm = Compiled(np.linalg.norm)
of_a_library.__module__, of_a_library.__qualname__ = "numpy.linalg", "compiled_norm"


class Holder:
    step = Compiled(lambda self, x: twice(x) + 1)


class Keeper:
    def __init__(self):
        self.own, self.several = Compiled(lambda x: 2 * x), {"twice": [Compiled(lambda x: 2 * x)]}


holder, keeper, pair, maker = Holder(), Keeper(), (twice, 0), SimpleNamespace(compiled=Compiled)
asked_for = maker.compiled


@pytest.mark.parametrize(
    "loss",
    [
        twice,
        lambda x: twice(x) + 0,
        lambda x: holder.step(x) - 1,
        lambda x: keeper.own(x) + 0,
        lambda x: keeper.several["twice"][0](x) + 0,
        lambda x: pair[0](x) + 0,
        partial(Compiled(lambda y, x: y * x), 2),
        MethodType(Compiled(lambda self, x: 2 * x), holder),
        lambda x: maker.compiled(lambda y: 2 * y)(x) + 0,
        lambda x: asked_for(lambda y: 2 * y)(x) + 0,
    ],
)
def test_what_the_user_compiles_gives_way_to_what_it_is_made_of(loss):
    met = []
    around = UncompiledFunction(loss, inner, lambda: met.append(True), [(maker, "compiled")])
    assert around(3) == 6
    assert met
    assert isinstance(twice, Compiled)  # afterwards all is as it was
    assert isinstance(vars(Holder)["step"], Compiled)


def test_what_an_argument_has_compiled_gives_way():
    around = UncompiledFunction(lambda keeper, x: keeper.own(x), inner, lambda: None)
    mine = Keeper()
    assert around(mine, 3) == 6
    assert isinstance(mine.own, Compiled)


def test_what_a_library_compiles_stays_compiled():
    around = UncompiledFunction(lambda x: of_a_library(x) + 0, inner, lambda: None)
    assert not around.written
    with pytest.raises(AssertionError, match="it is compiled"):
        around(3)
