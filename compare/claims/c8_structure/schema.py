"""What the check of C8 finds of each structure edit."""

from typing import Literal, NotRequired, TypedDict


class EditCost(TypedDict):
    """What a structure edit cost an engine (`compare.claims.c8_structure.measure`); `way` is how static is told of it.

    `steps` are steady steps, `edits` the new structures of a training, `seconds` those of a whole training.
    """

    rebuild: int
    steps: float
    seconds: float
    compile_seconds: float
    edits: int
    way: NotRequired[Literal["retraced", "foreseen"]]


class EditRow(TypedDict):
    """One structure edit during training in each engine, static as foreseen where `ways` has that.

    `difference` is how far the losses of the engines are apart at most, relative.
    """

    edit: str
    engines: dict[str, EditCost]
    ways: dict[str, EditCost]
    agree: bool
    difference: float


class Edits(TypedDict):
    """The structure edits measured for a claim."""

    claim: str
    edits: list[EditRow]
