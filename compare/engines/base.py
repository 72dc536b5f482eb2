"""What an adapter says of its engine: its arms, its functions, how a step is built, and what it tells of itself.

An engine is one of ours or a framework; whoever measures asks the adapter, and never for a name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.metadata import packages_distributions, version
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any

import numpy as np
import optree

from compare.engines.debugging import Tools
from compare.engines.heap import MALLOC, ByteCounter
from compare.engines.kinds import Kinds
from compare.engines.nudge import FloatChange, nudges_of
from compare.engines.source import Loader, namespace
from compare.engines.state import Piece, Snapshot
from compare.engines.step import BoundCall, Function, LineOp, Observations, StateReader, Step, TrainingFunction
from compare.engines.switches import PROCESS, Switch, keep_switches
from compare.errors import CompareError, InputsError, UnsupportedError, without_folders
from compare.records.machines import Device, note_gpu
from compare.records.own import CallCounts, RanOp, count_calls
from compare.workloads.base import Case, Workload

DRAWS = "it draws random numbers, which in float64 are others"
"""Why there is no float64 to compare with."""
LONG = 400
"""Characters of a message of which only the first line is told."""


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

    What more it can say is said by its roles (below), each an object with safe defaults: `process`,
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
        self.process, self.devices, self.library = Process(self), Devices(self), Library(self)
        self.state, self.numbers, self.compiler = CallState(self), Numbers(self), Compiler(self)
        self.ops, self.errors = Ops(self), Errors(self)

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

    def observed(self, step: Function) -> Observations:
        """What compiling a step has meant so far."""
        return Observations()


# The roles ------------------------------------------------------------------------------------------------------------


class Role:
    """A part of what an adapter says, of its `engine`."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine


class Process(Role):
    """This process, where it is somebody else's: what a measurement turns in it, and turns back."""

    def listen(self) -> None:
        """Hear of what is compiled in this process, from now on."""

    def switches(self) -> Sequence[Switch]:
        """What of this process a measurement turns, or a function that is measured may turn."""
        return ()

    @contextmanager
    def visit(self, seed: int) -> Iterator[None]:
        """Inside, as after `start`, but in a process of somebody else's: what is set there holds, and stays."""
        with keep_switches(PROCESS), keep_switches(self.switches()):
            self.listen()
            self.reset(seed)
            yield

    def reset(self, seed: int) -> None:
        """Bring the framework's random numbers back to a seed."""


class Devices(Role):
    """Where arrays lie, and what measures there."""

    def gpu(self) -> str | None:
        """The name of the first GPU that the framework can compute on; None where there is none.

        Raises InputsError where it computes on the CPU alone, as an adapter without this does.
        """
        raise InputsError(f"--device cuda: {self.engine.title} runs on the CPU alone; leave --device out")

    def clock(self) -> Callable[[], int]:
        """Nanoseconds by events of the GPU, of an engine that `has_events`; reading it waits for the GPU."""
        raise NotImplementedError(f"{self.engine.title} has no events")

    @property
    def counter(self) -> ByteCounter:
        """What counts the bytes of a step: malloc, or the allocator of the device where that tells."""
        return MALLOC

    def placed(self, tree: Any) -> Any:
        """What a user's call passes, on the device; what a function of the framework's takes of NumPy is its own."""
        return self.engine.arrays(tree)

    @property
    def waits(self) -> Function | None:
        """What returns when a result is computed; None where every call returns no sooner."""
        return None


class Library(Role):
    """Modules over `graphs`, executed once more over the functions of this framework."""

    def load(self, module: str, *, control: bool = False) -> ModuleType:
        """A module over `graphs`, executed once more over this framework's functions; `control` flow by its own ops."""
        return self._loader(control=control).load(module)

    def edited(self, module: str, text: str) -> AbstractContextManager[ModuleType]:
        """A module that was loaded, with another text, executed over this framework's functions."""
        return self._loader().edited(module, text)

    def _loader(self, *, control: bool = False) -> Loader:
        if control not in self._loaders:
            name = f"{self.engine.name}_control" if control else self.engine.name
            functions = {**self.engine.functions(), **(self.control() if control else {})}
            self._loaders[control] = Loader(name, namespace(name, functions))
        return self._loaders[control]

    @cached_property
    def _loaders(self) -> dict[bool, Loader]:
        return {}

    def workload(self, source: str) -> Workload:
        """The workload at `module:attribute`, over this framework's functions; its data are arrays of NumPy still."""
        module, _, attribute = source.partition(":")
        workload: Workload = getattr(self.load(module), attribute)
        return workload

    def control(self) -> dict[str, Function]:
        """Control flow by the framework's own ops, where `functions` has Python's in its place."""
        return {}


class CallState(Role):
    """What calls change, and what brings it back."""

    def training(
        self, function: Function, calls: Sequence[tuple[Any, ...]], changed: Callable[[], Sequence[Any]]
    ) -> TrainingFunction | None:
        """The function as a whole training step, where it is one; None where it is a loss.

        It may be called once to see that, and `changed` gives what has changed since.
        """
        return None

    def reader(
        self, function: Function, calls: Sequence[tuple[Any, ...]], changed: Sequence[Any], *, trains: bool
    ) -> StateReader:
        """What reads the state that a call leaves, whose pieces `changed` if it was called for `training`."""
        return StateReader()

    def reached(self, function: Function) -> Sequence[Any]:
        """What a function reaches by itself, without an argument, and holds arrays."""
        return ()

    def kinds(self) -> Kinds | None:
        """The classes that hold numbers, where the engine has PyTorch's names for them."""
        return None

    def snapshot(self, function: Function, calls: Sequence[tuple[Any, ...]]) -> Snapshot:
        """What brings back all that function and calls hold now."""
        return Snapshot(function, calls, self.kept, self.engine.internals, self.engine.builders)

    def kept(self, value: Any) -> Piece | None:
        """What brings back an object of the framework's that holds numbers; None of any other value."""
        return None

    def making(self, add: Callable[[Any], None]) -> AbstractContextManager[None]:
        """Where `add` is told each holder of numbers that is made, as it was made, of what is built as it is called."""
        return nullcontext()


class Numbers(Role):
    """The floats and the random numbers of a call, as they are and otherwise."""

    def draws(self, step: Function, call: tuple[Any, ...]) -> list[np.ndarray]:
        """The random numbers that a call of an eager step draws, in order, each as the distribution without options."""
        return []

    def noting(self, drawn: list[Any]) -> AbstractContextManager[object]:
        """Where what a call draws is appended. Raises UnsupportedError where other dtypes must draw other numbers."""
        raise UnsupportedError(DRAWS)

    def giving(self, drawn: Sequence[Any]) -> AbstractContextManager[object]:
        """Where a call draws what was noted, in its dtype. Raises UnsupportedError where it asks for something else."""
        return nullcontext()

    def changed(self, tree: Any, change: FloatChange) -> Any:
        """A copy of arguments with other floats."""
        return self.engine.arrays(optree.tree_map(change.function(), self.engine.numpy(tree), none_is_leaf=True))

    def meanwhile(self, holders: Sequence[Any], change: FloatChange) -> AbstractContextManager[None]:
        """Where what a function holds has other floats, as far as it changes in place, and may have them."""
        if change.seed is None:
            return nullcontext()
        return nudges_of([value for value in holders if isinstance(value, np.ndarray)], change)

    def dtypes(self, step: Function, call: tuple[Any, ...]) -> Iterable[Any]:
        """The dtypes in which a call of an eager step computes, what it is given included, which is all by default."""
        arguments: Any = call
        return [leaf.dtype for leaf in optree.tree_leaves(arguments, none_is_leaf=True) if hasattr(leaf, "dtype")]

    def draws_inside(self, function: Function, call: tuple[Any, ...]) -> bool:
        """Whether a call draws random numbers from what it is given, which in another dtype are others."""
        return False

    def repeatable(self) -> AbstractContextManager[None]:
        """Where a compiled function draws the random numbers that the eager one draws, if it can."""
        return nullcontext()


class Compiler(Role):
    """What compiles, and what has been compiled."""

    def eagerly(self, function: Function) -> AbstractContextManager[object]:
        """Where nothing of a function is compiled, not even what its file compiles by itself; `compiles` notes that."""
        return nullcontext()

    def owning(self, built: Function) -> Function:
        """A step of a user's function as it is built, whose calls have arrays of their own where they may be lost."""
        return built

    def compiled(self, arm: str, function: Function) -> Function:
        """A function compiled by itself, to be called by others; nothing of it may stay in Python."""
        raise NotImplementedError(f"{self.engine.title} compiles nothing")

    def whole(self, arm: str, function: Function, around: Callable[[Function], Function]) -> tuple[Function, Function]:
        """`step(*args) -> (value, gradients)` of `around(function)`, and what `observed` takes to tell of it.

        Nothing of the function may stay in Python. By default it is compiled by itself, and the eager arm calls it.
        """
        compiled = self.compiled(arm, function)
        return self.engine.build(self.engine.arms[0], around(compiled), 0), compiled

    def varying(self, arm: str, loss: Function, dims: Any) -> Function:
        """`build` for axes that vary, a name or None for each of an argument, where an engine can be told of them."""
        return self.engine.build(arm, loss, 0)

    def captured(self, arm: str, function: Function, *, whole: bool = True) -> Function | None:
        """`compiled` but for its kernels, where to make those is a stage of its own, of seconds; else None.

        Unless it must be `whole`, in pieces around graph breaks, which `observed` counts.
        """
        return None

    def forget(self) -> None:
        """Drop what this process has compiled; a cache on the disk stays."""

    def anew(self) -> AbstractContextManager[object]:
        """Where nothing is compiled yet, neither in this process nor on the disk."""
        self.forget()
        self.engine.compiles = False
        return nullcontext()


class Ops(Role):
    """What a call does, told op by op."""

    def outside(self, call: BoundCall) -> int | None:
        """How many ops of a call run outside of compiled code, of an eager one all; None where that is not told."""
        return None

    def called(self, function: Function, call: tuple[Any, ...]) -> Any:
        """What a function returns where nothing is compiled or differentiated."""
        return function(*call)

    def ran(self, step: Function, call: tuple[Any, ...]) -> list[RanOp]:
        """The ops of a call of an eager step, in order. Raises UnsupportedError where there is no way to see them."""
        raise UnsupportedError(
            f"nothing counts the ops that {self.engine.title} runs; measure it with graphduel compare"
        )

    def lines(self, step: Function, call: tuple[Any, ...]) -> list[LineOp]:
        """The ops of a call of an eager step, in order, each with its line. Raises UnsupportedError as `ran` does."""
        raise UnsupportedError(f"nothing tells the lines whose ops {self.engine.title} runs")

    def counts(self, arms: Sequence[str], case: Case, *, run: bool = True) -> list[CallCounts]:
        """What each call of a case does in an eager arm and one that compiles, in the terms that have prices.

        Here each call is run eagerly, op by op; an adapter that counts without a run may do so, and must where `run` is
        False. Raises UnsupportedError where nothing counts, and what the function and the engine raise.
        """
        step = self.engine.build(arms[0], self.engine.loss(arms[0], case), case.argnum)
        counts = []
        for example in case.examples:
            call = self.engine.arrays((case.params, *example))
            before = self.engine.state.snapshot(case.loss, [call])
            counts.append(count_calls(self.ran(step, call)))
            before.restore()
        return counts


class Errors(Role):
    """What an error of the engine means."""

    def said(self, error: BaseException) -> str | None:
        """What the framework's compiler says as it refuses, in a sentence with the line of the user's; else None."""
        return None

    @contextmanager
    def checked(self) -> Iterator[None]:
        """Where NaN and infinity are errors, by the framework's own switch for that."""
        yield

    def traced(self, error: BaseException) -> bool:
        """Whether an error of a compiled function came as it was traced or compiled, before any data ran."""
        return False

    def refuses(self, error: BaseException, arm: str = "") -> bool:
        """Whether an error is the engine saying that it does not do this, in an arm or in any, rather than a fault."""
        return isinstance(error, NotImplementedError)

    def summary(self, error: BaseException) -> str:
        """What an error says of a function of the user's; of a long one what the framework says first."""
        said = f"{error}" if isinstance(error, CompareError) else f"{type(error).__name__}: {error}"
        return said if len(said) < LONG else said.strip().splitlines()[0]

    def reason(self, error: BaseException) -> str:
        """What an error says, in a line."""
        said = [line.strip() for line in str(error).splitlines() if line.strip()]
        return without_folders(f"{type(error).__name__}: {said[0]}" if said else type(error).__name__)


@cache
def _distribution(module: str) -> str:
    """What a module was installed with: finding that out reads the files of everything that is installed."""
    return packages_distributions()[module][0]
