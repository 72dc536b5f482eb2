"""A name of PyTorch's is data: one definition is a function, a method, the form that changes a tensor, and other names.

    @name("clip", in_place=True)
    def clamp(input, min=None, max=None): ...

makes `torch.clamp`, `torch.clip`, `x.clamp()`, `x.clip()`, `x.clamp_()` and `x.clip_()`. Parameters, defaults and text
are those of the function, which stays as it is: the library calls it directly. What users call is guarded. An op that
is PyTorch's function itself says so in a field: `TorchName` in `graphs/op.py`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from graphs.frontends.torch.guard import Function, with_named_errors

F = TypeVar("F", bound=Callable[..., Any])
InPlace = bool | str

functions: dict[str, Function] = {}
"""The functions of `torch`, by each of their names."""


class Methods:
    """The base of Tensor and Symbol whose methods are the functions of a tensor `input`, and their in-place forms."""

    __slots__ = ()


def name(*aliases: str, in_place: InPlace = False) -> Callable[[F], F]:
    """Register the function below under its name and aliases; a first parameter `input` makes it a method as well.

    Raises ValueError for a name that exists already.

    `in_place` makes the form `x.NAME_()`, which gives x the values and the history of the result; "shape" makes one
    that gives x the shape of the result, which looks at the same memory.
    """

    def enter(function: F) -> F:
        is_method = inspect.unwrap(function).__code__.co_varnames[:1] == ("input",)
        for called in (function.__name__, *aliases):
            _check_new(called, functions)
            functions[called] = public = _public(function, called, "graphs.frontends.torch.functions")
            if is_method:
                _add(called, public, in_place)
        return function

    return enter


def method(*aliases: str, in_place: InPlace = False) -> Callable[[F], F]:
    """Register the function below as a method only; its first parameter is the tensor."""

    def enter(function: F) -> F:
        for called in (function.__name__, *aliases):
            _add(called, _public(function, called, function.__module__), in_place)
        return function

    return enter


def _public(function: Function, called: str, module: str) -> Function:
    made = with_named_errors(function)
    made.__name__ = made.__qualname__ = called
    made.__module__ = module
    return made


def _check_new(called: str, space: Mapping[str, object]) -> None:
    if called in space:
        raise ValueError(f"PyTorch's name {called!r} is defined already; define it once")


def _add(called: str, function: Function, in_place: InPlace) -> None:
    _check_new(called, vars(Methods))
    setattr(Methods, called, function)
    if in_place:
        setattr(Methods, f"{called}_", _changing(function, is_shape=in_place == "shape"))


def _changing(function: Function, is_shape: bool) -> Function:
    if is_shape:

        def form(self: Any, *args: Any, **options: Any) -> Any:
            return self._become(function(self, *args, **options))
    else:

        def form(self: Any, *args: Any, **options: Any) -> Any:
            return self._assign(function(self._before(*args, *options.values()), *args, **options))

    form.__name__ = form.__qualname__ = f"{function.__name__}_"
    form.__doc__ = f"In place: {function.__doc__}"
    return form
