"""A step line by line."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from compare.records.record import Arm, OfArms, Seconds


class LineCost(Struct):
    """What one line of source costs: seconds, kernels, and bytes of the arrays that these make.

    `saved` are the arrays among them that the forward pass keeps for backward, `saved_bytes` their bytes.
    """

    seconds: Seconds = 0.0
    kernels: int = 0
    made: int = 0
    saved: int = 0
    saved_bytes: int = 0


class SourceLinesArm(Arm):
    """A step of one arm: `lines` by `model.py:12`, in the order they run.

    `step` are the seconds of a step that nobody watches; those of the lines and `elsewhere` come to it.
    """

    step: Seconds = 0.0
    elsewhere: Seconds = 0.0
    lines: dict[str, LineCost] = {}


class SourceLines(OfArms, tag="lines"):
    """The arms of a cell line by line, and the text of each line that can be read."""

    arms: dict[str, SourceLinesArm]
    code: dict[str, str] = {}


def ranked(arms: Sequence[SourceLinesArm]) -> list[str]:
    """The lines of all arms, the dearest first."""
    lines = dict.fromkeys(line for row in arms for line in row.lines)
    return sorted(lines, key=lambda line: -max(row.lines[line].seconds for row in arms if line in row.lines))
