"""The calls that PyTorch's op database makes: every sample of an op, in every way that PyTorch lets it be called."""

from __future__ import annotations

import functools
import warnings
import zlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch.testing._internal.common_methods_invocations import op_db

DTYPES = (torch.float64, torch.float32, torch.int64, torch.int32, torch.bool)
OTHER_DTYPES = (torch.float16, torch.int16, torch.int8, torch.uint8)


LAYOUTS = ("in a row", "apart", "turned", "shared")
"""How tensors lie in memory: every second element of a buffer, columns first, or those that are alike as one tensor."""


def _itself(result: Any) -> Any:
    return result


class Way(NamedTuple):
    """A way to call an op: as a function, a method, in place, by an operator, or under another name.

    `find` looks it up in a framework and raises AttributeError where it is not there.
    """

    name: str
    find: Callable[[Any], Callable[..., Any]]
    changes_input: bool = False
    is_operator: bool = False  # which takes operands alone


class Call(NamedTuple):
    """A call of an op: one way, one sample of its arguments, whose tensors have one dtype."""

    op: str
    way: Way
    dtype: str
    number: int
    args: tuple[Any, ...]
    words: dict[str, Any]
    with_gradient: bool
    process: Callable[[Any], Any] = _itself
    layout: str = "in a row"

    def __str__(self) -> str:
        words = [f"{word}={_short(value)}" for word, value in self.words.items()]
        layout = "" if self.layout == LAYOUTS[0] else f", {self.layout}"
        return f"{self.op} ({self.way.name}, {self.dtype}, {self.number}{layout}): " + ", ".join(
            [*map(_short, self.args), *words]
        )


def infos(names: list[str] | None = None) -> list[Any]:
    """The entries of the database, in its order; those of some names, other names of an op among them."""
    if not names:
        return list(op_db)
    return [op for op in op_db if {op.name, *(alias.name for alias in op.aliases)} & set(names)]


def ways(op: Any) -> list[Way]:
    """Every way in which PyTorch lets an op be called."""
    listed = [Way("function", _function(op.op, op.name))]
    for prefix, owner in [("", op), *((f"{alias.name}, ", alias) for alias in op.aliases)]:
        if prefix:
            listed.append(Way(f"{prefix}function", _by_path(owner.name)))
        for kind, variant in (("method", owner.method_variant), ("in place", owner.inplace_variant)):
            if variant is not None:
                listed.append(Way(prefix + kind, _function(variant, ""), kind == "in place"))
    if op.operator_variant is not None:
        listed.append(Way("operator", _operator(op.operator_variant), is_operator=True))
    if op.inplace_operator_variant is not None:
        listed.append(Way("in-place operator", _operator(op.inplace_operator_variant), True, True))
    return listed


def calls(
    op: Any, dtypes: tuple[Any, ...] = DTYPES, reference: bool = False, every: int = 1, shift: int = 0
) -> Iterator[Call]:
    """Every sample of an op, in every way, laid out in turn as `LAYOUTS` says, from the one at `shift`.

    `reference` takes the many more inputs that PyTorch has for numeric ops, of which one in `every` is tried.
    """
    for dtype in dtypes:
        if dtype not in op.supported_dtypes("cpu"):
            continue
        differentiated = dtype == torch.float64
        for number, sample in list(enumerate(_samples(op, dtype, reference, differentiated)))[::every]:
            args = (sample.input, *sample.args)
            for way in ways(op):
                if way.is_operator and (sample.kwargs or len(args) > 2):
                    continue
                yield Call(
                    op.name,
                    way,
                    _name(dtype),
                    number,
                    args,
                    sample.kwargs,
                    differentiated,
                    sample.output_process_fn_grad,
                    LAYOUTS[(number + shift) % len(LAYOUTS)],
                )


def _samples(op: Any, dtype: Any, reference: bool, differentiated: bool) -> list[Any]:
    source = op.reference_inputs if reference else op.sample_inputs
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _seed(op.name)
        try:
            return list(source("cpu", dtype, requires_grad=differentiated))
        except (RuntimeError, ValueError):  # samples of some ops that have no gradient are computed by them
            _seed(op.name)
            return list(source("cpu", dtype, requires_grad=False))


def mistakes(op: Any) -> Iterator[Call]:
    """The calls of an op that PyTorch's database says are refused, as functions and as methods."""
    if op.error_inputs_func is None:
        return
    _seed(op.name)
    for number, mistake in enumerate(op.error_inputs("cpu")):
        sample = mistake.sample_input
        for way in ways(op):
            if way.name == "function" or (way.name == "method" and isinstance(sample.input, torch.Tensor)):
                yield Call(op.name, way, "error", number, (sample.input, *sample.args), sample.kwargs, False)


# ---- how an op is found in a framework ----------------------------------------------------------------------------


def attribute(space: Any, path: str) -> Any:
    """`nn.functional.relu` of a framework. Raises AttributeError."""
    for part in path.split("."):
        space = getattr(space, part)
    return space


def _function(function: Any, name: str) -> Callable[[Any], Callable[..., Any]]:
    """What stands for a function of an entry: a name, a method, or one of the database told of the framework."""
    module = getattr(function, "__module__", None) or ""
    if isinstance(function, functools.partial):  # of a function of torch.nn.functional
        plain = _function(function.func, f"nn.functional.{function.func.__name__}")
        return lambda space: functools.partial(plain(space), **function.keywords)
    if module.startswith("torch.testing"):
        return retold(function)
    is_method = hasattr(function, "__objclass__") or getattr(function, "__qualname__", "").startswith("Tensor.")
    return _method(function.__name__) if is_method or not name else _by_path(name)


def retold(function: Any) -> Callable[[Any], Callable[..., Any]]:
    """A function of the database whose `torch` is the framework; any other as it is."""
    if not getattr(function, "__module__", "").startswith("torch.testing"):
        return lambda space: function

    def find(space: Any) -> Callable[..., Any]:
        told = {**function.__globals__, "torch": space, "F": space.nn.functional}
        made = type(function)(function.__code__, told, function.__name__, function.__defaults__, function.__closure__)
        made.__kwdefaults__ = function.__kwdefaults__
        return made  # type: ignore[no-any-return]

    return find


def _by_path(path: str) -> Callable[[Any], Callable[..., Any]]:
    return lambda space: attribute(space, path)  # type: ignore[no-any-return]


def _method(name: str) -> Callable[[Any], Callable[..., Any]]:
    return lambda space: getattr(space.Tensor, name)  # type: ignore[no-any-return]


def _operator(function: Callable[..., Any]) -> Callable[[Any], Callable[..., Any]]:
    return lambda space: function


# ---- small things -------------------------------------------------------------------------------------------------


def _seed(name: str) -> None:
    """Samples are drawn; the same ones in every run and process."""
    import random

    import numpy as np

    seed = zlib.crc32(name.encode())
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002  (what the database draws from)
    torch.manual_seed(seed)


def _name(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")


def _short(value: Any) -> str:
    """A value in a line: a tensor by dtype and shape, and by values where these are few."""
    if isinstance(value, torch.Tensor):
        head = f"{_name(value.dtype)}{list(value.shape)}"
        is_small = value.layout == torch.strided and value.device.type == "cpu" and value.numel() <= 6
        return head + (f"={value.tolist()}" if is_small else "")
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_short, value))}]"
    return repr(value)
