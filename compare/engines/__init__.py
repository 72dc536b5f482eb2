"""Frameworks: PyTorch, TensorFlow, JAX and HIPS autograd run a function of the user's, and the workloads of ours.

A framework is one adapter, a file here, and one line of `_ADAPTERS`. An arm is named after its framework and a mode of
it: `torch-eager`, `tf-function-xla`. Nothing outside this folder knows a framework by name.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module

from compare.engines.base import Framework
from compare.errors import UnknownNameError
from compare.workloads import nearest

__all__ = ["Framework", "named", "names", "of_arm"]

_ADAPTERS = {
    "torch": "compare.engines.torch.adapter:Torch",
    "tensorflow": "compare.engines.tensorflow.adapter:TensorFlow",
    "jax": "compare.engines.jax:Jax",
    "autograd": "compare.engines.autograd:Autograd",
}


def names() -> tuple[str, ...]:
    """The name of every framework that has an adapter."""
    return tuple(_ADAPTERS)


def of_arm(arm: str) -> Framework:
    """The adapter of the framework that has that arm. Raises UnknownNameError."""
    known = {arm: name for name in names() for arm in named(name).arms}
    if arm not in known:
        raise UnknownNameError(f"no framework has an arm {arm!r}; {nearest(arm, tuple(known))}")
    return named(known[arm])


@cache
def named(name: str) -> Framework:
    """The adapter of that name, which loads its framework when it is used. Raises UnknownNameError."""
    if name not in _ADAPTERS:
        raise UnknownNameError(f"no framework is named {name!r}; {nearest(name, names())}")
    module, _, attribute = _ADAPTERS[name].partition(":")
    framework: Framework = getattr(import_module(module), attribute)()
    return framework
