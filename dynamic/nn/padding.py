"""Borders around the last axes: of one value, or of the input's own elements."""

from __future__ import annotations

from typing import Any

from dynamic.nn import functional as F
from dynamic.nn.module import Module

__all__ = [
    "CircularPad1d", "CircularPad2d", "CircularPad3d", "ConstantPad1d", "ConstantPad2d", "ConstantPad3d",
    "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d", "ReplicationPad2d",
    "ReplicationPad3d", "ZeroPad1d", "ZeroPad2d", "ZeroPad3d",
]  # fmt: skip


class _Pad(Module):
    """`functional.pad` of `axes` axes; `padding` is a number, or a pair for each axis, the last axis first."""

    axes = 1
    mode = "constant"

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = (padding,) * (2 * self.axes) if isinstance(padding, int) else tuple(padding)

    def forward(self, input: Any) -> Any:
        """The input with its border."""
        return F.pad(input, self.padding, self.mode)

    def extra_repr(self) -> str:
        """The sizes of the border."""
        return f"{self.padding}"


class _ConstantPad(_Pad):
    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Any) -> Any:
        """The input with its border."""
        return F.pad(input, self.padding, value=self.value)

    def extra_repr(self) -> str:
        """The sizes of the border, and its value."""
        return f"padding={self.padding}, value={self.value}"


def _pad(kind: str, axes: int) -> type[Module]:
    base, mode, text = _KINDS[kind]
    body = {"axes": axes, "mode": mode, "__module__": __name__, "__doc__": f"{text}, around the last {axes} axes."}
    return type(f"{kind}Pad{axes}d", (base,), body)


_KINDS: dict[str, tuple[type[Module], str, str]] = {
    "Circular": (_Pad, "circular", "A border of the elements at the other end"),
    "Constant": (_ConstantPad, "constant", "A border of one value"),
    "Reflection": (_Pad, "reflect", "A border of the elements mirrored at the outermost"),
    "Replication": (_Pad, "replicate", "A border of the nearest elements"),
    "Zero": (_Pad, "constant", "A border of zeros"),
}

CircularPad1d, CircularPad2d, CircularPad3d = (_pad("Circular", axes) for axes in (1, 2, 3))
ConstantPad1d, ConstantPad2d, ConstantPad3d = (_pad("Constant", axes) for axes in (1, 2, 3))
ReflectionPad1d, ReflectionPad2d, ReflectionPad3d = (_pad("Reflection", axes) for axes in (1, 2, 3))
ReplicationPad1d, ReplicationPad2d, ReplicationPad3d = (_pad("Replication", axes) for axes in (1, 2, 3))
ZeroPad1d, ZeroPad2d, ZeroPad3d = (_pad("Zero", axes) for axes in (1, 2, 3))
