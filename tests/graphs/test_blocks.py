"""Blocks: what they change lasts as long as the `with` statement, however and in whatever order they end."""

from __future__ import annotations

import gc
import threading
from contextlib import ExitStack

import numpy as np
import pytest

import dynamic
import graphs as g
import static
from dynamic import grad_mode
from graphs import blocks, dispatch
from graphs.blocks import Block, enter, innermost, undo_after
from static.trace.tracing import current


class Noting(Block):
    """Enters a name in a table, and notes in a list what is done when it ends."""

    def __init__(self, name, table, notes):
        self.name, self.table, self.notes = name, table, notes

    def __enter__(self):
        hold = self.hold()
        enter(self.table, hold, self.name)
        undo_after(hold, [*[self.notes]].pop)  # a function in C, which is called once
        return self.name

    def finish(self, kind, error, _trace):
        self.notes.append((self.name, list(self.table.values()), kind))


def test_a_block_ends_with_its_statement():
    table, notes = {}, []
    with Noting("a", table, notes) as a, Noting("b", table, notes):
        assert (a, innermost(table, None)) == ("a", "b")
    assert not table
    assert notes == [("b", ["a", "b"], None), ("a", ["a"], None)]
    with pytest.raises(KeyError), Noting("c", table, notes):
        raise KeyError
    assert not table
    assert notes[-1] == ("c", ["c"], KeyError)


def test_one_block_in_itself():
    table, notes = {}, []
    block = Noting("a", table, notes)
    with block, block:
        assert list(table.values()) == ["a", "a"]
        block.__enter__()
        assert len(table) == 3
        block.__exit__(None, None, None)
        assert len(table) == 2
    assert not table
    assert len(notes) == 3


def test_blocks_left_by_hand_in_any_order():
    table, notes = {}, []
    a, b = Noting("a", table, notes), Noting("b", table, notes)
    a.__enter__()
    b.__enter__()
    a.__exit__(None, None, None)
    assert innermost(table, None) == "b"
    b.__exit__(None, None, None)
    assert innermost(table, None) is None
    with ExitStack() as stack:
        for _ in range(2):
            stack.enter_context(a)
        assert list(table.values()) == ["a", "a"]
    assert not table


def test_looking_at_exit_enters_nothing():
    table, notes = {}, []
    block = Noting("a", table, notes)
    assert hasattr(block, "__exit__")
    block.__enter__()
    assert list(table.values()) == ["a"]
    del block
    assert not table  # nobody holds it any more


def test_a_generator_that_is_dropped():
    def steps():
        with dynamic.no_grad():
            yield dynamic.is_grad_enabled()

    running = steps()
    assert not next(running)
    assert not dynamic.is_grad_enabled()
    del running
    assert dynamic.is_grad_enabled()


def test_what_is_undone_is_undone_once():
    class Undoing(Block):
        def __enter__(self):
            hold = self.hold()
            for number in range(3):
                undo_after(hold, [[number], *done].__len__ if number else done.clear)

    done = [1, 2]
    with Undoing():
        assert done
    assert not done
    done.append(3)
    with Noting("a", {}, []):
        assert done == [3]


# The switches -----------------------------------------------------------------------------------------------------


def records():
    return (dynamic.tensor([1.0], requires_grad=True) * 2).requires_grad


def test_modes_left_in_any_order():
    outer, inner = dynamic.no_grad(), dynamic.enable_grad()
    outer.__enter__()
    inner.__enter__()
    outer.__exit__(None, None, None)
    assert records()
    inner.__exit__(None, None, None)
    assert records()
    inner.__enter__()
    outer.__enter__()
    inner.__exit__(None, None, None)
    assert not records()
    outer.__exit__(None, None, None)
    assert records()


def test_a_function_that_calls_itself_in_many_threads():
    @dynamic.no_grad()
    def f(depth):
        return [records()] if not depth else [records(), *f(depth - 1), records()]

    found = []
    threads = [threading.Thread(target=lambda: found.append((f(50), records()))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [([False] * 101, True)] * 8
    assert records()


def test_modes_nest():
    with dynamic.inference_mode(), dynamic.enable_grad():
        assert not records()
        with dynamic.inference_mode(False):
            assert records()
            assert not dynamic.is_inference_mode_enabled()
        assert not records()
    with dynamic.set_grad_enabled(False):
        assert not records()
        with dynamic.set_grad_enabled(True):
            assert records()
    assert records()


def test_modes_in_a_batch_keep_the_batch():
    with dynamic.batched() as batch:
        for block in (dynamic.no_grad(), dynamic.inference_mode(), dynamic.enable_grad()):
            with block:
                assert grad_mode.now().batch is batch
                assert type(dynamic.tensor([1.0]) * 2) is not dynamic.Tensor
    assert type(dynamic.tensor([1.0]) * 2) is dynamic.Tensor


def test_a_batch_may_be_a_decorator():
    @dynamic.batched()
    def f(x, depth):
        assert grad_mode.now().batch is not None
        return f(x * 2, depth - 1) if depth else x * 2

    for _ in range(2):
        assert f(dynamic.tensor([1.0]), 2).numpy().tolist() == [8.0]
    assert grad_mode.now().batch is None
    assert not dispatch.detours


def test_observers_left_in_any_order():
    seen = []
    one, two = (dispatch.observe_kernels(lambda op, *_, n=n: seen.append((n, op.name))) for n in (1, 2))
    one.__enter__()
    two.__enter__()
    one.__exit__(None, None, None)
    dynamic.tensor([1.0]) * 2
    two.__exit__(None, None, None)
    dynamic.tensor([1.0]) * 2
    assert seen == [(2, "multiply")]


def test_traces_left_in_any_order():
    one, two = static.GraphBuilder("one"), static.GraphBuilder("two")
    one.__enter__()
    two.__enter__()
    one.__exit__(None, None, None)
    assert current().name == "two"
    two.__exit__(None, None, None)
    assert current() is None


def test_the_collector_is_as_it_was():
    gc.disable()
    try:
        with blocks.without_collection():
            assert not gc.isenabled()
        assert not gc.isenabled()
    finally:
        gc.enable()
    with blocks.without_collection(), blocks.without_collection():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_leaves_require_gradients_while_a_checkpoint_runs_again():
    seen = []

    def f(x):
        seen.append(x.requires_grad)
        return g.tanh(x)

    def loss(x):
        return g.sum(dynamic.checkpoint(f, x))

    assert dynamic.grad(loss)(np.ones(1)).shape == (1,)
    assert seen == [True, True]
