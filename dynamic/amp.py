"""`torch.amp` where there is no lower precision: asking for it changes nothing, as in PyTorch without a GPU."""

from __future__ import annotations

import contextlib
import functools
import warnings
from typing import Any, Self

from graphs.frontends.torch import dtypes

__all__ = ["GradScaler", "autocast", "get_autocast_dtype", "is_autocast_enabled"]


class autocast(contextlib.ContextDecorator):  # noqa: N801  (PyTorch's name)
    """A block in which nothing changes: ops compute in the dtypes of their operands.

    The first that is enabled for the CPU says so in a warning: PyTorch would compute in bfloat16, which is less exact.
    """

    def __init__(
        self, device_type: str = "cuda", dtype: Any = None, enabled: bool = True, cache_enabled: bool | None = None
    ) -> None:
        del dtype, cache_enabled
        if enabled and str(device_type).partition(":")[0] == "cpu":
            _say_once("autocast changes nothing here: ops compute in the dtypes of their operands, PyTorch in bfloat16")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None


@functools.cache
def _say_once(text: str) -> None:
    warnings.warn(text, UserWarning, stacklevel=4)


def is_autocast_enabled(device_type: str | None = None) -> bool:
    """False: no block casts anything."""
    del device_type
    return False


def get_autocast_dtype(device_type: str) -> dtypes.dtype:
    """The dtype that PyTorch's blocks cast to unless they name one: bfloat16 for the CPU, float16 for a GPU."""
    return dtypes.bfloat16 if device_type == "cpu" else dtypes.float16


class GradScaler:
    """A scaler of losses that is not enabled: there is no lower precision whose gradients could vanish."""

    def __init__(self, *_: Any, **__: Any) -> None:
        """Make it; options change nothing."""

    def scale(self, outputs: Any) -> Any:
        """The outputs themselves."""
        return outputs

    def unscale_(self, optimizer: Any) -> None:
        """Do nothing."""

    def step(self, optimizer: Any, *args: Any, **options: Any) -> Any:
        """A step of the optimizer."""
        return optimizer.step(*args, **options)

    def update(self, new_scale: Any = None) -> None:
        """Do nothing."""

    def is_enabled(self) -> bool:
        """False."""
        return False

    def get_scale(self) -> float:
        """1."""
        return 1.0

    def state_dict(self) -> dict[str, Any]:
        """Nothing to save."""
        return {}

    def load_state_dict(self, state_dict: Any) -> None:
        """Nothing to take over."""
