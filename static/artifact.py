"""Saved graphs: a zip of JSON and `.npy` arrays. Reading one never runs code that is in it.

graph.json     the format's version, the nodes (op names and attributes), how arguments and results are laid out
arrays/N.npy   the data of constants
digest.txt     the SHA-256 of all of the above
"""

from __future__ import annotations

import hashlib
import io
import json
import keyword
import os
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from graphs import op as registry
from graphs import tree
from graphs.dims import Atom, Dim
from graphs.errors import ArtifactError, GraphError
from graphs.ir import Graph, Node
from graphs.spec import TensorSpec, TupleSpec
from static import clock
from static.executable import Executable
from static.trace import Traced

VERSION = 1
_FORMAT = "graphduel.graph"
# What decoding raises on a document that no release has written.
_DAMAGE = (
    ArithmeticError, AttributeError, GraphError, LookupError, MemoryError, RuntimeError, TypeError, ValueError,
)  # fmt: skip


def save(executable: Executable, path: Path) -> None:
    """Write an executable's graph, atomically. Raises ArtifactError for values that have no place in the format."""
    with clock.phase("save"):
        _save(executable, path)


def _save(executable: Executable, path: Path) -> None:
    arrays: list[np.ndarray[Any, Any]] = []
    document = _encode_executable(executable, arrays)
    files = {"graph.json": json.dumps(document, indent=1).encode()}
    for i, array in enumerate(arrays):
        buffer = io.BytesIO()
        np.save(buffer, array, allow_pickle=False)
        files[f"arrays/{i}.npy"] = buffer.getvalue()
    files["digest.txt"] = _digest(files).encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_bytes(buffer.getvalue())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def load(path: str | Path) -> Executable:
    """The executable saved in a file. Ops of the user's own must be registered before.

    Raises ArtifactError when the file is cut off, altered, of another version or not ours; OSError when unreadable.
    """
    path = Path(path)
    seconds: clock.Seconds = {}
    with clock.adding_to(seconds), clock.phase("load"):
        return _load(path, seconds)


def _load(path: Path, seconds: clock.Seconds) -> Executable:
    files = _read(path)
    try:
        return _decode_executable(_document(files["graph.json"]), files, seconds)
    except ArtifactError as error:
        raise ArtifactError(f"{path.name}: {error}") from None
    except _DAMAGE as error:
        raise ArtifactError(f"{path.name}: damaged, {type(error).__name__}: {error}; save it again") from error


def _document(data: bytes) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(data)
    if document.get("format") != _FORMAT:
        raise ArtifactError("not a graphduel graph")
    if document["version"] != VERSION:
        raise ArtifactError(f"version {document['version']}, this release reads {VERSION}; save it again")
    return document


def _read(path: Path) -> dict[str, bytes]:
    data = io.BytesIO(path.read_bytes())
    try:
        with zipfile.ZipFile(data) as archive:
            files = {name: archive.read(name) for name in archive.namelist()}
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, *_DAMAGE) as error:
        raise ArtifactError(f"{path.name}: not a graph saved by graphduel, or cut off ({error})") from error
    given = files.pop("digest.txt", b"").decode(errors="replace")
    if given != _digest(files):
        raise ArtifactError(f"{path.name}: altered or damaged, its digest does not match; save it again")
    return files


def _digest(files: dict[str, bytes]) -> str:
    total = hashlib.sha256()
    for name in sorted(files):
        total.update(f"{name}:{len(files[name])}:".encode() + files[name])
    return total.hexdigest()


def _encode_executable(executable: Executable, arrays: list[np.ndarray[Any, Any]]) -> dict[str, Any]:
    traced = executable.traced
    return {
        "format": _FORMAT,
        "version": VERSION,
        **_encode_graph(executable.graph, arrays),
        "arguments": _encode(_numbered(traced.inputs), arrays),
        "static": [_encode(value, arrays) for value in traced.static],
        "results": _encode(_numbered(traced.outputs), arrays),
    }


def _encode_graph(graph: Graph, arrays: list[np.ndarray[Any, Any]]) -> dict[str, Any]:
    number = {node: i for i, node in enumerate(graph.nodes)}
    nodes = [
        {
            "op": node.op.name,
            "inputs": [number[s] for s in node.inputs],
            "attrs": {key: _encode_attr(node, value, arrays) for key, value in node.attrs.items()},
            "source": node.source,
        }
        for node in graph.nodes
    ]
    inputs, outputs = ([number[n] for n in chosen] for chosen in (graph.inputs, graph.outputs))
    return {"name": graph.name, "nodes": nodes, "inputs": inputs, "outputs": outputs}


def _encode_attr(node: Node, value: Any, arrays: list[np.ndarray[Any, Any]]) -> Any:
    if callable(value) and not isinstance(value, Graph):
        name = getattr(value, "__name__", "one")
        where = f" ({node.source})" if node.source else ""
        raise ArtifactError(f"{node.op.name} holds a Python function, {name}{where}; take it out before saving")
    return _encode(value, arrays)


def _numbered(structure: tree.Structure) -> Any:
    """A container of that structure, with the leaves numbered: how a structure is written down."""
    return tree.unflatten(structure, list(range(structure.num_leaves)))


def _decode_executable(document: dict[str, Any], files: dict[str, bytes], seconds: clock.Seconds) -> Executable:
    graph = _decode_graph(document, files)
    arguments, results = (tree.flatten(_decode(document[key], files))[1] for key in ("arguments", "results"))
    static = tuple(_decode(value, files) for value in document["static"])
    return Executable(Traced(graph, arguments, static, results), graph, (), seconds=seconds)


def _decode_graph(document: dict[str, Any], files: dict[str, bytes]) -> Graph:
    nodes: list[Node] = []
    for entry in document["nodes"]:
        op = registry.get(entry["op"])
        attrs = {_keyword(key): _decode(value, files) for key, value in entry["attrs"].items()}
        sources = [nodes[_index(i, len(nodes))] for i in entry["inputs"]]
        nodes.append(Node(op, sources, attrs, op.infer(*[s.spec for s in sources], **attrs), str(entry["source"])))
    chosen = [[nodes[_index(i, len(nodes))] for i in document[key]] for key in ("inputs", "outputs")]
    return Graph(str(document["name"]), chosen[0], nodes, chosen[1])


def _keyword(name: str) -> str:
    # Attribute names become part of the generated code, so that they must be names and nothing more.
    if not name.isidentifier() or keyword.iskeyword(name):
        raise ArtifactError(f"{name!r} is no name of an attribute")
    return name


def _index(value: Any, size: int) -> int:
    if not isinstance(value, int) or not 0 <= value < size:
        raise ArtifactError(f"node {value} is read before it is defined")
    return value


def _encode(value: Any, arrays: list[np.ndarray[Any, Any]]) -> Any:
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, np.ndarray):
        arrays.append(value)
        return {"array": len(arrays) - 1}
    if isinstance(value, Graph):
        return {"graph": _encode_graph(value, arrays)}
    for kind, name, parts in _CONTAINERS:
        if type(value) is kind or (kind is np.dtype and isinstance(value, np.dtype)):
            return {name: [_encode(part, arrays) for part in parts(value)]}
    raise ArtifactError(
        f"a value of type {type(value).__name__} cannot be saved; use numbers, arrays and plain containers"
    )


_CONTAINERS: tuple[tuple[type, str, Callable[[Any], Any]], ...] = (
    (tuple, "tuple", tuple),
    (list, "list", list),
    (dict, "dict", lambda d: [part for item in d.items() for part in item]),
    (slice, "slice", lambda s: (s.start, s.stop, s.step)),
    (np.dtype, "dtype", lambda d: (d.name,)),
    (TensorSpec, "spec", lambda s: (*s.shape, s.dtype)),
    (TupleSpec, "specs", lambda s: s.items),
    (Dim, "dim", lambda d: d.terms),
    (Atom, "atom", lambda a: (a.name, *a.args)),
)


def _decode(value: Any, files: dict[str, bytes]) -> Any:
    if not isinstance(value, dict):
        return value
    ((name, data),) = value.items()
    if name == "array":
        return np.load(io.BytesIO(files[f"arrays/{int(data)}.npy"]), allow_pickle=False)
    if name == "graph":
        return _decode_graph(data, files)
    parts = [_decode(part, files) for part in data]
    return _DECODERS[name](parts)


_DECODERS: dict[str, Callable[[list[Any]], Any]] = {
    "tuple": tuple,
    "list": list,
    "dict": lambda p: dict(zip(p[::2], p[1::2], strict=True)),
    "slice": lambda p: slice(*p),
    "dtype": lambda p: np.dtype(p[0]),
    "spec": lambda p: TensorSpec(p[:-1], p[-1]),
    "specs": TupleSpec,
    "dim": lambda p: Dim(dict(p)),
    "atom": lambda p: Atom(p[0], *p[1:]),
}
