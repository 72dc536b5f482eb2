"""Functions of modules, which hold their parameters themselves: what they are as functions of parameters.

A loss that is given a module, or that closes over some, is measured as any other: its gradients are those in the
parameters that require them. Buffers stay tensors that the function reads.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from compare.engines.reached import ReachedCode, outermost

Function = Callable[..., Any]


def functional(f: Function, inputs: Sequence[Any]) -> tuple[Function, Sequence[Any]]:
    """The function with a dict of parameters as its first argument, and its calls; as given where there is no module.

    A module among the calls must be argument 0 of each, and the same.
    """
    loaded = sys.modules.get("dynamic.nn.module")
    calls = list(inputs)
    if loaded is None or not calls or not all(isinstance(call, tuple) for call in calls):
        return f, inputs
    argument = calls[0][0] if calls[0] and isinstance(calls[0][0], loaded.Module) else None
    if argument is None:
        modules = outermost([value for value in ReachedCode(f).values if isinstance(value, loaded.Module)])
        inner = f
    else:
        modules, calls = [argument], [call[1:] for call in calls]
        inner = functools.partial(f, argument)
    params = {
        (name if len(modules) == 1 else f"{i}.{name}"): param.numpy(force=True)
        for i, module in enumerate(modules)
        for name, param in module.named_parameters()
        if param.requires_grad
    }
    if not params:
        return f, inputs
    return _with(modules, inner, f), [(params, *call) for call in calls]


def _cast(module: Any, params: Mapping[str, Any]) -> dict[str, Any]:
    """Float buffers in the dtype of the parameters, where it is another: the gate runs a module in float64 as well."""
    dtypes = {value.dtype for value in params.values()}
    dtype = dtypes.pop() if len(dtypes) == 1 else None
    return {
        name: buffer.to(dtype)
        for name, buffer in module.named_buffers()
        if dtype is not None and buffer.dtype.kind == "f" and buffer.dtype != dtype
    }


def _with(modules: Sequence[Any], inner: Function, f: Function) -> Function:
    def called(params: Any, *args: Any) -> Any:
        from dynamic.nn.structure import holding

        with ExitStack() as stack:
            for i, module in enumerate(modules):
                before = "" if len(modules) == 1 else f"{i}."
                own = {name.removeprefix(before): value for name, value in params.items() if name.startswith(before)}
                stack.enter_context(holding(module, {**_cast(module, own), **own}))
            return inner(*args)

    called.__name__ = getattr(f, "__name__", "f")
    return called
