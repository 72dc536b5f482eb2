"""Values read between the elements of an image."""

from __future__ import annotations

from typing import Any

from graphs.onnx.table import translates
from graphs.torch.sampling import grid_sample

_MODES = {"linear": "bilinear", "cubic": "bicubic"}  # as they are called from opset 20 on


@translates("GridSample")
def sample(x: Any, grid: Any, *, align_corners: bool = False, mode: str = "linear", padding_mode: str = "zeros") -> Any:
    return grid_sample(x, grid, _MODES.get(mode, mode), padding_mode, align_corners)
