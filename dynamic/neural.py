"""Functions of `torch` itself that `nn.functional` has too; some take their arguments in another order there."""

from __future__ import annotations

from typing import Any

from dynamic.nn import functional as F  # noqa: N812  (as everybody calls it)

avg_pool1d, max_pool1d, max_pool2d, max_pool3d = F.avg_pool1d, F.max_pool1d, F.max_pool2d, F.max_pool3d
conv1d, conv2d, conv3d = F.conv1d, F.conv2d, F.conv3d
conv_transpose1d, conv_transpose2d, conv_transpose3d = F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d
group_norm, layer_norm, rms_norm = F.group_norm, F.layer_norm, F.rms_norm


def embedding(weight: Any, indices: Any, padding_idx: int = -1, **_: Any) -> Any:
    """Rows of a table."""
    return F.embedding(indices, weight, None if padding_idx == -1 else padding_idx)


def dropout(input: Any, p: float, train: bool) -> Any:
    """Elements set to 0 with a probability, the others scaled up; while `train`."""
    return F.dropout(input, p, train)


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
