"""The intermediate representation: a graph of nodes, each the result of one op.

    graph  ::=  "graph" name "(" input* ")" "->" specs  node*  "return" %id*
    node   ::=  "%" id ":" spec "=" op "(" %id* ; attrs ")"  "#" source line
    op     ::=  "input" | "constant" | the name of a registered op

Nodes are immutable and a graph lists them in an order in which every node follows its inputs. A pass makes a new
graph; the verifier checks it.
"""

from __future__ import annotations

import functools
import hashlib
import operator
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from graphs import dims
from graphs.dims import Dim, Shape, Size
from graphs.errors import DTypeError, GraphError, VerificationError, one_line
from graphs.op import Attrs, Op
from graphs.spec import TensorSpec, TupleSpec

if TYPE_CHECKING:
    import networkx as nx

    from graphs.drawing import GraphDrawing


def _constant(*, value: Any, dtype: np.dtype[Any]) -> Any:
    return np.asarray(value, dtype)


def _no_kernel(*, name: str, spec: TensorSpec) -> Any:
    raise GraphError(f"the input {name} of a graph has no value of its own; run the graph with one")


def _infer_constant(*, value: Any, dtype: np.dtype[Any]) -> TensorSpec:
    if isinstance(value, Dim):
        return TensorSpec((), dtype)
    if value.dtype != dtype:
        raise DTypeError(f"a constant of {value.dtype} is no {dtype}; convert it first")
    return TensorSpec(value.shape, dtype)


INPUT = Op(
    "input",
    _no_kernel,
    lambda *, name, spec: spec,
    cost=0,
    family="source",
    doc="An input of the graph.",
)
CONSTANT = Op(
    "constant",
    _constant,
    _infer_constant,
    cost=0,
    family="source",
    doc="A value known when the graph is made: an array, or a symbolic size.",
)


class GradientLine(str):
    """The user's line of a node that a gradient rule has made: the line of the forward op."""

    __slots__ = ()


class Node:
    """The result of one op: its inputs are other nodes, `source` is the user's line (`model.py:12`).

    Nothing in a node can be changed once it is made, so that the verifier needs to look at its spec only once:
    `verified` tells that it has.
    """

    __slots__ = ("attrs", "inputs", "op", "source", "spec", "verified")
    op: Op
    inputs: tuple[Node, ...]
    attrs: Attrs
    spec: TensorSpec
    source: str
    verified: bool

    def __init__(self, op: Op, inputs: Sequence[Node], attrs: Attrs, spec: TensorSpec, source: str = "") -> None:
        _set_op(self, op)
        _set_inputs(self, tuple(inputs))
        _set_attrs(self, attrs)
        _set_spec(self, spec)
        _set_source(self, source)
        _set_verified(self, False)

    @classmethod
    def of(cls, op: Op, inputs: Sequence[Node], attrs: Attrs, source: str = "") -> Node:
        """The node with the spec that its op infers. Raises what `infer` raises."""
        node = cls(op, inputs, attrs, infer(op, inputs, attrs), source)
        _set_verified(node, op.arity is None or len(node.inputs) == op.arity)
        return node

    def on(self, inputs: Sequence[Node]) -> Node:
        """A node of the same op and spec on other inputs; it stays verified if their specs are those of the old."""
        node = Node(self.op, inputs, self.attrs, self.spec, self.source)
        if self.verified and [source.spec for source in inputs] == [source.spec for source in self.inputs]:
            _set_verified(node, True)
        return node

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a node cannot be changed, and so not its {name}; make another one")

    @property
    def shape(self) -> Shape:
        """The size of each axis of the result."""
        return self.spec.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the elements."""
        return self.spec.dtype

    @property
    def is_input(self) -> bool:
        """Whether the node is an input of its graph."""
        return self.op is INPUT

    @property
    def is_constant(self) -> bool:
        """Whether the node is a value that is known when the graph is made."""
        return self.op is CONSTANT

    @property
    def is_source(self) -> bool:
        """Whether the node is an input or a constant, so that no kernel computes it."""
        return not self.inputs and (self.is_input or self.is_constant)

    @property
    def is_part(self) -> bool:
        """Whether the node picks one of several tensors that its input computes: a view of that tensor."""
        return self.op.view and type(self.inputs[0].spec) is TupleSpec

    @property
    def options(self) -> dict[str, str]:
        """The attributes of the node as short text, by name."""
        return {key: format_attr(value) for key, value in self.attrs.items()}

    @property
    def label(self) -> str:
        """Everything about a node but its place in the graph: op, spec, attributes, and a hash of a constant's data."""
        if self.is_input:
            return f"input {self.spec}"
        if self.is_constant:
            value = self.attrs["value"]
            return f"constant {self.spec} {_digest(value) if isinstance(value, np.ndarray) else value}"
        return f"{self.op.name} {self.spec} {', '.join(f'{key}={text}' for key, text in sorted(self.options.items()))}"

    @property
    def subgraphs(self) -> tuple[Graph, ...]:
        """The graphs among the attributes: the branches, condition or body of a control-flow op."""
        if not self.attrs:  # most nodes, and passes ask this of all
            return ()
        values = (v for value in self.attrs.values() for v in (value if isinstance(value, tuple) else (value,)))
        return tuple(value for value in values if isinstance(value, Graph))

    @property
    def is_backward(self) -> bool:
        """Whether a gradient rule has made the node."""
        return isinstance(self.source, GradientLine)

    @property
    def has_effect(self) -> bool:
        """Whether the op, or an op in its subgraphs, has an effect beside computing."""
        return self.op.may_have_effect and (self.op.effect or any(inner.effects for inner in self.subgraphs))

    def __repr__(self) -> str:
        return f"<{self.op.name} {self.spec}>"


def ancestors(nodes: Iterable[Node]) -> set[Node]:
    """These nodes and all nodes that they are computed from."""
    seen: set[Node] = set()
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        if node not in seen:
            seen.add(node)
            waiting += node.inputs
    return seen


def _digest(array: np.ndarray[Any, Any]) -> str:
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]


# The setters that `__init__` uses, as a node refuses assignment.
_set_op, _set_inputs, _set_attrs, _set_spec, _set_source, _set_verified = (
    Node.__dict__[name].__set__ for name in ("op", "inputs", "attrs", "spec", "source", "verified")
)

_inferred: dict[tuple[Any, ...], tuple[list[TensorSpec], TensorSpec]] = {}
_specs: dict[tuple[type, TensorSpec], TensorSpec] = {}
_MOST = 1 << 12  # of each: a trace of many shapes begins anew, and nothing is kept for ever


def redirect(node: Node, inputs: Sequence[Node]) -> None:
    """Let a node read other nodes of the same specs. Only for a graph that is still being made."""
    _set_inputs(node, tuple(inputs))


def infer(op: Op, inputs: Sequence[Node], attrs: Attrs) -> TensorSpec:
    """The spec that an op gives on these inputs. Raises the errors of its `infer`.

    The spec of an op without options depends on the input specs alone, and so is cached.
    """
    specs = [source.spec for source in inputs]
    if attrs:
        return intern_spec(op.infer(*specs, **attrs))
    key = (op, *map(id, specs))
    held = _inferred.get(key)
    if held is None:
        if len(_inferred) >= _MOST:
            _inferred.clear()
        held = _inferred[key] = specs, intern_spec(op.infer(*specs))  # holds the specs: no other then gets their ids
    return held[1]


def intern_spec(spec: TensorSpec) -> TensorSpec:
    """The one shared object for all equal specs."""
    if len(_specs) >= _MOST:
        _specs.clear()
    return _specs.setdefault((type(spec), spec), spec)  # a subclass is equal to its base, and not the same


class Graph:
    """A computation: `inputs` and `outputs` are among `nodes`, which are in topological order.

    `ops` are the ops of its nodes, each once: a pass that looks for others has nothing to do.
    """

    __slots__ = ("inputs", "name", "nodes", "ops", "outputs")

    def __init__(self, name: str, inputs: Sequence[Node], nodes: Iterable[Node], outputs: Sequence[Node]) -> None:
        self.name = one_line(name)
        self.inputs = tuple(inputs)
        self.nodes = tuple(nodes)
        self.outputs = tuple(outputs)
        self.ops = frozenset([node.op for node in self.nodes])
        verify(self)

    def __len__(self) -> int:
        return len(self.nodes)

    def __repr__(self) -> str:
        return f"<graph {self.name}, {len(self)} nodes>"

    def __call__(self, *arrays: Any) -> tuple[Any, ...]:
        """Run the graph node by node on input arrays: the reference that compiled code is checked against."""
        values: dict[Node, Any] = dict(zip(self.inputs, arrays, strict=True))
        for node in self.nodes:
            if node not in values:
                values[node] = node.op.kernel(*(values[source] for source in node.inputs), **node.attrs)
        return tuple(values[output] for output in self.outputs)

    @property
    def calls(self) -> Iterator[Node]:
        """The nodes that run a kernel: all but inputs and constants."""
        return (node for node in self.nodes if not node.is_source)

    @property
    def effects(self) -> list[Node]:
        """The nodes with an effect. They stay in the graph, and in this order, even if no node reads them."""
        return [node for node in self.nodes if node.op.may_have_effect and node.has_effect]

    def op_counts(self) -> dict[str, int]:
        """How often each op is called: the multiset of kernel calls of one run."""
        return dict(Counter(node.op.name for node in self.calls))

    def nested(self) -> Iterator[Graph]:
        """This graph, and every graph that its nodes hold, at any depth."""
        yield self
        for node in self.nodes:
            for inner in node.subgraphs:
                yield from inner.nested()

    def users(self) -> dict[Node, list[Node]]:
        """Map each node to the nodes that read it, in order."""
        users: dict[Node, list[Node]] = {node: [] for node in self.nodes}
        for node in self.nodes:
            for source in node.inputs:
                users[source].append(node)
        return users

    def to_networkx(self) -> nx.DiGraph[int]:
        """A DiGraph over node numbers; `op`, `spec`, `label`, `source` on nodes, the argument `positions` on edges."""
        import networkx as nx

        number = {node: i for i, node in enumerate(self.nodes)}
        result: nx.DiGraph[int] = nx.DiGraph(name=self.name)
        for node, i in number.items():
            result.add_node(i, op=node.op.name, spec=str(node.spec), label=node.label, source=node.source)
        for node, i in number.items():
            for position, source in enumerate(node.inputs):
                before = result.get_edge_data(number[source], i, {"positions": ()})
                result.add_edge(number[source], i, positions=(*before["positions"], position))
        return result

    def draw(self, unfold: bool = False) -> GraphDrawing:
        """Draw the graph. The drawing shows itself in a notebook and has `save(path)`; a large graph is grouped."""
        from graphs.drawing import GraphDrawing, of_graph

        return GraphDrawing(of_graph(self), unfold)

    def _repr_html_(self) -> str:
        return self.draw().svg()

    def __str__(self) -> str:
        return format_graph(self)


def verify(graph: Graph) -> None:
    """Check every invariant of a graph; raises VerificationError naming the node and what is wrong.

    Each node follows its inputs and appears once; its op has that many inputs; the spec is what the op infers;
    inputs and outputs belong to the graph, and its inputs are its input nodes, each once. The spec of a node is looked
    at once, by the first graph that holds it.
    """
    seen: set[Node] = set()
    for number, node in enumerate(graph.nodes):
        if not seen.issuperset(node.inputs):
            source = next(source for source in node.inputs if source not in seen)
            raise VerificationError(f"%{number} = {node.op.name}: reads {source} before it is computed")
        if node in seen:
            raise VerificationError(f"%{number} = {node.op.name}: appears twice")
        seen.add(node)
        if not node.verified:
            _verify_spec(number, node)
    if len(set(graph.inputs)) < len(graph.inputs) or set(graph.inputs) != {n for n in seen if n.is_input}:
        raise VerificationError(f"the inputs of graph {graph.name} are not its input nodes, each once")
    missing = [node for node in (*graph.inputs, *graph.outputs) if node not in seen]
    if missing:
        raise VerificationError(f"{missing[0]} is an input or output of graph {graph.name} but not one of its nodes")


def _verify_spec(number: int, node: Node) -> None:
    if node.op.arity is not None and len(node.inputs) != node.op.arity:
        raise VerificationError(f"%{number}: {node.op.name} has {len(node.inputs)} inputs, not {node.op.arity}")
    try:
        expected = infer(node.op, node.inputs, node.attrs)
    except (GraphError, TypeError, LookupError) as error:  # attributes may be missing, unknown or of another type
        raise VerificationError(f"%{number} = {node.op.name}: {error}") from error
    if expected is not node.spec and expected != node.spec:
        raise VerificationError(f"%{number} = {node.op.name}: the spec says {node.spec}, the op gives {expected}")
    _set_verified(node, True)


def format_graph(graph: Graph) -> str:
    """The graph as text, one node a line, each with the user's line that made it."""
    head, rows, end = format_rows(graph)
    return "\n".join([head, *(line for lines in rows for line in lines), end])


def format_rows(graph: Graph) -> tuple[str, list[list[str]], str]:
    """The first line of a graph as text, the lines of each node (none for an input), and the last."""
    number = {node: i for i, node in enumerate(graph.nodes)}
    args = ", ".join(f"%{number[node]} {one_line(node.attrs['name'])}: {node.spec}" for node in graph.inputs)
    head = f"graph {graph.name}({args}) -> {', '.join(str(o.spec) for o in graph.outputs) or '()'}"
    rows = []
    for node in graph.nodes:
        lines = []
        if not node.is_input:
            text = f"  %{number[node]}: {node.spec} = {_format_call(node, number)}"
            lines.append(f"{text:<66}  # {node.source}" if node.source else text)
        lines += [f"    {line}" for inner in node.subgraphs for line in format_graph(inner).split("\n")]
        rows.append(lines)
    return head, rows, f"  return {', '.join(f'%{number[o]}' for o in graph.outputs) or '()'}"


def _format_call(node: Node, number: dict[Node, int]) -> str:
    args = [f"%{number[source]}" for source in node.inputs]
    args += [f"{key}={value}" for key, value in node.options.items()]
    return f"{node.op.name}({', '.join(args)})"


def format_attr(value: Any) -> str:
    """An attribute as short text: arrays by their values when small, by their spec otherwise."""
    if isinstance(value, np.ndarray):
        return f"{value.tolist()}" if value.size <= 4 else f"<{TensorSpec(value.shape, value.dtype)}>"
    if isinstance(value, np.dtype):
        return value.name
    if isinstance(value, slice):
        return (
            ":".join("" if v is None else str(v) for v in (value.start, value.stop, value.step))
            if value != slice(None)
            else ":"
        )
    if isinstance(value, tuple):
        return f"({', '.join(map(format_attr, value))})"
    if isinstance(value, Graph):
        return f"<graph {value.name}, {len(value)} nodes>"
    return one_line(str(value))


# Cost -----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cost:
    """Floating point operations, and bytes read and written; symbolic when a dimension is."""

    flops: Size
    bytes: Size

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.flops + other.flops, self.bytes + other.bytes)

    def at(self, **sizes: int) -> Cost:
        """The cost for these sizes of the symbolic dimensions: `cost.at(B=32)`. Raises ShapeError if one is missing."""
        return Cost(dims.evaluate(self.flops, sizes), dims.evaluate(self.bytes, sizes))


_NOTHING = Cost(0, 0)


def node_cost(node: Node) -> Cost:
    """The cost of one node: each distinct input is read once, the result is written once. A view moves nothing.

    A scan costs its steps, a switch its most expensive branch, and a while_loop, whose step count is unknown, one step.
    """
    specs = [source.spec for source in node.inputs]
    return Cost(node.op.cost(*specs, out=node.spec, **node.attrs), _elements_moved(node))


def _elements_moved(node: Node) -> Size:
    if node.op.view or node.is_source:
        return 0
    inner = [graph_cost(graph).bytes for graph in node.subgraphs]
    if not inner:
        return functools.reduce(operator.add, _accesses(node))
    if "branches" in node.attrs:
        return functools.reduce(dims.maximum, inner)
    return functools.reduce(operator.add, inner) * node.attrs.get("length", 1)


def _accesses(node: Node) -> Iterator[Size]:
    """The bytes of each array that a kernel reads or writes."""
    yield node.spec.nbytes
    for source in dict.fromkeys(node.inputs):
        whole = source.spec.nbytes
        part = node.op.gathers and source is node.inputs[0]
        yield dims.minimum(whole, node.spec.nbytes) if part else whole


def graph_cost(graph: Graph) -> Cost:
    """The cost of one run of a graph."""
    return functools.reduce(operator.add, map(node_cost, graph.nodes), _NOTHING)
