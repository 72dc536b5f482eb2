"""Workers: a process for each mode of a row, all on the same core or cores, which run a block of steps when asked.

A worker first sends the result of a step, so that what disagrees is never timed. Blocks are asked for one at a time,
in an order of the caller's choice, so that a slow minute of the machine meets all modes.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from getpass import getuser
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from tempfile import gettempdir
from typing import Any, NamedTuple

from compare.errors import WorkerError, describe_error
from compare.instruments.rounds import calibrate, time_block, without_collection
from compare.run import environment

CLOCKS: dict[str, Callable[[], int]] = {"wall": time.perf_counter_ns, "cpu": time.process_time_ns}
PIECE = 0.001  # seconds that a piece of a block takes at least: far more than the clock's resolution


PROCESSORS = ("this", "avx2")


class Settings(NamedTuple):
    """How blocks are timed: `clock` is a name in CLOCKS, `block` the seconds that a block takes at least.

    `processor` is a name in PROCESSORS: with "avx2" no library of a mode uses wider vectors than those of AVX2. Each
    mode may use so many `threads`, on as many cores.
    """

    clock: str = "wall"
    block: float = 0.03
    processor: str = "this"
    threads: int = 1


HELD = (
    "GRAPHDUEL_NATIVE_TARGET", "NPY_DISABLE_CPU_FEATURES", "OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "XLA_FLAGS",
    "ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA",
)  # fmt: skip
"""Variables that hold our native code, NumPy, OpenBLAS, XLA, PyTorch and oneDNN to a processor, or say its caches."""


def switches(processor: str) -> dict[str, str | None]:
    """The variables by which all libraries keep to a processor; on this one each finds out for itself, and has none.

    XLA multiplies by YNNPACK, which asks the processor and no variable, so that it is left out where AVX2 is the most.
    """
    unset = dict.fromkeys(HELD)
    if processor == "this":
        return unset
    core: Any = importlib.import_module("numpy._core._multiarray_umath")
    here = [name for name in core.__cpu_dispatch__ if core.__cpu_features__[name]]
    wider = [name for name in here if "AVX512" in name or name == "X86_V4"]
    apart = Path(gettempdir()) / f"torchinductor_{getuser()}_avx2"  # with the common cache results were wrong
    return unset | {
        "GRAPHDUEL_NATIVE_TARGET": "x86-64-v3",
        "NPY_DISABLE_CPU_FEATURES": " ".join(wider),
        "OPENBLAS_CORETYPE": "Haswell",
        "XLA_FLAGS": "--xla_cpu_max_isa=AVX2 --xla_cpu_experimental_ynn_fusion_type=",
        "ATEN_CPU_CAPABILITY": "avx2",
        "TORCHINDUCTOR_CACHE_DIR": str(apart),
        "ONEDNN_MAX_CPU_ISA": "AVX2",
    }


class Worker:
    """A process with one mode of a row, built when this is made; `result` is what its step gave."""

    def __init__(self, row: str, mode: str, settings: Settings) -> None:
        self.mode = mode
        spawn = multiprocessing.get_context("spawn")  # nothing of this process, not even its imports
        self._pipe, theirs = spawn.Pipe()
        self._process = spawn.Process(target=_serve, args=(theirs, row, mode, settings))
        self._process.start()
        theirs.close()

    def result(self) -> Any:
        """The loss and gradients of a step. Raises WorkerError when the mode cannot be built or run."""
        return self._received()

    def block(self) -> float:
        """The seconds a step takes, the median over the pieces of a block."""
        self._pipe.send(True)
        return float(self._received())

    def close(self) -> None:
        """End the process."""
        self._pipe.close()
        self._process.terminate()
        self._process.join()

    def _received(self) -> Any:
        try:
            answer = self._pipe.recv()
        except EOFError:
            raise WorkerError("the worker died") from None
        if isinstance(answer, str):
            raise WorkerError(answer)
        return answer


def alone(function: Callable[..., Any], *args: Any) -> Any:
    """`function(*args)` in a fresh process on one core. Raises what it raises."""
    spawn = multiprocessing.get_context("spawn")
    with told_threads(1), ProcessPoolExecutor(1, spawn, environment.pin) as process:
        return process.submit(function, *args).result()


@contextmanager
def working(row: str, modes: Sequence[str], settings: Settings) -> Iterator[list[Worker]]:
    """A worker for each mode of a row, ended with the block."""
    with told_threads(settings.threads, switches(settings.processor)):
        workers = [Worker(row, mode, settings) for mode in modes]
    try:
        yield workers
    finally:
        for worker in workers:
            worker.close()


@contextmanager
def told_threads(count: int, variables: Mapping[str, str | None] | None = None) -> Iterator[None]:
    """Processes started inside find so many threads in the variables of BLAS and of OpenMP, and these variables.

    A variable that is None is not there.
    """
    before = dict(os.environ)
    for name, value in (dict.fromkeys(environment.THREAD_VARIABLES, str(count)) | dict(variables or {})).items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _serve(pipe: Connection, row: str, mode: str, settings: Settings) -> None:
    """In the worker: build the mode, send its result, then time a block for each message, until the pipe closes."""
    environment.pin(threads=settings.threads)  # before a framework counts the cores
    try:
        _blocks(pipe, row, mode, settings)
    except EOFError:
        return
    except Exception as error:  # noqa: BLE001  (whatever a mode raises is what the table says of it)
        pipe.send(describe_error(error))


def _blocks(pipe: Connection, row: str, mode: str, settings: Settings) -> None:
    from benchmarks.modes import MODES
    from benchmarks.programs import ROWS

    clock = CLOCKS[settings.clock]
    step, arrays, context = MODES[mode](ROWS[row]())
    with context:
        step()  # compiles what is compiled when first run
        pipe.send(arrays(step()))
        pipe.recv()
        count, _ = calibrate(step, PIECE, clock)[-1]
        while True:
            with without_collection():
                pipe.send(_block(step, count, clock, settings.block))
            pipe.recv()


def _block(step: Callable[[], Any], count: int, clock: Callable[[], int], seconds: float) -> float:
    """The median over pieces of `count` steps: an interruption lands in a few of them."""
    pieces: list[float] = []
    end = clock() + int(seconds * 1e9)
    while not pieces or clock() < end:
        pieces.append(time_block(step, count, clock))
    return median(pieces)
