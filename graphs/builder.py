"""Builder: a graph in the making, both for a trace and for the record of a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from graphs.capture import Guards, pause_depth
from graphs.dims import Dim
from graphs.errors import ControlFlowError, GraphError, locate
from graphs.ir import CONSTANT, INPUT, Graph, Node, intern_spec, redirect
from graphs.op import Attrs, Op
from graphs.spec import TensorSpec, spec_of

SMALL = 64  # bytes up to which constants are the same when their values are


class Builder:
    """A graph in the making: appends nodes in the order they are computed; `finish` makes the verified graph."""

    def __init__(self, name: str, parent: Builder | None = None) -> None:
        self.name = name
        self.parent = parent
        self.captured: dict[Node, Node] = {}  # the parent's nodes that this graph reads, as inputs of its own
        self.reads: dict[int, tuple[Any, Node]] | None = (
            None  # what is read besides the inputs, by its id, where allowed
        )
        self.guards: Guards = {}
        self.open = False  # whether nodes are appended by ops on its symbols, outside of any trace too
        self.saving: int = parent.saving if parent else 0  # above 0 while what is traced will be differentiated
        self.paused: int = (
            parent.paused if parent else pause_depth()
        )  # blocks without a gradient around the whole trace
        self.refusal: GraphError | None = None  # the first, of this graph and of those inside it
        self.general: bool = parent.general if parent else False  # write what no size that is a number makes shorter
        self.overwritten: list[Node] = []  # what was changed in place
        self.present: dict[Node, Node] = {}  # memory that was changed in place, with the value that it has now
        self.anew: dict[tuple[Node, Node], Node] = {}  # views, each with the value that it is taken of anew
        self.copies: set[Node] = parent.copies if parent else set()  # what has memory of its own, like a clone
        self.views: set[Node] = parent.views if parent else set()  # what PyTorch promises to be a view in any layout
        self.doubtful: set[Node] = parent.doubtful if parent else set()  # what only the layout makes a view or a copy
        self.anyhow: set[Node] = parent.anyhow if parent else set()  # what lies otherwise than its ops say
        self.tensors: set[Node] = set()  # what stands for a tensor of the dynamic engine, and no array
        self.repeats = False  # whether it is the body of a loop
        self.turn: Node | None = None  # the input that says which turn it is, of a body that asks for it
        self.line = ""  # the line that nodes are put down to, where it is not the one being run
        self.inputs: list[Node] = []
        self.nodes: list[Node] = []
        self._constants: dict[Any, Node] = {}
        self._originals: list[Any] = []

    def refuse(self, error: GraphError) -> None:
        """Keep the first error of a trace in the outermost builder, so that no `except` in the user's code hides it."""
        if self.parent is not None:
            self.parent.refuse(error)
        elif self.refusal is None:
            self.refusal = error

    def input(self, name: str, spec: TensorSpec) -> Node:
        """Append a new input of the graph."""
        node = self._add(Node(INPUT, (), {"name": name, "spec": spec}, intern_spec(spec)))
        self.inputs.append(node)
        return node

    def constant(self, value: np.ndarray[Any, Any] | Dim, dtype: np.dtype[Any] | None = None) -> Node:
        """Append a constant: the current values of an array, or a symbolic size as a scalar of `dtype`.

        The same array, or equal values of up to `SMALL` bytes, become one constant however often they are used.
        """
        kind = dtype or (np.dtype(np.int64) if isinstance(value, Dim) else value.dtype)
        key = _identity(value, kind)
        if key not in self._constants or _has_changed(value, self._constants[key]):
            held: Attrs = {"value": value if isinstance(value, Dim) else _constant_copy(value), "dtype": kind}
            self._constants[key] = self._add(Node(CONSTANT, (), held, intern_spec(CONSTANT.infer(**held))))
            self._originals.append(value)  # keeps its id from being used again
        return self._constants[key]

    def capture(self, node: Node) -> Node:
        """The input of this graph that stands for a node of the parent graph."""
        if node not in self.captured:
            self.captured[node] = self.input(f"outer{len(self.captured)}", node.spec)
            if self.parent is not None and node in self.parent.tensors:
                self.tensors.add(self.captured[node])
        return self.captured[node]

    def read(self, source: Any) -> Node:
        """The input that stands for a value read besides the arguments; it belongs to the outermost graph."""
        if self.parent is not None:
            if getattr(source, "drawn", False):
                raise ControlFlowError(
                    locate("a loop or a branch of the graph draws random numbers once a call; draw them all before it")
                )
            outer = self.capture(self.parent.read(source))
            by_turn = getattr(source, "by_turn", None)
            return outer if by_turn is None or not self.repeats else self.append(by_turn, [outer, self._turn()], {})
        if self.reads is None:
            constant = self.constant(np.asarray(source))
            self.tensors.add(constant)
            return constant
        if id(source) not in self.reads:
            self.reads[id(source)] = source, self.input(f"read{len(self.reads)}", spec_of(source))
            self.tensors.add(self.reads[id(source)][1])
        return self.reads[id(source)][1]

    def _turn(self) -> Node:
        """The input that holds the number of the loop's iteration, from 0. The op that makes the loop fills it."""
        if self.turn is None:
            self.turn = self.input("turn", TensorSpec((), np.int64))
        return self.turn

    def append(self, op: Op, sources: Sequence[Node], attrs: Attrs, line: str = "") -> Node:
        """Append an op on earlier nodes; its node counts as a tensor if one of those does. Raises errors of `infer`."""
        node = self._add(Node.of(op, sources, attrs, line))
        if not self.tensors.isdisjoint(sources):
            self.tensors.add(node)
        return node

    def finish(self, outputs: Sequence[Node]) -> Graph:
        """The verified graph with these outputs and without nodes that mark, such as `identity`.

        Such a node only marks a value that is differentiated, or owned, apart: the graph itself has no use for it.
        """
        same: dict[Node, Node] = {}
        for node in self.nodes:
            if not same.keys().isdisjoint(node.inputs):
                redirect(node, [same.get(s, s) for s in node.inputs])
            if node.op.marks:
                same[node] = node.inputs[0]
        nodes = [node for node in self.nodes if node not in same]
        return Graph(self.name, self.inputs, nodes, [same.get(o, o) for o in outputs])

    def _add(self, node: Node) -> Node:
        self.nodes.append(node)
        return node


def _has_changed(value: np.ndarray[Any, Any] | Dim, node: Node) -> bool:
    """Whether an array was written to since it became a constant. Arrays up to `SMALL` bytes are keyed by value."""
    if isinstance(value, Dim) or value.nbytes <= SMALL:
        return False
    return not np.array_equal(value, node.attrs["value"], equal_nan=value.dtype.kind == "f")


def _constant_copy(value: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Copy an array, so that later changes of it do not change the graph. Arrays of one repeated number share a copy.

    The gradient of a branch is zeros for every weight that another branch reads.
    """
    copy = np.array(value)
    if copy.nbytes <= SMALL or not copy.flags.c_contiguous or copy.dtype.kind not in "biuf":
        return copy
    stored, width = copy.reshape(-1).view(np.uint8), copy.itemsize
    number = stored[:width].tobytes()
    if stored[-width:].tobytes() != number or not np.array_equal(stored[width:], stored[:-width]):
        return copy
    copy.flags.writeable = False
    return _UNIFORM.setdefault((copy.shape, copy.dtype, number), copy)


_UNIFORM: WeakValueDictionary[Any, np.ndarray[Any, Any]] = WeakValueDictionary()


def _identity(value: np.ndarray[Any, Any] | Dim, dtype: np.dtype[Any]) -> Any:
    if isinstance(value, Dim):
        return value.key, dtype
    small = value.nbytes <= SMALL
    return (value.shape, dtype, value.tobytes()) if small else id(value)
