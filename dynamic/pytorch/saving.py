"""`save` and `load` of tensors and plain containers, without pickle: nothing in such a file is run.

A file is a zip: `tree.json` says how containers are nested, and `arrays/N.npy` are the tensors. Other objects, such as
a whole module, are bytes of a pickle, which `load` reads only where `weights_only=False` says that it is trusted.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import zipfile
from collections import OrderedDict
from collections.abc import Mapping
from typing import IO, Any

import numpy as np

from dynamic.creation import leaf as made
from dynamic.tensor import Tensor
from graphs import files as zips
from graphs.errors import ArtifactError, locate
from graphs.files import replacement

__all__ = ["load", "save"]

DEEPEST = 100  # containers inside each other: one that holds itself never ends
_HEAD = {"format": "graphduel tensors", "version": 1}
_PLAIN = (str, int, float, bool, type(None))


def save(obj: Any, f: Any) -> None:
    """Write tensors, numbers, strings, dicts, lists and tuples of them, or a module, to a path or an open file.

    A save that fails leaves the file at the path as it was; to an open file nothing is written before all is known to
    have a place in the format. Raises ArtifactError for what pickle does not take, such as a lambda, or a list that
    holds itself, and OSError where the file cannot be written.
    """
    arrays: list[np.ndarray[Any, Any]] = []
    try:
        tree = _encode(obj, arrays)
    except _ObjectError as error:
        tree, arrays = {"pickled": 0}, [np.frombuffer(_pickle(obj, error), np.uint8)]
    document = _text(_HEAD | {"tree": tree})
    with contextlib.ExitStack() as stack:
        file = f if hasattr(f, "write") else stack.enter_context(replacement(os.fsdecode(f)))
        with zipfile.ZipFile(file, "w") as zipped:
            zipped.writestr("tree.json", document)
            for number, array in enumerate(arrays):
                zipped.writestr(f"arrays/{number}.npy", zips.npy(array))


def load(f: Any, map_location: Any = None, weights_only: bool = True, **_: Any) -> Any:
    """Read what `save` wrote. Raises ArtifactError for any other file, a pickle of PyTorch's or a damaged one.

    A file with a pickled object is one, too, unless `weights_only` is False: reading it runs what it says. A file that
    is not there, or may not be read, is an OSError.
    """
    from graphs.frontends.torch import words

    words.check(map_location if isinstance(map_location, str) else None)
    with contextlib.ExitStack() as stack:
        file = f if hasattr(f, "read") else stack.enter_context(open(f, "rb"))  # noqa: PTH123  (bytes are paths too)
        return _load_archive(file, weights_only)


def _load_archive(file: IO[bytes], weights_only: bool) -> Any:
    try:
        files = zips.members(file)
        tree = _check_document(json.loads(files["tree.json"]))
        if "pickled" not in tree:
            return _read(tree, files)
        pickled = zips.array_of(files["arrays/0.npy"]).tobytes()
    except zips.DAMAGE as error:
        raise ArtifactError(
            locate(
                f"no file that save wrote: {error}; PyTorch's own files are pickles, which are not read: save as .npz"
            )
        ) from None
    if weights_only:
        raise ArtifactError(
            locate("load: the file holds a pickled object, and reading it runs what it says; give weights_only=False")
        )
    return pickle.loads(pickled)  # noqa: S301  (the caller trusts the file)


def _check_document(document: Any) -> Any:
    if document["format"] != "graphduel tensors" or document["version"] != 1:
        raise KeyError(document["format"])
    return document["tree"]


def _encode(obj: Any, arrays: list[Any], depth: int = 0) -> Any:
    if depth > DEEPEST:
        raise ArtifactError(
            locate(f"save: containers {DEEPEST} deep, or one that holds itself; save tensors in flat containers")
        )
    if issubclass(type(obj), (Tensor, np.ndarray)):
        arrays.append(_storable(obj.detach()._data if issubclass(type(obj), Tensor) else obj))
        return {
            "array": len(arrays) - 1,
            "tensor": issubclass(type(obj), Tensor),
            "grad": issubclass(type(obj), Tensor) and obj.requires_grad,
        }
    if type(obj) in _PLAIN:
        return {"value": obj}
    if isinstance(obj, dict):
        pairs = [[_encode(part, arrays, depth + 1) for part in pair] for pair in obj.items()]
        versions = getattr(obj, "_metadata", None)  # of the modules of a state dict
        held = {} if versions is None else {"metadata": _encode(versions, arrays, depth + 1)}
        return {"dict": pairs, "ordered": isinstance(obj, OrderedDict), **held}
    if type(obj) in (list, tuple):
        return {type(obj).__name__: [_encode(item, arrays, depth + 1) for item in obj]}
    raise _ObjectError(type(obj).__name__)


class _ObjectError(Exception):
    """An object has no place among tensors and plain containers."""


def _pickle(obj: Any, error: Exception) -> bytes:
    try:
        return pickle.dumps(obj)
    except (pickle.PicklingError, AttributeError, TypeError, RecursionError) as wrong:
        said = (
            f"save: a {error} is pickled, which fails: {wrong}; save tensors in plain containers, as state_dict() gives"
        )
        raise ArtifactError(locate(said)) from None


def _text(document: Any) -> str:
    try:
        return json.dumps(document)
    except ValueError as error:  # an int of more digits than Python writes, or reads again
        raise ArtifactError(locate(f"save: {error}; save it as a string of hex()")) from None


def _storable(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The array. Raises ArtifactError for one that `load` would not read, or not whole."""
    if isinstance(array, np.ma.MaskedArray) or not zips.is_storable(array.dtype):
        what = "with a mask" if isinstance(array, np.ma.MaskedArray) else f"of {array.dtype}"
        raise ArtifactError(
            locate(f"save: an array {what} has no place in the file; save arrays of bools, ints or floats")
        )
    return np.asarray(array)


def _read(node: Any, files: Mapping[str, bytes]) -> Any:
    if "value" in node:
        return node["value"]
    if "array" in node:
        values = zips.array_of(files[f"arrays/{int(node['array'])}.npy"])
        return made(values, requires_grad=node["grad"]) if node["tensor"] else values
    if "dict" in node:
        pairs = [(_read(key, files), _read(value, files)) for key, value in node["dict"]]
        if not node["ordered"]:
            return dict(pairs)
        ordered: Any = OrderedDict(pairs)
        if "metadata" in node:
            ordered._metadata = _read(node["metadata"], files)
        return ordered
    kind = "list" if "list" in node else "tuple"
    items = [_read(item, files) for item in node[kind]]
    return items if kind == "list" else tuple(items)
