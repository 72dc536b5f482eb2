"""What an engine tells of its compilations."""

from __future__ import annotations

from msgspec import Struct

from compare.records.record import Arm, OfArms, Seconds


class Made(Struct):
    """One compilation: why there was one, and its seconds where the engine says them."""

    reason: str
    seconds: Seconds | None


class CompiledArm(Arm):
    """What an engine tells of an arm.

    `breaks` are graph breaks by reason, and `limits` says what runs eager since it was compiled too often.
    """

    made: list[Made] = []
    breaks: dict[str, int] = {}
    limits: list[str] = []


class Compilations(OfArms, tag="compilations"):
    """What an engine tells of its arms, from nothing. A function is `random` where another seed gives another result.

    `undoubled` is why it does not run in float64, where it does not: then eager alone says what is right. One that
    `trains` is a whole training step, which differentiates and changes its parameters by itself. `conditioning` is
    how far eager itself is off, as `compare.instruments.parity.measure` scales errors.
    """

    version: str
    arms: dict[str, CompiledArm]
    random: bool = False
    undoubled: str | None = None
    trains: bool = False
    conditioning: float = 0.0
