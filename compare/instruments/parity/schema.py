"""Whether the arms of a cell agree."""

from typing import TypedDict

from compare.records.kind import Status


class ParityArm(TypedDict):
    """How far an arm is from the references, scaled as in `compare.instruments.parity.measure`; null if not finite."""

    status: Status
    output_error: float | None
    gradient_error: float | None
    tolerance: float
    reason: str | None


class Parity(TypedDict):
    """The gate of a cell. `same_graph` is null where the function cannot be traced, or has branches or loops."""

    workload: str
    size: str
    agree: bool
    arms: dict[str, ParityArm]
    same_graph: bool | None
    kernel_calls: dict[str, dict[str, int]]
