"""Arms: the engines, and the static one under each shape policy, as training steps that the harness can run.

A step is called as `step(*example) -> (loss, gradients)`. Everything that differs between arms is behind it.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import dynamic
import static
from compare.errors import UnsupportedError
from compare.workloads.base import Case, Dims, Example
from graphs import tree
from graphs.errors import ControlFlowError, GraphError, ShapeError, ShapeLimitError
from static.backends import choice
from static.call.cache import Stats

PADDING = ("bucket", "pad")
NATIVE = "native"
CONVERTED = "converted"
STATIC = "static-"


class Step:
    """One arm of a case, ready to run; `examples` is the stream as this arm takes it (masked where it pads).

    `stats` count what was compiled.
    """

    def __init__(
        self, function: Callable[..., Any], params: Any, examples: tuple[Example, ...], stats: Stats | None = None
    ) -> None:
        self.function, self.params, self.examples = function, params, examples
        self.stats = stats or Stats()

    def __call__(self, *example: Any) -> tuple[Any, Any]:
        """The loss and the gradients of the parameters."""
        result: tuple[Any, Any] = self.function(self.params, *example)
        return result

    @property
    def compiles(self) -> int:
        """The graphs compiled so far."""
        return self.stats.compiles

    @property
    def compile_seconds(self) -> float:
        """The seconds they took to trace and compile."""
        return self.stats.compile_seconds

    def computed(self, lengths: Sequence[int]) -> int:
        """The elements computed in an epoch of examples of these useful lengths: more where the arm pads."""
        return sum(lengths)

    def executables(self) -> list[Any]:
        """The compiled graphs held now, for introspection."""
        return []

    def close(self) -> None:
        """Release everything compiled."""
        del self.function


class CompiledStep(Step):
    """One graph, compiled when the step is built, for an input that never changes; `options` are the compiler's."""

    def __init__(self, case: Case, **options: Any) -> None:
        started = time.perf_counter()
        step = transformed(static, traced(case), case.argnum)
        executable = static.compile(step, case.params, *case.examples[0], **options)
        stats = Stats(compiles=1, compile_seconds=time.perf_counter() - started)
        super().__init__(executable, case.params, case.examples, stats)

    def executables(self) -> list[Any]:
        """The one executable."""
        return [self.function]


class JitStep(Step):
    """A graph per shape or structure, compiled by the first call that has it, as the policy says."""

    function: static.Jitted

    def __init__(self, case: Case, policy: Any, backend: str = "numpy") -> None:
        padded = policy in PADDING
        loss = _masked(case, policy) if padded else _unpadded(case, policy)
        jitted = static.jit(
            transformed(static, loss, case.argnum),
            shapes=policy,
            limit=len(case.examples),  # the cache at its best: it never has to forget
            dims=masked_dims(case) if padded else case.dims,
            buckets=_largest(case) if policy == "pad" else None,
            check=False,  # the parity gate has checked the padding
            backend=backend,
        )
        examples = tuple(map(case.masked_example, range(len(case.examples)))) if padded else case.examples
        super().__init__(jitted, case.params, examples, jitted.stats)

    def computed(self, lengths: Sequence[int]) -> int:
        """As the engine counts it over one epoch, which this runs."""
        stats = self.stats
        asked, computed = stats.useful, stats.computed
        for example in self.examples:
            self(*example)
        padding = (stats.computed - computed) / (stats.useful - asked) if stats.useful > asked else 1.0
        return round(sum(lengths) * padding)

    def executables(self) -> list[Any]:
        """The executables in the cache."""
        return list(self.function.executables.values())


def build(arm: str, case: Case) -> Step:
    """The training step of an arm: "dynamic", or "static-" and a shape policy, "native" or "converted".

    The last two have fixed shapes: native is machine code, and converted takes the loss with its own control flow.
    An input that never varies is compiled here; a stream is compiled as it comes. Raises UnsupportedError
    when the policy does not apply to the case, and whatever the engine refuses with.
    """
    if arm == "dynamic":
        return Step(transformed(dynamic, case.loss, case.argnum), case.params, case.examples)
    policy = arm.removeprefix(STATIC)
    if policy == NATIVE:
        return native(case)
    if policy == CONVERTED:
        return converted(case)
    if policy == "exact" and not case.varies:
        return CompiledStep(case)
    return JitStep(case, policy)


def native(case: Case) -> Step:
    """The step as machine code, a graph for each shape. Raises UnsupportedError where there can be none."""
    try:
        choice.chosen(NATIVE)
    except GraphError as error:
        raise UnsupportedError(str(error)) from None
    return JitStep(case, "exact", NATIVE) if case.varies else CompiledStep(case, backend=NATIVE)


def converted(case: Case) -> Step:
    """The step of the loss as the dynamic engine runs it, with its control flow converted, a graph for each shape."""
    plain = replace(case, static_loss=None, scanned=None, branches=True)
    return JitStep(plain, "exact") if case.varies else CompiledStep(plain)


def traced(case: Case) -> Callable[..., Any]:
    """The loss as a fixed graph takes it: rewritten without branches on values, or else with its own ones converted."""
    return case.static_loss or _converted(case.loss, case)


def _converted(loss: Callable[..., Any], case: Case) -> Callable[..., Any]:
    return static.converted(loss) if case.branches else loss


def alone(case: Case) -> Case:
    """The case with one example, that of the median length, and with one function in both engines.

    What is left to differ is the graph mode: no shapes that vary, and no function rewritten for one engine.
    """
    ranked = sorted(range(len(case.lengths)), key=case.lengths.__getitem__)
    middle = ranked[len(ranked) // 2]
    loss = case.static_loss or case.loss
    return replace(
        case, loss=loss, static_loss=None, examples=(case.examples[middle],), lengths=(case.lengths[middle],)
    )


def transformed(engine: Any, f: Callable[..., Any], argnum: int | None) -> Callable[..., Any]:
    """What a step runs in an engine: the value of `f` with its gradients in an argument, or `(output, ())`."""
    if argnum is not None:
        return engine.value_and_grad(f, argnum)
    return _unrecorded(f) if engine is dynamic else _alone(f)


def refuses(arm: str, error: Exception) -> bool:
    """Whether an error is the engine saying that it does not do this, rather than a fault."""
    refusals = [UnsupportedError, ControlFlowError, ShapeLimitError]
    if arm == "static-symbolic":
        refusals.append(ShapeError)  # a rule that cannot hold for every size
    return isinstance(error, tuple(refusals))


def signature(example: Example) -> Hashable:
    """What an engine specialises on: the structure, the shape and dtype of arrays, and every other value."""
    leaves, structure = tree.flatten(example)
    return structure, tuple((x.shape, x.dtype.str) if hasattr(x, "dtype") else x for x in leaves)


def _unpadded(case: Case, policy: str) -> Callable[..., Any]:
    scanned = case.scanned if policy == "symbolic" else None
    return scanned or traced(case)


def _masked(case: Case, policy: str) -> Callable[..., Any]:
    if case.masked is None:
        raise UnsupportedError(f"{policy}: the workload has no masked loss: padding would change its result")
    return _converted(case.masked, case)


def masked_dims(case: Case) -> Dims:
    """The dims of `(params, *example, mask)`: the mask has the axis that varies."""
    if case.dims is None:
        raise UnsupportedError("padding needs to know which axes vary; give the case its dims")
    return (*case.dims, (_names(case.dims)[0],))


def _largest(case: Case) -> tuple[int] | None:
    """The maximum to pad to, known beforehand where one size varies; several are padded to the largest so far."""
    return (max(case.lengths),) if case.dims and len(set(_names(case.dims))) == 1 else None


def _names(dims: Dims) -> list[str]:
    return [name for axes in dims if isinstance(axes, tuple) for name in axes if isinstance(name, str)]


def _alone(f: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(f)
    def output(*args: Any) -> tuple[Any, tuple[()]]:
        return f(*args), ()

    return output


def _unrecorded(f: Callable[..., Any]) -> Callable[..., Any]:
    """`(f(...), ())` in the dynamic engine: no tape, arrays in and arrays out."""

    @functools.wraps(f)
    def output(*args: Any) -> tuple[Any, tuple[()]]:
        with dynamic.no_grad():
            result = f(*tree.tree_map(tensor_of, args))
        return tree.tree_map(_array, result), ()

    return output


def tensor_of(leaf: Any) -> Any:
    """An array as `value_and_grad` hands it to a function: a tensor, so that operators on data are ops too."""
    return dynamic.from_numpy(leaf) if isinstance(leaf, np.ndarray) else leaf


def _array(leaf: Any) -> Any:
    return leaf.numpy() if isinstance(leaf, dynamic.Tensor) else leaf
