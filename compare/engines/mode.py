"""A mode of an engine as data: its word, what it is like, what a framework offers for words, and trials.

Then two roles of an adapter that are about modes; `compare.engines.base` has the adapter and its other roles.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import Any

from compare.engines import words
from compare.engines.step import Context, Function
from compare.errors import CompareError, InputsError, UnknownNameError
from compare.records.record import Records
from compare.workloads import nearest


@dataclass(frozen=True)
class Mode:
    """A way for an engine to run a function.

    name         the end of the mode's name
    word         the compiler and its keywords, as `compare.engines.words` reads them; "" where nothing compiles
    usual        whether a quick run measures it too. A function of the user's is compared in the first two modes
                 unless other modes are asked for
    suite        whether workloads are measured in it
    traces       whether it takes control flow on values only as the framework's own ops. It then gets the form of a
                 workload without such control flow, with a scan for the loop over a varying axis
    relaxes      whether it compiles for shapes that vary; it is measured where shapes vary
    converts     whether it rewrites Python's control flow before tracing, and another mode of the engine does not
    pads         whether it computes with more elements than it was given
    keeps        whether it keeps compiled code on the disk, where the next process finds it
    keeps_each   whether it has a graph for each shape
    readable     whether each kernel of a step can be watched: it runs from a tape, or from the one graph among
                 its `executables`
    kernels      whether it makes kernels. A mode without them captures the graphs of the first mode that compiles, and
                 takes less time, so that graphs are counted by it
    uncounted    whether another runtime allocates the arrays, where none of our counters sees them
    infers       whether it compiles only functions that take no gradients
    derivatives  the module that `graphs.testing.check_grads` differentiates with, to any order; None where it has only
                 `build`
    """

    name: str
    word: str = ""
    usual: bool = True
    suite: bool = True
    traces: bool = False
    relaxes: bool = False
    converts: bool = False
    pads: bool = False
    keeps: bool = False
    keeps_each: bool = False
    readable: bool = False
    kernels: bool = True
    uncounted: bool = False
    infers: bool = False
    derivatives: ModuleType | None = None

    @property
    def compiler(self) -> str:
        """Return the name of the compiler; "" where nothing compiles."""
        return words.parse(self.word)[0] if self.word else ""

    @property
    def options(self) -> dict[str, Any]:
        """Return the values of the word's keywords."""
        return words.parse(self.word)[1] if self.word else {}

    @property
    def environment(self) -> dict[str, str]:
        """Return the variables that the mode's processes have, from before they import the framework."""
        return dict(self.options.get(ENVIRONMENT, {}))

    @property
    def python(self) -> str:
        """Return the interpreter that runs the mode's processes; "" for that of this process."""
        return str(self.options.get(PYTHON, ""))


ENVIRONMENT, PYTHON = "env", "python"
"""The keywords that hold environment variables, and an interpreter."""
PROCESS = (ENVIRONMENT, PYTHON)
"""The keywords of any framework's compiler that are about the mode's processes."""
PADDED = "-padded"
"""The suffix of a mode that gets every example padded to the longest."""
CONFIG = "config"
"""The keyword that holds settings of the framework, which are set while the mode compiles and runs."""
DOCTOR = "`graphduel doctor {}` lists what there is"


@dataclass(frozen=True)
class ModeTrial:
    """A mode to try after a first look: its name, its word, and what a user changes in their code for it."""

    name: str
    word: str
    change: str = ""

    def beside(self, usual: Mode) -> ModeTrial:
        """Return the trial with the options of the usual mode too, where both have one compiler."""
        compiler, options = words.parse(self.word)
        if compiler != usual.compiler:
            return self
        both = usual.options
        for name, value in options.items():
            is_dict = isinstance(value, dict) and isinstance(both.get(name), dict)
            both[name] = {**both[name], **value} if is_dict else value
        return replace(self, word=words.text(compiler, both))


@dataclass(frozen=True)
class Offer:
    """What an installed framework's compilers take.

    keywords  the keywords of each compiler that may be written out
    inside    the names that a keyword's dict may have, for the keywords where they are known
    bare      the words that mean a mode by themselves, such as the name of a backend, and the word of each
    """

    keywords: Mapping[str, Sequence[str]]
    inside: Mapping[str, Sequence[str]] = field(default_factory=dict)
    bare: Mapping[str, str] = field(default_factory=dict)

    def check(self, word: str, engine: str) -> None:
        """Raise InputsError for a keyword, or a name in a keyword's dict, that the framework of that name lacks."""
        compiler, options = words.parse(word)
        self._check(word, engine, f"{compiler}() takes no", options, self.keywords.get(compiler, ()))
        for keyword, value in options.items():
            if keyword in (ENVIRONMENT, *self.inside) and not isinstance(value, dict):
                raise InputsError(f"{word}: {keyword} is a dict, not {value!r}")
            if keyword in self.inside:
                self._check(word, engine, f"{keyword} has no", value, self.inside[keyword])
        texts = [text for pair in options.get(ENVIRONMENT, {}).items() for text in pair]
        if not all(isinstance(text, str) for text in texts):
            raise InputsError(f"{word}: {ENVIRONMENT} maps names of variables to text, both in quotes")
        if not isinstance(options.get(PYTHON, ""), str):
            raise InputsError(f"{word}: {PYTHON} is the place of an interpreter, in quotes")

    @staticmethod
    def _check(word: str, engine: str, said: str, asked: Iterable[object], names: Sequence[str]) -> None:
        for name in asked:
            if name not in names:
                raise InputsError(f"{word}: {said} {name!r}; {nearest(str(name), names)}; {DOCTOR.format(engine)}")


# The roles that are about modes -------------------------------------------------------------------------------------


class Role:
    """A part of an adapter's interface; `engine` is the adapter, an `Engine` of `compare.engines.base`."""

    engine: Any

    def __init__(self, engine: Any) -> None:
        self.engine = engine


def user_name(engine: Any, full_name: str) -> str:
    """Return the user's name of an engine's mode; what is none, such as a strategy of lengths, keeps its name."""
    return engine.traits(full_name).name or "eager" if engine.words.has(full_name) else full_name


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
            return user_name(self.engine, full_name)
        return full_name.removeprefix(self.start)


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
