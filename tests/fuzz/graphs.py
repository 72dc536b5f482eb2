"""The ways of the static engine: each takes a case, and asserts that it gives what the dynamic engine gives."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

import dynamic
import graphs as g
import static
from graphs.errors import NotDifferentiableError
from static.codegen import groups, kernels
from static.codegen import lowering as backend
from static.passes import fusion, pipeline
from tests.fuzz.cases import Case, agree, plain, same_bits
from tests.fuzz.tapes import Way, slope
from tests.helpers.arena import check_arena
from tests.helpers.native_cut import everything_cut
from tests.helpers.random_graphs import BATCH

LENGTHS = (5, 7, 3)
PASSES = {
    "replay": pipeline.REPLAY,
    "simplify": pipeline.SIMPLIFY,
    "restructure": pipeline.SIMPLIFY + pipeline.RESTRUCTURE + pipeline.SIMPLIFY,
    "fuse": pipeline.SIMPLIFY + pipeline.FUSE + pipeline.CLEAN,
    "contract": pipeline.SIMPLIFY + pipeline.CONTRACT + pipeline.CLEAN,
    "every_pass": pipeline.DEFAULT,
}


def gradient_of(f: Callable[..., Any]) -> Callable[..., Any]:
    """((scalar, outputs), gradient)."""
    return static.value_and_grad(f, has_aux=True)


def compiled(case: Case, args: Any = None, **options: Any) -> tuple[static.Executable, bool]:
    """The step with its gradient, and whether it has that: a while_loop has none in a graph."""
    try:
        return static.compile(gradient_of(case.step), *(args or case.args), **options), True
    except NotDifferentiableError:
        return static.compile(case.step, *(args or case.args), **options), False


def expected(case: Case, whole: bool) -> Any:
    """What the executable of `compiled` gives."""
    return case.expected if whole else case.expected[0]


def run(case: Case, **options: Any) -> static.Executable:
    """Compile and call twice: the second call finds what the first left in the arena."""
    exe, whole = compiled(case, **options)
    for _ in range(2):
        agree(exe(*case.args), expected(case, whole), case.tolerance)
    return exe


# Compiling --------------------------------------------------------------------------------------------------------


@contextmanager
def everywhere() -> Iterator[None]:
    """Groups of any size, in blocks of a few rows."""
    with ExitStack() as stack:
        for module, name, value in (
            (fusion, "SMALLEST", 2), (fusion, "CACHE_BYTES", -1), (groups, "CACHE_BYTES", -1),
            (groups, "BLOCK_ELEMENTS", 14),
        ):  # fmt: skip
            stack.enter_context(patch.object(module, name, value))
        yield


def with_passes(case: Case, name: str) -> None:
    """Some of the passes; groups are made however small they are in half of the cases."""
    with everywhere() if name in ("fuse", "every_pass") and case.random.random() < 0.7 else ExitStack():
        run(case, passes=PASSES[name])


def native(case: Case) -> None:
    """Machine code, of its own passes or of others, also after groups for NumPy's kernels."""
    chosen = case.random.choice(["its own", "simplify", "every_pass"])
    passes = {} if chosen == "its own" else {"passes": PASSES[str(chosen)]}
    with everywhere() if chosen == "every_pass" else ExitStack():
        run(case, backend="native", arena=bool(chosen == "every_pass" or case.random.random() < 0.8), **passes)


def native_threads(case: Case) -> None:
    """Machine code that threads share however short it is."""
    with everything_cut():
        run(case, backend="native", threads=int(case.random.integers(2, 4)))


def no_arena(case: Case) -> None:
    """Every kernel allocates its result."""
    run(case, arena=False)


def spoilt_arena(case: Case) -> None:
    """Every byte of the arena that is not live is overwritten before each line."""
    exe, whole = compiled(case)
    exe(*case.args)
    leaves = [x for x in g.tree.leaves(case.args) if isinstance(x, np.ndarray)]
    agree(g.tree.leaves(check_arena(exe, leaves)), g.tree.leaves(expected(case, whole)), case.tolerance)


def recycled(case: Case) -> None:
    """Memory of results of any size is written again, but not while somebody sees it."""
    with patch.object(backend, "LARGE", 1), patch.object(kernels, "LARGE", 1):
        exe, whole = compiled(case)
        held = [exe(*case.args) for _ in range(3)]
        g.tree.tree_map(_overwrite, held.pop())
        held.append(exe(*case.args))
        for one in held:
            agree(one, expected(case, whole), case.tolerance)


def _overwrite(x: Any) -> None:
    if isinstance(x, np.ndarray) and x.flags.writeable:
        x.fill(1)


def budget(case: Case) -> None:
    """A share of the memory that the plan takes, if that can be met: the same bits."""
    free, whole = compiled(case)
    share = case.random.uniform(0.6, 0.9)
    exe, _ = compiled(case, memory_budget=int(free.plan.peak * share))
    assert exe.plan.peak <= free.plan.peak * share
    agree(exe(*case.args), expected(case, whole), case.tolerance)
    same_bits(exe(*case.args), free(*case.args))


def saved(case: Case) -> None:
    """Written to a file and read again: the same bits."""
    exe, _ = compiled(case)
    with tempfile.TemporaryDirectory() as folder:
        exe.save(Path(folder) / "one.graph")
        again = static.load(Path(folder) / "one.graph")
    same_bits(again(*case.args), exe(*case.args))
    agree(again(*case.args), exe(*case.args), case.tolerance)


def second_order(case: Case) -> None:
    """Hessian-vector products, of both engines and of finite differences of the gradient."""
    params, data = case.args
    vector = g.tree.tree_map(lambda x: case.random.normal(size=x.shape).astype(x.dtype), params)

    def along(engine: Any) -> Any:
        return lambda params: engine.hvp(lambda p: case.step(p, data)[0], (params,), (vector,))

    found = along(dynamic)(params)
    if not all(np.all(np.isfinite(x)) for x in g.tree.leaves(found)):
        return  # a second derivative that does not exist
    agree(static.compile(along(static), params)(params), found, case.tolerance * 10)


def directional(case: Case) -> None:
    """Products with vectors from the right, of both engines."""
    params, data = case.args
    vector = g.tree.tree_map(lambda x: case.random.normal(size=x.shape).astype(x.dtype), params)

    def along(engine: Any) -> Any:
        return lambda params: engine.jvp(lambda p: case.step(p, data)[0], (params,), (vector,))

    agree(static.compile(along(static), params)(params), along(dynamic)(params), case.tolerance * 10)


def slopes(case: Case) -> None:
    """The gradient of the compiled graph is that of finite differences."""
    exe, whole = compiled(case)
    results = exe(*case.args)
    if whole and case.program.smooth:
        slope(case, g.tree.leaves(results[1]))


# Sizes that vary --------------------------------------------------------------------------------------------------


def symbolic(case: Case, **options: Any) -> None:
    """The batch axis is a symbol: for its own size, and another one."""
    if case.batch is None:
        return

    def spec(x: Any) -> Any:
        return g.TensorSpec(("B", *x.shape[1:]), x.dtype) if _varies(x) else g.TensorSpec(x.shape, x.dtype)

    exe, whole = compiled(case, case.at([spec(x) for x in case.program.inputs]), **options)
    for size in (case.batch, case.batch + 2, case.batch):
        args = case.at(case.resized(size))
        step = dynamic.value_and_grad(case.step, has_aux=True) if whole else _of_arrays(case.step)
        _both(lambda args=args: exe(*args), lambda args=args, step=step: step(*args), case.tolerance)


def _varies(x: Any) -> bool:
    return bool(x.ndim) and x.shape[0] in BATCH


def _of_arrays(f: Callable[..., Any]) -> Callable[..., Any]:
    """f on the dynamic engine's tensors, to arrays."""

    def call(*args: Any) -> Any:
        tensors = g.tree.tree_map(lambda x: dynamic.tensor(x) if isinstance(x, np.ndarray) else x, args)
        return g.tree.tree_map(plain, f(*tensors))

    return call


def _both(ours: Callable[[], Any], other: Callable[[], Any], tolerance: float) -> None:
    """Both give the same. Where the tape refuses a size, a graph may refuse it too, or have left out what refuses."""
    try:
        wanted = other()
    except g.GraphError:
        with suppress(g.GraphError):
            ours()
    else:
        agree(ours(), wanted, tolerance)


def jitted(case: Case, shapes: Any) -> None:
    """Calls with several sizes of the batch, of the step with its gradient, or of the outputs alone."""
    sizes = LENGTHS if case.batch else (0,)
    differentiated = case.random.random() < 0.5
    floats = tuple(case.split.floats)

    def f(*inputs: Any) -> Any:
        return case.step(*case.at(inputs)) if differentiated else case.outputs(*case.at(inputs))

    inputs = case.program.inputs
    dims = [("T", *[None] * (x.ndim - 1)) if _varies(x) else (None,) * x.ndim for x in inputs]
    named = {"dims": dims} if shapes in ("bucket", "pad") or case.random.random() < 0.5 else {}
    ours = static.jit(static.value_and_grad(f, floats, has_aux=True) if differentiated else f, shapes=shapes, **named)
    other = dynamic.value_and_grad(f, floats, has_aux=True) if differentiated else _of_arrays(f)
    for size in (*sizes, *sizes[:1]):
        args = case.resized(size) if case.batch else inputs
        _both(lambda args=args: ours(*args), lambda args=args: other(*args), case.tolerance)


NATIVE_WAYS: dict[str, Way] = {
    "native": native,
    "native_threads": native_threads,
    "native_symbolic": functools.partial(symbolic, backend="native"),
}
WAYS: dict[str, Way] = {
    **{name: functools.partial(with_passes, name=name) for name in PASSES},
    **NATIVE_WAYS,
    "no_arena": no_arena,
    "spoilt_arena": spoilt_arena,
    "recycled": recycled,
    "budget": budget,
    "saved": saved,
    "second_order": second_order,
    "directional": directional,
    "slopes": slopes,
    "symbolic": symbolic,
    **{f"jit_{shapes}": functools.partial(jitted, shapes=shapes) for shapes in ("exact", "symbolic", "bucket", "pad")},
}
