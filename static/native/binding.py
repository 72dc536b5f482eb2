"""Binds a native program to sizes: every address is known or comes with a call; nodes are recipes or NumPy kernels.

A segment of native kernels becomes one function that Python calls. No kernel knows of Python or is called by it.

One piece of machine code serves all segments. The `self` of the function is an array, the table, which says what to do:
note the address of each argument's data, make the results, write the addresses that are new in this call into the rows
that kernels read (patches), and run the kernels one after the other.

Read `bind`, then `_make_segment` and `make`. `ShownKernel` and `format_kernel` show kernels to people.
"""

from __future__ import annotations

import ctypes
import functools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np

from graphs import dispatch
from graphs.errors import ShapeError
from graphs.ir import Graph, Node
from graphs.spec import describe
from static import memory
from static.codegen import binding
from static.codegen.binding import ArenaLayout, Binder, Binding
from static.codegen.kernels import KEPT, Runs, resolve
from static.codegen.lowering import LoweredGraph, Slot
from static.native import flow, layouts, link, pool
from static.native.cores import Cores
from static.native.flow import Location, Work
from static.native.ir import Access, Constant, Fold, LaneOp, Load, Loop, LoopKernel, Statement, Store, Value
from static.native.program import Segment, inner_of, is_one_segment
from static.native.target import Target, host
from static.native.work import Frame, Refusals, WorkCollector


def bind(
    program: LoweredGraph,
    sizes: Mapping[str, int],
    others: Sequence[Binding] = (),
    kept: int = KEPT,
    threads: int = 1,
) -> Binding:
    """Bind a native program to sizes: lay out the arena, make the kernels, and the function to call."""
    return binding.bind(program, sizes, others, kept, functools.partial(_Binder, threads))


class _Binder(Binder):
    """A binder that also makes the function of each native segment."""

    _latest: Frame | None = None

    def __init__(self, threads: int, *binder: Any) -> None:
        super().__init__(*binder)
        target = host()
        self.cores = Cores(pool.pool_of(threads, target), target)

    def bound(self, program: LoweredGraph, layout: ArenaLayout, arena: np.ndarray[Any, Any]) -> FunctionType:
        """Return the function to call.

        For the outermost program, bound last, also set `direct` where it is one segment.
        """
        run = super().bound(program, layout, arena)
        self.direct = None
        if is_one_segment(program):
            (function,) = run.__defaults__ or ()
            self.direct = checking(function, [_array(node, self.sizes) for node in program.graph.inputs])
        return run

    def default(self, slot: Slot, program: LoweredGraph, values: Mapping[Node, Any], runs: Mapping[Node, Runs]) -> Any:
        """Return the value of a parameter of the function; for a segment the function that runs it."""
        if slot[2] == "e":
            return array_maker(slot[1], _array(slot[1], self.sizes))
        if slot[2] != "s":
            return super().default(slot, program, values, runs)
        if self._latest is None or self._latest.values is not values:
            self._latest = Frame(program, values, self.sizes)  # one for all segments of a program
        function, recipes = _make_segment(slot[3], self._latest, runs, self.cores)
        self.kernels += recipes
        return function

    def inner(self, program: LoweredGraph, graph: Graph, layout: ArenaLayout, room: np.ndarray[Any, Any]) -> Any:
        """Return the function that runs a graph which a node holds.

        For a native loop or branch the frame of that graph.
        """
        if graph not in inner_of(program):
            return super().inner(program, graph, layout, room)
        body: Any = program.inner[graph]
        planned: Any = layout.inner[graph]
        values = self.values(body, planned, room)
        inner = {
            node: {g: self.inner(body, g, planned, room[planned.spaces[node] :]) for g in node.subgraphs}
            for node in body.schedule.order
            if any(g in body.inner for g in node.subgraphs)
        }
        return Frame(body, values, self.sizes), inner


def _make_segment(
    segment: Segment, frame: Frame, runs: Mapping[Node, Runs], cores: Cores
) -> tuple[Callable[..., Any], list[Any]]:
    """Return the function that runs a segment, and the recipes of the kernels that it calls."""
    number = {node: i for i, node in enumerate((*segment.arguments, *segment.made))}
    collector = WorkCollector(frame, runs, cores, Refusals())

    def start(root: Node) -> Location:
        return number[root], 0

    for node in segment.nodes:
        collector.add(node, start)
    arranged, target = cores.arrange_cores(collector.work), cores.target
    used = list(flow.kernels(arranged))
    scratch, block = _scratch(used, target, flow.sharers(arranged))
    work = flow.with_scratch(arranged, scratch)
    made = [_array(node, frame.sizes) for node in segment.made]
    keeps = block, collector.kept, frame.values
    function = compile_work(work, len(segment.arguments), made, used, collector.refusals, keeps, target)
    if segment.looks:
        function = checking(function, [_array(node, frame.sizes) for node in segment.arguments])
    return function, used


def _array(node: Node, sizes: Mapping[str, int]) -> StepArray:
    return StepArray(resolve(node.spec.shape, sizes), node.spec.dtype)


def compile_work(
    work: Work,
    arguments: int,
    made: Sequence[StepArray],
    used: Sequence[Any],
    refusals: Refusals,
    keeps: Any,
    target: Target,
) -> Any:
    """Return a function of `arguments` arrays that does the work with the machine code of these kernels."""
    kernels = link.kernels(used, target)
    drivers = {name: code.address for name, code in link.drivers(target).items()} if flow.has_flow(work) else {}

    def address(recipe: Any) -> int:
        return kernels[recipe].address

    return make(work, arguments, made, address, link.entry(target).address, drivers, refusals, (keeps, kernels))


def _scratch(
    used: Sequence[Any], target: Target, sharers: int
) -> tuple[Callable[[Any, int], list[Location]], np.ndarray[Any, Any]]:
    """Return a function for the places of a recipe's scratch buffers, and the memory that they lie in.

    Kernels that run one after the other share scratch; kernels that run side by side have a number each.
    """
    wanted = {recipe: recipe.scratch(target) for recipe in dict.fromkeys(used)}
    sizes = {r: [-(-n * np.dtype(d).itemsize // 64) * 64 for d, n in buffers] for r, buffers in wanted.items()}
    most = -(-max(map(sum, sizes.values()), default=0) // memory.ALIGNMENT) * memory.ALIGNMENT
    block = np.empty(sharers * most + memory.ALIGNMENT, np.uint8)
    start = block.ctypes.data + -block.ctypes.data % memory.ALIGNMENT

    def places(recipe: Any, number: int) -> list[Location]:
        each = sizes[recipe]
        return [(-1, start + number * most + sum(each[:i])) for i in range(len(each))]

    return places, block


UNLOCKED = 1 << 20  # operations: a segment of more lets other threads run meanwhile


class StepArray(NamedTuple):
    """A result that the step allocates, or an argument that it expects: shape and dtype."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]


class _Table(np.ndarray[Any, Any]):
    """The table of a step, and the address of its code; `keeps` holds the objects whose addresses are in the table."""

    entry: int = 0
    keeps: Any = None


class _Definition(ctypes.Structure):
    _fields_ = (("name", ctypes.c_char_p), ("code", ctypes.c_void_p), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p))


FASTCALL = 0x80


def make(
    work: Work,
    arguments: int,
    made: Sequence[StepArray],
    address: Callable[[Any], int],
    entry: int,
    drivers: Mapping[str, int],
    refusals: Refusals,
    keeps: Any,
) -> Callable[..., Any]:
    """Return a function of `arguments` arrays that does the work.

    It returns a tuple of results, or True if there are none. A place is (number of an argument or result, bytes from
    its start), or (-1, address). The function returns False, and does nothing, where an argument is not in row-major
    order or not aligned. It raises the error of a kernel that refuses its values.
    """
    python, context, refuse = layouts.python(), refusals.context, refusals.refuse
    listed = flow.CallTable(work, address, drivers, context)
    results, shapes = _array_table(made)
    fields = layouts.StepTable(
        arguments=arguments,
        result_count=len(made),
        results=ctypes.addressof(results),
        patch_count=len(listed.patches),
        patches=listed.array(layouts.Patch, listed.patches),
        calls=listed.calls,
        is_long=flow.has_loop(work) or flow.operations(work) > UNLOCKED,
        context=ctypes.addressof(context),
        refuse=id(refuse),
        python=ctypes.addressof(python),
    )
    return _function(fields, entry, (listed.keeps, results, shapes, made, refuse, keeps))


def checking(function: Callable[..., Any], arguments: Sequence[StepArray]) -> Callable[..., Any]:
    """Return the same step for any objects; it returns False where they are not arrays of these dtypes and shapes.

    A dtype is compared as an object, so that an array with an equal but different dtype object does not fit.
    """
    table: Any = function.__self__  # type: ignore[attr-defined]
    fields = layouts.StepTable.from_buffer_copy(table)
    expected, shapes = _array_table(arguments)
    fields.expected = ctypes.addressof(expected)
    return _function(fields, table.entry, (table, expected, shapes, arguments))


def array_maker(node: Node, wanted: StepArray) -> Callable[[Any], np.ndarray[Any, Any]]:
    """Return a function that turns the value of a node into the array that native code expects.

    That function raises ShapeError where the op has given a value that does not match its spec.
    """

    def as_array(value: Any) -> np.ndarray[Any, Any]:
        array = np.require(value, requirements=("C", "A"))
        if array.shape != wanted.shape or array.dtype != wanted.dtype:
            specs = [source.spec for source in node.inputs]
            rule = f"gave {describe(array.shape, array.dtype)}, its spec says {describe(*wanted)}; make them equal"
            raise dispatch.explain_error(node.op, specs, ShapeError(rule), node.source)
        return array.view(wanted.dtype)  # a view, so that the dtype is this very object

    return as_array


def _array_table(arrays: Sequence[StepArray]) -> tuple[Any, Any]:
    """Return arrays as structures that machine code reads, and their shapes, which must be kept alive with these."""
    shapes = [np.array(array.shape or (0,), np.intp) for array in arrays]
    specs: list[Any] = [(len(a.shape), shape.ctypes.data, id(a.dtype)) for a, shape in zip(arrays, shapes, strict=True)]
    return (layouts.ArraySpec * len(specs))(*specs), shapes


def _function(fields: layouts.StepTable, entry: int, keeps: Any) -> Callable[..., Any]:
    table = np.frombuffer(memoryview(fields), np.uint8).view(_Table)
    table.entry, table.keeps = entry, keeps
    new = ctypes.pythonapi.PyCFunction_NewEx
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    function: Callable[..., Any] = new(ctypes.addressof(_definition(entry)), table, None)
    return function


@functools.cache
def _definition(entry: int) -> _Definition:
    return _Definition(b"step", entry, FASTCALL, None)


class ShownKernel:
    """A kernel of an executable, and how often a call runs it (in a `while_loop`, how often two turns run it)."""

    def __init__(self, recipe: Any, count: int, target: Target) -> None:
        self.recipe, self.count, self.target = recipe, count, target

    @cached_property
    def ir(self) -> str:
        """The loop IR, a node a line."""
        return format_kernel(self.recipe.lower(self.target))

    @cached_property
    def llvm(self) -> str:
        """The LLVM IR."""
        return link.module({self.recipe: "kernel"}, self.target)

    @cached_property
    def assembly(self) -> str:
        """The instructions of the target."""
        return link.assembly(self.llvm, self.target)

    def __repr__(self) -> str:
        return f"<kernel {type(self.recipe).__name__.lower()}, called {self.count} times>"

    def __str__(self) -> str:
        return f"{self!r}\n{self.ir}"


def kernels_of(recipes: Sequence[Any]) -> tuple[ShownKernel, ...]:
    """Return the kernels of these recipes, each once, with a count."""
    return tuple(ShownKernel(recipe, count, host()) for recipe, count in Counter(recipes).items())


def format_kernel(kernel: LoopKernel) -> str:
    """Return the loop IR of a kernel as text."""
    writer = _Text()
    parameters = ", ".join(f"p{p.number}: {p.type}" for p in kernel.parameters)
    return "\n".join([f"kernel({parameters})", *writer.lines(kernel.body, 1)])


class _Text:
    def __init__(self) -> None:
        self.names: dict[Value, str] = {}

    def name(self, value: Value) -> str:
        if isinstance(value, Constant):
            return str(value.number)
        return self.names.setdefault(value, f"v{len(self.names)}")

    def lines(self, body: Sequence[Statement], depth: int) -> Iterator[str]:
        for node in body:
            if isinstance(node, Loop):
                yield from self.loop(node, depth)
            else:
                yield "  " * depth + self.line(node)

    def line(self, node: Load | LaneOp | Fold | Store) -> str:
        if isinstance(node, Store):
            return f"store {self.access(node.access)} = {self.name(node.value)}"
        return f"{self.name(node)}: {node.type} = {self.computed(node)}"

    def computed(self, node: Load | LaneOp | Fold) -> str:
        if isinstance(node, Load):
            return f"load {self.access(node.access)}"
        if isinstance(node, Fold):
            return f"fold {node.name}({self.name(node.vector)})"
        return f"{node.name}({', '.join(map(self.name, node.args))})"

    def access(self, access: Access) -> str:
        terms = [f"{self.name(counter)} * {stride}" for counter, stride in access.terms]
        terms += [str(access.offset)] if access.offset or not terms else []
        lanes = f", every {access.step}" if access.step != 1 else ""
        return f"p{access.base.number}[{' + '.join(terms)}{lanes}, {access.active} lanes]"

    def loop(self, node: Loop, depth: int) -> Iterator[str]:
        pairs = zip(node.carried, node.inits, strict=True)
        carried = ", ".join(f"{self.name(value)} = {self.name(init)}" for value, init in pairs)
        head = f"loop {self.name(node.counter)} from {node.start} to {node.stop} by {node.step}"
        results = ", ".join(map(self.name, node.results))
        yield "  " * depth + (f"{results} = {head} carrying {carried}" if carried else head)
        yield from self.lines(node.body, depth + 1)
        if carried:
            yield "  " * (depth + 1) + f"carry {', '.join(map(self.name, node.gives))}"
