"""Modules without parameters: one function of `nn.functional` each, whose options they keep."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from dynamic.nn import functional as F
from dynamic.nn.module import Module
from graphs.ops.shapes import shape_of

__all__ = [
    "CELU", "ELU", "GELU", "GLU", "SELU", "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d", "AdaptiveMaxPool2d", "AdaptiveMaxPool3d", "AlphaDropout", "AvgPool1d", "AvgPool2d",
    "AvgPool3d", "BCELoss", "BCEWithLogitsLoss", "CTCLoss", "ChannelShuffle", "CosineEmbeddingLoss",
    "CosineSimilarity", "CrossEntropyLoss", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout",
    "Fold", "GaussianNLLLoss", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "HingeEmbeddingLoss", "HuberLoss",
    "KLDivLoss", "L1Loss", "LPPool1d", "LPPool2d", "LPPool3d", "LeakyReLU", "LocalResponseNorm", "LogSigmoid",
    "LogSoftmax", "MSELoss", "MarginRankingLoss", "MaxPool1d", "MaxPool2d", "MaxPool3d", "Mish",
    "MultiLabelMarginLoss", "MultiLabelSoftMarginLoss", "MultiMarginLoss", "NLLLoss", "PairwiseDistance",
    "PixelShuffle", "PixelUnshuffle", "PoissonNLLLoss", "ReLU", "ReLU6", "SiLU", "Sigmoid", "SmoothL1Loss",
    "SoftMarginLoss", "Softmax", "Softmax2d", "Softmin", "Softplus", "Softshrink", "Softsign", "Tanh", "Tanhshrink",
    "Threshold", "TripletMarginLoss", "TripletMarginWithDistanceLoss", "Unfold",
]  # fmt: skip

_TENSORS = ("weight", "pos_weight")  # options that are buffers


class _Simple(Module):
    """One function with options: `options` are their names and defaults, in PyTorch's order."""

    function: Callable[..., Any]
    options: dict[str, Any]
    defaults_to: dict[str, Any] = {}  # noqa: RUF012  (read alone)

    def __init__(self, *args: Any, **given: Any) -> None:
        super().__init__()
        values = self.__signature__.bind(*args, **given)
        values.apply_defaults()
        for name, value in values.arguments.items():
            if name in _TENSORS:
                self.register_buffer(name, value)
            else:
                setattr(self, name, value)

    __signature__: inspect.Signature

    def _options(self) -> dict[str, Any]:
        values = vars(self)
        return {name: values[name] for name in self.options}

    def forward(self, *inputs: Any) -> Any:
        """What the function gives."""
        return type(self).function(*inputs, **self._options())

    def extra_repr(self) -> str:
        """The options that are not at their defaults."""
        given = {name: vars(self)[name] for name in self.options}
        required = inspect.Parameter.empty
        return ", ".join(
            f"{name}={value!r}"
            for name, value in given.items()
            if self.options[name] is required or (name not in _TENSORS and value != self.options[name])
        )


class _Random(_Simple):
    """The same in training alone."""

    def forward(self, input: Any) -> Any:
        """What the function gives in this mode."""
        return type(self).function(input, training=self.training, **self._options())


def _module(name: str, function: Callable[..., Any], options: str = "", base: type = _Simple, **defaults: Any) -> Any:
    """A module of a function and the names of its options; `defaults` replace the function's own."""
    known = inspect.signature(function).parameters
    values = {option: defaults.get(option, known[option].default) for option in options.split()}
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = inspect.Signature([inspect.Parameter(n, kind, default=v) for n, v in values.items()])
    body = {
        "function": staticmethod(function),
        "options": values,
        "signature": signature,
        "__signature__": signature,
        "__module__": __name__,
    }
    return type(name, (base,), {**body, "__doc__": f"`functional.{function.__name__}` as a module."})


ReLU = _module("ReLU", F.relu, "inplace")
ReLU6 = _module("ReLU6", F.relu6, "inplace")
ELU = _module("ELU", F.elu, "alpha inplace")
CELU = _module("CELU", F.celu, "alpha inplace")
SELU = _module("SELU", F.selu, "inplace")
GELU = _module("GELU", F.gelu, "approximate")
SiLU = _module("SiLU", F.silu, "inplace")
Mish = _module("Mish", F.mish, "inplace")
Sigmoid = _module("Sigmoid", F.sigmoid)
Tanh = _module("Tanh", F.tanh)
LogSigmoid = _module("LogSigmoid", F.logsigmoid)
LeakyReLU = _module("LeakyReLU", F.leaky_relu, "negative_slope inplace")
Hardtanh = _module("Hardtanh", F.hardtanh, "min_val max_val inplace")
Hardsigmoid = _module("Hardsigmoid", F.hardsigmoid, "inplace")
Hardswish = _module("Hardswish", F.hardswish, "inplace")
Hardshrink = _module("Hardshrink", F.hardshrink, "lambd")
Softshrink = _module("Softshrink", F.softshrink, "lambd")
Softplus = _module("Softplus", F.softplus, "beta threshold")
Softsign = _module("Softsign", F.softsign)
Tanhshrink = _module("Tanhshrink", F.tanhshrink)
Threshold = _module("Threshold", F.threshold, "threshold value inplace")
GLU = _module("GLU", F.glu, "dim")
Softmax = _module("Softmax", F.softmax, "dim")
Softmin = _module("Softmin", F.softmin, "dim")
LogSoftmax = _module("LogSoftmax", F.log_softmax, "dim")
CosineSimilarity = _module("CosineSimilarity", F.cosine_similarity, "dim eps")
PairwiseDistance = _module("PairwiseDistance", F.pairwise_distance, "p eps keepdim")

Dropout = _module("Dropout", F.dropout, "p inplace", _Random)
Dropout1d = _module("Dropout1d", F.dropout1d, "p inplace", _Random)
Dropout2d = _module("Dropout2d", F.dropout2d, "p inplace", _Random)
Dropout3d = _module("Dropout3d", F.dropout3d, "p inplace", _Random)
AlphaDropout = _module("AlphaDropout", F.alpha_dropout, "p inplace", _Random)
FeatureAlphaDropout = _module("FeatureAlphaDropout", F.feature_alpha_dropout, "p inplace", _Random)
LocalResponseNorm = _module("LocalResponseNorm", F.local_response_norm, "size alpha beta k")

_LARGEST = "kernel_size stride padding dilation return_indices ceil_mode"
_MEAN = "kernel_size stride padding ceil_mode count_include_pad divisor_override"
_POWER = "norm_type kernel_size stride ceil_mode"
_PATCHES = "kernel_size dilation padding stride"
MaxPool1d = _module("MaxPool1d", F.max_pool1d, _LARGEST)
MaxPool2d = _module("MaxPool2d", F.max_pool2d, _LARGEST)
MaxPool3d = _module("MaxPool3d", F.max_pool3d, _LARGEST)
AvgPool1d = _module("AvgPool1d", F.avg_pool1d, "kernel_size stride padding ceil_mode count_include_pad")
AvgPool2d = _module("AvgPool2d", F.avg_pool2d, _MEAN)
AvgPool3d = _module("AvgPool3d", F.avg_pool3d, _MEAN)
LPPool1d = _module("LPPool1d", F.lp_pool1d, _POWER)
LPPool2d = _module("LPPool2d", F.lp_pool2d, _POWER)
LPPool3d = _module("LPPool3d", F.lp_pool3d, _POWER)
AdaptiveAvgPool1d = _module("AdaptiveAvgPool1d", F.adaptive_avg_pool1d, "output_size")
AdaptiveAvgPool2d = _module("AdaptiveAvgPool2d", F.adaptive_avg_pool2d, "output_size")
AdaptiveAvgPool3d = _module("AdaptiveAvgPool3d", F.adaptive_avg_pool3d, "output_size")
AdaptiveMaxPool1d = _module("AdaptiveMaxPool1d", F.adaptive_max_pool1d, "output_size return_indices")
AdaptiveMaxPool2d = _module("AdaptiveMaxPool2d", F.adaptive_max_pool2d, "output_size return_indices")
AdaptiveMaxPool3d = _module("AdaptiveMaxPool3d", F.adaptive_max_pool3d, "output_size return_indices")
Unfold = _module("Unfold", F.unfold, _PATCHES)
Fold = _module("Fold", F.fold, f"output_size {_PATCHES}")
PixelShuffle = _module("PixelShuffle", F.pixel_shuffle, "upscale_factor")
PixelUnshuffle = _module("PixelUnshuffle", F.pixel_unshuffle, "downscale_factor")
ChannelShuffle = _module("ChannelShuffle", F.channel_shuffle, "groups")

MSELoss = _module("MSELoss", F.mse_loss, "size_average reduce reduction")
L1Loss = _module("L1Loss", F.l1_loss, "size_average reduce reduction")
SmoothL1Loss = _module("SmoothL1Loss", F.smooth_l1_loss, "size_average reduce reduction beta")
HuberLoss = _module("HuberLoss", F.huber_loss, "reduction delta")
CrossEntropyLoss = _module(
    "CrossEntropyLoss", F.cross_entropy, "weight size_average ignore_index reduce reduction label_smoothing"
)
NLLLoss = _module("NLLLoss", F.nll_loss, "weight size_average ignore_index reduce reduction")
BCELoss = _module("BCELoss", F.binary_cross_entropy, "weight size_average reduce reduction")
BCEWithLogitsLoss = _module(
    "BCEWithLogitsLoss", F.binary_cross_entropy_with_logits, "weight size_average reduce reduction pos_weight"
)
KLDivLoss = _module("KLDivLoss", F.kl_div, "size_average reduce reduction log_target")
PoissonNLLLoss = _module("PoissonNLLLoss", F.poisson_nll_loss, "log_input full size_average eps reduce reduction")
GaussianNLLLoss = _module("GaussianNLLLoss", F.gaussian_nll_loss, "full eps reduction")
MarginRankingLoss = _module("MarginRankingLoss", F.margin_ranking_loss, "margin size_average reduce reduction")
HingeEmbeddingLoss = _module("HingeEmbeddingLoss", F.hinge_embedding_loss, "margin size_average reduce reduction")
SoftMarginLoss = _module("SoftMarginLoss", F.soft_margin_loss, "size_average reduce reduction")
CosineEmbeddingLoss = _module("CosineEmbeddingLoss", F.cosine_embedding_loss, "margin size_average reduce reduction")
TripletMarginLoss = _module(
    "TripletMarginLoss", F.triplet_margin_loss, "margin p eps swap size_average reduce reduction"
)
CTCLoss = _module("CTCLoss", F.ctc_loss, "blank reduction zero_infinity")
MultiMarginLoss = _module("MultiMarginLoss", F.multi_margin_loss, "p margin weight size_average reduce reduction")
MultiLabelMarginLoss = _module("MultiLabelMarginLoss", F.multilabel_margin_loss, "size_average reduce reduction")
MultiLabelSoftMarginLoss = _module(
    "MultiLabelSoftMarginLoss", F.multilabel_soft_margin_loss, "weight size_average reduce reduction"
)
TripletMarginWithDistanceLoss = _module(
    "TripletMarginWithDistanceLoss", F.triplet_margin_with_distance_loss, "distance_function margin swap reduction"
)


class Softmax2d(Module):
    """softmax over the channels of f[N, C, H, W] or f[C, H, W]."""

    def forward(self, input: Any) -> Any:
        """What each pixel is most like."""
        return F.softmax(input, len(shape_of(input)) - 3)
