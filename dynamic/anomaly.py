"""What went wrong on a tape, and what is on it.

`detect_anomaly` stops at the first NaN or infinity, and names the forward line of an op that fails in backward. The
history of a tensor has statistics, a readable list, a networkx graph and a drawing, and a run is recorded as a graph.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import ContextDecorator
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import ref

import numpy as np
from numpy._core import umath

from dynamic.node import Leaf, Node
from dynamic.tape import arrivals, carry, visit
from dynamic.tapes import history
from dynamic.tensor import Tensor, wrap
from graphs import dispatch, ir, promotion, tree
from graphs.blocks import Block, Table, enter, undo_after
from graphs.builder import Builder
from graphs.errors import AnomalyError, user_line
from graphs.ir import GradientLine, Graph
from graphs.op import Attrs, Op
from graphs.ops.shapes import owner_of
from graphs.reverse import total
from graphs.spec import TensorSpec, spec_of
from graphs.wrong_calls import anomaly

if TYPE_CHECKING:
    from graphs.drawing import Diagram, GraphDrawing

_VISITS = {visit.__code__, carry.__code__}  # the frames of backward that are busy with one node, their local `node`
_warnings: ContextVar[Any] = umath._extobj_contextvar  # in which NumPy keeps when to warn: `np.seterr` is Python


class detect_anomaly(Block, ContextDecorator):  # noqa: N801  (a context manager, named as PyTorch names it)
    """Raise AnomalyError where an op inside the block makes NaN, or infinity from finite values; also a decorator.

    The error names the op, its inputs and the user's line; in backward the line is that of the forward op. Any other
    error that ends a backward pass gets a note with that line. `infinite=False` looks for NaN alone. Every result is
    read once more, so this is for debugging; NumPy's own warnings are off inside the block.
    """

    def __init__(self, infinite: bool = True) -> None:
        self._infinite = infinite
        self._lines = Lines()

    def __enter__(self) -> None:
        hold = self.hold()
        enter(dispatch.detours, hold, self._lines.noting)
        enter(dispatch.observers, hold, self._look)
        undo_after(hold, partial(_warnings.set, _warnings.get()))
        np.seterr(all="ignore")

    def finish(self, _kind: Any, error: Any, _trace: Any, /) -> None:  # type: ignore[override]
        """Add a note to an error: the forward line of the op whose gradient was being computed."""
        if isinstance(error, Exception):
            self._lines.note(error)

    def _look(self, op: Op, arrays: Sequence[Any], _: Attrs, out: Any) -> None:
        if not np.isfinite(out).all():
            where, line = self._lines.place(sys._getframe(1))
            error = anomaly(op, arrays, out, infinite=self._infinite, where=where, line=line)
            if error is not None:
                raise error


class nan_in_gradients(Block, ContextDecorator):  # noqa: N801  (PyTorch's `autograd.detect_anomaly`)
    """Raise AnomalyError where a gradient of an op recorded inside is NaN, with its forward line; also a decorator.

    With `check_nan=False` errors of a backward pass get that line alone. NaN of the forward pass is no error here.
    """

    def __init__(self, check_nan: bool = True) -> None:
        self._check_nan = check_nan
        self._lines = Lines()

    def __enter__(self) -> None:
        hold = self.hold()
        enter(dispatch.detours, hold, self._lines.noting)
        if self._check_nan:
            enter(arrivals, hold, self._look)

    def finish(self, _kind: Any, error: Any, _trace: Any, /) -> None:  # type: ignore[override]
        """Add a note to an error: the forward line of the op whose gradient was being computed."""
        if isinstance(error, Exception):
            self._lines.note(error)

    def _look(self, node: Node, gradients: Sequence[Any]) -> None:
        for number, gradient in enumerate(gradients):
            if gradient is not None and np.isnan(getattr(gradient, "_data", gradient)).any():
                where = f"its gradient in input {number} is NaN"
                remedy = "look for a root or a logarithm of 0 before it, or a division by 0"
                raise AnomalyError(f"{node.name()} ({self._lines.of(node) or 'recorded elsewhere'}): {where}; {remedy}")


class set_detect_anomaly:  # noqa: N801  (PyTorch's name)
    """Look for NaN in gradients from here on, or no longer; as a context manager, until its block ends."""

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self._before = [block._check_nan for block in _lasting]
        _look_from_here([check_nan] if mode else [])

    def __enter__(self) -> None:
        """Do nothing: the mode holds already."""

    def __exit__(self, *_: object) -> None:
        _look_from_here(self._before)


_lasting: list[nan_in_gradients] = []  # the one that `set_detect_anomaly` has begun


def _look_from_here(checks: Sequence[bool]) -> None:
    """End the lasting block, and begin one with such a `check_nan`, if there is one."""
    for block in _lasting:
        block.leave(None, None, None)
    _lasting[:] = [nan_in_gradients(check) for check in checks]
    for block in _lasting:
        block.__enter__()


def is_anomaly_enabled() -> bool:
    """Whether gradients are looked through for NaN."""
    return bool(arrivals)


class forward_lines(Block):  # noqa: N801
    """Find the forward line of any op that runs inside the block, also in backward: for tools that observe ops."""

    def __enter__(self) -> Lines:
        lines = Lines()
        enter(dispatch.detours, self.hold(), lines.noting)
        return lines


class Lines:
    """The user's line that recorded each node; in backward this gives the line of the op whose gradient runs."""

    def __init__(self) -> None:
        self._lines: Table[str] = {}  # by weak references to nodes

    def noting(self, interpreter: dispatch.Interpreter) -> dispatch.Interpreter:
        """Wrap an interpreter to write down the line of each node that it makes."""

        def bind(op: Op, args: Sequence[Any], attrs: Attrs) -> Any:
            result = interpreter(op, args, attrs)
            node = getattr(result, "_edge", None)
            if type(node) is Node:
                self._write_down(node, self.place(sys._getframe(1))[1])
            return result

        return bind

    def _write_down(self, node: Node, line: str) -> None:
        if ref(node) not in self._lines:
            self._lines[ref(node, self._lines.pop)] = line

    def of(self, node: Node) -> str:
        """The line that recorded a node; empty where the node was recorded outside the block."""
        return self._lines.get(ref(node), "")

    def place(self, start: FrameType) -> tuple[str, str]:
        """In backward, the op whose gradient runs, in words, and its forward line; else "" and the line being run."""
        frame: FrameType | None = start
        while frame is not None:
            if frame.f_code in _VISITS:
                node = frame.f_locals["node"]
                return f" in the gradient of {node.op.name}", self._lines.get(ref(node), "")
            frame = frame.f_back
        return "", user_line(start)

    def note(self, error: Exception) -> None:
        """Add a note to an error of a backward pass: the forward line of the op; without a backward pass, no note."""
        frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__) if frame.f_code in _VISITS]
        if frames:
            node = frames[-1].f_locals["node"]
            error.add_note(f"in the gradient of {node.op.name} ({self._lines.get(ref(node), 'recorded elsewhere')})")


# Inspection -----------------------------------------------------------------------------------------------------------


class TapeStats(NamedTuple):
    """The size of a tensor's history: number of nodes, bytes of the nodes themselves, bytes of the saved arrays."""

    nodes: int
    structure_bytes: int
    saved_bytes: int


def tape_stats(tensor: Tensor) -> TapeStats:
    """Count the history of a tensor. Memory that saved arrays share counts once; leaves do not count."""
    if tensor._edge is None:
        return TapeStats(0, 0, 0)
    nodes, ends = history([tensor._edge])
    leaves = {id(owner_of(leaf._data)) for end in ends if (leaf := end.tensor()) is not None}
    owners = {id(o): o.nbytes for node in nodes for o in _saved_arrays(node) if id(o) not in leaves}
    return TapeStats(len(nodes), sum(map(_structure_bytes, nodes)), sum(owners.values()))


def _saved_arrays(node: Node) -> list[Any]:
    return [owner_of(value) for value in node.saved or () if isinstance(value, np.ndarray)]


def _structure_bytes(node: Node) -> int:
    """The bytes of a node and of the objects that only it holds, without arrays."""
    saved = [value for value in node.saved or () if isinstance(value, tuple)]
    parts: list[Any] = [node, node.edges, node.saved, node.shape, node.sequence, *saved]
    if node.attrs:
        parts.append(node.attrs)
    return sum(sys.getsizeof(part) for part in parts if part is not None and part != ())


class Tape:
    """The history of a tensor: its leaves, then the recorded ops in the order they ran. Prints as a list.

    It keeps the nodes and their saved values alive. `lines` come from a block `forward_lines()` in which the tensor was
    computed.
    """

    def __init__(self, tensor: Tensor, lines: Lines | None = None) -> None:
        self.nodes = history([tensor._edge]).nodes
        read = [edge for node in self.nodes for edge in node.edges] or [tensor._edge]
        self.leaves = list(dict.fromkeys([edge for edge in read if type(edge) is Leaf]))
        self.stats: TapeStats = tape_stats(tensor)
        self.spec = spec_of(tensor)
        self._lines = {node: line for node in self.nodes if lines and (line := lines.of(node))}
        self._number: dict[Any, int] = {edge: number for number, edge in enumerate([*self.leaves, *self.nodes])}

    def __len__(self) -> int:
        return len(self.nodes)

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes)

    def __repr__(self) -> str:
        nodes, structure, saved = self.stats
        head = f"tape of {self.spec}: {nodes} ops, {structure} bytes of nodes, {saved} bytes saved"
        return "\n".join([head, *(f"  {self._line(edge)}" for edge in self._number)])

    def _line(self, edge: Any) -> str:
        name = f"%{self._number[edge]}: {TensorSpec(edge.shape, edge.dtype)}"
        if type(edge) is Leaf:
            return f"{name} leaf"
        if edge.saved is None:
            return f"{name} = {edge.op.name}(...), freed"
        arguments = [f"%{self._number[e]}" if e in self._number else "_" for e in edge.edges]
        options = [f"{key}={value!r}" for key, value in edge.attrs.items()]
        saved = ", ".join([repr(spec_of(value)) for value in edge.saved if isinstance(value, np.ndarray)])
        return f"{name} = {edge.op.name}({', '.join([*arguments, *options])})" + (f", saves {saved}" if saved else "")

    def to_networkx(self) -> Any:
        """The tape as a networkx MultiDiGraph (needs networkx).

        Nodes are the numbers of the list, with op, spec, attributes and the bytes saved; edges go from an input to
        its reader, with the position of the input.
        """
        import networkx as nx

        graph: nx.MultiDiGraph[int] = nx.MultiDiGraph()
        for edge, number in self._number.items():
            spec = TensorSpec(edge.shape, edge.dtype)
            nbytes = sum(value.nbytes for value in edge.saved or () if isinstance(value, np.ndarray))
            op = "leaf" if type(edge) is Leaf else edge.op.name
            graph.add_node(number, op=op, spec=spec, attrs=edge.attrs, saved_bytes=nbytes)
        for node in self.nodes:
            for position, source in enumerate(node.edges):
                if source in self._number:
                    graph.add_edge(self._number[source], self._number[node], position=position)
        return graph

    def draw(self, path: str | Path | None = None, unfold: bool = False) -> GraphDrawing:
        """Draw the tape, leaves on top, with the bytes that each node saves for backward; saved to `path` if given.

        The drawing shows itself in a notebook, and has `save(path)`. A large tape is folded by line where lines are
        known, else by op. Memory that several nodes save counts at the first of them; the memory of leaves does not
        count.
        """
        from graphs.drawing import GraphDrawing

        drawing = GraphDrawing(self._diagram(), unfold)
        if path is not None:
            drawing.save(path)
        return drawing

    def _repr_html_(self) -> str:
        return self.draw().svg()

    def _diagram(self) -> Diagram:
        from graphs.drawing import Diagram, Item, Link

        items, links = [], []
        last = len(self._number) - 1
        counted = {id(owner_of(tensor._data)) for leaf in self.leaves if (tensor := leaf.tensor()) is not None}
        for edge, number in self._number.items():
            is_leaf = type(edge) is Leaf
            options = "" if is_leaf else ", ".join(f"{key}={value!r}" for key, value in edge.attrs.items())
            new = (
                {}
                if is_leaf
                else {id(array): array.nbytes for array in _saved_arrays(edge) if id(array) not in counted}
            )
            counted.update(new)
            lines = (self._lines[edge],) if edge in self._lines else ()
            label, kind = ("leaf", "input") if is_leaf else (edge.op.name, "forward")
            spec = str(TensorSpec(edge.shape, edge.dtype))
            item = Item(f"%{number}", label, spec, kind, lines, sum(new.values()), 1, options, "", number == last)  # type: ignore[arg-type]
            items.append(item)
            sources = () if is_leaf else dict.fromkeys(edge.edges)
            links += [Link(f"%{self._number[source]}", item.key) for source in sources if source in self._number]
        return Diagram(f"tape of {self.spec}", tuple(items), tuple(links))


def tape_of(tensor: Tensor, lines: Lines | None = None) -> Tape:
    """The recorded history of a tensor; with the user's lines, if it was computed in a block that gave `lines`.

    Such a block is `with dynamic.anomaly.forward_lines() as lines:`.
    """
    return Tape(tensor, lines)


# Recording ------------------------------------------------------------------------------------------------------------


def record(f: Callable[..., Any], *args: Any) -> Graph:
    """Run `f(*args)` and return the graph of all the ops that ran, with the user's lines.

    Array leaves of the arguments are the graph's inputs, array leaves of the result its outputs. The line of an op in
    backward is that of the forward op.
    """
    recorder = _Recorder(getattr(f, "__name__", "f"))
    leaves, structure = tree.flatten(args)
    paths = tree.paths(f, args)
    called = [recorder.input(leaf, path) for leaf, path in zip(leaves, paths, strict=True)]
    with forward_lines() as recorder.lines, dispatch.observe_kernels(recorder):
        result = f(*tree.unflatten(structure, called))
    return recorder.builder.finish([recorder.node_of(_array(leaf), ()) for leaf in tree.leaves(result)])


def _array(value: Any) -> Any:
    return value._data if issubclass(type(value), Tensor) else value


def _sums_cotangents(start: FrameType) -> bool:
    frame: FrameType | None = start
    while frame is not None and frame.f_code is not total.__code__:
        frame = frame.f_back
    return frame is not None


class _Recorder:
    """Turns each kernel call into a node. Arrays are looked up by id, and kept alive so that no id is used again."""

    def __init__(self, name: str) -> None:
        self.builder = Builder(name)
        self.lines = Lines()
        self.nodes: dict[int, ir.Node] = {}
        self.kept: list[Any] = []
        self.last = GradientLine()

    def input(self, leaf: Any, path: str) -> Any:
        if not issubclass(type(leaf), (np.ndarray, Tensor)):
            return leaf
        array = _array(leaf).view()  # apart from the same array given twice
        self._know(array, self.builder.input(path, spec_of(array)))
        # A tensor even for an array: Python operators between arrays are NumPy's, and would not be recorded.
        return wrap(array).requires_grad_(issubclass(type(leaf), Tensor) and leaf.requires_grad)

    def __call__(self, op: Op, arrays: Sequence[Any], attrs: Attrs, out: Any) -> None:
        sources = [self.node_of(a, arrays) for a in arrays]
        self._know(out, self.builder.append(op, sources, attrs, self._line(sys._getframe(1))))

    def _line(self, start: FrameType) -> str:
        """The line of an op; a sum of cotangents gets the line of the gradient that was computed last."""
        gradient, line = self.lines.place(start)
        if gradient:
            self.last = GradientLine(line)
        return self.last if gradient or _sums_cotangents(start) else line

    def node_of(self, value: Any, others: Sequence[Any]) -> ir.Node:
        if promotion.is_scalar(value):  # one object, but another constant beside another dtype
            return self.builder.constant(promotion.weak_to_array(value, others))
        node = self.nodes.get(id(value))
        if node is None:
            node = self.builder.constant(promotion.weak_to_array(value, others))
            self._know(value, node)
        return node

    def _know(self, value: Any, node: ir.Node) -> None:
        self.kept.append(value)
        self.nodes[id(value)] = node
