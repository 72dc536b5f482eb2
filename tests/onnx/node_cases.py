"""ONNX's own tests of its ops: each a model of a node or a few, with inputs and the outputs that are right."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import onnx

from graphs.frontends.onnx.reading import UntranslatedError
from graphs.onnx import OnnxModel, load

# Dropout in training draws numbers, and ONNX leaves it to an implementation which.
DRAWN = "test_training_dropout"


@functools.cache
def cases() -> list[Any]:
    """All node tests of ONNX's own domain that the installed package makes."""
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        tests = load_model_tests(kind="node")
    return [case for case in tests if {o.domain for o in case.model.opset_import} == {""} and not _is_drawn(case)]


def _is_drawn(case: Any) -> bool:
    return case.name.startswith(DRAWN) and "zero_ratio" not in case.name


def opset(case: Any) -> int:
    """The version of ONNX's own domain that a case is written for."""
    return case.model.opset_import[0].version


def read(case: Any) -> OnnxModel | UntranslatedError:
    """The model of a case, or why it was refused when it was loaded."""
    try:
        return load(case.model.SerializeToString())
    except UntranslatedError as refusal:
        return refusal


def check(case: Any, model: Callable[..., Any]) -> None:
    """Raise AssertionError where the outputs on some data are not those of the case.

    A number that was rounded to an integer of 8 bits may be the next one: compiled code multiplies by the reciprocal of
    a scale, and what was halfway before no longer is.
    """
    steps = 1 if "quantize" in case.name else 0
    for inputs, expected in case.data_sets:
        with np.errstate(all="ignore"):
            results = model(*map(value_of, inputs))
        results = results if isinstance(results, tuple) else (results,)
        assert len(results) >= len(expected)
        for result, wanted in zip(results, expected, strict=False):
            compare(result, value_of(wanted), case.rtol, steps)


def value_of(value: Any) -> Any:
    """Data of a case as a value: what is packed is unpacked."""
    if isinstance(value, onnx.TensorProto):
        return onnx.numpy_helper.to_array(value)
    if isinstance(value, (list, tuple)):
        return [value_of(part) for part in value]
    return value


def known(inputs: Iterable[Any], kinds: str = "biu") -> tuple[Any, ...]:
    """The inputs with numbers and short vectors as Python's, which a graph knows: they may decide about shapes.

    `kinds` are those of the dtypes that are taken.
    """
    return tuple(x.tolist() if _may_decide(x, kinds) else x for x in inputs)


def _may_decide(x: Any, kinds: str) -> bool:
    return isinstance(x, (np.ndarray, np.generic)) and x.ndim <= 1 and x.size <= FEW and x.dtype.kind in kinds


FEW = 64


def compare(result: Any, wanted: Any, rtol: float, steps: int = 0) -> None:
    """Raise AssertionError unless a result is the tensor, or the sequence of tensors, that is wanted."""
    if isinstance(wanted, list):
        assert len(result) == len(wanted)
        for part, other in zip(result, wanted, strict=True):
            compare(part, other, rtol, steps)
        return
    if wanted is None:
        assert result is None
        return
    got, wanted = np.asarray(result), np.asarray(wanted)
    assert got.shape == wanted.shape
    assert got.dtype == wanted.dtype
    half = wanted.dtype == np.float16  # of which the last bit may be another
    whole = steps and wanted.dtype.kind in "iu"
    np.testing.assert_allclose(got, wanted, rtol=2 * rtol if half else rtol, atol=steps if whole else 1e-6)
