"""Parameter: a tensor that a module registers when it is assigned to an attribute."""

from __future__ import annotations

from typing import Any

from dynamic.tensor import Tensor, parameters


def marked(tensor: Tensor) -> Tensor:
    """The tensor, which is a parameter from now on."""
    parameters[id(tensor)] = tensor
    return tensor


def is_parameter(value: Any) -> bool:
    """Whether a value was made by `Parameter`."""
    return type(value) is Tensor and parameters.get(id(value)) is value


class _Kind(type):
    """`isinstance(x, Parameter)` asks whether x was made as one: its type is Tensor, which compiled loops know."""

    def __instancecheck__(cls, value: Any) -> bool:
        return is_parameter(value)


class Parameter(metaclass=_Kind):
    """A tensor that shares the memory of `data`, requires a gradient, and is registered by modules."""

    def __new__(cls, data: Any, requires_grad: bool = True) -> Any:
        """Raises DTypeError for data of ints that is to require a gradient."""
        return marked(Tensor(data, requires_grad=requires_grad))
