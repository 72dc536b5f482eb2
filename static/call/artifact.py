"""Saved graphs: a zip of JSON and `.npy` arrays (`graphs/files.py`). Reading one never runs code that is in it.

The document holds the version of the format, the nodes (op names and attributes), and how arguments and results are
laid out.
"""

from __future__ import annotations

import json
import keyword
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from graphs import blocks, tree
from graphs import files as zips
from graphs import op as registry
from graphs.dims import Atom, Dim
from graphs.errors import ArtifactError, one_line
from graphs.ir import Graph, Node
from graphs.spec import TensorSpec, TupleSpec
from static import clock
from static.passes.fusion import check_group, is_group, is_result
from static.passes.simplification import remove_dead_code
from static.trace.tracing import TracedFunction, is_traced

Made = TypeVar("Made")

VERSION = 1
LARGEST = 1 << 40  # bytes of an array: no machine that this runs on has more
_FORMAT = "graphduel.graph"


def write(traced: TracedFunction, path: Path) -> None:
    """Write a graph and its layout to a file. Raises ArtifactError for values that the format has no place for."""
    with clock.phase("save"):
        arrays: list[np.ndarray[Any, Any]] = []
        document = {
            "format": _FORMAT,
            "version": VERSION,
            **_encode_graph(traced.graph, arrays),
            "arguments": _encode(_number_leaves(traced.inputs), arrays),
            "static": [_encode(value, arrays) for value in traced.static],
            "results": _encode(_number_leaves(traced.outputs), arrays),
        }
        zips.write(path, json.dumps(document, indent=1).encode(), arrays)


@blocks.without_collection()
def read(path: Path, make: Callable[[TracedFunction], Made]) -> Made:
    """Return `make(traced)` for the traced function in a file.

    Raises ArtifactError when the file is damaged, of another version or not ours, or when `make` fails on it.
    """
    members = zips.read(path)
    try:
        document = _document(members["graph.json"])
        graph = _decode_graph(document, members)
        arguments, results = (_structure(_decode(document[key], members)) for key in ("arguments", "results"))
        static = tuple([_decode(value, members) for value in document["static"]])
        _check_layout(graph, arguments, static, results)
        return make(TracedFunction(graph, arguments, static, results))
    except ArtifactError as error:
        raise ArtifactError(f"{path.name}: {error}") from None
    except zips.DAMAGE as error:
        raise ArtifactError(f"{path.name}: damaged, {type(error).__name__}: {error}; save it again") from error


def _document(data: bytes) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(data)
    if document.get("format") != _FORMAT:
        raise ArtifactError("not a graphduel graph")
    if document["version"] != VERSION:
        raise ArtifactError(f"version {document['version']}, this release reads {VERSION}; save it again")
    return document


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
    what = ""
    if callable(value) and not isinstance(value, Graph):
        what = f"a Python function, {getattr(value, '__name__', 'one')}"
    if isinstance(value, BaseException):
        what = f"an error of Python's, {type(value).__name__}"
    if what:
        where = f" ({node.source})" if node.source else ""
        raise ArtifactError(f"{node.op.name} holds {what}{where}; take it out before saving")
    return _encode(value, arrays)


def _number_leaves(structure: tree.Structure) -> Any:
    """Return a container of that structure with its leaves numbered, which is how a structure is written down."""
    return tree.unflatten(structure, list(range(structure.num_leaves)))


def _structure(numbered: Any) -> tree.Structure:
    """Return the structure of a container whose leaves are numbered in order. Raises ArtifactError for other leaves."""
    leaves, structure = tree.flatten(numbered)
    if any(type(leaf) is not int or leaf != i for i, leaf in enumerate(leaves)):
        raise ArtifactError("damaged, the leaves of its arguments or results are not numbered; save it again")
    return structure


def _check_layout(graph: Graph, arguments: tree.Structure, static: Sequence[Any], results: tree.Structure) -> None:
    """Raise ArtifactError unless the layout has the arguments and results that the graph has."""
    if arguments.type is not tuple:
        raise ArtifactError(f"damaged, arguments laid out as {arguments}; save it again")
    values = [value for value in static if value is not None]
    counts = arguments.num_leaves, len(static) - len(values), results.num_leaves
    wanted = len(static), len(graph.inputs), len(graph.outputs)
    if counts != wanted or any(is_traced(v) or isinstance(v, (tuple, list, dict, Graph)) for v in values):
        raise ArtifactError("damaged, its arguments or results are not those of its graph; save it again")
    if any(type(node.spec) is not TensorSpec for node in (*graph.inputs, *graph.outputs)):
        raise ArtifactError("damaged, an input or output is no array; save it again")


def _decode_graph(document: dict[str, Any], members: dict[str, bytes]) -> Graph:
    nodes: list[Node] = []
    for entry in document["nodes"]:
        attrs = {_keyword(key): _decode(value, members) for key, value in entry["attrs"].items()}
        sources = [nodes[_index(i, len(nodes))] for i in entry["inputs"]]
        nodes.append(_check_node(Node.of(registry.get(entry["op"]), sources, attrs, one_line(str(entry["source"])))))
    chosen = [[nodes[_index(i, len(nodes))] for i in document[key]] for key in ("inputs", "outputs")]
    graph = remove_dead_code(Graph(str(document["name"]), chosen[0], nodes, chosen[1]))
    # Raise ArtifactError for groups that no pass makes, and for two parts of a node with one number.
    picked: dict[Node, list[int]] = {node: [] for node in graph.nodes}
    for node in graph.nodes:
        if node.inputs and (node.is_part or is_result(node)):
            picked[node.inputs[0]].append(node.attrs["number"])
    for node, numbers in picked.items():
        if len(set(numbers)) < len(numbers):
            raise ArtifactError(f"damaged, a part of {node.op.name} is there twice; save it again")
        if is_group(node):
            check_group(node)
            if sorted(numbers) != [*range(len(node.attrs["body"].outputs))]:
                raise ArtifactError("damaged, nobody reads a result of a group; save it again")
    return graph


def _check_node(node: Node) -> Node:
    """Return the node, checked where no `infer` looks. Raises ArtifactError for a spec or a value that no array has."""
    if not isinstance(node.spec, TensorSpec):
        raise ArtifactError(f"{node.op.name} gives no array")
    if isinstance(node.spec.nbytes, int) and node.spec.nbytes > LARGEST:
        raise ArtifactError(f"{node.op.name} gives {node.spec}; no array is that large")
    if node.is_input and type(node.attrs["name"]) is not str:
        raise ArtifactError("an input has no name")
    if node.is_constant and not isinstance(node.attrs["value"], (np.ndarray, Dim)):
        raise ArtifactError("a constant is no array")
    return node


def _keyword(name: str) -> str:
    # Attribute names become part of the generated code, so that they must be names and nothing more.
    if not name.isidentifier() or keyword.iskeyword(name):
        raise ArtifactError(f"{name!r} is no name of an attribute")
    return name


def _index(value: Any, size: int) -> int:
    if type(value) is not int or not 0 <= value < size:
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
    for name, (kind, parts, _) in _CONTAINERS.items():
        if type(value) is kind or (kind is np.dtype and isinstance(value, np.dtype)):
            return {name: [_encode(part, arrays) for part in parts(value)]}
    raise ArtifactError(
        f"a value of type {type(value).__name__} cannot be saved; use numbers, arrays and plain containers"
    )


# By name: the type, a function that takes it apart, and a function that makes it from its parts.
_CONTAINERS: dict[str, tuple[type, Callable[[Any], Any], Callable[[list[Any]], Any]]] = {
    "tuple": (tuple, tuple, tuple),
    "list": (list, list, list),
    "dict": (
        dict,
        lambda d: [x for item in d.items() for x in item],
        lambda p: dict(zip(p[::2], p[1::2], strict=True)),
    ),
    "slice": (slice, lambda s: (s.start, s.stop, s.step), lambda p: slice(*p)),
    "dtype": (np.dtype, lambda d: (d.name,), lambda p: np.dtype(p[0])),
    "spec": (TensorSpec, lambda s: (*s.shape, s.dtype), lambda p: TensorSpec(p[:-1], p[-1])),
    "specs": (TupleSpec, lambda s: s.items, TupleSpec),
    "dim": (Dim, lambda d: d.terms, lambda p: Dim(dict(p))),
    "atom": (Atom, lambda a: (a.name, *a.args), lambda p: Atom(p[0], *p[1:])),
}


def _decode(value: Any, members: dict[str, bytes]) -> Any:
    if not isinstance(value, dict):
        return value
    ((name, data),) = value.items()
    if name == "array":
        return zips.array_of(members[f"arrays/{int(data)}.npy"])
    if name == "graph":
        return _decode_graph(data, members)
    return _CONTAINERS[name][2]([_decode(part, members) for part in data])
