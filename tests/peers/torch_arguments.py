"""Generated arguments for PyTorch's functions: every name is tried on all of them, and on its own where it needs some.

An argument is a value, or a `Made`, of which each framework makes a tensor of its own. A call that PyTorch refuses
says nothing; of the others, PyTorch's result is what is asked of us.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class Made(NamedTuple):
    """A tensor: its name in the table, and its values."""

    label: str
    array: np.ndarray[Any, Any]

    def __repr__(self) -> str:
        return self.label


class Call(NamedTuple):
    """Arguments by place and by name."""

    args: tuple[Any, ...]
    words: dict[str, Any]

    def __repr__(self) -> str:
        return ", ".join([*map(repr, self.args), *(f"{name}={value!r}" for name, value in self.words.items())])


def call(*args: Any, **words: Any) -> Call:
    """A call with these arguments."""
    return Call(args, words)


_random = np.random.default_rng(7)


def _floats(label: str, *shape: int, dtype: str = "float32") -> Made:
    return Made(
        label,
        (_random.permutation(np.arange(1, np.prod(shape, dtype=int) + 1)) * 0.37 - 1.6).reshape(shape).astype(dtype),
    )


def _ints(label: str, *shape: int, below: int = 3) -> Made:
    return Made(label, _random.integers(0, below, shape))


A, B, A2 = _floats("a", 2, 3), _floats("b", 2, 3), _floats("c", 2, 3)
UNIT = Made("unit", _random.uniform(0.1, 0.9, (2, 3)).astype("float32"))
SQUARE, SQUARE2 = _floats("square", 3, 3), _floats("square2", 3, 3)
POSITIVE = Made("positive", (SQUARE.array @ SQUARE.array.T + 3 * np.eye(3)).astype("float32"))
VECTOR, VECTOR2 = _floats("v", 3), _floats("w", 3)
CUBE, CUBE2 = _floats("cube", 2, 3, 4), _floats("cube2", 2, 4, 3)
IMAGE = _floats("image", 2, 2, 6, 6)
POINT, WIDE, ONE = _floats("point"), _floats("wide", 2, 3, dtype="float64"), _floats("one", 1)
WIDE_POINT = Made("wide_point", np.array(1.75))
INTS, INTS2 = _ints("ints", 2, 3), Made("ints2", np.array([[1, -2, 3], [4, 5, -6]]))
SHORT = Made("short", np.array([[1, -2, 3], [4, 5, -6]], np.int32))
BYTES = Made("bytes", np.array([[12, 3, 7], [10, 15, 0]], np.uint8))
MASK, MASK2 = (
    Made("mask", np.array([[True, False, True], [False, False, True]])),
    Made("mask2", np.eye(2, 3, dtype=bool)),
)
TIES = Made("ties", np.array([[1.0, 3.0, 3.0], [2.0, 0.0, 2.0]], "float32"))
HALVES = Made("halves", np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 1.25, 1.35], "float32"))
ODD = Made("odd", np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0], "float32"))
INDEX, INDEX2 = Made("index", np.array([2, 0])), Made("index2", np.array([[0, 1, 1], [1, 0, 0]]))
APART = Made("apart", np.array([[0, 1, 2], [2, 0, 1]]))
INT_VECTOR = Made("int_vector", np.array([3, 0, 1, 1, 2]))
EMPTY = Made("empty", np.zeros((0, 3), "float32"))
SORTED = Made("sorted", np.array([0.5, 1.0, 2.0, 3.0], "float32"))
HALF = Made("half", np.array([[0.5, 1.5, -2.25]], np.float16))

OPERANDS = (
    A, UNIT, SQUARE, VECTOR, CUBE, POINT, ONE, WIDE, INTS, INTS2, SHORT, BYTES, MASK, TIES, HALVES, ODD, HALF, EMPTY,
    POSITIVE, INT_VECTOR, IMAGE, INDEX,
)  # fmt: skip

PAIRS = (
    (A, B), (A, INTS), (INTS, INTS2), (INTS2, INTS), (INTS, A), (A, WIDE), (A, MASK), (MASK, MASK2), (MASK, INTS),
    (A, VECTOR),
    (A, POINT), (A, WIDE_POINT), (POINT, INTS), (INTS, POINT), (INTS, WIDE_POINT), (SHORT, INTS), (SHORT, BYTES),
    (BYTES, INTS),
    (SHORT, A), (INTS, WIDE), (A, 2), (A, 2.5), (A, 0), (A, True), (INTS2, 2), (INTS2, 2.5), (INTS2, -3),
    (BYTES, 250), (MASK, 2),
    (MASK, 2.5), (2, A), (2.5, A), (2, INTS), (2.5, INTS), (SQUARE, SQUARE2), (VECTOR, VECTOR2), (SQUARE, VECTOR),
    (A, SQUARE), (UNIT, UNIT),
    (CUBE, CUBE2), (VECTOR, SQUARE), (CUBE, 1), (A, A), (TIES, TIES), (HALF, 3), (HALF, A), (POSITIVE, SQUARE),
    (POSITIVE, VECTOR), (CUBE, SQUARE),
    (UNIT, MASK), (SHORT, 2), (INTS, MASK), (SORTED, A), (VECTOR, A), (A, 1), (A, -1), (IMAGE, 2),
)  # fmt: skip

DIMS = (
    call(dim=0), call(dim=1), call(dim=-1), call(dim=1, keepdim=True), call(1, True), call(dim=(0, 1)), call((0, 1)),
    call(axis=1),
    call(axis=1, keepdims=True), call(dim=0, keepdim=True), call(dim=None), call(dtype="float64"),
    call(0, dtype="float64"), call(dtype="int64"),
    call(1, descending=True), call(descending=True), call(dim=1, correction=0), call(unbiased=False),
    call(correction=0), call(1, False), call(1, 2),
    call(0, 1), call(1, 0), call(-1, -2), call(1, 1, 2), call(p=1), call(1, 0, 1), call(2, 1), call(0.5),
    call(diagonal=1), call(-1), call(0),
    call((3, 2)), call(3, 2), call(-1, 2), call([0, 1]), call((1, 0)), call(1, 0, dtype="float64"), call(decimals=1),
    call(min=0.2, max=0.8),
    call(0.2, 0.8), call(min=0.5), call(max=1), call(2, 3), call((2, 2)), call(shifts=1, dims=0), call(dims=(0,)),
    call(0.5, dim=1),
    call(as_tuple=True), call(sorted=True), call(return_counts=True), call(return_inverse=True), call(alpha=2),
    call(k=1), call(2, dim=1),
    call(2, dim=0), call((1, 2), dim=1), call(bins=4, min=-1, max=1), call(nan=0.5), call(negative_slope=0.3),
    call(0, 2), call(2, 0, 1), call(-1, 0),
    call(start_dim=1), call(1, -1), call("float64"), call(2, 2), call(4, 2, 1), call(6, 1), call(6, -1),
    call(2, 3, 1), call(1, 3), call(size=(3, 2)), call(1, 1), call(p=3), call(p="fro"),
    call(float("inf")), call(1, dim=1), call(2, 1, True), call(ord=1), call(True), call(upper=True),
)  # fmt: skip
DIM_OPERANDS = (A, CUBE, INTS, MASK, SQUARE, TIES, VECTOR, BYTES)

OTHERS = (
    call([A, B]), call([A, B], 1), call([A, B], dim=-1), call([A, INTS], 1), call([VECTOR, VECTOR2]),
    call([A, B], axis=0), call((A, B)),
    call([INTS, MASK]), call(VECTOR, SORTED), call(VECTOR, SORTED, indexing="ij"),
    call(VECTOR, SORTED, indexing="xy"), call(A, B, A2),
    call(MASK, A, B), call(MASK, A, 0.5), call(MASK, 1.0, 0.0), call(MASK, 1, 0), call(MASK, 1, A),
    call(MASK, A, INTS), call(MASK, INTS, 0.5), call(A, MASK, 0.5), call(A, MASK, POINT),
    call(A, B, alpha=2), call(A, B, 2), call(A, B, 0.5), call(A, POINT, POINT), call(A, B, WIDE), call(A, B, value=2),
    call(SQUARE, SQUARE, SQUARE2),
    call(VECTOR, SQUARE, VECTOR2), call(CUBE, CUBE, CUBE2), call(A, 1, INDEX2), call(A, 0, INDEX2), call(A, 1, INDEX),
    call(A, 0, Made("i", np.array([1, 0, 1]))),
    call(A, 1, APART, B), call(A, 0, INDEX2, B), call(A, 1, INDEX2, 0.5), call(A, 0, INDEX2, B, reduce="add"),
    call(A, 0, INDEX2, B, reduce="amax"),
    call(A, 0, INDEX2, B, reduce="sum"), call(A, 0, INDEX2, B, reduce="mean", include_self=False),
    call(A, 1, INDEX, _floats("two", 2, 2)), call(A, INDEX2), call(A, INDEX2, 0), call(A, INDEX2, dim=1),
    call(A, MASK, B),
    call(2, 3), call((2, 3)), call([2, 3]), call(3), call(0), call((3,)), call(()), call(2, 3, dtype="float64"),
    call((2, 3), dtype="int64"), call((2, 3), 1.5),
    call((2, 3), 2), call((2, 3), True), call((2,), 2, dtype="float64"), call(2, 3, requires_grad=True), call(0, 5),
    call(0, 5, 2), call(5, 0, -2), call(1.0, 2.0, 0.3), call(0, 1, 5), call(0.0, 1.0, 5),
    call(0, 1, steps=3), call(5.0), call(0, 1, 0.1), call(0, 10, 3, dtype="float32"), call(3, dtype="float32"),
    call(0, 3, 10), call(0, 5, size=(2,)), call(0, 5, (2, 3)), call(5, (2, 3)), call(2, 2, (2,)),
    call(A, dtype="float64"), call(A, 1.5), call(A, dtype="int64"), call([1, 2]), call([1.0, 2.0]), call(1.5),
    call(2), call([[True, False]]), call([1, 2.5], dtype="float64"), call([1, 2], dtype="float32"), call(True),
    call([]),
    call("ij,jk->ik", A, SQUARE), call("ij->ji", A), call("bij,bjk->bik", CUBE, CUBE2), call("i,j", VECTOR, SORTED),
    call(A, (2, 1)), call(A, 2, 2), call(A, 2, (0, 1)), call(A, INDEX), call(INT_VECTOR, 4),
    call(INT_VECTOR, minlength=6),
    call(SORTED, A, right=True), call(A, A2, rtol=0.1), call(A, A, 1e-5), call(SQUARE, 2), call(SQUARE, 0.5),
    call(SQUARE, "fro"), call(SQUARE, "nuc"), call(A, 2, 1), call(A, float("inf")), call(A, B, 1), call(A, B, dim=1),
    call(A, B, dim=0), call(A, B, p=1.0),
    call(A, _floats("d", 4, 3)), call(A, dim0=0, dim1=1), call(A, -1, True), call(A, 1, 3), call(A, 1, 0, 1),
    call(A, 1, -2), call(CUBE, 2, 1, 2), call(CUBE, 2, 2, 1), call(CUBE, 1, (3, 1)), call(CUBE, (1,)),
    call(CUBE, (-1, 6)), call(CUBE, 6, -1), call(A, 2, 3, 1), call(A, -1, 3), call(A, 4, 2, 3), call(A, (4, -1, 3)),
    call(VECTOR, 2, 3), call(VECTOR, (2, 3)), call(VECTOR, 2), call(VECTOR, -1), call(VECTOR, 1),
    call(A, INTS, rounding_mode="floor"), call(A, B, rounding_mode="trunc"), call(A, B, rounding_mode="floor"),
    call(INTS2, 2, rounding_mode="floor"), call(INTS2, 2, rounding_mode="trunc"), call(A, UNIT, 0.3), call(A, MASK),
    call(A, INDEX2, True), call(MASK, SORTED),
    call("float32"), call("int64"), call("float32", "int64"), call("float64", "float32"), call(2, A, B),
    call(A, A, A), call(A, "float64"), call(A, "int64"), call(A, "cpu"), call(A, WIDE, "x"),
    call(A, "float64", copy=True),
    call(VECTOR, INDEX, VECTOR2), call(VECTOR, 0, INDEX), call(VECTOR, 0, INDEX, _floats("e", 2)),
    call(VECTOR, 0, INDEX, 2.0), call(A, 0.1, True), call(INTS, 1, INDEX2), call(INTS, 1, INDEX2, INTS2),
    call(CUBE, 1, 2), call(A, 1, INT_VECTOR), call(A, INT_VECTOR), call(A, _ints("small", 3), 1),
    call(A, _ints("few", 2), dim=0),
)  # fmt: skip

_WEIGHT, _KERNEL, _BIAS = _floats("weight", 4, 3), _floats("kernel", 3, 2, 2, 2), _floats("bias", 3)
_LABELS, _SCORES = Made("labels", np.array([2, 0])), A
_IGNORED = Made("ignored", np.array([2, -100]))
_CLASSES = Made("classes", np.array([0.2, 0.3, 0.5], "float32"))
_SHARES = Made("shares", np.array([[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]], "float32"))
_POSITIONS = Made("positions", np.array([[0, 2, 1, 0], [1, 1, 0, 2]]))
_SIGNS = Made("signs", np.array([1.0, -1.0], "float32"))
_LOGS = Made("logs", np.log(_SHARES.array))

OWN = {
    "cross_entropy": (
        call(A, _LABELS),
        call(A, _LABELS, reduction="none"),
        call(A, _LABELS, reduction="sum"),
        call(A, _LABELS, label_smoothing=0.1),
        call(A, _LABELS, weight=_CLASSES),
        call(A, _LABELS, _CLASSES, reduction="none"),
        call(A, _SHARES),
        call(A, _SHARES, label_smoothing=0.2),
        call(A, _IGNORED),
        call(A, _IGNORED, reduction="none"),
        call(A, _LABELS, ignore_index=0),
        call(CUBE, _POSITIONS),
        call(CUBE, _POSITIONS, weight=_CLASSES),
        call(VECTOR, Made("label", np.array(1))),
        call(A, _LABELS, weight=_CLASSES, label_smoothing=0.1),
    ),
    "nll_loss": (
        call(_LOGS, _LABELS),
        call(_LOGS, _LABELS, reduction="none"),
        call(_LOGS, _LABELS, weight=_CLASSES),
        call(_LOGS, _IGNORED),
        call(CUBE, _POSITIONS),
        call(CUBE, _POSITIONS, reduction="sum"),
    ),
    "binary_cross_entropy": (
        call(UNIT, UNIT),
        call(UNIT, UNIT, UNIT),
        call(UNIT, UNIT, reduction="sum"),
        call(UNIT, UNIT, weight=UNIT),
    ),
    "binary_cross_entropy_with_logits": (
        call(A, UNIT),
        call(A, UNIT, pos_weight=_CLASSES),
        call(A, UNIT, UNIT),
        call(A, UNIT, reduction="none"),
    ),
    "kl_div": (
        call(_LOGS, _SHARES),
        call(_LOGS, _SHARES, reduction="batchmean"),
        call(_LOGS, _SHARES, reduction="sum"),
        call(_LOGS, _SHARES, reduction="none"),
        call(_LOGS, _LOGS, log_target=True, reduction="sum"),
    ),
    "embedding": (call(INTS, _WEIGHT), call(_WEIGHT, INTS), call(INTS, _WEIGHT, padding_idx=0)),
    "linear": (call(A, _WEIGHT), call(A, _WEIGHT, _floats("four", 4))),
    "conv2d": (
        call(IMAGE, _KERNEL),
        call(IMAGE, _KERNEL, _BIAS),
        call(IMAGE, _KERNEL, _BIAS, 2),
        call(IMAGE, _KERNEL, stride=2, padding=1),
        call(IMAGE, _KERNEL, padding="same"),
        call(IMAGE, _KERNEL, dilation=2),
    ),
    "conv1d": (call(CUBE, _floats("kernel1", 2, 3, 2)), call(CUBE, _floats("kernel1", 2, 3, 2), stride=2, padding=1)),
    "conv_transpose2d": (
        call(IMAGE, _floats("turned", 2, 3, 2, 2)),
        call(IMAGE, _floats("turned", 2, 3, 2, 2), stride=2),
    ),
    "conv_transpose1d": (call(CUBE, _floats("turned1", 3, 2, 2)), call(CUBE, _floats("turned1", 3, 2, 2), stride=2)),
    "batch_norm": (
        call(A, None, None, training=True),
        call(A, VECTOR, UNIT, False),
        call(A, VECTOR, _CLASSES, training=False),
        call(A, VECTOR, _CLASSES),
        call(A, None, None, _CLASSES, _BIAS, True, 0.1, 1e-5, False),
        call(A, _CLASSES, _BIAS, VECTOR, _CLASSES, True, 0.1, 1e-5, False),
    ),
    "layer_norm": (call(A, (3,)), call(A, (3,), _CLASSES, _BIAS), call(A, (2, 3)), call(A, (3,), eps=0.1)),
    "group_norm": (call(IMAGE, 2), call(IMAGE, 1, _floats("g", 2), _floats("h", 2))),
    "instance_norm": (call(IMAGE),),
    "rms_norm": (call(A, (3,)), call(A, (3,), _CLASSES)),
    "scaled_dot_product_attention": (call(CUBE, CUBE, CUBE), call(CUBE, CUBE, CUBE, is_causal=True)),
    "interpolate": (call(IMAGE, scale_factor=2), call(IMAGE, size=(3, 3), mode="bilinear")),
    "avg_pool2d": (call(IMAGE, 2), call(IMAGE, 3, 1, 1)),
    "max_pool2d": (call(IMAGE, 2), call(IMAGE, 3, 1, 1)),
    "one_hot": (call(INTS), call(INTS, 4), call(INT_VECTOR, num_classes=5)),
    "isin": (call(INTS, INDEX), call(A, B)),
    "block_diag": (call(A, SQUARE),),
    "polygamma": (call(1, UNIT),),
    "from_numpy": (call(np.arange(3.0)), call(np.arange(3))),
    "frombuffer": (),
    "margin_ranking_loss": (call(VECTOR, VECTOR2, VECTOR),),
    "dropout": (call(A, 0.0, True), call(A, 0.5, False), call(A, 0.5, training=False)),
    "item": (call(POINT), call(ONE), call(Made("n", np.array(3)))),
    "normal_": (call(A, 0.0, 0.0),),
    "cartesian_prod": (call(VECTOR, SORTED),),
    "broadcast_tensors": (call(A, VECTOR),),
    "broadcast_shapes": (call((2, 1), (3,)),),
    "atleast_2d": (call(VECTOR, POINT),),
    "view_as": (call(CUBE, _floats("other", 6, 4)),),
    "lerp": (call(A, B, 0.3), call(A, B, UNIT)),
    "index_put_": (call(A, (INDEX2,), POINT), call(VECTOR, (INDEX,), _floats("e", 2))),
    "index_put": (call(VECTOR, (INDEX,), _floats("e", 2)),),
    "tensor_split": (call(CUBE, 3, 2),),
    "trapezoid": (call(A), call(A, B), call(A, dx=0.5)),
    "tensordot": (call(A, A2, ([0], [0])), call(A, SQUARE, dims=1)),
}


def calls_of(name: str) -> list[Call]:
    """What a name is tried on."""
    generated = [call(x) for x in OPERANDS] + [call(*pair) for pair in PAIRS] + list(OTHERS)
    generated += [Call((x, *extra.args), extra.words) for x in DIM_OPERANDS for extra in DIMS]
    return [call(), *generated, *OWN.get(name, ())]
