"""Convolutions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from dynamic.nn import functional as F
from dynamic.nn import init
from dynamic.nn.module import Module
from dynamic.nn.parameter import empty, uniform_bound
from graphs.errors import GraphError, locate
from graphs.ops.shapes import check_groups

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]

_MODES = {"zeros": "constant", "reflect": "reflect", "replicate": "replicate", "circular": "circular"}


def per_axis(value: Any, axes: int) -> tuple[int, ...]:
    """One number for each axis."""
    return tuple(value) if isinstance(value, (tuple, list)) else (value,) * axes


class _Convolution(Module):
    """Base of all convolutions; `axes` is the number of axes that the window slides along."""

    axes = 1
    modes: tuple[str, ...] = tuple(_MODES)
    transposed = False
    convolve: Callable[..., Any]

    def _make(
        self,
        channels: tuple[int, int],
        sizes: tuple[Any, ...],
        padding: Any,
        padding_mode: str,
        groups: int,
        bias: bool,
        made: tuple[Any, Any],
    ) -> None:
        """Store the options and make the parameters; `sizes` are of kernel, stride and dilation, `made` device, dtype.

        Raises ValueError for a padding mode or groups that this module does not have.
        """
        if padding_mode not in self.modes:
            raise ValueError(f"padding_mode is one of {', '.join(self.modes)}, not {padding_mode!r}")
        for count in channels:
            check_groups(count, groups)
        self.in_channels, self.out_channels = channels
        self.kernel_size, self.stride, self.dilation = (per_axis(size, self.axes) for size in sizes)
        self.padding = padding if isinstance(padding, str) else per_axis(padding, self.axes)
        self.padding_mode, self.groups, self.output_padding = padding_mode, groups, (0,) * self.axes
        first, second = channels if self.transposed else channels[::-1]
        self.weight = empty((first, second // groups, *self.kernel_size), *made)
        self.register_parameter("bias", empty((self.out_channels,), *made) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new initial values: uniform within 1 / sqrt(inputs of an output)."""
        bound = uniform_bound(init.fans(self.weight)[0])
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def extra_repr(self) -> str:
        """The sizes, and options that differ from their defaults."""
        extra = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        for name, usual in (("padding", 0), ("dilation", 1), ("output_padding", 0)):
            value = getattr(self, name, None)
            if value is not None and value != (usual,) * len(value):
                extra += f", {name}={value}"
        extra += f", groups={self.groups}" if self.groups != 1 else ""
        extra += ", bias=False" if self.bias is None else ""
        return extra + ("" if self.padding_mode == "zeros" else f", padding_mode={self.padding_mode}")


class _Forward(_Convolution):
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        sizes = (kernel_size, stride, dilation)
        self._make((in_channels, out_channels), sizes, padding, padding_mode, groups, bias, (device, dtype))

    def _border(self) -> list[int]:
        """The padding as `functional.pad` takes it, the last axis first."""
        border: list[int] = []
        for i in reversed(range(self.axes)):
            total = self.dilation[i] * (self.kernel_size[i] - 1) if self.padding == "same" else 0
            width = 0 if isinstance(self.padding, str) else self.padding[i]
            border += [total // 2, total - total // 2] if total else [width, width]
        return border

    def forward(self, input: Any) -> Any:
        """Convolve f[N, C, ...] -> f[N, F, ...]."""
        padding: Any = self.padding
        if self.padding_mode != "zeros":
            input, padding = F.pad(input, self._border(), _MODES[self.padding_mode]), 0
        convolve = type(self).convolve
        return convolve(input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)


class Conv1d(_Forward):
    """A convolution of f[N, C, L]."""

    convolve = staticmethod(F.conv1d)


class Conv2d(_Forward):
    """A convolution of f[N, C, H, W]."""

    axes = 2
    convolve = staticmethod(F.conv2d)


class Conv3d(_Forward):
    """A convolution of f[N, C, D, H, W]."""

    axes = 3
    convolve = staticmethod(F.conv3d)


class _TransposedConvolution(_Convolution):
    modes = ("zeros",)
    transposed = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        sizes = (kernel_size, stride, dilation)
        self._make((in_channels, out_channels), sizes, padding, padding_mode, groups, bias, (device, dtype))
        self.output_padding = per_axis(output_padding, self.axes)

    def forward(self, input: Any, output_size: Any = None) -> Any:
        """Apply the adjoint of a convolution, f[N, C, ...] -> f[N, F, ...]. Raises GraphError for an output_size."""
        if output_size is not None:
            raise GraphError(locate("output_size is not supported; give output_padding when the module is made"))
        sizes = (self.stride, self.padding, self.output_padding)
        return type(self).convolve(input, self.weight, self.bias, *sizes, self.groups, self.dilation)


class ConvTranspose1d(_TransposedConvolution):
    """The adjoint of a convolution, on f[N, C, L]."""

    convolve = staticmethod(F.conv_transpose1d)


class ConvTranspose2d(_TransposedConvolution):
    """The adjoint of a convolution, on f[N, C, H, W]."""

    axes = 2
    convolve = staticmethod(F.conv_transpose2d)


class ConvTranspose3d(_TransposedConvolution):
    """The adjoint of a convolution, on f[N, C, D, H, W]."""

    axes = 3
    convolve = staticmethod(F.conv_transpose3d)
