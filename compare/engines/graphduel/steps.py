"""The steps of our two engines: a user's function as they run it, and a case under each shape policy and mode."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

import dynamic
import graphs
import static
from compare.engines import OWN, find_engine
from compare.engines.cases import convert_loss, masked_dims, names, traceable_loss
from compare.engines.mode import Mode
from compare.engines.nudge import double, has_floats, rounding_anew, unit_of
from compare.engines.state import Snapshot
from compare.engines.step import Bindable, BoundCall, Compilation, Observations, Step, bind_call
from compare.errors import UnsupportedError
from compare.workloads.base import Case, Example
from graphs import dispatch, promotion, tree
from graphs.blocks import Block, enter
from graphs.errors import GraphError
from static.call import backend
from static.call.jit import Stats
from static.native import pool
from static.trace.tracing import is_traced, static_key

START = "state_of_the_start"
"""The attribute of a function that has its `StartState`, from which each of its calls begins."""
PARTS = "parts_of_a_result"
"""The attribute of a function that returns (value, state); it maps a result to value, gradients and named state."""
WRITTEN = "as_its_user_writes_it"
"""The attribute of a function that makes the step timed in the dynamic engine; it takes `argnum`."""


def transform_step(engine: Any, f: Callable[..., Any], argnum: int | None) -> Callable[..., Any]:
    """Return the function that a step runs: the value of `f` with gradients in `argnum`, or `(output, ())`.

    Each run begins with the state of the start, where the function has one.
    """
    if argnum is not None:
        step = engine.value_and_grad(f, argnum)
    elif engine is dynamic:
        step = DynamicOutput(f)
    else:
        step = functools.wraps(f)(lambda *args: (f(*args), ()))
    start: StartState | None = getattr(f, START, None)
    if start is None:
        return step
    if engine is dynamic:
        return StepFromStart(step, start)

    @functools.wraps(step)
    def trace(*args: Any) -> Any:
        start.begin(is_trace=True)
        return step(*args)

    return trace


class StartState:
    """The state that each of many calls begins with: the changes of one call are undone before the next.

    The changes of the first call are noted; after a trace everything is restored, since it leaves symbols anywhere. The
    numbers of `others` are restored by somebody else.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self.others: Sequence[Any] = ()
        self._restore: Callable[[], None] | None = None
        self._is_left, self._has_run = False, False

    def begin(self, *, is_trace: bool) -> None:
        """Undo the changes of the call before."""
        if self._is_left:
            self._snapshot.restore()
        elif self._restore is not None:
            self._restore()
        elif self._has_run:
            others = set(map(id, self.others))
            changed = [piece for piece in self._snapshot.changed() if id(piece.of) not in others]
            self._restore = self._snapshot.back(changed)
            self._restore()
        self._is_left = is_trace
        self._has_run |= not is_trace


class StepFromStart(Bindable):
    """A step of the dynamic engine; each run begins with the state of the start."""

    def __init__(self, step: Callable[..., Any], start: StartState) -> None:
        self.step, self.start = step, start
        functools.update_wrapper(self, step)

    def bind(self, *args: Any) -> BoundCall:
        """Bind a call of the step; the run first restores the state of the start."""
        call = bind_call(self.step, args)

        def run() -> Any:
            self.start.begin(is_trace=False)
            return call.run()

        return replace(call, run=run)


class DynamicOutput(Bindable):
    """`step(*args) -> (f(...), ())` in the dynamic engine: without a tape, on arrays."""

    def __init__(self, f: Callable[..., Any]) -> None:
        self.function = f
        functools.update_wrapper(self, f)

    def bind(self, *args: Any) -> BoundCall:
        """Bind a call of `f` to tensors that are made from the arguments here."""
        call = partial(self.function, *tree.tree_map(tensor_of, args))

        def array(leaf: Any) -> Any:
            return leaf.numpy(force=True) if isinstance(leaf, dynamic.Tensor) else leaf

        return BoundCall(call, lambda value: (tree.tree_map(array, value), ()), dynamic.no_grad)


def tensor_of(leaf: Any) -> Any:
    """Return a tensor for an array, as `value_and_grad` does, so that operators on data are ops."""
    return dynamic.from_numpy(leaf) if isinstance(leaf, np.ndarray) else leaf


class InDoubles(Block):
    """A context in which an op that meets float64 and narrower floats takes all of them in float64.

    A function with float64 arguments then computes in float64, whatever arrays it closes over, keeps or makes.
    """

    def __enter__(self) -> None:
        hold = self.hold()
        enter(promotion.mixing, hold, True)
        enter(dispatch.detours, hold, _widening)


def _widening(interpreter: dispatch.Interpreter) -> dispatch.Interpreter:
    def run(op: Any, args: Sequence[Any], attrs: dispatch.Attrs) -> Any:
        dtypes = {arg.dtype for arg in args if hasattr(arg, "dtype")}
        if len(dtypes) > 1 and np.dtype(np.float64) in dtypes:
            narrow = [hasattr(arg, "dtype") and arg.dtype.kind == "f" and arg.dtype.itemsize < 8 for arg in args]
            args = [graphs.astype(arg, np.float64) if is_ else arg for arg, is_ in zip(args, narrow, strict=True)]
        return interpreter(op, args, attrs)

    return run


def round_results(seed: int) -> dispatch.observe_kernels:
    """Return a context in which each kernel of the tape, of both passes, rounds its result in another way."""
    move = rounding_anew(seed)

    def move_result(op: Any, arrays: Sequence[Any], attrs: dispatch.Attrs, out: Any) -> None:
        of_its_own = out.flags.writeable and not any(np.may_share_memory(out, each) for each in arrays)
        if not has_floats(out) or not of_its_own or op.effect or op.family == "control":
            return
        wide = None
        if unit_of(out.dtype) > unit_of(np.dtype(np.float64)):
            try:
                wide = np.asarray(op.kernel(*map(double, arrays), **attrs))
            except Exception:  # noqa: BLE001  (a kernel that does not take float64 there tells nothing)
                return
        if wide is None or wide.shape == out.shape:
            np.copyto(out, move(out, wide, unit_of(out.dtype)))

    return dispatch.observe_kernels(move_result)


# Steps of cases -------------------------------------------------------------------------------------------------------


PADDING = ("bucket", "pad")
EXACT = "exact"
NATIVE = "native"
ONNXRUNTIME = "onnxruntime"
STATIC = "static-"


class GraphStep(Step):
    """A step `function(params, *example)`, run by the tape or by a compiled function of the static engine.

    `examples` are the stream in this mode's form, masked where the mode pads; `stats` count compilations.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        params: Any,
        examples: tuple[Example, ...],
        stats: Stats | None = None,
    ) -> None:
        self.function, self.params = function, params
        self.stats = stats or Stats()
        super().__init__(find_engine(OWN), function, examples, (params,))

    @property
    def observed(self) -> Observations:
        """Return one compilation per graph, with its reason and the mean compile time in seconds."""
        return compilations(self.stats)

    def close(self) -> None:
        """Close the step and drop its function."""
        super().close()
        del self.function


def compilations(stats: Stats) -> Observations:
    """Return the compilations that stats count, with their reasons; each gets the mean compile time in seconds."""
    share = stats.compile_seconds / (stats.compiles or 1)
    return Observations([Compilation(each, share) for each in stats.reasons or ["the step was built"] * stats.compiles])


class CompiledStep(GraphStep):
    """A step of one graph, compiled when the step is built, for an input shape that never varies.

    `options` go to the compiler.
    """

    def __init__(self, case: Case, **options: Any) -> None:
        started = time.perf_counter()
        step = transform_step(static, traceable_loss(case), case.argnum)
        executable = static.compile(step, case.params, *case.examples[0], **options)
        stats = Stats(compiles=1, compile_seconds=time.perf_counter() - started)
        super().__init__(executable, case.params, case.examples, stats)

    def executables(self) -> list[Any]:
        """Return the one executable."""
        return [self.function]


class JitStep(GraphStep):
    """A step with one graph per shape or structure, compiled on the first call that needs it, as the policy says.

    `options` are those of `static.jit`.
    """

    function: static.Jitted

    def __init__(self, case: Case, **options: Any) -> None:
        policy = options.get("shapes", "auto")
        padded = policy in PADDING
        if not padded:
            loss = (case.scanned if policy == "symbolic" else None) or traceable_loss(case)
        elif case.masked is None:
            raise UnsupportedError(f"{policy}: the workload has no masked loss: padding would change its result")
        else:
            loss = convert_loss(case.masked, case)
        sizes = set(names(case.dims)) if case.dims else set()
        usual: dict[str, Any] = {
            "limit": len(case.examples),  # the cache at its best: it never has to forget
            "dims": masked_dims(case) if padded else case.dims,
            # several named sizes are padded to the largest so far
            "buckets": (max(case.lengths),) if policy == "pad" and len(sizes) == 1 else None,
            "check": False,  # the parity gate has checked the padding
        }
        jitted = static.jit(transform_step(static, loss, case.argnum), **{**usual, **options})
        examples = tuple(map(case.masked_example, range(len(case.examples)))) if padded else case.examples
        super().__init__(jitted, case.params, examples, jitted.stats)

    def computed(self, lengths: Sequence[int]) -> int:
        """Return the number of elements computed for these lengths, by the padding of one epoch, which is run here."""
        stats = self.stats
        asked, computed = stats.useful, stats.computed
        self.epoch()
        padding = (stats.computed - computed) / (stats.useful - asked) if stats.useful > asked else 1.0
        return round(sum(lengths) * padding)

    def executables(self) -> list[Any]:
        """Return the executables in the cache."""
        return list(self.function.executables.values())


def build(mode: Mode, case: Case) -> GraphStep:
    """Build the training step of a mode of our engines.

    An input that never varies is compiled here; a stream is compiled as it comes. Raises UnsupportedError
    when the policy does not apply to the case, and the engine's own errors where it refuses.
    """
    options = jit_options(mode)
    if not mode.compiler:
        written = getattr(case.loss, WRITTEN, None)
        step = written(case.argnum) if written else transform_step(dynamic, case.loss, case.argnum)
        return GraphStep(step, case.params, case.examples)
    if mode.compiler == ONNXRUNTIME:
        session = SessionFunction(transform_step(static, traceable_loss(case), case.argnum))
        return GraphStep(session, case.params, case.examples, session.stats)
    if mode.converts:
        case = _with_control_flow(case)
    if options.get("backend") == NATIVE:
        return native(case, **{"threads": find_engine(OWN).threads, **options})
    return _compiled_step(case, **options)


def jit_options(mode: Mode) -> dict[str, Any]:
    """Return the options of `static.jit` for a mode; a function is converted before."""
    return {name: value for name, value in mode.options.items() if name != "convert"}


def _compiled_step(case: Case, **options: Any) -> GraphStep:
    """Return the step as one graph where the case does not vary and shapes are exact, else as the policy says."""
    exact = {name: value for name, value in options.items() if name not in ("shapes", "threads", "backend")} == {}
    if exact and options.get("shapes") == EXACT and not case.varies:
        return CompiledStep(case, **{name: value for name, value in options.items() if name != "shapes"})
    return JitStep(case, **options)


def compile_function(mode: Mode, function: Callable[..., Any]) -> Any:
    """Return a function that a mode of the static engine compiles when it is called."""
    return SessionFunction(function) if mode.compiler == ONNXRUNTIME else static.jit(function, **jit_options(mode))


def native(case: Case, **options: Any) -> GraphStep:
    """Return the step as machine code, one graph per shape. Raises UnsupportedError where none can be made."""
    try:
        backend.choose_backend(NATIVE)
    except GraphError as error:
        raise UnsupportedError(str(error)) from None
    return _compiled_step(case, **{"shapes": EXACT, **options, "backend": NATIVE})


def threaded_step(case: Case) -> GraphStep:
    """Return the step as machine code on all cores of this process. Raises UnsupportedError where there is one core."""
    cores = pool.count("all")
    if cores == 1:
        raise UnsupportedError("threads: this process may use one core")
    return native(case, threads=cores)


def converting(case: Case) -> GraphStep:
    """Return the step of the dynamic engine's loss with its control flow converted, one graph per shape."""
    return _compiled_step(_with_control_flow(case), shapes=EXACT)


def _with_control_flow(case: Case) -> Case:
    """Return the case of the dynamic engine's loss, whose own control flow is converted."""
    return replace(case, static_loss=None, scanned=None, branches=True)


Run = Callable[[Sequence[Any]], Any]
FATAL = 4
"""The log level of onnxruntime that logs only fatal errors."""


class SessionFunction:
    """A function that onnxruntime runs; each new kind of call exports a graph and opens a session.

    A kind of call is its containers, shapes, dtypes and static values, as for `static.jit` with exact shapes; `stats`
    counts the same way. The session has the threads of the engine. A call raises UnsupportedError where ONNX, or
    onnxruntime for these dtypes, lacks an op that the function needs.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function, self.stats = function, Stats()
        self._runs: dict[Hashable, Run] = {}

    def __call__(self, *args: Any) -> Any:
        """Return the result of the function on arrays."""
        leaves, structure = tree.flatten(args)
        arrays = [leaf for leaf in leaves if is_traced(leaf)]
        kinds = [(np.shape(leaf), np.asarray(leaf).dtype) if is_traced(leaf) else static_key(leaf) for leaf in leaves]
        key = (structure, *kinds)
        if key not in self._runs:
            self._runs[key] = self._compiled(args)
        return self._runs[key](arrays)

    def _compiled(self, args: tuple[Any, ...]) -> Run:
        start = time.perf_counter()
        structures: list[tree.Structure] = []

        def flat(*symbols: Any) -> list[Any]:
            leaves, structure = tree.flatten(self.function(*symbols))
            structures.append(structure)
            return leaves

        session = _session(flat, args)
        names = [place.name for place in session.get_inputs()]
        self.stats.compiles += 1
        self.stats.reasons.append("a call of a new kind" if self._runs else "first call")
        self.stats.compile_seconds += time.perf_counter() - start
        return lambda arrays: tree.unflatten(structures[-1], session.run(None, dict(zip(names, arrays, strict=True))))


def _session(function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    try:
        import onnxruntime

        from static.exporting.writer import UnwritableError
    except ImportError as error:
        raise UnsupportedError(f"{error}; pip install 'graphduel[onnxruntime]'") from None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = find_engine(OWN).threads, 1
    options.log_severity_level = FATAL
    try:
        model = static.export(function, *args)
    except UnwritableError as error:
        raise UnsupportedError(str(error)) from None
    try:
        return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # noqa: BLE001  (its errors share no base class; they name the missing op)
        raise UnsupportedError(f"onnxruntime refuses the graph: {error}") from None
