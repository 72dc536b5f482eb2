"""Names of `torch` that few programs use, and those that are not there, with what to use instead.

Switches of how PyTorch computes and orders of memory change nothing here: every op takes any order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dynamic.creation import leaf as made
from dynamic.tensor import Tensor
from graphs.errors import DTypeError
from graphs.frontends.torch.names import guard
from graphs.frontends.torch.words import as_dtype
from graphs.ops.shapes import as_count

__all__ = [
    "_assert", "bartlett_window", "blackman_window", "channels_last", "channels_last_3d", "contiguous_format",
    "get_float32_matmul_precision", "get_num_threads", "hamming_window", "hann_window", "kaiser_window",
    "memory_format", "preserve_format", "set_float32_matmul_precision", "set_num_threads",
    "use_deterministic_algorithms",
]  # fmt: skip


def _assert(condition: Any, message: str) -> None:
    """Raise AssertionError with the message unless the condition is true."""
    if not condition:
        raise AssertionError(message)


def set_num_threads(num: int) -> None:
    """Do nothing: ops run in this thread, and products in the threads of NumPy's BLAS."""


def get_num_threads() -> int:
    """1: ops run in this thread."""
    return 1


def set_float32_matmul_precision(precision: str) -> None:
    """Do nothing: products are in full precision."""


def get_float32_matmul_precision() -> str:
    """'highest': products are in full precision."""
    return "highest"


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Do nothing: all algorithms are deterministic."""


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


def _window(length: int, periodic: bool, options: dict[str, Any], weights: Callable[[Array], Array]) -> Tensor:
    """The weights at places from 0 to 1. Raises OptionError for a negative length, DTypeError for ints."""
    dtype = as_dtype(options.pop("dtype") or np.float32)
    if dtype.kind != "f":
        raise DTypeError(f"the weights are floats, not {dtype}; use float32")
    count = as_count(length, "the length of the window")
    last = count if periodic else count - 1
    values = np.ones(count) if count <= 1 else weights(np.arange(count) / last)
    return made(values.astype(dtype), dtype, **options)


def _cosines(places: Array, *shares: float) -> Array:
    return np.sum([share * np.cos(2 * np.pi * i * places) for i, share in enumerate(shares)], axis=0)


def hann_window(
    window_length: int, periodic: bool = True, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """One period of a cosine, from 0 up to 1 and back."""
    options = {"dtype": dtype, "device": device, "requires_grad": requires_grad}
    return _window(window_length, periodic, options, lambda places: _cosines(places, 0.5, -0.5))


def hamming_window(
    window_length: int,
    periodic: bool = True,
    alpha: float = 0.54,
    beta: float = 0.46,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """`alpha - beta * cos`, which does not fall to 0."""
    options = {"dtype": dtype, "device": device, "requires_grad": requires_grad}
    return _window(window_length, periodic, options, lambda places: _cosines(places, alpha, -beta))


def blackman_window(
    window_length: int, periodic: bool = True, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """A sum of two cosines, which falls off faster."""
    options = {"dtype": dtype, "device": device, "requires_grad": requires_grad}
    return _window(window_length, periodic, options, lambda places: _cosines(places, 0.42, -0.5, 0.08))


def bartlett_window(
    window_length: int, periodic: bool = True, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """A triangle, from 0 up to 1 and back."""
    options = {"dtype": dtype, "device": device, "requires_grad": requires_grad}
    return _window(window_length, periodic, options, lambda places: 1 - np.abs(2 * places - 1))


def kaiser_window(
    window_length: int,
    periodic: bool = True,
    beta: float = 12.0,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Kaiser's: `beta` trades the width of the main lobe for the height of the others."""
    options = {"dtype": dtype, "device": device, "requires_grad": requires_grad}

    def weights(places: Array) -> Array:
        return np.i0(beta * np.sqrt(np.maximum(1 - (2 * places - 1) ** 2, 0))) / np.i0(beta)

    return _window(window_length, periodic, options, weights)


guard(globals(), __all__)


# Names that are not there ---------------------------------------------------------------------------------------------


REMEDIES = {
    "bfloat16": "NumPy has no such dtype; use float16 or float32",
    "compile": "the dynamic engine runs op by op; compile the function with static.jit",
    **dict.fromkeys(
        (
            "complex",
            "complex32",
            "complex64",
            "complex128",
            "cfloat",
            "cdouble",
            "imag",
            "polar",
            "view_as_complex",
            "view_as_real",
        ),
        "tensors hold no complex numbers; keep two tensors, of real and imaginary parts",
    ),
    **dict.fromkeys(
        ("stft", "istft"), "there is no Fourier transform; use numpy.fft on x.detach().numpy(), without a gradient"
    ),
    "fft": "there is no Fourier transform; use numpy.fft on x.detach().numpy(), without a gradient",
    "sparse": "tensors are dense; use scatter_add, index_add or gather",
    "multiprocessing": "there is one process; use Python's multiprocessing with arrays",
    "distributed": "there is one process; use Python's multiprocessing with arrays",
    "onnx": "there is no export; save the graph of static.compile",
    "quantization": "there are no quantised tensors; use float16",
    "hub": "nothing is downloaded; define the model, and load its weights with load",
    "kl_div": "use nn.functional.kl_div, whose reduction has a name",
    "binary_cross_entropy_with_logits": "use nn.functional's, whose reduction has a name",
    "resize": "a tensor does not change its size; use reshape, or torch.empty",
}


def explain_absence(name: str) -> str:
    """Why a name is not there, and what to use instead."""
    remedy = REMEDIES.get(name, "docs/torch-names.md lists what is there")
    return f"dynamic has no {name!r}: {remedy}"
