"""A name of PyTorch's is data: one definition is a function, a method, the form that changes a tensor, and other names.

    @name("clip", in_place=True)
    def clamp(input, min=None, max=None): ...

makes `torch.clamp`, `torch.clip`, `x.clamp()`, `x.clip()`, `x.clamp_()` and `x.clip_()`. Parameters, defaults and text
are those of the function, which stays as it is: the library calls it directly. What users call is guarded. An op that
is PyTorch's function itself says so in a field: `TorchName` in `graphs/op.py`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from graphs import dispatch
from graphs.dispatch import describe_operand
from graphs.errors import DTypeError, OptionError
from graphs.frontends.torch.words import NUMPY_WORDS, cast
from graphs.op import is_ours
from graphs.promotion import HELD
from graphs.wrong_calls import WRONG, raise_named

Function = Callable[..., Any]


def with_named_errors(function: Function) -> Function:
    """Wrap a function: each of its errors is a GraphError that names it, its operands and the user's line.

    PyTorch's functions call each other without the guard, so the function that the user called is named. The guard also
    accepts NumPy's words where the function has PyTorch's, such as `axis` for `dim`, and `out=`.
    """
    words: frozenset[str] = frozenset()
    numpy_words: dict[str, str] | None = None
    star = ""

    @functools.wraps(function)
    def wrapper(*args: Any, **options: Any) -> Any:
        nonlocal words, numpy_words, star
        try:
            if not _MAY_HOLD.isdisjoint(map(type, (*args, *options.values()) if options else args)):
                args, options = _with_numbers(function, args, options)
            if not options:
                return function(*args)
            if numpy_words is None:
                words, numpy_words, star = _options(function)
            if words.issuperset(options):
                return function(*args, **options)
            options = {numpy_words.get(word, word): value for word, value in options.items()}
            if star in options:
                args = (*args, options.pop(star))
            if (out := options.pop("out", None)) is None:
                return function(*args, **options)
            return write_out(function(*args, **options), out)
        except WRONG as error:
            raise_named(error, wrapper.__name__, _operands(args, options), function)

    return wrapper


_NUMBERS = {dtype.type for dtype in HELD.values() if dtype.kind != "b"}
_CONTAINERS = {list, tuple}
_MAY_HOLD: set[type] = _NUMBERS | _CONTAINERS
PAIRS: set[type] = set()


def hold_pairs(kind: type) -> None:
    """Let values of this type stand for complex numbers, which few functions take."""
    PAIRS.add(kind)
    _MAY_HOLD.add(kind)


def _with_numbers(function: Function, args: Any, options: Any) -> Any:
    """The arguments of a call on tensors with NumPy scalars as Python numbers, as PyTorch takes them.

    Raises DTypeError for a kind of value that the function does not take.
    """
    values = (*args, *options.values())
    if not getattr(function, "takes_pairs", False) and any(map(_has_pairs, values)):
        raise DTypeError("takes no complex numbers; compute with .real and .imag")
    if not any(map(_has_numbers, values)) or not any(map(dispatch.interpreter_of, values)):
        return args, options
    return tuple(map(python_numbers, args)), {word: python_numbers(value) for word, value in options.items()}


def _has_pairs(value: Any) -> bool:
    kind = type(value)
    return kind in PAIRS or (kind in _CONTAINERS and not PAIRS.isdisjoint(map(type, value)))


def _has_numbers(value: Any) -> bool:
    kind = type(value)
    return kind in _NUMBERS or (kind in _CONTAINERS and not _NUMBERS.isdisjoint(map(type, value)))


def python_numbers(value: Any) -> Any:
    """A NumPy scalar as a Python number, also inside a list or a tuple."""
    if not _has_numbers(value):
        return value
    return value.item() if type(value) in _NUMBERS else type(value)(map(python_numbers, value))


def _options(function: Function) -> tuple[frozenset[str], dict[str, str], str]:
    """The parameter names of a function, NumPy's words for them, and the name of what may be given one by one.

    No words if it takes any keyword.
    """
    code = inspect.unwrap(function).__code__
    count = code.co_argcount + code.co_kwonlyargcount
    words = frozenset(code.co_varnames[:count])
    star = code.co_varnames[count] if code.co_flags & inspect.CO_VARARGS else ""
    takes_any = code.co_flags & inspect.CO_VARKEYWORDS
    pairs = () if takes_any else NUMPY_WORDS.items()
    return words, {theirs: ours for theirs, ours in pairs if ours in words and theirs not in words}, star


def write_out(result: Any, out: Any) -> Any:
    """Write a result into `out`, a tensor or one for each result, and return `out`.

    A tensor without elements takes the shape of the result. Raises OptionError for a gradient, which would be
    lost, and DTypeError for a dtype that does not hold the result.
    """
    if isinstance(result, tuple):
        if not isinstance(out, (tuple, list)) or len(out) != len(result):
            raise OptionError(f"out= takes {len(result)} tensors here, a tuple of them; give as many")
        return type(result)(*[write_out(r, o) for r, o in zip(result, out, strict=True)])
    if not hasattr(out, "copy_"):
        raise OptionError(f"out= takes a tensor, not {type(out).__name__}; assign the result to a name instead")
    if getattr(result, "requires_grad", False) or out.requires_grad:
        raise OptionError("out= keeps no history, and a gradient is required; leave out= out, or use no_grad()")
    if _KINDS.index(out.dtype.kind) < _KINDS.index(result.dtype.kind):
        raise DTypeError(f"out= of {out.dtype} does not hold a result of {result.dtype}; give one that does")
    if not out.numel() and result.numel():
        out.data = cast(result, out.dtype)
        return out
    if out.shape != result.shape:
        raise OptionError(f"out= has the shape {tuple(out.shape)} for a result of {tuple(result.shape)}; make it equal")
    return out.copy_(result)


_KINDS = "buif"  # of dtypes: each holds those before it


def guard(space: dict[str, Any], names: Iterable[str]) -> None:
    """Guard the functions of these names in a module's globals; ops raise such errors themselves."""
    for name in names:
        if inspect.isfunction(function := space[name]):
            space[name] = with_named_errors(function)
            space[name].__name__ = space[name].__qualname__ = name  # that of an alias too
            space[name].__module__ = space["__name__"]


def _operands(args: Sequence[Any], options: Mapping[str, Any]) -> str:
    return ", ".join(describe_operand(value) for value in (*args, *options.values()) if _holds_tensors(value))


def _holds_tensors(value: Any) -> bool:
    return hasattr(value, "dtype") or (isinstance(value, (list, tuple)) and any(map(_holds_tensors, value)))


def guard_construction(cls: type) -> None:
    """Let every error of `__init__` be a GraphError that names the class; a user's class is left alone."""
    init = vars(cls).get("__init__")
    if init is not None and is_ours(cls):

        @functools.wraps(init)
        def wrapper(self: Any, *args: Any, **options: Any) -> None:
            try:
                init(
                    self, *map(python_numbers, args), **{word: python_numbers(value) for word, value in options.items()}
                )
            except WRONG as error:
                raise_named(error, type(self).__name__, "", type(self))

        cls.__init__ = wrapper  # type: ignore[misc]


F = TypeVar("F", bound=Callable[..., Any])
InPlace = bool | str

functions: dict[str, Function] = {}
"""The functions of `torch`, by each of their names."""


class Methods:
    """The base of Tensor and Symbol whose methods are the functions of a tensor `input`, and their in-place forms."""

    __slots__ = ()


def name(*aliases: str, in_place: InPlace = False, pairs: bool = False) -> Callable[[F], F]:
    """Register the function below under its name and aliases; a first parameter `input` makes it a method as well.

    `pairs` says that it is the same of complex numbers; one written for real numbers may leave a conjugate out.

    Raises ValueError for a name that exists already.

    `in_place` makes the form `x.NAME_()`, which gives x the values and the history of the result; "shape" makes one
    that gives x the shape of the result, which looks at the same memory.
    """

    def enter(function: F) -> F:
        function.takes_pairs = pairs  # type: ignore[attr-defined]
        is_method = inspect.unwrap(function).__code__.co_varnames[:1] == ("input",)
        for called in (function.__name__, *aliases):
            _check_new(called, functions)
            functions[called] = public = _public(function, called, "graphs.frontends.torch.functions")
            if is_method:
                _add(called, public, in_place)
        return function

    return enter


def name_each(
    maker: Callable[[Any], Function], *, in_place: InPlace = False, pairs: bool = False, **sources: Function
) -> list[Function]:
    """Register what `maker` makes of each function, under the given name and with the function's text; return them."""
    made = []
    for called, source in sources.items():
        function = maker(source)
        function.__name__, function.__doc__ = called, source.__doc__
        made.append(name(in_place=in_place, pairs=pairs)(function))
    return made


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
