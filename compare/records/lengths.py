"""Strategies for inputs of varying length."""

from __future__ import annotations

from msgspec import Struct

from compare.records.record import Arm, Block, OfArms, Record, Seconds


class GroupCall(Struct):
    """One call of the first epoch of a strategy, over one example or a batch."""

    examples: int
    seconds: Seconds
    compiled: bool


class StrategyArm(Arm):
    """What a strategy for inputs of varying length took in one process (`compare.instruments.lengths.measure`).

    `blocks` are seconds per example, `latency` the seconds of each call once warm, in the order of `stream`. `error`
    is how far its losses and gradients are from the reference, `held` the bytes of the compiled graphs, and
    `plans` those of each by the size that it is for, 0 where that is symbolic.
    """

    compilation: str
    padding: str
    batching: str
    error: float = 0.0
    build: Seconds = 0.0
    stream: list[GroupCall] = []
    latency: list[float] = []
    steady: bool = True
    blocks: list[Block] = []
    compiles: int = 0
    useful: int = 0
    computed: int = 0
    held: int = 0
    plans: list[list[int]] = []


class Lengths(OfArms, tag="lengths"):
    """Every strategy in one process, for a model and the lengths of its `examples`."""

    lengths: str
    process: int
    examples: list[int]
    arms: dict[str, StrategyArm]


class LengthsProbe(Record, tag="lengths probe"):
    """For each length that a worker came to, the seconds to compile a graph of it, and to run a step."""

    points: list[tuple[int, float, float]]
