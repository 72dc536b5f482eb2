"""Frameworks as arms: PyTorch, TensorFlow, JAX and HIPS autograd run the workloads that our engines run.

A framework is one adapter, a file here, and one line of `_ADAPTERS`. An arm is named after its framework and a mode of
it: `torch-eager`, `tf-function-xla`. Nothing outside this folder knows a framework by name.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib import import_module

from compare.errors import UnknownNameError
from compare.frameworks.base import Framework
from compare.workloads import nearest

__all__ = ["Framework", "is_outside", "missing", "named", "names", "of_arm"]

_ADAPTERS = {
    "torch": "compare.frameworks.torch:Torch",
    "tensorflow": "compare.frameworks.tensorflow:TensorFlow",
    "jax": "compare.frameworks.jax:Jax",
    "autograd": "compare.frameworks.autograd:Autograd",
}


def names() -> tuple[str, ...]:
    """The name of every framework that has an adapter."""
    return tuple(_ADAPTERS)


@cache
def named(name: str) -> Framework:
    """The adapter of that name, which loads its framework when it is used. Raises UnknownNameError."""
    if name not in _ADAPTERS:
        raise UnknownNameError(f"no framework is named {name!r}; {nearest(name, names())}")
    module, _, attribute = _ADAPTERS[name].partition(":")
    framework: Framework = getattr(import_module(module), attribute)()
    return framework


def of_arm(arm: str) -> Framework | None:
    """The framework of an arm; None for an arm of our own engines."""
    for name in names():
        framework = named(name)
        if arm in framework.arms:
            return framework
    return None


def is_outside(arms: Iterable[str]) -> bool:
    """Whether these arms are those of a framework, which share no process with others."""
    return any(of_arm(arm) for arm in arms)


def missing(name: str) -> str | None:
    """What to install before a framework can run here; None where it is installed."""
    return named(name).missing
