"""Modules that hold modules or parameters."""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Self

from dynamic.nn.module import Module
from dynamic.nn.parameter import Parameter, is_parameter
from graphs.errors import OutOfRangeError, locate

__all__ = ["DataParallel", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]


class _IndexedValues(Module):
    """Base of lists: values are registered under the names "0", "1", ..."""

    def _put(self, name: str, value: Any) -> None:
        self.add_module(name, value)

    def _values(self) -> list[Any]:
        values = vars(self)
        return [values[name] for name in self._kinds]

    def _part(self, index: slice) -> Any:
        """A new list of the same class with some of the values."""
        kind: Any = type(self)
        return kind(self._values()[index])

    def _set(self, values: Iterable[Any]) -> None:
        for name in tuple(self._kinds):
            delattr(self, name)
        for i, value in enumerate(values):
            self._put(str(i), value)

    def __len__(self) -> int:
        return len(self._kinds)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values())

    def __contains__(self, value: Any) -> bool:
        return any(value is member for member in self._values())

    def _name(self, index: int) -> str:
        names = tuple(self._kinds)
        if not -len(names) <= index < len(names):
            raise OutOfRangeError(
                locate(f"index {index} is out of range of {len(names)}; use {-len(names)} to {len(names) - 1}")
            )
        return names[index]

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self._part(index)
        return vars(self)[self._name(index)]

    def __setitem__(self, index: int, value: Any) -> None:
        name = self._name(index)
        order = tuple(self._kinds)
        delattr(self, name)
        self._put(name, value)
        vars(self)["_kinds"] = {key: self._kinds[key] for key in order}

    def __delitem__(self, index: Any) -> None:
        values = self._values()
        del values[index]
        self._set(values)

    def append(self, value: Any) -> Self:
        """Add a value at the end."""
        self._put(str(len(self)), value)
        return self

    def extend(self, values: Iterable[Any]) -> Self:
        """Add several values at the end."""
        for value in values:
            self.append(value)
        return self

    def insert(self, index: int, value: Any) -> Self:
        """Insert a value before an index."""
        values = self._values()
        values.insert(index, value)
        self._set(values)
        return self

    def pop(self, index: int = -1) -> Any:
        """Remove a value, and return it."""
        value = self[index]
        del self[index]
        return value

    def __iadd__(self, values: Iterable[Any]) -> Self:
        return self.extend(values)


class Sequential(_IndexedValues):
    """Call modules one after another, each on the result of the one before: modules, or one ordered dict of modules."""

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            for name, module in args[0].items():
                self.add_module(name, module)
        else:
            for i, module in enumerate(args):
                if not isinstance(module, Module):
                    raise TypeError(f"{type(module).__name__} is no module; Sequential takes modules")
                self.add_module(str(i), module)

    def _part(self, index: slice) -> Any:
        kind: Any = type(self)
        return kind(OrderedDict(zip(tuple(self._kinds)[index], self._values()[index], strict=True)))

    def forward(self, input: Any) -> Any:
        """The result of the last module."""
        values = vars(self)
        for name in self._kinds:
            input = values[name](input)
        return input


class ModuleList(_IndexedValues):
    """A list of modules."""

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        self.extend(() if modules is None else modules)

    def _child_texts(self) -> list[tuple[str, str]]:
        """The text of each run of modules with one text, by the numbers of the first and the last."""
        shown = list[tuple[str, str]]()
        for text, run in itertools.groupby(enumerate(map(repr, self)), lambda numbered: numbered[1]):
            first, *others = [number for number, _ in run]
            count = len(others) + 1
            shown.append((f"{first}-{others[-1]}", f"{count} x {text}") if others else (f"{first}", text))
        return shown

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList([*self, *other])


class ParameterList(_IndexedValues):
    """A list of parameters, and of lists and dicts of them; tensors become parameters."""

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self.extend(() if values is None else values)

    def _put(self, name: str, value: Any) -> None:
        _put_parameter(self, name, value)

    def extra_repr(self) -> str:
        """A line for each parameter."""
        return "\n".join([_line_on(str(i), value, lambda value: str(value.dtype)) for i, value in enumerate(self)])


def _put_parameter(module: Module, name: str, value: Any) -> None:
    if isinstance(value, Module):
        module.add_module(name, value)
    else:
        module.register_parameter(name, value if is_parameter(value) else Parameter(value))


def _line_on(name: str, value: Any, kind: Callable[[Any], str]) -> str:
    """A line on a parameter, as PyTorch writes it, or on a list of them."""
    if isinstance(value, Module):
        return f"  ({name}): Object of type: {type(value).__name__}"
    return f"  ({name}): Parameter containing: [{kind(value)} of size {'x'.join(map(str, value.shape))}]"


class _NamedValues(Module):
    """Base of dicts: values are registered by name."""

    def _put(self, name: str, value: Any) -> None:
        self.add_module(name, value)

    def __init__(self, values: Any = None) -> None:
        super().__init__()
        if values is not None:
            self.update(values)

    def __len__(self) -> int:
        return len(self._kinds)

    def __iter__(self) -> Iterator[str]:
        return iter(tuple(self._kinds))

    def __contains__(self, name: str) -> bool:
        return name in self._kinds

    def __getitem__(self, name: str) -> Any:
        if name not in self._kinds:
            raise KeyError(name)
        return vars(self)[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self._put(name, value)

    def __delitem__(self, name: str) -> None:
        delattr(self, name)

    def keys(self) -> Iterable[str]:
        """The names."""
        return tuple(self._kinds)

    def values(self) -> Iterable[Any]:
        """The values."""
        return [self[name] for name in self]

    def items(self) -> Iterable[tuple[str, Any]]:
        """Names and values."""
        return [(name, self[name]) for name in self]

    def update(self, values: Any) -> None:
        """Add the values of a dict, or of pairs."""
        for name, value in values.items() if isinstance(values, Mapping | _NamedValues) else values:
            self[name] = value

    def pop(self, name: str) -> Any:
        """Remove a value, and return it."""
        value = self[name]
        del self[name]
        return value

    def clear(self) -> None:
        """Remove all values."""
        for name in tuple(self._kinds):
            del self[name]


class ModuleDict(_NamedValues):
    """A dict of modules by name."""


class ParameterDict(_NamedValues):
    """A dict of parameters by name, and of lists and dicts of them; tensors become parameters."""

    def _put(self, name: str, value: Any) -> None:
        _put_parameter(self, name, value)

    def extra_repr(self) -> str:
        """A line for each parameter."""
        return "\n".join([_line_on(name, value, lambda value: str(value.type())) for name, value in self.items()])


class DataParallel(Module):
    """Calls its module; devices and axes are ignored. State dicts have PyTorch's "module." names."""

    def __init__(self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0) -> None:
        super().__init__()
        self.module = module
        self.dim, self.device_ids = dim, list[Any]()

    def forward(self, *inputs: Any, **options: Any) -> Any:
        """The result of the module."""
        return self.module(*inputs, **options)


def data_parallel(
    module: Module,
    inputs: Any,
    device_ids: Any = None,
    output_device: Any = None,
    dim: int = 0,
    module_kwargs: dict[str, Any] | None = None,
) -> Any:
    """The result of the module for the inputs: one, or a tuple of them."""
    return module(*(inputs if isinstance(inputs, tuple) else (inputs,)), **(module_kwargs or {}))
