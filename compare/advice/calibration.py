"""Calibration: the costs of this machine, from synthetic programs, in a fresh worker kept on one core.

Each time is the least of a few blocks on the thread's own clock, as what disturbs a machine only ever adds. Overheads
are fitted by least squares of relative errors to steps whose kernels take next to nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import inf, log, sqrt
from statistics import fmean
from typing import Any

import numpy as np

import dynamic
import static
from compare.advice import fitting, kept, returned, synthetic, work
from compare.advice.costs import Costs, Curve, Kernel, Overhead
from compare.advice.structures import Structure, structure
from compare.engines.graphduel.functions import transformed
from compare.instruments.time.rounds import TimedCall, collected, time_block
from compare.records.job import Job
from compare.records.record import Environment
from compare.records.runs import Calibration
from graphs.errors import GraphError
from graphs.ir import Graph, Node
from graphs.spec import TensorSpec
from static.codegen import kernels as kernel_calls
from static.memory import ALIGNMENT

BLOCK_SECONDS = 2e-4
BLOCKS = 4
PASSES = 3
HELD = 16 << 20
"""Bytes of results that are held at once: a tape holds them all until it has been walked back."""
LARGE, DEAR = 120_000, 1e-9
"""Elements of an array that no longer fits a cache, and seconds an element that memory can keep up with."""
LEAST_SPREAD = 0.1
"""What a prediction may be off even where all synthetic programs agree."""
TIMEOUT = 180.0

ENGINES = ("dynamic", "plain", "static", "compile")


def calibrate() -> Costs:
    """The costs of this machine, measured now. Raises WorkerError when the worker fails."""
    record = returned.answered(Job("calibration", claim="advise", source=f"{__name__}:measure"), TIMEOUT, Calibration)
    machine = kept.machine(record.environment or Environment())
    costs = Costs.from_dict({**record.costs, "machine": machine})
    whole = replace(costs, returned=returned.calibrate())
    return replace(whole, spread=max(LEAST_SPREAD, spread(whole, record.larger)))


def measure(_job: Job) -> Calibration:
    """The record of the worker: what the programs take that the prediction is checked on, and all costs.

    Those programs come first, the smallest ahead: what a process has freed decides what new memory costs it.
    """
    larger = [_times(program, 0) for program in synthetic.larger()]
    return Calibration(larger, measured().to_dict())


def measured() -> Costs:
    """The costs, measured in this process; the machine is left empty."""
    started = time.perf_counter()
    with collected(), np.errstate(all="ignore"):
        costs = _measured()
    return replace(costs, seconds=time.perf_counter() - started)


def _measured() -> Costs:
    products = {"matmul:thin": _bound(synthetic.thin_products()), "matmul:vector": _bound(synthetic.vector_products())}
    kernels = {**_kernels(synthetic.kernels()), **products}
    nothing = Overhead(0.0, 0.0, 0.0)
    row = _row(synthetic.short_rows(), kernels["add"])
    lane = _row(synthetic.short_lanes(), kernels["sum:rows"])
    bare = Costs(
        {},
        kernels,
        _fresh(),
        (),
        _moved(np.copy),
        _moved(aligned),
        row,
        lane,
        _block(),
        nothing,
        nothing,
        nothing,
        nothing,
        LEAST_SPREAD,
    )
    return replace(bare, **_engines(bare))


def block_seconds(call: TimedCall, count: int) -> float:
    """Seconds per call, on the thread's own clock: it stands still while others have the core."""
    return time_block(call, count, time.thread_time_ns)


def least(call: TimedCall, seconds: float = BLOCK_SECONDS) -> float:
    """The seconds of a call: the least of some blocks of calls, each of about `seconds`."""
    call()
    count = max(1, int(seconds / max(block_seconds(call, 1), 1e-8)))
    return min(block_seconds(call, count) for _ in range(BLOCKS))


def _kernels(graphs: Iterable[Graph]) -> dict[str, Kernel]:
    """A curve for each kernel in some graphs.

    Each amount of work is timed in every pass, and the least counts: passes are seconds apart, so what disturbs one of
    them does not disturb them all.
    """
    nodes: dict[tuple[str, float], Node] = {}
    for node in (node for graph in graphs for node in graph.calls):
        nodes.setdefault((work.key(node), work.amount(node)), node)
    found: dict[str, dict[float, float]] = {}
    wrapped: dict[str, float] = {}
    for _ in range(PASSES):
        for (name, amount), node in nodes.items():
            _measure_kernel(node, amount, found.setdefault(name, {}), wrapped)
    return {name: Kernel(_curve(points), wrapped[name]) for name, points in found.items() if points}


def _measure_kernel(node: Node, amount: float, points: dict[float, float], wrapped: dict[str, float]) -> None:
    """Time one amount of work of a kernel, and for the least amount what the op's own call takes more."""
    if _is_linear(points, amount) or (seconds := timed(node)) is None:
        return
    points[amount] = min(seconds, points.get(amount, inf))
    if amount == min(points):
        name = work.key(node)
        wrapped[name] = min(least(_own_call(node)) - seconds, wrapped.get(name, inf))


def _is_linear(points: Mapping[float, float], amount: float) -> bool:
    """Whether more work of a kernel that computes much for each element would only take as much longer."""
    most = max((one for one in points if one < amount), default=0.0)
    return most >= LARGE and points[most] / most > DEAR


def timed(node: Node) -> float | None:
    """The seconds of a kernel as compiled code calls it, with a buffer; None where it takes no such values."""
    try:
        call = _own_call(node)
        given = call()
        return least(call if node.op.view else _compiled_call(node, aligned(given)))
    except (GraphError, TypeError, ValueError, IndexError):
        return None


def _own_call(node: Node) -> TimedCall:
    arrays = [_array(source.spec) for source in node.inputs]
    return partial(node.op.kernel, *arrays, **node.attrs)


def _compiled_call(node: Node, out: Any) -> TimedCall:
    """A function of the very expression that generated code has for the node."""
    arrays = {f"x{i}": _array(source.spec) for i, source in enumerate(node.inputs)}
    attrs: dict[str, Any] = {}

    def named(key: str) -> str:
        attrs[f"a_{key}"] = None if key == "None" else kernel_calls.attribute(node, key)
        return f"a_{key}"

    expression = kernel_calls.call(node, "kernel", list(arrays), "out", named)
    given = {"kernel": kernel_calls.kernel(node, True), "out": out, **arrays, **attrs}
    source = f"lambda {', '.join(f'{name}={name}' for name in given)}: {expression}"
    made: TimedCall = eval(source, {**kernel_calls.NAMES, **given})  # noqa: S307  (made of names of our own)
    return made


def _fresh() -> Curve:
    """What a new array costs, held as long as a tape holds it, beside writing into one that is there; by its bytes."""
    points = {}
    for size in synthetic.SIZES:
        x = np.ones(size, np.float32)
        out, count = np.empty_like(x), max(1, min(HELD // x.nbytes, 32))
        held: list[Any] = []
        taken = []
        for _ in range(BLOCKS):
            taken.append(
                (block_seconds(partial(np.negative, x, out), count), _block_of(partial(np.negative, x), count, held))
            )
            held.clear()
        there, new = (min(seconds) for seconds in zip(*taken, strict=True))
        points[float(x.nbytes)] = max(0.0, new - there)
    return _curve(points)


def _block_of(call: TimedCall, count: int, held: list[Any]) -> float:
    """Seconds per call of a block whose results are held."""
    start = time.thread_time_ns()
    for _ in range(count):
        held.append(call())  # noqa: PERF401  (a plain loop, as in `time_block`)
    return (time.thread_time_ns() - start) / count / 1e9


def _moved(made: Callable[[Any], Any]) -> Curve:
    """What a byte takes that a sum of two arrays reads or writes, by all that is touched in turn.

    `made` gives an array like one that lies where the engine would have it.
    """
    points = {}
    for total in synthetic.TOUCHED:
        arrays = [made(np.ones(synthetic.PIECE, np.float32)) for _ in range(total // (4 * synthetic.PIECE))]
        triples = list(zip(arrays[::3], arrays[1::3], arrays[2::3], strict=False))

        def call(triples: list[Any] = triples) -> None:
            for x, y, out in triples:
                np.add(x, y, out)

        points[float(total)] = least(call) / (12 * synthetic.PIECE * len(triples))
    return _curve(points)


def aligned(array: Any) -> Any:
    """The same values where a compiled plan has its buffers; NumPy's own arrays start within a cache line."""
    memory = np.empty(array.nbytes + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    found = np.ndarray(array.shape, array.dtype, memory, start)
    found[...] = array
    return found


def _bound(products: Iterable[tuple[float, Graph]]) -> Kernel:
    """A curve of products that are bound by the bytes of a matrix, by its elements."""
    points = {}
    for elements, graph in products:
        found = timed(next(graph.calls))
        if found is not None:
            points[float(elements)] = found
    return Kernel(_curve(points))


def _row(node: Node, kernel: Kernel) -> float:
    """What it costs to start the innermost loop of a kernel again, from one whose rows are short."""
    found = timed(node)
    return max(0.0, ((found or 0.0) - kernel.out.at(work.amount(node))) / work.rows(node))


def _block() -> float:
    """What a kernel call in a block costs beside its kernel: a view of some rows."""
    x, rows = np.ones((64, 4), np.float32), slice(8, 16)
    return least(lambda: x[rows])


def _engines(bare: Costs) -> dict[str, Any]:
    """The overheads of dynamic, of dynamic without gradients, of static, and of compilation."""
    rows: dict[str, list[tuple[list[float], float]]] = {name: [] for name in ENGINES}
    for program in synthetic.tiny():
        for argnum, engines in ((0, ("dynamic", "static", "compile")), (None, ("plain", "static"))):
            seconds = _times(program, argnum)  # first: nothing of the program has been traced yet
            found = structure(program.f, (program.params, *program.inputs), argnum)
            explained = _explained(found, bare)
            for name in engines:
                kernels, counts = explained[name]
                rows[name].append((counts, max(seconds[name] - kernels, 0.05 * seconds[name])))
    return {name: Overhead(*fitting.prices(rows[name])) for name in ENGINES}


def _explained(found: Structure, bare: Costs) -> dict[str, tuple[float, list[float]]]:
    """For each engine the seconds of kernels in a step, and how often what else there is comes up."""
    dynamic_ = work.dynamic_parts(found.dynamic, bare, bare.dynamic)
    assert found.static is not None  # noqa: S101  (synthetic programs can be traced)
    static_ = work.static_parts(found.static, bare)
    arrays = float(len(found.dynamic.inputs) + len(found.dynamic.outputs))
    others = sum(node.op.family != "elementwise" for node, _ in work.calls(found.dynamic, 1))
    ops = [1.0, arrays, float(dynamic_.count), float(others)]
    return {
        "dynamic": (dynamic_.total, ops),
        "plain": (dynamic_.total, ops),
        "static": (static_.total, [1.0, arrays, float(static_.count)]),
        "compile": (0.0, [1.0, 0.0, float(len(found.dynamic))]),
    }


def _times(program: synthetic.Synthetic, argnum: int | None) -> dict[str, float]:
    args = (program.params, *program.inputs)
    step = transformed(dynamic, program.f, argnum)
    wanted = transformed(static, program.f, argnum)
    started = time.thread_time()
    executable = static.compile(wanted, *args)
    compiled = time.thread_time() - started
    taken = least(lambda: step(*args), 1e-3)
    return {"dynamic": taken, "plain": taken, "static": least(lambda: executable(*args), 1e-3), "compile": compiled}


def spread(costs: Costs, larger: Sequence[Mapping[str, float]]) -> float:
    """How far predicted ratios of the engines are from those of `larger`, to which nothing was fitted.

    The root of the mean square of their logarithms.
    """
    off = []
    for program, seconds in zip(synthetic.larger(), larger, strict=True):
        predicted = structure(program.f, (program.params, *program.inputs), 0).predicted(costs)
        assert predicted.static is not None  # noqa: S101  (synthetic programs can be traced)
        ratio = predicted.static.total / predicted.dynamic.total
        off.append(log(ratio * seconds["dynamic"] / seconds["static"]))
    return sqrt(fmean(one * one for one in off))


def _curve(points: Mapping[float, float]) -> Curve:
    return Curve(tuple(sorted(points.items()))).rising()


def _array(spec: Any) -> Any:
    """Values of a spec: numbers between 0.1 and 0.9, integers and indices 0. Raises TypeError for no tensor."""
    if type(spec) is not TensorSpec:
        raise TypeError(f"no values of {spec}")
    if spec.dtype.kind == "f":
        return aligned(np.random.default_rng(0).uniform(0.1, 0.9, spec.shape).astype(spec.dtype))
    return aligned(np.zeros(spec.shape, spec.dtype))
