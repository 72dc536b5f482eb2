"""A framework made of our own engines, for tests of functions in frameworks: nothing need be installed."""

from __future__ import annotations

import time
from types import MappingProxyType
from typing import Any

import numpy as np

import dynamic
import graphs as g
import static
from compare.engines.base import Compiler, Devices, Errors, Numbers, Ops
from compare.engines.framework import Framework
from compare.engines.graphduel import steps
from compare.engines.mode import Mode
from compare.engines.step import Compilation, Observations
from compare.records.own import RanOp
from graphs.errors import ControlFlowError

SLOWER = 3


class Toy(Framework):
    """Eager is the tape, compiled is `static.jit`; `slow` does the work several times, `wrong` adds to it."""

    name, title, module, package = "toy", "Toy", "numpy", "numpy>=1"
    idioms = MappingProxyType({"cond": "toy.cond"})
    modes = (
        Mode("eager"),
        Mode("jit"),
        Mode("slow", usual=False, suite=False),
        Mode("wrong", usual=False, suite=False),
        Mode("refusing", usual=False, suite=False),
        Mode("endless", usual=False, suite=False),
    )

    def __init__(self) -> None:
        super().__init__()
        self.devices = ToyDevices(self)
        self.ops = ToyOps(self)
        self.numbers = ToyNumbers(self)
        self.compiler = ToyCompiler(self)
        self.errors = ToyErrors(self)

    def functions(self) -> dict[str, Any]:
        """Ours."""
        return {name: getattr(g, name) for name in g.__all__ if callable(getattr(g, name))}

    def arrays(self, tree: Any) -> Any:
        """NumPy's."""
        return tree

    def numpy(self, tree: Any) -> Any:
        """NumPy's."""
        return tree

    def build(self, mode: str, loss: Any, argnum: int | None) -> Any:
        """See the modes."""
        step = dynamic.value_and_grad(loss, argnum or 0)
        name = self.traits(mode).name
        if name == "jit":
            return static.jit(static.value_and_grad(loss, argnum or 0))
        if name == "slow":
            return lambda *args: [step(*args) for _ in range(SLOWER)][-1]
        if name == "wrong":
            return lambda *args: (step(*args)[0] + 1, step(*args)[1])
        if name == "refusing":
            return refuse
        if name == "endless":
            return endless(step)
        return step

    def observed(self, step: Any) -> Observations:
        """The compilations of `static.jit`."""
        count = step.stats.compiles if isinstance(step, static.Jitted) else 0
        return Observations([Compilation("a new shape", 0.25)] * count, {"a print": count} if count else {})


class ToyDevices(Devices):
    """See the base."""

    def gpu(self) -> str | None:
        """It would see one, and there is none."""
        return None


class ToyOps(Ops):
    """See the base."""

    def ran(self, step: Any, call: tuple[Any, ...]) -> list[RanOp]:
        """What tracing the same step finds."""
        nodes = static.trace(static.value_and_grad(step.__wrapped__), *call).nodes
        return [_ran(node) for node in nodes if node.op.family != "source"]


class ToyNumbers(Numbers):
    """See the base."""

    round_results = staticmethod(steps.round_results)


class ToyCompiler(Compiler):
    """See the base."""

    def compiled(self, mode: str, function: Any) -> Any:
        """A function that must be traced before it runs; see the modes."""
        modes = {"jit": traced, "slow": hung, "wrong": doubled, "refusing": lambda _: refuse}
        return modes[self.engine.traits(mode).name](function)


class ToyErrors(Errors):
    """See the base."""

    def checked(self) -> Any:
        """The tape's own check."""
        return dynamic.detect_anomaly()

    def traced(self, error: BaseException) -> bool:
        """All that `static.jit` raises on these faults."""
        return True

    def refuses(self, error: BaseException, mode: str = "") -> bool:
        """What is not done, and what a trace cannot decide."""
        return isinstance(error, NotImplementedError | ControlFlowError)


def _ran(node: Any) -> RanOp:
    moved = sum(one.spec.nbytes for one in (node, *node.inputs))
    if node.op.name == "matmul":
        return RanOp("product", node.spec.size, moved, 2 * node.spec.size * node.inputs[0].spec.shape[-1])
    return RanOp("view" if node.op.view else "other", node.spec.size, moved)


def traced(function: Any) -> Any:
    """The function, which a trace must take; what it keeps between calls is baked in, as a trace of arrays has it."""

    def run(*args: Any) -> Any:
        plain = g.tree.tree_map(lambda x: x.detach() if isinstance(x, dynamic.Tensor) else x, args)
        static.trace(function, *g.tree.tree_map(np.asarray, plain))
        return function(*args)

    return run


def hung(function: Any) -> Any:
    """A compiler that does not come back."""

    def run(*args: Any) -> Any:
        while True:
            pass

    return run


def doubled(function: Any) -> Any:
    """A compiler that is wrong."""
    return lambda *args: g.tree.tree_map(lambda x: x * 2, function(*args))


def refuse(*args: Any) -> Any:
    raise NotImplementedError("cannot be compiled: it prints")


def endless(step: Any) -> Any:
    """Answers once, and is busy ever after."""
    answers = [step]

    def run(*args: Any) -> Any:
        while not answers:
            time.sleep(0.01)
        return answers.pop()(*args)

    return run


def loss(w: Any, x: Any) -> Any:
    for _ in range(30):
        x = g.tanh(x * w)
    return g.sum(x)


def calls() -> list[tuple[Any, Any]]:
    w = np.linspace(0.5, 1, 4, dtype=np.float32)
    return [(w, np.full((n, 4), 0.5, np.float32)) for n in (2, 3, 2)]
