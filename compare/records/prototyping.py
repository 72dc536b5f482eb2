"""What the check of C7 finds of each edit of a model."""

from __future__ import annotations

from msgspec import Struct

from compare.records.record import Record


class ModelCost(Struct):
    """What an edit of a model costs in an engine: seconds from it to the first result, and how long the model is."""

    edit_to_result: list[float]
    lines: int
    tokens: int


class TaskRow(Struct, omit_defaults=True):
    """One edit of a model; `refused` says why an engine gave no result: a framework may not take it, or not end."""

    task: str
    edit: str
    engines: dict[str, ModelCost]
    refused: dict[str, str] = {}


class Prototypes(Record, tag="prototype"):
    """The edits of models measured for a claim."""

    claim: str
    tasks: list[TaskRow]
