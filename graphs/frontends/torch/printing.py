"""Printing tensors: the text that PyTorch prints for the same values.

`format_tensor` follows PyTorch's print options: four decimals, lines of 80 columns, and above 1000 elements a
summary with three at each edge, unless `set_printoptions` changes them. It was checked against PyTorch 2.13.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from graphs.errors import DTypeError, OptionError, locate
from graphs.frontends.torch.words import as_dtype

_PREFIX = "tensor("

Array = np.ndarray[Any, np.dtype[Any]]


class PrintOptions(NamedTuple):
    """The options for printing tensors; with `sci_mode` None the values decide whether powers of ten are used."""

    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


_PROFILES = {
    "default": PrintOptions(),
    "short": PrintOptions(precision=2, edgeitems=2),
    "full": PrintOptions(threshold=math.inf),
}
_options = [PrintOptions()]  # those in force


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Set print options: decimals, the size from which a summary is printed, its elements at each edge, and columns.

    `profile` is "default", "short" or "full"; the other options change it. Raises OptionError for another profile, and
    for a number below 0.
    """
    if profile is not None and profile not in _PROFILES:
        raise OptionError(locate(f"there is no profile {profile!r} of printing; use 'default', 'short' or 'full'"))
    options = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    changed: dict[str, Any] = {word: value for word, value in options.items() if value is not None}
    if any(value < 0 for value in changed.values()):
        raise OptionError(locate(f"options of printing are 0 or more, not {changed}; change what is below"))
    start = _options[0] if profile is None else _PROFILES[profile]
    _options[0] = start._replace(**changed, sci_mode=sci_mode)


def format_tensor(array: Array, *, requires_grad: bool = False, grad_fn: str | None = None) -> str:
    """The text `repr` gives in PyTorch for a CPU tensor of these values, of any shape.

    `grad_fn` names the backward op of a result, and then stands in place of `requires_grad`.
    Raises DTypeError for a dtype that is not a bool, an int or a float.
    """
    if array.dtype.kind not in "biuf":
        raise DTypeError(locate(f"tensors hold bools, ints or floats, not {array.dtype}"))
    return _with_suffixes(_PREFIX + _body(array), _suffixes(array, requires_grad, grad_fn)) + ")"


def _suffixes(array: Array, requires_grad: bool, grad_fn: str | None) -> list[str]:
    suffixes = []
    if not array.size and array.ndim != 1:  # `[]` alone already says shape (0,)
        suffixes.append(f"size={array.shape}")
    # `[]` shows no value, so nothing in it tells an int or a bool from the default float.
    if array.dtype.name not in (as_dtype(None).name, *(("int64", "bool") if array.size else ())):
        suffixes.append(f"dtype=torch.{array.dtype.name}")
    if grad_fn is not None:
        suffixes.append(f"grad_fn=<{grad_fn}>")
    elif requires_grad:
        suffixes.append("requires_grad=True")
    return suffixes


def _with_suffixes(text: str, suffixes: list[str]) -> str:
    # PyTorch counts two columns more than the last line has; kept, so that lines break at the same place.
    column = len(text) - (text.rfind("\n") + 1) + 2
    for suffix in suffixes:
        if column + len(suffix) + 2 > _options[0].linewidth:
            text += ",\n" + " " * len(_PREFIX) + suffix
            column = len(_PREFIX) + len(suffix)
        else:
            text += ", " + suffix
            column += len(suffix) + 2
    return text


# ---- the values ----


class _Style(NamedTuple):
    write: Callable[[Any], str]
    width: int


def _body(array: Array) -> str:
    if not array.size:
        return "[]"
    most, edge = _options[0].threshold, _options[0].edgeitems
    gaps = [array.size > most and length > 2 * edge for length in array.shape]
    shown = _corners(array, gaps)
    style = _style(shown)
    return _format_nested(shown, gaps, style, len(_PREFIX)) if array.ndim else style.write(array.item())


def _corners(array: Array, gaps: Sequence[bool]) -> Array:
    """The elements that a summary shows; they alone decide the format of all."""
    edge = _options[0].edgeitems
    for axis in (axis for axis, gap in enumerate(gaps) if gap):
        array = array.take([*range(edge), *range(-edge, 0)], axis)
    return array


def _format_nested(array: Array, gaps: Sequence[bool], style: _Style, indent: int) -> str:
    if array.ndim == 1:
        words = [style.write(value).rjust(style.width) for value in array.tolist()]
        return _row(words, gaps[0], style, indent)
    blocks = [_format_nested(block, gaps[1:], style, indent + 1) for block in array]
    if gaps[0]:
        blocks.insert(_options[0].edgeitems, "...")
    separator = "," + "\n" * (array.ndim - 1) + " " * (indent + 1)
    return f"[{separator.join(blocks)}]"


def _row(words: list[str], gap: bool, style: _Style, indent: int) -> str:
    if gap:
        words.insert(_options[0].edgeitems, " ...")
    per_line = max(1, (_options[0].linewidth - indent) // (style.width + len(", ")))
    lines = [", ".join(words[start : start + per_line]) for start in range(0, len(words), per_line)]
    separator = ",\n" + " " * (indent + 1)
    return f"[{separator.join(lines)}]"


def _style(shown: Array) -> _Style:
    if shown.dtype.kind != "f":
        return _Style(str, max(len(str(value)) for value in shown.flat))
    counted = shown[np.isfinite(shown) & (shown != 0)].astype(np.float64)
    if not counted.size:
        return _Style(_integral, 1)
    write = _float_writer(counted)
    return _Style(write, max(len(write(value)) for value in counted.tolist()))


def _float_writer(counted: Array) -> Callable[[float], str]:
    magnitudes = np.abs(counted)
    smallest, largest = float(magnitudes.min()), float(magnitudes.max())
    integral = bool(np.all(counted == np.floor(counted)))
    is_wide = largest / smallest > 1000 or largest > 1e8 or (smallest < 1e-4 and not integral)
    if is_wide if _options[0].sci_mode is None else _options[0].sci_mode:
        return _scientific
    return _integral if integral else _format_fixed


def _scientific(value: float) -> str:
    return f"{value:.{_options[0].precision}e}"


def _format_fixed(value: float) -> str:
    return f"{value:.{_options[0].precision}f}"


def _integral(value: float) -> str:
    return f"{value:.0f}." if math.isfinite(value) else str(value)
