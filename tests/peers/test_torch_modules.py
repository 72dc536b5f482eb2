"""Modules compared with PyTorch's: the same weights by state_dict, then outputs and gradients, in float64 to 1e-10."""

from __future__ import annotations

import numpy as np
import pytest

import dynamic
from dynamic import nn

pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings("ignore")]  # PyTorch warns of its own defaults
torch = pytest.importorskip("torch")
FLOAT32_INSIDE = ("CELU", "Hardsigmoid")
"""Modules whose constants PyTorch holds in float32."""


def floats(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape)


def ints(high, *shape):
    return np.random.default_rng(sum(shape)).integers(0, high, shape)


def positive(*shape):
    return np.random.default_rng(sum(shape)).uniform(0.05, 0.95, shape)


def signs(*shape):
    return np.where(floats(*shape) > 0, 1.0, -1.0)


X2, X3, X4 = floats(5, 6), floats(4, 6, 9), floats(2, 4, 8, 7)
CAUSAL = np.triu(np.ones((5, 5), bool), 1)
PADDING = np.array([[False] * 5, [False] * 3 + [True] * 2])

# name, arguments of the module, arguments of the call; arrays of floats among the latter are differentiated
FOUR_TO_SIX = {"in_channels": 4, "out_channels": 6}
MODULES = [
    ("Identity", {}, [X2]),
    ("Linear", {"in_features": 6, "out_features": 3}, [X2]),
    ("Linear", {"in_features": 9, "out_features": 3, "bias": False}, [X3]),
    ("Linear", {"in_features": 6, "out_features": 3}, [floats(6)]),
    ("Bilinear", {"in1_features": 6, "in2_features": 4, "out_features": 3}, [X2, floats(5, 4)]),
    ("Embedding", {"num_embeddings": 7, "embedding_dim": 3}, [ints(7, 4, 5)]),
    ("Embedding", {"num_embeddings": 7, "embedding_dim": 3, "padding_idx": 2}, [ints(7, 4, 5)]),
    ("Embedding", {"num_embeddings": 7, "embedding_dim": 3, "padding_idx": -1}, [ints(7, 4, 5)]),
    ("Embedding", {"num_embeddings": 7, "embedding_dim": 3, "max_norm": 0.5}, [ints(7, 4, 5)]),
    ("Embedding", {"num_embeddings": 7, "embedding_dim": 3, "max_norm": 0.9, "norm_type": 1.0}, [ints(7, 4, 5)]),
    ("EmbeddingBag", {"num_embeddings": 7, "embedding_dim": 3, "max_norm": 0.5, "mode": "sum"}, [ints(7, 4, 5)]),
    ("Flatten", {}, [X4]),
    ("Flatten", {"start_dim": 0, "end_dim": 1}, [X4]),
    ("Unflatten", {"dim": 1, "unflattened_size": (2, 3)}, [X2]),
    ("PixelShuffle", {"upscale_factor": 2}, [X4]),
    ("Upsample", {"scale_factor": 2}, [X4]),
    ("Upsample", {"size": (5, 9), "mode": "bilinear", "align_corners": True}, [X4]),
    ("ZeroPad2d", {"padding": (1, 2, 0, 3)}, [X4]),
    # activations
    *[(name, {}, [2.5 * X2]) for name in (
        "ReLU", "ReLU6", "ELU", "CELU", "SELU", "GELU", "SiLU", "Mish", "Sigmoid", "Tanh", "LogSigmoid", "LeakyReLU",
        "Hardtanh", "Hardsigmoid", "Hardswish", "Hardshrink", "Softshrink", "Softplus", "Softsign", "Tanhshrink", "GLU",
        "PReLU",
    )],
    ("ELU", {"alpha": 0.3}, [X2]),
    ("CELU", {"alpha": 0.3}, [X2]),
    ("GELU", {"approximate": "tanh"}, [X2]),
    ("LeakyReLU", {"negative_slope": 0.3}, [X2]),
    ("Hardtanh", {"min_val": -0.2, "max_val": 0.4}, [X2]),
    ("Hardshrink", {"lambd": 0.2}, [X2]),
    ("Softshrink", {"lambd": 0.2}, [X2]),
    ("Softplus", {"beta": 3.0, "threshold": 2.0}, [X2]),
    ("Threshold", {"threshold": 0.1, "value": -3.0}, [X2]),
    ("GLU", {"dim": 0}, [floats(6, 3)]),
    ("PReLU", {"num_parameters": 6, "init": 0.1}, [X3]),
    ("Softmax", {"dim": 0}, [X2]),
    ("Softmax", {"dim": -1}, [X4]),
    ("Softmin", {"dim": 1}, [X2]),
    ("LogSoftmax", {"dim": 1}, [X3]),
    ("Softmax2d", {}, [X4]),
    # windows
    ("Conv1d", {"in_channels": 6, "out_channels": 4, "kernel_size": 3}, [X3]),
    ("Conv1d", {"in_channels": 6, "out_channels": 4, "kernel_size": 3, "stride": 2, "padding": 1, "groups": 2}, [X3]),
    ("Conv1d", {"in_channels": 6, "out_channels": 4, "kernel_size": 3, "dilation": 2, "bias": False}, [X3]),
    ("Conv1d", {"in_channels": 6, "out_channels": 4, "kernel_size": 4, "padding": "same"}, [X3]),
    *[
        ("Conv2d", {**FOUR_TO_SIX, "kernel_size": 3, "padding": (1, 2), "padding_mode": mode}, [X4])
        for mode in ("zeros", "reflect", "replicate", "circular")
    ],
    ("Conv2d", {**FOUR_TO_SIX, "kernel_size": (3, 2), "stride": (1, 2), "groups": 2}, [X4]),
    ("Conv2d", {**FOUR_TO_SIX, "kernel_size": 3}, [floats(4, 8, 7)]),
    ("Conv2d", {**FOUR_TO_SIX, "kernel_size": (2, 3), "padding": "same", "padding_mode": "reflect"}, [X4]),
    ("Conv2d", {**FOUR_TO_SIX, "kernel_size": 3, "padding": "valid", "dilation": 2}, [X4]),
    ("ConvTranspose1d", {"in_channels": 6, "out_channels": 4, "kernel_size": 3, "stride": 2}, [X3]),
    ("ConvTranspose2d", {**FOUR_TO_SIX, "kernel_size": 3, "stride": 2, "padding": 1, "output_padding": 1}, [X4]),
    ("ConvTranspose2d", {**FOUR_TO_SIX, "kernel_size": 3, "groups": 2, "bias": False}, [X4]),
    ("MaxPool1d", {"kernel_size": 3}, [X3]),
    ("MaxPool1d", {"kernel_size": 3, "stride": 1, "padding": 1, "dilation": 2}, [X3]),
    ("MaxPool2d", {"kernel_size": 2}, [X4]),
    ("MaxPool2d", {"kernel_size": (3, 2), "stride": 2, "padding": 1, "ceil_mode": True}, [X4]),
    ("MaxPool2d", {"kernel_size": 2}, [floats(4, 8, 7)]),
    ("AvgPool1d", {"kernel_size": 3, "stride": 2, "padding": 1}, [X3]),
    ("AvgPool1d", {"kernel_size": 3, "padding": 1, "count_include_pad": False}, [X3]),
    ("AvgPool2d", {"kernel_size": 2}, [X4]),
    ("AvgPool2d", {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True, "count_include_pad": False}, [X4]),
    *[(f"Adaptive{kind}Pool1d", {"output_size": 4}, [X3]) for kind in ("Avg", "Max")],
    *[(f"Adaptive{kind}Pool2d", {"output_size": size}, [X4]) for kind in ("Avg", "Max")
      for size in (1, (3, None), (4, 7))],
    # normalisation
    ("BatchNorm1d", {"num_features": 6}, [X2]),
    ("BatchNorm1d", {"num_features": 6, "momentum": None, "eps": 1e-2}, [X3]),
    ("BatchNorm1d", {"num_features": 6, "affine": False, "track_running_stats": False}, [X3]),
    ("BatchNorm2d", {"num_features": 4, "momentum": 0.3}, [X4]),
    ("LayerNorm", {"normalized_shape": 6}, [X2]),
    ("LayerNorm", {"normalized_shape": (6, 9), "eps": 1e-2}, [X3]),
    ("LayerNorm", {"normalized_shape": 9, "elementwise_affine": False}, [X3]),
    ("LayerNorm", {"normalized_shape": 9, "bias": False}, [X3]),
    ("RMSNorm", {"normalized_shape": 9}, [X3]),
    ("RMSNorm", {"normalized_shape": (6, 9), "eps": 1e-3, "elementwise_affine": False}, [X3]),
    ("GroupNorm", {"num_groups": 2, "num_channels": 4}, [X4]),
    ("GroupNorm", {"num_groups": 3, "num_channels": 6, "affine": False, "eps": 1e-2}, [X3]),
    ("InstanceNorm1d", {"num_features": 6}, [X3]),
    ("InstanceNorm1d", {"num_features": 4}, [floats(4, 9)]),
    ("InstanceNorm2d", {"num_features": 4, "affine": True}, [X4]),
    ("Dropout", {"p": 0.0}, [X2]),
    ("Dropout", {"p": 1.0}, [X2]),
    # distances
    ("CosineSimilarity", {"dim": 1}, [X2, floats(5, 6) + 1]),
    ("PairwiseDistance", {"p": 2.0}, [X2, X2 + 1]),
    ("PairwiseDistance", {"p": 1.0, "keepdim": True}, [X2, X2 * 2]),
    # recurrent
    *[(kind, {"input_size": 9, "hidden_size": 5, **options}, [X3]) for kind in ("RNN", "LSTM", "GRU") for options in (
        {}, {"num_layers": 2, "batch_first": True}, {"bidirectional": True, "num_layers": 2}, {"bias": False},
    )],
    ("RNN", {"input_size": 9, "hidden_size": 5, "nonlinearity": "relu"}, [X3]),
    ("RNN", {"input_size": 9, "hidden_size": 5}, [X3, floats(1, 6, 5)]),
    ("GRU", {"input_size": 6, "hidden_size": 5}, [X2]),
    ("GRU", {"input_size": 6, "hidden_size": 5}, [X2, floats(1, 5)]),
    ("LSTM", {"input_size": 9, "hidden_size": 5}, [X3, (floats(1, 6, 5), floats(1, 6, 5) / 2)]),
    *[(kind, {"input_size": 6, "hidden_size": 5}, [X2]) for kind in ("RNNCell", "LSTMCell", "GRUCell")],
    ("RNNCell", {"input_size": 6, "hidden_size": 4, "nonlinearity": "relu", "bias": False}, [X2, floats(5, 4)]),
    ("LSTMCell", {"input_size": 6, "hidden_size": 4}, [X2, (floats(5, 4), floats(5, 4) * 2)]),
    ("GRUCell", {"input_size": 6, "hidden_size": 4}, [floats(6), floats(4)]),
]  # fmt: skip

ATTENTION = [
    ({}, 3, {}),
    ({"bias": False}, 3, {"need_weights": False}),
    ({"batch_first": True}, 3, {"average_attn_weights": False}),
    ({"kdim": 3, "vdim": 7}, 3, {}),
    ({}, 2, {}),
    ({}, 3, {"attn_mask": CAUSAL}),
    ({}, 3, {"attn_mask": CAUSAL, "is_causal": True}),
    ({}, 3, {"attn_mask": floats(5, 5)}),
    ({}, 3, {"attn_mask": floats(4, 5, 5)}),
    ({"batch_first": True}, 3, {"key_padding_mask": PADDING}),
    ({"batch_first": True}, 3, {"key_padding_mask": PADDING, "attn_mask": CAUSAL}),
    ({"batch_first": True}, 3, {"key_padding_mask": PADDING, "attn_mask": floats(5, 5), "need_weights": False}),
]

LOGITS, LABELS = floats(8, 5), ints(5, 8)
WEIGHT = positive(5)
PROBABILITIES = np.exp(LOGITS) / np.exp(LOGITS).sum(1, keepdims=True)
GAPS = np.where(np.arange(8) % 3 == 0, -100, LABELS)
REDUCTIONS = ("mean", "sum", "none")
Y2 = floats(5, 6) * 0.5 + 0.1
LOSSES = [
    *[
        (name, {"reduction": r}, [X2, Y2])
        for name in ("MSELoss", "L1Loss", "SmoothL1Loss", "HuberLoss")
        for r in REDUCTIONS
    ],
    ("SmoothL1Loss", {"beta": 0.2}, [X2, Y2]),
    ("HuberLoss", {"delta": 0.2}, [X2, Y2]),
    *[("CrossEntropyLoss", {"reduction": r}, [LOGITS, LABELS]) for r in REDUCTIONS],
    *[
        ("CrossEntropyLoss", {"weight": WEIGHT, "label_smoothing": 0.1, "reduction": r}, [LOGITS, LABELS])
        for r in REDUCTIONS
    ],
    ("CrossEntropyLoss", {}, [LOGITS, GAPS]),
    ("CrossEntropyLoss", {"ignore_index": 2, "weight": WEIGHT}, [LOGITS, LABELS]),
    ("CrossEntropyLoss", {"ignore_index": 2, "label_smoothing": 0.2}, [LOGITS, LABELS]),
    ("CrossEntropyLoss", {}, [LOGITS, PROBABILITIES[::-1].copy()]),
    ("CrossEntropyLoss", {"weight": WEIGHT, "label_smoothing": 0.1}, [LOGITS, PROBABILITIES[::-1].copy()]),
    ("CrossEntropyLoss", {}, [X4, ints(4, 2, 8, 7)]),
    ("CrossEntropyLoss", {"weight": positive(4)}, [X4, ints(4, 2, 8, 7)]),
    ("CrossEntropyLoss", {}, [floats(5), np.array(3)]),
    *[("NLLLoss", {"reduction": r}, [np.log(PROBABILITIES), LABELS]) for r in REDUCTIONS],
    ("NLLLoss", {"weight": WEIGHT, "ignore_index": 1}, [np.log(PROBABILITIES), LABELS]),
    ("NLLLoss", {}, [X4, ints(4, 2, 8, 7)]),
    *[("BCELoss", {"reduction": r}, [positive(4, 3), positive(3, 4).T.copy()]) for r in REDUCTIONS],
    ("BCELoss", {"weight": positive(3)}, [positive(4, 3), positive(4, 3)]),
    ("BCEWithLogitsLoss", {}, [X2 * 20, positive(5, 6)]),
    ("BCEWithLogitsLoss", {"weight": positive(6), "pos_weight": positive(6) * 3}, [X2, positive(5, 6)]),
    *[("KLDivLoss", {"reduction": r}, [np.log(PROBABILITIES), positive(8, 5)]) for r in (*REDUCTIONS, "batchmean")],
    ("KLDivLoss", {"log_target": True, "reduction": "batchmean"}, [np.log(PROBABILITIES), LOGITS]),
    ("PoissonNLLLoss", {}, [X2, ints(5, 5, 6).astype(float)]),
    ("PoissonNLLLoss", {"log_input": False, "full": True}, [positive(5, 6), ints(5, 5, 6) + 1.0]),
    ("GaussianNLLLoss", {}, [X2, Y2, positive(5, 6)]),
    ("GaussianNLLLoss", {"full": True, "reduction": "sum"}, [X2, Y2, positive(5, 1)]),
    ("MarginRankingLoss", {"margin": 0.3}, [X2, Y2, signs(5, 6)]),
    ("HingeEmbeddingLoss", {"margin": 0.7}, [X2, signs(5, 6)]),
    ("SoftMarginLoss", {}, [X2, signs(5, 6).astype(int)]),
    ("CosineEmbeddingLoss", {"margin": 0.1}, [X2, Y2 + 1, signs(5)]),
    ("TripletMarginLoss", {}, [X2, Y2, floats(6, 5).T.copy()]),
    ("TripletMarginLoss", {"swap": True, "margin": 2.0, "p": 1.0}, [X2, Y2, floats(6, 5).T.copy()]),
]


def converted(value, engine, leaves):
    """An argument of a call in one engine; the leaves that are differentiated are noted."""
    if isinstance(value, tuple):
        return tuple(converted(one, engine, leaves) for one in value)
    if not isinstance(value, np.ndarray):
        return value
    made = engine.tensor(value.copy())
    if value.dtype.kind == "f":
        leaves.append(made.requires_grad_())
    return made


def flat(value):
    if isinstance(value, (tuple, list)):
        return [one for part in value for one in flat(part)]
    return [] if value is None else [value]


def module_of(engine, package, name, options):
    """A module in double precision; options that are arrays are tensors."""
    given = {k: engine.tensor(v) if isinstance(v, np.ndarray) else v for k, v in options.items()}
    return getattr(package, name)(**given).double()


def ran(engine, module, inputs, options):
    """Outputs, and the gradients of a fixed mixture of them in all inputs and parameters."""
    leaves = []
    args = [converted(value, engine, leaves) for value in inputs]
    named = {key: converted(value, engine, []) for key, value in options.items()}
    outputs = [one for one in flat(module(*args, **named)) if one.dtype in (engine.float64, np.float64)]
    total = sum((one * engine.tensor(floats(*one.shape))).sum() for one in outputs)
    if total.requires_grad:
        total.backward()
    grads = [leaf.grad for leaf in (*leaves, *module.parameters())]
    return [o.detach().numpy() for o in outputs], [None if g is None else np.asarray(g.detach().numpy()) for g in grads]


def same(name, options, inputs, call=None, train=True, tolerance=1e-10):
    theirs, ours = (module_of(engine, package, name, options) for engine, package in ((torch, torch.nn), (dynamic, nn)))
    state = {key: value.numpy() for key, value in theirs.state_dict().items()}
    assert list(ours.state_dict()) == list(state)
    ours.load_state_dict(state)
    theirs.train(train), ours.train(train)
    expected, found = ran(torch, theirs, inputs, call or {}), ran(dynamic, ours, inputs, call or {})
    close(found[0], expected[0], tolerance)
    close(found[1], expected[1], tolerance)
    for key, value in theirs.state_dict().items():
        np.testing.assert_allclose(ours.state_dict()[key].numpy(), value.numpy(), rtol=tolerance)


def close(found, expected, tolerance):
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        if theirs is None:
            assert ours is None or not np.any(ours)
        else:
            assert ours.shape == tuple(theirs.shape)
            np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)


def label(case):
    return f"{case[0]}-{'-'.join(f'{k}={v}' for k, v in case[1].items() if not isinstance(v, np.ndarray))}"


@pytest.mark.parametrize("case", MODULES, ids=label)
def test_modules(case):
    same(*case, tolerance=1e-6 if case[0] in FLOAT32_INSIDE else 1e-10)


@pytest.mark.parametrize(
    "case", [case for case in MODULES if "BatchNorm" in case[0] or "Instance" in case[0]], ids=label
)
def test_modules_in_evaluation(case):
    same(*case, train=False)


@pytest.mark.parametrize("case", LOSSES, ids=label)
def test_losses(case):
    same(*case)


@pytest.mark.parametrize(("options", "axes", "call"), ATTENTION, ids=str)
def test_attention(options, axes, call):
    widths = 8, options.get("kdim", 8), options.get("vdim", 8)
    lead = (2, 5) if options.get("batch_first") else (5, 2)
    inputs = [floats(*(lead if axes == 3 else (5,)), width) + i / 7 for i, width in enumerate(widths)]
    same("MultiheadAttention", {"embed_dim": 8, "num_heads": 2, **options}, inputs, call)
    if "kdim" not in options:  # the same tensor three times is projected at once
        x, *_ = inputs
        theirs, ours = (
            torch.nn.MultiheadAttention(8, 2, **options).double(),
            nn.MultiheadAttention(8, 2, **options).double(),
        )
        ours.load_state_dict({key: value.numpy() for key, value in theirs.state_dict().items()})
        found = [
            module(*(3 * [engine.tensor(x)]), **{k: converted(v, engine, []) for k, v in call.items()})[0]
            for engine, module in ((dynamic, ours), (torch, theirs))
        ]
        np.testing.assert_allclose(found[0].detach().numpy(), found[1].detach().numpy(), rtol=1e-10, atol=1e-10)


SMALL = {"d_model": 8, "nhead": 2, "dim_feedforward": 12, "dropout": 0.0}


@pytest.mark.parametrize(
    "options",
    [{}, {"norm_first": True}, {"activation": "gelu"}, {"batch_first": True, "bias": False, "layer_norm_eps": 1e-3}],
    ids=str,
)
@pytest.mark.parametrize("train", [True, False])
def test_transformer_layers(options, train):
    same("TransformerEncoderLayer", {**SMALL, **options}, [floats(5, 2, 8)], {}, train)
    if not options.get("batch_first"):
        same("TransformerEncoderLayer", {**SMALL, **options}, [floats(5, 2, 8)], {"src_mask": CAUSAL}, train)
    same("TransformerDecoderLayer", {**SMALL, **options}, [floats(5, 2, 8), floats(5, 2, 8) + 1], {}, train)


def test_stacks_of_transformer_layers():
    kinds = {}
    for engine, package in ((torch, torch.nn), (dynamic, nn)):
        layer = package.TransformerEncoderLayer(**SMALL)
        kinds[engine] = package.TransformerEncoder(layer, 2, norm=package.LayerNorm(8)).double()
    kinds[dynamic].load_state_dict({k: v.numpy() for k, v in kinds[torch].state_dict().items()})
    mask = {"mask": CAUSAL, "src_key_padding_mask": PADDING}
    for found, expected in zip(*(ran(e, kinds[e], [floats(5, 2, 8)], mask) for e in (dynamic, torch)), strict=True):
        close(found, expected, 1e-10)
    same(
        "Transformer",
        {
            "d_model": 8,
            "nhead": 2,
            "num_encoder_layers": 2,
            "num_decoder_layers": 2,
            "dim_feedforward": 12,
            "dropout": 0.0,
        },
        [floats(5, 2, 8), floats(4, 2, 8)],
        {"tgt_mask": np.triu(np.ones((4, 4), bool), 1)},
    )
