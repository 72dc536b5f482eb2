"""The adapter of PyTorch: eager, compiled by Dynamo and Inductor, and exported; on the CPU and on CUDA."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from compare.engines.base import CallState, Devices, Engine, Errors, Library, Numbers, Ops, Process
from compare.engines.containers import to_containers
from compare.engines.framework import Framework
from compare.engines.library import compose
from compare.engines.nudge import FloatChange
from compare.engines.process import ByteCounter, Switch
from compare.engines.reach import Kinds, codes_of
from compare.engines.step import (
    Context,
    Function,
    GraphProgram,
    LineOp,
    Observations,
    Step,
    TrainingFunction,
    Turns,
    ValueStep,
    inside,
)
from compare.engines.torch import dispatcher, dynamo, graph_files, modes, spans, state
from compare.engines.torch.dynamo import MANY
from compare.engines.torch.functions import IDIOMS, control, functions
from compare.engines.torch.state import state_reader
from compare.engines.torch.step import TorchStep, holders_in, is_whole, map_leaves, trains
from compare.errors import UnsupportedError
from compare.records.own import CallPartsRow
from compare.records.record import Device

COMPILE_THREADS = "TORCHINDUCTOR_COMPILE_THREADS"
"""The variable of the user's environment that says on how many threads Inductor compiles."""


class Torch(Framework):
    """The adapter of PyTorch. Gradients are those that `backward` leaves in the parameters."""

    name, title, module, package = "torch", "PyTorch", "torch", "torch>=2.6"
    shares, keeps_effects, tells_lines, has_events = False, True, True, True
    traced_into = dynamo.TRACE
    caches = ("torch/_inductor/runtime/cache_dir_utils.py", "torch/_dynamo/convert_frame.py")
    internals = ("torch._dynamo", "torch._inductor", "torch._functorch", "torch._C", "torch._ops", "torch.fx")
    written = modes.AS_WRITTEN
    modes = modes.MODES
    idioms = IDIOMS

    def __init__(self) -> None:
        super().__init__()
        self.process = TorchProcess(self)
        self.devices = TorchDevices(self)
        self.compiler = modes.TorchCompiler(self)
        self.ops = TorchOps(self)
        self.state = TorchState(self)
        self.numbers = TorchNumbers(self)
        self.library = TorchLibrary(self)
        self.errors = TorchErrors(self)
        self.words = modes.TorchWords(self)
        self.trials = modes.TorchTrials(self)

    @staticmethod
    def environment(cache: Path, device: Device = "cpu", threads: int = 1) -> dict[str, str]:
        """Return variables for the threads, and for Inductor's caches in the folder.

        Inductor compiles on as many threads, as by default on so many cores, unless the user's environment says how
        many. Where Triton is installed, it would then start processes that compile for a GPU; they would run beside the
        first blocks of a step on the CPU.
        """
        counts = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), str(threads))
        compiling = {COMPILE_THREADS: os.environ.get(COMPILE_THREADS) or str(threads)}
        ahead = {"TORCH_WARM_POOL": "0"} if device == "cpu" else {}
        return {**counts, **compiling, **ahead, "TORCHINDUCTOR_CACHE_DIR": str(cache / "inductor")}

    @property
    def said_of_compiling(self) -> str:
        """Return on how many threads the user's environment has Inductor compile; "" where it does not say."""
        asked = os.environ.get(COMPILE_THREADS)
        return f"Inductor compiles on {asked} threads, as {COMPILE_THREADS} says" if asked else ""

    def start(self, seed: int, *, doubles: bool | None = False, device: Device = "cpu", threads: int = 1) -> None:
        """Prepare this process: its threads and the seed; our own workloads may recompile for every shape."""
        import torch

        super().start(seed, device=device, threads=threads)
        torch.set_num_threads(threads)
        torch.manual_seed(seed)
        if doubles is not None:
            torch.set_default_dtype(torch.float64 if doubles else torch.float32)
            for name, many in MANY.items():  # so that a workload may compile for each of its shapes
                setattr(torch._dynamo.config, name, many)

    def functions(self) -> dict[str, Function]:
        """Return PyTorch's functions under the names of `graphs`."""
        return compose(functions(self.device))

    def arrays(self, tree: Any) -> Any:
        """Return a container with tensors that share the arrays' memory, or lie on the GPU, as modules then do."""
        import torch

        return self.devices.placed(map_leaves(lambda x: torch.from_numpy(x) if isinstance(x, np.ndarray) else x, tree))

    def numpy(self, tree: Any) -> Any:
        """Return a container with NumPy arrays, which share memory with tensors on the CPU."""
        import torch

        return to_containers(tree, lambda leaf: state.array(leaf) if isinstance(leaf, torch.Tensor) else None)

    def build(self, mode: str, loss: Function, argnum: int | None) -> Function:
        """Return a step of the loss as the mode runs it, with gradients in the leaves of one argument."""
        return self._build((), mode, loss, argnum)

    def build_over(self, calls: Sequence[tuple[Any, ...]]) -> Callable[[str, Function, int | None], Function]:
        """Return `build` for a loss whose calls are these."""
        return partial(self._build, calls)

    def _build(self, calls: Sequence[tuple[Any, ...]], mode: str, loss: Function, argnum: int | None) -> Function:
        import torch

        if argnum is not None:
            modes.check_gradients(self.traits(mode))
        run, within = run_of(self, mode, loss, calls)
        if argnum is None:
            return ValueStep(run, inside(within, torch.no_grad))
        return TorchStep(run, argnum, loss, within)

    def observed(self, step: Function) -> Observations:
        """Return Dynamo's records of the step."""
        return dynamo.dynamo_observations(codes_of(getattr(step, "run", step)))


def run_of(
    engine: Engine, mode: str, function: Function, calls: Sequence[tuple[Any, ...]]
) -> tuple[Function, Context]:  # fmt: skip
    """Return a function as a mode runs it, and the context around its runs."""
    change, within = modes.prepare(engine, mode, calls)
    return function if change is None else change(function), within


class TorchProcess(Process):
    """The process role of PyTorch."""

    listen = staticmethod(dynamo.listen)
    traced = staticmethod(dynamo.trace_events)

    def settings(self, mode: str) -> Context:
        """Return the context with a mode's settings, its stance and its backward pass."""
        return modes.context_of(self.engine.traits(mode))

    def switches(self) -> Sequence[Switch]:
        """Return the switches of PyTorch: threads, dtype, random states, gradients, and Dynamo's recompile limits."""
        import torch
        import torch._dynamo
        from torch._dynamo import utils

        pairs = [
            (torch.get_num_threads, torch.set_num_threads),
            (torch.get_default_dtype, torch.set_default_dtype),
            (torch.get_rng_state, torch.set_rng_state),
            (torch.is_grad_enabled, torch.set_grad_enabled),
            (torch.is_anomaly_enabled, torch.set_anomaly_enabled),
            (torch.get_float32_matmul_precision, torch.set_float32_matmul_precision),
            (torch.get_deterministic_debug_mode, torch.set_deterministic_debug_mode),
            (lambda: utils._compilation_metrics.maxlen, utils.set_compilation_metrics_limit),
        ]
        if torch.cuda.is_initialized():
            pairs.append((torch.cuda.get_rng_state_all, torch.cuda.set_rng_state_all))
        config = torch._dynamo.config
        pairs += [(partial(getattr, config, name), partial(setattr, config, name)) for name in MANY]
        return [Switch(read, write) for read, write in pairs]

    @contextmanager
    def visit(self, seed: int, threads: int = 1) -> Iterator[None]:
        """Prepare a process of the user's, with these threads: of one, the seconds of a core are measured."""
        import torch

        with super().visit(seed, threads):
            torch.set_num_threads(threads)
            yield

    def reset(self, seed: int) -> None:
        """Seed every generator."""
        import torch

        torch.manual_seed(seed)

    def generator(self) -> bytes:
        """Return the state of the CPU's generator."""
        import torch

        return bytes(torch.get_rng_state().numpy())


class TorchDevices(Devices):
    """The devices role of PyTorch."""

    def gpu(self) -> str | None:
        """Return the name of the first CUDA device; None where there is none."""
        import torch

        return str(torch.cuda.get_device_name(0)) if torch.cuda.is_available() else None

    def clock(self) -> Callable[[], int]:
        """Return a clock in nanoseconds by CUDA events."""
        import torch

        return EventClock(lambda: torch.cuda.Event(enable_timing=True))

    @property
    def counter(self) -> ByteCounter:
        """Return the counter of the GPU's allocator on a GPU, of malloc otherwise."""
        import torch

        return allocator(torch.cuda) if self.engine.device == "cuda" else super().counter

    def placed(self, tree: Any) -> Any:
        """Return arguments with tensors and modules on the device; NumPy arrays stay, as a step may convert them."""
        import torch

        kinds = (torch.Tensor, torch.nn.Module)
        return map_leaves(lambda x: x.to(self.engine.device) if isinstance(x, kinds) or is_whole(x) else x, tree)

    @property
    def waits(self) -> Function | None:
        """Return a function that waits for the GPU; None on the CPU."""
        import torch

        return (lambda _: torch.cuda.synchronize()) if self.engine.device == "cuda" else None


class TorchOps(Ops):
    """The ops role of PyTorch."""

    shows_graphs = True
    outside = staticmethod(dispatcher.outside)
    ran = staticmethod(dispatcher.ran)
    dtypes = staticmethod(dispatcher.dtypes)

    def lines(self, step: Function, call: tuple[Any, ...]) -> list[LineOp]:
        """Return the ops that the dispatcher sees in a call, each waited for, with the user's lines."""
        return dispatcher.ops(step, call, self.engine.wait)

    def parts(
        self, mode: str, make: Callable[[], Step], eager: Step, index: int, turns: Callable[[Step], Turns]
    ) -> CallPartsRow | None:
        """Return the parts of a call by clocks in compiled code; None on a GPU, which computes beside these clocks."""
        if self.engine.device != "cpu":
            return None
        whole = modes.compiles_whole(self.engine.traits(mode))
        return spans.call_parts(make, eager, index, turns, whole=whole)

    def graphs(
        self, mode: str, make: Callable[[str], Step], index: int, turns: Callable[[Step], Turns]
    ) -> Sequence[GraphProgram]:
        """Return the graphs that Dynamo captures of a call, each as a program."""
        traits = self.engine.traits(mode)
        if traits.compiler != modes.COMPILE.compiler or self.engine.device != "cpu":
            raise UnsupportedError(
                f"{traits.compiler or traits.name} on {self.engine.device} has no graphs of Dynamo's"
            )
        return graph_files.captured_programs(traits, lambda word: make(self.engine.words.full_name(word)), index, turns)


class TorchState(CallState):
    """The state role of PyTorch."""

    reader = staticmethod(state_reader)
    reached = staticmethod(holders_in)
    kept = staticmethod(state.snapshot)

    def training(
        self, function: Function, calls: Sequence[tuple[Any, ...]], changed: Callable[[], Sequence[Any]]
    ) -> TrainingFunction | None:
        """Return a training step where a call shows that the function differentiates by itself; else None."""
        with dynamo.eager_stance(self.engine):
            if not trains(function, calls[0], changed):
                return None

        def run(mode: str) -> tuple[Function, Context]:
            modes.check_gradients(self.engine.traits(mode))
            return run_of(self.engine, mode, function, calls)

        return TrainingFunction(run)

    def kinds(self) -> Kinds:
        """Return PyTorch's classes of tensors and modules."""
        import torch

        return Kinds(torch.Tensor, torch.nn.Module)


class TorchNumbers(Numbers):
    """The numbers role of PyTorch."""

    draws = staticmethod(dispatcher.draws)
    noting = staticmethod(dispatcher.noting)
    giving = staticmethod(dispatcher.giving)
    round_results = staticmethod(dispatcher.round_results)

    def changed(self, tree: Any, change: FloatChange) -> Any:
        """Return the arguments unchanged: `meanwhile` changes their data in place."""
        return tree

    @contextmanager
    def meanwhile(self, holders: Sequence[Any], change: FloatChange) -> Iterator[None]:
        """A context in which tensors, also of optimizers, have changed data; for float64 it is the default dtype."""
        import torch

        before = torch.get_default_dtype()
        if change.seed is None:
            torch.set_default_dtype(torch.float64)
        function = state.double if change.seed is None else state.moving(change.seed, change.unit)
        try:
            with state.meanwhile(holders, function):
                yield
        finally:
            torch.set_default_dtype(before)

    @contextmanager
    def repeatable(self) -> Iterator[None]:
        """A context in which Inductor draws the random numbers that eager draws."""
        import torch._inductor.config as inductor

        with inductor.patch(fallback_random=True):
            yield


class TorchLibrary(Library):
    """The library role of PyTorch."""

    control = staticmethod(control)


class TorchErrors(Errors):
    """The errors role of PyTorch."""

    def said(self, error: BaseException) -> str | None:
        """Return Dynamo's explanation of an error of a trace; None for other errors."""
        return dynamo.sentence(error) if self.traced(error) else None

    @contextmanager
    def checked(self) -> Iterator[None]:
        """A context with `torch.autograd.detect_anomaly`, which checks gradients only, not values."""
        import torch

        with torch.autograd.detect_anomaly():
            yield

    def traced(self, error: BaseException) -> bool:
        """Return whether Dynamo or a compiler behind it raised an error, or Dynamo added to it."""
        from torch._dynamo.exc import TorchDynamoException

        return isinstance(error, TorchDynamoException) or "from user code" in str(error)

    def refuses(self, error: BaseException, mode: str = "") -> bool:
        """Return whether Dynamo or export does not support something."""
        from torch._dynamo.exc import TorchDynamoException

        refusals = (NotImplementedError, TorchDynamoException)
        return (
            isinstance(error, refusals)
            or any(words in str(error) for words in ("torch.export", "does not currently support"))
            or type(error).__module__.startswith("torch.")
        )


# CUDA -----------------------------------------------------------------------------------------------------------------


class EventClock:
    """A clock in nanoseconds on the GPU: each reading queues an event and waits for it.

    It sums the times between successive events, since one time is a float32 of milliseconds. `event` makes an event, a
    `torch.cuda.Event`, whose `elapsed_time` resolves about half a microsecond.
    """

    def __init__(self, event: Callable[[], Any]) -> None:
        self._event, self._nanoseconds = event, 0
        self._last = self._record_event()

    def __call__(self) -> int:
        """Return the nanoseconds from the clock's start until the GPU has done its queued work."""
        event = self._record_event()
        self._nanoseconds += round(self._last.elapsed_time(event) * 1e6)
        self._last = event
        return self._nanoseconds

    def _record_event(self) -> Any:
        event = self._event()
        event.record()
        event.synchronize()
        return event


def allocator(cuda: Any) -> ByteCounter:
    """Return a counter of the bytes that `torch.cuda`'s allocator gives out, beyond those in use before a call."""

    def live() -> int:
        gc.collect()
        return int(cuda.memory_allocated())

    def peak(call: Callable[[], object]) -> int:
        before = live()
        cuda.reset_peak_memory_stats()
        call()
        cuda.synchronize()
        return int(cuda.max_memory_allocated()) - before

    return ByteCounter("allocator", live, peak)
