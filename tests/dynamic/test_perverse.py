"""Nothing that Python can do to what the compiled loops work on ends the process: it gets an exception."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dynamic import tapes

ROOT = Path(__file__).resolve().parents[2]
TAPES = [pytest.param("", marks=pytest.mark.skipif(not tapes.is_compiled(), reason="not compiled")), "python"]


def run(tape: str, *arguments: str) -> str:
    """What a new process prints, which must not crash; the end of what it says where it does."""
    told = {**os.environ, "GRAPHDUEL_TAPE": tape}
    command = [sys.executable, "-X", "faulthandler", "-W", "ignore", *arguments]
    done = subprocess.run(command, cwd=ROOT, env=told, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.returncode, done.stderr[-4000:])
    return done.stdout


@pytest.mark.slow
@pytest.mark.skipif(not tapes.is_compiled(), reason="not compiled")
def test_slots_that_hold_anything_crash_nothing() -> None:
    count, _, ended = run("", "-m", "tests.fuzz.perverse", "1", "300").partition(" rounds, ")
    assert count == "300"
    assert 0 < int(ended.split()[0]) < 300


SETTING = """
import numpy as np, dynamic, graphs as g
from dynamic.node import Leaf, Node as TapeNode

w, x = np.ones((2, 3)), dynamic.tensor([1.0, 2.0, 3.0], requires_grad=True)
y = g.sum(g.tanh(x) * 2.0)

class Key:
    def __init__(self, change):
        self.change = None
        self.later = change
    def __hash__(self):
        if self.change:
            self.change()
        return 1

def with_key(change):
    params = {"a": np.ones(2)}
    key = Key(change)
    params[key] = np.ones(2)
    key.change = lambda: change(params)
    return dynamic.grad(lambda p: g.sum(g.stack([g.sum(v) for v in p.values()])))(params)

def outcome(name, act):
    try:
        result = act()
    except Exception as error:
        print(f"{name}: {type(error).__name__}")
    else:
        print(f"{name}: {type(result).__name__}")

def without(thing, slot):
    delattr(thing, slot)
    return y.backward(retain_graph=True)

def with_other(thing, slot, value):
    setattr(thing, slot, value)
    return y.backward(retain_graph=True)

def nested(depth):
    value = 0
    for _ in range(depth):
        value = (value,)
    return value

def grow(params):
    for i in range(1000):
        params[f"more {i} {len(params)}"] = np.ones(1)

class Short(tuple):
    pass

def unmade():
    return dynamic.Tensor.__new__(dynamic.Tensor)
"""
# Each in a graph of its own, with the type of its result or error: both, where the tapes find out at different places.
ACTS: dict[str, tuple[str, str]] = {
    "a key that grows its dict": ("with_key(grow)", "dict"),
    "a key that empties its dict": ("with_key(dict.clear)", "dict"),
    "no pullback": ("without(y.grad_fn, 'pullback')", "AttributeError"),
    "no edges": ("without(y.grad_fn, 'edges')", "AttributeError"),
    "no saved values": ("without(y.grad_fn, 'saved')", "AttributeError"),
    "no shape": ("without(y.grad_fn, 'shape')", "NoneType AttributeError"),
    "no sequence": ("without(y.grad_fn, 'sequence')", "AttributeError"),
    "no hooks": ("without(y.grad_fn, 'hooks')", "AttributeError"),
    "a leaf without a shape": ("without(x._edge, 'shape')", "NoneType AttributeError"),
    "a leaf without hooks": ("without(x._edge, 'hooks')", "AttributeError"),
    "no data": ("without(y, '_data')", "AttributeError"),
    "an edge that is none": ("with_other(y.grad_fn, 'edges', (5,))", "TypeError AttributeError"),
    "a pullback that is none": ("with_other(y.grad_fn, 'pullback', 5)", "AttributeError"),
    "saved values of another number": ("with_other(y.grad_fn, 'saved', (1, 2, 3, 4, 5))", "ArgumentError"),
    "a shape that is none": ("with_other(x._edge, 'shape', 5)", "NoneType TypeError"),
    "an edge of a tensor that is none": ("with_other(y, '_edge', 5)", "AttributeError"),
    "an unmade tensor doubled": ("unmade() * 2", "AttributeError"),
    "an unmade tensor beside another": ("x + unmade()", "AttributeError"),
    "an unmade tensor stacked": ("g.stack([x, unmade()])", "ArgumentError"),
    "an unmade tensor carried back": ("unmade().backward()", "AttributeError"),
    "a step that returns an unmade tensor": ("dynamic.grad(lambda v: unmade())(w)", "AttributeError"),
    "data that is no array": ("with_other(x, '_data', 'text') or x * 2", "DTypeError AttributeError"),
    "an axis in many tuples": ("g.sum(x, axis=nested(40))", "ShapeError"),
    "a list of edges": ("with_other(y.grad_fn, 'edges', [None])", "TypeError AttributeError"),
}
# What is there with the compiled loops alone.
COMPILED: dict[str, tuple[str, str]] = {
    "connected twice": ("loops.connect()", "RuntimeError"),
    "a table of blocks that is none": ("loops.follow([])", "TypeError"),
    "an axis in very many tuples": ("loops.Record(**record_of(g.sum))(x, axis=nested(100_000))", "TypeError"),
    "a pool that is NumPy's": ("loops.enter_pool(loops.enter_pool(memory))", "ValueError"),
    "an unmade deferred value": ("DeferredTensor.__new__(DeferredTensor) * 2", "AttributeError"),
    "a tensor that says it is deferred": ("pretending() * 2", "AttributeError"),
    "nodes of no tape": ("loops.history([TapeNode.__new__(TapeNode)])", "AttributeError"),
    "edges that are none": ("loops.walk([], {5: 6}, {}, set(), True, None, None, None)", "TypeError"),
}
MORE = """
import dynamic._native as loops
from dynamic.batching.deferred import DeferredTensor

memory = loops.pool(1024, 1024)

def record_of(op):
    attrs = {"axis": (0,), "keepdims": False}
    told = {"arity": 1, "prepared": lambda *a, **o: attrs, "swapped": False, "takes_numbers": False, "alike": False}
    return {"recorder": op.recorder, "op": op, "general": print, **told}  # which takes no axis

def pretending():
    value = dynamic.tensor([1.0])
    value.__class__ = DeferredTensor
    return value

g.sum(x)
"""


def check(tape: str, setting: str, acts: dict[str, tuple[str, str]]) -> None:
    """Each act in a function of its own, all of them in one process: what they end in is as expected."""
    lines = []
    for name, (act, _) in acts.items():
        body = f"{SETTING}{setting}outcome({name!r}, lambda: {act})"
        lines += ["def one():", *[f"    {line}" for line in body.splitlines()], "one()"]
    told = dict(line.split(": ") for line in run(tape, "-c", "\n".join(lines)).splitlines())
    assert list(told) == list(acts)
    assert {name: one for name, one in told.items() if one not in acts[name][1].split()} == {}


@pytest.mark.parametrize("tape", TAPES)
def test_what_was_deleted_or_changed_is_an_error(tape: str) -> None:
    check(tape, "", ACTS)


@pytest.mark.skipif(not tapes.is_compiled(), reason="not compiled")
def test_the_loops_refuse_what_would_crash_them() -> None:
    check("", MORE, COMPILED)
