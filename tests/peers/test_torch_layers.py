"""Layers over one, two and three axes, borders and patches, compared with PyTorch's in float64, to 1e-10."""

from __future__ import annotations

import numpy as np
import pytest

import dynamic
from dynamic import nn
from tests.helpers.together import together
from tests.peers.test_torch_modules import close, converted, flat, floats, same

pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings("ignore")]  # PyTorch warns of its own defaults
torch = pytest.importorskip("torch")

X2, X3, X4, X5 = floats(5, 6), floats(3, 4, 9), floats(2, 4, 7, 6), floats(2, 4, 5, 6, 7)
OF = {3: X3, 4: X4, 5: X5}
FOUR_TO_SIX = {"in_channels": 4, "out_channels": 6}


def title(case):
    return f"{case[0]}-{case[1]}"


MODULES = [
    # convolutions over three axes
    ("Conv3d", {**FOUR_TO_SIX, "kernel_size": 3}, [X5]),
    ("Conv3d", {**FOUR_TO_SIX, "kernel_size": (1, 2, 3), "stride": (1, 2, 1), "padding": (0, 1, 2), "groups": 2}, [X5]),
    ("Conv3d", {**FOUR_TO_SIX, "kernel_size": 2, "dilation": 2, "bias": False}, [X5[0]]),
    ("Conv3d", {**FOUR_TO_SIX, "kernel_size": 2, "padding": "same"}, [X5]),
    *[("Conv3d", {**FOUR_TO_SIX, "kernel_size": 2, "padding": 1, "padding_mode": mode}, [X5])
      for mode in ("reflect", "replicate", "circular")],
    ("ConvTranspose3d", {**FOUR_TO_SIX, "kernel_size": 2}, [X5]),
    ("ConvTranspose3d", {**FOUR_TO_SIX, "kernel_size": 3, "stride": 2, "padding": 1, "output_padding": 1,
                         "groups": 2}, [X5]),
    # pooling
    ("MaxPool3d", {"kernel_size": 2}, [X5]),
    ("MaxPool3d", {"kernel_size": (3, 2, 3), "stride": 2, "padding": 1, "ceil_mode": True}, [X5]),
    ("MaxPool3d", {"kernel_size": 2, "dilation": 2, "stride": 1}, [X5[0]]),
    ("AvgPool3d", {"kernel_size": 2}, [X5]),
    ("AvgPool3d", {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True}, [X5]),
    ("AvgPool3d", {"kernel_size": 3, "padding": 1, "count_include_pad": False}, [X5[0]]),
    *[(f"AvgPool{n}d", {"kernel_size": 2, "divisor_override": d, **more}, [OF[n + 2]]) for n in (2, 3)
      for d, more in ((3, {}), (-2, {"padding": 1, "count_include_pad": False}), (5, {"ceil_mode": True}))],
    *[(f"LPPool{n}d", {"norm_type": p, "kernel_size": 2, "stride": 1}, [np.abs(OF[n + 2]) + 0.1])
      for n in (1, 2, 3) for p in (2, 3)],
    ("LPPool2d", {"norm_type": 2, "kernel_size": (3, 2), "ceil_mode": True}, [X4]),
    *[(f"Adaptive{kind}Pool3d", {"output_size": size}, [X5]) for kind in ("Avg", "Max")
      for size in (1, (3, None, 2), (4, 5, 7))],
    ("AdaptiveAvgPool3d", {"output_size": 2}, [X5[0]]),
    # normalisation
    ("BatchNorm3d", {"num_features": 4, "momentum": 0.3}, [X5]),
    ("BatchNorm3d", {"num_features": 4, "affine": False, "track_running_stats": False}, [X5]),
    ("BatchNorm1d", {"num_features": 6, "bias": False}, [X2]),
    ("BatchNorm2d", {"num_features": 4, "bias": False}, [X4]),
    ("GroupNorm", {"num_groups": 2, "num_channels": 4, "bias": False}, [X4]),
    ("InstanceNorm3d", {"num_features": 4}, [X5]),
    ("InstanceNorm3d", {"num_features": 4, "affine": True, "bias": False}, [X5[0]]),
    *[(f"InstanceNorm{n}d", {"num_features": 4, "track_running_stats": True, "affine": n == 2, "momentum": 0.2},
       [OF[n + 2]]) for n in (1, 2, 3)],
    ("InstanceNorm2d", {"num_features": 4, "track_running_stats": True}, [X4[0]]),
    # borders: of one value, of the input's own elements; negative sizes take elements away
    *[(f"{kind}Pad{n}d", {"padding": size}, [OF[n + 2]])
      for kind in ("Circular", "Reflection", "Replication", "Zero") for n in (1, 2, 3)
      for size in (1, (2, 1, 0, 2, 1, 1)[:2 * n], (2, -1, -2, 0, 1, -1)[:2 * n], (-2, 3, 1, 1, 0, -1)[:2 * n])],
    *[(f"ConstantPad{n}d", {"padding": size, "value": 0.7}, [OF[n + 2]]) for n in (1, 2, 3)
      for size in (2, (-1, 2, 0, 3, -2, -2)[:2 * n])],
    # patches and pixels
    ("Unfold", {"kernel_size": 3}, [X4]),
    ("Unfold", {"kernel_size": (2, 3), "stride": (2, 1), "padding": (1, 2), "dilation": (2, 1)}, [X4]),
    ("Unfold", {"kernel_size": 2}, [X4[0]]),
    ("Fold", {"output_size": (7, 6), "kernel_size": (3, 2)}, [floats(2, 24, 25)]),
    ("Fold", {"output_size": 6, "kernel_size": 2, "stride": 2, "padding": 1, "dilation": 2}, [floats(3, 12, 9)]),
    ("Fold", {"output_size": (4, 5), "kernel_size": (2, 2)}, [floats(8, 12)]),
    ("PixelUnshuffle", {"downscale_factor": 2}, [floats(2, 3, 4, 6)]),
    ("PixelUnshuffle", {"downscale_factor": 3}, [floats(3, 6, 9)]),
    ("ChannelShuffle", {"groups": 2}, [X4]),
    ("Dropout3d", {"p": 1.0}, [X5]),
]  # fmt: skip


@together("case", MODULES, ids=title)
def test_layers(case):
    same(*case)


@together("case", [case for case in MODULES if "Norm" in case[0]], ids=title)
def test_normalisation_in_evaluation(case):
    same(*case, train=False)


PRINTED = ("BatchNorm", "Circular", "Constant", "GroupNorm", "InstanceNorm", "PixelUnshuffle", "Re", "Zero")


@together("case", [case for case in MODULES if case[0].startswith(PRINTED)], ids=title)
def test_layers_print_as_pytorchs(case):
    name, options, _ = case
    assert repr(getattr(nn, name)(**options)) == repr(getattr(torch.nn, name)(**options))


# Functions ----------------------------------------------------------------------------------------------------------


def called(engine, name, inputs, options):
    """What a function of `nn.functional` gives, and the gradients of a fixed mixture of it."""
    leaves = []
    args = [converted(value, engine, leaves) for value in inputs]
    named = {key: converted(value, engine, leaves) for key, value in options.items()}
    space = (nn if engine is dynamic else torch.nn).functional
    outputs = [out for out in flat(getattr(space, name)(*args, **named)) if out.dtype in (engine.float64, np.float64)]
    total = sum((out * engine.tensor(floats(*out.shape))).sum() for out in outputs)
    total.backward()
    grads = [leaf.grad for leaf in leaves]
    return [o.detach().numpy() for o in outputs], [None if g is None else np.asarray(g.detach().numpy()) for g in grads]


def alike(name, inputs, options):
    for found, expected in zip(*(called(e, name, inputs, options) for e in (dynamic, torch)), strict=True):
        close(found, expected, 1e-10)


FUNCTIONS = [
    *[("pad", [X3, size], {"mode": mode}) for mode in ("constant", "reflect", "replicate", "circular")
      for size in ((1, 2), (-1, 3), (-2, -2), (4, -5))],
    ("pad", [X4, (-1, 0, 2, -3, 1, 1)], {"value": 2.5}),
    ("avg_pool2d", [X4, 2], {"divisor_override": 7}),
]  # fmt: skip


@together("name,inputs,options", FUNCTIONS)
def test_functions(name, inputs, options):
    alike(name, inputs, options)
