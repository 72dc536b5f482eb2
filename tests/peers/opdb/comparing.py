"""Whether a framework gave what PyTorch gave, and if not, what is wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import optree
import torch

from tests.peers.opdb.samples import Call
from tests.peers.opdb.sides import Answer, Failure, OutsideError, Side, Value

SAME, OUTSIDE, MISSING, REFUSED, RAW, ANSWERED = "same", "outside", "missing", "refused", "raw error", "answered"
VALUE, DTYPE, SHAPE, KIND, EFFECT, HISTORY, GRADIENT, MEMORY = (
    "wrong value", "wrong dtype", "wrong shape", "wrong kind", "wrong effect", "wrong history", "wrong gradient",
    "wrong memory",
)  # fmt: skip
WRONG = (VALUE, DTYPE, SHAPE, KIND, EFFECT, HISTORY, GRADIENT, MEMORY)
VERDICTS = (SAME, *WRONG, RAW, ANSWERED, REFUSED, MISSING, OUTSIDE)

# (relative, absolute): sums are made in other orders
_TOLERANCES = {"float64": (1e-7, 1e-9), "float32": (2e-4, 2e-5), "float16": (1e-2, 2e-3)}
_DRAWN = frozenset(
    {
        *("bernoulli", "cauchy", "exponential", "geometric", "log_normal", "multinomial", "normal", "uniform"),
        *("rand_like", "randn", "randn_like", "randint", "randint_like", "svd_lowrank", "pca_lowrank"),
        *("empty", "empty_like", "new_empty", "new_empty_strided", "empty_strided", "empty_permuted"),
        *("nn.functional.dropout", "nn.functional.dropout2d", "nn.functional.dropout3d", "nn.functional.rrelu"),
        *("nn.functional.alpha_dropout", "nn.functional.feature_alpha_dropout"),
        *("nn.functional.fractional_max_pool2d", "nn.functional.fractional_max_pool3d"),
        *("nn.functional.multi_head_attention_forward",),
    }
)


_NO_GRADIENT = re.compile("derivative for .* is not implemented")


class Verdict(NamedTuple):
    """What came of a call; `text` says what was seen."""

    call: Call
    name: str
    text: str = ""

    def __str__(self) -> str:
        return f"{self.name}: {self.call}" + (f" -> {self.text}" if self.text else "")


def judged(call: Call, space: Any) -> Verdict:
    """A call in PyTorch and in a framework with its names."""
    try:
        ours = Side(space).run(call)
        if isinstance(ours, Failure) and ours.kind == "missing":
            return Verdict(call, MISSING, ours.text)
        theirs = Side(torch).run(call)
        if isinstance(theirs, Failure) and _NO_GRADIENT.search(theirs.text) and call.with_gradient:
            return judged(call._replace(with_gradient=False), space)  # where PyTorch has no gradient, ours may have one
    except OutsideError as error:
        return Verdict(call, OUTSIDE, str(error))
    if isinstance(ours, Failure):
        if ours.kind == "raw":
            return Verdict(call, RAW, ours.text)
        return Verdict(call, SAME) if isinstance(theirs, Failure) else Verdict(call, REFUSED, ours.text)
    if isinstance(theirs, Failure):
        return Verdict(call, ANSWERED, f"{_short(ours.result)}; PyTorch: {theirs.text}")
    name, text = next(_differences(ours, theirs, call), (SAME, ""))
    if name in (VALUE, GRADIENT) and call.dtype != "float64":
        exact = Side(torch).run(in_float64(call))
        if isinstance(exact, Answer):
            name, text = next(_differences(settled(ours, theirs, exact), theirs, call), (SAME, ""))
    return Verdict(call, name, text)


def in_float64(call: Call) -> Call:
    """The call with its tensors of floats in float64."""

    def double(value: Any) -> Any:
        is_float = isinstance(value, torch.Tensor) and value.is_floating_point()
        return value.detach().double().requires_grad_(value.requires_grad) if is_float else value

    args, words = optree.tree_map(double, (call.args, call.words), none_is_leaf=True)
    return call._replace(args=args, words=words)


def settled(ours: Any, theirs: Any, exact: Any) -> Any:
    """Ours, but theirs for each array that is off from float64 by at most twice what theirs is.

    Which sums lose which digits differs from processor to processor, in PyTorch as in NumPy.
    """
    if all(isinstance(each, np.ndarray) and each.dtype.kind in "fc" for each in (ours, theirs, exact)):
        if not ours.shape == theirs.shape == exact.shape or not np.isfinite(exact).all():
            return ours
        error, allowed = (np.abs(each - exact).max(initial=0.0) for each in (ours, theirs))
        return theirs if error <= 2 * allowed else ours
    if all(isinstance(each, tuple) and len(each) == len(ours) for each in (ours, theirs, exact)):
        items = map(settled, ours, theirs, exact)
        return type(ours)(*items) if hasattr(ours, "_fields") else tuple(items)
    return ours


def _differences(ours: Answer, theirs: Answer, call: Call) -> Iterator[tuple[str, str]]:
    is_drawn = call.op in _DRAWN or call.words.get("dropout_p", 0) > 0
    yield from _unlike(ours.result, theirs.result, is_drawn)
    if ours.is_input != theirs.is_input and call.way.changes_input:
        yield EFFECT, "the result is not the input"
    for _, text in _unlike(ours.arguments, theirs.arguments, is_drawn):
        yield EFFECT, f"arguments afterwards: {text}"
    for at, (mine, wanted) in enumerate(zip(ours.shared, theirs.shared, strict=False)):
        if mine != wanted:
            yield MEMORY, f"result {at} lies in the memory of arguments {list(mine)} for {list(wanted)}"
    if is_drawn:
        return
    for at, (mine, wanted) in enumerate(_paired(ours.gradients, theirs.gradients)):
        if not _near(np.asarray(mine), np.asarray(wanted)):
            yield GRADIENT, f"leaf {at}: {_array(mine)} for {_array(wanted)}"


def _unlike(ours: Any, theirs: Any, is_drawn: bool) -> Iterator[tuple[str, str]]:
    """What differs in plain data: kinds before shapes, shapes before dtypes, dtypes before values."""
    if isinstance(theirs, Value):
        yield from _unlike_tensors(ours, theirs, is_drawn)
    elif isinstance(theirs, tuple):
        if not isinstance(ours, tuple) or len(ours) != len(theirs):
            yield KIND, f"{_short(ours)} for {_short(theirs)}"
            return
        for at, (mine, wanted) in enumerate(zip(ours, theirs, strict=True)):
            for name, text in _unlike(mine, wanted, is_drawn):
                yield name, f"item {at}: {text}"
    elif isinstance(theirs, (bool, int, float, str, type(None))):
        if type(ours) is not type(theirs):
            yield KIND, f"{_short(ours)} for {_short(theirs)}"
        elif not is_drawn and not _are_equal(ours, theirs):
            yield VALUE, f"{ours!r} for {theirs!r}"


def _unlike_tensors(ours: Any, theirs: Value, is_drawn: bool) -> Iterator[tuple[str, str]]:
    if not isinstance(ours, Value):
        yield KIND, f"{type(ours).__name__} for a tensor"
    elif ours.array.shape != theirs.array.shape:
        yield SHAPE, f"{ours.array.shape} for {theirs.array.shape}"
    elif ours.dtype != theirs.dtype:
        yield DTYPE, f"{ours.dtype} for {theirs.dtype}"
    elif not is_drawn and not _near(ours.array, theirs.array):
        yield VALUE, f"{_array(ours.array)} for {_array(theirs.array)}"
    elif ours.has_history != theirs.has_history:
        yield HISTORY, f"requires_grad {ours.has_history} for {theirs.has_history}"


def _are_equal(ours: Any, theirs: Any) -> bool:
    return _near(np.asarray(ours), np.asarray(theirs)) if isinstance(theirs, float) else bool(ours == theirs)


def _paired(ours: tuple[Any, ...], theirs: tuple[Any, ...]) -> Iterator[tuple[Any, Any]]:
    """Gradients of the same leaf; none is zeros."""
    count = max(len(ours), len(theirs))
    for mine, wanted in zip(ours or (None,) * count, theirs or (None,) * count, strict=True):
        if mine is not None or wanted is not None:
            yield np.zeros_like(wanted) if mine is None else mine, np.zeros_like(mine) if wanted is None else wanted


def _near(ours: Any, theirs: Any) -> bool:
    if ours.dtype.kind not in "fc":
        return bool(np.array_equal(ours, theirs))
    relative, absolute = _TOLERANCES[str(ours.real.dtype)]
    return ours.shape == theirs.shape and bool(np.allclose(ours, theirs, relative, absolute, equal_nan=True))


def _array(array: Any) -> str:
    return np.array2string(np.asarray(array), threshold=8, precision=6, separator=",").replace("\n", "")


def _short(value: Any) -> str:
    if isinstance(value, Value):
        return f"{value.dtype}{list(value.array.shape)}" + (f"={value.array.tolist()}" if value.array.size <= 4 else "")
    return f"({', '.join(map(_short, value))})" if isinstance(value, tuple) else repr(value)
