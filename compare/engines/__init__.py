"""Engines: our own two, PyTorch, TensorFlow, JAX and HIPS autograd run a function of the user's, and our workloads.

An engine is one adapter, a file here, and one line of `_FRAMEWORKS`. An arm is named after its engine and a mode of it:
`torch-eager`, `tf-function-xla`; ours are `dynamic` and `static-exact` and their like. Nothing outside this folder
knows a framework by name.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module

from compare.engines.base import Engine, Step
from compare.errors import UnknownNameError
from compare.workloads import nearest
from compare.workloads.base import Case

__all__ = ["OWN", "Engine", "frameworks", "named", "names", "of_arm", "refuses", "step"]

OWN = "graphduel"
"""The engine that is two: ours."""
_OURS = "compare.engines.graphduel.adapter:GraphDuel"
_FRAMEWORKS = {
    "torch": "compare.engines.torch.adapter:Torch",
    "tensorflow": "compare.engines.tensorflow.adapter:TensorFlow",
    "jax": "compare.engines.jax:Jax",
    "autograd": "compare.engines.autograd:Autograd",
}


def names() -> tuple[str, ...]:
    """The name of every engine that has an adapter."""
    return (OWN, *_FRAMEWORKS)


def frameworks() -> tuple[str, ...]:
    """The name of every engine but our own."""
    return tuple(_FRAMEWORKS)


def of_arm(arm: str) -> Engine:
    """The adapter of the engine that has that arm. Raises UnknownNameError."""
    arms = {arm: name for name in names() for arm in named(name).arms}
    if arm not in arms:
        raise UnknownNameError(f"no engine has an arm {arm!r}; {nearest(arm, tuple(arms))}")
    return named(arms[arm])


def step(arm: str, case: Case) -> Step:
    """The step of an arm over a case. Raises as `Engine.step`."""
    return of_arm(arm).step(arm, case)


def refuses(arm: str, error: BaseException) -> bool:
    """Whether an error is the engine of an arm saying that it does not do this, rather than a fault."""
    return of_arm(arm).refuses(error, arm)


@cache
def named(name: str) -> Engine:
    """The adapter of that name, which loads its engine when it is used. Raises UnknownNameError."""
    if name not in names():
        raise UnknownNameError(f"no engine is named {name!r}; {nearest(name, names())}")
    module, _, attribute = (_OURS if name == OWN else _FRAMEWORKS[name]).partition(":")
    engine: Engine = getattr(import_module(module), attribute)()
    return engine
