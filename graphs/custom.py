"""User-defined ops: a NumPy function, a spec and gradient rules become an op that both engines run."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphs import promotion
from graphs.dims import Size
from graphs.errors import ShapeError
from graphs.op import OUT, Array, Op, Prepared, Residual, Rule, of_input, of_option
from graphs.spec import TensorSpec, broadcast_shapes, spec_of

Function = Callable[..., Any]


def custom_op(
    name: str,
    forward: Function,
    spec: Callable[..., TensorSpec] | None = None,
    vjp: Function | Sequence[Function | None] | None = None,
    *,
    cost: Callable[..., Size] | None = None,
    doc: str = "",
) -> Op:
    """An op from a NumPy function, for both engines.

    forward   `forward(*arrays, **options) -> array`: a function of its inputs alone, which it does not change. Its
              positional parameters are the op's inputs, its keyword-only ones are options. With a parameter `out` it
              is given the array to write to, or None; else the result is copied there
    spec      `spec(*specs, **options) -> TensorSpec` of the result, or an error; the default is NumPy's broadcasting
    vjp       a gradient rule per input: a function for one, a sequence for several, None where there is no gradient.
              `rule(g, ...)` gives the gradient for the result's gradient g, in ops. Its other parameters name what it
              needs and nothing else is kept: an input or an option as forward names it, `<input>_shape`,
              `<input>_dtype`, or `out`
    cost      `cost(*specs, out=spec, **options)`: floating point operations; one per element by default

    Other optimisations treat the op as opaque. A saved graph is loaded where the op is defined under the same name.
    A module may define its op again, as a notebook does. Raises ValueError for a name that is taken, and TypeError
    for a rule that names something unknown.
    """
    inputs, options = _parameters(name, forward)
    gradients: Sequence[Any] = list(vjp) if isinstance(vjp, Sequence) else [vjp]
    rules = gradients if any(gradients) else []
    if rules and len(rules) != len(inputs):
        raise TypeError(f"{name}: {len(rules)} gradient rules for {len(inputs)} inputs; give one each, or None")
    infer = spec or _broadcast
    return Op(
        name,
        _kernel(name, forward, infer),
        infer,
        rules=[rule and _rule(name, rule, inputs, options) for rule in rules],
        prepare=functools.partial(_prepare, forward, len(inputs)),
        cost=cost or 1,
        family="custom",
        arity=len(inputs),
        broadcasts=True,
        doc=doc or inspect.getdoc(forward) or f"{name}, defined in {forward.__module__}.",
    )


def _parameters(name: str, forward: Function) -> tuple[list[str], list[str]]:
    """The names of forward's inputs and of its options. Raises TypeError for `*args` or `**kwargs`."""
    parameters = inspect.signature(forward).parameters.values()
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters):
        raise TypeError(f"{name}: forward names its inputs and options, instead of *{name} or **{name}")
    inputs = [p.name for p in parameters if p.kind is not p.KEYWORD_ONLY and p.name != "out"]
    return inputs, [p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.name != "out"]


def _broadcast(*specs: TensorSpec, **_: Any) -> TensorSpec:
    return TensorSpec(broadcast_shapes(*(s.shape for s in specs)), np.result_type(*(s.dtype for s in specs)))


def _prepare(forward: Function, count: int, /, *args: Any, **options: Any) -> Prepared:
    bound = inspect.signature(forward).bind(*args, **options)
    bound.apply_defaults()
    values = dict(bound.arguments)
    values.pop("out", None)
    arrays = list(values.values())[:count]
    typed = [promotion.weak_to_array(a, arrays) if promotion.is_scalar(a) or isinstance(a, list) else a for a in arrays]
    return tuple(typed), {key: values[key] for key in list(values)[count:]}


def _kernel(name: str, forward: Function, infer: Callable[..., TensorSpec]) -> Function:
    """Wrap forward: it takes `out`, its result shares no memory with the inputs, and a wrong spec raises ShapeError."""
    takes_out = "out" in inspect.signature(forward).parameters

    @functools.wraps(forward)
    def kernel(*arrays: Array, out: Array = None, **options: Any) -> Array:
        result = np.asarray(forward(*arrays, **({"out": out} if takes_out else {}), **options))
        promised = infer(*map(spec_of, arrays), **options)
        if spec_of(result) != promised:
            raise ShapeError(f"forward gave {spec_of(result)}, its spec says {promised}; make them equal")
        if out is None:
            return result.copy() if any(np.may_share_memory(result, a) for a in arrays) else result
        if result is not out:
            np.copyto(out, result)
        return out

    return kernel


def _rule(name: str, rule: Function, inputs: list[str], options: list[str]) -> Rule:
    """Make a Rule of a user's function, whose parameters name inputs and options as forward does. Raises TypeError."""
    residuals: dict[str, Residual] = {"out": OUT}
    for i, own in enumerate(inputs):
        residuals |= {own: of_input(i), f"{own}_shape": of_input(i, "shape"), f"{own}_dtype": of_input(i, "dtype")}
    twice = [option for option in options if option in residuals]
    if twice:
        raise TypeError(f"{name}: a gradient rule takes {twice[0]} for what an input has; rename the option")
    residuals |= {option: of_option(option) for option in options}
    free = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
    asked = [p for p in inspect.signature(rule).parameters.values() if p.kind not in free][1:]
    names = [p.name for p in asked if p.name in residuals or p.default is p.empty]
    unknown = [own for own in names if own not in residuals]
    if unknown:
        raise TypeError(f"{name}: a gradient rule asks for {unknown[0]}; it may name {', '.join(residuals)}")

    @functools.wraps(rule)
    def apply(g: Array, *values: Any) -> Any:
        return rule(g, **dict(zip(names, values, strict=True)))

    return Rule(apply, [residuals[own] for own in names])
