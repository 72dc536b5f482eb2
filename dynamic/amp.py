"""`torch.amp` where there is no GPU: asking for a GPU's lower precision changes nothing, as in PyTorch without one."""

from __future__ import annotations

import contextlib
from typing import Any, Self

from graphs.errors import GraphError, locate

__all__ = ["GradScaler", "autocast"]


class autocast(contextlib.ContextDecorator):  # noqa: N801  (PyTorch's name)
    """A block in which nothing changes: ops compute in the dtypes of their operands.

    Raises GraphError where it is enabled for the CPU, since there is no bfloat16.
    """

    def __init__(
        self, device_type: str = "cuda", dtype: Any = None, enabled: bool = True, cache_enabled: bool | None = None
    ) -> None:
        del dtype, cache_enabled
        if enabled and str(device_type).partition(":")[0] == "cpu":
            raise GraphError(locate("autocast: the CPU has no lower precision here; leave it out, or use .half()"))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None


class GradScaler:
    """A scaler of losses that is not enabled: there is no lower precision whose gradients could vanish."""

    def __init__(self, device: str = "cuda", *_: Any, enabled: bool = True, **__: Any) -> None:
        if enabled and str(device).partition(":")[0] == "cpu":
            raise GraphError(locate("GradScaler: the CPU has no lower precision here; give enabled=False"))

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
