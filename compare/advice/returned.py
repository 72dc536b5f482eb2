"""Memory that a step of the dynamic engine gives back to the system, which must give it anew in the next step.

A step that holds much lets it all go at its end. The C library then hands the free end of its heap back, and each page
is a page fault in the next step: several times what an elementwise kernel takes. How much is handed back depends on
the largest array that the process has freed before, so each size is measured in a worker of its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from compare.advice.costs import Curve, Returned
from compare.errors import WorkerError
from compare.instruments.time.rounds import collected
from compare.records.job import Job
from compare.records.runs import ReturnedMemory, error_of

SIZES = (1 << 14, 1 << 16, 1 << 17, 1 << 18, 1 << 19, 1 << 20, 1 << 21, 1 << 22, 1 << 24)
"""Bytes of the arrays that are held."""
LEAST, MOST = 1 << 16, 1 << 26
"""Bytes that are held at once, in powers of two."""
REPEATS = 5
TIMEOUT = 60.0

Answer = TypeVar("Answer")


def calibrate() -> tuple[Returned, ...]:
    """For each size, what a step takes more by the bytes that it holds. Raises WorkerError when a worker fails."""
    return tuple(Returned(float(size), _asked(size)) for size in SIZES)


def _asked(size: int) -> Curve:
    return Curve(tuple(answered(Job("returned memory", size=str(size)), TIMEOUT, ReturnedMemory).points)).rising()


def answered(job: Job, timeout: float, kind: type[Answer]) -> Answer:
    """What a worker has measured for a calibration. Raises WorkerError when it fails."""
    from compare.run.processes import ask

    record = ask(job, timeout)
    if not isinstance(record, kind):
        raise WorkerError(f"calibration failed: {error_of(record)}; try `graphduel doctor`")
    return record


def measure(job: Job) -> ReturnedMemory:
    """The record of the worker: for arrays of `job.size` bytes, the seconds beside the kernels by the bytes held."""
    size = int(str(job.size))
    held = [1 << exponent for exponent in range(LEAST.bit_length() - 1, MOST.bit_length()) if 1 << exponent >= size]
    with collected():
        return ReturnedMemory([(total, seconds(size, total)) for total in held])


def seconds(size: int, total: int) -> float:
    """What it takes longer to make arrays of `size` bytes that hold `total`, and let them go, than to fill them again.

    The least of some times of each, on the thread's own clock.
    """
    source = np.ones(size // 4, np.float32)
    arrays: list[Any] = [None] * max(1, total // size)
    made, filled = [], []
    for _ in range(REPEATS):
        make = _taken(lambda: _make(source, arrays))
        _fill(source, arrays)  # once more, so that both start with the same caches
        filled.append(_taken(lambda: _fill(source, arrays)))
        made.append(make + _taken(lambda: _release(arrays)))
    return max(0.0, min(made) - min(filled))


def _taken(call: Callable[[], None]) -> float:
    start = time.thread_time_ns()
    call()
    return (time.thread_time_ns() - start) / 1e9


def _make(source: Any, arrays: list[Any]) -> None:
    for i in range(len(arrays)):
        arrays[i] = np.negative(source)


def _fill(source: Any, arrays: list[Any]) -> None:
    for array in arrays:
        np.negative(source, array)


def _release(arrays: list[Any]) -> None:
    arrays[:] = [None] * len(arrays)
