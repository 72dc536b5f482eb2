"""The origin of a function, by which a fresh worker finds it: an importable module, or a file by its path.

Only a file that the user has named, or a module that is imported already, is ever run.

An ONNX file may take the place of a Python file: it becomes a module with its model, and calls made from its inputs.
"""

from __future__ import annotations

import ast
import importlib.util
import os
import sys
from dataclasses import dataclass
from functools import reduce
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from compare.errors import InputsError
from compare.run.start import HOME, PACKAGES
from compare.subjects.case import INPUTS, Inputs, batches_of, call_of, takes_nothing
from compare.workloads import nearest
from graphs.errors import GraphError
from graphs.spec import TensorSpec

GUARD = 'put what it runs under `if __name__ == "__main__":`'
"""The remedy for a file that does more than define."""

PREFIX = "own_file_"
"""The prefix of a module made from a file, so that a file called static.py is not taken for the engine."""

_files: dict[str, str] = {}
"""The files that were run here by their paths, by the names of their modules."""


@dataclass(frozen=True)
class Origin:
    """A module, the name of an object in it, and the file if the module was made from one by its path."""

    module: str
    name: str
    file: str | None

    def load(self) -> Any:
        """Return the object; its module is imported if need be."""
        return reduce(getattr, self.name.split("."), self._import())

    def space(self) -> dict[str, Any]:
        """Return the globals of its module."""
        return vars(self._import())

    def _import(self) -> ModuleType:
        return importlib.import_module(self.module) if self.file is None else import_file(Path(self.file))


def origin_of(f: Any) -> Origin | None:
    """Return where another process finds `f` by name; None for local functions, for __main__, and for objects."""
    module, name = getattr(f, "__module__", None), getattr(f, "__qualname__", None)
    if module in (None, "__main__") or name is None or module not in sys.modules:
        return None
    try:
        value = reduce(getattr, name.split("."), sys.modules[module])
    except AttributeError:
        return None
    return Origin(module, name, _files.get(module)) if value is f else None


@dataclass(frozen=True)
class PlaceInFile:
    """A place `FILE.py:name`, or `package.module:name`: the file as a user has written it, its path, and the name.

    The name may be that of an attribute, `trainer.step`.

    The path is found before any file runs, since a file may change the current folder.
    """

    file: str
    path: Path
    name: str

    @classmethod
    def of(cls, written: str) -> PlaceInFile:
        """Return the place. Raises InputsError for text without a name, and for a missing file."""
        file, colon, name = written.rpartition(":")
        if not colon or not name or not file:
            raise InputsError(f"{written!r} names no function; write FILE.py:function")
        path = Path(file) if Path(file).is_file() else _file_of_module(file)
        if path is None:
            raise InputsError(f"there is no file {file}; write FILE.py:function")
        return cls(file, path.resolve(), name)

    def load(self, *, function: bool = False) -> Any:
        """Return the object; the error for an unknown name suggests those of the file, or of its functions."""
        module = import_file(self.path)
        name, *attributes = self.name.split(".")
        if not hasattr(module, name):
            own = {n: value for n, value in vars(module).items() if not n.startswith("_") and _is_own(value, module)}
            names = tuple(n for n, value in own.items() if callable(value) or not function)
            hint = f"; {nearest(name, names)}" if names else ""
            raise InputsError(f"{self.file} defines no {name!r}{hint}")
        value = getattr(module, name)
        for attribute in attributes:
            if not hasattr(value, attribute):
                names = tuple(n for n in dir(value) if not n.startswith("_"))
                raise InputsError(f"{name} in {self.file} has no {attribute!r}; {nearest(attribute, names)}")
            name, value = f"{name}.{attribute}", getattr(value, attribute)
        return value

    def origin(self) -> Origin:
        """Return the origin of the object, for another process."""
        return Origin(import_file(self.path).__name__, self.name, str(self.path))


def _file_of_module(name: str) -> Path | None:
    """Return the file of `package.module`, searched as by `python -m`; nothing is imported."""
    parts = name.split(".")
    if not all(part.isidentifier() for part in parts):
        return None
    for folder in ("", *sys.path, *os.environ.get("PYTHONPATH", "").split(os.pathsep)):
        beside = Path(folder or ".", *parts)
        for path in (beside.with_suffix(".py"), beside / "__init__.py"):
            if path.is_file():
                return path
    return None


def load_object(written: str) -> Any:
    """Return the object at `FILE.py:name`. Raises InputsError for a missing file or name, and the file's errors."""
    return PlaceInFile.of(written).load()


def source(written: str) -> str:
    """Return the text of the file of `FILE.py:name`, which is not run; "" where it cannot be read."""
    try:
        return PlaceInFile.of(written).path.read_text("utf-8", errors="replace")
    except (InputsError, OSError):
        return ""


def load_function(function: str, inputs: str | None) -> tuple[Any, Inputs]:
    """Return the function at `FILE.py:name` and its calls, from another place or one of INPUTS in the same file.

    Calls are a list, or a function that makes one. `inputs` without a file is a name in the same file. A function
    without parameters needs none. Raises InputsError, and whatever the file or that function raises.
    """
    place = PlaceInFile.of(function)
    others = PlaceInFile.of(inputs if ":" in inputs else f"{place.file}:{inputs}") if inputs else None
    f = place.load(function=True)
    if not callable(f):
        raise InputsError(f"{function} is no function but of type {type(f).__name__}")
    if others is None and takes_nothing(f):
        return f, Inputs([()])
    name, calls = (others.name, others.load()) if others else _beside(function, place, call_of(f))
    return f, Inputs(batches_of(calls() if callable(calls) else calls, name), name)


def _beside(function: str, place: PlaceInFile, call: str) -> tuple[str, Any]:
    module = import_file(place.path)
    for name in INPUTS:
        if hasattr(module, name):
            return name, getattr(module, name)
    there = [name for name, value in vars(module).items() if _gives_batches(value)]
    raise InputsError(
        f"{function} needs inputs to be called with: write {INPUTS[0]} = [{call}, ...] in that file, a tuple of "
        f"arguments for each call, or def {INPUTS[1]}() that returns such a list; or name either by --inputs NAME"
        + (f", as --inputs {there[0]}, which is of type {type(vars(module)[there[0]]).__name__}" if there else "")
    )


def _gives_batches(value: Any) -> bool:
    """Return whether a value is iterated as a loader is: no container of Python's, no mapping, model or array."""
    names = {*dir(type(value))}
    return (
        type(value).__module__ != "builtins"
        and {"__iter__", "__len__"} <= names
        and names.isdisjoint(("__call__", "keys", "dtype", "mro"))
    )


def line_of_inputs(function: str, inputs: str) -> str:
    """Return where a file makes the calls of a function, as `step.py:31`; "" where no statement at its top does."""
    place = inputs if ":" in inputs else function and f"{function.rpartition(':')[0]}:{inputs or INPUTS[0]}"
    try:
        body = ast.parse(source(place)).body
    except SyntaxError:
        return ""
    names = {place.rpartition(":")[2], *(() if inputs else INPUTS)}
    for statement in body:
        targets = getattr(statement, "targets", [getattr(statement, "target", statement)])
        if any((getattr(target, "id", None) or getattr(target, "name", None)) in names for target in targets):
            return f"{Path(place.rpartition(':')[0]).name}:{statement.lineno}"
    return ""


def hidden_packages(path: Path) -> list[str]:
    """Return the files and folders beside a file with the names of our packages: `import graphs` there is still ours.

    Our packages themselves hide nothing: a checkout that was installed from has the same ones.
    """
    folder = path.resolve().parent
    beside = [entry for name in PACKAGES for entry in (folder / f"{name}.py", folder / name / "__init__.py")]
    ours = {Path(HOME, name, "__init__.py").read_bytes() for name in PACKAGES}
    return [
        str(entry.relative_to(folder)).removesuffix("/__init__.py")
        for entry in beside
        if entry.is_file() and entry != path.resolve() and entry.read_bytes() not in ours
    ]


def import_file(path: Path) -> ModuleType:
    """Return the module of a Python file, run once. Its folder is appended to the path, for modules beside it.

    Raises InputsError where there is no such file or it ends the program, FunctionError where it forks, and whatever
    the file raises.
    """
    where = path.resolve()
    root, inside = _package(where)
    name = inside or PREFIX + where.stem
    loaded = sys.modules.get(name)
    if loaded is not None and loaded.__file__ == str(where):
        return loaded
    if not where.is_file():
        raise InputsError(f"there is no file {path}; write FILE.py:function")
    if where.suffix == SUFFIX:
        return sys.modules.setdefault(name, onnx_module(where, name))
    spec = importlib.util.spec_from_file_location(name, where)
    if spec is None or spec.loader is None:
        raise InputsError(f"{path} is no Python file; its name ends in .py")
    for folder in dict.fromkeys((str(root), str(where.parent))):
        if folder not in sys.path:
            sys.path.append(folder)
    from compare.subjects import traffic

    try:
        with traffic.one_process(path.name):
            module = _execute_module(spec, name, inside=bool(inside))
    except BaseException as error:
        sys.modules.pop(name, None)
        if isinstance(error, SystemExit):
            raise InputsError(f"{path.name} ends the program when it is imported; {GUARD}") from None
        raise
    _files[name] = str(where)
    return module


def _execute_module(spec: ModuleSpec, name: str, *, inside: bool) -> ModuleType:
    """Run and return the module; the package may have run its module already."""
    if inside:
        importlib.import_module(name.rpartition(".")[0])
    loaded = sys.modules.get(name)
    if loaded is not None and loaded.__file__ == spec.origin:
        return loaded
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    assert spec.loader is not None  # noqa: S101  (looked at before)
    spec.loader.exec_module(module)
    return module


def _package(where: Path) -> tuple[Path, str]:
    """Return the folder from which a file is imported, and its name as a module of a package; "" outside packages.

    A package has an `__init__.py`, or its file lies below a folder of PYTHONPATH and says `from .`.
    """
    root = where.parent
    while (root / "__init__.py").is_file() and root.parent != root:
        root = root.parent
    if root == where.parent and where.is_file() and b"from ." in where.read_bytes():
        above = [Path(folder).resolve() for folder in os.environ.get("PYTHONPATH", "").split(os.pathsep) if folder]
        root = next((folder for folder in above if folder in where.parents), root)
    parts = where.relative_to(root).with_suffix("").parts
    if root == where.parent or parts[0] in PACKAGES or not all(part.isidentifier() for part in parts):
        return where.parent, ""
    return root, ".".join(parts).removesuffix(".__init__")


def _is_own(value: Any, module: ModuleType) -> bool:
    return getattr(value, "__module__", module.__name__) == module.__name__ and not isinstance(value, ModuleType)


SUFFIX, MODEL = ".onnx", "model"
OPEN_SIZE = 8
"""The size of an axis whose size the model leaves open."""


def onnx_module(path: Path, name: str) -> ModuleType:
    """Return a module with an ONNX model. Raises InputsError where it cannot be read, or an input is no tensor."""
    try:
        from graphs.onnx import load

        model = load(path)
    except (ImportError, GraphError) as error:
        raise InputsError(f"{path.name}: {error}") from None
    model.__module__, model.__qualname__ = name, MODEL  # by which a worker finds it
    module = ModuleType(name)
    module.__file__ = str(path)
    rng = np.random.default_rng(0)
    call = tuple(_make_argument(rng, label, spec) for label, spec in model.inputs.items())
    vars(module).update({MODEL: model, "inputs": [call]})
    return module


def _make_argument(rng: np.random.Generator, label: str, spec: TensorSpec | None) -> Any:
    """Return an argument: normal numbers, or zeros and ones, as small integers are valid indices in most tables."""
    if spec is None:
        raise InputsError(f"the input {label} of the model is no tensor; write a function in Python that calls it")
    shape = [size if isinstance(size, int) else OPEN_SIZE for size in spec.shape]
    values = rng.standard_normal(shape) if spec.is_float else rng.integers(0, 2, shape)
    return np.asarray(values).astype(spec.dtype)
