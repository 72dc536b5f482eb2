"""compile: a function and the specs of its arguments, to an executable."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

from graphs import collector
from graphs.errors import GraphError, OptionError, located
from graphs.ir import Graph
from static import clock
from static.backends.choice import Backend, chosen
from static.call.executable import Executable, exported
from static.codegen.binding import lay_out
from static.convert import converted
from static.memory.recompute import fit
from static.passes import pipeline
from static.trace.tracing import trace_function


@collector.paused()
def compile(
    f: Callable[..., Any],
    *args: Any,
    passes: Sequence[pipeline.Pass] | None = None,
    arena: bool = True,
    recycle: bool = True,
    memory_budget: int | None = None,
    backend: str = "numpy",
    threads: int | Literal["all"] = 1,
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
    the same bits with any number.
    With `convert` Python's own `if`, `while`, `for` and the like become control flow of the graph where values decide
    (`static.why` tells what was converted).
    Raises ControlFlowError where `f` asks for the value of something traced, what its ops raise, and GraphError for a
    budget that cannot be met, which names the smallest that can.
    """
    seconds: clock.Seconds = {}
    used = chosen(backend, threads)
    with clock.adding_to(seconds):
        traced = trace_function(converted(f) if convert else f, args)
        graph, steps = pipeline.run(traced.graph, used.passes if passes is None else passes)
        if memory_budget is not None:
            graph, step = _within(graph, memory_budget, arena, used)
            steps += step
    return Executable(traced, graph, steps, arena=arena, recycle=recycle, seconds=seconds, backend=used)


def export(f: Callable[..., Any], *args: Any, format: str = "onnx", convert: bool = False) -> bytes:
    """`f` for arguments of these specs, as `compile` takes them, as a model that others run: the bytes of its file.

    The only `format` is "onnx", which needs `graphduel[onnx]`: opset 18, symbolic sizes by their names. What `f` reads
    besides its arguments is a constant, as it is now. With `convert` Python's own control flow is the graph's.
    Raises UnwritableError naming an op that ONNX has not, OptionError for another format, and what `compile` raises.
    """
    if format != "onnx":
        raise OptionError(located(f"export: the format is 'onnx', not {format!r}; Executable.save writes our own"))
    return exported(trace_function(converted(f) if convert else f, args))


def _within(graph: Graph, budget: int, arena: bool, used: Backend) -> tuple[Graph, list[pipeline.Ran]]:
    """The graph with as much computed again as the budget asks for, and what that did."""
    symbols = sorted(frozenset[str]().union(*(node.spec.symbols for node in graph.inputs)))
    if symbols or not arena:
        reason = f"sizes that are numbers, and {', '.join(symbols)} has none" if symbols else "an arena"
        raise GraphError(f"{graph.name}: a memory_budget needs {reason}; leave it out")

    def planned_peak(graph: Graph) -> int:
        return lay_out(used.lower(graph, True), {}).plan.peak

    def recompute(part: Graph) -> Graph:
        return fit(part, budget, planned_peak) if part is graph else part  # what a loop runs inside stays

    return pipeline.run(graph, [recompute])
