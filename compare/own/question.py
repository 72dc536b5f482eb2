"""What a user asks about a function of their own, as it travels to the processes that look at it and measure it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from compare.engines import Engine, named
from compare.errors import InputsError
from compare.instruments.time.clock import CLOCK, NAME, ClockName
from compare.own import origin
from compare.records.device import Device
from compare.workloads import nearest

Function = Callable[..., Any]
Calls = Sequence[tuple[Any, ...]]


@dataclass(frozen=True)
class Question:
    """`function` and `inputs` are places, `FILE.py:name`; the second may be empty, as in `origin.called`.

    `arms` are those of the `engine`, the one first that compiles nothing. `processes` workers measure, 0 for the one
    that looks. A step is the value with the gradients in argument 0, unless `gradient` is False; None lets our engines
    see what the function gives.

    `limit` is how many seconds a mode of a framework may take for its first pass over the inputs. A worker is ended at
    it, and writes what each first call took to the file `notes`. The worker that looks puts function and calls into
    `folder`, for others. `command` is what the user typed, and `title` what a function without a file is called.
    """

    engine: str
    function: str
    inputs: str = ""
    arms: tuple[str, ...] = ()
    seed: int = 0
    seconds: float = 2.5
    limit: float = 300.0
    processes: int = 5
    device: Device = "cpu"
    gradient: bool | None = None
    allow_effects: bool = False
    apart: bool = False
    command: str = ""
    title: str = ""
    notes: str = ""
    folder: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Question:
        """What `to_dict` wrote."""
        return cls(**{**values, "arms": tuple(values["arms"])})

    @property
    def adapter(self) -> Engine:
        """The adapter of the engine."""
        return named(self.engine)

    @property
    def name(self) -> str:
        """What the function is called in records."""
        return self.title or self.function.rpartition(":")[2] or "a function"

    @property
    def argnum(self) -> int | None:
        """The argument whose gradients a step takes; None for the value alone."""
        return None if self.gradient is False else 0

    def mode(self, arm: str) -> str:
        """What a user calls the mode of an arm: the framework is known."""
        return self.adapter.mode(arm).name or "eager"

    @property
    def clock(self) -> Callable[[], int]:
        """The processor time of this process; wall time where a GPU computes while the process waits."""
        return CLOCK if self.device == "cpu" else time.perf_counter_ns

    @property
    def clock_name(self) -> ClockName:
        """What records call it."""
        return NAME if self.device == "cpu" else "wall"

    def started(self) -> Engine:
        """The framework, in this process and on the device, compiling as often as it would for a user.

        Raises InputsError where the device is not there.
        """
        self.adapter.start(self.seed)
        self.adapter.use(self.device)
        self.adapter.bounded()
        return self.adapter

    def load(self) -> tuple[Function, Calls]:
        """The function, and the calls as the framework's arrays. Raises InputsError for what cannot be called."""
        function, found = origin.called(self.function, self.inputs)
        place = self.inputs or self.function
        for number, call in enumerate(found):
            if not isinstance(call, tuple) or not call:
                kind = type(call).__name__
                raise InputsError(f"{place}: call {number} is a {kind}; each is the tuple of the function's arguments")
        if not found:
            raise InputsError(f"{place} holds no call; give at least one tuple of arguments")
        return function, [self.adapter.arrays(call) for call in found]


def arms_of(framework: Engine, modes: tuple[str, ...]) -> tuple[str, ...]:
    """The arms of some modes by their names, the eager one first: all is compared with it. Raises InputsError.

    Without names they are two, the second being the first that compiles.
    """
    by_name = {mode.name or "eager": mode for mode in framework.modes}
    for mode in modes:
        if mode not in by_name:
            raise InputsError(f"{framework.title} has no mode {mode!r}; {nearest(mode, tuple(by_name))}")
    eager, *others = framework.arms
    if not modes:
        return (eager, *others[:1])
    return (eager, *(arm for arm in others if framework.mode(arm).name in modes))
