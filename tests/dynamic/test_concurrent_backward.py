"""One backward of several at once frees a graph, and every other is told so: by the error for it, and no other."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import dynamic
import graphs as g
from dynamic import tapes, walk
from dynamic.node import Node
from graphs.errors import NotDifferentiableError

RESULTS: dict[str, Callable[[Any], Any]] = {
    "tanh": g.tanh,
    "multiply": lambda x: x * x,
    "scale": lambda x: x * 2.0,
    "matmul": lambda x: x @ x,
    "sum": lambda x: g.sum(x, axis=0),
    "take": lambda x: g.take(x, np.array([0, 1]), axis=0),
    "concat": lambda x: g.concat([x, x]),
    "softmax": g.softmax,
}


@pytest.mark.parametrize("name", RESULTS)
def test_what_another_thread_has_released_is_no_other_error(name: str) -> None:
    for _ in range(3):  # at first use, when such a call comes again, and when all is known
        node = RESULTS[name](dynamic.tensor(np.full((2, 2), 0.5), requires_grad=True)).grad_fn
        for apply in (_walked, _by_rules, *compiled_ways(node)):
            node = RESULTS[name](dynamic.tensor(np.full((2, 2), 0.5), requires_grad=True)).grad_fn
            apply(node)
            assert (node.saved, node.edges) == (None, ())
            with pytest.raises(NotDifferentiableError, match=r"graph that was freed.*; pass retain_graph=True"):
                apply(node)


def _walked(node: Node) -> None:
    """By the tape that runs."""
    tapes.walk([node], {node: np.ones(node.shape)}, walk.Way())


def _by_rules(node: Node) -> None:
    """By the tape in Python."""
    cotangents = {node: np.ones(node.shape)}
    walk.walk([node], cotangents, walk.Way())


def compiled_ways(node: Node) -> Iterator[Callable[[Node], None]]:
    """By what the compiled tape calls, without a look at the node first."""
    if tapes.is_compiled():
        from dynamic.fast import programs

        yield lambda one: node.pullback.apply(one, False, {one: np.ones(one.shape)})
        yield lambda one: programs.by_rules(one, False, {one: np.ones(one.shape)})


@pytest.fixture
def switching() -> Iterator[None]:
    """Threads that take turns after nearly every bytecode."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("switching")
def test_one_of_three_threads_goes_back() -> None:
    outcomes: list[str] = []  # appended to, which no other thread can come between

    def go(root: Any, ready: threading.Barrier) -> None:
        ready.wait()
        try:
            root.backward()
        except Exception as error:  # noqa: BLE001  (whatever it is, it is counted)
            outcomes.append(type(error).__name__)
        else:
            outcomes.append("done")

    for _ in range(200):
        x = y = dynamic.tensor(np.full(3, 0.5), requires_grad=True)
        for _ in range(3):
            y = g.tanh(y) * y + g.sum(y * y)
        ready, root = threading.Barrier(3), g.sum(y)
        threads = [threading.Thread(target=go, args=(root, ready)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert x.grad is not None
    assert Counter(outcomes) == {"done": 200, "NotDifferentiableError": 400}
