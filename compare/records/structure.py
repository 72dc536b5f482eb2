"""What the check of C8 finds of each structure edit."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from compare.records.record import Record, Seconds

Way = Literal["retraced", "foreseen"]


class EditCost(Struct, omit_defaults=True):
    """What a structure edit cost an engine (`compare.claims.c8_structure.measure`); `way` is how static learns of it.

    `steps` are steady steps, `edits` the new structures of a training, `seconds` those of a whole training.
    """

    rebuild: int
    steps: float
    seconds: Seconds
    compile_seconds: float
    edits: int
    way: Way | None = None


class EditRow(Struct, omit_defaults=True):
    """One structure edit during training in each engine, static as foreseen where `ways` has that.

    `difference` is how far the losses are apart at most, relative, and `refused` why an engine or a way of it did not
    run: a framework does not take the code, or does not end.
    """

    edit: str
    engines: dict[str, EditCost]
    ways: dict[str, EditCost]
    agree: bool
    difference: float | None = None
    refused: dict[str, str] = {}


class Edits(Record, tag="edit"):
    """The structure edits measured for a claim."""

    claim: str
    edits: list[EditRow]
