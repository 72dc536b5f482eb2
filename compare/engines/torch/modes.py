"""PyTorch's modes: what compiles in each, and the settings within which it compiles and runs.

`prepare` says what makes of a function the callable that runs in a mode. Keywords of a word beside PyTorch's own:
`config` has settings of Dynamo, Inductor and AOTAutograd, `env` has variables of the mode's processes, `stance` is
that of `torch.compiler.set_stance` after a first run, `compiled_autograd` captures the backward pass whole, and the
others are those of `compare.engines.torch.edits`.
"""

from __future__ import annotations

import functools
import inspect
import math
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import optree

from compare import steps
from compare.engines.base import Compiler, Engine, ModeTrials, Words
from compare.engines.mode import CONFIG, PROCESS, Mode, Offer
from compare.engines.process import limit_seconds
from compare.engines.reach import codes_of
from compare.engines.step import Context, Function, inside
from compare.engines.torch import dynamo, edits, trials
from compare.engines.words import text
from compare.errors import InputsError, UnsupportedError
from compare.records.record import WRITTEN

GRAPHS = "aot_eager"
"""The backend of `torch.compile` that makes graphs but no kernels."""
CAPTURES = "eager"
"""The backend that runs Dynamo's graphs as they are: graphs and breaks are counted by it, since neither AOTAutograd nor
Inductor changes their number."""
EAGER = Mode("eager")
COMPILE = Mode("compile", "compile()")
AS_WRITTEN = Mode(WRITTEN, usual=False, suite=False)
MODES = (
    EAGER,
    COMPILE,
    Mode("compile-dynamic", "compile(dynamic=True)", relaxes=True),
    Mode("reduce-overhead", "compile(mode='reduce-overhead')", suite=False),
    Mode("max-autotune", "compile(mode='max-autotune')", suite=False),
    Mode("aot-eager", f"compile(backend={GRAPHS!r})", suite=False, kernels=False),
    Mode("export", "export()", usual=False, traces=True),
    Mode("aot", "aot()", usual=False, suite=False, traces=True, infers=True),
    AS_WRITTEN,
)

STANCE, AUTOGRAD = "stance", "compiled_autograd"
WITHIN = (STANCE, CONFIG, *PROCESS, AUTOGRAD, *edits.KEYWORDS)
"""The keywords of a word that are not the compiler's own."""
GLANCES = 15
"""The number of warm calls with and without guards that are timed before a remedy is tried."""
UNWRITTEN = ("model", "shapes_spec", "disable")
"""The parameters of `torch.compile` that no word has: what it compiles, an object, and that nothing compiles."""


# How a mode runs a function -------------------------------------------------------------------------------------------


def prepare(
    engine: Engine, mode: str, calls: Sequence[tuple[Any, ...]] = ()
) -> tuple[Callable[[Function], Function] | None, Context]:  # fmt: skip
    """Return what makes of a function the one that a mode runs, and the context around its runs.

    None runs the function as it is. `calls` are the arguments of its calls; without them they are not known yet.
    Whatever a mode changes in the function, in its modules or in its arguments before it compiles belongs here.
    """
    traits = engine.traits(mode)
    if traits is EAGER:
        return None, partial(dynamo.eager_stance, engine)
    if traits is AS_WRITTEN:
        return None, nullcontext
    within, options = engine.process.settings(mode), traits.options
    if not options.keys() & {*edits.KEYWORDS}:
        return partial(compile_function, traits), within
    change = edits.StepEdits(options, calls, partial(compile_function, traits))
    return change.of, inside(within, change.within)


def compiles_whole(mode: Mode) -> bool:
    """Return whether a mode compiles a function as it is and as one."""
    return mode.compiler == COMPILE.compiler and not mode.options.keys() & {*edits.KEYWORDS}


def compile_function(mode: Mode, function: Function, **options: Any) -> Function:
    """Return a function that compiles on its first call; `options` replace those of the mode's word."""
    own = {name: value for name, value in mode.options.items() if name not in WITHIN}
    with settings(mode.options.get(CONFIG, {})):
        return COMPILERS[mode.compiler](function, **{**own, **options})


def context_of(mode: Mode) -> Context:
    """Return the context in which a mode compiles and runs: its settings, its stance and its backward pass."""
    options, contexts = mode.options, list[Context]()
    if CONFIG in options:
        contexts.append(partial(settings, options[CONFIG]))
    if STANCE in options:
        contexts.append(_after_first(options[STANCE]))
    if options.get(AUTOGRAD):
        contexts.append(partial(_compiled_autograd, mode))
    return inside(*contexts) if contexts else nullcontext


def _modules() -> Sequence[Any]:
    """Return PyTorch's modules of settings; a name is looked up in the first that has it."""
    import torch._dynamo.config
    import torch._functorch.config
    import torch._inductor.config
    import torch.compiler.config

    return torch._dynamo.config, torch._inductor.config, torch._functorch.config, torch.compiler.config


def _names(module: Any) -> list[str]:
    return [name for name in module.get_config_copy() if not name.startswith("_") and name != "TYPE_CHECKING"]


@contextmanager
def settings(values: Mapping[str, Any]) -> Iterator[None]:
    """A context with settings of Dynamo, Inductor and AOTAutograd. Raises InputsError for one that none has."""
    rest, contexts = dict(values), list[Context]()
    for module in _modules() if rest else ():
        mine = {name: rest.pop(name) for name in set(rest).intersection(_names(module))}
        contexts += [partial(module.patch, mine)] if mine else []
    if rest:
        raise InputsError(f"{CONFIG}: PyTorch has no setting {next(iter(rest))!r}")
    with inside(*contexts)():
        yield


def _after_first(stance: Any) -> Context:
    """Return the context of a stance: a name, or a dict of what `torch.compiler.set_stance` takes.

    The first run compiles as usual, and the stance holds from the second: most stances only tell what to do where a
    function would be compiled again.
    """
    asked, ran = stance if isinstance(stance, dict) else {STANCE: stance}, list[bool]()

    def within() -> AbstractContextManager[Any]:
        import torch

        if not ran:
            ran.append(True)
            return nullcontext()
        return torch.compiler.set_stance(**asked)

    return within


@contextmanager
def _compiled_autograd(mode: Mode) -> Iterator[None]:
    """A context in which each backward pass is captured whole, and compiled as the mode compiles."""
    import torch._dynamo.compiled_autograd

    compiler = partial(compile_function, mode, fullgraph=False)
    with torch._dynamo.compiled_autograd._enable(compiler):
        yield


# The compilers --------------------------------------------------------------------------------------------------------


def _compile(function: Function, **options: Any) -> Function:
    import torch

    compiled: Function = torch.compile(function, **options)
    return compiled


def _export(function: Function, *, strict: bool = True, fullgraph: bool = True) -> Function:
    """Return the function as captured programs, whose ops PyTorch runs one by one."""
    del fullgraph  # there is no other
    import torch

    return _for_each_kind(function, lambda module, args: torch.export.export(module, args, strict=strict).module())


def _aot(function: Function, *, fullgraph: bool = True, **options: Any) -> Function:
    """Return the function as libraries that AOTInductor makes of captured programs; `options` are Inductor's."""
    del fullgraph
    import torch

    def load(module: Any, args: tuple[Any, ...]) -> Function:
        program = torch.export.export(module, args, strict=True)
        with tempfile.TemporaryDirectory(prefix="graphduel-") as folder:
            path = torch._inductor.aoti_compile_and_package(
                program, package_path=str(Path(folder, "step.pt2")), inductor_configs=options.get("options")
            )
            loaded: Function = torch._inductor.aoti_load_package(path)
        return loaded

    return _for_each_kind(function, load)


COMPILERS: dict[str, Callable[..., Function]] = {"compile": _compile, "export": _export, "aot": _aot}


def _for_each_kind(function: Function, make: Callable[[Any, tuple[Any, ...]], Function]) -> Function:
    """Return the function as programs, one made for each structure and shapes of the arguments, on first use.

    An argument that is a module is a part of the program, and so are the modules and parameters that the function
    reaches by itself, whose names a program takes from the module that it is made of.
    """
    import torch

    from compare.engines import find_engine  # which imports this

    class Module(torch.nn.Module):
        def __init__(self, args: tuple[Any, ...]) -> None:
            super().__init__()
            reached = find_engine("torch").state.reached(function)
            self.reached = torch.nn.ModuleList(each for each in reached if isinstance(each, torch.nn.Module))
            self.free = torch.nn.ParameterList(each for each in reached if isinstance(each, torch.nn.Parameter))
            self.is_held = [isinstance(arg, torch.nn.Module) for arg in args]
            self.held = torch.nn.ModuleList(arg for arg in args if isinstance(arg, torch.nn.Module))

        def forward(self, *args: Any) -> Any:
            held, rest = iter(self.held), iter(args)
            return function(*[next(held) if is_held else next(rest) for is_held in self.is_held])

    programs: dict[Any, Function] = {}

    def run(*args: Any) -> Any:
        rest: Any = tuple(arg for arg in args if not isinstance(arg, torch.nn.Module))
        leaves, structure = optree.tree_flatten(rest)
        kinds = [(x.shape, x.dtype) if isinstance(x, torch.Tensor) else x for x in leaves]
        key = (structure, *kinds, *(id(arg) for arg in args if isinstance(arg, torch.nn.Module)))
        if key not in programs:
            programs[key] = make(Module(args), rest)
        return programs[key](*rest)

    return run


def check_gradients(mode: Mode) -> None:
    """Raise UnsupportedError for a mode that compiles no function with gradients."""
    if mode.infers:
        raise UnsupportedError(
            f"{mode.compiler} compiles functions that take no gradients; --no-gradient compares a loss by its value"
        )


class TorchWords(Words):
    """The words role of PyTorch."""

    def traits(self, rows: Sequence[Mode], options: Mapping[str, Any]) -> Mode:
        """Return the traits of a compiler; `dynamic=True` compiles for shapes that vary."""
        return replace(rows[0], relaxes=bool(options.get("dynamic")))

    def offer(self) -> Offer:
        """Return what `torch.compile` takes, with the modes, backends and settings of the installed PyTorch."""
        import torch
        import torch._inductor

        compile_ = [name for name in inspect.signature(torch.compile).parameters if name not in UNWRITTEN]
        options = torch._inductor.list_options()
        modes, backends = list(torch._inductor.list_mode_options()), torch._dynamo.list_backends(exclude_tags=())
        bare = {name: text("compile", {"backend": name}) for name in backends}
        return Offer(
            {
                "compile": (*compile_, *WITHIN),
                "export": ("strict", CONFIG, *PROCESS),
                "aot": ("options", CONFIG, *PROCESS),
            },
            {"options": options, CONFIG: [name for module in _modules() for name in _names(module)]},
            bare | {name: text("compile", {"mode": name}) for name in modes},
        )


class TorchTrials(ModeTrials):
    """The trials role of PyTorch."""

    tries = places = True
    keeps = "Keep compiled code: torch.compiler.save_cache_artifacts() at the end, load_cache_artifacts() at the start"
    modes = staticmethod(trials.trials)
    by_hand = staticmethod(trials.by_hand)

    def facts(
        self, function: Function, calls: Sequence[tuple[Any, ...]], fresh: Context | None = None
    ) -> dict[str, list[str]]:  # fmt: skip
        """Return what `modes` reads; within `fresh` the step runs compiled, and the remedies that it needs are counted.

        Compiled code of this process is dropped then.
        """
        facts = trials.facts(function, calls)
        if fresh is not None:
            counting = partial(self._count, function, calls, fresh)
            facts[trials.WORTH] = trials.worth(trials.FirstLook.of(facts), counting)
        return facts

    def _count(
        self,
        function: Function,
        calls: Sequence[tuple[Any, ...]],
        fresh: Context,
        keywords: Mapping[str, Any],
        worthless: trials.Worthless = trials.never,
        seconds: float = math.inf,
    ) -> trials.GraphCount | None:
        """Return Dynamo's graphs of the calls with the keywords of a remedy; None where that fails or takes too long.

        The last calls are left out of a count that is worthless already.
        """
        import torch

        dynamo.forget()
        steps.now(f"counted the graphs of {text('compile', keywords)}")
        mode = self.engine.words.full_name("counted=" + text("compile", {**keywords, "backend": CAPTURES}))
        start = time.process_time()
        try:
            change, within = prepare(self.engine, mode, calls)
            run = change(function) if change else function
            bound = limit_seconds(seconds) if seconds < math.inf else nullcontext()
            with bound, edits.restore_marks(calls), fresh(), torch.compiler.set_stance("default"):
                for call in calls:
                    with within():
                        run(*call)
                    spent, seen = time.process_time() - start, dynamo.dynamo_observations(codes_of(function))
                    said = [*(made.reason for made in seen.compilations), *seen.breaks]
                    made = trials.GraphCount(len(seen.compilations), sum(seen.breaks.values()), spent, said)
                    if worthless(made):
                        return made
                if keywords or made.breaks or any(map(trials.FAILED.search, said)):
                    return made
                return replace(made, guards=_guards(partial(run, *calls[-1])))
        except Exception:  # noqa: BLE001  (whatever a compiler raises of a change: it is not tried)
            return None


def _guards(call: Callable[[], object]) -> float:
    """Return the share of a warm call of a compiled step that its guards take: calls with and without in turn."""
    import torch

    seconds: dict[bool, list[float]] = {False: [], True: []}
    for _ in range(GLANCES):
        for skips, spent in seconds.items():
            with torch.compiler.set_stance("default", skip_guard_eval_unsafe=skips):
                start = time.perf_counter()
                call()
                spent.append(time.perf_counter() - start)
    return 1 - min(seconds[True]) / min(seconds[False])


class TorchCompiler(Compiler):
    """The compiler role of PyTorch."""

    def eagerly(self, function: Function) -> AbstractContextManager[None]:
        """Return a context in which nothing compiles, whatever the function is."""
        return dynamo.eager_stance(self.engine)

    def compiled(self, mode: str, function: Function) -> Function:
        """Return the function compiled with `fullgraph=True`, or exported."""
        return compile_function(self.engine.traits(mode), function, fullgraph=True)

    def captured(self, mode: str, function: Function, *, whole: bool = True) -> Function | None:
        """Return both passes as graphs of Dynamo and AOTAutograd, run op by op; None for an export.

        A function that need not be `whole` has as many graphs as it needs. It compiles within `eagerly` too, since the
        eager mode calls it.
        """
        import torch

        traits = self.engine.traits(mode) if whole else COMPILE
        if traits.compiler != COMPILE.compiler:
            return None
        compiled = compile_function(traits, function, backend=GRAPHS, **({"fullgraph": True} if whole else {}))

        @functools.wraps(compiled)
        def run(*args: Any) -> Any:
            with torch.compiler.set_stance("default"):
                return compiled(*args)

        return run

    def forget(self) -> None:
        """Drop Dynamo's code and counts in memory; Inductor's cache on the disk stays."""
        dynamo.forget()
        self.engine.compiles = False

    @contextmanager
    def anew(self) -> Iterator[None]:
        """A context that begins without compiled code in memory or on the disk, and without counts."""
        from torch._inductor.utils import fresh_cache

        self.forget()
        with fresh_cache():
            yield
