"""A step part by part."""

from __future__ import annotations

from compare.records.record import OfCell


class Parts(OfCell, tag="parts"):
    """What a step is taken apart with, in one process: by engine and program, seconds a call of the thread's own time.

    `off_core` is the share of the wall time in which others had the core, `once` the stages of compilations
    (`compare.instruments.parts`).
    """

    process: int
    engines: dict[str, dict[str, list[float]]]
    off_core: float
    once: list[dict[str, float]]
