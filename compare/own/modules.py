"""Functions of modules, which hold their parameters themselves: what they are as functions of parameters.

A loss that is arguments a module, or that closes over some, is measured as any other: its gradients are those in the
parameters that require them. Buffers stay tensors that the function reads.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from compare.engines.reach import Place, ReachedCode, outermost

Function = Callable[..., Any]


def functional(f: Function, inputs: Sequence[Any]) -> tuple[Function, Sequence[Any]]:
    """The function with a dict of parameters as its first argument, and its calls; as arguments where there are none.

    Parameters are those of the modules among the arguments, which are the same in each call, and what `f` reaches by
    itself: modules, and tensors that require a gradient.
    """
    loaded, calls = sys.modules.get("dynamic.nn.module"), list(inputs)
    if loaded is None or not calls or not all(isinstance(call, tuple) for call in calls):
        return f, inputs
    arguments = {i: value for i, value in enumerate(calls[0]) if isinstance(value, loaded.Module)}
    code = ReachedCode(f)
    modules = outermost([*arguments.values(), *(value for value in code.values if isinstance(value, loaded.Module))])
    holders = [module for module in modules if any(param.requires_grad for param in module.parameters())]
    inside = {id(param) for module in holders for param in module.parameters()}
    tensors = [value for value in code.values if _is_parameter(value) and id(value) not in inside]
    named = _named(holders, tensors)
    if not named:
        return f, inputs
    function = _Functional(f, holders, tensors, code.places, arguments)
    params = {name: param.numpy(force=True) for name, param in named.items()}
    return function.made(), [(params, *(value for i, value in enumerate(call) if i not in arguments)) for call in calls]


def _is_parameter(value: Any) -> bool:
    from dynamic import Tensor

    return isinstance(value, Tensor) and value.requires_grad and value.is_leaf


def _named(modules: Sequence[Any], tensors: Sequence[Any]) -> dict[str, Any]:
    """Parameters by their names, those of several modules after a number, in the order of modules and then tensors."""
    several, width = len(modules) + len(tensors) > 1, len(str(len(modules) + len(tensors)))
    named = {
        f"{i:0{width}}.{name}" if several else name: param
        for i, module in enumerate(modules)
        for name, param in module.named_parameters()
        if param.requires_grad
    }
    return {**named, **{f"{i:0{width}}": tensor for i, tensor in enumerate(tensors, len(modules))}}


class _Functional:
    """A function of parameters by name, which are put where the function finds them while it runs.

    Float buffers are in the dtype of the parameters meanwhile: the gate runs a module in float64 as well.
    """

    def __init__(
        self, f: Function, modules: Sequence[Any], tensors: Sequence[Any], places: Sequence[Place],
        arguments: Mapping[int, Any],
    ) -> None:  # fmt: skip
        self.f, self.arguments = f, arguments
        names = {id(param): name for name, param in _named(modules, tensors).items()}
        spaces = [vars(inner) for module in modules for inner in module.modules()]
        attributes = [(space, name, value) for space in spaces for name, value in space.items()]
        buffers = {id(tensor) for module in modules for tensor in module.buffers() if tensor.dtype.kind == "f"}
        self.places = [(space, name, names[id(value)]) for space, name, value in attributes if id(value) in names]
        self.places += [(p.space, p.name, names[id(value)]) for p in places if id(value := p.read()) in names]
        self.buffers = [place for place in attributes if id(place[2]) in buffers]

    def __call__(self, params: Any, *args: Any) -> Any:
        """What the function returns."""
        dtype = next(iter(params.values())).dtype
        values = [(space, key, params[name]) for space, key, name in self.places]
        if dtype.kind == "f":
            values += [(space, key, value.to(dtype)) for space, key, value in self.buffers if value.dtype != dtype]
        before = [(space, key, space[key]) for space, key, _ in values]
        try:
            _put(values)
            return self.f(*self._arguments(args))
        finally:
            _put(before)

    def _arguments(self, args: Sequence[Any]) -> Sequence[Any]:
        if not self.arguments:
            return args
        rest = iter(args)
        return [
            self.arguments[i] if i in self.arguments else next(rest) for i in range(len(args) + len(self.arguments))
        ]

    def made(self) -> Function:
        """As a plain function of the same name."""

        def called(params: Any, *args: Any) -> Any:
            return self(params, *args)

        called.__name__ = getattr(self.f, "__name__", "f")
        vars(called).update(vars(self.f) if hasattr(self.f, "__dict__") else {})
        return called


def _put(values: Sequence[tuple[Any, Any, Any]]) -> None:
    for space, key, value in values:
        space[key] = value
