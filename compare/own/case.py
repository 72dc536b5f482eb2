"""From a function and its inputs to a case: what is differentiated, and which axes vary.

Containers of a class of its own among the arguments of a function: to our engines they are dicts of their parts.

The function is given its own class again, with what the engine has put in the parts.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import static
from compare import engines
from compare.engines.containers import CallContainers, apart, is_container
from compare.engines.graphduel.functions import transformed
from compare.errors import InputsError
from compare.own import modules
from compare.own.origin import Inputs
from compare.own.question import calls_in
from compare.words import text
from compare.workloads.base import Case, Dims, Example
from graphs import tree
from graphs.errors import ControlFlowError
from graphs.spec import TensorSpec

Examples = tuple[Example, ...]
OutputOf = Callable[[Callable[..., Any], Example], Any]


class OwnCase(Case):
    """A case whose function is padded as it is: a mask, if it needs one, is among its own arguments."""

    def masked_example(self, index: int) -> Example:
        """The example: there is no mask to add."""
        return self.examples[index]


def _run(f: Callable[..., Any], example: Example) -> Any:
    """What `f` returns in the dynamic engine."""
    return engines.named(engines.OWN).called(f, example)


def case_of(
    f: Callable[..., Any],
    inputs: Sequence[Any],
    gradient: bool | None,
    dims: Sequence[Any] | None,
    output_of: OutputOf = _run,
) -> Case:
    """The case of `f` over these calls. An argument 0 that is the same in every call is the case's parameters.

    Where f is given a module, or closes over some, their parameters are argument 0.

    `output_of` is as for `differentiates`.
    """
    calls = calls_in(inputs, f)
    f, brought = over_dicts(*modules.functional(f, calls))
    examples = checked(Inputs.like(calls, brought), f)
    argnum = 0 if differentiates(f, examples[0], gradient, output_of) else None
    axes = tuple(dims) if dims is not None else varying_axes(examples)
    sizes = lengths(examples, axes)
    if _shared([example[0] for example in examples]):
        streams = tuple(example[1:] for example in examples)
        return OwnCase(f, examples[0][0], streams, sizes, masked=f, dims=axes, argnum=argnum)
    loss = _after_params(f)
    shifted = None if axes is None else (None, *axes)
    return OwnCase(loss, (), examples, sizes, masked=loss, dims=shifted, argnum=None if argnum is None else 1)


def converting(case: Case) -> Case:
    """The case with its control flow converted for the static engine, where that is what a trace of it needs.

    `branches` is set where Python decides on a value of the first example, and the function converts.
    """
    arguments = (case.params, *case.examples[0])
    try:
        static.trace(transformed(static, case.loss, None), *arguments)
    except ControlFlowError:
        try:
            static.trace(transformed(static, static.converted(case.loss), None), *arguments)
        except Exception:  # noqa: BLE001  (the gate says why static refuses the function as it is)
            return case
        return replace(case, branches=True)
    except Exception:  # noqa: BLE001  (the gate says what else a trace raises)
        return case
    return case


def differentiates(f: Callable[..., Any], example: Example, gradient: bool | None, output_of: OutputOf = _run) -> bool:
    """Whether a step takes gradients: if f returns one float and argument 0 holds float arrays, or as asked.

    `output_of(f, example)` gives what f returns, or the spec of that; by default f is run.
    Raises InputsError where they are asked for and cannot be had, and what `f` raises.
    """
    kinds = {leaf.dtype.kind if isinstance(leaf, np.ndarray) else "" for leaf in tree.leaves(example[0])}
    output = output_of(f, example)  # even where nothing is asked: f must work
    if gradient is False:
        return False
    scalar = isinstance(output, (np.ndarray, TensorSpec)) and not output.shape and output.dtype.kind == "f"
    if gradient and kinds != {"f"}:
        raise InputsError("gradient=True needs an argument 0 that holds float arrays and nothing else")
    if gradient and not scalar:
        raise InputsError("gradient=True needs a function that returns one float, such as graphs.sum of its output")
    return kinds == {"f"} and scalar


def varying_axes(examples: Examples) -> Dims | None:
    """A name for each axis whose size changes, the same where sizes change together; an entry per argument.

    None where nothing varies, or where names cannot say it: arguments nested differently, or containers whose
    arrays vary in different ways.
    """
    names: dict[tuple[int, ...], str] = {}
    names_by_argument = []
    for argument in zip(*examples, strict=True):
        leaves = set(_sizes_over_calls(argument))
        vary = {axes for axes in leaves if axes is None or any(len(set(sizes)) > 1 for sizes in axes)}
        if None in vary or (vary and len(leaves) > 1):
            return None
        names_by_argument.append(_named(vary.pop() or (), names) if vary else None)
    return tuple(names_by_argument) if names else None


def lengths(examples: Examples, dims: Dims | None) -> tuple[int, ...]:
    """The useful size of each example: that of the one axis that varies, or else the elements of its arrays."""
    sizes = [_named_sizes(example, dims) for example in examples]
    if all(len(named) == 1 for named in sizes):
        return tuple(next(iter(named.values())) for named in sizes)
    return tuple(sum(leaf.size for leaf in _arrays(example)) for example in examples)


def checked(inputs: Any, function: Any = None) -> Examples:
    """The inputs of a function as tuples of containers of arrays. Raises InputsError saying what an input is."""
    calls = calls_in(inputs, function)
    for i, example in enumerate(calls):
        if len(example) != len(calls[0]):
            raise InputsError(
                f"{calls.name}[{i}] has {text.counted(len(example), 'argument')} and {calls.name}[0] has "
                f"{len(calls[0])}"
            )
        leaves = tree.leaves(apart(example))
        if not any(isinstance(leaf, (np.ndarray, np.generic)) for leaf in leaves):
            owner = engines.of_values(leaves)
            if owner:
                title = engines.named(owner).title
                raise InputsError(
                    f"{calls.name}[{i}] holds values of {title}: compare its modes with --framework {owner} "
                    f"(framework={owner!r})"
                )
            raise InputsError(f"{calls.name}[{i}] holds no NumPy array, so there is nothing to trace: use np.array")
    return tuple(tree.tree_map(_as_array, example) for example in calls)


def _as_array(leaf: Any) -> Any:
    return np.asarray(leaf) if isinstance(leaf, np.generic) else leaf


def _shared(arguments: Sequence[Any]) -> bool:
    """Whether every call gets the same arrays, and so one argument."""
    first, structure = tree.flatten(arguments[0])
    return all(
        now == structure and all(a is b for a, b in zip(leaves, first, strict=True))
        for leaves, now in map(tree.flatten, arguments)
    )


def _after_params(f: Callable[..., Any]) -> Callable[..., Any]:
    """`f` after the parameters of a case, which it does not have."""

    @functools.wraps(f)
    def loss(_: Any, *args: Any) -> Any:
        return f(*args)

    own = inspect.Parameter("_", inspect.Parameter.POSITIONAL_ONLY)
    try:  # recompile reasons name arguments by their position
        names = [p.replace(kind=p.POSITIONAL_ONLY) for p in inspect.signature(f).parameters.values()]
        loss.__signature__ = inspect.Signature([own, *names])  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        loss.__signature__ = inspect.Signature([own])  # type: ignore[attr-defined]
    return loss


def _arrays(value: Any) -> list[Any]:
    return [leaf for leaf in tree.leaves(value) if isinstance(leaf, np.ndarray)]


def _sizes_over_calls(argument: Sequence[Any]) -> Iterator[tuple[tuple[int, ...], ...] | None]:
    """For each array of an argument, the sizes of each axis over the calls; None where calls are nested apart."""
    calls = [_arrays(value) for value in argument]
    if len({tree.flatten(value)[1] for value in argument}) > 1 or len(set(map(len, calls))) > 1:
        yield None
        return
    for leaf in zip(*calls, strict=True):
        if len({array.ndim for array in leaf}) > 1:
            yield None
        else:
            yield tuple(zip(*(array.shape for array in leaf), strict=True))


def _named(axes: tuple[tuple[int, ...], ...], names: dict[tuple[int, ...], str]) -> tuple[str | None, ...]:
    return tuple(names.setdefault(axis, f"d{len(names)}") if len(set(axis)) > 1 else None for axis in axes)


def _named_sizes(example: Example, dims: Dims | None) -> dict[str, int]:
    return {
        name: size
        for value, names in zip(example, dims or (), strict=False)
        if isinstance(names, tuple)
        for array in _arrays(value)
        for name, size in zip(names, array.shape, strict=False)
        if name is not None
    }


Function = Callable[..., Any]


def over_dicts(f: Function, inputs: Sequence[Any]) -> tuple[Function, Sequence[Any]]:
    """The function over dicts and its calls; as they are where no argument holds such a container."""
    calls = list(inputs)
    if not any(map(is_container, tree.leaves(calls))):
        return f, calls
    brought = CallContainers(calls)

    @static.plain  # not converted: it writes into what it makes
    def restored(args: Sequence[Any]) -> Sequence[Any]:
        return brought(args)

    @functools.wraps(f)
    def over(*args: Any) -> Any:
        return f(*restored(args))

    return over, brought.plain
