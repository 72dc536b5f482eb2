"""The adapter of graphduel: the dynamic engine, and the static one under each shape policy."""

from __future__ import annotations

import inspect
import linecache
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any

import optree

import dynamic
import graphs
import static
from compare.engines.base import CallState, Compiler, Engine, Errors, Library, ModeTrials, Numbers, Ops, Process, Words
from compare.engines.cases import signature, traceable_loss
from compare.engines.debugging import Tools
from compare.engines.graphduel import counting, steps
from compare.engines.graphduel.debugging import DynamicTools, StaticTools
from compare.engines.graphduel.programs import kept_tensor
from compare.engines.graphduel.steps import InDoubles, transform_step
from compare.engines.mode import Mode, ModeTrial, Offer
from compare.engines.nudge import FloatChange, double
from compare.engines.process import Switch
from compare.engines.reach import Kinds
from compare.engines.state import Piece
from compare.engines.step import Function, Observations
from compare.engines.words import text
from compare.errors import UnsupportedError
from compare.records.own import CallCounts, PolicyCount, ShapePolicies
from compare.records.record import Device, Records, records_of
from compare.workloads.base import Case
from graphs.errors import ControlFlowError, GraphError, ResultError, ShapeError, ShapeLimitError
from graphs.op import registered_ops
from static.native.target import CACHE_SWITCH as SWITCH

DYNAMIC = Mode("dynamic", derivatives=dynamic, readable=True)
SYMBOLIC = Mode("static-symbolic", "static(shapes='symbolic')", derivatives=static, traces=True, relaxes=True)
EXACT = Mode("static-exact", "static(shapes='exact')", derivatives=static, traces=True, keeps_each=True, readable=True)
CONVERTED = Mode(
    "static-converted", "static(shapes='exact', convert=True)",
    derivatives=static, usual=False, converts=True, readable=True,
)  # fmt: skip
NATIVE = Mode(
    "static-native", "static(shapes='exact', backend='native')",
    derivatives=static, usual=False, traces=True, keeps=True,
)  # fmt: skip
ONNXRUNTIME = Mode(
    "static-onnxruntime", "onnxruntime()",
    derivatives=static, usual=False, suite=False, traces=True, keeps_each=True, uncounted=True,
)  # fmt: skip
MOST_POLICIES = 2
"""The largest number of shape policies that are tried."""
UNWRITTEN = ("f", "dims")
"""The parameters of `static.jit` that no word has: what it compiles, and the axes that vary in the calls."""


class GraphDuel(Engine):
    """The adapter of our two engines.

    Both run the same kernels by the same gradient rules, from differently made graphs.
    """

    name, title, module, package = "graphduel", "graphduel", "static", "graphduel"
    takes_apart, tells_lines, is_reference = True, True, True
    compile_seconds = 0.01
    inert = ("dynamic",)
    aliases = MappingProxyType({"static": "static-exact", "onnxruntime": "static-onnxruntime"})
    modes = (
        DYNAMIC,
        EXACT,
        SYMBOLIC,
        Mode("static-bucket", "static(shapes='bucket')", derivatives=static, traces=True, pads=True, keeps_each=True),
        Mode("static-pad", "static(shapes='pad')", derivatives=static, traces=True, pads=True),
        NATIVE,
        CONVERTED,
        ONNXRUNTIME,
    )

    def __init__(self) -> None:
        super().__init__()
        self.process = OwnProcess(self)
        self.library = OwnLibrary(self)
        self.ops = OwnOps(self)
        self.compiler = OwnCompiler(self)
        self.state = OwnState(self)
        self.numbers = OwnNumbers(self)
        self.errors = OwnErrors(self)
        self.words = OwnWords(self)
        self.trials = OwnTrials(self)

    @property
    def version(self) -> str:
        """Return the installed version, or "not installed" for a checkout."""
        from importlib.metadata import PackageNotFoundError, version  # imported here: it is a tenth of a worker's start

        try:
            return version(self.package)
        except PackageNotFoundError:
            return "not installed"

    @staticmethod
    def environment(cache: Path, device: Device = "cpu", threads: int = 1) -> dict[str, str]:
        """Return the environment variable that names the folder of machine code."""
        return {SWITCH: str(cache)}

    def functions(self) -> dict[str, Function]:
        """Return all ops and all functions composed of ops."""
        public = {name: getattr(graphs, name) for name in graphs.__all__ if callable(getattr(graphs, name))}
        return {**public, **registered_ops()}

    def loss(self, mode: str, case: Case) -> Function:
        """Return the loss of a case: as written for a tape and for conversion, else as a fixed graph takes it."""
        if not self.traits(mode).traces:
            return case.loss
        return (case.scanned if self.traits(mode).options.get("shapes") == "symbolic" else None) or traceable_loss(case)

    def step(self, mode: str, case: Case) -> steps.GraphStep:
        """Return the step of a mode; an input whose shape never varies is compiled here."""
        return steps.build(self.traits(mode), case)

    def build(self, mode: str, loss: Function, argnum: int | None) -> Function:
        """Return a step over a loss; the static engine compiles when a call has a new shape."""
        traits = self.traits(mode)
        if traits is DYNAMIC:
            return transform_step(dynamic, loss, argnum)
        if traits.converts:
            loss = static.converted(loss)
        return steps.compile_function(traits, transform_step(static, loss, argnum))

    def debugger(self, mode: str, users: Callable[[str], bool]) -> Tools:
        """Return the tools of the mode's engine, which see every value."""
        return DynamicTools() if self.traits(mode) is DYNAMIC else StaticTools()

    def arrays(self, tree: Any) -> Any:
        """Return the arrays unchanged: our engines take NumPy arrays."""
        return tree

    def numpy(self, tree: Any) -> Any:
        """Return the tree with NumPy arrays in the place of tensors."""
        return optree.tree_map(lambda x: x.numpy() if isinstance(x, dynamic.Tensor) else x, tree, none_is_leaf=True)

    def observed(self, step: Function) -> Observations:
        """Return the compilations of a jitted function with their reasons; each gets the mean compile time."""
        stats = getattr(step, "stats", None)
        return steps.compilations(stats) if stats else Observations()


class OwnWords(Words):
    """The words role of our engines, whose modes' names have no prefix."""

    start = ""

    def offer(self) -> Offer:
        """Return the parameters of `static.jit` that may be written out."""
        names = [name for name in inspect.signature(static.jit).parameters if name not in UNWRITTEN]
        return Offer({"static": names, steps.ONNXRUNTIME: ()})

    def full_name(self, name: str) -> str:
        """Return the name of a mode."""
        return name

    def traits(self, rows: Sequence[Mode], options: Mapping[str, Any]) -> Mode:
        """Return the traits of `static.jit` with these options, whose shapes are relaxed unless they are given."""
        shapes, converts = options.get("shapes", "auto"), bool(options.get("convert"))
        row = next((mode for mode in rows if mode.options == {"shapes": shapes}), SYMBOLIC)
        native = options.get("backend", "numpy") != "numpy"
        return replace(row, converts=converts, traces=not converts, keeps=native, readable=row.readable and not native)


class OwnTrials(ModeTrials):
    """The trials role of our engines: shape policies that compile less often, and machine code."""

    tries = True

    def modes(self, records: Records, facts: Mapping[str, Any], *, remedies: bool) -> Sequence[ModeTrial]:
        """Return the policies that compile less often than the usual one, the fewest first, and machine code."""
        if not remedies:
            return []
        policies = [each.policies for each in records_of(records, ShapePolicies)]
        fewer = [pair for rows in policies for pair in rows.items() if _compiles_less(pair[1], rows["auto"])]
        fewer.sort(key=lambda pair: (len(pair[1].compiles), pair[1].padding))
        trials = [
            ModeTrial(name, text("static", {"shapes": name}), f"let shapes vary: static.jit(f, {row.options})")
            for name, row in fewer[:MOST_POLICIES]
        ]
        native = text("static", {"backend": "native"})
        return [*trials, ModeTrial("native", native, "compile to machine code: static.jit(f, backend='native')")]


def _compiles_less(row: PolicyCount, usual: PolicyCount) -> bool:
    return row.status == "ok" and len(row.compiles) < len(usual.compiles)


class OwnProcess(Process):
    """The process role of our engines."""

    def switches(self) -> Sequence[Switch]:
        """Return the dynamic engine's switches: random state, default dtype, and gradient mode."""
        return [
            Switch(dynamic.get_rng_state, dynamic.set_rng_state),
            Switch(dynamic.get_default_dtype, dynamic.set_default_dtype),
            Switch(dynamic.is_grad_enabled, dynamic.set_grad_enabled),
        ]


class OwnLibrary(Library):
    """The library role of our engines, which run modules over `graphs` unchanged."""

    def load(self, module: str, *, control: bool = False) -> ModuleType:
        """Return the imported module itself, since it is written over `graphs`."""
        return import_module(module)

    @contextmanager
    def edited(self, module: str, text: str) -> Iterator[ModuleType]:
        """Give a module with another text.

        No file is written: `linecache` has the text for conversion and tracebacks.
        """
        after = ModuleType(f"{module}.edited")
        file = f"<edited>/{module.rpartition('.')[2]}.py"
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        exec(compile(text, file, "exec"), after.__dict__)  # noqa: S102  (a module of the harness, with a line changed)
        yield after


class OwnOps(Ops):
    """The ops role of our engines."""

    def called(self, function: Function, call: tuple[Any, ...]) -> Any:
        """Return the result of a function called with tensors; no tape is recorded."""
        return transform_step(dynamic, function, None)(*call)[0]

    def counts(self, modes: Sequence[str], case: Case, *, run: bool = True) -> list[CallCounts]:
        """Return the counts of each call by tracing, once per signature where no branch can differ."""
        by_signature: dict[Any, CallCounts] = {}
        rewritten = traceable_loss(case)
        signatures = [signature(example) for example in case.examples]
        counts = []
        for key, example in zip(signatures, case.examples, strict=True):
            if key not in by_signature or (run and rewritten is not case.loss):
                by_signature[key] = counting.counts(case.loss, rewritten, (case.params, *example), case.argnum, run=run)
            counts.append(by_signature[key])
        return counts


class OwnCompiler(Compiler):
    """The compiler role of our engines."""

    def compiled(self, mode: str, function: Function) -> Function:
        """Return the function compiled by `static.jit`; every call is one graph."""
        traits = self.engine.traits(mode)
        return steps.compile_function(traits, static.converted(function) if traits.converts else function)

    def whole(self, mode: str, function: Function, around: Callable[[Function], Function]) -> tuple[Function, Function]:
        """Return a step that is one graph: the value, its gradient, and the code around the function."""
        step = self.engine.build(mode, around(function), 0)
        return step, step

    def varying(self, mode: str, loss: Function, dims: Any) -> Function:
        """Return a step for axes that vary: a tape needs no dims, and a graph gets symbolic sizes."""
        if self.engine.traits(mode) is DYNAMIC:
            return self.engine.build(mode, loss, 0)
        return static.jit(transform_step(static, loss, 0), shapes="symbolic", dims=dims)


class OwnState(CallState):
    """The state role of our engines."""

    def kinds(self) -> Kinds:
        """Return the classes of tensors and modules of the dynamic engine."""
        return Kinds(dynamic.Tensor, dynamic.nn.Module)

    def kept(self, value: Any) -> Piece | None:
        """Return a piece that restores a tensor with its gradient, or a random generator; None for other values."""
        if isinstance(value, dynamic.Generator):
            state = value.get_state()
            return Piece(lambda: str(value.get_state()) == str(state), partial(value.set_state, state))
        return kept_tensor(value) if isinstance(value, dynamic.Tensor) else None


class OwnNumbers(Numbers):
    """The numbers role of our engines."""

    round_results = staticmethod(steps.round_results)

    def changed(self, tree: Any, change: FloatChange) -> Any:
        """Return a copy of the arguments with changed floats, or in float64 where `change` has no seed."""
        if change.seed is not None:
            return super().changed(tree, change)
        return optree.tree_map(double, tree, none_is_leaf=True)

    def meanwhile(self, holders: Sequence[Any], change: FloatChange) -> Any:
        """Return a context with changed floats; without a seed, an op that meets float64 computes in float64."""
        return InDoubles() if change.seed is None else super().meanwhile(holders, change)


class OwnErrors(Errors):
    """The errors role of our engines."""

    @contextmanager
    def checked(self) -> Iterator[None]:
        """Detect NaN and infinity by `dynamic.detect_anomaly`; static functions use `debug=True` instead."""
        with dynamic.detect_anomaly():
            yield

    def traced(self, error: BaseException) -> bool:
        """Return whether an error comes from the trace, or from a rule of graphs that the function breaks."""
        return isinstance(error, (GraphError, ControlFlowError))

    def refuses(self, error: BaseException, mode: str = "") -> bool:
        """Return whether an error says "unsupported"; with symbolic sizes also a ShapeError."""
        refusals: tuple[type[BaseException], ...] = (UnsupportedError, ControlFlowError, ResultError, ShapeLimitError)
        return isinstance(error, (*refusals, ShapeError) if mode and self.engine.traits(mode).relaxes else refusals)
