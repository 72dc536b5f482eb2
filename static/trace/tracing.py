"""Tracing: a Python function runs once on symbols and leaves behind the graph of its ops.

Read `trace_function` first, then `tracing`, `bind` and `node_of`. `lower_choices` takes out of a finished graph the
parts that only a gradient needs: a choice becomes `where`, and a value with a rule of the user's own becomes the value.
"""

from __future__ import annotations

import _random
import contextlib
import ctypes
import inspect
import operator
import pickle
import random
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from graphs import capture, dims, dispatch, promotion, tree
from graphs.blocks import Block, Hold, Table, enter, innermost
from graphs.builder import Builder
from graphs.capture import Fresh, Guard, Guards, Source
from graphs.dims import Dim
from graphs.errors import (
    ArgumentError,
    ControlFlowError,
    DTypeError,
    GraphError,
    ResultError,
    definition_line,
    locate,
    user_line,
)
from graphs.ir import Graph, Node
from graphs.op import Attrs, Op, is_ours
from graphs.ops.control import ruled_op
from graphs.ops.elementwise import where
from graphs.ops.movement import astype, identity, stop_gradient
from graphs.spec import OfTensor, TensorSpec, spec_of
from static import clock
from static.rebuild import replace_nodes
from static.trace import symbol as weak
from static.trace import views
from static.trace.symbol import ArraySymbol, Symbol


class TracedFunction(NamedTuple):
    """A traced function: its graph, and how arguments and results are laid out.

    `static` holds the leaves of the arguments that are no arrays, and None for arrays; the graph was specialised to
    them. `reads` are the sources of the last inputs, tensors that the function reads without their being arguments.
    `guards` are the facts that Python has decided by.
    """

    graph: Graph
    inputs: tree.Structure
    static: tuple[Any, ...]
    outputs: tree.Structure
    reads: tuple[Source, ...] = ()
    guards: tuple[Guard, ...] = ()


class _Thread(threading.local):
    def __init__(self) -> None:
        self.builders: Table[Builder | None] = {}  # the builders of the graphs being traced, the innermost last
        self.forbidden: dict[Node, GraphError] = {}  # memory that was changed in place under another name
        self.is_free: Table[bool] = {}  # to read it all the same


_thread = _Thread()


def is_traced(leaf: Any) -> bool:
    """Whether a leaf of the arguments becomes an input of the graph; every other leaf is a static value."""
    return isinstance(leaf, (np.ndarray, np.generic, TensorSpec, Symbol)) or dispatch.interpreter_of(leaf) is not None


def trace(f: Callable[..., Any], *args: Any) -> Graph:
    """Return the unoptimised graph of `f` for arguments of these specs, or of the specs of these arrays."""
    return trace_function(f, args).graph


def trace_function(f: Callable[..., Any], args: Sequence[Any], general: bool = False) -> TracedFunction:
    """Run `f` on symbols.

    Raises ControlFlowError where Python asks for a value, and the errors that ops raise. A `general` graph treats sizes
    that are numbers like symbolic ones.
    """
    with clock.phase("trace"):
        return _trace(f, args, general)


def _trace(f: Callable[..., Any], args: Sequence[Any], general: bool) -> TracedFunction:
    builder = Builder(getattr(f, "__name__", "f"))
    builder.general = general
    builder.reads = {}
    leaves, structure = tree.flatten(tuple(args))
    names = tree.paths(f, tuple(args))
    symbols = [
        _input(builder, name, leaf) if is_traced(leaf) else leaf for name, leaf in zip(names, leaves, strict=True)
    ]
    streams = Streams(f, leaves)
    try:
        with tracing(builder):
            result = f(*tree.unflatten(structure, symbols))
            outputs, out_structure = tree.flatten(result)
            nodes = [_output(builder, f, output) for output in outputs]
    finally:
        for node in builder.overwritten:
            _thread.forbidden.pop(node, None)
    if builder.refusal is not None:  # it was raised before, and the traced function caught it
        raise builder.refusal
    streams.check(f)
    static = tuple(None if is_traced(leaf) else leaf for leaf in leaves)
    reads = tuple(source for source, _ in builder.reads.values())
    return TracedFunction(
        lower_choices(builder.finish(nodes)), structure, static, out_structure, reads, tuple(builder.guards.values())
    )


def _input(builder: Builder, name: str, leaf: Any) -> Symbol:
    node = builder.input(name, _spec(name, leaf))
    if is_tensor(leaf):
        builder.tensors.add(node)
    return Symbol(builder, node)


def _spec(name: str, leaf: Any) -> TensorSpec:
    try:
        return spec_of(leaf)
    except DTypeError as error:
        raise DTypeError(locate(f"the argument {name}: {error}, or pass it apart from the arrays")) from None


def check_arguments(f: Callable[..., Any], args: tuple[Any, ...]) -> None:
    """Raise DTypeError, with the argument's name and the user's line, for an array that no tensor holds."""
    for name, leaf in zip(tree.paths(f, args), tree.leaves(args), strict=True):
        if is_traced(leaf):
            _spec(name, leaf)


def _output(builder: Builder, f: Callable[..., Any], value: Any) -> Node:
    """Return the node of a part of the result. Raises ResultError for text or an object, with the line of `f`."""
    try:
        return node_of(builder, value, ())
    except DTypeError as error:
        rule = str(error).partition(";")[0]
        what = repr(value) if isinstance(value, str) else f"a value of the type {type(value).__name__}"
        name = getattr(f, "__name__", "the function")
        remedy = "return tensors and numbers, and add the rest outside"
        line = definition_line(inspect.unwrap(f))
        raise ResultError(locate(f"{rule}: {what} is in the result of {name}; {remedy}", line)) from None


def is_tensor(leaf: Any) -> bool:
    """Whether a leaf is a tensor of the dynamic engine, or stands for one, and so computes as PyTorch does."""
    return type(leaf) is Symbol or isinstance(leaf, (OfTensor, *capture.tensors))


def of_kind(value: Any, is_tensor: bool) -> Symbol:
    """Return a symbol for the same value, apart from every other use of it, as a tensor or as an array."""
    builder = current()
    assert builder is not None  # noqa: S101  (asked while a graph is traced)
    node = builder.append(identity, [node_of(builder, value, ())], {})
    (builder.tensors.add if is_tensor else builder.tensors.discard)(node)
    return Symbol(builder, node)


def _as_constant(leaf: Any) -> Any:
    """Return a tensor that was made from no other as a constant of the graph, in memory of its own."""
    return leaf if current() is None else of_kind(leaf.numpy(force=True), is_tensor=True)


capture.makers.append(_as_constant)


class tracing(Block):  # noqa: N801
    """Append the ops of the block to this graph."""

    def __init__(self, builder: Builder) -> None:
        self._builder = builder

    def __enter__(self) -> None:
        hold = self.hold()
        append_to(self._builder, hold)
        enter(dispatch.detours, hold, _appending)

    @staticmethod
    def finish(_kind: Any, error: Any, _trace: Any, /) -> None:
        """Raise the GraphError that NumPy hides behind "setting an array element with a sequence"."""
        if isinstance(error, ValueError) and isinstance(error.__cause__, GraphError):
            raise error.__cause__.with_traceback(error.__traceback__) from None


def _appending(interpreter: dispatch.Interpreter) -> dispatch.Interpreter:
    """Return an interpreter that appends ops on tensors that the function reads.

    Run now, these ops would never see the values that the tensors hold later.
    """

    def append(op: Op, args: Sequence[Any], attrs: Attrs) -> Any:
        return interpreter(op, args, attrs) if current() is None else bind(op, args, attrs)

    return append


def append_to(builder: Builder, hold: Hold) -> None:
    """Append ops to this graph until the block of a hold has ended, as `tracing` does."""
    enter(_thread.builders, hold, builder)


def forbidden() -> dict[Node, GraphError]:
    """Return the nodes that must not be read any more, nor views of them, with the error of each."""
    return _thread.forbidden


class reading_all(Block):  # noqa: N801
    """Inside the block every node may be read: derivatives use the values from before changes in place."""

    def __enter__(self) -> None:
        enter(_thread.is_free, self.hold(), True)


def check_readable(values: Iterable[Any]) -> None:
    """Raise GraphError for a value whose memory was changed in place under another name."""
    for value in values:
        if isinstance(value, Symbol):
            value.node = _readable(value.builder, value.node)


def _readable(builder: Builder, node: Node) -> Node:
    """Return the node of a value as it is now. Raises GraphError where that is not known."""
    node = views.present(builder, node)
    error = _thread.forbidden.get(memory(node, builder))
    if error is not None:
        builder.refuse(error)
        raise error
    return node


def memory(node: Node, builder: Builder | None = None) -> Node:
    """Return the node in whose memory a value lies: the node that it is a view of, or the node itself."""
    return views.chain(builder or current(), node)[1]


def current() -> Builder | None:
    """Return the graph being traced in this thread, or None."""
    return innermost(_thread.builders, None)


def static_key(leaf: Any) -> tuple[type, Any]:
    """Return a key that tells static values apart: 1, 1.0 and True differ, so do 0.0 and -0.0, and NaN equals itself.

    Raises ArgumentError for a value without a hash, since a graph compiled for it could not be found again.
    """
    if type(leaf) is slice:  # cannot be hashed before Python 3.12
        return slice, tuple(map(static_key, (leaf.start, leaf.stop, leaf.step)))
    if type(leaf).__hash__ is None:
        kind = type(leaf).__name__
        raise ArgumentError(
            locate(
                f"an argument is a {kind}, neither an array, a container nor a value with a hash; give its arrays, or "
                f"let optree.register_pytree_node take it apart; one that holds none is static with a hash "
                f"(@dataclass(frozen=True))"
            )
        )
    return type(leaf), repr(leaf) if isinstance(leaf, float) else leaf


def bind(op: Op, args: Sequence[Any], attrs: Attrs) -> Symbol:
    """Append a node to the graph being traced: the interpreter for symbols."""
    for arg in args:
        if type(arg) in dispatch.compounds:
            return dispatch.interpreters[type(arg)](op, args, attrs)
    builder = _builder_of(op, args)
    try:
        typed = weak.beside(op, args)
        sources = [node_of(builder, arg, typed) for arg in typed]
        node = builder.append(op, sources, attrs, builder.line or user_line())
        if op.marks:
            builder.copies.add(node)
        if capture.pause_depth() > builder.paused and node.spec.dtype.kind == "f":
            node = builder.append(stop_gradient, [node], {})
            if not views.shares(builder, node.inputs[0]):
                builder.copies.add(node)
        return Symbol(builder, node)
    except GraphError as error:
        raise dispatch.explain_error(op, args, error) from None


def _builder_of(op: Op, args: Sequence[Any]) -> Builder:
    builder = current() or next((a.builder for a in args if isinstance(a, Symbol) and a.builder.open), None)
    if builder is None:
        raise ControlFlowError(locate(f"{op.name}: a symbol or symbolic size was used after its trace had ended"))
    return builder


def node_of(builder: Builder, value: Any, others: Sequence[Any]) -> Node:
    """Return the node of a symbol, or a constant node for an array (its present value), a number or a symbolic size."""
    if isinstance(value, Symbol):
        return _own_node(builder, value)
    if isinstance(value, Dim):
        return builder.constant(value, promotion.scalar_dtype(value, others))
    if promotion.is_scalar(value):
        return builder.constant(promotion.weak_to_array(value, others))
    if hasattr(value, "captured_array"):
        step = capture.step_trace()
        symbol = None if step is None else step.symbol_of(value)
        return builder.read(value) if symbol is None else _own_node(builder, symbol)
    return builder.constant(np.asarray(value))


def _own_node(builder: Builder, symbol: Symbol) -> Node:
    """Return the node of a symbol; a node of an enclosing graph is captured, level by level, as an input."""
    node = symbol.node
    if (_thread.forbidden or symbol.builder.present) and not innermost(_thread.is_free, False):
        symbol.node = node = _readable(symbol.builder, node)
    if symbol.builder is builder:
        return node
    if builder.parent is None:
        raise ControlFlowError("a symbol of another trace or graph; pass it to this function as an argument")
    return builder.capture(_own_node(builder.parent, symbol))


def _guards() -> Guards | None:
    """Return the guards of the outermost graph that is being traced."""
    builder = current()
    while builder is not None and builder.parent is not None:
        builder = builder.parent
    return None if builder is None else builder.guards


def _refuse(error: GraphError) -> None:
    builder = current()
    if builder is not None:
        builder.refuse(error)


dims.refusers.append(_refuse)
dispatch.interpret(ArraySymbol, bind)
dispatch.interpret(Symbol, bind)
dispatch.interpret(Dim, bind)
dispatch.interpret(Fresh, bind)
capture.watch(_guards)


CHOICE = "choice"
"""The name of a choice's branches (`static/trace/control.py`)."""


def is_choice(attrs: Attrs) -> bool:
    """Whether a node with these attributes is a switch that is a choice."""
    return "branches" in attrs and bool(attrs["branches"][0].name == CHOICE)


def lower_choices(graph: Graph) -> Graph:
    """Return the graph with `where` for each choice and without rules of the user's own, in subgraphs too."""
    instead = {}
    for node in graph.nodes:
        if node.is_part and node.inputs[0].op is ruled_op:
            instead[node] = node.inputs[0].inputs[node.attrs["number"]]
        elif node.is_part and is_choice(node.inputs[0].attrs):
            instead[node] = _where(node)
        elif any(map(_holds_graphs, node.attrs.values())):
            attrs = {key: _lower_value(value) for key, value in node.attrs.items()}
            if any(attrs[key] is not value for key, value in node.attrs.items()):
                instead[node] = Node.of(node.op, node.inputs, attrs, node.source)
    return replace_nodes(graph, instead)


def _where(node: Node) -> Node:
    index, then, otherwise = node.inputs[0].inputs
    is_cast = index.op is astype and index.inputs[0].spec.dtype == np.bool_
    test = index.inputs[0] if is_cast else Node.of(astype, [index], {"dtype": np.dtype(np.bool_)}, node.source)
    return Node.of(where, [test, then, otherwise], {}, node.inputs[0].source)


def _holds_graphs(value: Any) -> bool:
    return isinstance(value, Graph) or (isinstance(value, tuple) and bool(value) and isinstance(value[0], Graph))


def _lower_value(value: Any) -> Any:
    if isinstance(value, Graph):
        return lower_choices(value)
    if _holds_graphs(value):
        parts = tuple([lower_choices(part) for part in value])
        return value if all(map(operator.is_, parts, value)) else parts
    return value


# Random numbers that Python draws: a trace would make them constants, and refuses them --------------------------------


class Streams:
    """The random generators that a function can draw from in Python, and the state of each before it runs."""

    def __init__(self, f: Callable[..., Any], leaves: Iterable[Any]) -> None:
        self._named = [*_everywhere(), *(("a generator", g.bit_generator) for g in _generators([f, *leaves]))]
        self._before = [_state(stream) for _, stream in self._named]

    def check(self, f: Callable[..., Any]) -> None:
        """Raise ControlFlowError where the state of a generator has changed."""
        for (name, stream), before in zip(self._named, self._before, strict=True):
            if _state(stream) != before:
                raise ControlFlowError(
                    f"{getattr(f, '__name__', 'the function')}: draws from {name} while it is traced ({user_line()}), "
                    "and each call would have the same numbers; draw by torch.rand, torch.randn or graphs.uniform, or "
                    "pass the numbers as an argument"
                )


def _everywhere() -> Iterator[tuple[str, Any]]:
    yield "Python's random", random
    if "numpy.random" in sys.modules:
        yield "np.random", sys.modules["numpy.random"].mtrand._rand._bit_generator
    for generator in capture.generators:
        if "numpy" in vars(generator) and hasattr(generator.numpy, "bit_generator"):  # the generator has been used
            yield "torch's generator outside of torch's functions", generator.numpy.bit_generator


def _state(stream: Any) -> Any:
    if stream is random:  # its `getstate` makes 624 Python numbers, half of a small trace's time
        generator: Any = random.getstate.__self__  # type: ignore[attr-defined]  # whose methods its functions are
        return ctypes.string_at(id(generator) + _HEAD, _TWISTER - _HEAD), generator.gauss_next
    if type(stream).__name__ == "MT19937":  # its `state` makes as many
        return ctypes.string_at(stream.ctypes.state_address, _WORDS * 4)
    return pickle.dumps(stream.state)


_WORDS = 625  # of the Mersenne twister: 624 words of state, and the count of used ones
_HEAD, _TWISTER = object.__basicsize__, _random.Random.__basicsize__  # bytes of an object, and of a twister


def _generators(roots: list[Any]) -> list[Any]:
    """Return NumPy's generators that are reachable from these objects; [] where `numpy.random` is not loaded."""
    if "numpy.random" not in sys.modules:
        return []
    kind, generators, seen, waiting = sys.modules["numpy.random"].Generator, [], set[int](), [*roots]
    while waiting and len(seen) < _MOST:
        value = waiting.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, kind):
            generators.append(value)
        elif isinstance(value, FunctionType):
            waiting += _names_in_code(value)
        elif isinstance(value, MethodType):
            waiting += [value.__func__, value.__self__]
        elif not isinstance(value, (type, ModuleType)) and not is_ours(type(value)):
            waiting += getattr(value, "__dict__", {}).values()
    return generators


_MOST = 2000  # values that are looked at


def _names_in_code(f: FunctionType) -> Iterator[Any]:
    """Yield the objects that a function's code reaches by name; for the library's own functions its closure alone."""
    for cell in f.__closure__ or ():
        with contextlib.suppress(ValueError):  # the cell is empty
            yield cell.cell_contents
    yield from f.__defaults__ or ()
    yield from (f.__kwdefaults__ or {}).values()
    if not is_ours(f):
        yield from (f.__globals__[name] for name in f.__code__.co_names if name in f.__globals__)
