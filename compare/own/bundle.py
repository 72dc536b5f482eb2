"""A function and its inputs in a folder, for a fresh worker: where the function is, and the arrays, without pickle.

A job names the folder as its source, `compare.own.bundle:FOLDER`, and the worker looks that up as it does any workload:
`__getattr__` below reads it. The folder is temporary and this program's own.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from compare.engines.containers import named_parts, of_class
from compare.errors import InputsError
from compare.own import program
from compare.own.case import case_of
from compare.own.origin import Origin
from compare.own.question import SIZE, Question
from compare.workloads import Workload
from compare.workloads.base import Case

EMPTY: Mapping[Any, Any] = MappingProxyType({})
_TREE, _ARRAYS = "function.json", "arrays.npz"
_LIVE: WeakValueDictionary[str, Case] = WeakValueDictionary()


def live(case: Case) -> str:
    """The source of a case that is in this process, for jobs which are done here; it is forgotten with the case."""
    _LIVE[str(id(case))] = case
    return f"{__name__}:{id(case)}"


def __getattr__(folder: str) -> Workload:
    """The workload in a folder, or of a case of this process."""
    if case := _LIVE.get(folder):
        return Workload(folder, folder, "A function of your own.", "open", "own", {SIZE: {}}, lambda: case)
    path = Path(folder, _TREE)
    if not path.is_file():
        raise AttributeError(f"no bundle {folder}")
    document = json.loads(path.read_text(encoding="utf-8"))
    sys.path[:] = [*document["path"], *(entry for entry in sys.path if entry not in document["path"])]
    with np.load(Path(folder, _ARRAYS), allow_pickle=False) as stored:
        arrays = [stored[f"a{i}"] for i in range(len(stored.files))]
    dims = _decoded(document["dims"], [])
    if "question" in document:
        question = Question.from_dict(document["question"])
        name, (f, inputs) = question.name, program.called(question)
    else:
        origin = Origin(**document["origin"])
        name, f = origin.name, origin.load()
        inputs = _decoded(document["inputs"], arrays, origin.space())
    return Workload(
        name,
        name,
        "A function of your own.",
        "open",
        "own",
        {SIZE: {}},
        lambda: replace(case_of(f, inputs, document["gradient"], dims), branches=document["branches"]),
    )


def write(folder: Path, origin: Origin, inputs: Sequence[Any], case: Case, dims: Any) -> str:
    """Write the bundle, of which the case was made; the source that names it.

    Raises InputsError for an input that is no plain container.
    """
    arrays: list[np.ndarray] = []
    values = origin.space().items()
    modules = {
        id(value): name for name, value in values if hasattr(value, "named_parameters") or isinstance(value, type)
    }
    document = {
        "origin": asdict(origin),
        "inputs": _encoded(list(inputs), arrays, modules),
        "dims": _encoded(dims, []),
        "gradient": case.argnum is not None,
        "branches": case.branches,
        "path": [str(Path(entry).resolve()) for entry in sys.path],
    }
    return _written(folder, document, arrays)


def write_question(folder: Path, question: Question, case: Case, dims: Any) -> str:
    """As `write`, where each worker reads the file of PyTorch's again, with the numbers that lie in a folder."""
    document = {
        "question": question.to_dict(),
        "dims": _encoded(dims, []),
        "gradient": case.argnum is not None,
        "branches": case.branches,
        "path": [str(Path(entry).resolve()) for entry in sys.path],
    }
    return _written(folder, document, [])


def _written(folder: Path, document: Mapping[str, Any], arrays: Sequence[np.ndarray]) -> str:
    np.savez(folder / _ARRAYS, **{f"a{i}": array for i, array in enumerate(arrays)})  # type: ignore[arg-type]
    (folder / _TREE).write_text(json.dumps(document), encoding="utf-8")
    return f"{__name__}:{folder}"


def _encoded(value: Any, arrays: list[np.ndarray], names: Mapping[int, str] = EMPTY) -> Any:
    """JSON that says which container it was; the same array twice is one array, and a known object is its name."""
    if id(value) in names:
        return {"global": names[id(value)]}
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "biufc":
        place = next((i for i, array in enumerate(arrays) if array is value), None)
        if place is None:
            arrays.append(np.asarray(value))
            place = len(arrays) - 1
        return {"array": place}
    if value is None or type(value) in (bool, int, float, str):
        return {"value": value}
    if type(value) is dict:
        return {"dict": [[_encoded(k, arrays), _encoded(v, arrays, names)] for k, v in value.items()]}
    parts = named_parts(value)
    if id(type(value)) in names and parts is not None:
        return {"container": [names[id(type(value))], _encoded(parts, arrays, names)]}
    if type(value) is slice:
        return {"slice": [_encoded(part, arrays) for part in (value.start, value.stop, value.step)]}
    if type(value) in (list, tuple):
        return {type(value).__name__: [_encoded(entry, arrays, names) for entry in value]}
    raise InputsError(
        f"a {type(value).__name__} among the inputs cannot be sent to a worker; use processes=0, or make it a "
        "global of the function's file if it is a module"
    )


def _decoded(document: Any, arrays: Sequence[np.ndarray], space: Mapping[str, Any] = EMPTY) -> Any:
    ((kind, value),) = document.items()
    if kind == "global":
        return space[value]
    if kind == "array":
        return arrays[value]
    if kind == "dict":
        return {_decoded(key, arrays): _decoded(entry, arrays, space) for key, entry in value}
    if kind == "container":
        name, parts = value
        return of_class(space[name], _decoded(parts, arrays, space))
    if kind == "slice":
        return slice(*(_decoded(part, arrays) for part in value))
    if kind in ("list", "tuple"):
        entries = [_decoded(entry, arrays, space) for entry in value]
        return entries if kind == "list" else tuple(entries)
    return value
