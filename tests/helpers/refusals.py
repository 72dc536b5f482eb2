"""Calls that PyTorch 2.13 refuses, the class of its error that programs catch, and the words of ours."""

from __future__ import annotations

import builtins
from pathlib import Path
from typing import Any, NamedTuple

TABLE = Path(__file__).parents[1] / "data" / "torch_refusals.txt"


class Refusal(NamedTuple):
    """A call as text over `torch`, `nn`, `F` and `optim`; the class of the error, and what its message begins with."""

    call: str
    error: type[Exception]
    words: str

    def run(self, torch: Any) -> Any:
        """Make the call with the names of a framework."""
        space = {"torch": torch, "nn": torch.nn, "F": torch.nn.functional, "optim": torch.optim}
        return eval(self.call, space)


def refusals() -> list[Refusal]:
    """The table: a call in one line, the class and the words in the next."""
    lines = TABLE.read_text(encoding="utf-8").splitlines()
    told = [line.strip().partition(": ") for line in lines[1::2]]
    pairs = zip(lines[::2], told, strict=True)
    return [Refusal(call, getattr(builtins, error), words) for call, (error, _, words) in pairs]
