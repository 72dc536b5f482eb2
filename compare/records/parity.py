"""Whether the arms of a cell agree."""

from __future__ import annotations

from compare.records.record import Arm, OfArms


class ParityArm(Arm):
    """How far an arm is from the references, scaled as in `compare.instruments.parity.measure`; null if not finite."""

    output_error: float | None
    gradient_error: float | None
    tolerance: float


class Parity(OfArms, tag="parity"):
    """The gate of a cell. `same_graph` is null where the function cannot be traced, or has branches or loops."""

    agree: bool
    arms: dict[str, ParityArm]
    same_graph: bool | None
    kernel_calls: dict[str, dict[str, int]]
