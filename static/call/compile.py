"""compile: a function and the specs of its arguments, to an executable.

`GraphBuilder` builds a graph value by value before it runs (define and run); it compiles to an ordinary executable.

    graph = static.GraphBuilder("model")
    x, w = graph.placeholder("x", ("B", 3)), graph.placeholder("w", (3, 2))
    loss = graphs.mean(graphs.tanh(x @ w) ** 2)
    step = graph.compile({"loss": loss, "gradient": graph.gradients(loss, w)})
    step.run({"x": x_array, "w": w_array})["loss"]

Ops on values of the graph append to it. Control flow, transforms such as `static.grad`, and ops on sizes alone do so
inside `with graph:`. Parameters are placeholders too: they are fed, and their new values after a step are outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from graphs import blocks, dims, ir, reverse, tree
from graphs.blocks import Block
from graphs.builder import Builder
from graphs.dims import Dim
from graphs.errors import GraphError, OptionError, locate, one_line
from graphs.ir import Graph, Node, ancestors
from graphs.op import Attrs
from graphs.ops.creation import zeros_like
from graphs.spec import TensorSpec
from static import clock
from static.call.backend import Backend, choose_backend
from static.call.executable import Executable, to_onnx_bytes
from static.codegen.binding import lay_out
from static.convert import converted
from static.memory.recompute import fit
from static.passes import pipeline
from static.trace.differentiate import check_floating, pull_back
from static.trace.symbol import Symbol
from static.trace.tracing import TracedFunction, append_to, node_of, trace_function


@blocks.without_collection()
def compile(
    f: Callable[..., Any],
    *args: Any,
    passes: Sequence[pipeline.Pass] | None = None,
    arena: bool = True,
    recycle: bool = True,
    memory_budget: int | None = None,
    backend: str = "numpy",
    threads: int | Literal["all"] = 1,
    fast_math: bool = False,
    convert: bool = False,
) -> Executable:
    """Compile `f` for arguments of these specs.

    Each argument is a TensorSpec, an example array, or a nested container of them; any other leaf (a number, a
    string) is a static value that the graph is specialised to. A string in a spec's shape is a symbolic size.
    With `arena=False` every kernel allocates its result, as the dynamic engine does: the first rung of the ladder.
    With `recycle=False` large results are allocated anew in every call. Otherwise their memory is kept, and written
    again in a later call once nobody sees them any more (`exe.result_bytes`).
    With a `memory_budget` values that wait long to be read are computed again instead, until the arena takes no more
    bytes (`exe.plan.peak`: all but arguments, constants and results). The results keep their bits.
    The `backend` "numpy" calls NumPy's kernels; "native" runs machine code made for this graph, which needs
    `graphduel[native]`, and "auto" does so where it can. Each has `passes` of its own, which run unless others are
    given. Native code may use several `threads`, or "all" cores: long kernels are shared by them, and the results have
    the same bits with any number. With `fast_math` native code computes exp, tanh and sigmoid of float32 by shorter
    forms, whose errors docs/numerics.md tells; the graph stays as it is.
    With `convert` Python's own `if`, `while`, `for` and the like become control flow of the graph where values decide
    (`static.why` tells what was converted).
    Raises ControlFlowError where `f` asks for the value of a traced array, the errors of its ops, and GraphError for a
    budget that cannot be met, with the smallest one that can.
    """
    seconds: clock.Seconds = {}
    used = choose_backend(backend, threads, fast_math)
    with clock.adding_to(seconds):
        traced = trace_function(converted(f) if convert else f, args)
        graph, steps = pipeline.run(traced.graph, used.passes if passes is None else passes)
        if memory_budget is not None:
            graph, step = _fit_budget(graph, memory_budget, arena, used)
            steps += step
    return Executable(traced, graph, steps, arena=arena, recycle=recycle, seconds=seconds, backend=used)


def export(f: Callable[..., Any], *args: Any, format: str = "onnx", convert: bool = False) -> bytes:
    """Return the bytes of a model file of `f`, for arguments of these specs, as `compile` takes them.

    The only `format` is "onnx", which needs `graphduel[onnx]`: opset 18, symbolic sizes by their names. Tensors that
    `f` reads besides its arguments become constants, with their present values. With `convert` Python's own control
    flow becomes the graph's. Raises UnwritableError naming an op that ONNX does not have, OptionError for another
    format, and the errors that `compile` raises.
    """
    if format != "onnx":
        raise OptionError(locate(f"export: the format is 'onnx', not {format!r}; Executable.save writes our own"))
    return to_onnx_bytes(trace_function(converted(f) if convert else f, args))


def _fit_budget(graph: Graph, budget: int, arena: bool, used: Backend) -> tuple[Graph, list[pipeline.Ran]]:
    """Return the graph with as much computed again as the budget asks for, and the record of that pass."""
    symbols = sorted(frozenset[str]().union(*(node.spec.symbols for node in graph.inputs)))
    if symbols or not arena:
        reason = f"sizes that are numbers, and {', '.join(symbols)} has none" if symbols else "an arena"
        raise GraphError(f"{graph.name}: a memory_budget needs {reason}; leave it out")

    def planned_peak(graph: Graph) -> int:
        return lay_out(used.lower(graph, True), {}).plan.peak

    def recompute(part: Graph) -> Graph:
        return fit(part, budget, planned_peak) if part is graph else part  # the graph inside a loop stays as it is

    return pipeline.run(graph, [recompute])


class NamedInputExecutable(Executable):
    """An executable whose one argument is a dict of arrays, by the names of the placeholders that it needs."""

    def __init__(self, graph: ir.Graph, outputs: tree.Structure, placeholders: Sequence[str], options: Attrs) -> None:
        names = [str(node.attrs["name"]) for node in graph.inputs]
        inputs = tree.flatten((dict.fromkeys(names, 0),))[1]
        traced = TracedFunction(graph, inputs, (None,) * len(names), outputs)
        passes = options.pop("passes", pipeline.DEFAULT)
        super().__init__(traced, *pipeline.run(graph, passes), **options)
        self._placeholders = frozenset(placeholders)
        self._needed = names

    def run(self, feed: Mapping[str, Any]) -> Any:
        """Run on arrays by name; the result is laid out as the outputs that were compiled.

        A placeholder that the outputs do not need may be fed too. Raises GraphError for a placeholder that is not fed
        and for an unknown name, ShapeError and DTypeError for arrays that do not fit.
        """
        unknown = sorted(feed.keys() - self._placeholders)
        if unknown:
            raise GraphError(
                locate(f"no placeholder is named {unknown[0]!r}; there are {_list_names(self._placeholders)}")
            )
        missing = [name for name in self._needed if name not in feed]
        if missing:
            spec = self.specs[self._needed.index(missing[0])]
            raise GraphError(locate(f"the placeholder {missing[0]!r}, {spec}, is not fed; add it to the feed"))
        return self({name: np.asarray(feed[name]) for name in self._needed})


class GraphBuilder(Block):
    """A graph that is built value by value, and compiled for any of its values."""

    def __init__(self, name: str = "graph") -> None:
        self._builder = Builder(name)
        self._builder.open = True
        self._builder.saving = 1  # any value may be differentiated later
        self._placeholders: dict[str, Symbol] = {}
        self._compiled: dict[Any, NamedInputExecutable] = {}

    def __enter__(self) -> Self:
        append_to(self._builder, self.hold())
        return self

    # Defining -------------------------------------------------------------------------------------------------

    def placeholder(self, name: str, shape: Sequence[int | str | Dim], dtype: npt.DTypeLike = "float32") -> Symbol:
        """Return a symbol for a fed value.

        A string in `shape` is a symbolic size. Raises GraphError for a name in use.
        """
        if name in self._placeholders:
            raise GraphError(locate(f"a placeholder named {name!r} exists already; choose another name"))
        node = self._builder.input(name, TensorSpec(shape, dtype))
        self._placeholders[name] = Symbol(self._builder, node)
        return self._placeholders[name]

    def constant(self, value: npt.ArrayLike, dtype: npt.DTypeLike | None = None) -> Symbol:
        """Return a symbol for a value that is known now: the present numbers of an array."""
        return Symbol(self._builder, self._builder.constant(np.asarray(value, dtype)))

    def gradients(self, value: Symbol, of: Any) -> Any:
        """Return the gradients of one number of the graph in each leaf of a container of values.

        They are zeros where the number does not depend on a leaf. Raises NotDifferentiableError for a value that is no
        single floating point number, and for gradients in ints.
        """
        leaves, structure = tree.flatten(of)
        with self:
            variables = [Symbol(self._builder, self._node(leaf)) for leaf in leaves]
            for variable in variables:
                check_floating(variable.dtype)
            reverse.check_seed(value, None)
            self._node(value)
            seed = Symbol(self._builder, self._builder.constant(np.ones((), value.dtype)))
            gradient: dict[Node, Any] = {}
            for together in _independent(variables):
                cotangents = pull_back(self._builder, 0, together, [value], [seed])
                gradient |= {
                    v.node: zeros_like(v) if g is None else g for v, (g, _) in zip(together, cotangents, strict=True)
                }
        return tree.unflatten(structure, [gradient[v.node] for v in variables])

    # Running --------------------------------------------------------------------------------------------------

    def compile(self, outputs: Any, **options: Any) -> NamedInputExecutable:
        """Compile a container of values to an executable; the options are those of `static.compile`: passes, arena.

        The executable needs the placeholders that the outputs depend on, and runs the prints that need no others.
        Values may be added and compiled afterwards.
        """
        leaves, structure = tree.flatten(outputs)
        nodes = [self._node(leaf) for leaf in leaves]
        graph = _prune(self._builder.finish(nodes))
        return NamedInputExecutable(graph, structure, list(self._placeholders), options)

    def run(self, outputs: Any, feed: Mapping[str, Any]) -> Any:
        """Compile for these outputs, unless that is done already, and run on arrays by name."""
        leaves, structure = tree.flatten(outputs)
        key = structure, *map(self._node, leaves)
        if key not in self._compiled:
            self._compiled[key] = self.compile(outputs)
        return self._compiled[key].run(feed)

    def __repr__(self) -> str:
        inputs = ", ".join(f"{name}: {symbol.node.spec}" for name, symbol in self._placeholders.items())
        return one_line(f"<graph {self._builder.name}({inputs}), {len(self._builder.nodes)} nodes>")

    def _node(self, value: Any) -> Node:
        """Return the node of a value. Raises GraphError when it belongs to another graph."""
        if isinstance(value, Symbol) and value.builder is not self._builder:
            raise GraphError(locate(f"{value.node.spec} is a value of another graph; use values of one graph"))
        return node_of(self._builder, value, ())


def _independent(variables: Sequence[Symbol]) -> list[list[Symbol]]:
    """Return groups of variables to differentiate in together: no gradient goes through one to another of its group."""
    sources = [variable for variable in variables if not variable.node.inputs]
    return ([sources] if sources else []) + [[variable] for variable in variables if variable.node.inputs]


def _prune(graph: ir.Graph) -> ir.Graph:
    """Return the graph that the outputs depend on, with effects that need no other inputs; inputs sorted by name."""
    live = ancestors(graph.outputs)
    inputs = _required_inputs(graph, live)
    for node in graph.effects:
        more = ancestors([node])
        if {n for n in more if n.is_input} <= inputs:
            live |= more
    nodes = [node for node in graph.nodes if node in live or node in inputs]
    return ir.Graph(graph.name, sorted(inputs, key=lambda n: str(n.attrs["name"])), nodes, graph.outputs)


def _required_inputs(graph: ir.Graph, live: set[Node]) -> set[Node]:
    """Return the inputs among these nodes, and further inputs where only they tell a size."""
    inputs = {node for node in live if node.is_input}
    sizes = frozenset().union(*(_symbols(node) for node in live))
    for node in graph.inputs:
        bound = frozenset[str]().union(*(i.spec.symbols for i in inputs))
        if node.spec.symbols & (sizes - bound):
            inputs.add(node)
    return inputs


def _symbols(node: Node) -> frozenset[str]:
    value = node.attrs.get("value") if node.is_constant else None
    return node.spec.symbols | (dims.symbols(value) if isinstance(value, Dim) else frozenset())


def _list_names(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "none"
