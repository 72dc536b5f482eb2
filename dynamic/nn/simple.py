"""Modules of one function each, whose options they store: activations, pooling, dropout, losses and borders."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from dynamic.nn import functional as F
from dynamic.nn.convolution import per_axis
from dynamic.nn.module import Module
from graphs.ops.shapes import shape_of

__all__ = [
    "CELU", "ELU", "GELU", "GLU", "SELU", "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d", "AdaptiveMaxPool2d", "AdaptiveMaxPool3d", "AlphaDropout", "AvgPool1d", "AvgPool2d",
    "AvgPool3d", "BCELoss", "BCEWithLogitsLoss", "CTCLoss", "ChannelShuffle", "CircularPad1d", "CircularPad2d",
    "CircularPad3d", "ConstantPad1d", "ConstantPad2d", "ConstantPad3d", "CosineEmbeddingLoss", "CosineSimilarity",
    "CrossEntropyLoss", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout", "Fold",
    "GaussianNLLLoss", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "HingeEmbeddingLoss", "HuberLoss",
    "KLDivLoss", "L1Loss", "LPPool1d", "LPPool2d", "LPPool3d", "LeakyReLU", "LocalResponseNorm", "LogSigmoid",
    "LogSoftmax", "MSELoss", "MarginRankingLoss", "MaxPool1d", "MaxPool2d", "MaxPool3d", "MaxUnpool1d",
    "MaxUnpool2d", "MaxUnpool3d", "Mish", "MultiLabelMarginLoss", "MultiLabelSoftMarginLoss", "MultiMarginLoss",
    "NLLLoss", "PairwiseDistance", "PixelShuffle", "PixelUnshuffle", "PoissonNLLLoss", "RReLU", "ReLU", "ReLU6",
    "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d", "ReplicationPad2d",
    "ReplicationPad3d", "SiLU", "Sigmoid", "SmoothL1Loss", "SoftMarginLoss", "Softmax", "Softmax2d", "Softmin",
    "Softplus", "Softshrink", "Softsign", "Tanh", "Tanhshrink", "Threshold", "TripletMarginLoss",
    "TripletMarginWithDistanceLoss", "Unfold", "ZeroPad1d", "ZeroPad2d", "ZeroPad3d",
]  # fmt: skip

_TENSORS = ("weight", "pos_weight")  # options that are buffers


class Simple(Module):
    """Base of modules of one function; `options` are its option names and defaults, in PyTorch's order.

    `shown` says how the module's text shows an option: "+" with its name, "." without, "?" where it is true.
    """

    function: Callable[..., Any]
    options: dict[str, Any]
    shown: Mapping[str, str] = {}

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__()
        values = self.__signature__.bind(*args, **options)
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
        """The result of the function."""
        return type(self).function(*inputs, **self._options())

    def extra_repr(self) -> str:
        """The options that PyTorch shows."""
        values = vars(self)
        shown = [(name, kind) for name, kind in self.shown.items() if kind != "?" or values[name]]
        return ", ".join([f"{values[name]!r}" if kind == "." else f"{name}={values[name]!r}" for name, kind in shown])


class _Random(Simple):
    """Base of modules of a function that is random in training alone."""

    def forward(self, input: Any) -> Any:
        """The result of the function in the current mode."""
        return type(self).function(input, training=self.training, **self._options())


class _Window(Simple):
    """Base of modules that slide a window, by its own size unless a stride is given.

    With `axes` its sizes are stored as one number for each axis.
    """

    axes = 0
    kernel_size: Any
    stride: Any

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.stride = self.kernel_size if self.stride is None else self.stride
        if self.axes:
            for name in ("kernel_size", "stride", "padding"):
                setattr(self, name, per_axis(getattr(self, name), self.axes))


class _Unpool(_Window):
    """Base of modules that put maxima back to their places."""

    def forward(self, input: Any, indices: Any, output_size: Any = None) -> Any:
        """The elements at their indices, 0 elsewhere; `output_size` is by default the smallest that fits."""
        return type(self).function(input, indices, output_size=output_size, **self._options())


def signature_of(options: Mapping[str, Any]) -> inspect.Signature:
    """The constructor signature of a module with these options and defaults."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Signature([inspect.Parameter(name, kind, default=value) for name, value in options.items()])


def simple_module(
    name: str, function: Callable[..., Any], options: str = "", base: type = Simple, axes: int = 0, **defaults: Any
) -> Any:
    """Make a module class of a function and the names of its options; `defaults` replace the function's own.

    A name may end in the sign of how the module's text shows it: see `Simple`. `axes` are of a window's sizes.
    """
    parameters = inspect.signature(function).parameters
    signs = {option.rstrip("+.?"): option[-1] for option in options.split()}
    values = {option: defaults.get(option, parameters[option].default) for option in signs}
    shown = {option: sign for option, sign in signs.items() if sign in "+.?"}
    body = {"function": staticmethod(function), "options": values, "shown": shown, "axes": axes}
    body["__signature__"] = signature_of(values)
    doc = f"`functional.{function.__name__}` as a module."
    return type(name, (base,), {**body, "__module__": base.__module__, "__doc__": doc})


ReLU = simple_module("ReLU", F.relu, "inplace?")
ReLU6 = simple_module("ReLU6", F.relu6, "inplace?")
ELU = simple_module("ELU", F.elu, "alpha+ inplace?")
CELU = simple_module("CELU", F.celu, "alpha+ inplace?")
SELU = simple_module("SELU", F.selu, "inplace?")
GELU = simple_module("GELU", F.gelu, "approximate+")
SiLU = simple_module("SiLU", F.silu, "inplace?")
Mish = simple_module("Mish", F.mish, "inplace?")
Sigmoid = simple_module("Sigmoid", F.sigmoid)
Tanh = simple_module("Tanh", F.tanh)
LogSigmoid = simple_module("LogSigmoid", F.logsigmoid)
LeakyReLU = simple_module("LeakyReLU", F.leaky_relu, "negative_slope+ inplace?")
Hardtanh = simple_module("Hardtanh", F.hardtanh, "min_val+ max_val+ inplace?")
Hardsigmoid = simple_module("Hardsigmoid", F.hardsigmoid, "inplace")
Hardswish = simple_module("Hardswish", F.hardswish, "inplace")
Hardshrink = simple_module("Hardshrink", F.hardshrink, "lambd.")
Softshrink = simple_module("Softshrink", F.softshrink, "lambd.")
Softplus = simple_module("Softplus", F.softplus, "beta+ threshold+")
Softsign = simple_module("Softsign", F.softsign)
Tanhshrink = simple_module("Tanhshrink", F.tanhshrink)
Threshold = simple_module("Threshold", F.threshold, "threshold+ value+ inplace?")
GLU = simple_module("GLU", F.glu, "dim+")
Softmax = simple_module("Softmax", F.softmax, "dim+")
Softmin = simple_module("Softmin", F.softmin, "dim+")
LogSoftmax = simple_module("LogSoftmax", F.log_softmax, "dim+")
CosineSimilarity = simple_module("CosineSimilarity", F.cosine_similarity, "dim eps")
PairwiseDistance = simple_module("PairwiseDistance", F.pairwise_distance, "p eps keepdim")

RReLU = simple_module("RReLU", F.rrelu, "lower+ upper+ inplace?", _Random)
Dropout = simple_module("Dropout", F.dropout, "p+ inplace+", _Random)
Dropout1d = simple_module("Dropout1d", F.dropout1d, "p+ inplace+", _Random)
Dropout2d = simple_module("Dropout2d", F.dropout2d, "p+ inplace+", _Random)
Dropout3d = simple_module("Dropout3d", F.dropout3d, "p+ inplace+", _Random)
AlphaDropout = simple_module("AlphaDropout", F.alpha_dropout, "p+ inplace+", _Random)
FeatureAlphaDropout = simple_module("FeatureAlphaDropout", F.feature_alpha_dropout, "p+ inplace+", _Random)
LocalResponseNorm = simple_module("LocalResponseNorm", F.local_response_norm, "size. alpha+ beta+ k+")

_LARGEST = "kernel_size+ stride+ padding+ dilation+ return_indices ceil_mode+"
_MEAN = "kernel_size+ stride+ padding+ ceil_mode count_include_pad divisor_override"
_UNPOOLED = "kernel_size+ stride+ padding+"
_POWER = "norm_type+ kernel_size+ stride+ ceil_mode+"
_PATCHES = "kernel_size+ dilation+ padding+ stride+"
MaxPool1d = simple_module("MaxPool1d", F.max_pool1d, _LARGEST, _Window)
MaxPool2d = simple_module("MaxPool2d", F.max_pool2d, _LARGEST, _Window)
MaxPool3d = simple_module("MaxPool3d", F.max_pool3d, _LARGEST, _Window)
MaxUnpool1d = simple_module("MaxUnpool1d", F.max_unpool1d, _UNPOOLED, _Unpool, axes=1)
MaxUnpool2d = simple_module("MaxUnpool2d", F.max_unpool2d, _UNPOOLED, _Unpool, axes=2)
MaxUnpool3d = simple_module("MaxUnpool3d", F.max_unpool3d, _UNPOOLED, _Unpool, axes=3)
AvgPool1d = simple_module("AvgPool1d", F.avg_pool1d, _MEAN.rpartition(" ")[0], _Window, axes=1)
AvgPool2d = simple_module("AvgPool2d", F.avg_pool2d, _MEAN, _Window)
AvgPool3d = simple_module("AvgPool3d", F.avg_pool3d, _MEAN, _Window)
LPPool1d = simple_module("LPPool1d", F.lp_pool1d, _POWER)
LPPool2d = simple_module("LPPool2d", F.lp_pool2d, _POWER)
LPPool3d = simple_module("LPPool3d", F.lp_pool3d, _POWER)
AdaptiveAvgPool1d = simple_module("AdaptiveAvgPool1d", F.adaptive_avg_pool1d, "output_size+")
AdaptiveAvgPool2d = simple_module("AdaptiveAvgPool2d", F.adaptive_avg_pool2d, "output_size+")
AdaptiveAvgPool3d = simple_module("AdaptiveAvgPool3d", F.adaptive_avg_pool3d, "output_size+")
AdaptiveMaxPool1d = simple_module("AdaptiveMaxPool1d", F.adaptive_max_pool1d, "output_size+ return_indices")
AdaptiveMaxPool2d = simple_module("AdaptiveMaxPool2d", F.adaptive_max_pool2d, "output_size+ return_indices")
AdaptiveMaxPool3d = simple_module("AdaptiveMaxPool3d", F.adaptive_max_pool3d, "output_size+ return_indices")
Unfold = simple_module("Unfold", F.unfold, _PATCHES)
Fold = simple_module("Fold", F.fold, f"output_size+ {_PATCHES}")
PixelShuffle = simple_module("PixelShuffle", F.pixel_shuffle, "upscale_factor+")
PixelUnshuffle = simple_module("PixelUnshuffle", F.pixel_unshuffle, "downscale_factor+")
ChannelShuffle = simple_module("ChannelShuffle", F.channel_shuffle, "groups+")


class Softmax2d(Module):
    """softmax over the channels of f[N, C, H, W] or f[C, H, W]."""

    def forward(self, input: Any) -> Any:
        """The softmax over channels for each pixel."""
        return F.softmax(input, len(shape_of(input)) - 3)


# Losses ---------------------------------------------------------------------------------------------------------------


class _Loss(Simple):
    """Base of losses, also of user-defined ones: it stores `reduction`, which says how losses are combined."""

    options: dict[str, Any] = {"size_average": None, "reduce": None, "reduction": "mean"}  # noqa: RUF012  (read alone)
    __signature__ = signature_of(options)
    reduction: str

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        older = [vars(self).get(name) for name in ("size_average", "reduce")]
        self.reduction = F.common.reduction_of(self.reduction, *older)


class _WeightedLoss(_Loss):
    """Base of losses with a weight for each class, which is a buffer."""

    options = {"weight": None, **_Loss.options}  # noqa: RUF012  (read alone)
    __signature__ = signature_of(options)


class _DistanceLoss(_Loss):
    """Base of losses of distances, which are Euclidean unless another function is given."""

    distance_function: Any

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if self.distance_function is None:
            self.distance_function = PairwiseDistance()


_loss = functools.partial(simple_module, base=_Loss)
_weighted = functools.partial(simple_module, base=_WeightedLoss)

MSELoss = _loss("MSELoss", F.mse_loss, "size_average reduce reduction")
L1Loss = _loss("L1Loss", F.l1_loss, "size_average reduce reduction")
SmoothL1Loss = _loss("SmoothL1Loss", F.smooth_l1_loss, "size_average reduce reduction beta")
HuberLoss = _loss("HuberLoss", F.huber_loss, "reduction delta")
CrossEntropyLoss = _weighted(
    "CrossEntropyLoss", F.cross_entropy, "weight size_average ignore_index reduce reduction label_smoothing"
)
NLLLoss = _weighted("NLLLoss", F.nll_loss, "weight size_average ignore_index reduce reduction")
BCELoss = _weighted("BCELoss", F.binary_cross_entropy, "weight size_average reduce reduction")
BCEWithLogitsLoss = _loss(
    "BCEWithLogitsLoss", F.binary_cross_entropy_with_logits, "weight size_average reduce reduction pos_weight"
)
KLDivLoss = _loss("KLDivLoss", F.kl_div, "size_average reduce reduction log_target")
PoissonNLLLoss = _loss("PoissonNLLLoss", F.poisson_nll_loss, "log_input full size_average eps reduce reduction")
GaussianNLLLoss = _loss("GaussianNLLLoss", F.gaussian_nll_loss, "full eps reduction")
MarginRankingLoss = _loss("MarginRankingLoss", F.margin_ranking_loss, "margin size_average reduce reduction")
HingeEmbeddingLoss = _loss("HingeEmbeddingLoss", F.hinge_embedding_loss, "margin size_average reduce reduction")
SoftMarginLoss = _loss("SoftMarginLoss", F.soft_margin_loss, "size_average reduce reduction")
CosineEmbeddingLoss = _loss("CosineEmbeddingLoss", F.cosine_embedding_loss, "margin size_average reduce reduction")
TripletMarginLoss = _loss("TripletMarginLoss", F.triplet_margin_loss, "margin p eps swap size_average reduce reduction")
CTCLoss = _loss("CTCLoss", F.ctc_loss, "blank reduction zero_infinity")
MultiMarginLoss = _weighted("MultiMarginLoss", F.multi_margin_loss, "p margin weight size_average reduce reduction")
MultiLabelMarginLoss = _loss("MultiLabelMarginLoss", F.multilabel_margin_loss, "size_average reduce reduction")
MultiLabelSoftMarginLoss = _weighted(
    "MultiLabelSoftMarginLoss", F.multilabel_soft_margin_loss, "weight size_average reduce reduction"
)
TripletMarginWithDistanceLoss = simple_module(
    "TripletMarginWithDistanceLoss",
    F.triplet_margin_with_distance_loss,
    "distance_function margin swap reduction",
    _DistanceLoss,
)


# Borders --------------------------------------------------------------------------------------------------------------


class _Pad(Module):
    """`functional.pad` of `axes` axes; `padding` is a number, or a pair for each axis, the last axis first."""

    axes = 1
    mode = "constant"

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = (padding,) * (2 * self.axes) if isinstance(padding, int) else tuple(padding)

    def forward(self, input: Any) -> Any:
        """The input with its border."""
        return F.pad(input, self.padding, self.mode)

    def extra_repr(self) -> str:
        """The sizes of the border."""
        return f"{self.padding}"


class _ConstantPad(_Pad):
    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Any) -> Any:
        """The input with its border."""
        return F.pad(input, self.padding, value=self.value)

    def extra_repr(self) -> str:
        """The sizes of the border, and its value."""
        return f"padding={self.padding}, value={self.value}"


def _pad(kind: str, axes: int) -> type[Module]:
    base, mode, text = _KINDS[kind]
    body = {"axes": axes, "mode": mode, "__module__": __name__, "__doc__": f"{text}, around the last {axes} axes."}
    return type(f"{kind}Pad{axes}d", (base,), body)


_KINDS: dict[str, tuple[type[Module], str, str]] = {
    "Circular": (_Pad, "circular", "A border of the elements at the other end"),
    "Constant": (_ConstantPad, "constant", "A border of one value"),
    "Reflection": (_Pad, "reflect", "A border of the elements mirrored at the outermost"),
    "Replication": (_Pad, "replicate", "A border of the nearest elements"),
    "Zero": (_Pad, "constant", "A border of zeros"),
}

CircularPad1d, CircularPad2d, CircularPad3d = (_pad("Circular", axes) for axes in (1, 2, 3))
ConstantPad1d, ConstantPad2d, ConstantPad3d = (_pad("Constant", axes) for axes in (1, 2, 3))
ReflectionPad1d, ReflectionPad2d, ReflectionPad3d = (_pad("Reflection", axes) for axes in (1, 2, 3))
ReplicationPad1d, ReplicationPad2d, ReplicationPad3d = (_pad("Replication", axes) for axes in (1, 2, 3))
ZeroPad1d, ZeroPad2d, ZeroPad3d = (_pad("Zero", axes) for axes in (1, 2, 3))
