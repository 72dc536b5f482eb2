"""Modules under the import paths that PyTorch's own files give them, as `from dynamic.nn.modules.module import Module`.

The files are not there: importing this package puts a module into `sys.modules` for each.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from dynamic import nn
from dynamic.nn import convolution, normalization, recurrent, simple
from dynamic.nn.convolution import per_axis
from dynamic.paths import file_of

_FILES = {
    "activation": """CELU ELU GELU GLU Hardshrink Hardsigmoid Hardswish Hardtanh LeakyReLU LogSigmoid LogSoftmax Mish
        MultiheadAttention PReLU RReLU ReLU ReLU6 SELU SiLU Sigmoid Softmax Softmax2d Softmin Softplus Softshrink
        Softsign Tanh Tanhshrink Threshold""",
    "batchnorm": "BatchNorm1d BatchNorm2d BatchNorm3d SyncBatchNorm",
    "channelshuffle": "ChannelShuffle",
    "container": "ModuleDict ModuleList ParameterDict ParameterList Sequential",
    "conv": "Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d",
    "distance": "CosineSimilarity PairwiseDistance",
    "dropout": "AlphaDropout Dropout Dropout1d Dropout2d Dropout3d FeatureAlphaDropout",
    "flatten": "Flatten Unflatten",
    "fold": "Fold Unfold",
    "instancenorm": "InstanceNorm1d InstanceNorm2d InstanceNorm3d",
    "linear": "Bilinear Identity Linear",
    "loss": " ".join(name for name in simple.__all__ if name.endswith("Loss")),
    "module": "Module",
    "normalization": "GroupNorm LayerNorm LocalResponseNorm RMSNorm",
    "padding": " ".join(name for name in simple.__all__ if name[:-2].endswith("Pad")),
    "pixelshuffle": "PixelShuffle PixelUnshuffle",
    "pooling": """AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveMaxPool1d AdaptiveMaxPool2d
        AdaptiveMaxPool3d AvgPool1d AvgPool2d AvgPool3d LPPool1d LPPool2d LPPool3d MaxPool1d MaxPool2d MaxPool3d
        MaxUnpool1d MaxUnpool2d MaxUnpool3d""",
    "rnn": " ".join(recurrent.__all__),
    "sparse": "Embedding EmbeddingBag",
    "transformer": """Transformer TransformerDecoder TransformerDecoderLayer TransformerEncoder
        TransformerEncoderLayer""",
    "upsampling": "Upsample UpsamplingBilinear2d UpsamplingNearest2d",
}


__path__: list[str] = []  # a package, inside which the switches are found


def _repeat_value(count: int) -> Any:
    def repeat(value: Any) -> tuple[int, ...]:
        return per_axis(value, count)

    return repeat


_BASES: dict[str, dict[str, Any]] = {  # what programs derive from, or ask isinstance of
    "batchnorm": {"_BatchNorm": normalization._BatchNorm},
    "conv": {"_ConvNd": convolution._Convolution},
    "instancenorm": {"_InstanceNorm": normalization._InstanceNorm},
    "loss": {"_Loss": simple._Loss, "_WeightedLoss": simple._WeightedLoss},
    "utils": {
        "_ntuple": _repeat_value,
        "_reverse_repeat_tuple": lambda t, n: tuple(x for x in reversed(t) for _ in range(n)),
        "_single": _repeat_value(1),
        "_pair": _repeat_value(2),
        "_triple": _repeat_value(3),
    },
}


def _file(name: str) -> ModuleType:
    names = _FILES.get(name, "").split()
    held = {public: getattr(nn, public) for public in names} | _BASES.get(name, {})
    return file_of(__name__, name, held, names)


globals().update({name: _file(name) for name in {**_FILES, **_BASES}})
globals().update({public: getattr(nn, public) for names in _FILES.values() for public in names.split()})
__all__ = sorted(public for names in _FILES.values() for public in names.split())  # noqa: PLE0605
