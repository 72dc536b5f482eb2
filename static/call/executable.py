"""Executable: a compiled graph that is called like the function it came from.

`Report`, at the end, has its numbers: nodes, bytes, and the time of each phase.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, NoReturn

import numpy as np

from graphs import dims, dispatch, tree
from graphs.dims import Shape
from graphs.errors import ArtifactError, DTypeError, GraphError, ShapeError, escape_html, locate
from graphs.files import write_file
from graphs.ir import Graph, Node
from graphs.spec import TensorSpec
from static import clock, memory
from static.call import artifact, containers
from static.call.backend import NUMPY, Backend, choose_backend
from static.call.containers import Room
from static.codegen.binding import Binding
from static.codegen.kernels import KEPT, resolve
from static.codegen.lowering import LoweredGraph, describe_node
from static.passes import pipeline
from static.passes.pipeline import Ran
from static.trace.tracing import TracedFunction, is_traced, static_key

if TYPE_CHECKING:
    from graphs.drawing import GraphDrawing, MemoryMap

BINDINGS = 64  # sizes of one symbolic executable whose plans are kept


def _misfit(graph: Graph, sizes: Mapping[str, int], error: Exception) -> GraphError:
    """Return the error for these sizes: the first rule of an op that they break, as its `infer` tells, with the op."""
    for node in (node for inner in graph.nested() for node in inner.calls if node.op.family != "control"):
        declared = [source.spec for source in node.inputs]
        try:
            specs = [TensorSpec(resolve(spec.shape, sizes), spec.dtype) for spec in declared]
            node.op.infer(*specs, **{key: resolve(value, sizes) for key, value in node.attrs.items()})
        except GraphError as broken:
            return dispatch.explain_error(node.op, declared, broken, node.source)
    return dispatch.as_graph_error(error)


def _closer(*_: Any) -> Any:
    return NotImplemented


class Executable:
    """A compiled function. Call it with arguments laid out like those it was compiled for.

    Calls may run in several threads at once: each takes a room (arena and results) and gives it back.

    To take a call apart there is the `program` (the schedule, the code, and the node of each line), the `binding` of
    the program to sizes, the `inputs` that it takes, and `with_run`, the same call around other code.
    """

    def __init__(
        self,
        traced: TracedFunction,
        graph: Graph,
        steps: Sequence[pipeline.Ran],
        *,
        arena: bool = True,
        recycle: bool = True,
        seconds: clock.Seconds | None = None,
        backend: Backend = NUMPY,
    ) -> None:
        self.traced = traced
        self.graph = graph
        self.steps = tuple(steps)
        self._arena, self._backend = arena, backend
        self._kept = KEPT if arena and recycle else 0
        self.seconds = {} if seconds is None else seconds
        with clock.adding_to(self.seconds):
            self.program: LoweredGraph = backend.lower(graph, arena)
        self._specs = tuple(node.spec for node in graph.inputs)
        self._made = containers.maker(traced.outputs)
        self._fixed = not any(spec.symbols for spec in self._specs)
        self._free: list[Room] = []  # rooms that no call is in: one that is interrupted may lose its own
        room = self._new_room()
        self._bindings = room.bindings  # of the first room, which the properties below show
        self._free.append(room)
        plain = not traced.guards  # else they are looked at before each call
        call = functools.partial(containers.caller, traced.inputs, traced.outputs, self._specs)
        call = functools.partial(call, fixed=self._fixed, direct=room.direct is not None)
        self._direct = call() if plain else _closer

    # Running ------------------------------------------------------------------------------------------------

    def __call__(self, *args: Any) -> Any:
        """Run on arrays. Results are new arrays that the caller owns.

        Raises ShapeError or DTypeError when an argument does not fit the graph.
        """
        try:
            room = self._free.pop()
        except IndexError:
            room = self._new_room()
        try:
            result = self._direct(room, args)
        except dispatch.BROKEN_RULES as error:
            raise self._with_context(error) from None
        finally:
            self._free.append(room)
        if result is not NotImplemented:
            return result
        arrays = self.inputs(args)  # laid out otherwise, no arrays, or of other sizes: looked at closer
        return self.run_leaves(tuple([a.shape for a in arrays]), arrays)

    def run_leaves(self, shapes: tuple[Shape, ...], arrays: Sequence[Any]) -> Any:
        """Run on the leaves of the arguments: arrays of these shapes, and of the dtypes of the specs."""
        try:
            room = self._free.pop()
        except IndexError:
            room = self._new_room()
        try:
            binding = room.bindings.get(shapes) or self._binding(room, shapes)
            return self._made(binding.run(*arrays))
        except dispatch.BROKEN_RULES as error:
            raise self._with_context(error) from None
        finally:
            self._free.append(room)

    def run_reading(self, arrays: Sequence[Any]) -> Any:
        """Run on the leaves of the arguments, as arrays, and on the present values of the tensors the graph reads."""
        inputs = self._fitting([*arrays, *(source.captured_array() for source in self.traced.reads)])
        return self.run_leaves(tuple([a.shape for a in inputs]), inputs)

    def inputs(self, args: tuple[Any, ...]) -> list[Any]:
        """Return the arguments as the arrays that `binding.run` takes.

        Raises ShapeError or DTypeError for arguments that do not fit, and GraphError where a guard has changed.
        """
        changed = next((guard for guard in self.traced.guards if guard.now() != guard.value), None)
        if changed is not None:
            raise GraphError(
                locate(f"{self.graph.name}: compiled while {changed}; compile it again, or use static.jit, which does")
            )
        leaves, structure = tree.flatten(args)
        if structure != self.traced.inputs:
            raise ShapeError(
                locate(
                    f"{self.graph.name}: arguments laid out as {tree.describe(structure)}, "
                    f"compiled for {tree.describe(self.traced.inputs)}; give the same containers, * for each array"
                )
            )
        return self._check_leaves(leaves)

    def _check_leaves(self, leaves: Sequence[Any]) -> list[Any]:
        """Return the leaves as arrays, without the static values.

        Raises ShapeError or DTypeError where one does not fit.
        """
        arrays = []
        for leaf, static in zip(leaves, self.traced.static, strict=True):
            if static is None and (is_traced(leaf) or not isinstance(leaf, (str, bytes))):
                arrays.append(leaf if type(leaf) is np.ndarray else np.asarray(leaf))
            elif static_key(static) != static_key(leaf):
                raise ShapeError(
                    locate(f"{self.graph.name}: compiled for the static value {static!r}, got {leaf!r}; use static.jit")
                )
        return self._fitting([*arrays, *(source.captured_array() for source in self.traced.reads)])

    def _fitting(self, arrays: list[Any]) -> list[Any]:
        """Return these arrays. Raises DTypeError for an array of another dtype than the graph was compiled for."""
        for array, spec, node in zip(arrays, self._specs, self.graph.inputs, strict=True):
            if array.dtype != spec.dtype:
                raise DTypeError(
                    locate(f"{node.attrs['name']}: compiled for {spec}, got {array.dtype}; convert with astype")
                )
        return arrays

    def _new_room(self) -> Room:
        """Return a new room, which no call is in, with the binding of the shapes where they are fixed."""
        room = Room()
        if self._fixed:
            binding = self._binding(room, tuple([spec.shape for spec in self._specs]))
            room.run, room.direct = binding.run, binding.direct
        return room

    def _binding(self, room: Room, shapes: tuple[Shape, ...]) -> Binding:
        """Return the binding for these shapes, made on first use in a room; the oldest of many is dropped."""
        labels = [node.attrs["name"] for node in self.graph.inputs]
        for label, spec, shape in zip(labels, self._specs, shapes, strict=True):
            if len(spec.shape) != len(shape):
                raise ShapeError(locate(f"{label}: compiled for {spec}, got {len(shape)} axes of sizes {shape}"))
        try:
            expected = [(label, spec.shape) for label, spec in zip(labels, self._specs, strict=True)]
            sizes = dims.solve(expected, [tuple(map(int, shape)) for shape in shapes])
        except ShapeError as error:
            raise ShapeError(locate(f"{self.graph.name}: {error}")) from None
        if len(room.bindings) >= BINDINGS:
            room.bindings.pop(next(iter(room.bindings)))
        try:
            with clock.adding_to(self.seconds):
                binding = self._backend.bind(self.program, sizes, tuple(room.bindings.values()), self._kept)
        except dispatch.BROKEN_RULES as error:
            raise _misfit(self.traced.graph, sizes, error) from None
        room.bindings[shapes] = binding
        return binding

    def _with_context(self, error: Exception) -> Exception:
        """Return a kernel's error with the op, the specs and the user's line, found by the lines of generated code."""
        programs = {id(program.code): program for program in self.program.nested()}  # equal code may be of two groups
        traceback, node = error.__traceback__, None
        while traceback is not None:  # the innermost line: in the body of a loop, not the loop
            if id(traceback.tb_frame.f_code) in programs:
                node = programs[id(traceback.tb_frame.f_code)].lines[traceback.tb_lineno - 2]
            traceback = traceback.tb_next
        if node is None:
            return error
        specs = [source.spec for source in node.inputs]
        return dispatch.kernel_error(node.op, specs, error, node.source)

    def with_run(self, run: Callable[..., tuple[Any, ...]]) -> Executable:
        """Return a copy that calls `run` in place of the generated code, for the sizes that are planned by now."""
        copy, room = Executable.__new__(Executable), Room()
        vars(copy).update(vars(self))
        room.run = run
        room.bindings = {shapes: binding._replace(run=run) for shapes, binding in self._bindings.items()}
        copy._free, copy._bindings = [room], room.bindings
        return copy

    # Looking ------------------------------------------------------------------------------------------------

    @property
    def specs(self) -> tuple[TensorSpec, ...]:
        """The specs of the inputs, in the order of the leaves."""
        return self._specs

    @property
    def source(self) -> str:
        """The generated code; behind each statement the op, the shape and the user's line that it comes from."""
        return self.program.listing()

    @property
    def kernels(self) -> tuple[Any, ...]:
        """The native kernels for the sizes planned last, each with its loop IR (`ir`), `llvm` and `assembly`."""
        return self._backend.shown(self.binding.kernels)

    @property
    def backend(self) -> str:
        """The name of the backend: "numpy" or "native"."""
        return self._backend.name

    @property
    def code_bytes(self) -> int:
        """The bytes of the generated code and of the names and defaults it uses."""
        codes = [program.code for program in self.program.nested()]
        return sum(sys.getsizeof(part) for c in codes for part in (c.co_code, c.co_varnames, c.co_linetable))

    @property
    def has_plan(self) -> bool:
        """Whether there is a plan: not before the first call of a symbolic graph."""
        return bool(self._bindings)

    @property
    def plan(self) -> memory.Plan:
        """The memory plan for the sizes planned last. Raises GraphError before the first call of a symbolic graph."""
        return self.binding.plan

    @property
    def sizes(self) -> Mapping[str, int]:
        """The numbers of the symbolic sizes planned last. Raises GraphError before the first call of such a graph."""
        return self.binding.sizes

    def _idle_bindings(self) -> list[Binding]:
        """Return the bindings of all rooms that no call is in."""
        return [binding for room in list(self._free) for binding in room.bindings.values()]

    @property
    def binding(self) -> Binding:
        """The program bound to the sizes planned last: the function that is called, the plan, and the memory.

        Raises GraphError before the first call of a symbolic graph.
        """
        if not self._bindings:
            raise GraphError(f"{self.graph.name}: the plan of symbolic sizes is made for numbers; call it once first")
        return next(reversed(self._bindings.values()))

    @property
    def arena_bytes(self) -> int:
        """The bytes of all arenas that are kept: the arena of the largest sizes, and smaller ones made before it."""
        return sum({id(binding.arena): binding.arena.nbytes for binding in self._idle_bindings()}.values())

    @property
    def result_bytes(self) -> int:
        """The bytes of the memory kept for large results, to be written again once nobody sees the last ones."""
        results = {id(result): result for binding in self._idle_bindings() for result in binding.results.values()}
        return sum(result.nbytes for result in results.values())

    def draw(self, unfold: bool = False) -> GraphDrawing:
        """Return a drawing of the graph that runs, as the passes left it; a notebook shows it, and it has `save`."""
        return self.graph.draw(unfold)

    def draw_memory(self) -> MemoryMap:
        """Return a map of the arena over the steps of a run, for the sizes planned last.

        The name of a buffer lists the values that lie in it, one after the other. Raises GraphError before the first
        call of a symbolic graph.
        """
        from graphs.drawing import MappedBuffer, MemoryMap

        last = self.binding
        order, program = self.program.schedule, self.program
        tenants: dict[Node, list[str]] = {buffer: [] for buffer in (order.lives if program.planned else ())}
        for node, place in order.place.items() if tenants else ():
            tenants[place.buffer].append(describe_node(node))
        names = [", then ".join(values) for values in tenants.values()]
        names += [f"{space.nodes[0].op.name}: its workspace" for space in order.workspaces]
        rows = zip(names, last.lives, last.plan.offsets, strict=True)
        buffers = [MappedBuffer(name, *life, offset) for name, life, offset in rows]
        return MemoryMap(self.graph.name, buffers, last.plan.peak)

    def _repr_html_(self) -> str:
        return self.draw().svg()

    def nodes(self) -> tuple[Node, ...]:
        """Return the nodes in the order they run."""
        return self.program.schedule.order

    def report(self) -> Report:
        """Return a report: the contents of the graph, a record of each pass, and the memory plan."""
        nodes = [node for graph in self.graph.nested() for node in graph.nodes]
        constants = [node.attrs["value"] for node in nodes if "value" in node.attrs]
        return Report(
            name=self.graph.name,
            nodes=len(nodes),
            structure_bytes=sum(map(node_bytes, nodes)) + self.code_bytes,
            constant_bytes=sum(value.nbytes for value in constants if isinstance(value, np.ndarray)),
            arena_bytes=self.arena_bytes,
            result_bytes=self.result_bytes,
            plan=self.plan if self.has_plan else None,
            steps=self.steps,
            seconds=dict(self.seconds),
        )

    def save(self, path: str | Path) -> None:
        """Write the graph to a file that `static.load` reads, without the Python function.

        Raises GraphError for a graph that reads tensors which are not arguments.
        """
        if self.traced.reads:
            count = len(self.traced.reads)
            raise GraphError(
                locate(f"{self.graph.name}: reads {count} tensors that are no arguments; pass them to save it")
            )
        artifact.write(self.traced._replace(graph=self.graph), Path(path))

    def to_onnx(self, path: str | Path) -> None:
        """Write the function to an ONNX file, as `static.export` does: the graph as it was traced.

        Raises UnwritableError with the name of an op that ONNX does not have.
        """
        write_file(path, to_onnx_bytes(self.traced))

    def __reduce__(self) -> NoReturn:
        raise ArtifactError(
            locate(f"{self.graph.name}: an executable is neither pickled nor copied; use save, and static.load")
        )

    def __repr__(self) -> str:
        inputs = ", ".join(map(str, self._specs))
        return f"<executable {self.graph.name}({inputs}), {len(self.graph)} nodes>"


def to_onnx_bytes(traced: TracedFunction) -> bytes:
    """Return a traced function as the bytes of an ONNX file. Raises ImportError where onnx is not installed."""
    try:
        from static.exporting import model_of
    except ImportError as error:
        raise ImportError(f"ONNX files need onnx ({error}); pip install 'graphduel[onnx]'") from error
    return model_of(traced).SerializeToString()


def load(
    path: str | Path, backend: str = "numpy", threads: int | Literal["all"] = 1, fast_math: bool = False
) -> Executable:  # fmt: skip
    """Return the executable saved in a file, compiled again by this backend, with its options as in `compile`.

    Ops of the user's own must be registered before. Raises ArtifactError when the file is cut off, altered, of another
    version or not ours; OSError when it is unreadable.
    """
    seconds: clock.Seconds = {}
    used = choose_backend(backend, threads, fast_math)
    with clock.adding_to(seconds), clock.phase("load"):
        return artifact.read(
            Path(path), lambda traced: Executable(traced, traced.graph, (), seconds=seconds, backend=used)
        )


SMALL_SHARE = 0.01  # of the whole time: a phase that takes less is not named
WIDTH = 80


class Report(NamedTuple):
    """A report of an executable: nodes, bytes of structure, constants and arenas, passes, plan, and time by phase.

    Nodes and bytes count the graph and its subgraphs; the plan is that of the graph's own arena. The plan is None until
    symbolic sizes have numbers. `seconds` are of CPU, by the names of passes and of the phases in `static/clock.py`;
    they include planning for all sizes.
    """

    name: str
    nodes: int
    structure_bytes: int
    constant_bytes: int
    arena_bytes: int
    result_bytes: int
    plan: memory.Plan | None
    steps: tuple[Ran, ...]
    seconds: Mapping[str, float]

    def __str__(self) -> str:
        lines = [f"{self.name}: {self.nodes} nodes, {self.structure_bytes:,} bytes of structure"]
        lines.append(f"  constants: {self.constant_bytes:,} bytes")
        lines += [f"  {_of_pass(runs)}" for runs in _by_pass(self.steps)]
        busy = {step.name for step in self.steps if step.changed}
        idle = dict.fromkeys(step.name for step in self.steps if step.name not in busy)
        if idle:
            lines.append(f"  nothing to do for {', '.join(idle)}")
        if self.plan is not None:
            above = f"{self.plan.gap:.1%} above the {self.plan.lower_bound:,} that are live at once"
            lines.append(f"  arena: {self.plan.peak:,} bytes, {above}")
        if self.result_bytes:
            lines.append(f"  results: {self.result_bytes:,} bytes kept, to be written again")
        whole = sum(self.seconds.values())
        slowest = sorted(self.seconds.items(), key=lambda item: -item[1])
        each = [f"{name} {seconds * 1e3:,.1f}" for name, seconds in slowest if seconds >= SMALL_SHARE * whole]
        rest = f"; each of the other {len(slowest) - len(each)} less than 1%" if len(each) < len(slowest) else ""
        lines.append(f"  compiled in {whole * 1e3:,.1f} ms of CPU: {', '.join(each)}{rest}")
        return "\n".join(fill(line, WIDTH, subsequent_indent="    ", break_on_hyphens=False) for line in lines)

    def _repr_html_(self) -> str:
        head = "<tr><th>pass</th><th>nodes</th><th>bytes of intermediate results</th></tr>"
        rows = "".join(_row(runs) for runs in _by_pass(self.steps))
        return f"<table>{head}{rows}</table><pre>{escape_html(str(self))}</pre>"


def _by_pass(steps: Sequence[Ran]) -> list[list[Ran]]:
    """Return the runs of each pass that changed the graph, by pass: a pass may run several times."""
    runs: dict[str, list[Ran]] = {}
    for step in steps:
        if step.changed:
            runs.setdefault(step.name, []).append(step)
    return list(runs.values())


def _of_pass(runs: Sequence[Ran]) -> str:
    """Return a text that says how the runs of one pass changed the graph."""
    first, *again = runs
    later = [f"again {str(step).removeprefix(f'{step.name}: ')}" for step in again]
    return "; ".join([str(first), *later])


def _row(runs: Sequence[Ran]) -> str:
    """Return the runs of one pass as a row of an HTML table."""
    nodes = ", then ".join(f"{step.before} → {step.after}" for step in runs)
    held = ", then ".join(f"{step.bytes_before} → {step.bytes_after}" for step in runs)
    cells = [runs[0].name, nodes, held]
    return f"<tr>{''.join(f'<td>{escape_html(cell)}</td>' for cell in cells)}</tr>"


def node_bytes(node: Node) -> int:
    """Return the bytes of a node with its tuple and dict, without the data of constants."""
    return sys.getsizeof(node) + sys.getsizeof(node.inputs) + sys.getsizeof(node.attrs)
