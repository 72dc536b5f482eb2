"""Samples of the ops that show values and stop at them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from graphs.op import Op
from graphs.testing.sample import Sizes, Values

Call = tuple[str, tuple[Any, ...], dict[str, Any]]

_SHAPES: dict[str, Sizes] = {"matrix": (2, 3), "0-d": (), "size-1": (1,), "empty": (0,)}


def _seen(**attrs: Any) -> Callable[[Op, Values], Iterator[Call]]:
    def maker(op: Op, values: Values) -> Iterator[Call]:
        for title, shape in _SHAPES.items():
            yield title, (values.real(shape),), {"label": title, "line": "model.py:1", **attrs}

    return maker


EFFECTS = {"print": _seen(), "observe": _seen(), "breakpoint": _seen(when=lambda value: value.size, hook=len)}
