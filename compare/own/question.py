"""A user's question about a function of their own, in the form that travels to the processes that answer it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from compare.engines import Engine, find_engine
from compare.engines.graphduel.standin import stand_in
from compare.errors import InputsError
from compare.instruments.rounds import ClockName, clock_name
from compare.records.own import FunctionLook
from compare.records.record import Device, Records, records_of
from compare.workloads import names, nearest
from compare.workloads.models import is_model

Function = Callable[..., Any]
Calls = Sequence[tuple[Any, ...]]
Modes = tuple[str, ...]

SIZE = "given"
"""The size of a user's function in records."""
LIMIT = 300.0
"""The default seconds without progress after which a worker is ended."""
SECONDS = 2.5
"""The default seconds for the rounds of one process."""
REPEATS = 5
"""The default number of times that all is built and measured, so that intervals cover several layouts of memory."""


@dataclass(frozen=True)
class Question:
    """A question about a function. `function` and `inputs` are places, `FILE.py:name`; `inputs` may be empty.

    `modes` are those of the `engine`, the one first that compiles nothing. `processes` workers measure; with 0 the
    worker that looks measures too. A step is the value with the gradients in argument 0, unless `gradient` is False;
    with None our engines decide by the function's result.

    `limit` is how many seconds a mode may take for its first pass over the inputs, and a worker without progress. The
    worker of a mode whose compiler may not come back is ended at it. The worker that looks puts function and calls into
    `folder`, for others. `command` is the user's command, and `title` the name of a function without a file.

    Where several engines are asked about one file each has a question. Then `beside` is set, and the first worker of
    the first engine leaves its numbers in the folder `numbers`. Our engine `stands_in` for PyTorch in a file that
    imports it. A later process `checks` too where the first has come to no answer, so that nothing has compared a
    mode.
    """

    engine: str
    function: str
    inputs: str = ""
    modes: Modes = ()
    seed: int = 0
    seconds: float = SECONDS
    limit: float = LIMIT
    processes: int = REPEATS
    device: Device = "cpu"
    gradient: bool | None = None
    allow_effects: bool = False
    apart: bool = False
    command: str = ""
    title: str = ""
    folder: str = ""
    beside: bool = False
    numbers: str = ""
    stands_in: bool = False
    checks: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return the question as plain JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Question:
        """Return the question that `to_dict` wrote."""
        return cls(**{**values, "modes": tuple(values["modes"])})

    @property
    def adapter(self) -> Engine:
        """Return the adapter of the engine."""
        return find_engine(self.engine)

    @property
    def name(self) -> str:
        """Return the function's name in records, made different from any workload's or real model's name."""
        name = self.title or self.function.rpartition(":")[2] or "a function"
        if name in names() or is_model(name):
            return self.function or f"your {name}"
        return name

    @property
    def argnum(self) -> int | None:
        """Return the argument whose gradients a step takes; None for the value alone."""
        return None if self.gradient is False else 0

    @property
    def base(self) -> str:
        """Return the mode that compiles nothing."""
        return self.modes[0]

    def label(self, mode: str) -> str:
        """Return the user's name of a mode; it includes the engine only if others stand beside it."""
        return mode if self.beside else self.adapter.traits(mode).name or "eager"

    @property
    def labels(self) -> Modes:
        """Return the user's names of the modes, in order."""
        return tuple(map(self.label, self.modes))

    @property
    def given_modes(self) -> Modes:
        """Return the modes as `--modes` takes them."""
        return tuple(self.adapter.traits(mode).name or "eager" for mode in self.modes)

    @property
    def clock_name(self) -> ClockName:
        """Return the name of the clock by which times are judged."""
        return clock_name(self.device, has_events=self.adapter.has_events)

    def started(self) -> Engine:
        """Start the engine in this process and on the device, with a user's default settings; return it.

        Raises InputsError where the device is missing.
        """
        if self.stands_in:
            stand_in()
        self.adapter.start(self.seed, doubles=None, device=self.device)
        return self.adapter

    def with_written(self, first: Records) -> Question:
        """Return the question with the mode of the file's own compilation, if the first look has seen it compile."""
        written = self.adapter.written
        mode = self.adapter.mode_names[self.adapter.modes.index(written)] if written else self.base
        compiles = any(look.settings.get("compiles") for look in records_of(first, FunctionLook))
        return replace(self, modes=(*self.modes, mode)) if compiles and mode not in self.modes else self


def question_for(engine: str, function: str, inputs: str, modes: Sequence[str] | None, **options: Any) -> Question:
    """Return the question. Raises InputsError for an unknown mode, and where the engine is not installed."""
    adapter = find_engine(engine)
    if adapter.missing:
        raise InputsError(adapter.missing)
    return Question(adapter.name, function, inputs, modes_of(adapter, modes), **options)


def modes_of(engine: Engine, modes: Sequence[str] | None = None) -> Modes:
    """Return the full names of some modes, each once, the base first. Raises InputsError.

    All are compared with the base. Without names there are two modes, the second being the first that compiles.
    """
    base, *others = engine.mode_names
    if modes is None:
        return (base, *others[:1])
    full_names = modes_by_name(engine)
    names = (modes,) if isinstance(modes, str) else tuple(modes)
    if not names:
        raise InputsError(f"modes is empty; choose some of {', '.join(full_names)}")
    for name in names:
        if name not in full_names:
            raise InputsError(f"{engine.title} has no mode {name!r}; {nearest(name, tuple(full_names))}")
    return tuple(dict.fromkeys((base, *(full_names[name] for name in names))))


def modes_by_name(engine: Engine) -> Mapping[str, str]:
    """Return the full names of an engine's modes by short names, by full names, and by aliases."""
    full_names = {engine.traits(mode).name or "eager": mode for mode in engine.mode_names}
    full_names |= {mode: mode for mode in engine.mode_names}
    return full_names | {alias: full_names[short] for alias, short in engine.aliases.items()}
