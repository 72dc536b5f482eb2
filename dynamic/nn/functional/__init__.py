"""Functions that layers are made of, with PyTorch's names and meanings: `import dynamic.nn.functional as F`."""

# ruff: noqa: F403
from dynamic.nn.functional import activations, ctc, layers, losses, windows
from dynamic.nn.functional.activations import *
from dynamic.nn.functional.ctc import *
from dynamic.nn.functional.layers import *
from dynamic.nn.functional.losses import *
from dynamic.nn.functional.windows import *
from dynamic.paths import submodule
from graphs import ops
from graphs.frontends.torch import sampling
from graphs.frontends.torch.arithmetic import of_op
from graphs.frontends.torch.names import guard
from graphs.frontends.torch.sampling import *

__all__ = [  # noqa: PLE0604  (lists of names)
    *activations.__all__, *ctc.__all__, *layers.__all__, *losses.__all__,
    *sampling.__all__, *windows.__all__,
]  # fmt: skip
sigmoid, tanh = of_op(ops.sigmoid), of_op(ops.tanh)
guard(globals(), __all__)


def __getattr__(name: str) -> object:
    return submodule(__name__, name)
