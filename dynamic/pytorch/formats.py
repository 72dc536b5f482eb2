"""Orders of memory by PyTorch's names: every op takes any order, so that naming one changes nothing."""

from __future__ import annotations

__all__ = ["channels_last", "channels_last_3d", "contiguous_format", "memory_format", "preserve_format"]


class memory_format(str):  # noqa: N801  (PyTorch's name)
    """The name of an order of memory."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"torch.{str.__str__(self)}"

    __str__ = __repr__


channels_last, channels_last_3d = memory_format("channels_last"), memory_format("channels_last_3d")
contiguous_format, preserve_format = memory_format("contiguous_format"), memory_format("preserve_format")
