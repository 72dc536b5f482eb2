"""Normalisation layers, and PReLU, whose slope is learned."""

from __future__ import annotations

from typing import Any

import numpy as np

from dynamic.nn import functional as F
from dynamic.nn import init
from dynamic.nn.module import Module
from dynamic.nn.parameter import full
from dynamic.tensor import Tensor, wrap
from graphs.errors import ShapeError, locate
from graphs.frontends.torch.words import as_dtype
from graphs.ops.shapes import check_groups, shape_of

__all__ = [
    "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "GroupNorm", "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d",
    "LayerNorm", "PReLU", "RMSNorm", "SyncBatchNorm",
]  # fmt: skip


class _Affine(Module):
    """Base of layers with a scale and a shift, each of which may be missing."""

    def _make_affine(self, shape: tuple[int, ...], affine: bool, bias: bool, device: Any, dtype: Any) -> None:
        self.register_parameter("weight", full(shape, 1.0, device, dtype) if affine else None)
        self.register_parameter("bias", full(shape, 0.0, device, dtype) if affine and bias else None)

    def reset_parameters(self) -> None:
        """Reset the scale to 1 and the shift to 0."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)


class _Tracking(_Affine):
    """Base of norms of each channel that may keep running statistics."""

    _version = 2  # which counts batches

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        self._make_affine((num_features,), affine, bias, device, dtype)
        made: dict[str, Any] = dict.fromkeys(("running_mean", "running_var", "num_batches_tracked"))
        if track_running_stats:
            kind = as_dtype(dtype)
            made["running_mean"] = wrap(np.zeros(num_features, kind))
            made["running_var"] = wrap(np.ones(num_features, kind))
            made["num_batches_tracked"] = wrap(np.zeros((), np.int64))
        for name, buffer in made.items():
            self.register_buffer(name, buffer)

    def reset_running_stats(self) -> None:
        """Reset the running mean to 0 and the running variance to 1."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def _load_from_state_dict(self, state_dict: Any, prefix: str, local_metadata: dict[str, Any], *rest: Any) -> None:
        """Load the values; a state dict without a version that counts batches may lack the count, which then stays."""
        if (local_metadata.get("version") or 1) < 2 and self.num_batches_tracked is not None:
            state_dict.setdefault(f"{prefix}num_batches_tracked", self.num_batches_tracked)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)

    def extra_repr(self) -> str:
        """The options."""
        sizes = f"{self.num_features}, eps={self.eps}, momentum={self.momentum}"
        shift = self.bias is not None
        return f"{sizes}, affine={self.affine}, bias={shift}, track_running_stats={self.track_running_stats}"


class _BatchNorm(_Tracking):
    axes: tuple[int, ...] = ()

    def forward(self, input: Any) -> Any:
        """Normalise by the statistics of the batch in training or without running ones, else by the running ones."""
        if len(shape_of(input)) not in self.axes:
            raise ShapeError(
                locate(f"{type(self).__name__}: an input of {self.axes} axes, not of shape {shape_of(input)}")
            )
        training = self.training
        means, variances = self.running_mean, self.running_var
        if training and not self.track_running_stats:
            means = variances = None
        share = self._momentum_share(input) if training and means is not None else 0.0
        by_batch = training or means is None
        return F.batch_norm(input, means, variances, self.weight, self.bias, by_batch, share, self.eps)

    def _momentum_share(self, input: Any) -> Any:
        """Count this batch, and return its share in the running statistics; in a graph a symbol counts."""
        count = self.num_batches_tracked
        if not issubclass(type(count), Tensor):
            count.add_(1)
            return 1 / count.to(np.float32) if self.momentum is None else self.momentum
        if not issubclass(type(input), (Tensor, np.ndarray)):
            return self.momentum or 0.0
        count._data[...] += 1
        return 1 / float(count) if self.momentum is None else self.momentum


class BatchNorm1d(_BatchNorm):
    """Batch norm of f[N, C] or f[N, C, L]."""

    axes = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Batch norm of f[N, C, H, W]."""

    axes = (4,)


class BatchNorm3d(_BatchNorm):
    """Batch norm of f[N, C, D, H, W]."""

    axes = (5,)


class SyncBatchNorm(_BatchNorm):
    """Batch norm of f[N, C, ...] over all processes. There is one process, so it equals the layer that it replaces."""

    axes = (2, 3, 4, 5)

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = process_group

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """Replace every batch norm in a module by one of this class with the same parameters and buffers."""
        replaced = module
        if isinstance(module, _BatchNorm):
            options = (module.num_features, module.eps, module.momentum, module.affine, module.track_running_stats)
            replaced = cls(*options, process_group)
            for name, tensor in (*module.named_parameters(), *module.named_buffers()):
                setattr(replaced, name, tensor)
            replaced.train(module.training)
        for name, child in module.named_children():
            setattr(replaced, name, cls.convert_sync_batchnorm(child, process_group))
        return replaced


class _LastAxesNorm(_Affine):
    """Base of norms over the last axes together."""

    def _set_axes(self, normalized_shape: Any, eps: Any, affine: bool, bias: bool, made: tuple[Any, Any]) -> None:
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps, self.elementwise_affine = eps, affine
        self._make_affine(self.normalized_shape, affine, bias, *made)

    def extra_repr(self) -> str:
        """The options."""
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class LayerNorm(_LastAxesNorm):
    """Normalises the last axes together to mean 0 and variance 1, then scales and shifts them."""

    def __init__(
        self,
        normalized_shape: Any,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self._set_axes(normalized_shape, eps, elementwise_affine, bias, (device, dtype))

    def forward(self, input: Any) -> Any:
        """Normalise f[..., *normalized_shape]; the shape stays the same."""
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """The options."""
        return f"{super().extra_repr()}, bias={self.bias is not None}"


class RMSNorm(_LastAxesNorm):
    """Divides the last axes by their root mean square, then scales them."""

    def __init__(
        self,
        normalized_shape: Any,
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self._set_axes(normalized_shape, eps, elementwise_affine, False, (device, dtype))

    def forward(self, input: Any) -> Any:
        """Normalise f[..., *normalized_shape]; the shape stays the same."""
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)


class GroupNorm(_Affine):
    """Normalises each group of channels of each example to mean 0 and variance 1."""

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        check_groups(num_channels, num_groups)
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        self._make_affine((num_channels,), affine, bias, device, dtype)

    def forward(self, input: Any) -> Any:
        """Normalise f[N, C, ...]; the shape stays the same."""
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """The options."""
        sizes = f"{self.num_groups}, {self.num_channels}, eps={self.eps}"
        return f"{sizes}, affine={self.affine}, bias={self.bias is not None}"


class _InstanceNorm(_Tracking):
    axes = 1

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def forward(self, input: Any) -> Any:
        """Normalise f[N, C, ...]; the shape stays the same, and N may be missing."""
        if len(shape_of(input)) not in (self.axes + 1, self.axes + 2):
            raise ShapeError(
                locate(
                    f"{type(self).__name__}: an input of {self.axes + 2} axes, or {self.axes + 1} without the batch, "
                    f"not of shape {shape_of(input)}"
                )
            )
        if len(shape_of(input)) == self.axes + 1:
            return self._normalise(input[None])[0]
        return self._normalise(input)

    def _normalise(self, input: Any) -> Any:
        by_instance = self.training or not self.track_running_stats
        return F.instance_norm(
            input, self.running_mean, self.running_var, self.weight, self.bias, by_instance, self.momentum or 0.0,
            self.eps,
        )  # fmt: skip


class InstanceNorm1d(_InstanceNorm):
    """Instance norm of f[N, C, L] or f[C, L]."""


class InstanceNorm2d(_InstanceNorm):
    """Instance norm of f[N, C, H, W] or f[C, H, W]."""

    axes = 2


class InstanceNorm3d(_InstanceNorm):
    """Instance norm of f[N, C, D, H, W] or f[C, D, H, W]."""

    axes = 3


class PReLU(Module):
    """leaky_relu with a learned slope, one for all or one for each channel."""

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.num_parameters, self.init = num_parameters, init
        self.weight = full((num_parameters,), init, device, dtype)

    def forward(self, input: Any) -> Any:
        """Apply prelu; the shape stays the same."""
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        """The number of slopes."""
        return f"num_parameters={self.num_parameters}"
