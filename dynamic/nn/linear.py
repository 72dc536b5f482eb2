"""Layers of products, table look-ups and reshaping."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from dynamic.nn import functional as F
from dynamic.nn import init
from dynamic.nn.module import Module
from dynamic.nn.parameter import Parameter, empty, uniform_bound
from graphs.frontends.torch import functions

__all__ = [
    "Bilinear", "Embedding", "EmbeddingBag", "Flatten", "Identity", "Linear", "Unflatten", "Upsample",
    "UpsamplingBilinear2d", "UpsamplingNearest2d",
]  # fmt: skip


class Identity(Module):
    """Returns its input; all arguments of the constructor are ignored."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__()

    def forward(self, input: Any) -> Any:
        """Return the input."""
        return input


class Linear(Module):
    """x @ weight.T + bias: f[..., in] -> f[..., out]."""

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = empty((out_features, in_features), device, dtype)
        self.register_parameter("bias", empty((out_features,), device, dtype) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new initial values: uniform within 1 / sqrt(in)."""
        bound = uniform_bound(self.in_features)
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Any) -> Any:
        """f[..., in] -> f[..., out]."""
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        """The sizes, and whether there is a bias."""
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class NonDynamicallyQuantizableLinear(Linear):
    """The linear layer behind attention, by PyTorch's name for it."""


class Bilinear(Module):
    """x1 @ weight @ x2 + bias: f[..., m], f[..., n] -> f[..., out]."""

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.in1_features, self.in2_features, self.out_features = in1_features, in2_features, out_features
        self.weight = empty((out_features, in1_features, in2_features), device, dtype)
        self.register_parameter("bias", empty((out_features,), device, dtype) if bias else None)
        bound = uniform_bound(in1_features)
        for param in self.parameters():
            init.uniform_(param, -bound, bound)

    def forward(self, input1: Any, input2: Any) -> Any:
        """f[..., m], f[..., n] -> f[..., out]."""
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        """The sizes, and whether there is a bias."""
        sizes = f"in1_features={self.in1_features}, in2_features={self.in2_features}"
        return f"{sizes}, out_features={self.out_features}, bias={self.bias is not None}"


class _Table(Module):
    """Base of embeddings: a table whose rows are looked up."""

    weight: Any
    max_norm: float | None
    norm_type: float
    scale_grad_by_freq: bool
    sparse: bool
    shown: Mapping[str, Any] = {"padding_idx": None, "max_norm": None, "norm_type": 2, "scale_grad_by_freq": False}

    def _make(
        self,
        sizes: tuple[int, int],
        padding_idx: int | None,
        weight: Any,
        options: dict[str, Any],
        made: tuple[Any, Any],
    ) -> None:
        """Store sizes and padding, and make the rows; `made` are device and dtype. Raises ValueError."""
        vars(self).update(options)
        self.num_embeddings, self.embedding_dim = sizes
        if padding_idx is not None and not -sizes[0] <= padding_idx < sizes[0]:
            raise ValueError(f"padding_idx is one of {sizes[0]} rows, not {padding_idx}")
        self.padding_idx = None if padding_idx is None else padding_idx % sizes[0]
        if weight is None:
            self.weight = empty(sizes, *made)
            self.reset_parameters()
        else:
            self.weight = Parameter(weight)

    def reset_parameters(self) -> None:
        """Draw new initial values: normal, and 0 for the row of padding_idx."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            self.weight._data[self.padding_idx] = 0

    def extra_repr(self) -> str:
        """The sizes, and the options that differ from their defaults."""
        extra = [f"{self.num_embeddings}, {self.embedding_dim}"]
        for name, usual in self.shown.items():
            value = getattr(self, name)
            extra += [] if value == usual else [f"{name}={value!r}"]
        return ", ".join(extra)


class Embedding(_Table):
    """Rows of a table: i[...] -> f[..., width]."""

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Any = None,
        _freeze: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        options = {
            "max_norm": max_norm,
            "norm_type": norm_type,
            "scale_grad_by_freq": scale_grad_by_freq,
            "sparse": sparse,
        }
        self._make((num_embeddings, embedding_dim), padding_idx, _weight, options, (device, dtype))
        self.weight.requires_grad_(not _freeze)

    @classmethod
    def from_pretrained(
        cls, embeddings: Any, freeze: bool = True, padding_idx: int | None = None, **options: Any
    ) -> Self:
        """An embedding with these rows, trained only if `freeze` is False."""
        rows, width = embeddings.shape
        return cls(rows, width, padding_idx, _weight=embeddings, _freeze=freeze, **options)

    def forward(self, input: Any) -> Any:
        """i[...] -> f[..., width]."""
        options = (self.max_norm, self.norm_type, self.scale_grad_by_freq)
        return F.embedding(input, self.weight, self.padding_idx, *options)


class EmbeddingBag(_Table):
    """The sum, mean or max of rows of a table: i[B, L], or i[n] and the start of each bag -> f[B, width]."""

    shown = {"max_norm": None, "norm_type": 2, "mode": None, "padding_idx": None}  # noqa: RUF012  (read alone)

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Any = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        F.common.refuse("EmbeddingBag", "leave it out", scale_grad_by_freq=(scale_grad_by_freq, False))
        options = {
            "max_norm": max_norm,
            "norm_type": norm_type,
            "scale_grad_by_freq": scale_grad_by_freq,
            "sparse": sparse,
        }
        self.mode, self.include_last_offset = mode, include_last_offset
        self._make((num_embeddings, embedding_dim), padding_idx, _weight, options, (device, dtype))

    @classmethod
    def from_pretrained(cls, embeddings: Any, freeze: bool = True, **options: Any) -> Self:
        """Embedding bags with these rows, trained only if `freeze` is False."""
        rows, width = embeddings.shape
        made = cls(rows, width, _weight=embeddings, **options)
        made.weight.requires_grad_(not freeze)
        return made

    def forward(self, input: Any, offsets: Any = None, per_sample_weights: Any = None) -> Any:
        """The reduced rows of each bag: f[B, width]."""
        return F.embedding_bag(
            input, self.weight, offsets, self.max_norm, self.norm_type, mode=self.mode,
            per_sample_weights=per_sample_weights, include_last_offset=self.include_last_offset,
            padding_idx=self.padding_idx,
        )  # fmt: skip


class Flatten(Module):
    """Merges the axes from `start_dim` to `end_dim` into one."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, input: Any) -> Any:
        """The same elements with fewer axes."""
        return functions.flatten(input, self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        """The axes."""
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Splits one axis into several."""

    def __init__(self, dim: int, unflattened_size: Any) -> None:
        super().__init__()
        self.dim, self.unflattened_size = dim, tuple(unflattened_size)

    def forward(self, input: Any) -> Any:
        """The same elements with more axes."""
        return functions.unflatten(input, self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        """The axis and its sizes."""
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"


class Upsample(Module):
    """`functional.interpolate` as a module."""

    def __init__(
        self,
        size: Any = None,
        scale_factor: Any = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        self.size, self.mode = size, mode
        self.scale_factor: Any = tuple(map(float, scale_factor)) if isinstance(scale_factor, tuple) else scale_factor
        if isinstance(scale_factor, int):
            self.scale_factor = float(scale_factor)
        self.align_corners, self.recompute_scale_factor = align_corners, recompute_scale_factor

    def forward(self, input: Any) -> Any:
        """The input resized."""
        return F.interpolate(
            input, self.size, self.scale_factor, self.mode, self.align_corners, self.recompute_scale_factor
        )

    def extra_repr(self) -> str:
        """The scale, or else the size, and the mode."""
        name = "size" if self.scale_factor is None else "scale_factor"
        return f"{name}={getattr(self, name)!r}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """Upsample in mode "nearest"; PyTorch's older name."""

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, "nearest")


class UpsamplingBilinear2d(Upsample):
    """Upsample in mode "bilinear" with aligned corners; PyTorch's older name."""

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, "bilinear", True)
