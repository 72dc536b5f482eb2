"""Parameter: a tensor that a module registers when it is assigned to an attribute.

Then functions by which layers make their parameters, state dicts (saving and loading the values of a module by name),
and modules as containers of their parameters, with calls that use other values.

A module among the arguments of a function holds its parameters as leaves, as a dict of arrays would. Its buffers are
no leaves, but tensors that the function reads.
"""

from __future__ import annotations

import copy
import math
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from dynamic.grad_mode import no_grad
from dynamic.tensor import Tensor, as_array, parameters, wrap
from graphs import capture, tree
from graphs.errors import ControlFlowError, GraphError, locate
from graphs.frontends.torch.words import as_dtype
from graphs.ops.dtypes import check_device
from graphs.ops.shapes import new_shape
from graphs.surface import Surface


def mark_parameter(tensor: Tensor) -> Tensor:
    """Mark a tensor as a parameter, and return it."""
    parameters[id(tensor)] = tensor
    return tensor


def is_parameter(value: Any) -> bool:
    """Whether a value was made by `Parameter`."""
    return type(value) is Tensor and parameters.get(id(value)) is value


class _Kind(type):
    """The metaclass behind `isinstance(x, Parameter)`: parameters have the class Tensor, which compiled loops know."""

    def __instancecheck__(cls, value: Any) -> bool:
        return is_parameter(value)


class Parameter(metaclass=_Kind):
    """A tensor that shares the memory of `data`, requires a gradient, and is registered by modules."""

    def __new__(cls, data: Any, requires_grad: bool = True) -> Any:
        """Make the parameter. Raises DTypeError for ints that require a gradient, ControlFlowError for a symbol."""
        if isinstance(data, Surface) and not issubclass(type(data), Tensor):
            check_untraced()
        return mark_parameter(wrap(as_array(data, None)).requires_grad_(requires_grad))


class _BufferKind(type):
    def __instancecheck__(cls, value: Any) -> bool:
        return type(value) is Tensor and "_is_buffer" in vars(value)


class Buffer(metaclass=_BufferKind):
    """A tensor that a module registers as a buffer when it is assigned to an attribute."""

    def __new__(cls, data: Any, *, persistent: bool = True) -> Any:
        """Mark a tensor that shares the memory of `data`."""
        made = wrap(as_array(data, None))
        vars(made).update(_is_buffer=True, persistent=persistent)
        return made


def check_untraced() -> None:
    """Raise ControlFlowError while a function is traced: a parameter that each call makes anew cannot be trained."""
    if capture.is_traced():
        raise ControlFlowError(
            locate(
                "parameters and their first values are made while a function is traced, and each call would "
                "have new ones; make the layer before, as a global, an attribute or an argument of the function"
            )
        )


def empty(shape: tuple[int, ...], device: Any = None, dtype: Any = None) -> Any:
    """A parameter to be filled. Raises ShapeError, and ValueError for any device but the CPU."""
    if device is not None:
        check_device(getattr(device, "type", device))
    return Parameter(np.zeros(new_shape(shape), as_dtype(dtype)))


def full(shape: tuple[int, ...], value: float, device: Any = None, dtype: Any = None) -> Any:
    """A parameter filled with one value."""
    param = empty(shape, device, dtype)
    param._data.fill(value)
    return param


def uniform_bound(fan: int) -> float:
    """The bound of uniform initial values for `fan` inputs."""
    return 1 / math.sqrt(fan) if fan > 0 else 0.0


APART = "."  # behind the key of a module whose name is that of a method: no name of an attribute has a dot


class Registry(MutableMapping[str, Any]):
    """A dict view of a module's values of some kinds: changes of it change the module."""

    def __init__(self, module: Any, *kinds: str) -> None:
        self._module, self._its_kinds = module, kinds

    def __getitem__(self, name: str) -> Any:
        return vars(self._module)[self._key(name)]

    def __setitem__(self, name: str, value: Any) -> None:
        self._module._kinds.setdefault(name, self._its_kinds[0])
        vars(self._module)[name] = value

    def __delitem__(self, name: str) -> None:
        delattr(self._module, self._key(name))

    def _key(self, name: str) -> str:
        kinds = self._module._kinds
        for key in (name, name + APART):
            if kinds.get(key) in self._its_kinds:
                return key
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter([name for name, _ in self._module._of(*self._its_kinds)])

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __repr__(self) -> str:
        return repr(dict(self))


SAVED = ("parameter", "buffer")


class LoadResult(NamedTuple):
    """The names missing in a state dict, and its names that the module does not have."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not any(self):
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"


EXTRA = "_extra_state"


def state_dict(module: Any, prefix: str, keep_vars: bool, destination: Any) -> dict[str, Any]:
    """Parameters and persistent buffers by name, detached unless `keep_vars`, and the extra state of modules."""
    saved: Any = destination
    if saved is None:
        saved = OrderedDict()
        saved._metadata = OrderedDict()
    metadata = {"version": module._version}
    if hasattr(saved, "_metadata"):
        saved._metadata[prefix[:-1]] = metadata
    for hook, _ in () if module._hooks is None else tuple(module._hooks.saving):
        hook(module, prefix, keep_vars)
    module._save_to_state_dict(saved, prefix, keep_vars)
    for name, child in module._of("module"):
        if child is not None:
            child.state_dict(destination=saved, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
    for hook, _ in () if module._hooks is None else tuple(module._hooks.saved):
        replaced = hook(module, saved, prefix, metadata)
        saved = saved if replaced is None else replaced
    return saved


def _own_values(module: Any) -> list[tuple[str, Any]]:
    """The parameters of one module, then its persistent buffers, by name."""
    return [(name, value) for kind in SAVED for name, value in module._of(kind) if value is not None]


def save_own(module: Any, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
    """Save the values of one module, without the modules inside it."""
    for name, value in _own_values(module):
        destination[prefix + name] = value if keep_vars else value.detach()
    if _overrides(module, "get_extra_state"):
        destination[prefix + EXTRA] = module.get_extra_state()


def load_state_dict(module: Any, values: Mapping[str, Any], strict: bool, assign: bool) -> LoadResult:
    """Copy values into the tensors of the same names, or with `assign` replace these; all or nothing."""
    loaded = LoadResult([], [])
    wrong: list[str] = []
    copies: list[Callable[[], Any]] = []
    metadata = getattr(values, "_metadata", {})  # versions of modules by prefix: of the file, not of the code
    values = OrderedDict(values)  # hooks and classes may change it
    hooked = []
    for prefix, part in _parts(module, ""):
        options = {**metadata.get(prefix[:-1], {}), "assign_to_params_buffers": assign, "copies": copies}
        rest = (values, prefix, options, strict, loaded.missing_keys, loaded.unexpected_keys, wrong)
        if part._hooks is not None:
            for hook, takes_module in tuple(part._hooks.loading):
                hook(part, *rest) if takes_module else hook(*rest)
            hooked += [(hook, part) for hook, _ in part._hooks.loaded]
        part._load_from_state_dict(*rest)
    if hooked and not wrong:  # they see the module as it is then, and may still excuse names
        _run(copies)
        for hook, part in reversed(hooked):
            hook(part, loaded)
    if strict:
        wrong += [f"{what}: {', '.join(keys)}" for what, keys in loaded._asdict().items() if keys]
    if wrong:
        raise RuntimeError(f"load_state_dict for {type(module).__name__}: " + "; ".join(wrong))
    _run(copies)
    return loaded


def _run(copies: list[Callable[[], Any]]) -> None:
    with no_grad():
        while copies:
            copies.pop(0)()


def load_own(
    module: Any, values: Mapping[str, Any], prefix: str, options: dict[str, Any], missing: list[str],
    unexpected: list[str], wrong: list[str],
) -> None:  # fmt: skip
    """Plan the loading of one module from a state dict; values are copied if no module has an error in `wrong`."""
    own = {prefix + name: (name, value) for name, value in _own_values(module)}
    if _overrides(module, "set_extra_state"):
        own[prefix + EXTRA] = EXTRA, None
    children = {name for name, _ in module._of("module")}
    missing += [key for key in own if key not in values]
    unexpected += [
        key for key in values if key.startswith(prefix) and key not in own and _first(key, prefix) not in children
    ]
    for key, (name, value) in own.items():
        if key not in values:
            continue
        if name == EXTRA:
            options["copies"].append(partial(module.set_extra_state, values[key]))
        elif (shape := tuple(np.shape(values[key]))) != value.shape:
            wrong.append(f"size mismatch for {key}: {shape} in the state dict, {value.shape} in the module")
        else:
            assign = options.get("assign_to_params_buffers", False)
            options["copies"].append(partial(_load, module, name, value, values[key], assign))


def _first(key: str, prefix: str) -> str:
    """The name of the submodule that a key belongs to; "" for the module itself."""
    name, dot, _ = key.removeprefix(prefix).partition(".")
    return name if dot else ""


def _overrides(module: Any, name: str) -> bool:
    return any(name in vars(kind) for kind in type(module).__mro__ if kind.__module__ != "dynamic.nn.module")


def _parts(module: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    """A module and all modules inside it, each with the prefix of its names; a module held twice comes twice."""
    yield prefix, module
    for name, child in module._of("module"):
        if child is not None:
            yield from _parts(child, f"{prefix}{name}.")


def _load(owner: Any, attribute: str, value: Tensor, data: Any, assign: bool) -> None:
    if not assign:
        value.copy_(as_array(data, None).astype(value.dtype, copy=False))
    elif owner._kinds[attribute] == "parameter":
        setattr(owner, attribute, Parameter(as_array(data, None), value.requires_grad))
    else:
        setattr(owner, attribute, wrap(as_array(data, None)))


class Skeleton:
    """A module without its parameters; equal for the same module in the same mode."""

    def __init__(self, module: Any, names: tuple[str, ...]) -> None:
        self.module, self.names = module, names
        self._key = (id(module), names, tuple(submodule._training for submodule in module.modules()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Skeleton) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        return f"{type(self.module).__name__}({', '.join(self.names)})"


def register(kind: type) -> None:
    """Register a module class as a container of its parameters."""
    tree.register(kind, _flatten_module, _unflatten_module)


def _flatten_module(module: Any) -> tuple[list[Any], Skeleton, tuple[str, ...]]:
    named = dict(module.named_parameters())
    names = tuple(named)
    values = [value._data if type(value) is Tensor else value for value in named.values()]
    return values, Skeleton(module, names), names


def _unflatten_module(skeleton: Any, values: Any) -> Any:
    """A copy of the module with other parameter values; all else in it is the same objects."""
    made = _copy_module(skeleton.module, {})
    _put(list(_replacements(made, dict(zip(skeleton.names, values, strict=True)))))
    return made


def _copy_module(module: Any, memo: dict[int, Any]) -> Any:
    if id(module) not in memo:
        made: Any = copy.copy(module)
        memo[id(module)] = made
        children = {name: vars(module)[name] for name, kind in module._kinds.items() if kind == "module"}
        vars(made).update({name: _copy_module(child, memo) for name, child in children.items() if child is not None})
    return memo[id(module)]


Place = tuple[Any, str, Any]  # a module, the name of an attribute, and the value that it gets


def _put(places: list[Place]) -> None:
    for module, name, value in places:
        module.__dict__[name] = value


def _replacements(module: Any, values: Mapping[str, Any], tied: bool = True) -> Iterator[Place]:
    """The places where these values belong; the value of tied parameters goes to all their places."""
    places: dict[str, tuple[Any, str]] = {}
    replaced: dict[int, Any] = {}
    for path, submodule in module.named_modules(remove_duplicate=False):
        for name, value in submodule._of("parameter", "buffer", "buffer that is not saved"):
            full = f"{path}.{name}" if path else name
            places[full] = submodule, name
            if full in values and value is not None:
                replaced[id(value)] = values[full]
    unknown = [name for name in values if name not in places]
    if unknown:
        raise GraphError(
            locate(f"functional_call: the module has no {', '.join(map(repr, unknown))}; see state_dict()")
        )
    for full, (submodule, name) in places.items():
        if full in values:
            yield submodule, name, values[full]
        elif tied and id(vars(submodule)[name]) in replaced:
            yield submodule, name, replaced[id(vars(submodule)[name])]


@contextmanager
def holding(module: Any, values: Mapping[str, Any], tied: bool = True) -> Iterator[None]:
    """Give parameters and buffers of these names other values inside the block."""
    places = list(_replacements(module, values, tied))
    before = [(owner, name, vars(owner)[name]) for owner, name, _ in places]
    try:
        _put(places)
        yield
    finally:
        _put(before)


def functional_call(
    module: Any,
    parameter_and_buffer_dicts: Any,
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call the module with other values of its parameters and buffers: a dict by name, or several.

    Values are arrays, tensors, or symbols of a trace, so that the call is a function of them. Raises GraphError for
    names that the module does not have, and with `strict` for names that are not given.
    """
    parts = parameter_and_buffer_dicts
    values = dict(parts) if isinstance(parts, Mapping) else {k: v for part in parts for k, v in part.items()}
    if strict:
        missing = [n for n, _ in (*module.named_parameters(), *module.named_buffers()) if n not in values]
        if missing:
            raise GraphError(locate(f"functional_call: no value is given for {', '.join(missing)}"))
    call_args = () if args is None else args if isinstance(args, tuple) else (args,)
    with holding(module, values, tie_weights):
        return module(*call_args, **(kwargs or {}))
