"""Put wrong things into the slots of what a tape and a batch are made of, and go on: nothing may crash.

`python -m tests.fuzz.perverse SEED COUNT` prints how many of the rounds ended in an exception. It has a process of
its own, since what it looks for is the end of that process.
"""

from __future__ import annotations

import faulthandler
import gc
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np

import dynamic
import graphs as g
from dynamic import grad_mode, inplace
from dynamic.batching import nodes
from dynamic.batching.batch import Batch
from dynamic.batching.deferred import DeferredTensor
from dynamic.node import Leaf
from dynamic.node import Node as TapeNode
from dynamic.tensor import Tensor
from graphs.reverse import Pullback

MISSING = object()
reachable: list[Any] = []


class Evil:
    """Whatever is asked of it, it first empties a slot of something in use, or a container."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def strike(self) -> None:
        for held in self.random.sample(reachable, min(2, len(reachable))):
            for descriptor in self.random.sample(slots_of(held), min(2, len(slots_of(held)))):
                with suppress(Exception):
                    value = descriptor.__get__(held)
                    if isinstance(value, (list, dict)):
                        value.clear()
                    else:
                        descriptor.__delete__(held)

    def __hash__(self) -> int:
        self.strike()
        return 7

    def __eq__(self, other: object) -> bool:
        self.strike()
        return bool(self.random.getrandbits(1))

    def __bool__(self) -> bool:
        self.strike()
        return True

    def __index__(self) -> int:
        self.strike()
        return self.random.choice([-1, 0, 1, 2, 10**6])

    __int__ = __len__ = __index__

    def __float__(self) -> float:
        self.strike()
        return 1.0

    def __iter__(self) -> Iterator[Any]:
        self.strike()
        return iter([self, None, 1])

    def __call__(self, *_: Any, **__: Any) -> Any:
        self.strike()
        return self.random.choice([None, self, 1, np.ones(3)])

    def __del__(self) -> None:
        self.strike()


def slots_of(thing: Any) -> list[Any]:
    """The descriptors of all slots of an object; of a deferred value those of the tensor that it will be."""
    kinds = [*type(thing).__mro__]
    found = [one for kind in kinds for one in vars(kind).values() if type(one).__name__ == "member_descriptor"]
    return [one for one in found if one.__name__ != "__weakref__"]


def made(kind: type) -> Any:
    """An object of a kind that was never initialised."""
    return kind.__new__(kind) if kind is not nodes.Several else nodes.Several.__new__(nodes.Several)


def wrongs(chance: random.Random) -> Any:
    """Something to put into a slot."""
    array = np.ones(3, np.float32)
    plain = [None, 5, -1, 0, 2**62, 10**30, 1.5, "x", b"x", (), (1,), ("a", None), [], [None], {}, {1: 2}, set(), True]
    arrays = [
        array,
        array.astype(object),
        np.ones(3, complex),
        np.ones((2, 2)),
        np.dtype("f4"),
        np.dtype(object),
        array[:0],
    ]
    unmade = [
        made(kind)
        for kind in (Tensor, TapeNode, Leaf, Pullback, DeferredTensor, nodes.DeferredNode, nodes.View, nodes.ResultPart)
    ]
    others = [*unmade, Evil(chance.getrandbits(30)), [Evil(chance.getrandbits(30))], (Evil(chance.getrandbits(30)),)]
    return chance.choice(
        [chance.choice(plain), chance.choice(arrays), chance.choice(others), chance.choice(reachable or [0])]
    )


def parts_of(root: Any, depth: int = 5) -> list[Any]:
    """What a tensor or a batch is made of, as far as it is ours."""
    ours = (
        Tensor,
        TapeNode,
        Leaf,
        Pullback,
        nodes.DeferredNode,
        nodes.View,
        nodes.ResultPart,
        nodes.Level,
        nodes.ValueKind,
        nodes.GroupValues,
    )
    found: dict[int, Any] = {}
    pending = [(root, 0)]
    for value, at in pending:  # which grows meanwhile
        if id(value) in found or at > depth:
            continue
        if isinstance(value, (list, tuple)):
            pending += [(one, at + 1) for one in value[:8]]
        elif isinstance(value, dict):
            pending += [(one, at + 1) for one in list(value.values())[:8]]
        elif isinstance(value, Batch):
            pending += [(one, at + 1) for one in vars(value).values()]
        elif isinstance(value, ours) or type(value).__module__.startswith("dynamic.batching"):
            if slots_of(value):
                found[id(value)] = value
            for descriptor in slots_of(value):
                with suppress(AttributeError):
                    pending.append((descriptor.__get__(value), at + 1))
    return list(found.values())


def snapshot(things: list[Any]) -> list[Any]:
    """What all slots of some objects hold, and what is in the containers among it: others share some of them."""
    held = [(thing, one, getattr_or_missing(one, thing)) for thing in things for one in slots_of(thing)]
    return [(*each, each[-1].copy() if type(each[-1]) in (list, dict) else None) for each in held]


def spoil(things: list[Any], chance: random.Random) -> list[Any]:
    """Delete slots, or put something into them; what was there, to be put back."""
    before = snapshot(things)
    for _ in range(chance.choice([1, 1, 2, 4])):
        thing = chance.choice(things)
        descriptor = chance.choice(slots_of(thing))
        with suppress(AttributeError, TypeError):
            if chance.random() < 0.4:
                descriptor.__delete__(thing)
            else:
                descriptor.__set__(thing, wrongs(chance))
    return before


def getattr_or_missing(descriptor: Any, thing: Any) -> Any:
    try:
        return descriptor.__get__(thing)
    except AttributeError:
        return MISSING


def restore(before: list[Any]) -> None:
    for thing, descriptor, value, content in before:
        with suppress(AttributeError):
            descriptor.__delete__(thing) if value is MISSING else descriptor.__set__(thing, value)
        if isinstance(content, list):
            value[:] = content
        elif content is not None:
            value.clear()
            value.update(content)


@contextmanager
def whatever() -> Iterator[None]:
    """Any error is right, but for those of Python's own: a result and an error at once, or neither."""
    try:
        yield
    except SystemError:
        raise
    except Exception:  # noqa: BLE001
        pass


# What is done with it ---------------------------------------------------------------------------------------------

W = np.linspace(-1, 1, 6).reshape(2, 3)


def chain(x: Any) -> list[Any]:
    h = g.tanh(x @ dynamic.tensor(W.T))
    y = g.sum(h * 2.0 + g.take(h, np.array([0, 1, 1]), axis=0), axis=1)
    return [h, y, g.concat([y, x[0]]), g.mean(y / 3)]


def use_tape(chance: random.Random) -> None:
    x = dynamic.tensor(np.ones((3, 3)), requires_grad=True)
    values = [x, *chain(x)]
    if chance.random() < 0.3:
        values[1].register_hook(Evil(chance.getrandbits(30)) if chance.random() < 0.5 else lambda grad: grad * 2)
    reachable[:] = [*parts_of(values), inplace.clock]
    before = spoil(reachable, chance)
    try:
        for step in chance.sample([0, 1, 2, 3, 4, 5], 3):
            use_values(step, values, x)
    finally:
        reachable.clear()
        restore(before)


def use_values(step: int, values: list[Any], x: Any) -> None:
    with whatever():
        if step == 0:
            [v * 2 + w for v in values for w in values[:2]]
        elif step == 1:
            values[-1].backward(retain_graph=True)
        elif step == 2:
            dynamic.grad_of(values[-1], [x, values[1]], retain_graph=True)
        elif step == 3:
            [g.stack([v[0], v[..., :1], x[0]]) for v in values]
        elif step == 4:
            [(repr(v), float(v), v.shape, v.requires_grad) for v in values]
        else:
            dynamic.value_and_grad(lambda a: g.sum(a * values[1]))(np.ones((3, 3)))


def use_transform(chance: random.Random) -> None:
    """A step whose function spoils what it is given, and parameters whose keys do."""
    arrays: dict[Any, Any] = {"a": np.ones((3, 3)), "b": np.ones(3)}

    class Key:
        def __hash__(self) -> int:
            for change in chance.sample([grow, arrays.clear, lambda: arrays.pop("b", None)], 1):
                change()
            return chance.randrange(3)

        def __eq__(self, other: object) -> bool:
            return chance.random() < 0.5

    def grow() -> None:
        for i in range(20):
            arrays[f"more {len(arrays)} {i}"] = np.ones(2)

    def f(params: Any, y: Any) -> Any:
        values = list(params.values()) if isinstance(params, dict) else [params]
        total = g.sum(g.stack([g.sum(v * 2) for v in values])) + g.sum(y)
        reachable[:] = [*parts_of([total, *values, y]), inplace.clock]
        before.extend(spoil(reachable, chance))
        return total

    before: list[Any] = []
    with whatever():
        if chance.random() < 0.5:
            arrays[Key()] = np.ones(2)
        dynamic.value_and_grad(f)(arrays, np.ones(3))
    reachable.clear()
    restore(before)


@dynamic.cell
def cell(left: Any, right: Any, w: Any) -> Any:
    return g.tanh((left + right) @ w), left * 2


def use_batch(chance: random.Random) -> None:
    w = dynamic.tensor(np.ones((3, 3)), requires_grad=True)
    before: list[Any] = []
    try:
        with dynamic.batched():
            rows = [dynamic.tensor(np.full(3, float(i))) for i in range(3)]
            values = [g.tanh(row @ w) for row in rows] + list(cell(rows[0], rows[1], w))
            reachable[:] = parts_of([values, grad_mode.now().batch])
            before = spoil(reachable, chance)
            for step in chance.sample([0, 1, 2, 3], 2):
                use_deferred(step, values, w)
    finally:
        reachable.clear()
        restore(before)


def use_deferred(step: int, values: list[Any], w: Any) -> None:
    with whatever():
        if step == 0:
            values += [v + u for v in values for u in values[:2]]
        elif step == 1:
            values += [*cell(values[0], values[1], w), *list(values[0]), values[1][0]]
        elif step == 2:
            values.append(g.sum(g.stack([g.reshape(v, (3, 1)) for v in values]), axis=0))
        else:
            g.sum(values[0]).backward(retain_graph=True)


USES: list[Callable[[random.Random], None]] = [use_tape, use_tape, use_transform, use_batch]


def one_round(seed: int) -> bool:
    """Whether it ended in an exception, which is what is right."""
    chance = random.Random(seed)
    try:
        chance.choice(USES)(chance)
    except SystemError:  # of Python's: a result and an exception at once, or neither
        raise
    except Exception:  # noqa: BLE001  (whatever it is)
        return True
    finally:
        reachable.clear()
    return False


def main(seed: int, count: int) -> None:
    """Run the rounds."""
    sys.unraisablehook = lambda _: None
    faulthandler.enable()
    failed = 0
    for number in range(count):
        failed += one_round(seed * 1_000_000 + number)
        reachable.clear()
        if number % 50 == 0:
            gc.collect()
    print(f"{count} rounds, {failed} ended in an exception")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
