"""What a machine takes for the parts of a step: kernels by size, the engines beside their kernels, compilation.

Made by `compare.advice.calibration`, and kept as JSON. All times are in seconds.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

from compare.errors import CompareError
from compare.records import machines

VERSION = 2


@dataclass(frozen=True)
class Curve:
    """Seconds by the amount of work: straight between the points that were measured, and beyond the last."""

    points: tuple[tuple[float, float], ...]

    def at(self, amount: float) -> float:
        """The seconds for that amount; for less, those of the first point. Raises ValueError for no points at all."""
        if not self.points:
            raise ValueError("a curve needs a point")
        amounts = [x for x, _ in self.points]
        if amount <= amounts[0] or len(self.points) == 1:
            return self.points[0][1]
        right = min(bisect_right(amounts, amount), len(amounts) - 1)
        (x0, y0), (x1, y1) = self.points[right - 1], self.points[right]
        return y0 + (y1 - y0) * (amount - x0) / (x1 - x0)

    def rising(self) -> Curve:
        """The same without noise that lets more work take less time."""
        most = accumulate((seconds for _, seconds in self.points), max)
        return Curve(tuple(zip((amount for amount, _ in self.points), most, strict=True)))


@dataclass(frozen=True)
class Returned:
    """Of a step whose largest new array has `size` bytes: the seconds it takes more, by the bytes that it holds."""

    size: float
    held: Curve


@dataclass(frozen=True)
class Kernel:
    """One kernel, called as compiled code does it with a buffer, and what the op's own call takes more."""

    out: Curve
    wrapped: float = 0.0


@dataclass(frozen=True)
class Overhead:
    """What an engine takes beside the kernels: for each call, each array it takes or gives, and each op.

    `other` is for each op that is not elementwise, on top of `op`: axes, shapes and rules that take more Python.
    """

    call: float
    array: float
    op: float
    other: float = 0.0


@dataclass(frozen=True)
class Costs:
    """All that a prediction needs to know of a machine.

    kernels   by `compare.advice.work.key`
    fresh     a new array, by its bytes, where the process has the memory for it
    returned  memory that a step gives back to the system and gets anew in the next, for some sizes of arrays
    moved     a byte that a kernel reads or writes, by the bytes touched since it was touched last, in arrays of NumPy's
    planned   the same in the buffers of a plan, which start where a cache line does
    row       each time the innermost loop of an elementwise kernel starts again
    lane      each time that of a reduction does
    block     each kernel call in a block of a fused group, beside its kernel
    dynamic   the dynamic engine where gradients are taken, `plain` where they are not
    compile   a static graph: `call` once, `op` for each node
    spread    the standard deviation of the logarithm of predicted over measured ratios, on synthetic programs
    """

    machine: machines.Fingerprint
    kernels: Mapping[str, Kernel]
    fresh: Curve
    returned: tuple[Returned, ...]
    moved: Curve
    planned: Curve
    row: float
    lane: float
    block: float
    dynamic: Overhead
    plain: Overhead
    static: Overhead
    compile: Overhead
    spread: float
    seconds: float = 0.0

    def faulted(self, largest: float, held: float) -> float:
        """The seconds that memory costs which a step holds and the system has to give anew each time.

        `largest` is its largest new array. Steps are taken to be alike that hold equally many of their largest array:
        that of the next size below that was calibrated counts, in proportion.
        """
        if not self.returned or not held:
            return 0.0
        alike = next((one for one in reversed(self.returned) if one.size <= largest), self.returned[0])
        scale = max(1.0, largest / alike.size)
        return scale * alike.held.at(held / scale)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {"calibration": VERSION, **asdict(self)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Costs:
        """The costs that `to_dict` wrote. Raises CompareError for anything else."""
        if values.get("calibration") != VERSION:
            version = values.get("calibration")
            raise CompareError(
                f"this is not a calibration of version {VERSION}, but of {version!r}; remove the file to measure again"
            )
        kernels = {
            key: Kernel(_curve(kernel["out"]), float(kernel["wrapped"])) for key, kernel in values["kernels"].items()
        }
        curves: dict[str, Any] = {name: _curve(values[name]) for name in ("fresh", "moved", "planned")}
        overheads: dict[str, Any] = {
            name: Overhead(**values[name]) for name in ("dynamic", "plain", "static", "compile")
        }
        rest = {name: values[name] for name in ("machine", "row", "lane", "block", "spread", "seconds")}
        returned = tuple(Returned(float(one["size"]), _curve(one["held"])) for one in values["returned"])
        return cls(kernels=kernels, returned=returned, **curves, **overheads, **rest)


def save(costs: Costs, path: Path) -> None:
    """Write a calibration."""
    from compare.records.results import write_json

    write_json(path, costs.to_dict())


def load(path: Path, here: Mapping[str, Any]) -> Costs:
    """A calibration of this machine, whose fingerprint is `here`. Raises CompareError for that of another."""
    try:
        costs = Costs.from_dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, CompareError):
            raise
        raise CompareError(f"{path} is not a calibration ({error}); name another file, or remove it") from error
    if unlike := machines.differences(costs.machine, here):
        raise CompareError(
            f"{path} was calibrated elsewhere or with other code ({', '.join(unlike)}); remove it to measure here"
        )
    return costs


def _curve(values: Mapping[str, Any]) -> Curve:
    return Curve(tuple((float(x), float(y)) for x, y in values["points"]))
