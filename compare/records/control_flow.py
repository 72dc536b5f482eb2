"""What the check of C1 finds of each program."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from compare.records.record import Record


class ProgramRow(Struct):
    """One program with control flow: whether it runs as it is in the dynamic engine, and what static takes.

    `trace` is how it fares in static as it is, on all inputs, and `trace_reason` why; `convert` and `convert_reason`
    are the same with its control flow converted, and `inputs` the number of arguments that both were given. `static`
    is what static takes without conversion. `edit` is the share of its `tokens` that the rewriting changes, and
    `graph_tokens` what it has then. `dynamic_seconds` and `static_seconds` are those of a call for the value and the
    gradient, `compile_seconds` those of all `compiles` for its own inputs; `convert_seconds`, `convert_compiles` and
    `convert_compile_seconds` are the same of the converted program. What a program has not got is null, and so is what
    was measured before there was a conversion.

    Of an arm of a framework, `dynamic` is its eager arm and `static` is that arm; `compile_seconds` are those of the
    first calls, which compile. `idiom` is what the framework calls the control flow of the rewriting. `breaks` are the
    graph breaks of the program as it is where they are allowed, and `pieces` is how it fares then. `kernels` is false
    where the graphs of the program ran op by op, since to make kernels takes a framework seconds, and null where that
    is no stage of its own.
    """

    program: str
    family: str
    dynamic: bool
    static: Literal["unchanged", "rewritten", "refused"]
    reason: str | None
    trace: Literal["right", "wrong", "refused", "failed"]
    trace_reason: str | None
    edit: float | None
    tokens: int
    dynamic_seconds: float | None
    static_seconds: float | None
    compiles: int | None
    compile_seconds: float | None
    graph_tokens: int | None = None
    idiom: str | None = None
    kernels: bool | None = None
    breaks: int | None = None
    pieces: Literal["right", "wrong", "refused", "failed"] | None = None
    inputs: int | None = None
    convert: Literal["right", "wrong", "refused", "failed"] | None = None
    convert_reason: str | None = None
    convert_seconds: float | None = None
    convert_compiles: int | None = None
    convert_compile_seconds: float | None = None

    @property
    def taken_tokens(self) -> int | None:
        """The tokens of what static takes: the program itself where it is converted; null where it takes nothing."""
        return self.tokens if self.convert == "right" else self.graph_tokens


class Programs(Record, tag="program"):
    """The programs measured for a claim."""

    claim: str
    programs: list[ProgramRow]
