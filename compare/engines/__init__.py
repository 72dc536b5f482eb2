"""Engines: our own two, PyTorch, TensorFlow, JAX and HIPS autograd, each behind one adapter.

An engine runs a function of the user's, or one of our workloads. Its adapter is a file here and one line of
`_FRAMEWORKS`, or an entry point of another distribution (`compare.extensions`). A mode is named after its engine and a
mode of the engine: `torch-eager`, `tf-function-xla`; our modes are `dynamic`, `static-exact` and so on. Nothing outside
this folder knows a framework by name. Read `base` first, which has the interface, then `step` and one adapter.
"""

from __future__ import annotations

import ast
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from importlib import import_module
from pathlib import Path

from compare.engines.base import Engine
from compare.engines.process import LimitError, limit_seconds
from compare.engines.step import Step
from compare.errors import UnknownNameError, UnsupportedError
from compare.extensions import Extension, load_extensions
from compare.workloads import nearest, source
from compare.workloads.base import Case

__all__ = [
    "OWN",
    "Engine",
    "engine_of_mode",
    "find_engine",
    "framework_of_imports",
    "frameworks",
    "groups",
    "names",
    "of_imports",
    "of_mode",
    "of_values",
    "ours",
    "refuses",
    "session",
    "step",
    "try_block",
]  # fmt: skip

OWN = "graphduel"
"""The name of our adapter, which covers two engines: the dynamic and the static one."""
PACKAGES = ("graphs", "dynamic", "static")
"""The packages that a program for our engines imports."""
COMMON = "numpy"
"""A package that every engine accepts arrays of, so that importing it says nothing about the engine."""
KERAS = "keras"
"""A package that runs in several frameworks."""
FIRST, PATIENCE = "tiny_mlp", 120.0
"""The workload that a session compiles first, so that no later one pays for loading a compiler, in at most so many
seconds."""
_OURS = "compare.engines.graphduel.adapter:GraphDuel"
_FRAMEWORKS = {
    "torch": "compare.engines.torch.adapter:Torch",
    "tensorflow": "compare.engines.tensorflow.adapter:TensorFlow",
    "jax": "compare.engines.jax:Jax",
    "autograd": "compare.engines.autograd:Autograd",
}


def names() -> tuple[str, ...]:
    """Return the name of every engine that has an adapter."""
    return (OWN, *frameworks())


def frameworks() -> tuple[str, ...]:
    """Return the names of all engines but ours: first those of this folder, then those of other distributions."""
    return (*_FRAMEWORKS, *_extensions())


@cache
def _extensions() -> Mapping[str, Extension[Engine]]:
    return load_extensions("engines", Engine, (OWN, *_FRAMEWORKS))  # type: ignore[type-abstract]


def of_mode(mode: str) -> Engine:
    """Return the adapter of the engine that has a mode; our engine is asked first. Raises UnknownNameError."""
    engine = next((engine for engine in map(find_engine, _in_order()) if engine.words.has(mode)), None)
    if engine is None:
        modes = [mode for name in names() for mode in find_engine(name).mode_names]
        raise UnknownNameError(f"no engine has a mode {mode!r}; {nearest(mode, modes)}")
    return engine


def _in_order() -> Iterator[str]:
    """Yield the names of our engine, of frameworks, and of those of other distributions, which are looked for last."""
    yield from (OWN, *_FRAMEWORKS)
    yield from _extensions()


def engine_of_mode(mode: str | None) -> tuple[Engine, str]:
    """Return the engine and the name of the mode to check against eager; the default is our first static mode."""
    engine = of_mode(mode) if mode else find_engine(OWN)
    return engine, mode or engine.mode_names[1]


def ours() -> tuple[str, str]:
    """Return the names of our dynamic mode, which records a graph on every run, and of our first mode that compiles."""
    eager, compiled, *_ = find_engine(OWN).mode_names
    return eager, compiled


def step(mode: str, case: Case) -> Step:
    """Return the step of a mode for a case. Raises what `Engine.step` raises."""
    return of_mode(mode).step(mode, case)


def refuses(mode: str, error: BaseException) -> bool:
    """Return whether an error means that the engine of a mode does not support something, rather than a fault."""
    return of_mode(mode).errors.refuses(error, mode)


@cache
def find_engine(name: str) -> Engine:
    """Return the adapter of an engine by name; it imports the engine only when it is used. Raises UnknownNameError."""
    own = {OWN: _OURS, **_FRAMEWORKS}
    if name not in own:
        if name in _extensions():
            return _extensions()[name].value
        raise UnknownNameError(f"no engine is named {name!r}; {nearest(name, names())}")
    module, _, attribute = own[name].partition(":")
    engine: Engine = getattr(import_module(module), attribute)()
    return engine


def session(mode: str) -> Engine:
    """Return the engine of a mode, started, after the mode has compiled a first workload: a warm session.

    A person has such a session who edits a model.
    """
    engine = of_mode(mode)
    engine.start(0)
    case = engine.library.workload(source(FIRST)).case("small")
    with suppress(UnsupportedError), try_block(engine, PATIENCE):
        step = engine.build(mode, engine.loss(mode, case), 0)
        engine.wait(step(*engine.arrays((case.params, *case.examples[0]))))
    return engine


@contextmanager
def try_block(engine: Engine, seconds: float) -> Iterator[None]:
    """A context for a block that an engine may refuse, fail in, or not end in `seconds`.

    Raises UnsupportedError with the reason.
    """
    try:
        with limit_seconds(seconds):
            yield
    except LimitError:
        raise
    except Exception as error:
        said = engine.errors.reason(error)
        raise UnsupportedError(said if engine.errors.refuses(error) else f"failed: {said}") from error


def of_imports(text: str) -> str | None:
    """Return the one framework that a program imports; None for none or several, or where it imports our engines."""
    packages = {name.partition(".")[0] for name in _imported_modules(text)} - {COMMON}
    if not packages.isdisjoint(PACKAGES):
        return None
    imported = [name for name in frameworks() if find_engine(name).module in packages]
    if not imported and KERAS in packages:
        imported = [name for name in frameworks() if name == _keras_backend(text)]
    return imported[0] if len(imported) == 1 else None


def framework_of_imports(text: str) -> str:
    """Return the words `imports jax`, or words that say in which framework Keras runs."""
    name = of_imports(text)
    packages = {each.partition(".")[0] for each in _imported_modules(text)}
    by_itself = name is not None and find_engine(name).module in packages
    return f"imports {name}" if by_itself else f"imports keras, whose backend is {name}"


def _keras_backend(text: str) -> str:
    """Return the framework that Keras runs in, by the program's text, the environment or `keras.json`."""
    if written := _BACKEND.search(text):
        return written[1]
    home = Path(os.environ.get("KERAS_HOME", "~/.keras")).expanduser()
    try:
        configured = json.loads((home / "keras.json").read_text("utf-8")).get("backend")
    except (OSError, ValueError, AttributeError):
        configured = None
    return str(os.environ.get("KERAS_BACKEND") or configured or "tensorflow")


_BACKEND = re.compile(r"""^\s*[^#\n]*KERAS_BACKEND["']\]?\s*[=,]\s*["'](\w+)["']""", re.MULTILINE)
"""Matches the place where a program sets the environment variable KERAS_BACKEND."""


def _imported_modules(text: str) -> Iterator[str]:
    """Yield the modules that a program's text imports; none where the text does not parse, which fails when it runs."""
    try:
        nodes = list(ast.walk(ast.parse(text)))
    except (SyntaxError, ValueError):
        return
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module


def of_values(leaves: Iterable[object]) -> str | None:
    """Return the framework that owns an array or module among these values, or None. Imports nothing."""
    kinds = {base.__module__.partition(".")[0] for leaf in leaves for base in type(leaf).__mro__} - {COMMON}
    owners = (
        name for name in frameworks() if not kinds.isdisjoint({find_engine(name).module, find_engine(name).arrays_of})
    )
    return next(owners, None)
