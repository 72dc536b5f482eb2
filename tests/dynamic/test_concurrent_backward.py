"""Backward in several threads at once: every gradient is added; of several that free a graph others are told so."""

from __future__ import annotations

import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import dynamic
import graphs as g
from dynamic import inplace, tape, tapes
from dynamic.node import Node
from graphs.errors import NotDifferentiableError
from tests.helpers.together import together

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
SAVED_NOTHING = ("scale", "sum", "take", "concat")
"""Their rules read no value of a tensor, so that backward may come again."""


@pytest.mark.parametrize("name", RESULTS)
def test_what_another_thread_has_released_is_no_other_error(name: str) -> None:
    for _ in range(3):  # at first use, when such a call comes again, and when all is known
        node = RESULTS[name](dynamic.tensor(np.full((2, 2), 0.5), requires_grad=True)).grad_fn
        for apply in (_walked, _by_rules, *([] if name in SAVED_NOTHING else compiled_ways(node))):
            node = RESULTS[name](dynamic.tensor(np.full((2, 2), 0.5), requires_grad=True)).grad_fn
            apply(node)
            if name in SAVED_NOTHING:
                apply(node)
                continue
            assert (node.saved, node.edges) == (None, ())
            with pytest.raises(NotDifferentiableError, match=r"graph that was freed.*; pass retain_graph=True"):
                apply(node)


def _walked(node: Node) -> None:
    """By the tape that runs."""
    tapes.walk([node], {node: np.ones(node.shape)}, tape.Way())


def _by_rules(node: Node) -> None:
    """By the tape in Python."""
    cotangents = {node: np.ones(node.shape)}
    tape.walk([node], cotangents, tape.Way())


def compiled_ways(node: Node) -> Iterator[Callable[[Node], None]]:
    """By what the compiled tape calls, without a look at the node first."""
    if tapes.is_compiled():
        from dynamic.fast import pullbacks

        yield lambda one: node.pullback.apply(one, False, {one: np.ones(one.shape)})
        yield lambda one: pullbacks.by_rules(one, False, {one: np.ones(one.shape)})


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


THREADS, TIMES = 4, 8
Values = dict[str, Any]


class Cube(dynamic.autograd.Function):
    """A function with a backward of its own, whose two results share one call."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * 2, x**3

    @staticmethod
    def backward(ctx: Any, g: Any, h: Any) -> Any:
        return g * 2 + h * 3 * ctx.saved_tensors[0] ** 2


def _leaf(size: int, value: float = 2.0) -> Any:
    return dynamic.tensor(np.full(size, value), requires_grad=True)


def _alone(size: int) -> Values:
    return {"w": _leaf(size)}


def _with_gradient(size: int) -> Values:
    w = _leaf(size)
    w.grad = dynamic.tensor(np.ones(size))
    return {"w": w}


def _in_one_buffer(size: int) -> Values:
    w, v = _leaf(size), _leaf(size)
    flat = np.zeros(2 * size)
    w.grad, v.grad = dynamic.tensor(flat[:size]), dynamic.tensor(flat[size:])
    return {"w": w, "v": v}


def _one_gradient_for_two(size: int) -> Values:
    w, v = _leaf(size), _leaf(size)
    w.grad = v.grad = dynamic.tensor(np.zeros(size))
    return {"w": w, "v": v}


def _with_hook(size: int) -> Values:
    w = _leaf(size)
    w.register_hook(lambda gradient: gradient * 3)
    return {"w": w}


def _with_inner(size: int) -> Values:
    w = _leaf(size)
    h = w * w
    h.retain_grad()
    return {"w": w, "h": h, "loss": (h * h).sum()}


def _with_function(size: int) -> Values:
    w = _leaf(size)
    a, b = Cube.apply(w)
    return {"w": w, "loss": (a + b).sum(), "other": (a * 5 + b).sum()}


def _with_checkpoint(size: int) -> Values:
    w = _leaf(size)
    return {"w": w, "loss": dynamic.utils.checkpoint.checkpoint(lambda x: (x * x * x).sum(), w, use_reentrant=False)}


def _higher(w: Any) -> None:
    (first,) = dynamic.autograd.grad((w * w * w).sum(), w, create_graph=True)
    (first * first).sum().backward()


def _in_place(w: Any) -> None:
    y = w * 1
    y.mul_(w)
    y.sum().backward()


SHARED: dict[str, tuple[Callable[[int], Values], Callable[..., Any]]] = {
    "a leaf": (_alone, lambda w: (w * w * 2 + w).sum().backward()),
    "broadcast": (_alone, lambda w: (w * dynamic.ones(3, 1) + w).sum().backward()),
    "a slice": (_alone, lambda w: (w[1:] * w[:-1]).sum().backward()),
    "a gradient that is there": (_with_gradient, lambda w: (w * w).sum().backward()),
    "gradients in one buffer": (_in_one_buffer, lambda w, v: (w * v + w).sum().backward()),
    "one gradient for two leaves": (_one_gradient_for_two, lambda w, v: (w * 2 + v).sum().backward()),
    "a hook": (_with_hook, lambda w: (w * w).sum().backward()),
    "create_graph": (_alone, lambda w: (w * w).sum().backward(create_graph=True)),
    "a second derivative": (_alone, _higher),
    "a change in place": (_alone, _in_place),
    "retain_grad": (_with_inner, lambda loss, **_: loss.backward(retain_graph=True)),
    "inputs": (_with_inner, lambda loss, h, w: loss.backward(retain_graph=True, inputs=[h, w])),
    "losses of one tensor": (_with_inner, lambda h, **_: (h * 3).sum().backward(retain_graph=True)),
    "a function of a user's": (_with_function, lambda loss, **_: loss.backward(retain_graph=True)),
    "two losses of one call": (
        _with_function,
        lambda loss, other, **_: [each.backward(retain_graph=True) for each in (loss, other)],
    ),
    "a checkpoint": (_with_checkpoint, lambda loss, **_: loss.backward(retain_graph=True)),
}
"""What threads share, and what each of them does with it."""


def _in_threads(body: Callable[[], Any]) -> None:
    """Run a body in threads that begin together. Raises what one of them does."""
    ready, errors = threading.Barrier(THREADS), list[BaseException]()

    def go() -> None:
        ready.wait()
        try:
            body()
        except BaseException as error:  # noqa: BLE001  (raised below)
            errors.append(error)

    threads = [threading.Thread(target=go) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for error in errors:
        raise error


def _gradients(values: Values) -> Values:
    return {name: value.grad.tolist() for name, value in values.items() if value.grad is not None}


@pytest.mark.usefixtures("switching")
@together("name,size", [(name, size) for name in SHARED for size in (3, 5_000)])
def test_threads_that_share_leaves_add_what_one_thread_does(name: str, size: int) -> None:
    make, body = SHARED[name]
    values, expected = make(size), make(size)
    for _ in range(THREADS * TIMES):
        body(**expected)
    _in_threads(lambda: [body(**values) for _ in range(TIMES)])
    assert _gradients(expected)
    assert _gradients(values) == _gradients(expected)


@pytest.mark.usefixtures("switching")
def test_hooks_that_threads_add_are_all_there() -> None:
    for _ in range(20):
        w, called = _leaf(3), list[int]()
        h = w * 2
        _in_threads(lambda w=w, h=h, called=called: [  # type: ignore[misc]
            (x.register_hook(lambda _: called.append(1)), h.retain_grad()) for _ in range(TIMES) for x in (w, h)
        ])  # fmt: skip
        (h * h).sum().backward()
        assert (len(called), h.grad.tolist()) == (2 * THREADS * TIMES, [8.0] * 3)


@pytest.mark.usefixtures("switching")
def test_the_latest_change_of_all_threads_is_known() -> None:
    tensors = threading.local()

    def change() -> None:
        tensors.x = dynamic.tensor([1.0])
        for _ in range(300):
            tensors.x += 1
            assert inplace.clock.latest >= inplace._changes[id(tensors.x._data)].time

    _in_threads(change)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a system without fork")
@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")
def test_a_child_goes_back_whatever_a_thread_of_its_parent_was_doing() -> None:
    done = threading.Event()
    w = _leaf(200_000)
    thread = threading.Thread(target=lambda: [(w * w).sum().backward() for _ in iter(done.is_set, True)])
    thread.start()
    try:
        for _ in range(20):
            child = os.fork()
            if not child:
                (w * w).sum().backward()
                os._exit(7)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    finally:
        done.set()
        thread.join()
