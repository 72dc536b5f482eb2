"""The values that a function's code can reach by name: globals, outer variables, defaults, and what it is bound to.

User functions that the code names are followed. So are the methods and attributes that it names of user objects, and
names in user modules. Nothing is run. `Kinds` gives the tensors among them, and among the arguments of calls, in an
order that all engines with PyTorch's names share.
"""

from __future__ import annotations

import inspect
import sys
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import optree

from compare.engines.containers import is_container, named_parts, with_parts
from compare.errors import is_users

MISSING = object()
"""The value of a place that is empty."""
_PLAIN = (bool, int, float, complex, str, bytes, type(None), ModuleType)
_CONTAINERS = (list, tuple, dict)
"""The containers whose values a function reaches."""
_KINDS = (dict, list, tuple, set, frozenset, deque)


@dataclass(frozen=True)
class Place:
    """A place where code finds a value: its holder (a namespace, a cell or a function), its name there, and its label.

    The label is for messages. `MISSING` is the value of an empty place.
    """

    holder: Any
    name: str
    label: str

    def read(self) -> Any:
        """Return the value at the place."""
        if isinstance(self.holder, CellType):
            try:
                return self.holder.cell_contents
            except ValueError:  # not assigned yet
                return MISSING
        values = _defaults(self.holder) if isinstance(self.holder, FunctionType) else self.holder
        return values.get(self.name, MISSING)

    def write(self, value: Any) -> None:
        """Write a value to the place, or empty it."""
        if value is not MISSING:
            self.space[self.name] = value
        elif isinstance(self.holder, CellType):
            del self.holder.cell_contents
        else:
            del self.space[self.name]

    @property
    def space(self) -> MutableMapping[str, Any]:
        """Return the holder as a mapping that can be written by `name`."""
        if isinstance(self.holder, CellType):
            return _Cell(self.holder)
        return _Defaults(self.holder) if isinstance(self.holder, FunctionType) else self.holder


class _Slots(dict[str, Any]):
    """A dict whose entries are read and written elsewhere."""

    def get(self, name: str, _: Any = None) -> Any:
        """Return the entry; there is no default."""
        return self[name]


class _Cell(_Slots):
    """The value of an outer variable's cell, as a dict."""

    def __init__(self, cell: CellType) -> None:
        super().__init__()
        self.cell = cell

    def __getitem__(self, _: str) -> Any:
        return self.cell.cell_contents

    def __setitem__(self, _: str, value: Any) -> None:
        self.cell.cell_contents = value


class _Defaults(_Slots):
    """The defaults of a function's parameters, as a dict."""

    def __init__(self, function: FunctionType) -> None:
        super().__init__()
        self.function = function

    def __getitem__(self, name: str) -> Any:
        return _defaults(self.function)[name]

    def __setitem__(self, name: str, value: Any) -> None:
        keywords = self.function.__kwdefaults__ or {}
        if name in keywords:
            keywords[name] = value
        else:
            values = {**_defaults(self.function), name: value}
            self.function.__defaults__ = tuple(v for key, v in values.items() if key not in keywords)


def _defaults(function: FunctionType) -> dict[str, Any]:
    """Return a function's defaults by the names of its parameters, in their order."""
    code, defaults = function.__code__, function.__defaults__ or ()
    names = code.co_varnames[code.co_argcount - len(defaults) : code.co_argcount]
    return {**dict(zip(names, defaults, strict=True)), **(function.__kwdefaults__ or {})}


# Objects are read by these functions only, and by methods of Python's own classes: a subclass's may import or raise.


def values_in(container: Any) -> list[Any]:
    """Return the values in one of Python's containers."""
    kind = _kind(container)
    return list(dict.values(container) if kind is dict else kind.__iter__(container))


def entries_of(mapping: dict[Any, Any]) -> list[tuple[Any, Any]]:
    """Return the keys and values of a dict."""
    return list(dict.items(mapping))


def size_of(container: Any) -> int:
    """Return how many values one of Python's containers holds."""
    size: int = _kind(container).__len__(container)
    return size


def behind(value: Any) -> Any:
    """Return the value that a wrapper wraps (`__wrapped__`); None where there is none or reading it raises."""
    try:
        return getattr(value, "__wrapped__", None)
    except Exception:  # noqa: BLE001  (whatever an object of somebody's raises as it is asked)
        return None


def _kind(container: Any) -> Any:
    return next(kind for kind in _KINDS if isinstance(container, kind))


class ReachedCode:
    """The functions that a call of `f` may run, the places that they name, and the values there and in user objects.

    Values in lists, tuples and dicts are values by themselves.
    """

    def __init__(self, f: Any) -> None:
        self.functions: list[FunctionType] = []
        self.places: list[Place] = []
        self.values: list[Any] = []
        self._names = set[str]()
        self._seen = set[Any]()
        self._enter(f)
        looked_at = -1
        while looked_at != len(self._seen):  # a name that comes later may be an attribute of an object met before
            looked_at = len(self._seen)
            for value in list(self.values):
                if is_users_class(value if isinstance(value, type) else type(value)):
                    for attribute in _attributes(value, self._names):
                        self._enter(attribute)

    def _enter(self, value: Any) -> None:
        if isinstance(value, _PLAIN) or id(value) in self._seen:
            return
        self._seen.add(id(value))
        if isinstance(value, _CONTAINERS):
            for part in values_in(value):
                self._enter(part)
            return
        self.values.append(value)  # which also keeps its id
        self._enter(behind(value))
        if isinstance(value, MethodType):
            self._enter(value.__self__)
            self._enter(value.__func__)
        elif isinstance(value, partial):
            for part in (value.func, value.args, value.keywords):
                self._enter(part)
        elif isinstance(value, FunctionType) and is_users(value.__code__.co_filename):
            self._function(value)

    def _function(self, function: FunctionType) -> None:
        self.functions.append(function)
        names = names_of(function)
        self._names |= names
        for place in places_of(function):
            if (id(place.holder), place.name) not in self._seen:
                self._seen.add((id(place.holder), place.name))
                self.places.append(place)
                self._enter(place.read())


def codes_of(function: Any) -> list[CodeType]:
    """Return the code of a function and of the functions that it wraps, the innermost last."""
    codes: list[CodeType] = []
    while function is not None:
        codes += filter(None, [getattr(function, "__code__", None)])
        function = behind(function)
    return codes


def module_of(function: Any) -> str:
    """Return the name of the module that defines a function, without what wraps it; "" where it has none."""
    while isinstance(function, partial):
        function = function.func
    return getattr(inspect.unwrap(function), "__module__", None) or ""


def outermost(modules: Sequence[Any]) -> list[Any]:
    """Return each module once, without modules that are inside another."""
    inside = {id(inner) for module in modules for inner in module.modules() if inner is not module}
    return list({id(module): module for module in modules if id(module) not in inside}.values())


def names_of(function: FunctionType) -> set[str]:
    """Return the names that a function's code uses besides its local variables, with those of inner functions."""
    return {name for code in _nested_code(function.__code__) for name in code.co_names}


def _nested_code(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _nested_code(constant)


def places_of(function: FunctionType, *, globals_too: bool = True) -> Iterator[Place]:
    """Yield the places that a function names: globals, attributes of user modules, outer variables, defaults."""
    space = function.__globals__
    # the same order in every process, so that a value's index identifies it
    ordered = sorted(names_of(function)) if globals_too else []
    for name in ordered:
        yield Place(space, name, f"the global `{name}`")
        module = space.get(name)
        if isinstance(module, ModuleType) and is_users(getattr(module, "__file__", None) or "<frozen"):
            for attribute in ordered:
                yield Place(vars(module), attribute, f"the global `{name}.{attribute}`")
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        yield Place(cell, name, f"the outer variable `{name}`")
    for name in _defaults(function):
        yield Place(function, name, f"the default argument `{name}` of {function.__name__}")


def is_users_class(kind: type) -> bool:
    """Return whether a class is defined in the user's code."""
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    return kind.__module__ == "__main__" or (file is not None and is_users(file))


def _attributes(value: Any, names: set[str]) -> Iterator[Any]:
    """Yield an object's attributes with these names, and the methods that Python or a module calls implicitly."""
    kind = value if isinstance(value, type) else type(value)
    made = {"__init__"} if value is not kind else set()
    for space in (*map(vars, kind.__mro__), getattr(value, "__dict__", {})):
        for name, held in list(space.items()):
            by_itself = name == "forward" or (name.startswith("__") and isinstance(held, FunctionType))
            if name in names or (by_itself and name not in made):
                yield inspect.unwrap(held.fget) if isinstance(held, property) and held.fget else held


# Tensors --------------------------------------------------------------------------------------------------------------


PLAIN = ":plain"
"""The suffix of the name of a tensor that is a module's plain attribute, neither a parameter nor a buffer."""


def names_in(function: Callable[..., Any], calls: Sequence[tuple[Any, ...]], code: ReachedCode) -> dict[int, str]:
    """Return a name for each value's id: its global, outer variable, attribute of a user's object, or parameter."""
    names: dict[int, str] = {}
    for value in code.values:
        if is_users_class(type(value)):
            names |= {id(inner): name for name, inner in getattr(value, "__dict__", {}).items()}
    for place in code.places:
        value = place.read()
        names |= {id(value): place.name}
        if type(value) in (list, tuple, dict):
            inside = zip(optree.tree_paths(value), optree.tree_leaves(value), strict=True)
            names |= {id(leaf): place.name + "".join(f"[{key!r}]" for key in path) for path, leaf in inside}
    try:
        parameters = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return names
    return {**{id(value): name for name, value in zip(parameters, calls[0], strict=False)}, **names}


@dataclass(frozen=True)
class Kinds:
    """An engine's classes of tensors and modules."""

    tensor: type
    module: type

    def leaves(self, tree: Any) -> list[Any]:
        """Return the leaves of a container of any class; a module is one leaf, even if it is a container."""
        leaves = list[Any]()

        def note(leaf: Any) -> Any:
            leaves.append(leaf)
            return leaf

        self.mapped(note, tree)
        return leaves

    def mapped(self, f: Any, tree: Any) -> Any:
        """Return a container with `f` applied to each leaf; unchanged inner containers of other classes stay."""

        def change(leaf: Any) -> Any:
            if self._is_module(leaf) or not is_container(leaf):
                return f(leaf)
            parts = named_parts(leaf) or {}
            changed = self.mapped(f, parts)
            return leaf if all(changed[name] is part for name, part in parts.items()) else with_parts(leaf, changed)

        return optree.tree_map(change, tree, is_leaf=self._is_module, none_is_leaf=True)

    def _is_module(self, value: Any) -> bool:
        return isinstance(value, self.module)

    def arguments(self, calls: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Return the tensors among the arguments of calls."""
        return [leaf for leaf in self.leaves(list(calls)) if isinstance(leaf, self.tensor)]

    def held(self, function: Any, calls: Sequence[tuple[Any, ...]]) -> dict[str, Any]:
        """Return, by name, the tensors of all reached modules, and those that the function reaches by itself."""
        reached = ReachedCode(function).values
        modules = self._outermost(calls, reached)
        named = [(i, *pair) for i, module in enumerate(modules) for pair in self._of(module)]
        theirs = {id(tensor) for _, _, tensor in named}
        alone = {id(value): value for value in reached if isinstance(value, self.tensor) and id(value) not in theirs}
        width = len(str(len(modules) + len(alone)))  # zero-padded, so that sorting keeps this order
        inside = {f"{i:0{width}}.{name}": tensor for i, name, tensor in named}
        return {**inside, **{f"{i:0{width}}": tensor for i, tensor in enumerate(alone.values(), len(modules))}}

    def state(self, function: Any, calls: Sequence[tuple[Any, ...]], changed: Collection[int] = ()) -> dict[str, Any]:
        """Return the tensors that training changes: floats of modules, those that require gradients, ids `changed`."""
        held = self.held(function, calls)
        registered = {name for name in held if "." in name and not name.endswith(PLAIN)}
        return {
            name: tensor
            for name, tensor in held.items()
            if (tensor.dtype.kind == "f" and (name in registered or tensor.requires_grad)) or id(tensor) in changed
        }

    def labels(self, function: Any, calls: Sequence[tuple[Any, ...]], state: Mapping[str, Any]) -> dict[str, str]:
        """Return the label of each tensor of a state for messages, by its key: ``the parameter `net.fc.weight` ``."""
        code = ReachedCode(function)
        names = names_in(function, calls, code)
        modules = self._outermost(calls, code.values)
        labels = {}
        for key, tensor in state.items():
            place, _, path = key.partition(".")
            if not path:
                labels[key] = f"the tensor `{names.get(id(tensor), key)}`"
                continue
            whole = ".".join(filter(None, (names.get(id(modules[int(place)])), path.removesuffix(PLAIN))))
            labels[key] = f"the {'parameter' if tensor.requires_grad else 'buffer'} `{whole}`"
        return labels

    def _outermost(self, calls: Sequence[tuple[Any, ...]], reached: Sequence[Any]) -> list[Any]:
        return outermost([value for value in (*self.leaves(list(calls)), *reached) if isinstance(value, self.module)])

    def _of(self, module: Any) -> Iterator[tuple[str, Any]]:
        """Yield a module's parameters and buffers, and tensors that are plain attributes of it or of its submodules."""
        registered = {**dict(module.named_parameters()), **dict(module.named_buffers())}
        yield from registered.items()
        theirs = {id(tensor) for tensor in registered.values()}
        for path, inner in module.named_modules():
            for name, value in vars(inner).items():
                if isinstance(value, self.tensor) and id(value) not in theirs:
                    yield f"{path}.{name}{PLAIN}", value
