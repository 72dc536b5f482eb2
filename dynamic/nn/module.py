"""Module: a function with parameters, as in PyTorch.

Registered values lie in the object's `__dict__` like every other attribute, where Python finds them fastest; `_kinds`
says which names are parameters, buffers or modules. `Hooks`, at the end, are called before and after `forward`.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from dynamic.autograd.function import WatchedCall, older_hook
from dynamic.nn import parameter
from dynamic.nn.parameter import is_parameter
from dynamic.node import Handle
from dynamic.tensor import Tensor, wrap
from graphs import capture
from graphs.errors import GraphError, locate
from graphs.frontends.torch import dtypes
from graphs.frontends.torch.names import guard_construction
from graphs.frontends.torch.shapes import order_of
from graphs.ops.dtypes import check_device
from graphs.ops.movement import identity

PARAMETER, BUFFER, TRANSIENT, MODULE = "parameter", "buffer", "buffer that is not saved", "module"
_BUFFERS = (BUFFER, TRANSIENT)


class Module:
    """A function with parameters, buffers and modules inside it: write `forward`, and call the module.

    Tensors made by `Parameter` and modules are registered when they are assigned to an attribute.
    """

    _kinds: dict[str, str]
    _hooks: Hooks | None
    _version = 1
    call_super_init = False

    def __init__(self, *args: Any, **options: Any) -> None:
        """Set up the registries. With `call_super_init` the arguments go to the next base class."""
        vars(self).update(_kinds={}, _hooks=None, _training=True)
        if self.call_super_init:
            super().__init__(*args, **options)
        elif args or options:
            raise TypeError(f"Module.__init__() of a {type(self).__name__} takes no arguments; call super().__init__()")

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        parameter.register(cls)
        guard_construction(cls)

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Call `forward` with these arguments, between the registered hooks."""
        hooks = self._hooks
        return self.forward(*args, **options) if hooks is None else hooks.run(self, args, options)

    def forward(self, *args: Any, **options: Any) -> Any:
        """The function that the module computes; every subclass defines its own."""
        raise NotImplementedError(f"{type(self).__name__} defines no forward; write one")

    # Attributes -----------------------------------------------------------------------------------------------

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "training":
            self._training = value
            return
        kind = MODULE if isinstance(value, Module) else PARAMETER if is_parameter(value) else None
        if kind is None and isinstance(value, parameter.Buffer):
            kind = BUFFER if vars(value)["persistent"] else TRANSIENT
        kinds = vars(self).get("_kinds")
        if kind is not None:
            if kinds is None:
                raise AttributeError(
                    f"a {kind} is assigned before Module.__init__() was called; call super().__init__()"
                )
            if callable(getattr(Module, name, None)):  # the method keeps its name, as in PyTorch
                if kind != MODULE:
                    raise KeyError(f"a {kind} is assigned to {name!r}, a method of modules; choose another name")
                vars(self).pop(name, None)
                name += parameter.APART
            kinds[name] = kind
        elif kinds and kinds.get(name) in (PARAMETER, MODULE) and value is not None:
            raise TypeError(f"{name!r} is a {kinds[name]}, and cannot become a {type(value).__name__}; delete it first")
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        name += parameter.APART * (name + parameter.APART in self._kinds)
        object.__delattr__(self, name)
        self._kinds.pop(name, None)

    def __getattr__(self, name: str) -> Any:
        if "_kinds" not in vars(self) and not name.startswith("__"):
            raise AttributeError(f"{type(self).__name__} has no {name!r}; does its __init__ call super().__init__()?")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def training(self) -> bool:
        """Whether dropout and batch norm behave as in training; a graph compiled for one does not serve the other."""
        return bool(capture.read(self, "_training"))

    def register_parameter(self, name: str, param: Any) -> None:
        """Register a parameter, or None in its place."""
        self._register(name, PARAMETER, param)

    def register_buffer(self, name: str, tensor: Any, persistent: bool = True) -> None:
        """Register a tensor that is no parameter; `persistent` ones are part of the state dict.

        A pair of complex numbers is an attribute. Raises GraphError for a persistent one.
        """
        if getattr(getattr(tensor, "dtype", None), "kind", "") == "c":
            if persistent:
                remedy = "give persistent=False, or a buffer of view_as_real"
                raise GraphError(locate(f"register_buffer: complex numbers are in no state dict; {remedy}"))
            vars(self)[name] = tensor
            return
        self._register(name, BUFFER if persistent else TRANSIENT, tensor)

    def add_module(self, name: str, module: Any) -> None:
        """Register a module, or None in its place."""
        self._register(name, MODULE, module)

    register_module = add_module

    def _register(self, name: str, kind: str, value: Any) -> None:
        if "_kinds" not in vars(self):
            raise AttributeError(f"a {kind} is registered before Module.__init__() was called; call super().__init__()")
        if "." in name or not name:
            raise KeyError(f"the name of a {kind} has a character and no dot, unlike {name!r}")
        if hasattr(self, name) and name not in self._kinds:
            raise KeyError(f"attribute {name!r} is there already; choose another name")
        if value is not None and kind == PARAMETER and not is_parameter(value):
            raise TypeError(f"{name!r} is a {type(value).__name__}, no parameter; write nn.Parameter(...)")
        self._kinds[name] = kind
        vars(self)[name] = value

    def _of(self, *kinds: str) -> Iterator[tuple[str, Any]]:
        values = vars(self)
        return ((name.rstrip(parameter.APART), values[name]) for name, kind in self._kinds.items() if kind in kinds)

    @property
    def _parameters(self) -> parameter.Registry:
        return parameter.Registry(self, PARAMETER)

    @property
    def _buffers(self) -> parameter.Registry:
        return parameter.Registry(self, *_BUFFERS)

    @property
    def _modules(self) -> parameter.Registry:
        return parameter.Registry(self, MODULE)

    # Contents --------------------------------------------------------------------------------------------------

    def named_modules(
        self, memo: set[Any] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """The module itself and all modules inside it, with their names; each once."""
        seen = set() if memo is None else memo
        if self in seen:
            return
        if remove_duplicate:
            seen.add(self)
        yield prefix, self
        for name, child in self._of(MODULE):
            if child is not None:
                yield from child.named_modules(seen, f"{prefix}.{name}" if prefix else name, remove_duplicate)

    def modules(self) -> Iterator[Module]:
        """The module itself and all modules inside it."""
        return (module for _, module in self.named_modules())

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The modules that are attributes of this one, with their names; each once."""
        seen = set[int]()
        for name, child in self._of(MODULE):
            if child is not None and id(child) not in seen:
                seen.add(id(child))
                yield name, child

    def children(self) -> Iterator[Module]:
        """The modules that are attributes of this one."""
        return (child for _, child in self.named_children())

    def _named_members(  # PyTorch's name: libraries of meta-learning call it
        self, get_members_fn: Any, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        seen = set[int]()
        modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        for path, module in modules:
            for name, value in get_members_fn(module):
                if value is not None and id(value) not in seen:
                    if remove_duplicate:
                        seen.add(id(value))
                    yield f"{path}.{name}" if path else name, value

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """The parameters with their names; each once."""
        return self._named_members(lambda module: module._of(PARAMETER), prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Any]:
        """The parameters; each once."""
        return (value for _, value in self.named_parameters(recurse=recurse))

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """The buffers with their names; each once."""
        return self._named_members(lambda module: module._of(*_BUFFERS), prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Any]:
        """The buffers; each once."""
        return (value for _, value in self.named_buffers(recurse=recurse))

    def get_submodule(self, target: str) -> Module:
        """The module with a dotted name. Raises AttributeError where there is none."""
        module: Any = self
        for part in filter(None, target.split(".")):
            module = getattr(module, part)
        if not isinstance(module, Module):
            raise AttributeError(f"{target!r} is no module")
        return module

    def get_parameter(self, target: str) -> Any:
        """The parameter with a dotted name. Raises AttributeError where there is none."""
        return self._value(target, PARAMETER)

    def get_buffer(self, target: str) -> Any:
        """The buffer with a dotted name. Raises AttributeError where there is none."""
        return self._value(target, *_BUFFERS)

    def _value(self, target: str, *kinds: str) -> Any:
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if module._kinds.get(name) not in kinds:
            raise AttributeError(f"{target!r} is no {kinds[0]}")
        return vars(module)[name]

    # Changes ---------------------------------------------------------------------------------------------------

    def apply(self, fn: Callable[[Module], Any]) -> Self:
        """Call a function with every module in this one, and then with this one."""
        for child in self.children():
            child.apply(fn)
        fn(self)
        return self

    def train(self, mode: bool = True) -> Self:
        """Switch this module and all modules inside it to training, or with False to evaluation."""
        for module in self.modules():
            module._training = mode
        return self

    def eval(self) -> Self:
        """Switch this module and all modules inside it to evaluation."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Set for all parameters whether they require a gradient."""
        for param in self.parameters():
            param.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Set the gradients of all parameters to None, or with `set_to_none=False` to 0."""
        for param in self._all(PARAMETER):
            param.grad = None if set_to_none or param.grad is None else wrap(np.zeros_like(param.grad._data))

    def _all(self, kind: str) -> Iterator[Any]:
        """All values of a kind here and in the modules inside, maybe more than once: faster than `parameters`."""
        values = self.__dict__
        for name, kind_of_name in values["_kinds"].items():
            value = values[name]
            if value is None:
                continue
            if kind_of_name == kind:
                yield value
            elif kind_of_name == MODULE:
                yield from value._all(kind)

    def _convert(self, convert: Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]) -> Self:
        for value in {id(v): v for v in itertools.chain(self.parameters(), self.buffers())}.values():
            array = convert(value._data)
            if array is not value._data:
                value.data = array
                value.grad = None if value.grad is None else wrap(convert(value.grad._data))
        return self

    def _floats(self, dtype: npt.DTypeLike) -> Self:
        return self._convert(lambda array: array.astype(dtype, copy=False) if array.dtype.kind == "f" else array)

    def float(self) -> Self:
        """Convert all floating point parameters and buffers to float32."""
        return self._floats(np.float32)

    def double(self) -> Self:
        """Convert all floating point parameters and buffers to float64."""
        return self._floats(np.float64)

    def half(self) -> Self:
        """Convert all floating point parameters and buffers to float16."""
        return self._floats(np.float16)

    def bfloat16(self) -> Self:
        """Not supported: raises DTypeError with the dtypes that there are."""
        return self._floats(dtypes.bfloat16.dtype)

    def to(self, *args: Any, **options: Any) -> Self:
        """Convert the floats of the module to a dtype. Raises ValueError for any device but the CPU."""
        memory_format = options.pop("memory_format", None)
        for target in (*args, *options.values()):
            if isinstance(target, Tensor):
                self._floats(target.dtype)
            elif target is None or isinstance(target, bool):
                continue
            elif isinstance(target, str) and target.partition(":")[0] in ("cpu", "cuda", "mps", "xpu", "meta"):
                check_device(target)
            elif hasattr(target, "type") and isinstance(target.type, str):  # a device as an object
                check_device(target.type)
            else:
                self._floats(target)
        if memory_format is not None:  # of weights of images and volumes, as in PyTorch
            self._convert(lambda a: identity(a, order=order_of(memory_format, a.ndim, "C")) if a.ndim in (4, 5) else a)
        return self

    def cpu(self) -> Self:
        """Return the module, which is on the CPU."""
        return self

    def cuda(self, device: Any = None) -> Self:
        """Not supported: raises GraphError, as all arrays are on the CPU."""
        raise GraphError(locate("cuda: there is no device but the CPU; leave the call out, or ask is_available()"))

    def compile(self, *args: Any, **options: Any) -> None:
        """Not supported: raises GraphError, as functions of a module compile in the static engine."""
        raise GraphError(locate("Module.compile: this engine compiles nothing; use static.jit on a function of it"))

    # Hooks -----------------------------------------------------------------------------------------------------

    def _hook_table(self) -> Hooks:
        hooks: Hooks = vars(self)["_hooks"] or Hooks()
        vars(self)["_hooks"] = hooks
        return hooks

    def register_forward_pre_hook(self, hook: Any, *, prepend: bool = False, with_kwargs: bool = False) -> Any:
        """Call `hook(module, args)` before `forward`; a result other than None replaces the arguments."""
        return self._hook_table().add("before", hook, prepend, with_kwargs)

    def register_forward_hook(self, hook: Any, *, prepend: bool = False, with_kwargs: bool = False) -> Any:
        """Call `hook(module, args, output)` after `forward`; a result other than None replaces the output."""
        return self._hook_table().add("after", hook, prepend, with_kwargs)

    def register_full_backward_hook(self, hook: Any, prepend: bool = False) -> Any:
        """Call `hook(module, grad_input, grad_output)` in backward; a result replaces `grad_input`, a tuple."""
        return self._hook_table().add("after_backward", hook, prepend)

    def register_full_backward_pre_hook(self, hook: Any, prepend: bool = False) -> Any:
        """Call `hook(module, grad_output)` before the module's backward; a result replaces `grad_output`, a tuple."""
        return self._hook_table().add("before_backward", hook, prepend)

    def register_backward_hook(self, hook: Any) -> Any:
        """Call `hook(module, grad_input, grad_output)` in backward; a read of `grad_input` raises GraphError."""
        return self._hook_table().add("after_backward", older_hook(hook))

    def register_state_dict_pre_hook(self, hook: Any) -> Any:
        """Call `hook(module, prefix, keep_vars)` before this module is saved."""
        return self._hook_table().add("saving", hook)

    def register_state_dict_post_hook(self, hook: Any) -> Any:
        """Call `hook(module, state_dict, prefix, metadata)` after this module and the modules inside it are saved."""
        return self._hook_table().add("saved", hook)

    _register_state_dict_hook = register_state_dict_post_hook

    def register_load_state_dict_pre_hook(self, hook: Any) -> Any:
        """Call `hook(module, state_dict, prefix, metadata, strict, missing, unexpected, errors)` before it loads."""
        return self._hook_table().add("loading", hook, named=True)

    def _register_load_state_dict_pre_hook(self, hook: Any, with_module: bool = False) -> Any:
        return self._hook_table().add("loading", hook, named=with_module)

    def register_load_state_dict_post_hook(self, hook: Any) -> Any:
        """Call `hook(module, keys)` after the module is loaded; it may change `keys`: missing and unexpected names."""
        return self._hook_table().add("loaded", hook)

    # State -----------------------------------------------------------------------------------------------------

    def state_dict(self, *, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> dict[str, Any]:
        """All parameters and persistent buffers by name; they share memory with the module."""
        return parameter.state_dict(self, prefix, keep_vars, destination)

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        """Put the parameters and buffers of this module alone into a state dict; subclasses may override this."""
        parameter.save_own(self, destination, prefix, keep_vars)

    def _load_from_state_dict(
        self,
        state_dict: Mapping[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Load the values of this module alone from a state dict; subclasses may override this."""
        del strict
        parameter.load_own(self, state_dict, prefix, local_metadata, missing_keys, unexpected_keys, error_msgs)

    def get_extra_state(self) -> Any:
        """The state besides tensors to be saved, for classes that define this and `set_extra_state`."""
        raise NotImplementedError("define get_extra_state beside set_extra_state")

    def set_extra_state(self, state: Any) -> None:
        """Restore the result of `get_extra_state`."""
        raise NotImplementedError("define set_extra_state beside get_extra_state")

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        """Copy values into parameters and buffers of the same names; returns the missing and the unexpected names.

        Raises RuntimeError for another shape, and with `strict` for missing and unexpected names.
        """
        return parameter.load_state_dict(self, state_dict, strict, assign)

    # Copies and text -------------------------------------------------------------------------------------------

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        made = memo[id(self)] = type(self).__new__(type(self))
        made.__setstate__(copy.deepcopy(vars(self), memo))
        return made

    def __setstate__(self, values: dict[str, Any]) -> None:
        vars(self).update(values)

    def extra_repr(self) -> str:
        """The text in `repr` besides the modules inside."""
        return ""

    def _get_name(self) -> str:
        return type(self).__name__

    def _child_texts(self) -> list[tuple[str, str]]:
        return [(name, repr(child)) for name, child in self._of(MODULE)]

    def __repr__(self) -> str:
        extra = self.extra_repr()
        children = [f"({name}): " + text.replace("\n", "\n  ") for name, text in self._child_texts()]
        if not children and "\n" not in extra:
            return f"{self._get_name()}({extra})"
        lines = [*extra.split("\n"), *children] if extra else children
        return f"{self._get_name()}(\n  " + "\n  ".join(lines) + "\n)"

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *vars(self)})


parameter.register(Module)


Hook = Callable[..., Any]
Entry = tuple[Hook, bool]  # and whether it is given the named arguments, or the module before a state dict is loaded


class Hooks:
    """The hooks of one module, in the order in which they are called."""

    def __init__(self) -> None:
        self.before, self.after, self.before_backward, self.after_backward = [list[Entry]() for _ in range(4)]
        self.saving, self.saved, self.loading, self.loaded = [list[Entry]() for _ in range(4)]

    def add(self, when: str, hook: Hook, first: bool = False, named: bool = False) -> Handle:
        """Add a hook at the end, or `first`; returns a handle that removes it."""
        entries: list[Entry] = getattr(self, when)
        entry = (hook, named)
        entries.insert(0 if first else len(entries), entry)
        return Handle(entries, entry)

    def run(self, module: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Call the module's `forward` between its hooks."""
        for hook, named in tuple(self.before):
            replaced = hook(module, args, options) if named else hook(module, args)
            if replaced is not None and named:
                args, options = replaced
            elif replaced is not None:
                args = replaced if isinstance(replaced, tuple) else (replaced,)
        backward = self.before_backward, self.after_backward
        watched = WatchedCall(module, *backward) if any(backward) else None
        output = module.forward(*(args if watched is None else watched.arguments(args)), **options)
        for hook, named in tuple(self.after):
            replaced = hook(module, args, options, output) if named else hook(module, args, output)
            output = output if replaced is None else replaced
        return output if watched is None else watched.result(output)
