"""What one trace knows, no other sees: not in another thread, not inside it, and not after it, however it ended."""

from __future__ import annotations

import gc
import threading
import weakref

import numpy as np
import pytest

import static
from graphs.errors import ControlFlowError
from static.convert.stage import conversion
from static.convert.stage.conversion import Conversion, running
from static.convert.stage.overwriting import SharedMemory
from static.convert.stage.places import FrozenContainers, Region, check_not_frozen, freeze, is_conditional
from static.convert.stage.unknown import is_chosen, mark_chosen


def _teach(value):
    """Let the trace that runs know something of a list, of each kind that it keeps until it ends."""
    mark_chosen(value)
    freeze(value)
    conversion.part(SharedMemory).either.append(value)


def _knows(value):
    """Of which kinds the trace that runs knows something about a list."""
    kinds = {
        "chosen": is_chosen(value),
        "frozen": id(value) in conversion.part(FrozenContainers).by_id,
        "shared": value in conversion.part(SharedMemory).either,
    }
    return {kind for kind, is_known in kinds.items() if is_known}


ALL = {"chosen", "frozen", "shared"}


def test_traces_in_two_threads_do_not_see_each_other():
    value, seen = [1], {}
    both_know = threading.Barrier(2)

    def trace(name, is_taught):
        with Conversion({name}):
            if is_taught:
                _teach(value)
            both_know.wait(timeout=30)
            seen[name] = _knows(value)
            both_know.wait(timeout=30)

    threads = [threading.Thread(target=trace, args=arguments) for arguments in (("taught", True), ("other", False))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == {"taught": ALL, "other": set()}


def test_a_nested_trace_has_a_state_of_its_own_and_ends_without_touching_the_one_around():
    outer, inner = [1], [2]
    with Conversion({"outer"}), Region():
        _teach(outer)
        with Conversion({"inner"}):
            assert not _knows(outer)
            assert not is_conditional()
            check_not_frozen(outer)
            _teach(inner)
        assert _knows(outer) == ALL
        assert not _knows(inner)
        assert is_conditional()
        with pytest.raises(ControlFlowError, match="only the run knows which one"):
            check_not_frozen(outer)
    assert not _knows(outer)


def test_an_exception_leaves_nothing_behind():
    value, states = [1], []

    def fail():
        with Conversion({"f"}) as _, Region():
            states.append(weakref.ref(running().state))
            _teach(value)
            raise RuntimeError("in the middle")

    with pytest.raises(RuntimeError, match="in the middle"):
        fail()
    gc.collect()
    assert running() is None
    assert not _knows(value)
    assert not is_conditional()
    assert states[0]() is None


def _plus_one(x):
    return x + 1.0


def test_a_compile_inside_a_trace_does_not_make_it_forget_what_must_not_change():
    """A loop of the graph freezes the lists that it replaces; a function compiled after it must not thaw them."""
    compiled = static.jit(_plus_one, convert=True)
    one = np.ones(())

    def f(x):
        columns = [x]
        kept = columns
        while columns[0].sum() < 10.0:
            columns = [columns[0] * 2.0]
        added = compiled(one)
        kept.append(added)
        return columns[0]

    compiled_inside = static.jit(f, convert=True)
    with pytest.raises(ControlFlowError, match="only the run knows which one"):
        compiled_inside(np.ones(3))
