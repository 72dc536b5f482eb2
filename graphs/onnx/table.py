"""The table of translations: what each op of ONNX is in the op library.

A translation is a function over ops. Its parameters say all that a reader of models has to know:

    x, weight=None             an input, and one that may be missing
    shape: Sizes               an input that decides about shapes: its numbers, which must be known when it runs
    limit: Decider             the same as an array, which has a dtype
    *, axis: int = -1          an attribute, of that type and with ONNX's default
    group: Count, strides: Counts    numbers of 1 or more
    mode: Literal["DCR", "CRD"]      one of these texts
    axes: Sizes | None = None  either, as the opset has it: an attribute at first, an input later
    outputs: int               how many outputs are asked for, where ONNX lets a model choose

A model of an older or newer opset than the table was written for is read where its op is the same.
"""

from __future__ import annotations

import inspect
import math
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np

from graphs.onnx import sizes
from graphs.onnx.sizes import Decider, Sizes

Translation = Callable[..., Any]
Body = Callable[..., tuple[Any, ...]]  # a graph among the attributes, called on the values of its inputs
Constant = np.ndarray[Any, Any]  # a tensor among the attributes
Floats = list[float]
Texts = list[str]

OLDEST, NEWEST = 13, 28  # opsets


class Least(NamedTuple):
    """The smallest number that an attribute may be, or have among its numbers."""

    number: int


Count = Annotated[int, Least(1)]
Counts = Annotated[Sequence[int], Least(1)]
AutoPad = Literal["NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"]


class AttributeKind(NamedTuple):
    """What an attribute of an op is.

    kind      its type in Python
    least     the smallest number that it may be or have, or None
    choices   the texts that it may be, or none for any
    """

    kind: Any
    least: int | None = None
    choices: tuple[str, ...] = ()

    def refusal(self, value: Any) -> str:
        """Why it may not be this value; empty where it may."""
        if self.choices and value not in self.choices:
            return f"is one of {', '.join(self.choices)}"
        if self.least is not None and min([value] if isinstance(value, int) else value, default=1) < self.least:
            return f"has numbers of {self.least} or more"
        return ""


class Translated(NamedTuple):
    """A translation, as the table holds it.

    function     the translation
    attributes   what each attribute that it takes is, by name
    deciding     what makes of the inputs that decide about shapes what it takes, by their numbers
    counts       whether it wants to know how many outputs are asked for
    most         how many inputs it takes
    since        the first version of the op that it tells, or None: that of `OLDEST`
    """

    function: Translation
    attributes: dict[str, AttributeKind]
    deciding: Mapping[int, Callable[[Any], Any]]
    counts: bool
    most: float
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
    hints = typing.get_type_hints(function, include_extras=True) if inspect.isfunction(function) else {}
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    attributes = {
        p.name: _attribute(_required(hints[p.name]))
        for p in parameters
        if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) and _is_typed(hints.get(p.name)) and p.name != "outputs"
    }
    kinds = [_required(hints.get(p.name)) for p in positional]
    deciding = {i: _DECIDING[kind] for i, kind in enumerate(kinds) if kind in _DECIDING}
    most = len(positional) if all(p.kind != p.VAR_POSITIONAL for p in parameters) else math.inf
    return Translated(function, attributes, deciding, any(p.name == "outputs" for p in parameters), most, since)


def _required(hint: Any) -> Any:
    """The type of `T | None`."""
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        return next(part for part in typing.get_args(hint) if part is not type(None))
    return hint


def _attribute(hint: Any) -> AttributeKind:
    origin = typing.get_origin(hint)
    if origin is Literal:
        return AttributeKind(str, choices=typing.get_args(hint))
    if origin is not Annotated:
        return AttributeKind(hint)
    kind, least = typing.get_args(hint)
    return AttributeKind(Sizes if kind == Sequence[int] else kind, least.number)


def _is_typed(hint: Any) -> bool:
    return hint not in (None, Any, Decider)
