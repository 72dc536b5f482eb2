"""`save` and `load` of tensors and plain containers, without pickle: nothing in a file is run.

A file is a zip: `tree.json` says how containers are nested, and `arrays/N.npy` are the tensors.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections import OrderedDict
from typing import Any

import numpy as np

from dynamic.creation import made
from dynamic.tensor import Tensor
from graphs.errors import ArtifactError, located

__all__ = ["load", "save"]

_PLAIN = (str, int, float, bool, type(None))


def save(obj: Any, f: Any) -> None:
    """Write tensors, numbers, strings, dicts, lists and tuples of them to a path or a file.

    Raises ArtifactError for anything else, such as a module: save its `state_dict()`.
    """
    arrays: list[Any] = []
    document = {"format": "graphduel tensors", "version": 1, "tree": _written(obj, arrays)}
    with zipfile.ZipFile(f, "w") as archive:
        archive.writestr("tree.json", json.dumps(document))
        for number, array in enumerate(arrays):
            buffer = io.BytesIO()
            np.lib.format.write_array(buffer, np.asarray(array), allow_pickle=False)
            archive.writestr(f"arrays/{number}.npy", buffer.getvalue())


def load(f: Any, map_location: Any = None, weights_only: bool = True, **_: Any) -> Any:
    """Read what `save` wrote. Raises ArtifactError for any other file, a pickle of PyTorch's among them."""
    from graphs.torch import devices

    devices.check(map_location if isinstance(map_location, str) else None)
    del weights_only
    try:
        with zipfile.ZipFile(f) as archive:
            document = json.loads(archive.read("tree.json"))
            return _read(_checked(document), archive)
    except (zipfile.BadZipFile, KeyError, ValueError, TypeError) as error:
        raise ArtifactError(
            located(
                f"no file that save wrote: {error}; PyTorch's own files are pickles, which are not read: save as .npz"
            )
        ) from None


def _checked(document: Any) -> Any:
    if document["format"] != "graphduel tensors" or document["version"] != 1:
        raise KeyError(document["format"])
    return document["tree"]


def _written(obj: Any, arrays: list[Any]) -> Any:
    if isinstance(obj, (Tensor, np.ndarray)):
        arrays.append(obj.detach()._data if isinstance(obj, Tensor) else obj)
        return {
            "array": len(arrays) - 1,
            "tensor": isinstance(obj, Tensor),
            "grad": isinstance(obj, Tensor) and obj.requires_grad,
        }
    if type(obj) in _PLAIN:
        return {"value": obj}
    if isinstance(obj, dict):
        pairs = [[_written(key, arrays), _written(value, arrays)] for key, value in obj.items()]
        return {"dict": pairs, "ordered": isinstance(obj, OrderedDict)}
    if type(obj) in (list, tuple):
        return {type(obj).__name__: [_written(item, arrays) for item in obj]}
    raise ArtifactError(
        located(
            f"save: a {type(obj).__name__} would need pickle; save tensors in plain containers, as state_dict() gives"
        )
    )


def _read(node: Any, archive: zipfile.ZipFile) -> Any:
    if "value" in node:
        return node["value"]
    if "array" in node:
        values = np.lib.format.read_array(
            io.BytesIO(archive.read(f"arrays/{int(node['array'])}.npy")), allow_pickle=False
        )
        return made(values, requires_grad=node["grad"]) if node["tensor"] else values
    if "dict" in node:
        pairs = [(_read(key, archive), _read(value, archive)) for key, value in node["dict"]]
        return OrderedDict(pairs) if node["ordered"] else dict(pairs)
    kind = "list" if "list" in node else "tuple"
    items = [_read(item, archive) for item in node[kind]]
    return items if kind == "list" else tuple(items)
