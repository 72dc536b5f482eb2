"""The interface of an engine's adapter: its modes, its functions, how it builds a step, and its roles.

An engine is one of ours or a framework. Code that measures asks the adapter and never tests for a framework's name.
Read `Mode` in `mode` and `Engine` first; the roles below it have defaults that adapters override.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from functools import cache, partial
from importlib.metadata import packages_distributions, version
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any

import numpy as np
import optree

from compare.engines import words
from compare.engines.debugging import Tools
from compare.engines.library import Loader, namespace
from compare.engines.mode import PADDED, Mode, ModeTrial, Offer
from compare.engines.nudge import FloatChange, changed_values
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
from compare.errors import CompareError, InputsError, UnknownNameError, UnsupportedError, without_folders
from compare.records.own import CallCounts, CallPartsRow, CompileEvent, RanOp, count_calls
from compare.records.record import Device, Records, note_gpu
from compare.workloads import nearest
from compare.workloads.base import Case, Workload

DRAWS = "it draws random numbers, which in float64 are others"
"""The reason why a call has no float64 run to compare with."""
LONG = 400
"""The length in characters from which on only the first line of an error message is shown."""
SLOW = 0.1
"""The compile time in seconds from which on nothing is compiled merely to get a better number."""


class Engine(ABC):
    """An adapter of one engine. One process runs one engine, and `start` is called before anything else in it.

    Its roles (below) say more about it, each an object with safe defaults: `process`, `devices`, `library`, `state`,
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
    draws_otherwise  why compiled code draws other random numbers for a seed than eager code; None where it may not
    rethreads  whether a process that has computed can be given another number of threads
    written  the mode in which a file compiles functions by itself
    compiles  whether a function run under `eagerly` would have compiled something by itself
    device   the device that arrays lie on
    threads  how many threads a step computes with
    traced_into  the variable that names a folder in which the framework keeps the trace of its compiler
    callbacks  suffixes of the files through which compiled code calls Python on every call
    caches   suffixes of the files that hold compiled code on the disk; writing them is no side effect of a step
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


class Role:
    """A part of an adapter's interface; `engine` is the adapter."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine


class Words(Role):
    """The modes by their full names, which are theirs by the engine, or the words of a user's."""

    @property
    def start(self) -> str:
        """Return the start of the full names of modes."""
        return f"{self.engine.prefix or self.engine.name}-"

    def full_name(self, name: str) -> str:
        """Return the full name of a mode by the end of it."""
        return self.start + name if name else self.engine.name

    def mode(self, full_name: str) -> Mode:
        """Return the mode whose full name holds a word. Raises UnknownNameError where it holds none."""
        written = full_name.removeprefix(self.start)
        if not full_name.startswith(self.start) or not words.is_call(written):
            said = nearest(full_name, self.engine.mode_names)
            raise UnknownNameError(f"{self.engine.title} has no mode {full_name!r}; {said}")
        return self.read(written)

    def read(self, written: str) -> Mode:
        """Return the mode that `WORD` or `NAME=WORD` defines. Raises InputsError where the engine has none such."""
        name, word = words.part(written)
        compiler, options = words.parse(word)
        rows = [mode for mode in self.engine.modes if mode.compiler == compiler]
        if not rows:
            has = ", ".join(dict.fromkeys(f"{mode.compiler}()" for mode in self.engine.modes if mode.word)) or "none"
            raise InputsError(f"{word}: {self.engine.title} has no compiler {compiler}(); it has {has}")
        word = words.text(compiler, options)
        same = next((mode for mode in rows if mode.options == options), None)
        return replace(same or self.traits(rows, options), name=name or word, word=word, usual=False, suite=False)

    def traits(self, rows: Sequence[Mode], options: Mapping[str, Any]) -> Mode:
        """Return the traits of a compiler with these options; `rows` are the modes with that compiler."""
        return rows[0]

    def offer(self) -> Offer:
        """Return what the compilers take, as the installed framework tells, which this may import."""
        return Offer({mode.compiler: () for mode in self.engine.modes if mode.word})

    def has(self, full_name: str) -> bool:
        """Return whether a full name is that of a mode of this engine."""
        try:
            self.engine.traits(full_name)
        except CompareError:
            return False
        return True

    def written(self, full_name: str) -> str:
        """Return a mode as its user writes it."""
        if full_name in self.engine.mode_names:
            return self.engine.traits(full_name).name or "eager"
        return full_name.removeprefix(self.start)


class Process(Role):
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


class Devices(Role):
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


class Library(Role):
    """The modules written over `graphs`, executed again over this framework's functions."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self._loaders: dict[bool, Loader] = {}

    def load(self, module: str, *, control: bool = False) -> ModuleType:
        """Load a module written over `graphs` with this framework's functions; `control` uses its control-flow ops."""
        return self._loader(control=control).load(module)

    def edited(self, module: str, text: str) -> AbstractContextManager[ModuleType]:
        """Return a context that gives an already loaded module with another text, over this framework's functions."""
        return self._loader().edited(module, text)

    def _loader(self, *, control: bool = False) -> Loader:
        if control not in self._loaders:
            name = f"{self.engine.name}_control" if control else self.engine.name
            functions = {**self.engine.functions(), **(self.control() if control else {})}
            self._loaders[control] = Loader(name, namespace(name, functions))
        return self._loaders[control]

    def workload(self, source: str) -> Workload:
        """Return the workload at `module:attribute` over this framework's functions; its data stay NumPy arrays."""
        module, _, attribute = source.partition(":")
        workload: Workload = getattr(self.load(module), attribute)
        return workload

    def control(self) -> dict[str, Function]:
        """Return the framework's own ops for control flow, which replace Python's control flow of `functions`."""
        return {}


class CallState(Role):
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
        return partial(Snapshot, kept=self.kept, internals=engine.internals, builders=engine.builders)

    def kept(self, value: Any) -> Piece | None:
        """Return a piece that restores one of the framework's objects with numbers; None for any other value."""
        return None

    def making(self, add: Callable[[Any], None]) -> AbstractContextManager[None]:
        """Return a context in which `add` gets each new holder of numbers, in its initial state.

        It serves functions that build parts, such as variables, when they are first called.
        """
        return nullcontext()


class Numbers(Role):
    """The floats and the random numbers of a call, and the means to change them."""

    def draws(self, step: Function, call: tuple[Any, ...]) -> list[np.ndarray]:
        """Return the random numbers that an eager step's call draws, in order, before a scale or other option."""
        return []

    def noting(self, drawn: list[Any]) -> AbstractContextManager[object]:
        """Return a context that appends each draw of a call to `drawn`.

        Raises UnsupportedError where dtypes change draws.
        """
        raise UnsupportedError(DRAWS)

    def giving(self, drawn: Sequence[Any]) -> AbstractContextManager[object]:
        """Return a context in which a call draws the noted numbers in its own dtype.

        Raises UnsupportedError on a mismatch.
        """
        return nullcontext()

    def changed(self, tree: Any, change: FloatChange) -> Any:
        """Return a copy of the arguments with changed floats."""
        return self.engine.arrays(optree.tree_map(change.function(), self.engine.numpy(tree), none_is_leaf=True))

    def meanwhile(self, holders: Sequence[Any], change: FloatChange) -> AbstractContextManager[None]:
        """Return a context in which floats that a function holds are changed in place, where they may be."""
        if change.seed is None:
            return nullcontext()
        arrays = [value for value in holders if isinstance(value, np.ndarray) and value.flags.writeable]
        return changed_values(arrays, np.copy, np.copyto, change.function())

    def round_results(self, seed: int) -> AbstractContextManager[object]:
        """Return a context in which ops of an eager step round their results anew, where the engine can let them.

        Changed inputs do not tell of rounding inside: whole numbers stay, and where a function loses the digits of its
        result, as 1 - tanh(x)**2 does for a large x, its inputs move it less than its own rounding.
        """
        return nullcontext()

    def draws_inside(self, function: Function, call: tuple[Any, ...]) -> bool:
        """Return whether a call draws random numbers from a key or generator in its arguments; float64 draws others."""
        return False

    def repeatable(self) -> AbstractContextManager[None]:
        """Return a context in which a compiled function draws the eager one's random numbers, if the engine can."""
        return nullcontext()


class Compiler(Role):
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

    def forget(self) -> None:
        """Drop the compiled code of this process; a cache on the disk stays."""

    def anew(self) -> AbstractContextManager[object]:
        """Return a context that begins with nothing compiled, neither in this process nor on the disk."""
        self.forget()
        self.engine.compiles = False
        return nullcontext()


class ModeTrials(Role):
    """The modes that are worth a try for a function.

    `tries` is whether there may be any, and `places` whether some compile a part. `keeps` says how a user keeps
    compiled code for other processes; "" where there is no way.
    """

    tries: bool = False
    places: bool = False
    keeps: str = ""

    def facts(
        self, function: Function, calls: Sequence[tuple[Any, ...]], fresh: Context | None = None
    ) -> Mapping[str, list[str]]:  # fmt: skip
        """Return what `modes` reads of a function and its calls, as settings of the first look.

        `fresh` is the context in which calls begin with the state of the start; with it more may be found by running.
        """
        return {}

    def modes(self, records: Records, facts: Mapping[str, Any], *, remedies: bool) -> Sequence[ModeTrial]:
        """Return the modes to try by the records and settings of a first look: places, or with `remedies` changes."""
        return ()

    def by_hand(self, said: Sequence[str]) -> Sequence[str]:
        """Return what a user must rewrite by hand, by the reasons of compilations and graph breaks."""
        return ()


class Ops(Role):
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


class Errors(Role):
    """The meaning of the engine's errors."""

    def said(self, error: BaseException) -> str | None:
        """Return the compiler's reason for refusing, in a sentence with the user's line; None for other errors."""
        return None

    @contextmanager
    def checked(self) -> Iterator[None]:
        """A context in which NaN and infinity are errors, by the framework's own switch."""
        yield

    def traced(self, error: BaseException) -> bool:
        """Return whether a compiled function failed while it was traced or compiled, before any data ran."""
        return False

    def refuses(self, error: BaseException, mode: str = "") -> bool:
        """Return whether an error means that the engine does not support something, in this mode or in any."""
        return isinstance(error, NotImplementedError)

    def summary(self, error: BaseException) -> str:
        """Return the message of an error in a user's function; of a message of LONG characters only the first line."""
        said = f"{error}" if isinstance(error, CompareError) else f"{type(error).__name__}: {error}"
        return said if len(said) < LONG else said.strip().splitlines()[0]

    def reason(self, error: BaseException) -> str:
        """Return the message of an error in one line, without folders."""
        said = [line.strip() for line in str(error).splitlines() if line.strip()]
        return without_folders(f"{type(error).__name__}: {said[0]}" if said else type(error).__name__)


@cache
def _distribution(module: str) -> str:
    """Return the distribution that a module was installed by; cached, because the search reads all metadata."""
    return packages_distributions()[module][0]
