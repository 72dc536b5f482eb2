"""Memory of one mode, in a process of its own: what a step adds, what is held between steps, and where.

peak             bytes of NumPy data a steady step reaches above `held` (tracemalloc's NumPy domain); of a
                 stream, its largest step
held             bytes of NumPy data the mode keeps between steps: arena, constants, every cached shape
resident_growth  how far the process's resident peak rises from before the build to after steady steps
kept             bytes of Python and NumPy data that each further epoch leaves behind (a leak); the median over
                 epochs, so that a cache that grows once does not count

The classes add up: `gradients + saved + workspace = peak`; `plan + caches` is `held` and the Python objects
of cached shapes. `structure` is the Python objects of one graph or tape; `parameters` are the same arrays for
every mode. Buffers that a static graph saves for its backward pass lie in its arena, so they are in `plan`; large
gradients whose memory it keeps, to write it again, are in `caches`.

tracemalloc keeps one peak for all domains, so Python objects would be in it. NumPy reports its buffers to
tracemalloc itself, without allocator hooks. So `numpy_memory` removes the hooks that `tracemalloc.start` puts around
Python's own allocators, and only NumPy's bytes are counted.
"""

from __future__ import annotations

import ctypes
import gc
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import dynamic
from compare import engines, workloads
from compare.engines.graphduel.steps import tensor_of
from compare.engines.process import resident
from compare.engines.step import Step
from compare.errors import describe_error
from compare.instruments import parity
from compare.records.cells import Memory, MemoryRow
from compare.records.job import Job
from compare.workloads.base import Case
from graphs import tree
from static.memory import begin_at

WARM_EPOCHS = 2
LEAK_EPOCHS = 3
Build = Callable[[str, Case], Step]


def measure(job: Job) -> Memory:
    """Return the memory record of a job's modes; give one mode per process, or resident growth means little."""
    if job.thin:
        return measure_together(job)
    case = workloads.load(job.source).case(str(job.size))
    return Memory(**job.head, modes={mode: measure_mode(mode, case) for mode in job.modes})


def measure_together(job: Job) -> Memory:
    """Return the memory record of all modes in this process, each compiled once, checked and then counted.

    As its times are, it is of `job.thin` examples of the stream.
    """
    workload = workloads.load(job.source)
    case = parity.case_of(job, workload)
    expected = parity.expectations(case)
    for each in expected:  # fills the standard's cached arrays before bytes are counted
        each.reference.less(parity.split_state(case, each.dynamic))

    def build(mode: str, case: Case) -> Step:
        step = engines.step(mode, case)
        row = parity.check_step(step, expected)
        if row.status != "ok":
            raise WrongError(row.reason)
        return step

    rows = {mode: _row(mode, case, build) for mode in parity.modes_of(job, workload)}
    return Memory(**job.head, modes=rows, checked=True)


class WrongError(Exception):
    """A mode gives a wrong result."""


def _row(mode: str, case: Case, build: Build) -> MemoryRow:
    try:
        row = measure_mode(mode, case, build)
    except WrongError as error:
        return MemoryRow("disagree", str(error))
    except Exception as error:  # noqa: BLE001  (as at the gate: whatever a mode raises is its result)
        return MemoryRow(parity.status_of(mode, error), describe_error(error))
    row.resident_growth = 0  # means nothing in a process that has held all this before
    return row


def measure_mode(mode: str, case: Case, build: Build | None = None) -> MemoryRow:
    """Return the memory that one mode of a case holds and reaches; `build` makes its step (`engines.step`)."""
    begin_at(0)  # what this process timed before may have moved its arenas
    with numpy_memory():
        step, growth = _warm_step(mode, case, build or engines.step)
        gc.collect()
        held, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        step.epoch()
        peak = tracemalloc.get_traced_memory()[1] - held
    longest = max(range(len(case.lengths)), key=case.lengths.__getitem__)
    _, gradients = step(*step.examples[longest])
    classes, nodes = _classes(step, case, longest, peak, held, nbytes_of(gradients))
    kept = bytes_left_by_epoch(step)
    step.close()
    return MemoryRow("ok", None, peak, held, growth, kept, classes, nodes)


def warm_peak(step: Step) -> tuple[Any, int]:
    """Return the result of a warm call on the first example, and its peak in bytes, with bytes held before it.

    Garbage in cycles of earlier calls is collected first. To be called inside `numpy_memory`.
    """
    for _ in range(WARM_EPOCHS):
        step(*step.examples[0])
    gc.collect()
    tracemalloc.reset_peak()
    result = step(*step.examples[0])
    return result, tracemalloc.get_traced_memory()[1]


def bytes_left_by_epoch(step: Step) -> int:
    """Return the median of the bytes, of Python and NumPy, that an epoch leaves behind."""
    readings = list[int]()
    tracemalloc.start()
    try:
        while len(readings) <= LEAK_EPOCHS and not _has_median(readings):
            step.epoch()
            gc.collect()
            readings.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    return round(median(after - before for before, after in pairwise(readings)))


def _has_median(readings: list[int]) -> bool:
    """Return whether so many epochs have left the same that the rest cannot change the median."""
    left = Counter(after - before for before, after in pairwise(readings))
    return max(left.values(), default=0) > LEAK_EPOCHS // 2


def resident_growth(mode: str, case: Case) -> int:
    """Return how far building a mode and running steady steps raise the process's resident peak, in bytes."""
    step, growth = _warm_step(mode, case, engines.step)
    step.close()
    return growth


def _warm_step(mode: str, case: Case, build: Build) -> tuple[Step, int]:
    """Return the steady step of a mode, and how far it raised the process's resident peak, in bytes."""
    gc.collect()
    # Linux resets the resident peak; elsewhere it counts from the start of the process.
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    before = resident()
    step = build(mode, case)
    for _ in range(WARM_EPOCHS):
        step.epoch()
    return step, max(0, resident_peak() - before)


def resident_peak() -> int:
    """Return the resident peak in bytes, or the resident bytes now where the system keeps no peak."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    except OSError:
        lines = []
    peaks = [int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")]
    return peaks[0] if peaks else resident()


def _classes(step: Step, case: Case, index: int, peak: int, held: int, gradients: int) -> tuple[dict[str, int], int]:
    executables = step.executables()
    if executables:
        nodes, structure, plan, others = _compiled_sizes(executables, held)
        gradients = min(peak, max(0, gradients - max(e.result_bytes for e in executables)))
        saved, caches = 0, held - plan + others
    else:
        nodes, structure, saved = tape_stats(case, index)
        saved, plan, caches = min(saved, peak - gradients), 0, held
    classes = {
        "parameters": nbytes_of(case.params),
        "gradients": gradients,
        "structure": structure,
        "plan": plan,
        "saved": saved,
        "workspace": max(0, peak - gradients - saved),
        "caches": caches,
    }
    return classes, nodes


def _compiled_sizes(executables: list[Any], held: int) -> tuple[int, int, int, int]:
    """Return nodes, structure and plan bytes of the largest executable, and structure bytes of all others."""
    reports = sorted((e.report() for e in executables), key=lambda r: int(r.structure_bytes))
    largest = reports[-1]
    arena = largest.plan.peak if largest.plan else 0  # for the sizes run last; arenas of other sizes are cached
    plan = min(held, int(arena) + int(largest.constant_bytes))
    others = sum(int(r.structure_bytes) for r in reports[:-1])
    return int(largest.nodes), int(largest.structure_bytes), plan, others


def tape_stats(case: Case, index: int) -> tuple[int, int, int]:
    """Return nodes, structure bytes and saved bytes of the tape of one forward run; zeros without a tape."""
    if case.argnum is None:
        return 0, 0, 0
    arguments: Any = (case.params, *case.examples[index])
    args: list[Any] = list(tree.tree_map(tensor_of, arguments))
    args[case.argnum] = tree.tree_map(lambda a: dynamic.tensor(a, requires_grad=True), arguments[case.argnum])
    nodes, structure, saved = dynamic.tape_stats(dynamic.as_tensor(case.loss(*args)))
    return int(nodes), int(structure), int(saved)


def nbytes_of(container: Any) -> int:
    """Return the bytes of all arrays in a container."""
    return sum(leaf.nbytes for leaf in tree.leaves(container) if isinstance(leaf, (np.ndarray, np.generic)))


_DOMAINS = (0, 1, 2)  # PYMEM_DOMAIN_RAW, PYMEM_DOMAIN_MEM, PYMEM_DOMAIN_OBJ


class _Allocator(ctypes.Structure):
    """The C struct PyMemAllocatorEx: a context and four functions."""

    _fields_ = [(name, ctypes.c_void_p) for name in ("context", "malloc", "calloc", "realloc", "free")]


@contextmanager
def numpy_memory() -> Iterator[None]:
    """A context in which `tracemalloc.get_traced_memory` counts only NumPy buffers that are allocated inside.

    Raises RuntimeError when tracemalloc is running already.
    """
    if tracemalloc.is_tracing():
        raise RuntimeError("tracemalloc is in use already; stop it first")
    gc.collect()
    allocators = [_Allocator() for _ in _DOMAINS]
    for domain, allocator in zip(_DOMAINS, allocators, strict=True):
        ctypes.pythonapi.PyMem_GetAllocator(ctypes.c_int(domain), ctypes.byref(allocator))
    plain = allocators
    tracemalloc.start()
    try:
        _install(plain)
        tracemalloc.clear_traces()
        yield
    finally:
        tracemalloc.stop()


def _install(allocators: list[_Allocator]) -> None:
    for domain, allocator in zip(_DOMAINS, allocators, strict=True):
        ctypes.pythonapi.PyMem_SetAllocator(ctypes.c_int(domain), ctypes.byref(allocator))
