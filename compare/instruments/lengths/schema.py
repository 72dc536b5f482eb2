"""Strategies for inputs of varying length."""

from typing import NotRequired, TypedDict

from compare.records.kind import Status


class GroupCall(TypedDict):
    """One call of the first epoch of a strategy, over one example or a batch."""

    examples: int
    seconds: float
    compiled: bool


class StrategyArm(TypedDict):
    """What a strategy for inputs of varying length took in one process (`compare.instruments.lengths.measure`).

    `blocks` are seconds per example, `latency` the seconds of each call once warm, in the order of `stream`. `error`
    is how far its losses and gradients are from the reference, `held` the bytes of the compiled graphs, and
    `plans` those of each by the size that it is for, 0 where that is symbolic.
    """

    status: Status
    reason: str | None
    compilation: str
    padding: str
    batching: str
    error: NotRequired[float]
    build: NotRequired[float]
    stream: NotRequired[list[GroupCall]]
    latency: NotRequired[list[float]]
    steady: NotRequired[bool]
    blocks: NotRequired[list[float]]
    compiles: NotRequired[int]
    useful: NotRequired[int]
    computed: NotRequired[int]
    held: NotRequired[int]
    plans: NotRequired[list[list[int]]]


class Lengths(TypedDict):
    """Every strategy in one process, for a model and the lengths of its `examples`."""

    workload: str
    size: str
    lengths: str
    process: int
    examples: list[int]
    arms: dict[str, StrategyArm]
