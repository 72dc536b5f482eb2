"""Functions of `torch` itself that `nn.functional` has too; some take their arguments in another order there."""

from __future__ import annotations

from typing import Any

from dynamic.nn import functional as F  # noqa: N812  (as everybody calls it)

avg_pool1d, max_pool1d, max_pool2d, max_pool3d = F.avg_pool1d, F.max_pool1d, F.max_pool2d, F.max_pool3d
conv1d, conv2d, conv3d = F.conv1d, F.conv2d, F.conv3d
conv_transpose1d, conv_transpose2d, conv_transpose3d = F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d
group_norm, layer_norm, rms_norm = F.group_norm, F.layer_norm, F.rms_norm
adaptive_avg_pool1d, bilinear, pairwise_distance = F.adaptive_avg_pool1d, F.bilinear, F.pairwise_distance
hardshrink, prelu, rrelu, selu = F.hardshrink, F.prelu, F.rrelu, F.selu
channel_shuffle = native_channel_shuffle = F.channel_shuffle
pixel_shuffle, pixel_unshuffle = F.pixel_shuffle, F.pixel_unshuffle


def embedding(weight: Any, indices: Any, padding_idx: int = -1, **_: Any) -> Any:
    """Rows of a table."""
    return F.embedding(indices, weight, None if padding_idx == -1 else padding_idx)


def dropout(input: Any, p: float, train: bool) -> Any:
    """Elements set to 0 with a probability, the others scaled up; while `train`."""
    return F.dropout(input, p, train)


def alpha_dropout(input: Any, p: float, train: bool) -> Any:
    """Elements set to the least value of selu with a probability, mean and variance kept; while `train`."""
    return F.alpha_dropout(input, p, train)


def feature_alpha_dropout(input: Any, p: float, train: bool) -> Any:
    """alpha_dropout of whole channels."""
    return F.feature_alpha_dropout(input, p, train)


def adaptive_max_pool1d(input: Any, output_size: Any) -> Any:
    """The largest of windows along the last axis, and where they lie."""
    return F.adaptive_max_pool1d(input, output_size, return_indices=True)


def grid_sampler(input: Any, grid: Any, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Any:
    """Values at the places of a grid; modes by their numbers."""
    modes, paddings = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")
    return F.grid_sample(input, grid, modes[interpolation_mode], paddings[padding_mode], align_corners)


def batch_norm(
    input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool, momentum: float,
    eps: float, cudnn_enabled: bool,
) -> Any:  # fmt: skip
    """Each channel brought to mean 0 and variance 1, over a batch or by running statistics."""
    del cudnn_enabled
    return F.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)


def instance_norm(
    input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, use_input_stats: bool, momentum: float,
    eps: float, cudnn_enabled: bool,
) -> Any:  # fmt: skip
    """Each channel of each example brought to mean 0 and variance 1."""
    del cudnn_enabled
    return F.instance_norm(input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps)
