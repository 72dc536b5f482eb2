"""Ctrl-C at any moment: afterwards every switch is as it was, and everything works.

`INTERRUPTS=10000 SIGNALS=10000 pytest tests/engines/test_interrupts.py` tries every point there is, and more signals.
A trace function raises KeyboardInterrupt at instructions of the code that switches, and at entries of any other
function; a timer raises it from signals. What is checked is checked while the traceback is held, as a prompt holds it.
"""

from __future__ import annotations

import contextlib
import gc
import os
import random
import signal
import sys
from pathlib import Path

import numpy as np
import pytest

import dynamic
import graphs as g
import static
from dynamic import grad_mode
from graphs import blocks, dispatch
from static.trace.tracing import current
from tests.helpers.slow import mostly_slow

ROOT = str(Path(dynamic.__file__).parent.parent)
FILES = ["anomaly", "batching/__init__", "batching/switch", "checkpoint", "grad_mode", "pool"]
SWITCHES = {
    *[f"{ROOT}/dynamic/{name}.py" for name in FILES],
    *[one.__file__ for one in (blocks, blocks, dispatch, sys.modules["static.trace.tracing"], contextlib)],
    __file__,
}
X = np.arange(1.0, 5.0)
POINTS = int(os.environ.get("INTERRUPTS", "250"))  # of each operation; none has 10,000
SIGNALS = int(os.environ.get("SIGNALS", "100"))
WHOLE = "INTERRUPTS" in os.environ  # the quick sample would try points of the large one again


def leaf():
    return dynamic.tensor(X, requires_grad=True)


# Operations: each gives numbers, and says whether its switch worked ----------------------------------------------


def batched():
    x = leaf()
    with dynamic.batched() as batch:
        total = g.sum(g.stack([g.tanh(x[i : i + 2] * 1.0) for i in range(3)]))
    total.backward()
    return total.detach().numpy(), x.grad.numpy(), batch.stats.groups


def no_grad():
    with dynamic.no_grad():
        y = leaf() * 2
    return y.numpy(), y.requires_grad


def decorated():
    @dynamic.no_grad()
    def f(x):
        with dynamic.enable_grad():
            y = x * 3
        return y.requires_grad, (x * 3).requires_grad

    return f(leaf())


def inference_mode():
    with dynamic.inference_mode(), dynamic.enable_grad():
        y = leaf() * 2
        inside = dynamic.is_inference_mode_enabled()
    return y.numpy(), y.requires_grad, inside


def pooled():
    with dynamic.pool(threshold=1) as first, dynamic.pool(threshold=1) as second:
        y = leaf() * 2
        z = y + y
    return z.detach().numpy(), first.stats().in_use, second.stats().in_use


def recorded():
    return str(dynamic.record(lambda x: g.tanh(x) + 1, X))


def detect_anomaly():
    with dynamic.detect_anomaly():
        y = g.sum(leaf() * 2)
        try:
            g.log(leaf() - 9)
        except g.GraphError as error:
            found = type(error).__name__
    y.backward()
    return y.detach().numpy(), found


def checkpointed():
    x = leaf()
    random.seed(3)
    np.random.seed(3)  # noqa: NPY002
    f = lambda x: g.tanh(x * random.random()) * np.random.rand()  # noqa: NPY002, E731
    g.sum(dynamic.checkpoint(f, x)).backward()
    return x.grad.numpy(), random.random(), np.random.rand()  # noqa: NPY002


def backward():
    x = leaf()
    x.register_hook(lambda gradient: gradient * 2)
    (dx,) = dynamic.grad_of(g.sum(x * x * x), x, create_graph=True)
    g.sum(dx).backward()
    value, gradient = dynamic.value_and_grad(lambda x: g.sum(x * x))(X)
    return x.grad.detach().numpy(), value, gradient


def compiled():
    return static.compile(static.grad(lambda x: g.sum(g.tanh(x) * x)), X)(X)


def defined():
    graph = static.GraphBuilder()
    x = graph.placeholder("x", (4,), "float64")
    with graph:
        y = g.sum(g.tanh(x))
    return graph.run(graph.gradients(y, x), {"x": X})


OPERATIONS = [
    *[batched, no_grad, decorated, inference_mode, pooled, recorded, detect_anomaly, checkpointed, backward],
    *[compiled, defined],
]
each = pytest.mark.parametrize("operation", mostly_slow(OPERATIONS, 5), ids=lambda one: one.__name__)


# State ------------------------------------------------------------------------------------------------------------


def switches():
    """All that is switched on, in Python, in compiled loops and in NumPy."""
    y = leaf() * 2
    return {
        "modes": list(grad_mode.thread.blocks.values()),
        "records": y.requires_grad and dynamic.is_grad_enabled(),
        "defers": type(y) is not dynamic.Tensor or grad_mode.now().batch is not None,
        "forbids": dynamic.is_inference_mode_enabled(),
        "detours": list(dispatch.detours.values()),
        "observers": list(dispatch.observers.values()),
        "to be undone": [undoing for undoing in blocks._undoings.values() if undoing() is not None],
        "interpreters": dict(dispatch.interpreters),
        "allocator": np._core.multiarray.get_handler_name(),
        "warnings": np.geterr(),
        "collects": gc.isenabled(),
        "traces": current(),
    }


def same(one, other):
    return all(np.array_equal(a, b) for a, b in zip(g.tree.leaves(one), g.tree.leaves(other), strict=True))


def check(operation, before, expected, where):
    """That nothing is left switched on, and the operation gives what it gave."""
    assert switches() == before, (operation.__name__, where)
    assert same(operation(), expected), (operation.__name__, where)


# Every point --------------------------------------------------------------------------------------------------------


class Tracer:
    """Raises KeyboardInterrupt at one of the points that it counts."""

    def __init__(self, at):
        self.at, self.points, self.where = at, 0, None

    def __call__(self, frame, event, _):
        name = frame.f_code.co_filename
        if not (name.startswith(ROOT) or name in SWITCHES) or frame.f_code is interrupted.__code__:
            return None
        frame.f_trace_lines, frame.f_trace_opcodes = False, name in SWITCHES
        if event in ("call", "opcode"):
            self.points += 1
            if self.points == self.at:
                self.where = f"{name}:{frame.f_lineno}, {frame.f_code.co_name}, {event} {frame.f_lasti}"
                raise KeyboardInterrupt
        return self


def interrupted(operation, tracer, then):
    """Run an operation with a tracer; what `then` finds while the traceback is still held."""
    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        operation()
        sys.settrace(before)
    except KeyboardInterrupt:
        sys.settrace(before)
        then()


def points(operation):
    counted = Tracer(0)
    interrupted(operation, counted, lambda: None)
    return counted.points


lost = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # what is raised where objects die


@lost
@pytest.mark.parametrize("most", [*([] if WHOLE else [POINTS // 4]), pytest.param(POINTS, marks=pytest.mark.slow)])
@each
def test_an_interrupt_at_any_point(operation, most):
    expected = operation()
    gc.collect()
    before, count = switches(), points(operation)
    tried = 0
    for at in range(1, count + 1, max(1, count // most)):
        tracer = Tracer(at)
        interrupted(operation, tracer, lambda: check(operation, before, expected, tracer.where))  # noqa: B023
        tried += tracer.where is not None
    assert tried > 10


# Signals ------------------------------------------------------------------------------------------------------------


class Timer:
    """Raises KeyboardInterrupt from a signal after a moment, and again until it is told that this was seen."""

    seen = True

    def __enter__(self):
        self.callbacks = gc.callbacks[:]  # Hypothesis has one in Python, where an interrupt is printed and lost
        gc.callbacks.clear()
        self.before = signal.signal(signal.SIGALRM, self.strike)
        return self

    def __exit__(self, *_):
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self.before)
        gc.callbacks[:] = self.callbacks

    def strike(self, *_):
        if not self.seen:
            raise KeyboardInterrupt

    def start(self, delay):
        self.seen = False
        signal.setitimer(signal.ITIMER_REAL, delay, 0.005)  # Python prints what is raised where objects die


def interrupt(operation, timer, delay, then):
    """Run an operation until a signal ends it."""
    try:
        timer.start(delay)
        while True:
            operation()
    except KeyboardInterrupt:
        timer.seen = True
        then()


@lost
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers that signal here")
@each
def test_signals_at_any_moment(operation):
    expected = operation()
    before, random_ = switches(), np.random.default_rng(0)
    with Timer() as timer:
        for delay in random_.exponential(1e-4, SIGNALS):
            interrupt(operation, timer, delay + 1e-6, lambda: check(operation, before, expected, delay))  # noqa: B023


class Interruptible:
    """A generator whose state Ctrl-C does not let set, once: NumPy divides large integers there, which looks for it."""

    def __init__(self):
        self.now, self.strikes = 7, []

    bit_generator = property(lambda self: self)

    @property
    def state(self):
        return self.now

    @state.setter
    def state(self, value):
        if self.strikes:
            raise self.strikes.pop()
        self.now = value

    def draw(self):
        self.now += 1
        return self.now / 16


@lost
def test_an_interrupt_while_random_numbers_are_restored():
    x, generator = leaf(), Interruptible()

    def f(x, generator):
        if generator.now == 7 and recorded:
            generator.strikes.append(KeyboardInterrupt())  # at the next setting, which is the one at the end
        return g.tanh(x * generator.draw())

    recorded = False
    y = g.sum(dynamic.checkpoint(f, x, generator))
    generator.draw()
    recorded = True
    y.backward()
    assert (generator.now, generator.strikes) == (9, [])
    np.testing.assert_allclose(x.grad.numpy(), 0.5 / np.cosh(0.5 * X) ** 2)
