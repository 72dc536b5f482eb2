"""Printing: the text of a tensor and the names of backward ops, against what PyTorch 2.13 printed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import dynamic
from dynamic.node import grad_fn_name
from graphs.errors import DTypeError
from graphs.frontends.torch.printing import format_tensor
from tests.helpers.together import together

GOLDEN = json.loads((Path(__file__).parents[1] / "data" / "printing_golden.json").read_text(encoding="utf-8"))["cases"]
DTYPES = ("float16", "float32", "float64", "int8", "int16", "int32", "int64",
          "uint8", "uint16", "uint32", "uint64", "bool")  # fmt: skip


def array_of(case: dict[str, Any]) -> np.ndarray:
    """A golden case's array: its values, repeated in order until the shape is full."""
    values = [float(value) if isinstance(value, str) else value for value in case["values"]]
    with np.errstate(over="ignore"):
        return np.resize(np.array(values, dtype=case["dtype"]), case["shape"])


def text_of(case: dict[str, Any]) -> str:
    return format_tensor(array_of(case), requires_grad=case["requires_grad"], grad_fn=case["grad_fn"])


@together("case", GOLDEN, ids=lambda case: f"{case['dtype']}{case['shape']}")
def test_text_is_what_pytorch_printed(case):
    assert text_of(case) == "\n".join(case["text"])


# ---- properties ----

numbers = st.floats(width=32, allow_subnormal=False)
small_shapes = hnp.array_shapes(min_dims=0, max_dims=4, min_side=1, max_side=6)


def parsed(text: str) -> list[float]:
    body = text[len("tensor(") : text.rindex("]") + 1 if "]" in text else len(text) - 1]
    return [float(word) for word in re.findall(r"[^\s\[\],]+", body)]


@given(hnp.arrays(np.float32, small_shapes, elements=numbers))
def test_values_read_back_within_the_printed_precision(array):
    text = format_tensor(array)
    scale = np.abs(array.ravel().astype(float)) if "e+" in text or "e-" in text else 1.0
    expected = array.ravel().astype(float)
    with np.errstate(invalid="ignore"):
        error = np.abs(np.array(parsed(text)) - expected)
    unequal = error > 5.0001e-5 * scale
    assert not unequal[np.isfinite(expected)].any()
    np.testing.assert_array_equal(np.array(parsed(text))[~np.isfinite(expected)], expected[~np.isfinite(expected)])


@given(hnp.arrays(st.sampled_from([np.int8, np.int64, np.uint64]), small_shapes))
def test_integers_read_back_exactly(array):
    body = format_tensor(array).split("dtype")[0]
    assert [int(word) for word in re.findall(r"-?\d+", body)] == array.ravel().tolist()


@given(hnp.arrays(np.float32, small_shapes, elements=numbers))
def test_brackets_nest_as_deep_as_the_shape(array):
    text = format_tensor(array)
    assert text.startswith("tensor(" + "[" * array.ndim)
    assert text.count("[") == text.count("]") == sum(np.prod(array.shape[:n], dtype=int) for n in range(array.ndim))


# Zeros, nan and inf take no part in the width of a column, in PyTorch as here, so lines of them may run over.
@given(hnp.arrays(np.float32, st.tuples(st.integers(1, 200)), elements=st.floats(0.5, 9, width=32)))
def test_lines_of_nonzero_values_fit_80_columns(array):
    assert max(map(len, format_tensor(array, grad_fn="MulBackward0").split("\n"))) <= 80


@given(st.integers(1001, 5000))
def test_a_summary_does_not_grow_with_the_tensor(length):
    text = format_tensor(np.arange(length))
    assert re.fullmatch(rf"tensor\(\[ +0, +1, +2,  \.\.\., +{length - 3}, +{length - 2}, {length - 1}\]\)", text)


def test_layout_in_memory_does_not_show():
    array = np.arange(12.0, dtype=np.float32).reshape(3, 4)
    assert format_tensor(np.asfortranarray(array)) == format_tensor(array)
    assert format_tensor(array.astype(">f4")) == format_tensor(array)
    assert format_tensor(array.T[::-1]) == format_tensor(array.T[::-1].copy())


def test_printing_leaves_the_array_alone():
    array = np.array([np.nan, np.inf, -0.0, 1e-30], dtype=np.float32)
    before = array.tobytes()
    format_tensor(array)
    assert array.tobytes() == before


@pytest.mark.parametrize("array", [np.array([1j]), np.array(["a"]), np.array([None])])
def test_other_dtypes_are_refused(array):
    with pytest.raises(DTypeError, match="tensors hold bools, ints or floats"):
        format_tensor(array)


# ---- names of backward ops: our op and attributes, the name, and the PyTorch expression that shows it ----

Expression = Callable[[Any, Any, Any, Any], Any]  # of torch, a matrix, a vector, a batch of matrices

NAMES: list[tuple[str, dict[str, Any], str, Expression]] = [
    ("add", {}, "AddBackward0", lambda t, m, v, b: m + m),
    ("subtract", {}, "SubBackward0", lambda t, m, v, b: m - m),
    ("subtract", {"ndims": (2, None)}, "SubBackward0", lambda t, m, v, b: m - 1),
    ("subtract", {"ndims": (None, 2)}, "RsubBackward1", lambda t, m, v, b: 1 - m),
    ("multiply", {"ndims": (None, 2)}, "MulBackward0", lambda t, m, v, b: 2 * m),
    ("divide", {"ndims": (2, None)}, "DivBackward0", lambda t, m, v, b: m / 2),
    ("divide", {"ndims": (None, 2)}, "MulBackward0", lambda t, m, v, b: 2 / m),
    ("negative", {}, "NegBackward0", lambda t, m, v, b: -m),
    ("remainder", {"ndims": (2, None)}, "RemainderBackward0", lambda t, m, v, b: m % 2),
    ("remainder", {"ndims": (2, 2)}, "RemainderBackward1", lambda t, m, v, b: m % m),
    ("pow", {}, "PowBackward0", lambda t, m, v, b: m**2),
    ("pow", {"ndims": (2, 0)}, "PowBackward0", lambda t, m, v, b: m**2),
    ("pow", {"ndims": (2, None)}, "PowBackward0", lambda t, m, v, b: m**2),
    ("pow", {"ndims": (2, 1)}, "PowBackward1", lambda t, m, v, b: m**v),
    ("pow", {"ndims": (None, 2)}, "PowBackward2", lambda t, m, v, b: 2**m),
    ("square", {}, "PowBackward0", lambda t, m, v, b: m.square()),
    ("sum", {}, "SumBackward0", lambda t, m, v, b: m.sum()),
    ("sum", {"axis": (0, 1), "ndims": (2,)}, "SumBackward0", lambda t, m, v, b: m.sum()),
    ("sum", {"axis": (0,), "ndims": (2,)}, "SumBackward1", lambda t, m, v, b: m.sum(0)),
    ("sum", {"axis": (0, 1), "keepdims": True, "ndims": (2,)}, "SumBackward1",
     lambda t, m, v, b: m.sum((0, 1), keepdim=True)),
    ("sum", {"axis": 1}, "SumBackward1", lambda t, m, v, b: m.sum(1)),
    ("mean", {"axis": None}, "MeanBackward0", lambda t, m, v, b: m.mean()),
    ("mean", {"axis": 0}, "MeanBackward1", lambda t, m, v, b: m.mean(0)),
    ("prod", {}, "ProdBackward0", lambda t, m, v, b: m.prod()),
    ("prod", {"axis": 0}, "ProdBackward1", lambda t, m, v, b: m.prod(0)),
    ("max", {}, "MaxBackward1", lambda t, m, v, b: m.max()),
    ("max", {"axis": 0}, "AmaxBackward0", lambda t, m, v, b: m.amax(0)),
    ("min", {}, "MinBackward1", lambda t, m, v, b: m.min()),
    ("min", {"axis": 0}, "AminBackward0", lambda t, m, v, b: m.amin(0)),
    ("var", {}, "VarBackward0", lambda t, m, v, b: m.var()),
    ("cumulative_sum", {"axis": 0}, "CumsumBackward0", lambda t, m, v, b: m.cumsum(0)),
    ("matmul", {}, "MmBackward0", lambda t, m, v, b: m @ m),
    ("matmul", {"ndims": (2, 2)}, "MmBackward0", lambda t, m, v, b: m @ m),
    ("matmul", {"ndims": (2, 1)}, "MvBackward0", lambda t, m, v, b: m @ v),
    ("matmul", {"ndims": (1, 2)}, "SqueezeBackward4", lambda t, m, v, b: v @ m),
    ("matmul", {"ndims": (1, 1)}, "DotBackward0", lambda t, m, v, b: v @ v),
    ("matmul", {"ndims": (3, 3)}, "UnsafeViewBackward0", lambda t, m, v, b: b @ b),
    ("matmul", {"ndims": (3, 2)}, "UnsafeViewBackward0", lambda t, m, v, b: b @ m),
    ("matmul", {"ndims": (2, 3)}, "CloneBackward0", lambda t, m, v, b: m @ b),
    ("matmul", {"ndims": (3, 1)}, "UnsafeViewBackward0", lambda t, m, v, b: b @ v),
    ("matmul", {"ndims": (1, 3)}, "UnsafeViewBackward0", lambda t, m, v, b: v @ b),
    ("exp", {}, "ExpBackward0", lambda t, m, v, b: m.exp()),
    ("expm1", {}, "Expm1Backward0", lambda t, m, v, b: m.expm1()),
    ("log", {}, "LogBackward0", lambda t, m, v, b: m.log()),
    ("log1p", {}, "Log1PBackward0", lambda t, m, v, b: m.log1p()),
    ("log2", {}, "Log2Backward0", lambda t, m, v, b: m.log2()),
    ("logaddexp", {}, "LogaddexpBackward0", lambda t, m, v, b: t.logaddexp(m, m)),
    ("tanh", {}, "TanhBackward0", lambda t, m, v, b: m.tanh()),
    ("sigmoid", {}, "SigmoidBackward0", lambda t, m, v, b: m.sigmoid()),
    ("relu", {}, "ReluBackward0", lambda t, m, v, b: m.relu()),
    ("sin", {}, "SinBackward0", lambda t, m, v, b: m.sin()),
    ("cos", {}, "CosBackward0", lambda t, m, v, b: m.cos()),
    ("atan2", {}, "Atan2Backward0", lambda t, m, v, b: t.atan2(m, m)),
    ("sqrt", {}, "SqrtBackward0", lambda t, m, v, b: m.sqrt()),
    ("abs", {}, "AbsBackward0", lambda t, m, v, b: m.abs()),
    ("where", {}, "WhereBackward0", lambda t, m, v, b: t.where(m > 0, m, m)),
    ("maximum", {}, "MaximumBackward0", lambda t, m, v, b: t.maximum(m, m)),
    ("minimum", {}, "MinimumBackward0", lambda t, m, v, b: t.minimum(m, m)),
    ("clip", {"min": 0, "max": 1}, "ClampBackward1", lambda t, m, v, b: m.clip(0, 1)),
    ("clip", {"ndims": (2, 1, 1)}, "ClampBackward0", lambda t, m, v, b: m.clip(v, v)),
    ("softmax", {"axis": 0}, "SoftmaxBackward0", lambda t, m, v, b: m.softmax(0)),
    ("log_softmax", {"axis": 0}, "LogSoftmaxBackward0", lambda t, m, v, b: m.log_softmax(0)),
    ("softmax_gradient", {"axis": 0}, "SoftmaxBackwardDataBackward0",
     lambda t, m, v, b: t.autograd.grad((m.softmax(0) ** 2).sum(), m, create_graph=True)[0]),
    ("log_softmax_gradient", {"axis": 0}, "LogSoftmaxBackwardDataBackward0",
     lambda t, m, v, b: t.autograd.grad((m.log_softmax(0) ** 2).sum(), m, create_graph=True)[0]),
    ("logsumexp", {"axis": 0}, "LogsumexpBackward0", lambda t, m, v, b: m.logsumexp(0)),
    ("layer_norm", {}, "NativeLayerNormBackward0", lambda t, m, v, b: t.nn.functional.layer_norm(m, (3,))),
    ("linear", {}, "AddmmBackward0", lambda t, m, v, b: t.nn.functional.linear(m, m, v)),
    ("conv2d", {}, "ConvolutionBackward0", lambda t, m, v, b: t.conv2d(b[None], b[None])),
    ("max_pool2d", {}, "MaxPool2DWithIndicesBackward0", lambda t, m, v, b: t.max_pool2d(b, 2)),
    ("embedding", {}, "EmbeddingBackward0", lambda t, m, v, b: t.embedding(m, t.tensor([0]))),
    ("nll_loss", {}, "NllLossBackward0",
     lambda t, m, v, b: t.nn.functional.cross_entropy(m, t.tensor([0, 1, 2]))),
    ("reshape", {"shape": (9,)}, "ViewBackward0", lambda t, m, v, b: m.reshape(9)),
    ("permute_dims", {"axes": (1, 0)}, "PermuteBackward0", lambda t, m, v, b: m.T),
    ("matrix_transpose", {}, "TransposeBackward0", lambda t, m, v, b: m.mT),
    ("broadcast_to", {}, "ExpandBackward0", lambda t, m, v, b: t.broadcast_to(v, (2, 3))),
    ("squeeze", {}, "SqueezeBackward0", lambda t, m, v, b: m.squeeze()),
    ("squeeze", {"axis": (0,)}, "SqueezeBackward1", lambda t, m, v, b: m[None].squeeze(0)),
    ("squeeze", {"axis": (0, 1)}, "SqueezeBackward2", lambda t, m, v, b: m[None, None].squeeze((0, 1))),
    ("expand_dims", {"axis": 0}, "UnsqueezeBackward0", lambda t, m, v, b: m.unsqueeze(0)),
    ("concat", {}, "CatBackward0", lambda t, m, v, b: t.concat([m, m])),
    ("stack", {}, "StackBackward0", lambda t, m, v, b: t.stack([m, m])),
    ("flip", {}, "FlipBackward0", lambda t, m, v, b: m.flip(0)),
    ("tile", {}, "RepeatBackward0", lambda t, m, v, b: m.tile(2)),
    ("pad", {}, "ConstantPadNdBackward0", lambda t, m, v, b: t.nn.functional.pad(m, (1, 1))),
    ("astype", {"dtype": "float64"}, "ToCopyBackward0", lambda t, m, v, b: m.double()),
    ("take", {"axis": 0}, "IndexSelectBackward0", lambda t, m, v, b: m.index_select(0, t.tensor([0]))),
    ("take", {}, "TakeBackward0", lambda t, m, v, b: m.take(t.tensor([0]))),
    ("take_along_axis", {}, "GatherBackward0", lambda t, m, v, b: t.take_along_dim(m, t.tensor([[0]]), 1)),
    ("getitem", {"key": 0}, "SelectBackward0", lambda t, m, v, b: b[0]),
    ("getitem", {"key": np.s_[:]}, "SliceBackward0", lambda t, m, v, b: b[:]),
    ("getitem", {"key": np.s_[...]}, "AliasBackward0", lambda t, m, v, b: b[...]),
    ("getitem", {"key": np.s_[:, :]}, "AliasBackward0", lambda t, m, v, b: b[:, :]),
    ("getitem", {"key": np.s_[1:]}, "SliceBackward0", lambda t, m, v, b: b[1:]),
    ("getitem", {"key": np.s_[0, :]}, "SelectBackward0", lambda t, m, v, b: b[0, :]),
    ("getitem", {"key": np.s_[0, 1:]}, "SliceBackward0", lambda t, m, v, b: b[0, 1:]),
    ("getitem", {"key": np.s_[1:, 0]}, "SelectBackward0", lambda t, m, v, b: b[1:, 0]),
    ("getitem", {"key": np.s_[..., None]}, "UnsqueezeBackward0", lambda t, m, v, b: b[..., None]),
    ("getitem", {"key": np.s_[None, 1:]}, "SliceBackward0", lambda t, m, v, b: b[None, 1:]),
    ("getitem", {"key": (np.array([0]), 0)}, "IndexBackward0", lambda t, m, v, b: b[t.tensor([0]), 0]),
    ("getitem", {"key": ([0, 1], None)}, "IndexBackward0", lambda t, m, v, b: b[[0, 1], None]),
    ("getitem", {"key": np.array([True, False])}, "IndexBackward0", lambda t, m, v, b: m[m > 0]),
]  # fmt: skip


@together(("op", "attrs", "name"), [case[:3] for case in NAMES])
def test_backward_names(op, attrs, name):
    assert grad_fn_name(op, attrs) == name


def test_an_unknown_op_is_named_after_itself():
    assert grad_fn_name("my_new_op", {}) == "MyNewOpBackward0"


def test_the_textbook_line():
    array = np.array([2.0, -2.0, 4.0], dtype=np.float32)
    text = format_tensor(array, requires_grad=True, grad_fn=grad_fn_name("multiply", {}))
    assert text == "tensor([ 2., -2.,  4.], grad_fn=<MulBackward0>)"


# ---- against PyTorch itself, where it is installed ----


def random_array(rng: np.random.Generator) -> np.ndarray:
    shape = tuple(rng.integers(0 if rng.random() < 0.1 else 1, 12, size=rng.integers(0, 5)))
    if rng.random() < 0.1:
        shape = (int(rng.integers(995, 1010)), *shape[:1])
    dtype = np.dtype(str(rng.choice(DTYPES)))
    if dtype.kind == "b":
        return np.asarray(rng.random(shape) < 0.5)
    if dtype.kind != "f":
        bounds = np.iinfo(dtype)
        raw = np.asarray(rng.integers(bounds.min, bounds.max, size=shape, dtype=dtype, endpoint=True))
        return np.asarray(raw // dtype.type(10 ** int(rng.integers(0, len(str(bounds.max))))))
    return random_floats(rng, shape).astype(dtype)


def random_floats(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    values = rng.normal(size=shape) * 10.0 ** rng.integers(-7, 11)
    if rng.random() < 0.4:
        values = np.rint(values)
    if rng.random() < 0.2:
        values = np.exp(values.clip(-200, 200))
    special = rng.choice([0.0, -0.0, np.nan, np.inf, -np.inf], size=shape)
    return np.asarray(np.where(rng.random(shape) < rng.choice([0, 0, 0.1, 1]), special, values))


@pytest.mark.peers
def test_random_tensors_print_as_in_pytorch():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    for _ in range(2000):
        with np.errstate(over="ignore"):
            array = random_array(rng)
        tensor = torch.from_numpy(array.copy())
        requires_grad = array.dtype.kind == "f" and bool(rng.random() < 0.5)
        tensor.requires_grad_(requires_grad)
        assert format_tensor(array, requires_grad=requires_grad) == repr(tensor)
        if requires_grad:
            assert format_tensor(array, grad_fn="ViewBackward0") == repr(tensor.view(tensor.shape))


@pytest.mark.peers
def test_backward_names_are_pytorchs():
    torch = pytest.importorskip("torch")
    matrix, vector, batch = (
        torch.ones(shape, requires_grad=True) for shape in ((3, 3), (3,), (2, 3, 3))
    )  # fmt: skip
    for op, attrs, name, expression in NAMES:
        result = expression(torch, matrix, vector, batch)
        assert type(result.grad_fn).__name__ == name, (op, attrs)


def test_print_options_change_the_text_and_come_back() -> None:
    x, long = dynamic.tensor([1.23456, 1000.5]), dynamic.arange(30)
    try:
        dynamic.set_printoptions(precision=2, sci_mode=True)
        assert repr(x) == "tensor([1.23e+00, 1.00e+03])"
        dynamic.set_printoptions(profile="short", threshold=10)
        assert repr(x) == "tensor([   1.23, 1000.50])"
        assert repr(long) == "tensor([ 0,  1,  ..., 28, 29])"
        with pytest.raises(ValueError, match="no profile 'long'"):
            dynamic.set_printoptions(profile="long")
    finally:
        dynamic.set_printoptions(profile="default")
    assert repr(x) == "tensor([   1.2346, 1000.5000])"
