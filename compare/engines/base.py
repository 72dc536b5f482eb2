"""What an adapter says of its engine: its arms, its functions, how a step is built, and what it tells of itself.

An engine is one of ours or a framework; whoever measures asks the adapter, and never for a name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import packages_distributions, version
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any

from compare.engines import roles
from compare.engines.debugging import Tools
from compare.engines.step import Function, Observed, Step
from compare.errors import InputsError
from compare.records.machines import Device, note_gpu
from compare.workloads.base import Case


@dataclass(frozen=True)
class Mode:
    """A way for an engine to run a function.

    One of the `suite` is among those that workloads are measured in, and a `usual` one also in a quick run. A function
    of the user's is compared in the first two modes unless others are asked for.
    One that `traces` takes control flow that depends on values only as the framework's own ops, so that it is given a
    workload as a fixed graph is: rewritten without such control flow, and with a loop over a varying axis as a scan.
    One that `relaxes` compiles for shapes that vary, and is measured where they do.
    One that `converts` rewrites control flow of Python before it traces, where another mode of the engine does not.
    One that `pads` computes with more elements than it was given, and one that `keeps` its code on the disk meets it
    there in the next process.
    One that `keeps_each` has a graph for each shape.
    Of one that is `readable` each kernel of a step can be watched: it runs from a tape, or from the one graph among its
    `executables`.
    Of one that is `uncounted` another runtime allocates the arrays, where no counter of ours sees them.
    `derivatives` is what `graphs.testing.check_grads` differentiates with, to any order; None where `build` is all.
    """

    name: str
    usual: bool = True
    suite: bool = True
    traces: bool = False
    relaxes: bool = False
    converts: bool = False
    pads: bool = False
    keeps: bool = False
    keeps_each: bool = False
    readable: bool = False
    uncounted: bool = False
    derivatives: ModuleType | None = None


SLOW = 0.1
"""Seconds of a compilation from which on it is not done for the sake of a better number."""


class Engine(ABC):
    """An adapter. One process runs one engine, and `start` comes before all else in it.

    What more it can say is said by its roles (`compare.engines.roles`), each an object with safe defaults: `process`,
    `devices`, `library`, `state`, `numbers`, `compiler`, `ops`, `errors`. An adapter with more to say makes its own in
    `__init__`.

    name     what a user says, and how arms begin, unless `prefix` is another
    title    what the framework calls itself
    module   what is imported
    package  what is installed, as a requirement
    arrays_of  the package that defines its arrays, where that is not `module`
    remark   what a reader of its numbers must know
    compile_seconds  about what compiling a small step takes
    shares   whether modes can share a process without changing what another one compiles
    keeps_effects  whether a compiled mode does what a function does besides its result on every call as well
    takes_apart    whether a step is shown as a graph, with shape policies and rewrites
    tells_lines    whether the seconds and bytes of a step are told by line of source
    is_reference   whether other engines are compared with it, so that its own results are checked in other ways: of a
                   framework one process is gate, clock and scales at once
    internals  packages whose objects hold code and no state, such as those of a compiler
    builders   packages whose objects make parts of themselves when they are first called
    draws_otherwise  why compiled code draws other random numbers for a seed than eager does; None where it may not
    written  the mode in which a file compiles what it compiles by itself
    compiles  whether what ran `eagerly` would have compiled something by itself
    callbacks  ends of the names of files through which compiled code calls Python on every call
    caches   ends of the names of files that keep compiled code on the disk, which is no doing of a step's
    aliases  other names of modes
    idioms   what the framework calls its own op for each function of ours that holds control flow
    """

    name: str
    title: str
    module: str
    package: str
    modes: tuple[Mode, ...]
    prefix: str = ""
    arrays_of: str = ""
    remark: str = ""
    compile_seconds: float = 1.0
    shares: bool = True
    keeps_effects: bool = False
    takes_apart: bool = False
    tells_lines: bool = False
    is_reference: bool = False
    has_events: bool = False
    internals: tuple[str, ...] = ()
    builders: tuple[str, ...] = ()
    callbacks: tuple[str, ...] = ()
    caches: tuple[str, ...] = ()
    draws_otherwise: str | None = None
    written: Mode | None = None
    compiles: bool = False
    device: Device = "cpu"
    aliases: Mapping[str, str] = MappingProxyType({})
    idioms: Mapping[str, str] = MappingProxyType({})

    def __init__(self) -> None:
        self.process, self.devices, self.library = roles.Process(self), roles.Devices(self), roles.Library(self)
        self.state, self.numbers, self.compiler = roles.State(self), roles.Numbers(self), roles.Compiler(self)
        self.ops, self.errors = roles.Ops(self), roles.Errors(self)

    @property
    def arms(self) -> tuple[str, ...]:
        """The arms, the eager one first."""
        return tuple(f"{self.prefix or self.name}-{mode.name}" if mode.name else self.name for mode in self.modes)

    def mode(self, arm: str) -> Mode:
        """The mode that an arm runs in."""
        return self.modes[self.arms.index(arm)]

    @property
    def compiles_slowly(self) -> bool:
        """Whether who needs many programs, or one many times, compiles no more of them than must be."""
        return self.compile_seconds > SLOW

    @property
    def missing(self) -> str | None:
        """What to install before this framework can run here; None where it is installed."""
        if find_spec(self.module) is not None:
            return None
        return f"{self.title} is not installed; pip install '{self.package}'"

    @property
    def version(self) -> str:
        """The installed version, of whichever distribution the module comes from: TensorFlow has several."""
        return version(_distribution(self.module))

    @staticmethod
    def environment(cache: Path, device: Device = "cpu") -> dict[str, str]:
        """Variables for a process that runs this framework: one thread, and its cache of compiled code in a folder."""
        return {}

    def start(self, seed: int, *, doubles: bool | None = False, device: Device = "cpu") -> None:
        """Prepare this process: one thread, the seed, and float64 where a check needs it.

        For a function of the user's `doubles` is None: its numbers, and how often they compile, are the user's own.
        Arrays lie on the `device` from now on. Raises InputsError where it is not there.
        """
        self.process.listen()
        if device == "cuda":
            gpu = self.devices.gpu()
            if gpu is None:
                raise InputsError(
                    f"--device cuda: {self.title} sees no GPU here; install its build for CUDA where there is one, or "
                    "leave --device out"
                )
            note_gpu(gpu)
        self.device = device

    @abstractmethod
    def functions(self) -> dict[str, Function]:
        """The framework's functions by the names that `graphs` has for them."""

    def loss(self, arm: str, case: Case) -> Function:
        """The loss of a case as an arm takes it."""
        rewritten = case.scanned or case.static_loss if self.mode(arm).traces else None
        return rewritten or case.loss

    @abstractmethod
    def step(self, arm: str, case: Case) -> Step:
        """The step of an arm over a case, ready to run.

        Raises UnsupportedError where the arm does not apply to the case, and whatever the engine refuses with.
        """

    @abstractmethod
    def arrays(self, tree: Any) -> Any:
        """A container of NumPy arrays as one of the framework's; what is no array stays as it is."""

    @abstractmethod
    def numpy(self, tree: Any) -> Any:
        """A container of the framework's arrays as one of NumPy's."""

    @abstractmethod
    def build(self, arm: str, loss: Function, argnum: int | None) -> Function:
        """`step(params, *example) -> (loss, gradients)`, or `(output, ())` where there is no `argnum`."""

    @abstractmethod
    def debugger(self, arm: str, users: Callable[[str], bool]) -> Tools:
        """The best tools of an arm for looking for a fault; `users` says whether a file is the user's."""

    def wait(self, result: Any) -> None:
        """Return when a result is computed."""
        if waits := self.devices.waits:
            waits(result)

    def observed(self, step: Function) -> Observed:
        """What compiling a step has meant so far."""
        return Observed()


@cache
def _distribution(module: str) -> str:
    """What a module was installed with: finding that out reads the files of everything that is installed."""
    return packages_distributions()[module][0]
