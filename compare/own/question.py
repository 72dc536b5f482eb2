"""What a user asks about a function in a file, as it travels to the worker that looks at it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Question:
    """`function` and `inputs` are places, `FILE.py:name`, as in `origin.called`; the rest is as in `compare.compare`.

    The worker puts function and calls into `folder`, for `processes` others.
    """

    function: str
    inputs: str | None
    modes: tuple[str, ...]
    gradient: bool | None
    processes: int
    seconds: float
    seed: int
    command: str
    allow_effects: bool = False
    apart: bool = False
    folder: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Question:
        """What `to_dict` wrote."""
        return cls(**{**values, "modes": tuple(values["modes"])})
