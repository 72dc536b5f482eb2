"""What a kind of record is: its name, what a line of it holds, and what makes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Status = Literal["ok", "unsupported", "disagree", "failed"]
"""How an arm came out."""


@dataclass(frozen=True)
class Kind:
    """A kind of record, as the claim or instrument that it belongs to registers it.

    `holds` is the TypedDict of a line, None where no file has such a line. `measure` is the `module:function` that a
    worker calls with the job, or, for the check of a claim, without. With `by_arm` each arm has a process of its own.
    """

    name: str
    holds: Any = None
    measure: str = ""
    by_arm: bool = False
