"""The table of translations: what each op of ONNX is in the op library.

A translation is a function over ops. Its parameters say all that a reader of models has to know:

    x, weight=None             an input, and one that may be missing
    shape: Sizes               an input that decides about shapes: its numbers, which must be known when it runs
    limit: Decider             the same as an array, which has a dtype
    *, axis: int = -1          an attribute, of that type and with ONNX's default
    axes: Sizes | None = None  either, as the opset has it: an attribute at first, an input later
    outputs: int               how many outputs are asked for, where ONNX lets a model choose

A model of an older or newer opset than the table was written for is read where its op is the same.
"""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from graphs.onnx import sizes
from graphs.onnx.sizes import Decider, Sizes

Translation = Callable[..., Any]
Body = Callable[..., tuple[Any, ...]]  # a graph among the attributes, called on the values of its inputs
Constant = np.ndarray[Any, Any]  # a tensor among the attributes
Floats = list[float]
Texts = list[str]

OLDEST, NEWEST = 13, 28  # opsets


class Translated(NamedTuple):
    """A translation, as the table holds it.

    function     the translation
    attributes   the type of each attribute that it takes, by name
    deciding     what makes of the inputs that decide about shapes what it takes, by their numbers
    counts       whether it wants to know how many outputs are asked for
    since        the first version of the op that it tells, or None: that of `OLDEST`
    """

    function: Translation
    attributes: dict[str, Any]
    deciding: Mapping[int, Callable[[Any], Any]]
    counts: bool
    since: int | None


TABLE: dict[str, Translated] = {}
_DECIDING: dict[Any, Callable[[Any], Any]] = {Sizes: sizes.numbers, Decider: sizes.deciding_array}


def translates(*names: str, since: int | None = None) -> Callable[[Translation], Translation]:
    """Enter a function as the translation of these ops, of that version and later."""

    def enter(function: Translation) -> Translation:
        TABLE.update(dict.fromkeys(names, _entry(function, since)))
        return function

    return enter


def _entry(function: Translation, since: int | None) -> Translated:
    parameters = list(inspect.signature(function).parameters.values())
    hints = typing.get_type_hints(function) if inspect.isfunction(function) else {}
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    attributes = {
        p.name: _required(hints[p.name])
        for p in parameters
        if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) and _is_typed(hints.get(p.name)) and p.name != "outputs"
    }
    kinds = [_required(hints.get(p.name)) for p in positional]
    deciding = {i: _DECIDING[kind] for i, kind in enumerate(kinds) if kind in _DECIDING}
    return Translated(function, attributes, deciding, any(p.name == "outputs" for p in parameters), since)


def _required(hint: Any) -> Any:
    """The type of `T | None`."""
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        return next(part for part in typing.get_args(hint) if part is not type(None))
    return hint


def _is_typed(hint: Any) -> bool:
    return hint not in (None, Any, Decider)
