"""Names of `torch` that few programs use, and those that are not there, with what to use instead.

Switches of how PyTorch computes change nothing here. Orders of memory are PyTorch's, and every op takes any of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from dynamic.checkpoint import checkpoint as _checkpoint
from dynamic.creation import leaf as made
from dynamic.tensor import Tensor
from graphs.errors import DTypeError, OptionError, locate
from graphs.frontends.torch import functions
from graphs.frontends.torch.methods import ABSENT
from graphs.frontends.torch.names import guard
from graphs.frontends.torch.words import as_dtype
from graphs.ops.shapes import as_count

__all__ = [
    "_assert", "bartlett_window", "blackman_window", "channels_last", "channels_last_3d", "contiguous_format",
    "hamming_window", "hann_window", "kaiser_window", "memory_format", "preserve_format",
]  # fmt: skip


def _assert(condition: Any, message: str) -> None:
    """Raise AssertionError with the message unless the condition is true."""
    if not condition:
        raise AssertionError(message)


_TOLERANCES = {2: (1e-3, 1e-5), 4: (1.3e-6, 1e-5), 8: (1e-7, 1e-7)}  # relative and absolute, by the bytes of a float


def assert_close(
    actual: Any, expected: Any, *, rtol: float | None = None, atol: float | None = None, equal_nan: bool = False,
    check_dtype: bool = True, msg: Any = None, **_: Any,
) -> None:  # fmt: skip
    """Raise AssertionError where tensors, numbers, or those in containers are not close, by PyTorch's tolerances."""
    if (rtol is None) is not (atol is None):
        raise OptionError(locate("assert_close: rtol and atol are given both, or neither"))
    options = {"rtol": rtol, "atol": atol, "equal_nan": equal_nan, "check_dtype": check_dtype, "msg": msg}
    if isinstance(expected, (Mapping, list, tuple)):
        keys = list(expected) if isinstance(expected, Mapping) else list(range(len(expected)))
        if len(actual) != len(expected) or (isinstance(expected, Mapping) and set(actual) != set(expected)):
            raise AssertionError(f"containers of {len(actual)} and {len(expected)} values differ in length or keys")
        for key in keys:
            assert_close(actual[key], expected[key], **options)
        return
    a, b = (np.asarray(x.detach() if isinstance(x, Tensor) else x) for x in (actual, expected))
    widest = np.result_type(a, b)
    usual = _TOLERANCES[widest.itemsize] if widest.kind == "f" else (0, 0)
    relative, absolute = usual if rtol is None or atol is None else (rtol, atol)
    if a.shape != b.shape:
        said = f"The shapes are not equal: {a.shape} and {b.shape}"
    elif check_dtype and isinstance(expected, Tensor) and a.dtype != b.dtype:
        said = f"The dtypes are not equal: {a.dtype} and {b.dtype}"
    elif (close := np.isclose(a, b, relative, absolute, equal_nan)).all():
        return
    else:
        with np.errstate(invalid="ignore"):
            most = np.abs(np.subtract(a, b, dtype=np.float64)).max()
        said = f"Tensor-likes are not close: {np.sum(~close)} of {close.size} differ, by {most:g} at most"
    raise AssertionError(msg(said) if callable(msg) else msg or said)


def foreach(name: str) -> Callable[..., Any]:
    """`torch._foreach_NAME`: the method of each tensor of a list; lists among the arguments go along with it."""
    method = getattr(functions, name) if name == "norm" else getattr(Tensor, name)

    def each(self: Any, *args: Any, **options: Any) -> Any:
        columns = [arg if isinstance(arg, (list, tuple)) else [arg] * len(self) for arg in args]
        addc = name.startswith("addc") and len(args) == 3  # the scalars, which a method takes by a word
        rows = zip(self, *columns, strict=True)
        results = [method(*row[:3], value=row[3]) if addc else method(*row, **options) for row in rows]
        return tuple(results)

    return each


# Checkpoints under PyTorch's path, `torch.utils.checkpoint` -----------------------------------------------------------


def checkpoint(
    function: Callable[..., Any], *args: Any, use_reentrant: Any = None, preserve_rng_state: Any = True, **kwargs: Any
) -> Any:
    """`function(*args, **kwargs)`, whose saved values are computed again in backward: see `dynamic.checkpoint`.

    PyTorch's two modes are one here, and what is drawn is always drawn again.
    """
    del use_reentrant, preserve_rng_state
    return _checkpoint(function, *args, **kwargs)


def checkpoint_sequential(functions: Any, segments: int, input: Any, **options: Any) -> Any:
    """The functions one after another, in so many segments, all but the last of which are checkpoints."""
    listed = list(functions)
    size = len(listed) // segments

    def run(part: list[Any]) -> Callable[[Any], Any]:
        def call_part(x: Any) -> Any:
            for function in part:
                x = function(x)
            return x

        return call_part

    for start in range(0, size * (segments - 1), size):
        input = checkpoint(run(listed[start : start + size]), input, **options)
    return run(listed[size * (segments - 1) :])(input)


# Orders of memory -----------------------------------------------------------------------------------------------------


class memory_format(str):  # noqa: N801  (PyTorch's name)
    """The name of an order of memory."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"torch.{str.__str__(self)}"

    __str__ = __repr__


channels_last, channels_last_3d = memory_format("channels_last"), memory_format("channels_last_3d")
contiguous_format, preserve_format = memory_format("contiguous_format"), memory_format("preserve_format")


# Windows --------------------------------------------------------------------------------------------------------------


Array = np.ndarray[Any, Any]


def _window(name: str, says: str, weights: Callable[..., Array], **shape: float) -> Callable[..., Tensor]:
    """The function of a window, whose weights are those at places from 0 to 1, and take the numbers of its shape."""

    def window(
        window_length: int, periodic: bool = True, *args: float, dtype: Any = None, device: Any = None,
        requires_grad: bool = False, **options: float,
    ) -> Tensor:  # fmt: skip
        held = as_dtype(dtype)
        if held.kind != "f":
            raise DTypeError(f"the weights are floats, not {held}; use float32")
        count = as_count(window_length, "the length of the window")
        places = np.arange(count) / (count if periodic else max(count - 1, 1))
        numbers = shape | dict(zip(shape, args, strict=False)) | options
        values = np.ones(count) if count <= 1 else weights(places, **numbers)
        return made(values.astype(held), held, device=device, requires_grad=requires_grad)

    window.__name__, window.__doc__ = name, says
    return window


def _cosines(places: Array, *shares: float) -> Array:
    return np.sum([share * np.cos(2 * np.pi * i * places) for i, share in enumerate(shares)], axis=0)


def _kaiser(places: Array, beta: float) -> Array:
    return np.i0(beta * np.sqrt(np.maximum(1 - (2 * places - 1) ** 2, 0))) / np.i0(beta)


hann_window = _window("hann_window", "One period of a cosine, from 0 to 1 and back.", lambda x: _cosines(x, 0.5, -0.5))
hamming_window = _window(
    "hamming_window", "`alpha - beta * cos`, which does not fall to 0.",
    lambda x, alpha, beta: _cosines(x, alpha, -beta), alpha=0.54, beta=0.46,
)  # fmt: skip
blackman_window = _window(
    "blackman_window", "A sum of two cosines, which falls off faster.", lambda x: _cosines(x, 0.42, -0.5, 0.08)
)
bartlett_window = _window("bartlett_window", "A triangle, from 0 to 1 and back.", lambda x: 1 - np.abs(2 * x - 1))
kaiser_window = _window(
    "kaiser_window", "Kaiser's: `beta` trades the width of its lobe for the height of others.", _kaiser, beta=12.0
)


guard(globals(), __all__)


# Names that are not there ---------------------------------------------------------------------------------------------


REMEDIES = {
    **ABSENT,
    "kl_div": "use nn.functional.kl_div, whose reduction has a name",
    "binary_cross_entropy_with_logits": "use nn.functional's, whose reduction has a name",
}


def explain_absence(name: str) -> str:
    """Why a name is not there, and what to use instead."""
    remedy = REMEDIES.get(name, "docs/torch-names.md lists what is there")
    return f"dynamic has no {name!r}: {remedy}"
