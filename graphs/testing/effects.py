"""Samples of the ops that show values and stop at them."""

from __future__ import annotations

from typing import Any

from graphs.testing.sample import Maker, Sizes, calls

_SHAPES: dict[str, Sizes] = {"matrix": (2, 3), "0-d": (), "size-1": (1,), "empty": (0,)}


def _seen(**options: Any) -> Maker:
    labels = {title: (title, shape) for title, shape in _SHAPES.items()}
    return calls(labels, lambda v, title, s: ((v.real(s),), {"label": title, "line": "model.py:1", **options}))


EFFECTS = {name: _seen() for name in ("print", "observe")}
EFFECTS["require"] = _seen(error=None)
EFFECTS["breakpoint"] = _seen(when=lambda value: value.size, hook=len)
