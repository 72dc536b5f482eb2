"""The case of a user's function and its calls: the differentiated argument, the axes that vary, the form of a call.

Containers of the user's classes among the arguments become dicts for our engines. The function gets its own classes
again, with the engine's values in their parts.

A loss that takes modules, or closes over some, is measured like any other: its gradients are those in the parameters
that require them. Buffers stay tensors that the function reads.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, is_dataclass, replace
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

import static
from compare import engines, steps, text
from compare.engines.containers import CallContainers, apart, is_container
from compare.engines.graphduel.steps import transform_step
from compare.engines.reach import Place, ReachedCode, module_of, outermost
from compare.errors import InputsError, count_as_users
from compare.instruments.bench import call_size
from compare.subjects.effects import effects_in
from compare.subjects.subject import Function, Subject
from compare.workloads.base import Case, Dims, Example
from graphs import tree
from graphs.errors import ControlFlowError
from graphs.spec import TensorSpec

INPUTS = ("inputs", "batches")
"""The names that are searched beside a function for its calls, where no other place is given."""

STREAM = 500
"""The most calls that are taken from an iterable without a length."""

Examples = tuple[Example, ...]
OutputOf = Callable[[Callable[..., Any], Example], Any]


@dataclass(frozen=True)
class FunctionCase(Case):
    """A user's function that is open in this process, as its engine takes it.

    `function` and `calls` are as the user gave them, and `effects` what the function does besides its result. It is
    padded as it is: if it needs a mask, the mask is among its own arguments.
    """

    function: Function = len
    calls: Sequence[Any] = ()
    effects: Sequence[object] = ()

    def masked_example(self, index: int) -> Example:
        """Return the example: there is no mask to add."""
        return self.examples[index]


def _run(f: Callable[..., Any], example: Example) -> Any:
    """Return the result of `f` in the dynamic engine."""
    return engines.find_engine(engines.OWN).ops.called(f, example)


def case_of(
    f: Callable[..., Any],
    inputs: Sequence[Any],
    gradient: bool | None,
    dims: Sequence[Any] | None,
    output_of: OutputOf = _run,
) -> FunctionCase:
    """Return the case of `f` over these calls for our engines. An argument 0 that never changes becomes its parameters.

    Where `f` takes modules, or closes over some, their parameters are argument 0.

    `output_of` is as for `differentiates`.
    """
    calls = calls_in(inputs, f)
    loss, brought = over_dicts(*functional(f, calls))
    examples = check_inputs(Inputs.like(calls, brought), loss)
    argnum = 0 if differentiates(loss, examples[0], gradient, output_of) else None
    axes = tuple(dims) if dims is not None else varying_axes(examples)
    sizes, make_case = lengths(examples, axes), partial(FunctionCase, function=f, calls=calls)
    if _is_shared([example[0] for example in examples]):
        streams = tuple(example[1:] for example in examples)
        return make_case(loss, examples[0][0], streams, sizes, masked=loss, dims=axes, argnum=argnum)
    loss, argnum = _after_params(loss), None if argnum is None else 1
    shifted = None if axes is None else (None, *axes)
    return make_case(loss, (), examples, sizes, masked=loss, dims=shifted, argnum=argnum)


def open_case(subject: Subject, function: Function, inputs: Any, dims: Any = None) -> FunctionCase:
    """Return the case of a function in the subject's engine. Raises InputsError, EffectsError, and its own errors.

    In a framework its first call must stay the first, so its effects are searched later.
    """
    count_as_users(module_of(function))
    engine, calls = subject.adapter, calls_in(inputs, function)
    if not engine.is_reference:
        return case_of_calls(function, [engine.devices.placed(call) for call in calls], subject.argnum)
    steps.now(f"called {subject.name}")
    effects = [] if subject.stands_in else effects_in(subject, function, check_inputs(calls, function)[0])
    case = replace(case_of(function, calls, subject.gradient, dims), effects=effects)
    return converting(case) if subject.modes[1:] else case


def case_of_calls(function: Function, calls: Sequence[Any], argnum: int | None) -> FunctionCase:
    """Return the case of a framework's function over calls with its arrays. They are whole: it has no parameters."""
    sizes = tuple(map(call_size, calls))
    return FunctionCase(function, None, tuple(calls), sizes, argnum=argnum, function=function, calls=calls)


def converting(case: FunctionCase) -> FunctionCase:
    """Return the case with its control flow converted for the static engine, if a trace needs that.

    `branches` is set where Python branches on a value of the first example. Where the conversion is refused too, the
    gate then tells its reason: that of a plain trace is the first branch, and its remedy is to convert.
    """
    arguments = (case.params, *case.examples[0])
    try:
        static.trace(transform_step(static, case.loss, None), *arguments)
    except ControlFlowError:
        try:
            static.trace(transform_step(static, static.converted(case.loss), None), *arguments)
        except ControlFlowError:
            return replace(case, branches=True)
        except Exception:  # noqa: BLE001  (the gate says why static refuses the function as it is)
            return case
        return replace(case, branches=True)
    except Exception:  # noqa: BLE001  (the gate says what else a trace raises)
        return case
    return case


def differentiates(f: Callable[..., Any], example: Example, gradient: bool | None, output_of: OutputOf = _run) -> bool:
    """Return whether a step takes gradients: if f returns one float and argument 0 has only float arrays, or as asked.

    `output_of(f, example)` returns the result of f, or its spec; by default f is run.
    Raises InputsError where gradients are asked for and impossible, and the errors of `f`.
    """
    kinds = {leaf.dtype.kind if isinstance(leaf, np.ndarray) else "" for leaf in tree.leaves(example[0])}
    output = output_of(f, example)  # called even if gradients are not asked for: f must work
    if gradient is False:
        return False
    scalar = isinstance(output, (np.ndarray, TensorSpec)) and not output.shape and output.dtype.kind == "f"
    if gradient and kinds != {"f"}:
        raise InputsError("gradient=True needs an argument 0 that holds float arrays and nothing else")
    if gradient and not scalar:
        raise InputsError("gradient=True needs a function that returns one float, such as graphs.sum of its output")
    return kinds == {"f"} and scalar


def varying_axes(examples: Examples) -> Dims | None:
    """Return a name for each axis whose size changes, the same where sizes change together; an entry per argument.

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
        names_by_argument.append(_name_axes(vary.pop() or (), names) if vary else None)
    return tuple(names_by_argument) if names else None


def lengths(examples: Examples, dims: Dims | None) -> tuple[int, ...]:
    """Return the useful size of each example: of the one axis that varies, or else the elements of its arrays."""
    sizes = [_named_sizes(example, dims) for example in examples]
    if all(len(named) == 1 for named in sizes):
        return tuple(next(iter(named.values())) for named in sizes)
    return tuple(sum(leaf.size for leaf in _arrays(example)) for example in examples)


def check_inputs(inputs: Any, function: Any = None) -> Examples:
    """Return the calls as tuples of containers of arrays. Raises InputsError for a call that is none."""
    calls = calls_in(inputs, function)
    for i, example in enumerate(calls):
        if len(example) != len(calls[0]):
            raise InputsError(
                f"{calls.name}[{i}] has {text.count_noun(len(example), 'argument')} and {calls.name}[0] has "
                f"{len(calls[0])}"
            )
        leaves = tree.leaves(apart(example))
        if not any(isinstance(leaf, (np.ndarray, np.generic)) for leaf in leaves):
            owner = engines.of_values(leaves)
            if owner:
                title = engines.find_engine(owner).title
                raise InputsError(
                    f"{calls.name}[{i}] holds values of {title}: compare its modes with --framework {owner} "
                    f"(framework={owner!r})"
                )
            if not example:
                name = getattr(function, "__name__", "the function")
                raise InputsError(f"{name} takes no argument, so there is nothing to trace: give it its arrays")
            raise InputsError(f"{calls.name}[{i}] holds no NumPy array, so there is nothing to trace: use np.array")
    return tuple(tree.tree_map(_as_array, example) for example in calls)


def _as_array(leaf: Any) -> Any:
    return np.asarray(leaf) if isinstance(leaf, np.generic) else leaf


def _is_shared(arguments: Sequence[Any]) -> bool:
    """Return whether every call gets the same array objects for an argument."""
    first, structure = tree.flatten(arguments[0])
    return all(
        now == structure and all(a is b for a, b in zip(leaves, first, strict=True))
        for leaves, now in map(tree.flatten, arguments)
    )


def _after_params(f: Callable[..., Any]) -> Callable[..., Any]:
    """Return `f` with an ignored first argument for the parameters of a case."""

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
    """Yield the sizes of each axis over the calls, for each array of an argument; None where structures differ."""
    calls = [_arrays(value) for value in argument]
    if len({tree.flatten(value)[1] for value in argument}) > 1 or len(set(map(len, calls))) > 1:
        yield None
        return
    for leaf in zip(*calls, strict=True):
        if len({array.ndim for array in leaf}) > 1:
            yield None
        else:
            yield tuple(zip(*(array.shape for array in leaf), strict=True))


def _name_axes(axes: tuple[tuple[int, ...], ...], names: dict[tuple[int, ...], str]) -> tuple[str | None, ...]:
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


# Containers of a class of its own -------------------------------------------------------------------------------------


def over_dicts(f: Function, inputs: Sequence[Any]) -> tuple[Function, Sequence[Any]]:
    """Return the function over dicts, and its calls; both unchanged where no argument has a user's container."""
    calls = list(inputs)
    if not any(map(is_container, tree.leaves(calls))):
        return f, calls
    brought = CallContainers(calls)

    @static.plain  # not converted: it writes into what it makes
    def restore(args: Sequence[Any]) -> Sequence[Any]:
        return brought(args)

    @functools.wraps(f)
    def wrapper(*args: Any) -> Any:
        return f(*restore(args))

    return wrapper, brought.plain


# Calls ---------------------------------------------------------------------------------------------------------------


class Inputs(list[Any]):
    """A list of calls with the name that messages use for it, as in `batches[0]`."""

    def __init__(self, calls: Iterable[Any], name: str = INPUTS[0]) -> None:
        super().__init__(calls)
        self.name = name

    @classmethod
    def like(cls, other: Any, calls: Iterable[Any]) -> Inputs:
        """Return other calls under the same name."""
        return cls(calls, other.name) if isinstance(other, Inputs) else cls(calls)


def batches_of(inputs: Iterable[Any], name: str) -> list[Any]:
    """Return all batches of an iterable. Raises InputsError for one that may not end."""
    try:
        len(inputs)  # type: ignore[arg-type]
    except TypeError:
        batches = list(islice(inputs, STREAM + 1))
        if len(batches) > STREAM:
            how = "take the first: itertools.islice(..., 16)"
            raise InputsError(f"{name} gives more than {STREAM} calls and may never end; {how}") from None
        return batches
    return list(inputs)


def takes_nothing(function: Any) -> bool:
    """Return whether a function has no parameters at all, so that its one call is ()."""
    try:
        return not inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False


def takes_one(function: Any) -> bool | None:
    """Return whether a function takes one argument, by parameters without a default; None where Python cannot tell."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    places = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    needed = sum(p.default is p.empty for p in places)
    if needed > 1 or not (places or any(p.kind is p.VAR_POSITIONAL for p in parameters)):
        return False
    return True if needed == 1 or len(places) == 1 else None


def calls_in(inputs: Any, function: Any = None) -> Inputs:
    """Return the inputs as a list of calls; they are a list, or an iterable of batches, such as a DataLoader.

    A batch that is a tuple or a list has the arguments of a call. A function of one argument takes it whole, except a
    batch of one part, and tuples where some fit the function's parameters. A batch that is no sequence is the one
    argument of such a function. Raises InputsError for any other batch.
    """
    name = Inputs.like(inputs, ()).name
    rule = f"{name} is a list of calls, each the tuple of its arguments: write {name} = [{call_of(function)}]"
    gives = (
        not isinstance(inputs, (str, bytes, Mapping)) and not hasattr(inputs, "dtype") and hasattr(inputs, "__iter__")
    )
    calls = batches_of(inputs, name) if gives else []
    if not calls:
        raise InputsError(f"{name} is {'empty' if gives else _kind(inputs)}; {rule}")
    # A call without arguments counts as accepted: another message reports them missing.
    unpacks = any(type(call) is tuple and (_binds(function, call) or not call) for call in calls)
    return Inputs((_arguments(call, f"{name}[{i}]", function, rule, unpacks) for i, call in enumerate(calls)), name)


def _arguments(batch: Any, label: str, function: Any, rule: str, unpacks: bool) -> tuple[Any, ...]:
    """Return the arguments of a batch's call; a function of one argument gets a tuple's parts if it `unpacks`."""
    is_one = takes_one(function)
    if isinstance(batch, (tuple, list)) and (not is_one or len(batch) == 1 or (unpacks and type(batch) is tuple)):
        if batch or _binds(function, ()):
            return tuple(batch)
        raise InputsError(f"{label} is empty; {rule}")
    is_value = hasattr(batch, "dtype") or isinstance(batch, (Mapping, tuple, list)) or is_dataclass(batch)
    if is_one is False or not is_value:
        raise InputsError(f"{label} is {_kind(batch)}; {rule}")
    return (batch,)


def _binds(function: Any, arguments: tuple[Any, ...]) -> bool:
    try:
        inspect.signature(function).bind(*arguments)
    except (TypeError, ValueError):
        return False
    return True


def _kind(value: Any) -> str:
    return f"of type {type(value).__name__}"


def call_of(function: Any) -> str:
    """Return a call as a user writes it, by the names of the parameters that it needs: `(w, x)`."""
    try:
        names = [name for name, p in inspect.signature(function).parameters.items() if p.default is p.empty]
    except (TypeError, ValueError):
        names = []
    return f"({', '.join(names or ['x'])}{',' if len(names) < 2 else ''})"


# Modules, which hold their parameters themselves ---------------------------------------------------------------------


def functional(f: Function, inputs: Sequence[Any]) -> tuple[Function, Sequence[Any]]:
    """Return the function with a dict of parameters as first argument, and its calls; unchanged without parameters.

    Parameters are those of the modules among the arguments, which are the same in each call, and of the modules and
    tensors with gradients that `f` reaches by itself.
    """
    loaded, calls = sys.modules.get("dynamic.nn.module"), list(inputs)
    if loaded is None or not calls or not all(isinstance(call, tuple) for call in calls):
        return f, inputs
    arguments = {i: value for i, value in enumerate(calls[0]) if isinstance(value, loaded.Module)}
    code = ReachedCode(f)
    modules = outermost([*arguments.values(), *(value for value in code.values if isinstance(value, loaded.Module))])
    holders = [module for module in modules if any(param.requires_grad for param in module.parameters())]
    inside = {id(param) for module in holders for param in module.parameters()}
    tensors = [value for value in code.values if _is_parameter(value) and id(value) not in inside]
    named = _parameters_by_name(holders, tensors)
    if not named:
        return f, inputs
    function = _Functional(f, holders, tensors, code.places, arguments)
    params = {name: param.numpy(force=True) for name, param in named.items()}
    return function.made(), [(params, *(value for i, value in enumerate(call) if i not in arguments)) for call in calls]


def _is_parameter(value: Any) -> bool:
    from dynamic import Tensor

    return isinstance(value, Tensor) and value.requires_grad and value.is_leaf


def _parameters_by_name(modules: Sequence[Any], tensors: Sequence[Any]) -> dict[str, Any]:
    """Return parameters by name, with a number before the names of several holders; modules come before tensors."""
    several, width = len(modules) + len(tensors) > 1, len(str(len(modules) + len(tensors)))
    named = {
        f"{i:0{width}}.{name}" if several else name: param
        for i, module in enumerate(modules)
        for name, param in module.named_parameters()
        if param.requires_grad
    }
    return {**named, **{f"{i:0{width}}": tensor for i, tensor in enumerate(tensors, len(modules))}}


class _Functional:
    """A function of parameters by name, which are put where the user's function finds them while it runs.

    Float buffers then have the dtype of the parameters: the gate runs a module in float64 as well.
    """

    def __init__(
        self, f: Function, modules: Sequence[Any], tensors: Sequence[Any], places: Sequence[Place],
        arguments: Mapping[int, Any],
    ) -> None:  # fmt: skip
        self.f, self.arguments = f, arguments
        names = {id(param): name for name, param in _parameters_by_name(modules, tensors).items()}
        spaces = [vars(inner) for module in modules for inner in module.modules()]
        attributes = [(space, name, value) for space in spaces for name, value in space.items()]
        buffers = {id(tensor) for module in modules for tensor in module.buffers() if tensor.dtype.kind == "f"}
        self.places = [(space, name, names[id(value)]) for space, name, value in attributes if id(value) in names]
        self.places += [(p.space, p.name, names[id(value)]) for p in places if id(value := p.read()) in names]
        self.buffers = [place for place in attributes if id(place[2]) in buffers]

    def __call__(self, params: Any, *args: Any) -> Any:
        """Return the result of the user's function."""
        dtype = next(iter(params.values())).dtype
        values = [(space, key, params[name]) for space, key, name in self.places]
        if dtype.kind == "f":
            values += [(space, key, value.to(dtype)) for space, key, value in self.buffers if value.dtype != dtype]
        before = [(space, key, space[key]) for space, key, _ in values]
        try:
            _put(values)
            return self.f(*self._arguments(args))
        finally:
            _put(before)

    def _arguments(self, args: Sequence[Any]) -> Sequence[Any]:
        if not self.arguments:
            return args
        rest = iter(args)
        return [
            self.arguments[i] if i in self.arguments else next(rest) for i in range(len(args) + len(self.arguments))
        ]

    def made(self) -> Function:
        """Return the object as a plain function of the same name."""

        def call(params: Any, *args: Any) -> Any:
            return self(params, *args)

        call.__name__ = getattr(self.f, "__name__", "f")
        vars(call).update(vars(self.f) if hasattr(self.f, "__dict__") else {})
        return call


def _put(values: Sequence[tuple[Any, Any, Any]]) -> None:
    for space, key, value in values:
        space[key] = value
