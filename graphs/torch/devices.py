"""Devices: the CPU, by PyTorch's name and words."""

from __future__ import annotations

from typing import Any, Self

from graphs.errors import OptionError, located


class device(str):  # noqa: N801  (PyTorch's name)
    """Where values are: "cpu". Raises OptionError for any other device."""

    __slots__ = ()
    index: Any = None

    def __new__(cls, type: Any = "cpu", index: int | None = None) -> Self:
        """The CPU. Raises OptionError for any other."""
        del index
        name = str(type)
        if name.partition(":")[0] != "cpu":
            remedy = "values are on the CPU: write device('cpu'), or ask cuda.is_available()"
            raise OptionError(located(f"there is no device {name!r}; {remedy}"))
        return super().__new__(cls, "cpu")

    @property
    def type(self) -> str:
        """The kind of device."""
        return "cpu"

    def __repr__(self) -> str:
        return "device(type='cpu')"


CPU = device()


def check(value: Any) -> None:
    """Raise OptionError for any device but the CPU."""
    if value is not None and value is not CPU:
        device(value)
