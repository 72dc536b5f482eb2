"""Layers over one, two and three axes, borders and patches, compared with PyTorch's in float64, to 1e-10."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import dynamic
from dynamic import nn
from tests.helpers.together import together
from tests.peers.test_torch_modules import REDUCTIONS, close, converted, flat, floats, ints, positive, same

pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings("ignore")]  # PyTorch warns of its own defaults
torch = pytest.importorskip("torch")

X2, X3, X4, X5 = floats(5, 6), floats(3, 4, 9), floats(2, 4, 7, 6), floats(2, 4, 5, 6, 7)
OF = {3: X3, 4: X4, 5: X5}
LOGITS = floats(8, 5)
LABELS = np.array([[3, 0, -1, 2, 1], [-1, 0, 0, 0, 0], [1, 1, 4, -1, 2], [0, 1, 2, 3, 4]])
FRAMES = np.log(np.exp(floats(6, 2, 4)) / np.exp(floats(6, 2, 4)).sum(-1, keepdims=True))
FOUR_TO_SIX = {"in_channels": 4, "out_channels": 6}


def places(n):
    """Where the largest of windows of 2 were, in an input twice as long along each axis."""
    x = np.random.default_rng(n).standard_normal([*OF[n + 2].shape[:2], *(2 * size for size in OF[n + 2].shape[2:])])
    return getattr(torch.nn.functional, f"max_pool{n}d")(torch.tensor(x), 2, return_indices=True)[1].numpy()


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
    *[(f"MaxUnpool{n}d", {"kernel_size": 2}, [OF[n + 2], places(n)]) for n in (1, 2, 3)],
    ("UpsamplingNearest2d", {"scale_factor": 2}, [X4]),
    ("UpsamplingBilinear2d", {"size": (5, 9)}, [X4]),
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
    *[(name, {"p": p}, [X5]) for name in ("Dropout3d", "AlphaDropout", "FeatureAlphaDropout") for p in (0.0, 1.0)],
    *[("LocalResponseNorm", {"size": size, "alpha": 0.3, "beta": 0.6, "k": 2.0}, [x])
      for size, x in ((2, X3), (3, X4), (5, X5))],
    # bags: rows of a table, joined
    *[("EmbeddingBag", {"num_embeddings": 7, "embedding_dim": 3, "mode": mode, "padding_idx": padding}, inputs)
      for mode in ("sum", "mean", "max") for padding in (None, 2, -1)
      for inputs in ([ints(7, 4, 5)], [ints(7, 9), np.array([0, 2, 2, 7])])],
    ("EmbeddingBag", {"num_embeddings": 7, "embedding_dim": 3, "include_last_offset": True},
     [ints(7, 9), np.array([0, 2, 2, 9])]),
    # losses by margins
    *[("MultiMarginLoss", {"p": p, "margin": 0.7, "reduction": r}, [LOGITS, ints(5, 8)])
      for p in (1, 2) for r in REDUCTIONS],
    ("MultiMarginLoss", {"weight": positive(5)}, [LOGITS, ints(5, 8)]),
    ("MultiMarginLoss", {"p": 2}, [floats(5), np.array(3)]),
    *[("MultiLabelMarginLoss", {"reduction": r}, [floats(4, 5), LABELS]) for r in REDUCTIONS],
    ("MultiLabelMarginLoss", {}, [floats(5), LABELS[0]]),
    *[("MultiLabelSoftMarginLoss", {"reduction": r}, [LOGITS, positive(8, 5)]) for r in REDUCTIONS],
    ("MultiLabelSoftMarginLoss", {"weight": positive(5)}, [LOGITS, ints(2, 8, 5)]),
    *[("TripletMarginWithDistanceLoss", {"swap": swap, "margin": 2.0}, [X2, X2 * 0.5 + 1, floats(6, 5).T.copy()])
      for swap in (False, True)],
    # alignments: as one row, apart, one example alone, of the greatest and the least lengths
    *[("CTCLoss", {"reduction": r}, [FRAMES, np.array([[1, 2, 2], [3, 1, 0]]), np.array([6, 5]), np.array([3, 2])])
      for r in REDUCTIONS],
    ("CTCLoss", {"blank": 2}, [FRAMES, np.array([1, 3, 3, 0]), np.array([6, 4]), np.array([3, 1])]),
    ("CTCLoss", {}, [FRAMES, np.array([1, 3]), np.array([3, 6]), np.array([0, 2])]),
    ("CTCLoss", {}, [FRAMES[:, 0], np.array([1, 1]), np.array(6), np.array(2)]),
    ("CTCLoss", {"reduction": "none"}, [FRAMES, np.array([[1, 1, 1], [3, 1, 0]]), np.array([4, 5]), np.array([3, 2])]),
    ("CTCLoss", {"zero_infinity": True, "reduction": "sum"},
     [FRAMES, np.array([[1, 1, 1], [3, 1, 0]]), np.array([4, 5]), np.array([3, 2])]),
]  # fmt: skip


@together("case", MODULES, ids=title)
def test_layers(case):
    same(*case)


@together("case", [case for case in MODULES if "Norm" in case[0]], ids=title)
def test_normalisation_in_evaluation(case):
    same(*case, train=False)


NEEDED = {
    "cutoffs": [2, 5], "d_model": 8, "dim": 1, "downscale_factor": 2, "embed_dim": 8, "embedding_dim": 3, "groups": 2,
    "hidden_size": 4, "in1_features": 6, "in2_features": 4, "in_channels": 4, "in_features": 6, "input_size": 6,
    "kernel_size": 3, "nhead": 2, "norm_type": 2, "normalized_shape": 6, "num_channels": 4,
    "num_embeddings": 7, "num_features": 4, "num_groups": 2, "num_heads": 2, "out_channels": 6, "out_features": 3,
    "output_size": 4, "padding": 1, "size": 5, "threshold": 0.5, "unflattened_size": (2, 3), "upscale_factor": 2,
    "value": 2.0,
}  # fmt: skip
OTHERS = {
    "align_corners": [True], "approximate": ["tanh"], "dilation": [2], "kernel_size": [2, (2, 2)], "max_norm": [1.0],
    "nonlinearity": ["relu"], "output_size": [(3, 4)], "padding": [(1, 1)], "padding_idx": [1],
    "padding_mode": ["reflect"], "reduction": ["sum"], "scale_factor": [2, (2, 1.5)], "size": [7, (7, 5)],
    "stride": [2, (2, 2)],
}  # fmt: skip
APART = ("scale_grad_by_freq", "add_bias_kv", "add_zero_attn", "proj_size", "sparse")  # refused, or below


def constructions():
    """Each module of PyTorch's that is here, with what it needs and each option in turn: name and options."""
    for name, kind in vars(torch.nn).items():
        if not (isinstance(kind, type) and issubclass(kind, torch.nn.Module) and hasattr(nn, name)):
            continue
        parameters = [p for p in inspect.signature(kind).parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
        needed = {p.name: NEEDED.get(p.name) for p in parameters if p.default is p.empty}
        if None in needed.values():  # a module that others are given to
            continue
        yield name, needed
        for p in parameters if "Transformer" not in name else ():  # which are large
            values = [not p.default] if isinstance(p.default, bool) else [*OTHERS.get(p.name, [])]
            if isinstance(p.default, float):
                values.append(p.default * 0.5 + 0.25)
            if p.name == "padding" and name.startswith("Conv") and "Transpose" not in name:
                values.append("same")
            yield from [(name, {**needed, p.name: value}) for value in values if p.name not in APART]


@together("name,options", constructions())
def test_modules_print_as_pytorchs(name, options):
    try:
        right = repr(getattr(torch.nn, name)(**options))
    except (RuntimeError, ValueError, TypeError):  # options that do not go together
        return
    assert repr(getattr(nn, name)(**options)) == right


def test_files_have_pytorchs_names():
    for file in nn.modules._FILES:
        for name in getattr(nn.modules, file).__all__:
            assert getattr(torch.nn, name).__module__ == f"torch.nn.modules.{file}"


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
    grads = [np.zeros(leaf.shape) if leaf.grad is None else np.asarray(leaf.grad.detach().numpy()) for leaf in leaves]
    return [o.detach().numpy() for o in outputs], grads


def alike(name, inputs, options):
    for found, expected in zip(*(called(e, name, inputs, options) for e in (dynamic, torch)), strict=True):
        close(found, expected, 1e-10)


def outputs_of(engine, name, inputs, options):
    """All that a function gives, indices too."""
    args = [converted(value, engine, []) for value in inputs]
    return [out.detach().numpy() for out in flat(getattr((nn if engine is dynamic else torch.nn).functional, name)(
        *args, **options))]  # fmt: skip


@pytest.mark.parametrize("n", [1, 2, 3])
def test_the_places_of_the_largest(n):
    for name, args in ((f"max_pool{n}d", (3, 2, 1)), (f"adaptive_max_pool{n}d", (2,))):
        inputs, options = [np.round(OF[n + 2]), *args], {"return_indices": True}  # with ties
        for found, right in zip(*(outputs_of(e, name, inputs, options) for e in (dynamic, torch)), strict=True):
            assert found.dtype == right.dtype
            np.testing.assert_array_equal(found, right)


CORNERS = np.stack(np.meshgrid([-1.0, 0.0, 1.0, 3.0], [-1.0, 1.0, -2.0]), -1)[None].repeat(2, 0)
FUNCTIONS = [
    *[("pad", [X3, size], {"mode": mode}) for mode in ("constant", "reflect", "replicate", "circular")
      for size in ((1, 2), (-1, 3), (-2, -2), (4, -5))],
    ("pad", [X4, (-1, 0, 2, -3, 1, 1)], {"value": 2.5}),
    ("avg_pool2d", [X4, 2], {"divisor_override": 7}),
    ("embedding_bag", [ints(7, 9), floats(7, 3), np.array([0, 4])], {"mode": "sum", "per_sample_weights": floats(9)}),
    ("embedding_bag", [ints(7, 3, 4), floats(7, 3)], {"mode": "sum", "per_sample_weights": floats(3, 4)}),
    ("embedding_bag", [ints(7, 9), floats(7, 3), np.array([0, 4, 4, 9])], {"include_last_offset": True, "mode": "max"}),
    *[("grid_sample", [x, 0.8 * floats(*shape)], {"mode": mode, "padding_mode": padding, "align_corners": align})
      for x, shape in ((X4, (2, 5, 3, 2)), (X5, (2, 2, 3, 4, 3)), (X4[:, :, :1], (2, 3, 4, 2)))
      for mode in ("bilinear", "nearest", *(["bicubic"] if len(shape) == 4 else []))
      for padding in ("zeros", "border", "reflection") for align in (False, True)],
    *[("grid_sample", [X4, CORNERS], {"mode": mode, "padding_mode": padding, "align_corners": True})
      for mode in ("bilinear", "nearest", "bicubic") for padding in ("zeros", "border", "reflection")],
    *[(f"max_pool{n}d", [OF[n + 2], 2, *more], {"return_indices": True, **options}) for n in (1, 2, 3)
      for more, options in (([], {}), ([1, 1], {}), ([3, 1], {"ceil_mode": True}), ([1], {"dilation": 2}))],
    *[(f"adaptive_max_pool{n}d", [OF[n + 2], size], {"return_indices": True}) for n in (1, 2, 3) for size in (1, 3)],
    *[(f"max_unpool{n}d", [OF[n + 2], places(n), 2], {}) for n in (1, 2, 3)],
    ("max_unpool2d", [X4, places(2), 2], {"output_size": (2, 4, 15, 12)}),
    ("multi_margin_loss", [floats(5), np.array([3])], {"reduction": "none"}),
    ("group_norm", [np.zeros((0, 4)), 2, positive(4), positive(4)], {}),
    *[(name, [np.array(0.7), 0], {}) for name in ("softmax", "softmin", "log_softmax")],
    ("kl_div", [np.array(-0.7), np.array(0.3)], {"reduction": "batchmean"}),
    *[("affine_grid", [floats(2, n, n + 1), (2, 1, 3, 4, 1, 2)[:n + 2]], {"align_corners": align})
      for n in (2, 3) for align in (False, True)],
]  # fmt: skip


@together("name,inputs,options", FUNCTIONS)
def test_functions(name, inputs, options):
    alike(name, inputs, options)


@together("name,options", [("SGD", {}), ("SGD", {"momentum": 0.9}), ("Adagrad", {"lr_decay": 0.1})])
def test_a_table_with_sparse_gradients_takes_the_same_steps(name, options):
    found = []
    for library in (torch, dynamic):
        table, bag = (kind(7, 3, sparse=True).double() for kind in (library.nn.Embedding, library.nn.EmbeddingBag))
        for module in (table, bag):
            module.weight.data.copy_(library.tensor(floats(7, 3)))
        parameters = [*table.parameters(), *bag.parameters()]
        optimizer = getattr(library.optim, name)(parameters, lr=0.1, **options)
        for places in ([[0, 1], [1, 1]], [[5, 1], [0, 5]]):
            optimizer.zero_grad()
            (table(library.tensor(places)) ** 2).sum().backward()
            (bag(library.tensor(places)) ** 3).sum().backward()
            optimizer.step()
        found.append([parameter.detach().numpy() for parameter in parameters])
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)
