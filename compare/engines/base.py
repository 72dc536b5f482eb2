"""The interface of an engine's adapter: its modes, its functions, how it builds a step, and its roles.

An engine is one of ours or a framework. Code that measures asks the adapter and never tests for a framework's name.
Read `Mode` in `mode` and `Engine` first. Roles have defaults that adapters override: those below it, and `Words`,
`ModeTrials`, `Library`, `Numbers` and `Errors` in the files of what they are about.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any

import optree

from compare.engines.debugging import Errors, Tools
from compare.engines.library import Library
from compare.engines.mode import PADDED, Mode, ModeTrials, Role, Words
from compare.engines.nudge import Numbers
from compare.engines.process import MALLOC, PRELOAD, PROCESS, ByteCounter, Switch, keep_switches
from compare.engines.reach import Kinds
from compare.engines.state import Piece, Snapshot
from compare.engines.step import (
    BoundCall,
    Context,
    Function,
    GraphProgram,
    LineOp,
    Observations,
    StateReader,
    Step,
    TrainingFunction,
    Turns,
)
from compare.errors import InputsError, UnsupportedError
from compare.records.own import CallCounts, CallPartsRow, CompileEvent, RanOp, count_calls
from compare.records.record import Device, note_gpu
from compare.workloads.base import Case

__all__ = [
    "CallState", "Compiler", "Devices", "Engine", "Errors", "Library", "ModeTrials", "Numbers", "Ops", "Process",
    "Role", "Words",
]  # fmt: skip

SLOW = 0.1
"""The compile time in seconds from which on nothing is compiled merely to get a better number."""


class Engine(ABC):
    """An adapter of one engine. One process runs one engine, and `start` is called before anything else in it.

    Its roles say more about it, each an object with safe defaults: `process`, `devices`, `library`, `state`,
    `numbers`, `compiler`, `ops`, `errors`, `words`, `trials`. An adapter with more to say makes its own in `__init__`.

    name     the name that a user gives, and the start of mode names unless `prefix` is another
    title    the framework's own name
    module   the module to import
    package  the requirement to install
    arrays_of  the package that defines its arrays, where that is not `module`
    remark   a caveat for readers of its numbers
    compile_seconds  about how long compiling a small step takes
    shares   whether modes can share a process without changing what another one compiles
    keeps_effects  whether compiled code repeats a function's side effects on every call
    takes_apart    whether a step is shown as a graph, with shape policies and rewrites
    tells_lines    whether the seconds and bytes of a step are told by line of source
    is_reference   whether other engines are compared with it, so that its own results are checked in other ways: of a
                   framework one process is gate, clock and scales at once
    has_events     whether the devices' `clock` reads events of the GPU
    internals  packages whose objects hold code and no state, such as those of a compiler
    builders   packages whose objects make parts of themselves when they are first called
    inert    packages whose objects add no attributes to themselves
    draws_otherwise  why compiled code draws other random numbers for a seed than eager code; None where it may not
    rethreads  whether a process that has computed can be given another number of threads
    written  the mode in which a file compiles functions by itself
    compiles  whether a function run under `eagerly` would have compiled something by itself
    device   the device that arrays lie on
    threads  how many threads a step computes with
    traced_into  the variable that names a folder in which the framework keeps the trace of its compiler
    callbacks  suffixes of the files through which compiled code calls Python on every call
    caches   suffixes of the files that compile or hold compiled code; what these do is no side effect of a step
    aliases  other names of modes
    idioms   the framework's own op for each function of ours that holds control flow
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
    inert: tuple[str, ...] = ()
    callbacks: tuple[str, ...] = ()
    caches: tuple[str, ...] = ()
    draws_otherwise: str | None = None
    rethreads: bool = True
    written: Mode | None = None
    compiles: bool = False
    device: Device = "cpu"
    threads: int = 1
    traced_into: str = ""
    aliases: Mapping[str, str] = MappingProxyType({})
    idioms: Mapping[str, str] = MappingProxyType({})

    def __init__(self) -> None:
        self.process, self.devices, self.library = Process(self), Devices(self), Library(self)
        self.state, self.numbers, self.compiler = CallState(self), Numbers(self), Compiler(self)
        self.ops, self.errors, self.words = Ops(self), Errors(self), Words(self)
        self.trials = ModeTrials(self)

    @property
    def mode_names(self) -> tuple[str, ...]:
        """Return the names of the modes, the eager one first."""
        return tuple(self.words.full_name(mode.name) for mode in self.modes)

    def traits(self, mode: str) -> Mode:
        """Return the definition of a mode by its full name, which may be a word. Raises InputsError for no mode."""
        names, mode = self.mode_names, mode.removesuffix(PADDED)
        return self.modes[names.index(mode)] if mode in names else self.words.mode(mode)

    @property
    def compiles_slowly(self) -> bool:
        """Return whether compiling is so slow that checks should compile as few programs as they can."""
        return self.compile_seconds > SLOW

    @property
    def missing(self) -> str | None:
        """Return a message that says what to install before this framework can run; None where it is installed."""
        if find_spec(self.module) is not None:
            return None
        return f"{self.title} is not installed; pip install '{self.package}'"

    @property
    def version(self) -> str:
        """Return the installed version of the distribution that has the module; TensorFlow has several such."""
        from importlib.metadata import version  # imported here: it is a tenth of a worker's start

        return version(_distribution(self.module))

    @property
    def said_of_compiling(self) -> str:
        """Return what the user's environment says of compiling, where it counts here; "" where it says nothing."""
        return ""

    @staticmethod
    def environment(cache: Path, device: Device = "cpu", threads: int = 1) -> dict[str, str]:
        """Return the environment of a process for this framework: its threads, and a folder for its compiled code."""
        return {}

    def variables(
        self,
        mode: str,
        cache: Path,
        device: Device = "cpu",
        threads: int = 1,
        more: Mapping[str, str] = MappingProxyType({}),
    ) -> dict[str, str]:
        """Return the environment of a process that runs a mode, with `more` and with the variables of the mode's word.

        A word adds to a variable that lists flags or libraries, and replaces any other.
        """
        variables = {**self.environment(cache, device, threads), **more}
        for name, value in (self.traits(mode).environment if mode else {}).items():
            lists = name == PRELOAD or variables.get(name, "").startswith("--")
            variables[name] = f"{variables[name]} {value}" if lists and name in variables else value
        return variables

    def start(self, seed: int, *, doubles: bool | None = False, device: Device = "cpu", threads: int = 1) -> None:
        """Prepare this process: its threads, the seed, float64 where a check needs it, and the device.

        For a function of the user's `doubles` is None: the user's own settings of float64 and of recompilation stay.
        Arrays lie on the `device` from now on. Raises InputsError where that device is missing.
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
        self.device, self.threads = device, threads

    @abstractmethod
    def functions(self) -> dict[str, Function]:
        """Return the framework's functions by their names in `graphs`."""

    def loss(self, mode: str, case: Case) -> Function:
        """Return the loss of a case for a mode: rewritten without control flow on values where the mode traces."""
        rewritten = case.scanned or case.static_loss if self.traits(mode).traces else None
        return rewritten or case.loss

    @abstractmethod
    def step(self, mode: str, case: Case) -> Step:
        """Return the step of a mode for a case, ready to run.

        Raises UnsupportedError where the mode does not apply to the case, and the engine's own errors where it refuses.
        """

    @abstractmethod
    def arrays(self, tree: Any) -> Any:
        """Return a container of NumPy arrays with the framework's arrays; other leaves stay as they are."""

    @abstractmethod
    def numpy(self, tree: Any) -> Any:
        """Return a container of the framework's arrays with NumPy arrays."""

    @abstractmethod
    def build(self, mode: str, loss: Function, argnum: int | None) -> Function:
        """Return `step(params, *example) -> (loss, gradients)`, or `-> (output, ())` where `argnum` is None."""

    def build_over(self, calls: Sequence[tuple[Any, ...]]) -> Callable[[str, Function, int | None], Function]:
        """Return `build` for a loss whose calls are these, with their arrays on the device."""
        return self.build

    @abstractmethod
    def debugger(self, mode: str, users: Callable[[str], bool]) -> Tools:
        """Return the mode's best tools for finding a fault; `users(file)` says whether a file is the user's."""

    def wait(self, result: Any) -> None:
        """Wait until a result is computed."""
        if waits := self.devices.waits:
            waits(result)

    def observed(self, step: Function) -> Observations:
        """Return the compilations of a step so far."""
        return Observations()


# The roles ------------------------------------------------------------------------------------------------------------


class EngineRole(Role):
    """A role that knows its adapter by type."""

    engine: Engine


class Process(EngineRole):
    """The process as a host for measurements: the settings that a measurement changes in it and restores."""

    def listen(self) -> None:
        """Start to listen for compilations in this process."""

    def switches(self) -> Sequence[Switch]:
        """Return the settings of this process that a measurement, or the measured function, may change."""
        return ()

    def settings(self, mode: str) -> Context:
        """Return the context in which a mode compiles and runs."""
        return nullcontext

    @contextmanager
    def visit(self, seed: int, threads: int = 1) -> Iterator[None]:
        """Prepare as `start` does, in a process that belongs to the user; the switches are restored at the end."""
        with keep_switches(PROCESS), keep_switches(self.switches()):
            before, self.engine.threads = self.engine.threads, threads
            self.listen()
            self.reset(seed)
            try:
                yield
            finally:
                self.engine.threads = before

    def reset(self, seed: int) -> None:
        """Seed the framework's random number generators."""

    def traced(self) -> Sequence[CompileEvent]:
        """Return the events of the compiler in this process so far, if it keeps a trace; `traced_into` says where."""
        return ()

    def generator(self) -> bytes:
        """Return the state of the generator from which eager code draws; empty where a call cannot seed it."""
        return b""


class Devices(EngineRole):
    """The devices that arrays lie on, and the clock and byte counter of each."""

    def gpu(self) -> str | None:
        """Return the name of the first GPU that the framework can compute on; None where there is none.

        Raises InputsError where the framework computes on the CPU alone, which is the default.
        """
        raise InputsError(f"--device cuda: {self.engine.title} runs on the CPU alone; leave --device out")

    def clock(self) -> Callable[[], int]:
        """Return a clock in ns by the GPU's events, for an engine with `has_events`; a reading waits for the GPU."""
        raise NotImplementedError(f"{self.engine.title} has no events")

    @property
    def counter(self) -> ByteCounter:
        """Return the counter for the bytes of a step: malloc, or the device's allocator where that can be read."""
        return MALLOC

    def placed(self, tree: Any) -> Any:
        """Return the user's arguments with their arrays on the device; NumPy arrays become the framework's."""
        return self.engine.arrays(tree)

    @property
    def waits(self) -> Function | None:
        """Return the function that waits until a result is computed; None where a call returns only then."""
        return None


class CallState(EngineRole):
    """The state that calls change, and the means to restore it."""

    def training(
        self, function: Function, calls: Sequence[tuple[Any, ...]], changed: Callable[[], Sequence[Any]]
    ) -> TrainingFunction | None:
        """Return the function as a whole training step; None where it is a loss.

        It may be called once to find that out; `changed()` gives the pieces of state that have changed since.
        """
        return None

    def reader(
        self, function: Function, calls: Sequence[tuple[Any, ...]], changed: Sequence[Any], *, trains: bool
    ) -> StateReader:
        """Return a reader of the state that a call leaves.

        `changed` are the pieces of state that the call for `training` changed, if it was made.
        """
        return StateReader()

    def reached(self, function: Function) -> Sequence[Any]:
        """Return the objects that hold arrays and that a function reaches by itself, not through an argument."""
        return ()

    def kinds(self) -> Kinds | None:
        """Return the classes for tensors and modules, where the engine has PyTorch's names for them; else None."""
        return None

    @property
    def snapshot(self) -> Callable[[Function, Sequence[tuple[Any, ...]]], Snapshot]:
        """Return `snapshot(function, calls)`, which restores all state of a function and of its calls."""
        engine = self.engine
        packages = {"internals": engine.internals, "builders": engine.builders, "inert": engine.inert}
        return partial(Snapshot, kept=self.kept, **packages)

    def kept(self, value: Any) -> Piece | None:
        """Return a piece that restores one of the framework's objects with numbers; None for any other value."""
        return None

    def making(self, add: Callable[[Any], None]) -> AbstractContextManager[None]:
        """Return a context in which `add` gets each new holder of numbers, in its initial state.

        It serves functions that build parts, such as variables, when they are first called.
        """
        return nullcontext()


class Compiler(EngineRole):
    """The engine's compiler, and its compiled code."""

    def eagerly(self, function: Function) -> AbstractContextManager[object]:
        """Return a context in which nothing compiles, not even in the user's file; `compiles` notes what would have."""
        return nullcontext()

    def owning(self, built: Function) -> Function:
        """Return a step of a user's function whose calls own their arrays, where a call may destroy its arguments."""
        return built

    def compiled(self, mode: str, function: Function) -> Function:
        """Return a function compiled by itself, for others to call; no part of it may stay in Python."""
        raise NotImplementedError(f"{self.engine.title} compiles nothing")

    def whole(self, mode: str, function: Function, around: Callable[[Function], Function]) -> tuple[Function, Function]:
        """Return `step(*args) -> (value, gradients)` of `around(function)`, and the function to pass to `observed`.

        No part of the function may stay in Python. By default it is compiled by itself, and the eager mode calls it.
        """
        compiled = self.compiled(mode, function)
        return self.engine.build(self.engine.mode_names[0], around(compiled), 0), compiled

    def varying(self, mode: str, loss: Function, dims: Any) -> Function:
        """Return `build` for varying axes: `dims` has a name or None for each axis, if the engine can be told."""
        return self.engine.build(mode, loss, 0)

    def captured(self, mode: str, function: Function, *, whole: bool = True) -> Function | None:
        """Return a captured function without its kernels, where making them is a slow stage of its own; else None.

        Unless the graph must be `whole`, it may be in pieces around graph breaks, which `observed` counts.
        """
        return None

    def own_mode(self, function: Function) -> str:
        """Return the mode in which a function runs as its file compiles the whole of it; "" where there is none."""
        return ""

    def forget(self) -> None:
        """Drop the compiled code of this process; a cache on the disk stays."""

    def anew(self) -> AbstractContextManager[object]:
        """Return a context that begins with nothing compiled, neither in this process nor on the disk."""
        self.forget()
        self.engine.compiles = False
        return nullcontext()


class Ops(EngineRole):
    """The ops of a call, one by one, the parts of its time, and where `shows_graphs` what a compiler captures of it."""

    shows_graphs = False

    def outside(self, call: BoundCall) -> int | None:
        """Return how many ops of a call run outside compiled code (eager: all); None if the engine cannot tell."""
        return None

    def called(self, function: Function, call: tuple[Any, ...]) -> Any:
        """Return the result of a function, with nothing compiled or differentiated."""
        return function(*call)

    def ran(self, step: Function, call: tuple[Any, ...]) -> list[RanOp]:
        """Return the ops that a call of an eager step runs, in order.

        Raises UnsupportedError where they cannot be seen.
        """
        raise UnsupportedError(
            f"nothing counts the ops that {self.engine.title} runs; measure it with graphduel compare"
        )

    def dtypes(self, step: Function, call: tuple[Any, ...]) -> Iterable[Any]:
        """Return the dtypes in which a call of an eager step computes; by default the dtypes of its arguments."""
        arguments: Any = call
        return [leaf.dtype for leaf in optree.tree_leaves(arguments, none_is_leaf=True) if hasattr(leaf, "dtype")]

    def lines(self, step: Function, call: tuple[Any, ...]) -> list[LineOp]:
        """Return the ops of a call of an eager step, in order, each with its line.

        Raises UnsupportedError as `ran` does.
        """
        raise UnsupportedError(f"nothing tells the lines whose ops {self.engine.title} runs")

    def parts(
        self, mode: str, make: Callable[[], Step], eager: Step, index: int, turns: Callable[[Step], Turns]
    ) -> CallPartsRow | None:
        """Return where the time of a warm call goes, by index; None where the engine cannot tell it.

        `make` makes the step of the mode, which compiles anew, and `eager` is that of the mode that compiles nothing.
        `turns` gives the turns of a step. Raises UnsupportedError where a step cannot be told apart.
        """
        return None

    def graphs(
        self, mode: str, make: Callable[[str], Step], index: int, turns: Callable[[Step], Turns]
    ) -> Sequence[GraphProgram]:
        """Return the graphs that a compiled call runs, by index and in order, each as a program of its own.

        `make` makes the step of a mode. Raises UnsupportedError where graphs cannot be told, or one is no program.
        """
        raise UnsupportedError(f"nothing shows the graphs that {self.engine.title} compiles")

    def counts(self, modes: Sequence[str], case: Case, *, run: bool = True) -> list[CallCounts]:
        """Return the counts of each call of a case, eager and compiled, in the terms that have prices.

        By default each call is run eagerly, op by op. An adapter that counts without a run may do so, and must where
        `run` is False. Raises UnsupportedError where nothing counts, and the errors of the function and of the engine.
        """
        step = self.engine.build(modes[0], self.engine.loss(modes[0], case), case.argnum)
        counts = []
        for example in case.examples:
            call = self.engine.arrays((case.params, *example))
            before = self.engine.state.snapshot(case.loss, [call])
            counts.append(count_calls(self.ran(step, call)))
            before.restore()
        return counts


@cache
def _distribution(module: str) -> str:
    """Return the distribution that a module was installed by; cached, because the search reads all metadata."""
    from importlib.metadata import packages_distributions

    return packages_distributions()[module][0]
