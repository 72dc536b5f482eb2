"""The subject of a measurement: one function in one engine, as data that travels to processes, and its situation.

Four constructors make it: `of_workload`, `of_model`, `of_file` and `of_function`. A process opens it as a case.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from msgspec import structs

from compare import workloads
from compare.engines import OWN, Engine, find_engine, words
from compare.engines.graphduel.standin import stand_in
from compare.engines.mode import DOCTOR, PADDED, PYTHON, ModeTrial, user_name
from compare.errors import InputsError
from compare.records.cells import Compilations, Memory
from compare.records.job import Job
from compare.records.own import FunctionLook, ShapePolicies
from compare.records.record import Cell, Device, Record, Records, label, records_of
from compare.workloads import names, nearest
from compare.workloads.models import is_model

Function = Callable[..., Any]
Calls = Sequence[tuple[Any, ...]]
Modes = tuple[str, ...]
Asked = str | Sequence[str] | Mapping[str, str] | None
"""Modes as a user gives them: names and words, or a mapping of names to words."""

SIZE = "given"
"""The size of a user's function in records."""
LIMIT = 300.0
"""The default seconds without progress after which a worker is ended."""
SECONDS = 2.5
"""The default seconds for the rounds of one process."""
REPEATS = 5
"""The default number of times that all is built and measured, so that intervals cover several layouts of memory."""
OURS = ("dynamic", "static", "static-converted", "static-native")
"""The modes of our engine that stand beside those of a framework, unless others are asked for."""


@dataclass(frozen=True)
class Situation:
    """How a user's function is measured, and where its processes leave things for one another.

    `processes` workers measure, for `seconds` each; with 0 the worker that looks measures too. `limit` is how many
    seconds a mode may take for its first pass over the inputs, and a worker without progress. With `apart` a step is
    also taken apart. `command` is the user's command. Steps compute with `threads`, on as many cores; if these are
    several, each mode is timed in processes of its own, by the wall. `tries` says which further modes the first look
    adds: "where" the places of the function, "remedies" also what the look asks for. With `bisects` the
    graph is looked for that is slower compiled, or wrong.

    The worker that looks puts function and calls into `folder`, for others. The first worker of the first of several
    engines leaves its numbers in the folder `numbers`.
    """

    seed: int = 0
    seconds: float = SECONDS
    limit: float = LIMIT
    processes: int = REPEATS
    device: Device = "cpu"
    apart: bool = False
    command: str = ""
    folder: str = ""
    numbers: str = ""
    threads: int = 1
    tries: Literal["", "where", "remedies"] = ""
    bisects: bool = False

    def place(self, name: str) -> str:
        """Return the name of a folder, or of a file, that comparisons on other numbers of threads do not use."""
        return name if self.threads == 1 else f"{name}-{self.threads}"


@dataclass(frozen=True)
class Subject:
    """One function in one engine.

    engine     the name of the engine
    name, size  what records call it
    modes      those of the engine, the base first, which compiles nothing; () for every mode of a workload
    source     `module:attribute`, where any worker finds it as a workload; "" for a user's function
    function   the place of a user's function, `FILE.py:name`, and `inputs` that of its calls, which may be ""
    gradient   whether a step takes gradients in argument 0; with None our engines decide by the function's result
    sample     the number of calls that are taken of a stream; 0 takes all
    beside     whether several engines are asked about one file
    stands_in  whether our engine stands in for PyTorch in a file that imports it
    tried      those of `modes` that a first look has added
    """

    engine: str
    name: str
    modes: Modes = ()
    size: str = SIZE
    source: str = ""
    function: str = ""
    inputs: str = ""
    gradient: bool | None = None
    allow_effects: bool = False
    sample: int = 0
    beside: bool = False
    stands_in: bool = False
    tried: Modes = ()

    @classmethod
    def of_workload(
        cls, cell: Cell, engine: Engine | None = None, *, usual: bool = True, sample: int = 0
    ) -> Subject:  # fmt: skip
        """Return the subject of a workload at a size.

        In our engine it has every mode of the workload. In a framework it has the modes of the suite, with `usual`
        only the usual ones; the first that compiles also gets padded examples, where the workload can be padded.
        """
        modes: Modes = ()
        if engine is not None:
            policies, (eager, *others) = workloads.get(cell.workload).policies, engine.mode_names
            asked = [
                mode
                for mode, traits in ((mode, engine.traits(mode)) for mode in others)
                if traits.suite and (traits.usual or not usual) and ("symbolic" in policies or not traits.relaxes)
            ]
            modes = (eager, *asked, *([asked[0] + PADDED] if "pad" in policies and asked else []))
        own = OWN if engine is None else engine.name
        return cls(own, cell.workload, modes, cell.size, workloads.source(cell.workload), sample=sample)

    @classmethod
    def of_model(cls, cell: Cell, engine: Engine, modes: Sequence[str] = ()) -> Subject:
        """Return the subject of a real model in these modes, or the first that compiles. Raises as `modes_of`."""
        return cls(
            engine.name, cell.workload, modes_of(engine, modes or None), cell.size, workloads.source(cell.workload)
        )

    @classmethod
    def of_file(
        cls, function: str, inputs: str, engine: str, modes: Asked = None, **facts: Any
    ) -> Subject:  # fmt: skip
        """Return the subject of a function of a file, which is not run here; `facts` are further fields.

        Raises InputsError for an unknown mode, and where the engine is not installed.
        """
        subject = cls.of_function(function.rpartition(":")[2] or "a function", engine, modes, **facts)
        named = subject.name if subject.name == function.rpartition(":")[2] else function or subject.name
        return replace(subject, name=named, function=function, inputs=inputs)

    @classmethod
    def of_function(cls, title: str, engine: str, modes: Asked = None, **facts: Any) -> Subject:
        """Return the subject of a function that is an object of this process. Raises as `of_file`.

        Its name differs from any workload's or real model's name.
        """
        adapter = find_engine(engine)
        if adapter.missing:
            raise InputsError(adapter.missing)
        name = f"your {title}" if title in names() or is_model(title) else title
        return cls(adapter.name, name, modes_of(adapter, modes), **facts)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Subject:
        """Return the subject that `to_dict` wrote."""
        return cls(**{**values, "modes": tuple(values["modes"]), "tried": tuple(values["tried"])})

    def to_dict(self) -> dict[str, Any]:
        """Return the subject as plain JSON values."""
        return asdict(self)

    @property
    def adapter(self) -> Engine:
        """Return the adapter of the engine."""
        return find_engine(self.engine)

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
        return label(mode) if self.beside else user_name(self.adapter, mode)

    @property
    def labels(self) -> Modes:
        """Return the user's names of the modes, in order."""
        return tuple(map(self.label, self.modes))

    @property
    def given_modes(self) -> Modes:
        """Return the modes as `--modes` takes them."""
        return tuple(self.adapter.words.written(mode) for mode in self.modes)

    @property
    def words(self) -> list[str]:
        """Return each mode that the user has defined, as `LABEL=WORD`, or as a word where that is its label."""
        own = [mode for mode in self.modes if mode not in self.adapter.mode_names]
        named = [(self.label(mode), self.adapter.traits(mode).word) for mode in own]
        return [word if label == word else f"{label}={word}" for label, word in named]

    def job(self, kind: str, process: int | None = None, modes: Modes | None = None, **options: Any) -> Job:
        """Return the job of one process that makes a record of that kind; `options` are further fields of the job."""
        asked = self.modes if modes is None else modes
        place = {"source": self.source, "thin": self.sample, "modes": asked}
        return Job(kind, self.name, self.size, process, **{**place, **options})

    def started(self, situation: Situation = Situation()) -> Engine:
        """Start the engine in this process and on the device, with a user's default settings; return it.

        Raises InputsError where the device is missing.
        """
        if self.stands_in:
            stand_in()
        self.adapter.start(situation.seed, doubles=None, device=situation.device, threads=situation.threads)
        return self.adapter

    def widened(self, first: Records, tries: str = "") -> Subject:
        """Return the subject with further modes that the first look asks for.

        They are that of the file's own compilation, if the look has seen it compile, and those that `tries` names.
        """
        written = self.adapter.written
        mode = self.adapter.mode_names[self.adapter.modes.index(written)] if written else self.base
        compiles = any(look.settings.get("compiles") for look in records_of(first, FunctionLook))
        more = (mode,) if compiles and mode not in self.modes else ()
        tried = [self.adapter.words.full_name(f"{trial.name}={trial.word}") for trial in self.trials(first, tries)]
        return replace(
            self, modes=(*self.modes, *more, *(mode for mode in tried if mode not in self.modes)), tried=tuple(tried)
        )

    def trials(self, first: Records, tries: str) -> list[ModeTrial]:
        """Return the further modes to try by the first look, none of which has the name of another mode.

        They keep the options of the first mode that compiles, such as its backend, where they do not change them.
        """
        looks = records_of(first, FunctionLook)
        if not tries or not looks:
            return []
        own = [self.label(mode) for mode in self.modes if mode not in self.tried]
        told: list[Record] = [
            structs.replace(record, modes={mode: row for mode, row in record.modes.items() if mode in own})
            for record in (*records_of(first, Compilations), *records_of(first, Memory))
        ]
        told += records_of(first, ShapePolicies)
        trials = self.adapter.trials.modes(told, looks[0].settings, remedies=tries == "remedies")
        usual = next((self.adapter.traits(mode) for mode in self.modes[1:] if mode not in self.tried), None)
        return [trial.beside(usual) if usual else trial for trial in trials if trial.name not in own]


def modes_of(engine: Engine, modes: Asked = None) -> Modes:
    """Return the full names of some modes, each once, the base first. Raises InputsError.

    A mode is named, or it is a word, which `NAME=WORD` or a mapping of names to words gives a name of its own. All are
    compared with the base. Without any there are two modes, the second being the first that compiles.
    """
    base, *others = engine.mode_names
    if modes is None:
        return (base, *others[:1])
    written = words_of(modes)
    if not written:
        raise InputsError(f"modes is empty; choose some of {', '.join(modes_by_name(engine))}")
    chosen = tuple(dict.fromkeys((base, *(mode_of(engine, each) for each in written))))
    for name, count in Counter(engine.traits(mode).name for mode in chosen).items():
        if count > 1:
            raise InputsError(f"two modes are named {name!r}; give each a name of its own")
    return chosen


def in_pythons(engine: Engine, modes: Sequence[str], pythons: Mapping[str, str]) -> list[str]:
    """Return modes as `--modes` takes them, some of which run by the interpreter of their name.

    A name that no mode has compiles as the first mode that compiles; then all that are compared by default are too.
    Raises InputsError.
    """
    listed = {words.part(mode)[0] or mode: mode for mode in modes}
    if pythons and not listed:
        listed = {mode: mode for mode in modes_of(engine)[1:]}
    for name, python in pythons.items():
        word = engine.traits(mode_of(engine, listed[name]) if name in listed else engine.mode_names[1]).word
        if not word:
            raise InputsError(f"--python {name}: a mode that compiles nothing runs with each of the others")
        compiler, values = words.parse(word)
        listed[name] = f"{name}={words.text(compiler, {**values, PYTHON: python})}"
    return list(listed.values())


def words_of(modes: Asked) -> tuple[str, ...]:
    """Return modes as `--modes` takes them."""
    if isinstance(modes, str):
        return (modes,)
    if isinstance(modes, Mapping):
        return tuple(f"{name}={word}" for name, word in modes.items())
    return tuple(modes or ())


def mode_of(engine: Engine, written: str) -> str:
    """Return the full name of a mode: of its short or full name, an alias, a word, or what the framework lists.

    Raises InputsError for others, and for a word with options that the installed framework does not take.
    """
    full_names = modes_by_name(engine)
    if written in full_names:
        return full_names[written]
    name, word = words.part(written)
    if name in full_names:
        raise InputsError(f"{written}: {name} is a mode of {engine.title} already; choose another name")
    offer = engine.words.offer()
    if not words.is_call(word):
        bare = {short: engine.traits(full).word for short, full in full_names.items()} | dict(offer.bare)
        if not bare.get(word):
            raise InputsError(
                f"{engine.title} has no mode {word!r}; {nearest(word, tuple(bare))}; {DOCTOR.format(engine.name)}"
            )
        name, word = name or word, bare[word]
    mode = engine.words.read(f"{name}={word}" if name else word)
    offer.check(mode.word, engine.name)
    return engine.words.full_name(f"{name}={mode.word}" if name else mode.word)


def defines(engine: Engine, written: str) -> bool:
    """Return whether an engine has a mode by this name, the compiler of this word, or what this name means there."""
    if written in modes_by_name(engine):
        return True
    if not words.is_call(written):
        return words.part(written)[1] in engine.words.offer().bare
    try:
        engine.words.read(written)
    except InputsError:
        return False
    return True


def modes_by_name(engine: Engine) -> Mapping[str, str]:
    """Return the full names of an engine's modes by short names, by full names, and by aliases."""
    full_names = {user_name(engine, mode): mode for mode in engine.mode_names}
    full_names |= {mode: mode for mode in engine.mode_names}
    return full_names | {alias: full_names[short] for alias, short in engine.aliases.items()}
